"""Score the rows of a stream: what the monitor asks of a model, and the model that goes on learning."""

from __future__ import annotations

import copy
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from penstock._parameters import ParameterError
from penstock._types import BoolArray, FloatArray, StreamScores
from penstock.detectors.online import OnlineNSNMF
from penstock.explain import Label, Pattern, strongest
from penstock.io import Aligning, Batch, InputError, TableOptions, is_number, plain_alignment, quoted
from penstock.live.alarm_records import RowVerdict, Sensor, SensorReadings
from penstock.live.options import WatchOptions
from penstock.thresholds import ConformalPValue, Threshold, parse_threshold

_LEAST_WARMUP = 200  # samples: fewer make poor ranges of columns
_MOST_SENSORS = 12  # of a verdict
_MOST_EVIDENCE = 1e9
_PLAIN = (type(None), bool, int, float, str)


@dataclass(frozen=True)
class Verdicts:
    """Verdicts on the rows of a batch.

    reasons : by position in the batch, why a row has no score.
    unknown_texts : by column and text, how many rows hold a text that the model does not know.
    refused : by position, why the model cannot use a row; `taken` are the others, None: all. What is said of rows is
        said of these.
    readings, evidence : of the inputs (n, p); the evidence is None where that is not known.
    deviations : with evidence, measured minus expected of flagged rows (n, p); NaN elsewhere.
    expected_by_chance : how many episodes of at least the score of a flagged row normal data have in a day; NaN if not
        known.
    groups : the unit or machine of each row, where the model was fitted with groups.
    states : of inputs that are states, by number: how a reading of each is said in words.
    """

    scores: StreamScores
    readings: FloatArray
    reasons: dict[int, str] = field(default_factory=dict)
    unknown_texts: dict[tuple[str, str], int] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    evidence: FloatArray | None = None
    deviations: FloatArray | None = None
    expected_by_chance: FloatArray | None = None
    groups: Sequence[str] | None = None
    states: Mapping[int, Callable[[float], str]] = field(default_factory=dict)
    taken: list[int] | None = None

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return how many rows, flagged ones, missing readings and so on there are; see `Counts`."""
        return {
            "samples": len(self.scores.scores),
            "flagged": int(self.scores.flags.sum()),
            "missing": int(np.isnan(batch.values).sum()) + sum(each.count(None) for each in batch.texts.values()),
            "unscored": len(self.reasons),
            "unknown": sum(self.unknown_texts.values()),
        }

    def for_alarms(self, asset: str, seconds: Sequence[float], names: Sequence[str]) -> list[RowVerdict]:
        """Return the verdicts on rows at these times for `AlarmBook.update`; groups are assets "asset/group"."""
        scores, places = self.scores, {name: place for place, name in enumerate(names)}
        assets = [f"{asset}/{group}" if group else asset for group in self.groups or [""] * len(scores.scores)]
        named = scores.flags if self.evidence is None else scores.flags | (self.evidence >= 1).any(axis=1)
        sensors = [self._sensors(place, names) if is_named else () for place, is_named in enumerate(named.tolist())]
        chances = [math.nan] * len(assets) if self.expected_by_chance is None else self.expected_by_chance.tolist()
        numbers = [map(_finite, each) for each in (scores.scores.tolist(), scores.thresholds.tolist(), chances)]
        readings = [SensorReadings(places, row) for row in self.readings]
        reasons = [self.reasons.get(place, "") for place in range(len(assets))]
        empty: Any = np.isnan(self.readings).all(axis=1)
        patterns = [self._pattern(place, names) if flag else None for place, flag in enumerate(scores.flags.tolist())]
        columns: Iterable[Any] = zip(
            assets, seconds, *numbers, sensors, readings, reasons, (~empty).tolist(), patterns, strict=True
        )
        return [RowVerdict(*each) for each in columns]

    def _pattern(self, place: int, names: Sequence[str]) -> Pattern | None:
        """Return the evidence of all sensors that are out in a row; None where evidence is not known."""
        if self.evidence is None or self.deviations is None:
            return None
        out = np.flatnonzero(self.evidence[place] >= 1)
        values = np.where(self.deviations[place, out] < 0, -1.0, 1.0) * np.minimum(
            self.evidence[place, out], _MOST_EVIDENCE
        )
        return strongest(dict(zip([names[number] for number in out.tolist()], values.tolist(), strict=True)))

    def _sensors(self, place: int, names: Sequence[str]) -> tuple[Sensor, ...]:
        """Return the sensors with evidence in a row, the most first."""
        variables, residuals = self.scores.variables[place].tolist(), self.scores.residuals[place].tolist()
        known = {number: value for number, value in zip(variables, residuals, strict=True) if number >= 0}
        weights = dict.fromkeys(known, 1.0)
        if self.evidence is not None:
            row = self.evidence[place]
            out = np.flatnonzero(row >= 1)
            out = out[np.argsort(-row[out], kind="stable")][:_MOST_SENSORS]
            weights = {number: float(row[number]) for number in [*out.tolist(), *known]}
            if self.deviations is not None:
                known |= {number: float(self.deviations[place, number]) for number in out.tolist()}
        row = self.readings[place]
        found = []
        for number, weight in weights.items():
            value = float(row[number])
            state = self.states[number](value) if number in self.states else ""
            residual = _finite(known.get(number))
            found.append(Sensor(names[number], min(weight, _MOST_EVIDENCE), residual, _finite(value), state))
        return tuple(found)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


class Scorer(Protocol):
    """What the monitor asks of a model.

    variable_names : names of the inputs, to which `StreamScores.variables` refers; known after `begin`.
    labels : of situations that the model knows.
    warmup : rows that pass before the first score.
    """

    variable_names: tuple[str, ...]
    labels: tuple[Label, ...]

    @property
    def warmup(self) -> int: ...
    def table_options(self, options: TableOptions) -> TableOptions:
        """Return options that read the columns of the model."""

    def aligning(self, options: WatchOptions) -> Aligning | None:
        """Return how single readings are put into rows for the model; None if that is not known."""

    def begin(self, names: tuple[str, ...]) -> None:
        """Take the names of the columns of `Batch.values`; InputError if the model is for others."""

    def score(self, batch: Batch, n_variables: int, *, strict: bool) -> Verdicts:
        """Score rows in turn, and learn what is to be learned from them. Batches of any size give the same verdicts."""

    def expected(self, batch: Batch) -> FloatArray | None:
        """Return what each input should have been in these rows, NaN where that is not known; None: nowhere."""

    def situations(self, batch: Batch, place: int) -> tuple[FloatArray, BoolArray, FloatArray]:
        """Return the inputs of rows (n, p), which of them are of the same mode as the one at this place (n,), and the
        usual training rows of that mode (m, p), as many as the model has kept."""

    def settings(self) -> dict[str, Any]:
        """Return what the verdicts depend on apart from the rows, in plain values."""

    def state(self) -> dict[str, Any] | None:
        """Return what the stream has changed, for `restore`; None before the first row."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; ValueError, TypeError or LookupError if it does not fit."""


class OnlineScorer:
    """Score each row with an `OnlineNSNMF`, new or saved in the middle of another stream, which learns it afterwards.

    `origin` is the digest of the file that it comes from.
    """

    labels: tuple[Label, ...] = ()

    def __init__(self, detector: OnlineNSNMF, origin: str | None = None) -> None:
        self._detector, self._origin = detector, origin
        self._begun = False
        self.variable_names: tuple[str, ...] = ()

    @property
    def warmup(self) -> int:
        return int(self._detector.warmup or self._detector.buffer_size)

    def table_options(self, options: TableOptions) -> TableOptions:
        return options

    def aligning(self, options: WatchOptions) -> Aligning | None:
        step, hold = options.step_and_hold
        if step is None:
            return None
        names = tuple(getattr(self._detector, "feature_names_in_", ())) or options.columns
        if not names:
            raise ParameterError("step", " needs the tags that the readings are of: name them (--columns).")
        return Aligning(plain_alignment(step, hold, names, ()), (), options.seconds("late"))

    def begin(self, names: tuple[str, ...]) -> None:
        check_columns(self._detector, names)
        self.variable_names = names

    def expected(self, batch: Batch) -> None:
        """Return None: the factors have changed since."""

    def situations(self, batch: Batch, place: int) -> tuple[FloatArray, BoolArray, FloatArray]:
        return batch.values, np.ones(len(batch.values), dtype=np.bool_), np.empty((0, batch.values.shape[1]))

    def settings(self) -> dict[str, Any]:
        chosen = {**self._detector.get_params(deep=False), "model": self._origin}
        return {name: value if isinstance(value, _PLAIN) else repr(value) for name, value in chosen.items()}

    def state(self) -> dict[str, Any] | None:
        return self._detector._pack() if self._begun else None

    def restore(self, state: dict[str, Any]) -> None:
        self._detector._unpack(state)
        self._begun = True

    def score(self, batch: Batch, n_variables: int, *, strict: bool) -> Verdicts:
        """Score rows, apart from those that the detector refuses.

        Without scaling, rows with negative or huge values are refused. A refusal leaves the detector as it was, and
        scores do not depend on batches, so that the other rows can be passed one by one.
        """
        self._begun = True
        try:
            return Verdicts(self._detector.process(batch.values, n_variables), batch.values)
        except ValueError:
            if self._detector.scale is not None:
                raise  # then no row can be the reason
        k = min(n_variables, len(self.variable_names))
        none, pairs = np.empty(0), np.empty((0, k))
        parts = [StreamScores(none, none, none.astype(np.bool_), pairs.astype(np.intp), pairs)]
        refused, taken = dict[int, str](), list[int]()
        for place, row in enumerate(batch.values):
            try:
                parts.append(self._detector.process(row.reshape(1, -1), n_variables))
                taken.append(place)
            except ValueError as error:
                refused[place] = with_names(str(error), self.variable_names)
                if strict:
                    break
        joined = {
            each.name: np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(StreamScores)
        }
        return Verdicts(StreamScores(**joined), batch.values[taken], refused=refused, taken=taken)


def check_columns(detector: Any, names: tuple[str, ...]) -> None:
    """Raise unless a detector that knows its columns knows them by these names and in this order."""
    # Checked here once; the rows that follow are arrays, about which scikit-learn would warn each time.
    known = vars(detector).pop("feature_names_in_", None)
    count = vars(detector).get("n_features_in_", len(names))
    if known is not None and tuple(known) != names:
        raise InputError(f"The model was made for the columns {', '.join(known)}, but these are {', '.join(names)}.")
    if count != len(names):
        raise InputError(f"The model was made for {count} columns, but there are {len(names)}: {', '.join(names)}.")


def with_names(text: str, names: tuple[str, ...]) -> str:
    """Replace numbers of columns in a detector's message on one row by the names of the columns.

    >>> with_names("Columns [0, 2] had no reading", ("flow", "head", "power"))
    'Columns "flow", "power" had no reading'
    """

    def named(found: re.Match[str]) -> str:
        return ", ".join(quoted(names[int(number)]) for number in found[1].split(", "))

    if not names:
        return text
    text = re.sub(r"row 0, column (\d+)", lambda found: f"column {named(found)}", text)
    return re.sub(r"Columns \[(\d+(?:, \d+)*)\]", lambda found: f"Columns {named(found)}", text)


def scorer_maker(options: WatchOptions) -> Callable[[], Scorer]:
    """Return a function that makes the scorer of these options, ready for the first row, each time the same.

    A ParameterError names a parameter out of bounds, or one that a model has already.
    """
    if options.model is None:
        parameters = _online_parameters(options)
        return lambda: OnlineScorer(OnlineNSNMF(**parameters))
    _refuse_with_model(options.online_parameters())
    from penstock.detection import load  # takes a while to import, and is not needed above

    model = load(options.model)
    origin = hashlib.sha256(Path(options.model).read_bytes()).hexdigest()[:12]
    online = isinstance(model, OnlineNSNMF)
    fixed = ("threshold",) if online else ("columns", "exclude")
    _refuse_with_model(name for name in fixed if getattr(options, name))
    if online:
        return lambda: OnlineScorer(copy.deepcopy(model), origin)
    from penstock.live.fitted import FittedScorer

    threshold = _share_or_threshold(options.threshold)
    return lambda: FittedScorer(model, threshold, origin)


def _refuse_with_model(names: Iterable[str]) -> None:
    for name in names:
        raise ParameterError(name, " cannot be changed: --model has its own.")


def _online_parameters(options: WatchOptions) -> dict[str, Any]:
    """Return the parameters of `OnlineNSNMF`, with the defaults for sensors: docs/watch.md has the reasons."""
    given = options.online_parameters()
    chosen = {"similarity": "binary", "random_state": 0, **given, "threshold": _running(options.threshold)}
    chosen["scale"] = None if given.get("scale") == "none" else given.get("scale", "minmax")
    detector = OnlineNSNMF(**chosen)
    if detector.scale is not None and "warmup" not in chosen:
        chosen["warmup"] = max(_LEAST_WARMUP, detector.buffer_size)
    try:
        OnlineNSNMF(**chosen).check_parameters()
    except ParameterError:
        raise
    except ValueError as error:
        name, _, problem = str(error).partition(" ")
        if name not in chosen:
            raise
        raise ParameterError(name, f" {problem}") from None
    return chosen


def _running(threshold: Any) -> Threshold:
    if threshold is None:
        return ConformalPValue(rate=0.01)
    return threshold if isinstance(threshold, Threshold) else _parsed(str(threshold))


def _share_or_threshold(threshold: Any) -> Any:
    """Return None, "auto", a share or a Threshold."""
    if threshold is None or threshold == "auto" or isinstance(threshold, Threshold):
        return threshold
    if is_number(threshold):
        share = float(threshold)
        if not 0 < share <= 0.5:
            raise ParameterError("threshold", f" must be a share of rows above 0 and up to 0.5; got {threshold}.")
        return share
    return _parsed(str(threshold), also=("auto",))


def _parsed(text: str, also: tuple[str, ...] = ()) -> Threshold:
    try:
        return parse_threshold(text, also)
    except ValueError as error:
        raise ParameterError("threshold", f" cannot be used: {error}") from None
