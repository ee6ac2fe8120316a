"""A fit on workers of its own, to be killed. Run by test_scale_resume.py with a task in JSON.

Notes the workers' processes and the tasks that ran in files, and dies by SIGKILL when it reaches `die_at`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from distributed import SchedulerPlugin

from penstock import NSNMF, scale
from penstock.scale import factor_fit


class Log(SchedulerPlugin):
    """A line for each task that a worker is given: what it does, and its name."""

    name = "log"

    def __init__(self, path, die_in_time):
        self._file = Path(path).open("w", buffering=1)  # noqa: SIM115
        self._counts, self._die_in_time = Counter(), die_in_time

    def transition(self, key, start, finish, *_, **__):
        if finish == "processing":
            kind = re.match(r"(.*)-[0-9a-f]{8}-\d+$", str(key)).group(1)
            print(f"{kind}:{key}", file=self._file)
            self._counts[kind] += 1
            self._die_in_time(kind, self._counts[kind], 0)


def main(task):
    warnings.simplefilter("ignore")
    factor_fit._CHECKPOINT_EVERY = task["checkpoint_every"]
    if "tempdir" in task:
        Path(task["tempdir"]).mkdir()
        tempfile.tempdir = task["tempdir"]

    def die_in_time(stage, done, total):
        if "die_at" in task and stage == task["die_at"][0] and done >= task["die_at"][1]:
            os.kill(os.getpid(), signal.SIGKILL)

    detector = NSNMF(n_components=2, max_iter=task.get("max_iter", 13), tol=1e-12, random_state=0)
    with scale.local_client(n_workers=2, memory_limit="2GiB") as client:
        client.cluster.scheduler.add_plugin(Log(task["log"], die_in_time))
        draft = Path(task["pids"] + ".draft")
        draft.write_text(json.dumps([nanny.pid for nanny in client.cluster.workers.values()]))
        draft.rename(task["pids"])
        scale.fit(detector, np.load(task["source"]), client, folder=task["folder"], n_parts=5, progress=die_in_time)
    np.savez(
        task["result"],
        edges=detector.tree_.edges,
        lengths=detector.tree_.lengths,
        W=detector.embedding_,
        H=detector.components_,
        scores=detector.scores_,
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
