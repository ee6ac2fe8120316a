"""The whole job on a plant whose faults are known: `make demo` runs this file.

A hydropower plant is simulated (docs/hydropower.md), its table is searched for anomalies, and a report is written that
could be handed to an operator. Then the five methods of the paper's application are held against what really happened.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import pandas as pd

from penstock.detection import Findings
from penstock.report import write_findings, write_html
from penstock.simulate import SimulatedPlant, simulate_hydropower, write_plant

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folder that studies/ is in
from studies.ahmed2021.plant import METHODS, TOP, list_tables, search, times_of

FOLDER = Path("demo")


def main() -> None:
    plant = simulate_hydropower(seed=0)
    write_plant(plant, FOLDER, overwrite=True)
    rows, columns = plant.table.shape
    faults = int(plant.events["is_fault"].sum())
    print(f"A simulated hydropower plant: {rows:,} samples of {columns} variables, {faults} faults (nobody is told).\n")
    started = time.perf_counter()
    search_plant = partial(search, FOLDER / "plant.csv", units=FOLDER / "variables.csv")
    findings = search_plant("nsnmf")
    write_html(findings, FOLDER / "report.html", overwrite=True, title="Hydropower plant")
    write_findings(findings, FOLDER / "findings.csv", overwrite=True)
    print(f"NS-NMF, {TOP} findings in {len(findings.events)} events, report written: {_since(started)}")
    show_events(findings)
    lists = {name: times_of(findings) for name in ("NS-NMF",)}
    for name, method in METHODS.items():
        if name not in lists:
            lists[name] = times_of(search_plant(method))
    print(f"\nWhat the lists of {TOP} time stamps hold, per method, units at rest and starts kept apart:\n")
    compare(plant, lists)
    print("\nThe same without operating modes, as the paper did it:\n")
    compare(plant, {name: times_of(search_plant(method, modes=False)) for name, method in METHODS.items()})
    print(f"\nOpen {FOLDER / 'report.html'} in a browser. Your own table:")
    print("    .venv/bin/penstock detect your.csv --report report.html")


def show_events(findings: Findings) -> None:
    """The worst events, with what is behind them."""
    for event, row in findings.events.sort_values("rank").head(5).iterrows():
        why = findings.explain(int(str(event))).variables["variable"].head(2)
        print(f"  {row['start']:%Y-%m-%d %H:%M} to {row['end']:%m-%d %H:%M}, {row['rows']:2d} rows: {', '.join(why)}")


def compare(plant: SimulatedPlant, lists: dict[str, pd.DatetimeIndex]) -> None:
    """The paper's table 8 in numbers, its days, and what the lists have in common."""
    found = list_tables(plant, lists)
    named = [f"{day:%-d %b %Y}{' (harmless)' if day in found.harmless_days else ''}" for day in found.days.index]
    print(pd.concat([found.summary, found.days.set_axis(named)]).replace(0, "·").to_string())
    online = f"{found.common_online} of NS-NMF offline and online"
    print(f"\nTime stamps in common: {found.common_offline} of the four offline methods, {online}")
    print("(the paper, on its own plant: 27 and 46).")


def _since(started: float) -> str:
    return f"{time.perf_counter() - started:.0f} s (compiling included, the first time)."


if __name__ == "__main__":
    main()
