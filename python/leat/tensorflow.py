"""Batches as TensorFlow tensors, or as a tf.data.Dataset, for example for Keras."""
from __future__ import annotations

import functools
from typing import Any, Dict, Iterable, Iterator, Optional, Tuple

import tensorflow as tf

from ._batch import OFFSETS, Batch, Ragged
from ._feed import Epoch, Feed
from ._view import VALID, Epochs, check_names, check_valid, is_valid, names_of
from ._view import View as Batches
from .errors import InvalidError

try:
    from keras.src.trainers.data_adapters.data_adapter import (  # type: ignore[import-untyped,unused-ignore]
        DataAdapter as _Adapter)
except ImportError:  # another Keras: it takes .dataset(...)
    _Adapter = object


def _taken(batch: Batch, name: str, part: int = 0) -> tf.Tensor:
    return tf.experimental.dlpack.from_dlpack(batch.dlpack(name, part).__dlpack__())


def _field(batch: Any, name: str) -> Any:
    if is_valid(batch, name):
        return tf.convert_to_tensor(batch.valid)
    value = batch[name]
    if not isinstance(value, Ragged):
        return _taken(batch, name) if isinstance(batch, Batch) else tf.convert_to_tensor(value)
    if value._text:
        return tf.constant(value.to_bytes(), tf.string)
    if value.shapes is not None:
        raise InvalidError(f"field '{name}' has samples of different shapes, which a TensorFlow tensor cannot hold; "
                           "use resize, crop or pad to give them one shape")
    if not isinstance(batch, Batch):
        return tf.RaggedTensor.from_row_splits(value.values, value.offsets)
    return tf.RaggedTensor.from_row_splits(_taken(batch, name), _taken(batch, name, OFFSETS), validate=False)


def tensors(batch: Any, names: Optional[Iterable[str]] = None) -> Dict[str, Any]:
    """The fields of a batch, and `valid` if it can have fill, as tensors.

    Dense ones share the engine's memory, byte strings become tf.string.
    """
    return {name: _field(batch, name) for name in (names_of(batch) if names is None else names)}


def _formed(names: Tuple[str, ...], values: Dict[str, Any]) -> Any:
    return tuple(values[name] for name in names) if names else values


def _as_tensors(names: Tuple[str, ...], batch: Any) -> Any:
    return _formed(names, tensors(batch, names or None))


def _as_arrays(names: Tuple[str, ...], batch: Any) -> Any:
    return _formed(names, {name: batch.valid if is_valid(batch, name) else batch[name]
                           for name in names or names_of(batch)})


class View(_Adapter):  # type: ignore[misc]
    """What `feed.tensorflow(...)` returns: iterates like the feed and yields dicts of tensors or, with `names`,
    tuples. Pass it to Keras's fit, evaluate or predict: every pass is one epoch."""

    def __init__(self, feed: Feed, *names: str) -> None:
        self.feed, self.names = feed, names
        self._epochs: Optional[Epochs] = None
        check_names(feed, names)
        if names:
            check_valid(feed, names)

    def __len__(self) -> int:
        return len(self.feed)

    def __iter__(self) -> Iterator[Any]:
        return Epoch(self.feed, functools.partial(_as_tensors, self.names))

    def __repr__(self) -> str:
        return f"<TensorFlow batches of {self.feed!r}>"

    def _signature(self, name: str) -> Any:
        if name == VALID and name not in self.feed.fields:
            return tf.TensorSpec([None], tf.bool, name)
        if self.feed.pipeline._maps:
            raise InvalidError("the types that map and map_batch return are not known; pass dataset(signature=...)")
        spec = self.feed.fields[name]
        if spec == ("uint8", (None,)):
            return tf.TensorSpec([None], tf.string, name)
        if spec.ragged:
            return tf.RaggedTensorSpec([None, *spec.shape], tf.dtypes.as_dtype(spec.dtype))
        return tf.TensorSpec([None, *spec.shape], tf.dtypes.as_dtype(spec.dtype), name)

    def _passes(self, convert: Any, peeks: bool) -> Epochs:
        return Epochs(Batches(self.feed, functools.partial(convert, self.names), "TensorFlow"), peeks)

    def _dataset(self, passes: Epochs, signature: Any) -> tf.data.Dataset:
        if signature is None:
            every = [*self.feed.fields, VALID] if self.feed.has_fill else self.feed.fields
            signature = _formed(self.names, {name: self._signature(name) for name in self.names or every})
        return tf.data.Dataset.from_generator(lambda: passes, output_signature=signature)

    def dataset(self, *names: str, signature: Any = None) -> tf.data.Dataset:
        """Make a tf.data.Dataset of dicts, or of tuples of the fields `names`. Each pass over it is one epoch.

        tf.data copies each batch once. `signature` is from_generator's output_signature; it is required after map
        and map_batch.
        """
        if names:
            return View(self.feed, *names).dataset(signature=signature)
        whole, dataset = self.feed.position == 0, self._dataset(self._passes(_as_tensors, False), signature)
        return dataset.apply(tf.data.experimental.assert_cardinality(len(self))) if whole else dataset

    # What Keras asks a data adapter. It looks at a batch before it trains, and asks again for each fit.

    def _keras(self, convert: Any) -> Epochs:
        if self._epochs is None:
            self._epochs = self._passes(convert, True)
        return self._epochs

    def get_tf_dataset(self) -> tf.data.Dataset:
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False  # so the feed is where Keras is
        return self._dataset(self._keras(_as_tensors), None).with_options(options)

    def get_numpy_iterator(self) -> Any:
        return self._keras(_as_arrays)

    get_jax_iterator = get_torch_dataloader = get_numpy_iterator

    @property
    def num_batches(self) -> int:
        return len(self)

    @property
    def batch_size(self) -> int:
        return self.feed.batch_size

    @property
    def has_partial_batch(self) -> bool:
        return bool(self.partial_batch_size)

    @property
    def partial_batch_size(self) -> int:
        return 0 if self.feed.tail in ("drop", "pad") else self.feed.samples % self.feed.batch_size
