"""A project: one folder with settings, data, what people said, models and reports.

    penstock.toml   how the data are read, which rows are good or left out: options of `penstock detect` and `fit`
    data/           files that were uploaded; others stay where they are
    labels.jsonl    what people said of incidents, as `penstock label` keeps it
    failures.csv    the log of failures
    models/         what `fit` made, numbered
    reports/        what was downloaded
    live.toml       assets and rules for `penstock serve`
    results/        the last results for the page; may be deleted

In the folder, `penstock detect --config penstock.toml` does what the page does. Every file is replaced as a whole.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.detection import (
    DataSummary,
    Failure,
    Findings,
    FitPlan,
    Model,
    detect,
    fit_model,
    label_incident,
    look,
    read_failures,
)
from penstock.explain import Label, new_label_id, read_labels
from penstock.io import ReadLog, Table, files_of, is_address
from penstock.live.alarm_files import append_record
from penstock.live.alarm_records import RefusedError
from penstock.options import FitOptions, LookOptions, Option, described
from penstock.project.compare import compare_sources
from penstock.registry import did_you_mean
from penstock.storage import remove_leftovers, replace_file

if TYPE_CHECKING:
    import pandas as pd

SETTINGS, LABELS, FAILURES, LIVE, STORE = "penstock.toml", "labels.jsonl", "failures.csv", "live.toml", "live.db"
_FOLDERS = ("data", "models", "reports", "results")
_SOURCE = "source"


def flag_of(option: Option, *, off: bool = False) -> str:
    """Return an option as it is typed, such as --day-first; `off`: what turns it off."""
    return max(option.flags.split("/")[-1 if off else 0].split(), key=len)


_OPTIONS: dict[str, tuple[str, Option]] = {
    flag_of(option).lstrip("-"): (name, option) for name, _, option in described(FitOptions)
}
_KEYS = {name: key for key, (name, _) in _OPTIONS.items()}
_OURS = ("labels", "failures")  # set whenever their files are there
_HEAD = "# A project of 'penstock open'. Here, 'penstock detect --config penstock.toml' does what its page does.\n"


class Project:
    """A folder with all that belongs to one search for faults.

    Parameters
    ----------
    folder : path
        Made if it is not there.

    Examples
    --------
    >>> import tempfile, penstock
    >>> project = Project(tempfile.mkdtemp())
    >>> project.add_sample()
    >>> project.change(train_periods=["2015-08-01..2015-09-10"])
    >>> project.options()["train_periods"], project.sources[0].endswith("plant.csv")
    (('2015-08-01..2015-09-10',), True)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).resolve()
        self._lock = threading.RLock()
        try:
            for name in _FOLDERS:
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            self._refuse_links()
            for name in ("", *_FOLDERS):
                remove_leftovers(self.folder / name)
        except OSError as error:
            raise RefusedError(f"{self.folder} cannot be a project: {error.strerror}.") from None

    def _refuse_links(self) -> None:
        """Refuse a folder whose files are links, as one from a stranger may have: writing would go elsewhere."""
        ours = [self.folder / name for name in (*_FOLDERS, SETTINGS, LABELS, FAILURES, LIVE, STORE)]
        for path in (*ours, *(held for folder in ours[: len(_FOLDERS)] for held in folder.rglob("*"))):
            if path.is_symlink():
                raise RefusedError(
                    f"{path} is a link; a project has files of its own. Remove it, or name another folder."
                )

    # Settings.

    @property
    def settings(self) -> dict[str, Any]:
        """What penstock.toml says, by the names of the parameters of `detect`; `source` is a list."""
        path = self.folder / SETTINGS
        if not path.exists():
            return {_SOURCE: []}
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise RefusedError(f"{path}: not TOML: {error}.") from None
        source = given.pop(_SOURCE, [])
        sources = [source] if isinstance(source, str) else source
        if not isinstance(sources, list) or not all(isinstance(each, str) for each in sources):
            raise RefusedError(f"{path}: source must be texts; got {source!r:.100}.")
        found: dict[str, Any] = {_SOURCE: sources}
        for key, value in given.items():
            if key not in _OPTIONS:
                raise RefusedError(f"{path}: {key!r:.60} is no option of a project.{did_you_mean(key, _OPTIONS)}")
            name, option = _OPTIONS[key]
            found[name] = _checked(value, option, f"{path}: {key}")
        return found

    def change(self, **changes: Any) -> None:
        """Change settings and keep them: parameters of `penstock.fit_model`; None or nothing removes one."""
        with self._lock:
            settings = self.settings
            for name, value in changes.items():
                if name != _SOURCE and name not in _KEYS:
                    raise RefusedError(f"{name!r:.60} is no option of a project.{did_you_mean(name, _KEYS)}")
                settings[name] = _checked(value, _OPTIONS[_KEYS[name]][1], name) if name != _SOURCE else value
            self._write({name: value for name, value in settings.items() if value not in (None, "", [], ())})

    def _write(self, settings: Mapping[str, Any]) -> None:
        for name, file in zip(_OURS, (LABELS, FAILURES), strict=True):
            if (self.folder / file).exists():
                settings = {**settings, name: file}
        lines = [f"{_KEYS.get(name, name)} = {toml_value(value)}" for name, value in settings.items()]
        self.write_text(SETTINGS, _HEAD + "\n".join(lines) + "\n")

    def set_roles(self, names: Sequence[str], role: str | None) -> None:
        """Say what columns are (a role, or "left out"); None: as it was found."""
        with self._lock:
            settings = self.settings
            roles = [each for each in settings.get("roles", []) if each.rpartition("=")[0] not in names]
            exclude = [each for each in settings.get("exclude", []) if each not in names]
            if role == "left out":
                exclude += names
            elif role is not None:
                roles += [f"{name}={role}" for name in names]
            self.change(roles=roles, exclude=exclude)

    def add_period(self, kind: str, period: str) -> None:
        """Add a period "START..END": kind "train_periods" (learn from it) or "exclude_periods" (leave it out)."""
        first, dots, last = (each.strip() for each in period.partition(".."))
        ends = [_as_moment(each) for each in (first, last)]
        if not dots or not any(ends):
            raise RefusedError(f"A period is written START..END; got {period!r:.100}.")
        if all(ends) and _is_later(*ends):
            raise RefusedError(f"The period ends ({last:.40}) before it begins ({first:.40}).")
        made = "..".join(ends)
        self._periods(kind, lambda periods: [*periods, made] if made not in periods else periods)

    def remove_period(self, kind: str, period: str) -> None:
        self._periods(kind, lambda periods: [each for each in periods if each != period])

    def _periods(self, kind: str, changed: Callable[[list[str]], list[str]]) -> None:
        if kind not in ("train_periods", "exclude_periods"):
            raise RefusedError(f"A period is one of train_periods, exclude_periods; got {kind!r:.60}.")
        with self._lock:
            self.change(**{kind: changed(list(self.settings.get(kind, [])))})

    @property
    def sources(self) -> list[str]:
        """The files, folders and addresses that are read, with their whole paths."""
        given = self.settings[_SOURCE]
        return [each if is_address(each) else str(self.folder / each) for each in given]

    def options(self, *, only: type = FitOptions) -> dict[str, Any]:
        """The keyword arguments of `look`, `detect` or `fit_model` (`only` its options)."""
        wanted = {name for name, _, _ in described(only)}
        settings = {name: value for name, value in self.settings.items() if name in wanted}
        for name, value in settings.items():
            option = _OPTIONS[_KEYS[name]][1]
            if option.kind is Path:
                settings[name] = self.folder / value
            elif isinstance(value, list):
                settings[name] = tuple(value)
        return settings

    @property
    def key(self) -> str:
        """A digest of all that a result depends on: settings, labels, failures, and size and time of the data."""
        parts: list[Any] = [self.settings]
        for name in (LABELS, FAILURES):
            path = self.folder / name
            parts.append(hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None)
        parts += [file_key(source) for source in self.sources]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()

    # Files.

    def use(self, *sources: str) -> None:
        """Read files, folders or addresses where they are."""
        for source in sources:
            if not is_address(source) and not Path(source).exists():
                raise RefusedError(f"There is no file {source!r:.200}.")
        kept = [source if is_address(source) else str(Path(source).resolve()) for source in sources]
        self.change(source=[os.path.relpath(each, self.folder) if self._is_inside(each) else each for each in kept])

    def _is_inside(self, source: str) -> bool:
        return not is_address(source) and Path(source).is_relative_to(self.folder)

    def add_sample(self) -> None:
        """Use the sample plant: one unit of a simulated hydropower plant with known faults."""
        from penstock.datasets import load_plant
        from penstock.simulate import write_plant

        place = self.folder / "data" / "sample"
        if not (place / "plant.csv").exists():
            write_plant(load_plant(), place, overwrite=True)
        self.change(source=["data/sample/plant.csv"], units="data/sample/variables.csv")

    @property
    def uploads(self) -> list[dict[str, Any]]:
        """The files in data/: name and bytes."""
        files = sorted(path for path in (self.folder / "data").iterdir() if path.is_file() and path.name[0] != ".")
        return [{"name": path.name, "bytes": path.stat().st_size} for path in files]

    def use_uploads(self) -> None:
        """Read all files that were uploaded, in place of what was read before."""
        self.change(source=[f"data/{each['name']}" for each in self.uploads], units=None)

    def remove_upload(self, name: str) -> None:
        if name not in [each["name"] for each in self.uploads]:
            raise RefusedError(f"There is no file {name!r:.100}.")
        (self.folder / "data" / name).unlink()
        self.use_uploads()

    def write_text(self, name: str, text: str) -> None:
        """Replace a file of the folder as a whole; its owner alone may read it, as an address may have a password."""
        replace_file(self.folder / name, [memoryview(text.encode("utf-8"))], private=True)

    def write_json(self, name: str, document: Any) -> None:
        from penstock.report import as_json

        self.write_text(f"results/{name}.json", as_json(document))

    def read_json(self, name: str) -> Any:
        """Return a result; None if there is none, or it was cut off."""
        try:
            return json.loads((self.folder / "results" / f"{name}.json").read_bytes())
        except (OSError, ValueError):
            return None

    def stamp_of(self, name: str) -> str:
        """Return what tells whether a result has changed; "" if there is none."""
        try:
            found = (self.folder / "results" / f"{name}.json").stat()
        except OSError:
            return ""
        return f"{found.st_mtime_ns}-{found.st_ino}"

    # What people say.

    @property
    def labels(self) -> list[Label]:
        """What people said of incidents, and did not take back."""
        path = self.folder / LABELS
        return [each for each in read_labels(path) if each.holds] if path.exists() else []

    def label(self, incident: Mapping[str, Any], reason: str, who: str, comment: str = "") -> Label:
        """Keep what an incident was.

        incident : of `penstock.report.incident_records`: its start, end and pattern.
        reason : "fault", "sensor defect", "maintenance" or "rare but normal".
        """
        from dataclasses import replace

        import pandas as pd

        path = self.folder / LABELS
        times = (incident["start"], incident["end"])
        period = tuple(pd.Timestamp(each).timestamp() if isinstance(each, str) else float(each) for each in times)
        subject = f"incident of {str(times[0]).replace('T', ' ')}"
        made = label_incident(subject, incident["pattern"], period, reason, who, comment)  # type: ignore[arg-type]
        with self._lock:
            before = read_labels(path) if path.exists() else []
            for each in before:
                if each.holds and each.subject == subject:
                    self.take_back(each.id, who)
            made = replace(made, id=new_label_id(subject, before))
            append_record(path, {"kind": "label", **made.as_dict()})
            self.change()
        return made

    def take_back(self, identity: str, who: str) -> None:
        with self._lock:
            if identity not in [each.id for each in self.labels]:
                raise RefusedError(f"There is no label {identity!r:.80}.")
            append_record(self.folder / LABELS, {"kind": "withdrawn", "id": identity, "who": who, "at": time.time()})

    @property
    def failures(self) -> tuple[Failure, ...]:
        path = self.folder / FAILURES
        return read_failures(path) if path.exists() else ()

    def set_failures(self, source: Any) -> None:
        """Take over a log of failures, a file as `penstock.detection.read_failures` reads it; None removes it."""
        with self._lock:
            if source is None:
                (self.folder / FAILURES).unlink(missing_ok=True)
                self.change(failures=None)
                return
            text = io.StringIO()
            writer = csv.writer(text)
            writer.writerow(("start", "end", "text"))
            writer.writerows((each.start, each.end, each.text) for each in read_failures(source))
            self.write_text(FAILURES, text.getvalue())
            self.change()

    # Work.

    def table(self, **given: Any) -> Table:
        """Return the table of the sources, before anything is made of it."""
        return table_of(self._source(), LookOptions(**self.options(only=LookOptions), **given))

    def compare(self, *, periods: Sequence[str] = (), units: Sequence[str] = (), **given: Any) -> pd.DataFrame:
        """Compare two periods, or two units: see `compare_periods` and `compare_units`."""

        def read(source: str | list[str]) -> Table:
            return table_of(source, LookOptions(**self.options(only=LookOptions), **given))

        return compare_sources(self._source(), read, periods=periods, units=units)

    def look(self, **given: Any) -> DataSummary:
        return look(self._source(), **self.options(only=LookOptions), **given)

    def detect(self, **given: Any) -> Findings:
        return detect(self._source(), **self.options(), **given)

    def fit(self, **given: Any) -> Path:
        """Fit a model, and keep it as the next version; return its path."""
        model: Model = fit_model(self._source(), **self.options(), **given)
        with self._lock:
            last = max(map(_number_of, self.models), default=0)
            path = self.folder / "models" / f"{self.name}-{last + 1}.penstock"
            model.save(path)
        return path

    @property
    def models(self) -> list[Path]:
        numbered = [path for path in (self.folder / "models").iterdir() if _number_of(path)]
        return sorted(numbered, key=lambda path: (_number_of(path), path))

    def model(self, name: Any) -> Path:
        found = next((each for each in self.models if each.name == name), None)
        if found is None:
            raise RefusedError("Fit a model first: it is what rows are scored with.")
        return found

    @property
    def name(self) -> str:
        """What the plant is called: as the folder."""
        return re.sub(r"[^\w.-]+", "-", self.folder.name).strip("-.")[:40] or "plant"

    def _source(self) -> str | list[str]:
        sources = self.sources
        if not sources:
            raise RefusedError("There is no data yet. Drop a file, or give a path.")
        return sources[0] if len(sources) == 1 else sources


@contextmanager
def opened_project(folder: str | os.PathLike[str]) -> Iterator[Project]:
    """Open a project that no other process has open; RefusedError if one has."""
    from penstock.storage import lock

    project = Project(folder)
    with (project.folder / "results" / ".lock").open("ab") as file:
        if not lock(file.fileno()):
            raise RefusedError(f"{project.folder} is open already, in another 'penstock open'.")
        yield project


def table_of(source: str | list[str], options: LookOptions) -> Table:
    """Return a table as `look` and `detect` read it."""
    plan = FitPlan.of(options)
    return plan.used.take(plan.reading.read(source, plan.progress, reader=options.reader))[0]


def _as_moment(text: str) -> str:
    """Return a time in one form, a row number as it is; 31.5.2024 is understood."""
    try:
        return read_failures([(text, text, "")])[0].start if text else ""
    except ValueError:
        message = (
            f"{text!r:.60} is not a time. Write it like 2024-05-31 13:40 or 31.5.2024; without times, a row number."
        )
        raise RefusedError(message) from None


def _is_later(one: str, other: str) -> bool:
    if one.isdigit() and other.isdigit():
        return int(one) > int(other)
    return one[: len(other)] > other[: len(one)]  # a day stands for all of it


def _number_of(model: Path) -> int:
    """Return the number in the name of a model; 0 if it has none."""
    match = re.fullmatch(r".*-(\d+)\.penstock", model.name)
    return 0 if match is None else int(match[1])


def file_key(source: str) -> Any:
    """Return what tells whether a source has changed: of each of its files path, size and time."""
    if is_address(source):
        return source
    try:
        files = files_of([source], ReadLog(source))
    except (OSError, ValueError):
        files = [Path(source)]
    found = [(str(path), path.stat()) for path in files if path.exists()]
    return [(path, each.st_size, each.st_mtime_ns) for path, each in found]


def toml_value(value: Any) -> str:
    """Return a text, number, list of texts or bool as TOML.

    >>> toml_value(['a "b"', "c\\x7f"]), toml_value(True), toml_value(2.5)
    ('["a \\\\"b\\\\"", "c\\\\u007f"]', 'true', '2.5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _checked(value: Any, option: Option, place: str) -> Any:
    """Return a setting as it is kept; RefusedError if it is of another kind."""
    if value is None:
        return None
    if option.kind in ("names", "repeated", "values"):
        several = [value] if isinstance(value, str | int | float) else list(value)
        if not all(isinstance(each, str | int | float) for each in several):
            raise RefusedError(f"{place} must be texts; got {value!r:.100}.")
        return [str(each) for each in several]
    if option.kind in (bool, int, float):
        if type(value) is not option.kind:
            raise RefusedError(f"{place} must be {option.kind.__name__}; got {value!r:.100}.")
        return value
    if not isinstance(value, str | int | float | os.PathLike) or isinstance(value, bool):
        raise RefusedError(f"{place} must be a text; got {value!r:.100}.")
    return str(value)
