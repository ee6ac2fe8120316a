"""Latent groups for people: who belongs to each, and how its rows read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock._types import FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class Group:
    """A latent group.

    number : the row of H, from 0.
    members, share : how many rows belong to it, and which share of all rows that is.
    profile : (p,) the mean of its members' reconstructions, in the user's units; NaN without members.
    telling : the variables in which that departs most from the mean of all rows, in scaled units, the most telling
        first: a data frame with the columns variable, value (the group's) and usual (that of all rows).
    """

    number: int
    members: int
    share: float
    profile: FloatArray
    telling: pd.DataFrame


def group_of_row(W: FloatArray, H: FloatArray) -> IndexArray:
    """The group that contributes most to each row: the k with the largest w_k·‖H_k‖, the first of equals.

    −1 for a row to which no group contributes. The product is the same however W and H share out their scale.

    >>> group_of_row(np.array([[3.0, 1.0], [0.2, 1.0], [0.0, 0.0]]), np.array([[0.3, 0.4], [2.0, 0.0]])).tolist()
    [1, 1, -1]
    """
    size = W * np.linalg.norm(H, axis=1)
    largest = size.argmax(axis=1).astype(np.intp)
    result: IndexArray = np.where(size.max(axis=1) > 0, largest, -1).astype(np.intp)
    return result


def describe_groups(
    W: FloatArray,
    H: FloatArray,
    undo: Callable[[FloatArray], FloatArray],
    names: Sequence[str],
    *,
    n: int = 6,
) -> tuple[Group, ...]:
    """One record per latent group, in the order of H.

    Parameters
    ----------
    W, H : (rows, K) and (K, p) arrays
        The factors, in scaled units.
    undo : callable
        From scaled rows to the user's units, column by column on straight lines, as `MinMaxScaling.undo`.
    names : sequence
        Of the p variables.
    n : int
        The most variables that `telling` names; those that do not depart at all are left out.

    Examples
    --------
    >>> W, H = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.1], [0.5, 0.9]])
    >>> groups = describe_groups(W, H, lambda rows: 100 * rows, ["head", "flow"])
    >>> [(group.number, group.members, group.share) for group in groups]
    [(0, 3, 0.75), (1, 1, 0.25)]
    >>> groups[1].telling.round(6)
      variable  value  usual
    0     flow   90.0   30.0
    """
    belongs = group_of_row(W, H)
    usual = W.mean(axis=0) @ H if len(W) else np.zeros(H.shape[1])
    return tuple(_describe(k, W[belongs == k], H, undo, names, usual, len(W), n) for k in range(len(H)))


def _describe(
    number: int,
    weights: FloatArray,
    H: FloatArray,
    undo: Callable[[FloatArray], FloatArray],
    names: Sequence[str],
    usual: FloatArray,
    n_rows: int,
    n: int,
) -> Group:
    if len(weights) == 0:
        return Group(number, 0, 0.0, np.full(H.shape[1], np.nan), _telling([], np.zeros(0), np.zeros(0)))
    own = weights.mean(axis=0) @ H
    # The mean over all rows of a single group is summed in another order: rounding alone is not told.
    departure = np.abs(own - usual)
    departure[departure <= 1e-12 * np.maximum(np.abs(own), np.abs(usual))] = 0.0
    chosen = np.argsort(-departure, kind="stable")[:n]
    chosen = chosen[departure[chosen] > 0]
    profile = undo(own[None, :])[0]
    telling = _telling([names[j] for j in chosen], profile[chosen], undo(usual[None, :])[0][chosen])
    return Group(number, len(weights), len(weights) / n_rows, profile, telling)


def _telling(variables: list[str], value: FloatArray, usual: FloatArray) -> pd.DataFrame:
    return pd.DataFrame({"variable": pd.Series(variables, dtype=object), "value": value, "usual": usual})
