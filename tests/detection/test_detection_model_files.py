"""Models in files: the same to the last bit, and nothing but a refusal for what is not a model."""

from __future__ import annotations

import copy
import datetime as dt
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from detection_tables import plant, readings, two_modes

import penstock
from penstock import fit_model
from penstock.detection import Model, load, score
from penstock.detectors import state_of
from penstock.io import TableError
from penstock.storage import StorageError, read_state, write_state

FITS: dict[str, dict[str, Any]] = {
    "detector": {},
    "detector modes": {"modes": "state"},
    "nsnmf": {"method": "nsnmf"},
    "laplacian": {"method": "laplacian"},
    "online": {"method": "online"},
    "gnmf": {"method": "gnmf"},
    "snmf": {"method": "snmf"},
    "lomst": {"method": "lomst"},
    "mean": {"method": "mean"},
    "knn": {"method": "knn"},
    "norm": {"method": "norm"},
    "modes": {"method": "nmf", "modes": "state", "settle": "20 min"},
    "rules": {"method": "mean", "modes": {"on": "`load [MW]` > 5", "it's": "oil < 0"}, "settle": 3,
              "skip_modes": "it's"},
    "online modes": {"method": "online", "modes": ["state"], "timezone": "Europe/Berlin", "time": "time"},
    "period": {"method": "nmf", "train_until": "2024-05-02", "columns": ["oil", "head [m]", "state"],
               "units": {"oil": "bar"}},
    "groups": {"method": "mean", "group": "state", "exclude_periods": "2024-05-01..2024-05-01 03:00"},
}  # fmt: skip

LONGEST = 1.0  # seconds of CPU time, which other processes do not count in


def table(n: int = 300) -> pd.DataFrame:
    rows = two_modes(n)
    rows["set point"] = np.where(np.arange(n) < 90, 40.0, 60.0)
    rows["grade"] = np.array([f"g{k}" for k in np.random.default_rng(0).integers(0, 12, n)])
    return rows


def same(first: Model, second: Model) -> None:
    assert (first.reading, first.inputs, first.modes) == (second.reading, second.inputs, second.modes)
    assert (dict(first.units), dict(first.settings)) == (dict(second.units), dict(second.settings))
    assert [part.mode for part in first.parts] == [part.mode for part in second.parts]
    assert [part.usual for part in first.parts] == [part.usual for part in second.parts]
    assert (first.training_scores == second.training_scores).all()


@pytest.mark.parametrize("kind", FITS)
def test_a_model_comes_back_to_the_last_bit(kind, tmp_path):
    model = fit_model(table(), **FITS[kind])
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = load(path)
    same(model, again)
    new = table(400).iloc[250:]
    one, two = score(model, new), score(again, new)
    assert np.array_equal(one.scores, two.scores, equal_nan=True)
    assert one.inputs.expected.equals(two.inputs.expected)
    assert (one.rows.modes == two.rows.modes).all()
    assert one.threshold == two.threshold
    assert [str(note) for note in one.notes] == [str(note) for note in two.notes]
    other = tmp_path / "again.safetensors"
    again.save(other)
    assert other.read_bytes() == path.read_bytes()


def test_a_file_is_replaced_only_if_one_says_so(tmp_path):
    path = tmp_path / "model"
    model = fit_model(readings(60), method="mean")
    model.save(path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        fit_model(readings(50), method="mean").save(path)
    assert path.read_bytes() == before
    model.save(path, overwrite=True)
    assert path.read_bytes() == before
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "link")
    assert not (tmp_path / "nowhere").exists()


def test_a_rule_means_in_a_file_what_it_meant_when_it_was_fitted(tmp_path):
    rows = two_modes(200).assign(wanted="on")
    model = fit_model(rows, modes={"as wanted": "state == wanted", "off": "state == off"}, method="mean")
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert [str(rule) for _, rule in again.modes.rules] == ["state == `wanted`", "state == 'off'"]
    assert again.modes == model.modes


def test_load_opens_detectors_and_models(tmp_path):
    model = fit_model(readings(60), method="mean")
    model.save(tmp_path / "model")
    model.parts[0].detector.save(tmp_path / "detector")
    assert isinstance(penstock.load(tmp_path / "detector"), penstock.detectors.MeanDistance)
    same(model, penstock.load(tmp_path / "model"))
    with pytest.raises(StorageError, match="it holds a MeanDistance, not a model of penstock fit"):
        Model.load(tmp_path / "detector")


def test_a_zone_without_a_name_is_refused_when_saving(tmp_path):
    model = fit_model(plant(), method="mean", timezone=dt.timezone(dt.timedelta(hours=1)))
    with pytest.raises(TableError, match=r"There is no time zone 'UTC\+01:00'. Use a name"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    fit_model(plant(), method="mean", timezone=dt.UTC).save(tmp_path / "utc")
    assert load(tmp_path / "utc").reading.timezone == "UTC"


KINDS = ["modes", "online modes", "rules", "mean", "period"]


@pytest.fixture(scope="module")
def states(tmp_path_factory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("models")
    for kind in KINDS:
        fit_model(table(120), **{**FITS[kind], "train_until": None}).save(folder / kind)
    return {kind: read_state(folder / kind)[1] for kind in KINDS}


def places(value: Any, way: tuple[Any, ...] = ()):
    """The ways to all fields outside the detectors, which have tests of their own."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*way, key)
        if key not in ("detector", "settings"):
            yield from places(item, (*way, key))


GONE = object()


def changed(state: dict[str, Any], way: tuple[Any, ...], new: Any) -> dict[str, Any]:
    """A state in which another value, or nothing, is at a place."""
    state = holder = copy.copy(state)
    for key in way[:-1]:
        holder[key] = copy.copy(holder[key])
        holder = holder[key]
    if new is GONE:
        holder.pop(way[-1])
    else:
        holder[way[-1]] = new
    return state


def loaded(path: Path, state: dict[str, Any], *, on_disk: bool = True) -> Model | None:
    """The model, or None if it was refused; not every one is worth waiting for the disk."""
    if on_disk:
        write_state(path, "model", state)
    begun = time.process_time()
    try:
        with pytest.MonkeyPatch.context() as patch:
            if not on_disk:
                patch.setattr("penstock.detection._model_files.read_state", lambda path: ("model", state))
            return load(path)
    except StorageError as error:
        assert str(error).startswith("Cannot load")  # noqa: PT017
        return None
    finally:
        assert time.process_time() - begun < LONGEST


WRONG = [None, True, -1, 3, 10**30, 1.5, float("nan"), float("inf"), -1.0, "", "strange", "a >", [], [1], ["x"],
         ["x", "x"], {}, {"x": 1}, np.zeros(3), np.zeros((0, 2)), [{}], [[]],
         {"minimum": np.zeros(1), "maximum": np.zeros(1)}]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_is_missing_or_holds_something_else(kind, states, tmp_path):
    """What is missing is refused; a model with something else in it is refused, or scores a table, or says why not."""
    ways = list(places(states[kind]))
    needed = [way for way in ways if isinstance(way[-1], str) and way[0] != "units"]
    assert len(needed) > 25
    for way in needed:
        assert loaded(tmp_path / "model", changed(states[kind], way, GONE), on_disk=False) is None, way
    assert loaded(tmp_path / "model", changed(states[kind], ("more",), 1)) is None
    every, taken, rows = [(way, wrong) for way in ways for wrong in WRONG], 0, table(120)
    for index in np.random.default_rng(0).permutation(len(every))[:250]:
        model = loaded(tmp_path / "model", changed(states[kind], *every[index]), on_disk=False)
        if model is not None:
            taken += 1
            try:
                score(model, rows)
            except ValueError as error:
                assert len(str(error)) > 20  # noqa: PT017
    assert taken < 100


PART, MODES, ENCODED = ("parts", 0), ("modes",), ("inputs", "encoded", -1)
WARMING_UP = penstock.OnlineNSNMF(n_components=2, warmup=50).partial_fit(np.random.default_rng(0).random((9, 8)))
FORGED: list[tuple[str, tuple[Any, ...], Any]] = [
    ("mean", ("parts",), []),
    ("mean", (*PART, "mode"), "strange"),
    ("mean", (*PART, "mode"), "other"),
    ("modes", (*PART, "mode"), "unknown"),
    ("modes", (*PART, "mode"), "changing"),
    ("modes", ("parts", 1, "mode"), "off"),
    ("rules", (*PART, "mode"), "it's"),
    ("rules", (*PART, "mode"), "all"),
    ("mean", (*PART, "usual"), 0.0),
    ("mean", (*PART, "usual"), -1.0),
    ("mean", (*PART, "detector", "fitted"), None),
    ("mean", (*PART, "detector", "class"), "os.system"),
    ("mean", (*PART, "detector", "parameters", "more"), 1),
    ("mean", (*PART, "scaled_before"), {"minimum": np.zeros(21), "maximum": np.ones(21)}),
    ("online modes", (*PART, "scaled_before"), None),
    ("online modes", (*PART, "detector"), state_of(WARMING_UP)),
    ("mean", (*PART, "reference"), None),
    ("mean", (*PART, "reference"), np.zeros((0, 21))),
    ("mean", (*PART, "reference"), np.zeros((5, 3))),
    ("mean", (*PART, "reference"), np.full((5, 21), np.inf)),
    ("mean", (*PART, "reference"), np.zeros((2001, 21))),
    ("modes", (*PART, "reference"), np.zeros((5, 8))),
    ("mean", ("reading", "timezone"), "../../etc/passwd"),
    ("mean", ("reading", "strict"), "yes"),
    ("mean", ("reading", "columns"), "oil"),
    ("mean", ("reading", "exclude"), [1]),
    ("mean", ("reading", "time"), [1, 2]),
    ("mean", ("reading", "max_bytes"), "9"),
    ("mean", ("inputs", "as_they_are"), ["oil"] * 6),
    ("mean", ("inputs", "as_they_are"), ["oil"]),
    ("mean", ("inputs", "as_they_are", 0), 3),
    ("mean", ("units", "strange"), "m"),
    ("mean", ("units", "oil"), 3),
    ("mean", ("settings", "rows"), [1]),
    ("mean", (*MODES, "rules"), [{"name": "on", "rule": "oil >"}]),
    ("mean", (*MODES, "rules"), [{"name": "on", "rule": "oil > 1" + " or oil > 1" * 10_000}]),
    ("mean", (*MODES, "rules"), [{"name": "on", "rule": "(" * 900 + "oil > 1" + ")" * 900}]),
    ("modes", (*MODES, "rules"), [{"name": "on", "rule": "oil > 1"}]),
    *(("rules", (*MODES, "rules", 0, "name"), name) for name in ("other", "it's", "x" * 100)),
    ("mean", (*MODES, "settle_seconds"), 1e300),
    ("mean", (*MODES, "settle_seconds"), float("nan")),
    ("mean", (*MODES, "settle_rows"), -3),
    ("mean", MODES, {"column": None, "rules": [], "skip": [], "settle_rows": 1, "settle_seconds": 1.0}),
    *(("mean", (*ENCODED, "categories"), wrong) for wrong in (["g0"] * 12, [])),
    *(("mean", (*ENCODED, "counts"), wrong) for wrong in ([1], [0] * 12, [10**320] * 12, [1.5] * 12, [True] * 12)),
    ("mean", (*ENCODED, "method"), "magic"),
    ("mean", (*ENCODED, "column"), 3),
]


@pytest.mark.parametrize(("kind", "way", "wrong"), FORGED, ids=lambda part: f"{part!r:.40}")
def test_forged_models_are_refused(kind, way, wrong, states, tmp_path):
    assert loaded(tmp_path / "model", states[kind]) is not None
    assert loaded(tmp_path / "model", changed(states[kind], way, wrong)) is None
