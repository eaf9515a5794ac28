"""Spans of a profiled loop and their totals, in bounded memory.

Times are CLOCK_MONOTONIC in nanoseconds, the clock of the engine's spans; all processes of a machine share it, so spans
from worker processes fit on one timeline.
"""
from __future__ import annotations

import copy
import threading
import time
from array import array
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

GET, DEVICE, RUN, FETCH, DECODE, TRANSFORM, CACHE, COLLATE = range(8)
TAGS = ("get batch", "to device", "run batch", "fetch", "decode", "transform", "cache", "collate")
MOST_SPANS = 500_000  # per lane; later ones are counted, not kept

now = time.monotonic_ns


class Span(NamedTuple):
    tag: int
    name: str
    begin: int
    end: int
    item: int  # number of the batch or sample; -1: unknown


class Lane:
    """A row of the timeline: the spans of one thread or process."""

    def __init__(self, name: str, limit: int = MOST_SPANS) -> None:
        self.name, self.dropped, self._limit = name, 0, limit
        self._tags, self._names, self._times, self._items = array("B"), array("H"), array("Q"), array("q")
        self._known: Dict[str, int] = {}
        self.echo: Optional[Callable[[Span], None]] = None  # is told of every span

    def add(self, tag: int, name: str, begin: int, end: int, item: int = -1) -> None:
        if self.echo is not None:
            self.echo(Span(tag, name, begin, end, item))
        if len(self._tags) >= self._limit or (name not in self._known and len(self._known) >= 65535):
            self.dropped += 1
            return
        self._tags.append(tag)
        self._names.append(self._known.setdefault(name, len(self._known)))
        self._times.extend((begin, end))
        self._items.append(item)

    def copied(self) -> "Lane":
        """The spans so far."""
        other = copy.copy(self)
        other.echo, other._known = None, dict(self._known)
        other._tags, other._names, other._times, other._items = (values[:] for values in (
            self._tags, self._names, self._times, self._items))
        return other

    def __len__(self) -> int:
        return len(self._tags)

    def __iter__(self) -> Iterator[Span]:
        names = list(self._known)
        for i, tag in enumerate(self._tags):
            yield Span(tag, names[self._names[i]], self._times[2 * i], self._times[2 * i + 1], self._items[i])


class Total:
    """Calls of one kind: how many, and how long they took."""

    __slots__ = ("calls", "items", "ns", "own_ns", "most_ns")

    def __init__(self) -> None:
        self.calls = self.items = self.ns = self.own_ns = self.most_ns = 0

    def add(self, ns: int, own_ns: int, items: int, calls: int = 1, most_ns: int = 0) -> None:
        self.calls += calls
        self.items += items
        self.ns += ns
        self.own_ns += own_ns
        self.most_ns = max(self.most_ns, most_ns or ns)


class Totals(Dict[Tuple[int, str], Total]):
    """Totals by tag and name."""

    def of(self, tag: int, name: str) -> Total:
        found = self.get((tag, name))
        if found is None:
            found = self[tag, name] = Total()
        return found

    def merge(self, other: "Totals") -> None:
        for (tag, name), total in other.items():
            self.of(tag, name).add(total.ns, total.own_ns, total.items, total.calls, total.most_ns)

    def to_rows(self) -> List[List[Any]]:
        return [[tag, name, t.calls, t.items, t.ns, t.own_ns, t.most_ns] for (tag, name), t in self.items()]

    @classmethod
    def from_rows(cls, rows: List[List[Any]]) -> "Totals":
        totals = cls()
        for tag, name, calls, items, ns, own_ns, most_ns in rows:
            totals.of(int(tag), str(name)).add(int(ns), int(own_ns), int(items), int(calls), int(most_ns))
        return totals


class Calls:
    """Times calls, which may nest: a call's own time is without that of the calls inside it. Any thread."""

    def __init__(self) -> None:
        self.lane, self.totals, self.on = Lane(""), Totals(), True
        self._lock, self._local = threading.Lock(), threading.local()

    def _inside(self) -> List[int]:
        """Of each call under way on this thread: time spent in calls inside it."""
        stack: Optional[List[int]] = getattr(self._local, "stack", None)
        if stack is None:
            stack = self._local.stack = []
        return stack

    def timed(self, tag: int, name: str, item: int, items: int, function: Callable[..., Any], *args: Any,
              **named: Any) -> Any:
        """Call `function`, which works on `items` samples; on none if it raises StopIteration."""
        if not self.on:
            return function(*args, **named)
        stack, ended = self._inside(), False
        stack.append(0)
        begin = now()
        try:
            return function(*args, **named)
        except StopIteration:
            ended = True
            raise
        finally:
            end = now()
            inside = stack.pop()
            if stack:
                stack[-1] += end - begin
            if not ended:
                with self._lock:
                    self.lane.add(tag, name, begin, end, item)
                    self.totals.of(tag, name).add(end - begin, max(0, end - begin - inside), items)
