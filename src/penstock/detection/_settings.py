"""What was asked for and what it ran on: enough to repeat it."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import penstock
from penstock.column_check import InputChoice
from penstock.detection.modes import ModePlan
from penstock.row_rules import RowRule
from penstock.tables import Table

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pandas")


def describe_settings(
    table: Table, inputs: InputChoice, detector: Any, modes: ModePlan, train_until: Any, train_rule: RowRule | None
) -> dict[str, Any]:
    """Plain texts and numbers, by name."""
    return {
        "source": table.source,
        "rows": len(table.values),
        "inputs": len(inputs.names),
        "detector": " ".join(repr(detector).split()),
        "modes": str(modes) or None,
        "training": _training(train_until, train_rule),
        "penstock": penstock.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }


def _training(until: Any, rule: RowRule | None) -> str:
    if rule is not None:
        return f"rows where {rule}"
    return "all rows" if until is None else f"until {until}"
