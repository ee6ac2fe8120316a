"""States in files: all of it comes back, or the file is refused; a file is the old one or the new one."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hostile_files
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open
from safetensors.numpy import load_file
from strategies import examples

from penstock.storage import (
    FORMAT_VERSION,
    MAX_HEADER,
    Record,
    StorageError,
    pack_fields,
    read_fields,
    read_state,
    remove_leftovers,
    replace_file,
    states,
    write_state,
)

STATE = {
    "name": 'é\n"quoted" \\ \ud800 [[[{',
    "none": None,
    "flags": [True, False],
    "numbers": [0, -3, 2**200, 1.5, -0.0, 5e-324, float("inf"), float("-inf"), float("nan")],
    "$array": {"$": 1, "$$float": 2},
    "": {"": {}, "/": [], "a/b": np.arange(3)},
    "__metadata__": np.float32([1.5, np.nan]),
    "turned": np.arange(12.0).reshape(3, 4).T[::-1, ::2],
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
    assert found["turned"].flags.c_contiguous
    assert found["turned"].flags.writeable
    assert round_trip(tmp_path, {"big": np.arange(3.0).astype(">f8")})["big"].dtype == np.float64


arrays = st.sampled_from(list(states.DTYPES)).flatmap(
    lambda dtype: hnp.arrays(np.dtype(dtype), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
)
text = st.text(st.characters(), max_size=5)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | text | arrays
nested = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3))


@given(st.dictionaries(text | st.sampled_from(["$array", "$float", "$$", "__metadata__", "/"]), nested, max_size=4))
@examples(80)
def test_any_state_comes_back(tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]) -> None:
    assert same(round_trip(tmp_path_factory.getbasetemp(), state), state)


def test_the_library_reads_the_files(tmp_path: Path) -> None:
    write_state(tmp_path / "state", "test", STATE)
    tensors = load_file(tmp_path / "state")
    np.testing.assert_array_equal(tensors["//a%2Fb"], np.arange(3))
    assert tensors["/nested/0/x"] == 7
    assert len(tensors) == 6
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
    with pytest.raises(StorageError, match=r"Cannot read .*state: it holds a 'stream', not a 'detector'"):
        read_state(tmp_path / "state", "detector")
    with pytest.raises(FileNotFoundError):
        read_state(tmp_path / "nothing")


def test_newer_files_ask_for_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(states, "FORMAT_VERSION", 2)
        write_state(tmp_path / "new", "test", {"x": np.arange(9.0)})
    with pytest.raises(StorageError, match=r"newer penstock \(format 2\); this one reads up to format 1. Update"):
        read_state(tmp_path / "new")
    content = bytearray((tmp_path / "new").read_bytes())
    content[-1] ^= 1
    (tmp_path / "new").write_bytes(content)
    with pytest.raises(StorageError, match="damaged"):
        read_state(tmp_path / "new")


class _Stop(BaseException):
    pass


@pytest.mark.parametrize("trouble", [OSError(28, "No space left on device"), KeyboardInterrupt(), _Stop()])
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_save_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: BaseException, moment: str
) -> None:
    write_state(tmp_path / "state", "test", {"a": 1})

    def fail(*_: Any) -> None:
        assert len(list(tmp_path.iterdir())) == 2
        raise trouble

    with monkeypatch.context() as patch:
        patch.setattr(os, moment, fail)
        with pytest.raises(type(trouble)):
            write_state(tmp_path / "state", "test", {"a": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert read_state(tmp_path / "state") == ("test", {"a": 1})


KILLED = """
import os, signal, sys
from penstock.storage import write_state
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_state(sys.argv[1], "test", {"a": 2})
"""


def test_what_a_killed_save_leaves_behind_can_be_removed(tmp_path: Path) -> None:
    write_state(tmp_path / "state", "test", {"a": 1})
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "state")], check=False)
    assert done.returncode == -signal.SIGKILL
    leftover = next(path for path in tmp_path.iterdir() if path.name != "state")
    assert leftover.name.startswith(".state.")
    assert leftover.suffix == ".tmp"
    assert read_state(tmp_path / "state") == ("test", {"a": 1})
    others = [tmp_path / name for name in (".notes.tmp", "a.1-00000000.tmp", f".b.{os.getpid()}-00000000.tmp")]
    for path in others:
        path.touch()
    assert remove_leftovers(tmp_path) == [leftover]
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "state", *others])
    a_week_ago = time.time() - 7 * 24 * 3600
    os.utime(others[2], (a_week_ago, a_week_ago))
    assert remove_leftovers(tmp_path) == [others[2]]


def test_a_folder_that_cannot_be_synced_is_no_error_but_a_broken_disk_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync
    for number in (errno.EINVAL, errno.EIO):

        def fsync(descriptor: int, number: int = number) -> None:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise OSError(number, "trouble")
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        if number == errno.EINVAL:
            write_state(tmp_path / "state", "test", {"a": 1})
            continue
        with pytest.raises(OSError, match="trouble"):
            write_state(tmp_path / "state", "test", {"a": 2})


def test_links_stay_links_and_permissions_are_kept(tmp_path: Path) -> None:
    write_state(tmp_path / "state", "test", {"a": 1})
    (tmp_path / "state").chmod(0o640)
    (tmp_path / "link").symlink_to("state")
    write_state(tmp_path / "link", "test", {"a": 2})
    assert (tmp_path / "link").is_symlink()
    assert read_state(tmp_path / "state") == ("test", {"a": 2})
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_states_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Models and snapshots hold readings; reports are written for others."""
    write_state(tmp_path / "state", "test", {"a": 1})
    replace_file(tmp_path / "report", [memoryview(b"for all")])
    (tmp_path / "plain").touch()
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o600
    assert (tmp_path / "report").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_only_files_are_replaced(tmp_path: Path) -> None:
    for path in (tmp_path, Path(os.devnull)):
        with pytest.raises(StorageError, match=r"Cannot write .* is not a file. Choose another path"):
            write_state(path, "test", {})
    with pytest.raises(FileNotFoundError):
        write_state(tmp_path / "nowhere" / "state", "test", {})
    long = tmp_path / ("x" * 250)
    write_state(long, "test", {})
    assert [path.name for path in tmp_path.iterdir()] == [long.name]


REFUSALS = """
import json, os, sys, time
from penstock.storage import StorageError, read_state

def score(path):
    start = time.process_time()
    try:
        read_state(path)
        error = ""
    except StorageError as caught:
        error = f"{type(caught).__name__}: {caught}"
    seconds = time.process_time() - start
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    heavy = [name for name in ("sklearn", "scipy", "numba", "pandas") if name in sys.modules]
    print(json.dumps([error, seconds, peak / 1024, heavy]), flush=True)

for path in sys.argv[1:]:
    if os.fork() == 0:
        score(path)
        os._exit(0)
    assert os.wait()[1] == 0, path
"""
HOSTILE = [*hostile_files.CONTENTS, *hostile_files.PLACES]
measures_memory = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to measure memory")


def score(folder: Path, *paths: Path) -> list[tuple[str, float, float, list[str]]]:
    """For each path, read in a process that has imported nothing but `penstock.storage`: error, seconds, peak memory.

    Each is read in a fork of its own. Seconds are the processor's, so that other programs do not matter; who waits for
    a pipe meets the timeout. Not ru_maxrss: that counts the memory of the parent process.
    """
    command = [sys.executable, "-c", REFUSALS, *map(str, paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=folder, timeout=300, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("hostile")
    for i, name in enumerate(HOSTILE):
        hostile_files.make(name, folder / str(i))
    verdicts = score(folder, *(folder / str(i) for i in range(len(HOSTILE))))
    for i in range(len(HOSTILE)):  # here as well, where other things are imported
        with pytest.raises(StorageError):
            read_state(folder / str(i))
    assert not (folder / "executed").exists()
    return dict(zip(HOSTILE, verdicts, strict=True))


@measures_memory
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_at_once(verdicts: dict[str, Any], name: str) -> None:
    error, seconds, megabytes, heavy = verdicts[name]
    assert "Error: Cannot read /" in error
    assert len(error) < 600
    assert seconds < 1.0
    assert megabytes < 256
    assert heavy == []


@measures_memory
def test_reading_takes_little_more_memory_than_the_arrays(tmp_path: Path) -> None:
    write_state(tmp_path / "small", "test", {})
    write_state(tmp_path / "large", "test", {"x": np.zeros(10_000_000)})
    small, large = score(tmp_path, tmp_path / "small", tmp_path / "large")
    assert small[0] == large[0] == ""
    assert large[2] - small[2] < 1.2 * 80


def test_a_forged_file_is_read_if_it_is_sound(tmp_path: Path) -> None:
    """Else the hostile ones might be refused for a reason of their own."""
    (tmp_path / "file").write_bytes(hostile_files.one_array(np.float64([3, 4]).tobytes()))
    assert read_state(tmp_path / "file")[1]["x"].tolist() == [3.0, 4.0]
    (tmp_path / "file").write_bytes(hostile_files.two_arrays([16, 32], [0, 16], 32))
    assert set(read_state(tmp_path / "file")[1]) == {"x", "y"}


FIELDS = {
    "rows": "n p nan >=0",
    "reach": "n >0",
    "copy_of": "n int >=0 <n",
    "kept": "n bool",
    "share": "float >=0 <=1",
    "limit": "float inf",
    "count": "int >=1 <=9",
    "name": str,
    "usual": ("?", {"center": float}),
}


def a_record() -> dict[str, Any]:
    return {
        "rows": np.array([[0.0, np.nan], [1.0, 2.0]]), "reach": np.ones(2), "copy_of": np.array([0, 1]),
        "kept": np.array([True, False]), "share": 0.5, "limit": float("inf"), "count": 9, "name": "a",
        "usual": {"center": -1.0},
    }  # fmt: skip


def test_a_table_of_fields_reads_a_record() -> None:
    lengths = {"p": 2}
    found = read_fields(Record(a_record(), "model"), FIELDS, lengths)
    assert lengths == {"p": 2, "n": 2}
    assert list(found) == list(FIELDS)
    assert found["usual"] == {"center": -1.0}
    assert read_fields(Record(a_record() | {"usual": None}, "model"), FIELDS)["usual"] is None
    thing = SimpleNamespace(**found)
    packed = pack_fields(thing, {name: kind for name, kind in FIELDS.items() if name != "usual"})
    assert packed["copy_of"].dtype == np.int64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"more": 1}, "too many or missing"),
        ({"rows": np.ones((2, 3))}, r"rows.* float64 of shape \(any, 2\)"),
        ({"rows": -np.ones((2, 2))}, "rows.* ≥ 0 only"),
        ({"reach": np.ones(3)}, r"reach.* shape \(2\)"),
        ({"reach": np.array([0.0, 1.0])}, "reach.* > 0 only"),
        ({"reach": np.array([np.nan, 1.0])}, "reach.* finite numbers"),
        ({"copy_of": np.array([0, 2])}, "copy_of.* ≤ 1 only"),
        ({"copy_of": np.array([0.0, 1.0])}, "copy_of.* int64"),
        ({"kept": np.array([1, 0])}, "kept.* bool"),
        ({"share": 1.5}, "share.* ≤ 1"),
        ({"share": float("inf")}, "share.* finite"),
        ({"limit": float("nan")}, "limit"),
        ({"count": 0}, "count.* ≥ 1 and ≤ 9"),
        ({"count": 3.0}, "count.* whole number"),
        ({"name": None}, "name.* text"),
        ({"usual": 3}, "usual.* should be a dict"),
        ({"usual": {"center": float("inf")}}, "center.* finite"),
        ({"usual": {}}, "too many or missing"),
    ],
)
def test_a_table_of_fields_refuses_what_does_not_fit(change: dict[str, Any], message: str) -> None:
    with pytest.raises(StorageError, match=message):
        read_fields(Record(a_record() | change, "model"), FIELDS, {"p": 2})
