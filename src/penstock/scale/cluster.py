"""The cluster that is asked to work: found or started, checked, and watched while it works."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from threading import Event
from typing import Any, NoReturn
from weakref import WeakSet

import penstock
from penstock._threads import thread_limit

Report = Callable[[str, int, int], None]  # what is done, how many of its tasks are, how many there are
_PATIENCE = 60.0  # seconds without any worker before giving up
_GATHERED_AT_ONCE = 16  # results, which are to be here within that time
_MOST_TIMEOUTS = 3  # in a row, of fetching results
_SECONDS_BETWEEN_LOOKS = 0.25  # at what nobody tells of: workers that are gone or paused, tasks done a second time


class ClusterError(RuntimeError):
    """The cluster cannot do the work, or has stopped doing it."""


@dataclass(frozen=True)
class Call:
    """A task to be: its name on the dashboard, the function, and what it is given (perhaps Dask's own objects)."""

    key: str
    work: Callable[..., Any]
    arguments: tuple[Any, ...]


class Cluster:
    """A Dask client, and what is known of its workers."""

    def __init__(self, client: Any, report: Report) -> None:
        self.client = client
        self.report = report
        self._asked: WeakSet[Any] = WeakSet()
        self._n_timeouts = 0

    def workers(self) -> dict[str, Any]:
        known: dict[str, Any] = self.client.scheduler_info(n_workers=-1).get("workers", {})  # none if it is closed
        return known

    @property
    def n_threads(self) -> int:
        return sum(int(worker["nthreads"]) for worker in self.workers().values())

    @property
    def memory_per_thread(self) -> float:
        """Of the worker that has least; infinite if none has a limit."""
        shares = [worker["memory_limit"] / worker["nthreads"] for worker in self.workers().values()]
        return min((share for share in shares if share > 0), default=float("inf"))

    def check(self) -> None:
        """Refuse a cluster without workers, or with workers that run another release of something that matters."""
        if not self.workers():
            raise ClusterError("The cluster has no workers. Start some, or wait for them: client.wait_for_workers(1).")
        ours = releases()
        try:
            found = self.client.run(releases)
        except ImportError as error:
            raise ClusterError(f"A worker lacks a package: {error}. Install penstock[dask] everywhere.") from error
        for address, theirs in found.items():
            different = [
                f"{name} {theirs.get(name)} (here {release})"
                for name, release in ours.items()
                if theirs.get(name) != release
            ]
            if different:
                raise ClusterError(
                    f"The worker {address} has {', '.join(different)}. Results could differ from worker to worker: "
                    f"install the same releases everywhere."
                )

    def check_sees(self, folder: Path) -> None:
        """Refuse workers that cannot write to the job's folder, by which everything is handed on."""
        with tempfile.NamedTemporaryFile(prefix=".seen-", dir=folder) as file:
            troubles: dict[str, str] = self.client.run(_write_beside, file.name)
        for worker, trouble in troubles.items():
            if trouble:
                raise ClusterError(
                    f"The worker {worker} cannot use the folder {folder}, by which rows and results are handed on: "
                    f"{trouble}. Give a folder that all machines share under the same path (TMPDIR for temporary ones)."
                )

    def run(self, stage: str, calls: Sequence[Call]) -> list[Any]:
        """The tasks' results, in order; a task whose worker is lost is run again by Dask."""
        return self.collect(stage, [self.submit(call) for call in calls])

    def submit(self, call: Call) -> Any:
        if any(hasattr(argument, "__dask_graph__") for argument in call.arguments):
            from dask import delayed

            task = delayed(_alone, pure=False)(call.work, *call.arguments, dask_key_name=call.key)
            future = self.client.compute(task)
        else:
            future = self.client.submit(_alone, call.work, *call.arguments, key=call.key, pure=False)
        self._asked.add(future)
        return future

    def collect(self, stage: str | None, futures: Sequence[Any]) -> list[Any]:
        """The results of futures, in order, telling of progress if it has a name; an error of a task is raised here.

        Each future is let go as soon as its result is here: until then its worker keeps what the task was given and
        what it found, which for hundreds of tasks fills the worker, and is made again when that worker is lost.
        """
        waiting = dict(enumerate(futures))
        results: dict[int, Any] = {}
        idle_since: float | None = None
        one_more = _told_of_each(futures)
        while True:
            one_more.clear()
            results |= self._take_finished(waiting)
            if stage is not None:
                self.report(stage, len(results), len(futures))
            if not waiting:
                return [results[number] for number in range(len(futures))]
            if one_more.wait(_SECONDS_BETWEEN_LOOKS) or self._has_able_workers():
                idle_since = None
                continue
            idle_since = idle_since or time.monotonic()
            if time.monotonic() - idle_since > _PATIENCE:
                raise self._out_of_patience(len(waiting))

    def drop(self) -> None:
        """Have the cluster forget whatever was asked of it: after an error nobody needs what is still running."""
        left = list(self._asked)
        if left and self.client.status == "running":
            self.client.cancel(left, force=True)

    def _has_able_workers(self) -> bool:
        """Whether anybody works: a worker near its memory limit is paused, and may never get on."""
        return any(worker.get("status") != "paused" for worker in self.workers().values())

    def _take_finished(self, waiting: dict[int, Any]) -> dict[int, Any]:
        """The results that are there, whose futures are taken out and let go."""
        _raise_first_error(waiting.values())
        finished = [number for number, future in waiting.items() if future.status == "finished"]
        results: dict[int, Any] = {}
        for start in range(0, len(finished), _GATHERED_AT_ONCE):
            some = finished[start : start + _GATHERED_AT_ONCE]
            found = self._gather([waiting[number] for number in some])
            if found is None:
                self._n_timeouts += 1
                if self._n_timeouts >= _MOST_TIMEOUTS:
                    raise self._out_of_patience(len(waiting))
                break
            self._n_timeouts = 0
            results |= zip(some, found, strict=True)
            for number in some:
                waiting.pop(number).release()
        return results

    def _gather(self, futures: Sequence[Any]) -> list[Any] | None:
        """The results of finished tasks, or None if they do not come in time.

        Either the way is slow, or their worker is gone: then they are done again, which may fail this time.
        """
        try:
            found: list[Any] = self.client.sync(self.client.gather, list(futures), callback_timeout=_PATIENCE)
        except CancelledError as error:
            raise ClusterError("The cluster has dropped tasks: was it closed, or restarted?") from error
        except Exception as error:
            _raise_first_error(futures)
            if isinstance(error, TimeoutError):
                return None
            raise ClusterError(f"Results could not be fetched from the workers: {error!r}") from error
        return found

    def _out_of_patience(self, n_unfinished: int) -> ClusterError:
        if not self.workers():
            trouble, way_out = f"All workers have been gone for {_PATIENCE:.0f} s", "Start workers again"
        elif not self._has_able_workers():
            trouble = f"All workers have been paused for {_PATIENCE:.0f} s, because their memory is nearly full"
            way_out = "Give workers more memory"
        else:
            trouble = f"Results did not come from the workers within {_PATIENCE:.0f} s, {_MOST_TIMEOUTS} times in a row"
            way_out = "See to the connection with the workers"
        return ClusterError(
            f"{trouble}, with {n_unfinished} tasks unfinished. {way_out}, and run the same fit with the same folder: "
            f"it goes on from there."
        )


def _told_of_each(futures: Sequence[Any]) -> Event:
    """An event that is set whenever one of these is done.

    Dask's own `wait` leaves a waiter behind for each unfinished future, each time that it is called.
    """
    one_more = Event()
    for future in futures:
        future.add_done_callback(lambda _: one_more.set())
    return one_more


def _raise_first_error(futures: Iterable[Any]) -> None:
    failed = next((future for future in futures if future.status in ("error", "cancelled")), None)
    if failed is not None:
        _raise_error_of(failed)


def _raise_error_of(future: Any) -> NoReturn:
    if future.status != "error":
        raise ClusterError(f"The cluster has dropped the task {future.key}: was it closed, or restarted?")
    error = future.exception()
    if type(error).__name__ == "KilledWorker":
        raise ClusterError(
            f"Workers died again and again in the task {future.key}: most likely memory ran out. Give workers more of "
            f"it, or ask for more parts (n_parts)."
        ) from error
    raise error


def _write_beside(file: str) -> str:
    """What keeps a worker from writing where the driver has written, if anything does."""
    if not Path(file).exists():
        return "it does not see what this process writes there"
    try:
        with tempfile.NamedTemporaryFile(prefix=".seen-", dir=Path(file).parent):
            return ""
    except OSError as error:
        return str(error)


def _alone(work: Callable[..., Any], *arguments: Any) -> Any:
    """A task has the one thread that the worker gives it."""
    with thread_limit(1):
        return work(*arguments)


def releases() -> dict[str, str]:
    """What has to be the same on all machines."""
    libraries = {name: version(name) for name in ("numpy", "numba", "scipy")}
    return {"penstock": penstock.__version__, "Python": ".".join(map(str, sys.version_info[:2])), **libraries}


@contextmanager
def use_cluster(client: Any, report: Report) -> Iterator[Cluster]:
    """The given client, or workers on this machine for as long as the work takes."""
    if client is not None and not hasattr(client, "scheduler_info"):
        raise TypeError(
            f"client must be a distributed.Client, but is a {type(client).__name__}. Use Client(cluster), or "
            f"Client('tcp://HOST:PORT')."
        )
    with nullcontext(client) if client is not None else local_client() as used:
        cluster = Cluster(used, report)
        try:
            yield cluster
        finally:
            cluster.drop()


@contextmanager
def local_client(n_workers: int | None = None, memory_limit: Any = "auto") -> Iterator[Any]:
    """Workers on this machine, one for each core, closed in the end. Nothing listens beyond this machine."""
    distributed = _distributed()
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ClusterError(
            "Workers are started by running your script once more, which must not start workers in turn. Put the lines "
            "that do the work under: if __name__ == '__main__':"
        )
    from dask import config

    # Otherwise a worker that happens to be away 15 s after it died, or died before, is given up for good.
    with (
        config.set({"distributed.deploy.lost-worker-timeout": "1000h"}),
        _local_cluster(distributed, n_workers, memory_limit) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _local_cluster(distributed: Any, n_workers: int | None, memory_limit: Any) -> Any:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        return distributed.LocalCluster(
            n_workers=n_workers or cores,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # any free port: two clusters may run side by side
            memory_limit=memory_limit,
        )
    except RuntimeError as error:
        raise ClusterError(
            f"Workers could not be started on this machine ({error}). If this is a script, put the lines that do the "
            f"work under: if __name__ == '__main__':"
        ) from error


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """The cluster whose scheduler is at an address such as tcp://10.0.0.5:8786."""
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout="15s")
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"There is no Dask scheduler at {address}: {error}") from error
    with client:
        yield client


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("Fitting on a cluster needs the extra 'dask': pip install 'penstock[dask]'") from error
    return distributed
