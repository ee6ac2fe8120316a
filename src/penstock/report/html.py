"""Put the parts of the report into one HTML page that loads nothing, runs no script but its own, and escapes names."""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from penstock._messages import counted
from penstock._pages import fill_template
from penstock.detection import NO_LONGER_FITS, Findings, Progress
from penstock.report.axis import Axis, axis_of, script_json
from penstock.report.cases import (
    Areas,
    Case,
    cases_of,
    filter_data,
    make_article,
    make_row,
    shift_in_words,
    stretch_in_words,
    word_for_cases,
)
from penstock.report.charts import case_data, explorer_data
from penstock.report.files import refuse_existing, write_new
from penstock.report.overview import (
    fault_line,
    known_faults,
    make_calendar,
    overview_data,
    period,
)
from penstock.report.preparation import column_table, make_preparation, mode_groups
from penstock.report.words import agreement_in_words, findings_in_words

_MOST_ROWS = 8  # of the table on the first screen; a button shows the others
_MOST_ARTICLES = 100
_MOST_IN_NOTEBOOK = 20
_MOST_STRETCHES = 10  # that are no incidents
_SECOND = 1000  # milliseconds
_TEMPLATES = resources.files("penstock.report") / "templates"
CHART_MODULES = ("format.js", "view.js", "chart.js", "heatmap.js")  # shared by all pages, in this order
_SCRIPTS = (*CHART_MODULES, "unpack.js", "data.js", "overview.js", "incident.js", "explorer.js", "report.js")


def write_html(
    findings: Findings,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    title: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the page of `to_html` to a file, wholly or not at all.

    findings, title, progress : as in `to_html`.
    path : of the new file.
    overwrite : whether a file that is there may be replaced.

    Raises FileExistsError: if there is a file or a link already, or one appears meanwhile, and `overwrite` is not set.
    """
    refuse_existing([path], overwrite)
    page = to_html(findings, title=title, progress=progress)
    if progress is not None:
        progress(f"writing {os.fspath(path)}")
    write_new(path, [page.encode("utf-8")], overwrite)


def to_html(findings: Findings, *, title: str | None = None, progress: Progress | None = None) -> str:
    """Format findings as one HTML page that needs nothing else: to read in any browser, to print, to hand over.

    findings : of `penstock.detect` or `penstock.score`.
    title : the heading; names the source if None.
    progress : called with the name of each stage that begins.

    >>> import numpy as np, pandas as pd
    >>> from penstock.detection import detect
    >>> table = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=["head", "flow", "<b>"])
    >>> page = to_html(detect(table, top=5), title="Plant 1")
    >>> page.startswith("<!DOCTYPE html>"), "<h1>Plant 1</h1>" in page, "<b>" in page
    (True, True, False)
    """
    if progress is not None:
        progress("drawing the report")
    findings = _to_the_second(findings)
    axis = axis_of(findings.table)
    cases = cases_of(findings)
    areas = Areas(findings.inputs.names)
    data: dict[str, Any] = {
        **_timeline(findings, axis, cases, areas),
        "expected": _expected_word(findings),
        "by_evidence": findings.assessment.by_sensor,
        "filters": filter_data(findings, cases, areas),
        "cases": case_data(findings, axis, cases),
    }
    texts = {name: (_TEMPLATES / name).read_text(encoding="utf-8").strip() for name in ("report.css", *_SCRIPTS)}
    style = texts.pop("report.css")
    script = '(function () {\n"use strict";\n' + "\n".join(texts.values()) + "\n})();"
    values = {
        **_context(findings, cases, areas),
        "title": title or f"Findings in {findings.table.source}",
        "policy": _policy(style, script),
        "style": Markup(style),
        "script": Markup(script),
        "data": Markup(script_json(data)),
        "prepared": make_preparation(findings, axis),
        "gaps": bool(data["overview"]["gaps"]),
        "narrowed": axis.is_narrowed,
        "n_lanes": len(data["overview"]["lanes"]),
        "resolution": _resolution(data["explorer"], len(findings.inputs.names)),
    }
    page = fill_template("report", "report.html", values)
    return page.encode("utf-8", "replace").decode("utf-8")  # names may hold halves of characters


def chart_data(findings: Findings) -> dict[str, Any]:
    """Return what the charts over the whole time draw, for `unpack.js`: scores, incidents and all sensors.

    >>> import numpy as np, pandas as pd
    >>> from penstock.detection import detect
    >>> data = chart_data(detect(pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3))), top=5))
    >>> sorted(data), [each["name"] for each in data["explorer"]["sensors"]]
    (['axis', 'explorer', 'overview', 'word'], ['column 1', 'column 2', 'column 3'])
    """
    findings = _to_the_second(findings)
    return _timeline(findings, axis_of(findings.table), cases_of(findings), Areas(findings.inputs.names))


def _timeline(findings: Findings, axis: Axis, cases: list[Case], areas: Areas) -> dict[str, Any]:
    return {
        "axis": axis.packed(),
        "word": word_for_cases(findings),
        "overview": overview_data(findings, axis, cases),
        "explorer": explorer_data(findings, axis, cases, areas),
    }


def _to_the_second(findings: Findings) -> Findings:
    """Cut times to the second where no two rows are less than a second apart."""
    time = findings.table.time
    if time is None or (np.abs(np.diff(time.as_unit("ms").asi8)) < _SECOND).any():
        return findings

    def cut(frame: pd.DataFrame) -> pd.DataFrame:
        stamps = frame.select_dtypes(["datetime", "datetimetz"])
        return frame.assign(**{str(name): _floor(pd.DatetimeIndex(stamps[name])) for name in stamps})

    explained, assessment = findings.explained, findings.assessment
    reasons = {event: replace(why, neighbors=cut(why.neighbors)) for event, why in explained.events.items()}
    known = assessment.agreement and replace(assessment.agreement, faults=cut(assessment.agreement.faults))
    return replace(
        findings,
        table=replace(findings.table, time=_floor(time)),
        events=cut(findings.events),
        incident_table=cut(findings.incident_table),
        explained=replace(explained, events=reasons),
        assessment=replace(assessment, stretches=cut(assessment.stretches), agreement=known),
    )


def _floor(times: pd.DatetimeIndex) -> pd.DatetimeIndex:
    whole = times.tz_convert("UTC") if times.tz is not None else times
    return whole.floor("s") if times.tz is None else whole.floor("s").tz_convert(times.tz)


def _policy(style: str, script: str) -> str:
    """Return a content security policy: nothing may be loaded, and only this very style and this very script count."""
    digests = (hashlib.sha256(text.encode("utf-8")).digest() for text in (script, style))
    hashes = [base64.b64encode(digest).decode("ascii") for digest in digests]
    return (
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src 'none'; base-uri 'none'; "
        "form-action 'none'"
    ).format(*hashes)


def notebook_html(findings: Findings) -> str:
    """Format findings for a notebook: the verdict, and the incidents (or rows), the most severe first."""
    table = findings.top()
    names: tuple[str, ...] = ("score", "time", "group", "expected_by_chance", "mode", "variables")
    if findings.assessment.by_sensor:
        table = findings.incident_table.sort_values("rank")
        names = ("start", "group", "duration", "expected_by_chance", "first_sensor", "condition", "source")
    more = len(table) - _MOST_IN_NOTEBOOK
    shown = table[[name for name in names if name in table]].head(_MOST_IN_NOTEBOOK)
    return Markup("<p><strong>{}</strong></p><p>{}</p>{}<p>{}</p>").format(
        findings.verdict.sentence,
        findings_in_words(findings),
        Markup(shown.to_html(border=0)) if len(shown) else "",
        f"{more:,} more are in .incident_table or .top()" if more > 0 else "",
    )


def _context(findings: Findings, cases: list[Case], areas: Areas) -> dict[str, Any]:
    """What the template shows by itself."""
    known = findings.assessment.agreement
    faults = known_faults(findings)
    modes = sorted({str(findings.rows.modes[case.peak]) for case in cases})
    return {
        "source": findings.table.source,
        "period": period(findings),
        "size": f"{counted(len(findings.scores), 'row')}, {counted(len(findings.inputs.names), 'sensor')}",
        "has_time": findings.table.time is not None,
        "group_name": None if findings.table.group is None else str(findings.table.group.name),
        "several_modes": len(findings.rows.parts) > 1,
        "modes": modes,
        "word": word_for_cases(findings),
        "expected_word": _expected_word(findings),
        "rebuilt": findings.inputs.rebuilt,
        "by_views": findings.rows.contributions is not None,
        "by_evidence": findings.assessment.by_sensor,
        "sure_heading": _sure_heading(findings),
        "areas": areas.names,
        "verdict": findings.verdict,
        "no_longer_fits": [note.message for note in findings.notes if note.kind == NO_LONGER_FITS],
        "shifts": [shift_in_words(findings, shift) for shift in findings.assessment.shifts],
        "method": [note.message for note in findings.notes if note.kind == "method"],
        "lead": findings_in_words(findings),
        "agreement": None if known is None else agreement_in_words(known),
        "faults": []
        if known is None
        else [fault_line(n, row) for n, row in enumerate(known.faults.to_dict("records"), 1)],
        "calendar": make_calendar(findings, cases),
        "rows": [make_row(findings, case, areas) for case in cases],
        "most_rows": _MOST_ROWS if len(cases) > _MOST_ROWS + 2 else len(cases),
        "n_cases": len(findings.events if not findings.assessment.by_sensor else findings.incidents),
        "stretches": _stretches(findings),
        "listed": {case.number for case in cases[:_MOST_ARTICLES]},
        "articles": [make_article(findings, case, faults) for case in cases[:_MOST_ARTICLES]],
        "groups": mode_groups(findings),
        "rules": findings.explained.rule_tree,
        "columns": column_table(findings),
        "notes": findings.notes,
        "settings": [(name, value) for name, value in findings.settings.items() if value is not None],
    }


def _stretches(findings: Findings) -> list[Markup]:
    if not len(findings.assessment.stretches):
        return []
    highest = findings.assessment.stretches.sort_values("rank").head(_MOST_STRETCHES)
    return [stretch_in_words(record) for record in highest.to_dict("records")]


def _sure_heading(findings: Findings) -> str:
    """What the column on how sure cases are is called."""
    if findings.assessment.by_sensor:
        return "How sure"
    return "Rank" if findings.assessment.chance_unknown else "Expected by chance"


def _expected_word(findings: Findings) -> str:
    return "rebuilt" if findings.inputs.rebuilt else "expected"


def _resolution(explorer: dict[str, Any], n_sensors: int) -> str:
    """Say what the explorer draws of which sensors."""
    fine, coarse, n_fine = explorer["fine_rows"], explorer["coarse_rows"], explorer["n_fine"]
    if fine == coarse == 1:
        return "Every reading of every sensor is in this page."
    lowest = "the lowest and the highest reading of each {:,} rows"
    if n_fine == n_sensors:
        return f"To keep the page small it holds {lowest.format(fine)}: no peak is lost."
    most = "all readings" if fine == 1 else lowest.format(fine)
    return (
        f"To keep the page small it holds {most} of the {n_fine} sensors that most incidents are about, and "
        f"{lowest.format(coarse)} of the {n_sensors - n_fine} others: no peak is lost."
    )
