from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from strategies_factors import family, random_tree, tables
from threadpoolctl import ThreadpoolController

from penstock._blas import one_blas_thread
from penstock._types import Factors
from penstock.factor import (
    Auto,
    BlockSGD,
    Coordinate,
    Multiplicative,
    fit_factors,
    gnmf,
    nmf,
    nsnmf,
    random_start,
    snmf,
    solve,
)

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("kind", ["nmf", "gnmf", "snmf", "nsnmf", "laplacian"])
@given(problem=tables())
@settings(max_examples=8, deadline=None)
def test_auto_is_monotone_and_honest(kind, problem):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    solution = fit_factors(objective, K, random_state=np.random.RandomState(int(rng.integers(2**31))))
    assert len(solution.start_objectives) == Auto().n_starts
    assert solution.n_iter == len(solution.history) - 1
    slack = 1e-11 * (solution.history[0] + objective.norm_A + objective.norm_S)
    assert np.all(np.diff(solution.history) <= slack)
    assert solution.objective <= solution.start_objectives.min() + slack
    assert solution.objective == objective.value(solution.factors)
    assert solution.kkt_residual == objective.kkt_residual(solution.factors)
    assert solution.converged == (solution.kkt_residual <= 1e-4)


@given(exponent=st.integers(-6, 4), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_start_follows_the_scale_of_the_data(exponent, seed):
    rng = np.random.default_rng(seed)
    A, S = rng.random((12, 4)), random_tree(12, rng)
    plain = nmf(10.0**exponent * A)
    start = random_start(plain, 3, seed)
    assert plain.value(start) < plain.norm_A
    alone = snmf(sparse.csr_array(10.0**exponent * S))
    assert alone.value(random_start(alone, 3, seed)) < alone.norm_S
    both = nsnmf(A, sparse.csr_array(10.0**exponent * S), gamma=0.01)
    nothing = Factors(np.zeros((12, 3)), np.zeros((3, 4)))
    assert both.value(random_start(both, 3, seed)) < both.value(nothing)


def test_start_respects_the_bound_and_the_seed():
    rng = np.random.default_rng(0)
    objective = gnmf(rng.random((9, 3)), sparse.csr_array(random_tree(9, rng)), 1.0)
    one, two, three = (random_start(objective, 2, seed) for seed in (7, 7, np.random.default_rng(7)))
    assert np.array_equal(one.W, two.W)
    assert not np.array_equal(one.W, three.W)
    assert (np.linalg.norm(one.H, axis=1) <= objective.row_bound * (1 + 1e-12)).all()


def test_start_of_a_table_of_zeros():
    objective = nmf(np.zeros((3, 2)))
    solution = fit_factors(objective, 1, Coordinate(), random_state=0)
    assert solution.objective == 0.0
    assert solution.converged


def test_progress_reports_every_iteration():
    seen = []
    objective = nmf(np.eye(4))
    solution = solve(
        objective, random_start(objective, 2, 0), settings=Multiplicative(), max_iter=7, tol=0.0,
        progress=lambda iteration, value: seen.append((iteration, value)),
    )  # fmt: skip
    assert [iteration for iteration, _ in seen] == list(range(1, 8))
    assert [value for _, value in seen] == solution.history[1:].tolist()
    assert not solution.converged


def test_auto_from_a_given_start_and_same_seed_same_bits():
    rng = np.random.default_rng(0)
    objective = nsnmf(rng.random((15, 3)), sparse.csr_array(random_tree(15, rng)))
    one = solve(objective, random_start(objective, 2, 1))
    two = solve(objective, random_start(objective, 2, 1), settings=Auto())
    assert np.array_equal(one.factors.W, two.factors.W)
    assert one.history[0] > one.history[-1]
    a, b = (fit_factors(objective, 2, random_state=3) for _ in range(2))
    assert np.array_equal(a.factors.W, b.factors.W)


def test_more_starts_never_end_burn_in_worse():
    rng = np.random.default_rng(1)
    objective = nsnmf(rng.random((25, 4)), sparse.csr_array(random_tree(25, rng)))
    few = fit_factors(objective, 3, Auto(n_starts=1), random_state=0).start_objectives
    many = fit_factors(objective, 3, Auto(n_starts=6), random_state=0).start_objectives
    assert many[0] == few[0]
    assert many.min() <= few.min()


@pytest.mark.parametrize("chosen", [Auto(), Coordinate(), Multiplicative()])
def test_overflow_is_an_error_not_a_result(chosen):
    objective = nmf(np.full((4, 3), 1e200))
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="Scale the table"):
        fit_factors(objective, 2, chosen, random_state=0)


def test_blas_threads_are_lowered_and_restored_whoever_solves():
    def limits():
        return [info["num_threads"] for info in ThreadpoolController().info() if info["user_api"] == "blas"]

    def other():
        with one_blas_thread():
            seen.append(limits())

    before, seen = limits(), []
    with one_blas_thread():
        assert set(limits()) <= {1}
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen
    assert limits() == before
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert limits() == before


@pytest.mark.parametrize(
    ("W", "H", "message"),
    [
        (np.ones((2, 1)), np.ones((1, 3)), "shapes"),
        (np.ones((3, 1)), np.ones((2, 3)), "shapes"),
        (-np.ones((3, 1)), np.ones((1, 3)), "non-negative"),
        (np.full((3, 1), np.nan), np.ones((1, 3)), "finite"),
    ],
)
def test_refuses_a_wrong_start(W, H, message):
    with pytest.raises(ValueError, match=message):
        solve(nmf(np.eye(3)), Factors(W, H))


def test_refuses_wrong_numbers():
    with pytest.raises(ValueError, match="n_components"):
        fit_factors(nmf(np.eye(3)), 4)
    with pytest.raises(ValueError, match="n_starts"):
        Auto(n_starts=0)
    with pytest.raises(ValueError, match="Laplacian"):
        fit_factors(gnmf(np.eye(3), sparse.csr_array(np.ones((3, 3))), 1.0), 1, BlockSGD())
