"""Snapshots: written when due, read newest first, and never used when they are not sound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.io.snapshots import SnapshotError, Snapshots, differences
from penstock.storage import write_state


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def snapshots(tmp_path: Path) -> Iterator[Snapshots]:
    opened = Snapshots(tmp_path / "state", every=100, seconds=5.0, clock=Clock())
    yield opened
    opened.close()


def samples_of(state: dict[str, Any]) -> int:
    if state["samples"] < 0:
        raise SnapshotError("it was made with other settings.")
    return int(state["samples"])


def write(snapshots: Snapshots, *samples: int) -> list[Path]:
    for each in samples:
        snapshots.write({"samples": each}, each)
    return snapshots.files()


def newest(snapshots: Snapshots) -> tuple[int | None, list[str]]:
    reports: list[str] = []
    return snapshots.newest(samples_of, reports.append), reports


def test_the_last_three_are_kept_in_order(snapshots: Snapshots, tmp_path: Path) -> None:
    assert newest(snapshots) == (None, [])
    files = write(snapshots, 1, 2, 3, 4, 5)
    assert [path.name for path in files] == [f"snapshot-00000{number}.penstock" for number in (5, 4, 3)]
    assert newest(snapshots) == (5, [])
    write_state(tmp_path / "state" / "snapshot-999999.penstock", "snapshot", {"samples": 1})
    assert write(snapshots, 2)[0].name == "snapshot-1000000.penstock"
    assert newest(snapshots) == (2, [])


def test_due_by_samples_and_by_time(snapshots: Snapshots) -> None:
    clock = snapshots._clock
    assert isinstance(clock, Clock)
    assert (snapshots.due(99), snapshots.due(100), snapshots.room(30)) == (False, True, 70)
    clock.now = 5.0
    assert snapshots.due(1)
    assert not snapshots.due(0)  # nothing new
    write(snapshots, 120)
    assert (snapshots.due(219), snapshots.due(220), snapshots.room(120)) == (False, True, 100)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def make_newer(path: Path) -> None:
    from penstock.storage import states as _versions

    version = _versions.FORMAT_VERSION
    try:
        _versions.FORMAT_VERSION = version + 1
        write_state(path, "snapshot", {"samples": 9})
    finally:
        _versions.FORMAT_VERSION = version


def of_another_kind(path: Path) -> None:
    write_state(path, "detector", {"samples": 9})


def of_other_settings(path: Path) -> None:
    write_state(path, "snapshot", {"samples": -1})


SPOILERS = [cut_short, flip_a_bit, empty, make_newer, of_another_kind, of_other_settings]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_bad_one_is_reported_and_the_one_before_used(snapshots: Snapshots, spoil: Any) -> None:
    last, *_ = write(snapshots, 1, 2, 3)
    spoil(last)
    found, reports = newest(snapshots)
    assert found == 2
    assert len(reports) == 1
    assert reports[0].startswith(f"{last} is passed over: ")


@pytest.mark.parametrize("spoil", SPOILERS)
def test_if_none_is_good_it_is_an_error(snapshots: Snapshots, spoil: Any) -> None:
    for path in write(snapshots, 1, 2, 3):
        spoil(path)
    with pytest.raises(SnapshotError, match=r"No snapshot in .* can be used") as error:
        newest(snapshots)
    if spoil is of_other_settings:  # the same problem is told once
        assert str(error.value).count("it was made with other settings") == 1


def test_one_watch_at_a_time(snapshots: Snapshots, tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="Another penstock watch is using --state"):
        Snapshots(tmp_path / "state")
    snapshots.write({"samples": 1}, 1)


def test_leftovers_of_a_kill_are_removed(tmp_path: Path) -> None:
    leftover = tmp_path / ".snapshot-000001.penstock.999999999-0123abcd.tmp"
    leftover.write_bytes(b"half")
    Snapshots(tmp_path).close()
    assert not leftover.exists()


def test_a_folder_that_cannot_be_written_to_is_named(
    snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("penstock.io.snapshots.write_state", full)
    with pytest.raises(SnapshotError, match=r"cannot be written to .*state: No space left on device"):
        snapshots.write({}, 1)


def test_differences_are_named() -> None:
    assert differences({"a": 1, "b": None}, {"a": 1, "b": None}) == ""
    assert (
        differences({"a": 1, "b": "x"}, {"a": 2.5, "c": 3})
        == "a was 1, is 2.5; b was 'x', is not set; c was not set, is 3"
    )
