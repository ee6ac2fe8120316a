"""`penstock simulate hydropower`: a plant with known faults, to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli._console import CommandError

simulate = typer.Typer(help="Make data with known faults, to try things on.", no_args_is_help=True)


@simulate.callback()
def before_any_simulation() -> None:
    """Make data with known faults, to try things on."""


@simulate.command()
def hydropower(
    folder: Annotated[Path, typer.Argument(help="Where the files go; made if it is not there.")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same files.")] = 0,
    vary: Annotated[bool, typer.Option("--vary", help="The seed also draws the faults and their days.")] = False,
    no_faults: Annotated[bool, typer.Option("--no-faults", help="A healthy plant: the same without faults.")] = False,
    small: Annotated[
        bool, typer.Option("--small", help="A sample for a quick try: 50 readings of one unit, ten weeks.")
    ] = False,
    areas: Annotated[bool, typer.Option("--areas", help="Also one file per functional area, in areas/.")] = False,
    complete: Annotated[bool, typer.Option("--complete", help="Leave no reading out.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> int:
    """A hydropower plant: 9,219 samples of 222 readings over seven months, and the truth about its faults.

    Writes plant.csv, variables.csv (units and areas) and truth.csv (what happened when), which is never an input.
    """
    from penstock.datasets import load_plant
    from penstock.simulate import simulate_hydropower, write_plant

    if small and (seed or vary or no_faults or complete or areas):
        raise CommandError("--small is one sample: of the other options it takes --overwrite only.")
    options = {"vary": vary, "faults": not no_faults, "dropouts": not complete}
    plant = load_plant() if small else simulate_hydropower(seed, **options)
    try:
        written = write_plant(plant, folder, overwrite, by_area=areas)
    except FileExistsError as error:
        raise CommandError(str(error)) from None
    for path in written:
        typer.echo(path)
    return 0
