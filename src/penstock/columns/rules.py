"""Rules about rows."""

from __future__ import annotations

import datetime as dt
import math
import operator
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import quoted
from penstock.tables import Table, TableError
from penstock.tables._errors import refuse_unknown

_SHOWN = 30  # characters before the place


class RuleError(ValueError):
    """The rule cannot be read, or does not fit the table; the message says where and why.

    position : the character where it was noticed, from 0, if it is the text that is wrong.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


def unreadable(text: str, position: int, complaint: str) -> RuleError:
    """An error at a position of a text, with the place in words.

    >>> print(unreadable("power > )", 8, "there is ')'"))
    The rule cannot be read: after 'power >' there is ')'.
    """
    before = text[:position].strip()
    shown = "…" + before[-_SHOWN:] if len(before) > _SHOWN else before
    place = f"after {quoted(shown)}" if before else "at its beginning"
    return RuleError(f"The rule cannot be read: {place} {complaint}.", position)


BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Truth:
    """Of each row: `true`, `false`, or neither, which is unknown. Kleene's strong three-valued logic."""

    true: BoolArray
    false: BoolArray

    @property
    def unknown(self) -> BoolArray:
        return ~(self.true | self.false)

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.true & other.true, self.false | other.false)

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.true | other.true, self.false & other.false)

    def __invert__(self) -> Truth:
        return Truth(self.false, self.true)


def where_known(true: BoolArray, known: BoolArray) -> Truth:
    return Truth(true & known, ~true & known)


def all_of(truths: Iterable[Truth]) -> Truth:
    return reduce(Truth.__and__, truths)


def any_of(truths: Iterable[Truth]) -> Truth:
    return reduce(Truth.__or__, truths)


_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_WEEK = re.compile(r"[0-9]{4}-?W[0-9]{2}(?!-?[0-9])")  # without a day, where Python would take its Monday
_FIRST, _LAST = dt.datetime(1, 1, 3), dt.datetime(9999, 11, 1)


def order_to_stamp(time: pd.DatetimeIndex, text: str) -> tuple[BoolArray, BoolArray]:
    """Which rows are before a time stamp, and which after it.

    A day or a month stands for all of it, so that `time <= '2024-05'` ends with the 31st. A stamp without a zone is in
    that of the table.

    >>> time = pd.DatetimeIndex(["2024-04-30 12:00", "2024-05-31 12:00", "2024-06-01"])
    >>> before, after = order_to_stamp(time, "2024-05")
    >>> before.tolist(), after.tolist()
    ([True, False, False], [False, False, True])
    """
    try:
        start, stop = _span(text.strip())
    except ValueError:
        raise RuleError(
            f"{quoted(text)} is no time stamp. Write the year first, as in '2024-05-31' or '2024-05-31 14:30'."
        ) from None
    first = _in_zone(start, time, text)
    after = time > first if stop is None else time >= _in_zone(stop, time, text)
    return np.asarray(time < first), np.asarray(after)


def _span(text: str) -> tuple[dt.datetime, dt.datetime | None]:
    """The start of what a text names, and where the day or month is over; None for an instant."""
    if _WEEK.match(text):
        raise ValueError("a week is no day")
    if _MONTH.fullmatch(text):
        start = _within_reach(dt.datetime.fromisoformat(f"{text}-01"))
        return start, (start + dt.timedelta(days=31)).replace(day=1)
    start = _within_reach(dt.datetime.fromisoformat(text))
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return start, None
    return start, start + dt.timedelta(days=1)


def _within_reach(stamp: dt.datetime) -> dt.datetime:
    """The stamp, or the last (first) that every zone can still show: people write 9999-12-31 for "always"."""
    return min(max(stamp.replace(tzinfo=None), _FIRST), _LAST).replace(tzinfo=stamp.tzinfo)


def _in_zone(stamp: dt.datetime, time: pd.DatetimeIndex, text: str) -> pd.Timestamp:
    if time.tz is None and stamp.tzinfo is not None:
        raise RuleError(f"The time stamp {quoted(text)} has a zone, but those of the table have none.")
    if time.tz is None or stamp.tzinfo is not None:
        return pd.Timestamp(stamp)
    return pd.Timestamp(stamp).tz_localize(time.tz, ambiguous=True, nonexistent="shift_forward")


Sign = Literal[">", ">=", "<", "<=", "==", "!="]
_COMPARE: dict[Sign, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_MIRRORED: dict[Sign, Sign] = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "==", "!=": "!="}


@dataclass(frozen=True)
class Number:
    value: float

    def __str__(self) -> str:
        whole = self.value.is_integer() and abs(self.value) < 1e15
        return str(int(self.value)) if whole else repr(self.value)


@dataclass(frozen=True)
class Text:
    value: str

    def __str__(self) -> str:
        return "'" + self.value.replace("'", "''") + "'"


@dataclass(frozen=True)
class Name:
    """A column, or `time` or `row` (its number) if not in backticks; a `maybe_text` is a text if it is none of them."""

    name: str
    ticked: bool = False
    maybe_text: bool = False

    def __str__(self) -> str:
        return "`" + self.name.replace("`", "``") + "`" if self.ticked else self.name


Operand = Number | Text | Name


@dataclass(frozen=True)
class Time:
    """The time stamps of a table."""

    stamps: pd.DatetimeIndex


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    values: pd.Series[Any]

    @property
    def holds_numbers(self) -> bool:
        return self.values.dtype.kind == "f"


Side = Number | Text | Time | Column


def sides_of(operands: Sequence[Operand], table: Table) -> list[Side]:
    """What the operands of a comparison are in this table."""
    sides: list[Side] = []
    for operand in operands:
        before = sides[-1] if sides else None
        if isinstance(operand, Name) and isinstance(before, Column) and before.holds_numbers:
            operand = replace(operand, maybe_text=False)  # noqa: PLW2901 - what a number is compared with is no text
        sides.append(side_of(operand, table))
    return sides


def side_of(operand: Operand, table: Table) -> Side:
    if not isinstance(operand, Name):
        return operand
    if operand.name in table.names:
        return Column(operand.name, table.values[operand.name])
    is_time = operand.name == "time" and not operand.ticked
    if is_time and table.time is not None:
        return Time(table.time)
    if operand.name == "row" and not operand.ticked:
        return Column("row", pd.Series(table.values.index.to_numpy(dtype=np.float64)))
    if operand.maybe_text:
        return Text(operand.name)
    if is_time:
        raise RuleError(f"{table.source} has no time to compare with, nor a column 'time'.")
    try:
        refuse_unknown([operand.name], table.names, "part of a rule", table.source)
    except TableError as error:
        raise RuleError(str(error)) from None
    raise AssertionError("an unknown name is refused")  # pragma: no cover


def resolve(operand: Operand, side: Side) -> Operand:
    """An operand that means in every table what it means in this one, where it is `side`."""
    if not isinstance(operand, Name) or not operand.maybe_text:
        return operand
    if isinstance(side, Text):
        return side
    return Name(operand.name, ticked=isinstance(side, Column))


def is_missing(side: Side, n: int) -> Truth:
    missing = side.values.isna().to_numpy() if isinstance(side, Column) else np.zeros(n, dtype=np.bool_)
    return where_known(missing, np.ones(n, dtype=np.bool_))


def compare(left: Side, sign: Sign, right: Side) -> Truth:
    """Compare two sides, at least one of them from the table."""
    if isinstance(left, Number | Text) or isinstance(right, Time):
        left, sign, right = right, _MIRRORED[sign], left
    if isinstance(left, Time):
        return _compare_time(left, sign, right)
    assert isinstance(left, Column)
    assert not isinstance(right, Time)
    _refuse_unlike(left, sign, right)
    values = right.values if isinstance(right, Column) else right.value
    known = left.values.notna().to_numpy()
    if isinstance(right, Column):
        known = known & right.values.notna().to_numpy()
    return where_known(np.asarray(_COMPARE[sign](_plain(left.values), _plain(values)), dtype=np.bool_), known)


def _plain(values: Any) -> Any:
    """Numbers, or texts as objects, "" for missing ones: not every kind of text column can be compared with another."""
    if not isinstance(values, pd.Series) or values.dtype.kind == "f":
        return np.asarray(values) if isinstance(values, pd.Series) else values
    return values.to_numpy(dtype=object, na_value="")


def _compare_time(left: Time, sign: Sign, right: Side) -> Truth:
    if not isinstance(right, Text):
        raise RuleError("The time is compared with a time stamp in quotes, such as '2024-05-31' or '2024-05-31 14:30'.")
    before, after = order_to_stamp(left.stamps, right.value)
    order = after.astype(np.int8) - before.astype(np.int8)
    return where_known(_COMPARE[sign](order, 0), np.ones(len(order), dtype=np.bool_))


def _refuse_unlike(left: Column, sign: Sign, right: Side) -> None:
    """Raise where numbers meet texts, and where texts are to be larger or smaller."""
    name = quoted(left.name)
    if isinstance(right, Column) and left.holds_numbers != right.holds_numbers:
        numbers, texts = (left, right) if left.holds_numbers else (right, left)
        raise RuleError(f"Column {quoted(numbers.name)} holds numbers, but column {quoted(texts.name)} holds text.")
    if left.holds_numbers and isinstance(right, Text):
        raise RuleError(f"Column {name} holds numbers, but {quoted(right.value)} is a text.")
    if not left.holds_numbers and isinstance(right, Number):
        raise RuleError(f"Column {name} holds text, but {right} is a number. Write '{right}' in quotes.")
    if not left.holds_numbers and sign not in ("==", "!="):
        raise RuleError(f"Column {name} holds text, which is only equal or not: use == or !=, not {sign}.")


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


_NO_COLUMN = ("time", "row")  # without backticks, unless the table has such a column


@dataclass(frozen=True)
class RowRule:
    """A condition on rows; `str` writes it down so that it can be read again."""

    condition: Condition

    def __str__(self) -> str:
        return str(self.condition)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names that are surely columns, in the order of the rule.

        Not `time` and `row` without backticks, nor a bare word after == or !=, which may be a text: for those see
        `columns_in`.
        """
        sure = (
            name.name for name in self._names() if not name.maybe_text and (name.ticked or name.name not in _NO_COLUMN)
        )
        return tuple(dict.fromkeys(sure))

    @property
    def perhaps_columns(self) -> tuple[str, ...]:
        """The bare words after == or !=, and `row`, which are columns only in a table that has them."""
        perhaps = (name.name for name in self._names() if name.maybe_text or (name.name == "row" and not name.ticked))
        return tuple(dict.fromkeys(perhaps))

    def resolved(self, table: Table) -> RowRule:
        """The rule as this table understands it, with bare words as columns in backticks or as texts in quotes.

        It means the same for a table with other columns.

        >>> import pandas as pd
        >>> from penstock.tables import read_table
        >>> valve = pd.DataFrame({"state": ["on", "off"], "wanted": ["on", "on"], "power": [1.0, 0.0]})
        >>> print(parse_rule("state == wanted or state == off").resolved(read_table(valve)))
        state == `wanted` or state == 'off'
        """
        rule = RowRule(self.condition.resolved(table))
        refuse_long(str(rule))
        return rule

    def columns_in(self, table: Table) -> tuple[str, ...]:
        """The columns of this table that the rule looks at; raise if it names one that is not there."""
        sides = (side_of(name, table) for name in self._names())
        return tuple(
            dict.fromkeys(side.name for side in sides if isinstance(side, Column) and side.name in table.names)
        )

    def truth(self, table: Table) -> Truth:
        """For which rows the rule is true, false, or neither; raise if it does not fit the table."""
        return self.condition.truth(table)

    def holds(self, table: Table) -> BoolArray:
        """The rows for which the rule is true; raise if it does not fit the table."""
        return self.truth(table).true

    def unknown(self, table: Table) -> BoolArray:
        """The rows for which the rule is neither true nor false, as a reading that decides is missing."""
        return self.truth(table).unknown

    def _names(self) -> tuple[Name, ...]:
        return tuple(self.condition.names())


def parse_rule(text: str) -> RowRule:
    """Read a rule.

    Columns are compared with numbers, texts and each other (``>  >=  <  <=  ==  !=``), also in chains, and can be
    `is missing` or `is not missing`; comparisons are joined by `and`, `or`, `not` and parentheses. Names with other
    signs than letters, digits, ``_`` and ``.`` go in backticks, texts with spaces in quotes; a quote inside is written
    twice. `time` is compared with a time stamp in quotes, where a day or a month stands for all of it, and `row` is the
    number of the row in the source, from 0, unless the table has such a column.

    Raises
    ------
    RuleError
        With the place and what was expected there.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from penstock.tables import read_table
    >>> plant = pd.DataFrame({"power [MW]": [2.0, 30.0, np.nan, 70.0], "state": ["off", "on", "on", None]})
    >>> rule = parse_rule("5 < `power [MW]` <= 60 and state == on")
    >>> rule.holds(read_table(plant)).tolist(), rule.unknown(read_table(plant)).tolist()
    ([False, True, False, False], [False, False, True, False])
    >>> rule.columns
    ('power [MW]', 'state')
    >>> parse_rule("power >")
    Traceback (most recent call last):
    penstock.columns.rules.RuleError: The rule cannot be read: after 'power >' a number, a text or a column is
    expected, but the rule ends.
    """
    rule = RowRule(parse_condition(text))
    refuse_long(str(rule))
    return rule


_UNITS = {
    Fraction(1, 1000): ("ms", "millisecond", "milliseconds"),
    Fraction(1): ("s", "sec", "second", "seconds"),
    Fraction(60): ("min", "mins", "minute", "minutes"),
    Fraction(3600): ("h", "hr", "hrs", "hour", "hours"),
    Fraction(86_400): ("d", "day", "days"),
    Fraction(7 * 86_400): ("w", "week", "weeks"),
}
_SECONDS = {word: seconds for seconds, words in _UNITS.items() for word in words}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\W\d_]+)\s*")
_MOST_CHARACTERS = 100
_MOST_DAYS = 100_000


def parse_duration(text: str) -> pd.Timedelta:
    """Read a duration: a number and its unit (ms, s, min, h, d, w), or several of them.

    >>> parse_duration("90 s"), parse_duration("1h30min"), parse_duration("1.5 days")
    (Timedelta('0 days 00:01:30'), Timedelta('0 days 01:30:00'), Timedelta('1 days 12:00:00'))
    >>> parse_duration("30")
    Traceback (most recent call last):
    ValueError: '30' is no duration. Write a number and its unit, such as '30 min', '2 h' or '1 d'.
    """
    seconds, at = Fraction(0), 0
    while part := _PART.match(text, at) if len(text) <= _MOST_CHARACTERS else None:
        seconds += Fraction(part.group(1)) * _seconds(part.group(2), text)
        at = part.end()
    if not at or at < len(text):
        raise ValueError(
            f"{quoted(text)} is no duration. Write a number and its unit, such as '30 min', '2 h' or '1 d'."
        )
    if seconds > _MOST_DAYS * 86_400:
        raise ValueError(f"The duration {quoted(text)} is longer than {_MOST_DAYS:,} days.")
    return pd.Timedelta(microseconds=round(seconds * 1_000_000))


def _seconds(unit: str, text: str) -> Fraction:
    found = _SECONDS.get(unit.lower())
    if found is None:
        hint = " Write min for minutes." if unit in ("m", "M") else ""
        raise ValueError(f"{quoted(text)} has an unknown unit {quoted(unit)}; known are ms, s, min, h, d and w.{hint}")
    return found
