"""Imports go downwards, and each heavy dependency has one home."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "penstock"
# Each room may import from its own row and from those above.
LAYERS = [
    {"_jit", "_messages", "_pages", "_parameters", "_progress", "_threads", "_types", "options", "registry"},
    {
        *("graph", "factor", "prepare", "_row_kernels", "ranking", "io", "storage"),
        *("certainty", "scoring", "thresholds"),
    },
    {"columns", "explain", "sensors"},
    {"detectors"},
    {"adapters", "datasets", "detection", "scale", "simulate"},
    {"bench", "report", "live"},
    {"project"},
    {"cli"},
]
# A folder is a home for all its files.
HOMES = {
    "apprise": {"live/connectors.py"},
    "asyncua": {"live/connectors.py"},
    "confluent_kafka": {"live/connectors.py"},
    "dask": {"scale/"},
    "distributed": {"scale/"},
    "filelock": {"io/", "storage/"},
    "jinja2": {"_pages.py"},
    "matplotlib": {"report/"},
    "numba": {"_jit.py"},
    "openpyxl": {"io/", "report/"},
    "paho": {"live/connectors.py"},
    "prometheus_client": {"live/api.py"},
    "pyarrow": {"io/", "scale/"},
    "rich": {"cli/", "scale/"},
    "safetensors": {"storage/"},
    "starlette": {"live/api.py", "live/web.py", "project/web.py"},
    "threadpoolctl": {"_threads.py"},
    "typer": {"cli/"},
    "uvicorn": {"live/web.py"},
}
FILES = sorted(SOURCE.rglob("*.py"))


@cache
def imports(file: Path, *, at_once: bool = False) -> list[str]:
    """What a file imports; `at_once`: when it is imported itself."""
    tree, found = ast.parse(file.read_text()), []
    for node in tree.body if at_once else ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            found.append(node.module)
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def layer(room: str) -> int:
    return next(depth for depth, rooms in enumerate(LAYERS) if room in rooms)


# Methods that show findings and scores import the report when they are called.
LATE = {("detection/findings.py", "report"), ("detectors/_base.py", "report")}


def test_imports_go_downwards():
    wrong = []
    for file in FILES:
        room = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        names = [name.split(".")[1] for name in imports(file) if name.startswith("penstock.")]
        here = file.relative_to(SOURCE).as_posix()
        if room not in ("__init__", "__main__"):
            above = [name for name in names if layer(name) > layer(room) and (here, name) not in LATE]
            wrong += [f"{file} imports penstock.{name}" for name in above]
    for file, room in LATE:
        wrong += [name for name in imports(SOURCE / file, at_once=True) if name.startswith(f"penstock.{room}")]
    assert wrong == []


def test_private_modules_stay_in_their_room():
    found = set()
    for file in FILES:
        here = file.relative_to(SOURCE).as_posix()
        for name in imports(file):
            root, room, *rest = [*name.split("."), "", ""]
            private = next(
                (place for place, part in enumerate(rest) if part.startswith("_") and part[1:2] != "_"), None
            )
            if root == "penstock" and private is not None and not here.startswith((f"{room}/", f"{room}.py")):
                found.add((here, ".".join([room, *rest[: private + 1]])))
    assert found == set(), "use a public name of the room, or give it one"


def test_heavy_dependencies_stay_at_home():
    wrong = []
    for file in FILES:
        here = file.relative_to(SOURCE).as_posix()
        for name in imports(file):
            home = HOMES.get(name.split(".")[0])
            if home is not None and not any(here.startswith(place) for place in home):
                wrong.append(f"{file} imports {name}")
    assert wrong == []


def test_the_public_names_exist():
    import penstock

    for name in penstock.__all__:
        assert getattr(penstock, name) is not None
    rooms = {path.stem for path in (*SOURCE.glob("[a-z]*.py"), *(file.parent for file in SOURCE.glob("*/__init__.py")))}
    assert {*penstock.__all__, *rooms} <= set(dir(penstock))
    for room in rooms:
        assert getattr(penstock, room).__name__ == f"penstock.{room}"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = penstock.nonsense


RUN = """
import shlex, sys
from penstock.cli import main
for command in sys.argv[1:]:
    assert main(shlex.split(command)) == 0, command
sys.stderr.write(" ".join(name for name in sys.modules if name.startswith("penstock") or "." not in name))
"""
FITTING = ["fit table.csv -q -m plant.model", "score --model plant.model table.csv -q", "detect table.csv -q"]
ABOVE = {"bench", "detectors", "io", "report", "scale"}


@pytest.mark.parametrize(
    ("commands", "absent", "most"),
    [
        (["--version", "--help", *(f"{name} --help" for name in ("watch", "detect", "fit", "score"))], ABOVE, 21),
        (["bench settings"], ABOVE - {"bench"}, 45),
        (["watch table.csv -q"], {"bench", "detection", "report", "scale"}, 190),
        (FITTING, {"bench", "scale"}, 290),
    ],
    ids=["version and help", "bench settings", "watch", "fit, score, detect"],
)
def test_commands_import_what_they_use(tmp_path, commands, absent, most):
    rows = [f"{row * 17 % 31},{row * 7 % 13}" for row in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(["flow,head", *rows]))
    ran = subprocess.run(
        [sys.executable, "-c", RUN, *commands],
        env=os.environ | {"COLUMNS": "200"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    loaded = ran.stderr.splitlines()[-1].split()
    heavy = {"jinja2", "matplotlib"} if most > 21 else {"jinja2", "matplotlib", "numpy", "pandas", "sklearn"}
    assert not heavy & set(loaded)
    ours = [name for name in loaded if name.startswith("penstock")]
    assert not absent & {name.split(".")[1] for name in ours if "." in name}
    assert len(ours) <= most
    if "detect --help" in commands:
        for option in ("--report", "--output", "--scores", "--fail-on", "--n-components", "--month-first", "--model"):
            assert option in ran.stdout


# Windows has none of these. Modules of others, which know what they run on, may have them here.
WITHOUT_UNIX = """
import builtins, importlib, pkgutil, sys

usual_import = builtins.__import__
def without(name, globals=None, locals=None, fromlist=(), level=0):
    ours = globals is not None and str(globals.get("__name__")).startswith("penstock")
    if ours and name in ("fcntl", "grp", "pwd", "resource", "termios"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return usual_import(name, globals, locals, fromlist, level)
builtins.__import__ = without

import penstock
for module in pkgutil.walk_packages(penstock.__path__, "penstock."):
    importlib.import_module(module.name)
from penstock.cli import main
for rows in range(2):  # from the beginning, and from a snapshot
    with open("plant.csv", "a") as file:
        file.write("flow,head\\n" * (rows == 0) + "".join(f"{row * 17 % 31},{row * 7 % 13}\\n" for row in range(250)))
    assert main(["watch", "plant.csv", "--state", "state", "-o", "verdicts.jsonl"]) == 0
"""


def test_watch_needs_nothing_that_only_unix_has(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert len((tmp_path / "verdicts.jsonl").read_text().splitlines()) == 500
    assert (tmp_path / "state" / "watch.db").exists()


def test_a_class_name_has_one_meaning():
    homes: dict[str, list[str]] = {}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(file.relative_to(SOURCE).as_posix())
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_dir_shows_public_names_only():
    import penstock

    assert [name for name in dir(penstock) if name.startswith("_")] == ["__version__"]
    assert {"NormScore", "MeanDistance", "load_model", "import_module", "annotations"}.isdisjoint(dir(penstock))
