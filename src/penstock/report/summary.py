"""The first part of the page: what was found, in plain words, and the check of the columns.

Records for the template are namespaces: their fields are named where they are made, and read in `report.html` alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from types import SimpleNamespace as Record
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from penstock._messages import counted
from penstock.detection import Explanation, Findings
from penstock.report.event_cards import event_record, when_and_where
from penstock.report.words import (
    SOURCES,
    by_chance,
    day,
    duration,
    how_sure,
    listed,
    name_tag,
    percent,
    span,
    when,
    with_unit,
)

_WORST = 3
_MOST_INCIDENTS = 20
_NAMED = 3
_LONGEST = 240  # signs of a note
_MOST_COLUMNS = 2_000


def make_summary(findings: Findings, listed_events: Collection[int] | None = None) -> Record:
    """Format the first part of the page: the verdict, and the most severe incidents, else events that are explained.

    Parameters
    ----------
    findings : Findings
    listed_events : collection of int, optional
        The events that have a card on the page to link to; all if None.
    """
    ranked = [] if findings.incidents else [int(each) for each in findings.events.sort_values("rank").index[:_WORST]]
    explained = [(event, findings.explanations[event]) for event in ranked if event in findings.explanations]
    known = findings.agreement
    return Record(
        verdict=findings.verdict,
        method=[note.message for note in findings.notes if note.kind == "method"],
        incidents=_incidents(findings, listed_events),
        n_incidents=len(findings.incidents),
        lead=findings_in_words(findings),
        figures=[Record(value=f"{value}", label=label) for value, label in _figures(findings)],
        worst=[Record(number=event, sentence=_worst(findings, event, why)) for event, why in explained],
        changes=_changes(findings),
        threshold=_threshold(findings),
        agreement=None if known is None else _agreement(findings),
        faults=[] if known is None else [_fault(n, row) for n, row in enumerate(known.faults.to_dict("records"), 1)],
    )


def period(findings: Findings) -> str:
    """Format the time from the first row to the last: days, unless all is on one day; "" without time."""
    time = findings.table.time
    if time is None or not len(time):
        return ""
    start, end = time.min(), time.max()
    first, last = day(start), day(end)
    return span(start, end) if first == last else f"{first} – {last}"


def findings_in_words(findings: Findings) -> Markup:
    """Format how many rows stand out, when, and how many events they make up."""
    n_found, n_judged = int(findings.flags.sum()), int(findings.judged.sum())
    if not n_found:
        return Markup("Of {} judged, none stands out.").format(counted(n_judged, "row"))
    verb = "stands out" if n_found == 1 else "stand out"
    if findings.evidence is not None:  # the verdict says whether these stand out
        verb = "is listed" if n_found == 1 else "are listed"
    elif findings.self_judged:
        verb = "has the highest score" if n_found == 1 else "have the highest scores"
    text = Markup("<strong>{} of {}</strong> {}").format(f"{n_found:,}", counted(n_judged, "row"), verb)
    events = Markup("They make up <strong>{}</strong>").format(counted(len(findings.events), "event"))
    if findings.table.time is not None:
        events += Markup(" on <strong>{}</strong>").format(counted(len(findings.days), "day"))
    when_ = period(findings)
    between = f" between {when_.replace(' – ', ' and ')}" if when_ else ""
    return Markup("{}{}. {}.{}").format(text, between, events, f" {findings.caution}".rstrip())


def _figures(findings: Findings) -> list[tuple[str, str]]:
    """Numbers in large print, and what they count."""
    n_rows, n_judged = len(findings.scores), int(findings.judged.sum())
    ranked = findings.self_judged and findings.evidence is None
    which = "with the highest scores" if ranked else "above the threshold"
    figures = [
        (f"{n_judged:,}", "rows judged" if n_rows == n_judged else f"of {n_rows:,} rows judged"),
        (f"{len(findings.names):,}", "variables used"),
        (f"{int(findings.flags.sum()):,}", f"findings (rows {which})"),
        (f"{len(findings.events):,}", "events (findings close together)"),
    ]
    if findings.evidence is not None:
        figures.append((f"{len(findings.incidents):,}", "incidents (findings of one cause)"))
    if findings.table.time is not None:
        figures.append((f"{len(findings.days):,}", "days with findings"))
    if findings.agreement is not None:
        inside, judged = findings.agreement.n_inside, findings.agreement.n_judged_faults
        figures.append((f"{inside:,} of {judged:,}", "known faults with a finding inside"))
    return figures


def _incidents(findings: Findings, listed_events: Collection[int] | None) -> list[Record]:
    """The most severe incidents; each links to those of its events that are on the page."""
    if not findings.incidents:
        return []
    shown = findings.incident_table.sort_values("rank").head(_MOST_INCIDENTS)
    lines = []
    for number, row in zip(shown.index.tolist(), shown.to_dict("records"), strict=True):
        first, out = row["first_sensor"], row["first_out"]
        events = np.unique(findings.grouped.of_row[findings.incidents[number - 1].rows]).tolist()
        lines.append(
            Record(
                number=number,
                events=[event for event in events if listed_events is None or event in listed_events],
                when=when_and_where(row),
                duration="one row" if row["start"] == row["end"] else duration(row["duration"]),
                sure=how_sure(row["expected_by_chance"]),
                chance=by_chance(row["expected_by_chance"]),
                first_sensor=name_tag(first),
                moved="moved first" if out == first else Markup("{} moved first").format(name_tag(out)) if out else "",
                condition=name_tag(row["condition"]) if row["condition"] else "",
                source=SOURCES[row["source"]],
                similar=", ".join(map(str, row["similar"])),
            )
        )
    return lines


def _worst(findings: Findings, number: int, why: Explanation) -> Markup:
    event = event_record(findings, number)
    rows = int(event["rows"])
    lasting = f"{duration(event['duration'])}, " if findings.table.time is not None else ""  # else it is in rows too
    text = Markup("{} ({})").format(when_and_where(event), "one row" if rows == 1 else f"{lasting}{rows:,} rows")
    if pd.notna(event.get("severity")):
        text += f", up to {event['severity']:.1f} times the threshold"
    if why.seen_as:
        text += f", {why.seen_as}; {why.rarity}"
    variables = why.variables.to_dict("records")[:_NAMED]
    if not variables:
        return text + "."
    first = variables[0]
    words = "{} was {}, which the model rebuilds as {}" if why.rebuilt else "{} was {}, where {} was expected"
    readings = [with_unit(first[name], first["unit"]) for name in ("actual", "expected")]
    behind = Markup(words).format(name_tag(first["variable"]), *readings)
    word = "rebuilt" if why.rebuilt else "expected"
    others = [
        Markup("{}{}").format(name_tag(row["variable"]), f" ({row['direction']} {word})" if row["direction"] else "")
        for row in variables[1:]
    ]
    more = Markup("; also behind it: {}").format(listed(others)) if others else ""
    return Markup("{}. {}{}.").format(text, behind, more)


def _changes(findings: Findings) -> list[str]:
    """What is other than in the source, or was not used; nothing of it is silent."""
    inputs = findings.inputs.counts
    noted = {note.kind for note in findings.notes if note.changed}  # notes name the columns as well
    words = [f"{counted(inputs['as they are'], 'column')} used as they are"]
    if inputs["encoded"] and "encoded columns" not in noted:
        words.append(f"{inputs['encoded']:,} of text encoded as numbers")
    if inputs["left out"] and "left out columns" not in noted:
        words.append(f"{inputs['left out']:,} left out")
    changes = [f"Columns: {', '.join(words)}."]
    n_trained = int(findings.trained.sum())
    if 0 < n_trained < int(findings.judged.sum()):
        changes.append(f"The model has learnt from {counted(n_trained, 'row')}; findings are among the others.")
    for message in (note.message for note in findings.notes if note.changed):
        is_long = len(message) > _LONGEST
        changes.append(message[:_LONGEST].rsplit(" ", 1)[0] + " … (see Notes)" if is_long else message)
    return list(dict.fromkeys(changes))


def _threshold(findings: Findings) -> str:
    settings, n_found = findings.settings, int(findings.flags.sum())
    by_hand = settings.get("top") is not None or settings.get("threshold") is not None
    if "expected_by_chance" in findings.events and not by_hand:
        return "A normal period of this length has about one episode as high."
    rarity = f" {text[0].upper()}{text[1:]} it." if (text := findings.threshold_rarity) else ""
    ranked = settings.get("top") is not None or (settings.get("threshold") is None and findings.self_judged)
    if ranked and n_found:
        below = f"just below the {n_found:,} highest scores" if n_found > 1 else "below the highest score"
        return f"It lies {below}.{rarity}"
    return f"It was learnt from the scores of {'these rows' if findings.self_judged else 'usual rows'}.{rarity}"


def _agreement(findings: Findings) -> Markup:
    known, label = findings.agreement, findings.table.label
    assert known is not None
    column = Markup(" (column {})").format(name_tag(str(label.name))) if label is not None and label.name else ""
    n_faults, n_judged = len(known.faults), known.n_judged_faults
    text = Markup("{} known to be faulty{}, in {}. There is a finding inside {} of {}").format(
        counted(known.n_known, "row") + (" is" if known.n_known == 1 else " are"),
        column,
        counted(n_faults, "fault"),
        f"{known.n_inside:,}",
        "these" if n_judged == n_faults else f"the {n_judged:,} that were judged",
    )
    if known.n_found > known.n_inside:
        earlier = f"{known.n_found - known.n_inside:,}"
        text += Markup("; {} more had only an alarm up to {} before").format(earlier, duration(known.horizon))
    if math.isnan(known.precision_at_n):
        return text + "."
    precision = Markup(". Of the {:,} rows with the highest scores, <strong>{}</strong> are known to be faulty (P@N).")
    return text + precision.format(known.n_ranked, percent(known.precision_at_n))


def _fault(number: int, row: dict[Any, Any]) -> Record:
    """A known fault; `kind` is the class of what `alarm` says: a finding inside it, only an earlier alarm, or none."""
    alarm, kind = ("✗ none", "no") if row["judged"] else ("not judged", "early")
    if row["found"]:
        alarm, kind = ("✓ inside", "yes") if row["flagged"] else ("before it only", "early")
    return Record(
        number=number,
        when=when_and_where(row),
        rows=f"{row['rows']:,}",
        flagged=f"{row['flagged']:,}",
        alarm=alarm,
        kind=kind,
        first_alarm=when(row["first_alarm"]) if row["found"] else "",
        lead=_lead_time(row["lead"]) if row["found"] else "",
    )


def _lead_time(lead: Any) -> str:
    """How long before the fault the first alarm came.

    >>> _lead_time(pd.Timedelta(hours=2)), _lead_time(pd.Timedelta(hours=-1)), _lead_time(0), _lead_time(3)
    ('2 h before', '1 h after it began', 'as it began', '3 rows before')
    """
    zero = pd.Timedelta(0) if isinstance(lead, pd.Timedelta) else 0
    if lead == zero:
        return "as it began"
    return f"{duration(lead)} before" if lead > zero else f"{duration(-lead)} after it began"


def column_table(findings: Findings) -> Record:
    """Format the check of the columns, the worst grade first.

    `notable` columns are those below grade A, encoded or left out, `plain` the others; `counts` are by grade.
    """
    uses = dict.fromkeys(findings.inputs.as_they_are, "used")
    for encoding in findings.inputs.encoded:
        uses[encoding.column] = f"encoded as {counted(len(encoding.names), 'number')} ({encoding.method})"
    uses |= {each.name: "left out" for each in findings.inputs.left_out}
    lines = []
    for check in sorted(findings.checks, key=lambda check: check.grade, reverse=True):
        use = "time" if check.kind == "time" else uses.get(check.name, "not an input")
        lines.append(
            Record(
                name=name_tag(check.name),
                kind=check.kind,
                grade=check.grade,
                use=use,
                missing=percent(check.share_missing),
                reasons=check.reasons,
                notable=check.grade != "A" or use not in ("used", "time"),
            )
        )
    shown, more = lines[:_MOST_COLUMNS], len(lines) - _MOST_COLUMNS
    counts = [(grade, sum(line.grade == grade for line in lines)) for grade in "ABCD"]
    return Record(
        notable=[line for line in shown if line.notable],
        plain=[line for line in shown if not line.notable],
        counts=[(grade, count) for grade, count in counts if count],
        left_out=f"{counted(more, 'more column')} of the best grades not listed." if more > 0 else "",
    )
