"""A recorder beside a profile: it samples the machine during the run, and holds the timeline of its report."""
from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
import time
import zlib
from typing import Any, Dict, Iterable, Iterator, Optional, Union

from ._recorder import Recorder, copy_report, write_report
from ._spans import TAGS, Lane, Span
from .errors import Error

_PIECE = 2048  # spans sent at a time: a ring of the recorder has room for some of them
_PAUSE = 0.002  # seconds, for the recorder's thread to take them

_Path = Union[str, "os.PathLike[str]"]


def _send(recorder: Recorder, number: int, spans: Iterable[Span]) -> None:
    for i, span in enumerate(spans, 1):
        recorder.span(number, TAGS[span.tag], span.begin, span.end, max(0, span.item), span.name.replace("\0", " "))
        if i % _PIECE == 0:
            time.sleep(_PAUSE)


def _send_all(recorder: Recorder, lanes: Iterable[Lane]) -> None:
    for lane in lanes:
        _send(recorder, recorder.lane(lane.name), sorted(lane, key=lambda span: span.end))


def write_trace(path: _Path, lanes: Iterable[Lane]) -> None:
    """Write spans to a file for Perfetto."""
    with Recorder(path, samplers=False) as recorder:
        _send_all(recorder, lanes)


def write_lanes(path: _Path, figures: Dict[str, Any], lanes: Iterable[Lane]) -> None:
    """Write a report of spans alone: what the machine did meanwhile is not known any more."""
    with Recorder(timeline=True, samplers=False) as recorder:
        _send_all(recorder, lanes)
        recorder.report(path, figures)


class Page:
    """A report that is written later, perhaps by another process."""

    def __init__(self, text: bytes) -> None:
        self._packed = zlib.compress(text)

    def write(self, path: _Path) -> None:
        copy_report(path, zlib.decompress(self._packed))


class Live:
    """Records the spans of the main lane as they come, and those of workers when they are known."""

    def __init__(self) -> None:
        self.recorder: Optional[Recorder] = None
        with contextlib.suppress(Error):  # without memory or threads for it, there is no timeline
            self.recorder = Recorder(timeline=True, samplers=True)
        self._numbers: Dict[str, int] = {}
        self._sent: Dict[str, int] = {}

    def _number(self, recorder: Recorder, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = recorder.lane(name)
        return self._numbers[name]

    def attach(self, lane: Lane) -> None:
        """Record what is added to the lane from now on."""
        recorder = self.recorder
        if recorder is None:
            return
        number, pid = self._number(recorder, lane.name), os.getpid()

        def echo(span: Span) -> None:
            if recorder is not None and not recorder.closed and os.getpid() == pid:
                recorder.span(number, TAGS[span.tag], span.begin, span.end, max(0, span.item), span.name)

        lane.echo, self._sent[lane.name] = echo, -1

    def _rest(self, lane: Lane) -> Iterator[Span]:
        """Spans of a lane that were not sent yet."""
        sent, self._sent[lane.name] = self._sent.get(lane.name, 0), len(lane)
        return (span for i, span in enumerate(lane) if i >= sent)

    def report(self, path: _Path, figures: Dict[str, Any], lanes: Iterable[Lane]) -> None:
        """Write the page."""
        recorder = self.recorder
        if recorder is not None:
            for lane in lanes:
                if self._sent.get(lane.name) != -1:
                    _send(recorder, self._number(recorder, lane.name), sorted(self._rest(lane), key=lambda s: s.end))
        write_report(None if recorder is None else recorder._pointer(), path, figures)

    def end(self, figures: Dict[str, Any], lanes: Iterable[Lane]) -> Optional[Page]:
        """The run is over: make its page, and close the recorder. None: there was no room for the page."""
        try:
            with tempfile.TemporaryDirectory(prefix="leat-xray-") as folder:
                path = pathlib.Path(folder, "run.html")
                self.report(path, figures, lanes)
                return Page(path.read_bytes())
        except (Error, OSError):
            return None
        finally:
            self.close()

    def close(self) -> None:
        if self.recorder is not None:
            self.recorder._handle.end()
            self.recorder = None
