"""Points made ready for an exact search: a float64 copy that decides and a float32 copy that rules out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock._blas import one_blas_thread
from penstock._types import FloatArray

_ROWS_AT_ONCE = 1 << 15  # rows handled at once, so that no second copy of the data is needed
# New rows may lie far outside the data, whose range is about one. Beyond the first, coordinates are cut; beyond the
# second only those of the search point, whose error then says so and makes the search look at everything.
_FARTHEST = 1e150
_FARTHEST_SEARCHED = 1e15
_SAMPLED_ROWS = 1 << 14  # enough to find the centre and the axes
_LARGEST_ROTATION = 512  # more columns than this are left unrotated: p³ would cost more than it saves


@dataclass(frozen=True)
class Frame:
    """How data become search points: less the origin, times 2**−exponent, less the centre, along `axes` (if any).

    The origin is the value of a constant column and 0 elsewhere: however large, it must not set the scale.
    """

    origin: FloatArray
    exponent: int
    center: FloatArray
    axes: FloatArray | None

    def scale(self, X: FloatArray) -> FloatArray:
        """Rows at the frame's scale: exact, but for rows so far off that their squares would overflow."""
        with np.errstate(over="ignore"):
            scaled = np.ascontiguousarray(X) - self.origin
            np.ldexp(scaled, -self.exponent, out=scaled)
        return np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)

    def enter(self, X: FloatArray) -> Points:
        """Put rows into this frame, measuring the rounding that it costs."""
        exact = self.scale(X)
        n, p = exact.shape
        double, single = 2.0**-53, 2.0**-24
        computing = 4 * (p + 4) * np.sqrt(p) * double  # rounding of the product, relative to a row's length
        search = np.zeros((n, max(4, -(-p // 4) * 4)), dtype=np.float32)
        errors, farthest = np.empty(n), 0.0
        for start in range(0, n, _ROWS_AT_ONCE):
            moved = exact[start : start + _ROWS_AT_ONCE] - self.center
            squares = np.einsum("ij,ij->i", moved, moved)
            farthest = max(farthest, float(squares.max()))
            if self.axes is not None:
                moved = moved @ self.axes
            rounded = np.clip(moved, -_FARTHEST_SEARCHED, _FARTHEST_SEARCHED).astype(np.float32)
            moved -= rounded
            measured = np.sqrt(np.einsum("ij,ij->i", moved, moved))
            errors[start : start + _ROWS_AT_ONCE] = measured * (1 + 1e-9) + computing * np.sqrt(squares)
            search[start : start + _ROWS_AT_ONCE, :p] = rounded
        skew = 0.0
        if self.axes is not None:
            skew = float(np.linalg.norm(self.axes.T @ self.axes - np.eye(p))) + 4 * p * p * double
        return Points(
            frame=self,
            exact=exact,
            search=search,
            radius=float((1 + 1e-6) * (1 + skew) * np.sqrt(farthest) + errors.max()),
            errors=errors,
            stretch=(1 + skew) ** 2 * (1 + 2 * (p + 8) * single) * (1 + 4 * (p + 8) * double),
        )


@dataclass(frozen=True)
class Points:
    """`exact` is the data times a power of two; `search` is float32, centred, perhaps rotated, padded to 4 columns.

    NaN in both marks a coordinate that is missing.

    Whenever ‖exact_i − exact_j‖ ≤ r, the float32 squared distance of search_i and search_j, summed in any order, is at
    most (r + 2·error)² · stretch: docs/decisions/0002-exact-trees.md has the proof.
    """

    frame: Frame
    exact: FloatArray
    search: NDArray[np.float32]
    radius: float  # no search point is farther from the origin
    errors: FloatArray  # no search point is farther from where its row ought to be
    stretch: float

    @property
    def error(self) -> float:
        return float(self.errors.max())

    @property
    def shift(self) -> float:
        return 2 * self.error


def plain_frame(X: FloatArray) -> Frame:
    """The frame in which the largest range of a column of X is near one: a product without rounding, nothing more."""
    return frame_between(X.min(axis=0), X.max(axis=0))


def frame_between(low: FloatArray, high: FloatArray) -> Frame:
    """The plain frame of rows of which only the smallest and the largest value of each column are known.

    A column that is not constant has a range of at least 2⁻⁵³ of its largest value, so nothing overflows.
    """
    origin = np.where(low == high, low, 0.0)
    low, high = low - origin, high - origin
    exponent = _exponent(float(np.maximum(np.abs(low), np.abs(high)).max()))
    exponent += _exponent(float((np.ldexp(high, -exponent) - np.ldexp(low, -exponent)).max()))
    return Frame(origin, exponent, np.zeros(len(low)), None)


def centered_frame(frame: Frame, sample: FloatArray, *, rotate: bool) -> Frame:
    """The same scale, with the centre and (for trees of boxes) the principal axes of a sample of the rows."""
    scaled = frame.scale(sample[:: max(1, len(sample) // _SAMPLED_ROWS)])
    frame = replace(frame, center=scaled.mean(axis=0))
    if not rotate or not 1 < sample.shape[1] <= _LARGEST_ROTATION:
        return frame
    with one_blas_thread():
        return replace(frame, axes=_principal_axes(scaled - frame.center))


def prepare_points(X: FloatArray, *, rotate: bool) -> Points:
    """Scale and centre, and (for trees of boxes) rotate to principal axes."""
    frame = centered_frame(plain_frame(X), X, rotate=rotate)
    with one_blas_thread():
        return frame.enter(X)


def prepare_incomplete(X: FloatArray) -> Points:
    """Scale and centre rows some of whose coordinates are missing (NaN); they stay missing in both copies.

    Axes that mix coordinates would spread a hole over all of them: no rotation.
    """
    holes = np.isnan(X)
    # A value from the column itself changes neither its range nor whether it is constant; 0 where there is none.
    stand_in = np.nan_to_num(np.fmin.reduce(X, axis=0))
    return _with_holes(prepare_points(np.where(holes, stand_in, X), rotate=False), holes)


def enter_incomplete(frame: Frame, X: FloatArray) -> Points:
    """Put rows some of whose coordinates are missing (NaN) into a frame without axes."""
    holes = np.isnan(X)
    stand_in = np.ldexp(frame.center, frame.exponent) + frame.origin  # the centre: nothing to be rounded there
    return _with_holes(frame.enter(np.where(holes, stand_in, X)), holes)


def _with_holes(points: Points, holes: NDArray[np.bool_]) -> Points:
    points.exact[holes] = np.nan
    points.search[:, : holes.shape[1]][holes] = np.nan
    return points


def _exponent(value: float) -> int:
    return int(np.frexp(value)[1]) if value > 0 else 0


def _principal_axes(sample: FloatArray) -> FloatArray:
    """Orthogonal directions, the widest first."""
    axes: FloatArray = np.linalg.eigh(sample.T @ sample)[1]
    return np.ascontiguousarray(axes[:, ::-1])
