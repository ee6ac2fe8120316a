"""Find or start a Dask cluster, check it, and run tasks on it with a deadline for every wait."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import Event
from typing import Any, NoReturn
from weakref import WeakSet

import penstock
from penstock._progress import set_stage
from penstock._threads import thread_limit

Progress = Callable[[str, int, int], None]  # what is done, how many of its tasks are, how many there are
_DEADLINE = 60.0  # seconds: every wait for the cluster ends when nothing has come of it for so long
_START_DEADLINE = 300.0  # seconds for workers to start and to answer first: loading libraries may take minutes
_GATHERED_AT_ONCE = 16  # results
_POLL_SECONDS = 0.25  # for what causes no event: workers that are gone or paused, tasks done a second time
_AT_WORK = ("executing", "long-running", "flight")  # states of tasks on a worker that works, or is sent what it needs
_GO_ON = "run the same call with the same folder: it goes on from there."


class ClusterError(RuntimeError):
    """The cluster cannot do the work, or has stopped doing it.

    Examples
    --------
    >>> from penstock import NSNMF, scale
    >>> with scale.connect("nowhere://10.0.0.5") as client:
    ...     scale.fit(NSNMF(), "rows.parquet", client)
    Traceback (most recent call last):
    penstock.scale.cluster.ClusterError: There is no Dask scheduler at nowhere...
    """


class Cluster:
    """A Dask client, and what is known of its workers."""

    def __init__(self, client: Any, report: Progress | None = None) -> None:
        self.client = client
        self.report = report or set_stage
        self._asked: WeakSet[Any] = WeakSet()
        self._heard: dict[str, tuple[float, float]] = {}  # of each worker: its last sign of life, and when we saw it

    def workers(self) -> dict[str, Any]:
        """Return the workers that the scheduler knows now; none if it cannot be reached."""
        scheduler = self.client.scheduler
        if scheduler is None or self.client.status != "running":
            return {}
        try:
            known: dict[str, Any] = self._ask("The scheduler", scheduler.identity)["workers"]
        except OSError:
            return {}
        return known

    def _some_workers(self) -> dict[str, Any]:
        """Return the workers; wait if all are lost at the moment."""
        end = time.monotonic() + _DEADLINE
        while not (workers := self.workers()):
            self._wait_for_workers(end)
        return workers

    def _wait_for_workers(self, end: float, lost: Exception | None = None) -> None:
        """Wait for a moment, or give up."""
        if time.monotonic() > end:
            trouble = f"had no workers for {_DEADLINE:.0f} s" if lost is None else f"lost workers repeatedly ({lost!r})"
            raise ClusterError(f"The cluster has {trouble}. Start some, and {_GO_ON}") from lost
        self.report("waiting for workers", 0, 1)
        time.sleep(_POLL_SECONDS)

    @property
    def n_threads(self) -> int:
        return sum(int(worker["nthreads"]) for worker in self._some_workers().values())

    @property
    def memory_per_thread(self) -> float:
        """Of the worker that has least; infinite if none has a limit."""
        shares = [worker["memory_limit"] / worker["nthreads"] for worker in self._some_workers().values()]
        return min((share for share in shares if share > 0), default=float("inf"))

    def check(self) -> None:
        """Refuse a cluster without workers, or with workers that run another release of something that matters.

        Workers that join later are checked by each task that they are given.
        """
        if self.client.status == "closed":
            raise ClusterError("The client is closed. Open a new one.")
        for worker, theirs in self._ask_workers(releases).items():
            _check_releases(worker, theirs, releases())

    def check_sees(self, folder: Path) -> None:
        """Refuse workers that cannot write to the job's folder, by which everything is handed on."""
        with tempfile.NamedTemporaryFile(prefix=".seen-", dir=folder) as file:
            troubles = self._ask_workers(_try_writing, file.name)
        for worker, trouble in troubles.items():
            if trouble:
                raise ClusterError(
                    f"The worker {worker} cannot use the folder {folder}, by which rows and results are handed on: "
                    f"{trouble}. Give a folder that all machines share under the same path (TMPDIR for temporary "
                    f"ones), and run workers as the same user, or create the folder with the rights that they need."
                )

    def _ask_workers(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Return what each worker answers; ask again if one is lost before it answers."""
        began = last_seen = time.monotonic()
        while True:
            lost: Exception | None = None
            try:
                found: dict[str, Any] = self._ask(
                    "A worker", self.client.run, function, *arguments, on_error="return", seconds=_START_DEADLINE
                )
            except OSError as error:
                found, lost = {}, error
            for answer in found.values():
                if isinstance(answer, OSError):
                    lost = answer
                elif isinstance(answer, Exception):
                    _raise_of_worker(answer)
            if found and lost is None:
                return found
            if lost is not None:
                last_seen = time.monotonic()
            self._wait_for_workers(min(last_seen + _DEADLINE, began + _START_DEADLINE), lost)

    def _ask(
        self, whom: str, call: Callable[..., Any], *arguments: Any, seconds: float = _DEADLINE, **options: Any
    ) -> Any:
        """Return the answer to a call of Dask's; wait no longer than `seconds`."""
        try:
            return self.client.sync(call, *arguments, callback_timeout=seconds, **options)
        except TimeoutError as error:
            raise ClusterError(
                f"{whom} did not answer within {seconds:.0f} s. See whether it is running and can be reached, and "
                f"{_GO_ON}"
            ) from error

    def run(self, stage: str, work: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Run ``work(*arguments[i])`` as tasks and return their results in order.

        A task whose worker is lost is run again by Dask. Tasks have names of this
        call alone, so that they are not mistaken for those of another.
        """
        name = f"{work.__name__.strip('_').replace('_', '-')}-{secrets.token_hex(4)}"
        return self.collect(
            stage, [self.submit(f"{name}-{number}", work, given) for number, given in enumerate(arguments)]
        )

    def submit(self, key: str, work: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """Start a task and return its future."""
        future = self.client.submit(_alone, releases(), work, *arguments, key=key, pure=False)
        self._asked.add(future)
        return future

    def collect(self, stage: str | None, futures: Sequence[Any]) -> list[Any]:
        """Return the results of futures, in order; report progress if `stage` has a name; raise the error of a task.

        Each future is let go as soon as its result is here: until then its worker keeps what the task was given and
        what it found, which for hundreds of tasks fills the worker, and is made again when that worker is lost.
        """
        waiting = dict(enumerate(futures))
        results: dict[int, Any] = {}
        one_more, last_news = Event(), time.monotonic()
        for future in futures:  # Dask's own `wait` leaves a waiter behind for each unfinished future and call
            future.add_done_callback(lambda _: one_more.set())
        while True:
            one_more.clear()
            found = self._take_some_finished(waiting)
            results |= found
            if stage is not None:
                self.report(stage, len(results), len(futures))
            if not waiting:
                return [results[number] for number in range(len(futures))]
            if found or one_more.wait(_POLL_SECONDS) or self._is_at_work():
                last_news = time.monotonic()
            elif time.monotonic() - last_news > _DEADLINE:
                raise self._deadline_error(len(waiting))

    def drop(self) -> None:
        """Cancel all tasks: after an error nothing that still runs is needed."""
        left = list(self._asked)
        if left and self.client.status == "running":
            with suppress(OSError, ClusterError):  # it cannot be reached; the error that led here is raised
                self._ask("The scheduler", self.client.cancel, left, force=True)

    def _is_at_work(self) -> bool:
        """Tell whether a worker is at work, or may be.

        Not if it is paused near its memory limit, which it may be for good, nor if Dask has lost track of a task that
        the worker does not have. What it says of its tasks counts only if it is new: while a kernel is compiled, a
        worker says nothing.
        """
        now = time.monotonic()
        for address, worker in self.workers().items():
            if self._heard.get(address, (None, 0.0))[0] != worker["last_seen"]:
                self._heard[address] = worker["last_seen"], now
            counts = worker["metrics"].get("task_counts", {})
            is_silent = now - self._heard[address][1] > _DEADLINE / 2
            if worker["status"] == "running" and (is_silent or any(counts.get(state) for state in _AT_WORK)):
                return True
        return False

    def _take_some_finished(self, waiting: dict[int, Any]) -> dict[int, Any]:
        """Fetch some of the finished results, and release their futures."""
        _raise_first_error(waiting.values())
        finished = [number for number, future in waiting.items() if future.status == "finished"]
        some = finished[:_GATHERED_AT_ONCE]
        if not some:
            return {}
        found = self._gather([waiting[number] for number in some])
        for number in some:
            waiting.pop(number).release()
        return dict(zip(some, found, strict=True))

    def _gather(self, futures: Sequence[Any]) -> list[Any]:
        """Return results of finished tasks; if their worker is gone, they are done again, and may fail this time."""
        try:
            found: list[Any] = self.client.sync(self.client.gather, list(futures), callback_timeout=_DEADLINE)
        except CancelledError as error:
            raise ClusterError("The cluster has dropped tasks: was it closed, or restarted?") from error
        except Exception as error:
            _raise_first_error(futures)
            raise ClusterError(
                f"Results did not come from the workers within {_DEADLINE:.0f} s ({error!r}). See to the connection "
                f"with the workers, and {_GO_ON}"
            ) from error
        return found

    def _deadline_error(self, n_unfinished: int) -> ClusterError:
        workers = self.workers()
        if not workers:
            trouble, way_out = f"All workers have been gone for {_DEADLINE:.0f} s", "Start workers again"
        elif all(worker["status"] == "paused" for worker in workers.values()):
            trouble = f"All workers have been paused for {_DEADLINE:.0f} s, because their memory is nearly full"
            way_out = "Give workers more memory"
        else:
            trouble = f"No worker has been at work for {_DEADLINE:.0f} s"
            way_out = "Restart the workers"
        return ClusterError(f"{trouble}, with {n_unfinished} tasks unfinished. {way_out}, and {_GO_ON}")


def _raise_first_error(futures: Iterable[Any]) -> None:
    failed = next((future for future in futures if future.status in ("error", "cancelled")), None)
    if failed is None:
        return
    if failed.status != "error":
        raise ClusterError(f"The cluster has dropped the task {failed.key}: was it closed, or restarted?")
    try:
        error = failed.exception(timeout=_DEADLINE)
    except TimeoutError as late:
        raise ClusterError(f"The error of the task {failed.key} did not come within {_DEADLINE:.0f} s.") from late
    if type(error).__name__ == "KilledWorker":
        raise ClusterError(
            f"Workers died again and again in the task {failed.key}: most likely memory ran out. Give workers more of "
            f"it, or ask for more parts (n_parts)."
        ) from error
    _raise_of_worker(error)


def _raise_of_worker(error: Exception) -> NoReturn:
    if isinstance(error, ImportError):
        raise ClusterError(f"A worker lacks a package: {error}. Install penstock[dask] everywhere.") from error
    raise error


def _try_writing(file: str) -> str:
    """Return why a worker cannot write where the driver has written, or an empty text."""
    try:
        if not Path(file).exists():
            return "it does not see what this process writes there"
        with tempfile.NamedTemporaryFile(prefix=".seen-", dir=Path(file).parent):
            return ""
    except OSError as error:
        return str(error)


def _alone(drivers: Mapping[str, str], work: Callable[..., Any], *arguments: Any) -> Any:
    """Do a task with the one thread that the worker gives it, if the worker has the driver's releases."""
    if releases() != drivers:
        _check_releases(_distributed().get_worker().address, releases(), drivers)
    with thread_limit(1):
        return work(*arguments)


def _check_releases(worker: str, theirs: Mapping[str, str], drivers: Mapping[str, str]) -> None:
    different = [
        f"{name} {theirs.get(name)} (here {release})"
        for name, release in drivers.items()
        if theirs.get(name) != release
    ]
    if different:
        raise ClusterError(
            f"The worker {worker} has {', '.join(different)}. Results could differ from worker to worker: install the "
            f"same releases everywhere."
        )


_release_of = cache(version)


def releases() -> dict[str, str]:
    """Return the versions that have to be the same on all machines."""
    libraries = {name: _release_of(name) for name in ("numpy", "numba", "scipy")}
    return {"penstock": penstock.__version__, "Python": ".".join(map(str, sys.version_info[:2])), **libraries}


@contextmanager
def use_cluster(client: Any, report: Progress | None) -> Iterator[Cluster]:
    """Use the given client, or start workers on this machine for as long as the work takes."""
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
def local_client(n_workers: int | None = None, memory_limit: Any = "auto", *, quiet: bool = False) -> Iterator[Any]:
    """Start workers on this machine, and close them in the end. Nothing listens beyond this machine.

    Use it as a context manager for several calls of `fit` and `score`; each starts workers of its own otherwise.

    Parameters
    ----------
    n_workers : int, optional
        Number of worker processes, of one thread each; by default one for each core.
    memory_limit : int, float or str, default "auto"
        Of each worker, as Dask takes it ("2GiB").
    quiet : bool, default False
        Whether workers log nothing, nor those that are started in place of lost ones.

    Yields
    ------
    distributed.Client

    Examples
    --------
    >>> with local_client(n_workers=1) as client:
    ...     client.submit(sum, [1, 2]).result()
    3
    """
    distributed = _distributed()
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ClusterError(
            "Workers are started by running your script once more, which must not start workers in turn. Put the lines "
            "that do the work under: if __name__ == '__main__':"
        )
    from dask import config

    silenced = ["import logging; logging.disable(logging.ERROR)"] if quiet else []
    settings = {
        # Otherwise a worker that happens to be away 15 s after it died, or died before, is given up for good.
        "distributed.deploy.lost-worker-timeout": "1000h",
        "distributed.worker.preload": [*config.get("distributed.worker.preload", []), *silenced],
    }
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with config.set(settings):
        try:
            started = distributed.LocalCluster(
                n_workers=n_workers or cores,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # any free port: two clusters may run side by side
                memory_limit=memory_limit,
                death_timeout=_START_DEADLINE,
            )
        except (RuntimeError, TimeoutError, AssertionError) as error:  # the last if one takes too long, by Dask's fault
            raise ClusterError(
                f"Workers could not be started on this machine ({error!r}). If this is a script, put the lines that do "
                f"the work under: if __name__ == '__main__':"
            ) from error
        with _closed_in_time(started) as cluster, _closed_in_time(distributed.Client(cluster)) as client:
            yield client


@contextmanager
def _closed_in_time(opened: Any) -> Iterator[Any]:
    """Close a client or a cluster in the end, with the usual deadline."""
    try:
        yield opened
    finally:
        try:
            opened.close(timeout=_DEADLINE)
        except TimeoutError:
            warnings.warn(
                f"The {type(opened).__name__} of Dask did not close within {_DEADLINE:.0f} s. What is left of it ends "
                f"with this process.",
                stacklevel=2,
            )


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Connect to the cluster whose scheduler is at an address.

    Parameters
    ----------
    address : str
        Such as tcp://10.0.0.5:8786.

    Yields
    ------
    distributed.Client

    Raises
    ------
    ClusterError
        If there is no scheduler.

    Examples
    --------
    >>> with connect("nowhere://10.0.0.5"):
    ...     pass
    Traceback (most recent call last):
    penstock.scale.cluster.ClusterError: There is no Dask scheduler at nowhere...
    """
    distributed = _distributed()
    from dask import config

    try:
        # A client that is the default sets Dask's scheduler before it connects, and leaves it so if it cannot.
        client = distributed.Client(address, timeout="15s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"There is no Dask scheduler at {address}: {error}") from error
    with _closed_in_time(client), client.as_current(), config.set(scheduler="dask.distributed"):
        yield client


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("Fitting on a cluster needs the extra 'dask': pip install 'penstock[dask]'") from error
    return distributed
