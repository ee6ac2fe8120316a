"""What is said when the warm-up of a stream ends."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.detectors.online import OnlineNSNMF

_TIGHT = 1e-3  # the shortest edge in units of the middle one: below it, scores of normal samples were seen to double


@contextmanager
def announcing(detector: OnlineNSNMF) -> Iterator[None]:
    """Warn, when the warm-up ends, of what it could not learn and of what it may have learnt amiss."""
    was_warm = detector.is_warm
    yield
    if was_warm or not detector.is_warm:
        return
    stream, unseen = detector._begun(), detector.unseen_columns_
    if unseen:
        warnings.warn(
            f"Columns {unseen} had no reading in the warm-up of {len(detector.warmup_scores_)} samples, so they cannot "
            f"be scaled: their readings are left out. A longer warmup would include them.",
            stacklevel=4,
        )
    similarity = stream.settings.online.similarity
    if stream.tightest < _TIGHT and similarity in ("inverse", "relative"):
        warnings.warn(
            f"Two samples of the warm-up are {1 / stream.tightest:.0e} times nearer to each other than is usual among "
            f"them. With similarity={similarity!r} they may outweigh all others; 'binary' and 'normalized' are safe "
            f"from that.",
            stacklevel=4,
        )
