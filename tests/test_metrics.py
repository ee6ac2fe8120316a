from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import detection as naive_detect

from penstock.bench.metrics import average_precision, precision_at_n, roc_auc, true_detections

labelled = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=2, max_size=6).filter(
    lambda rows: 0 < sum(y for y, _ in rows) < len(rows)
)


@given(labelled, st.data())
@settings(max_examples=60, deadline=None)
def test_expected_over_all_orders(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    y, scores = zip(*rows, strict=True)
    n = data.draw(st.none() | st.integers(1, len(y)))
    assert precision_at_n(y, scores, n) == pytest.approx(naive_detect.precision_at_n(y, scores, n), abs=1e-12)


def test_detections_are_precision_times_n() -> None:
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, 50), rng.random(50)
    assert true_detections(y, scores) == pytest.approx(precision_at_n(y, scores) * y.sum())
    assert true_detections(y, scores, 50) == y.sum()


def test_auc_and_average_precision_of_a_perfect_ranking() -> None:
    assert roc_auc([0, 0, 1], [1.0, 2.0, 3.0]) == 1.0
    assert average_precision([0, 0, 1], [1.0, 2.0, 3.0]) == 1.0
    assert roc_auc([0, 1], [1.0, 1.0]) == 0.5


@pytest.mark.parametrize("measure", [precision_at_n, true_detections, roc_auc, average_precision])
def test_what_cannot_be_measured(measure) -> None:
    with pytest.raises(ValueError, match="0 of 3 rows are labelled anomalies"):
        measure([0, 0, 0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="3 of 3 rows are labelled anomalies"):
        measure([1, 1, 1], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"0 \(normal\) or 1 \(anomaly\); got \[-1, 1\]"):
        measure([1, -1, 1], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"one length; got \(2,\) and \(3,\)"):
        measure([1, 0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="row 1 is NaN"):
        measure([1, 0, 1], [1.0, np.nan, 3.0])


@pytest.mark.parametrize("n", [0, 4, -1])
def test_impossible_n(n: int) -> None:
    with pytest.raises(ValueError, match="between 1 and the number of rows, 3"):
        precision_at_n([1, 0, 1], [1.0, 2.0, 3.0], n)
