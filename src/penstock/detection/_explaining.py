"""Explain the events of one table, and describe what the model of each mode has fitted.

`Findings` without explanations come in, `Explained` goes out: an `Explanation` for each of the most severe events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from penstock._types import IndexArray
from penstock.columns import InputRole
from penstock.detection._parts import SIMILAR, ScoredPart, SimilarRows, are_usual, to_compare
from penstock.detectors.views import VIEWS
from penstock.explain import (
    Group,
    Rule,
    describe_groups,
    find_rule,
    group_of_row,
    grow_tree,
    rank_variables,
)

if TYPE_CHECKING:
    from penstock.detection.findings import Explained, Findings

MOST_EXPLAINED = 100
_FEWEST_EXPLAINED, _ROWS_READ = 20, 20_000_000  # each explanation reads all rows: of a long table fewer
_N_VARIABLES = 8
_SETTING = ("variable", "unit", "before", "after", "share")
_LARGE_SHARE = 0.1  # of a setting that did not change with the event
_SAMPLE = 5_000  # rows whose groups are described, of a table that was not fitted to
_VIEWS = {
    "coarse": "far from most rows",
    "fine": "far from all typical rows",
    "local": "far from its nearest neighbours",
    "marginal": "with readings that are rare by themselves",
}


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why an event is one.

    Attributes
    ----------
    event : int
        Its number.
    variables : DataFrame
        Those with the largest share, best first: variable, unit, actual, expected, difference, share (of the event's
        squared residual; see `parts`), direction ("above", "below", or "" where it is as expected), position (the row
        of the table where it is farthest off; if never, where it adds most to the score). If the mode changes during
        the event, only rows of the mode at its peak count, here and in the rule. Settings are left out.
    neighbors : DataFrame
        Normal rows to compare the event's peak with: position, row (as in the source), time (if there is one), distance
        (in scaled units), score. Normal are training rows with a score of the lower half. They are the most similar
        ones, without the variables that make up half of the score where that is known; of a detector that rebuilds
        nothing, what is expected is their mean.
    comparison : DataFrame
        The same variables, at the event's peak, as expected there, and in each of these neighbours.
    rule : Rule or None
        What separates the event's rows from rows that are not findings, of the same mode; None if nothing does.
    parts : mapping or None
        Of `penstock.Detector`: what each of its views adds to the score of the event's peak, in the order in which they
        add up to it. The shares of the variables are then those of the scores of the event's rows.
    seen_as : str
        What the views say, in words: "far from everything"; "" for methods without views.
    rebuilt : bool
        Whether `expected` is what the model rebuilds of the row itself, and not the mean of the neighbours.
    settings : DataFrame
        Inputs that are set rather than measured, and so no cause, if they changed with the event or have a tenth of the
        share: variable, unit, before (the last reading before the event, of the same group), after (that at its peak,
        or the first that differs), share.
    states : mapping of names to InputRole
        Inputs that are states, and so are on or off rather than high or low.

    Examples
    --------
    >>> import penstock
    >>> table = penstock.datasets.load_plant().table
    >>> why = penstock.detect(table, method="norm", top=1).explain(1)
    >>> bool(why.variables["share"].is_monotonic_decreasing), len(why.comparison) == len(why.variables)
    (True, True)
    """

    event: int
    variables: pd.DataFrame
    neighbors: pd.DataFrame
    comparison: pd.DataFrame
    rule: Rule | None
    parts: Mapping[str, float] | None = None
    seen_as: str = ""
    rebuilt: bool = False
    settings: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(_SETTING)))
    states: Mapping[str, InputRole] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"Event {self.event}{': ' if self.seen_as else ''}{self.seen_as}"]
        word = "rebuilt as" if self.rebuilt else "expected"
        for row in self.variables.to_dict("records"):
            unit = f" {row['unit']}" if row["unit"] else ""
            actual, expected = f"{row['actual']:.6g}{unit}", f"{row['expected']:.6g}{unit}"
            role = self.states.get(row["variable"])
            if role is not None and not self.rebuilt:
                actual, expected = role.in_words(row["actual"]), role.in_words(row["expected"])
            lines.append(f"  {row['variable']}: {actual}, {word} {expected} ({row['share']:.0%} of it)")
        for row in self.settings.to_dict("records"):
            lines.append(f"  {_setting_text(row, self.states.get(row['variable']))}")
        lines.append(f"  rule: {self.rule.text if self.rule else 'no simple rule'}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class ModeGroups:
    """The latent groups of one mode's detector."""

    mode: str
    groups: tuple[Group, ...]
    findings: IndexArray  # (K,) how many findings belong to each group
    about: str  # which rows these are: "rows", "of the rows fitted to" or "every 3th row"


def explain_findings(findings: Findings, most: int | None) -> Explained:
    """Explain the most severe events, and the models.

    most : how many events are explained. None: 100, of a long table fewer, but at least 20. 0: nothing is explained.
    """
    if most is None:
        most = min(MOST_EXPLAINED, max(_FEWEST_EXPLAINED, _ROWS_READ // max(1, len(findings.scores))))
    elif most == 0:
        return findings.explained
    explainer = Explainer(findings)
    events = sorted(int(event) for event in findings.events["rank"].sort_values().index[:most])
    return replace(
        findings.explained,
        events={event: explainer.explain(event) for event in events},
        rule_tree=_rule_tree(findings),
        groups=tuple(filter(None, (_mode_groups(findings, each) for each in findings.rows.parts))),
    )


class Explainer:
    """Explains events of some findings; what several of them need is computed once."""

    def __init__(self, findings: Findings) -> None:
        inputs = findings.inputs
        self._findings = findings
        self._values, self._expected = inputs.values.to_numpy(), inputs.expected.to_numpy()
        self._units = [inputs.units[name] for name in inputs.names]
        self._parts = {each.part.mode: each for each in findings.rows.parts}
        self._usual: dict[str, tuple[IndexArray, SimilarRows]] = {}
        roles = {name: inputs.choice.role_of(name) for name in inputs.names}
        self._states = {name: role for name, role in roles.items() if role.levels}

    def explain(self, event: int) -> Explanation:
        """Explain one event by its number in `findings.events`; a KeyError if there is none."""
        findings = self._findings
        last = len(self._findings.events)
        if event not in findings.events.index:
            numbers = f"There is no event {event!r}: they are numbered from 1 to {last}."
            raise KeyError(numbers if last else "There are no events.")
        event, peak = int(event), int(findings.events["peak_row"].loc[event])
        mode = findings.rows.modes[peak]
        rows = findings.rows.grouped.rows_of(event)
        rows = rows[findings.rows.modes[rows] == mode]  # what counts as one differs between modes
        every = self._variables(event, rows, self._parts[mode])
        is_cause = every["variable"].isin(findings.inputs.choice.causes)
        variables = every[is_cause].head(_N_VARIABLES).reset_index(drop=True)
        neighbors = self._neighbors(peak, mode)
        views = None
        if findings.rows.contributions is not None:
            added = findings.rows.contributions.of(np.array([peak])).views[0]
            views = dict(zip(VIEWS, added.tolist(), strict=True))
        return Explanation(
            event=event,
            variables=variables,
            neighbors=neighbors,
            comparison=self._compare(peak, variables["variable"].tolist(), neighbors["position"].tolist()),
            rule=self._rule(rows, mode, variables),
            parts=views,
            seen_as="" if views is None else seen_as(views),
            rebuilt=findings.inputs.rebuilt,
            settings=self._settings(event, peak, dict(zip(every["variable"], every["share"], strict=True))),
            states=self._states,
        )

    def _variables(self, event: int, rows: IndexArray, each: ScoredPart) -> pd.DataFrame:
        """Return all variables with a share of the event's scores where that is known, else of its squared residual."""
        findings, names = self._findings, self._findings.inputs.names
        shares = None if findings.explained.shares is None else findings.explained.shares[event - 1]
        added = None
        if shares is not None and np.isnan(shares).any():
            shares = None
        elif findings.rows.contributions is not None:
            added = findings.rows.contributions.of(rows).variables
        elif findings.rows.evidence is not None:
            added = findings.rows.evidence[rows]
        actual, expected = self._values[rows], self._expected[rows]
        found = rank_variables(
            actual, expected, each.part.scale, names, self._units, n=len(names), shares=shares, added=added
        )
        found["position"] = rows[found.pop("row").to_numpy(dtype=np.intp)]
        return found

    def _settings(self, event: int, peak: int, shares: Mapping[str, float]) -> pd.DataFrame:
        """Return the settings that changed with an event, or have a large share, the largest first."""
        findings = self._findings
        span = findings.rows.grouped.span_of(event)
        start = findings.table.span_of(span.start).start
        lines = []
        for name in findings.inputs.choice.settings if findings.inputs.choice.causes != findings.inputs.names else ():
            readings = findings.inputs.values[name].to_numpy()
            earlier = readings[start : span.start]
            known = earlier[~np.isnan(earlier)]
            before = known[-1] if len(known) else np.nan
            inside = readings[span]
            other = inside[~np.isnan(inside) & (inside != before)] if len(known) else inside[:0]
            after = readings[peak] if readings[peak] != before or not len(other) else other[0]
            if len(other) or shares.get(name, 0.0) >= _LARGE_SHARE:
                lines.append((name, findings.inputs.units[name], before, after, shares.get(name, 0.0)))
        found = pd.DataFrame(lines, columns=list(_SETTING))
        return found.sort_values("share", ascending=False, kind="stable", ignore_index=True)

    def _rule(self, rows: IndexArray, mode: str, variables: pd.DataFrame) -> Rule | None:
        findings = self._findings
        names = findings.inputs.names
        if variables.empty and findings.inputs.choice.causes != names:
            return None  # a rule would be about settings
        is_event = np.zeros(len(self._values), dtype=np.bool_)
        is_event[rows] = True
        is_normal = findings.rows.scored & ~findings.flags & (findings.rows.modes == mode)
        shares = variables.set_index("variable")["share"].reindex(names, fill_value=0.0).to_numpy()
        return find_rule(self._values, is_event, names, is_normal=is_normal, units=self._units, weights=shares)

    def _neighbors(self, peak: int, mode: str) -> pd.DataFrame:
        """Return the usual rows fitted to that are most like a row, if these are of this table."""
        findings = self._findings
        positions = np.zeros(0, dtype=np.intp)
        distances = np.zeros(0)
        fitted = self._parts[mode].fitted
        if mode not in self._usual and fitted is not None:
            usual = fitted[are_usual(fitted, findings.scores, findings.flags)]
            self._usual[mode] = usual, SimilarRows(self._parts[mode].part, self._values[usual])
        if mode in self._usual and len(self._usual[mode][0]):
            usual, similar = self._usual[mode]
            compared = to_compare(np.array([peak]), self._values, findings.rows.contributions)
            near, apart = (found[0] for found in similar.nearest(compared, SIMILAR))
            positions, distances = usual[near[near >= 0]], apart[near >= 0]
        columns: dict[str, Any] = {"position": positions, "row": findings.table.values.index[positions]}
        if findings.table.time is not None:
            columns["time"] = findings.table.time[positions]
        return pd.DataFrame(columns | {"distance": distances, "score": findings.scores[positions]})

    def _compare(self, peak: int, names: list[str], positions: list[int]) -> pd.DataFrame:
        places = [self._findings.inputs.names.index(name) for name in names]
        columns = {"actual": self._values[peak, places], "expected": self._expected[peak, places]}
        for number, position in enumerate(positions, 1):
            columns[f"neighbor {number}"] = self._values[position, places]
        return pd.DataFrame(columns, index=pd.Index(names, name="variable"))


def seen_as(parts: Mapping[str, float]) -> str:
    """Return what the views that raise the score of a row say of it.

    >>> seen_as({"coarse": 6.03, "fine": 5.4, "local": 0.0, "marginal": 0.0})
    'far from everything'
    >>> seen_as({"coarse": 0.0, "fine": 0.0, "local": 3.04, "marginal": -0.2})
    'far from its nearest neighbours'
    """
    raised = [view for view, part in parts.items() if part > 0]
    if raised == ["coarse", "fine"]:
        return "far from everything"
    return " and ".join(_VIEWS[view] for view in raised).replace("and far from", "and from") or "hardly unusual"


def _setting_text(row: Mapping[Any, Any], state: InputRole | None) -> str:
    """Return a setting as a line: "setting limit: 5 → 7 MW (40% of it)", "state pump: switched on (40% of it)"."""
    if state is not None:
        return f"state {row['variable']}: {state_in_words(row, state)} ({row['share']:.0%} of it)"
    unit = f" {row['unit']}" if row["unit"] else ""
    moved = f"{row['before']:.6g} → {row['after']:.6g}{unit}"
    if pd.isna(row["before"]) or row["before"] == row["after"]:
        moved = f"{row['after']:.6g}{unit}{'' if pd.isna(row['before']) else ', unchanged'}"
    return f"setting {row['variable']}: {moved} ({row['share']:.0%} of it)"


def state_in_words(row: Mapping[Any, Any], state: InputRole) -> str:
    """Return what a state of `Explanation.settings` did: "switched on", "at 1 → at 2", "on, unchanged"."""
    after = state.in_words(row["after"])
    if pd.isna(row["before"]):
        return after
    if row["before"] == row["after"]:
        return f"{after}, unchanged"
    return f"switched {after}" if after in ("on", "off") else f"{state.in_words(row['before'])} → {after}"


def _rule_tree(findings: Findings) -> str:
    rows = np.flatnonzero(findings.rows.scored)
    names = list(findings.inputs.choice.causes)
    if not findings.flags.any() or findings.flags[rows].all():
        return ""
    units = [findings.inputs.units[name] for name in names]
    return grow_tree(findings.inputs.values[names].to_numpy()[rows], findings.flags[rows], names, units=units)


def _mode_groups(findings: Findings, each: ScoredPart) -> ModeGroups | None:
    """Describe the latent groups of a mode by the rows fitted to, or by rows of the table."""
    detector = each.part.detector
    if not hasattr(detector, "components_"):
        return None
    values = findings.inputs.values.to_numpy()
    if each.fitted is not None and hasattr(detector, "embedding_"):
        rows, weights = each.fitted, detector.embedding_
        about = "rows" if len(rows) == len(each.rows) else "of the rows fitted to"
    elif hasattr(detector, "transform") and len(each.rows):
        step = -(-len(each.rows) // _SAMPLE)
        rows = each.rows[::step]
        weights = detector.transform(values[rows])
        about = "rows" if step == 1 else f"every {step}th row"
    else:
        return None
    scaling = getattr(detector, "scaling_", None)
    undo = (lambda scaled: scaled) if scaling is None else scaling.undo
    groups = describe_groups(weights, detector.components_, undo, findings.inputs.names)
    belongs = group_of_row(weights, detector.components_)
    found = np.bincount(belongs[(belongs >= 0) & findings.flags[rows]], minlength=len(groups))
    return ModeGroups(each.part.mode, groups, found, about)
