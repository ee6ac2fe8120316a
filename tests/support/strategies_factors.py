"""Random small problems for the factorisation's tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from penstock.factor import Factors, gnmf, laplacian_nsnmf, nmf, nsnmf, snmf


def random_tree(n, rng, largest=100.0, diagonal=False):
    """Similarities on a random tree, spread over several orders of magnitude."""
    S = np.zeros((n, n))
    for child in range(1, n):
        parent = rng.integers(child)
        S[child, parent] = S[parent, child] = np.exp(rng.uniform(-1, np.log(largest)))
    if diagonal:
        S[np.diag_indices(n)] = rng.random(n)
    return S


@st.composite
def tables(draw, max_rows=9, largest=100.0):
    """(A, dense S, K, a generator) with a few zeros and repeated rows among A's."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = draw(st.integers(3, max_rows)), draw(st.integers(1, 5))
    A = rng.random((n, p)) * (rng.random((n, p)) < draw(st.sampled_from([0.6, 1.0])))
    A[-1] = A[0]
    return A, random_tree(n, rng, largest, draw(st.booleans())), draw(st.integers(1, 3)), rng


def family(A, S, kinds=("nmf", "gnmf", "snmf", "nsnmf", "laplacian")):
    S = sparse.csr_array(S)
    members = {
        "nmf": lambda: nmf(A),
        "gnmf": lambda: gnmf(A, S, 2.0),
        "snmf": lambda: snmf(S),
        "nsnmf": lambda: nsnmf(A, S),
        "laplacian": lambda: laplacian_nsnmf(A, S),
    }
    return {kind: members[kind]() for kind in kinds}


def draw_factors(objective, K, rng, scale=1.0):
    W = scale * rng.random((objective.n_rows, K))
    return Factors(W, scale * rng.random((K, objective.n_columns)))
