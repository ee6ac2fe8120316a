"""What single fields of a text look like: numbers, times, words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from penstock.io._time_formats import find_format, is_clock_alone

DATA, TEXT, EMPTY = "data", "text", "empty"

_NUMBER = re.compile(r"[+-]?(\d[\d.,' ]*|[.,]\d+)([eE][+-]?\d+)?\s?%?")
_PLAIN = re.compile(r"[+-]?(\d+(\.\d*|,\d+)?|[.,]\d+)([eE][+-]?\d+)?")
_MISSING = frozenset(("", "nan", "na", "n/a", "#n/a", "null", "none", "<na>", "-", "--", "---", "?", "inf", "-inf"))
_COMMA = re.compile(r"[+-]?[\d.]*\d,\d+([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?[\d,]*\d\.\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([.,'’ \u00a0\u202f])\d{3}(\1\d{3})*([.,]\d+)?")


def kind_of_field(field: str) -> str:
    """DATA for a number or a time, EMPTY for what stands for nothing, TEXT for the rest.

    >>> [kind_of_field(field) for field in ("-1,5e3", "31.12.2024 13:45", "5-Jan-24", "flow", "3rd pump", " NaN ")]
    ['data', 'data', 'data', 'text', 'text', 'empty']
    """
    words = field.strip()
    if words.lower() in _MISSING:
        return EMPTY
    if _NUMBER.fullmatch(words):
        return DATA
    skeleton = re.sub(r"\d+", "0", words.lower())
    return DATA if find_format(skeleton) or is_clock_alone(skeleton) else TEXT


def is_plain_number(field: str) -> bool:
    """Whether this is a number with a decimal point or comma, without blanks, or stands for nothing.

    >>> [is_plain_number(field) for field in ("-1.5e+03", "1,5", "1.", "NaN", "1,", "10:00")]
    [True, True, True, True, False, False]
    """
    return _PLAIN.fullmatch(field) is not None or field.lower() in _MISSING


def uses_decimal_comma(records: Iterable[list[str]]) -> bool:
    """Whether more fields are written with a decimal comma than with a decimal point.

    >>> uses_decimal_comma([["31.12.2024", "1.234,5"], ["1.1.2025", "7"]]), uses_decimal_comma([["1.5", "2"]])
    (True, False)
    """
    fields = [field.strip() for record in records for field in record]
    commas = sum(1 for field in fields if "," in field and _COMMA.fullmatch(field))
    return commas > 0 and commas > sum(1 for field in fields if "." in field and _POINT.fullmatch(field))


def has_decimal_comma(field: str) -> bool:
    return re.fullmatch(r"[+-]?\d+,\d+([eE][+-]?\d+)?", field.strip()) is not None


def thousands_sign(field: str) -> str | None:
    """The sign between groups of three digits, if that is how a number seems to be written.

    >>> thousands_sign("1.234,5"), thousands_sign("12 345"), thousands_sign("1234.5"), thousands_sign("1,5")
    ('.', ' ', None, None)
    """
    found = _THOUSANDS.fullmatch(field.strip())
    return found.group(1) if found else None
