"""Which code a detector runs: a digest that changes when a result might, and not with comments or docstrings."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import metadata, util
from pathlib import Path

from penstock.bench.methods import import_path

_APART = ("penstock.storage", "penstock.detectors.registry")  # files have no part in scores


@cache
def code_digest(detector: str) -> str:
    """A text that names the code of a detector: versions for packages, a hash of the source for penstock and scripts.

    For penstock it is the module of the detector and all modules of penstock that it imports, and they import.

    >>> len(code_digest("NMF")), code_digest("sklearn.ensemble.IsolationForest").split("==")[0]
    (64, 'scikit-learn')
    """
    module = import_path(detector).rpartition(".")[0]
    top = module.partition(".")[0]
    owners = owners_of_modules().get(top, [])
    if owners and top != "penstock":
        return ", ".join(f"{owner}=={metadata.version(owner)}" for owner in sorted(set(owners)))
    digests: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in digests:
            digests[name], imported = _read(name)
            waiting += [other for other in imported if other.partition(".")[0] == top and not other.startswith(_APART)]
    text = "".join(f"{name} {digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@cache
def owners_of_modules() -> Mapping[str, list[str]]:
    """Which installed packages the top-level modules are of; asking takes a second."""
    return metadata.packages_distributions()


@cache
def _read(module: str) -> tuple[str, list[str]]:
    """A digest of the bare code of a module, and what it may import; nothing for what is no module in Python."""
    source = _source(module)
    if source is None:
        return "", []
    tree = ast.parse(source)
    imported = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            imported += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
    bare = ast.dump(_without_docstrings(tree))
    return hashlib.sha256(bare.encode("utf-8")).hexdigest(), imported


def _source(module: str) -> str | None:
    try:
        spec = util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin).read_text(encoding="utf-8")


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return tree
