"""The first part of the page: what was found, in plain words, and the check of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from penstock._messages import counted
from penstock.columns import ColumnReport, InputChoice
from penstock.detection import Explanation, Findings
from penstock.report.event_cards import event_record, when_and_where
from penstock.report.words import day, duration, listed, name_tag, percent, span, when, with_unit

_WORST = 3
_NAMED = 3
_LONGEST = 240  # signs of a note


@dataclass(frozen=True)
class Figure:
    """A number in large print, and what it counts."""

    value: str
    label: str


@dataclass(frozen=True)
class WorstEvent:
    number: int
    sentence: Markup


@dataclass(frozen=True)
class KnownFault:
    """A known fault; `kind` is the class of what `alarm` says: yes, early or no."""

    number: int
    when: str
    rows: str
    flagged: str
    alarm: str
    kind: str
    first_alarm: str
    lead: str


@dataclass(frozen=True)
class Summary:
    lead: Markup
    figures: tuple[Figure, ...]
    worst: tuple[WorstEvent, ...]
    changes: tuple[str, ...]
    threshold: str
    agreement: Markup | None
    faults: tuple[KnownFault, ...]


def make_summary(findings: Findings) -> Summary:
    """Format the first part of the page, with the most severe of the events that are explained."""
    ranked = [event for event in findings.events.sort_values("rank").index[:_WORST] if event in findings.explanations]
    agreement = None if findings.agreement is None else _agreement(findings)
    return Summary(
        findings_in_words(findings),
        tuple(_figures(findings)),
        tuple(
            WorstEvent(int(event), _worst(findings, int(event), findings.explanations[int(event)])) for event in ranked
        ),
        tuple(_changes(findings)),
        _threshold(findings),
        agreement,
        () if findings.agreement is None else tuple(_faults(findings.agreement.faults)),
    )


def period(findings: Findings) -> str:
    """From the first row to the last, "" without time.

    Only days are named, unless it all happened on one.
    """
    time = findings.table.time
    if time is None or not len(time):
        return ""
    start, end = time.min(), time.max()
    first, last = day(start), day(end)
    return span(start, end) if first == last else f"{first} – {last}"


def findings_in_words(findings: Findings) -> Markup:
    """Format how many rows stand out, when, and how many events they make up."""
    n_found, n_judged, n_events = int(findings.flags.sum()), int(findings.judged.sum()), len(findings.events)
    if not n_found:
        return Markup("Of {} judged, none stands out.").format(counted(n_judged, "row"))
    one = n_found == 1
    verb = "stands out" if one else "stand out"
    if findings.self_judged:
        verb = "has the highest score" if one else "have the highest scores"
    text = Markup("<strong>{} of {}</strong> {}").format(f"{n_found:,}", counted(n_judged, "row"), verb)
    events = Markup("They make up <strong>{}</strong>").format(counted(n_events, "event"))
    if findings.table.time is not None:
        events += Markup(" on <strong>{}</strong>").format(counted(len(findings.days), "day"))
    when_ = period(findings)
    between = f" between {when_.replace(' – ', ' and ')}" if when_ else ""
    return Markup("{}{}. {}.{}").format(text, between, events, f" {findings.caution}".rstrip())


def _figures(findings: Findings) -> list[Figure]:
    n_rows, n_judged = len(findings.scores), int(findings.judged.sum())
    of = "rows judged" if n_rows == n_judged else f"of {n_rows:,} rows judged"
    figures = [
        Figure(f"{n_judged:,}", of),
        Figure(f"{len(findings.names):,}", "variables used"),
        Figure(
            f"{int(findings.flags.sum()):,}",
            f"findings (rows {'with the highest scores' if findings.self_judged else 'above the threshold'})",
        ),
        Figure(f"{len(findings.events):,}", "events (findings close together)"),
    ]
    if findings.table.time is not None:
        figures.append(Figure(f"{len(findings.days):,}", "days with findings"))
    if findings.agreement is not None:
        n_faults = findings.agreement.n_judged_faults
        figures.append(Figure(f"{findings.agreement.n_inside:,} of {n_faults:,}", "known faults with a finding inside"))
    return figures


def _worst(findings: Findings, number: int, why: Explanation) -> Markup:
    event = event_record(findings, number)
    rows = int(event["rows"])
    timed = findings.table.time is not None  # without, the duration is in rows too
    lasting = f"{duration(event['duration'])}, " if timed else ""
    length = "one row" if rows == 1 else f"{lasting}{rows:,} rows"
    text = Markup("{} ({})").format(when_and_where(event), length)
    if pd.notna(event.get("severity")):
        text += f", up to {event['severity']:.1f} times the threshold"
    if why.seen_as:
        text += f", {why.seen_as}; {why.rarity}"
    variables = why.variables.to_dict("records")[:_NAMED]
    if not variables:
        return text + "."
    first = variables[0]
    words = "{} was {}, which the model rebuilds as {}" if why.rebuilt else "{} was {}, where {} was expected"
    behind = Markup(words).format(
        name_tag(first["variable"]),
        with_unit(first["actual"], first["unit"]),
        with_unit(first["expected"], first["unit"]),
    )
    others = [_beside_expected(row, "rebuilt" if why.rebuilt else "expected") for row in variables[1:]]
    more = Markup("; also behind it: {}").format(listed(others)) if others else ""
    return Markup("{}. {}{}.").format(text, behind, more)


def _beside_expected(row: dict[Any, Any], word: str) -> Markup:
    where = f" ({row['direction']} {word})" if row["direction"] else ""
    return Markup("{}{}").format(name_tag(row["variable"]), where)


def _changes(findings: Findings) -> list[str]:
    """What is other than in the source, or was not used; nothing of it is silent."""
    inputs = findings.inputs.counts
    told = {note.kind for note in findings.notes if note.changed}  # notes name the columns as well
    words = [f"{counted(inputs['as they are'], 'column')} used as they are"]
    if inputs["encoded"] and "encoded columns" not in told:
        words.append(f"{inputs['encoded']:,} of text encoded as numbers")
    if inputs["left out"] and "left out columns" not in told:
        words.append(f"{inputs['left out']:,} left out")
    changes = [f"Columns: {', '.join(words)}."]
    n_trained = int(findings.trained.sum())
    if 0 < n_trained < int(findings.judged.sum()):
        changes.append(f"The model has learnt from {counted(n_trained, 'row')}; findings are among the others.")
    changes += [_short(note.message) for note in findings.notes if note.changed]
    return list(dict.fromkeys(changes))


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else message[:_LONGEST].rsplit(" ", 1)[0] + " … (see Notes)"


def _threshold(findings: Findings) -> str:
    settings, n_found = findings.settings, int(findings.flags.sum())
    rarity = f" {text[0].upper()}{text[1:]} it." if (text := findings.threshold_rarity) else ""
    ranked = settings.get("top") is not None or (settings.get("threshold") is None and findings.self_judged)
    if ranked and n_found:
        below = f"just below the {n_found:,} highest scores" if n_found > 1 else "below the highest score"
        return f"It lies {below}.{rarity}"
    return f"It was learnt from the scores of {'these rows' if findings.self_judged else 'usual rows'}.{rarity}"


def _agreement(findings: Findings) -> Markup:
    known = findings.agreement
    assert known is not None
    label = findings.table.label
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
    text += "."
    if pd.notna(known.precision_at_n):
        text += Markup(
            " Of the {:,} rows with the highest scores, <strong>{}</strong> are known to be faulty (P@N)."
        ).format(known.n_ranked, percent(known.precision_at_n))
    return text


def _faults(faults: pd.DataFrame) -> list[KnownFault]:
    lines = []
    for number, row in enumerate(faults.to_dict("records"), 1):
        first, lead = (when(row["first_alarm"]), _lead_time(row["lead"])) if row["found"] else ("", "")
        rows, flagged = f"{row['rows']:,}", f"{row['flagged']:,}"
        lines.append(KnownFault(number, when_and_where(row), rows, flagged, *_alarm(row), first, lead))
    return lines


def _alarm(fault: dict[Any, Any]) -> tuple[str, str]:
    """Whether there was an alarm, and its kind: a finding inside the fault is one, an earlier one may be of another.

    >>> _alarm({"flagged": 2, "found": True, "judged": True}), _alarm({"flagged": 0, "found": True, "judged": True})
    (('✓ inside', 'yes'), ('before it only', 'early'))
    >>> _alarm({"flagged": 0, "found": False, "judged": True}), _alarm({"flagged": 0, "found": False, "judged": False})
    (('✗ none', 'no'), ('not judged', 'early'))
    """
    if fault["flagged"]:
        return "✓ inside", "yes"
    if fault["found"]:
        return "before it only", "early"
    return ("✗ none", "no") if fault["judged"] else ("not judged", "early")


def _lead_time(lead: Any) -> str:
    """How long before the fault the first alarm came.

    >>> _lead_time(pd.Timedelta(hours=2)), _lead_time(pd.Timedelta(hours=-1)), _lead_time(0), _lead_time(3)
    ('2 h before', '1 h after it began', 'as it began', '3 rows before')
    """
    zero = pd.Timedelta(0) if isinstance(lead, pd.Timedelta) else 0
    if lead == zero:
        return "as it began"
    return f"{duration(lead)} before" if lead > zero else f"{duration(-lead)} after it began"


_MOST = 2_000


@dataclass(frozen=True)
class ColumnLine:
    name: Markup
    kind: str
    grade: str
    use: str
    missing: str
    reasons: tuple[str, ...]
    notable: bool


@dataclass(frozen=True)
class ColumnTable:
    """`notable` columns are those below grade A, encoded or left out; `plain` the others; `counts` by grade."""

    notable: tuple[ColumnLine, ...]
    plain: tuple[ColumnLine, ...]
    counts: tuple[tuple[str, int], ...]
    left_out: str


def column_table(findings: Findings) -> ColumnTable:
    """The worst grade first."""
    uses = _uses(findings.inputs)
    lines = [_line(check, uses) for check in findings.checks]
    ordered = sorted(lines, key=lambda line: line.grade, reverse=True)
    shown = ordered[:_MOST]
    grades = [(grade, sum(line.grade == grade for line in lines)) for grade in "ABCD"]
    more = len(ordered) - len(shown)
    return ColumnTable(
        tuple(line for line in shown if line.notable),
        tuple(line for line in shown if not line.notable),
        tuple((grade, count) for grade, count in grades if count),
        f"{counted(more, 'more column')} of the best grades not listed." if more else "",
    )


def _line(check: ColumnReport, uses: dict[str, str]) -> ColumnLine:
    use = "time" if check.kind == "time" else uses.get(check.name, "not an input")
    notable = check.grade != "A" or use not in ("used", "time")
    return ColumnLine(
        name_tag(check.name), check.kind, check.grade, use, percent(check.share_missing), check.reasons, notable
    )


def _uses(inputs: InputChoice) -> dict[str, str]:
    uses = dict.fromkeys(inputs.as_they_are, "used")
    for encoding in inputs.encoded:
        made = counted(len(encoding.names), "number")
        uses[encoding.column] = f"encoded as {made} ({encoding.method})"
    return uses | {each.name: "left out" for each in inputs.left_out}
