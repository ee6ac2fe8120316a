"""Findings as tables, CSV, JSON and workbooks: complete findings come in, tables and texts go out."""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

import penstock
from penstock.detection import Findings, TagSummary, TimeSummary

# A cell that begins so is a formula to a spreadsheet, or hides one: as it is, after blanks or quotes, in full width.
_OBEYED = re.compile(r"""[\t\r\n]|[\s'"]*[=+\-@＝＋－＠]""")
_QUOTED = re.compile(r'[,;\t"\r\n]')  # more than RFC 4180 asks for: some programs part cells at ; or a tab
_EMPTY = '""'  # an empty line would be no line
_UNITS = ("s", "ms", "us", "ns")


def as_csv(frame: pd.DataFrame, *, header: bool = True) -> str:
    r"""A table without its index as RFC 4180 has it: commas, CR LF, quotes where they are needed or a ; or tab is.

    Missing values are empty, time stamps are ISO 8601, numbers read back to the same float. A text that a spreadsheet
    would take for a formula gets a single quote in front, which spreadsheets hide: one that begins with = + - @ (full
    width too, and after blanks and quotes), a tab or a line end. Numbers and times stay as they are. Not covered is a
    program that parts cells at ; or tabs and heeds quotes only where a line begins: set it to commas.

    >>> as_csv(pd.DataFrame({"score": [0.1, float("nan")], "variables": ["=1+1", "flow, head"]}))
    'score,variables\r\n0.1,\'=1+1\r\n,"flow, head"\r\n'
    """
    names = [tuple(_field(str(name)) for name in frame.columns)] if header else []
    lines = zip(*(_cells(frame[name]) for name in frame.columns), strict=True)
    return "".join(f"{','.join(line) or _EMPTY}\r\n" for line in (*names, *lines))


def iso_times(times: pd.DatetimeIndex) -> list[str]:
    """ISO 8601, all with the same precision: seconds, or as many digits as the finest of them needs; "" if missing.

    >>> iso_times(pd.DatetimeIndex(["2024-03-31 01:59", "2024-03-31 03:00"], tz="Europe/Berlin"))
    ['2024-03-31T01:59:00+01:00', '2024-03-31T03:00:00+02:00']
    """
    local = times.tz_localize(None)
    known = local.dropna()
    unit = next((unit for unit in _UNITS if (known == known.as_unit(unit)).all()), "ns")  # type: ignore[arg-type]
    texts = np.datetime_as_string(local.to_numpy(), unit=unit, casting="unsafe").astype(object)  # type: ignore[call-overload]
    if times.tz is not None:
        utc = times.tz_convert("UTC").tz_localize(None)
        which, offsets = pd.factorize(local - utc)
        texts = texts + np.array([_offset(offset) for offset in offsets] + [""], dtype=object)[which]
    return ["" if gone else str(text) for gone, text in zip(times.isna(), texts, strict=True)]


def _offset(offset: pd.Timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def _cells(column: pd.Series) -> list[str]:
    if isinstance(column.dtype, pd.DatetimeTZDtype) or column.dtype.kind == "M":
        return iso_times(pd.DatetimeIndex(column))
    if column.dtype == np.bool_:
        return ["true" if value else "false" for value in column.tolist()]
    missing = column.isna().to_numpy()
    values = column.tolist()
    return ["" if gone else _field(value) for gone, value in zip(missing, values, strict=True)]


def _field(value: Any) -> str:
    if not isinstance(value, str):
        return str(value)
    text = f"'{value}" if _OBEYED.match(value) else value
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED.search(text) else text


def plain(value: Any) -> Any:
    """The value in JSON's types: times in ISO 8601, durations in seconds, None for what is not a finite number.

    >>> plain({"time": pd.Timestamp("2024-05-01 10:00"), "score": np.float64("nan"), "rows": (np.int64(3), True)})
    {'time': '2024-05-01T10:00:00', 'score': None, 'rows': [3, True]}
    """
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    make = next((make for kinds, make in _KINDS if isinstance(value, kinds)), None)
    if make is not None:
        return make(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return str(value)


_KINDS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (str, str),
    (bool | np.bool_, bool),
    (int | np.integer, int),
    (float | np.floating, lambda value: float(value) if math.isfinite(value) else None),
    (dt.date, lambda value: value.isoformat()),
    (dt.timedelta, lambda value: value.total_seconds()),
    (pd.DataFrame, lambda value: list(records(value))),
    (Mapping, lambda value: {str(key): plain(entry) for key, entry in value.items()}),
    (np.ndarray | pd.Series | pd.Index, lambda value: [plain(entry) for entry in value.tolist()]),
    (list | tuple, lambda value: [plain(entry) for entry in value]),
    (set | frozenset, lambda value: [plain(entry) for entry in sorted(value, key=str)]),
)


def records(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of a table, without its index, as objects."""
    names = [str(name) for name in frame.columns]
    for row in zip(*(_plain_column(frame[name]) for name in frame.columns), strict=True):
        yield dict(zip(names, row, strict=True))


def _plain_column(column: pd.Series) -> list[Any]:
    """As `plain` of each value, but quicker where there are many."""
    kind = column.dtype.kind
    if kind == "M":
        return [text or None for text in iso_times(pd.DatetimeIndex(column))]
    if kind == "f":
        finite = np.isfinite(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return [value if good else None for good, value in zip(finite.tolist(), column.tolist(), strict=True)]
    if column.dtype == object or kind == "m":
        return [plain(value) for value in column.tolist()]
    return [None if gone else value for gone, value in zip(column.isna().tolist(), column.tolist(), strict=True)]


def as_json(value: Any, **layout: Any) -> str:
    """Strict JSON of a plain value, in the order of its keys; `layout` as in `json.dumps`."""
    return json.dumps(value, **{"ensure_ascii": False, **layout, "allow_nan": False})


ROWS_AT_ONCE = 50_000
_MOST_SHEET_ROWS = 2**20  # of Excel
_OF_INCIDENTS = ["first_sensor", "condition", "source"]  # texts beside each finding


def findings_table(findings: Findings) -> pd.DataFrame:
    """One row per finding, best first: the columns of `findings.top()`, and of its event when it was and its rule.

    The columns are the same for all methods. `seen_as` is what the views of `penstock.Detector` say of the event's
    peak, in words. The incident of each finding has its number, start and end, the sensor to look at first, and whether
    that sensor or the machine is behind it; empty where there is none.

    `event_seconds` is how long the event lasts; without time stamps, `event_span` is how many rows it spans.
    """
    table = _listed(findings)
    events = findings.events.loc[table["event"]]
    reasons = findings.explained.events
    table = table.assign(event_start=events["start"].array, event_end=events["end"].array)
    if findings.table.time is None:
        table["event_span"] = events["duration"].to_numpy()
    else:
        table["event_seconds"] = pd.TimedeltaIndex(events["duration"]).total_seconds().to_numpy()
    texts = [reasons[event].seen_as or None if event in reasons else None for event in table["event"]]
    table["seen_as"] = pd.array(texts, dtype="string")
    of_row = np.zeros(len(findings.scores), dtype=np.int64)
    for incident in findings.incidents:
        of_row[incident.rows] = incident.number
    numbers = pd.Series(of_row[findings.table.values.index.get_indexer(pd.Index(table["row"]))], dtype="Int64")
    table["incident"] = numbers.mask(numbers == 0)
    kept = {"start": "incident_start", "end": "incident_end"} | {name: name for name in _OF_INCIDENTS}
    mine = findings.incident_table[list(kept)].rename(columns=kept).astype(dict.fromkeys(_OF_INCIDENTS, "string"))
    for name, values in mine.convert_dtypes().reindex(numbers).items():  # row numbers stay whole where some lack
        table[str(name)] = values.array
    rules = {event: why.rule.text for event, why in reasons.items() if why.rule is not None}
    table["rule"] = pd.array([rules.get(event) for event in table["event"]], dtype="string")
    names = [name for name in ("group", "mode", "variables") if name in table]
    return table.astype(dict.fromkeys(names, "string"))


def _listed(findings: Findings) -> pd.DataFrame:
    """Return `findings.top()` without an index; where a finding is comes before its score."""
    table = findings.top().reset_index()
    first = [name for name in ("rank", "time", "group") if name in table]
    return table[[*first, *table.columns.drop(first)]]


def scores_tables(findings: Findings) -> Iterator[pd.DataFrame]:
    """One row per row of the table, in order of time, in parts; the event is missing where a row is none."""
    count = len(findings.scores)
    for start in range(0, count, ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        columns: dict[str, Any] = {"row": findings.table.values.index[part].to_numpy()}
        if findings.table.time is not None:
            columns["time"] = findings.table.time[part]
        if findings.table.group is not None:
            columns["group"] = pd.array(findings.table.group.to_numpy()[part], dtype="string")
        events = pd.Series(findings.rows.grouped.of_row[part], dtype="Int64")
        columns |= {
            "score": findings.scores[part],
            "flag": findings.flags[part],
            "event": events.mask(events == 0),
            "mode": pd.array(findings.rows.modes[part].astype(object), dtype="string"),
            "seen": findings.rows.seen[part],
        }
        yield pd.DataFrame(columns)


def document_pieces(findings: Findings) -> Iterator[str]:
    """The text of the document, piece by piece: an entry of a list is a line."""
    yield f'{{\n"summary": {as_json(summarize(findings))}'
    yield f',\n"verdict": {as_json(plain(findings.verdict))}'
    yield from _list_pieces("incidents", incident_records(findings))
    yield from _list_pieces("events", _events(findings))
    days = findings.rows.days.reset_index()
    yield from _list_pieces("days", records(days.assign(day=[str(day)[:10] for day in days["day"]])))
    yield from _list_pieces("findings", records(_listed(findings)))
    yield f',\n"settings": {as_json(plain(findings.settings))}'
    yield from _list_pieces("notes", map(plain, findings.notes))
    yield from _list_pieces("columns", _columns(findings))
    yield "\n}\n"


def _list_pieces(name: str, entries: Iterator[Any]) -> Iterator[str]:
    yield f',\n"{name}": ['
    for number, entry in enumerate(entries):
        yield f"{',' if number else ''}\n  {as_json(entry)}"
    yield "\n]"


def summarize(findings: Findings) -> dict[str, Any]:
    """The findings in figures, in JSON's types."""
    time = findings.table.time
    names, counts = np.unique(findings.rows.modes, return_counts=True)
    agreement = findings.assessment.agreement
    return {
        "penstock": penstock.__version__,
        "source": findings.table.source,
        "rows": len(findings.scores),
        "first_time": None if time is None else plain(time.min()),
        "last_time": None if time is None else plain(time.max()),
        "groups": None if findings.table.group is None else len(findings.table.spans),
        "scored": int(findings.rows.scored.sum()),
        "trained": int(findings.rows.fitted.sum()),
        "self_scored": findings.assessment.self_scored,
        "rebuilt": findings.inputs.rebuilt,
        "inputs": len(findings.inputs.names),
        "left_out": len(findings.inputs.choice.left_out),
        "findings": int(findings.flags.sum()),
        "events": len(findings.events),
        "event_days": len(findings.rows.days),
        "shifts": plain(findings.assessment.shifts),
        "method": findings.assessment.method,
        "threshold": plain(findings.threshold),
        "threshold_expected": plain(findings.assessment.threshold_expected),
        "chance_unknown": findings.assessment.chance_unknown,
        "modes": {str(name): int(count) for name, count in zip(names, counts, strict=True)},
        "agreement": None
        if agreement is None
        else {
            "known_rows": agreement.n_known,
            "ranked_rows": agreement.n_ranked,
            "precision_at_n": plain(agreement.precision_at_n),
            "faults": len(agreement.faults),
            "faults_scored": agreement.n_scored_faults,
            "faults_found": agreement.n_found,
        },
    }


def incident_records(findings: Findings) -> Iterator[dict[str, Any]]:
    """Yield the incidents in order of the rows, in JSON's types: when, how sure, which sensors, similar earlier ones.

    An onset is a time, or a row number of the source; None where a sensor did not leave its range.
    """
    numbers, time = findings.table.values.index, findings.table.time
    places = numbers if time is None else time
    table = findings.incident_table.drop(columns=["similar", "sensors"], errors="ignore")
    for incident, figures in zip(findings.incidents, records(table), strict=True):
        yield {
            "incident": incident.number,
            **figures,
            "events": np.unique(findings.rows.grouped.of_row[incident.rows]).tolist(),
            "sensors": [
                {
                    "name": sensor.name,
                    "onset": plain(places[sensor.onset]) if sensor.onset >= 0 else None,
                    "mean_evidence": plain(sensor.mean_evidence),
                    "peak_evidence": plain(sensor.peak_evidence),
                    "direction": sensor.direction,
                    "condition": sensor.condition,
                    "certain": sensor.certain,
                }
                for sensor in incident.sensors
            ],
            "similar": [{"incident": number, "similarity": plain(alike)} for number, alike in incident.similar],
            "pattern": plain(dict(incident.pattern)),
        }


def _events(findings: Findings) -> Iterator[dict[str, Any]]:
    numbers = findings.table.values.index
    nothing = dict.fromkeys(("parts", "seen_as", "variables", "settings", "neighbors", "rule"))
    for event, figures in zip(findings.events.index.tolist(), records(findings.events), strict=True):
        peak = figures["peak_row"]
        yield {
            "event": event,
            **figures,
            "peak_row": plain(numbers[peak]),
            "mode": str(findings.rows.modes[peak]),
            **(_why(findings, event) if event in findings.explained.events else nothing),
        }


def _why(findings: Findings, event: int) -> dict[str, Any]:
    why = findings.explained.events[event]
    rows = findings.table.values.index[why.variables["position"].to_numpy(dtype=np.intp)]  # as in the source
    return {
        "parts": plain(why.parts),
        "seen_as": why.seen_as,
        "variables": list(records(why.variables.drop(columns="position").assign(row=rows))),
        "settings": list(records(why.settings)),
        "neighbors": plain(why.neighbors.drop(columns="position")),
        "rule": None if why.rule is None else {"text": why.rule.text, **plain(why.rule)},
    }


def _columns(findings: Findings) -> Iterator[dict[str, Any]]:
    """Yield what is known of the time, if there is one, and of each tag."""
    time = findings.data.time
    if time is not None:
        yield _column(time.column, "time", time, "", "time")
    for tag in findings.data.tags:
        use = f"left out: {tag.left_out}" if tag.left_out else tag.use
        yield _column(tag.name, tag.role, tag, tag.unit, use)


def _column(name: str, role: str, about: TimeSummary | TagSummary, unit: str, use: str) -> dict[str, Any]:
    return {
        "name": name,
        "role": role,
        "grade": about.grade,
        "reasons": list(about.reasons),
        "unit": unit,
        "share_missing": plain(about.share_missing),
        "use": use,
    }


def cases_table(findings: Findings) -> pd.DataFrame:
    """One row per incident, the most severe first, with its sensors in words; per event for methods without incidents.

    `in_order` names the sensors that left their range by the time of that, with the time after the first of them.
    """
    from penstock.report.cases import cases_of, later  # which imports this module

    if not findings.assessment.by_sensor:
        return findings.events.sort_values("rank").reset_index()
    table = findings.incident_table.sort_values("rank")
    orders = {}
    for case in cases_of(findings):
        out = [sensor for sensor in case.in_order if sensor.onset >= 0]
        moved = case.moved_first
        texts = [
            f"{sensor.name} ({'first' if sensor in moved else later(findings, case.start, sensor.onset) or 'at once'})"
            for sensor in out
        ]
        orders[case.number] = ", ".join(texts)
    return table.assign(
        runs=[len(each) for each in table["runs"]],
        circumstances=["; ".join(each) for each in table["circumstances"]],
        similar=[", ".join(map(str, each)) for each in table["similar"]],
        in_order=[orders.get(number, "") for number in table.index],
    ).reset_index()


def sensors_table(findings: Findings) -> pd.DataFrame:
    """One row per column of the source: unit, grade, use, missing, and in which incidents it left its usual range."""
    incidents: dict[str, list[int]] = {}
    firsts: dict[str, int] = {}
    for incident in findings.incidents:
        for sensor in incident.sensors:
            if sensor.onset >= 0:
                incidents.setdefault(sensor.name, []).append(incident.number)
        firsts[incident.sensors[0].name] = firsts.get(incident.sensors[0].name, 0) + 1
    table = pd.DataFrame(list(_columns(findings)))
    names = table.pop("name").tolist()
    table.insert(0, "sensor", names)
    return table.assign(
        reasons=[" ".join(each) for each in table["reasons"]],
        incidents=[", ".join(map(str, incidents.get(name, ()))) for name in names],
        to_look_at_first=[firsts.get(name, 0) for name in names],
    )


def workbook(findings: Findings, path: Any) -> bytes:
    """Return an .xlsx file with the sheets incidents (events, for methods without), findings, sensors and settings.

    The verdict is the first of the settings. Times are in the table's own zone, which Excel has no word for; durations
    are in seconds. A text stays a text, also one that begins like a formula.
    """
    import openpyxl

    settings = [(name, value) for name, value in findings.settings.items() if value is not None]
    sheets = {
        "events" if not findings.assessment.by_sensor else "incidents": cases_table(findings),
        "findings": findings_table(findings),
        "sensors": sensors_table(findings),
        "settings": pd.DataFrame([("verdict", findings.verdict.sentence), *settings], columns=["setting", "value"]),
    }
    book = openpyxl.Workbook(write_only=True)
    for title, table in sheets.items():
        if len(table) >= _MOST_SHEET_ROWS:
            raise ValueError(
                f"{path}: {len(table):,} {title} are more than a sheet holds ({_MOST_SHEET_ROWS:,} rows). Write CSV."
            )
        sheet = book.create_sheet(title)
        for line in (tuple(map(str, table.columns)), *zip(*(table[name].tolist() for name in table), strict=True)):
            sheet.append([_sheet_cell(sheet, value) for value in line])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _sheet_cell(sheet: Any, value: Any) -> Any:
    """A cell that Excel takes for what it is: a text, a number, a time without zone, or nothing."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    if isinstance(value, pd.Timestamp):
        return value.tz_localize(None).to_pydatetime(warn=False)
    known = plain(value)
    if not isinstance(known, str):
        return known
    cell = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", known).encode("utf-8", "backslashreplace").decode())
    cell.data_type = "s"  # not a formula
    return cell
