"""A stream as part of a saved state, and back, to the last bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock.detectors._input import LARGEST_VALUE
from penstock.detectors._stream import Stream
from penstock.factor.online import OnlineFactors
from penstock.prepare import unpack_scaling
from penstock.storage import Record
from penstock.thresholds import pack_threshold, unpack_threshold


def pack_stream(stream: Stream) -> dict[str, Any]:
    """What a stream has left behind."""
    return {
        "n_seen": stream.n_seen,
        "missing": stream.missing.astype(np.int64),
        "highest": None if math.isnan(stream.highest) else stream.highest,
        "waiting": stream.warmup.rows,
        "threshold": pack_threshold(stream.threshold),
        "warm": None if stream.factors is None else _pack_warm(stream, stream.factors),
    }


def _pack_warm(stream: Stream, factors: OnlineFactors) -> dict[str, Any]:
    return {
        "scaling": None if stream.scaling is None else stream.scaling.pack(),
        "warmup_scores": stream.warmup_scores,
        "n_iter": stream.n_iter,
        "n_components": len(factors.H),
        "factors": factors.get_state(),
    }


def unpack_stream(stream: Stream, record: Record) -> None:
    """Bring a stream that has not begun to where `pack_stream` was called."""
    record.only("n_seen", "missing", "highest", "waiting", "threshold", "warm")
    p = stream.n_columns
    stream.n_seen = record.whole("n_seen", least=0)
    stream.missing = record.array("missing", np.int64, (p,), least=0, most=stream.n_seen).astype(np.intp)
    stream.highest = math.nan if record.value("highest") is None else record.number("highest", least=0.0)
    least, most = (0.0, LARGEST_VALUE) if stream.settings.scale is None else (-math.inf, math.inf)
    waiting = record.array("waiting", np.float64, (None, p), least=least, most=most, missing=True)
    stream.threshold = unpack_threshold(record.value("threshold"))
    warm = record.optional_part("warm")
    if len(waiting) >= stream.settings.warmup or (warm is not None and len(waiting)) or len(waiting) > stream.n_seen:
        raise record.trouble("waiting", f"fewer rows than the warm-up needs ({stream.settings.warmup}), none after it")
    if np.isnan(waiting).all(axis=1).any():
        raise record.trouble("waiting", "rows with at least one reading")
    stream.warmup.keep(waiting)
    if warm is not None:
        _unpack_warm(stream, warm)


def _unpack_warm(stream: Stream, record: Record) -> None:
    record.only("scaling", "warmup_scores", "n_iter", "n_components", "factors")
    chosen = stream.settings
    stream.scaling = unpack_scaling(record.optional_part("scaling"), stream.n_columns, missing=True)
    if (stream.scaling is None) != (chosen.scale is None):
        raise record.trouble("scaling", f"what scale={chosen.scale!r} leads to")
    stream.warmup_scores = record.array("warmup_scores", np.float64, (None,), least=0.0, missing=True)
    stream.n_iter = record.whole("n_iter", least=0)
    n_components = record.whole("n_components", least=1, most=chosen.n_components)
    factors = OnlineFactors(chosen.online, chosen.buffer_size, stream.n_columns, n_components)
    factors.set_state(record.value("factors"))
    stream.factors = factors
