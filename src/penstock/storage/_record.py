"""A state read field by field: what does not fit is refused at once, by name, instead of causing trouble later."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.storage._errors import StorageError


class Record:
    """A dict of a state that was read from a file, with a place for messages.

    >>> record = Record({"k": 3, "edges": np.zeros((4, 2))}, "fitted")
    >>> record.whole("k", least=1)
    3
    >>> record.array("edges", np.float64, (None, 2)).shape
    (4, 2)
    >>> record.array("edges", np.float64, (7, 2))
    Traceback (most recent call last):
    penstock.storage._errors.StorageError: fitted['edges'] should be float64 of shape (7, 2), but is float64 of shape...
    """

    def __init__(self, content: Any, place: str) -> None:
        if type(content) is not dict:
            raise StorageError(f"{place} should be a dict, but is {content!r:.80}")
        self._content: dict[str, Any] = content
        self._place = place

    def only(self, *names: str, new: Mapping[str, Any] | None = None) -> Record:
        """Raise unless the fields are exactly these. Old files lack the `new` ones and get their values."""
        self._content = dict(new or {}) | self._content
        names = (*names, *(new or {}))
        if set(self._content) != set(names):
            odd = sorted(set(self._content) ^ set(names))
            raise StorageError(f"{self._place} should have the fields {', '.join(names)}; too many or missing: {odd}")
        return self

    def part(self, name: str) -> Record:
        """A field that is a dict."""
        return Record(self.value(name), f"{self._place}[{name!r}]")

    def optional_part(self, name: str) -> Record | None:
        """A field that is a dict or None."""
        return None if self.value(name) is None else self.part(name)

    def value(self, name: str) -> Any:
        """A field as it is, unchecked."""
        if name not in self._content:
            raise StorageError(f"{self._place} lacks the field {name!r}")
        return self._content[name]

    def flag(self, name: str) -> bool:
        value = self.value(name)
        if type(value) is not bool:
            raise self.trouble(name, "True or False")
        return value

    def text(self, name: str) -> str:
        value = self.value(name)
        if type(value) is not str:
            raise self.trouble(name, "text")
        return value

    def whole(self, name: str, *, least: int, most: int | None = None) -> int:
        """A whole number between two bounds."""
        value = self.value(name)
        if type(value) is not int or value < least or (most is not None and value > most):
            raise self.trouble(name, f"a whole number ≥ {least}" + (f" and ≤ {most}" if most is not None else ""))
        return value

    def number(self, name: str, *, least: float = -math.inf, infinite: bool = False) -> float:
        """A float ≥ `least`; never NaN, and finite unless infinities are allowed."""
        value = self.value(name)
        if type(value) is not float or not value >= least or not (infinite or math.isfinite(value)):
            raise self.trouble(name, f"a {'' if infinite else 'finite '}number" + _bounds(least, math.inf))
        return value

    def array(
        self,
        name: str,
        dtype: Any,
        shape: tuple[int | None, ...],
        *,
        least: float = -math.inf,
        most: float = math.inf,
        missing: bool = False,
    ) -> NDArray[Any]:
        """An array of this type and shape (None: any length), finite and between two bounds; NaN only if `missing`."""
        value, wanted = self.value(name), np.dtype(dtype)
        fits = isinstance(value, np.ndarray) and value.dtype == wanted and value.ndim == len(shape)
        if not fits or any(length not in (None, found) for length, found in zip(shape, value.shape, strict=True)):
            lengths = ", ".join("any" if length is None else str(length) for length in shape)
            raise self.trouble(name, f"{wanted} of shape ({lengths})")
        seen = value[~np.isnan(value)] if missing else value
        if seen.size and wanted.kind != "b":
            low, high = seen.min(), seen.max()  # NaN, if there is one, and then no comparison holds
            if not (low >= least and high <= most and math.isfinite(low) and math.isfinite(high)):
                raise StorageError(f"{self._place}[{name!r}] should hold finite numbers{_bounds(least, most)} only")
        result: NDArray[Any] = value
        return result

    def trouble(self, name: str, expected: str) -> StorageError:
        """The error to raise where a field is not what it should be."""
        value = self.value(name)
        found = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else f"{value!r:.80}"
        return StorageError(f"{self._place}[{name!r}] should be {expected}, but is {found}")


def _bounds(least: float, most: float) -> str:
    below = f" ≥ {least:g}" if least > -math.inf else ""
    return below + (f" ≤ {most:g}" if most < math.inf else "")
