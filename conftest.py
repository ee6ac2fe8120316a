"""Fixtures shared by tests and by examples in docstrings, and the order of tests."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# No test fails by chance: a busy machine is not an error, and new examples are drawn only where all tests run.
IS_COMPLETE = os.environ.get("PENSTOCK_EXAMPLES") == "all"
settings.register_profile(
    "steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not IS_COMPLETE
)
settings.load_profile("steady")
# Before anything imports SciPy: otherwise scikit-learn skips one of its estimator checks.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# As many processes as cores run tests: threads of BLAS would wait for each other, and take processor time to do so.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Dask samples what its workers do a hundred times a second: a fifth of the time of a small fit.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED", "False")
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED", "False")
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL", "10s")  # idle workers take 6 % of a core
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL", "2s")
# Objects of tests are many and hardly ever in cycles: looking for those after every 700 took a tenth of the time.
gc.set_threshold(100_000, 20, 100)
# A shell that runs the tests in the background has them ignore Ctrl-C, and the commands under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Examples of AER and DAGMM cannot even be imported without PyTorch; test_study_deep.py says that it is missing.
collect_ignore = (
    [] if importlib.util.find_spec("torch") else ["studies/ahmed2021/deep.py", "studies/ahmed2021/deep_nets.py"]
)

# The first process of pytest-xdist begins with the kernels of trees, the second, which is given the second half of all
# tests, with those of factorisations: a kernel is compiled by one of them and read from the cache by the other. Then
# the second goes on with the tests on a Dask cluster: tests are stolen from the end of a list, so that one process
# alone starts workers, which takes ten seconds of processor time each.
TREES = ("test_mst", "test_parts", "test_neighbors", "test_missing_graph", "test_lomst")
FACTORS = ("test_factor_solvers", "test_factor_blocks", "test_missing_factors", "test_placement", "test_online.")
EXAMPLES_ON_A_CLUSTER = ("penstock.scale.fitting", "penstock.scale.cluster.local_client")


@pytest.hookimpl(trylast=True)  # after tests were deselected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move tests that compile much, and those that start workers, to where one of two processes begins."""
    parts: dict[str, list[pytest.Item]] = {"trees": [], "factors": [], "cluster": [], "others": []}
    for item in items:
        name = item.path.name
        kind = "trees" if name.startswith(TREES) else "factors" if name.startswith(FACTORS) else "others"
        on_cluster = "client" in getattr(item, "fixturenames", ()) or item.name.startswith(EXAMPLES_ON_A_CLUSTER)
        parts["cluster" if on_cluster else kind].append(item)
    middle = max(0, len(items) // 2 - len(parts["trees"]))
    others = parts["others"]
    items[:] = [*parts["trees"], *others[:middle], *parts["factors"], *parts["cluster"], *others[middle:]]


def pytest_collection_finish() -> None:
    """Take what was imported and collected out of the search for garbage: a tenth of the time of all tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def benchmark_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of benchmark files, with PENSTOCK_DATA pointing to it; skips where there is none."""
    setting = os.environ.get("PENSTOCK_DATA", "")
    neighbour = Path(__file__).resolve().parents[1] / "shared" / "data"
    folder = Path(setting) if setting else neighbour
    if not ((folder / "dami").is_dir() or (folder / "Glass.csv.gz").is_file()):
        pytest.skip(f"needs the benchmark files: PENSTOCK_DATA is {setting!r}, and {neighbour} does not hold them")
    monkeypatch.setenv("PENSTOCK_DATA", str(folder.resolve()))  # tests change the working folder
    return folder.resolve()


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """A Dask cluster of two workers, shared by all tests of a process: workers take seconds to start.

    A test that kills workers waits for others to be there before it ends.
    """
    scale = pytest.importorskip("penstock.scale")
    with ExitStack() as opened:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other clusters on this machine may have the usual port
            client = opened.enter_context(scale.local_client(n_workers=2, memory_limit="2GiB"))
        yield client


@pytest.fixture(scope="session")
def simulated() -> Callable[..., Any]:
    """`simulate_hydropower` that draws each plant once: it takes a second. Tests must not change what it returns."""
    from penstock.simulate import simulate_hydropower

    draw = cache(lambda seed, options: simulate_hydropower(seed, **dict(options)))
    return lambda seed=0, **options: draw(seed, tuple(sorted(options.items())))


@pytest.fixture(autouse=True)
def _quick_examples(request: pytest.FixtureRequest) -> None:
    """Let examples share a cluster and simulated plants."""
    if isinstance(request.node, pytest.DoctestItem):
        patch = request.getfixturevalue("monkeypatch")
        if request.node.name.startswith(EXAMPLES_ON_A_CLUSTER):
            shared = request.getfixturevalue("client")
            patch.setattr("penstock.scale.local_client", lambda **_: nullcontext(shared))
            patch.setitem(request.node.dtest.globs, "local_client", lambda **_: nullcontext(shared))
        elif request.node.name.startswith("penstock.simulate"):
            patch.setattr("penstock.simulate.simulate_hydropower", request.getfixturevalue("simulated"))


@pytest.fixture(scope="session")
def marks(client: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the workers of `client` mark the tasks that they execute."""
    from scale_kills import Marks

    folder = tmp_path_factory.mktemp("marks")
    client.register_plugin(Marks(folder))
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A chromium without a window; skips where there is none, unless PENSTOCK_REQUIRE_BROWSER is 1."""
    chromium, playwright = shutil.which("chromium"), importlib.util.find_spec("playwright")
    if chromium is None or playwright is None:
        reason = "there is no chromium on the path" if playwright else "the package playwright is not installed"
        if os.environ.get("PENSTOCK_REQUIRE_BROWSER") == "1":
            pytest.fail(f"PENSTOCK_REQUIRE_BROWSER is set, but {reason}")
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    arguments += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=arguments)
        yield opened
        opened.close()
