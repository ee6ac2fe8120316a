"""Write the report of a study: one HTML page that loads and runs nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted
from penstock._pages import fill_template
from penstock.bench.results import (
    SERIES_MEASURES,
    Lead,
    Results,
    compare_rows,
    failures,
    find_lead,
    marks,
    method_summary,
    pivot,
    saw_labels,
)
from penstock.bench.significance import Comparison
from penstock.report import refuse_existing, write_new

PAGE = "study.html"
_MOST_FAILURES = 200  # listed one by one
_LONGEST_NAME = 22  # of a method in a drawing, in characters
_FEW = 10  # faults, anomalies or data sets: an interval over fewer is a hint
_EVENTS = (
    "Flagged rows at most six steps apart are one event; N is the number of faults. The threshold is lowered until "
    "there are N, or 2N, events. An event finds a fault if its highest score lies in it, or at most six "
    "steps after. False events and the delay from the start of a fault to its first flagged row are those at the "
    "threshold that finds half of the faults. VUS-PR counts rows near a fault in part (Paparrizos et al. 2022). The "
    "picture shows the first 2N events, and how many of them find a fault."
)
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


@dataclass(frozen=True)
class PageTable:
    """Formatted cells; `numeric` says which columns are numbers."""

    headers: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]


@dataclass(frozen=True)
class Section:
    """A titled part of the report; `figures` are drawings in SVG, on the page alone."""

    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[PageTable, ...] = ()
    code: str = ""
    figures: tuple[str, ...] = ()


def write_report(results: Results, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write study.html into a folder, wholly or not at all.

    Parameters
    ----------
    results : Results
        From `run_study` or `read_results`, complete or not.
    folder : path
        Where the page goes.
    overwrite : bool, default=False
        Replace a page that is there.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    FileExistsError
        If the page is there already and `overwrite` is not set.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from penstock.bench.results import COLUMNS
    >>> empty = Results(pd.DataFrame(columns=list(COLUMNS)), title="Pumps")
    >>> write_report(empty, tempfile.mkdtemp()).name
    'study.html'
    """
    page = Path(folder) / PAGE
    refuse_existing([page], overwrite)
    values = {"title": _one_line(results.title or "Study"), "sections": report_sections(results)}
    content = fill_template("bench", "report.html", values)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_new(page, [content.encode("utf-8", "replace")], overwrite)
    return page


def report_sections(results: Results) -> list[Section]:
    """Return what the report says, the answer first; sections without content are left out."""
    rows, made = results.rows, list[Section]()
    lead = find_lead(rows)
    if lead is not None:
        figures = (draw_intervals(lead, chance_level(rows)),)
        made.append(Section("Answer", tuple(answer(rows)), (format_methods(rows),), figures=figures))
        if rows["faults"].notna().any():
            shown = draw_events(rows, [str(name) for name in lead.table.index])
            made.append(Section("Faults and events", (_EVENTS,), (format_events(rows),), figures=shown))
    made.append(_about(results))
    used = rows.groupby("dataset", sort=False)[["n", "p", "n_anomalies"]].max().reset_index()
    if len(used):
        names = {"dataset": "data set", "n": "rows", "p": "inputs", "n_anomalies": "anomalies"}
        made.append(Section("Data", data_notes(rows), (format_table(used.rename(columns=names), "{:,.0f}"),)))
    table = pivot(rows, "average_precision")
    if len(table) > 1 and table.notna().any().any():
        wide = table.T.rename_axis(index="method", columns=None).reset_index()
        words = "Average precision on each data set, the median over seeds."
        made.append(Section("Each data set", (words,), (format_table(wide, "{:.3f}"),)))
        made += _ranks(compare_rows(rows[~saw_labels(rows)], measure="average_precision"))
    failed, marked = failures(rows), marks(rows)
    if len(failed) or len(marked):
        cut = (f"The first {_MOST_FAILURES} of {len(failed):,} lines.",) * (len(failed) > _MOST_FAILURES)
        shown_rows = [table.head(_MOST_FAILURES) for table in (failed, marked) if len(table)]
        names = {"dataset": "data set", "why": "because", "status": "ended"}
        tables = tuple(format_table(table.rename(columns=names), {"cells": "{:,.0f}"}) for table in shown_rows)
        made.append(Section("Cells without a result, or computed in another way", cut, tables))
    if results.settings_text.strip():
        command = " ".join(f"penstock bench --config study.toml {results.options} --folder study".split())
        words = f"Save these settings as study.toml, install the versions named above, and run: {command}"
        made.append(Section("Settings, and how to repeat this", (words,), code=results.settings_text.rstrip()))
    return made


def answer(rows: pd.DataFrame) -> list[str]:
    """Say which method is best, by how much and how sure that is; and what it finds in a series."""
    lead = find_lead(rows)
    if lead is None:
        return ["No method has a result on all data sets: there is nothing to compare."]
    table, best = lead.table, str(lead.table.index[0])
    first, others = table.loc[best], [str(name) for name in table.index[1:]]
    alike = [name for name in others if name not in lead.told_apart]
    known, few = bool(pd.notna(first["low"])), lead.n < _FEW
    if not others:
        headline = f"{best} is the only method with a result: there is nothing to compare it with."
    elif not known:
        tied = [str(name) for name in table.index[table["behind"] == 0]]
        who = f"{best} is best" if len(tied) == 1 else f"{', '.join(tied)} are equally good and best"
        headline = f"{who} here. How sure that is cannot be said from {lead.count}."
    elif alike:
        headline = f"{best} is best here, but not for sure: {', '.join(alike)} may be as good."
    elif few:
        headline = f"{best} is best here, as far as {lead.count} can tell: all others are below it."
    else:
        headline = f"{best} is best: all others are below it, with a certainty of 95 %."
    interval = f"95 % interval {first['low']:.3f} to {first['high']:.3f}; " if known else ""
    value = f"{best} has the highest average precision, {first['value']:.3f}"
    said = f"{value} ({interval}1 is perfect, an order by chance has {chance_level(rows):.2g})."
    if others:
        behind = table.iloc[1]
        said += f" Next is {others[0]}, {behind['behind']:.3f} below"
        low, high = (f"{behind[end]:.3f}" for end in ("behind_low", "behind_high"))
        share = f"{100 * first['first']:.0f} %"
        said += f" (95 % interval {low} to {high}; {best} is first in {share} of the draws)." if known else "."
    if known:
        hint = " These are few: take the intervals as a hint." if few else ""
        said += f" Intervals are of {lead.count} drawn with replacement.{hint}"
    return [headline, *_found_by(rows, best), said]


def _found_by(rows: pd.DataFrame, method: str) -> list[str]:
    """Say how many faults a method finds at what price, in a study of one series, and which one finds more."""
    known = rows[rows["faults"].notna()]
    if known["dataset"].nunique() != 1 or method not in set(known["method"]):
        return []
    every = known.groupby("method", sort=False)[list(SERIES_MEASURES)].median()
    figures, most = every.loc[[method]].iloc[0], every["in_n"].max()
    faults = int(figures["faults"])
    first_events = f"first {faults} events" if faults > 1 else "first event"
    said = (
        f"Of {counted(faults, 'fault')} it finds {figures['in_n']:.0f} in its {first_events} and "
        f"{figures['in_2n']:.0f} in its first {2 * faults}."
    )
    if most > figures["in_n"]:
        said += f" {', '.join(every.index[every['in_n'] == most])} finds more in its {first_events}: {most:.0f}."
    if np.isfinite(figures["false_per_day"]):
        said += (
            f" Where half of the faults are found there are {rate(figures['false_per_day'])} false events per day, and "
            f"a fault is seen {hours(figures['delay_hours'])} after it begins."
        )
    if np.isfinite(figures["sensor_first"]):
        said += (
            f" A true sensor is named first in {100 * figures['sensor_first']:.0f} % of the faults found, and among "
            f"three in {100 * figures['sensor_in_three']:.0f} %."
        )
    return [said]


def hours(value: float) -> str:
    """Write a duration in hours with its unit.

    >>> hours(0.5), hours(3.25), hours(100.0)
    ('30 min', '3.2 h', '4.2 days')
    """
    if np.isnan(value):
        return "–"
    return f"{60 * value:.0f} min" if value < 1 else f"{value:.1f} h" if value < 48 else f"{value / 24:.1f} days"


def rate(value: float) -> str:
    """Write a number with two digits, or whole.

    >>> rate(0.03124), rate(221.4)
    ('0.031', '221')
    """
    return "–" if np.isnan(value) else f"{value:.2g}" if value < 100 else f"{value:,.0f}"


def chance_level(rows: pd.DataFrame) -> float:
    """Return the average precision of an order by chance: the share of anomalies, as a mean over data sets."""
    sets = rows[rows["n"] > 0].drop_duplicates("dataset")
    shares = [row["detail"].get("share", row["n_anomalies"] / row["n"]) for row in sets.to_dict("records")]
    return float(np.mean(shares))


def data_notes(rows: pd.DataFrame) -> tuple[str, ...]:
    """Say how data sets were read: what was assumed, fitted to and missing."""
    said = []
    for name, some in rows.groupby("dataset", sort=False):
        known = {key: value for detail in some["detail"] for key, value in detail.items()}
        said += [f"{name}: {note}" for note in known.get("notes", ())]
        if "fitted" in known:
            anomalous = known.get("fitted_anomalies", 0)
            among = f", {anomalous:,} of them anomalous," if anomalous else ""
            said.append(
                f"{name}: methods were fitted to {known['fitted']:,} rows{among} and measured on the "
                f"{int(some['n'].max()) - known['fitted']:,} later ones."
            )
        if "missing" in known:
            said.append(
                f"{name}: {counted(known['missing'], 'value')} missing; methods that take no gaps saw the median of "
                "the column instead."
            )
    return tuple(said)


def _about(results: Results) -> Section:
    rows = results.rows.drop_duplicates("key")
    counts = rows["status"].value_counts()
    ended = ", ".join(f"{number:,} {status}" for status, number in counts.items())
    versions = ", ".join(f"{name} {version}" for name, version in (results.versions or {}).items())
    return Section(
        "How it was done",
        (
            "Columns are scaled to [0, 1] for all methods alike. Where several seeds were run, a number is their "
            "median; over several data sets, the mean of these.",
            f"Cells (method × data set × seed): {len(rows):,} planned{': ' if ended else ''}{ended}.",
            f"Started {results.started or 'at a time not recorded'}, last result {results.finished or 'not recorded'}, "
            f"on {_one_line(results.machine or 'a machine not recorded')}.",
            f"Versions: {_one_line(versions or 'not recorded')}.",
        ),
    )


def format_methods(rows: pd.DataFrame) -> PageTable:
    """Format each method in one line, the best first: measures with intervals, cost, failures."""
    summary, lead = method_summary(rows), find_lead(rows)
    order = [] if lead is None else list(lead.table.index)
    summary = summary.loc[[*order, *summary.index.difference(order, sort=False)]]
    made = pd.DataFrame({"method": summary.index}).set_index("method", drop=False)
    if rows["dataset"].nunique() > 1:
        made["data sets"] = summary["datasets"].map("{:,.0f}".format)
    made["AP"] = summary["mean_average_precision"]
    if lead is not None and lead.table["low"].notna().any():
        made["95 % interval"] = _span(lead.table, "low", "high")
        made["below the best"] = _span(lead.table, "behind_low", "behind_high").where(lead.table["behind"] > 0, "")
    made["P@N"], made["ROC-AUC"] = summary["mean_precision_at_n"], summary["mean_roc_auc"]
    made["CPU s"] = pivot(rows, "cpu_seconds").mean().map("{:,.2f}".format, na_action="ignore")
    without = summary["failures"] + summary["not_run"]
    if without.any():
        made["cells without result"] = without
    formats = dict.fromkeys(made.columns[1:], "{}") | dict.fromkeys(("AP", "P@N", "ROC-AUC"), "{:.3f}")
    return format_table(made, formats)


def _span(table: pd.DataFrame, low: str, high: str) -> pd.Series[str]:
    return table.apply(
        lambda row: f"{round(row[low], 3) + 0.0:.3f} to {row[high]:.3f}" if pd.notna(row[low]) else "–", axis=1
    )


def format_events(rows: pd.DataFrame) -> PageTable:
    """Format the measures of series, a line per method: means over data sets of the medians over seeds."""
    known = rows[rows["faults"].notna()]
    found = pd.DataFrame({name: pivot(known, name).mean() for name in SERIES_MEASURES})
    totals = {name: pivot(known, name).sum() for name in ("faults", "in_n", "in_2n")}
    made = pd.DataFrame({"method": found.index}).set_index("method", drop=False)
    made["VUS-PR"] = found["vus_pr"].map("{:.3f}".format)
    for name, title in (("in_n", "faults in first N events"), ("in_2n", "in first 2N")):
        made[title] = [f"{n:.0f} of {of:.0f}" for n, of in zip(totals[name], totals["faults"], strict=True)]
    made["false events per day"] = found["false_per_day"].map(rate)
    made["delay"] = found["delay_hours"].map(hours)
    if found["sensor_first"].notna().any():
        spans = zip(found["sensor_first"], found["sensor_in_three"], strict=True)
        made["true sensor first / in three"] = [
            "–" if np.isnan(a) else f"{100 * a:.0f} / {100 * b:.0f} %" for a, b in spans
        ]
    made = made.loc[found["vus_pr"].sort_values(ascending=False, kind="stable").index]
    return format_table(made, dict.fromkeys(made.columns[1:], "{}"))


_WIDTH, _LEFT, _ROW = 860, 170, 30  # of drawings, in pixels


def draw_intervals(lead: Lead, chance: float) -> str:
    """Draw the average precision of each method with its interval, the best on top."""
    table = lead.table
    top = float(np.nanmax(table[["value", "high"]].to_numpy()))
    top = next(limit for limit in (0.1, 0.2, 0.5, 1.0) if top <= limit or limit == 1.0)
    right, bottom = _WIDTH - 70, _ROW * len(table) + 8

    def x(value: float) -> float:
        return round(_LEFT + (right - _LEFT) * min(max(value, 0.0), top) / top, 1)

    parts = []
    for step in range(6):
        at = top * step / 5
        parts.append(f'<line class="grid" x1="{x(at)}" x2="{x(at)}" y1="4" y2="{bottom}"/>')
        parts.append(f'<text class="axis" x="{x(at)}" y="{bottom + 18}" text-anchor="middle">{at:.2g}</text>')
    if chance < top:
        parts.append(f'<line class="chance" x1="{x(chance)}" x2="{x(chance)}" y1="4" y2="{bottom}"/>')
    for at, (name, row) in enumerate(table.iterrows()):
        y, kind = _ROW * at + _ROW / 2 + 4, "best" if at == 0 else "other"
        parts.append(f'<text x="{_LEFT - 12}" y="{y + 5}" text-anchor="end" class="{kind}">{_label(name)}</text>')
        if pd.notna(row["low"]):
            parts.append(f'<line class="{kind} span" x1="{x(row["low"])}" x2="{x(row["high"])}" y1="{y}" y2="{y}"/>')
        parts.append(f'<circle class="{kind}" cx="{x(row["value"])}" cy="{y}" r="5.5"/>')
        parts.append(f'<text class="{kind}" x="{right + 14}" y="{y + 5}">{row["value"]:.3f}</text>')
    interval = " and its 95 % interval" if table["low"].notna().any() else ""
    words = f"average precision{interval}; dashed: an order by chance"
    middle = (_LEFT + right) / 2
    parts.append(f'<text class="axis" x="{middle}" y="{bottom + 38}" text-anchor="middle">{words}</text>')
    return _svg(parts, bottom + 46, f"Average precision of {len(table)} methods")


def draw_events(rows: pd.DataFrame, methods: Sequence[str]) -> tuple[str, ...]:
    """Draw the faults of a study of one series, and of each method the first 2N events; nothing for several series."""
    known = rows[rows["faults"].notna()]
    if known["dataset"].nunique() != 1:
        return ()
    events = {name: known.loc[known["method"] == name, "detail"].iloc[0]["events"] for name in methods}
    one = events[methods[0]]
    right, bottom = _WIDTH - 70, _ROW * (len(methods) + 1) + 8

    def box(first: int, last: int, y: float, height: float, kind: str) -> str:
        wide = (right - _LEFT) / one["rows"]
        width = max(3.0, (last - first + 1) * wide)
        x = min(_LEFT + first * wide, right - width)
        return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'

    parts = [box(first, last, 4, bottom - 4, "band") for first, last in one["faults"]]
    parts += [box(first, last, 9, _ROW - 12, "truth") for first, last in one["faults"]]
    parts.append(f'<text class="best" x="{_LEFT - 12}" y="{_ROW / 2 + 9}" text-anchor="end">known faults</text>')
    for at, name in enumerate(methods, 1):
        y, found = _ROW * at + 4, events[name]["found"]
        parts.append(f'<text x="{_LEFT - 12}" y="{y + _ROW / 2 + 5}" text-anchor="end">{_label(name)}</text>')
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y + _ROW / 2}" y2="{y + _ROW / 2}"/>')
        parts += [box(a, b, y + 5, _ROW - 10, "hit" if hit else "false") for a, b, hit in found]
        hits = sum(hit for *_, hit in found)
        parts.append(f'<text class="axis" x="{right + 14}" y="{y + _ROW / 2 + 5}">{hits} of {len(found)}</text>')
    for place, anchor, text in ((_LEFT, "start", one["begin"]), (right, "end", one["end"])):
        shown = escape(text[:16])
        parts.append(f'<text class="axis" x="{place}" y="{bottom + 18}" text-anchor="{anchor}">{shown}</text>')
    legend = (("hit", "finds a fault"), ("false", "finds none"))
    for at, (kind, words) in enumerate(legend):
        x = _LEFT + 190 * at
        parts.append(f'<rect class="{kind}" x="{x}" y="{bottom + 30}" width="12" height="12"/>')
        parts.append(f'<text class="axis" x="{x + 20}" y="{bottom + 41}">{words}</text>')
    return (_svg(parts, bottom + 50, "Known faults, and the first events of each method"),)


def _svg(parts: Iterable[str], height: float, title: str) -> str:
    head = f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
    return f"{head}{''.join(parts)}</svg>"


def _label(name: object) -> str:
    text = _one_line(name)
    return escape(text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…")


def _ranks(found: Comparison) -> Iterable[Section]:
    if found.mean_ranks.empty:
        return
    sets = counted(len(found.table), "data set")
    words = [f"Mean ranks by average precision over the {sets} that all methods finished; 1 is best."]
    if found.friedman is not None:
        test = found.friedman
        words.append(
            f"Friedman's test: χ² = {test.statistic:.2f} with {test.degrees_of_freedom} degrees of freedom, "
            f"p = {test.p_value:.3g}. By Nemenyi's test mean ranks differ at 5 % if they are more than "
            f"{found.critical_difference:.2f} apart."
        )
    words += [*found.notes, *(f"Not told apart by {found.groups_by}'s test: {', '.join(g)}." for g in found.groups)]
    words += [f"Without any result, and so not ranked: {', '.join(found.methods_missing)}."] * bool(
        found.methods_missing
    )
    words += ["Below: p-values of Conover's test (Bonferroni) and of Wilcoxon's signed-rank test (exact, Holm)."]
    tables = [format_table(found.mean_ranks.rename_axis(index="method").reset_index(), "{:.2f}")]
    for pairs in (found.conover, found.wilcoxon):
        if pairs is not None:
            tables.append(format_table(pairs.rename_axis(index="method", columns=None).reset_index(), "{:.3g}"))
    yield Section("Ranks and tests", tuple(words), tuple(tables))


def format_table(frame: pd.DataFrame, formats: str | Mapping[str, str]) -> PageTable:
    """Format a frame: its first column and those without a format are names, the others numbers; "–" where missing."""
    columns = [str(column) for column in frame.columns]
    by_column = dict.fromkeys(columns[1:], formats) if isinstance(formats, str) else formats

    def shown(value: Any, form: str | None) -> str:
        if pd.isna(value):
            return "–"
        return _one_line(value) if form is None else form.format(value)

    cells = [[shown(value, by_column.get(name)) for value in frame.iloc[:, at]] for at, name in enumerate(columns)]
    return PageTable(
        tuple(map(_one_line, columns)), tuple(zip(*cells, strict=True)), tuple(n in by_column for n in columns)
    )


def _one_line(text: object) -> str:
    """Replace line breaks, characters that cannot be seen, and those that turn the direction of text."""
    return _INVISIBLE.sub("�", " ".join(str(text).split())) or " "
