"""A small cooling plant that is not the simulator's: readings at any time, and one known fault in each record.

Water is pumped through coolers (supply) and heated by the consumers of a factory (return). Two pumps stand in
parallel, the second helps at high load; a controller moves the valve so that the supply has the temperature of the
set point. Nothing here imports penstock: what is drawn must not depend on what is tested. Noise and
sizes of faults were chosen so that faults are found in plain files of seeds 0 to 49: say how often they are by others.

>>> record = draw_record("bearing", seed=0, days=7)
>>> record.fault.tag, len(record.table), list(record.table.columns)[:3]
('TB101', 10080, ['HL100', 'FT101', 'FT102'])
>>> bool(record.fault.start <= record.fault.visible < record.fault.end)
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MINUTE = pd.Timedelta(minutes=1)
START = pd.Timestamp("2025-03-01")  # a month of 31 days: the first twelve days can be read with the month first
NOTICEABLE = 4.0  # widths of a tag's scatter from which a deviation can be seen
NOISIER = 12.0  # times, and always too low, where a contact is loose
LASTING = 5  # minutes that it is so


@dataclass(frozen=True)
class Tag:
    """A measuring point: what it is called on site, its unit, the noise of its readings and their resolution."""

    name: str
    text: str
    unit: str
    noise: float
    digits: int
    area: str
    kind: str = "sensor"  # or state, setting, counter


TAGS = (
    Tag("HL100", "Heat load", "kW", 6.0, 1, "process"),
    Tag("FT101", "Supply flow", "m³/h", 0.6, 2, "pumps"),
    Tag("FT102", "Return flow", "m³/h", 0.6, 2, "coolers"),
    Tag("PT101", "Pump pressure", "bar", 0.015, 3, "pumps"),
    Tag("PT102", "Header pressure", "bar", 0.015, 3, "coolers"),
    Tag("TT101", "Supply temperature", "°C", 0.05, 2, "coolers"),
    Tag("TT102", "Return temperature", "°C", 0.05, 2, "coolers"),
    Tag("TB101", "Bearing temperature", "°C", 0.15, 2, "pumps"),
    Tag("TB102", "Motor temperature", "°C", 0.15, 2, "pumps"),
    Tag("JT101", "Pump power", "kW", 0.25, 2, "pumps"),
    Tag("ZT103", "Valve position", "%", 0.15, 1, "coolers"),
    Tag("PU102", "Second pump", "", 0.0, 0, "pumps", "state"),
    Tag("SP101", "Set point", "°C", 0.0, 1, "process", "setting"),
    Tag("EQ101", "Energy", "kWh", 0.0, 1, "pumps", "counter"),
    Tag("ZT105", "Relief valve", "%", 0.0, 1, "coolers"),
)
BY_NAME = {tag.name: tag for tag in TAGS}
NAMES = tuple(BY_NAME)


@dataclass(frozen=True)
class FaultKind:
    """What goes wrong: the tag that shows it, those that may be named as well, how long, and what is added or done."""

    tag: str
    twins: tuple[str, ...]
    hours: float
    text: str


FAULTS = {
    "bearing": FaultKind("TB101", ("TB102",), 6, "the bearing is 6 °C too hot"),
    "flow meter": FaultKind("FT101", ("FT102",), 8, "the supply flow reads 8 % low"),
    "stands still": FaultKind("TT102", (), 10, "the return temperature stands still while the plant moves"),
    "leak": FaultKind("PT102", ("FT102", "PT101", "FT101"), 6, "header pressure and return flow fall together"),
    "relief valve": FaultKind("ZT105", (), 5, "the relief valve, which never moved, opens to 80 %"),
    "noisy": FaultKind("JT101", (), 6, "the pump power is twelve times as noisy as usual, and low, by a loose contact"),
}


@dataclass(frozen=True)
class Fault:
    """The fault of a record.

    Visible is the first minute from which a tag of the fault is noticeably away from what it would read without the
    fault: for `LASTING` minutes by `NOTICEABLE` times the scatter that the other tags do not explain (by least squares,
    with the noise of a reading). For a step that is the start; where a reading stands still it is the time at which the
    plant has moved away from it; for a slow fault, that at which it has grown out of the scatter; of a noisy sensor it
    is the first reading that is so far off. An incident may begin from the start on (a reading without any noise can be
    told from a live one at once), and at the latest when the fault is visible.
    """

    kind: str
    tag: str
    tags: tuple[str, ...]
    start: pd.Timestamp
    end: pd.Timestamp
    visible: pd.Timestamp


@dataclass(frozen=True, eq=False)
class Record:
    """A period of the plant: what is true each minute, and readings of it at any time.

    Attributes
    ----------
    truth, faultless : DataFrame
        Values without noise each minute, with and without the fault.
    fault : Fault
    since, until : Timestamp
        The part that is exported; see `between`.
    """

    seed: int
    truth: pd.DataFrame
    faultless: pd.DataFrame
    fault: Fault
    since: pd.Timestamp
    until: pd.Timestamp
    _frozen: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One reading of each tag a minute, all at the same times."""
        times = pd.date_range(self.since, self.until, freq=MINUTE, inclusive="left", name="time", unit="ns")
        return pd.DataFrame({name: self.read(name, times) for name in NAMES}, index=times)

    def read(self, name: str, times: pd.DatetimeIndex) -> Floats:
        """Return readings of a tag at any times; two calls for the same times give the same readings."""
        tag, begun = BY_NAME[name], pd.DatetimeIndex(self.truth.index)[0]
        seconds = ((times - begun) / pd.Timedelta(seconds=1)).to_numpy(dtype=np.float64)
        values = self._at(self.truth[name], seconds, tag)
        noise = tag.noise * _scatter(seconds, self.seed, NAMES.index(name))
        begin, end = (float((moment - begun).total_seconds()) for moment in (self.fault.start, self.fault.end))
        within = (seconds >= begin) & (seconds < end)
        if self.fault.kind == "noisy" and name == self.fault.tag:
            noise = np.where(within, -NOISIER * (tag.noise / 2 + np.abs(noise)), noise)
        values = values + noise
        if name in self._frozen:
            values = np.where(within, self._frozen[name], values)
        if name == "ZT103":
            values = values.clip(0, 100)
        return values.round(tag.digits) + 0.0

    def between(self, since: pd.Timestamp, until: pd.Timestamp) -> Record:
        """Return the same record, of which only this part is exported."""
        return replace(self, since=since, until=until)

    @staticmethod
    def _at(truth: pd.Series[Any], seconds: Floats, tag: Tag) -> Floats:
        values, minutes = truth.to_numpy(dtype=np.float64), seconds / 60
        if tag.kind in ("state", "setting") or tag.name == "ZT105":
            found = values[np.clip(minutes.astype(np.intp), 0, len(values) - 1)]
        else:
            found = np.interp(minutes, np.arange(len(values)), values)
        return np.asarray(found, dtype=np.float64)


def _scatter(seconds: Floats, seed: int, number: int) -> Floats:
    """Return normal noise that is a function of the time: the reading of one moment is one value, whoever asks."""
    keys = np.round(seconds * 1000).astype(np.int64).astype(np.uint64)
    keys = keys * np.uint64(0x9E3779B97F4A7C15) + np.uint64((seed * 1009 + number) * 0x1000003 + 1)
    uniform = [_mixed(keys + np.uint64(salt)) for salt in (0x5851F42D, 0x14057B7E)]
    normal: Floats = np.sqrt(-2 * np.log(uniform[0])) * np.cos(2 * np.pi * uniform[1])
    return normal


def _mixed(keys: NDArray[np.uint64]) -> Floats:
    """Return numbers from 0 (not with it) to 1 that look random (the finisher of splitmix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    keys ^= keys >> np.uint64(31)
    numbers: Floats = ((keys >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
    return numbers


def draw_record(kind: str, seed: int = 0, days: int = 21, start: pd.Timestamp = START) -> Record:
    """Draw a record with one fault, which begins in the second half and by day, when the plant moves."""
    rng = np.random.default_rng([seed, sorted(FAULTS).index(kind)])
    n = days * 1440
    index = pd.date_range(start, periods=n, freq=MINUTE, name="time", unit="ns")
    faulty = FAULTS[kind]
    day = int(rng.integers(round(0.55 * days), round(0.85 * days)))
    minute = day * 1440 + int(rng.integers(6 * 60, 11 * 60))
    rows = slice(minute, minute + round(faulty.hours * 60))
    draws = _Draws(rng, n)
    if kind == "stands still":  # an order begins with it, and ends before the thermometer is repaired
        draws.changes[rows.start + 5 : rows.stop - 30] += 600.0
    draws.changes = _follow(draws.changes, 2.0)
    faultless = _run_plant(draws, index)
    truth = _run_plant(draws, index, rows if kind == "leak" else None)
    frozen: dict[str, float] = {}
    if kind == "bearing":
        truth["TB101"] = truth["TB101"] + _follow(6.0 * _within(n, rows), 4.0)
    elif kind == "flow meter":
        truth["FT101"] = truth["FT101"] * (1 - 0.08 * _within(n, rows))
    elif kind == "stands still":
        frozen["TT102"] = round(float(faultless["TT102"].iloc[minute]), 2)
        truth["TT102"] = np.where(_within(n, rows) > 0, frozen["TT102"], truth["TT102"])
    elif kind == "relief valve":
        truth["ZT105"] = 80.0 * _within(n, rows)
    tags = (faulty.tag, *faulty.twins)
    scatter = {name: _unexplained(faultless, name) for name in tags}
    if kind == "noisy":
        seconds = np.arange(0, 60 * n, 60, dtype=np.float64)
        noise = 0.5 + np.abs(_scatter(seconds, seed, NAMES.index(faulty.tag)))
        low = NOISIER * BY_NAME[faulty.tag].noise * noise * _within(n, rows)
        visible = _first_away(low, scatter[faulty.tag], lasting=1)
    else:
        visible = min(_first_away(truth[name] - faultless[name], scatter[name]) for name in tags)
    fault = Fault(kind, faulty.tag, tags, index[rows.start], index[rows.stop], index[visible])
    return Record(seed, truth, faultless, fault, index[0], index[-1] + MINUTE, frozen)


def _unexplained(faultless: pd.DataFrame, name: str) -> float:
    """Return the scatter of a tag that the others do not explain by least squares, with the noise of its readings."""
    values = faultless.to_numpy(dtype=np.float64)
    moving = values.std(axis=0) > 0
    moving[NAMES.index(name)] = False
    others = np.column_stack([np.ones(len(values)), values[:, moving]])
    target = faultless[name].to_numpy(dtype=np.float64)
    rest = target - others @ np.linalg.lstsq(others, target, rcond=None)[0]
    return float(np.hypot(rest.std(), BY_NAME[name].noise))


def _first_away(deviation: Any, scatter: float, lasting: int = LASTING) -> int:
    """Return the row from which a deviation is noticeable for so many rows; the number of rows if it never is."""
    size = np.abs(np.asarray(deviation, dtype=np.float64))
    away = (size >= NOTICEABLE * scatter) & (size > 0)
    lasts = np.convolve(away, np.ones(lasting), mode="valid") >= lasting
    return int(lasts.argmax()) if lasts.any() else len(away)


class _Draws:
    """The random part of a plant, drawn once, so that a record can be run with and without its fault."""

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self.changes = 200.0 * _levels(rng, n, every=180)
        self.flutter = _follow(rng.normal(0, 60, n), 12.0)
        self.weather = 6.0 * _follow(_levels(rng, n, every=600), 400.0)
        self.shifts = rng.integers(-20, 21, n // 1440 + 2)  # minutes by which people change the set point off time
        self.wander = {name: _follow(rng.normal(0, 1, n), 20.0) * np.sqrt(2 * 20.0) for name in NAMES}


def _run_plant(draws: _Draws, index: pd.DatetimeIndex, leaking: slice | None = None) -> pd.DataFrame:
    """Return the true values each minute."""
    n = len(index)
    hours = np.asarray(index.hour + index.minute / 60, dtype=np.float64)
    is_weekend = np.asarray(index.day_of_week >= 5)
    rhythm = np.exp(-(((hours - 13.5) / 4.5) ** 2)) * np.where(is_weekend, 0.8, 1.0)
    load = (750 + 550 * rhythm + draws.changes + draws.flutter).clip(300, 1950)
    ambient = 12 + 6 * np.sin(2 * np.pi * (hours - 9) / 24) + draws.weather
    clock = 60 * hours + draws.shifts[np.arange(n) // 1440]
    set_point = np.where((clock >= 5 * 60) & (clock < 21 * 60), 18.0, 18.5)  # higher at night
    valve = _follow((100 * (load / 2000) ** 0.8).clip(8, 96), 5.0)
    second = _switch(_follow(load, 15.0), on=1250, off=1000)
    leak = np.zeros(n) if leaking is None else _follow(_within(n, leaking), 1.0)
    flow = _follow(100 + 0.6 * valve + 25 * second, 2.0)
    back = flow * (1 - 0.12 * leak)
    pressure = 5.6 + 0.9 * second - 6.0e-5 * flow**2 - 0.05 * leak
    header = pressure - 4.0e-5 * flow**2 - 0.60 * leak
    supply = set_point + _follow(0.0016 * (load - 1000) + 0.05 * (ambient - 12), 8.0)
    rise = load * 0.86 / flow
    power = 6 + 0.17 * flow + 2.5 * second + 1.5 * (pressure - 5)
    body = _follow(power, 20.0)
    wander = {name: BY_NAME[name].noise * 0.5 * values for name, values in draws.wander.items()}
    columns = {
        "HL100": load,
        "FT101": flow,
        "FT102": back,
        "PT101": pressure,
        "PT102": header,
        "TT101": supply,
        "TT102": _follow(supply + rise, 3.0),
        "TB101": 24 + 0.45 * body + 0.5 * _follow(ambient, 60.0),
        "TB102": 30 + 0.80 * body + 0.4 * _follow(ambient, 60.0),
        "JT101": power,
        "ZT103": valve,
        "PU102": second,
        "SP101": set_point,
        "EQ101": 48210.0 + np.cumsum(power) / 60,
        "ZT105": np.zeros(n),
    }
    return pd.DataFrame({name: values + wander[name] for name, values in columns.items()}, index=index)


def _within(n: int, rows: slice) -> Floats:
    inside = np.zeros(n)
    inside[rows] = 1.0
    return inside


def _follow(values: Floats, minutes: float) -> Floats:
    """Return what follows values with a lag of first order, from its first value on."""
    return pd.Series(values).ewm(alpha=1 - np.exp(-1 / minutes), adjust=False).mean().to_numpy(dtype=np.float64)


def _levels(rng: np.random.Generator, n: int, every: float) -> Floats:
    """Return levels from -1 to 1 that change at random times, as orders, shifts and weather do."""
    starts = np.flatnonzero(rng.random(n) < 1 / every)
    levels = rng.uniform(-1, 1, len(starts) + 1)
    return np.asarray(levels[np.searchsorted(starts, np.arange(n), side="right")], dtype=np.float64)


def _switch(values: Floats, on: float, off: float) -> Floats:
    """Return 1 from where values exceed `on` to where they fall below `off`."""
    state = pd.Series(np.where(values > on, 1.0, np.where(values < off, 0.0, np.nan)))
    return np.asarray(state.ffill().fillna(0.0), dtype=np.float64)
