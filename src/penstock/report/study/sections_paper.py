"""The paper's tables of true detections, and Table 3, beside ours."""

from __future__ import annotations

from typing import Any

import pandas as pd

from penstock.bench import paper
from penstock.bench.chosen_rows import rename_to_columns
from penstock.bench.tables import by_attributes, match_counts
from penstock.report.study.blocks import Block, DataTable, Heading, Paragraph, Picture, make_table, plain
from penstock.report.study.draw_paper import Compared, draw_paper
from penstock.report.study.material import Material, in_paper_order
from penstock.report.study.names import file_name
from penstock.report.study.words import count, enumerate_names, plural, rank

_CAPTIONS = {
    "TPR": "True detections of the five NMF methods (the paper's table TPR)",
    "TPRL": "True detections of NS-NMF and LoMST (the paper's table TPRL)",
    "TPRDL": "True detections of NS-NMF and the neural methods (the paper's table TPRDL)",
}
_MATCH, _OTHER_WAY = " ✓", "†"


def true_detections(material: Material) -> list[Block] | str:
    """Paper, our median and our best beside each other, and as a picture per method."""
    if not material.detections:
        return "no method of the paper's tables has a result on one of its data sets"
    blocks: list[Block] = []
    drawn: set[str] = set()
    for name, table in material.detections.items():
        blocks += [Heading(3, _CAPTIONS[name]), _beside(table, _CAPTIONS[name], _marked(material)), _counts(table)]
        for method in pd.unique(table["method"]):
            lines = table[table["method"] == method]
            if method not in drawn and (lines["runs"] > 0).any():
                drawn.add(method)
                blocks.append(_picture(material, str(method), lines))
    return blocks


def _beside(table: pd.DataFrame, caption: str, marked: set[tuple[str, str]]) -> DataTable:
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
    title = f"{method}: share of anomalies found per data set, the paper's figure beside ours"
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
