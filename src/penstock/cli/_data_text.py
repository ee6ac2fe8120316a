"""Write what was understood of the data as text: all of it for `penstock look`, its first lines for `detect`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

import penstock
from penstock._messages import counted, duration_in_words, quoted
from penstock.cli._console import print_text, printable
from penstock.detection import DataSummary, TagSummary
from penstock.io import Note
from penstock.report import as_json, plain
from penstock.report.words import NO_NUMBER, covered_in_words, number, percent, step_in_words

_WIDTH = 100  # characters of a line in a pipe
_MOST_OF_A_ROLE, _MOST_DOUBTS = 12, 3
_LONGEST_NAME, _SHORTEST_NAME, _LONGEST_UNIT = 60, 16, 10
_PLURALS = {"quality": "quality", "text": "text", "empty": "empty columns"}
_HEADINGS = ("unit", "every", "5 to 95 %", "lowest", "highest", "missing", "bad")
SAID = (
    "gaps",
    "joined files",
    "aligned",
    "roles",
    "drivers by name",
    "left out columns",
)  # kinds of notes that `data_lines` has


def doubt_lines(doubts: Sequence[Note]) -> list[str]:
    """Return what was read without confidence, the worst first."""
    more = len(doubts) - _MOST_DOUBTS
    rest = [f"Check first: {counted(more, 'more doubt')}, which penstock look lists."] if more > 0 else []
    return [*(f"Check first: {note}" for note in doubts[:_MOST_DOUBTS]), *rest]


def data_lines(data: DataSummary) -> list[str]:
    """Return the lines that matter most: doubts, time and step, tags by role, and what was left out."""
    time = "Time: none was found (--time names its column)."
    if data.time is not None:
        zone = "no zone" if data.time.zone is None else f"zone {data.time.zone}"
        step = "" if math.isnan(data.time.step) else f"; a row every {duration_in_words(data.time.step)}"
        time = f"Time: {quoted(data.time.column)}, {data.time.how}, {zone}{step}."
    by_kind = {kind: [note.message for note in data.notes if note.kind == kind] for kind in SAID}
    of_time = " ".join([time, *by_kind.pop("gaps")])
    return [*doubt_lines(data.doubts), of_time, *(message for messages in by_kind.values() for message in messages)]


def print_data(data: DataSummary, *, json: bool, everything: bool) -> None:
    """Print all that is known: as JSON, or as text."""
    if json:
        print_text(as_json({"penstock": penstock.__version__, **plain(data)}, indent=2, ensure_ascii=True))
    else:
        print_text("\n".join(text_lines(data, everything)))


def text_lines(data: DataSummary, everything: bool = False) -> list[str]:
    """Return all that is known as lines of at most 100 characters."""
    lines = [line for section in _sections_before(data) for line in _section_lines(*section)]
    most = len(data.tags) if everything else _MOST_OF_A_ROLE
    shown: dict[str, list[TagSummary]] = {}
    for role in data.roles:
        tags = [tag for tag in data.tags if tag.role == role]
        if len(tags) > most:  # first those that there is something to know about
            tags = sorted(tags, key=lambda tag: tag.grade, reverse=True)[:most]
        shown[role] = tags
    cells = {tag.name: _cells(tag, data) for tags in shown.values() for tag in tags}
    widths = _widths(list(cells.values()))
    for role, tags in shown.items():
        plural = _PLURALS.get(role, f"{role}s")
        heading = f"{plural[0].upper()}{plural[1:]} ({data.roles[role]:,})"
        lines.append(_line((heading, *_HEADINGS), widths, indent=""))
        for tag in tags:
            lines += [_line(cells[tag.name], widths), *_wrapped(_below(tag, data), "      ")]
        more = data.roles[role] - len(tags)
        lines += [*([f"  … and {more:,} more (--all)"] if more else []), ""]
    lines += [line for section in _sections_after(data, everything) for line in _section_lines(*section)]
    return [printable(line) for line in lines[:-1]]


def _section_lines(heading: str, texts: Sequence[str]) -> list[str]:
    return [*_wrapped(heading, ""), *(line for text in texts for line in _wrapped(text, "  ")), ""]


def _cells(tag: TagSummary, data: DataSummary) -> tuple[str, ...]:
    """Return the name of a tag, and what stands below `_HEADINGS`."""
    usual = f"{number(tag.usual_low)} to {number(tag.usual_high)}"
    ends = number(tag.low), number(tag.high)
    if math.isnan(tag.low):
        usual = counted(tag.kinds, "kind") if tag.kinds else NO_NUMBER
        ends = ("", "")
    every = "" if math.isnan(tag.interval) else duration_in_words(tag.interval)
    missing = "" if not tag.share_missing else percent(tag.share_missing)
    bad = f"{tag.bad:,}" if tag.bad else ""
    if tag.bad is None and any(each.bad is not None for each in data.tags):
        bad = "?"
    return (short(tag.name), short(tag.unit, _LONGEST_UNIT), every, usual, *ends, missing, bad)


def _below(tag: TagSummary, data: DataSummary) -> str:
    """Return what stands below the line of a tag: when it was read, and why it is doubtful."""
    reasons = " ".join(tag.reasons) if tag.grade == "C" and tag.use != "left out" else ""
    return "; ".join(filter(None, (covered_in_words(tag, data.time, plain_time), reasons)))


def _sections_before(data: DataSummary) -> Iterator[tuple[str, list[str]]]:
    if data.doubts:
        yield "Check first:", [f"! {note}" for note in data.doubts]
    yield f"{data.source}: {counted(data.rows, 'row')}, {counted(len(data.tags), 'tag')}.", []
    if data.time is None:
        yield "Time: none was found (--time names its column).", []
    else:
        span = f"{plain_time(data.time.first)} to {plain_time(data.time.last)}"
        lasting = duration_in_words((data.time.last - data.time.first).total_seconds())
        zone = "without a zone: as the plant's clock showed it" if data.time.zone is None else f"zone {data.time.zone}"
        step = step_in_words(data.time, plain_time)
        about = [f"{span} ({lasting}), {zone}.", f"{step[0].upper()}{step[1:]}."]
        about += [note.message for note in data.notes if note.kind in ("order", "duplicate times")]
        yield f"Time: column {quoted(data.time.column)}, {data.time.how}.", about
    yield "What is done with it:", list(data.plan)


def _sections_after(data: DataSummary, everything: bool) -> Iterator[tuple[str, list[str]]]:
    if data.left_out:
        most = len(data.left_out) if everything else _MOST_OF_A_ROLE
        texts = [f"{short(each.name)}: {each.reason}" for each in data.left_out[:most]]
        more = len(data.left_out) - most
        yield f"Left out ({len(data.left_out):,}):", [*texts, *([f"… and {more:,} more (--all)"] if more > 0 else [])]
    others = [note.message for note in data.other_notes if note.kind not in ("order", "duplicate times")]
    if others:
        yield "Also noted:", others


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column, that of the names such that a line fits; 0 for what no tag has."""
    longest = [max((len(row[place]) for row in rows), default=0) for place in range(len(_HEADINGS) + 1)]
    others = [max(len(heading), most) if most else 0 for heading, most in zip(_HEADINGS, longest[1:], strict=True)]
    room = _WIDTH - len("  ") - sum(width + 2 for width in others if width)
    return [max(_SHORTEST_NAME, min(longest[0], room)), *others]


def _line(cells: Sequence[str], widths: Sequence[int], indent: str = "  ") -> str:
    room = widths[0] + 2 - len(indent)
    shown = [f"{indent}{short(cells[0], room):{room}}"]
    for heading, text, width in zip(_HEADINGS, cells[1:], widths[1:], strict=True):
        if width:
            shown.append(text.ljust(width) if heading == "unit" else text.rjust(width))
    return "  ".join(shown).rstrip()


def _wrapped(text: str, indent: str) -> list[str]:
    """Return a text as lines that fit, none for an empty one."""
    import textwrap

    further = f"{indent}  " if indent else ""
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=further, break_on_hyphens=False)


def short(text: str, most: int = _LONGEST_NAME) -> str:
    """Return a text cut to so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def plain_time(moment: Any) -> str:
    """Return a time without its zone, and without seconds where there are none.

    >>> plain_time(pd.Timestamp("2024-05-01 10:00+02:00")), plain_time(pd.Timestamp("2024-05-01 10:00:05.25"))
    ('2024-05-01 10:00', '2024-05-01 10:00:05')
    """
    if not isinstance(moment, pd.Timestamp):
        return f"{moment}"
    local = moment.tz_localize(None)
    return local.isoformat(sep=" ", timespec="minutes" if local == local.floor("min") else "seconds")
