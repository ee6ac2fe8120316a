"""Tags with clocks of their own: areas, long tables and times beside tags come out as one table, or are refused."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import penstock
from penstock.io import TableError, _text, read_table

N = 600
TIMES = pd.date_range("2025-03-01", periods=N, freq="min")
RNG = np.random.default_rng(0)
A = pd.DataFrame({"time": TIMES, "P1": RNG.normal(size=N), "F1": RNG.normal(size=N)})
B = pd.DataFrame({"time": TIMES + pd.Timedelta(seconds=7), "T1": RNG.normal(size=N), "T2": RNG.normal(size=N)})
WIDE = pd.concat([A, B.drop(columns="time")], axis=1)
PAIRS = pd.DataFrame(
    {
        "P1_time": A["time"], "P1": A["P1"], "T1_time": B["time"], "T1": B["T1"],
        "T2_time": B["time"].iloc[::3].reset_index(drop=True), "T2": B["T2"].iloc[::3].reset_index(drop=True),
    }
)  # fmt: skip


def written(folder, name, frame, **options):
    frame.to_csv(folder / name, index=False, **options)
    return folder / name


def long_of(*frames):
    return pd.concat([frame.melt("time", var_name="tag") for frame in frames], ignore_index=True)


def assert_as_wide(table, expected=WIDE):
    assert set(table.names) == set(expected.columns) - {"time"}
    assert (table.time == TIMES).all()
    for name in table.names:
        np.testing.assert_array_equal(table.values[name], expected[name])


def test_areas_seconds_apart_are_put_on_one_clock(tmp_path):
    table = read_table([written(tmp_path, "a.csv", A), written(tmp_path, "b.csv", B)])
    assert_as_wide(table)
    assert (table.alignment.step, table.about("aligned").count) == (60_000_000, 4)
    assert [(tag.name, tag.interval, tag.readings, tag.held, tag.missing) for tag in table.tags] == [
        (name, 60.0, N, 0.0, 0.0) for name in table.names
    ]
    assert (table.tags[2].first, table.tags[2].last) == (B["time"].iloc[0], B["time"].iloc[-1])
    with pytest.raises(TableError, match="strict refuses"):
        read_table([tmp_path / "a.csv", tmp_path / "b.csv"], strict=True)


def test_a_slow_area_is_held_and_a_gap_of_all_stays_a_gap(tmp_path):
    slow = B.iloc[::10].assign(time=B["time"].iloc[::10])
    fast = A.drop(index=range(200, 230))
    slow = slow[~slow["time"].between(TIMES[200], TIMES[229])]
    table = read_table([written(tmp_path, "a.csv", fast), written(tmp_path, "b.csv", slow)], step="1min")
    assert not table.time.isin(TIMES[200:230]).any()
    assert len(table.values) == N - 30
    np.testing.assert_array_equal(table.values["T1"].iloc[:200], np.repeat(B["T1"].iloc[:200:10], 10))
    assert table.values["T1"].iloc[200:].notna().mean() > 0.9
    assert {tag.name: round(tag.held, 1) for tag in table.tags} == {"P1": 0.0, "F1": 0.0, "T1": 0.9, "T2": 0.9}


def test_hold_is_what_is_given(tmp_path):
    paths = [written(tmp_path, "a.csv", A), written(tmp_path, "b.csv", B.iloc[::10])]
    held = read_table(paths, step="1min", hold=dt.timedelta(minutes=3)).values["T1"].notna()
    assert held.mean() == pytest.approx(0.4, abs=0.01)  # read at :07, and then 53, 113 and 173 s old
    assert read_table(paths, step="none").values["T1"].notna().sum() == N // 10


def test_one_clock_stays_as_it_is_unless_a_step_is_given(tmp_path):
    path = written(tmp_path, "a.csv", A)
    assert read_table(path).alignment is None
    table = read_table(path, step="5min")
    assert (len(table.values), table.alignment.step) == (N // 5, 300_000_000)
    np.testing.assert_allclose(table.values["P1"], A["P1"].to_numpy().reshape(-1, 5).mean(axis=1), rtol=1e-12)


def test_areas_on_equal_stamps_are_joined_as_before(tmp_path):
    same = B.assign(time=TIMES).drop(index=RNG.choice(N, 60, replace=False))
    table = read_table([written(tmp_path, "a.csv", A), written(tmp_path, "b.csv", same)])
    assert table.alignment is None
    assert table.about("joined files").count == 60
    assert table.values["T1"].isna().sum() == 60


@pytest.mark.parametrize("order", ["time", "tag", "any"])
def test_long_tables_with_times_of_their_own(tmp_path, order):
    long = long_of(A, B)
    if order == "time":
        long = long.sort_values("time", kind="stable")
    if order == "any":
        long = long.sample(frac=1, random_state=0)
    assert_as_wide(read_table(written(tmp_path, "long.csv", long)))


def test_a_long_text_in_pieces_is_read_as_it_is_whole(tmp_path, monkeypatch):
    for form, zone in (("%Y-%m-%d %H:%M:%S", None), ("%Y-%m-%dT%H:%M:%SZ", "UTC"), ("%d.%m.%Y %H:%M:%S", None)):
        long = long_of(A, B.iloc[::5]).assign(quality=np.tile(["GOOD", "BAD", "GOOD", "GOOD"], 360), unit="bar")
        long["time"] = long["time"].dt.strftime(form)
        path = written(tmp_path, "long.csv", long)
        whole = read_table(path)
        with monkeypatch.context() as patch:
            patch.setattr(_text, "_LONG", 1000)
            patch.setattr(_text, "_PIECE", 101)
            pieces = read_table(path)
        pd.testing.assert_frame_equal(whole.values, pieces.values)
        assert whole.time.equals(pieces.time)
        assert str(pieces.time.tz) == str(zone)
        assert (whole.units, whole.tags) == (pieces.units, pieces.tags)
        assert whole.about("bad quality") == pieces.about("bad quality")


def test_what_cannot_be_read_in_pieces_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(_text, "_LONG", 1000)
    monkeypatch.setattr(_text, "_PIECE", 101)
    long = long_of(A, B).assign(value=lambda frame: frame["value"].astype(str))
    long.loc[1500, "value"] = "I/O Timeout"
    long.loc[1700, "time"] = None
    table = read_table(written(tmp_path, "long.csv", long))
    assert table.about("text among numbers").count == 1
    assert table.about("missing times").count == 1
    assert table.values.isna().sum().sum() <= 2
    read_table(written(tmp_path, "tags.csv", long_of(A, B).assign(tag=lambda f: f["tag"].str.len() * 0 + f.index // N)))


def test_duplicate_and_bad_readings_of_a_long_table_are_counted(tmp_path):
    long = long_of(A, B)
    long = pd.concat([long, long.iloc[:20]])
    table = read_table(written(tmp_path, "long.csv", long))
    assert table.about("duplicate readings").count == 20
    assert_as_wide(table)
    long = long_of(A, B).assign(Quality="Good")
    long.loc[1300:1309, "Quality"] = "Bad"
    long.loc[1300:1309, "value"] = 0.0
    table = read_table(written(tmp_path, "long.csv", long))
    assert table.about("bad quality").count == 10
    assert table.values["T1"].isna().sum() == 10
    assert [tag.bad for tag in table.tags] == [0, 0, 10, 0]


def test_a_tag_that_is_hardly_ever_read_is_left_out_and_named(tmp_path):
    lab = pd.DataFrame({"time": TIMES[[5, 500]], "tag": "lab", "value": 1.0})
    table = read_table(written(tmp_path, "long.csv", pd.concat([long_of(A, B), lab])))
    assert table.about("rare tags").columns == ("lab",)
    assert "lab" not in table.names
    with pytest.raises(TableError, match="has no column 'lab'"):
        read_table(tmp_path / "long.csv", columns=["P1", "T1", "lab"])


def header(text, names):
    return names + "\n" + text.split("\n", 1)[1]


@pytest.mark.parametrize(
    "names",
    [
        None,
        "Time,P1,Time,T1,Time,T2",
        ",P1,,T1,,T2",
        "P1,,T1,,T2,",
        "P1,,T1,,T2,\nTimestamp,Value,Timestamp,Value,Timestamp,Value",
        "Date/Time,P1,Date/Time,T1,Date/Time,T2",
    ],
)
def test_a_time_beside_each_tag(tmp_path, names):
    text = PAIRS.to_csv(index=False)
    path = tmp_path / "pairs.csv"
    path.write_text(text if names is None else header(text, names))
    table = read_table(path)
    assert table.names == ("P1", "T1", "T2")
    assert (table.time == TIMES).all()
    np.testing.assert_array_equal(table.values["P1"], A["P1"])
    np.testing.assert_array_equal(table.values["T1"], B["T1"])
    np.testing.assert_array_equal(table.values["T2"], np.repeat(B["T2"].iloc[::3], 3))
    assert table.about("times beside tags").count == 3


def test_times_after_their_tags_with_a_status_and_as_days_of_excel(tmp_path):
    after = PAIRS[["P1", "P1_time", "T1", "T1_time", "T2", "T2_time"]]
    assert read_table(written(tmp_path, "after.csv", after)).tags == read_table(PAIRS).tags
    status = PAIRS.copy()
    status.insert(2, "P1 Status", np.where(np.arange(N) == 7, "BAD", "GOOD"))
    assert np.flatnonzero(read_table(status).values["P1"].isna()).tolist() == [7]
    days = PAIRS.copy()
    for name in days.columns[::2]:
        days[name] = (days[name] - pd.Timestamp("1899-12-30")) / pd.Timedelta(days=1)
    table = read_table(written(tmp_path, "days.csv", days))
    assert table.names == ("P1", "T1", "T2")
    assert abs(table.time - TIMES).max() <= pd.Timedelta(minutes=1)


@pytest.mark.parametrize("broken", ["#N/A", 0.5])
def test_a_time_beside_a_tag_that_cannot_be_read_is_named_and_its_tag_left_out(broken):
    table = read_table(PAIRS.assign(T1_time=broken))
    assert table.names == ("P1", "T2")
    assert table.about("broken times").columns == ("T1",)


@pytest.mark.parametrize(
    "frame",
    [
        A.assign(received=A["time"] + pd.Timedelta(seconds=1))[["time", "received", "P1", "F1"]],
        A.assign(calibrated=pd.Timestamp("2024-01-01"), level=1.5),
        A.assign(**{"time again": A["time"], "level": RNG.normal(size=N)}),
    ],
)
def test_other_times_in_a_table_of_one_clock_do_not_divide_it(frame):
    table = read_table(frame)
    assert table.alignment is None
    assert (table.time == TIMES).all()


def test_a_quality_beside_a_tag_of_one_clock_masks_its_readings():
    table = read_table(A.assign(**{"P1 Status": np.where(np.arange(N) < 5, "BAD", "GOOD")}))
    assert table.names == ("P1", "F1")
    assert table.values["P1"].isna().sum() == table.about("bad quality").count == 5
    table = read_table(A.assign(**{"P1 Status": "GOOD"}), label="P1 Status")
    assert (table.label == "GOOD").all()


def test_texts_and_states_keep_their_last_reading_and_numbers_as_text_are_read(tmp_path):
    area = B.assign(
        T2=B["T2"].round(2).astype(str).str.replace(".", ","), mode=np.where(np.arange(N) < 300, "hand", "auto")
    )
    area.loc[5:9, "T2"] = "I/O Timeout"
    paths = [written(tmp_path, "a.csv", A), written(tmp_path, "b.csv", area, sep=";")]
    table = read_table(paths, step="3min")
    assert table.values["mode"].tolist() == ["hand"] * 100 + ["auto"] * 100
    assert table.about("text among numbers").count == 5
    assert table.values["T2"].dtype == np.float64
    assert not table.alignment.tags[table.alignment.names.index("mode")].mean


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (B.assign(time=B["time"] + pd.Timedelta(days=300)), "a.csv: 2025-03-01.*b.csv: 2025-12-26"),
        (B.assign(time=B["time"].dt.tz_localize("UTC")), "some have time stamps with a zone"),
        (B.rename(columns={"T1": "P1"}), "a.csv and b.csv share some columns"),
    ],
)
def test_areas_that_cannot_be_joined_are_refused(tmp_path, other, message):
    with pytest.raises(TableError, match=message):
        read_table([written(tmp_path, "a.csv", A), written(tmp_path, "b.csv", other)])


def test_areas_that_hardly_overlap_are_said_to(tmp_path):
    late = B.assign(time=B["time"] + pd.Timedelta(minutes=550))
    table = read_table([written(tmp_path, "a.csv", A), written(tmp_path, "b.csv", late)])
    assert table.about("short overlap") is not None
    assert table.alignment is not None


def test_files_of_areas_by_month_are_appended_and_joined(tmp_path):
    for number in (0, 1):
        later = pd.Timedelta(days=number)
        written(tmp_path, f"a{number}.csv", A.assign(time=A["time"] + later))
        written(tmp_path, f"b{number}.csv", B.assign(time=B["time"] + later))
    table = read_table(tmp_path)
    assert (len(table.values), table.names) == (2 * N, ("P1", "F1", "T1", "T2"))
    for name in ("a0.csv", "a1.csv", "b0.csv", "b1.csv"):
        (tmp_path / name).unlink()
    for number in (0, 1):
        later = pd.Timedelta(days=number)
        written(tmp_path, f"{number}.csv", long_of(A, B).assign(time=lambda f, by=later: f["time"] + by))
    table = read_table(tmp_path)
    assert (len(table.values), set(table.names)) == (2 * N, {"P1", "F1", "T1", "T2"})
    written(tmp_path, "2.csv", long_of(A, B))
    with pytest.raises(TableError, match="and at the same time"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("options", "parameter"),
    [({"step": "5m"}, "step"), ({"step": 300}, "step"), ({"step": "0s"}, "step"), ({"hold": "long"}, "hold"),
     ({"step": pd.NaT}, "step"), ({"hold": dt.timedelta(minutes=-1)}, "hold")],
)  # fmt: skip
def test_steps_that_cannot_be_are_refused(options, parameter):
    with pytest.raises(TableError) as error:
        read_table(A, **options)
    assert error.value.parameter == parameter
    with pytest.raises(TableError) as error:
        penstock.detect(A, **options)
    assert error.value.parameter == parameter


def test_a_step_needs_a_time_and_no_groups_and_room():
    for frame, options in (
        (A.drop(columns="time"), {"step": "5min"}),
        (A.assign(unit=np.arange(N) % 2), {"step": "5min", "group": "unit"}),
        (A, {"step": "1ms", "max_bytes": 100}),
    ):
        with pytest.raises(TableError) as error:
            read_table(frame, **options)
        assert error.value.parameter == "step"


def test_steps_begin_at_round_local_times():
    kolkata = A.assign(time=A["time"].dt.tz_localize("Asia/Kolkata"))
    table = read_table(kolkata, step="1h")
    assert (table.time.minute == 0).all()
    assert table.time[0] == pd.Timestamp("2025-03-01", tz="Asia/Kolkata")


def test_a_model_puts_new_data_on_its_own_clock(tmp_path):
    model = penstock.fit_model([written(tmp_path, "a.csv", A), written(tmp_path, "b.csv", B)], step="5min")
    assert model.reading.alignment.step == 300_000_000
    model.save(tmp_path / "plant.model")
    again = penstock.load(tmp_path / "plant.model")
    assert again.reading == model.reading
    new = long_of(A, B.iloc[::2])
    for each in (model, again):
        findings = each.score(new)
        assert (len(findings.table.values), findings.table.alignment.step) == (N // 5, 300_000_000)
    with pytest.raises(TableError) as error:
        again.score(new, step="1min")
    assert error.value.parameter == "step"
