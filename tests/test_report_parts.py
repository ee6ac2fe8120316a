"""The parts of the report: what each hands to the template and to the script."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from report_tables import (
    hostile_findings,
    plant,
    plant_findings,
    quiet_findings,
    views_findings,
    views_modes_findings,
)

from penstock.detection import detect
from penstock.report.axis import make_axis, pack_curve, pack_places, script_json, thin_out
from penstock.report.event_cards import MOST_CHARTS, event_card, event_chart_data, event_window
from penstock.report.heat_map import MOST_BINS, heat_map_data
from penstock.report.model import mode_groups, tree_maps
from penstock.report.summary import column_table, make_summary
from penstock.report.timeline import LEVELS, MOST_POINTS, make_calendar, timeline_data
from penstock.report.words import span


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def axis_of(findings):
    return make_axis(findings.table.time, len(findings.scores))


class TestPacking:
    @pytest.mark.parametrize("values", [[1.0, 2.5, np.nan, -3.0], [7.0, 7.0], [np.nan], [], [-1e308, 1e308, 0.0]])
    def test_curves_come_back_to_a_sixtythousandth_of_their_range(self, values):
        values = np.array(values)
        packed = pack_curve(values)
        steps = unpacked(packed["data"], "<u2")
        back = np.where(steps == 65535, np.nan, packed["low"] * (1 - steps / 65534) + packed["high"] * (steps / 65534))
        known = values[np.isfinite(values)]
        step = (known.max() / 2 - known.min() / 2) / 32767 if len(known) else 0
        np.testing.assert_allclose(back, values, rtol=1e-12, atol=step)

    @pytest.mark.parametrize(
        "places", [np.arange(5) * 600_000.0, np.array([0.0, 0.25, 0.75]), np.array([0.0, 1.0, 2.0**40]), np.zeros(1)]
    )
    def test_places_come_back(self, places):
        packed = pack_places(places + 17)
        back = packed["first"] + packed["step"] * unpacked(packed["data"], "<u4")
        np.testing.assert_allclose(back, places + 17, atol=max(1e-9, places[-1] / 2**32))

    def test_json_cannot_leave_its_element(self):
        hostile = {"</script>": ["<!--", "&amp;", "\u2028\u2029", "\ud800"]}
        text = script_json(hostile)
        assert not set(text) & set("<>&\u2028\u2029")
        assert json.loads(text) == hostile


class TestAxis:
    def test_the_clock_follows_the_zone_through_a_change(self):
        time = pd.date_range("2024-03-30 23:00", periods=6, freq="h", tz="Europe/Berlin")
        axis = make_axis(time, 6)
        assert [offset / 3_600_000 for _, offset in axis.offsets] == [1, 2]
        assert axis.offsets[1][0] == 3 * 3_600_000  # the clock jumps from 2 to 3
        assert axis.zone == "Europe/Berlin"

    def test_a_gap_begins_a_stretch_uneven_sampling_does_not(self):
        uneven = pd.DatetimeIndex(
            pd.Timestamp("2024-05-01") + pd.to_timedelta(np.cumsum([0, 1, 2, 1, 2, 1, 2, 1]), "h")
        )
        assert make_axis(uneven, 8).begins.tolist() == [True] + [False] * 7
        assert make_axis(plant()["time"].pipe(pd.DatetimeIndex), 560).begins.sum() == 2


class TestThinning:
    def test_a_million_points_become_few_and_no_peak_is_lost(self):
        rng = np.random.default_rng(0)
        values = rng.normal(size=1_000_000)
        peaks = 17 + 33_333 * np.arange(30)
        values[peaks] += 50
        stretches = (np.arange(len(values)) > 400_000).astype(int)
        kept = thin_out(values, stretches, np.arange(len(values), dtype=float), MOST_POINTS)
        assert len(kept) <= MOST_POINTS + 8
        assert set(peaks) <= set(kept)
        assert {0, 400_000, 400_001, len(values) - 1} <= set(kept)
        assert values.argmin() in kept


class TestTimeline:
    def test_scores_events_and_threshold(self):
        findings = plant_findings()
        axis = axis_of(findings)
        record = timeline_data(findings, axis, findings.events)
        np.testing.assert_allclose(unpacked(record["scores"], "<f4"), findings.scores, rtol=1e-6)
        assert record["threshold"] == findings.threshold
        assert record["begins"] == [0, 400]  # the hole in the sampling
        assert len(record["marked"][0]) == 12
        assert [event[0] for event in record["events"]] == [1, 2, 3]
        for number, first, last, rank in record["events"]:
            assert first == axis.places[findings.grouped.first_rows[number - 1]]
            assert last == axis.places[findings.grouped.last_rows[number - 1]]
            assert rank == findings.events["rank"].loc[number]


class TestCalendar:
    def test_counts_shades_and_links(self):
        findings = plant_findings()
        calendar = make_calendar(findings)
        assert [month.name for month in calendar.months] == ["May 2024"]
        days = {day.number: day for week in calendar.months[0].weeks for day in week if day}
        assert len(days) == 31
        assert {number: day.rows for number, day in days.items() if day.rows} == {
            stamp.day: rows for stamp, rows in findings.days["rows"].items()
        }
        day = days[3]
        assert (day.event, day.rows, day.tip) == (2, 8, "3 May 2024: 8 findings, event 2")
        assert 1 <= day.level <= LEVELS
        assert days[2].has_readings
        assert days[2].level == 0
        assert not days[20].has_readings

    def test_of_many_years_only_months_with_findings_are_shown(self):
        findings = detect(plant(step="5D"), top=12)
        calendar = make_calendar(findings)
        assert all(month.rows for month in calendar.months)
        assert "without findings" in calendar.left_out
        assert sum(month.rows for month in calendar.months) == 12


class TestEvents:
    def test_a_card_says_when_how_severe_and_why(self):
        findings = plant_findings()
        card = event_card(findings, 2, "9.1", printed=True)
        assert card.when.text == "3 May 2024, 02:00 – 03:10"
        assert (card.duration.text, card.rows.text) == ("1 h 10 min", "8")
        assert "bearing [°C]" in card.worst[0]
        variable = card.why.variables[0]
        assert (variable["unit"], variable["direction"]) == ("°C", "above")
        assert float(variable["actual"]) > float(variable["expected"]) + 5
        assert len(card.why.comparison[0]["cells"]) == 2 + len(card.why.neighbors)
        assert "of the event" in card.why.rule_counts
        widths = [float(row["width"]) for row in card.why.variables]  # a bar of 100 is a share of 100 %
        assert widths == pytest.approx((100 * findings.explain(2).variables["share"]).tolist(), abs=0.05)

    def test_charts_show_the_event_with_its_surroundings(self):
        findings = plant_findings()
        axis = axis_of(findings)
        names = findings.explain(2).variables["variable"].tolist()
        record = event_chart_data(findings, axis, 2, names)
        window = event_window(findings, axis, 2)
        assert window.start <= 300 - 18
        assert window.stop >= 308 + 18
        assert record["span"] == [axis.places[300], axis.places[307]]
        chart = record["charts"][0]
        assert chart["unit"] == "°C"
        assert len(record["charts"]) == min(MOST_CHARTS, len(names))
        assert len(unpacked(chart["actual"]["data"], "<u2")) == window.stop - window.start
        assert chart["actual"]["high"] == findings.values["bearing [°C]"].iloc[window].max()

    def test_the_surroundings_end_before_a_far_hole(self):
        table = plant()
        table.loc[290:, "time"] += pd.Timedelta(days=90)
        findings = detect(table, top=12)
        assert event_window(findings, axis_of(findings), 2).start == 290

    def test_a_long_event_is_thinned_with_its_peaks(self):
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.normal(size=(3000, 4)), columns=list("abcd"))
        table.iloc[1000:1600, 0] += 30
        table.iloc[1303, 0] += 10
        findings = detect(table, top=600)
        event = int(findings.grouped.of_row[1303])
        record = event_chart_data(findings, axis_of(findings), event, ["a"])
        assert len(unpacked(record["places"]["data"], "<u4")) < 400
        assert record["charts"][0]["actual"]["high"] == table["a"].max()


class TestHeatMap:
    def test_cells_are_the_farthest_residuals(self):
        findings = plant_findings()
        record = heat_map_data(findings, axis_of(findings))
        names = [variable["name"] for variable in record["variables"]]
        cells = unpacked(record["cells"], "i1").reshape(len(names), len(record["bins"]))
        assert len(record["flagged"]) == len(record["bins"]) <= MOST_BINS
        assert sum(panel["count"] for panel in record["panels"]) == len(record["bins"])
        bearing, in_event = names.index("bearing [°C]"), np.array(record["flagged"]) == 2
        assert (cells[bearing, in_event] > 60).all()
        residuals = (findings.values - findings.expected)["bearing [°C]"]
        assert record["variables"][bearing]["farthest"] == pytest.approx(residuals.iloc[299:309].max())

    def test_no_reading_is_not_the_same_as_no_expected_value(self):
        findings = views_findings()  # only findings have expected values
        bearing = findings.names.index("bearing [°C]")
        record = heat_map_data(findings, axis_of(findings))
        cells = unpacked(record["cells"], "i1").reshape(len(record["variables"]), -1)
        in_event = np.array(record["flagged"]) > 0
        assert (cells[:, in_event] >= -126).all()
        assert (cells[:, ~in_event] == -127).all()
        values = findings.values.copy()
        values.iloc[:, bearing] = np.nan
        record = heat_map_data(replace(findings, values=values), axis_of(findings))
        names = [variable["name"] for variable in record["variables"]]
        cells = unpacked(record["cells"], "i1").reshape(len(names), -1)
        assert (cells[names.index("bearing [°C]")] == -128).all()


class TestGroupsAndTrees:
    def test_members_of_groups_add_up(self):
        findings = plant_findings()
        (mode,) = mode_groups(findings)
        assert sum(int(group.members.replace(",", "")) for group in mode.groups) == 560
        assert sum(int(group.findings) for group in mode.groups) == 12
        assert len(mode.profiles) == 5
        assert all(0 <= row.at <= 100 for group in mode.groups for row in group.differences)

    def test_rows_of_another_table_have_groups_but_no_tree(self):
        findings = quiet_findings()
        assert sum(int(group.members) for group in mode_groups(findings)[0].groups) == 40
        assert tree_maps(findings, axis_of(findings)) == []

    def test_all_findings_are_in_the_tree(self):
        findings = plant_findings()
        (tree,) = tree_maps(findings, axis_of(findings))
        assert np.count_nonzero(tree["events"]) == 12
        assert sum(tree["weights"]) == 560
        assert len(unpacked(tree["edges"], "<u2")) == 2 * (len(tree["weights"]) - 1)


class TestWords:
    def test_a_span_across_a_change_of_clocks_shows_the_offsets(self):
        time = pd.date_range("2024-10-27 00:30", periods=8, freq="30min", tz="UTC").tz_convert("Europe/Berlin")
        assert span(time[0], time[2]) == "27 Oct 2024, 02:30 (+02:00) – 02:30 (+01:00)"
        assert span(time[0], time[1]) == "27 Oct 2024, 02:30 (+02:00) – 02:00 (+01:00)"
        assert span(time[1], time[2]) == "27 Oct 2024, 02:00 – 02:30"
        far = time[0] - pd.Timedelta(days=2), time[-1]
        assert span(*far) == "25 Oct 2024, 02:30 (+02:00) – 27 Oct 2024, 05:00 (+01:00)"

    def test_the_list_of_changes_says_nothing_twice(self):
        changes = make_summary(hostile_findings()).changes
        assert changes[0] == "Columns: 11 columns used as they are."
        assert sum("encoded" in change for change in changes) == 1
        findings = hostile_findings()
        twice = replace(findings, notes=(*findings.notes, *findings.notes))
        assert make_summary(twice).changes == changes

    @pytest.mark.parametrize(("method", "words"), [("nsnmf", "Distance along the tree"), ("nmf", "Distance")])
    def test_distances_are_along_a_tree_only_where_there_is_one(self, method, words):
        findings = detect(plant(), top=12, method=method)
        card = event_card(findings, 1, "9", printed=False)
        assert card.why.neighbors
        assert card.why.distance == words

    def test_only_judged_faults_count(self):
        findings = plant_findings()
        known = findings.agreement
        faults = known.faults.assign(judged=[False, True])
        some = replace(
            findings, agreement=replace(known, faults=faults, n_ranked=9, n_judged_faults=1, n_found=1, n_inside=1)
        )
        summary = make_summary(some)
        assert "in 2 faults. There is a finding inside 1 of the 1 that were judged. Of the 9 rows with" in str(
            summary.agreement
        )
        assert summary.figures[-1].value == "1 of 1"

    def test_the_summary_counts_and_names(self):
        findings = plant_findings()
        summary = make_summary(findings)
        assert "<strong>12 of 560 rows</strong> have the highest scores" in summary.lead
        assert "nothing here says how many of these are real faults" in summary.verdict.sentence
        period = views_modes_findings()
        assert " stand out between " in make_summary(period).lead
        assert "<strong>3 events</strong> on <strong>3 days</strong>" in summary.lead
        assert summary.worst[0].number == findings.events["rank"].idxmin()
        assert any("bearing" in worst.sentence and "°C" in worst.sentence for worst in summary.worst)
        assert summary.changes[0] == "Columns: 5 columns used as they are."

    def test_known_faults_have_a_warning_time(self):
        summary = make_summary(plant_findings())
        missed, found = summary.faults
        assert (missed.alarm, missed.first_alarm, missed.lead) == ("✗ none", "", "")
        assert found.alarm == "✓ inside"
        assert found.lead == "20 min after it began"
        assert "P@N" in summary.agreement

    def test_an_alarm_before_a_fault_is_not_called_one_inside(self):
        findings = plant_findings()
        faults = findings.agreement.faults.assign(flagged=0, found=[True, False], judged=[True, False])
        faults["first_alarm"], faults["lead"] = faults["start"] - pd.Timedelta("1h"), pd.Timedelta("1h")
        early, unseen = make_summary(replace(findings, agreement=replace(findings.agreement, faults=faults))).faults
        assert (early.flagged, early.alarm, early.lead) == ("0", "before it only", "1 h before")
        assert unseen.alarm == "not judged"

    def test_columns_are_graded_the_worst_first(self):
        table = plant()
        table["limit"], table["state"] = 5.0, np.where(table["load [MW]"] > 50, "on", "off")
        columns = column_table(detect(table, top=5))
        uses = [(line.grade, line.use) for line in columns.notable]
        assert uses == [("D", "left out"), ("B", "time"), ("B", "encoded as 2 numbers (one-hot)")]
        assert sum(count for _, count in columns.counts) == 8  # with the time


def test_nothing_found():
    findings = quiet_findings()
    axis = axis_of(findings)
    record = timeline_data(findings, axis, findings.events)
    assert (record["events"], record["marked"]) == ([], [[], []])
    assert heat_map_data(findings, axis) is None
    summary = make_summary(findings)
    assert (summary.lead, summary.worst) == ("Of 40 rows judged, none stands out.", [])
