"""Compare detectors on labelled series, self-judged (i) and learnt from a good period (ii).

    .venv/bin/python benchmarks/plant.py [--sets plant varied nab skab asd local] [--seeds 0 1 2 3 4] [--methods …]
    .venv/bin/python benchmarks/plant.py --causes | --cost | --picture FILE

(i) fitted on the rows that hold the faults; (ii) fitted on a good period, rows that were not learnt from are scored.
PLANT is `penstock simulate hydropower` (good period: the first 40 % without its faults), VARIED the same with `--vary`
(rows at the faint beginning of slow faults do not count), NAB learns what comes before its first fault, SKAB up to 400
rows of each run before its fault, ASD its training part; (i) on ASD: its labelled part. LOCAL is any other labelled
file in PENSTOCK_DATA/industrial; good: the first 40 % without faults. "position" is the row number: on SKAB it tells
faults by itself, as they lie at the end of the runs, and so it does on the local SHP_hydropower_prefault.

A study of `penstock bench` (results in --folder, continued where it stopped), whose measures are printed per method and
set: means over the series of a set, and in whose favour they are with intervals over these series.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
import pandas as pd
from detect import plant_table
from numpy.typing import NDArray
from timing import alone

from penstock import Detector, OnlineNSNMF, SensorDetector
from penstock._types import BoolArray, FloatArray
from penstock.bench import Dataset, Method, Study, load_file, run_study, sensor_hits
from penstock.bench.measures import highest_incident
from penstock.bench.report import answer, format_events, format_methods
from penstock.explain import Incident, find_incidents, group_events
from penstock.sensors import Judgement, learn_clock, learn_leave_one_out, learn_scale
from penstock.simulate import simulate_hydropower

DATA = Path(os.environ.get("PENSTOCK_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "industrial"
VALVE = "Volume Flow RateRMS;Pressure"  # SKAB has no list of causes: what a closed valve acts on
NAB, SKAB, ASD = "NAB_machine_temperature_system_failure.csv.gz", "SKAB.csv.gz", "ASD_servers.csv.gz"
LATER = " (ii)"  # of the name of a data set: learnt from its good period


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
    table, all_causes = pd.read_csv(DATA / ASD), pd.read_csv(DATA / "ASD_servers_causes.csv")
    names = tuple(name for name in table.columns if name.startswith("m"))
    for server, part in table.groupby("server", sort=False):
        y = (np.nan_to_num(part["outlier"].to_numpy(float)) > 0).astype(np.int64)
        train = (part["part"] == "train").to_numpy()
        causes = np.full(len(y), "", dtype=object)
        for cause in all_causes[all_causes["server"] == server].to_dict("records"):
            metrics = ";".join(f"m{number}" for number in str(cause["metrics"]).split())
            causes[train.sum() + cause["first_step"] : train.sum() + cause["last_step"] + 1] = metrics
        time = pd.date_range("2024-01-01", periods=len(y), freq="5min")
        X = part[list(names)].to_numpy(float)
        yield Dataset(f"asd {server}", X, y, time, train=train, names=names, causes=causes)


def read_local(_: list[int]) -> Iterator[Dataset]:
    about = pd.read_csv(DATA / "MANIFEST.csv", index_col="name")["sensor_columns"].dropna()
    for file in sorted(DATA.glob("*.csv*")):
        name = file.name.partition(".")[0]
        if file.name in (NAB, SKAB, ASD) or name == "MANIFEST" or name.endswith("_causes"):
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


SETS: dict[str, Callable[[list[int]], Iterator[Dataset]]] = {
    "plant": read_plant,
    "varied": read_varied,
    "nab": read_nab,
    "skab": read_skab,
    "asd": read_asd,
    "local": read_local,
}


@cache
def read_set(name: str, seeds: tuple[int, ...]) -> dict[str, Dataset]:
    """Return the series of a set in both regimes, by name."""
    found = {}
    for data in SETS[name](list(seeds)):
        rows = ~data.train if name == "asd" and data.train is not None else np.ones(data.n, dtype=np.bool_)
        found[data.name] = Dataset(
            data.name,
            data.X[rows],
            data.y[rows],
            data.time[rows] if data.time is not None else None,
            counted=None if data.counted is None else data.counted[rows],
            names=data.names,
            causes=None if data.causes is None else data.causes[rows],
        )
        found[data.name + LATER] = replace(data, name=data.name + LATER)
    return found


class MeanOfSix:
    """Mean of the last six scores of `Detector`."""

    def fit(self, X: FloatArray) -> Self:
        self.detector_ = Detector(random_state=0).fit(X)
        self.scores_ = _mean_of_six(self.detector_.scores_)
        return self

    def anomaly_score(self, X: FloatArray) -> FloatArray:
        return _mean_of_six(self.detector_.anomaly_score(X))


class Online:
    """The paper's online algorithm with the settings of `penstock watch`; scores before its warm-up are 0."""

    def fit(self, X: FloatArray) -> Self:
        self.detector_ = OnlineNSNMF(similarity="binary", warmup=200, scale="minmax", random_state=0)
        self.scores_ = self.anomaly_score(X)
        return self

    def anomaly_score(self, X: FloatArray) -> FloatArray:
        return np.nan_to_num(self.detector_.update_many(X))


class Ridge:
    """The largest leave-one-out residual of a row, mean of six."""

    def fit(self, X: FloatArray, *, time: Any = None, runs: Any = None) -> Self:
        self.scale_ = learn_scale(X, learn_clock(_minutes(time)).follow(len(X), _minutes(time)).starts)
        Z = self._scaled(X)
        self.model_ = learn_leave_one_out(Z, np.ones(len(X)))
        self.spread_ = self.model_.residuals(Z).std(axis=0) + 1e-12
        self.scores_ = self.judge_series(X).scores
        return self

    def judge_series(self, X: FloatArray, *, time: Any = None, runs: Any = None) -> Judgement:
        largest = np.abs(self.model_.residuals(self._scaled(X)) / self.spread_).max(axis=1)
        return Judgement(_mean_of_six(largest), largest[:, None])

    def _scaled(self, X: FloatArray) -> FloatArray:
        Z = self.scale_.apply(X)
        return np.where(np.isnan(Z), 0.0, Z)


class Position:
    """The row number: a control."""

    def fit(self, X: FloatArray) -> Self:
        self.scores_ = self.anomaly_score(X)
        return self

    def anomaly_score(self, X: FloatArray) -> FloatArray:
        return np.arange(len(X), dtype=float)


def _minutes(times: Any) -> FloatArray:
    stamps = pd.DatetimeIndex(times)
    minutes: FloatArray = ((stamps - stamps[0]) / pd.Timedelta(minutes=1)).to_numpy(dtype=float)
    return minutes


def _mean_of_six(scores: FloatArray) -> FloatArray:
    return np.convolve(scores, np.full(6, 1 / 6))[: len(scores)]


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
        Method("Detector, mean of 6", "plant.MeanOfSix"),
        Method("leave-one-out ridge, mean of 6", "plant.Ridge"),
        Method("NSNMF(30) over time", "OverTime", {"detector": {"NSNMF": NSNMF_30}}),
        Method("Detector over time", "OverTime", {"detector": {"Detector": {"random_state": 0}}}),
        Method("OnlineNSNMF", "plant.Online"),
        Method("position (control)", "plant.Position"),
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
        for later, regime in ((False, "(i) by itself"), (True, "(ii) learnt from a good period")):
            some = mine[mine["dataset"].str.endswith(LATER) == later]
            print(f"\n{name} {regime}\n")
            print("\n".join(answer(some)) if len(some) else "no data")
            for table in (format_methods(some), format_events(some)) if (some["status"] == "ok").any() else ():
                frame = pd.DataFrame(table.cells, columns=list(table.headers)).set_index("method")
                print(frame.rename_axis(index=None).to_string())
    print(f"\nCPU of all fits and scores: {rows['cpu_seconds'].sum() / 60:.1f} minutes", flush=True)


def print_causes(seeds: list[int]) -> None:
    """Print how often a true sensor is named first, or among the first three, in the incidents that overlap a fault.

    One line for each order of the sensors: by evidence in the highest row, by onset, by the sum of evidence over the
    flagged rows, and as shipped (`Incident.sensors`). Rows above the 95 % quantile of the score are flagged. Of PLANT
    and VARIED the 26 incidents with the highest scores count, of the others all. SKAB has no list of causes: of its
    runs in which a valve was closed, flow and pressure are what the valve acts on.
    """
    for kind in ("plant", "varied", "asd", "skab"):
        for learnt in (False, True) if kind in ("asd", "skab") else (False,):
            found = []
            for data in SETS[kind](seeds):
                if data.causes is None or data.train is None:
                    continue
                if kind == "asd":
                    rows, X = np.flatnonzero(~data.train), data.X[~data.train]
                    time, good = np.arange(len(X), dtype=float), data.X[data.train]
                else:
                    rows, X, time, good = np.arange(data.n), data.X, _minutes(data.time), data.X[data.train]
                judged = _incidents(X, time, good if learnt else None, list(data.names))
                for span in _fault_spans(data.causes[rows]):
                    named = _named(judged, span, 26 if kind in ("plant", "varied") else None)
                    found.append((named, set(str(data.causes[rows][span[0]]).split(";"))))
            _print_named(f"{kind} {'(ii)' if learnt else '(i)'}", found)


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
    judged: tuple[Sequence[Incident], FloatArray, Sequence[str]], rows: NDArray[np.intp], highest: int | None = None
) -> dict[str, list[str]] | None:
    """Of the highest incident that overlaps these rows, the sensors by each order; or nothing."""
    incidents, evidence, names = judged
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
    """The incidents of the 5 % highest rows, self-judged or learnt from good rows; the evidence, and the names."""
    detector = SensorDetector(random_state=0)
    if good is None:
        detector.fit(X, time=time)
        judged = Judgement(detector.scores_, detector.evidence_)
    else:
        judged = detector.fit(good).judge_series(X, time=time)
    starts = detector.model_.clock.follow(len(X), time).starts
    flags = judged.scores > np.quantile(judged.scores, 0.95)
    events = group_events(flags, judged.scores, None, groups=np.cumsum(starts))
    found = find_incidents(events, judged.scores, judged.evidence, detector.expected(X), X, starts, names)
    return found, judged.evidence, names


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
    column = findings.names.index(name)
    actual, expected = findings.values[name].iloc[rows], findings.expected[name].iloc[rows]
    assert findings.evidence is not None
    evidence = findings.evidence[rows]
    figure, axes = plt.subplots(4, 1, figsize=(8, 8.5), sharex=True, layout="constrained")
    axes[0].plot(stamps, actual, color="#0072b2", label="measured")
    axes[0].plot(stamps, expected, color="#d55e00", linestyle="--", label="expected, given the other sensors")
    axes[0].set(title=f"One sensor of 217: {name}", ylabel="°C")
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
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4], help="of the simulated plant")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--folder", type=Path, default=Path("bench-plant"), help="where results are kept")
    parser.add_argument("--jobs", type=int, help="cells at a time; as many as cores")
    parser.add_argument("--causes", action="store_true", help="instead, how often true sensors are named first")
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
    else:
        run(given.sets, given.seeds, given.methods, given.folder, given.jobs)


if __name__ == "__main__":
    main()
