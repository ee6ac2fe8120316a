"""Write the report of a study: one HTML page that loads and runs nothing, and Markdown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from penstock._messages import counted
from penstock.bench.results import Results, compare_rows, failures, marks, method_summary, pivot, saw_labels
from penstock.bench.significance import Comparison
from penstock.report import refuse_existing, write_new

PAGE, TEXT = "study.html", "study.md"
_MOST_FAILURES = 200  # listed one by one
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#$@:])")

_METHOD_FORMATS = {
    **dict.fromkeys(("data sets", "failed cells", "cells not run"), "{:,.0f}"),
    **dict.fromkeys(("P@N", "average precision", "ROC-AUC"), "{:.3f}"),
    "mean rank": "{:.2f}",
}


@dataclass(frozen=True)
class Table:
    """Formatted cells; `numeric` says which columns are numbers."""

    headers: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]


@dataclass(frozen=True)
class Section:
    """A titled part of the report."""

    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    code: str = ""


def write_report(
    results: Results,
    folder: str | os.PathLike[str],
    *,
    markdown: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write study.html and study.md into a folder, each wholly or not at all.

    Parameters
    ----------
    results : Results
        From `run_study` or `read_results`, complete or not.
    folder : path
        Where the files go.
    markdown : path, optional
        Where the Markdown goes, if not to study.md in the folder.
    overwrite : bool, default=False
        Replace files that are there.

    Returns
    -------
    list of Path
        The page and the Markdown.

    Raises
    ------
    FileExistsError
        If one of the files is there already and `overwrite` is not set; nothing is written then.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    page, text = Path(folder) / PAGE, Path(folder) / TEXT if markdown is None else Path(markdown)
    refuse_existing([page, text], overwrite)
    sections, title = report_sections(results), _one_line(results.title or "Study")
    loader = PackageLoader("penstock.bench", "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    rendered = environment.get_template("report.html").render(title=title, sections=sections)
    for path, content in ((page, rendered), (text, _markdown(title, sections))):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, [content.encode("utf-8", "replace")], overwrite)
    return [page, text]


def report_sections(results: Results) -> list[Section]:
    """Return what the report says; sections without content are left out."""
    rows, made = results.rows, [_about(results)]
    used = rows.groupby("dataset", sort=False)[["n", "p", "n_anomalies"]].max().reset_index()
    if len(used):
        names = {"dataset": "data set", "n": "rows", "p": "inputs", "n_anomalies": "anomalies"}
        made.append(Section("Data sets", (), (format_table(used.rename(columns=names), "{:,.0f}"),)))
    if (rows["status"] == "ok").any():
        words = (
            "Means over the data sets that a method finished, of the medians over seeds; ranks by precision at N (P@N) "
            "over those that all methods finished, 1 is best. Compare means only where the numbers of data sets agree."
        )
        made.append(Section("Methods", (words,), (format_methods(rows),)))
    table = pivot(rows, "precision_at_n")
    if table.notna().any().any():
        words = "The share of the N anomalies that is among the N highest scores; the median over seeds."
        wide = table.T.rename_axis(index="method", columns=None).reset_index()
        made.append(Section("P@N on each data set", (words,), (format_table(wide, "{:.3f}"),)))
    made += _ranks(compare_rows(rows[~saw_labels(rows)]))
    failed, marked = failures(rows), marks(rows)
    if len(failed) or len(marked):
        cut = (f"The first {_MOST_FAILURES} of {len(failed):,} lines.",) * (len(failed) > _MOST_FAILURES)
        shown = [table.head(_MOST_FAILURES) for table in (failed, marked) if len(table)]
        names = {"dataset": "data set", "why": "because", "status": "ended"}
        tables = tuple(format_table(table.rename(columns=names), {"cells": "{:,.0f}"}) for table in shown)
        made.append(Section("Cells without a result, or computed in another way", cut, tables))
    if results.settings_text.strip():
        command = " ".join(f"penstock bench --config study.toml {results.options} --folder study".split())
        words = f"Save these settings as study.toml, install the versions named above, and run: {command}"
        made.append(Section("Settings, and how to repeat this", (words,), code=results.settings_text.rstrip()))
    return made


def _about(results: Results) -> Section:
    rows = results.rows.drop_duplicates("key")
    counts = rows["status"].value_counts()
    ended = ", ".join(f"{number:,} {status}" for status, number in counts.items())
    versions = ", ".join(f"{name} {version}" for name, version in (results.versions or {}).items())
    return Section(
        "About this study",
        (
            "Methods on labelled data sets. Where several seeds were run, a number is their median. Columns are scaled "
            "to [0, 1] for all methods alike.",
            f"Cells (method × data set × seed): {len(rows):,} planned{': ' if ended else ''}{ended}.",
            f"Started {results.started or 'at a time not recorded'}, last result {results.finished or 'not recorded'}, "
            f"on {_one_line(results.machine or 'a machine not recorded')}.",
            f"Versions: {_one_line(versions or 'not recorded')}.",
        ),
    )


def format_methods(rows: pd.DataFrame) -> Table:
    """Format each method in one line: measures, mean rank, failures."""
    names = {
        "method": "method",
        "datasets": "data sets",
        "mean_precision_at_n": "P@N",
        "mean_average_precision": "average precision",
        "mean_roc_auc": "ROC-AUC",
        "mean_rank": "mean rank",
        "failures": "failed cells",
        "not_run": "cells not run",
    }
    return format_table(method_summary(rows).reset_index()[list(names)].rename(columns=names), _METHOD_FORMATS)


def _ranks(found: Comparison) -> Iterable[Section]:
    if found.mean_ranks.empty:
        return
    sets = counted(len(found.table), "data set")
    words = [f"Mean ranks by P@N over the {sets} that all methods finished; 1 is best."]
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


def format_table(frame: pd.DataFrame, formats: str | Mapping[str, str]) -> Table:
    """Format a frame: its first column and those without a format are names, the others numbers; "–" where missing."""
    columns = [str(column) for column in frame.columns]
    by_column = dict.fromkeys(columns[1:], formats) if isinstance(formats, str) else formats

    def shown(value: Any, form: str | None) -> str:
        if pd.isna(value):
            return "–"
        return _one_line(value) if form is None else form.format(value)

    cells = [[shown(value, by_column.get(name)) for value in frame.iloc[:, at]] for at, name in enumerate(columns)]
    return Table(
        tuple(map(_one_line, columns)), tuple(zip(*cells, strict=True)), tuple(n in by_column for n in columns)
    )


def _markdown(title: str, sections: Iterable[Section]) -> str:
    parts = [f"# {_escaped(title)}"]
    for section in sections:
        parts += [f"## {_escaped(section.title)}", *map(_escaped, section.paragraphs)]
        for table in section.tables:
            rule = ["---:" if number else "---" for number in table.numeric]
            lines = [[*map(_escaped, table.headers)], rule, *([*map(_escaped, row)] for row in table.cells)]
            parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
        if section.code:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", section.code)), default=0))
            parts.append(f"{fence}toml\n{section.code}\n{fence}")
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _one_line(text).replace("&", "&amp;"))


def _one_line(text: object) -> str:
    """Replace line breaks, characters that cannot be seen, and those that turn the direction of text."""
    return _INVISIBLE.sub("�", " ".join(str(text).split())) or " "
