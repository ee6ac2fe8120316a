"""Any detector as a method of a study: by name or path, with parameters and a seed, its scores turned the right way."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from penstock.bench.methods import (
    OURS,
    MethodError,
    build,
    find_class,
    import_path,
    takes_seed,
    with_defaults,
)
from penstock.bench.oracle import BestLoMST
from penstock.bench.training_scores import ScoresError, training_scores
from penstock.factor import Auto, BlockSGD

needs_pyod = pytest.mark.skipif(find_spec("pyod") is None, reason="needs pyod")
ODD = 40


@pytest.fixture
def rows() -> np.ndarray:
    """A cloud, and one row far off."""
    rows = np.random.default_rng(0).normal(size=(80, 3))
    rows[ODD] += 12.0
    return rows


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for modules of the user's own."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


class Giver:
    """Has what it is told to have after fit, and remembers what fit was given."""

    def __init__(self, **given: Any) -> None:
        self.given = given

    def fit(self, *arguments: Any) -> Giver:
        self.seen = len(arguments)
        for name, value in self.given.items():
            setattr(self, name, value)
        return self


class Oracle(Giver):
    uses_labels = True


def test_all_of_ours_can_be_found() -> None:
    for name, path in OURS.items():
        if name in ("AER", "DAGMM") and find_spec("torch") is None:
            continue
        assert f"{find_class(name).__module__}.{find_class(name).__name__}" == path


@pytest.mark.parametrize("path", ["sklearn.ensemble.IsolationForest", "sklearn.ensemble:IsolationForest"])
def test_a_path_is_followed(path: str) -> None:
    assert find_class(path) is IsolationForest


def test_a_wrong_name_has_a_hint() -> None:
    with pytest.raises(MethodError, match=r"no detector 'nsnmf'\. Did you mean NSNMF"):
        import_path("nsnmf")
    with pytest.raises(MethodError, match=r"Ours are AER, BestLoMST.*import path"):
        import_path("qqqqqq")


def test_what_is_not_in_a_module_is_said() -> None:
    with pytest.raises(MethodError, match=r"Module sklearn\.ensemble has no 'IsolationForrest'"):
        find_class("sklearn.ensemble.IsolationForrest")


def test_a_missing_package_is_named() -> None:
    with pytest.raises(MethodError, match=r"install what provides the module 'no_such_package'"):
        find_class("no_such_package.models.Detector")


def test_a_missing_package_inside_a_module_is_named(on_path: Path) -> None:
    (on_path / "wants_torch.py").write_text("import pyod.no_such_part")
    with pytest.raises(MethodError, match=r"pip install 'penstock\[peers\]'"):
        find_class("wants_torch.Detector")


def test_what_takes_a_seed() -> None:
    assert takes_seed(IsolationForest)
    assert takes_seed(find_class("OnlineNSNMF"))
    assert not takes_seed(LocalOutlierFactor)
    assert not takes_seed(find_class("LoMST"))
    assert not takes_seed(find_class("BestLoMST"))


def test_a_seed_is_handed_on() -> None:
    assert build("NMF", {}, seed=7).random_state == 7
    assert build("sklearn.ensemble.IsolationForest", {"n_estimators": 3}, seed=7).random_state == 7
    build("KNNDistance", {}, seed=7)  # which takes none


def test_a_wrong_parameter_is_named() -> None:
    with pytest.raises(MethodError, match=r"NSNMF has no parameter 'alhpa'\. Did you mean 'alpha'"):
        build("NSNMF", {"alhpa": 1})
    with pytest.raises(MethodError, match=r"KNNDistance has no parameter 'zzzz'\. It has n_neighbors"):
        build("KNNDistance", {"zzzz": 1})


def test_a_class_that_takes_anything_is_given_it(on_path: Path) -> None:
    (on_path / "takes_any.py").write_text("class D:\n    def __init__(self, **given): self.given = given")
    assert build("takes_any.D", {"whatever": 3}).given == {"whatever": 3}


def test_a_constructor_that_refuses_is_quoted(on_path: Path) -> None:
    (on_path / "refuses.py").write_text("class D:\n    def __init__(self, a=1): raise ValueError('a is odd')")
    with pytest.raises(MethodError, match=r"refuses\.D cannot be made with \{'a': 3\}: a is odd"):
        build("refuses.D", {"a": 3})


def test_what_is_no_class_is_refused() -> None:
    with pytest.raises(MethodError, match=r"math\.pi cannot be made"):
        build("math.pi", {})


def test_solvers_are_written_as_tables() -> None:
    assert build("NSNMF", {"solver": {"BlockSGD": {"rounds": 9}}}).solver == BlockSGD(rounds=9)
    assert build("NSNMF", {"solver": {"Auto": {}}}).solver == Auto()
    assert build("NSNMF", {"solver": "auto"}).solver == "auto"


def test_a_wrong_setting_of_a_solver_is_named() -> None:
    with pytest.raises(MethodError, match="rouns"):
        build("NSNMF", {"solver": {"BlockSGD": {"rouns": 9}}})


def test_a_module_that_cannot_be_imported_is_a_method_that_cannot_be_built(on_path: Path) -> None:
    (on_path / "no_python.py").write_text("class Detector(:\n")
    with pytest.raises(MethodError, match=r"no_python\.Detector cannot be imported: SyntaxError"):
        find_class("no_python.Detector")


def test_a_path_may_have_a_colon_alone(on_path: Path) -> None:
    (on_path / "with_colon.py").write_text("class Detector:\n    pass\n")
    assert find_class("with_colon:Detector").__name__ == "Detector"


def test_defaults_are_part_of_what_a_cell_is_known_by() -> None:
    assert with_defaults("KNNDistance", {}) == with_defaults("KNNDistance", {"n_neighbors": 5})
    assert with_defaults("KNNDistance", {}) != with_defaults("KNNDistance", {"n_neighbors": 6})


@pytest.mark.parametrize(
    "detector",
    [
        IsolationForest(random_state=0),
        LocalOutlierFactor(),
        LocalOutlierFactor(novelty=True),
        OneClassSVM(nu=0.1),
        EllipticEnvelope(random_state=0),
    ],
    ids=repr,
)
def test_scikit_learn_is_turned_round(detector: Any, rows: np.ndarray) -> None:
    scores = training_scores(detector, rows, None)
    assert scores.argmax() == ODD
    if hasattr(detector, "score_samples") and not isinstance(detector, LocalOutlierFactor):
        np.testing.assert_array_equal(scores, -detector.score_samples(rows))


@needs_pyod
@pytest.mark.parametrize("path", ["pyod.models.knn.KNN", "pyod.models.ecod.ECOD"])
def test_pyod_is_taken_as_it_is(path: str, rows: np.ndarray) -> None:
    detector = build(path, {})
    scores = training_scores(detector, rows, None)
    assert scores.argmax() == ODD
    np.testing.assert_array_equal(scores, detector.decision_scores_)


@pytest.mark.filterwarnings("ignore:n_components = 5 is larger")
@pytest.mark.parametrize("name", ["KNNDistance", "NSNMF", "LoMST", "MeanDistance"])
def test_ours_are_taken_as_they_are(name: str, rows: np.ndarray) -> None:
    detector = build(name, {}, seed=0)
    scores = training_scores(detector, rows, None)
    assert scores.argmax() == ODD
    np.testing.assert_array_equal(scores, detector.scores_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scores_": [1.0, np.nan, 2.0]}, "1 of 3 scores are not finite, the first in row 1"),
        ({"decision_scores_": [1.0, 1.0, -np.inf]}, "1 of 3 scores are not finite, the first in row 2"),
        ({"scores_": [1.0, 2.0]}, r"one number per row, 3; they have shape \(2,\)"),
        ({"scores_": [[1.0], [2.0], [3.0]]}, r"one number per row, 3; they have shape \(3, 1\)"),
        ({}, "Giver has no scores that are known here"),
    ],
)
def test_wrong_scores_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ScoresError, match=message):
        training_scores(Giver(**given), np.zeros((3, 1)), None)


def test_only_an_oracle_sees_the_labels(rows: np.ndarray) -> None:
    y = np.arange(80) == ODD
    detector, oracle = Giver(scores_=np.zeros(80)), Oracle(scores_=np.zeros(80))
    training_scores(detector, rows, y)
    training_scores(oracle, rows, y)
    assert (detector.seen, oracle.seen) == (1, 2)
    assert [name for name in OURS if name not in ("AER", "DAGMM") and is_oracle(name)] == ["BestLoMST"]
    assert training_scores(BestLoMST(), rows, y).argmax() == ODD


def is_oracle(name: str) -> bool:
    return bool(getattr(find_class(name), "uses_labels", False))
