"""The first half of the job: from a source to a fitted model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.columns import RowRule, parse_rule
from penstock.detection._labels import LabelValues
from penstock.detection._lengths import read_length
from penstock.detection._preparing import (
    Progress,
    Reading,
    check_table,
    choose_columns,
    prepare,
    read_units,
    with_told_columns,
)
from penstock.detection._settings import (
    describe_reading,
    describe_run,
    describe_training,
    describe_versions,
    shown,
    shown_names,
)
from penstock.detection._training import Periods, training_rows
from penstock.detection.model import FitRows, FittedRows, Model, fit_parts
from penstock.detection.modes import ModeSpec, named_columns, perhaps_columns, plan_modes
from penstock.detectors import limit_components
from penstock.events import Truth
from penstock.io import Note
from penstock.registry import make_detector


@dataclass(frozen=True)
class Job:
    """What was asked for, ready to be fitted: see `penstock.detect` for the meaning of each."""

    reading: Reading
    keep: tuple[str, ...]
    units: Any
    detector: Any
    own_groups: bool  # the number of latent groups was not asked for
    modes: ModeSpec
    skip_modes: tuple[str, ...]
    settle: pd.Timedelta | int | None
    train_until: Any
    train_rule: RowRule | None
    random_state: Any
    periods: Periods
    labels: LabelValues

    @classmethod
    def of(
        cls,
        reading: Reading,
        keep: Sequence[str],
        units: Any,
        method: Any,
        parameters: Mapping[str, Any] | None,
        random_state: Any,
        modes: ModeSpec,
        skip_modes: Sequence[str],
        settle: Any,
        train_until: Any,
        train_rule: str | None,
        periods: Periods,
        labels: LabelValues,
    ) -> Job:
        """From what a user gives."""
        given = dict(parameters or {})
        return cls(
            reading,
            (keep,) if isinstance(keep, str) else tuple(keep),
            units,
            make_detector(method, random_state, **given),
            isinstance(method, str) and given.get("n_components") is None,
            modes,
            (skip_modes,) if isinstance(skip_modes, str) else tuple(skip_modes),
            read_length("settle", settle),
            train_until,
            None if train_rule is None else parse_rule(train_rule),
            random_state,
            periods,
            labels,
        )

    def fit(
        self, source: Any, fit_rows: FitRows | None, progress: Progress, *, judged_alone: bool = False
    ) -> tuple[Model, FittedRows]:
        """The model, and where its training rows are in the table. `judged_alone`: only these rows are to be judged."""
        period = () if self.train_rule is None else (self.train_rule,)
        told = [*named_columns(self.modes), *(name for rule in period for name in rule.columns)]
        perhaps = [*perhaps_columns(self.modes), *(name for rule in period for name in rule.perhaps_columns)]
        also = [*perhaps, *(name for name in told if name == self.reading.group)]
        table = self.periods.read_from(with_told_columns(self.reading, told).read(source, progress, also=also))
        truth = self.labels.read(table)
        excluded, left_out = self.periods.excluded(table)
        plan = plan_modes(self.modes, table.names, skip=self.skip_modes, settle=self.settle).resolved(table)
        plan.refuse_unknown_skips(table)
        candidates = self.reading.candidates(table, without={str(plan.column)} - set(self.keep))
        if excluded.any():
            candidates = candidates.only(~excluded)
        checks = check_table(candidates, progress)
        asked = self.reading.columns is not None
        inputs, notes = choose_columns(candidates, checks, self.keep, self.reading.strict, asked)
        prepared = prepare(table, checks, inputs, plan, [*left_out, *notes], excluded=excluded, truth=truth)
        trained = prepared.judged & training_rows(table, self.train_until, self.train_rule)
        detector = limit_components(self.detector, len(inputs.names)) if self.own_groups else self.detector
        parts, learnt, warned = fit_parts(prepared, trained, detector, fit_rows or _own_fit, progress)
        notes = [*prepared.notes, *warned, *_about_inputs(self.detector, detector, len(inputs.names))]
        notes += [] if judged_alone else _about_learnt_faults(truth, trained)
        settings = {
            **describe_run(table, inputs, detector),
            **describe_reading(self.reading),
            "keep": shown_names(self.keep),
            "modes": str(plan) or None,
            "settle": shown(self.settle),
            "training": describe_training(self.train_until, self.train_rule),
            **self.periods.described(),
            **self.labels.described(),
            "random_state": shown(self.random_state),
            **describe_versions(),
        }
        units = read_units(self.units, inputs.names, table.units)
        model = Model(self.reading, inputs, plan, parts, units, settings, tuple(notes))
        return model, FittedRows(replace(prepared, notes=model.notes), learnt)


def _own_fit(detector: Any, rows: FloatArray) -> None:
    detector.fit(rows)


def _about_learnt_faults(truth: Truth | None, trained: NDArray[np.bool_]) -> list[Note]:
    """A note on known faults among the rows that others are to be judged by."""
    count = 0 if truth is None else int((truth.faults & trained).sum())
    if not count:
        return []
    message = (
        f"Known faults among the {int(trained.sum()):,} rows learnt from: {count:,}. Rows like these will not stand "
        f"out; learn from good rows (--train-until, --train-rule)."
    )
    return [Note("faults learnt", message, count)]


def _about_inputs(asked: Any, used: Any, p: int) -> list[Note]:
    """What follows from there being few inputs."""
    if p == 1 and hasattr(used, "n_components"):
        message = (
            "There is one input alone. A factorisation can then say little: high values stand out, low ones do not. "
            "Method knn compares values instead."
        )
        return [Note("one input", message, 1)]
    if asked is used:
        return []
    groups = "1 latent group was" if used.n_components == 1 else f"{used.n_components} latent groups were"
    message = (
        f"{groups} used instead of {asked.n_components}, as there are {p} inputs: as many groups as inputs could "
        f"rebuild any row."
    )
    return [Note("groups", message, used.n_components)]
