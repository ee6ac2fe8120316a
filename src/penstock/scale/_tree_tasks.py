"""Tasks on parts: each part's own tree, and the edges between two parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.graph.parts import Edges, Part, cross_edges, grow_part
from penstock.graph.points import Frame
from penstock.graph.rows import first_copies
from penstock.graph.search import PointTree
from penstock.scale.workspace import load_arrays, open_array, open_arrays, save_arrays

_SHOWN = 64  # points of a part by which the driver bounds how near two parts come


@dataclass(frozen=True)
class TreeSummary:
    """What the driver is told of a part's tree; all lengths in the frame's units."""

    low: FloatArray
    high: FloatArray
    longest: float
    shown: FloatArray


def save_frame(folder: Path, frame: Frame) -> None:
    """The frame in files: its axes may be megabytes, of which the scheduler would keep a copy for each task."""
    axes = {} if frame.axes is None else {"axes": frame.axes}
    scalars = {"exponent": frame.exponent, "precise": frame.precise}
    save_arrays(folder, {**axes, **scalars, "origin": frame.origin, "center": frame.center})


def load_frame(folder: Path) -> Frame:
    arrays = load_arrays(folder)
    exponent, precise = int(arrays["exponent"].item()), bool(arrays["precise"].item())
    return Frame(arrays["origin"], exponent, arrays["center"], arrays.get("axes"), precise)


def grow(rows_folder: Path, frame_folder: Path, approximate: Any, folder: Path) -> TreeSummary:
    """The search tree and the spanning tree of a part's distinct rows."""
    frame = load_frame(frame_folder)
    if folder.exists():
        return summarise(folder, frame)
    arrays = open_arrays(rows_folder)
    order = np.argsort(arrays["numbers"], kind="stable")
    numbers, rows = arrays["numbers"][order], arrays["rows"][order]
    if len(arrays["copies"]):
        first = np.flatnonzero(first_copies(rows) == np.arange(len(rows)))
        numbers, rows = numbers[first], rows[first]
    save_part(folder, grow_part(rows, numbers, frame, approximate=approximate))
    return summarise(folder, frame)


def summarise(folder: Path, frame: Frame) -> TreeSummary:
    part = open_part(folder, frame)
    exact = part.tree.exact
    low, high = (np.array(open_array(folder / f"{side}.npy")) for side in ("low", "high"))
    return TreeSummary(low, high, part.longest, np.array(exact[:: max(1, len(exact) // _SHOWN)]))


def join_two(one: Path, other: Path, folder: Path, frame_folder: Path) -> None:
    """The edges between two parts."""
    if folder.exists():
        return
    frame = load_frame(frame_folder)
    found = cross_edges(open_part(one, frame), open_part(other, frame))
    save_arrays(folder, {"ends": found.ends.reshape(-1, 2), "squares": found.squares, "lengths": found.lengths})


def save_part(folder: Path, part: Part) -> None:
    tree = part.tree
    rounded = {} if part.rounded is None else {"rounded": part.rounded}
    save_arrays(
        folder,
        {
            **rounded,
            "exact": tree.exact,
            "low": tree.exact.min(axis=0),
            "high": tree.exact.max(axis=0),
            "names": tree.names,
            "tiles": tree.tiles,
            "boxes": tree.boxes,
            "centers": tree.centers,
            "bounds": np.array([tree.radius, tree.error, tree.stretch]),
            "edges": part.edges,
            "squares": part.squares,
            "lengths": part.lengths,
        },
    )


def open_part(folder: Path, frame: Frame) -> Part:
    """A part whose arrays are read from their files as they are used: the border of a part is a few of its pages."""
    arrays = open_arrays(folder)
    radius, error, stretch = (float(value) for value in arrays["bounds"])
    tree = PointTree(
        frame, arrays["exact"], arrays["names"], arrays["tiles"], arrays["boxes"], arrays["centers"], radius, error,
        stretch,
    )  # fmt: skip
    return Part(tree, arrays["edges"], arrays["squares"], arrays["lengths"], arrays.get("rounded"))


def own_edges(folder: Path, frame: Frame) -> Edges:
    """The edges of a part's tree by row of the table, in memory: many files are not to stay open."""
    edges = open_part(folder, frame).tree_edges()
    return Edges(edges.ends, np.array(edges.squares), np.array(edges.lengths))


def edges_between(folder: Path) -> Edges:
    """The edges between two parts, in memory."""
    arrays = open_arrays(folder)
    return Edges(*(np.array(arrays[name]) for name in ("ends", "squares", "lengths")))
