"""Monitor a stream of rows: verdicts and alarms out, and a store, so that a killed run can be continued."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than this module's
if TYPE_CHECKING:
    from typing import Any

    from penstock.live.alarm_records import RowVerdict as RowVerdict
    from penstock.live.alarms import AlarmBook as AlarmBook
    from penstock.live.monitor import Counts as Counts
    from penstock.live.monitor import Monitor as Monitor
    from penstock.live.monitor import Observer as Observer
    from penstock.live.options import AlarmRules as AlarmRules
    from penstock.live.options import WatchOptions as WatchOptions
    from penstock.live.scorers import with_names as with_names

_HOMES = {
    "AlarmBook": "alarms",
    "AlarmRules": "options",
    "Counts": "monitor",
    "Monitor": "monitor",
    "Observer": "monitor",
    "RowVerdict": "alarm_records",
    "WatchOptions": "options",
    "with_names": "scorers",
}
__all__ = [*_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Import a name on first use: the command line needs the options alone."""
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock.live' has no attribute {name!r}")
    return getattr(import_module(f"penstock.live.{_HOMES[name]}"), name)
