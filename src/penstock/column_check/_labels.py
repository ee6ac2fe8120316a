"""Is a column named like one that says what is known of each row?"""

from __future__ import annotations

import re

LIKE_A_LABEL = "It looks like a label; if it says what is known, give it as the label, it would otherwise be an input."
_LABEL = re.compile(
    r"(?<![^\W_])(outliers?|labels?|anomal(y|ies|ous|ie|ien)|fault(s|y)?|target|class(es)?|ground.?truth)(?![^\W_])",
    re.IGNORECASE,
)


def looks_like_label(name: str, n_distinct: int) -> bool:
    """Whether a column of two different values is named like a label.

    >>> [looks_like_label(name, 2) for name in ("is_fault", "Label", "default", "target level")]
    [True, True, False, True]
    >>> looks_like_label("fault current", 900)
    False
    """
    return n_distinct == 2 and _LABEL.search(name) is not None
