"""Carry out `penstock detect`, `fit` and `score`: check everything, then read, compute, write and print."""

from __future__ import annotations

import logging
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import typer

from penstock._messages import counted
from penstock._parameters import check_whole_number
from penstock._types import FloatArray
from penstock.cli._console import (
    CommandError,
    Stages,
    children_without_interrupt,
    cleaning_up,
    print_text,
    printable,
)
from penstock.cli._data_text import data_lines, doubt_lines, print_data
from penstock.cli._options import chosen_options, place_of, plain_errors
from penstock.cli._summary import method_lines, note_lines, summary_lines
from penstock.detection import METHODS, Findings, FitPlan, Model, ScorePlan, make_detector, read_failures
from penstock.detection.model import FitRows
from penstock.detectors import SeriesDetector, cluster_plan
from penstock.io import ReadLog, file_of_address, files_of, is_address
from penstock.options import (
    DetectOptions,
    FitOptions,
    LookOptions,
    MethodParameters,
    ReadingOptions,
    ScoreOptions,
    errors_name,
)
from penstock.registry import AUTO
from penstock.report import (
    FINDINGS_ENDINGS,
    INCIDENTS_ENDINGS,
    SCORES_ENDINGS,
    as_csv,
    as_json,
    check_ending,
    incident_records,
    plain,
    refuse_existing,
    summarize,
    write_findings,
    write_incidents,
    write_new,
    write_scores,
)
from penstock.thresholds import parse_threshold

_RESULTS = ("output", "incidents", "scores", "report")
_ENDINGS = {
    "report": (".html", ".htm"),
    "output": FINDINGS_ENDINGS,
    "incidents": INCIDENTS_ENDINGS,
    "scores": SCORES_ENDINGS,
}
_WRITERS = {"output": write_findings, "incidents": write_incidents, "scores": write_scores}
_SHOWN = (UserWarning, RuntimeWarning)  # others are for programmers
_ADDRESS = re.compile(r"dask://((?:[^\s/:@\[\]]+|\[[0-9a-fA-F:.]+\]):(\d{1,5}))/?")
_LOST = "The cluster has dropped the work. Was it closed, or the connection lost? Start it, and run this command again."
Result = TypeVar("Result", Findings, Model)
AnyOptions = TypeVar("AnyOptions", LookOptions, DetectOptions, FitOptions, ScoreOptions)
_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " "}


def run_look(context: typer.Context) -> int:
    with plain_errors(context):
        plan = FitPlan.of(_options(context, LookOptions))
        _files_read(context.params["source"])
    with _working(context) as (stages, _):
        data = plan.using(stages).look(_source(context))
    print_data(data, json=context.params["json"], everything=context.params["all"])
    return 0


def run_compare(context: typer.Context) -> int:
    from penstock.project.compare import compare_sources, compared_in_words
    from penstock.project.folder import table_of

    path = context.params["output"]
    refuse_existing([path] if path else [], context.params["overwrite"])
    with plain_errors(context):
        options = _options(context, LookOptions)
        _files_read(context.params["source"])
    with _working(context) as (stages, _):
        read = partial(table_of, options=replace(options, progress=stages))
        pairs = {name: context.params[name[:-1]] or () for name in ("periods", "units")}
        found = compare_sources(_source(context), read, **pairs)
        if path is not None:
            write_new(path, [as_csv(found).encode()], overwrite=context.params["overwrite"])
    if context.params["json"]:
        print_text(as_json(plain(found)))
    elif not context.params["quiet"]:
        print_text("\n".join(map(printable, [compared_in_words(found), *_compared_lines(found)])))
    return 0


def _compared_lines(found: Any) -> list[str]:
    """Return the tags that differ, as a table."""
    rows = found[found["differs"]]
    if not len(rows):
        return []
    width = max(len("tag"), *map(len, rows["tag"]))
    lines = ["", f"{'tag':<{width}}  {'first':>10}  {'second':>10}  {'change':>10}  since"]
    for row in rows.itertuples():
        since = "all the time" if row.since is None else str(row.since)
        lines.append(f"{row.tag:<{width}}  {row.first:>10.4g}  {row.second:>10.4g}  {row.change:>+10.4g}  {since}")
    return lines


def run_past(context: typer.Context) -> int:
    from json import dumps

    from penstock.explain import read_labels
    from penstock.live.options import AlarmRules
    from penstock.project.results import known_periods
    from penstock.project.trial import past_alarms, table_for_model

    given = context.params
    with _working(context) as (stages, _):
        rules = AlarmRules(**chosen_options(AlarmRules, context))
        rules.check()
        options = ScoreOptions(**_with_signs(chosen_options(ReadingOptions, context)), progress=stages)
        table = table_for_model(given["model"], _source(context), options)
        labels = read_labels(given["labels"]) if given["labels"] else []
        marks = known_periods([each for each in labels if each.holds], read_failures(given["failures"]), table)
        stages("scoring row by row")
        found = past_alarms(table, given["model"], rules, marks)
    print_text(dumps(found, indent=2) if given["json"] else "\n".join([found["sentence"], *found["alarms"]]))
    return 0


def run_detect(context: typer.Context) -> int:
    paths = _outputs(context, *_RESULTS)
    with plain_errors(context):
        plan = FitPlan.of(_options(context, DetectOptions))
    engine = _Engine.of(context)
    with _working(context) as (stages, said):
        with engine.fitting(stages) as fit_rows:
            findings = engine.noted(plan.using(stages, fit_rows).detect(_source(context)))
        _write(context, findings, paths, stages)
    return _conclude(context, findings, paths, said)


def run_fit(context: typer.Context) -> int:
    path = _outputs(context, "model")["model"]
    with plain_errors(context):
        plan = FitPlan.of(_options(context, FitOptions))
    engine = _Engine.of(context)
    with _working(context) as (stages, said):
        with engine.fitting(stages) as fit_rows:
            model = engine.noted(plan.using(stages, fit_rows).fit(_source(context)))
        stages(f"writing {path}")
        with plain_errors(context, f"{path} could not be written: "):
            model.save(path, overwrite=context.params["overwrite"])
    if not context.params["quiet"]:
        kind = type(model.parts[0].detector).__name__
        rows = counted(len(model.training_scores), "row")
        modes = "" if len(model.parts) == 1 else f" in {len(model.parts)} operating modes"
        inputs = counted(len(model.inputs.names), "input")
        lines = [f"{kind} was fitted to {rows} of {inputs}{modes}.", *method_lines(model.notes)]
        lines[1:1] = doubt_lines([note for note in model.notes if note.doubt])
        others = [note for note in model.notes if not note.doubt]
        lines += [*note_lines(others, said), "", f"Written: {path}"]
        print_text("\n".join(map(printable, lines)))
    return 0


def run_score(context: typer.Context) -> int:
    paths = _outputs(context, *_RESULTS)
    with plain_errors(context):
        plan = ScorePlan.of(_options(context, ScoreOptions))
        model = Model.load(context.params["model"])
    with _working(context) as (stages, said):
        findings = plan.score(model, _source(context), stages)
        file = str(context.params["model"].resolve())  # where 'penstock label' keeps what people say of incidents
        findings = replace(findings, settings={**findings.settings, "model": file})
        _write(context, findings, paths, stages)
    return _conclude(context, findings, paths, said)


def _options(context: typer.Context, job: type[AnyOptions]) -> AnyOptions:
    """Return the options of a command as the library takes them."""
    if context.params.get("fail_on") is not None:
        check_whole_number("fail_on", context.params["fail_on"], least=1)
    if context.params.get("json") and context.params.get("quiet"):
        raise ValueError("--quiet and --json exclude each other: one says nothing, the other everything.")
    given = chosen_options(job, context)
    if issubclass(job, FitOptions):
        given["parameters"] = chosen_options(MethodParameters, context)
    if "threshold" in given:
        given["threshold"] = _threshold(given["threshold"])
    given = _with_signs(given)
    if ("fault_values" in given or "unknown_values" in given) and "label" not in given:
        raise ValueError("--fault-value and --unknown-value need --label, the column that holds these values.")
    return job(**given)


def _threshold(text: str) -> Any:
    with errors_name("threshold"):
        try:
            share = float(text)
        except ValueError:
            return text if text == "auto" else parse_threshold(text, also=("auto", "a share of the rows"))
        if not 0 < share <= 0.5:
            raise ValueError(f"a share of the rows must be above 0 and at most 0.5; got {text}. Or mean fixed:{text}?")
        return share


def _with_signs(given: dict[str, Any]) -> dict[str, Any]:
    """Return options with "tab" and "space" as the signs that they mean."""
    signs = {name: _SEPARATORS.get(given[name], given[name]) for name in ("separator", "thousands") if name in given}
    return given | signs


@contextmanager
def _working(context: typer.Context) -> Iterator[tuple[Stages, list[str]]]:
    """Show the stages of the work, end in order, and collect warnings in the list."""
    said: list[str] = []
    with cleaning_up(), plain_errors(context), Stages(quiet=context.params.get("quiet", False)) as stages:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield stages, said
        texts = (" ".join(str(each.message).split()) for each in caught if issubclass(each.category, _SHOWN))
        said += dict.fromkeys(texts)


def _source(context: typer.Context) -> str | list[str]:
    sources: list[str] = context.params["source"]
    return sources[0] if len(sources) == 1 else sources


def _write(context: typer.Context, findings: Findings, paths: dict[str, Path], stages: Stages) -> None:
    """Write findings to files, by the name of the option."""
    for name, path in paths.items():
        stages(f"writing {path}")
        given: dict[str, Any] = {"overwrite": context.params["overwrite"]}
        with plain_errors(context, f"{path} could not be written: "):
            if name in _WRITERS:
                _WRITERS[name](findings, path, **given)
            else:
                from penstock.report import write_html

                write_html(findings, path, **given, progress=stages)


def _outputs(context: typer.Context, *names: str) -> dict[str, Path]:
    """Return the files to be written; raise for one that cannot be, is read here, or is named twice."""
    given = context.params
    with plain_errors(context):
        files = _files_read(given["source"])
    inputs = [*files, *(given[name] for name in ("config", "units", "model") if name not in names and given.get(name))]
    folders = [Path(source) for source in given["source"] if not is_address(source) and Path(source).is_dir()]
    paths = {name: given[name] for name in names if given[name] is not None}
    seen: dict[str, str] = {}
    for name, path in paths.items():
        with plain_errors(context, f"--{name}: "):
            _check_place(path)
            if name in _ENDINGS:
                check_ending(path, _ENDINGS[name])
            real = os.path.realpath(path)
            if real in seen:
                raise ValueError(f"{path} is --{seen[real]} too. Name different files.")
            seen[real] = name
            _check_not_read(path, inputs, folders)
            refuse_existing([path], given["overwrite"])
    return paths


def _files_read(sources: Sequence[str]) -> list[Path]:
    """Return the files that are read; raise if one of them is named twice."""
    paths = [source for source in sources if not is_address(source)]
    files = files_of(paths, ReadLog("the table")) if paths else []
    files += filter(None, (file_of_address(source) for source in sources if is_address(source)))
    real_paths = [os.path.realpath(file) for file in files]
    for place, file in enumerate(files):
        if real_paths[place] in real_paths[:place]:  # a row that is there twice does not look anomalous
            raise ValueError(f"{file} is named twice. Name each file once.")
    return files


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


def _check_not_read(path: Path, inputs: Sequence[Path], folders: Sequence[Path]) -> None:
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


def _conclude(context: typer.Context, findings: Findings, paths: dict[str, Path], said: list[str]) -> int:
    """Print what was found, and return the exit code."""
    given = context.params
    files = list(paths.values())
    if given["json"]:
        summary = {
            **summarize(findings),
            "verdict": plain(findings.verdict),
            "check_first": [note.message for note in findings.data.doubts],
            "data": data_lines(findings.data),
            "incidents": sorted(incident_records(findings), key=lambda incident: incident["rank"]),
            "notes": [plain(note) for note in findings.notes],
            "warnings": said,
            "files": [str(path) for path in files],
        }
        print_text(as_json(summary, indent=2, ensure_ascii=True))
    elif not given["quiet"]:
        print_text("\n".join(summary_lines(findings, files, said)))
    return int(given["fail_on"] is not None and len(findings.events) >= given["fail_on"])


@dataclass(frozen=True)
class _Engine:
    """The option `--engine`, here or the workers of a Dask cluster; only for these is `scale` imported."""

    text: str
    place: str  # where it was given, for messages
    scheduler: str | None  # None to start workers

    @classmethod
    def of(cls, context: typer.Context) -> _Engine:
        """Return the engine of a command; raise for an unknown one, and for a method that it cannot fit."""
        text = context.params["engine"]
        place = place_of(context, "engine")
        address = _ADDRESS.fullmatch(text)
        if text not in ("local", "dask") and (address is None or not 0 < int(address[2]) < 2**16):
            raise CommandError(f"{place} must be local, dask or dask://HOST:PORT; got {text!r:.100}.")
        if text != "local":
            method = context.params["method"]
            able = [name for name in METHODS if cluster_plan(make_detector(name)) is not None]
            if method.lower() not in (AUTO, *able):
                raise CommandError(
                    f"{place} {text} cannot fit --method {method}, only {', '.join(able)}. Choose one of these, or "
                    f"--engine local."
                )
        return cls(text, place, None if address is None else f"tcp://{address[1]}")

    @contextmanager
    def fitting(self, stages: Stages) -> Iterator[FitRows | None]:
        """Yield how to fit, None for a detector's own way; workers started for it are closed at the end."""
        if self.text == "local":
            yield None
            return
        with _quiet_dask(), self._client(stages) as client:
            yield lambda detector, rows, **order: self._fit(detector, rows, client, stages, order)

    def noted(self, result: Result) -> Result:
        """Return findings or a model with the engine in the settings, unless it is the usual one."""
        return result if self.text == "local" else replace(result, settings={**result.settings, "engine": self.text})

    @contextmanager
    def _client(self, stages: Stages) -> Iterator[Any]:
        from penstock import scale

        with ExitStack() as opened:
            with self._plain_errors(), children_without_interrupt():
                if self.scheduler is None:
                    stages("starting workers")
                    client = opened.enter_context(scale.local_client(quiet=True))
                else:
                    stages(f"connecting to {self.scheduler}")
                    client = opened.enter_context(scale.connect(self.scheduler))
            yield client

    def _fit(self, detector: Any, rows: FloatArray, client: Any, stages: Stages, order: Mapping[str, Any]) -> None:
        from penstock import scale

        if not isinstance(detector, SeriesDetector):
            _refuse_missing(rows, f"{self.place} {self.text}")
        with self._plain_errors(), _quiet_dask():  # again, as the fit reports the detector's warnings
            progress = lambda what, done, total: stages(f"{what}, {done} of {total}")  # noqa: E731
            scale.fit(detector, rows, client, **order, progress=progress)

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """End the command with one line for problems with a cluster, or if its extra is not installed."""
        from penstock.scale import ClusterError

        try:
            yield
        except (ClusterError, ImportError) as error:
            raise CommandError(f"{self.place}: {error}") from None
        except CancelledError:
            raise CommandError(f"{self.place}: {_LOST}") from None


def _refuse_missing(rows: FloatArray, engine: str) -> None:
    """Raise for missing values in terms of the command's options; `penstock.scale` names parameters."""
    missing = np.isnan(rows)
    if missing.any():
        inputs = counted(int(missing.any(axis=0).sum()), "input")
        raise CommandError(
            f"{engine} takes no missing values, and {int(missing.any(axis=1).sum()):,} of {len(rows):,} training rows "
            f"have some, in {inputs}. Use --engine local, which takes them, fill them, or leave out such columns "
            f"(--exclude)."
        )


@contextmanager
def _quiet_dask() -> Iterator[None]:
    """Inside this block Dask logs and warns of nothing: errors are raised as well."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"(dask|distributed|tornado)\b")
            yield
    finally:
        logging.disable(before)
