"""Rank the variables of an event by their residuals, and read units of measurement from column names."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from penstock._types import FloatArray

_BRACKETED = re.compile(r"^(?P<name>.*\S)\s*\[(?P<unit>[^\[\]]*)\]\s*$", re.DOTALL)
_PARENTHESISED = re.compile(r"^(?P<name>.*\S)\s*\((?P<unit>[^()]*)\)\s*$", re.DOTALL)
_DIVIDED = re.compile(r"^(?P<name>.*\S)\s+/\s+(?P<unit>\S+)\s*$", re.DOTALL)
_DIMENSIONLESS = {"", "-", "–", "—", "1"}
# Those that take an SI prefix, and those that do not. Only whole words count: "(old)" is not a unit.
_PREFIXED = (
    "m g s A K mol cd Hz N Pa J W C V F Ω Ohm ohm S Wb T H lm lx l L t bar eV Wh VA VAh var Var VAr VAR Ah cal B"
)
_PLAIN = (
    "% ‰ ° °C °F ºC ºF degC degF deg rad sr grd min h hr d day days a yr week month Celsius Fahrenheit Kelvin K "
    "rpm RPM U/min 1/min ppm ppb ppt dB dBA dB(A) pH psi psia psig bara barg atm at torr Torr mmHg mWS mWC mH2O mWs "
    "ft in inch yd mi mile gal gpm cfs cfm cms lb lbs lbf oz hp PS kn knot knots mph kmh fps "
    "sec secs second seconds minutes hours meter metre meters metres volt volts amp amps ampere watt watts "
    "masl mNN pu p.u. count counts Stk pcs EUR USD € $ µ um us NTU FNU PSU TU octas"
)
_PREFIXES = "|".join(["da", *"yzafpnuµμmcdhkKMGTPEZY"])
_WORD = rf"(?:(?:{_PREFIXES})?(?:{'|'.join(_PREFIXED.split())})|{'|'.join(map(re.escape, _PLAIN.split()))})"
_POWER = r"(?:\^?[-+−]?\d|\*\*-?\d|[⁺⁻]?[¹²³⁴⁵⁶])?"
_UNIT = re.compile(rf"(?:1/)?{_WORD}{_POWER}(?:\s?[·⋅*./ ]\s?{_WORD}{_POWER}){{0,4}}")


def split_unit(name: str) -> tuple[str, str]:
    """Return a column's name without its unit, and the unit ("" if it names none).

    Whatever is in square brackets at the end is a unit, unless it is a number (which is an index). In round brackets or
    after a slash between spaces it must be made of known units: "pump (old)" has none.

    >>> split_unit("Temp [°C]"), split_unit("flow (m³/s)"), split_unit("power / MW")
    (('Temp', '°C'), ('flow', 'm³/s'), ('power', 'MW'))
    >>> split_unit("pump (old)"), split_unit("valve [3]"), split_unit("efficiency [-]")
    (('pump (old)', ''), ('valve [3]', ''), ('efficiency', ''))
    """
    for pattern in (_BRACKETED, _PARENTHESISED, _DIVIDED):
        found = pattern.match(name)
        if found is None:
            continue
        unit = found["unit"].strip()
        if unit in _DIMENSIONLESS - {"", "1"}:
            return found["name"], ""
        if _UNIT.fullmatch(unit) or (pattern is _BRACKETED and unit and not re.fullmatch(r"[-+]?[\d.,:;\s]+", unit)):
            return found["name"], unit
    return name, ""


def units_of(names: Sequence[str], units: Sequence[str | None] | None) -> list[str]:
    """Return the unit of each column: as given, or else as its name says; "" if unknown."""
    if units is None:
        return [split_unit(name)[1] for name in names]
    return [unit or "" for unit in units]


def in_words(variable: str, operator: str, value: float, unit: str) -> str:
    """Return a comparison as people write it, the unit once."""
    name, named = split_unit(variable)
    shown = name if named == unit else variable
    number = repr(float(value)).removesuffix(".0")
    return f"{shown} {operator} {number} {unit}".rstrip()


_LARGEST = float(np.finfo(np.float64).max)


def rank_variables(
    actual: FloatArray,
    expected: FloatArray,
    scale: FloatArray,
    names: Sequence[str],
    units: Sequence[str | None] | None = None,
    *,
    n: int = 8,
    shares: FloatArray | None = None,
    added: FloatArray | None = None,
) -> pd.DataFrame:
    """Return the `n` variables that depart most from what was expected during one event, the largest share first.

    actual, expected : (m, p) the readings of the event's rows and what was expected of them, in the user's units. NaN
        where there is none: such an entry does not count.
    scale : (p,) what counts as one: the range of each column that the scaling has fitted. A column without a range (it
        was constant) counts in units of what was expected of it (of 1, if that is 0).
    names, units : of the columns. Without `units` they are taken from the names where these have them.
    shares, added : (p,) and (m, p) of a method that says what makes up a score: the share of each variable, and what it
        adds in each row.

    Columns are variable (the full name), unit ("" if unknown), actual, expected, difference (actual − expected) and row
    (of the m), all at the row where this variable departs most, or, if it never does, adds most; share, where all
    variables, including those left out, sum to 1: as given, else of the event's squared scaled residual; direction,
    "above", "below", or "" if as expected. Ties in the order of the columns; variables without a share are left out.
    """
    size = np.abs(_scaled_residual(actual, expected, scale))
    row = size.argmax(axis=0) if len(size) else np.zeros(size.shape[1], dtype=np.intp)
    if added is not None:
        row = np.where(size.any(axis=0), row, added.argmax(axis=0))
    if shares is None:
        largest = size.max(initial=0.0)
        shares = np.zeros(size.shape[1])
        if largest > 0:
            squares = ((size / largest) ** 2).sum(axis=0)  # in units of the largest, so that no square overflows
            shares = squares / squares.sum()
    chosen = np.argsort(-shares, kind="stable")[:n]
    chosen = chosen[shares[chosen] > 0]
    known, row = units_of(names, units), row[chosen]
    with np.errstate(over="ignore"):
        difference = actual[row, chosen] - expected[row, chosen]
    return pd.DataFrame(
        {
            "variable": pd.Series([names[j] for j in chosen], dtype=object),
            "unit": pd.Series([known[j] for j in chosen], dtype=object),
            "actual": actual[row, chosen],
            "expected": expected[row, chosen],
            "difference": difference,
            "row": row,
            "share": shares[chosen],
            "direction": np.select([difference > 0, difference < 0], ["above", "below"], "").astype(object),
        }
    )


def _scaled_residual(actual: FloatArray, expected: FloatArray, scale: FloatArray) -> FloatArray:
    """(actual − expected) / scale, 0 where there is nothing to compare."""
    own = np.where(expected != 0, np.abs(expected), 1.0)
    one = np.where(scale > 0, np.minimum(scale, _LARGEST), own)
    with np.errstate(over="ignore", invalid="ignore"):
        difference = actual - expected
        residual = np.where(np.isinf(difference), actual / one - expected / one, difference / one)
    seen = np.isfinite(actual) & np.isfinite(expected)
    return np.where(seen, np.clip(residual, -_LARGEST, _LARGEST), 0.0)
