"""Fit a detector on a Dask cluster: same detector, same result, more rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import penstock
from penstock._parameters import check_whole_number
from penstock._progress import logged_fit
from penstock.detectors import (
    NSNMF,
    BaseDetector,
    ClusterPlan,
    Copies,
    Detector,
    SensorDetector,
    cluster_plan,
    restore_on_failure,
)
from penstock.factor import RowBlocks
from penstock.graph.partition import sample_size
from penstock.graph.rows import different_rows
from penstock.scale.cluster import Cluster, Progress, use_cluster
from penstock.scale.factor_fit import check_solver, fit_factors
from penstock.scale.plan import MOST_PARTS, check_memory_of_driver, check_pieces, settled_plan
from penstock.scale.rows import PieceLayout, cut_into_parts, joint_extent, lay_rows, measure
from penstock.scale.series_fit import fit_series, order_digest
from penstock.scale.sources import Source, open_source
from penstock.scale.tree import LaidRows
from penstock.scale.views_fit import fit_views
from penstock.scale.workspace import SOURCE_FOLDER, Workspace, open_workspace

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
        Parquet files (a path, a folder, a list), or a table in memory. Missing values are for `SensorDetector` alone.
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
        opened = open_source(source, space / SOURCE_FOLDER, columns=columns)
        check_pieces(cluster, opened)
        order = {"order": order_digest(time, runs)} if is_series else {}
        space.begin(_described(detector, opened, n_parts) | order)
        seen = None
        keeps = folder is not None
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
    copies = Copies(*different_rows(laid.originals(merge=needs.merge_copies)))
    tree = laid.tree(cluster)
    if isinstance(detector, Detector):
        views = fit_views(cluster, laid, detector.random_state, plan, copies, tree, keeps_files=keeps_files)
        return steps.install(views)
    return fit_factors(cluster, laid, detector, steps, copies, tree, keeps_files=keeps_files)


def _asked_parts(detector: Any, n_parts: int | None) -> int | None:
    """Return how many parts are asked for, by the caller or by the solver's blocks, which must agree."""
    solver = detector.solver if isinstance(detector, NSNMF) else None
    blocks = solver.n_blocks if isinstance(solver, RowBlocks) else None
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
