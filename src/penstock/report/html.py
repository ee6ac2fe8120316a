"""Put the parts of the report into one HTML page that loads nothing, runs no script but its own, and escapes names."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from importlib import resources
from typing import Any

from markupsafe import Markup

from penstock.detection import Findings
from penstock.report.axis import make_axis, script_json
from penstock.report.event_cards import event_card, event_chart_data
from penstock.report.files import refuse_existing, write_new
from penstock.report.heat_map import heat_map_data
from penstock.report.model import draw_rules, mode_groups, tree_maps
from penstock.report.summary import column_table, findings_in_words, make_summary, period
from penstock.report.timeline import make_calendar, timeline_data
from penstock.report.words import numbers

Progress = Callable[[str], None]
MOST_LISTED = 500  # events, the most severe
_MOST_PRINTED = 5  # with their charts
_TEMPLATES = resources.files("penstock.report") / "templates"
_SCRIPTS = ("data.js", "ticks.js", "plot.js", "timeline.js", "events.js", "heat.js", "tree.js", "page.js")


def write_html(
    findings: Findings,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    title: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the page of `to_html` to a file, wholly or not at all.

    Parameters
    ----------
    findings, title, progress : as in `to_html`
    path : path
        Of the new file.
    overwrite : bool, default False
        Whether a file that is there may be replaced.

    Raises
    ------
    FileExistsError
        If there is a file or a link already, or one appears meanwhile, and `overwrite` is not set.
    """
    refuse_existing([path], overwrite)
    page = to_html(findings, title=title, progress=progress)
    if progress is not None:
        progress(f"writing {os.fspath(path)}")
    write_new(path, [page.encode("utf-8")], overwrite)


def to_html(findings: Findings, *, title: str | None = None, progress: Progress | None = None) -> str:
    """Format findings as one HTML page that needs nothing else: to read in any browser, to print, to hand over.

    Parameters
    ----------
    findings : Findings
        Of `penstock.detect` or `penstock.score`.
    title : str, optional
        The heading; names the source if None.
    progress : callable, optional
        Called with the name of each stage that begins.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from penstock.detection import detect
    >>> table = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=["head", "flow", "<b>"])
    >>> page = to_html(detect(table, top=5), title="Plant 1")
    >>> page.startswith("<!DOCTYPE html>"), "<h1>Plant 1</h1>" in page, "<b>" in page
    (True, True, False)
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # commands that write no page need none

    if progress is not None:
        progress("drawing the report")
    data = _page_data(findings)
    texts = {name: (_TEMPLATES / name).read_text(encoding="utf-8").strip() for name in ("report.css", *_SCRIPTS)}
    style = texts.pop("report.css")
    script = '(function () {\n"use strict";\n' + "\n".join(texts.values()) + "\n})();"
    templates = Environment(
        loader=PackageLoader("penstock.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = templates.get_template("report.html").render(
        _context(findings),
        title=title or f"Findings in {findings.table.source}",
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=Markup(script_json(data)),
        trees=[(tree["mode"], tree["n_rows"], len(tree["weights"]), tree["simplified"]) for tree in data["trees"]],
        heat=data["heat"],
        thinned=data["timeline"]["thinned"],
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # names may hold halves of characters


def _policy(style: str, script: str) -> str:
    """Return a content security policy: nothing may be loaded, and only this very style and this very script count."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") for text in (script, style)
    ]
    return (
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src 'none'; base-uri 'none'; "
        "form-action 'none'"
    ).format(*hashes)


def notebook_html(findings: Findings) -> str:
    """Format findings for a notebook: the verdict, a sentence, and the table of incidents, or else of events."""
    verdict = Markup("<p><strong>{}</strong></p>").format(findings.verdict.sentence)
    table = findings.events if findings.evidence is None else findings.incident_table.sort_values("rank")
    return f"{verdict}<p>{findings_in_words(findings)}</p>{table.to_html(max_rows=20, escape=True)}"


def _page_data(findings: Findings) -> dict[str, Any]:
    """What the script draws from."""
    starts = [rows.start for rows in findings.table.spans]
    axis = make_axis(findings.table.time, len(findings.scores), starts, findings.table.values.index)
    return {
        "axis": axis.packed(),
        "expected": _expected_word(findings),
        "timeline": timeline_data(findings, axis, _listed(findings)),
        "events": {
            number: event_chart_data(findings, axis, number, why.variables["variable"].tolist())
            for number, why in findings.explanations.items()
        },
        "heat": heat_map_data(findings, axis),
        "trees": tree_maps(findings, axis),
    }


def _context(findings: Findings) -> dict[str, Any]:
    """What the template shows by itself."""
    listed = _listed(findings)
    peaks = zip(listed.index, listed["rank"], numbers(listed["peak_score"]), strict=True)
    return {
        "source": findings.table.source,
        "period": period(findings),
        "has_time": findings.table.in_time,
        "group_name": None if findings.table.group is None else str(findings.table.group.name),
        "several_modes": len(findings.parts) > 1,
        "expected_word": _expected_word(findings),
        "by_views": findings.contributions is not None,
        "by_evidence": findings.evidence is not None,
        "rarity_heading": _rarity_heading(findings),
        "summary": make_summary(findings, set(listed.index.tolist())),
        "calendar": make_calendar(findings),
        "cards": [event_card(findings, int(event), peak, printed=rank <= _MOST_PRINTED) for event, rank, peak in peaks],
        "n_events": len(findings.events),
        "n_explained": len(findings.explanations),
        "groups": mode_groups(findings),
        "rules": None if findings.rule_tree is None else draw_rules(findings.rule_tree),
        "columns": column_table(findings),
        "notes": findings.notes,
        "settings": [(name, value) for name, value in findings.settings.items() if value is not None],
    }


def _rarity_heading(findings: Findings) -> str:
    """What the column in place of a severity says; "" for methods without it."""
    headings = {
        "expected_by_chance": "Expected by chance",
        "false_alarm_rate": "Normal rows as high",
        "standing": "Among the rows judged",
    }
    return next((heading for name, heading in headings.items() if name in findings.events), "")


def _expected_word(findings: Findings) -> str:
    return "rebuilt" if findings.rebuilt else "expected"


def _listed(findings: Findings) -> Any:
    return findings.events.sort_values("rank").head(MOST_LISTED).sort_index()
