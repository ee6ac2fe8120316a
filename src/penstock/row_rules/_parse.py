"""Tokens → conditions, by recursive descent.

rule       = all { "or" all }
all        = negated { "and" negated }
negated    = { "not" } ( "(" rule ")" | comparison )
comparison = operand sign operand { sign operand } | name "is" [ "not" ] "missing"
operand    = number | text | word | name in backticks
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal, cast

from penstock.row_rules._conditions import Comparison, Condition, Missing, Not, Several
from penstock.row_rules._errors import RuleError, unreadable
from penstock.row_rules._operands import Name, Number, Operand, Sign, Text
from penstock.row_rules._tokens import Token, tokenize

MOST_LEVELS = 50  # of parentheses and negations: far below what Python's stack can bear


def parse_condition(text: str) -> Condition:
    """The condition that a text writes down.

    >>> str(parse_condition("(5<power<=60) & !(state=off | oil is not missing)"))
    '5 < power <= 60 and not (state == off or oil is not missing)'
    """
    parser = _Parser(text)
    condition = parser.rule(0)
    parser.finish()
    return condition


class _Parser:
    """A place in a list of tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def rule(self, level: int) -> Condition:
        return self._joined("or", level)

    def finish(self) -> None:
        if self.token.kind != "end":
            raise self._expected("'and', 'or' or the end of the rule")

    def _joined(self, word: Literal["and", "or"], level: int) -> Condition:
        parts: list[Condition] = []
        while True:
            part = self._joined("and", level) if word == "or" else self._negated(level)
            parts += part.parts if isinstance(part, Several) and part.word == word else [part]
            if not self._took(word):
                return parts[0] if len(parts) == 1 else Several(word, tuple(parts))

    def _negated(self, level: int) -> Condition:
        if level > MOST_LEVELS:
            raise unreadable(self.text, self.token.start, f"it is nested more than {MOST_LEVELS} deep")
        if self._took("not"):
            return Not(self._negated(level + 1))
        if not self._took("("):
            return self._comparison()
        inside = self.rule(level + 1)
        if not self._took(")"):
            raise self._expected("'and', 'or' or ')'")
        return inside

    def _comparison(self) -> Condition:
        first = self._operand("a column")
        if isinstance(first, Name) and self.token.kind == "is":
            return self._missing(first)
        operands, signs = [first], []
        while self.token.kind == "compare":
            signs.append(cast(Sign, self._take().value))
            operands.append(self._operand("a number, a text or a column"))
        if not signs:
            raise self._expected("a comparison (such as > 5) or 'is missing'")
        self._refuse_constants(operands)
        operands[-1] = _perhaps_text(operands, signs)
        return Comparison(tuple(operands), tuple(signs))

    def _missing(self, name: Name) -> Condition:
        self._take()
        negated = self._took("not")
        if self.token.kind != "word" or self.token.value.casefold() != "missing":
            raise self._expected("'missing'" if negated else "'missing' or 'not missing'")
        self._take()
        return Not(Missing(name)) if negated else Missing(name)

    def _operand(self, expected: str) -> Operand:
        if self.token.kind not in ("number", "text", "word", "name"):
            raise self._expected(expected)
        token = self._take()
        if token.kind == "number":
            if math.isinf(float(token.value)):
                raise RuleError(f"The number {token.value:.30} in the rule is too large.", token.start)
            return Number(float(token.value))
        return Text(token.value) if token.kind == "text" else Name(token.value, ticked=token.kind == "name")

    def _refuse_constants(self, operands: list[Operand]) -> None:
        pairs = pairwise(operands)
        if any(not isinstance(left, Name) and not isinstance(right, Name) for left, right in pairs):
            raise unreadable(self.text, self.token.start, "there is a comparison without a column")

    def _took(self, kind: str) -> bool:
        """Whether the next token is of this kind; if so, go on behind it."""
        if self.token.kind != kind:
            return False
        self._take()
        return True

    def _take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def _expected(self, what: str) -> RuleError:
        token = self.token
        found = "the rule ends" if token.kind == "end" else f"there is {self.text[token.start : token.stop][:30]!r}"
        hint = ""
        if self.at and token.value.startswith("-") and self.tokens[self.at - 1].kind == "number":
            hint = "; a time stamp goes in quotes: '2024-05-31'"
        return unreadable(self.text, token.start, f"{what} is expected, but {found}{hint}")


def _perhaps_text(operands: list[Operand], signs: list[Sign]) -> Operand:
    """The last operand: a bare word that a column may be equal to can be a text."""
    last, before = operands[-1], operands[-2]
    if isinstance(last, Name) and isinstance(before, Name) and not last.ticked and signs[-1] in ("==", "!="):
        return Name(last.name, maybe_text=True)
    return last
