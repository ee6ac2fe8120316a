"""Which columns of a table are inputs, as far as the caller says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from penstock._messages import listed, quoted
from penstock.io._errors import TableError, refuse_unknown


@dataclass(frozen=True)
class InputOptions:
    """The inputs: `columns` (None: all) without `exclude`, the label, the group and the time."""

    columns: tuple[str, ...] | None
    exclude: tuple[str, ...]
    label: str | None
    group: str | None = None
    also_group: bool = False  # a rule looks at it, so that it is read like an input

    @property
    def taken(self) -> set[str]:
        """Columns that are not to be searched for the time."""
        return {*(self.columns or ()), *self.exclude, *self._named("label"), *self._named("group")}

    def check(self, known: Sequence[str], time: Sequence[str], source: str) -> None:
        """Raise for names that are no columns, and for columns that cannot be both."""
        labels, groups = self._named("label"), self._named("group")
        for option, names in (
            ("time", time),
            ("columns", self.columns or ()),
            ("exclude", self.exclude),
            ("label", labels),
            ("group", groups),
        ):
            refuse_unknown(names, known, option, source)
        for name in self.columns or ():
            if name in time or name in labels or name in groups:
                role = "time" if name in time else "label" if name in labels else "group"
                raise TableError(f"Column {quoted(name)} cannot be an input and the {role}. Name it once.")
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            raise TableError(f"columns names a column twice: {listed(self.columns)}. Name each once.")
        if self.label is not None and self.label in time:
            raise TableError(f"Column {quoted(self.label)} cannot be the label and the time. Name it once.")
        if self.group is not None and self.group in (*time, *labels):
            role = "time" if self.group in time else "label"
            raise TableError(f"Column {quoted(self.group)} cannot be the group and the {role}. Name it once.")

    def choose(self, names: Sequence[str], used_up: Collection[str], source: str) -> list[str]:
        """The inputs among these columns; `used_up` are those of the time."""
        wanted = names if self.columns is None else self.columns
        no_inputs = {*self.exclude, *self._named("label"), *used_up}
        no_inputs |= set() if self.also_group else set(self._named("group"))
        inputs = [name for name in wanted if name not in no_inputs]
        if not inputs:
            raise TableError(f"No column of {source} is left as an input; its columns are {listed(names)}.")
        return inputs

    def _named(self, role: str) -> tuple[str, ...]:
        name: str | None = getattr(self, role)
        return () if name is None else (name,)


def as_names(value: str | Sequence[str] | None, option: str) -> tuple[str, ...]:
    """One name or several."""
    names = (value,) if isinstance(value, str) else tuple(value or ())
    for name in names:
        if not isinstance(name, str):
            raise TableError(f"{option} must be a name or names of columns; got {quoted(name)}.")
    return names
