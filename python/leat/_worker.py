"""Functions on samples: how they are called, and the program of a worker process that calls them.

The engine (src/feed/process.h) puts a sample into memory that it shares with the process, and sends a message. Arrays
given to the function are views of that memory: nothing is copied on the way in, and results that are still in it are not
copied on the way out.
"""
from __future__ import annotations

import fcntl
import functools
import mmap
import os
import pickle
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

# In the order of enum leat_dtype.
TYPES = ("uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool", "int8", "int16", "uint16",
         "uint32", "uint64")
MAX_DIMS, MAX_TEXT, MAX_REPORT = 4, 900, 32 << 10
CALL, DONE, FAILED, WRONG, TOO_LARGE = 2, 3, 4, 5, 6
MESSAGE = struct.Struct("=4I2Q")
HEAD = struct.Struct("=6Q2I")
FIELD = struct.Struct("=64s2i4qQ")
_ALIGN = 64
_WORTH_A_LOOK = 4096  # bytes: smaller arrays are copied sooner than it is found out where they are
_LOOK_AFTER_PARENT = 5.0  # seconds


class Type(NamedTuple):
    """What is declared of a field: its type, and its shape with None where it varies."""

    dtype: str
    shape: Tuple[Optional[int], ...]


Key = Tuple[int, int, int]  # seed, epoch, position


class WrongResult(Exception):
    """The function returned something that does not fit the feed: not this sample's fault."""


@functools.lru_cache(maxsize=None)
def numpy_type(name: str) -> np.dtype:
    """NumPy's type of that name. It has no bfloat16: that of ml_dtypes if installed, else the bits as uint16."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(np.uint16)
    return np.dtype(ml_dtypes.bfloat16)


def generator(seed: int, epoch: int, position: int, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[seed, epoch], counter=[0, 0, position, number]))


def as_array(value: Any) -> np.ndarray:
    """What a function returned as an array; text is its bytes in UTF-8, and tensors of PyTorch are accepted."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return np.frombuffer(value, np.uint8)
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def type_of(value: Any) -> Type:
    array = as_array(value)
    if array.dtype.name not in TYPES:
        raise WrongResult(f"is of type {array.dtype}, and a field can be {', '.join(TYPES)}")
    if array.ndim > MAX_DIMS:
        raise WrongResult(f"has {array.ndim} dimensions, and a field has at most {MAX_DIMS}")
    text = isinstance(value, (str, bytes, bytearray, memoryview))
    return Type(array.dtype.name, (None,) if text else array.shape)


def _checked(name: str, value: Any, declared: Type) -> np.ndarray:
    array, dtype = as_array(value), numpy_type(declared.dtype)
    if array.dtype != dtype:
        if array.size and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise WrongResult(f"field '{name}' is {array.dtype}, expected {declared.dtype}; convert it, or declare its "
                              f"type: fields={{'{name}': ('{array.dtype}', ...)}}")
        array = array.astype(dtype)
    shape = declared.shape
    if array.shape != shape and (array.ndim != len(shape)
                                 or any(n not in (None, m) for n, m in zip(shape, array.shape))):
        varies = tuple(m if n == m else None for n, m in zip(shape, array.shape)) if array.ndim == len(shape) else ()
        advice = (f"declare what varies as None: fields={{'{name}': ('{declared.dtype}', {varies})}}" if varies else
                  "all samples need the same number of dimensions; fields= declares it")
        raise WrongResult(f"field '{name}' has the shape {array.shape}, expected {shape}; {advice}")
    return array


class Task:
    """A function on samples, with the fields it takes and gives."""

    def __init__(self, function: Callable[..., Any], takes: Optional[List[str]], single: bool, wants_rng: bool,
                 number: int) -> None:
        self.function, self.takes, self.single = function, takes, single
        self.wants_rng, self.number = wants_rng, number
        self.gives: Dict[str, Type] = {}

    def call(self, sample: Dict[str, Any], key: Key) -> Dict[str, Any]:
        named = {"rng": generator(*key, self.number)} if self.wants_rng else {}
        if self.takes is None:
            result = self.function(sample, **named)
            if result is None:
                return sample
            if not isinstance(result, Mapping):
                raise WrongResult(f"returned {type(result).__name__}, expected a dict, or None if it changes the dict "
                                  "it gets")
            return dict(result)
        result = self.function(*(sample[name] for name in self.takes), **named)
        if not self.single and not isinstance(result, (tuple, list)):
            raise WrongResult(f"returned {type(result).__name__}, expected {len(self.takes)} values")
        results = (result,) if self.single else tuple(result)
        if len(results) != len(self.takes):
            raise WrongResult(f"returned {len(results)} values, expected {len(self.takes)}: {', '.join(self.takes)}")
        return dict(zip(self.takes, results))

    def arrays(self, sample: Dict[str, Any], key: Key) -> List[np.ndarray]:
        """The results in the order of `gives`, checked."""
        results = self.call(sample, key)
        if results.keys() != self.gives.keys():
            raise WrongResult(f"returned the fields {', '.join(map(str, results)) or 'none'}, expected "
                              f"{', '.join(self.gives)}; fields= declares them")
        return [_checked(name, results[name], declared) for name, declared in self.gives.items()]

    def types(self, sample: Dict[str, Any], key: Key) -> Dict[str, Type]:
        """The types of the results for one sample."""
        found = {}
        for name, value in self.call(sample, key).items():
            if not isinstance(name, str) or not 0 < len(name.encode()) < 64:
                raise WrongResult(f"returned a field named {name!r}, expected 1 to 63 bytes of text")
            try:
                found[name] = type_of(value)
            except WrongResult as problem:
                raise WrongResult(f"field '{name}' {problem}") from None
        return found


def one_line(problem: BaseException) -> str:
    text = " ".join("".join(traceback.format_exception_only(type(problem), problem)).split())
    return text if len(text.encode()) <= MAX_TEXT else text.encode()[:MAX_TEXT - 3].decode(errors="ignore") + "..."


def traceback_of(problem: BaseException) -> str:
    """The traceback, from the function's own frame on."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(problem), problem, trace))


def report(problem: BaseException, key: Key, number: int) -> bytes:
    """What the parent is told of a failure, besides the sentence: the traceback, and the exception if it can be sent."""
    text = traceback_of(problem)[-MAX_REPORT // 2:]
    try:
        cause: Optional[bytes] = pickle.dumps(problem)
        pickle.loads(cause or b"")
    except Exception:
        cause = None
    if cause is not None and len(cause) > MAX_REPORT // 2:
        cause = None
    return pickle.dumps(("report", key, number, text, cause))


# ---- the process ----


class _Memory:
    def __init__(self, fd: int, size: int) -> None:
        self.map = mmap.mmap(fd, size)
        self.size = size
        self.begin = np.frombuffer(self.map, np.uint8).__array_interface__["data"][0]
        os.close(fd)


class _Server:
    """Answers the calls of one feed."""

    def __init__(self, tasks: Sequence[Task], engine: socket.socket, control: socket.socket) -> None:
        self.tasks, self.engine, self.control = tasks, engine, control
        self.names: Dict[bytes, str] = {}
        self.dtypes = [numpy_type(name) for name in TYPES]
        self.codes = [[TYPES.index(given.dtype) for given in task.gives.values()] if task else [] for task in tasks]

    def run(self) -> None:
        data, fds, _, _ = socket.recv_fds(self.engine, MESSAGE.size, 2)
        if not data:
            return
        _, _, _, _, own, large = MESSAGE.unpack(data)
        memories = _Memory(fds[0], own), _Memory(fds[1], large)
        parent = os.getppid()
        self.engine.settimeout(_LOOK_AFTER_PARENT)
        while True:
            try:
                data = self.engine.recv(MESSAGE.size)
            except socket.timeout:
                if os.getppid() != parent:
                    return
                continue
            if not data:
                return
            _, where, _, _, used, _ = MESSAGE.unpack(data)
            self.engine.send(MESSAGE.pack(*self.answer(memories[where], used)))

    def sample(self, memory: _Memory, count: int) -> Dict[str, Any]:
        sample, at = {}, HEAD.size
        for _ in range(count):
            name, dtype, ndim, s0, s1, s2, s3, data = FIELD.unpack_from(memory.map, at)
            at += FIELD.size
            key = self.names.get(name)
            if key is None:
                key = self.names[name] = name.rstrip(b"\0").decode()
            value = np.ndarray((s0, s1, s2, s3)[:ndim], self.dtypes[dtype], memory.map, data)
            sample[key] = value if ndim else value[()]
        return sample

    def answer(self, memory: _Memory, used: int) -> Tuple[int, ...]:
        seed, epoch, position, _, _, _, number, count = HEAD.unpack_from(memory.map)
        key = seed, epoch, position
        try:
            arrays = self.tasks[number].arrays(self.sample(memory, count), key)
        except WrongResult as problem:
            return self.text(memory, WRONG, str(problem).encode()[:MAX_TEXT])
        except BaseException as problem:
            try:
                self.control.send(report(problem, key, number), socket.MSG_DONTWAIT)
            except OSError:  # nobody reads them: the sentence has to do
                pass
            return self.text(memory, FAILED, one_line(problem).encode())
        return self.result(memory, used, arrays, self.codes[number])

    def text(self, memory: _Memory, kind: int, text: bytes) -> Tuple[int, ...]:
        text = text[:memory.size]
        memory.map[:len(text)] = text
        return kind, 0, 0, 0, 0, len(text)

    def result(self, memory: _Memory, used: int, arrays: List[np.ndarray], codes: List[int]) -> Tuple[int, ...]:
        table = at = used
        at += len(arrays) * FIELD.size
        places = []
        for array in arrays:
            place = -1
            if array.nbytes >= _WORTH_A_LOOK and array.flags.c_contiguous:
                place = array.__array_interface__["data"][0] - memory.begin
            if not 0 <= place <= used - array.nbytes:
                place = at = (at + _ALIGN - 1) // _ALIGN * _ALIGN
                at += array.nbytes
            places.append(place)
        if at > memory.size:
            return TOO_LARGE, 0, 0, 0, at, 0
        for array, code, place in zip(arrays, codes, places):
            if place >= used:
                np.ndarray(array.shape, array.dtype, memory.map, place)[...] = array
            shape = array.shape + (0,) * (MAX_DIMS - array.ndim)
            FIELD.pack_into(memory.map, table, b"", code, array.ndim, *shape, place)
            table += FIELD.size
        return DONE, 0, len(arrays), 0, used, 0


def _die_with_parent(life: int) -> None:
    """Have the kernel kill this process when the parent ends and with it the other end of this pipe."""
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, 10, signal.SIGKILL)  # F_SETSIG
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    os.set_blocking(life, False)
    try:
        ended = os.read(life, 1) == b""
    except BlockingIOError:
        ended = False
    if ended:  # before the signal was asked for
        os._exit(0)


def _load(tasks: Any, control: socket.socket) -> List[Task]:
    try:
        loaded = pickle.load(tasks)
    except BaseException as problem:
        control.send(pickle.dumps(("failed", one_line(problem), traceback_of(problem)[-MAX_REPORT:])))
        os._exit(0)
    control.send(pickle.dumps(("ready",)))
    return loaded


def _probe(tasks: List[Task], request: int) -> bytes:
    with open(request, "rb") as file:
        number, sample, key = pickle.load(file)
    try:
        return pickle.dumps(("types", tasks[number].types(sample, key)))
    except WrongResult as problem:
        return pickle.dumps(("wrong", str(problem)))
    except BaseException as problem:
        return pickle.dumps(("raised", one_line(problem), report(problem, key, number)))


def main(tasks: Any, control_fd: int, life: int) -> None:
    """The process: load the functions, then do what the parent says on the control socket, until it is closed."""
    _die_with_parent(life)
    control = socket.socket(fileno=control_fd)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    loaded = _load(tasks, control)
    while True:
        data, fds, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not data:
            os._exit(0)
        request = pickle.loads(data)
        if request[0] == "probe":
            control.send(_probe(loaded, fds[0]))
            continue
        for task, gives in zip(loaded, request[1]):
            if task:  # None: runs on threads of the parent
                task.gives = gives
        with socket.socket(fileno=fds[0]) as engine:
            _Server(loaded, engine, control).run()
