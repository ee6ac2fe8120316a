"""The options of `penstock detect`, `fit` and `score` besides those of tables, by group.

Where the default is None, it is that of the library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

_MODEL, _LEARN, _CUT, _OUT = "Model", "What is learnt, and what is judged", "What counts as a finding", "Output"


def _model(*flags: str, text: str, default: str | bool = False) -> Any:
    return typer.Option(*flags, help=text, rich_help_panel=_MODEL, show_default=default)


def _learn(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text, rich_help_panel=_LEARN)


def _cut(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text, rich_help_panel=_CUT)


def _out(*flags: str, text: str) -> Any:
    return typer.Option(*flags, help=text, rich_help_panel=_OUT)


Method = Annotated[
    str,
    _model(
        "--method",
        text="detector, nsnmf (the paper's NS-NMF, exactly penstock.NSNMF(); it often needs --similarity normalized), "
        "laplacian, online, nmf, gnmf, snmf, lomst, mean, knn or norm.",
        default=True,
    ),
]
Components = Annotated[
    int | None, _model("--n-components", "--components", "-K", text="Latent groups, of nsnmf and its kin.", default="5")
]
Alpha = Annotated[float | None, _model("--alpha", text="Weight of attributes against structure.", default="0.8")]
Gamma = Annotated[float | None, _model("--gamma", text="Weight of the ridge term.", default="0.2")]
Similarity = Annotated[
    str | None,
    _model(
        "--similarity",
        text="How lengths become similarities: inverse (the paper's), relative, normalized or binary.",
        default="inverse",
    ),
]
Score = Annotated[str | None, _model("--score-kind", "--score", text="residual or structural.", default="residual")]
Seed = Annotated[int, _model("--seed", text="The same seed gives the same findings.", default=True)]
Engine = Annotated[
    str,
    _model(
        "--engine", text="Where it is fitted: local, dask (all cores) or dask://HOST:PORT (a cluster).", default=True
    ),
]

TrainUntil = Annotated[str | None, _learn("--train-until", "Learn from what is good until this time, or row.")]
TrainRule = Annotated[str | None, _learn("--train-rule", "Or from the rows where this holds: 'flow > 3', 'row < 500'")]
Mode = Annotated[
    list[str] | None,
    _learn("--mode", "Judge operating modes apart: a column, 'power > 5' or 'running: power > 5'; may be repeated."),
]
SkipMode = Annotated[list[str] | None, _learn("--skip-mode", "A mode not to judge; may be repeated.")]
Settle = Annotated[str | None, _learn("--settle", "Do not judge so long after a change of mode: 30min, or 3 (rows)")]
Units = Annotated[Path | None, _learn("--units", "A CSV file with the columns name and unit, for explanations.")]

Top = Annotated[int | None, _cut("--top", "So many rows with the highest scores; else 100, at most 1 row in 20.")]
ThresholdSpec = Annotated[
    str | None,
    _cut(
        "--threshold",
        "Or all above: auto, a share of the rows such as 0.01 (with method detector and a training period, of normal "
        "rows: the rate of false alarms), fixed:0.8, deviation, quantile … ",
    ),
]
Gap = Annotated[str | None, _cut("--gap", "Findings at most so far apart are one event: 2h, or 6 (rows)")]
FailOn = Annotated[int | None, _cut("--fail-on", "End with exit code 1 if there are so many events, or more.")]

Report = Annotated[Path | None, _out("--report", text="A page for people, .html")]
Output = Annotated[
    Path | None, _out("--output", "-o", text="The findings with their events: .csv, .csv.gz, .json or .parquet")
]
Scores = Annotated[Path | None, _out("--scores", text="The scores of all rows: .csv, .csv.gz, .jsonl or .parquet")]
ModelOut = Annotated[Path, _out("--model", "-m", text="Where the model goes.")]
ModelIn = Annotated[Path, typer.Argument(metavar="MODEL", help="As 'penstock fit' wrote it.", show_default=False)]
Overwrite = Annotated[bool, _out("--overwrite", text="Replace files that are there.")]
Quiet = Annotated[bool, _out("--quiet", "-q", text="Say nothing but errors.")]
Json = Annotated[bool, _out("--json", text="The summary as JSON.")]
