"""Exports as newcomers have them: each form gives the numbers and times of the plain table, or is refused, or noted."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from penstock._messages import option, spelled_by
from penstock.cli import main
from penstock.io import Table, TableError, read_table

STAMPS = pd.date_range("2024-02-26", periods=400, freq="h")
RANDOM = np.random.default_rng(3)
PLANT = pd.DataFrame(
    {"flow": (120 + np.cumsum(RANDOM.normal(size=400))).round(2), "TT12": (25 + RANDOM.normal(size=400)).round(2)},
    index=STAMPS,
)


def csv(
    times: list[str],
    frame: pd.DataFrame = PLANT,
    *,
    head: str = "time",
    separator: str = ",",
    form: Callable[[float], str] = str,
) -> str:
    rows = [separator.join([time, *map(form, row)]) for time, row in zip(times, frame.to_numpy(), strict=True)]
    return "\n".join([separator.join([head, *frame.columns]), *rows]) + "\n"


def written(pattern: str, stamps: pd.DatetimeIndex = STAMPS) -> list[str]:
    return list(stamps.strftime(pattern))


PLAIN = csv(written("%Y-%m-%d %H:%M"))


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Table]:
    def read_text(text: str, encoding: str = "utf-8", **options: object) -> Table:
        path = tmp_path / "plant.csv"
        path.write_bytes(text.encode(encoding))
        return read_table(path, **options)  # type: ignore[arg-type]

    return read_text


def is_plant(table: Table, frame: pd.DataFrame = PLANT) -> bool:
    assert table.time is not None
    same = np.array_equal(table.values[list(frame.columns)].to_numpy(), frame.to_numpy(), equal_nan=True)
    return same and list(table.time) == list(frame.index)


def halves(stamps: pd.DatetimeIndex, pattern: str, before: str, after: str) -> list[str]:
    """Times of twelve hours, with words for the halves of the day in place of %p."""
    return [f"{t:{pattern.replace('%p', before if t.hour < 12 else after)}}" for t in stamps]


WEEKDAYS = ["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"]
TIMES = {
    "Russian": [f"{t.day} {['февраля', 'марта'][t.month - 2]} {t.year} г. {t.hour}:{t:%M}" for t in STAMPS],
    "Polish": [f"{t.day} {['lut', 'mar'][t.month - 2]} {t.year} {t:%H:%M}" for t in STAMPS],
    "German": [
        f"{WEEKDAYS[t.weekday()]}. {t.day:02}. {['Februar', 'März'][t.month - 2]} {t:%Y %H:%M} Uhr" for t in STAMPS
    ],
    "ctime": written("%a %b %d %H:%M:%S %Y"),
    "Spanish halves": halves(STAMPS, "%d/%m/%Y %I:%M:%S %p", "a. m.", "p. m."),
    "Korean halves": halves(STAMPS, "%Y-%m-%d %p %I:%M:%S", "오전", "오후"),
    "Chinese halves": halves(STAMPS, "%Y/%m/%d %p %I:%M", "上午", "下午"),
    "date once a day": [f"{t:%Y-%m-%d %H:%M}" if t.hour == 0 else f"{t:%H:%M}" for t in STAMPS],
}


@pytest.mark.parametrize("form", TIMES)
def test_times_in_many_ways(read: Callable[..., Table], form: str) -> None:
    table = read(csv(TIMES[form], separator=";"))
    assert is_plant(table)
    assert table.about("mixed time formats") is None
    assert (table.about("dates carried on") is not None) == (form == "date once a day")


PARTS = {
    "digits": ("DATE,TIME", [f"{t:%Y%m%d},{int(f'{t:%H%M%S}')}" for t in STAMPS]),
    "hours and minutes": ("date,time", [f"{t:%Y-%m-%d},{int(f'{t:%H%M}')}" for t in STAMPS]),
    "parts": ("Year,Month,Day,Hour,Minute", [f"{t.year},{t.month},{t.day},{t.hour},{t.minute}" for t in STAMPS]),
    "day of the year": ("Year,DOY,HHMM", [f"{t.year},{t.day_of_year},{100 * t.hour}" for t in STAMPS]),
    "date in the first row": ("Date,Time", [f"{f'{t:%d/%m/%Y}' if t.hour == 0 else ''},{t:%H:%M:%S}" for t in STAMPS]),
}


@pytest.mark.parametrize("form", PARTS)
def test_times_in_several_columns(read: Callable[..., Table], form: str) -> None:
    head, times = PARTS[form]
    assert is_plant(read(csv(times, head=head)))


def test_dates_on_lines_of_their_own(read: Callable[..., Table]) -> None:
    lines = ["Time,flow,TT12"]
    for t, (flow, hot) in zip(STAMPS, PLANT.to_numpy(), strict=True):
        lines += [f"Date: {t:%d/%m/%Y},,"] if t.hour == 0 else []
        lines.append(f"{t:%H:%M:%S},{flow},{hot}")
    table = read("\n".join(lines))
    assert is_plant(table)
    assert table.about("dates carried on") is not None


def test_a_day_is_never_guessed(read: Callable[..., Table]) -> None:
    times = [f"{t:%Y-%m-%d %H:%M}" if n == 0 else f"{t:%H:%M}" for n, t in enumerate(STAMPS)]  # later days without one
    table = read(csv(times))
    assert table.time is None
    assert table.about("time without date") is not None


def grouped(value: float) -> str:
    return f"{value:,.0f}".replace(",", ".")


LARGE = (PLANT[["flow"]] * 1000 - 119_000).round().assign(TT12=(PLANT["TT12"] * 1000).round())


def test_thousands_are_known_from_numbers_below_thousand(read: Callable[..., Table]) -> None:
    frame = LARGE.abs()
    assert (frame < 1000).to_numpy().any()
    table = read(csv(written("%d.%m.%Y %H:%M"), frame, separator=";", form=grouped))
    assert is_plant(table, frame)
    assert table.about("thousands").doubt
    as_decimals = read(csv(written("%d.%m.%Y %H:%M"), frame, separator=";", form=grouped), decimal=".")
    assert as_decimals.about("thousands") is None
    assert as_decimals.values["TT12"].max() < 1000


@pytest.mark.parametrize(
    ("separator", "form", "noted"),
    [
        (";", "{:.3f}", True),  # 120.125 may be 120125
        (",", "{:.3f}", False),  # no locale has both signs so
        (";", "{:.4f}", False),
        (";", "{}", False),  # 120.5 is there too
    ],
)
def test_three_digits_alone_are_a_doubt(read: Callable[..., Table], separator: str, form: str, noted: bool) -> None:
    frame = (PLANT + RANDOM.uniform(0, 0.01, PLANT.shape)).round(3)
    table = read(csv(written("%Y-%m-%d %H:%M"), frame, separator=separator, form=form.format))
    assert is_plant(table, frame)
    note = table.about("thousands")
    assert (note is not None) == noted
    if note is not None:
        assert "thousands='.'" in note.message
        assert is_plant(
            read(csv(written("%Y-%m-%d %H:%M"), frame, separator=separator, form=form.format), thousands="."),
            (frame * 1000).round(),
        )


@pytest.mark.parametrize("sign", ["’", "\u202f", "\u00a0"])
def test_thousands_may_be_apart_by_any_sign(read: Callable[..., Table], sign: str) -> None:
    text = csv(written("%Y-%m-%d %H:%M"), LARGE, separator=";", form=lambda value: f"{value:,.1f}".replace(",", sign))
    assert is_plant(read(text), LARGE)
    assert is_plant(read(text, thousands=" " if sign.isspace() else sign), LARGE)


def insert(places: dict[int, str], text: str = PLAIN) -> str:
    lines = text.splitlines()
    for place in sorted(places, reverse=True):
        lines.insert(place, places[place])
    return "\n".join(lines)


INNER = {
    "remarks": (insert({3: "# restarted, 12 V", 90: "# again"}) + "\n# end\n", "remarks"),
    "headers again": (insert({50: "time,flow,TT12", 200: "time,flow,TT12"}), "headers again"),
    "words below": (PLAIN + "\nRows: 400\nprinted by ann\n", "lines below"),
}


@pytest.mark.parametrize("form", INNER)
def test_lines_that_are_no_rows_are_left_out_with_a_note(read: Callable[..., Table], form: str) -> None:
    text, kind = INNER[form]
    table = read(text)
    assert is_plant(table)
    assert table.about(kind) is not None
    with pytest.raises(TableError, match="strict"):
        read(text, strict=True)


def test_a_row_that_is_cut_is_still_refused(read: Callable[..., Table]) -> None:
    for text in (insert({90: "2024-02-26 00:00,1"}), PLAIN + "2024-03-14 00:00,1", insert({90: "stopped"})):
        with pytest.raises(TableError):
            read(text)


@pytest.mark.parametrize("head", ["time", "Date"])
@pytest.mark.parametrize("names", [["TT12"], ["TT12", "TT13"]])
def test_tables_below_each_other_are_joined(read: Callable[..., Table], head: str, names: list[str]) -> None:
    frame = PLANT.assign(TT13=PLANT["TT12"] + 1)
    times = written("%Y-%m-%d %H:%M")
    table = read(csv(times, frame[["flow"]]) + "\n" + csv(times, frame[names], head=head))
    assert is_plant(table, frame[["flow", *names]])
    assert table.about("stacked tables") is not None


@pytest.mark.parametrize(("good", "bad"), [("良好", "坏"), ("正常", "異常"), ("хорошее", "плохое"), ("양호", "불량")])
def test_quality_in_words_of_many_languages(read: Callable[..., Table], good: str, bad: str) -> None:
    is_bad = np.arange(400) % 40 == 7
    frame = PLANT.mask(np.column_stack([is_bad, np.zeros(400, dtype=bool)]))
    words = [bad if each else good for each in is_bad]
    rows = zip(STAMPS, PLANT["flow"].mask(is_bad, 9999.0), words, PLANT["TT12"], strict=True)
    table = read("time,flow,flow Status,TT12\n" + "\n".join(f"{t},{v},{word},{hot}" for t, v, word, hot in rows))
    assert table.names == ("flow", "TT12")
    assert is_plant(table, frame)
    assert table.bad == {"flow": 10}


def test_a_letter_after_each_number_is_its_quality(read: Callable[..., Table]) -> None:
    is_bad = np.arange(400) % 40 == 7
    rows = zip(STAMPS, PLANT["flow"], PLANT["TT12"], is_bad, strict=True)
    table = read("time,flow,TT12\n" + "\n".join(f"{t},{v} {'B' if bad else 'G'},{hot} m3/h" for t, v, hot, bad in rows))
    assert is_plant(table, PLANT.assign(flow=PLANT["flow"].mask(is_bad)))
    assert table.about("marked as bad").count == 10


def test_influx_has_a_tag_for_each_field_of_each_measurement(read: Callable[..., Table]) -> None:
    frame = pd.DataFrame({f"{unit}.{name}": PLANT[name] + 10 * n for n, unit in enumerate("AB") for name in PLANT})
    rows = [f",,0,{t:%Y-%m-%dT%H:%M:%SZ},{frame.at[t, c]},{c[2:]},{c[0]}" for c in frame for t in STAMPS]
    table = read("\n".join([",result,table,_time,_value,_field,_measurement", *rows]))
    assert is_plant(table, frame.set_axis(STAMPS.tz_localize("UTC")))


def fast(stamps: str) -> pd.DataFrame:
    """Rows every 20 s, and a slow movement; stamps to the minute."""
    times = pd.date_range("2024-03-05", periods=600, freq="20s")
    frame = pd.DataFrame({"flow": np.cumsum(RANDOM.normal(size=600)).round(3), "TT12": np.arange(600.0)}, index=times)
    return frame.assign(time=getattr(times, stamps)("min"))


@pytest.mark.parametrize("stamps", ["floor", "round"])
def test_rows_finer_than_their_stamps_are_put_apart(stamps: str) -> None:
    frame = fast(stamps)
    table = read_table(frame.reset_index(drop=True))
    steps = np.diff(table.time.asi8) / 1e6
    assert (steps == 20).all()
    assert (np.abs(table.time - frame.index) <= pd.Timedelta("60s")).all()
    assert table.about("repeated stamps").doubt


def test_rows_of_two_machines_are_not_put_apart() -> None:
    one, other = PLANT.reset_index(names="time"), (PLANT + 40).reset_index(names="time")
    both = pd.concat([one, other]).sort_values("time", kind="stable", ignore_index=True)
    table = read_table(both)
    assert table.time is not None
    assert list(table.time) == list(both["time"])
    note = table.about("repeated stamps")
    assert "group" in note.message
    assert read_table(pd.concat([one, one])).about("repeated stamps") is None


def test_files_of_two_machines_in_one_period_are_refused(tmp_path: Path) -> None:
    for name, frame in (("north", PLANT), ("south", PLANT + 1)):
        (tmp_path / f"{name}.csv").write_text(csv(written("%Y-%m-%d %H:%M"), frame))
    with pytest.raises(TableError, match=r"north\.csv and south\.csv"):
        read_table(tmp_path)
    areas = read_table({name: tmp_path / f"{name}.csv" for name in ("north", "south")})
    assert areas.names == ("north flow", "north TT12", "south flow", "south TT12")
    (tmp_path / "south.csv").write_text(PLAIN)  # a copy: the same rows again
    assert read_table(tmp_path).about("duplicate times") is not None
    (tmp_path / "south.csv").write_text(csv(written("%Y-%m-%d %H:%M", STAMPS + pd.Timedelta(days=17)), PLANT))
    assert len(read_table(tmp_path).values) == 800


def long_table(frame: pd.DataFrame) -> str:
    rows = [
        f"{tag},{t + pd.Timedelta(minutes=n)},{value}" for n, tag in enumerate(frame) for t, value in frame[tag].items()
    ]
    return "\n".join(["tag,time,value", *rows])


def test_months_with_texts_in_one_of_them_are_put_together(tmp_path: Path) -> None:
    mode = pd.Series(np.where(np.arange(400) % 7 < 3, "on", "off"), index=STAMPS)
    first = PLANT.iloc[:200].astype(object).assign(mode=mode.iloc[:200], pump="run")
    second = PLANT.iloc[200:].astype(object).assign(mode=1, pump="stop")
    (tmp_path / "a.csv").write_text(long_table(first))
    (tmp_path / "b.csv").write_text(long_table(second))
    apart = read_table(tmp_path)
    (tmp_path / "whole").mkdir()
    rows = long_table(second).split("\n", 1)[1]
    (tmp_path / "whole" / "ab.csv").write_text(f"{long_table(first)}\n{rows}")
    whole = read_table(tmp_path / "whole")
    assert apart.time is not None
    assert whole.time is not None
    assert apart.names == whole.names == ("flow", "TT12", "mode", "pump")
    assert list(apart.time) == list(whole.time)
    pd.testing.assert_frame_equal(apart.values, whole.values)
    assert set(apart.values["mode"].dropna()) == {"on", "off", "1"}


def test_times_beside_tags_may_be_typed_and_written() -> None:
    frame = pd.DataFrame(
        {
            "flow time": STAMPS,
            "flow": PLANT["flow"].to_numpy(),
            "TT12 time": written("%d.%m.%Y %H:%M", STAMPS + pd.Timedelta("20min")),
            "TT12": PLANT["TT12"].to_numpy(),
        }
    )
    table = read_table(frame)
    assert table.names == ("flow", "TT12")
    assert table.about("times beside tags") is not None
    assert {tag.name: tag.first for tag in table.tags} == {"flow": STAMPS[0], "TT12": STAMPS[0] + pd.Timedelta("20min")}


def test_what_counts_up_without_a_date_is_said(read: Callable[..., Table]) -> None:
    for head, times in (
        ("X_Value", [f"{600 * n}" for n in range(400)]),
        ("Elapsed", [f"{n}:00:00" for n in range(400)]),
    ):
        table = read(csv(times, head=head))
        note = table.about("time without date")
        assert note.columns == (head,)
        assert note.doubt


def test_options_are_spelled_as_the_door_has_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plant.csv"
    path.write_text(csv(written("%Y-%m-%d %H:%M"), LARGE, separator=";", form=lambda value: f"{value:,.1f}"))
    with pytest.raises(TableError, match="thousands=','"):
        read_table(path)
    assert main(["look", str(path)]) == 2
    said = capfd.readouterr().err
    assert "--thousands ," in said
    assert "thousands=" not in said
    assert main(["look", str(path), "--thousands", ","]) == 0
    path.write_text(path.read_text().replace(",", "\u202f"))
    assert main(["look", str(path)]) == 0
    assert main(["look", str(path), "--thousands", "space"]) == 0
    with spelled_by(lambda name, value: f"<{name}>"):
        assert option("step", "5min") == "<step>"
    assert option("step", "5min") == "step='5min'"


def test_json_has_the_doubts_the_notes_and_incidents_as_they_are_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hours = pd.date_range("2024-03-01", periods=288, freq="h")
    frame = pd.DataFrame(RANDOM.normal(size=(288, 4)), index=hours, columns=list("abcd")).round(4)
    frame.iloc[60:64, 1] += 90
    frame.iloc[200:204, 2] += 120
    (tmp_path / "plant.csv").write_text(csv(written("%d/%m/%Y %H:%M", hours), frame))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["detect", str(tmp_path / "plant.csv"), "--json"]) == 0
        document = json.loads(capfd.readouterr().out)
        assert main(["detect", str(tmp_path / "plant.csv")]) == 0
    printed = capfd.readouterr().out
    ranks = [incident["rank"] for incident in document["incidents"]]
    assert len(ranks) > 1
    assert ranks == sorted(ranks)
    shown = [int(found[1]) for found in re.finditer(r"^  (\d+): 2024", printed, re.MULTILINE)]
    assert [incident["incident"] for incident in document["incidents"]][: len(shown)] == shown
    assert len(document["check_first"]) == 1
    assert "--month-first" in document["check_first"][0]
    assert all(line in printed for line in document["data"])
    assert {"kind", "message", "columns", "doubt"} <= set(document["notes"][0])


def test_a_reading_that_comes_again_makes_no_row_of_its_own(tmp_path):
    """A few tags again at one time have their mean; a time at which a tag that is hardly read stands alone is none."""
    times = pd.date_range("2024-05-01", periods=60, freq="min")
    wide = pd.DataFrame({name: np.arange(60.0) + place for place, name in enumerate("abcde")}, index=times)
    long = wide.rename_axis("time").reset_index().melt("time", var_name="tag")
    more = pd.DataFrame({"time": times[[10, 20]], "tag": "a", "value": [110.0, 120.0]})
    alone = pd.DataFrame({"time": times[[30]] + pd.Timedelta("17s"), "tag": "rare", "value": [1.0]})
    pd.concat([long, more, alone]).sort_values("time", kind="stable").to_csv(tmp_path / "long.csv", index=False)
    table = read_table(tmp_path / "long.csv")
    assert table.time.equals(times.as_unit("us"))
    assert table.values["a"].iloc[[9, 10, 20]].tolist() == [9.0, 60.0, 70.0]
    assert table.values["b"].tolist() == wide["b"].tolist()
    assert "duplicate readings" in {note.kind for note in table.notes}
    assert table.about("rare tags").count == 1


def test_a_full_line_of_a_logger_above_the_names_is_no_header(tmp_path):
    """As loggers of Campbell write: station and numbers, names, units, kinds of value."""
    for station in ("CR1000X", "Pump 7"):  # once with a name that comes twice
        above = f'"TOA5","{station}","CR1000X","12345","Table10"\n"TIMESTAMP","RECORD","P1","P2","T1"\n'
        rows = "".join(f'"2025-03-03 00:{n:02}:00",{n},{n}.5,{2 * n}.25,{3 * n}.5\n' for n in range(30))
        (tmp_path / "plant.dat").write_text(f'{above}"TS","RN","bar","bar","degC"\n"","","Avg","Avg","Avg"\n{rows}')
        table = read_table(tmp_path / "plant.dat")
        assert table.time_name == "TIMESTAMP"
        assert table.values["T1"].tolist() == [3 * n + 0.5 for n in range(30)]
