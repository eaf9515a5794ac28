"""Batches as TensorFlow tensors, or as a tf.data.Dataset, for example for Keras."""
from __future__ import annotations

from typing import Any, Dict, Iterator

import tensorflow as tf

from ._batch import OFFSETS, Batch, Ragged
from ._feed import Epoch, Feed
from ._view import Epochs
from .errors import InvalidError


def _taken(batch: Batch, name: str, part: int = 0) -> tf.Tensor:
    return tf.experimental.dlpack.from_dlpack(batch.dlpack(name, part).__dlpack__())


def _field(batch: Any, name: str) -> Any:
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


def tensors(batch: Any) -> Dict[str, Any]:
    """The fields of a batch, and `valid` if it can have fill, as tensors.

    Dense ones share the engine's memory, byte strings become tf.string.
    """
    made = {name: _field(batch, name) for name in batch}
    return {**made, "valid": tf.constant(batch.valid)} if isinstance(batch, Batch) and batch.has_fill else made


class View:
    """What `feed.tensorflow()` returns: iterates like the feed and yields dicts of tensors."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed

    def __len__(self) -> int:
        return len(self.feed)

    def __repr__(self) -> str:
        return f"<TensorFlow batches of {self.feed!r}>"

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return Epoch(self.feed, tensors)

    def _signature(self, name: str) -> Any:
        if self.feed.pipeline._maps:
            raise InvalidError("the types that map and map_batch return are not known; pass dataset(signature=...)")
        if name == "valid" and self.feed.has_fill:
            return tf.TensorSpec([None], tf.bool, name)
        if name not in self.feed.fields:
            raise InvalidError(f"no field '{name}' in the batch; its fields are {', '.join(self.feed.fields)}")
        spec = self.feed.fields[name]
        if spec == ("uint8", (None,)):
            return tf.TensorSpec([None], tf.string, name)
        if spec.ragged:
            return tf.RaggedTensorSpec([None, *spec.shape], tf.dtypes.as_dtype(spec.dtype))
        return tf.TensorSpec([None, *spec.shape], tf.dtypes.as_dtype(spec.dtype), name)

    def dataset(self, *names: str, signature: Any = None) -> tf.data.Dataset:
        """Make a tf.data.Dataset of dicts, or of tuples of the fields `names`. Each pass over it is one epoch.

        tf.data copies each batch once. `signature` is from_generator's output_signature; it is required after map
        and map_batch.
        """
        if signature is None:
            all_names = [*self.feed.fields, *(["valid"] if self.feed.has_fill else [])]
            wanted = {name: self._signature(name) for name in names or all_names}
            signature = tuple(wanted.values()) if names else wanted

        epochs = Epochs(self)

        def generate() -> Iterator[Any]:
            for batch in epochs:
                yield tuple(batch[name] for name in names) if names else batch

        dataset = tf.data.Dataset.from_generator(generate, output_signature=signature)
        whole = self.feed.position == 0
        return dataset.apply(tf.data.experimental.assert_cardinality(len(self))) if whole else dataset
