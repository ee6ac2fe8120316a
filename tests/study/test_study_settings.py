"""The settings of the study: methods by name, the paper's parameters, and its data sets."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from penstock._parameters import ParameterError
from penstock.bench import Study
from penstock.bench.datasets import Dataset
from penstock.bench.methods import build, find_class
from studies.ahmed2021 import paper, registry
from studies.ahmed2021.__main__ import app
from studies.ahmed2021.datasets import load
from studies.ahmed2021.download import record, sha256_of
from studies.ahmed2021.outcome import CONTROLS, LEFT_OPEN
from studies.ahmed2021.settings import choose, paper_study, parse

ONE = """
[[method]]
name = "mine"
detector = "NSNMF"
parameters = { alpha = 0.5, solver = { BlockSGD = { rounds = 100, stall = 0.0 } } }
datasets = ["Glass"]
seeds = [4, 2]
"""
SWEEP = "[[sweep]]\nname = 'S'\nmethods = ['mine']\nparameter = 'alpha'\nvalues = [1]\n"
WRONG = {
    "unknown key": ("tittle = 'x'" + ONE, r"here: unknown key 'tittle'\. Did you mean 'title'\?"),
    "no tables": ("sweep = [1]" + ONE, r"write \[\[sweep\]\] with two brackets"),
    "unknown base": (ONE + "[[grid]]\nbase = 'mime'\naxes = {}", r"\[\[grid\]\] 1: .*'mime'\. Did you mean 'mine'"),
    "unknown method": (ONE + SWEEP.replace("'mine'", "'mint'"), r"no \[\[method\]\] named 'mint'\. Did you mean"),
    "two values of one name": (ONE + SWEEP.replace("[1]", "[1, 1]"), r"two methods are named 'mine, S 1'"),
    "no values": (ONE + SWEEP.replace("[1]", "[]"), r"\[\[sweep\]\] 1: values must not be empty"),
    "axis no list": (ONE + "[[grid]]\nbase = 'mine'\naxes = { alpha = 1 }", r"axes: alpha must be a list; got 1"),
    "wrong order": (ONE + SWEEP.replace("alpha", "order").replace("[1]", "['random']"), r"order must be one of 'file'"),
    "above lacks a mark": (ONE + "above = { rows = 3, parameters = {} }", r"above: 'mark' is missing"),
    "leaves out what is not there": ("datasets = ['-ALOI']" + ONE, r"'-ALOI' leaves out a data set that is not there"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse(text, "here")


def test_sweeps_and_grids_become_methods() -> None:
    sweep = SWEEP.replace("[1]", "[1, 'auto']")
    first, second = parse(ONE + sweep).methods[1:]
    assert (first.name, second.name) == ("mine, S 1", "mine, S auto")
    assert first.parameters == {"alpha": 1, "solver": {"BlockSGD": {"rounds": 100, "stall": 0.0}}}
    assert first.labels == {"part": "sensitivity", "paper": "", "sweep": "S", "base": "mine", "value": 1}
    assert (first.datasets, first.seeds) == (("Glass",), (4, 2))
    inner = parse(ONE + SWEEP.replace("alpha", "solver.BlockSGD.rounds")).methods[1]
    assert inner.parameters["solver"] == {"BlockSGD": {"rounds": 1, "stall": 0.0}}
    shown = parse(ONE + SWEEP.replace("alpha", "solver").replace("[1]", "[{ BlockSGD = { rounds = 3 } }]")).methods[1]
    assert shown.labels["value"] == "BlockSGD(rounds=3)"
    assert [method.rows for method in parse(ONE + SWEEP.replace("alpha", "rows")).methods] == [None, 1]
    axes = "[grid.axes]\nalpha = [1, 2]\norder = ['file', 'shuffled']\n"
    grid = parse(f"{ONE}[[grid]]\nbase = 'mine'\n{axes}").methods[1:]
    assert [method.name for method in grid][1:3] == ["mine: alpha 1, shuffled", "mine: alpha 2, file"]
    assert (grid[-1].parameters["alpha"], grid[-1].order, grid[-1].labels["part"]) == (2, "shuffled", "nearest")
    several = "fit = [{ name = 'light', max_iter = 3, tol = 0.0 }, { name = 'full' }]\nn_components = [7]\n"
    light, full = parse(f"{ONE}[[grid]]\nbase = 'mine'\n[grid.axes]\n{several}").methods[1:]
    assert (light.name, full.name) == ("mine: light, K 7", "mine: full, K 7")
    assert light.parameters == full.parameters | {"max_iter": 3, "tol": 0.0}
    assert full.parameters["n_components"] == 7


def test_above_so_many_rows_a_method_has_other_parameters_and_a_mark() -> None:
    above = "above = { rows = 300, parameters = { alpha = 2.0 }, mark = 'other' }\n"
    small, large = parse(ONE.replace('"Glass"', '"Glass", "Pima"') + above).methods
    assert (small.name, small.datasets, small.mark) == ("mine", ("Glass",), "")
    assert (large.name, large.datasets, large.mark) == ("mine", ("Pima",), "other")
    assert large.parameters == {"alpha": 2.0}


def test_large_data_sets_have_fewer_seeds() -> None:
    small, large = parse("large = { rows = 300, seeds = 1 }" + ONE.replace('"Glass"', '"Glass", "Pima"')).methods
    assert (small.datasets, small.seeds) == (("Glass",), (4, 2))
    assert (large.datasets, large.seeds) == (("Pima",), (4,))
    with pytest.raises(ParameterError, match="large: 'seeds' is missing"):
        parse("large = { rows = 300 }" + ONE)


@pytest.fixture(scope="module")
def study() -> Study:
    return paper_study()


def test_a_part_of_the_study(study: Study) -> None:
    kept = choose(study, ["paper", "lomst"], ["LoMST", "SNMF"], ["Glass", "ALOI"], 2)
    assert [(method.name, method.datasets, method.seeds) for method in kept.methods] == [
        ("SNMF", ("Glass",), (0, 1)),
        ("SNMF", ("ALOI",), (0,)),
        ("LoMST", ("Glass",), (0, 1)),
        ("LoMST", ("ALOI",), (0,)),
    ]
    assert (kept.datasets, kept.seeds) == (("Glass", "ALOI"), (0, 1))
    assert kept.options == "--part paper --part lomst --method LoMST --method SNMF --seeds 2 --data Glass --data ALOI"
    assert "LoMST: stable, k ≤ 80" in {method.name for method in choose(study, methods=["LoMST"]).methods}
    with pytest.raises(ParameterError, match=r"there is no 'papre' in the study\. Did you mean 'paper'"):
        choose(study, ["papre"])
    with pytest.raises(ParameterError, match="nothing is left"):
        choose(study, ["variants"], datasets=["Glass"])


def test_the_papers_study_has_what_it_promises(study: Study) -> None:
    by_part: dict[str, set[str]] = {}
    for method in study.methods:
        by_part.setdefault(str(method.labels["part"]), set()).add(method.name)
    assert by_part["paper"] == {"NS-NMF", "Online NS-NMF", "NMF", "GNMF", "SNMF"}
    assert by_part["lomst"] == {"LoMST", "LoMST (sd)", "LoMST (raw)", "LoMST (best k)"}
    assert by_part["deep"] == {"AER", "DAGMM"}
    assert by_part["controls"] >= set(CONTROLS)
    assert len(by_part["peers"]) == 5
    assert len(by_part["readings"]) == 14
    central = [method.detail for method in study.methods if method.labels["part"] == "central claim"]
    assert len({(detail["form"], detail["graph"]) for detail in central}) == 8
    assert {method.labels["sweep"] for method in study.methods} >= {
        *("K", "K of SNMF and online", "alpha", "GNMF penalty", "GNMF neighbours")
    }
    named = {method.name for method in study.methods}
    assert {name for _, methods in LEFT_OPEN.values() for name in methods} <= named
    held = {method.labels["paper"] for method in study.methods} - {""}
    assert held == {*paper.true_positives, *paper.lomst_true_positives, *paper.deep_true_positives}
    grids = {method.labels["paper"] for method in study.methods if method.labels["part"] == "nearest"}
    assert grids == {*paper.true_positives, "LoMST"}  # none of the NMF methods without one
    assert study.datasets == tuple(registry.names())
    ours = next(build(method.detector, method.parameters) for method in study.methods if method.name == "NS-NMF")
    assert (ours.n_components, ours.alpha, ours.gamma) == (5, 0.8, 0.2)


def test_every_method_of_the_papers_study_can_be_made(study: Study) -> None:
    for method in study.methods:
        try:
            find_class(method.detector)
        except ParameterError as error:
            assert "install" in str(error), method.name  # noqa: PT017
            continue
        build(method.detector, method.parameters, seed=0)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        app(list(arguments))
    return int(ended.value.code or 0)


def test_the_command_runs_a_part_and_reports_it(tmp_path, monkeypatch, benchmark_data, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = ["--method", "row norm", "--method", "5th neighbour", "--data", "Glass", "--jobs", "1"]
    assert run("run", "--part", "controls", *chosen, "--folder", "study") == 0
    assert run("report", "study", "--pages", "docs") == 0
    assert "2 cells (method × data set × seed), 2 with a result" in (tmp_path / "docs" / "reproduction.md").read_text()
    assert "| 5th neighbour | 1 |" in (tmp_path / "docs" / "reproduction_appendix.md").read_text()
    assert run("datasets", "Glass") == 0
    assert "Glass               214    7         9  yes" in capfd.readouterr().out
    assert run("report", "study", "--pages", "docs") == 2
    assert run("run", "--part", "papre") == 2


COLUMNS = [
    "file", "n", "p", "anomalies", "paper_n", "paper_p", "paper_anomalies", "exact", "duplicate_rows", "differs",
]  # fmt: skip
LARGE = {"ALOI", "KDDCup99", "KDDCup99_withdup"}


def test_exact_means_the_counts_of_the_paper() -> None:
    frame = registry.provenance()
    ours = frame[["n", "p", "anomalies"]].to_numpy()
    same = (ours == frame[["paper_n", "paper_p", "paper_anomalies"]].to_numpy()).all(axis=1)
    assert same.tolist() == (frame["exact"] == "yes").tolist()
    assert set(frame["exact"]) == {"yes", "no", "reconstructed"}
    assert (frame["anomalies"] == frame["paper_anomalies"]).all()


def check_file(folder: Path, name: str) -> None:
    known = registry.entry(name)
    with gzip.open(folder / f"{name}.csv.gz") as file:
        table = pd.read_csv(file)
    labels = table.pop("outlier")
    assert (len(table), table.shape[1], int(labels.sum())) == (known.n, known.p, known.anomalies), name
    assert int(table.duplicated().sum()) == known.duplicate_rows, name


def folder_of(benchmark_data: Path) -> Path:
    return benchmark_data / "dami" if (benchmark_data / "dami").is_dir() else benchmark_data


def test_the_real_files(benchmark_data: Path) -> None:
    folder = folder_of(benchmark_data)
    checked = [name for name in registry.known_names() if (folder / f"{name}.csv.gz").is_file() and name not in LARGE]
    for name in checked:
        check_file(folder, name)
    assert set(registry.names()) - LARGE <= set(checked)


def write(folder: Path, name: str, text: str) -> None:
    with gzip.open(folder / f"{name}.csv.gz", "wt") as file:
        file.write(text)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path))
    return tmp_path


def put_in(cache: Path, name: str, text: str) -> Path:
    """As a download leaves it."""
    path = cache / "dami" / f"{name}.csv.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path.parent, name, text)
    record(cache, {path.name: sha256_of(path)})
    return path


def test_reads_a_file(folder: Path) -> None:
    write(folder, "Glass", "x0,x1,outlier\n0,0.5,0\n1,0.25,1\n")
    data = load("Glass")
    np.testing.assert_array_equal(data.X, [[0.0, 0.5], [1.0, 0.25]])
    np.testing.assert_array_equal(data.y, [0, 1])
    assert (data.name, data.n, data.p, data.n_anomalies) == ("Glass", 2, 2, 1)
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.X.flags.writeable


def test_variable_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)
    both = r"PENSTOCK_DATA is not set\. Set it to the folder.*, or fetch them with `python -m studies"
    with pytest.raises(FileNotFoundError, match=both):
        load("Glass")
    with pytest.raises(ValueError, match="Did you mean Glass"):
        load("glas")


def test_downloaded_sets_are_found(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)
    put_in(cache, "Glass", "x0,outlier\n0,0\n1,1\n")
    assert load("Glass").n == 2


def test_a_downloaded_set_that_was_changed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)
    path = put_in(cache, "Glass", "x0,outlier\n0,0\n1,1\n")
    write(path.parent, "Glass", "x0,outlier\n0,0\n1,1\n2,0\n")
    with pytest.raises(ValueError, match=r"Glass\.csv\.gz is not the one that was written.*Delete it and download"):
        load("Glass")
    (cache / "checksums.json").unlink()
    with pytest.raises(ValueError, match="is not listed in"):
        load("Glass")
    (cache / "checksums.json").write_text("[")
    with pytest.raises(ValueError, match=r"checksums\.json is damaged"):
        load("Glass")


def test_digest_is_of_the_content() -> None:
    X, y = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([0, 1])
    digest = Dataset("a", X, y).digest
    assert len(digest) == 64
    assert digest == Dataset("b", np.asfortranarray(X), y.astype(np.int32)).digest  # type: ignore[arg-type]
    assert digest == Dataset("c", np.column_stack([X, X])[:, :2], y).digest
    assert digest != Dataset("a", X, np.array([1, 0])).digest
    assert digest != Dataset("a", np.nextafter(X, 9.0), y).digest
    assert digest != Dataset("a", X.T.copy(), y).digest
    # Without the shape these two would be the same run of bytes.
    zeros = np.zeros
    assert Dataset("a", zeros((6, 1)), zeros(6, np.int64)).digest != Dataset("a", zeros((4, 2)), zeros(4, int)).digest


def test_unknown_name(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"no data set 'glas'. Did you mean Glass"):
        load("glas")
    with pytest.raises(ValueError, match=r"no data set 'qqqq'. Known are ALOI, Annthyroid"):
        load("qqqq")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x0,x1\n0,1\n", r"last column must be 'outlier'.*2 columns ending in x0, x1"),
        ("outlier\n0\n1\n", "at least one other"),
        ("x0,outlier\n0,2\n", "must hold 0 and 1 only"),
        ("x0,outlier\na,0\n", r"must be numbers without gaps; see \['x0'\]"),
        ("x0,x1,outlier\n,2,0\n1,1,1\n", "must be numbers without gaps; see the gaps"),
    ],
)
def test_wrong_columns(folder: Path, text: str, message: str) -> None:
    write(folder, "Glass", text)
    with pytest.raises(ValueError, match=message):
        load("Glass")
