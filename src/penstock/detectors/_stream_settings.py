"""The parameters of a stream: checked once, and frozen while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from penstock._parameters import check_choice, check_number, check_whole_number
from penstock.factor.online import OnlineSettings
from penstock.factor.start import draws_from
from penstock.graph.similarities import Kind
from penstock.thresholds import Threshold

if TYPE_CHECKING:
    from penstock.detectors.online import OnlineNSNMF

LARGEST_BUFFER = 2000  # samples; the distances between them take 32 MB


@dataclass(frozen=True)
class StreamSettings:
    """The parameters of `OnlineNSNMF` that matter once a stream has begun."""

    n_components: int
    buffer_size: int
    warmup: int
    gamma: float
    scale: Literal["auto", "minmax"] | None
    learn_flagged: bool
    random_state: Any
    online: OnlineSettings


def stream_settings(detector: OnlineNSNMF) -> StreamSettings:
    """The settings that a detector's parameters amount to. They are known to be good."""
    online = OnlineSettings(
        float(detector.alpha),
        detector.similarity,
        detector.duplicates,
        int(detector.max_iter),
        float(detector.tol),
        float(detector.forgetting),
        int(detector.refresh_every),
    )
    return StreamSettings(
        int(detector.n_components),
        int(detector.buffer_size),
        int(detector.buffer_size if detector.warmup is None else detector.warmup),
        float(detector.gamma),
        detector.scale,
        bool(detector.learn_flagged),
        detector.random_state,
        online,
    )


def check_stream_parameters(detector: OnlineNSNMF) -> None:
    """Raise a ValueError if a parameter is out of bounds."""
    check_whole_number("n_components", detector.n_components, least=1)
    check_whole_number("buffer_size", detector.buffer_size, least=2)
    if detector.buffer_size > LARGEST_BUFFER:
        raise ValueError(
            f"buffer_size must be at most {LARGEST_BUFFER:,}: memory and the time for a sample grow with its square. "
            f"Got {detector.buffer_size}."
        )
    if detector.n_components > detector.buffer_size:
        raise ValueError(
            f"n_components = {detector.n_components} groups cannot be learnt from a buffer of {detector.buffer_size} "
            f"samples. Lower n_components or raise buffer_size."
        )
    if detector.warmup is not None:
        check_whole_number("warmup", detector.warmup, least=detector.buffer_size)
    check_number("alpha", detector.alpha, least=0.0, above=True)
    check_number("gamma", detector.gamma, least=0.0)
    check_choice("similarity", detector.similarity, get_args(Kind))
    check_choice("duplicates", detector.duplicates, ("join", "zero"))
    check_whole_number("max_iter", detector.max_iter, least=1)
    check_number("tol", detector.tol, least=0.0)
    check_number("forgetting", detector.forgetting, least=0.0, above=True)
    if detector.forgetting > 1:
        raise ValueError(f"forgetting must be at most 1 (1: nothing is forgotten); got {detector.forgetting!r}.")
    check_whole_number("refresh_every", detector.refresh_every, least=0)
    check_choice("learn_flagged", detector.learn_flagged, (True, False))
    check_choice("scale", detector.scale, ("auto", "minmax", None))
    draws_from(detector.random_state)
    if detector.threshold is not None:
        _check_threshold(detector.threshold)


def _check_threshold(threshold: object) -> None:
    if not isinstance(threshold, Threshold):
        raise ValueError(
            f"threshold must be None or an object from penstock.thresholds, such as Fixed(1.5); got {threshold!r}."
        )
    threshold._check_parameters()
