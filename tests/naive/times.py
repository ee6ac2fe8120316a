"""Reading time stamps the slow way: `datetime.strptime` with one format, one text at a time."""

from __future__ import annotations

from datetime import UTC, datetime

DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%b-%Y", "%d.%m.%y", "%b %d, %Y", "%Y%m%d")
CLOCKS = (
    "", " %H", "T%H", " %H:%M", " %H:%M:%S", "T%H:%M:%S", " %H:%M:%S.%f", " %I:%M:%S %p", " %H:%M:%S%z",
    "T%H:%M:%S.%f%z",
)  # fmt: skip


def read_stamp(text: str, form: str) -> datetime | None:
    """The time that a text stands for, in UTC where it has an offset, without a zone; None if there is none."""
    try:
        stamp = datetime.strptime(text, form)
    except ValueError:
        return None
    return stamp.astimezone(UTC).replace(tzinfo=None) if stamp.tzinfo else stamp
