"""What a watch is told before it begins, and what it tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock._types import StreamScores
from penstock.io import Batch, Fault, TableOptions

_PLAIN = (type(None), bool, int, float, str)


class StreamDetector(Protocol):
    """What a watch asks of a detector; `OnlineNSNMF` has it."""

    def process(self, X: Any, n_variables: int = 3) -> StreamScores: ...
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def _pack(self) -> dict[str, Any]: ...
    def _unpack(self, state: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class WatchPlan:
    """What to watch, with what, and where verdicts and snapshots go. None as a path: standard input or output."""

    detector: Callable[[], StreamDetector]  # makes one that is ready for the first row, each time the same
    origin: str | None = None  # what that one has learnt before, if anything: a name for it
    input: Path | None = None
    follow: bool = False
    table: TableOptions = field(default_factory=TableOptions)
    strict: bool = False
    output: Path | None = None
    overwrite: bool = False
    n_variables: int = 3
    state: Path | None = None
    snapshot_every: int = 50_000
    snapshot_seconds: float = 10.0

    def settings(self) -> dict[str, Any]:
        """All that the verdicts depend on beside the input, in plain values: a snapshot only suits the same."""
        parameters = self.detector().get_params(deep=False)
        chosen = {**parameters, **asdict(self.table), "n_variables": self.n_variables, "model": self.origin}
        return {name: value if isinstance(value, _PLAIN) else repr(value) for name, value in chosen.items()}


@dataclass
class Counts:
    """What has passed: samples, those flagged, readings that were missing in them, and lines that were no samples."""

    samples: int = 0
    flagged: int = 0
    missing: int = 0
    malformed: int = 0


@dataclass
class Observer:
    """Who is told while a watch runs; each is optional."""

    verdicts: Callable[[Counts, Batch, StreamScores], None] = lambda counts, batch, scores: None
    fault: Callable[[Fault], None] = lambda fault: None
    warning: Callable[[str], None] = lambda text: None
    idle: Callable[[], None] = lambda: None
