"""Score the rows of a prepared table by a model, and flag those that are findings.

A `Model` and a `Prepared` table come in, a `ScoredTable` goes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted, listed, option
from penstock._parameters import check_whole_number
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.certainty import TOO_FEW_ROWS, TRAINING_ROWS, expected_by_chance
from penstock.detection._parts import (
    Contributions,
    ModePart,
    ScoredPart,
    are_usual,
    contributions_of,
    mean_of_similar,
    rebuild,
    to_compare,
)
from penstock.detection._periods import read_duration, shown
from penstock.detection._preparing import Prepared, Progress, rows_note
from penstock.detection.model import Model
from penstock.detectors import scores_without_the_highest
from penstock.io import Note, TableError
from penstock.options import SelectionOptions
from penstock.thresholds import check_contamination, midway

_DEFAULT_TOP, _DEFAULT_SHARE = 100, 20  # the paper's list, but no more than one row in twenty
MANY = "many findings"  # the kind of a note
LISTED = 1.0  # an episode expected so often by chance in a period like this is still listed
_MOST_FOUND = 0.25  # of the rows scored
_MOST_TEXT = 0.5  # of the squared residual of the findings, or of their scores where what adds up to them is known


@dataclass(frozen=True)
class Selection:
    """How findings are selected, grouped and explained."""

    options: SelectionOptions
    gap: pd.Timedelta | int | None  # findings at most so far apart are one event
    new_only: bool  # findings are among the rows that were not fitted to, as those are known to be good

    @classmethod
    def of(cls, options: SelectionOptions, *, new_only: bool = True) -> Selection:
        gap = read_duration("gap", options.gap)
        if options.top is not None and options.threshold is not None:
            raise TableError(f"Give {option('top')} or {option('threshold')}, not both.", "top")
        if options.top is not None:
            check_whole_number("top", options.top, least=1)
        if options.most_explained is not None:
            check_whole_number("most_explained", options.most_explained, least=0)
        if options.threshold is not None:
            try:
                check_contamination("threshold", options.threshold)
            except ValueError as error:
                raise TableError(str(error), "threshold") from None
        return cls(options, gap, new_only)

    def described(self) -> dict[str, Any]:
        threshold = None if self.options.threshold is None else str(self.options.threshold)
        return {"top": self.options.top, "threshold": threshold, "gap": shown(self.options.gap)}


@dataclass(frozen=True, eq=False)
class ScoredTable:
    """A table with scores, expected values, evidence and findings; arrays have one entry per row."""

    model: Model
    prepared: Prepared
    parts: tuple[ScoredPart, ...]
    scores: FloatArray
    expected: FloatArray  # (n, p), NaN where nothing is expected
    evidence: FloatArray | None  # (n, p), of detectors that score sensors over time
    has_score: BoolArray
    fitted: BoolArray  # rows that were fitted to
    candidates: BoolArray  # rows that may be findings
    chance: FloatArray  # how many as high as each row normal data of this size have by chance; NaN if not known
    chance_unknown: str  # why that is not known; "" if it is
    flags: BoolArray
    threshold: float
    contributions: Contributions | None
    threshold_expected: float  # how many normal data have above the threshold by chance
    notes: tuple[Note, ...]

    @property
    def values(self) -> FloatArray:
        return self.prepared.values.to_numpy()

    @property
    def self_scored(self) -> bool:
        """Whether the rows scored are those fitted to."""
        return bool(self.fitted.any() and not (self.has_score & ~self.fitted).any())

    def part_of(self, mode: str) -> ScoredPart:
        """Return the part of a mode."""
        return next(each for each in self.parts if each.part.mode == mode)


def score_rows(
    model: Model, prepared: Prepared, fitted: Mapping[str, IndexArray] | None, selection: Selection, progress: Progress
) -> ScoredTable:
    """Score and flag rows. `fitted`: where the training rows are, if they are of this table."""
    known, notes = _with_known_modes(prepared, model)
    progress(f"scoring {int(known.sum()):,} rows")
    parts = tuple(
        ScoredPart(
            part,
            np.flatnonzero(known & (prepared.modes == part.mode)),
            None if fitted is None else fitted[part.mode],
        )
        for part in model.parts
    )
    values = prepared.values.to_numpy()
    scores, expected, evidence = _score(parts, prepared)
    has_score = known & np.isfinite(scores)
    if (known & ~has_score).any():
        notes.append(rows_note("no score", np.flatnonzero(known & ~has_score), prepared.table, "got no score"))
    is_fitted = np.zeros(len(scores), dtype=np.bool_)
    for rows in () if fitted is None else fitted.values():
        is_fitted[rows] = True
    candidates = has_score & ~is_fitted if selection.new_only else has_score
    if fitted is not None and not candidates.any():
        raise TableError("There is nothing to score: all rows are of the training period. Choose a shorter one.")
    chance = _chance_of(parts, scores, candidates)
    unknown = _why_unknown(parts, candidates)
    if unknown == TRAINING_ROWS:
        chance, unknown = _chance_among_themselves(parts, scores, values)
    by_chance = None
    if model.can.over_time and not unknown:
        by_chance = _chance_of(parts, scores, candidates, as_long_as_fitted=True)
    flags, threshold = _flag(scores, candidates, model, selection, by_chance)
    contributions = contributions_of(parts, values, flags) if model.can.explains else None
    _expect_similar(parts, values, scores, flags, contributions, expected)
    scored = ScoredTable(
        model=model,
        prepared=prepared,
        parts=parts,
        scores=scores,
        expected=expected,
        evidence=evidence,
        has_score=has_score,
        fitted=is_fitted,
        candidates=candidates,
        chance=np.full(len(scores), np.nan) if unknown else chance,
        chance_unknown=unknown,
        flags=flags,
        threshold=threshold,
        contributions=contributions,
        threshold_expected=_expected_above(parts, candidates, threshold),
        notes=tuple(notes),
    )
    return replace(scored, notes=(*notes, *_finding_warnings(scored)))


def _with_known_modes(prepared: Prepared, model: Model) -> tuple[BoolArray, list[Note]]:
    """Return the rows to score, of modes that the model knows, and a note on the others."""
    known = np.isin(prepared.modes, [part.mode for part in model.parts])
    unknown = prepared.scorable & ~known
    if not unknown.any():
        return prepared.scorable, []
    names = ", ".join(sorted({str(mode) for mode in prepared.modes[unknown]}))
    count = int(unknown.sum())
    if not (prepared.scorable & known).any():
        raise TableError(f"No row is of a mode that the model knows; the rows are of {names}.")
    message = f"{counted(count, 'row')} of modes that were not fitted ({names}) cannot be scored."
    return prepared.scorable & known, [Note("unknown modes", message, count, changed=True)]


def _score(parts: tuple[ScoredPart, ...], prepared: Prepared) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return the scores of all rows, what detectors that rebuild rows expect of them, and the evidence of each input.

    NaN where a row has no score, or nothing is expected. There is evidence only of detectors that score sensors over
    time.
    """
    values = prepared.values.to_numpy()
    scores, expected = np.full(len(values), np.nan), np.full(values.shape, np.nan)
    evidence = np.zeros(values.shape) if parts[0].part.can.by_sensor else None
    for each in parts:
        part, new, fitted = each.part, each.new, each.fitted
        if fitted is not None:
            scores[fitted] = part.training_scores
        if fitted is not None and evidence is not None and len(fitted) == len(values):  # no copy of a whole table
            evidence = part.detector.evidence_
        elif fitted is not None and evidence is not None:
            evidence[fitted] = part.detector.evidence_
        try:
            if part.can.over_time:
                found = part.detector.assess_series(values[new], **prepared.order(new))
                scores[new] = found.scores
                if evidence is not None:
                    evidence[new] = found.evidence
            elif len(new):
                scores[new] = part.scores(values[new])
            rebuild(each, values, expected)
        except ValueError as error:
            raise TableError(f"The rows cannot be scored: {error}") from error
    return scores, expected, evidence


def _flag(
    scores: FloatArray, candidates: BoolArray, model: Model, selection: Selection, chance: FloatArray | None
) -> tuple[BoolArray, float]:
    """Flag rows by the threshold if there is one; else by what chance would give where that is known.

    Without either new rows are compared with the training scores, and others ranked. A record scored by itself in which
    nothing is rarer than chance is ranked too: the list says where to look first, the verdict that nothing stands out.
    """
    n_rows = int(candidates.sum())
    top, asked = selection.options.top, selection.options.threshold
    listed = candidates & (np.nan_to_num(np.nan if chance is None else chance, nan=np.inf) <= LISTED)
    if top is None and asked is None and chance is not None and (listed.any() or selection.new_only):
        flags = listed
        below, above = scores[candidates & ~flags], scores[flags]
        if not len(above) or not len(below):
            return flags, float(below.max()) if len(below) else float(above.min())
        return flags, midway(float(min(below.max(), above.min())), float(above.min()))
    if top is None and (asked is not None or selection.new_only):
        limit = model.threshold_of(asked or "auto", later=selection.new_only)
        return candidates & (np.nan_to_num(scores, nan=-np.inf) > limit), limit
    n = top or max(1, min(_DEFAULT_TOP, n_rows // _DEFAULT_SHARE))
    if n >= n_rows:
        raise TableError(
            f"top = {n} asks for as many findings as there are rows to score ({n_rows:,}) or more. Ask for fewer."
        )
    rows = np.flatnonzero(candidates)
    order = rows[np.argsort(-scores[rows], kind="stable")]  # of equals the earlier
    flags = np.zeros(len(scores), dtype=np.bool_)
    flags[order[:n]] = True
    return flags, midway(float(scores[order[n]]), float(scores[order[n - 1]]))


def _expect_similar(
    parts: Sequence[ScoredPart],
    values: FloatArray,
    scores: FloatArray,
    flags: BoolArray,
    contributions: Contributions | None,
    expected: FloatArray,
) -> None:
    """Fill in what is expected of findings by detectors that rebuild nothing, from rows that were fitted to."""
    for each in parts:
        found = each.rows[flags[each.rows]]
        if each.part.reference is None or not len(found):
            continue
        usual = each.rows[:0] if each.fitted is None else each.fitted[are_usual(each.fitted, scores, flags)]
        normal = values[usual] if len(usual) else each.part.reference
        expected[found] = mean_of_similar(each.part, to_compare(found, values, contributions), normal)


def _among(parts: tuple[ScoredPart, ...], candidates: BoolArray) -> Iterator[tuple[ModePart, IndexArray, bool]]:
    """Yield the parts that rows to find something in are of, these rows, and whether any was not fitted to."""
    for each in parts:
        mine = each.rows[candidates[each.rows]]
        fitted = each.fitted
        if len(mine):
            yield each.part, mine, fitted is None or not np.isin(mine, fitted).all()


def _chance_of(
    parts: tuple[ScoredPart, ...], scores: FloatArray, candidates: BoolArray, *, as_long_as_fitted: bool = False
) -> FloatArray:
    """Return how many as high as each row normal data of this size have, by what the detectors say; NaN if unknown.

    Each mode is a chance to find something, so its numbers count as often as there are modes. `as_long_as_fitted`: in a
    period at least as long as that fitted to, by which few rows are listed: in a short one nearly every row would be
    as high as one that chance gives.
    """
    expected = np.full(len(scores), np.nan)
    for part, mine, later in _among(parts, candidates):
        n_rows = max(len(mine), len(part.training_scores) if as_long_as_fitted else 1)
        expected[mine] = len(parts) * part.detector.expected_by_chance(scores[mine], n_rows, later=later)
    return expected


def _why_unknown(parts: tuple[ScoredPart, ...], candidates: BoolArray) -> str:
    """Return why `_chance_of` is not known: `TRAINING_ROWS` only if there is no other reason; "" if it is."""
    reasons = {part.detector.chance_unknown(later=later) for part, _, later in _among(parts, candidates)}
    return max(reasons - {TRAINING_ROWS, ""} or reasons, default=TOO_FEW_ROWS)


def _chance_among_themselves(
    parts: tuple[ScoredPart, ...], scores: FloatArray, values: FloatArray
) -> tuple[FloatArray, str]:
    """Return how many rows of a normal table are as high as each row of one that is scored by itself; or why not.

    The detectors are fitted again without what stands out.
    """
    expected = np.full(len(scores), np.nan)
    try:
        again = [scores_without_the_highest(each.part.detector, values[each.rows], scores[each.rows]) for each in parts]
    except ValueError:  # without the highest rows a column has no readings, or too few rows are left
        return expected, TOO_FEW_ROWS
    found = expected_by_chance(np.concatenate(again))
    expected[np.concatenate([each.rows for each in parts])] = found.expected
    return expected, found.in_words() if found.verdict == "too few" else ""


def _expected_above(parts: tuple[ScoredPart, ...], candidates: BoolArray, threshold: float) -> float:
    """Return how many are expected above a threshold by chance, in all modes; NaN where that is not known."""
    above = np.nextafter(threshold, np.inf)
    return sum(
        float(part.detector.expected_by_chance(above, len(mine), later=later))
        for part, mine, later in _among(parts, candidates)
    )


def _finding_warnings(scored: ScoredTable) -> list[Note]:
    """Return notes on findings that are too many (the model is doubtful), or about text more than about readings."""
    notes = []
    found = int(scored.flags.sum())
    rows = int(scored.candidates.sum())
    if found > _MOST_FOUND * rows:
        message = (
            f"{found / rows:.0%} of the rows scored are findings: they differ as a whole from what was fitted (another "
            f"season or load, a sensor exchanged?). Learn from a period that covers what is usual, or ask for a top N."
        )
        notes.append(Note(MANY, message, found))
    inputs = scored.prepared.inputs
    encoded = inputs.encoded  # a column for each kind of text soon outweighs the readings
    is_text = np.isin(inputs.names, [name for encoding in encoded for name in encoding.names])
    text, total = 0.0, 0.0
    for each in scored.parts if encoded else ():
        of_part = each.rows[scored.flags[each.rows]]
        if scored.contributions is None:
            weights = np.square((scored.values[of_part] - scored.expected[of_part]) / each.part.scale)
        else:
            weights = np.maximum(scored.contributions.of(of_part).variables, 0.0)
        text = text + float(np.nansum(weights[:, is_text]))
        total = total + float(np.nansum(weights))
    if text > _MOST_TEXT * total:
        names = tuple(encoding.column for encoding in encoded)
        message = (
            f"{text / total:.0%} of what stands out in the findings is text ({listed(names, most=5)}), not readings. "
            f"Exclude it, or use it for operating modes, to see what the readings say."
        )
        notes.append(Note("text findings", message, len(names), names))
    return notes
