"""Tasks on runs of rows, of which the views of `penstock.Detector` are learnt."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock._types import FloatArray
from penstock.graph.partition import sample_distinct
from penstock.scale._row_tasks import Extent, extent_of, load_rows
from penstock.scale.workspace import fill_rows, load_arrays, save_array
from penstock.views.encoding import LogEncoding, sums_in_units, sums_of_squares
from penstock.views.joining import Places
from penstock.views.margins import Margins, count_readings, sums_of_surprises
from penstock.views.sampling import Sampling


def add_units(file: Path, start: int, stop: int, unit: FloatArray) -> FloatArray:
    return sums_in_units(load_rows(file, start, stop), unit)


def add_squares(file: Path, start: int, stop: int, unit: FloatArray, mean: FloatArray) -> FloatArray:
    return sums_of_squares(load_rows(file, start, stop), unit, mean)


def encode(
    file: Path, start: int, stop: int, encoding: Path, encoded_file: Path, sampled: int, sample_file: Path
) -> Extent:
    """Encode a run of rows into its place, leave a sample of it in a file, and tell what it ranges over."""
    encoded = load_encoding(encoding).apply(load_rows(file, start, stop))
    fill_rows(encoded_file, start, encoded)
    save_array(sample_file, sample_distinct(encoded, sampled))
    return extent_of(encoded)


def count_bins(file: Path, start: int, stop: int, encoding: Path, bins: Path) -> FloatArray:
    """The histograms of a run's readings."""
    return count_readings(load_margins(bins), load_encoding(encoding).apply(load_rows(file, start, stop)))


def add_surprises(file: Path, start: int, stop: int, encoding: Path, bins: Path) -> FloatArray:
    return sums_of_surprises(load_margins(bins), load_encoding(encoding).apply(load_rows(file, start, stop)))


def view(encoded_file: Path, start: int, stop: int, draws: Path, margins: Path, file: Path) -> None:
    """What the coarse, the fine and the marginal view say of a run of fitted rows, each as if it came last."""
    if file.exists():
        return
    encoded, nothing = load_rows(encoded_file, start, stop), np.zeros(stop - start)
    at_home = Places(np.arange(start, stop), nothing, nothing)
    values = [*(draw.values(encoded, at_home) for draw in load_draws(draws)), load_margins(margins).values(encoded)]
    save_array(file, np.column_stack(values))


def load_encoding(folder: Path) -> LogEncoding:
    return LogEncoding(**load_arrays(folder))


def load_margins(folder: Path) -> Margins:
    return Margins(**load_arrays(folder))


def load_draws(folder: Path) -> tuple[Sampling, Sampling]:
    """The coarse and the fine view."""
    arrays = load_arrays(folder)
    coarse, fine = (Sampling(arrays[f"{name}_members"], arrays[f"{name}_nodes"]) for name in ("coarse", "fine"))
    return coarse, fine
