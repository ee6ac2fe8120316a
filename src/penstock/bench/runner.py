"""Run a study: cells that are not done yet, each in a process of its own, outcomes written as they come.

Each worker is a server process (`serve_cells`) that imports and compiles once, then forks for every cell: so a cell has
a memory of its own to measure, can be stopped and can crash without harm. Cells go to its standard input, outcomes come
from its standard output.
"""

from __future__ import annotations

import os
import pickle
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from penstock._threads import thread_count, thread_limit
from penstock.bench.cells import Cell, Loader, failed, plan, run_cell
from penstock.bench.datasets import load_file
from penstock.bench.methods import rehearse
from penstock.bench.results import Results, RowsFile, collect, read_rows, write_circumstances, write_plan
from penstock.bench.settings import Study

_GRACE = 60.0  # seconds beyond the limit, after which the server itself hangs and is replaced
# Libraries read these at their start. One thread each: a pool of threads made before a fork hangs in the child, and
# rounding must not depend on how many cells run at a time.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class Progress:
    """How far a study is: cells done of all, those kept from before among them, and the one just ended."""

    done: int
    total: int
    kept: int
    cell: Cell
    outcome: Mapping[str, Any]


def run_study(
    study: Study,
    folder: str | Path,
    *,
    jobs: int | None = None,
    retry: bool = False,
    progress: Callable[[Progress], None] | None = None,
    load: Loader | None = None,
) -> Results:
    """Run the cells of a study that are not done yet, and return all of its results.

    Outcomes go to `rows.jsonl` in the folder as they come, so that an interrupted study goes on where it stopped. A
    cell is run again only if its data, parameters, seed or code changed, if `retry` asks for those that failed, or if
    it was stopped by a lower time limit.

    Parameters
    ----------
    study : Study
        From `read_settings`.
    folder : path
        Where the results are kept; made if it does not exist.
    jobs : int, optional
        How many cells run at a time, each on one thread (more, if there are more cores than jobs); by default as many
        as there are cores.
    retry : bool, default=False
        Run cells again that failed, timed out or were killed.
    progress : callable, optional
        Called with a `Progress` after each cell.
    load : callable, optional
        Reads a data set by the name that the study gives it; by default `load_file` with `Study.reading`.

    Returns
    -------
    Results

    Raises
    ------
    OSError
        If an outcome could not be written, for example on a full disk. Outcomes written before are kept.

    Examples
    --------
    >>> import tempfile
    >>> from penstock.bench import parse_settings
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = "".join(f"{i % 7},{i % 5},0\\n" for i in range(30))
    >>> _ = (folder / "pump.csv").write_text(f"flow,head,fault\\n{rows}40,40,1\\n")
    >>> study = parse_settings(f'''
    ... datasets = ["{(folder / "pump.csv").as_posix()}::fault"]
    ... [[method]]
    ... name = "distance"
    ... detector = "MeanDistance"
    ... ''')
    >>> run_study(study, folder / "study", jobs=1).rows[["method", "dataset", "true_detections"]].values.tolist()
    [['distance', 'pump', 1.0]]
    """
    place = Path(folder)
    cells = list(plan(study, load or partial(load_file, **study.reading)))
    with RowsFile(place) as file:
        known = read_rows(place)
        write_plan(place, study, [cell.planned() for cell in cells], known)
        wanted = {cell.key: cell for cell in cells if _is_wanted(known.get(cell.key), study.time_limit, retry)}
        kept = len({cell.key for cell in cells}) - len(wanted)
        with closing(_outcomes(list(wanted.values()), jobs, study.time_limit)) as outcomes:
            for done, (cell, outcome) in enumerate(outcomes, start=kept + 1):
                named = {"method": cell.method.name, "dataset": cell.dataset, "seed": cell.seed}
                known[cell.key] = {"key": cell.key, "mark": cell.method.mark} | outcome
                file.append(named | known[cell.key])
                if progress is not None:
                    progress(Progress(done, kept + len(wanted), kept, cell, outcome))
        if wanted:
            write_circumstances(place, {cell.method.detector for cell in cells})
    return collect(place, known)


def _is_wanted(outcome: Mapping[str, Any] | None, time_limit: float, retry: bool) -> bool:
    if outcome is None:
        return True
    return outcome["status"] != "ok" and (retry or outcome.get("limit", time_limit) < time_limit)


_Outcome = tuple[Cell, dict[str, Any]]


def _outcomes(cells: Sequence[Cell], jobs: int | None, limit: float) -> Generator[_Outcome, None, None]:
    """Yield cells and their outcomes in the order in which they end. Closing the generator ends the workers at once."""
    for cell in cells:
        if cell.trouble:
            yield cell, failed(cell.trouble)
    runnable = [cell for cell in cells if not cell.trouble]
    runnable.sort(key=lambda cell: -cell.size)  # the largest first, so that no core idles at the end
    waiting: queue.Queue[Cell] = queue.Queue()
    for cell in runnable:
        waiting.put(cell)
    n_workers = max(1, thread_count() if jobs is None else jobs)
    threads = max(1, thread_count() // n_workers)
    sets = [data for data in {cell.dataset: cell.data for cell in runnable}.values() if data is not None]
    rehearsal = {
        "detectors": list(dict.fromkeys(cell.method.detector for cell in runnable)),
        "gaps": any(np.isnan(data.X).any() for data in sets),
        "later": any(data.train is not None for data in sets),
    }
    workers = [_Worker(limit, threads, rehearsal) for _ in range(min(n_workers, len(runnable)))]
    done: queue.Queue[_Outcome | BaseException] = queue.Queue()
    with ThreadPoolExecutor(max(len(workers), 1)) as pool:
        try:
            for worker in workers:
                pool.submit(worker.work, waiting, done)
            for _ in runnable:
                outcome = done.get()
                if isinstance(outcome, BaseException):
                    raise outcome
                yield outcome
        finally:
            with suppress(queue.Empty):
                while True:
                    waiting.get_nowait()
            for worker in workers:
                worker.close()


class _Worker:
    """A server process, started when it is needed and again if it dies."""

    def __init__(self, limit: float, threads: int, rehearsal: Mapping[str, Any]) -> None:
        self._limit, self._threads, self._rehearsal = limit, threads, rehearsal
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def work(self, waiting: queue.Queue[Cell], done: queue.Queue[_Outcome | BaseException]) -> None:
        """Run cells until none waits."""
        try:
            while not self._closed:
                try:
                    cell = waiting.get_nowait()
                except queue.Empty:
                    return
                done.put((cell, self._run(cell)))
        except BaseException as error:  # the main thread waits for something to come
            done.put(error)

    def close(self) -> None:
        """End the server and the cell in it; `work` ends too."""
        with self._lock:
            self._closed = True
            self._kill()

    def _run(self, cell: Cell) -> dict[str, Any]:
        process = self._started()
        alarm = threading.Timer(self._limit + _GRACE, self._kill)
        alarm.daemon = True
        alarm.start()
        try:
            send(process.stdin, (cell, self._limit))
            outcome: dict[str, Any] = receive(process.stdout)
            return outcome
        except (EOFError, OSError):
            late = not alarm.is_alive()
            self._kill()
            return _timed_out(self._limit) if late else failed("its worker was killed", "killed")
        finally:
            alarm.cancel()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise RuntimeError("The study was ended.")
            if self._process is not None and self._process.poll() is None:
                return self._process
            limits = dict.fromkeys(_THREAD_VARIABLES, "1") | {"PENSTOCK_THREADS": str(self._threads)}
            self._process = process = subprocess.Popen(
                [sys.executable, "-P", "-c", "from penstock.bench.runner import serve_cells as serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | limits,
                start_new_session=True,  # with its children it is a group of its own, to be ended as one
            )
        try:
            send(process.stdin, (list(sys.path), self._rehearsal, self._threads))
            receive(process.stdout)
        except (EOFError, OSError):
            if self._closed:
                raise RuntimeError("The study was ended.") from None
            raise RuntimeError(
                f"A worker ended while it started (exit code {process.wait()}); see the messages above."
            ) from None
        return process

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        _kill_group(process.pid)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


_GLANCE = 0.2  # seconds between two looks at whether a child is still there


def send(stream: Any, message: Any) -> None:
    """Write a message into a pipe."""
    pickle.dump(message, stream, protocol=pickle.HIGHEST_PROTOCOL)
    stream.flush()


def receive(stream: Any) -> Any:
    """Read the next message; raise EOFError at the end, or if the sender died within one."""
    try:
        return pickle.load(stream)  # from our own parent or child, through a pipe that no other process holds
    except pickle.UnpicklingError as error:
        raise EOFError("the pipe was closed") from error


def serve_cells() -> None:
    """Serve until the parent closes the pipe."""
    cells, outcomes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):  # what a method prints must not get into the pipes
        os.dup2(nowhere, standard)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent, which closes the pipe
    sys.path[:], rehearsal, threads = receive(cells)
    rehearse(**rehearsal)
    send(outcomes, "ready")
    while True:
        try:
            cell, limit = receive(cells)
        except EOFError:
            return
        send(outcomes, _run_in_child(cell, threads, limit, cells, outcomes))


def _run_in_child(cell: Any, threads: int, limit: float, cells: BinaryIO, outcomes: BinaryIO) -> dict[str, Any]:
    server = os.getpid()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with suppress(OSError):
                os.setpgid(0, 0)  # with what it starts it is a group of its own, to be ended as one
            _die_with(server)
            for descriptor in (reading, cells.fileno(), outcomes.fileno()):
                os.close(descriptor)
            with os.fdopen(writing, "wb") as pipe, thread_limit(threads):
                send(pipe, run_cell(cell))
            code = 0
        finally:
            os._exit(code)  # without the clean-up that belongs to the server
    with suppress(OSError):  # the child does the same; one of them is first
        os.setpgid(child, child)
    os.close(writing)
    content, ended, status = _watch(child, reading, cells, limit)
    _kill_group(child)
    if status is None:
        _, status = os.waitpid(child, 0)
    os.close(reading)
    with suppress(EOFError, pickle.UnpicklingError):  # there is none, or only a part of it
        outcome: dict[str, Any] = pickle.loads(content)
        return outcome
    if not ended:
        return _timed_out(limit)
    how = f"its process ended with exit code {os.waitstatus_to_exitcode(status)} and no result"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        hint = "; was there too little memory?" if number == signal.SIGKILL else ""
        how = f"its process was ended by signal {number} ({signal.Signals(number).name}){hint}"
    return failed(how, "killed")


def _timed_out(limit: float) -> dict[str, Any]:
    return failed(f"stopped after the time limit of {limit:g} s", "timed out") | {"limit": limit}


def _watch(child: int, reading: int, cells: BinaryIO, limit: float) -> tuple[bytes, bool, int | None]:
    """Return what a child sent, whether it ended before the time limit, and its exit status if that is known."""
    content = bytearray()
    status: int | None = None
    listening: list[Any] = [reading, cells]
    end = time.monotonic() + limit
    while (left := end - time.monotonic()) > 0:
        ready, _, _ = select.select(listening, [], [], min(left, _GLANCE))
        if cells in ready:  # the parent sends one cell at a time: this can only be its end
            _kill_group(child)
            os._exit(1)
        if reading in ready:
            piece = os.read(reading, 1 << 20)
            content += piece
            if not piece:  # it has closed the pipe, and should end now
                listening = [cells]
                end = time.monotonic() + 10 * _GLANCE
        elif status is not None:  # it has ended, and there is nothing left to read
            break
        if status is None:
            gone, found = os.waitpid(child, os.WNOHANG)
            status = found if gone else None
            if gone and reading not in listening:
                break
    return bytes(content), status is not None or reading not in listening, status


def _die_with(server: int) -> None:
    """End this process when the server is killed; where the system cannot do that, it ends with its cell."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != server:  # it was killed before that
            os._exit(1)


def _kill_group(leader: int) -> None:
    """Kill a process that leads a group, and those that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
