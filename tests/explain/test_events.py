"""Flagged rows → events, days, and agreement with known faults."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import detection as naive_detection
from naive import events as naive
from strategies import examples

from penstock.explain import agreement, event_days, group_events, known_faults
from penstock.io import TableError

UNITS = st.sampled_from(["s", "ms", "us", "ns"])
ZONES = st.sampled_from([None, "UTC", "Europe/Berlin"])
HOUR = pd.Timedelta(hours=1)


@st.composite
def flagged_rows(draw: st.DrawFn, most: int = 30):
    """Flags, scores (NaN here and there where not flagged), a clock in whole seconds, and the same as time stamps."""
    n = draw(st.integers(0, most))
    flags = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    scores = draw(st.lists(st.integers(-2, 5).map(float), min_size=n, max_size=n))
    gone = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    scores = [math.nan if hide and not flag else score for flag, score, hide in zip(flags, scores, gone, strict=True)]
    steps = draw(st.lists(st.sampled_from([0, 1, 1, 1, 2, 7, 50, 100_000]), min_size=n, max_size=n))
    clock = [int(tick) for tick in np.cumsum(steps)]
    if draw(st.booleans()):
        return flags, scores, list(range(n)), None
    start = pd.Timestamp("2024-10-26 12:00", tz=draw(ZONES))
    stamps = [start + pd.Timedelta(seconds=tick) for tick in clock]
    return flags, scores, clock, pd.DatetimeIndex(stamps, tz=start.tz).as_unit(draw(UNITS))


def length(seconds: int | None, time: pd.DatetimeIndex | None):
    return seconds if seconds is None or time is None else pd.Timedelta(seconds=seconds)


@given(flagged_rows(), st.none() | st.integers(0, 9))
@examples(150)
def test_events_are_those_of_the_slow_way(rows, gap):
    flags, scores, clock, time = rows
    found = group_events(flags, scores, time, gap=length(gap, time))
    used = gap if gap is not None else 6 if time is None else naive.usual_gap(clock)
    expected = naive.events(flags, clock, used)
    assert found.gap == length(used, time)
    assert [found.rows_of(event).tolist() for event in found.table.index] == expected
    assert [found.span_of(event) for event in found.table.index] == [slice(e[0], e[-1] + 1) for e in expected]
    of_row = [next((number for number, e in enumerate(expected, 1) if row in e), 0) for row in range(len(flags))]
    assert found.of_row.tolist() == of_row
    stamp = (lambda row: row) if time is None else (lambda row: time[row])
    peaks = [max(e, key=lambda row: (scores[row], -row)) for e in expected]
    ranks = naive.rank([scores[row] for row in peaks])
    for number, (event, peak, rank) in enumerate(zip(expected, peaks, ranks, strict=True), 1):
        row = found.table.loc[number]
        assert (row["start"], row["end"], row["peak"]) == (stamp(event[0]), stamp(event[-1]), stamp(peak))
        span = event[-1] - event[0] + 1 if time is None else time[event[-1]] - time[event[0]]
        assert (row["duration"], row["rows"], row["peak_row"]) == (span, len(event), peak)
        assert (row["peak_score"], row["rank"]) == (scores[peak], rank)
        assert row["mean_score"] == pytest.approx(sum(scores[r] for r in event) / len(event), abs=1e-12)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_nothing_flagged_is_a_table_of_the_same_kinds(zone):
    time = pd.date_range("2024-05-01", periods=5, freq="h", tz=zone)
    none = group_events([False] * 5, [math.nan] * 5, time)
    one = group_events([True] * 5, [1.0] * 5, time)
    assert (len(none), len(one)) == (0, 1)
    assert none.table.dtypes.to_dict() == one.table.dtypes.to_dict()
    assert one.table.index.name == none.table.index.name == "event"
    assert one.table["start"].dt.tz == time.tz


def test_a_gap_finer_than_the_clock_and_one_beyond_it():
    time = pd.DatetimeIndex(["2024-01-01 00:00:00", "2024-01-01 00:00:01"]).as_unit("s")
    just_less = pd.Timedelta(999_999_999, unit="ns")
    assert len(group_events([True, True], [1.0, 1.0], time, gap=just_less)) == 2
    assert len(group_events([True, True], [1.0, 1.0], time, gap=just_less + pd.Timedelta(1, unit="ns"))) == 1
    endless = pd.Timedelta(np.timedelta64(2**62, "s"))
    assert len(group_events([True, True], [1.0, 1.0], time.as_unit("ns"), gap=endless)) == 1


def test_huge_scores_and_a_clock_that_was_reset_to_1900_do_not_overflow():
    assert group_events([True] * 3, [1e308] * 3, None).table.loc[1, "mean_score"] == pytest.approx(1e308)
    peak = group_events([True] * 3, [1.0, np.inf, -np.inf], None).table.loc[1]
    assert (peak["peak_row"], peak["peak_score"]) == (1, np.inf)
    time = pd.DatetimeIndex(["1900-01-01", "1970-01-01 00:00", "1970-01-01 00:10", "1970-01-01 00:20"]).as_unit("s")
    found = group_events([True] * 4, [1.0] * 4, time, gap=pd.Timedelta("1h").as_unit("ns"))
    assert found.of_row.tolist() == [1, 2, 2, 2]
    wide = pd.DatetimeIndex(["1900-01-01", "2199-12-31"]).as_unit("ns")
    assert group_events([True, True], [1.0, 1.0], wide, gap=HOUR).of_row.tolist() == [1, 2]
    assert agreement([False, True], [True, False], [1.0, 1.0], wide).n_found == 0
    assert agreement([True, False], [True, False], [1.0, 1.0], wide).n_found == 1


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([True], [1.0], None), {"gap": HOUR}, "gap is a duration.*no time. Give a number of rows"),
        (([True], [1.0], None), {"gap": -1}, "gap must not be negative; got -1"),
        (([True], [1.0], None), {"gap": 1.5}, "whole number of rows; got 1.5"),
        (([True], [1.0], None), {"gap": True}, "whole number of rows; got True"),
        (([True], [1.0], pd.DatetimeIndex(["2024"])), {"gap": -HOUR}, "gap must not be negative"),
        (([True], [1.0], pd.DatetimeIndex(["2024"])), {"gap": pd.NaT}, "whole number of rows; got NaT"),
        (([True], [1.0], pd.DatetimeIndex([])), {}, "0 time stamps for 1 rows"),
        (([True] * 2, [1.0] * 2, pd.DatetimeIndex(["2024-02", "2024-01"])), {}, "ascending order"),
        (([True] * 2, [1.0] * 2, pd.DatetimeIndex(["2024-02", pd.NaT])), {}, "without missing ones"),
    ],
)
def test_what_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        group_events(*arguments, **options)


@given(flagged_rows())
@examples(150)
def test_days_add_up(rows):
    flags, scores, _, time = rows
    if time is None:
        assert event_days(flags, scores, time, [0] * len(flags)).empty
        return
    of_row = group_events(flags, scores, time).of_row
    days = event_days(flags, scores, time, of_row)
    expected: dict[object, list[int]] = {}
    for row, flag in enumerate(flags):
        if flag:
            expected.setdefault(time[row].date(), []).append(row)
    assert [day.date() for day in days.index] == sorted(expected)
    for day, found in days.iterrows():
        inside = expected[day.date()]
        assert found["rows"] == len(inside)
        assert found["events"] == len({of_row[row] for row in inside})
        assert found["highest"] == max(scores[row] for row in inside)
        assert (found["first"], found["last"]) == (time[inside[0]], time[inside[-1]])


def test_a_day_is_that_of_the_zone_and_stays_one_where_the_clock_goes_back_over_midnight():
    utc = pd.DatetimeIndex(["2024-05-01 22:30", "2024-05-01 23:30"], tz="UTC")
    assert len(event_days([True, True], [1.0, 2.0], utc, [1, 1])) == 1
    assert len(event_days([True, True], [1.0, 2.0], utc + HOUR, [1, 1])) == 2
    assert event_days([True, True], [1.0, 2.0], utc.tz_convert("Europe/Berlin"), [1, 1]).index[0].day == 2
    back = pd.date_range("2018-02-18 00:30", periods=5, freq="h", tz="UTC").tz_convert("America/Sao_Paulo")
    days = event_days([True] * 5, [1.0] * 5, back, [1] * 5)
    assert days["rows"].tolist() == [3, 2]
    again = pd.DatetimeIndex(["2006-10-29 02:30:30", "2006-10-29 02:31:30"], tz="UTC").tz_convert("America/St_Johns")
    assert event_days([True] * 2, [1.0] * 2, again, [1] * 2).index.day.tolist() == [28, 29]
    forward = pd.date_range("2018-11-04 02:30", periods=2, freq="h", tz="UTC").tz_convert("America/Sao_Paulo")
    assert event_days([True] * 2, [1.0] * 2, forward, [1] * 2).index.day.tolist() == [3, 4]


@given(flagged_rows(), st.data())
@examples(150)
def test_faults_are_those_of_the_slow_way(rows, data):
    flags, scores, clock, time = rows
    known = data.draw(st.lists(st.booleans(), min_size=len(flags), max_size=len(flags)))
    found = agreement(known, flags, scores, time)
    gap = 6 if time is None else naive.usual_gap(clock)
    stretches = naive.faults(known, clock, gap)
    horizon = 0 if time is None else 86_400
    assert found.horizon == length(horizon, time)
    alarms = naive.first_alarms(stretches, flags, clock, horizon)
    stamp = (lambda row: row) if time is None else (lambda row: time[row])
    assert len(found.faults) == len(stretches)
    assert found.n_known == sum(known)
    assert found.n_scored == sum(not math.isnan(score) for score in scores)
    scored = [any(not math.isnan(scores[row]) for row in inside) for inside in stretches]
    assert found.faults["scored"].tolist() == scored
    assert found.n_scored_faults == sum(scored)
    assert found.n_found == sum(alarm is not None and able for alarm, able in zip(alarms, scored, strict=True))
    for (_, row), inside, alarm in zip(found.faults.iterrows(), stretches, alarms, strict=True):
        assert (row["start"], row["end"], row["rows"]) == (stamp(inside[0]), stamp(inside[-1]), len(inside))
        assert row["flagged"] == sum(flags[i] for i in inside)
        assert row["found"] == (alarm is not None)
        if alarm is None:
            assert row["first_alarm"] is (pd.NA if time is None else pd.NaT)
            assert row["lead"] is (pd.NA if time is None else pd.NaT)
        else:
            assert (row["first_alarm"], row["lead"]) == (stamp(alarm), stamp(inside[0]) - stamp(alarm))


@given(flagged_rows(most=6), st.data())
@examples(100)
def test_precision_is_among_the_rows_with_a_score(rows, data):
    flags, scores, _, time = rows
    known = data.draw(st.lists(st.booleans(), min_size=len(flags), max_size=len(flags)))
    scored = [(int(fault), score) for fault, score in zip(known, scores, strict=True) if not math.isnan(score)]
    expected = math.nan
    if 0 < sum(fault for fault, _ in scored) < len(scored):
        expected = naive_detection.precision_at_n(*zip(*scored, strict=True))
    found = agreement(known, flags, scores, time)
    assert found.precision_at_n == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert found.n_ranked == sum(fault for fault, _ in scored)


SKLEARN = " It was read as scikit-learn writes labels, where -1 is a fault."


@pytest.mark.parametrize(
    ("values", "faults", "words"),
    [
        ([0, 1, 0], [1], "1 of 3 rows is a known fault (1); 2 normal (0)."),
        ([0.0, 2.0, 20.0, np.nan], [1, 2], "2 of 4 rows are known faults (2, 20); 2 normal (0, nothing)."),
        ([True, False, True], [0, 2], "2 of 3 rows are known faults (True); 1 normal (False)."),
        (["0", "1", "0.0", " 0 "], [1], "1 of 4 rows is a known fault (1); 3 normal (0, 0.0)."),
        (["OK", "Trip", None, ""], [1], "known fault ('Trip'); 3 normal ('OK', '', nothing)."),
        ([None, "trip"], [1], "1 of 2 rows is a known fault ('trip'); 1 normal (nothing)."),
        ([0, 0], [], "0 of 2 rows are known faults; 2 normal (0)."),
        ([3, 3], [0, 1], "2 of 2 rows are known faults (3); none is normal."),
        (["ok", *"abcdefg"], range(1, 8), "('a', 'b', 'c', 'd', 'e' and 2 more); 1 normal ('ok')."),
        (["n/a", "NaN", "-", "1,0"], [3], "known fault (1,0); 3 normal ('n/a', 'NaN', '-')."),
        ([1, -1, 1], [1], f"(-1); 2 normal (1).{SKLEARN}"),
        ([0, 1, -999, -999], [1], "(1); 2 unknown and not counted (-999); 1 normal (0)."),
        (["0", "?", "0"], [], "0 of 3 rows are known faults; 1 unknown and not counted ('?'); 2 normal (0)."),
        (["Attack", "A ttack", "Normal"], [0, 1], "known faults ('Attack', 'A ttack'); 1 normal ('Normal')."),
        (["Attack", "attack"], [0, 1], "2 of 2 rows are known faults ('Attack', 'attack'); none is normal."),
        (
            np.arange(37_401) < 1_224,
            range(1_224),
            "1,224 of 37,401 rows are known faults (True); 36,177 normal (False).",
        ),
    ],
)
def test_how_labels_are_read(values, faults, words):
    for kind in (None, "object", "category"):
        label = pd.Series(values, name="state", dtype=kind, index=range(7, 7 + len(values)))
        truth = known_faults(label)
        assert np.flatnonzero(truth.faults).tolist() == list(faults)
        assert truth.sentence.startswith("Label 'state': ")
        assert truth.sentence.endswith(words)


@pytest.mark.parametrize(
    ("values", "faults", "unknown", "expected", "words"),
    [
        ([0, 1, -999, 0], [1], [-999], ([1], [2]), "1 unknown and not counted (-999); 2 normal (0)."),
        ([0, 1, -999, 0], ["1"], [], ([1], []), "3 normal (0, -999)."),
        (["Normal", "Attack", "A ttack"], ["attack"], [], ([1, 2], []), "1 normal ('Normal')."),
        ([True, False, None], ["True"], [], ([0], []), "2 normal (False, nothing)."),
        ([0, 0, 0], [7], [], ([], []), "3 normal (0). No row holds 7."),
        ([0, 1, 7], [], [7], ([1], [2]), "1 unknown and not counted (7); 1 normal (0)."),
    ],
)
def test_which_values_mean_a_fault_can_be_said(values, faults, unknown, expected, words):
    truth = known_faults(pd.Series(values, name="state"), faults, unknown)
    assert (np.flatnonzero(truth.faults).tolist(), np.flatnonzero(truth.unknown).tolist()) == expected
    assert truth.sentence.endswith(words)


@pytest.mark.parametrize("values", [["run", "idle", "run"], [0, 1, -1], [0.5, 0.25], [-1, -1], [0, 1.5], [1, np.inf]])
def test_a_label_that_is_not_clear_is_refused_with_its_values(values):
    with pytest.raises(TableError, match=r"not clear which of its values mean a fault: .* \(\d rows?\)"):
        known_faults(pd.Series(values, name="state"))
    with pytest.raises(TableError, match="given as a fault value and as an unknown value"):
        known_faults(pd.Series([0, 1]), [1], ["1.0"])


def test_no_event_spans_two_groups_and_steps_are_those_within():
    """Three runs of one minute each with a row a second, of which two overlap in time."""
    second = pd.Timedelta(seconds=1)
    starts = pd.to_datetime(["2024-05-01 00:00:00", "2024-05-01 00:00:30", "2024-05-03 00:00:00"])
    time = pd.DatetimeIndex(np.concatenate([pd.date_range(start, periods=60, freq=second) for start in starts]))
    groups = np.repeat(["a", "b", "c"], 60)
    flags = np.zeros(180, dtype=bool)
    flags[[58, 59, 60, 61, 119, 120]] = True
    events = group_events(flags, np.arange(180.0), time, groups=groups)
    assert events.table["rows"].tolist() == [2, 2, 1, 1]
    assert events.gap == 6 * second
    known = np.zeros(180, dtype=bool)
    known[50:70] = True  # the end of a and the beginning of b: two faults
    known[130:140] = True
    found = agreement(known, flags, np.arange(180.0), time, groups=groups)
    assert found.faults["rows"].tolist() == [10, 10, 10]
    assert found.faults["first_alarm"].tolist() == [time[58], time[60], time[120]]
    assert group_events(flags, np.arange(180.0), None, groups=groups).table["rows"].tolist() == [2, 2, 1, 1]
    assert found.n_found == 3  # the alarm is ten rows before the third
    days = event_days(flags, np.arange(180.0), time, events.of_row)
    assert days["first"].tolist() == [time[60], time[120]]
    with pytest.raises(ValueError, match="ascending order"):
        group_events(flags, np.arange(180.0), time)
    with pytest.raises(ValueError, match="rows of a group must be together"):
        group_events(flags, np.arange(180.0), time, groups=np.tile(["a", "b"], 90))
