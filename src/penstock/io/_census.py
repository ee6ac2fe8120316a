"""Does every line have as many fields as the table has columns? pandas fills up short lines without a word."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

import numpy as np

from penstock._messages import counted, quoted
from penstock.io._errors import TableError

_NEWLINE, _QUOTE = 10, 34


def all_lines_fit(chunks: Iterable[bytes], separator: str, width: int) -> bool:
    """Whether every line that is not blank has `width` fields. False alarms are possible, where quotes are astray.

    >>> all_lines_fit([b'1,"2,5"\\n3,', b'4\\n\\n5,6'], ",", width=2), all_lines_fit([b"1,2\\n3\\n"], ",", width=2)
    (True, False)
    """
    inside, separators, length = 0, 0, 0  # of the line that the last chunk ended in
    for chunk in chunks:
        signs = np.frombuffer(chunk, dtype=np.uint8)
        ends, cuts = signs == _NEWLINE, signs == ord(separator)
        if inside or _QUOTE in chunk:
            within = np.bitwise_xor.accumulate((signs == _QUOTE).view(np.uint8)) ^ inside
            ends, cuts = ends & (within == 0), cuts & (within == 0)
            inside = int(within[-1])
        stops = np.flatnonzero(ends)
        before = np.searchsorted(np.flatnonzero(cuts), stops)
        counts = np.diff(before, prepend=0)
        lengths = np.diff(stops, prepend=-1) - 1
        if len(stops):
            counts[0] += separators
            lengths[0] += length
            separators, length = 0, 0
        if ((counts != width - 1) & (lengths > 0)).any():
            return False
        separators += int(np.count_nonzero(cuts)) - (int(before[-1]) if len(stops) else 0)
        length += len(chunk) - 1 - (int(stops[-1]) if len(stops) else -1)
    return length == 0 or separators == width - 1


def refuse_ragged(chunks: Iterable[bytes], separator: str, width: int, name: str, lines_above: int) -> None:
    """Read all lines again, slowly, and raise at the first that has not `width` fields."""
    reader = csv.reader(_lines(chunks), delimiter=separator)
    try:
        for fields in reader:
            if len(fields) == width or (len(fields) <= 1 and not "".join(fields).strip()):
                continue
            raise TableError(
                f"{name}, line {lines_above + reader.line_num:,} has {counted(len(fields), 'field')} where the table "
                f"has {width:,} columns: it begins {quoted(separator.join(fields[:4]))}. Mend or remove this line."
            )
    except csv.Error as error:
        raise TableError(
            f"{name} cannot be cut into fields at line {lines_above + reader.line_num:,}: {error}. Mend or remove it."
        ) from None


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            yield line.decode(errors="replace") + "\n"
    if rest:
        yield rest.decode(errors="replace")
