"""Find how a text is laid out, from its first lines: separator, decimal sign, header, units, first row.

Files (`read_table`) and streams (`RowSource`) share this.
"""

from __future__ import annotations

import codecs
import csv
import re
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from penstock._messages import counted, quoted
from penstock.io._time_texts import is_clock_alone, is_time
from penstock.io.table import TableError

SEPARATORS = ("\t", ";", "|", ",")  # of two that fit equally well the first: a comma may be decimal
MOST_COLUMNS = 50_000
HEAD_BYTES = 2**16  # that are enough to learn the layout, if they hold three lines
HEAD_LINES = 200  # are enough, however short
DATA, TEXT, EMPTY = "data", "text", "empty"
_MOST_ABOVE = 20  # lines with dates or numbers above the header
_MOST_UNDER = 2  # lines of text under it: units, and a description

# A number in any way of writing.
BLANKS = " \u00a0\u2007\u2008\u2009\u202f"  # of which any may stand between thousands
NUMBER = re.compile(rf"[+-]?(\d[\d.,'’{BLANKS}]*|[.,]\d+)([eE][+-]?\d+)?\s?%?")
_PLAIN = re.compile(r"[+-]?(\d+(\.\d*|,\d+)?|[.,]\d+)([eE][+-]?\d+)?")
# Words for a reading that is not there, in lower case.
MISSING = frozenset(
    [
        "", "-", "--", "---", "?", ".", "nan", "-nan", "na", "n/a", "#n/a", "#na", "#n/a n/a", "<na>", "null", "none",
        "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "n.a.", "–", "—", "−",
    ]
)  # fmt: skip
_ISO = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?")
_COMMA = re.compile(r"[+-]?[\d.]*\d,\d+([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?[\d,]*\d\.\d+([eE][+-]?\d+)?")
LIMITS = "<>≤≥"  # before a number that was not measured, but is known to be below or above this one
_THOUSANDS = re.compile(rf"[+-]?\d{{1,3}}([.,'’{BLANKS}])\d{{3}}(\1\d{{3}})*([.,]\d+)?")
# The signs and digits of typesetters and of East Asia.
_AS_ASCII = str.maketrans(
    {
        **dict.fromkeys("−–—‒‑‐﹣－", "-"), **dict.fromkeys(BLANKS, " "), **dict.fromkeys("’‘＇", "'"),
        "＋": "+", "．": ".", "，": ",", **{chr(ord("０") + digit): str(digit) for digit in range(10)},
    }
)  # fmt: skip
_SPELLED = re.compile(  # with a limit, in brackets or quotes, or with the sign behind
    rf"(?P<before>[{LIMITS}]=?\s?|\(|=?\"|')?(?P<sign>[+-]?)\s?"
    r"(?P<number>(?:\d{1,3}(?P<group>[ '])\d{3}(?:(?P=group)\d{3})*(?:[.,]\d+)?|\d[\d.,]*|[.,]\d+)(?:[eE][+-]?\d+)?)"
    r"(?P<after>[-)\"]?)"
)
_WRAPPED = {"(": ")", '="': '"', '"': '"'}  # before a number, and behind it


def is_missing(text: str) -> bool:
    """Return whether a text stands for a reading that is not there."""
    return text.strip().lower() in MISSING


@dataclass(frozen=True)
class TextLayout:
    """The layout of a text. `names` has "" for a column without a name, and is None if there is no header."""

    separator: str
    decimal: str
    width: int
    names: tuple[str, ...] | None
    preamble: tuple[str, ...]  # lines above the header
    units: tuple[str, ...]  # a line of units below it
    description: tuple[str, ...]  # a line of longer names below it
    lines_above: int  # how many lines are above the first row
    spaced: bool  # a space follows separators
    rows: int  # how many there are among the lines seen
    has_data: bool  # the first of them holds a number or a time
    stamps: int | None = None  # the column of times that pandas may read, in a plain table: see `stamps_of`


@dataclass(frozen=True)
class _FieldsOfLine:
    fields: list[str]
    last_line: int

    @cached_property
    def filled(self) -> int:
        return sum(map(bool, map(str.strip, self.fields)))


def refuse_foreign(start: bytes, name: str) -> None:
    """Raise if the first bytes are those of another kind of file than a text with separators."""
    for magic, (what, advice) in _FOREIGN.items():
        if start.startswith(magic):
            raise TableError(f"{name} is {what}, not a table. {advice}.")
    for mark, what in _MARKUP.items():
        if start.removeprefix(codecs.BOM_UTF8).lstrip().startswith(mark):
            raise TableError(f"{name} is {what}, not a table. Export it as CSV.")


def is_enough(lines: int, size: int) -> bool:
    """Return whether so many lines and bytes are enough to learn the layout from."""
    return lines >= HEAD_LINES or (lines >= 3 and size >= HEAD_BYTES)


def find_layout(
    text: str, name: str, separator: str | None = None, decimal: str | None = None, *, ragged: bool = False
) -> TextLayout:
    """Learn the layout from the first lines of a text; if `ragged`, single lines may have too many fields.

    >>> layout = find_layout("Report 7\\ntime;flow\\n;m³/h\\n1.5.2024;3,5\\n2.5.2024;4,5\\n", "plant.csv")
    >>> layout.separator, layout.decimal, layout.names, layout.lines_above
    (';', ',', ('time', 'flow'), 3)
    >>> layout.preamble, layout.units
    (('Report 7',), ('', 'm³/h'))
    """
    separator = separator or _likely_separator(text)
    if separator == " ":
        text = single_blanks(text.encode()).decode().strip(" ")
    records = _records(text, separator, name)
    if not records:
        raise TableError(f"{name} holds nothing but blank lines. Export the table again.")
    counts = Counter(len(record.fields) for record in records)
    width = max(counts, key=lambda fields: (counts[fields], fields))  # the most frequent; of several the largest
    if width > MOST_COLUMNS:
        raise TableError(f"{name} has {width:,} columns; {MOST_COLUMNS:,} are the most. Read it in parts.")
    records, remarks = _without_remarks(records, width)
    header, first_row = _find_header(records, width)
    top = first_row if header is None else header
    names, below, rows = None, list[tuple[str, ...]](), records[first_row:]
    if header is not None:
        cleaned = [" ".join(field.split()) for field in records[header].fields[:width]]
        names = (cleaned[0].strip("\ufeff").removeprefix("#").strip(), *cleaned[1:])
        if header and (grouped := _with_groups(names, records[header - 1].fields)) != names:
            names, top = grouped, header - 1
        under = (tuple(record.fields) for record in records[header + 1 : first_row])
        below = sorted(under, key=lambda fields: len("".join(fields)))
    _refuse_odd_widths(name, records, header, first_row, width, ragged)
    return TextLayout(
        separator=separator,
        decimal=decimal or decimal_sign(record.fields for record in rows[:20]),
        width=width,
        names=names,
        preamble=tuple(separator.join(record.fields) for record in [*remarks, *records[:top]]),
        units=below[0] if below else (),
        description=below[1] if below[1:] else (),
        lines_above=max((record.last_line for record in [*remarks, *records[:first_row]]), default=0),
        spaced=separator + " " in text,
        rows=len(rows),
        has_data=bool(rows) and DATA in map(kind_of_field, rows[0].fields),
    )


def stamps_of(head: str, layout: TextLayout) -> int | None:
    """Return the one column of ISO times, if one line of names is above, and the other columns hold numbers.

    >>> text = "time,flow\\n2024-05-01 00:00,3.5\\n"
    >>> stamps_of(text, find_layout(text, "plant.csv"))
    0
    """
    lines = head.split("\n", 2)
    if layout.names is None or layout.lines_above != 1 or len(lines) < 3:
        return None
    row = lines[1].split(layout.separator)
    stamps = [place for place, field in enumerate(row) if _ISO.fullmatch(field)]
    numbers = all(_PLAIN.fullmatch(field) or not field for place, field in enumerate(row) if place not in stamps)
    return stamps[0] if len(stamps) == 1 and numbers else None


def _with_groups(names: tuple[str, ...], above: list[str]) -> tuple[str, ...]:
    """Put the names of groups, each above the first of its columns, before names that come more than once.

    >>> _with_groups(("Time", "Power", "Flow", "Power", "Flow"), ["", "Unit 1", "", "Unit 2", ""])
    ('Time', 'Unit 1 Power', 'Unit 1 Flow', 'Unit 2 Power', 'Unit 2 Flow')
    """
    times, group, found = Counter(names), "", []
    for name, cell in zip(names, [*above, *[""] * len(names)], strict=False):
        group = " ".join(cell.split()) or group
        found.append(f"{group} {name}" if name and group and times[name] > 1 else name)
    return tuple(found)


def single_blanks(text: bytes) -> bytes:
    """Return text with one blank for each run of blanks and tabs, and none around line ends.

    >>> single_blanks(b" 1  2\\t 3 \\n4 5")
    b' 1 2 3\\n4 5'
    """
    return re.sub(rb" ?\n ?", b"\n", re.sub(rb"[ \t]+", b" ", text))


def _likely_separator(text: str) -> str:
    """Return the separator that cuts the most lines into the same number of fields."""
    lines = [line for line in re.sub(r'"[^"]*"', "…", text).split("\n") if line.strip()]
    best, best_share = ",", 0.0
    for separator in SEPARATORS:
        counts = Counter(line.count(separator) for line in lines)
        counts.pop(0, None)
        share = max(counts.values(), default=0) / max(1, len(lines))
        if share > best_share:
            best, best_share = separator, share
    return " " if _blanks_fit_better(lines, best if best_share else "") else best


def _blanks_fit_better(lines: list[str], best: str) -> bool:
    """Return whether blanks cut lines into as many fields: all lines, and into numbers, if another separator fits too.

    A number with a blank between thousands is one column.
    """
    cut = [line.split() for line in lines]
    (width, count), *_ = Counter(map(len, cut)).most_common(1) or [(0, 0)]
    if width < 2 or (count < len(lines) if best else 2 * count <= len(lines)):
        return False
    rows = [fields for fields in cut[1:] or cut if len(fields) == width]
    cells = [cell for line in lines[1:] or lines for cell in (line.split(best) if best else [line])]
    thousands = [thousands_sign(cell) == " " for cell in cells]
    if any(thousands) if best else all(thousands):
        return False
    if best:
        fields = [field for row in rows for field in row]
        return best in "\t," and all(_PLAIN.fullmatch(each) or kind_of_field(each) == EMPTY for each in fields)
    kinds = [kind_of_field(field) for fields in rows for field in fields]
    return 2 * kinds.count(DATA) >= len(kinds)


def _records(text: str, separator: str, name: str) -> list[_FieldsOfLine]:
    lines = text.split("\n")
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator, skipinitialspace=True)
    try:
        records = [_FieldsOfLine(fields, reader.line_num) for fields in reader]
    except csv.Error as error:
        raise TableError(
            f"{name} cannot be cut into fields at line {reader.line_num:,}: {error}. Correct it."
        ) from None
    return [record for record in records if len(record.fields) > 1 or record.filled]


def _without_remarks(records: list[_FieldsOfLine], width: int) -> tuple[list[_FieldsOfLine], list[_FieldsOfLine]]:
    """Separate lines that begin with #, as InfluxDB and Ignition write them above the rows, if others name columns.

    Of Ignition the line of types, below #TYPES, is one too.
    """

    def is_remark(number: int) -> bool:
        return records[number].fields[0].startswith("#") or (number > 0 and records[number - 1].fields[0] == "#TYPES")

    rows = (n for n, each in enumerate(records) if not is_remark(n) and DATA in map(kind_of_field, each.fields))
    top = range(next(rows, 0))
    if not any(2 * records[number].filled > width and not is_remark(number) for number in top):
        return records, []
    kept = [each for number, each in enumerate(records) if number not in top or not is_remark(number)]
    return kept, [records[number] for number in top if is_remark(number)]


def _find_header(records: list[_FieldsOfLine], width: int) -> tuple[int | None, int]:
    """Return the numbers of the header (None without one) and of the first row.

    Above the first record that has numbers or times there is the header, if any, and below it maybe a line of units,
    and one that describes the columns.
    """
    fitting = [number for number in range(len(records)) if _fits(records, number, width)]
    usual = max(record.filled for record in records)
    texts = list[int]()
    for number in fitting:
        if DATA not in map(kind_of_field, records[number].fields):
            texts.append(number)
        elif not _is_above(records, number, [each for each in fitting if each > number], usual):
            break
    filled = [number for number in texts if 2 * records[number].filled > usual]
    if not filled:  # names above every second or third column, as with a time and a status beside each tag
        filled = [number for number in texts if 3 * records[number].filled >= usual > 2]
    if not filled:
        first = next((number for number in fitting if number not in texts), fitting[0])
        return (first, first + 1) if _names_data(records, first, fitting[0]) else (None, first)
    header = max(filled, key=lambda number: (records[number].filled, _are_different(records[number]), -number))
    first_row = texts[-1] + 1
    below = range(header + 1, first_row)
    are_units = len(below) <= _MOST_UNDER and all(_is_units(records, number, first_row) for number in below)
    return header, first_row if are_units else header + 1


def _is_above(records: list[_FieldsOfLine], number: int, below: list[int], usual: int) -> bool:
    """Return whether a line with a number or a date stands above the header: few of its fields are filled, and a line
    of names comes within the next ones. Or it is full, but can be no header: a name comes twice, or more than two full
    lines of text follow, as loggers write their model, names, units and kinds of value."""
    if 2 * records[number].filled >= usual:
        under = list(takewhile(lambda each: DATA not in map(kind_of_field, records[each].fields), below))
        no_header = not _are_different(records[number]) or len(under) > _MOST_UNDER
        named = bool(under) and records[under[0]].filled >= records[number].filled and _are_different(records[under[0]])
        return no_header and named and TEXT in map(kind_of_field, records[number].fields)
    near = (records[each] for each in below[:_MOST_ABOVE])
    return any(
        2 * record.filled > usual and DATA not in map(kind_of_field, record.fields) and _are_different(record)
        for record in near
    )


def _are_different(record: _FieldsOfLine) -> bool:
    names = [field.strip() for field in record.fields if field.strip()]
    return len(set(names)) == len(names)


def _fits(records: list[_FieldsOfLine], number: int, width: int) -> bool:
    """Return whether a record has a field for each column; a further separator at the end, here or below, is fine."""
    fields = records[number].fields
    if len(fields) == width - 1 and number + 1 < len(records):
        below = [record.fields for record in records[number + 1 :] if len(record.fields) == width]
        return bool(below) and not any(others[-1].strip() for others in below)
    return len(fields) == width or (len(fields) == width + 1 and not fields[-1].strip())


def _names_data(records: list[_FieldsOfLine], number: int, top: int) -> bool:
    """Return whether a record with numbers is a header all the same: text above numbers or times, or 0, 1, 2, …"""
    fields = records[number].fields
    kinds = [kind_of_field(field) for field in fields]
    for record in records[number + 1 : number + 6]:
        pairs = zip(kinds, record.fields, strict=False)
        if any(kind == TEXT and kind_of_field(field) == DATA for kind, field in pairs):
            return True
    numbers = [field.strip() for field, kind in zip(fields, kinds, strict=True) if kind != EMPTY]
    upwards = [[str(start + number) for number in range(len(numbers))] for start in (0, 1)]
    return number == top == 0 and len(numbers) > 1 and numbers in upwards


def _is_units(records: list[_FieldsOfLine], number: int, first_row: int) -> bool:
    """Return whether a line below the header is text above numbers, as units are."""
    if first_row >= len(records) or not records[number].filled or _is_date_line(records[number]):
        return False
    upper = [kind_of_field(field) for field in records[number].fields]
    lower = [kind_of_field(field) for field in records[first_row].fields]
    above_numbers = sum(u == TEXT and v == DATA for u, v in zip(upper, lower, strict=False))
    return 2 * above_numbers >= upper.count(TEXT) > 0


def _is_date_line(record: _FieldsOfLine) -> bool:
    """Return whether a line holds a date alone, such as "Date: 5.3.2024": that of the rows below."""
    return record.filled == 1 and is_time(re.sub(r"^[^\W\d]+\s?[:=]\s?", "", record.fields[0].strip()))


def _refuse_odd_widths(
    name: str, records: list[_FieldsOfLine], header: int | None, first_row: int, width: int, ragged: bool
) -> None:
    """Raise for what would be misread: a header that does not fit its rows, and a first row that is too long.

    Other rows are checked when all are read.
    """
    wrong: tuple[_FieldsOfLine, str] | None = None
    if header is None and first_row and width != len(records[first_row - 1].fields) > 1:
        wrong = records[first_row - 1], "the lines below have"
    elif not ragged and any(len(record.fields) > width for record in records[first_row : first_row + 1]):
        wrong = records[first_row], "other lines have" if header is None else "the header names"
    if wrong is not None:
        record, others = wrong
        raise TableError(
            f"{name}, line {record.last_line:,} has {counted(len(record.fields), 'field')}, but {others} {width:,}: it "
            f"begins {quoted(record.fields[0])}. Give every line as many fields as there are columns."
        )


def kind_of_field(field: str) -> str:
    """Return DATA for a number or a time, EMPTY for a missing value, TEXT for the rest.

    >>> [kind_of_field(field) for field in ("-1,5e3", "31.12.2024 13:45", "5-Jan-24", "flow", "3rd pump", " NaN ")]
    ['data', 'data', 'data', 'text', 'text', 'empty']
    """
    words = field.strip()
    if words.lower() in MISSING or words.lower() in ("inf", "-inf"):
        return EMPTY
    return DATA if NUMBER.fullmatch(plain_number(words)) or is_time(words) or is_clock_alone(words) else TEXT


def decimal_sign(records: Iterable[list[str]]) -> str:
    """Return a comma if more fields are written with a decimal comma than with a decimal point.

    >>> decimal_sign([["31.12.2024", "1.234,5"], ["1.1.2025", "7"]]), decimal_sign([["1.5", "2"]])
    (',', '.')
    """
    fields = [field for record in records for field in record]
    commas = sum(1 for field in fields if "," in field and _COMMA.fullmatch(plain_number(field)))
    if not commas:
        return "."
    points = sum(1 for field in fields if "." in field and _POINT.fullmatch(plain_number(field)))
    return "," if commas > points else "."


def has_decimal_comma(field: str) -> bool:
    return re.fullmatch(r"[+-]?\d+,\d+([eE][+-]?\d+)?", field.strip()) is not None


_WITH_UNIT = re.compile(
    rf"(?:[{LIMITS}]=?\s?)?[+-]?\s?(?:\d[\d.,]*|[.,]\d+)(?:[eE][+-]?\d+)?"
    r"(?P<unit>\s?[^\d\s.,+*?#()\"-](?:\D|(?<=[^\W\d_])[23](?!\d)){0,11})"  # such as m3/h
)


def unit_in_cells(texts: Sequence[str]) -> str:
    """Return what stands after the numbers in these texts, with the blank before it; "" if that differs.

    Up to half of them may be numbers alone, but where others are per cent: 0.5 may be 50 %. What stands behind fewer is
    no unit, but says how good these are.

    >>> unit_in_cells(["695.1 kW", "−3 kW", "7"]), unit_in_cells(["43.4%", "7%"]), unit_in_cells(["1 a", "2", "3"])
    (' kW', '%', '')
    """
    found = Counter[str]()
    for text in texts:
        plain = text.translate(_AS_ASCII)
        match = _WITH_UNIT.fullmatch(plain)
        if match is None and not _SPELLED.fullmatch(plain):
            return ""
        found[text[match.start("unit") :] if match is not None else ""] += 1
    alone = found.pop("", 0)
    unit = next(iter(found), "")
    return unit if len(found) == 1 and alone <= found[unit] and not (alone and "%" in unit) else ""


def thousands_sign(field: str) -> str | None:
    """Return the sign between groups of three digits, if a number seems to be written so.

    >>> thousands_sign("1.234,5"), thousands_sign("12 345"), thousands_sign("1234.5"), thousands_sign("1,5")
    ('.', ' ', None, None)
    """
    found = _THOUSANDS.fullmatch(field.strip())
    return found.group(1) if found else None


def plain_number(field: str) -> str:
    """Return a number as most write it, where it can mean nothing else; any other text as it is.

    Blanks and apostrophes between thousands are left out, and so is the sign before a limit: <0.1 is read as 0.1.

    >>> [plain_number(field) for field in ("1 234,5", "12’345", "−3.5", "(3.5)", "3.5-", "<0.1", '="7"', "12 34")]
    ['1234,5', '12345', '-3.5', '-3.5', '-3.5', '0.1', '7', '12 34']
    """
    text = field.strip()
    if _PLAIN.fullmatch(text) and text.isascii():
        return text
    found = _SPELLED.fullmatch(text.translate(_AS_ASCII))
    if found is None:
        return field
    before, sign, after = found["before"] or "", found["sign"], found["after"]
    negative = before == "(" or after == "-"
    if (negative and sign) or (after != "-" and after != _WRAPPED.get(before, "")) or (after == "-" and before):
        return field
    return ("-" if negative else sign) + found["number"].replace(found["group"] or " ", "")


GZIP, PARQUET, ZIPPED = "gzip", "parquet", "zipped"
_KINDS = {b"\x1f\x8b": GZIP, b"PAR1": PARQUET, b"PK\x03\x04": ZIPPED}
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": ("an old Excel file", "Save it as .xlsx or CSV"),
    b"%PDF": ("a PDF", "Export the table as CSV"),
    b"BZh": ("packed with bzip2", "Unpack it, or pack it with gzip"),
    b"\xfd7zXZ": ("packed with xz", "Unpack it, or pack it with gzip"),
    b"\x28\xb5\x2f\xfd": ("packed with zstd", "Unpack it, or pack it with gzip"),
    b"7z\xbc\xaf": ("a 7z archive", "Unpack it"),
    b"PK": ("a damaged or empty zip archive", "Export it again"),
    b"\x1f\x8b": ("packed twice", "Unpack it once"),
    b"PAR1": ("a packed Parquet file", "Unpack it"),
    b"SQLite format 3": ("a database", "Read it as sql:sqlite:/// and its path"),
    b"\x89HDF": ("an HDF5 file", "Export the table as CSV or Parquet"),
    b"ARROW1": ("an Arrow file", "Save it as Parquet"),
    b"\x93NUMPY": ("a NumPy file", "Pass numpy.load(path) instead of the path"),
    b"\x89PNG": ("a picture", "Export the table as CSV"),
    b"\xff\xd8\xff": ("a picture", "Export the table as CSV"),
}
_MARKUP = {b"<": "HTML or XML", b"{": "JSON", b"[{": "JSON", b"[[": "JSON"}
_TEXT_CONTROLS = bytes(sorted({*range(32)} - {9, 10, 12, 13, 26}))  # 26 ends files that come from DOS


def kind_of_file(path: Path) -> str:
    """Return GZIP, PARQUET, ZIPPED or TEXT; raise for what is not a readable file."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise TableError(f"{path} is not a file that can be read from its start. Save the table to a plain file.")
    with path.open("rb") as file:
        start = file.read(16)
    return next((kind for magic, kind in _KINDS.items() if start.startswith(magic)), TEXT)


def refuse_binary(start: bytes, name: str) -> None:
    """Raise if the first bytes of a text, as UTF-8, hold more control characters than a text would."""
    controls = len(start) - len(start.translate(None, _TEXT_CONTROLS))
    if controls > max(2, len(start) // 100):
        raise TableError(
            f"{name} is a binary file ({controls} control characters in its first {len(start):,} bytes), not a table. "
            f"Export the table as CSV."
        )


# Lines inside a text that are no rows: remarks, headers that come again, further tables, and what ends it. A text whose
# lines all fit is never searched: see `read_text`.

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
class _InnerLine:
    first: int  # of the lines that it takes, as a field in quotes may take several
    last: int
    fields: list[str]
    kinds: list[str]


def find_inner_lines(lines: Sequence[str], layout: TextLayout) -> InnerLines:
    r"""Say what the lines of a text below its header are, where they are no rows of its table.

    >>> text = "t,a,b\n2024-05-01,1,2\n# stopped\n2024-05-02,3,4\nt,c,d\n2024-05-01,5,6\n\nEnd of report"
    >>> found = find_inner_lines(text.split("\n"), find_layout(text, "plant.csv"))
    >>> found.remarks, found.tables, found.below
    ([2], [4], [7])
    """
    found, width = InnerLines(), layout.width
    records = _inner_records(lines, layout)
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


def _inner_records(lines: Sequence[str], layout: TextLayout) -> list[_InnerLine]:
    """Return the lines below the header that are not blank, cut into fields."""
    reader = csv.reader(
        (line + "\n" for line in lines[layout.lines_above :]), delimiter=layout.separator, skipinitialspace=True
    )
    records, before = [], layout.lines_above
    for fields in reader:
        last = layout.lines_above + reader.line_num
        if "".join(fields).strip():
            kinds = [kind_of_field(each) for each in fields[:100]]
            records.append(_InnerLine(before, last - 1, fields, kinds))
        before = last
    return records


def _begins_table(records: Sequence[_InnerLine], number: int, rows: Sequence[int]) -> bool:
    """Return whether a line names columns, and the next but one or two has numbers or times for most of them."""
    record = records[number]
    names = record.kinds.count(TEXT)
    if DATA in record.kinds or names < 2 or 2 * names < len(record.fields) or not rows or number < rows[0]:
        return False
    for below in records[number + 1 : number + 3]:  # a line of units may be between
        if len(below.fields) == len(record.fields) and below.kinds[0] == DATA:
            return 2 * (below.kinds.count(DATA) + below.kinds.count(EMPTY)) >= len(below.kinds)
    return False
