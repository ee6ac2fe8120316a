"""The paper's claims about parameters. It shows no table for them: only a study can say."""

from __future__ import annotations

import pandas as pd

from penstock.bench.claim_sources import NO_TABLE, NOT_RUN, Finding, Source
from penstock.bench.sweeps import sweep_names, sweep_table

_SMALL = 0.1


def k_range_is_best(source: Source) -> Finding:
    """Is P@N higher for K from 5 to 15 than for the others?"""
    means = _means_by_value(source, "K")
    if isinstance(means, Finding):
        return means
    by_k = means.mean(axis=1)
    inside = by_k[(by_k.index >= 5) & (by_k.index <= 15)]
    outside = by_k.drop(inside.index)
    if inside.empty or outside.empty:
        return NOT_RUN
    words = ", ".join(f"K = {k:g}: {value:.3f}" for k, value in by_k.items())
    text = f"mean P@N {words}; best at K = {by_k.idxmax():g}"
    return Finding(text, "yes" if inside.mean() > outside.mean() else "no")


def k_keeps_the_order(source: Source) -> Finding:
    """Are the methods in the same order, whatever K is?"""
    means = _means_by_value(source, "K")
    if isinstance(means, Finding):
        return means
    if min(means.shape) < 2:
        return NOT_RUN
    orders = [" > ".join(line.sort_values(ascending=False, kind="stable").index) for _, line in means.iterrows()]
    words = "; ".join(f"K = {k:g}: {order}" for k, order in zip(means.index, orders, strict=True))
    return Finding(words, "yes" if len(set(orders)) == 1 else "no")


def spread_is_small(source: Source) -> Finding:
    """Does P@N hardly change with alpha?"""
    means = _means_by_value(source, "alpha")
    if isinstance(means, Finding):
        return means
    if "NS-NMF" not in means or len(means) < 2:
        return NOT_RUN
    spread = _relative_spread(means["NS-NMF"])
    text = f"mean P@N from {means['NS-NMF'].min():.3f} to {means['NS-NMF'].max():.3f}, {spread:.0%} of the mean"
    return Finding(text, "yes" if spread <= _SMALL else "no")


def gnmf_is_sensitive(source: Source) -> Finding:
    """Does P@N of GNMF change with its own parameters, more than that of NS-NMF with alpha?"""
    alpha = _means_by_value(source, "alpha")
    if isinstance(alpha, Finding):
        return alpha
    if "NS-NMF" not in alpha or source.rows is None:
        return NOT_RUN
    ours = _relative_spread(alpha["NS-NMF"])
    spreads = {}
    for name in sweep_names(source.rows):
        means = _means_by_value(source, name)
        if name not in ("K", "alpha") and isinstance(means, pd.DataFrame) and "GNMF" in means and len(means) > 1:
            spreads[name] = _relative_spread(means["GNMF"])
    if not spreads:
        return NOT_RUN
    words = ", ".join(f"{name} {spread:.0%}" for name, spread in spreads.items())
    sensitive = all(spread > max(ours, _SMALL) for spread in spreads.values())
    return Finding(f"of the mean: {words}; NS-NMF, alpha {ours:.0%}", "yes" if sensitive else "no")


def _means_by_value(source: Source, name: str) -> pd.DataFrame | Finding:
    """Mean P@N, values × methods, of the values that are numbers and that all methods have."""
    if source.rows is None:
        return NO_TABLE
    summary = sweep_table(source.rows, name).summary
    summary = summary[[isinstance(value, int | float) for value in summary["value"]]]
    if summary.empty:
        return NOT_RUN
    wide = summary.assign(value=summary["value"].astype("float64")).pivot(
        index="value", columns="base", values="precision_at_n"
    )
    wide = wide.dropna()
    return wide if len(wide) else NOT_RUN


def _relative_spread(values: pd.Series) -> float:
    mean = float(values.mean())
    return float(values.max() - values.min()) / mean if mean > 0 else 0.0
