"""Methods and cells of a study: how detectors are found and measured, and what a cell is known by."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench_detectors import Place, made_place, write_data
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from penstock import KNNDistance, LoMST, SensorDetector
from penstock._parameters import ParameterError
from penstock.bench import Dataset, Method, Study, load_file
from penstock.bench.cells import Cell, code_version, plan, run_cell
from penstock.bench.methods import (
    OURS,
    build,
    find_class,
    fit_and_score,
    import_path,
    takes_seed,
)
from penstock.factor import BlockSGD, Coordinate

ODD = 40
DETECTORS = '''
import sys
import warnings

import numpy as np


class Given:
    """Scores that are the first column; keeps the rows it saw."""

    def fit(self, X):
        self.scores_ = X[:, 0]
        np.save(sys.modules[__name__].SEEN, X)
        return self


class Wanton(Given):
    def __init__(self, what="nothing", random_state=None):
        self.what = what

    def fit(self, X):
        if self.what == "raise":
            raise RuntimeError("two\\nlines  and spaces")
        if self.what == "memory":
            np.empty(2**50)
        if self.what == "long":
            raise ValueError("x" * 9000)
        if self.what == "warn":
            for word in ("d", "a", "c", "b", "a"):
                warnings.warn(word)
        if self.what == "attributes":
            self.n_iter_, self.converged_, self.objective_ = np.int64(7), np.True_, np.float64(0.5)
            self.n_neighbors_, self.collapsed_ = float("nan"), np.arange(3)
        return super().fit(X)
'''


@pytest.fixture(scope="module")
def data() -> Dataset:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3)) * (1.0, 50.0, 0.1) + 7.0
    y = np.zeros(120, dtype=np.int64)
    y[[5, 50, 70, 110]] = 1
    X[y == 1] += rng.normal(size=(4, 3)) * (3.0, 150.0, 0.3)
    return Dataset("some", X, y)


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


@pytest.fixture
def seen(on_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the rows go that a detector of the module `odd_detectors` has seen."""
    (on_path / "odd_detectors.py").write_text(DETECTORS)
    monkeypatch.delitem(sys.modules, "odd_detectors", raising=False)
    import odd_detectors  # type: ignore[import-not-found]

    odd_detectors.SEEN = on_path / "seen.npy"
    return on_path / "seen.npy"


@pytest.fixture
def own_place(tmp_path: Path) -> Iterator[Place]:
    with made_place(tmp_path) as place:
        yield place


def outcome_of(data: Dataset, detector: str, seed: int | None = None, **more: Any) -> dict[str, Any]:
    return run_cell(Cell(Method("it", detector, **more), data.name, seed, data))


class Giver:
    """Has the given attributes after fit, and remembers what fit was given."""

    def __init__(self, **given: Any) -> None:
        self.given = given

    def fit(self, *arguments: Any) -> Giver:
        self.seen = len(arguments)
        vars(self).update(self.given)
        return self


class Oracle(Giver):
    uses_labels = True


def test_later_rows_of_a_series_are_scored_as_score_and_watch_do() -> None:
    """In the units of the file, and with a history that begins after the good period."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(400, 3)).cumsum(axis=0), np.full(400, 100.0)])
    X[300:, 3] = 100.2  # a set point that never moved: little news, by its level
    y = ((np.arange(400) >= 340) & (np.arange(400) < 350)).astype(np.int64)
    X[340:350, 0] += 20
    time, train = pd.date_range("2024-05-01", periods=400, freq="h"), np.arange(400) < 200
    outcome = outcome_of(Dataset("series", X, y, time, train=train), "SensorDetector", 0)
    fitted = SensorDetector(random_state=0).fit(X[train], time=time[train])
    scores = fitted.score_series(X[~train], time=time[~train])
    found = fit_and_score(SensorDetector(random_state=0), X, y, time=time, train=train)
    np.testing.assert_array_equal(found.scores, scores)
    assert outcome["average_precision"] == pytest.approx(average_precision_score(y[~train], scores), abs=1e-12)


def test_runs_may_have_names() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.isin(np.arange(60), [20, 21, 45]).astype(np.int64)
    time = pd.date_range("2024-05-01", periods=60, freq="h")
    runs = np.repeat(["pump", "valve", "pump"], 20)
    named, numbered = (
        outcome_of(Dataset("runs", X, y, time, groups=groups), "KNNDistance")
        for groups in (runs, np.repeat([0, 1, 2], 20))
    )
    assert named["status"] == "ok", named["why"]
    assert named["vus_pr"] == numbered["vus_pr"]
    assert named["detail"] == numbered["detail"]


# ---- Detectors


def test_all_of_ours_can_be_found() -> None:
    for name, path in OURS.items():
        assert f"{find_class(name).__module__}.{find_class(name).__name__}" == path
    for path in ("sklearn.ensemble.IsolationForest", "sklearn.ensemble:IsolationForest"):
        assert find_class(path) is IsolationForest


@pytest.mark.parametrize(
    ("detector", "parameters", "message"),
    [
        ("nsnmf", {}, r"^detector: there is no 'nsnmf'\. Did you mean NSNMF"),
        ("qqqqqq", {}, r"Ours are Detector, GNMF.*import path"),
        ("sklearn.ensemble.IsolationForrest", {}, r"module sklearn\.ensemble has no 'IsolationForrest'"),
        ("no_such_package.models.Detector", {}, "install what provides the module 'no_such_package'"),
        ("wants_peers.Detector", {}, r"pip install 'penstock\[peers\]'"),
        ("no_python.Detector", {}, r"no_python\.Detector cannot be imported: SyntaxError"),
        ("NSNMF", {"alhpa": 1}, r"NSNMF has no parameter 'alhpa'\. Did you mean 'alpha'"),
        ("KNNDistance", {"zzzz": 1}, r"KNNDistance has no parameter 'zzzz'\. It has n_neighbors"),
        ("refuses.D", {"a": 3}, r"refuses\.D cannot be made with \{'a': 3\}: a is odd"),
        ("math.pi", {}, r"math\.pi cannot be made"),
        ("NSNMF", {"solver": {"BlockSGD": {"rouns": 9}}}, "rouns"),
    ],
)
def test_a_method_that_cannot_be_made(on_path: Path, detector: str, parameters: dict[str, Any], message: str) -> None:
    (on_path / "wants_peers.py").write_text("import pyod.no_such_part")
    (on_path / "no_python.py").write_text("class Detector(:\n")
    (on_path / "refuses.py").write_text("class D:\n    def __init__(self, a=1): raise ValueError('a is odd')")
    with pytest.raises(ParameterError, match=message):
        build(detector, parameters)


def test_parameters_seeds_and_solvers_are_handed_on(on_path: Path) -> None:
    assert import_path("NMF").endswith("NMF")
    assert takes_seed(IsolationForest)
    assert not takes_seed(LocalOutlierFactor)
    assert build("NMF", {}, seed=7).random_state == 7
    assert build("sklearn.ensemble.IsolationForest", {"n_estimators": 3}, seed=7).random_state == 7
    build("KNNDistance", {}, seed=7)  # which takes none
    (on_path / "takes_any.py").write_text("class D:\n    def __init__(self, **given): self.given = given")
    assert build("takes_any:D", {"whatever": 3}).given == {"whatever": 3}
    assert build("NSNMF", {"solver": {"BlockSGD": {"rounds": 9}}}).solver == BlockSGD(rounds=9)
    assert build("NSNMF", {"solver": {"Coordinate": {}}}).solver == Coordinate()
    assert build("OverTime", {"detector": {"NMF": {"n_components": 3}}}).detector.n_components == 3


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
def test_the_sign_of_scikit_learn_is_turned(detector: Any, rows: np.ndarray) -> None:
    scores = fit_and_score(detector, rows, None).scores
    assert scores.argmax() == ODD
    if hasattr(detector, "score_samples") and not isinstance(detector, LocalOutlierFactor):
        np.testing.assert_array_equal(scores, -detector.score_samples(rows))


@pytest.mark.filterwarnings("ignore:n_components = 5 is larger")
@pytest.mark.parametrize("name", ["pyod.models.ecod.ECOD", "KNNDistance", "NSNMF", "LoMST", "MeanDistance"])
def test_scores_of_ours_and_of_pyod_are_taken_as_they_are(name: str, rows: np.ndarray) -> None:
    if name.startswith("pyod") and find_spec("pyod") is None:
        pytest.skip("needs pyod")
    detector = build(name, {}, seed=0)
    scores = fit_and_score(detector, rows, None).scores
    assert scores.argmax() == ODD
    np.testing.assert_array_equal(scores, getattr(detector, "scores_" if "." not in name else "decision_scores_"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scores_": [1.0, np.nan, 2.0]}, "scores must be finite; 1 of 3 are not, the first in row 1"),
        ({"decision_scores_": [1.0, 1.0, -np.inf]}, "scores must be finite; 1 of 3 are not, the first in row 2"),
        ({"scores_": [1.0, 2.0]}, r"one number per row, 3; they have shape \(2,\)"),
        ({"scores_": [[1.0], [2.0], [3.0]]}, r"one number per row, 3; they have shape \(3, 1\)"),
        ({}, "Giver has no scores that are known here"),
    ],
)
def test_wrong_scores_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fit_and_score(Giver(**given), np.zeros((3, 1)), None)


def test_only_an_oracle_sees_the_labels() -> None:
    detector, oracle = Giver(scores_=np.zeros(3)), Oracle(scores_=np.zeros(3))
    for each in (detector, oracle):
        fit_and_score(each, np.zeros((3, 1)), [0, 0, 1])
    assert (detector.seen, oracle.seen) == (1, 2)


# ---- A cell is run


def test_measures_are_those_computed_directly(data: Dataset) -> None:
    outcome = outcome_of(data, "KNNDistance", parameters={"n_neighbors": 3})
    scores = KNNDistance(n_neighbors=3).fit(data.X).scores_
    found = int(data.y[np.argsort(-scores)[:4]].sum())
    assert 0 < found < 4  # or it would not tell much
    assert (outcome["status"], outcome["why"]) == ("ok", "")
    assert (outcome["true_detections"], outcome["precision_at_n"]) == (found, found / 4)
    assert outcome["roc_auc"] == pytest.approx(roc_auc_score(data.y, scores), abs=1e-12)
    assert outcome["average_precision"] == pytest.approx(average_precision_score(data.y, scores), abs=1e-12)
    assert min(outcome[name] for name in ("fit_seconds", "cpu_seconds", "peak_memory_mb")) >= 0
    json.dumps(outcome, allow_nan=False)


def test_every_method_sees_columns_from_0_to_1(data: Dataset, seen: Path) -> None:
    outcome_of(data, "odd_detectors.Given")
    np.testing.assert_allclose(np.load(seen), (data.X - data.X.min(0)) / np.ptp(data.X, axis=0), atol=1e-12)


def test_rows_are_drawn_and_shuffled_by_the_seed(data: Dataset, seen: Path) -> None:
    counted = Dataset("counted", np.column_stack([np.arange(120.0), data.X[:, 1]]), data.y)

    def rows_seen(**more: Any) -> list[float]:
        outcome = outcome_of(counted, "odd_detectors.Given", **more)
        if "rows" not in more:
            assert outcome["roc_auc"] == roc_auc_score(data.y, counted.X[:, 0])  # whatever the order
        return [float(value) for value in np.load(seen)[:, 0]]

    plain, shuffled = rows_seen(seed=1), rows_seen(order="shuffled", seed=1)
    assert plain == [row / 119 for row in range(120)] == sorted(shuffled) != shuffled
    assert rows_seen(order="shuffled", seed=1) == shuffled != rows_seen(order="shuffled", seed=2)
    few = rows_seen(rows=100, seed=1)
    assert len(set(few)) == 100
    assert few == sorted(few) == rows_seen(rows=100, seed=1) != rows_seen(rows=100, seed=2)
    assert sorted(rows_seen(rows=100, seed=1, order="shuffled")) == few
    assert len(rows_seen(rows=500, seed=1)) == 120  # all there are


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("raise", "RuntimeError: two lines and spaces"),
        ("memory", "out of memory"),
        ("long", f"ValueError: {'x' * 488}"),
    ],
)
def test_what_a_method_raises_is_its_outcome(data: Dataset, seen: Path, what: str, why: str) -> None:
    outcome = outcome_of(data, "odd_detectors.Wanton", parameters={"what": what})
    assert (outcome["status"], outcome["why"], outcome["detail"]) == ("failed", why, {})
    assert "roc_auc" not in outcome


def test_a_draw_without_anomalies_and_a_wrong_parameter_are_outcomes_too(data: Dataset) -> None:
    outcome = outcome_of(data, "KNNDistance", 0, parameters={"n_neighbors": 1}, rows=3)
    assert (outcome["status"], "0 of 3 rows are labelled anomalies" in outcome["why"]) == ("failed", True)
    assert outcome_of(data, "KNNDistance", parameters={"n_neighbours": 3})["why"].startswith("KNNDistance has no")


def test_details_are_plain_numbers_and_warnings(data: Dataset, seen: Path) -> None:
    with warnings.catch_warnings(record=True) as shown:
        outcome = outcome_of(data, "odd_detectors.Wanton", parameters={"what": "warn"})
    assert outcome["detail"]["warnings"] == ["a", "b", "c"]
    assert not shown
    detail = outcome_of(data, "odd_detectors.Wanton", parameters={"what": "attributes"})["detail"]
    assert detail == {"n_iter": 7, "converged": True, "objective": 0.5}
    assert [type(value) for value in detail.values()] == [int, bool, float]
    detail = outcome_of(data, "LoMST", parameters={"n_neighbors": "sd"})["detail"]
    assert detail == {"n_neighbors": LoMST("sd").fit(data.X).n_neighbors_}
    many = Dataset("many", np.random.default_rng(0).random((1000, 2)), (np.arange(1000) < 5).astype(np.int64))
    detail = outcome_of(many, "NSNMF", 0, parameters={"n_components": 2, "max_iter": 3})["detail"]
    assert detail["tree_seconds"] > 0


# ---- What a cell is known by


def keys(study: Study) -> dict[str, str]:
    cells = plan(study, load_file)
    return {f"{cell.method.name}/{Path(cell.dataset).name}/{cell.seed}": cell.key for cell in cells}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {cell for cell in after if before.get(cell) != after[cell]}


def test_keys_change_with_data_parameters_and_seeds(own_place: Place) -> None:
    sets = [own_place.file("one.csv"), write_data(own_place.folder / "two.csv", seed=5)]
    methods = "noted Noted\nsure Sure\nshuffled Sure order = 'shuffled'"
    before = keys(own_place.study(methods, sets))
    assert len(set(before.values())) == len(before) == 10
    assert changed(before, keys(own_place.study(methods, sets, title="other", time_limit=3))) == set()
    write_data(own_place.folder / "two.csv", seed=6)
    after = keys(own_place.study(methods, sets))
    assert changed(before, after) == {name for name in after if "two.csv" in name}
    with_more = keys(own_place.study("noted Noted parameters = { power = 2 }\nsure Sure", sets))
    assert changed(after, with_more) == {f"noted/{name}/{seed}" for name in ("one.csv", "two.csv") for seed in (0, 1)}
    assert (
        changed(after, keys(own_place.study("noted Noted parameters = { power = 1.0 }", sets))) == set()
    )  # the default
    more_seeds = changed(after, keys(own_place.study(methods, sets, seeds=[0, 1, 2])))
    assert more_seeds == {f"{name}/{file}/2" for name in ("noted", "shuffled") for file in ("one.csv", "two.csv")}
    rows = keys(own_place.study("sure Sure rows = 10\nshuffled Sure order = 'shuffled'\nnoted Noted", sets))
    assert {name.split("/")[0] for name in changed(after, rows)} == {"sure"}


def test_keys_change_with_the_script(own_place: Place) -> None:
    (own_place.folder / "leaning.py").write_text("from my_detectors import Sure\n\n\nclass D(Sure): pass\n")
    study = own_place.study("sure Sure\nleaning leaning.D\nknn KNNDistance\nforest sklearn.ensemble.IsolationForest")
    before = keys(study)
    assert changed(before, keys(study)) == set()
    module = own_place.folder / "my_detectors.py"
    module.write_text(module.read_text().replace("0.3 * chance", "0.2 * chance"))
    assert {name.split("/")[0] for name in changed(before, keys(study))} == {"sure"}


def test_files_of_the_same_name_are_told_apart(own_place: Place) -> None:
    other = write_data(own_place.folder / "other" / "one.csv", seed=9)
    lone = write_data(own_place.folder / "lone.csv", seed=10)
    cells = list(plan(own_place.study("sure Sure", [own_place.file("one.csv"), other, lone]), load_file))
    assert [cell.planned()["dataset"] for cell in cells] == [own_place.file("one.csv"), other, "lone"]
    assert len({cell.key for cell in cells}) == 3


def test_the_version_of_code(on_path: Path) -> None:
    script = on_path / "versioned.py"
    script.write_text("class D:\n    pass\n")

    def version() -> str:
        code_version.cache_clear()
        return code_version("versioned.D")

    first = version()
    script.write_text("class D:\n    power = 2\n")
    assert version() != first
    script.write_text("class D:\n    pass\n")
    assert version() == first
    import sklearn

    assert f"scikit-learn=={sklearn.__version__}" in code_version("sklearn.ensemble.IsolationForest")
    assert f"numpy=={np.__version__}" in code_version("NSNMF")
