"""Detectors of a user's own for trying studies: each fit is recorded in a file, and some of them do harm."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.bench.methods import OURS
from penstock.bench.settings import Study, parse_settings

MODULE = '''
"""Detectors of my own."""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from penstock._threads import thread_count

HERE = Path(__file__).parent


class Noted:
    """How far from the origin, with a little chance in it."""

    def __init__(self, power=1.0, random_state=None):
        self.power = power
        self.random_state = random_state

    def fit(self, X):
        words = [type(self).__name__, self.power, self.random_state, len(X), os.getpid(), os.getppid()]
        with (HERE / "fits.txt").open("a") as file:
            file.write(" ".join(map(str, words)) + "\\n")
        print("this goes nowhere")
        self.act()
        chance = np.random.default_rng(self.random_state or 0).random(len(X))
        self.scores_ = np.linalg.norm(X, axis=1) ** self.power + 0.3 * chance
        return self

    def act(self):
        pass


class Sure(Noted):
    def __init__(self, power=1.0):
        super().__init__(power)


class Sleeps(Noted):
    def act(self):
        time.sleep(self.power)


class Waits(Sure):
    def act(self):
        while not (HERE / "mended").exists():
            time.sleep(0.02)


class Raises(Sure):
    def act(self):
        if not (HERE / "mended").exists():
            raise ArithmeticError("it is broken")


class Kills(Sure):
    def act(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Crashes(Sure):
    def act(self):
        ctypes.string_at(0)


class Leaves(Sure):
    def act(self):
        sys.exit(5)


class KillsItsParent(Sure):
    def act(self):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)


class Looks(Sure):
    """At the threads that it may use."""

    def act(self):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PENSTOCK_THREADS")
        seen = [os.environ[name] for name in names] + [str(thread_count())]
        (HERE / "threads.txt").write_text(" ".join(seen))
'''


def write_module(folder: Path, name: str = "my_detectors") -> Path:
    path = folder / f"{name}.py"
    path.write_text(MODULE)
    return path


def write_data(path: Path, n: int = 40, seed: int = 0, anomalies: int = 5) -> str:
    rows = np.random.default_rng(seed).random((n, 3))
    rows[:anomalies] += 0.4
    lines = [",".join([*(f"{value:.6f}" for value in row), str(int(k < anomalies))]) for k, row in enumerate(rows)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["a,b,c,outlier", *lines, ""]))
    return str(path)


@dataclass(frozen=True)
class Place:
    """A folder with a module of detectors on the path, and data."""

    folder: Path

    def study(self, methods: str, datasets: list[str] | None = None, **more: Any) -> Study:
        """Methods as lines of name, detector and what else there is: 'sure Sure parameters = {power = 2}'."""
        entries = ""
        for line in methods.strip().splitlines():
            name, detector, *rest = line.split(maxsplit=2)
            path = detector if "." in detector or detector in OURS else f"my_detectors.{detector}"
            entries += f"[[method]]\nname = '{name}'\ndetector = '{path}'\n" + "".join(rest).replace("; ", "\n") + "\n"
        sets = datasets if datasets is not None else [str(self.folder / "one.csv")]
        settings = {"datasets": sets, "seeds": [0, 1], "time_limit": 60} | more
        head = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
        return parse_settings(head + entries)

    def file(self, name: str) -> str:
        return str(self.folder / name)


@contextmanager
def made_place(folder: Path) -> Iterator[Place]:
    """A place with the module and the file one.csv; the module is forgotten afterwards, as before."""
    write_module(folder)
    write_data(folder / "one.csv")
    earlier = sys.modules.pop("my_detectors", None)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield Place(folder)
    sys.modules.pop("my_detectors", None)
    if earlier is not None:
        sys.modules["my_detectors"] = earlier


def fits(folder: Path) -> list[list[str]]:
    """Of each fit: the detector, its parameter, seed and number of rows, its process and the one above it."""
    file = folder / "fits.txt"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []
