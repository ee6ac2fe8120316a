"""Run the study of the paper, write its report, list and fetch its data sets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.bench import read_results, run_study
from penstock.bench.runner import Progress
from studies.ahmed2021 import datasets as sets
from studies.ahmed2021 import registry
from studies.ahmed2021.download import HOME, DownloadError, download
from studies.ahmed2021.plant import read_plant, search_plant
from studies.ahmed2021.report import write_study
from studies.ahmed2021.settings import choose, paper_study, read

PLANT = "plant.json"
_FOLDER = Path("study")
app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)


@app.command()
def run(
    config: Annotated[Path | None, typer.Option(help="Other settings, a TOML file.")] = None,
    folder: Annotated[Path, typer.Option(help="Where results are kept, and found again.")] = _FOLDER,
    part: Annotated[list[str] | None, typer.Option(help="Only this part; repeatable.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="Only this method; repeatable.")] = None,
    data: Annotated[list[str] | None, typer.Option(help="Only this data set, by name; repeatable.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Cells at a time; as many as cores.")] = None,
    time_limit: Annotated[float | None, typer.Option(min=0.001, help="Seconds per cell.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run cells again that failed or were stopped.")] = False,
) -> None:
    """Run the study, or what is missing of it: an interrupted run goes on where it stopped."""
    try:
        study = paper_study() if config is None else read(config)
        study = choose(study, part or (), method or (), data or (), seeds)
        study = study if time_limit is None else study.limited(time_limit)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    folder.mkdir(parents=True, exist_ok=True)
    results = run_study(study, folder, jobs=jobs, retry=retry, progress=_show, load=sets.load)
    print(results.rows["status"].value_counts().to_string())
    raise typer.Exit(0 if (results.rows["status"] == "ok").any() else 1)


@app.command()
def plant(folder: Annotated[Path, typer.Option(help="Where the lists are kept.")] = _FOLDER) -> None:
    """Search the simulated plant with the paper's settings and with ours, for the report. Takes minutes."""
    folder.mkdir(parents=True, exist_ok=True)
    search_plant(folder / PLANT, progress=lambda text: print(text, file=sys.stderr))


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The study's folder.")] = _FOLDER,
    pages: Annotated[Path | None, typer.Option(help="Where the pages go, if not into the folder.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Write two pages and an appendix: reproduction.md, reproduction_appendix.md. Unfinished studies are fine."""
    try:
        found = read_plant(folder / PLANT) if (folder / PLANT).is_file() else None
        written = write_study(read_results(folder), pages or folder, plant=found, overwrite=overwrite)
    except (FileExistsError, FileNotFoundError, ValueError) as error:
        raise typer.BadParameter(str(error).replace("overwrite=True", "add --overwrite")) from None
    for path in written:
        print(f"Written: {path}")


@app.command()
def datasets(
    names: Annotated[list[str] | None, typer.Argument(help="Which; all twenty by default.")] = None,
    fetch: Annotated[bool, typer.Option("--download", help="Fetch those that are missing.")] = False,
    home: Annotated[str, typer.Option(help="Where to fetch from: a URL.")] = HOME,
) -> None:
    """List the paper's data sets: what they are, what differs from its Table 1, and whether they are here."""
    table = registry.provenance()
    for name in names or ():
        if name not in table.index:
            raise typer.BadParameter(str(registry.unknown_name(name, list(table.index))))
    wanted = names or list(table.index)
    if fetch:
        try:
            download([name for name in wanted if not _is_here(name)], home=home)
        except (DownloadError, OSError, ValueError) as error:
            print(f"error: {error}", file=sys.stderr)
            raise typer.Exit(1) from None
    print(f"{'':16} {'n':>6} {'p':>4} {'anomalies':>9}  here")
    for name in wanted:
        row = table.loc[name]
        print(f"{name:16} {row.n:6,} {row.p:4} {row.anomalies:9}  {'yes' if _is_here(name) else 'no'}")
        if row.differs:
            print(f"    {row.differs}")


def _is_here(name: str) -> bool:
    try:
        sets.find_file(name)
    except (OSError, ValueError):
        return False
    return True


def _show(progress: Progress) -> None:
    cell, status = progress.cell, progress.outcome["status"]
    print(f"{progress.done:,}/{progress.total:,} {cell.method.name} on {cell.dataset}: {status}", file=sys.stderr)


if __name__ == "__main__":
    app()
