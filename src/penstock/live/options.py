"""Options of a monitored stream, declared once for Python, the command line, TOML files and saved settings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from penstock._parameters import ParameterError
from penstock.options import Option

_IN, _OUT, _STATE, _MODEL = "Input", "Output", "State", "Model"


@dataclass(frozen=True)
class WatchOptions:
    """What to monitor, with which model, and where verdicts and snapshots go.

    The fields are the options of `penstock watch` (`docs/watch.md`): `n_variables` is `--explain`, `n_components`
    `--components` and `random_state` `--seed`. Parameters of `OnlineNSNMF` that are None have its defaults, except
    that `similarity` is "binary", `scale` "minmax", `warmup` 200 or the buffer, and `threshold` "conformal:rate=0.01".

    Examples
    --------
    >>> WatchOptions(input="plant.csv", model="unit1.penstock", threshold="0.001").model
    'unit1.penstock'
    """

    input: Annotated[str | Path, Option(_IN, "", "CSV or JSON lines, also packed (.gz); - is standard input.")] = "-"
    follow: Annotated[bool, Option(_IN, "--follow -f", "Wait for more, also through rotation.")] = False
    format: Annotated[str | None, Option(_IN, "--format", "csv or jsonl; else by the first line.")] = None
    delimiter: Annotated[
        str | None, Option(_IN, "--delimiter", "Between fields of CSV; else by the header: , ; tab |")
    ] = None
    time: Annotated[
        str | None,
        Option(
            _IN,
            "--time",
            "The time column, passed through; else one called time, timestamp, date, datetime or t, or a first "
            "column that is not numbers.",
        ),
    ] = None
    columns: Annotated[tuple[str, ...], Option(_IN, "--columns", "Measure only these: a,b,c")] = ()
    exclude: Annotated[tuple[str, ...], Option(_IN, "--exclude", "Leave out these, such as labels: a,b")] = ()
    strict: Annotated[bool, Option(_IN, "--strict", "End at the first malformed line.")] = False
    output: Annotated[Path | None, Option(_OUT, "--output -o", "A file; else standard output.")] = None
    overwrite: Annotated[bool, Option(_OUT, "--overwrite", "Replace an output that is there.")] = False
    n_variables: Annotated[int, Option(_OUT, "--explain", "How many variables are named for each sample.")] = 3
    state: Annotated[Path | None, Option(_STATE, "--state", "A folder for snapshots, to go on from after any end.")] = (
        None
    )
    snapshot_every: Annotated[int, Option(_STATE, "--snapshot-every", "Samples from one snapshot to the next.")] = (
        50_000
    )
    snapshot_seconds: Annotated[float, Option(_STATE, "--snapshot-seconds", "Or seconds, if those come first.")] = 10.0
    model: Annotated[
        Path | None,
        Option(
            _MODEL,
            "--model",
            "A model of 'penstock fit', or a saved detector; else an OnlineNSNMF learns from the first rows.",
        ),
    ] = None
    threshold: Annotated[
        Any,
        Option(
            _MODEL,
            "--threshold",
            "fixed:0.8 | deviation | quantile | peaks | drifting-peaks | conformal | top, with parameters as in "
            "quantile:rate=0.01,window=1000; with --model also auto, or a share of normal rows.",
            default="conformal:rate=0.01, or the model's own",
        ),
    ] = None
    n_components: Annotated[int | None, Option(_MODEL, "--components", "Latent groups, K.", default="5")] = None
    alpha: Annotated[
        float | None, Option(_MODEL, "--alpha", "Weight of attributes against structure.", default="0.8")
    ] = None
    gamma: Annotated[
        float | None, Option(_MODEL, "--gamma", "Weight of the ridge term in the warm-up.", default="0.2")
    ] = None
    buffer_size: Annotated[
        int | None, Option(_MODEL, "--buffer-size", "Samples the tree reaches back, at most 2,000.", default="20")
    ] = None
    similarity: Annotated[
        str | None,
        Option(_MODEL, "--similarity", "How lengths become similarities; inverse is the paper's.", default="binary"),
    ] = None
    duplicates: Annotated[
        str | None, Option(_MODEL, "--duplicates", "What an edge of length 0 is worth: join or zero.", default="join")
    ] = None
    max_iter: Annotated[int | None, Option(_MODEL, "--max-iter", "Most steps for one sample.", default="50")] = None
    tol: Annotated[float | None, Option(_MODEL, "--tol", "Relative change that ends them.", default="0.001")] = None
    forgetting: Annotated[
        float | None, Option(_MODEL, "--forgetting", "What is left of the past per sample.", default="1.0")
    ] = None
    refresh_every: Annotated[
        int | None, Option(_MODEL, "--refresh-every", "Profiles move at every so many-th.", default="1")
    ] = None
    learn_flagged: Annotated[
        bool | None, Option(_MODEL, "--learn-flagged/--no-learn-flagged", "Learn anomalies too.", default="True")
    ] = None
    scale: Annotated[
        str | None,
        Option(_MODEL, "--scale", "minmax, auto (minmax unless all is within 0 to 1) or none.", default="minmax"),
    ] = None
    warmup: Annotated[
        int | None,
        Option(
            _MODEL,
            "--warmup",
            "Samples to learn from before the first score.",
            default="200 or, if larger or without scaling, the buffer",
        ),
    ] = None
    random_state: Annotated[int | None, Option(_MODEL, "--seed", "For the warm-up.", default="0")] = None

    def check(self) -> None:
        """Raise a `ParameterError` for a value out of bounds."""
        wrong = {
            "format": self.format not in (None, "csv", "jsonl") and "must be csv or jsonl",
            "delimiter": not _is_delimiter(self.delimiter) and "must be one character, or tab",
            "n_variables": self.n_variables < 0 and "must be a whole number ≥ 0",
            "snapshot_every": self.snapshot_every < 1 and "must be a whole number ≥ 1",
            "snapshot_seconds": not self.snapshot_seconds > 0 and "must be a number > 0",
            "random_state": not 0 <= (self.random_state or 0) < 2**32 and "must be a whole number from 0 to 4294967295",
        }
        for name, problem in wrong.items():
            if problem:
                raise ParameterError(name, f" {problem}; got {getattr(self, name)!r}.")

    def online_parameters(self) -> dict[str, Any]:
        """Return the parameters of `OnlineNSNMF` that are not None."""
        names = [each.name for each in fields(self)]
        chosen = {name: getattr(self, name) for name in names[names.index("n_components") :]}
        return {name: value for name, value in chosen.items() if value is not None}


def _is_delimiter(text: str | None) -> bool:
    return text in (None, "tab", "\\t") or (len(text) == 1 and text.isascii() and text not in '"\n\r')
