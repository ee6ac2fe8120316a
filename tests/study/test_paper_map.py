"""docs/paper_map.md names every equation of the paper, and what it names exists and says so."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "paper_map.md").read_text()
ROWS = re.findall(r"^\| (\S+) \| .* \| `(\S+)` \| `(\S+)` \|$", PAGE, flags=re.MULTILINE)
# The labels of the paper's equations and algorithms, in its order.
LABELS = [
    "eq:apx", "eq:frob", "eq:main", "eq:loss1", "eq:anomaly", "eq:GNMF", "eq:SNMF", "eq:NSNMF", "eq:equivalence",
    "eq:equivalence2", "eq:loss", "eq:update", "algorithm1", "eq:stream", "eq:stream1", "eq:stream2", "eq:stream3",
    "eq:stream35", "eq:stream4", "eq:stream5", "eq:stream6", "eq:stream7", "eq:stream8", "eq:stream9", "algorithm2",
    "eq:stream10", "eq:evaluation", "eq:frd",
]  # fmt: skip


def resolve(path: str):
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name)
        return found
    raise AssertionError(f"{path} is not there")


def test_every_label_is_on_the_page():
    unbuilt = re.search(r"## Not built yet\n(.*?)\n## ", PAGE, flags=re.DOTALL).group(1)
    mentioned = [label for label, _, _ in ROWS] + re.findall(r"(?:eq:\w+|algorithm\d)", unbuilt)
    assert sorted(mentioned) == sorted(LABELS)


def test_the_list_of_labels_is_the_papers():
    paper = ROOT.parent / "shared" / "paper" / "ns-nmf-jmlr-2021.tex"
    if not paper.is_file():
        pytest.skip(f"the paper's source is not at {paper}")
    text = paper.read_text(errors="replace")
    assert sorted(re.findall(r"\\label\{(eq:\w+|algorithm\d)\}", text)) == sorted(LABELS)


@pytest.mark.parametrize(("label", "function", "twin"), ROWS)
def test_functions_and_twins_carry_the_label(label, function, twin):
    tag = label.replace("algorithm", "Algorithm ")
    for path in (function, twin):
        assert re.search(rf"{tag}\b", resolve(path).__doc__), f"the docstring of {path} does not name {tag}"
