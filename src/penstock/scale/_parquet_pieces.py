"""Rows of Parquet files, a piece for each row group: only the footers are read before the work begins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock._messages import listed
from penstock._types import FloatArray
from penstock.scale._checks import (
    Place,
    SourceError,
    brief,
    chosen_positions,
    missing_extra,
    refuse_nonfinite,
    refuse_type,
)
from penstock.scale._pieces import FilePiece, Piece, Source, file_facts, refuse_no_rows, signature_of

_COLUMNS_AT_ONCE = 8  # pyarrow takes several times what it reads: all of a row group at once would not fit


@dataclass(frozen=True)
class ParquetPiece(FilePiece):
    """One row group of a Parquet file, which is what a reader can take out of it without reading the rest."""

    label: str
    path: str
    row_group: int
    first_row: int
    n_rows: int
    columns: tuple[str, ...]

    def load(self) -> FloatArray:
        """Its rows; raises `SourceError` where they are damaged, missing or infinite, or the file is another by now."""
        import pyarrow

        with _named(self.label), _opened(Path(self.path)) as file:
            if self.row_group >= file.num_row_groups:
                raise self._changed()
            table = np.empty((self.n_rows, len(self.columns)))
            for first in range(0, len(self.columns), _COLUMNS_AT_ONCE):
                names = list(self.columns[first : first + _COLUMNS_AT_ONCE])
                read = file.read_row_group(self.row_group, columns=names, use_threads=False)
                if read.num_rows != self.n_rows or not set(names) <= set(read.column_names):
                    raise self._changed()
                for number, name in enumerate(names, first):
                    table[:, number] = read.column(name).cast(pyarrow.float64(), safe=False).to_numpy()
        del read
        pyarrow.default_memory_pool().release_unused()  # it would keep for later what a worker near its limit lacks now
        place = Place(self.label, f"row group {self.row_group}", "the file", self.first_row)
        refuse_nonfinite(table, place, self.columns)
        return table

    def _changed(self) -> SourceError:
        return SourceError(
            f"{self.label}: the file was changed after it was opened as a source. Open the source again."
        )


def open_parquet(paths: Sequence[Path], wish: Sequence[str] | None) -> Source:
    """A source of the row groups of these files, which must all have the same columns, in any order."""
    if not paths:
        raise SourceError("The list of Parquet files is empty. Pass at least one path.")
    for path in paths:
        _refuse_no_file(path)
    columns: list[str] | None = None
    pieces: list[Piece] = []
    for path in paths:
        with _named(str(path)), _opened(path) as file:
            own = _usable_columns(file.schema_arrow, str(path), wish)
            columns = columns or own
            _refuse_other_columns(own, columns, path, paths[0])
            pieces += _row_groups(file.metadata, path, tuple(columns))
    assert columns is not None
    refuse_no_rows(pieces, str(paths[0]) if len(paths) == 1 else f"The list of {len(paths):,} Parquet files")
    signature = signature_of("parquet", columns, file_facts(path.absolute() for path in paths))
    return Source(pieces, columns, len(columns), signature)


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files of a folder in natural order, part-2 before part-10; names with . or _ first are not data."""
    files = [
        path for path in folder.iterdir() if path.suffix.lower() == ".parquet" and not path.name.startswith((".", "_"))
    ]
    if not files:
        deeper = next(folder.glob("*/**/*.parquet"), None)
        hint = f" There are some in its folders ({deeper}): pass a list of their paths." if deeper else ""
        raise SourceError(f"The folder {folder} has no files named *.parquet.{hint or ' Check the path.'}")
    return sorted(files, key=lambda path: _natural(path.name))


def _natural(name: str) -> tuple[list[tuple[str, int]], str]:
    """Texts and numbers of a name in turn; the name itself tells part-1 and part-01 apart."""
    parts = re.split(r"(\d+)", name)
    return [(text, int(number or 0)) for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True)], name


def _refuse_no_file(path: Path) -> None:
    if path.is_dir():
        raise SourceError(f"{path} is a folder. Pass a folder by itself, or list its files.")
    if not path.exists():
        raise SourceError(f"{path} does not exist. Check the path; every worker must see the file under it.")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise missing_extra("Reading Parquet") from None
    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        yield file


@contextmanager
def _named(label: str) -> Iterator[None]:
    """Gives the errors of pyarrow a place: they say what is wrong, but not where."""
    try:
        yield
    except SourceError:
        raise
    except FileNotFoundError:
        raise SourceError(
            f"{label}: the file is gone, or this machine does not see it. Put it where every worker can read it under "
            f"the same path."
        ) from None
    except PermissionError as error:
        raise SourceError(f"{label}: the file may not be read here ({error}). Allow it to every worker.") from None
    except MemoryError as error:
        raise SourceError(
            f"{label}: does not fit into the memory of this worker, or is damaged ({brief(error)}). Write the file "
            f"with smaller row groups."
        ) from None
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, OverflowError) as error:
        raise SourceError(
            f"{label}: damaged, or no Parquet table ({brief(error)}). Write the file again, or leave it out."
        ) from None


def _usable_columns(schema: Any, label: str, wish: Sequence[str] | None) -> list[str]:
    """The columns to use of a file, all of numbers; what pandas stored as an index is used only if asked for."""
    known = list(schema.names)
    if wish is None:
        index = {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}
        known = [name for name in known if name not in index]
    chosen = [known[k] for k in chosen_positions(known, wish, label)]
    for name in chosen:
        kind = schema.field(name).type
        if not _is_numeric(kind):
            refuse_type(label, name, str(kind))
    return chosen


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean))


def _refuse_other_columns(own: Sequence[str], columns: Sequence[str], path: Path, first: Path) -> None:
    known, wanted = set(own), set(columns)
    missing = [name for name in columns if name not in known]
    extra = [name for name in own if name not in wanted]
    if not missing and not extra:
        return
    differences = [f"lacks {listed(missing)}"] * bool(missing) + [f"has {listed(extra)} besides"] * bool(extra)
    raise SourceError(
        f"{path} has other columns than {first}: it {' and '.join(differences)}. Leave the file out, or pass "
        f"columns=[...] with names that all files have."
    )


def _row_groups(metadata: Any, path: Path, columns: tuple[str, ...]) -> Iterator[ParquetPiece]:
    first_row = 0
    for number in range(metadata.num_row_groups):
        n_rows = metadata.row_group(number).num_rows
        yield ParquetPiece(f"{path}, row group {number}", str(path.absolute()), number, first_row, n_rows, columns)
        first_row += n_rows
