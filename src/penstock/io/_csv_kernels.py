"""The inner loop of reading CSV: lines → numbers, exactly as Python's `float` reads them, or a note to let it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock._jit import kernel
from penstock._types import FloatArray, IndexArray

NEWLINE, BLANK, QUOTE, PLUS, MINUS, POINT, COMMA = 10, 32, 34, 43, 45, 46, 44
ZERO, NINE, SMALL_E, LARGE_E = 48, 57, 101, 69
# Up to 2⁵³ whole numbers and up to 10²² powers of ten are exact floats, so that one product or quotient of them is
# rounded once, as it should be: what `float` would return.
MOST_DIGITS = 15
LARGEST_POWER = 22
POWERS: FloatArray = np.array([float(f"1e{power}") for power in range(LARGEST_POWER + 1)])


@kernel
def read_exponent(text: NDArray[np.uint8], at: int, stop: int) -> tuple[int, int]:
    """A whole number with or without a sign, and where it ends; no place after `at` if there is none."""
    negative = False
    start = at
    if at < stop and (text[at] == PLUS or text[at] == MINUS):
        negative = text[at] == MINUS
        at += 1
    value = 0
    first = at
    while at < stop and ZERO <= text[at] <= NINE and at - first < 4:
        value = 10 * value + int(text[at]) - ZERO
        at += 1
    if at == first:
        return 0, start
    return (-value if negative else value), at


@kernel
def read_number(
    text: NDArray[np.uint8], start: int, stop: int, point: bool, comma: bool, powers: FloatArray
) -> tuple[float, bool]:
    """A number written plainly, and True; False if it is none, or has too many digits to be rounded only once."""
    at = start
    negative = False
    if at < stop and (text[at] == PLUS or text[at] == MINUS):
        negative = text[at] == MINUS
        at += 1
    mantissa, digits, power, seen, after_point = 0, 0, 0, False, False
    while at < stop:
        sign = text[at]
        if ZERO <= sign <= NINE:
            seen = True
            mantissa = 10 * mantissa + int(sign) - ZERO
            digits += 1 if mantissa > 0 else 0
            power -= 1 if after_point else 0
            if digits > MOST_DIGITS:
                return 0.0, False
        elif ((point and sign == POINT) or (comma and sign == COMMA)) and not after_point:
            after_point = True
        else:
            break
        at += 1
    if seen and at < stop and (text[at] == SMALL_E or text[at] == LARGE_E):
        exponent, end = read_exponent(text, at + 1, stop)
        power += exponent
        at = end if end > at + 1 else at
    if not seen or at < stop or power > LARGEST_POWER or power < -LARGEST_POWER:
        return 0.0, False
    value = float(mantissa) * powers[power] if power >= 0 else float(mantissa) / powers[-power]
    return (-value if negative else value), True


@kernel
def read_lines(
    text: NDArray[np.uint8],
    delimiter: int,
    points: NDArray[np.bool_],
    commas: NDArray[np.bool_],
    columns: IndexArray,
    time: int,
    clock: int,
    powers: FloatArray,
    values: FloatArray,
    plain: NDArray[np.bool_],
    times: IndexArray,
    deferred: IndexArray,
) -> int:
    """Split lines at delimiters, and read the numbers in them. Returns how many fields are left to others.

    points, commas : whether these may stand before decimals, for each column of `values`.
    time, clock : the fields of the time, and of the time of day if that is another; −1 for none.
    columns : for each field of a line, the column of `values` it goes to, or −1. An empty field is NaN.
    values (n, p), plain (n), times (n, 4) : filled in for each line; `plain` is False for a line with quotes, with
        signs beyond ASCII or with another number of fields, of which nothing else is to be used.
    deferred (n·p, 4) : line, column, start and stop of fields that are not plain numbers.
    """
    at, count = 0, 0
    for line in range(len(values)):
        field, count_before, fine = 0, count, True
        while True:
            start = at
            while at < len(text) and text[at] != delimiter and text[at] != NEWLINE:
                fine = fine and text[at] != QUOTE and text[at] < 128
                at += 1
            if field < len(columns) and columns[field] >= 0:
                first, last, column = start, at, columns[field]
                while first < last and text[first] == BLANK:
                    first += 1
                while last > first and text[last - 1] == BLANK:
                    last -= 1
                number, simple = read_number(text, first, last, points[column], commas[column], powers)
                values[line, column] = number if last > first else np.nan
                if not simple and last > first:
                    deferred[count, 0], deferred[count, 1] = line, columns[field]
                    deferred[count, 2], deferred[count, 3] = start, at
                    count += 1
            if field == time:
                times[line, 0], times[line, 1] = start, at
            if field == clock:
                times[line, 2], times[line, 3] = start, at
            field += 1
            at += 1
            if at > len(text) or text[at - 1] == NEWLINE:
                break
        plain[line] = fine and field == len(columns)
        if not plain[line]:
            count = count_before
    return count
