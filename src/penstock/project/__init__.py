"""A search for faults as a folder, and the page that works on it: `penstock open`.

Files and what people say come in, settings, labels, models and reports in one folder go out. The one idea: the page
never knows more than the files, so that `penstock detect --config`, `fit` and `serve` go on where it ended.

`folder.py` is the folder, `results.py` what is shown of it, `tasks.py` the work, `worker.py` the process that does it.
`compare.py` compares periods and units, `trial.py` tries a live service before there is one, `uploads.py` takes files,
`web.py` serves the page, and `notebook.py` writes the same steps for others to run.
"""

from penstock.project.compare import compare_periods, compare_units, unit_tables, units_of
from penstock.project.folder import Project, opened_project
from penstock.project.notebook import live_files, notebook_json
from penstock.project.results import what_changed
from penstock.project.trial import first_row, past_alarms
from penstock.project.uploads import UploadLimits

__all__ = [
    "Project", "UploadLimits", "compare_periods", "compare_units", "first_row",
    "live_files", "notebook_json", "opened_project", "past_alarms", "unit_tables", "units_of", "what_changed",
]  # fmt: skip
