"""Say where later rows differ from the good period throughout: the model no longer fits, which is no incident.

A tag has shifted if, in more than half of the later rows and also in more than half of the first and of the last tenth
of them, it is on one side of all but a two-hundredth of the rows fitted to: by what is expected given the others, or by
its level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock._messages import quoted
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.detection._scoring import ScoredTable
from penstock.explain import Incident
from penstock.io import Note

NO_LONGER_FITS = "no longer fits"  # the kind of the note
_LEAST_LIMIT = 4.0  # usual spreads, also where the rows fitted to are not known
_USUAL = 0.995
_MOST = 0.5
_PARTS = 10
_FEWEST_ROWS = 100
_SAMPLE = 2_000  # rows that are looked at
_MOST_ROUNDS = 30
_NAMED = 5


@dataclass(frozen=True)
class Shift:
    """A tag that differs from the good period throughout.

    Attributes
    ----------
    name, unit : str
    since : int
        The first of the later rows in which it does.
    by : float
        The median of reading minus expected where it contradicts the others; of the distance from the range of the good
        period where its level is new. In the tag's unit.
    share : float
        Of the later rows.

    Examples
    --------
    >>> Shift("flow", "m³/s", 1200, -0.8, 0.93).in_words()
    "'flow' by −0.8 m³/s"
    """

    name: str
    unit: str
    since: int
    by: float
    share: float

    def in_words(self) -> str:
        """Return the name and by how much it has shifted."""
        sign = "+" if self.by > 0 else "−"
        return f"{quoted(self.name)} by {sign}{abs(self.by):.3g}{f' {self.unit}' if self.unit else ''}"


def find_shifts(scored: ScoredTable) -> tuple[Shift, ...]:
    """Return the tags that have shifted, the one with the largest share first.

    None where the rows are those fitted to. A tag that has shifted draws along what is expected of the others: they
    are compared without it, the one that is farthest off first.
    """
    later = np.flatnonzero(scored.candidates)
    if scored.self_scored or len(later) < _FEWEST_ROWS:
        return ()
    inputs, values = scored.prepared.inputs, scored.values
    columns = [
        column
        for column, name in enumerate(inputs.names)
        if name in inputs.causes and inputs.role_of(name).is_reading and inputs.role_of(name).scored
    ]
    rows = later[np.linspace(0, len(later) - 1, min(len(later), _SAMPLE)).astype(np.intp)]
    found: dict[int, FloatArray] = {}  # of each tag, how far it is off in these rows
    for column in columns:
        role = inputs.role_of(inputs.names[column])
        readings = values[rows, column]
        for distance in (readings - role.high, role.low - readings):
            if _is_throughout(distance > 0):
                found[column] = np.where(readings > role.high, distance, -distance)
    limits = _limits(scored)
    wrong: list[int] = []
    for _ in range(min(len(columns), _MOST_ROUNDS)):
        sizes = _deviations(scored, rows, wrong) / limits
        off = {
            column: float(np.median(np.abs(sizes[:, column])))
            for column in columns
            if column not in wrong and (_is_throughout(sizes[:, column] > 1) or _is_throughout(sizes[:, column] < -1))
        }
        if not off:
            break
        wrong.append(max(off, key=lambda column: off[column]))
        found[wrong[-1]] = values[rows, wrong[-1]] - scored.expected[rows, wrong[-1]]
    return tuple(
        sorted((_shift(scored, column, rows, found[column]) for column in found), key=lambda each: -each.share)
    )


def _shift(scored: ScoredTable, column: int, rows: IndexArray, apart: FloatArray) -> Shift:
    name = scored.prepared.inputs.names[column]
    by = float(np.nanmedian(apart))
    is_out = apart * np.sign(by) > abs(by) / 2
    unit = scored.model.units[name]
    return Shift(name, unit, int(rows[int(is_out.argmax())]), by, float(is_out.mean()))


def _limits(scored: ScoredTable) -> FloatArray:
    """Return, in usual spreads, the limit of each tag that all but a two-hundredth of the rows fitted to keep."""
    limits = np.full(scored.values.shape[1], _LEAST_LIMIT)
    for each in scored.parts:
        if each.fitted is not None and len(each.fitted):
            some = each.fitted[np.linspace(0, len(each.fitted) - 1, _SAMPLE).astype(np.intp)]
            usual = np.abs(each.part.detector.deviations(scored.values[some]))
            limits = np.maximum(limits, np.quantile(usual, _USUAL, axis=0))
    return limits


def _deviations(scored: ScoredTable, rows: IndexArray, without: list[int]) -> FloatArray:
    """Return reading − expected in usual spreads (m, p), with some tags taken as missing."""
    values = scored.values[rows]
    values[:, without] = np.nan
    found = np.zeros(values.shape)
    for each in scored.parts:
        mine = scored.prepared.modes[rows] == each.part.mode
        if mine.any():
            found[mine] = each.part.detector.deviations(values[mine])
    return found


def _is_throughout(is_out: BoolArray) -> bool:
    """Return whether something holds in more than half of all rows, of the first tenth and of the last tenth."""
    length = len(is_out) // _PARTS
    return all(part.mean() > _MOST for part in (is_out, is_out[:length], is_out[-length:]))


def lasts_throughout(incident: Incident, scored: ScoredTable) -> bool:
    """Return whether an incident is there in more than half of the later rows, and from the first tenth of them on."""
    rows = np.flatnonzero(scored.candidates)
    unusual = sum(last - first + 1 for first, last in incident.runs)
    return bool(unusual > _MOST * len(rows) and incident.start <= rows[len(rows) // _PARTS])


def about_shifts(shifts: Sequence[Shift], scored: ScoredTable) -> Note:
    """Return a note that says which tags have shifted, since when, by how much, and what to do."""
    first = min(shift.since for shift in shifts)
    time = scored.prepared.table.time
    since = f"row {scored.prepared.table.values.index[first]}" if time is None else _stamp(time[first])
    named = ", ".join(shift.in_words() for shift in shifts[:_NAMED])
    more = f" and {len(shifts) - _NAMED:,} more" if len(shifts) > _NAMED else ""
    tags = f"{len(shifts):,} of {len(scored.prepared.inputs.causes):,} tags {'has' if len(shifts) == 1 else 'have'}"
    message = (
        f"The model no longer fits: since {since} {tags} shifted against the good period ({named}{more}). Check them, "
        f"or fit again with a good period that covers this."
    )
    return Note(NO_LONGER_FITS, message, len(shifts), tuple(shift.name for shift in shifts))


def _stamp(moment: pd.Timestamp) -> str:
    return moment.tz_localize(None).isoformat(sep=" ", timespec="minutes")
