"""Compare detectors on labelled series, self-judged (i) and learnt from a good period (ii).

    .venv/bin/python benchmarks/plant.py [--sets plant varied nab skab asd] [--seeds 0 1 2 3 4] [--methods …]
    .venv/bin/python benchmarks/plant.py --causes | --cost | --picture FILE

(i) fitted on the rows that hold the faults; (ii) fitted on a good period, rows that were not learnt from are scored.
PLANT is `penstock simulate hydropower` (good period: the first 40 % without its faults), VARIED the same with `--vary`
(rows at the faint beginning of slow faults do not count), NAB learns what comes before its first fault, SKAB up to 400
rows of each run before its fault, ASD its training part; (i) on ASD: its labelled part. "position" is the row number:
on SKAB it tells faults by itself, as they lie at the end of the runs.

Printed per method and set: mean average precision (i)/(ii) and the lowest, CPU seconds, and on the plants for (i): how
many of the faults are among the first 26 events, how many of the first 100 rows are in faults and in look-alikes, and
false events a day where half of the faults are found.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from detect import plant_table
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from timing import Timing, Worker

from penstock import NSNMF, Detector, OnlineNSNMF, OverTime, SensorDetector
from penstock._types import FloatArray
from penstock.explain import Incident, find_incidents, group_events
from penstock.sensors import Judgement, learn_clock, learn_leave_one_out, learn_scale
from penstock.simulate import simulate_hydropower

BoolArray = NDArray[np.bool_]
DATA = Path(os.environ.get("PENSTOCK_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "industrial"


@dataclass(frozen=True)
class Series:
    """Readings (n, p), times in minutes (n,), faults (n,), rows of a good period (n,), and rows that count (n,).

    events : of a simulated plant, for each event whether it is a fault, and its rows.
    """

    X: FloatArray
    time: FloatArray
    faults: BoolArray
    good: BoolArray
    counted: BoolArray
    events: list[tuple[bool, BoolArray]] = field(default_factory=list)


def read_plant(seeds: list[int], *, vary: bool = False) -> Iterator[Series]:
    for seed in seeds:
        plant = simulate_hydropower(seed, vary=vary)
        faults, time = plant.is_anomalous, plant.table.index
        good = (np.arange(len(faults)) < int(0.4 * len(faults))) & ~faults
        events = [
            (bool(event.is_fault), np.asarray((time >= event.start) & (time <= event.end)))
            for event in plant.events.itertuples()
        ]
        yield Series(plant.table.to_numpy(), _minutes(time), faults, good, ~plant.is_faint, events)


def read_varied(seeds: list[int]) -> Iterator[Series]:
    return read_plant(seeds, vary=True)


def read_nab(_: list[int]) -> Iterator[Series]:
    table = pd.read_csv(DATA / "NAB_machine_temperature_system_failure.csv.gz")
    faults = table["outlier"].to_numpy() > 0
    good = np.arange(len(faults)) < int(np.argmax(faults))
    yield Series(table[["value"]].to_numpy(), _minutes(table["t"]), faults, good, np.ones(len(faults), np.bool_))


def read_skab(_: list[int]) -> Iterator[Series]:
    table = pd.read_csv(DATA / "SKAB.csv.gz")
    names = table.columns.drop(["run", "t", "changepoint", "outlier"])
    for _run, run in table.groupby("run", sort=False):
        faults = run["outlier"].to_numpy() > 0
        if faults.any():
            good = np.arange(len(faults)) < min(400, int(np.argmax(faults)))
            every = np.ones(len(faults), np.bool_)
            yield Series(run[names].to_numpy(float), _minutes(run["t"]), faults, good, every)


def read_asd(_: list[int]) -> Iterator[Series]:
    table = pd.read_csv(DATA / "ASD_servers.csv.gz")
    names = [name for name in table.columns if name.startswith("m")]
    for _server, server in table.groupby("server", sort=False):
        faults = np.nan_to_num(server["outlier"].to_numpy(float)) > 0
        good = (server["part"] == "train").to_numpy()
        yield Series(server[names].to_numpy(float), np.arange(len(faults), dtype=float), faults, good, ~good)


def _minutes(times: Any) -> FloatArray:
    stamps = pd.DatetimeIndex(times)
    minutes: FloatArray = ((stamps - stamps[0]) / pd.Timedelta(minutes=1)).to_numpy(dtype=float)
    return minutes


SETS: dict[str, Callable[[list[int]], Iterator[Series]]] = {
    "plant": read_plant,
    "varied": read_varied,
    "nab": read_nab,
    "skab": read_skab,
    "asd": read_asd,
}


def sensors(X: FloatArray, time: FloatArray, good: BoolArray | None) -> FloatArray:
    """Sensors judged by each other over time."""
    detector, found = SensorDetector(random_state=0), np.empty(len(X))
    if good is None:
        found[:] = detector.fit(X, time=time).scores_
    else:
        found[:] = detector.fit(X[good], time=time[good]).score_series(X, time=time)
    return found


def row_detector(make: Callable[[], Any]) -> Callable[[FloatArray, FloatArray, BoolArray | None], FloatArray]:
    """Return a method that judges rows one by one."""

    def scores(X: FloatArray, time: FloatArray, good: BoolArray | None) -> FloatArray:
        filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
        detector = make().fit(filled if good is None else filled[good])
        found: FloatArray = detector.scores_ if good is None else detector.anomaly_score(filled)
        return found

    return scores


def over_time(make: Callable[[], Any]) -> Callable[[FloatArray, FloatArray, BoolArray | None], FloatArray]:
    """Return a method that gives a detector of rows the time layer."""

    def scores(X: FloatArray, time: FloatArray, good: BoolArray | None) -> FloatArray:
        detector = OverTime(make())
        if good is None:
            return detector.fit(X, time=time).scores_
        return detector.fit(X[good], time=time[good]).score_series(X, time=time)

    return scores


def online(X: FloatArray, time: FloatArray, good: BoolArray | None) -> FloatArray:
    """The paper's online algorithm with the settings of `penstock watch`; scores before its warm-up are 0."""
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    detector = OnlineNSNMF(similarity="binary", warmup=200, random_state=0)
    if good is not None:
        detector.update_many(filled[good])
    return np.nan_to_num(detector.update_many(filled))


def trailing_detector(X: FloatArray, time: FloatArray, good: BoolArray | None) -> FloatArray:
    """The mean of the last six scores of `Detector`."""
    return _mean_of_six(row_detector(lambda: Detector(random_state=0))(X, time, good))


def ridge(X: FloatArray, time: FloatArray, good: BoolArray | None) -> FloatArray:
    """The largest leave-one-out residual of a row, mean of six."""
    used = np.ones(len(X), dtype=np.bool_) if good is None else good
    starts = learn_clock(time[used]).follow(int(used.sum()), time[used]).starts
    Z = learn_scale(X[used], starts).apply(X)
    Z = np.where(np.isnan(Z), 0.0, Z)
    R = learn_leave_one_out(Z, used.astype(float)).residuals(Z)
    return _mean_of_six(np.abs(R / (R[used].std(axis=0) + 1e-12)).max(axis=1))


def position(X: FloatArray, time: FloatArray, good: BoolArray | None) -> FloatArray:
    """The row number: a control."""
    return np.arange(len(X), dtype=float)


def _mean_of_six(scores: FloatArray) -> FloatArray:
    return np.convolve(scores, np.full(6, 1 / 6))[: len(scores)]


METHODS: dict[str, Callable[[FloatArray, FloatArray, BoolArray | None], FloatArray]] = {
    "SensorDetector": sensors,
    "Detector": row_detector(lambda: Detector(random_state=0)),
    "Detector, mean of 6": trailing_detector,
    "leave-one-out ridge, mean of 6": ridge,
    "NSNMF(30)": row_detector(lambda: NSNMF(30, random_state=0)),
    "NSNMF(30) over time": over_time(lambda: NSNMF(30, random_state=0)),
    "Detector over time": over_time(lambda: Detector(random_state=0)),
    "OnlineNSNMF": online,
    "position (control)": position,
}


@dataclass(frozen=True)
class EventFigures:
    """Of one plant, self-judged: what the first events and rows are."""

    faults_in_first_events: int
    rows_in_faults: int
    rows_in_look_alikes: int
    false_events_a_day: float


def judge_events(series: Series, scores: FloatArray, first: int = 26) -> EventFigures:
    """Lower a threshold until half of the faults are found, and until there are 26 events."""
    faults = [rows for is_fault, rows in series.events if is_fault]
    look_alikes = np.any([rows for is_fault, rows in series.events if not is_fault], axis=0)
    days = len(scores) * np.median(np.diff(series.time)) / 1440
    order = np.argsort(-scores, kind="stable")
    top = order[:100]
    found, false_a_day = 0, np.nan
    for count in range(10, len(scores) // 5, 10):
        flags = np.zeros(len(scores), dtype=np.bool_)
        flags[order[:count]] = True
        events = group_events(flags, scores, None)
        if len(events) > first:
            break
        found = sum(bool((flags & rows).any()) for rows in faults)
        if np.isnan(false_a_day) and 2 * found >= len(faults):
            spans = [events.rows_of(event) for event in range(1, len(events) + 1)]
            false_a_day = sum(not series.faults[rows].any() for rows in spans) / days
    return EventFigures(found, int(series.faults[top].sum()), int(look_alikes[top].sum()), false_a_day)


def print_causes(seeds: list[int]) -> None:
    """Print how often a true sensor is named first, or among the first three, in the incidents that overlap a fault.

    One line for each order of the sensors: by evidence in the highest row, by onset, by the sum of evidence over the
    flagged rows, and as shipped (`Incident.sensors`). Rows above the 95 % quantile of the score are flagged. Of PLANT
    and VARIED the 26 incidents with the highest scores count, of the others all. SKAB has no list of causes: of its
    runs in which a valve was closed, flow and pressure are what the valve acts on.
    """
    for vary in (False, True):
        found, total = [], 0
        for seed in seeds:
            plant = simulate_hydropower(seed, vary=vary)
            stamps = pd.DatetimeIndex(plant.table.index)
            judged = _incidents(plant.table.to_numpy(), _minutes(stamps), None, list(plant.table.columns))
            faults = plant.events[plant.events["is_fault"]]
            total += len(faults)
            for begin, end, names in zip(faults["start"], faults["end"], faults["variables"], strict=True):
                rows = np.flatnonzero((stamps >= begin) & (stamps <= end))
                found += _named(judged, rows, set(names), highest=26)
        _print_named("varied (i)" if vary else "plant (i)", found, total)
    table, causes = pd.read_csv(DATA / "ASD_servers.csv.gz"), pd.read_csv(DATA / "ASD_servers_causes.csv")
    sensors = [name for name in table.columns if name.startswith("m")]
    for learnt in (False, True):
        found = []
        for server, part in table.groupby("server", sort=False):
            test = (part["part"] == "test").to_numpy()
            X, its_causes = part[sensors].to_numpy(float), causes[causes["server"] == server]
            judged = _incidents(X[test], np.arange(test.sum(), dtype=float), X[~test] if learnt else None, sensors)
            spans = its_causes[["first_step", "last_step"]].to_numpy(dtype=np.intp)
            for (begin, end), metrics in zip(spans, its_causes["metrics"].astype(str), strict=True):
                found += _named(judged, np.arange(begin, end + 1), {f"m{number}" for number in metrics.split()})
        _print_named(f"asd {'(ii)' if learnt else '(i)'}", found, len(causes))
    table = pd.read_csv(DATA / "SKAB.csv.gz")
    sensors = table.columns.drop(["run", "t", "changepoint", "outlier"]).tolist()
    valves = [run for name, run in table.groupby("run", sort=False) if str(name).startswith("valve")]
    for learnt in (False, True):
        found = []
        for run in valves:
            rows, X, time = np.flatnonzero(run["outlier"]), run[sensors].to_numpy(float), _minutes(run["t"])
            judged = _incidents(X, time, X[: min(400, rows[0])] if learnt else None, sensors)
            found += _named(judged, rows, {"Volume Flow RateRMS", "Pressure"})
        _print_named(f"skab {'(ii)' if learnt else '(i)'}", found, len(valves))


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
    judged: tuple[Sequence[Incident], FloatArray, Sequence[str]],
    rows: NDArray[np.intp],
    true: set[str],
    highest: int | None = None,
) -> list[dict[str, tuple[bool, bool]]]:
    """Of the highest incident that overlaps these rows, by order: a true sensor first, among three; or nothing."""
    incidents, evidence, names = judged
    some = [one for one in incidents if highest is None or one.rank <= highest]
    over = [one for one in some if one.start <= rows[-1] and one.end >= rows[0]]
    if not over:
        return []
    orders = _orders(max(over, key=lambda one: one.peak_score), evidence, names)
    return [{name: (order[0] in true, bool(set(order[:3]) & true)) for name, order in orders.items()}]


def _print_named(name: str, found: list[dict[str, tuple[bool, bool]]], total: int) -> None:
    print(f"{name:10s} {len(found)} of {total} faults found; a true sensor first / among three", flush=True)
    for order in found[0]:
        first, three = np.mean([each[order] for each in found], axis=0)
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
    print("CPU seconds; memory is the peak of the whole process, the table included")
    seconds = {}
    for n in (62_500, 250_000, 1_000_000):
        done = _run_alone(_time_fit, n, 50)
        seconds[n] = done.cpu
        print(
            f"fit of {n:,} × 50: {done.cpu:.1f} s, {done.peak_mb / 1000:.2f} GB  [1,000,000: 180 s, 4 GB]", flush=True
        )
    sizes = np.log(list(seconds))
    print(f"grows with n to the power of {np.polyfit(sizes, np.log(list(seconds.values())), 1)[0]:.2f}  [linear]")
    print(f"live, row by row, p = 222: {1e6 * _run_alone(_time_live, 4000, 222).cpu / 4000:.0f} µs a row  [60]")
    print(f"detect on the simulated plant, to the report: {_run_alone(_time_detect).cpu:.1f} s  [5]", flush=True)


def _run_alone(setup: Callable[..., Callable[[], Any]], *arguments: int) -> Timing:
    worker = Worker(setup)
    try:
        done = worker.run(arguments, limit=3600, repeats=1)
    finally:
        worker.close()
    if isinstance(done, str):
        raise SystemExit(f"{setup.__name__}{arguments}: {done}")
    return done


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
    """Print one line per method and set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4], help="of the simulated plant")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--causes", action="store_true", help="instead, how often true sensors are named first")
    parser.add_argument("--cost", action="store_true", help="instead, time and memory of fits, live rows and detect")
    parser.add_argument("--picture", type=Path, help="instead, draw one fault as docs/plant.md shows it")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.picture:
        draw_picture(given.picture)
        return
    if given.cost:
        print_cost()
        return
    if given.causes:
        print_causes(given.seeds)
        return
    for name in given.sets:
        series = list(SETS[name](given.seeds))
        for method in given.methods:
            begin, found, events = process_time(), [], []
            for each in series:
                judged = each.counted if name == "asd" else np.ones(len(each.faults), dtype=np.bool_)
                own = METHODS[method](each.X[judged], each.time[judged], None)
                later = METHODS[method](each.X, each.time, each.good)
                counted, new = each.counted[judged], ~each.good & each.counted
                found.append(
                    [
                        average_precision_score(each.faults[judged][counted], own[counted]),
                        average_precision_score(each.faults[new], later[new]),
                    ]
                )
                if each.events:
                    events.append(judge_events(each, own))
            mean, least = np.mean(found, axis=0), np.min(found, axis=0)
            cost = (process_time() - begin) / len(series)
            line = f"{mean[0]:.3f}/{mean[1]:.3f}  lowest {least[0]:.3f}/{least[1]:.3f}  {cost:.1f} s"
            if events:
                line += (
                    f"  faults in 26 events {np.mean([e.faults_in_first_events for e in events]):.1f} of 13, of 100 "
                    f"rows {np.mean([e.rows_in_faults for e in events]):.0f} in faults and "
                    f"{np.mean([e.rows_in_look_alikes for e in events]):.0f} in look-alikes, "
                    f"{np.nanmean([e.false_events_a_day for e in events]):.3f} false events a day"
                )
            print(f"{name:6s} {method:32s} {line}", flush=True)


if __name__ == "__main__":
    main()
