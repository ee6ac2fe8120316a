"""One clock for tags that have their own: against the slow twin, and the same bits wherever a stream is cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.align import Reading, Tag, aligned, in_time

from penstock.io.align import AlignedRows, AlignedTag, Aligner, Alignment, align_readings
from penstock.storage import StorageError, state_from_bytes, state_to_bytes


@st.composite
def streams(draw: st.DrawFn) -> tuple[Alignment, list[Reading]]:
    """An alignment of up to four tags and up to sixty readings of them, some of them bad, nearly in order of time."""
    p = draw(st.integers(1, 4))
    step = draw(st.sampled_from([1, 7, 10, 60]))
    tags = tuple(AlignedTag(f"t{i}", 0, draw(st.integers(0, 100)), draw(st.booleans())) for i in range(p))
    start = draw(st.sampled_from([-150, 0, 10**15]))
    number = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.1, np.nan, np.inf]))
    readings = draw(
        st.lists(
            st.builds(Reading, st.integers(0, p - 1), st.integers(0, 300).map(lambda t: t + start), number), max_size=60
        )
    )
    if draw(st.booleans()):
        readings.sort(key=lambda reading: reading.time + 13 * reading.tag)
    return Alignment(step, tags, draw(st.integers(0, step - 1))), readings


def columns(readings: list[Reading]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    codes, times, values = zip(*readings, strict=True) if readings else ((), (), ())
    return np.array(codes, dtype=np.int64), np.array(times, dtype=np.int64), np.array(values, dtype=np.float64)


def in_order(readings: list[Reading]) -> list[np.ndarray]:
    order = np.argsort([reading.time for reading in readings], kind="stable")
    return [part[order] for part in columns(readings)]


def assert_same_bits(one: list[AlignedRows], other: list[AlignedRows]) -> None:
    for field in ("times", "values"):
        first, second = (np.concatenate([getattr(part, field) for part in parts]) for parts in (one, other))
        np.testing.assert_array_equal(first, second)


def twin_of(alignment: Alignment, readings: list[Reading]) -> list[tuple[int, list[float]]]:
    tags = [Tag(tag.hold, tag.mean) for tag in alignment.tags]
    return aligned(readings, tags, alignment.step, alignment.origin)


def assert_as_twin(rows: AlignedRows, expected: list[tuple[int, list[float]]]) -> None:
    assert rows.times.tolist() == [stamp for stamp, _ in expected]
    if expected:
        np.testing.assert_allclose(rows.values, [values for _, values in expected], rtol=1e-12, atol=1e-9)


@given(streams())
def test_rows_are_those_of_the_slow_twin(stream):
    alignment, readings = stream
    rows, shares = align_readings(alignment, *in_order(readings))
    assert_as_twin(rows, twin_of(alignment, readings))
    assert (shares.sum(axis=0) == (~np.isnan(rows.values)).sum(axis=0)).all()


@given(streams(), st.integers(0, 80), st.data())
def test_any_cut_of_a_stream_gives_the_same_bits_also_through_a_saved_state(stream, late, data):
    alignment, readings = stream
    codes, times, values = columns(readings)
    whole = Aligner(alignment, late)
    at_once = [whole.take(codes, times, values), whole.finish()]
    good, bad = in_time(readings, alignment.step, alignment.origin, late)
    assert whole.too_late == len(bad)
    assert whole.newest_too_late == (None if not bad else (f"t{newest(bad).tag}", newest(bad).time))
    live = AlignedRows(*(np.concatenate([getattr(part, name) for part in at_once]) for name in ("times", "values")))
    assert_as_twin(live, twin_of(alignment, good))
    assert_same_bits([live], [align_readings(alignment, *in_order(good))[0]])
    cut, parts, first = Aligner(alignment, late), [], 0
    while first < len(codes):
        stop = first + data.draw(st.integers(1, 20))
        parts.append(cut.take(codes[first:stop], times[first:stop], values[first:stop]))
        if data.draw(st.booleans()):
            cut = Aligner.restore(state_from_bytes(state_to_bytes("aligner", cut.state()), "aligner"))
        first = stop
    assert_same_bits(at_once, [*parts, cut.finish()])
    assert (cut.too_late, cut.newest_too_late) == (whole.too_late, whole.newest_too_late)


def newest(readings: list[Reading]) -> Reading:
    return max(enumerate(readings), key=lambda each: (each[1].time, each[0]))[1]


@settings(max_examples=50)
@given(streams(), st.integers(1, 9), st.integers(1, 9))
def test_what_waits_is_bounded_and_the_bound_gives_the_same_bits_for_any_cut(stream, most, size):
    alignment, readings = stream
    codes, times, values = columns(readings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.io.align._MOST_WAITING", most)
        patch.setattr("penstock.io.align._FIRST_WAITING", most)
        check_bounded(Aligner(alignment, 50), Aligner(alignment, 50), (codes, times, values), most, size)


def check_bounded(whole, cut, readings, most, size):
    codes, times, values = readings
    at_once = [whole.take(codes, times, values)]
    assert whole.waiting <= most
    parts = [cut.take(*(part[i : i + size] for part in (codes, times, values))) for i in range(0, len(codes), size)]
    assert_same_bits([*at_once, whole.finish()], [*parts, cut.finish()])
    assert whole.too_late == cut.too_late


def test_the_mean_of_equal_readings_is_that_reading():
    codes, times = np.zeros(9, dtype=np.int64), np.arange(9)
    rows = align_readings(Alignment(3, (AlignedTag("a", 1, 0),)), codes, times, np.full(9, 0.1))[0]
    assert rows.values.ravel().tolist() == [0.1, 0.1, 0.1]


def test_a_bad_reading_ends_what_is_held_and_a_step_of_held_values_is_no_row():
    clock = Alignment(10, (AlignedTag("fast", 10, 0), AlignedTag("slow", 50, 1000)))
    codes, times = np.array([0, 1, 0, 1, 0]), np.array([0, 1, 10, 15, 50])
    rows = align_readings(clock, codes, times, np.array([1.0, 5.0, 2.0, np.nan, 3.0]))[0]
    assert rows.times.tolist() == [0, 10, 50]
    np.testing.assert_array_equal(rows.values, [[1, 5], [2, np.nan], [3, np.nan]])


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": 0},
        {"origin": 10},
        {"tags": ()},
        {"tags": (AlignedTag("a", 0, -1),)},
        {"tags": (AlignedTag("a", 0, 0),) * 2},
    ],
)
def test_alignments_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError):  # noqa: PT011
        Alignment(**{"step": 10, "tags": (AlignedTag("a", 0, 0),), "origin": 0} | wrong)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("late", -1), ("rows", 2.0), ("marks", np.zeros(7, dtype=np.int64)), ("codes", np.array([5])), ("more", 1),
        ("times", np.array([2**62])), ("values", np.zeros(3)), ("last_values", np.zeros(3)), ("alignment", None),
        ("shares", np.full((2, 1), 9)), ("last_times", np.zeros(1)),
    ],
)  # fmt: skip
def test_states_that_do_not_fit_are_refused(field, value):
    aligner = Aligner(Alignment(10, (AlignedTag("a", 10, 0),)), late=5)
    aligner.take([0], [3], [1.0])
    state = aligner.state()
    Aligner.restore(state)
    with pytest.raises(StorageError):
        Aligner.restore(state | {field: value})


@pytest.mark.parametrize(
    ("field", "value"), [("step", 0), ("origin", 10), ("names", ["a", "a"]), ("holds", np.array([-1])), ("means", [1])]
)
def test_alignments_from_files_are_checked(field, value):
    state = Alignment(10, (AlignedTag("a", 10, 0),)).state()
    with pytest.raises(StorageError):
        Alignment.restore(state | {field: value})
