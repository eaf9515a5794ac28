"""Python functions, for what no op does.

Before `batch` they are part of the engine's chain and run in worker processes (`ChainMap`, _pool.py). After it they run
on the consumer's thread, one batch at a time. Their random numbers are counter-based like the engine's: they depend
only on seed, epoch, position and the function's place in the pipeline, so a resumed run draws the same ones.
"""
from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Mapping
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

import numpy as np

from . import _text
from ._batch import Batch
from ._worker import MAX_DIMS, TYPES, Task, Type, generator
from .errors import InvalidError, MapError

_PADDING = 2**64 - 1


class MappedBatch(Mapping[str, Any]):
    """A batch whose fields come from Python functions; `count`, `positions` etc. are those of the engine's batch."""

    __slots__ = ("origin", "_fields")

    def __init__(self, origin: Batch, fields: Dict[str, Any]) -> None:
        self.origin, self._fields = origin, fields

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"<mapped batch of {self.count}: {', '.join(self)}>"

    def _ipython_key_completions_(self) -> List[str]:
        return list(self)

    count = property(lambda self: self.origin.count)
    epoch = property(lambda self: self.origin.epoch)
    valid = property(lambda self: self.origin.valid)
    positions = property(lambda self: self.origin.positions)
    seed = property(lambda self: self.origin.seed)

    has_fill = property(lambda self: self.origin.has_fill)

    def to_dict(self) -> Dict[str, Any]:
        return dict(self._fields)


class _Stage:
    kind = "map"

    def __init__(self, function: Callable[..., Any], number: int) -> None:
        if not callable(function):
            raise InvalidError(f"{self.kind} takes a function, but got {function!r}")
        self.function, self.number = function, number
        try:
            self.wants_rng = "rng" in inspect.signature(function).parameters
        except (TypeError, ValueError):  # some functions written in C have no signature
            self.wants_rng = False

    def __str__(self) -> str:
        return f"{self.kind}({getattr(self.function, '__name__', type(self.function).__name__)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def _call(self, batch: Any, position: int, *args: Any) -> Any:
        named = {"rng": generator(batch.seed, batch.epoch, position, self.number)} if self.wants_rng else {}
        try:
            return self.function(*args, **named)
        except Exception as problem:
            raise MapError(f"{self} failed at position {position} of epoch {batch.epoch}: "
                           f"{type(problem).__name__}: {problem}", batch.epoch, position) from problem

    def _origin(self, batch: Any) -> Batch:
        return batch.origin if isinstance(batch, MappedBatch) else batch


Fields = Union[None, str, Sequence[str], Mapping[str, Any]]


def _declared(stage: Any, given: Mapping[str, Any]) -> Dict[str, Type]:
    """Checks declared types: {"tokens": ("int64", (None,))}."""
    types = {}
    for name, one in given.items():
        try:
            dtype, shape = one
            dtype = dtype if dtype == "bfloat16" else np.dtype(dtype).name
            shape = tuple(None if n in (None, -1) else int(n) for n in shape)
        except (TypeError, ValueError):
            raise InvalidError(f"{stage}: field '{name}' is declared as {one!r}, expected a type and a shape such as "
                               "('uint8', (224, 224, 3)), with None for dimensions that vary") from None
        if dtype not in TYPES or len(shape) > MAX_DIMS:
            raise InvalidError(f"{stage}: field '{name}' cannot be {dtype}{list(shape)}; types are "
                               f"{', '.join(TYPES)}, with at most {MAX_DIMS} dimensions")
        types[name] = Type(dtype, shape)
    return types


class ChainMap(_Stage):
    """A function on samples before `batch`: one call of the spec."""

    def __init__(self, function: Callable[..., Any], fields: Fields, returns: Optional[Mapping[str, Any]], version: str,
                 workers: Optional[str], others: Sequence["ChainMap"]) -> None:
        super().__init__(function, len(others))
        if workers not in (None, "process", "thread"):
            raise InvalidError(f"{self}: workers={workers!r} must be 'process' or 'thread'")
        if isinstance(fields, Mapping):
            if returns is not None:
                raise InvalidError(f"{self}: give types either in fields= or in returns=")
            fields, returns = None, fields
        self.takes = None if fields is None else [fields] if isinstance(fields, str) else list(fields)
        self.single = isinstance(fields, str)
        self.returns = None if returns is None else _declared(self, returns)
        if self.takes is not None and set(self.returns or ()) - set(self.takes):
            raise InvalidError(f"{self}: returns= may name only the fields of fields=")
        self.version = version
        free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
        self.threads = workers == "thread" or (workers is None and free_threaded)
        inner = function.func if isinstance(function, functools.partial) else function
        self.name = getattr(inner, "__qualname__", type(inner).__qualname__)
        alike = sum(other.name.partition("#")[0] == self.name for other in others)
        if alike:
            self.name += f"#{alike + 1}"

    @property
    def call(self) -> str:
        """The call in the spec."""
        text = [_text.quote(self.name)]
        if self.version:
            text.append(f"version={_text.quote(self.version)}")
        if self.wants_rng:
            text.append("random=true")
        return f"map({', '.join(text)})"

    def __repr__(self) -> str:
        return self.call

    def task(self, number: int) -> Task:
        return Task(self.function, self.takes, self.single, self.wants_rng, number)

    def declared(self) -> Optional[Dict[str, Type]]:
        return self.returns


class MapBatch(_Stage):
    kind = "map_batch"

    def __call__(self, batch: Any) -> MappedBatch:
        fields = batch.to_dict()
        position = int(batch.positions[0]) if batch.count else 0
        result = self._call(batch, position, fields)
        if result is None:
            result = fields
        if not isinstance(result, Mapping):
            raise MapError(f"{self} returned {type(result).__name__}, expected a dict of arrays or None",
                           batch.epoch, position)
        return MappedBatch(self._origin(batch), dict(result))


def _stacked(values: List[Any]) -> Any:
    """The values stacked into one array, or as a list if their shapes or types differ."""
    arrays: List[Any] = [value if isinstance(value, (str, bytes)) else np.asarray(value) for value in values]
    first = arrays[0]
    if any(isinstance(a, (str, bytes)) or a.shape != first.shape or a.dtype != first.dtype for a in arrays):
        return arrays
    return np.stack(arrays)


class MapSample(_Stage):
    kind = "map"

    def __init__(self, function: Callable[..., Any], fields: Union[None, str, Sequence[str]], number: int) -> None:
        super().__init__(function, number)
        self.fields: Optional[List[str]] = None
        if fields is not None:
            self.fields = [fields] if isinstance(fields, str) else list(fields)
        self.single = isinstance(fields, str)

    def _results(self, batch: Any, values: Dict[str, Any], i: int, position: int) -> Dict[str, Any]:
        if self.fields is None:
            result = self._call(batch, position, {name: value[i] for name, value in values.items()})
            if not isinstance(result, Mapping):
                raise MapError(f"{self} returned {type(result).__name__}, expected a dict", batch.epoch, position)
            return dict(result)
        result = self._call(batch, position, *(values[name][i] for name in self.fields))
        results = (result,) if self.single else tuple(result)
        if len(results) != len(self.fields):
            raise MapError(f"{self} returned {len(results)} values, expected {len(self.fields)}: "
                           f"{', '.join(self.fields)}", batch.epoch, position)
        return dict(zip(self.fields, results))

    def __call__(self, batch: Any) -> MappedBatch:
        values = batch.to_dict()
        valid = {}
        if batch.has_fill and "valid" in values and "valid" not in (self.fields or ()):
            valid["valid"] = values.pop("valid")
        for name in self.fields or ():
            if name not in values:
                raise InvalidError(f"{self}: no field '{name}' in the batch; its fields are {', '.join(values)}")
        rows = {i: self._results(batch, values, i, int(position))
                for i, position in enumerate(batch.positions) if position != _PADDING}
        if not rows:  # all padding: nothing to do
            return MappedBatch(self._origin(batch), {**values, **valid})
        real = next(iter(rows.values()))
        padding = {name: np.zeros_like(value) for name, value in real.items()}
        made = {name: _stacked([rows.get(i, padding)[name] for i in range(batch.count)]) for name in real}
        return MappedBatch(self._origin(batch), {**({} if self.fields is None else values), **made, **valid})


