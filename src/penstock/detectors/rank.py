"""Choose the number of latent groups by entries that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from penstock._parameters import check_share, check_whole_number
from penstock._progress import logged_fit, set_stage
from penstock._types import BoolArray, FloatArray
from penstock.detectors._factor_base import FactorDetector
from penstock.detectors._input import read_table

if TYPE_CHECKING:
    import pandas as pd


class RankChoice(NamedTuple):
    """The number of groups that was chosen, and what it was chosen by: see `choose_rank`."""

    rank: int
    table: pd.DataFrame


def choose_rank(
    detector: FactorDetector,
    X: Any,
    ranks: Sequence[int] = (1, 2, 3, 5, 8, 13),
    *,
    held_out: float = 0.1,
    n_repeats: int = 5,
    random_state: Any = 0,
) -> RankChoice:
    """Choose K, the number of latent groups, by how well entries are rebuilt that the fit has not seen.

    The error on the rows that are fitted falls with every further group, so it cannot choose. Here a share of the
    entries of X is hidden (set to NaN), the detector is fitted to the rest with each K, and the hidden entries are
    compared with what WH says about them. Use it before `GridSearchCV`, which needs labels or a scoring of its own.

    Of several K that are equally good, the smallest is taken: the smallest whose error is within one standard error of
    the lowest, the standard error being that of the difference over the repeats, which hide the same entries from all.

    Parameters
    ----------
    detector : NSNMF, LaplacianNSNMF, NMF, GNMF or SNMF
        Cloned for each fit, and not changed.
    X : array-like of shape (n, p)
        The rows; entries may be missing already.
    ranks : sequence of int, default=(1, 2, 3, 5, 8, 13)
        The K to try.
    held_out : float in (0, 1), default=0.1
        The share of the entries that is hidden. Each row and each column keeps at least one.
    n_repeats : int, default=5
        How often other entries are hidden.
    random_state : int, RandomState or None, default=0
        Chooses the entries, and seeds the fits.

    Returns
    -------
    RankChoice
        `rank`, and `table` with a line for each K: `error`, the root of the mean squared error of hidden entries in
        units of what the mean of their column leaves (1: no better than the mean); `standard_error` over the repeats;
        `explained`, the mean of `explained_`.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock import NMF, choose_rank
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((80, 2)) @ rng.random((2, 8)) + 0.01 * rng.random((80, 8))
    >>> choice = choose_rank(NMF(), X, ranks=[1, 2, 3, 4], n_repeats=3)
    >>> choice.rank
    2
    >>> bool(choice.table.loc[2, "error"] < 0.2 * choice.table.loc[1, "error"])
    True
    """
    if not isinstance(detector, FactorDetector):
        raise TypeError(f"choose_rank needs a detector with n_components, such as NSNMF(); got {detector!r:.100}.")
    if not len(ranks):
        raise ValueError("ranks must name at least one number of groups.")
    for rank in ranks:
        check_whole_number("ranks", rank, least=1)
    check_share("held_out", held_out)
    check_whole_number("n_repeats", n_repeats, least=1)
    rng = check_random_state(random_state)
    table = read_table(clone(detector), X, reset=True, allow_missing=True)
    tried = sorted(set(ranks))
    errors = np.empty((n_repeats, len(tried)))
    explained = np.empty((n_repeats, len(tried)))
    with logged_fit("choose_rank"):
        for repeat in range(n_repeats):
            hidden, seed = _hide(table, held_out, rng), int(rng.randint(2**31))
            for place, rank in enumerate(tried):
                set_stage(f"K = {rank}", repeat * len(tried) + place, n_repeats * len(tried))
                fitted = clone(detector).set_params(n_components=rank, random_state=seed)
                fitted.fit(np.where(hidden, np.nan, table))
                errors[repeat, place] = _error(fitted, table, hidden)
                explained[repeat, place] = fitted.explained_
    return _choose(tried, errors, explained)


def _hide(table: FloatArray, share: float, rng: np.random.RandomState) -> BoolArray:
    """Draw the entries to hide, among those that are there; each row and each column keeps its first of the draw."""
    there = np.argwhere(~np.isnan(table))
    there = there[rng.permutation(len(there))]
    hidden = np.zeros(table.shape, dtype=np.bool_)
    kept = np.zeros(len(there), dtype=np.bool_)
    for axis in (0, 1):
        kept[np.unique(there[:, axis], return_index=True)[1]] = True
    free = there[~kept][: round(share * len(there))]
    hidden[free[:, 0], free[:, 1]] = True
    if not hidden.any():
        raise ValueError(
            f"No entry of a table of shape {table.shape} can be hidden: each row and each column has to keep one."
        )
    return hidden


def _error(fitted: FactorDetector, table: FloatArray, hidden: BoolArray) -> float:
    """Compute the error of the hidden entries, in units of what the means of the columns leave."""
    rebuilt = fitted.inverse_transform(fitted.embedding_)
    means = np.nanmean(np.where(hidden, np.nan, table), axis=0)
    # In units of each column's range, so that columns of any unit count alike.
    span = np.ptp(np.where(np.isnan(table), means, table), axis=0)
    span = np.where(span > 0, span, 1.0)
    left, usual = ((table - rebuilt) / span)[hidden], ((table - means) / span)[hidden]
    size = float(np.sqrt(np.mean(np.square(usual))))
    return float(np.sqrt(np.mean(np.square(left)))) / (size if size > 0 else 1.0)


def _choose(ranks: Sequence[int], errors: FloatArray, explained: FloatArray) -> RankChoice:
    """Take the smallest rank whose error is within one standard error of the lowest."""
    import pandas as pd

    best = int(errors.mean(axis=0).argmin())
    root = np.sqrt(max(len(errors), 1))

    def deviation(values: FloatArray) -> FloatArray:
        return values.std(axis=0, ddof=1) / root if len(errors) > 1 else np.zeros(len(ranks))

    above = errors - errors[:, [best]]
    near = above.mean(axis=0) <= deviation(above)
    table = pd.DataFrame(
        {"error": errors.mean(axis=0), "standard_error": deviation(errors), "explained": explained.mean(axis=0)},
        index=pd.Index(ranks, name="n_components"),
    )
    return RankChoice(int(ranks[int(np.argmax(near))]), table)
