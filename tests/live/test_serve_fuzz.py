"""Whatever is sent to `penstock serve`, the other assets are scored. `live_fuzz.py` sends more of it."""

from __future__ import annotations

from pathlib import Path

from live_fuzz import play


def test_hostile_rows_texts_and_requests(tmp_path: Path) -> None:
    found = play(tmp_path, 400)
    assert found.failed == []
    assert sum(found.statuses.values()) >= 400
    assert found.statuses[200] > 20
    assert found.others > 10
    assert found.longest_wait < 10  # on a machine that does nothing else, well below a second
    assert found.memory[1] - found.memory[0] < 300
