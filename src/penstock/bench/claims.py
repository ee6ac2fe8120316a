"""Every claim of the paper, recomputed from its own tables and from our run."""

from __future__ import annotations

from typing import Any, Protocol

import pandas as pd

from penstock.bench import paper
from penstock.bench.claim_sources import NO_TABLE, Finding, Source, paper_source, run_source
from penstock.bench.number_claims import check_number, rule_of
from penstock.bench.prose_claims import PROSE_CLAIMS, check_plant_prose

COLUMNS = [
    *("claim", "method", "where", "stated", "from_paper_table", "from_our_run"),
    *("holds_in_paper", "holds_in_run", "rule"),
]


class HasRows(Protocol):
    """What `check_claims` needs of results."""

    @property
    def rows(self) -> pd.DataFrame: ...


def check_claims(results: HasRows, plant: Any = None) -> pd.DataFrame:
    """A line per claim: what the paper states, what its own tables give, what our run gives, and whether each holds.

    `rule` says when a claim holds. Both holds_in_paper and holds_in_run are "yes", "no", "undecided" (cells are missing
    that could change it), "not run", "cannot be checked" (the paper shows no table of it) or "not comparable" (the
    paper's power plant is private, ours is simulated; or a time is that of another way to compute). `plant` is what
    `plant.plant_tables` returns.

    >>> from penstock.bench.results import COLUMNS, Results
    >>> claims = check_claims(Results(pd.DataFrame(columns=list(COLUMNS))))
    >>> set(claims["holds_in_run"]), claims["holds_in_paper"].value_counts()["no"]
    ({'not run'}, np.int64(3))
    """
    theirs, ours = paper_source(), run_source(results.rows)
    lines = [*_numbers(theirs, ours, plant), *_prose(theirs, ours, plant)]
    return pd.DataFrame(lines, columns=COLUMNS)


def _numbers(theirs: Source, ours: Source, plant: Any) -> list[dict[str, str]]:
    lines = []
    for claim, method, value, where in paper.claims.itertuples(index=False):
        in_paper = check_number(theirs, claim, method, value)
        in_run = check_number(ours, claim, method, value, plant)
        stated = f"{value:.2e}" if "p-value" in claim else f"{value:g}"
        lines.append(_line((claim, method, where, stated, rule_of(claim)), in_paper, in_run))
    return lines


def _prose(theirs: Source, ours: Source, plant: Any) -> list[dict[str, str]]:
    found = [(claim, claim.check(theirs), claim.check(ours)) for claim in PROSE_CLAIMS]
    found += [(claim, NO_TABLE, outcome) for claim, outcome in check_plant_prose(plant)]
    return [
        _line((claim.claim, claim.method, claim.where, claim.stated, claim.rule), in_paper, in_run)
        for claim, in_paper, in_run in found
    ]


def _line(named: tuple[str, str, str, str, str], in_paper: Finding, in_run: Finding) -> dict[str, str]:
    claim, method, where, stated, rule = named
    return {
        "claim": claim,
        "method": method,
        "where": where,
        "stated": stated,
        "from_paper_table": in_paper.text,
        "from_our_run": in_run.text,
        "holds_in_paper": in_paper.holds,
        "holds_in_run": in_run.holds,
        "rule": rule,
    }
