"""The whole job on a plant whose faults are known: `make demo` runs this file.

A hydropower plant is simulated (docs/hydropower.md), its table is searched for anomalies, and a report is written that
could be handed to an operator. Then the five methods of the paper's application are held against what really happened.
"""

from __future__ import annotations

import time
from pathlib import Path

import pandas as pd

import penstock
from penstock.detection import Findings
from penstock.findings_files import write_findings
from penstock.report import write_html
from penstock.simulate import found_days, found_events, simulate_hydropower, write_plant
from penstock.simulate.hydropower import SimulatedPlant

FOLDER = Path("demo")
METHODS = {"NS-NMF": "nsnmf", "online": "online", "GNMF": "gnmf", "SNMF": "snmf", "NMF": "nmf"}
# A unit at rest, and one that starts or stops, is farther from the usual than most faults: they are kept apart.
MODES = {
    "both units": "unit1_active_power > 5 and unit2_active_power > 5",
    "unit 1": "unit1_active_power > 5",
    "unit 2": "unit2_active_power > 5",
}
TOP = 100


def main() -> None:
    plant = simulate_hydropower(seed=0)
    write_plant(plant, FOLDER, overwrite=True)
    rows, columns = plant.table.shape
    faults = int(plant.events["is_fault"].sum())
    print(f"A simulated hydropower plant: {rows:,} samples of {columns} variables, {faults} faults (nobody is told).\n")
    started = time.perf_counter()
    findings = search(FOLDER / "plant.csv", "nsnmf")
    write_html(findings, FOLDER / "report.html", overwrite=True, title="Hydropower plant")
    write_findings(findings, FOLDER / "findings.csv", overwrite=True)
    print(f"NS-NMF, {TOP} findings in {len(findings.events)} events, report written: {_since(started)}")
    show_events(findings)
    lists = {name: times_of(findings) for name in ("NS-NMF",)}
    for name, method in METHODS.items():
        if name not in lists:
            lists[name] = times_of(search(FOLDER / "plant.csv", method))
    print(f"\nWhat the lists of {TOP} time stamps hold, per method, units at rest and starts kept apart:\n")
    compare(plant, lists)
    print("\nThe same without operating modes, as the paper did it:\n")
    compare(
        plant, {name: times_of(search(FOLDER / "plant.csv", method, modes=False)) for name, method in METHODS.items()}
    )
    print(f"\nOpen {FOLDER / 'report.html'} in a browser. Your own table:")
    print("    .venv/bin/penstock detect your.csv --report report.html")


def search(path: Path, method: str, *, modes: bool = True) -> Findings:
    return penstock.detect(
        path,
        method=method,
        top=TOP,
        units=FOLDER / "variables.csv",
        modes=MODES if modes else (),
        settle="2h" if modes else None,
    )


def times_of(findings: Findings) -> pd.DatetimeIndex:
    assert findings.table.time is not None
    return findings.table.time[findings.flags]


def show_events(findings: Findings) -> None:
    """The worst events, with what is behind them."""
    for event, row in findings.events.sort_values("rank").head(5).iterrows():
        why = findings.explain(int(str(event))).variables["variable"].head(2)
        print(f"  {row['start']:%Y-%m-%d %H:%M} to {row['end']:%m-%d %H:%M}, {row['rows']:2d} rows: {', '.join(why)}")


def compare(plant: SimulatedPlant, lists: dict[str, pd.DatetimeIndex]) -> None:
    """The paper's table 8 in numbers, its days, and what the lists have in common."""
    events = {name: found_events(plant, times) for name, times in lists.items()}
    faults = {name: found[found["is_fault"]] for name, found in events.items()}
    summary = pd.DataFrame(
        {
            "rows in a fault": {name: found["found"].sum() for name, found in faults.items()},
            "rows in a look-alike": {name: found["found"].sum() for name, found in events.items()},
            "faults found, of 13": {name: (found["found"] > 0).sum() for name, found in faults.items()},
        }
    ).T
    summary.loc["rows in a look-alike"] -= summary.loc["rows in a fault"]
    days = pd.DataFrame({name: found_days(plant, times) for name, times in lists.items()})
    harmless = set(plant.events["start"].dt.date[~plant.events["is_fault"]])
    days.index = [f"{day:%-d %b %Y}{' (harmless)' if day in harmless else ''}" for day in days.index]
    print(pd.concat([summary, days]).replace(0, "·").to_string())
    offline = set.intersection(*(set(times) for name, times in lists.items() if name != "online"))
    both = set(lists["NS-NMF"]) & set(lists["online"])
    print(
        f"\nTime stamps in common: {len(offline)} of the four offline methods, {len(both)} of NS-NMF offline and online"
    )
    print("(the paper, on its own plant: 27 and 46).")


def _since(started: float) -> str:
    return f"{time.perf_counter() - started:.0f} s (compiling included, the first time)."


if __name__ == "__main__":
    main()
