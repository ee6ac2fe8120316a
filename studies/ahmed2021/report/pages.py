"""Write a study once, as a list of blocks, and render them as one HTML page and as Markdown.

Texts are plain, with two marks: `**bold**` and a pair of backticks for code. A name that comes from elsewhere goes
through `plain`, so that its stars and backticks are shown as they are; escaping for HTML and Markdown is done here.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import pandas as pd

Format = Callable[[Any], str]
_MARKS = re.compile(r"\\([\\*`])|\*\*(.+?)\*\*|`([^`]+)`", re.DOTALL)
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#$])")
_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp):|\bwww\.|(?<!\bP)@(?=\w)")
_LIST = re.compile(r"^(\s*)([-+=]|\d+(?=[.)]))")


@dataclass(frozen=True)
class Heading:
    """Level 2 is a section, with an entry in the table of contents; level 3 is a part of one."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: str
    warning: bool = False


@dataclass(frozen=True)
class Bullets:
    items: tuple[str, ...]


@dataclass(frozen=True)
class DataTable:
    """A table of text. `numeric`: which columns are numbers; `groups`: titles over several columns, with how many."""

    headers: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    caption: str
    groups: tuple[tuple[str, int], ...] = ()

    @property
    def starts(self) -> set[int]:
        """Columns at which a group begins."""
        ends = [sum(span for _, span in self.groups[:place]) for place in range(len(self.groups))]
        return {start for start, (title, _) in zip(ends, self.groups, strict=True) if title}


@dataclass(frozen=True)
class Picture:
    """A drawing. `name` is that of its file, without the ending; `alt` describes what is to be seen."""

    name: str
    svg: str
    alt: str
    caption: str

    @property
    def base64(self) -> str:
        """The drawing for a data address."""
        return base64.b64encode(self.svg.encode("utf-8")).decode("ascii")


@dataclass(frozen=True)
class CodeBlock:
    text: str
    language: str = ""


@dataclass(frozen=True)
class Details:
    """Blocks that are closed at first."""

    summary: str
    blocks: tuple[Block, ...]


Block = Heading | Paragraph | Bullets | DataTable | Picture | CodeBlock | Details


def plain(name: object) -> str:
    """Escape a name or a message for a text with marks, on one line.

    >>> plain("a**b`c\\nd")
    'a\\\\*\\\\*b\\\\`c d'
    """
    return re.sub(r"([\\*`])", r"\\\1", one_line(name))


def one_line(name: object) -> str:
    """Replace line breaks and characters that cannot be seen; never empty.

    >>> one_line("a\\r\\n  b\\x00"), one_line(" ")
    ('a b�', '(no name)')
    """
    return visible(" ".join(str(name).split())) or "(no name)"


def visible(line: str) -> str:
    """Replace control characters, halves of characters, and those that turn the direction of text."""
    return _INVISIBLE.sub("�", line)


def spans(text: str) -> Iterator[tuple[str, str]]:
    """Split a text into pieces, each with its style: "", "bold" or "code".

    >>> list(spans("run **all** of `a<b`, " + plain("`this")))
    [('run ', ''), ('all', 'bold'), (' of ', ''), ('a<b', 'code'), (', ', ''), ('`', ''), ('this', '')]
    """
    at = 0
    for found in _MARKS.finditer(text):
        if found.start() > at:
            yield text[at : found.start()], ""
        escaped, bold, code = found.groups()
        if bold is not None:
            yield re.sub(r"\\([\\*`])", r"\1", bold), "bold"
        else:
            yield (escaped, "") if escaped is not None else (code, "code")
        at = found.end()
    if at < len(text):
        yield text[at:], ""


def make_table(
    frame: pd.DataFrame,
    caption: str,
    formats: Mapping[str, Format] | Format,
    *,
    titles: Mapping[str, str] | None = None,
    groups: Sequence[tuple[str, int]] = (),
) -> DataTable:
    """Format a frame. Columns with a format are numbers, the others names; missing values are "–".

    >>> frame = pd.DataFrame({"method": ["NMF", "GNMF"], "rank": [1.5, float("nan")]})
    >>> make_table(frame, "Ranks", {"rank": "{:.2f}".format}).cells
    (('NMF', '1.50'), ('GNMF', '–'))
    """
    columns = [str(column) for column in frame.columns]
    by_column = formats if isinstance(formats, Mapping) else dict.fromkeys(columns[1:], formats)
    shown = [[_cell(value, by_column.get(name)) for value in frame.iloc[:, at]] for at, name in enumerate(columns)]
    rows = tuple(zip(*shown, strict=True)) if columns else ()
    headers = tuple((titles or {}).get(name, one_line(name) if name else "") for name in columns)
    return DataTable(headers, rows, tuple(name in by_column for name in columns), caption, tuple(groups))


def _cell(value: Any, form: Format | None) -> str:
    if value is None or (not isinstance(value, (str, list, tuple, dict)) and bool(pd.isna(value))):
        return "–"
    if form is not None:
        return form(value)
    return one_line(value) if str(value).strip() else ""


def pictures(blocks: Iterable[Block]) -> list[Picture]:
    """Return all pictures among the blocks and within them."""
    found: list[Picture] = []
    for block in blocks:
        if isinstance(block, Picture):
            found.append(block)
        elif isinstance(block, Details):
            found += pictures(block.blocks)
    return found


def to_page(blocks: Sequence[Block], title: str, subtitle: str = "") -> str:
    """Render one HTML page that loads nothing and runs nothing, with a table of contents of the level 2 headings.

    >>> page = to_page([Heading(2, "Tables & <b>"), Paragraph("**a** <i>")], "Study")
    >>> "<strong>a</strong> &lt;i&gt;" in page, '<a href="#tables-b">' in page, "<script" in page
    (True, True, False)
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("studies.ahmed2021.report", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style = (
        (resources.files("studies.ahmed2021.report") / "templates" / "study.css").read_text(encoding="utf-8").strip()
    )
    anchors = _anchors(blocks)
    page = environment.get_template("study.html").render(
        title=one_line(title),
        subtitle=visible(subtitle),
        style=style,
        style_digest="sha256-" + base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii"),
        spans=spans,
        body=list(zip(blocks, anchors, strict=True)),
        contents=[
            (anchor, block.text)
            for block, anchor in zip(blocks, anchors, strict=True)
            if isinstance(block, Heading) and block.level == 2
        ],
    )
    return page.lstrip().encode("utf-8", "replace").decode("utf-8")


def _anchors(blocks: Sequence[Block]) -> list[str]:
    """Name each heading, no name twice; "" for other blocks."""
    used: dict[str, int] = {}
    names = []
    for block in blocks:
        name = re.sub(r"[^a-z0-9]+", "-", block.text.lower()).strip("-") or "part" if isinstance(block, Heading) else ""
        used[name] = used.get(name, 0) + 1
        names.append(name if used[name] == 1 or not name else f"{name}-{used[name]}")
    return names


def to_text(blocks: Iterable[Block], title: str, image_folder: str) -> str:
    """Render GitHub's Markdown, with pictures in a folder next to it. The same blocks make the same text.

    >>> print(to_text([Paragraph("1. is **not** a list, <b> is not bold")], "A | B", "images"), end="")
    # A \\| B
    <BLANKLINE>
    1\\. is **not** a list, &lt;b&gt; is not bold
    """
    parts = [f"# {_inline(plain(title))}", *(_markdown(block, image_folder) for block in blocks)]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return text.encode("utf-8", "replace").decode("utf-8")


def _markdown(block: Block, image_folder: str) -> str:
    match block:
        case Heading():
            made = f"{'#' * block.level} {_inline(block.text)}"
        case Paragraph():
            text = _start(_inline(block.text))
            made = f"> **Warning.** {text}" if block.warning else text
        case Bullets():
            made = "\n".join(f"- {_start(_inline(item))}" for item in block.items)
        case DataTable():
            titles = [title for title, span in block.groups for _ in range(span)] or [""] * len(block.headers)
            headers = [f"{title}: {name}" if title else name for title, name in zip(titles, block.headers, strict=True)]
            rule = "| " + " | ".join("---:" if number else "---" for number in block.numeric) + " |"
            caption = f"**Table.** {_inline(block.caption)}\n\n" if block.caption else ""
            made = caption + "\n".join([_line(headers), rule, *map(_line, block.cells)])
        case Picture():
            made = f"![{_words(block.alt)}]({image_folder}/{block.name}.svg)\n\n{_inline(block.caption)}"
        case CodeBlock():
            longest = max((len(found) for found in re.findall("`+", block.text)), default=0)
            fence = "`" * max(3, longest + 1)
            made = f"{fence}{block.language}\n{block.text.rstrip()}\n{fence}"
        case Details():
            inside = "\n\n".join(_markdown(inner, image_folder) for inner in block.blocks)
            summary = block.summary.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            summary = "".join(piece for piece, _ in spans(" ".join(summary.split())))
            made = f"<details>\n<summary>{summary}</summary>\n\n{inside}\n\n</details>"
    return made


def _inline(text: str) -> str:
    """Render a text with marks on one line.

    >>> _inline("**a|b** and `x|y`"), _inline("<img src=x> [a](b) www.c.d http://e")
    ('**a\\\\|b** and `x|y`', '&lt;img src=x&gt; \\\\[a\\\\](b) www\\\\.c.d http\\\\://e')
    """
    pieces = []
    for piece, style in spans(" ".join(text.split())):
        bold = f"**{_words(piece).strip()}**" if style == "bold" else _words(piece)
        pieces.append(f"`{piece}`" if style == "code" else bold)
    return "".join(pieces)


def _words(text: str) -> str:
    text = _SPECIAL.sub(r"\\\1", text.replace("&", "&amp;"))
    text = _LINK.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], text)
    return text.replace("\\<", "&lt;").replace("\\>", "&gt;")


def _start(text: str) -> str:
    """Escape what would begin a list or a rule at the beginning of a line."""
    return _LIST.sub(lambda found: f"{found[1]}{found[2]}\\" if found[2].isdigit() else f"{found[1]}\\{found[2]}", text)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_words(" ".join(cell.split())) or " " for cell in cells) + " |"
