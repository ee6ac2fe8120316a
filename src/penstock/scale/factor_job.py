"""Detectors that factorise, fitted on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock._types import Factors, Tree
from penstock.detectors import NMF
from penstock.factor.start import draw_seed, draws_from
from penstock.factor.terms import Terms
from penstock.graph.search import SearchWhenAsked
from penstock.scale.adoption import adopt, fitted_file, fitted_rows, in_table_order
from penstock.scale.crew import DaskCrew
from penstock.scale.factorise import Factorisation, block_settings, make_blocks
from penstock.scale.job import Job
from penstock.scale.laid_rows import LaidRows
from penstock.scale.model_files import save_model
from penstock.scale.plan import Plan, group_count, settled_plan
from penstock.scale.training_scores import Scoring, score_training_rows
from penstock.scale.workspace import open_array, read_json, save_array, write_json


@dataclass(frozen=True)
class FactorJob(Job):
    """For detectors that factorise."""

    def _has_tree(self) -> bool:
        return bool(self.detector._has_graph)

    def _merges_copies(self) -> bool:
        return bool(self.detector._merges_copies)

    def _counts_as(self) -> tuple[int, int]:
        return self.source.n_columns, self.detector.n_components

    def _plan(self, n: int) -> Plan:
        p, n_components = self._counts_as()
        return settled_plan(self.space / "plan.json", self.cluster, n, p, n_components, self.n_parts)

    def _learn(self, laid: LaidRows, plan: Plan) -> None:
        detector = self.detector
        rows = fitted_rows(self.space, detector._kept)
        detector._problem = detector._pose(rows)
        detector.n_components_ = detector._usable_components(*rows.shape)
        self._factorise(laid.parts, is_zero=not (laid.high > 0).any())

    def _factorise(self, parts: Sequence[int], *, is_zero: bool) -> None:
        detector, space = self.detector, self.space
        objective = detector._problem.objective
        blocks, wiring = make_blocks(space, parts, detector._kept, objective.S)
        n_groups = group_count(self.cluster, objective.n_rows, detector.n_components_, len(blocks))
        crew = DaskCrew(self.cluster, space, self.name, blocks, n_groups)
        solution = Factorisation(self.cluster, space, crew).solve(
            wiring,
            Terms.of(objective),
            detector.n_components_,
            block_settings(detector.solver, len(parts)),
            detector.max_iter,
            detector.tol,
            self._seed(),
        )
        if is_zero:  # as on one machine: solvers that come near 0 but not down to it, where H = 0 is exact
            solution = replace(solution, H=np.zeros_like(solution.H))
        settle = isinstance(detector, NMF)
        structural = getattr(detector, "score_kind", "residual") == "structural"
        scores = score_training_rows(crew, wiring, Scoring(solution.H, structural, settle))
        places = [np.searchsorted(detector._kept, open_array(space / f"part-{part}" / "numbers.npy")) for part in parts]
        W = in_table_order(space, "weights", places, crew.gather("W"))
        found = in_table_order(space, "scores", places, scores)
        adopt(detector, Factors(W, solution.H), solution, found)
        if settle:
            detector.objective_ = float(np.vdot(found, found))

    def _seed(self) -> Any:
        """The detector's seed, or one drawn from its source of random numbers and kept.

        A run that is taken up again must draw the same.
        """
        if isinstance(self.detector.random_state, int | np.integer):
            return int(self.detector.random_state)
        file = self.space / "seed.json"
        if not file.exists():
            write_json(file, {"seed": draw_seed(draws_from(self.detector.random_state)) % 2**32})
        return int(read_json(file)["seed"])

    def _leave_in_files(self, laid: LaidRows) -> None:
        """New rows are searched for in the parts' trees, and workers open the rest from the folder."""
        detector, space = self.detector, self.space
        if not self._has_tree():
            return
        numbers = space / "fitted.npy"
        save_array(numbers, detector._kept)
        detector._tree = laid.search(numbers, fitted_file(space, detector._kept, laid.n))
        save_model(space / "model", detector)

    def _read_into_memory(self) -> None:
        detector, problem = self.detector, self.detector._problem
        rows = np.array(problem.objective.A)
        detector._problem = replace(problem, objective=replace(problem.objective, A=rows))
        detector._factors = Factors(np.array(detector._factors.W), detector._factors.H)
        if self._has_tree():
            detector._tree = SearchWhenAsked(rows)
            detector.tree_ = Tree(np.array(detector.tree_.edges), np.array(detector.tree_.lengths))
