"""What an event is: when something happened, to which readings, and whether it was a fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

How = Literal["add", "scale", "hold", "flicker", "exchange"]


@dataclass(frozen=True)
class Effect:
    """What a fault does to the readings of some variables; `how` and `size` are explained in `_effects.py`.

    `rise` is the time constant in hours with which it builds up; 0 is at once.
    """

    variables: tuple[str, ...]
    how: How
    size: float = 0.0
    rise: float = 0.0


@dataclass(frozen=True)
class Event:
    """From the first sample to the last, both included. A look-alike has no effects: the plant really ran that way."""

    kind: str
    start: pd.Timestamp
    end: pd.Timestamp
    variables: tuple[str, ...]
    description: str
    effects: tuple[Effect, ...] = ()

    @property
    def is_fault(self) -> bool:
        return bool(self.effects)


def numbered(name: str, count: int) -> tuple[str, ...]:
    """The names of sensors of one kind.

    >>> numbered("unit1_thrust_pad_temperature", 2)
    ('unit1_thrust_pad_temperature_1', 'unit1_thrust_pad_temperature_2')
    """
    return tuple(f"{name}_{number:0{len(str(count))}d}" for number in range(1, count + 1))
