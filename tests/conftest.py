"""Shared fixtures."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# Before anything imports SciPy: otherwise scikit-learn skips one of its estimator checks.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# A shell that runs the tests in the background has them ignore Ctrl-C, and the commands under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def benchmark_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of benchmark files, with PENSTOCK_DATA pointing to it; skips where there is none."""
    setting = os.environ.get("PENSTOCK_DATA", "")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(setting) if setting else beside
    if not ((folder / "dami").is_dir() or (folder / "Glass.csv.gz").is_file()):
        pytest.skip(f"needs the benchmark files: PENSTOCK_DATA is {setting!r}, and {beside} does not hold them")
    monkeypatch.setenv("PENSTOCK_DATA", str(folder.resolve()))  # tests change the working folder
    return folder.resolve()
