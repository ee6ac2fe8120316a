"""Figures by matplotlib: what they draw, with and without time."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import penstock

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from penstock.report import figures  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    matplotlib.pyplot.close("all")


def found(with_time: bool):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 9)), columns=[f"sensor {k} [bar]" for k in range(9)])
    table.iloc[100:104, 2] += 15
    if with_time:
        table.insert(0, "time", pd.date_range("2024-05-01", periods=300, freq="10min"))
    return penstock.detect(table, top=6)


@pytest.mark.parametrize("with_time", [True, False])
def test_scores_threshold_and_findings_are_drawn(with_time):
    findings = found(with_time)
    axes = figures.plot_scores(findings)
    score, marks, threshold = axes.get_lines()
    np.testing.assert_array_equal(score.get_ydata(), findings.scores)
    np.testing.assert_array_equal(marks.get_ydata(), findings.scores[findings.flags])
    assert set(threshold.get_ydata()) == {findings.threshold}
    assert axes.get_xlabel() == ("time" if with_time else "row")


@pytest.mark.parametrize("with_time", [True, False])
def test_an_event_shows_actual_and_expected_with_units(with_time):
    findings = found(with_time)
    event = int(findings.grouped.of_row[102])
    figure = figures.plot_event(findings, event, n=3)
    first = figure.axes[0]
    assert len(figure.axes) == 3
    assert first.get_title(loc="left") == "sensor 2 [bar]"
    assert first.get_ylabel() == "bar"
    actual, expected = first.get_lines()
    assert actual.get_ydata().max() == findings.values["sensor 2 [bar]"].max()
    assert len(actual.get_ydata()) == len(expected.get_ydata()) > 4


def test_days_are_bars():
    findings = found(True)
    axes = figures.plot_days(findings)
    assert [bar.get_width() for bar in axes.patches] == findings.days["rows"].tolist()


def test_own_axes_are_used():
    axes = matplotlib.pyplot.subplots()[1]
    assert figures.plot_scores(found(False), axes) is axes


def test_without_matplotlib_it_is_said(monkeypatch):
    findings = found(False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"penstock\[plots\]"):
        figures.plot_scores(findings)
