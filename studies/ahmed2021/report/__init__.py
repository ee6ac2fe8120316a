"""Write the report of the study: one HTML page, and Markdown with figures.

What is said is written once, as a list of blocks (`pages.py`) that the sections make (`sections_*.py`, in the order of
`write.py`). Figures are drawn by matplotlib (`figures.py`).
"""

from studies.ahmed2021.report.write import to_html, to_markdown, write_study

__all__ = ["to_html", "to_markdown", "write_study"]
