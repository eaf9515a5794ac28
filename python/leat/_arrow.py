"""Arrow tables as a source, and batches as Arrow record batches, by the Arrow C data interface and without pyarrow."""
from __future__ import annotations

import ctypes
import weakref
from typing import Any, Dict, Optional, Sequence, Tuple, Union

from . import _lib, _text
from ._batch import Batch
from .errors import InvalidError

_SCHEMA, _ARRAY, _STREAM = 72, 80, 40  # bytes of the interface's structs


def _stream_of(table: Any) -> Any:
    """The capsule of a stream of record batches."""
    if type(table).__module__.split(".")[0] == "datasets" and hasattr(table, "with_format"):
        table = table.with_format("arrow")[:]  # in the order of the data set, after select and shuffle
    if not hasattr(table, "__arrow_c_stream__"):
        raise InvalidError(f"arrow needs a table with __arrow_c_stream__, such as a pyarrow.Table, a Polars DataFrame or a "
                           f"pandas DataFrame (pandas 2.2 or later), not {type(table).__name__}")
    return table.__arrow_c_stream__()


class ArrowSource:
    """The call `arrow(...)` on a table in memory, which is held while this object or a feed needs it."""

    def __init__(self, table: Any, options: Dict[str, Any]) -> None:
        self._object, self._options = table, options
        self._pointer: Optional[ctypes.c_void_p] = None

    def pointer(self) -> Optional[int]:
        """Address of the library's table. The stream is taken once; what it holds is shared by all feeds."""
        if self._pointer is None:
            capsule, taken, err = _stream_of(self._object), ctypes.c_void_p(), _lib.Err()
            stream = _lib.capsule_pointer(capsule, b"arrow_array_stream")
            _lib.check(_lib.arrow_import(stream, taken, err), err)
            weakref.finalize(self, _lib.arrow_free, taken)
            self._pointer = taken
        return self._pointer.value

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={_text.to_text(value)}" for name, value in self._options.items())
        return f"arrow({inside})" if inside else "arrow"

    def __repr__(self) -> str:
        return f"{self} of a {type(self._object).__name__}"

    def __reduce__(self) -> Any:
        return ArrowSource, (self._object, self._options)


def arrow(table: Any, *, columns: Union[None, str, Sequence[str]] = None, null: Optional[str] = None) -> Any:
    """Read from a table in memory: sample i is row i, one field per column.

    Takes a pyarrow.Table or RecordBatch, a Polars or pandas DataFrame, a Hugging Face data set, or anything else with
    `__arrow_c_stream__`. Numbers without nulls, text and lists of numbers are not copied, so do not change them while a
    feed reads them. Dates and timestamps become int64 microseconds since 1970, decimals float64, text and binary
    bytes, lists ragged fields, and lists of a fixed size dense ones. Dictionaries (categories) become their values.

    Args:
        columns: columns to read as fields; None: all.
        null: what a null becomes: 'error' (default): a bad sample; 'zero': zero, or an empty list or text; 'nan': NaN in
            columns of floats, and a bad sample in others.
    """
    from ._pipeline import Pipeline

    given = {"columns": columns, "null": null}
    return Pipeline([ArrowSource(table, {name: value for name, value in given.items() if value is not None})])


def _capsule(address: int, name: bytes) -> Any:
    return _lib.capsule_new(ctypes.c_void_p(address), name, _lib.capsule_free)


class ArrowBatch:
    """A batch that pyarrow, Polars, pandas, DuckDB, ... take as a record batch, without a copy.

    The memory returns to the feed when the last consumer has released it.
    """

    __slots__ = ("batch",)

    def __init__(self, batch: Any) -> None:
        if not isinstance(batch, Batch):
            raise InvalidError("feed.arrow() gives the engine's batches; a function after batch made a "
                               f"{type(batch).__name__} of this one")
        self.batch = batch

    def __len__(self) -> int:
        return self.batch.count

    def __repr__(self) -> str:
        return f"<Arrow {repr(self.batch)[1:]}"

    def __arrow_c_array__(self, requested_schema: Any = None) -> Tuple[Any, Any]:
        """The capsules of a schema and of an array. `requested_schema` is ignored, as the interface allows."""
        schema, array = _lib.room(1, _SCHEMA), _lib.room(1, _ARRAY)
        if not schema or not array:
            raise MemoryError
        err = _lib.Err()
        status = _lib.batch_arrow(self.batch._pointer, schema, array, err)
        capsules = _capsule(schema, b"arrow_schema"), _capsule(array, b"arrow_array")
        _lib.check(status, err)
        return capsules

    def __arrow_c_schema__(self) -> Any:
        return self.__arrow_c_array__()[0]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        stream = _lib.room(1, _STREAM)
        if not stream:
            raise MemoryError
        err = _lib.Err()
        status = _lib.batch_arrow_stream(self.batch._pointer, stream, err)
        capsule = _capsule(stream, b"arrow_array_stream")
        _lib.check(status, err)
        return capsule
