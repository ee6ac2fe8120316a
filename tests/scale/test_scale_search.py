"""New rows find the nearest fitted one in the parts' files as they would in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from penstock.graph.parts import common_frame, grow_part
from penstock.graph.search import search_over
from penstock.scale.tree import PartsSearch, load_frame, save_frame, save_part
from penstock.scale.workspace import save_array


def in_parts(folder: Path, rows: np.ndarray, part_of: np.ndarray) -> PartsSearch:
    """Rows, all different, in files as a job leaves them."""
    frame = common_frame(rows.min(axis=0), rows.max(axis=0), rows)
    save_array(folder / "rows.npy", rows)
    save_array(folder / "numbers.npy", np.arange(len(rows)))
    folders = []
    for part in np.unique(part_of):
        numbers = np.flatnonzero(part_of == part)
        folders.append(folder / f"tree-{part}")
        save_part(folders[-1], grow_part(rows[numbers], numbers, frame))
    return PartsSearch(frame, tuple(folders), folder / "numbers.npy", folder / "rows.npy")


def agree(found: tuple, expected: tuple) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@examples(25)
@given(seed=st.integers(0, 10**6), p=st.integers(1, 6), n_parts=st.integers(1, 5), grid=st.booleans())
def test_the_nearest_row_is_that_of_one_search_ties_included(tmp_path_factory, seed, p, n_parts, grid):
    rng = np.random.default_rng(seed)
    rows = np.unique(rng.integers(0, 5, (80, p)) / 4 if grid else rng.normal(size=(80, p)), axis=0)
    rows = rng.permutation(rows)
    guests = np.concatenate([rows[:9], rng.integers(0, 9, (30, p)) / 8, 10 * rng.normal(size=(5, p))])
    search = in_parts(tmp_path_factory.mktemp("parts"), rows, rng.integers(0, n_parts, len(rows)))
    agree(search.nearest_or_equal(guests), search_over(rows).nearest_or_equal(guests))


def test_beside_an_absurd_row(tmp_path):
    """The frame of such rows is precise, and stays so in its files."""
    rng = np.random.default_rng(1)
    rows, guests = rng.normal(size=(700, 3)), np.r_[rng.normal(size=(40, 3)), [[1e10, 0.0, 1e9]], [[1e30, 0.0, 1.0]]]
    rows[5] = 1e10
    search = in_parts(tmp_path, rows, (rows[:, 0] > 0).astype(int))
    agree(search.nearest_or_equal(guests), search_over(rows).nearest_or_equal(guests))
    distances = np.sqrt(((guests[:40, None] - rows[None]) ** 2).sum(axis=2))
    np.testing.assert_array_equal(search.nearest_or_equal(guests)[0][:40], distances.argmin(axis=1))
    save_frame(tmp_path / "frame", search.frame)
    loaded = load_frame(tmp_path / "frame")
    assert search.frame.precise
    assert loaded.precise
    np.testing.assert_array_equal(loaded.enter(rows).search, search.frame.enter(rows).search)


def test_rows_with_holes_are_compared_with_all(tmp_path):
    rng = np.random.default_rng(0)
    rows, guests = rng.uniform(size=(60, 3)), rng.uniform(size=(12, 3))
    guests[::2, 1] = np.nan
    search = in_parts(tmp_path, rows, (rows[:, 0] > 0.5).astype(int))
    agree(search.nearest_or_equal(guests), search_over(rows).nearest_or_equal(guests))


def test_fitted_rows_are_counted_not_rows_of_the_table(tmp_path):
    """Where copies were left out, numbers in the table have gaps."""
    rows, numbers = np.array([[0.0], [1.0], [5.0]]), np.array([3, 7, 9])
    frame = common_frame(rows.min(axis=0), rows.max(axis=0), rows)
    save_part(tmp_path / "tree", grow_part(rows, numbers, frame))
    save_array(tmp_path / "numbers.npy", numbers)
    save_array(tmp_path / "rows.npy", rows)
    search = PartsSearch(frame, (tmp_path / "tree",), tmp_path / "numbers.npy", tmp_path / "rows.npy")
    near, distances, equal = search.nearest_or_equal(np.array([[4.0], [1.0]]))
    assert (near.tolist(), distances.tolist(), equal.tolist()) == ([2, 1], [1.0, 0.0], [False, True])
