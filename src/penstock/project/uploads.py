"""Files that come over HTTP: streamed to disk, with limits; their names are never trusted, nor what a zip says."""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
import zipfile
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from penstock.project.folder import ProjectError

ENDINGS = (".csv", ".txt", ".tsv", ".dat", ".csv.gz", ".txt.gz", ".tsv.gz", ".parquet", ".xlsx", ".xls", ".xlsm")
_LONGEST = 100  # characters of a name
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
_PIECE = 1 << 20


@dataclass(frozen=True)
class UploadLimits:
    """How much may be uploaded.

    Examples
    --------
    >>> UploadLimits().files
    1000
    """

    file_bytes: int = 4_000_000_000
    unpacked_bytes: int = 8_000_000_000  # of a zip
    files: int = 1000  # of a zip
    free_bytes: int = 200_000_000  # that are left on the disk


def safe_name(name: str) -> str:
    r"""Return the name of a file without any folder or sign that a system could act on; ProjectError if none is left.

    >>> safe_name("../../etc/passwd.csv"), safe_name("C:\\plant\\März 2024.csv"), safe_name(".a b;rm -rf.csv")
    ('passwd.csv', 'März 2024.csv', 'a b_rm -rf.csv')
    """
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    clean = re.sub(r"[^\w .()+,=-]", "_", last).strip(" .")
    stem, dot, ending = clean.rpartition(".")
    clean = f"{stem[: _LONGEST - len(ending)]}{dot}{ending}" if len(clean) > _LONGEST else clean
    if not clean.lower().endswith(ENDINGS):
        raise ProjectError(
            f"{last[:100]!r} is no table: files end in {', '.join(ENDINGS)}; several may come in a .zip."
        )
    if clean.split(".")[0].lower() in _RESERVED:
        clean = f"_{clean}"
    return clean


async def receive(folder: Path, name: str, pieces: AsyncIterator[bytes], limits: UploadLimits) -> list[str]:
    """Write a file that is sent to a folder, and return the names of what is there now: of a zip, its files.

    What is cut off leaves nothing behind.
    """
    is_zip = name.lower().endswith(".zip")
    target = "upload.zip" if is_zip else safe_name(name)
    part = folder / f".upload.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    written = 0
    try:
        with part.open("xb") as file:
            async for piece in pieces:
                written += len(piece)
                if written > limits.file_bytes:
                    raise ProjectError(f"{name[:100]} is larger than {limits.file_bytes / 1e9:g} GB.")
                if written % (64 * _PIECE) < len(piece):
                    _check_space(folder, limits)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if not written:
            raise ProjectError(f"{name[:100]} is empty.")
        if is_zip:
            return unpack(part, folder, limits)
        part.replace(folder / target)
        return [target]
    except OSError as error:
        raise ProjectError(f"{name[:100]} could not be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)


def unpack(path: Path, folder: Path, limits: UploadLimits) -> list[str]:
    """Unpack the tables of a zip; ProjectError if it has none, is damaged, or unpacks to more than is allowed."""
    made: list[Path] = []
    try:
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.infolist() if not each.is_dir()]
            if len(members) > limits.files:
                raise ProjectError(f"The zip has {len(members):,} files; at most {limits.files:,} are unpacked.")
            chosen = [each for each in members if _is_table(each.filename)]
            if not chosen:
                raise ProjectError(f"There is no table in the zip: files end in {', '.join(ENDINGS)}.")
            left = limits.unpacked_bytes
            for member in chosen:
                place = folder / _free_name(safe_name(member.filename), made)
                part = folder / f".upload.{os.getpid()}-{os.urandom(4).hex()}.tmp"
                try:
                    with archive.open(member) as source, part.open("xb") as file:
                        while piece := source.read(_PIECE):  # what comes counts, not what the zip says of it
                            left -= len(piece)
                            if left < 0:
                                limit = f"{limits.unpacked_bytes / 1e9:g} GB"
                                raise ProjectError(f"The zip unpacks to more than {limit}: it is not unpacked.")
                            file.write(piece)
                            if left % (64 * _PIECE) < len(piece):
                                _check_space(folder, limits)
                    part.replace(place)
                    made.append(place)
                finally:
                    part.unlink(missing_ok=True)
    except ProjectError:
        _remove(made)
        raise
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        _remove(made)
        raise ProjectError(f"The zip cannot be unpacked: {error!s:.200}.") from None
    return [each.name for each in made]


def _is_table(name: str) -> bool:
    try:
        return not name.startswith("__MACOSX") and bool(safe_name(name))
    except ProjectError:
        return False


def _free_name(name: str, made: Iterable[Path]) -> str:
    """Return the name, with a number where another file of this zip has it."""
    taken = {each.name.lower() for each in made}
    stem, dot, ending = name.partition(".")
    names = (name, *(f"{stem} ({number}){dot}{ending}" for number in range(2, 2000)))
    return next(each for each in names if each.lower() not in taken)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _check_space(folder: Path, limits: UploadLimits) -> None:
    if shutil.disk_usage(folder).free < limits.free_bytes:
        raise ProjectError("The disk is nearly full: nothing more is taken.")
