"""Text from elsewhere, fit for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with a mark for each character that a terminal would obey instead of showing it.

    Column names and times come from the data: what they hold must not move the cursor or change the title.

    >>> printable("10:00" + chr(27) + "[2J")
    '10:00�[2J'
    """
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "�" for sign in text)
