"""Score a prepared table by a model, flag rows, group them into events, and warn where findings are doubtful."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted, listed
from penstock._parameters import check_whole_number
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.detection._explaining import add_explanations
from penstock.detection._finding_tables import (
    compare_with_label,
    history_starts,
    in_source,
    incidents_by_row,
    ranking_of,
    shares_of_inputs,
)
from penstock.detection._parts import (
    Contributions,
    JudgedPart,
    are_usual,
    contributions_of,
    is_series,
    mean_of_similar,
    rebuild,
    rebuilds,
    to_compare,
)
from penstock.detection._preparing import Prepared, Progress, rows_note
from penstock.detection._severity import Grades, chance_of, rates_of, threshold_rarity, verdict_on
from penstock.detection._wording import HOW_TO_RATES, LIKE_THE_LAST
from penstock.detection.findings import Findings
from penstock.detection.model import Model, ModelError
from penstock.detection.verdict import LISTED
from penstock.explain import Incident, event_days, find_incidents, group_events
from penstock.graph.edges import nearest_by_tree
from penstock.io import Note, TableError
from penstock.thresholds import Contamination, Exceedance, check_contamination, midway, score_threshold

_DEFAULT_TOP, _DEFAULT_SHARE = 100, 20  # the paper's list, but no more than one row in twenty
_MOST_FOUND = 0.25  # of the rows judged
_MOST_NEXT = 0.5  # of the rows learnt from, that are most like the one before or after
_MOST_TEXT = 0.5  # of the squared residual of the findings, or of their scores where what adds up to them is known


@dataclass(frozen=True)
class Cut:
    """How findings are selected, grouped and explained.

    top, threshold : the length of the list, or what the scores are compared with; at most one of them.
    gap : findings at most so far apart are one event.
    new_only : findings are among the rows that were not learnt from, as those are known to be good.
    most_explained : how many events are explained; None for the default.
    """

    top: int | None = None
    threshold: Contamination | None = None
    gap: pd.Timedelta | int | None = None
    new_only: bool = True
    most_explained: int | None = None

    def check(self) -> None:
        if self.top is not None and self.threshold is not None:
            raise TableError("top and a threshold exclude each other: a list has a length, or ends at a score.", "top")
        if self.top is not None:
            check_whole_number("top", self.top, least=1)
        if self.most_explained is not None:
            check_whole_number("most_explained", self.most_explained, least=0)
        if self.threshold is not None:
            try:
                check_contamination(self.threshold)
            except ValueError as error:
                raise TableError(f"threshold: {error}", "threshold") from None


def judge(
    model: Model,
    prepared: Prepared,
    learnt: Mapping[str, IndexArray] | None,
    cut: Cut,
    settings: Mapping[str, Any],
    progress: Progress,
) -> Findings:
    """Score, flag, group and explain rows. `learnt`: where the training rows are, if they are of this table."""
    table, values = prepared.table, prepared.values.to_numpy()
    known, notes = _with_known_modes(prepared, model)
    progress(f"scoring {int(known.sum()):,} rows")
    parts = tuple(
        JudgedPart(
            part, np.flatnonzero(known & (prepared.modes == part.mode)), None if learnt is None else learnt[part.mode]
        )
        for part in model.parts
    )
    scores, expected, evidence = _score(parts, prepared)
    judged, trained = known & np.isfinite(scores), np.zeros(len(scores), dtype=np.bool_)
    if (known & ~judged).any():
        notes.append(rows_note("no score", np.flatnonzero(known & ~judged), table, "got no score"))
    for rows in () if learnt is None else learnt.values():
        trained[rows] = True
    candidates = judged & ~trained if cut.new_only else judged
    if learnt is not None and not candidates.any():
        raise TableError("There is nothing to judge: all rows are of the training period. Choose a shorter one.")
    chance = chance_of(parts, scores, candidates)
    chance_if_long = chance_of(parts, scores, candidates, as_long_as_learnt=True)
    flags, threshold = _flag(scores, candidates, model, cut, chance_if_long)
    contributions = contributions_of(parts, values, flags) if model.tells_rates else None
    _expect_similar(parts, values, scores, flags, expected, contributions)
    alike = _rows_like_the_last(parts) if model.tells_rates else []
    tells_rates = model.tells_rates and cut.new_only and not alike
    at_the_end = _highest_learnt(model.training_scores, threshold) if tells_rates else []
    notes += _finding_warnings(prepared, candidates, flags, expected, parts, contributions) + alike + at_the_end
    compared, labelled = compare_with_label(prepared, flags, np.where(candidates, scores, np.nan))
    notes = [*prepared.notes, *notes, *labelled]
    self_judged = bool(trained.any() and not (judged & ~trained).any())
    rates = rates_of(parts, scores, flags) if tells_rates else None
    grouped = group_events(flags, scores, table.time, gap=cut.gap, threshold=threshold, groups=table.group)
    grouped = replace(grouped, table=in_source(grouped.table, grouped.first_rows, table, "start", "end", "peak"))
    incidents: tuple[Incident, ...] = ()
    peaks = {"event": grouped.table["peak_row"].tolist()}
    if evidence is not None:
        starts = history_starts(parts, prepared)
        names = tuple(prepared.values.columns)
        units = [model.units.get(name, "") for name in names]
        incidents = find_incidents(grouped, scores, evidence, expected, values, starts, names, units)
        peaks = {"incident": [incident.peak for incident in incidents]}
    grades = Grades(
        scores,
        np.sort(scores[judged if self_judged else judged & ~trained]),
        prepared.modes,
        parts,
        threshold,
        rates,
        contributions is not None,
        chance,
    )
    threshold_rate = model.rate_above(threshold) if tells_rates and not at_the_end else None
    rarity = "" if contributions is None or self_judged else threshold_rarity(threshold, threshold_rate, parts)
    spans = np.max([judged_part.part.scale for judged_part in parts], axis=0)
    findings = Findings(
        table=table,
        checks=prepared.checks,
        inputs=prepared.inputs,
        names=tuple(prepared.values.columns),
        units=model.units,
        values=prepared.values,
        expected=pd.DataFrame(expected, index=prepared.values.index, columns=prepared.values.columns),
        ranges=np.where(np.isfinite(spans) & (spans > 0), spans, 1.0),
        scores=scores,
        seen=1.0 - np.isnan(values).mean(axis=1),
        modes=prepared.modes,
        judged=judged,
        trained=trained,
        flags=flags,
        threshold=threshold,
        grouped=grouped,
        events=grades.in_place_of_severity(grouped.table),
        rarity=grades.rarity(grouped.table),
        days=event_days(flags, scores, table.time, grouped.of_row),
        ranking=ranking_of(prepared, scores, flags, grouped, expected, parts, contributions, evidence, grades),
        parts=parts,
        method=type(parts[0].part.detector).__name__,
        notes=tuple(notes),
        settings=dict(settings),
        self_judged=self_judged,
        rebuilt=rebuilds(parts[0].part.detector) and evidence is None,
        verdict=verdict_on(model, prepared, parts, scores, candidates, peaks, chance, rates, threshold_rate, alike),
        incidents=incidents,
        incident_table=incidents_by_row(incidents, chance, table),
        evidence=evidence,
        caution=HOW_TO_RATES if self_judged and flags.any() and contributions is not None and not alike else "",
        threshold_rarity=rarity,
        agreement=compared,
        rates=rates,
        threshold_rate=threshold_rate,
        contributions=contributions,
        shares=shares_of_inputs(grouped, prepared.modes, scores, contributions, evidence),
    )
    progress(f"explaining {counted(len(grouped), 'event')}")
    return add_explanations(findings, cut.most_explained)


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


def _expect_similar(
    parts: tuple[JudgedPart, ...],
    values: FloatArray,
    scores: FloatArray,
    flags: BoolArray,
    expected: FloatArray,
    contributions: Contributions | None,
) -> None:
    """Fill in what is expected of findings by detectors that rebuild nothing, from rows that these have learnt."""
    for part, rows, learnt in ((judged.part, judged.rows, judged.learnt) for judged in parts):
        if part.reference is None or not flags[rows].any():
            continue
        usual = rows[:0] if learnt is None else learnt[are_usual(learnt, scores, flags)]
        normal = values[usual] if len(usual) else part.reference
        found = rows[flags[rows]]
        expected[found] = mean_of_similar(part, to_compare(found, values, contributions), normal)


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
    return [Note(LIKE_THE_LAST, message, close)]


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


def _finding_warnings(
    prepared: Prepared,
    candidates: BoolArray,
    flags: BoolArray,
    expected: FloatArray,
    parts: tuple[JudgedPart, ...],
    contributions: Contributions | None,
) -> list[Note]:
    """Return notes on findings that are too many (the model is doubtful), or about text more than about readings."""
    notes, found, rows = [], int(flags.sum()), int(candidates.sum())
    if found > _MOST_FOUND * rows:
        message = (
            f"{found / rows:.0%} of the rows judged are findings: they differ as a whole from what was learnt (another "
            f"season or load, a sensor exchanged?). Learn from a period that covers what is usual, or ask for a top N."
        )
        notes.append(Note("many findings", message, found))
    encoded = prepared.inputs.encoded  # a column for each kind of text soon outweighs the readings
    is_text = np.isin(prepared.inputs.names, [name for encoding in encoded for name in encoding.names])
    text, total = 0.0, 0.0
    for judged in parts if encoded else ():
        of_part = judged.rows[flags[judged.rows]]
        if contributions is None:
            weights = np.square((prepared.values.to_numpy()[of_part] - expected[of_part]) / judged.part.scale)
        else:
            weights = np.maximum(contributions.of(of_part).variables, 0.0)
        text, total = text + float(np.nansum(weights[:, is_text])), total + float(np.nansum(weights))
    if text > _MOST_TEXT * total:
        names = tuple(encoding.column for encoding in encoded)
        message = (
            f"{text / total:.0%} of what stands out in the findings is text ({listed(names, most=5)}), not readings. "
            f"Exclude it, or use it for operating modes, to see what the readings say."
        )
        notes.append(Note("text findings", message, len(names), names))
    return notes
