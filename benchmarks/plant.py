"""Print the average precision of detectors on labelled series, self-judged and learnt from a good period.

    .venv/bin/python benchmarks/plant.py [--sets plant nab skab asd] [--seeds 0 1 2 3 4]

(i) fitted on the rows that hold the faults; (ii) fitted on a good period, rows that were not learnt from are scored.
PLANT is `penstock simulate hydropower` (good period: the first 40 % without its faults), NAB learns what comes before
its first fault, SKAB up to 400 rows of each run before its fault, ASD its training part; (i) on ASD: its labelled part.
"position" is the row number: on SKAB it tells faults by itself, as they lie at the end of the runs.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from penstock import NSNMF, Detector, OnlineNSNMF, OverTime
from penstock._types import FloatArray
from penstock.sensors import learn_clock, learn_leave_one_out, learn_scale, learn_series
from penstock.simulate import simulate_hydropower

BoolArray = NDArray[np.bool_]
DATA = Path(os.environ.get("PENSTOCK_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "industrial"


@dataclass(frozen=True)
class Series:
    """Readings (n, p), times (n,), faults (n,) and the rows of a good period (n,)."""

    X: FloatArray
    time: FloatArray
    faults: BoolArray
    good: BoolArray


def read_plant(seeds: list[int]) -> Iterator[Series]:
    for seed in seeds:
        plant = simulate_hydropower(seed)
        faults = plant.is_anomalous
        good = (np.arange(len(faults)) < int(0.4 * len(faults))) & ~faults
        yield Series(plant.table.to_numpy(), _minutes(plant.table.index), faults, good)


def read_nab(_: list[int]) -> Iterator[Series]:
    table = pd.read_csv(DATA / "NAB_machine_temperature_system_failure.csv.gz")
    faults = table["outlier"].to_numpy() > 0
    good = np.arange(len(faults)) < int(np.argmax(faults))
    yield Series(table[["value"]].to_numpy(), _minutes(table["t"]), faults, good)


def read_skab(_: list[int]) -> Iterator[Series]:
    table = pd.read_csv(DATA / "SKAB.csv.gz")
    names = table.columns.drop(["run", "t", "changepoint", "outlier"])
    for _run, run in table.groupby("run", sort=False):
        faults = run["outlier"].to_numpy() > 0
        if faults.any():
            good = np.arange(len(faults)) < min(400, int(np.argmax(faults)))
            yield Series(run[names].to_numpy(float), _minutes(run["t"]), faults, good)


def read_asd(_: list[int]) -> Iterator[Series]:
    table = pd.read_csv(DATA / "ASD_servers.csv.gz")
    names = [name for name in table.columns if name.startswith("m")]
    for _server, server in table.groupby("server", sort=False):
        faults = np.nan_to_num(server["outlier"].to_numpy(float)) > 0
        good = (server["part"] == "train").to_numpy()
        yield Series(server[names].to_numpy(float), np.arange(len(faults), dtype=float), faults, good)


def _minutes(times: Any) -> FloatArray:
    stamps = pd.DatetimeIndex(times)
    minutes: FloatArray = ((stamps - stamps[0]) / pd.Timedelta(minutes=1)).to_numpy(dtype=float)
    return minutes


SETS: dict[str, Callable[[list[int]], Iterator[Series]]] = {
    "plant": read_plant,
    "nab": read_nab,
    "skab": read_skab,
    "asd": read_asd,
}


def sensors(X: FloatArray, time: FloatArray, good: BoolArray | None) -> FloatArray:
    """Sensors judged by each other over time."""
    random = np.random.RandomState(0)
    if good is None:
        return learn_series(X, time, None, random).judgement.scores
    model = learn_series(X[good], time[good], None, random).model
    return model.score(X, model.start(), time).scores


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
    """The paper's online algorithm: each row is scored, then learnt; (ii) goes on after the good period."""
    detector = OnlineNSNMF(similarity="binary", warmup=200, random_state=0)
    if good is None:
        return detector.fit(X).scores_
    scores = np.zeros(len(X))
    scores[~good] = detector.fit(X[good]).update_many(X[~good])
    return scores


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
    "sensors over time": sensors,
    "Detector": row_detector(lambda: Detector(random_state=0)),
    "Detector, mean of 6": trailing_detector,
    "leave-one-out ridge, mean of 6": ridge,
    "NSNMF(30)": row_detector(lambda: NSNMF(30, random_state=0)),
    "NSNMF(30) over time": over_time(lambda: NSNMF(30, random_state=0)),
    "Detector over time": over_time(lambda: Detector(random_state=0)),
    "OnlineNSNMF": online,
    "position (control)": position,
}


def main() -> None:
    """Print one line per method and set: mean average precision (i)/(ii) and CPU seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4], help="of the simulated plant")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.sets:
        series = list(SETS[name](given.seeds))
        for method in given.methods:
            begin, found = process_time(), []
            for each in series:
                labelled = ~each.good if name == "asd" else np.ones(len(each.faults), dtype=np.bool_)
                own = METHODS[method](each.X[labelled], each.time[labelled], None)
                later = METHODS[method](each.X, each.time, each.good)[~each.good]
                pairs = ((each.faults[labelled], own), (each.faults[~each.good], later))
                found.append([average_precision_score(*pair) for pair in pairs])
            mean, least = np.mean(found, axis=0), np.min(found, axis=0)
            cost = (process_time() - begin) / len(series)
            figures = f"{mean[0]:.3f}/{mean[1]:.3f}  lowest {least[0]:.3f}/{least[1]:.3f}  {cost:.1f} s"
            print(f"{name:6s} {method:32s} {figures}", flush=True)


if __name__ == "__main__":
    main()
