from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive import explanations as naive

from penstock.explain import rank_variables, split_unit
from penstock.explain.variables import in_words, units_of

COLUMNS = ["variable", "unit", "actual", "expected", "difference", "row", "share", "direction"]


@st.composite
def events(draw):
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    some = st.floats(-1e3, 1e3).map(lambda x: round(x, 6))  # squares that do not vanish, which the twin needs
    readings = st.one_of(st.integers(-2, 2).map(float), some, st.just(np.nan))
    actual, expected = (draw(arrays(np.float64, shape, elements=readings)) for _ in range(2))
    return actual, expected, draw(arrays(np.float64, shape[1], elements=st.sampled_from([0.5, 1.0, 10.0])))


@given(events())
def test_shares_and_extremes_are_the_naive_ones(event):
    actual, expected, scale = event
    names = [f"v{j}" for j in range(len(scale))]
    table = rank_variables(actual, expected, scale, names, n=99)
    shares = naive.shares(actual.tolist(), expected.tolist(), scale.tolist())
    assert list(table.columns) == COLUMNS
    found = dict(zip(table["variable"], table["share"], strict=True))
    np.testing.assert_allclose([found.get(name, 0.0) for name in names], shares, rtol=1e-12, atol=1e-300)
    assert (table["share"] > 0).all()
    assert (np.diff(table["share"]) <= 0).all()
    if len(table):
        assert table["share"].sum() == pytest.approx(1.0, rel=1e-12)
    for line in table.itertuples():
        j = names.index(line.variable)
        residual = np.abs(actual[:, j] - expected[:, j]) / scale[j]
        assert line.row == np.nanargmax(residual)
        assert (line.actual, line.expected) == (actual[line.row, j], expected[line.row, j])
        assert line.difference == line.actual - line.expected
        assert line.direction == ("above" if line.difference > 0 else "below")


def test_n_cuts_the_list_but_not_the_shares():
    actual = np.array([[3.0, 2.0, 1.0, 0.0]])
    table = rank_variables(actual, np.zeros((1, 4)), np.ones(4), list("abcd"), n=2)
    assert table["variable"].tolist() == ["a", "b"]
    np.testing.assert_allclose(table["share"], [9 / 14, 4 / 14], rtol=1e-15)


def test_ties_in_the_order_of_the_columns_and_of_the_rows():
    actual = np.array([[1.0, -2.0, 2.0], [1.0, 2.0, -2.0]])
    table = rank_variables(actual, np.zeros((2, 3)), np.ones(3), list("abc"))
    assert table["variable"].tolist() == ["b", "c", "a"]
    assert table["row"].tolist() == [0, 0, 0]
    assert table["direction"].tolist() == ["below", "above", "above"]


@pytest.mark.parametrize("m", [0, 2])
def test_nothing_to_tell(m):
    table = rank_variables(np.full((m, 2), np.nan), np.ones((m, 2)), np.ones(2), ["a", "b"])
    assert list(table.columns) == COLUMNS
    assert len(table) == 0
    assert table["row"].dtype.kind == "i"
    assert table["share"].dtype == np.float64


def test_a_column_that_was_constant_counts_in_units_of_itself():
    actual, expected = np.array([[6.0, 2.0, 1.0]]), np.array([[4.0, 0.0, 0.0]])
    table = rank_variables(actual, expected, np.array([0.0, 0.0, 1.0]), list("abc"))
    # residuals ½, 2 and 1
    np.testing.assert_allclose(table.set_index("variable")["share"][list("abc")], np.array([0.25, 4, 1]) / 5.25)


def test_huge_and_tiny_readings_count():
    actual, expected = np.array([[1.7e308, 3.0]]), np.array([[-1.7e308, 0.0]])
    table = rank_variables(actual, expected, np.array([np.inf, 1.0]), ["a", "b"])
    assert np.isfinite(table["share"]).all()
    np.testing.assert_allclose(table["share"].sum(), 1.0)
    tiny = rank_variables(np.array([[3e-283]]), np.array([[0.0]]), np.ones(1), ["a"])
    assert tiny["share"].tolist() == [1.0]
    alone = rank_variables(np.array([[1e300]]), np.array([[0.0]]), np.array([1e-300]), ["a"])
    assert alone["share"].tolist() == [1.0]


def test_units_given_or_named():
    one = np.array([[2.0, 1.0]]), np.zeros((1, 2)), np.ones(2), ["flow (m³/s)", "x"]
    assert rank_variables(*one)["unit"].tolist() == ["m³/s", ""]
    assert rank_variables(*one, units=["l/s", None])["unit"].tolist() == ["l/s", ""]
    assert rank_variables(*one)["variable"].tolist() == ["flow (m³/s)", "x"]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Temp [°C]", ("Temp", "°C")),
        ("flow (m³/s)", ("flow", "m³/s")),
        ("power / MW", ("power", "MW")),
        ("vibration_x[mm/s]", ("vibration_x", "mm/s")),
        ("speed (rpm)", ("speed", "rpm")),
        ("share (%)", ("share", "%")),
        ("heat (kJ/(kg K))", ("heat (kJ/(kg K))", "")),
        ("conductivity (µS/cm)", ("conductivity", "µS/cm")),
        ("density (kg/m^3)", ("density", "kg/m^3")),
        ("density (kg m-3)", ("density", "kg m-3")),
        ("efficiency [-]", ("efficiency", "")),
        ("things [furlongs]", ("things", "furlongs")),
        ("pump (old)", ("pump (old)", "")),
        ("pump (2)", ("pump (2)", "")),
        ("pump[2]", ("pump[2]", "")),
        ("pump (1)", ("pump (1)", "")),
        ("pump []", ("pump []", "")),
        ("in / out", ("in / out", "")),
        ("km/h", ("km/h", "")),
        ("[bar]", ("[bar]", "")),
        ("turbine_vibration", ("turbine_vibration", "")),
        ("", ("", "")),
    ],
)
def test_split_unit(name, parts):
    assert split_unit(name) == parts


@given(st.text(max_size=30))
def test_any_name_can_be_split(name):
    short, unit = split_unit(name)
    assert name.startswith(short)
    assert unit in name


def test_a_long_name_is_split_in_no_time():
    assert split_unit("m" * 20_000 + " (" + "m·" * 20_000) == ("m" * 20_000 + " (" + "m·" * 20_000, "")


def test_words():
    assert units_of(["a [m]"], ["ft"]) == ["ft"]
    assert in_words("a [m]", ">", 3.0, "ft") == "a [m] > 3 ft"
    assert in_words("a", ">", 1e-7, "") == "a > 1e-07"
    assert in_words("a", "<=", -120000.0, "") == "a <= -120000"
