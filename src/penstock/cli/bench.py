"""`penstock bench`: methods × data sets × seeds, with the paper's figures beside ours; and what goes with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

bench = typer.Typer(help="Run a study: methods on labelled data sets, with its tables, tests and report.")

_FOLDER = Path("study")


@bench.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", help="The study's settings, a TOML file; the paper's study by default.")
    ] = None,
    folder: Annotated[Path, typer.Option("--folder", help="Where results are kept, and found again.")] = _FOLDER,
    part: Annotated[list[str] | None, typer.Option("--part", help="Only this part of the study; repeatable.")] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Only this method, or detector by its class name; repeatable.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="This data set instead: a name, a file (CSV, Parquet), FILE::LABEL; repeatable."),
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="How many seeds.")] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Cells at a time; as many as cores.")] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", min=0.001, help="Seconds per cell; what takes longer is reported.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run cells again that failed or were stopped.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress and no tables.")] = False,
) -> int:
    """Run a study, or what is missing of it: Ctrl-C loses nothing, the same command goes on.

    Without options it is the study of Ahmed et al. (2021), all parts; `penstock bench settings` shows what is in it.
    The data sets are read from the folder in PENSTOCK_DATA, or from what `penstock bench datasets --download` fetched.
    """
    if context.invoked_subcommand is not None:
        return 0
    from penstock.cli._run_bench import run_bench

    return run_bench(context)


@bench.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The study's folder.")] = _FOLDER,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Where the Markdown goes, if not to FOLDER/reproduction.md.")
    ] = None,
    plant: Annotated[
        bool, typer.Option("--plant", help="Also the paper's power plant tables, on the simulated plant (minutes).")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing.")] = False,
) -> int:
    """Write a study's report: FOLDER/study.html, one page, and Markdown with pictures. Unfinished studies are fine."""
    from penstock.cli._run_bench import run_report

    return run_report(folder, markdown, plant=plant, overwrite=overwrite, quiet=quiet)


@bench.command()
def datasets(
    names: Annotated[list[str] | None, typer.Argument(help="Which; all twenty by default.")] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch those that are missing from the collection's public home.")
    ] = False,
    home: Annotated[str | None, typer.Option("--home", help="Another place to fetch from: a URL.")] = None,
) -> int:
    """List the paper's data sets: what they are, what differs from its Table 1, and whether they are here."""
    from penstock.cli._bench_datasets import show_datasets

    return show_datasets(names or [], fetch=download, home=home)


@bench.command()
def settings() -> int:
    """Print the settings of the paper's study, to copy and change."""
    from penstock.bench.settings_file import paper_settings
    from penstock.cli._console import print_text

    print_text(paper_settings().rstrip("\n"))
    return 0
