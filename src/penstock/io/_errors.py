"""What is said when a table cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from penstock._messages import listed, quoted


class TableError(ValueError):
    """The table cannot be used as it is; the message says what is wrong, where, and what to do."""


def refuse_unknown(wanted: Iterable[str], known: Sequence[str], option: str, source: str) -> None:
    """Raise if a name given for an option is not a column, with the known name nearest to it."""
    for name in wanted:
        if name in known:
            continue
        folded = {other.casefold(): other for other in known}
        close = get_close_matches(str(name).casefold(), list(folded), n=1)
        hint = f" Did you mean {quoted(folded[close[0]])}?" if close else ""
        raise TableError(
            f"{source} has no column {quoted(name)} (given as {option}); its columns are {listed(known)}.{hint}"
        )
