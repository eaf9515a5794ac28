"""What can go wrong, as exceptions: one class for each status of the C library.

Every exception carries the library's sentence: what failed, where, and what was expected.
"""
from __future__ import annotations

from typing import Any, Tuple


class Error(Exception):
    """Anything that Leat reports. `status` is the C library's name for it, such as "DATA"."""

    status = "INTERNAL"


class InvalidError(Error, ValueError):
    """An argument or option is not valid."""

    status = "INVALID"


class SpecError(Error, ValueError):
    """The spec is not valid; the text has the place in it and a caret below."""

    status = "SPEC"


class DataError(Error, ValueError):
    """The data is damaged or does not fit the spec."""

    status = "DATA"


class IOError(Error, OSError):
    """The operating system refused to read or write."""

    status = "IO"


class MismatchError(Error, ValueError):
    """The checkpoint belongs to another pipeline or other data."""

    status = "MISMATCH"


class OutOfMemoryError(Error, MemoryError):
    """The system has no more memory."""

    status = "NOMEM"


class LimitError(Error, RuntimeError):
    """A limit that was set would be exceeded."""

    status = "LIMIT"


class HeldError(LimitError):
    """All batches that there is memory for are held by the program: let go of one, or copy what is kept."""

    status = "AGAIN"


class CancelledError(Error, RuntimeError):
    """The feed was cancelled or closed."""

    status = "CANCELLED"


class UnsupportedError(Error, NotImplementedError):
    """This build or machine cannot do that."""

    status = "UNSUPPORTED"


class InternalError(Error, RuntimeError):
    """A bug in Leat."""

    status = "INTERNAL"


class ProcessError(Error, RuntimeError):
    """The feed belongs to another process: its threads did not survive the fork."""

    status = "PROCESS"


class MapError(Error, RuntimeError):
    """A function given to map or map_batch failed; `__cause__` is its exception."""

    status = "MAP"

    def __init__(self, text: str, epoch: int = -1, position: int = -1) -> None:
        super().__init__(text)
        self.epoch, self.position = epoch, position

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (str(self), self.epoch, self.position)


by_status = {
    kind.status: kind
    for kind in (InvalidError, SpecError, DataError, IOError, MismatchError, OutOfMemoryError, LimitError, HeldError,
                 CancelledError, UnsupportedError, InternalError)
}
