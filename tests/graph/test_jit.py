"""Kernels compile without a cache, or with a damaged one, and the wait is announced on a terminal only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

needs_jit = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled without the JIT")


def run(code, **environment):
    """Run code in another process; return what it writes on stdout and on stderr."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


@needs_jit
def test_an_unwritable_cache_is_no_error(tmp_path):
    """Neither the package's folder nor the user's can be written to, as far as numba can tell."""
    (tmp_path / "kernels.py").write_text("from penstock._jit import kernel\n@kernel\ndef one(x):\n    return x + 1\n")
    blocked = "import numba.core.caching as c\nc.CacheImpl._locator_classes = []\n"
    paths = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    code = blocked + "import kernels\nprint(kernels.one(2))"
    assert run(code, NUMBA_CACHE_DIR="", PYTHONPATH=paths) == ("3\n", "")


@needs_jit
def test_compiling_is_announced_once_and_cached_until_a_kernel_changes(tmp_path):
    """On a terminal. numba inlines kernels of other files, but looks only at the file of the outer one."""
    pty = pytest.importorskip("pty", reason="needs a Unix terminal")
    source = Path(penstock.__file__).parent
    shutil.copytree(source, tmp_path / "penstock", ignore=shutil.ignore_patterns("__pycache__"))
    places = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    code = (
        "import numpy as np; from penstock.graph.edges import squares_of\n"
        "print(squares_of(np.array([[0.0], [3.0]]), np.array([[0, 1]])))"
    )

    def run_on_a_terminal():
        master, slave = pty.openpty()
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | places, stdout=subprocess.PIPE, stderr=slave, check=True
        )
        os.write(slave, b"end\n")
        shown = os.read(master, 10_000).decode()
        os.close(master)
        os.close(slave)
        return done.stdout, shown.count("compiling its kernels")

    assert run_on_a_terminal() == (b"[9.]\n", 1)
    assert run_on_a_terminal() == (b"[9.]\n", 0)  # found in the cache
    inner = tmp_path / "penstock" / "graph" / "distance_kernels.py"
    inner.write_text(inner.read_text().replace("return (s0 + s1) + (s2 + s3)", "return (s0 + s1) + (s2 + s3) + 1.0"))
    assert run(code, **places) == ("[10.]\n", "")  # compiled again, and not announced: no terminal


def test_all_kernels_are_in_the_files_that_key_the_cache():
    files = Path(penstock.__file__).parent.rglob("*.py")
    users = {file.name for file in files if "from penstock._jit import" in file.read_text()}
    assert all(name.endswith("kernels.py") for name in users)


DAMAGED = ("cut_index", "garbage_index", "folder_index", "cut_code", "garbage_code", "sound")
KERNELS = "from penstock._jit import kernel\n" + "".join(
    f"@kernel\ndef {name}(x):\n    return x + {place}\n" for place, name in enumerate(DAMAGED)
)
CALL = "import kernels\nprint(" + ", ".join(f"kernels.{name}(10)" for name in DAMAGED) + ")"


@needs_jit
def test_a_damaged_cache_is_made_anew(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    cache = tmp_path / "cache"
    places = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    assert run(CALL, **places)[1] == ""
    for name in DAMAGED[:5]:
        (file,) = cache.rglob(f"*{name}*.{'nbi' if 'index' in name else 'nbc'}")
        content = file.read_bytes()
        file.unlink()
        if "folder" in name:
            file.mkdir()
        else:
            file.write_bytes(content[: len(content) // 2] if "cut" in name else b"\x80garbage" * 100)
    printed, note = run(CALL, **places)
    assert printed == "10 11 12 13 14 15\n"
    assert note.startswith(f"penstock: compiled kernels in {cache}")
    assert "cannot be read" in note
    assert note.count("\n") == 1
    next(cache.rglob("*folder_index*.nbi")).rmdir()
    assert run(CALL, **places)[1] == ""


@needs_jit
def test_a_full_disk_is_no_error(tmp_path):
    resource = pytest.importorskip("resource", reason="needs limits of Unix")
    (tmp_path / "kernels.py").write_text(KERNELS)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{CALL}"],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "10 11 12 13 14 15\n"
    assert "cannot be stored" in done.stderr
    assert done.stderr.count("\n") == 1
