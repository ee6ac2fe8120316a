"""A model and a prepared table → scores, what was expected, and findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted
from penstock._parameters import check_whole_number
from penstock._types import FloatArray, IndexArray
from penstock.detection._doubts import doubts, highest_learnt, rows_like_the_last
from penstock.detection._expecting import are_usual, mean_of_similar, rebuild, to_compare
from penstock.detection._flagging import default_top, flag_above, flag_top
from penstock.detection._parts import JudgedPart
from penstock.detection._preparing import Prepared, Progress, rows_note
from penstock.detection._telling import Told, tell
from penstock.detection.findings import Findings
from penstock.detection.model import Model, ModelError
from penstock.events import Agreement, agreement, group_events
from penstock.io import Note, Table, TableError
from penstock.thresholds import Contamination, check_contamination


@dataclass(frozen=True)
class Cut:
    """How findings are told from other rows, and grouped: the top N, or a threshold; and the gap within an event.

    new_only : findings are among the rows that were not learnt from, as those are known to be good.
    """

    top: int | None = None
    threshold: Contamination | None = None
    gap: pd.Timedelta | int | None = None
    new_only: bool = True

    def check(self) -> None:
        if self.top is not None and self.threshold is not None:
            raise TableError("top and threshold exclude each other: a list has a length, or ends at a score.")
        if self.top is not None:
            check_whole_number("top", self.top, least=1)
        if self.threshold is not None:
            try:
                check_contamination(self.threshold)
            except ValueError as error:
                raise TableError(f"threshold: {error}") from None


def judge(
    model: Model,
    prepared: Prepared,
    learnt: Mapping[str, IndexArray] | None,
    cut: Cut,
    settings: Mapping[str, Any],
    progress: Progress,
) -> Findings:
    """Score the rows, flag and group them. `learnt` says where the training rows are, if they are of this table."""
    known, notes = _with_known_modes(prepared, model)
    progress(f"scoring {int(known.sum()):,} rows")
    parts, values = _locate(model, prepared, known, learnt), prepared.values.to_numpy()
    scores, expected = _score(parts, values)
    judged = known & np.isfinite(scores)
    notes += _unscored(known & ~judged, prepared)
    trained = _mask(len(scores), [] if learnt is None else list(learnt.values()))
    candidates = judged & ~trained if cut.new_only else judged
    _refuse_none(candidates, learnt)
    flags, threshold = _flags(scores, candidates, model, cut)
    told = tell(parts, values, flags) if model.tells_rates else None
    _expect_similar(parts, values, scores, flags, expected, told)
    alike = rows_like_the_last(parts) if told is not None else []
    tells_rates = told is not None and cut.new_only and not alike
    at_the_end = highest_learnt(model.training_scores, threshold) if tells_rates else []
    notes += [*doubts(prepared, candidates, flags, expected, parts, told), *alike, *at_the_end]
    compared, labelled = _compare_with_label(prepared, flags, np.where(candidates, scores, np.nan))
    table = prepared.table
    grouped = group_events(flags, scores, table.time, gap=cut.gap, threshold=threshold, groups=table.group)
    grouped = replace(grouped, table=_in_source(grouped.table, grouped.first_rows, table, "start", "end", "peak"))
    return Findings(
        table=prepared.table,
        checks=prepared.checks,
        inputs=prepared.inputs,
        values=prepared.values,
        expected=pd.DataFrame(expected, index=prepared.values.index, columns=prepared.values.columns),
        scores=scores,
        rates=_rates(parts, scores, flags) if tells_rates else None,
        told=told,
        threshold_rate=model.rate_above(threshold) if tells_rates and not at_the_end else None,
        seen=1.0 - np.isnan(values).mean(axis=1),
        modes=prepared.modes,
        judged=judged,
        trained=trained,
        flags=flags,
        threshold=threshold,
        grouped=grouped,
        parts=parts,
        units=model.units,
        notes=(*prepared.notes, *notes, *labelled),
        settings=dict(settings),
        agreement=compared,
    )


def _flags(
    scores: FloatArray, candidates: NDArray[np.bool_], model: Model, cut: Cut
) -> tuple[NDArray[np.bool_], float]:
    """By the threshold if there is one; new rows are by default compared with the training scores, others ranked."""
    if cut.top is not None:
        return flag_top(scores, candidates, cut.top)
    if cut.threshold is not None or cut.new_only:
        wanted, reference = cut.threshold or "auto", model.training_scores
        return flag_above(scores, candidates, reference, wanted, by_rate=model.tells_rates)
    return flag_top(scores, candidates, default_top(int(candidates.sum())))


def _refuse_none(candidates: NDArray[np.bool_], learnt: Mapping[str, IndexArray] | None) -> None:
    if learnt is not None and not candidates.any():
        raise TableError("There is nothing to judge: all rows are of the training period. Choose a shorter one.")


def _locate(
    model: Model, prepared: Prepared, known: NDArray[np.bool_], learnt: Mapping[str, IndexArray] | None
) -> tuple[JudgedPart, ...]:
    """The parts of the model with their rows in this table."""
    return tuple(
        JudgedPart(
            part, np.flatnonzero(known & (prepared.modes == part.mode)), None if learnt is None else learnt[part.mode]
        )
        for part in model.parts
    )


def _score(parts: tuple[JudgedPart, ...], values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The scores of all rows, and what is expected of them by detectors that rebuild rows; NaN where nothing is."""
    scores, expected = np.full(len(values), np.nan), np.full(values.shape, np.nan)
    for part, rows, learnt in ((judged.part, judged.rows, judged.learnt) for judged in parts):
        new = rows if learnt is None else np.setdiff1d(rows, learnt)
        if learnt is not None:
            scores[learnt] = part.training_scores
        try:
            if len(new):
                scores[new] = part.scores(values[new])
            rebuild(part, values, new, learnt, expected)
        except ValueError as error:
            raise ModelError(f"The rows cannot be judged: {error}") from error
    return scores, expected


def _rates(parts: tuple[JudgedPart, ...], scores: FloatArray, flags: NDArray[np.bool_]) -> FloatArray:
    """How seldom normal rows of a finding's mode score as high; NaN for other rows."""
    rates = np.full(len(scores), np.nan)
    for judged in parts:
        found = judged.rows[flags[judged.rows]]
        if len(found):
            rates[found] = judged.part.rates_of(scores[found])
    return rates


def _expect_similar(
    parts: tuple[JudgedPart, ...],
    values: FloatArray,
    scores: FloatArray,
    flags: NDArray[np.bool_],
    expected: FloatArray,
    told: Told | None,
) -> None:
    """Fill in what is expected of findings by detectors that rebuild nothing, from rows that these have learnt."""
    for part, rows, learnt in ((judged.part, judged.rows, judged.learnt) for judged in parts):
        if part.reference is None or not flags[rows].any():
            continue
        usual = rows[:0] if learnt is None else learnt[are_usual(learnt, scores, flags)]
        normal = values[usual] if len(usual) else part.reference
        found = rows[flags[rows]]
        expected[found] = mean_of_similar(part, to_compare(found, values, told), normal)


def _in_source(found: pd.DataFrame, first_rows: IndexArray, table: Table, *places: str) -> pd.DataFrame:
    """Events or faults with the group of each, if there are groups, and without time with row numbers of the source."""
    if table.time is None:
        numbers = pd.Series(table.values.index)
        found = found.assign(**{name: found[name].map(numbers).astype(found[name].dtype) for name in places})
    return found if table.group is None else found.assign(group=table.group.to_numpy()[first_rows])


def _compare_with_label(
    prepared: Prepared, flags: NDArray[np.bool_], scores: FloatArray
) -> tuple[Agreement | None, list[Note]]:
    """How the findings agree with the label, if there is one, and a note on how it was understood.

    `scores` are NaN for rows that could not be findings: what is known of those says nothing about the rest. Nor does
    what is found in rows of which nothing is known.
    """
    truth, table = prepared.truth, prepared.table
    if truth is None:
        return None, []
    scores = np.where(truth.unknown, np.nan, scores)
    found = agreement(truth.faults, flags, scores, table.time, groups=table.group)
    faults = _in_source(found.faults, found.first_rows, table, "start", "end", "first_alarm")
    found = replace(found, faults=faults)
    return found, [Note("label", truth.sentence, int(truth.faults.sum()))]


def _unscored(rows: NDArray[np.bool_], prepared: Prepared) -> list[Note]:
    """A note on rows of which the detector could say nothing."""
    return [rows_note("no score", np.flatnonzero(rows), prepared.table, "got no score")] if rows.any() else []


def _with_known_modes(prepared: Prepared, model: Model) -> tuple[NDArray[np.bool_], list[Note]]:
    """The rows to judge, of modes that the model knows, and a note on the others."""
    known = np.isin(prepared.modes, [part.mode for part in model.parts])
    strange = prepared.judged & ~known
    if not strange.any():
        return prepared.judged, []
    names = ", ".join(sorted({str(mode) for mode in prepared.modes[strange]}))
    count = int(strange.sum())
    if not (prepared.judged & known).any():
        raise ModelError(f"No row is of a mode that the model knows; the rows are of {names}.")
    message = f"{counted(count, 'row')} of modes that were not learnt ({names}) cannot be judged."
    return prepared.judged & known, [Note("unknown modes", message, count, changed=True)]


def _mask(n: int, places: list[IndexArray]) -> NDArray[np.bool_]:
    mask = np.zeros(n, dtype=np.bool_)
    for rows in places:
        mask[rows] = True
    return mask
