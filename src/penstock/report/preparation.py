"""What was done to the data and what would help: columns, gaps, rates; what the model has fitted: groups, trees."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace as Record

import numpy as np
from markupsafe import Markup

from penstock._messages import counted, duration_in_words
from penstock.detection import Findings, TagSummary, TimeSummary
from penstock.report.axis import Axis
from penstock.report.words import (
    covered_in_words,
    name_tag,
    numbers,
    percent,
    span,
    step_in_words,
    unit_beside,
    when,
)

_MOST_VALUES = 500  # variables in the list of all profiles
_LONGEST = 240  # signs of a note
_MOST_COLUMNS = 2_000
_MOST_NAMED = 12  # columns left out
_NAMING = ("counters", "like labels", "drivers", "rare tags", "broken times", "time without date")  # kinds of notes
_FEW_UNITS = 0.5  # of the inputs


def make_preparation(findings: Findings, axis: Axis) -> Record:
    """Format what was done to the data: columns left out and why, gaps, modes, how sure it is, what would help."""
    # Notes on columns that were left out name them, and say how to change that.
    noted = {name for note in findings.notes if note.changed and note.kind in _NAMING for name in note.columns}
    left = [each for each in findings.data.left_out if each.name not in noted]
    names, counts = np.unique(findings.rows.modes, return_counts=True)
    return Record(
        changes=_changes(findings),
        left_out=[(name_tag(each.name), each.reason) for each in left[:_MOST_NAMED]],
        n_left_out=max(0, len(left) - _MOST_NAMED),
        doubts=[note.message for note in findings.data.doubts],
        time=_time_facts(findings.data.time),
        narrowed=axis.is_narrowed,
        modes=[(name_tag(str(name)), f"{count:,}") for name, count in zip(names, counts, strict=True)],
        sure=_sure(findings),
        advice=_advice(findings),
    )


def _sure(findings: Findings) -> list[str]:
    """How the figures on chance were obtained, and what they do not say."""
    lines = [findings.assessment.chance_unknown] if findings.assessment.chance_unknown else []
    if findings.assessment.by_sensor:
        lines.append(
            "Near certain: at most 0.1 incidents as severe would be expected by chance in a period like this. May be "
            "chance: more than that would."
        )
    fitted = "What is usual was fitted to other rows than those that were scored."
    if findings.assessment.self_scored:
        fitted = (
            "What is usual was fitted to the same rows: a fault that is there for most of the record looks usual, "
            "and is not found."
        )
    lines.append(fitted)
    lines.append(
        "A rare but legitimate state (a flood, a test) is listed like a fault: nothing in the data distinguishes them."
    )
    return lines


def _advice(findings: Findings) -> list[str]:
    """What would make the findings better, of what users can do."""
    n_units = sum(bool(findings.inputs.units.get(name)) for name in findings.inputs.names)
    advice = (
        (
            findings.assessment.self_scored,
            "Give a period known to be good (--train-until, --train-rule): it is fitted to, the rest is scored.",
        ),
        (
            len(findings.rows.parts) == 1 and findings.settings.get("modes") is None,
            "If the machine has several states (stopped, starting, running), name them (--mode): each is scored alone.",
        ),
        (
            findings.table.time is None,
            "Add a column with the time, or say that rows are in its order (--ordered): sensors are scored over time.",
        ),
        (
            n_units < _FEW_UNITS * len(findings.inputs.names),
            "Give the units of the sensors (--units, or names like flow [m³/s]): the charts show them.",
        ),
        (
            findings.assessment.agreement is None,
            "If faults are known, name the column that holds them (--label): they are shown with the findings.",
        ),
    )
    return [text for needed, text in advice if needed]


def mode_groups(findings: Findings) -> list[Record]:
    """Format the latent groups of each mode whose detector has such, the largest group first.

    `differences` has a line per variable: name, its value in the group and on average; `profiles` too: name, unit, and
    the value in each group.
    """
    names, units = findings.inputs.names, findings.inputs.units
    found = []
    for described in findings.explained.groups:
        order = sorted(described.groups, key=lambda group: -group.members)
        cards = []
        for group in order:
            differences = []
            for row in group.differences.to_dict("records"):
                value, usual = numbers([row["value"], row["usual"]])
                unit = unit_beside(row["variable"], units[row["variable"]])
                differences.append((name_tag(row["variable"]), f"{value} {unit}".rstrip(), usual))
            cards.append(
                Record(
                    number=group.number + 1,
                    members=f"{group.members:,}",
                    share=percent(group.share),
                    width=100 * group.share,
                    findings=f"{described.findings[group.number]:,}",
                    differences=differences,
                )
            )
        profiles = [
            (name_tag(name), units[name], numbers([float(group.profile[j]) for group in order]))
            for j, name in enumerate(names[:_MOST_VALUES])
        ]
        left_out = len(names) - len(profiles)
        found.append(
            Record(mode=described.mode, groups=cards, profiles=profiles, left_out=left_out, about=described.about)
        )
    return found


def _changes(findings: Findings) -> list[str]:
    """What is other than in the source, or was not used; nothing of it is silent."""
    inputs = findings.inputs.choice.counts
    noted = {note.kind for note in findings.notes if note.changed}  # notes name the columns as well
    words = [f"{counted(inputs['as they are'], 'column')} used as they are"]
    if inputs["encoded"] and "encoded columns" not in noted:
        words.append(f"{inputs['encoded']:,} of text encoded as numbers")
    if inputs["left out"]:
        words.append(f"{inputs['left out']:,} left out")
    changes = [f"Columns: {', '.join(words)}."]
    n_trained = int(findings.rows.fitted.sum())
    if 0 < n_trained < int(findings.rows.scored.sum()):
        changes.append(f"The model was fitted to {counted(n_trained, 'row')}; findings are among the others.")
    for message in (note.message for note in findings.notes if note.changed and note.kind != "left out columns"):
        is_long = len(message) > _LONGEST
        changes.append(message[:_LONGEST].rsplit(" ", 1)[0] + " …" if is_long else message)
    return list(dict.fromkeys(changes))


def _time_facts(time: TimeSummary | None) -> list[Markup]:
    """How the time was read, and what it is like."""
    if time is None:
        return [Markup("No column of times was found (--time names it).")]
    zone = "without a zone, as the clock of the plant showed it" if time.zone is None else f"in the zone {time.zone}"
    step = step_in_words(time, when)
    return [
        Markup("Column {}: {}, {}.").format(name_tag(time.column), time.how, zone),
        Markup("{}.").format(span(time.first, time.last)),
        Markup("{}{}.").format(step[0].upper(), step[1:]),
    ]


def column_table(findings: Findings) -> Record:
    """Format what is known of the time and the tags, the worst grade first.

    `notable` columns are those below grade A, encoded or left out, `plain` the others; `counts` are by grade. `has`
    says which cells any of them has.
    """
    lines = [*_time_cells(findings.data.time), *(_tag_cells(tag, findings.data.time) for tag in findings.data.tags)]
    lines = sorted(lines, key=lambda line: line.grade, reverse=True)
    shown = lines[:_MOST_COLUMNS]
    more = len(lines) - _MOST_COLUMNS
    counts = [(grade, sum(line.grade == grade for line in lines)) for grade in "ABCD"]
    return Record(
        notable=[line for line in shown if line.notable],
        plain=[line for line in shown if not line.notable],
        counts=[(grade, count) for grade, count in counts if count],
        has={name: any(getattr(line, name) for line in lines) for name in ("unit", "every", "bad")},
        left_out=f"{counted(more, 'more column')} of the best grades not listed." if more > 0 else "",
    )


def _time_cells(time: TimeSummary | None) -> Iterator[Record]:
    if time is not None:
        yield Record(
            name=name_tag(time.column),
            role="time",
            grade=time.grade,
            unit="",
            every="",
            usual="",
            ends="",
            missing=percent(time.share_missing),
            bad="",
            use="time",
            reasons=time.reasons,
            notable=time.grade != "A",
        )


def _tag_cells(tag: TagSummary, time: TimeSummary | None) -> Record:
    usual, ends = (" to ".join(numbers(pair)) for pair in ((tag.usual_low, tag.usual_high), (tag.low, tag.high)))
    if np.isnan(tag.low):
        usual = counted(tag.kinds, "kind") if tag.kinds else ""
        ends = ""
    covered = covered_in_words(tag, time, when)
    return Record(
        name=name_tag(tag.name),
        role=tag.role,
        grade=tag.grade,
        unit=tag.unit,
        every="" if np.isnan(tag.interval) else duration_in_words(tag.interval),
        usual=usual,
        ends=ends,
        missing=percent(tag.share_missing),
        bad="" if not tag.bad else f"{tag.bad:,}",
        use=tag.use,
        reasons=[*tag.reasons, *([f"{covered[0].upper()}{covered[1:]}."] if covered else [])],
        notable=tag.grade != "A" or tag.use != "as it is" or bool(covered),
    )
