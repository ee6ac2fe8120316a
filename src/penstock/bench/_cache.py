"""The folder of downloaded data sets, and the checksums by which its files are known again."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

from penstock.storage import replace_file

_CHECKSUMS = "checksums.json"


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """The given folder, or that in PENSTOCK_CACHE, or the place where the system keeps caches.

    >>> cache_folder("/data/penstock").as_posix()
    '/data/penstock'
    """
    setting = os.fspath(cache) if cache is not None else os.environ.get("PENSTOCK_CACHE", "")
    if setting:
        return Path(setting).expanduser()
    if sys.platform == "win32":
        usual = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        usual = Path.home() / "Library" / "Caches"
    else:
        named = os.environ.get("XDG_CACHE_HOME", "")
        usual = Path(named) if Path(named).is_absolute() else Path.home() / ".cache"  # a relative one is to be ignored
    return usual / "penstock"


def sha256_of(path: Path) -> str:
    """Of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def recorded(cache: Path, name: str) -> str | None:
    """The checksum that was written down for a file of this name, if one was."""
    return _read(cache).get(name)


def record(cache: Path, checksums: dict[str, str]) -> None:
    """Write down checksums of files by name, beside those there are."""
    text = json.dumps(dict(sorted((_read(cache) | checksums).items())), indent=1) + "\n"
    write_whole(cache / _CHECKSUMS, text.encode())


def cached_file(cache: Path, name: str) -> Path | None:
    """The data set of this name, if it was downloaded; raise if it is not what was written then."""
    path = cache / "dami" / f"{name}.csv.gz"
    if not path.is_file():
        return None
    expected = recorded(cache, path.name)
    if expected != sha256_of(path):
        how = "is not the one that was written" if expected else f"is not listed in {cache / _CHECKSUMS}"
        raise ValueError(f"{path} {how} when the data set was downloaded. Delete it and download the set again.")
    return path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, and the folder if need be, so that at any moment there is all of it, or what was there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, [memoryview(content)])


def _read(cache: Path) -> dict[str, str]:
    path = cache / _CHECKSUMS
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ValueError(f"{path} is damaged. Delete it and the folder dami/ beside it, and download the sets again.")
    return found
