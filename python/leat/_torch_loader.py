"""A feed as a torch.utils.data.DataLoader, also for libraries that inspect, wrap or rebuild loaders.

The loader runs its loops itself: batches come from the feed, in the feed's order, and each rank gets its part. Some
libraries build a plain DataLoader from a loader's `dataset` and `batch_sampler` to leave out batches (skipping to a
checkpoint) or to note which samples a batch holds. So the batch sampler yields each batch as a range of positions in
the epoch, and the data set turns such a range into the batch. The feed jumps to the first one asked for, so skipped
batches are not read.
"""
from __future__ import annotations

import inspect
import itertools
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import torch
from torch.utils.data import BatchSampler, Dataset, DistributedSampler, SequentialSampler

from . import _accelerate, _options
from ._feed import Feed
from ._pipeline import Pipeline
from ._torch_tensors import view
from ._view import MOVED, Epochs, check_names, check_valid
from .errors import InvalidError

_Fields = Union[None, str, Tuple[str, ...]]

_OPTIONS = [name for name in inspect.signature(Feed).parameters if name not in ("pipeline", "unknown")]


def _opened(source: Any, options: Dict[str, Any]) -> Feed:
    """The feed itself, or a pipeline or spec opened with the options of Feed."""
    unknown = {name: value for name, value in options.items() if name not in _OPTIONS}
    _options.refuse(unknown, ["device", "fields", *_OPTIONS])
    if isinstance(source, (str, Pipeline)):
        return Feed(source, **options)
    if not isinstance(source, Feed):
        raise InvalidError(f"leat.torch.DataLoader takes a feed, a pipeline or a spec, not {type(source).__name__}")
    if options:
        raise InvalidError(f"the feed is open already: pass {', '.join(options)} to .feed(), or pass the pipeline")
    return source


class _Reader:
    """What a loader shares with its data set and samplers: the feed, the loops over it, and the form of batches."""

    def __init__(self, feed: Feed, device: Any, fields: _Fields, prefetch: int) -> None:
        self._fields = fields
        self._names = None if fields is None else (fields,) if isinstance(fields, str) else tuple(fields)
        self.feed, self.view = feed, view(feed, device, prefetch, self._names)
        self.epochs = Epochs(self.view)
        self.accelerated = False  # Accelerate prepared the loader
        self._places = device is None  # ... and chooses the device
        self._walked = 0, 0  # the latest loop over positions, and its epoch
        self._batches: Optional[Iterator[Any]] = None
        self._next: Optional[Tuple[int, int]] = None  # where the next of `_batches` starts
        check_names(feed, self._names or ())
        self._check()

    def _check(self) -> None:
        """Ranks, or a checkpoint of other batches, can leave an incomplete batch where there was none."""
        if self._names is not None:
            check_valid(self.feed, self._names)

    def join(self) -> Feed:
        """The feed, reopened with its ranks if torch.distributed was initialised in the meantime."""
        self.feed._join()
        return self.feed

    @property
    def global_rows(self) -> int:
        return self.feed.batch_size * self.feed.world

    @property
    def drop_last(self) -> bool:
        return self.join().tail == "drop"

    @property
    def delivered(self) -> int:
        """Samples per epoch that are not dropped, over all ranks."""
        feed = self.join()
        return len(feed) * self.global_rows if feed.tail == "drop" else feed.samples

    # Read by Accelerate's GradientState while a loop runs.

    @property
    def end_of_dataloader(self) -> bool:
        return self.epochs.at_end

    @property
    def remainder(self) -> int:
        """Samples in the last batch over all ranks; 0: it is full."""
        return max(0, self.delivered - self.epochs.start[1]) % self.global_rows

    # Loops.

    def _form(self, batch: Dict[str, Any]) -> Any:
        given: Any
        if isinstance(self._fields, str):
            given = batch[self._fields]
        else:
            given = batch if self._names is None else tuple(batch[name] for name in self._names)
        return _accelerate.on_device(given) if self.accelerated and self._places else given

    def _loop(self, steps: Iterable[Any]) -> Iterator[Any]:
        return _accelerate.watched(self, steps) if self.accelerated else iter(steps)

    def batches(self) -> Iterator[Any]:
        """One loop over the batches."""
        self.join()
        self._check()
        return self._loop(map(self._form, self.epochs))

    def positions(self) -> Iterator[range]:
        """One loop over the positions of this rank's samples, batch by batch. Reads nothing."""
        self.join()
        self._check()
        return self._loop(self._walk())

    def _walk(self) -> Iterator[range]:
        feed, start = self.feed, self.epochs.begin()
        epoch = feed.epoch if start is None else start[0]
        self._walked, self._next = (self.epochs.latest, epoch), None
        yield from self.epochs.run((epoch, 0), map(feed._samples_of, range(len(feed))))
        if self._next is None:  # all batches were skipped
            feed.seek(epoch + 1)

    def batch_at(self, positions: range) -> Any:
        """The batch with these positions, which the latest loop over `positions` gave."""
        loop, epoch = self._walked
        if loop != self.epochs.latest:
            raise InvalidError(MOVED)
        rows = self.global_rows
        start = positions.start // rows * rows
        if self._batches is None or self._next != (epoch, start):
            self.feed.seek(epoch, start)
            self._batches = iter(self.view)
        self._next = epoch, start + rows
        return self._form(next(self._batches))


class _Samples(Dataset[Any]):
    """`DataLoader.dataset`: its length, and whole batches by their positions in the epoch."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader

    def __len__(self) -> int:
        return self._reader.feed.samples

    @property
    def classes(self) -> List[str]:
        """Names of the classes, as in torchvision's ImageFolder; empty if the source does not know them."""
        return self._reader.feed.classes

    def __getitem__(self, index: int) -> Any:
        raise InvalidError("a feed has no access to single samples by index; loop over its batches")

    def __getitems__(self, positions: Any) -> Any:
        return self._reader.batch_at(positions) if isinstance(positions, range) else self[positions[0]]

    def __repr__(self) -> str:
        return f"<{len(self)} samples of {repr(self._reader.feed.pipeline)[1:-1]}>"


class _Order(SequentialSampler, DistributedSampler[Any]):
    """`DataLoader.sampler`: sets the next epoch, and knows this rank's share. The order is that of the feed's plan.

    A DistributedSampler, so that libraries do not divide the samples among ranks once more, and a SequentialSampler,
    so that they do not replace it to turn shuffling off.
    """

    def __init__(self, samples: _Samples) -> None:
        self.data_source = self.dataset = samples
        self._reader, self.epoch = samples._reader, 0

    @property
    def rank(self) -> int:  # type: ignore[override]
        return self._reader.join().rank

    @property
    def num_replicas(self) -> int:  # type: ignore[override]
        return self._reader.join().world

    def __len__(self) -> int:
        """Samples per epoch on this rank; if ranks differ, the most that one has."""
        return -(-self._reader.delivered // self._reader.feed.world)

    def __iter__(self) -> Iterator[int]:
        return itertools.chain.from_iterable(self._reader.positions())

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next loop, as in DistributedSampler. It starts at its beginning or at the checkpoint."""
        self.epoch = epoch
        self._reader.epochs.set_epoch(epoch)


class _Batches(BatchSampler):
    """`DataLoader.batch_sampler`. Takes a batch size and drop_last as PyTorch's, but they are the feed's."""

    sampler: _Order

    def __init__(self, sampler: _Order, batch_size: Optional[int] = None, drop_last: Optional[bool] = None) -> None:
        self.sampler = sampler
        self._reader = sampler._reader

    @property
    def batch_size(self) -> int:  # type: ignore[override]
        return self._reader.join().batch_size

    @property
    def drop_last(self) -> bool:  # type: ignore[override]
        return self._reader.drop_last

    def set_epoch(self, epoch: int) -> None:
        self.sampler.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self._reader.join())

    def __iter__(self) -> Iterator[range]:  # type: ignore[override]
        return self._reader.positions()


def _collated(batch: Any) -> Any:
    return batch


class DataLoader(torch.utils.data.DataLoader[Any]):
    """A feed as a torch.utils.data.DataLoader.

    As in PyTorch, every loop starts a new epoch, even if the last loop was interrupted; the first loop after
    `load_state_dict` resumes at the checkpoint. If torch.distributed was initialised after the feed was opened, the
    feed is reopened with its ranks.

    Args:
        dataset: a feed, or a pipeline or spec, which is opened with `options`.
        device: where to put the batches; None: the CPU.
        fields: None: batches are dicts. Several names: tuples of these fields, in that order. One name: the field's
            tensor itself. 'valid' names a bool tensor that is False for rows that are padding or repeats.
        prefetch: batches to copy ahead to a CUDA device.
        options: the options of `leat.Feed`, such as seed and threads.
    """

    sampler: _Order
    dataset: _Samples
    use_stateful_dataloader = True  # Accelerate's save_state and load_state include the loader

    def __new__(cls, dataset: Any = None, *args: Any, batch_sampler: Any = None, **options: Any) -> Any:
        # Lightning and Ignite rebuild loaders from their arguments or attributes, with a batch sampler made from ours.
        samples = getattr(getattr(batch_sampler, "sampler", None), "data_source", None)
        if isinstance(samples, _Samples):
            return torch.utils.data.DataLoader(samples, batch_sampler=batch_sampler, collate_fn=_collated)
        return super().__new__(cls)

    def __init__(self, dataset: Union[Feed, Pipeline, str], device: Any = None, fields: _Fields = None,
                 prefetch: int = 1, **options: Any) -> None:
        self._reader = _Reader(_opened(dataset, options), device, fields, prefetch)
        samples = _Samples(self._reader)
        order = _Order(samples)
        super().__init__(samples, batch_sampler=_Batches(order), collate_fn=_collated)
        self.__dict__["sampler"] = order  # PyTorch made another one, and refuses to replace it now

    @property
    def feed(self) -> Feed:
        return self._reader.join()

    @property
    def batch_size(self) -> int:
        """Samples in a full batch on this rank."""
        return self.feed.batch_size

    @batch_size.setter
    def batch_size(self, value: Any) -> None:
        """PyTorch's constructor sets None."""

    @property
    def drop_last(self) -> bool:
        return self._reader.drop_last

    @drop_last.setter
    def drop_last(self, value: Any) -> None:
        """PyTorch's constructor sets False."""

    def __len__(self) -> int:
        return len(self.feed)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return self._reader.batches()

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next loop: the same as `sampler.set_epoch`."""
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> Dict[str, Any]:
        """A checkpoint of the loop. Batches being copied to the device do not count."""
        self._reader.join()
        return self._reader.epochs.state_dict()

    def load_state_dict(self, state: Dict[str, Any], strict: bool = True) -> None:
        """Resume from a checkpoint: the next loop starts there. `strict` is that of `Feed.load_state_dict`."""
        self._reader.join()
        self._reader.epochs.load_state_dict(state, strict)

    def __repr__(self) -> str:
        feed = self._reader.feed
        names = ", ".join(self._reader._names or feed.fields)
        if feed.closed:
            return f"<leat.torch.DataLoader of {names}, closed>"
        ranks = f", rank {feed.rank} of {feed.world}" if feed.world > 1 else ""
        return (f"<leat.torch.DataLoader of {names}: {len(feed)} batches of {feed.batch_size}{ranks}, "
                f"{repr(feed.pipeline)[1:-1]}, seed={feed.seed}>")

    # Accelerate asks a loader whether it is prepared, and otherwise wraps it.

    @property
    def _is_accelerate_prepared(self) -> bool:
        self._reader.accelerated = True
        return True

    @_is_accelerate_prepared.setter
    def _is_accelerate_prepared(self, value: bool) -> None:
        self._reader.accelerated = True

    @property
    def total_batch_size(self) -> int:
        return self.feed.batch_size * self.feed.world

    @property
    def total_dataset_length(self) -> int:
        return self.feed.samples
