"""Quality columns: what they are, which readings are bad, and which tag they are beside."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from penstock.io.quality import BAD_WORDS, is_bad, is_quality, tag_of


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Status", ["GOOD", "BAD"]),
        ("Druck Status", ["GOOD"]),
        ("quality", ["Good", "Uncertain", None]),
        ("P1_quality", ["good, non-specific", "bad: no communication"]),
        ("P1.Quality", [192.0, 0.0, np.nan]),
        ("P1.opcquality", [192, 64]),
        ("OPCQuality", [192, 216, 24]),
        ("QualityDetail", [192, 28]),
        ("TI101 Qualität", ["Gut", "Schlecht", "unsicher"]),
        ("P1StatusCode", ["Good", "BadNoCommunication"]),
        ("StatusCode", [0, 2147483648, 2150891520]),
        ("status_code", [0, -2147483648]),
        ("quality", ["192", "0"]),
        ("Quality of P1", ["OK", "I/O Timeout"]),
        ("Quality", [192]),
    ],
)
def test_quality_columns_are_recognised(name: str, values: list[object]) -> None:
    assert is_quality(name, values)
    assert is_quality(name, pd.Series(values))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Status", ["run", "stop"]),  # a state
        ("Status", ["Normal", "Shutdown"]),  # a state of the plant
        ("Status", ["OK", "FAULT"]),
        ("status", [0, 1]),
        ("quality", [0, 1]),  # systems differ
        ("quality", [0, 0]),
        ("water quality", [97.5, 98.25]),
        ("quality", [92.0, 97.0, 100.0]),
        ("level", [192, 0]),
        ("level", ["GOOD", "BAD"]),
        ("quality", []),
        ("quality", [None, np.nan]),
        ("statistics", ["GOOD", "BAD"]),
        ("Status", ["Good", "Pump 3 replaced"]),
        ("quality", [192, 40.5]),
    ],
)
def test_other_columns_are_not(name: str, values: list[object]) -> None:
    assert not is_quality(name, values)


def test_bad_readings() -> None:
    words = [
        "Good",
        "GOOD",
        "Bad",
        "BAD",
        "bad",
        "Bad Input",
        "I/O Timeout",
        "Uncertain",
        "BadSensorFailure",
        None,
        "OK",
    ]
    assert is_bad(words).tolist() == [False, False, True, True, True, True, True, False, True, False, False]
    assert is_bad(pd.Series([192.0, 193.0, 64.0, 80.0, 0.0, 4.0, 28.0, np.nan])).tolist() == [
        False, False, False, False, True, True, True, False,
    ]  # fmt: skip
    assert is_bad([0, 0x80000000, 0x40000000, -2147483648]).tolist() == [False, True, False, True]
    assert is_bad(["192", "0"]).tolist() == [False, True]
    assert is_bad(pd.Series(["Good", "Bad"], dtype="string", index=[7, 9])).tolist() == [False, True]
    assert is_bad([]).tolist() == []


@pytest.mark.parametrize(
    ("name", "names", "tag"),
    [
        ("Druck Status", ["Druck", "Druck Status"], "Druck"),
        ("P1_quality", ["P1", "P1_quality"], "P1"),
        ("P1.Quality", ["P1", "P1.Quality"], "P1"),
        ("P1.Quality", ["P1.Value", "P1.Quality"], "P1.Value"),
        ("P1 [Status]", ["P1", "P1 [Status]"], "P1"),
        ("P1Status", ["P1", "P1Status"], "P1"),
        ("Quality P1", ["P1", "Quality P1"], "P1"),
        ("Status of P1", ["P1", "Status of P1"], "P1"),
        ("druck_status", ["Druck [bar]", "druck_status"], "Druck [bar]"),
        ("Pump 1 Status", ["Pump 1", "Pump 10", "Pump 1 Status"], "Pump 1"),
        ("P2_quality", ["P1", "P2_quality"], None),
        ("Status", ["P1", "Status"], "P1"),
        ("Status.1", ["P1", "Status", "P2", "Status.1"], "P2"),
        ("Status (2)", ["P1", "Status", "P2", "Status (2)"], "P2"),
        ("Status", ["P1", "P2", "Status"], None),  # of one, or of both?
        ("Status", ["Status", "P1"], None),
        ("Status.1", ["P1", "Status", "Status.1"], None),
        ("quality", ["tag", "value", "quality"], "value"),
        ("quality", ["P1"], None),
        ("P1 Status", ["P1 [bar]", "P1 (psi)", "P1 Status"], None),  # two of that name
    ],
)
def test_the_tag_beside(name: str, names: list[str], tag: str | None) -> None:
    assert tag_of(name, names) == tag


def test_words_in_place_of_readings_are_lower_case() -> None:
    assert all(word == word.casefold() for word in BAD_WORDS)
    asked = "Bad Input|I/O Timeout|No Data|Pt Created|Shutdown|Bad|Configure|Under Range|Over Range|Calc Failed"
    asked += "|Not Connect|Scan Off|Invalid"
    assert {word.casefold() for word in asked.split("|")} <= BAD_WORDS
