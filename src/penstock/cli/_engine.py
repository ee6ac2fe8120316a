"""`--engine`: where detectors are fitted, here or by the workers of a Dask cluster; only then is `scale` imported."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import typer

from penstock._messages import counted
from penstock._types import FloatArray
from penstock.cli._console import CommandError, Stages, children_without_interrupt
from penstock.cli._options import place_of
from penstock.detection import METHODS, Findings, Model, make_detector
from penstock.detection.model import FitRows
from penstock.detectors import SeriesDetector
from penstock.registry import AUTO

_ADDRESS = re.compile(r"dask://((?:[^\s/:@\[\]]+|\[[0-9a-fA-F:.]+\]):(\d{1,5}))/?")
_LOST = "The cluster has dropped the work. Was it closed, or the connection lost? Start it, and run this command again."
Result = TypeVar("Result", Findings, Model)


@dataclass(frozen=True)
class Engine:
    """The option `--engine`: its text, where it was given, for messages, and the scheduler to connect to."""

    text: str
    place: str
    scheduler: str | None  # None to start workers

    @classmethod
    def of(cls, context: typer.Context) -> Engine:
        """Return the engine of a command; raise for an unknown one, and for a method that it cannot fit."""
        text, place = context.params["engine"], place_of(context, "engine")
        address = _ADDRESS.fullmatch(text)
        if text not in ("local", "dask") and (address is None or not 0 < int(address[2]) < 2**16):
            raise CommandError(f"{place} must be local, dask or dask://HOST:PORT; got {text!r:.100}.")
        if text != "local":
            from penstock.scale.fitting import SUPPORTED

            method = context.params["method"]
            able = [name for name in METHODS if isinstance(make_detector(name), SUPPORTED)]
            if method.lower() not in (AUTO, *able):
                raise CommandError(
                    f"{place} {text} cannot fit --method {method}, only {', '.join(able)}. Choose one of these, or "
                    f"--engine local."
                )
        return cls(text, place, None if address is None else f"tcp://{address[1]}")

    @contextmanager
    def fitting(self, stages: Stages) -> Iterator[FitRows | None]:
        """Yield how to fit, None for a detector's own way; workers started for it are closed at the end."""
        if self.text == "local":
            yield None
            return
        with _quiet_dask(), self._client(stages) as client:
            yield lambda detector, rows, **order: self._fit(detector, rows, client, stages, order)

    def noted(self, result: Result) -> Result:
        """Return findings or a model with the engine in the settings, unless it is the usual one."""
        return result if self.text == "local" else replace(result, settings={**result.settings, "engine": self.text})

    @contextmanager
    def _client(self, stages: Stages) -> Iterator[Any]:
        from penstock import scale

        with ExitStack() as opened:
            with self._plain_errors(), children_without_interrupt():
                if self.scheduler is None:
                    stages("starting workers")
                    client = opened.enter_context(scale.local_client(quiet=True))
                else:
                    stages(f"connecting to {self.scheduler}")
                    client = opened.enter_context(scale.connect(self.scheduler))
            yield client

    def _fit(self, detector: Any, rows: FloatArray, client: Any, stages: Stages, order: Mapping[str, Any]) -> None:
        from penstock import scale

        if not isinstance(detector, SeriesDetector):
            _refuse_missing(rows, f"{self.place} {self.text}")
        with self._plain_errors(), _quiet_dask():  # again, as the fit reports the detector's warnings
            progress = lambda what, done, total: stages(f"{what}, {done} of {total}")  # noqa: E731
            scale.fit(detector, rows, client, **order, progress=progress)

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """End the command with one line for problems with a cluster, or if its extra is not installed."""
        from penstock.scale import ClusterError

        try:
            yield
        except (ClusterError, ImportError) as error:
            raise CommandError(f"{self.place}: {error}") from None
        except CancelledError:
            raise CommandError(f"{self.place}: {_LOST}") from None


def _refuse_missing(rows: FloatArray, engine: str) -> None:
    """Raise for missing values in terms of the command's options; `penstock.scale` names parameters."""
    missing = np.isnan(rows)
    if missing.any():
        inputs = counted(int(missing.any(axis=0).sum()), "input")
        raise CommandError(
            f"{engine} takes no missing values, and {int(missing.any(axis=1).sum()):,} of {len(rows):,} training rows "
            f"have some, in {inputs}. Use --engine local, which takes them, fill them, or leave out such columns "
            f"(--exclude)."
        )


@contextmanager
def _quiet_dask() -> Iterator[None]:
    """Inside this block Dask logs and warns of nothing: errors are raised as well."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"(dask|distributed|tornado)\b")
            yield
    finally:
        logging.disable(before)
