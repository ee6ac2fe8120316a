"""Why a row stands out: residuals, the nearest normal rows, and rules, composed for the events of one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray
from penstock.detection._parts import SIMILAR, Part, SimilarRows, are_usual, rebuilds, to_compare
from penstock.detection._wording import seen_as
from penstock.detectors.views import VIEWS
from penstock.explain import NormalSample, Rule, RuleTree, TreeWalker, find_rule, grow_tree, rank_variables
from penstock.graph.search import RowSearch, search_over

if TYPE_CHECKING:
    from penstock.detection.findings import Findings

MOST_EXPLAINED = 100
_FEWEST_EXPLAINED, _ROWS_READ = 20, 20_000_000  # each explanation reads all rows: of a long table fewer
N_VARIABLES = 8
N_NEIGHBORS = SIMILAR
_SETTING = ("variable", "unit", "before", "after", "share")
_LARGE_SHARE = 0.1  # of a setting that did not change with the event


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why an event is one.

    variables : those with the largest share, best first: variable, unit, actual, expected, difference, share (of the
        event's squared residual; see `parts`), direction ("above", "below", or "" where it is as expected), position
        (the row of the table where it is farthest off; if never, where it adds most to the score). If the mode changes
        during the event, only rows of the mode at its peak count, here and in the rule. Settings are left out.
    neighbors : normal rows to compare the event's peak with: position, row (as in the source), time (if there is one),
        distance (in scaled units), steps, score. Normal are training rows with a score of the lower half. They are
        those whose mean is expected: the most similar ones, without the variables that make up half of the score where
        that is known. For a detector that rebuilds rows, the nearest along its spanning tree, or in a straight line.
    comparison : the same variables, at the event's peak, as expected there, and in each of these neighbours.
    rebuilt : whether `expected` is what the model rebuilds of the row itself, and not the mean of the neighbours.
    rule : what tells the event's rows apart from rows that are not findings, of the same mode; None if nothing does.
    parts : of `penstock.Detector`: what each of its views adds to the score of the event's peak, in the order in which
        they add up to it. The shares of the variables are then those of the scores of the event's rows. None for other
        methods.
    rarity : of `penstock.Detector`: how many normal rows score as high as the peak, or only its rank, in words.
    settings : inputs that are set rather than measured, and so no cause, if they changed with the event or have a tenth
        of the share: variable, unit, before (the last reading before the event, of the same group), after (that at its
        peak, or the first that differs), share.
    """

    event: int
    variables: pd.DataFrame
    neighbors: pd.DataFrame
    comparison: pd.DataFrame
    rule: Rule | None
    parts: Mapping[str, float] | None = None
    rarity: str = ""
    rebuilt: bool = False
    settings: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(_SETTING)))

    @property
    def seen_as(self) -> str:
        """What the views say, in words: "far from everything (coarse 6.0, fine 5.4)"; "" for methods without views."""
        return "" if self.parts is None else seen_as(self.parts)

    @property
    def settings_in_words(self) -> list[str]:
        """A line for each setting: "setting limit: 5 → 7 MW (40% of it)"."""
        lines = []
        for row in self.settings.to_dict("records"):
            unit = f" {row['unit']}" if row["unit"] else ""
            moved = f"{row['before']:.6g} → {row['after']:.6g}{unit}"
            if pd.isna(row["before"]) or row["before"] == row["after"]:
                moved = f"{row['after']:.6g}{unit}{'' if pd.isna(row['before']) else ', unchanged'}"
            lines.append(f"setting {row['variable']}: {moved} ({row['share']:.0%} of it)")
        return lines

    def __str__(self) -> str:
        about = "; ".join(filter(None, (self.seen_as, self.rarity)))
        lines = [f"Event {self.event}{': ' if about else ''}{about}"]
        for row in self.variables.to_dict("records"):
            unit = f" {row['unit']}" if row["unit"] else ""
            actual, expected = f"{row['actual']:.6g}{unit}", f"{row['expected']:.6g}{unit}"
            word = "rebuilt as" if self.rebuilt else "expected"
            lines.append(f"  {row['variable']}: {actual}, {word} {expected} ({row['share']:.0%} of it)")
        lines += [f"  {text}" for text in self.settings_in_words]
        lines.append(f"  rule: {self.rule.text if self.rule else 'none tells it apart'}")
        return "\n".join(lines)


class _Surroundings:
    """Where the rows of a part are among those that it has learnt from, and which of these are usual."""

    def __init__(self, part: Part, learnt: IndexArray, is_usual: NDArray[np.bool_], values: FloatArray) -> None:
        self._part, self._learnt, self._is_usual, self._values = part, learnt, is_usual, values

    def nearest_usual(self, position: int, compared: FloatArray, n: int) -> tuple[IndexArray, FloatArray, IndexArray]:
        """The n usual rows nearest to a row, how far they are, and in how many steps.

        compared : its readings by which others are similar, of a detector that walks no tree.
        """
        if not self._is_usual.any():
            return np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0, dtype=np.intp)
        if not walks_tree(self._part):
            near, distances = (found[0] for found in self._similar.nearest(compared, n))
            seen = near >= 0
            return self._learnt[self._is_usual][near[seen]], distances[seen], np.ones(int(seen.sum()), dtype=np.intp)
        node, apart, steps = self._node_of(position)
        own = np.full(int(steps and self._is_usual[node]), node)  # the walk leaves out where it starts
        walk = self._walker.nearest_normal([node], self._is_usual, n=n - len(own))
        lengths = np.append(np.zeros(len(own)), walk.lengths)
        edges = np.append(np.zeros(len(own), dtype=np.intp), walk.steps)
        return self._learnt[np.append(own, walk.nodes)], lengths + apart, edges + steps

    def _node_of(self, position: int) -> tuple[int, float, int]:
        """The node of a row in the tree; of a row that was not learnt the nearest node, one step away, and how far."""
        place = int(np.searchsorted(self._learnt, position))
        if place < len(self._learnt) and self._learnt[place] == position:
            return place, 0.0, 0
        near, distances = self._all_rows.nearest(self._part.scaled(self._values[[position]]), 1)
        return max(int(near[0, 0]), 0), float(distances[0, 0]), 1  # any, infinitely far, if none shares a reading

    @cached_property
    def _walker(self) -> TreeWalker:
        return TreeWalker(self._part.detector.tree_)

    @cached_property
    def _all_rows(self) -> RowSearch:
        return search_over(self._part.scaled(self._values[self._learnt]))

    @cached_property
    def _similar(self) -> SimilarRows:
        return SimilarRows(self._part, self._values[self._learnt[self._is_usual]])


class Explainer:
    """Explains the events of some findings, each once."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._known: dict[int, Explanation] = {}
        self._surroundings: dict[int, _Surroundings] = {}
        self._normals: dict[int, tuple[NDArray[np.bool_], NormalSample]] = {}

    def explain(self, event: int) -> Explanation:
        if event not in self._known:
            self._refuse_unknown(event)
            self._known[event] = self._explain(int(event))
        return self._known[event]

    def variables(self, event: int) -> pd.DataFrame:
        """The first part of an explanation, without the costlier ones."""
        self._refuse_unknown(event)
        return self._known[event].variables if event in self._known else self._split(*self._rows_of(event))[0]

    def settings(self, event: int) -> pd.DataFrame:
        """The settings of an explanation, without the costlier parts."""
        self._refuse_unknown(event)
        return self._settings(event, self._split(*self._rows_of(event))[1])

    def shares(self, event: int) -> FloatArray | None:
        """Of each variable, what it adds to the scores of an event's rows, as a share; None if nobody can tell."""
        self._refuse_unknown(event)
        return self._shares(self._rows_of(event)[0])

    def _refuse_unknown(self, event: int) -> None:
        if event not in self._findings.events.index:
            last = len(self._findings.events)
            raise KeyError(
                f"There is no event {event!r}: they are numbered from 1 to {last}." if last else "No events."
            )

    def rule_tree(self) -> RuleTree | None:
        findings = self._findings
        normal = findings.judged & ~findings.flags
        if not normal.any() or not findings.flags.any():
            return None
        rows, names = np.flatnonzero(findings.judged), list(findings.inputs.causes)
        units = [findings.units.get(name, "") for name in names]
        return grow_tree(findings.values[names].to_numpy()[rows], findings.flags[rows], names, units=units)

    def _explain(self, event: int) -> Explanation:
        rows, place = self._rows_of(event)
        variables, of_settings = self._split(rows, place)
        peak = self._peak_of(event)
        neighbors = self._neighbors(peak, place)
        return Explanation(
            event,
            variables,
            neighbors,
            self._compare(peak, variables, neighbors),
            self._rule(rows, place, variables),
            self._views(peak),
            self._findings.rarity(peak),
            self._findings.rebuilt,
            self._settings(event, of_settings),
        )

    def _peak_of(self, event: int) -> int:
        return int(self._findings.events["peak_row"].loc[event])

    def _rows_of(self, event: int) -> tuple[IndexArray, int]:
        """The rows of an event in the mode of its peak, as what counts as one differs between modes; and its part."""
        rows, peak = self._findings.grouped.rows_of(event), self._peak_of(event)
        modes = self._findings.modes
        return rows[modes[rows] == modes[peak]], self._place_of(peak)

    def _split(self, rows: IndexArray, place: int) -> tuple[pd.DataFrame, dict[str, float]]:
        """The variables with the largest share that may be causes, and the shares of the settings."""
        variables = self._variables(rows, place)
        is_cause = variables["variable"].isin(self._findings.inputs.causes)
        others = variables[~is_cause]
        shares = dict(zip(others["variable"], others["share"], strict=True))
        return variables[is_cause].head(N_VARIABLES).reset_index(drop=True), shares

    def _settings(self, event: int, shares: Mapping[str, float]) -> pd.DataFrame:
        """The settings that changed with an event, or have a large share, the largest first."""
        findings, grouped = self._findings, self._findings.grouped
        span, peak = grouped.span_of(event), self._peak_of(event)
        start = findings.table.span_of(span.start).start
        lines: list[tuple[str, str, float, float, float]] = []
        for name in findings.inputs.settings if findings.inputs.causes != findings.names else ():
            readings = findings.values[name].to_numpy()
            earlier = readings[start : span.start]
            known = earlier[~np.isnan(earlier)]
            before, inside = known[-1] if len(known) else np.nan, readings[span]
            other = inside[~np.isnan(inside) & (inside != before)] if len(known) else inside[:0]
            after = readings[peak] if readings[peak] != before or not len(other) else other[0]
            if len(other) or shares.get(name, 0.0) >= _LARGE_SHARE:
                lines.append((name, findings.units.get(name, ""), before, after, shares.get(name, 0.0)))
        found = pd.DataFrame(lines, columns=list(_SETTING))
        return found.sort_values("share", ascending=False, kind="stable", ignore_index=True)

    def _variables(self, rows: IndexArray, place: int) -> pd.DataFrame:
        """All variables with a share."""
        findings = self._findings
        actual, expected = findings.values.to_numpy()[rows], findings.expected.to_numpy()[rows]
        scale = findings.parts[place].part.scale
        variables = rank_variables(actual, expected, scale, findings.names, self._units, n=len(findings.names))
        shares = self._shares(rows)
        if shares is not None:
            farthest = dict(zip(variables["variable"], variables["row"], strict=True))
            variables = self._with_shares(rows, shares, farthest)
        variables["position"] = rows[variables.pop("row").to_numpy(dtype=np.intp)]
        return variables

    def _with_shares(self, rows: IndexArray, shares: FloatArray, farthest: Mapping[str, int]) -> pd.DataFrame:
        """All variables with a share, as `rank_variables` has them, also those that are as expected.

        farthest : of those that are not, at which of the rows they are farthest off.
        """
        findings = self._findings
        assert findings.told is not None
        chosen = np.argsort(-shares, kind="stable")
        chosen = chosen[shares[chosen] > 0]
        names = [findings.names[j] for j in chosen]
        adds_most = findings.told.of(rows).variables[:, chosen].argmax(axis=0).tolist()
        row = np.array([farthest.get(name, most) for name, most in zip(names, adds_most, strict=True)], dtype=np.intp)
        actual, expected = (table.to_numpy()[rows[row], chosen] for table in (findings.values, findings.expected))
        with np.errstate(over="ignore"):
            difference = actual - expected
        direction = np.select([difference > 0, difference < 0], ["above", "below"], "")
        return pd.DataFrame(
            {
                "variable": pd.Series(names, dtype=object),
                "unit": pd.Series([self._units[j] for j in chosen], dtype=object),
                "actual": actual,
                "expected": expected,
                "difference": difference,
                "row": row,
                "share": shares[chosen],
                "direction": pd.Series(direction, dtype=object),
            }
        )

    def _shares(self, rows: IndexArray) -> FloatArray | None:
        """What the variables add to the scores of rows that are above the usual, as shares; None if nobody can tell."""
        findings = self._findings
        rows = rows[findings.scores[rows] > 0]
        if findings.told is None or not len(rows):
            return None
        added = np.maximum(findings.told.of(rows).variables.sum(axis=0), 0.0)
        shares: FloatArray = added / added.sum()
        return shares

    def _views(self, peak: int) -> dict[str, float] | None:
        """What each view adds to the score of the peak."""
        told = self._findings.told
        return None if told is None else dict(zip(VIEWS, told.of(np.array([peak])).views[0].tolist(), strict=True))

    def _rule(self, rows: IndexArray, place: int, variables: pd.DataFrame) -> Rule | None:
        findings = self._findings
        if variables.empty and findings.inputs.causes != findings.names:
            return None  # a rule would be about settings
        is_event = np.zeros(len(findings.flags), dtype=np.bool_)
        is_event[rows] = True
        is_normal, sample = self._normal(place)
        shares = variables.set_index("variable")["share"].reindex(findings.names, fill_value=0.0).to_numpy()
        return find_rule(
            findings.values.to_numpy(),
            is_event,
            findings.names,
            is_normal=is_normal,
            units=self._units,
            weights=shares,
            normals=sample,
        )

    def _normal(self, place: int) -> tuple[NDArray[np.bool_], NormalSample]:
        """Which rows of a part are no findings, and some of them, sorted once for all events."""
        if place not in self._normals:
            findings = self._findings
            is_normal = np.zeros(len(findings.flags), dtype=np.bool_)
            of_mode = findings.parts[place].rows
            is_normal[of_mode] = findings.judged[of_mode] & ~findings.flags[of_mode]
            self._normals[place] = is_normal, NormalSample.drawn_from(findings.values.to_numpy(), is_normal)
        return self._normals[place]

    def _neighbors(self, peak: int, place: int) -> pd.DataFrame:
        findings = self._findings
        learnt = findings.parts[place].learnt
        if learnt is None:
            return _no_neighbors(findings.table.time is not None)
        compared = to_compare(np.array([peak]), findings.values.to_numpy(), findings.told)
        positions, distances, steps = self._surroundings_of(place, learnt).nearest_usual(peak, compared, N_NEIGHBORS)
        columns: dict[str, Any] = {"position": positions, "row": findings.table.values.index[positions]}
        if findings.table.time is not None:
            columns["time"] = findings.table.time[positions]
        columns |= {"distance": distances, "steps": steps, "score": findings.scores[positions]}
        return pd.DataFrame(columns)

    def _place_of(self, position: int) -> int:
        """Which of the parts a row belongs to."""
        mode = self._findings.modes[position]
        return next(n for n, judged in enumerate(self._findings.parts) if judged.part.mode == mode)

    def _surroundings_of(self, place: int, learnt: IndexArray) -> _Surroundings:
        if place not in self._surroundings:
            findings = self._findings
            is_usual = are_usual(learnt, findings.scores, findings.flags)
            self._surroundings[place] = _Surroundings(
                findings.parts[place].part, learnt, is_usual, findings.values.to_numpy()
            )
        return self._surroundings[place]

    def _compare(self, peak: int, variables: pd.DataFrame, neighbors: pd.DataFrame) -> pd.DataFrame:
        names = variables["variable"].tolist()
        values, expected = self._findings.values, self._findings.expected
        columns = {"actual": values.iloc[peak][names], "expected": expected.iloc[peak][names]}
        for number, position in enumerate(neighbors["position"], 1):
            columns[f"neighbor {number}"] = values.iloc[position][names]
        return pd.DataFrame(columns, index=pd.Index(names, name="variable"))

    @cached_property
    def _units(self) -> list[str]:
        return [self._findings.units.get(name, "") for name in self._findings.names]


def walks_tree(part: Part) -> bool:
    """Whether the nearest normal rows are those along the detector's tree; else expected is the mean of them."""
    return rebuilds(part.detector) and hasattr(part.detector, "tree_")


def _no_neighbors(has_time: bool) -> pd.DataFrame:
    names = ["position", "row", *(["time"] if has_time else []), "distance", "steps", "score"]
    return pd.DataFrame({name: [] for name in names}).astype({"position": np.intp})


def events_to_explain(findings: Findings, most: int | None = None) -> list[int]:
    """The gravest events in order of time: `most` of them, or if None 100, of a long table fewer, but at least 20."""
    if most is None:
        most = min(MOST_EXPLAINED, max(_FEWEST_EXPLAINED, _ROWS_READ // max(1, len(findings.scores))))
    gravest = findings.events.sort_values("rank").index[:most]
    return sorted(int(event) for event in gravest)
