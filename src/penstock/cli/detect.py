"""`penstock detect`: a table in; findings, events and a report out."""

from __future__ import annotations

import typer

from penstock.cli import _detect_options as option
from penstock.cli import _table_options as table


def detect(
    context: typer.Context,
    source: table.Sources,
    report: option.Report = None,
    output: option.Output = None,
    scores: option.Scores = None,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
    json: option.Json = False,
    top: option.Top = None,
    threshold: option.ThresholdSpec = None,
    gap: option.Gap = None,
    fail_on: option.FailOn = None,
    train_until: option.TrainUntil = None,
    train_rule: option.TrainRule = None,
    mode: option.Mode = None,
    skip_mode: option.SkipMode = None,
    settle: option.Settle = None,
    units: option.Units = None,
    time: table.Time = None,
    columns: table.ColumnList = None,
    exclude: table.Exclude = None,
    keep: table.Keep = None,
    label: table.Label = None,
    fault_value: table.FaultValue = None,
    unknown_value: table.UnknownValue = None,
    group: table.Group = None,
    since: table.From = None,
    until: table.Until = None,
    exclude_period: table.ExcludePeriod = None,
    strict: table.Strict = False,
    max_bytes: table.MaxBytes = None,
    timezone: table.Timezone = None,
    day_first: table.DayFirst = None,
    time_format: table.TimeFormat = None,
    names: table.Names = None,
    separator: table.Separator = None,
    decimal: table.Decimal = None,
    thousands: table.Thousands = None,
    missing: table.Missing = None,
    encoding: table.Encoding = None,
    sheet: table.Sheet = None,
    method: option.Method = "detector",
    n_components: option.Components = None,
    alpha: option.Alpha = None,
    gamma: option.Gamma = None,
    similarity: option.Similarity = None,
    score_kind: option.Score = None,
    random_state: option.Seed = 0,
    engine: option.Engine = "local",
    config: table.Config = None,
) -> int:
    """Find what is anomalous in a table: which rows, which events, on which days, and which variables are behind them.

    A summary goes to standard output, with what was left out or changed on the way. Exit code 0: done; 1: at least
    --fail-on events; 2: the input or an option is wrong, or a file cannot be written. Files are written wholly or not
    at all.
    """
    from penstock.cli._run_detect import run_detect

    return run_detect(context)
