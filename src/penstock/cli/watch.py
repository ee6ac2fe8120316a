"""`penstock watch`: a stream of rows in, a line of JSON per sample out."""

from __future__ import annotations

import typer

from penstock.cli import _watch_options as option


def watch(
    context: typer.Context,
    input: option.Input = "-",
    follow: option.Follow = False,
    format: option.Format = None,
    delimiter: option.Delimiter = None,
    time: option.Time = None,
    columns: option.ColumnList = None,
    exclude: option.Exclude = None,
    strict: option.Strict = False,
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    n_variables: option.Explain = 3,
    quiet: option.Quiet = False,
    state: option.State = None,
    snapshot_every: option.SnapshotEvery = 50_000,
    snapshot_seconds: option.SnapshotSeconds = 10.0,
    model: option.Model = None,
    n_components: option.Components = None,
    alpha: option.Alpha = None,
    gamma: option.Gamma = None,
    buffer_size: option.BufferSize = None,
    similarity: option.Similarity = None,
    duplicates: option.Duplicates = None,
    max_iter: option.MaxIter = None,
    tol: option.Tol = None,
    forgetting: option.Forgetting = None,
    refresh_every: option.RefreshEvery = None,
    learn_flagged: option.LearnFlagged = None,
    scale: option.Scale = None,
    warmup: option.Warmup = None,
    random_state: option.Seed = 0,
    threshold: option.ThresholdSpec = None,
    config: option.Config = None,
) -> int:
    """Watch a stream: rows in, one line of JSON per sample out, as soon as it is known.

    {"row": 7, "time": "10:06", "score": 0.31, "threshold": 0.28, "flag": true, "variables": {"flow": -3.5}}

    Row is the number of the sample, from 1; malformed lines are reported on standard error and not counted. Variables
    are those that fit worst: what was measured minus what was expected. Null is for what is not known yet (warm-up) or
    cannot be. With --state, a watch that ended in any way goes on where it was: start it again as before.
    """
    from penstock.cli._run_watch import run_watch

    return run_watch(context)
