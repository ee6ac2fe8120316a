"""The ordinary detector, given what was fitted elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import Factors, FloatArray, IndexArray
from penstock.detectors import NMF, NSNMF, Detector, LaplacianNSNMF
from penstock.detectors._factor_base import FactorDetector
from penstock.scale.workspace import Workspace, create_array, fill_rows, open_array

_ROWS_AT_ONCE = 1 << 16
SUPPORTED = (Detector, NSNMF, LaplacianNSNMF, NMF)


def refuse_unsupported(detector: Any) -> None:
    """Raise if a detector cannot be fitted on a cluster."""
    if not isinstance(detector, SUPPORTED):
        names = ", ".join(kind.__name__ for kind in SUPPORTED)
        raise TypeError(f"{type(detector).__name__} cannot be fitted on a cluster; those that can: {names}.")


def fitted_rows(space: Workspace, kept: IndexArray) -> FloatArray:
    """The rows that are fitted, in the order of the table, in a file that is read as it is used."""
    everything: FloatArray = open_array(space / "rows.npy")
    file = fitted_file(space, kept, len(everything))
    if file == space / "rows.npy":
        return everything
    create_array(file, (len(kept), everything.shape[1]))
    for start in range(0, len(kept), _ROWS_AT_ONCE):
        fill_rows(file, start, everything[kept[start : start + _ROWS_AT_ONCE]])
    rows: FloatArray = open_array(file)
    return rows


def fitted_file(space: Workspace, kept: IndexArray, n: int) -> Path:
    """The file of `fitted_rows`: that of the whole table of n rows, if all of them are kept."""
    return space / ("rows.npy" if len(kept) == n else "kept.npy")


def in_table_order(space: Workspace, name: str, parts: Sequence[IndexArray], values: Sequence[Any]) -> FloatArray:
    """What blocks have found for their rows, in the order of the fitted rows, in a file.

    `parts` are each block's rows by their place among the fitted ones.
    """
    n, shape = sum(len(part) for part in parts), np.shape(values[0])[1:]
    file = space / f"{name}.npy"
    file.unlink(missing_ok=True)
    create_array(file, (n, *shape))
    everything = np.load(file, mmap_mode="r+")
    for part, found in zip(parts, values, strict=True):
        everything[part] = found
    everything.flush()
    result: FloatArray = open_array(file)
    return result


def adopt(detector: FactorDetector, factors: Factors, solution: Any, scores: FloatArray) -> None:
    """Give a detector whose problem is posed the factors and scores of its fitted rows.

    What is as large as the table stays in its files: an array that is mapped to a file is an array like any other.
    """
    detector._factors = factors
    detector._note_solution(solution)
    detector._show_factors()
    detector._note_explained(detector._problem.objective)  # no value is missing
    detector._warn_if_collapsed()
    detector._conclude(np.asarray(scores)[detector._copy_of], np.ones(len(detector._copy_of)))
