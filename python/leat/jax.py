"""Batches as JAX arrays: they share the engine's memory on the CPU and are copied to other devices."""
from __future__ import annotations

from typing import Any, Dict

import jax
import numpy as np

from ._batch import OFFSETS, SHAPES, Batch, Ragged
from ._feed import Feed
from ._view import View, is_valid, names_of


def _wide(value: Any) -> bool:
    """Whether JAX narrows the type (64-bit numbers, unless jax_enable_x64 is set) and so has to copy."""
    return value.dtype.itemsize == 8 and jax.dtypes.canonicalize_dtype(value.dtype) != value.dtype


def _from_engine(batch: Batch, name: str, part: int, value: np.ndarray) -> jax.Array:
    return jax.numpy.asarray(value) if _wide(value) else jax.numpy.from_dlpack(batch.dlpack(name, part))


def _field(batch: Any, name: str) -> Any:
    if is_valid(batch, name):
        return jax.numpy.asarray(batch.valid)
    value = batch[name]
    engine = isinstance(batch, Batch)

    def array(part: int, values: Any) -> Any:
        return _from_engine(batch, name, part, values) if engine else jax.numpy.asarray(values)

    if isinstance(value, list):
        return value
    if not isinstance(value, Ragged):
        return array(0, value)
    shapes = None if value.shapes is None else array(SHAPES, value.shapes)
    return Ragged(array(0, value.values), array(OFFSETS, value.offsets), shapes, value._text)


def arrays(batch: Any) -> Dict[str, Any]:
    """The fields of a batch, and `valid` if it can have fill, as JAX arrays on the CPU.

    64-bit numbers are narrowed as JAX does.
    """
    return {name: _field(batch, name) for name in names_of(batch)}


def view(feed: Feed, device: Any = None) -> View:
    """What `feed.jax(...)` returns: iterates like the feed and yields dicts of arrays, on `device` if given."""
    if device is None and jax.default_backend() == "cpu":
        return View(feed, arrays, "JAX")
    return View(feed, lambda batch: jax.device_put(batch.to_dict(), device), "JAX")
