"""What was probably not meant: tables that are transposed, and local times through a change of the clocks."""

import numpy as np
import pandas as pd
import pytest

from penstock.io import TableError, read_table

TAGS = [f"TI{number:03}" for number in range(52)]


def transposed(header):
    random = np.random.default_rng(0)
    rows = [",".join([tag, *map(str, random.normal(size=len(header)).round(3))]) for tag in TAGS]
    return "\n".join([",".join(["tag", *header]), *rows]) + "\n"


TIMES = [str(stamp) for stamp in pd.date_range("2024-01-01", periods=500, freq="min")]


def test_a_transposed_table_with_times_is_refused(tmp_path):
    path = tmp_path / "plant.csv"
    path.write_text(transposed(TIMES))
    with pytest.raises(TableError, match="transposed"):
        read_table(path)
    frame = pd.DataFrame(np.ones((52, 500)), columns=pd.DatetimeIndex(TIMES), index=pd.Index(TAGS, name="tag"))
    with pytest.raises(TableError, match="transposed"):
        read_table(frame)
    assert read_table(frame.T).names == tuple(TAGS)


@pytest.mark.parametrize("header", [list(map(str, range(500))), [f"{0.5 * number}" for number in range(500)]])
def test_a_table_with_numbers_in_its_header_looks_transposed(tmp_path, header):
    path = tmp_path / "plant.csv"
    path.write_text(transposed(header))
    assert read_table(path).about("transposed") is not None


def test_other_wide_tables_do_not():
    random = np.random.default_rng(0)
    wide = pd.DataFrame(random.normal(size=(52, 500)), columns=[f"tag {number}" for number in range(500)])
    assert read_table(wide).about("transposed") is None
    assert read_table(wide.assign(time=TIMES[:52])).about("transposed") is None
    named = pd.concat([pd.Series(TAGS, name="sample"), wide], axis=1)
    assert read_table(named).about("transposed") is None
    narrow = pd.DataFrame({"unit": TAGS[:5], "2023": range(5), "2024": range(5)})
    assert read_table(narrow).about("transposed") is None


def local(start, end, zone, step):
    return pd.date_range(start, end, freq=step, tz="UTC").tz_convert(zone).tz_localize(None)


def note_of(stamps):
    return read_table({"time": list(map(str, stamps)), "flow": np.arange(float(len(stamps)))}).about("daylight saving")


AUTUMN = {
    "Europe/Berlin": "2024-10-27", "Europe/London": "2024-10-27", "America/New_York": "2024-11-03",
    "Australia/Sydney": "2024-04-07", "America/Sao_Paulo": "2018-02-18", "America/Santiago": "2024-04-07",
}  # fmt: skip
SPRING = {
    "Europe/Berlin": "2024-03-31", "Europe/London": "2024-03-31", "America/New_York": "2024-03-10",
    "Australia/Sydney": "2024-10-06", "America/Sao_Paulo": "2018-11-04", "America/Santiago": "2024-09-08",
}  # fmt: skip


def around(day):
    middle = pd.Timestamp(day)
    return middle - pd.Timedelta(days=2), middle + pd.Timedelta(days=2)


@pytest.mark.parametrize("step", ["1min", "10min", "30min", "1h"])
@pytest.mark.parametrize("zone", AUTUMN)
def test_an_hour_that_comes_twice_is_noted(zone, step):
    stamps = local(*around(AUTUMN[zone]), zone, step)
    for ordered in (stamps, stamps[::-1], stamps.sort_values()):
        note = note_of(ordered)
        assert "set back" in note.message
        assert "timezone=" in note.message


@pytest.mark.parametrize("step", ["1min", "10min", "30min", "1h"])
@pytest.mark.parametrize("zone", SPRING)
def test_an_hour_that_is_missing_is_noted(zone, step):
    note = note_of(local(*around(SPRING[zone]), zone, step))
    assert "set forward" in note.message
    named = note.message.partition("timezone='")[2].partition("'")[0]
    stamps = local(*around(SPRING[zone]), zone, step)
    table = read_table({"time": list(map(str, stamps)), "flow": np.arange(float(len(stamps)))}, timezone=named)
    assert table.about("gaps") is None


@pytest.mark.parametrize("step", ["1min", "10min", "1h"])
def test_times_of_one_zone_are_not(step):
    for day in (*AUTUMN.values(), *SPRING.values()):
        assert note_of(local(*around(day), "UTC", step)) is None


def test_gaps_and_doubled_rows_elsewhere_are_not():
    stamps = pd.date_range("2024-05-01", periods=500, freq="10min")
    assert note_of(stamps.delete(range(100, 106))) is None
    assert note_of(stamps.insert(50, stamps[50])) is None
    assert note_of(np.random.default_rng(0).permutation(stamps)) is None
