"""Models: the inputs, the operating modes and a fitted detector for each, with which new data are scored."""

from __future__ import annotations

import copy
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from penstock._messages import counted, listed
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.certainty import WELL_ABOVE_USUAL, RowRate
from penstock.columns import InputChoice
from penstock.detection._parts import (
    ALL,
    Abilities,
    Contributions,
    ModePart,
    mean_of_similar,
    reference_rows,
    to_compare,
    usual_scores,
)
from penstock.detection._preparing import Prepared, Progress, ReadSettings
from penstock.detection.modes import ModePlan
from penstock.detectors import BaseDetector, fit_needs
from penstock.explain import MOST_LABELS, Label, Pattern, as_reason
from penstock.graph.rows import find_incomparable
from penstock.io import Note, TableError
from penstock.prepare import learn_scaling
from penstock.storage import StorageError
from penstock.thresholds import Contamination, score_threshold

if TYPE_CHECKING:
    from penstock.detection.findings import Findings

# Called with a detector and its training rows, of a series also with time= and runs=: fits the one to the other.
FitRows = Callable[..., Any]

_FEWEST_ROWS = 10  # of a mode: fewer say nothing about what is usual


@dataclass(frozen=True, eq=False)
class Model:
    """What `penstock fit` learns and `penstock score` uses; see `fit_model`.

    reading : how the training data were read.
    inputs, modes : what is made of the columns, and how the mode of a row is found.
    parts : the detector of each mode.
    units : of the inputs.
    settings : what was asked for, and the versions that it ran on.
    notes : everything that was changed, left out or odd in the training data; not kept in files.
    labels : what people said of incidents: situations that are known (`labelled`).

    Examples
    --------
    >>> import penstock
    >>> table = penstock.datasets.load_plant().table
    >>> model = penstock.fit_model(table, method="norm")
    >>> [part.mode for part in model.parts], len(model.training_scores) == len(table)
    (['all'], True)
    """

    reading: ReadSettings
    inputs: InputChoice
    modes: ModePlan
    parts: tuple[ModePart, ...]
    units: Mapping[str, str]
    settings: Mapping[str, Any]
    notes: tuple[Note, ...] = ()
    labels: tuple[Label, ...] = ()

    @property
    def training_scores(self) -> FloatArray:
        """Return the training scores of all modes, in the units in which modes are ranked together."""
        scores: FloatArray = np.concatenate([part.training_scores for part in self.parts])
        return scores[np.isfinite(scores)]

    @property
    def new_row_scores(self) -> FloatArray:
        """Return the training scores that those of later rows are compared with."""
        scores: FloatArray = np.concatenate([part.new_row_scores for part in self.parts])
        return scores[np.isfinite(scores)]

    @property
    def can(self) -> Abilities:
        """Return what the detectors can do."""
        return self.parts[0].can

    @classmethod
    def of_detector(cls, detector: Any) -> Model:
        """Return a model of one fitted detector: its columns, if it knows their names, are the inputs.

        >>> from penstock.detectors import NormScore
        >>> Model.of_detector(NormScore().fit([[0.0], [1.0], [4.0]]))
        <Model: NormScore, 0 inputs, 3 training rows>
        """
        detector = copy.copy(detector)
        names = tuple(vars(detector).pop("feature_names_in_", ()))
        return cls(
            ReadSettings(),
            InputChoice(names, (), ()),
            ModePlan(),
            (ModePart(ALL, detector),),
            dict.fromkeys(names, ""),
            {},
        )

    def threshold_of(self, contamination: Contamination = "auto", *, later: bool = True) -> float:
        """Return the score above which new rows are flagged, from the training scores; training rows, if not `later`.

        A share is that of normal rows to flag; of `Detector` it may be less than one of the training rows. "auto" of a
        detector that scores series is the score that one episode is expected to reach by chance in a period as long as
        that fitted to; where that is not known, at least three spreads above the usual maximum of a block of time.
        """
        if later and contamination == "auto" and self.can.over_time:
            levels = [part.level(1.0 / len(self.parts)) for part in self.parts]
            if None not in levels:
                return max(level for level in levels if level is not None)
            return max(score_threshold(self.new_row_scores, contamination), WELL_ABOVE_USUAL)
        scores = self.new_row_scores if later else self.training_scores
        if self.can.explains and isinstance(contamination, Real):
            return RowRate.of(scores).exceeded_at(float(contamination))
        return score_threshold(scores, contamination)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a file for `penstock.load`; an existing file is replaced only if `overwrite`."""
        from penstock.detection._model_files import save_model

        save_model(self, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Load a model of `penstock fit`; StorageError for a file of a detector, which `penstock.load` opens too.

        >>> import tempfile
        >>> import penstock
        >>> path = f"{tempfile.mkdtemp()}/plant.model"
        >>> penstock.fit_model(penstock.datasets.load_plant().table, method="norm").save(path)
        >>> Model.load(path).parts[0].detector
        NormScore()
        """
        from penstock.detection._model_files import load

        found = load(path)
        if not isinstance(found, Model):
            what = f"{type(found).__name__}, not a model of penstock fit"
            raise StorageError(f"Cannot load {os.fspath(path)}: it holds a {what}")
        return found

    def labelled(self, findings: Findings, number: int, reason: str, who: str, comment: str = "") -> Model:
        """Return a model that knows an incident again: later ones like it are listed as what it was.

        findings, number : the incident, of this model or another of the same plant.
        reason : "normal" (rare but normal), "fault", "sensor defect" or "maintenance".
        who, comment : who says so, and what it was.

        A model keeps at most 100 labels; `without_label` takes one back.
        """
        incident = next((one for one in findings.incidents if one.number == number), None)
        if incident is None:
            raise KeyError(f"There is no incident {number}; there are {len(findings.incidents)}.")
        times = findings.table.time
        start, end = ((each if times is None else times[each].timestamp()) for each in (incident.start, incident.end))
        subject = f"incident {number} of {findings.table.source}"
        return self.with_labels([label_incident(subject, incident.pattern, (start, end), reason, who, comment)])

    def with_labels(self, labels: Iterable[Label]) -> Model:
        """Return a model with further labels; those of the same incident take the place of earlier ones."""
        new = list(labels)
        about = {(each.subject, each.since) for each in new}
        kept = [each for each in self.labels if (each.subject, each.since) not in about]
        found = list(kept)
        for each in new:
            each.check()
            found.append(replace(each, id=_free_id(each.id, found)))
        if len(found) > MOST_LABELS:
            raise TableError(
                f"A model keeps at most {MOST_LABELS} labels, and this one has {len(self.labels)}. Take some back "
                f"first (penstock label MODEL ID --undo)."
            )
        return replace(self, labels=tuple(found))

    def without_label(self, identity: str) -> Model:
        """Return a model without a label; KeyError if it has none of this id."""
        if all(each.id != identity for each in self.labels):
            raise KeyError(f"There is no label {identity!r:.80}; there are {listed(each.id for each in self.labels)}.")
        return replace(self, labels=tuple(each for each in self.labels if each.id != identity))

    def score(self, source: Any, **options: Any) -> Findings:
        """Score a table with this model; the options are those of `penstock.score`."""
        from penstock.detection._detect import score

        return score(self, source, **options)

    def __repr__(self) -> str:
        modes = "" if len(self.parts) == 1 else f", {len(self.parts)} modes"
        kind = type(self.parts[0].detector).__name__
        return f"<Model: {kind}, {len(self.inputs.names)} inputs, {len(self.training_scores):,} training rows{modes}>"


def _free_id(identity: str, labels: Iterable[Label]) -> str:
    taken = {each.id for each in labels}
    numbers = (str(number) for number in range(1, MOST_LABELS + 2))
    return identity if identity and identity not in taken else next(each for each in numbers if each not in taken)


def label_incident(
    subject: str, pattern: Pattern, period: tuple[float, float], reason: str, who: str, comment: str = ""
) -> Label:
    """Return a label of an incident for a model, which gives it an id.

    >>> label_incident("incident 4 of plant.csv", {"oil": 3.0}, (0.0, 600.0), "normal", "Ada").reason
    'rare but normal'
    """
    since, until = map(float, period)
    label = Label("", subject, "", as_reason(reason), who, time.time(), since, until, dict(pattern), comment)
    label.check()
    return label


def deviations(part: ModePart, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how far the inputs of rows are from what is expected, and how much each stands out.

    part : the model of the rows' mode.
    rows : (n, p).

    Returns deviations (n, p), measured minus expected in the user's units, NaN where nothing is known to expect; and
    weights (n, p), what an input adds to the score where the detector can explain it, else the size of the residual in
    units of its range. They do not depend on the other rows.
    """
    every = np.arange(len(rows))
    added = Contributions(every, *part.explained(rows)) if part.can.explains else None
    if part.can.rebuilds:
        expected = np.vstack([part.expected(row[None]) for row in rows])
    elif part.reference is not None:
        expected = mean_of_similar(part, to_compare(every, rows, added), part.reference)
    else:
        expected = np.full(rows.shape, np.nan)
    residuals = rows - expected
    if part.can.by_sensor:
        return residuals, np.abs(part.detector.deviations(rows))
    return residuals, np.abs(residuals) / part.scale if added is None else added.variables


def fit_parts(
    prepared: Prepared, trained: BoolArray, detector: Any, fit_rows: FitRows | None, progress: Progress
) -> tuple[tuple[ModePart, ...], dict[str, IndexArray], list[Note]]:
    """Fit a detector for each mode that has enough rows; return them, their training rows, and notes."""
    rows_of = {str(mode): np.flatnonzero(trained & (prepared.modes == mode)) for mode in np.unique(prepared.modes)}
    fewest = max(_FEWEST_ROWS, 2 * int(getattr(detector, "n_components", 1)))
    fitted = {mode: rows for mode, rows in rows_of.items() if len(rows) >= fewest}
    if not fitted:
        most = max((len(rows) for rows in rows_of.values()), default=0)
        raise TableError(
            f"There are too few rows to learn from: {fewest} are needed, {prepared.table.source} has {most}"
            f"{' in its largest mode' if len(rows_of) > 1 else ''}. Take more data, or fewer latent groups."
        )
    notes = []
    for mode, rows in rows_of.items():
        if mode not in fitted and len(rows):
            few = f"{counted(len(rows), 'row')} to learn from, too few ({fewest} are needed)"
            notes.append(Note("small modes", f"Mode {mode} has {few}: not scored.", len(rows), changed=True))
    values = prepared.values.to_numpy()
    parts = []
    for mode, rows in fitted.items():
        of_mode = "" if len(fitted) == 1 else f" of mode {mode}"
        progress(f"fitting {type(detector).__name__} to {len(rows):,} rows{of_mode}")
        _check_columns_filled(prepared, rows, of_mode)
        _check_comparable(prepared, rows, detector, of_mode)
        order = prepared.order(rows)
        own = clone(detector)
        if Abilities.of(own).takes_drivers and own.explaining is None:
            own.set_params(explaining=prepared.inputs.explaining)
        part, warned = _fit_part(mode, own, values[rows], order, fit_rows, of_mode)
        parts.append(part)
        notes += warned
    can = Abilities.of(detector)
    if len(parts) > 1 and not can.explains and not can.over_time:
        usual = usual_scores([part.detector.scores_ for part in parts])
        parts = [replace(part, usual=score) for part, score in zip(parts, usual, strict=True)]
    return tuple(parts), fitted, notes


def _fit_part(
    mode: str, detector: Any, rows: FloatArray, order: Mapping[str, Any], fit_rows: FitRows | None, of_mode: str
) -> tuple[ModePart, list[Note]]:
    """Return the part of a mode, and the warnings of its detector as notes."""
    can = Abilities.of(detector)
    scaling = learn_scaling(rows) if can.scaled_before else None
    fit = detector.fit if fit_rows is None else partial(fit_rows, detector)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if can.over_time:
                fit(rows, **order)
            else:
                fit(rows if scaling is None else scaling.apply(rows))
        except ValueError as error:
            raise TableError(f"{type(detector).__name__} cannot learn from the rows{of_mode}: {error}") from error
    messages = dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
    reference = None if can.rebuilds else reference_rows(rows, detector.scores_)
    fitted = f" (Fit{of_mode}.)" if of_mode else ""
    notes = [Note("model", f"{message}{fitted}", 1) for message in messages]
    return ModePart(mode, detector, 1.0, scaling, reference), notes


def _check_columns_filled(prepared: Prepared, rows: IndexArray, of_mode: str) -> None:
    """Raise if an input has no reading among the training rows."""
    empty = np.flatnonzero(np.isnan(prepared.values.to_numpy()[rows]).all(axis=0))
    if len(empty):
        names = listed(prepared.values.columns[empty], most=4)
        raise TableError(
            f"There is no reading of {names} in the training rows{of_mode}. Exclude it, or learn from others."
        )


def _check_comparable(prepared: Prepared, rows: IndexArray, detector: Any, of_mode: str) -> None:
    """Raise if a detector that compares rows would meet two rows without a common input."""
    seen = prepared.values.notna().to_numpy()[rows]
    needs = fit_needs(detector) if isinstance(detector, BaseDetector) else None
    if seen.all() or needs is None or not (needs.missing and needs.neighbors):
        return
    pair = find_incomparable(seen)
    if pair is not None:
        table = prepared.table
        (one, other) = rows[list(pair)]
        first, second = (
            f"row {table.values.index[row]}{'' if table.time is None else f' ({table.time[row]})'}"
            for row in (one, other)
        )
        raise TableError(
            f"{type(detector).__name__} cannot compare {first} with {second} (counted from 0) of the training "
            f"rows{of_mode}: no input has a reading in both. Leave out one of them, or exclude columns that are seldom "
            f"read."
        )
