"""Detectors in files: what they share, and the contract of a class that can be saved."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

from penstock.detectors._parameters import pack_parameters
from penstock.storage import write_state

KIND = "detector"


class Saveable(ABC):
    """A detector that `save` puts into a file and `penstock.load` takes out again, the same to the last bit.

    A class that can be saved is listed in `registry.py`, is a scikit-learn estimator whose parameters `_parameters.py`
    can store, checks them in `_check_parameters`, and implements `_pack`, `_unpack` and `_has_state`.

    >>> import tempfile, penstock
    >>> path = tempfile.mkdtemp() + "/norm.safetensors"
    >>> penstock.NormScore().fit([[0.0], [1.0], [4.0]]).save(path)
    >>> penstock.load(path).anomaly_score([[2.0]])
    array([0.5])
    """

    @abstractmethod
    def _pack(self) -> dict[str, Any]:
        """What was learnt, as `penstock.storage.write_state` takes it, in a schema of its own.

        Not `vars(self)`: attributes may be renamed, files stay. A change of the schema is a new format, with a step in
        `penstock/storage/_versions.py` that brings older files up to it.
        """

    @abstractmethod
    def _unpack(self, state: dict[str, Any]) -> None:
        """Take over what `_pack` returned, without fitting again.

        The state may come from a stranger: all of it is checked (`penstock.storage.Record`), and what does not fit
        raises a ValueError, so that nothing goes wrong later.
        """

    @abstractmethod
    def _has_state(self) -> bool:
        """Whether there is anything to pack: anything beside the parameters."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the detector, fitted or not, to a file for `penstock.load`: docs/saving.md.

        The file appears wholly or not at all. Attributes that you added yourself are not in it.
        """
        self._name_in_files()  # first: a class that files cannot hold may fail to pack in less clear ways
        self._write(path, self._pack() if self._has_state() else None)

    def _name_in_files(self) -> str:
        """The name of the class in files; a TypeError if they cannot hold it."""
        from penstock.detectors.registry import name_of  # it imports the detectors, which import this

        return name_of(type(self))

    def _write(self, path: str | os.PathLike[str], fitted: dict[str, Any] | None) -> None:
        write_state(path, KIND, self._whole_state(fitted))

    def _whole_state(self, fitted: dict[str, Any] | None) -> dict[str, Any]:
        """What `registry.restore` makes this detector of again."""
        name = self._name_in_files()
        self._check_parameters()  # type: ignore[attr-defined]  # what could not be loaded must not be saved
        return {"class": name, "parameters": pack_parameters(self), "fitted": fitted}
