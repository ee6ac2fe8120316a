"""Prepare points for an exact search: float64 copies decide, other copies, usually float32, only rule pairs out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock._threads import one_blas_thread
from penstock._types import BoolArray, FloatArray
from penstock.graph._search_kernels import shared_squared_distances
from penstock.graph.distance_kernels import TILE

_VALUES_AT_ONCE = 1 << 17  # values handled at once, so that no second copy of the data is needed
# New rows may lie far outside the data, whose range is about one. Beyond the first, coordinates are cut; beyond the
# second only those of the search point, whose error then says so and makes the search look at everything.
_FARTHEST = 1e150
_FARTHEST_SEARCHED = 1e15
_SAMPLED_ROWS, _SAMPLED_VALUES = 1 << 14, 1 << 19  # enough to find the centre and the axes
_LARGEST_ROTATION = 512  # more columns than this are left unrotated: p³ would cost more than it saves
_SINGLE, _DOUBLE = 2.0**-24, 2.0**-53  # relative rounding
_NEAR_ONE = 10  # ranges from 2 to the power of minus this to 2 to the power of this need no scaled copy
_LARGEST_EXPONENT = 1022  # two to the power of this and of minus this are exact
# Whether float32 is enough is seen at a few rows: rounding may add so many rows to the nearest of each, and make so
# large a share of all rows seem equally far away.
_PROBES, _PROBED_ROWS, _FEWEST_PROBED = 16, 1 << 12, 512
_NEAREST, _MOST_NEAR, _MOST_FAR, _COMPARED = 6, 32, 0.05, 256

SearchArray = NDArray[np.floating[Any]]  # float32, or float64 in a precise frame


@dataclass(frozen=True)
class Frame:
    """How rows become search points: minus the origin, times 2**−exponent, minus the centre, along `axes` (if any).

    The origin is the value of a constant column and 0 elsewhere: a large constant must not set the scale. Search points
    are float64 in a `precise` frame, else float32.
    """

    origin: FloatArray
    exponent: int
    center: FloatArray
    axes: FloatArray | None = None
    precise: bool = False

    def scale(self, X: FloatArray) -> FloatArray:
        """Scale rows; exact, except for rows so far off that their squares would overflow. May return X itself."""
        unscaled = self.exponent == 0 and not self.origin.any()
        if unscaled and X.min(initial=0.0) >= -_FARTHEST and X.max(initial=0.0) <= _FARTHEST:
            return np.ascontiguousarray(X)
        with np.errstate(over="ignore"):
            scaled = times_powers_of_two(np.ascontiguousarray(X) - self.origin, np.array(-self.exponent))
        return np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)

    def leave(self, exact: FloatArray) -> FloatArray:
        """Return scaled rows to the units of the data."""
        rows: FloatArray = np.ldexp(exact, self.exponent)
        constant = self.origin != 0
        rows[:, constant] = np.where(np.isnan(rows[:, constant]), np.nan, self.origin[constant])
        return rows

    def lengths_of(self, squares: FloatArray) -> FloatArray:
        """Convert squares in units of the frame to lengths in those of the data, at most the largest float."""
        with np.errstate(over="ignore"):
            return np.minimum(np.ldexp(np.sqrt(squares), self.exponent), np.finfo(np.float64).max)

    def enter(self, X: FloatArray) -> Points:
        """Put rows into this frame, and measure the rounding errors of their search points."""
        exact = self.scale(X)
        n, p = exact.shape
        number: type[np.floating[Any]] = np.float64 if self.precise else np.float32
        unit, vanishing = (_DOUBLE, 1e-150) if self.precise else (_SINGLE, 1e-15)  # the latter for squares that vanish
        computing = self._computing()
        search: SearchArray = np.zeros((n, max(4, -(-p // 4) * 4)), dtype=number)
        errors, farthest = np.empty(n), 0.0
        at_once = 1 + _VALUES_AT_ONCE // p
        for start in range(0, n, at_once):
            moved = exact[start : start + at_once] - self.center
            squares = np.einsum("ij,ij->i", moved, moved)
            farthest = max(farthest, float(squares.max()))
            if self.axes is not None:
                moved = moved @ self.axes
            rounded = search[start : start + at_once, :p]
            rounded[:] = (
                moved if farthest < _FARTHEST_SEARCHED else np.clip(moved, -_FARTHEST_SEARCHED, _FARTHEST_SEARCHED)
            )
            moved -= rounded
            measured = np.sqrt(np.einsum("ij,ij->i", moved, moved))
            errors[start : start + at_once] = measured * (1 + 1e-9) + computing * np.sqrt(squares) + vanishing
        skew = self._skew
        return Points(
            frame=self,
            exact=exact,
            search=search,
            radius=float((1 + 1e-6) * (1 + skew) * np.sqrt(farthest) + errors.max()),
            errors=errors,
            stretch=(1 + skew) ** 2 * (1 + 2 * (p + 8) * unit) * (1 + 4 * (p + 8) * _DOUBLE),
        )

    @cached_property
    def _skew(self) -> float:
        """Bound by how much the axes, which are orthogonal but for rounding, stretch lengths."""
        if self.axes is None:
            return 0.0
        p = len(self.axes)
        with one_blas_thread():
            return float(np.linalg.norm(self.axes.T @ self.axes - np.eye(p))) + 4 * p * p * _DOUBLE

    def _computing(self) -> float:
        """Bound the rounding of a search point before it is stored, relative to the row's distance from the centre."""
        p = len(self.center)
        return 4 * (p + 4) * np.sqrt(p) * _DOUBLE if self.axes is not None or self.center.any() else 0.0

    def shift_between(self, low: FloatArray, high: FloatArray) -> float:
        """Estimate the `shift` of rows between these corners."""
        farthest = np.linalg.norm(np.maximum(*(np.abs(self.scale(side) - self.center) for side in (low, high))))
        return 2 * float(farthest) * (self._computing() + (0.0 if self.precise else _SINGLE))


@dataclass(frozen=True)
class Points:
    """`exact` is the data times a power of two; `search`, padded to 4 columns, is centred and perhaps rotated.

    NaN in both marks a missing value. Whenever ‖exact_i − exact_j‖ ≤ r, the squared distance of search_i and search_j
    in their precision, summed in any order, is at most (r + 2·error)² · stretch: docs/decisions/0002-bounds.md has
    the proof.
    """

    frame: Frame
    exact: FloatArray
    search: SearchArray
    radius: float  # no search point is farther from the origin
    errors: FloatArray  # bounds on the distance of each search point from its exact place
    stretch: float


def plain_frame(X: FloatArray) -> Frame:
    """Make the frame in which the largest range of a column of X is near one: a product without rounding."""
    return frame_between(*_corners(X))


def _corners(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of each column; 0 where there is none."""
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    empty = np.isnan(low)
    return np.where(empty, 0.0, low), np.where(empty, 0.0, high)


def frame_between(low: FloatArray, high: FloatArray) -> Frame:
    """Make the plain frame from the smallest and the largest value of each column.

    A column that is not constant has a range of at least 2⁻⁵³ of its largest value, so nothing overflows.
    """
    origin = np.where(low == high, low, 0.0)
    low, high = low - origin, high - origin
    exponent = math.frexp(np.maximum(np.abs(low), np.abs(high)).max())[1]
    exponent += math.frexp((np.ldexp(high, -exponent) - np.ldexp(low, -exponent)).max())[1]
    return Frame(origin, exponent, np.zeros(len(low)))


def centered_frame(frame: Frame, sample: FloatArray, *, rotate: bool) -> Frame:
    """Add to a frame the centre and (for trees of boxes) the principal axes of a sample of the rows."""
    scaled = frame.scale(_every(sample, _SAMPLED_ROWS))
    if frame.precise:  # a few rows, or a group, are far from the others: use the axes of the others
        away = np.abs(scaled - np.median(scaled, axis=0)).max(axis=1)
        scaled = scaled[away <= np.median(away)]
    frame = replace(frame, center=scaled.mean(axis=0))
    if not rotate or not 1 < sample.shape[1] <= _LARGEST_ROTATION:
        return frame
    with one_blas_thread():  # orthogonal directions, the widest first
        scaled = scaled - frame.center
        axes = np.linalg.eigh(scaled.T @ scaled)[1]
    return replace(frame, axes=np.ascontiguousarray(axes[:, ::-1]))


def searching_frame(low: FloatArray, high: FloatArray, sample: FloatArray, n: int, *, rotate: bool) -> Frame:
    """Make a centred frame for n rows between two corners, as precise as the distances in a sample of them need.

    Usually float32 distinguishes the distances of near rows and those of far ones. Where a few rows, or groups of them,
    are so far off that it does not, search points are float64; where even the rounding of their axes would be too much,
    they are the scaled rows themselves. Rows whose ranges are near one already are not scaled.
    """
    plain = frame_between(low, high)
    plain = replace(plain, exponent=0) if abs(plain.exponent) <= _NEAR_ONE else plain
    rows = _every(sample, min(_SAMPLED_ROWS, 1 + _SAMPLED_VALUES // len(low)))
    filled = np.where(np.isnan(rows), low, rows) if np.isnan(rows).any() else rows
    distances = _sampled_distances(plain, _every(rows, _PROBED_ROWS))
    frame = centered_frame(plain, filled, rotate=rotate)
    if len(distances) == 0 or not _blurred(frame.shift_between(low, high), (len(low) + 8) * _SINGLE, distances, n):
        return frame
    plain = replace(plain, precise=True)
    if rotate:
        frame = centered_frame(plain, filled, rotate=True)
        if not _blurred(frame.shift_between(low, high), (len(low) + 8) * _DOUBLE, distances, n):
            return frame
    return plain


def _sampled_distances(frame: Frame, sample: FloatArray) -> FloatArray:
    """Compute sorted distances from a few rows to all; none if there are so few that no search is long."""
    m = len(sample)
    if m < _FEWEST_PROBED:
        return np.empty((0, m))
    rows = frame.scale(sample)
    probes = np.linspace(0, m - 1, _PROBES).astype(np.intp)
    squares = np.empty((_PROBES, m))
    for place, probe in enumerate(probes):
        shared_squared_distances(rows, probe, probe + 1, squares[place : place + 1])
    return np.sort(np.sqrt(squares), axis=1)


def _blurred(shift: float, stretch: float, distances: FloatArray, n: int) -> bool:
    """Tell whether rounding hides which rows are nearer, so that a search would have to measure very many.

    Given the distances from a few rows to a sample of the n rows, count how many more than the nearest seem as near as
    these, how many seem to be at distance 0, and what share seems equally far away, at any distance. Distances that are
    truly equal do not count.
    """
    m = distances.shape[1]
    near, same, far = 0.0, 0.0, 0.0
    for row in distances:
        some = row[_NEAREST :: 1 + m // _COMPARED]
        added = row.searchsorted(some * (1 + stretch) + shift, "right") - row.searchsorted(some * (1 + 1e-12), "right")
        near += added[0]
        same += (row.searchsorted(shift, "right") - row.searchsorted(0.0, "right")) * n / m
        far += added.max() / m
    return bool(max(near, same) > _MOST_NEAR * _PROBES or far > _MOST_FAR * _PROBES)


def _every(rows: FloatArray, most: int) -> FloatArray:
    """Return evenly spaced rows, about as many as asked for."""
    return np.ascontiguousarray(rows[:: max(1, len(rows) // most)])


def prepare_points(X: FloatArray, *, rotate: bool) -> Points:
    """Scale and centre rows, and (for trees of boxes) rotate them to principal axes."""
    frame = searching_frame(*_corners(X), X, len(X), rotate=rotate)
    if frame.axes is None:
        return frame.enter(X)
    with one_blas_thread():
        return frame.enter(X)


def prepare_incomplete(X: FloatArray) -> Points:
    """Scale and centre rows with missing values (NaN), which stay missing in both copies.

    They are not rotated: axes that mix columns would spread a missing value over all of them.
    """
    holes = np.isnan(X)
    # A value from the column itself changes neither its range nor whether it is constant; 0 where there is none.
    low, high = _corners(X)
    frame = searching_frame(low, high, X, len(X), rotate=False)
    return _with_holes(frame.enter(np.where(holes, low, X)), holes)


def enter_incomplete(frame: Frame, X: FloatArray) -> Points:
    """Put rows with missing values (NaN) into a frame without axes."""
    holes = np.isnan(X)
    stand_in = np.ldexp(frame.center, frame.exponent) + frame.origin  # the centre, where nothing is rounded
    return _with_holes(frame.enter(np.where(holes, stand_in, X)), holes)


def _with_holes(points: Points, holes: BoolArray) -> Points:
    points.exact[holes] = np.nan
    points.search[:, : holes.shape[1]][holes] = np.nan
    return points


def times_powers_of_two(values: FloatArray, exponent: NDArray[Any]) -> FloatArray:
    """Multiply by 2**exponent in place, as `ldexp` does to the last bit, but several times faster where it can."""
    if np.abs(exponent).max(initial=0) < _LARGEST_EXPONENT:
        values *= np.ldexp(1.0, exponent)
    else:
        np.ldexp(values, exponent, out=values)
    return values


def tiles_of(search: SearchArray) -> SearchArray:
    """Arrange points as (tile, dimension, slot); the last tile is filled up with zeros."""
    n, width = search.shape
    tiles = np.zeros((-(-n // TILE), width, TILE), dtype=search.dtype)
    whole = n // TILE
    tiles[:whole] = search[: whole * TILE].reshape(whole, TILE, width).transpose(0, 2, 1)
    if whole < len(tiles):
        tiles[whole, :, : n - whole * TILE] = search[whole * TILE :].T
    return tiles
