"""A fitted detector whose large parts lie in the folder of its job, for workers to open instead of being sent."""

from __future__ import annotations

import copy
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from penstock._types import Factors
from penstock.detectors._factor_base import FactorDetector, Problem
from penstock.detectors.views import Composite, Joining, LogEncoding, LogStandard, Margins, Sampling, Standards
from penstock.factor.objectives import Objective
from penstock.scale.tree import PartsSearch
from penstock.scale.workspace import load_arrays, open_array, open_arrays, save_arrays

_LARGE = (
    "_copy_of",
    "_factors",
    "_kept",
    "_problem",
    "_row_labels",
    "_views",
    "parts_",
    "scores_",
    "seen_",
    "similarity_",
    "tree_",
)
_JOINING = [field.name for field in fields(Joining) if field.name != "search"]
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


@dataclass(frozen=True)
class FolderViews:
    """The same of a `penstock.Detector`."""

    small: Any
    plain: PartsSearch
    logged: PartsSearch

    def open(self) -> Any:
        """As of a `FolderModel`."""
        detector, space = copy.copy(self.small), self.plain.file.parent
        arrays = open_arrays(space / "model")
        detector._views = Composite(
            load_encoding(space / "encoding"),
            Joining(self.plain, **{name: arrays[f"plain_{name}"] for name in _JOINING}),
            Joining(self.logged, **{name: arrays[f"logged_{name}"] for name in _JOINING}),
            *load_draws(space / "draws"),
            load_margins(space / "margins"),
            Standards(*(LogStandard(*numbers) for numbers in arrays["standards"].tolist())),
        )
        return detector


def save_views(folder: Path, views: Composite) -> None:
    """Put what `FolderViews` opens, and no step of the fit has left, beside the other files."""
    joinings = {"plain": views.plain, "logged": views.logged}
    arrays = {f"{kind}_{name}": getattr(one, name) for kind, one in joinings.items() for name in _JOINING}
    save_arrays(folder, {**arrays, "standards": np.array(astuple(views.standards))})


def save_model(folder: Path, detector: FactorDetector) -> None:
    """Put what a detector's `_problem` holds in memory beside its other files."""
    problem = detector._problem
    S: Any = problem.objective.S
    arrays = {"indptr": S.indptr, "indices": S.indices, "data": S.data}
    save_arrays(folder, {**arrays, "reach": problem.reach, "strongest": problem.strongest})


def folder_model(detector: Any) -> FolderModel | FolderViews | None:
    """The detector as files, if it was fitted into a folder that is still there."""
    views = getattr(detector, "_views", None)
    search = getattr(detector, "_tree", None) if views is None else views.plain.search
    if not isinstance(search, PartsSearch):
        return None
    small = copy.copy(detector)
    for name in _LARGE:
        vars(small).pop(name, None)
    if views is not None:
        return FolderViews(small, search, views.logged.search)
    objective = detector._problem.objective
    terms = {term: float(getattr(objective, term)) for term in _TERMS}
    return FolderModel(small, search.file.parent / "model", terms, detector._problem.decays)


def load_encoding(folder: Path) -> LogEncoding:
    return LogEncoding(**load_arrays(folder))


def load_margins(folder: Path) -> Margins:
    return Margins(**load_arrays(folder))


def load_draws(folder: Path) -> tuple[Sampling, Sampling]:
    """The coarse and the fine view."""
    arrays = load_arrays(folder)
    coarse, fine = (Sampling(arrays[f"{name}_members"], arrays[f"{name}_nodes"]) for name in ("coarse", "fine"))
    return coarse, fine
