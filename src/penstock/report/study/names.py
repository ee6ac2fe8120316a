"""Names of the files that pictures are written to."""

from __future__ import annotations

import hashlib
import re

_LONGEST = 40


def file_name(kind: str, name: str = "") -> str:
    """A name that every file system takes; other names make other files.

    >>> file_name("paper", "NS-NMF"), file_name("ranks")
    ('paper-ns-nmf', 'ranks')
    >>> file_name("sweep", "../<K>").startswith("sweep-k-")
    True
    """
    simple = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST]
    told = "" if _is_plain(name) else hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return "-".join(part for part in (kind, simple, told) if part)


def _is_plain(name: str) -> bool:
    """Whether nothing was lost but case, spaces, dashes and brackets."""
    return len(name) <= _LONGEST and re.fullmatch(r"[A-Za-z0-9 ()-]*", name) is not None
