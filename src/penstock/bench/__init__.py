"""Compare detectors on labelled data sets: ``penstock bench``, and the same from Python."""

from penstock.bench.datasets import Dataset, load_file
from penstock.bench.measures import (
    EventMeasures,
    average_precision,
    event_measures,
    roc_auc,
    vus_buffer,
    vus_pr,
)
from penstock.bench.report import write_report
from penstock.bench.results import Lead, Results, compare_rows, failures, find_lead, method_summary, pivot, read_results
from penstock.bench.runner import run_study
from penstock.bench.settings import Method, Study, parse_settings, read_settings
from penstock.bench.significance import compare_table, conover, friedman, mean_ranks, nemenyi, wilcoxon
from penstock.ranking import precision_at_n, true_detections

__all__ = [
    "Dataset",
    "EventMeasures",
    "Lead",
    "Method",
    "Results",
    "Study",
    "average_precision",
    "compare_rows",
    "compare_table",
    "conover",
    "event_measures",
    "failures",
    "find_lead",
    "friedman",
    "load_file",
    "mean_ranks",
    "method_summary",
    "nemenyi",
    "parse_settings",
    "pivot",
    "precision_at_n",
    "read_results",
    "read_settings",
    "roc_auc",
    "run_study",
    "true_detections",
    "vus_buffer",
    "vus_pr",
    "wilcoxon",
    "write_report",
]
