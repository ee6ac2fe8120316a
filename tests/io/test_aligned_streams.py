"""Streams of single readings: the same rows and scores as those of the file, in any cut, after any kill."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from live_service import options, running
from live_tables import lines_of

import penstock
from penstock.io import Aligning, InputError, plain_alignment
from penstock.live import Monitor, WatchOptions
from penstock.live.monitor import Observer
from penstock.live.runtime import Delivery

TAGS = {"load": 60, "oil": 60, "flow": 20, "level": 300}  # seconds between readings


@pytest.fixture(scope="module")
def plant() -> pd.DataFrame:
    """Readings of four tags, each with a clock of its own, in order of time."""
    rng = np.random.default_rng(0)
    base = np.cumsum(rng.normal(size=2 * 1440))
    parts = []
    for number, (tag, step) in enumerate(TAGS.items()):
        seconds = np.arange(7 * number, 2 * 86_400, step)
        values = base[seconds // 60] * (1, 0.5, -0.3, 0.2)[number] + 0.1 * rng.normal(size=len(seconds))
        parts.append(pd.DataFrame({"seconds": seconds, "tag": tag, "value": values.round(4)}))
    table = pd.concat(parts).sort_values("seconds", kind="stable", ignore_index=True)
    table.insert(0, "time", pd.Timestamp("2024-05-01") + pd.to_timedelta(table.pop("seconds"), unit="s"))
    return table


@pytest.fixture(scope="module")
def model(plant: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("aligned") / "unit.penstock"
    penstock.fit_model(plant[plant["time"] < "2024-05-02"], method="sensors").save(path)
    return path


def later(plant: pd.DataFrame) -> pd.DataFrame:
    new = plant[plant["time"] >= "2024-05-02"].reset_index(drop=True)
    new.loc[
        (new["tag"] == "oil") & (new["time"] > "2024-05-02 12:00") & (new["time"] < "2024-05-02 13:00"), "value"
    ] += 5
    return new


WRITERS = {
    "long csv": lambda table, path: table.to_csv(path, index=False),
    "day first": lambda table, path: table.assign(time=table["time"].dt.strftime("%d/%m/%Y %H:%M:%S")).to_csv(
        path, index=False
    ),
    "messages": lambda table, path: path.write_text(
        "".join(
            json.dumps({"tag": tag, "time": str(time), "value": value}) + "\n"
            for time, tag, value in table.itertuples(index=False)
        )
    ),
    "objects": lambda table, path: path.write_text(
        "".join(
            json.dumps({"time": str(time), tag: value}) + "\n" for time, tag, value in table.itertuples(index=False)
        )
    ),
}


@pytest.mark.filterwarnings("ignore:Dates in column")
@pytest.mark.parametrize("written", WRITERS)
def test_watch_gives_the_rows_of_score(plant: pd.DataFrame, model: Path, tmp_path: Path, written: str) -> None:
    new = later(plant)
    expected = penstock.score(penstock.load(model), new)
    WRITERS[written](new, tmp_path / "new.csv")
    order = {"day_first": True} if written == "day first" else {}
    watched = WatchOptions(tmp_path / "new.csv", model=model, output=tmp_path / "out.jsonl", **order)
    counts = Monitor(watched).run()
    lines = lines_of(tmp_path / "out.jsonl")
    assert counts.malformed == 0
    assert [pd.Timestamp(line["time"]) for line in lines] == list(expected.table.time)
    np.testing.assert_array_equal([line["score"] for line in lines], expected.scores)


def test_a_watch_of_readings_goes_on_after_any_step(plant: pd.DataFrame, model: Path, tmp_path: Path) -> None:
    later(plant)[:3000].to_csv(tmp_path / "new.csv", index=False)
    given = {"input": tmp_path / "new.csv", "model": model, "alarms": tmp_path / "whole-alarms.jsonl"}
    Monitor(WatchOptions(**given, output=tmp_path / "whole.jsonl")).run()
    whole, output = (tmp_path / "whole.jsonl").read_bytes(), tmp_path / "out.jsonl"
    given |= {"output": output, "state": tmp_path / "state", "snapshot_every": 40, "alarms": tmp_path / "a.jsonl"}
    for _ in range(500):
        steps = iter([False] * 6 + [True])
        Monitor(WatchOptions(**given)).run(lambda steps=steps: next(steps))
        assert whole.startswith(output.read_bytes())
        if output.read_bytes() == whole:
            break
    assert output.read_bytes() == whole
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "whole-alarms.jsonl").read_bytes()


def test_late_and_broken_readings_are_said(plant: pd.DataFrame, model: Path, tmp_path: Path) -> None:
    new = later(plant)[:400].astype({"time": str, "value": object})
    new.loc[50, "value"] = "Bad Input"
    new.loc[60, "value"] = "high"
    new.loc[70, "time"] = "soon"
    new.loc[80, "tag"] = None
    new.loc[399, "time"] = new.loc[0, "time"]
    new.to_csv(tmp_path / "new.csv", index=False)
    faults, remarks = [], []
    watched = WatchOptions(tmp_path / "new.csv", model=model, output=tmp_path / "out.jsonl")
    Monitor(watched, Observer(fault=faults.append, warning=remarks.append)).run()
    assert sorted(fault.line for fault in faults) == [62, 72, 82]
    assert any("1 reading" in remark for remark in remarks)


def test_readings_sorted_by_tag_are_refused(plant: pd.DataFrame, model: Path, tmp_path: Path) -> None:
    later(plant).sort_values("tag", kind="stable").to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(InputError, match="not in order of time"):
        Monitor(WatchOptions(tmp_path / "new.csv", model=model, output=tmp_path / "out.jsonl")).run()


def test_readings_by_tag_that_begin_with_one_the_model_does_not_have_are_refused(plant, model, tmp_path):
    first = pd.DataFrame({"time": plant["time"][:500], "tag": "a counter", "value": np.arange(500)})
    by_tag = pd.concat([first, later(plant).sort_values("tag", kind="stable")])
    by_tag.to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(InputError, match="order of time"):
        Monitor(WatchOptions(tmp_path / "new.csv", model=model, output=tmp_path / "rows.jsonl")).run()


def test_a_stream_without_a_tag_of_the_model_is_refused(plant, model, tmp_path):
    later(plant).replace({"tag": {tag: f"unit 2 {tag}" for tag in TAGS}}).to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(InputError, match="unit 2 load"):
        Monitor(WatchOptions(tmp_path / "new.csv", model=model, output=tmp_path / "rows.jsonl")).run()


def test_readings_without_a_clock_are_refused(plant: pd.DataFrame, tmp_path: Path) -> None:
    plant[:300].to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(InputError, match="--step"):
        Monitor(WatchOptions(tmp_path / "new.csv", output=tmp_path / "out.jsonl")).run()
    watched = WatchOptions(
        tmp_path / "new.csv", output=tmp_path / "out.jsonl", step="1min", columns=("load", "oil", "flow"), warmup=20,
        n_components=2,
    )  # fmt: skip
    counts = Monitor(watched).run()
    assert counts.samples > 40
    assert counts.malformed == 0


def test_a_model_of_rows_takes_readings_too(plant: pd.DataFrame, tmp_path: Path) -> None:
    """Rows are made of them with the usual step of the model."""
    wide = plant[plant["tag"] != "level"].assign(time=plant["time"].dt.floor("1min"))
    wide = wide.groupby(["time", "tag"])["value"].mean().unstack().reset_index()
    good = wide[wide["time"] < "2024-05-02"]
    penstock.fit_model(good).save(tmp_path / "unit.penstock")
    long = wide[wide["time"] >= "2024-05-02"].melt("time").sort_values("time", kind="stable")
    long.to_csv(tmp_path / "new.csv", index=False)
    Monitor(WatchOptions(tmp_path / "new.csv", model=tmp_path / "unit.penstock", output=tmp_path / "out.jsonl")).run()
    expected = penstock.score(penstock.load(tmp_path / "unit.penstock"), wide[wide["time"] >= "2024-05-02"])
    np.testing.assert_allclose([line["score"] for line in lines_of(tmp_path / "out.jsonl")], expected.scores, rtol=1e-9)


def test_damaged_states_are_refused() -> None:
    aligning = Aligning(plain_alignment(60, None, ["a", "b"], ["c"]), ["c"])
    state = json.loads(json.dumps(aligning.state()))
    Aligning(plain_alignment(60, None, ["a", "b"], ["c"]), ["c"]).restore(state)
    for wrong in (
        {**state, "words": {}},
        {**state, "marks": [1, 2]},
        {**state, "codes": [7]},
        {**state, "last_times": "x"},
    ):
        with pytest.raises((ValueError, TypeError, LookupError)):
            Aligning(plain_alignment(60, None, ["a", "b"], ["c"]), ["c"]).restore(wrong)


def served(folder: Path, model: Path, parts: list[str], restarts: int = 0) -> list[dict[str, object]]:
    """What `serve` says of a text of readings that is posted in parts, with restarts in between."""
    given, sent, size = options(folder, model=model), 0, -(-len(parts) // (restarts + 1))
    for start in range(0, len(parts), size):
        with running(given) as service:
            for part in parts[start : start + size]:
                answer = service.deliver(Delivery("unit1", part.encode(), "test", ("after", sent))).result(60)
                assert answer["malformed"] == 0
                sent += 1
            rows = [
                {"time": time, "score": score}
                for block in service.store.rows(service.assets["unit1"].record.id)
                for time, score in zip(block.times, block.scores.scores.tolist(), strict=True)
            ]
    return rows


@pytest.mark.parametrize("restarts", [0, 3])
def test_serve_gives_the_rows_of_score(plant: pd.DataFrame, model: Path, tmp_path: Path, restarts: int) -> None:
    new = later(plant)[:2500]
    expected = penstock.score(penstock.load(model), new)
    header, *lines = new.to_csv(index=False).splitlines(keepends=True)
    parts = [header + "".join(lines[start : start + 83]) for start in range(0, len(lines), 83)]
    rows = served(tmp_path, model, parts, restarts)
    assert len(expected.scores) - 3 <= len(rows) < len(expected.scores)  # the last steps are not over
    assert [row["time"] for row in rows] == [f"{time:%Y-%m-%dT%H:%M:%S}" for time in expected.table.time[: len(rows)]]
    np.testing.assert_array_equal([row["score"] for row in rows], expected.scores[: len(rows)])


def test_messages_of_single_tags(plant: pd.DataFrame, model: Path, tmp_path: Path) -> None:
    new = later(plant)[:300]
    expected = penstock.score(penstock.load(model), new)
    messages = [json.dumps({"time": str(time), tag: value}) for time, tag, value in new.itertuples(index=False)]
    rows = served(tmp_path, model, messages)
    assert len(rows) >= len(expected.scores) - 3
    np.testing.assert_array_equal([row["score"] for row in rows], expected.scores[: len(rows)])
