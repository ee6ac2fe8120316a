"""Settings files: what is read, what is varied, what is refused; and those of the paper's study."""

from __future__ import annotations

import tomllib
from collections import Counter

import pytest

from penstock.bench import datasets, paper
from penstock.bench.methods import MethodError, build, find_class
from penstock.bench.settings import Method, SettingsError, Study
from penstock.bench.settings_file import paper_settings, parse_settings, read_settings

ONE = """
[[method]]
name = "mine"
detector = "NSNMF"
parameters = { alpha = 0.5, solver = { BlockSGD = { rounds = 100, stall = 0.0 } } }
datasets = ["Glass"]
seeds = [4, 2]
"""
WRONG = {
    "no TOML": ("title = ", r"here: not TOML: .*"),
    "no method": ('title = "empty"', r"here: there is no \[\[method\]\]"),
    "unknown key": ("tittle = 'x'" + ONE, r"here: unknown key 'tittle'\. Did you mean 'title'\?"),
    "unknown key, unlike any": ("zzz = 'x'" + ONE, r"here: unknown key 'zzz'\. Known are title, datasets"),
    "unknown key of a method": (ONE + "detecter = 'x'", r"\[\[method\]\] 1: unknown key 'detecter'.*'detector'"),
    "missing detector": ('[[method]]\nname = "x"', r"\[\[method\]\] 1: 'detector' is missing"),
    "missing name": ('[[method]]\ndetector = "NMF"', r"\[\[method\]\] 1: 'name' is missing"),
    "name no text": ('[[method]]\nname = 3\ndetector = "NMF"', r"name must be a text; got 3"),
    "parameters no table": (ONE.replace("{ alpha", "3 #"), r"parameters must be a table; got 3"),
    "title no text": ("title = 3" + ONE, r"here: title must be a text; got 3"),
    "one bracket": ('[method]\nname = "x"', r"write \[\[method\]\] with two brackets"),
    "no tables": ("sweep = [1]" + ONE, r"write \[\[sweep\]\] with two brackets"),
    "unknown base": (
        ONE + "[[grid]]\nbase = 'mime'\naxes = {}",
        r"\[\[grid\]\] 1: .*no .*'mime'\. Did you mean 'mine'",
    ),
    "unknown method": (
        ONE + "[[sweep]]\nname = 'K'\nmethods = ['mint']\nparameter = 'alpha'\nvalues = [1]",
        r"\[\[sweep\]\] 1: there is no \[\[method\]\] named 'mint'\. Did you mean 'mine'",
    ),
    "methods of another kind": (
        ONE + "[[sweep]]\nname = 'K'\nmethods = [['mine']]\nparameter = 'alpha'\nvalues = [1]",
        r"\[\[sweep\]\] 1: there is no \[\[method\]\] named \['mine'\]",
    ),
    "two of one name": (ONE + ONE, r"two methods are named 'mine'"),
    "two values of one name": (
        ONE + "[[sweep]]\nname = 'a'\nmethods = ['mine']\nparameter = 'alpha'\nvalues = [1, 1]",
        r"two methods are named 'mine, a 1'",
    ),
    "sweep without values": (
        ONE + "[[sweep]]\nname = 'a'\nmethods = ['mine']\nparameter = 'alpha'\nvalues = []",
        r"\[\[sweep\]\] 1: values must not be empty",
    ),
    "sweep without methods": (
        ONE + "[[sweep]]\nname = 'a'\nmethods = []\nparameter = 'alpha'\nvalues = [1]",
        r"\[\[sweep\]\] 1: methods must not be empty",
    ),
    "grid without axes": (ONE + "[[grid]]\nbase = 'mine'\naxes = {}", r"\[\[grid\]\] 1: axes must not be empty"),
    "axis no list": (ONE + "[[grid]]\nbase = 'mine'\naxes = { alpha = 1 }", r"axes: alpha must be a list; got 1"),
    "axis a text": (ONE + "[[grid]]\nbase = 'mine'\naxes = { score = 'ab' }", r"axes: score must be a list; got 'ab'"),
    "axis empty": (ONE + "[[grid]]\nbase = 'mine'\naxes = { alpha = [] }", r"axes: alpha must not be empty"),
    "axis of wrong orders": (
        ONE + "[[grid]]\nbase = 'mine'\naxes = { order = ['file', 'reversed'] }",
        r"\[\[grid\]\] 1: order must be 'file' or 'shuffled'; got 'reversed'",
    ),
    "sweep of wrong orders": (
        ONE + "[[sweep]]\nname = 'a'\nmethods = ['mine']\nparameter = 'order'\nvalues = ['random']",
        r"\[\[sweep\]\] 1: order must be 'file' or 'shuffled'; got 'random'",
    ),
    "sweep of wrong rows": (
        ONE + "[[sweep]]\nname = 'a'\nmethods = ['mine']\nparameter = 'rows'\nvalues = ['all']",
        r"\[\[sweep\]\] 1: rows must be a whole number above 0; got 'all'",
    ),
    "no order": (ONE + "order = 'random'", r"order must be 'file' or 'shuffled'; got 'random'"),
    "no rows": (ONE + "rows = 0", r"rows must be a whole number above 0; got 0"),
    "rows below none": (ONE + "rows = -5", r"rows must be a whole number above 0; got -5"),
    "rows by half": (ONE + "rows = 1.5", r"rows must be a whole number"),
    "above lacks a mark": (ONE + "above = { rows = 3, parameters = {} }", r"above: 'mark' is missing"),
    "above has more": (ONE + "above = { rows = 3, parameters = {}, mark = 'x', n = 1 }", r"above: unknown key 'n'"),
    "no seeds": ("seeds = 0" + ONE, r"here: seeds must be how many"),
    "empty seeds": ("seeds = []" + ONE, r"here: seeds must be how many"),
    "seeds below none": ("seeds = [-1]" + ONE, r"here: seeds must be how many.*got \[-1\]"),
    "seeds by half": ("seeds = 2.5" + ONE, r"here: seeds must be how many.*got 2.5"),
    "true seeds": ("seeds = true" + ONE, r"here: seeds must be how many.*got True"),
    "no data sets": ("datasets = []" + ONE, r"here: datasets must be a list"),
    "data sets by number": ("datasets = [3]" + ONE, r"here: datasets must be a list"),
    **{
        f"time limit {limit}": (f"time_limit = {limit}" + ONE, r"here: time_limit must be a number of seconds")
        for limit in ("0", "-1", "'long'", "true", "nan", "inf", "1e12")
    },
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_settings(text, "here")


def test_what_is_left_out_has_a_default() -> None:
    study = parse_settings('[[method]]\nname = "x"\ndetector = "NMF"')
    assert (study.title, study.seeds, study.time_limit) == ("Study", (0, 1, 2, 3, 4), 1800.0)
    assert study.datasets == tuple(datasets.names())
    (method,) = study.methods
    assert (method.part, method.order, method.rows, method.parameters) == ("study", "file", None, {})
    assert (method.seeds, method.datasets, method.above, method.sweep, method.base) == (None, None, None, "", "")


def test_what_is_given_is_kept() -> None:
    study = parse_settings("time_limit = 7\ndatasets = ['Glass', 'mine.csv::fault', 'Glass']\nseeds = 2" + ONE)
    assert (study.datasets, study.seeds, study.time_limit) == (("Glass", "mine.csv::fault"), (0, 1), 7.0)
    assert study.methods[0].seeds == (4, 2)
    assert parse_settings("datasets = 'Pima'" + ONE).datasets == ("Pima",)
    assert len(parse_settings("datasets = ['mine.csv', 'paper']" + ONE).datasets) == 21


def swept(parameter: str, values: str, more: str = "") -> Study:
    text = f"[[sweep]]\nname = 'S'\nmethods = ['mine']\nparameter = '{parameter}'\nvalues = {values}\n{more}"
    return parse_settings(ONE + text)


def test_a_sweep_over_a_parameter() -> None:
    first, second = swept("alpha", "[1, 'auto']").methods[1:]
    assert (first.name, second.name) == ("mine, S 1", "mine, S auto")
    assert first.parameters == {"alpha": 1, "solver": {"BlockSGD": {"rounds": 100, "stall": 0.0}}}
    assert (first.sweep, first.base, first.value, second.value) == ("S", "mine", 1, "auto")
    assert (first.part, first.paper, first.datasets, first.seeds) == ("sensitivity", "", ("Glass",), (4, 2))
    other = swept("alpha", "[1]", "part = 'p'\ndatasets = ['Pima']\nseeds = 1").methods[1]
    assert (other.part, other.datasets, other.seeds) == ("p", ("Pima",), (0,))


def test_a_sweep_inside_a_table() -> None:
    study = swept("solver.BlockSGD.rounds", "[5]")
    assert study.methods[1].parameters["solver"] == {"BlockSGD": {"rounds": 5, "stall": 0.0}}
    assert study.methods[0].parameters["solver"] == {"BlockSGD": {"rounds": 100, "stall": 0.0}}
    assert swept("alpha.Inner.x", "[5]").methods[1].parameters["alpha"] == {"Inner": {"x": 5}}


def test_a_sweep_over_settings_shows_them_as_a_call() -> None:
    method = swept("solver", "[{ BlockSGD = { rounds = 3, stall = 0.5 } }, { a = 1 }]").methods[1]
    assert method.value == "BlockSGD(rounds=3, stall=0.5)"
    assert build(method.detector, method.parameters).solver.rounds == 3


def test_a_sweep_over_the_rows_and_their_order() -> None:
    assert [method.rows for method in swept("rows", "[10, 20]").methods] == [None, 10, 20]
    assert [method.order for method in swept("order", "['file', 'shuffled']").methods] == ["file", "file", "shuffled"]
    assert "rows" not in swept("rows", "[10]").methods[1].parameters


def test_a_grid_has_all_combinations() -> None:
    text = "[[grid]]\nbase = 'mine'\n[grid.axes]\nalpha = [1, 2]\norder = ['file', 'shuffled']\n'solver.X.y' = [3]"
    study = parse_settings(ONE + text)
    assert [method.name for method in study.methods[1:]] == [
        "mine: alpha 1, order file, y 3",
        "mine: alpha 1, order shuffled, y 3",
        "mine: alpha 2, order file, y 3",
        "mine: alpha 2, order shuffled, y 3",
    ]
    last = study.methods[-1]
    assert (last.parameters["alpha"], last.order, last.base, last.sweep) == (2, "shuffled", "mine", "")
    assert (last.part, last.datasets, last.seeds) == ("nearest", ("Glass",), (4, 2))


@pytest.fixture(scope="module")
def study() -> Study:
    return read_settings()


def test_only_parts(study: Study) -> None:
    assert {method.part for method in study.only(parts=["paper", "lomst"]).methods} == {"paper", "lomst"}
    with pytest.raises(SettingsError, match=r"no part 'papre' in the study\. Did you mean 'paper'"):
        study.only(parts=["papre"])


def test_only_methods_with_what_varies_them(study: Study) -> None:
    kept = study.only(methods=["LoMST"]).methods
    assert "LoMST (stable)" not in {method.name for method in kept}
    assert {"LoMST", "LoMST, rows 1000"} < {method.name for method in kept}
    assert {method.base for method in kept} == {"", "LoMST"}
    (one,) = study.only(methods=["LoMST, rows 1000"]).methods
    assert one.rows == 1000
    (plain,) = study.only(methods=["LoMST"], parts=["lomst"]).methods
    assert plain.name == "LoMST"
    with pytest.raises(SettingsError, match=r"no method 'NMFF' in the study\. Did you mean 'NMF'"):
        study.only(methods=["NMFF"])
    with pytest.raises(SettingsError, match=r"[Nn]othing is left"):
        study.only(methods=["LoMST"], parts=["paper"])


def test_a_detector_of_ours_is_a_method_by_its_class_name(study: Study) -> None:
    cut = study.only(methods=["Detector", "Norm", "Detector"], seeds=2)
    assert cut.methods[1:] == (Method("Detector", "Detector"),)
    assert cut.methods[0].name == "Norm"
    assert cut.options == "--method Detector --method Norm --method Detector --seeds 2"
    assert study.only(methods=["NMF"], parts=["paper"]).methods[0].paper == "NMF"  # the study's own comes first
    with pytest.raises(SettingsError, match="Did you mean 'Detector'"):
        study.only(methods=["detector"])


def test_a_study_of_other_data_sets_has_another_title(study: Study) -> None:
    assert study.only(datasets=["pump.csv::fault"]).title == "Study of pump.csv::fault"
    assert study.only(datasets=["Glass", "mine.csv"]).title == study.only(methods=["NMF"]).title == study.title


def test_only_data_sets(study: Study) -> None:
    cut = study.only(datasets=["Glass", "mine.csv"])
    assert cut.datasets == ("Glass", "mine.csv")
    assert {method.datasets for method in cut.methods} == {None}  # also where a sweep had its own
    assert study.only(datasets=["paper"]).datasets == tuple(datasets.names())
    assert study.only().datasets == study.datasets


def test_only_seeds() -> None:
    given = parse_settings("seeds = [7, 8, 9]" + ONE + "[[method]]\nname = 'other'\ndetector = 'NMF'")
    cut = given.only(seeds=1)
    assert (cut.seeds, cut.methods[0].seeds, cut.methods[1].seeds) == ((7,), (4,), None)
    assert given.only(seeds=5).seeds == (0, 1, 2, 3, 4)
    assert given.only().seeds == (7, 8, 9)


def test_the_papers_study_has_what_it_promises(study: Study) -> None:
    parts = {part: {method.name for method in study.methods if method.part == part} for part in all_parts(study)}
    assert parts["paper"] == {"NS-NMF", "Online NS-NMF", "NMF", "GNMF", "SNMF"}
    assert parts["lomst"] == {"LoMST", "LoMST (stable)", "LoMST (raw)", "LoMST (best k)"}
    assert parts["deep"] == {"AER", "DAGMM"}
    assert parts["controls"] == {"Norm", "Distance from mean", "5th neighbour"}
    peers = {name.removesuffix(" (pyod)") for name in parts["peers"]}
    assert peers == {"KNN", "LOF", "IForest", "ECOD", "COPOD", "HBOS", "PCA", "OCSVM", "INNE"}
    central = {(m.parameters["form"], m.parameters["graph"]) for m in study.methods if m.part == "central claim"}
    graphs = ("tree", "tree, 0-1", "5 nearest, 0-1", "gaussian")
    assert central == {(form, graph) for form in ("symmetric", "laplacian") for graph in graphs}
    assert {method.sweep for method in study.methods} >= {
        *("K", "alpha", "GNMF penalty", "GNMF neighbours", "iterations", "buffer size", "sample order", "rows")
    }
    assert {method.base for method in study.methods if method.part == "nearest"} == {"NS-NMF", "Online NS-NMF", "LoMST"}


def test_the_papers_study_is_held_against_the_paper(study: Study) -> None:
    held = {method.paper for method in study.methods} - {""}
    assert held == {*paper.true_positives, *paper.lomst_true_positives, *paper.deep_true_positives}


def test_the_papers_settings(study: Study) -> None:
    built = {m.name: build(m.detector, m.parameters) for m in study.methods if m.part == "paper"}
    ours, online = built["NS-NMF"], built["Online NS-NMF"]
    assert (ours.n_components, ours.alpha, ours.gamma) == (5, 0.8, 0.2)
    assert (online.n_components, online.alpha, online.buffer_size) == (5, 0.8, 20)
    assert {detector.n_components for detector in built.values()} == {5}


def test_no_two_of_the_papers_study_share_a_name(study: Study) -> None:
    twice = [name for name, count in Counter(method.name for method in study.methods).items() if count > 1]
    assert not twice


def test_every_method_of_the_papers_study_can_be_built(study: Study) -> None:
    missing = set()
    for method in study.methods:
        try:
            find_class(method.detector)
        except MethodError as error:
            assert "install" in str(error), method.name  # noqa: PT017
            missing.add(method.detector)
            continue
        build(method.detector, method.parameters, seed=0)
        if method.above is not None:
            build(method.detector, method.above.parameters, seed=0)
    if missing:
        pytest.skip(f"not installed: {', '.join(sorted(missing))}")


def test_the_settings_that_are_printed_are_those_that_are_run() -> None:
    assert len(tomllib.loads(paper_settings())["method"]) > 30
    assert read_settings().text == paper_settings()


def all_parts(study: Study) -> set[str]:
    return {method.part for method in study.methods}
