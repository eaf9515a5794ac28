"""Iterate over a feed with its batches converted to a framework's types."""
from __future__ import annotations

from typing import Any, Callable, Iterator, Optional

from ._feed import Epoch, Feed


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


class Epochs:
    """Iterates over a view as tf.data and PyTorch do: every loop starts a new epoch.

    An interrupted loop is not resumed. Only the first loop, and the first after loading a checkpoint (`resumes`),
    starts at the feed's current position. `wanted` is the epoch of the next loop if the program sets it.
    """

    def __init__(self, view: Any) -> None:
        self._view, self.resumes = view, True
        self.wanted: Optional[int] = None

    def __iter__(self) -> Iterator[Any]:
        feed, restart, wanted = self._view.feed, not self.resumes, self.wanted
        self.resumes, self.wanted = False, None
        restart = restart and feed.position > 0
        if wanted is None:
            wanted = feed.epoch + restart
        if restart or wanted != feed.epoch:
            feed.seek(wanted)
        return iter(self._view)
