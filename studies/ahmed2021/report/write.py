"""Put the sections of the study in order, and write the page, the Markdown and the figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.bench import Results
from penstock.report import refuse_existing, write_new
from studies.ahmed2021.overlap import Overlap
from studies.ahmed2021.plant import PlantTables
from studies.ahmed2021.report import sections_claims, sections_paper, sections_rest
from studies.ahmed2021.report.material import Material
from studies.ahmed2021.report.pages import (
    Block,
    Bullets,
    Heading,
    one_line,
    pictures,
    plain,
    to_page,
    to_text,
)
from studies.ahmed2021.report.words import instant

PAGE, TEXT = "study.html", "reproduction.md"
# A section is a list of blocks, or the reason why there is none; an empty list is not mentioned.
SECTIONS: tuple[tuple[str, Callable[[Material], list[Block] | str]], ...] = (
    ("About this study", sections_paper.about),
    ("What reproduces, what does not", sections_paper.summary),
    ("Data sets", sections_paper.data_sets),
    ("True detections compared with the paper's", sections_paper.true_detections),
    ("Better, equal, close, worse", sections_paper.performance_table),
    ("Ranks of the offline methods", sections_rest.offline_ranks),
    ("Ranks of all methods", sections_rest.all_ranks),
    ("Spread over the data sets", sections_rest.boxes),
    ("Few and many attributes", sections_paper.attributes),
    ("Run times", sections_rest.times),
    ("Do the seeds agree?", sections_claims.seeds),
    ("The central claim: form and graph", sections_claims.central_claim),
    ("The paper's statements, one by one", sections_claims.claims),
    ("Nearest configuration", sections_claims.nearest_configurations),
    ("Other variants of the data", sections_paper.other_variants),
    ("Sensitivity", sections_claims.sensitivity),
    ("Convergence", sections_rest.convergence),
    ("Peers and controls", sections_rest.peers),
    ("The plant: tables 8 and 9", sections_rest.plant),
    ("Failures and marks", sections_rest.what_failed),
    ("Settings, and how to repeat this", sections_rest.settings),
)


def compose(material: Material) -> list[Block]:
    """Return all blocks of the report. Sections without results are left out and named at the end."""
    blocks: list[Block] = []
    absent = []
    for title, make in SECTIONS:
        made = make(material)
        if isinstance(made, str):
            absent.append(f"**{title}:** {plain(made)}.")
        elif made:
            blocks += [Heading(2, title), *made]
    if absent:
        blocks += [Heading(2, "Not in this run"), Bullets(tuple(absent))]
    return blocks


def to_html(results: Results, plant: PlantTables | None = None, overlaps: Sequence[Overlap] = ()) -> str:
    """Render the study as one page that needs nothing else, runs no script and loads nothing.

    Parameters
    ----------
    results : Results
        Of `penstock.bench`, complete or not.
    plant : PlantTables, optional
        Tables of the simulated plant.
    overlaps : sequence of Overlap, default=()
        Data sets that share rows, which the page warns of.

    Examples
    --------
    >>> from penstock.bench.results import frame_of
    >>> from studies.ahmed2021.rows import LABELS
    >>> page = to_html(Results(frame_of([], {}, LABELS), title="<Mine>"))
    >>> "<h1>&lt;Mine&gt;</h1>" in page, "Not in this run" in page
    (True, True)
    """
    return _page(results, compose(Material(results, plant, overlaps)))


def to_markdown(
    results: Results,
    plant: PlantTables | None = None,
    overlaps: Sequence[Overlap] = (),
    image_folder: str = "images",
) -> str:
    """Render the same as GitHub's Markdown, with figures in a folder next to it; the same results make the same text.

    >>> from penstock.bench.results import frame_of
    >>> from studies.ahmed2021.rows import LABELS
    >>> to_markdown(Results(frame_of([], {}, LABELS), title="Mine")).splitlines()[0]
    '# Mine'
    """
    return to_text(compose(Material(results, plant, overlaps)), _title(results), image_folder)


def write_study(
    results: Results,
    folder: str | os.PathLike[str],
    *,
    markdown: str | os.PathLike[str] | None = None,
    plant: PlantTables | None = None,
    overlaps: Sequence[Overlap] = (),
    overwrite: bool = False,
) -> list[Path]:
    """Write study.html and reproduction.md into a folder, each wholly or not at all.

    The Markdown may go to another file, `markdown`. Its figures are next to it, in images/ and there in a folder of its
    name: images/reproduction/*.svg.

    Returns
    -------
    list of Path
        The files written, the page and the Markdown first.

    Raises
    ------
    FileExistsError
        If one of the files is there already and `overwrite` is not set; nothing is written then.
    """
    page = Path(folder) / PAGE
    text = Path(folder) / TEXT if markdown is None else Path(markdown)
    images = Path("images") / text.stem
    refuse_existing([page, text], overwrite)  # before any computing
    blocks = compose(Material(results, plant, overlaps))
    contents = {page: _page(results, blocks), text: to_text(blocks, _title(results), images.as_posix())}
    contents |= {text.parent / images / f"{picture.name}.svg": picture.svg for picture in pictures(blocks)}
    refuse_existing(contents, overwrite)
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, [content.encode("utf-8", "replace")], overwrite)
    return list(contents)


def _page(results: Results, blocks: list[Block]) -> str:
    when = instant(results.finished or results.started)
    return to_page(blocks, _title(results), f"{len(results.rows.drop_duplicates('key')):,} cells · {when}")


def _title(results: Results) -> str:
    return one_line(results.title or "Study")
