"""Carry out `penstock bench` and `penstock bench report`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from penstock._messages import counted
from penstock._parameters import ParameterError
from penstock.bench import Results, Study, failures, load_file, parse_settings, read_results, run_study
from penstock.bench import read_settings as read_settings_file
from penstock.bench.datasets import check_labels
from penstock.bench.methods import find_class
from penstock.bench.report import answer, data_notes, format_events, format_methods, write_report
from penstock.bench.runner import Progress
from penstock.bench.settings import READING, example_settings
from penstock.cli._console import CommandError, print_text, printable
from penstock.cli._options import plain_errors
from penstock.io import TableError

_MOST_REASONS = 8
_FEW_SETS = 5


def run_bench(context: typer.Context) -> int:
    """Run a study and write its report; return 0, also if some cells failed, and 1 if none has a result."""
    options = context.params | {"folder": Path(context.params["folder"])}  # older typers keep texts there
    study = _study(options)
    in_time = []
    for name in options["data"] or []:  # in a settings file with many sets, one that cannot be read is reported later
        with plain_errors(context, f"--data {name}: "):
            dataset = load_file(name, **study.reading)
            check_labels(dataset)
            in_time += [name] if dataset.time is not None else []
    if options["config"] is None and not options["method"]:  # of the default methods, one is for series alone
        kept = [m if m.detector != "SensorDetector" else replace(m, datasets=tuple(in_time)) for m in study.methods]
        study = replace(study, methods=tuple(m for m in kept if m.datasets != ()))
    # Modules in this folder, such as a user's own detector, are found as from a script.
    sys.path.insert(0, str(Path.cwd()))
    for method in study.methods if options["method"] else ():
        with plain_errors(context, "--method: "):
            find_class(method.detector)
    with _Bar(quiet=options["quiet"]) as bar:
        try:
            results = run_study(
                study, options["folder"], jobs=options["jobs"], retry=options["retry"], progress=bar.show
            )
        except KeyboardInterrupt:
            if sys.stderr is not None:
                sys.stderr.write("penstock: stopped; what is done is kept, the same command goes on from here\n")
            raise
        except TableError as error:
            raise CommandError(str(error)) from None
        except RuntimeError as error:
            raise CommandError(str(error), exit_code=1) from None
    found = (results.rows["status"] == "ok").any()
    page = write_report(results, options["folder"], overwrite=True) if found else None
    if not options["quiet"]:
        print_text("\n".join(printable(line) for line in summary_text(results).splitlines()))
        if page is not None:
            print_text(f"\nReport: {printable(str(page))}")
    return 0 if found else 1


def run_report(folder: Path, *, quiet: bool) -> int:
    """Write the report of a study's folder again."""
    try:
        page = write_report(read_results(folder), folder, overwrite=True)
    except (FileNotFoundError, ValueError) as error:
        raise CommandError(str(error)) from None
    if not quiet:
        print_text(printable(f"Written: {page}"))
    return 0


def _study(options: dict[str, Any]) -> Study:
    config, data = options["config"], options["data"] or ()
    if config is None and not data:
        raise CommandError(
            "penstock bench needs labelled data: --data FILE or FILE::LABEL, or --config with a settings file that "
            "names some ('penstock bench settings' prints an example)."
        )
    try:
        example = replace(parse_settings(example_settings()), datasets=())
        study = example if config is None else read_settings_file(config)
        reading = {name: options[name] for name in READING if options[name] is not None}
        study = study.only(methods=options["method"] or (), datasets=data, seeds=options["seeds"], reading=reading)
        if not study.datasets:
            raise CommandError(f"{config}: there are no data sets. Name labelled files under datasets, or with --data.")
        return study if options["time_limit"] is None else study.limited(options["time_limit"])
    except ParameterError as error:
        raise CommandError(str(error)) from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{config}: not a text in UTF-8: {error}.") from None
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}.") from None


def summary_text(results: Results) -> str:
    """Return what is printed at the end of a study: the answer, data sets, methods, what failed."""
    rows = results.rows
    blocks = []
    sets = rows[rows["n"] > 0].groupby("dataset", sort=False)[["n", "p", "n_anomalies"]].max()
    if 0 < len(sets) <= _FEW_SETS:
        sizes = zip(sets.index, sets.itertuples(index=False), strict=True)
        lines = [
            f"{name}: {counted(int(n), 'row')} of {counted(int(p), 'input')}, {found:,} anomalous"
            for name, (n, p, found) in sizes
        ]
        blocks.append("\n".join([*lines, *data_notes(rows)]))
    if (rows["status"] == "ok").any():
        blocks.append("\n".join(answer(rows)))
        tables = [format_methods(rows), *([format_events(rows)] if rows["faults"].notna().any() else [])]
        for table in tables:
            shown = pd.DataFrame(table.cells, columns=list(table.headers)).set_index("method").rename_axis(index=None)
            blocks.append(shown.to_string())
    failed = failures(rows)
    if len(failed):
        # What is wrong with a data set is wrong for all its methods: shown once.
        reasons = failed.groupby(["dataset", "status", "why"], sort=False).agg({"method": list, "cells": "sum"})
        lines = [f"{counted(int(failed['cells'].sum()), 'cell')} without result:"]
        for row in reasons.reset_index().head(_MOST_REASONS).to_dict("records"):
            who = row["method"][0] if len(row["method"]) == 1 else counted(len(row["method"]), "method")
            why = f", {row['why']}" if row["why"] else ""
            lines.append(f"  {who} on {row['dataset']}: {row['status']}{why} ({counted(int(row['cells']), 'cell')})")
        more = len(reasons) - _MOST_REASONS
        blocks.append("\n".join([*lines, *([f"  and {more:,} more"] if more > 0 else [])]))
    return "\n\n".join(blocks)


class _Bar:
    """A progress bar on a terminal, with the method and data set run last; nothing in a pipe."""

    def __init__(self, *, quiet: bool) -> None:
        self._bar: Any = None
        self._failed = 0
        self._shown = not quiet and sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> _Bar:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
            last = TextColumn("{task.description}", markup=False)
            console = Console(stderr=True)
            self._bar = RichProgress(BarColumn(), MofNCompleteColumn(), *times, last, console=console, transient=True)
            self._task = self._bar.add_task("reading the data sets", total=None)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, progress: Progress) -> None:
        self._failed += progress.outcome["status"] != "ok"
        if self._bar is not None:
            failed = f", {counted(self._failed, 'cell')} without result" if self._failed else ""
            words = printable(f"{progress.cell.method.name} on {progress.cell.dataset}{failed}")
            self._bar.update(self._task, total=progress.total, completed=progress.done, description=words)
