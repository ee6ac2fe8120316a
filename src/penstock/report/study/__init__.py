"""Results of a study → one HTML page, and Markdown with pictures.

What is said is written once, as a list of blocks (`blocks.py`) that the sections make (`sections_*.py`, in the order of
`compose.py`); `page.py` and `markdown.py` render them. Drawings are SVG, one file each (`draw_*.py`).
"""

from penstock.report.study.write import to_html, to_markdown, write_study

__all__ = ["to_html", "to_markdown", "write_study"]
