"""`penstock score`: a model and a table in; findings, events and a report out."""

from __future__ import annotations

import typer

from penstock.cli import _detect_options as option
from penstock.cli import _table_options as table


def score(
    context: typer.Context,
    model: option.ModelIn,
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
    time: table.Time = None,
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
    config: table.Config = None,
) -> int:
    """Judge a table by a model that 'penstock fit' made of another: new data against what was usual.

    The table is read as that one was, unless options say otherwise. Without --top and --threshold, findings are rows
    with scores that stand out from those of the training. Exit codes are those of 'penstock detect'.
    """
    from penstock.cli._run_detect import run_score

    return run_score(context)
