"""Imports go downwards, and each heavy dependency has one home."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "penstock"
# Each room may import from its own row and from those above.
LAYERS = [
    {"_blas", "_jit", "_messages", "_parameters", "_threads", "_types", "options", "registry"},
    {
        *("graph", "factor", "prepare", "_prepare_kernels", "ranking", "io", "storage"),
        *("scoring", "_scoring_kernels", "thresholds"),
    },
    {"columns", "explain", "sensors"},
    {"detectors"},
    {"adapters", "detection", "scale", "simulate"},
    {"bench", "report", "live"},
    {"cli"},
]
# A folder is a home for all its files.
HOMES = {
    "dask": {"scale/"},
    "distributed": {"scale/"},
    "filelock": {"io/", "storage/"},
    "jinja2": {"bench/", "report/"},
    "matplotlib": {"report/"},
    "numba": {"_jit.py"},
    "openpyxl": {"io/", "report/"},
    "pyarrow": {"io/", "scale/"},
    "rich": {"cli/", "scale/"},
    "safetensors": {"storage/"},
    "threadpoolctl": {"_blas.py"},
    "typer": {"cli/"},
    "zarr": {"scale/"},
}
FILES = sorted(SOURCE.rglob("*.py"))


def imports(file: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            found.append(node.module)
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def layer(room: str) -> int:
    return next(depth for depth, rooms in enumerate(LAYERS) if room in rooms)


# Methods of `Findings` that show it import the report when they are called.
LATE = {("detection/findings.py", "report")}


def test_imports_go_downwards():
    wrong = []
    for file in FILES:
        room = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        names = [name.split(".")[1] for name in imports(file) if name.startswith("penstock.")]
        here = file.relative_to(SOURCE).as_posix()
        if room != "__init__":
            above = [name for name in names if layer(name) > layer(room) and (here, name) not in LATE]
            wrong += [f"{file} imports penstock.{name}" for name in above]
    assert wrong == []


def test_findings_import_the_report_late():
    code = "import sys, penstock.detection; assert not [name for name in sys.modules if 'penstock.report' in name]"
    subprocess.run([sys.executable, "-c", code], check=True)


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
    assert set(penstock.__all__) <= set(dir(penstock))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = penstock.nonsense


RUN = """
import shlex, sys
from penstock.cli import main
for command in sys.argv[1:]:
    assert main(shlex.split(command)) == 0, command
sys.stderr.write(" ".join(name for name in sys.modules if name.split(".")[0] in ("penstock", "jinja2", "matplotlib")))
"""


@pytest.mark.parametrize(
    ("commands", "absent", "most"),
    [
        (["--version"], {"bench", "detectors", "io", "report", "scale"}, 20),
        (["watch table.csv -q"], {"bench", "detection", "report", "scale"}, 190),
        (
            ["detect table.csv -q", "fit table.csv -q -m plant.model", "score plant.model table.csv -q"],
            {"bench", "scale"},
            290,
        ),
        (["bench settings"], {"detectors", "io", "report", "scale"}, 45),
    ],
    ids=["version", "watch", "detect, fit, score", "bench settings"],
)
def test_commands_import_what_they_use(tmp_path, commands, absent, most):
    rows = [f"{row * 17 % 31},{row * 7 % 13}" for row in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(["flow,head", *rows]))
    command = [sys.executable, "-c", RUN, *commands]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    loaded = ran.stderr.splitlines()[-1].split()
    assert not {"jinja2", "matplotlib"} & set(loaded)
    assert not absent & {name.split(".")[1] for name in loaded if "." in name}
    assert len(loaded) <= most


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
sys.exit(main(["watch", "-", "--state", "state", "-o", "verdicts.jsonl"]))
"""


def test_watch_needs_nothing_that_only_unix_has(tmp_path):
    rows = "".join(f"{row * 17 % 31},{row * 7 % 13}\n" for row in range(250))
    command = [sys.executable, "-c", WITHOUT_UNIX]
    for _ in range(2):  # from the beginning, and from a snapshot
        ran = subprocess.run(
            command, input=f"flow,head\n{rows}", cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
    assert len((tmp_path / "verdicts.jsonl").read_text().splitlines()) == 500
    assert list((tmp_path / "state").glob("snapshot-*.penstock"))
