"""The file of a study's outcomes: whole lines only, whatever kills the process or fills the disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.bench.rows_file import ROWS_FILE, RowsFile, RowsFileError, read_rows

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks and limits of POSIX")

FILLING = """
import json, resource, signal, sys
from pathlib import Path
from penstock.bench.rows_file import RowsFile

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
with RowsFile(Path(sys.argv[1])) as file:
    for number in range(20):
        file.append({"key": str(number), "why": "x" * (60 + number)})
    full = len(file.waiting), file.trouble is not None
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000 + int(sys.argv[2]), resource.RLIM_INFINITY))
    file.flush()
    print(json.dumps([*full, len(file.waiting), file.trouble is not None]))
"""


def some(key: str, **more: object) -> dict[str, object]:
    return {"key": key, "status": "ok"} | more


def written(folder: Path, *outcomes: dict[str, object]) -> bytes:
    with RowsFile(folder) as file:
        for outcome in outcomes:
            file.append(outcome)
    return (folder / ROWS_FILE).read_bytes()


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "for it"
    written(folder, some("a"), some("b", why="„ä“ \n"))
    content = written(folder, some("c"))
    assert content.count(b"\n") == 3
    assert read_rows(folder) == {"a": some("a"), "b": some("b", why="„ä“ \n"), "c": some("c")}


def test_where_there_is_none_nothing_is_read(tmp_path: Path) -> None:
    assert read_rows(tmp_path) == {}
    assert read_rows(tmp_path / "nowhere") == {}


def test_of_several_the_last_counts(tmp_path: Path) -> None:
    written(tmp_path, some("a", status="failed"), some("b"), some("a", status="ok"))
    assert read_rows(tmp_path)["a"]["status"] == "ok"


@pytest.mark.parametrize("left", [1, 20, 200])
def test_a_line_that_was_cut_off_is_dropped_and_overwritten(tmp_path: Path, left: int) -> None:
    long = some("a", why="x" * 300)
    whole = written(tmp_path, long)
    (tmp_path / ROWS_FILE).write_bytes(whole + whole[:left])
    assert read_rows(tmp_path) == {"a": long}
    assert (tmp_path / ROWS_FILE).read_bytes() == whole + whole[:left]  # reading changes nothing
    assert written(tmp_path, some("b")) == whole + json.dumps(some("b")).encode() + b"\n"


def test_a_file_of_one_cut_off_line(tmp_path: Path) -> None:
    (tmp_path / ROWS_FILE).write_bytes(b'{"key": "a", "sta')
    assert read_rows(tmp_path) == {}
    written(tmp_path, some("b"))
    assert read_rows(tmp_path) == {"b": some("b")}


@pytest.mark.parametrize("damage", [b"{", b"[1]", b'{"status": "ok"}', b"\xff\xfe", b"3", b'{"key": [1]}'])
def test_a_damaged_line_is_named(tmp_path: Path, damage: bytes) -> None:
    line = json.dumps(some("a")).encode()
    (tmp_path / ROWS_FILE).write_bytes(b"\n".join([line, damage, line, b""]))
    with pytest.raises(RowsFileError, match=r"rows\.jsonl, line 2: not the outcome of a cell.*delete the line"):
        read_rows(tmp_path)


def test_a_line_without_text_is_passed_over(tmp_path: Path) -> None:
    line = json.dumps(some("a")).encode()
    (tmp_path / ROWS_FILE).write_bytes(b"\n".join([line, b"", b" ", b""]))
    assert list(read_rows(tmp_path)) == ["a"]


def test_what_json_cannot_hold_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with RowsFile(tmp_path) as file:
        file.append(some("a"))
        with pytest.raises(ValueError, match="JSON"):
            file.append(some("b", roc_auc=float("nan")))
        file.append(some("c"))
    assert list(read_rows(tmp_path)) == ["a", "c"]


def test_a_reason_with_bytes_that_are_no_text(tmp_path: Path) -> None:
    odd = os.fsdecode(b"no file \xff.csv")
    written(tmp_path, some("a", why=odd))
    assert read_rows(tmp_path)["a"]["why"] == odd


def test_two_processes_cannot_write_at_once(tmp_path: Path) -> None:
    other = "from pathlib import Path; from penstock.bench.rows_file import RowsFile; RowsFile(Path('.'))"
    with RowsFile(tmp_path) as file:
        file.append(some("a"))
        run = subprocess.run([sys.executable, "-c", other], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 1
        assert "rows.jsonl is in use by another study" in run.stderr
        file.append(some("b"))
    assert list(read_rows(tmp_path)) == ["a", "b"]
    with RowsFile(tmp_path):  # it is free again
        pass


def test_who_comes_too_late_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RowsFile(tmp_path) as file:
        file.append(some("a"))
        monkeypatch.setattr(Path, "exists", lambda _: False)  # as it was when the other looked
        with pytest.raises(RuntimeError, match="in use by another study"):
            RowsFile(tmp_path)
    assert list(read_rows(tmp_path)) == ["a"]


@pytest.mark.parametrize("more_room", [200, 5000])
def test_a_full_disk_leaves_whole_lines_and_a_later_run_the_rest(tmp_path: Path, more_room: int) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FILLING, str(tmp_path), str(more_room)], capture_output=True, text=True, check=True
    )
    waiting, trouble, waiting_then, trouble_then = json.loads(run.stdout)
    content = (tmp_path / ROWS_FILE).read_bytes()
    assert content.endswith(b"\n")
    kept = list(read_rows(tmp_path))
    assert kept == [str(number) for number in range(len(kept))]  # in order, none missing between
    assert trouble
    assert 0 < waiting < 20
    assert len(kept) + waiting_then == 20
    assert waiting_then < waiting
    assert trouble_then is (waiting_then > 0) is (more_room == 200)
    written(tmp_path, *(some(str(number)) for number in range(len(kept), 20)))
    assert len(read_rows(tmp_path)) == 20
