"""What the missing entries of a table are taken for, compiled."""

from __future__ import annotations

from penstock._jit import kernel
from penstock._types import FloatArray, IndexArray


@kernel
def rebuild_entries(table: FloatArray, W: FloatArray, Ht: FloatArray, rows: IndexArray, columns: IndexArray) -> None:
    """table_ij = w_i·h_j for the entries listed; `Ht` is H transposed."""
    for entry in range(rows.shape[0]):
        total = 0.0
        for k in range(W.shape[1]):
            total += W[rows[entry], k] * Ht[columns[entry], k]
        table[rows[entry], columns[entry]] = total


@kernel
def entries_loss(table: FloatArray, W: FloatArray, Ht: FloatArray, rows: IndexArray, columns: IndexArray) -> float:
    """Σ (table_ij − w_i·h_j)² over the entries listed, less Σ table_ij²."""
    loss = 0.0
    for entry in range(rows.shape[0]):
        total = 0.0
        for k in range(W.shape[1]):
            total += W[rows[entry], k] * Ht[columns[entry], k]
        loss += total * (total - 2.0 * table[rows[entry], columns[entry]])
    return loss
