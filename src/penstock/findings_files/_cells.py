"""A table as CSV that a spreadsheet opens without harm."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

# A cell that begins so is a formula to a spreadsheet, or hides one: as it is, after blanks or quotes, in full width.
_OBEYED = re.compile(r"""[\t\r\n]|[\s'"]*[=+\-@＝＋－＠]""")
_QUOTED = re.compile(r'[,;\t"\r\n]')  # more than RFC 4180 asks for: some programs part cells at ; or a tab
_EMPTY = '""'  # an empty line would be no line
_UNITS = ("s", "ms", "us", "ns")


def as_csv(frame: pd.DataFrame, *, header: bool = True) -> str:
    r"""A table without its index as RFC 4180 has it: commas, CR LF, quotes where they are needed or a ; or tab is.

    Missing values are empty, time stamps are ISO 8601, numbers read back to the same float. A text that a spreadsheet
    would take for a formula gets a single quote in front, which spreadsheets hide: one that begins with = + - @ (full
    width too, and after blanks and quotes), a tab or a line end. Numbers and times stay as they are. Not covered is a
    program that parts cells at ; or tabs and heeds quotes only where a line begins: tell it that commas part them.

    >>> as_csv(pd.DataFrame({"score": [0.1, float("nan")], "variables": ["=1+1", "flow, head"]}))
    'score,variables\r\n0.1,\'=1+1\r\n,"flow, head"\r\n'
    """
    names = [tuple(_field(str(name)) for name in frame.columns)] if header else []
    lines = zip(*(_cells(frame[name]) for name in frame.columns), strict=True)
    return "".join(f"{','.join(line) or _EMPTY}\r\n" for line in (*names, *lines))


def iso_times(times: pd.DatetimeIndex) -> list[str]:
    """ISO 8601, all with the same precision: seconds, or as many digits as the finest of them needs; "" if missing.

    >>> iso_times(pd.DatetimeIndex(["2024-03-31 01:59", "2024-03-31 03:00"], tz="Europe/Berlin"))
    ['2024-03-31T01:59:00+01:00', '2024-03-31T03:00:00+02:00']
    """
    local = times.tz_localize(None)
    known = local.dropna()
    unit = next((unit for unit in _UNITS if (known == known.as_unit(unit)).all()), "ns")  # type: ignore[arg-type]
    texts = np.datetime_as_string(local.to_numpy(), unit=unit, casting="unsafe").astype(object)  # type: ignore[call-overload]
    if times.tz is not None:
        utc = times.tz_convert("UTC").tz_localize(None)
        which, offsets = pd.factorize(local - utc)
        texts = texts + np.array([_offset(offset) for offset in offsets] + [""], dtype=object)[which]
    return ["" if gone else str(text) for gone, text in zip(times.isna(), texts, strict=True)]


def _offset(offset: pd.Timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def _cells(column: pd.Series) -> list[str]:
    if isinstance(column.dtype, pd.DatetimeTZDtype) or column.dtype.kind == "M":
        return iso_times(pd.DatetimeIndex(column))
    if column.dtype == np.bool_:
        return ["true" if value else "false" for value in column.tolist()]
    missing = column.isna().to_numpy()
    values = column.tolist()
    return ["" if gone else _field(value) for gone, value in zip(missing, values, strict=True)]


def _field(value: Any) -> str:
    if not isinstance(value, str):
        return str(value)
    text = f"'{value}" if _OBEYED.match(value) else value
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED.search(text) else text
