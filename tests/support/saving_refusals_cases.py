"""What several tests of detectors share: taken from those of saving refusals."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock.storage import StorageError, read_state


def places(content: Any) -> list[tuple[Any, ...]]:
    """The ways to everything in a state."""
    if not isinstance(content, dict):
        return [()]
    return [(), *((key, *way) for key in content for way in places(content[key]))]


WRONG: list[Any] = [None, True, -7, 10**30, float("nan"), float("inf"), -1.5, "x", "", [], {}, {"type": "x"}, [[1]]]


def wrong_values(value: Any) -> list[Any]:
    """Values that do not fit where `value` was."""
    wrong = [other for other in WRONG if type(other) is not type(value) or isinstance(other, float)]
    if isinstance(value, dict):
        return [*wrong, value | {"more": 1}, *({k: v for k, v in value.items() if k != key} for key in value)]
    if not isinstance(value, np.ndarray):
        return wrong
    wrong += [value[..., None], value[:-1], np.concatenate([value, value[:1]]), value.astype(np.float32), value[:0]]
    for bad in (-1, 10**9) if value.dtype.kind == "i" else (np.nan, np.inf, -np.inf):
        spoiled = value.copy()
        if spoiled.size and value.dtype.kind in "if":
            spoiled.flat[-1] = bad
            wrong.append(spoiled)
    return wrong


def changed(state: Any, way: tuple[Any, ...], value: Any) -> Any:
    if not way:
        return value
    copied = dict(state)
    copied[way[0]] = changed(state[way[0]], way[1:], value)
    return copied


def at(state: Any, way: tuple[Any, ...]) -> Any:
    return at(state[way[0]], way[1:]) if way else state


def refuse_or_work(
    saved: Path, monkeypatch: pytest.MonkeyPatch, works: Callable[[Any], None], below: tuple[str, ...] = ()
) -> tuple[int, set[tuple[Any, ...]]]:
    """Replace every part of a saved state in turn by what does not belong there: how often it is refused, where not.

    What is taken (another value of a parameter, say, or no labels) must work.
    """
    kind, sound = read_state(saved)
    refused, taken = 0, set()
    for way in places(at(sound, below)):
        for value in wrong_values(at(sound, below + way)):
            state = changed(sound, below + way, value)
            monkeypatch.setattr("penstock.detection._model_files.read_state", lambda *_, state=state: (kind, state))
            try:
                loaded = penstock.load("file")
            except StorageError:
                refused += 1
                continue
            taken.add(way)
            works(loaded)
    return refused, taken


def spoiled(state: dict[str, Any], way: str, change: Any) -> dict[str, Any]:
    result = copy.deepcopy(state)
    *path, last = way.split("/")
    part = at(result, tuple(path))
    part[last] = change(part[last]) if callable(change) else change
    return result
