"""Exceptions: one class for each status of the C library.

The message is the library's: what failed, where, and what was expected.
"""
from __future__ import annotations

from typing import Any, Dict, Tuple, Type


class Error(Exception):
    """Base class of all Leat errors. `status` is the C library's name for it, such as "DATA"."""

    status = "INTERNAL"


class InvalidError(Error, ValueError):
    """An argument or option is not valid."""

    status = "INVALID"


class OptionError(InvalidError, TypeError):
    """A feed has no such option; the message says what to use instead."""


class SpecError(Error, ValueError):
    """The spec is not valid; a caret in the message marks the position."""

    status = "SPEC"


class DataError(Error, ValueError):
    """The data is damaged or does not match the spec."""

    status = "DATA"


class IOError(Error, OSError):
    """The operating system could not read or write a file."""

    status = "IO"


class MismatchError(Error, ValueError):
    """The checkpoint is for a different pipeline or different data."""

    status = "MISMATCH"


class OutOfMemoryError(Error, MemoryError):
    """The system is out of memory."""

    status = "NOMEM"


class LimitError(Error, RuntimeError):
    """A configured limit, such as `memory` or `max_bad`, was reached."""

    status = "LIMIT"


class HeldError(LimitError):
    """The machine has no memory for one more batch besides those that the program holds: drop some."""

    status = "AGAIN"


class CancelledError(Error, RuntimeError):
    """The feed was cancelled or closed."""

    status = "CANCELLED"


class UnsupportedError(Error, NotImplementedError):
    """This build or machine does not support the request."""

    status = "UNSUPPORTED"


class InternalError(Error, RuntimeError):
    """A bug in Leat."""

    status = "INTERNAL"


class ProcessError(Error, RuntimeError):
    """The feed was opened in another process; its threads did not survive the fork."""

    status = "PROCESS"


class MapError(Error, RuntimeError):
    """A function given to map or map_batch failed; `__cause__` is its exception.

    `traceback` is the text of its traceback if it ran in a worker process.
    """

    status = "MAP"

    def __init__(self, text: str, epoch: int = -1, position: int = -1) -> None:
        super().__init__(text)
        self.epoch, self.position, self.traceback = epoch, position, ""

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (str(self), self.epoch, self.position)


class WorkerError(Error, RuntimeError):
    """A worker process ended while it ran a function given to map."""

    status = "WORKER"


class BuildError(Error, RuntimeError):
    """A build failed or could not start; `build` has what was done until then, if it started."""

    status = "BUILD"

    def __init__(self, text: str, build: Any = None) -> None:
        super().__init__(text)
        self.build = build


by_status: Dict[str, Type[Error]] = {
    "FUNCTION": MapError,
    **{kind.status: kind
    for kind in (InvalidError, SpecError, DataError, IOError, MismatchError, OutOfMemoryError, LimitError, HeldError,
                 CancelledError, UnsupportedError, InternalError, WorkerError)},
}
