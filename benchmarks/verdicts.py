"""Print how often verdicts say that rows stand out: of normal tables, of tables with planted outliers, of real ones.

    .venv/bin/python benchmarks/verdicts.py [--parts normal hard inliers planted real series incidents labelled faults]

`Detector(random_state=0)`, fitted again without what stands out, then `expected_by_chance`. "nothing" is the share of
tables in which nothing stands out: nominally 90 % of normal ones, 85–95 % is the bar for `normal` and `inliers`. `hard`
are normal tables where the verdict is known to fail. Of the twenty data sets (PENSTOCK_DATA), the rows without a label
are drawn at random for `inliers`; `real` are the sets as they are, 4,000 rows at most.

`series` are records without faults in order of time, scored by `SensorDetector`: by itself (i), and the second half by
the first (ii; of TEP the record d00_te by d00). They are made up, simulated plants with their look-alikes (rare but
legitimate states), and the training parts of ASD, SMD and SMAP of at least 400 rows, whole and cut into pieces of 2,000
to 5,000 rows. "rated" is the share of which certainty can be said, "quiet" the share of these in which no episode is
expected at most 0.1 times by chance, nominally 90 %; then the episodes that are there for one that is expected at most
0.1, 0.3, 1 and 3 times, stretches closer than a block of the rate taken as one. Expected are so many on average.

`incidents` are the same plants, ASD, SMD and TEP records by `penstock.detect` (i), `fit_model` and `score` (ii): near-
certain incidents that are said to be faults, those that are unusual operation, and the share of records without faults.
Plants have their look-alikes by the seed (`--vary`), and the first 40 % are the good period.

`labelled` are the series of benchmarks/plant.py with faults: how many near-certain stretches there are, how many of
them touch a fault, and how many faults are touched. With `--abroad` both are of the records of benchmarks/abroad.py,
on which nothing was chosen.

`faults` are simulated plants with their faults, scored by themselves (i) and by the first 40 % without faults (ii): how
many of the 13 faults are called near certain (expected at most 0.1 times by chance), and in how many other events that
is said: of look-alikes, and of nothing at all; then how many of the 100 highest rows lie in faults and in look-alikes.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from plant import LATER, SETS, abroad_records, healthy_records, read_set, tep_records
from scipy.signal import lfilter

import penstock
from penstock import Detector, SensorDetector
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.bench import Dataset
from penstock.certainty import SOME, Chance, expected_by_chance
from penstock.detection import Findings
from penstock.detectors import scores_without_the_highest
from penstock.explain import NEW_STATE, group_events
from penstock.simulate import SimulatedPlant, simulate_hydropower

Generator = np.random.Generator
DATA = Path(os.environ.get("PENSTOCK_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "dami"
BAR = (0.85, 0.95)
LEVELS = (0.1, 0.3, 1.0, 3.0)  # expected by chance
COLLECTIONS = ("plant", "varied", "nab", "skab", "asd", "tep", "smd", "smap")
_SHORTEST, _PIECES = 400, (2000, 5000)  # rows


@dataclass(frozen=True)
class Case:
    """A table (n, p) by the name of its line, and its anomalies (n,)."""

    line: str
    X: FloatArray
    anomalies: BoolArray


def correlated(n: int, p: int, rng: Generator) -> FloatArray:
    factors = max(1, p // 3)
    mixed: FloatArray = rng.normal(size=(n, factors)) @ rng.normal(size=(factors, p)) + 0.3 * rng.normal(size=(n, p))
    return mixed


def modes(*shares: float, spreads: tuple[float, ...] = (1.0, 1.0)) -> Callable[[int, int, Generator], FloatArray]:
    """Return how to draw from normal distributions around centres that are drawn, too."""

    def draw(n: int, p: int, rng: Generator) -> FloatArray:
        centers = 4.0 * rng.normal(size=(len(shares), p))
        mode = rng.choice(len(shares), size=n, p=shares)
        rows: FloatArray = centers[mode] + np.array(spreads)[mode, None] * rng.normal(size=(n, p))
        return rows

    return draw


def counts_and_reals(n: int, p: int, rng: Generator) -> FloatArray:
    return np.column_stack([rng.poisson(3.0, size=(n, p // 2)), rng.normal(size=(n, p - p // 2))])


def spiral(n: int, p: int, rng: Generator) -> FloatArray:
    angle = rng.uniform(0.0, 3 * np.pi, n)
    rows: FloatArray = np.column_stack([angle * np.cos(angle), angle * np.sin(angle)]) @ rng.normal(size=(2, p))
    return rows + 0.3 * rng.normal(size=(n, p))


NORMAL: dict[str, Callable[[int, int, Generator], FloatArray]] = {
    "normal": lambda n, p, rng: rng.normal(size=(n, p)),
    "Student t, 5 degrees of freedom": lambda n, p, rng: rng.standard_t(5, size=(n, p)),
    "exponential": lambda n, p, rng: rng.exponential(size=(n, p)),
    "uniform": lambda n, p, rng: rng.uniform(size=(n, p)),
    "log-normal": lambda n, p, rng: rng.lognormal(size=(n, p)),
    "correlated": correlated,
    "modes of 50 and 50 %": modes(0.5, 0.5),
    "modes of 60, 25 and 15 %, unequal spread": modes(0.6, 0.25, 0.15, spreads=(1.0, 0.5, 2.0)),
    "counts and reals": counts_and_reals,
}
HARD: dict[str, Callable[[int, int, Generator], FloatArray]] = {
    "a mode of 3 %": modes(0.97, 0.03),
    "a mode of 8 %": modes(0.92, 0.08),
    "along a spiral": spiral,
    "Student t, 3 degrees of freedom, mixed": lambda n, p, rng: (
        rng.standard_t(3, size=(n, p)) @ rng.normal(size=(p, p))
    ),
}


def drawn(kinds: dict[str, Callable[[int, int, Generator], FloatArray]]) -> Callable[[int], Iterator[Case]]:
    """Return how to draw normal tables of several sizes."""

    def cases(seeds: int) -> Iterator[Case]:
        for place, (kind, draw) in enumerate(kinds.items()):
            for n in (80, 300, 1500):
                for p in (2, 6, 20):
                    for seed in range(seeds):
                        rng = np.random.default_rng([place, n, p, seed])
                        yield Case(kind, draw(n, p, rng), np.zeros(n, dtype=np.bool_))

    return cases


def read_sets() -> Iterator[tuple[str, FloatArray, BoolArray]]:
    """Return the twenty sets: name, rows and which are labelled."""
    if not DATA.is_dir():
        sys.exit(f"There is no folder {DATA}: set PENSTOCK_DATA, or choose --parts normal hard planted.")
    known = pd.read_csv(DATA / "MANIFEST.csv")
    for name in sorted(known.loc[known["role"] == "primary", "name"]):
        table = pd.read_csv(DATA / f"{name}.csv.gz").to_numpy(dtype=np.float64)
        yield name, np.ascontiguousarray(table[:, :-1]), table[:, -1] > 0


def inliers(seeds: int) -> Iterator[Case]:
    """Draw rows without a label, at most 80 % of them."""
    for name, X, anomalies in read_sets():
        usual = np.flatnonzero(~anomalies)
        sizes = [n for n in (80, 300, 1500) if n <= 0.8 * len(usual)] or [int(0.9 * len(usual))]
        for n in sizes:
            for seed in range(seeds):
                rows = np.random.default_rng([n, seed]).choice(usual, n, replace=False)
                yield Case(name, X[rows], np.zeros(n, dtype=np.bool_))


def planted(seeds: int) -> Iterator[Case]:
    """Make some rows of normal tables anomalous, in units of standard deviations."""
    for how in ("far, each its own way", "far, as a group", "one reading at 8", "readings of different rows"):
        for share in (0.0, 0.01, 0.05):
            for place, kind in enumerate(
                ("normal", "exponential", "correlated", "modes of 60, 25 and 15 %, unequal spread")
            ):
                for n, p in ((200, 4), (1000, 4), (200, 15), (1000, 15)):
                    for seed in range(seeds if how != "readings of different rows" or kind == "correlated" else 0):
                        rng = np.random.default_rng([place, n, p, seed])
                        X = NORMAL[kind](n, p, rng)
                        rows = rng.choice(n, max(1, round(share * n)), replace=False)
                        X[rows] = _disturbed(how, X, rows, rng)
                        count = "1 row" if share == 0.0 else f"{share:.0%}"
                        yield Case(f"{how}, {count}", X, np.isin(np.arange(n), rows))


def _disturbed(how: str, X: FloatArray, rows: NDArray[np.intp], rng: Generator) -> FloatArray:
    k, p = len(rows), X.shape[1]
    mean, spread, out = X.mean(axis=0), X.std(axis=0), X[rows].copy()
    away = rng.normal(size=(k, p))
    if how == "far, each its own way":
        out += 3.5 * np.sqrt(p) * spread * away / np.linalg.norm(away, axis=1, keepdims=True)
    elif how == "far, as a group":
        out = mean + spread * (3.5 * np.sqrt(p) * away[0] / np.linalg.norm(away[0]) + 0.1 * rng.normal(size=(k, p)))
    elif how == "one reading at 8":
        column = rng.integers(p, size=k)
        out[np.arange(k), column] = (mean + 8.0 * spread)[column]
    else:
        out = np.column_stack([rng.permutation(column)[:k] for column in X.T])
    return out


def real(_: int) -> Iterator[Case]:
    """Take the sets as they are, or 4,000 of their rows."""
    for name, X, anomalies in read_sets():
        rows = np.sort(np.random.default_rng(0).permutation(len(X))[:4000])
        yield Case(name, X[rows], anomalies[rows])


def slow(n: int, p: int, correlation: float, rng: Generator) -> FloatArray:
    """Sensors that follow three slow causes (one if p = 1), with noise of their own."""
    steps = rng.normal(size=(n, min(3, p))) * np.sqrt(1 - correlation**2)
    causes = lfilter([1.0], [1.0, -correlation], steps, axis=0)
    mixed: FloatArray = causes @ rng.normal(size=(min(3, p), p)) + 0.3 * rng.normal(size=(n, p)) * (p > 1)
    return mixed


@dataclass(frozen=True)
class HealthySeries:
    """A record without faults: where it comes from, readings, minutes if known, rows of the good period."""

    collection: str
    X: FloatArray
    n_good: int
    minutes: FloatArray | None = None


def healthy_series(seeds: int) -> Iterator[HealthySeries]:
    """Yield records without faults of several origins."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        for n, p, correlation in ((3000, 6, 0.0), (3000, 6, 0.9), (6000, 6, 0.99), (6000, 20, 0.99), (3000, 1, 0.9)):
            yield HealthySeries("made up", slow(n, p, correlation, rng), n // 2)
        plant = simulate_hydropower(seed, faults=False).table
        minutes = ((plant.index - plant.index[0]) / pd.Timedelta(minutes=1)).to_numpy(dtype=float)
        yield HealthySeries("plants", plant.to_numpy(), len(plant) // 2, minutes)
    good, runs, _ = tep_records()
    yield HealthySeries("TEP", np.vstack([good, runs["d00_te"][0]]), len(good))
    rng = np.random.default_rng(0)
    for kind in ("asd", "smd", "smap"):
        for data in SETS[kind]([]):
            X = data.X if data.train is None else data.X[data.train]
            if len(X) < _SHORTEST or not np.ptp(X[: len(X) // 2], axis=0).any():
                continue  # too short, or it never moves
            yield HealthySeries(kind.upper(), X, len(X) // 2)
            edges = np.append(0, np.cumsum(rng.integers(_PIECES[0], _PIECES[1] + 1, len(X) // _PIECES[0])))
            for first, last in pairwise(edges[edges <= len(X)].tolist() if kind != "smap" else [0]):
                yield HealthySeries(f"{kind.upper()}, pieces", X[first:last], (last - first) // 2)


def healthy_abroad(_: int) -> Iterator[HealthySeries]:
    """Yield records without known faults that benchmarks/abroad.py found or made."""
    for kind in ("healthy", "simulated"):
        for data in abroad_records(kind):
            if not data.y.any():
                yield HealthySeries("measured" if kind == "healthy" else kind, data.X, data.n // 2)


@dataclass(frozen=True)
class RatedRows:
    """What is said of a record: expected by chance for each row (n,), and the length of a block, 0 if not rated."""

    expected: FloatArray
    block: int

    def stretches(self, level: float) -> list[IndexArray]:
        """Return the rows expected at most so often, in stretches at least a block apart."""
        rows = np.flatnonzero(self.expected <= level)
        return np.split(rows, np.flatnonzero(np.diff(rows) > self.block) + 1) if len(rows) else []


def rate_itself(X: FloatArray, minutes: FloatArray | None) -> RatedRows:
    """Return what is said of a record by itself."""
    detector = SensorDetector(random_state=0).fit(X, time=minutes)
    rate = detector.rate_
    return RatedRows(detector.expected_by_chance(detector.scores_, later=False), 0 if rate is None else rate.block)


def rate_later(X: FloatArray, good: BoolArray, minutes: FloatArray | None) -> RatedRows:
    """Return what is said of the rows that are not of the good period, by a model of it."""
    first, second = (None, None) if minutes is None else (minutes[good], minutes[~good])
    detector = SensorDetector(random_state=0).fit(X[good], time=first)
    rate, scores = detector.new_row_rate_, detector.score_series(X[~good], time=second)
    return RatedRows(detector.expected_by_chance(scores, len(scores)), 0 if rate is None else rate.block)


def print_series(seeds: int, records: Callable[[int], Iterator[HealthySeries]] = healthy_series) -> None:
    """Print how often nothing stands out in records without faults, and how many episodes there are."""
    found: dict[str, dict[str, list[RatedRows]]] = {"(i)": {}, "(ii)": {}}
    for record in records(seeds):
        good = np.arange(len(record.X)) < record.n_good
        itself = [rate_itself(record.X, record.minutes)]
        if record.collection == "TEP":  # two runs, each by itself
            itself = [rate_itself(record.X[rows], None) for rows in (good, ~good)]
        found["(i)"].setdefault(record.collection, []).extend(itself)
        found["(ii)"].setdefault(record.collection, []).append(rate_later(record.X, good, record.minutes))
    levels = "".join(f"{f'at {level}':>8s}" for level in LEVELS)
    for regime, by_collection in found.items():
        print(f"{regime:14s} {'records':>8s} {'rated':>7s} {'quiet':>7s} {levels}")
        lines = []
        for collection, rated_rows in by_collection.items():
            rated = [one for one in rated_rows if one.block]
            counts = np.array([[len(one.stretches(level)) for level in LEVELS] for one in rated])
            quiet = float((counts[:, 0] == 0).mean())
            lines.append((len(rated_rows), len(rated) / len(rated_rows), quiet, *counts.mean(axis=0)))
            _print_rates(collection, lines[-1])
        weights = np.array([line[0] for line in lines])
        table = np.array(lines)[:, 1:]
        _print_rates("all records", (weights.sum(), *(weights @ table / weights.sum())))
        _print_rates("mean of these", (len(lines), *table.mean(axis=0)))


def _print_rates(name: str, line: Sequence[float]) -> None:
    n, rated, quiet, *counts = line
    print(f"{name:14s} {n:8.0f} {rated:7.0%} {quiet:7.0%} " + "".join(f"{count:8.2f}" for count in counts), flush=True)


def print_incidents(seeds: int) -> None:
    """Print how many near-certain faults, and how much unusual operation, the whole way to incidents finds."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for name, table, n_good in _healthy_tables(seeds):
        later = penstock.score(penstock.fit_model(table.iloc[:n_good]), table.iloc[n_good:])
        for regime, findings in (("(i)", penstock.detect(table)), ("(ii)", later)):
            found.setdefault((regime, name), []).append(_count_kinds(findings))
    print(f"{'':14s} {'records':>8s} {'no fault':>9s} {'faults':>7s} {'unusual operation':>18s}   near certain")
    for (regime, name), counts in sorted(found.items()):
        faults, states = np.mean(counts, axis=0)
        quiet = np.mean([not each[0] for each in counts])
        print(f"{regime:5s}{name:9s} {len(counts):8d} {quiet:9.0%} {faults:7.2f} {states:18.2f}", flush=True)


def _healthy_tables(seeds: int) -> Iterator[tuple[str, pd.DataFrame, int]]:
    """Yield records without faults as tables with a time, and how many of their rows are the good period."""
    for seed in range(seeds):
        table = simulate_hydropower(seed, vary=True, faults=False).table.reset_index()
        yield "plants", table, int(0.4 * len(table))
    for kind, X, n_good in healthy_records():
        table = pd.DataFrame(X).add_prefix("x")
        table.insert(0, "time", pd.date_range("2024-01-01", periods=len(X), freq="5min"))
        yield kind.upper(), table, n_good


def _count_kinds(findings: Findings) -> tuple[int, int]:
    """Count near-certain incidents that are said to be faults, and those that are unusual operation."""
    certain = findings.incident_table[findings.incident_table["expected_by_chance"] <= SOME]
    states = int((certain["kind"] == NEW_STATE).sum())
    return len(certain) - states, states


def print_labelled(seeds: int, collections: Sequence[str] = COLLECTIONS) -> None:
    """Print near-certain stretches of series with faults, and the faults that they touch."""
    for later, regime in ((False, "(i)"), (True, "(ii)")):
        print(f"{regime:14s} {'near certain':>12s} {'touch a fault':>14s} {'faults':>7s} {'touched':>8s}")
        totals = np.zeros(4, dtype=np.int64)
        for name in collections:
            counts = np.zeros(4, dtype=np.int64)
            for each, data in read_set(name, tuple(range(seeds))).items():
                if each.endswith(LATER) == later:
                    counts += _count_stretches(data)
            if counts[2]:
                print(f"{name:14s} {counts[0]:12d} {counts[1]:14d} {counts[2]:7d} {counts[3]:8d}", flush=True)
            totals += counts
        print(f"{'all':14s} {totals[0]:12d} {totals[1]:14d} {totals[2]:7d} {totals[3]:8d}", flush=True)


def _count_stretches(data: Dataset) -> NDArray[np.int64]:
    """Count near-certain stretches, those that touch a fault, faults, and those that are touched."""
    minutes = None
    if data.time is not None and data.groups is None:
        minutes = ((data.time - data.time[0]) / pd.Timedelta(minutes=1)).to_numpy(dtype=float)
    if data.train is None:
        rated_rows, y = rate_itself(data.X, minutes), data.y
    else:
        rated_rows, y = rate_later(data.X, data.train, minutes), data.y[~data.train]
    if not rated_rows.block:
        print(f"    {data.name} is not rated", flush=True)
    spans = [slice(rows[0], rows[-1] + 1) for rows in rated_rows.stretches(SOME)]
    called = np.zeros(len(y), dtype=np.bool_)
    for span in spans:
        called[span] = True
    right = sum(bool(y[span].any()) for span in spans)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], y, [0]])))
    faults = list(zip(edges[::2], edges[1::2], strict=True))
    touched = sum(bool(called[first:last].any()) for first, last in faults)
    return np.array([len(spans), right, len(faults), touched])


def print_faults(seeds: int) -> None:
    """Print how many faults of simulated plants are called near certain, and what else is."""
    print(
        f"{'':20s} {'near certain:':>14s} {'faults':>7s} {'look-alikes':>12s} {'false':>6s} {'100 rows: faults':>17s}",
        end="",
    )
    print(f" {'look-alikes':>12s}   means over {seeds} plants")
    for vary in (False, True):
        called: list[tuple[list[int], list[int]]] = []
        for seed in range(seeds):
            plant = simulate_hydropower(seed, vary=vary)
            X, stamps, faults = plant.table.to_numpy(), plant.table.index, plant.is_anomalous
            minutes = ((stamps - stamps[0]) / pd.Timedelta(minutes=1)).to_numpy(dtype=float)
            good = (np.arange(len(X)) < int(0.4 * len(X))) & ~faults
            own, fitted = SensorDetector().fit(X, time=minutes), SensorDetector().fit(X[good], time=minutes[good])
            later, n_later = fitted.score_series(X, time=minutes), int((~good).sum())
            certain = (
                own.expected_by_chance(own.scores_, later=False) <= SOME,
                (fitted.expected_by_chance(later, n_later) <= SOME) & ~good,
            )
            called.append((_count_called(plant, own.scores_, certain[0]), _count_called(plant, later, certain[1])))
        for regime, counts in zip(("(i)", "(ii)"), np.mean(called, axis=0), strict=True):
            name = f"{'varied plants' if vary else 'plants'} {regime}"
            print(f"{name:35s} {counts[0]:7.1f} {counts[1]:12.1f} {counts[2]:6.1f}", end="")
            print(f" {counts[3]:17.0f} {counts[4]:12.0f}", flush=True)


def _count_called(plant: SimulatedPlant, scores: FloatArray, flags: BoolArray) -> list[int]:
    """Count flagged faults, flagged events of look-alikes and of neither, highest rows in faults and in look-alikes."""
    stamps, counts = plant.table.index, [0, 0, 0, 0, 0]
    look_alike = np.zeros(len(flags), dtype=np.bool_)
    for event in plant.events.itertuples():
        rows = np.asarray((stamps >= event.start) & (stamps <= event.end))
        counts[0] += bool(event.is_fault and (flags & rows).any())
        look_alike |= rows & (not event.is_fault)
    events = group_events(flags, scores, None)
    for number in range(1, len(events) + 1):
        rows_of = events.rows_of(number)
        if not plant.is_anomalous[rows_of].any():
            counts[1 if look_alike[rows_of].any() else 2] += 1
    highest = np.argsort(-scores, kind="stable")[:100]
    counts[3:] = int(plant.is_anomalous[highest].sum()), int(look_alike[highest].sum())
    return counts


# Parts in order of time print their own tables.
IN_TIME = {"series": print_series, "incidents": print_incidents, "labelled": print_labelled, "faults": print_faults}

# A part yields cases; `score` says what is made of each.
PARTS: dict[str, Callable[[int], Iterator[Case]]] = {
    "normal": drawn(NORMAL),
    "hard": drawn(HARD),
    "inliers": inliers,
    "planted": planted,
    "real": real,
}


@dataclass(frozen=True)
class Outcome:
    """What was said of a case."""

    line: str
    size: int
    verdict: str
    called: int
    right: int
    anomalies: int
    at_one: int
    words: str


def score(case: Case) -> Outcome:
    """Fit, fit again without the highest rows, and compare with chance."""
    detector = Detector(random_state=0).fit(case.X)
    found: Chance = expected_by_chance(scores_without_the_highest(detector, case.X, detector.scores_))
    return Outcome(
        case.line,
        len(case.X),
        found.verdict,
        int(found.called.sum()),
        int((found.called & case.anomalies).sum()),
        int(case.anomalies.sum()),
        int((found.expected <= 1.0).sum()),
        found.in_words(),
    )


def line_of(name: str, outcomes: list[Outcome]) -> str:
    """Return the figures of some tables: how many; verdicts in %; called rows in % of all; rows where 1 is expected."""
    said = [outcome.verdict for outcome in outcomes]
    shares = " ".join(
        f"{said.count(verdict) / len(said):8.0%}" for verdict in ("nothing", "some", "clearly", "too few")
    )
    rows, called = sum(each.size for each in outcomes), sum(each.called for each in outcomes)
    right, anomalies = sum(each.right for each in outcomes), sum(each.anomalies for each in outcomes)
    text = f"{name:46s} {len(said):6d} {shares} {called / rows:8.2%} {np.mean([e.at_one for e in outcomes]):8.2f}"
    if anomalies:
        text += f" {right / anomalies:8.0%} " + (f"{right / called:8.0%}" if called else f"{'–':>8s}")
    return text


def main() -> None:
    """Print one line per kind of table, and one per part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=[*PARTS, *IN_TIME], choices=[*PARTS, *IN_TIME])
    parser.add_argument("--seeds", type=int, default=5, help="draws of each kind and size")
    parser.add_argument("--abroad", action="store_true", help="only the records of benchmarks/abroad.py")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.abroad:
        print_series(given.seeds, healthy_abroad)
        print_labelled(given.seeds, [name for name in SETS if name.startswith("abroad")])
        return
    columns = ("tables", "nothing", "some", "clearly", "too few", "called", "at E≤1", "found", "right")
    if not {*given.parts} <= {*IN_TIME}:
        print(f"{'':46s} {columns[0]:>6s} " + " ".join(f"{name:>8s}" for name in columns[1:]))
    for part in given.parts:
        if part in IN_TIME:
            IN_TIME[part](given.seeds)
            continue
        begin, outcomes = process_time(), [score(case) for case in PARTS[part](given.seeds)]
        print(f"\n{part}")
        for line in dict.fromkeys(outcome.line for outcome in outcomes):
            of_line = [outcome for outcome in outcomes if outcome.line == line]
            print(line_of(line, of_line))
            if part == "real":
                print(f"    {of_line[0].size} rows, {of_line[0].anomalies} labelled. {of_line[0].words}")
        for size in (80, 300, 1500) if part in ("normal", "hard", "inliers") else ():
            of_size = [outcome for outcome in outcomes if outcome.size == size]
            print(line_of(f"  of {size} rows", of_size))
        quiet = np.mean([outcome.verdict == "nothing" for outcome in outcomes if outcome.verdict != "too few"])
        bar = f", bar {BAR[0]:.0%}–{BAR[1]:.0%}: {'kept' if BAR[0] <= quiet <= BAR[1] else 'MISSED'}"
        print(line_of(f"all of {part}", outcomes), flush=True)
        print(f"nothing stands out in {quiet:.1%}{bar if part in ('normal', 'inliers') else ''}", end="")
        print(f"; {process_time() - begin:.0f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
