"""States in files: all of it comes back, or the file is refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open
from safetensors.numpy import load_file

from penstock.storage import (
    FORMAT_VERSION,
    MAX_HEADER,
    CorruptFileError,
    NewerVersionError,
    Record,
    StorageError,
    WrongKindError,
    read_state,
    write_state,
)
from penstock.storage import states as _versions
from penstock.storage.states import DTYPES

STATE = {
    "name": 'é\n"quoted" \\ \ud800 [[[{',
    "none": None,
    "flags": [True, False],
    "numbers": [0, -3, 2**200, 1.5, -0.0, 5e-324, float("inf"), float("-inf"), float("nan")],
    "$array": {"$": 1, "$$float": 2},
    "": {"": {}, "/": [], "a/b": np.arange(3)},
    "__metadata__": np.float32([1.5, np.nan]),
    "nested": [{"x": np.array(7, dtype=np.uint8)}, [np.zeros((0, 3)), np.array([[True], [False]])]],
}


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit, types included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return struct.pack(">d", a) == struct.pack(">d", b) if isinstance(a, float) else bool(a == b)


def round_trip(folder: Path, state: dict[str, Any]) -> dict[str, Any]:
    write_state(folder / "state", "test", state)
    kind, found = read_state(folder / "state", "test")
    assert kind == "test"
    return found


def test_a_state_comes_back(tmp_path: Path) -> None:
    found = round_trip(tmp_path, STATE)
    assert same(found, STATE)
    before = (tmp_path / "state").read_bytes()
    write_state(tmp_path / "again", "test", found)
    assert (tmp_path / "again").read_bytes() == before


arrays = st.sampled_from(list(DTYPES)).flatmap(
    lambda dtype: hnp.arrays(np.dtype(dtype), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
)
text = st.text(st.characters(), max_size=5)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | text | arrays
nested = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3))


@given(st.dictionaries(text | st.sampled_from(["$array", "$float", "$$", "__metadata__", "/"]), nested, max_size=4))
@settings(max_examples=80, deadline=None)
def test_any_state_comes_back(tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]) -> None:
    assert same(round_trip(tmp_path_factory.getbasetemp(), state), state)


def test_odd_arrays(tmp_path: Path) -> None:
    table = np.arange(12.0).reshape(3, 4)
    odd = {"turned": table.T, "big": table.astype(">f8"), "reversed": table[::-1, ::2], "fixed": table.copy()}
    odd["fixed"].flags.writeable = False
    for name, found in round_trip(tmp_path, odd).items():
        np.testing.assert_array_equal(found, odd[name])
        assert found.dtype == np.float64
        assert found.flags.c_contiguous
        assert found.flags.writeable
        assert found.flags.owndata


def test_the_library_reads_the_files(tmp_path: Path) -> None:
    write_state(tmp_path / "state", "test", STATE)
    tensors = load_file(tmp_path / "state")
    np.testing.assert_array_equal(tensors["//a%2Fb"], np.arange(3))
    assert tensors["/nested/0/x"] == 7
    assert len(tensors) == 5
    with safe_open(tmp_path / "state", "np") as opened:
        entry = json.loads(opened.metadata()["penstock"])
    assert (entry["kind"], entry["format"]) == ("test", FORMAT_VERSION)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1j, r"state\['model'\]\['x'\]\[0\] is of type complex"),
        (print, "builtin_function_or_method"),
        (object(), "object"),
        (b"bytes", "bytes"),
        ((1, 2), "tuple"),
        (np.int64(3), "int64"),
        (np.array([None]), r"state\['model'\]\['x'\]\[0\] is an array of dtype object"),
        (np.array(["a"]), "array of dtype <U1"),
        (np.array([1j]), "array of dtype complex128"),
        (np.array([1], dtype=np.float16), "array of dtype float16"),
        (np.array([0], dtype="M8[s]"), "array of dtype datetime64"),
        (np.ma.masked_array([1.0], [True]), "MaskedArray"),
        ({3: 1}, r"state\['model'\]\['x'\]\[0\] has the key 3 of type int"),
    ],
)
def test_what_cannot_be_stored_is_named(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        write_state(tmp_path / "state", "test", {"model": {"x": [value]}})
    assert list(tmp_path.iterdir()) == []


def test_what_is_too_much_is_refused_when_writing(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"has 7 values and takes 4,.* bytes; 100,000 and 4,194,304 .* into arrays"):
        write_state(tmp_path / "state", "test", {"x": "long" * (MAX_HEADER // 4)})
    with pytest.raises(StorageError, match=r"has 100,0.* values"):
        write_state(tmp_path / "state", "test", {"x": [0] * 100_000})
    with pytest.raises(StorageError, match=r"has 1.* values"):
        write_state(tmp_path / "state", "test", {"x": [np.zeros(0)] * 20_000})
    with pytest.raises(ValueError, match="more than 3000 bits"):
        write_state(tmp_path / "state", "test", {"x": 2**3000})
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="more than 64 levels deep"):
        write_state(tmp_path / "state", "test", {"x": loop})
    with pytest.raises(TypeError, match="must be a dict"):
        write_state(tmp_path / "state", "test", [1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="kind must be a str"):
        write_state(tmp_path / "state", 3, {})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_what_is_just_allowed_can_be_read(tmp_path: Path) -> None:
    deepest: dict[str, Any] = {}
    for _ in range(62):
        deepest = {"x": deepest, "y": [float("nan")]}
    state = {"deep": deepest, "big": 2**3000 - 1, "long": [0.125] * 99_000, "text": "x" * 3_000_000}
    assert same(round_trip(tmp_path, state), state)


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    small = {"é": [1, 2.5, float("nan")], "x": np.arange(3.0), "y": np.array([True, False])}
    write_state(tmp_path / "sound", "test", small)
    sound, path = (tmp_path / "sound").read_bytes(), tmp_path / "changed"

    def refused(content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(StorageError):
            read_state(path)

    for at in range(len(sound)):
        for change in (1, 0x20, 0xFF):  # the second makes a capital letter of a small one
            refused(sound[:at] + bytes([sound[at] ^ change]) + sound[at + 1 :])
        refused(sound[:at])
        refused(sound[:at] + sound[at + 1 :])
        refused(sound[:at] + b" " + sound[at:])
    for more in (b"\0", b" ", b"{}", bytes(1000), sound):
        refused(sound + more)
    path.write_bytes(sound)
    assert same(read_state(path)[1], small)


def test_kinds(tmp_path: Path) -> None:
    write_state(tmp_path / "state", "stream", {})
    assert read_state(tmp_path / "state") == ("stream", {})
    with pytest.raises(WrongKindError, match=r"Cannot read .*state: it holds a 'stream', not a 'detector'"):
        read_state(tmp_path / "state", "detector")
    with pytest.raises(FileNotFoundError):
        read_state(tmp_path / "nothing")


def test_newer_files_ask_for_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(_versions, "FORMAT_VERSION", 2)
        write_state(tmp_path / "new", "test", {"x": np.arange(9.0)})
    with pytest.raises(NewerVersionError, match=r"newer penstock \(format 2\); this one reads up to format 1. Update"):
        read_state(tmp_path / "new")
    content = bytearray((tmp_path / "new").read_bytes())
    content[-1] ^= 1
    (tmp_path / "new").write_bytes(content)
    with pytest.raises(CorruptFileError, match="damaged"):
        read_state(tmp_path / "new")


def test_older_files_are_brought_up_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_state(tmp_path / "old", "test", {"a": 1})
    monkeypatch.setattr(_versions, "FORMAT_VERSION", 3)
    steps = {1: lambda kind, state: state | {"b": kind}, 2: lambda kind, state: state | {"c": len(state)}}
    monkeypatch.setattr(_versions, "UPGRADES", steps)
    assert read_state(tmp_path / "old") == ("test", {"a": 1, "b": "test", "c": 2})
    del steps[2]
    with pytest.raises(StorageError, match=r"Cannot read .*old: it has format 2, which .* no longer reads"):
        read_state(tmp_path / "old")


def test_records_name_what_does_not_fit() -> None:
    content = {"n": 3, "t": True, "f": 1.5, "s": "a", "i": float("inf"), "x": np.array([1.0, -2.0, np.nan]), "p": {}}
    record = Record(content, "fitted")
    assert (record.whole("n", least=3, most=3), record.flag("t")) == (3, True)
    assert (record.number("f"), record.text("s")) == (1.5, "a")
    assert record.number("i", infinite=True) == np.inf
    assert len(record.array("x", np.float64, (3,), least=-2.0, missing=True)) == 3
    wrong = [
        (lambda: record.whole("n", least=4), r"fitted\['n'\] should be a whole number ≥ 4, but is 3"),
        (lambda: record.whole("n", least=0, most=2), "≥ 0 and ≤ 2"),
        (lambda: record.whole("t", least=0), "whole number"),
        (lambda: record.whole("f", least=0), "whole number"),
        (lambda: record.number("n"), "a finite number, but is 3"),
        (lambda: record.number("i"), "a finite number, but is inf"),
        (lambda: record.number("f", least=2.0), "a finite number ≥ 2, but is 1.5"),
        (lambda: record.flag("n"), "True or False"),
        (lambda: record.text("n"), "text"),
        (lambda: record.array("x", np.float64, (3,)), r"fitted\['x'\] should hold finite numbers only"),
        (lambda: record.array("x", np.float64, (3,), least=-1.0, most=9.0, missing=True), "≥ -1 ≤ 9 only"),
        (lambda: record.array("x", np.float64, (4,)), r"float64 of shape \(4\), but is float64 of shape \(3,\)"),
        (lambda: record.array("x", np.float64, (None, None)), r"shape \(any, any\)"),
        (lambda: record.array("x", np.int64, (3,)), "int64"),
        (lambda: record.array("n", np.int64, ()), "but is 3"),
        (lambda: record.value("z"), "fitted lacks the field 'z'"),
        (lambda: record.part("n"), r"fitted\['n'\] should be a dict"),
        (lambda: record.only("n"), "too many or missing"),
        (lambda: record.part("p").text("q"), r"fitted\['p'\] lacks"),
    ]
    for read, message in wrong:
        with pytest.raises(StorageError, match=message):
            read()
