"""What rows of a stream are made of: options, columns and single fields; and rows made of JSON objects, one a line."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from penstock._types import BoolArray, FloatArray
from penstock.io._clock import is_time_name
from penstock.io._layout import is_missing, plain_number
from penstock.io._numbers import MissingCodes
from penstock.io._reading_columns import tag_of_object
from penstock.io.feeds import LONGEST, InputError
from penstock.io.quality import BAD_WORDS, is_bad, is_quality_name
from penstock.io.times import TimeOptions, TimeReader

_PERHAPS_TIME = "t"  # or a temperature
BOM = b"\xef\xbb\xbf"
_LONGEST_QUOTE, _MOST_NAMES = 40, 20  # characters of a value, and names, in a message


@dataclass(frozen=True)
class TableOptions:
    """How a stream is read; what is None is found out from its first lines.

    Parameters
    ----------
    format : str, optional
        "csv" or "jsonl".
    delimiter, encoding, decimal : str, optional
        Of text with separators.
    time : str, optional
        The column of time stamps, which are passed on as they are written.
    columns, exclude : tuple of str
        Measure only these, or all but these. All columns of numbers if `columns` and `texts` are empty.
    texts : tuple of str
        Columns to be returned as they are written.
    texts_if_there : tuple of str
        Further ones, which the stream may lack.
    times : TimeOptions
        What is known of how times are written.
    missing : tuple of str
        Further texts that stand for a missing reading.
    thousands : str, optional
        The sign between thousands.
    readings : "", "perhaps" or "always"
        Whether rows may be single readings (tag, time, value), or have some of the columns only; or always are.

    Examples
    --------
    >>> TableOptions(time="time", texts_if_there=("mode",)).for_columns(["time", "flow", "mode"]).texts
    ('mode',)
    """

    format: str | None = None
    delimiter: str | None = None
    time: str | None = None
    columns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    encoding: str | None = None
    decimal: str | None = None
    times: TimeOptions = field(default_factory=TimeOptions)
    texts_if_there: tuple[str, ...] = ()
    readings: str = ""
    missing: tuple[str, ...] = ()
    thousands: str | None = None

    def for_columns(self, names: Sequence[str]) -> TableOptions:
        """Return these options for a stream with these columns: of `texts_if_there` those that it has are `texts`."""
        there = (name for name in self.texts_if_there if name in names)
        return replace(self, texts=(*self.texts, *there), texts_if_there=())


@dataclass(frozen=True)
class Quality:
    """A column that says which readings of another are bad: both by number, some of its values, and its name.

    >>> Quality(1, 0, ("192", "24")).bad(["192", "0", None])
    array([False,  True, False])
    """

    place: int
    of: int
    known: tuple[str, ...]  # by which the kind of codes is recognised: 0 alone may be good or bad
    name: str = ""

    def bad(self, texts: Sequence[str | None]) -> BoolArray:
        return is_bad([*self.known, *texts], self.name)[len(self.known) :]


@dataclass(frozen=True)
class Columns:
    """The names of all columns in order, and by number: the time (or None), the variables and the columns of text."""

    names: tuple[str, ...]
    time: int | None
    variables: tuple[int, ...]
    texts: tuple[int, ...] = ()
    clock: int | None = None  # the time of day, where that and the date have a column each
    reading: bool = False  # each row is one reading: the texts are its tag, its value and perhaps its quality
    sparse: bool = False  # a row has readings of some of the columns only
    quality: tuple[Quality, ...] = ()  # columns that say which readings are bad

    @property
    def variable_names(self) -> tuple[str, ...]:
        return tuple(self.names[number] for number in self.variables)

    def chosen_by(self, options: TableOptions) -> Columns:
        """Return the columns that options name, where they name other ones than before; InputError if one is not there.

        >>> Columns(("time", "flow", "oil"), 0, (1, 2)).chosen_by(TableOptions(columns=("oil",))).variable_names
        ('oil',)
        """
        options = options.for_columns(self.names)
        if self.reading or self.sparse or not (options.columns or options.texts):
            return self
        check_options(self.names, options)
        variables = tuple(self.names.index(name) for name in options.columns if name not in options.exclude)
        return replace(self, variables=variables, texts=tuple(map(self.names.index, options.texts)))

    def state(self) -> dict[str, Any]:
        texts = {"texts": list(self.texts)} if self.texts else {}
        clock = {} if self.clock is None else {"clock": self.clock}
        quality = [[each.place, each.of, list(each.known)] for each in self.quality]
        kind = {"reading": self.reading, "sparse": self.sparse, "quality": quality}
        return {
            "names": list(self.names),
            "time": self.time,
            "variables": list(self.variables),
            **texts,
            **clock,
            **kind,
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Columns:
        """Return the columns whose `state()` this is; ValueError, TypeError or LookupError if it is none."""
        texts = tuple(state.get("texts", ()))
        quality = tuple(
            Quality(place, of, tuple(map(str, known)), state["names"][place]) for place, of, known in state["quality"]
        )
        kind = (bool(state["reading"]), bool(state["sparse"]), quality)
        columns = cls(tuple(state["names"]), state["time"], tuple(state["variables"]), texts, state.get("clock"), *kind)
        places = [*columns.variables, *texts, *(place for each in quality for place in (each.place, each.of))]
        places += [place for place in (columns.time, columns.clock) if place is not None]
        if not (columns.variables or texts) or not all(isinstance(name, str) for name in columns.names):
            raise ValueError("the columns have no names")
        if not all(type(place) is int and 0 <= place < len(columns.names) for place in places):
            raise ValueError("there are fewer columns than are measured")
        return columns


@dataclass
class Parsed:
    """Rows of numbers (NaN: no reading), their times as written, and the lines that could not be read."""

    values: FloatArray
    times: list[Any] | None
    faults: list[tuple[int, str]] = field(default_factory=list)  # number of the line among those given, reason
    texts: dict[str, list[str | None]] = field(default_factory=dict)  # columns that are not numbers, None: missing


def check_options(names: Sequence[str], options: TableOptions) -> None:
    """Raise for names that are no columns, and for columns that are named twice."""
    time = [] if options.time is None else [options.time]
    for name in (*options.columns, *options.texts, *options.exclude, *time):
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f" Did you mean {quoted(close[0])}?" if close else ""
            raise InputError(f"There is no column {quoted(name)}; the columns are {listed_names(names)}.{hint}")
    for option, chosen in (("--columns", options.columns), ("--exclude", options.exclude)):
        twice = next((name for name in chosen if chosen.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{option} names {quoted(twice)} more than once; name each column once.")
    if options.time is not None and options.time in options.columns:
        raise InputError(f"Column {quoted(options.time)} cannot be the time and a measurement; name it once.")


def time_by_name(
    names: Sequence[str], first: Sequence[object], unnamed: Sequence[str], taken: Collection[str]
) -> int | None:
    """Return a column to pass on as the time, though it cannot be read as one."""
    free = [number for number, name in enumerate(names) if name not in taken]
    for number in free:
        if is_time_name(names[number]) and names[number].strip().lower() != _PERHAPS_TIME:
            return number
    if 0 in free and _is_text(first[0]):
        return 0
    for number in free:
        if names[number].strip().lower() == _PERHAPS_TIME and (number == 0 or _is_text(first[number])):
            return number
    return 0 if 0 in free and names[0] in unnamed else None  # pandas writes its index under no name


def is_number(value: object) -> bool:
    """Return whether a value of a table is, or spells, a number."""
    if isinstance(value, str) and "_" in value:  # 1_2 is a number in Python only
        return False
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not is_missing(value) and not is_number(value)


def to_number(text: str, name: str, shown: str | None = None) -> float:
    """Return the number that a field spells, NaN for a missing value; `shown` is how the input spells it.

    >>> to_number("2.5", "flow"), to_number("NA", "flow")
    (2.5, nan)
    >>> to_number("off", "flow")
    Traceback (most recent call last):
    ValueError: column "flow" holds "off", which is not a number
    """
    if not is_number(text) or not text.isascii():  # Python knows other digits too
        if is_missing(text) or text.strip().casefold() in BAD_WORDS:
            return math.nan
        shown = text if shown is None else shown
        raise ValueError(f"column {quoted(name)} holds {quoted(shown)}, which is not a number")
    return finite(float(text), name)


def finite(value: float, name: str) -> float:
    if math.isinf(value):
        raise ValueError(f"column {quoted(name)} holds an infinite value or one too large for a float")
    return value


def decoded(line: bytes, encoding: str = "utf-8") -> str:
    """Return the text of a line, without a carriage return at its end and a byte order mark before it."""
    if len(line) > LONGEST:
        raise ValueError(f"longer than {LONGEST:,} bytes")
    try:
        return line.removesuffix(b"\r").removeprefix(BOM).decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(f"not {encoding.upper()} at byte {error.start + 1}") from None


def quoted(text: object) -> str:
    """Return a value as it is shown in a message: in quotes, on one line, not too long.

    >>> quoted("x" * 99) == '"' + "x" * 40 + '…"'
    True
    """
    shown = str(text)
    return json.dumps(f"{shown[:_LONGEST_QUOTE]}…" if len(shown) > _LONGEST_QUOTE else shown, ensure_ascii=False)


def listed_names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown}, … ({len(names)} in all)"


class JsonRows:
    """Parse rows from JSON objects. The keys of the first are the columns; a later one may lack some of them."""

    has_lines_below = False

    def __init__(self, columns: Columns, options: TableOptions, reader: TimeReader | None = None) -> None:
        self.columns = columns
        self.reader = reader  # of the time; None as long as no time was there that can be read
        self._names, self._missing = columns.variable_names, MissingCodes.of(options.missing)
        # With --columns, other keys do not matter; without, a new one is a column that is not watched.
        self._known = None if options.columns or options.texts else frozenset(columns.names)

    @classmethod
    def of(cls, line: bytes, options: TableOptions) -> JsonRows:
        """Return the parser for the columns that the first object names; ValueError if the line holds none."""
        first = _object(line)
        if not first:
            raise ValueError("an object without any key")
        names = list(first)
        if options.readings and (found := _reading_keys(first, options)) is not None:
            return cls(found, options)
        options = options.for_columns(names)
        check_options(names, options)
        values = [str(value) if isinstance(value, str) else "1" for value in first.values()]
        taken = {*options.columns, *options.texts, *options.exclude}
        time = names.index(options.time) if options.time is not None else time_by_name(names, values, ("",), taken)
        others = () if options.texts else tuple(name for number, name in enumerate(names) if number != time)
        variables = tuple(names.index(name) for name in options.columns or others if name not in options.exclude)
        if not (variables or options.texts):
            raise InputError(f"No column is left to measure anomalies in; the columns are {listed_names(names)}.")
        return cls(Columns(tuple(names), time, variables, tuple(map(names.index, options.texts))), options)

    def role_above(self, line: bytes, number: int) -> str:
        """Return "", a row: objects name their columns themselves."""
        return ""

    def parse(self, lines: Sequence[bytes]) -> Parsed:
        time = None if self.columns.time is None else self.columns.names[self.columns.time]
        faults, kept, times = [], [], []
        texts: dict[str, list[str | None]] = {self.columns.names[number]: [] for number in self.columns.texts}
        for number, line in enumerate(lines):
            try:
                values = _object(line)
                if self._known is not None and not self._known.issuperset(values):
                    new = next(key for key in values if key not in self._known)
                    raise ValueError(f"key {quoted(new)} was not in the first object")
                row = [_json_number(self._there(values.get(name)), name) for name in self._names]
                when = None if time is None else values.get(time)
                if isinstance(when, dict | list):
                    raise ValueError("its time is neither a text nor a number")
                if isinstance(when, float) and not math.isfinite(when):  # NaN and infinities are not JSON
                    when = None
            except ValueError as fault:
                faults.append((number, str(fault)))
            else:
                kept.append(row)
                times.append(when)
                for name, column in texts.items():
                    value = values.get(name)
                    text = value if isinstance(value, str) else json.dumps(value)
                    column.append(None if value is None or is_missing(text) else text.strip())
        table = np.array(kept, dtype=np.float64).reshape(len(kept), len(self._names))
        table[np.isin(table, self._missing.numbers)] = np.nan
        return Parsed(table, None if time is None else times, faults, texts)

    def _there(self, value: Any) -> Any:
        return None if isinstance(value, str) and value.strip() in self._missing.texts else value

    def state(self) -> dict[str, Any]:
        reader = None if self.reader is None else self.reader.state()
        return {"format": "jsonl", "reader": reader, **self.columns.state()}


def _reading_keys(first: dict[str, Any], options: TableOptions) -> Columns | None:
    """Return the columns of objects that are readings, by the first; None if they are whole rows."""
    wanted, names = (*options.columns, *options.texts), list(first)
    time = options.time if options.time in names else next(filter(is_time_name, names), None)
    tag, value = tag_of_object(first, wanted)
    if tag and value and not set(wanted) & set(names):
        quality = [name for name in names if is_quality_name(name) or name == "q"][:1]
        places = tuple(names.index(name) for name in (tag, value, *quality))
        said = tuple(Quality(place, places[1], (), names[place]) for place in places[2:])
        return Columns(
            tuple(names), None if time is None else names.index(time), (), places, reading=True, quality=said
        )
    some = len(set(wanted) & set(names))
    if not wanted or time is None or (options.readings != "always" and 2 * some >= len(wanted)):
        return None
    every = [time, *wanted]
    variables, texts = (tuple(map(every.index, names)) for names in (options.columns, options.texts))
    return Columns(tuple(every), 0, variables, texts, sparse=True)


def _object(line: bytes) -> dict[str, Any]:
    text = decoded(line)
    try:
        value = json.loads(text, object_pairs_hook=_without_repeats)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # a half of a pair of surrogates is no text
    except UnicodeEncodeError:
        raise ValueError("a text in it is not valid Unicode") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    except ValueError as error:
        if "int_max_str_digits" in str(error):
            raise ValueError("not JSON (a number has thousands of digits)") from None
        raise
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {quoted(next(key for key in keys if keys.count(key) > 1))} comes more than once")
    return values


def _json_number(value: object, name: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str):
        return to_number(plain_number(value), name, shown=value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"column {quoted(name)} holds {quoted(json.dumps(value))}, which is not a number")
    try:
        return finite(float(value), name)
    except OverflowError:
        return finite(math.inf, name)
