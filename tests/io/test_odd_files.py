"""Numbers, times and rows as programs write them oddly: read right, or with a doubt that is said; files as streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import penstock
from penstock.io import Columns, InputError, RowSource, TableOptions, open_feed, read_table
from penstock.io._csv_rows import CsvRows, RowLayout
from penstock.live import Monitor, WatchOptions

VALUES = [3.5, -1234.5, 12345.25, -0.25, 7.0, 1000.0] * 5
START = pd.Timestamp("2024-10-27 00:00")


def _rows_of_stream(path: Path) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Return the numbers of the first column, the times, and the reasons of malformed lines."""
    source = RowSource(open_feed(path), TableOptions())
    values, seconds, faults = [], [], []
    with closing(source):
        while not source.ended:
            batch = source.next_batch(7)
            if batch is not None:
                faults += [fault.reason for fault in batch.faults]
                if len(batch.lines):
                    values.append(batch.values)
                    seconds.append(batch.seconds)
    return np.vstack(values)[:, 0], np.concatenate(seconds), faults


def _written(tmp_path: Path, spelled: Callable[[float], str], ending: str = "") -> Path:
    rows = [f"2024-05-01 {n // 60:02d}:{n % 60:02d};{spelled(value)};{n}.5" for n, value in enumerate(VALUES)]
    path = tmp_path / "plant.csv"
    path.write_text("\n".join(["time;flow;level", *rows, ending]), encoding="utf-8")
    return path


def _grouped(sign: str) -> Callable[[float], str]:
    return lambda value: f"{value:,.2f}".replace(",", sign)


SPELLINGS = {
    "minus of typesetters": lambda value: f"{value:.2f}".replace("-", "−"),
    "en dash": lambda value: f"{value:.2f}".replace("-", "–"),
    "sign behind": lambda value: f"{abs(value):.2f}" + "-" * (value < 0),
    "in brackets": lambda value: f"({-value:.2f})" if value < 0 else f"{value:.2f}",
    "blank after the sign": lambda value: f"{value:.2f}".replace("-", "- "),
    "no-break space": _grouped("\u00a0"),
    "thin space": _grouped("\u2009"),
    "narrow space": _grouped("\u202f"),
    "figure space": _grouped("\u2007"),
    "Swiss": _grouped("'"),
    "Swiss, typeset": _grouped("’"),
    "wide digits": lambda value: f"{value:.2f}".translate({48 + digit: 0xFF10 + digit for digit in range(10)}),
    "formula of Excel": lambda value: f'="{value:.2f}"',
    "text of Excel": lambda value: f"'{value:.2f}",
    "unit": lambda value: f"{value:.2f} bar",
    "unit, no-break space": lambda value: f"{value:.2f}\u00a0m³/h".replace("-", "−"),
    "unit at times": lambda value: f"{value:.2f} bar" if value > 3 else f"{value:.2f}",
    "per cent": lambda value: f"{value:.2f}%",
    "per cent, blank": lambda value: f"{value:.2f} %",
}


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS)
def test_a_number_is_read_however_it_is_written(spelled: Callable[[float], str], tmp_path: Path) -> None:
    path = _written(tmp_path, spelled)
    np.testing.assert_array_equal(read_table(path).values["flow"], VALUES)
    np.testing.assert_array_equal(_rows_of_stream(path)[0], VALUES)


def test_limits_are_read_as_such_and_said(tmp_path: Path) -> None:
    path = _written(tmp_path, lambda value: "<0.1" if value < 0.1 else f"> {value}" if value > 9999 else f"{value}")
    expected = [0.1 if value < 0.1 else value for value in VALUES]
    table = read_table(path)
    np.testing.assert_array_equal(table.values["flow"], expected)
    np.testing.assert_array_equal(_rows_of_stream(path)[0], expected)
    note = table.about("limits")
    assert note is not None
    assert (note.count, note.columns, note.doubt) == (15, ("flow",), True)


@pytest.mark.parametrize(
    "spelled", [lambda n: f"bar {n}.25", lambda n: f"{n}.5 kW" if n % 2 else f"{n}.5 W", lambda n: f"00:00:{n:02d}"]
)
def test_text_that_holds_numbers_is_a_doubt(spelled: Callable[[int], str]) -> None:
    table = read_table(
        {"time": pd.date_range(START, periods=60, freq="min"), "x": range(60), "p": map(spelled, range(60))}
    )
    note = table.about("numbers as text")
    assert note is not None
    assert note.columns == ("p",)
    assert note.doubt


@pytest.mark.parametrize("mark", ["1.#INF", "7.0 B", "7.0 est", "7.0*"])
def test_a_mark_behind_some_numbers_is_no_unit(mark: str) -> None:
    texts = [mark if n % 6 == 0 else f"{n}.25" for n in range(300)]
    table = read_table({"time": pd.date_range(START, periods=300, freq="min"), "x": range(300), "p": texts})
    assert table.values["p"].isna().tolist() == [n % 6 == 0 for n in range(300)]
    note = table.about("text among numbers")
    assert note is not None
    assert note.doubt


@pytest.mark.parametrize("texts", [[f"batch {n}" for n in range(60)], [f"{n + 1}.5.2024" for n in range(30)] * 2])
def test_names_and_dates_are_no_numbers(texts: list[str]) -> None:
    table = read_table({"time": pd.date_range(START, periods=60, freq="min"), "x": range(60), "b": texts})
    assert table.about("numbers as text") is None


MOMENTS = pd.date_range("2024-03-01 22:00", periods=30, freq="5min")
TIMES = {
    "two digits of a year, to the minute": "{:%y%m%d%H%M}",
    "two digits of a year, to the second": "{:%y%m%d%H%M%S}",
    "in brackets": "[{:%Y-%m-%d %H:%M:%S}]",
    "text of Excel": "'{:%Y-%m-%d %H:%M}",
    "with the name of a zone": "{:%Y-%m-%d %H:%M} Europe/Berlin",
    "comma before milliseconds": "{:%Y-%m-%dT%H:%M:%S},000",
    "weeks": "{:%GW%V%u %H:%M}",
    "as Java writes it": "{0:%a %b %d %H:%M:%S} UTC {0:%Y}",
}


@pytest.mark.parametrize("form", TIMES.values(), ids=TIMES)
def test_a_time_is_read_however_it_is_written(form: str, tmp_path: Path) -> None:
    path = tmp_path / "plant.csv"
    path.write_text("time;flow\n" + "".join(f"{form.format(time)};{n}\n" for n, time in enumerate(MOMENTS)))
    table = read_table(path)
    assert table.time is not None
    assert table.time.tz_localize(None).tolist() == MOMENTS.tolist()
    assert _rows_of_stream(path)[1].tolist() == (MOMENTS.asi8 / 1e6).tolist()


def test_days_with_a_decimal_comma_are_times_beside_numbers_with_a_point(tmp_path: Path) -> None:
    days = (MOMENTS - pd.Timestamp("1899-12-30")) / pd.Timedelta(days=1)
    rows = [f"{day:.8f}".replace(".", ",") + f";{n}.5" for n, day in enumerate(days)]
    path = tmp_path / "plant.csv"
    path.write_text("\n".join(["time;flow", *rows]))
    table = read_table(path)
    assert table.time is not None
    assert table.time.round("s").tolist() == MOMENTS.tolist()


# Files and streams: the rows, times and scores of `score` and `watch` are the same.


def _plant(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    load = 5 * np.sin(np.arange(n) / 9) + np.cumsum(rng.normal(size=n)) / 9
    return pd.DataFrame({name: (20 + load * k + rng.normal(size=n)).round(3) for k, name in enumerate("abcd", start=1)})


def _with(times: list[str], table: pd.DataFrame, head: str = "Time") -> str:
    rows = (",".join(map(str, row)) for row in table.itertuples(index=False))
    return "\n".join([f"{head},a,b,c,d", *(f"{time},{row}" for time, row in zip(times, rows, strict=True)), ""])


def _milliseconds(table: pd.DataFrame) -> str:
    times = [START + pd.Timedelta(milliseconds=60_200 * int(n)) for n in table.index]
    return _with([f"{t:%d.%m.%Y %H:%M:%S},{t.microsecond // 1000}" for t in times], table, "Time,ms")


def _coarse_stamps(table: pd.DataFrame) -> str:
    return _with([f"{START + pd.Timedelta(minutes=int(n) // 4):%Y-%m-%d %H:%M}" for n in table.index], table)


def _hour_twice(table: pd.DataFrame) -> str:
    zoned = (START - pd.Timedelta(hours=10) + pd.to_timedelta(5 * table.index, unit="min")).tz_localize("UTC")
    return _with([f"{t:%Y-%m-%d %H:%M}" for t in zoned.tz_convert("Europe/Berlin")], table)


def _all_bad(table: pd.DataFrame) -> str:
    rows = ["tag,time,value,quality"]
    for n, row in zip(table.index, table.to_numpy(), strict=True):
        time, bad = f"{START + pd.Timedelta(minutes=int(n)):%Y-%m-%d %H:%M}", n % 25 == 7
        rows += [
            f"{tag},{time},{0.0 if bad else x},{'Bad' if bad else 'Good'}" for tag, x in zip("abcd", row, strict=True)
        ]
    return "\n".join([*rows, ""])


def _points_between_thousands(table: pd.DataFrame) -> str:
    times = [f"{START + pd.Timedelta(minutes=int(n)):%Y-%m-%d %H:%M}" for n in table.index]
    whole = (table * 40).round().astype(int).map(lambda value: f"{value:,}".replace(",", "."))
    return _with(times, whole).replace(",", ";")


FORMS = [_points_between_thousands, _milliseconds, _coarse_stamps, _hour_twice, _all_bad]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore")
def test_score_and_watch_read_the_same_rows(form: Callable[[pd.DataFrame], str], tmp_path: Path) -> None:
    table = _plant(600)
    table.iloc[520:560, 1] += 30.0
    good, new, model = tmp_path / "good.csv", tmp_path / "new.csv", tmp_path / "plant.penstock"
    good.write_text(form(table[:301]))
    new.write_text(form(table[301:]))
    fitted = penstock.fit_model(good)
    fitted.save(model)
    findings = penstock.score(fitted, new)
    verdicts, alarms = tmp_path / "out.jsonl", tmp_path / "alarms.jsonl"
    Monitor(WatchOptions(new, model=model, output=verdicts, alarms=alarms)).run()
    rows = [json.loads(line) for line in verdicts.read_text().splitlines()]
    scores = np.array([row["score"] for row in rows], dtype=np.float64)
    np.testing.assert_allclose(scores, findings.scores, rtol=0, atol=1e-12)
    assert findings.table.time is not None
    changes = [json.loads(line) for line in alarms.read_text().splitlines()]
    raised = [round(change["time"] * 1e6) for change in changes if change["kind"] == "raised"]
    assert raised
    assert {*raised} <= {*findings.table.time.as_unit("us").asi8.tolist()}


def test_a_stream_shows_points_between_thousands_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "plant.csv"
    path.write_text(_points_between_thousands(_plant(60)))
    with pytest.warns(match="between thousands"):
        np.testing.assert_array_equal(_rows_of_stream(path)[0], read_table(path).values["a"])
    assert read_table(path).thousands == "."


def test_milliseconds_beside_the_time_are_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "plant.csv"
    path.write_text(_milliseconds(_plant(60)))
    table = read_table(path)
    assert table.time is not None
    assert table.names == ("a", "b", "c", "d")
    assert table.time.tolist() == [START + pd.Timedelta(milliseconds=60_200 * n) for n in range(60)]


def test_an_hour_that_comes_twice_keeps_the_order_of_its_rows(tmp_path: Path) -> None:
    path, plant = tmp_path / "plant.csv", _plant(200)
    path.write_text(_hour_twice(plant))
    table = read_table(path)
    assert table.time is not None
    assert table.time.is_monotonic_increasing
    assert table.about("daylight saving") is not None
    np.testing.assert_array_equal(table.values["a"], plant["a"])
    path.write_text("\n".join([_hour_twice(plant).split("\n")[0], *_hour_twice(plant).strip().split("\n")[:0:-1]]))
    np.testing.assert_array_equal(read_table(path).values["a"], plant["a"])


def test_a_stream_with_the_newest_row_first_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plant.csv"
    path.write_text(_with([f"{time:%Y-%m-%d %H:%M}" for time in MOMENTS[::-1]], _plant(30)))
    with pytest.raises(InputError, match="newest first"):
        _rows_of_stream(path)


FIELDS = [
    "1",
    "-2.5",
    "",
    "1e5",
    ".5",
    "5.",
    "+3",
    "nan",
    "-",
    "1e",
    "--3",
    "0x1",
    "1_0",
    " 7",
    "1e999",
    "1-2",
    '"5"',
    "é",
]


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_lines_that_are_read_at_once_are_read_as_one_by_one(sign: str) -> None:
    rng = np.random.default_rng(0)
    layout = RowLayout(Columns(("time", "a", "b"), 0, (1, 2)), sign, (".", ".", ".") if sign == "," else (None,) * 3)
    at_once, one_by_one = CsvRows(layout), CsvRows(layout)
    one_by_one._at_once = False
    for _ in range(3000):
        some = FIELDS[: rng.choice([7, len(FIELDS)])]
        times = rng.choice(["2024-05-01 00:00", "", "x y"], 3)
        lines = [(sign.join([time, *rng.choice(some, 2)]) + rng.choice(["", "\r"])).encode() for time in times]
        found, expected = at_once.parse(lines), one_by_one.parse(lines)
        np.testing.assert_array_equal(found.values, expected.values)
        assert (found.times, found.faults) == (expected.times, expected.faults)
