"""Score the rows of a prepared table by a model, and flag those that are findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

import numpy as np
import pandas as pd

from penstock._messages import counted, listed
from penstock._parameters import check_whole_number
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.detection._parts import (
    Contributions,
    JudgedPart,
    are_usual,
    contributions_of,
    is_series,
    mean_of_similar,
    rebuild,
    to_compare,
)
from penstock.detection._periods import read_duration
from penstock.detection._preparing import Prepared, Progress, rows_note
from penstock.detection.model import Model, ModelError
from penstock.graph.edges import nearest_by_tree
from penstock.io import Note, TableError
from penstock.options import CutOptions
from penstock.thresholds import Contamination, Exceedance, check_contamination, midway, score_threshold

_DEFAULT_TOP, _DEFAULT_SHARE = 100, 20  # the paper's list, but no more than one row in twenty
MANY = "many findings"  # the kind of a note
LISTED = 1.0  # an episode expected so often by chance in a period like this is still listed
_MOST_FOUND = 0.25  # of the rows judged
_MOST_NEXT = 0.5  # of the rows learnt from, that are most like the one before or after
_MOST_TEXT = 0.5  # of the squared residual of the findings, or of their scores where what adds up to them is known


@dataclass(frozen=True)
class Cut:
    """How findings are selected, grouped and explained."""

    top: int | None  # the length of the list
    threshold: Contamination | None  # what the scores are compared with, where no length is given
    gap: pd.Timedelta | int | None  # findings at most so far apart are one event
    new_only: bool  # findings are among the rows that were not learnt from, as those are known to be good
    most_explained: int | None  # how many events are explained; None for the default

    @classmethod
    def of(cls, options: CutOptions, *, new_only: bool = True) -> Cut:
        gap = read_duration("gap", options.gap)
        if options.top is not None and options.threshold is not None:
            raise TableError("top and a threshold exclude each other: a list has a length, or ends at a score.", "top")
        if options.top is not None:
            check_whole_number("top", options.top, least=1)
        if options.most_explained is not None:
            check_whole_number("most_explained", options.most_explained, least=0)
        if options.threshold is not None:
            try:
                check_contamination(options.threshold)
            except ValueError as error:
                raise TableError(f"threshold: {error}", "threshold") from None
        return cls(options.top, options.threshold, gap, new_only, options.most_explained)


@dataclass(frozen=True, eq=False)
class Scored:
    """A table with scores, expected values, evidence and findings; arrays have one entry per row."""

    model: Model
    prepared: Prepared
    parts: tuple[JudgedPart, ...]
    scores: FloatArray
    expected: FloatArray  # (n, p), NaN where nothing is expected
    evidence: FloatArray | None  # (n, p), of detectors that judge sensors over time
    judged: BoolArray  # rows that have a score
    trained: BoolArray  # rows that were learnt from
    candidates: BoolArray  # rows that may be findings
    chance: FloatArray | None  # how many episodes as high as each row a normal period of this length has
    flags: BoolArray
    threshold: float
    contributions: Contributions | None
    rates: FloatArray | None  # of findings, how seldom normal rows score as high; None where that is not known
    threshold_rate: float | None  # the share of normal rows above the threshold, if it is known
    alike: bool  # most rows are like the one before, so that rates would not hold
    notes: list[Note]

    @property
    def values(self) -> FloatArray:
        return self.prepared.values.to_numpy()

    @property
    def self_judged(self) -> bool:
        """Whether the rows judged are those learnt from."""
        return bool(self.trained.any() and not (self.judged & ~self.trained).any())


def score_rows(
    model: Model, prepared: Prepared, learnt: Mapping[str, IndexArray] | None, cut: Cut, progress: Progress
) -> Scored:
    """Score and flag rows. `learnt`: where the training rows are, if they are of this table."""
    known, notes = _with_known_modes(prepared, model)
    progress(f"scoring {int(known.sum()):,} rows")
    rows_of = {part.mode: np.flatnonzero(known & (prepared.modes == part.mode)) for part in model.parts}
    parts = tuple(
        JudgedPart(part, rows_of[part.mode], None if learnt is None else learnt[part.mode]) for part in model.parts
    )
    scores, expected, evidence = _score(parts, prepared)
    judged, trained = known & np.isfinite(scores), np.zeros(len(scores), dtype=np.bool_)
    if (known & ~judged).any():
        notes.append(rows_note("no score", np.flatnonzero(known & ~judged), prepared.table, "got no score"))
    for rows in () if learnt is None else learnt.values():
        trained[rows] = True
    candidates = judged & ~trained if cut.new_only else judged
    if learnt is not None and not candidates.any():
        raise TableError("There is nothing to judge: all rows are of the training period. Choose a shorter one.")
    chance_if_long = _chance_of(parts, scores, candidates, as_long_as_learnt=True)
    flags, threshold = _flag(scores, candidates, model, cut, chance_if_long)
    alike = _rows_like_the_last(parts) if model.tells_rates else []
    tells_rates = model.tells_rates and cut.new_only and not alike
    at_the_end = _highest_learnt(model.training_scores, threshold) if tells_rates else []
    scored = Scored(
        model=model,
        prepared=prepared,
        parts=parts,
        scores=scores,
        expected=expected,
        evidence=evidence,
        judged=judged,
        trained=trained,
        candidates=candidates,
        chance=_chance_of(parts, scores, candidates),
        flags=flags,
        threshold=threshold,
        contributions=contributions_of(parts, prepared.values.to_numpy(), flags) if model.tells_rates else None,
        rates=_rates_of(parts, scores, flags) if tells_rates else None,
        threshold_rate=model.rate_above(threshold) if tells_rates and not at_the_end else None,
        alike=bool(alike),
        notes=notes,
    )
    _expect_similar(scored)
    notes += _finding_warnings(scored) + alike + at_the_end
    return scored


def _with_known_modes(prepared: Prepared, model: Model) -> tuple[BoolArray, list[Note]]:
    """Return the rows to judge, of modes that the model knows, and a note on the others."""
    known = np.isin(prepared.modes, [part.mode for part in model.parts])
    unknown = prepared.judged & ~known
    if not unknown.any():
        return prepared.judged, []
    names = ", ".join(sorted({str(mode) for mode in prepared.modes[unknown]}))
    count = int(unknown.sum())
    if not (prepared.judged & known).any():
        raise ModelError(f"No row is of a mode that the model knows; the rows are of {names}.")
    message = f"{counted(count, 'row')} of modes that were not learnt ({names}) cannot be judged."
    return prepared.judged & known, [Note("unknown modes", message, count, changed=True)]


def _score(parts: tuple[JudgedPart, ...], prepared: Prepared) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return the scores of all rows, what detectors that rebuild rows expect of them, and the evidence of each input.

    NaN where a row has no score, or nothing is expected. There is evidence only of detectors that judge sensors over
    time.
    """
    values = prepared.values.to_numpy()
    scores, expected = np.full(len(values), np.nan), np.full(values.shape, np.nan)
    series = is_series(parts[0].part.detector)
    evidence = np.zeros(values.shape) if series and parts[0].part.detector.judges_sensors else None
    for part, rows, learnt in ((judged.part, judged.rows, judged.learnt) for judged in parts):
        new = rows if learnt is None else np.setdiff1d(rows, learnt)
        if learnt is not None:
            scores[learnt] = part.training_scores
        try:
            if series:
                found = part.detector.judge_series(values[new], **prepared.order(new))
                scores[new] = found.scores
                if evidence is not None:
                    evidence[new] = found.evidence
                if evidence is not None and learnt is not None:
                    evidence[learnt] = part.detector.evidence_
            elif len(new):
                scores[new] = part.scores(values[new])
            rebuild(part, values, new, learnt, expected)
        except ValueError as error:
            raise ModelError(f"The rows cannot be judged: {error}") from error
    return scores, expected, evidence


def _flag(
    scores: FloatArray, candidates: BoolArray, model: Model, cut: Cut, chance: FloatArray | None
) -> tuple[BoolArray, float]:
    """Flag rows by the threshold if there is one; else by what chance would give where that is known.

    Without either new rows are compared with the training scores, and others ranked. A record judged by itself in which
    nothing is rarer than chance is ranked too: the list says where to look first, the verdict that nothing stands out.
    """
    n_rows = int(candidates.sum())
    listed = candidates & (np.nan_to_num(np.nan if chance is None else chance, nan=np.inf) <= LISTED)
    if cut.top is None and cut.threshold is None and chance is not None and (listed.any() or cut.new_only):
        flags = listed
        below, above = scores[candidates & ~flags], scores[flags]
        if not len(above) or not len(below):
            return flags, float(below.max()) if len(below) else float(above.min())
        return flags, midway(float(min(below.max(), above.min())), float(above.min()))
    if cut.top is None and (cut.threshold is not None or cut.new_only):
        wanted = cut.threshold or "auto"
        if cut.new_only:
            limit = model.threshold_of(wanted)
        elif model.tells_rates and isinstance(wanted, Real):
            limit = Exceedance.of(model.training_scores).exceeded_at(float(wanted))  # may be less than one row's share
        else:
            limit = score_threshold(model.training_scores, wanted)
        return candidates & (np.nan_to_num(scores, nan=-np.inf) > limit), limit
    n = cut.top or max(1, min(_DEFAULT_TOP, n_rows // _DEFAULT_SHARE))
    if n >= n_rows:
        raise TableError(
            f"top = {n} asks for as many findings as there are rows to judge ({n_rows:,}) or more. Ask for fewer."
        )
    rows = np.flatnonzero(candidates)
    order = rows[np.argsort(-scores[rows], kind="stable")]  # of equals the earlier
    flags = np.zeros(len(scores), dtype=np.bool_)
    flags[order[:n]] = True
    return flags, midway(float(scores[order[n]]), float(scores[order[n - 1]]))


def _expect_similar(scored: Scored) -> None:
    """Fill in what is expected of findings by detectors that rebuild nothing, from rows that these have learnt."""
    values, flags = scored.values, scored.flags
    for part, rows, learnt in ((judged.part, judged.rows, judged.learnt) for judged in scored.parts):
        if part.reference is None or not flags[rows].any():
            continue
        usual = rows[:0] if learnt is None else learnt[are_usual(learnt, scored.scores, flags)]
        normal = values[usual] if len(usual) else part.reference
        found = rows[flags[rows]]
        compared = to_compare(found, values, scored.contributions)
        scored.expected[found] = mean_of_similar(part, compared, normal)


def _chance_of(
    parts: tuple[JudgedPart, ...], scores: FloatArray, candidates: BoolArray, *, as_long_as_learnt: bool = False
) -> FloatArray | None:
    """Return how many episodes as high as each row a normal period of this length has; None where that is not known.

    For detectors that judge series. Each mode is a chance to find something, so its numbers count as often as there
    are modes. `as_long_as_learnt`: in a period at least as long as that learnt from, by which few rows are listed: in
    a short one nearly every row would be as high as one that chance gives.
    """
    expected = np.full(len(scores), np.nan)
    for part, rows, learnt in ((judged.part, judged.rows, judged.learnt) for judged in parts):
        mine = rows[candidates[rows]]
        later = learnt is None or not np.isin(mine, learnt).all()
        if not is_series(part.detector) or part.level(1.0, later=later) is None:
            return None
        n_rows = max(len(mine), len(part.training_scores) if as_long_as_learnt else 1)
        expected[mine] = part.detector.expected_by_chance(scores[mine], n_rows, later=later)
    return expected * len(parts)


def _rates_of(parts: tuple[JudgedPart, ...], scores: FloatArray, flags: BoolArray) -> FloatArray:
    """Return how seldom normal rows of a finding's mode score as high; NaN for other rows."""
    rates = np.full(len(scores), np.nan)
    for judged in parts:
        found = judged.rows[flags[judged.rows]]
        if len(found):
            rates[found] = judged.part.rates_of(scores[found])
    return rates


def _rows_like_the_last(parts: tuple[JudgedPart, ...]) -> list[Note]:
    """Return a note if rates would not hold: where each row is like the one before, a later one is like none learnt."""
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
    return [Note("like the row before", message, close)]


def _highest_learnt(scores: FloatArray, threshold: float) -> list[Note]:
    """Return a note if the threshold is the highest score of the rows learnt from: several rates have the same then."""
    equal, rows = int((scores == threshold).sum()), len(scores)
    if threshold != scores.max():
        return []
    have = "" if equal == 1 else f", and {equal:,} of them have it"
    message = (
        f"The threshold is the highest score of the {rows:,} rows learnt from{have}. They cannot show rates of false "
        f"alarms below {equal:,} in {rows + 1:,}; learn from more rows for that."
    )
    return [Note("highest score", message, equal)]


def _finding_warnings(scored: Scored) -> list[Note]:
    """Return notes on findings that are too many (the model is doubtful), or about text more than about readings."""
    notes, found, rows = [], int(scored.flags.sum()), int(scored.candidates.sum())
    if found > _MOST_FOUND * rows:
        message = (
            f"{found / rows:.0%} of the rows judged are findings: they differ as a whole from what was learnt (another "
            f"season or load, a sensor exchanged?). Learn from a period that covers what is usual, or ask for a top N."
        )
        notes.append(Note(MANY, message, found))
    inputs = scored.prepared.inputs
    encoded = inputs.encoded  # a column for each kind of text soon outweighs the readings
    is_text = np.isin(inputs.names, [name for encoding in encoded for name in encoding.names])
    text, total = 0.0, 0.0
    for judged in scored.parts if encoded else ():
        of_part = judged.rows[scored.flags[judged.rows]]
        if scored.contributions is None:
            weights = np.square((scored.values[of_part] - scored.expected[of_part]) / judged.part.scale)
        else:
            weights = np.maximum(scored.contributions.of(of_part).variables, 0.0)
        text, total = text + float(np.nansum(weights[:, is_text])), total + float(np.nansum(weights))
    if text > _MOST_TEXT * total:
        names = tuple(encoding.column for encoding in encoded)
        message = (
            f"{text / total:.0%} of what stands out in the findings is text ({listed(names, most=5)}), not readings. "
            f"Exclude it, or use it for operating modes, to see what the readings say."
        )
        notes.append(Note("text findings", message, len(names), names))
    return notes
