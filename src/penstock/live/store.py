"""Keep everything that a live service knows in one SQLite file: readings, verdicts, alarms, states, positions.

One thread writes, in one transaction per batch (write-ahead log, full sync): what was committed survives a kill and a
power cut, what was not has not happened. Other threads read through connections of their own.

What is written has a seal, a checksum of its values, which is checked when it is read: SQLite notices a damaged page,
but not a value that was changed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray, StreamScores
from penstock.storage import StorageError, lock

SCHEMA_VERSION = 6
_APPLICATION = 0x50454E53  # "PENS", in the header of the file
_IN_USE, _CLOSED = b"in use", b"closed"
_CHECK_SECONDS = 5.0
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_SCHEMA = """
CREATE TABLE assets(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, settings TEXT NOT NULL, configured TEXT,
    version INTEGER NOT NULL DEFAULT 0, wanted TEXT,
    rows INTEGER NOT NULL DEFAULT 0, counts TEXT NOT NULL DEFAULT '{}', newest REAL, received REAL,
    state_row INTEGER NOT NULL DEFAULT 0, state BLOB, state_seal INTEGER, seal INTEGER);
CREATE TABLE models(
    asset INTEGER NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL, source TEXT NOT NULL, note TEXT NOT NULL,
    added REAL NOT NULL, who TEXT NOT NULL, used REAL, before INTEGER, names TEXT, columns TEXT,
    PRIMARY KEY(asset, version), UNIQUE(asset, digest)) WITHOUT ROWID;
CREATE TABLE model_files(digest TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE inputs(
    asset INTEGER NOT NULL, name TEXT NOT NULL, position TEXT NOT NULL, seal INTEGER, PRIMARY KEY(asset, name));
CREATE TABLE blocks(
    asset INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL, received REAL NOT NULL, until REAL NOT NULL,
    times TEXT, version INTEGER NOT NULL, scores BLOB NOT NULL, reasons TEXT, seal INTEGER,
    readings BLOB, texts TEXT, readings_seal INTEGER, PRIMARY KEY(asset, first));
CREATE INDEX blocks_until ON blocks(asset, until);
CREATE INDEX blocks_read ON blocks(asset, first) WHERE readings IS NOT NULL;
CREATE TABLE alarms(
    id TEXT PRIMARY KEY, asset TEXT NOT NULL, began REAL NOT NULL, open INTEGER NOT NULL, record TEXT NOT NULL,
    seal INTEGER) WITHOUT ROWID;
CREATE INDEX alarms_began ON alarms(began);
CREATE TABLE changes(
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, alarm TEXT NOT NULL, at REAL NOT NULL, record TEXT NOT NULL,
    seal INTEGER);
CREATE INDEX changes_alarm ON changes(alarm);
CREATE TABLE books(name TEXT PRIMARY KEY, state TEXT NOT NULL, seal INTEGER) WITHOUT ROWID;
CREATE TABLE labels(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL, seal INTEGER);
CREATE TABLE audit(
    number INTEGER PRIMARY KEY, at REAL NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL,
    details TEXT NOT NULL, seal INTEGER);
CREATE TABLE outbox(
    number INTEGER PRIMARY KEY, id TEXT NOT NULL, target TEXT NOT NULL, created REAL NOT NULL, payload TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, next_try REAL NOT NULL DEFAULT 0, delivered REAL, problem TEXT,
    UNIQUE(id, target));
CREATE INDEX outbox_waiting ON outbox(next_try) WHERE delivered IS NULL;
CREATE TABLE tokens(name TEXT PRIMARY KEY, role TEXT NOT NULL, hash TEXT NOT NULL, created REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE answers(
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, command TEXT NOT NULL, answer TEXT NOT NULL);
CREATE TABLE quarantine(
    number INTEGER PRIMARY KEY, asset INTEGER NOT NULL, at REAL NOT NULL, source TEXT NOT NULL, text TEXT NOT NULL,
    reason TEXT NOT NULL);
"""
_UNSEALED = ("number", "seal")  # columns that a seal is not of
_BLOCK_FIELDS = ("asset", "first", "count", "received", "until", "times", "version", "scores", "reasons")
_READING_FIELDS = ("asset", "first", "readings", "texts")
_ASSET_FIELDS = ("name", "settings", "configured", "version", "rows", "counts", "newest", "received", "state_row")
_MOST_ANSWERS = 10_000  # to commands that may come again
_MOST_QUARANTINED = 1000  # rows of an asset that are kept
_LONGEST_WAIT = 86_400.0  # seconds: a message that waits for longer was noted by a clock that was wrong
_ASSETS = (
    "SELECT assets.*, models.columns AS columns FROM assets "
    "LEFT JOIN models ON models.asset = assets.id AND models.version = assets.version"
)
_MOST_FILES = 20  # of models, for each asset
_MODELS = "SELECT * FROM models WHERE asset=? ORDER BY version"


class StoreFullError(StorageError):
    """The store cannot be written, as there is no room left or it was taken away; nothing of it has happened."""


@dataclass(frozen=True)
class ScoredBlock:
    """Consecutive rows of an asset with their verdicts.

    first : number of the first one, from 1.
    received : when they came, in seconds since 1970.
    seconds : the time of each row (n,) in seconds since 1970; where it cannot be read, when it was received.
    times : as they were written.
    version : of the asset's model, which names their columns and sensors.
    reasons : by position, why a row has no score.
    values, texts : as they were read, (n, p) and by column; None where that was not asked for, or is not kept any more.
    """

    first: int
    received: float
    seconds: FloatArray
    times: list[Any] | None
    version: int
    scores: StreamScores
    reasons: dict[int, str]
    values: FloatArray | None = None
    texts: dict[str, list[str | None]] = field(default_factory=dict)


@dataclass
class AssetRecord:
    """What the store knows of an asset: `rows` that were scored, and the model's `state` after `state_row` of them.

    settings : what the verdicts depend on apart from the rows.
    configured : digest of the model that the configuration named at the last start.
    version : of the model in use; `columns` are those of its rows, None before the first.
    wanted : a switch that was asked for and not carried out, see `Store.want_model`.
    """

    id: int
    name: str
    settings: dict[str, Any]
    configured: str | None
    version: int
    wanted: dict[str, Any] | None
    columns: tuple[str, ...] | None
    rows: int
    counts: Counter[str]
    newest: float | None
    received: float | None
    state_row: int
    state: bytes | None

    @classmethod
    def new(cls, name: str, settings: dict[str, Any]) -> AssetRecord:
        """Return an asset that is in no store yet."""
        return cls(0, name, settings, None, 0, None, None, 0, Counter(), None, None, 0, None)


@dataclass(frozen=True)
class ModelVersion:
    """A model of an asset.

    version : from 1, in the order in which the models were added.
    digest, source : of its file, and where that was; "" is the source of a model that learns from the rows.
    note : what is known of it, such as how it did against the model before.
    added, who : when and by whom.
    used, before : when it was put into use last, and the version that was in use before; None if it never was.
    names, columns : the inputs by which it names sensors, and the columns of its rows; None before its first row.
    """

    version: int
    digest: str
    source: str
    note: str
    added: float
    who: str
    used: float | None
    before: int | None
    names: tuple[str, ...] | None
    columns: tuple[str, ...] | None


class Store:
    """The file of a live service, made if it is not there. Of two processes that open it, the second one is refused.

    `exclusive` is False to change tokens while a service runs on the same file. Without a path it is kept in memory,
    for one thread.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()) / "live.db")
    >>> with store.transaction():
    ...     unit = store.open_asset("unit 1")
    >>> store.asset("unit 1").rows
    0
    >>> store.close()
    """

    def __init__(self, path: str | os.PathLike[str] | None, *, exclusive: bool = True) -> None:
        self._readers = threading.local()
        self._all_readers: list[sqlite3.Connection] = []
        self._writing: int | None = None  # the thread that is in a transaction
        self._exclusive = exclusive and path is not None
        self._files: dict[Path, tuple[int, int]] = {}  # where the store is, and which files these were
        if path is None:
            self.path, self._lock = Path(":memory:"), os.open(os.devnull, os.O_RDWR)
            self._writer = self._readers.connection = self._connect()
            self._prepare()
            return
        if not Path(path).parent.is_dir():
            raise StorageError(
                f"There is no folder {Path(path).parent} for the store {Path(path).name}. Make it first."
            )
        self.path = Path(path).resolve()  # by whatever name it is called: the lock is one
        if self.path.is_dir():
            raise StorageError(f"{self.path} is a folder; name a file for the store.")
        if self.path.exists() and self.path.stat().st_nlink > 1:
            raise StorageError(f"{self.path} has a second name (a hard link), by which others could open it. Copy it.")
        self._lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if exclusive and not lock(self._lock):
                raise StorageError(f"{self.path} is used by another penstock. End it, or name another one.")
            created = not self.path.exists()
            if exclusive and not created:
                self._check_log()
            self._writer = self._connect()
            if created:
                self.path.chmod(0o600)
            try:
                self._prepare()
                if exclusive:
                    self._check_pages()
                    self._note_use(_IN_USE)
                    files = [self.path, Path(f"{self.path}-wal")]
                    self._files = {file: _identity(file) for file in files if file.exists()}
            except BaseException:
                self._writer.close()
                raise
        except BaseException:
            os.close(self._lock)
            raise

    def _check_log(self) -> None:
        """Refuse a store that was not closed and whose log was taken away: the newest rows are in there."""
        log = Path(f"{self.path}-wal")
        os.lseek(self._lock, 0, os.SEEK_SET)
        if os.read(self._lock, len(_IN_USE)) == _IN_USE and not log.exists():
            raise StorageError(
                f"{log} is missing: the last penstock was cut off, and what it committed is in that file. Put it "
                f"back. If it is lost, remove {self.path}.lock: it goes on from what is in {self.path.name}."
            )

    def _check_pages(self) -> None:
        """Refuse a damaged file; of a large one, what can be looked at in some seconds."""
        end = time.monotonic() + _CHECK_SECONDS
        self._writer.set_progress_handler(lambda: time.monotonic() > end, 10_000)
        try:
            found = self._writer.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            found = "ok" if "interrupted" in str(error) else str(error)
        finally:
            self._writer.set_progress_handler(None, 0)
        if found != "ok":
            raise self.damaged(found)

    def damaged(self, what: object) -> StorageError:
        """Return an error that says that the file is damaged."""
        return StorageError(f"{self.path} is damaged ({what!s:.200}). Put back a copy of it, or name another one.")

    def _note_use(self, state: bytes) -> None:
        """Note in the lock file whether the store is in use; a process that is killed leaves that behind."""
        os.lseek(self._lock, 0, os.SEEK_SET)
        os.write(self._lock, state)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
        connection.row_factory = sqlite3.Row
        return connection

    def _prepare(self) -> None:
        """Make the tables of a new file, or check that the file is a store of this version."""
        writer = self._writer
        try:
            version = writer.execute("PRAGMA user_version").fetchone()[0]
            ours = writer.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION
            empty = not writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise StorageError(f"{self.path} is not a store of penstock: {error}.") from None
        if not ours and not empty:
            raise StorageError(f"{self.path} is a SQLite file, but not a store of penstock. Name another one.")
        if version > SCHEMA_VERSION:
            raise StorageError(
                f"{self.path} was written by a newer penstock (store version {version}; this one reads up to "
                f"{SCHEMA_VERSION}). Update penstock."
            )
        if not empty and version < SCHEMA_VERSION:
            raise StorageError(
                f"{self.path} was written by an older penstock (store version {version}; this one reads "
                f"{SCHEMA_VERSION}). Name another store; the old one stays readable by the version that wrote it."
            )
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("PRAGMA synchronous=FULL")
        if empty:
            with self.transaction():
                for statement in _SCHEMA.split(";\n"):
                    writer.execute(statement)
                writer.execute(f"PRAGMA application_id={_APPLICATION}")
                writer.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    def close(self) -> None:
        """Close the file; it can be opened by others then."""
        try:
            if self._exclusive:  # first: a kill in between must not look like a log that was taken away
                self._note_use(_CLOSED)
        finally:
            for connection in (*self._all_readers, self._writer):
                connection.close()
            os.close(self._lock)

    def is_served(self) -> bool:
        """Return whether a service runs on this file; to be asked by a store that is not `exclusive`."""
        with suppress(OSError):
            probe = os.open(f"{self.path}.lock", os.O_RDWR)
            try:
                return not lock(probe)
            finally:
                os.close(probe)
        return False

    def limit_pages(self, pages: int) -> None:
        """Let the file have at most so many pages of 4 kB, as on a disk that is full beyond them."""
        self._writer.execute(f"PRAGMA max_page_count={int(pages)}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is written inside this block, all or nothing; StoreFullError if there is no room on the disk.

        Inside another transaction, the block is a part of it.
        """
        writer = self._writer
        is_part: bool = writer.in_transaction
        if is_part:
            yield
            return
        try:
            for file, known in self._files.items():
                if _identity(file) != known:
                    raise StoreFullError(f"{file} was removed or replaced while it is in use. Put it back.")
            writer.execute("BEGIN IMMEDIATE")
            self._writing = threading.get_ident()
            yield
            writer.execute("COMMIT")
        except BaseException as error:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError) and (error.sqlite_errorcode & 0xFF) in _FULL:
                raise StoreFullError(f"{self.path} cannot grow: {error}. Make room on the disk.") from error
            raise
        finally:
            self._writing = None

    def has_room(self) -> bool:
        """Return whether something can be written: a page of a table, which is then removed."""
        try:
            with self.transaction():
                self.save_book("~room", "." * 100_000)
            with self.transaction():
                self._writer.execute("DELETE FROM books WHERE name='~room'")
        except StoreFullError:
            return False
        return True

    def _read(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """Return the rows of a query: inside a transaction of this thread as they are there, else as committed."""
        if self._writing == threading.get_ident():
            return self._writer.execute(query, values).fetchall()
        connection: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            connection = self._readers.connection = self._connect()
            connection.execute("PRAGMA query_only=1")
            self._all_readers.append(connection)
        return connection.execute(query, values).fetchall()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what was written in the block if it raises; the transaction around it goes on."""
        self._write("SAVEPOINT part")
        try:
            yield
        except BaseException:
            self._write("ROLLBACK TO part")
            raise
        finally:
            self._write("RELEASE part")

    def _write(self, query: str, *values: Any) -> sqlite3.Cursor:
        """Run a statement inside the transaction that is being written."""
        return self._writer.execute(query, values)

    def _put(
        self, table: str, values: Mapping[str, Any], more: str = "", *, sealed: Iterable[str] | None = None
    ) -> None:
        """Write a row with its seal, which is of all its columns or some, inside the transaction."""
        names = ", ".join([*values, "seal"])
        marks = ", ".join("?" * (len(values) + 1))
        self._write(f"INSERT INTO {table}({names}) VALUES({marks}) {more}", *values.values(), _seal(values, sealed))

    def _sealed(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """Return the rows of a query for all columns of a table; StorageError if one was changed."""
        found = self._read(query, *values)
        for row in found:
            self._check(row, [name for name in row.keys() if name not in _UNSEALED])  # noqa: SIM118
        return found

    def _check(self, row: sqlite3.Row, names: Iterable[str], seal: str = "seal") -> None:
        """Raise if a value of a row was changed since it was written."""
        if row[seal] != _seal(dict(row), names):
            raise self.damaged(f"a value has changed since it was written, beside {seal}")

    # Assets, inputs, readings and verdicts. What writes does so inside a transaction.

    def open_asset(self, name: str) -> AssetRecord:
        """Return an asset, made if it is new."""
        if not self._read("SELECT 1 FROM assets WHERE name=?", name):
            self._write("INSERT INTO assets(name, settings) VALUES(?, '{}')", name)
            (row,) = self._read(f"{_ASSETS} WHERE name=?", name)
            self.save_asset(_asset_record(row), with_state=True)
        return self.asset(name)

    def asset(self, name: str) -> AssetRecord:
        """Return an asset; LookupError if there is none of this name."""
        for row in self._read(f"{_ASSETS} WHERE name=?", name):
            self._check(row, _ASSET_FIELDS)
            self._check(row, ["state"], "state_seal")
            return _asset_record(row)
        raise LookupError(f"There is no asset {name!r:.80}.")

    def asset_ids(self) -> list[int]:
        """Return the ids of all assets that were ever watched."""
        return [row["id"] for row in self._read("SELECT id FROM assets ORDER BY id")]

    def asset_names(self) -> list[str]:
        """Return the names of all assets that were ever watched."""
        return [row["name"] for row in self._read("SELECT name FROM assets ORDER BY id")]

    def save_asset(self, record: AssetRecord, *, with_state: bool) -> None:
        """Write an asset as it is now, apart from what is wanted of it."""
        settings, counts = json.dumps(record.settings, sort_keys=True), json.dumps(record.counts)
        plain = {name: getattr(record, name) for name in _ASSET_FIELDS} | {"settings": settings, "counts": counts}
        plain |= {"seal": _seal(plain)}
        if with_state:
            plain |= {"state": record.state, "state_seal": _seal({"state": record.state})}
        changed = ", ".join(f"{name}=?" for name in plain)
        self._write(f"UPDATE assets SET {changed} WHERE id=?", *plain.values(), record.id)

    # The models of an asset.

    def add_model(
        self,
        asset: int,
        digest: str,
        data: bytes | None,
        source: str,
        who: str,
        at: float,
        note: str = "",
        names: Sequence[str] | None = None,
    ) -> int:
        """Return the version of a model, a new one unless the asset has it.

        data : its file, which is kept; None for a model that learns from the rows.
        names : its inputs; None: not known before its first row.

        The files of the newest 20 versions of an asset are kept, that in use and the one before it besides.
        """
        mine = {row["version"]: row["digest"] for row in self._write(_MODELS, asset)}
        if data is not None:
            self._write("INSERT OR IGNORE INTO model_files VALUES(?, ?)", digest, data)
        for version, known in mine.items():
            if known == digest:
                return int(version)
        version = max(mine, default=0) + 1
        query = "INSERT INTO models(asset, version, digest, source, note, added, who, names) VALUES(?,?,?,?,?,?,?,?)"
        known = None if names is None else json.dumps(names)
        self._write(query, asset, version, digest, source, note, at, who, known)
        if len(mine) >= _MOST_FILES:
            self._write(
                "DELETE FROM model_files WHERE digest NOT IN (SELECT digest FROM models AS each WHERE version > "
                "(SELECT max(version) FROM models WHERE asset = each.asset) - ? OR EXISTS (SELECT 1 FROM assets JOIN "
                "models AS used ON used.asset = assets.id AND used.version = assets.version WHERE assets.id = "
                "each.asset AND each.version IN (used.version, used.before)))", _MOST_FILES
            )  # fmt: skip
        return version

    def use_model(self, record: AssetRecord, version: int, settings: dict[str, Any], at: float) -> None:
        """Put a version into use, from the next row on and from a fresh state."""
        if version != record.version:
            values = (at, record.version or None, record.id, version)
            self._write("UPDATE models SET used=?, before=? WHERE asset=? AND version=?", *values)
        record.version, record.settings, record.wanted = version, settings, None
        record.state, record.state_row = None, record.rows
        self.save_asset(record, with_state=True)
        self.want_model(record.id, None)
        row = self._write("SELECT columns FROM models WHERE asset=? AND version=?", record.id, version).fetchone()
        record.columns = _names(row["columns"])

    def save_columns(self, record: AssetRecord, names: Sequence[str]) -> None:
        """Write the columns of the rows of the version in use, and the inputs by which it names sensors."""
        plain = json.dumps(names), json.dumps(record.columns)
        self._write(
            "UPDATE models SET names=?, columns=? WHERE asset=? AND version=?", *plain, record.id, record.version
        )

    def models(self, asset: int) -> dict[int, ModelVersion]:
        """Return the models of an asset by their versions."""
        return {row["version"]: _model_version(row) for row in self._read(_MODELS, asset)}

    def model_file(self, digest: str) -> bytes:
        """Return the file of a model; LookupError if it is not kept."""
        for row in self._read("SELECT data FROM model_files WHERE digest=?", digest):
            if hashlib.sha256(row["data"]).hexdigest() != digest:
                raise self.damaged(f"the model {digest[:12]} has changed since it was written")
            return bytes(row["data"])
        raise LookupError(f"The model {digest[:12]} is not kept in {self.path}.")

    def want_model(self, asset: int, wanted: dict[str, Any] | None) -> None:
        """Ask the service for another version (`version`, `who`, `other_columns`); None: it was done, or cannot be."""
        self._write("UPDATE assets SET wanted=? WHERE id=?", None if wanted is None else json.dumps(wanted), asset)

    def wanted_models(self) -> dict[str, dict[str, Any]]:
        """Return what is asked for, by the name of the asset."""
        found = self._read("SELECT name, wanted FROM assets WHERE wanted IS NOT NULL")
        return {row["name"]: json.loads(row["wanted"]) for row in found}

    def positions(self, asset: int) -> dict[str, Any]:
        """Return the position in each input of an asset, by the name of the input."""
        rows = self._sealed("SELECT * FROM inputs WHERE asset=? ORDER BY rowid", asset)
        return {row["name"]: json.loads(row["position"]) for row in rows}

    def save_position(self, asset: int, name: str, position: Any) -> None:
        """Write the position in an input."""
        self._write("DELETE FROM inputs WHERE asset=? AND name=?", asset, name)  # the newest are the last
        self._put("inputs", {"asset": asset, "name": name, "position": json.dumps(position)})

    def forget_position(self, asset: int, name: str) -> None:
        """Remove the position in an input."""
        self._write("DELETE FROM inputs WHERE asset=? AND name=?", asset, name)

    def add_rows(self, asset: int, block: ScoredBlock) -> None:
        """Write rows with their verdicts and readings."""
        scores, seconds = block.scores, block.seconds.astype("<f8")
        parts = [seconds, scores.scores.astype("<f8"), scores.thresholds.astype("<f8"), scores.flags.astype("u1")]
        parts += [scores.variables.astype("<i4"), scores.residuals.astype("<f8")]
        reasons = {str(place): text for place, text in block.reasons.items()}
        plain = {
            "asset": asset,
            "first": block.first,
            "count": len(seconds),
            "received": block.received,
            "until": float(seconds.max()),
            "times": None if block.times is None else json.dumps(block.times),
            "version": block.version,
            "scores": b"".join(part.tobytes() for part in parts),
            "reasons": json.dumps(reasons) if reasons else None,
            "readings": None if block.values is None else block.values.astype("<f8").tobytes(),
            "texts": json.dumps(block.texts) if block.texts else None,
        }
        self._put("blocks", {**plain, "readings_seal": _seal(plain, _READING_FIELDS)}, sealed=_BLOCK_FIELDS)

    def rows(
        self, asset: int, *, after: int = 0, since: float | None = None, with_readings: bool = False
    ) -> Iterator[ScoredBlock]:
        """Yield the rows of an asset, in order: those after this number, or from this time on.

        Some are read at a time: a connection is not held while they are used.
        """
        columns = [*_BLOCK_FIELDS, "seal", *(("readings", "texts", "readings_seal") if with_readings else ())]
        query = f"SELECT {', '.join(columns)} FROM blocks WHERE asset=? AND first + count - 1 > ?"
        query += " AND first > ? - 100000" + ("" if since is None else " AND until >= ?")
        last = () if since is None else (since,)
        while True:
            found = self._read(f"{query} ORDER BY first LIMIT 256", asset, after, after, *last)
            for row in found:
                self._check(row, _BLOCK_FIELDS)
                if with_readings and row["readings"] is not None:
                    self._check(row, _READING_FIELDS, "readings_seal")
                yield _block(row, with_readings=with_readings)
            if len(found) < 256:
                return
            after = found[-1]["first"] + found[-1]["count"] - 1

    def count_rows(self, asset: int, *, after: int, since: float) -> int:
        """Return how many rows there may be after this number and from this time on, without reading them."""
        query = "SELECT coalesce(sum(count), 0) FROM blocks WHERE asset=? AND first + count - 1 > ? AND until >= ?"
        return int(self._read(query, asset, after, since)[0][0])

    def versions(self, asset: int, after: int) -> list[int]:
        """Return the versions of the model that have scored the rows after this number, in order."""
        query = (
            "SELECT version FROM blocks WHERE asset=? AND first + count - 1 > ? GROUP BY version ORDER BY min(first)"
        )
        return [row["version"] for row in self._read(query, asset, after)]

    def quarantine(self, asset: int, at: float, source: str, text: str, reason: str) -> None:
        """Keep the text of a row that could not be scored, and why."""
        query = "INSERT INTO quarantine(asset, at, source, text, reason) VALUES(?,?,?,?,?)"
        self._write(query, asset, at, source, text, reason)
        oldest = "SELECT number FROM quarantine WHERE asset=? ORDER BY number DESC LIMIT 1 OFFSET ?"
        self._write(f"DELETE FROM quarantine WHERE asset=? AND number <= ({oldest})", asset, asset, _MOST_QUARANTINED)

    def quarantined(self, asset: int) -> list[dict[str, Any]]:
        """Return such rows of an asset, the newest first."""
        query = "SELECT at, source, text, reason FROM quarantine WHERE asset=? ORDER BY number DESC"
        return [dict(row) for row in self._read(query, asset)]

    def remove_old(self, asset: int, now: float, reading_days: float, verdict_days: float, most: int = 100) -> int:
        """Remove what is older than so many days of an asset, at most so many blocks at once; return how many.

        Readings from which a model state is still to be computed again stay.
        """
        oldest = "SELECT first FROM blocks WHERE asset=?{} ORDER BY first LIMIT ?"
        state_row = "(SELECT state_row FROM assets WHERE id=?)"
        where = f"WHERE asset=? AND received < ? AND first + count - 1 <= {state_row} AND first IN ({{}})"
        forget = "UPDATE blocks SET readings=NULL, texts=NULL, readings_seal=NULL"
        of_readings = where.format(oldest.format(" AND readings IS NOT NULL"))
        removed = 0
        for query, days in (
            (f"{forget} {of_readings}", reading_days),
            (f"DELETE FROM blocks {where.format(oldest.format(''))}", verdict_days),
        ):
            removed += self._write(query, asset, now - days * 86400, asset, asset, most).rowcount
        return removed

    # Alarms, labels, the audit log.

    def add_change(self, identity: str, alarm: str, at: float, record: dict[str, Any]) -> None:
        """Write a change of an alarm, or of what its id is."""
        self._put("changes", {"id": identity, "alarm": alarm, "at": at, "record": json.dumps(record)})

    def save_alarm(self, identity: str, asset: str, began: float, is_open: bool, record: dict[str, Any]) -> None:
        """Write an alarm as it is now."""
        self._write("DELETE FROM alarms WHERE id=?", identity)
        plain = {"id": identity, "asset": asset, "began": began, "open": is_open, "record": json.dumps(record)}
        self._put("alarms", plain)

    def alarms(self, *, only_open: bool = False, asset: str | None = None, limit: int = 1000) -> list[dict[str, Any]]:
        """Return alarms, the newest first, with `open`: whether it is not closed."""
        query = "SELECT * FROM alarms WHERE open >= ? AND asset=coalesce(?, asset) ORDER BY began DESC, id LIMIT ?"
        rows = self._sealed(query, int(only_open), asset, limit)
        return [{**json.loads(row["record"]), "open": bool(row["open"])} for row in rows]

    def alarms_of(self, identities: Iterable[str]) -> list[dict[str, Any]]:
        """Return alarms by their ids."""
        found = [self._sealed("SELECT * FROM alarms WHERE id=?", each) for each in identities]
        return [json.loads(row["record"]) for rows in found for row in rows]

    def alarm(self, identity: str) -> dict[str, Any]:
        """Return an alarm, as `alarms` does; LookupError if there is none."""
        for row in self._sealed("SELECT * FROM alarms WHERE id=?", identity):
            return {**json.loads(row["record"]), "open": bool(row["open"])}
        raise LookupError(f"There is no alarm {identity!r:.80}.")

    def changes(self, alarm: str | None = None, *, since: float = 0.0, most: int = 1_000_000) -> list[dict[str, Any]]:
        """Return changes in order, of one alarm or of all; the last ones, if there are more than so many."""
        where, values = ("at >= ?", [since]) if alarm is None else ("alarm=? AND at >= ?", [alarm, since])
        found = self._sealed(f"SELECT * FROM changes WHERE {where} ORDER BY number DESC LIMIT ?", *values, most)
        return _records(reversed(found))

    def each_change(self, since: float, most: int = 200_000) -> Iterator[dict[str, Any]]:
        """Yield changes from a time on in order, the last ones if there are more than so many; read some at a time."""
        number = int(self._read("SELECT coalesce(max(number), 0) FROM changes")[0][0]) - most
        query = "SELECT * FROM changes WHERE number > ? AND at >= ? ORDER BY number LIMIT 1000"
        while found := self._sealed(query, number, since):
            yield from _records(found)
            number = found[-1]["number"]

    def changes_after(self, number: int, most: int = 20_000) -> tuple[int, list[dict[str, Any]]]:
        """Return changes after this number in the order in which they were written, the last ones, and the last number.

        A number below 0 asks for no changes.
        """
        newest = int(self._read("SELECT coalesce(max(number), 0) FROM changes")[0][0])
        first = newest if number < 0 else max(number, newest - most)
        return newest, _records(self._sealed("SELECT * FROM changes WHERE number > ? ORDER BY number", first))

    def mark(self, name: str) -> Any:
        """Return what was kept under a name by `Service.post`; None if there is none."""
        return self.book(f"~{name}")  # no asset's group begins so

    def book(self, name: str) -> Any:
        """Return a part of the state of the alarms; None if it was never saved."""
        rows = self._sealed("SELECT * FROM books WHERE name=?", name)
        return json.loads(rows[0]["state"]) if rows else None

    def book_names(self) -> list[str]:
        """Return the names of the parts of the alarms' state."""
        return [row["name"] for row in self._read("SELECT name FROM books WHERE name NOT LIKE '~%' ORDER BY name")]

    def save_book(self, name: str, state: Any) -> None:
        """Write a part of the state of the alarms."""
        self._write("DELETE FROM books WHERE name=?", name)
        self._put("books", {"name": name, "state": json.dumps(state)})

    def save_label(self, identity: str, record: dict[str, Any]) -> None:
        """Write a label, or what it is now."""
        again = "ON CONFLICT(id) DO UPDATE SET record=excluded.record, seal=excluded.seal"
        self._put("labels", {"id": identity, "record": json.dumps(record)}, again)

    def labels(self) -> list[dict[str, Any]]:
        """Return all labels, those taken back too, in their order."""
        return _records(self._sealed("SELECT * FROM labels ORDER BY number"))

    def add_audit(self, at: float, who: str, action: str, subject: str, details: dict[str, Any]) -> None:
        """Write a line of the audit log."""
        plain = {"at": at, "who": who, "action": action, "subject": subject, "details": json.dumps(details)}
        self._put("audit", plain)

    def audit(self, limit: int = 1000) -> list[dict[str, Any]]:
        """Return the last lines of the audit log, the newest first."""
        rows = self._sealed("SELECT * FROM audit ORDER BY number DESC LIMIT ?", limit)
        plain = [{name: row[name] for name in row.keys() if name != "seal"} for row in rows]  # noqa: SIM118
        return [{**each, "details": json.loads(each["details"])} for each in plain]

    def answered(self, identity: str) -> tuple[str, Any] | None:
        """Return a command that was done for a request, and its answer; None if there is none."""
        rows = self._read("SELECT command, answer FROM answers WHERE id=?", identity)
        return (rows[0]["command"], json.loads(rows[0]["answer"])) if rows else None

    def add_answer(self, identity: str, at: float, command: str, answer: Any) -> None:
        """Keep the answer to a request; the newest are kept."""
        query = "INSERT INTO answers(id, at, command, answer) VALUES(?,?,?,?)"
        self._write(query, identity, at, command, json.dumps(answer))
        self._write("DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - ?", _MOST_ANSWERS)

    # The outbox.

    def add_message(self, identity: str, target: str, created: float, payload: dict[str, Any]) -> None:
        """Put a message into the outbox, once for an id and target."""
        query = "INSERT OR IGNORE INTO outbox(id, target, created, payload) VALUES(?,?,?,?)"
        self._write(query, identity, target, created, json.dumps(payload))

    def messages(self, due: float | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """Return the whole outbox, sent or not; with `due`, some messages that are to be sent then."""
        query, values = "", tuple[Any, ...]()
        if due is not None:
            query = "WHERE delivered IS NULL AND (next_try <= ? OR next_try > ?) ORDER BY number LIMIT ?"
            values = (due, due + _LONGEST_WAIT, limit)
        rows = self._read(f"SELECT * FROM outbox {query or 'ORDER BY number'}", *values)
        return [{**dict(row), "payload": json.loads(row["payload"])} for row in rows]

    def note_message(self, number: int, *, delivered: float | None, problem: str | None, next_try: float) -> None:
        """Note an attempt to send a message."""
        query = "UPDATE outbox SET attempts=attempts+1, delivered=?, problem=?, next_try=? WHERE number=?"
        self._write(query, delivered, problem, next_try, number)

    def count_waiting(self) -> int:
        """Return how many messages are not delivered."""
        return int(self._read("SELECT count(*) FROM outbox WHERE delivered IS NULL")[0][0])

    # Tokens, in transactions of their own.

    def add_token(self, name: str, role: str, now: float) -> str:
        """Return a new token for a name, which replaces an older one; only its hash is kept."""
        token = secrets.token_urlsafe(32)
        with self.transaction():
            self._write("INSERT OR REPLACE INTO tokens VALUES(?,?,?,?)", name, role, hash_token(token), now)
        return token

    def remove_token(self, name: str) -> None:
        """Remove the token of a name; LookupError if there is none."""
        with self.transaction():
            if not self._write("DELETE FROM tokens WHERE name=?", name).rowcount:
                raise LookupError(f"There is no token of {name!r:.80}.")

    def tokens(self) -> list[tuple[str, str, str]]:
        """Return name, role and hash of each token."""
        return [(row["name"], row["role"], row["hash"]) for row in self._read("SELECT * FROM tokens")]


def find_token(token: str, tokens: Sequence[tuple[str, str, str]]) -> tuple[str, str] | None:
    """Return name and role of a token, in a time that does not depend on which one it is; None if it is unknown."""
    given, found = hash_token(token), None
    for name, role, known in tokens:
        if hmac.compare_digest(given, known):
            found = (name, role)
    return found


def hash_token(token: str) -> str:
    # A token has 256 random bits: a slow hash, as for passwords, would add nothing.
    return hashlib.sha256(token.encode("utf-8", errors="surrogatepass")).hexdigest()


def _seal(values: Mapping[str, Any], names: Iterable[str] | None = None) -> int:
    """Return a checksum of values by name, or of some of them: numbers, texts, bytes and None, as SQLite has them."""
    found = 0
    for name in sorted(values if names is None else names):
        value = values[name]
        if not isinstance(value, bytes):
            value = repr(float(value) if isinstance(value, int | float) else value).encode()
        found = zlib.crc32(value, zlib.crc32(name.encode(), found))
    return found


def _identity(file: Path) -> tuple[int, int]:
    """Return which file is at a place; none has the answer for a place without one."""
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _records(rows: Iterable[sqlite3.Row]) -> list[dict[str, Any]]:
    return [json.loads(row["record"]) for row in rows]


def _block(row: sqlite3.Row, *, with_readings: bool) -> ScoredBlock:
    n, data = row["count"], row["scores"]
    seconds, scores, thresholds = np.frombuffer(data, "<f8", 3 * n).reshape(3, n)
    flags = np.frombuffer(data, "u1", n, 24 * n).astype(np.bool_)
    named = (len(data) - 25 * n) // 12
    variables = np.frombuffer(data, "<i4", named, 25 * n).reshape(n, -1).astype(np.intp)
    residuals = np.frombuffer(data, "<f8", named, 25 * n + 4 * named).reshape(n, -1)
    found = StreamScores(scores, thresholds, flags, variables, residuals)
    reasons = {int(place): text for place, text in json.loads(row["reasons"] or "{}").items()}
    times = None if row["times"] is None else json.loads(row["times"])
    place = (row["first"], row["received"], seconds, times, row["version"], found, reasons)
    if not with_readings or row["readings"] is None:
        return ScoredBlock(*place)
    return ScoredBlock(*place, np.frombuffer(row["readings"], "<f8").reshape(n, -1), json.loads(row["texts"] or "{}"))


def _asset_record(row: sqlite3.Row) -> AssetRecord:
    plain = {name: value for name, value in dict(row).items() if name not in ("seal", "state_seal")}
    read: dict[str, Any] = {name: json.loads(plain[name] or "null") for name in ("settings", "counts", "wanted")}
    return AssetRecord(**{**plain, **read, "counts": Counter(read["counts"]), "columns": _names(plain["columns"])})


def _model_version(row: sqlite3.Row) -> ModelVersion:
    plain = {name: value for name, value in dict(row).items() if name != "asset"}
    return ModelVersion(**{**plain, **{name: _names(plain[name]) for name in ("names", "columns")}})


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(json.loads(text))
