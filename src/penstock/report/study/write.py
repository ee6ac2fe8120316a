"""Results of a study → a page, Markdown and pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.bench.overlap import Overlap
from penstock.bench.results import Results
from penstock.report import refuse_existing, write_new
from penstock.report.study.blocks import Block, one_line
from penstock.report.study.compose import compose, pictures
from penstock.report.study.markdown import to_text
from penstock.report.study.material import Material
from penstock.report.study.page import to_page
from penstock.report.study.words import instant

if TYPE_CHECKING:
    from penstock.bench.plant import PlantTables

PAGE, TEXT = "study.html", "reproduction.md"


def to_html(results: Results, plant: PlantTables | None = None, overlaps: Sequence[Overlap] = ()) -> str:
    """The study as one page that needs nothing else, runs no script and loads nothing.

    Parameters
    ----------
    results : Results
        Of `penstock.bench`, complete or not.
    plant : PlantTables, optional
        Tables of the simulated plant.
    overlaps : sequence of Overlap
        Data sets that share rows, which the page warns of; those that the results name if none are given.

    Examples
    --------
    >>> from penstock.bench.results import frame_of
    >>> page = to_html(Results(frame_of([], {}), title="<Mine>"))
    >>> "<h1>&lt;Mine&gt;</h1>" in page, "Not in this run" in page
    (True, True)
    """
    return _page(results, _blocks(results, plant, overlaps))


def to_markdown(
    results: Results,
    plant: PlantTables | None = None,
    overlaps: Sequence[Overlap] = (),
    image_folder: str = "images",
) -> str:
    """The same as GitHub's Markdown, with the pictures in a folder beside it; the same results make the same text.

    >>> from penstock.bench.results import frame_of
    >>> to_markdown(Results(frame_of([], {}), title="Mine")).splitlines()[0]
    '# Mine'
    """
    return to_text(_blocks(results, plant, overlaps), _title(results), image_folder)


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

    The Markdown may go to another file, `markdown`. Its pictures are beside it, in images/ and there in a folder of its
    name: images/reproduction/*.svg.

    Returns
    -------
    list of Path
        What was written, the page and the Markdown first.

    Raises
    ------
    FileExistsError
        if one of the files is there already and `overwrite` is not set; nothing is written then.
    """
    page = Path(folder) / PAGE
    text = Path(folder) / TEXT if markdown is None else Path(markdown)
    images = Path("images") / text.stem
    refuse_existing([page, text], overwrite)  # before any computing
    blocks = _blocks(results, plant, overlaps)
    contents = {page: _page(results, blocks), text: to_text(blocks, _title(results), images.as_posix())}
    contents |= {text.parent / images / f"{picture.name}.svg": f"{picture.svg}\n" for picture in pictures(blocks)}
    refuse_existing(contents, overwrite)
    for place in (page.parent, text.parent / images):
        place.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        write_new(path, [content.encode("utf-8", "replace")], overwrite)
    return list(contents)


def _blocks(results: Results, plant: PlantTables | None, overlaps: Sequence[Overlap]) -> list[Block]:
    return compose(Material(results, plant, tuple(overlaps) or results.overlaps))


def _page(results: Results, blocks: list[Block]) -> str:
    when = instant(results.finished or results.started)
    return to_page(blocks, _title(results), f"{len(results.rows.drop_duplicates('key')):,} cells · {when}")


def _title(results: Results) -> str:
    return one_line(results.title or "Study")
