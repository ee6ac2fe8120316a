"""Fit a detector on a Dask cluster (same detector, same result, more rows), and score new rows out of core."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

import penstock
from penstock._parameters import check_whole_number
from penstock._progress import logged_fit
from penstock._types import FloatArray, Tree
from penstock.detectors import (
    NSNMF,
    BaseDetector,
    ClusterPlan,
    Copies,
    Detector,
    FactorModel,
    SensorDetector,
    ViewsModel,
    cluster_plan,
    load,
    restore_on_failure,
    score_array,
    with_model_alone,
)
from penstock.graph.partition import sample_size
from penstock.io import TableError
from penstock.scale.cluster import Cluster, Progress, use_cluster
from penstock.scale.factor_fit import asked_blocks, check_solver, fit_factors
from penstock.scale.plan import (
    MOST_PARTS,
    check_memory_for_model,
    check_memory_of_driver,
    check_pieces,
    settled_plan,
)
from penstock.scale.rows import PieceLayout, cut_into_parts, joint_extent, lay_rows, measure
from penstock.scale.series_fit import fit_series, order_digest
from penstock.scale.sources import Piece, Source, open_source
from penstock.scale.tree import LaidRows, PartsSearch
from penstock.scale.views_fit import fit_views
from penstock.scale.workspace import SOURCE_FOLDER, Workspace, open_workspace, pickle_by_path, save_array

_VIEWS_COUNT_AS = 4  # components: what the driver keeps of each row

AnyDetector = TypeVar("AnyDetector", bound=BaseDetector)


def fit(
    detector: AnyDetector,
    source: Any,
    client: Any = None,
    *,
    folder: str | Path | None = None,
    columns: Sequence[str] | None = None,
    n_parts: int | None = None,
    time: Any = None,
    runs: Any = None,
    progress: Progress | None = None,
) -> AnyDetector:
    """Fit a detector on a Dask cluster, and return it.

    Use it where the rows do not fit into the memory of one machine, or one machine takes too long. The detector is then
    fitted as by its own `fit`: scores, thresholds, explanations and `save` work as ever. The tree is the same to the
    last bit, and so are the scores of a `Detector`; a factorisation is that of the same detector with
    ``solver=RowBlocks(…)`` on one machine.

    Parameters
    ----------
    detector : NSNMF, Detector or SensorDetector
        Is changed, as `fit` changes it; left as it was should anything fail.
    source
        Parquet files (a path, a folder, a list), a Dask array or dataframe, or a table in memory. Missing values are
        for `SensorDetector` alone.
    client : distributed.Client, optional
        By default workers are started on this machine, one for each core, and closed at the end.
    folder : path, optional
        Where the job keeps its files. All workers must see it under this path; if it is new, it is created for this
        user alone. If a run is cut short, the same call with the same folder goes on from there; afterwards the
        detector's large arrays are read from it, so it must stay. By default a temporary folder on this machine is
        used and the result is read into memory.
    columns : list of str, optional
        The columns to use, where the source has names.
    n_parts : int, optional
        Into how many parts the rows are cut; by default as many as keep workers busy and fit into their memory.
    time, runs : array-like of shape (n,), optional
        Of the rows of a series, for a `SensorDetector`, as in its `fit`. Its rows must come in order of time, piece
        after piece: of a folder, by the names of the files.
    progress : callable, optional
        Called with (what is done, how many of its tasks are done, how many there are). By default the logger
        "penstock.fit" says so at the level INFO, as for other fits.

    Returns
    -------
    The detector.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock import NSNMF, scale
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> X[11] += 9
    >>> with scale.local_client(n_workers=1) as client:
    ...     detector = scale.fit(NSNMF(n_components=2, similarity="binary", random_state=0), X, client)
    >>> detector.top(1).index.tolist()
    [11]
    """
    steps = cluster_plan(detector)
    if steps is None:
        raise TypeError(
            f"{type(detector).__name__} cannot be fitted on a cluster; those that can: NSNMF, Detector and "
            f"SensorDetector. Fit it on one machine, on a sample of the rows if these are too many."
        )
    if isinstance(detector, NSNMF):
        check_solver(detector)
    n_parts = _asked_parts(detector, n_parts)
    is_series = isinstance(detector, SensorDetector)
    if (time is not None or runs is not None) and not is_series:
        raise TypeError(f"{type(detector).__name__} does not look at time. Leave out time and runs.")
    with (
        restore_on_failure(detector),
        logged_fit(type(detector).__name__),
        open_workspace(folder) as space,
        use_cluster(client, progress) as cluster,
    ):
        detector.check_parameters()
        cluster.check()
        cluster.check_sees(space.folder)
        opened = open_source(
            source, space / SOURCE_FOLDER, cluster, columns=columns, takes_missing=isinstance(detector, SensorDetector)
        )
        check_pieces(cluster, opened)
        order = {"order": order_digest(time, runs)} if is_series else {}
        space.begin(_described(detector, opened, n_parts) | order)
        seen, keeps = None, folder is not None
        if isinstance(detector, SensorDetector):
            scores, seen = fit_series(cluster, space, detector, steps, opened, source, time, runs, keeps_files=keeps)
        else:
            scores = _fit(cluster, space, detector, steps, opened, n_parts, keeps_files=keeps)
        steps.finish(scores, seen=seen, table=source)
    return detector


def _fit(
    cluster: Cluster, space: Workspace, detector: Any, steps: ClusterPlan, source: Source, n_parts: int | None,
    *, keeps_files: bool,
) -> Any:  # fmt: skip
    """Fit all but the threshold; return the scores of the training rows."""
    extents = measure(cluster, space, source)
    extent = joint_extent(extents)
    n, p = extent.n_rows, source.n_columns
    # A `Detector` has two tables of all rows, as they are and encoded.
    tables, n_components = (2, _VIEWS_COUNT_AS) if isinstance(detector, Detector) else (1, detector.n_components)
    check_memory_of_driver(n, tables * p, n_components, keeps_files=keeps_files)
    scaling, needs = steps.begin(n, extent.minimum, extent.maximum, source.columns), steps.needs
    plan = settled_plan(space, cluster, n, p, n_components, n_parts, tables=tables)
    n_sampled = sample_size(plan.n_parts)
    lay_rows(cluster, space, source, extents, PieceLayout(source.columns, False, scaling, needs.nonnegative, n_sampled))
    parts = cut_into_parts(cluster, space, plan, merge_copies=needs.merge_copies)
    ends = np.array([extent.minimum, extent.maximum])
    laid = LaidRows(space, parts, n, *(ends if scaling is None else scaling.apply(ends)))
    copies = Copies.from_originals(laid.originals(merge=needs.merge_copies))
    tree = laid.tree(cluster)
    if isinstance(detector, Detector):
        views = fit_views(cluster, laid, detector.random_state, plan, copies, tree, keeps_files=keeps_files)
        return steps.install(views)
    return fit_factors(cluster, laid, detector, steps, copies, tree, keeps_files=keeps_files)


def _asked_parts(detector: Any, n_parts: int | None) -> int | None:
    """Return how many parts are asked for, by the caller or by the solver's blocks, which must agree."""
    blocks = asked_blocks(detector.solver) if isinstance(detector, NSNMF) else None
    if n_parts is None:
        return blocks
    check_whole_number("n_parts", n_parts, least=1)
    if n_parts > MOST_PARTS:
        raise ValueError(f"n_parts must be at most {MOST_PARTS:,}, but is {n_parts:,}: pairs of parts are tasks.")
    if blocks is not None and blocks != n_parts:
        raise ValueError(f"Parts are the blocks of the solver: n_parts = {n_parts}, but its n_blocks = {blocks}.")
    return n_parts


def _described(detector: Any, source: Source, n_parts: int | None) -> dict[str, Any]:
    """Describe a job by what it depends on, in texts that are the same in the next process."""

    def shown(value: Any) -> str:
        has_address = isinstance(value, np.random.RandomState | np.random.Generator)
        return type(value).__name__ if has_address else repr(value)

    return {
        "detector": type(detector).__name__,
        **{f"parameter {name}": shown(value) for name, value in sorted(detector.get_params(deep=False).items())},
        "source": source.signature,
        "n_parts": n_parts,
        "penstock": penstock.__version__,
    }


_AT_ONCE = 1 << 17  # rows: bounds the memory that a detector needs for them


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
        Called with (what is done, how many of its tasks are done, how many there are).

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
    with open_workspace(folder) as space, use_cluster(client, progress) as cluster:
        cluster.check()
        cluster.check_sees(space.folder)
        opened = open_source(source, space / SOURCE_FOLDER, cluster, columns=columns)
        _check_columns(detector, opened)
        check_pieces(cluster, opened)
        digest = hashlib.sha256(detector.scores_.tobytes()).hexdigest()
        space.begin({"scores by": digest, "source": opened.signature, "penstock": penstock.__version__})
        model = _sent(cluster, space, detector, digest)
        files = [space / f"scores-{number}.npy" for number in range(len(opened.pieces))]
        tasks = [(piece, model, file) for piece, file in zip(opened.pieces, files, strict=True)]
        cluster.run("scoring", score_piece, tasks)
        return np.concatenate([np.empty(0), *(np.load(file) for file in files)])  # not mapped: too many files


def _check_columns(detector: BaseDetector, source: Source) -> None:
    names = getattr(detector, "feature_names_in_", None)
    if source.n_columns != detector.n_features_in_:
        raise TableError(f"The source has {source.n_columns} columns; the detector knows {detector.n_features_in_}.")
    if names is not None and source.columns is not None and list(names) != list(source.columns):
        raise TableError(
            f"The detector knows the columns {list(names)}, in this order; the source has {list(source.columns)}. Say "
            f"columns={list(names)!r:.200}."
        )


@dataclass(frozen=True)
class Sent:
    """A detector as workers receive it: pickled with its large arrays as paths, or the path of its file.

    `digest` tells a worker whether it has the detector already, as a path may be used again.
    """

    digest: str
    content: bytes | Path


def _sent(cluster: Cluster, space: Workspace, detector: BaseDetector, digest: str) -> Sent:
    """Prepare the detector for workers: from the folder that it was fitted into, or in a file saved now."""
    model: Any = getattr(detector, "model_", None)
    nothing, no_tree = Copies(*np.zeros((2, 0), np.intp)), Tree(np.zeros((0, 2), np.intp), np.zeros(0))
    if isinstance(model, FactorModel) and isinstance(model.search, PartsSearch):
        return Sent(digest, pickle_by_path(with_model_alone(detector, replace(model, copies=nothing, tree=None))))
    if isinstance(model, ViewsModel) and isinstance(model.views.plain.search, PartsSearch):
        model = replace(model, copies=nothing, tree=no_tree, parts=np.zeros((0, 4)))
        return Sent(digest, pickle_by_path(with_model_alone(detector, model)))
    check_memory_for_model(cluster, detector)
    file = space / "model.penstock"
    if not file.exists():
        detector.save(file, labels=False)
    return Sent(digest, file)


_opened: dict[str, Any] = {}
_opening = Lock()


def _loaded(sent: Sent) -> Any:
    """Load the detector, once for each worker."""
    with _opening:
        if sent.digest not in _opened:
            _opened.clear()
            _opened[sent.digest] = load(sent.content) if isinstance(sent.content, Path) else pickle.loads(sent.content)
        return _opened[sent.digest]


def score_piece(piece: Piece, model: Sent, file: Path) -> None:
    """Task: save the scores of a piece in a file."""
    if file.exists():
        return
    rows, detector = piece.load(), _loaded(model)
    # Columns were compared when the source was opened: rows come as bare numbers, in the detector's order.
    chunks = (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))
    save_array(file, np.concatenate([np.empty(0), *(score_array(detector, chunk) for chunk in chunks)]))
