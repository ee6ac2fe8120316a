"""Write the outcome of the study: docs/reproduction.md, to be read, and the appendix with all tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from penstock.bench import Results
from penstock.report import refuse_existing, write_new
from studies.ahmed2021 import appendix, registry
from studies.ahmed2021.markdown import count, escape, names, number, p_value, points, rank, table
from studies.ahmed2021.outcome import COLLAPSED, CONTROLS, MATCHED_COLUMNS, Outcome, favourable_readings, lead
from studies.ahmed2021.plant import PAPER, PlantTables
from studies.ahmed2021.tables import OFFLINE

PAGE, APPENDIX = "reproduction.md", "reproduction_appendix.md"
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def write_study(
    results: Results, folder: str | os.PathLike[str], *, plant: PlantTables | None = None, overwrite: bool = False
) -> list[Path]:
    """Write reproduction.md and reproduction_appendix.md into a folder; unfinished studies are fine.

    Raises
    ------
    FileExistsError
        If one of the files is there already and `overwrite` is not set; nothing is written then.
    """
    paths = [Path(folder) / PAGE, Path(folder) / APPENDIX]
    refuse_existing(paths, overwrite)
    outcome = Outcome(results, plant)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for path, text in zip(paths, (to_page(outcome), appendix.to_page(outcome)), strict=True):
        write_new(path, [text.encode("utf-8", "replace")], overwrite)
    return paths


def to_page(outcome: Outcome) -> str:
    """Write the page: what was asked, what holds, what does not and by how much, and why.

    >>> from penstock.bench.results import frame_of
    >>> from studies.ahmed2021.rows import LABELS
    >>> to_page(Outcome(Results(frame_of([], {}, LABELS)))).splitlines()[0]
    '# What reproduces of Ahmed et al. (2021)'
    """
    sections = {
        "What was asked": _asked(outcome),
        "What holds": _statements(outcome, "yes"),
        "What does not, and by how much": _differs(outcome),
        "Why: the converged minimum collapses": _collapse(outcome),
        "Other readings of what the paper leaves open": _readings(outcome),
        "How much each open choice moves": _left_open(outcome),
        "Counts of detections, and what controls match": _matches(outcome),
        "The plant": _plant(outcome),
        "How it was run": _run(outcome),
    }
    parts = ["# What reproduces of Ahmed et al. (2021)"]
    for title, paragraphs in sections.items():
        parts += [f"## {title}", *(paragraphs or ["Not in this run."])]
    return "\n\n".join(parts) + "\n"


def _sets(number: int) -> str:
    """Name a number of the paper's data sets.

    >>> _sets(20), _sets(3), _sets(1)
    ('the twenty data sets', 'three of the twenty data sets', 'one of the twenty data sets')
    """
    if number == 20:
        return "the twenty data sets"
    return f"{_NUMBERS[number] if number < len(_NUMBERS) else number} of the twenty data sets"


def _asked(outcome: Outcome) -> list[str]:
    exact = registry.provenance()["exact"].value_counts()
    return [
        "The paper proposes NS-NMF, compares it with other methods on twenty data sets, and applies it to a power "
        "plant. We asked three things. Can every equation be computed? Do the paper's statistics follow from its own "
        "tables? Does a new implementation, with the settings that the paper prints, find what the paper reports?",
        "The first two can be answered with yes. Every equation and both algorithms have a function here and an "
        "independent slow program that agrees with it ([map](paper_map.md)). Mean ranks, Friedman's test and the "
        "counts of data sets follow from the paper's table of detections; three p-values of the post-hoc test do not, "
        "and that changes no conclusion. This page answers the third question.",
        f"It was asked on {_sets(len(outcome.datasets))}, with K = 5, α = 0.8, γ = 0.2, z = 20 and S = 1/M. The paper "
        "does not say how long its solver ran. So *converged* means here: until the minimum of eq:main is reached; "
        "Algorithm 1, block stochastic gradient descent, stands beside it. A method is measured by its true detections "
        f"among the N highest scores, N being the number of anomalies. Of the twenty files {exact.get('yes', 0)} have "
        f"the counts that the paper prints, {exact.get('reconstructed', 0)} are reconstructed, {exact.get('no', 0)} "
        "differ otherwise, most because Table 1 prints the size of the complete set beside the anomalies of a smaller "
        "one.",
    ]


_ASSESSED = {
    "yes": "hold",
    "no": "do not",
    "undecided": "are undecided, as cells are missing",
    "not run": "were not run",
    "not comparable": "cannot be compared",
}


def _statements(outcome: Outcome, holds: str) -> list[str]:
    """List the statements in words that hold, or do not; of the numbers, how many."""
    claims = outcome.claims
    counts = claims["holds_in_run"].value_counts()
    if not (counts.get("yes", 0) or counts.get("no", 0)):
        return []
    in_words = ~claims["stated"].str.fullmatch(r"[\d.e+-]+")
    chosen = claims[in_words & (claims["holds_in_run"] == holds)]
    numbers = int((~in_words & (claims["holds_in_run"] == holds)).sum())
    rest = f"The other {numbers} are numbers: the [appendix](reproduction_appendix.md) has them all."
    shown = chosen[["method", "claim", "from_our_run"]]
    listed = table(shown, titles={"claim": "statement", "from_our_run": "here"})
    if holds == "no":
        return [f"Statements in words that do not hold. {rest}", listed] if len(chosen) else [rest]
    listing = ", ".join(f"{counts[key]} {word}" for key, word in _ASSESSED.items() if counts.get(key, 0))
    text = (
        f"The paper makes {len(claims)} statements that can be checked. Of these {listing}. A statement was given the "
        "room that it deserves: two data sets for a count, 0.25 (a standard error) for a mean rank, the same side of "
        "0.01 for a p-value, a factor of two for a ratio of times."
    )
    return [f"{text} In words, these hold. {rest}", listed] if len(chosen) else [text, rest]


def _differs(outcome: Outcome) -> list[str]:
    found = outcome.readings
    if found.empty:
        return _statements(outcome, "no")
    here = found.iloc[0]
    others = ", ".join(f"{name} {rank(here[name])}" for name in OFFLINE[1:])
    place = ", the last of the four" if here["NS-NMF"] >= here[OFFLINE].max() else ""
    differ = "differ" if here["Friedman's p"] < _LEVEL else "do not differ"
    return [
        "The central result of the paper is that NS-NMF has the best mean rank of four offline methods, 1.20 (NMF "
        "3.10, GNMF 2.60, SNMF 3.10), and that the four differ significantly (p = 1.23e−7). Here, converged and on "
        f"{_sets(int(here['data sets']))}, its mean rank is **{rank(here['NS-NMF'])}**{place} ({others}), and the four "
        f"{differ} significantly (p = {p_value(here.iloc[-1])}).",
        *_algorithm_one(found),
        *_statements(outcome, "no"),
    ]


_LEVEL = 0.05


def _algorithm_one(found: pd.DataFrame) -> list[str]:
    """Say what Algorithm 1 gives, beside the converged minimum."""
    runs = found[found["reading"].str.contains("Algorithm 1")]
    if runs.empty:
        return []
    words = "; ".join(
        f"{escape(line['reading'])}: mean rank {rank(line['NS-NMF'])}, mean P@N {line['mean P@N']:.3f}"
        for _, line in runs.iterrows()
    )
    return [
        f"With Algorithm 1 instead of the converged minimum (mean P@N {found.iloc[0]['mean P@N']:.3f}) it is: {words}."
    ]


def _collapse(outcome: Outcome) -> list[str]:
    found = outcome.collapse
    if found.empty:
        return []
    low, rest = found[found["explained"] <= COLLAPSED], found[found["explained"] > COLLAPSED]
    lines = [
        [name, *(form(value) for form, value in zip(_FIGURES, figures, strict=True))] for name, *figures in _lines(low)
    ]
    if len(rest):
        columns = [figures for _, *figures in _lines(rest)]
        forms = [_share, _correlation, lambda held: _share(held[0]), number]  # of rows the share: tables differ in size
        ranges = [
            f"{form(min(values))} to {form(max(values))}"
            for form, values in zip(forms, zip(*columns, strict=True), strict=True)
        ]
        lines.append([f"the other {len(rest)}", *ranges])
    titles = ["data set", "rebuilt, ‖WH‖²/‖A‖²", "Spearman, score and ‖a‖", "rows with 90 % of ‖W‖²", "‖S‖²/‖A‖²"]
    shown = pd.DataFrame(lines, columns=titles)
    return [
        "Two rows at the distance d have the similarity 1/d, which has no upper bound. A few very near pairs then take "
        "all K groups, the rest of the table is rebuilt as next to nothing, and the score of a row is its norm ‖a‖. "
        f"The converged minimum does so on **{len(low)} of {len(found)}** data sets ({_share(COLLAPSED)} of ‖A‖² or "
        f"less is rebuilt; on {(found['explained'] <= 0.01).sum()} of them 1 % or less). A solver that stops early has "
        "not come that far: the paper's figures are nearer to such a lightly fitted model. `NSNMF` warns of the "
        "collapse (`explained_`), and a bounded similarity avoids it.",
        table(shown, str),
        _alpha(outcome, low),
    ]


def _lines(found: pd.DataFrame) -> list[tuple[str, float, float, tuple[float, float], float]]:
    held = [(k / n, k) for k, n in zip(found["rows_holding_most"], found["n"], strict=True)]
    shown = (found["dataset"], found["explained"], found["norm_rank_correlation"], held, found["structure_ratio"])
    return list(zip(*shown, strict=True))


def _share(value: float) -> str:
    return f"{100 * value:.2g} %"


def _correlation(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _held(value: tuple[float, float]) -> str:
    return f"{value[1]:,.0f} ({_share(value[0])})"


_FIGURES: tuple[Callable[[Any], str], ...] = (_share, _correlation, _held, number)


def _alpha(outcome: Outcome, low: pd.DataFrame) -> str:
    """Say what alpha can change where the structure term is so much larger."""
    if low.empty:
        return "No data set is collapsed, so that α can matter on all."
    ordered = low.sort_values("structure_ratio", kind="stable")
    least, most = ordered.iloc[0], ordered.iloc[-1]
    text = (
        "**α cannot matter there:** it weighs ‖A−WH‖² ≤ ‖A‖² against ‖S−WWᵀ‖², and ‖S‖²/‖A‖² is "
        f"{number(least['structure_ratio'])} ({escape(least['dataset'])}) to {number(most['structure_ratio'])} "
        f"({escape(most['dataset'])}). "
    )
    rows = outcome.rows
    cells = rows[(rows["sweep"] == "alpha") & (rows["status"] == "ok") & rows["dataset"].isin(low["dataset"])]
    found = cells.pivot_table(index="dataset", columns="value", values="true_detections", aggfunc="median").dropna()
    if min(found.shape) == 0 or found.shape[1] < 2:
        return text.strip()
    same = int((found.max(axis=1) == found.min(axis=1)).sum())
    values = [float(value) for value in found.columns]
    return text + (
        f"From α = {min(values):g} to {max(values):g} the number of true detections is the same on {same} of the "
        f"{len(found)} data sets. There, “not sensitive to alpha” follows from the collapse."
    )


def _readings(outcome: Outcome) -> list[str]:
    found = outcome.readings
    if found.empty:
        return []
    formats = {"data sets": count, "collapsed": count, "mean P@N": "{:.3f}".format, "Friedman's p": p_value}
    titles = {name: f"rank {name}" for name in OFFLINE}
    parts = [
        "The text can be read in several ways. Section 2.2 keeps the similarities of rows that the tree joins; "
        "Algorithm 1 says “pairwise MST distance matrix”, and section 2.3 speaks of several hops: then all pairs are "
        "similar, by the length of the path between them (*all pairs*). The structure term may weigh less, or have the "
        "Laplacian form. Each reading is converged, unless it says Algorithm 1. Each is ranked by P@N with NMF, GNMF "
        "and SNMF as the paper sets them. *Collapsed*: data sets on which at most 5 % is rebuilt.",
        table(found, formats | dict.fromkeys(OFFLINE, rank), titles=titles),
    ]
    best = favourable_readings(outcome.rows)
    if best.empty:
        return parts
    first = best.iloc[0]
    other, gain, low, high = lead(outcome.rows, str(first["reading"]))
    paper = found.iloc[0]
    parts.append(
        f"**The reading most in favour of the paper's claim** is *{escape(first['reading'])}*, the best of "
        f"{len(best)} configurations that have results on all {first['data sets']} data sets: mean rank "
        f"{rank(first['NS-NMF'])} instead of {rank(paper['NS-NMF'])} (NMF {rank(first['NMF'])}, GNMF "
        f"{rank(first['GNMF'])}, SNMF {rank(first['SNMF'])}), Friedman's p = {p_value(first.iloc[-1])}. Its mean P@N "
        f"minus that of {other}, the highest of the three, is {points(gain)} points (95 % interval {points(low)} to "
        f"{points(high)}). It was chosen by the very figures that it is compared by, so this is the most that can be "
        f"said for the claim: {_conclusion(first['NS-NMF'], float(first[OFFLINE[1:]].min()), low)}"
    )
    return parts


def _conclusion(ours: float, best_other: float, low: float) -> str:
    if low > 0 and ours < best_other:
        return "with it NS-NMF is better than the other three."
    if ours < best_other:
        return "NS-NMF then ranks first, but the difference is not significant."
    return "even then NS-NMF does not rank first."


def _left_open(outcome: Outcome) -> list[str]:
    found = outcome.left_open
    if found.empty:
        return []
    titles = {"of": "column", "values": "values tried", "moved": "data sets moved", "most": "largest change"}
    return [
        "Each line changes one thing that the paper does not say, with all else as in the paper. A data set is *moved* "
        "if some of the values match the paper's number of detections and others do not. The largest change is that of "
        "the number of true detections on one data set.",
        table(found, dict.fromkeys(("values", "data sets", "moved", "most"), count), titles=titles),
    ]


def _matches(outcome: Outcome) -> list[str]:
    found = outcome.matches
    if found.iloc[0, 1:].isna().all():
        return []
    sizes = ", ".join(f"{escape(column)} {each.compared}" for column, each in outcome.nearest.items())
    best = [_most(found[found["who"].isin(CONTROLS)][column]) for column in MATCHED_COLUMNS]
    own = [_most(found[found["who"] == "the method"][column]) for column in MATCHED_COLUMNS]
    beaten = [name for name, ours, control in zip(MATCHED_COLUMNS, own, best, strict=True) if 0 <= ours <= control]
    parts = [
        "A data set *matches* if the median of true detections is within 2, or 10 % if that is more, of the paper's "
        "number; in brackets, how many are exactly its number. Controls are simple scores that are none of the "
        "methods: the distance from the mean or the median, the norm of a row, what five principal components leave. "
        "A count that a control reaches too does not show that a method was rebuilt."
        + (
            " *Nearest* is the best of a grid of configurations, chosen by the paper's figures; *held out* chooses for "
            f"each data set by the others. Configurations: {sizes}."
            if sizes
            else ""
        ),
        table(found, dict.fromkeys(MATCHED_COLUMNS, str), titles={"who": f"matches, of {len(outcome.datasets)}"}),
    ]
    if beaten:
        parts.append(
            f"Some control matches the column of **{names(beaten)}** at least as often as the method itself does with "
            "the paper's settings. Online, the rows are in the order of our files; the paper does not give its order. "
            "GNMF at λ = 100 scores nearly the distance from the mean of a part of its graph, hence that control."
        )
    return parts


def _most(cells: pd.Series) -> int:
    """Return the largest of some counts; one that is not of all data sets does not compare."""
    return max((int(str(cell).split()[0]) for cell in cells.dropna() if " of " not in str(cell)), default=-1)


def _plant(outcome: Outcome) -> list[str]:
    plant = outcome.plant
    if plant is None:
        return []
    frame = pd.DataFrame(
        {
            name: {
                **{str(method): " / ".join(count(x) for x in lists.summary[method]) for method in lists.summary},
                "common to the four offline (the paper: 27)": count(lists.common_offline),
                "NS-NMF offline and online (46)": count(
                    float("nan") if lists.common_online is None else lists.common_online
                ),
            }
            for name, lists in plant.searches.items()
        }
    ).reset_index(names="")
    return [
        f"The paper's plant is private; ours is simulated ({plant.n_rows:,} rows, {plant.n_columns} columns, "
        f"{plant.n_faults} faults), so the numbers cannot be compared, only the pattern. Of the {plant.top} highest "
        "rows: in a fault / in a harmless look-alike / faults found. *The paper's settings*: S = 1/M, SNMF with the "
        f"full Gaussian graph, online marked on the fly (mean + 3 sd of the unmarked: {plant.marked:,} rows marked, "
        f"the {plant.top} highest listed). *Ours*: normalised S, SNMF's sparse graph, online with 0-1 similarities.",
        table(frame, dict.fromkeys(plant.searches, str)),
        _plant_summary(plant),
    ]


def _plant_summary(plant: PlantTables) -> str:
    lists, most = plant.searches[PAPER], max(int(each.summary.iloc[-1].max()) for each in plant.searches.values())
    return (
        f"With the paper's settings {lists.common_offline} rows are common to the four offline lists (the paper: 27), "
        f"and {lists.common_online} to offline and online NS-NMF (46). No list holds rows of more than "
        f"{most} of the {plant.n_faults} faults: a list of single rows fills with one long event."
    )


def _run(outcome: Outcome) -> list[str]:
    rows, results = outcome.rows.drop_duplicates("key"), outcome.results
    ended = rows["status"].value_counts()
    missing = ", ".join(f"{escape(status)} {ended[status]:,}" for status in ended.index if status != "ok")
    begun, end = results.started[:16].replace("T", " "), results.finished[11:16]
    return [
        f"{escape(begun or 'Time not recorded')} to {escape(end or 'not recorded')} UTC, "
        f"{escape(results.machine or 'machine not recorded')}; {len(rows):,} cells (method × data set × seed), "
        f"{ended.get('ok', 0):,} with a result{f' ({missing})' if missing else ''}, "
        f"{rows['cpu_seconds'].sum() / 60:,.0f} minutes of processor time. Seeds of the paper's methods: "
        f"{_seeds(outcome) or 'none'}. Settings: `studies/ahmed2021/settings.toml`; repeat it with `make study`. Every "
        "figure above is printed by `python -m studies.ahmed2021 report` from these cells; what has no result is "
        "named, never filled in. All tables are in the [appendix](reproduction_appendix.md).",
    ]


def _seeds(outcome: Outcome) -> str:
    """Say with how many seeds the paper's methods were run, on small and on large data sets."""
    done = outcome.main[(outcome.main["status"] == "ok") & outcome.main["seed"].notna() & (outcome.main["paper"] != "")]
    runs = done.groupby(["dataset", "method"])["seed"].nunique().groupby("dataset").max()
    sizes = {int(seeds): done["n"][done["dataset"].isin(runs.index[runs == seeds])] for seeds in runs.unique()}
    order = sorted(sizes, reverse=True)
    return ", ".join(
        f"{seeds} on {(runs == seeds).sum()} data sets (to {sizes[seeds].max():,.0f} rows)" for seeds in order
    )
