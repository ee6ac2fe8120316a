"""An archive of the DAMI collection → one of its ARFF files → numbers and labels. Nothing is unpacked to disk."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import listed, quoted
from penstock._types import FloatArray
from penstock.prepare import learn_scaling

_MOST_UNPACKED = 2**31  # of an archive
_MOST_MEMBERS = 10_000
_LARGEST = 2**28  # of the file that is read; the largest of the collection have some ten megabytes
_ATTRIBUTE = re.compile(r"""@attribute\s+(?:'([^']*)'|"([^"]*)"|(\S+))\s+\S""", re.IGNORECASE)
_DATA = re.compile(r"^[ \t]*@data[^\n]*(?:\n|\Z)", re.IGNORECASE | re.MULTILINE)


class ArchiveError(ValueError):
    """The archive, or the file in it, is not what it should be."""


def read_member(archive: Path, stem: str) -> str:
    """The text of the file ``<stem>.arff``, in whatever folder of the archive it is.

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
    """The names of the attributes, and the lines below them."""
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
