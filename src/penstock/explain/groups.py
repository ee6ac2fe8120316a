"""Describe latent groups: which rows belong to each, and how they read.

The factors W and H come in, a `Group` for each row of H goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock._types import FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class Group:
    """A latent group.

    differences : the variables in which its profile departs most from the mean of all rows, in scaled units, the
        largest first: variable, value (the group's) and usual (that of all rows).
    """

    number: int  # the row of H, from 0
    members: int  # how many rows belong to it
    share: float  # of all rows
    profile: FloatArray  # (p,) the mean of its members' reconstructions, in the user's units; NaN without members
    differences: pd.DataFrame


def group_of_row(W: FloatArray, H: FloatArray) -> IndexArray:
    """Return the group that contributes most to each row: the k with the largest w_k·‖H_k‖, the first of equals.

    −1 for a row to which no group contributes. The product is the same however W and H share out their scale.
    """
    size = W * np.linalg.norm(H, axis=1)
    result: IndexArray = np.where(size.max(axis=1) > 0, size.argmax(axis=1), -1).astype(np.intp)
    return result


def describe_groups(
    W: FloatArray, H: FloatArray, undo: Callable[[FloatArray], FloatArray], names: Sequence[str], *, n: int = 6
) -> tuple[Group, ...]:
    """Describe each latent group, in the order of H.

    W, H : (rows, K) and (K, p) the factors, in scaled units.
    undo : from scaled rows to the user's units, column by column on straight lines, as `MinMaxScaling.undo`.
    names : of the p variables.
    n : the most variables that `differences` names; those that do not depart at all are left out.
    """
    belongs = group_of_row(W, H)
    found = []
    usual = W.mean(axis=0) @ H if len(W) else np.zeros(H.shape[1])
    for number in range(len(H)):
        weights = W[belongs == number]
        own = weights.mean(axis=0) @ H if len(weights) else usual
        departure = np.abs(own - usual)
        # The mean over all rows of a single group is summed in another order: rounding alone is no difference.
        departure[departure <= 1e-12 * np.maximum(np.abs(own), np.abs(usual))] = 0.0
        chosen = np.argsort(-departure, kind="stable")[:n]
        chosen = chosen[departure[chosen] > 0]
        profile = undo(own[None, :])[0] if len(weights) else np.full(H.shape[1], np.nan)
        columns = {"value": profile[chosen], "usual": undo(usual[None, :])[0][chosen]}
        variables = pd.Series([names[j] for j in chosen], dtype=object)
        share = len(weights) / len(W) if len(W) else 0.0
        found.append(Group(number, len(weights), share, profile, pd.DataFrame({"variable": variables, **columns})))
    return tuple(found)
