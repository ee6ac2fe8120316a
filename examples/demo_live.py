"""A simulated hydropower plant, watched live: `make demo-live` runs this file.

A model is fitted to the plant's first months, which are known to be good, and the rest is played into `penstock serve`
at high speed, as a plant would send it. Open the page, and work the alarms.
"""

from __future__ import annotations

import sys
import time
import urllib.request
import webbrowser
from pathlib import Path

import pandas as pd

import penstock
from penstock.live.options import AlarmRules, AssetOptions, ServeOptions
from penstock.live.web import LiveServer
from penstock.simulate import simulate_hydropower, write_plant

FOLDER = Path("demo")
GOOD_UNTIL = "2015-09-12"
ROWS_A_SECOND = 24.0  # half an hour a row: half a day a second
BATCH = 4


def main() -> None:
    plant = simulate_hydropower(seed=0)
    write_plant(plant, FOLDER, overwrite=True)
    model = FOLDER / "unit1.penstock"
    print(f"Fitting a model to the good months, until {GOOD_UNTIL} …")
    penstock.fit_model(FOLDER / "plant.csv", until=GOOD_UNTIL).save(model, overwrite=True)
    for old in FOLDER.glob("live.db*"):
        old.unlink()
    # Months pass in minutes here: alarms wait to be worked on, and the gaps of the record are no alarms.
    rules = AlarmRules(no_data="0s", keep="365d")
    assets = {"hydropower": AssetOptions(model=model)}
    options = ServeOptions(store=FOLDER / "live.db", port=0, keep_readings=365.0, assets=assets, rules=rules)
    table = pd.read_csv(FOLDER / "plant.csv")
    later = table[table.iloc[:, 0] > f"{GOOD_UNTIL} 23:59"]
    speed = float(sys.argv[1]) if len(sys.argv) > 1 else ROWS_A_SECOND
    with LiveServer(options) as server:
        print(f"Open {server.url} (Ctrl-C ends it). {len(later):,} rows come at {speed:g} a second.", flush=True)
        webbrowser.open(server.url)
        try:
            play(later, server.url, speed)
            if sys.stdout.isatty():
                print("All rows are there. The page stays until Ctrl-C.", flush=True)
            while sys.stdout.isatty():
                time.sleep(1.0)
        except KeyboardInterrupt:
            pass
        rows, alarms = server.service.assets["hydropower"].record.rows, server.service.store.alarms()
        print(f"\n{rows:,} rows, {len(alarms)} alarms; all is in {options.store}.")


def play(rows: pd.DataFrame, url: str, speed: float) -> None:
    """Post the rows, some at a time and numbered, at so many a second."""
    started = time.monotonic()
    for number, at in enumerate(range(0, len(rows), BATCH)):
        body = rows[at : at + BATCH].to_csv(index=False).encode()
        headers = {"content-type": "text/csv", "penstock-client": "demo", "penstock-sequence": str(number)}
        request = urllib.request.Request(f"{url}api/v1/assets/hydropower/samples", body, headers)
        urllib.request.urlopen(request, timeout=60).read()
        time.sleep(max(0.0, started + (at + BATCH) / speed - time.monotonic()))


if __name__ == "__main__":
    main()
