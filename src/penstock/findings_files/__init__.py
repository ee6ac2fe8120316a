"""Findings → files: a list for people, a document for programs, and the scores of all rows.

What goes into a table is chosen in `_tables.py` and into a document in `_document.py`; `_cells.py` and `_plain.py` say
how values are written. Every file is written wholly or not at all.
"""

from penstock.findings_files._document import summarize
from penstock.findings_files._explained import events_to_explain
from penstock.findings_files._paths import FINDINGS_ENDINGS, SCORES_ENDINGS, check_ending, refuse_existing, write_new
from penstock.findings_files._plain import as_json, plain
from penstock.findings_files.write import write_findings, write_scores

__all__ = [
    "FINDINGS_ENDINGS",
    "SCORES_ENDINGS",
    "as_json",
    "check_ending",
    "events_to_explain",
    "plain",
    "refuse_existing",
    "summarize",
    "write_findings",
    "write_new",
    "write_scores",
]
