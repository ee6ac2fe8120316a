"""Monitor a stream of rows: verdicts out, snapshots in between, so that a run that is killed can be continued."""

from penstock.live.monitor import Counts, Observer, Watch, WatchPlan, with_names

__all__ = ["Counts", "Observer", "Watch", "WatchPlan", "with_names"]
