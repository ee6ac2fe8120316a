"""Whether another variant of a data set explains what the study's own does not."""

from __future__ import annotations

import pandas as pd

from penstock.bench import paper
from penstock.bench.registry import variants
from penstock.bench.tables import pivot
from penstock.report.study.blocks import Block, Paragraph, make_table
from penstock.report.study.material import Material
from penstock.report.study.words import count, percent


def other_variants(material: Material) -> list[Block] | str:
    """What the same method finds on other variants of the data, beside the paper's figure."""
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
