"""Score new rows on a Dask cluster, piece by piece and out of core."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import penstock
from penstock._types import FloatArray, Tree
from penstock.detectors import BaseDetector, Copies, FactorModel, ViewsModel, load
from penstock.scale.cluster import Cluster, Progress, terminal_progress, use_cluster
from penstock.scale.plan import check_memory_for_model, check_pieces
from penstock.scale.rows import given
from penstock.scale.sources import Source, SourceError, open_source, read_piece
from penstock.scale.tree import PartsSearch
from penstock.scale.workspace import (
    SOURCE_FOLDER,
    Workspace,
    open_array,
    open_workspace,
    pickle_by_path,
    save_array,
)

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
    """Score each row of a source: `detector.anomaly_score` on a Dask cluster and out of core.

    Use it for more rows than memory holds; for fewer, `detector.anomaly_score` is quicker. Workers load the source
    piece by piece and the detector once.

    Parameters
    ----------
    detector : BaseDetector
        Any fitted detector.
    source
        As in `penstock.scale.fit`.
    client : distributed.Client, optional
        By default workers are started on this machine, one for each core, and closed at the end.
    folder : path, optional
        Where scores of finished pieces are kept: the same call goes on from there if it was cut short. All workers must
        see it under this path. By default a temporary folder on this machine.
    columns : list of str, optional
        The columns to use, in the detector's order, where the source has names.
    progress : callable, optional
        Called with (what is done, how many of its tasks are done, how many there are). By default a bar on a terminal,
        nothing elsewhere.

    Returns
    -------
    array of shape (n,)
        The scores, in the order of the rows.

    Examples
    --------
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
        _check_columns(detector, opened)
        check_pieces(cluster, opened)
        learnt = hashlib.sha256(detector.scores_.tobytes()).hexdigest()
        space.begin({"scores by": learnt, "source": opened.signature, "penstock": penstock.__version__})
        model = _sent(cluster, space, detector, learnt)
        files = [space / f"scores-{number}.npy" for number in range(len(opened.pieces))]
        tasks = [(*given(piece), opened.columns, model, file) for piece, file in zip(opened.pieces, files, strict=True)]
        cluster.run("scoring", score_piece, tasks)
        return np.concatenate([np.empty(0), *(np.load(file) for file in files)])  # not mapped: too many files


def _check_columns(detector: BaseDetector, source: Source) -> None:
    names = getattr(detector, "feature_names_in_", None)
    if source.n_columns != detector.n_features_in_:
        raise SourceError(f"The source has {source.n_columns} columns; the detector knows {detector.n_features_in_}.")
    if names is not None and source.columns is not None and list(names) != list(source.columns):
        raise SourceError(
            f"The detector knows the columns {list(names)}, in this order; the source has {list(source.columns)}. Say "
            f"columns={list(names)!r:.200}."
        )


@dataclass(frozen=True)
class Sent:
    """A detector as workers receive it: pickled with its large arrays as paths, or the path of its file.

    `learnt` tells a worker whether it has the detector already, as a path may be used again.
    """

    learnt: str
    content: bytes | Path


def _sent(cluster: Cluster, space: Workspace, detector: BaseDetector, learnt: str) -> Sent:
    """The detector for workers: from the folder that it was fitted into, or in a file that it is saved to now."""
    model: Any = getattr(detector, "model_", None)
    nothing, no_tree = Copies(*np.zeros((2, 0), np.intp)), Tree(np.zeros((0, 2), np.intp), np.zeros(0))
    if isinstance(model, FactorModel) and isinstance(model.search, PartsSearch):
        return Sent(learnt, pickle_by_path(detector.with_model(replace(model, copies=nothing, tree=None))))
    if isinstance(model, ViewsModel) and isinstance(model.views.plain.search, PartsSearch):
        model = replace(model, copies=nothing, tree=no_tree, parts=np.zeros((0, 4)))
        return Sent(learnt, pickle_by_path(detector.with_model(model)))
    check_memory_for_model(cluster, detector)
    file = space / "model.penstock"
    if not file.exists():
        detector.save(file, labels=False)
    return Sent(learnt, file)


_opened: dict[str, Any] = {}
_opening = Lock()


def _loaded(sent: Sent) -> Any:
    """The detector, which a worker loads once."""
    with _opening:
        if sent.learnt not in _opened:
            _opened.clear()
            _opened[sent.learnt] = load(sent.content) if isinstance(sent.content, Path) else pickle.loads(sent.content)
        return _opened[sent.learnt]


def score_piece(given: Any, label: str, columns: list[str] | None, model: Sent, file: Path) -> int:
    """Task: save the scores of a piece in a file; return how many rows it has."""
    if file.exists():
        return len(open_array(file))
    rows, detector = read_piece(given, label, columns), _loaded(model)
    if rows.shape[1] != detector.n_features_in_:
        raise SourceError(f"{label} has {rows.shape[1]} columns; the detector knows {detector.n_features_in_}.")
    # Columns were compared when the source was opened: rows come as bare numbers, in the detector's order.
    chunks = (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))
    save_array(file, np.concatenate([np.empty(0), *(detector.score_array(chunk) for chunk in chunks)]))
    return len(rows)
