"""Batches as PyTorch tensors.

CPU tensors share the engine's memory. For a GPU, batches go through pinned memory and are copied on a separate CUDA
stream, ahead of the step.
"""
from __future__ import annotations

import collections
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

import torch
from torch.utils.dlpack import from_dlpack

from ._batch import OFFSETS, SHAPES, Batch, Ragged
from ._feed import Epoch, Feed
from ._view import Epochs, View
from .errors import InvalidError


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


def tensors(batch: Any) -> Dict[str, Any]:
    """The fields of a batch as tensors on the CPU, without a copy."""
    if isinstance(batch, Batch):
        return {name: _from_engine(batch, name) for name in batch}
    return {name: _from_python(value) for name, value in batch.items()}


def _each(function: Any, value: Any) -> Any:
    """Apply `function` to all tensors in a field's value."""
    if isinstance(value, Jagged):
        shapes = None if value.shapes is None else function(value.shapes)
        return Jagged(function(value.values), function(value.offsets), shapes)
    if isinstance(value, list):
        return [_each(function, item) for item in value]
    return function(value) if isinstance(value, torch.Tensor) else value


class _OnDevice:
    """Batches on a device. On CUDA, up to `prefetch` of them are copied ahead, on a separate stream."""

    def __init__(self, feed: Feed, device: torch.device, prefetch: int) -> None:
        self.feed, self.device, self._prefetch = feed, device, prefetch
        self.reached: Optional[Tuple[int, int]] = None  # epoch and position after the last batch yielded

    def __len__(self) -> int:
        return len(self.feed)

    def __repr__(self) -> str:
        return f"<PyTorch batches on {self.device} of {self.feed!r}>"

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return self._ahead() if self.device.type == "cuda" else Epoch(self.feed, self._moved)

    def _moved(self, batch: Any) -> Dict[str, Any]:
        return {name: _each(lambda t: t.to(self.device), value) for name, value in tensors(batch).items()}

    def _start(self, batch: Any, stream: Any) -> Any:
        # The copy to pinned memory releases the engine's batch. PyTorch keeps the pinned memory until the copy
        # queued on the stream is done.
        pinned = {name: _each(torch.Tensor.pin_memory, value) for name, value in tensors(batch).items()}
        with torch.cuda.stream(stream):
            out = {name: _each(lambda t: t.to(self.device, non_blocking=True), v) for name, v in pinned.items()}
        return out, stream.record_event(), (self.feed.epoch, self.feed.position)

    def _ahead(self) -> Iterator[Dict[str, Any]]:
        stream = torch.cuda.Stream(self.device)
        begun: "collections.deque[Any]" = collections.deque()
        try:
            for batch in self.feed:
                begun.append(self._start(batch, stream))
                del batch
                if len(begun) > self._prefetch:
                    yield self._finish(begun.popleft())
            while begun:
                yield self._finish(begun.popleft())
        finally:
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


def view(feed: Feed, device: Any = None, prefetch: int = 1) -> Any:
    """What `feed.torch(...)` returns: iterates like the feed and yields dicts of tensors."""
    device = torch.device("cpu" if device is None else device)
    if device.type == "cpu":
        return View(feed, tensors, "PyTorch")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InvalidError(f"cannot use device {device}: PyTorch finds no GPU")
    return _OnDevice(feed, device, prefetch)


class _Samples(torch.utils.data.Dataset[Any]):
    """`DataLoader.dataset`: only its length is available."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def __len__(self) -> int:
        return self._feed.samples

    def __getitem__(self, index: int) -> Any:
        raise InvalidError("a feed has no access to single samples by index; loop over its batches")


class _Order(torch.utils.data.SequentialSampler):
    """`DataLoader.sampler`: only sets the next epoch. The order is that of the feed's plan.

    A subclass of SequentialSampler, so that frameworks that inspect or replace samplers, as Lightning does, treat it as
    a sequential one.
    """

    def __init__(self, samples: _Samples, epochs: Epochs) -> None:
        super().__init__(samples)
        self._epochs = epochs

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next loop, as in DistributedSampler. It starts at its beginning or at the checkpoint."""
        self._epochs.wanted = epoch


class DataLoader:
    """A feed with the interface of torch.utils.data.DataLoader.

    As in PyTorch, every loop starts a new epoch, even if the last loop was interrupted; the first loop after
    `load_state_dict` resumes at the checkpoint. With `fields`, batches are tuples of those fields, in that order;
    without it they are dicts. If torch.distributed was initialised after the feed was opened, the feed is reopened
    with its ranks.
    """

    num_workers = 0
    batch_sampler = None

    def __init__(self, feed: Feed, device: Any = None, fields: Optional[Tuple[str, ...]] = None,
                 prefetch: int = 1) -> None:
        self._feed, self._view, self._fields = feed, view(feed, device, prefetch), fields
        self._epochs = Epochs(self._view)
        self.dataset = _Samples(feed)
        self.sampler = _Order(self.dataset, self._epochs)

    @property
    def feed(self) -> Feed:
        self._feed._join()
        return self._feed

    def __repr__(self) -> str:
        return f"<leat.torch.DataLoader of {self._view!r}>"

    @property
    def batch_size(self) -> int:
        return self.feed.batch_size

    def __len__(self) -> int:
        return len(self.feed)

    def __iter__(self) -> Iterator[Any]:
        self._feed._join()
        for batch in self._epochs:
            yield batch if self._fields is None else tuple(batch[name] for name in self._fields)

    def state_dict(self) -> Dict[str, Any]:
        """A checkpoint of the loop. Batches being copied to the device do not count."""
        state = self.feed.state_dict()
        reached = getattr(self._view, "reached", None)
        return state if reached is None else dict(state, epoch=reached[0], position=reached[1])

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self.feed.load_state_dict(state)
        self._epochs.resumes, self._epochs.wanted = True, None
