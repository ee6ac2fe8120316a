"""Write and read snapshots of a watch: one that was killed goes on from the newest sound snapshot."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from penstock.storage import StorageError, lock, read_state, remove_leftovers, write_state

_KIND = "snapshot"
_KEPT = 3  # snapshots: the older ones are for the case that the newest is damaged
_NAME = re.compile(r"snapshot-\d+\.penstock")
T = TypeVar("T")


class SnapshotError(ValueError):
    """A snapshot, or a folder of them, cannot be used; the message says why."""


class Snapshots:
    """A folder of snapshots that belongs to one running watch at a time.

    folder : made if it is not there, and locked until `close` or any end of the process.
    every : a snapshot is due after so many samples.
    seconds : it is also due after so many seconds, if there were any samples.
    clock : returns seconds.
    """

    def __init__(
        self, folder: Path, *, every: int = 50_000, seconds: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder, self._every, self._seconds, self._clock = folder, every, seconds, clock
        self.continue_at(0)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise SnapshotError(f"--state {folder}: a folder is needed, but that is a file, or in one.") from None
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        if not lock(self._lock):
            os.close(self._lock)
            raise SnapshotError(
                f"Another penstock watch is using --state {folder}. Stop it first, or give each its own folder."
            )
        remove_leftovers(folder)

    def files(self) -> list[Path]:
        """Return all snapshots, newest first."""
        named = [path for path in self._folder.iterdir() if _NAME.fullmatch(path.name)]
        return sorted(named, key=_number, reverse=True)

    def newest(self, restore: Callable[[dict[str, Any]], T], report: Callable[[str], None]) -> T | None:
        """Return what `restore` makes of the newest sound snapshot; None if there are no snapshots at all.

        `restore` raises a SnapshotError for a state that cannot be used, which is then reported. It is an error if none
        of the snapshots can be used: starting over would lose what was learnt.
        """
        problems: dict[str, Path] = {}
        for path in self.files():
            try:
                restored = restore(read_state(path, _KIND)[1])
            except (StorageError, SnapshotError) as error:
                problems.setdefault(str(error).removeprefix(f"Cannot read {path}: "), path)
                continue
            for reason, bad in problems.items():
                report(f"{bad} is passed over: {reason}")
            return restored
        if not problems:
            return None
        reasons = " ".join(f"{path.name}: {reason}" for reason, path in problems.items())
        raise SnapshotError(
            f"No snapshot in {self._folder} can be used. {reasons} Put right what differs, or begin with an empty "
            f"--state folder."
        )

    def write(self, state: dict[str, Any], samples: int) -> None:
        """Write a snapshot, and remove those that are too old."""
        files = self.files()
        number = _number(files[0]) + 1 if files else 1
        try:
            write_state(self._folder / f"snapshot-{number:06}.penstock", _KIND, state)
        except OSError as error:
            raise SnapshotError(f"A snapshot cannot be written to {self._folder}: {error.strerror}.") from error
        for old in files[_KEPT - 1 :]:
            old.unlink(missing_ok=True)
        self.continue_at(samples)

    def continue_at(self, samples: int) -> None:
        """Count samples and seconds to the next snapshot from here."""
        self._last_samples, self._last_time = samples, self._clock()

    def room(self, samples: int) -> int:
        """Return how many samples may come until the next snapshot is due."""
        return max(1, self._last_samples + self._every - samples)

    def due(self, samples: int) -> bool:
        """Return whether a snapshot is due after so many samples."""
        new = samples - self._last_samples
        return new >= self._every or (new > 0 and self._clock() - self._last_time >= self._seconds)

    def close(self) -> None:
        os.close(self._lock)


def differences(saved: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the settings that are not the same, in words; "" if all are."""
    names = [name for name in sorted({*saved, *now}) if saved.get(name) != now.get(name)]
    shown = [["not set" if value is None else repr(value) for value in (saved.get(n), now.get(n))] for n in names]
    return "; ".join(f"{name} was {before}, is {after}" for name, (before, after) in zip(names, shown, strict=True))


def _number(path: Path) -> int:
    return int(path.stem.removeprefix("snapshot-"))
