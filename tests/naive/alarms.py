"""Alarms of one asset straight from the rules in docs/alarms.md: each decision looks back over all earlier rows."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple


class Row(NamedTuple):
    """Time, score (None: not scored), threshold, and names of sensors with equal evidence."""

    time: float
    score: float | None
    threshold: float
    names: tuple[str, ...]


def alarms(
    rows: list[Row],
    on_delay: float,
    off_delay: float,
    dead_band: float,
    min_duration: float,
    rejoin: float,
    no_data: float,
) -> list[tuple[float, str, int]]:
    """Return (time, what, number of the alarm) for all that is raised, returns and ends; no operator acts."""
    found: list[tuple[float, str, int]] = []
    known: list[dict[str, Any]] = []  # alarms: about, names, raised, ended
    level = ["-" if row.score is None else _level(row, dead_band) for row in rows]
    free = [False] * len(rows)  # high rows that were part of no alarm when they came
    seen: list[set[int]] = [set() for _ in rows]  # the alarms that a row was part of, or kept up
    used = -1  # rows up to this one cannot become an alarm any more

    def begin(about: str, names: list[str], since: float, time: float) -> None:
        for number in reversed(range(len(known))):
            old = known[number]
            same = old["about"] == about and _meet(old["names"][:3], names[:3])
            if same and old["ended"] is not None and since - old["ended"] <= rejoin:
                old.update(raised=time, ended=None, names=list(dict.fromkeys(old["names"] + names)))
                found.append((time, "returned", number + 1))
                return
        known.append({"about": about, "names": names, "raised": time, "ended": None})
        found.append((time, "raised", len(known)))

    def end(number: int, time: float) -> None:
        known[number]["ended"] = time
        found.append((time, "ended", number + 1))

    for i, row in enumerate(rows):
        steps = [after.time - before.time for before, after in pairwise(rows[:i]) if after.time > before.time][-9:]
        if no_data and i and len(steps) >= 3 and row.time >= rows[i - 1].time + max(no_data, 3 * median(steps)):
            used = i - 1
            begin("no data", [], rows[i - 1].time, rows[i - 1].time + max(no_data, 3 * median(steps)))
        for number, alarm in enumerate(known):
            if alarm["about"] == "no data" and alarm["ended"] is None:
                end(number, row.time)
        if level[i] == "-":
            continue
        active = [n for n, alarm in enumerate(known) if alarm["about"] == "alarm" and alarm["ended"] is None]
        for number in active:
            if level[i] == "between" or (level[i] == "high" and _meet(row.names[:3], known[number]["names"])):
                seen[i].add(number)
        for number in active:
            unseen = []
            for j in range(i, -1, -1):
                if level[j] == "-":
                    continue
                if number in seen[j] or rows[j].time < known[number]["raised"] or j <= known[number].get("row", -1):
                    break
                unseen.append(rows[j].time)
            long_enough = len(unseen) > 1 and row.time - min(unseen) >= off_delay
            if long_enough and row.time - known[number]["raised"] >= min_duration:
                end(number, row.time)
            elif number in seen[i] and level[i] == "high":
                known[number]["names"] = list(dict.fromkeys(known[number]["names"] + list(row.names)))
                known[number]["part"].append(i)
        free[i] = level[i] == "high" and not seen[i]
        if not free[i]:
            continue
        mine = []
        for j in range(i, used, -1):
            if level[j] == "low" or (level[j] == "high" and not free[j]):
                break
            if level[j] == "high":
                mine.append(j)
        if len(mine) > 1 and row.time - rows[mine[-1]].time >= on_delay:
            names = list(dict.fromkeys(name for j in reversed(mine) for name in rows[j].names))
            used, first = i, rows[mine[-1]].time
            still = [n for n in active if known[n]["ended"] is None]
            joined = [n for n in still if first - max(rows[j].time for j in known[n]["part"]) <= off_delay]
            if joined:
                seen[i].add(joined[0])
                known[joined[0]]["part"].append(i)
                known[joined[0]]["names"] = list(dict.fromkeys(known[joined[0]]["names"] + names))
                continue
            begin("alarm", names, first, row.time)
            for alarm in known:
                if alarm["ended"] is None and alarm["raised"] == row.time:
                    alarm["row"] = i
                    alarm.setdefault("part", []).append(i)
    return found


def _level(row: Row, dead_band: float) -> str:
    assert row.score is not None
    if row.score > row.threshold:
        return "high"
    return "low" if row.score <= row.threshold - dead_band * abs(row.threshold) else "between"


def _meet(one: Any, other: Any) -> bool:
    return not one or not other or bool(set(one) & set(other))
