"""Formats: which one is written, and how older ones are brought up to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.storage._errors import StorageError

FORMAT_VERSION = 1

# From each older format the step to the next: it gets the kind and the state and returns the state. A change of what a
# detector stores raises FORMAT_VERSION and adds a step; tests/golden has files of every format to prove it.
Upgrade = Callable[[str, dict[str, Any]], dict[str, Any]]
UPGRADES: dict[int, Upgrade] = {}


def upgrade(version: int, kind: str, state: dict[str, Any]) -> dict[str, Any]:
    """A state of an older format as one of today's."""
    while version < FORMAT_VERSION:
        if version not in UPGRADES:
            raise StorageError(f"it has format {version}, which this version of penstock no longer reads")
        state = UPGRADES[version](kind, state)
        version += 1
    return state
