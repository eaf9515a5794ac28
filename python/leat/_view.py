"""Iterate over a feed with its batches converted to a framework's types."""
from __future__ import annotations

import difflib
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from ._batch import Batch
from ._feed import Epoch, Feed
from .errors import InvalidError

MOVED = ("this loop is over: a newer loop or load_state_dict has moved the feed; for loops side by side, open a feed for "
         "each")
VALID = "valid"  # which rows of a batch count for the epoch; every batch has it, as an attribute


class View:
    """Iterates like the feed, one epoch per loop, and converts every batch."""

    def __init__(self, feed: Feed, convert: Callable[[Any], Any], kind: str) -> None:
        self.feed, self._convert, self._kind = feed, convert, kind

    def __iter__(self) -> Iterator[Any]:
        return Epoch(self.feed, self._convert)

    def __len__(self) -> int:
        return len(self.feed)

    def __repr__(self) -> str:
        return f"<{self._kind} batches of {self.feed!r}>"


def names_of(batch: Any) -> List[str]:
    """The entries of a batch's dict: its fields, and `valid` if it can have rows that do not count."""
    return [*batch, VALID] if isinstance(batch, Batch) and batch.has_fill else list(batch)


def is_valid(batch: Any, name: str) -> bool:
    """Whether `name` means the batch's attribute `valid`, not a field of that name."""
    return name == VALID and name not in batch._fields


def check_names(feed: Feed, names: Iterable[str]) -> None:
    """Fail if the feed's batches lack a field. After map the fields are not known before the first batch."""
    if feed.pipeline._maps:
        return
    for name in names:
        if name not in feed.fields and name != VALID:
            near = difflib.get_close_matches(str(name), feed.fields, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise InvalidError(f"no field '{name}' in the batch; its fields are {', '.join(feed.fields)}{hint}")


def check_valid(feed: Feed, names: Iterable[str]) -> None:
    """Fail if batches without `valid` would pass off padding as samples.

    Rows that repeat samples (tail=wrap) are what PyTorch's DistributedSampler gives, too.
    """
    if not feed.has_fill or VALID in names:
        return
    skips = feed._options["on_error"] == "skip"
    if feed.tail != "wrap" or skips:
        why = "on_error='skip'" if skips else f"tail={feed.tail}"
        named = ", ".join(repr(name) for name in (*names, VALID))
        raise InvalidError(f"with {why} a batch can have rows that are not samples: name 'valid' as well, ({named}), "
                           "and leave out rows where it is False; or choose another tail in batch()")


class Epochs:
    """Loops over a view as tf.data and PyTorch do: every loop is a new epoch.

    An interrupted loop is not resumed. Only the first loop, and the first after loading a checkpoint, starts at the
    feed's position. If that checkpoint was made at an epoch's last batch, the loop has no batches. With `peeks`, a loop
    that is left after one batch is a look at the data: the next one starts at the same place.
    """

    def __init__(self, view: Any, peeks: bool = False) -> None:
        self._view, self._resumes, self._peeks = view, True, peeks
        self._given = 0  # batches of the latest loop
        self._wanted: Optional[int] = None  # epoch of the next loop, if the program sets it
        self._loaded: Optional[int] = None  # epoch of the checkpoint that the next loop resumes
        self._shift = 0  # added to the epochs that the program sets
        self.latest = 0  # number of the latest loop
        self.running: Optional[int] = None  # epoch of the latest loop, until its end
        self.start = 0, 0  # where the latest loop started

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next loop.

        A program that loads a checkpoint and then sets an earlier epoch counts loops since it was started, as
        Lightning Fabric does. Its count continues at the checkpoint's epoch.
        """
        self._wanted = epoch

    def _reached(self) -> Tuple[int, int]:
        """Epoch and position of the next batch. Batches being copied to a device do not count."""
        reached: Optional[Tuple[int, int]] = getattr(self._view, "reached", None)
        return reached or (self._view.feed.epoch, self._view.feed.position)

    @property
    def at_end(self) -> bool:
        """Whether the loop has delivered its last batch."""
        feed, (epoch, position) = self._view.feed, self._reached()
        if self.running is None:
            return False
        # With tail=exact, a rank can have one batch fewer. Its position stays at the end of the one before.
        return epoch != self.running or position >= len(feed) * feed.batch_size * feed.world

    def state_dict(self) -> Dict[str, Any]:
        """A checkpoint of the loop. At an epoch's last batch, it is at the end of that epoch, not the next one's start:
        the loop that loads it has to end, too."""
        (epoch, position), feed = self._reached(), self._view.feed
        current = self._loaded if self.running is None else self.running
        if current is not None and (current != epoch or self.at_end):
            epoch, position = current, feed.samples
        return dict(feed.state_dict(), epoch=epoch, position=position)

    def load_state_dict(self, state: Dict[str, Any], strict: bool = True) -> None:
        self._view.feed.load_state_dict(state, strict)
        self._loaded, self._resumes, self._wanted, self.running = int(state["epoch"]), True, None, None
        self._shift, self.latest = 0, self.latest + 1

    def saved(self) -> Callable[[], None]:
        """A function that puts everything back as it is now; the feed has to be put back first. Loops stay over."""
        state = dict(vars(self))

        def restore() -> None:
            vars(self).update(state, latest=self.latest + 1)

        return restore

    def begin(self) -> Optional[Tuple[int, int]]:
        """Begin a loop: the epoch and position to start at, or None if it has no batches."""
        here = self._view.feed.epoch, self._view.feed.position
        if self._peeks and self._given == 1 and self.running is not None and not self.at_end:
            self.latest += 1
            return self.start
        resumes, loaded, wanted = self._resumes, self._loaded, self._wanted
        self._resumes, self._loaded, self._wanted, self.running = False, None, None, None
        self.latest += 1
        if wanted is not None:
            if loaded is not None:
                self._shift = max(0, loaded - wanted)
            wanted += self._shift
        epoch = here[0] if loaded is None else loaded
        if resumes and wanted in (None, epoch):
            return here if epoch == here[0] else None  # a position at an epoch's end is the next one's start
        return here[0] + (here[1] > 0) if wanted is None else wanted, 0

    def run(self, start: Tuple[int, int], steps: Iterable[Any]) -> Iterator[Any]:
        """Yield `steps` as the loop that starts at `start`. Its iterator fails once a newer loop has begun."""
        loop, self.running, self.start, self._given = self.latest, start[0], start, 0
        for step in steps:
            self._given += 1
            yield step
            if loop != self.latest:
                raise InvalidError(MOVED)
        self.running = None

    def __iter__(self) -> Iterator[Any]:
        feed, start = self._view.feed, self.begin()
        if start is None:
            return
        if start != (feed.epoch, feed.position):
            feed.seek(*start)
        yield from self.run(start, self._view)
