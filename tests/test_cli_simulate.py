"""`penstock simulate`."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pandas as pd
import pytest

from penstock.cli import main
from penstock.simulate import simulate_hydropower


def test_a_plant_is_written_and_not_written_over(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "plant"
    assert main(["simulate", "hydropower", str(folder), "--seed", "1", "--complete"]) == 0
    assert capfd.readouterr().out.split() == [
        str(folder / name) for name in ("plant.csv", "truth.csv", "variables.csv")
    ]
    table = pd.read_csv(folder / "plant.csv", index_col="time", parse_dates=True)
    assert table.shape == (9_219, 222)
    assert not table.isna().any().any()
    before = (folder / "plant.csv").stat().st_mtime_ns
    assert main(["simulate", "hydropower", str(folder)]) == 2
    assert "Choose another folder, or overwrite=True (--overwrite)" in capfd.readouterr().err
    assert (folder / "plant.csv").stat().st_mtime_ns == before


@pytest.mark.slow
def test_areas_and_overwriting(tmp_path: Path) -> None:
    (tmp_path / "plant.csv").touch()
    assert main(["simulate", "hydropower", str(tmp_path), "--areas", "--overwrite"]) == 0
    assert (tmp_path / "areas" / "turbine.csv").exists()
    assert (tmp_path / "plant.csv").stat().st_size > 0


def test_a_varied_plant_without_faults(tmp_path: Path) -> None:
    assert main(["simulate", "hydropower", str(tmp_path), "--seed", "3", "--vary", "--no-faults"]) == 0
    truth = pd.read_csv(tmp_path / "truth.csv", parse_dates=["start", "end"])
    expected = simulate_hydropower(3, vary=True, faults=False)
    assert not truth["is_fault"].any()
    assert truth["start"].tolist() == expected.events["start"].tolist()
    table = pd.read_csv(tmp_path / "plant.csv", index_col="time", parse_dates=True)
    pd.testing.assert_frame_equal(table, expected.table, check_index_type=False, check_freq=False)


def test_a_write_that_fails_is_said_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plant.csv").write_text("old")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    assert main(["simulate", "hydropower", str(tmp_path), "--overwrite"]) == 2
    assert "No space left on device" in capfd.readouterr().err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("plant.csv", "old")]


def test_a_wrong_use_names_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "hydropower"]) == 2
    assert "See 'penstock simulate hydropower --help'" in capfd.readouterr().err
    assert main(["watch", "--nonsense"]) == 2
    assert "See 'penstock watch --help'" in capfd.readouterr().err
