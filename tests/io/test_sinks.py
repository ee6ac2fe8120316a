"""Verdicts as lines of JSON, and the file they go to."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock._types import StreamScores
from penstock.io.sinks import JsonLinesSink, OutputMark, continue_sink, format_verdicts, open_sink
from penstock.storage import StorageError

any_float = st.floats() | st.just(math.nan)


def verdicts(*scores: float) -> StreamScores:
    n = len(scores)
    return StreamScores(
        np.array(scores), np.full(n, 0.5), np.zeros(n, np.bool_), np.zeros((n, 1), np.intp), np.ones((n, 1))
    )


def a_line(row: int, score: float) -> str:
    return f'{{"row": {row}, "score": {score}, "threshold": 0.5, "flag": false, "variables": {{"a": 1.0}}}}\n'


def mark_of(text: str) -> OutputMark:
    return {"length": len(text), "tail": hashlib.sha256(text[-4096:].encode()).hexdigest()}


@given(
    st.lists(st.tuples(st.text(), any_float, any_float, st.booleans(), any_float, any_float), min_size=1, max_size=8),
    st.text(),
    st.booleans(),
)
def test_lines_say_what_json_dumps_would(rows: list[tuple[object, ...]], name: str, with_time: bool) -> None:
    times, scores, thresholds, flags, first, second = zip(*rows, strict=True)
    found = StreamScores(
        np.array(scores),
        np.array(thresholds),
        np.array(flags),
        np.tile(np.array([[1, -1]]), (len(rows), 1)),
        np.array([first, second]).T,
    )
    names = [json.dumps("unused"), json.dumps(name)]
    lines = format_verdicts(5, list(times) if with_time else None, found, names).decode("ascii").splitlines()
    for number, line in enumerate(lines):
        expected = {
            "row": 5 + number,
            **({"time": times[number]} if with_time else {}),
            "score": known(scores[number]),
            "threshold": known(thresholds[number]),
            "flag": flags[number],
            "variables": {name: known(first[number])},
        }
        assert line == json.dumps(expected)


def test_no_variables_and_other_times() -> None:
    found = StreamScores(np.array([1.0]), np.array([2.0]), np.array([True]), *[np.empty((1, 0), np.intp)] * 2)
    line = format_verdicts(1, [17], found, [])
    assert json.loads(line) == {"row": 1, "time": 17, "score": 1.0, "threshold": 2.0, "flag": True, "variables": {}}


def known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def test_a_file_is_written_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = open_sink(path)
    sink.name_variables(["a"])
    sink.write(1, None, verdicts(0.25, 0.75))
    assert path.read_text() == a_line(1, 0.25) + a_line(2, 0.75)
    assert sink.length == path.stat().st_size
    sink.sync()
    sink.close()


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("precious")
    for opened in (lambda: open_sink(path), lambda: continue_sink(path, None, 1)):  # new, and what went to a pipe
        with pytest.raises(StorageError, match=r"holds something already.*--overwrite"):
            opened()
    assert path.read_text() == "precious"
    sink = open_sink(path, overwrite=True)
    assert path.read_text() == ""
    sink.close()


def test_two_watchers_cannot_share_an_output(tmp_path: Path) -> None:
    sink = open_sink(tmp_path / "out.jsonl")
    with pytest.raises(StorageError, match="Another penstock watch"):
        open_sink(tmp_path / "out.jsonl")
    sink.close()
    open_sink(tmp_path / "out.jsonl").close()


def test_continuing_cuts_back_to_the_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(a_line(1, 0.25) + a_line(2, 0.5) + '{"row": 3, "sc')
    sink, kept = continue_sink(path, mark_of(a_line(1, 0.25)), 2)
    assert (path.read_text(), kept) == (a_line(1, 0.25), 0)
    sink.name_variables(["a"])
    sink.write(2, None, verdicts(0.75))
    assert path.read_text() == a_line(1, 0.25) + a_line(2, 0.75)
    sink.close()


def test_continuing_can_keep_what_was_said(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(a_line(1, 0.25) + a_line(2, 0.5) + '{"row": 3, "sc')
    sink, kept = continue_sink(path, mark_of(a_line(1, 0.25)), 2, keep=True)
    assert (path.read_text(), kept) == (a_line(1, 0.25) + a_line(2, 0.5), 1)
    assert sink.mark() == mark_of(path.read_text())
    sink.close()


def test_another_output_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("short")
    with pytest.raises(StorageError, match="has 5 bytes, fewer than the 100"):
        continue_sink(path, mark_of("x" * 100), 2)
    assert path.read_text() == "short"
    open_sink(path, overwrite=True).close()  # and the lock is free
    path.unlink()
    with pytest.raises(StorageError, match=r"out\.jsonl is missing"):
        continue_sink(path, mark_of(a_line(1, 0.25)), 2)
    assert not path.exists()


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("said", ["", a_line(1, 0.25), a_line(1, 0.25) * 100])
def test_a_longer_file_that_is_not_ours_is_not_cut(tmp_path: Path, said: str, keep: bool) -> None:
    path = tmp_path / "precious"
    path.write_text("".join(f"{number}\n" for number in range(10_000)))
    before = path.read_bytes()
    with pytest.raises(StorageError, match="precious is not the output that belongs to this --state"):
        continue_sink(path, mark_of(said), 2, keep=keep)
    assert path.read_bytes() == before
    open_sink(path, overwrite=True).close()  # and the lock is free


@pytest.mark.parametrize("more", ["not json\n", "17\n", a_line(3, 0.5), a_line(2, 0.5) + a_line(2, 0.5)])
def test_only_the_verdicts_that_are_next_are_kept(tmp_path: Path, more: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(a_line(1, 0.25) + more)
    with pytest.raises(StorageError, match="is expected and is not there"):
        continue_sink(path, mark_of(a_line(1, 0.25)), 2, keep=True)
    assert path.read_text() == a_line(1, 0.25) + more


@pytest.mark.parametrize("more", ["", '{"ro', a_line(1, 0.25), "\0" * 50])
def test_an_output_that_was_empty_is_continued(tmp_path: Path, more: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(more)
    continue_sink(path, mark_of(""), 1)[0].close()
    assert path.read_text() == ""


def test_marks_hold_the_end_of_what_was_written_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = open_sink(path)
    sink.name_variables(["a"])
    for row in range(1, 100):
        sink.write(row, None, verdicts(0.5))
        assert sink.mark() == mark_of(path.read_text())
    sink.close()


def test_a_pipe_that_does_not_wait_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    sink = JsonLinesSink(Path(f"/dev/fd/{writing}"))
    os.set_blocking(sink._descriptor, False)
    sink.name_variables(["a"])
    read = bytearray()

    def slow_reader() -> None:
        while chunk := os.read(reading, 1 << 12):
            read.extend(chunk)

    thread = threading.Thread(target=slow_reader)
    timer = threading.Timer(0.2, thread.start)
    timer.start()
    try:
        sink.write(1, None, verdicts(*[0.5] * 5000))
    finally:  # the reader ends when no process can write
        sink.close()
        os.close(writing)
        timer.join()
        thread.join()
        os.close(reading)
    assert read.count(b"\n") == 5000


def test_a_closed_standard_output_is_an_output_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(StorageError, match="Standard output is closed"):
        open_sink(None)


def test_devices_are_written_to_and_never_cut(tmp_path: Path) -> None:
    first, second = open_sink(Path(os.devnull)), open_sink(Path(os.devnull))  # no lock either
    first.write(1, None, StreamScores(*([np.empty(0)] * 3), np.empty((0, 1), np.intp), np.empty((0, 1))))
    assert first.length is None
    first.sync()
    first.close()
    second.close()
    sink, kept = continue_sink(Path(os.devnull), mark_of("x"), 2)
    assert (sink.length, kept) == (None, 0)
    sink.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_an_output_error() -> None:
    sink = open_sink(Path("/dev/full"))
    sink.name_variables(["a"])
    with pytest.raises(StorageError, match="The output cannot be written: No space left on device"):
        sink.write(1, None, verdicts(0.25))
    sink.close()


def test_standard_output_stays_open(capfd: pytest.CaptureFixture[str]) -> None:
    for sink in (open_sink(None), continue_sink(None, mark_of("x"), 2)[0], JsonLinesSink()):
        sink.name_variables(["a"])
        sink.write(1, None, verdicts(0.25))
        sink.close()
    assert capfd.readouterr().out == 3 * a_line(1, 0.25)
