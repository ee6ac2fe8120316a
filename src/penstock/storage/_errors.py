"""What can be wrong with a file, as far as a caller may want to tell it apart."""

from __future__ import annotations


class StorageError(ValueError):
    """A file cannot be read or written; the message has its path and what to do."""


class CorruptFileError(StorageError):
    """The file is damaged, or was never one of ours."""


class NewerVersionError(StorageError):
    """The file was written by a newer penstock than this one."""


class WrongKindError(StorageError):
    """The file is sound, but holds something else than what was asked for."""
