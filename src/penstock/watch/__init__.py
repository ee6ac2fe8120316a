"""A stream under watch: rows in, verdicts out, snapshots in between, so that a kill at any moment loses nothing."""

from penstock.watch.loop import Watch
from penstock.watch.plan import Counts, Observer, WatchPlan

__all__ = ["Counts", "Observer", "Watch", "WatchPlan"]
