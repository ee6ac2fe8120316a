"""Score a prepared table by a model, flag rows, group them into events, and warn where findings are doubtful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, duration_in_words, listed
from penstock._parameters import check_whole_number
from penstock._types import FloatArray, IndexArray
from penstock.detection._explaining import add_explanations
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
from penstock.detection._wording import (
    FOLLOWING,
    HOW_TO_RATES,
    LIKE_THE_LAST,
    NO_RATES,
    ONLY_RANKS,
    TOO_FEW_BLOCKS,
    TOO_FEW_ROWS,
    TOO_RARE,
    how_rare,
    rank_in_words,
    rows_that,
)
from penstock.detection.findings import Findings
from penstock.detection.model import Model, ModelError
from penstock.detection.verdict import LISTED, Verdict, about_incidents, about_new_rows, about_table
from penstock.detectors import read_time, scores_without_the_highest
from penstock.explain import (
    Agreement,
    Events,
    Incident,
    agreement,
    event_days,
    find_incidents,
    group_events,
    incident_table,
)
from penstock.graph.edges import nearest_by_tree
from penstock.io import Note, Table, TableError
from penstock.sensors import learn_clock
from penstock.thresholds import (
    Contamination,
    Exceedance,
    about_figure,
    check_contamination,
    expected_by_chance,
    midway,
    score_threshold,
)

BoolArray = NDArray[np.bool_]
_DEFAULT_TOP, _DEFAULT_SHARE = 100, 20  # the paper's list, but no more than one row in twenty
_NAMED_VARIABLES = 3  # in the list of rows
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
    chance = _chance(parts, scores, candidates)
    flags, threshold = _flag(scores, candidates, model, cut, _chance(parts, scores, candidates, as_long_as_learnt=True))
    contributions = contributions_of(parts, values, flags) if model.tells_rates else None
    _expect_similar(parts, values, scores, flags, expected, contributions)
    alike = _rows_like_the_last(parts) if model.tells_rates else []
    tells_rates = model.tells_rates and cut.new_only and not alike
    at_the_end = _highest_learnt(model.training_scores, threshold) if tells_rates else []
    notes += _finding_warnings(prepared, candidates, flags, expected, parts, contributions) + alike + at_the_end
    compared, labelled = _compare_with_label(prepared, flags, np.where(candidates, scores, np.nan))
    notes = [*prepared.notes, *notes, *labelled]
    self_judged = bool(trained.any() and not (judged & ~trained).any())
    rates = _rates(parts, scores, flags) if tells_rates else None
    grouped = group_events(flags, scores, table.time, gap=cut.gap, threshold=threshold, groups=table.group)
    grouped = replace(grouped, table=_in_source(grouped.table, grouped.first_rows, table, "start", "end", "peak"))
    incidents: tuple[Incident, ...] = ()
    peaks = {"event": grouped.table["peak_row"].tolist()}
    if evidence is not None:
        starts = _history_starts(parts, prepared)
        incidents = find_incidents(grouped, scores, evidence, expected, values, starts, tuple(prepared.values.columns))
        peaks = {"incident": [incident.peak for incident in incidents]}
    grades = _Grades(
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
        ranking=_ranking(prepared, scores, flags, grouped, expected, parts, contributions, evidence, grades),
        parts=parts,
        method=type(parts[0].part.detector).__name__,
        notes=tuple(notes),
        settings=dict(settings),
        self_judged=self_judged,
        rebuilt=rebuilds(parts[0].part.detector) and evidence is None,
        verdict=_verdict(model, prepared, parts, scores, candidates, flags, peaks, chance, threshold_rate, alike),
        incidents=incidents,
        incident_table=_incident_table(incidents, chance, table),
        evidence=evidence,
        caution=HOW_TO_RATES if self_judged and flags.any() and contributions is not None and not alike else "",
        threshold_rarity=""
        if contributions is None or self_judged
        else _threshold_rarity(threshold, threshold_rate, parts),
        agreement=compared,
        rates=rates,
        threshold_rate=threshold_rate,
        contributions=contributions,
        shares=_evidence_shares(grouped, prepared.modes, evidence)
        if contributions is None
        else _event_shares(grouped, prepared.modes, scores, contributions),
    )
    progress(f"explaining {counted(len(grouped), 'event')}")
    return add_explanations(findings, cut.most_explained)


def _score(parts: tuple[JudgedPart, ...], prepared: Prepared) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """The scores of all rows, what is expected of them by detectors that rebuild rows, and the evidence of each input.

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


def _chance(
    parts: tuple[JudgedPart, ...], scores: FloatArray, candidates: BoolArray, *, as_long_as_learnt: bool = False
) -> FloatArray | None:
    """How many episodes as high as each row a normal period of this length has; None where that is not known.

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


def _flag(
    scores: FloatArray, candidates: BoolArray, model: Model, cut: Cut, chance: FloatArray | None
) -> tuple[BoolArray, float]:
    """By the threshold if there is one; else by what chance would give where that is known.

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
        reference = model.later_scores if cut.new_only else model.training_scores
        wanted = cut.threshold or "auto"
        if model.tells_rates and isinstance(wanted, Real):
            limit = Exceedance.of(reference).exceeded_at(float(wanted))  # may be less than one of the rows learnt
        else:
            limit = score_threshold(reference, wanted)
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


def _rates(parts: tuple[JudgedPart, ...], scores: FloatArray, flags: BoolArray) -> FloatArray:
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


@dataclass(frozen=True, eq=False)
class _Grades:
    """How severe findings are: a multiple of the threshold, or of `penstock.Detector` a rate or a rank.

    ascending : the scores of all rows that could be findings.
    """

    scores: FloatArray
    ascending: FloatArray
    modes: NDArray[np.str_]
    parts: tuple[JudgedPart, ...]
    threshold: float
    rates: FloatArray | None
    ranked: bool
    chance: FloatArray | None

    def of(self, rows: IndexArray) -> dict[str, Any]:
        """The one column that says how severe findings are, by its name."""
        if self.chance is not None:
            return {"expected_by_chance": self.chance[rows]}
        if not self.ranked:
            usable = self.threshold > 0
            return {"severity": self.scores[rows] / self.threshold if usable else np.full(len(rows), np.nan)}
        if self.rates is None:
            return {"standing": np.array([self._standing(row) for row in rows.tolist()], dtype=object)}
        return {"false_alarm_rate": self.rates[rows]}

    def in_place_of_severity(self, events: pd.DataFrame) -> pd.DataFrame:
        if not self.ranked and self.chance is None:
            return events
        ((name, values),) = self.of(events["peak_row"].to_numpy()).items()
        return events.rename(columns={"severity": name}).assign(**{name: values})

    def rarity(self, events: pd.DataFrame) -> pd.DataFrame:
        """How rare the peak of each event is, as a sentence and as a figure."""
        texts = [self._rarity(int(peak)) for peak in events["peak_row"]]
        return pd.DataFrame(texts, columns=["sentence", "figure"], index=events.index, dtype=object)

    def _rarity(self, row: int) -> tuple[str, str]:
        if self.chance is not None:
            figure = about_figure(float(self.chance[row]))
            return f"{figure} as high would be expected by chance in a period like this", figure
        if self.rates is None:
            return (self._standing(row),) * 2 if self.ranked else ("", "")
        rate, mode = float(self.rates[row]), self.modes[row]
        learnt = next(len(judged.part.training_scores) for judged in self.parts if judged.part.mode == mode)
        beyond = rate < 1 / (learnt + 1)  # smaller than the training rows of the mode can show
        sentence = rows_that(rate, "scores this high", "score this high", extrapolated=beyond)
        return sentence, how_rare(rate, extrapolated=beyond)

    def _standing(self, row: int) -> str:
        """The rank of a row's score among all rows that could be findings."""
        below, up_to = (int(np.searchsorted(self.ascending, self.scores[row], side)) for side in ("left", "right"))
        n = len(self.ascending)
        return rank_in_words(n - up_to, up_to - below, n, over_all_modes=len(self.parts) > 1)


def _ranking(
    prepared: Prepared,
    scores: FloatArray,
    flags: BoolArray,
    grouped: Events,
    expected: FloatArray,
    parts: tuple[JudgedPart, ...],
    contributions: Contributions | None,
    evidence: FloatArray | None,
    grades: _Grades,
) -> pd.DataFrame:
    """All findings, the highest score first, of equals the earlier."""
    table, values = prepared.table, prepared.values.to_numpy()
    rows = np.flatnonzero(flags)
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    if evidence is not None:
        weights = evidence[rows]
    elif contributions is None:
        weights = values[rows] - expected[rows]
        for judged in parts:
            weights[prepared.modes[rows] == judged.part.mode] /= judged.part.scale
        weights = np.nan_to_num(np.abs(weights))
    else:
        weights = contributions.of(rows).variables
    names = prepared.values.columns
    weights = np.where(np.isin(names, prepared.inputs.causes), weights, 0.0)
    order = np.argsort(-weights, axis=1, kind="stable")[:, :_NAMED_VARIABLES]
    columns: dict[str, Any] = {"rank": np.arange(1, len(rows) + 1)}
    if table.time is not None:
        columns["time"] = table.time[rows]
    if table.group is not None:
        columns["group"] = table.group.to_numpy()[rows]
    columns |= {
        "row": table.values.index[rows],
        "score": scores[rows],
        **grades.of(rows),
        "event": grouped.of_row[rows],
        "mode": prepared.modes[rows],
        "seen": 1.0 - np.isnan(values[rows]).mean(axis=1),
        "variables": [
            ", ".join(names[column] for column in worst if weights[place, column] > 0)
            for place, worst in enumerate(order)
        ],
    }
    return pd.DataFrame(columns).set_index("rank")


def _event_shares(
    grouped: Events, modes: NDArray[np.str_], scores: FloatArray, contributions: Contributions
) -> FloatArray:
    """(events, p) what the inputs add to the scores of an event's rows that are above the usual, of its peak's mode."""
    shares = np.full((len(grouped), contributions.variables.shape[1]), np.nan)
    for event, peak in zip(grouped.table.index, grouped.table["peak_row"], strict=True):
        rows = grouped.rows_of(int(event))
        rows = rows[(modes[rows] == modes[peak]) & (scores[rows] > 0)]
        if len(rows):
            added = np.maximum(contributions.of(rows).variables.sum(axis=0), 0.0)
            shares[int(event) - 1] = added / added.sum()
    return shares


def _evidence_shares(grouped: Events, modes: NDArray[np.str_], evidence: FloatArray | None) -> FloatArray | None:
    """(events, p) the share of each input in the squared evidence of an event's rows, of its peak's mode."""
    if evidence is None:
        return None
    shares = np.full((len(grouped), evidence.shape[1]), np.nan)
    for event, peak in zip(grouped.table.index, grouped.table["peak_row"], strict=True):
        rows = grouped.rows_of(int(event))
        added = (evidence[rows[modes[rows] == modes[peak]]] ** 2).sum(axis=0)
        if added.sum() > 0:
            shares[int(event) - 1] = added / added.sum()
    return shares


def _history_starts(parts: tuple[JudgedPart, ...], prepared: Prepared) -> BoolArray:
    """Where no incident goes on from the row before: a gap, another group, another mode."""
    rows = np.arange(len(prepared.modes))
    order = prepared.order(rows)
    starts: BoolArray = np.zeros(len(rows), dtype=np.bool_)
    for judged in parts:
        clock, seconds = judged.part.detector.model_.clock, read_time(None, order.get("time"), len(rows))
        starts |= clock.follow(len(rows), seconds, order["runs"]).starts
    starts[1:] |= prepared.modes[1:] != prepared.modes[:-1]
    return starts


def _incident_table(incidents: Sequence[Incident], chance: FloatArray | None, table: Table) -> pd.DataFrame:
    """One row per incident, with how often it is expected by chance."""
    found = incident_table(incidents, table.time)
    peaks = np.array([incident.peak for incident in incidents], dtype=np.intp)
    expected = np.full(len(peaks), np.nan) if chance is None else chance[peaks]
    found.insert(list(found).index("rank"), "expected_by_chance", expected)
    firsts = np.array([incident.rows[0] for incident in incidents], dtype=np.intp)
    return _in_source(found, firsts, table, "start", "end", "peak")


def _verdict(
    model: Model,
    prepared: Prepared,
    parts: tuple[JudgedPart, ...],
    scores: FloatArray,
    candidates: BoolArray,
    flags: BoolArray,
    peaks: Mapping[str, Sequence[int]],
    chance: FloatArray | None,
    threshold_rate: float | None,
    alike: list[Note],
) -> Verdict:
    """What the findings say as a whole; `peaks` are the highest rows of what is counted, and its name."""
    if chance is not None:
        rows, ((noun, peak_rows),) = np.flatnonzero(candidates), peaks.items()
        return about_incidents(chance[list(peak_rows)], _period(prepared.table, rows), noun)
    if threshold_rate is not None:
        rates = _rates(parts, scores, flags)
        return about_new_rows(rates[flags], int(candidates.sum()), threshold_rate)
    unsure = ""
    if model.judges_series:
        unsure = TOO_FEW_BLOCKS
    elif alike:
        unsure = FOLLOWING
    elif not model.tells_rates:
        unsure = NO_RATES
    elif any(judged.learnt is None or not np.isin(judged.rows, judged.learnt).all() for judged in parts):
        unsure = TOO_RARE
    if unsure:
        return Verdict("unknown", f"{unsure} {ONLY_RANKS}")
    values = prepared.values.to_numpy()
    try:
        again = [
            scores_without_the_highest(judged.part.detector, values[judged.rows], scores[judged.rows])
            for judged in parts
        ]
    except ValueError:  # without the highest rows a column has no readings, or too few rows are left
        return Verdict("unknown", f"{TOO_FEW_ROWS} {ONLY_RANKS}")
    return about_table(expected_by_chance(np.concatenate(again)))


def _period(table: Table, rows: IndexArray) -> str:
    """The time that was recorded in rows, without gaps between them, in words."""
    if table.time is None or len(rows) < 2:
        return counted(len(rows), "row")
    groups = [rows[(rows >= span.start) & (rows < span.stop)] for span in table.spans]
    seconds = np.concatenate([np.diff(table.time[mine]) / pd.Timedelta(seconds=1) for mine in groups])
    recorded = float(seconds[seconds <= learn_clock(np.cumsum(seconds)).gap].sum())
    return duration_in_words(recorded) if recorded else counted(len(rows), "row")


def _threshold_rarity(threshold: float, rate: float | None, parts: tuple[JudgedPart, ...]) -> str:
    """How many normal rows, or rows learnt from, exceed the threshold, in words."""
    scores = np.concatenate([judged.part.training_scores for judged in parts])
    if rate is None:
        above = int((scores > threshold).sum())
        verb = "exceed" if above > 1 else "exceeds"
        return f"{f'{above:,}' if above else 'none'} of the {len(scores):,} rows learnt from {verb}"
    extrapolated = rate < 1 / (len(scores) + 1)
    return rows_that(rate, "exceeds", "exceed", extrapolated=extrapolated, over_all_modes=len(parts) > 1)


def _in_source(found: pd.DataFrame, first_rows: IndexArray, table: Table, *places: str) -> pd.DataFrame:
    """Events or faults with the group of each, if there are groups, and without time with row numbers of the source."""
    if table.time is None:
        numbers = pd.Series(table.values.index)
        found = found.assign(**{name: found[name].map(numbers).astype(found[name].dtype) for name in places})
    return found if table.group is None else found.assign(group=table.group.to_numpy()[first_rows])


def _compare_with_label(
    prepared: Prepared, flags: BoolArray, scores: FloatArray
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
    return replace(found, faults=faults), [Note("label", truth.sentence, int(truth.faults.sum()))]


def _with_known_modes(prepared: Prepared, model: Model) -> tuple[BoolArray, list[Note]]:
    """The rows to judge, of modes that the model knows, and a note on the others."""
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


def _highest_learnt(scores: FloatArray, threshold: float) -> list[Note]:
    """A note if the threshold is the highest score of the rows learnt from: several rates have the same then."""
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
    """Notes on findings that are too many (then the model is doubtful), or about text more than about readings."""
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
