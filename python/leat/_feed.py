"""An open pipeline that produces batches.

Any thread may use a feed; a lock serializes calls into the library. Waits are split into short ones, so that Ctrl-C
and other signals are handled promptly.
"""
from __future__ import annotations

import ctypes
import gc
import inspect
import json
import logging
import os
import threading
import warnings
import weakref
from os import getpid
from threading import get_ident
from typing import (Any, Dict, Iterator, List, Literal, NamedTuple, NoReturn, Optional, Tuple, Union,
                    overload)

from . import _lib, _ops, _options
from ._batch import Batch, Form, dtype_name
from ._handle import UNKNOWN, Bad, Explanation, Handle, bad_sample, ranks_of, whole
from ._pipeline import Pipeline
from ._recorder import Recorder
from .errors import CancelledError, HeldError, InvalidError, ProcessError

_POLL = ctypes.c_uint64(20_000_000)  # nanoseconds: the longest a signal may be delayed
_capsule_new, _NAMES, _FREES = _lib.capsule_new, (_lib.CAPSULE,), (_lib.capsule_free,)  # arguments of map
_log = logging.getLogger("leat")


class FieldSpec(NamedTuple):
    """Type and shape of a field; a dimension of `shape` is None where samples differ."""

    dtype: str
    shape: Tuple[Optional[int], ...]

    @property
    def ragged(self) -> bool:
        return None in self.shape


class Stats(Dict[str, Any]):
    """The statistics of a feed, by name. A notebook shows them as a table."""

    def _repr_html_(self) -> str:
        from . import _html

        return _html.values(self, {stat["name"]: stat["doc"] for stat in _ops.described()["stats"]})


def _place(batch: Batch) -> Tuple[int, int]:
    return _lib.batch_epoch(batch._pointer), _lib.batch_begin(batch._pointer)


class Feed:
    """An open pipeline. `for batch in feed` runs to the end of the epoch; the next loop runs the next epoch.

    After a `break`, the next loop continues at the current position; `seek` changes it.

    Args:
        pipeline: a spec or a Pipeline.
        seed: random seed; same seed, same batches, with any number of threads and ranks.
        epochs: number of epochs, after which loops are empty; 0: no limit.
        threads: worker threads; 0: as many as the process may use CPUs.
        memory: memory limit of the feed, in bytes or as text such as '512MiB'; 0: a quarter of the RAM, or of the
            container's limit, divided by the ranks on this machine.
        rank, world: this process's rank, and the number of ranks; None: from torch.distributed if initialised, else
            from the launcher's environment (RANK and WORLD_SIZE, Open MPI's, Slurm's), else 0 of 1.
        on_error: what to do with a bad sample: 'fail', 'skip' or 'replace'.
        max_bad: fail after this many bad samples per epoch; None: no limit.
        bad: write every bad sample to this file, as a line of JSON; `bad()` lists only the first 1,000 or so.
        max_pixels: images with more pixels are bad, and take no memory; None: no limit. The default is Pillow's.
        max_bytes: samples with more bytes, as stored or once decompressed, are bad, and take no memory; a number, or
            text such as '1GiB'; None: no limit.
        fingerprint: how checkpoints recognize the data: 'names' compares names, sizes and sample counts of files,
            'full' also all their bytes, which the first `state_dict` and `load_state_dict` read once.
        storage: how to reach remote data, such as {'endpoint': 'https://minio.lab:9000', 'profile': 'lab'}: endpoint,
            region, profile, style, anonymous, requester_pays, ca_bundle, proxy, resolve, requests, threads, timeout,
            patience, hedge, disk_cache, disk_cache_size, disk_cache_trust (docs/REMOTE.md). What is not set comes from
            the environment. Not part of checkpoints. Keys are not accepted: they come from a profile or the
            environment.
        trace: write what the feed's threads do, and when, to this file, for Perfetto (docs/XRAY.md); or a
            `leat.Recorder`, which must be closed after the feed.
        report: write the run to this file when the feed is closed, as a page with its figures and a timeline.
        tune: use only as many threads and batches ahead as keep your loop from waiting; False: all from the start.
            Values that you set, by `threads` or `prefetch(n)`, are not tuned.
    """

    def __init__(self, pipeline: Union[str, Pipeline], *, seed: int = 0, epochs: int = 0, threads: int = 0,
                 memory: Union[int, str] = 0, rank: Optional[int] = None, world: Optional[int] = None,
                 on_error: str = "fail", max_bad: Optional[int] = None, fingerprint: str = "names",
                 max_pixels: Optional[int] = 89478485, max_bytes: Union[int, str, None] = "256MiB",
                 bad: Union[None, str, "os.PathLike[str]"] = None, storage: Optional[_options.Storage] = None,
                 trace: Union[None, str, "os.PathLike[str]", Recorder] = None,
                 report: Union[None, str, "os.PathLike[str]"] = None, tune: bool = True,
                 **unknown: NoReturn) -> None:
        options = dict(seed=seed, epochs=epochs, threads=threads, memory=memory, rank=rank, world=world,
                       on_error=on_error, max_bad=max_bad, fingerprint=fingerprint, max_pixels=max_pixels,
                       max_bytes=max_bytes, bad=bad, storage=storage, trace=trace, report=report,
                       tune=tune)
        _options.refuse(unknown, options)
        self._open(pipeline if isinstance(pipeline, Pipeline) else Pipeline([pipeline]), options)

    def _open(self, pipeline: Pipeline, options: Dict[str, Any], functions: Any = None) -> None:
        self._pipeline, self._options = pipeline, options
        if functions is None and pipeline._functions():
            from ._pool import prepare

            functions = prepare(pipeline, options)
        try:
            self._handle = Handle(pipeline.spec, options, functions, pipeline._table())
        except BaseException:
            if functions:
                functions.close()
            raise
        self._pid = self._handle.pid
        self._lock = self._handle.lock  # held for library calls that only one thread at a time may make
        self._gate = threading.RLock()  # held for calls that are allowed at any time, to keep `close` out
        self._seed = options["seed"]
        self._begun: Dict[int, Batch] = {}  # by thread: taken, but not handed over to the program yet
        self._back: List[Batch] = []  # not handed over because a function failed
        self._newest = self._taken = 0  # address of the last batch taken, and the number of batches taken
        self._held = 0  # bytes held after the last garbage collection
        self._ends = 0  # epoch ends seen, so that an iterator notices an end seen by another thread
        self._maps = pipeline._maps
        self._pins = False  # batches are delivered in pinned memory
        self._close = weakref.finalize(self, self._handle.close)
        pointer = self._handle.pointer
        self._feed = ctypes.c_void_p(pointer)
        self._err = _lib.Err()
        self._out: Any = ctypes.c_void_p()
        self._refs = ctypes.byref(self._out), ctypes.byref(self._err)
        self._holds: List[Any] = []  # the capsule that owns the batch in `_out`
        self._outs = (self._out,)
        self.fields: Dict[str, FieldSpec] = {}
        self._fields: Dict[str, Form] = {}
        for i in range(_lib.field_count(pointer)):
            field = _lib.field_at(pointer, i).contents
            shape = tuple(None if n < 0 else n for n in field.shape[:field.ndim])
            self.fields[field.name.decode()] = FieldSpec(dtype_name(field.dtype), shape)
            self._fields[field.name.decode()] = Form(field.name, field.dtype, shape)
        self._empty = not _lib.batches(pointer)
        try:
            self._look_for_fill()
        except InvalidError:
            self.close()
            raise

    def _look_for_fill(self) -> None:
        """Ask whether batches can have fill, which `valid` in the batches' dicts then marks."""
        self._has_fill = _lib.has_fill(self._pointer())
        if self._has_fill and "valid" in self._fields:
            raise InvalidError("the pipeline has a field 'valid', but batches need this name for the mask of rows that "
                               "count for the epoch; rename the field: rename(is_valid=valid)")

    def _join(self) -> None:
        """Reopen the feed at its current position if torch.distributed was initialised after it was opened and
        rank and world were not given. This process then gets its part of every batch."""
        ranks = ranks_of(self._options["rank"], self._options["world"])
        if ranks not in (UNKNOWN, self._handle.ranks):
            state = {**self.__getstate__(), "options": self._options}
            self.close()
            self.__setstate__(state)

    # ---- batches ----

    def _pointer(self) -> int:
        if self._pid != os.getpid():
            raise ProcessError(f"this feed was opened in process {self._pid} and cannot be used in process "
                               f"{os.getpid()} after a fork; open it in the process that uses it")
        pointer = self._handle.pointer
        if pointer is None:
            raise CancelledError("the feed is closed")
        return pointer

    def _wait(self, status: int) -> int:
        """Keep waiting until there is a batch, the end, or an error. The caller holds the lock."""
        collected = False
        while status in (_lib.TIMEOUT, _lib.AGAIN):  # between calls the interpreter handles signals
            if status == _lib.AGAIN and collected:
                raise HeldError(self._err.text.decode())
            if status == _lib.AGAIN:
                gc.collect()  # dead reference cycles may hold batches
                collected = True
            self._pointer()
            status = _lib.next_within(self._feed, _POLL, *self._refs)
        if status not in (_lib.OK, _lib.END, _lib.DONE):
            raise self._handle.error(self._err)
        return status

    def _next(self, mark: int, me: int) -> Optional[Batch]:
        """The next batch of the epoch that began when `_ends` was `mark`, for the thread `me`; None at its end.

        The batch is in `_begun` until the caller hands it over or puts it back. A signal may interrupt this at any
        call: then the batch is in `_out`, or also in `_holds`, or in `_begun`, and the next call finds it there. The
        interpreter looks for signals after calls, not between assignments.
        """
        out, holds = self._out, self._holds
        with self._lock:
            if self._ends != mark:
                return None
            if self._pid != getpid() or self._handle.pointer is None:
                self._pointer()
            batch = self._unfinished(me) if self._begun or self._back else None
            if batch is None:
                if not out:
                    status = _lib.next_within(self._feed, _POLL, *self._refs)
                    if status != _lib.OK and self._wait(status) != _lib.OK:
                        self._ends += 1
                        return None
                if not holds:
                    holds.extend(map(_capsule_new, self._outs, _NAMES, _FREES))
                pointer = self._newest = out.value
                batch = Batch(holds[0], pointer, self._fields, self._seed, self._has_fill)
                self._begun[me] = batch
                del holds[0]
                out.value = None
                self._taken += 1
                if not self._taken % 8 and _lib.batch_copied(ctypes.c_void_p(pointer)):
                    self._collect()
        if self._handle.log:
            self._handle.drain()
        return batch

    def _unfinished(self, me: int) -> Optional[Batch]:
        """The batch that this thread did not hand over, or the first that was put back. The caller holds the lock."""
        pointer = self._pointer()
        here = _lib.epoch(pointer), _lib.position(pointer)
        if me in self._begun and _place(self._begun[me]) >= here:  # interrupted in _put_back: it is made again
            del self._begun[me]
        if me not in self._begun and self._back:
            self._begun[me] = min(self._back, key=_place)
        batch = self._begun.get(me)
        if batch is not None:
            self._back = [other for other in self._back if other is not batch]
            if self._out.value == batch._pointer:
                self._out.value = None
        return batch

    def _put_back(self) -> None:
        """Deliver the batch that this thread took but did not hand over again, to the next call of any thread.

        A function may have changed it in place before it failed. So the library makes it again, unless that would make
        others again that the program has already.
        """
        me = get_ident()
        with self._lock:
            batch = self._begun.get(me)
            if batch is None:
                return
            if self._newest == batch._pointer and len(self._begun) == 1 and not self._back and not self.closed:
                self._rewind(batch)
            else:
                self._back.append(batch)
                del self._begun[me]

    def _rewind(self, batch: Batch) -> None:
        json_text, err, (epoch, position) = ctypes.c_void_p(), _lib.Err(), _place(batch)
        _lib.check(_lib.save(self._pointer(), json_text, err), err)
        state = dict(json.loads(_lib.taken(json_text.value)), epoch=epoch, position=position)
        _lib.check(_lib.restore(self._pointer(), json.dumps(state).encode(), err), err)
        self._forget()

    def _collect(self) -> None:
        """Look for batches in dead reference cycles when the program holds twice as much as the last time."""
        pointer = self._pointer()
        if _lib.held(pointer) > 2 * self._held:
            gc.collect()
            self._held = _lib.held(pointer)

    def _forget(self) -> None:
        """Drop the batches that were not handed over. The caller holds the lock."""
        if self._out and not self._holds and all(b._pointer != self._out.value for b in self._begun.values()):
            self._holds.extend(map(_capsule_new, self._outs, _NAMES, _FREES))
        self._out.value = None
        self._holds.clear()
        self._begun.clear()
        self._back.clear()

    def _reached(self) -> Optional[Tuple[int, int]]:
        """Epoch and position of the first batch that was not handed over; None if the library's count. Under the lock.
        """
        if self._out:
            waiting = [(_lib.batch_epoch(self._out), _lib.batch_begin(self._out))]
        else:
            waiting = []
        return min(waiting + [_place(batch) for batch in (*self._back, *self._begun.values())], default=None)

    def __iter__(self) -> Iterator[Batch]:
        """Iterate to the end of the epoch."""
        return Epoch(self)

    def __len__(self) -> int:
        """Batches per epoch on this rank."""
        with self._gate:
            return _lib.batches(self._pointer())

    def steps(self, count: Optional[int] = None) -> Iterator[Batch]:
        """Iterate over `count` batches (None: no limit), across epochs; stops early after the feed's last epoch."""
        given, before = 0, -1
        while count is None or given < count:
            if given == before:  # an epoch without batches: all epochs are done
                return
            before = given
            for batch in self:
                given += 1
                yield batch
                if given == count:
                    return

    # ---- frameworks ----

    def numpy(self) -> Any:
        """Batches as dicts of NumPy arrays."""
        from ._view import View

        return View(self, Batch.to_dict, "NumPy")

    def torch(self, device: Any = None, prefetch: int = 1) -> Any:
        """Batches as dicts of PyTorch tensors: on the CPU they share memory; on CUDA they are copied ahead."""
        from . import torch

        return torch.view(self, device, prefetch)

    def jax(self, device: Any = None) -> Any:
        """Batches as dicts of JAX arrays, which share memory on the CPU."""
        from . import jax

        return jax.view(self, device)

    def tensorflow(self, *fields: str) -> Any:
        """Batches as dicts of TensorFlow tensors, which share memory; with `fields`, as tuples of these fields.

        Pass it to Keras: `model.fit(feed.tensorflow("image", "label"))`. `.dataset()` makes a
        tf.data.Dataset.
        """
        from . import tensorflow

        return tensorflow.View(self, *fields)

    def arrow(self) -> Any:
        """Batches as Arrow record batches, which share memory: pass them to pyarrow.record_batch, polars.DataFrame,
        pandas.DataFrame.from_arrow, or whatever else takes __arrow_c_array__ or __arrow_c_stream__."""
        from ._arrow import ArrowBatch
        from ._view import View

        return View(self, ArrowBatch, "Arrow")

    # ---- position and checkpoints ----

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        with self._lock:
            pointer, reached = self._pointer(), self._reached()
            return _lib.epoch(pointer) if reached is None else reached[0]

    @property
    def position(self) -> int:
        """Samples of this epoch delivered so far, over all ranks."""
        with self._lock:
            pointer, reached = self._pointer(), self._reached()
            return _lib.position(pointer) if reached is None else reached[1]

    @property
    def samples(self) -> int:
        """Samples per epoch, over all ranks."""
        with self._gate:
            return _lib.samples(self._pointer())

    @property
    def batch_size(self) -> int:
        """Samples in a full batch on this rank."""
        with self._gate:
            return _lib.batch_size(self._pointer())

    @property
    def classes(self) -> List[str]:
        """Names of the classes: label i is `classes[i]`. Empty if the source does not know them."""
        with self._gate:
            pointer = self._pointer()
            return [os.fsdecode(_lib.class_name(pointer, i)) for i in range(_lib.class_count(pointer))]

    def _samples_of(self, number: int) -> range:
        """The positions of this rank's samples in a batch of an epoch."""
        with self._gate:
            first = ctypes.c_uint64()
            count = _lib.batch_samples(self._pointer(), number, first)
            return range(first.value, first.value + count)

    @property
    def tail(self) -> str:
        """What happens to an incomplete last batch: 'short', 'drop', 'pad', 'wrap' or 'exact'."""
        with self._gate:
            return _lib.tail_name(self._pointer()).decode()

    @property
    def has_fill(self) -> bool:
        """Whether batches can have rows that do not count for the epoch: repeats or padding.

        The dicts of such a feed have an entry `valid`, True for rows that count. Only loading a checkpoint from the
        middle of a batch, or seeking there, changes it.
        """
        return self._has_fill

    @property
    def rank(self) -> int:
        """The rank of this process."""
        with self._gate:
            return _lib.rank(self._pointer())

    @property
    def world(self) -> int:
        """The number of ranks."""
        with self._gate:
            return _lib.world(self._pointer())

    @property
    def seed(self) -> int:
        return self._seed

    @property
    def pipeline(self) -> Pipeline:
        return self._pipeline

    @property
    def spec(self) -> str:
        """The spec in full, with the value of every option."""
        with self._gate:
            return _lib.canonical(self._pointer()).decode(errors="replace")

    def state_dict(self) -> Dict[str, Any]:
        """Make a checkpoint for `load_state_dict`: a small dict of plain values.

        It counts the batches your program got so far, not those prefetched or lost to an exception in a function given
        to map: they come again. It can be loaded with a different number of
        threads or ranks, and with a copy of the same data elsewhere.
        """
        with self._lock:
            json_text, err = ctypes.c_void_p(), _lib.Err()
            if self._options["fingerprint"] == "full":
                status = self._patiently(_lib.save_full, self._pointer(), json_text, err)
            else:
                status = _lib.save(self._pointer(), json_text, err)
            _lib.check(status, err)
            state, reached = json.loads(_lib.taken(json_text.value)), self._reached()
        return state if reached is None else dict(state, epoch=reached[0], position=reached[1])

    def load_state_dict(self, state: Dict[str, Any], strict: bool = True) -> None:
        """Resume from a checkpoint, without rereading anything. Also restores the seed.

        With `strict=False` the checkpoint may be from another pipeline, with another batch size or other
        augmentations, as long as the order of samples is the same: same data, same `shuffle`, `take` and so on. The
        feed continues with the very next sample, and a warning says what has changed.
        """
        with self._lock:
            pointer, text = self._pointer(), json.dumps(state).encode()
            changes, err = ctypes.c_void_p(), _lib.Err()
            call = _lib.restore if strict else _lib.restore_loose
            arguments = (pointer, text, err) if strict else (pointer, text, changes, err)
            status = self._patiently(call, *arguments) if "contents" in state else call(*arguments)
            _lib.check(status, err)
            self._forget()
            self._seed = int(state["seed"])
            self._look_for_fill()
        if changes.value:
            warnings.warn(f"resumed with changes: {_lib.taken(changes.value)}", stacklevel=2)
        self._handle.drain()

    def _patiently(self, call: Any, *arguments: Any) -> int:
        """A call that may read all data, on another thread: Ctrl-C then ends it, and cancels the feed."""
        if threading.current_thread() is not threading.main_thread():
            return call(*arguments)
        pointer, running, abandoned = self._pointer(), threading.Lock(), False
        done: List[int] = []

        def run() -> None:
            with running:
                if not abandoned:
                    done.append(call(*arguments))

        thread = threading.Thread(target=run, name="leat-hash", daemon=True)
        try:
            thread.start()
            thread.join()
        except BaseException:
            while not abandoned:  # the feed must not be closed before the call has returned
                try:
                    _lib.cancel(pointer)
                    with running:
                        abandoned = True
                except KeyboardInterrupt:
                    pass
            raise
        return done[0]

    def seek(self, epoch: int, position: int = 0) -> None:
        """Jump to a position of an epoch, without reading what comes before it.

        With mixup and cutmix, the position must not separate a pair: use an even one.
        """
        place = dict(epoch=epoch, position=position)
        with self._lock:
            err = _lib.Err()
            _lib.check(_lib.seek(self._pointer(), whole(place, "epoch", 2**63), whole(place, "position", 2**63), err),
                       err)
            self._forget()
            self._look_for_fill()
        self._handle.drain()

    # ---- statistics ----

    @overload
    def stats(self) -> Stats: ...

    @overload
    def stats(self, format: Literal["dict"]) -> Stats: ...

    @overload
    def stats(self, format: Literal["prometheus"]) -> str: ...

    def stats(self, format: str = "dict") -> Union[Stats, str]:
        """Counts and times since the feed was opened, by name. May be called from any thread.

        `sentence` says what limits the throughput and what to try. `stages`, `epochs`, `queues`, `endpoints`, `tuning`,
        `batch_ms` and `first_batch` are lists and dicts; docs/XRAY.md describes them. `format="prometheus"` returns the
        same as text for Prometheus.
        """
        if format not in ("dict", "prometheus"):
            raise InvalidError(f"format is 'dict' or 'prometheus', not {format!r}")
        with self._gate:
            make = _lib.stats_json if format == "dict" else _lib.stats_prometheus
            text = _lib.taken(make(self._pointer()))
        return Stats(json.loads(text)) if format == "dict" else text

    def _pin(self, on: bool) -> None:
        """Whether batches from now on are in pinned memory. PyTorch copies from it without waiting, and so may a program
        whose loop knows nothing of it: only loops that keep batches until the copy is done have it on."""
        with self._lock:
            pointer, err = self._pointer(), _lib.Err()
            if _lib.pin(pointer, on, err) != _lib.OK:
                _log.warning("batches are not in pinned memory: %s; copies to the device take longer",
                             err.text.decode(errors="replace"))
            self._pins = on

    def _to_device(self, begin: int, end: int, size: int, staged: int) -> None:
        """Count a copy to the device, and record it as a span. Times are CLOCK_MONOTONIC's, in ns."""
        with self._lock:
            if not self.closed:
                _lib.to_device(self._pointer(), begin, end, size, staged)

    def explain(self, as_dict: bool = False) -> Any:
        """How the engine runs the pipeline: see `Pipeline.explain`."""
        ranks = dict(zip(("rank", "world"), (self.rank, self.world)))
        found = Explanation(self._pipeline.spec, dict(self._options, **ranks), self._handle.functions, as_dict,
                            self._pipeline._table())
        return json.loads(found.text) if as_dict else found.text

    def bad(self) -> List[Bad]:
        """The bad samples so far, in plan order: the first 1,000, or fewer if their texts are long.

        `stats()["bad"]` counts all, and the option `bad` writes all to a file.
        """
        with self._lock:
            pointer = self._pointer()
            return [bad_sample(_lib.bad_at(pointer, i).contents) for i in range(_lib.bad_count(pointer))]

    # ---- closing ----

    def close(self) -> None:
        """Stop all work, within milliseconds. Batches still held stay valid."""
        if self._pid == os.getpid():
            with self._gate:
                self._close()
            with self._lock:
                self._forget()

    @property
    def closed(self) -> bool:
        return self._handle.pointer is None

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<leat.Feed {repr(self._pipeline)[1:-1]}, seed={self._seed}{state}>"

    def _repr_html_(self) -> str:
        from . import _notebook

        return _notebook.feed(self)

    def __getstate__(self) -> Dict[str, Any]:
        options = {**self._options, "trace": None, "report": None}  # two processes cannot write one file
        return {"pipeline": self._pipeline, "options": options, "state": self.state_dict()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self._open(state["pipeline"], state["options"])
        self.load_state_dict(state["state"])


Feed.stats.__doc__ = f"{Feed.stats.__doc__}\n\n{_ops.stats_doc()}"


class Epoch:
    """Iterates to the end of an epoch, with each batch converted by `convert`. Threads may share one or have one each.

    If a function given to map, or `convert`, fails, the batch counts as not delivered and comes again.
    """

    __slots__ = ("_feed", "_mark", "_fresh", "_steps", "_pins")

    def __init__(self, feed: Feed, *convert: Any, pins: bool = False) -> None:
        self._feed, self._mark, self._fresh, self._steps = feed, feed._ends, True, (*feed._maps, *convert)
        self._pins = pins  # whether batches should be in pinned memory

    def __iter__(self) -> "Epoch":
        return self

    def __next__(self) -> Any:
        feed, begun, me = self._feed, self._feed._begun, get_ident()
        if feed._pins is not self._pins:
            feed._pin(self._pins)
        batch: Any = feed._next(self._mark, me)
        if self._fresh:
            # The last loop stopped right after an epoch's last batch, before its end: start the next epoch.
            if batch is None and feed._ends == self._mark + 1 and not feed._empty:
                self._mark += 1
                batch = feed._next(self._mark, me)
            self._fresh = False
        if batch is None:
            raise StopIteration
        if self._steps:
            try:
                for step in self._steps:
                    batch = step(batch)
            except BaseException:
                feed._put_back()
                raise
        del begun[me]  # no call after this: the program gets the batch
        return batch


def feed_options(given: Dict[str, Any]) -> Dict[str, Any]:
    """All options of a feed: those given, and the defaults of the others."""
    parameters = inspect.signature(Feed.__init__).parameters.values()
    options = {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}
    _options.refuse({name: value for name, value in given.items() if name not in options}, options)
    return {**options, **given}


def explain(pipeline: Pipeline, as_dict: bool, given: Dict[str, Any]) -> Any:
    """What `Pipeline.explain` returns."""
    options = feed_options(given)
    functions = None
    if pipeline._functions():
        from ._pool import prepare

        functions = prepare(pipeline, options)
    try:
        text = Explanation(pipeline.spec, options, functions, as_dict, pipeline._table()).text
    finally:
        if functions:
            functions.close()
    return json.loads(text) if as_dict else text
