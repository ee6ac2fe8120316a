"""Files that come over HTTP: streamed to disk, with limits; their names are never trusted, nor what a zip says."""

from __future__ import annotations

import asyncio
import io
import os
import re
import shutil
import unicodedata
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.live.alarm_records import RefusedError

ENDINGS = (".csv", ".txt", ".tsv", ".dat", ".csv.gz", ".txt.gz", ".tsv.gz", ".parquet", ".xlsx", ".xls", ".xlsm")
_LONGEST = 150  # bytes of a name
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
_PIECE = 1 << 20


@dataclass(frozen=True)
class UploadLimits:
    """How much may be uploaded."""

    file_bytes: int = 4_000_000_000
    unpacked_bytes: int = 8_000_000_000  # of a zip
    files: int = 1000  # of a zip
    free_bytes: int = 200_000_000  # that are left on the disk


def safe_name(name: str) -> str:
    r"""Return the name of a file without any folder or sign that a system could act on; RefusedError if none is left.

    >>> safe_name("../../etc/passwd.csv"), safe_name("C:\\plant\\März 2024.csv"), safe_name(".a b;rm -rf.csv")
    ('passwd.csv', 'März 2024.csv', 'a b_rm -rf.csv')
    """
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    clean = re.sub(r"[^\w .()+,=-]", "_", last).strip(" .")
    ending = max((each for each in ENDINGS if clean.lower().endswith(each)), key=len, default=None)
    if ending is None:
        raise RefusedError(
            f"{last[:100]!r} is no table: files end in {', '.join(ENDINGS)}; several may come in a .zip."
        )
    stem = clean[: -len(ending)].encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore")
    reserved = "_" if stem.split(".")[0].lower() in _RESERVED else ""
    return f"{reserved}{stem}{clean[-len(ending) :]}"


async def receive(folder: Path, name: str, pieces: AsyncIterator[bytes], limits: UploadLimits) -> list[str]:
    """Write a file that is sent to a folder, and return the names of what is there now: of a zip, its files.

    What is cut off leaves nothing behind, and what was there as it was.
    """
    is_zip = name.lower().endswith(".zip")
    target = "" if is_zip else safe_name(name)
    try:
        with _part(folder) as part:
            with part.open("xb") as file:
                written = 0
                async for piece in pieces:
                    written += len(piece)
                    if written > limits.file_bytes:
                        raise RefusedError(f"{name[:100]} is larger than {limits.file_bytes / 1e9:g} GB.")
                    if written % (64 * _PIECE) < len(piece):
                        _check_space(folder, limits)
                    file.write(piece)
                file.flush()
                await asyncio.to_thread(os.fsync, file.fileno())
            if not written:
                raise RefusedError(f"{name[:100]} is empty.")
            if is_zip:
                return await asyncio.to_thread(unpack, part, folder, limits)
            part.replace(folder / target)
            return [target]
    except OSError as error:
        raise RefusedError(f"{name[:100]} could not be written: {error.strerror}.") from None


@contextmanager
def _part(folder: Path) -> Iterator[Path]:
    """Give the path of a file that is being written; it is gone in the end, unless it was renamed."""
    part = folder / f".upload.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


class _ShortReads(io.BufferedReader):
    """A file that is not read at once: `zipfile` would read a list of any length, and make an object of each entry."""

    def read(self, size: int | None = -1) -> bytes:
        most = _PIECE + 1 if size is None or size < 0 else min(size, _PIECE + 1)
        found = super().read(most)
        if len(found) > _PIECE:
            raise zipfile.BadZipFile("its list of files is too long")
        return found


def unpack(path: Path, folder: Path, limits: UploadLimits) -> list[str]:
    """Unpack the tables of a zip; RefusedError if it has none, is damaged, or unpacks to more than is allowed."""
    parts: dict[str, Path] = {}
    try:
        with ExitStack() as opened:
            archive = opened.enter_context(zipfile.ZipFile(opened.enter_context(_ShortReads(io.FileIO(path)))))
            members = [each for each in archive.infolist() if not each.is_dir()]
            if len(members) > limits.files:
                raise RefusedError(f"The zip has {len(members):,} files; at most {limits.files:,} are unpacked.")
            left = limits.unpacked_bytes
            for member in members:
                if not _is_table(member.filename):
                    continue
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others take any memory
                    raise RefusedError("The zip is packed in a way that is not read: make it with 'deflate'.")
                name = _free_name(safe_name(member.filename), parts)
                parts[name] = opened.enter_context(_part(folder))
                with archive.open(member) as source, parts[name].open("xb") as file:
                    while piece := source.read(_PIECE):  # what comes counts, not what the zip says of it
                        left -= len(piece)
                        if left < 0:
                            limit = f"{limits.unpacked_bytes / 1e9:g} GB"
                            raise RefusedError(f"The zip unpacks to more than {limit}: it is not unpacked.")
                        file.write(piece)
                        if left % (64 * _PIECE) < len(piece):
                            _check_space(folder, limits)
            if not parts:
                raise RefusedError(f"There is no table in the zip: files end in {', '.join(ENDINGS)}.")
            for name, part in parts.items():  # all, or none
                part.replace(folder / name)
    except RefusedError:
        raise
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise RefusedError(f"The zip cannot be unpacked: {error!s:.200}.") from None
    return list(parts)


def _is_table(name: str) -> bool:
    return not name.startswith("__MACOSX") and name.lower().endswith(ENDINGS)


def _free_name(name: str, taken: Iterable[str]) -> str:
    """Return the name, with a number where another file of this zip has it."""
    known = {each.lower() for each in taken}
    stem, dot, ending = name.partition(".")
    names = (name, *(f"{stem} ({number}){dot}{ending}" for number in range(2, 2000)))
    return next(each for each in names if each.lower() not in known)


def _check_space(folder: Path, limits: UploadLimits) -> None:
    if shutil.disk_usage(folder).free < limits.free_bytes:
        raise RefusedError("The disk is nearly full: nothing more is taken.")
