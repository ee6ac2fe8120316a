"""Numbers, times and names as people write them: values come in, short texts go out, for the page and the terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from penstock._messages import counted, duration_in_words
from penstock.certainty import SOME, about_figure
from penstock.detection import Findings, TagSummary, TimeSummary
from penstock.explain import NEW_STATE, NORMAL, Agreement

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
NO_NUMBER = "–"
_SIGNIFICANT = 4
_LONGEST_NAME = 90
SOURCES = {
    "sensor": "probably the sensor",
    "machine": "probably the machine",
    "state": "unusual operation",
    "unclear": "sensor or machine: not clear",
}  # of incidents


def number(value: float) -> str:
    """Four significant digits, all digits of whole numbers, thousands apart.

    >>> [number(value) for value in (0.123456, -12.3, 98765.4, 3.0, 1.5e-7, 2e12, float("nan"))]
    ['0.1235', '−12.3', '98,765', '3', '1.5e−7', '2e12', '–']
    """
    if math.isnan(value):
        return NO_NUMBER
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size and not 1e-4 <= size < 1e9:
        mantissa, exponent = f"{value:.{_SIGNIFICANT - 1}e}".split("e")
        short = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{short}e{int(exponent)}".replace("-", "−")
    places = max(0, _SIGNIFICANT - 1 - math.floor(math.log10(size))) if size else 0
    text = f"{value:,.{places}f}"
    return _minus(text.rstrip("0").rstrip(".") if "." in text else text)


def numbers(values: Iterable[float]) -> list[str]:
    """Readings of one variable side by side: with as many decimals each as the largest needs.

    >>> numbers([88.5, 57.524, 56.0]), numbers([1461.0, 4442.3]), numbers([5.0, 1e-7]), numbers([1500.0, 0.5])
    (['88.50', '57.52', '56.00'], ['1,461', '4,442'], ['5', '0'], ['1,500.0', '0.5'])
    """
    known = list(values)
    sizes = [abs(value) for value in known if math.isfinite(value)]
    largest = max(sizes, default=0.0)
    if not 1e-4 <= largest < 1e9:
        return [number(value) for value in known]
    places = max(0, _SIGNIFICANT - 1 - math.floor(math.log10(largest)))
    if not places and any(0 < size < 10 for size in sizes):
        places = 1
    texts = [f"{value:,.{places}f}" if math.isfinite(value) else "" for value in known]
    while places and all(text.endswith("0") for text in texts if text):
        places -= 1
        texts = [text[:-1].removesuffix(".") for text in texts]
    return [_minus(text) if text else number(value) for text, value in zip(texts, known, strict=True)]


def _minus(text: str) -> str:
    """With the sign that is as wide as a digit, and none before zero."""
    return text.removeprefix("-") if not text.strip("-0.,") else text.replace("-", "−")


def percent(share: float) -> str:
    """A share; what is there is never 0 %.

    >>> percent(0.421), percent(0.0004), percent(0.0), percent(1.0), percent(0.9999)
    ('42 %', '< 1 %', '0 %', '100 %', '> 99 %')
    """
    if not math.isfinite(share):
        return NO_NUMBER
    if 0 < share < 0.005:
        return "< 1 %"
    if 0.995 <= share < 1:
        return "> 99 %"
    return f"{share:.0%}".replace("%", " %")


def day(moment: Any) -> str:
    """A day with its month as a word, as no order of numbers is read alike everywhere.

    >>> day(pd.Timestamp("2015-03-04"))
    '4 Mar 2015'
    """
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def clock(moment: Any) -> str:
    """Hours and minutes; seconds and their parts only where there are any.

    >>> clock(pd.Timestamp("2015-03-04 06:10")), clock(pd.Timestamp("2015-03-04 06:10:05.25"))
    ('06:10', '06:10:05.25')
    """
    text = f"{moment.hour:02}:{moment.minute:02}"
    if moment.second or moment.microsecond:
        text += f":{moment.second:02}"
    return text + (f"{moment.microsecond / 1e6:.6f}".rstrip("0")[1:] if moment.microsecond else "")


def when(moment: Any) -> str:
    """A time stamp, or the number of a row.

    >>> when(pd.Timestamp("2015-03-04 06:10")), when(17)
    ('4 Mar 2015, 06:10', 'row 17')
    """
    return f"{day(moment)}, {clock(moment)}" if isinstance(moment, pd.Timestamp) else f"row {int(moment):,}"


def span(start: Any, end: Any) -> str:
    """From when to when, or from which row to which; the day once if it is the same.

    >>> span(pd.Timestamp("2015-03-04 06:10"), pd.Timestamp("2015-03-04 07:00")), span(3, 9), span(3, 3)
    ('4 Mar 2015, 06:10 – 07:00', 'rows 3 – 9', 'row 3')

    Where the clocks were changed in between, the offset is shown.

    >>> time = pd.date_range("2024-10-27 00:30", periods=2, freq="h", tz="UTC").tz_convert("Europe/Berlin")
    >>> span(*time)
    '27 Oct 2024, 02:30 (+02:00) – 02:30 (+01:00)'
    """
    if start == end:
        return when(start)
    if not isinstance(start, pd.Timestamp):
        return f"rows {int(start):,} – {int(end):,}"
    changed = start.utcoffset() != end.utcoffset()
    if when(start) == when(end) and not changed:  # less than a millionth of a second apart
        return when(start)
    same_day = (start.year, start.month, start.day) == (end.year, end.month, end.day)
    shown = [when(start), clock(end) if same_day else when(end)]
    if changed:
        shown = [f"{text} ({_offset(moment)})" for text, moment in zip(shown, (start, end), strict=True)]
    return " – ".join(shown)


def _offset(moment: pd.Timestamp) -> str:
    """By how much the clock of a time is ahead of UTC.

    >>> _offset(pd.Timestamp("2024-10-27", tz="Asia/Kolkata"))
    '+05:30'
    """
    return moment.isoformat().removeprefix(moment.tz_localize(None).isoformat())


def duration(length: Any) -> str:
    """A length of time in its two largest units, or a number of rows.

    >>> duration(pd.Timedelta(minutes=140)), duration(pd.Timedelta(days=3, hours=4, minutes=9)), duration(7)
    ('2 h 20 min', '3 d 4 h', '7 rows')
    >>> duration(pd.Timedelta(0)), duration(pd.Timedelta(milliseconds=250)), duration(pd.Timedelta(hours=-1))
    ('a moment', '250 ms', '−1 h')
    """
    if not isinstance(length, pd.Timedelta):
        return counted(int(length), "row")
    if length < pd.Timedelta(0):
        return f"−{duration(-length)}"
    seconds = length.total_seconds()
    if seconds < 1:
        return f"{number(seconds * 1000)} ms" if seconds else "a moment"
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    largest = next(place for place, (_, size) in enumerate(units) if seconds >= size)
    parts = []
    for name, size in units[largest : largest + 2]:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{int(count):,} {name}")
    return " ".join(parts)


def how_long(start: Any, end: Any, length: Any, runs: Sequence[tuple[Any, Any]] = ()) -> str:
    """Say how long an incident lasted, and how it was interrupted; "one row" for a single one.

    >>> day = [pd.Timestamp("2024-03-04") + pd.Timedelta(hours=hours) for hours in (0, 2, 144, 146)]
    >>> how_long(day[0], day[3], day[3] - day[0], [(day[0], day[1]), (day[2], day[3])])
    '2 runs of 2 h within 6 d 2 h'
    >>> how_long(day[0], day[3], day[3] - day[0], [(day[0], day[3])]), how_long(3, 3, 1), how_long(3, 9, 7)
    ('6 d 2 h', 'one row', '7 rows')
    """
    if start == end:
        return "one row"
    if len(runs) < 2:
        return duration(length)
    lengths = sorted(b - a if isinstance(a, pd.Timestamp) else b - a + 1 for a, b in runs)
    texts = ["one row" if each == pd.Timedelta(0) else duration(each) for each in (lengths[0], lengths[-1])]
    of = texts[-1] if lengths[-1] <= 1.25 * lengths[0] else f"{texts[0]} to {texts[1]}"
    return f"{len(runs):,} runs of {of} within {duration(length)}"


def how_sure(expected: float, kind: str = "", known: str = "") -> str:
    """Say how likely an incident is more than chance, given how many as severe chance gives in such a period.

    kind : of the incident; a new state is unusual operation, whatever the figure.
    known : what people said of a situation that it is like; what is known to be normal is said to be so.

    >>> how_sure(0.02), how_sure(0.4), how_sure(float("nan")), how_sure(0.02, NEW_STATE)
    ('near certain', 'may be chance', 'not known', 'unusual operation')
    """
    if known.startswith(NORMAL):
        return NORMAL
    if kind == NEW_STATE:
        return "unusual operation"
    if math.isnan(expected):
        return "not known"
    return "near certain" if expected <= SOME else "may be chance"


def by_chance(expected: float) -> str:
    """Format how many as high are expected by chance; "" where that is not known.

    >>> by_chance(0.234), by_chance(0.0234), by_chance(float("nan"))
    ('expected by chance: about 0.2', 'expected by chance: fewer than 0.05', '')
    """
    return "" if math.isnan(expected) else f"expected by chance: {about_figure(expected)}"


def shown_name(name: str) -> str:
    """A name that can be seen.

    >>> shown_name("flow"), shown_name(" ")
    ('flow', '(no name)')
    """
    return name if name.strip() else "(no name)"


def name_tag(name: str) -> Markup:
    """A name from the table, kept from changing the direction of the words around it; lines may break after its joints.

    What is longer than any name should be is cut, and is whole in the title.

    >>> name_tag("<b>"), name_tag("unit1_flow")
    (Markup('<bdi class="name">&lt;b&gt;</bdi>'), Markup('<bdi class="name">unit1_<wbr>flow</bdi>'))
    """
    whole = shown_name(name)
    cut = whole if len(whole) <= _LONGEST_NAME else whole[:_LONGEST_NAME] + "…"
    text = Markup("<wbr>").join(part for part in re.split(r"(?<=[_./:])", cut) if part)
    title = Markup(' title="{}"').format(whole) if cut != whole else ""
    return Markup('<bdi class="name"{}>{}</bdi>').format(title, text)


def listed(parts: Sequence[Any]) -> Markup:
    """Several things in a sentence.

    >>> listed(["a", "b", "<c>"])
    Markup('a, b and &lt;c&gt;')
    """
    if len(parts) < 2:
        return Markup("").join(parts)
    return Markup("{} and {}").format(Markup(", ").join(parts[:-1]), parts[-1])


def with_unit(value: float, unit: str) -> str:
    """A reading and its unit, if that is known.

    >>> with_unit(3.25, "m³/s"), with_unit(3.25, ""), with_unit(float("nan"), "m")
    ('3.25 m³/s', '3.25', '–')
    """
    text = number(value)
    return f"{text} {unit}" if unit and text != NO_NUMBER else text


def unit_beside(name: str, unit: str) -> str:
    """Return the unit to write after a value next to a name: none if the name says it.

    >>> unit_beside("flow", "m³/s"), unit_beside("flow (m³/s)", "m³/s")
    ('m³/s', '')
    """
    return "" if unit and name.endswith((f"[{unit}]", f"({unit})", f"/ {unit}")) else unit


def findings_in_words(findings: Findings) -> str:
    """Say how many rows are above the threshold, how many would be by chance, and how many events they make up."""
    found = int(findings.flags.sum())
    scored = counted(int(findings.rows.scored.sum()), "row")
    if findings.assessment.by_sensor and findings.verdict.kind == "nothing":
        return f"Of {scored} scored, none stands out."
    chance = by_chance(findings.assessment.threshold_expected)
    above = f"above {findings.threshold:.4g}" + (f", {chance}" if chance else "")
    if not found:
        return f"No findings: of {scored} scored, none is {above}."
    days = f" on {counted(len(findings.rows.days), 'day')}" if findings.table.time is not None else ""
    highest = "the highest score" if found == 1 else f"the {found:,} highest scores"
    which = f"{highest} of {scored}, " if findings.assessment.self_scored else "scores "
    return f"{counted(found, 'finding')} ({which}{above}) in {counted(len(findings.events), 'event')}{days}."


def agreement_in_words(known: Agreement) -> str:
    """Say how many known faults have a finding, and how many of the highest scores are in one."""
    n_faults = len(known.faults)
    n_scored = known.n_scored_faults
    if not n_scored:
        return "None of the known faults was scored." if n_faults else "The label has no fault."
    which = "known fault" if n_scored == n_faults else "known and scored fault"
    text = f"A finding is inside {known.n_inside:,} of {counted(n_scored, which)}"
    earlier = known.n_found - known.n_inside
    if earlier:
        text += f", {earlier:,} more had only an alarm up to {duration(known.horizon)} before"
    if not math.isnan(known.precision_at_n):
        text += f"; {percent(known.precision_at_n)} of the {known.n_ranked:,} highest scores are known rows (P@N)"
    return f"{text}."


def step_in_words(time: TimeSummary, when: Callable[[Any], str]) -> str:
    """How far rows are apart, and the gaps between them; `when` writes a time stamp."""
    if math.isnan(time.step):
        return "a single time"
    step = f"a row every {duration_in_words(time.step)}"
    if not time.gaps:
        return f"{step}, no gaps"
    return (
        f"{step}, {counted(time.gaps, 'gap')}, the longest {duration_in_words(time.longest_gap)} after "
        f"{when(time.gap_after)}"
    )


def covered_in_words(tag: TagSummary, time: TimeSummary | None, when: Callable[[Any], str]) -> str:
    """When the first and the last reading of a tag were; "" where that is when the table begins and ends."""
    if not isinstance(tag.first, pd.Timestamp) or not isinstance(tag.last, pd.Timestamp) or time is None:
        return ""
    slow = max(each for each in (time.step, tag.interval, 0.0) if not math.isnan(each))
    apart = pd.Timedelta(seconds=2 * slow)
    if tag.first - time.first <= apart and time.last - tag.last <= apart:
        return ""
    return f"readings from {when(tag.first)} to {when(tag.last)}"
