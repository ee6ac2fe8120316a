"""Compare our detectors with what people would pick instead, on labelled public series, and write docs/series.md.

    .venv/bin/python benchmarks/series.py [--quick | --most N] [--sets …] [--methods …] [--limit SECONDS] [--jobs N]
    .venv/bin/python benchmarks/series.py --write FOLDER                  # the series, to be scored by other programs
    .venv/bin/python benchmarks/series.py --scores NAME=FOLDER            # and these scores beside ours
    .venv/bin/python benchmarks/series.py --page-only                     # of what is there, nothing is run

Collections, good periods and regimes are those of benchmarks/plant.py: (i) fitted to the rows that hold the faults,
(ii) fitted to a good period, the other rows are scored. Results are kept in --folder, one folder for each collection: a
run goes on where the last one stopped. Methods that take minutes for a series come last. `--most N` takes the first N
series of each collection, `--quick` the first.

`--write` writes one CSV file for each series: its readings, `label`, and `train` (1 for rows to fit to; all 0 in (i)).
`--scores` takes a folder with files of the same names: one column without a header, a score for each row that is not a
training row, high is anomalous.

The Tennessee Eastman table is made each time: it takes some seconds.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plant
from numpy.typing import NDArray
from peers import ProcessControl, Ridge

from penstock import SensorDetector
from penstock._types import BoolArray, FloatArray
from penstock.bench import Dataset, Method, Study, read_results, run_study

PAGE = Path(__file__).resolve().parents[1] / "docs" / "series.md"
OURS = "SensorDetector"
CONTROL = "position (control)"
# PLANT is simulated by this project; the others are public.
SETS = {"plant": "PLANT", "nab": "NAB", "skab": "SKAB", "asd": "ASD", "smd": "SMD", "smap": "SMAP", "tep": "TEP"}
OF_PLANT = (
    OURS, "Detector", "Detector, mean of 6", "NSNMF(30)", "NSNMF(30) over time", "OnlineNSNMF", "ridge, mean of 6",
    "T2+SPE, mean of 6", "KNN, mean of 6", "IForest", "KMeansAD", "PCA of windows", CONTROL,
)  # fmt: skip
METHODS = {name: plant.METHODS[name] for name in OF_PLANT}
METHODS["TimeSeriesOD (PyOD)"] = Method("TimeSeriesOD (PyOD)", "pyod.models.ts_od.TimeSeriesOD")
# They take minutes for a series. MatrixProfile scores the rows that it was fitted to, and no others.
SLOW = {
    "MatrixProfile (PyOD)": Method("MatrixProfile (PyOD)", "pyod.models.ts_matrix_profile.MatrixProfile"),
    "KShape (PyOD)": Method("KShape (PyOD)", "pyod.models.ts_kshape.KShape"),
}
NO_LATER_ROWS = ("MatrixProfile (PyOD)",)
REGIMES = (
    (False, "(i) By itself", "Each method is fitted to the rows that hold the faults, and scores them."),
    (True, "(ii) Fitted to a good period", "Each method is fitted to a period without faults, and scores the others."),
)
DRAWS = 2000  # of the bootstrap
MARGIN = 0.005  # of average precision: what is closer is not called a loss

FAULTS = range(1, 22)
COMPONENTS, DYNAMIC_COMPONENTS, LAGS = 11, 29, 2
FALSE_ALARMS = 10  # rows of d00_te at or above the threshold: 1 % of 960
IN_A_ROW = 6  # rows above the threshold that make an alarm
MINUTES = 3  # from row to row
Score = Callable[[FloatArray], FloatArray]  # of the rows of a record, in order


# --- running ----------------------------------------------------------------------------------------------------------


def series_of(name: str, seeds: Sequence[int], most: int | None) -> dict[str, Dataset]:
    """Return the series of a collection in both regimes, by name; the first so many of them."""
    found = plant.read_set(name, tuple(seeds))
    names = list(dict.fromkeys(key.removesuffix(plant.LATER) for key in found))[:most]
    return {key: data for key, data in found.items() if key.removesuffix(plant.LATER) in names}


def run_collections(sets: Sequence[str], methods: Sequence[Method], given: argparse.Namespace) -> None:
    """Run what is missing of these methods, collection by collection."""
    for name in sets:
        series = series_of(name, given.seeds, given.most)
        placed = []
        for method in methods:
            only = method.datasets or tuple(series)
            if method.name in NO_LATER_ROWS:
                only = tuple(each for each in only if not each.endswith(plant.LATER))
            if mine := tuple(each for each in only if each in series):
                placed.append(Method(method.name, method.detector, method.parameters, datasets=mine))
        if not placed:
            continue
        study = Study(SETS[name], tuple(series), tuple(placed), seeds=(0,), time_limit=given.limit, options="--sets")
        print(f"{SETS[name]}: {len(placed)} methods, {len(series)} series", flush=True)
        run_study(study, given.folder / name, load=series.__getitem__, jobs=given.jobs, retry=given.retry)


def file_name(series: str) -> str:
    """Return the name of the file of a series.

    >>> file_name("skab other/1 (ii)")
    'skab-other-1-ii.csv'
    """
    return re.sub(r"[^\w.]+", "-", series).strip("-") + ".csv"


def write_series(sets: Sequence[str], seeds: Sequence[int], folder: Path, most: int | None) -> None:
    """Write the series as files, to be scored by other programs."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in sets:
        for series, data in series_of(name, seeds, most).items():
            columns = data.names or tuple(f"x{j}" for j in range(data.p))
            table = pd.DataFrame(data.X, columns=list(columns))
            table["label"] = data.y
            table["train"] = 0 if data.train is None else data.train.astype(int)
            table.to_csv(folder / file_name(series), index=False)
            print(folder / file_name(series), flush=True)


def stored_methods(given: Sequence[str], sets: Sequence[str], seeds: Sequence[int], most: int | None) -> list[Method]:
    """Return methods whose scores lie in folders, given as NAME=FOLDER: one for each series with a file."""
    found = []
    for text in given:
        name, given_folder, folder = text.partition("=")
        if not given_folder or not Path(folder).is_dir():
            raise ValueError(f"--scores {text}: give NAME=FOLDER, with a folder that exists.")
        files = {series: Path(folder) / file_name(series) for each in sets for series in series_of(each, seeds, most)}
        there = {series: file for series, file in files.items() if file.is_file()}
        if not there:
            raise ValueError(f"--scores {text}: no file of that folder has the name of a series; --write shows them.")
        for series, file in there.items():
            # The digest is a part of the key of a result, so that other scores are measured anew.
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            parameters = {"file": str(file.resolve()), "digest": digest}
            found.append(Method(name, "peers.StoredScores", parameters, datasets=(series,)))
    return found


# --- tables -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Measured:
    """The results of one regime.

    Attributes
    ----------
    rows : DataFrame
        One row per method and series that has a result, with `collection`.
    planned : Mapping
        Series of each collection.
    """

    rows: pd.DataFrame
    planned: Mapping[str, int]

    def by_series(self, collection: str, measure: str) -> pd.DataFrame:
        """Return a measure, series × methods, of the methods that have a result for all series."""
        some = self.rows[self.rows["collection"] == collection]
        table = some.pivot_table(index="dataset", columns="method", values=measure, aggfunc="median")
        complete = table.notna().sum() == self.planned[collection]
        return table.loc[:, complete]


def read_all(folder: Path, sets: Iterable[str]) -> pd.DataFrame:
    """Read the results of all collections that have some."""
    found = []
    for name in sets:
        if (folder / name).is_dir():
            rows = read_results(folder / name).rows
            found.append(rows.assign(collection=SETS[name]))
    if not found:
        raise SystemExit(f"There are no results in {folder}: run without --page-only first.")
    return pd.concat(found, ignore_index=True)


def of_regime(rows: pd.DataFrame, *, later: bool) -> Measured:
    """Return the results of one regime; the series that count are those that our detector was run on."""
    some = rows[rows["dataset"].str.endswith(plant.LATER) == later]
    done = some[some["status"] == "ok"]
    planned = done[done["method"] == OURS].groupby("collection")["dataset"].nunique()
    done = done[done["collection"].isin(planned.index)]
    order = [title for title in SETS.values() if title in planned.index]
    return Measured(done, {title: int(planned[title]) for title in order})


def collection_means(found: Measured, measure: str) -> pd.DataFrame:
    """Return the mean over series of a measure, methods × collections; NaN where some series has no result."""
    columns = {title: found.by_series(title, measure).mean() for title in found.planned}
    return pd.DataFrame(columns)


def share_found(found: Measured, within: str) -> pd.Series[float]:
    """Return the share of the faults among the first events, mean over collections; NaN where one is missing."""
    shares = {}
    for title in found.planned:
        counts, faults = found.by_series(title, within), found.by_series(title, "faults")
        shares[title] = counts.sum() / faults.sum()
    return pd.DataFrame(shares).mean(axis=1, skipna=False)


def draw_means(found: Measured, measure: str) -> pd.DataFrame:
    """Draw series with replacement in each collection; return the mean over collections, draws × methods."""
    rng = np.random.default_rng(0)
    total: pd.DataFrame | None = None
    for title in found.planned:
        table = found.by_series(title, measure)
        values = table.to_numpy()
        drawn = rng.integers(0, len(values), size=(DRAWS, len(values)))
        means = pd.DataFrame(values[drawn].mean(axis=1), columns=table.columns)
        total = means if total is None else total + means
    assert total is not None
    return total / len(found.planned)


def short(value: float) -> str:
    """Return a share with three digits and no zero before the point."""
    if not np.isfinite(value):
        return "–"
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3f}"


def span(draws: NDArray[Any]) -> str:
    """Return the 95 % interval of draws; none where there is one series of each collection."""
    low, high = np.quantile(draws, (0.025, 0.975))
    if high - low < 1e-9:
        return "–"
    return f"[{short(low)}, {short(high)}]"


def table_of(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main_table(found: Measured) -> str:
    """Return AP by collection, means over the collections with intervals, and cost; the best mean first."""
    precision = collection_means(found, "average_precision")
    mean = precision.mean(axis=1, skipna=False)
    volume = collection_means(found, "vus_pr").mean(axis=1, skipna=False)
    in_n, in_2n = share_found(found, "in_n"), share_found(found, "in_2n")
    draws = draw_means(found, "average_precision")
    seconds = found.rows.groupby("method")["cpu_seconds"].sum()
    lines = []
    for method in mean.sort_values(ascending=False, na_position="last", kind="stable").index:
        name = f"**{method}**" if method == OURS else str(method)
        whole = bool(np.isfinite(mean[method]))
        behind = draws[OURS] - draws[method] if whole else None
        lines.append([
            name,
            *(short(value) for value in precision.loc[method]),
            short(mean[method]),
            span(draws[method].to_numpy()) if whole else "–",
            span(behind.to_numpy()) if behind is not None and method != OURS else "–",
            short(volume.get(method, np.nan)),
            short(in_n.get(method, np.nan)),
            short(in_2n.get(method, np.nan)),
            f"{seconds[method]:,.0f}" if whole else "–",
        ])  # fmt: skip
    header = ["AP", *found.planned, "**mean**", "95 %", "ours minus it", "VUS-PR", "first N", "first 2N", "CPU s"]
    return table_of(header, lines)


def losses(found: Measured) -> list[str]:
    """Say in which collections another method is better than ours, and how sure that is."""
    rng = np.random.default_rng(0)
    lines = []
    for title in found.planned:
        table = found.by_series(title, "average_precision")
        counts, faults = found.by_series(title, "in_2n").sum(), found.by_series(title, "faults").sum()
        lead = table.mean().sub(table[OURS].mean()).drop([OURS, CONTROL], errors="ignore")
        said = []
        for method, by in lead[lead > MARGIN].sort_values(ascending=False).items():
            away = (table[method] - table[OURS]).to_numpy()
            drawn = away[rng.integers(0, len(away), size=(DRAWS, len(away)))].mean(axis=1)
            sure = f" {span(drawn)}" if len(away) > 1 else ", one series"
            said.append(f"{method} by {short(float(by))}{sure}")
        more = counts[counts > counts[OURS]].drop([OURS, CONTROL], errors="ignore").sort_values(ascending=False)
        events = [f"{method} {n:.0f}" for method, n in more.items()]
        if said:
            lines.append(f"* **{title}**, AP: {first_few(said)}.")
        if events:
            of = f"{counts[OURS]:.0f} of {faults[OURS]:.0f}"
            lines.append(f"* **{title}**, faults among the first 2N events: ours {of}; {first_few(events)}.")
    return lines or ["* Nowhere in this run."]


def first_few(texts: Sequence[str], most: int = 3) -> str:
    """Join texts, and count those after the first few.

    >>> first_few(["a", "b", "c", "d", "e"])
    'a; b; c; and 2 more methods'
    """
    left = len(texts) - most
    shown = list(texts[:most])
    if left > 0:
        shown.append(f"and {left} more method{'s' if left > 1 else ''}")
    return "; ".join(shown)


def without_result(rows: pd.DataFrame) -> list[str]:
    """Say which methods have no result on some series, and why."""
    failed = rows[rows["status"] != "ok"]
    lines = []
    for (method, collection), some in failed.groupby(["method", "collection"], sort=False):
        reasons = some["why"].where(some["why"] != "", some["status"]).str.slice(0, 90)
        why = "; ".join(f"{reason} ({count})" for reason, count in reasons.value_counts().items())
        lines.append(f"* {method}, {collection}: {len(some)} of {_planned(rows, method, collection)}: {why}.")
    return lines


def _planned(rows: pd.DataFrame, method: object, collection: object) -> int:
    return int(((rows["method"] == method) & (rows["collection"] == collection)).sum())


# --- the Tennessee Eastman process ------------------------------------------------------------------------------------


def subspace_scores(good: FloatArray, components: int, lags: int) -> tuple[Score, Score]:
    """Return T² and SPE of a PCA of rows, each with the rows before it; a record's first rows have no score: 0."""
    normal = with_lags(good, lags)
    centre, spread = normal.mean(axis=0), normal.std(axis=0, ddof=1)
    _, sizes, directions = np.linalg.svd((normal - centre) / spread, full_matrices=False)
    variances = sizes[:components] ** 2 / (len(normal) - 1)
    axes = directions[:components].T

    def inside(X: FloatArray) -> FloatArray:
        places = (with_lags(X, lags) - centre) / spread @ axes
        return np.append(np.zeros(lags), (places**2 / variances).sum(axis=1))

    def outside(X: FloatArray) -> FloatArray:
        Z = (with_lags(X, lags) - centre) / spread
        return np.append(np.zeros(lags), ((Z - Z @ axes @ axes.T) ** 2).sum(axis=1))

    return inside, outside


def with_lags(X: FloatArray, lags: int) -> FloatArray:
    """Return rows, each followed by the rows before it.

    >>> with_lags(np.array([[1.0], [2.0], [3.0]]), 1).tolist()
    [[2.0, 1.0], [3.0, 2.0]]
    """
    return np.hstack([X[lags - lag : len(X) - lag] for lag in range(lags + 1)])


def alarm_delay(above: BoolArray) -> float:
    """Return the minutes until the first of six rows in a row above the threshold; NaN if there are none.

    >>> alarm_delay(np.array([False, True, True, True, True, True, True]))
    3.0
    """
    length = 0
    for row, is_above in enumerate(above.tolist()):
        length = length + 1 if is_above else 0
        if length == IN_A_ROW:
            return float((row - IN_A_ROW + 1) * MINUTES)
    return float("nan")


def describe_process() -> str:
    """Return the section on the Tennessee Eastman process: detection, delay and first variable of each fault."""
    good, runs, names = plant.tep_records()
    t2, spe = subspace_scores(good, COMPONENTS, 0)
    dynamic_t2, dynamic_spe = subspace_scores(good, DYNAMIC_COMPONENTS, LAGS)
    scorers: dict[str, Score] = {
        OURS: SensorDetector(random_state=0).fit(good).score_series,
        "ridge, mean of 6": Ridge().fit(good).anomaly_score,
        "T2+SPE, mean of 6": ProcessControl().fit(good).anomaly_score,
        "T²": t2,
        "SPE": spe,
        "DPCA T²": dynamic_t2,
        "DPCA SPE": dynamic_spe,
    }
    normal = runs["d00_te"][0]
    cuts = {name: np.sort(score(normal))[-FALSE_ALARMS] for name, score in scorers.items()}
    shares: dict[str, list[float]] = {name: [] for name in scorers}
    lines = []
    for fault in FAULTS:
        X, y = runs[f"d{fault:02d}_te"]
        above = {name: (score(X) > cuts[name])[y == 1] for name, score in scorers.items()}
        for name, found in above.items():
            shares[name].append(float(found.mean()))
        delays = [alarm_delay(above[name]) for name in (OURS, "T²", "SPE")]
        lines.append([
            str(fault),
            *(short(float(found.mean())) for found in above.values()),
            " / ".join("–" if np.isnan(delay) else f"{delay:.0f}" for delay in delays),
            first_variable(X, y, good, names),
        ])  # fmt: skip
    lines.append(["**mean**", *(f"**{short(float(np.mean(each)))}**" for each in shares.values()), "", ""])
    header = [
        "fault", "`SensorDetector`", "ridge, mean of 6", "T² + SPE, mean of 6", "T²", "SPE", "DPCA T²", "DPCA SPE",
        "delay in minutes: ours / T² / SPE", "first variable",
    ]  # fmt: skip
    table = table_of(header, lines)
    return PROCESS.format(table=table, components=COMPONENTS, dynamic=DYNAMIC_COMPONENTS, lags=LAGS)


def first_variable(X: FloatArray, y: NDArray[np.int64], good: FloatArray, names: Sequence[str]) -> str:
    """Return the sensor that is named first in the highest incident of a fault."""
    found = plant._incidents(X, np.arange(len(X), dtype=float), good, list(names))
    named = plant._named(found, np.flatnonzero(y))
    return "–" if named is None else named["as shipped"][0]


# --- the page ---------------------------------------------------------------------------------------------------------

HEAD = """# Side by side on public series

This page is written by `python benchmarks/series.py` (`make bench-series`). It compares Penstock with what people
would pick instead, on labelled series, and says where we lose.

**How to read it.** AP is the average precision over rows. 1 is perfect; a random order has the share of faulty
rows. VUS-PR is AP with labels that fade out at both ends. *First N* is the share of the faults that are found among
the first N events of a method, where N is the number of faults. *First 2N* allows as many false events. All are
means over the series of a collection, then over the collections.

*95 %* is the interval of the mean AP when series are drawn with replacement in each collection. *Ours minus it* is
the interval of the difference to `SensorDetector`: where it does not hold 0, another choice of series would hardly
turn it. NAB has one series, so that it adds nothing to an interval. The row number is a control, as it looks at no
reading. Where it is high, faults can be told by their place.

| collection | what it is |
| --- | --- |
| PLANT | a hydropower plant simulated by this project, 13 known faults each |
| NAB | one machine temperature with four failures (Lavin and Ahmad, 2015) |
| SKAB | a water circuit in a laboratory, 34 runs with a fault (Katser and Kozitsin, 2020) |
| ASD | twelve servers of a company (Li et al., KDD 2021) |
| SMD | four of the 28 servers of another company (Su et al., KDD 2019) |
| SMAP | spacecraft telemetry, 54 channels (Hundman et al., KDD 2018); its labels are disputed |
| TEP | the Tennessee Eastman process, 21 faults (Downs and Vogel, 1993); no (i), as most rows are faulty |

"Mean of 6" is the mean of the last six scores. All methods have the same rows and the settings that they come with;
none was tuned. **No collection is unseen by us**: `SensorDetector` was designed on PLANT, SKAB, ASD and SMD, and
the others were looked at meanwhile ([what was chosen](plant.md#how-it-compares)). The peers had no such help.
"""

PEERS = """## What is compared

PCA T² + SPE, leave-one-out ridge, KNN, KMeansAD and PCA of windows are in `benchmarks/peers.py`; IForest is
scikit-learn's. `TimeSeriesOD` (an isolation forest of windows of 50 rows), `MatrixProfile` and `KShape` are PyOD's
with their defaults. `MatrixProfile` cannot score rows that it was not fitted to, and has no (ii).

aeon 1.6 cannot be installed beside our pinned versions: it needs numba below 0.64 and pandas below 3.1. Deep
methods need PyTorch. Score the series elsewhere, and give the folder:

<!-- not run: needs the public series and another program -->
```sh
python benchmarks/series.py --write series            # one CSV file for each series
python benchmarks/series.py --scores mine=my-scores   # one column of scores in each file, named alike
```

**VUS-PR** is computed as TSB-AD does (Liu and Paparrizos, NeurIPS 2024). `penstock.bench.vus_pr` was compared with
the function of the released package TSB-AD 1.5 on 60 made-up series: the largest difference was 4e-16. The longest
buffer is the period of the first column, or 125 rows where it has none; half of it lies on each side. The older
code of the measure (Paparrizos et al., VLDB 2022) took twice that. TSB-AD cuts and chooses its files in another
way, so that its published figures are not put beside these.

**Certainty on healthy records** is measured by `benchmarks/verdicts.py`: [the
table](plant.md#records-without-faults).
"""

PROCESS = """## The Tennessee Eastman process

All methods are fitted to the normal record d00. The threshold of each is the tenth highest value of the normal test
record d00_te: 1 % false alarms. Shown is the share of the 800 faulty rows above it. The delay is the time to the
first of six rows in a row above the threshold. The first variable is the one that `SensorDetector` names first.

T² and SPE are the classic statistics of a PCA with {components} components. DPCA is the same for each row with the
{lags} before it, with {dynamic} components. All figures were computed by this script. Published ones are not shown, as
they could not be checked against their sources.

{table}

Faults 3, 9 and 15 are hardly visible to any method. T² and SPE look at one row, those of DPCA at three.
`SensorDetector` and the methods with a mean of 6 look at more rows: a part of their lead is that.
"""


def write_page(folder: Path, sets: Sequence[str], page: Path) -> None:
    """Write the page of the results that there are."""
    rows = read_all(folder, sets)
    parts = [HEAD]
    for later, title, meaning in REGIMES:
        found = of_regime(rows, later=later)
        if not found.planned:
            continue
        parts.append(f"## {title}\n\n{meaning}\n\n{main_table(found)}\n")
        parts.append(f"**Where we lose** {title.partition(' ')[0]}\n\n" + "\n".join(losses(found)) + "\n")
    parts += [describe_process(), PEERS, what_was_run(rows)]
    page.write_text("\n".join(parts), encoding="utf-8")
    print(f"Written: {page}", flush=True)


def what_was_run(rows: pd.DataFrame) -> str:
    """Say what was run, with what, and what has no result."""
    counts = [f"{title} {_series_done(rows, title)}" for title in SETS.values()]
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "scikit-learn", "numba", "pyod"))
    text = [
        "## What was run\n",
        f"Series with a result of `SensorDetector`: {', '.join(counts)}. "
        f"Python {platform.python_version()}, {versions}. "
        f"CPU time is of one thread, on a machine with {os.cpu_count()} cores that did other work too.",
    ]
    if missing := without_result(rows):
        text.append("\nWithout a result:\n\n" + "\n".join(missing))
    text.append("\nA mean over collections is shown where a method has a result for all series that ours has.\n")
    return "\n".join(text)


def _series_done(rows: pd.DataFrame, title: str) -> int:
    done = rows[(rows["collection"] == title) & (rows["method"] == OURS) & (rows["status"] == "ok")]
    return int(done["dataset"].str.removesuffix(plant.LATER).nunique())


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of the simulated plant")
    parser.add_argument("--methods", nargs="+", default=[*METHODS, *SLOW], choices=[*METHODS, *SLOW])
    parser.add_argument("--most", type=int, metavar="N", help="the first N series of each collection")
    parser.add_argument("--quick", action="store_const", const=1, dest="most", help="the same as --most 1")
    parser.add_argument("--folder", type=Path, default=Path("bench-series"), help="where results are kept")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for a method on a series")
    parser.add_argument("--retry", action="store_true", help="run again what failed")
    parser.add_argument("--scores", nargs="+", default=[], metavar="NAME=FOLDER", help="scores computed elsewhere")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="instead, write the series as files")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    parser.add_argument("--page-only", action="store_true", help="instead, write the page of what is there")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.write:
        write_series(given.sets, given.seeds, given.write, given.most)
        return
    if not given.page_only:
        try:
            stored = stored_methods(given.scores, given.sets, given.seeds, given.most)
        except ValueError as error:
            parser.error(str(error))
        quick_ones = [method for name, method in METHODS.items() if name in given.methods]
        slow_ones = [method for name, method in SLOW.items() if name in given.methods]
        for methods in (quick_ones, stored, slow_ones):
            run_collections(given.sets, methods, given)
    write_page(given.folder, list(SETS), given.page)


if __name__ == "__main__":
    main()
