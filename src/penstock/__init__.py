"""Anomaly detection with neighbourhood-structure-assisted NMF."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock._types import Tree as Tree
    from penstock.graph.mst import minimum_spanning_tree as minimum_spanning_tree

# Names load on first use, so that `import penstock` stays quick.
_HOMES = {
    "Tree": "penstock._types",
    "minimum_spanning_tree": "penstock.graph.mst",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
