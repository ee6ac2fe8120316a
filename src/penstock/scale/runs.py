"""Tasks on runs of rows that lie in a file, one after the other."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.scale.cluster import Call, Cluster
from penstock.scale.plan import Plan
from penstock.scale.workspace import read_json, write_json
from penstock.views.blocks import BLOCK

_RUNS_PER_THREAD = 4


@dataclass(frozen=True)
class Runs:
    """How many rows a task takes: whole blocks of `block_sums`."""

    cluster: Cluster
    n_rows: int

    def starts(self, n: int) -> range:
        """Where the runs of n rows begin."""
        return range(0, n, self.n_rows)

    def each(
        self,
        stage: str,
        name: str,
        work: Callable[..., Any],
        file: Path,
        n: int,
        *given: Any,
        apart: Sequence[tuple[Any, ...]] | None = None,
    ) -> list[Any]:
        """What `work` finds in each run of the n rows of a file: given the run, what all are given, and what it alone.

        Tasks are called by a name of this turn, so that they are not taken for those of another.
        """
        starts, turn = self.starts(n), secrets.token_hex(3)
        calls = [
            Call(f"{name}-{turn}-{start}", work, (file, start, min(start + self.n_rows, n), *given, *own))
            for start, own in zip(starts, apart or [()] * len(starts), strict=True)
        ]
        return self.cluster.run(stage, calls)


def settled_runs(file: Path, cluster: Cluster, n: int, plan: Plan) -> Runs:
    """The runs of a job: as it began, though the cluster may have changed since.

    No more rows than are sorted at once, and fewer where that would leave threads idle.
    """
    if not file.exists():
        fair = math.ceil(n / (_RUNS_PER_THREAD * cluster.n_threads))
        write_json(file, {"rows": max(1, min(fair, plan.run_rows) // BLOCK) * BLOCK})
    return Runs(cluster, int(read_json(file)["rows"]))
