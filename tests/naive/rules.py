"""Rules about rows, one row after the other: True, False, or None for unknown.

A rule is a nested tuple: ("and", a, b, …), ("or", a, b, …), ("not", a), ("missing", column) or
("compare", first, sign, second, sign, third, …) with operands ("column", name) and ("value", value).
"""

from __future__ import annotations


def truth(rule, row):
    """Kleene's strong logic by its definition: unknown if both answers are possible."""
    kind, *parts = rule
    if kind == "not":
        inner = truth(parts[0], row)
        return None if inner is None else not inner
    if kind == "missing":
        return is_missing(row[parts[0]])
    found = chain(parts, row) if kind == "compare" else [truth(part, row) for part in parts]
    decisive = kind == "or"
    if any(answer is decisive for answer in found):
        return decisive
    return None if None in found else not decisive


def chain(parts, row):
    values = [row[value] if kind == "column" else value for kind, value in parts[::2]]
    return [compare(left, sign, right) for left, sign, right in zip(values, parts[1::2], values[1:], strict=False)]


def compare(left, sign, right):
    if is_missing(left) or is_missing(right):
        return None
    return {
        "==": left == right,
        "!=": left != right,
        "<": not isinstance(left, str) and left < right,
        ">": not isinstance(left, str) and left > right,
        "<=": not isinstance(left, str) and left <= right,
        ">=": not isinstance(left, str) and left >= right,
    }[sign]


def is_missing(value):
    return value is None or value != value  # noqa: PLR0124 - as only NaN is
