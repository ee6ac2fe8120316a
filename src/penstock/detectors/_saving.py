"""Save detectors to files and load them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

from penstock.detectors._parameters import pack_parameters, unpack_parameters
from penstock.registry import DETECTORS, detector_class
from penstock.storage import Record, StorageError, read_state, write_state

KIND = "detector"


class Saveable(ABC):
    """A detector that `save` writes to a file and `penstock.load` reads again, equal to the last bit.

    A class that can be saved is listed in `penstock.registry`, is a scikit-learn estimator whose parameters
    `_parameters.py` can store, checks them in `_check_parameters`, and implements `_pack`, `_unpack` and `_has_state`.

    >>> import tempfile, penstock
    >>> path = tempfile.mkdtemp() + "/norm.safetensors"
    >>> penstock.NormScore().fit([[0.0], [1.0], [4.0]]).save(path)
    >>> penstock.load(path).anomaly_score([[2.0]])
    array([0.5])
    """

    @abstractmethod
    def _pack(self) -> dict[str, Any]:
        """Return what was learnt, as `penstock.storage.write_state` takes it, in a schema of its own.

        Not `vars(self)`: attributes may be renamed, files stay. A change of the schema is a new format, with a step in
        `penstock/storage/_versions.py` that brings older files up to it.
        """

    @abstractmethod
    def _unpack(self, state: dict[str, Any]) -> None:
        """Take over what `_pack` returned, without fitting again.

        The state may be hostile: all of it is checked (`penstock.storage.Record`), and what does not fit raises a
        ValueError.
        """

    @abstractmethod
    def _has_state(self) -> bool:
        """Return whether there is anything to pack beside the parameters."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the detector, fitted or not, to a file for `penstock.load`: docs/saving.md.

        The file appears wholly or not at all. Attributes that you added yourself are not in it.
        """
        write_state(path, KIND, self._whole_state())

    def _whole_state(self, **options: Any) -> dict[str, Any]:
        """Return what `restore` needs; options are those of `_pack`."""
        cls = type(self)
        entry = DETECTORS.get(cls.__name__)
        if entry is None or entry.module != cls.__module__:
            raise TypeError(
                f"{cls.__module__}.{cls.__name__} cannot be saved: files hold penstock's own detectors only "
                f"({', '.join(DETECTORS)}), because loading one must not run code that a file names. Save its "
                f"parameters and fit it again."
            )
        fitted = self._pack(**options) if self._has_state() else None
        self._check_parameters()  # type: ignore[attr-defined]  # what could not be loaded must not be saved
        return {
            "class": cls.__name__,
            "parameters": pack_parameters(cls.__name__, self._storable_parameters()),
            "fitted": fitted,
        }

    def _storable_parameters(self) -> dict[str, Any]:
        """Return the parameters as files hold them."""
        parameters: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        return parameters


def load(path: str | os.PathLike[str]) -> Any:
    """Load a detector that `save` wrote: the same scores, thresholds and labels to the last bit.

    Nothing is fitted again, and nothing in the file is executed; one that is damaged, that was not made by penstock, or
    whose content does not fit is a `penstock.storage.StorageError`.

    >>> import tempfile, numpy as np
    >>> from penstock import LoMST, load
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> path = tempfile.mkdtemp() + "/lomst.safetensors"
    >>> detector = LoMST(5, contamination=0.1).fit(X)
    >>> detector.save(path)
    >>> load(path)
    LoMST(contamination=0.1, n_neighbors=5)
    >>> bool((load(path).predict(X) == detector.predict(X)).all())
    True
    """
    _, state = read_state(path, KIND)
    try:
        return restore(state)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise StorageError(
            f"Cannot load {os.fspath(path)}: the file is sound, but what it holds is not a detector of this version of "
            f"penstock ({error!s:.500})."
        ) from error


def state_of(detector: Any) -> dict[str, Any]:
    """Return a fitted detector as part of a larger state, without the labels of its rows; see `restore`."""
    labels = {"labels": False} if hasattr(detector, "_row_labels") else {}
    state: dict[str, Any] = detector._whole_state(**labels)
    return state


def restore(state: dict[str, Any]) -> Any:
    """Return the detector of a state that was read from a file; what does not fit raises a ValueError or the like."""
    record = Record(state, "detector").only("class", "parameters", "fitted")
    name = record.text("class")
    if name not in DETECTORS:
        raise StorageError(f"{name!r:.80} is not a detector of this version of penstock")
    try:
        cls = detector_class(name)
    except ImportError as error:
        raise StorageError(str(error)) from error
    detector = cls(**unpack_parameters(cls, record.value("parameters")))
    detector._check_parameters()
    if record.optional_part("fitted") is not None:
        detector._unpack(record.value("fitted"))
    return detector
