"""Classification trees (CART) whose thresholds are exact to the last bit of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class GrownTree:
    """Node 0 is the root; `below` and `above` are the children (−1 at a leaf), which come after their parent.

    At node v, readings of `column[v]` up to `threshold[v]` go below, larger ones above, and missing ones below if
    `missing_below[v]`. An infinite threshold parts the readings from the missing ones.
    """

    column: IndexArray
    threshold: FloatArray
    below: IndexArray
    above: IndexArray
    missing_below: BoolArray


def grow(values: FloatArray, is_event: BoolArray, *, max_depth: int, min_leaf: int, random_state: int) -> GrownTree:
    """CART (Gini impurity, both classes weighing the same) on rows with NaN where a reading is missing.

    Scikit-learn rounds its input to 32 bits. A tree needs only the order of the readings, though, and a best split lies
    beside a reading of the event: so it is given the place of each reading among the event's, which 32 bits hold.

    >>> tree = grow(np.array([[1.0], [1.0 + 1e-15], [9.0]]), np.array([False, True, True]), max_depth=1, min_leaf=1,
    ...             random_state=0)
    >>> bool(1.0 <= tree.threshold[0] < 1.0 + 1e-15)
    True
    """
    from sklearn.tree import DecisionTreeClassifier

    places = [distinct(column[is_event]) for column in values.T]
    codes = np.empty(values.shape, dtype=np.float32, order="F")
    for j, place in enumerate(places):
        codes[:, j] = codes_of(values[:, j], place)
    model = DecisionTreeClassifier(
        max_depth=max_depth, min_samples_leaf=min_leaf, class_weight="balanced", random_state=random_state
    )
    tree = model.fit(codes, is_event).tree_
    column = np.maximum(tree.feature, 0).astype(np.intp)
    threshold = [_threshold(places[j], code) for j, code in zip(column, tree.threshold, strict=True)]
    return GrownTree(
        column,
        np.array(threshold),
        tree.children_left.astype(np.intp),
        tree.children_right.astype(np.intp),
        tree.missing_go_to_left.astype(bool),
    )


def sample_rows(rows: IndexArray, most: int, rng: np.random.Generator) -> IndexArray:
    """All rows, or `most` of them drawn without repetition, in their order."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def smallest_leaf(n_events: int) -> int:
    """The fewest rows in a leaf: a tenth of the event's, but no more than 5, since few normal rows may matter too."""
    return max(1, min(5, n_events // 10))


def distinct(readings: FloatArray) -> FloatArray:
    """The finite readings, ascending, each once."""
    return np.unique(readings[np.isfinite(readings)])


def codes_of(column: FloatArray, places: FloatArray) -> FloatArray:
    """2i for a reading between places i−1 and i, 2i+1 for one that equals place i, NaN for a missing one."""
    if len(places) == 0:
        return np.where(np.isfinite(column), 0.0, np.nan)
    left = np.searchsorted(places, column)
    equal = places[np.minimum(left, len(places) - 1)] == column
    return np.where(np.isfinite(column), 2.0 * left + equal, np.nan)


def _threshold(places: FloatArray, code: float) -> float:
    """A reading has a code <= `code` exactly if it is <= what is returned."""
    if code < 0 or not np.isfinite(code):
        return float("inf")
    place, equal = divmod(int(code), 2)
    return float(places[place] if equal else np.nextafter(places[place], -np.inf))
