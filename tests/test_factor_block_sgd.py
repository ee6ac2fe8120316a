from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import factors as naive
from scipy import sparse
from strategies_factors import random_tree, tables

from penstock._threads import thread_limit
from penstock.factor import BlockSGD, Coordinate, _sgd_work, fit_factors, laplacian_nsnmf, nsnmf, snmf, solve
from penstock.factor.sgd_by_blocks import draw_instances

pytestmark = pytest.mark.kernels


@given(B=st.integers(1, 9), seed=st.integers(0, 1000))
def test_instances_of_a_round_are_interchangeable_and_use_every_row_block(B, seed):
    drawn = draw_instances(B, np.random.default_rng(seed))
    rows = [index for i, j, _ in drawn for index in {i, j}]
    columns = [k for *_, k in drawn]
    assert sorted(rows) == list(range(B))
    assert len(set(columns)) == len(columns)
    assert all(0 <= k < B for k in columns)


def test_equal_and_unequal_pairs_both_occur():
    rng = np.random.default_rng(0)
    drawn = [pair for _ in range(50) for pair in draw_instances(4, rng)]
    assert any(i == j for i, j, _ in drawn)
    assert any(i != j for i, j, _ in drawn)


@pytest.mark.parametrize("scale_steps", [True, False])
@given(problem=tables(max_rows=11, largest=4.0))
@settings(max_examples=15, deadline=None)
def test_rounds_equal_the_formulas(scale_steps, problem):
    A, S, K, rng = problem
    _sgd_work.PIECE, kept = 2, _sgd_work.PIECE  # several pieces per block even in a small table
    try:
        objective = nsnmf(A, sparse.csr_array(S))
        chosen = BlockSGD(n_blocks=3, first_step=0.01, last_step=0.002, rounds=9, scale_steps=scale_steps)
        start = chosen.start(objective, K, rng)
        solver = chosen.begin(objective, start, rng)
        W, H = start.W, start.H
        with ThreadPoolExecutor(2) as pool:
            for t in range(5):
                instances = draw_instances(3, rng)
                solver._take_round(instances, t, pool, 2)
                step = 0.01 + t / 8 * (0.002 - 0.01)
                steps = step * solver._scale_W, step * solver._scale_H
                W, H = naive.block_round(A, S, W, H, 0.8, 0.2, 3, instances, *steps)
                np.testing.assert_allclose(solver.factors.W, W, rtol=1e-10, atol=1e-12)
                np.testing.assert_allclose(solver.factors.H, H, rtol=1e-10, atol=1e-12)
    finally:
        _sgd_work.PIECE = kept


def test_same_bits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(_sgd_work, "PIECE", 7)
    rng = np.random.default_rng(0)
    objective = nsnmf(rng.random((60, 7)), sparse.csr_array(random_tree(60, rng)))
    runs = []
    for threads in (1, 2, 3):
        with thread_limit(threads):
            runs.append(fit_factors(objective, 3, BlockSGD(rounds=30, stall=0.0), random_state=5))
    for run in runs[1:]:
        assert run.factors.W.tobytes() == runs[0].factors.W.tobytes()
        assert run.factors.H.tobytes() == runs[0].factors.H.tobytes()
        assert run.objective == runs[0].objective


@pytest.mark.parametrize("largest", [10.0, 1e4, 1e8])
def test_scaled_steps_stay_finite_and_lower_the_loss(largest):
    rng = np.random.default_rng(1)
    objective = nsnmf(rng.random((40, 4)), sparse.csr_array(random_tree(40, rng, largest)))
    solution = fit_factors(objective, 3, BlockSGD(rounds=200, stall=0.0), random_state=0)
    assert np.isfinite(solution.factors.W).all()
    assert (solution.factors.W >= 0).all()
    assert solution.objective < solution.history[0]


def test_comes_near_the_minimum_of_a_friendly_problem():
    rng = np.random.default_rng(2)
    objective = nsnmf(rng.random((30, 4)), sparse.csr_array(random_tree(30, rng, 2.0)))
    chosen = BlockSGD(n_blocks=2, rounds=700, stall=0.0)
    start = chosen.start(objective, 2, 0)
    solution = solve(objective, start, settings=chosen, max_iter=1000)
    best = solve(objective, start, settings=Coordinate(), max_iter=1000)
    assert solution.objective < best.objective * 1.05
    assert solution.n_iter == 70


def test_raw_steps_that_explode_say_what_to_do():
    rng = np.random.default_rng(3)
    objective = nsnmf(rng.random((30, 4)), sparse.csr_array(random_tree(30, rng, 1e6)))
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="scale_steps=True"):
        fit_factors(objective, 3, BlockSGD(scale_steps=False), random_state=0)


def test_stops_after_two_stalls():
    rng = np.random.default_rng(4)
    objective = nsnmf(rng.random((30, 4)), sparse.csr_array(random_tree(30, rng, 2.0)))
    solution = fit_factors(objective, 2, BlockSGD(), random_state=0)
    falls = -np.diff(solution.history) / solution.history[:-1]
    assert solution.n_iter < 70
    assert solution.converged
    assert (falls[-2:] < 1e-3).all()
    assert not any((falls[:-1][:-1] < 1e-3) & (falls[1:][:-1] < 1e-3))


def test_more_blocks_than_rows_or_columns_and_no_table():
    rng = np.random.default_rng(5)
    S = sparse.csr_array(random_tree(4, rng))
    assert np.isfinite(fit_factors(nsnmf(rng.random((4, 2)), S), 2, BlockSGD(rounds=20), random_state=0).objective)
    bare = fit_factors(snmf(S), 2, BlockSGD(rounds=20), random_state=0)
    assert bare.factors.H.shape == (2, 0)


def test_refuses_what_it_is_not_defined_for():
    rng = np.random.default_rng(6)
    objective = laplacian_nsnmf(rng.random((4, 2)), sparse.csr_array(random_tree(4, rng)))
    with pytest.raises(ValueError, match="Laplacian"):
        fit_factors(objective, 2, BlockSGD())


@pytest.mark.parametrize(
    "wrong",
    [{"n_blocks": 0}, {"rounds": 0}, {"first_step": 0.001}, {"last_step": 0.0}, {"stall": -1.0}, {"blocks": "near"}],
)
def test_refuses_wrong_settings(wrong):
    with pytest.raises(ValueError, match="must"):
        BlockSGD(**wrong)
