"""The folder of a job: what tasks leave for each other, and from which a driver that was killed continues.

All results of tasks lie in files, written under another name and then renamed: a task that is run again, after its
worker was lost, finds all its inputs and at worst writes the same bytes once more.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.storage import StorageError, lock

_JOB_FILE = "job.json"
SOURCE_FOLDER = "source"  # a table in memory is written there, before it is known whose job it is


@dataclass(frozen=True)
class Workspace:
    """A folder that the driver and all workers see under the same path."""

    folder: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def claim(self) -> None:
        """Create the folder, for this user alone as it will hold rows; refuse it if it holds anything but a job.

        An existing folder keeps its rights: its owner has decided who may read it.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        entries = {entry.name for entry in self.folder.iterdir() if not entry.name.startswith(".")}
        if _JOB_FILE not in entries and entries - {SOURCE_FOLDER}:
            raise StorageError(f"The folder {self.folder} is not empty and holds no job. Choose another one.")

    def begin(self, job: Mapping[str, Any]) -> None:
        """Make the folder that of this job; refuse it if it holds another's."""
        file = self / _JOB_FILE
        if not file.exists():
            write_json(file, job)
            return
        known = read_json(file)
        different = [
            f"{name} was {known.get(name)!s:.60} and is {job.get(name)!s:.60} now"
            for name in sorted({*known, *job})
            if known.get(name) != job.get(name)
        ]
        if different:
            raise StorageError(
                f"The folder {self.folder} holds another job: {'; '.join(different)}. Choose another folder, or delete "
                f"this one."
            )

    def keep(self, name: str, make: Callable[[], Mapping[str, Any]], *, in_memory: bool = False) -> dict[str, Any]:
        """Return the arrays and numbers of a step of the job, from its folder; a step that is not done yet is done now.

        This is how a job goes on after its driver was lost: what `make` returned once is not made again. Arrays are
        read from their files as they are used, or loaded into memory.
        """
        if not (self / name).exists():
            save_arrays(self / name, make())
        return load_arrays(self / name) if in_memory else open_arrays(self / name)


@contextmanager
def open_workspace(folder: str | Path | None) -> Iterator[Workspace]:
    """Open the folder given, or a temporary one."""
    if folder is not None:
        space = Workspace(Path(folder).resolve())
        space.claim()
        with (space / ".lock").open("w") as stream:  # the lock goes with the process, however it ends
            if not lock(stream.fileno()):
                raise StorageError(f"Another process is at work in the folder {space.folder}.")
            yield space
        return
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as temporary:
        yield Workspace(Path(temporary))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    _replace(path, lambda stream: stream.write(json.dumps(content, indent=1).encode()))


def read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def save_array(path: Path, values: Any) -> None:
    """Save an array as a file of its own, wholly or not at all."""
    _replace(path, lambda stream: np.save(stream, np.ascontiguousarray(values), allow_pickle=False))


def save_arrays(folder: Path, arrays: Mapping[str, Any]) -> None:
    """Save arrays in a folder, a file each; the folder appears when all of them are there."""
    if folder.exists():
        return
    draft = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.tmp")
    draft.mkdir(parents=True)
    try:
        for name, values in arrays.items():
            np.save(draft / f"{name}.npy", np.asarray(values, order="C"), allow_pickle=False)
        draft.rename(folder)
    except OSError:
        if not folder.exists():  # else another run of the same task was quicker, with the same content
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def fields_of(record: Any) -> dict[str, Any]:
    """Return the fields of a record that are not None, as `save_arrays` takes them."""
    found = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: value for name, value in found.items() if value is not None}


def open_array(path: Path) -> Any:
    """Open a saved array, read from the file as it is used.

    Copy-on-write, because kernels are compiled for arrays that can be written to; nothing is.
    """
    try:
        return np.load(path, mmap_mode="c").view(np.ndarray)
    except ValueError:  # an array without entries cannot be mapped
        return np.load(path)


def open_arrays(folder: Path, read: Callable[[Path], Any] = open_array) -> dict[str, Any]:
    """Open the arrays of a folder; what has no dimensions is a plain number."""
    arrays = {file.stem: read(file) for file in sorted(folder.glob("*.npy"))}
    return {name: array if array.ndim else array.item() for name, array in arrays.items()}


def load_arrays(folder: Path) -> dict[str, Any]:
    """Load the arrays of a folder into memory."""
    return open_arrays(folder, np.load)


def create_array(path: Path, shape: tuple[int, ...]) -> None:
    """Create a file for an array of float64 that tasks fill slice by slice; an existing one is kept."""
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    np.lib.format.open_memmap(draft, mode="w+", dtype=np.float64, shape=shape).flush()
    draft.rename(path)


def fill_rows(path: Path, start: int, rows: FloatArray) -> None:
    """Write rows into their place in an array made by `create_array`; repeating it is harmless."""
    offset = np.load(path, mmap_mode="r").offset + start * rows.shape[1] * 8
    with path.open("r+b") as stream:
        stream.seek(offset)
        np.ascontiguousarray(rows, dtype=np.float64).tofile(stream)


def _replace(path: Path, write: Any) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as stream:
            write(stream)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
