"""Shared fixtures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Before anything imports SciPy: otherwise scikit-learn skips one of its estimator checks.
os.environ.setdefault("SCIPY_ARRAY_API", "1")


@pytest.fixture
def benchmark_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of benchmark files, with PENSTOCK_DATA pointing to it; skips where there is none."""
    setting = os.environ.get("PENSTOCK_DATA", "")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(setting) if setting else beside
    if not ((folder / "dami").is_dir() or (folder / "Glass.csv.gz").is_file()):
        pytest.skip(f"needs the benchmark files: PENSTOCK_DATA is {setting!r}, and {beside} does not hold them")
    monkeypatch.setenv("PENSTOCK_DATA", str(folder))
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share", metavar="K/N", help="run only the K-th of N shares of the files, for N runs side by side"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a share of the files, alternating by name: files of one kind take about as long as each other."""
    share = config.getoption("--share")
    if share is None:
        return
    part, parts = (int(number) for number in share.split("/"))
    files = sorted({str(item.path) for item in items})
    kept = {file for place, file in enumerate(files) if place % parts == part - 1}
    config.hook.pytest_deselected(items=[item for item in items if str(item.path) not in kept])
    items[:] = [item for item in items if str(item.path) in kept]
