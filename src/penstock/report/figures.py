"""Figures for a paper or a notebook, by matplotlib (extra `plots`); the HTML report draws its own.

>>> import matplotlib
>>> matplotlib.use("Agg")
>>> import numpy as np, pandas as pd, penstock
>>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 9))).add_prefix("sensor_")
>>> findings = penstock.detect(rows, top=5)
>>> plot_scores(findings).get_ylabel()
'anomaly score'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.detection import Findings
from penstock.report.axis import event_span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of Okabe and Ito's palette, which the colour-blind can distinguish, and which prints well.
_NORMAL, _FOUND, _EXPECTED = "#0072B2", "#D55E00", "#000000"
_CONTEXT = 1.5  # lengths of an event that are shown before and after it
_FEWEST_ROWS = 12  # of context
_NUMBERED = 10  # incidents, the most severe


def plot_scores(findings: Findings, axes: Axes | None = None) -> Axes:
    """Scores over time with the threshold; findings are marked by triangles, incidents are shaded and numbered."""
    axes = _axes(axes)
    places = _places(findings)
    for incident in findings.incidents:
        label = f"{len(findings.incidents)} incidents" if incident.number == 1 else None
        span = places[incident.start], places[incident.end]
        axes.axvspan(*span, color=_FOUND, alpha=0.25, linewidth=1, label=label)
        if incident.rank <= _NUMBERED:
            at_top = axes.get_xaxis_transform()  # y from 0 to 1 of the axes
            axes.text(span[0], 1.0, f"{incident.number}", transform=at_top, va="bottom", fontsize="small", color=_FOUND)
    axes.plot(places, findings.scores, color=_NORMAL, linewidth=0.6, label="score")
    found = findings.flags
    axes.plot(places[found], findings.scores[found], "^", color=_FOUND, markersize=4, label=f"{found.sum()} findings")
    axes.axhline(findings.threshold, color=_EXPECTED, linestyle="--", linewidth=0.8, label="threshold")
    axes.set_ylabel("anomaly score")
    axes.set_xlabel(findings.table.time_name or "row")
    axes.legend(loc="upper right", frameon=False)
    return axes


def plot_event(findings: Findings, event: int, n: int = 4) -> Figure:
    """The n variables with the largest shares of an event, as in `explain`: actual, expected, and the event shaded."""
    pyplot = _pyplot()
    word = "rebuilt" if findings.rebuilt else "expected"
    variables = findings.explain(event).variables.head(n)
    figure: Figure
    figure, axes = pyplot.subplots(
        max(len(variables), 1), 1, sharex=True, squeeze=False, figsize=(7, 1.6 * max(len(variables), 1) + 0.8)
    )
    span = event_span(findings, event)
    rows = _around(span, len(findings.scores))
    places = _places(findings)
    for axis, name, unit in zip(axes[:, 0], variables["variable"], variables["unit"], strict=False):
        axis.axvspan(places[span.start], places[span.stop - 1], color=_FOUND, alpha=0.15, linewidth=0)
        axis.plot(places[rows], findings.values[name].to_numpy()[rows], color=_NORMAL, marker=".", label="actual")
        axis.plot(places[rows], findings.expected[name].to_numpy()[rows], color=_EXPECTED, ls="--", label=word)
        axis.set_title(str(name), loc="left", fontsize="small")
        axis.set_ylabel(unit)
    axes[0, 0].legend(loc="upper right", frameon=False, fontsize="small")
    figure.autofmt_xdate()
    figure.tight_layout()
    return figure


def plot_days(findings: Findings, axes: Axes | None = None) -> Axes:
    """How many findings fall on each of the days that have any."""
    axes = _axes(axes)
    days = findings.days
    axes.barh([str(day)[:10] for day in days.index], days["rows"], color=_FOUND)
    axes.invert_yaxis()
    axes.set_xlabel("findings")
    return axes


def _around(span: slice, n: int) -> Any:
    margin = max(_FEWEST_ROWS, int(_CONTEXT * (span.stop - span.start)))
    return np.arange(max(0, span.start - margin), min(n, span.stop + margin))


def _places(findings: Findings) -> Any:
    time, rows = findings.table.time, findings.table.values.index
    if time is None and rows.is_monotonic_increasing:
        return rows.to_numpy()
    return time.to_numpy() if time is not None and findings.table.in_time else np.arange(len(rows))


def _axes(axes: Axes | None) -> Axes:
    if axes is not None:
        return axes
    made: Axes = _pyplot().subplots(figsize=(8, 3), layout="constrained")[1]
    return made


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("Figures need matplotlib: pip install 'penstock[plots]'.") from None
    return pyplot
