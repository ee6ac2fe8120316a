"""Findings → a page for people: one HTML file that needs nothing else, to read, to print and to hand over.

Each part of the page has a file that makes its words and data (`timeline.py`, `calendar.py`, `event_cards.py` …);
`html.py` puts them into the template, with the style and the script in `templates/`.
"""

from penstock.report.html import to_html, write_html

__all__ = ["to_html", "write_html"]
