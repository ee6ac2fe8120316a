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
from penstock.detection import Model, load_model, score
from penstock.detection._model_files import KIND
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
    again = load_model(path)
    same(model, again)
    new = table(400).iloc[250:]
    one, two = score(model, new), score(again, new)
    assert np.array_equal(one.scores, two.scores, equal_nan=True)
    assert one.expected.equals(two.expected)
    assert (one.modes == two.modes).all()
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
    with pytest.raises(FileExistsError, match=r"is there already. Choose another name, or overwrite=True"):
        fit_model(readings(50), method="mean").save(path)
    assert path.read_bytes() == before
    model.save(path, overwrite=True)
    assert path.read_bytes() == before


def test_a_link_to_nowhere_is_there_already(tmp_path):
    link, target = tmp_path / "model", tmp_path / "target"
    link.symlink_to(target)
    with pytest.raises(FileExistsError, match="is there already"):
        fit_model(readings(60), method="mean").save(link)
    assert not target.exists()


def test_a_rule_means_in_a_file_what_it_meant_when_it_was_learnt(tmp_path):
    rows = two_modes(200).assign(wanted="on")
    model = fit_model(rows, modes={"as wanted": "state == wanted", "off": "state == off"}, method="mean")
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert [str(rule) for _, rule in again.modes.rules] == ["state == `wanted`", "state == 'off'"]
    assert again.modes == model.modes


def test_models_and_detectors_are_not_mistaken_for_each_other(tmp_path):
    model = fit_model(readings(60), method="mean")
    model.save(tmp_path / "model")
    model.parts[0].detector.save(tmp_path / "detector")
    with pytest.raises(StorageError, match="it holds a 'detector', not a 'model'"):
        load_model(tmp_path / "detector")
    with pytest.raises(StorageError, match="it holds a 'model', not a 'detector'"):
        penstock.load(tmp_path / "model")


def test_a_zone_without_a_name_is_refused_when_saving(tmp_path):
    model = fit_model(plant(), method="mean", timezone=dt.timezone(dt.timedelta(hours=1)))
    with pytest.raises(TableError, match=r"There is no time zone 'UTC\+01:00'. Use a name"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    fit_model(plant(), method="mean", timezone=dt.UTC).save(tmp_path / "utc")
    assert load_model(tmp_path / "utc").reading.timezone == "UTC"


def refused(path: Path) -> None:
    """It is a StorageError, quickly, or it is a model that can be used."""
    begun = time.process_time()
    with pytest.raises(StorageError, match=r"Cannot (load|read)"):
        load_model(path)
    assert time.process_time() - begun < LONGEST


@pytest.mark.parametrize("kind", ["modes", "online modes", "rules", "mean", "period"])
def test_damaged_files_are_refused(kind, tmp_path):
    path, broken = tmp_path / "model", tmp_path / "broken"
    fit_model(table(120), **{**FITS[kind], "train_until": None}).save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for length in [0, 1, 7, 8, *rng.integers(9, len(content), 20).tolist(), len(content) - 1]:
        broken.write_bytes(content[:length])
        refused(broken)
    for place, bit in zip(rng.integers(0, len(content), 40).tolist(), rng.integers(0, 8, 40).tolist(), strict=True):
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        broken.write_bytes(changed)
        refused(broken)
    broken.write_bytes(content + b"\0")
    refused(broken)


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for kind in ("modes", "online modes", "rules", "mean", "period"):
        fit_model(table(120), **{**FITS[kind], "train_until": None}).save(folder / kind)
        found[kind] = read_state(folder / kind, KIND)[1]
    return found


def places(value: Any, way: tuple[Any, ...] = ()):
    """The ways to all fields outside the detectors, which have tests of their own."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*way, key)
        if key not in ("detector", "settings"):
            yield from places(item, (*way, key))


def changed(state: dict[str, Any], way: tuple[Any, ...], change) -> dict[str, Any]:
    state = copy.deepcopy(state)
    holder: Any = state
    for key in way[:-1]:
        holder = holder[key]
    change(holder, way[-1])
    return state


def attempt(path: Path, state: dict[str, Any], *, on_disk: bool = True) -> Model | None:
    """The model, or None if it was refused as it should be; not every one is worth waiting for the disk."""
    if on_disk:
        write_state(path, KIND, state)
    begun = time.process_time()
    try:
        with pytest.MonkeyPatch.context() as patch:
            if not on_disk:
                patch.setattr("penstock.detection._model_files.read_state", lambda path, kind: (kind, state))
            return load_model(path)
    except StorageError as error:
        assert str(error).startswith("Cannot load")  # noqa: PT017
        return None
    finally:
        assert time.process_time() - begun < LONGEST


def usable(model: Model) -> None:
    """What was let in judges a table, or says in words why not."""
    try:
        score(model, table(120))
    except ValueError as error:
        assert len(str(error)) > 20  # noqa: PT017


# Fields that the first files lack: tests/golden has some of those.
NEW = [("reading", "group"), ("reading", "time_format"), ("reading", "names"), ("inputs", "settings")]


@pytest.mark.parametrize("kind", ["modes", "online modes", "rules", "mean", "period"])
def test_a_field_that_is_missing_is_refused(kind, states, tmp_path):
    count = 0
    for way in places(states[kind]):
        if isinstance(way[-1], str) and way[0] != "units" and way not in NEW:
            count += 1
            state = changed(states[kind], way, lambda holder, key: holder.pop(key))
            assert attempt(tmp_path / "model", state, on_disk=False) is None, way
    assert count > 25
    state = changed(states[kind], ("more",), lambda holder, key: holder.__setitem__(key, 1))
    assert attempt(tmp_path / "model", state) is None


WRONG = [None, True, -1, 3, 10**30, 1.5, float("nan"), float("inf"), -1.0, "", "strange", "a >", [], [1], ["x"],
         ["x", "x"], {}, {"x": 1}, np.zeros(3), np.zeros((0, 2)), [{}], [[]],
         {"minimum": np.zeros(1), "maximum": np.zeros(1)}]  # fmt: skip


@pytest.mark.parametrize("kind", ["modes", "online modes", "rules", "mean", "period"])
def test_a_field_with_something_else_in_it_is_refused_or_harmless(kind, states, tmp_path):
    rng, taken = np.random.default_rng(0), []
    every = [(way, wrong) for way in places(states[kind]) for wrong in WRONG]
    for index in rng.permutation(len(every))[:250]:
        way, wrong = every[index]
        state = changed(states[kind], way, lambda holder, key, wrong=wrong: holder.__setitem__(key, wrong))
        model = attempt(tmp_path / "model", state, on_disk=False)
        if model is not None:
            taken.append(way)
            usable(model)
    assert len(taken) < 100


PARTS = ("parts", 0)
FORGED: dict[str, tuple[tuple[Any, ...], Any]] = {
    "no parts": (("parts",), []),
    "a mode that is never told": ((*PARTS, "mode"), "strange"),
    "usual of nothing": ((*PARTS, "usual"), 0.0),
    "negative usual": ((*PARTS, "usual"), -1.0),
    "a detector that was not fitted": ((*PARTS, "detector", "fitted"), None),
    "a class of its own": ((*PARTS, "detector", "class"), "os.system"),
    "a parameter too many": ((*PARTS, "detector", "parameters", "more"), 1),
    "a zone from a file": (("reading", "timezone"), "../../etc/passwd"),
    "strict as text": (("reading", "strict"), "yes"),
    "columns as text": (("reading", "columns"), "oil"),
    "exclude of numbers": (("reading", "exclude"), [1]),
    "a time of numbers": (("reading", "time"), [1, 2]),
    "max_bytes as text": (("reading", "max_bytes"), "9"),
    "an input twice": (("inputs", "as_they_are"), ["oil"] * 6),
    "an input too few": (("inputs", "as_they_are"), ["oil"]),
    "an input of a number": (("inputs", "as_they_are", 0), 3),
    "units of another": (("units", "strange"), "m"),
    "a unit that is a number": (("units", "oil"), 3),
    "a rule that cannot be read": (("modes", "rules"), [{"name": "on", "rule": "oil >"}]),
    "a rule as long as a book": (("modes", "rules"), [{"name": "on", "rule": "oil > 1" + " or oil > 1" * 10_000}]),
    "a rule of parentheses": (("modes", "rules"), [{"name": "on", "rule": "(" * 900 + "oil > 1" + ")" * 900}]),
    "settling for ever": (("modes", "settle_seconds"), 1e300),
    "settling backwards": (("modes", "settle_rows"), -3),
    "settling for NaN": (("modes", "settle_seconds"), float("nan")),
    "settling twice over": (
        ("modes",), {"column": None, "rules": [], "skip": [], "settle_rows": 1, "settle_seconds": 1.0}
    ),
    "a scaling too many": ((*PARTS, "scaled_before"), {"minimum": np.zeros(21), "maximum": np.ones(21)}),
    "settings of lists": (("settings", "rows"), [1]),
    "nothing to compare with": ((*PARTS, "reference"), None),
    "no row to compare with": ((*PARTS, "reference"), np.zeros((0, 21))),
    "rows of other inputs": ((*PARTS, "reference"), np.zeros((5, 3))),
    "infinite rows": ((*PARTS, "reference"), np.full((5, 21), np.inf)),
    "too many rows": ((*PARTS, "reference"), np.zeros((2001, 21))),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_models_are_refused(name, states, tmp_path):
    way, wrong = FORGED[name]
    state = changed(states["mean"], way, lambda holder, key: holder.__setitem__(key, wrong))
    assert attempt(tmp_path / "model", state) is None


ENCODED = ("inputs", "encoded", 0)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("categories", ["g0"] * 12),
        ("categories", []),
        ("counts", [1]),
        ("counts", [0] * 12),
        ("counts", [10**400 // 10**80] * 12),
        ("counts", [1.5] * 12),
        ("counts", [True] * 12),
        ("method", "magic"),
        ("column", 3),
    ],
)
def test_forged_encodings_are_refused(field, wrong, states, tmp_path):
    state = states["mean"]
    assert state["inputs"]["encoded"][-1]["method"] == "rarity"
    way = ("inputs", "encoded", len(state["inputs"]["encoded"]) - 1, field)
    assert attempt(tmp_path / "model", changed(state, way, lambda holder, key: holder.__setitem__(key, wrong))) is None


def test_rows_to_compare_with_are_no_part_of_a_detector_that_rebuilds(states, tmp_path):
    rows = np.zeros((5, len(states["modes"]["units"])))
    state = changed(states["modes"], (*PARTS, "reference"), lambda holder, key: holder.__setitem__(key, rows))
    assert attempt(tmp_path / "model", state) is None


def test_two_parts_of_a_mode_and_two_ways_to_tell_one_are_refused(states, tmp_path):
    def twice(holder, key):
        holder[key] = [holder[key][0], holder[key][0]]

    assert attempt(tmp_path / "model", changed(states["modes"], ("parts",), twice)) is None
    rules = states["rules"]["modes"]["rules"]
    both = changed(states["modes"], ("modes", "rules"), lambda holder, key: holder.__setitem__(key, rules))
    assert attempt(tmp_path / "model", both) is None


def test_parts_of_modes_that_no_row_has_are_refused(states, tmp_path):
    for kind, names in {
        "modes": ["unknown", "changing"],
        "rules": ["strange", "it's", "all"],
        "mean": ["other"],
    }.items():
        for name in names:
            state = changed(
                states[kind], (*PARTS, "mode"), lambda holder, key, name=name: holder.__setitem__(key, name)
            )
            assert attempt(tmp_path / "model", state) is None
    for name in ("other", "it's", "x" * 100):
        way = ("modes", "rules", 0, "name")
        state = changed(states["rules"], way, lambda holder, key, name=name: holder.__setitem__(key, name))
        assert attempt(tmp_path / "model", state) is None
    way = (*PARTS, "scaled_before")
    state = changed(states["online modes"], way, lambda holder, key: holder.__setitem__(key, None))
    assert attempt(tmp_path / "model", state) is None


def test_a_stream_that_is_still_warming_up_is_no_model(states, tmp_path):
    n = len(states["online modes"]["units"])
    detector = penstock.OnlineNSNMF(n_components=2, warmup=50).partial_fit(np.random.default_rng(0).random((9, n)))
    packed = state_of(detector)
    state = changed(states["online modes"], (*PARTS, "detector"), lambda holder, key: holder.__setitem__(key, packed))
    assert attempt(tmp_path / "model", state) is None
