"""Fit a `SensorDetector` to rows in order of time that lie in a folder: tasks go through blocks of them.

The code is that of one machine (`penstock.sensors`), which goes through rows by `ClusterBlocks` here. Arrays of n rows
and many columns are files in the job's folder; vectors of n numbers are on the driver. Each step leaves its result in
the folder, so that a fit that was cut short goes through its finished steps again without doing them.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.detectors import ClusterPlan, SensorDetector, read_runs, read_time
from penstock.graph.rows import shares_seen
from penstock.io import TableError
from penstock.scale.cluster import Cluster
from penstock.scale.plan import check_disk, check_memory_of_driver, room_for_a_task
from penstock.scale.rows import Extent, PieceLayout, joint_extent, lay_rows, measure
from penstock.scale.sources import Source
from penstock.scale.workspace import Workspace, create_array, fill_rows, save_array
from penstock.sensors.blocks import join_blocks, use_block_backend, widened
from penstock.storage import StorageError

_BLOCKS_PER_THREAD = 3
_FEWEST_ROWS = 256
_COUNTS_AS = 4  # components: what the driver keeps of each row
_COPIES = 16  # of a block, at most, that a task holds


def order_digest(time: Any, runs: Any) -> str:
    """Return a text that differs if the times or runs of the rows do."""
    parts = [b"" if each is None else np.asarray(each).astype("U").tobytes() for each in (time, runs)]
    return hashlib.blake2b(b"|".join(parts), digest_size=16).hexdigest()


def fit_series(
    cluster: Cluster, space: Workspace, detector: SensorDetector, steps: ClusterPlan, source: Source, table: Any,
    time: Any, runs: Any, *, keeps_files: bool,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Fit all but the threshold; return the scores of the training rows and the share of readings of each."""
    extents = measure(cluster, space, source, takes_missing=True)
    extent = joint_extent(extents)
    empty = np.flatnonzero(np.isnan(extent.minimum))
    if len(empty):
        name = empty[0] if source.columns is None else repr(source.columns[empty[0]])
        raise TableError(f"Column {name} has no reading at all. Leave out such columns.")
    seconds, labels = read_time(table, time, extent.n_rows), read_runs(runs, extent.n_rows)
    _check_order(source, extents, seconds, labels)
    size = extent.n_rows, 2 * source.n_columns, _COUNTS_AS
    check_memory_of_driver(*size, keeps_files=keeps_files)
    if not (space / "laid").exists():
        check_disk(space.folder, *size)
    steps.begin(extent.n_rows, extent.minimum, extent.maximum, source.columns)
    rows = _opened(lay_rows(cluster, space, source, extents, PieceLayout(source.columns, takes_missing=True)))
    blocks = ClusterBlocks(cluster, space, *rows.shape)
    if not isinstance(detector.random_state, int):  # another seed each time: steps that follow from it differ
        shutil.rmtree(blocks.folder, ignore_errors=True)
    with use_block_backend(blocks):
        scores = steps.install(rows, seconds, labels)
        seen = join_blocks(shares_seen, rows)
    _check_there(detector.evidence_)
    blocks.keeps_files = True  # of the evidence, all others are gone
    if not keeps_files:
        detector.evidence_ = np.array(detector.evidence_)
    return scores, seen


def _check_order(source: Source, extents: Sequence[Extent], time: FloatArray | None, runs: Any) -> None:
    """Refuse pieces that are not in order of time: their rows would be taken as they come."""
    ends = np.cumsum([extent.n_rows for extent in extents])
    for number in range(1, len(ends)):
        last, first = int(ends[number - 1]) - 1, int(ends[number - 1])
        if time is None or not 0 <= last < first < len(time) or time[first] >= time[last]:
            continue
        if runs is None or runs[first] == runs[last]:
            raise TableError(
                f"{source.pieces[number].label} begins before {source.pieces[number - 1].label} ends (by its time). "
                f"Pieces must come in order of time: sort the source, or say by runs= which rows belong together."
            )


def _opened(file: Path) -> FloatArray:
    """Open an array in a file; what is written to it is written to the file."""
    opened: FloatArray = np.load(file, mmap_mode="r+", allow_pickle=False).view(np.ndarray)
    return opened


def _file_of(array: Any) -> Path | None:
    """Return the file of an array that `_opened` has opened, None of any other."""
    mapped = array.base
    if isinstance(mapped, np.memmap) and mapped.filename is not None and array.shape == mapped.shape:
        return Path(mapped.filename)
    return None


def _check_there(array: FloatArray) -> None:
    """Raise if an array stands for a file that is gone, which none but finished steps should need."""
    if array.ndim == 2 and array.strides == (0, 0) and array.size > 1:
        raise StorageError("A file of this job is gone from its folder. Delete the folder, and fit anew.")


class ClusterBlocks:
    """Go through blocks of rows by tasks; see `penstock.sensors.blocks.LocalBlocks`, whose methods these are."""

    def __init__(self, cluster: Cluster, space: Workspace, n: int, p: int) -> None:
        self._space = Workspace(space / "steps")
        self.cluster, self.folder, self.n = cluster, self._space.folder, n
        self.folder.mkdir(exist_ok=True)
        room = room_for_a_task(cluster) / (8 * p * _COPIES)
        fair = math.ceil(n / (_BLOCKS_PER_THREAD * cluster.n_threads))
        self.n_rows = max(_FEWEST_ROWS, min(fair, n if math.isinf(room) else int(max(room, 0))))
        self._steps = 0
        self.keeps_files = False

    def each(self, work: Any, arrays: tuple[Any, ...], *, apart: bool = False) -> list[Any]:
        def do(step: Path) -> list[Any]:
            files = self._files(step, arrays)
            return self._run(work, do_block, [(work, files, rows.start, rows.stop) for rows in self._blocks()])

        return self._once(do)[1]

    def around(self, work: Any, arrays: tuple[Any, ...], around: int) -> list[Any]:
        def do(step: Path) -> list[Any]:
            files, tasks = self._files(step, arrays), []
            for rows in self._blocks():
                wide, inner = widened(rows, around, self.n)
                tasks.append((partial(work, inner), files, wide.start, wide.stop))
            return self._run(work, do_block, tasks)

        return self._once(do)[1]

    def fill(self, columns: int, work: Any, arrays: tuple[Any, ...], into: Any) -> FloatArray:
        def do(step: Path) -> list[Any]:
            files, out = self._files(step, arrays), self._created(step, columns)
            self._run(work, fill_block, [(work, files, rows.start, rows.stop, out) for rows in self._blocks()])
            return []

        return self._mapped(self._once(do)[0], columns)

    def follow(self, columns: int, work: Any, state: Any, arrays: tuple[Any, ...], into: Any) -> tuple[FloatArray, Any]:
        def do(step: Path) -> list[Any]:
            files, out, now = self._files(step, arrays), self._created(step, columns), state
            for rows in self._blocks():  # one after the other, as each needs what the one before has left
                (now,) = self._run(work, follow_block, [(work, now, files, rows.start, rows.stop, out)])
            return [now]

        step, (last,) = self._once(do)
        return self._mapped(step, columns), last

    def each_column(self, work: Any, arrays: tuple[Any, ...], vectors: tuple[Any, ...]) -> list[Any]:
        def do(step: Path) -> list[Any]:
            files, p = self._files(step, (*arrays, *vectors)), arrays[0].shape[1]
            groups = np.array_split(np.arange(p), min(p, _BLOCKS_PER_THREAD * self.cluster.n_threads))
            found = self._run(work, do_columns, [(work, files, len(arrays), group) for group in groups])
            return [each for group in found for each in group]

        return self._once(do)[1]

    def take(self, array: Any, places: Any) -> FloatArray:
        found: FloatArray = self._once(lambda step: [np.array(array[places])])[1][0]
        return found

    def _once(self, do: Callable[[Path], list[Any]]) -> tuple[Path, list[Any]]:
        """Do the next step, unless it is done; return its folder, and what it returned."""
        self._steps += 1
        step = self.folder / f"{self._steps:04d}"

        def make() -> dict[str, Any]:
            arrays = {}
            for number, each in enumerate(do(step)):
                kind = "several" if isinstance(each, tuple) else "one"
                for place, value in enumerate(each if isinstance(each, tuple) else (each,)):
                    arrays[f"{number:06d}-{place}-{kind}"] = value
            return arrays

        kept = self._space.keep(step.name, make, in_memory=True)
        for file in self.folder.glob(f"{step.name}-*.npy"):  # what `_files` wrote for its tasks
            file.unlink()
        return step, _unpacked(kept)

    def _created(self, step: Path, columns: int) -> Path:
        create_array(step.with_suffix(".npy"), (self.n, columns))
        return step.with_suffix(".npy")

    def _blocks(self) -> list[slice]:
        return [slice(start, min(start + self.n_rows, self.n)) for start in range(0, self.n, self.n_rows)]

    def _files(self, step: Path, arrays: tuple[Any, ...]) -> list[Path]:
        """Return the files of arrays; those in memory are written now."""
        files = []
        for number, array in enumerate(arrays):
            _check_there(array)
            file = _file_of(array)
            if file is None:
                file = step.with_name(f"{step.name}-{number}.npy")
                save_array(file, array)
            files.append(file)
        return files

    def _run(self, work: Any, task: Any, tasks: list[Any]) -> list[Any]:
        name = getattr(getattr(work, "func", work), "__name__", "rows").strip("_").replace("_", " ")
        try:
            return self.cluster.run(f"step {self._steps}, {name}", task, tasks)
        except BaseException:
            self.keeps_files = True  # they are still needed, by the next run
            raise

    def _mapped(self, step: Path, columns: int) -> FloatArray:
        """Open the array of a step, whose file goes when it is no longer used; steps that used it are done then."""
        file = step.with_suffix(".npy")
        if not file.exists():
            return np.broadcast_to(np.nan, (self.n, columns))  # see `_check_there`
        array = _opened(file)
        weakref.finalize(array.base, self._let_go, file).atexit = False
        return array

    def _let_go(self, file: Path) -> None:
        if not self.keeps_files:
            file.unlink(missing_ok=True)


def _unpacked(arrays: dict[str, Any]) -> list[Any]:
    """Return what the tasks of a step returned, numbers and arrays or tuples of them, from how it is kept in files."""
    found: dict[str, list[Any]] = {}
    kinds = {}
    for name, value in sorted(arrays.items()):
        number, _, kinds[number] = name.split("-")
        found.setdefault(number, []).append(value)
    return [values[0] if kinds[number] == "one" else tuple(values) for number, values in found.items()]


def do_block(work: Any, files: list[Path], start: int, stop: int) -> Any:
    """Task: work on a block of rows."""
    return work(*(_opened(file)[start:stop] for file in files))


def fill_block(work: Any, files: list[Path], start: int, stop: int, out: Path) -> None:
    """Task: write what work returns for a block of rows into its place."""
    fill_rows(out, start, do_block(work, files, start, stop))


def follow_block(work: Any, state: Any, files: list[Path], start: int, stop: int, out: Path) -> Any:
    """Task: the same with a state; return the next one."""
    rows, state = work(state, *(_opened(file)[start:stop] for file in files))
    fill_rows(out, start, rows)
    return state


def do_columns(work: Any, files: list[Path], n_arrays: int, columns: Any) -> list[Any]:
    """Task: work on some columns, one after the other."""
    opened = [_opened(file) for file in files]
    vectors = opened[n_arrays:]
    return [work(*(np.ascontiguousarray(array[:, j]) for array in opened[:n_arrays]), *vectors) for j in columns]
