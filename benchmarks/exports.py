"""One plant in sixty forms of export: is its fault found, when does it begin, and is the right sensor named?

    python benchmarks/exports.py [--forms FORM …] [--seeds 0 1] [--faults bearing leak …] [--days 21] [--live bearing]

`tests/support/exports.py` writes the forms and says what is right. Every export is given to `penstock.detect` without
options. The table has, for each form, how many records came out right of each kind of fault, and why others did not:
"error" is an exception, all else a wrong answer. "live" is the other way through the package, for the faults after
`--live`: a model is fitted to the export of the good days, the export of the others is scored and watched as a stream,
and both must agree row by row, in scores (to 1e-12) and times; "-" where a source is no text that can be streamed.

A kind of fault says something about forms only where the plain file is right in nearly all records: `--forms plain
--seeds` with fifty numbers is that control.
CPU seconds are those of `detect` alone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import penstock
from tests.support.exports import FORMS, Export, draw_record, try_export
from tests.support.plant import FAULTS, Record

STREAMED = (".csv", ".txt", ".gz", ".tsv", ".jsonl")
CLOSE = 1e-12
LIMIT = 40  # CPU seconds of a record: some forms are read as tables of another kind, which takes minutes


@dataclass
class Row:
    """What came of one form."""

    right: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    live: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def write(form: str, record: Record, folder: Path, name: str) -> Export:
    (folder / name).mkdir()
    return FORMS[form](record, folder / name)


def go_live(form: str, record: Record, folder: Path) -> str:
    """Fit, score and watch; return "same", "-" or what differs."""
    since = record.fault.start.normalize()
    good = write(form, record.between(record.since, since), folder, "good")
    new = write(form, record.between(since, record.until), folder, "new")
    if not isinstance(new.source, Path) or new.source.suffix not in STREAMED:
        return "-"
    model = penstock.fit_model(good.source, **good.options)
    model.save(folder / "plant.penstock")
    findings = penstock.score(model, new.source, **new.options)
    return compare_watch(findings, new, record, folder)


def compare_watch(findings: Any, new: Export, record: Record, folder: Path) -> str:
    """Watch what was scored; return "same", or what differs from the scores."""
    from penstock.live import Monitor, WatchOptions

    verdicts, alarms = folder / "verdicts.jsonl", folder / "alarms.jsonl"
    Monitor(WatchOptions(new.source, model=folder / "plant.penstock", output=verdicts, alarms=alarms)).run()
    rows = [json.loads(line) for line in verdicts.read_text().splitlines()]
    found = np.array([np.nan if row["score"] is None else row["score"] for row in rows], dtype=np.float64)
    if len(found) != len(findings.scores):
        return f"watch has {len(found):,} rows, score {len(findings.scores):,}"
    far = ~(np.abs(found - findings.scores) <= CLOSE) & ~(np.isnan(found) & np.isnan(findings.scores))
    if far.any():
        return f"{far.mean():.0%} of the scores differ"
    stamps = pd.DatetimeIndex(findings.table.time)
    stamps = stamps.tz_localize("UTC") if stamps.tz is None else stamps.tz_convert("UTC")
    changes = [json.loads(line) for line in alarms.read_text().splitlines()]
    raised = [
        pd.Timestamp(round(each["time"] * 1e6), unit="us", tz="UTC") for each in changes if each["kind"] == "raised"
    ]
    if set(raised) - set(stamps):
        return f"an alarm at {raised[0]:%Y-%m-%d %H:%M}, which is no time of score"
    end = (record.fault.end + new.shift if findings.table.time.tz else new.at(record.fault.end)).tz_localize("UTC")
    return "same" if any(moment < end for moment in raised) else "no alarm by the end of the fault"


def without_crash(work: Callable[[], str]) -> str:
    """Return what a piece of work says, or its exception as "error: …"."""
    try:
        return work()
    except Exception as error:  # parts of the package may not be there yet
        if "-v" in sys.argv:
            traceback.print_exc()
        return f"error: {type(error).__name__}: {' '.join(str(error).split())}"


def try_form(form: str, records: list[Record], live: list[str]) -> Row:
    row = Row()
    for record in records:
        kind = record.fault.kind
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            export = write(form, record, folder, "whole")
            started = time.process_time()
            result, why = try_export(penstock.detect, record, export)
            row.seconds += time.process_time() - started
            row.tried[kind] += 1
            row.right[kind] += result == "right"
            row.errors += result == "error"
            if result != "right":
                row.reasons[f"{'error: ' if result == 'error' else ''}{why} [{kind} {record.seed}]"] += 1
            if kind in live and not export.hint:
                row.live[without_crash(partial(go_live, form, record, folder))] += 1
    return row


def try_in_process(form: str, records: list[Record], live: list[str]) -> Row:
    """Try a form in a process of its own, which the system ends if it takes too long."""
    context = multiprocessing.get_context("fork")
    reading, writing = context.Pipe(duplex=False)

    def work() -> None:
        seconds = LIMIT * len(records)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        writing.send(try_form(form, records, live))

    process = context.Process(target=work)
    process.start()
    writing.close()
    try:
        row: Row = reading.recv()
    except EOFError:  # it ended without a result
        said = f"error: ended after {LIMIT * len(records)} CPU seconds, or crashed"
        kinds = Counter(record.fault.kind for record in records)
        row = Row(tried=kinds, errors=len(records), reasons=Counter([said]), seconds=float(LIMIT * len(records)))
    process.join()
    return row


def print_row(form: str, row: Row, kinds: list[str], width: int) -> None:
    counts = "".join(f"{f'{row.right[kind]}/{row.tried[kind]}':>14}" for kind in kinds)
    live = ", ".join(f"{count}× {text}"[:width] for text, count in row.live.most_common(2)) or "-"
    print(f"{form:27}{counts}{row.errors:>8}{row.seconds / row.tried.total():>8.2f}  {live}")
    for reason, _ in row.reasons.most_common(3):
        print(f"{'':29}{reason[:width]}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forms", nargs="+", choices=list(FORMS), default=list(FORMS), metavar="FORM")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--faults", nargs="+", choices=list(FAULTS), default=list(FAULTS))
    parser.add_argument("--days", type=int, default=21)
    parser.add_argument("--live", nargs="*", choices=list(FAULTS), default=["bearing"])
    parser.add_argument("--width", type=int, default=150, help="of what is said about a form")
    parser.add_argument("-v", action="store_true", help="show exceptions of the live part in full")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    records = [draw_record(kind, seed, chosen.days) for kind in chosen.faults for seed in chosen.seeds]
    print(f"{'form':27}{''.join(f'{kind:>14}' for kind in chosen.faults)}{'errors':>8}{'CPU s':>8}  live")
    totals: defaultdict[str, int] = defaultdict(int)
    for form in chosen.forms:
        row = try_in_process(form, records, chosen.live)
        print_row(form, row, chosen.faults, chosen.width)
        for kind in chosen.faults:
            totals[kind] += row.right[kind]
    tried = len(chosen.forms) * len(chosen.seeds)
    print(f"{'right':27}{''.join(f'{totals[kind] / tried:>14.1%}' for kind in chosen.faults)}")
    print(f"of all: {sum(totals.values()) / tried / len(chosen.faults):.1%}")


if __name__ == "__main__":
    main()
