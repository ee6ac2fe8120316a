"""Rules and durations that cannot be read, or do not fit the table; durations that can."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from penstock.columns import RuleError, parse_duration, parse_rule
from penstock.io import Table

VALUES = pd.DataFrame({"a": [1.0, math.nan], "state": ["on", None]})
PLANT = Table(VALUES, None, None, None, "plant.csv", ())
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
    with pytest.raises(RuleError) as caught:
        parse_rule(text)
    assert message in str(caught.value)
    if "cannot be read" in str(caught.value):
        assert 0 <= caught.value.position <= len(text)


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
        with pytest.raises(RuleError) as caught:
            ask(PLANT)
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
    with pytest.raises(RuleError) as caught:
        parse_rule(text).holds(TIMED)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30min", 1800),
        ("2 h", 7200),
        ("1d", 86_400),
        ("90 s", 90),
        ("1 h 30 min", 5400),
        (" 1.5 Days ", 129_600),
        ("250ms", 0.25),
        ("2w", 1_209_600),
        ("0 s", 0),
        ("0.1s", 0.1),
        ("100000 d", 8.64e9),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text).total_seconds() == seconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no duration. Write a number and its unit"),
        ("30", "is no duration"),
        ("min", "is no duration"),
        ("-5 min", "is no duration"),
        ("1,5 h", "is no duration"),
        ("1 h 30", "is no duration"),
        ("1" * 101, "is no duration"),
        ("5 m", "unknown unit 'm'; known are ms, s, min, h, d and w. Write min for minutes."),
        ("5 parsecs", "unknown unit 'parsecs'"),
        ("100001 d", "longer than 100,000 days"),
    ],
)
def test_what_is_no_duration(text, message):
    with pytest.raises(ValueError, match=r"duration|unit") as caught:
        parse_duration(text)
    assert message in str(caught.value)
