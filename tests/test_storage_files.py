"""A file is the old one or the new one, whatever happens while it is written."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.storage import StorageError, read_state, remove_leftovers, write_state
from penstock.storage import files as _files


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


def test_a_process_of_somebody_else_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", forbid)
    assert _files._is_running(1)


@pytest.mark.parametrize("moment", ["open", "fsync"])
def test_folders_that_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    def fail_with(number: int) -> Any:
        def fail(*_: Any) -> None:
            raise OSError(number, "trouble")

        return fail

    monkeypatch.setattr(os, moment, fail_with(errno.EINVAL))
    _files._sync_folder(tmp_path)
    monkeypatch.setattr(os, moment, fail_with(errno.EIO))
    with pytest.raises(OSError, match="trouble"):
        _files._sync_folder(tmp_path)


def test_links_stay_links_and_permissions_are_kept(tmp_path: Path) -> None:
    write_state(tmp_path / "state", "test", {"a": 1})
    (tmp_path / "state").chmod(0o640)
    (tmp_path / "link").symlink_to("state")
    write_state(tmp_path / "link", "test", {"a": 2})
    assert (tmp_path / "link").is_symlink()
    assert read_state(tmp_path / "state") == ("test", {"a": 2})
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o640


def test_only_files_are_replaced(tmp_path: Path) -> None:
    for path in (tmp_path, Path(os.devnull)):
        with pytest.raises(StorageError, match=r"Cannot write .* is not a file. Choose another path"):
            write_state(path, "test", {})
    with pytest.raises(FileNotFoundError):
        write_state(tmp_path / "nowhere" / "state", "test", {})
    long = tmp_path / ("x" * 250)
    write_state(long, "test", {})
    assert [path.name for path in tmp_path.iterdir()] == [long.name]
