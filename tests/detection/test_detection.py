"""The whole job on small tables: what is read, selected and noted."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from detection_tables import FAULT, HOT, NAMES, plant, rows_found

import penstock
from penstock import NSNMF, detect, fit_model
from penstock.certainty import FOLLOWING, NO_RATE
from penstock.detection import make_detector, score
from penstock.detection.verdict import ONLY_RANKS
from penstock.io import TableError, read_table
from penstock.thresholds import Fixed, TopN, score_threshold

FOUND = list(FAULT)


@pytest.fixture(scope="module")
def findings():
    return detect(plant(), method="detector", top=5)


def test_the_fault_is_found_dated_and_explained(findings):
    assert rows_found(findings) == FOUND
    assert len(findings.events) == 1
    event = findings.events.loc[1]
    assert (event["start"], event["end"]) == (pd.Timestamp("2024-05-02 09:20"), pd.Timestamp("2024-05-02 10:00"))
    why = findings.explain(1).variables.iloc[0]
    assert (why["variable"], why["unit"], why["direction"]) == (HOT, "°C", "above")
    assert why["difference"] > 10


def sources(folder):
    table = plant()
    path, halves = folder / "plant.csv", [folder / "a.csv", folder / "b.csv"]
    table.to_csv(path, index=False)
    table.iloc[:130].to_csv(halves[0], index=False)
    table.iloc[130:].to_csv(halves[1], index=False)
    kept = {"table": read_table(table), "shuffled": table.iloc[::-1], "polars": pl.DataFrame(table.to_dict("list"))}
    return {"path": path, "text": str(path), "files": halves, **kept}


@pytest.mark.parametrize("method", ["detector", "sensors"])
@pytest.mark.parametrize("kind", ["path", "text", "files", "table", "shuffled", "polars"])
def test_the_same_table_gives_the_same_findings(kind, method, tmp_path):
    first, again = (detect(source, method=method, top=5) for source in (plant(), sources(tmp_path)[kind]))
    assert (again.scores == first.scores).all()
    assert (again.flags == first.flags).all()
    assert again.table.time.equals(first.table.time)


def test_arrays_are_taken_and_have_no_time(findings):
    bare = detect(plant(time=False).to_numpy(), top=5)
    assert bare.assessment.method == findings.assessment.method == "Detector"
    assert (bare.scores == findings.scores).all()
    assert bare.table.time is None
    assert bare.events.loc[1, ["start", "end", "duration", "rows"]].tolist() == [200, 204, 5, 5]
    assert bare.rows.days.empty
    assert "time" not in bare.top()


def test_the_same_seed_gives_the_same_findings(findings):
    again = detect(plant(), method="detector", top=5, random_state=0)
    assert (again.scores == findings.scores).all()
    assert again.inputs.expected.equals(findings.inputs.expected)
    other = detect(plant(), method="detector", top=5, random_state=1)
    assert (other.scores != findings.scores).any()


def test_a_label_is_no_input_and_is_compared_with(findings):
    table = plant()
    table["fault"] = [int(row in FAULT) for row in range(len(table))]
    labelled = detect(table, label="fault", method="detector", top=5)
    assert "fault" not in labelled.inputs.names
    assert (labelled.scores == findings.scores).all()
    assert (
        labelled.assessment.agreement.n_known,
        labelled.assessment.agreement.n_found,
        labelled.assessment.agreement.precision_at_n,
    ) == (5, 1, 1.0)
    assert findings.assessment.agreement is None
    assert [note.count for note in labelled.notes if note.kind == "label"] == [5]


def odd_table() -> pd.DataFrame:
    table = plant()
    table["limit"] = 9.0
    table["copy"] = table["oil"]
    table["kind"] = np.where(np.arange(len(table)) % 3 == 0, "a", "b")
    return table


def test_what_is_left_out_or_encoded_is_noted():
    findings = detect(odd_table(), top=5)
    notes = {note.kind: note for note in findings.notes}
    assert notes["left out columns"].count == 2
    assert notes["left out columns"].columns == ("limit", "copy")
    assert "limit: It never changes" in str(notes["left out columns"])
    assert notes["encoded columns"].columns == ("kind",)
    assert findings.inputs.names == (*NAMES, "kind=b", "kind=a")
    assert findings.inputs.choice.counts == {"as they are": 6, "encoded": 1, "left out": 2}
    assert "limit" in detect(odd_table(), top=5, keep="limit", method="mean").inputs.names
    with pytest.raises(TableError, match=r"no column 'limt' \(given as keep\).*Did you mean 'limit'"):
        detect(odd_table(), keep=["limt"])


def test_tables_that_are_refused():
    with pytest.raises(TableError, match=r"3 columns cannot be inputs as they are.*Exclude them, or do without strict"):
        detect(odd_table(), strict=True)
    with pytest.raises(TableError, match="strict refuses"):
        detect(plant().iloc[::-1], strict=True)
    with pytest.raises(TableError, match="too few rows to learn from: 10 are needed, the table has 9"):
        detect(plant(9), method="mean")
    for n in (260, 261):
        with pytest.raises(TableError, match=r"as many findings as there are rows to score \(260\) or more"):
            detect(plant(), top=n, method="mean")
    fine = detect(odd_table(), strict=True, exclude=["limit", "copy", "kind"], method="detector", top=5)
    assert rows_found(fine) == FOUND


def test_a_method_by_name_is_its_class_to_the_letter():
    findings = detect(plant(), top=5, method="nsnmf")
    used = findings.rows.parts[0].part.detector
    assert used.get_params() == NSNMF(random_state=0).get_params()
    assert (findings.scores == NSNMF(random_state=0).fit(plant(time=False)).scores_).all()
    assert any(note.kind == "groups" and "--components 3" in str(note) for note in findings.notes)
    early = detect(plant(), top=5, method="nsnmf", parameters={"max_iter": 1})
    assert any(note.kind == "model" for note in early.notes)  # the warning of the detector
    own = detect(plant(), top=5, method="nsnmf", parameters={"n_components": 5})
    assert own.rows.parts[0].part.detector.n_components == 5
    assert not any(note.kind == "groups" for note in own.notes)
    assert make_detector(NSNMF(), n_components=None).n_components == NSNMF().n_components


def test_a_detector_is_taken_as_it_is():
    detector = NSNMF(n_components=2, random_state=3)
    findings = detect(plant(), method=detector, top=5)
    assert findings.rows.parts[0].part.detector.n_components == 2
    assert not hasattr(detector, "scores_")
    by_hand = NSNMF(n_components=2, random_state=3).fit(plant(time=False).to_numpy())
    assert (findings.scores == by_hand.scores_).all()


@pytest.mark.parametrize(
    ("parameter", "options"),
    [
        ("method", {"method": "lomts"}),
        ("method", {"method": "nsnmf", "parameters": {"groups": 3}}),
        ("method", {"parameters": {"groups": 3}}),
        ("method", {"method": NSNMF(), "parameters": {"n_components": 3}}),
        *(("top", {"top": top}) for top in (0, -1, 2.5, True, "5")),
        *(("threshold", {"threshold": it}) for it in ("high", 0.0, 0.7, -1, [1])),
        *(
            ("gap", {"gap": it})
            for it in (-1, 1.5, True, "1.5", "soon", dt.timedelta(-1), np.timedelta64("NaT"), pd.NaT, [1])
        ),
        *(("settle", {"modes": "state", "settle": it}) for it in (-1, "soon")),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_read(parameter, options):
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        detect("no such file.csv", **options)
    assert refused.value.parameter == parameter


@pytest.mark.parametrize("method", [3, NSNMF, object()])
def test_a_method_is_a_name_or_a_detector(method):
    with pytest.raises(TypeError):
        detect("no such file.csv", method=method)


def test_how_to_read_a_table_that_is_read_is_refused():
    table = read_table(plant())
    for options in ({"label": "oil"}, {"time": "oil"}, {"decimal": ","}):
        with pytest.raises(TableError, match=r"is read already, so .* has no meaning here. Give it to read_table"):
            detect(table, **options)
    assert detect(table, columns=["oil", HOT], method="mean", top=3).inputs.names == ("oil", HOT)
    assert HOT not in detect(table, exclude=HOT, method="mean", top=3).inputs.names
    assert detect(table, exclude=["time", HOT], method="mean", top=3).inputs.names == tuple(
        n for n in NAMES if n != HOT
    )
    for option in ("columns", "exclude"):
        with pytest.raises(TableError, match=f"no column 'oli' \\(given as {option}\\).*Did you mean 'oil'"):
            detect(table, **{option: ["oli"]})


def test_units_come_from_names_or_a_table(tmp_path):
    assert detect(plant(), top=5, method="mean").inputs.units[HOT] == "°C"
    assert detect(plant(), top=5, method="mean", units={"oil": "bar", HOT: "-"}).inputs.units == {
        "load [MW]": "MW", HOT: "", "flow [m³/s]": "m³/s", "head [m]": "m", "oil": "bar", "vibration [mm/s]": "mm/s",
    }  # fmt: skip
    path = tmp_path / "units.csv"
    path.write_text("Tag,Unit\noil,bar\n")
    assert detect(plant(), top=5, method="mean", units=path).inputs.units["oil"] == "bar"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match="needs the columns 'name' and 'unit'; it has a, b"):
        detect(plant(), units=path)
    with pytest.raises(TableError, match="There is no file"):
        detect(plant(), units=tmp_path / "none.csv")


def test_stages_are_told():
    stages: list[str] = []
    detect(plant(), top=5, progress=stages.append)
    assert stages == [
        "reading the table",
        "checking 6 columns",
        "fitting SensorDetector to 260 rows",
        "scoring 260 rows",
        "explaining 1 event",
    ]


def parted(method="nsnmf", **options):
    return detect(plant(), train_until="2024-05-01", method=method, **options)


@pytest.mark.parametrize("method", ["nsnmf", "lomst", "online"])
def test_a_training_period_is_fitting_to_it_and_scoring_the_rest(method):
    table = plant()
    whole = parted(method)
    model = fit_model(table.iloc[:144], method=method)
    rest = score(model, table.iloc[144:])
    assert np.abs(whole.scores[144:] - rest.scores).max() <= 1e-12
    assert np.abs(whole.scores[:144] - model.training_scores).max() <= 1e-12
    assert whole.threshold == pytest.approx(rest.threshold, rel=1e-12)
    assert (whole.flags[144:] == rest.flags).all()
    if method == "nsnmf":
        np.testing.assert_allclose(whole.inputs.expected.iloc[144:], rest.inputs.expected, rtol=1e-12)


def test_settings_tell_how_the_table_was_read(tmp_path):
    path = tmp_path / "plant.txt"
    plant().assign(fault=0, limit=9.0).to_csv(path, index=False, sep="|", decimal=",")
    told = detect(
        path, separator="|", decimal=",", label="fault", keep="limit", exclude=["oil", "head [m]"], time="time",
        timezone="UTC", day_first=False, modes="hot: oil > 0", settle="20 min", gap=3, top=4, random_state=7,
        method="mean",
    ).settings  # fmt: skip
    expected = {
        "separator": "|", "decimal": ",", "label": "fault", "keep": "'limit'", "exclude": "'oil', 'head [m]'",
        "time": "time", "timezone": "UTC", "day_first": False, "settle": "0 days 00:20:00", "gap": 3, "top": 4,
        "random_state": 7, "training": "all rows",
    }  # fmt: skip
    assert {name: told.get(name) for name in expected} == expected
    assert told["modes"].startswith("hot: oil > 0")
    assert not {"thousands", "encoding", "sheet", "strict", "columns"} & set(told)
    assert all(value is None or isinstance(value, bool | int | float | str) for value in told.values())


@pytest.mark.parametrize("units", ["http://127.0.0.1:9/units.csv", "file:///etc/hostname", 3])
def test_units_are_never_fetched(units, monkeypatch):
    def fetch(*args, **kwargs):
        raise AssertionError("this went out")

    monkeypatch.setattr("urllib.request.urlopen", fetch)
    with pytest.raises(TableError, match=r"There is no file|units cannot be read from 3"):
        detect(plant(), top=5, method="mean", units=units)


def labelled() -> pd.DataFrame:
    """Two known faults, the first of them in the training period."""
    table = plant().assign(fault=0)
    table.loc[50:59, "fault"] = 1
    table.loc[list(FAULT), "fault"] = 1
    return table


def test_known_faults_in_the_training_period_are_not_counted():
    found = detect(labelled(), label="fault", train_until="2024-05-01", method="detector", top=5).assessment.agreement
    assert found.faults["scored"].tolist() == [False, True]
    assert (found.n_found, found.n_scored_faults, len(found.faults)) == (1, 1, 2)
    assert (found.n_known, found.n_scored, found.n_ranked, found.precision_at_n) == (15, 116, 5, 1.0)


def test_what_looks_like_a_label_is_not_fitted_to_unless_asked_for():
    table = labelled().assign(pump_on=(np.arange(260) // 7) % 2)
    plain = detect(table.drop(columns="fault"), method="mean", top=5)
    findings = detect(table, method="mean", top=5)
    assert "fault" not in findings.inputs.names
    assert "pump_on" in findings.inputs.names
    assert (findings.scores == plain.scores).all()
    note = next(note for note in findings.notes if note.kind == "like labels")
    assert note.columns == ("fault",)
    assert note.message.startswith("Column 'fault' looks like a label and is no input.")
    assert all(option in note.message for option in ("--label", "--keep", "--columns"))
    model = fit_model(table, method="mean")
    assert "fault" not in model.inputs.names
    for asked in ({"keep": "fault"}, {"columns": [*findings.inputs.names, "fault"]}):
        assert "fault" in detect(table, method="mean", top=5, **asked).inputs.names
        assert "fault" in fit_model(table, method="mean", **asked).inputs.names
    assert detect(table, method="mean", top=5, label="fault").assessment.agreement is not None
    with pytest.raises(TableError, match=r"'fault' \(It looks like a label"):
        detect(table, method="mean", strict=True)


def test_rows_of_which_nothing_is_known_are_scored_but_not_counted():
    table = labelled().rename(columns={"fault": "ATT_FLAG"})
    table.loc[100:149, "ATT_FLAG"] = -999
    table.loc[150:159, "ATT_FLAG"] = 2
    options = {"label": "ATT_FLAG", "fault_values": 1, "unknown_values": "-999"}
    findings = detect(table, method="mean", top=5, **options)
    assert findings.rows.scored.all()
    assert (findings.assessment.agreement.n_known, findings.assessment.agreement.n_scored) == (15, 210)
    note = next(note.message for note in findings.notes if note.kind == "label")
    assert "50 unknown and not counted (-999); 195 normal (0, 2)." in note
    assert (findings.settings["fault_values"], findings.settings["unknown_values"]) == ("'1'", "'-999'")
    model = fit_model(table, method="mean", **options)
    assert any("rows fitted to: 15" in str(note) for note in model.notes)
    assert model.score(table, **options).assessment.agreement.n_scored == 210
    with pytest.raises(TableError) as refused:
        detect(table, method="mean", fault_values=1)
    assert refused.value.parameter == "fault_values"
    with pytest.raises(TableError, match=r"not clear which .* 'off' \(130 rows\), 'on' \(130 rows\)"):
        detect(table.assign(state=["off", "on"] * 130), method="mean", label="state")


def runs() -> pd.DataFrame:
    """Three runs that overlap in time; in each all readings are far too high in its last five rows."""
    parts = []
    for number in range(3):
        part = plant(80, seed=number)
        part["time"] += pd.Timedelta(minutes=5 + 70 * number)
        part.loc[75:, list(NAMES)] *= 3
        parts.append(part.assign(run=f"run {number}", fault=(np.arange(80) >= 75).astype(int)))
    return pd.concat(parts, ignore_index=True)


def test_groups_stay_together_and_no_event_spans_two():
    table = runs()
    shuffled = table.sample(frac=1, random_state=0)
    findings = detect(shuffled, group="run", label="fault", method="mean", top=15)
    assert findings.table.group.tolist() == table["run"].tolist()
    assert all(findings.table.time[rows].is_monotonic_increasing for rows in findings.table.spans)
    assert "run" not in findings.inputs.names
    assert findings.events["rows"].tolist() == [5, 5, 5]
    assert findings.events["group"].tolist() == ["run 0", "run 1", "run 2"]
    assert findings.rows.grouped.gap == pd.Timedelta(minutes=60)
    assert findings.assessment.agreement.faults["rows"].tolist() == [5, 5, 5]
    assert findings.assessment.agreement.faults["group"].tolist() == ["run 0", "run 1", "run 2"]
    assert findings.assessment.agreement.n_inside == 3
    assert set(findings.top()["group"]) == {"run 0", "run 1", "run 2"}
    mixed = detect(table, exclude="run", label="fault", method="mean", top=15)
    assert len(mixed.assessment.agreement.faults) > 3
    rule = detect(table, group="run", train_rule="run == 'run 0'", columns=["oil", "head [m]"], method="mean", top=5)
    assert rule.inputs.names == ("oil", "head [m]")
    assert rule.rows.fitted.sum() == 80
    settled = detect(table.assign(state="on"), group="run", modes="state", settle=2, method="mean", top=5)
    assert settled.rows.scored.all()  # the next run is no change of mode


def test_a_model_knows_the_column_of_groups():
    table = runs()
    model = fit_model(table, group="run", method="mean")
    assert "run" not in model.inputs.names
    findings = model.score(table, top=15)
    assert findings.events["group"].tolist() == ["run 0", "run 1", "run 2"]
    alone = model.score(table[table["run"] == "run 1"].drop(columns="run"), top=5)
    assert "There is no column 'run': all rows are one group." in map(str, alone.notes)
    with pytest.raises(TableError, match="has no column 'unit'"):
        model.score(table, group="unit")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"group": "unit"}, "'unit'"),
        ({"group": "oil"}, "column 'oil'"),
        ({"group": "run", "columns": ["run", "oil"]}, "'run'"),
        ({"group": "fault", "label": "fault"}, "'fault'"),
        ({"group": "time", "time": "time"}, "'time'"),
    ],
)
def test_groups_that_are_none_are_refused(options, named):
    with pytest.raises(TableError, match=named):
        detect(runs(), method="mean", **options)


@pytest.mark.parametrize("n", [1, 3, 4, 6, 11])
def test_top_n_flags_exactly_n_of_equals_the_earlier(n):
    table = pd.DataFrame({"a": [0.0, 2, 1, 2, 0, 1, 2, 1, 3, 0, 1, 2], "b": [0.0, 2, 1, 2, 0, 1, 2, 1, 3, 0, 1, 2]})
    findings = detect(table, method="norm", top=n)
    ranked = sorted(range(12), key=lambda row: (-findings.scores[row], row))
    assert rows_found(findings) == sorted(ranked[:n])
    last, following = findings.scores[ranked[n - 1]], findings.scores[ranked[n]]
    assert following <= findings.threshold <= last
    assert findings.threshold < last or last == following


@pytest.mark.parametrize("threshold", ["auto", 0.02, Fixed(0.3), TopN(6)])
def test_thresholds_are_those_of_the_training_scores(threshold):
    findings = detect(plant(), threshold=threshold, method="mean")
    limit = score_threshold(findings.scores, threshold)
    assert findings.threshold == limit
    assert (findings.flags == (findings.scores > limit)).all()
    assert findings.settings["threshold"] == str(threshold)


def test_by_default_a_table_gives_a_list():
    findings = detect(plant(), method="mean")
    assert findings.flags.sum() == 13
    assert detect(plant(2200), method="mean").flags.sum() == 100
    assert set(FAULT) <= set(rows_found(findings))


def test_gaps_join_findings():
    assert len(detect(plant(), top=5).events) == 1
    split = detect(plant(), top=5, gap="5 min")
    assert len(split.events) == 5
    assert len(detect(plant(), top=5, gap=1).events) == 1
    with pytest.raises(ValueError, match=r"gap is a duration.*Give a number of rows"):
        detect(plant(time=False), top=5, gap="1 h")


def kinds(findings):
    return {note.kind: str(note) for note in findings.notes}


def test_one_input_is_said_to_be_too_few():
    one = pd.DataFrame({"temperature": np.random.default_rng(0).normal(size=200)})
    assert "low ones do not" in kinds(penstock.detect(one, top=3, method="nsnmf"))["one input"]
    for method in ("knn", "detector"):
        assert "one input" not in kinds(penstock.detect(one, top=3, method=method))


def test_another_season_is_said_to_differ_as_a_whole():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 9))
    rows[200:] += 30
    table = pd.DataFrame(rows).add_prefix("sensor_")
    table.insert(0, "time", pd.date_range("2024-05-01", periods=400, freq="h"))
    summer = table["time"][199]
    found = penstock.detect(table, train_until=str(summer))
    assert "9 of 9 tags have shifted" in kinds(found)["no longer fits"]
    assert [round(shift.by / 30) for shift in found.assessment.shifts] == [1] * 9
    assert not found.incidents
    assert (
        "100% of the rows scored"
        in kinds(penstock.detect(table, train_until=str(summer), method="knn"))["many findings"]
    )
    assert "many findings" not in kinds(penstock.detect(table))


def test_rows_that_follow_each_other_closely_make_rates_doubtful():
    rng = np.random.default_rng(0)
    rows = np.zeros((400, 6))
    for row in range(1, len(rows)):
        rows[row] = 0.99 * rows[row - 1] + rng.normal(size=6)
    table = pd.DataFrame(rows).add_prefix("sensor_")
    time = pd.Series(pd.date_range("2024-05-01", periods=400, freq="h"), name="time")
    close = pd.concat([time, table], axis=1)
    shuffled = pd.concat([time, table.sample(frac=1, random_state=0).reset_index(drop=True)], axis=1)
    for rows in (close, table):  # with time stamps and without
        found = penstock.detect(rows, method="detector")
        assert found.assessment.chance_unknown == FOLLOWING
        assert found.events["expected_by_chance"].isna().all()
        assert found.verdict.sentence.endswith(ONLY_RANKS)
        later = penstock.fit_model(rows[:300], method="detector").score(rows[300:], top=5)
        assert later.assessment.chance_unknown == FOLLOWING
        assert np.isnan(later.assessment.threshold_expected)
    for other, method, reason in ((shuffled, "detector", ""), (close, "knn", NO_RATE)):
        found = penstock.detect(other, method=method)
        assert found.assessment.chance_unknown == reason
        assert found.events["expected_by_chance"].isna().all() == bool(reason)


def test_text_that_outweighs_the_readings_is_said():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, 4)) * 0.05).add_prefix("sensor_")
    table["state"] = rng.choice(["a", "b", "c", "d"], size=400)
    table["switch"] = rng.choice(["yes", "no"], size=400)
    found = penstock.detect(table, top=10, method="nsnmf")
    assert "is text (state, switch)" in kinds(found)["text findings"].replace("'", "")
    assert "text findings" not in kinds(penstock.detect(table, top=10, exclude=["state", "switch"]))


def test_a_rule_that_holds_for_no_row_is_said():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=["power", "b", "c"])
    noted = kinds(penstock.detect(table, top=3, modes={"idle": "power > 1000", "on": "power <= 1000"}))
    assert "No row is of the mode idle (power > 1000)" in noted["empty modes"]
    assert "empty modes" not in kinds(penstock.detect(table, top=3, modes={"on": "power <= 1000"}))


def test_an_input_that_died_is_named():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=["a", "b", "c"])
    findings = penstock.fit_model(table).score(table.assign(b=np.nan))
    assert "1 input has no reading" in kinds(findings)["dead inputs"]
    assert np.isfinite(findings.scores).all()


def test_units_of_a_line_below_the_header_and_codes_for_missing_are_used(tmp_path):
    rows = "\n".join(
        f"2024-05-01 {k // 60:02d}:{k % 60:02d},{k % 7},{-9999 if k % 10 == 0 else k % 5}" for k in range(200)
    )
    path = tmp_path / "plant.csv"
    path.write_text(f"time,flow,level\n,m3/s,bar\n{rows}\n")
    findings = penstock.detect(path, top=3, missing=[-9999])
    assert dict(findings.inputs.units) == {"flow": "m3/s", "level": "bar"}
    assert findings.inputs.values["level"].isna().sum() == 20
    model = penstock.fit_model(path, missing="-9999")
    model.save(tmp_path / "model")
    assert penstock.load(tmp_path / "model").reading.missing == ("-9999",)
