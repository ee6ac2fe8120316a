"""Where labels go so that none lies on another, each as near as can be to what it names."""

from __future__ import annotations

from collections.abc import Sequence


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places at least `gap` apart, in the order of the wanted ones, moved as little as possible (least squares).

    They stay between `low` and `high`; if there is no room for that, they begin at `low` and go past `high`: make the
    drawing `gap` × number of labels high.

    >>> spread([5.0, 5.0, 40.0], 10, 0, 100)
    [0.0, 10.0, 40.0]
    >>> spread([98.0, 99.0, 10.0], 10, 0, 100)
    [90.0, 100.0, 10.0]
    """
    order = sorted(range(len(wanted)), key=lambda place: (wanted[place], place))
    blocks: list[tuple[float, int]] = []  # mean of the wanted places less their offsets, and how many they are
    for number, place in enumerate(order):
        mean, size = wanted[place] - number * gap, 1
        while blocks and blocks[-1][0] >= mean:
            before, many = blocks.pop()
            mean, size = (before * many + mean * size) / (many + size), many + size
        blocks.append((mean, size))
    top = max(float(low), float(high) - (len(wanted) - 1) * gap)
    found = [0.0] * len(wanted)
    number = 0
    for mean, size in blocks:
        for _ in range(size):
            found[order[number]] = min(max(mean, float(low)), top) + number * gap
            number += 1
    return found
