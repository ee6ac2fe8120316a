"""Blocks as one HTML page that loads nothing and runs nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

from penstock.report.closed_page import environment, policy, template_text
from penstock.report.study.blocks import (
    Block,
    Bullets,
    CodeBlock,
    DataTable,
    Details,
    Heading,
    Paragraph,
    Picture,
    one_line,
    spans,
    visible,
)

_LONG = 36  # characters of a cell that may be broken into lines
_TAGS = {"bold": "strong", "code": "code"}


def to_page(blocks: Sequence[Block], title: str, subtitle: str) -> str:
    """The whole page, with a table of contents of the headings of level 2.

    >>> page = to_page([Heading(2, "Tables & <b>"), Paragraph("**a** <i>")], "Study", "")
    >>> "<strong>a</strong> &lt;i&gt;" in page, '<a href="#tables-b">' in page, "<script" in page
    (True, True, False)
    """
    style = template_text("study.css")
    title, subtitle = one_line(title), visible(subtitle)
    contents, names = [], _anchors(blocks)
    body = []
    for block, name in zip(blocks, names, strict=True):
        if isinstance(block, Heading):
            if block.level == 2:
                contents.append((name, inline(block.text)))
            body.append(Markup('<h{0} id="{1}">{2}</h{0}>').format(block.level, name, inline(block.text)))
        else:
            body.append(render(block))
    page = (
        environment()
        .get_template("study.html")
        .render(title=title, subtitle=subtitle, policy=policy(style), style=Markup(style), contents=contents, body=body)
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def render(block: Block) -> Markup:
    match block:
        case Heading():
            made = Markup("<h{0}>{1}</h{0}>").format(block.level, inline(block.text))
        case Paragraph():
            made = Markup("<p{}>{}</p>").format(Markup(' class="warning"') if block.warning else "", inline(block.text))
        case Bullets():
            items = Markup("\n").join(Markup("<li>{}</li>").format(inline(item)) for item in block.items)
            made = Markup("<ul>\n{}\n</ul>").format(items)
        case DataTable():
            made = _table(block)
        case Picture():
            drawing = Markup('<div class="scroll" tabindex="0">\n{}\n</div>').format(Markup(block.svg))
            made = Markup("<figure>\n{}\n<figcaption>{}</figcaption>\n</figure>").format(drawing, inline(block.caption))
        case CodeBlock():
            made = Markup('<pre tabindex="0"><code>{}</code></pre>').format(block.text)
        case Details():
            inside = Markup("\n").join(render(inner) for inner in block.blocks)
            made = Markup("<details>\n<summary>{}</summary>\n{}\n</details>").format(inline(block.summary), inside)
    return made


def inline(text: str) -> Markup:
    """
    >>> inline("**a** `<b>`")
    Markup('<strong>a</strong> <code>&lt;b&gt;</code>')
    """
    pieces = [
        Markup("<{0}>{1}</{0}>").format(_TAGS[kind], piece) if kind else escape(piece) for piece, kind in spans(text)
    ]
    return Markup("").join(pieces)


def _anchors(blocks: Sequence[Block]) -> list[str]:
    """A name for each heading, none twice; "" for what is no heading."""
    used: dict[str, int] = {}
    names = []
    for block in blocks:
        name = re.sub(r"[^a-z0-9]+", "-", block.text.lower()).strip("-") or "part" if isinstance(block, Heading) else ""
        used[name] = used.get(name, 0) + 1
        names.append(name if used[name] == 1 or not name else f"{name}-{used[name]}")
    return names


def _table(table: DataTable) -> Markup:
    starts = _starts(table)
    caption = Markup("<figcaption>{}</figcaption>\n").format(inline(table.caption)) if table.caption else ""
    rows = [_row(cells, table.numeric, starts) for cells in table.cells]
    head = Markup("").join(
        Markup('<th scope="col"{}>{}</th>').format(_kind(numeric, place in starts), text)
        for place, (text, numeric) in enumerate(zip(table.headers, table.numeric, strict=True))
    )
    heads = Markup("<thead>{}<tr>{}</tr></thead>").format(_groups(table), head)
    body = Markup("<tbody>\n{}\n</tbody>").format(Markup("\n").join(rows))
    scrolled = Markup('<div class="scroll" tabindex="0"><table>\n{}\n{}</table></div>').format(heads, body)
    return Markup('<figure class="data">\n{}{}\n</figure>').format(caption, scrolled)


def _groups(table: DataTable) -> Markup:
    if not table.groups:
        return Markup("")
    cells = [
        Markup('<th scope="colgroup" colspan="{}">{}</th>').format(span, title) if title else Markup("<td></td>") * span
        for title, span in table.groups
    ]
    return Markup('<tr class="groups">{}</tr>').format(Markup("").join(cells))


def _starts(table: DataTable) -> set[int]:
    """Where a group of columns begins."""
    found, at = set(), 0
    for title, span in table.groups:
        if title:
            found.add(at)
        at += span
    return found


def _kind(numeric: bool, first: bool, text: str = "") -> Markup:
    """The class of a cell: a number, the first of a group, a text that needs room."""
    long = not numeric and len(text) > _LONG
    words = [word for word, true in (("number", numeric), ("start", first), ("long", long)) if true]
    return Markup(' class="{}"').format(" ".join(words)) if words else Markup("")


def _row(cells: Sequence[str], numeric: Sequence[bool], starts: set[int]) -> Markup:
    shown = [
        Markup('<th scope="row"{}>{}</th>').format(_kind(number, False, cell), cell)
        if place == 0 and not number
        else Markup("<td{}>{}</td>").format(_kind(number, place in starts, cell), cell)
        for place, (cell, number) in enumerate(zip(cells, numeric, strict=True))
    ]
    return Markup("<tr>{}</tr>").format(Markup("").join(shown))
