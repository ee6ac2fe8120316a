"""Files that are sound but whose content does not fit: refused at once, and by name."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from test_estimators import ALL_DETECTORS, some_rows

import penstock
from penstock import NMF, NSNMF, KNNDistance, LoMST, NormScore
from penstock.detectors import BaseDetector
from penstock.storage import StorageError, read_state, write_state

pytestmark = [
    pytest.mark.filterwarnings("ignore:n_components = :UserWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def places(content: Any) -> list[tuple[Any, ...]]:
    """The ways to everything in a state."""
    if not isinstance(content, dict):
        return [()]
    return [(), *((key, *way) for key in content for way in places(content[key]))]


WRONG: list[Any] = [None, True, -7, 10**30, float("nan"), float("inf"), -1.5, "x", "", [], {}, {"type": "x"}, [[1]]]


def wrong_values(value: Any) -> list[Any]:
    """Values that do not fit where `value` was."""
    wrong = [other for other in WRONG if type(other) is not type(value) or isinstance(other, float)]
    if isinstance(value, dict):
        return [*wrong, value | {"more": 1}, *({k: v for k, v in value.items() if k != key} for key in value)]
    if not isinstance(value, np.ndarray):
        return wrong
    wrong += [value[..., None], value[:-1], np.concatenate([value, value[:1]]), value.astype(np.float32), value[:0]]
    for bad in (-1, 10**9) if value.dtype.kind == "i" else (np.nan, np.inf, -np.inf):
        spoiled = value.copy()
        if spoiled.size and value.dtype.kind in "if":
            spoiled.flat[-1] = bad
            wrong.append(spoiled)
    return wrong


def changed(state: Any, way: tuple[Any, ...], value: Any) -> Any:
    if not way:
        return value
    copied = dict(state)
    copied[way[0]] = changed(state[way[0]], way[1:], value)
    return copied


def at(state: Any, way: tuple[Any, ...]) -> Any:
    return at(state[way[0]], way[1:]) if way else state


def count_refused(saved: Path, monkeypatch: pytest.MonkeyPatch, works: Callable[[BaseDetector], None]) -> int:
    """Replace every part of a saved state in turn by what does not belong there; how often that is refused.

    What is taken (another value of a parameter, say, or no labels) must work, if it is fitted.
    """
    sound = read_state(saved)[1]
    refused = 0
    for way in places(sound):
        for value in wrong_values(at(sound, way)):
            state = changed(sound, way, value)
            monkeypatch.setattr("penstock.detectors.registry.read_state", lambda *_, state=state: ("detector", state))
            try:
                loaded = penstock.load("file")
            except StorageError:
                refused += 1
                continue
            if hasattr(loaded, "scores_"):
                works(loaded)
    return refused


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("detector", [clone(ALL_DETECTORS[i]) for i in (0, 3, 4, 5, 6, 8, 10, 11, 12)], ids=repr)
def test_content_that_does_not_fit_is_refused_or_harmless(
    tmp_path: Path, detector: BaseDetector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every part of a state in turn is replaced by what does not belong there."""
    index = pd.date_range("2024-01-01", periods=24, tz="Europe/Oslo")
    frame = pd.DataFrame(np.r_[some_rows(20), some_rows(20)[:4]], columns=list("abcde"), index=index)
    fitted = detector.set_params(contamination=0.1).fit(frame)
    fitted.save(tmp_path / "saved")

    def works(loaded: BaseDetector) -> None:
        assert np.isfinite(loaded.anomaly_score(frame.to_numpy() * 1.1)).all()
        loaded.top(3)

    assert count_refused(tmp_path / "saved", monkeypatch, works) > 200


def spoiled(state: dict[str, Any], way: str, change: Any) -> dict[str, Any]:
    result = copy.deepcopy(state)
    *path, last = way.split("/")
    part = at(result, tuple(path))
    part[last] = change(part[last])
    return result


MODEL, FACTORISATION = "fitted/model", "fitted/model/factorisation"


@pytest.mark.parametrize(
    ("way", "change", "message"),
    [
        ("class", lambda _: "os.system", "'os.system' is not a detector"),
        ("parameters", lambda p: p | {"evil": 1}, "NSNMF has no parameter 'evil'"),
        ("parameters/alpha", lambda _: -1.0, "alpha must be a finite number > 0"),
        ("parameters/random_state", lambda _: "seed", "'seed' cannot be used to seed"),
        ("parameters/solver", lambda _: {"type": "settings", "name": "Popen", "fields": {}}, "one of Auto"),
        (
            "parameters/solver",
            lambda _: {"type": "settings", "name": "Auto", "fields": {"n_starts": "3", "burn_in": 1}},
            "a value like 3, but is '3'",
        ),
        (
            "parameters/solver",
            lambda _: {"type": "settings", "name": "Coordinate", "fields": {"profile_passes": 0}},
            "profile_passes must be at least 1",
        ),
        ("fitted/columns/count", lambda _: 4, "5 names for 4 columns"),
        ("fitted/scores", lambda s: s[:2], "needs at least 5 rows"),
        ("fitted/threshold", lambda _: float("nan"), r"fitted\['threshold'\] should be a number"),
        ("fitted/row_labels/zone", lambda _: "dateutil/../../etc/passwd", "zone that this machine knows"),
        ("fitted/row_labels/zone", lambda _: "Europe/Atlantis", "zone that this machine knows"),
        ("fitted/row_labels/values", lambda v: v[:5], "5 row labels for 24 rows"),
        ("fitted/scaling/maximum", lambda v: -v, "nowhere below the minimum"),
        (f"{MODEL}/tree/edges", lambda e: e + 20, "tree.*finite numbers ≥ 0 ≤ 23 only"),
        (f"{MODEL}/tree/edges", lambda e: e[:, ::-1].copy(), "smaller row first"),
        (f"{MODEL}/tree/edges", lambda e: e[[0] * len(e)], "reaches every row"),
        (f"{FACTORISATION}/factors/weights", lambda W: W - 1, "weights.*finite numbers ≥ 0"),
        (f"{FACTORISATION}/factors/weights", lambda W: W * np.nan, "weights.*finite numbers ≥ 0"),
        (f"{FACTORISATION}/factors/weights", lambda W: W + 1e80, "weights.* ≤ 1e\\+77"),
        (f"{FACTORISATION}/factors/weights", lambda W: W[:, :0], "at least one group"),
        (f"{FACTORISATION}/factors/profiles", lambda H: -H, "profiles.*finite numbers ≥ 0"),
        (f"{FACTORISATION}/factors/profiles", lambda H: H[:, 1:], r"profiles.*of shape \(5, 5\)"),
        (f"{FACTORISATION}/rows", lambda A: A - 2, "rows.*finite numbers ≥ 0"),
        (f"{FACTORISATION}/rows", lambda A: A + 1e80, "too large"),
        (f"{FACTORISATION}/copies/kept", lambda k: k * 0, "for that row itself"),
        (f"{FACTORISATION}/objective/similarity", lambda _: None, "similarity.* should be there"),
        (f"{FACTORISATION}/objective/similarity/pairs", lambda p: p[::-1].copy(), "in ascending order"),
        (f"{FACTORISATION}/objective/similarity/values", lambda v: v + 1e150, "≤ 1e\\+140"),
        (f"{FACTORISATION}/objective/gamma", lambda _: float("inf"), "gamma must be a finite number"),
        (f"{FACTORISATION}/objective/row_bound", lambda _: 0.0, "row_bound must be positive"),
        (f"{FACTORISATION}/objective/has_rows", lambda _: False, "A is None"),
        (f"{FACTORISATION}/solution/n_iter", lambda _: -1, "whole number ≥ 0"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, way: str, change: Any, message: str) -> None:
    index = pd.date_range("2024-01-01", periods=24, tz="Europe/Oslo")
    frame = pd.DataFrame(some_rows(24), columns=list("abcde"), index=index)
    NSNMF(random_state=0).fit(frame).save(tmp_path / "saved")
    write_state(tmp_path / "saved", "detector", spoiled(read_state(tmp_path / "saved")[1], way, change))
    with pytest.raises(StorageError, match=f"(?s)Cannot load .*saved: the file is sound, but .*{message}"):
        penstock.load(tmp_path / "saved")


LEVELS_IN_LEVELS = {
    "type": "levels",
    "name": None,
    "levels": [{"codes": np.zeros(80, np.int64), "values": {"type": "levels", "name": None, "levels": []}}],
}


@pytest.mark.parametrize(
    ("detector", "way", "change", "message"),
    [
        (NMF(2), "fitted/model/objective/similarity", lambda _: {"pairs": np.zeros((0, 2), int)}, "should be None"),
        (KNNDistance(), "parameters/n_neighbors", lambda _: 80, "needs at least 81 rows"),
        (KNNDistance(), "fitted/model/reach", lambda r: r * 0, "reach.* should be positive"),
        (LoMST(), "fitted/model/neighbors", lambda _: 80, "≥ 1 and ≤ 79"),
        (NormScore(), "fitted/model", lambda _: {"code": "x"}, "too many or missing"),
        (NormScore(), "parameters/contamination", lambda _: 0.7, r"in \(0, 0.5\]"),
        (NormScore(), "parameters/scale", lambda _: {"type": "eval"}, "a known kind of parameter"),
        (
            NormScore(),
            "fitted/columns/names",
            lambda _: {"utf8": np.zeros(3, np.uint8), "ends": np.array([2])},
            "up to 3",
        ),
        (NormScore(), "fitted/row_labels", lambda _: {"type": "eval", "name": None}, "a known kind of index"),
        (NormScore(), "fitted/row_labels", lambda _: {"type": "eval", "name": []}, "text or a number"),
        (NormScore(), "fitted/row_labels", lambda _: {"type": "levels", "name": None, "levels": []}, "list of levels"),
        (NormScore(), "fitted/row_labels", lambda _: LEVELS_IN_LEVELS, "a plain index"),
        (NormScore(), "fitted/row_labels", lambda _: {"type": "numbers", "name": None, "values": 3}, "row of numbers"),
        (
            NormScore(),
            "fitted/row_labels",
            lambda _: {"type": "text", "name": None, "dtype": "x", "values": 3},
            "one of o",
        ),
        (NormScore(), "fitted/row_labels", lambda _: {"type": "times", "name": None, "unit": "years"}, "one of s, ms"),
    ],
)
def test_what_does_not_fit_is_named_for_others_too(
    tmp_path: Path, detector: BaseDetector, way: str, change: Any, message: str
) -> None:
    clone(detector).fit(some_rows()).save(tmp_path / "saved")
    write_state(tmp_path / "saved", "detector", spoiled(read_state(tmp_path / "saved")[1], way, change))
    with pytest.raises(StorageError, match=message):
        penstock.load(tmp_path / "saved")
