"""Units of measurement in the names of columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    """A column's name without its unit, and the unit ("" if it names none).

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
        if _UNIT.fullmatch(unit) or (pattern is _BRACKETED and unit and not _is_number(unit)):
            return found["name"], unit
    return name, ""


def units_of(names: Sequence[str], units: Sequence[str | None] | None) -> list[str]:
    """The unit of each column: as given, or else as its name says; "" if unknown.

    >>> units_of(["head [m]", "speed"], None), units_of(["head [m]", "speed"], [None, "rpm"])
    (['m', ''], ['', 'rpm'])
    """
    if units is None:
        return [split_unit(name)[1] for name in names]
    return [unit or "" for unit in units]


def in_words(variable: str, operator: str, value: float, unit: str) -> str:
    """A comparison as people write it, the unit once.

    >>> in_words("head [m]", ">", 120.0, "m"), in_words("speed", "<=", 0.25, "")
    ('head > 120 m', 'speed <= 0.25')
    """
    name, named = split_unit(variable)
    shown = name if named == unit else variable
    number = repr(float(value)).removesuffix(".0")
    return f"{shown} {operator} {number} {unit}".rstrip()


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?[\d.,:;\s]+", text) is not None
