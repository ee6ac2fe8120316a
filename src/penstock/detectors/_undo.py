"""What fails, or is interrupted, has not happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restored_if_it_fails(estimator: object) -> Iterator[None]:
    """Give an estimator its attributes back, should what follows end in any exception.

    >>> class Counter: n = 0
    >>> counter = Counter()
    >>> with restored_if_it_fails(counter):
    ...     counter.n = 1
    ...     raise ValueError("no")
    Traceback (most recent call last):
    ValueError: no
    >>> counter.n
    0
    """
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
