"""What a command says when it cannot go on."""

from __future__ import annotations


class CommandError(Exception):
    """An expected error: shown in one line, without a traceback. 2 as exit code: the command was given wrongly."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
