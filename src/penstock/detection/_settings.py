"""What was asked for and what it ran on: enough to repeat it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import fields
from importlib.metadata import version
from typing import Any

import penstock
from penstock._messages import listed
from penstock.columns import InputChoice, RowRule
from penstock.detection._preparing import Reading
from penstock.io import Table

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pandas")
_MOST_NAMES, _FIRST_NAMES = 20, 5


def describe_run(table: Table, inputs: InputChoice, detector: Any) -> dict[str, Any]:
    """What was learnt from, and by what: plain texts and numbers, by name."""
    return {
        "source": table.source,
        "rows": len(table.values),
        "inputs": len(inputs.names),
        "detector": " ".join(repr(detector).split()),
    }


def describe_reading(reading: Reading) -> dict[str, Any]:
    """How the source was read, where that is not the default."""
    given = {field.name: getattr(reading, field.name) for field in fields(reading) if field.name != "max_bytes"}
    return {
        name: shown_names(value) if isinstance(value, tuple) else shown(value)
        for name, value in given.items()
        if value != getattr(_DEFAULTS, name)
    }


def describe_training(until: Any, rule: RowRule | None) -> str:
    if rule is not None:
        return f"rows where {rule}"
    return "all rows" if until is None else f"until {until}"


def describe_versions() -> dict[str, str]:
    return {
        "penstock": penstock.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }


def shown(value: Any) -> bool | int | float | str | None:
    """A value that can be written into any file: as it is, or as text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def shown_names(names: Sequence[str]) -> str | None:
    """Names as text; of many their number and the first few; None for none.

    >>> shown_names(["flow", "head"]), shown_names([]), shown_names([f"s{n}" for n in range(30)])
    ("'flow', 'head'", None, "30: 's0', 's1', 's2', 's3', 's4' and 25 more")
    """
    if len(names) > _MOST_NAMES:
        return f"{len(names):,}: {listed(names, most=_FIRST_NAMES)}"
    return listed(names, most=_MOST_NAMES) or None


_DEFAULTS = Reading()
