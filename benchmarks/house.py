"""Print how large the code is, how dense, and how long the walks through it are.

    .venv/bin/python benchmarks/house.py

Characters are of Python files. A walk is what one warm run visits: our files, and our functions in them, on all
threads. Python up to 3.11 also counts comprehensions and lambdas as functions, later versions only some of them: how
many have a name is printed beside it. "detect --report" is a small table in time, "watch --model" a stream scored by a
saved model, "NSNMF.fit" 300 rows, "serve + POST" a service with one asset that takes a row over HTTP.
"""

from __future__ import annotations

import ast
import io
import statistics
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "penstock"
CHARACTERS = 1_900_000
TEST_LINES = 28_000
COMMENTS = 0.015
ERRORS = 8
WALKS = {"detect --report": (60, 600), "watch --model": (40, 350), "NSNMF.fit": (25, 150), "serve + POST": (42, 450)}


def count(folder: Path) -> tuple[int, int, int]:
    """Return the number of Python files below a folder, of their lines, and of their characters."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.py"))]
    return len(texts), sum(len(text.splitlines()) for text in texts), sum(map(len, texts))


def shared_names() -> dict[str, list[str]]:
    """Return the names that more than one class or type of the package has, and where these are."""
    places = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(file.relative_to(PACKAGE).as_posix())
    return {name: files for name, files in places.items() if len(files) > 1}


def error_classes() -> int:
    """Return how many classes of errors the package has."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in PACKAGE.rglob("*.py"))
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    return sum(name.endswith("Error") for name in names)


def density() -> dict[str, float]:
    """Count comment lines (as a share), parallel assignments and conditional expressions."""
    comments = lines = parallel = conditional = 0
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        lines += len(text.splitlines())
        comments += sum(
            token.type == tokenize.COMMENT for token in tokenize.generate_tokens(io.StringIO(text).readline)
        )
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                parallel += isinstance(node.targets[0], ast.Tuple)
            conditional += isinstance(node, ast.IfExp)
    return {"comments": comments / lines, "parallel": parallel, "conditional": conditional}


class Walk:
    """The files and functions of ours that are entered between `begin` and `end`, on all threads."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, int]] = set()
        self.named: set[tuple[str, int]] = set()

    def _look(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and code.co_name != "<module>":
            place = code.co_filename, code.co_firstlineno
            self.functions.add(place)
            if not code.co_name.startswith("<"):
                self.named.add(place)

    def __enter__(self) -> Walk:
        threading.setprofile(self._look)
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    @property
    def counts(self) -> tuple[int, int]:
        return len({file for file, _ in self.functions}), len(self.functions)


def write_table(path: Path) -> None:
    """Write 600 rows of 8 sensors with a fault."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(600, 2)) @ rng.normal(size=(2, 8)) + rng.normal(scale=0.1, size=(600, 8))
    values[300:306, 2] += 5
    table = pd.DataFrame(values, columns=list("abcdefgh"))
    table.insert(0, "time", pd.date_range("2024-01-01", periods=len(table), freq="10min"))
    table.to_csv(path, index=False)


def run_command(*arguments: object) -> None:
    from penstock.cli import main  # here, as what is counted before needs no import

    code = main([str(argument) for argument in arguments])
    if code:
        raise SystemExit(f"penstock {arguments[0]} ended with {code}")


def walk_detect(folder: Path) -> Callable[[int], None]:
    return lambda turn: run_command("detect", folder / "plant.csv", "--report", folder / f"{turn}.html", "--quiet")


def walk_watch(folder: Path) -> Callable[[int], None]:
    model = folder / "model.penstock"
    run_command("fit", folder / "plant.csv", "--model", model, "--quiet")
    return lambda turn: run_command(
        "watch", folder / "plant.csv", "--model", model, "--output", folder / f"{turn}.jsonl", "--quiet"
    )


def walk_fit(_: Path) -> Callable[[int], None]:
    from penstock import NSNMF

    X = np.random.default_rng(0).random((300, 6))

    def fit(_: int) -> None:
        NSNMF(random_state=0).fit(X)

    return fit


def walk_serve(folder: Path) -> Callable[[int], None]:
    """A service in this process, begun and ended by the walk, that scores ten rows."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "support")]
    from live_service import Client, csv_of, options, rows  # type: ignore[import-not-found]

    from penstock.live.web import LiveServer

    text = csv_of(rows()[:10])

    def serve(turn: int) -> None:
        store = folder / str(turn)
        store.mkdir()
        with LiveServer(options(store)) as server:
            status, answer = Client(server.url).samples(text)
            if status >= 400:
                raise SystemExit(f"the service answered {status}: {answer}")

    return serve


def walk(name: str, prepare: Callable[[Path], Callable[[int], None]]) -> None:
    """Print what the second run of an action visits; the first compiles and imports."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_table(folder / "plant.csv")
        act = prepare(folder)
        act(0)
        with Walk() as visited:
            act(1)
    files, functions = visited.counts
    print(
        f"walk of {name}: {files} files, {functions} functions (bar {WALKS[name][0]}, {WALKS[name][1]}), "
        f"{len(visited.named)} of them with a name"
    )


def seconds(command: Sequence[str], repeats: int = 5) -> float:
    """Return the median wall time of a command."""
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    """Print each count with its bar."""
    files, lines, characters = count(PACKAGE)
    print(f"package: {characters:,} characters of Python (bar {CHARACTERS:,}), {lines:,} lines in {files} files")
    for room in sorted(path for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"):
        print("  {:<16} {:>4} files {:>7,} lines {:>9,} characters".format(room.name, *count(room)))
    print(f"tests: {count(ROOT / 'tests')[1]:,} lines (bar {TEST_LINES:,})")
    shared = shared_names()
    print(f"names of several classes: {len(shared)} (bar 0) {', '.join(shared)}")
    print(f"classes of errors: {error_classes()} (bar {ERRORS})")
    found = density()
    print(
        f"comment lines {found['comments']:.1%} (bar {COMMENTS:.1%}), {found['parallel']} parallel assignments, "
        f"{found['conditional']} conditional expressions"
    )
    walk("detect --report", walk_detect)
    walk("watch --model", walk_watch)
    walk("NSNMF.fit", walk_fit)
    walk("serve + POST", walk_serve)
    bare = seconds([sys.executable, "-c", "pass"])
    print(f"import penstock: {seconds([sys.executable, '-c', 'import penstock']) - bare:.3f} s (bar 0.1)")
    version = [sys.executable, "-c", "from penstock.cli import main; main(['--version'])"]
    print(f"penstock --version: {seconds(version):.3f} s (bar 0.3)")


if __name__ == "__main__":
    main()
