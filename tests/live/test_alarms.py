"""Verdicts become alarms by the rules of docs/alarms.md, and go on after any restart as if nothing had happened."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import alarms as naive

from penstock._parameters import ParameterError
from penstock.live.alarm_records import (
    ACTIONS,
    Alarm,
    AlarmState,
    Change,
    Event,
    Notification,
    RefusedError,
    RowVerdict,
    Sensor,
    alarm_in_words,
)
from penstock.live.alarms import AlarmBook
from penstock.live.options import AlarmRules

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
RULES = AlarmRules(on_delay="3min", off_delay="4min", min_duration="2min", rejoin="10min", no_data="8min")


def verdicts(
    text: str, asset: str = "unit1", start: float = 0.0, step: float = MINUTE, **more: Any
) -> list[RowVerdict]:
    """One row a minute: "#" high, "-" in the dead band, "." low, "?" not scored; a letter: high, with that sensor."""
    scores = {"#": 9.0, "-": 3.8, ".": 0.0, "?": None}
    rows = []
    for place, sign in enumerate(text):
        if sign != " ":
            sensors = (Sensor(sign.lower(), 5.0 if sign.isupper() else 1.0),) if sign.isalpha() else ()
            rows.append(RowVerdict(asset, start + place * step, scores.get(sign, 9.0), 4.0, sensors=sensors, **more))
    return rows


def story(events: list[Event]) -> list[tuple[float, str, str]]:
    """Minute, what and whose, without notifications."""
    return [(e.time / MINUTE, e.kind, e.id.rsplit(".", 1)[0]) for e in events if isinstance(e, Change)]


def told(events: list[Event]) -> list[Notification]:
    return [event for event in events if isinstance(event, Notification)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("#........", []),  # a sample is never an alarm
        ("###......", []),
        ("####.....", [(3, "raised", "unit1-1"), (8, "ended", "unit1-1")]),
        ("#      #", [(7, "raised", "unit1-1")]),  # two rows, however far apart
        ("##--#", [(4, "raised", "unit1-1")]),  # the dead band holds
        ("##??#", [(4, "raised", "unit1-1")]),
        ("##.##", []),
        ("####--------------", [(3, "raised", "unit1-1")]),
        ("####...#....#.....", [(3, "raised", "unit1-1"), (17, "ended", "unit1-1")]),
        ("####.....####.....", [(3, "raised", "unit1-1"), (8, "ended", "unit1-1"), (12, "returned", "unit1-1"),
                                (17, "ended", "unit1-1")]),
        ("####.....         ####", [(3, "raised", "unit1-1"), (8, "ended", "unit1-1"), (16, "raised", "unit1-2"),
                                   (18, "ended", "unit1-2"), (21, "returned", "unit1-1")]),
        ("####..... ... ... ..####", [(3, "raised", "unit1-1"), (8, "ended", "unit1-1"), (23, "raised", "unit1-2")]),
        ("aaaa.....bbbb", [(3, "raised", "unit1-1"), (8, "ended", "unit1-1"), (12, "raised", "unit1-2")]),
        ("aaaaabababab", [(3, "raised", "unit1-1")]),
        ("aaaabbbbbbb", [(3, "raised", "unit1-1"), (7, "updated", "unit1-1")]),  # an incident that moves on
        ("aaaaBBBBB", [(3, "raised", "unit1-1"), (7, "raised", "unit1-2"), (8, "ended", "unit1-1")]),  # much stronger
        ("...." + " " * 10 + "..", [(11, "raised", "unit1-1"), (14, "ended", "unit1-1")]),  # no data
        ("...##" + " " * 10 + "#", [(12, "raised", "unit1-1"), (15, "ended", "unit1-1")]),  # which begins anew
    ],
)  # fmt: skip
def test_rows_and_alarms(rows: str, expected: list[Any]) -> None:
    assert story(AlarmBook(RULES).update(verdicts(rows))) == expected


levels = st.sampled_from([0.0, 3.6, 3.7, 9.0, 9.0, None])
steps = st.sampled_from([0.0, 1.0, 1.0, 1.0, 2.0, 20.0])
names = st.lists(st.sampled_from("abcde"), max_size=2, unique=True).map(tuple)
streams = st.lists(st.tuples(steps, levels, names), max_size=40)


def rows_of(stream: list[Any]) -> list[naive.Row]:
    time, rows = 0.0, []
    for step, score, named in stream:
        time += step
        rows.append(naive.Row(time, score, 4.0, named if score is not None else ()))
    return rows


def as_verdicts(rows: list[naive.Row], asset: str = "a") -> list[RowVerdict]:
    return [RowVerdict(asset, r.time, r.score, r.threshold, sensors=tuple(map(Sensor, r.names))) for r in rows]


@settings(deadline=None)
@given(
    streams,
    st.sampled_from([0.0, 3.0]),
    st.sampled_from([0.0, 4.0]),
    st.sampled_from([0.0, 6.0]),
    st.sampled_from([0.0, 9.0]),
)
def test_as_the_slow_reference(stream: list[Any], on: float, off: float, least: float, rejoin: float) -> None:
    rows = rows_of(stream)
    expected = naive.alarms(rows, on, off, 0.1, least, rejoin, no_data=9.0)
    rules = AlarmRules(on, off, 0.1, least, rejoin, no_data=9.0, stale_model=0)
    found = AlarmBook(rules).update(as_verdicts(rows))
    kinds = ("raised", "returned", "ended")
    assert [(e.time, e.kind, int(e.id.split("-")[1].split(".")[0])) for e in found if e.kind in kinds] == expected


@st.composite
def inputs(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Rows of three assets, actions on alarms that may or may not be there, and times at which nothing happens."""
    time, every = 0.0, []
    for _ in range(draw(st.integers(0, 40))):
        time += draw(steps)
        kind = draw(st.sampled_from(["row"] * 5 + ["action", "advance", "silence", "stale"]))
        if kind == "row":
            row = (
                draw(st.sampled_from(["a", "p/b", "p/c"])),
                draw(st.sampled_from([0.0, 9.0, 9.0, None])),
                draw(names),
            )
            every.append(("row", (time, *row)))
        elif kind == "action":
            name = draw(st.sampled_from(sorted(ACTIONS)))
            every.append((name, (time, draw(st.sampled_from(["a-1", "a-2", "p:b-1", "none"])), draw(steps))))
        else:
            every.append((kind, (time, draw(st.sampled_from(["a", "p/*", "*"])), draw(steps))))
    return every


FAST = AlarmRules(
    on_delay=1, off_delay=2, min_duration=2, rejoin=5, re_alarm=7, no_data=9, stale_model=15, keep=12, group_wait=1,
    group_interval=3, repeat=6, inhibit=("a>p/b",),
)  # fmt: skip


def play(book: AlarmBook, given: tuple[str, Any]) -> list[Event]:  # noqa: PLR0911
    kind, (time, *rest) = given
    try:
        if kind == "row":
            asset, score, named = rest
            return book.update([RowVerdict(asset, time, score, 4.0, sensors=tuple(map(Sensor, named)))])
        name, length = rest
        if kind == "silence":
            return book.silence(name, "Ada", time, time + length)
        if kind == "stale":
            return book.model_state(name, time, "old" if length else "")
        if kind == "shelve":
            return book.act("shelve", name, "Ada", time, until=time + length if length != 2 else None)
        if kind == "advance":
            return book.advance(time)
        return list(book.act(kind, name, "Ada", time, "rare but normal", "seen before"))
    except RefusedError:
        return []


LEGAL = {  # what a change that comes by itself needs, and what it sets
    "raised": ({}, {"active": True}),
    "returned": ({"active": False}, {"active": True}),
    "updated": ({"active": True}, {}),
    "ended": ({"active": True}, {"active": False}),
    "closed": ({"active": False, "latched": False, "shelved": False, "out_of_service": False, "suppressed": False}, {}),
    "re-alarmed": ({"active": True, "acknowledged": True}, {"acknowledged": False, "confirmed": False}),
} | {action.done: (action.needs, action.sets) for action in ACTIONS.values()}


@settings(deadline=None, max_examples=40)
@given(inputs(), st.booleans())
def test_every_change_is_legal_and_a_restart_changes_nothing(given_inputs: list[Any], latching: bool) -> None:
    rules = AlarmRules(**{**vars(FAST), "latching": latching, "confirm": latching})
    book, restarted, last = AlarmBook(rules), AlarmBook(rules), dict[str, AlarmState]()
    ids, high = list[str](), dict[str, int]()
    for each in given_inputs:
        before = book.state()
        events = play(book, each)
        restarted = AlarmBook.restore(json.loads(json.dumps(restarted.state(), allow_nan=False)))
        assert play(restarted, each) == events
        assert restarted.state() == book.state()
        if not events and each[0] in ACTIONS:
            assert book.state() == before, "an action that is not possible has changed nothing"
        if each[0] == "row":
            asset, score = each[1][1:3]
            high[asset] = high.get(asset, 0) + (score == 9.0)
        for event in events:
            ids.append(event.id)
            if isinstance(event, Change) and event.alarm is not None:
                check_change(event, last)
                if event.kind == "raised" and event.alarm.about == "alarm":
                    assert event.time - event.alarm.since >= 1.0
                    assert high[event.asset] >= 2, "a sample is never an alarm"
    assert len(ids) == len(set(ids))


def check_change(event: Change, last: dict[str, AlarmState]) -> None:
    alarm, (needs, sets) = event.alarm, LEGAL[event.kind]
    assert alarm is not None
    assert event.before == last.pop(alarm.id, None)
    was = event.before or AlarmState()
    expected = {**vars(was), **sets}
    if event.kind in ("raised", "returned") and alarm.state.latched:
        expected["latched"] = True
    assert vars(alarm.state) == expected
    assert needs.items() <= vars(was).items()
    assert Alarm.from_dict(json.loads(json.dumps(alarm.as_dict()))) == alarm
    if event.kind != "closed":
        last[alarm.id] = alarm.state


@settings(deadline=None, max_examples=40)
@given(inputs())
def test_people_are_told_of_every_alarm_once_and_of_its_end(given_inputs: list[Any]) -> None:
    book, now_told = AlarmBook(FAST), set[str]()
    events = [event for each in given_inputs for event in play(book, each)] + book.advance(2000.0)
    for event in events:
        if isinstance(event, Notification):
            assert now_told.isdisjoint(event.new)
            now_told |= set(event.new)
            assert now_told >= {*event.ended, *event.active}
            now_told -= set(event.ended)
            assert event.new or event.ended or event.kind == "repeat"
        elif event.kind == "re-alarmed":
            now_told.discard(event.id.rsplit(".", 1)[0])
    waiting = [each for each in book.active() if not each.state.acknowledged and not book.quiet(each)]
    assert {alarm.id for alarm in waiting} <= now_told <= {alarm.id for alarm in book.active()}


@settings(deadline=None, max_examples=30)
@given(inputs(), st.integers(1, 5))
def test_any_cut_of_the_stream_gives_the_same(given_inputs: list[Any], size: int) -> None:
    rows = [
        RowVerdict(r[1], r[0], r[2], 4.0, sensors=tuple(map(Sensor, r[3]))) for kind, r in given_inputs if kind == "row"
    ]
    whole, parts = AlarmBook(FAST), AlarmBook(FAST)
    expected, found = whole.update(rows), list[Event]()
    for start in range(0, len(rows), size):
        found += parts.update(rows[start : start + size])
        found += parts.advance(rows[min(start + size, len(rows)) - 1].time)  # a tick changes nothing either
    assert found == expected
    assert [e.as_dict() for e in found] == [e.as_dict() for e in expected]


def test_an_alarm_says_since_when_which_sensors_and_which_moved_first() -> None:
    book = AlarmBook(RULES)
    normal = RowVerdict("u", 0.0, 0.0, 4.0, values={"oil": 56.0, "flow": 3.0})
    rows = [normal]
    for minute in range(1, 8):
        sensors = (Sensor("flow", 2.0 + minute, -1.0, 2.0),) + ((Sensor("oil", 20.0, 4.5, 61.5),) if minute > 3 else ())
        rows.append(RowVerdict("u", minute * MINUTE, 5.0 + minute, 4.0, 0.01 / minute, sensors[::-1]))
    (alarm,) = [event.alarm for event in book.update(rows) if event.kind == "raised"]
    assert alarm is not None
    assert (alarm.since, alarm.raised, alarm.cause) == (60.0, 240.0, "oil high")
    assert alarm.moved_first == ("flow", "oil")
    alarm = book.alarm("u-1")
    assert (alarm.score, alarm.expected_by_chance, alarm.last) == (12.0, 0.01 / 7, 420.0)
    assert alarm_in_words(alarm) == (
        "u: oil high; 61.5, expected 57, before 56; first to move: flow, oil; by chance fewer than 0.05 in 1 day"
    )
    rates = {0.0: "fewer than 0.05", 2e-11: "fewer than 0.05", 0.06: "about 0.06", 0.3: "about 0.3", 2.5: "about 2.5"}
    for often, words in rates.items():
        assert alarm_in_words(replace(alarm, expected_by_chance=often)).endswith(f"by chance {words} in 1 day")
    long = replace(alarm, expected_by_chance=0.02, last=alarm.since + 2.5 * 86_400)
    assert alarm_in_words(long).endswith("by chance about 0.06 in 3 days")


def test_an_alarm_worked_by_people() -> None:
    book = AlarmBook(AlarmRules(**{**vars(RULES), "latching": True, "confirm": True}))
    book.update(verdicts("####"))
    for wrong in (
        lambda: book.act("confirm", "unit1-1", "Ada", 200),
        lambda: book.act("reset", "unit1-1", "Ada", 200),
        lambda: book.act("acknowledge", "unit1-1", " ", 200),
        lambda: book.act("acknowledge", "unit1-7", "Ada", 200),
        lambda: book.act("shelve", "unit1-1", "Ada", 200, until=100),
        lambda: book.act("unshelve", "unit1-1", "Ada", 200),
        lambda: book.act("in_service", "unit1-1", "Ada", 200),
        lambda: book.silence("*", "Ada", 200, until=100),
        lambda: book.update([RowVerdict("u", float("nan"))]),
        lambda: book.advance(float("inf")),
    ):
        with pytest.raises(RefusedError):
            wrong()
    book.act("acknowledge", "unit1-1", "Ada", 200, "fault", "bearing")
    with pytest.raises(RefusedError, match="cannot be acknowledged: it is acknowledged"):
        book.act("acknowledge", "unit1-1", "Bob", 210)
    book.act("confirm", "unit1-1", "Bob", 220)
    book.update(verdicts("....." + " " * 15 + ".", start=240.0))
    alarm = book.alarm("unit1-1")
    assert alarm.state.names() == ["acknowledged", "confirmed", "latched"]
    assert (alarm.acknowledged_by, alarm.reason, alarm.comment) == ("Ada", "fault", "bearing")
    reset = book.act("reset", "unit1-1", "Bob", 1500)
    assert [event.kind for event in reset] == ["new", "reset", "closed"]


def test_shelved_alarms_come_back_by_themselves() -> None:
    book = AlarmBook(RULES)
    book.update(verdicts("####"))
    book.act("shelve", "unit1-1", "Ada", 200, until=1000)
    assert book.quiet(book.alarm("unit1-1")) == "shelved"
    assert story(book.advance(1100)) == [(660 / 60, "raised", "unit1-2"), (1000 / 60, "unshelved", "unit1-1")]
    book.act("shelve", "unit1-1", "Ada", 1100, until=None)
    ended = book.update(verdicts("......", start=1140))
    assert [e[1:] for e in story(ended)] == [("ended", "unit1-2"), ("ended", "unit1-1"), ("unshelved", "unit1-1")]


def test_an_acknowledged_alarm_that_does_not_end_is_shown_again_and_then_the_model_is_stale() -> None:
    book = AlarmBook(AlarmRules(stale_model="2d"))
    book.update(verdicts("#" * 20))
    book.act("acknowledge", "unit1-1", "Ada", 20 * MINUTE)
    events = book.update(verdicts("#" * (60 * 49), start=20 * MINUTE))
    assert [(e.time / HOUR, e.kind) for e in events if isinstance(e, Change)] == [
        (24 + 20 / 60, "re-alarmed"),
        (48 + 5 / 60, "raised"),
    ]
    stale = book.alarm("unit1-2")
    assert (stale.about, stale.reason) == (
        "stale model",
        "unlike what was fitted has been reported for 2 days: repair it, or fit again",
    )
    assert story(book.update(verdicts("." * 40, start=70 * HOUR)))[-1][1:] == ("ended", "unit1-2")


def test_one_notification_for_assets_that_alarm_together() -> None:
    rows = [v for step in range(6) for asset in ("p/a", "p/b", "q/c") for v in verdicts("#", asset, step * MINUTE)]
    book = AlarmBook(AlarmRules(on_delay="2min", no_data=0, inhibit=("p/a>p/b",)))
    first = told(book.update(rows))
    assert [(n.time, n.group, n.new) for n in first] == [(150.0, "p", ("p:a-1",)), (150.0, "q", ("q:c-1",))]
    book.silence("q/*", "Ada", 300, until=2 * DAY)
    book.act("acknowledge", "p:a-1", "Ada", 320)
    assert told(book.advance(DAY)) == []


def test_reminders_become_rarer() -> None:
    book = AlarmBook(AlarmRules(no_data=0, stale_model=0))
    book.update(verdicts("#" * 7))
    assert [round(n.time / HOUR) for n in told(book.advance(61 * HOUR))] == [4, 12, 28, 60]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"on_delay": "soon"}, "on_delay: 'soon' is no duration"),
        ({"off_delay": -1}, "off_delay must be a finite number ≥ 0"),
        ({"dead_band": 1.0}, "dead_band must be"),
        ({"inhibit": ("a",)}, "inhibit must be two assets"),
    ],
)
def test_rules_are_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        AlarmBook(AlarmRules(**change))


@pytest.mark.parametrize(
    "spoil", [{"version": 9}, {"alarms": [{}]}, {"assets": {"a": {}}}, {"clock": "noon"}, {"low": 3}]
)
def test_a_state_that_is_none_is_refused(spoil: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="This is no state of alarms"):
        AlarmBook.restore({**AlarmBook().state(), **spoil})


def test_a_clock_that_was_set_wrongly_does_not_stop_alarms() -> None:
    book = AlarmBook(RULES)
    book.update(verdicts("...") + verdicts(".", start=50 * DAY) + verdicts("####", start=4 * MINUTE))
    assert [alarm.about for alarm in book.active()] == ["alarm"]
