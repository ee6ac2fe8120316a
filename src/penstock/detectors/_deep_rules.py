"""How large a net is and how long it is trained, where the user does not say."""

from __future__ import annotations

from collections.abc import Sequence

from penstock._parameters import check_whole_number

Hidden = int | str | Sequence[int] | None

_WIDEST, _NARROWEST = 60, 6  # of the first layer: Zong et al. (2018) give 120 columns 60 units, and 6 columns 12
_STEPS_PER_ROW, _FEWEST_STEPS, _ENOUGH_STEPS = 3, 600, 1500  # by the training loss alone, never by labels
_EPOCHS = 100


def first_width(p: int) -> int:
    """Units of the first layer for p columns: 2p, but at least 6 and at most 60.

    >>> [first_width(p) for p in (1, 7, 27, 57)]
    [6, 14, 54, 60]
    """
    return min(_WIDEST, max(_NARROWEST, 2 * p))


def read_hidden(hidden: Hidden) -> tuple[int, ...] | None:
    """Sizes of hidden layers from a number, a sequence or a text; None stays None.

    >>> read_hidden(8), read_hidden((60, 30)), read_hidden("60-30-10"), read_hidden(())
    ((8,), (60, 30), (60, 30, 10), ())
    >>> read_hidden("60,30")
    Traceback (most recent call last):
    ValueError: hidden must be None, a whole number ≥ 1, several such as (60, 30, 10), or a text such as '60-30-10'; ...
    """
    if hidden is None:
        return None
    try:
        sizes: tuple[object, ...]
        if isinstance(hidden, str):
            sizes = tuple(int(size) for size in hidden.split("-")) if hidden else ()
        else:
            sizes = tuple(hidden) if isinstance(hidden, Sequence) else (hidden,)
        for size in sizes:
            check_whole_number("hidden", size, least=1)
    except ValueError:
        raise ValueError(
            f"hidden must be None, a whole number ≥ 1, several such as (60, 30, 10), or a text such as '60-30-10'; "
            f"got {hidden!r:.100}."
        ) from None
    return tuple(int(size) for size in sizes)  # type: ignore[call-overload]


def choose_epochs(n: int, batch_size: int) -> int:
    """100 passes over the rows, or more where that makes few steps: 3 per row, but at least 600 and at most 1,500.

    >>> choose_epochs(20, 1024), choose_epochs(214, 1024), choose_epochs(5000, 1024), choose_epochs(50_000, 1024)
    (600, 642, 300, 100)
    """
    steps = min(_ENOUGH_STEPS, max(_FEWEST_STEPS, _STEPS_PER_ROW * n))
    return max(_EPOCHS, -(-steps // batch_count(n, batch_size)))


def batch_count(n: int, batch_size: int) -> int:
    """Into how many batches n rows are dealt: as even as can be, none larger than batch_size.

    >>> batch_count(1024, 1024), batch_count(1025, 1024)
    (1, 2)
    """
    return -(-n // batch_size)
