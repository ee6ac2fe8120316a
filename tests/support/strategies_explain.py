"""What explanations are tried on: tables with missing readings and many ties."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays


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
