"""The four views of a row that make up `penstock.Detector`, each on one scale.

A view gives a number that is high for odd rows; the logarithm of that number, standardised by the training rows, is the
view's part of the score. Rows are arrays of shape (n, p); NaN marks a missing reading. A training row is looked at as
if it came last, without itself, so that new rows are measured as training rows are.

What is fitted to all rows (encoding, histograms) is fitted by sums over blocks of rows, so that other programs can
learn it from parts of the rows and get the same numbers to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock._progress import set_stage
from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray, Tree
from penstock.detectors import _view_kernels as kernels
from penstock.detectors._packing import check_some_seen
from penstock.graph.edges import nearest_by_tree, pair_distances, shortest_edges
from penstock.graph.mst import spanning_tree_of_comparable
from penstock.graph.points import tiles_of
from penstock.graph.rows import first_copies, rows_equal
from penstock.graph.search import RowSearch
from penstock.storage import Fields, Record, pack_fields, read_fields

VIEWS = ("coarse", "fine", "local", "marginal")
# How often, and how many rows are drawn: docs/decisions/0015-default-detector.md.
COARSE = (128, 4)
FINE = (64, 32)
BLOCK = 1024  # rows that are added up together
_LARGEST = float(np.finfo(np.float64).max)
_TINY = float(np.finfo(np.float64).tiny)
_MOVE = 1e-3  # of a column that was constant, in units of its level (of 1, if that is 0): that it moves is news
_ONE_MOVE = float(np.log1p(1.0))  # encoded
_FEWEST_BINS = 5
_NEARBY = 0.1  # of the distance to the nearest other row
_MOSTLY_COPIES = 3  # training rows per different one
_COLUMNS_AT_ONCE = 32  # whose medians are looked for
_ROWS_MEASURED = 64  # whose distances to all nodes are held at once
_SUMMED = 1 << 22  # distances and columns, below which a thread costs more than it saves


def block_sums(rows: FloatArray, add: Callable[[int, int, FloatArray], None]) -> FloatArray:
    """Return (blocks, p): what `add` adds to the sums of the columns for each block of rows, from its first to last."""
    sums = np.zeros((-(-len(rows) // BLOCK), rows.shape[1]))
    for place, start in enumerate(range(0, len(rows), BLOCK)):
        add(start, min(start + BLOCK, len(rows)), sums[place])
    return sums


@dataclass(frozen=True, eq=False)
class LogEncoding:
    """sign(z)·log(1 + |z|), where z = (x − median)/standard deviation of a column; NaN stays NaN.

    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0], [100.0]])
    >>> learn_encoding(rows).apply(rows).round(2).ravel().tolist()
    [-0.05, -0.03, 0.0, 0.03, 1.25]
    """

    unit: FloatArray  # what readings are divided by first, so that no square of them overflows
    center: FloatArray  # median in that unit
    spread: FloatArray  # standard deviation in that unit; of a constant column what counts as a move
    constant: NDArray[np.bool_]  # where less than that is rounding, and no move

    def apply(self, A: FloatArray) -> FloatArray:
        """Encode rows."""
        out = np.empty(A.shape)
        kernels.encode_rows(A, self.unit, self.center, self.spread, out)
        if self.constant.any():
            out[(np.abs(out) < _ONE_MOVE) & self.constant] = 0.0
        return out


def learn_encoding(A: FloatArray) -> LogEncoding:
    """Learn an encoding from rows in which every column has a reading."""
    low, high, n = np.fmin.reduce(A, axis=0), np.fmax.reduce(A, axis=0), len(A)
    unit, center = unit_of(low, high), np.empty(A.shape[1])
    n_seen = np.full(A.shape[1], n) if not np.isnan(A).any() else np.count_nonzero(~np.isnan(A), axis=0)
    mean = sums_in_units(A, unit).sum(axis=0) / n_seen
    spread = np.sqrt(sums_of_squares(A, unit, mean).sum(axis=0) / n_seen)
    for start in range(0, A.shape[1], _COLUMNS_AT_ONCE):
        columns = A[:, start : start + _COLUMNS_AT_ONCE].T.copy()
        columns /= unit[start : start + _COLUMNS_AT_ONCE, None]
        columns.sort(axis=1)  # NaN last
        seen, at = n_seen[start : start + _COLUMNS_AT_ONCE], np.arange(len(columns))
        center[start : start + _COLUMNS_AT_ONCE] = (columns[at, (seen - 1) // 2] + columns[at, seen // 2]) / 2
    return encoding_of(low, high, center, spread)


def encoding_of(low: FloatArray, high: FloatArray, center: FloatArray, spread: FloatArray) -> LogEncoding:
    """Return the encoding of columns with these ranges and, in their units, medians and standard deviations."""
    unit = unit_of(low, high)
    constant = low / unit == high / unit  # where rounding may leave a spread above 0
    constant |= ~(spread > 0)
    return LogEncoding(unit, center, np.where(constant, _MOVE, spread), constant)


def unit_of(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the largest size of a reading per column; 1 where all are 0."""
    largest = np.maximum(np.abs(low), np.abs(high))
    return np.where(largest > 0, largest, 1.0)


def sums_in_units(A: FloatArray, unit: FloatArray) -> FloatArray:
    """Return the sums of readings by blocks of rows, without missing ones.

    >>> sums_in_units(np.ones((1500, 2)), np.array([0.5, 1.0])).tolist()
    [[2048.0, 1024.0], [952.0, 476.0]]
    """
    nothing = np.zeros(len(unit))
    return block_sums(A, lambda start, stop, out: kernels.add_columns(A, start, stop, unit, nothing, False, out))


def sums_of_squares(A: FloatArray, unit: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the sums of squares around the mean by blocks of rows."""
    return block_sums(A, lambda start, stop, out: kernels.add_columns(A, start, stop, unit, mean, True, out))


@dataclass(frozen=True)
class LogStandard:
    """(log value − mean)/spread over the training rows; values below `floor` count as `floor`.

    >>> standard = learn_standard(np.array([1.0, 10.0, 100.0]))
    >>> standard.apply(np.array([10.0, 100.0, 1000.0])).round(3).tolist()
    [0.0, 1.225, 2.449]
    """

    floor: float
    mean: float
    spread: float

    def apply(self, values: FloatArray) -> FloatArray:
        """Put values on the scale; NaN becomes 0."""
        out = np.empty(len(values))
        kernels.standardise(values, self.floor, self.mean, self.spread, out)
        return out


def learn_standard(values: FloatArray) -> LogStandard:
    """Learn a scale from the values of training rows; NaN is left out.

    `floor` is half the smallest value above 0 (a millionth, if all are 0). Values that are equal to rounding are all at
    0, with a spread of 1.
    """
    known = values[~np.isnan(values)]
    positive = known[known > 0]
    floor = max(float(positive.min()) / 2, _TINY) if len(positive) else 1e-6
    logs = np.log(np.maximum(known, floor)) if len(known) else np.zeros(1)
    if np.ptp(logs) <= 1e-6:
        return LogStandard(floor, float(logs[0]), 1.0)
    return LogStandard(floor, float(logs.mean()), float(logs.std()))


@dataclass(frozen=True, eq=False)
class Places:
    """Where rows are among the fitted ones.

    apart : 0 if the row *is* that fitted row, 1 if it is as far from it as a tenth of the distance to its nearest
        neighbour or farther. In between a view blends what it says of the fitted row and of a new row, so that values
        do not jump.
    """

    near: IndexArray  # the nearest fitted row; −1 if none shares a column with the row
    distance: FloatArray  # to it
    apart: FloatArray


@dataclass(frozen=True, eq=False)
class Joining:
    """The local view: the edge that joins a row to the tree of the others, plus the mean edge at the row it joins.

    By the cut property the first is the distance to the nearest row. A fitted row's own edge counts once, and not among
    those of the row that it joins.
    """

    search: RowSearch  # the fitted rows, all different
    reach: FloatArray  # (m,) how near a new row must be to a fitted one to be taken for it in part
    around: FloatArray  # (m,) mean length of its edges
    own: FloatArray  # (m,) value of this view for it
    joins: IndexArray  # (m,) its nearest other row

    def places(self, Q: FloatArray, likely: IndexArray | None = None) -> Places:
        """Find rows. A row that equals fitted ones is the one in `likely`, if that is among them, else the first."""
        near, distance, equal = self.search.nearest_or_equal(Q)
        # The search takes rows for equal that are nearer than 1e-150 of the largest range: compare them.
        rows, claimed = self.search.rows, np.flatnonzero(equal)
        unclear = claimed[~rows_equal(rows[near[claimed]], Q[claimed])]
        if len(unclear):
            original = first_copies(np.concatenate([rows, Q[unclear]]))[len(rows) :]
            equal[unclear] = original < len(rows)
            near[unclear] = np.where(equal[unclear], original, near[unclear])
        if likely is not None:
            near = np.where(equal & rows_equal(rows[likely], Q), likely, near)
        with np.errstate(over="ignore"):
            apart = np.minimum(1.0, distance / self.reach[near])
        return Places(near, distance, np.where(near < 0, 1.0, np.where(equal, 0.0, apart)))

    def own_places(self) -> Places:
        """Return the places of the fitted rows themselves."""
        m = len(self.own)
        return Places(np.arange(m), np.zeros(m), np.zeros(m))

    def values(self, places: Places) -> FloatArray:
        """Return the view's values; NaN for rows that share no column with any fitted one."""
        own = self.own[places.near]
        with np.errstate(invalid="ignore", over="ignore"):
            joined = np.minimum(places.distance + self.around[places.near], _LARGEST)
            blended = np.where(places.apart == 1, joined, (1 - places.apart) * own + places.apart * joined)
        return np.where(places.near < 0, np.nan, np.where(places.apart == 0, own, blended))

    def gaps(self, Q: FloatArray, places: Places) -> FloatArray:
        """Return (n, p): what each variable adds to the squared length of the edge, up to a factor per row.

        0 where one of the two readings is missing. Of a row that equals a fitted one, the edge that joins that one.
        """
        neighbors = self.search.rows[np.where(places.apart == 0, self.joins[places.near], places.near)]
        gaps = np.abs(np.nan_to_num(Q / 2 - neighbors / 2))
        largest = gaps.max(axis=1, keepdims=True)
        squares: FloatArray = (gaps / np.where(largest > 0, largest, 1.0)) ** 2  # neither overflow nor vanish
        return np.where((places.near < 0)[:, None], 0.0, squares)


def join_rows(rows: FloatArray, tree: Tree, times: IndexArray) -> Joining:
    """Return the local view of rows that are all different, given their spanning tree.

    times : (m,) how many training rows each stands for. Where two of three rows or more are copies, a row that is there
        c times has a c-th of its value: elsewhere copies say little of what is normal.
    """
    search = RowSearch(rows)
    if len(rows) == 1:
        return Joining(search, np.full(1, _NEARBY), np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.intp))
    near, edge, total, degree = nearest_by_tree(tree)
    # A row that has no other edge would, without the one that joins it, join a third: no nearer than that one, and no
    # farther than its other neighbours. The mean of the two bounds stands for it.
    alone = degree[near] == 1
    ends, other_ends = tree.edges.T.ravel(), tree.edges[:, ::-1].T.ravel()
    apart = alone[ends] & (other_ends != near[ends])
    instead = np.full(len(rows), np.inf)
    pairs = np.column_stack([near[ends[apart]], other_ends[apart]])
    np.fmin.at(instead, ends[apart], pair_distances(rows, pairs))
    instead = np.where(np.isfinite(instead), edge / 2 + np.maximum(instead, edge) / 2, edge)
    total = np.minimum(total, _LARGEST)
    others = np.where(alone, instead, (total[near] - edge) / np.maximum(degree[near] - 1, 1))
    with np.errstate(over="ignore"):
        own = np.minimum(edge + others, _LARGEST)
    own = own / times if _MOSTLY_COPIES * len(rows) <= times.sum() else own
    return Joining(search, _NEARBY * shortest_edges(tree), total / degree, own, near)


@dataclass(frozen=True, eq=False)
class Sampling:
    """The coarse and the fine view: mean Manhattan distance to the nearest of a few fitted rows, over several draws.

    A few rows of a table with few anomalies hold none most of the time: anomalies do not hide each other. A row is in
    many draws; its distance is computed once.
    """

    coarse: IndexArray  # (draws, size) which of the fitted rows
    fine: IndexArray  # (draws, size) which of the fitted rows
    times: IndexArray  # (m,) how many training rows each fitted row stands for
    drawn: IndexArray  # (k,) the fitted rows that are in a draw, each once, ascending
    nodes: FloatArray  # (k, p) these rows

    @cached_property
    def _tiles(self) -> FloatArray:
        return np.asarray(tiles_of(self.nodes), dtype=np.float64)

    @cached_property
    def _has_holes(self) -> bool:
        return bool(np.isnan(self.nodes).any())

    @cached_property
    def _draws(self) -> tuple[IndexArray, IndexArray]:
        """The draws by place in `drawn`."""
        return np.searchsorted(self.drawn, self.coarse), np.searchsorted(self.drawn, self.fine)

    def values(self, Q: FloatArray, places: Places) -> tuple[FloatArray, FloatArray]:
        """Return the values of both views; a row is no node for itself. NaN where no node shares a column with a row.

        One of c equal training rows is left out: the others are nodes at a distance of 0.
        """
        found = np.empty(len(Q)), np.empty(len(Q))
        self._for_each_block(Q, places, found, kernels.means_to_nodes)
        return found

    def gaps(self, Q: FloatArray, places: Places) -> tuple[FloatArray, FloatArray]:
        """Return twice (n, p): what each variable adds to `values`."""
        found = np.empty(Q.shape), np.empty(Q.shape)

        def measure(distances: FloatArray, *arguments: Any) -> None:
            kernels.gaps_to_nodes(Q, self.nodes, distances.copy(), *arguments)

        self._for_each_block(Q, places, found, measure)
        return found

    def _for_each_block(
        self, Q: FloatArray, places: Places, views: tuple[FloatArray, FloatArray], measure: Callable[..., None]
    ) -> None:
        """Let `measure`, called as `means_to_nodes` is, fill the values of both views, block after block of rows."""
        found = np.minimum(np.searchsorted(self.drawn, places.near), len(self.drawn) - 1)
        twins = np.where(self.drawn[found] == places.near, found, -1)
        apart = 1.0 - (1.0 - places.apart) / self.times[places.near]
        tiles, holes = self._tiles, self._has_holes

        def measure_range(start: int, stop: int) -> None:
            distances = np.empty((min(_ROWS_MEASURED, stop - start), tiles.shape[0] * tiles.shape[2]))
            for first in range(start, stop, _ROWS_MEASURED):
                last = min(first + _ROWS_MEASURED, stop)
                kernels.distances_to_nodes(Q, first, last, tiles, holes, distances)
                for draws, out in zip(self._draws, views, strict=True):
                    measure(distances[: last - first], draws, twins, apart, first, out)

        for_each_range(measure_range, len(Q), smallest=1 + _SUMMED // (tiles.size + 1))


def draw_nodes(rows: FloatArray, copy_of: IndexArray, rng: np.random.Generator) -> Sampling:
    """Draw rows for the coarse and the fine view: each training row with the same chance, copies as often as they are.

    rows : (m, p) the fitted rows, all different.
    copy_of : (n,) which of them each training row is or equals.
    """
    coarse, fine = (copy_of[draw_numbers(len(copy_of), *how, rng)] for how in (COARSE, FINE))
    return sampling_of(rows, coarse, fine, np.bincount(copy_of, minlength=len(rows)))


def sampling_of(rows: FloatArray, coarse: IndexArray, fine: IndexArray, times: IndexArray) -> Sampling:
    """Return the coarse and the fine view of fitted rows, given the draws."""
    drawn = np.unique(np.concatenate([coarse.ravel(), fine.ravel()]))
    return Sampling(coarse, fine, times, drawn, rows if len(drawn) == len(rows) else np.ascontiguousarray(rows[drawn]))


def draw_numbers(n: int, draws: int, size: int, rng: np.random.Generator) -> IndexArray:
    """Draw `size` different numbers below n (all, if there are fewer) `draws` times (Floyd's algorithm).

    >>> np.sort(draw_numbers(3, 2, 4, np.random.default_rng(0))).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    size = min(size, n)
    members: IndexArray = rng.integers(0, np.arange(n - size + 1, n + 1), (draws, size), dtype=np.intp)
    kernels.take_different(members, n - size)
    return members


@dataclass(frozen=True, eq=False)
class Margins:
    """The marginal view: Σ over variables of how much more surprising than usual a reading is.

    max(0, −log share − usual). The share is that of a histogram with about log₂ n bins, interpolated between the
    middles of the bins and down to 0 beyond the ends. With missing readings the sum is scaled up to all variables.
    """

    low: FloatArray  # (p,) where the bins begin
    width: FloatArray  # (p,) of a bin
    counts: FloatArray  # (p, bins + 2) with an empty bin at either end
    total: FloatArray  # (p,) readings
    usual: FloatArray  # (p,) the mean surprise of the training readings

    def surprises(self, Q: FloatArray, own: FloatArray, share: FloatArray) -> FloatArray:
        """Return (n, p): −log share of each reading.

        own : (n, p) training rows, of which as much as `share` (n,) is left out: all of a row that is looked at itself.
        """
        out = np.empty(Q.shape)
        kernels.surprises_of(Q, own, share, self.low, self.width, self.counts, self.total, out)
        return out

    def excesses(self, Q: FloatArray, own: FloatArray, share: FloatArray) -> FloatArray:
        """Return (n, p): how much more surprising than usual each reading is; NaN where it is missing."""
        return np.maximum(self.surprises(Q, own, share) - self.usual, 0.0)

    def values(self, Q: FloatArray, own: FloatArray, share: FloatArray) -> FloatArray:
        """Return the view's values."""
        out = np.empty(len(Q))
        usual = np.exp(-self.usual)
        kernels.sum_excesses(Q, own, share, self.low, self.width, self.counts, self.total, usual, out)
        return out


def learn_margins(rows: FloatArray) -> Margins:
    """Learn the marginal view from rows in which every column has a reading; copies count as often as they occur."""
    bins = empty_bins(len(rows), np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0))
    filled = with_counts(bins, count_readings(bins, rows))
    return with_usual(filled, sums_of_surprises(filled, rows).sum(axis=0))


def empty_bins(n: int, low: FloatArray, high: FloatArray) -> Margins:
    """Return empty histograms for n rows whose columns range from low to high."""
    bins = max(_FEWEST_BINS, round(np.log2(n) + 1))
    varies = high > low
    width = np.where(varies, (high - low) / bins, 1.0)
    width = np.where(width > 0, width, 1.0)  # a range that is no more than rounding
    low = np.where(varies, low, low - 0.5)  # a constant is in the middle of its bin
    nothing = np.zeros(len(low))
    return Margins(low, width, np.zeros((len(low), bins + 2)), nothing, nothing)


def count_readings(margins: Margins, rows: FloatArray) -> FloatArray:
    """Return (p, bins + 2): how many readings of these rows are in each bin."""
    counts = np.zeros_like(margins.counts)
    kernels.count_bins(rows, margins.low, margins.width, counts)
    return counts


def with_counts(margins: Margins, counts: FloatArray) -> Margins:
    """Return the histograms with these counts."""
    return replace(margins, counts=counts, total=counts.sum(axis=1))


def sums_of_surprises(margins: Margins, rows: FloatArray) -> FloatArray:
    """Return the sums of surprises by blocks of rows, each row without itself."""
    bins = margins.low, margins.width, margins.counts, margins.total
    return block_sums(rows, lambda start, stop, out: kernels.add_surprises(rows, start, stop, *bins, out))


def with_usual(margins: Margins, surprise: FloatArray) -> Margins:
    """Return the view, given the sum of the surprises of all readings of each column."""
    # Readings that are all equally surprising are not more so than usual, however their mean is rounded.
    return replace(margins, usual=surprise / margins.total + 1e-12)


@dataclass(frozen=True)
class Standards:
    """The scale of each view; the local one is the mean of `plain` and `logged`."""

    coarse: LogStandard
    fine: LogStandard
    plain: LogStandard
    logged: LogStandard
    marginal: LogStandard


NO_STANDARDS = Standards(*[LogStandard(1.0, 0.0, 1.0)] * 5)
_STANDARDS = tuple(field.name for field in fields(Standards))


@dataclass(frozen=True, eq=False)
class Composite:
    """Four views of any row."""

    encoding: LogEncoding
    plain: Joining  # the local view, of readings as they are
    logged: Joining  # the local view, of encoded readings
    sampled: Sampling  # the coarse and the fine view, of encoded readings
    marginal: Margins  # of encoded readings
    standards: Standards

    def parts(self, A: FloatArray) -> FloatArray:
        """Return (n, 4): how odd each row is in each view; 0 is usual, 1 a standard deviation above it."""
        return self._on_one_scale(self._raw(*self._places(A)))

    def parts_and_shares(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `parts`, and (n, 4, p): each variable's share of a view's value, summing to 1.

        Missing readings have no share.
        """
        encoded, at, log_at = self._places(A)
        seen = ~np.isnan(A)
        local = (_shares(self.plain.gaps(A, at), seen) + _shares(self.logged.gaps(encoded, log_at), seen)) / 2
        coarse, fine = self.sampled.gaps(encoded, log_at)
        marginal = np.nan_to_num(self.marginal.excesses(encoded, *self._left_out(log_at)))
        shares = [_shares(coarse, seen), _shares(fine, seen), local, _shares(marginal, seen)]
        return self._on_one_scale(self._raw(encoded, at, log_at)), np.stack(shares, axis=1)

    def own_raw(self, encoded: FloatArray) -> tuple[FloatArray, ...]:
        """Return the values of each view for the fitted rows, given their encoding, before they are standardised."""
        at = self.logged.own_places()
        sampled = self.sampled.values(encoded, at)
        marginal = self.marginal.values(encoded, encoded, 1.0 - at.apart)
        return *sampled, self.plain.values(self.plain.own_places()), self.logged.values(at), marginal

    def on_their_scale(self, raw: tuple[FloatArray, ...], copy_of: IndexArray) -> tuple[Composite, FloatArray]:
        """Return the views with scales fitted to `own_raw`, and the parts (n, 4) of all training rows.

        copy_of : (n,) which fitted row each training row is or equals.
        """
        standards = Standards(*(learn_standard(values[copy_of]) for values in raw))
        views = replace(self, standards=standards)
        return views, views._on_one_scale(raw)[copy_of]

    def _places(self, A: FloatArray) -> tuple[FloatArray, Places, Places]:
        """Encode and find rows; different fitted rows may be equal when encoded."""
        encoded, at = self.encoding.apply(A), self.plain.places(A)
        return encoded, at, self.logged.places(encoded, at.near)

    def _raw(self, encoded: FloatArray, at: Places, log_at: Places) -> tuple[FloatArray, ...]:
        """Return the values of the views, in the order of `Standards`."""
        return (
            *self.sampled.values(encoded, log_at),
            self.plain.values(at),
            self.logged.values(log_at),
            self.marginal.values(encoded, *self._left_out(log_at)),
        )

    def _left_out(self, at: Places) -> tuple[FloatArray, FloatArray]:
        """Return (n, p) the nearest fitted rows, and (n,) how much of each is not to be in the histograms."""
        return np.asarray(self.logged.search.rows[at.near]), 1.0 - at.apart

    def _on_one_scale(self, raw: tuple[FloatArray, ...]) -> FloatArray:
        scales = (getattr(self.standards, name) for name in _STANDARDS)
        coarse, fine, plain, logged, marginal = (scale.apply(values) for scale, values in zip(scales, raw, strict=True))
        return np.column_stack([coarse, fine, (plain + logged) / 2, marginal])

    def pack(self) -> dict[str, Any]:
        """Return the views for a file: the rows once, as they are; encoded ones and nodes follow from them."""
        return {
            "rows": self.plain.search.rows,
            "encoding": pack_fields(self.encoding, _FIELDS["encoding"]),
            "plain": pack_fields(self.plain, _JOINING),
            "logged": pack_fields(self.logged, _JOINING),
            "draws": pack_fields(self.sampled, _FIELDS["draws"]),
            "marginal": pack_fields(self.marginal, _FIELDS["marginal"]),
            "standards": pack_fields(self.standards, _FIELDS["standards"]),
        }


def learn_composite(
    A: FloatArray, kept: IndexArray, copy_of: IndexArray, tree: Tree, rng: np.random.Generator
) -> tuple[Composite, FloatArray]:
    """Learn the views of rows; return them and the parts (n, 4) of the rows.

    A : all rows.
    kept, copy_of : the rows that differ from all before them, and which of these each row is or equals.
    tree : the spanning tree of the kept rows.
    """
    rows = A if len(kept) == len(A) else np.ascontiguousarray(A[kept])
    times = np.bincount(copy_of, minlength=len(kept))
    encoding = learn_encoding(A)
    encoded = encoding.apply(rows)
    log_tree = spanning_tree_of_comparable(encoded) if len(rows) > 1 else tree
    set_stage("views of the rows")
    views = Composite(
        encoding,
        join_rows(rows, tree, times),
        join_rows(encoded, log_tree, times),
        draw_nodes(encoded, copy_of, rng),
        learn_margins(encoded if len(kept) == len(A) else encoding.apply(A)),
        NO_STANDARDS,
    )
    return views.on_their_scale(views.own_raw(encoded), copy_of)


def counted(parts: FloatArray) -> FloatArray:
    """Return the parts that count: the two largest of each row, 0 for the others.

    An anomaly far from all rows is seen by every view; a tight group of anomalies escapes the local view, and a row
    that is odd only as a whole escapes the marginal one. Two views that agree are enough.

    >>> counted(np.array([[3.0, 1.0, 2.0, 0.5]])).tolist()
    [[3.0, 0.0, 2.0, 0.0]]
    """
    out = np.empty(parts.shape)
    kernels.two_largest(np.ascontiguousarray(parts), out)
    return out


def total_of(parts: FloatArray) -> FloatArray:
    """Return the sum of the parts of each row, added in the order of the views."""
    return ((parts[:, 0] + parts[:, 1]) + parts[:, 2]) + parts[:, 3]


def _shares(gaps: FloatArray, seen: FloatArray) -> FloatArray:
    """Return shares of the row's sum; equal ones for all readings that are there, where the sum is 0."""
    largest = gaps.max(axis=1, initial=0.0)
    scaled = gaps / np.where(largest > 0, largest, 1.0)[:, None]  # so that no sum overflows
    even = np.where((largest > 0)[:, None], scaled, seen)
    return np.asarray(even / even.sum(axis=1, keepdims=True))


_JOINING: Fields = {"reach": "m >0", "around": "m >=0", "own": "m >=0", "joins": "m int >=0 <m"}
# Mean and spread are those of logarithms: none of a float is larger than 1000, and with a spread below 1e-20 scores may
# overflow.
_STANDARD: Fields = {"floor": "float >0", "mean": "float >=-1000 <=1000", "spread": "float >=1e-20 <=1000"}
_FIELDS: Fields = {
    "rows": "m p nan",
    "encoding": {"unit": "p >0", "center": "p >=-1 <=1", "spread": "p >0"},
    "plain": _JOINING,
    "logged": _JOINING,
    "draws": {"coarse": f"{COARSE[0]} c int >=0 <m", "fine": f"{FINE[0]} f int >=0 <m"},
    "marginal": {"low": "p", "width": "p >0", "counts": "p b >=0", "total": "p >0", "usual": "p >=0"},
    "standards": {field.name: _STANDARD for field in fields(Standards)},
}


def unpack_views(record: Record, copy_of: IndexArray, p: int) -> Composite:
    """Return the views of p columns that `Composite.pack` gave, all of it checked, given which row each row equals."""
    times, n = np.bincount(copy_of), len(copy_of)
    sizes = {"m": len(times), "p": p, "c": min(COARSE[1], n), "f": min(FINE[1], n)}  # draws as `draw_numbers` has them
    found = read_fields(record, _FIELDS, sizes)
    rows = found["rows"]
    check_some_seen(record, rows)
    if sizes["b"] < 3:
        raise record.part("marginal").error("counts", "of at least one bin between two empty ones")
    constant = np.fmin.reduce(rows, axis=0) == np.fmax.reduce(rows, axis=0)
    encoding = LogEncoding(**found["encoding"], constant=constant)
    encoded = encoding.apply(rows)
    return Composite(
        encoding,
        Joining(RowSearch(rows), **found["plain"]),
        Joining(RowSearch(encoded), **found["logged"]),
        sampling_of(encoded, **found["draws"], times=times),
        Margins(**found["marginal"]),
        Standards(**{name: LogStandard(**values) for name, values in found["standards"].items()}),
    )
