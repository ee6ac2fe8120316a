"""When, where and with what a study was run."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from penstock.bench.code_digest import owners_of_modules

_REPORTED = ("numpy", "scipy", "scikit-learn", "numba", "pandas", "pyod", "torch")


def describe_run(detectors: Iterable[str], started: str) -> dict[str, Any]:
    """Dates, versions of all packages that matter, and the machine, as of now.

    >>> describe_run(["NMF"], "2026-01-01")["started"]
    '2026-01-01'
    """
    packages = {*_REPORTED, *(_owner(detector) for detector in set(detectors))} - {""}
    versions = {"python": platform.python_version(), "penstock": metadata.version("penstock")}
    for package in sorted(packages):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {"started": started, "finished": now(), "versions": versions, "machine": machine}


def now() -> str:
    """The time, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _owner(detector: str) -> str:
    """The package of a detector given by its path."""
    top = detector.partition(".")[0]
    return next(iter(owners_of_modules().get(top, [""]))) if "." in detector else ""
