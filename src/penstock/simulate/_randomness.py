"""Chance that depends on the seed and the name of its cause only: another cause more shifts none of the others."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from penstock._types import FloatArray
from penstock.simulate._calendar import STEP_HOURS


def stream(seed: int, name: str) -> np.random.Generator:
    """The random numbers of one named cause.

    >>> bool(stream(0, "weather").random() == stream(0, "weather").random())
    True
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, crc32(name.encode())])))


def red_noise(rng: np.random.Generator, shape: int | tuple[int, int], hours: float) -> FloatArray:
    """Noise with mean 0 and variance 1 along the first axis whose correlation falls to 1/e within so many hours.

    >>> noise = red_noise(stream(0, "example"), 10_000, hours=1.0)
    >>> round(float(np.corrcoef(noise[6:], noise[:-6])[0, 1]), 1)
    0.4
    """
    memory = float(np.exp(-STEP_HOURS / hours))
    noise = rng.standard_normal(shape)
    noise[1:] *= np.sqrt(1 - memory**2)
    for now in range(1, len(noise)):
        noise[now] += memory * noise[now - 1]
    return noise
