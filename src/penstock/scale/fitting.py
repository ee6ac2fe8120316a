"""A detector fitted on a Dask cluster: the same detector, the same answer, more rows."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

import penstock
from penstock._parameters import check_choice, check_whole_number
from penstock.detectors import BaseDetector, Detector, restore_on_failure
from penstock.graph.approximate import Approximation
from penstock.scale.cluster import Cluster, Progress, terminal_progress, use_cluster
from penstock.scale.factor_fit import FactorJob, asked_blocks, refuse_solver
from penstock.scale.job import Job, refuse_unsupported
from penstock.scale.plan import MOST_PARTS, check_pieces
from penstock.scale.sources import open_source
from penstock.scale.views_fit import ViewsJob
from penstock.scale.workspace import SOURCE_FOLDER, Workspace, open_workspace

AnyDetector = TypeVar("AnyDetector", bound=BaseDetector)


def fit(
    detector: AnyDetector,
    source: Any,
    client: Any = None,
    *,
    folder: str | Path | None = None,
    columns: Sequence[str] | None = None,
    n_parts: int | None = None,
    tree: Literal["exact", "approximate"] | Approximation = "exact",
    progress: Progress | None = None,
) -> AnyDetector:
    """Fit a detector on a Dask cluster, and return it.

    It is then fitted as by its own `fit`: scores, thresholds, explanations, `save` and all else work as ever. The tree
    is the same to the last bit, and so are the scores of a `Detector`; a factorisation is that of the same detector
    with ``solver=Auto(n_blocks=…)`` (or its own solver by blocks) on one machine.

    Parameters
    ----------
    detector : Detector, NSNMF, LaplacianNSNMF or NMF
        Is changed, as `fit` changes it; left as it was should anything fail.
    source
        Parquet files (a path, a folder, a list), a Zarr array or its path, a Dask array or dataframe, or a table in
        memory. Missing values are refused.
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
    tree : {"exact", "approximate"} or Approximation
        "approximate" (or an `Approximation` that says how hard to look) settles for part trees that may be a little
        longer; `tree_excess_` then says by what share they were longer on a sample of the rows. The local view of a
        `Detector` is then approximate, and so are its false-alarm rates; of its two trees, of rows as they are and
        encoded, `tree_excess_` is that of the worse.
    progress : callable, optional
        Called with (what is done, how many of its tasks are done, how many there are). By default a bar on a terminal,
        nothing elsewhere.

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
    refuse_unsupported(detector)
    if not isinstance(detector, Detector):
        refuse_solver(detector)
    n_parts = _asked_parts(detector, n_parts)
    if not isinstance(tree, Approximation):
        check_choice("tree", tree, ("exact", "approximate"))
    with (
        restore_on_failure(detector),
        terminal_progress(progress) as report,
        open_workspace(folder) as space,
        use_cluster(client, report) as cluster,
    ):
        detector.check_parameters()
        cluster.check()
        cluster.check_sees(space.folder)
        job = _open_job(cluster, space, detector, source, columns, n_parts, tree)
        job.run(keeps_files=folder is not None, table=source)
    return detector


def _asked_parts(detector: Any, n_parts: int | None) -> int | None:
    """How many parts are asked for, by the caller or by the solver's blocks, which are one and the same."""
    blocks = None if isinstance(detector, Detector) else asked_blocks(detector.solver)
    if n_parts is None:
        return blocks
    check_whole_number("n_parts", n_parts, least=1)
    if n_parts > MOST_PARTS:
        raise ValueError(f"n_parts must be at most {MOST_PARTS:,}, but is {n_parts:,}: pairs of parts are tasks.")
    if blocks is not None and blocks != n_parts:
        raise ValueError(f"Parts are the blocks of the solver: n_parts = {n_parts}, but its n_blocks = {blocks}.")
    return n_parts


def _open_job(
    cluster: Cluster,
    space: Workspace,
    detector: Any,
    source: Any,
    columns: Sequence[str] | None,
    n_parts: int | None,
    tree: Literal["exact", "approximate"] | Approximation,
) -> Job:
    opened = open_source(source, columns=columns, folder=space / SOURCE_FOLDER)
    check_pieces(cluster, opened)
    asked = {
        "detector": type(detector).__name__,
        **{f"parameter {name}": _shown(value) for name, value in sorted(detector.get_params(deep=False).items())},
        "source": opened.signature,
        "n_parts": n_parts,
        "tree": repr(tree),
        "penstock": penstock.__version__,
    }
    space.begin(asked)
    kind = ViewsJob if isinstance(detector, Detector) else FactorJob
    return kind(cluster, space, secrets.token_hex(3), detector, opened, n_parts, tree)


def _shown(value: Any) -> str:
    """A parameter as text that is the same in the next process: not the address of a source of random numbers."""
    return type(value).__name__ if isinstance(value, np.random.RandomState | np.random.Generator) else repr(value)
