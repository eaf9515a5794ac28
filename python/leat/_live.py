"""A recorder beside a profile: it samples the machine during the run, and holds the timeline of its report."""
from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Dict, Iterable, Iterator, Optional, Union

from ._recorder import Recorder, write_report
from ._spans import TAGS, Lane, Span
from .errors import Error

_PIECE = 2048  # spans sent at a time: a ring of the recorder has room for some of them
_PAUSE = 0.002  # seconds, for the recorder's thread to take them


def _send(recorder: Recorder, number: int, spans: Iterable[Span]) -> None:
    for i, span in enumerate(spans, 1):
        recorder.span(number, TAGS[span.tag], span.begin, span.end, max(0, span.item), span.name.replace("\0", " "))
        if i % _PIECE == 0:
            time.sleep(_PAUSE)


def write_trace(path: Union[str, "os.PathLike[str]"], lanes: Iterable[Lane]) -> None:
    """Write spans to a file for Perfetto."""
    with Recorder(path, samplers=False) as recorder:
        for lane in lanes:
            _send(recorder, recorder.lane(lane.name), sorted(lane, key=lambda span: span.end))


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

    def report(self, path: Union[str, "os.PathLike[str]"], figures: Dict[str, Any], lanes: Iterable[Lane]) -> None:
        """Write the page."""
        recorder = self.recorder
        if recorder is not None:
            for lane in lanes:
                if self._sent.get(lane.name) != -1:
                    _send(recorder, self._number(recorder, lane.name), sorted(self._rest(lane), key=lambda s: s.end))
        write_report(None if recorder is None else recorder._pointer(), path, figures)
