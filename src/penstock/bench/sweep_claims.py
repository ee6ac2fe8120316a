"""The paper's claims about parameters. It shows no table for them: only a study can say."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from penstock.bench.claim_sources import NO_TABLE, NOT_RUN, Finding, Source, yes_or_no
from penstock.bench.significance import without_last_bits

GNMF_SWEEPS = ("GNMF penalty", "GNMF neighbours")  # its own two parameters; other sweeps may have it as a base too
_SMALL = 0.1
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class _Means:
    """Mean P@N, values × methods, all over the same data sets, and how many cells of the sweep have no result."""

    table: pd.DataFrame
    missing: int


def k_range_is_best(source: Source) -> Finding:
    """Is P@N higher for K from 5 to 15 than for the others?"""
    means = _means_by_value(source, "K")
    if isinstance(means, Finding):
        return means
    by_k = means.table.mean(axis=1)
    inside = by_k[(by_k.index >= 5) & (by_k.index <= 15)]
    outside = by_k.drop(inside.index)
    if inside.empty or outside.empty:
        return NOT_RUN
    words = ", ".join(f"K = {k:g}: {value:.3f}" for k, value in by_k.items())
    text = f"mean P@N {words}; best at K = {by_k.idxmax():g}"
    return _judged(text, bool(inside.mean() - outside.mean() > _ROUNDING), means.missing)


def k_keeps_the_order(source: Source) -> Finding:
    """Are the methods in the same order, whatever K is?"""
    means = _means_by_value(source, "K")
    if isinstance(means, Finding):
        return means
    if min(means.table.shape) < 2:
        return NOT_RUN
    orders = [_order(line) for _, line in means.table.iterrows()]
    words = "; ".join(f"K = {k:g}: {order}" for k, order in zip(means.table.index, orders, strict=True))
    return _judged(words, len(set(orders)) == 1, means.missing)


def spread_is_small(source: Source) -> Finding:
    """Does P@N hardly change with alpha?"""
    means = _means_by_value(source, "alpha", "NS-NMF")
    if isinstance(means, Finding):
        return means
    values = means.table["NS-NMF"]
    if len(values) < 2:
        return NOT_RUN
    spread = _relative_spread(values)
    text = f"mean P@N from {values.min():.3f} to {values.max():.3f}, {spread:.0%} of the mean"
    return _judged(text, spread <= _SMALL, means.missing)


def gnmf_is_sensitive(source: Source) -> Finding:
    """Does P@N of GNMF change with its own parameters, more than that of NS-NMF with alpha?"""
    alpha = _means_by_value(source, "alpha", "NS-NMF")
    if isinstance(alpha, Finding):
        return alpha
    ours = _relative_spread(alpha.table["NS-NMF"])
    found = {name: _means_by_value(source, name, "GNMF") for name in GNMF_SWEEPS}
    ran = {name: means for name, means in found.items() if isinstance(means, _Means) and len(means.table) > 1}
    if not ran:
        return NOT_RUN
    spreads = {name: _relative_spread(means.table["GNMF"]) for name, means in ran.items()}
    words = ", ".join(f"{name} {spreads[name]:.0%}" if name in ran else f"{name} not run" for name in GNMF_SWEEPS)
    text = f"of the mean: {words}; NS-NMF, alpha {ours:.0%}"
    steady = [name for name, spread in spreads.items() if spread <= max(ours, _SMALL)]
    missing = alpha.missing + sum(means.missing for means in ran.values())
    if any(alpha.missing + ran[name].missing == 0 for name in steady):
        return Finding(text, "no")  # one parameter that changes little is enough, whatever the rest would give
    if missing == 0 and len(ran) < len(GNMF_SWEEPS):
        return Finding(text, "undecided")
    return _judged(text, not steady, missing)


def _judged(text: str, holds: bool, missing: int) -> Finding:
    if missing:
        return Finding(f"{text}; {missing} cells without a result", "undecided")
    return Finding(text, yes_or_no(holds))


def _order(values: pd.Series) -> str:
    """The methods from the best to the worst; those that tie by name, with = between."""
    by_value = {value: sorted(values.index[values == value]) for value in sorted(set(values), reverse=True)}
    return " > ".join(" = ".join(names) for names in by_value.values())


def _means_by_value(source: Source, name: str, base: str | None = None) -> _Means | Finding:
    """Means over the data sets on which every method (or only `base`) ran with every value that is a number.

    A method or a value without any result is not in them, but its cells are counted as missing.
    """
    sweep = source.sweep(name)
    if sweep is None:
        return NO_TABLE
    cells, gaps = sweep.per_set, sweep.left_out
    if base is not None:
        cells, gaps = cells[cells["base"] == base], gaps[gaps["base"] == base]
    ran = cells[cells["precision_at_n"].notna() & cells["value"].map(_is_number).astype(bool)]
    if ran.empty:
        return NOT_RUN
    ran = ran.assign(value=ran["value"].astype("float64"))
    shared = ran.groupby("value")["base"].nunique()
    ran = ran[ran["value"].isin(shared.index[shared == ran["base"].nunique()])]
    wide = ran.pivot(index="dataset", columns=["base", "value"], values="precision_at_n").dropna()
    if wide.empty:
        return NOT_RUN
    means = wide.mean()
    rounded = pd.Series(without_last_bits(means), index=means.index)
    return _Means(rounded.unstack("base"), len(gaps))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _relative_spread(values: pd.Series) -> float:
    mean = float(values.mean())
    return float(values.max() - values.min()) / mean if mean > 0 else 0.0
