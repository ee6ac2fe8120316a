"""One table lists detectors and thresholds: every place that names them agrees with it."""

from __future__ import annotations

import ast
from inspect import signature
from pathlib import Path

import pytest

import penstock
from penstock import detectors, registry, thresholds
from penstock._parameters import bounds_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", registry.DETECTORS)
def test_a_listed_detector_is_a_public_class_with_a_summary(name: str) -> None:
    if name in {"AER", "DAGMM"}:
        pytest.importorskip("torch", reason="needs PyTorch: run by `make test-all`")
    entry, cls = registry.DETECTORS[name], registry.detector_class(name)
    assert cls.__name__ == name
    assert cls.__module__ == entry.module
    assert getattr(detectors, name) is cls
    if name in penstock.__all__:
        assert getattr(penstock, name) is cls
    else:  # a study's, or a control
        assert not entry.module.startswith("penstock.") or name in {"MeanDistance", "NormScore"}
    assert set(entry.checks) <= set(registry.parameter_names(cls))
    assert entry.summary.endswith(".")


@pytest.mark.parametrize("name", registry.THRESHOLDS)
def test_a_listed_threshold_is_a_public_class(name: str) -> None:
    cls = registry.threshold_class(name)
    assert getattr(thresholds, name) is cls
    cls(**registry.THRESHOLDS[name].checks)


def test_names_are_found_in_any_case_and_mistyped_ones_get_a_suggestion() -> None:
    assert registry.find_detector("LOMST") == registry.find_detector("lomst") == "LoMST"
    assert registry.find_threshold("Drifting-Peaks") == "DriftingPeaks"
    with pytest.raises(ValueError, match=r"There is no method 'lmst'. Did you mean 'lomst'\? There are detector"):
        registry.make_detector("lmst")
    with pytest.raises(ValueError, match=r"no threshold 'x'. There are auto, conformal, deviation"):
        registry.find_threshold("x", ["auto"])


def test_make_detector_passes_parameters_on() -> None:
    assert registry.make_detector("NSNMF", n_components=None).get_params()["random_state"] == 0
    assert registry.make_detector("Mean", 3).get_params() == registry.make_detector("mean").get_params()
    made = registry.make_detector("knn")
    assert registry.make_detector(made) is made
    with pytest.raises(ValueError, match=r"KNNDistance has no parameter 'alpha'. It has .* have it: nsnmf, laplacian"):
        registry.make_detector("knn", alpha=0.5)


def test_a_class_outside_the_package_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.DETECTORS, "Far", registry.Entry("absent_package.far", None, "Nowhere."))
    with pytest.raises(ImportError, match=r"Far is defined in absent_package.far, which cannot be imported here"):
        registry.detector_class("Far")


def test_the_documentation_shows_the_tables() -> None:
    page = (ROOT / "docs" / "which_detector.md").read_text(encoding="utf-8")
    for entries in (registry.DETECTORS, registry.THRESHOLDS):
        rows = [f"| `{name}` | `{each.method}` | {each.summary} |" for name, each in entries.items() if each.method]
        assert "\n".join(["| class | name | what it does |", "|---|---|---|", *rows]) in page


@pytest.mark.parametrize("module", [penstock, detectors])
def test_names_for_type_checkers_exist(module: object) -> None:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))  # type: ignore[attr-defined]
    block = next(node for node in tree.body if isinstance(node, ast.If))
    named = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert named - {None} <= set(module.__all__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [*registry.DETECTORS, *registry.THRESHOLDS])
def test_every_plain_parameter_declares_its_bounds(name: str) -> None:
    """One table for a class and its bases: what is not in it would be checked nowhere."""
    if name in {"AER", "DAGMM"}:
        pytest.importorskip("torch", reason="needs PyTorch: run by `make test-all`")
    made = registry.detector_class(name) if name in registry.DETECTORS else registry.threshold_class(name)
    defaults = {key: given.default for key, given in signature(made).parameters.items()}
    plain = {key for key, value in defaults.items() if type(value) in (bool, int, float, str)}
    assert plain <= bounds_of(made).keys()
