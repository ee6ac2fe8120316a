"""Which detectors a file can hold, and `penstock.load`."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from penstock.detectors._parameters import unpack_parameters
from penstock.detectors._saving import KIND
from penstock.storage import Record, StorageError, read_state

# The name in a file, and where the class of that name lives. A file names nothing that is not listed here.
_HOMES = {
    "AER": "studies.ahmed2021.deep",
    "DAGMM": "studies.ahmed2021.deep",
    "Detector": "penstock.detectors.recommended",
    "GNMF": "penstock.detectors.gnmf",
    "KNNDistance": "penstock.detectors.controls",
    "LaplacianNSNMF": "penstock.detectors.nsnmf",
    "LoMST": "penstock.detectors.lomst",
    "MeanDistance": "penstock.detectors.controls",
    "NMF": "penstock.detectors.nmf",
    "NSNMF": "penstock.detectors.nsnmf",
    "NormScore": "penstock.detectors.controls",
    "OnlineNSNMF": "penstock.detectors.online",
    "SNMF": "penstock.detectors.snmf",
}


def load(path: str | os.PathLike[str]) -> Any:
    """The detector that `save` put into a file: the same scores, thresholds and labels to the last bit.

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
    """A fitted detector as part of a larger state, without the labels of its rows; `restore` is the way back."""
    labels = {"labels": False} if hasattr(detector, "_row_labels") else {}
    detector._name_in_files()
    state: dict[str, Any] = detector._whole_state(detector._pack(**labels))
    return state


def restore(state: dict[str, Any]) -> Any:
    """The detector of a state that was read from a file; what does not fit raises a ValueError or the like."""
    record = Record(state, "detector").only("class", "parameters", "fitted")
    cls = class_named(record.text("class"))
    detector = cls(**unpack_parameters(cls, record.value("parameters")))
    detector._check_parameters()
    if record.optional_part("fitted") is not None:
        detector._unpack(record.value("fitted"))
    return detector


def class_named(name: str) -> Any:
    """The detector of this name."""
    if name not in _HOMES:
        raise StorageError(f"{name!r:.80} is not a detector of this version of penstock")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        raise StorageError(
            f"it holds {name}, which needs the module {error.name!r}. {name} is not part of the penstock package: it "
            f"is in the folder studies/ of penstock's repository, and needs PyTorch (torch)"
        ) from error


def name_of(cls: type) -> str:
    """The name under which files know a class; a TypeError for classes that penstock does not know."""
    name = cls.__name__
    if name not in _HOMES or cls.__module__ != _HOMES[name]:
        raise TypeError(
            f"{cls.__module__}.{name} cannot be saved: files hold penstock's own detectors only ({', '.join(_HOMES)}), "
            f"because loading one must not run code that a file names. Save its parameters and fit it again."
        )
    return name
