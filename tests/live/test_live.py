"""Monitor a stream: verdicts are those of the model, and a run that was left goes on as if it had not been."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from live_tables import NAMES, a_pipe, as_csv, committed, lines_of, rows

import penstock
from penstock import OnlineNSNMF
from penstock._parameters import ParameterError
from penstock.io import InputError
from penstock.live import Counts, Monitor, Observer, WatchOptions
from penstock.storage import StorageError
from penstock.thresholds import ConformalPValue

SMALL: dict[str, Any] = {"n_components": 2, "buffer_size": 10, "warmup": 20}


def detector(**parameters: Any) -> OnlineNSNMF:
    """Return the detector that `WatchOptions(**SMALL)` stands for."""
    sensors = {"similarity": "binary", "scale": "minmax", "threshold": ConformalPValue(0.01), "random_state": 0}
    return OnlineNSNMF(**{**SMALL, **sensors, **parameters})


@pytest.fixture
def options(tmp_path: Path) -> WatchOptions:
    (tmp_path / "in.csv").write_text(as_csv(rows()))
    paths = {"input": tmp_path / "in.csv", "output": tmp_path / "out.jsonl", "state": tmp_path / "state"}
    return WatchOptions(**paths, snapshot_every=30, **SMALL)


def unbroken(options: WatchOptions, tmp_path: Path) -> bytes:
    """Return the output of a run without snapshots and interruptions."""
    output = tmp_path / "unbroken.jsonl"
    Monitor(replace(options, state=None, output=output, overwrite=True)).run()
    return output.read_bytes()


def after(steps: int) -> Callable[[], bool]:
    """Say stop after so many questions."""
    left = iter(range(steps))
    return lambda: next(left, None) is None


def written(options: WatchOptions) -> bytes:
    return Path(str(options.output)).read_bytes()


def samples(options: WatchOptions) -> int:
    """Return how many samples are committed; -1 if nothing is."""
    found = committed(options.state)
    return -1 if found is None else int(found["samples"])


def test_the_verdicts_are_those_of_the_detector(options: WatchOptions) -> None:
    table = rows()
    table[50, 1] = np.nan
    Path(options.input).write_text(as_csv(table))
    seen: list[int] = []
    counts = Monitor(options, Observer(verdicts=lambda *_: seen.append(samples(options)))).run()
    expected, found = detector().process(table), lines_of(options.output)
    assert seen[0] == 0, "a state before the first verdict"
    assert [line["row"] for line in found] == list(range(1, 401))
    assert [line["time"] for line in found] == [f"t{number}" for number in range(400)]
    for name, values in (("score", expected.scores), ("threshold", expected.thresholds)):
        assert [line[name] for line in found] == [None if np.isnan(value) else value for value in values]
    assert [line["flag"] for line in found] == expected.flags.tolist()
    worst = [[NAMES[column] for column in row if column >= 0] for row in expected.variables]
    assert [list(line["variables"]) for line in found] == worst
    assert counts == Counts(400, int(expected.flags.sum()), missing=1)
    assert counts.flagged > 0


def test_left_and_continued_after_any_number_of_steps(options: WatchOptions, tmp_path: Path) -> None:
    expected, runs = unbroken(options, tmp_path), 0
    while not Path(str(options.output)).exists() or len(written(options)) < len(expected):
        Monitor(options).run(after(3))
        runs += 1
        assert expected.startswith(written(options))
    assert runs > 3
    assert Monitor(options).run().samples == 400
    assert written(options) == expected


def test_a_last_line_without_an_end_may_grow_in_a_file_but_not_in_a_pipe(options: WatchOptions, tmp_path: Path) -> None:
    text = as_csv(rows(100))
    Path(options.input).write_text(text[:-4])  # in the middle of the last number
    assert Monitor(options).run().samples == 100
    assert written(options) == unbroken(options, tmp_path)
    Path(options.input).write_text(text + as_csv(rows(50, seed=1)).split("\n", 1)[1])
    assert Monitor(options).run().samples == 150
    assert written(options) == unbroken(options, tmp_path)

    piped = replace(options, output=tmp_path / "piped", state=tmp_path / "piped-state")
    assert Monitor(replace(piped, input=a_pipe(text[:-1]))).run().samples == 100
    assert Monitor(replace(piped, input=a_pipe(text))).run().samples == 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_components": 3}, "n_components was 2, is 3"),
        ({"n_variables": 1}, "n_variables was 3, is 1"),
        ({"exclude": ("flow",)}, "exclude was"),
        ({"threshold": "fixed:0.5"}, "threshold was"),
    ],
)
def test_other_settings_are_refused(options: WatchOptions, change: dict[str, Any], message: str) -> None:
    Monitor(options).run(after(5))
    with pytest.raises(StorageError, match=message):
        Monitor(replace(options, **change))
    Monitor(options).run()  # and the lock is free again


def test_another_input_or_output_is_refused(options: WatchOptions, tmp_path: Path) -> None:
    Monitor(options).run(after(8))
    other = tmp_path / "other"
    other.write_text(as_csv(rows(seed=3)))
    with pytest.raises(InputError, match="does not begin like"):
        Monitor(replace(options, input=other))
    with pytest.raises(StorageError, match=r"none\.jsonl is missing"):
        Monitor(replace(options, output=tmp_path / "none.jsonl"))
    assert not (tmp_path / "none.jsonl").exists()
    other.write_text("".join(f"{number}\n" for number in range(100_000)))
    with pytest.raises(StorageError, match="is not the output that belongs to this --state"):
        Monitor(replace(options, output=other))
    assert len(other.read_text().splitlines()) == 100_000
    before = Path(options.input).read_bytes()
    with pytest.raises(StorageError, match="is the input"):
        Monitor(replace(options, output=Path(options.input), overwrite=True))
    assert Path(options.input).read_bytes() == before


def test_an_input_that_cannot_be_sought_goes_on_with_what_comes(options: WatchOptions) -> None:
    """The model, the threshold and the counts continue; verdicts after the snapshot stay."""
    table = rows()
    Monitor(replace(options, input=a_pipe(as_csv(table[:150])))).run()
    before = written(options)
    with Path(str(options.output)).open("ab") as output:  # as if a kill had come after two more lines and a half
        output.write(b'{"row": 151}\n{"row": 152}\n{"row": 15')
    counts = Monitor(replace(options, input=a_pipe(as_csv(table[150:], start=150)))).run()
    lines = lines_of(options.output)
    assert counts.samples == 402
    assert written(options).startswith(before)
    assert [line["row"] for line in lines] == list(range(1, 403))
    assert [line["score"] for line in lines[152:]] == detector().process(table).scores[150:].tolist()


def test_rows_that_the_detector_refuses_are_malformed(options: WatchOptions, tmp_path: Path) -> None:
    table = rows(60)
    table[40, 2], table[50, 0] = -1.0, 1e90
    Path(options.input).write_text(as_csv(table))
    options = replace(options, scale="none", snapshot_every=10**6)
    for _ in range(2):  # what follows the row in its batch is not passed over by a second run
        with pytest.raises(InputError, match=r"line 42: Negative values .*\(--strict\)"):
            Monitor(replace(options, strict=True)).run()
        assert len(lines_of(options.output)) == 40
    faults: list[str] = []
    counts = Monitor(options, Observer(fault=lambda fault: faults.append(str(fault)))).run()
    assert (counts.samples, counts.malformed) == (58, 2)
    assert 'column "power"' in faults[0]
    assert "line 52: Values up to 1e+90 are too large" in faults[1]
    kept = np.delete(table, [40, 50], axis=0)
    expected = detector(scale=None).process(kept).scores[20:].tolist()
    assert [line["score"] for line in lines_of(options.output)[20:]] == expected
    assert lines_of(options.output)[40]["time"] == "t41"
    assert written(options) == unbroken(options, tmp_path)


def test_options_out_of_bounds_are_named(options: WatchOptions) -> None:
    for name, value in (("n_components", 0), ("snapshot_every", 0), ("delimiter", "::"), ("threshold", "peek")):
        with pytest.raises(ParameterError) as raised:
            Monitor(replace(options, **{name: value}))
        assert raised.value.parameter == name


def test_commits_come_in_time_while_nothing_comes(options: WatchOptions) -> None:
    options = replace(options, follow=True, snapshot_every=10**6, snapshot_seconds=0.01)
    sizes: list[int] = []

    def stopped() -> bool:
        sizes.append(samples(options))
        return len(sizes) > 8

    Monitor(options).run(stopped)
    assert max(sizes) == 400


def test_a_log_that_was_rotated_between_two_runs(options: WatchOptions, tmp_path: Path) -> None:
    text, log = as_csv(rows(120)).splitlines(keepends=True), Path(options.input)
    options = replace(options, follow=True)
    log.write_text("".join(text[:41]))
    Monitor(options).run(after(6))
    with log.open("a") as file:
        file.write("".join(text[41:81]))
    log.rename(tmp_path / "in.csv.1")
    log.write_text("".join([text[0], *text[81:]]))
    Monitor(options).run(after(14))
    log.write_text("".join(text))
    assert written(options) == unbroken(replace(options, follow=False), tmp_path)


def test_an_empty_input_is_no_error(options: WatchOptions) -> None:
    for text in ("", "time,flow\n"):
        Path(options.input).write_text(text)
        assert Monitor(options).run() == Counts()


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("UPDATE inputs SET position=? WHERE name='output'", '{"length": 0, "tail": ""}'),
        ("UPDATE assets SET counts=?", '{"samples": 1}'),
        ("UPDATE assets SET state=?", b"cut"),
        ("UPDATE inputs SET position=? WHERE name='file'", "[]"),
    ],
)
def test_a_state_that_is_damaged_is_refused_and_nothing_is_touched(
    options: WatchOptions, statement: str, value: object
) -> None:
    Monitor(options).run(after(8))
    before = written(options)
    with closing(sqlite3.connect(options.state / "watch.db")) as store, store:  # type: ignore[operator]
        store.execute(statement, (value,))
    with pytest.raises(StorageError):
        Monitor(options)
    assert written(options) == before


def test_a_state_that_is_no_store_is_refused(options: WatchOptions, tmp_path: Path) -> None:
    Monitor(options).run(after(8))
    file = tmp_path / "state" / "watch.db"
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(StorageError):
        Monitor(options)
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "state"):
        with pytest.raises(StorageError, match="a folder is needed"):
            Monitor(replace(options, state=folder))


def test_an_error_in_a_pipe_does_not_take_what_was_learnt(
    options: WatchOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replace(options, strict=True, snapshot_every=10**6)
    with pytest.raises(InputError, match="--strict"):
        Monitor(replace(options, input=a_pipe(as_csv(rows()[:150]) + "t,1\n"))).run()
    assert samples(options) == 150
    with pytest.raises(InputError, match="columns have changed"):
        Monitor(replace(options, input=a_pipe("time,flow\n"))).run()

    def gone(*_: object) -> None:
        raise BrokenPipeError

    monitor = Monitor(replace(options, input=a_pipe(as_csv(rows()[150:160], start=150))))
    with monkeypatch.context() as patch:
        patch.setattr("os.write", gone)
        with pytest.raises(BrokenPipeError):
            monitor.run()
    assert samples(options) == 160
    assert Monitor(replace(options, input=a_pipe(as_csv(rows()[160:], start=160)))).run().samples == 400
    expected = detector().process(rows()).scores
    assert [line["score"] for line in lines_of(options.output)][-240:] == expected[160:].tolist()


def test_a_file_after_standard_output_can_be_continued_at_once(
    options: WatchOptions, capfd: pytest.CaptureFixture[str]
) -> None:
    Monitor(replace(options, output=None)).run(after(8))
    Monitor(options).close()  # as if killed after some lines
    printed = len(capfd.readouterr().out.splitlines())
    Path(str(options.output)).write_text(f'{{"row": {printed + 1}, "score": 0.5')
    assert Monitor(options).run().samples == 400
    assert [line["row"] for line in lines_of(options.output)] == list(range(printed + 1, 401))


def test_an_online_model_from_a_file_goes_on_learning(options: WatchOptions, tmp_path: Path) -> None:
    table = pd.DataFrame(rows(), columns=list(NAMES))
    trained = detector().fit(table)
    trained.save(tmp_path / "model")
    for name in ("n_components", "alpha", "threshold"):
        with pytest.raises(ParameterError, match=f"{name} cannot be changed: --model has its own"):
            Monitor(WatchOptions(options.input, model=tmp_path / "model", **{name: 1}))
    options = replace(options, model=tmp_path / "model", **dict.fromkeys(SMALL))
    for _ in range(20):
        Monitor(options).run(after(3))
    Monitor(options).run()
    assert [line["score"] for line in lines_of(options.output)] == trained.process(table).scores.tolist()
    detector(alpha=0.7).fit(table).save(tmp_path / "model")
    with pytest.raises(StorageError, match=r"alpha was 0\.8, is 0\.7; model was '.*', is '.*'"):
        Monitor(options)
    elsewhere = replace(options, columns=("speed", "flow"), output=tmp_path / "b", state=tmp_path / "c")
    with pytest.raises(InputError, match="made for the columns flow, head, power, speed, but these are speed, flow"):
        Monitor(elsewhere).run()
    assert isinstance(penstock.load(tmp_path / "model"), OnlineNSNMF)
