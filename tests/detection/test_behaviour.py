"""Users see what they saw: findings, page data, watch output, scores and public names are those that were pinned."""

from __future__ import annotations

import json
from typing import Any

import pytest
from golden.behaviour import FOLDER, pins

PINS = pins()


def assert_equal(found: Any, expected: Any, place: str) -> None:
    """Compare nested plain data; numbers may differ in the last digits, as another processor may round otherwise."""
    if isinstance(expected, float) and isinstance(found, int | float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12), place
    elif isinstance(expected, dict):
        assert sorted(found) == sorted(expected), place
        for key in expected:
            assert_equal(found[key], expected[key], f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_equal(one, other, f"{place}[{i}]")
    else:
        assert found == expected, place


@pytest.mark.parametrize("name", PINS)
def test_behaviour_is_as_pinned(name: str) -> None:
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert_equal(json.loads(json.dumps(PINS[name]())), expected, name)
