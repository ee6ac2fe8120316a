"""What a cell is known by: its data, parameters, seed and code, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from study_detectors import Place, fits, made_place, write_data

from penstock.bench.circumstances import describe_run
from penstock.bench.code_digest import code_digest, forget_digests
from penstock.bench.planning import plan
from penstock.bench.protocol import run_study
from penstock.bench.rows_file import ROWS_FILE
from penstock.bench.settings import Study
from penstock.bench.study_folder import read_results


@pytest.fixture
def own_place(tmp_path: Path) -> Iterator[Place]:
    with made_place(tmp_path) as place:
        yield place


def keys(study: Study) -> dict[tuple[str, str, int | None], str]:
    return {(cell.method.name, Path(cell.dataset).name, cell.seed): cell.key for cell in plan(study)}


def changed(before: dict[Any, str], after: dict[Any, str]) -> set[str]:
    return {"/".join(map(str, cell)) for cell in after if before.get(cell) != after[cell]}


def test_keys_change_with_data_parameters_and_seeds(own_place: Place) -> None:
    sets = [own_place.file("one.csv"), write_data(own_place.folder / "two.csv", seed=5)]
    methods = "noted Noted\nsure Sure\nshuffled Sure order = 'shuffled'"
    before = keys(own_place.study(methods, sets))
    assert len(set(before.values())) == len(before) == 10
    assert changed(before, keys(own_place.study(methods, sets, title="other", time_limit=3))) == set()
    write_data(own_place.folder / "two.csv", seed=6)
    after = keys(own_place.study(methods, sets))
    assert changed(before, after) == {name for name in map("/".join, product_of(after)) if "two.csv" in name}
    with_more = keys(own_place.study("noted Noted parameters = { power = 2 }\nsure Sure", sets))
    assert changed(after, with_more) == {f"noted/{name}/{seed}" for name in ("one.csv", "two.csv") for seed in (0, 1)}
    more_seeds = keys(own_place.study(methods, sets, seeds=[0, 1, 2]))
    assert changed(after, more_seeds) == {
        f"{method}/{name}/2" for method in ("noted", "shuffled") for name in ("one.csv", "two.csv")
    }
    rows = keys(own_place.study("sure Sure rows = 10\nshuffled Sure order = 'shuffled'\nnoted Noted", sets))
    assert {name.split("/")[0] for name in changed(after, rows)} == {"sure"}


def product_of(cells: dict[tuple[str, str, int | None], str]) -> list[tuple[str, str, str]]:
    return [(method, name, str(seed)) for method, name, seed in cells]


def test_keys_change_with_the_code_and_not_with_its_words(own_place: Place) -> None:
    folder = own_place.folder
    (folder / "beside.py").write_text("FACTOR = 1\n")
    (folder / "leaning.py").write_text(
        "from beside import FACTOR\nfrom my_detectors import Sure\n\n\nclass D(Sure): pass\n"
    )
    study = own_place.study("sure Sure\nleaning leaning.D\nknn KNNDistance\nforest sklearn.ensemble.IsolationForest")
    before = keys(study)
    module = folder / "my_detectors.py"
    text = module.read_text()
    module.write_text(text.replace('"""Detectors of my own."""', '"""Other words."""\n# and a remark\n'))
    assert changed(before, keys(study)) == set()
    module.write_text(text.replace("0.3 * chance", "0.2 * chance"))
    edited = keys(study)
    assert {name.split("/")[0] for name in changed(before, edited)} == {"sure", "leaning"}
    (folder / "beside.py").write_text("FACTOR = 22\n")
    assert {name.split("/")[0] for name in changed(edited, keys(study))} == {"leaning"}


def test_a_parameter_that_json_does_not_know(own_place: Place) -> None:
    (own_place.folder / "dated_detector.py").write_text("class D:\n    def __init__(self, **given): pass\n")
    dated = own_place.study("any dated_detector.D parameters = { since = 2020-01-01 }")
    later = own_place.study("any dated_detector.D parameters = { since = 2020-01-02 }")
    assert changed(keys(dated), keys(later)) == {"any/one.csv/None"}


def test_files_of_the_same_name_are_told_apart(own_place: Place) -> None:
    other = write_data(own_place.folder / "other" / "one.csv", seed=9)
    lone = write_data(own_place.folder / "lone.csv", seed=10)
    cells = list(plan(own_place.study("sure Sure", [own_place.file("one.csv"), other, lone])))
    assert [cell.planned()["dataset"] for cell in cells] == [own_place.file("one.csv"), other, "lone"]
    assert len({cell.key for cell in cells}) == 3


def test_each_of_equal_cells_has_its_own_mark(own_place: Place) -> None:
    methods = """
        special Sure above = { rows = 10, parameters = { power = 2.0 }, mark = "another way" }
        plain Sure parameters = { power = 2.0 }
    """
    study = own_place.study(methods)
    first, second = plan(study)
    assert first.key == second.key
    assert (first.parameters, first.mark, second.mark) == ({"power": 2.0}, "another way", "")
    outcome = {"key": first.key, "status": "ok", "why": "", "mark": "another way", "roc_auc": 0.5}
    folder = own_place.folder / "study"
    folder.mkdir()
    (folder / ROWS_FILE).write_text(json.dumps(outcome) + "\n")
    rows = run_study(study, folder).rows
    assert list(rows["mark"]) == ["another way", ""]
    assert list(read_results(folder).rows["mark"]) == ["another way", ""]
    assert list(rows["roc_auc"]) == [0.5, 0.5]
    assert not fits(own_place.folder)


def test_the_digest_of_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "digested"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("def half(x): return x / 2\n")
    (package / "far.py").write_bytes("NAME = 'Z\xfcrich'\n".encode("latin-1"))
    source = (
        "try:\n    from .far import NAME\nexcept SyntaxError:\n    pass\nfrom . import parts\n\nclass D:\n    pass\n"
    )
    (package / "detector.py").write_text(source)

    def digest() -> str:
        forget_digests()
        return code_digest("digested.detector.D")

    first = digest()
    assert len(first) == 64
    (package / "detector.py").write_text(source.replace("D:\n    pass", "D:\n    '''Words.'''") + "# and a remark\n")
    assert digest() == first  # a docstring alone is as good as `pass`
    (package / "parts.py").write_text("def half(x): return x / 3\n")
    second = digest()
    assert second != first
    (package / "far.py").write_bytes("NAME = 'B\xe4rn'\n".encode("latin-1"))
    assert digest() not in (first, second)


def test_versions_stand_for_packages() -> None:
    import sklearn

    assert code_digest("sklearn.ensemble.IsolationForest").startswith(f"scikit-learn=={sklearn.__version__}, numba==")
    assert code_digest("NSNMF") == code_digest("penstock.detectors.nsnmf.LaplacianNSNMF") != code_digest("LoMST")


def test_the_circumstances() -> None:
    run = describe_run(["NMF", "scipy.stats.norm", "my_detectors.Sure"], "then")
    assert run["started"] == "then"
    assert {"python", "penstock", "numpy", "scipy"} <= set(run["versions"])
    assert "cores" in run["machine"]
