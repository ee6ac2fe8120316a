"""The defaults of the detector, for `--help`."""

from __future__ import annotations

import ast
from pathlib import Path

import penstock


def detector_defaults() -> dict[str, str]:
    """The default of each parameter of `OnlineNSNMF`, from its source: importing it would take seconds.

    >>> detector_defaults()["buffer_size"]
    '20'
    """
    source = Path(penstock.__file__).with_name("detectors") / "online.py"
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and node.name == "OnlineNSNMF":
            made = next(part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__")
            names = [argument.arg for argument in made.args.args[-len(made.args.defaults) :]]
            return dict(zip(names, map(ast.unparse, made.args.defaults), strict=True))
    raise AssertionError("OnlineNSNMF has moved")
