"""What all our pages share: templates that escape, and a policy that keeps a page from loading or running anything."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def environment() -> Environment:
    """Of the templates next to this file; what is put into one is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # commands that write no page need none

    loader = PackageLoader("penstock.report", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def template_text(name: str) -> str:
    """A style or a script, as it goes into a page."""
    return (resources.files("penstock.report") / "templates" / name).read_text(encoding="utf-8").strip()


def policy(style: str, script: str | None = None) -> str:
    """Nothing may be loaded, and only this very style, and this very script if there is one, count.

    >>> policy("p { margin: 0 }")
    "default-src 'none'; style-src 'sha256-...='; img-src 'none'; base-uri 'none'; form-action 'none'"
    """
    scripts = [] if script is None else [f"script-src '{digest(script)}'"]
    styles = f"style-src '{digest(style)}'"
    others = ["img-src 'none'", "base-uri 'none'", "form-action 'none'"]
    return "; ".join(["default-src 'none'", *scripts, styles, *others])


def digest(text: str) -> str:
    """As browsers compute it.

    >>> digest("alert(1)")
    'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='
    """
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
