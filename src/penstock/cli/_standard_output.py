"""Standard output that may be closed, full, or read by somebody who has had enough."""

from __future__ import annotations

import os
import sys

from penstock.cli._errors import CommandError


def print_text(text: str) -> None:
    """Print a text; without a reader that is the end of it, and no failure."""
    if sys.stdout is None:  # closed before we began
        return
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard()
    except OSError as error:
        _discard()
        raise CommandError(f"Standard output cannot be written: {error.strerror}.", exit_code=2) from None


def _discard() -> None:
    """Let what is still in the buffer go nowhere: Python would complain of it at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except OSError:  # not a real file, as in tests
        pass
    finally:
        os.close(nowhere)
