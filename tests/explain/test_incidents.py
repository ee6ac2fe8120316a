"""Incidents: against a slow twin, what must not matter, and each condition of a sensor."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from naive import incidents as naive

from penstock.columns import InputRole
from penstock.explain import NEW_STATE, condition_in_words, find_incidents, group_events, incident_table
from penstock.explain._sensor_conditions import has_failed, strong_sensors

N = 400


@dataclass(frozen=True)
class Plan:
    """Settings of a random series, which print shorter than its arrays."""

    seed: int
    n: int
    p: int
    noise: float
    faults: int
    gaps: float
    threshold: float
    kept: float

    def make(self):
        """Evidence of faults that overlap, follow each other and stop at gaps; flags, starts and readings."""
        rng = np.random.default_rng(self.seed)
        n, p = self.n, self.p
        evidence = np.abs(rng.normal(size=(n, p))) * self.noise
        for _ in range(self.faults):
            begin, length = rng.integers(0, n), rng.integers(1, 60)
            evidence[begin : begin + length, rng.random(p) < 0.4] += rng.uniform(0.5, 6)
        starts = rng.random(n) < self.gaps
        starts[0] = True
        scores = evidence.max(axis=1) + 1e-6 * rng.random(n)
        flags = (scores > self.threshold) & (rng.random(n) < self.kept)
        expected = rng.normal(size=(n, p)).cumsum(axis=0)
        readings = np.where(rng.random((n, p)) < 0.05, np.nan, expected + rng.normal(size=(n, p)) * evidence)
        return flags, scores, evidence, expected, readings, starts


plans = st.builds(
    Plan,
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 160),
    p=st.integers(1, 6),
    noise=st.sampled_from([0.0, 0.3, 0.6]),
    faults=st.integers(0, 8),
    gaps=st.sampled_from([0.0, 0.03]),
    threshold=st.sampled_from([0.8, 1.5, 3.0]),
    kept=st.sampled_from([0.4, 1.0]),
)


def find(flags, scores, evidence, expected, readings, starts, names=None, units=()):
    events = group_events(flags, scores, None, gap=6)
    names = [f"s{j}" for j in range(evidence.shape[1])] if names is None else names
    return find_incidents(events, scores, evidence, expected, readings, starts, names, units)


@settings(max_examples=100, deadline=None)
@example(Plan(seed=130, n=130, p=4, noise=0.3, faults=8, gaps=0.03, threshold=0.8, kept=1.0))  # two equal places to cut
@given(plans)
def test_incidents_are_those_of_the_slow_twin(plan):
    given_series = plan.make()
    flags, scores, evidence, expected, readings, starts = given_series
    events = group_events(flags, scores, None, gap=6)
    rows = [events.rows_of(event).tolist() for event in range(1, len(events) + 1)]
    lists = evidence.tolist(), starts.tolist()
    parts = naive.incidents(rows, *lists)
    inside = {row for _, start, end in parts for row in range(start, end + 1)}
    elsewhere = [row for row in range(plan.n) if row not in inside]
    sizes = [
        naive.off(j, readings.tolist(), expected.tolist(), starts.tolist(), elsewhere) for j in range(evidence.shape[1])
    ]
    found = find(*given_series)
    assert [one.rows.tolist() for one in found] == [part[0] for part in parts]
    for number, (one, part) in enumerate(zip(found, parts, strict=True)):
        before = parts[number - 1][0][-1] if number else -1
        deciding = [sizes[j] for j in naive.deciding(part[0], evidence.tolist())]
        runs = naive.runs_of(part, before, deciding, starts.tolist())
        assert (list(one.runs), one.start, one.end) == (runs, runs[0][0], runs[-1][1])
        onsets = [naive.onset(j, part[0], part[1], runs, *lists, sizes[j]) for j in range(evidence.shape[1])]
        out = [sensor for sensor in one.sensors if sensor.onset >= 0]
        assert {sensor.column: sensor.onset for sensor in out} == {
            j: row for j, row in enumerate(onsets) if row is not None
        }
        if not any(sensor.certain for sensor in out):  # a sensor that has failed comes first
            assert [sensor.column for sensor in out] == naive.ranking(part[0], onsets, runs, evidence.tolist())
        means = naive.mean_evidence(evidence.tolist(), one.rows.tolist())
        np.testing.assert_allclose([s.mean_evidence for s in one.sensors], [means[s.column] for s in one.sensors])
        assert out or one.source == "state"
        if out and one.source not in ("sensor",):
            new = naive.new_state(
                [row for a, b in runs for row in range(a, b + 1)], readings.tolist(), expected.tolist(), elsewhere
            )
            new = new and not any(has_failed(sensor) for sensor in out)
            assert (one.kind == NEW_STATE) == (new or (number > 0 and follows(one, found[number - 1], starts)))


def follows(one, last, starts):
    """Whether an incident is the weaker one that directly follows unusual operation."""
    near = one.start - last.end <= 7 and not starts[last.end + 1 : one.start + 1].any()
    failed = any(has_failed(sensor) for sensor in strong_sensors(one.sensors))
    return last.kind == NEW_STATE and near and one.peak_score < last.peak_score and not failed


@settings(max_examples=100, deadline=None)
@given(plans)
def test_every_flagged_row_belongs_to_one_incident_and_none_crosses_a_start(plan):
    given_series = plan.make()
    flags, scores, _, _, _, starts = given_series
    found = find(*given_series)
    rows = np.concatenate([one.rows for one in found]) if found else np.zeros(0, int)
    assert sorted(rows.tolist()) == np.flatnonzero(flags).tolist()
    for one in found:
        assert not starts[one.start + 1 : one.end + 1].any()
        assert one.start == one.runs[0][0] <= one.runs[-1][1] == one.end
        assert all(first <= last for first, last in one.runs)
        assert all(a[1] + 7 <= b[0] for a, b in pairwise(one.runs))
        assert one.rows[0] <= one.peak <= one.rows[-1]
        assert one.peak_score == scores[one.rows].max() == scores[one.peak]
        assert all(sensor.onset == -1 or one.start <= sensor.onset <= one.end for sensor in one.sensors)
    assert sorted(one.rank for one in found) == list(range(1, len(found) + 1))
    assert [one.number for one in sorted(found, key=lambda one: one.rank)] == [
        1 + k for k in np.argsort([-one.peak_score for one in found], kind="stable")
    ]
    table = incident_table(found)
    assert len(table) == len(found)
    assert table["rows"].sum() == flags.sum()


@settings(max_examples=60, deadline=None)
@given(plans, st.randoms(use_true_random=False))
def test_order_and_units_of_sensors_do_not_matter(plan, random):
    given_series = plan.make()
    flags, scores, evidence, expected, readings, starts = given_series
    p = evidence.shape[1]
    order = random.sample(range(p), p)
    factors = np.array([random.choice([0.25, 1.0, 4.0, 1024.0]) for _ in range(p)])
    names = [f"s{j}" for j in range(p)]
    plain = find(*given_series)
    other = find(
        *(flags, scores, evidence[:, order], (expected * factors)[:, order], (readings * factors)[:, order], starts),
        [names[j] for j in order],
    )
    for one, two in zip(plain, other, strict=True):
        assert (one.start, one.end, one.rank, one.source, one.peak) == (
            two.start,
            two.end,
            two.rank,
            two.source,
            two.peak,
        )
        assert [k for k, _ in one.similar] == [k for k, _ in two.similar]
        for a, b in zip(one.sensors, two.sensors, strict=True):
            assert (a.name, a.onset, a.direction) == (b.name, b.onset, b.direction)
            if "swapped" not in a.condition + b.condition:  # whether two sensors are exchanged depends on their units
                assert (a.condition, a.certain) == (b.condition, b.certain)


def healthy(p=4):
    """Expected readings that move, and readings close to them."""
    rng = np.random.default_rng(0)
    expected = 20 + np.cumsum(rng.normal(size=(N, 1)), axis=0) * 0.5 + 5 * np.arange(p)
    return expected, expected + 0.05 * rng.normal(size=(N, p)), np.zeros((N, p))


def one_incident(expected, readings, evidence, units=()):
    scores = evidence.max(axis=1)
    (found,) = find(scores > 2, scores, evidence, expected, readings, np.arange(N) == 0, units=units)
    return found


def test_start_is_where_the_first_sensor_leaves_its_range_and_sensors_are_in_order_of_evidence_and_onset():
    expected, readings, evidence = healthy()
    evidence[100:130, 2], evidence[106:126, 0], evidence[120:126, 1] = 1.5, 1.4, 9.0
    evidence[112:124, [0, 2]] = 4.0
    readings[100:130, 2] -= 1
    readings[106:126, 0] += 1
    scores = evidence[:, [0, 2]].max(axis=1)
    (found,) = find(scores > 2, scores, evidence, expected, readings, np.arange(N) == 0)
    assert (found.start, found.end, found.rows[0], found.rows[-1], len(found.rows)) == (100, 129, 112, 123, 12)
    assert [(sensor.name, sensor.onset) for sensor in found.sensors] == [("s2", 100), ("s0", 106), ("s1", 120)]
    assert [sensor.direction for sensor in found.sensors[:2]] == ["below", "above"]
    assert found.sensors[0].peak_evidence == found.sensors[0].mean_evidence == 4.0
    assert found.source == "machine"
    assert found.reason == "Probably the machine: 3 sensors clearly left their range, 's2' first."


def test_an_incident_lasts_as_long_as_readings_are_off_and_tells_its_interruptions():
    expected, readings, evidence = healthy()
    evidence[80:300, 1] = 3.0  # what moving means make of two short runs
    for begin in (100, 260):
        readings[begin : begin + 12, 1] += 2
    found = one_incident(expected, readings, evidence)
    assert found.runs == ((100, 111), (260, 271))
    assert (found.start, found.end, found.sensors[0].onset) == (100, 271, 100)
    assert len(found.rows) == 220  # every flagged row belongs to an incident
    readings[112:260, 1] += 2
    assert one_incident(expected, readings, evidence).runs == ((100, 271),)


def test_what_moved_first_is_a_strong_sensor_and_the_same_for_all_who_ask():
    expected, readings, evidence = healthy()
    evidence[100:140] = [5.0, 4.0, 1.1, 0.0]
    readings[90:150] = expected[90:150]
    readings[104:140, 0] += 2
    readings[110:140, 1] -= 2
    readings[100:140, 2] += 0.5  # earlier, but no more than drawn along
    found = one_incident(expected, readings, evidence)
    assert found.moved_first == (0,)
    assert min(sensor.onset for sensor in found.sensors) == found.start == 104
    assert incident_table([found]).loc[1, "first_out"] == "s0"


def test_the_direction_is_that_of_the_median_not_of_the_farthest_row():
    expected, readings, evidence = healthy()
    evidence[100:140, 1] = 5.0
    readings[100:140, 1] -= 2
    readings[120, 1] += 60
    assert one_incident(expected, readings, evidence).sensors[0].direction == "below"
    readings[105:120, 1] += 4
    assert one_incident(expected, readings, evidence).sensors[0].direction == "above and below"


def test_sensors_that_agree_where_they_never_were_are_unusual_operation():
    expected, readings, evidence = healthy(6)
    evidence[100:140] = 3.0
    for values in (expected, readings):
        values[100:140] += 60.0
    readings[100:140] += 0.5  # beyond what is expected, but little against the way that all went
    found = one_incident(expected, readings, evidence)
    assert (found.kind, found.source) == (NEW_STATE, "state")
    expected[100:140] -= 60.0  # now they contradict each other
    assert one_incident(expected, readings, evidence).kind != NEW_STATE


def with_setting(expected, readings, evidence, setting, role="setting"):
    """The incidents of a table whose last column is a setting or a driver with these values."""
    roles = [InputRole()] * (expected.shape[1] - 1) + [InputRole(role, scored=False, named=False)]
    readings[:, -1] = expected[:, -1] = setting
    evidence[:, -1] = 0.0
    scores = evidence.max(axis=1)
    events = group_events(scores > 2, scores, None, gap=6)
    names = [f"s{j}" for j in range(expected.shape[1])]
    return find_incidents(events, scores, evidence, expected, readings, np.arange(N) == 0, names, roles=roles)


def test_what_lasts_exactly_as_long_as_a_setting_is_switched_is_unusual_operation():
    expected, readings, evidence = healthy(9)
    evidence[100:140] = 3.0
    readings[100:140, ::2] += 3.0
    readings[100:140, 1::2] -= 3.0
    rows = np.arange(N)
    (found,) = with_setting(expected, readings, evidence, (rows >= 100) & (rows < 140))
    assert (found.kind, found.source) == (NEW_STATE, "state")
    assert "'s8'" in found.reason
    for setting in (rows >= 100, (rows >= 100) & (rows < 180), rows // 5 % 2):  # once; longer; all the time
        assert with_setting(expected, readings, evidence, setting)[0].kind != NEW_STATE
    evidence[100:140, 2:] = 0.2  # so few may be one sensor that is wrong, and seen while its machine runs
    assert with_setting(expected, readings, evidence, (rows >= 100) & (rows < 140))[0].kind != NEW_STATE


def test_sensors_that_contradict_each_other_while_a_driver_is_where_it_never_was_are_unusual_operation():
    expected, readings, evidence = healthy(6)
    evidence[100:140] = 3.0
    readings[100:140] += 60.0
    outside = (np.arange(N) >= 100) & (np.arange(N) < 140)
    usual = np.sin(np.arange(N))
    assert with_setting(expected, readings, evidence, usual, "driver")[0].kind != NEW_STATE
    (found,) = with_setting(expected, readings, evidence, usual + 20.0 * outside, "driver")
    assert (found.kind, found.circumstances[0].name) == (NEW_STATE, "s5")
    readings[100:140, :4] -= 60.0  # only one, and the driver, is at a new level
    assert with_setting(expected, readings, evidence, usual + 20.0 * outside, "driver")[0].kind != NEW_STATE


@pytest.mark.parametrize(("away", "switched", "state"), [(0.2, False, True), (0.3, False, False), (0.3, True, True)])
def test_sensors_may_contradict_each_other_more_at_new_levels_if_a_setting_was_switched(away, switched, state):
    expected, readings, evidence = healthy(6)
    evidence[100:140] = 3.0
    for values in (expected, readings):
        values[100:140] += 60.0
    expected[100:140] -= 60.0 * away
    (found,) = with_setting(expected, readings, evidence, np.arange(N) >= (100 if switched else 300))
    assert (found.kind == NEW_STATE) == state


def test_several_sensors_at_zero_are_a_machine_that_was_switched_off_but_no_failure():
    expected, readings, evidence = healthy(9)
    evidence[100:140] = 3.0
    readings[100:140, :8] = expected[100:140, :8] + 60.0
    expected[100:140, 2:8] += 60.0
    readings[100:140, :2] = 0.0
    rows = np.arange(N)
    (found,) = with_setting(expected, readings, evidence, (rows >= 100) & (rows < 140))
    assert (found.sensors[0].condition, found.kind) == ("at zero", NEW_STATE)
    assert with_setting(expected, readings, evidence, rows >= 300)[0].source == "sensor"


def test_what_directly_follows_unusual_operation_and_is_weaker_is_part_of_it():
    expected, readings, evidence = healthy(11)
    rows = np.arange(N)
    evidence[100:120] = 6.0
    readings[100:120, ::2] += 3.0
    readings[100:120, 1::2] -= 3.0
    evidence[120:140] = 0.2
    evidence[120:140, :2] = 4.0
    evidence[100:120, :2] = 0.2
    readings[120:140, :2] += 1.0
    setting = (rows >= 100) & (rows < 120)
    operation, after = with_setting(expected, readings, evidence, setting)
    assert (operation.kind, after.kind, after.start) == (NEW_STATE, NEW_STATE, 120)
    evidence[120:140, :2] = 8.0
    _, after = with_setting(expected, readings, evidence, setting)
    assert after.kind != NEW_STATE


def test_settings_states_and_drivers_that_moved_with_an_incident_are_told():
    expected, readings, evidence = healthy(6)
    roles = [InputRole()] * 3 + [
        InputRole("setting", scored=False, named=False),
        InputRole("state", levels=(0.0, 1.0)),
        InputRole("driver", scored=False, named=False),
    ]
    readings[:, 3] = np.where(np.arange(N) < 98, 4.5, 4.7)
    readings[:, 4] = expected[:, 4] = np.isin(np.arange(N), range(103, 140))
    readings[100:140, 5] += 100
    evidence[100:140, :3] = 5.0
    readings[100:140, :3] += 2
    scores, names = evidence.max(axis=1), [f"s{j}" for j in range(6)]
    events = group_events(scores > 2, scores, None, gap=6)
    units = ("", "", "", "bar", "", "m³/s")
    (found,) = find_incidents(events, scores, evidence, expected, readings, np.arange(N) == 0, names, units, roles)
    told = [(each.name, each.row, each.text.split(",")[0].split(" 1")[0]) for each in found.circumstances]
    assert told == [("s3", 98, "changed from 4.5 to 4.7 bar"), ("s5", 100, "reached"), ("s4", 103, "switched on")]
    assert incident_table([found]).loc[1, "circumstances"][2] == "s4 switched on"
    readings[:, 3] = np.arange(N) // 5 % 2  # it changes all the time
    (found,) = find_incidents(events, scores, evidence, expected, readings, np.arange(N) == 0, names, units, roles)
    assert "s3" not in [each.name for each in found.circumstances]


def test_a_sensor_is_not_frozen_where_all_others_stand_still():
    def all_stand_still(expected, readings):
        readings[100:120] = readings[99]
        expected[100:120, 1] += np.linspace(0, 9, 20)

    assert "frozen" not in condition(all_stand_still)[0]

    def one_stands_still(expected, readings):
        readings[100:120, 1] = readings[99, 1]
        expected[100:120, 1] += np.linspace(0, 9, 20)

    assert condition(one_stands_still)[0] == "frozen"


def test_an_event_is_split_where_its_cause_changes_but_not_where_a_fault_spreads():
    expected, readings, evidence = healthy(8)
    evidence[100:120, 0] = evidence[120:140, 5] = 6.0
    scores = evidence.max(axis=1)
    found = find(scores > 2, scores, evidence, expected, readings, np.arange(N) == 0)
    assert [(one.start, one.end, one.sensors[0].column) for one in found] == [(100, 119, 0), (120, 139, 5)]
    evidence[100:140, 0], evidence[110:140, 1:] = 3.0, 19.0  # cosine of (2, 0, …) and (2, 18, …): 0.04
    assert len(find(scores > 2, scores, evidence, expected, readings, np.arange(N) == 0)) == 1


def test_a_new_state_without_a_sensor_that_left_its_range_is_named_so():
    expected, readings, evidence = healthy()
    evidence[100:110] = [0.2, 0.9, 0.5, 0.1]
    scores = np.isin(np.arange(N), range(100, 110)) * 3.0
    (found,) = find(scores > 2, scores, evidence, expected, readings, np.arange(N) == 0)
    assert (found.source, found.start, found.end, found.pattern) == ("state", 100, 109, {})
    assert [sensor.name for sensor in found.sensors] == ["s1", "s2", "s0"]
    assert all(sensor.onset == -1 for sensor in found.sensors)
    assert incident_table([found]).loc[1, ["first_out", "sensors"]].tolist() == ["", 0]


def test_one_sensor_alone_cannot_be_told_from_the_machine():
    expected, readings, evidence = healthy(1)
    evidence[100:120] = 5.0
    found = one_incident(expected, readings, evidence)
    assert found.source == "unclear"
    assert "only one sensor" in found.reason


def condition(change, p=4, sensors=(1,), rows=range(100, 120), units=()):
    """What is reported of the first sensor of an incident if readings are changed so."""
    expected, readings, evidence = healthy(p)
    evidence[np.ix_(list(rows), sensors)] = 5.0
    change(expected, readings)
    found = one_incident(expected, readings, evidence, units)
    assert found.sensors[0].column == sensors[0]
    return condition_in_words(found.sensors[0]), found


def test_a_frozen_sensor_is_certain_if_others_say_that_it_should_move():
    def freeze(expected, readings):
        readings[100:120, 1] = readings[99, 1]

    assert condition(freeze)[0] == "frozen"
    assert condition(freeze)[1].source == "sensor"

    def freeze_while_nothing_moves(expected, readings):
        expected[90:130] = expected[90]
        readings[100:120, 1] = readings[99, 1]

    assert condition(freeze_while_nothing_moves)[0] == "possibly frozen"

    def coarse(expected, readings):
        readings[:, 1] = np.repeat(readings[::25, 1], 25)
        expected[90:130] = expected[90]

    assert condition(coarse)[0] == ""

    def few_rows(expected, readings):
        readings[100:104, 1] = readings[99, 1]

    assert condition(few_rows, rows=range(100, 104))[0] == ""

    def for_a_third_of_the_incident(expected, readings):
        readings[100:107, 1] = readings[99, 1]
        readings[107:120, 1] += 1

    assert "frozen" not in condition(for_a_third_of_the_incident)[0]


def test_a_sensor_at_zero():
    def zero(expected, readings):
        readings[100:120, 1] = 0.0

    def often_zero(expected, readings):
        zero(expected, readings)
        readings[::10, 1] = 0.0

    def mostly_zero(expected, readings):
        readings[:, 1] = np.where(np.arange(N) % 3 == 0, readings[:, 1], 0.0)
        zero(expected, readings)

    assert condition(zero)[0] == "at zero"
    assert condition(often_zero)[0] == "possibly at zero"
    assert "zero" not in condition(mostly_zero)[0]


def test_a_sensor_outside_the_range_of_all_other_rows():
    def far(expected, readings):
        readings[100:120, 1] += 40

    def hardly(expected, readings):
        others = np.delete(readings[:, 1], range(100, 120))
        readings[100:120, 1] = np.clip(readings[100:120, 1], others.min(), others.max())
        readings[110, 1] = others.max() + 0.01

    def once(expected, readings):
        hardly(expected, readings)
        readings[110, 1] += 40

    def by_little(expected, readings):
        readings[100:120, 1] = np.delete(readings[:, 1], range(100, 120)).max() + 0.01 * np.arange(1, 21)

    assert condition(far)[0] == "outside its range"
    assert (
        condition(far)[1].reason == "Probably the sensor: only 's1' (outside its range) clearly contradicts the others."
    )
    assert {condition(how)[0] for how in (hardly, once, by_little)} == {"possibly outside its range"}


def test_a_failed_sensor_comes_first_and_explains_the_others():
    expected, readings, evidence = healthy(8)
    evidence[100:120], evidence[100:120, 3] = 6.0, 5.0
    readings[100:120, 3] = -40.0
    found = one_incident(expected, readings, evidence)
    assert [sensor.name for sensor in found.sensors[:2]] == ["s3", "s0"]
    assert (found.source, found.reason) == ("sensor", "Probably the sensor: 's3' is frozen outside its range.")
    readings[100:120, 5] = 0.0
    found = one_incident(expected, readings, evidence)
    assert found.reason == "Probably the sensors: 's5' is at zero; also see 's3'."
    evidence[100:120, 3:6:2] = 2.0  # too little to explain the others
    assert one_incident(expected, readings, evidence).source == "machine"


def test_one_sensor_with_many_others_that_follow_may_be_the_machine():
    expected, readings, evidence = healthy(12)
    evidence[100:120, 0], evidence[100:120, 1:7] = 5.0, 1.2
    readings[100:120, 0] += 1
    assert one_incident(expected, readings, evidence).source == "sensor"
    evidence[100:120, 7] = 1.2
    found = one_incident(expected, readings, evidence)
    assert found.reason == (
        "Not clear whether a sensor or the machine: 's0' and, less clearly, 7 other sensors left the usual range."
    )


def test_a_sensor_at_the_end_of_its_range():
    def limited(expected, readings):
        limit = np.quantile(expected[:, 1], 0.9)
        expected[100:120, 1] = limit + 3 + np.arange(20) % 3
        readings[:, 1] = np.minimum(readings[:, 1], limit)
        readings[100:120, 1] = limit

    def reached_for_the_first_time(expected, readings):
        readings[100:120, 1] = np.delete(readings[:, 1], range(100, 120)).max()
        expected[100:120, 1] = readings[100, 1] + 3

    def at_the_highest_reading_but_should_be_lower(expected, readings):
        readings[100:120, 1] = np.delete(readings[:, 1], range(100, 120)).max()

    assert condition(limited)[0] == "at the end of its range"
    assert condition(reached_for_the_first_time)[0] == "possibly at the end of its range"
    assert condition(at_the_highest_reading_but_should_be_lower)[0] == "frozen"


def test_swapped_sensors():
    def swap(expected, readings):
        readings[100:120, [1, 2]] = readings[100:120, [2, 1]]

    words, found = condition(swap, sensors=(1, 2))
    assert words == "swapped with s2"
    assert found.sensors[1].condition == "swapped with s1"
    assert found.source == "sensor"
    assert found.reason == "Probably the sensors: 's1' is swapped with s2."

    def both_too_high(expected, readings):
        readings[100:120, [1, 2]] += 5

    assert "swapped" not in condition(both_too_high, sensors=(1, 2))[0]
    assert "swapped" not in condition(swap, sensors=(1, 2, 3))[0]
    assert condition(both_too_high, sensors=(1, 2))[1].source == "unclear"
    assert "swapped" not in condition(swap, sensors=(1, 2), units=("", "bar", "°C", ""))[0]  # no such exchange
    assert "swapped" in condition(swap, sensors=(1, 2), units=("", "bar", "", ""))[0]


def test_a_sensor_that_is_much_noisier_than_usual():
    rng = np.random.default_rng(5)

    def flicker(expected, readings):
        readings[100:120, 1] += rng.normal(size=20) * 2

    def restless(expected, readings):
        readings[100:120, 1] = expected[100:120, 1] + 0.25 * rng.normal(size=20)

    def a_little_restless(expected, readings):
        readings[100:120, 1] = expected[100:120, 1] + 0.05 * (-1.0) ** np.arange(20)  # steps of 0.1, usual are 0.07

    def higher(expected, readings):
        readings[100:120, 1] += 2

    def drift(expected, readings):
        readings[100:120, 1] += np.linspace(0, 9, 20)

    assert condition(flicker)[0] == "much noisier than usual"
    assert condition(restless)[0] == "possibly much noisier than usual"
    assert "noisier" not in condition(a_little_restless)[0]
    assert "noisier" not in condition(higher)[0]
    assert "noisier" not in condition(drift)[0]


def test_nothing_is_said_of_a_condition_without_enough_other_rows():
    expected, readings, evidence = healthy()
    evidence[:380, 1], readings[:380, 1] = 5.0, 0.0
    assert one_incident(expected, readings, evidence).sensors[0].condition == ""


def test_similar_earlier_incidents_have_the_same_sensors_in_the_same_direction():
    expected, readings, evidence = healthy()
    for begin, sensors, sign in ((50, [0, 1], 1), (120, [2], 1), (190, [0, 1], -1), (260, [0, 1], 1)):
        evidence[begin : begin + 10, sensors] = 4.0
        readings[begin : begin + 10, sensors] += 5 * sign
    scores = evidence.max(axis=1)
    found = find(scores > 2, scores, evidence, expected, readings, np.arange(N) == 0)
    assert [[number for number, _ in one.similar] for one in found] == [[], [], [], [1]]
    assert found[3].similar[0][1] == pytest.approx(1.0)


def test_the_table_has_times_where_there_are_times():
    expected, readings, evidence = healthy()
    evidence[100:120, 1], evidence[90:140, 1] = 0.0, 4.0
    readings[90:140] = expected[90:140]
    readings[98:125, 1] += 1
    scores = np.where(np.isin(np.arange(N), range(100, 120)), 3.0, 0.0)
    found = find(scores > 2, scores, evidence, expected, readings, np.arange(N) == 0)
    time = pd.date_range("2024-05-01", periods=N, freq="10min")
    row = incident_table(found, time).loc[1]
    assert (row["start"], row["end"], row["peak"]) == (time[98], time[124], time[100])
    assert row["duration"] == pd.Timedelta("260min")
    assert (row["first_sensor"], row["first_out"], row["sensors"], row["similar"]) == ("s1", "s1", 1, ())
    assert row["runs"] == ((time[98], time[124]),)
    assert incident_table(found).loc[1, ["start", "end", "duration"]].tolist() == [98, 124, 27]
    assert incident_table([], time).empty
