"""Reading CSV the slow way: Python's csv module and `float`, one line at a time."""

from __future__ import annotations

import csv
import math

MISSING = {"", "nan", "-nan", "na", "n/a", "#n/a", "#na", "<na>", "null", "none", "-", "--", "---", "?", "."}


def read_line(line: bytes, delimiter: str, width: int) -> list[float] | None:
    """The numbers of a line, NaN for missing ones; None if it is malformed."""
    try:
        text = line.removesuffix(b"\r").decode()
        fields = next(csv.reader([text], delimiter=delimiter, strict=True)) if '"' in text else text.split(delimiter)
    except (UnicodeDecodeError, csv.Error):
        return None
    if len(fields) != width:
        return None
    numbers = []
    for field in fields:
        spelled = field.replace(",", ".")
        if spelled.strip().lower() in MISSING:
            numbers.append(math.nan)
            continue
        try:
            numbers.append(float(spelled))
        except ValueError:
            return None
        if "_" in spelled or not spelled.isascii() or math.isinf(numbers[-1]):
            return None
    return numbers
