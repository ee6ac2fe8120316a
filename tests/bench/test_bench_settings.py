"""Settings of studies of one's own, and the data sets that they name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from penstock._parameters import ParameterError
from penstock.bench import Method, load_file, parse_settings
from penstock.bench.methods import build
from penstock.bench.settings import example_settings
from penstock.explain.labels import known_faults
from penstock.io import TableError, read_table

ONE = """
[[method]]
name = "mine"
detector = "NSNMF"
parameters = { alpha = 0.5, solver = { BlockSGD = { rounds = 100, stall = 0.0 } } }
datasets = ["a.csv"]
seeds = [4, 2]
"""
WRONG = {
    "no TOML": ("title = ", r"here: not TOML: .*"),
    "no method": ('title = "empty"', r"here: there is no \[\[method\]\]"),
    "unknown key": ("tittle = 'x'" + ONE, r"here: unknown key 'tittle'\. Did you mean 'title'\?"),
    "unknown key, unlike any": ("zzz = 'x'" + ONE, r"here: unknown key 'zzz'\. Known are title, datasets"),
    "unknown key of a method": (ONE + "detecter = 'x'", r"\[\[method\]\] 1: unknown key 'detecter'.*'detector'"),
    "missing detector": ('[[method]]\nname = "x"', r"\[\[method\]\] 1: 'detector' is missing"),
    "name no text": ('[[method]]\nname = 3\ndetector = "NMF"', r"name must be a text; got 3"),
    "parameters no table": (ONE.replace("{ alpha", "3 #"), r"parameters must be a table; got 3"),
    "title no text": ("title = 3" + ONE, r"here: title must be a text; got 3"),
    "one bracket": ('[method]\nname = "x"', r"write \[\[method\]\] with two brackets"),
    "two of one name": (ONE + ONE, r"two methods are named 'mine'"),
    "no order": (ONE + "order = 'random'", r"order must be one of 'file', 'shuffled'; got 'random'"),
    "no rows": (ONE + "rows = 0", r"rows must be a whole number ≥ 1; got 0"),
    "rows by half": (ONE + "rows = 1.5", r"rows must be a whole number"),
    "no seeds": ("seeds = 0" + ONE, r"here: seeds must be how many"),
    "seeds below none": ("seeds = [-1]" + ONE, r"here: seeds must be how many.*got \[-1\]"),
    "true seeds": ("seeds = true" + ONE, r"here: seeds must be how many.*got True"),
    "no data sets": ("datasets = []" + ONE, r"here: datasets must be a list"),
    "data sets by number": ("datasets = [3]" + ONE, r"here: datasets must be a list"),
    **{
        f"time limit {limit}": (f"time_limit = {limit}" + ONE, r"here: time_limit must be a finite number > 0")
        for limit in ("0", "'long'", "true", "nan", "1e12")
    },
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_settings(text, "here")


def test_what_is_left_out_has_a_default_and_what_is_given_is_kept() -> None:
    study = parse_settings('[[method]]\nname = "x"\ndetector = "NMF"')
    assert (study.title, study.seeds, study.time_limit, study.datasets) == ("Study", (0, 1, 2, 3, 4), 1800.0, ())
    assert study.methods == (Method("x", "NMF"),)
    study = parse_settings("time_limit = 7\ndatasets = ['a.csv', 'b.csv::fault', 'a.csv']\nseeds = 2" + ONE)
    assert (study.datasets, study.seeds, study.time_limit) == (("a.csv", "b.csv::fault"), (0, 1), 7.0)
    assert (study.methods[0].seeds, study.methods[0].datasets) == ((4, 2), ("a.csv",))
    assert parse_settings("datasets = 'b.csv'" + ONE).datasets == ("b.csv",)


def test_the_example_can_be_run() -> None:
    study = parse_settings(example_settings())
    assert [method.name for method in study.methods] == [
        "Detector",
        "SensorDetector",
        "NS-NMF",
        "KNN",
        "IForest",
        "PCA",
    ]
    for method in study.methods:
        build(method.detector, method.parameters, seed=0)


def test_only_some_methods() -> None:
    study = parse_settings(example_settings())
    paths = ["a.models.KNN", "b.models.KNN", "c.Other"]
    cut = study.only(methods=["SNMF", "KNN", "SNMF", *paths], seeds=2)
    assert [method.name for method in cut.methods] == ["KNN", "SNMF", "a.models.KNN", "b.models.KNN", "Other"]
    assert cut.methods[-1] == Method("Other", "c.Other")
    assert (
        cut.options
        == "--method SNMF --method KNN --method SNMF " + " ".join(f"--method {path}" for path in paths) + " --seeds 2"
    )
    with pytest.raises(ParameterError, match=r"^method: there is no 'NMFF' in the study\. Did you mean 'NMF'"):
        study.only(methods=["NMFF"])


def test_only_some_data_sets_and_seeds() -> None:
    study = parse_settings("seeds = [7, 8, 9]\ndatasets = ['a.csv']" + ONE + "[[method]]\nname = 'b'\ndetector = 'NMF'")
    cut = study.only(datasets=["a.csv", "c.csv"])
    assert (cut.datasets, cut.title) == (("a.csv", "c.csv"), "Study")
    assert {method.datasets for method in cut.methods} == {None}
    assert study.only(datasets=["pump.csv::fault"]).title == "Study of pump.csv::fault"
    cut = study.only(seeds=1)
    assert (cut.seeds, cut.methods[0].seeds, cut.methods[1].seeds) == ((7,), (4,), None)
    assert study.only(seeds=5).seeds == (0, 1, 2, 3, 4)
    assert study.limited(3).time_limit == 3.0


def written(folder: Path, text: str, name: str = "pump.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["outlier", "Label", "ANOMALY", "is_anomaly", "y", "Class", "target"])
def test_finds_the_label_by_its_name(tmp_path: Path, name: str) -> None:
    data = load_file(written(tmp_path, f"a,{name},b\n1,0,2.5\n3,1,4\n5,0,6\n"))
    np.testing.assert_array_equal(data.X, [[1, 2.5], [3, 4], [5, 6]])
    np.testing.assert_array_equal(data.y, [0, 1, 0])
    assert (data.name, data.n_anomalies, data.y.dtype) == ("pump", 1, np.int64)
    assert data.X.flags.c_contiguous


@pytest.mark.parametrize(
    ("normal", "anomalous"),
    [
        ("0", "1"),
        ("false", "TRUE"),
        ("no", "Yes"),
        ("inlier", "outlier"),
        ("0.0", "1.0"),
        ("0", "2"),
        ("1", "-1"),
        ("no", "trip"),
    ],
)
def test_a_label_is_read_as_by_detect(tmp_path: Path, normal: str, anomalous: str) -> None:
    path = written(tmp_path, f"a,label\n1,{normal}\n2,{anomalous}\n3,{normal}\n")
    data = load_file(path)
    truth = known_faults(read_table(path, label="label").label)
    assert data.y.tolist() == truth.faults.astype(int).tolist() == [0, 1, 0]
    assert data.notes[0] == truth.sentence


def test_the_label_column_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, "label,fault\n1,no\n0,yes\n")
    assert load_file(f"{path}::fault").y.tolist() == [0, 1]
    assert load_file(path, label="fault").X.tolist() == [[1.0], [0.0]]


def test_the_time_is_no_input_and_rows_are_in_its_order(tmp_path: Path) -> None:
    rows = "2024-01-02 00:00,5,1\n2024-01-01 00:00,6,0\n2024-01-03 00:00,7,0\n"
    data = load_file(written(tmp_path, f"time,a,label\n{rows}"))
    assert (data.X.tolist(), data.y.tolist()) == ([[6.0], [5.0], [7.0]], [0, 1, 0])
    assert data.time is not None
    assert data.time.is_monotonic_increasing


def test_runs_training_rows_and_causes(tmp_path: Path) -> None:
    hours = [f"2024-01-01 {hour:02}:00" for hour in range(6)]
    faults = [f"{row},{int(row == 5)},{'b; a' if row == 5 else ''}" for row in range(6)]
    lines = [f"{when},{run},{rest}" for run in "xy" for when, rest in zip(hours, faults, strict=True)]
    text = "\n".join(["t,run,a,label,why,b", *(f"{line},{number}" for number, line in enumerate(lines)), ""])
    path = written(tmp_path, text)
    data = load_file(path, group="run", cause="why", train_until=2)
    assert (data.names, data.p, data.groups.tolist()) == (("a", "b"), 2, [0] * 6 + [1] * 6)
    assert np.flatnonzero(data.train).tolist() == [0, 1, 6, 7]
    assert data.causes.tolist() == ["", "", "", "", "", "b; a"] * 2
    until = load_file(path, exclude=["why"], group="run", train_until="2024-01-01 03:00")
    assert np.flatnonzero(until.train).tolist() == [0, 1, 2, 3, 6, 7, 8, 9]
    plain = load_file(path, exclude=["why"], group="run")
    assert len({data.digest, until.digest, plain.digest}) == 3
    for until_when, words in (
        ("2023-12-31", "train_until: there is no row to learn from until 2023-12-31; pump.csv has 12 rows from"),
        ("99", "train_until: there is no row to score after row 99"),
        ("soon", "train_until: 'soon' is no time stamp"),
    ):
        with pytest.raises(TableError, match=words):
            load_file(path, exclude=["why"], group="run", train_until=until_when)
    with pytest.raises(TableError, match=r"no time stamps to compare 2024-05 with\. Give a number of rows"):
        load_file(written(tmp_path, "a,label\n1,0\n2,1\n"), train_until="2024-05")
    days = pd.date_range("2024-01-01", periods=2100, freq="D").strftime("%Y-%m-%d")
    long = written(
        tmp_path, "t,a,label\n" + "".join(f"{day},{row % 7},{row % 9 % 2}\n" for row, day in enumerate(days))
    )
    with pytest.raises(TableError, match=r"train_until: 2024 may be a year of pump\.csv or a number of its rows"):
        load_file(long, train_until="2024")
    assert [load_file(long, train_until=until).train.sum() for until in ("2024-12", "2000")] == [366, 2000]
    with pytest.raises(TableError, match=r"no column 'c' \(given as cause, in column 'why'\)"):
        load_file(written(tmp_path, "a,label,why\n1,0,\n2,1,c\n"), cause="why")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b\n1,0\n2,1\n",
            r"no column called outlier, .* or target .* columns are 'a', 'b'\. Name .*pump\.csv::column",
        ),
        ("a,Label,y\n1,0,0\n2,1,1\n", r"more than one column that may be the label: 'Label', 'y'\. Name"),
        ("a,label\n1,0\n2,-1\n3,1\n", r"not clear which values of the label column 'label' .* Write 0 for normal rows"),
        ("a,label\n1,b\n2,g\n3,g\n", r"not clear which values of the label column"),
        ("a,label\n1,0\n2,1\n3,-999\n", r"'label' holds .*999.* in row 2 \(counted from 0\), .* Write 0 for normal"),
        ("a,label\n1,0\n2,1\n3,\n", r"holds nothing in row 2"),
        (
            "a,s,label\n1,on,0\n2,off,1\n",
            r"column 's' holds text, 'on' in row 0 \(counted from 0\)\. .* take numbers only",
        ),
        ("a,s,t2,label\n1,on,x,0\n2,off,y,1\n", r"column 's' holds text.* \(as do 't2'\)"),
        (
            "a,b,label\n1,2,0\n,,1\n,5,0\n",
            r"column 'a', row 1 \(counted from 0\) and all others hold nothing\. Correct",
        ),
        ("a,b,label\n1,,0\n2,,1\n", r"column 'b' has no number at all|'b' holds text"),
    ],
)
def test_refusals(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        load_file(written(tmp_path, text))


def test_gaps_are_kept(tmp_path: Path) -> None:
    data = load_file(written(tmp_path, "a,b,label\n1,2,0\n3,,1\n,5,0\n"))
    np.testing.assert_array_equal(data.X, [[1, 2], [3, np.nan], [np.nan, 5]])


def test_rows_without_a_time_are_not_dropped(tmp_path: Path) -> None:
    rows = "".join(f"2024-01-01 00:{minute:02},{minute},0\n" for minute in range(30))
    with pytest.raises(
        TableError, match=r"column 'time' is taken for the time, and 1 row .* row 30 \(counted from 0\)"
    ):
        load_file(written(tmp_path, f"time,a,label\n{rows},5,1\n"))


def test_no_such_file_or_column(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"There is no file .*pomp\.csv"):
        load_file(str(tmp_path / "pomp.csv"))
    path = written(tmp_path, "a,fault\n1,0\n2,1\n")
    with pytest.raises(TableError, match=r"no column 'fuult' \(given as label\).*Did you mean 'fault'"):
        load_file(f"{path}::fuult")
    with pytest.raises(TableError, match="no column after '::'"):
        load_file(f"{path}::")


def test_columns_that_are_no_inputs_are_named_after_the_label(tmp_path: Path) -> None:
    file = tmp_path / "pump.csv"
    file.write_text("flow,shift,again,fault\n1,3,0,0\n2,3,0,0\n9,4,1,1\n")
    with pytest.raises(TableError, match=r"'again' tells the label in every row.*::fault::again"):
        load_file(f"{file}::fault")
    assert load_file(f"{file}::fault::again").p == 2
    assert load_file(f"{file}::fault::again, shift").X.tolist() == [[1.0], [2.0], [9.0]]
    for normal, faulty in (("7", "2"), ("", "4")):  # a code of faults tells it as well
        file.write_text(f"flow,code,fault\n1,{normal},0\n2,{normal},0\n9,{faulty},1\n8,{faulty},1\n")
        with pytest.raises(TableError, match=r"'code' tells the label in every row.*::fault::code"):
            load_file(f"{file}::fault")
