"""A feed whose batches come in a framework's own clothes."""
from __future__ import annotations

from typing import Any, Callable, Iterator, Optional

from ._feed import Feed


class View:
    """Iterates like the feed, one epoch for each loop, and converts every batch."""

    def __init__(self, feed: Feed, convert: Callable[[Any], Any]) -> None:
        self.feed, self._convert = feed, convert

    def __iter__(self) -> Iterator[Any]:
        return map(self._convert, iter(self.feed))

    def __len__(self) -> int:
        return len(self.feed)


class Epochs:
    """Iterates over a view as tf.data and PyTorch do: every loop is an epoch from its beginning.

    A loop that was left early is not gone on with, but for the first one, and the first after a checkpoint was
    loaded (`goes_on`). `wanted` is the epoch of the next loop, where the program counts epochs itself.
    """

    def __init__(self, view: Any) -> None:
        self._view, self.goes_on = view, True
        self.wanted: Optional[int] = None

    def __iter__(self) -> Iterator[Any]:
        feed, anew, wanted = self._view.feed, not self.goes_on, self.wanted
        self.goes_on, self.wanted = False, None
        anew = anew and feed.position > 0
        if wanted is None:
            wanted = feed.epoch + anew
        if anew or wanted != feed.epoch:
            feed.seek(wanted)
        return iter(self._view)
