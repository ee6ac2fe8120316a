"""`penstock bench`: compare methods on labelled files, with tables, tests and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

bench = typer.Typer(help="Compare methods on labelled files, with tables, tests and a report.")

_FOLDER = Path("study")


@bench.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="A labelled file (CSV, Parquet, Excel), or FILE::LABEL; repeatable."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", help="Only this method: a name, a class of ours, an import path; repeatable."),
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="The study's settings, a TOML file.")] = None,
    time: Annotated[str | None, typer.Option("--time", help="The time column. Found if not given.")] = None,
    group: Annotated[
        str | None, typer.Option("--group", help="A column of runs, units or machines: no event spans two.")
    ] = None,
    train_until: Annotated[
        str | None,
        typer.Option(
            "--train-until",
            help="Learn from the rows until this time, or from so many rows (of each group); score the later ones.",
        ),
    ] = None,
    cause: Annotated[
        str | None, typer.Option("--cause", help="A column that names the true sensors of a fault: a; b")
    ] = None,
    folder: Annotated[Path, typer.Option("--folder", help="Where results are kept, and found again.")] = _FOLDER,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="How many seeds.")] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Cells at a time; as many as cores.")] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", min=0.001, help="Seconds per cell; what takes longer is reported.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run cells again that failed or were stopped.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress and no tables.")] = False,
) -> int:
    """Say which detector suits your labelled data, by how much, and how sure that is; with a report.

    Without --method: Detector, SensorDetector (where there is time), NS-NMF, KNN, IForest, PCA. An interrupted study
    goes on where it stopped. 'penstock bench settings' prints an example of a settings file.
    """
    if context.invoked_subcommand is not None:
        return 0
    from penstock.cli._run_bench import run_bench

    return run_bench(context)


@bench.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The study's folder.")] = _FOLDER,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> int:
    """Write a study's report again: FOLDER/study.html, one page. Unfinished studies are fine."""
    from penstock.cli._run_bench import run_report

    return run_report(folder, quiet=quiet)


@bench.command()
def settings() -> int:
    """Print an example of a settings file, to copy and change."""
    from importlib import resources

    from penstock.cli._console import print_text

    example = resources.files("penstock") / "bench" / "templates" / "example.toml"  # without importing the bench
    print_text(example.read_text(encoding="utf-8").rstrip("\n"))
    return 0
