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
    rows_findings,
    series_findings,
    views_findings,
    views_modes_findings,
    with_reasons,
)

from penstock.detection import detect
from penstock.report.axis import Level, make_axis, pack_curve, pack_places, script_json, thin_out
from penstock.report.cases import Areas, cases_of, make_article
from penstock.report.charts import CaseCharts, explorer_data
from penstock.report.overview import (
    LEVELS,
    fault_line,
    make_calendar,
    overview_data,
)
from penstock.report.preparation import column_table, make_preparation, mode_groups
from penstock.report.words import agreement_in_words, findings_in_words, span


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def axis_of(findings):
    return make_axis(findings.table.time, len(findings.scores))


def curve(packed):
    if "numbers" in packed:
        return unpacked(packed["numbers"], "<f4")
    share = unpacked(packed["data"], "<u2") / 65534
    return np.where(share > 1, np.nan, packed["low"] * (1 - share) + packed["high"] * share)


class TestPacking:
    @pytest.mark.parametrize(
        "values",
        [[1.0, 2.5, np.nan, -3.0], [7.0, 7.0], [np.nan], [], [-1e308, 1e308, 0.0], [np.nan, -1e308, 1e308]],
    )
    def test_curves_come_back_to_a_sixtythousandth_of_their_range(self, values):
        values = np.array(values)
        known = values[np.isfinite(values)]
        step = (known.max() / 2 - known.min() / 2) / 32767 if len(known) else 0
        np.testing.assert_allclose(curve(pack_curve(values)), values, rtol=1e-12, atol=step)

    @pytest.mark.parametrize("scale", [1.0, 1e6])
    def test_one_reading_that_is_far_out_takes_no_steps_from_the_others(self, scale):
        rng = np.random.default_rng(0)
        values = np.where(rng.random(5000) < 0.02, np.nan, np.cumsum(rng.normal(size=5000)))
        values[77] *= scale
        usual = np.nanquantile(values, 0.95) - np.nanquantile(values, 0.05)
        np.testing.assert_allclose(curve(pack_curve(values)), values, rtol=1e-6, atol=usual / 2000)

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

    def test_long_gaps_are_drawn_narrow_and_the_clock_knows(self):
        days = pd.DatetimeIndex(
            np.concatenate([pd.date_range(f"2024-05-{d:02}", periods=24, freq="h") for d in (1, 9)])
        )
        axis = make_axis(days, 48)
        assert axis.is_narrowed
        ((low, high, length),) = axis.gaps
        assert length == 7 * 86_400_000 + 3_600_000
        assert high - low < 0.12 * axis.places[-1]
        (_, first), (at, second) = axis.offsets
        assert (first, at) == (0.0, axis.places[24])
        assert axis.places[24] + second == axis.elapsed[24]

    def test_groups_that_overlap_in_time_are_one_after_the_other_with_their_own_clock(self):
        hours = pd.date_range("2024-05-01", periods=24, freq="h")
        time = hours.append(hours[6:]).tz_localize("Europe/Berlin")
        axis = make_axis(time, 42, starts=[0, 24])
        assert (np.diff(axis.places) > 0).all()
        assert axis.gaps == []
        assert not axis.packed()["ordered"]
        of_row = np.searchsorted([place for place, _ in axis.offsets], axis.places, side="right") - 1
        clock = axis.origin + axis.places + np.array([ahead for _, ahead in axis.offsets])[of_row]
        np.testing.assert_array_equal(clock, time.tz_localize(None).asi8 / (time.asi8[1] - time.asi8[0]) * 3_600_000)
        assert make_axis(time, 42).origin is None  # without groups they are not in order

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
        kept = thin_out(values, stretches, np.arange(len(values), dtype=float), 20_000)
        assert len(kept) <= 20_008
        assert set(peaks) <= set(kept)
        assert {0, 400_000, 400_001, len(values) - 1} <= set(kept)
        assert values.argmin() in kept

    def test_bins_keep_extremes_and_end_at_gaps(self):
        rng = np.random.default_rng(0)
        values = rng.normal(size=10_000)
        values[[17, 8_888]] = 50, -50
        values[2_000:2_600] = np.nan
        level = Level.of(make_axis(None, 10_000, starts=[0, 4_001]), 1_000)
        thinned = level.thin(values)
        assert len(thinned) == len(unpacked(level.packed()["places"]["data"], "<u4")) <= 1_004
        assert (np.nanmax(thinned), np.nanmin(thinned)) == (50, -50)
        assert 4_001 in level.first
        assert np.isnan(thinned).sum() >= 2 * (600 // level.size - 1)


class TestOverview:
    def test_incidents_gaps_faults_and_threshold(self):
        findings = plant_findings()
        axis, cases = axis_of(findings), cases_of(findings)
        record = overview_data(findings, axis, cases)
        assert record["threshold"] == findings.threshold
        assert [gap[2] for gap in record["gaps"]] == ["6 h 50 min"]
        assert [case[0] for case in record["cases"]] == findings.events.sort_values("rank").index.tolist()
        for number, first, last, rank in record["cases"]:
            assert first == axis.places[findings.rows.grouped.first_rows[number - 1]]
            assert last == axis.places[findings.rows.grouped.last_rows[number - 1]]
            assert rank == findings.events["rank"].loc[number]
        (faults,) = record["lanes"]
        assert [[band[0], band[1], band[2]] for band in faults["bands"]] == [
            [axis.places[40], axis.places[44], "1"],
            [axis.places[298], axis.places[306], "2"],
        ]

    def test_modes_and_the_training_period_are_bands(self):
        findings = views_modes_findings()
        record = overview_data(findings, axis_of(findings), cases_of(findings))
        lanes = {lane["name"]: lane["bands"] for lane in record["lanes"]}
        assert set(lanes) == {"mode", "fitted to"}
        assert {band[2] for band in lanes["mode"]} == {"<b>high</b>", "low"}
        assert len(lanes["fitted to"]) == 1


class TestCalendar:
    def test_counts_shades_and_links(self):
        findings = plant_findings()
        calendar = make_calendar(findings, cases_of(findings))
        assert [month.name for month in calendar.months] == ["May 2024"]
        days = {day.number: day for week in calendar.months[0].weeks for day in week if day}
        assert len(days) == 31
        assert {number: day.rows for number, day in days.items() if day.rows} == {
            stamp.day: rows for stamp, rows in findings.rows.days["rows"].items()
        }
        day = days[3]
        assert (day.cases, day.rows, day.tip) == ([2], 8, "3 May 2024: 8 findings, event 2")
        assert (day.iso, 1 <= day.level <= LEVELS) == ("2024-05-03", True)
        assert days[2].has_readings
        assert days[2].level == 0
        assert not days[20].has_readings

    def test_of_many_years_only_months_with_findings_are_shown(self):
        findings = detect(plant(step="5D"), top=12)
        calendar = make_calendar(findings, cases_of(findings))
        assert all(month.rows for month in calendar.months)
        assert "without findings" in calendar.left_out
        assert sum(month.rows for month in calendar.months) == 12


def case_of(findings, number):
    return next(case for case in cases_of(findings) if case.number == number)


def charts_of(findings):
    return CaseCharts(findings, axis_of(findings), cases_of(findings))


class TestCases:
    def test_an_article_says_when_what_and_why(self):
        findings = plant_findings()
        article = make_article(findings, case_of(findings, 2), [(40, 44), (298, 306)])
        assert article.when == "3 May 2024, 02:00 – 03:10"
        assert article.duration == "1 h 10 min"
        assert article.known == [2]
        assert "bearing [°C]</bdi> read 65.79 where the model rebuilds 56.34; also off: " in article.sentence
        line = article.lines[0]
        assert (line.unit, line.direction) == ("°C", "above")
        assert float(line.actual) > float(line.expected) + 5
        assert "of it" in article.rule_counts
        assert all(len(cells) == 2 + len(article.neighbors.when) for _, _, cells in article.neighbors.lines)

    def test_a_unit_that_the_name_says_is_not_said_again(self):
        table = plant().rename(columns={"bearing [°C]": "bearing (°C)", "oil [°C]": "oil"})
        findings = detect(table, top=12, units={"oil": "°C"}, method="nsnmf", parameters={"similarity": "relative"})
        article = make_article(findings, case_of(findings, 2), [])
        assert article.sentence.startswith(
            '<bdi class="name">bearing (°C)</bdi> read 65.79 where the model rebuilds 56'
        )
        assert "°C" not in article.rule.replace("(°C)", "")
        units = {line.column: (line.unit, line.unit_beside) for line in article.lines}
        assert (units[1], units[2]) == (("°C", ""), ("°C", "°C"))

    def test_a_long_rule_is_not_shown(self):
        findings = plant_findings()
        why = findings.explain(2)
        rule = replace(why.rule, conditions=why.rule.conditions[:1] * 4)
        changed = with_reasons(findings, {2: replace(why, rule=rule)})
        assert make_article(findings, case_of(findings, 2), []).rule
        assert not make_article(changed, case_of(changed, 2), []).rule

    def test_charts_show_the_case_with_its_surroundings(self):
        findings = plant_findings()
        charts, case = charts_of(findings), case_of(findings, 2)
        record, window = charts.pack(case, 8), charts.window(case)
        assert window.start <= 300 - 36
        assert window.stop >= 308 + 18
        minutes = 600_000.0
        assert record["span"] == [(300 - window.start) * minutes, (307 - window.start) * minutes]
        chart = record["charts"][0]
        assert (chart["name"], chart["unit"], len(record["charts"])) == ("bearing [°C]", "°C", 5)
        assert len(unpacked(chart["actual"]["data"], "<u2")) == window.stop - window.start
        assert chart["actual"]["high"] == findings.inputs.values["bearing [°C]"].iloc[window].max()

    def test_the_usual_band_holds_most_readings_outside_of_cases(self):
        findings = series_findings()
        charts, case = charts_of(findings), case_of(findings, 2)
        assert charts.has_expected
        low, high = charts.band(case.sensors[0].column)
        name = case.sensors[0].name
        residuals = (findings.inputs.values[name] - findings.inputs.expected[name])[~findings.flags]
        assert ((residuals >= low) & (residuals <= high)).mean() == pytest.approx(0.98, abs=0.01)
        assert not charts_of(views_findings()).has_expected  # the band is then of the readings themselves

    def test_a_similar_normal_situation_is_normal_and_similar(self):
        findings = series_findings()
        charts, case = charts_of(findings), case_of(findings, 2)
        window = charts.window(case)
        start = charts.similar(case, window)
        rows = slice(start, start + window.stop - window.start)
        assert not findings.flags[rows].any()
        assert not axis_of(findings).begins[rows][1:].any()
        load = findings.inputs.values["load [MW]"].to_numpy()
        assert np.abs(load[rows] - load[window]).mean() < 3  # of a range of 20

    def test_without_a_normal_stretch_as_long_there_is_none(self):
        findings = plant_findings()
        nothing = replace(findings, rows=replace(findings.rows, scored=findings.flags))
        assert charts_of(nothing).similar(case_of(findings, 2), slice(290, 320)) is None

    def test_the_surroundings_end_before_a_far_hole(self):
        table = plant()
        table.loc[290:, "time"] += pd.Timedelta(days=90)
        findings = detect(table, top=12, method="nsnmf", parameters={"similarity": "relative"})
        case = next(case for case in cases_of(findings) if 303 in case.rows)
        assert charts_of(findings).window(case).start == 290

    def test_a_long_case_is_thinned_with_its_peaks(self):
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.normal(size=(3000, 4)), columns=list("abcd"))
        table.iloc[1000:1600, 0] += 30
        table.iloc[1303, 0] += 10
        findings = detect(table, top=600)
        case = case_of(findings, int(findings.rows.grouped.of_row[1303]))
        record = charts_of(findings).pack(case, 4)
        assert len(unpacked(record["places"]["data"], "<u4")) < 500
        assert {chart["name"]: chart["actual"]["high"] for chart in record["charts"]}["a"] == table["a"].max()

    def test_charts_of_overlapping_groups_have_a_clock_of_their_own(self):
        table = pd.concat([plant().assign(unit=name) for name in "AB"], ignore_index=True)
        findings = detect(table, group="unit", top=12, method="nsnmf")
        record = charts_of(findings).pack(cases_of(findings)[0], 2)
        assert record["axis"]["origin"] is not None


class TestHeatMap:
    def test_cells_are_the_farthest_residuals(self):
        findings = plant_findings()
        charts, case = charts_of(findings), case_of(findings, 2)
        record = charts.heat(case)
        cells = unpacked(record["cells"], "i1").reshape(len(record["names"]), -1)
        edges = unpacked(record["edges"]["data"], "<u4")
        assert cells.shape[1] == len(edges) - 1
        bearing, window = record["names"].index("bearing [°C]"), charts.window(case)
        inside = cells[bearing, 300 - window.start : 308 - window.start]
        residuals = (findings.inputs.values - findings.inputs.expected)["bearing [°C]"].to_numpy()[300:308]
        shares = residuals / findings.inputs.ranges[findings.inputs.names.index("bearing [°C]")]
        np.testing.assert_array_equal(inside, np.clip(np.rint(shares / record["full"] * 126), -126, 126))

    def test_with_evidence_a_cell_is_in_times_of_the_usual_limit(self):
        findings = series_findings()
        charts, case = charts_of(findings), case_of(findings, 2)
        record, window = charts.heat(case), charts.window(case)
        assert record["full"] == 6.0
        column = findings.inputs.names.index(record["names"][0])
        cells = unpacked(record["cells"], "i1").reshape(len(record["names"]), -1)
        assert np.abs(cells[0]).max() == min(126, round(findings.rows.evidence[window, column].max() / 6 * 126))

    def test_it_is_left_out_where_most_of_it_would_be_empty(self):
        findings = views_findings()  # only findings have expected values
        assert charts_of(findings).heat(case_of(findings, 3)) is None

    def test_a_gap_is_no_cell_of_its_neighbours(self):
        findings = plant_findings()
        case = replace(case_of(findings, 2), start=395, end=405, rows=np.arange(395, 405))
        record = charts_of(findings).heat(case)
        cells = unpacked(record["cells"], "i1").reshape(len(record["names"]), -1)
        assert (cells == -128).all(axis=0).sum() == 1


class TestExplorer:
    def test_a_small_table_is_there_whole(self):
        findings = plant_findings()
        record = explorer_data(findings, axis_of(findings), cases_of(findings), Areas(findings.inputs.names))
        assert (record["fine_rows"], record["coarse_rows"], len(record["levels"])) == (1, 1, 1)
        np.testing.assert_allclose(curve(record["score"]), findings.scores, atol=np.ptp(findings.scores) / 4000)
        assert findings.inputs.names[record["order"][0]] == cases_of(findings)[0].sensors[0].name

    def test_of_a_large_one_sensors_beyond_the_most_involved_are_thinned(self):
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.normal(size=(8_000, 40))).add_prefix("unit_")
        table.iloc[[100, 200], [39, 38]] += 50
        findings = detect(table, top=2, method="mean")
        record = explorer_data(findings, axis_of(findings), cases_of(findings), Areas(findings.inputs.names))
        coarse = [sensor for sensor in record["sensors"] if sensor["level"] == 1]
        assert (record["fine_rows"], len(coarse), record["n_fine"]) == (1, 10, 30)
        assert {"unit_38", "unit_39"} <= {sensor["name"] for sensor in record["sensors"] if sensor["level"] == 0}
        assert all(len(curve(sensor["curve"])) <= 402 for sensor in coarse)


class TestGroups:
    def test_members_of_groups_add_up(self):
        findings = plant_findings()
        (mode,) = mode_groups(findings)
        assert sum(int(group.members.replace(",", "")) for group in mode.groups) == 560
        assert sum(int(group.findings) for group in mode.groups) == 12
        assert len(mode.profiles) == 5
        assert all(len(group.differences) <= 6 for group in mode.groups)

    def test_rows_of_another_table_have_groups(self):
        assert sum(int(group.members) for group in mode_groups(quiet_findings())[0].groups) == 40


class TestWords:
    def test_a_span_across_a_change_of_clocks_shows_the_offsets(self):
        time = pd.date_range("2024-10-27 00:30", periods=8, freq="30min", tz="UTC").tz_convert("Europe/Berlin")
        assert span(time[0], time[2]) == "27 Oct 2024, 02:30 (+02:00) – 02:30 (+01:00)"
        assert span(time[0], time[1]) == "27 Oct 2024, 02:30 (+02:00) – 02:00 (+01:00)"
        assert span(time[1], time[2]) == "27 Oct 2024, 02:00 – 02:30"
        far = time[0] - pd.Timedelta(days=2), time[-1]
        assert span(*far) == "25 Oct 2024, 02:30 (+02:00) – 27 Oct 2024, 05:00 (+01:00)"

    def test_the_list_of_changes_says_nothing_twice(self):
        findings = hostile_findings()
        changes = make_preparation(findings, axis_of(findings)).changes
        assert changes[0] == "Columns: 11 columns used as they are."
        assert sum("encoded" in change for change in changes) == 1
        twice = replace(findings, notes=(*findings.notes, *findings.notes))
        assert make_preparation(twice, axis_of(twice)).changes == changes

    def test_what_would_improve_it_is_said_only_where_it_would(self):
        advice = " ".join(make_preparation(plant_findings(), axis_of(plant_findings())).advice)
        assert "--train-until" in advice
        assert "--label" not in advice
        assert "--ordered" not in advice
        assert "--units" not in advice
        rows = " ".join(make_preparation(rows_findings(), axis_of(rows_findings())).advice)
        assert "--ordered" in rows
        new = views_modes_findings()
        assert "--train" not in " ".join(make_preparation(new, axis_of(new)).advice)

    def test_only_scored_faults_count(self):
        known = plant_findings().assessment.agreement
        faults = known.faults.assign(scored=[False, True])
        some = replace(known, faults=faults, n_ranked=9, n_scored_faults=1, n_found=1, n_inside=1)
        words = agreement_in_words(some)
        assert "inside 1 of 1 known and scored fault" in words
        assert "of the 9 highest scores" in words

    def test_the_findings_are_counted_in_words(self):
        lead = findings_in_words(plant_findings())
        for words in ("12 findings", "560 rows", "3 events on 3 days"):
            assert words in lead
        assert "40 rows" in findings_in_words(quiet_findings())

    def test_known_faults_have_a_warning_time(self):
        known = plant_findings().assessment.agreement.faults.to_dict("records")
        missed, found = (fault_line(number, row) for number, row in enumerate(known, 1))
        assert (missed.alarm, missed.first_alarm, missed.lead) == ("✗ none", "", "")
        assert found.alarm == "✓ inside"
        assert found.lead == "20 min after it began"
        assert "P@N" in agreement_in_words(plant_findings().assessment.agreement)

    def test_an_alarm_before_a_fault_is_not_called_one_inside(self):
        faults = plant_findings().assessment.agreement.faults.assign(
            flagged=0, found=[True, False], scored=[True, False]
        )
        faults["first_alarm"], faults["lead"] = faults["start"] - pd.Timedelta("1h"), pd.Timedelta("1h")
        early, unseen = (fault_line(1, row) for row in faults.to_dict("records"))
        assert (early.flagged, early.alarm, early.lead) == ("0", "before it only", "1 h before")
        assert unseen.alarm == "not scored"

    def test_columns_are_graded_the_worst_first(self):
        table = plant()
        table["limit"], table["state"] = 5.0, np.where(table["load [MW]"] > 50, "on", "off")
        columns = column_table(detect(table, top=5))
        uses = [(line.grade, line.use) for line in columns.notable]
        assert uses == [("D", "left out"), ("B", "time"), ("B", "encoded as 2 numbers (one-hot)")]
        assert sum(count for _, count in columns.counts) == 8  # with the time
