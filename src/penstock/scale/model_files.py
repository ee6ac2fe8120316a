"""A fitted detector whose large parts lie in the folder of its job, for workers to open instead of being sent."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import sparse

from penstock._types import Factors
from penstock.detectors._factor_base import FactorDetector, Problem
from penstock.factor.objectives import Objective
from penstock.scale.parts_search import PartsSearch
from penstock.scale.workspace import open_array, open_arrays, save_arrays

_LARGE = (
    "_copy_of",
    "_factors",
    "_kept",
    "_problem",
    "_row_labels",
    "embedding_",
    "scores_",
    "seen_",
    "similarity_",
    "tree_",
)
_TERMS = ("symmetric", "alpha", "laplacian", "gamma", "row_bound")


@dataclass(frozen=True)
class FolderModel:
    """What a worker is sent: all that is small of a detector, and where the rest is."""

    small: Any
    folder: Path
    terms: dict[str, float]
    decays: bool

    def open(self) -> Any:
        """The detector, as far as scoring new rows needs it; its arrays are read from the files as they are used."""
        detector, arrays = copy.copy(self.small), open_arrays(self.folder)
        rows = detector._tree.rows()
        S = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(len(rows), len(rows)))
        objective = Objective(rows, S, **self.terms)
        detector._problem = Problem(objective, arrays["reach"], arrays["strongest"], self.decays)
        detector._factors = Factors(open_array(self.folder.parent / "weights.npy"), detector.components_)
        return detector


def save_model(folder: Path, detector: FactorDetector) -> None:
    """Put what a detector's `_problem` holds in memory beside its other files."""
    problem = detector._problem
    S: Any = problem.objective.S
    arrays = {"indptr": S.indptr, "indices": S.indices, "data": S.data}
    save_arrays(folder, {**arrays, "reach": problem.reach, "strongest": problem.strongest})


def folder_model(detector: Any) -> FolderModel | None:
    """The detector as files, if it was fitted into a folder that is still there."""
    search = getattr(detector, "_tree", None)
    if not isinstance(search, PartsSearch):
        return None
    small = copy.copy(detector)
    for name in _LARGE:
        vars(small).pop(name, None)
    objective = detector._problem.objective
    terms = {term: float(getattr(objective, term)) for term in _TERMS}
    return FolderModel(small, search.file.parent / "model", terms, detector._problem.decays)
