"""The latent groups: typical situations that the model has learnt, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from penstock._types import FloatArray, IndexArray
from penstock.detection import Findings
from penstock.explain import Group, describe_groups, group_of_row
from penstock.report.words import name_tag, numbers, percent

_SAMPLE = 5_000  # rows of a table that was not learnt from
_MOST_VALUES = 500  # variables in the list of all profiles


@dataclass(frozen=True)
class Telling:
    """A variable in which a group departs from the usual; `at` and `usual_at` are places from 0 to 100 in its range."""

    name: Markup
    unit: str
    value: str
    usual: str
    at: float
    usual_at: float


@dataclass(frozen=True)
class GroupCard:
    number: int
    members: str
    share: str
    width: float
    findings: str
    telling: tuple[Telling, ...]


@dataclass(frozen=True)
class ModeGroups:
    """The groups of one mode; `profiles` has a line per variable: name, unit, and the value in each group."""

    mode: str
    groups: tuple[GroupCard, ...]
    profiles: list[tuple[Markup, str, list[str]]]
    left_out: int
    about: str


def mode_groups(findings: Findings) -> list[ModeGroups]:
    """One record per mode whose detector has latent groups."""
    found = []
    for judged in findings.parts:
        weighed = _weights(findings, judged)
        if weighed is not None:
            found.append(_describe(findings, judged.part.mode, judged.part.detector, *weighed))
    return found


def _weights(findings: Findings, judged: Any) -> tuple[FloatArray, IndexArray, str] | None:
    """The weights of rows in the groups, which rows these are, and words for them."""
    detector = judged.part.detector
    if not hasattr(detector, "components_"):
        return None
    if judged.learnt is not None and hasattr(detector, "embedding_"):
        every = len(judged.learnt) == len(judged.rows)
        return detector.embedding_, judged.learnt, "rows" if every else "of the rows learnt from"
    if not hasattr(detector, "transform") or not len(judged.rows):
        return None
    step = -(-len(judged.rows) // _SAMPLE)
    rows = judged.rows[::step]
    return detector.transform(findings.values.to_numpy()[rows]), rows, "rows" if step == 1 else f"every {step}th row"


def _describe(findings: Findings, mode: str, detector: Any, W: FloatArray, rows: IndexArray, about: str) -> ModeGroups:
    scaling = getattr(detector, "scaling_", None)
    undo = (lambda scaled: scaled) if scaling is None else scaling.undo
    groups = describe_groups(W, detector.components_, undo, findings.names)
    belongs = group_of_row(W, detector.components_)
    flagged = np.bincount(belongs[(belongs >= 0) & findings.flags[rows]], minlength=len(groups))
    low, high = _ranges(findings, rows)
    order = sorted(groups, key=lambda group: -group.members)
    columns = list(range(min(len(findings.names), _MOST_VALUES)))
    return ModeGroups(
        mode,
        tuple(_card(findings, group, int(flagged[group.number]), low, high) for group in order),
        [
            (name_tag(name), findings.units.get(name, ""), numbers([float(group.profile[j]) for group in order]))
            for j, name in ((j, findings.names[j]) for j in columns)
        ],
        len(findings.names) - len(columns),
        about,
    )


def _card(findings: Findings, group: Group, flagged: int, low: FloatArray, high: FloatArray) -> GroupCard:
    telling = []
    for row in group.telling.to_dict("records"):
        column = findings.names.index(row["variable"])
        ends = low[column], high[column]
        here, usual = numbers([row["value"], row["usual"]])
        at, usual_at = _place(row["value"], *ends), _place(row["usual"], *ends)
        unit = findings.units.get(row["variable"], "")
        telling.append(Telling(name_tag(row["variable"]), unit, here, usual, at, usual_at))
    share = 100 * group.share
    return GroupCard(
        group.number + 1, f"{group.members:,}", percent(group.share), share, f"{flagged:,}", tuple(telling)
    )


def _ranges(findings: Findings, rows: IndexArray) -> tuple[FloatArray, FloatArray]:
    values = findings.values.to_numpy()[rows]
    known = np.isfinite(values)
    low = np.where(known, values, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, values, -np.inf).max(axis=0, initial=-np.inf)
    return low, high


def _place(value: float, low: float, high: float) -> float:
    if not np.isfinite([value, low, high]).all() or not high > low:
        return 50.0
    return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 1)
