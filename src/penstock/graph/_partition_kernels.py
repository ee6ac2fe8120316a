"""Rows to parts, compiled."""

from __future__ import annotations

from typing import Any

from penstock._jit import kernel

Array = Any


@kernel
def assign_rows(X: Array, columns: Array, cuts: Array, part: Array) -> None:
    """`part[i]` = the part that row i falls into: at each cut, values up to it go to the first half of the parts."""
    n_parts = cuts.shape[0] + 1
    for i in range(X.shape[0]):
        node = 0
        first = 0
        count = n_parts
        while count > 1:
            half = (count + 1) // 2
            if X[i, columns[node]] <= cuts[node]:
                node += 1
                count = half
            else:
                node += half
                first += half
                count -= half
        part[i] = first
