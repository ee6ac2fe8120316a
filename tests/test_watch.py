"""The loop: verdicts are those of the detector, and a watch that was left goes on as if it had not been."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from watch_tables import NAMES, a_pipe, as_csv, rows

from penstock import OnlineNSNMF
from penstock.io import InputError, TableOptions
from penstock.io.sinks import OutputError
from penstock.io.snapshots import SnapshotError
from penstock.live import Counts, Observer, Watch, WatchPlan


def detector(**parameters: Any) -> Callable[[], OnlineNSNMF]:
    return lambda: OnlineNSNMF(**{"n_components": 2, "buffer_size": 10, "random_state": 0, **parameters})


@pytest.fixture
def plan(tmp_path: Path) -> WatchPlan:
    (tmp_path / "in.csv").write_text(as_csv(rows()))
    return WatchPlan(
        detector(),
        input=tmp_path / "in.csv",
        output=tmp_path / "out.jsonl",
        state=tmp_path / "state",
        snapshot_every=30,
    )


def unbroken(plan: WatchPlan, tmp_path: Path) -> bytes:
    """The output of a run without snapshots and interruptions."""
    output = tmp_path / "unbroken.jsonl"
    Watch(replace(plan, state=None, output=output, overwrite=True)).run()
    return output.read_bytes()


def after(steps: int) -> Callable[[], bool]:
    """Says stop after so many questions."""
    left = iter(range(steps))
    return lambda: next(left, None) is None


def lines_of(path: Path | None) -> list[dict[str, Any]]:
    assert path is not None
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_verdicts_are_those_of_the_detector(plan: WatchPlan) -> None:
    table = rows()
    table[50, 1] = np.nan
    assert plan.input is not None
    plan.input.write_text(as_csv(table))
    counts = Watch(plan).run()
    expected = detector()().process(table)
    found = lines_of(plan.output)
    assert [line["row"] for line in found] == list(range(1, 401))
    assert [line["time"] for line in found] == [f"t{number}" for number in range(400)]
    for name, values in (("score", expected.scores), ("threshold", expected.thresholds)):
        assert [line[name] for line in found] == [None if np.isnan(value) else value for value in values]
    assert [line["flag"] for line in found] == expected.flags.tolist()
    worst = [[NAMES[column] for column in row if column >= 0] for row in expected.variables]
    assert [list(line["variables"]) for line in found] == worst
    assert counts == Counts(400, int(expected.flags.sum()), 1, 0)
    assert counts.flagged > 0


def test_left_and_continued_after_any_number_of_steps(plan: WatchPlan, tmp_path: Path) -> None:
    expected = unbroken(plan, tmp_path)
    assert plan.output is not None
    runs = 0
    while not plan.output.exists() or len(plan.output.read_bytes()) < len(expected):
        Watch(plan).run(after(3))
        runs += 1
        assert expected.startswith(plan.output.read_bytes())
    assert runs > 3
    assert Watch(plan).run().samples == 400
    assert plan.output.read_bytes() == expected


def test_a_last_line_without_an_end_may_grow(plan: WatchPlan, tmp_path: Path) -> None:
    text = as_csv(rows(100))
    cut = len(text) - 4  # in the middle of the last number
    assert plan.input is not None
    assert plan.output is not None
    plan.input.write_text(text[:cut])
    assert Watch(plan).run().samples == 100
    assert plan.output.read_bytes() == unbroken(plan, tmp_path)
    plan.input.write_text(text + as_csv(rows(50, seed=1)).split("\n", 1)[1])
    assert Watch(plan).run().samples == 150
    assert plan.output.read_bytes() == unbroken(plan, tmp_path)


def test_there_is_a_snapshot_before_the_first_verdict(plan: WatchPlan) -> None:
    seen: list[int] = []
    assert plan.state is not None
    state = plan.state
    Watch(plan, Observer(verdicts=lambda *_: seen.append(len(list(state.glob("snapshot-*")))))).run()
    assert seen[0] == 1


def test_a_damaged_snapshot_is_passed_over(plan: WatchPlan, tmp_path: Path) -> None:
    expected = unbroken(plan, tmp_path)
    Watch(plan).run(after(8))
    assert plan.state is not None
    assert plan.output is not None
    *_, newest = sorted(plan.state.glob("snapshot-*"))
    newest.write_bytes(newest.read_bytes()[:-1])
    warnings: list[str] = []
    Watch(plan, Observer(warning=warnings.append)).run()
    assert plan.output.read_bytes() == expected
    assert len(warnings) == 1
    assert newest.name in warnings[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"detector": detector(n_components=3)}, "n_components was 2, is 3"),
        ({"n_variables": 1}, "n_variables was 3, is 1"),
        ({"table": TableOptions(exclude=("flow",))}, "exclude was"),
    ],
)
def test_other_settings_are_refused(plan: WatchPlan, change: dict[str, Any], message: str) -> None:
    Watch(plan).run(after(5))
    with pytest.raises(SnapshotError, match=message):
        Watch(replace(plan, **change))
    Watch(plan).run()  # and the lock is free again


def test_a_snapshot_whose_model_and_columns_disagree_is_refused(plan: WatchPlan) -> None:
    from penstock.storage import read_state, write_state

    Watch(plan).run()
    assert plan.state is not None
    for path in plan.state.glob("snapshot-*"):
        state = read_state(path)[1]
        state["input"]["table"]["variables"] = [1, 2]
        write_state(path, "snapshot", state)
    with pytest.raises(SnapshotError, match="made for 4 columns, but there are 2"):
        Watch(plan)
    for path in plan.state.glob("snapshot-*"):
        write_state(path, "snapshot", {"something": "else"})
    with pytest.raises(SnapshotError, match="it is not what this version writes"):
        Watch(plan)


def test_another_input_or_output_is_refused(plan: WatchPlan, tmp_path: Path) -> None:
    Watch(plan).run(after(8))
    other = tmp_path / "other.csv"
    other.write_text(as_csv(rows(seed=3)))
    with pytest.raises(InputError, match="does not begin like"):
        Watch(replace(plan, input=other))
    with pytest.raises(OutputError, match=r"other\.jsonl is missing"):
        Watch(replace(plan, output=tmp_path / "other.jsonl"))
    assert not (tmp_path / "other.jsonl").exists()
    (tmp_path / "other.jsonl").write_text("".join(f"{number}\n" for number in range(100_000)))
    with pytest.raises(OutputError, match="is not the output that belongs to this --state"):
        Watch(replace(plan, output=tmp_path / "other.jsonl"))
    assert len((tmp_path / "other.jsonl").read_text().splitlines()) == 100_000


def test_an_input_that_cannot_be_sought_goes_on_with_what_comes(plan: WatchPlan) -> None:
    """The model, the threshold and the counts continue; what was said after the snapshot stays said."""
    table = rows()
    first, second = as_csv(table[:150]), as_csv(table[150:], start=150)
    Watch(replace(plan, input=a_pipe(first))).run()
    assert plan.output is not None
    said = plan.output.read_bytes()
    with plan.output.open("ab") as output:  # as if a kill had come after two more lines and a half
        output.write(b'{"row": 151}\n{"row": 152}\n{"row": 15')
    counts = Watch(replace(plan, input=a_pipe(second))).run()
    lines = lines_of(plan.output)
    assert counts.samples == 402
    assert plan.output.read_bytes().startswith(said)
    assert [line["row"] for line in lines] == list(range(1, 403))
    expected = detector()().process(table).scores
    assert [line["score"] for line in lines[152:]] == expected[150:].tolist()


def test_a_last_line_without_an_end_counts_for_good_in_a_pipe(plan: WatchPlan) -> None:
    text = as_csv(rows(100))
    assert Watch(replace(plan, input=a_pipe(text[:-1]))).run().samples == 100
    assert Watch(replace(plan, input=a_pipe(text))).run().samples == 200


def test_without_scaling_rows_that_the_detector_refuses_are_malformed(plan: WatchPlan) -> None:
    table = rows(60)
    table[40, 2] = -1.0
    table[50, 0] = 1e90
    assert plan.input is not None
    plan.input.write_text(as_csv(table))
    plan = replace(plan, detector=detector(scale=None))
    faults: list[str] = []
    counts = Watch(plan, Observer(fault=lambda fault: faults.append(str(fault)))).run()
    assert (counts.samples, counts.malformed) == (58, 2)
    assert "line 42: Negative values" in faults[0]
    assert 'column "power"' in faults[0]
    assert "line 52: Values up to 1e+90 are too large" in faults[1]
    lines = lines_of(plan.output)
    kept = np.delete(table, [40, 50], axis=0)
    assert [line["score"] for line in lines[10:]] == detector(scale=None)().process(kept).scores[10:].tolist()
    assert lines[40]["time"] == "t41"


def test_strict_ends_at_a_row_that_the_detector_refuses(plan: WatchPlan) -> None:
    table = rows(60)
    table[40, 2] = -1.0
    assert plan.input is not None
    plan.input.write_text(as_csv(table))
    with pytest.raises(InputError, match=r"line 42: Negative values .*\(--strict\)"):
        Watch(replace(plan, detector=detector(scale=None), strict=True)).run()
    assert len(lines_of(plan.output)) == 40


def test_an_error_of_the_detector_itself_is_not_hidden(plan: WatchPlan) -> None:
    with pytest.raises(ValueError, match="n_components must be"):
        Watch(replace(plan, detector=detector(n_components=0))).run()


def test_a_model_that_was_made_elsewhere_goes_on(plan: WatchPlan, tmp_path: Path) -> None:
    import pandas as pd

    table = rows()
    trained = detector()().fit(pd.DataFrame(table, columns=list(NAMES)))
    trained.save(tmp_path / "model")

    def load() -> OnlineNSNMF:
        import penstock

        model: OnlineNSNMF = penstock.load(tmp_path / "model")
        return model

    plan = replace(plan, detector=load)
    for _ in range(20):
        Watch(plan).run(after(3))
    Watch(plan).run()
    assert [line["score"] for line in lines_of(plan.output)] == trained.process(
        pd.DataFrame(table, columns=list(NAMES))
    ).scores.tolist()

    with pytest.raises(InputError, match="made for the columns flow, head, power, speed, but these are speed, flow"):
        Watch(
            replace(plan, table=TableOptions(columns=("speed", "flow")), output=tmp_path / "b", state=tmp_path / "c")
        ).run()


def test_snapshots_come_in_time_while_nothing_comes(plan: WatchPlan) -> None:
    """A stream that pauses is not left without a snapshot of its last samples."""
    assert plan.state is not None
    plan = replace(plan, follow=True, snapshot_every=10**6, snapshot_seconds=0.01)
    state, sizes = plan.state, []

    def stopped() -> bool:
        sizes.append(len(list(state.glob("snapshot-*"))))
        return len(sizes) > 8

    Watch(plan).run(stopped)
    assert max(sizes) >= 2


def test_a_log_that_was_rotated_while_nobody_watched(plan: WatchPlan, tmp_path: Path) -> None:
    text = as_csv(rows(120)).splitlines(keepends=True)
    assert plan.input is not None
    assert plan.output is not None
    plan = replace(plan, follow=True)
    plan.input.write_text("".join(text[:41]))
    Watch(plan).run(after(6))
    with plan.input.open("a") as file:
        file.write("".join(text[41:81]))
    plan.input.rename(tmp_path / "in.csv.1")
    plan.input.write_text("".join([text[0], *text[81:]]))
    Watch(plan).run(after(14))
    plan.input.write_text("".join(text))
    assert plan.output.read_bytes() == unbroken(replace(plan, follow=False), tmp_path)


def test_the_input_cannot_be_the_output(plan: WatchPlan) -> None:
    assert plan.input is not None
    before = plan.input.read_bytes()
    with pytest.raises(OutputError, match="is the input"):
        Watch(replace(plan, output=plan.input, overwrite=True))
    assert plan.input.read_bytes() == before


def test_another_model_is_refused_although_it_has_the_same_parameters(plan: WatchPlan) -> None:
    Watch(replace(plan, origin="one")).run(after(2))
    with pytest.raises(SnapshotError, match="model was 'one', is 'two'"):
        Watch(replace(plan, origin="two"))


def test_an_empty_input_is_no_error(plan: WatchPlan) -> None:
    assert plan.input is not None
    plan.input.write_text("")
    assert Watch(plan).run() == Counts()
    plan.input.write_text("time,flow\n")
    assert Watch(plan).run() == Counts()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("output",), "17"),
        (("output",), -1),
        (("output",), None),
        (("output_tail",), None),
        (("counts", "samples"), "many"),
        (("counts", "flagged"), -1),
        (("input",), []),
        (("input", "line"), None),
        (("input", "file"), "in.csv"),
        (("input", "file", "offset"), -3),
        (("input", "file", "kind"), "drum"),
        (("input", "table", "format"), "xml"),
        (("input", "table", "delimiter"), ""),
        (("input", "table", "variables"), [99]),
        (("input", "table", "names"), 5),
        (("detector",), 5),
    ],
)
def test_a_sound_snapshot_of_another_shape_is_passed_over(
    plan: WatchPlan, tmp_path: Path, place: tuple[str, ...], value: object
) -> None:
    from penstock.storage import read_state, write_state

    expected = unbroken(plan, tmp_path)
    Watch(plan).run(after(8))
    assert plan.state is not None
    assert plan.output is not None
    *_, newest = sorted(plan.state.glob("snapshot-*"))
    state = read_state(newest)[1]
    part = state
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    write_state(newest, "snapshot", state)
    warnings: list[str] = []
    Watch(plan, Observer(warning=warnings.append)).run()
    assert plan.output.read_bytes() == expected
    assert [newest.name in warning for warning in warnings] == [True]


def newest_counts(plan: WatchPlan) -> dict[str, int]:
    from penstock.storage import read_state

    assert plan.state is not None
    counts: dict[str, int] = read_state(max(plan.state.glob("snapshot-*")))[1]["counts"]
    return counts


def test_an_error_in_a_pipe_does_not_take_what_was_learnt(plan: WatchPlan) -> None:
    plan = replace(plan, strict=True, snapshot_every=10**6)
    with pytest.raises(InputError, match="--strict"):
        Watch(replace(plan, input=a_pipe(as_csv(rows()[:150]) + "t,1\n"))).run()
    assert newest_counts(plan)["samples"] == 150
    with pytest.raises(InputError, match="columns have changed"):
        Watch(replace(plan, input=a_pipe("time,flow\n"))).run()
    assert Watch(replace(plan, input=a_pipe(as_csv(rows()[150:], start=150)))).run().samples == 400
    expected = detector()().process(rows()).scores
    assert [line["score"] for line in lines_of(plan.output)][150:] == expected[150:].tolist()


def test_a_reader_that_goes_away_does_not_take_what_was_learnt(
    plan: WatchPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise BrokenPipeError

    plan = replace(plan, snapshot_every=10**6)
    watch = Watch(replace(plan, input=a_pipe(as_csv(rows(150)))))
    monkeypatch.setattr(watch._sink, "write", gone)
    with pytest.raises(BrokenPipeError):
        watch.run()
    assert newest_counts(plan)["samples"] == 150


def test_lines_that_can_be_read_again_are_not_passed_over_after_an_error(plan: WatchPlan, tmp_path: Path) -> None:
    """The detector refuses a row in the middle of a batch: the rows after it have not been seen."""
    table = rows(60)
    table[40, 2] = -1.0
    assert plan.input is not None
    plan.input.write_text(as_csv(table))
    plan = replace(plan, detector=detector(scale=None), strict=True, snapshot_every=10**6)
    with pytest.raises(InputError, match="line 42"):
        Watch(plan).run()
    with pytest.raises(InputError, match="line 42"):
        Watch(plan).run()
    Watch(replace(plan, strict=False)).run()
    assert plan.output is not None
    assert plan.output.read_bytes() == unbroken(replace(plan, strict=False), tmp_path)


def test_a_file_after_a_pipe_can_be_continued_at_once(plan: WatchPlan, capfd: pytest.CaptureFixture[str]) -> None:
    Watch(replace(plan, output=None)).run(after(8))
    Watch(plan).close()  # as if killed after some lines
    assert plan.output is not None
    printed = len(capfd.readouterr().out.splitlines())
    plan.output.write_text(f'{{"row": {printed + 1}, "score": 0.5')
    assert Watch(plan).run().samples == 400
    assert [line["row"] for line in lines_of(plan.output)] == list(range(printed + 1, 401))


def test_a_closed_standard_input_is_an_input_error(plan: WatchPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="Standard input is closed"):
        Watch(replace(plan, input=None))
