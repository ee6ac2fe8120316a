"""Draw the figures of the study as SVG with matplotlib. The same numbers make the same text."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from penstock.report.words import number, percent
from studies.ahmed2021.report.words import seconds

# Okabe and Ito's colours; with dashes and markers lines differ in grey print too.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f")
_DASHES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D", "v")
_SOFT, _FAINT = "#55606b", "#e9ecef"
_STYLE: Any = {
    "axes.edgecolor": _SOFT,
    "axes.grid": True,
    "axes.labelcolor": _SOFT,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "font.size": 9.0,
    "grid.color": _FAINT,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "penstock",
    "text.parse_math": False,  # names may hold dollar signs
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
}


@dataclass(frozen=True)
class Compared:
    """One data set: shares of its anomalies found, and the text at the right. NaN: not known."""

    name: str
    paper: float
    median: float
    lowest: float
    highest: float
    words: str


@dataclass(frozen=True, eq=False)
class Curve:
    """`values` of the setting, the mean at each, and the single lines (a row each, NaN where not run) behind it."""

    name: str
    values: Sequence[Any]
    means: Sequence[float]
    single: np.ndarray[Any, np.dtype[np.float64]]


class _Sheet:
    """A figure under way; `svg` is its text once the block has ended."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.svg = ""


@contextmanager
def _sheet(title: str, height: float, width: float = 7.4) -> Iterator[_Sheet]:
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        sheet = _Sheet(figure.add_subplot())
        yield sheet
        content = io.StringIO()
        figure.savefig(content, format="svg", metadata={"Date": None, "Title": title, "Creator": None})
        sheet.svg = content.getvalue()


def draw_boxes(groups: Mapping[str, Sequence[float]], title: str, axis: str) -> str:
    """Draw lying box plots of shares, a row per group with all its points and its median; empty groups say so.

    >>> draw_boxes({"NMF": [0.1, 0.5, 0.9], "SNMF": []}, "P@N", "P@N").count("not run")
    1
    """
    with _sheet(title, 0.8 + 0.3 * len(groups)) as sheet:
        axes = sheet.axes
        for place, values in enumerate(groups.values()):
            known = [float(value) for value in values if math.isfinite(value)]
            words = percent(float(np.median(known))) if known else "not run"
            axes.text(1.02, place, words, va="center", transform=axes.get_yaxis_transform())
            if known:
                axes.boxplot(
                    [known],
                    positions=[place],
                    orientation="horizontal",
                    widths=0.6,
                    showfliers=False,
                    manage_ticks=False,
                    medianprops={"color": "black", "linewidth": 2},
                )
                spread = 0.15 * np.sin(np.arange(len(known)))
                axes.plot(sorted(known), place + spread, "o", color=_COLOURS[0], alpha=0.65, markersize=3.5)
        axes.set(xlim=(-0.02, 1.02), ylim=(len(groups) - 0.5, -0.5), xlabel=axis)
        axes.set_yticks(range(len(groups)), list(groups))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
    return sheet.svg


def draw_paper(rows: Sequence[Compared], title: str) -> str:
    """Draw a row per data set: a ring for the paper, a dot for our median, a bar over our seeds.

    >>> "4 | 3" in draw_paper([Compared("Glass", 0.44, 0.33, 0.22, 0.44, "4 | 3")], "NS-NMF")
    True
    """
    with _sheet(title, 1.0 + 0.24 * len(rows)) as sheet:
        axes, places = sheet.axes, np.arange(len(rows))
        lowest, highest = (np.array([getattr(row, name) for row in rows]) for name in ("lowest", "highest"))
        axes.hlines(places, lowest, highest, color=_COLOURS[4], linewidth=4)
        axes.plot([row.median for row in rows], places, "o", color=_COLOURS[0], label="ours: median, range over seeds")
        ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": "black", "markersize": 9}
        axes.plot([row.paper for row in rows], places, "o", label="the paper", **ring)
        for place, row in enumerate(rows):
            axes.text(1.02, place, row.words, va="center", transform=axes.get_yaxis_transform())
        axes.set(xlim=(-0.02, 1.02), ylim=(len(rows) - 0.5, -0.5))
        axes.set_xlabel("share of the anomalies that was found (P@N)")
        axes.set_yticks(places, [row.name for row in rows])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return sheet.svg


def draw_ranks(
    mean_ranks: Mapping[str, float], groups: Sequence[Sequence[str]], critical_difference: float, title: str
) -> str:
    """Draw a critical-difference diagram after Demšar (2006): mean ranks on an axis, bars over groups.

    >>> "CD = 0.90" in draw_ranks({"A": 1.2, "B": 1.8}, [("A", "B")], 0.9, "Mean ranks")
    True
    """
    ranked = sorted(mean_ranks.items(), key=lambda item: (item[1], item[0]))
    several = [group for group in groups if len(group) > 1]
    low, high = math.floor(min(mean_ranks.values())), math.ceil(max(mean_ranks.values()))
    high = max(high, low + 1)
    left = (len(ranked) + 1) // 2
    top = 0.6 + 0.3 * len(several)
    with _sheet(title, 1.7 + 0.1 * len(several) + 0.22 * left) as sheet:
        axes = sheet.axes
        axes.set(xlim=(low - 0.02 * (high - low), high + 0.02 * (high - low)), ylim=(top + left, -2.6))
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.spines["top"].set_visible(True)
        axes.spines["top"].set_position(("data", 0.0))
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xticks(range(low, high + 1, 1 if high - low <= 12 else 2))
        axes.set_xlabel("mean rank, 1 is best")
        axes.yaxis.set_major_locator(NullLocator())
        axes.grid(visible=False)
        for place, (method, value) in enumerate(ranked):
            to_left = place < left
            y = top + (place if to_left else len(ranked) - 1 - place)
            edge = low if to_left else high
            axes.plot([value, value, edge], [0, y, y], color=_SOFT, linewidth=1)
            words = f"{method}  {value:.2f}" if to_left else f"{value:.2f}  {method}"
            offset, side = (-4, "right") if to_left else (4, "left")
            axes.annotate(words, (edge, y), (offset, 0), textcoords="offset points", ha=side, va="center")
        for level, group in enumerate(several):
            ends = [mean_ranks[method] for method in group]
            y = 0.3 + 0.3 * level
            axes.plot([min(ends) - 0.02, max(ends) + 0.02], [y, y], color="black", linewidth=3.5)
        if math.isfinite(critical_difference):
            axes.plot([low, low + critical_difference], [-1.9, -1.9], "|-", color="black", linewidth=1.2)
            axes.text(low, -2.1, f"CD = {critical_difference:.2f}", va="bottom")
    return sheet.svg


def draw_grid(
    rows: Sequence[str], columns: Sequence[str], values: Mapping[tuple[str, str], float], title: str, rows_are: str
) -> str:
    """Draw shares by row and column, written and shaded, the higher the darker.

    >>> draw_grid(["symmetric"], ["tree", "5 nearest"], {("symmetric", "tree"): 0.4}, "P@N", "form").count("not run")
    1
    """
    table = np.array([[values.get((row, column), math.nan) for column in columns] for row in rows])
    known = table[np.isfinite(table)]
    middle = (known.min() + known.max()) / 2 if len(known) else 0.0
    with _sheet(title, 0.8 + 0.5 * len(rows), 1.6 + 1.3 * len(columns)) as sheet:
        axes = sheet.axes
        axes.imshow(np.ma.masked_invalid(table), cmap="Blues", aspect="auto")
        for (row, column), value in np.ndenumerate(table):
            words, colour = ("not run", _SOFT) if math.isnan(value) else (percent(value), "black")
            axes.text(column, row, words, ha="center", va="center", color="white" if value > middle else colour)
        axes.set_xticks(range(len(columns)), list(columns))
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set_ylabel(rows_are)
        axes.xaxis.tick_top()
        axes.grid(visible=False)
    return sheet.svg


def draw_times(lines: Mapping[str, Sequence[tuple[int, float]]], title: str) -> str:
    """Draw run times against numbers of rows, both logarithmic, a line per method.

    >>> "NMF" in draw_times({"NMF": [(100, 0.02), (10_000, 3.0)], "SNMF": [(100, 0.1)]}, "Run times")
    True
    """
    with _sheet(title, max(4.2, 0.22 * len(lines))) as sheet:
        axes = sheet.axes
        for place, (name, pairs) in enumerate(lines.items()):
            known = sorted((n, max(time, 1e-4)) for n, time in pairs if time >= 0)
            if known:
                axes.plot(*zip(*known, strict=True), label=name, alpha=0.8, **_line(place))
        axes.set(xscale="log", yscale="log", xlabel="rows of the data set", ylabel="time of a fit")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds(value)))
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return sheet.svg


def draw_curves(
    curves: Sequence[Curve], title: str, across_name: str, up_name: str, shown: Callable[[float], str] = percent
) -> str:
    """Draw a mean against a setting: numbers (logarithmic where they span decades) or words, in their order.

    A single curve is drawn over the thin lines of its data sets; of two or three, the middle half is shaded.

    >>> one = Curve("NMF", [1, 10, 100], [0.2, 0.5, 0.4], np.array([[0.1, 0.5, 0.3], [0.3, 0.5, 0.5]]))
    >>> "NMF" in draw_curves([one], "K", "K", "P@N")
    True
    """
    every = list(dict.fromkeys(value for curve in curves for value in curve.values))
    numeric = all(isinstance(value, int | float) and math.isfinite(value) for value in every)
    every = sorted(every) if numeric else every
    positive = [value for value in every if numeric and value > 0]
    decades = bool(positive) and max(positive) > 30 * min(positive)
    even = not numeric or (decades and len(positive) < len(every))  # words, or decades and 0: side by side
    places = {value: float(place if even else value) for place, value in enumerate(every)}
    with _sheet(title, 3.4) as sheet:
        axes = sheet.axes
        for place, curve in enumerate(curves):
            at = [places[value] for value in curve.values]
            single = np.asarray(curve.single, dtype=float)
            style = _line(place)
            if len(curves) == 1 and len(single):
                axes.plot(at, single.T, color=style["color"], linewidth=0.9, alpha=0.35)
            elif len(curves) <= 3 and len(single) >= 4 and np.isfinite(single).all():
                low, high = np.quantile(single, [0.25, 0.75], axis=0)
                axes.fill_between(at, low, high, color=style["color"], alpha=0.13, linewidth=0)
            axes.plot(at, curve.means, label=curve.name, linewidth=2.2, **style)
        if decades and not even:
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
        names = [number(value) if isinstance(value, int | float) else str(value) for value in every]
        axes.set_xticks(list(places.values()), names)
        axes.set(xlabel=across_name, ylabel=up_name)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value)))
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return sheet.svg


def _line(place: int) -> dict[str, Any]:
    """Choose colour, dashes and marker of the line with this number."""
    hollow = {"markerfacecolor": "white"} if (place // len(_MARKERS)) % 2 else {}
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "linestyle": _DASHES[place % len(_DASHES)],
        "marker": _MARKERS[place % len(_MARKERS)],
        "markersize": 5,
        **hollow,
    }
