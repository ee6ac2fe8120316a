"""Which code a detector runs: a digest that changes when a result might, and not with comments or docstrings."""

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
    *("penstock.bench.cell", "penstock.bench.metrics", "penstock.bench.training_scores"),
    *("penstock.prepare", "penstock._prepare_kernels", "penstock.ranking"),
)
_LIBRARIES = ("numba", "numpy", "scikit-learn", "scipy")  # whose release may change the last digits of anything
_APART = ("penstock.storage", "penstock.registry", "penstock.detectors._saving")  # files have no part in scores


@cache
def code_digest(detector: str) -> str:
    """A text that names the code of a detector: versions for packages, a hash of the source for penstock and scripts.

    For penstock it is the module of the detector and all modules of penstock that it imports, and they import. For a
    script it is also what lies beside it, and of penstock what it uses.

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
    """What all cells have in common: how rows are scaled, scores taken and judged.

    >>> len(judging_digest())
    64
    """
    text = "".join(f"{module} {_read(module)[0]}\n" for module in _JUDGES)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@cache
def owners_of_modules() -> Mapping[str, list[str]]:
    """Which installed packages the top-level modules are of; asking takes a second."""
    return metadata.packages_distributions()


def forget_digests() -> None:
    """Look at the sources anew: those of a script may have been edited since."""
    code_digest.cache_clear()
    judging_digest.cache_clear()
    invalidate_caches()


def _is_installed(module: str) -> bool:
    """Whether a module lies where packages are installed; one of an editable install is the user's to edit."""
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
    """Whether a module may be edited between two runs: the detector's own package, penstock, any other script."""
    name = module.partition(".")[0]
    if name in (top, "penstock"):
        return True
    return top != "penstock" and name not in sys.stdlib_module_names and name not in owners_of_modules()


def _read(module: str) -> tuple[str, list[str]]:
    """A digest of the bare code of a module, and what it may import; nothing for what is no module in Python."""
    try:
        spec = util.find_spec(module)
    except Exception:  # it imports the packages around the module, which may be there for others than us
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
    except (SyntaxError, ValueError):  # of an import that may fail; else it would not have come so far
        return hashlib.sha256(source).hexdigest(), []
    imported = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported += _names_from(node, package)
        elif isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
    bare = ast.dump(_without_docstrings(tree))
    return hashlib.sha256(bare.encode("utf-8")).hexdigest(), imported


def _names_from(node: ast.ImportFrom, package: str) -> list[str]:
    try:
        origin = util.resolve_name("." * node.level + (node.module or ""), package)
    except ImportError:  # `from .parts import …` in what is now no package
        return []
    inner = [f"{origin}.{alias.name}" for alias in node.names]
    # `from package import module` needs the module, not what else the package imports for its users.
    return inner if all(map(_is_module, inner)) else [origin, *inner]


def _is_module(name: str) -> bool:
    try:
        return util.find_spec(name) is not None
    except Exception:
        return False


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return tree
