"""Flags, scores and time → events: what belongs together, on which days, and how it agrees with what is known.

Flagged rows are joined across gaps (`_group.py`), counted by day (`_days.py`), and compared with known faults
(`_agreement.py`), which are read from a column of labels (`_labels.py`).
"""

from penstock.events._agreement import Agreement, agreement
from penstock.events._days import event_days
from penstock.events._group import Events, group_events
from penstock.events._labels import Truth, known_faults

__all__ = ["Agreement", "Events", "Truth", "agreement", "event_days", "group_events", "known_faults"]
