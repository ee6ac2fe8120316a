"""A fitted detector whose large parts lie in the folder of its job, for workers to open instead of being sent."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from penstock._types import Factors, FloatArray, Tree
from penstock.detectors import Copies, FactorModel, Problem, ViewsModel
from penstock.detectors.views import Composite, Joining, LogEncoding, LogStandard, Margins, Sampling, Standards
from penstock.factor.objectives import Objective
from penstock.scale.tree import PartsSearch
from penstock.scale.workspace import load_arrays, open_array, open_arrays, save_arrays

_JOINING = [field.name for field in fields(Joining) if field.name != "search"]
_NO_COPIES = Copies(np.empty(0, np.intp), np.empty(0, np.intp))
_NO_TREE = Tree(np.empty((0, 2), np.intp), np.empty(0))
_TERMS = ("symmetric", "alpha", "laplacian", "gamma", "row_bound")


@dataclass(frozen=True)
class FolderModel:
    """What a worker is sent: all that is small of a detector, and where the rest is."""

    small: Any
    search: PartsSearch
    H: FloatArray
    terms: dict[str, float]
    decays: bool

    def open(self) -> Any:
        """Return the detector, as far as scoring new rows needs it; arrays are read from the files as they are used."""
        space = self.search.file.parent
        arrays, rows = open_arrays(space / "model"), self.search.rows()
        S = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(len(rows), len(rows)))
        problem = Problem(Objective(rows, S, **self.terms), arrays["reach"], arrays["strongest"], self.decays)
        factors = Factors(open_array(space / "weights.npy"), self.H)
        return self.small.with_model(FactorModel(_NO_COPIES, problem, factors, self.search))


@dataclass(frozen=True)
class FolderViews:
    """The same of a `penstock.Detector`."""

    small: Any
    plain: PartsSearch
    logged: PartsSearch

    def open(self) -> Any:
        """Return the detector, as `FolderModel.open` does."""
        space = self.plain.file.parent
        arrays = open_arrays(space / "model")
        views = Composite(
            load_encoding(space / "encoding"),
            Joining(self.plain, **{name: arrays[f"plain_{name}"] for name in _JOINING}),
            Joining(self.logged, **{name: arrays[f"logged_{name}"] for name in _JOINING}),
            *load_draws(space / "draws"),
            load_margins(space / "margins"),
            Standards(*(LogStandard(*numbers) for numbers in arrays["standards"].tolist())),
        )
        return self.small.with_model(ViewsModel(_NO_COPIES, _NO_TREE, views, np.empty((0, 4))))


def save_views(folder: Path, views: Composite) -> None:
    """Put what `FolderViews` opens, and no step of the fit has left, beside the other files."""
    joinings = {"plain": views.plain, "logged": views.logged}
    arrays = {f"{kind}_{name}": getattr(one, name) for kind, one in joinings.items() for name in _JOINING}
    save_arrays(folder, {**arrays, "standards": np.array(astuple(views.standards))})


def save_model(folder: Path, problem: Problem) -> None:
    """Put what a fitted problem holds in memory beside its other files."""
    S: Any = problem.objective.S
    arrays = {"indptr": S.indptr, "indices": S.indices, "data": S.data}
    save_arrays(folder, {**arrays, "reach": problem.reach, "strongest": problem.strongest})


def folder_model(detector: Any) -> FolderModel | FolderViews | None:
    """Return the detector as files, if it was fitted into a folder that is still there."""
    model = getattr(detector, "model_", None)
    if isinstance(model, ViewsModel) and isinstance(model.views.plain.search, PartsSearch):
        assert isinstance(model.views.logged.search, PartsSearch)
        return FolderViews(detector.with_model(None), model.views.plain.search, model.views.logged.search)
    if not isinstance(model, FactorModel) or not isinstance(model.search, PartsSearch):
        return None
    objective = model.problem.objective
    terms = {term: float(getattr(objective, term)) for term in _TERMS}
    return FolderModel(detector.with_model(None), model.search, model.factors.H, terms, model.problem.decays)


def load_encoding(folder: Path) -> LogEncoding:
    return LogEncoding(**load_arrays(folder))


def load_margins(folder: Path) -> Margins:
    return Margins(**load_arrays(folder))


def load_draws(folder: Path) -> tuple[Sampling, Sampling]:
    """The coarse and the fine view."""
    arrays = load_arrays(folder)
    coarse, fine = (Sampling(arrays[f"{name}_members"], arrays[f"{name}_nodes"]) for name in ("coarse", "fine"))
    return coarse, fine
