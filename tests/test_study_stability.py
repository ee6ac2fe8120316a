"""Ranks with each seed by itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from study_rows import make_rows

from studies.ahmed2021.rows import COLUMNS
from studies.ahmed2021.stability import kendalls_w, stability


def test_seeds_that_all_agree() -> None:
    rows = make_rows(["A", "B", "C"], list("xyz"), detections=lambda m, d, s: "CBA".index(m))
    found = stability(rows)
    assert found.seeds == [0, 1, 2]
    assert found.datasets == list("xyz")
    assert (found.mean_ranks == [1, 2, 3]).all(axis=None)
    assert (found.agree_on_best, found.kendalls_w) == (1, 1)
    assert found.best.tolist() == ["A", "A", "A"]
    assert (found.per_dataset == 1).all(axis=None)
    assert (found.spread["deviation"] == 0).all()


def test_a_seed_that_tells_another_story() -> None:
    """With seed 2 A and C change places: one pair of seeds of three agrees on the best, and nothing on the order."""
    rows = make_rows(
        ["A", "B", "C"], list("xy"), detections=lambda m, d, s: "CBA".index(m) if s < 2 else "ABC".index(m)
    )
    found = stability(rows)
    assert found.best.tolist() == ["A", "A", "C"]
    assert found.agree_on_best == pytest.approx(1 / 3)
    assert found.kendalls_w == pytest.approx(1 / 9)  # rank sums 5, 6, 7 of three judges: 12 · 2 / (9 · 24)
    assert found.per_dataset.loc["x"].tolist() == pytest.approx([1 / 3, 1 / 9])
    spread = found.spread.set_index(["dataset", "method"])
    assert spread.loc[("x", "A"), ["seeds", "median", "lowest", "highest"]].tolist() == [3, 2, 0, 2]
    assert spread.loc[("x", "A"), "deviation"] == pytest.approx(np.std([2, 2, 0], ddof=1))


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame(columns=list(COLUMNS)),
        make_rows(status="failed", why="x"),
        make_rows(["A"]),
        make_rows(["LoMST"]),
        make_rows(seeds=(0,)),
    ],
    ids=["nothing", "all failed", "one method", "no seeds", "one seed"],
)
def test_too_little_to_say(rows: pd.DataFrame) -> None:
    found = stability(rows)
    assert np.isnan(found.agree_on_best)
    assert np.isnan(found.kendalls_w)


@given(st.integers(2, 6), st.integers(2, 5), st.integers(1, 6), st.randoms(use_true_random=False))
@examples(60)
def test_kendalls_w_is_its_definition(judges: int, items: int, top: int, random) -> None:
    table = pd.DataFrame([[random.randint(0, top) for _ in range(items)] for _ in range(judges)])
    found = kendalls_w(table)
    ranks = table.rank(axis=1)
    sums = ranks.sum()
    ties = sum(sum(size**3 - size for size in row.value_counts()) for _, row in table.iterrows())
    below = judges**2 * (items**3 - items) - judges * ties
    if below == 0:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(12 * ((sums - sums.mean()) ** 2).sum() / below, rel=1e-10, abs=1e-12)
