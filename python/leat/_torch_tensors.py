"""Batches as PyTorch tensors.

CPU tensors share the engine's memory. For a GPU, this memory is pinned: a batch is copied from where the engine made it,
on a separate CUDA stream, ahead of the step.
"""
from __future__ import annotations

import collections
import functools
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch.utils.dlpack import from_dlpack

from ._batch import OFFSETS, SHAPES, Batch, Ragged
from ._feed import Epoch, Feed
from ._view import View, is_valid, names_of
from .errors import InvalidError


_END = object()


class Jagged(NamedTuple):
    """A field whose samples differ in size: sample i is `values[offsets[i]:offsets[i + 1]]`."""

    values: torch.Tensor
    offsets: torch.Tensor
    shapes: Optional[torch.Tensor] = None

    def nested(self) -> torch.Tensor:
        """Convert one-dimensional samples to a nested tensor."""
        return torch.nested.nested_tensor_from_jagged(self.values, self.offsets)


def _from_engine(batch: Batch, name: str) -> Any:
    form = batch._fields[name]
    if not form.ragged:
        # Both share the memory. NumPy's way is faster but has no bfloat16.
        return from_dlpack(batch.dlpack(name)) if form.bfloat16 else torch.from_numpy(batch[name])
    shapes = from_dlpack(batch.dlpack(name, SHAPES)) if len(form.shape) > 1 else None
    return Jagged(from_dlpack(batch.dlpack(name)), from_dlpack(batch.dlpack(name, OFFSETS)), shapes)


def _from_python(value: Any) -> Any:
    """Convert a result of map: tensors and strings stay as they are."""
    if isinstance(value, Ragged):
        shapes = None if value.shapes is None else torch.as_tensor(value.shapes)
        return Jagged(torch.as_tensor(value.values), torch.as_tensor(value.offsets), shapes)
    if isinstance(value, list):
        return [item if isinstance(item, (str, bytes)) else torch.as_tensor(item) for item in value]
    return torch.as_tensor(value)


def _field(batch: Any, name: str) -> Any:
    if is_valid(batch, name):
        return torch.from_numpy(batch.valid.copy())  # it is read-only
    return _from_engine(batch, name) if isinstance(batch, Batch) else _from_python(batch[name])


def tensors(batch: Any, names: Optional[Iterable[str]] = None) -> Dict[str, Any]:
    """The fields of a batch, and `valid` if it can have fill, as tensors on the CPU, without a copy."""
    return {name: _field(batch, name) for name in (names_of(batch) if names is None else names)}


def _each(function: Any, value: Any) -> Any:
    """Apply `function` to all tensors in a field's value."""
    if isinstance(value, Jagged):
        shapes = None if value.shapes is None else function(value.shapes)
        return Jagged(function(value.values), function(value.offsets), shapes)
    if isinstance(value, list):
        return [_each(function, item) for item in value]
    return function(value) if isinstance(value, torch.Tensor) else value


class _Copy(NamedTuple):
    """A copy to a GPU that may be under way."""

    begun: Any  # events
    done: Any
    sources: List[torch.Tensor]  # the engine's memory: it belongs to the copy until `done`
    issued: int  # ns
    bytes: int
    staged: int


class _Copies:
    """Copies batches to a GPU, one after the other on a stream, and keeps their memory until the GPU has read it."""

    def __init__(self, feed: Feed, device: torch.device) -> None:
        self._feed, self._device, self._stream = feed, device, torch.cuda.Stream(device)
        self._under_way: "collections.deque[_Copy]" = collections.deque()
        self._free = 0  # when the stream was done with the last copy

    def start(self, fields: Dict[str, Any]) -> Any:
        """Begin to copy; the tensors on the GPU, and the event to wait for before they are used."""
        sources: List[torch.Tensor] = []
        staged, issued = 0, time.monotonic_ns()

        def send(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal staged
            if not tensor.is_pinned():  # made by a function, or of a batch that the engine had to copy
                staged += tensor.nbytes
                tensor = tensor.pin_memory()
            sources.append(tensor)
            return tensor.to(self._device, non_blocking=True)

        begun, done = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        try:
            with torch.cuda.stream(self._stream):
                begun.record(self._stream)
                out = {name: _each(send, value) for name, value in fields.items()}
                done.record(self._stream)
        except BaseException:
            self._stream.synchronize()  # the copies that were begun still read `sources`
            raise
        size = sum(tensor.nbytes for tensor in sources)
        self._under_way.append(_Copy(begun, done, sources, issued, size, staged))
        return out, done

    def settle(self, most: int) -> None:
        """Let go of batches that the GPU has read, and wait until at most `most` others are left."""
        while self._under_way:
            copy = self._under_way[0]
            if len(self._under_way) > most:
                copy.done.synchronize()
            elif not copy.done.query():
                return
            begin = max(copy.issued, self._free)
            self._free = begin + int(copy.begun.elapsed_time(copy.done) * 1e6)
            self._feed._to_device(begin, self._free, copy.bytes, copy.staged)
            self._under_way.popleft()


class _OnDevice:
    """Batches on a device. On CUDA, up to `prefetch` of them are copied ahead, on a separate stream."""

    def __init__(self, feed: Feed, convert: Callable[[Any], Dict[str, Any]], device: torch.device,
                 prefetch: int) -> None:
        self.feed, self._convert, self.device, self._prefetch = feed, convert, device, prefetch
        self.reached: Optional[Tuple[int, int]] = None  # epoch and position after the last batch yielded
        self._latest: Any = None  # the batches on their way in the latest loop

    def __len__(self) -> int:
        return len(self.feed)

    def __repr__(self) -> str:
        return f"<PyTorch batches on {self.device} of {self.feed!r}>"

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return self._ahead() if self.device.type == "cuda" else Epoch(self.feed, self._moved)

    def _moved(self, batch: Any) -> Dict[str, Any]:
        size, begin = 0, time.monotonic_ns()

        def send(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal size
            size += tensor.nbytes
            return tensor.to(self.device)

        out = {name: _each(send, value) for name, value in self._convert(batch).items()}
        self.feed._to_device(begin, time.monotonic_ns(), size, 0)
        return out

    def _next(self, batches: Iterator[Any]) -> Any:
        # CUDA registers memory by way of the current device. Another one would get a context for nothing.
        with torch.cuda.device(self.device):
            return next(batches, _END)

    def _ahead(self) -> Iterator[Dict[str, Any]]:
        copies, batches = _Copies(self.feed, self.device), Epoch(self.feed, pins=True)
        begun: "collections.deque[Any]" = collections.deque()
        self._latest = begun
        try:
            while True:
                # The feed gives its own memory, not a copy, to a loop that still holds one batch.
                copies.settle(1)
                batch = self._next(batches)
                if batch is _END:
                    break
                begun.append((*copies.start(self._convert(batch)), (self.feed.epoch, self.feed.position)))
                del batch
                if len(begun) > self._prefetch:
                    yield self._finish(begun.popleft())
            while begun:
                yield self._finish(begun.popleft())
        finally:
            try:
                copies.settle(0)
            finally:
                self._end(begun)

    def _end(self, begun: Any) -> None:
        if self._latest is begun:
            if begun and self.reached and not self.feed.closed:  # interrupted: rewind to the first batch not yielded
                self.feed.seek(*self.reached)
            self.reached = None

    def _finish(self, begun: Any) -> Dict[str, Any]:
        out, copied, self.reached = begun
        current = torch.cuda.current_stream(self.device)
        current.wait_event(copied)
        for value in out.values():
            _each(lambda t: t.record_stream(current), value)
        return out


def view(feed: Feed, device: Any = None, prefetch: int = 1, names: Optional[Tuple[str, ...]] = None) -> Any:
    """What `feed.torch(...)` returns: iterates like the feed and yields dicts of tensors."""
    convert = functools.partial(tensors, names=names)
    device = torch.device("cpu" if device is None else device)
    if device.type == "cpu":
        return View(feed, convert, "PyTorch")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InvalidError(f"cannot use device {device}: PyTorch finds no GPU")
    return _OnDevice(feed, convert, device, prefetch)
