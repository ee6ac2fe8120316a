"""How `penstock.Detector` compares with what people would pick instead, and with what else it could have been.

    python benchmarks/quality.py [--folder quality] [--elsewhere FOLDER]

Runs `quality.toml` (see there, and `quality_candidates.py`) on the harness of the study and prints, in Markdown: the
bars, every method's means and mean ranks with confidence intervals by bootstrapping over data sets, the choice on one
half of the data sets confirmed on the other, and the frontier. Needs the paper's data sets in the folder that
PENSTOCK_DATA names and the extra `peers`; about 15 minutes on two quiet cores, most of it OCSVM. Goes on where it was
stopped. `--elsewhere` takes labelled CSV files from a folder (`elsewhere.py` makes one) instead of the twenty sets, and
prints the same tables without bars.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock.bench import Study, load_file, mean_ranks, run_study
from penstock.bench.significance import resample_means

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folder that studies/ is in
from studies.ahmed2021 import paper, settings
from studies.ahmed2021.datasets import load

HERE = Path(__file__).parent
SHIPPED, PEERS = "Detector", ("KNN", "LOF", "IForest", "ECOD", "COPOD", "HBOS", "PCA", "OCSVM", "INNE")
MEASURES = {"average_precision": "AP", "roc_auc": "ROC-AUC", "precision_at_n": "P@N"}
BOOTSTRAPS, SPLITS = 10_000, 500
WANTED_AP, WANTED_WINS, MOST_TIMES_KNN = 0.37, 14, 1.0


@dataclass(frozen=True, eq=False)
class Tables:
    """Data sets × methods, means over seeds, one table per measure, and `cpu` and `true` (detections)."""

    measures: dict[str, pd.DataFrame]
    cpu: pd.DataFrame
    true: pd.DataFrame
    parts: dict[str, str]

    def among_peers(self, method: str, measure: str = "average_precision") -> pd.DataFrame:
        return self.measures[measure][[method, *PEERS]]


def tables_of(rows: pd.DataFrame) -> Tables:
    rows = rows[rows["status"] == "ok"]

    def table(measure: str) -> pd.DataFrame:
        return rows.pivot_table(index="dataset", columns="method", values=measure, aggfunc="mean", sort=False)

    measures = {measure: table(measure) for measure in MEASURES}
    for name, values in measures["average_precision"].iterrows():
        for method in values.index[values.isna()]:
            print(f"{method} has no result on {name}: counted as the worst of the others.", file=sys.stderr)
    measures = {name: values.T.fillna(values.min(axis=1)).T for name, values in measures.items()}
    parts = {str(row["method"]): str(row["part"]) for row in rows.drop_duplicates("method").to_dict("records")}
    return Tables(measures, table("cpu_seconds"), table("true_detections"), parts)


def place(values: pd.Series[float], method: str, *, ascending: bool) -> int:
    """1 for the best."""
    return int(values.rank(ascending=ascending, method="min")[method])


def bars(found: Tables) -> list[tuple[str, str, bool]]:
    """What was asked for, what was found, and whether that is enough."""
    ap = found.among_peers(SHIPPED)
    everywhere = len(ap) == len(paper.characteristics)
    means, ranks = ap.mean(), mean_ranks(ap)
    best_peer = max(PEERS, key=lambda peer: means[peer])
    rank_peer = min(PEERS, key=lambda peer: ranks[peer])
    lines = [
        ("mean AP, first and ≥ 0.37", f"{means[SHIPPED]:.3f} (next {best_peer} {means[best_peer]:.3f})",
         everywhere and means.idxmax() == SHIPPED and means[SHIPPED] >= WANTED_AP),
        ("mean rank by AP, first", f"{ranks[SHIPPED]:.2f} (next {rank_peer} {ranks[rank_peer]:.2f})",
         everywhere and ranks.idxmin() == SHIPPED),
    ]  # fmt: skip
    for measure in ("precision_at_n", "roc_auc"):
        values = found.among_peers(SHIPPED, measure).mean()
        at = place(values, SHIPPED, ascending=False)
        lines.append((f"{MEASURES[measure]}, at least second", f"{values[SHIPPED]:.3f}, place {at}", at <= 2))
    for name, half in zip(("first", "second"), fixed_halves(ap), strict=True):
        by_ap = place(ap.loc[half].mean(), SHIPPED, ascending=False)
        by_rank = place(mean_ranks(ap.loc[half]), SHIPPED, ascending=True)
        lines.append((f"{name} half: AP at least second, rank first", f"places {by_ap} and {by_rank}",
                      by_ap <= 2 and by_rank == 1))  # fmt: skip
    wins, best = detections(found)
    lines.append(
        (f"true detections ≥ the paper's NS-NMF on {WANTED_WINS} of 20",
         f"{wins[SHIPPED]} (best peer {wins[list(PEERS)].max()}, best candidate {wins.max()}, "
         f"best choice per data set {best})", wins[SHIPPED] >= WANTED_WINS)
    )  # fmt: skip
    seconds = {method: float(found.cpu[method].to_dict()["ALOI"]) for method in (SHIPPED, "KNN")}
    times = seconds[SHIPPED] / seconds["KNN"]
    lines.append(("fit on ALOI ≤ 1 × KNN's, CPU", f"{times:.2f} ×", times <= MOST_TIMES_KNN))
    return lines


def fixed_halves(table: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Every other data set in the order of the paper's Table 1, so that large and small ones are in both."""
    order = [name for name in paper.characteristics.index if name in table.index]
    return order[::2], order[1::2]


def detections(found: Tables) -> tuple[pd.Series[int], int]:
    """On how many data sets each method finds at least as many as the paper's NS-NMF; and the best choice per set."""
    wanted = paper.true_positives["NS-NMF"].reindex(found.true.index)
    enough = found.true.round(6).ge(wanted, axis=0)
    return enough.sum(), int(enough.any(axis=1).sum())


def summary(found: Tables) -> pd.DataFrame:
    """Per method: means, and the mean rank among the nine peers and itself; 95 % intervals over data sets."""
    lines = {}
    for method in found.parts:
        lines[method] = {
            "part": found.parts[method],
            "AP": with_interval(found.measures["average_precision"][method], 3),
            "rank": with_interval(ranks_of(found, method), 2),
            "ROC-AUC": with_interval(found.measures["roc_auc"][method], 3),
            "P@N": with_interval(found.measures["precision_at_n"][method], 3),
        }
    return pd.DataFrame(lines).T


def ranks_of(found: Tables, method: str) -> pd.Series[float]:
    """Per data set, by AP: of a peer among the peers and `Detector`, of any other among itself and the peers."""
    table = found.among_peers(SHIPPED if method in PEERS else method)
    return table.rank(axis=1, ascending=False)[method]


def with_interval(values: pd.Series[float], digits: int) -> str:
    low, high = interval(np.asarray(values, dtype=np.float64))
    return f"{values.mean():.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """95 % of the means of data sets drawn with replacement."""
    means = resample_means(pd.DataFrame({"it": values}), BOOTSTRAPS)["it"]
    low, high = means.quantile([0.025, 0.975])
    return float(low), float(high)


def margins(found: Tables) -> list[str]:
    """Over each peer, the mean gain in AP with its interval."""
    ap = found.among_peers(SHIPPED)
    lines = []
    for peer in PEERS:
        gain = (ap[SHIPPED] - ap[peer]).to_numpy()
        low, high = interval(gain)
        lines.append(f"| {peer} | {gain.mean():+.3f} [{low:+.3f}, {high:+.3f}] | {(gain > 0).sum()} of {len(gain)} |")
    return ["| over | gain in AP | wins |", "|---|---|---|", *lines]


def candidates(found: Tables) -> list[str]:
    return [method for method, part in found.parts.items() if part == "candidates"]


def chosen(found: Tables, names: Sequence[str], sets: Iterable[Any]) -> str:
    """The candidate with the best mean rank among the peers on these data sets; of equals the highest mean AP."""
    ap = found.measures["average_precision"].loc[list(sets)]
    return min(names, key=lambda name: (mean_ranks(ap[[name, *PEERS]])[name], -ap[name].mean()))


def selection(found: Tables) -> list[str]:
    """Choose on one half, confirm on the other, swap; and the same over many random halves."""
    names, ap = candidates(found), found.measures["average_precision"]
    lines = ["| chosen on | it is | AP there | AP elsewhere | rank, place elsewhere |", "|---|---|---|---|---|"]
    halves = fixed_halves(ap) if set(ap.index) <= set(paper.characteristics.index) else (ap.index[::2], ap.index[1::2])
    for name, here, there in (("first half", *halves), ("second half", *halves[::-1])):
        choice = chosen(found, names, here)
        ranks = mean_ranks(ap.loc[list(there), [choice, *PEERS]])
        lines.append(
            f"| {name} | {choice} | {ap[choice][list(here)].mean():.3f} | {ap[choice][list(there)].mean():.3f} | "
            f"{ranks[choice]:.2f}, {place(ranks, choice, ascending=True)} |"
        )
    everywhere = chosen(found, names, ap.index)
    lines.append(f"| all | {everywhere} | {ap[everywhere].mean():.3f} | | |")
    rng, gains, first = np.random.default_rng(0), [], 0
    for _ in range(SPLITS):
        order = rng.permutation(len(ap))
        here, there = ap.index[order[: len(ap) // 2]], ap.index[order[len(ap) // 2 :]]
        choice = chosen(found, names, here)
        average = ap[names].mean(axis=1)
        gain = ap[choice] - average
        gains.append(gain[here].mean() - gain[there].mean())
        first += int(place(mean_ranks(ap.loc[there, [choice, *PEERS]]), choice, ascending=True) == 1)
    lines.append(
        f"\nOptimism of choosing among {len(names)} candidates on half of the sets: {np.mean(gains):+.4f} AP (mean "
        f"over {SPLITS} random halves, against the mean of all candidates); the choice has the best mean rank on the "
        f"other half in {first / SPLITS:.0%} of them."
    )
    return lines


def frontier(found: Tables) -> list[str]:
    """What the best choice per data set would reach."""
    ap = found.measures["average_precision"]
    ours = [SHIPPED, *candidates(found)]
    views = [method for method, part in found.parts.items() if part == "views"]
    return [
        f"Best candidate per data set: {ap[ours].max(axis=1).mean():.3f}; best single view per data set: "
        f"{ap[views].max(axis=1).mean():.3f}; best of everything per data set, peers included: "
        f"{ap.max(axis=1).mean():.3f}."
    ]


def markdown(frame: pd.DataFrame) -> list[str]:
    head = ["method", *frame.columns]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join([str(name), *map(str, row)]) + " |" for name, row in frame.iterrows()]


def elsewhere(study: Study, folder: Path) -> Study:
    files = sorted(str(file) for file in folder.glob("*.csv"))
    if not files:
        sys.exit(f"There is no CSV file in {folder}. `python benchmarks/elsewhere.py` says how to make some.")
    return study.only(datasets=files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("quality"))
    parser.add_argument("--elsewhere", type=Path)
    parser.add_argument("--jobs", type=int)
    given = parser.parse_args()
    sys.path.insert(0, str(HERE))  # where the candidates are found
    study = settings.read(HERE / "quality.toml")
    study = elsewhere(study, given.elsewhere) if given.elsewhere else study
    reader = load_file if given.elsewhere else load
    found = tables_of(run_study(study, given.folder, jobs=given.jobs, load=reader).rows)
    missed = report(found, on_the_twenty=given.elsewhere is None)
    sys.exit(int(missed))


def report(found: Tables, *, on_the_twenty: bool) -> bool:
    """Print it all; whether a bar was missed."""
    missed = False
    print(f"{len(found.measures['average_precision'])} data sets\n")
    if on_the_twenty:
        print("| bar | found | |\n|---|---|---|")
        for name, value, enough in bars(found):
            missed |= not enough
            print(f"| {name} | {value} | {'met' if enough else 'NOT MET'} |")
    for title, lines in (
        ("Methods; ranks by AP among the nine peers and the method itself", markdown(summary(found))),
        ("Gains", margins(found)),
        ("Chosen on half, confirmed on the other", selection(found)),
        ("Frontier", frontier(found)),
    ):
        print(f"\n### {title}\n")
        print("\n".join(lines))
    return missed


if __name__ == "__main__":
    main()
