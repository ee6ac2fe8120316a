"""Generated tables with holes, in which every row has a value."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive import incomplete as naive
from strategies import tables


@st.composite
def tables_with_incomparable_rows(draw: st.DrawFn, max_rows: int = 12, max_columns: int = 5) -> np.ndarray:
    """Rows with few values, so that many pairs share no column and some tables fall apart."""
    whole = draw(tables(max_rows, max_columns))
    most = whole.shape[1] - 1
    kept = draw(arrays(np.bool_, whole.shape, elements=st.integers(0, 2).map(lambda k: k == 0)))
    always = draw(arrays(np.int64, len(whole), elements=st.integers(0, most)))
    kept[np.arange(len(whole)), always] = True
    return np.where(kept, whole, np.nan)


@st.composite
def tables_with_holes(draw: st.DrawFn, max_rows: int = 25, max_columns: int = 6) -> np.ndarray:
    """The tables of `strategies`, with NaN here and there, but any two rows share a value; patterns repeat."""
    whole = draw(tables(max_rows, max_columns))
    X = whole.copy()
    holes = draw(arrays(np.bool_, X.shape, elements=st.integers(0, draw(st.integers(1, 6))).map(lambda k: k == 0)))
    if draw(st.booleans()):  # holes in the same places as another row's
        holes = holes[draw(arrays(np.int64, len(X), elements=st.integers(0, len(X) - 1)))]
    X[holes] = np.nan
    for row in range(len(X)):  # fill up what would be no table for a tree
        if np.isnan(X[row]).all() or (row and naive.incomparable_pair(X[: row + 1]) is not None):
            X[row] = whole[row]
    return X
