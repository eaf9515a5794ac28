"""An open pipeline, giving batches.

Threads: any may use a feed; one lock keeps their calls apart. A wait is cut into pieces, so that Ctrl-C and
other signals are seen at once.
"""
from __future__ import annotations

import collections
import ctypes
import gc
import json
import logging
import operator
import os
import sys
import threading
import weakref
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from . import _lib, _ops
from ._batch import Batch, Form, dtype_name
from ._pipeline import Pipeline
from .errors import CancelledError, HeldError, InvalidError, ProcessError, SpecError

_POLL = ctypes.c_uint64(20_000_000)  # nanoseconds: how long a signal may have to wait
_ON_ERROR = ("fail", "skip", "replace")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING)
_UNKNOWN = -1, 0  # rank and world: the library asks the environment
_log = logging.getLogger("leat")


class FieldSpec(NamedTuple):
    """What a field's samples are: `shape` has None where they differ."""

    dtype: str
    shape: Tuple[Optional[int], ...]

    @property
    def ragged(self) -> bool:
        return None in self.shape


class Bad(NamedTuple):
    """A sample that could not be read or decoded."""

    epoch: int
    position: int
    sample: int
    uri: str
    offset: int
    reason: str
    replaced: bool


def _bytes_of(memory: Union[int, str]) -> int:
    if not isinstance(memory, str):
        return int(memory)
    if "\0" in memory:
        raise InvalidError("memory: a size cannot contain the character 0")
    size, err = ctypes.c_uint64(), _lib.Err()
    if _lib.parse_size(memory.encode("utf-8", "surrogateescape"), size, err) != _lib.OK:
        raise InvalidError("memory: " + err.text.decode(errors="replace"))
    return size.value


def _whole(options: Dict[str, Any], name: str, end: int) -> int:
    """A number that fits into the library's unsigned one: ctypes would cut it in silence."""
    value = operator.index(options[name])
    if not 0 <= value < end:
        raise InvalidError(f"{name}={value} is not between 0 and {end - 1}")
    return value


def _ranks(rank: Optional[int], world: Optional[int]) -> Tuple[int, int]:
    """What was given; else what torch.distributed says, if it runs; else the library asks the environment."""
    distributed = sys.modules.get("torch.distributed")
    if rank is None and world is None and distributed is not None:
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    return _UNKNOWN[0] if rank is None else rank, _UNKNOWN[1] if world is None else world


class _Opening:
    """leat_open on a thread of its own: making the index of large data takes time, and Ctrl-C has to be seen."""

    def __init__(self, spec: str, options: _lib.Options, callback: Any) -> None:
        if "\0" in spec:
            raise SpecError("a spec cannot contain the character 0")
        self._arguments = spec.encode("utf-8", "surrogateescape"), options
        self._feed, self._err, self._status = ctypes.c_void_p(), _lib.Err(), -1
        self._callback = callback  # the library may call it for as long as it opens
        self._lock, self._abandoned = threading.Lock(), False

    def _run(self) -> None:
        self._status = _lib.open(*self._arguments, self._feed, self._err)
        with self._lock:
            if self._abandoned:
                _lib.close(self._feed)

    def result(self) -> Optional[int]:
        if threading.current_thread() is threading.main_thread():
            thread = threading.Thread(target=self._run, name="leat-open", daemon=True)
            thread.start()
            try:
                thread.join()
            except BaseException:
                with self._lock:
                    self._abandoned = True
                    _lib.close(self._feed)  # NULL if it is not open yet
                    self._feed.value = None
                raise
        else:  # signals are not this thread's
            self._run()
        _lib.check(self._status, self._err)
        return self._feed.value


class _Handle:
    """The C library's feed. Closed once, and only by the process that opened it."""

    def __init__(self, spec: str, options: Dict[str, Any]) -> None:
        self.pid, self.lock = os.getpid(), threading.RLock()
        self.log: "collections.deque[Tuple[int, str]]" = collections.deque(maxlen=1000)
        given = _lib.Options()
        _lib.options_init(given, ctypes.sizeof(given))
        given.seed = _whole(options, "seed", 2**64)
        given.epochs = _whole(options, "epochs", 2**63)
        given.threads = _whole(options, "threads", 2**31)
        given.memory = _bytes_of(options["memory"])
        given.rank, given.world = self.ranks = _ranks(options["rank"], options["world"])
        if options["on_error"] not in _ON_ERROR:
            raise InvalidError(f"on_error={options['on_error']!r} is not one of {', '.join(_ON_ERROR)}")
        given.on_error = _ON_ERROR.index(options["on_error"])
        if options["max_bad"] is not None:
            given.max_bad = _whole(options, "max_bad", 2**64)
        # Workers only leave a note: what Python's logging does is the consumer's to wait for.
        notes = self.log
        self._callback = _lib.LOG(lambda arg, level, text: notes.append((level, text.decode(errors="replace"))))
        given.log = self._callback
        self.pointer: Optional[int] = None
        opening = _Opening(spec, given, self._callback)
        try:
            self.pointer = opening.result()
        finally:
            self.drain()

    def drain(self) -> None:
        while self.log:
            level, text = self.log.popleft()
            _log.log(_LEVELS[level] if 0 <= level < len(_LEVELS) else logging.WARNING, "%s", text)

    def close(self) -> None:
        pointer = self.pointer
        if pointer is None or self.pid != os.getpid():
            return
        _lib.cancel(pointer)  # whoever waits for a batch, be it at the interpreter's exit, lets go of the lock
        with self.lock:
            self.pointer = None
            _lib.close(pointer)


class Feed:
    """An open pipeline. `for batch in feed` runs to the end of the epoch; the next loop runs the next one.

    A loop goes on from where the feed stands, also after `break`; `seek` goes elsewhere.

    Args:
        pipeline: a spec's text, or a Pipeline.
        seed: the same seed gives the same bytes, for any number of threads and ranks.
        epochs: so many, then loops are empty; 0: no end.
        threads: 0: the CPUs this process may use.
        memory: bytes the feed may hold, or text such as '512MiB'; 0: a quarter of the RAM, 1 GiB at most.
        rank, world: which of how many; None: as torch.distributed says if it runs, else the launcher's
            environment (RANK and WORLD_SIZE, Open MPI's, Slurm's), else 0 of 1.
        on_error: what becomes of a bad sample: 'fail', 'skip' or 'replace'.
        max_bad: bad samples per epoch before the feed fails; None: any number.
    """

    def __init__(self, pipeline: Union[str, Pipeline], *, seed: int = 0, epochs: int = 0, threads: int = 0,
                 memory: Union[int, str] = 0, rank: Optional[int] = None, world: Optional[int] = None,
                 on_error: str = "fail", max_bad: Optional[int] = None) -> None:
        options = dict(seed=seed, epochs=epochs, threads=threads, memory=memory, rank=rank, world=world,
                       on_error=on_error, max_bad=max_bad)
        self._open(pipeline if isinstance(pipeline, Pipeline) else Pipeline([pipeline]), options)

    def _open(self, pipeline: Pipeline, options: Dict[str, Any]) -> None:
        self._pipeline, self._options = pipeline, options
        self._handle = _Handle(pipeline.spec, options)
        self._pid = self._handle.pid
        self._lock = self._handle.lock  # for all that the library wants called by one thread at a time
        self._gate = threading.RLock()  # for what may be asked at any time, until the feed is closed
        self._seed = options["seed"]
        self._ends = 0  # of epochs seen: tells an iterator that another thread saw the end
        self._maps = pipeline._maps
        self._close = weakref.finalize(self, self._handle.close)
        pointer = self._handle.pointer
        self._feed = ctypes.c_void_p(pointer)
        self._err = _lib.Err()
        self._out: Any = ctypes.c_void_p()
        self._refs = ctypes.byref(self._out), ctypes.byref(self._err)
        self.fields: Dict[str, FieldSpec] = {}
        self._fields: Dict[str, Form] = {}
        for i in range(_lib.field_count(pointer)):
            field = _lib.field_at(pointer, i).contents
            shape = tuple(None if n < 0 else n for n in field.shape[:field.ndim])
            self.fields[field.name.decode()] = FieldSpec(dtype_name(field.dtype), shape)
            self._fields[field.name.decode()] = Form(field.name, field.dtype, shape)

    def _join(self) -> None:
        """Opens the feed again, where it stands, if torch.distributed was initialised since and rank and world
        were not given: this process has its part of every batch from now on."""
        ranks = _ranks(self._options["rank"], self._options["world"])
        if ranks not in (_UNKNOWN, self._handle.ranks):
            state = self.__getstate__()
            self.close()
            self.__setstate__(state)

    # ---- one batch after the other ----

    def _pointer(self) -> int:
        if self._pid != os.getpid():
            raise ProcessError(f"this feed was opened in process {self._pid}, and its threads did not survive the fork "
                               f"to process {os.getpid()}: open it in the process that uses it")
        pointer = self._handle.pointer
        if pointer is None:
            raise CancelledError("the feed is closed")
        return pointer

    def _wait(self, status: int) -> int:
        """Goes on with a wait that gave no batch at once: a batch, the end, or an error. Under the lock."""
        collected = False
        while status in (_lib.TIMEOUT, _lib.AGAIN):  # the interpreter has looked at its signals
            if status == _lib.AGAIN and collected:
                raise HeldError(self._err.text.decode() + "; keep copies (batch.copy()) of what has to last")
            if status == _lib.AGAIN:
                gc.collect()  # batches in cycles of dead objects
                collected = True
            self._pointer()
            status = _lib.next_within(self._feed, _POLL, *self._refs)
        if status not in (_lib.OK, _lib.END, _lib.DONE):
            raise _lib.error(self._err)
        return status

    def _next(self, mark: int) -> Optional[Batch]:
        """The next batch of the epoch that began when `_ends` was `mark`; None at its end."""
        with self._lock:
            if self._ends != mark:
                return None
            self._pointer()
            status = _lib.next_within(self._feed, _POLL, *self._refs)
            if status != _lib.OK:
                status = self._wait(status)
            if status == _lib.OK:
                batch = Batch(self._out.value, self._fields, self._seed)
            else:
                self._ends += 1
                batch = None
        if self._handle.log:
            self._handle.drain()
        return batch

    def __iter__(self) -> Iterator[Batch]:
        """The batches up to the end of the epoch."""
        return _Epoch(self)

    def __len__(self) -> int:
        """Batches per epoch, of this rank."""
        with self._gate:
            return _lib.batches(self._pointer())

    def steps(self, count: Optional[int] = None) -> Iterator[Batch]:
        """`count` batches, or without end, over the ends of epochs; fewer when the feed's epochs are over."""
        given, before = 0, -1
        while count is None or given < count:
            if given == before:  # an epoch without a batch: there are no more
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

        return View(self, Batch.to_dict)

    def torch(self, device: Any = None, prefetch: int = 1) -> Any:
        """Batches as dicts of PyTorch tensors: over the same memory on the CPU, or on their way to `device`."""
        from . import torch

        return torch.view(self, device, prefetch)

    def jax(self, device: Any = None) -> Any:
        """Batches as dicts of JAX arrays, over the same memory on the CPU."""
        from . import jax

        return jax.view(self, device)

    def tensorflow(self) -> Any:
        """Batches as dicts of TensorFlow tensors, over the same memory; `.dataset()` makes a tf.data.Dataset."""
        from . import tensorflow

        return tensorflow.View(self)

    # ---- where it stands ----

    @property
    def epoch(self) -> int:
        """The epoch that the next batch belongs to."""
        with self._lock:
            return _lib.epoch(self._pointer())

    @property
    def position(self) -> int:
        """Samples of that epoch delivered so far, over all ranks."""
        with self._lock:
            return _lib.position(self._pointer())

    @property
    def samples(self) -> int:
        """Samples per epoch, over all ranks."""
        with self._gate:
            return _lib.samples(self._pointer())

    @property
    def batch_size(self) -> int:
        """Samples of a full batch, of this rank."""
        with self._gate:
            return _lib.batch_size(self._pointer())

    @property
    def seed(self) -> int:
        return self._seed

    @property
    def pipeline(self) -> Pipeline:
        return self._pipeline

    @property
    def spec(self) -> str:
        """The pipeline in full: every option with its value."""
        with self._gate:
            return _lib.canonical(self._pointer()).decode(errors="replace")

    def state_dict(self) -> Dict[str, Any]:
        """Where the feed stands, as a small dict of plain values: a checkpoint for `load_state_dict`.

        Counts the batches that were handed out. Valid for other numbers of threads and ranks, and for another
        place of the same data.
        """
        with self._lock:
            json_text, err = ctypes.c_void_p(), _lib.Err()
            _lib.check(_lib.save(self._pointer(), json_text, err), err)
        return json.loads(_lib.taken(json_text.value))

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes to where `state` says, without reading anything again. The seed comes from the checkpoint, too."""
        with self._lock:
            err = _lib.Err()
            _lib.check(_lib.restore(self._pointer(), json.dumps(state).encode(), err), err)
            self._seed = int(state["seed"])

    def seek(self, epoch: int, position: int = 0) -> None:
        """Goes to a position of an epoch, at once."""
        with self._lock:
            self.load_state_dict(dict(self.state_dict(), epoch=epoch, position=position))

    # ---- what happened ----

    def stats(self) -> Dict[str, Any]:
        """Counts and times since the feed was opened, by name. From any thread."""
        with self._gate:
            text = _lib.taken(_lib.stats_json(self._pointer()))
        return json.loads(text)

    def bad(self) -> List[Bad]:
        """The bad samples so far, in the order of the plan."""
        with self._lock:
            pointer = self._pointer()
            found = [_lib.bad_at(pointer, i).contents for i in range(_lib.bad_count(pointer))]
            return [Bad(b.epoch, b.position, b.sample, os.fsdecode(b.uri or b""), b.offset,
                        (b.reason or b"").decode(errors="replace"), b.replaced) for b in found]

    # ---- its end ----

    def close(self) -> None:
        """Stops all work, within milliseconds; batches that are held stay valid."""
        if self._pid == os.getpid():
            with self._gate:
                self._close()

    @property
    def closed(self) -> bool:
        return self._handle.pointer is None

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<leat.Feed {self._pipeline!r} seed={self._seed}{state}>"

    def __getstate__(self) -> Dict[str, Any]:
        return {"pipeline": self._pipeline, "options": self._options, "state": self.state_dict()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self._open(state["pipeline"], state["options"])
        self.load_state_dict(state["state"])


Feed.stats.__doc__ = f"{Feed.stats.__doc__}\n\n{_ops.stats_doc()}"


class _Epoch:
    """The batches up to the end of an epoch. Threads may share one, or have one each."""

    __slots__ = ("_feed", "_mark", "_fresh")

    def __init__(self, feed: Feed) -> None:
        self._feed, self._mark, self._fresh = feed, feed._ends, True

    def __iter__(self) -> "_Epoch":
        return self

    def __next__(self) -> Batch:
        feed = self._feed
        batch: Any = feed._next(self._mark)
        if self._fresh:
            # The feed stood behind an epoch's last batch: what begins now is the next epoch.
            if batch is None and feed._ends == self._mark + 1:
                self._mark += 1
                batch = feed._next(self._mark)
            self._fresh = False
        if batch is None:
            raise StopIteration
        for stage in feed._maps:
            batch = stage(batch)
        return batch
