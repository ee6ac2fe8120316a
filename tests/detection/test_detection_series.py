"""Tables in order of time are scored as series; what findings say as a whole, of series and of other tables."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from penstock import detect, fit_model, score
from penstock.certainty import Chance
from penstock.detection.verdict import about_incidents, about_table
from penstock.io import TableError
from penstock.report.document import findings_table
from penstock.thresholds import Fixed

N, START, ROWS = 1500, 1030, 21
NAMES = [f"s{number}" for number in range(6)]


@cache
def healthy(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Six sensors that follow two slow causes."""
    rng = np.random.default_rng(seed)
    causes, steps = np.zeros((n, 2)), rng.normal(scale=0.24, size=(n, 2))
    for row in range(1, n):
        causes[row] = 0.97 * causes[row - 1] + steps[row]
    mixing = np.random.default_rng(9).uniform(0.3, 1.0, (2, len(NAMES)))
    table = pd.DataFrame(50 + 10 * causes @ mixing + rng.normal(size=(n, len(NAMES))), columns=NAMES)
    table.insert(0, "time", pd.date_range("2024-05-01", periods=n, freq="10min"))
    return table


def with_fault(table: pd.DataFrame, start: int = START, size: float = 16.0) -> pd.DataFrame:
    """The table with a sensor s3 that reads too high in some rows, though not higher than it reads at other times."""
    table = table.copy()
    table.iloc[start : start + ROWS, list(table).index("s3")] += size
    return table


def noise(n: int = 500, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 5)), columns=list("abcde"))


def why_method(found) -> str:
    return next((note.message for note in found.notes if note.kind == "method"), "")


def first_incident(found):
    return next(incident for incident in found.incidents if incident.rank == 1)


@pytest.fixture(scope="module")
def found():
    return detect(with_fault(healthy()))


def test_a_wrong_sensor_does_not_accuse_the_others():
    table = healthy().copy()
    rows = slice(START, START + ROWS)
    table.loc[START : START + ROWS - 1, "s3"] = 0.0
    found = detect(table, most_explained=0)
    incident = first_incident(found)
    assert (incident.source, [sensor.name for sensor in incident.sensors]) == ("sensor", ["s3"])
    assert incident.reason.endswith("Without it the others read as expected.")
    off = (found.inputs.values - found.inputs.expected).abs()
    assert (off.iloc[rows].mean() < 2 * off.iloc[:START].mean()).drop("s3").all()


def spare_pump(uses: int) -> pd.DataFrame:
    """A spare pump that runs for ten rows now and then, and lowers s1 and s2 while it does."""
    table = healthy(3000).copy()
    table["pump"] = 0.0
    for use in range(uses):
        rows = slice(400 + 500 * use, 409 + 500 * use)
        table.loc[rows, "pump"] = 1.0
        table.loc[rows, ["s1", "s2"]] -= 25.0
    return table


def test_what_happens_while_a_spare_pump_runs_once_more_is_unusual_operation():
    found = detect(spare_pump(2), most_explained=0)
    assert {incident.kind for incident in found.incidents} == {"new state"}
    assert "near certain" not in found.verdict.sentence
    assert "which it seldom is" in first_incident(found).reason


def test_a_use_that_is_the_first_or_unlike_the_others_is_not_excused():
    assert "near certain" in detect(spare_pump(1), most_explained=0).verdict.sentence
    table = spare_pump(4)
    table.loc[1400:1409, ["s1", "s2"]] += 25.0  # that use was without effect
    table.loc[900:909, ["s1", "s2"]] += 25.0
    table.loc[1900:1909, ["s1", "s2"]] += 25.0
    found = detect(table, most_explained=0)
    assert first_incident(found).kind == "relations broken"


def test_two_swapped_sensors_do_not_accuse_the_others():
    table = healthy().assign(s4=healthy()["s4"] + 60)
    rows = slice(START, START + ROWS - 1)
    table.loc[rows, ["s1", "s4"]] = table.loc[rows, ["s4", "s1"]].to_numpy()
    incident = first_incident(detect(table, most_explained=0))
    assert {sensor.name for sensor in incident.sensors} == {"s1", "s4"}
    assert incident.reason.endswith("Without them the others read as expected.")


def test_a_setting_that_was_moved_with_the_fault_is_not_the_sensor_to_look_at():
    table = with_fault(healthy()).assign(limit=np.where(np.arange(N) // ROWS == START // ROWS, 9.0, 5.0))
    found = detect(table, most_explained=0)
    assert found.inputs.choice.settings == ("limit",)
    named = {sensor.name for incident in found.incidents for sensor in incident.sensors}
    assert "s3" in named
    assert "limit" not in named


@pytest.fixture(scope="module")
def model():
    return fit_model(healthy())


def test_rows_with_time_stamps_are_scored_as_a_series_and_it_is_said_why(found, model):
    assert found.assessment.method == "SensorDetector"
    assert why_method(found).startswith("Sensors are scored by each other over time (method sensors), as the rows are")
    assert "--method detector" in why_method(found)
    assert why_method(model) == why_method(found)
    asked = detect(with_fault(healthy()), method="sensors")
    assert why_method(asked) == ""
    assert (asked.scores == found.scores).all()


@pytest.mark.parametrize(
    ("change", "options", "reason"),
    [
        (lambda table: table.drop(columns="time"), {}, "there is no time column (--ordered says"),
        (lambda table: table[:49], {}, "49 rows are too few to be a series"),
        (lambda table: table, {"parameters": {"contamination": 0.1}}, "parameters of a method are given"),
        (
            lambda table: table.assign(
                time=table["time"].to_numpy()[
                    np.sort(np.random.default_rng(0).integers(0, len(table) // 3, len(table)))
                ]
            ),
            {},
            "67% of the rows share their time stamp with the row before, so that they are not one series (--group",
        ),
    ],
    ids=["no time", "few rows", "parameters", "equal stamps"],
)
def test_other_tables_are_scored_row_by_row_and_it_is_said_why(change, options, reason):
    found = detect(change(healthy(300)), top=5, most_explained=0, **options)
    assert found.assessment.method == "Detector"
    assert "scored one by one (method detector)" in why_method(found)
    assert reason in why_method(found)
    assert (found.incidents, len(found.incident_table), found.rows.evidence) == ((), 0, None)


def test_rows_can_be_said_to_be_in_order_of_time(found):
    bare = with_fault(healthy()).drop(columns="time")
    ordered = detect(bare, ordered=True)
    assert ordered.assessment.method == "SensorDetector"
    np.testing.assert_allclose(ordered.scores, found.scores, rtol=1e-9)
    assert ordered.verdict.sentence == found.verdict.sentence.replace("10.4 days", "1,500 rows")
    assert ordered.incident_table["start"].tolist() == [incident.start for incident in found.incidents]
    with pytest.raises(TableError) as refused:
        detect(bare, ordered=True, method="knn")
    assert refused.value.parameter == "ordered"


def test_a_planted_fault_is_the_first_incident_named_and_dated(found):
    incident = first_incident(found)
    assert abs(incident.start - START) <= 1
    assert abs(incident.end - (START + ROWS - 1)) <= 4
    assert (incident.sensors[0].name, incident.sensors[0].direction) == ("s3", "above")
    row = found.incident_table.loc[incident.number]
    assert (row["start"], row["first_sensor"]) == (found.table.time[incident.start], "s3")
    assert found.verdict.kind in ("some", "clearly")
    assert row["expected_by_chance"] <= 0.05
    event = int(found.rows.grouped.of_row[incident.peak])
    assert found.explain(event).variables["variable"].iloc[0] == "s3"
    assert found.events.loc[event, "expected_by_chance"] == row["expected_by_chance"]
    assert found.top()["variables"].iloc[0].startswith("s3")


def test_a_method_that_scores_rows_one_by_one_does_not_see_it():
    one_by_one = detect(with_fault(healthy()), method="detector", top=ROWS, most_explained=0)
    assert one_by_one.flags[START : START + ROWS].sum() <= ROWS // 3


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_in_a_healthy_record_nothing_stands_out(seed):
    found = detect(healthy(seed=seed), most_explained=0)
    assert found.verdict.kind == "nothing"
    assert found.verdict.sentence.startswith("Nothing stands out: ")
    assert not found.incidents
    assert found.incident_table.empty
    assert len(found.assessment.stretches) > 0
    assert (found.assessment.stretches["expected_by_chance"] > 0.1).all()


def test_of_a_short_record_nothing_is_known_and_it_is_said():
    found = detect(healthy(200), most_explained=0)
    assert found.verdict.kind == "unknown"
    assert found.verdict.sentence.startswith("The record is too short to say how often chance would give such an")
    assert found.flags.sum() == 10  # the list of one row in twenty
    assert found.assessment.chance_unknown in found.verdict.sentence
    assert found.events["expected_by_chance"].isna().all()
    assert found.incident_table["expected_by_chance"].isna().all()


def test_the_same_seed_gives_the_same_findings_whatever_the_order_of_columns(found):
    again = detect(with_fault(healthy()), random_state=0)
    assert (again.scores == found.scores).all()
    assert (again.rows.evidence == found.rows.evidence).all()
    assert (again.flags == found.flags).all()
    assert again.verdict == found.verdict
    pd.testing.assert_frame_equal(again.incident_table, found.incident_table)
    swapped = detect(with_fault(healthy())[["s5", "time", "s3", "s0", "s4", "s2", "s1"]])
    np.testing.assert_allclose(swapped.scores, found.scores, rtol=1e-6, atol=1e-6)
    assert first_incident(swapped).sensors[0].name == "s3"
    assert first_incident(swapped).start == first_incident(found).start


@pytest.mark.parametrize("top", [3, 100])
def test_a_list_has_the_length_that_was_asked_for_and_the_verdict_counts_what_stands_out(top, found):
    listed = detect(with_fault(healthy()), top=top, most_explained=0)
    assert (listed.scores == found.scores).all()
    assert np.flatnonzero(listed.flags).tolist() == sorted(np.argsort(-found.scores, kind="stable")[:top])
    expected = listed.incident_table["expected_by_chance"]
    assert (listed.verdict.kind, listed.verdict.found) == (found.verdict.kind, int((expected <= 1).sum()))
    assert (expected <= 1).all()
    assert (len(listed.assessment.stretches) > 0) == (top == 100)
    assert (listed.assessment.stretches["expected_by_chance"] > 1).all()


@pytest.mark.parametrize("threshold", [0.01, Fixed(2.0)])
def test_a_threshold_is_kept_to(threshold, found):
    cut = detect(with_fault(healthy()), threshold=threshold, most_explained=0)
    assert (cut.flags == (found.scores > cut.threshold)).all()
    assert cut.threshold == 2.0 if isinstance(threshold, Fixed) else cut.flags.sum() == N // 100


def runs() -> pd.DataFrame:
    """Three runs at the same time; s3 reads too high at the end of the second, in the last rows of its run."""
    parts = [healthy(500, seed) for seed in range(3)]
    parts[1] = with_fault(parts[1], start=500 - ROWS)
    return pd.concat([part.assign(run=name) for part, name in zip(parts, "abc", strict=True)], ignore_index=True)


def test_histories_of_runs_do_not_mix():
    found = detect(runs(), group="run")
    incident = first_incident(found)
    assert abs(incident.start - (1000 - ROWS)) <= 1
    assert (incident.end, incident.sensors[0].name) == (999, "s3")
    assert found.incident_table.loc[incident.number, "group"] == "b"
    usual = fit_model(runs().query("run != 'b'"), group="run")
    later = score(usual, runs(), most_explained=0)
    alone = [score(usual, runs().query("run == @name"), most_explained=0) for name in "abc"]
    assert (later.rows.evidence == np.vstack([each.rows.evidence for each in alone])).all()
    one_series = score(usual, runs().assign(run="a", time=healthy()["time"]), most_explained=0)
    assert (later.rows.evidence[500:505] != one_series.rows.evidence[500:505]).any()
    mixed = detect(runs(), top=5, most_explained=0)
    assert mixed.assessment.method == "Detector"  # two of three rows have the stamp of the one before
    assert "--group" in why_method(mixed)


def test_each_mode_is_fitted_by_itself_and_chance_counts_all_modes():
    table = with_fault(healthy()).assign(state=np.where(np.arange(N) // 100 % 2, "on", "off"))
    table.loc[table["state"] == "on", ["s0", "s1"]] *= -3
    found = detect(table, modes="state", top=40)
    assert [each.part.mode for each in found.rows.parts] == ["off", "on"]
    for each in found.rows.parts:
        detector, rows = each.part.detector, each.rows
        assert (detector.scores_ == found.scores[rows]).all()
        assert (detector.evidence_ == found.rows.evidence[rows]).all()
        peaks = found.events["peak_row"][found.rows.modes[found.events["peak_row"]] == each.part.mode]
        alone = detector.expected_by_chance(found.scores[peaks], len(rows), later=False)
        np.testing.assert_allclose(found.events.loc[peaks.index, "expected_by_chance"], 2 * alone, rtol=1e-12)
    assert abs(first_incident(found).start - START) <= 1
    assert first_incident(found).sensors[0].name == "s3"
    assert found.verdict.kind in ("some", "clearly")
    for incident in found.incidents:
        assert len(set(found.rows.modes[incident.start : incident.end + 1])) == 1


def test_after_a_training_period_later_rows_are_scored_by_what_came_before():
    table = with_fault(healthy())
    found = detect(table, train_until=str(table["time"][719]))
    assert found.rows.fitted.sum() == 720
    assert not found.flags[:720].any()
    cut = START + ROWS // 2  # what comes later changes nothing
    until = detect(table[:cut], train_until=str(table["time"][719]), most_explained=0)
    assert (until.scores[720:] == found.scores[720:cut]).all()
    by_hand = found.rows.parts[0].part.detector.score_series(table[NAMES].to_numpy()[720:], time=table["time"][720:])
    assert (by_hand == found.scores[720:]).all()
    assert abs(first_incident(found).start - START) <= 2
    assert first_incident(found).sensors[0].name == "s3"
    assert found.verdict.kind in ("some", "clearly")
    assert found.verdict.sentence.endswith("would be expected by chance in 5.41 days.")
    calm = detect(healthy(), train_until=str(table["time"][719]), most_explained=0)
    assert calm.verdict.kind == "nothing"


def test_a_model_scores_new_rows_as_it_does_at_once(model):
    table = with_fault(healthy(seed=7), 300)[:700]
    found = score(model, table)
    assert found.assessment.method == "SensorDetector"
    assert abs(first_incident(found).start - 300) <= 2
    assert first_incident(found).sensors[0].name == "s3"
    assert found.verdict.kind in ("some", "clearly")
    assert (score(model, table[:310], most_explained=0).scores == found.scores[:310]).all()


@pytest.mark.parametrize("rows", [1, 6])
def test_few_new_rows_are_listed_only_if_they_are_rare(model, rows):
    """Chance seldom gives an episode to few rows; that does not make each of them one."""
    usual = [score(model, healthy(seed=7)[start : start + rows], most_explained=0) for start in range(0, 600, 50)]
    assert sum(found.flags.any() for found in usual) <= 1
    quiet = next(found for found in usual if not found.flags.any())
    assert quiet.verdict.sentence.endswith("would give in 1 row." if rows == 1 else "would give in 50 min.")
    hot = score(model, healthy(seed=7)[:rows].assign(s3=900.0))
    assert hot.flags.all()
    assert hot.verdict.kind == "clearly"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_in_rows_without_order_nothing_stands_out_by_chance(seed):
    calm = detect(noise(seed=seed), most_explained=0)
    assert (calm.assessment.method, calm.verdict.kind) == ("Detector", "nothing")


def test_rows_without_order_are_compared_with_what_chance_gives():
    """A fourth row is called where chance gives at most 0.4 as high: 12 tables may have four or five of these."""
    extra = []
    for seed in range(12):
        odd = noise(seed=seed)
        odd.iloc[[7, 100, 333]] += 9.0
        found = detect(odd, most_explained=0)
        assert found.verdict.kind == "clearly"
        assert set(np.argsort(-found.scores)[:3]) == {7, 100, 333}
        assert found.flags.sum() == 25  # the list is as long as ever
        extra.append(found.verdict.found - 3)
        if extra[-1] == 0:
            sentence = "3 rows clearly stand out; fewer than 0.05 would be expected by chance."
            assert found.verdict.sentence == sentence
    assert min(extra) == 0
    assert sum(extra) <= 4


def test_of_few_rows_nothing_is_said():
    found = detect(noise(30), most_explained=0)
    assert found.verdict.kind == "unknown"
    assert found.verdict.sentence.startswith("Too few rows to say whether any stands out")


def test_new_rows_of_a_detector_with_rates_are_compared_with_those():
    table = noise()
    calm = detect(table, train_until=399, most_explained=0)
    assert calm.verdict.kind == "nothing"
    assert calm.verdict.expected == calm.rows.parts[0].part.detector.expected_by_chance(calm.scores[400:].max(), 100)
    table.iloc[[450, 460]] += 9.0
    found = detect(table, train_until=399, most_explained=0)
    assert found.verdict.kind == "clearly"
    assert found.verdict.sentence.startswith("2 rows clearly stand out; fewer than 0.05 would be expected by chance.")
    assert found.events["expected_by_chance"].nsmallest(2).max() < 0.01
    assert found.assessment.threshold_expected == pytest.approx(0.5, rel=0.5)


@pytest.mark.parametrize("method", ["knn", "nsnmf"])
@pytest.mark.parametrize("table", [noise(), healthy(300)], ids=["rows", "series"])
def test_methods_without_rates_do_not_know(method, table):
    found = detect(table, method=method, top=5, most_explained=0)
    assert found.verdict.kind == "unknown"
    assert found.verdict.sentence.startswith("This method gives scores without a rate.")


def test_a_detector_of_rows_that_follow_each_other_does_not_know():
    table = pd.DataFrame(np.cumsum(np.random.default_rng(0).normal(size=(400, 6)), axis=0)).add_prefix("s")
    found = detect(table, top=5, most_explained=0)
    assert (found.assessment.method, found.verdict.kind) == ("Detector", "unknown")
    assert found.verdict.sentence.startswith("Rows are much like the ones before")


BY_CHANCE = "would be expected by chance in 9 h."


@pytest.mark.parametrize(
    ("expected", "kind", "found", "words"),
    [
        ([0.004], "clearly", 1, f"1 incident stands out, near certain; fewer than 0.05 {BY_CHANCE}"),
        ([0.05], "some", 1, f"1 incident stands out, near certain; about 0.05 {BY_CHANCE}"),
        ([0.05, 0.004], "clearly", 2, f"2 incidents stand out, all near certain; about 0.05 {BY_CHANCE}"),
        ([0.4, 0.004], "clearly", 2, f"2 incidents stand out, 1 of them near certain; about 0.4 {BY_CHANCE}"),
        ([3.0, 0.05], "some", 1, f"1 incident stands out, near certain; about 0.05 {BY_CHANCE}"),
        ([3.0, 0.4, 0.05], "some", 2, f"2 incidents stand out, 1 of them near certain; about 0.4 {BY_CHANCE}"),
        ([0.4], "nothing", 0, f"Nothing stands out: about 0.4 stretches as high as the highest {BY_CHANCE}"),
        ([3.0, 0.4], "nothing", 0, f"Nothing stands out: about 0.4 stretches as high as the highest {BY_CHANCE}"),
        ([], "nothing", 0, "Nothing stands out: no episode is as high as the one that chance would give in 9 h."),
        (
            [0.2, 0.2, 0.3, 0.4, 0.4, 0.5, 0.5],
            "some",
            7,
            f"No incident stands out by itself, but together they do: 7 "
            f"incidents are there where about 0.5 {BY_CHANCE}",
        ),
    ],
)
def test_verdicts_on_incidents_in_words(expected, kind, found, words):
    verdict = about_incidents(expected, "9 h")
    assert (verdict.kind, verdict.found, verdict.sentence) == (kind, found, words)


@pytest.mark.parametrize(
    ("expected", "states", "kind", "found", "words"),
    [
        ([0.004], "u", "unusual", 1, f"1 incident stands out; fewer than 0.05 {BY_CHANCE}"),
        ([0.05, 0.8], "uf", "unusual", 2, f"1 incident stands out; about 0.05 {BY_CHANCE} 1 more may be chance."),
        ([0.2] * 4, "uuuu", "unusual", 4, f"4 incidents stand out; about 0.2 {BY_CHANCE}"),
        ([1.5] * 20, "u" * 20, "unusual", 20, f"20 incidents stand out; about 1.5 {BY_CHANCE}"),
        ([0.004, 0.05], "uf", "some", 2, "2 incidents stand out, 1 of them near certain, 1 unusual operation; "),
        ([0.05, 0.004], "uf", "clearly", 2, "2 incidents stand out, 1 of them near certain, 1 unusual operation; "),
        ([0.04, *[0.2] * 4], "uffff", "some", 5, "5 incidents stand out, 1 unusual operation; about 0.2"),
        ([0.4], "u", "nothing", 0, "Nothing stands out: "),
    ],
)
def test_unusual_operation_alone_is_a_verdict_of_its_own(expected, states, kind, found, words):
    verdict = about_incidents(expected, "9 h", states=[each == "u" for each in states])
    words = f"Unusual operation, no sign of a fault: {words}" if kind == "unusual" else words
    assert (verdict.kind, verdict.found) == (kind, found)
    assert verdict.sentence.startswith(words)


@pytest.mark.parametrize(
    ("expected", "kind", "found", "words"),
    [
        ([3.0, 5.0], "nothing", 0, "Nothing stands out: the highest score is one that chance gives to about 3 rows"),
        ([0.05], "some", 1, "1 row stands out; about 0.05 would be expected by chance."),
        ([0.005, 4.0], "clearly", 1, "1 row clearly stands out; fewer than 0.05 would be expected by chance."),
        ([3.0] * 40, "some", 40, "40 rows stand out; about 3 would be expected by chance."),
    ],
)
def test_verdicts_on_new_rows_in_words(expected, kind, found, words):
    expected = np.array([*expected, *range(100, 5000)], dtype=float)
    verdict = about_table(Chance.of(expected, np.arange(len(expected), 0.0, -1)))
    assert (verdict.kind, verdict.found) == (kind, found)
    assert verdict.sentence.startswith(words)


@pytest.mark.parametrize("table", [noise(), healthy(400)], ids=["rows", "series"])
def test_all_methods_have_the_same_columns(table):
    events, incidents, lists = set(), set(), set()
    for method in ("sensors", "detector", "knn", "nsnmf"):
        ordered = {"ordered": True} if method == "sensors" and "time" not in table else {}
        found = detect(table, method=method, top=5, **ordered)
        events.add(tuple(found.events.columns))
        incidents |= {tuple(found.incident_table.columns), tuple(found.assessment.stretches.columns)}
        lists |= {tuple(findings_table(found).columns)}
        assert found.events["expected_by_chance"].isna().all() == bool(found.assessment.chance_unknown)
        assert found.assessment.chance_unknown in found.verdict.sentence
    assert len(events) == len(incidents) == len(lists) == 1
    assert {"expected_by_chance", "rank"} <= {*events.pop()} & {*incidents.pop()} & {*lists.pop()}


def test_the_period_of_the_verdict_is_what_was_recorded():
    """Chance is counted over the rows; a gap of a month between them is no time in which anything was seen."""
    table = healthy(seed=1)
    whole = detect(table, most_explained=0).verdict.sentence
    table.loc[N // 2 :, "time"] += pd.Timedelta(days=30)
    period = whole.rpartition(" in ")[2]
    found = detect(table, most_explained=0).verdict.sentence.rpartition(" in ")[2]
    assert abs(float(found.split()[0]) - float(period.split()[0])) <= 0.02 * float(period.split()[0])
    assert found.split()[1] == period.split()[1]


def test_later_rows_that_differ_throughout_are_no_incident_but_a_model_that_no_longer_fits():
    table = healthy().copy()
    half = len(table) // 2
    shifted = table.columns[2]
    size = 8 * float(table[shifted].std())
    table.loc[half:, shifted] += size
    found = detect(table, train_until=table["time"][half - 1], most_explained=0)
    assert [shift.name for shift in found.assessment.shifts] == [shifted]
    (shift,) = found.assessment.shifts
    assert half <= shift.since <= half + 5
    assert shift.by == pytest.approx(size, rel=0.3)
    note = next(note for note in found.notes if note.kind == "no longer fits")
    assert note.columns == (shifted,)
    assert all(incident.end - incident.start < half // 2 for incident in found.incidents)


def test_a_fault_in_a_part_of_the_later_rows_is_an_incident_and_the_model_fits():
    table = healthy().copy()
    half = len(table) // 2
    shifted = table.columns[2]
    table.loc[half + half // 3 :, shifted] += 8 * float(table[shifted].std())
    found = detect(table, train_until=table["time"][half - 1], most_explained=0)
    assert not found.assessment.shifts
    assert "no longer fits" not in {note.kind for note in found.notes}
