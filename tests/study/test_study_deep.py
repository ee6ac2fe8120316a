"""AER and DAGMM: against slow twins, seeded to the last bit, and never quietly collapsed."""

from __future__ import annotations

import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from naive import deep as naive
from saving_refusals_cases import refuse_or_work
from sklearn.exceptions import ConvergenceWarning

import penstock
from penstock.graph.similarities import binary_knn_graph
from penstock.storage import StorageError, read_state, write_state

torch = pytest.importorskip("torch", reason="needs PyTorch: run by `make test-all`")

from studies.ahmed2021 import deep_nets  # noqa: E402
from studies.ahmed2021.deep import AER, DAGMM  # noqa: E402
from studies.ahmed2021.deep_nets import Autoencoder, Mixture  # noqa: E402

both = pytest.mark.parametrize("kind", [AER, DAGMM])
QUICK = {"max_iter": 30, "random_state": 0}


def some_rows(n: int = 60, p: int = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.gamma(2.0, size=(n, 1)) * rng.uniform(0.5, 2.0, size=p) + 0.3 * rng.normal(size=(n, p))


def random_weights(sizes: list[int], seed: int) -> np.ndarray:
    count = sum((a + 1) * b for a, b in pairwise(sizes))
    return np.random.default_rng(seed).normal(scale=0.5, size=count)


def torch_layers(sizes: list[int], weights: np.ndarray) -> list:
    return deep_nets.layers_of(torch.from_numpy(weights.copy()).requires_grad_(), sizes)


# Against the twins


@pytest.mark.parametrize("sizes", [[4, 2, 4], [4, 6, 3, 6, 4], [4, 5, 3, 1, 3, 5, 4]])
@pytest.mark.parametrize("bends_code", [True, False])
def test_nets_rebuild_as_the_twin_does(sizes: list[int], bends_code: bool) -> None:
    A, weights = some_rows(20), random_weights(sizes, 1)
    codes, rebuilt = Autoencoder(np.array(sizes), bends_code, weights).rebuild(A)
    expected = [naive.forward(row, naive.split(sizes, weights), bends_code) for row in A]
    np.testing.assert_allclose(codes, [code for code, _ in expected], rtol=1e-10)
    np.testing.assert_allclose(rebuilt, [row for _, row in expected], rtol=1e-10)


@pytest.mark.parametrize("sizes", [[4, 2, 4], [4, 6, 3, 6, 4]])
def test_aer_loss(sizes: list[int]) -> None:
    A, weights = some_rows(25), random_weights(sizes, 2)
    S = binary_knn_graph(A, 3)
    task = deep_nets.pose_aer(A, S, 0.7, 0.03)
    found = task.loss([torch_layers(sizes, weights)], None, torch.Generator())
    expected = naive.aer_loss(A.tolist(), S.toarray(), naive.split(sizes, weights), 0.7, 0.03)
    assert found.item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("mixtures", [1, 4])
def test_dagmm_loss_and_energies(mixtures: int) -> None:
    sizes, estimation = [4, 6, 2, 6, 4], [4, 10, mixtures]
    A, weights, other = some_rows(40), random_weights(sizes, 4), random_weights(estimation, 5)
    A[3] = 0.0  # its norm is below the floor
    task = deep_nets.DAGMMTask(torch.from_numpy(A), 0.4, 0.0, 0.1, 0.005)
    nets = [torch_layers(sizes, weights), torch_layers(estimation, other)]
    parts = naive.split(sizes, weights), naive.split(estimation, other), 0.4, deep_nets.JITTER
    expected = naive.dagmm_loss(A.tolist(), *parts, 0.1, 0.005)
    assert task.loss(nets, None, torch.Generator()).item() == pytest.approx(expected, rel=1e-10)
    record = deep_nets.Training([weights, other], np.zeros(1), 1.0)
    mixture = deep_nets.settle_mixture(task, record, [sizes, estimation])
    scores = mixture.energies(A, Autoencoder(np.array(sizes), False, weights))
    np.testing.assert_allclose(scores, naive.dagmm_scores(A.tolist(), *parts), rtol=1e-10)


def test_fitted_scores_are_the_twins() -> None:
    X = some_rows()
    aer = AER(2, scale=None, **QUICK).fit(X)
    A = aer._frame.scale(X)
    layers = naive.split(aer.layer_sizes_, aer._net.weights)
    expected = np.ldexp(naive.aer_scores(A, layers), aer._frame.exponent)
    np.testing.assert_allclose(aer.scores_, expected, rtol=1e-10)
    dagmm = DAGMM(**QUICK).fit(X)
    A = dagmm.scaling_.apply(X)
    mixture = dagmm._mixture
    assert mixture.floor == pytest.approx(0.1 * np.sqrt((A**2).sum() / 60))
    layers = naive.split(dagmm.layer_sizes_, dagmm._net.weights)
    gaussians = []
    for level, mean, T in zip(mixture.levels, mixture.means, mixture.whitening, strict=True):
        covariance = np.linalg.inv(T.T @ T)
        gaussians.append((np.exp(level) * np.sqrt(np.linalg.det(2 * np.pi * covariance)), mean, covariance))
    assert sum(share for share, _, _ in gaussians) == pytest.approx(1.0)
    expected = [naive.energy(naive.latent(row, layers, mixture.floor), gaussians) for row in A]
    np.testing.assert_allclose(dagmm.scores_, expected, rtol=1e-8)  # the covariances went through an inverse


# Seeds, threads and PyTorch's global state


@both
@pytest.mark.parametrize("batch_size", [1024, 16])
def test_same_seed_same_bits_whatever_the_threads(kind, batch_size: int) -> None:
    X = some_rows(90, 6)
    found = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 4, 1):
            torch.set_num_threads(threads)
            torch.rand(threads)  # moves the global generator on, which must not matter
            results.append(kind(batch_size=batch_size, max_iter=10, random_state=3).fit(X).scores_)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(found)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    other = kind(batch_size=batch_size, max_iter=10, random_state=4).fit(X).scores_
    assert not np.allclose(other, results[0])


@both
def test_the_global_state_of_torch_is_left_alone(kind) -> None:
    X = some_rows(40)
    expected = kind(**QUICK).fit(X).scores_
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    try:
        torch.set_default_dtype(torch.float32)
        with torch.no_grad():
            np.testing.assert_array_equal(kind(**QUICK).fit(X).scores_, expected)
            assert not torch.is_grad_enabled()
        with torch.inference_mode():
            np.testing.assert_array_equal(kind(**QUICK).fit(X).scores_, expected)
        with torch.device("meta"):
            np.testing.assert_array_equal(kind(**QUICK).fit(X).scores_, expected)
        assert torch.get_default_dtype() == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()
    with pytest.raises(FloatingPointError):
        kind(learning_rate=1e300, **QUICK).fit(X)
    assert torch.get_num_threads() == threads


# Odd data


@both
@pytest.mark.parametrize(("n", "p"), [(2, 1), (5, 3)])
@pytest.mark.filterwarnings("ignore:The net of .* has collapsed")
def test_few_rows(kind, n: int, p: int) -> None:
    X = some_rows(n, p)
    for rows in (X, np.r_[X[:1], X], np.c_[X, np.full(n, 7.0)], X * 1e300, X * 1e-300):
        for scale in ("minmax", None):
            fitted = kind(scale=scale, max_iter=20, random_state=0).fit(rows)
            assert np.isfinite(fitted.scores_).all()
            with np.errstate(over="ignore"):
                far = np.vstack([rows * 1e8, -rows * 1e8, rows * 0, rows + 1e308])
            assert np.isfinite(fitted.anomaly_score(np.clip(far, -1e308, 1e308))).all()
            np.testing.assert_array_equal(fitted.anomaly_score(rows[1:2]), fitted.scores_[1:2])


@both
@pytest.mark.parametrize("scale", ["minmax", None])
def test_rows_all_the_same(kind, scale: str | None) -> None:
    fitted = kind(scale=scale).fit(np.full((9, 2), 0.1))
    assert (fitted.scores_ == 0).all()
    assert fitted.n_iter_ == len(fitted.loss_curve_) == 0
    assert not fitted.collapsed_
    assert (fitted.anomaly_score([[0.1, 0.1], [0.1, 0.4]]) > 0).tolist() == [False, True]


# Collapse and divergence


@both
@pytest.mark.parametrize(
    "table", ["gamma", *(pytest.param(name, marks=pytest.mark.slow) for name in ("normal", "few values", "one column"))]
)
def test_scores_are_diverse_and_the_loss_falls(kind, table: str) -> None:
    rng = np.random.default_rng(0)
    tables = [some_rows(120), rng.normal(size=(100, 9)), rng.integers(0, 3, size=(90, 6)) * 1.0, rng.random((80, 1))]
    X = dict(zip(("gamma", "normal", "few values", "one column"), tables, strict=True))[table]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = kind(random_state=0).fit(X)
    assert not fitted.collapsed_
    assert len(np.unique(fitted.scores_)) > 0.9 * len(np.unique(X, axis=0))
    assert fitted.loss_curve_.shape == (fitted.n_iter_,)
    assert fitted.loss_curve_[-1] < 0.7 * fitted.loss_curve_[0]


@pytest.mark.filterwarnings("ignore:The net of .* has collapsed")  # so it has, before it is trained
def test_collapsed_nets_are_caught() -> None:
    X = some_rows(100)
    with pytest.warns(ConvergenceWarning, match=r"The net of AER has collapsed: it gives \d+ different scores to 100"):
        fitted = AER(weight_decay=100.0, learning_rate=0.02, random_state=0).fit(X)
    assert fitted.collapsed_
    assert not AER(random_state=0).fit(X).collapsed_


def test_a_dagmm_whose_net_died_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    train = deep_nets.train

    def train_and_kill(task, sizes, schedule):
        record = train(task, sizes, schedule)
        record.weights[0][: sizes[0][0] * sizes[0][1]] = 0.0  # the first layer sees nothing
        return record

    monkeypatch.setattr("studies.ahmed2021.deep.train", train_and_kill)
    with pytest.warns(ConvergenceWarning, match="The net of DAGMM has collapsed"):
        assert DAGMM(**QUICK).fit(some_rows()).collapsed_


@both
def test_a_loss_that_overflows_begins_anew_with_a_smaller_rate(kind) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = kind(learning_rate=1e53, max_iter=4, random_state=0).fit(some_rows())
    assert fitted.learning_rate_ < 1e53
    assert any("was not finite with learning_rate = 1e+53; it was trained with" in str(w.message) for w in caught)
    assert np.isfinite(fitted.scores_).all()


@both
def test_a_loss_that_never_is_finite_is_an_error(kind) -> None:
    detector = kind(learning_rate=1e300, **QUICK)
    with pytest.raises(FloatingPointError, match=rf"{kind.__name__} could not be trained: its loss is not finite"):
        detector.fit(some_rows())
    assert not hasattr(detector, "scores_")


# Parameters, files, and no PyTorch


@both
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("n_components", bad) for bad in (0, 1.5, None)),
        *(("hidden", bad) for bad in (0, -3, "60,30", "60-", (3, 0), (2.5,), 1.5, True)),
        *(("max_iter", bad) for bad in (0, 2.5, "auto")),
        *(("batch_size", bad) for bad in (1, None)),
        *(("learning_rate", bad) for bad in (0, -1.0, np.inf, "fast")),
        ("random_state", "seed"),
    ],
)
def test_other_parameters_are_refused(kind, name: str, bad: object) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be|cannot be used to seed"):
        kind(**{name: bad}).fit(some_rows())


@both
@pytest.mark.parametrize(
    ("hidden", "sizes"),
    [(3, (4, 3, 2, 3, 4)), ((5, 3), (4, 5, 3, 2, 3, 5, 4)), ("5-3", (4, 5, 3, 2, 3, 5, 4)), ((), (4, 2, 4))],
)
def test_hidden_layers(kind, hidden: object, sizes: tuple[int, ...], tmp_path: Path) -> None:
    fitted = kind(2, hidden=hidden, max_iter=5, random_state=0).fit(some_rows())
    assert fitted.layer_sizes_ == sizes
    fitted.save(tmp_path / "saved")
    loaded = penstock.load(tmp_path / "saved")
    assert loaded.layer_sizes_ == sizes
    np.testing.assert_array_equal(loaded.anomaly_score(some_rows(seed=1)), fitted.anomaly_score(some_rows(seed=1)))
    np.testing.assert_array_equal(loaded.fit(some_rows()).scores_, fitted.scores_)
    kind(2, hidden=hidden).save(tmp_path / "not fitted")
    assert not hasattr(penstock.load(tmp_path / "not fitted"), "scores_")


@both
def test_files_that_do_not_fit_are_refused_or_harmless(kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part of a state in turn is replaced by what does not belong there."""
    X = some_rows(20)
    kind(hidden=(3,), max_iter=3, random_state=0).fit(X).save(tmp_path / "saved")

    def works(loaded) -> None:
        if hasattr(loaded, "scores_"):
            assert np.isfinite(loaded.anomaly_score(np.r_[X, 1e300 * X])).all()

    assert refuse_or_work(tmp_path / "saved", monkeypatch, works)[0] > 200


def test_layers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    AER(hidden=3, max_iter=3, random_state=0).fit(some_rows(20)).save(tmp_path / "saved")
    kind, state = read_state(tmp_path / "saved")
    for sizes in ([4, 4], [4, 3, 2, 3, 5], [5, 2, 5], [4], [2**62, 1, 2**62]):
        state["fitted"]["model"]["net"]["sizes"] = np.array(sizes)
        write_state(tmp_path / "forged", kind, state)
        with pytest.raises(StorageError, match=r"sizes.* should be layers from 4 to 4 that read the same both ways"):
            penstock.load(tmp_path / "forged")


def test_energies_that_overflow_are_the_largest_number() -> None:
    net = Autoencoder(np.array([1, 1, 1]), False, np.array([1.0, 0.0, 1.0, 0.0]))
    mixture = Mixture(np.zeros(1), np.zeros((1, 3)), 1e60 * np.eye(3)[None], 1.0)
    with np.errstate(over="ignore"):  # without the JIT, numpy tells of it
        energies = mixture.energies(np.array([[1e150]]), net)
    assert energies.tolist() == [np.finfo(np.float64).max]


GOLDEN = Path(__file__).parents[1] / "golden" / "format-1" / "DAGMM.safetensors"
WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
for blocked in sys.argv[2:]:
    import penstock, penstock.detectors
    from penstock.storage import StorageError
    assert "torch" not in sys.modules
    try:
        penstock.load(sys.argv[1])
    except StorageError as error:
        print(error)
"""


def test_a_saved_file_names_the_module_that_is_missing() -> None:
    modules = ["studies", "torch"]  # what is imported for the second would be there for the first
    command = [sys.executable, "-c", WITHOUT, str(GOLDEN), *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for module, told in zip(modules, done.stdout.splitlines(), strict=True):
        assert "DAGMM is defined in studies.ahmed2021.deep, which cannot be imported here" in told
        assert f"(No module named '{module}" in told
        assert "It is part of penstock's repository" in told
