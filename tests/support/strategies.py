"""What generated tables look like: everything that has broken a spanning tree before. How many are tried."""

from __future__ import annotations

import os

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
_SHARE = 1 if os.environ.get("PENSTOCK_EXAMPLES") == "all" else 2  # `make test-all` tries all of them


def examples(n: int) -> settings:
    """Try so many examples in `make test-all`, however long one takes; half of them in `make test`.

    A quarter where kernels are plain Python, whose lines alone count: the others are tried with compiled kernels.
    """
    return settings(max_examples=max(3, n // (4 if WITHOUT_JIT else _SHARE)), deadline=None)


_UNIT = st.floats(-1, 1, allow_subnormal=False, width=64)
_LATTICE = st.integers(-2, 2).map(float)


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 40, max_columns: int = 6) -> np.ndarray:
    """Random tables with repeated rows, constant columns, ties, offsets and scales from 1e-150 to 1e150."""
    n = draw(st.integers(1, max_rows))
    p = draw(st.integers(1, max_columns))
    X = draw(arrays(np.float64, (n, p), elements=draw(st.sampled_from([_UNIT, _LATTICE]))))
    if draw(st.booleans()):  # repeat rows
        X = X[draw(arrays(np.int64, n, elements=st.integers(0, n - 1)))]
    if draw(st.booleans()):
        X[:, draw(st.integers(0, p - 1))] = 0.5
    if draw(st.booleans()):
        X = X + 1e6
    X = X * draw(st.sampled_from([1.0, 1e-150, 1e-20, 1e20, 1e150]))
    if draw(st.booleans()):  # a constant far beyond the range of all others
        X = np.column_stack([X, np.full(n, draw(st.sampled_from([1e300, -1e300])))])
    return X
