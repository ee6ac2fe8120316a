"""Score a prepared table by a model, flag rows, group them into events, and warn where findings are doubtful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, listed
from penstock._parameters import check_whole_number
from penstock._types import FloatArray, IndexArray
from penstock.detection._parts import Contributions, JudgedPart, are_usual, mean_of_similar, rebuild, tell, to_compare
from penstock.detection._preparing import Prepared, Progress, rows_note
from penstock.detection._wording import LIKE_THE_LAST
from penstock.detection.findings import Findings
from penstock.detection.model import Model, ModelError
from penstock.explain import Agreement, agreement, group_events
from penstock.graph.edges import nearest_by_tree
from penstock.io import Note, Table, TableError
from penstock.thresholds import Contamination, Exceedance, check_contamination, midway, score_threshold

_DEFAULT_TOP, _DEFAULT_SHARE = 100, 20  # the paper's list, but no more than one row in twenty


def default_top(n_rows: int) -> int:
    """How long the list is if nothing is said: the paper's 100, and of a small table a twentieth.

    >>> default_top(9219), default_top(400), default_top(5)
    (100, 20, 1)
    """
    return max(1, min(_DEFAULT_TOP, n_rows // _DEFAULT_SHARE))


def flag_top(scores: FloatArray, candidates: NDArray[np.bool_], n: int) -> tuple[NDArray[np.bool_], float]:
    """Flags of the n candidates with the highest scores, of equals the earlier, and a threshold that separates them.

    Scores above it are flagged, and of those equal to it, if the cut is among equals, the earlier ones.

    >>> flags, threshold = flag_top(np.array([1.0, 9.0, 3.0]), np.array([True, True, True]), 1)
    >>> flags.tolist(), threshold
    ([False, True, False], 6.0)
    >>> flags, threshold = flag_top(np.array([2.0, 1.0, 2.0, 2.0]), np.ones(4, dtype=bool), 2)
    >>> flags.tolist(), threshold
    ([True, False, True, False], 2.0)
    """
    check_whole_number("top", n, least=1)
    rows = np.flatnonzero(candidates)
    if n >= len(rows):
        raise TableError(
            f"top = {n} asks for as many findings as there are rows to judge ({len(rows):,}) or more. Ask for fewer."
        )
    order = rows[np.argsort(-scores[rows], kind="stable")]
    flags = np.zeros(len(scores), dtype=np.bool_)
    flags[order[:n]] = True
    return flags, midway(float(scores[order[n]]), float(scores[order[n - 1]]))


def flag_above(
    scores: FloatArray,
    candidates: NDArray[np.bool_],
    reference: FloatArray,
    threshold: Contamination,
    *,
    by_rate: bool = False,
) -> tuple[NDArray[np.bool_], float]:
    """Flags of the candidates above a threshold that is learnt from reference scores.

    by_rate : a share is that of normal rows, `Detector.set_false_alarm_rate`, and may be less than one of those learnt.
    """
    if by_rate and isinstance(threshold, Real):
        limit = Exceedance.of(reference).exceeded_at(float(threshold))
    else:
        limit = score_threshold(reference, threshold)
    return candidates & (np.nan_to_num(scores, nan=-np.inf) > limit), limit


_MOST_FOUND = 0.25  # of the rows judged
_MOST_NEXT = 0.5  # of the rows learnt from, that are most like the one before or after
_MOST_TEXT = 0.5  # of the squared residual of the findings, or of their scores where those are told by variable


def finding_warnings(
    prepared: Prepared,
    candidates: NDArray[np.bool_],
    flags: NDArray[np.bool_],
    expected: FloatArray,
    parts: tuple[JudgedPart, ...],
    told: Contributions | None = None,
) -> list[Note]:
    """Notes on findings that are too many, or about text."""
    return [
        *_too_many(int(flags.sum()), int(candidates.sum())),
        *_about_text(prepared, flags, expected, parts, told),
    ]


def rows_like_the_last(parts: Sequence[JudgedPart]) -> list[Note]:
    """A note if rates would not hold: where each row is like the one before, a later one is like none learnt."""
    nearest = [nearest_by_tree(judged.part.detector.tree_)[0] for judged in parts]  # learnt in order of time
    rows = sum(map(len, nearest))
    close = sum(int((np.abs(each - np.arange(len(each))) == 1).sum()) for each in nearest)
    if close <= _MOST_NEXT * rows:
        return []
    message = (
        f"Rows are much like the one before: {close / rows:.0%} of those learnt from are most like the row just before "
        f"or after. A rate of false alarms learnt from them would be far too low for later rows: none is shown, only "
        f"ranks."
    )
    return [Note(LIKE_THE_LAST, message, close)]


def highest_learnt(scores: FloatArray, threshold: float) -> list[Note]:
    """A note if the threshold is the highest score of the rows learnt from: several rates have the same then."""
    equal, rows = int((scores == threshold).sum()), len(scores)
    if threshold != scores.max():
        return []
    have = "" if equal == 1 else f", and {equal:,} of them have it"
    message = (
        f"The threshold is the highest score of the {rows:,} rows learnt from{have}. They cannot tell rates of false "
        f"alarms below {equal:,} in {rows + 1:,} apart; learn from more rows for that."
    )
    return [Note("highest score", message, equal)]


def _too_many(found: int, judged: int) -> list[Note]:
    """If so much stands out, the model should be doubted rather than the rows."""
    if found <= _MOST_FOUND * judged:
        return []
    message = (
        f"{found / judged:.0%} of the rows judged are findings: they differ as a whole from what was learnt (another "
        f"season or load, a sensor exchanged?). Learn from a period that covers what is usual, or ask for a top N."
    )
    return [Note("many findings", message, found)]


def _about_text(
    prepared: Prepared,
    flags: NDArray[np.bool_],
    expected: FloatArray,
    parts: tuple[JudgedPart, ...],
    told: Contributions | None,
) -> list[Note]:
    """A column for each kind of text soon outweighs the readings."""
    encoded = prepared.inputs.encoded
    is_text = np.isin(prepared.inputs.names, [name for encoding in encoded for name in encoding.names])
    text, total = 0.0, 0.0
    for judged in parts if encoded else ():
        rows = judged.rows[flags[judged.rows]]
        if told is None:
            weights = np.square((prepared.values.to_numpy()[rows] - expected[rows]) / judged.part.scale)
        else:
            weights = np.maximum(told.of(rows).variables, 0.0)
        text, total = text + float(np.nansum(weights[:, is_text])), total + float(np.nansum(weights))
    if text <= _MOST_TEXT * total:
        return []
    names = tuple(encoding.column for encoding in encoded)
    message = (
        f"{text / total:.0%} of what stands out in the findings is text ({listed(names, most=5)}), not readings. "
        f"Exclude it, or let it tell operating modes, to see what the readings say."
    )
    return [Note("text findings", message, len(names), names)]


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
    notes += [*finding_warnings(prepared, candidates, flags, expected, parts, told), *alike, *at_the_end]
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
    told: Contributions | None,
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
