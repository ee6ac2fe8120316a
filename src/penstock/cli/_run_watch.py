"""From the options of `penstock watch` to a plan, and the plan carried out."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import typer

import penstock
from penstock.cli._config import place_of
from penstock.cli._errors import CommandError
from penstock.cli._names import split_names
from penstock.cli._narrator import Narrator
from penstock.cli._signals import StopSignals
from penstock.cli._thresholds import parse_threshold
from penstock.detectors.online import OnlineNSNMF
from penstock.io import InputError, OutputError, SnapshotError, TableOptions
from penstock.live import Watch, WatchPlan
from penstock.storage import StorageError, WrongKindError
from penstock.thresholds import ConformalPValue

# Not the detector's own defaults, which are the paper's: docs/streaming.md has the figures, docs/watch.md the reasons.
_FOR_SENSORS = {"similarity": "binary", "threshold": ConformalPValue(rate=0.01)}
_LEAST_WARMUP = 200  # samples: fewer make poor ranges of columns
_FOR_TABLES = "A stream needs a saved OnlineNSNMF. Models of 'penstock fit' judge files: 'penstock score'."
_SIGNALLED = 128  # what shells add to the number of a signal


def run_watch(context: typer.Context) -> int:
    """Carry out the command, and return its exit code."""
    plan = make_plan(context)
    narrator = Narrator(quiet=context.params["quiet"], status=not _verdicts_on_terminal(plan))
    counts = None
    try:
        with StopSignals() as stop, narrator.warnings():
            watch = Watch(plan, narrator.observer())
            narrator.begin(watch)
            counts = watch.run(stop.requested)
    except BrokenPipeError:  # the reader of the output has had enough
        return 0
    except (InputError, OutputError, SnapshotError, StorageError) as error:
        raise CommandError(str(error), exit_code=2) from error
    finally:
        narrator.end(counts)
    if stop.number is not None:
        return _SIGNALLED + stop.number
    if counts.malformed and not counts.samples:
        hint = narrator.text_columns.hint(samples=0)
        raise CommandError(f"No line could be read: {hint}" if hint else "No line could be read.", exit_code=2)
    return 0


def _verdicts_on_terminal(plan: WatchPlan) -> bool:
    """Whether verdicts are shown where a status would be: each would write over the other."""
    return plan.output is None and sys.stdout is not None and sys.stdout.isatty()


def make_plan(context: typer.Context) -> WatchPlan:
    """Check all options, and say what is to be done."""
    given = context.params
    _check_bounds(context)
    return WatchPlan(
        detector=_detector_maker(context),
        origin=None if given["model"] is None else hashlib.sha256(given["model"].read_bytes()).hexdigest()[:12],
        input=None if given["input"] == "-" else Path(given["input"]),
        follow=given["follow"],
        table=TableOptions(
            format=given["format"],
            delimiter=_delimiter(context),
            time=given["time"],
            columns=split_names(given["columns"]),
            exclude=split_names(given["exclude"]),
        ),
        strict=given["strict"],
        output=given["output"],
        overwrite=given["overwrite"],
        n_variables=given["n_variables"],
        state=given["state"],
        snapshot_every=given["snapshot_every"],
        snapshot_seconds=given["snapshot_seconds"],
    )


def _detector_maker(context: typer.Context) -> Callable[[], Any]:
    chosen: dict[str, Any] = {name: context.params.get(name) for name in OnlineNSNMF._get_param_names()}
    if context.params["model"] is not None:
        _refuse_beside_model(context, chosen)
        return partial(_load, context.params["model"])
    chosen = {name: value for name, value in chosen.items() if value is not None}
    try:
        if "threshold" in chosen:
            chosen["threshold"] = parse_threshold(chosen["threshold"])
    except ValueError as error:
        raise CommandError(f"{place_of(context, 'threshold')}: {error}", exit_code=2) from None
    chosen = {**_FOR_SENSORS, **chosen}
    chosen["scale"] = None if chosen.get("scale") == "none" else chosen.get("scale", "minmax")
    detector = OnlineNSNMF(**chosen)
    if detector.scale is not None and "warmup" not in chosen:
        chosen["warmup"] = max(_LEAST_WARMUP, detector.buffer_size)
    _check_parameters(context, OnlineNSNMF(**chosen))
    return lambda: OnlineNSNMF(**chosen)


def _check_parameters(context: typer.Context, detector: OnlineNSNMF) -> None:
    try:
        detector.check_parameters()
    except ValueError as error:
        name = re.match(r"\w*", str(error))
        where = place_of(context, name[0]) if name and name[0] in detector.get_params(deep=False) else "watch"
        raise CommandError(f"{where}: {error}", exit_code=2) from None


def _refuse_beside_model(context: typer.Context, chosen: dict[str, Any]) -> None:
    for name in chosen:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise CommandError(f"{place_of(context, name)} cannot be changed: --model has its own.", exit_code=2)


def _load(path: Path) -> OnlineNSNMF:
    try:
        model = penstock.load(path)
    except WrongKindError as error:
        raise InputError(f"{error}. {_FOR_TABLES}") from None
    if not isinstance(model, OnlineNSNMF):
        raise InputError(f"{path} holds {type(model).__name__}. {_FOR_TABLES}")
    return model


def _check_bounds(context: typer.Context) -> None:
    given = context.params
    wrong = {
        "format": given["format"] not in (None, "csv", "jsonl") and "must be csv or jsonl",
        "n_variables": given["n_variables"] < 0 and "must be a whole number ≥ 0",
        "snapshot_every": given["snapshot_every"] < 1 and "must be a whole number ≥ 1",
        "random_state": not 0 <= given["random_state"] < 2**32 and "must be a whole number from 0 to 4294967295",
        "snapshot_seconds": not given["snapshot_seconds"] > 0 and "must be a number > 0",
    }
    for name, problem in wrong.items():
        if problem:
            raise CommandError(f"{place_of(context, name)} {problem}; got {given[name]!r}.", exit_code=2)


def _delimiter(context: typer.Context) -> str | None:
    text: str | None = context.params["delimiter"]
    text = "\t" if text in ("tab", "\\t") else text
    if text is not None and (len(text) != 1 or not text.isascii() or text in '"\n\r'):
        raise CommandError(
            f"{place_of(context, 'delimiter')} must be one character, or tab; got {text!r}.", exit_code=2
        )
    return text
