"""Score the rows of a prepared table by a model, and flag those that are findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock._messages import counted, listed
from penstock._parameters import check_whole_number
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.certainty import TOO_FEW_ROWS, TRAINING_ROWS, expected_by_chance
from penstock.detection._parts import (
    Contributions,
    JudgedPart,
    Part,
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
from penstock.detectors import scores_without_the_highest
from penstock.io import Note, TableError
from penstock.options import CutOptions
from penstock.thresholds import Contamination, check_contamination, midway

_DEFAULT_TOP, _DEFAULT_SHARE = 100, 20  # the paper's list, but no more than one row in twenty
MANY = "many findings"  # the kind of a note
LISTED = 1.0  # an episode expected so often by chance in a period like this is still listed
_MOST_FOUND = 0.25  # of the rows judged
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
    chance: FloatArray  # how many as high as each row normal data of this size have by chance; NaN if not known
    chance_unknown: str  # why that is not known; "" if it is
    flags: BoolArray
    threshold: float
    contributions: Contributions | None
    threshold_expected: float  # how many normal data have above the threshold by chance
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
    chance, unknown = _chance_of(parts, scores, candidates), _why_unknown(parts, candidates)
    if unknown == TRAINING_ROWS:
        chance, unknown = _chance_among_themselves(parts, scores, prepared.values.to_numpy())
    by_chance = None
    if model.judges_series and not unknown:
        by_chance = _chance_of(parts, scores, candidates, as_long_as_learnt=True)
    flags, threshold = _flag(scores, candidates, model, cut, by_chance)
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
        chance=np.full(len(scores), np.nan) if unknown else chance,
        chance_unknown=unknown,
        flags=flags,
        threshold=threshold,
        contributions=contributions_of(parts, prepared.values.to_numpy(), flags) if model.has_views else None,
        threshold_expected=_expected_above(parts, candidates, threshold),
        notes=notes,
    )
    _expect_similar(scored)
    notes += _finding_warnings(scored)
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
        limit = model.threshold_of(cut.threshold or "auto", later=cut.new_only)
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


def _among(parts: tuple[JudgedPart, ...], candidates: BoolArray) -> Iterator[tuple[Part, IndexArray, bool]]:
    """Yield the parts that rows to find something in are of, these rows, and whether any was not learnt from."""
    for judged in parts:
        mine, learnt = judged.rows[candidates[judged.rows]], judged.learnt
        if len(mine):
            yield judged.part, mine, learnt is None or not np.isin(mine, learnt).all()


def _chance_of(
    parts: tuple[JudgedPart, ...], scores: FloatArray, candidates: BoolArray, *, as_long_as_learnt: bool = False
) -> FloatArray:
    """Return how many as high as each row normal data of this size have, by what the detectors say; NaN if unknown.

    Each mode is a chance to find something, so its numbers count as often as there are modes. `as_long_as_learnt`: in a
    period at least as long as that learnt from, by which few rows are listed: in a short one nearly every row would be
    as high as one that chance gives.
    """
    expected = np.full(len(scores), np.nan)
    for part, mine, later in _among(parts, candidates):
        n_rows = max(len(mine), len(part.training_scores) if as_long_as_learnt else 1)
        expected[mine] = len(parts) * part.detector.expected_by_chance(scores[mine], n_rows, later=later)
    return expected


def _why_unknown(parts: tuple[JudgedPart, ...], candidates: BoolArray) -> str:
    """Return why `_chance_of` is not known: `TRAINING_ROWS` only if there is no other reason; "" if it is."""
    reasons = {part.detector.chance_unknown(later=later) for part, _, later in _among(parts, candidates)}
    return max(reasons - {TRAINING_ROWS, ""} or reasons, default=TOO_FEW_ROWS)


def _chance_among_themselves(
    parts: tuple[JudgedPart, ...], scores: FloatArray, values: FloatArray
) -> tuple[FloatArray, str]:
    """Return how many rows of a normal table are as high as each row of one that is judged by itself; or why not.

    The detectors are fitted again without what stands out.
    """
    expected = np.full(len(scores), np.nan)
    try:
        again = [
            scores_without_the_highest(judged.part.detector, values[judged.rows], scores[judged.rows])
            for judged in parts
        ]
    except ValueError:  # without the highest rows a column has no readings, or too few rows are left
        return expected, TOO_FEW_ROWS
    found = expected_by_chance(np.concatenate(again))
    expected[np.concatenate([judged.rows for judged in parts])] = found.expected
    return expected, found.in_words() if found.verdict == "too few" else ""


def _expected_above(parts: tuple[JudgedPart, ...], candidates: BoolArray, threshold: float) -> float:
    """Return how many are expected above a threshold by chance, in all modes; NaN where that is not known."""
    above = np.nextafter(threshold, np.inf)
    return sum(
        float(part.detector.expected_by_chance(above, len(mine), later=later))
        for part, mine, later in _among(parts, candidates)
    )


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
