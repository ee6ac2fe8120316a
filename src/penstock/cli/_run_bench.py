"""Carry out `penstock bench` and `penstock bench report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from penstock._messages import counted
from penstock.bench import Results, Study, compare_rows, failures, load_file, parse_settings, read_results, run_study
from penstock.bench import read_settings as read_settings_file
from penstock.bench.report import format_methods, write_report
from penstock.bench.results import RowsFileError, saw_labels
from penstock.bench.runner import Progress
from penstock.bench.settings import SettingsError, example_settings
from penstock.cli._console import CommandError, print_text, printable

_MOST_REASONS = 8
_FEW_SETS = 5


def run_bench(context: typer.Context) -> int:
    """Run a study; return 0, also if some cells failed, and 1 if none has a result."""
    options = context.params | {"folder": Path(context.params["folder"])}  # older typers keep texts there
    study = _study(options)
    for name in options["data"] or []:  # in a settings file with many sets, one that cannot be read is reported later
        try:
            load_file(name)
        except (OSError, ValueError) as error:
            raise CommandError(f"--data {name}: {error}", exit_code=2) from None
    # Modules in this folder, such as a user's own detector, are found as from a script.
    sys.path.insert(0, str(Path.cwd()))
    with _Bar(quiet=options["quiet"]) as bar:
        try:
            results = run_study(
                study, options["folder"], jobs=options["jobs"], retry=options["retry"], progress=bar.show
            )
        except KeyboardInterrupt:
            if sys.stderr is not None:
                sys.stderr.write("penstock: stopped; what is done is kept, the same command goes on from here\n")
            raise
        except RowsFileError as error:
            raise CommandError(str(error), exit_code=2) from None
        except RuntimeError as error:
            raise CommandError(str(error)) from None
    if not options["quiet"]:
        print_text("\n".join(printable(line) for line in summary_text(results).splitlines()))
        print_text(f"\nRows: {options['folder'] / 'rows.jsonl'}. A page: penstock bench report {options['folder']}")
    return 0 if (results.rows["status"] == "ok").any() else 1


def run_report(folder: Path, markdown: Path | None, *, overwrite: bool, quiet: bool) -> int:
    """Write the report of a study's folder."""
    try:
        written = write_report(read_results(folder), folder, markdown=markdown, overwrite=overwrite)
    except FileExistsError as error:
        raise CommandError(str(error).replace("overwrite=True", "add --overwrite"), exit_code=2) from None
    except (FileNotFoundError, ValueError) as error:
        raise CommandError(str(error), exit_code=2) from None
    if not quiet:
        for path in written:
            print_text(printable(f"Written: {path}"))
    return 0


def _study(options: dict[str, Any]) -> Study:
    config, data = options["config"], options["data"] or ()
    if config is None and not data:
        raise CommandError(
            "penstock bench needs labelled data: --data FILE or FILE::LABEL, or --config with a settings file that "
            "names some. The study of the paper (Ahmed et al. 2021) is in penstock's repository: 'make study' runs it.",
            exit_code=2,
        )
    try:
        study = parse_settings(example_settings()) if config is None else read_settings_file(config)
        study = study.only(methods=options["method"] or (), datasets=data, seeds=options["seeds"])
        if not study.datasets:
            raise SettingsError(
                f"{config}: there are no data sets. Name labelled files under datasets, or with --data."
            )
        return study if options["time_limit"] is None else study.limited(options["time_limit"])
    except SettingsError as error:
        raise CommandError(str(error), exit_code=2) from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{config}: not a text in UTF-8: {error}.", exit_code=2) from None
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}.", exit_code=2) from None


def summary_text(results: Results) -> str:
    """Return what is printed at the end of a study: data sets, methods, the overall test, what failed."""
    rows = results.rows
    blocks = []
    sets = rows[rows["n"] > 0].groupby("dataset", sort=False)[["n", "p", "n_anomalies"]].max()
    if 0 < len(sets) <= _FEW_SETS:
        sizes = zip(sets.index, sets.itertuples(index=False), strict=True)
        lines = [
            f"{name}: {counted(int(n), 'row')} of {counted(int(p), 'input')}, {found:,} anomalous"
            for name, (n, p, found) in sizes
        ]
        blocks.append("\n".join(lines))
    if (rows["status"] == "ok").any():
        table = format_methods(rows)
        shown = pd.DataFrame(table.cells, columns=list(table.headers)).set_index("method").rename_axis(index=None)
        heading = "Means over the data sets of the medians over seeds; ranks by P@N, 1 is best"
        blocks.append(f"{heading}\n\n{shown.drop(columns=['failed cells', 'cells not run']).to_string()}")
    test = compare_rows(rows[~saw_labels(rows)]).friedman
    if test is not None:
        words = f"Friedman over {test.n} data sets and {test.k} methods: p = {test.p_value:.2e}"
        blocks.append(f"{words} (χ² = {test.statistic:.2f}).")
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
        """Show a cell that has been run."""
        self._failed += progress.outcome["status"] != "ok"
        if self._bar is not None:
            failed = f", {counted(self._failed, 'cell')} without result" if self._failed else ""
            words = printable(f"{progress.cell.method.name} on {progress.cell.dataset}{failed}")
            self._bar.update(self._task, total=progress.total, completed=progress.done, description=words)
