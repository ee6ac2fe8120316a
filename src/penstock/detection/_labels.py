"""Which values of a label mean a fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.detection._settings import shown_names
from penstock.events import Truth, known_faults
from penstock.io import Table, TableError


@dataclass(frozen=True)
class LabelValues:
    """The values of a label that mean a fault, and those of rows of which nothing is known; see `known_faults`."""

    faults: tuple[Any, ...] = ()
    unknown: tuple[Any, ...] = ()

    @classmethod
    def of(cls, faults: Any, unknown: Any) -> LabelValues:
        """From what a user gives: one value or several."""
        return cls(_as_values(faults), _as_values(unknown))

    def read(self, table: Table) -> Truth | None:
        """What the label of a table says; None if it has none."""
        if table.label is not None:
            return known_faults(table.label, self.faults, self.unknown)
        if self.faults or self.unknown:
            raise TableError("fault_values and unknown_values need a label: name the column that holds them.")
        return None

    def described(self) -> dict[str, str | None]:
        """For the settings."""
        return {"fault_values": shown_names(self.faults), "unknown_values": shown_names(self.unknown)}


def _as_values(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, str) or not hasattr(values, "__iter__") else tuple(values)
