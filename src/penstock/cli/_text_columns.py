"""Many malformed lines with one cause: a column that holds text."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter

from penstock.cli._options import join_names

_NOT_A_NUMBER = re.compile(r'column ("(?:[^"\\]|\\.)*") holds .*, which is not a number')


class TextColumns:
    """Counts which columns the malformed lines are malformed for.

    >>> columns = TextColumns()
    >>> columns.note('column "run" holds "a/1", which is not a number')
    >>> columns.hint(samples=0)
    'column "run" is text; leave it out with --exclude run'
    >>> columns.hint(samples=100)
    ''
    """

    def __init__(self) -> None:
        self._lines: Counter[str] = Counter()

    def note(self, reason: str) -> None:
        found = _NOT_A_NUMBER.fullmatch(reason)
        if found:
            self._lines[found[1]] += 1

    def hint(self, samples: int) -> str:
        """What to do, if one column is text in more lines than there were samples; else ""."""
        for name, lines in self._lines.most_common(1):
            if lines > samples:
                return (
                    f"column {name} is text; leave it out with --exclude {shlex.quote(join_names([json.loads(name)]))}"
                )
        return ""
