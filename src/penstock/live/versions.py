"""The models of an asset: which there are, which is in use, and how another is put into use while rows come.

Every model that an asset ever had is a version in the store, with its file. Verdicts and readings name the version
that they belong to, and the version names their sensors: they stay right whatever model comes after.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock._messages import listed
from penstock.detection import Model, load
from penstock.io import TableOptions
from penstock.live.options import WatchOptions
from penstock.live.scorers import Scorer, scorer_maker
from penstock.live.store import AssetRecord, ModelVersion, Store, StoreError

log = logging.getLogger("penstock.serve")


class SwitchError(StoreError):
    """A model cannot be put into use; the message says why, and what to do."""


class ModelShelf:
    """Return what makes the scorers of the version in use, and of others; a model is read once."""

    def __init__(self) -> None:
        self._makers: dict[tuple[str, str], Callable[[], Scorer]] = {}
        self._configured: dict[Any, tuple[str, bytes | None]] = {}

    def configured(self, options: WatchOptions) -> tuple[str, bytes | None]:
        """Return digest and file of the model that options name, as they were when this was asked first.

        An error says what is wrong with that model, not with the store.
        """
        key = (options.model, repr(options.threshold))
        if key not in self._configured:
            make = scorer_maker(options)
            found: tuple[str, bytes | None]
            if options.model is None:
                settings = json.dumps(make().settings(), sort_keys=True)
                found = f"online {hashlib.sha256(settings.encode()).hexdigest()}", None
            else:
                data = Path(options.model).read_bytes()
                found = hashlib.sha256(data).hexdigest(), data
            self._makers[found[0], key[1]], self._configured[key] = make, found
        return self._configured[key]

    def make(self, options: WatchOptions) -> Callable[[], Scorer]:
        """Return what makes the scorers of the model that options name."""
        return self._makers[self.configured(options)[0], repr(options.threshold)]

    def open(self, store: Store, record: AssetRecord, options: WatchOptions) -> Callable[[], Scorer]:
        """Return what makes the scorers of an asset, inside a transaction.

        It is of the version in use, unless the configuration names another model than at the last start.
        """
        digest, data = self.configured(options)
        version, now = record.version, time.time()
        if not version or record.configured != digest:
            version = store.add_model(record.id, digest, data, str(options.model or ""), "penstock", now)
            store.configure_asset(record, digest)
        mine = store.models_written(record.id)[version]
        if mine.digest != digest:
            where = f"version {version} is in use since a switch, not the one of the configuration"
            log.info("%s: %s", record.name, where)
        make = self._maker(store, mine, options)
        settings = make().settings()
        if version == record.version and settings == record.settings:
            return make
        if record.version:
            text = "%s: the model or its threshold has changed; version %d begins with row %d"
            log.warning(text, record.name, version, record.rows + 1)
            store.add_audit(now, "penstock", "new model", record.name, {"version": version, **settings})
        store.use_model(record, version, settings, now)
        return make

    def switch(
        self,
        store: Store,
        record: AssetRecord,
        options: WatchOptions,
        version: int,
        old: Scorer,
        *,
        other_columns: bool,
    ) -> Callable[[], Scorer]:
        """Put a version into use, inside a transaction, and return what makes its scorers; SwitchError if it cannot be.

        old : the scorer in use. A model of other columns than that has must be asked for by `other_columns`.
        """
        mine = store.models_written(record.id)
        if version not in mine:
            known = f"; there are 1 to {max(mine)}" if mine else ""
            raise SwitchError(f"{record.name} has no model version {version}{known}.")
        if version == record.version:
            raise SwitchError(f"{record.name}: version {version} is in use already.")
        make = self._maker(store, mine[version], options)
        scorer = make()
        gone, new = _columns(old), _columns(scorer)
        if set(gone) != set(new) and new and not other_columns:
            without = [name for name in gone if name not in new]
            besides = [name for name in new if name not in gone]
            parts = [f"without {listed(without)}"] * bool(without) + [f"with {listed(besides)}"] * bool(besides)
            text = f"Version {version} has other columns than version {record.version}: {' and '.join(parts)}. "
            text += "From the switch on, rows must bring its columns, and only these are kept; what is there stays. "
            raise SwitchError(f"{text}If that is meant, say so (--other-columns).")
        store.use_model(record, version, scorer.settings(), time.time())
        return make

    def _maker(self, store: Store, version: ModelVersion, options: WatchOptions) -> Callable[[], Scorer]:
        key = (version.digest, repr(options.threshold))
        if key not in self._makers:
            if not version.source:
                raise SwitchError(f"Version {version.version} learns from the rows with parameters of its own.")
            try:
                data = store.model_file(version.digest)
            except LookupError as error:
                raise SwitchError(f"{error!s:.200} Add its file again.") from None
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / Path(version.source).name
                file.write_bytes(data)
                given: dict[str, Any] = dict.fromkeys(options.online_parameters())  # of a model without a file
                self._makers[key] = scorer_maker(replace(options, model=file, **given))
        return self._makers[key]


def add_file(store: Store, asset: str, file: Path, source: str, who: str, note: str = "") -> int:
    """Add a model to an asset, and return its version; it is not used yet.

    LookupError if there is no such asset, StorageError if the file is no model.
    """
    record, data, model = store.asset(asset), file.read_bytes(), load(file)
    names = model.inputs.names if isinstance(model, Model) else None
    with store.transaction():
        digest = hashlib.sha256(data).hexdigest()
        version = store.add_model(record.id, digest, data, source, who, time.time(), note, names)
        details = {"version": version, "source": source, "note": note}
        store.add_audit(time.time(), who, "add model", asset, details)
    return version


def _columns(scorer: Scorer) -> tuple[str, ...]:
    """Return the columns that a scorer reads; empty if it reads whatever comes."""
    options = scorer.table_options(TableOptions())
    return (*options.columns, *options.texts)
