"""Write findings as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from penstock._messages import counted
from penstock.certainty import about_figure
from penstock.cli._console import printable
from penstock.cli._data_text import SAID, data_lines, plain_time, short
from penstock.detection import NO_LONGER_FITS, Findings
from penstock.explain import NEW_STATE, NORMAL
from penstock.io import Note
from penstock.report.words import SOURCES, agreement_in_words, by_chance, findings_in_words, how_long, how_sure

_MOST_INCIDENTS, _MOST_EVENTS, _MOST_DAYS, _MOST_NOTES = 10, 10, 7, 20
_MOST_STRETCHES, _MOST_CIRCUMSTANCES = 5, 2
_MOST_BESIDE_INCIDENTS = 5  # events, where incidents are listed before them
_METHOD = "method"  # the kind of the note on the method
_NAMED = 3  # variables of an event


def summary_lines(findings: Findings, files: Sequence[Path], warnings: Sequence[str] = ()) -> list[str]:
    """Return lines: verdict, rows, data, method, incidents, findings, events, days, labels, notes, files.

    What was understood of the data comes before the incidents, with what was read without confidence first of all.
    """
    fits = [str(note) for note in findings.notes if note.kind == NO_LONGER_FITS]
    lines = [
        findings.verdict.sentence,
        *fits,
        *_hidden_faults(findings),
        _rows(findings),
        *data_lines(findings.data),
        *method_lines(findings.notes),
    ]
    lines += [*_incident_lines(findings), *_stretch_lines(findings)]
    unusual = not findings.assessment.by_sensor or len(findings.incidents)
    if unusual:
        trained = int(findings.rows.fitted.sum())
        if 0 < trained < int(findings.rows.scored.sum()):
            lines.append(f"Fitted to {counted(trained, 'row')}; findings are among the others.")
        lines += [findings_in_words(findings), *_event_lines(findings)]
    days = findings.rows.days
    if len(days) and unusual:
        texts = [f"{str(day)[:10]} ({count:,})" for day, count in zip(days.index, days["rows"], strict=True)]
        lines += ["", f"Event days (findings): {', '.join(_first(texts, _MOST_DAYS))}"]
    others = [note for note in findings.notes if note.kind not in (*SAID, NO_LONGER_FITS) and not note.doubt]
    if findings.assessment.agreement is not None:
        lines += ["", agreement_in_words(findings.assessment.agreement)]
    lines += note_lines(others, warnings)
    if files:
        lines += ["", *(f"Written: {path}" for path in files)]
    return [printable(line) for line in lines]


def _hidden_faults(findings: Findings) -> list[str]:
    """Return what "nothing stands out" does not say of a table that was scored by itself."""
    if findings.verdict.kind != "nothing" or not findings.assessment.self_scored:
        return []
    return [
        "A fault that lasts for most of the record looks usual: a period known to be good shows it (--train-until)."
    ]


def method_lines(notes: Sequence[Note]) -> list[str]:
    """Return which method was chosen for this table, and why; nothing if the user chose one."""
    return [str(note) for note in notes if note.kind == _METHOD]


def note_lines(notes: Sequence[Note], warnings: Sequence[str] = ()) -> list[str]:
    """Return lines on what was changed, left out or is odd; none if nothing is."""
    texts = [*(str(note) for note in notes if note.kind != _METHOD), *warnings]
    return ["", "Worth knowing:", *(f"  {text}" for text in _first(texts, _MOST_NOTES))] if texts else []


def _rows(findings: Findings) -> str:
    time = findings.table.time
    rows = len(findings.scores)
    scored = int(findings.rows.scored.sum())
    span = "" if time is None else f" from {plain_time(time.min())} to {plain_time(time.max())}"
    some = "all" if scored == rows else f"{scored:,}"
    how = f"{some} scored by {findings.assessment.method} with {counted(len(findings.inputs.names), 'input')}"
    return f"{findings.table.source}: {counted(rows, 'row')}{span}, {how}."


def _incident_lines(findings: Findings) -> Iterator[str]:
    """Yield the most severe incidents: when, how sure, where to look first, what moved first, sensor or machine."""
    incidents = findings.incident_table
    if not len(incidents):
        return
    yield ""
    yield "Incidents, the most severe first:"
    for incident in incidents.sort_values("rank").head(_MOST_INCIDENTS).reset_index().to_dict("records"):
        chance = by_chance(incident["expected_by_chance"])
        word = how_sure(incident["expected_by_chance"], incident["kind"], incident["known"])
        sure = f"{word} ({chance})" if chance else word.replace("not known", "how sure is not known")
        group = f"{short(str(incident['group']))}, " if "group" in incident else ""
        yield f"  {incident['incident']}: {group}{_span(incident)}, {sure}"
        first, out = incident["first_sensor"], incident["first_out"]
        condition = f" ({short(incident['condition'])})" if incident["condition"] else ""
        moved = f"; {short(out)} moved first" if out else ""
        moved = ", which moved first" if out == first else moved
        source = "" if incident["kind"] == NEW_STATE else f"; {SOURCES[incident['source']]}"
        count = f", {counted(incident['sensors'], 'sensor')} out of range" if incident["source"] == "machine" else ""
        with_it = "".join(f"; with it {short(text)}" for text in incident["circumstances"][:_MOST_CIRCUMSTANCES])
        similar = f"; like incident {', '.join(map(str, incident['similar']))}" if incident["similar"] else ""
        how = "known" if incident["known"].startswith(NORMAL) else "like an earlier one"
        known = f"; {how}: {short(incident['known'])}" if incident["known"] else ""
        yield f"     look first at {short(first)}{condition}{moved}{source}{count}{with_it}{similar}{known}"
    more = len(incidents) - _MOST_INCIDENTS
    if more > 0:
        yield f"  … and {more:,} more"
    yield ""


def _stretch_lines(findings: Findings) -> Iterator[str]:
    """Yield the highest stretches that are no incidents in a line each, where there are no incidents."""
    stretches = findings.assessment.stretches
    if not len(stretches) or len(findings.incidents):
        return
    yield ""
    yield "The highest stretches, which chance may explain:"
    for stretch in stretches.sort_values("rank").head(_MOST_STRETCHES).to_dict("records"):
        group = f"{short(str(stretch['group']))}, " if "group" in stretch else ""
        chance = by_chance(stretch["expected_by_chance"])
        yield f"  {group}{_span(stretch)}: {short(stretch['first_sensor'])}{f'; {chance}' if chance else ''}"
    more = len(stretches) - _MOST_STRETCHES
    if more > 0:
        yield f"  … and {more:,} more"


def _span(incident: Mapping[Any, Any]) -> str:
    """Return when an incident was, how long it lasted, and how it was interrupted."""
    start, end = plain_time(incident["start"]), plain_time(incident["end"])
    is_time = isinstance(incident["start"], pd.Timestamp)
    length = how_long(incident["start"], incident["end"], incident["duration"], incident["runs"])
    if start == end:
        return f"{'' if is_time else 'row '}{start} ({length})"
    if is_time:
        until = end[11:] if start[:10] == end[:10] else end
        return f"{start} to {until} ({length})"
    return f"rows {start} to {end}" + (f" ({length})" if len(incident["runs"]) > 1 else "")


def _event_lines(findings: Findings) -> Iterator[str]:
    """Yield a table of the events with the highest scores."""
    most = _MOST_BESIDE_INCIDENTS if findings.incidents else _MOST_EVENTS
    events = findings.events.sort_values("rank").head(most)
    if not len(events):
        return
    graded = "rank" if findings.assessment.chance_unknown else "expected_by_chance"
    group = findings.table.group
    named = [] if group is None else [str(group.name)]
    rows = [("event", *named, "start", "end", "rows", graded.replace("_", " "), "variables")]
    columns = zip(events.index, *(events[name] for name in ("start", "end", "rows", graded, "peak_row")), strict=True)
    for event, start, end, count, grade, peak in columns:
        shown = f"{grade}" if findings.assessment.chance_unknown else about_figure(grade)
        named = [] if group is None else [short(str(group.iloc[peak]))]
        figures = (plain_time(start), plain_time(end), f"{count:,}", shown)
        rows.append((f"{event}", *named, *figures, short(_variables(findings, event))))
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    yield ""
    for row in rows:
        aligned = [text.rjust(width) for text, width in zip(row[:-1], widths, strict=True)]
        yield f"  {'  '.join(aligned)}  {row[-1]}".rstrip()
    more = len(findings.events) - len(events)
    if more:
        yield f"  … and {more:,} more"


def _variables(findings: Findings, event: int) -> str:
    """Return the first variables behind an event; where there are none, its settings."""
    why = findings.explained.events.get(event)
    if why is None:
        return ""
    names = ", ".join(why.variables["variable"].head(_NAMED))
    settings = "" if names else ", ".join(why.settings["variable"].head(_NAMED))
    return f"(settings: {settings})" if settings else names


def _first(texts: Sequence[str], most: int) -> list[str]:
    return [*texts[:most], *([f"… and {len(texts) - most:,} more"] if len(texts) > most else [])]
