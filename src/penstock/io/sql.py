"""Read what a query of a database returns into a raw table: `sql:URL`, by SQLAlchemy (extra `sql`).

Only one SELECT is run, in a transaction that may not write where the database has such; SQLite files are opened for
reading alone. Rows come in chunks, and their size is counted before the next. Passwords are in no message.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pandas as pd

from penstock._messages import counted, listed, option
from penstock.io._combine import RawTable, own_names
from penstock.io._text import most_cells
from penstock.io.table import TableError

PREFIX = "sql:"
_CHUNK = 10_000  # rows
_ADDRESSES = (
    "Write it as sql:sqlite:///plant.db or sql:postgresql://user:password@host/database, with signs such as @ and / in "
    "the password as %40 and %2F."
)
_SQLITE = re.compile(r"sqlite(?:\+\w+)?:///(?P<path>[^?]*)(?P<options>\?.*)?")
_DRIVERS = ("psycopg", "psycopg2", "pg8000")  # of PostgreSQL, where the address names none: the first that is there
# Quotes, dollar quotes and comments, in which words have no meaning.
_SILENT = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/", re.DOTALL
)
_WRITES = frozenset(
    (
        "insert", "update", "delete", "merge", "replace", "into", "drop", "alter", "create", "truncate", "grant",
        "revoke", "copy", "call", "do", "attach", "vacuum", "exec", "execute", "lock", "begin", "commit",
    )
)  # fmt: skip
_SECRETS = re.compile(r"(?i)\b(password|passwd|pwd|secret|token)(\s*[=:]\s*)('[^']*'|\"[^\"]*\"|[^\s;,&']+)")


def is_address(source: object) -> bool:
    """Return whether a source is the address of a database.

    >>> is_address("sql:sqlite:///plant.db"), is_address("plant.csv")
    (True, False)
    """
    return isinstance(source, str) and source.startswith(PREFIX)


def public_address(source: str) -> str:
    """Return the address without password and options, for people.

    >>> public_address("sql:postgresql://reader:s3c/r@t@10.0.0.5/plant?sslpassword=x")
    'postgresql://reader@10.0.0.5/plant'
    """
    address = source.removeprefix(PREFIX)
    return re.sub(r"(://[^:@/?]*)(:.*)?@", r"\1@", address, flags=re.DOTALL).partition("?")[0]


def public_query(query: str) -> str:
    """Return a query without what looks like a password in it.

    >>> public_query("select * from dblink('host=a password=b', 'select 1')")
    "select * from dblink('host=a password=…', 'select 1')"
    """
    return _SECRETS.sub(r"\1\2…", query)


def file_of_address(source: str) -> Path | None:
    """Return the file that an address of SQLite names, None for other databases."""
    found = _SQLITE.fullmatch(source.removeprefix(PREFIX))
    return Path(unquote(found["path"])) if found and found["path"] not in ("", ":memory:") else None


def check_query(query: str) -> str:
    """Return the query without a semicolon at its end; TableError unless it is one SELECT.

    >>> check_query("select t, x from tags; ")
    'select t, x from tags'
    >>> check_query("drop table tags")
    Traceback (most recent call last):
    penstock.io.table.TableError: query must be one SELECT...
    """
    query = query.strip().rstrip(";").strip() if isinstance(query, str) else ""
    bare = _SILENT.sub(" ", query)
    words = re.findall(r"\w+", bare.lower())
    calls = set(re.findall(r"(\w+)\s*\(", bare.lower()))  # functions such as replace() are no statements
    writing = [word for word in words if word in _WRITES and not (word == "replace" and word in calls)]
    if not words or words[0] not in ("select", "with") or writing or ";" in bare:
        why = f" ({writing[0].upper()} is in it)" if writing else ""
        raise TableError(
            f"query must be one SELECT, which changes nothing{why}. Give a query that only reads.", "query"
        )
    return query


def read_sql(source: str, query: str | None, max_bytes: int) -> RawTable:
    """Return what a query returns, or the table of a database that has but one.

    Raises
    ------
    TableError
        If the database cannot be reached, the query fails, or there is too much of it; never with the password.
    """
    name = public_address(source)
    wanted = None if query is None else check_query(query)
    try:
        import sqlalchemy as sa
    except ImportError:
        raise TableError(
            f"{name}: reading a database needs SQLAlchemy. Install it with: pip install 'penstock[sql]'"
        ) from None
    address = source.removeprefix(PREFIX)
    with _plain_errors(name, address, sa):
        engine = _engine(address, name, sa)
        try:
            with engine.connect() as connection:
                _forbid_writing(connection, sa)
                if wanted is None:
                    wanted = _only_table(connection, name, sa)
                streaming = connection.execution_options(stream_results=True, no_parameters=True, max_row_buffer=_CHUNK)
                with closing(streaming.exec_driver_sql(wanted)) as result:
                    keys = list(result.keys())
                    names, _ = own_names([str(key).strip() for key in keys], f"The query of {name}")
                    columns = _read_rows(result, names, name, max_bytes)
        finally:
            engine.dispose()
    frame = pd.DataFrame({key: _joined(parts) for key, parts in columns.items()})
    if frame.empty:
        raise TableError(f"The query of {name} returns no rows. Check its conditions.", "query")
    return RawTable(name, frame)


@contextmanager
def _plain_errors(name: str, address: str, sa: Any) -> Iterator[None]:
    """Make one sentence of what a database or its driver says, without passwords."""
    try:
        yield
    except TableError:
        raise
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError) as error:
        said = f"{name} is no address of a database ({_without_secrets(error, address)})."
        raise TableError(f"{said} {_ADDRESSES}") from None
    except Exception as error:  # each driver has its own
        origin = getattr(error, "orig", None) or error
        said = f"{name} cannot be read: {_without_secrets(origin, address)}."
        raise TableError(f"{said} Check the address, the rights and the query.") from None


def _without_secrets(error: BaseException, address: str) -> str:
    said = " ".join(str(error).split())[:300].rstrip(".")
    secrets = re.findall(r"(?s)://[^:@/?]*:(.+)@", address) + re.findall(
        r"[?&]\w*(?:pass|pwd|key|token)\w*=([^&]+)", address
    )
    for secret in {*secrets, *map(unquote, secrets)}:
        said = said.replace(secret, "…")
    return public_query(said.replace(address, public_address(address)))


def _engine(address: str, name: str, sa: Any) -> Any:
    """Make an engine that keeps no connection; SQLite is opened for reading alone, and never made."""
    if address.startswith("sqlite"):
        import sqlite3

        path = file_of_address(address)
        if path is None or not path.is_file():
            said = f"{name}: there is no file {path}." if path else f"{name} names no file."
            raise TableError(f"{said} Write three slashes and its path: sql:sqlite:///plant.db")
        file = f"file:{quote(str(path.resolve()))}?mode=ro"
        return sa.create_engine(
            "sqlite://", creator=lambda: sqlite3.connect(file, uri=True), poolclass=sa.pool.NullPool
        )
    try:
        url = sa.engine.make_url(address)
    except Exception:  # whose message may hold a part of the password
        raise TableError(f"{name} is no address of a database. {_ADDRESSES}") from None
    kinds = [url]
    if url.drivername == "postgresql":
        kinds = [url.set(drivername=f"postgresql+{driver}") for driver in _DRIVERS]
    for kind in kinds:
        try:
            return sa.create_engine(kind, poolclass=sa.pool.NullPool, hide_parameters=True)
        except ModuleNotFoundError as error:
            if kind is kinds[-1]:
                needed = f"one of the drivers {', '.join(_DRIVERS)}" if len(kinds) > 1 else f"the driver {error.name}"
                raise TableError(f"{name} needs {needed}. Install it with pip.") from None
    raise AssertionError("no driver to try")


def _forbid_writing(connection: Any, sa: Any) -> None:
    """Begin a transaction that may only read, where the database knows such."""
    kind = connection.dialect.name
    if kind == "sqlite":
        connection.exec_driver_sql("PRAGMA query_only = ON")
    elif kind == "postgresql":
        connection.execute(sa.text("SET TRANSACTION READ ONLY"))
    elif kind in ("mysql", "mariadb"):
        connection.execute(sa.text("SET SESSION TRANSACTION READ ONLY"))
        connection.commit()


def _only_table(connection: Any, name: str, sa: Any) -> str:
    inspector = sa.inspect(connection)
    tables = inspector.get_table_names() or inspector.get_view_names()
    if len(tables) != 1:
        held = f"has {counted(len(tables), 'table')}: {listed(sorted(tables), most=12)}" if tables else "has no tables"
        raise TableError(f"{name} {held}. Say what to read ({option('query', 'select … from …')}).", "query")
    return f"SELECT * FROM {connection.dialect.identifier_preparer.quote(tables[0])}"


def _read_rows(result: Any, names: Sequence[str], source: str, max_bytes: int) -> dict[str, list[pd.Series[Any]]]:
    """Return the columns in parts, one of each chunk; the size is counted before the next is fetched."""
    columns: dict[str, list[pd.Series[Any]]] = {name: [] for name in names}
    size = cells = 0
    while rows := result.fetchmany(_CHUNK):
        cells += len(rows) * len(names)
        for name, values in zip(names, zip(*rows, strict=True), strict=True):
            part, text_size = _typed(values)
            size += text_size
            columns[name].append(part)
        if size > max_bytes or cells > most_cells(max_bytes):
            raise TableError(
                f"The query of {source} returns more than {min(cells, most_cells(max_bytes)):,} values, or "
                f"{max_bytes:,} bytes of text, which may not fit into memory. Select fewer columns or a shorter "
                f"period, or pass a larger {option('max_bytes')}."
            )
    return columns


def _typed(values: Sequence[Any]) -> tuple[pd.Series[Any], int]:
    """Return values as numbers, truth values, times, durations or texts, and the bytes of the texts.

    >>> _typed([Decimal("1.5"), None, 2])[0].tolist()
    [1.5, nan, 2.0]
    """
    kinds = {type(value) for value in values} - {type(None)}
    whole = None not in values
    if kinds == {int} and whole and max(map(abs, values)) < 2**63:
        return pd.Series(np.array(values, dtype=np.int64)), 0
    if kinds <= {int, float, Decimal}:
        return pd.Series(np.array([np.nan if value is None else float(value) for value in values])), 0
    if kinds == {bool}:
        return pd.Series(values, dtype="bool" if whole else "object"), 0
    if kinds <= {dt.datetime, dt.date}:
        zones = {getattr(value, "tzinfo", None) is None for value in values if value is not None}
        return pd.Series(pd.to_datetime(list(values), utc=zones == {False})), 0
    if kinds == {dt.timedelta}:
        return pd.Series(pd.to_timedelta(list(values))), 0
    texts = [_as_text(value) for value in values]
    return pd.Series(texts, dtype="object"), sum(len(text) for text in texts if text is not None)


def _as_text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode(errors="replace")
    return value if isinstance(value, str) else str(value)


def _joined(parts: Sequence[pd.Series[Any]]) -> pd.Series[Any]:
    """Put the parts of a column together; parts without any value get the type of the others."""
    kept = next((part.dtype for part in parts if part.notna().any()), None)
    if kept is not None and kept.kind != "f":
        parts = [part if part.notna().any() else _nothing(len(part), kept) for part in parts]
    return pd.concat(parts, ignore_index=True) if parts else pd.Series(dtype="float64")


def _nothing(count: int, kind: Any) -> pd.Series[Any]:
    if kind.kind == "i":
        return pd.Series(np.full(count, np.nan))
    return pd.Series([None] * count, dtype=object if kind.kind == "b" else kind)
