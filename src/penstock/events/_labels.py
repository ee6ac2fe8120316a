"""A column of labels → which rows are known faults."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import quoted

_NORMAL = {"normal", "ok", "good", "healthy", "no", "none", "false", "0", ""}
_MISSING = {"nan", "na", "n/a", "null", "-", "--"}  # as texts
_SHOWN = 5


def known_faults(label: pd.Series[Any]) -> tuple[NDArray[np.bool_], str]:
    """Which rows are known faults, and how the column was read.

    Numbers other than 0 are faults, and numbers that are written as text count as numbers. Of texts, normal, ok, good,
    healthy, no, none, false and nothing are normal in upper and lower case, and all others are faults. Missing is
    normal. Where there are exactly 1 and −1, these are scikit-learn's: −1 is a fault.

    >>> known_faults(pd.Series([0, 1, 0, 0], name="outlier"))[1]
    "Label 'outlier': 1 of 4 rows is a known fault (1); the others hold 0."
    >>> faults, sentence = known_faults(pd.Series(["Normal", "trip", None, "leak", "trip"], name="state"))
    >>> faults.tolist(), sentence
    ([False, True, False, True, True],
     "Label 'state': 3 of 5 rows are known faults ('trip', 'leak'); the others hold 'Normal' or nothing.")
    """
    codes, values = pd.factorize(label, use_na_sentinel=True)
    signs = {_as_number(value) for value in values} == {-1.0, 1.0}
    are_faults = [_as_number(value) == -1 if signs else _is_fault(value) for value in values]
    verdicts = np.array([*are_faults, False], dtype=np.bool_)  # the last is for missing
    faults = verdicts[codes]
    held = [value for value, fault in zip(values, verdicts[:-1], strict=True) if fault]
    normal = [value for value, fault in zip(values, verdicts[:-1], strict=True) if not fault]
    sentence = _sentence(label, faults, held, normal, bool((codes < 0).any()))
    return faults, sentence + (" It was read as scikit-learn writes labels, where -1 is a fault." if signs else "")


def _sentence(
    label: pd.Series[Any], faults: NDArray[np.bool_], held: Sequence[Any], normal: Sequence[Any], missing: bool
) -> str:
    name, count, n = quoted(label.name), int(faults.sum()), len(faults)
    nothing = ["nothing"] if missing else []
    others = " or ".join(([_shown(normal)] if normal else []) + nothing)
    if not count:
        return f"Label {name}: none of {n:,} rows is a known fault" + (f"; they hold {others}." if others else ".")
    if count == n:
        return f"Label {name}: all {n:,} rows are known faults ({_shown(held)}), so there is no normal row."
    are = "is a known fault" if count == 1 else "are known faults"
    return f"Label {name}: {count:,} of {n:,} rows {are} ({_shown(held)}); the others hold {others}."


def _is_fault(value: Any) -> bool:
    if isinstance(value, bool | np.bool_ | Number):
        return bool(value != 0)
    word = str(value).strip().casefold()
    number = _number(word)
    return word not in _NORMAL | _MISSING if number is None else number != 0


def _as_number(value: Any) -> float:
    """What a value counts as; NaN for a text that spells no number, and for True and False."""
    number = None if isinstance(value, bool | np.bool_) else _number(str(value).strip())
    return np.nan if number is None else number


def _number(word: str) -> float | None:
    """The number that a text spells, with a decimal point or comma."""
    try:
        number = float(word.replace(",", ".", 1))
    except ValueError:
        return None
    return None if np.isnan(number) else number


def _shown(values: Sequence[Any]) -> str:
    words = list(dict.fromkeys(map(_word, values)))
    more = f" and {len(words) - _SHOWN:,} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more


def _word(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    spelled = str(value).strip()
    plain = isinstance(value, bool | np.bool_ | Number) or _number(spelled) is not None
    return spelled[:20] if plain else quoted(spelled)
