"""`penstock detect`, `fit` and `score` carried out: everything is checked, then read, computed, written and told."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from penstock.cli._engine import Engine
from penstock.cli._job_options import cut_options, learning_options, reading_options
from penstock.cli._outputs import Outputs
from penstock.cli._plain_errors import plain_errors
from penstock.cli._printable import printable
from penstock.cli._signals import cleaning_up
from penstock.cli._stages import Stages
from penstock.cli._standard_output import print_text
from penstock.cli._summary import note_lines, summary_lines
from penstock.detection import Findings, Model, detect, fit_model, load_model
from penstock.io import Notebook, files_of
from penstock.registry import DEFAULT_METHOD, PAPERS_METHOD
from penstock.report import as_json, summarize

_RESULTS = ("output", "scores", "report")
_TOLD = (UserWarning, RuntimeWarning)  # others are for programmers


def run_detect(context: typer.Context) -> int:
    """Carry out `penstock detect`, and return its exit code."""
    outputs = _checked_outputs(context, *_RESULTS)
    options = {**reading_options(context), **learning_options(context), **cut_options(context)}
    engine = Engine.of(context)
    with cleaning_up(), plain_errors(), _heard() as said, Stages(quiet=context.params["quiet"]) as stages:
        with engine.fitting(stages) as fit_rows:
            findings = engine.noted(detect(_source(context), **options, fit_rows=fit_rows, progress=stages))
        files = outputs.write(findings, stages)
    return _conclude(context, findings, files, said, _method_hint(context))


def run_fit(context: typer.Context) -> int:
    """Carry out `penstock fit`, and return its exit code."""
    outputs = _checked_outputs(context, "model")
    options = {**reading_options(context), **learning_options(context)}
    engine = Engine.of(context)
    path: Path = context.params["model"]
    with cleaning_up(), plain_errors(), _heard() as said, Stages(quiet=context.params["quiet"]) as stages:
        with engine.fitting(stages) as fit_rows:
            model = engine.noted(fit_model(_source(context), **options, fit_rows=fit_rows, progress=stages))
        stages(f"writing {path}")
        with plain_errors(f"{path} could not be written: "):
            model.save(path, overwrite=outputs.overwrite)
    if not context.params["quiet"]:
        lines = [
            _in_words(model),
            *_method_hint(context),
            *note_lines([*map(str, model.notes), *said]),
            "",
            f"Written: {path}",
        ]
        print_text("\n".join(map(printable, lines)))
    return 0


def run_score(context: typer.Context) -> int:
    """Carry out `penstock score`, and return its exit code."""
    outputs = _checked_outputs(context, *_RESULTS)
    options = {**reading_options(context), **cut_options(context)}
    with plain_errors():
        model = load_model(context.params["model"])
    with cleaning_up(), plain_errors(), _heard() as said, Stages(quiet=context.params["quiet"]) as stages:
        findings = model.score(_source(context), **options, progress=stages)
        files = outputs.write(findings, stages)
    return _conclude(context, findings, files, said)


def _source(context: typer.Context) -> str | list[str]:
    sources: list[str] = context.params["source"]
    return sources[0] if len(sources) == 1 else sources


def _checked_outputs(context: typer.Context, *names: str) -> Outputs:
    """The files to be written, none of which is read here."""
    given = context.params
    with plain_errors():
        files = files_of(given["source"], Notebook("the table"))
        _refuse_twice(files)
    others = [given.get(name) for name in ("config", "units", "model") if name not in names]
    outputs = Outputs.of(context, *names)
    folders = [Path(source) for source in given["source"] if Path(source).is_dir()]
    outputs.check([*files, *(path for path in others if path is not None)], folders)
    return outputs


def _refuse_twice(files: list[Path]) -> None:
    """Every row would be there twice, and a row that has a twin does not look anomalous."""
    seen: dict[str, Path] = {}
    for file in files:
        first = seen.setdefault(os.path.realpath(file), file)
        if first is not file:
            raise ValueError(f"{file} is named twice. Name each file once.")


def _conclude(
    context: typer.Context, findings: Findings, files: list[Path], said: list[str], hint: Sequence[str] = ()
) -> int:
    """Say what was found, and return the exit code."""
    given = context.params
    if given["json"]:
        summary = {**summarize(findings), "files": [str(path) for path in files]}
        print_text(as_json(summary, indent=2, ensure_ascii=True))
    elif not given["quiet"]:
        print_text("\n".join(summary_lines(findings, files, said, hint)))
    return int(given["fail_on"] is not None and len(findings.events) >= given["fail_on"])


def _method_hint(context: typer.Context) -> list[str]:
    """Which other method there is, for those who did not choose."""
    source = context.get_parameter_source("method")
    if source is None or source.name != "DEFAULT":
        return []
    return [f"Method {DEFAULT_METHOD} is the default; --method {PAPERS_METHOD} is the paper's NS-NMF."]


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collects what Python would warn of inside this block."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    texts = (" ".join(str(each.message).split()) for each in caught if issubclass(each.category, _TOLD))
    said += dict.fromkeys(texts)


def _in_words(model: Model) -> str:
    kind: Any = type(model.parts[0].detector).__name__
    modes = "" if len(model.parts) == 1 else f" in {len(model.parts)} operating modes"
    rows, inputs = len(model.training_scores), len(model.inputs.names)
    return f"{kind} has learnt from {rows:,} rows of {inputs:,} inputs{modes}."
