"""`penstock bench datasets` carried out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from penstock.bench import datasets, registry
from penstock.bench.download import HOME, download
from penstock.cli._console import CommandError, print_text


def show_datasets(names: Sequence[str], *, fetch: bool, home: str | None) -> int:
    """List the data sets, after fetching those that are missing if asked to."""
    table = registry.provenance()
    for name in names:
        if name not in table.index:
            raise CommandError(f"There is no data set {name!r}; known are {', '.join(table.index)}.", exit_code=2)
    wanted = list(names) or list(table.index)
    if fetch:
        _fetch([name for name in wanted if not _is_here(name)], home or HOME)
    lines = [f"{'':16} {'n':>6} {'p':>4} {'anomalies':>9}  here"]
    for name in wanted:
        row = table.loc[name]
        lines.append(f"{name:16} {row.n:6,} {row.p:4} {row.anomalies:9}  {'yes' if _is_here(name) else 'no'}")
        if row.differs:
            lines.append(f"    {row.differs}")
    print_text("\n".join(lines))
    return 0


def _is_here(name: str) -> bool:
    try:
        datasets.find_file(name)
    except (OSError, ValueError):
        return False
    return True


def _fetch(names: list[str], home: str) -> None:
    with _Bytes() as bar:
        for name in names:
            try:
                download([name], home=home, progress=bar.of(name))
            except (OSError, ValueError) as error:
                raise CommandError(str(error)) from None


class _Bytes:
    """A bar of bytes per archive on a terminal; nothing in a pipe."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> _Bytes:
        if sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=Console(stderr=True)
            )
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def of(self, name: str) -> Callable[[int, int | None], None] | None:
        """What is told of the bytes of one archive."""
        if self._bar is None:
            return None
        task = self._bar.add_task(name, total=None)
        return lambda done, total: self._bar.update(task, completed=done, total=total)
