"""Small tables for the tests of `penstock watch`."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from penstock.cli import main

NAMES = ("flow", "head", "power", "speed")


def rows(n: int = 400, seed: int = 0) -> np.ndarray:
    """Two latent groups, a little noise, and every 97th row off in the third column."""
    rng = np.random.default_rng(seed)
    values = rng.random((n, 2)) @ rng.random((2, len(NAMES))) + 0.01 * rng.random((n, len(NAMES)))
    values[96::97, 2] += 5.0
    return np.round(values, 5)


def as_csv(values: np.ndarray, start: int = 0) -> str:
    """With a time column t0, t1, …, and empty fields for NaN."""
    lines = [",".join(("time", *NAMES))]
    for number, row in enumerate(values.tolist(), start):
        lines.append(",".join([f"t{number}", *("" if np.isnan(value) else repr(value) for value in row)]))
    return "\n".join(lines) + "\n"


def lines_of(path: Path | None) -> list[dict[str, Any]]:
    """Return the lines of a file of JSON."""
    return [json.loads(line) for line in Path(str(path)).read_text().splitlines()]


def committed(state: Path | str | None) -> dict[str, Any] | None:
    """Return what is committed in the folder --state: samples, and positions by name; None if there is nothing yet."""
    file = Path(str(state)) / "watch.db"
    if not file.exists():
        return None
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)) as store:
        try:
            rows = store.execute("SELECT rows FROM assets").fetchall()
            positions = {name: json.loads(place) for name, place in store.execute("SELECT name, position FROM inputs")}
        except sqlite3.OperationalError:  # its tables are not there yet
            return None
    return {"samples": rows[0][0], **positions} if rows else None


def fork_main(command: list[str], errors: Path) -> int:
    """Carry out a command of penstock in a fork of this process, with its errors in a file; return its number."""
    process = os.fork()
    if not process:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        code = 99
        try:
            code = main(command)
        finally:
            os._exit(code)
    return process


def a_pipe(text: str) -> Path:
    """A path that can be read once: a pipe that holds the text (up to 64 KB) and is closed at the other end."""
    reading, writing = os.pipe()
    assert os.write(writing, text.encode()) == len(text.encode())
    os.close(writing)
    return Path(f"/dev/fd/{reading}")
