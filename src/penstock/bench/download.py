"""The data sets of the study, fetched from the public home of the DAMI collection when asked for, and kept."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from penstock.bench._archive import ArchiveError, read_arff, read_member
from penstock.bench._cache import cache_folder, cached_file, record, recorded, sha256_of, write_whole
from penstock.bench._fetch import DownloadError, Progress, discard, fetch, refuse_other_schemes
from penstock.bench.datasets import Dataset
from penstock.bench.registry import Entry, entry

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
    """Fetch data sets of the registry into the cache, where `penstock.bench.datasets.load` finds them.

    Parameters
    ----------
    names : of the twenty sets or the variants beside them.
    home : the http or https folder with one archive ``<Name>.tar.gz`` of ARFF files per data set.
    cache : the folder to keep files in; that in the environment variable PENSTOCK_CACHE if None, or else the place
        where the system keeps caches (~/.cache/penstock). Data sets go to its ``dami/``, archives beside them.
    progress : called with the bytes of an archive so far and in total (None where that is not known).
    timeout : in seconds, of waiting for the server.

    Returns
    -------
    list of Path
        One ``.csv.gz`` for each name. A set that is there already is not fetched again.

    Raises
    ------
    DownloadError
        With what could not be reached or is wrong. An interrupted download is continued by the next.

    Notes
    -----
    Archives whose SHA-256 was published are checked against it. All others are trusted on first use: their checksum is
    written to ``checksums.json`` in the cache, and whatever is fetched or read later must agree with it. That protects
    from damage and later changes, not from a first download that was tampered with. Rows, attributes and anomalies must
    be as many as `penstock.bench.registry` says.
    """
    refuse_other_schemes(home)
    wanted = [entry(name) for name in names]  # all of them known, before anything is fetched
    folder = cache_folder(cache)
    return [_obtain(each, home, folder, progress, timeout) for each in wanted]


def _obtain(wanted: Entry, home: str, cache: Path, progress: Progress | None, timeout: float) -> Path:
    """The file of one data set, made from its archive unless it is there."""
    ready = cached_file(cache, wanted.name)
    if ready is not None:
        return ready
    archive = cache / "dami" / f"{wanted.archive}.tar.gz"
    if not archive.is_file():
        fetch(f"{home.rstrip('/')}/{archive.name}", archive, progress=progress, timeout=timeout)
    try:
        checksum = _checked(archive, wanted, cache)
        dataset = _read(archive, wanted)
    except ArchiveError as error:
        discard(archive)  # or every later call would meet it again
        raise DownloadError(
            f"Data set {wanted.name!r} from {home}: {error}. The archive was removed; download it again, or set "
            f"PENSTOCK_DATA to a folder that holds {wanted.name}.csv.gz."
        ) from None
    path = cache / "dami" / f"{wanted.name}.csv.gz"
    write_whole(path, _as_csv(dataset))
    record(cache, {archive.name: checksum, path.name: sha256_of(path)})
    return path


def _checked(archive: Path, wanted: Entry, cache: Path) -> str:
    """The checksum of an archive; raise if another is published or was written down before."""
    found = sha256_of(archive)
    earlier = recorded(cache, archive.name)
    for expected, whence in (
        (wanted.sha256, "as published"),
        (earlier, f"as downloaded before ({cache / 'checksums.json'})"),
    ):
        if expected is not None and found != expected:
            raise ArchiveError(f"{archive.name} has the SHA-256 {found}, not {expected} {whence}")
    return found


def _read(archive: Path, wanted: Entry) -> Dataset:
    X, y = read_arff(read_member(archive, wanted.file), wanted.file)
    dataset = Dataset(wanted.name, X, y)
    found, expected = (dataset.n, dataset.p, dataset.n_anomalies), (wanted.n, wanted.p, wanted.anomalies)
    if found != expected:
        counts = "{:,} rows, {:,} attributes and {:,} anomalies"
        raise ArchiveError(f"{wanted.file}.arff has {counts.format(*found)}, not {counts.format(*expected)}")
    return dataset


def _as_csv(dataset: Dataset) -> bytes:
    """In the format of the benchmark folder: x0, x1, … and outlier. The same data give the same bytes."""
    table = pd.DataFrame(dataset.X, columns=[f"x{number}" for number in range(dataset.p)])
    table["outlier"] = dataset.y
    return gzip.compress(table.to_csv(index=False).encode(), mtime=0)
