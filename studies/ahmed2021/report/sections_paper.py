"""Write the sections on the run as a whole and on the paper's own tables."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pandas as pd

from penstock.bench.results import pivot
from studies.ahmed2021 import paper, registry
from studies.ahmed2021.registry import variants
from studies.ahmed2021.report.figures import Compared, draw_paper
from studies.ahmed2021.report.material import Material, in_paper_order
from studies.ahmed2021.report.pages import (
    Block,
    Bullets,
    DataTable,
    Details,
    Heading,
    Paragraph,
    Picture,
    make_table,
    plain,
)
from studies.ahmed2021.report.words import (
    count,
    enumerate_names,
    file_name,
    instant,
    p_value,
    percent,
    plural,
    rank,
    seconds,
)
from studies.ahmed2021.rows import rename_to_columns
from studies.ahmed2021.tables import by_attributes, match_counts, tolerance

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
    return [
        *_collapse(rows),
        Paragraph(
            "This page holds the figures of Ahmed et al. (2021) against a run of our own implementation. Every number "
            "of ours comes from the cells counted below; where several seeds were run, it is their median unless it "
            "says otherwise. What was planned and has no result is named, never filled in."
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
    caption = "Data sets as used, compared with the paper's Table 1. Duplicates are rows equal to an earlier one."
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


def summary(material: Material) -> list[Block]:
    """The sentences, the paper's own methods first."""
    sentences = [
        *_matches(material),
        *_nearest(material),
        *_offline_ranks(material),
        *_central_claim(material),
        *_claims(material),
        *_others(material),
        *_gaps(material),
    ]
    nothing = f"NS-NMF on {_by_nothing('NS-NMF')} of its 20 sets, and NMF on {_by_nothing('NMF')}"
    rule = (
        "A method **matches** the paper on a data set if the median of its true detections over the seeds is within 2, "
        "or within 10 % if that is more, of the number that the paper prints. Small numbers are matched easily: "
        f"finding nothing at all would match {nothing}."
    )
    if not material.detections:
        rule = "No cell that could be held against the paper's tables has a result, so nothing can be said about them."
    return [Paragraph(rule), Bullets(tuple(sentences))] if sentences else [Paragraph(rule)]


def _by_nothing(method: str) -> int:
    """
    >>> _by_nothing("NS-NMF")
    2
    """
    return int((paper.true_positives[method] <= tolerance(0)).sum())


def _matches(material: Material) -> list[str]:
    said: dict[str, str] = {}
    for table in material.detections.values():
        for method, line in match_counts(table).iterrows():
            several = bool((table["runs"][table["method"] == method] > 1).any())
            said.setdefault(str(method), _match_sentence(str(method), line, several))
    return list(said.values())


def _match_sentence(method: str, line: pd.Series, several: bool) -> str:
    """
    >>> line = pd.Series({"sets": 20, "run": 18, "matched": 9, "exact": 3, "best_matched": 11})
    >>> _match_sentence("NMF", line, several=True)
    '**NMF** matches the paper on 9 of 18 data sets (exactly on 3; the highest of its seeds on 11); 2 of 20 have no
    result.'
    """
    run, sets = int(line["run"]), int(line["sets"])
    if not run:
        return f"**{plain(method)}**: not run."
    missing = f"; {sets - run} of {sets} {'has' if sets - run == 1 else 'have'} no result" if run < sets else ""
    best = f"; the highest of its seeds on {int(line['best_matched'])}" if several else ""
    return (
        f"**{plain(method)}** matches the paper on {int(line['matched'])} of {run} data sets "
        f"(exactly on {int(line['exact'])}{best}){missing}."
    )


def _nearest(material: Material) -> list[str]:
    said = []
    for found in material.nearest:
        if found.compared < 2:
            continue
        best = found.configurations.iloc[0]
        said.append(
            f"**{plain(found.column)}, in the configuration nearest the paper's** of {found.compared} compared "
            f"({plain(found.best)}), matches on {int(best['matched'])} of {int(best['run'])} data sets; a choice made "
            f"without the data set in question matches {found.held_out_matched} of {found.held_out_sets}."
        )
    return said


def _offline_ranks(material: Material) -> list[str]:
    table = material.performance
    ours = {str(name): float(value) for name, value in table.ours.T["mean rank"].dropna().items()}
    theirs = {str(name): float(value) for name, value in table.paper.T["mean rank"].items()}
    if "NS-NMF" not in ours:
        return []
    first = [name for name, value in ours.items() if value == min(ours.values())]
    told = ", ".join(f"{plain(name)} {rank(value)} (paper {rank(theirs[name])})" for name, value in ours.items())
    words = f"**Mean ranks** of the offline methods over {plural(len(table.datasets), 'data set')}: {told}; "
    words += f"the best here {'is' if len(first) == 1 else 'are'} {enumerate_names(first)}."
    test = material.offline.friedman
    if test is not None and material.offline.table.shape[1] == len(theirs):
        differ = "differ" if test.p_value < material.offline.alpha else "are not shown to differ"
        words += f" Friedman's test: p = {p_value(test.p_value)} (paper 1.23e−7); the four {differ} at 5 %."
    return [words]


def _central_claim(material: Material) -> list[str]:
    effect = material.graph_effect
    return [] if effect.verdict == "not run" else [f"**What the graph does:** {plain(effect.sentence)}"]


def _claims(material: Material) -> list[str]:
    claims = material.claims
    counts = claims["holds_in_run"].value_counts()
    if not (counts.get("yes", 0) or counts.get("no", 0)):
        return []
    order = ["yes", "no", "undecided", "not run", "cannot be checked", "not comparable"]
    words = {
        "yes": "hold in this run",
        "no": "do not",
        "undecided": "are undecided for want of cells",
        "not run": "were not run",
    }
    parts = [f"{counts[key]} {words.get(key, plain(key))}" for key in order if counts.get(key, 0)]
    against = int((claims["holds_in_paper"] == "no").sum())
    own = (
        f" {against} of all {'does' if against == 1 else 'do'} not follow from the paper's own tables."
        if against
        else ""
    )
    return [f"**Of {plural(len(claims), 'statement')} in the paper's text and tables,** {', '.join(parts)}.{own}"]


def _others(material: Material) -> list[str]:
    """Where the paper's method stands among all that were run."""
    ranks = material.everyone.mean_ranks
    if len(ranks) < 2 or "NS-NMF" not in ranks.index:
        return []
    better = int((ranks < ranks["NS-NMF"]).sum())
    first = ranks.index[ranks == ranks.min()]
    place = (
        "no method has a better mean rank than NS-NMF" if not better else f"{better} rank better than NS-NMF on average"
    )
    return [
        f"**Among all {len(ranks)} methods** (those that saw the labels apart) on the "
        f"{plural(len(material.everyone.table), 'data set')} that all of them finished, {place}; the best mean rank is "
        f"that of {enumerate_names(first)} ({rank(float(ranks.min()))}; NS-NMF {rank(float(ranks['NS-NMF']))})."
    ]


def _gaps(material: Material) -> list[str]:
    rows = material.rows.drop_duplicates("key")
    missing = int((rows["status"] != "ok").sum())
    if not missing:
        return []
    return [f"**{missing:,} of {plural(len(rows), 'planned cell')} have no result;** see failures and marks."]


_CAPTIONS = {
    "TPR": "True detections of the five NMF methods (the paper's table TPR)",
    "TPRL": "True detections of NS-NMF and LoMST (the paper's table TPRL)",
    "TPRDL": "True detections of NS-NMF and the neural methods (the paper's table TPRDL)",
}
_MATCH, _OTHER_WAY = " ✓", "†"


def true_detections(material: Material) -> list[Block] | str:
    """Paper, our median and our best side by side, and as a picture per method."""
    if not material.detections:
        return "no method of the paper's tables has a result on one of its data sets"
    blocks: list[Block] = []
    drawn: set[str] = set()
    for name, table in material.detections.items():
        blocks += [Heading(3, _CAPTIONS[name]), _with_paper(table, _CAPTIONS[name], _marked(material)), _counts(table)]
        for method in pd.unique(table["method"]):
            lines = table[table["method"] == method]
            if method not in drawn and (lines["runs"] > 0).any():
                drawn.add(method)
                blocks.append(_picture(material, str(method), lines))
    return blocks


def _with_paper(table: pd.DataFrame, caption: str, marked: set[tuple[str, str]]) -> DataTable:
    methods = [str(method) for method in pd.unique(table["method"])]
    by_cell = {(line["dataset"], line["method"]): line for line in table.to_dict("records")}
    cells = []
    for dataset in in_paper_order(list(pd.unique(table["dataset"]))):
        line = [str(dataset)]
        for method in methods:
            cell = by_cell[dataset, method]
            mark = _MATCH if not pd.isna(cell["matches"]) and cell["matches"] else ""
            mark += _OTHER_WAY if (dataset, method) in marked else ""
            line += [count(cell["paper"]), count(cell["median"]) + mark, count(cell["best"])]
        cells.append(tuple(line))
    headers = ("data set", *(["paper", "median", "best"] * len(methods)))
    groups = (("", 1), *((method, 3) for method in methods))
    note = (
        f"{caption}: the paper's number, our median and our best over the seeds. ✓: the median matches; –: no result; "
        f"{_OTHER_WAY}: computed in another way (see Failures and marks)."
    )
    return DataTable(headers, tuple(cells), (False, *[True] * 3 * len(methods)), note, groups)


def _marked(material: Material) -> set[tuple[str, str]]:
    rows = rename_to_columns(material.rows, [*paper.true_positives, "LoMST", "AER", "DAGMM"])
    rows = rows[rows["mark"] != ""]
    return set(zip(rows["dataset"], rows["method"], strict=True))


def _counts(table: pd.DataFrame) -> DataTable:
    frame = match_counts(table).reset_index()
    titles = {
        "sets": "data sets",
        "run": "with a result",
        "best_matched": "best seed matches",
        "matched": "median matches",
        "mean_difference": "mean of ours − paper's",
        "mean_abs_difference": "mean distance",
    }
    numeric = dict.fromkeys([column for column in frame.columns if column != "method"], count)
    return make_table(
        frame, "On how many data sets we match the paper, and how far off we are.", numeric, titles=titles
    )


def _picture(material: Material, method: str, lines: pd.DataFrame) -> Picture:
    rows = rename_to_columns(material.rows, [method])
    done = rows[rows["status"] == "ok"]
    by_set = {line["dataset"]: line for line in lines.to_dict("records")}
    compared = [_compared(by_set[name], done[done["dataset"] == name]) for name in in_paper_order(list(by_set))]
    caption = (
        f"{plain(method)}: the paper's figure (ring) and ours (dot: median, bar: range over seeds), as a share of the "
        "anomalies. At the right: the paper's number | our median."
    )
    title = f"{method}: share of anomalies found per data set, the paper's figure and ours"
    return Picture(file_name("paper", method), draw_paper(compared, title), title, caption)


def _compared(line: dict[Any, Any], done: pd.DataFrame) -> Compared:
    """A line of a table of detections, and the rows it is the median of, as shares of the anomalies."""
    printed = float(paper.characteristics["anomalies"][line["dataset"]])
    shares = done["true_detections"] / done["n_anomalies"]
    words = f"{count(line['paper'])} | {count(line['median'])}" if len(done) else "not run"
    return Compared(
        name=str(line["dataset"]),
        paper=float(line["paper"]) / printed,
        median=float(shares.median()),
        lowest=float(shares.min()),
        highest=float(shares.max()),
        words=words,
    )


def performance_table(material: Material) -> list[Block] | str:
    """Table 3: on how many data sets a method is better, equal, close, worse."""
    table = material.performance
    if table.ours.dropna(axis=1, how="all").empty:
        return "the four offline methods have no data set in common that all of them finished"
    methods = list(table.paper.columns)
    cells = []
    for name in table.paper.index:
        shown = rank if name == "mean rank" else count
        line = [str(name)]
        for method in methods:
            line += [shown(float(figures[method][name])) for figures in (table.paper, table.ours)]
        cells.append(tuple(line))
    groups = (("", 1), *((method, 2) for method in methods))
    caption = (
        "Number of data sets on which a method is best alone, best with others, close to the best (at least 73 % of "
        f"it) or worse, and mean ranks. Ours over {plural(len(table.datasets), 'data set')}, the paper's over 20."
    )
    headers = ("", *(["paper", "ours"] * len(methods)))
    blocks: list[Block] = [DataTable(headers, tuple(cells), (False, *[True] * 2 * len(methods)), caption, groups)]
    if table.methods_missing:
        blocks.append(Paragraph(f"Not run: {enumerate_names(table.methods_missing)}."))
    if len(table.left_out):
        blocks.append(Paragraph(f"Left out, as not all four finished: {enumerate_names(_sets(table.left_out), 20)}."))
    return blocks


def _sets(left_out: pd.DataFrame) -> list[str]:
    return in_paper_order([str(name) for name in pd.unique(left_out["dataset"])])


def attributes(material: Material) -> list[Block] | str:
    """NS-NMF against LoMST, on data sets with few and with many attributes."""
    split = by_attributes(material.rows)
    ours = split.counts[split.counts["source"] == "our run"]
    if ours.empty or not (ours[["wins", "losses", "ties"]].sum().sum() > 0):
        return "NS-NMF and LoMST have no data set in common"
    titles = {"source": "figures of", "p_from": "attributes as in", "datasets": "data sets", "missing": "not run"}
    formats = dict.fromkeys(("wins", "losses", "ties", "datasets", "missing"), count)
    caption = "Data sets on which NS-NMF finds more anomalies than LoMST (wins), fewer (losses) or as many (ties)."
    return [make_table(split.counts, caption, formats, titles=titles)]


def other_variants(material: Material) -> list[Block] | str:
    """What the same method finds on other variants of the data, with the paper's figure."""
    rows = material.rows[(material.rows["part"] == "variants") & (material.rows["status"] == "ok")]
    if rows.empty:
        return "no other variant of a data set was run"
    known = variants()
    shares, counts = pivot(rows, "precision_at_n"), pivot(rows, "true_detections")
    lines = []
    for name in shares.index:
        of = str(known["of"].get(name, name))
        line: dict[str, object] = {"variant": name, "of": of, "anomalies": _first(rows, name, "n_anomalies")}
        line["rows"] = _first(rows, name, "n")
        line |= _of_the_paper(of)
        for method in shares.columns:
            line[method] = _both(counts.loc[name, method], shares.loc[name, method])
        lines.append(line)
    intro = (
        "Detections on other variants of the paper's data sets: with duplicates or without, before the anomalies were "
        "thinned out, or coded in another way. Where the numbers of anomalies differ, compare the shares."
    )
    table = make_table(
        pd.DataFrame(lines), "True detections, and their share of the anomalies.", {"rows": count, "anomalies": count}
    )
    return [Paragraph(intro), table]


def _of_the_paper(dataset: str) -> dict[str, str]:
    found, there = paper.true_positives["NS-NMF"], paper.characteristics["anomalies"]
    if dataset not in found.index:
        return {"NS-NMF, paper": "–"}
    return {"NS-NMF, paper": _both(found[dataset], found[dataset] / there[dataset])}


def _both(detections: float, share: float) -> str:
    """
    >>> _both(8.0, 0.8)
    '8 (80 %)'
    """
    return "–" if pd.isna(detections) else f"{detections:g} ({percent(share)})"


def _first(rows: pd.DataFrame, dataset: str, column: str) -> int:
    return int(rows.loc[rows["dataset"] == dataset, column].iloc[0])
