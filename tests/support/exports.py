"""One plant as historians, databases and spreadsheets export it: a writer for each form, and what a right answer is.

`FORMS` has the writers by name. A writer takes a record and an empty folder, and returns an `Export`: what to give to
`penstock.detect`, the step of time that may be expected of it, and how tags and times are called in it. `assess` says
whether findings are right. Nothing here imports penstock.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> export = FORMS["WinCC"](draw_record("bearing", days=7), folder)
>>> print(*export.source.read_text().splitlines()[:2], sep="\\n")
"VarName";"TimeString";"VarValue";"Validity";"Time_ms"
"HL100";"01.03.2025 00:00:00";964,2;1;45717000000,0000
"""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .plant import BY_NAME, MINUTE, NAMES, TAGS, Record, draw_record

__all__ = ["FORMS", "Export", "Writer", "assess", "draw_record", "try_export"]

BERLIN = "Europe/Berlin"
SECOND = pd.Timedelta(seconds=1)
NO_TIME = pd.Timedelta(0)
EXCEL_ORIGIN = pd.Timestamp("1899-12-30")
AREAS = {area: tuple(tag.name for tag in TAGS if tag.area == area) for area in ("process", "pumps", "coolers")}
# Seconds between readings where each tag has its own clock: fast hydraulics, slow heat, a counter now and then.
INTERVALS = dict.fromkeys(NAMES, 60) | {"TT101": 120, "TT102": 120, "TB101": 300, "TB102": 300, "EQ101": 600}
HEARTBEAT = 10  # minutes after which a historian stores a reading that did not change


@dataclass(frozen=True)
class Export:
    """What a form of export made of a record.

    Attributes
    ----------
    source, options : object, mapping
        To be called as `penstock.detect(source, **options)`; options say only what the source is, as `query` does.
    step : Timedelta
        Between rows, as it may be expected: an incident that begins two of them off is right.
    names : mapping
        What tags are called, where that is not their own name.
    shift : Timedelta
        By which all times of the record were moved.
    zone : str or None
        The zone in which its times are written; those of the record are UTC then.
    note : str
        A word that a note must have, as the table leaves something open that the user has to know.
    hint : bool
        The table cannot be read as it is: right is that note, or an error with that word.
    readings : DataFrame
        What was written, for tests: columns time (of the record), tag, value; only good readings.
    """

    source: Any
    step: pd.Timedelta = MINUTE
    options: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    shift: pd.Timedelta = NO_TIME
    zone: str | None = None
    note: str = ""
    hint: bool = False
    readings: pd.DataFrame = field(default_factory=pd.DataFrame)

    def at(self, moment: pd.Timestamp) -> pd.Timestamp:
        """Return a moment of the record as the export writes it."""
        moved = moment + self.shift
        return moved if self.zone is None else moved.tz_localize("UTC").tz_convert(self.zone).tz_localize(None)


class Writer(Protocol):
    """Writes a record to an empty folder."""

    def __call__(self, record: Record, folder: Path) -> Export: ...


FORMS: dict[str, Writer] = {}


def form(name: str) -> Callable[[Writer], Writer]:
    """Enter a writer under its name."""

    def enter(writer: Writer) -> Writer:
        FORMS[name] = writer
        return writer

    return enter


class _Findings(Protocol):
    """What is read of `penstock.Findings`."""

    @property
    def incident_table(self) -> pd.DataFrame: ...
    @property
    def notes(self) -> Iterable[Any]: ...


def assess(findings: _Findings, record: Record, export: Export) -> str:
    """Return why findings are wrong; "" if they are right.

    Right is that the most severe incident overlaps the fault, begins at most two steps before it and at most two steps
    after it is visible (`Fault`), and that the sensor to look at first is the tag of the fault or a twin; and that a
    note says what the user has to know (`Export.note`).
    """
    said = " ".join(f"{getattr(note, 'kind', '')} {note}" for note in findings.notes).lower()
    if export.note not in said or export.hint:
        return "" if export.note in said else f"no note has the word {export.note}"
    if not len(findings.incident_table):
        return "nothing found"
    table, fault = findings.incident_table, record.fault
    worst = table.sort_values("rank").iloc[0] if "rank" in table else table.iloc[0]
    begin, end, sensor = worst["start"], worst["end"], str(worst["first_sensor"])
    if not isinstance(begin, pd.Timestamp):
        return f"no times: the incident begins in row {begin}"
    if begin.tz is None:
        start, visible, stop = (export.at(moment) for moment in (fault.start, fault.visible, fault.end))
    else:
        begin, end = (moment.tz_convert("UTC").tz_localize(None) for moment in (begin, end))
        start, visible, stop = (moment + export.shift for moment in (fault.start, fault.visible, fault.end))
    wrong = {
        f"another time: {sensor} at {begin:%Y-%m-%d %H:%M}, not {start:%Y-%m-%d %H:%M}": begin >= stop or end < start,
        f"begins {(start - begin) / MINUTE:.0f} min early ({sensor})": begin < start - 2 * export.step,
        f"begins {(begin - visible) / MINUTE:.0f} min late ({sensor})": begin > visible + 2 * export.step,
        f"names {sensor}": not any(export.names.get(tag, tag) in sensor for tag in fault.tags),
    }
    return next((why for why, is_so in wrong.items() if is_so), "")


def try_export(detect: Callable[..., Any], record: Record, export: Export) -> tuple[str, str]:
    """Return "right", "wrong" or "error", and why; an error of the class that says what to do is right for a hint."""
    try:
        findings = detect(export.source, **export.options)
    except Exception as error:  # a form that cannot be read yet is a result
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if export.hint and export.note in said.lower():
            return "right", said
        return "error", said
    why = assess(findings, record, export)
    return ("wrong", why) if why else ("right", "")


# What tags are called on sites around the world, in the order of `TAGS`; the time comes first.
LANGUAGES = {
    "cp1252": "Zeit Wärmelast Vorlaufmenge Rücklaufmenge Pumpendruck Sammlerdruck Vorlauftemperatur "
    "Rücklauftemperatur Lagertemperatur Motortemperatur Pumpenleistung Ventilöffnung Zusatzpumpe Sollwert "
    "Energiezähler Überströmventil",
    "GBK": "时间 热负荷 供水流量 回水流量 泵出口压力 母管压力 供水温度 回水温度 "
    "轴承温度 电机温度 泵功率 阀门开度 二号泵 设定值 电能 安全阀",
    "Shift-JIS": "日時 熱負荷 供給流量 戻り流量 ポンプ圧力 ヘッダ圧力 供給温度 戻り温度 "
    "軸受温度 モータ温度 ポンプ電力 弁開度 予備ポンプ 設定値 電力量 逃し弁",
    "cp1250": "Czas Obciążenie Przepływ_zasilania Przepływ_powrotu Ciśnienie_pompy Ciśnienie_kolektora "
    "Temperatura_zasilania Temperatura_powrotu Temperatura_łożyska Temperatura_uzwojeń Moc_napędu Położenie_zaworu "
    "Druga_pompa Wartość_zadana Zużycie_energii Zawór_bezpieczeństwa",
    "cp1251": "Время Тепловая_нагрузка Расход_подачи Расход_возврата Давление_насоса Давление_коллектора "
    "Температура_подачи Температура_возврата Температура_подшипника Температура_двигателя Мощность_насоса "
    "Положение_клапана Второй_насос Уставка Энергия Предохранительный_клапан",
    "Big5": "時間 熱負荷 供水流量 回水流量 泵出口壓力 母管壓力 供水溫度 回水溫度 "
    "軸承溫度 馬達溫度 泵功率 閥門開度 二號泵 設定值 電能 安全閥",
    "EUC-KR": "시간 열부하 공급유량 환수유량 펌프압력 헤더압력 공급온도 환수온도 "
    "베어링온도 모터온도 펌프전력 밸브개도 제2펌프 설정값 전력량 안전밸브",
}


# --- readings ---------------------------------------------------------------------------------------------------------


def _long(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per reading of a table, in order of time and, at one time, of tags."""
    values = table.to_numpy(dtype=np.float64)
    return pd.DataFrame(
        {
            "time": pd.DatetimeIndex(table.index).repeat(values.shape[1]),
            "tag": np.tile(np.array(table.columns, dtype=object), len(values)),
            "value": values.ravel(),
        }
    )


def _read_at(record: Record, times: Mapping[str, pd.DatetimeIndex]) -> pd.DataFrame:
    """Return one row per reading of tags at their own times, in order of time."""
    pieces = [pd.DataFrame({"time": at, "tag": name, "value": record.read(name, at)}) for name, at in times.items()]
    return pd.concat(pieces, ignore_index=True).sort_values("time", kind="stable", ignore_index=True)


def _clock(record: Record, seconds: float, offset: float = 0.0, jitter: float = 0.0, seed: int = 0) -> pd.DatetimeIndex:
    """Return times every so many seconds, an offset and up to a jitter later, to the second."""
    n = int((record.until - record.since).total_seconds() // seconds)
    rng = np.random.default_rng([record.seed, seed])
    at = np.round(np.arange(n) * seconds + offset + jitter * rng.random(n)).astype(np.int64)
    return pd.DatetimeIndex(record.since + pd.to_timedelta(at, unit="s"), name="time").as_unit("ns")


def _own_clocks(record: Record) -> dict[str, pd.DatetimeIndex]:
    """Return times of each tag: its own interval, its own offset, and jitter of a few seconds."""
    return {
        name: _clock(record, INTERVALS[name], offset=(7 * k) % 53, jitter=4.0, seed=k) for k, name in enumerate(NAMES)
    }


def _reported(record: Record) -> pd.DataFrame:
    """Return readings by exception: of those taken each minute, the ones that left a dead band, and a heartbeat."""
    pieces = []
    for number, name in enumerate(NAMES):
        times = _clock(record, 60, offset=(7 * number) % 53, jitter=4.0, seed=number)
        values, band = record.read(name, times), 2 * BY_NAME[name].noise
        kept, last, age = np.zeros(len(values), dtype=bool), np.nan, 0
        for row, value in enumerate(values.tolist()):
            age += 1
            if not abs(value - last) <= band or age >= HEARTBEAT:
                kept[row], last, age = True, value, 0
        pieces.append(pd.DataFrame({"time": times[kept], "tag": name, "value": values[kept]}))
    return pd.concat(pieces, ignore_index=True).sort_values("time", kind="stable", ignore_index=True)


def _bad(record: Record, readings: pd.DataFrame, share: float = 0.01) -> NDArray[np.bool_]:
    """Return which readings are bad: bursts of 5 to 40 minutes of a tag, none within an hour of the fault."""
    bad = np.zeros(len(readings), dtype=bool)
    time, fault, hour = readings["time"], record.fault, pd.Timedelta(hours=1)
    near = ((time >= fault.start - hour) & (time < fault.end + hour)).to_numpy()
    rng, span = np.random.default_rng([record.seed, 77]), (record.until - record.since) / MINUTE
    for name in NAMES:
        mine = (readings["tag"] == name).to_numpy()
        for _ in range(max(1, round(share * span / 22))):
            begin = record.since + MINUTE * int(rng.integers(0, int(span)))
            burst = (time >= begin) & (time < begin + MINUTE * int(rng.integers(5, 41)))
            bad |= mine & burst.to_numpy() & ~near
    return bad


def _texts(times: Any, pattern: str) -> NDArray[Any]:
    """Return times as texts; many are equal, so that each is written once."""
    codes, unique = pd.factorize(pd.DatetimeIndex(times))
    return np.asarray(pd.DatetimeIndex(unique).strftime(pattern), dtype=object)[codes]


def _number(values: Iterable[float], decimal: str = ".") -> list[str]:
    return [f"{value:.10g}".replace(".", decimal) for value in values]


def _write(path: Path, frame: pd.DataFrame, encoding: str = "utf-8", **options: Any) -> Path:
    frame.to_csv(path, index=False, encoding=encoding, **options)
    return path


def _stamped(table: pd.DataFrame, times: Any, name: str = "time") -> pd.DataFrame:
    """Return the table with its times as a first column."""
    stamped = table.reset_index(drop=True)
    stamped.insert(0, name, times)
    return stamped


# --- one clock, one table: how times, numbers and names are written ---------------------------------------------------


def _wide(pattern: str, name: str = "time") -> Writer:
    """Return a writer of a plain table whose times are written in this way."""

    def write(record: Record, folder: Path) -> Export:
        table = record.table
        path = _write(folder / "plant.csv", _stamped(table, _texts(table.index, pattern), name))
        return Export(path, readings=_long(table))

    return write


FORMS["plain"] = _wide("%Y-%m-%d %H:%M:%S")
FORMS["compact stamps"] = _wide("%Y%m%d%H%M", "timestamp")
FORMS["day first"] = _wide("%d/%m/%Y %H:%M")
FORMS["year/month/day"] = _wide("%Y/%m/%d %H:%M:%S", "Date Time")


@form("day first, twelve days")
def _twelve_days(record: Record, folder: Path) -> Export:
    """Only days 1 to 12 of a month: nothing but the order of the rows says which number is the day."""
    since = max(record.since, record.until - pd.Timedelta(days=12))
    part, shift = record.between(since, record.until), pd.Timestamp("2025-06-01") - since
    table = part.table
    path = _write(folder / "plant.csv", _stamped(table, _texts(table.index + shift, "%d/%m/%Y %H:%M"), "Date"))
    return Export(path, shift=shift, note="day first", readings=_long(table))


@form("month first, AM/PM")
def _american(record: Record, folder: Path) -> Export:
    moments = pd.DatetimeIndex(record.table.index)
    texts = [f"{t.month}/{t.day}/{t.year} {t.hour % 12 or 12}:{t:%M:%S %p}" for t in moments]
    return Export(
        _write(folder / "plant.csv", _stamped(record.table, texts, "Timestamp")), readings=_long(record.table)
    )


def _counted(unit: pd.Timedelta, origin: pd.Timestamp, digits: int, name: str) -> Writer:
    """Return a writer of times as a number of units since an origin."""

    def write(record: Record, folder: Path) -> Export:
        moments = pd.DatetimeIndex(record.table.index)
        texts = [f"{number:.{digits}f}" for number in ((moments - origin) / unit).tolist()]
        path = _write(folder / "plant.csv", _stamped(record.table, texts, name))
        return Export(path, readings=_long(record.table))

    return write


FORMS["Excel days"] = _counted(pd.Timedelta(days=1), EXCEL_ORIGIN, 9, "Date")
FORMS["seconds since 1970"] = _counted(SECOND, pd.Timestamp(0), 0, "time")
FORMS["milliseconds since 1970"] = _counted(SECOND / 1000, pd.Timestamp(0), 0, "ts")


@form("date and time apart")
def _apart(record: Record, folder: Path) -> Export:
    table = _stamped(record.table, _texts(record.table.index, "%H:%M:%S"), "Time")
    table.insert(0, "Date", _texts(record.table.index, "%Y-%m-%d"))
    return Export(_write(folder / "plant.csv", table), readings=_long(record.table))


@form("ISO with offset")
def _offsets(record: Record, folder: Path) -> Export:
    local = pd.DatetimeIndex(record.table.index).tz_localize("UTC").tz_convert(BERLIN)
    texts = [moment.isoformat() for moment in local]
    path = _write(folder / "plant.csv", _stamped(record.table, texts, "timestamp"))
    return Export(path, zone=BERLIN, readings=_long(record.table))


def _change_of_clocks(first_day: str) -> Writer:
    """Return a writer of local times without a zone, of a period in which the clocks change on the third day."""

    def write(record: Record, folder: Path) -> Export:
        shift = pd.Timestamp(first_day) - record.truth.index[0]
        moments = pd.DatetimeIndex(record.table.index) + shift
        local = moments.tz_localize("UTC").tz_convert(BERLIN).tz_localize(None)
        texts = np.asarray(local.strftime("%Y-%m-%d %H:%M:%S"), dtype=object)  # in autumn an hour is there twice
        path = _write(folder / "plant.csv", _stamped(record.table, texts, "LocalTime"))
        return Export(path, shift=shift, zone=BERLIN, note="timezone", readings=_long(record.table))

    return write


FORMS["local time, autumn"] = _change_of_clocks("2025-10-24")
FORMS["local time, spring"] = _change_of_clocks("2025-03-28")


@form("German")
def _german(record: Record, folder: Path) -> Export:
    time, *texts = LANGUAGES["cp1252"].split()
    names = dict(zip(NAMES, texts, strict=True))
    called = {name: f"{text} [{BY_NAME[name].unit}]" if BY_NAME[name].unit else text for name, text in names.items()}
    table = _stamped(record.table.rename(columns=called), _texts(record.table.index, "%d.%m.%Y %H:%M:%S"), time)
    path = _write(folder / "anlage.csv", table, "cp1252", sep=";", decimal=",", lineterminator="\r\n")
    return Export(path, names=names, readings=_long(record.table))


def _in_encoding(encoding: str, texts: str) -> Writer:
    """Return a writer of a table whose header is in a language and an old encoding."""
    time, *called = texts.split()
    names = dict(zip(NAMES, called, strict=True))

    def write(record: Record, folder: Path) -> Export:
        table = _stamped(record.table.rename(columns=names), _texts(record.table.index, "%Y-%m-%d %H:%M"), time)
        path = _write(folder / "plant.csv", table, encoding)
        return Export(path, names=names, readings=_long(record.table))

    return write


for _encoding, _called in LANGUAGES.items():
    if _encoding != "cp1252":  # of the German export
        FORMS[f"header in {_encoding}"] = _in_encoding(_encoding, _called)


@form("Unicode text of Excel")
def _unicode_text(record: Record, folder: Path) -> Export:
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%d %H:%M:%S"))
    return Export(_write(folder / "plant.txt", table, "utf-16", sep="\t"), readings=_long(record.table))


@form("title and units above")
def _title(record: Record, folder: Path) -> Export:
    """A report of a control system: a title, a header with tags, a line with descriptions, a line with units."""
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%d %H:%M:%S"), "Timestamp")
    head = ["Trend report;Cooling plant", f"Created;{record.until:%Y-%m-%d %H:%M}", ""]
    head += [";".join(map(str, table.columns))]
    head += [";".join(["", *(tag.text for tag in TAGS)]), ";".join(["", *(tag.unit for tag in TAGS)])]
    path = folder / "trend.csv"
    path.write_text("\n".join(head) + "\n" + table.to_csv(index=False, header=False, sep=";"), encoding="utf-8-sig")
    return Export(path, readings=_long(record.table))


@form("packed")
def _packed(record: Record, folder: Path) -> Export:
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%dT%H:%M:%S"))
    path = folder / "plant.csv.gz"
    path.write_bytes(gzip.compress(table.to_csv(index=False).encode(), 1))
    return Export(path, readings=_long(record.table))


@form("newest first")
def _newest_first(record: Record, folder: Path) -> Export:
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%d %H:%M:%S"))
    return Export(_write(folder / "plant.csv", table[::-1]), readings=_long(record.table))


@form("rows twice")
def _rows_twice(record: Record, folder: Path) -> Export:
    """Every fiftieth row is there twice, and an hour was exported twice."""
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%d %H:%M:%S"))
    rows = np.sort(np.concatenate([np.arange(len(table)), np.arange(0, len(table), 50), np.arange(600, 660)]))
    return Export(_write(folder / "plant.csv", table.iloc[rows]), readings=_long(record.table))


@form("Fail and Cycle")
def _fail_and_cycle(record: Record, folder: Path) -> Export:
    """A label and a number of the row among the columns."""
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%d %H:%M:%S"))
    moments, fault = pd.DatetimeIndex(record.table.index), record.fault
    table.insert(1, "Cycle", np.arange(1, len(table) + 1))
    table["Fail"] = ((moments >= fault.start) & (moments < fault.end)).astype(int)
    return Export(_write(folder / "plant.csv", table), readings=_long(record.table))


@form("states as words")
def _words(record: Record, folder: Path) -> Export:
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%d %H:%M:%S"))
    table["PU102"] = np.where(record.table["PU102"] > 0, "Running", "Stopped")
    return Export(_write(folder / "plant.csv", table), readings=_long(record.table))


@form("two readings in ten days")
def _hardly_read(record: Record, folder: Path) -> Export:
    """A laboratory value that was entered twice."""
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%d %H:%M:%S"))
    table["AT900"] = pd.array([""] * len(table), dtype=object)
    table.loc[[500, len(table) // 2], "AT900"] = ["7.1", "7.3"]
    return Export(_write(folder / "plant.csv", table), readings=_long(record.table))


@form("transposed")
def _transposed(record: Record, folder: Path) -> Export:
    """A tag in each row and an hour in each column."""
    hourly = record.table.iloc[::60]
    turned = hourly.T
    turned.columns = pd.Index(_texts(hourly.index, "%Y-%m-%d %H:%M"))
    path = folder / "plant.csv"
    turned.to_csv(path, index_label="tag")
    return Export(path, step=pd.Timedelta(hours=1), note="transposed", hint=True, readings=_long(hourly))


@form("Excel")
def _excel(record: Record, folder: Path) -> Export:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Trend")
    sheet.append(["Time", *NAMES])
    moments = pd.DatetimeIndex(record.table.index).to_pydatetime()
    for moment, row in zip(moments, record.table.to_numpy().tolist(), strict=True):
        sheet.append([moment, *row])
    book.save(folder / "plant.xlsx")
    return Export(folder / "plant.xlsx", readings=_long(record.table))


@form("Parquet")
def _parquet(record: Record, folder: Path) -> Export:
    record.table.reset_index().to_parquet(folder / "plant.parquet", index=False)
    return Export(folder / "plant.parquet", readings=_long(record.table))


@form("Parquet by day")
def _parquet_by_day(record: Record, folder: Path) -> Export:
    """A data set with hive partitions, as Spark, Athena and pandas write it."""
    table = record.table.reset_index()
    for day, rows in table.groupby(table["time"].dt.strftime("%Y-%m-%d")):
        (folder / "plant" / f"day={day}").mkdir(parents=True)
        rows.to_parquet(folder / "plant" / f"day={day}" / "part-0.parquet", index=False)
    return Export(folder / "plant", readings=_long(record.table))


@form("a file per day")
def _file_per_day(record: Record, folder: Path) -> Export:
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%d %H:%M:%S"))
    (folder / "days").mkdir()
    for day, rows in table.groupby(table["time"].str[:10]):
        _write(folder / "days" / f"plant_{day}.csv", rows)
    return Export(folder / "days", readings=_long(record.table))


@form("SQLite, wide")
def _sqlite_wide(record: Record, folder: Path) -> Export:
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%d %H:%M:%S"))
    return _in_sqlite(folder, table, Export(None, readings=_long(record.table)))


@form("SQLite, long")
def _sqlite_long(record: Record, folder: Path) -> Export:
    readings = _read_at(record, _own_clocks(record))
    table = readings.assign(time=_texts(readings["time"], "%Y-%m-%d %H:%M:%S"))
    return _in_sqlite(folder, table, Export(None, step=5 * MINUTE, readings=readings))


def _in_sqlite(folder: Path, table: pd.DataFrame, export: Export) -> Export:
    path = folder / "plant.sqlite"
    connection = sqlite3.connect(path)
    table.to_sql("readings", connection, index=False)
    connection.commit()
    connection.close()
    query = {"query": "SELECT * FROM readings"}
    return Export(f"sql:sqlite:///{path}", export.step, query, readings=export.readings)


# --- areas and tags with clocks of their own --------------------------------------------------------------------------


def _areas(record: Record, clocks: Mapping[str, pd.DatetimeIndex]) -> dict[str, pd.DataFrame]:
    """Return a table of each area, with its own times."""
    tables = {}
    for area, times in clocks.items():
        columns = {name: record.read(name, times) for name in AREAS[area]}
        tables[area] = pd.DataFrame(columns, index=times.rename("time"))
    return tables


def _write_areas(
    record: Record, folder: Path, clocks: Mapping[str, pd.DatetimeIndex], step: pd.Timedelta = MINUTE
) -> Export:
    tables = _areas(record, clocks)
    (folder / "areas").mkdir()
    for area, table in tables.items():
        _write(folder / "areas" / f"{area}.csv", _stamped(table, _texts(table.index, "%Y-%m-%d %H:%M:%S")))
    return Export(folder / "areas", step, readings=pd.concat(map(_long, tables.values()), ignore_index=True))


def _seven_seconds(record: Record) -> dict[str, pd.DatetimeIndex]:
    return {area: _clock(record, 60, offset=7.0 * (area == "coolers")) for area in AREAS}


@form("areas 7 s apart")
def _areas_seven_seconds(record: Record, folder: Path) -> Export:
    return _write_areas(record, folder, _seven_seconds(record))


@form("areas at 1 and 10 min")
def _areas_two_rates(record: Record, folder: Path) -> Export:
    clocks = {area: _clock(record, 600 if area == "coolers" else 60) for area in AREAS}
    return _write_areas(record, folder, clocks, 10 * MINUTE)


@form("three clocks with jitter")
def _areas_jitter(record: Record, folder: Path) -> Export:
    offsets = {"process": 0.0, "pumps": 17.0, "coolers": 41.0}
    clocks = {area: _clock(record, 60, at, jitter=6.0, seed=int(at)) for area, at in offsets.items()}
    return _write_areas(record, folder, clocks)


@form("list of area files")
def _area_files(record: Record, folder: Path) -> Export:
    export = _write_areas(record, folder, _seven_seconds(record))
    return Export(sorted(export.source.iterdir()), readings=export.readings)


@form("pandas frame per area")
def _pandas_areas(record: Record, folder: Path) -> Export:
    tables = _areas(record, _seven_seconds(record))
    return Export(tables, readings=pd.concat(map(_long, tables.values()), ignore_index=True))


@form("polars frame per area")
def _polars_areas(record: Record, folder: Path) -> Export:
    import polars

    tables = _areas(record, _seven_seconds(record))
    frames = {}
    for area, table in tables.items():
        columns = {str(name): table[name].to_numpy() for name in table}
        frames[area] = polars.DataFrame({"time": table.index.to_numpy(), **columns})
    return Export(frames, readings=pd.concat(map(_long, tables.values()), ignore_index=True))


@form("a file per tag")
def _file_per_tag(record: Record, folder: Path) -> Export:
    readings = _read_at(record, _own_clocks(record))
    (folder / "tags").mkdir()
    for name, mine in readings.groupby("tag"):
        times = _texts(mine["time"], "%Y-%m-%d %H:%M:%S")
        _write(folder / "tags" / f"{name}.csv", pd.DataFrame({"Timestamp": times, "Value": mine["value"].to_numpy()}))
    return Export(folder / "tags", 5 * MINUTE, readings=readings)


# --- one row per reading ----------------------------------------------------------------------------------------------


def _write_long(folder: Path, readings: pd.DataFrame, step: pd.Timedelta = MINUTE, **more: Any) -> Export:
    """Write readings as tag, time, value and further columns; those with a quality other than good are not expected."""
    good = more.pop("good", np.ones(len(readings), dtype=bool))
    times = _texts(readings["time"], "%Y-%m-%d %H:%M:%S")
    table = pd.DataFrame({"tag": readings["tag"], "time": times, "value": readings["value"]}).assign(**more)
    return Export(_write(folder / "readings.csv", table), step, readings=readings[good].reset_index(drop=True))


@form("long by time")
def _long_by_time(record: Record, folder: Path) -> Export:
    return _write_long(folder, _long(record.table))


@form("long by tag")
def _long_by_tag(record: Record, folder: Path) -> Export:
    return _write_long(folder, _long(record.table).sort_values("tag", kind="stable", ignore_index=True))


@form("long, own times")
def _long_own_times(record: Record, folder: Path) -> Export:
    return _write_long(folder, _read_at(record, _own_clocks(record)), 5 * MINUTE)


@form("long, own times, by tag")
def _long_own_times_by_tag(record: Record, folder: Path) -> Export:
    readings = _read_at(record, _own_clocks(record))
    return _write_long(folder, readings.sort_values("tag", kind="stable", ignore_index=True), 5 * MINUTE)


@form("long by exception")
def _long_by_exception(record: Record, folder: Path) -> Export:
    return _write_long(folder, _reported(record), 5 * MINUTE)


@form("long, a tag read twice")
def _long_hardly_read(record: Record, folder: Path) -> Export:
    few = pd.DataFrame(
        {"time": record.since + pd.to_timedelta([1, 5], unit="D"), "tag": "AT900", "value": [7.1, 7.3]}
    ).astype({"time": "datetime64[ns]"})
    readings = pd.concat([_long(record.table), few], ignore_index=True)
    return _write_long(folder, readings.sort_values("time", kind="stable", ignore_index=True))


@form("long with quality words")
def _long_quality_words(record: Record, folder: Path) -> Export:
    readings = _long(record.table)
    bad = _bad(record, readings)
    readings.loc[bad, "value"] = 0.0
    return _write_long(folder, readings, quality=np.where(bad, "Bad", "Good"), good=~bad)


@form("long with OPC quality")
def _long_quality_codes(record: Record, folder: Path) -> Export:
    """192 is good, 64 uncertain (here with a right value), 0 bad (here with the value 0)."""
    readings = _long(record.table)
    bad = _bad(record, readings)
    uncertain = ~bad & (np.random.default_rng([record.seed, 78]).random(len(readings)) < 0.002)
    readings.loc[bad, "value"] = 0.0
    codes = np.select([bad, uncertain], [0, 64], 192)
    return _write_long(folder, readings, quality=codes, good=~bad)


# --- historians and their tools ---------------------------------------------------------------------------------------


@form("PI DataLink pairs")
def _pi_pairs(record: Record, folder: Path) -> Export:
    """Sampled or compressed data of each tag with its own times, next to each other, and of different lengths."""
    readings = _read_at(record, _own_clocks(record))
    columns: dict[str, pd.Series[Any]] = {}
    for name in NAMES:
        mine = readings[readings["tag"] == name]
        columns[f"{name}_time"] = pd.Series(_texts(mine["time"], "%d-%b-%y %H:%M:%S"))
        columns[name] = pd.Series(mine["value"].to_numpy())
    return Export(_write(folder / "datalink.csv", pd.DataFrame(columns)), 5 * MINUTE, readings=readings)


@form("PI compressed data")
def _pi_compressed(record: Record, folder: Path) -> Export:
    """One row per archived event; digital states of the system stand where a value could not be read."""
    readings = _reported(record)
    bad = _bad(record, readings)
    states = np.random.default_rng([record.seed, 79]).choice(["Bad Input", "I/O Timeout", "No Data"], len(readings))
    texts = np.where(bad, states, np.array(_number(readings["value"]), dtype=object))
    times = _texts(readings["time"], "%d-%b-%y %H:%M:%S")
    table = pd.DataFrame({"Tag": readings["tag"], "Timestamp": times, "Value": texts})
    path = _write(folder / "archive.csv", table.sort_values("Tag", kind="stable"))
    return Export(path, 5 * MINUTE, readings=readings[~bad].reset_index(drop=True))


@form("status beside each tag")
def _status_beside(record: Record, folder: Path) -> Export:
    """GOOD or BAD after each value; the value is 0 where it is BAD."""
    readings = _long(record.table)
    bad = _bad(record, readings)
    grid = bad.reshape(record.table.shape)
    table = pd.DataFrame({"Time": _texts(record.table.index, "%Y-%m-%d %H:%M:%S")})
    for column, name in enumerate(NAMES):
        table[name] = np.where(grid[:, column], 0.0, record.table[name])
        table[f"{name} Status"] = np.where(grid[:, column], "BAD", "GOOD")
    return Export(_write(folder / "plant.csv", table), readings=readings[~bad].reset_index(drop=True))


@form("Wonderware")
def _wonderware(record: Record, folder: Path) -> Export:
    """AVEVA Historian, the table History: Quality 0 is good and 1 bad, where Value is NULL; QualityDetail as OPC's."""
    readings = _long(record.table)
    bad = _bad(record, readings)
    values = np.where(bad, "NULL", np.array(_number(readings["value"]), dtype=object))
    table = pd.DataFrame(
        {
            "DateTime": _texts(readings["time"], "%Y-%m-%d %H:%M:%S.0000000"),
            "TagName": readings["tag"],
            "Value": values,
            "vValue": values,
            "Quality": np.where(bad, 1, 0),
            "QualityDetail": np.where(bad, 24, 192),
            "OPCQuality": np.where(bad, 0, 192),
        }
    )
    return Export(_write(folder / "history.csv", table), readings=readings[~bad].reset_index(drop=True))


@form("Ignition")
def _ignition(record: Record, folder: Path) -> Export:
    """What system.dataset.toCSV writes for an export."""
    quoted = [",".join(f'"{text}"' for text in texts) for texts in (("t_stamp", *NAMES), ("date", *["D"] * len(NAMES)))]
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%d %H:%M:%S"), "t_stamp").astype(object)
    rows = table.astype(str).to_csv(index=False, header=False, quoting=1)
    path = folder / "dataset.csv"
    path.write_text(f'"#NAMES"\n{quoted[0]}\n"#TYPES"\n{quoted[1]}\n"#ROWS","{len(table)}"\n{rows}')
    return Export(path, readings=_long(record.table))


@form("WinCC")
def _wincc(record: Record, folder: Path) -> Export:
    """A log of an operator panel: days since 1899-12-30 times a million in Time_ms, and a last line with the count."""
    readings = _long(record.table)
    days = ((pd.DatetimeIndex(readings["time"]) - EXCEL_ORIGIN) / pd.Timedelta(days=1)).to_numpy() * 1e6
    table = pd.DataFrame(
        {
            "name": [f'"{tag}"' for tag in readings["tag"]],
            "time": [f'"{text}"' for text in _texts(readings["time"], "%d.%m.%Y %H:%M:%S")],
            "value": _number(readings["value"], ","),
            "valid": "1",
            "days": [f"{number:.4f}".replace(".", ",") for number in days.tolist()],
        }
    )
    lines = ['"VarName";"TimeString";"VarValue";"Validity";"Time_ms"']
    lines += [";".join(row) for row in table.itertuples(index=False, name=None)]
    path = folder / "Log0.csv"
    path.write_text("\n".join([*lines, f'"$RT_COUNT$";{len(table)};;;', ""]), encoding="utf-8")
    return Export(path, readings=readings)


@form("Grafana")
def _grafana(record: Record, folder: Path) -> Export:
    called = {tag.name: f"{tag.name} ({tag.unit})" if tag.unit else tag.name for tag in TAGS}
    table = _stamped(record.table.rename(columns=called), _texts(record.table.index, "%Y-%m-%d %H:%M:%S"), "Time")
    return Export(_write(folder / "panel-data.csv", table, quoting=1), readings=_long(record.table))


@form("Grafana, formatted")
def _grafana_formatted(record: Record, folder: Path) -> Export:
    """Values with their units, as the panel shows them."""
    table = _stamped(record.table, _texts(record.table.index, "%Y-%m-%d %H:%M:%S"), "Time").astype(object)
    for tag in TAGS:
        if tag.unit:
            table[tag.name] = [f"{value:.{tag.digits}f} {tag.unit}" for value in record.table[tag.name]]
    return Export(_write(folder / "panel-data.csv", table, quoting=1), readings=_long(record.table))


@form("Grafana, series to rows")
def _grafana_rows(record: Record, folder: Path) -> Export:
    readings = _long(record.table)
    times = _texts(readings["time"], "%Y-%m-%d %H:%M:%S")
    table = pd.DataFrame({"Time": times, "Metric": readings["tag"], "Value": readings["value"]})
    return Export(_write(folder / "panel-data.csv", table, quoting=2), readings=readings)


@form("InfluxDB")
def _influx(record: Record, folder: Path) -> Export:
    """Annotated CSV of the API: a table per field, one after the other."""
    readings = _long(record.table).sort_values("tag", kind="stable", ignore_index=True)
    table = pd.DataFrame(
        {
            "": "",
            "result": "",
            "table": pd.factorize(readings["tag"])[0],
            "_start": f"{record.since:%Y-%m-%dT%H:%M:%SZ}",
            "_stop": f"{record.until:%Y-%m-%dT%H:%M:%SZ}",
            "_time": _texts(readings["time"], "%Y-%m-%dT%H:%M:%SZ"),
            "_value": readings["value"],
            "_field": readings["tag"],
            "_measurement": "cooling",
            "site": "north",
        }
    )
    stamp = "dateTime:RFC3339"
    annotations = [
        "#group,false,false,true,true,false,false,true,true,true",
        f"#datatype,string,long,{stamp},{stamp},{stamp},double,string,string,string",
        "#default,_result,,,,,,,,",
    ]
    path = folder / "query.csv"
    head = "\r\n".join([*annotations, ""])
    path.write_text(head + table.to_csv(index=False, lineterminator="\r\n"), encoding="utf-8", newline="")
    return Export(path, zone="UTC", readings=readings)
