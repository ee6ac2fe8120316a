"""`penstock fit`: a table in, a model out, to score other tables by."""

from __future__ import annotations

import typer

from penstock.cli import _detect_options as option
from penstock.cli import _table_options as table


def fit(
    context: typer.Context,
    source: table.Sources,
    model: option.ModelOut,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
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
    """Learn from a table what is usual, and keep it in a file for 'penstock score'.

    Exit code 0: done; 2: the input or an option is wrong, or the model cannot be written.
    """
    from penstock.cli._run_detect import run_fit

    return run_fit(context)
