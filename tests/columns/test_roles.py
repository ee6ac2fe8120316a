"""Roles of columns: what they are, how users change them, and what follows from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import penstock
from penstock import SensorDetector, detect, fit_model, load, score
from penstock.cli import main
from penstock.columns import check_columns, choose_inputs, read_roles
from penstock.io import TableError, read_table
from penstock.report import write_html
from penstock.sensors.unmoved import follow_moves

N, LEARNT, START, ROWS = 2000, 1400, 1700, 30
VALVE, HEADER, HOT = "relief valve [%]", "header [bar]", "bearing [°C]"


def plant(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Four sensors of one load, a pump that it switches, and columns that never move."""
    rng = np.random.default_rng(seed)
    load = 50 + 10 * np.sin(np.arange(n) / 20) + 2 * np.sin(np.arange(n) / 7)
    noise = rng.normal(size=(4, n))
    return pd.DataFrame(
        {
            "time": pd.date_range("2024-05-01", periods=n, freq="10min"),
            "load [MW]": load + 0.2 * noise[0],
            HOT: 30 + load / 2 + 0.2 * noise[1],
            "flow [m³/s]": load / 5 + 0.05 * noise[2],
            "feed [bar]": load / 10 + 0.05 * noise[3],
            "pump": (load > 52) * 1.0,
            VALVE: 0.0,
            HEADER: 5.0,
            "speed limit": 100.0,
        }
    )


def moved(column: str, value: float, rows: int = ROWS) -> pd.DataFrame:
    table = plant()
    table.loc[START : START + rows - 1, column] = value
    return table


def roles_of(table: pd.DataFrame, **options: object) -> dict[str, str]:
    return {report.name: report.role for report in check_columns(read_table(table, **options)) if report.role != "time"}


# What columns are.


def test_roles_of_a_plant():
    table = plant().assign(
        cycle=np.arange(N),
        energy=np.abs(plant()["load [MW]"]).cumsum(),
        oil=20 + np.arange(N) * 0.005 + np.random.default_rng(1).normal(0, 0.05, N),
        Fail=(np.arange(N) % 500 > 480) * 1,
        mode=np.where(np.arange(N) % 300 < 150, "run", "stop"),
        quality=np.where(np.arange(N) % 90 == 0, 0, 192),
        comment=[f"note {row}" for row in range(N)],
        target=np.repeat([40.0, 60.0, 55.5, 61.0], N // 4),
    )
    found = roles_of(table)
    assert [name for name, role in found.items() if role == "sensor"] == [
        "load [MW]", HOT, "flow [m³/s]", "feed [bar]", "oil",
    ]  # fmt: skip
    assert {name: role for name, role in found.items() if role != "sensor"} == {
        "pump": "state", VALVE: "constant", HEADER: "constant", "speed limit": "setting", "cycle": "counter",
        "energy": "counter", "Fail": "label", "mode": "state", "quality": "quality", "comment": "text",
        "target": "setting",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["fail", "failed", "Failure", "is_failed", "Machine failing", "FAIL", "Ausfall"])
def test_labels_by_name(name):
    assert roles_of(pd.DataFrame({name: np.arange(N) % 2, "x": np.arange(N) ** 0.5}))[name] == "label"


def test_only_the_rows_learnt_from_decide():
    table = plant()
    table.loc[LEARNT:, "pump"] = np.random.default_rng(0).normal(size=N - LEARNT)
    read = read_table(table)
    reports = {report.name: report for report in check_columns(read, np.arange(N) < LEARNT)}
    assert reports["pump"].role == "state"
    assert reports["pump"].levels == (0.0, 1.0)
    assert {report.name: report.role for report in check_columns(read)}["pump"] == "sensor"
    still = moved(VALVE, 80.0, 300)
    reports = {report.name: report for report in check_columns(read_table(still), np.arange(N) < LEARNT)}
    assert (reports[VALVE].role, reports[VALVE].grade) == ("constant", "A")


def test_a_note_counts_the_roles():
    table = plant().assign(cycle=np.arange(N))
    note = next(note for note in detect(table, most_explained=0).notes if note.kind == "roles")
    assert note.message == "Columns: 4 sensors, 1 state; left out: 1 setting, 2 constants, 1 counter."
    counters = next(note for note in detect(table, most_explained=0).notes if note.kind == "counters")
    assert (counters.columns, counters.changed) == (("cycle",), True)
    assert "--role cycle=sensor" in counters.message


# What users say.


@pytest.mark.parametrize("given", [{"cycle": "sensor"}, "cycle=sensor", ["cycle=sensor"]])
def test_a_counter_is_brought_back(given):
    found = fit_model(plant().assign(cycle=np.arange(N)), roles=given)
    assert "cycle" in found.inputs.names
    assert found.inputs.role_of("cycle").role == "sensor"


@pytest.mark.parametrize(
    ("options", "parameter", "words"),
    [
        ({"roles": {"pmp": "state"}}, "roles", "Did you mean 'pump'?"),
        ({"roles": "pump=stat"}, "roles", "Did you mean 'state'?"),
        ({"roles": "pump"}, "roles", "column=role"),
        ({"roles": ["pump=state", "pump=sensor"]}, "roles", "two roles"),
        ({"roles": {"load [MW]": "state"}}, "roles", "different values"),
        ({"roles": {"mode": "sensor"}}, "roles", "holds text"),
        ({"drivers": "flw [m³/s]"}, "drivers", "Did you mean 'flow [m³/s]'?"),
        ({"drivers": "mode"}, "drivers", "holds text"),
        ({"drivers": "pump", "roles": "pump=state"}, "drivers", "driver and as a state"),
        ({"drivers": ["load [MW]", HOT], "columns": ["load [MW]", HOT]}, "drivers", "never scored"),
    ],
)
def test_what_cannot_be_a_role(options, parameter, words):
    table = plant().assign(mode=np.where(np.arange(N) % 300 < 150, "run", "stop"))
    with pytest.raises(TableError, match=words.replace("[", r"\[").replace("?", r"\?")) as caught:
        detect(table, **options)
    assert caught.value.parameter == parameter


def test_drivers_explain_and_are_neither_scored_nor_named():
    table = plant()
    table.loc[START : START + ROWS - 1, HOT] += 8
    named = detect(table, train_until=table["time"][LEARNT])
    assert named.incident_table.sort_values("rank")["first_sensor"].iloc[0] == HOT
    found = detect(table, train_until=table["time"][LEARNT], drivers=[HOT])
    assert found.inputs.choice.drivers == (HOT,)
    assert HOT in found.inputs.names
    assert (found.rows.evidence[:, found.inputs.names.index(HOT)] == 0).all()
    assert HOT not in {sensor.name for incident in found.incidents for sensor in incident.sensors}
    assert HOT not in set(found.incident_table["first_sensor"])
    assert found.settings["drivers"] == repr(HOT)
    by_rows = detect(table, method="detector", drivers=HOT, most_explained=0)
    assert HOT not in by_rows.inputs.names
    assert next(note for note in by_rows.notes if note.kind == "drivers").columns == (HOT,)


def test_columns_named_like_weather_or_set_points_are_drivers_and_said_to_be():
    table = plant().rename(columns={"feed [bar]": "Außentemperatur [°C]"})
    found = detect(table, most_explained=0)
    assert found.inputs.choice.drivers == ("Außentemperatur [°C]",)
    note = next(note for note in found.notes if note.kind == "drivers by name")
    assert note.columns == ("Außentemperatur [°C]",)
    assert "--role Außentemperatur [°C]=sensor" in note.message
    assert not detect(table, most_explained=0, roles={"Außentemperatur [°C]": "sensor"}).inputs.choice.drivers
    by_rows = detect(table, method="detector", most_explained=0)  # it has no use for drivers: all stay inputs
    assert "Außentemperatur [°C]" in by_rows.inputs.names


def test_a_weather_station_has_sensors():
    names = {"load [MW]": "wind speed", HOT: "outside temperature", "flow [m³/s]": "rain"}
    found = detect(plant().rename(columns=names), most_explained=0)
    assert not found.inputs.choice.drivers


def test_roles_are_saved_and_used_for_new_data(tmp_path):
    model = fit_model(plant().iloc[:LEARNT], roles={"feed [bar]": "setting"}, drivers="load [MW]")
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.inputs == model.inputs
    assert loaded.inputs.role_of("load [MW]").role == "driver"
    assert loaded.inputs.role_of("pump").levels == (0.0, 1.0)
    new = moved("feed [bar]", 30.0).iloc[LEARNT:]
    first, again = score(model, new), score(loaded, new)
    np.testing.assert_array_equal(first.scores, again.scores)
    assert (again.rows.evidence[:, again.inputs.names.index("feed [bar]")] == 0).all()


def test_the_command_line_and_its_files_take_roles(tmp_path, capsys):
    file, model, again, config = (str(tmp_path / name) for name in ("plant.csv", "m", "again", "o.toml"))
    plant().assign(cycle=np.arange(N)).to_csv(file, index=False)
    given = ["--role", "cycle=sensor", "--role", "pump=setting", "--driver", "load [MW],flow [m³/s]"]
    assert main(["fit", file, "--model", model, "-q", *given]) == 0
    inputs = load(model).inputs
    assert (inputs.role_of("cycle").role, inputs.role_of("pump").role) == ("sensor", "setting")
    assert inputs.drivers == ("load [MW]", "flow [m³/s]")
    text = 'role = ["cycle=sensor", "pump=setting"]\ndriver = ["load [MW],flow [m³/s]"]\n'
    Path(config).write_text(text, encoding="utf-8")
    assert main(["fit", file, "--model", again, "-q", "--config", config]) == 0
    assert load(again).inputs == inputs
    capsys.readouterr()
    assert main(["detect", file, "--role", "pmp=state"]) == 2
    said = capsys.readouterr().err
    assert "--role" in said
    assert "Did you mean 'pump'?" in said


def test_roles_are_read():
    assert read_roles(()) == {}
    with pytest.raises(TableError):
        read_roles("=state")


# A column that never moved.


@pytest.mark.parametrize(("column", "value"), [(VALVE, 80.0), (HEADER, 0.0), (HEADER, 9.0)])
@pytest.mark.parametrize("how", ["detect", "score"])
def test_a_constant_that_moves_is_an_incident_that_names_it(column, value, how):
    table = moved(column, value)
    if how == "detect":
        found, first = detect(table, train_until=table["time"][LEARNT - 1]), 0
    else:
        found, first = score(fit_model(table.iloc[:LEARNT]), table.iloc[LEARNT:]), LEARNT
    incident = min(found.incidents, key=lambda each: each.rank)
    assert incident.sensors[0].name == column
    assert incident.sensors[0].condition == "moved for the first time"
    assert incident.source == "unclear"
    assert incident.start + first == START
    assert abs(incident.end + first - (START + ROWS - 1)) <= 2
    assert found.flags[START - first : START + ROWS - first].all()


@pytest.mark.parametrize(("column", "value"), [(VALVE, 80.0), (HEADER, 0.0)])
def test_a_constant_that_moves_stands_out_for_detector(column, value):
    table = moved(column, value)
    found = score(fit_model(table.iloc[:LEARNT], method="detector"), table.iloc[LEARNT:])
    event = int(found.events["rank"].idxmin())
    why = found.explain(event).variables
    assert why["variable"].iloc[0] == column
    assert found.flags[START - LEARNT : START + ROWS - LEARNT].all()


@pytest.mark.parametrize(
    ("column", "value"), [(VALVE, 1e-9), (HEADER, 5.0000001), (HEADER, 5.001), ("speed limit", 90.0)]
)
@pytest.mark.parametrize("method", ["sensors", "detector"])
def test_rounding_is_no_move_nor_is_a_set_point(column, value, method):
    model = fit_model(plant().iloc[:LEARNT], method=method)
    usual, found = (score(model, each.iloc[LEARNT:], most_explained=0) for each in (plant(), moved(column, value)))
    if method == "sensors":
        np.testing.assert_array_equal(found.scores, usual.scores)
    if column != "speed limit":
        assert found.flags.sum() == usual.flags.sum()


@pytest.mark.parametrize("method", ["sensors", "detector"])
def test_a_constant_costs_nothing_while_it_stands_still(method):
    table, without = plant(), plant().drop(columns=[VALVE, HEADER, "speed limit"])
    for how in (lambda t: fit_model(t.iloc[:LEARNT], method=method), lambda t: fit_model(t, method=method)):
        one, other = how(table), how(without)
        assert set(one.inputs.names) - set(other.inputs.names) == {VALVE, HEADER, "speed limit"}
        np.testing.assert_allclose(one.training_scores, other.training_scores, rtol=1e-9, atol=1e-9)
        found, plain = score(one, table, most_explained=0), score(other, without, most_explained=0)
        np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-9, atol=1e-9)
    alone = detect(table, method=method, most_explained=0)
    assert not {VALVE, HEADER} & set(alone.inputs.names)


def test_the_methods_of_the_paper_leave_constants_out():
    assert VALVE not in fit_model(plant(), method="nsnmf", parameters={"n_components": 2}).inputs.names


def test_a_model_with_constants_is_saved_and_goes_on_to_the_last_bit(tmp_path):
    table = moved(VALVE, 80.0)
    X = table.drop(columns="time").to_numpy()
    detector = SensorDetector().fit(X[:LEARNT])
    whole = detector.assess_series(X[LEARNT:])
    monitor = detector.monitor()
    parts = [monitor.update_many(X[LEARNT : START + 5]).scores]
    monitor.save(tmp_path / "m")
    parts.append(penstock.load(tmp_path / "m").update_many(X[START + 5 :]).scores)
    np.testing.assert_array_equal(np.concatenate(parts), whole.scores)
    assert whole.evidence[START - LEARNT].argmax() == list(table.columns).index(VALVE) - 1


def test_news_is_new_once_and_a_level_that_stays_is_known():
    sizes = np.zeros((1000, 1))
    sizes[100:600], sizes[700:710], sizes[800] = 1.0, 1.0, 0.5
    state = np.zeros((2, 1))
    found = np.concatenate([follow_moves(each, state) for each in np.array_split(sizes, [50, 101, 350, 705])])
    np.testing.assert_array_equal(found, follow_moves(sizes, np.zeros((2, 1))))
    assert (found[100:280] == 1).all()
    assert (found[280:700] == 0).all()
    assert (found[700:710] == 0.5).all()
    assert found[800] == pytest.approx(0.5 / 3)


@pytest.mark.parametrize(("column", "value"), [(VALVE, 80.0), (HEADER, 0.0)])
def test_a_short_excursion_is_named_in_a_table_assessed_by_itself(column, value):
    found = detect(moved(column, value))
    assert min(found.incidents, key=lambda each: each.rank).sensors[0].name == column


def test_text_that_never_changed_and_changes():
    table = plant().assign(state="run")
    table.loc[START : START + ROWS - 1, "state"] = "trip"
    found = score(fit_model(table.iloc[:LEARNT]), table.iloc[LEARNT:])
    assert min(found.incidents, key=lambda each: each.rank).sensors[0].name == "state=run"


# States, and what can be expected.


def switching() -> pd.DataFrame:
    """A pump that switches often, and its flow, with one time when it is said to be off and delivers."""
    table = plant()
    table["pump"] = (np.sin(np.arange(N) / 4) > 0) * 1.0
    table["pump flow"] = 20 * table["pump"] + np.random.default_rng(3).normal(0, 0.3, N)
    on = START + int(np.argmax(table["pump"][START:]))
    table.loc[on : on + 9, "pump"] = 0.0
    return table


def test_states_are_on_or_off(tmp_path):
    found = detect(switching(), train_until=switching()["time"][LEARNT])
    pump = found.inputs.names.index("pump")
    assert found.inputs.choice.role_of("pump").role == "state"
    assert set(np.unique(found.inputs.expected["pump"])) <= {0.0, 1.0}
    incident = next(each for each in found.incidents if pump in [sensor.column for sensor in each.sensors])
    sensor = next(each for each in incident.sensors if each.column == pump)
    assert sensor.condition in ("switched off", "off where it usually is on", "off")
    assert not incident.reason.startswith("Probably the sensor: 'pump'")
    write_html(found, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "off" in page
    why = str(found.explain(int(found.rows.grouped.of_row[incident.peak])))
    assert "pump: off, expected o" in why or "pump: on, expected o" in why


def test_expected_values_stay_within_what_a_tag_can_be():
    rng = np.random.default_rng(5)
    table = plant()
    table["valve [%]"] = np.clip(table["load [MW]"] * 3 - 120, 0, 100)
    table["drain"] = np.clip(table["load [MW]"] - 55, 0, None) + np.abs(rng.normal(0, 0.01, N))
    table.loc[START : START + ROWS - 1, "load [MW]"] -= 30
    found = detect(table, train_until=table["time"][LEARNT])
    raw = found.rows.parts[0].part.detector.expected(found.inputs.values.to_numpy())
    for name in ("valve [%]", "drain"):
        assert raw[:, found.inputs.names.index(name)].min() < 0
        assert found.inputs.expected[name].min() >= 0
    assert found.inputs.expected["valve [%]"].max() <= 100
    table["drain"] -= 1  # it was below 0
    free = detect(table, train_until=table["time"][LEARNT], most_explained=0)
    assert free.inputs.expected["drain"].min() < 0


def test_left_out_counters_are_said_in_the_report(tmp_path):
    found = detect(plant().assign(cycle=np.arange(N)), most_explained=0)
    assert {tag.name: tag.role for tag in found.data.tags}["cycle"] == "counter"
    assert "cycle" in {each.name for each in choose_inputs(read_table(plant().assign(cycle=np.arange(N)))).left_out}
    write_html(found, tmp_path / "r.html")
    assert "counter" in (tmp_path / "r.html").read_text()
