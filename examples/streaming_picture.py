"""Online NS-NMF on a real series, and the picture of it in docs/streaming.md.

    python examples/streaming_picture.py [file.png]

Reads `industrial/NAB_machine_temperature_system_failure.csv.gz` from the folder that PENSTOCK_DATA names: a temperature
in a large machine, every five minutes for eleven weeks, with a window around each of four labelled moments (Numenta
Anomaly Benchmark). As the detector wants several columns, a sample is the last hour: twelve readings. The labels are
only drawn and counted. Needs matplotlib (`pip install matplotlib`).
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock import OnlineNSNMF
from penstock.thresholds import DriftingPeaks, MeanDeviation, PeaksOverThreshold, RollingQuantile, Threshold

FILE = "NAB_machine_temperature_system_failure.csv.gz"
HOUR, WEEK = 12, 2016  # in readings
BLUE, VERMILLION, BLACK, GREY = "#0072B2", "#D55E00", "#000000", "#D9D9D9"  # Okabe and Ito's, told apart by all eyes


class Series(NamedTuple):
    """The readings; whether each lies in a labelled window; each window's first, last and labelled reading."""

    t: pd.Series[pd.Timestamp]
    value: NDArray[np.float64]
    labelled: NDArray[np.bool_]
    windows: list[tuple[int, int]]
    moments: list[int]


class ScoredStream(NamedTuple):
    """Per reading; NaN and False where the detector has no score yet."""

    scores: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    flags: NDArray[np.bool_]


def read_series() -> Series:
    folder = Path(os.environ.get("PENSTOCK_DATA", "")) / "industrial"
    if not os.environ.get("PENSTOCK_DATA") or not (folder / FILE).is_file():
        raise SystemExit(f"PENSTOCK_DATA must name a folder with industrial/{FILE}.")
    table = pd.read_csv(folder / FILE, parse_dates=["t"])
    labelled = table["outlier"].to_numpy() == 1
    edges = np.flatnonzero(np.diff(np.concatenate([[False], labelled, [False]]).astype(np.int8)))
    windows = [(int(first), int(after) - 1) for first, after in edges.reshape(-1, 2)]
    moments = np.flatnonzero(table["point_label"].to_numpy() == 1).tolist()
    return Series(table["t"], table["value"].to_numpy(), labelled, windows, moments)


def score(series: Series, threshold: Threshold) -> ScoredStream:
    """Warm up for a week, then score each hour as it ends."""
    hours = np.lib.stride_tricks.sliding_window_view(series.value, HOUR)
    detector = OnlineNSNMF(similarity="binary", warmup=WEEK, threshold=threshold, random_state=0)
    result = detector.process(hours, n_variables=0)
    before = HOUR - 1  # readings without a full hour behind them
    return ScoredStream(
        np.concatenate([np.full(before, np.nan), result.scores]),
        np.concatenate([np.full(before, np.nan), result.thresholds]),
        np.concatenate([np.zeros(before, dtype=np.bool_), result.flags]),
    )


def count_alarms(flags: NDArray[np.bool_], joined_within: int = 6 * HOUR) -> int:
    """Flags less than six hours apart are one alarm."""
    at = np.flatnonzero(flags)
    return int(len(at) > 0) + int((np.diff(at) > joined_within).sum())


def report(series: Series, scores: NDArray[np.float64]) -> None:
    """What each threshold makes of these scores, and one of them of a score that needs no method."""
    print("| scores | threshold | flags in windows 1–4 | flags outside | alarms outside |")
    print("| --- | --- | ---: | ---: | ---: |")
    for threshold in (MeanDeviation(), rolling(), PeaksOverThreshold(), DriftingPeaks(depth=288)):
        show("online NS-NMF", series, threshold, scores)
    distance = np.abs(series.value - series.value[:WEEK].mean())
    show("\\|reading − mean of week 1\\|", series, rolling(), np.where(np.isnan(scores), np.nan, distance))


def show(what: str, series: Series, threshold: Threshold, scores: NDArray[np.float64]) -> None:
    flags = threshold.update_many(scores)
    inside = ", ".join(str(int(flags[first : last + 1].sum())) for first, last in series.windows)
    outside = flags & ~series.labelled
    print(f"| {what} | `{threshold!r}` | {inside} | {outside.sum()} | {count_alarms(outside)} |")


def describe(series: Series, scored: ScoredStream) -> None:
    """When the flags of the picture came."""
    print()
    for number, ((first, last), moment) in enumerate(zip(series.windows, series.moments, strict=True), 1):
        flagged = first + np.flatnonzero(scored.flags[first : last + 1])
        when = f"{(flagged[0] - moment) / HOUR:+.1f} h" if len(flagged) else "never"
        before = int((flagged < moment).sum())
        print(f"window {number}, labelled {series.t[moment]}: first flag {when}, {before} of {len(flagged)} before it")
    outside = np.flatnonzero(scored.flags & ~series.labelled)
    days = dict.fromkeys(f"{series.t[i].day} {series.t[i]:%b}" for i in outside)
    print(f"{scored.flags.sum()} flags among {np.isfinite(scored.scores).sum()} scores.")
    print(f"Outside the windows on {', '.join(days)}.")


def draw(series: Series, scored: ScoredStream, file: Path) -> None:
    import_module("matplotlib").use("Agg")
    plt: Any = import_module("matplotlib.pyplot")  # not an import, as types are checked without it too
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(4.5, 4.4), layout="constrained")
    t = series.t.to_numpy()
    for number, (first, last) in enumerate(series.windows, 1):
        for axes in (above, below):
            axes.axvspan(
                t[first], t[last], color=GREY, linewidth=0, zorder=0, label="labelled" if number == 1 else None
            )
        middle = t[first] + (t[last] - t[first]) / 2
        above.annotate(str(number), (middle, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom")

    above.plot(t, series.value, color=BLUE, linewidth=0.6)
    above.set_ylabel("temperature")

    below.plot(t, scored.scores, color=BLUE, linewidth=0.5, label="score")
    below.plot(t, scored.thresholds, color=BLACK, linestyle=(0, (4, 1.5)), linewidth=1.2, label="threshold")
    flagged = scored.flags
    below.plot(t[flagged], scored.scores[flagged], "x", color=VERMILLION, markersize=3.5, label="flagged")
    below.set_yscale("log")
    below.yaxis.set_major_formatter("{x:g}")
    below.set_ylabel("score (log scale)")
    below.annotate("warm-up", (t[WEEK // 2], 0.5), xycoords=("data", "axes fraction"), ha="center", rotation=90)
    below.set_xlim(t[0], t[-1])
    days = pd.date_range(t[0], t[-1], normalize=True)
    below.set_xticks(ticks := days[days.day.isin((1, 15))], [f"{day.day} {day:%b}" for day in ticks])
    below.set_xticks(days[days.day.isin((8, 22))], minor=True)
    below.set_xlabel("December 2013 to February 2014")
    figure.legend(*below.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(file, dpi=200, metadata={"Software": None})


def rolling() -> RollingQuantile:
    return RollingQuantile(rate=0.01, window=WEEK)


def main() -> None:
    series = read_series()
    scored = score(series, rolling())
    report(series, scored.scores)
    describe(series, scored)
    default = Path(__file__).resolve().parent.parent / "docs" / "images" / "streaming.png"
    draw(series, scored, Path(sys.argv[1]) if len(sys.argv) > 1 else default)


if __name__ == "__main__":
    main()
