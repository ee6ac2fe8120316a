"""What the worker of a project does: look, detect, export, fit, compare, and what alarms would have been."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.detection import Findings
from penstock.live.alarm_records import RefusedError
from penstock.live.options import AlarmRules, AssetOptions
from penstock.project.compare import compared_in_words
from penstock.project.folder import Project
from penstock.project.notebook import notebook_json
from penstock.project.results import (
    Cures,
    Kept,
    error_document,
    findings_document,
    known_periods,
    look_document,
)
from penstock.project.trial import first_row, past_alarms
from penstock.report import as_csv, chart_data, plain, write_findings, write_html, write_incidents, write_new

EXPORTS = {
    "report": "report.html",
    "incidents": "incidents.csv",
    "findings": "findings.csv",
    "workbook": "findings.xlsx",
    "notebook": "penstock.ipynb",
}
_log = logging.getLogger("penstock.open")
COMPARISON = "comparison.csv"


class Desk:
    """Carry out tasks on a project, with the last table and findings in memory."""

    def __init__(self, project: Project, progress: Callable[[str], None]) -> None:
        self.project, self._progress = project, progress
        self._kept, self._cures = Kept(), Cures()
        self._found: tuple[str, Findings] | None = None

    def carry_out(self, what: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return ("done", answer), or ("failed", what is wrong and the options that may put it right)."""
        try:
            with self._cures.noting():
                return "done", TASKS[what](self, **given)
        except (ValueError, OSError, MemoryError, KeyError) as error:
            return "failed", error_document(error, self._cures)
        except Exception as error:
            _log.exception("A task failed: %s", what)
            message = f"This is a defect of penstock, not of your data: {type(error).__name__}: {error!s:.300}"
            return "failed", {"message": message, "cures": []}

    def sample(self) -> dict[str, Any]:
        self._progress("simulating the sample plant")
        self.project.add_sample()
        return {}

    def look(self) -> dict[str, Any]:
        """Say what is understood, and keep it."""
        key = self.project.key
        data = self.project.look(reader=self._kept.read, checker=self._kept.check, progress=self._progress)
        assert self._kept.table is not None
        document = look_document(data, self._kept.table, self._cures)
        self.project.write_json("look", {"key": key, **document})
        return {"key": key}

    def detect(self) -> dict[str, Any]:
        """Find what is wrong, and keep it."""
        key = self.project.key
        findings = self.findings()
        before = self.project.read_json("findings")
        if before is not None and before.get("source") != findings.table.source:
            before = None
        self._progress("drawing")
        document = findings_document(findings, self.project.labels, before)
        self.project.write_json("charts", {"key": key, **chart_data(findings)})
        self.project.write_json("findings", {"key": key, "source": findings.table.source, **document})
        return {"key": key, "reads": self._kept.reads, "fits": self._kept.fits}

    def findings(self) -> Findings:
        """Return the findings with the settings as they are, computed if they are not known."""
        key = self.project.key
        if self._found is None or self._found[0] != key:
            self._found = None
            self._found = key, self.project.detect(**self._kept.options(), progress=self._progress)
        return self._found[1]

    def export(self, kind: str) -> dict[str, Any]:
        """Write a file to reports/, and return its name."""
        if kind not in EXPORTS:
            raise RefusedError(f"There is no export {kind!r:.40}; there are {', '.join(EXPORTS)}.")
        path = self.project.folder / "reports" / EXPORTS[kind]
        if kind == "notebook":
            write_new(path, [notebook_json(self.project).encode()], overwrite=True)
            return {"name": path.name}
        findings = self.findings()
        self._progress(f"writing {path.name}")
        if kind == "report":
            write_html(findings, path, overwrite=True, title=self.project.name)
        else:
            (write_incidents if kind == "incidents" else write_findings)(findings, path, overwrite=True)
        return {"name": path.name}

    def fit(self) -> dict[str, Any]:
        return {"name": self.project.fit(**self._kept.options(), progress=self._progress).name}

    def compare(self, periods: Sequence[str] = (), units: Sequence[str] = ()) -> dict[str, Any]:
        """Compare two periods, or two units, and keep the result in reports/."""
        found = self.project.compare(periods=periods, units=units, reader=self._kept.read, progress=self._progress)
        write_new(self.project.folder / "reports" / COMPARISON, [as_csv(found).encode()], overwrite=True)
        return {"sentence": compared_in_words(found), "tags": plain(found)}

    def past(self, model: str, rules: Mapping[str, Any]) -> dict[str, Any]:
        """Say what a live service with this model and these rules would have done."""
        chosen = AlarmRules(**rules)
        chosen.check()
        table = self.project.table(reader=self._kept.read, progress=self._progress)
        marks = known_periods(self.project.labels, self.project.failures, table)
        self._progress("scoring row by row")
        return past_alarms(table, self.project.model(model), chosen, marks)

    def test_input(self, asset: AssetOptions, posted: str | None = None) -> dict[str, Any]:
        """Read a source as the live service would, and return the first row as it was understood."""
        self._progress("waiting for the first row")
        return first_row(asset, None if posted is None else posted.encode())


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    name: getattr(Desk, name) for name in ("sample", "look", "detect", "export", "fit", "compare", "past", "test_input")
}
