"""A callback for Keras that says where the time of training goes."""
from __future__ import annotations

import copy
import inspect
import os
import types
from typing import Any, Callable, Iterable, Iterator, Optional

import keras

from ._callback import Session
from ._profile import STUDY, rows_of
from ._spans import now
from ._watch import settle
from ._watch_torch import Workers, is_dataloader
from ._xray_result import Xray
from .errors import InvalidError


class XrayCallback(keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]
    """Profile training: `model.fit(xray.watch(data), callbacks=[xray])`.

    Tags *Get batch* and *Run training batch*. `result()` has the figures; at the end of `fit` they are logged as one
    sentence by the logger `leat`.

    `watch` takes a tf.data.Dataset, `feed.tensorflow(...)`, a generator or a DataLoader. With TensorFlow as its backend,
    Keras takes batches inside the compiled training function, where no callback looks; `watch` notes when each arrives.
    With PyTorch and JAX it counts samples, and profiles the workers of a DataLoader, or its data set if it has none.

    Args:
        report: write an HTML page here at the end of training. With several ranks the first one does, or each one if the
            name has '{rank}' in it: 'run-{rank}.html'.
        trace: write a trace for Perfetto here at the end of training, likewise.
        sync: wait for the GPU after each step, so that the time of its work is the step's.
        rows: function that returns the number of samples of a batch; None: the first dimension of its first array.
    """

    def __init__(self, report: "str | os.PathLike[str] | None" = None, trace: "str | os.PathLike[str] | None" = None,
                 sync: bool = True, rows: Optional[Callable[[Any], int]] = None) -> None:
        super().__init__()
        self._session = Session(STUDY, report, trace)
        self._sync, self._rows = sync, rows or rows_of
        self._asked = self._arrived = self._count = 0
        self._inside = False  # batches arrive inside the step
        self._ended = 0  # when the epoch's latest step did

    def result(self) -> Xray:
        """What was seen so far, or in the last `fit`."""
        return self._session.result()

    def watch(self, data: Any) -> Any:
        """The same data, whose batches the callback sees: pass the result to `fit`."""
        if (inspect.isgenerator(data) or is_dataloader(data)) and keras.backend.backend() == "tensorflow":
            raise InvalidError(f"with TensorFlow as its backend, Keras takes batches inside the step, where a "
                               f"{type(data).__name__} is not seen: watch a tf.data.Dataset or feed.tensorflow(...), or "
                               "use leat.xray on the loader")
        if hasattr(data, "get_tf_dataset"):  # feed.tensorflow(...)
            return self._adapter(data)
        if type(data).__module__.startswith("tensorflow."):
            return self._dataset(data)
        if inspect.isgenerator(data):
            return self._counted(data)
        return self._loader(data) if is_dataloader(data) else data

    def _counted(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            self._count = self._rows(batch)
            yield batch

    def _adapter(self, data: Any) -> Any:
        other = copy.copy(data)
        self._session.loader = data
        other.get_tf_dataset = lambda: self._dataset(data.get_tf_dataset())
        passes = _Counted(lambda: self._counted(data.get_numpy_iterator()))
        other.get_numpy_iterator = other.get_jax_iterator = other.get_torch_dataloader = lambda: passes
        return other

    def _loader(self, loader: Any) -> Any:
        """A copy of a DataLoader whose batches are counted and whose workers, or data set, are watched."""
        self._session.loader = loader
        other, kind = copy.copy(loader), type(loader)

        def begin(one: Any) -> Iterator[Any]:
            workers = self._current().workers
            with workers.running(one):  # first: making the iterator starts that of an IterableDataset
                with workers.starting(one):
                    batches = kind.__iter__(one)
                yield from self._counted(_read(workers, batches))

        other.__class__ = types.new_class(kind.__name__, (kind,), {}, lambda space: space.update(__iter__=begin))
        return other

    def _dataset(self, dataset: Any) -> Any:
        import tensorflow as tf

        self._inside = keras.backend.backend() == "tensorflow"

        def arrived(count: Any) -> Any:
            self._arrived, self._count = now(), int(count)
            return count

        def note(*parts: Any) -> Any:
            batch = parts if len(parts) > 1 else parts[0]
            first = tf.nest.flatten(batch)[0]
            rows = tf.shape(first)[0] if first.shape.rank else tf.constant(1)
            with tf.control_dependencies([tf.numpy_function(arrived, [rows], tf.int32)]):
                return tf.nest.map_structure(tf.identity, batch)

        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False  # it would take batches ahead of the step
        return dataset.map(note).with_options(options)

    # ---- what Keras calls ----

    def on_train_begin(self, logs: Any = None) -> None:
        if keras.backend.backend() == "tensorflow" and not self._inside:
            raise InvalidError("with TensorFlow as its backend, Keras takes batches inside the step: pass the data "
                               "through the callback, model.fit(xray.watch(data), callbacks=[xray])")
        if getattr(self.model, "steps_per_execution", 1) not in (None, 1):
            raise InvalidError("XrayCallback needs steps_per_execution=1: with more, Keras calls it once for several steps")
        self._current()

    def _current(self) -> Session:
        """The session of this fit."""
        before = self._session
        if before.ended is not None:  # another fit
            self._session = Session(STUDY, before.report, before.trace)
            self._session.loader = before.loader
        return self._session

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._asked, self._ended = now(), 0
        self._session.profile.start(self._asked)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        at = now()
        if self._inside:
            self._asked, self._arrived = at, 0
        else:
            self._session.profile.get(self._asked, at)
            self._session.profile.rows(self._count or 1)
            self._arrived = at

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._sync:
            settle()
        end, profile = now(), self._session.profile
        if self._inside and self._arrived:
            profile.get(self._asked, self._arrived)
            profile.rows(self._count)
        if self._arrived:
            profile.run(self._arrived, end)
        self._asked = self._ended = now()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._session.profile.finish(self._ended or now())  # validation comes before this and is not training

    def on_train_end(self, logs: Any = None) -> None:
        self._session.end()


def _read(workers: Workers, batches: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            with workers.reading():
                batch = next(batches)
        except StopIteration:
            return
        yield batch


class _Counted:
    """An iterable that makes its iterators by a function."""

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Any]:
        return self._make()
