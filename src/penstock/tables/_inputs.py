"""Which columns of a table are inputs, as far as the caller says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from penstock._messages import listed, quoted
from penstock.tables._errors import TableError, refuse_unknown


@dataclass(frozen=True)
class InputOptions:
    """The inputs: `columns` (None: all) without `exclude`, the label and the time."""

    columns: tuple[str, ...] | None
    exclude: tuple[str, ...]
    label: str | None

    @property
    def taken(self) -> set[str]:
        """Columns that are not to be searched for the time."""
        return {*(self.columns or ()), *self.exclude, *((self.label,) if self.label is not None else ())}

    def check(self, known: Sequence[str], time: Sequence[str], source: str) -> None:
        """Raise for names that are no columns, and for columns that cannot be both."""
        labels = () if self.label is None else (self.label,)
        for option, names in (
            ("time", time),
            ("columns", self.columns or ()),
            ("exclude", self.exclude),
            ("label", labels),
        ):
            refuse_unknown(names, known, option, source)
        for name in self.columns or ():
            if name in time or name in labels:
                role = "time" if name in time else "label"
                raise TableError(f"Column {quoted(name)} cannot be an input and the {role}. Name it once.")
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            raise TableError(f"columns names a column twice: {listed(self.columns)}. Name each once.")
        if self.label is not None and self.label in time:
            raise TableError(f"Column {quoted(self.label)} cannot be the label and the time. Name it once.")

    def choose(self, names: Sequence[str], used_up: Collection[str], source: str) -> list[str]:
        """The inputs among these columns; `used_up` are those of the time."""
        wanted = names if self.columns is None else self.columns
        inputs = [name for name in wanted if name not in self.exclude and name != self.label and name not in used_up]
        if not inputs:
            raise TableError(f"No column of {source} is left as an input; its columns are {listed(names)}.")
        return inputs


def as_names(value: str | Sequence[str] | None, option: str) -> tuple[str, ...]:
    """One name or several."""
    names = (value,) if isinstance(value, str) else tuple(value or ())
    for name in names:
        if not isinstance(name, str):
            raise TableError(f"{option} must be a name or names of columns; got {quoted(name)}.")
    return names
