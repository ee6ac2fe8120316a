"""The options of `penstock watch`, by group. Where the default is None, it is that of the detector."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli._defaults import detector_defaults
from penstock.cli._options import read_config

_DEFAULTS = detector_defaults()
_IN, _OUT, _STATE, _MODEL = "Input", "Output", "State", "Model"

Input = Annotated[str, typer.Argument(help="CSV or JSON lines, also packed (.gz); - is standard input.")]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Wait for more, also through rotation.", rich_help_panel=_IN)
]
Format = Annotated[
    str | None, typer.Option("--format", help="csv or jsonl; else by the first line.", rich_help_panel=_IN)
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", help="Between fields of CSV; else by the header: , ; tab |", rich_help_panel=_IN),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        help="The time column, passed through; else one called time, timestamp, date, datetime or t, or a first column "
        "that is not numbers.",
        rich_help_panel=_IN,
    ),
]
ColumnList = Annotated[str | None, typer.Option("--columns", help="Measure only these: a,b,c", rich_help_panel=_IN)]
Exclude = Annotated[
    str | None, typer.Option("--exclude", help="Leave out these, such as labels: a,b", rich_help_panel=_IN)
]
Strict = Annotated[bool, typer.Option("--strict", help="End at the first malformed line.", rich_help_panel=_IN)]

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="A file; else standard output.", rich_help_panel=_OUT)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an output that is there.", rich_help_panel=_OUT)]
Explain = Annotated[
    int, typer.Option("--explain", help="How many variables are named for each sample.", rich_help_panel=_OUT)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No status, no summary; errors are shown.", rich_help_panel=_OUT)
]

State = Annotated[
    Path | None,
    typer.Option("--state", help="A folder for snapshots, to go on from after any end.", rich_help_panel=_STATE),
]
SnapshotEvery = Annotated[
    int, typer.Option("--snapshot-every", help="Samples from one snapshot to the next.", rich_help_panel=_STATE)
]
SnapshotSeconds = Annotated[
    float, typer.Option("--snapshot-seconds", help="Or seconds, if those come first.", rich_help_panel=_STATE)
]


def _of_model(flag: str, text: str, default: str | bool = True) -> Any:
    """An option of the model. `default` is what help shows; True: the default of the command itself."""
    return typer.Option(flag, help=text, rich_help_panel=_MODEL, show_default=default)


Model = Annotated[Path | None, _of_model("--model", "Start from a saved OnlineNSNMF instead of a warm-up.")]
Components = Annotated[int | None, _of_model("--components", "Latent groups, K.", _DEFAULTS["n_components"])]
Alpha = Annotated[float | None, _of_model("--alpha", "Weight of attributes against structure.", _DEFAULTS["alpha"])]
Gamma = Annotated[float | None, _of_model("--gamma", "Weight of the ridge term in the warm-up.", _DEFAULTS["gamma"])]
BufferSize = Annotated[
    int | None,
    _of_model("--buffer-size", "Samples the tree reaches back, at most 2,000.", _DEFAULTS["buffer_size"]),
]
Similarity = Annotated[
    str | None, _of_model("--similarity", "How lengths become similarities; inverse is the paper's.", "binary")
]
Duplicates = Annotated[
    str | None,
    _of_model("--duplicates", "What an edge of length 0 is worth: join or zero.", _DEFAULTS["duplicates"]),
]
MaxIter = Annotated[int | None, _of_model("--max-iter", "Most steps for one sample.", _DEFAULTS["max_iter"])]
Tol = Annotated[float | None, _of_model("--tol", "Relative change that ends them.", _DEFAULTS["tol"])]
Forgetting = Annotated[
    float | None, _of_model("--forgetting", "What is left of the past per sample.", _DEFAULTS["forgetting"])
]
RefreshEvery = Annotated[
    int | None, _of_model("--refresh-every", "Profiles move at every so many-th.", _DEFAULTS["refresh_every"])
]
LearnFlagged = Annotated[
    bool | None,
    _of_model("--learn-flagged/--no-learn-flagged", "Learn anomalies too.", _DEFAULTS["learn_flagged"]),
]
Scale = Annotated[
    str | None, _of_model("--scale", "minmax, auto (minmax unless all is within 0 to 1) or none.", "minmax")
]
Warmup = Annotated[
    int | None,
    _of_model(
        "--warmup",
        "Samples to learn from before the first score.",
        "200 or, if larger or without scaling, the buffer",
    ),
]
Seed = Annotated[int, _of_model("--seed", "For the warm-up.")]
ThresholdSpec = Annotated[
    str | None,
    _of_model(
        "--threshold",
        "fixed:0.8 | deviation | quantile | peaks | drifting-peaks | conformal | top, with parameters as in "
        "quantile:rate=0.01,window=1000",
        "conformal:rate=0.01",
    ),
]

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        callback=read_config,
        is_eager=True,
        help="A TOML file with any of these options; the command line wins.",
    ),
]
