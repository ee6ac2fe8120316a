"""The check of the columns: how fit each is, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from penstock._messages import counted
from penstock.columns import ColumnReport, InputChoice
from penstock.detection import Findings
from penstock.report.words import name_tag, percent

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
