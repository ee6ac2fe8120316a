"""The sections of a study in their order; one without results is left out, and named at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from penstock.report.study import (
    sections_about,
    sections_claims,
    sections_costs,
    sections_paper,
    sections_ranks,
    sections_rest,
    sections_stability,
    sections_summary,
    sections_sweeps,
    sections_variants,
)
from penstock.report.study.blocks import Block, Bullets, Details, Heading, Picture, plain
from penstock.report.study.material import Material

# A section is a list of blocks, or the reason why there is none; an empty list is not worth mentioning.
Section = Callable[[Material], "list[Block] | str"]
SECTIONS: tuple[tuple[str, Section], ...] = (
    ("About this study", sections_about.about),
    ("What reproduces, what does not", sections_summary.summary),
    ("Data sets", sections_about.data_sets),
    ("True detections beside the paper's", sections_paper.true_detections),
    ("Better, equal, close, worse", sections_paper.performance_table),
    ("Ranks of the offline methods", sections_ranks.offline_ranks),
    ("Ranks of all methods", sections_ranks.all_ranks),
    ("Spread over the data sets", sections_ranks.boxes),
    ("Few and many attributes", sections_paper.attributes),
    ("Run times", sections_costs.times),
    ("Do the seeds agree?", sections_stability.seeds),
    ("The central claim: form and graph", sections_claims.central_claim),
    ("The paper's statements, one by one", sections_claims.claims),
    ("Nearest configuration", sections_claims.nearest_configurations),
    ("Other variants of the data", sections_variants.other_variants),
    ("Sensitivity", sections_sweeps.sensitivity),
    ("Convergence", sections_costs.convergence),
    ("Peers and controls", sections_rest.peers),
    ("The plant: tables 8 and 9", sections_rest.plant),
    ("Failures and marks", sections_rest.what_failed),
    ("Settings, and how to repeat this", sections_rest.settings),
)
# What only a run on the paper's data sets can say.
_OF_PAPER = (
    sections_summary.summary,
    sections_paper.true_detections,
    sections_paper.performance_table,
    sections_ranks.offline_ranks,
    sections_paper.attributes,
    sections_claims.central_claim,
    sections_claims.claims,
    sections_claims.nearest_configurations,
    sections_variants.other_variants,
)


def compose(material: Material) -> list[Block]:
    """All blocks of the study."""
    blocks: list[Block] = []
    absent = []
    for title, make in SECTIONS:
        made = [] if make in _OF_PAPER and not material.of_paper else make(material)
        if isinstance(made, str):
            absent.append(f"**{title}:** {plain(made)}.")
        elif made:
            blocks += [Heading(2, title), *made]
    if absent:
        blocks += [Heading(2, "Not in this run"), Bullets(tuple(absent))]
    return list(_with_names(blocks, {}))


def _with_names(blocks: Iterable[Block], used: dict[str, int]) -> Iterable[Block]:
    """No two pictures have the same file: a second one gets a number."""
    for block in blocks:
        if isinstance(block, Details):
            yield replace(block, blocks=tuple(_with_names(block.blocks, used)))
        elif isinstance(block, Picture):
            used[block.name] = used.get(block.name, 0) + 1
            yield block if used[block.name] == 1 else replace(block, name=f"{block.name}--{used[block.name]}")
        else:
            yield block


def pictures(blocks: Iterable[Block]) -> list[Picture]:
    """All pictures among the blocks and within them."""
    found: list[Picture] = []
    for block in blocks:
        if isinstance(block, Picture):
            found.append(block)
        elif isinstance(block, Details):
            found += pictures(block.blocks)
    return found
