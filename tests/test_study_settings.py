"""Settings of the study: sweeps, grids and `above` become plain methods; and what the paper's study promises."""

from __future__ import annotations

import pytest

from penstock.bench import Study
from penstock.bench.methods import MethodError, build, find_class
from penstock.bench.settings import SettingsError
from studies.ahmed2021 import paper, registry
from studies.ahmed2021.__main__ import app
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
    "wrong order": (ONE + SWEEP.replace("alpha", "order").replace("[1]", "['random']"), r"order must be 'file' or"),
    "above lacks a mark": (ONE + "above = { rows = 3, parameters = {} }", r"above: 'mark' is missing"),
    "leaves out what is not there": ("datasets = ['-ALOI']" + ONE, r"'-ALOI' leaves out a data set that is not there"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
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
    assert [method.name for method in grid][1:3] == ["mine: alpha 1, order shuffled", "mine: alpha 2, order file"]
    assert (grid[-1].parameters["alpha"], grid[-1].order, grid[-1].labels["part"]) == (2, "shuffled", "nearest")


def test_above_so_many_rows_a_method_has_other_parameters_and_a_mark() -> None:
    above = "above = { rows = 300, parameters = { alpha = 2.0 }, mark = 'other' }\n"
    small, large = parse(ONE.replace('"Glass"', '"Glass", "Pima"') + above).methods
    assert (small.name, small.datasets, small.mark) == ("mine", ("Glass",), "")
    assert (large.name, large.datasets, large.mark) == ("mine", ("Pima",), "other")
    assert large.parameters == {"alpha": 2.0}


@pytest.fixture(scope="module")
def study() -> Study:
    return paper_study()


def test_a_part_of_the_study(study: Study) -> None:
    kept = choose(study, ["paper", "lomst"], ["LoMST", "SNMF"], ["Glass", "ALOI"], 2)
    assert [(method.name, method.datasets) for method in kept.methods] == [
        ("SNMF", ("Glass",)),
        ("SNMF", ("ALOI",)),
        ("LoMST", None),
    ]
    assert (kept.datasets, kept.seeds) == (("Glass", "ALOI"), (0, 1))
    assert kept.options == "--part paper --part lomst --method LoMST --method SNMF --seeds 2 --data Glass --data ALOI"
    assert "LoMST, rows 1000" in {method.name for method in choose(study, methods=["LoMST"]).methods}
    with pytest.raises(SettingsError, match=r"no part 'papre' in the study\. Did you mean 'paper'"):
        choose(study, ["papre"])
    with pytest.raises(SettingsError, match="Nothing is left"):
        choose(study, ["variants"], datasets=["Glass"])


def test_the_papers_study_has_what_it_promises(study: Study) -> None:
    by_part: dict[str, set[str]] = {}
    for method in study.methods:
        by_part.setdefault(str(method.labels["part"]), set()).add(method.name)
    assert by_part["paper"] == {"NS-NMF", "Online NS-NMF", "NMF", "GNMF", "SNMF"}
    assert by_part["lomst"] == {"LoMST", "LoMST (stable)", "LoMST (raw)", "LoMST (best k)"}
    assert by_part["deep"] == {"AER", "DAGMM"}
    assert len(by_part["peers"]) == 9
    central = [method.detail for method in study.methods if method.labels["part"] == "central claim"]
    assert len({(detail["form"], detail["graph"]) for detail in central}) == 8
    assert {method.labels["sweep"] for method in study.methods} >= {
        *("K", "alpha", "GNMF penalty", "GNMF neighbours", "iterations", "buffer size", "sample order", "rows")
    }
    held = {method.labels["paper"] for method in study.methods} - {""}
    assert held == {*paper.true_positives, *paper.lomst_true_positives, *paper.deep_true_positives}
    assert study.datasets == tuple(registry.names())
    ours = next(build(method.detector, method.parameters) for method in study.methods if method.name == "NS-NMF")
    assert (ours.n_components, ours.alpha, ours.gamma) == (5, 0.8, 0.2)


def test_every_method_of_the_papers_study_can_be_made(study: Study) -> None:
    for method in study.methods:
        try:
            find_class(method.detector)
        except MethodError as error:
            assert "install" in str(error), method.name  # noqa: PT017
            continue
        build(method.detector, method.parameters, seed=0)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        app(list(arguments))
    return int(ended.value.code or 0)


def test_the_command_runs_a_part_and_reports_it(tmp_path, monkeypatch, benchmark_data, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = ["--part", "controls", "--method", "Norm", "--method", "5th neighbour", "--data", "Glass", "--jobs", "1"]
    assert run("run", *chosen, "--folder", "study") == 0
    assert run("report", "study", "--markdown", "docs/reproduction.md") == 0
    text = (tmp_path / "docs" / "reproduction.md").read_text()
    assert "| 5th neighbour | controls |" in text
    assert list((tmp_path / "docs" / "images" / "reproduction").glob("*.svg"))
    assert "<h1>The study of Ahmed et al. (2021)</h1>" in (tmp_path / "study" / "study.html").read_text()
    assert run("datasets", "Glass") == 0
    assert "Glass               214    7         9  yes" in capfd.readouterr().out
    assert run("report", "study") == 2
    assert run("run", "--part", "papre") == 2
