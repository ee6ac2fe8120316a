"""Settings of a study: what is read, what is refused, how a study is reduced."""

from __future__ import annotations

import pytest

from penstock.bench import Method, parse_settings
from penstock.bench.methods import build
from penstock.bench.settings import SettingsError, example_settings

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
    "no order": (ONE + "order = 'random'", r"order must be 'file' or 'shuffled'; got 'random'"),
    "no rows": (ONE + "rows = 0", r"rows must be a whole number above 0; got 0"),
    "rows by half": (ONE + "rows = 1.5", r"rows must be a whole number"),
    "no seeds": ("seeds = 0" + ONE, r"here: seeds must be how many"),
    "seeds below none": ("seeds = [-1]" + ONE, r"here: seeds must be how many.*got \[-1\]"),
    "true seeds": ("seeds = true" + ONE, r"here: seeds must be how many.*got True"),
    "no data sets": ("datasets = []" + ONE, r"here: datasets must be a list"),
    "data sets by number": ("datasets = [3]" + ONE, r"here: datasets must be a list"),
    **{
        f"time limit {limit}": (f"time_limit = {limit}" + ONE, r"here: time_limit must be a number of seconds")
        for limit in ("0", "'long'", "true", "nan", "1e12")
    },
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
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
    assert len(study.methods) > 8
    for method in study.methods:
        build(method.detector, method.parameters, seed=0)


def test_only_some_methods() -> None:
    study = parse_settings(example_settings())
    paths = ["a.models.KNN", "b.models.KNN", "c.Other"]
    cut = study.only(methods=["SNMF", "Norm", "SNMF", *paths], seeds=2)
    assert [method.name for method in cut.methods] == ["Norm", "SNMF", "a.models.KNN", "b.models.KNN", "Other"]
    assert cut.methods[-1] == Method("Other", "c.Other")
    assert (
        cut.options
        == "--method SNMF --method Norm --method SNMF " + " ".join(f"--method {path}" for path in paths) + " --seeds 2"
    )
    with pytest.raises(SettingsError, match=r"no method 'NMFF' in the study\. Did you mean 'NMF'"):
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
