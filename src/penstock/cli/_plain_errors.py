"""What a user can put right, in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.cli._errors import CommandError

_IN_OPTIONS: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"(skip_mode|fault_value|unknown_value|exclude_period)s": lambda found: f"--{found[1].replace('_', '-')}",
    r"since(?=:| = | is not a time)": "--from",
    r"until(?=:| = | is not a time)": "--until",
    r"(train_until|train_rule|max_bytes|day_first|n_components)": lambda found: f"--{found[1].replace('_', '-')}",
    r"time_format": "--time-format",
    r"(?<=but )names(?= has)": "--names",
    r"(?<=ass )timezone": "--timezone",
    r"(?<=without )strict": "--strict",
    r"overwrite=True": "add --overwrite",
    r"(separator|decimal|thousands)=": r"--\1 ",
}


@contextmanager
def plain_errors(place: str = "") -> Iterator[None]:
    """Inside this block, errors that a user can put right end the command with one line and exit code 2."""
    try:
        yield
    except MemoryError:
        raise CommandError(f"{place}There is not enough memory. Read fewer rows or columns.", exit_code=2) from None
    except OSError as error:
        raise CommandError(place + in_options(_of_system(error)), exit_code=2) from None
    except ValueError as error:  # TableError, RuleError, ModelError and StorageError are such
        raise CommandError(place + in_options(str(error)), exit_code=2) from error.__cause__


def in_options(message: str) -> str:
    """A message of the library with options instead of parameters.

    >>> in_options("max_bytes.csv is too large. Read a part of it, or pass a larger max_bytes.")
    'max_bytes.csv is too large. Read a part of it, or pass a larger --max-bytes.'
    """
    for name, option in _IN_OPTIONS.items():
        message = re.sub(rf"(?<![\w/.'-]){name}(?![\w/-]|\.\w)", option, message)
    return message


def _of_system(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
