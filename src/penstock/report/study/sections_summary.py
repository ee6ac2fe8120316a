"""What reproduces and what does not: sentences made from the numbers, which say no more than these."""

from __future__ import annotations

import pandas as pd

from penstock.bench import paper
from penstock.bench.tables import match_counts, tolerance
from penstock.report.study.blocks import Block, Bullets, Paragraph, plain
from penstock.report.study.material import Material
from penstock.report.study.words import enumerate_names, p_value, plural, rank


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
