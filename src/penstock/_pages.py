"""Fill the templates of pages: names and texts are escaped, and a name that a template lacks is an error."""

from __future__ import annotations

from typing import Any


def fill_template(room: str, name: str, values: dict[str, Any]) -> str:
    """Return the template `name` of a room, such as "report", with its values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # commands that write no page need none

    templates = Environment(
        loader=PackageLoader(f"penstock.{room}", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template(name).render(values)
