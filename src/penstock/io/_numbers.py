"""Columns as they were read → float64, or text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, in_columns, quoted
from penstock._types import FloatArray
from penstock.io._layout import MISSING, has_decimal_comma, thousands_sign
from penstock.io.table import Notebook, TableError

_EXACT = 2.0**53  # the largest whole number below which float64 has every one


@dataclass(frozen=True)
class MissingCodes:
    """What counts as missing; numbers are compared as numbers, however they are written."""

    texts: frozenset[str] = frozenset()
    numbers: tuple[float, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.texts)

    def among_texts(self, column: pd.Series[Any]) -> NDArray[np.bool_]:
        """Which values of a column of text (or of anything) are such."""
        words = column.astype("object").map(lambda value: value.strip() if isinstance(value, str) else value)
        spelled = pd.to_numeric(words, errors="coerce")
        return np.asarray(words.isin(self.texts) | spelled.isin(self.numbers), dtype=np.bool_)

    def among_numbers(self, values: FloatArray) -> NDArray[np.bool_]:
        return np.isin(values, self.numbers)


def as_codes(missing: Sequence[str | float]) -> MissingCodes:
    """Texts and numbers, or a single one.

    >>> as_codes(["Bad", "-9999", 1e30]).numbers
    (-9999.0, 1e+30)
    """
    several: list[Any] = [missing] if isinstance(missing, str | Real) else list(missing)
    for code in several:
        if not isinstance(code, str | Real):
            raise TableError(f"missing must be texts or numbers; got {quoted(code)}.")
    texts = [str(code).strip() for code in several]
    numbers = pd.to_numeric(pd.Series(texts, dtype="object").str.replace(",", "."), errors="coerce").dropna()
    return MissingCodes(frozenset(texts), tuple(numbers.astype(float)))


@dataclass(frozen=True)
class NumberOptions:
    """The sign between thousands, and what counts as missing."""

    thousands: str | None = None
    missing: MissingCodes = field(default_factory=MissingCodes)


@dataclass
class _Findings:
    """Columns by what was done to them, and how many values."""

    odd: dict[str, dict[str, int]] = field(default_factory=lambda: {})  # kind of thing → column → count
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, column: str, count: int, example: object = "") -> None:
        columns = self.odd.setdefault(kind, {})
        columns[column] = columns.get(column, 0) + count
        self.examples.setdefault(kind, quoted(example))


_SAID = {  # kind → sentence, and whether something was changed that was not asked for
    "codes for missing": ("{values} in {columns} taken as missing, as asked (such as {example}).", False),
    "text among numbers": ("{values} in {columns} taken as missing, being no number (such as {example}).", True),
    "infinite values": ("{values} in {columns} taken as missing, being infinite.", True),
    "rounded numbers": ("{values} in {columns} rounded, being too large to be kept exactly.", True),
    "decimal comma": ("A decimal comma was read in {columns}.", False),
    "mixed text": ("Text in {columns}, though {values} could be read as numbers (not {example}).", False),
    "true and false": ("True is 1 and false is 0 in {columns}.", False),
    "time as text": ("Further times in {columns}, kept as text.", False),
    "durations": ("Durations in {columns}, now in seconds.", False),
}


def numbers_and_texts(
    frame: pd.DataFrame, names: list[str], decimal: str, options: NumberOptions, notebook: Notebook
) -> pd.DataFrame:
    """The columns of these names, each as float64 with NaN, or as text with NaN.

    >>> notebook = Notebook("plant.csv")
    >>> flow = ["1.5", "2", "2.5", "3", "4", "Bad", None]
    >>> read = pd.DataFrame({"flow": flow, "state": ["on", "off", "on", None, "on", "on", "off"]})
    >>> table = numbers_and_texts(read, ["flow", "state"], ".", NumberOptions(), notebook)
    >>> table["flow"].tolist(), table["state"].tolist()[:2]
    ([1.5, 2.0, 2.5, 3.0, 4.0, nan, nan], ['on', 'off'])
    >>> print(*notebook.notes)
    1 value in column 'flow' taken as missing, being no number (such as 'Bad').
    """
    findings = _Findings()
    kinds = {name: kind.kind if isinstance(kind, np.dtype) else "" for name, kind in frame.dtypes.items()}
    plain = [name for name in names if kinds[name] in ("f", "i", "u")]
    whole = [name for name in plain if kinds[name] != "f"]
    table = frame[plain].astype(np.float64)  # columns that are float64 already are not copied
    _note_rounding(table[whole], findings)
    if len(plain) < len(names):
        others = {
            name: _as_numbers(
                _without_codes(frame[name], name, options, findings), name, decimal, options, findings, notebook.source
            )
            for name in names
            if name not in table
        }
        table = pd.concat([table, pd.DataFrame(others)], axis=1)[names]
    table = _numbers_without_codes(table, options, findings)
    table = _without_infinities(table, findings)
    _tell(findings, notebook)
    return table


def _without_codes(column: pd.Series[Any], name: str, options: NumberOptions, findings: _Findings) -> pd.Series[Any]:
    """A column of anything but plain numbers without the texts that count as missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if not options.missing or column.dtype.kind != "O":
        return column
    told = options.missing.among_texts(column)
    if told.any():
        findings.add("codes for missing", name, int(told.sum()), column[told].iloc[0])
    return column.mask(told)


def _numbers_without_codes(table: pd.DataFrame, options: NumberOptions, findings: _Findings) -> pd.DataFrame:
    if not options.missing.numbers:
        return table
    numeric = table.select_dtypes("number")
    told = pd.DataFrame(options.missing.among_numbers(numeric.to_numpy()), numeric.index, numeric.columns)
    told = told.loc[:, told.any()]
    for name in told.columns:
        findings.add("codes for missing", name, int(told[name].sum()), f"{numeric[name][told[name]].iloc[0]:.10g}")
    return table.assign(**{name: numeric[name].mask(told[name]) for name in told.columns})


def _note_rounding(whole: pd.DataFrame, findings: _Findings) -> None:
    for name, column in whole.items():
        if count := int((column.abs() > _EXACT).sum()):
            findings.add("rounded numbers", str(name), count)


def _as_numbers(
    column: pd.Series[Any], name: str, decimal: str, options: NumberOptions, findings: _Findings, source: str
) -> FloatArray | pd.Series[Any]:
    kind = column.dtype.kind
    if kind in "iuf":  # with a mask for missing values
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "b":
        findings.add("true and false", name, len(column))
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "m":
        findings.add("durations", name, len(column))
        return np.asarray(column.dt.total_seconds(), dtype=np.float64)
    if kind == "M":
        findings.add("time as text", name, len(column))
        return pd.Series([None if value is pd.NaT else str(value) for value in column], dtype="object").astype(_text())
    if kind == "c":
        raise TableError(f"{source}: column {quoted(name)} holds complex numbers. Split it in two, or exclude it.")
    return _from_texts(column, name, decimal, options.thousands, findings, source)


def _from_texts(
    column: pd.Series[Any], name: str, decimal: str, thousands: str | None, findings: _Findings, source: str
) -> FloatArray | pd.Series[Any]:
    column = column.reset_index(drop=True)
    there = column.notna()
    if pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        findings.add("true and false", name, int(there.sum()))
        return np.asarray(column.astype("float64"))
    spelled = _as_text(column, decimal)
    numbers = _spelled_numbers(spelled, decimal, thousands)
    failed = there & np.isnan(numbers) & ~_spells_nothing(spelled)
    wrong = spelled[failed].drop_duplicates()
    if decimal != "," and _all_with_comma(wrong):
        _refuse_both_signs(spelled[~failed], wrong, name, source)
        findings.add("decimal comma", name, int(failed.sum()))
        return np.where(failed, _spelled_numbers(spelled, ",", thousands), numbers)
    _refuse_thousands(wrong, name, thousands, source)
    if not failed.any():
        return numbers
    wrong = wrong[wrong != name]  # a header that comes again
    good = int((~np.isnan(numbers)).sum())
    mostly_numbers = good >= 0.95 * int(there.sum()) or 5 * len(wrong) <= len(np.unique(numbers[~np.isnan(numbers)]))
    if not len(wrong) or mostly_numbers:
        findings.add("text among numbers", name, int(failed.sum()), spelled[failed].iloc[0])
        return numbers
    if good > 0.05 * len(column):
        findings.add("mixed text", name, good, wrong.iloc[0])
    return spelled


def _as_text(column: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    if pd.api.types.infer_dtype(column, skipna=True) in ("string", "empty"):
        return column.str.strip() if column.notna().any() else column
    words = [
        None if missing else str(value).replace(".", decimal) if isinstance(value, float) else str(value).strip()
        for value, missing in zip(column, column.isna(), strict=True)
    ]
    return pd.Series(words, dtype="object").astype(_text())


def _text() -> Any:
    """What this version of pandas makes of text by itself."""
    return pd.Series(["", None]).dtype


def _spelled_numbers(spelled: pd.Series[Any], decimal: str, thousands: str | None) -> FloatArray:
    if thousands is not None:
        spelled = spelled.str.replace(thousands, "", regex=False)
    if decimal != ".":
        spelled = spelled.str.replace(".", "?", regex=False)  # a point has no meaning then: 1.234 may be 1234
        spelled = spelled.str.replace(decimal, ".", regex=False)
    numbers = pd.to_numeric(spelled, errors="coerce")
    return np.asarray(numbers, dtype=np.float64)


def _spells_nothing(spelled: pd.Series[Any]) -> pd.Series[bool]:
    return spelled.str.lower().isin(MISSING)


def _all_with_comma(wrong: pd.Series[Any]) -> bool:
    """Whether texts are numbers with a decimal comma, and cannot all be numbers with commas between thousands."""
    sample = wrong.iloc[:1000].tolist()
    if not sample or not all(map(has_decimal_comma, sample)):
        return False
    return any(thousands_sign(text) is None for text in sample)


def _refuse_both_signs(others: pd.Series[Any], wrong: pd.Series[Any], name: str, source: str) -> None:
    with_point = others[others.str.contains(".", regex=False, na=False)]
    if len(with_point):
        raise TableError(
            f"{source}: column {quoted(name)} has numbers with a comma, as {quoted(wrong.iloc[0])}, and with a point, "
            f"as {quoted(with_point.iloc[0])}. Pass decimal=',' and thousands='.', or the other way round."
        )


def _refuse_thousands(wrong: pd.Series[Any], name: str, thousands: str | None, source: str) -> None:
    sample = wrong.iloc[:1000]
    signs = [sign for sign in map(thousands_sign, sample) if sign is not None]
    if thousands is None and signs and 2 * len(signs) > len(sample):
        raise TableError(
            f"{source}: column {quoted(name)} seems to have {quoted(signs[0])} between thousands, as in "
            f"{quoted(next(text for text in sample if thousands_sign(text)))}. Pass thousands={signs[0]!r} (and "
            f"decimal, if that is not found), or exclude the column."
        )


def _without_infinities(table: pd.DataFrame, findings: _Findings) -> pd.DataFrame:
    numeric = table.select_dtypes("number")
    with np.errstate(invalid="ignore", over="ignore"):
        suspects = numeric.columns[~np.isfinite(numeric.to_numpy().sum(axis=0))]
    counts = np.isinf(numeric[suspects].to_numpy()).sum(axis=0)
    infinite = {name: count for name, count in zip(suspects, counts.tolist(), strict=True) if count}
    for name, count in infinite.items():
        findings.add("infinite values", name, count)
    return table.replace([np.inf, -np.inf], np.nan) if infinite else table


def _tell(findings: _Findings, notebook: Notebook) -> None:
    for kind, (sentence, changed) in _SAID.items():
        counts: dict[str, int] = findings.odd.get(kind, {})
        if not counts:
            continue
        total = sum(counts.values())
        said = sentence.format(
            values=counted(total, "value"), columns=in_columns(counts), example=findings.examples[kind]
        )
        notebook.add(kind, said, total, tuple(counts), changed=changed)
