"""Kernels compile without a cache, or with a damaged one, and the wait is announced on a terminal only."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COMPILE = """
import numpy as np
from penstock.graph.distance_kernels import precedes, squared_distance
print(squared_distance(np.zeros((2, 3)), 0, np.ones((2, 3)), 1))
precedes(1.0, 0, 1, 2.0, 0, 1)
"""
needs_jit = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled without the JIT")


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=True
    )


@needs_jit
def test_an_unwritable_cache_is_no_error(tmp_path):
    """Neither the package's folder nor the user's can be written to, as far as numba can tell."""
    blocked = "import numba.core.caching as c\nc.CacheImpl._locator_classes = []\n"
    done = run(blocked + COMPILE, NUMBA_CACHE_DIR="")
    assert done.stdout.strip() == "3.0"
    assert done.stderr == ""


@needs_jit
def test_compiling_is_announced_once_on_a_terminal_and_cached(tmp_path):
    pty = pytest.importorskip("pty", reason="needs a Unix terminal")
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    outputs = []
    for _ in range(2):
        master, slave = pty.openpty()
        subprocess.run(
            [sys.executable, "-c", COMPILE], env=os.environ | cache, stdout=subprocess.DEVNULL, stderr=slave, check=True
        )
        os.write(slave, b"end\n")
        outputs.append(os.read(master, 10_000).decode())
        os.close(master)
        os.close(slave)
    assert outputs[0].count("compiling its kernels") == 1
    assert "compiling" not in outputs[1]  # the second process finds them in the cache


@needs_jit
def test_nothing_is_said_in_a_pipe(tmp_path):
    assert run(COMPILE, NUMBA_CACHE_DIR=str(tmp_path)).stderr == ""


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
    assert run(CALL, **places).stderr == ""
    for name in DAMAGED[:5]:
        (file,) = cache.rglob(f"*{name}*.{'nbi' if 'index' in name else 'nbc'}")
        content = file.read_bytes()
        file.unlink()
        if "folder" in name:
            file.mkdir()
        else:
            file.write_bytes(content[: len(content) // 2] if "cut" in name else b"\x80garbage" * 100)
    done = run(CALL, **places)
    assert done.stdout == "10 11 12 13 14 15\n"
    assert done.stderr.startswith(f"penstock: compiled kernels in {cache}")
    assert "cannot be read" in done.stderr
    assert done.stderr.count("\n") == 1
    next(cache.rglob("*folder_index*.nbi")).rmdir()
    assert run(CALL, **places).stderr == ""


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
