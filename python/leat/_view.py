"""A feed whose batches come in a framework's own clothes."""
from __future__ import annotations

from typing import Any, Callable, Iterator

from ._feed import Feed


class View:
    """Iterates like the feed, one epoch for each loop, and converts every batch."""

    def __init__(self, feed: Feed, convert: Callable[[Any], Any]) -> None:
        self.feed, self._convert = feed, convert

    def __iter__(self) -> Iterator[Any]:
        return map(self._convert, iter(self.feed))

    def __len__(self) -> int:
        return len(self.feed)
