"""Columns that say the same as an earlier one."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray

_ROUNDING = 1e-9  # of 1 − |correlation|
_FEWEST_ROWS = 10  # with fewer, columns lie on a line by chance
_PROJECTIONS = 3
_LEAST_COMMON = 0.9  # of the rows have to be known in both of two columns with holes in different rows
_TRIPLES = 16
_FEWEST_RATIOS = 3
_ALIKE = 1e-3
_WINDOW = 10 * np.sqrt(2 * _ROUNDING)  # ten standard deviations of what rounding may move a place by

BoolArray = NDArray[np.bool_]


def copies_of_numbers(columns: FloatArray, names: list[str]) -> dict[str, str]:
    """For each column that equals an earlier one, or lies with it on a straight line to rounding: which one.

    Instead of all pairs, the columns, each of mean 0 and length 1, are projected onto three random directions: copies
    fall on the same place, or on the mirrored one. Only columns on the same place are compared in full, so that the
    time grows with the number of columns and not with its square. Columns with values missing in different rows are
    compared by `_copies_across_holes`, if both are known in 90 % of the rows.

    >>> celsius = np.linspace(0, 30, 40) ** 2
    >>> columns = np.column_stack([celsius, np.sqrt(celsius), 32 + 1.8 * celsius])
    >>> copies_of_numbers(columns, ["celsius", "root", "fahrenheit"])
    {'fahrenheit': 'celsius'}
    """
    if len(columns) < _FEWEST_ROWS:
        return _equal_columns(columns, names)
    present = np.isfinite(columns)
    unit = _unit_columns(columns, present)
    places = np.abs(np.random.default_rng(0).standard_normal((_PROJECTIONS, len(columns))) @ unit)
    groups: list[list[int]] = []
    start = 0  # of the groups that are still near
    for column in np.argsort(places[0], kind="stable").tolist():
        if not places[:, column].any():
            continue
        while start < len(groups) and places[0, column] - places[0, groups[start][0]] > _WINDOW:
            start += 1
        for group in groups[start:]:
            near = (np.abs(places[:, group[0]] - places[:, column]) <= _WINDOW).all()
            if near and _same(unit, present, group[0], column):
                group.append(column)
                break
        else:
            groups.append([column])
    found = {copy: min(group) for group in groups for copy in group if copy != min(group)}
    across = _copies_across_holes(columns, present, found)
    found = {copy: across.get(origin, origin) for copy, origin in (found | across).items()}
    return {names[copy]: names[found[copy]] for copy in sorted(found)}


def copies_of_texts(texts: pd.DataFrame) -> dict[str, str]:
    """For each column of text that is an earlier one, perhaps with other words for the same things: which one.

    >>> copies_of_texts(pd.DataFrame({"state": ["on", "off", "on"], "zustand": ["an", "aus", "an"]}))
    {'zustand': 'state'}
    """
    seen: dict[bytes, str] = {}
    found: dict[str, str] = {}
    for name in texts.columns:
        codes = pd.factorize(texts[name])[0].tobytes()
        if codes in seen:
            found[name] = seen[codes]
        seen.setdefault(codes, name)
    return found


def _unit_columns(columns: FloatArray, present: BoolArray) -> FloatArray:
    """Columns of mean 0 and length 1; 0 where a value is missing, and all 0 where a column is constant or too short."""
    filled = np.where(present, columns, 0.0)
    largest = np.abs(filled).max(axis=0)
    filled = np.divide(filled, largest, out=filled, where=largest > 0)  # so that squares stay finite
    mean = filled.sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    centred = np.where(present, filled - mean, 0.0)
    length = np.sqrt((centred**2).sum(axis=0))
    enough = (length > 1e-12) & (present.sum(axis=0) >= _FEWEST_ROWS)
    unit: FloatArray = np.divide(centred, length, out=np.zeros_like(centred), where=enough)
    return unit


def _copies_across_holes(columns: FloatArray, present: BoolArray, found: dict[int, int]) -> dict[int, int]:
    """Copies among the columns that are in none yet, of which at least one has values missing.

    On a straight line (x₁ − x₂) ÷ (x₃ − x₂) is the same in both, for any three rows that are known in both. Only
    columns that agree in this for some rows taken at random are compared in full.
    """
    shares = np.array([np.count_nonzero(column) for column in present.T]) / len(present)  # quicker than a mean
    known = [column for column in np.flatnonzero(shares >= _LEAST_COMMON).tolist() if column not in found]
    full = shares[known] == 1
    if full.all():
        return {}
    rows = np.random.default_rng(0).integers(0, len(columns), 3 * _TRIPLES)
    first, second, third = np.split(columns[rows][:, known], 3)
    with np.errstate(all="ignore"):
        ratios = (first - second) / (third - second)
    ratios[~np.isfinite(ratios)] = np.nan
    copies: dict[int, int] = {}
    for place in range(1, len(known)):
        apart = np.abs(ratios[:, :place] - ratios[:, [place]])
        differ = (apart > _ALIKE * (1 + np.abs(ratios[:, [place]]))).any(axis=0)
        alike = np.flatnonzero(~differ & ~(full[:place] & full[place]))
        enough = np.count_nonzero(~np.isnan(apart[:, alike]), axis=0) >= _FEWEST_RATIOS
        for other in alike[enough].tolist():
            if known[other] not in copies and _same_where_known(columns, present, known[other], known[place]):
                copies[known[place]] = known[other]
                break
    return copies


def _same_where_known(columns: FloatArray, present: BoolArray, first: int, second: int) -> bool:
    common = present[:, first] & present[:, second]
    if common.mean() < _LEAST_COMMON or common.sum() < _FEWEST_ROWS:
        return False
    pair = columns[:, [first, second]][common]
    there = np.ones_like(pair, dtype=np.bool_)
    unit = _unit_columns(pair, there)
    return bool(unit[:, 0].any() and unit[:, 1].any() and _same(unit, there, 0, 1))


def _equal_columns(columns: FloatArray, names: list[str]) -> dict[str, str]:
    first: dict[bytes, str] = {}
    origins = {name: first.setdefault(columns[:, place].tobytes(), name) for place, name in enumerate(names)}
    return {name: origin for name, origin in origins.items() if name != origin}


def _same(unit: FloatArray, present: BoolArray, first: int, second: int) -> bool:
    if (present[:, first] != present[:, second]).any():
        return False
    sign = 1.0 if unit[:, first] @ unit[:, second] > 0 else -1.0
    difference = unit[:, first] - sign * unit[:, second]
    return bool(difference @ difference <= 2 * _ROUNDING)  # = 2 (1 − |correlation|)
