"""New rows scored on a Dask cluster, piece by piece, however many there are."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import penstock
from penstock._types import FloatArray
from penstock.detectors import BaseDetector, load
from penstock.scale.cluster import Call, Cluster, Progress, terminal_progress, use_cluster
from penstock.scale.model_files import FolderModel, FolderViews, folder_model
from penstock.scale.plan import check_memory_for_model, check_pieces
from penstock.scale.rows import given
from penstock.scale.sources import Source, SourceError, open_source, read_piece
from penstock.scale.workspace import SOURCE_FOLDER, Workspace, open_array, open_workspace, save_array

_MODEL = "model.penstock"
_AT_ONCE = 1 << 17  # rows: what a detector needs beside them stays small


def score(
    detector: BaseDetector,
    source: Any,
    client: Any = None,
    *,
    folder: str | Path | None = None,
    columns: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """How anomalous each row of a source is: `detector.anomaly_score`, on a Dask cluster and out of core.

    Workers load the source piece by piece and the detector once. Parameters are those of `penstock.scale.fit`, except
    that any fitted detector will do. With a folder, scores of finished pieces are kept in it, and the same call goes on
    from there if it was cut short.

    >>> import numpy as np
    >>> from penstock import NMF, scale
    >>> X = np.random.default_rng(0).uniform(size=(50, 3))
    >>> detector = NMF(n_components=2, random_state=0).fit(X)
    >>> with scale.local_client(n_workers=1) as client:
    ...     found = scale.score(detector, X, client)
    >>> np.array_equal(found, detector.anomaly_score(X))
    True
    """
    check_is_fitted(detector)
    with (
        terminal_progress(progress) as report,
        open_workspace(folder) as space,
        use_cluster(client, report) as cluster,
    ):
        cluster.check()
        cluster.check_sees(space.folder)
        opened = open_source(source, columns=columns, folder=space / SOURCE_FOLDER)
        _refuse_other_columns(detector, opened)
        check_pieces(cluster, opened)
        learnt = hashlib.sha256(detector.scores_.tobytes()).hexdigest()
        space.begin({"scores by": learnt, "source": opened.signature, "penstock": penstock.__version__})
        model, job = Sent(learnt, _model_for_workers(cluster, space, detector)), secrets.token_hex(3)
        counts = cluster.run(
            "scoring",
            [
                Call(
                    f"score-{job}-{number}",
                    score_piece,
                    (*given(piece), opened.columns, model, space / f"scores-{number}.npy"),
                )
                for number, piece in enumerate(opened.pieces)
            ],
        )
        parts = [np.load(space / f"scores-{number}.npy") for number in range(len(counts))]  # not mapped: too many files
        return np.concatenate([np.empty(0), *parts])


def score_piece(given: Any, label: str, columns: list[str] | None, model: Sent, file: Path) -> int:
    """The scores of a piece, in a file; how many rows it has."""
    if file.exists():
        return len(open_array(file))
    rows, detector = read_piece(given, label, columns), _loaded(model)
    if rows.shape[1] != detector.n_features_in_:
        raise SourceError(f"{label} has {rows.shape[1]} columns; the detector knows {detector.n_features_in_}.")
    chunks = (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))
    scores = [np.empty(0), *(detector.score_array(chunk) for chunk in chunks)]
    save_array(file, np.concatenate(scores))
    return len(rows)


@dataclass(frozen=True)
class Sent:
    """A detector as workers are sent it: where it lies, and by what they know whether they have it already."""

    learnt: str
    place: Path | FolderModel | FolderViews


_opened: dict[str, Any] = {}
_opening = Lock()


def _loaded(sent: Sent) -> Any:
    """The detector, which a worker reads once; it is known by what it has learnt, as a path may be used again."""
    with _opening:
        if sent.learnt not in _opened:
            _opened.clear()
            _opened[sent.learnt] = load(sent.place) if isinstance(sent.place, Path) else sent.place.open()
        return _opened[sent.learnt]


def _model_for_workers(cluster: Cluster, space: Workspace, detector: BaseDetector) -> Path | FolderModel | FolderViews:
    """The folder that the detector was fitted into, or a file that it is saved to now."""
    in_folder = folder_model(detector)
    if in_folder is not None:
        return in_folder
    check_memory_for_model(cluster, detector)
    file = space / _MODEL
    if not file.exists():
        detector.save(file, labels=False)
    return file


def _refuse_other_columns(detector: BaseDetector, source: Source) -> None:
    names = getattr(detector, "feature_names_in_", None)
    if source.n_columns != detector.n_features_in_:
        raise SourceError(f"The source has {source.n_columns} columns; the detector knows {detector.n_features_in_}.")
    if names is not None and source.columns is not None and list(names) != list(source.columns):
        raise SourceError(
            f"The detector knows the columns {list(names)}, in this order; the source has {list(source.columns)}. Say "
            f"columns={list(names)!r:.200}."
        )
