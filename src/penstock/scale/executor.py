"""The executor that keeps blocks of rows in the memory of a cluster's workers."""

from __future__ import annotations

import pickle
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from penstock._blas import one_blas_thread
from penstock._types import FloatArray
from penstock.factor.blocks import CHUNK, RowBlock, State, Work
from penstock.scale.cluster import Cluster
from penstock.scale.workspace import Workspace, load_arrays, open_array, open_arrays, save_arrays


@dataclass(frozen=True)
class FileRows:
    """Rows that are read from their file as they are needed, a chunk at a time: a table need not fit into memory."""

    path: Path

    def __len__(self) -> int:
        return len(np.load(self.path, mmap_mode="r"))

    def chunks(self) -> Iterator[tuple[int, FloatArray]]:
        mapped = np.load(self.path, mmap_mode="r")
        (n, p), offset = mapped.shape, mapped.offset
        del mapped
        # Read, not mapped: pages of a mapped file would count as this worker's memory.
        with self.path.open("rb") as stream:
            stream.seek(offset)
            for start in range(0, n, CHUNK):
                count = min(CHUNK, n - start)
                yield start, np.fromfile(stream, dtype=np.float64, count=count * p).reshape(count, p)


def save_block(folder: Path, block: RowBlock) -> None:
    """Save a block's similarities; its rows have a file of their own."""
    arrays = {"indptr": block.indptr, "indices": block.indices, "data": block.data, "offers": block.offers}
    save_arrays(folder, arrays)


# What a task leaves behind for a group of blocks: each block's state, and the report of its last step.
Held = list[tuple[State, Any]]


def run_blocks(work: Work, places: Sequence[tuple[Path, Path]], held: Held | None, given: bytes) -> Held:
    """Task: step each block of a group once. `places` are the folder of each block and the file of its rows."""
    common, own = pickle.loads(given)
    before: Held = [({}, None)] * len(places) if held is None else held
    found: Held = []
    with one_blas_thread():
        for (folder, rows), (state, _), more in zip(places, before, own, strict=True):
            block = RowBlock(FileRows(rows), **open_arrays(folder))
            # What came from another worker may lie at any odd address; see `_packed`.
            aligned = {name: np.require(values, requirements="A") for name, values in state.items()}
            found.append(work(block, aligned, *common, *more))
    return found


def reports_of(held: Held) -> bytes:
    """Task: the reports of a group."""
    return _packed([report for _, report in held])


def _packed(content: Any) -> bytes:
    """Arguments and reports by the older protocol of pickle, whose arrays come back as arrays of their own.

    Dask would send them as views into what came over the wire, at any odd address, for which NumPy takes other loops:
    the last bits would change from run to run.
    """
    return pickle.dumps(content, protocol=4)


def save_states(held: Held, places: Sequence[Path]) -> None:
    """Task: save the states of a group."""
    for (state, _), place in zip(held, places, strict=True):
        save_arrays(place, state)


def load_states(places: Sequence[Path]) -> Held:
    """Task: load the states of a group."""
    return [(load_arrays(place), None) for place in places]


class DaskExecutor:
    """Steps blocks on workers, which keep the blocks' states in their memory, as results of tasks.

    A task steps a group of blocks: the fewer tasks, the less waiting for them. Should a worker be lost, Dask runs again
    the tasks that led to what it held. That line of tasks grows with every step; `save` puts the states into files and
    begins it anew.
    """

    def __init__(self, cluster: Cluster, space: Workspace, blocks: Sequence[tuple[Path, Path]], n_groups: int) -> None:
        """`blocks` are a folder for each block's share of S and the file of its rows."""
        self._cluster, self._space, self._blocks = cluster, space, list(blocks)
        ends = [len(self._blocks) * group // n_groups for group in range(n_groups + 1)]
        self._groups = [slice(first, last) for first, last in pairwise(ends)]
        self._held: list[Any] = [None] * n_groups

    @property
    def n_blocks(self) -> int:
        return len(self._blocks)

    def each(self, work: Work, *common: Any, apart: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        name = work.__name__.strip("_").replace("_", "-")
        own = [()] * self.n_blocks if apart is None else list(apart)
        given = [_packed((common, own[group])) for group in self._groups]
        groups = [self._blocks[group] for group in self._groups]
        held = self._submit(name, run_blocks, zip([work] * len(given), groups, self._held, given, strict=True))
        reports = self._submit(f"{name}-report", reports_of, [(future,) for future in held])
        found = self._cluster.collect(None, reports)
        self._hold(held)
        return [report for of_group in found for report in pickle.loads(of_group)]

    def save(self, name: str) -> Path:
        """Save the states in a folder whose name begins so, from which they are read again when next needed."""
        folder = self._space / f"{name}-{secrets.token_hex(4)}"  # what a driver that was killed left is never mixed in
        folder.mkdir()
        saved = self._submit("save-blocks", save_states, zip(self._held, self._places(folder), strict=True))
        self._cluster.collect(None, saved)
        self.restore(folder)
        return folder

    def restore(self, folder: Path) -> None:
        """Go on from states that were saved."""
        self._hold(self._submit("load-blocks", load_states, [(places,) for places in self._places(folder)]))

    def gather(self, name: str) -> list[FloatArray]:
        """The part `name` of every block's state, in files that are read as they are used."""
        folder = self.save("result")
        for older in self._space.folder.glob("result-*"):
            if older != folder:
                shutil.rmtree(older, ignore_errors=True)
        return [open_array(folder / str(block) / f"{name}.npy") for block in range(self.n_blocks)]

    def _hold(self, futures: list[Any]) -> None:
        """Keep these states, and release the last ones now: until Python did, they would fill the workers."""
        for future in self._held:
            if future is not None:
                future.release()
        self._held = futures

    def _places(self, folder: Path) -> list[list[Path]]:
        places = [folder / str(block) for block in range(self.n_blocks)]
        return [places[group] for group in self._groups]

    def _submit(self, name: str, work: Any, arguments: Any) -> list[Any]:
        key = f"{name}-{secrets.token_hex(4)}"
        return [self._cluster.submit(f"{key}-{group}", work, given) for group, given in enumerate(arguments)]
