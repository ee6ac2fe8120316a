"""A text → tokens."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from penstock.row_rules._errors import RuleError, unreadable

MOST_CHARACTERS = 2000
Kind = Literal["number", "text", "word", "name", "compare", "and", "or", "not", "is", "(", ")", "end"]
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SIGNS: dict[str, tuple[Kind, str]] = {  # the longer ones first
    ">=": ("compare", ">="), "<=": ("compare", "<="), "==": ("compare", "=="), "!=": ("compare", "!="),
    "≥": ("compare", ">="), "≤": ("compare", "<="), "≠": ("compare", "!="),
    ">": ("compare", ">"), "<": ("compare", "<"), "=": ("compare", "=="),
    "&": ("and", "and"), "|": ("or", "or"), "!": ("not", "not"), "(": ("(", "("), ")": (")", ")"),
}  # fmt: skip
_KEYWORDS: dict[str, Kind] = {"and": "and", "or": "or", "not": "not", "is": "is"}
_QUOTES: dict[str, Kind] = {"'": "text", '"': "text", "`": "name"}
_HINTS = {
    ",": "numbers are written with a decimal point",
    "-": "names with other signs than letters, digits, _ and . go in backticks: `a-b`",
    "[": "names with other signs than letters, digits, _ and . go in backticks: `power [MW]`",
}


@dataclass(frozen=True)
class Token:
    """A piece of a rule: `value` is what it means, `start` and `stop` where it is."""

    kind: Kind
    value: str
    start: int
    stop: int


def tokenize(text: str) -> list[Token]:
    """All tokens of a rule, the last of kind "end".

    >>> [(token.kind, token.value) for token in tokenize("`oil [°C]`>=-2.5 & on")]
    [('name', 'oil [°C]'), ('compare', '>='), ('number', '-2.5'), ('and', 'and'), ('word', 'on'), ('end', '')]
    """
    refuse_long(text)
    tokens = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        tokens.append(_token_at(text, at))
        at = tokens[-1].stop
    return [*tokens, Token("end", "", len(text), len(text))]


def refuse_long(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise RuleError(f"A rule may have {MOST_CHARACTERS:,} characters, written out; this one has {len(text):,}.")


def _token_at(text: str, at: int) -> Token:
    if text[at] in _QUOTES:
        return _quoted_at(text, at)
    number = _NUMBER.match(text, at)
    if number and not (number.end() < len(text) and _is_word_sign(text[number.end()])):
        return Token("number", number.group(), at, number.end())
    for sign, (kind, value) in _SIGNS.items():
        if text.startswith(sign, at):
            return Token(kind, value, at, at + len(sign))
    stop = at
    while stop < len(text) and _is_word_sign(text[stop]):
        stop += 1
    word = text[at:stop]
    if not word:
        hint = f"; {_HINTS[text[at]]}" if text[at] in _HINTS else ""
        raise unreadable(text, at, f"there is {text[at]!r}, which has no meaning here{hint}")
    return Token(_KEYWORDS.get(word.casefold(), "word"), word, at, stop)


def _quoted_at(text: str, at: int) -> Token:
    """A text or a name in quotes; the quote itself is written twice inside."""
    quote, kind = text[at], _QUOTES[text[at]]
    stop = at + 1
    while (stop := text.find(quote, stop)) >= 0:
        if not text.startswith(quote, stop + 1):
            return Token(kind, text[at + 1 : stop].replace(2 * quote, quote), at, stop + 1)
        stop += 2
    what = "name in backticks" if kind == "name" else "text in quotes"
    raise unreadable(text, at, f"a {what} begins that never ends")


def _is_word_sign(sign: str) -> bool:
    return sign.isalnum() or sign in "_." or unicodedata.category(sign).startswith("M")
