"""What this study is: when, with what, on which data sets."""

from __future__ import annotations

from datetime import datetime

import pandas as pd

from penstock.bench import registry
from penstock.report.study.blocks import Block, Bullets, DataTable, Details, Paragraph, make_table, plain
from penstock.report.study.material import Material
from penstock.report.study.words import count, enumerate_names, instant, percent, plural, seconds

# With the paper's similarity; measured with seeds 0 and 1, see docs/decisions/0011-detect-defaults.md.
_COLLAPSING = ("Annthyroid", "Cardiotocography", "PageBlocks", "SpamBase", "ALOI", "KDDCup99", "Shuttle")


def about(material: Material) -> list[Block]:
    """The circumstances of the run."""
    results, rows = material.results, material.rows.drop_duplicates("key")
    seeds = sorted(int(seed) for seed in rows["seed"].dropna().unique())
    versions = ", ".join(f"{name} {version}" for name, version in (results.versions or {}).items())
    items = [
        f"**When:** begun {plain(instant(results.started))}, last result {plain(instant(results.finished))}"
        f"{_length(results.started, results.finished)}.",
        f"**Where:** {plain(results.machine or 'not recorded')}.",
        f"**Versions:** {plain(versions or 'not recorded')}.",
        f"**Seeds:** {_seeds(seeds)}. A method that takes no seed runs once.",
        f"**Cells** (method × data set × seed): {_outcomes(rows)}",
    ]
    used = rows["cpu_seconds"].sum()
    if used > 0:
        items.append(f"**Computing time** of the cells that finished: {seconds(float(used))} of processor time.")
    what, whose = "This page compares methods on labelled data sets.", ""
    if material.of_paper:
        what = "This page holds the figures of Ahmed et al. (2021) against a run of our own implementation."
        whose = "of ours "
    return [
        *_collapse(rows),
        Paragraph(
            f"{what} Every number {whose}comes from the cells counted below; where several seeds were run, it is their "
            "median unless it says otherwise. What was planned and has no result is named, never filled in."
        ),
        Bullets(tuple(items)),
    ]


def _collapse(rows: pd.DataFrame) -> list[Block]:
    """What a reader of any figure of NS-NMF has to know first, if it ran where that is so."""
    if not set(rows["dataset"][rows["method"] == "NS-NMF"]) & set(_COLLAPSING):
        return []
    words = (
        "On 7 of the paper's 20 data sets NS-NMF with the paper's similarity, 1/length, ranks rows by their size. On "
        f"{enumerate_names(_COLLAPSING, 7)} its converged factors rebuild 0.07 to 1.2 % of the readings (‖WH‖²/‖A‖²), "
        "7 to 46 rows hold 90 % of ‖W‖², and the score orders the rows as their norm ‖a‖ does (Spearman 0.982 to "
        "0.999). This follows from the objective: two rows at the distance d have the similarity 1/d in ‖S−WWᵀ‖², and "
        "a few very near pairs take all latent groups. `NSNMF` warns of it and shows the share as `explained_`; with "
        '`similarity="normalized"` it is 33 to 95 % on the same data sets.'
    )
    return [Paragraph(words, warning=True)]


def _seeds(seeds: list[int]) -> str:
    if not seeds:
        return "none"
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{len(seeds)}, from {seeds[0]} to {seeds[-1]}"
    return f"{len(seeds)} ({', '.join(map(str, seeds[:20]))}{', …' if len(seeds) > 20 else ''})"


def _outcomes(rows: pd.DataFrame) -> str:
    """
    >>> _outcomes(pd.DataFrame({"status": ["ok", "ok", "failed"]}))
    '3 planned: 2 ok, 1 failed.'
    """
    counts = rows["status"].value_counts()
    order = ["ok", "failed", "timed out", "killed", "not run"]
    named = [*order, *sorted(set(counts.index) - set(order))]
    parts = [f"{counts[status]:,} {plain(status)}" for status in named if counts.get(status, 0)]
    return f"{len(rows):,} planned{': ' if parts else ''}{', '.join(parts)}."


def _length(started: str, finished: str) -> str:
    """How long it was from the first to the last; pauses count."""
    try:
        length = (datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds()
    except (TypeError, ValueError):
        return ""
    return f" ({seconds(length)} later; pauses count)" if length > 0 else ""


def data_sets(material: Material) -> list[Block] | str:
    """What was run on, where it comes from, and what differs from the paper's Table 1."""
    used = material.rows.groupby("dataset", sort=False)[["n", "p", "n_anomalies"]].max()  # some draw a part of the rows
    if used.empty:
        return "no data set was planned"
    known = registry.provenance()
    own = [name for name in used.index if name not in known.index]
    shared = [name for name in known.index if name in used.index]
    blocks: list[Block] = []
    if shared:
        exact = known.loc[shared, "exact"].value_counts()
        blocks.append(Paragraph(_exactness(len(shared), exact.to_dict())))
        blocks.append(_provenance_table(known.loc[shared], used))
        files = known.loc[shared, ["file", "differs"]].reset_index()
        titles = {"dataset": "data set", "differs": "what is known to differ"}
        blocks.append(Details("Files, and what differs from the paper's", (make_table(files, "", {}, titles=titles),)))
    absent = [name for name in known.index if name not in used.index]
    if absent and shared:
        blocks.append(Paragraph(f"Of the paper's twenty data sets, not in this run: {enumerate_names(absent, 20)}."))
    if own:
        frame = used.loc[own].reset_index()
        titles = {"dataset": "data set", "n": "rows", "p": "attributes", "n_anomalies": "anomalies"}
        formats = dict.fromkeys(("n", "p", "n_anomalies"), count)
        caption = "Data sets that are not the paper's." if shared else "Data sets as used."
        blocks.append(make_table(frame, caption, formats, titles=titles))
    return [*blocks, *_overlaps(material)]


def _exactness(total: int, exact: dict[str, int]) -> str:
    return (
        f"Of the {total} data sets of the paper that were planned, {exact.get('yes', 0)} have the rows, attributes and "
        f"anomalies that the paper's Table 1 prints; {exact.get('reconstructed', 0)} are reconstructions, because no "
        f"copy of the file was found; {exact.get('no', 0)} differ in another way. A difference in results on these may "
        "be one of the data."
    )


def _provenance_table(known: pd.DataFrame, used: pd.DataFrame) -> DataTable:
    frame = pd.DataFrame(
        {
            "data set": known.index,
            "rows": [used.loc[name, "n"] for name in known.index],
            "rows (paper)": known["paper_n"].to_numpy(),
            "attributes": [used.loc[name, "p"] for name in known.index],
            "attributes (paper)": known["paper_p"].to_numpy(),
            "anomalies": [used.loc[name, "n_anomalies"] for name in known.index],
            "anomalies (paper)": known["paper_anomalies"].to_numpy(),
            "duplicates": known["duplicate_rows"].to_numpy(),
            "as printed": known["exact"].to_numpy(),
        }
    )
    numeric = ["rows", "attributes", "anomalies"]
    formats = dict.fromkeys([*numeric, *(f"{name} (paper)" for name in numeric), "duplicates"], count)
    caption = "Data sets as used, beside the paper's Table 1. Duplicates are rows equal to an earlier one."
    titles = dict.fromkeys(numeric, "used") | {f"{name} (paper)": "paper" for name in numeric}
    groups = [("", 1), *((name, 2) for name in numeric), ("", 2)]
    return make_table(frame, caption, formats, titles=titles, groups=groups)


def _overlaps(material: Material) -> list[Block]:
    if not material.overlaps:
        return []
    pairs = [
        f"{plain(pair.first)} and {plain(pair.second)} share {plural(pair.shared_rows, 'row')} "
        f"({percent(pair.share)} of the smaller)"
        for pair in material.overlaps
    ]
    words = (
        "Some data sets share rows: " + "; ".join(pairs) + ". Tests take data sets to be independent; these are not."
    )
    return [Paragraph(words, warning=True)]
