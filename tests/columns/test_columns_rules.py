"""Rules about rows: what they mean, that they can be read again, and what is refused; durations."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import rules as naive
from strategies import examples

from penstock._parameters import ParameterError
from penstock.columns import parse_rule
from penstock.io import Table, parse_duration, read_table

NUMBERS = ["a", "b.2", "Öl [°C]", "a`b", "not"]
TEXTS = ["state", "Zustand 2"]
WORDS = ["on", "off", "it's", 'a "b" c', "a", "", "5", "and"]
SIGNS = [">", ">=", "<", "<=", "==", "!="]
SPELLINGS = {"==": ["==", "="], "and": ["and", "&", "AND"], "or": ["or", "|", "Or"], "not": ["not ", "!", "NOT "]}
BARE = {"a", "b.2", "state", "on", "off"}
TIME = pd.date_range("2024-05-01", periods=6, freq="12h")


def table_of(columns: dict[str, list[object]], time: pd.DatetimeIndex | None = None) -> Table:
    values = {
        name: pd.Series(column, dtype="float64" if name in NUMBERS else None) if column else column
        for name, column in columns.items()
    }
    return Table(pd.DataFrame(values), time, None if time is None else "Zeit", None, "plant.csv", ())


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[object]]:
    n = draw(st.integers(1, 6))
    numbers = st.sampled_from([math.nan, -1.0, 0.0, 2.0, 2.5, 1e20])
    columns: dict[str, list[object]] = {name: draw(st.lists(numbers, min_size=n, max_size=n)) for name in NUMBERS}
    texts = st.none() | st.sampled_from(WORDS)
    return columns | {name: draw(st.lists(texts, min_size=n, max_size=n)) for name in TEXTS}


@st.composite
def comparisons(draw: st.DrawFn):
    """Chains of columns and numbers, without two numbers side by side, or texts; as a tuple."""
    if draw(st.booleans()):
        sides = [("column", draw(st.sampled_from(TEXTS))), draw(st.one_of(_column(TEXTS), _value(WORDS)))]
        if draw(st.booleans()):
            sides.reverse()
        return ("compare", sides[0], draw(st.sampled_from(["==", "!="])), sides[1])
    chain: list[object] = []
    for _ in range(draw(st.integers(2, 4))):
        numbers_may_follow = not chain or chain[-2][0] == "column"
        value = _value([-1.0, 0.0, 2.0, 2.5, 1e20, 1e-7]) if numbers_may_follow else st.nothing()
        chain += [draw(st.one_of(_column(NUMBERS), value)), draw(st.sampled_from(SIGNS))]
    return ("compare", *chain[:-1]) if any(side[0] == "column" for side in chain[::2]) else ("missing", "a")


def _column(names: list[str]):
    return st.tuples(st.just("column"), st.sampled_from(names))


def _value(values: list[object]):
    return st.tuples(st.just("value"), st.sampled_from(values))


RULES = st.recursive(
    comparisons() | st.tuples(st.just("missing"), st.sampled_from(NUMBERS + TEXTS)),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner, inner),
    ),
    max_leaves=6,
)


def write(rule, pick) -> str:
    """A rule as a person may write it; `pick` chooses among spellings."""
    kind, *parts = rule
    if kind in ("and", "or"):
        return f" {pick(SPELLINGS[kind])} ".join(_bracketed(part, pick, kind) for part in parts)
    if kind == "not":
        return pick(SPELLINGS["not"]) + _bracketed(parts[0], pick, "not")
    if kind == "missing":
        return f"{_name(parts[0], pick)} is missing"
    spelled = [_side(*part, pick) if isinstance(part, tuple) else pick(SPELLINGS.get(part, [part])) for part in parts]
    return pick([" ", "  "]).join(spelled)


def _bracketed(rule, pick, outside: str) -> str:
    looser = {"not": 0, "and": 1, "or": 2}
    needed = rule[0] in ("and", "or") and looser[rule[0]] >= looser[outside]
    return f"({write(rule, pick)})" if needed or pick([False, True]) else write(rule, pick)


def _name(name: str, pick) -> str:
    return name if name in BARE and pick([False, True]) else "`" + name.replace("`", "``") + "`"


def _side(kind: str, value, pick) -> str:
    if kind == "column":
        return _name(value, pick)
    if isinstance(value, float):
        return pick([repr(value), f"{value:g}", f"{value:.3e}"])
    quote = pick(["'", '"'])
    return quote + value.replace(quote, 2 * quote) + quote


@given(RULES, tables(), st.data())
@examples(150)
def test_rules_mean_what_the_slow_way_says(rule, columns, data):
    text = write(rule, lambda choices: data.draw(st.sampled_from(choices)))
    read, table = parse_rule(text), table_of(columns)
    rows = [{name: column[row] for name, column in columns.items()} for row in range(len(table.values))]
    expected = [naive.truth(rule, row) for row in rows]
    assert read.holds(table).tolist() == [truth is True for truth in expected]
    assert read.truth(table)[1].tolist() == [truth is None for truth in expected]
    again = parse_rule(str(read))
    assert again == read
    assert str(again) == str(read)


@given(st.text(max_size=60) | st.text(alphabet="a5 .'\"`()&|!<>=andortis-", max_size=60))
@examples(250)
def test_any_text_is_a_rule_or_refused_and_can_be_read_again(text):
    try:
        rule = parse_rule(text)
    except ParameterError:
        return
    assert parse_rule(str(rule)) == rule


PLANT = table_of({"a": [1.0, 6.0, math.nan, 6.0], "b.2": [9.0, math.nan, 9.0, 1.0], "state": ["on", "off", None, "b"]})


@pytest.mark.parametrize(
    ("text", "holds", "unknown"),
    [
        ("a > 5 or b.2 > 5", "TTTT", "...."),
        ("a > 5 and b.2 > 5", "....", ".uu."),
        ("not a > 5", "T...", "..u."),
        ("a > b.2", "...T", ".uu."),
        ("a is missing or state is missing", "..T.", "...."),
        ("a IS NOT Missing", "TT.T", "...."),
        ("not a is missing", "TT.T", "...."),
        ("a == 1 or a == 6 and b.2 == 1", "T..T", ".uu."),
        ("(a == 1 or a == 6) and b.2 == 1", "...T", ".u.."),
        ("state == b", "...T", "..u."),
        ("'on' = state", "T...", "..u."),
        ("1 < a ≤ 6 ≠ b.2", "...T", ".uu."),
        ("a >= 6 | state == on", "TT.T", "..u."),
    ],
)
def test_missing_readings_that_decide(text, holds, unknown):
    rule = parse_rule(text)
    assert "".join("T" if held else "." for held in rule.holds(PLANT)) == holds
    assert "".join("u" if open_ else "." for open_ in rule.truth(PLANT)[1]) == unknown


def test_a_bare_word_after_equal_is_a_column_if_there_is_one():
    rule = parse_rule("state == other")
    with_column = table_of({"a": [1.0, 1.0], "state": ["on", "other"], "other": ["on", "off"]})
    without = table_of({"a": [1.0, 1.0], "state": ["on", "other"]})
    assert rule.holds(with_column).tolist() == [True, False]
    assert rule.holds(without).tolist() == [False, True]
    assert rule.columns == ("state",)
    assert parse_rule("state == 'other'").holds(with_column).tolist() == [False, True]
    for text in ("state == `other`", "other == state", "'on' == other"):
        with pytest.raises(ParameterError, match="no column 'other'"):
            parse_rule(text).holds(without)


def test_the_names_of_a_rule():
    rule = parse_rule("5 < `oil [°C]` < limit and not (flow is missing or flow > 3) and time > '2024' and `time` > 3")
    assert rule.columns == ("oil [°C]", "limit", "flow", "time")
    assert parse_rule("time > '2024-05-01'").columns == ()


@pytest.mark.parametrize("kind", ["object", "string", "str", "category"])
def test_every_kind_of_text_column(kind):
    values = pd.DataFrame({"s": pd.Series(["on", None, "off"], dtype=kind), "t": ["on", "on", "on"]})
    table = Table(values, None, None, None, "plant.csv", ())
    for text in ("s == on", "s == t", "t == s"):
        assert parse_rule(text).holds(table).tolist() == [True, False, False]
        assert parse_rule(text).truth(table)[1].tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("time >= '2024-05-02'", "..TTTT"),
        ("time > '2024-05-02'", "....TT"),
        ("time <= '2024-05-02'", "TTTT.."),
        ("time < '2024-05-02'", "TT...."),
        ("time == '2024-05-02'", "..TT.."),
        ("time != '20240502'", "TT..TT"),
        ("time > '2024-05-02 00:00'", "...TTT"),
        ("'2024-05-01 12:00' <= time < \"2024-05-03T00:00\"", ".TTT.."),
        ("time == '2024-05'", "TTTTTT"),
        ("time > '2024-04' and time < '2024-06'", "TTTTTT"),
        ("time > '2024-12' or time < '2023-12'", "......"),
        ("time <= '9999-12-31' and time <= '9999-12' and time >= '0001-01-01' and time > '0001-01'", "TTTTTT"),
        ("time is missing", "......"),
    ],
)
def test_time(text, rows):
    expected = [row == "T" for row in rows]
    for time in (TIME, TIME.as_unit("ns"), TIME.tz_localize("Europe/Berlin"), TIME.tz_localize("America/New_York")):
        table = table_of({"a": [math.nan] * 6}, time)
        assert parse_rule(text).holds(table).tolist() == expected
        assert not parse_rule(text).truth(table)[1].any()


def test_time_in_zones():
    day = pd.date_range("2024-10-27", periods=25, freq="h", tz="Europe/Berlin")  # the day has 25 hours
    table = table_of({"a": [1.0] * 25}, day)
    assert parse_rule("time == '2024-10-27'").holds(table).sum() == 25
    assert parse_rule("time < '2024-10-27 02:00'").holds(table).sum() == 2
    assert parse_rule("time < '2024-10-27 02:00+01:00'").holds(table).sum() == 3
    with pytest.raises(ParameterError, match="has a zone, but those of the table have none"):
        parse_rule("time < '2024-10-27 02:00Z'").holds(table_of({"a": [1.0] * 6}, TIME))


def test_a_column_called_time_comes_first():
    table = Table(pd.DataFrame({"time": [1.0, 3.0]}), TIME[:2], "Zeit", None, "plant.csv", ())
    assert parse_rule("time > 2").holds(table).tolist() == [False, True]
    text = table_of({"state": ["time", "on"]})
    assert parse_rule("state == time").holds(text).tolist() == [True, False]


@pytest.mark.parametrize(
    ("rule", "resolved"),
    [
        ("state == wanted", "state == `wanted`"),
        ("not (state != off or power > 5)", "not (state != 'off' or power > 5)"),
        ("state == it", "state == 'it'"),
        ("power == speed", "power == `speed`"),
        ("power is missing and state == off", "power is missing and state == 'off'"),
        ("5 < power and state == 'wanted'", "5 < power and state == 'wanted'"),
    ],
)
def test_a_resolved_rule_is_definite_and_reads_the_same(rule, resolved):
    frame = pd.DataFrame({"power": [1.0, 9.0], "speed": [1.0, 2.0], "state": ["off", "on"], "wanted": ["on", "on"]})
    table = read_table(frame)
    found = parse_rule(rule).resolved(table)
    assert str(found) == resolved
    assert parse_rule(resolved) == found
    assert found.perhaps_columns == ()
    assert found.holds(table).tolist() == parse_rule(rule).holds(table).tolist()


def test_rules_that_cannot_be_resolved_are_refused():
    table = read_table(pd.DataFrame({"s": ["a", "b"], "x": [1.0, 2.0]}))
    rule = parse_rule(" or ".join(["s == a"] * 199))
    with pytest.raises(ParameterError, match="may have 2,000 characters"):
        rule.resolved(table)
    with pytest.raises(ParameterError, match="no column 'high'"):  # a number is compared with no text
        parse_rule("x == high").resolved(table)


@pytest.mark.parametrize("week", ["2024-W22", "2024W22", "2024-W22T10:00"])
def test_a_week_is_no_time_stamp_but_a_day_of_it_is(week):
    time = pd.date_range("2024-05-27", periods=10, freq="D")
    table = read_table(pd.DataFrame({"time": time, "x": np.arange(10.0)}))
    with pytest.raises(ParameterError, match=f"'{week}' is no time stamp"):
        parse_rule(f"time <= '{week}'").holds(table)
    assert parse_rule("time <= '2024-W22-3'").holds(table).sum() == 3


VALUES = pd.DataFrame({"a": [1.0, math.nan], "state": ["on", None]})
BARE_PLANT = Table(VALUES, None, None, None, "plant.csv", ())
TIMED = Table(VALUES, pd.DatetimeIndex(["2024-05-01", "2024-05-02"]), "Zeit", None, "plant.csv", ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at its beginning a column is expected, but the rule ends"),
        ("power >", "after 'power >' a number, a text or a column is expected, but the rule ends."),
        ("power", "after 'power' a comparison (such as > 5) or 'is missing' is expected, but the rule ends"),
        ("power > 5 flow", "after 'power > 5' 'and', 'or' or the end of the rule is expected, but there is 'flow'"),
        ("(power > 5", "after '(power > 5' 'and', 'or' or ')' is expected"),
        ("power > 5)", "but there is ')'"),
        ("power is 5", "after 'power is' 'missing' or 'not missing' is expected, but there is '5'"),
        ("power is not", "after 'power is' 'missing' or 'not missing' is expected, but there is 'not'"),
        ("power => 5", "after 'power =' a number, a text or a column is expected, but there is '>'"),
        ("5 is missing", "after '5' a comparison"),
        ("3 < 5", "after '3 < 5' there is a comparison without a column"),
        ("power > 5,5", "numbers are written with a decimal point"),
        ("oil-temp > 5", "go in backticks: `a-b`"),
        ("time > 2024-05-01", "a time stamp goes in quotes: '2024-05-31'"),
        ("power; import os", "there is ';', which has no meaning here"),
        ("state == 'on", "after 'state ==' a text in quotes begins that never ends"),
        ("`state == on", "at its beginning a name in backticks begins that never ends"),
        ("power > 1e999", "The number 1e999 in the rule is too large"),
        ("(" * 51 + "a > 1" + ")" * 51, "nested more than 50 deep"),
        ("not " * 51 + "a > 1", "nested more than 50 deep"),
        ("(" * 2000, "nested more than 50 deep"),
        ("x" * 2001, "may have 2,000 characters, written out; this one has 2,001"),
        ("a>1&" * 400 + "a>1", "may have 2,000 characters, written out; this one has 4,005"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(ParameterError) as caught:
        parse_rule(text)
    assert message in str(caught.value)
    assert caught.value.parameter == "rule"


def test_as_deep_as_allowed():
    for text in ("(" * 50 + "a > 1" + ")" * 50, "not " * 50 + "a > 1", "!(" * 25 + "a > 1 or a < 0" + ")" * 25):
        rule = parse_rule(text)
        assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sate == on", "plant.csv has no column 'sate' (given as part of a rule)"),
        ("sate == on", "Did you mean 'state'?"),
        ("a > sate", "Did you mean 'state'?"),
        ("a == stat", "Did you mean 'state'?"),
        ("a > 1 or nothing > 2", "no column 'nothing'"),
        ("nothing is missing", "no column 'nothing'"),
        ("a > 'x'", "Column 'a' holds numbers, but 'x' is a text."),
        ("state == 1", "Column 'state' holds text, but 1 is a number. Write '1' in quotes."),
        ("state > on", "no column 'on'"),
        ("state > 'on'", "use == or !=, not >"),
        ("'on' > state", "use == or !=, not <"),
        ("state == a", "Column 'a' holds numbers, but column 'state' holds text."),
        ("time > '2024-05-01'", "plant.csv has no time to compare with, nor a column 'time'"),
    ],
)
def test_what_does_not_fit_the_table(text, message):
    for ask in (parse_rule(text).holds, parse_rule(text).truth):
        with pytest.raises(ParameterError) as caught:
            ask(BARE_PLANT)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time > 5", "The time is compared with a time stamp in quotes"),
        ("a < time", "The time is compared with a time stamp in quotes"),
        ("time == time", "The time is compared with a time stamp in quotes"),
        ("time > '31.12.2024'", "'31.12.2024' is no time stamp. Write the year first"),
        ("time > '2024-13'", "'2024-13' is no time stamp"),
        ("time > today", "no column 'today'"),
        ("time == today", "'today' is no time stamp"),
        ("`time` > '2024-05-01'", "no column 'time'"),
    ],
)
def test_what_is_no_time(text, message):
    with pytest.raises(ParameterError) as caught:
        parse_rule(text).holds(TIMED)
    assert message in str(caught.value)


@pytest.mark.parametrize(("text", "seconds"), [
    ("30min", 1800), ("2 h", 7200), ("1d", 86_400), ("90 s", 90), ("1 h 30 min", 5400), (" 1.5 Days ", 129_600),
    ("250ms", 0.25), ("2w", 1_209_600), ("0 s", 0), ("0.1s", 0.1), ("100000 d", 8.64e9),
])  # fmt: skip
def test_durations(text, seconds):
    assert parse_duration(text).total_seconds() == seconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no duration. Write a number and its unit"),
        *((text, "is no duration") for text in ("30", "min", "-5 min", "1,5 h", "1 h 30", "1" * 101)),
        ("5 m", "unknown unit 'm'; known are ms, s, min, h, d and w. Write min for minutes."),
        ("5 parsecs", "unknown unit 'parsecs'"),
        ("100001 d", "longer than 100,000 days"),
    ],
)
def test_what_is_no_duration(text, message):
    with pytest.raises(ValueError, match=r"duration|unit") as caught:
        parse_duration(text)
    assert message in str(caught.value)
