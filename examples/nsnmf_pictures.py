"""The pictures of docs/nsnmf.md, drawn by the package.

    python examples/nsnmf_pictures.py [folder]

Two are figures of the paper (Ahmed, Hu, Acharya and Ding, JMLR 22, 2021) drawn anew: the formation of a spanning tree,
and the post-hoc diagram, which takes both tables of detections from docs/reproduction_appendix.md. Needs matplotlib
(`pip install matplotlib`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from penstock import NSNMF, OnlineNSNMF, minimum_spanning_tree
from penstock.bench import compare_table
from penstock.datasets import load_sensors
from penstock.report.figures import plot_ranks

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLUE, VERMILLION, BLACK, GREY = "#0072B2", "#D55E00", "#000000", "#8C8C8C"  # Okabe and Ito's, distinct to all eyes
WIDTH = 4.5  # inches: at 150 dots an inch its letters can be read on a phone

# A graph of 8 nodes and 15 edges with different lengths, as in the paper. The paper's lengths are in its picture only,
# which is not in its source: places and lengths are ours, from 1 for the shortest edge as drawn to 15 for the longest.
PLACES = np.array([[0, 2], [2, 3.1], [4.4, 3], [6.4, 2.1], [6.2, 0.3], [4, -0.7], [1.8, -0.3], [3.1, 1.2]])
EDGES = {
    (0, 1): 8, (1, 2): 9, (2, 3): 4, (3, 4): 1, (4, 5): 10, (5, 6): 7, (0, 6): 11, (1, 6): 14,
    (7, 0): 12, (1, 7): 5, (2, 7): 6, (3, 7): 15, (4, 7): 13, (5, 7): 3, (6, 7): 2,
}  # fmt: skip


def one_day() -> pd.DataFrame:
    """Return a day of a machine, every quarter of an hour; five sensors follow the load, each later than the other."""
    hours = np.arange(96) / 4
    lags = {"power": 0, "flow": 2, "bearing": 5, "oil": 8, "hall": 11}  # hours
    rows = pd.DataFrame({name: 0.5 + 0.45 * np.sin(2 * np.pi * (hours - lag) / 24) for name, lag in lags.items()})
    rows += 0.02 * np.random.default_rng(0).normal(size=rows.shape)
    rows.loc[20, ["power", "bearing"]] = [0.5, 0.9]  # two rows in which these do not fit the others
    rows.loc[70, ["power", "bearing"]] = [0.55, 0.75]
    return rows


ODD = [20, 70]


def draw_spanning_tree(plt: Any) -> Any:
    """Draw the graph, and its minimum spanning tree."""
    distances = np.full((len(PLACES), len(PLACES)), np.inf)  # no edge
    np.fill_diagonal(distances, 0)
    for (i, j), length in EDGES.items():
        distances[i, j] = distances[j, i] = length
    tree = minimum_spanning_tree(distances, metric="precomputed")
    chosen = {tuple(edge) for edge in np.sort(tree.edges, axis=1).tolist()}
    figure, panels = plt.subplots(2, 1, figsize=(WIDTH, 5.2), layout="constrained")
    titles = ("8 nodes, 15 edges", f"the 7 edges of the tree, total length {tree.total_length:g}")
    for axes, title, is_tree in zip(panels, titles, (False, True), strict=True):
        for edge, length in EDGES.items():
            bold = is_tree and tuple(sorted(edge)) in chosen
            colour = BLACK if bold or not is_tree else GREY
            ends = PLACES[list(edge)]
            style = (0, (2, 2)) if is_tree and not bold else "-"
            axes.plot(*ends.T, color=colour, linewidth=3 if bold else 1, linestyle=style, zorder=1)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            weight = "bold" if bold else "normal"
            at = 0.4 * ends[0] + 0.6 * ends[1]  # the middles of two edges are one
            axes.text(*at, length, ha="center", va="center", color=colour, bbox=box, fontweight=weight, zorder=2)
        axes.plot(*PLACES.T, "o", color="white", markeredgecolor=BLACK, markersize=16, zorder=3)
        for number, place in enumerate(PLACES):
            axes.text(*place, "ABCDEFGH"[number], ha="center", va="center", zorder=4)
        axes.set_title(title, loc="left")
        axes.axis("off")
        axes.margins(0.06)
    return figure


def draw_idea(plt: Any) -> Any:
    """Draw the tree on a curve, its similarities, the factors, and what they rebuild."""
    rows = one_day()
    detector = NSNMF(4, similarity="normalized", random_state=0).fit(rows)
    rebuilt = pd.DataFrame(detector.inverse_transform(detector.embedding_), columns=rows.columns)
    figure, panels = plt.subplots(3, 2, figsize=(WIDTH, 7), layout="constrained")
    (rows_and_tree, joined), (weights, profiles), (readings, scores) = panels
    plane = ["power", "bearing"]
    at, away = rows[plane].to_numpy(), rebuilt[plane].to_numpy()

    for edge in detector.tree_.edges:
        rows_and_tree.plot(*at[edge].T, color=BLACK, linewidth=1)
    rows_and_tree.plot(*at.T, ".", color=BLUE, markersize=4)
    rows_and_tree.set_title("1  rows and their tree", loc="left")

    similar = detector.similarity_.tocoo()
    joined.scatter(similar.col, similar.row, s=9 * similar.data, color=BLACK, linewidths=0)
    joined.set(xlim=(-1, 96), ylim=(96, -1), xlabel="row", ylabel="row", xticks=[0, 48, 95])
    joined.set_title("2  S: who is joined", loc="left")

    weights.imshow(detector.embedding_, aspect="auto", cmap="Greys", interpolation="nearest")
    weights.set(ylabel="row")
    weights.set_title("3  W: rows in groups", loc="left")
    profiles.imshow(detector.components_.T, aspect="auto", cmap="Greys", interpolation="nearest")
    profiles.set_yticks(range(5), rows.columns)
    profiles.set_title("4  H: groups", loc="left")
    for axes in (weights, profiles):
        axes.set(xticks=range(4), xticklabels=range(1, 5), xlabel="group")

    for odd, start, end in zip(rows.index.isin(ODD), at, away, strict=True):
        readings.plot(*np.array([start, end]).T, color=VERMILLION if odd else GREY, linewidth=2 if odd else 1)
    readings.plot(*away.T, ".", color=BLUE, markersize=4)
    readings.set_title("5  what is rebuilt", loc="left")
    for axes in (rows_and_tree, readings):
        axes.plot(*at[ODD].T, "s", color=VERMILLION, markersize=6)
        axes.set(xlabel=plane[0], ylabel=plane[1], xticks=[0, 1], yticks=[0, 1], xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))

    scores.plot(detector.scores_, color=BLUE, linewidth=1.2)
    scores.plot(ODD, detector.scores_[ODD], "s", color=VERMILLION, markersize=6)
    scores.set(xlabel="row", xticks=[0, 48, 95], ylim=(0, None))
    scores.set_title("6  score: what is not", loc="left")
    for axes in (joined, weights):
        axes.set_yticks([0, 48, 95])
    return figure


def draw_collapse(plt: Any) -> Any:
    """Draw the scores of the day with two similarities, and the norm of the rows."""
    rows = one_day()
    norm = np.linalg.norm((rows - rows.min()) / (rows.max() - rows.min()), axis=1)
    figure, panels = plt.subplots(2, 1, sharex=True, figsize=(WIDTH, 3.9), layout="constrained")
    inverse = NSNMF(4, similarity="inverse", random_state=0)
    normalized = NSNMF(4, similarity="normalized", random_state=0)
    for axes, detector in zip(panels, (inverse, normalized), strict=True):
        detector.fit(rows)
        axes.plot(norm, color=GREY, linewidth=2.5, label="norm of the row")
        axes.plot(detector.scores_, color=BLUE, linewidth=1.2, label="score")
        axes.plot(ODD, detector.scores_[ODD], "s", color=VERMILLION, markersize=5, label="the two odd rows")
        axes.set_title(f'similarity="{detector.similarity}": {detector.explained_:.0%} rebuilt', loc="left")
        axes.set_ylim(0, None)
    axes.set_xlabel("row")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, handlelength=1)
    return figure


def draw_plant(plt: Any) -> Any:
    """Draw the scores of three days of a plant: offline with the list of 100, online with the threshold on the fly."""
    table, in_fault = load_sensors(return_X_y=True)
    offline = NSNMF(random_state=0).fit(table)
    listed = np.isin(np.arange(len(table)), np.argsort(-offline.scores_, kind="stable")[:100])
    online = OnlineNSNMF(similarity="binary", warmup=1200, random_state=0).process(table)
    days = (table.index >= "2015-10-03") & (table.index < "2015-10-06")
    time = table.index[days]
    figure, panels = plt.subplots(2, 1, sharex=True, figsize=(WIDTH, 4.2), layout="constrained")
    for axes, scores, marked in zip(panels, (offline.scores_, online.scores), (listed, online.flags), strict=True):
        at_any_height = axes.get_xaxis_transform()
        axes.fill_between(time, 0, 1, where=in_fault[days], color="#D9D9D9", transform=at_any_height, label="fault")
        axes.plot(time, scores[days], color=BLUE, linewidth=1, label="score")
        axes.plot(table.index[days & marked], scores[days & marked], "x", color=VERMILLION, markersize=4, label="found")
        axes.set(ylabel="score", ylim=(0, None))
    panels[0].set_title("offline: the 100 highest of 3,833", loc="left")
    axes.plot(time, online.thresholds[days], color=BLACK, linestyle=(0, (4, 1.5)), linewidth=1.2, label="threshold")
    axes.set_title("online: above the threshold when it came", loc="left")
    midnights = pd.date_range("2015-10-03", "2015-10-06")
    axes.set_xticks(midnights, [f"{day.day} Oct" for day in midnights])
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, handlelength=1)
    return figure


def read_detections() -> dict[str, pd.DataFrame]:
    """Return the true detections of the four offline methods, the paper's and ours, from the page of the study."""
    methods = ["NS-NMF", "NMF", "GNMF", "SNMF"]
    page = (DOCS / "reproduction_appendix.md").read_text(encoding="utf-8")
    for block in page.split("\n\n"):
        lines = [[cell.strip(" ✓") for cell in line.strip("|").split("|")] for line in block.strip().splitlines()]
        if {f"{method}: {whose}" for method in methods for whose in ("paper", "ours")} <= set(lines[0]):
            break
    else:
        raise SystemExit("docs/reproduction_appendix.md has no table of the paper's true detections and ours.")
    table = pd.DataFrame(lines[2:], columns=lines[0]).set_index("data set")
    return {
        whose: pd.DataFrame({method: table[f"{method}: {whose}"].astype(float) for method in methods})
        for whose in ("paper", "ours")
    }


def draw_post_hoc(plt: Any) -> Any:
    """Draw the mean ranks by the paper's table and by ours, and which methods do not differ at the level 0.01."""
    tables = read_detections()
    titles = {"paper": "the paper's detections", "ours": "ours, fits converged"}
    figure, panels = plt.subplots(2, 1, figsize=(WIDTH, 3.4), layout="constrained")
    for axes, (whose, table) in zip(panels, tables.items(), strict=True):
        found = compare_table(table, alpha=0.01)
        assert found.friedman is not None
        plot_ranks(found, axes)
        axes.set_title(f"{titles[whose]}: mean ranks, p = {found.friedman.p_value:.2g}", loc="left")
    return figure


PICTURES = {
    "nsnmf-spanning-tree": draw_spanning_tree,
    "nsnmf-idea": draw_idea,
    "nsnmf-collapse": draw_collapse,
    "nsnmf-plant": draw_plant,
    "nsnmf-post-hoc": draw_post_hoc,
}


def main() -> None:
    """Draw all pictures into a folder."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "images"
    import_module("matplotlib").use("Agg")
    plt: Any = import_module("matplotlib.pyplot")  # not an import, as types are checked without it too
    plt.rcParams.update({"font.size": 10, "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False})
    for name, draw in PICTURES.items():
        draw(plt).savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None}, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
