"""Findings → a page, figures and files. Every function here formats a complete `Findings` record.

`html.py` puts the parts of the page (`overview.py`, `cases.py`, `charts.py`, `preparation.py`) into the template;
`document.py` makes the tables and the JSON document that `files.py` writes. The scripts in `templates/` draw:
`format.js`, `view.js`, `chart.js` and `heatmap.js` take arrays and options, and serve other pages too.
"""

from penstock.report.document import as_csv, as_json, incident_records, plain, summarize
from penstock.report.files import (
    FINDINGS_ENDINGS,
    INCIDENTS_ENDINGS,
    SCORES_ENDINGS,
    check_ending,
    refuse_existing,
    write_findings,
    write_incidents,
    write_new,
    write_scores,
)
from penstock.report.html import chart_data, notebook_html, to_html, write_html

__all__ = [
    "FINDINGS_ENDINGS", "INCIDENTS_ENDINGS", "SCORES_ENDINGS", "as_csv", "as_json", "chart_data", "check_ending",
    "incident_records", "notebook_html", "plain", "refuse_existing", "summarize", "to_html", "write_findings",
    "write_html",
    "write_incidents", "write_new", "write_scores",
]  # fmt: skip
