"""Replace files atomically, open regular files only, and lock files."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


class StorageError(ValueError):
    """A file cannot be read or written; the message has its path and what to do."""


_LEFTOVER = re.compile(r"\..+\.(\d+)-[0-9a-f]{8}\.tmp", re.DOTALL)
_OLD = 24 * 3600.0  # seconds: no save takes a day
_LONGEST_NAME = 40  # characters of the file's name in that of the temporary one: file systems allow 255 bytes
_CANNOT_SYNC = {errno.EACCES, errno.EINVAL, errno.ENOTSUP}  # folders of some systems


def replace_file(path: Path, pieces: Iterable[memoryview], *, private: bool = False) -> None:
    """Replace the content of a file atomically, and return when the new content will survive a power cut.

    It is written to a temporary file in the same folder, which is then renamed. A link stays a link, permissions are
    kept; a folder or a device (/dev/null) is refused. A new file that is `private` can be read by its owner alone.
    """
    target, mode = Path(os.path.realpath(path)), None
    if target.exists():
        mode = target.stat().st_mode
        if not stat.S_ISREG(mode):
            raise StorageError(f"Cannot write {target}: it exists and is not a file. Choose another path.")
    temporary = target.with_name(f".{target.name[:_LONGEST_NAME]}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(temporary, flags, 0o600 if private else 0o666), "wb") as stream:
            if mode is not None:
                temporary.chmod(stat.S_IMODE(mode))
            for piece in pieces:
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:  # Ctrl-C as well
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Write the folder to the disk: the new name is an entry of it."""
    if os.name != "posix":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; anything else (a folder, a pipe, a device) is refused and never waited for."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise StorageError("it is not a file")
    # Should a pipe take its place in this instant: opening does not wait for a writer either.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    stream = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise StorageError("it is not a file")
    return stream


def lock(descriptor: int) -> bool:
    """Lock an open file until it is closed or the process ends in any way; return False if it is locked already.

    Where a system has no locks, nothing is locked.
    """
    from filelock import lock_descriptor

    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return True


def remove_leftovers(folder: str | os.PathLike[str]) -> list[Path]:
    """Remove the temporary files of saves that were killed, and return their paths.

    They are called `.{name}.{process}-{eight hex digits}.tmp`. One whose process still runs on this machine is left
    alone for a day. Where several machines save into one folder, call this when none of them is saving.
    """
    removed = []
    for path in sorted(Path(folder).iterdir()):
        match = _LEFTOVER.fullmatch(path.name)
        if match and path.is_file() and not path.is_symlink():
            with suppress(FileNotFoundError):  # removed by another process
                if time.time() - path.stat().st_mtime > _OLD or not _is_running(int(match[1])):
                    path.unlink()
                    removed.append(path)
    return removed


def _is_running(process: int) -> bool:
    if os.name != "posix":
        return True  # no harmless way to ask: age decides
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
