"""A recorder: spans of work and values over time, written to a file that Perfetto shows."""
from __future__ import annotations

import collections
import contextlib
import ctypes
import json
import logging
import math
import operator
import os
import sys
import time
import weakref
from typing import Any, Dict, Iterator, Optional, Tuple, Union

from . import _lib
from .errors import InvalidError, ProcessError

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING)
_log = logging.getLogger("leat")
_MOST = 2**64 - 1


def _text(value: str, what: str) -> bytes:
    if "\0" in value:
        raise InvalidError(f"{what} cannot contain a NUL character")
    return value.encode("utf-8", "surrogateescape")


def _size(value: Union[int, str], name: str) -> int:
    if not isinstance(value, str):
        number = operator.index(value)
        if not 0 <= number <= _MOST:
            raise InvalidError(f"{name}={number} must be between 0 and {_MOST}")
        return number
    size, err = ctypes.c_uint64(), _lib.Err()
    if _lib.parse_size(_text(value, name), size, err) != _lib.OK:
        raise InvalidError(f"{name}: " + err.text.decode(errors="replace"))
    return size.value


def write_report(recorder: Optional[int], path: Union[str, "os.PathLike[str]"], run: Dict[str, Any]) -> None:
    err = _lib.Err()
    text = json.dumps(run, allow_nan=False).encode()
    _lib.check(_lib.report_write(recorder, text, _text(os.fspath(path), "report"), err), err)


def copy_report(path: Union[str, "os.PathLike[str]"], page: bytes) -> None:
    """Write a page that was made before."""
    err = _lib.Err()
    _lib.check(_lib.report_write(None, page, _text(os.fspath(path), "report"), err), err)


class _Handle:
    """Owns the C library's recorder. Closed once, and only by the process that opened it."""

    def __init__(self, options: _lib.RecorderOptions) -> None:
        self.pid = os.getpid()
        self.notes: "collections.deque[Tuple[int, str]]" = collections.deque(maxlen=100)
        notes = self.notes
        self._callback = _lib.LOG(lambda arg, level, text: notes.append((level, text.decode(errors="replace"))))
        options.log = self._callback
        out, err = ctypes.c_void_p(), _lib.Err()
        _lib.check(_lib.recorder_open(options, out, err), err)
        self.pointer: Optional[int] = out.value

    def drain(self) -> None:
        while self.notes:
            level, text = self.notes.popleft()
            _log.log(_LEVELS[level] if 0 <= level < len(_LEVELS) else logging.WARNING, "%s", text)

    def close(self) -> None:
        if self.pointer is None or self.pid != os.getpid():
            return
        err = _lib.Err()
        status = _lib.recorder_close(self.pointer, err)
        if status != _lib.INVALID:  # a feed still uses it
            self.pointer = None
        self.drain()
        _lib.check(status, err)

    def end(self) -> None:
        """Close it when nobody is there to see an exception."""
        try:
            self.close()
        except Exception as error:
            _log.warning("%s", error)


def check_folder(option: str, path: Any) -> None:
    """Fail if a file that is written at the end has no folder: better now than after hours."""
    if path is None:
        return
    folder = os.path.dirname(os.fspath(path))
    if "://" in folder:
        return
    if not os.path.isdir(folder or "."):
        raise InvalidError(f"{option}={os.fspath(path)!r}: there is no folder {folder!r}")
    if not os.access(folder or ".", os.W_OK | os.X_OK) and not os.access(path, os.W_OK):
        raise InvalidError(f"{option}={os.fspath(path)!r}: the folder {folder!r} is not writable")


class Recorder:
    """Records what a program does and when, and writes it to a file for Perfetto (ui.perfetto.dev).

        with leat.Recorder("run.json") as recorder:
            feed = pipeline.feed(trace=recorder)
            lane = recorder.lane("device")
            for number, batch in enumerate(feed):
                with recorder.measure(lane, "run batch", number):
                    train(batch)
            feed.close()

    Recording never waits: what comes faster than it can be written is dropped and counted. The file is written every
    second, and whole each time, so that a crash leaves a readable one.

    Args:
        trace: the file to write; None: none.
        trace_size: size limit of the file, a number or text such as '256MiB', at least 1 MiB. A file that gets there
            keeps every 2nd sample and batch, then every 4th, and so on, and says so.
        memory: memory limit of the recorder.
        timeline: keep a summary of all spans in memory, for a report.
        samplers: record the use of CPU, memory, disk, network and GPU twice a second.
        name: the name of the process, as the trace shows it; None: the program's.
        rank, world: shown with it; None: from the launcher's environment.
    """

    def __init__(self, trace: Union[None, str, "os.PathLike[str]"] = None, *, trace_size: Union[int, str] = "256MiB",
                 memory: Union[int, str] = "64MiB", timeline: bool = False, samplers: bool = True,
                 name: Optional[str] = None, rank: Optional[int] = None, world: Optional[int] = None) -> None:
        options = _lib.RecorderOptions()
        _lib.recorder_options_init(options, ctypes.sizeof(options))
        if trace is not None:
            options.trace = _text(os.fspath(trace), "trace")
        options.trace_bytes, options.memory = _size(trace_size, "trace_size"), _size(memory, "memory")
        options.timeline, options.samplers = bool(timeline), bool(samplers)
        options.name = _text(name or os.path.basename(sys.argv[0] if sys.argv else "") or "python", "name")
        options.rank, options.world = -1 if rank is None else rank, 0 if world is None else world
        self._handle = _Handle(options)
        self._end = weakref.finalize(self, self._handle.end)

    def _pointer(self) -> int:
        if self._handle.pointer is None:
            raise InvalidError("the recorder is closed")
        if self._handle.pid != os.getpid():
            raise ProcessError(f"this recorder was opened in process {self._handle.pid} and cannot be used in process "
                               f"{os.getpid()} after a fork; open it in the process that uses it")
        return self._handle.pointer

    def lane(self, name: str) -> int:
        """Add a lane, a row of the timeline. Only one thread at a time may record in it.

        If another lane has the name, this one's gets a number. Without memory for it, spans are dropped.
        """
        return int(_lib.recorder_lane(self._pointer(), _text(name, "a name")))

    def end_lane(self, lane: int) -> None:
        """No more spans will come for the lane. The next lane of this name continues it."""
        _lib.recorder_lane_end(self._pointer(), lane)

    def span(self, lane: int, tag: str, begin: int, end: int, item: int = 0, name: Optional[str] = None) -> None:
        """Record a span from `begin` to `end`, in nanoseconds of time.monotonic_ns().

        `tag` says what it is about: 'get batch', 'to device', 'run batch', 'fetch', 'decode', 'transform', 'cache' or
        'collate'. `item` is the position of a sample or the number of a batch; `name`, if given, is shown instead of
        the tag. Spans of a lane come in the order in which they end, and may be nested, but must not overlap otherwise.
        """
        number = _tags().get(tag)
        if number is None:
            raise InvalidError(f"{tag!r} is not a tag: use one of {', '.join(_tags())}")
        _lib.recorder_span(self._pointer(), lane, number, None if name is None else _text(name, "a name"),
                           int(begin), int(end), int(item))

    @contextlib.contextmanager
    def measure(self, lane: int, tag: str, item: int = 0, name: Optional[str] = None) -> Iterator[None]:
        """Record what the `with` block takes."""
        begin = time.monotonic_ns()
        try:
            yield
        finally:
            self.span(lane, tag, begin, time.monotonic_ns(), item, name)

    def count(self, track: str, value: float, at: Optional[int] = None) -> None:
        """Record a value of a track, now or at a time of time.monotonic_ns()."""
        if not math.isfinite(value):
            raise InvalidError(f"a track takes finite numbers, not {value}")
        _lib.recorder_count(self._pointer(), _text(track, "a name"), time.monotonic_ns() if at is None else int(at),
                            float(value))

    def report(self, path: Union[str, "os.PathLike[str]"], run: Dict[str, Any]) -> None:
        """Write a report: one HTML page with the figures of `run`, such as `feed.stats()`, and what was recorded so far.

        With `timeline=True`, the page has a timeline. Recording goes on.
        """
        write_report(self._pointer(), path, run)

    @property
    def spans(self) -> int:
        """Spans recorded so far."""
        return int(_lib.recorder_spans(self._pointer()))

    @property
    def dropped(self) -> int:
        """Spans and values dropped so far, because they came too fast."""
        return int(_lib.recorder_dropped(self._pointer()))

    def device(self) -> Optional[Dict[str, float]]:
        """What samplers saw of the GPUs that this process uses; None if there are none, or no sample yet.

        `devices` and `samples` are counts. `utilization` is the mean in percent, `utilization_used` that of the samples
        with at least 1 %, and `busy` their share. `memory`, `memory_peak` and `memory_total` are bytes.
        """
        device = _lib.Device()
        if not _lib.recorder_device(self._pointer(), device, ctypes.sizeof(device)):
            return None
        return {field[0]: getattr(device, field[0]) for field in device._fields_}

    @property
    def closed(self) -> bool:
        return self._handle.pointer is None

    def close(self) -> None:
        """Finish the file. Raises IOError if it could not be written, and InvalidError if a feed still uses it."""
        self._handle.close()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *exception: Any) -> None:
        if exception[0] is None:
            self.close()
        else:
            self._handle.end()

    def __reduce__(self) -> Any:
        raise InvalidError("a recorder cannot be sent to another process: open one there")


_known: Dict[str, int] = {}


def _tags() -> Dict[str, int]:
    if not _known:
        names = iter(lambda: _lib.tag_name(len(_known)), b"unknown")
        for name in names:
            _known[name.decode()] = len(_known)
    return _known
