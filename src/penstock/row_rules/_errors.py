"""What is said when a rule cannot be read or used."""

from __future__ import annotations

from penstock._messages import quoted

_SHOWN = 30  # characters before the place


class RuleError(ValueError):
    """The rule cannot be read, or does not fit the table; the message says where and why.

    position : the character where it was noticed, from 0, if it is the text that is wrong.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


def unreadable(text: str, position: int, complaint: str) -> RuleError:
    """An error at a position of a text, with the place in words.

    >>> print(unreadable("power > )", 8, "there is ')'"))
    The rule cannot be read: after 'power >' there is ')'.
    """
    before = text[:position].strip()
    shown = "…" + before[-_SHOWN:] if len(before) > _SHOWN else before
    place = f"after {quoted(shown)}" if before else "at its beginning"
    return RuleError(f"The rule cannot be read: {place} {complaint}.", position)
