"""Whatever lies in a file, it is read or refused: quickly, and with one kind of error."""

from __future__ import annotations

import time
import tracemalloc

import hostile_tables
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.column_check import check_columns, choose_inputs
from penstock.tables import Table, TableError, read_table

HOSTILE = hostile_tables.hostile()
LONGEST = 10.0  # seconds, on a slow and busy machine; the slowest takes about one


def assert_sensible(table: Table) -> None:
    """What every table promises."""
    numeric = table.values.select_dtypes("number")
    assert len(table.values) >= 2
    assert numeric.shape[1] >= 1
    assert (numeric.dtypes == np.float64).all()
    assert not np.isinf(numeric.to_numpy()).any()
    assert np.isfinite(numeric.to_numpy()).any()
    assert len(set(table.names)) == len(table.names)
    for name in set(table.names) - set(numeric.columns):
        assert all(isinstance(value, str) for value in table.values[name].dropna())
    if table.time is not None:
        assert len(table.time) == len(table.values)
        assert table.time.is_monotonic_increasing
        assert not table.time.isna().any()
        assert table.time_name is not None


def test_there_are_enough_of_them():
    assert len(HOSTILE) + len(hostile_tables.dressed()) >= 400


@pytest.mark.parametrize("name", HOSTILE)
def test_read_or_refused(tmp_path, name):
    path = tmp_path / "table.csv"
    path.write_bytes(HOSTILE[name]())
    start = time.perf_counter()
    try:
        table = read_table(path)
        assert_sensible(table)
        choose_inputs(table, check_columns(table))
    except TableError as refusal:
        assert len(str(refusal)) < 600
        assert refusal.__cause__ is None
    assert time.perf_counter() - start < LONGEST


def test_an_endless_line_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "table.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n1,2\n3,")
        file.truncate(4 * 2**30)
    path.write_bytes(b"") if not path.exists() else None
    tracemalloc.start()
    try:
        with pytest.raises(TableError):
            read_table(path)
        assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(content)
    try:
        assert_sensible(read_table(path))
    except TableError:
        pass


@given(st.integers(1000, 10**6))
@settings(max_examples=60, deadline=None)
def test_more_patchwork_and_damage(tmp_path_factory, seed):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    for make in (hostile_tables.patchwork, hostile_tables.damaged):
        path.write_bytes(make(seed))
        try:
            table = read_table(path, timezone="Europe/Berlin")
            assert_sensible(table)
            check_columns(table)
        except TableError:
            pass
