"""Does a column look like a label, which says what is known of each row?"""

from __future__ import annotations

import re
from collections.abc import Collection

LIKE_A_LABEL = "It looks like a label, not like a reading."
_STRONG = re.compile(
    r"outliers?|anomal(y|ies|ous|ie|ien)|abnormal|attacks?|faults?|faulty|failures?|labels?|flags?|(st(ö|oe)rung|fehler)(en)?"
    r"|truth|changepoints?",
    re.IGNORECASE,
)
_WEAK = re.compile(r"targets?|class(es)?", re.IGNORECASE)  # of other things too, unless the whole name is about a label
_BESIDE = re.compile(
    r"is|has|in|the|a|y|true|ground|point|points|change|normal|or|id|no|nr|num|number|code|type|name|index|kind|state|status"
    r"|[0-9]+",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-zäöü])(?=[A-ZÄÖÜ])")
MOST_KINDS = 50  # of a label
_LARGEST = 100
_CODES = (-99, -999, -9999, -99999)  # of rows of which nothing is known


def looks_like_label(name: str, values: Collection[float] | Collection[str]) -> bool:
    """Whether a column is named like a label and has few values, as labels have.

    values : the different ones.

    Numbers are 0 and 1, 1 and −1, or small whole numbers with 0 or 1 among them; −999 and such stand for "unknown".
    With more than two (other) values, all words of the name must be about a label: "fault number" is one, "fault
    current" is a reading.

    >>> [looks_like_label(name, {0.0, 1.0}) for name in ("is_fault", "Label", "ATT_FLAG", "pump_on", "default", "y")]
    [True, True, True, False, False, False]
    >>> [looks_like_label(name, {0.0, 1.0, 4.0}) for name in ("faultNumber", "fault current", "flag_count")]
    [True, False, False]
    >>> looks_like_label("ATT_FLAG", {-999.0, 1.0}), looks_like_label("Normal/Attack", {"Normal", "Attack", "A ttack"})
    (True, True)
    >>> looks_like_label("target", {18.0, 21.0}), looks_like_label("target level", {0.0, 1.0})
    (False, False)
    """
    words = _WORDS.findall(_CAMEL.sub("_", name))
    whole = all(_STRONG.fullmatch(word) or _WEAK.fullmatch(word) or _BESIDE.fullmatch(word) for word in words)
    strong = any(map(_STRONG.fullmatch, words)) or "change point" in " ".join(words).casefold()
    if not (strong or (whole and any(map(_WEAK.fullmatch, words)))):
        return False
    kinds = [value for value in values if value not in _CODES]
    few = len(kinds) <= 2 or (whole and len(kinds) <= MOST_KINDS)
    numbers = [value for value in kinds if not isinstance(value, str)]
    whole = all(float(number).is_integer() and -1 <= number <= _LARGEST for number in numbers)
    return few and len(values) > 1 and whole and (not numbers or 0 in numbers or 1 in numbers)
