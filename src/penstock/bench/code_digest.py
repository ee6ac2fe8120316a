"""Hash the code that a detector runs: it changes when a result might, and not with comments or docstrings."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Mapping
from functools import cache
from importlib import invalidate_caches, metadata, util
from pathlib import Path

from penstock.bench.methods import import_path

_JUDGES = (
    *("penstock.bench.cells", "penstock.bench.methods", "penstock.bench.metrics"),
    *("penstock.prepare", "penstock._prepare_kernels", "penstock.ranking"),
)
_LIBRARIES = ("numba", "numpy", "scikit-learn", "scipy")  # their releases may change the last digits of anything
_APART = ("penstock.storage", "penstock.registry", "penstock.detectors._saving")  # saving files has no part in scores


@cache
def code_digest(detector: str) -> str:
    """Return a text that names the code of a detector: versions for packages, else a hash of the source.

    The source is that of the detector's module and of all modules that it imports, and they import, as far as these may
    be edited between two runs: penstock, the detector's own package, and scripts.

    >>> len(code_digest("NMF")), code_digest("sklearn.ensemble.IsolationForest").split("==")[0]
    (64, 'scikit-learn')
    """
    module = import_path(detector).rpartition(".")[0]
    top = module.partition(".")[0]
    owners = owners_of_modules().get(top, [])
    if owners and top != "penstock" and _is_installed(module):
        return ", ".join([*(_release(owner) for owner in sorted(set(owners))), *map(_release, _LIBRARIES)])
    digests: dict[str, str] = {}
    used = set(_LIBRARIES)
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in digests:
            digests[name], imported = _read(name)
            used |= {"torch"} & {other.partition(".")[0] for other in imported}
            waiting += [other for other in imported if _is_followed(other, top) and not other.startswith(_APART)]
    text = "".join(f"{name} {digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256((text + " ".join(map(_release, sorted(used)))).encode("utf-8")).hexdigest()


@cache
def judging_digest() -> str:
    """Hash the code that all cells share: how rows are scaled, scores taken and judged.

    >>> len(judging_digest())
    64
    """
    text = "".join(f"{module} {_read(module)[0]}\n" for module in _JUDGES)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def forget_digests() -> None:
    """Read the sources anew: a script may have been edited since."""
    code_digest.cache_clear()
    judging_digest.cache_clear()
    invalidate_caches()


@cache
def owners_of_modules() -> Mapping[str, list[str]]:
    """Return which installed packages the top-level modules belong to."""
    return metadata.packages_distributions()


def _is_installed(module: str) -> bool:
    """Tell whether a module lies where packages are installed, and not in an editable install."""
    try:
        spec = util.find_spec(module)
    except Exception:
        return True
    return spec is None or spec.origin is None or "site-packages" in spec.origin or "dist-packages" in spec.origin


@cache
def _release(package: str) -> str:
    try:
        return f"{package}=={metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return package


def _is_followed(module: str, top: str) -> bool:
    name = module.partition(".")[0]
    if name in (top, "penstock"):
        return True
    return top != "penstock" and name not in sys.stdlib_module_names and name not in owners_of_modules()


def _read(module: str) -> tuple[str, list[str]]:
    """Hash the code of a module and list what it may import; nothing for what is not Python source."""
    try:
        spec = util.find_spec(module)
    except Exception:  # it imports the packages around the module, which may fail
        return "", []
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return "", []
    path = Path(spec.origin)
    return _parse(path, path.stat().st_mtime_ns, spec.parent or "")


@cache
def _parse(path: Path, changed: int, package: str) -> tuple[str, list[str]]:
    source = path.read_bytes()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # of an optional import
        return hashlib.sha256(source).hexdigest(), []
    imported: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported += _names_from(node, package)
        elif isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):  # a docstring
                node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode("utf-8")).hexdigest(), imported


def _names_from(node: ast.ImportFrom, package: str) -> list[str]:
    try:
        origin = util.resolve_name("." * node.level + (node.module or ""), package)
    except ImportError:  # `from .parts import …` outside of a package
        return []
    inner = [f"{origin}.{alias.name}" for alias in node.names]
    # `from package import module` needs the module, not what else the package imports.
    return inner if all(map(_is_module, inner)) else [origin, *inner]


def _is_module(name: str) -> bool:
    try:
        return util.find_spec(name) is not None
    except Exception:
        return False
