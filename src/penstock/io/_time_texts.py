"""Read time stamps written as text: find each way of writing, decide between day and month first, parse by pandas.

A way of writing becomes a format for `pd.to_datetime`, which reads 300,000 stamps in 0.06 s if they are ISO-like and in
0.5 s otherwise. What strptime does not know is replaced before: names of months, 24:00, AM with 0:15.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Times = NDArray[np.datetime64]

NAIVE = -10_000  # stands for "no offset" among offsets in minutes
_LARGEST_OFFSET = 18 * 60
_LONGEST = 100  # characters; a longer text is no time
_MOST_WAYS = 2_000  # of writing, in one column; more is no column of times
_SPACES = {ord(space): " " for space in "\u00a0\u2007\u2009\u202f\t\r\n"}
# The first letters of months in English, German, French, Spanish, Italian, Portuguese, Dutch, Nordic languages, Polish
# and Russian.
_MONTHS = {
    month: number
    for number, months in enumerate(
        (
            "jan,ene,gen,sty,янв", "feb,fév,fev,lut,şub,фев", "mar,mär,mrz,mae,mrt,мар", "apr,avr,abr,kwi,апр",
            "may,mai,mei,mag,maj,мая,май", "jun,juin,giu,cze,июн", "jul,juil,lug,lip,июл",
            "aug,aoû,aou,ago,sie,авг", "sep,set,wrz,сен", "oct,okt,ott,out,paź,окт", "nov,lis,ноя",
            "dec,dez,déc,dic,des,gru,дек",
        ),
        start=1,
    )
    for month in months.split(",")
}  # fmt: skip
# Minutes from UTC. Those that mean several zones, such as CST and IST, are not known.
_ZONES = {
    "est": -300, "edt": -240, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420, "wet": 0, "west": 60,
    "cet": 60, "cest": 120, "mez": 60, "mesz": 120, "eet": 120, "eest": 180, "jst": 540, "kst": 540, "aest": 600,
    "aedt": 660,
}  # fmt: skip
_EASTERN = re.compile(
    r"(令和|平成)?(\d+|元)\s?[年년]\s*(\d+)\s?[月월]\s*(\d+)\s?[日일]\s*(?:(\d+)\s?[時时点시]\s*(?:(\d+)\s?[分분]?)?\s*(?:(\d+)\s?[秒초])?)?(.*)"
)
_EASTERN_HALF = re.compile(r"(오전|上午|午前|오후|下午|午後)\s*(\d[\d:.]*)")  # before noon, and after
_MORNING = ("오전", "上午", "午前")
_ERAS = {"令和": 2018, "平成": 1988}  # the years before the first of an era of Japan
_FRENCH = re.compile(r"(?<=\d)\s?h\s?(\d\d)(?:\s?m(?:in|n)?\.?(?:\s?(\d\d)\s?s(?:ec)?\.?)?)?(?!\d)", re.IGNORECASE)
_TYPED = re.compile(r"(?:L?DT|DTL|DATE_AND_TIME)#", re.IGNORECASE)  # as IEC 61131-3 writes constants
_SPAN = re.compile(r"(\S.{5,}?)\s*(?:/|\s[-–—]|\bto\b|\bbis\b)\s*(\S.{3,})", re.DOTALL)  # from … to
_WORDS = re.compile(  # Spanish, "at" in some languages, the name of a zone
    r"(?<=\w) del?(?= )|(?<=\d),? (?:klo|kl\.?|um|at|à|às|alle|ore|o)(?= \d)|\s?\([^()]*\)$|(?<=\d) [a-z]+/[a-z_]+$",
    re.IGNORECASE,
)
_ZONE_BEFORE_YEAR = re.compile(  # Fri Mar 01 07:05:00 CET 2024, as Java and Unix write it
    r"(?:[a-z]{2,3} )?([a-z]{3,4}) {1,2}(\d{1,2}) ([\d:.]{5,12}) ([a-z]{1,5}|[a-z]{0,3}[+-]\d\d:?\d\d) (\d{4})",
    re.IGNORECASE,
)
_IN_SIGNS = re.compile(r"(?:\[|=?\"|')([^\[\]\"']+)(?:\]|\"|)")  # [2024-03-05 07:00]
_ODD = re.compile(  # what one of these is needed for
    r"^[\['=]|[a-z]\S* \d{4}$|[a-z]/[a-z]"
    r"|\d\s?h\s?\d|#|\)| de |\d,? [a-zà]{1,4}\.? \d|\s[-–—]\s|\d.?/\d{4}-|\b(?:to|bis)\b",
    re.IGNORECASE | re.MULTILINE,
)
_LETTER = "[a-zà-öø-ÿÀ-ÖØ-Þźа-яА-Я]"
_WEEKDAY = (
    r"(?:(?:mon?|tue?|wed?|thu?|fri?|sat?|sun?|di|mi|do|fr|sa|so|lun|mar|mer|jeu|ven|sam|dim|jue|vie|dom|gio)"
    rf"{_LETTER}*\.?,? )?"
)
_DATE = (
    r"(?:(?P<n1>\d{1,4})(?P<sign>[-./])\s?(?P<n2>\d{1,2})(?P=sign)\s?(?P<n3>\d{1,4})\.?"  # 31.12.2024, 2024-12-31
    rf"|(?P<d1>\d{{1,4}})[-. ]{{0,2}}(?P<word>{_LETTER}{{3,10}})[-., ]{{0,2}}(?P<d2>\d{{1,4}})(?: г\.?)?"  # 5-Jan-24
    rf"|(?P<first_word>{_LETTER}{{3,10}})\.? (?P<d3>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<d4>\d{{2}}|\d{{4}})"  # Jan 5, 24
    r"|(?P<week_year>\d{4})-?W(?P<week>\d\d)-?(?P<weekday>[1-7])"  # 2024-W01-1
    r"|(?P<ordinal_year>\d{4})-(?P<ordinal>\d{3})"  # 2024-366
    r"|(?P<compact>\d{8}|\d{12}|\d{14}))"  # 20241231
)
_HALF = r"(?:\s?(?P<half>[ap])\.?\s?m\.?)?(?:\s?uhr\b)?"
_CLOCK = (
    r"(?P<hour>\d{1,2})(?P<colon>:|\.)(?P<minute>\d{1,2})(?:(?P=colon)(?P<second>\d{1,2})(?:[.,:](?P<part>\d{1,9}))?)?"
)
_ZONE = (
    rf"(?P<zone>\s?(?:(?P<abbreviation>{'|'.join(_ZONES)})"
    r"|z|utc|gmt|(?:utc|gmt)?(?P<east>[+-])(?P<zh>\d{1,2}):?(?P<zm>\d{2})?)(?:\s?\[[a-z_/]+\])?)?"
)
_DIGITS = r"(?P<digits>\d{6}|\d{4}|\d{1,2})"  # 134500, 1345 or 13
_STAMP = re.compile(
    rf"{_WEEKDAY}{_DATE}(?:(?P<gap>t|,?\s+|_|-|:)(?:{_CLOCK}|{_DIGITS}){_HALF}{_ZONE})?", re.IGNORECASE | re.ASCII
)
_CLOCK_FIRST = re.compile(rf"{_CLOCK}{_HALF},?\s+{_WEEKDAY}{_DATE}", re.IGNORECASE | re.ASCII)
_CTIME = re.compile(  # Tue Mar  5 13:45:00 2024, as programs in C and Unix write it
    rf"{_WEEKDAY}(?P<first_word>{_LETTER}{{3,10}}) {{1,2}}(?P<d3>\d{{1,2}}) {_CLOCK} (?P<d4>\d{{4}})",
    re.IGNORECASE | re.ASCII,
)
_CLOCK_ALONE = re.compile(rf"\d*?{_CLOCK}{_HALF}{_ZONE}", re.IGNORECASE | re.ASCII)


@dataclass
class TextTimes:
    """Times of a column, NaT where there is none: in UTC where a stamp has an offset (in minutes), else local."""

    times: Times
    offsets: IntArray
    day_first: bool | None = None  # how dates such as 1/2/2024 were read, or None if there are none
    decided_by: str = ""  # "values" (a number above 12), "order" of the rows, "custom" or "you"
    contradictions: int = 0
    shortened: int = 0  # stamps with a fraction finer than microseconds
    ways: dict[str, str] = field(default_factory=dict)  # of writing, and an example with 0 for any number


@dataclass(frozen=True)
class _Way:
    """How a stamp is written, for pandas: a format, or two if either of two numbers may be the day."""

    formats: tuple[str, ...]  # (the one), or (day first, month first)
    sign: str  # between the numbers of a date
    month: tuple[str, str]  # the name of a month, and the number to put in its place
    zone: str  # at the end of the text
    offset: int  # minutes from UTC, or NAIVE
    half: str  # "a", "p" or ""
    seconds: int  # to add: a day for 24:00, a minute for 23:59:60
    length: int  # of all such texts, if numbers are written without signs between them; else 0


def is_time(text: str) -> bool:
    """Return whether this is a date, or a date with a time of day, in a known way of writing.

    >>> [is_time(text) for text in ("31.12.2024 13:45", "5-Jan-24", "Dec 31, 2024 1:45 PM", "pump 3", "10:00")]
    [True, True, True, False, False]
    """
    return len(text) < _LONGEST and _way_of(_plainly(text)) is not None


def _plainly(text: str) -> str:
    """Return a time as most write it: the begin of a span, and dates of France, China, Japan and Korea.

    >>> _plainly("2024年3月5日 7時05分"), _plainly("2024년 3월 5일 7시 5분 9초"), _plainly("5.3.2024")
    ('2024-3-5 7:05', '2024-3-5 7:5:9', '5.3.2024')
    >>> _plainly("2024/3/5 下午 1:30"), _plainly("令和6年3月5日"), _plainly("5 mars 2024 7h05")
    ('2024/3/5 1:30 pm', '2024-3-5', '5 mars 2024 7:05')
    >>> _plainly("5.3.2024 07:00 - 5.3.2024 08:00"), _plainly("DT#2024-03-05-07:00:00"), _plainly("5 de mayo de 2024")
    ('5.3.2024 07:00', '2024-03-05-07:00:00', '5 mayo 2024')
    >>> _plainly("Tue Mar 05 07:00:00 CET 2024"), _plainly("Tue Mar  5 07:00:00 UTC+01:00 2024")
    ('05 Mar 2024 07:00:00 CET', '5 Mar 2024 07:00:00 UTC+01:00')
    >>> _plainly("[2024-03-05 07:00]"), _plainly("'2024-03-05 07:00"), _plainly('="2024-03-05"')
    ('2024-03-05 07:00', '2024-03-05 07:00', '2024-03-05')
    """
    if _ODD.search(text):
        bare = _IN_SIGNS.fullmatch(text.strip())
        text = text if bare is None else bare[1]
        text = _ZONE_BEFORE_YEAR.sub(r"\2 \1 \5 \3 \4", text)
        text = _WORDS.sub("", _TYPED.sub("", text))
        text = _FRENCH.sub(lambda found: f":{found[1]}" + (f":{found[2]}" if found[2] else ""), text)
        span = _SPAN.fullmatch(text)
        if span is not None and _way_of(span[1].strip()) is not None:
            ends = _way_of(span[2].strip()) is not None or is_clock_alone(span[2])
            text = span[1].strip() if ends else text
    if text.isascii():
        return text
    text = _EASTERN_HALF.sub(lambda found: f"{found[2]} {'am' if found[1] in _MORNING else 'pm'}", text)
    found = _EASTERN.fullmatch(text.strip())
    if found is None:
        return text
    era, count, month, day, hour, minute, second, rest = found.groups()
    year = count if era is None else _ERAS[era] + (1 if count == "元" else int(count))
    clock = "" if hour is None else f" {hour}:{minute or '00'}" + ("" if second is None else f":{second}")
    return f"{year}-{month}-{day}{clock}" + (f" {rest.strip()}" if rest.strip() else "")


def is_clock_alone(text: str) -> bool:
    """Return whether this is a time of day without a date."""
    return _CLOCK_ALONE.fullmatch(text.strip()) is not None


def with_dates(texts: Sequence[str], dates: Sequence[str] | None = None) -> tuple[list[str], int] | None:
    """Put the date before times of day that stand without one: the last one given, in a row or in a line above.

    dates : of the rows, "" where one is not repeated; None if they are in the texts themselves.

    Returns
    -------
    The texts, "" for a line that has a date alone, and how many dates were put in. None if that is no such column, or
    if a time of day is before that of the row above without a new date, so that the day is not known.

    >>> with_dates(["5.3.2024 23:00", "23:30", "6.3.2024 00:00", "00:30"])
    (['5.3.2024 23:00', '5.3.2024 23:30', '6.3.2024 00:00', '6.3.2024 00:30'], 2)
    >>> with_dates(["Date: 5.3.2024", "23:00", "23:30"]), with_dates(["5.3.2024 23:00", "00:00"]) is None
    ((['', '5.3.2024 23:00', '5.3.2024 23:30'], 2), True)
    """
    found, carried, day, last = [], 0, "", -1.0
    for place, text in enumerate(texts):
        clock = _CLOCK_ALONE.fullmatch(text.strip())
        if clock is None:
            stamp = _STAMP.fullmatch(re.sub(r"^[^\W\d]+\s?[:=]\s?", "", text.strip()))
            if stamp is not None:
                day = stamp.string[: max(stamp.start("gap"), 0) or None].strip()
                last = _second_of_day(stamp) if stamp["hour"] else -1.0
            found.append(text if stamp is not None and stamp["hour"] else "")
            continue
        if dates is not None and dates[place] and dates[place] != day:
            day, last = dates[place], -1.0
        second = _second_of_day(clock)
        if second < last:
            return None
        last = second
        carried += dates is None or not dates[place]
        found.append(f"{day} {text.strip()}" if day else "")
    return (found, carried) if carried and day else None


def _second_of_day(found: re.Match[str]) -> float:
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    hour = hour % 12 + 12 * (half == "p") if half else hour
    return 3600.0 * hour + 60 * int(found["minute"]) + int(found["second"] or 0) + float(f"0.{found['part'] or 0}")


def read_times(texts: Sequence[str], day_first: bool | None = None) -> TextTimes:
    """Read time stamps, whichever way each is written.

    >>> read = read_times(["12/31/2024 1:45 PM", "1/2/2025 0:00", "soon"])
    >>> read.times.astype("M8[m]").tolist()[:2], bool(np.isnat(read.times[2])), read.day_first, read.decided_by
    ([datetime.datetime(2024, 12, 31, 13, 45), datetime.datetime(2025, 1, 2, 0, 0)], True, False, 'values')
    """
    alike = read_alike(pd.Series(texts, dtype="object"))
    if alike is not None:
        return alike
    # Without blanks around them and with plain blanks inside; "" for one too long for a time.
    texts = ["" if len(text) >= _LONGEST else text for text in texts]
    plain = "".join(texts).isascii() and not _ODD.search("\n".join(texts[:_MOST_WAYS]))
    texts = [(text if plain and "\n" not in text else _plainly(text.translate(_SPACES))).strip() for text in texts]
    result = TextTimes(np.full(len(texts), "NaT", dtype="M8[us]"), np.full(len(texts), NAIVE, dtype=np.int64))
    by_day, by_month, signs = result.times, result.times.copy(), set[str]()

    def read(way: _Way, rows: list[int]) -> list[int]:
        """Fill in the rows that are written in this way; return the others."""
        fitting = [row for row in rows if texts[row].endswith(way.zone) and way.length in (0, len(texts[row]))]
        bodies = [texts[row][: len(texts[row]) - len(way.zone)].replace(*way.month) for row in fitting]
        read = [_parsed(bodies, form, way) for form in way.formats]
        there = ~np.isnat(read[0]) | ~np.isnat(read[-1])
        where = np.array(fitting, dtype=np.int64)[there]
        if not len(where):
            return rows
        for target, found in ((by_day, read[0]), (by_month, read[-1])):
            target[where] = found.astype("M8[us]")[there]
        result.shortened += int((read[0][there] != read[0][there].astype("M8[us]")).sum())
        result.offsets[where] = way.offset
        example = re.sub("[0-9]+", "0", texts[where[0]].lower())
        # Month, half of the day and offset do not make a different way of writing.
        shape = re.sub(
            rf"\s?(?:{'|'.join(_ZONES)}|z|utc|gmt|(?:utc|gmt)?[+-]0(?::?0)?)(?:\s?\[[a-z_/]+\])?$", "+", example
        )
        shape = re.sub(rf"{_LETTER}{{2,}}", "word", re.sub(r"[ap]\.?\s?m\b", "am", shape))
        result.ways.setdefault(shape, example)
        if len(way.formats) > 1:
            signs.add(way.sign)
        done = set(where.tolist())
        return [row for row in rows if row not in done] if len(where) < len(rows) else []

    rest = [row for row, text in enumerate(texts) if text]
    usual = next((way for row in islice(rest, _MOST_WAYS) if (way := _way_of(texts[row]))), None)
    if usual is None:
        return result
    rest = read(usual, rest)
    by_shape: dict[str, list[int]] = {}
    for row in rest:
        by_shape.setdefault(re.sub("[0-9]+", "0", texts[row]), []).append(row)
    for group in islice(by_shape.values(), _MOST_WAYS):
        left = group
        for _ in range(8):  # years of two and of four digits, 24:00, several offsets
            way = _way_of(texts[left[0]]) if left else None
            left = left[1:] if way is None else [row for row in read(way, left) if row != left[0]]
    _settle_order(result, by_day, by_month, signs, day_first)
    aware = result.offsets != NAIVE
    if aware.any():
        result.times[aware] -= result.offsets[aware].astype("m8[m]")
    return result


def read_alike(texts: pd.Series[Any]) -> TextTimes | None:
    """Read texts that are all written as the first one, as nearly always, with one call of pandas; None if not all are.

    Only where there is no doubt: neither of day and month, nor of numbers without signs between them.
    """
    first = str(texts.iloc[0]) if len(texts) else ""
    way = _way_of(first)
    if way is None or len(way.formats) > 1 or way.month[0] or way.half or way.seconds or way.length:
        return None
    form = way.formats[0] + way.zone.replace("%", "%%")
    times = pd.to_datetime(texts, format=form, errors="coerce").to_numpy()
    if np.isnat(times).any():
        return None
    read = times.astype("M8[us]")
    example = re.sub("[0-9]+", "0", first.lower())
    found = TextTimes(read, np.full(len(read), way.offset, dtype=np.int64), ways={example: example})
    found.shortened = int((times != read).sum())
    if way.offset != NAIVE:
        found.times -= np.timedelta64(way.offset, "m")
    return found


def year_first_format(text: str) -> str | None:
    """Return the format of a time such as 25-03-31 13:45, whose year comes first; None if there is no one format.

    >>> year_first_format("25-03-31 13:45")
    '%y-%m-%d %H:%M'
    """
    way = _way_of(text)
    if way is None or way.zone or way.half or way.seconds:
        return None
    return re.sub(r"^%d(.)%m.%y", r"%y\1%m\1%d", way.formats[0])


def _way_of(text: str) -> _Way | None:
    found = _CLOCK_FIRST.fullmatch(text) or _STAMP.fullmatch(text) or _CTIME.fullmatch(text)
    if found is None:
        return None
    parts = {**dict.fromkeys(_STAMP.groupindex), **found.groupdict()}
    word = parts["word"] or parts["first_word"] or ""
    number = _MONTHS.get(word[:4].lower(), _MONTHS.get(word[:3].lower()))
    if word and number is None:
        return None
    dates = _date_directives(parts)
    clock, seconds = _clock_directives(parts)
    if not dates or clock is None:
        return None
    month = (word, f"{number:02d}") if word else ("", "")
    zone, offset = parts.get("zone") or "", NAIVE
    if zone:
        minutes = 60 * int(parts["zh"] or 0) + int(parts["zm"] or 0)
        offset = -minutes if parts["east"] == "-" else minutes
        offset = _ZONES.get((parts["abbreviation"] or "").lower(), offset)
        if minutes > _LARGEST_OFFSET:
            return None
    formats = tuple(_with_directives(text[: len(text) - len(zone)], found, {**date, **clock}) for date in dates)
    length = len(text) if parts["compact"] or parts.get("digits") else 0
    half = (parts["half"] or "").lower()
    return _Way(formats, parts["sign"] or "", month, zone, offset, half, seconds, length)


def _date_directives(parts: dict[str, str | None]) -> tuple[dict[str, str], ...]:
    """Return group of the pattern → directive of strptime; two if the day may be first or second, none if no date."""
    if compact := parts["compact"]:
        return ({"compact": "%Y%m%d" + {8: "", 12: "%H%M", 14: "%H%M%S"}[len(compact)]},)
    if parts["week"]:
        return ({"week_year": "%G", "week": "%V", "weekday": "%u"},)
    if parts["ordinal"]:
        return ({"ordinal_year": "%Y", "ordinal": "%j"},)
    one, two = ("n1", "n3") if parts["n1"] else ("d1", "d2") if parts["d1"] else ("d3", "d4")
    first, last = parts[one] or "", parts[two] or ""
    month = {"n2": "%m", "word": "%m", "first_word": "%m"}  # groups that do not match are passed over
    if len(first) == 4 and len(last) <= 2:
        return ({one: "%Y", two: "%d", **month},)
    year = {2: "%y", 4: "%Y"}.get(len(last))
    if len(first) > 2 or year is None:
        return ()
    by_day = {one: "%d", two: year, **month}
    return (by_day, {one: "%m", two: year, "n2": "%d"}) if parts["n1"] else (by_day,)


def _clock_directives(parts: dict[str, str | None]) -> tuple[dict[str, str] | None, int]:
    """Return group of the pattern → directive, and seconds to add for 24:00 or :60; None if no time of day."""
    digits, hour = parts.get("digits"), parts["hour"]
    if digits is None and hour is None:
        return {}, 0
    hour_alone = digits is not None and len(digits) <= 2
    if len(parts["compact"] or "") > 8 or (hour_alone and (parts["gap"] or "").strip(" ,").lower() not in ("", "t")):
        return None, 0  # 2024-12-31-13 may be anything
    if digits is not None:
        return {"digits": {6: "%H%M%S", 4: "%H%M"}.get(len(digits), "%H")}, 0
    clock = {"hour": "%H", "minute": "%M", "second": "%S", "part": "%f"}
    if hour == "24" and not any(int(parts[name] or 0) for name in ("minute", "second", "part")):
        return {"part": "%f"}, 86_400
    return ({**clock, "second": "60"}, 60) if parts["second"] == "60" else (clock, 0)


def _with_directives(text: str, found: re.Match[str], directives: dict[str, str]) -> str:
    """Return the text as a format: numbers and the name of the month replaced, the rest as it is."""
    there = (group for group in found.re.groupindex if group in directives and found.start(group) >= 0)
    spans = sorted((*found.span(group), directives[group]) for group in there)
    pieces, at = [], 0
    for start, stop, form in spans:
        pieces += [text[at:start].replace("%", "%%"), form]
        at = stop
    return "".join([*pieces, text[at:].replace("%", "%%")])


def _parsed(bodies: list[str], form: str, way: _Way) -> Times:
    """Return times by a format, NaT where it does not fit."""
    times = pd.to_datetime(pd.Series(bodies, dtype="object"), format=form, errors="coerce").to_numpy()
    if way.half:
        hours = (times - times.astype("M8[D]")).astype("m8[h]").astype(np.int64)
        shift = np.where((way.half == "p") & (hours < 12), 12, np.where((way.half == "a") & (hours == 12), -12, 0))
        times = times + shift.astype("m8[h]")
    found: Times = times + np.timedelta64(way.seconds, "s")
    return found


def _settle_order(result: TextTimes, by_day: Times, by_month: Times, signs: set[str], day_first: bool | None) -> None:
    """Decide whether the day or the month comes first, for the whole column."""
    if not signs:
        return
    misses = [int(np.isnat(times).sum()) for times in (by_day, by_month)]
    if day_first is not None:
        result.day_first, result.decided_by = day_first, "you"
    elif misses[0] != misses[1]:
        result.day_first, result.decided_by = misses[0] < misses[1], "values"
    else:
        # How many steps go backwards, and the largest step: dates read the wrong way jump by months.
        steps = [np.diff(times[~np.isnat(times)]).astype(np.int64) for times in (by_day, by_month)]
        disorder = [(int((each < 0).sum()), int(np.abs(each).max(initial=0))) for each in steps]
        result.day_first, result.decided_by = disorder[0] < disorder[1], "order"
        if disorder[0] == disorder[1]:
            result.day_first, result.decided_by = any(sign != "/" for sign in signs), "custom"
    chosen, other = (by_day, by_month) if result.day_first else (by_month, by_day)
    result.contradictions = int((np.isnat(chosen) & ~np.isnat(other)).sum())
    result.times = chosen
