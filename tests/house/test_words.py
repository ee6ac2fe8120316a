"""The words of names, docstrings, messages and pages: plain ones, and one for each thing (DESIGN's table)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "penstock"
# What to write instead.
WORDS = {
    r"judg(?:e[ds]?|ing|e?ments?)": "score, scored, assessment",
    "learnt": "fitted",
    "nobody": "no one, or say who should",
    "work_elsewhere": "use_block_backend",
    "(?:Learnt|Judgement|Told|Swept|Standing)": "a noun that says what it holds",
}
# Rooms that have none of these. A room that is clean stays clean; the others join when someone works there.
CLEAN = [
    "cli/_run_detect.py", "cli/_summary.py", "cli/_data_text.py", "columns", "detection", "explain", "graph", "report",
    "storage", "options.py", "registry.py", "prepare.py", "datasets.py", "../../docs/detect.md",
    "../../docs/glossary.md",
]  # fmt: skip


@pytest.mark.parametrize("place", CLEAN)
def test_plain_words(place):
    path = SOURCE / place
    files = [file for file in path.rglob("*") if file.suffix in (".py", ".html", ".js")] if path.is_dir() else [path]
    assert files
    wrong = [
        f"{file.name}: {found[0]} (write {instead})"
        for file in files
        for word, instead in WORDS.items()
        for found in re.finditer(rf"\b{word}\b", file.read_text(encoding="utf-8"))
    ]
    assert wrong == []
