"""Compare detectors on labelled series, fitted to the same rows (i) and to a good period (ii).

    .venv/bin/python benchmarks/plant.py [--sets plant varied nab skab asd tep smd smap local] [--seeds …] [--methods …]
    .venv/bin/python benchmarks/plant.py --causes | --process | --injected | --cost | --picture FILE

(i) fitted to the rows that hold the faults; (ii) fitted to a good period, the other rows are scored.
PLANT is `penstock simulate hydropower` (good period: the first 40 % without its faults), VARIED the same with `--vary`
(rows at the faint beginning of slow faults do not count). NAB: what comes before its first fault is good; SKAB: up to
400 rows of each run before its fault; TEP: the record d00; ASD, SMD, SMAP: their training parts, and (i) is fitted to
their labelled parts. TEP has no (i): 83 % of the rows of a run are faulty. LOCAL is any other labelled file in
PENSTOCK_DATA/industrial; good: the first 40 % without faults. The three of ABROAD are what benchmarks/abroad.py made in
the folder PENSTOCK_ABROAD ("abroad" where it is not set): nothing was chosen on them. "position" is the row number: on
SKAB it tells faults by itself, as they lie at the end of the runs, and so it does on TEP and on the local
SHP_hydropower_prefault.

A study of `penstock bench` (results in --folder, continued where it stopped), whose measures are printed per method and
set: means over the series of a set, and in whose favour they are with intervals over these series. The last table has
the means over the sets.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from detect import plant_table
from numpy.typing import NDArray
from peers import ProcessControl, Ridge
from timing import alone

from penstock import SensorDetector
from penstock._types import BoolArray, FloatArray
from penstock.bench import Dataset, Method, Study, average_precision, load_file, run_study
from penstock.bench.measures import highest_incident, sensor_hits
from penstock.bench.report import answer, format_events, format_methods
from penstock.explain import Incident, find_incidents, group_events
from penstock.sensors import SeriesScores
from penstock.simulate import simulate_hydropower

DATA = Path(os.environ.get("PENSTOCK_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "industrial"
ABROAD = Path(os.environ.get("PENSTOCK_ABROAD") or "abroad")
VALVE = "Volume Flow RateRMS;Pressure"  # SKAB has no list of causes: what a closed valve acts on
NAB, SKAB, ASD = "NAB_machine_temperature_system_failure.csv.gz", "SKAB.csv.gz", "ASD_servers.csv.gz"
TEP, SMD, SMAP = "TEP.csv.gz", "SMD_servers.csv.gz", "SMAP_channels.csv.gz"
# What faults of TEP act on: the notes in MANIFEST.csv, and for 5 also the valve of the cooling water, as for 4, 11
# and 14. Faults 12 and 15 are of the same condenser (Downs and Vogel 1993).
TEP_CAUSES = {
    **dict.fromkeys((4, 11), "XMEAS9;XMV10"),
    **dict.fromkeys((5, 12, 15), "XMEAS11;XMEAS22;XMV11"),
    6: "XMEAS1;XMV3",
    7: "XMEAS4;XMV4",
    14: "XMEAS9;XMEAS21;XMV10",
}
LATER = " (ii)"  # of the name of a data set: fitted to its good period
IN_PARTS = ("asd", "smd", "smap")  # a training and a labelled part: (i) is of the labelled part alone
MOSTLY_FAULTY = ("tep",)  # no (i)


def read_plant(seeds: list[int], *, vary: bool = False) -> Iterator[Dataset]:
    for seed in seeds:
        plant = simulate_hydropower(seed, vary=vary)
        time, causes = pd.DatetimeIndex(plant.table.index), np.full(len(plant.table), "", dtype=object)
        for event in plant.events[plant.events["is_fault"]].to_dict("records"):
            causes[(time >= event["start"]) & (time <= event["end"])] = ";".join(event["variables"])
        yield Dataset(
            f"{'varied' if vary else 'plant'} {seed}",
            plant.table.to_numpy(),
            plant.is_anomalous.astype(np.int64),
            time,
            train=_without_faults(plant.is_anomalous),
            counted=~plant.is_faint,
            names=tuple(plant.table.columns),
            causes=causes,
        )


def _without_faults(faults: BoolArray) -> BoolArray:
    return (np.arange(len(faults)) < int(0.4 * len(faults))) & ~faults


def read_varied(seeds: list[int]) -> Iterator[Dataset]:
    return read_plant(seeds, vary=True)


def read_nab(_: list[int]) -> Iterator[Dataset]:
    data = load_file(DATA / NAB, exclude=["point_label"])
    yield replace(data, name="nab", train=np.arange(data.n) < int(np.argmax(data.y)))


def read_skab(_: list[int]) -> Iterator[Dataset]:
    table = pd.read_csv(DATA / SKAB)
    names = table.columns.drop(["run", "t", "changepoint", "outlier"])
    for name, run in table.groupby("run", sort=False):
        y = (run["outlier"].to_numpy() > 0).astype(np.int64)
        if y.any():
            train = np.arange(len(y)) < min(400, int(np.argmax(y)))
            causes = np.where(y == 1, VALVE, "") if str(name).startswith("valve") else None
            X, time = run[names].to_numpy(float), pd.DatetimeIndex(run["t"])
            yield Dataset(f"skab {name}", X, y, time, train=train, names=tuple(names), causes=causes)


def read_asd(_: list[int]) -> Iterator[Dataset]:
    return _read_parts("asd", ASD, "server", "m", "5min")


def read_smd(_: list[int]) -> Iterator[Dataset]:
    return _read_parts("smd", SMD, "machine", "m", "1min")


def read_smap(_: list[int]) -> Iterator[Dataset]:
    return _read_parts("smap", SMAP, "channel", "", "1min")  # the interval is not published


def _read_parts(kind: str, file: str, key: str, prefix: str, step: str) -> Iterator[Dataset]:
    """Read a file of several series, each with a training part and a labelled one, and the causes beside it."""
    table = pd.read_csv(DATA / file)
    others = (key, "part", "t", "row", "step", "outlier")
    names = tuple(name for name in table.columns if name not in others)
    beside = DATA / file.replace(".csv.gz", "_causes.csv")
    all_causes = (
        pd.read_csv(beside).rename(columns=lambda name: name.replace("_step", "_row")) if beside.is_file() else None
    )
    for which, part in table.groupby(key, sort=False):
        y = (np.nan_to_num(part["outlier"].to_numpy(float)) > 0).astype(np.int64)
        train, causes = (part["part"] == "train").to_numpy(), None
        if all_causes is not None:
            causes = np.full(len(y), "", dtype=object)
            for cause in all_causes[all_causes[key] == which].to_dict("records"):
                metrics = ";".join(f"{prefix}{number.removeprefix(prefix)}" for number in str(cause["metrics"]).split())
                causes[train.sum() + cause["first_row"] : train.sum() + cause["last_row"] + 1] = metrics
        time = pd.date_range("2024-01-01", periods=len(y), freq=step)
        X = part[list(names)].to_numpy(float)
        yield Dataset(f"{kind} {which}", X, y, time, train=train, names=names, causes=causes)


def read_tep(_: list[int]) -> Iterator[Dataset]:
    """Each faulty run of the Tennessee Eastman process after the normal record d00."""
    good, runs, names = tep_records()
    for name, (X, y) in runs.items():
        if y.any():
            both, labels = np.vstack([good, X]), np.append(np.zeros(len(good), dtype=np.int64), y)
            train = np.arange(len(both)) < len(good)
            time = pd.date_range("2024-01-01", periods=len(both), freq="3min")
            causes = np.where(labels == 1, TEP_CAUSES.get(int(name[1:3]), ""), "").astype(object)
            groups = np.where(train, "d00", name)
            yield Dataset(f"tep {name}", both, labels, time, groups, train, names=names, causes=causes)


def tep_records() -> tuple[FloatArray, dict[str, tuple[FloatArray, NDArray[np.int64]]], tuple[str, ...]]:
    """Return the normal record to fit to, readings and labels of the others by name, and the names of the columns."""
    table = pd.read_csv(DATA / TEP)
    names = tuple(name for name in table.columns if name.startswith("X"))
    records = {str(run): part for run, part in table.groupby("run", sort=False)}
    good = records.pop("d00")[list(names)].to_numpy(float)
    found = {
        run: (part[list(names)].to_numpy(float), (part["outlier"].to_numpy(float) > 0).astype(np.int64))
        for run, part in records.items()
    }
    return good, found, names


def read_local(_: list[int]) -> Iterator[Dataset]:
    about = pd.read_csv(DATA / "MANIFEST.csv", index_col="name")["sensor_columns"].dropna()
    for file in sorted(DATA.glob("*.csv*")):
        name = file.name.partition(".")[0]
        if file.name in (NAB, SKAB, ASD, TEP, SMD, SMAP) or name == "MANIFEST" or name.endswith("_causes"):
            continue
        inputs = about.get(name, "").split(";")
        columns = pd.read_csv(file, nrows=0).columns
        exclude = [c for c in columns if c not in (*inputs, "t", "outlier")] if name in about.index else []
        try:
            data = load_file(file, exclude=exclude)
        except ValueError as error:
            print(f"Left out: {error}", file=sys.stderr)
            continue
        if data.time is not None:
            yield replace(data, train=_without_faults(data.y == 1))


def abroad_records(kind: str) -> Iterator[Dataset]:
    """Yield the series of one kind that benchmarks/abroad.py made, those without faults too."""
    for file in sorted(ABROAD.glob(f"{kind}-*.npz")):
        with np.load(file) as record:
            X, labels, n_good = record["X"], record["labels"], int(record["train"])
            names, cause = tuple(record["columns"].tolist()), record["cause"].tolist()
        train = np.arange(len(X)) < n_good if n_good else None
        causes = np.where(labels == 1, ";".join(names[column] for column in cause), "").astype(object)
        time = pd.date_range("2024-01-01", periods=len(X), freq="1min")  # the interval is not kept
        yield Dataset(file.stem, X, labels.astype(np.int64), time, train=train, names=names, causes=causes)


def _read_abroad(kind: str, _: list[int]) -> Iterator[Dataset]:
    return (data for data in abroad_records(kind) if data.y.any())


SETS: dict[str, Callable[[list[int]], Iterator[Dataset]]] = {
    "plant": read_plant,
    "varied": read_varied,
    "nab": read_nab,
    "skab": read_skab,
    "asd": read_asd,
    "tep": read_tep,
    "smd": read_smd,
    "smap": read_smap,
    "local": read_local,
    **{f"abroad-{kind}": partial(_read_abroad, kind) for kind in ("labelled", "injected", "simulated")},
}
_FROM_ABROAD = tuple(name for name in SETS if name.startswith("abroad"))


@cache
def read_set(name: str, seeds: tuple[int, ...]) -> dict[str, Dataset]:
    """Return the series of a set in both regimes, by name."""
    found = {}
    for data in SETS[name](list(seeds)):
        if data.train is not None:
            found[data.name + LATER] = replace(data, name=data.name + LATER)
        if name in MOSTLY_FAULTY:
            continue
        rows = ~data.train if name in IN_PARTS and data.train is not None else np.ones(data.n, dtype=np.bool_)
        found[data.name] = Dataset(
            data.name,
            data.X[rows],
            data.y[rows],
            data.time[rows] if data.time is not None else None,
            counted=None if data.counted is None else data.counted[rows],
            names=data.names,
            causes=None if data.causes is None else data.causes[rows],
        )
    return found


def _minutes(times: Any) -> FloatArray:
    stamps = pd.DatetimeIndex(times)
    minutes: FloatArray = ((stamps - stamps[0]) / pd.Timedelta(minutes=1)).to_numpy(dtype=float)
    return minutes


NSNMF_30 = {"n_components": 30, "random_state": 0}
METHODS = {
    method.name: method
    for method in (
        Method("SensorDetector", "SensorDetector"),
        Method("Detector", "Detector"),
        Method("NSNMF(30)", "NSNMF", NSNMF_30),
        Method("KNN", "KNNDistance"),
        Method("IForest", "sklearn.ensemble.IsolationForest"),
        Method("PCA", "sklearn.decomposition.PCA", {"n_components": 0.9}),
        Method("Detector, mean of 6", "peers.DetectorMean"),
        Method("ridge, mean of 6", "peers.Ridge"),
        Method("T2+SPE, mean of 6", "peers.ProcessControl"),
        Method("KNN, mean of 6", "peers.NeighbourMean"),
        Method("KMeansAD", "peers.KMeansAD"),
        Method("PCA of windows", "peers.WindowPCA"),
        Method("NSNMF(30) over time", "OverTime", {"detector": {"NSNMF": NSNMF_30}}),
        Method("Detector over time", "OverTime", {"detector": {"Detector": {"random_state": 0}}}),
        Method("OnlineNSNMF", "peers.Online"),
        Method("position (control)", "peers.Position"),
    )
}


def run(sets: Sequence[str], seeds: Sequence[int], methods: Sequence[str], folder: Path, jobs: int | None) -> None:
    """Run what is missing, and print the tables of each set and regime."""
    series = {name: data for each in sets for name, data in read_set(each, tuple(seeds)).items()}
    study = Study("Series", tuple(series), tuple(METHODS[name] for name in methods), seeds=(0,), options="--sets")
    results = run_study(study, folder, load=series.__getitem__, jobs=jobs)
    rows = results.rows[results.rows["dataset"].isin(series)]
    for name in sets:
        mine = rows[rows["dataset"].isin(read_set(name, tuple(seeds)))]
        for later, regime in ((False, "(i) by itself"), (True, "(ii) fitted to a good period")):
            some = mine[mine["dataset"].str.endswith(LATER) == later]
            print(f"\n{name} {regime}\n")
            print("\n".join(answer(some)) if len(some) else "no data")
            for table in (format_methods(some), format_events(some)) if (some["status"] == "ok").any() else ():
                frame = pd.DataFrame(table.cells, columns=list(table.headers)).set_index("method")
                print(frame.rename_axis(index=None).to_string())
    print_means(rows, {name: read_set(name, tuple(seeds)) for name in sets})
    print(f"\nCPU of all fits and scores: {rows['cpu_seconds'].sum() / 60:.1f} minutes", flush=True)


def print_means(rows: pd.DataFrame, sets: Mapping[str, Collection[str]]) -> None:
    """Print AP, VUS-PR and the share of faults in the first 2N events of each method, as means over the sets."""
    fine = rows[rows["status"] == "ok"]
    for later, regime in ((False, "(i) by itself"), (True, "(ii) fitted to a good period")):
        some = fine[fine["dataset"].str.endswith(LATER) == later]
        names = [name for name, series in sets.items() if some["dataset"].isin(series).any()]
        if not names:
            continue
        tables = {}
        for name in names:
            of_set = some[some["dataset"].isin(sets[name])].groupby("method")
            totals = of_set[["in_2n", "faults"]].sum()
            tables[name] = (
                of_set[["average_precision", "vus_pr"]].mean().assign(in_2n=totals["in_2n"] / totals["faults"])
            )
        made = pd.DataFrame({name: table["average_precision"] for name, table in tables.items()})
        for title, measure in (("mean AP", "average_precision"), ("VUS-PR", "vus_pr"), ("in first 2N", "in_2n")):
            each = pd.DataFrame({name: table[measure] for name, table in tables.items()})
            made[title] = each.mean(axis=1, skipna=False)  # NaN where a method has no result in one of the sets
        print(f"\nAP by set {regime}; means over {len(names)} sets\n")
        print(made.sort_values("mean AP", ascending=False).rename_axis(index=None).round(3).to_string(), flush=True)


def print_causes(seeds: list[int]) -> None:
    """Print how often a true sensor is named first, or among the first three, in the incidents that overlap a fault.

    One line for each order of the sensors: by evidence in the highest row, by onset, by the sum of evidence over the
    flagged rows, and as shipped (`Incident.sensors`). Rows above the 95 % quantile of the score are flagged. Of PLANT
    and VARIED the 26 incidents with the highest scores count, of the others all. SKAB has no list of causes: of its
    runs in which a valve was closed, flow and pressure are what the valve acts on. Records of ABROAD count where a good
    period is known.
    """
    for kind in ("plant", "varied", "asd", "smd", "skab", *_FROM_ABROAD):
        for later in (False,) if kind in ("plant", "varied") else (False, True):
            found = []
            for data in SETS[kind](seeds):
                if data.causes is None or data.train is None:
                    continue
                if kind in IN_PARTS:
                    rows, X = np.flatnonzero(~data.train), data.X[~data.train]
                    time, good = np.arange(len(X), dtype=float), data.X[data.train]
                else:
                    rows, X, time, good = np.arange(data.n), data.X, _minutes(data.time), data.X[data.train]
                scored = _incidents(X, time, good if later else None, list(data.names))
                for span in _fault_spans(data.causes[rows]):
                    named = _named(scored, span, 26 if kind in ("plant", "varied") else None)
                    found.append((named, set(str(data.causes[rows][span[0]]).split(";"))))
            if found:
                _print_named(f"{kind} {'(ii)' if later else '(i)'}", found)


def _fault_spans(causes: NDArray[Any]) -> list[NDArray[np.intp]]:
    """Return the rows of each stretch of the same causes."""
    edges = np.flatnonzero(causes[1:] != causes[:-1]) + 1
    return [rows for rows in np.split(np.arange(len(causes)), edges) if causes[rows[0]]]


def _orders(incident: Incident, evidence: FloatArray, names: Sequence[str]) -> dict[str, list[str]]:
    """The names of an incident's sensors in each order."""
    totals = evidence[incident.rows].sum(axis=0)
    out = [sensor for sensor in incident.sensors if sensor.onset >= 0] or list(incident.sensors)
    return {
        "highest row": [names[j] for j in np.argsort(-evidence[incident.peak], kind="stable")],
        "onset": [s.name for s in sorted(out, key=lambda s: (s.onset, -s.mean_evidence))],
        "sum": [names[j] for j in np.argsort(-totals, kind="stable")],
        "as shipped": [sensor.name for sensor in incident.sensors],
    }


def _named(
    scored: tuple[Sequence[Incident], FloatArray, Sequence[str]], rows: NDArray[np.intp], highest: int | None = None
) -> dict[str, list[str]] | None:
    """Of the highest incident that overlaps these rows, the sensors by each order; or nothing."""
    incidents, evidence, names = scored
    some = [one for one in incidents if highest is None or one.rank <= highest]
    incident = highest_incident(some, int(rows[0]), int(rows[-1]))
    return None if incident is None else _orders(incident, evidence, names)


def _print_named(name: str, found: list[tuple[dict[str, list[str]] | None, set[str]]]) -> None:
    """Print one line for each order, of the faults found."""
    named = [(orders, true) for orders, true in found if orders is not None]
    print(f"{name:10s} {len(named)} of {len(found)} faults found; a true sensor first / among three", flush=True)
    for order in named[0][0]:
        first, three = sensor_hits([orders[order] for orders, _ in named], [true for _, true in named])
        print(f"    {order:12s} {first:.2f} / {three:.2f}", flush=True)


def _incidents(
    X: FloatArray, time: FloatArray, good: FloatArray | None, names: list[str]
) -> tuple[tuple[Incident, ...], FloatArray, list[str]]:
    """The incidents of the 5 % highest rows, by themselves or fitted to good rows; the evidence, and the names."""
    detector = SensorDetector(random_state=0)
    if good is None:
        detector.fit(X, time=time)
        scored = SeriesScores(detector.scores_, detector.evidence_)
    else:
        scored = detector.fit(good).assess_series(X, time=time)
    starts = detector.model_.clock.follow(len(X), time).starts
    flags = scored.scores > np.quantile(scored.scores, 0.95)
    events = group_events(flags, scored.scores, None, groups=np.cumsum(starts))
    found = find_incidents(events, scored.scores, scored.evidence, detector.expected(X), X, starts, names)
    return found, scored.evidence, names


def print_process() -> None:
    """Print what is found of the Tennessee Eastman process by models of d00, and the sensors of its known causes.

    The threshold of each method is the 0.99 quantile of its scores of the normal record d00_te: 1 % false alarms.
    """
    good, runs, names = tep_records()
    detector = SensorDetector(random_state=0).fit(good)
    ridge, control = Ridge().fit(good), ProcessControl().fit(good)
    scorers: dict[str, Callable[[FloatArray], FloatArray]] = {
        "SensorDetector": detector.score_series,
        "ridge, mean of 6": ridge.anomaly_score,
        "T2+SPE, mean of 6": control.anomaly_score,
    }
    print("share of faulty rows at 1 % false alarms on d00_te; bar 0.82")
    for name, score in scorers.items():
        cut = np.quantile(score(runs["d00_te"][0]), 0.99)
        shares = {run: float((score(X)[y == 1] > cut).mean()) for run, (X, y) in runs.items() if y.any()}
        print(f"    {name:20s} {np.mean(list(shares.values())):.3f}   ", end="")
        print(" ".join(f"{int(run[1:3])}:{share:.2f}" for run, share in shares.items()), flush=True)
    first, three = 0, 0
    for number, causes in sorted(TEP_CAUSES.items()):
        X, y = runs[f"d{number:02d}_te"]
        scored = _incidents(X, np.arange(len(X), dtype=float), good, list(names))
        named = _named(scored, np.flatnonzero(y))
        suspects = [] if named is None else named["as shipped"][:3]
        right = [name in causes.split(";") for name in suspects]
        first, three = first + any(right[:1]), three + any(right)
        print(f"    fault {number:2d}: {', '.join(suspects) or 'not found'}   [{causes}]", flush=True)
    print(f"a true sensor first in {first} of {len(TEP_CAUSES)}, among three in {three}; bar 6 and 8", flush=True)


INJECTED = ("drift", "noise", "oscillation", "freeze", "gain", "delay")


def inject(kind: str, readings: FloatArray, rows: slice, rng: np.random.Generator) -> FloatArray:
    """Return the readings of one sensor with a fault in these rows, in units of its standard deviation.

    drift: to 2 σ; noise of 1 σ; oscillation of 1 σ over 10 rows; freeze at the first reading; gain: twice as far from
    the mean; delay of 10 rows.
    """
    found, spread = readings.copy(), readings.std()
    some = readings[rows]
    k = np.arange(len(some))
    found[rows] = {
        "drift": some + 2 * spread * (k + 1) / len(some),
        "noise": some + spread * rng.normal(size=len(some)),
        "oscillation": some + spread * np.sin(2 * np.pi * k / 10),
        "freeze": np.full(len(some), some[0]),
        "gain": readings.mean() + 2 * (some - readings.mean()),
        "delay": readings[rows.start - 10 : rows.stop - 10],
    }[kind]
    return found


def healthy_records(rows: int = 6000) -> Iterator[tuple[str, FloatArray, int]]:
    """Yield records without faults, and how many of their rows are the good period: TEP, ASD, SMD."""
    good, runs, _ = tep_records()
    yield "tep", np.vstack([good, runs["d00_te"][0]]), len(good)
    for kind in ("asd", "smd"):
        for data in SETS[kind]([]):
            if data.train is not None:
                X = data.X[data.train][:rows]
                yield kind, X, len(X) // 2


def print_injected(seeds: Sequence[int]) -> None:
    """Print the AP of faults injected into healthy records: one sensor, 3 % of the rows, after the good period."""
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for collection, healthy, n_good in healthy_records():
        n = len(healthy)
        length, moving = int(0.03 * n), np.flatnonzero((np.diff(healthy, axis=0) != 0).mean(axis=0) > 0.5)
        detector, ridge = SensorDetector(random_state=0).fit(healthy[:n_good]), Ridge().fit(healthy[:n_good])
        for seed in seeds:
            rng = np.random.default_rng(seed)
            sensor, start = int(rng.choice(moving)), int(rng.integers(n_good + 10, n - length))
            rows = slice(start, start + length)
            y = (np.arange(n) >= start) & (np.arange(n) < start + length)
            for kind in INJECTED:
                X = healthy.copy()
                X[:, sensor] = inject(kind, healthy[:, sensor], rows, rng)
                later, labels = X[n_good:], y[n_good:]
                for regime, labelled, ours, plain in (
                    ("(i)", y, SensorDetector(random_state=0).fit(X).scores_, Ridge().fit(X).scores_),
                    ("(ii)", labels, detector.score_series(later), ridge.anomaly_score(later)),
                ):
                    cell = found.setdefault((regime, kind, collection), {"ours": [], "plain": []})
                    cell["ours"].append(average_precision(labelled, ours))
                    cell["plain"].append(average_precision(labelled, plain))
    collections = dict.fromkeys(key[2] for key in found)
    print(f"AP, SensorDetector / ridge with a mean of 6; {len(seeds)} seeds for each record")
    print(f"{'':17s}" + "".join(f"{name:>15s}" for name in (*collections, "mean")))
    for regime in ("(i)", "(ii)"):
        for kind in INJECTED:
            cells = [found[regime, kind, name] for name in collections]
            pairs = [(float(np.mean(cell["ours"])), float(np.mean(cell["plain"]))) for cell in cells]
            pairs.append((float(np.mean([a for a, _ in pairs])), float(np.mean([b for _, b in pairs]))))
            texts = "".join(f"{f'{a:.3f} / {b:.3f}':>15s}" for a, b in pairs)
            print(f"{regime:5s}{kind:12s}{texts}{'' if pairs[-1][0] >= pairs[-1][1] else '   behind'}", flush=True)


def print_cost() -> None:
    """Print what fits, live rows and a whole `detect` take, each in a process of its own, with kernels compiled."""
    once = partial(alone, limit=3600, repeats=1)
    print("CPU seconds; memory is the peak of the whole process, the table included")
    seconds = {}
    for n in (62_500, 250_000, 1_000_000):
        done = once(_time_fit, n, 50)
        seconds[n] = done.cpu
        print(
            f"fit of {n:,} × 50: {done.cpu:.1f} s, {done.peak_mb / 1000:.2f} GB  [1,000,000: 180 s, 4 GB]", flush=True
        )
    sizes = np.log(list(seconds))
    print(f"grows with n to the power of {np.polyfit(sizes, np.log(list(seconds.values())), 1)[0]:.2f}  [linear]")
    print(f"live, row by row, p = 222: {1e6 * once(_time_live, 4000, 222).cpu / 4000:.0f} µs a row  [60]")
    print(f"detect on the simulated plant, to the report: {once(_time_detect).cpu:.1f} s  [5]", flush=True)


def _time_fit(n: int, p: int) -> Callable[[], Any]:
    SensorDetector().fit(plant_table(2000, p).iloc[:, 1:])  # so that nothing is left to compile
    X = plant_table(n, p).iloc[:, 1:].to_numpy()
    return lambda: len(SensorDetector().fit(X).scores_)


def _time_live(n: int, p: int) -> Callable[[], Any]:
    X = plant_table(2 * n, p).iloc[:, 1:].to_numpy()
    monitor = SensorDetector().fit(X[:n]).monitor()
    monitor.update(X[n])

    def follow() -> None:
        for row in X[n:]:
            monitor.update(row)

    return follow


def _time_detect() -> Callable[[], Any]:
    import penstock

    table = simulate_hydropower(0).table.reset_index()

    def detect_and_report() -> None:
        with TemporaryDirectory() as folder:
            penstock.detect(table).to_html(Path(folder) / "report.html")

    detect_and_report()
    return detect_and_report


def draw_picture(path: Path) -> None:
    """Draw one fault of the simulated plant: readings and expected values, residuals, evidence, score and incident."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from matplotlib.dates import ConciseDateFormatter

    import penstock

    mpl.rcParams["svg.hashsalt"] = "penstock"
    plant = simulate_hydropower(0)
    findings = penstock.detect(plant.table.reset_index())
    name = "unit2_turbine_guide_bearing_temperature_2"
    incident = next(one for one in findings.incidents if one.sensors[0].name == name)
    rows = slice(incident.start - 60, incident.end + 40)
    stamps = pd.DatetimeIndex(plant.table.index)[rows]
    column = findings.inputs.names.index(name)
    actual, expected = findings.inputs.values[name].iloc[rows], findings.inputs.expected[name].iloc[rows]
    assert findings.rows.evidence is not None
    evidence = findings.rows.evidence[rows]
    figure, axes = plt.subplots(4, 1, figsize=(8, 8.5), sharex=True, layout="constrained")
    axes[0].plot(stamps, actual, color="#0072b2", label="measured")
    axes[0].plot(stamps, expected, color="#d55e00", linestyle="--", label="expected, given the other sensors")
    axes[0].set(title=f"One sensor of {len(findings.inputs.names)}: {name}", ylabel="°C")
    axes[0].legend(frameon=False)
    axes[1].plot(stamps, actual - expected, color="#0072b2")
    axes[1].axhline(0, color="0.6", linewidth=0.8)
    axes[1].set(title="Residual: measured minus expected", ylabel="°C")
    axes[2].plot(stamps, np.delete(evidence, column, axis=1), color="0.8", linewidth=0.6)
    axes[2].plot(stamps, evidence[:, column], color="#0072b2")
    axes[2].axhline(1, color="#d55e00", linestyle="--", linewidth=1)
    axes[2].set(title="Evidence over time, of this sensor and all others (grey); 1 is the edge of the usual")
    axes[2].set_ylim(bottom=0)
    axes[3].plot(stamps, findings.scores[rows], color="0.2")
    axes[3].axhline(findings.threshold, color="#d55e00", linestyle="--", linewidth=1)
    last = 60 + incident.end - incident.start
    axes[3].axvspan(stamps[60], stamps[last], color="#56b4e9", alpha=0.3, label="incident")
    axes[3].set(title="Score of the row; one episode above the line is expected by chance in the seven months")
    axes[3].legend(frameon=False)
    for axis in axes:
        axis.title.set_fontsize(10)
        axis.spines[["top", "right"]].set_visible(False)
    axes[3].xaxis.set_major_formatter(ConciseDateFormatter(axes[3].xaxis.get_major_locator()))  # type: ignore[no-untyped-call]
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print tables of all methods and sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = [name for name in SETS if name not in _FROM_ABROAD]
    parser.add_argument("--sets", nargs="+", default=usual, choices=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4], help="of the simulated plant")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--folder", type=Path, default=Path("bench-plant"), help="where results are kept")
    parser.add_argument("--jobs", type=int, help="cells at a time; as many as cores")
    parser.add_argument("--causes", action="store_true", help="instead, how often true sensors are named first")
    parser.add_argument("--process", action="store_true", help="instead, faults found at 1 %% false alarms on TEP")
    parser.add_argument("--injected", action="store_true", help="instead, faults injected into healthy records")
    parser.add_argument("--cost", action="store_true", help="instead, time and memory of fits, live rows and detect")
    parser.add_argument("--picture", type=Path, help="instead, draw one fault as docs/plant.md shows it")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.picture:
        draw_picture(given.picture)
    elif given.cost:
        print_cost()
    elif given.causes:
        print_causes(given.seeds)
    elif given.process:
        print_process()
    elif given.injected:
        print_injected(given.seeds)
    else:
        run(given.sets, given.seeds, given.methods, given.folder, given.jobs)


if __name__ == "__main__":
    main()
