"""The words of names, docstrings, messages and pages: plain ones, and one for each thing (DESIGN's table)."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_plain_words():
    files = [file for file in SOURCE.rglob("*") if file.suffix in (".py", ".html", ".js")]
    files += [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert len(files) > 200
    wrong = [
        f"{file.name}: {found[0]} (write {instead})"
        for file in files
        for word, instead in WORDS.items()
        for found in re.finditer(rf"\b{word}\b", file.read_text(encoding="utf-8"))
    ]
    assert wrong == []
