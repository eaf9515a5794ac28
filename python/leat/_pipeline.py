"""The pipeline builder: each op returns a new pipeline, and `feed` opens it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, NoReturn, Optional, Sequence, Tuple, Union

from . import _ops
from .errors import InvalidError

if TYPE_CHECKING:
    from ._feed import Feed


class Pipeline:
    """A source followed by ops. Immutable: every op returns a new pipeline.

    >>> leat.tfrecord("train-*.tfrecord").example(image=bytes, label=int).decode().resize(100, 100).batch(32)
    <tfrecord('train-*.tfrecord') | example(image=bytes, label=int64) | decode | resize(100, 100) | batch(32)>
    """

    __slots__ = ("_calls", "_maps")

    def __init__(self, calls: Sequence[Any], maps: Sequence[Any] = ()) -> None:
        self._calls: Tuple[Any, ...] = tuple(calls)  # strings, or an ArraySource, whose str() is its call
        self._maps: Tuple[Any, ...] = tuple(maps)

    @property
    def spec(self) -> str:
        """The spec, as `leat feed` and `leat.feed` take it. Python functions are not part of it."""
        return " | ".join(str(call) for call in self._calls)

    def __str__(self) -> str:
        return self.spec

    def __repr__(self) -> str:
        calls = [call if isinstance(call, str) else repr(call) for call in self._calls]
        return "<" + " | ".join(calls + [str(stage) for stage in self._maps]) + ">"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pipeline):
            return NotImplemented
        return self.spec == other.spec and self._maps == other._maps

    def __hash__(self) -> int:
        return hash(self.spec)

    def __or__(self, ops: str) -> "Pipeline":
        """Append ops given as text: `pipeline | "decode | resize(100, 100)"`."""
        if not isinstance(ops, str):
            return NotImplemented
        return self._with(ops)

    def _with(self, call: str) -> "Pipeline":
        if self._maps:
            raise InvalidError(f"'{call}' cannot follow {self._maps[-1]}: Python functions run on finished batches, "
                               "so they must come last")
        return Pipeline(self._calls + (call,))

    def map(self, function: Callable[..., Any], fields: Union[None, str, Sequence[str]] = None) -> "Pipeline":
        """Call a Python function on each sample, on the consumer's thread, after all ops.

        Without `fields` the function takes the sample as a dict and returns a dict. With one field name it takes
        that field's value and returns the new one; with several it takes and returns that many values. A function
        with a parameter `rng` gets a NumPy Generator that depends only on seed, epoch and the sample's position.
        """
        from ._map import MapSample

        return Pipeline(self._calls, self._maps + (MapSample(function, fields, len(self._maps)),))

    def map_batch(self, function: Callable[..., Any]) -> "Pipeline":
        """Call a Python function on each batch, on the consumer's thread, after all ops.

        The function takes the batch as a dict of arrays, which it may change in place, and returns a dict, or None
        to keep the one it got. A parameter `rng` works as in `map`, with the position of the batch's first sample.
        """
        from ._map import MapBatch

        return Pipeline(self._calls, self._maps + (MapBatch(function, len(self._maps)),))

    def feed(self, *, seed: int = 0, epochs: int = 0, threads: int = 0, memory: Union[int, str] = 0,
             rank: Optional[int] = None, world: Optional[int] = None, on_error: str = "fail",
             max_bad: Optional[int] = None, fingerprint: str = "names", **unknown: NoReturn) -> "Feed":
        """Open the pipeline. Takes the options of `leat.Feed`."""
        from ._feed import Feed

        return Feed(self, seed=seed, epochs=epochs, threads=threads, memory=memory, rank=rank, world=world,
                    on_error=on_error, max_bad=max_bad, fingerprint=fingerprint, **unknown)


def add_ops(items: Sequence[Dict[str, Any]]) -> None:
    """Add a method to Pipeline for every op."""
    for item in items:
        if item["kind"] != "source" and item["name"] != "map":  # map takes the function itself
            if item["name"] in Pipeline.__dict__:
                raise AssertionError(f"op '{item['name']}' hides a method of Pipeline")
            setattr(Pipeline, item["name"], _ops.maker(item, True, Pipeline._with))
