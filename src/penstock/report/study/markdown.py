"""Blocks as GitHub's Markdown: names are shown as they are, and the same blocks make the same text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from penstock.report.study.blocks import (
    Block,
    Bullets,
    CodeBlock,
    DataTable,
    Details,
    Heading,
    Paragraph,
    Picture,
    plain,
    spans,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#$])")
_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp):|\bwww\.|(?<!\bP)@(?=\w)")
_LIST = re.compile(r"^(\s*)([-+=]|\d+(?=[.)]))")


def to_text(blocks: Iterable[Block], title: str, image_folder: str) -> str:
    """The whole document.

    >>> print(to_text([Paragraph("1. is **not** a list, <b> is not bold")], "A | B", "images"), end="")
    # A \\| B
    <BLANKLINE>
    1\\. is **not** a list, &lt;b&gt; is not bold
    """
    parts = [f"# {inline(plain(title))}", *(render(block, image_folder) for block in blocks)]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return text.encode("utf-8", "replace").decode("utf-8")


def render(block: Block, image_folder: str) -> str:
    match block:
        case Heading():
            made = f"{'#' * block.level} {inline(block.text)}"
        case Paragraph():
            text = _start(inline(block.text))
            made = f"> **Warning.** {text}" if block.warning else text
        case Bullets():
            made = "\n".join(f"- {_start(inline(item))}" for item in block.items)
        case DataTable():
            made = _table(block)
        case Picture():
            made = f"![{_words(block.alt)}]({image_folder}/{block.name}.svg)\n\n{inline(block.caption)}"
        case CodeBlock():
            fence = _fence(block.text)
            made = f"{fence}{block.language}\n{block.text.rstrip()}\n{fence}"
        case Details():
            inside = "\n\n".join(render(inner, image_folder) for inner in block.blocks)
            made = f"<details>\n<summary>{_html(block.summary)}</summary>\n\n{inside}\n\n</details>"
    return made


def inline(text: str) -> str:
    """A text with marks, on one line.

    >>> inline("**a|b** and `x|y`"), inline("<img src=x> [a](b) www.c.d http://e")
    ('**a\\\\|b** and `x|y`', '&lt;img src=x&gt; \\\\[a\\\\](b) www\\\\.c.d http\\\\://e')
    """
    pieces = []
    for piece, style in spans(" ".join(text.split())):
        if style == "code":
            pieces.append(f"`{piece}`")
        elif style == "bold":
            pieces.append(f"**{_words(piece).strip()}**")
        else:
            pieces.append(_words(piece))
    return "".join(pieces)


def _words(text: str) -> str:
    text = _LINK.sub(
        lambda found: found[0][:-1] + "\\" + found[0][-1], _SPECIAL.sub(r"\\\1", text.replace("&", "&amp;"))
    )
    return text.replace("\\<", "&lt;").replace("\\>", "&gt;")


def _start(text: str) -> str:
    """What would begin a list or a rule at the beginning of a line does not."""
    return _LIST.sub(lambda found: f"{found[1]}{found[2]}\\" if found[2].isdigit() else f"{found[1]}\\{found[2]}", text)


def _fence(text: str) -> str:
    """More backticks than there are anywhere in a row."""
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    return "`" * max(3, longest + 1)


def _html(text: str) -> str:
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    return "".join(piece for piece, _ in spans(" ".join(text.split())))


def _table(table: DataTable) -> str:
    headers = _flat_headers(table)
    lines = [_line(headers), _line(["---:" if number else "---" for number in table.numeric], escape=False)]
    lines += [_line(row) for row in table.cells]
    caption = f"**Table.** {inline(table.caption)}\n\n" if table.caption else ""
    return caption + "\n".join(lines)


def _flat_headers(table: DataTable) -> list[str]:
    """One line of headings: Markdown has no titles over several columns."""
    titles = [title for title, span in table.groups for _ in range(span)] or [""] * len(table.headers)
    return [f"{title}: {header}" if title else header for title, header in zip(titles, table.headers, strict=True)]


def _line(cells: Sequence[str], escape: bool = True) -> str:
    shown = [_words(" ".join(cell.split())) if escape else cell for cell in cells]
    return "| " + " | ".join(cell or " " for cell in shown) + " |"
