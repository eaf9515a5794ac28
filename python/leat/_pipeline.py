"""A pipeline being written: each op returns a new one, and `feed` opens it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple, Union

from . import _ops
from .errors import InvalidError

if TYPE_CHECKING:
    from ._feed import Feed


class Pipeline:
    """A source and the ops behind it, as text. Immutable: every op gives a new pipeline.

    >>> leat.tfrecord("train-*.tfrecord").example(image=bytes, label=int).decode().resize(100, 100).batch(32)
    <tfrecord('train-*.tfrecord') | example(image=bytes, label=int64) | decode | resize(100, 100) | batch(32)>
    """

    __slots__ = ("_calls", "_maps")

    def __init__(self, calls: Sequence[Any], maps: Sequence[Any] = ()) -> None:
        self._calls: Tuple[Any, ...] = tuple(calls)  # texts; a source in memory turns into its text when asked
        self._maps: Tuple[Any, ...] = tuple(maps)

    @property
    def spec(self) -> str:
        """The text that `leat feed` and `leat.feed` take. Functions in Python are not part of it."""
        return " | ".join(str(call) for call in self._calls)

    def __str__(self) -> str:
        return self.spec

    def __repr__(self) -> str:
        return "<" + " | ".join([self.spec] + [str(stage) for stage in self._maps]) + ">"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pipeline):
            return NotImplemented
        return self.spec == other.spec and self._maps == other._maps

    def __hash__(self) -> int:
        return hash(self.spec)

    def __or__(self, ops: str) -> "Pipeline":
        """The ops of a text behind these: `pipeline | "decode | resize(100, 100)"`."""
        if not isinstance(ops, str):
            return NotImplemented
        return self._with(ops)

    def _with(self, call: str) -> "Pipeline":
        if self._maps:
            raise InvalidError(f"'{call}' cannot follow {self._maps[-1]}: functions in Python work on finished "
                               "batches, so they come last")
        return Pipeline(self._calls + (call,))

    def map(self, function: Callable[..., Any], fields: Union[None, str, Sequence[str]] = None) -> "Pipeline":
        """Work on each sample in Python, on the consumer's thread, after all other ops.

        Without `fields` the function gets the sample as a dict and returns one. With one name it gets that
        field's value and returns the new one, with several it gets as many values and returns as many. A
        function that has a parameter `rng` gets a NumPy Generator that depends on seed, epoch and the sample's
        position alone.
        """
        from ._map import MapSample

        return Pipeline(self._calls, self._maps + (MapSample(function, fields, len(self._maps)),))

    def map_batch(self, function: Callable[..., Any]) -> "Pipeline":
        """Work on each batch in Python, on the consumer's thread, after all other ops.

        The function gets the batch as a dict of arrays, which it may change in place, and returns a dict, or
        None for the one it got. A parameter `rng` is given as for `map`, by the batch's first sample.
        """
        from ._map import MapBatch

        return Pipeline(self._calls, self._maps + (MapBatch(function, len(self._maps)),))

    def feed(self, *, seed: int = 0, epochs: int = 0, threads: int = 0, memory: Union[int, str] = 0,
             rank: Optional[int] = None, world: Optional[int] = None, on_error: str = "fail",
             max_bad: Optional[int] = None) -> "Feed":
        """Open the pipeline; the options are those of `leat.feed`."""
        from ._feed import Feed

        return Feed(self, seed=seed, epochs=epochs, threads=threads, memory=memory, rank=rank, world=world,
                    on_error=on_error, max_bad=max_bad)


def add_ops(items: Sequence[Dict[str, Any]]) -> None:
    """Gives Pipeline a method for every op."""
    for item in items:
        if item["kind"] != "source":
            if item["name"] in Pipeline.__dict__:
                raise AssertionError(f"op '{item['name']}' hides a method of Pipeline")
            setattr(Pipeline, item["name"], _ops.maker(item, True, Pipeline._with))
