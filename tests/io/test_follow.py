"""A file that grows and is rotated, as a feed and as rows. No other process runs: a feed that must wait says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.io import InputError, RowSource, TableOptions, open_feed
from penstock.io.feeds import FollowFeed

HEADER = "time,a\n"
Follower = Callable[[Path], RowSource]


@pytest.fixture
def follow() -> Iterator[Follower]:
    sources: list[RowSource] = []

    def open_source(path: Path) -> RowSource:
        sources.append(RowSource(open_feed(path, follow=True), TableOptions()))
        return sources[-1]

    yield open_source
    for source in sources:
        source.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "plant.csv"


def append(path: Path, *numbers: int, end: str = "\n") -> None:
    with path.open("a") as file:
        file.write("\n".join(f"t{number},{number}" for number in numbers) + end)


def begin(path: Path, *numbers: int) -> None:
    path.write_text(HEADER)
    append(path, *numbers)


def available(source: RowSource, patience: int = 8) -> list[int]:
    """The values that can be read until the source has had to wait a few times."""
    values: list[int] = []
    while patience:
        batch = source.next_batch(100)
        if batch is None:
            patience -= 1
            continue
        assert not batch.faults
        values += [int(value) for value in batch.values[:, 0]]
        patience = 8
    assert not source.ended
    return values


@pytest.fixture
def followed(log: Path, follow: Follower) -> RowSource:
    """A file of one row, which was read."""
    begin(log, 1)
    source = follow(log)
    assert available(source) == [1]
    return source


def test_new_lines_are_read_as_they_come(log: Path, follow: Follower) -> None:
    source = follow(log)
    assert available(source) == []  # not even the file is there
    begin(log, 1, 2)
    assert available(source) == [1, 2]
    append(log, 3)
    assert available(source) == [3]


def test_an_unfinished_line_waits_for_its_end(log: Path, follow: Follower) -> None:
    begin(log, 1)
    source = follow(log)
    append(log, 23, end="")
    assert available(source) == [1]
    assert not source.provisional
    append(log, 4)  # t23,23t4,4 would be malformed: the line goes on
    log.write_text(log.read_text().replace("23t4,4", "234"))
    assert available(source) == [234]


@pytest.mark.parametrize("repeat_header", [True, False])
def test_rotation_by_rename(log: Path, followed: RowSource, repeat_header: bool) -> None:
    log.rename(log.with_name("plant.csv.1"))
    append(log.with_name("plant.csv.1"), 2)  # the writer still has it open
    assert available(followed) == [2]
    log.touch()
    append(log.with_name("plant.csv.1"), 3)  # and does not use the new one yet
    assert available(followed) == [3]
    append(log.with_name("plant.csv.1"), 4, end="")
    log.write_text(HEADER if repeat_header else "")
    append(log, 5)
    assert available(followed) == [4, 5]


def test_two_rotations_between_two_looks(log: Path, followed: RowSource) -> None:
    append(log, 2)
    for number in (3, 4):
        if log.with_name("plant.csv.1").exists():
            log.with_name("plant.csv.1").rename(log.with_name("plant.csv.2"))
        log.rename(log.with_name("plant.csv.1"))
        begin(log, number)
        os.utime(log, (10**9 * number, 10**9 * number))
    os.utime(log.with_name("plant.csv.2"), (10**9, 10**9))
    assert available(followed) == [2, 3, 4]


def test_rotation_by_copy_and_truncation(log: Path, follow: Follower) -> None:
    begin(log, 1, 2, 3)
    source = follow(log)
    assert available(source) == [1, 2, 3]
    shutil.copy(log, log.with_name("plant.csv.1"))
    with log.open("r+") as file:
        file.truncate(0)
    assert available(source) == []
    append(log, 4)
    assert available(source) == [4]


def test_a_truncated_file_that_has_outgrown_its_old_size_is_noticed(log: Path, followed: RowSource) -> None:
    with log.open("r+") as file:
        file.truncate(0)
    append(log, *range(100, 120))
    assert available(followed) == list(range(100, 120))


def test_other_columns_after_a_rotation_are_an_error(log: Path, followed: RowSource) -> None:
    log.rename(log.with_name("plant.csv.1"))
    log.write_text("time,b\n1,2\n")
    with pytest.raises(InputError, match="The columns have changed"):
        available(followed)


def stopped_at(source: RowSource, *values: int) -> dict[str, object]:
    assert available(source) == list(values)
    return source.position()


def test_continuing_where_it_was(log: Path, follow: Follower) -> None:
    begin(log, 1, 2)
    position = stopped_at(follow(log), 1, 2)
    append(log, 3)
    source = follow(log)
    source.continue_from(position)
    assert available(source) == [3]


@pytest.mark.parametrize("rotated", ["plant.csv.1", "plant.csv-20260314", "old-plant"])
def test_continuing_after_a_rename(log: Path, follow: Follower, rotated: str) -> None:
    begin(log, 1)
    position = stopped_at(follow(log), 1)
    append(log, 2)
    log.rename(log.with_name(rotated))
    begin(log, 3)
    source = follow(log)
    source.continue_from(position)
    assert available(source) == [2, 3]
    append(log, 4)
    assert available(source) == [4]


def test_continuing_after_several_rotations_reads_all_of_them(log: Path, follow: Follower) -> None:
    begin(log.with_name("plant.csv.3"), -1)  # read long ago
    os.utime(log.with_name("plant.csv.3"), (10**8, 10**8))
    begin(log, 1)
    position = stopped_at(follow(log), 1)
    append(log, 2)
    log.rename(log.with_name("plant.csv.2"))
    begin(log.with_name("plant.csv.1"), 3)
    begin(log.with_name("plant.csv.bak"), -2)  # somebody's copy, not a rotation
    begin(log, 4)
    for age, name in enumerate(["plant.csv.2", "plant.csv.1", "plant.csv.bak", "plant.csv"], start=1):
        os.utime(log.with_name(name), (10**9 + age, 10**9 + age))
    source = follow(log)
    source.continue_from(position)
    assert available(source) == [2, 3, 4]


def test_continuing_after_copy_and_truncation(log: Path, follow: Follower) -> None:
    begin(log, 1, 2)
    position = stopped_at(follow(log), 1, 2)
    append(log, 3)
    shutil.copy(log, log.with_name("plant.csv.1"))
    with log.open("r+") as file:
        file.truncate(0)
    append(log, 4)
    source = follow(log)
    source.continue_from(position)
    assert available(source) == [3, 4]


def test_continuing_when_the_file_is_gone_is_an_error(log: Path, follow: Follower) -> None:
    begin(log, 1)
    position = stopped_at(follow(log), 1)
    log.unlink()
    begin(log, 7)
    with pytest.raises(InputError, match="is not the file that was watched"):
        follow(log).continue_from(position)


def test_a_position_between_two_files(log: Path, follow: Follower) -> None:
    """Killed after the old file's last line, which had no line end, and before the new file was begun."""
    begin(log, 1)
    append(log, 2, end="")
    source = follow(log)
    assert available(source) == [1]
    log.rename(log.with_name("plant.csv.1"))
    begin(log, 3)
    while (batch := source.next_batch(1)) is None:
        pass
    assert batch.values.tolist() == [[2.0]]
    again = follow(log)
    again.continue_from(source.position())
    assert available(again) == [3]


def test_a_position_in_the_header_is_not_taken_for_one_in_the_next_file(log: Path, follow: Follower) -> None:
    begin(log, 1)
    source = follow(log)
    assert source.next_batch(1) is None  # the header
    assert source.next_batch(1) is None  # the columns
    position = source.position()
    log.rename(log.with_name("plant.csv.1"))
    begin(log, 2)
    again = follow(log)
    again.continue_from(position)
    assert available(again) == [1, 2]


def test_a_position_where_there_is_no_file(log: Path, follow: Follower, followed: RowSource) -> None:
    log.rename(log.with_name("plant.csv.1"))
    begin(log, 2)
    while followed._last is None:
        followed.next_batch(1)
    log.unlink()
    assert available(followed) == []
    again = follow(log)
    again.continue_from(followed.position())
    assert available(again) == []
    begin(log, 3)
    assert available(followed) == [3]
    assert available(again) == [3]


def test_a_line_that_is_cut_off_by_truncation_is_malformed(log: Path, follow: Follower) -> None:
    begin(log, 1)
    append(log, 23, end="")
    source = follow(log)
    assert available(source) == [1]
    with log.open("r+") as file:
        file.truncate(0)
    while (batch := source.next_batch(1)) is None:
        pass
    assert (len(batch.values), [str(fault) for fault in batch.faults]) == (
        0,
        [f"{log}, line 3: cut off by truncation of the file"],
    )
    append(log, 4)
    assert available(source) == [4]


def test_a_rotated_file_is_not_left_while_its_writer_uses_it(log: Path, follow: Follower) -> None:
    begin(log, 1)
    position = stopped_at(follow(log), 1)
    old = log.with_name("plant.csv.1")
    log.rename(old)
    log.touch()
    source = follow(log)
    source.continue_from(position)
    assert available(source) == []
    append(old, 2)
    assert available(source) == [2]
    log.rename(log.with_name("plant.csv.0"))  # empty as it is
    begin(log, 3)
    assert available(source) == [3]


def test_a_copy_that_somebody_made_is_not_read(log: Path, follow: Follower) -> None:
    begin(log, 1, 2)
    source = follow(log)
    position = stopped_at(source, 1, 2)
    append(log, 3)
    copy = log.with_name("plant.csv.20260314")
    shutil.copy(log, copy)
    log.rename(log.with_name("plant.csv.1"))
    begin(log, 4)
    later = log.with_name("plant.csv.1").stat().st_mtime + 1
    os.utime(copy, (later, later))
    again = follow(log)
    again.continue_from(position)
    assert available(source) == [3, 4]
    assert available(again) == [3, 4]


def test_blank_lines_before_a_header_that_comes_again(log: Path, follow: Follower, followed: RowSource) -> None:
    log.rename(log.with_name("plant.csv.1"))
    log.write_text("\n\n")
    assert available(followed) == []
    position = followed.position()
    again = follow(log)
    again.continue_from(position)
    with log.open("a") as file:
        file.write(HEADER)
    append(log, 2)
    assert available(followed) == [2]
    assert available(again) == [2]


def test_a_state_made_without_following_can_be_followed_and_back(log: Path, follow: Follower) -> None:
    begin(log, 1)
    plain = RowSource(open_feed(log), TableOptions())
    while plain.next_batch(100) is None:
        pass
    append(log, 2)
    source = follow(log)
    source.continue_from(plain.position())
    position = stopped_at(source, 2)
    plain.close()
    append(log, 3)
    plain = RowSource(open_feed(log), TableOptions())
    plain.continue_from(position)
    batch = plain.next_batch(100) or plain.next_batch(100)
    assert batch.values.tolist() == [[3.0]]
    plain.close()


def test_an_edited_file_is_not_followed_on(log: Path, follow: Follower) -> None:
    begin(log, *range(1000))
    source = follow(log)
    position = stopped_at(source, *range(1000))
    log.write_text(log.read_text().replace("t990,990", "t990,-990"))
    with pytest.raises(InputError, match="is not the file that was watched"):
        follow(log).continue_from(position)


def test_a_feed_closes_all_it_holds(log: Path) -> None:
    begin(log, 1)
    feed = FollowFeed(log)
    assert feed.read()
    feed.close()
    feed.close()


def test_a_file_that_comes_too_late_into_a_followed_folder_is_reported(tmp_path):
    (tmp_path / "day2.csv").write_text("a,b\n1,2\n")
    feed = open_feed(tmp_path, follow=True)
    try:
        assert feed.read() == b"a,b\n1,2\n"
        assert feed.read() is None
        (tmp_path / "day1.csv").write_text("a,b\n3,4\n")
        with pytest.raises(InputError, match=r"day1\.csv"):
            [feed.read() for _ in range(5)]
    finally:
        feed.close()
