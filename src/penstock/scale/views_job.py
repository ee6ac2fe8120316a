"""`penstock.Detector` fitted on a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scale.job import Job
from penstock.scale.laid_rows import LaidRows
from penstock.scale.plan import Plan, check_disk, settled_plan
from penstock.scale.runs import settled_runs
from penstock.scale.views_fit import ViewsFit, adopt_views, read_into_memory

_VIEWS_COUNT_AS = 4  # components: what the driver keeps of each row


@dataclass(frozen=True)
class ViewsJob(Job):
    """For `penstock.Detector`."""

    def _has_tree(self) -> bool:
        return True

    def _merges_copies(self) -> bool:
        return True

    def _counts_as(self) -> tuple[int, int]:
        return 2 * self.source.n_columns, _VIEWS_COUNT_AS  # rows are kept as they are, and encoded

    def _plan(self, n: int) -> Plan:
        file = self.space / "plan.json"
        if not file.exists():
            check_disk(self.space.folder, n, *self._counts_as())
        return settled_plan(file, self.cluster, n, self.source.n_columns, 0, self.n_parts)

    def _learn(self, laid: LaidRows, plan: Plan) -> None:
        detector, approximate = self.detector, self._approximation()
        runs = settled_runs(self.space / "runs.json", self.cluster, laid.n, plan)
        views = ViewsFit(runs, self.space, laid, plan, detector._kept, detector._copy_of)
        adopt_views(detector, *views.learn(detector.tree_, detector.random_state, approximate))
        if approximate is not None:
            detector.tree_excess_ = max(detector.tree_excess_, views.excess(approximate))

    def _leave_in_files(self, laid: LaidRows) -> None:
        pass  # its views are there already

    def _read_into_memory(self) -> None:
        read_into_memory(self.detector)
