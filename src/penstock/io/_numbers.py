"""Turn columns as they were read into float64, or text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted, in_columns, option, quoted
from penstock._types import FloatArray
from penstock.io._layout import (
    BLANKS,
    LIMITS,
    MISSING,
    has_decimal_comma,
    plain_number,
    thousands_sign,
    unit_in_cells,
)
from penstock.io._time_texts import is_time
from penstock.io.quality import BAD_WORDS, MISSING_CODES, codes_for_missing
from penstock.io.table import ReadLog, TableError

_EXACT = 2.0**53  # float64 holds every whole number up to this one
_MARKED = r"([+-]?[\d.,]+(?:[eE][+-]?\d+)?)\s*([GBUgbu])"  # good, bad or uncertain
_MOST_WORDS, _LONGEST_WORD = 20, 40  # in place of the numbers of a column, and characters of one, that are kept
_SAMPLE = 1000  # different texts that are looked at
_LIKE_NUMBERS, _FEWEST_TEXTS, _MANY = r"\d[.,:]\d", 20, 0.5  # of these may be numbers, or durations
_NOTES = {  # kind → sentence, and whether something was changed that the user did not ask for
    "codes for missing": ("{values} in {columns} taken as missing, being a code for it (such as {example}).", False),
    "codes for missing?": ("{values} in {columns} taken as missing, as {example} is far from all readings.", True),
    "text among numbers": ("{values} in {columns} taken as missing, being no number (such as {example}).", True),
    "infinite values": ("{values} in {columns} taken as missing, being infinite.", True),
    "rounded numbers": ("{values} in {columns} rounded, being too large to be kept exactly.", True),
    "marked as bad": ("{values} in {columns} taken as missing, being marked as bad (by {example}).", True),
    "limits": ("{values} in {columns} taken as the limit that is given, being limits (such as {example}).", True),
    "units in cells": ("A unit stands after the numbers in {columns} (such as {example}); it was left out.", False),
    "decimal comma": ("A decimal comma was read in {columns}.", False),
    "grouped numbers": ("In {columns} a sign stands between thousands (as in {example}); it was left out.", False),
    "odd numbers": ("Numbers in {columns} are written in another way (as {example}), and were read.", False),
    "numbers as text": ("Text in {columns}, though {values} hold numbers (as {example}): write them plainly.", False),
    "mixed text": ("Text in {columns}, though {values} could be read as numbers (not {example}).", False),
    "true and false": ("True is 1 and false is 0 in {columns}.", False),
    "time as text": ("Further times in {columns}, kept as text.", False),
    "durations": ("Durations in {columns}, now in seconds.", False),
}


@dataclass(frozen=True)
class MissingCodes:
    """Values that count as missing; numbers are compared as numbers, however they are written."""

    texts: frozenset[str] = frozenset()
    numbers: tuple[float, ...] = ()
    words: frozenset[str] = frozenset()  # in columns of numbers alone
    known: bool = True  # so that no further ones are looked for

    @classmethod
    def of(cls, missing: Sequence[str | float], words: Sequence[str] | None = ()) -> MissingCodes:
        """Make codes of texts and numbers, or of a single one, and of words found before; None: find them."""
        several: list[Any] = [missing] if isinstance(missing, str | Real) else list(missing)
        for code in several:
            if not isinstance(code, str | Real):
                raise TableError(f"missing must be texts or numbers; got {quoted(code)}.")
        texts = [str(code).strip() for code in several]
        numbers = _spelled_numbers((*texts, *(words or ())))
        return cls(frozenset(texts), numbers, frozenset(words or ()), words is not None)


@lru_cache(maxsize=64)
def _spelled_numbers(texts: tuple[str, ...]) -> tuple[float, ...]:
    """Return the numbers that some texts spell; kept, as each posted text of rows asks for those of its asset."""
    spelled = pd.Series(texts, dtype="object").str.replace(",", ".")
    return tuple(pd.to_numeric(spelled, errors="coerce").dropna().astype(float))


def numbers_and_texts(
    frame: pd.DataFrame,
    names: list[str],
    log: ReadLog,
    decimal: str = ".",
    thousands: str | None = None,
    codes: MissingCodes | None = None,
) -> tuple[pd.DataFrame, set[str]]:
    """Return the columns of these names, each as float64 with NaN, or as text with NaN; and which are complete."""
    reader = ColumnReader(decimal, thousands, codes or MissingCodes(), log.source)
    reader.is_alone = frame.shape[1] == 1  # "1 234" may then be two columns
    table = reader.read_frame(frame, names)
    reader.note(log)
    return table, reader.complete


def has_all(numbers: FloatArray) -> bool:
    """Return whether no number is missing, infinite, or so large that their sum is: quicker than to look at each."""
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.isfinite(numbers.sum()))


class ColumnReader:
    """Read columns, and count by kind of note and by column what was done to how many values."""

    def __init__(self, decimal: str, thousands: str | None, codes: MissingCodes, source: str) -> None:
        self._decimal, self._thousands, self._codes, self._source = decimal, thousands, codes, source
        self.is_alone = False
        self.words = set[str]()  # in place of numbers
        self.complete = set[str]()  # columns of numbers without a missing one
        self._found = set[float]()  # codes that were not given
        self.counts: dict[str, dict[str, int]] = {}
        self.examples: dict[str, str] = {}

    def read_frame(self, frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
        kinds = {name: kind.kind if isinstance(kind, np.dtype) else "" for name, kind in frame.dtypes.items()}
        plain = [name for name in names if kinds[name] in ("f", "i", "u")]
        first = frame.columns.tolist().index(plain[0]) if plain else 0
        table: pd.DataFrame = frame.iloc[:, slice(first, first + len(plain))]  # not copied, as it would be by names
        if table.columns.tolist() != plain:
            table = frame[plain]
        if not (table.dtypes == np.float64).all():
            table = table.astype(np.float64)
        for name in plain:
            if kinds[name] != "f" and (count := int((table[name].abs() > _EXACT).sum())):
                self.count("rounded numbers", name, count)
        if len(plain) < len(names):
            others = {name: self.read(frame[name], name) for name in names if name not in table}
            table = pd.concat([table, pd.DataFrame(others)], axis=1)[names]
        return self._without_codes_and_infinities(table)

    def note(self, log: ReadLog) -> None:
        """Note everything that was counted so far."""
        log.words |= self.words
        for kind, (sentence, changed) in _NOTES.items():
            if counts := self.counts.get(kind):
                total = sum(counts.values())
                values, columns = counted(total, "value"), in_columns(counts)
                said = sentence.format(values=values, columns=columns, example=self.examples[kind])
                log.add(kind, said, total, tuple(counts), changed=changed)

    def count(self, kind: str, column: str, count: int, example: object = "") -> None:
        columns = self.counts.setdefault(kind, {})
        columns[column] = columns.get(column, 0) + count
        self.examples.setdefault(kind, quoted(example))

    def _without_codes_and_infinities(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table with NaN for infinite numbers, and for those that are a code for a missing reading."""
        numeric = {str(name): column.to_numpy() for name, column in table.items() if column.dtype == np.float64}
        self.complete |= {name for name, numbers in numeric.items() if has_all(numbers)}
        changed = dict[str, FloatArray]()
        for name in [name for name in numeric if name not in self.complete]:
            infinite = np.isinf(numeric[name])
            if infinite.any():
                self.count("infinite values", name, int(infinite.sum()))
                changed[name] = np.where(infinite, np.nan, numeric[name])
        numeric |= changed
        for name, numbers in numeric.items() if not self._codes.known else ():
            least = numbers.min() if name in self.complete and len(numbers) else np.fmin.reduce(numbers, initial=np.inf)
            if least <= MISSING_CODES[0]:
                self._found |= {*codes_for_missing(np.sort(numbers[~np.isnan(numbers)]))} & {*MISSING_CODES}
        self.words |= {f"{code:.10g}" for code in self._found}
        codes = [*{*self._codes.numbers, *self._found}]
        for name, numbers in numeric.items() if codes else ():
            coded = np.isin(numbers, codes)
            if coded.any():
                example = numbers[coded][0]
                kind = "codes for missing?" if example in self._found else "codes for missing"
                self.count(kind, name, int(coded.sum()), f"{example:.10g}")
                changed[name] = np.where(coded, np.nan, numbers)
        self.complete -= changed.keys()
        return table.assign(**changed) if changed else table

    def read(self, column: pd.Series[Any], name: str) -> FloatArray | pd.Series[Any]:
        """Read a column that does not hold plain numbers."""
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(column.cat.categories.dtype)
        kind = column.dtype.kind
        if kind in "iufb":  # with a mask for missing values, or true and false
            if kind == "b":
                self.count("true and false", name, len(column))
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if kind == "m":
            self.count("durations", name, len(column))
            return np.asarray(column.dt.total_seconds(), dtype=np.float64)
        if kind == "M":
            self.count("time as text", name, len(column))
            return text_column([None if value is pd.NaT else str(value) for value in column])
        if kind == "c":
            raise TableError(
                f"{self._source}: column {quoted(name)} holds complex numbers. Split it in two, or exclude it."
            )
        if self._codes.texts and kind == "O":
            words = column.astype("object").map(lambda value: value.strip() if isinstance(value, str) else value)
            spelled = pd.to_numeric(words, errors="coerce")
            coded = np.asarray(words.isin(self._codes.texts) | spelled.isin(self._codes.numbers), dtype=np.bool_)
            if coded.any():
                self.count("codes for missing", name, int(coded.sum()), column[coded].iloc[0])
            column = column.mask(coded)
        return self._read_texts(column.reset_index(drop=True), name)

    def _read_texts(self, column: pd.Series[Any], name: str) -> FloatArray | pd.Series[Any]:
        there = column.notna()
        if pd.api.types.infer_dtype(column, skipna=True) == "boolean":
            self.count("true and false", name, int(there.sum()))
            return np.asarray(column.astype("float64"))
        spelled = self._plainly(self._without_unit(self._as_text(column), name), name)
        there &= spelled.notna()
        numbers = self._spelled_numbers(spelled, self._decimal)
        lower = spelled.str.lower()
        known = lower.isin(BAD_WORDS) | spelled.isin(self._codes.words)
        bad = there & np.isnan(numbers) & known  # what a historian writes where it has no reading
        failed = there & np.isnan(numbers) & ~lower.isin(MISSING) & ~bad
        wrong = spelled[failed].drop_duplicates()
        sample = wrong.iloc[:_SAMPLE].tolist()
        signs = [thousands_sign(text) for text in sample]
        # Numbers with a decimal comma, which cannot all be numbers with commas between thousands.
        if self._decimal != "," and sample and all(map(has_decimal_comma, sample)) and None in signs:
            others = spelled[~failed & ~bad]
            with_point = others[others.str.contains(".", regex=False, na=False)]
            if len(with_point):
                raise TableError(
                    f"{self._source}: column {quoted(name)} has numbers with a comma, as {quoted(sample[0])}, and with "
                    f"a point, as {quoted(with_point.iloc[0])}. Pass {option('decimal', ',')} and "
                    f"{option('thousands', '.')}, or the other way round."
                )
            self.count("decimal comma", name, int(failed.sum()))
            self._count_words(bad, spelled, name)
            return np.where(failed, self._spelled_numbers(spelled, ","), numbers)
        separated = [(sign, text) for sign, text in zip(signs, sample, strict=True) if sign is not None]
        if self._thousands is None and separated and 2 * len(separated) > len(sample):
            sign, text = separated[0]
            sign = " " if sign in BLANKS else sign
            raise TableError(
                f"{self._source}: column {quoted(name)} seems to have {quoted(sign)} between thousands, as in "
                f"{quoted(text)}. Pass {option('thousands', sign)} (and {option('decimal')}, if that is not found), or "
                f"exclude the column ({option('exclude')})."
            )
        good = int((~np.isnan(numbers)).sum())
        if not failed.any() and (good or not bad.any()):
            self._count_words(bad, spelled, name)
            return numbers
        wrong = wrong[wrong != name]  # a header that comes again
        if failed.any() and (
            not len(wrong)
            or good >= 0.95 * int(there.sum())
            or 5 * len(wrong) <= len(np.unique(numbers[~np.isnan(numbers)]))
        ):  # a column of numbers with some texts
            self._count_words(failed | bad, spelled, name)
            return numbers
        some = wrong.iloc[:_SAMPLE]
        like_numbers = len(some) >= _FEWEST_TEXTS and some.str.contains(_LIKE_NUMBERS).mean() >= _MANY
        if good > 0.05 * len(column):
            self.count("mixed text", name, good, wrong.iloc[0])
        elif like_numbers and not some.iloc[:_FEWEST_TEXTS].map(is_time).any():
            self.count("numbers as text", name, int(there.sum()), wrong.iloc[0])
        return spelled

    def _without_unit(self, spelled: pd.Series[Any], name: str) -> pd.Series[Any]:
        """Return numbers without the unit that stands after each of the first ones, as in "695.1 kW"."""
        words = spelled[spelled.notna() & ~spelled.str.lower().isin(MISSING | BAD_WORDS)]
        unit = unit_in_cells(words.iloc[:_SAMPLE].tolist())
        if not unit:
            return self._without_marks(spelled, name)
        self.count("units in cells", name, len(words), unit.strip())
        return spelled.str.removesuffix(unit).str.strip()

    def _plainly(self, spelled: pd.Series[Any], name: str) -> pd.Series[Any]:
        """Return numbers that are written in another way as most write them, and count them by how they are written."""
        kinds = spelled[spelled.notna() & np.isnan(self._spelled_numbers(spelled, self._decimal))].drop_duplicates()
        plain = {text: number for text in kinds if (number := plain_number(text)) != text}
        if self.is_alone:
            plain = {text: number for text, number in plain.items() if thousands_sign(text) is None}
        if not plain:
            return spelled
        odd = spelled.isin(plain)
        counts = spelled[odd].value_counts(sort=False).to_dict()
        for text in plain:
            has_groups = thousands_sign(text) is not None
            way = "limits" if text[0] in LIMITS else "grouped numbers" if has_groups else "odd numbers"
            self.count(way, name, counts[text], text)
        return spelled.mask(odd, spelled.map(plain))

    def _without_marks(self, spelled: pd.Series[Any], name: str) -> pd.Series[Any]:
        """Return numbers without the letter after each that says its quality, as in "695.1 G"; bad ones are missing."""
        if not spelled.iloc[:_SAMPLE].str.fullmatch(_MARKED).any():
            return spelled
        found = spelled.str.extract(f"^{_MARKED}$")
        marks = found[1].str.upper()
        if marks.notna().sum() < spelled.notna().sum() or not {"G", "B"} <= set(marks):
            return spelled
        self.count("marked as bad", name, int((marks == "B").sum()), "B")
        return found[0].mask(marks == "B")

    def _count_words(self, words: pd.Series[Any], spelled: pd.Series[Any], name: str) -> None:
        if words.any():
            self.count("text among numbers", name, int(words.sum()), spelled[words].iloc[0])
            self.words |= {word for word in spelled[words].unique()[:_MOST_WORDS] if len(word) <= _LONGEST_WORD}

    def _as_text(self, column: pd.Series[Any]) -> pd.Series[Any]:
        if pd.api.types.infer_dtype(column, skipna=True) in ("string", "empty"):
            return column.str.strip() if column.notna().any() else column
        decimal = self._decimal
        words = [
            None if missing else str(value).replace(".", decimal) if isinstance(value, float) else str(value).strip()
            for value, missing in zip(column, column.isna(), strict=True)
        ]
        return text_column(words)

    def _spelled_numbers(self, spelled: pd.Series[Any], decimal: str) -> FloatArray:
        if self._thousands is not None:
            signs = BLANKS if self._thousands in BLANKS else self._thousands
            spelled = spelled.str.replace(f"[{re.escape(signs)}]", "", regex=True)
        if decimal != ".":
            spelled = spelled.str.replace(".", "?", regex=False)  # a point has no meaning then: 1.234 may be 1234
            spelled = spelled.str.replace(decimal, ".", regex=False)
        return np.asarray(pd.to_numeric(spelled, errors="coerce"), dtype=np.float64)


def text_column(words: list[str | None]) -> pd.Series[Any]:
    """Return a column of the type that this version of pandas has for text."""
    return pd.Series(words, dtype="object").astype(pd.Series(["", None]).dtype)
