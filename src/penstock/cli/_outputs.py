"""The files that a command writes: whether that will be possible, and then doing it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from penstock.cli._plain_errors import plain_errors
from penstock.report import (
    FINDINGS_ENDINGS,
    SCORES_ENDINGS,
    check_ending,
    refuse_existing,
    write_findings,
    write_scores,
)

_ENDINGS = {"report": (".html", ".htm"), "output": FINDINGS_ENDINGS, "scores": SCORES_ENDINGS}


@dataclass(frozen=True)
class Outputs:
    """Where results go, by the name of the option; `check` before, `write` after the work."""

    paths: Mapping[str, Path]
    overwrite: bool

    @classmethod
    def of(cls, context: typer.Context, *names: str) -> Outputs:
        given = context.params
        return cls({name: given[name] for name in names if given[name] is not None}, given["overwrite"])

    def check(self, inputs: Sequence[Path], folders: Sequence[Path] = ()) -> None:
        """Raise unless every file can be written, as far as that can be told, and none is an input or twice there.

        inputs : files that are read. folders : those that are read as a whole.
        """
        seen: dict[str, str] = {}
        for name, path in self.paths.items():
            with plain_errors(f"--{name}: "):
                _check_place(path)
                if name in _ENDINGS:
                    check_ending(path, _ENDINGS[name])
                real = os.path.realpath(path)
                if real in seen:
                    raise ValueError(f"{path} is --{seen[real]} too. Name different files.")
                seen[real] = name
                _refuse_inputs(path, inputs, folders)
                refuse_existing([path], self.overwrite)

    def write(self, findings: Any, progress: Callable[[str], None]) -> list[Path]:
        """Write all of them, and return where."""
        for name, path in self.paths.items():
            progress(f"writing {path}")
            with plain_errors(f"{path} could not be written: "):
                _write(name, findings, path, self.overwrite, progress)
        return list(self.paths.values())


def _write(name: str, findings: Any, path: Path, overwrite: bool, progress: Callable[[str], None]) -> None:
    if name == "output":
        write_findings(findings, path, overwrite=overwrite)
    elif name == "scores":
        write_scores(findings, path, overwrite=overwrite)
    else:
        from penstock.report import write_html

        write_html(findings, path, overwrite=overwrite, progress=progress)


def _check_place(path: Path) -> None:
    """Raise unless the folder is there and takes files."""
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise ValueError(f"Cannot write {path}: there is no folder {folder}. Make it first.")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"Cannot write {path}: the folder {folder} takes no files ({error.strerror}).") from None
    try:
        os.lstat(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ValueError(f"Cannot write {str(path)[:200]}: {error.strerror}.") from None


def _refuse_inputs(path: Path, inputs: Sequence[Path], folders: Sequence[Path]) -> None:
    real = os.path.realpath(path)
    for file in inputs:
        if real == os.path.realpath(file) or (path.exists() and file.exists() and path.samefile(file)):
            raise ValueError(f"{path} is read by this very command. Choose another name.")
    for folder in folders:
        if Path(real).parent == Path(os.path.realpath(folder)) and not path.name.lower().endswith((".html", ".htm")):
            raise ValueError(
                f"{path} lies in the folder that is read, and would be taken for a part of the table the next time. "
                f"Choose another folder."
            )
