"""What explanations are tried on: trees of every shape, tables with missing readings and many ties."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from penstock import Tree


@st.composite
def trees(draw: st.DrawFn, max_nodes: int = 40) -> Tree:
    """Paths, stars and all between, numbered at random, with edges of length 0 and equal lengths."""
    n = draw(st.integers(1, max_nodes))
    reach = draw(st.sampled_from([1, 3, max_nodes]))
    parents = [draw(st.integers(max(0, i - reach), i - 1)) for i in range(1, n)]
    if draw(st.booleans()):
        parents = [0] * (n - 1)
    number = np.array(draw(st.permutations(range(n))))
    lengths = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0, 3.0, 1e9]), min_size=n - 1, max_size=n - 1)))
    edges = np.sort(np.column_stack([number[parents], number[1:]]).reshape(-1, 2), axis=1).astype(np.intp)
    order = np.lexsort((edges[:, 1], edges[:, 0], lengths))
    return Tree(edges[order], lengths[order].astype(float))


@st.composite
def labelled_tables(draw: st.DrawFn, missing: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Readings, some of them missing, and which rows are the event's; there are always both kinds."""
    n, p = draw(st.integers(2, 30)), draw(st.integers(1, 5))
    some = st.one_of(
        st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: round(x, 3))
    )
    X = draw(arrays(np.float64, (n, p), elements=some))
    if missing and draw(st.booleans()):
        X[draw(arrays(np.bool_, (n, p)))] = np.nan
    is_event = draw(arrays(np.bool_, n))
    is_event[:2] = draw(st.sampled_from([(True, False), (False, True)]))
    return X, is_event
