"""What was found odd or changed while a table was read: nothing of it happens silently."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.io._errors import TableError


@dataclass(frozen=True)
class Note:
    """One thing worth knowing about a table.

    kind : a fixed word to select by, such as "duplicate times"; message : a sentence; count : of how many values, rows
    or columns; columns, rows : which, as far as that is known (of rows the first few, numbered as in `Table.values`);
    changed : whether something is now other than in the source, which `strict` refuses.
    """

    kind: str
    message: str
    count: int
    columns: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    changed: bool = False

    def __str__(self) -> str:
        return self.message


class Notebook:
    """Collects notes while a table is read; if `strict`, refuses the first that tells of a change.

    >>> notebook = Notebook("plant.csv", strict=True)
    >>> notebook.add("duplicate times", "2 rows share their time stamp with another.", 2)
    >>> notebook.add("order", "The rows were sorted by time.", 9, changed=True)
    Traceback (most recent call last):
    penstock.io._errors.TableError: strict refuses what would be done to plant.csv otherwise: The rows were sorted
    by time. Mend the table, or read it without strict.
    """

    def __init__(self, source: str, strict: bool = False) -> None:
        self.source = source
        self.strict = strict
        self.notes: list[Note] = []

    def add(
        self,
        kind: str,
        message: str,
        count: int,
        columns: tuple[str, ...] = (),
        rows: tuple[int, ...] = (),
        changed: bool = False,
    ) -> None:
        if changed and self.strict:
            raise TableError(
                f"strict refuses what would be done to {self.source} otherwise: {message} Mend the table, or read it "
                f"without strict."
            )
        self.notes.append(Note(kind, message, count, columns, rows, changed))
