"""Every code block of README.md and docs/ runs, and output that is shown is the output made.

The blocks of a page run in order, in one folder that holds the sample data. Of Python blocks the names are kept; a
block whose first line is a comment with a file name, such as `# mine.toml`, is written to that file instead. Of shell
blocks, `penstock …` runs in this process and must end with exit code 0, or with that of a comment `exit code 1`; `pip`
and `make` are not run, but extras and targets must exist. A block of text right after a block is its output; numbers in
it may differ in the last digits. `<!-- not run: reason -->` and `<!-- slow -->` above a block do what they say.

`python tests/house/test_documents.py README.md …` writes the outputs of these pages anew, and
the pictures of docs/examples.md.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.cli import main
from penstock.datasets import load_plant
from penstock.simulate import write_plant

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>slow|not run: [^\n]+) -->\n+)?```(?P<language>python|sh|bash|toml)\n(?P<code>.*?)^```\n"
    r"(?P<between>\n*```text\n)?(?(between)(?P<output>.*?)^```\n)",
    re.MULTILINE | re.DOTALL,
)
FILE_NAME = re.compile(r"# ([\w.-]+\.(?:py|toml))\n")
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]\d+)?")
BIN = Path(sys.executable).parent


@dataclass
class Page:
    """A page at work: the folder with its files, and the names that its Python blocks have made."""

    path: Path
    names: dict[str, Any]

    def run(self, block: re.Match[str]) -> str:
        """Run a block and return what it prints."""
        code, language = block["code"], block["language"]
        named = FILE_NAME.match(code)
        if language == "toml":
            tomllib.loads(code)
        if named:
            Path(named[1]).write_text(code, encoding="utf-8")
            return ""
        printed = io.StringIO()
        with redirect_stdout(printed):
            if language == "python":
                above = block.string[: block.start("code")].count("\n")  # so that an error names the line of the page
                exec(compile("\n" * above + code, self.path.name, "exec"), self.names)
            elif language in {"sh", "bash"}:
                for line in code.replace("\\\n", " ").replace("|\n", "| ").splitlines():
                    run_line(line)
        return printed.getvalue()


def run_line(line: str) -> None:
    """Run a line of a shell block, and check its exit code."""
    words = shlex.split(line, comments=True)
    expected = int(found[1]) if (found := re.search(r"#.*exit code (\d)", line)) else 0
    if not words:
        return
    if words[0] == "make":
        targets = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert all(re.search(rf"^{word}:", targets, re.MULTILINE) for word in words[1:] if "=" not in word), line
    elif "pip" in words[:1] or words[:2] == ["uvx", "pipx"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        wanted = {extra for some in re.findall(r"\[([\w,]+)\]", line) for extra in some.split(",")}
        assert wanted <= set(project["optional-dependencies"]), line
    elif words[0] == "penstock" and {"open", "serve", "--follow"} & set(words):  # do not end by themselves
        shown = io.StringIO()
        with redirect_stdout(shown):
            assert main([words[1], "--help"]) == 0
        assert all(word in shown.getvalue() for word in words if word.startswith("--")), line
    elif words[0] == "penstock" and not {"|", ">", "<", "&"} & set(words):
        told = io.StringIO()
        with redirect_stderr(told):
            code = main(words[1:])
        assert code == expected, f"{line}: exit code {code}\n{told.getvalue()}"
    else:
        here = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
        ran = subprocess.run(["sh", "-c", line], env=here, capture_output=True, text=True, check=False, timeout=300)
        sys.stdout.write(ran.stdout)
        assert ran.returncode == expected, f"{line}: exit code {ran.returncode}\n{ran.stderr}"


def prepare(folder: Path) -> None:
    """Put the sample data into a folder: all of it, in two halves, and with labels."""
    plant = load_plant()
    write_plant(plant, folder)
    labelled = plant.table.iloc[:, -12:].assign(fault=plant.is_anomalous.astype(int)).dropna()
    for name, table in {
        "good_months.csv": plant.table[:"2015-09-12"],
        "today.csv": plant.table["2015-10-01":],
        "labelled.csv": labelled[::4],
        "pump.csv": labelled[1::4],
    }.items():
        table.to_csv(folder / name)


def same_output(printed: str, shown: str) -> bool:
    """Return whether two outputs have the same text, and numbers that are equal to three digits."""
    texts = [[line.rstrip() for line in NUMBER.sub("#", text).strip().splitlines()] for text in (printed, shown)]
    numbers = [[float(found) for found in NUMBER.findall(text)] for text in (printed, shown)]
    return texts[0] == texts[1] and numbers[0] == pytest.approx(numbers[1], rel=2e-3)


def blocks_of(page: Path) -> list[re.Match[str]]:
    return [
        block for block in BLOCK.finditer(page.read_text(encoding="utf-8")) if "not run" not in (block["mark"] or "")
    ]


def test_code_is_in_fenced_blocks() -> None:
    """What is indented would not be run."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"\n\n {4}(?! *([*-]|\d+\.) )\S.*", text), page.name


def test_the_image_is_built_from_all_that_a_build_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    image = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert f"COPY {project['tool']['hatch']['metadata']['hooks']['custom']['path']} tools/" in image
    assert set(re.search(r"\[([\w,]+)\]'", image)[1].split(",")) <= set(project["project"]["optional-dependencies"])


WITH_CODE = [page for page in PAGES if blocks_of(page)]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    prepare(folder)
    return folder


@pytest.mark.parametrize(
    ("page", "slow"),
    [
        pytest.param(page, slow, id=f"{page.name}{' slow' * slow}", marks=[pytest.mark.slow] * slow)
        for page in WITH_CODE
        for slow in (False, True)
        if not slow or any(block["mark"] for block in blocks_of(page))
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_code_blocks_of_a_page_run(
    page: Path, slow: bool, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(samples, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("COLUMNS", "100")
    at_work = Page(page, {"__name__": "__main__"})
    for block in blocks_of(page):
        if block["mark"] and not slow:
            continue
        printed = at_work.run(block)
        if block["output"] is not None:
            assert same_output(printed, block["output"]), f"{page.name} shows\n{block['output']}\nbut it is\n{printed}"


def test_links_into_the_repository_lead_somewhere() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if "_build" in page.parts or "generated" in page.parts:
            continue
        for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub and MyST give to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_the_api_page_has_every_public_name() -> None:
    shown = re.findall(r"^   (penstock\.[\w.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {f"penstock.{name}" for name in penstock.__all__} <= set(shown)
    for name in shown:
        module, _, attribute = name.rpartition(".")
        assert getattr(importlib.import_module(module), attribute).__doc__, name


def test_every_page_is_in_the_site() -> None:
    listed = re.findall(r"^[\w-]+$", "\n".join(page.read_text(encoding="utf-8") for page in PAGES), re.MULTILINE)
    assert {page.stem for page in PAGES[1:]} - {"index"} <= set(listed)


def test_help_shows_commands_in_groups_with_examples(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # a narrow terminal cuts words
    assert main(["--help"]) == 0
    shown = capfd.readouterr().out
    assert [shown.index(word) for word in ("A file", "Live", "Sample data", "Examples")] == sorted(
        shown.index(word) for word in ("A file", "Live", "Sample data", "Examples")
    )
    assert " Commands " not in shown  # the group of commands that are in none
    assert "--install-completion" in shown


def test_output_is_compared() -> None:
    assert same_output("a 1.0001\n b", "a 1.0  \n b\n")
    assert not same_output("a 1.01", "a 1.0")
    assert not same_output("a 1.0", "b 1.0")


def rewrite(page: Path) -> None:
    """Run the blocks of a page, and write what they print into it."""
    text, changes = page.read_text(encoding="utf-8"), []
    at_work = Page(page, {"__name__": "__main__"})
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        prepare(Path(folder))
        os.chdir(folder)
        sys.path.insert(0, folder)
        for block in blocks_of(page):
            printed = at_work.run(block)
            if block["output"] is not None and not same_output(printed, block["output"]):
                lines = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
                changes.append((*block.span("output"), lines))
        for picture in re.findall(r"\(images/examples/([\w-]+\.png)\)", text):
            shutil.copy(picture, page.parent / "images" / "examples" / picture)
        os.chdir(ROOT)
    for start, end, lines in reversed(changes):
        text = text[:start] + lines + text[end:]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for given in sys.argv[1:]:
        rewrite(Path(given).resolve())
