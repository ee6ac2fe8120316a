"""Fetch the data sets of the study from the public home of the DAMI collection, check them and keep them."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import json
import os
import re
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from ssl import SSLError
from typing import IO, Any, cast
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import listed, quoted
from penstock._types import FloatArray
from penstock.bench.datasets import Dataset
from penstock.prepare import learn_scaling
from penstock.storage import replace_file
from studies.ahmed2021.registry import Entry, entry

__all__ = ["HOME", "DownloadError", "Progress", "cache_folder", "download"]

HOME = "https://www.dbs.ifi.lmu.de/research/outlier-evaluation/input/"


def download(
    names: Iterable[str],
    *,
    home: str = HOME,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
) -> list[Path]:
    """Fetch data sets of the registry into the cache, where `studies.ahmed2021.datasets.load` finds them.

    Parameters
    ----------
    names : of the twenty sets or their variants.
    home : the http or https folder with one archive ``<Name>.tar.gz`` of ARFF files per data set.
    cache : the folder to keep files in; that in the environment variable PENSTOCK_CACHE if None, or else the place
        where the system keeps caches (~/.cache/penstock). Data sets go to its ``dami/``, archives next to them.
    progress : called with the bytes of an archive so far and in total (None where that is not known).
    timeout : in seconds, of waiting for the server.

    Returns
    -------
    list of Path
        One ``.csv.gz`` for each name. A set that is there already is not fetched again.

    Raises
    ------
    DownloadError
        With what could not be reached or is wrong.

    Notes
    -----
    Archives whose SHA-256 was published are checked against it. All others are trusted on first use: their checksum is
    written to ``checksums.json`` in the cache, and whatever is fetched or read later must agree with it. That protects
    from damage and later changes, not from a first download that was tampered with. Rows, attributes and anomalies must
    be as many as `studies.ahmed2021.registry` says.
    """
    refuse_other_schemes(home)
    wanted = [entry(name) for name in names]  # all of them known, before anything is fetched
    folder = cache_folder(cache)
    return [_obtain(each, home, folder, progress, timeout) for each in wanted]


def _obtain(wanted: Entry, home: str, cache: Path, progress: Progress | None, timeout: float) -> Path:
    """Return the file of one data set, made from its archive unless it is there."""
    ready = cached_file(cache, wanted.name)
    if ready is not None:
        return ready
    archive = cache / "dami" / f"{wanted.archive}.tar.gz"
    if not archive.is_file():
        fetch(f"{home.rstrip('/')}/{archive.name}", archive, progress=progress, timeout=timeout)
    try:
        checksum = _checked(archive, wanted, cache)
        dataset = _read_set(archive, wanted)
    except ArchiveError as error:
        archive.unlink()  # or every later call would meet it again
        raise DownloadError(
            f"Data set {wanted.name!r} from {home}: {error}. The archive was removed; download it again, or set "
            f"PENSTOCK_DATA to a folder that holds {wanted.name}.csv.gz."
        ) from None
    path = cache / "dami" / f"{wanted.name}.csv.gz"
    write_whole(path, _as_csv(dataset))
    record(cache, {archive.name: checksum, path.name: sha256_of(path)})
    return path


def _checked(archive: Path, wanted: Entry, cache: Path) -> str:
    """Compute the checksum of an archive; raise if another is published or was recorded before."""
    found = sha256_of(archive)
    earlier = recorded(cache, archive.name)
    for expected, whence in (
        (wanted.sha256, "as published"),
        (earlier, f"as downloaded before ({cache / 'checksums.json'})"),
    ):
        if expected is not None and found != expected:
            raise ArchiveError(f"{archive.name} has the SHA-256 {found}, not {expected} {whence}")
    return found


def _read_set(archive: Path, wanted: Entry) -> Dataset:
    X, y = read_arff(read_member(archive, wanted.file), wanted.file)
    dataset = Dataset(wanted.name, X, y)
    found, expected = (dataset.n, dataset.p, dataset.n_anomalies), (wanted.n, wanted.p, wanted.anomalies)
    if found != expected:
        counts = "{:,} rows, {:,} attributes and {:,} anomalies"
        raise ArchiveError(f"{wanted.file}.arff has {counts.format(*found)}, not {counts.format(*expected)}")
    return dataset


def _as_csv(dataset: Dataset) -> bytes:
    """Write the format of the benchmark folder: x0, x1, … and outlier. The same data give the same bytes."""
    table = pd.DataFrame(dataset.X, columns=[f"x{number}" for number in range(dataset.p)])
    table["outlier"] = dataset.y
    return gzip.compress(table.to_csv(index=False).encode(), mtime=0)


Progress = Callable[[int, int | None], None]

_CHUNK = 1 << 16
_MOST_BYTES = 2**28  # the largest archives of these sets have some 25 megabytes


class DownloadError(OSError):
    """A data set could not be downloaded; the message says what was not reached or is wrong, and what to do."""


def fetch(url: str, target: Path, *, progress: Progress | None = None, timeout: float = 30.0) -> None:
    """Write what is at an address to a file, wholly or not at all: archives are small enough to be fetched anew."""
    wanted = request.Request(url, headers={"User-Agent": "penstock"})
    try:
        with _opener().open(wanted, timeout=timeout) as response:
            content = _read(response, progress)
    except HTTPError as error:
        raise DownloadError(
            f"{url} answers {error.code} ({error.reason}), so it was not downloaded. The collection may have moved: "
            f"see whether the address opens in a browser."
        ) from None
    except (http.client.HTTPException, ConnectionError, TimeoutError, SSLError, URLError) as error:
        raise DownloadError(
            f"{url} could not be downloaded ({getattr(error, 'reason', None) or error}): nothing was downloaded or "
            f"changed. Check the network and try again, or set PENSTOCK_DATA to a folder that holds one <Name>.csv.gz "
            f"per data set."
        ) from None
    write_whole(target, content)


def refuse_other_schemes(url: str) -> None:
    """Raise for an address that is not http or https, such as a file of this machine."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"Data sets are downloaded from http and https addresses only; got {url!r}.")


def _read(response: Any, progress: Progress | None) -> bytes:
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    content = bytearray()
    while chunk := response.read(_CHUNK):
        content += chunk
        if len(content) > _MOST_BYTES:
            raise DownloadError(
                f"The file is larger than {_MOST_BYTES:,} bytes, which no archive of the collection is."
            )
        if progress is not None:
            progress(len(content), total)
    if total is not None and len(content) != total:
        raise ConnectionError(f"the connection ended after {len(content):,} of {total:,} bytes")
    return bytes(content)


class _SafeRedirects(request.HTTPRedirectHandler):
    """Follows to http and https, and from https to https only."""

    def redirect_request(self, req: request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl).scheme not in ({"https"} if req.type == "https" else {"http", "https"}):
            raise URLError(f"it is redirected to {newurl}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> request.OpenerDirector:
    """Make an opener without files, FTP and data addresses."""
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(), request.UnknownHandler(), request.HTTPHandler(), request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(), _SafeRedirects(), request.HTTPErrorProcessor(),
    ):  # fmt: skip
        opener.add_handler(handler)
    return opener


_MOST_UNPACKED = 2**31  # of an archive
_MOST_MEMBERS = 10_000
_LARGEST = 2**28  # of the file that is read; the largest of the collection have some ten megabytes
_ATTRIBUTE = re.compile(r"""@attribute\s+(?:'([^']*)'|"([^"]*)"|(\S+))\s+\S""", re.IGNORECASE)
_DATA = re.compile(r"^[ \t]*@data[^\n]*(?:\n|\Z)", re.IGNORECASE | re.MULTILINE)


class ArchiveError(ValueError):
    """The archive, or the file in it, is not what it should be."""


def read_member(archive: Path, stem: str) -> str:
    """Read the file ``<stem>.arff``, in whatever folder of the archive it is.

    The archive is read as a stream: of the names in it only the last part is looked at, none becomes a path here, and
    links are not followed.
    """
    seen = []
    try:
        with gzip.open(archive) as unpacked, tarfile.open(fileobj=_limited(unpacked), mode="r|") as members:
            for count, member in enumerate(members, start=1):
                if count > _MOST_MEMBERS:
                    raise ArchiveError(f"{archive.name} holds more than {_MOST_MEMBERS:,} files")
                name = PurePosixPath(member.name).name
                if not member.isfile() or not name.endswith(".arff"):
                    continue
                seen.append(name)
                if name == f"{stem}.arff":
                    return _text(members, member)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ArchiveError(f"{archive.name} is no archive that can be read ({error})") from None
    raise ArchiveError(f"{archive.name} has no file {stem}.arff; it has {listed(seen) if seen else 'no ARFF files'}")


def read_arff(text: str, name: str) -> tuple[FloatArray, NDArray[np.int64]]:
    r"""Attributes and labels of an ARFF file of the collection: all but `id` and `outlier`, each scaled to [0, 1].

    >>> text = "@RELATION 't'\n@ATTRIBUTE 'a b' real\n@ATTRIBUTE id real\n@ATTRIBUTE 'outlier' {'yes','no'}\n"
    >>> X, y = read_arff(text + "@DATA\n3,1,'no'\n% remark\n7,2,'yes'\n", "t")
    >>> X.tolist(), y.tolist()
    ([[0.0], [1.0]], [0, 1])
    """
    attributes, body = _header(text, name)
    try:
        rows = pd.read_csv(
            io.StringIO(body), header=None, quotechar="'", skipinitialspace=True, comment="%", low_memory=False
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ArchiveError(f"the rows of {name}.arff cannot be read ({error})") from None
    if rows.shape[1] != len(attributes):
        raise ArchiveError(f"{name}.arff has {len(attributes)} attributes, but rows of {rows.shape[1]} values")
    rows.columns = pd.Index(attributes)
    words = rows.pop("outlier").astype(str).str.strip("\"' ").str.casefold()
    if not words.isin(("yes", "no")).all():
        raise ArchiveError(f"attribute outlier of {name}.arff is not always yes or no")
    rows = rows.drop(columns="id", errors="ignore")
    texts = [column for column in rows if rows[column].dtype.kind not in "fiu"]
    X = np.array(rows.drop(columns=texts), dtype=np.float64, order="C")
    if texts or not X.shape[1] or not np.isfinite(X).all():
        where = f", such as those of {quoted(texts[0])}" if texts else ""
        raise ArchiveError(f"{name}.arff has values that are no numbers{where}")
    return learn_scaling(X).apply(X), np.array(words == "yes", dtype=np.int64)


def _limited(stream: gzip.GzipFile) -> IO[bytes]:
    return cast("IO[bytes]", _Limited(stream))  # of which a stream of an archive needs no more than reading


class _Limited:
    """A stream that ends with an error when more comes out of it than any archive of the collection has."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream
        self._left = _MOST_UNPACKED

    def read(self, size: int) -> bytes:
        content = self._stream.read(size)
        self._left -= len(content)
        if self._left < 0:
            raise ArchiveError(
                f"it unpacks to more than {_MOST_UNPACKED:,} bytes, which no archive of the collection does"
            )
        return content


def _text(members: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    if member.size > _LARGEST:
        raise ArchiveError(f"{quoted(member.name)} has {member.size:,} bytes, more than any file of the collection")
    file = members.extractfile(member)
    content = b"" if file is None else file.read()
    return content.decode("utf-8", errors="replace")


def _header(text: str, name: str) -> tuple[list[str], str]:
    """Return the names of the attributes, and the lines below them."""
    found = _DATA.search(text)
    if found is None:
        raise ArchiveError(f"{name}.arff has no line @DATA")
    lines = [line.strip() for line in text[: found.start()].splitlines()]
    matches = [_ATTRIBUTE.match(line) for line in lines if line.lower().startswith("@attribute")]
    attributes = [next(part for part in match.groups() if part is not None) for match in matches if match]
    called = [each.casefold() if each.casefold() in ("id", "outlier") else each for each in attributes]
    if None in matches or called.count("outlier") != 1 or len(set(called)) < len(called):
        raise ArchiveError(f"the attributes of {name}.arff cannot be read, or have no outlier among them")
    return called, text[found.end() :]


_CHECKSUMS = "checksums.json"


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """Return the given folder, or that in PENSTOCK_CACHE, or the place where the system keeps caches.

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
    """Compute the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def recorded(cache: Path, name: str) -> str | None:
    """Return the recorded checksum of a file of this name, if there is one."""
    return _read_checksums(cache).get(name)


def record(cache: Path, checksums: dict[str, str]) -> None:
    """Write down checksums of files by name, in addition to those there are."""
    text = json.dumps(dict(sorted((_read_checksums(cache) | checksums).items())), indent=1) + "\n"
    write_whole(cache / _CHECKSUMS, text.encode())


def cached_file(cache: Path, name: str) -> Path | None:
    """Return the data set of this name, if it was downloaded; raise if it has changed since."""
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


def _read_checksums(cache: Path) -> dict[str, str]:
    path = cache / _CHECKSUMS
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ValueError(f"{path} is damaged. Delete it and the folder dami/ next to it, and download the sets again.")
    return found
