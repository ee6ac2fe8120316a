"""Make readings of tables in which tags have times of their own, and put them into rows of one clock.

Three kinds of tables have such tags: areas with clocks that differ, a row for each reading (long), and a column of
times beside each tag (pairs). All become `TagReadings`; `align_all` makes one table of them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, duration_in_words, in_columns, listed, option
from penstock._types import BoolArray, FloatArray
from penstock.io._align_kernels import IntArray, count_neighbours, count_readings
from penstock.io._clock import TableClock, seems_time
from penstock.io._numbers import ColumnReader, MissingCodes, text_column
from penstock.io.align import NONE, Alignment, AlignOptions, align_readings, plan_alignment
from penstock.io.quality import MISSING_CODES, is_bad, is_quality, named_like_quality, tag_of
from penstock.io.table import ReadLog, TableError, TagNote
from penstock.io.times import ColumnTimes, TimeOptions, TimeReader, column_times

if TYPE_CHECKING:
    from penstock.io._combine import RawTable

SHARED = 0.6  # of the readings of a tag come at the next time at which any tag is read: it has no clock of its own
FEWEST_READINGS = 4  # of a tag: fewer do not show what is usual
_HARDLY = 0.5  # of the whole period is common to all areas
_HEAD = 5_000  # rows that show whether a column is a clock
_ASCENDING = 0.9  # of the steps of a column of times that is a clock
_TIME_WORD = re.compile(
    r"(?:^|[\W_])(?:time|times|timestamp|datetime|date|zeit|zeitstempel|datum|uhrzeit|fecha|hora|heure|horodatage)"
    r"(?:$|[\W_\d])|(?<=[a-z0-9])(?:Time|TimeStamp|Timestamp|DateTime)\b",
    re.IGNORECASE,
)
_VALUE_WORD = re.compile(r"[\s_.:/|-]+(?:value|val|wert|valeur|valor|reading)$", re.IGNORECASE)
_NO_TIME = np.iinfo(np.int64).min


@dataclass(frozen=True)
class ValueOptions:
    """How values are read as numbers."""

    thousands: str | None
    codes: MissingCodes

    def reader(self, decimal: str, source: str) -> ColumnReader:
        return ColumnReader(decimal, self.thousands, self.codes, source)


@dataclass(frozen=True, eq=False)
class TagReadings:
    """Readings of tags: which, when (microseconds, UTC where there is a zone), what (NaN: known to be bad)."""

    name: str  # of the source
    names: tuple[str, ...]
    codes: NDArray[np.integer]
    times: IntArray
    values: FloatArray
    zone: dt.tzinfo | None
    time_name: str
    words: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])  # of tags of text, by number
    units: Mapping[str, str] = field(default_factory=dict[str, str])
    time_reader: TimeReader | None = None

    @classmethod
    def of(
        cls,
        of_source: str,
        columns: Mapping[str, tuple[IntArray, pd.Series[Any], BoolArray]],
        zone: dt.tzinfo | None,
        time_name: str,
        reader: ColumnReader,
        units: Mapping[str, str],
    ) -> TagReadings:
        """Make readings of columns: the times, the values, and which of them are readings."""
        parts, words = [], dict[str, Sequence[str]]()
        for number, (name, (times, column, are_readings)) in enumerate(columns.items()):
            read = reader.read_frame(column.to_frame(name), [name])[name]
            if read.dtype != np.float64:
                codes, kinds = pd.factorize(read)
                words[name] = kinds.tolist()
                read = pd.Series(np.where(codes < 0, np.nan, codes.astype(np.float64)))
            there = are_readings & (times != _NO_TIME)
            parts.append((np.full(int(there.sum()), number, dtype=np.int32), times[there], read.to_numpy()[there]))
        codes, stamps, values = (np.concatenate(some) for some in zip(*parts, strict=True))
        return cls(of_source, tuple(columns), codes, stamps, values, zone, time_name, words, units)

    def only(self, wanted: Collection[str]) -> TagReadings:
        names = tuple(name for name in self.names if name in wanted)
        if names == self.names:
            return self
        places = np.array([names.index(name) if name in wanted else -1 for name in self.names], dtype=np.int32)
        codes = places[self.codes]
        there = codes >= 0
        return replace(self, names=names, codes=codes[there], times=self.times[there], values=self.values[there])


def microseconds(times: pd.DatetimeIndex) -> IntArray:
    """Return times as whole microseconds since 1970, in UTC if they have a zone; _NO_TIME for missing ones."""
    return np.asarray((times if times.unit == "us" else times.as_unit("us")).asi8)


def shared_stamps(codes: NDArray[np.integer], times: IntArray, count: int) -> tuple[float, bool]:
    """Return which share of readings comes at the time of the one before of their tag, and whether tags share stamps.

    codes, times : of readings in order of time.
    count : of the tags.

    >>> times = np.array([0, 0, 60, 60, 120, 120, 180, 240, 240])
    >>> shared_stamps(np.array([0, 1, 0, 1, 0, 1, 0, 0, 1]), times, 2), shared_stamps(np.arange(9) % 2, np.arange(9), 2)
    ((0.0, True), (0.0, False))
    """
    counts = np.zeros((3, count), dtype=np.int64)
    count_neighbours(codes, times, counts)
    enough = counts[0] >= FEWEST_READINGS
    shared = counts[2] >= SHARED * (counts[0] - counts[1] - 1)
    return float(counts[1].sum() / max(1, len(times))), bool(shared[enough].all())


def order_of_readings(codes: NDArray[np.integer], times: IntArray) -> NDArray[np.integer] | None:
    """Return the readings that have a tag (not -1) and a time, in order of time; None if all have, and are."""
    small = np.int32 if len(times) < 2**31 else np.int64  # half of the memory
    there = (times != _NO_TIME) & (codes >= 0)
    if not there.all():
        rows = np.flatnonzero(there)
        return rows[np.argsort(times[rows], kind="stable")].astype(small)
    return None if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable").astype(small)


def without_bad_readings(
    raw: RawTable, taken: Collection[str], log: ReadLog, beside: Mapping[str, str] | None = None
) -> RawTable:
    """Return a table without its columns of quality; readings that these call bad are missing.

    beside : the columns of quality, and the column that each is about, if they are known.
    """
    frame = raw.frame
    if beside is None:
        named = [name for name in frame.columns if name not in taken and named_like_quality(name)]
        quality = [name for name in named if is_quality(name, frame[name])]
        if not quality:
            return raw
        clocks = _clocks(raw)
        names = [name for name in frame.columns if name not in clocks]
        beside = {name: tag for name in quality if (tag := tag_of(name, names)) is not None and tag not in quality}
    if not beside:
        return raw
    masked: dict[str, pd.Series[Any]] = {}
    total = 0
    for name, tag in beside.items():
        readings = masked.get(tag, frame[tag])
        bad = is_bad(frame[name], name) & readings.notna().to_numpy()
        log.bad[tag] = log.bad.get(tag, 0) + int(bad.sum())
        if bad.any():
            masked[tag] = readings.mask(bad)
            total += int(bad.sum())
    said = f"{counted(total, 'reading')} of {raw.name} taken as missing, being bad by {in_columns(beside)}."
    if not total:
        said = f"No reading of {raw.name} is bad by {in_columns(beside)}."
    log.add("bad quality", said, total, tuple(masked), changed=total > 0)
    return replace(raw, frame=frame.assign(**masked).drop(columns=list(beside)))


def area_readings(
    raw: RawTable,
    clock: TableClock,
    names: Sequence[str],
    options: ValueOptions,
    log: ReadLog,
    known: Alignment | None = None,
) -> TagReadings:
    """Make readings of a table with one clock; an empty cell is a missing reading, or none if most cells are empty.

    known : of a model, by which streams decide on empty cells, and so do we.
    """
    assert clock.times is not None
    places = {} if known is None else {name: code for code, name in enumerate(known.names)}
    stamps = microseconds(clock.times)
    reader = options.reader(raw.decimal, raw.name)
    columns = {}
    for name in names:
        there = raw.frame[name].notna().to_numpy()
        rows = np.flatnonzero(there)
        own_clock = len(rows) > 1 and bool((np.diff(rows) == 1).sum() < SHARED * (len(rows) - 1))
        if known is not None and name in places:
            own_clock = not known.is_read_in_each_step(places[name])
        columns[name] = (stamps, raw.frame[name], there if own_clock else np.ones(len(there), dtype=np.bool_))
    note_missing_times(stamps, raw.name, log)
    found = TagReadings.of(raw.name, columns, clock.times.tz, str(clock.name), reader, raw.units)
    reader.note(log)
    return replace(found, time_reader=clock.reader)


def note_missing_times(stamps: IntArray, source: str, log: ReadLog) -> None:
    without = int((stamps == _NO_TIME).sum())
    if without:
        said = f"{counted(without, 'row')} of {source} without a time stamp that can be read left out."
        log.add("missing times", said, without, changed=True)


def long_readings(
    raw: RawTable,
    codes: NDArray[np.integer],
    stamps: IntArray,
    order: NDArray[np.integer] | None,
    tags: Sequence[str],
    value: str,
    clock: TableClock,
    options: ValueOptions,
    log: ReadLog,
) -> TagReadings:
    """Make readings of a table with a row for each of them.

    codes, stamps : of the readings in order of time.
    order : the rows of the table that these are from; None for all as they are.
    """
    column, reader = raw.frame[value], options.reader(raw.decimal, raw.name)
    zone, name = None if clock.times is None else clock.times.tz, str(clock.name)
    is_numeric = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf"
    # A code such as -9999 is known by the other readings of its tag.
    coded = is_numeric and not options.codes.known and column.min() <= MISSING_CODES[0]
    if is_numeric and not (coded and column.isin(MISSING_CODES).any()):
        numbers = column.to_numpy()
        if column.dtype != np.float64 or options.codes.numbers or np.isinf(numbers).any():
            numbers = reader.read_frame(column.to_frame(), [value])[value].to_numpy()
        numbers = numbers if order is None else numbers[order]
        found = TagReadings(raw.name, tuple(tags), codes, stamps, numbers, zone, name, units=raw.units)
    else:
        column = column if order is None else column.iloc[order]
        columns = {}
        for code, tag in enumerate(tags):
            mine = codes == code
            rows = np.ones(int(mine.sum()), dtype=np.bool_)
            columns[tag] = (stamps[mine], column[mine].reset_index(drop=True), rows)
        found = TagReadings.of(raw.name, columns, zone, name, reader, raw.units)
    reader.note(log)
    return found


def pair_readings(
    raw: RawTable, options: TimeOptions, taken: Collection[str], values: ValueOptions, log: ReadLog
) -> TagReadings | None:
    """Make readings of a table with a column of times beside each tag, or some tags; None if it is none.

    Such a table is known by its content: several columns of times that ascend and differ, each next to columns of
    numbers. A column that is named like the others of time but cannot be read is left out with its tags, and named.
    """
    frame = raw.frame
    names = [name for name in frame.columns if name not in taken]
    clocks = [name for name in _clocks(raw) if name not in taken]
    if options.columns or len(clocks) < 2:
        return None
    broken = _broken_clocks(names, clocks, frame)
    owned = _beside(names, [*clocks, *broken])
    if owned is None:
        return None
    stamps, read, zone = _read_clocks(frame[clocks], options, raw.name, log)
    first = stamps[clocks[0]]
    refuse_same_tags(raw, np.zeros(len(first), dtype=np.int32), first)
    if not broken and all(np.array_equal(each, first) for each in stamps.values()):
        return None  # one clock, written several times
    tags = _tag_names({name: clock for clock, some in owned.items() for name in some}, raw.unnamed)
    columns, untimed = {}, 0
    for clock in clocks:
        for name in owned[clock]:
            untimed += int((frame[name].notna().to_numpy() & (stamps[clock] == _NO_TIME)).sum())
            columns[tags[name]] = (stamps[clock], frame[name], np.ones(len(frame), dtype=np.bool_))
    said = f"{raw.name} has a time beside each tag: {len(columns):,} tags, {len(clocks):,} columns of times."
    log.add("times beside tags", said, len(columns), tuple(columns))
    if untimed:
        said = f"{counted(untimed, 'reading')} of {raw.name} without a time that can be read left out."
        log.add("missing times", said, untimed, changed=True)
    lost = [name for clock in broken for name in owned[clock]]
    if lost:
        said = f"Left out: {listed(lost)} of {raw.name}, as {in_columns(broken)} beside cannot be read as times."
        log.add("broken times", said, len(lost), tuple(lost), changed=True)
    reader = values.reader(raw.decimal, raw.name)
    units = {tags[name]: unit for name, unit in raw.units.items() if name in tags}
    found = TagReadings.of(raw.name, columns, zone, clocks[0], reader, units)
    reader.note(log)
    return replace(found, time_reader=read.reader(options))


def _read_clocks(
    frame: pd.DataFrame, options: TimeOptions, source: str, log: ReadLog
) -> tuple[dict[str, IntArray], ColumnTimes, dt.tzinfo | None]:
    """Read columns of times, those of one kind (times, numbers, texts) together, as one decides for the others."""
    kinds: dict[str, list[str]] = {}
    for name in frame.columns:
        kind = frame[name].dtype.kind
        kinds.setdefault("number" if kind in "iuf" else "time" if kind == "M" else "text", []).append(name)
    stamps, reads, zones = dict[str, IntArray](), list[ColumnTimes](), list[dt.tzinfo | None]()
    for names in kinds.values():
        read = column_times(pd.concat([frame[name] for name in names], ignore_index=True), options)
        read.note(names[0], log)
        index = read.index(options.zone, names[0], log)
        stamps |= dict(zip(names, np.split(microseconds(index), len(names)), strict=True))
        reads.append(read)
        zones.append(index.tz)
    refuse_some_zones([f"the times of {source}"] * len(zones), zones)
    return stamps, reads[-1] if "text" in kinds else reads[0], zones[0]


def _clocks(raw: RawTable) -> list[str]:
    """Return the columns of times that ascend; of those of numbers, only what is named like a time or not at all."""
    kinds = {str(name): kind.kind for name, kind in raw.frame.dtypes.items()}
    likely = [
        name
        for name, kind in kinds.items()
        if kind not in "bcm" and (kind not in "iuf" or name in raw.unnamed or _TIME_WORD.search(name))
    ]
    return [name for name in likely if _is_clock(raw.frame[name])]


def _is_clock(column: pd.Series[Any]) -> bool:
    if column.dtype.kind != "M" and not seems_time(column):
        return False
    sample = column_times(column.iloc[:_HEAD].dropna(), TimeOptions())
    if sample.typed is None and sample.times is None:
        return False
    times = sample.typed if sample.times is None else pd.DatetimeIndex(sample.times)
    assert times is not None
    steps = np.diff(times.dropna().asi8)
    return len(steps) > 0 and bool(max((steps > 0).mean(), (steps < 0).mean()) >= _ASCENDING)


def _broken_clocks(names: Sequence[str], clocks: Sequence[str], frame: pd.DataFrame) -> list[str]:
    """Return columns that are named as the columns of times are, but hold none."""
    before = _common_start(clocks)
    after = _common_start([name[::-1] for name in clocks])[::-1]
    others = [name for name in names if name not in clocks]
    return [
        name
        for name in others
        if (_TIME_WORD.search(before) and name.startswith(before))
        or (_TIME_WORD.search(after) and name.endswith(after))
        or (_TIME_WORD.search(name) and frame[name].dtype.kind not in "iuf")
    ]


def _common_start(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    return first[: next((n for n, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1), len(first))]


def _beside(names: Sequence[str], clocks: Collection[str]) -> dict[str, list[str]] | None:
    """Return the columns that belong to each column of times, after or before it; None if one has none.

    >>> _beside(["t1", "a", "t2", "b", "c"], ["t1", "t2"]), _beside(["a", "t1", "b", "t2"], ["t1", "t2"])
    ({'t1': ['a'], 't2': ['b', 'c']}, {'t1': ['a'], 't2': ['b']})
    >>> _beside(["t1", "t2", "a"], ["t1", "t2"]) is None
    True
    """
    ordered = list(names)
    if ordered[0] not in clocks:
        if ordered[-1] not in clocks:
            return None
        ordered.reverse()
    owned: dict[str, list[str]] = {}
    for name in ordered:
        if name in clocks:
            current = owned.setdefault(name, [])
        else:
            current.append(name)
    if not all(owned.values()):
        return None
    return {clock: owned[clock] for clock in names if clock in owned}


def _tag_names(clock_of: Mapping[str, str], unnamed: Collection[str]) -> dict[str, str]:
    """Return the names of tags by column: that of the column, or of its times, without "value" where all have it."""
    found = {}
    for name, clock in clock_of.items():
        called = clock if name in unnamed and clock not in unnamed else name
        found[name] = _VALUE_WORD.sub("", called)
    return found if len(set(found.values())) == len(found) else {name: name for name in clock_of}


def refuse_some_zones(names: Sequence[str], zones: Sequence[dt.tzinfo | None]) -> None:
    """Raise if the times of some areas have a zone and those of others have none."""
    if len({zone is None for zone in zones}) > 1:
        raise TableError(
            f"Of {listed(names)} some have time stamps with a zone and some without, and cannot be joined. Pass "
            f"{option('timezone')}."
        )


def refuse_same_tags(raw: RawTable, codes: NDArray[np.integer], stamps: IntArray) -> None:
    """Raise if files with a row for each reading have the same tags at the same time."""
    stops = np.cumsum(raw.lengths).tolist()
    parts = [slice(start, stop) for start, stop in pairwise([0, *stops]) if (stamps[start:stop] != _NO_TIME).any()]
    parts.sort(key=lambda part: int(stamps[part].max()))
    for number, later in enumerate(parts):
        begin = int(stamps[later][stamps[later] != _NO_TIME].min())
        for part in parts[:number]:
            if int(stamps[part].max()) > begin and len(np.intersect1d(codes[part], codes[later])):
                one, other = (raw.files[stops.index(each.stop)] for each in (part, later))
                raise TableError(
                    f"{one} and {other} both have readings of the same tags, and at the same time. Rename the tags of "
                    f"one, or read the files apart."
                )


def align_all(
    areas: Sequence[TagReadings],
    options: AlignOptions,
    states: Collection[str | None],
    max_cells: int,
    log: ReadLog,
    known: Alignment | None = None,
) -> tuple[pd.DataFrame, pd.DatetimeIndex, Alignment, tuple[TagNote, ...]]:
    """Put the readings of all areas into rows of one clock.

    states : tags of which the last reading counts.
    known : the clock of a model, which is taken as far as it has the tags.
    """
    if not areas:
        raise TableError(f"No column of {log.source} is left as an input.")
    refuse_some_zones([area.name for area in areas], [area.zone for area in areas])
    check_common_period([area.name for area in areas], [area.times for area in areas], log)
    names = [name for area in areas for name in area.names]
    words = {name: some for area in areas for name, some in area.words.items()}
    starts = np.cumsum([0, *(len(area.names) for area in areas)])
    if len(areas) == 1:
        codes, times, values = areas[0].codes, areas[0].times, areas[0].values
    else:
        codes = np.concatenate([area.codes + start for area, start in zip(areas, starts[:-1], strict=True)])
        times, values = (np.concatenate([getattr(area, part) for area in areas]) for part in ("times", "values"))
    zone = areas[0].zone
    order = order_of_readings(codes, times)
    if order is not None:
        codes, times, values = codes[order], times[order], values[order]
    if known is None:
        names, codes, times, values = _without_rare(names, codes, times, values, log)
    first = pd.Timestamp(times[0], unit="us", tz="UTC")
    local = None if zone is None else first.tz_convert(zone).utcoffset()
    offset = 0 if local is None else local // dt.timedelta(microseconds=1)
    held_as_they_are = [number for number, name in enumerate(names) if name in words or name in states]
    if known is not None:
        options = replace(options, step=known.step)
    plan = plan_alignment(names, codes, times, values, options, states=held_as_they_are, offset=offset)
    if known is not None:
        plan = known.with_tags(plan.tags)
    most = min(len(times), (int(times[-1]) - int(times[0])) // plan.step + 1)
    if most * len(names) > max_cells:
        how = "at all their times" if options.step == NONE else f"in steps of {duration_in_words(plan.step / 1e6)}"
        raise TableError(
            f"{log.source} has {len(names):,} tags, and up to {most:,} rows {how}, which may not fit into memory. "
            f"Pass a longer {option('step')}, fewer tags or a shorter period, or a larger {option('max_bytes')}.",
            "step",
        )
    rows, shares = align_readings(plan, codes, times, values)
    if not len(rows):
        raise TableError(f"{log.source} has no reading that is a number. Check that the export was complete.")
    frame = pd.DataFrame(rows.values, columns=pd.Index(names), copy=False)
    for name in names:
        if name in words:
            numbers = frame[name].to_numpy()
            there = ~np.isnan(numbers)
            texts = np.full(len(numbers), None, dtype=object)
            texts[there] = np.asarray(words[name], dtype=object)[numbers[there].astype(np.intp)]
            frame[name] = text_column(texts.tolist())
    index = pd.DatetimeIndex(rows.times.astype("M8[us]"))
    index = index if zone is None else index.tz_localize("UTC").tz_convert(zone)
    notes = tuple(_tag_notes(plan, codes, times, values, shares, len(frame), zone))
    _note_alignment(plan, options, notes, log)
    return frame, index, plan, notes


def check_common_period(names: Sequence[str], times: Sequence[IntArray], log: ReadLog) -> None:
    """Raise if there is no time at which all areas have readings; note it if that is only a part of the whole."""
    empty = [name for name, some in zip(names, times, strict=True) if not len(some)]
    if empty:
        raise TableError(f"{listed(empty)} has no reading with a time. Check that the export was complete.")
    firsts, lasts = [int(some.min()) for some in times], [int(some.max()) for some in times]
    if max(firsts) > min(lasts):
        spans = [
            f"{name}: {_shown(first)} to {_shown(last)}" for name, first, last in zip(names, firsts, lasts, strict=True)
        ]
        raise TableError(
            f"The areas have no time in common, so that they cannot be joined ({'; '.join(spans[:4])}). Export them "
            f"for the same period, or read them apart."
        )
    common, whole = min(lasts) - max(firsts), max(lasts) - min(firsts)
    if common < _HARDLY * whole:
        said = f"The areas overlap in {duration_in_words(common / 1e6)} of {duration_in_words(whole / 1e6)} only;"
        log.add("short overlap", f"{said} elsewhere the values of some are missing.", len(names))


def _shown(microseconds_: int) -> str:
    return str(pd.Timestamp(microseconds_, unit="us").floor("s"))


def _without_rare(
    names: list[str], codes: NDArray[np.integer], times: IntArray, values: FloatArray, log: ReadLog
) -> tuple[list[str], NDArray[np.integer], IntArray, FloatArray]:
    """Leave out tags with so few readings that nothing is usual for them."""
    readings = count_readings(codes, values, len(names))[1]
    rare = readings < min(FEWEST_READINGS, int(readings.max(initial=0)))
    if not rare.any():
        return names, codes, times, values
    left = [name for name, few in zip(names, rare, strict=True) if few]
    said = f"Left out, with fewer than {FEWEST_READINGS} readings: {in_columns(left)}."
    log.add("rare tags", said, len(left), tuple(left), changed=True)
    places = np.cumsum(~rare) - 1
    kept = ~rare[codes]
    some = [name for name, few in zip(names, rare, strict=True) if not few]
    return some, places[codes[kept]].astype(np.int32), times[kept], values[kept]


def _tag_notes(
    plan: Alignment,
    codes: NDArray[np.integer],
    times: IntArray,
    values: FloatArray,
    shares: IntArray,
    rows: int,
    zone: dt.tzinfo | None,
) -> Iterator[TagNote]:
    p = len(plan.tags)
    own, held = shares
    readings, numbers = count_readings(codes, values, p)
    last = np.zeros(p, dtype=np.int64)
    last[codes] = times  # times ascend: the last one stays
    first = np.zeros(p, dtype=np.int64)
    first[codes[::-1]] = times[::-1]
    for code, tag in enumerate(plan.tags):
        ends = (pd.Timestamp(int(each[code]), unit="us", tz=None if zone is None else "UTC") for each in (first, last))
        yield TagNote(
            tag.name,
            tag.interval / 1e6 if tag.interval else np.nan,
            tag.hold / 1e6,
            int(readings[code]),
            int(readings[code] - numbers[code]),
            float(held[code] / rows),
            float(1 - (own[code] + held[code]) / rows),
            *(end if zone is None else end.tz_convert(zone) for end in ends),
        )


def _note_alignment(plan: Alignment, options: AlignOptions, tags: Sequence[TagNote], log: ReadLog) -> None:
    known = sorted(tag.interval for tag in tags if tag.interval == tag.interval)
    if options.step == NONE:
        said = f"The {len(tags):,} tags have times of their own: each time is a row, and tags without a reading there"
        log.add("joined files", f"{said} are missing.", len(tags))
        return
    step = plan.step / 1e6
    clocks = 1 + sum(later > 1.2 * before for before, later in pairwise(known))
    ends = [duration_in_words(each) for each in (known[0], known[-1])] if known else ["?"]
    every = ends[0] if len(set(ends)) == 1 else f"{ends[0]} to {ends[-1]}"
    rates = "1 rate" if clocks == 1 else f"{clocks:,} rates"
    said = (
        f"The {len(tags):,} tags were put on one clock: {rates} (every {every}), aligned to {duration_in_words(step)}"
    )
    slower = [tag for tag in tags if tag.interval > step * 1.2]
    if slower:
        longest = duration_in_words(max(tag.hold for tag in slower))
        said = f"{said}; {len(slower):,} of {len(tags):,} are slower, and their readings stand for up to {longest}"
    held, missing = (100 * np.mean([getattr(tag, part) for tag in tags]) for part in ("held", "missing"))
    said = f"{said}. {held:.0f} % of the values are held, {missing:.0f} % are missing."
    log.add("aligned", said, len(tags), tuple(tag.name for tag in tags), changed=True)
