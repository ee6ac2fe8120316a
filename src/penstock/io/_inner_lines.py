"""Find lines inside a text that are no rows: remarks, headers that come again, further tables, and what ends it.

A text whose lines all fit is never searched: see `read_text`, which asks only where lines are too short or too long, or
where a header stands among the rows.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.io._layout import DATA, EMPTY, TEXT, TextLayout, kind_of_field

_REMARKS = ("#", "//", "%%")
_MOST_BELOW = 50  # lines below the table that are taken as remarks


@dataclass
class InnerLines:
    """What the lines of a text are, by their numbers from 0."""

    remarks: list[int] = field(default_factory=list[int])
    headers: list[int] = field(default_factory=list[int])  # that repeat the first
    below: list[int] = field(default_factory=list[int])  # the last row
    tables: list[int] = field(default_factory=list[int])  # the headers of further tables
    misfits: list[int] = field(default_factory=list[int])  # what none of these explains

    @property
    def left_out(self) -> set[int]:
        return {*self.remarks, *self.headers, *self.below}

    @property
    def found(self) -> bool:
        return bool(self.left_out or self.tables)


@dataclass(frozen=True)
class _Line:
    first: int  # of the lines that it takes, as a field in quotes may take several
    last: int
    fields: list[str]
    kinds: list[str]


def find_inner_lines(lines: Sequence[str], layout: TextLayout) -> InnerLines:
    r"""Say what the lines of a text below its header are, where they are no rows of its table.

    >>> from penstock.io._layout import find_layout
    >>> text = "t,a,b\n2024-05-01,1,2\n# stopped\n2024-05-02,3,4\nt,c,d\n2024-05-01,5,6\n\nEnd of report"
    >>> found = find_inner_lines(text.split("\n"), find_layout(text, "plant.csv"))
    >>> found.remarks, found.tables, found.below
    ([2], [4], [7])
    """
    found, width = InnerLines(), layout.width
    records = _records(lines, layout)
    header = [] if layout.names is None else list(layout.names)
    rows = [n for n, each in enumerate(records) if each.kinds[0] == DATA]
    for number, record in enumerate(records):
        fits = len(record.fields) == width
        if record.fields[0].lstrip().startswith(_REMARKS) and (not fits or DATA not in record.kinds):
            found.remarks += range(record.first, record.last + 1)
        elif header and [" ".join(each.split()) for each in record.fields] == header:
            found.headers.append(record.first)
        elif _begins_table(records, number, rows):
            width = len(record.fields)
            header = [" ".join(each.split()) for each in record.fields]
            found.tables.append(record.first)
        elif not fits and rows and number > rows[-1] and record.kinds[0] == TEXT:
            found.below += range(record.first, record.last + 1)
        elif not fits:
            found.misfits.append(record.first)
    if len(found.below) > _MOST_BELOW:
        found.misfits += found.below
        found.below = []
    return found


def _records(lines: Sequence[str], layout: TextLayout) -> list[_Line]:
    """Return the lines below the header that are not blank, cut into fields."""
    reader = csv.reader(
        (line + "\n" for line in lines[layout.lines_above :]), delimiter=layout.separator, skipinitialspace=True
    )
    records, before = [], layout.lines_above
    for fields in reader:
        last = layout.lines_above + reader.line_num
        if "".join(fields).strip():
            kinds = [kind_of_field(each) for each in fields[:100]]
            records.append(_Line(before, last - 1, fields, kinds))
        before = last
    return records


def _begins_table(records: Sequence[_Line], number: int, rows: Sequence[int]) -> bool:
    """Return whether a line names columns, and the next but one or two has numbers or times for most of them."""
    record = records[number]
    names = record.kinds.count(TEXT)
    if DATA in record.kinds or names < 2 or 2 * names < len(record.fields) or not rows or number < rows[0]:
        return False
    for below in records[number + 1 : number + 3]:  # a line of units may be between
        if len(below.fields) == len(record.fields) and below.kinds[0] == DATA:
            return 2 * (below.kinds.count(DATA) + below.kinds.count(EMPTY)) >= len(below.kinds)
    return False
