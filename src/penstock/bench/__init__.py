"""Compare detectors on labelled data sets: ``penstock bench``, and the same from Python.

>>> from penstock.bench import friedman, read_settings, run_study
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as in `typing`
if TYPE_CHECKING:
    from typing import Any

    from penstock.bench.datasets import Dataset as Dataset
    from penstock.bench.datasets import load_file as load_file
    from penstock.bench.methods import average_precision as average_precision
    from penstock.bench.methods import roc_auc as roc_auc
    from penstock.bench.report import write_report as write_report
    from penstock.bench.results import Results as Results
    from penstock.bench.results import compare_rows as compare_rows
    from penstock.bench.results import failures as failures
    from penstock.bench.results import method_summary as method_summary
    from penstock.bench.results import pivot as pivot
    from penstock.bench.results import read_results as read_results
    from penstock.bench.runner import run_study as run_study
    from penstock.bench.settings import Method as Method
    from penstock.bench.settings import Study as Study
    from penstock.bench.settings import parse_settings as parse_settings
    from penstock.bench.settings import read_settings as read_settings
    from penstock.bench.significance import compare_table as compare_table
    from penstock.bench.significance import conover as conover
    from penstock.bench.significance import friedman as friedman
    from penstock.bench.significance import mean_ranks as mean_ranks
    from penstock.bench.significance import nemenyi as nemenyi
    from penstock.bench.significance import wilcoxon as wilcoxon
    from penstock.ranking import precision_at_n as precision_at_n
    from penstock.ranking import true_detections as true_detections

# Names load on first use: the command line needs only some of them.
_HOMES = {
    "penstock.bench.datasets": ("Dataset", "load_file"),
    "penstock.bench.methods": ("average_precision", "roc_auc"),
    "penstock.bench.report": ("write_report",),
    "penstock.bench.results": ("Results", "compare_rows", "failures", "method_summary", "pivot", "read_results"),
    "penstock.bench.runner": ("run_study",),
    "penstock.ranking": ("precision_at_n", "true_detections"),
    "penstock.bench.settings": ("Method", "Study", "parse_settings", "read_settings"),
    "penstock.bench.significance": ("compare_table", "conover", "friedman", "mean_ranks", "nemenyi", "wilcoxon"),
}
__all__ = [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'penstock.bench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
