"""The steps of a project as a notebook and as the files that run it for good: the same, without the page."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from penstock.live.options import AlarmRules, AssetOptions, ServeOptions
from penstock.options import LookOptions, described
from penstock.project.folder import LIVE, Project, flag_of, toml_value

_UNIT = """[Unit]
Description=Penstock live monitoring of {name}
After=network-online.target

[Service]
WorkingDirectory={folder}
ExecStart="{program}" serve --config live.toml
Restart=always
RestartSec=2
SuccessExitStatus=143
NoNewPrivileges=yes
PrivateTmp=yes

[Install]
WantedBy=multi-user.target
"""


def notebook_json(project: Project) -> str:
    """Return the steps of a project as a Jupyter notebook that runs as it is.

    Examples
    --------
    >>> import tempfile
    >>> project = Project(tempfile.mkdtemp())
    >>> project.add_sample()
    >>> "penstock.detect(source, **options)" in notebook_json(project)
    True
    """
    sources = project.sources
    source = sources[0] if len(sources) == 1 else sources
    options = {name: str(value) if isinstance(value, Path) else value for name, value in project.options().items()}
    only_look = [name for name in options if name in {each for each, _, _ in described(LookOptions)}]
    lines = ["options = {", *(f"    {name!r}: {value!r}," for name, value in options.items()), "}"]
    cells = [
        _cell("markdown", f"# {project.name}\n\nThe steps of the project in `{project.folder}`."),
        _cell("code", "\n".join(["import penstock", "", f"source = {source!r}", *lines])),
        _cell("markdown", "## What is understood of the data"),
        _cell("code", f"data = penstock.look(source, **{{name: options[name] for name in {only_look!r}}})\n" + _DOUBTS),
        _cell("markdown", "## What is wrong"),
        _cell("code", "findings = penstock.detect(source, **options)\nfindings"),
        _cell("code", "findings.incident_table"),
        _cell("markdown", "## A model for new data"),
        _cell("code", "model = penstock.fit_model(source, **options)\nmodel"),
    ]
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"language_info": {"name": "python"}}, "cells": cells}
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return json.dumps(book, indent=1)


_DOUBTS = "for doubt in data.doubts:\n    print(doubt)\ndata.time, data.roles"


def _cell(kind: str, text: str) -> dict[str, Any]:
    code: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True), **code}


def live_files(project: Project, options: ServeOptions) -> dict[str, str]:
    """Write live.toml, and return it with the command and the systemd unit that run it for good."""
    lines = [f"{name} = {toml_value(value)}" for name, value in _changed(options, ServeOptions, project)]
    lines += [f"{name} = {toml_value(value)}" for name, value in _changed(options.rules, AlarmRules, project)]
    for name, asset in options.assets.items():
        lines += ["", f"[asset.{toml_value(name)}]"]
        lines += [f"{key} = {toml_value(value)}" for key, value in _changed(asset, AssetOptions, project)]
    text = "\n".join(lines) + "\n"
    project.write_text(LIVE, text)
    # As systemd reads paths: % begins a name of its own, and a program is in quotes.
    folder = str(project.folder).replace("%", "%%").replace("\n", " ")
    program = str(Path(sys.executable).with_name("penstock")).replace("%", "%%")
    program = re.sub(r'(["\\])', r"\\\1", program).replace("$", "$$")
    unit = _UNIT.format(name=project.name, folder=folder, program=program)
    return {
        "toml": text,
        "command": f"cd {shlex.quote(str(project.folder))} && penstock serve --config {LIVE}",
        "unit": unit,
    }


def _changed(options: Any, kind: type, project: Project) -> list[tuple[str, Any]]:
    """Return the options that are not what they are by default, as TOML names them; paths from the folder."""
    found = []
    for name, default, option in described(kind):
        value = getattr(options, name)
        if value != default and value not in (None, ()):
            if isinstance(value, Path) and value.is_relative_to(project.folder):
                value = value.relative_to(project.folder)
            found.append((flag_of(option).lstrip("-"), value))
    return found
