"""Block SGD by blocks of rows: what a crew does is Algorithm 1, whoever is in it and wherever they stop."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from strategies_factors import draw_factors, family, random_tree

from penstock import NSNMF, load
from penstock._threads import thread_limit
from penstock._types import Factors
from penstock.factor import BlockSGD, _sgd_work, fit_factors, laplacian_nsnmf, nmf, nsnmf, snmf
from penstock.factor import sgd_by_blocks as sgd_by_blocks_module
from penstock.factor.block_sgd import BlockDescent
from penstock.factor.blocks import ArrayRows, Layout, LocalCrew
from penstock.factor.objectives import over_seen
from penstock.factor.sgd_by_blocks import CrewDescent, begin_in_space, sgd_by_blocks


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(_sgd_work, "PIECE", 7)  # several pieces per block even in a small table


def a_problem(n=60, p=7, largest=20.0, seed=0):
    rng = np.random.default_rng(seed)
    return nsnmf(rng.random((n, p)), sparse.csr_array(random_tree(n, rng, largest, diagonal=True)))


def a_layout(n, B, rng):
    inner = rng.choice(np.arange(1, n), B - 1, replace=False)
    return Layout(rng.permutation(n), np.array([0, *sorted(inner), n]))


class ReadOnlyRows(ArrayRows):
    """Rows that may only be looked at, in short chunks."""

    def chunks(self):
        for start in range(0, len(self), 5):
            chunk = self.values[start : start + 5].copy()
            chunk.setflags(write=False)
            yield start, chunk


def frozen(thing):
    """The same, sent elsewhere and with every array read-only."""
    if isinstance(thing, np.ndarray):
        thing = thing.copy()
        thing.setflags(write=False)
        return thing
    if isinstance(thing, dict):
        return {name: frozen(part) for name, part in thing.items()}
    if isinstance(thing, tuple):
        parts = [frozen(part) for part in thing]
        return type(thing)(*parts) if hasattr(thing, "_fields") else tuple(parts)
    return thing


class DistantCrew(LocalCrew):
    """Sends all that it is told as bytes, lets nobody write to it, and does everything twice."""

    def each(self, work, *common, apart=None):
        def sent(block, state, *told):
            again = pickle.loads(pickle.dumps((work, block)))
            first = again[0](again[1], frozen(state), *frozen(told))
            second = again[0](again[1], frozen(state), *frozen(told))
            assert pickle.dumps(first) == pickle.dumps(second)
            return first

        return super().each(sent, *common, apart=apart)


@given(
    kind=st.sampled_from(["nmf", "snmf", "nsnmf"]),
    B=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
    scale_steps=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_a_crew_does_what_one_machine_does_with_the_rows_rearranged(kind, B, seed, scale_steps):
    _sgd_work.PIECE, kept = 3, _sgd_work.PIECE
    rng = np.random.default_rng(seed)
    n = int(rng.integers(B + 1, 25))
    S = random_tree(n, rng, 3.0, diagonal=True) if seed % 2 else np.ones((n, n))
    objective = family(rng.random((n, int(rng.integers(1, 6)))), S, [kind])[kind]
    layout, chosen = (
        a_layout(n, B, rng),
        BlockSGD(first_step=0.01, rounds=9, rounds_per_check=4, scale_steps=scale_steps),
    )
    start = draw_factors(objective, 2, rng, 0.3)
    start = Factors(start.W[layout.order], start.H)
    try:
        by_crew = begin_in_space(layout, objective, start, chosen, np.random.default_rng(seed))
        alone = BlockDescent(layout.arranged(objective), start, chosen, np.random.default_rng(seed), layout.bounds)
        for _ in range(3):
            assert by_crew.step() == pytest.approx(alone.step(), rel=1e-10)
            np.testing.assert_allclose(by_crew.factors.W, alone.factors.W, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(by_crew.factors.H, alone.factors.H, rtol=1e-10, atol=1e-12)
        assert by_crew.finished
        assert alone.finished
    finally:
        _sgd_work.PIECE = kept


@pytest.mark.parametrize("random_state", [5, np.random.default_rng])
def test_blocks_in_space_end_where_a_crew_ends_to_the_last_bit(random_state):
    objective, chosen = a_problem(), BlockSGD(n_blocks=4, rounds=60, stall=0.0, blocks="space")
    draws = random_state if isinstance(random_state, int) else random_state(3)
    here = fit_factors(objective, 3, chosen, random_state=draws)
    layout = Layout.of(objective, 4)
    blocks, wiring = layout.cut(objective)
    crew = LocalCrew(blocks)
    draws = random_state if isinstance(random_state, int) else random_state(3)
    there = sgd_by_blocks(crew, wiring, objective, 3, chosen, draws)
    assert layout.restored(np.concatenate(crew.gather("W"))).tobytes() == here.factors.W.tobytes()
    assert there.H.tobytes() == here.factors.H.tobytes()
    assert there.history[1:].tolist() == here.history[1:].tolist()
    assert (there.n_iter, there.settled) == (here.n_iter, here.converged) == (6, True)
    assert there.objective < there.history[0]
    assert there.objective == pytest.approx(objective.value(here.factors), rel=1e-12)


def test_same_bits_on_any_number_of_threads_and_on_other_machines():
    objective, chosen = a_problem(), BlockSGD(rounds=20, stall=0.0)
    blocks, wiring = Layout.of(objective, 5).cut(objective)
    distant = [replace(block, rows=ReadOnlyRows(block.rows.values)) for block in blocks]
    runs = []
    for threads, crew in (
        (1, LocalCrew(blocks)),
        (2, LocalCrew(blocks)),
        (3, LocalCrew(blocks)),
        (2, DistantCrew(blocks)),
    ):
        with thread_limit(threads):
            solution = sgd_by_blocks(crew, wiring, objective, 3, chosen, 1)
        runs.append((np.concatenate(crew.gather("W")).tobytes(), solution.H.tobytes(), solution.history.tobytes()))
    assert len(set(runs)) == 1
    crew = DistantCrew(distant)  # other chunks: sums in another order
    solution = sgd_by_blocks(crew, wiring, objective, 3, chosen, 1)
    np.testing.assert_allclose(np.concatenate(crew.gather("W")).ravel(), np.frombuffer(runs[0][0]), rtol=1e-10)
    np.testing.assert_allclose(solution.history, np.frombuffer(runs[0][2]), rtol=1e-10)


@pytest.mark.parametrize("rng", [np.random.RandomState, np.random.default_rng])
@pytest.mark.parametrize(
    "chosen", [BlockSGD(rounds=45, stall=0.0), BlockSGD(rounds=700, stall=0.01)], ids=["all", "stalls"]
)
def test_a_run_goes_on_where_it_stopped_as_if_it_had_not(rng, chosen):
    objective = a_problem(n=30, largest=3.0)
    blocks, wiring = Layout.of(objective, 3).cut(objective)
    crew, kept = LocalCrew(blocks), []

    def keep(snapshot):
        arrays = {name: part for name, part in snapshot.items() if isinstance(part, np.ndarray)}
        plain = json.dumps({name: part for name, part in snapshot.items() if name not in arrays})
        kept.append((plain, arrays, [{"W": W.copy()} for W in crew.gather("W")]))

    seen = []
    whole = sgd_by_blocks(
        crew, wiring, objective, 2, chosen, rng(7), checkpoint=keep, progress=lambda *told: seen.append(told)
    )
    assert seen == list(enumerate(whole.history))[1:]
    assert whole.settled
    assert len(kept) == whole.n_iter >= 4
    for plain, arrays, states in kept[:: max(len(kept) // 3, 1)] + kept[-1:]:
        later = LocalCrew(blocks, states)
        resumed = sgd_by_blocks(later, wiring, objective, 2, chosen, resume={**json.loads(plain), **arrays})
        assert resumed.history.tolist() == whole.history.tolist()
        assert resumed.H.tobytes() == whole.H.tobytes()
        assert [W.tobytes() for W in later.gather("W")] == [W.tobytes() for W in crew.gather("W")]
        assert resumed.settled == whole.settled


def test_no_more_iterations_than_wanted():
    objective = a_problem(n=20)
    blocks, wiring = Layout.of(objective, 3).cut(objective)
    solution = sgd_by_blocks(LocalCrew(blocks), wiring, objective, 2, BlockSGD(stall=0.0), 0, max_iter=3)
    assert (solution.n_iter, len(solution.history), solution.settled) == (3, 4, False)


@pytest.mark.parametrize("kind", ["table", "dense", "sparse"])
def test_the_objective_of_nearly_fitted_data_does_not_cancel(kind):
    rng = np.random.default_rng(1)
    W, H = rng.random((12, 2)), rng.random((2, 3))
    W[::2, 0], W[1::2, 1] = 0.0, 0.0  # so that half of WWᵀ is 0
    S = sparse.csr_array(W @ W.T)
    S.data += 1e-8
    problems = {"table": nmf(W @ H + 1e-8), "dense": snmf(W @ W.T + 1e-8), "sparse": snmf(S)}
    objective, H = problems[kind], H if kind == "table" else np.zeros((2, 0))
    layout = Layout(rng.permutation(12), np.array([0, 3, 7, 12]))
    run = begin_in_space(layout, objective, Factors(W[layout.order], H), BlockSGD(), rng)
    exact = {"table": 36e-16, "dense": 144e-16, "sparse": 72e-16}[kind]
    rounding = 1e-14 if kind == "sparse" else 0.0  # of WWᵀ where S has no entries
    assert run.history[0] == pytest.approx(exact, rel=1e-5, abs=rounding)


def test_the_stream_of_the_profiles_is_not_that_of_a_block():
    start = BlockSGD(n_blocks=3, blocks="space").start(a_problem(), 2, 0)
    drawn = np.concatenate([start.W.ravel(), start.H.ravel()])
    assert len(np.unique(drawn)) == len(drawn)
    assert 0 <= drawn.min() < drawn.max() < 0.1


def test_blocks_in_space_have_fewer_similarities_between_them():
    rng = np.random.default_rng(2)
    group = rng.permutation(np.repeat(np.arange(4), 25))
    A = group[:, None] + 0.1 * rng.random((100, 2))
    objective = nsnmf(A, sparse.csr_array((group[:, None] == group).astype(float)))
    in_space = Layout.of(objective, 4).cut(objective)[1]
    in_rows = Layout(np.arange(100), np.array([0, 25, 50, 75, 100])).cut(objective)[1]
    assert len(in_space.similarities) < 0.1 * len(in_rows.similarities)


def test_without_a_table_with_few_rows_and_with_holes():
    rng = np.random.default_rng(3)
    chosen = BlockSGD(rounds=40, stall=0.0, blocks="space")
    S = sparse.csr_array(random_tree(4, rng, 3.0))
    for objective in (snmf(S), nsnmf(rng.random((4, 2)), S), nmf(np.ones((4, 3)))):
        solution = fit_factors(objective, 2, chosen, random_state=0)
        assert solution.objective < solution.history[0]
    A = rng.random((40, 5))
    A[rng.random(A.shape) < 0.2] = np.nan
    objective = over_seen(nsnmf(A, sparse.csr_array(random_tree(40, rng, 3.0))))
    solution = fit_factors(objective, 2, chosen, random_state=0)
    assert solution.objective < solution.history[0]
    assert solution.history[-1] == pytest.approx(solution.objective, rel=1e-9)


def test_refusals():
    objective = a_problem(n=20, largest=1e6)
    blocks, wiring = Layout.of(objective, 3).cut(objective)
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="scale_steps=True"):
        sgd_by_blocks(LocalCrew(blocks), wiring, objective, 2, BlockSGD(scale_steps=False), 0)
    smooth = laplacian_nsnmf(objective.A, objective.S)
    with pytest.raises(ValueError, match="Laplacian"):
        sgd_by_blocks(LocalCrew(blocks), wiring, smooth, 2, BlockSGD(), 0)
    states = [{"W": np.ones((block.n, 2))} for block in blocks]
    with pytest.raises(ValueError, match="7 columns, but has 6"):
        CrewDescent(LocalCrew(blocks, states), wiring, objective, BlockSGD(), np.ones((2, 6)), np.random.default_rng())
    with pytest.raises(ValueError, match="no source of random numbers"):
        sgd_by_blocks_module.read_draws('{"generator": true, "state": {"bit_generator": "seed"}}')


def test_what_is_not_the_default_is_shown():
    assert repr(BlockSGD()).endswith("scale_steps=True)")
    assert repr(BlockSGD(blocks="space")).endswith("scale_steps=True, blocks='space')")


@pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning")  # after 20 rounds
def test_a_detector_with_blocks_in_space_comes_back_from_a_file(tmp_path):
    detector = NSNMF(2, solver=BlockSGD(rounds=20, stall=0.0, blocks="space"), random_state=0).fit(a_problem(30).A)
    detector.save(tmp_path / "saved")
    loaded = load(tmp_path / "saved")
    assert loaded.solver == detector.solver
    assert loaded.embedding_.tobytes() == detector.embedding_.tobytes()
