"""The whole job on a plant whose faults are known: `make demo` runs this file.

A hydropower plant is simulated (docs/hydropower.md), its table is searched for anomalies as `penstock detect` does it,
and a report is written that could be handed to an operator. Then what was found is compared with what really happened,
and with the findings of the paper's method.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

import penstock
from penstock.detection import Findings
from penstock.explain import group_events
from penstock.report import write_findings, write_html
from penstock.simulate import SimulatedPlant, found_events, simulate_hydropower, write_plant

FOLDER = Path("demo")
FIRST_EVENTS, FIRST_ROWS = 26, 100


def main() -> None:
    plant = simulate_hydropower(seed=0)
    write_plant(plant, FOLDER, overwrite=True)
    rows, columns = plant.table.shape
    faults = int(plant.events["is_fault"].sum())
    print(f"A simulated hydropower plant: {rows:,} samples of {columns} variables, {faults} hidden faults.\n")
    with ProcessPoolExecutor(1) as another_core:
        by_paper = another_core.submit(compare_method, plant, "nsnmf")
        started = time.perf_counter()
        findings = penstock.detect(FOLDER / "plant.csv", units=FOLDER / "variables.csv")
        write_html(findings, FOLDER / "report.html", overwrite=True, title="Hydropower plant")
        write_findings(findings, FOLDER / "findings.csv", overwrite=True)
        print(
            f"Searched, report written: {time.perf_counter() - started:.0f} s (compiling included, the first time).\n"
        )
        print(f"{findings.verdict.sentence} The most severe first, and what really happened:\n")
        show_incidents(plant, findings)
        figures = {"sensors, the default": compare_scores(plant, findings), "NS-NMF": by_paper.result()}
    print("\nThe highest scores, and those of the paper's method on the same table:\n")
    print(pd.DataFrame(figures).T.to_string())
    print(f"\nOpen {FOLDER / 'report.html'} in a browser. Next, with a file of your own:")
    print("    .venv/bin/penstock detect your.csv --report report.html                # what is wrong in it?")
    print(
        "    .venv/bin/penstock fit your.csv --until 2024-05-31 --model your.model  # fit it to months that were good,"
    )
    print(
        "    .venv/bin/penstock watch new.csv --model your.model -o verdicts.jsonl  # then score each row as it comes"
    )
    print(f"Or look at this plant on a page:\n    .venv/bin/penstock open {FOLDER / 'plant.csv'}")


def compare_method(plant: SimulatedPlant, method: str) -> dict[str, int]:
    """Search the plant's table by another method, and return what its highest scores lie in."""
    return compare_scores(plant, penstock.detect(FOLDER / "plant.csv", method=method, most_explained=0))


def show_incidents(plant: SimulatedPlant, findings: Findings) -> None:
    """Print when each incident was, which sensor to look at first, and what of the simulation lies in it."""
    for number, row in findings.incident_table.sort_values("rank").iterrows():
        times = plant_times(plant, findings.incidents[int(str(number)) - 1].rows)
        events = plant.events[found_events(plant, times)["found"].to_numpy() > 0]
        kinds = ["fault" if is_fault else "harmless, but unusual" for is_fault in events["is_fault"]]
        truth = [f"{kind}: {text}" for kind, text in zip(kinds, events["description"], strict=True)]
        print(f"  {row['start']:%Y-%m-%d %H:%M} to {row['end']:%m-%d %H:%M}, look first at {row['first_sensor']}")
        print(f"      {'; '.join(truth) or 'nothing: a false alarm'}")


def compare_scores(plant: SimulatedPlant, findings: Findings) -> dict[str, int]:
    """Return what the highest scores lie in: faults among the first events, and rows of the first hundred."""
    scores = np.nan_to_num(findings.scores, nan=-np.inf)
    order = np.argsort(-scores, kind="stable")
    flags = np.zeros(len(scores), dtype=np.bool_)
    for count in range(10, len(scores) // 5, 10):
        more = flags.copy()
        more[order[:count]] = True
        if len(group_events(more, scores, findings.table.time)) > FIRST_EVENTS:
            break
        flags = more
    in_events = found_events(plant, plant_times(plant, np.flatnonzero(flags)))
    in_rows = found_events(plant, plant_times(plant, order[:FIRST_ROWS]))
    is_fault = in_rows["is_fault"]
    return {
        f"faults in the first {FIRST_EVENTS} events": int((in_events["found"][is_fault] > 0).sum()),
        f"of the first {FIRST_ROWS} rows in faults": int(in_rows["found"][is_fault].sum()),
        "in what is harmless": int(in_rows["found"][~is_fault].sum()),
    }


def plant_times(plant: SimulatedPlant, rows: np.ndarray) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(plant.table.index)[rows]


if __name__ == "__main__":
    main()
