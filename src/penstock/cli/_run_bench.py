"""`penstock bench` and `penstock bench report` carried out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from penstock._messages import counted
from penstock.bench.datasets import load
from penstock.bench.protocol import Progress, run_study
from penstock.bench.rows_file import RowsFileError
from penstock.bench.settings import SettingsError, Study, expand_datasets
from penstock.bench.settings_file import read_settings
from penstock.bench.study_folder import read_results
from penstock.cli._bench_summary import summary_text
from penstock.cli._console import CommandError, Stages, print_text, printable


def run_bench(context: typer.Context) -> int:
    """Run a study; exit code 0, also if some cells failed: the study says so. 1 if none has a result."""
    options = context.params
    study = _study(options)
    _check_data(options["data"] or [])
    # Modules beside the user, such as a detector of their own, are found as from a script.
    sys.path.insert(0, str(Path.cwd()))
    with _Bar(quiet=options["quiet"]) as bar:
        try:
            results = run_study(
                study, options["folder"], jobs=options["jobs"], retry=options["retry"], progress=bar.show
            )
        except KeyboardInterrupt:
            bar.say("stopped; what is done is kept, the same command goes on from here")
            raise
        except RowsFileError as error:
            raise CommandError(str(error), exit_code=2) from None
        except RuntimeError as error:
            raise CommandError(str(error)) from None
    if not options["quiet"]:
        print_text("\n".join(printable(line) for line in summary_text(results).splitlines()))
        print_text(f"\nRows: {options['folder'] / 'rows.jsonl'}. A page: penstock bench report {options['folder']}")
    return 0 if (results.rows["status"] == "ok").any() else 1


def _check_data(given: list[str]) -> None:
    """Refuse what was named on the command line and cannot be read; in a file of many it is for the study to say."""
    for name in expand_datasets(given):
        try:
            load(name)
        except (OSError, ValueError) as error:
            raise CommandError(f"--data {name}: {error}", exit_code=2) from None


def run_report(folder: Path, markdown: Path | None, *, plant: bool, overwrite: bool, quiet: bool) -> int:
    """Write the report of a study's folder."""
    from penstock.bench.plant import plant_tables
    from penstock.report.study import write_study

    try:
        results = read_results(folder)
    except (FileNotFoundError, ValueError) as error:
        raise CommandError(str(error), exit_code=2) from None
    with Stages(quiet=quiet) as stages:
        tables = plant_tables(progress=stages) if plant else None
        stages("writing the report")
        try:
            written = write_study(
                results,
                folder,
                markdown=markdown,
                plant=tables,
                overlaps=results.overlaps,
                overwrite=overwrite,
            )
        except FileExistsError as error:
            raise CommandError(str(error).replace("overwrite=True", "add --overwrite"), exit_code=2) from None
    if not quiet:
        for path in written[:2]:
            print_text(printable(f"Written: {path}"))
    return 0


def _study(options: dict[str, Any]) -> Study:
    try:
        study = read_settings(options["config"])
        study = study.only(
            parts=options["part"] or (),
            methods=options["method"] or (),
            datasets=options["data"] or (),
            seeds=options["seeds"],
        )
        limit = options["time_limit"]
        return study if limit is None else study.limited(limit)
    except SettingsError as error:
        raise CommandError(str(error), exit_code=2) from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{options['config']}: not a text in UTF-8: {error}.", exit_code=2) from None
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}.", exit_code=2) from None


class _Bar:
    """A bar on a terminal, with what was run last; nothing in a pipe."""

    def __init__(self, *, quiet: bool) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._trouble = 0
        self._shown = not quiet and sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> _Bar:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            self._bar = RichProgress(
                *(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()),
                TextColumn("{task.description}", markup=False),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("reading the data sets", total=None)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, progress: Progress) -> None:
        if progress.outcome["status"] != "ok":
            self._trouble += 1
        if self._bar is not None:
            trouble = f", {counted(self._trouble, 'cell')} without result" if self._trouble else ""
            words = printable(f"{progress.cell.method.name} on {progress.cell.dataset}{trouble}")
            self._bar.update(self._task, total=progress.total, completed=progress.done, description=words)

    def say(self, text: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(f"penstock: {text}\n")
