"""Find copies, labels, runs and counters among the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from penstock._threads import one_blas_thread
from penstock._types import BoolArray, FloatArray

LIKE_A_LABEL = "It looks like a label, not like a reading."
_STRONG = re.compile(
    r"outliers?|anomal(y|ies|ous|ie|ien)|abnormal|attacks?|faults?|faulty|fail(s|ed|ing|ures?)?|labels?|flags?"
    r"|(st(ö|oe)rung|fehler|ausfall)(en)?|truth|changepoints?|alarm(s|e|a|as)?|allarm[ei]|trip(s|ped)?|defauts?|défauts?"
    r"|pannes?|fall[oa]s?|guast[oi]|falhas?|storing(en)?|awaria|usterka|авария|отказ|неисправность"
    r"|(故障|报警|報警|警报|警報|异常|異常)(状态|状態|标志|标记|フラグ)?|고장|경보",
    re.IGNORECASE,
)
_WEAK = re.compile(r"targets?|class(es)?", re.IGNORECASE)  # only if the whole name is about a label
_OTHER_WORDS = re.compile(
    r"is|has|in|the|a|y|true|ground|point|points|change|normal|or|id|no|nr|num|number|code|type|name|index|kind|state|status"
    r"|[0-9]+",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-zäöü])(?=[A-ZÄÖÜ])")
MOST_KINDS = 50  # different values of a label
_LARGEST = 100
_CODES = (-99, -999, -9999, -99999)  # of rows without a label


def looks_like_label(name: str, values: Collection[float] | Collection[str]) -> bool:
    """Return whether a column is named like a label and its different `values` are few, as those of labels.

    Numbers are 0 and 1, 1 and −1, or small whole numbers with 0 or 1 among them; −999 and such stand for "unknown".
    With more than two (other) values, all words of the name must be about a label: "fault number" is one, "fault
    current" is a reading.

    >>> [looks_like_label(name, {0.0, 1.0}) for name in ("is_fault", "Label", "ATT_FLAG", "pump_on", "default", "y")]
    [True, True, True, False, False, False]
    >>> [looks_like_label(name, {0.0, 1.0, 4.0}) for name in ("faultNumber", "fault current", "flag_count")]
    [True, False, False]
    >>> looks_like_label("ATT_FLAG", {-999.0, 1.0}), looks_like_label("Normal/Attack", {"Normal", "Attack", "A ttack"})
    (True, True)
    >>> looks_like_label("target", {18.0, 21.0}), looks_like_label("target level", {0.0, 1.0})
    (False, False)
    """
    words = _WORDS.findall(_CAMEL.sub("_", name))
    whole = all(_STRONG.fullmatch(word) or _WEAK.fullmatch(word) or _OTHER_WORDS.fullmatch(word) for word in words)
    strong = any(map(_STRONG.fullmatch, words)) or "change point" in " ".join(words).casefold()
    if not (strong or (whole and any(map(_WEAK.fullmatch, words)))):
        return False
    kinds = [value for value in values if value not in _CODES]
    few = len(kinds) <= 2 or (whole and len(kinds) <= MOST_KINDS)
    numbers = [value for value in kinds if not isinstance(value, str)]
    whole = all(float(number).is_integer() and -1 <= number <= _LARGEST for number in numbers)
    return few and len(values) > 1 and whole and (not numbers or 0 in numbers or 1 in numbers)


_FEWEST_OTHERS = 20


def extent_of_outliers(ordered: FloatArray) -> tuple[float, float]:
    """Return the value farthest outside the range of the middle 90 % (or 98 %), and how many ranges away it is."""
    farthest = float(ordered[-1])
    if len(ordered) < _FEWEST_OTHERS:
        return farthest, 0.0
    for share in (0.05, 0.01):
        cut = int(share * len(ordered))
        low, high = ordered[cut], ordered[-1 - cut]
        if high > low:
            with np.errstate(over="ignore"):
                below, above, width = low - ordered[0], ordered[-1] - high, high - low
            farthest = float(ordered[0] if below > above else ordered[-1])
            return farthest, float(max(below, above) / width) if np.isfinite(width) else 0.0
    return farthest, 0.0


_MOST_RESETS = 0.05  # of the steps
_RESET = 0.5  # of the range: a smaller fall is none
_FEWEST_RISES = 20
_SMALL = 0.05  # of the range: a usual rise


def resets_of_counter(values: FloatArray) -> int | None:
    """Return how often a counter starts again; None if the column is no counter.

    A counter never falls but to start again: noise, of which every sensor has some, rules it out.
    """
    falls = np.flatnonzero(values[1:] < values[:-1])
    if len(falls) > _MOST_RESETS * len(values):
        return None
    steps = np.diff(values)
    rises = steps[steps > 0]
    extent = float(values.max() - values.min())
    if len(rises) < _FEWEST_RISES or not np.isfinite(extent) or np.median(rises) > _SMALL * extent:
        return None
    return len(falls) if (steps[falls] <= -_RESET * extent).all() else None


_USUAL_SHARE = 0.95  # of the values outside the longest run are in runs that count as usual
_FARTHER = 10  # times the usual run
_SHORTEST = 20  # rows that are worth a remark
_FEWEST_LEVELS = 20  # different values: a set point has fewer, and may stay where it is
_SELDOM = 0.02  # share of the other values
_FEWEST_RUNS = 10  # a history to compare with
_SELDOM_CHANGED = 0.05  # of its steps: a setting has fewer changes
_MOVING = 0.5  # of the steps apart from its usual values are changes, and of all changes are there: a reading


@dataclass(frozen=True)
class Run:
    """Consecutive rows: the first one, and how many they are."""

    start: int
    length: int


def longest_true(mask: BoolArray) -> Run:
    if not mask.any():
        return Run(0, 0)
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    starts, stops = edges[::2], edges[1::2]
    longest = int(np.argmax(stops - starts))
    return Run(int(starts[longest]), int(stops[longest] - starts[longest]))


@dataclass(frozen=True)
class EqualRuns:
    """The longest run of equal values (among those present), the length usual for the others, and how many runs."""

    longest: Run
    usual: int
    count: int
    elsewhere: float  # the share of the other values that are equal to those of the longest run

    def stood_still(self, n_distinct: int) -> bool:
        """Return whether the longest run stands out from the column's own history.

        A level that it often has, such as no flow while the pump is off, is no standstill, nor is that of a set point.
        """
        has_history = self.count > _FEWEST_RUNS and n_distinct >= _FEWEST_LEVELS
        stands_out = self.longest.length >= max(_SHORTEST, _FARTHER * self.usual)
        return has_history and stands_out and self.elsewhere <= _SELDOM


def equal_runs(values: FloatArray) -> EqualRuns:
    last = np.append(np.flatnonzero(values[1:] != values[:-1]), len(values) - 1)
    lengths = np.diff(last, prepend=-1)
    longest = int(np.argmax(lengths))
    run = Run(int(last[longest] - lengths[longest] + 1), int(lengths[longest]))
    rows_by_length = np.bincount(lengths) * np.arange(run.length + 1)
    rows_by_length[-1] -= run.length
    up_to = np.cumsum(rows_by_length)
    usual = int(np.searchsorted(up_to, _USUAL_SHARE * up_to[-1])) if up_to[-1] else 0
    others = len(values) - run.length
    equal = int(np.count_nonzero(values == values[run.start])) - run.length
    return EqualRuns(run, usual, len(lengths), equal / others if others else 0.0)


def is_setting(values: FloatArray) -> bool:
    """Return whether values change seldom, and mostly from one usual value to another.

    Usual are the most frequent values that make up 95 % of all. A reading that is mostly 0 changes while it is not.
    """
    changed = values[1:] != values[:-1]
    n_changes = np.count_nonzero(changed)
    if not 0 < n_changes < _SELDOM_CHANGED * len(changed):
        return False
    levels, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    usual = levels[order[: 1 + np.searchsorted(np.cumsum(counts[order]), _USUAL_SHARE * len(values))]]
    apart = ~np.isin(values, usual)
    steps = apart[1:] | apart[:-1]
    moves = np.count_nonzero(changed & steps)
    return bool(moves < _MOVING * n_changes or moves < _MOVING * np.count_nonzero(steps))


_SET = re.compile(
    r"setpoints?|sollwerte?|soll|sp|limits?|grenzwerte?|settings?|consigne|setting|demand|command", re.IGNORECASE
)


def named_like_setting(name: str) -> bool:
    """Return whether a column is named like a set point or a limit, which people move, though it never moved.

    >>> [named_like_setting(name) for name in ("unit1_opening_limit", "Set Point 2", "TIC101.SP", "relief valve")]
    [True, True, True, False]
    """
    words = _WORDS.findall(_CAMEL.sub("_", name))
    return any(map(_SET.fullmatch, words)) or "set point" in " ".join(words).casefold()


_OUTSIDE = r"ambient|ambiente?|tamb|outdoor|outside|umgebungs?|au(ß|ss)en|ext(é|e)rieure?|ambiante?"
_AIR = r"(luft)?(temp(eratur)?|feuchte|druck)?"
_DRIVERS = {
    "the weather": re.compile(
        rf"(amb|({_OUTSIDE}){_AIR}|weather|wetter|m(é|e)t(é|e)o|rain(fall)?|precipitation|niederschlag|regen(menge)?|pluie"
        r"|irradiance|irradiation|insolation|(global|ein|sonnen)strahlung|ensoleillement|barometric"
        r"|wind(speed|geschwindigkeit|direction|richtung))",
        re.IGNORECASE,
    ),
    "the inflow": re.compile(r"inflow|influent|zufluss(menge)?|zulaufmenge|river|flu(ss|ß)wasser", re.IGNORECASE),
    "the grid": re.compile(r"netz(frequenz|spannung)", re.IGNORECASE),
    "a set point": re.compile(r"setpoints?|sollwerte?|soll|sp|consignes?", re.IGNORECASE),
}
_PAIRS = (  # of words, one after the other
    ("the weather", "wind", r"speed|direction|velocity|geschwindigkeit|richtung|vitesse"),
    ("the weather", "vitesse", "vent"),
    ("the grid", r"grid|mains|utility|netz|r(é|e)seau", r"freq(uency)?|hz|volt(age)?|frequenz|spannung|tension"),
    ("the grid", r"fr(é|e)quence|tension", r"r(é|e)seau|grid"),
    ("a set point", "set", "points?"),
)
_PAIRED = tuple(
    (kind, re.compile(first, re.IGNORECASE), re.compile(second, re.IGNORECASE)) for kind, first, second in _PAIRS
)


def named_like_driver(name: str) -> str:
    """Return what acts on the plant from outside, if a column is named like that: "the weather", "a set point"; or "".

    Names are read in English, German and French. A word alone is not enough where it is also of the plant: "wind speed"
    is the weather, "wind power" is not; "grid voltage" is the grid, "voltage" and "zone temperature" are readings.

    >>> [named_like_driver(name) for name in ("Außentemperatur [°C]", "wind_speed", "gridFrequency", "TIC101.SP")]
    ['the weather', 'the weather', 'the grid', 'a set point']
    >>> [named_like_driver(name) for name in ("reservoir inflow", "Druck Sollwert", "température extérieure")]
    ['the inflow', 'a set point', 'the weather']
    >>> [named_like_driver(name) for name in ("winding temperature", "wind power", "flow", "frequency", "Zulauf")]
    ['', '', '', '', '']
    """
    words = _WORDS.findall(_CAMEL.sub("_", name))
    for kind, pattern in _DRIVERS.items():
        if any(map(pattern.fullmatch, words)):
            return kind
    for kind, first, second in _PAIRED:
        if any(first.fullmatch(a) and second.fullmatch(b) for a, b in pairwise(words)):
            return kind
    return ""


_MOST_LEVELS = 10  # different values of a state
_LEAST_RUN = 3.0  # values that a state keeps on average
_LEAST_OF_LEVEL = 2  # values of each level, on average
_FULLY, _FEWEST_SWITCHES = 100.0, 4  # %: open or shut; between 0 and any other level


def levels_of_state(values: FloatArray) -> tuple[float, ...]:
    """Return the levels of a state, ascending: small whole numbers, or 0 and another, that hold for a while.

    Empty if the values are no state: a set point has other values, a rounded reading does not hold, and a reading that
    was 0 once does not switch.

    >>> levels_of_state(np.repeat([0.0, 1.0, 0.0], 50)), levels_of_state(np.repeat([0.0, 100.0], 50))
    ((0.0, 1.0), (0.0, 100.0))
    >>> levels_of_state(np.repeat([18.0, 21.0], 50)), levels_of_state(np.tile([0.0, 1.0], 50))
    ((), ())
    >>> levels_of_state(np.repeat([5.0, 0.0, 5.0], 50))
    ()
    """
    levels = np.unique(values[: 1 + 2 * _MOST_LEVELS])
    if len(levels) > _MOST_LEVELS:  # most columns: without a look at all values
        return ()
    levels = np.unique(values)
    if not 2 <= len(levels) <= _MOST_LEVELS or len(values) < _LEAST_OF_LEVEL * len(levels):
        return ()
    changes = np.count_nonzero(values[1:] != values[:-1])
    if len(values) < _LEAST_RUN * (changes + 1):
        return ()
    small = bool((levels == np.floor(levels)).all() and 0 <= levels[0] <= 1 and levels[-1] <= len(levels))
    switch = len(levels) == 2 and 0.0 in levels and (levels[1] == _FULLY or changes >= _FEWEST_SWITCHES)
    return tuple(levels.tolist()) if small or switch else ()


_ROUNDING = 1e-9  # of 1 − |correlation|
_FEWEST_ROWS = 10  # with fewer, columns lie on a line by chance
_PROJECTIONS = 3
_LEAST_COMMON = 0.9  # of the rows have to be known in both of two columns with holes in different rows
_TRIPLES = 16
_FEWEST_RATIOS = 3
_ALIKE = 1e-3
_WINDOW = 10 * np.sqrt(2 * _ROUNDING)  # ten standard deviations of what rounding may move a place by


def copies_of_numbers(columns: FloatArray, names: list[str]) -> dict[str, str]:
    """Return, for each column that equals an earlier one or lies with it on a straight line to rounding, which one.

    The columns, each of mean 0 and length 1, are projected onto three random directions, where copies have the same
    place, or the mirrored one. Only columns at the same place are compared in full, so that the time grows with the
    number of columns and not with its square. Columns with values missing in different rows are compared by
    `_copies_across_holes`, if both are known in 90 % of the rows.
    """
    if len(columns) < _FEWEST_ROWS:
        first: dict[bytes, str] = {}
        origins = {name: first.setdefault(columns[:, place].tobytes(), name) for place, name in enumerate(names)}
        return {name: origin for name, origin in origins.items() if name != origin}
    present = np.isfinite(columns)
    unit = _unit_columns(columns, present)
    with one_blas_thread():
        places = np.abs(np.random.default_rng(0).standard_normal((_PROJECTIONS, len(columns))) @ unit)
    groups: list[list[int]] = []
    start = 0  # of the groups that are still near
    for column in np.argsort(places[0], kind="stable").tolist():
        if not places[:, column].any():
            continue
        while start < len(groups) and places[0, column] - places[0, groups[start][0]] > _WINDOW:
            start += 1
        for group in groups[start:]:
            near = (np.abs(places[:, group[0]] - places[:, column]) <= _WINDOW).all()
            if near and _same(unit, present, group[0], column):
                group.append(column)
                break
        else:
            groups.append([column])
    found = {copy: min(group) for group in groups for copy in group if copy != min(group)}
    across = _copies_across_holes(columns, present, found)
    found = {copy: across.get(origin, origin) for copy, origin in (found | across).items()}
    return {names[copy]: names[found[copy]] for copy in sorted(found)}


def copies_of_texts(texts: pd.DataFrame) -> dict[str, str]:
    """Return, for each column of text that is an earlier one, perhaps in other words, which one."""
    seen: dict[bytes, str] = {}
    found: dict[str, str] = {}
    for name in texts.columns:
        codes = pd.factorize(texts[name])[0].tobytes()
        if codes in seen:
            found[name] = seen[codes]
        seen.setdefault(codes, name)
    return found


def _unit_columns(columns: FloatArray, present: BoolArray) -> FloatArray:
    """Return columns of mean 0 and length 1; 0 where a value is missing, all 0 for a constant or too short column."""
    filled = np.where(present, columns, 0.0)
    largest = np.abs(filled).max(axis=0)
    filled = np.divide(filled, largest, out=filled, where=largest > 0)  # so that squares stay finite
    mean = filled.sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    centred = np.where(present, filled - mean, 0.0)
    length = np.sqrt((centred**2).sum(axis=0))
    enough = (length > 1e-12) & (present.sum(axis=0) >= _FEWEST_ROWS)
    unit: FloatArray = np.divide(centred, length, out=np.zeros_like(centred), where=enough)
    return unit


def _copies_across_holes(columns: FloatArray, present: BoolArray, found: dict[int, int]) -> dict[int, int]:
    """Return copies among the columns that are no copies yet, of which at least one has values missing.

    On a straight line (x₁ − x₂) ÷ (x₃ − x₂) is the same in both, for any three rows that are known in both. Only
    columns that agree in this for some random rows are compared in full.
    """
    shares = np.array([np.count_nonzero(column) for column in present.T]) / len(present)  # quicker than a mean
    known = [column for column in np.flatnonzero(shares >= _LEAST_COMMON).tolist() if column not in found]
    full = shares[known] == 1
    if full.all():
        return {}
    rows = np.random.default_rng(0).integers(0, len(columns), 3 * _TRIPLES)
    first, second, third = np.split(columns[rows][:, known], 3)
    with np.errstate(all="ignore"):
        ratios = (first - second) / (third - second)
    ratios[~np.isfinite(ratios)] = np.nan
    copies: dict[int, int] = {}
    for place in range(1, len(known)):
        apart = np.abs(ratios[:, :place] - ratios[:, [place]])
        differ = (apart > _ALIKE * (1 + np.abs(ratios[:, [place]]))).any(axis=0)
        alike = np.flatnonzero(~differ & ~(full[:place] & full[place]))
        enough = np.count_nonzero(~np.isnan(apart[:, alike]), axis=0) >= _FEWEST_RATIOS
        for other in alike[enough].tolist():
            if known[other] not in copies and _same_where_known(columns, present, known[other], known[place]):
                copies[known[place]] = known[other]
                break
    return copies


def _same_where_known(columns: FloatArray, present: BoolArray, first: int, second: int) -> bool:
    common = present[:, first] & present[:, second]
    if common.mean() < _LEAST_COMMON or common.sum() < _FEWEST_ROWS:
        return False
    pair = columns[:, [first, second]][common]
    there = np.ones_like(pair, dtype=np.bool_)
    unit = _unit_columns(pair, there)
    return bool(unit[:, 0].any() and unit[:, 1].any() and _same(unit, there, 0, 1))


def _same(unit: FloatArray, present: BoolArray, first: int, second: int) -> bool:
    if (present[:, first] != present[:, second]).any():
        return False
    sign = 1.0 if unit[:, first] @ unit[:, second] > 0 else -1.0
    difference = unit[:, first] - sign * unit[:, second]
    return bool(difference @ difference <= 2 * _ROUNDING)  # = 2 (1 − |correlation|)
