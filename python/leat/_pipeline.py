"""The pipeline builder: each op returns a new pipeline, and `feed` opens it."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NoReturn, Optional, Sequence, Tuple, Union

from . import _ops, _text
from .errors import InvalidError

if TYPE_CHECKING:
    from ._feed import Feed
    from ._map import Fields
    from ._options import Storage
    from ._recorder import Recorder


class Pipeline:
    """A source followed by ops. Immutable: every op returns a new pipeline.

    >>> leat.tfrecord("train-*.tfrecord").example(image=bytes, label=int).decode().resize(100, 100).batch(32)
    <tfrecord('train-*.tfrecord') | example(image=bytes, label=int64) | decode | resize(100, 100) | batch(32)>
    """

    __slots__ = ("_calls", "_maps")

    def __init__(self, calls: Sequence[Any], maps: Sequence[Any] = ()) -> None:
        self._calls: Tuple[Any, ...] = tuple(calls)  # strings, an ArraySource, or a ChainMap
        self._maps: Tuple[Any, ...] = tuple(maps)

    @property
    def spec(self) -> str:
        """The spec, as `leat feed` and `leat.feed` take it. Python functions are not part of it."""
        return " | ".join(call.call if hasattr(call, "task") else str(call) for call in self._calls)

    def __str__(self) -> str:
        return self.spec

    def __repr__(self) -> str:
        calls = [call if isinstance(call, str) else repr(call) for call in self._calls]
        return "<" + " | ".join(calls + [str(stage) for stage in self._maps]) + ">"

    def _repr_html_(self) -> str:
        from . import _notebook

        return _notebook.pipeline(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pipeline):
            return NotImplemented
        return (self.spec == other.spec and self._maps == other._maps
                and self._functions() == other._functions())

    def __hash__(self) -> int:
        return hash(self.spec)

    def __or__(self, ops: str) -> "Pipeline":
        """Append ops given as text: `pipeline | "decode | resize(100, 100)"`."""
        if not isinstance(ops, str):
            return NotImplemented
        return self._with(ops)

    def _with(self, call: str) -> "Pipeline":
        if self._maps:
            raise InvalidError(f"'{call}' cannot follow {self._maps[-1]}: after batch, Python functions run on finished "
                               "batches, so they must come last; put map before batch")
        return Pipeline(self._calls + (call,))

    def _functions(self) -> List[Any]:
        """The functions before `batch`, which are part of the engine's chain."""
        return [call for call in self._calls if hasattr(call, "task")]

    def _table(self) -> Any:
        """The table of the source, if it is one in memory."""
        return self._calls[0] if hasattr(self._calls[0], "pointer") else None

    def _has_batch(self) -> bool:
        return any(_text.op_name(op) == "batch" for call in self._calls if isinstance(call, str)
                   for op in _text.split(call))

    def map(self, function: Callable[..., Any], fields: "Fields" = None, *, returns: Optional[Mapping[str, Any]] = None,
            version: str = "", workers: Optional[str] = None) -> "Pipeline":
        """Call a Python function on each sample.

        Before `batch` the function is an op like others: it runs in worker processes, one for each thread of the
        engine, and ops may follow. After `batch` it runs on the consumer's thread, on the samples of finished batches.

        Without `fields` the function takes the sample as a dict and returns a dict, which may have other fields, or
        None if it changed the one it got. With one field name it takes that field's value and returns the new one; with
        several it takes and returns that many values. A function with a parameter `rng` gets a NumPy Generator that
        depends only on seed, epoch and the sample's position. Arrays are valid during the call only: copy what you keep.

        Args:
            function: the function.
            fields: name or names of the fields it takes and returns. Or, before `batch`, the types of all fields that
                the sample has afterwards: fields={"image": ("uint8", (224, 224, 3)), "tokens": ("int64", (None,))},
                where None is a dimension that varies. Without types, they are those of the first sample.
            returns: the same types, for use with names in `fields`.
            version: any text. Change it with the function: checkpoints and caches then know the difference. A `cache`
                after `map` needs it. Without it, a checkpoint knows only the function's name.
            workers: 'process', or 'thread' for functions that release the GIL, or to use what cannot be sent to a
                process. The default is processes, and threads in free-threaded Python.
        """
        from ._map import ChainMap, MapSample

        others = self._functions()
        if not self._has_batch():
            return Pipeline(self._calls + (ChainMap(function, fields, returns, version, workers, others),))
        if isinstance(fields, Mapping) or returns is not None or version or workers is not None:
            raise InvalidError("map after batch takes only the names of fields: types, version and workers are for map "
                               "before batch")
        return Pipeline(self._calls, self._maps + (MapSample(function, fields, len(others) + len(self._maps)),))

    def map_batch(self, function: Callable[..., Any]) -> "Pipeline":
        """Call a Python function on each batch, on the consumer's thread, after all ops.

        The function takes the batch as a dict of arrays, which it may change in place, and returns a dict, or None
        to keep the one it got. A parameter `rng` works as in `map`, with the position of the batch's first sample.
        """
        from ._map import MapBatch

        return Pipeline(self._calls, self._maps + (MapBatch(function, len(self._functions()) + len(self._maps)),))

    def feed(self, *, seed: int = 0, epochs: int = 0, threads: int = 0, memory: Union[int, str] = 0,
             rank: Optional[int] = None, world: Optional[int] = None, on_error: str = "fail",
             max_bad: Optional[int] = None, fingerprint: str = "names", max_pixels: Optional[int] = 89478485,
             max_bytes: Union[int, str, None] = "256MiB", bad: Union[None, str, "os.PathLike[str]"] = None,
             storage: Optional["Storage"] = None, trace: Union[None, str, "os.PathLike[str]", "Recorder"] = None,
             report: Union[None, str, "os.PathLike[str]"] = None, tune: bool = True,
             **unknown: NoReturn) -> "Feed":
        """Open the pipeline. Takes the options of `leat.Feed`."""
        from ._feed import Feed

        return Feed(self, seed=seed, epochs=epochs, threads=threads, memory=memory, rank=rank, world=world,
                    on_error=on_error, max_bad=max_bad, fingerprint=fingerprint, max_pixels=max_pixels,
                    max_bytes=max_bytes, bad=bad, storage=storage, trace=trace, report=report, tune=tune,
                    **unknown)

    def explain(self, as_dict: bool = False, **options: Any) -> Any:
        """How the engine runs the pipeline, as text: every stage with shapes, types and sizes, what is fused into one
        pass, the order of samples, what an epoch reads, threads, and how memory is divided.

        Opens the source but reads no samples; a `map` whose types are not declared reads the first one.

        Args:
            as_dict: return the same as a dict.
            options: threads, memory, rank, world and the other options of `leat.Feed`.
        """
        from ._feed import explain

        return explain(self, as_dict, options)


def add_ops(items: Sequence[Dict[str, Any]]) -> None:
    """Add a method to Pipeline for every op."""
    for item in items:
        if item["kind"] != "source" and item["name"] != "map":  # map takes the function itself
            if item["name"] in Pipeline.__dict__:
                raise AssertionError(f"op '{item['name']}' hides a method of Pipeline")
            setattr(Pipeline, item["name"], _ops.maker(item, True, Pipeline._with))
