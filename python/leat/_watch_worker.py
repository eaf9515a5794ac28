"""Times what a DataLoader's data set does: reading samples, decoding, each transform, collating.

In a worker process the objects are changed in place: they are the worker's copies, and end with it. In the main process
(num_workers=0) `undo` puts everything back. An object keeps its attributes and stays an instance of its class: its class
is replaced by a subclass whose __getitem__ or __call__ is timed. Functions are replaced by functions.

A worker writes to two files in a folder of the main process: its spans, after every batch, up to a limit; and its totals,
several times a second and when it ends. If the folder is gone, it stops timing.
"""
from __future__ import annotations

import contextlib
import functools
import json
import multiprocessing.util
import os
import re
import struct
import sys
import threading
import time
import types
from typing import Any, Callable, Dict, Iterator, List, MutableMapping, MutableSequence, Optional, Sequence, Tuple, Union

from ._spans import COLLATE, DECODE, FETCH, MOST_SPANS, TRANSFORM, Calls, Lane, Totals, now

_RECORD = struct.Struct("<BxHxxxxQQq")  # tag, name, begin, end, item
_EVERY = 200_000_000  # nanoseconds between two writes of the totals
_TRANSFORMS = re.compile(r"transform|augment|preprocess|^tfms?$|^augs?$")
_SEQUENCES = ("Compose", "ReplayCompose", "Sequential")  # run all their parts, in order
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial, type)
_DECODERS = (("cv2", "imdecode"), ("cv2", "imread"), ("torchvision.io", "decode_image"),
             ("torchvision.io", "decode_jpeg"), ("torchvision.io", "read_image"), ("simplejpeg", "decode_jpeg"))
_MOST_DEPTH = 5  # of data sets in data sets

_Holder = Union[MutableMapping[Any, Any], MutableSequence[Any]]


def _name_of(thing: Any) -> str:
    if isinstance(thing, functools.partial):
        return _name_of(thing.func)
    if isinstance(thing, _FUNCTIONS):
        return str(getattr(thing, "__name__", "function"))
    return type(thing).__name__


def _count(indices: Any) -> int:
    try:
        return len(indices)
    except TypeError:
        return 1


def _number(index: Any) -> int:
    return index if isinstance(index, int) and 0 <= index < 2**62 else -1


class Instrument:
    """Times the parts of data sets by `calls`, until `undo`."""

    def __init__(self, calls: Calls) -> None:
        self._calls, self._undo = calls, []  # type: Calls, List[Callable[[], None]]
        self._seen: Dict[int, Any] = {}  # by id, and kept alive
        self._names: Dict[str, int] = {}

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _named(self, thing: Any) -> str:
        """The name of a transform; the second of the same name is 'NAME 2'."""
        name = _name_of(thing)
        self._names[name] = self._names.get(name, 0) + 1
        return name if self._names[name] == 1 else f"{name} {self._names[name]}"

    def _subclass(self, thing: Any, methods: Dict[str, Any]) -> bool:
        """Give `thing` a class with other methods; False if its class does not allow that."""
        kind = type(thing)
        body = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__, **methods}
        if not kind.__dictoffset__:
            body["__slots__"] = ()
        try:
            made = types.new_class(kind.__name__, (kind,), {}, lambda space: space.update(body))
            object.__setattr__(thing, "__class__", made)
        except Exception:  # builtin, compiled or final: it is not timed
            return False

        def back() -> None:
            if type(thing) is made:
                object.__setattr__(thing, "__class__", kind)

        self._undo.append(back)
        return True

    def _replace(self, holder: _Holder, key: Any, new: Any) -> None:
        old = holder[key]
        holder[key] = new

        def back() -> None:  # what the program has put there meanwhile stays, and a list may have grown
            for at in list(holder) if isinstance(holder, MutableMapping) else range(len(holder)):
                if holder[at] is new:
                    holder[at] = old

        self._undo.append(back)

    def _function(self, holder: _Holder, key: Any, tag: int, name: str) -> None:
        old, calls = holder[key], self._calls

        def timed(*args: Any, **named: Any) -> Any:
            return calls.timed(tag, name, -1, 1, old, *args, **named)

        with contextlib.suppress(AttributeError, TypeError):
            functools.update_wrapper(timed, old)
        self._replace(holder, key, timed)

    def transform(self, holder: _Holder, key: Any) -> None:
        """Time the transform `holder[key]`, or each part of it if it is a sequence such as torchvision's Compose."""
        thing = holder[key]
        if isinstance(thing, _FUNCTIONS):
            self._function(holder, key, TRANSFORM, self._named(thing))
            return
        if id(thing) in self._seen:
            return
        self._seen[id(thing)] = thing
        parts = getattr(thing, "transforms", None) or getattr(thing, "_modules", None)
        if type(thing).__name__ in _SEQUENCES and isinstance(parts, (list, dict)) and parts:
            for part in list(parts) if isinstance(parts, dict) else range(len(parts)):
                self.transform(parts, part)
            return
        name, calls, kind = self._named(thing), self._calls, type(thing)

        def timed(self: Any, *args: Any, **named: Any) -> Any:
            return calls.timed(TRANSFORM, name, -1, 1, functools.partial(kind.__call__, self), *args, **named)

        if not self._subclass(thing, {"__call__": timed}):
            self._function(holder, key, TRANSFORM, name)

    def dataset(self, dataset: Any, depth: int = 0) -> None:
        """Time samples, transforms and the image loader of a data set, and of those inside it, as in Subset."""
        if id(dataset) in self._seen or depth > _MOST_DEPTH:
            return
        self._seen[id(dataset)] = dataset
        space = getattr(dataset, "__dict__", {})
        inner = [space.get("dataset")] + (list(space["datasets"]) if isinstance(space.get("datasets"), (list, tuple))
                                          else [])
        inner = [one for one in inner if hasattr(one, "__getitem__") or hasattr(one, "__iter__")]
        for key, value in list(space.items()):
            if _TRANSFORMS.search(key) and callable(value):
                self.transform(space, key)
            elif key == "loader" and callable(value) and id(value) not in self._seen:
                self._function(space, key, DECODE, _name_of(value))
        for one in inner:
            self.dataset(one, depth + 1)
        if not inner or type(dataset).__module__ != "torch.utils.data.dataset":  # a user's does work itself, too
            self._samples(dataset)

    def _samples(self, dataset: Any) -> None:
        kind, calls, methods = type(dataset), self._calls, {}  # type: Any, Calls, Dict[str, Any]
        if hasattr(kind, "_valid_iterator_id"):  # a DataPipe: its metaclass allows no other __iter__
            return
        name = kind.__name__
        stream = getattr(sys.modules.get("torch.utils.data"), "IterableDataset", ())  # has a __getitem__ that fails
        streams = isinstance(dataset, stream) or not hasattr(kind, "__getitem__")
        if not streams:
            def item(self: Any, index: Any) -> Any:
                return calls.timed(FETCH, name, _number(index), 1, functools.partial(kind.__getitem__, self), index)
            methods["__getitem__"] = item
        if not streams and callable(getattr(kind, "__getitems__", None)):
            def several(self: Any, indices: Any) -> Any:
                return calls.timed(FETCH, name, -1, _count(indices), functools.partial(kind.__getitems__, self), indices)
            methods["__getitems__"] = several
        if streams and hasattr(kind, "__iter__"):
            def each(self: Any) -> Iterator[Any]:
                samples = iter(kind.__iter__(self))
                while True:
                    try:
                        sample = calls.timed(FETCH, name, -1, 1, next, samples)
                    except StopIteration:
                        return
                    yield sample
            methods["__iter__"] = each
        self._subclass(dataset, methods)

    def decoders(self) -> None:
        """Time the decoders of image libraries that are loaded."""
        for module, function in _DECODERS:
            space = getattr(sys.modules.get(module), "__dict__", None)
            if space is not None and callable(space.get(function)):
                self._function(space, function, DECODE, f"{module}.{function}")
        image = getattr(sys.modules.get("PIL.ImageFile"), "ImageFile", None)
        if image is None:
            return
        load, calls = image.load, self._calls

        def timed(self: Any) -> Any:
            return calls.timed(DECODE, "PIL", -1, 1, load, self) if getattr(self, "tile", None) else load(self)

        def back() -> None:
            if image.load is timed:
                image.load = load

        image.load = timed
        self._undo.append(back)


# ---- in worker processes ----

class WorkerCalls(Calls):
    """Calls of a worker process, written to files of `folder`."""

    def __init__(self, folder: str, worker: int, limit: int) -> None:
        super().__init__()
        self._path = os.path.join(folder, f"{worker}-{os.getpid()}")
        self._worker, self._left, self._dropped = worker, limit, 0
        self._names: Dict[str, int] = {}
        self._written = self.batches = self.batch_ns = self.cpu_ns = 0
        self._begin = now()
        self.write()

    def batch(self, fetch: Callable[..., Any], *args: Any) -> Any:
        """Make a batch by `fetch`; then write what was timed."""
        if not self.on:
            return fetch(*args)
        begin, cpu = now(), time.process_time_ns()
        try:
            batch = fetch(*args)
            self.batches += 1  # not if the data set has ended
            self.batch_ns += now() - begin
            self.cpu_ns += time.process_time_ns() - cpu
            return batch
        finally:
            self.write()

    def write(self, ended: bool = False) -> None:
        if not self.on:
            return
        with self._lock:
            lane, self.lane = self.lane, Lane("")
        known = len(self._names)
        data = bytearray()
        for span in lane:
            if not self._left:
                self._dropped += 1
                continue
            self._left -= 1
            number = self._names.setdefault(span.name, len(self._names))
            data += _RECORD.pack(span.tag, number, span.begin, span.end, span.item)
        try:
            with open(self._path + ".spans", "ab") as out:
                out.write(data)
            if ended or len(self._names) > known or now() - self._written > _EVERY:
                self._write_totals(ended)
        except OSError:  # nobody watches any more
            self.on = False

    def _write_totals(self, ended: bool) -> None:
        self._written = now()
        with self._lock:
            rows = self.totals.to_rows()
        state = {"worker": self._worker, "pid": os.getpid(), "ended": ended, "names": list(self._names), "totals": rows,
                 "dropped": self._dropped, "batches": self.batches, "batch_ns": self.batch_ns, "cpu_ns": self.cpu_ns,
                 "begin": self._begin, "end": self._written}
        with open(self._path + ".new", "w", encoding="utf-8") as out:
            json.dump(state, out)
        os.replace(self._path + ".new", self._path + ".json")


_calls: Optional[Calls] = None  # of this worker process, while it is watched


class Collate:
    """A collate_fn that is timed: by `calls`, or in a worker by those of the process."""

    def __init__(self, function: Callable[..., Any], calls: Optional[Calls] = None) -> None:
        self.function, self._calls = function, calls

    def __call__(self, samples: Any) -> Any:
        calls = self._calls or _calls
        if calls is None:
            return self.function(samples)
        return calls.timed(COLLATE, _name_of(self.function), -1, _count(samples), self.function, samples)


class WorkerInit:
    """A worker_init_fn: calls the user's, then times the worker's data set."""

    def __init__(self, function: Optional[Callable[[int], Any]], folder: str, limit: int = MOST_SPANS) -> None:
        self.function, self.folder, self.limit = function, folder, limit

    def __call__(self, worker: int) -> None:
        global _calls
        if self.function is not None:
            self.function(worker)
        import torch.utils.data
        from torch.utils.data._utils import fetch

        calls = _calls = WorkerCalls(self.folder, worker, self.limit)
        instrument, info = Instrument(calls), torch.utils.data.get_worker_info()
        if info is not None:
            instrument.dataset(info.dataset)
        instrument.decoders()
        for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):  # only in this process
            _time_batches(kind, calls)
        multiprocessing.util.Finalize(None, calls.write, (True,), exitpriority=10)


def _time_batches(kind: Any, calls: WorkerCalls) -> None:
    before = kind.fetch
    kind.fetch = lambda self, indices: calls.batch(before, self, indices)


class _Here:
    """A data set that the main process reads, timed from `begin` to `end`."""

    def __init__(self, dataset: Any, calls: Calls) -> None:
        self._dataset, self._calls = dataset, calls

    def begin(self) -> None:
        self._instrument = Instrument(self._calls)
        self._instrument.dataset(self._dataset)
        self._instrument.decoders()

    def end(self) -> None:
        self._instrument.undo()


_here: List[_Here] = []  # the latest last
_here_lock = threading.RLock()


@contextlib.contextmanager
def watched_here(dataset: Any, calls: Calls) -> Iterator[None]:
    """Time a data set that the main process itself reads. Loops may end in any order, as those of `zip` do."""
    one = _Here(dataset, calls)
    with _here_lock:
        _here.append(one)
        one.begin()
    try:
        yield
    finally:
        with _here_lock:
            at = _here.index(one)
            for other in reversed(_here[at:]):  # later ones may have replaced what this one did
                other.end()
            del _here[at]
            for other in _here[at:]:
                other.begin()


# ---- in the main process ----

def read_worker(folder: str, name: str) -> Optional[Tuple[Dict[str, Any], List[Tuple[int, str, int, int, int]]]]:
    """What a worker wrote so far: its totals and its spans. None: not all of it is there."""
    path = os.path.join(folder, name)
    try:
        with open(path + ".json", encoding="utf-8") as file:
            state = json.load(file)
        with open(path + ".spans", "rb") as spans:
            data = spans.read()
    except (OSError, ValueError):
        return None
    state["totals"] = Totals.from_rows(state["totals"])
    names: Sequence[str] = state["names"]
    whole = len(data) // _RECORD.size * _RECORD.size
    found = [(tag, names[number], begin, end, item)
             for tag, number, begin, end, item in _RECORD.iter_unpack(data[:whole]) if number < len(names)]
    return state, found
