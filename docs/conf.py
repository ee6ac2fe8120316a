"""Settings of the site: Sphinx with MyST and the PyData theme. `make docs` builds it into docs/_build/html."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import penstock

project = "Penstock"
author = "The Penstock developers"
project_copyright = "2026, the Penstock developers"
release = version = penstock.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

smartquotes_action = "qe"  # not dashes: options begin with two

html_theme = "pydata_sphinx_theme"
html_title = f"Penstock {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_prev_next": False,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sourcelink = False
man_pages = [("generated/commands", "penstock", "find what is wrong in sensor data", author, 1)]


def skip_inherited(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out members that other packages define."""
    home = getattr(thing, "__module__", None) or getattr(getattr(thing, "fget", None), "__module__", None)
    return True if home is not None and not home.startswith("penstock") else None


def write_commands(app: Any) -> None:
    """Write the page of all commands and options, from the commands themselves."""
    page = Path(__file__).parent / "generated" / "commands.md"
    page.parent.mkdir(exist_ok=True)
    command = ["typer", "penstock.cli", "utils", "docs", "--name", "penstock", "--title", "Commands", "--output"]
    subprocess.run([sys.executable, "-m", *command, str(page)], check=True, capture_output=True)


def setup(app: Any) -> None:
    """Connect to Sphinx."""
    app.connect("builder-inited", write_commands)
    app.connect("autodoc-skip-member", skip_inherited)
