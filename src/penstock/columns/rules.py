"""Rules that select rows, such as `power > 5 and state == running`.

Rules come from command lines and from model files, so no part of a rule is ever executed. A rule is split into tokens,
each operand is replaced by a placeholder, and `ast.parse` makes the tree of what is left: `_0 > _1 and _2 == _3`. Only
`and`, `or`, `not` and comparisons of placeholders are evaluated. Where a reading that decides is missing, a rule is
neither true nor false (three-valued logic, as pandas has it for nullable booleans).
"""

from __future__ import annotations

import ast
import math
import operator
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.arrays import BooleanArray

from penstock._messages import quoted
from penstock._parameters import ParameterError
from penstock._types import BoolArray
from penstock.columns.times import order_to_stamp
from penstock.io import Table, TableError, refuse_unknown

_MOST_CHARACTERS = 2000
_MOST_LEVELS = 50  # of parentheses and negations
_SHOWN = 30  # characters before the place of an error


@dataclass(frozen=True)
class _Name:
    """A column, or `time` or `row` if not in backticks; if `maybe_text`, a text where the table has none of them."""

    name: str
    ticked: bool
    maybe_text: bool = False


_Operand = float | str | _Name  # a number, a text in quotes, a name
_Side = float | str | pd.DatetimeIndex | pd.Series  # what an operand is in a table


@dataclass(frozen=True)
class RowRule:
    """A condition on the rows of a table, made by `parse_rule`."""

    text: str  # the rule, written so that `parse_rule` reads it again
    _operands: tuple[_Operand, ...] = field(repr=False, compare=False)
    _tree: ast.expr = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def columns(self) -> tuple[str, ...]:
        """Names that are columns in any table, in the order of the rule.

        Without `time` and `row`, unless in backticks, and without bare words after == or !=, which may be texts.
        """
        sure = (name for name in self._names() if not name.maybe_text)
        return tuple(dict.fromkeys(each.name for each in sure if each.ticked or each.name not in ("time", "row")))

    @property
    def perhaps_columns(self) -> tuple[str, ...]:
        """Bare words after == or !=, and `row`: they are columns only in a table that has them."""
        perhaps = (each.name for each in self._names() if each.maybe_text or (each.name == "row" and not each.ticked))
        return tuple(dict.fromkeys(perhaps))

    def _names(self) -> Iterator[_Name]:
        return (operand for operand in self._operands if isinstance(operand, _Name))

    def resolved(self, table: Table) -> RowRule:
        """Return the rule with each bare word as this table reads it: a column in backticks, or a text in quotes."""
        operands, before = [], None
        for operand in self._operands:
            side = _side(operand, before, table)
            if isinstance(operand, _Name) and operand.maybe_text:
                operand = side if isinstance(side, str) else _Name(operand.name, isinstance(side, pd.Series))  # noqa: PLW2901
            operands.append(operand)
            before = side
        return _rule(tuple(operands), self._tree)

    def truth(self, table: Table) -> tuple[BoolArray, BoolArray]:
        """Return the rows for which the rule is true, and those for which a missing reading leaves it open.

        Raises ParameterError: if the rule does not fit the table.
        """
        found = _evaluate(self._tree, self._operands, table)
        return found.to_numpy(dtype=np.bool_, na_value=False), found.isna()

    def holds(self, table: Table) -> BoolArray:
        return self.truth(table)[0]


def parse_rule(text: str) -> RowRule:
    """Read a rule.

    Columns are compared with numbers, texts and each other (``>  >=  <  <=  ==  !=``), also in chains, and can be
    `is missing` or `is not missing`; comparisons are joined by `and`, `or`, `not` and parentheses. Names with other
    characters than letters, digits, ``_`` and ``.`` go in backticks, texts with spaces in quotes; a quote inside is
    written twice. `time` is compared with a time stamp in quotes, where a day or a month stands for all of it, and
    `row` is the number of the row in the source, from 0, unless the table has such a column.

    text : at most 2,000 characters, with at most 50 nested parentheses and negations.

    Raises ParameterError: with the place and what was expected there.

    >>> from penstock.io import read_table
    >>> plant = pd.DataFrame({"power [MW]": [2.0, 30.0, np.nan, 70.0], "state": ["off", "on", "on", None]})
    >>> rule = parse_rule("5 < `power [MW]` <= 60 and state == on")
    >>> true, unknown = rule.truth(read_table(plant))
    >>> true.tolist(), unknown.tolist()
    ([False, True, False, False], [False, False, True, False])
    >>> rule.columns
    ('power [MW]', 'state')
    >>> print(parse_rule("(5<power<=60) & !(state=off | oil is not missing)"))
    5 < power <= 60 and not (state == off or oil is not missing)
    >>> parse_rule("power >")
    Traceback (most recent call last):
    penstock._parameters.ParameterError: rule cannot be read: after 'power >' a number, a text or a column is
    expected, but the rule ends.
    """
    _check_length(text)
    operands: list[_Operand] = []
    written = []
    tokens = _checked_tokens(text)
    for place, token in enumerate(tokens):
        if token.kind in _OPERANDS:
            written.append(f"_{len(operands)}")
            operands.append(_operand(token, *tokens[max(place - 2, 0) : place + 2]))
        else:
            written.append(token.value)
    return _rule(tuple(operands), ast.parse(" ".join(written), mode="eval").body)


def quote_name(name: str) -> str:
    """Write a column's name as rules have it, in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """Write a text as rules have it, in quotes."""
    return "'" + text.replace("'", "''") + "'"


def _rule(operands: tuple[_Operand, ...], tree: ast.expr) -> RowRule:
    text = _write(tree, operands)
    _check_length(text)
    return RowRule(text, operands, tree)


def _write(node: ast.expr, operands: tuple[_Operand, ...]) -> str:
    """Write a tree as a rule with the fewest parentheses."""
    match node:
        case ast.BoolOp(op, values):
            both = isinstance(op, ast.And)
            looser = [both and isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or) for value in values]
            parts = [_write(value, operands) for value in values]
            shown = (f"({part})" if loose else part for part, loose in zip(parts, looser, strict=True))
            return (" and " if both else " or ").join(shown)
        case ast.UnaryOp(ast.Not(), operand):
            part = _write(operand, operands)
            return f"not ({part})" if isinstance(operand, ast.BoolOp) else f"not {part}"
        case ast.Compare(left, ops, comparators):
            rest = (f" {_SIGNS[type(op)]} {_write(side, operands)}" for op, side in zip(ops, comparators, strict=True))
            return _write(left, operands) + "".join(rest)
        case ast.Name(name):
            return _written(operands[int(name[1:])])
    return "missing"  # the constant None


def _written(operand: _Operand) -> str:
    if isinstance(operand, str):
        return quote_text(operand)
    if isinstance(operand, _Name):
        return quote_name(operand.name) if operand.ticked else operand.name
    return str(int(operand)) if operand.is_integer() and abs(operand) < 1e15 else repr(operand)


def _check_length(text: str) -> None:
    if len(text) > _MOST_CHARACTERS:
        raise _wrong(f"A rule may have {_MOST_CHARACTERS:,} characters, written out; this one has {len(text):,}.")


# Tokens: a text is split, and the order of tokens is checked, so that an error names its place.

_TOKEN = re.compile(
    r"""
    (?P<text>'(?:[^']|'')*+'|"(?:[^"]|"")*+") | (?P<name>`(?:[^`]|``)*+`)
    | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w.])
    | (?P<compare>[<>=!]=|[<>=≥≤≠]) | (?P<and>&) | (?P<or>\|) | (?P<not>!) | (?P<open>\() | (?P<close>\))
    | (?P<missing>(?i:is\s+(?:not\s+)?missing))(?![\w.]) | (?P<word>[\w.]+)
    """,
    re.VERBOSE,
)
_VALUES = {"≥": ">=", "≤": "<=", "≠": "!=", "=": "==", "&": "and", "|": "or", "!": "not"}
_HINTS = {
    ",": "numbers are written with a decimal point",
    "-": "names with other signs than letters, digits, _ and . go in backticks: `a-b`",
    "[": "names with other signs than letters, digits, _ and . go in backticks: `power [MW]`",
}
_OPERANDS = ("word", "name", "number", "text")
_COLUMNS = ("word", "name")
_AFTER_SIDE = {"and": "condition", "or": "condition", "close": "done", "end": "done"}
_NEXT = {  # state → kind of token that may follow → next state
    "condition": {"not": "condition", "open": "condition", "word": "column", "name": "column"}
    | {"number": "value", "text": "value"},
    "column": {"compare": "side", "missing": "done", "is": "missing"},
    "value": {"compare": "side"},
    "side": dict.fromkeys(_OPERANDS, "compared"),
    "missing": {},
    "compared": {"compare": "side"} | _AFTER_SIDE,
    "done": _AFTER_SIDE,
}
_EXPECTED = {
    "condition": "a column",
    "column": "a comparison (such as > 5) or 'is missing'",
    "value": "a comparison (such as > 5)",
    "side": "a number, a text or a column",
    "missing": "'missing' or 'not missing'",
}


class _Token(NamedTuple):
    kind: str
    value: str  # as Python writes it; of an operand what it means
    start: int
    stop: int


def _tokens(text: str) -> Iterator[_Token]:
    shadow = "".join("_" if unicodedata.category(sign)[0] == "M" else sign for sign in text)  # accents are of words
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = _TOKEN.match(shadow, at)
        if found is None:
            sign = text[at]
            complaint = f"there is {sign!r}, which has no meaning here{f'; {_HINTS[sign]}' if sign in _HINTS else ''}"
            if sign in "'\"`":
                complaint = f"a {'name in backticks' if sign == '`' else 'text in quotes'} begins that never ends"
            raise _unreadable(text, at, complaint)
        yield _token(str(found.lastgroup), text[at : found.end()], at)
        at = found.end()
    yield _Token("end", "", at, at)


def _token(kind: str, text: str, start: int) -> _Token:
    value = _VALUES.get(text, text)
    if kind in ("text", "name"):
        value = text[1:-1].replace(2 * text[0], text[0])
    elif kind == "missing":
        value = "is not None" if "not" in text.casefold() else "is None"
    elif kind == "word" and text.casefold() in ("and", "or", "not", "is"):
        kind = value = text.casefold()
    return _Token(kind, value, start, start + len(text))


def _checked_tokens(text: str) -> list[_Token]:
    """Split a rule, and raise at the first token that cannot follow those before it."""
    tokens: list[_Token] = []
    state, levels = "condition", list[str]()
    for token in _tokens(text):
        if token.kind in ("close", "end", "and", "or"):
            while levels and levels[-1] == "not":
                levels.pop()
        unbalanced = (token.kind == "close" and not levels) or (token.kind == "end" and levels)
        if token.kind not in _NEXT[state] or unbalanced:
            end = "')'" if levels else "the end of the rule"
            expected = _EXPECTED.get(state, f"'and', 'or' or {end}")
            found = "the rule ends" if token.kind == "end" else f"there is {text[token.start : token.stop][:30]!r}"
            dated = tokens and tokens[-1].kind == "number" and token.value.startswith("-")
            hint = "; a time stamp goes in quotes: '2024-05-31'" if dated else ""
            raise _unreadable(text, token.start, f"{expected} is expected, but {found}{hint}")
        if state == "side" and token.kind not in _COLUMNS and tokens[-2].kind not in _COLUMNS:
            raise _unreadable(text, token.stop, "there is a comparison without a column")
        if token.kind in ("not", "open"):
            levels.append(token.kind)
        elif token.kind == "close":
            levels.pop()
        if len(levels) > _MOST_LEVELS:
            raise _unreadable(text, token.start, f"it is nested more than {_MOST_LEVELS} deep")
        state = _NEXT[state][token.kind]
        tokens.append(token)
    parentheses = {"open": "(", "close": ")"}
    return [token._replace(value=parentheses.get(token.kind, token.value)) for token in tokens]


def _operand(token: _Token, *around: _Token) -> _Operand:
    if token.kind == "number":
        number = float(token.value)
        if math.isinf(number):
            raise _wrong(f"The number {token.value:.30} in the rule is too large.")
        return number
    if token.kind == "text":
        return token.value
    before, after = around[: around.index(token)], around[around.index(token) + 1]
    compared = len(before) == 2 and before[1].value in ("==", "!=") and before[0].kind in _COLUMNS
    return _Name(token.value, token.kind == "name", token.kind == "word" and compared and after.kind != "compare")


def _wrong(said: object) -> ParameterError:
    return ParameterError("rule", f": {said}")


def _unreadable(text: str, position: int, complaint: str) -> ParameterError:
    before = text[:position].strip()
    shown = "…" + before[-_SHOWN:] if len(before) > _SHOWN else before
    place = f"after {quoted(shown)}" if before else "at its beginning"
    return ParameterError("rule", f" cannot be read: {place} {complaint}.")


# Evaluation: the nodes of the tree that are allowed, and comparisons.

_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not",
}  # fmt: skip
_MEANING: dict[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_EXCHANGED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "==", "!=": "!="}  # with the sides exchanged


def _evaluate(node: ast.expr, operands: tuple[_Operand, ...], table: Table) -> BooleanArray:
    match node:
        case ast.BoolOp(op, values):
            parts = [_evaluate(value, operands, table) for value in values]
            return reduce(operator.and_ if isinstance(op, ast.And) else operator.or_, parts)
        case ast.UnaryOp(ast.Not(), operand):
            return ~_evaluate(operand, operands, table)
        case ast.Compare(ast.Name(name), [ast.Is() | ast.IsNot() as op], [ast.Constant(None)]):
            missing = _is_missing(_side(operands[int(name[1:])], None, table), len(table.values))
            return _known(missing if isinstance(op, ast.Is) else ~missing)
        case ast.Compare(left, ops, comparators):
            sides: list[_Side] = []
            for each in (left, *comparators):
                assert isinstance(each, ast.Name)
                sides.append(_side(operands[int(each.id[1:])], sides[-1] if sides else None, table))
            signs = [_SIGNS[type(op)] for op in ops]
            return reduce(operator.and_, map(_compare, sides[:-1], signs, sides[1:]))
    raise _wrong(f"A rule cannot hold {type(node).__name__}.")  # pragma: no cover - the tokens do not allow it


def _side(operand: _Operand, before: _Side | None, table: Table) -> _Side:
    """Return what an operand is in this table. `before`: the side that it is compared with."""
    if not isinstance(operand, _Name):
        return operand
    if operand.name in table.names:
        return table.values[operand.name]
    is_time = operand.name == "time" and not operand.ticked
    if is_time and table.time is not None:
        return table.time
    if operand.name == "row" and not operand.ticked:
        return pd.Series(table.values.index.to_numpy(dtype=np.float64), name="row")
    if operand.maybe_text and not (isinstance(before, pd.Series) and before.dtype.kind == "f"):
        return operand.name
    if is_time:
        raise _wrong(f"{table.source} has no time to compare with, nor a column 'time'.")
    try:
        refuse_unknown([operand.name], table.names, "part of a rule", table.source)
    except TableError as error:
        raise _wrong(error) from None
    raise AssertionError("an unknown name is refused")  # pragma: no cover


def _compare(left: _Side, sign: str, right: _Side) -> BooleanArray:
    """Compare two sides, at least one of them from the table."""
    if isinstance(left, float | str) or isinstance(right, pd.DatetimeIndex):
        left, sign, right = right, _EXCHANGED[sign], left
    meaning = _MEANING[sign]
    if isinstance(left, pd.DatetimeIndex):
        if not isinstance(right, str):
            stamps = "'2024-05-31' or '2024-05-31 14:30'"
            raise _wrong(f"The time is compared with a time stamp in quotes, such as {stamps}.")
        try:
            before, after = order_to_stamp(left, right)
        except ValueError as error:
            raise _wrong(error) from None
        return _known(meaning(after.astype(np.int8) - before.astype(np.int8), 0))
    assert isinstance(left, pd.Series)
    assert not isinstance(right, pd.DatetimeIndex)
    _check_alike(left, sign, right)
    found = np.asarray(meaning(_plain(left), _plain(right)), dtype=np.bool_)
    return BooleanArray(found, _is_missing(left, len(left)) | _is_missing(right, len(left)))


def _known(truth: BoolArray) -> BooleanArray:
    return BooleanArray(np.asarray(truth), np.zeros(len(truth), dtype=np.bool_))


def _is_missing(side: _Side, n: int) -> BoolArray:
    return side.isna().to_numpy() if isinstance(side, pd.Series) else np.zeros(n, dtype=np.bool_)


def _plain(side: _Side) -> Any:
    """Return numbers, or texts as objects, "" for missing ones: not every kind of text column can be compared."""
    if not isinstance(side, pd.Series):
        return side
    return side.to_numpy() if side.dtype.kind == "f" else side.to_numpy(dtype=object, na_value="")


def _check_alike(left: pd.Series[Any], sign: str, right: float | str | pd.Series[Any]) -> None:
    """Raise where numbers meet texts, and where texts are to be larger or smaller."""
    name, numbers = quoted(str(left.name)), left.dtype.kind == "f"
    if isinstance(right, pd.Series) and numbers != (right.dtype.kind == "f"):
        first, second = (left, right) if numbers else (right, left)
        raise _wrong(
            f"Column {quoted(str(first.name))} holds numbers, but column {quoted(str(second.name))} holds text."
        )
    if numbers and isinstance(right, str):
        raise _wrong(f"Column {name} holds numbers, but {quoted(right)} is a text.")
    if not numbers and isinstance(right, float):
        shown = _written(right)
        raise _wrong(f"Column {name} holds text, but {shown} is a number. Write '{shown}' in quotes.")
    if not numbers and sign not in ("==", "!="):
        raise _wrong(f"Column {name} holds text, which is only equal or not: use == or !=, not {sign}.")
