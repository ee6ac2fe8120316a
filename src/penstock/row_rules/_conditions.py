"""Conditions: what a rule is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from penstock.io import Table
from penstock.row_rules._operands import Name, Operand, Sign, compare, is_missing, resolve, side_of, sides_of
from penstock.row_rules._truth import Truth, all_of, any_of


@dataclass(frozen=True)
class Comparison:
    """Operands with signs between them: `5 < power <= 60` holds if both of its parts hold."""

    operands: tuple[Operand, ...]
    signs: tuple[Sign, ...]

    def __str__(self) -> str:
        rest = (f" {sign} {operand}" for sign, operand in zip(self.signs, self.operands[1:], strict=True))
        return str(self.operands[0]) + "".join(rest)

    def names(self) -> Iterator[Name]:
        return (operand for operand in self.operands if isinstance(operand, Name))

    def truth(self, table: Table) -> Truth:
        sides = sides_of(self.operands, table)
        return all_of(map(compare, sides[:-1], self.signs, sides[1:]))

    def resolved(self, table: Table) -> Comparison:
        return replace(self, operands=tuple(map(resolve, self.operands, sides_of(self.operands, table))))


@dataclass(frozen=True)
class Missing:
    """`name is missing`: never unknown."""

    name: Name

    def __str__(self) -> str:
        return f"{self.name} is missing"

    def names(self) -> Iterator[Name]:
        return iter((self.name,))

    def truth(self, table: Table) -> Truth:
        return is_missing(side_of(self.name, table), len(table.values))

    def resolved(self, table: Table) -> Missing:
        return self


@dataclass(frozen=True)
class Not:
    part: Condition

    def __str__(self) -> str:
        if isinstance(self.part, Missing):
            return f"{self.part.name} is not missing"
        return f"not ({self.part})" if isinstance(self.part, Several) else f"not {self.part}"

    def names(self) -> Iterator[Name]:
        return self.part.names()

    def truth(self, table: Table) -> Truth:
        return ~self.part.truth(table)

    def resolved(self, table: Table) -> Not:
        return Not(self.part.resolved(table))


@dataclass(frozen=True)
class Several:
    """Conditions joined by `and`, or all by `or`."""

    word: Literal["and", "or"]
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return f" {self.word} ".join(map(self._written, self.parts))

    def _written(self, part: Condition) -> str:
        looser = self.word == "and" and isinstance(part, Several)
        return f"({part})" if looser else str(part)

    def names(self) -> Iterator[Name]:
        return (name for part in self.parts for name in part.names())

    def truth(self, table: Table) -> Truth:
        truths = (part.truth(table) for part in self.parts)
        return all_of(truths) if self.word == "and" else any_of(truths)

    def resolved(self, table: Table) -> Several:
        return Several(self.word, tuple(part.resolved(table) for part in self.parts))


Condition = Comparison | Missing | Not | Several
