"""Functions inside the engine's chain: worker processes that run them, and what the engine is told of them.

Each thread of the engine has its own process, which it waits for, so nothing is scheduled here. Processes are started
with the interpreter itself and not forked: a fork would copy the engine's locks, and multiprocessing would run the main
script again. They end with the feed, or with this process, however it ends.
"""
from __future__ import annotations

import collections
import ctypes
import os
import pickle
import re
import socket
import subprocess
import sys
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from . import _lib, _ops, _text
from ._map import ChainMap
from ._worker import TYPES, Task, Type, WrongResult, numpy_type, one_line, traceback_of
from .errors import Error, InvalidError, MapError, SpecError, WorkerError

_START = ("import os, sys, pickle; tasks = os.fdopen({0}, 'rb'); sys.path[:] = pickle.load(tasks); "
          "from leat._worker import main; main(tasks, {1}, {2})")
# One process per CPU is all there is to do: libraries should not start threads of their own. The user's value counts.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS",
               "OPENCV_FOR_THREADS_NUM")
_TRIES = 100  # samples that a function may refuse at open, with on_error
_WHERE = re.compile(r"position (\d+) of epoch (\d+): map: ")


class RemoteTraceback(Exception):
    """The traceback of an exception in a worker process."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


def _pickled(tasks: Sequence[Task], maps: Sequence[ChainMap]) -> bytes:
    try:
        import cloudpickle
    except ImportError:
        cloudpickle = None
    sent = [None if stage.threads else task for task, stage in zip(tasks, maps)]
    for task, stage in zip(sent, maps):
        try:
            if task and cloudpickle is None and getattr(task.function, "__module__", "") == "__main__":
                raise pickle.PicklingError("it is defined in the main program")
            (cloudpickle or pickle).dumps(task)
        except Exception as problem:
            advice = ("" if cloudpickle else "; install cloudpickle, or define the function at the top level of a "
                      "module")
            raise InvalidError(f"{stage}: the function cannot be sent to worker processes: {problem}{advice}"
                               "; workers='thread' needs not send it") from problem
    return (cloudpickle or pickle).dumps(sent)


def _memfd(*parts: bytes) -> int:
    fd = os.memfd_create("leat", 0)
    with open(fd, "wb", closefd=False) as file:
        for part in parts:
            file.write(part)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class _Process:
    def __init__(self, tasks: int) -> None:
        self.control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        life, self._life = os.pipe()
        environment = {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ}
        # The position in a file is shared with those who inherit it, so each gets its own.
        own = os.open(f"/proc/self/fd/{tasks}", os.O_RDONLY)
        fds = own, control.fileno(), life
        flags: List[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
        try:
            # A new session: Ctrl-C reaches only the parent, which ends the processes.
            self.process = subprocess.Popen([sys.executable, *flags, "-c", _START.format(*fds)], pass_fds=fds,
                                            env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
        except BaseException:
            os.close(self._life)
            raise
        finally:
            os.close(own)
            os.close(life)
            control.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    def receive(self) -> Any:
        data = self.control.recv(1 << 20)
        if data:
            return pickle.loads(data)
        status = self.process.wait(10)
        how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
        raise WorkerError(f"worker process {self.pid} {how}")

    def probe(self, number: int, sample: Dict[str, Any], key: Tuple[int, int, int]) -> Any:
        fd = _memfd(pickle.dumps((number, sample, key)))
        try:
            socket.send_fds(self.control, [pickle.dumps(("probe",))], [fd])
        finally:
            os.close(fd)
        answer = self.receive()
        while answer[0] == "report":  # of a sample of an earlier function
            answer = self.receive()
        if answer[0] == "raised":
            _, _, _, text, cause = pickle.loads(answer[2])
            return "raised", answer[1], text, pickle.loads(cause) if cause else None
        return answer

    def serve(self, tasks: Sequence[Task]) -> socket.socket:
        engine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            try:
                socket.send_fds(self.control, [pickle.dumps(("serve", [task.gives for task in tasks]))],
                                [other.fileno()])
            except OSError:  # it has ended: the engine will see that
                pass
        return engine

    def reports(self) -> List[Any]:
        found: List[Any] = []
        try:
            while True:
                data = self.control.recv(1 << 20, socket.MSG_DONTWAIT)
                if not data:
                    return found
                found.append(pickle.loads(data))
        except OSError:
            return found

    def kill(self) -> None:
        self.process.kill()
        if self._life >= 0:
            os.close(self._life)
            self._life = -1


class _Some:
    """The first functions of a feed, for a feed of single samples. It does not end the processes."""

    def __init__(self, functions: "Functions", count: int) -> None:
        self._functions, self._count = functions, count

    def install(self, options: _lib.Options) -> None:
        self._functions._install(options, self._count)

    def explain(self, error: Error) -> Error:
        return self._functions.explain(error)

    def close(self) -> None:
        self._functions.hang_up()


class Functions:
    """The functions of one open feed."""

    def __init__(self, maps: Sequence[ChainMap]) -> None:
        self.pid, self.maps = os.getpid(), list(maps)
        self.tasks = [stage.task(number) for number, stage in enumerate(maps)]
        self.processes: List[_Process] = []
        self._callbacks: Dict[int, Any] = {}
        self._causes: "collections.OrderedDict[Tuple[int, int, int], BaseException]" = collections.OrderedDict()
        self._keep: List[Any] = []
        self._sockets: List[socket.socket] = []

    def again(self) -> "Functions":
        """The same for another feed, without processes so far."""
        other = Functions(self.maps)
        other.tasks = self.tasks
        return other

    def start(self, count: int) -> None:
        """Start the processes, all at once, and wait until they have loaded the functions."""
        if all(stage.threads for stage in self.maps):
            return
        tasks = _memfd(pickle.dumps(sys.path), _pickled(self.tasks, self.maps))
        try:
            for _ in range(count):
                self.processes.append(_Process(tasks))
        finally:
            os.close(tasks)
        for process in self.processes:
            try:
                answer = process.receive()
            except WorkerError as problem:
                raise WorkerError(f"{problem} before it had loaded the functions; its messages are above") from None
            if answer[0] == "failed":
                raise self.caused(InvalidError(f"a worker process cannot load the functions: {answer[1]}"), answer[2])

    def caused(self, error: Error, text: str, cause: Optional[BaseException] = None) -> Error:
        if cause is None:
            error.__cause__ = RemoteTraceback(text)
        else:
            cause.__cause__ = RemoteTraceback(text)
            error.__cause__ = cause
        return error

    # ---- what the engine gets ----

    def install(self, options: _lib.Options) -> None:
        """Set the functions in the feed's options."""
        self._install(options, len(self.tasks))

    def describe(self, options: _lib.Options) -> None:
        """The same, to explain the pipeline: nothing is called."""
        self._install(options, len(self.tasks), serve=False)

    def _install(self, options: _lib.Options, count: int, serve: bool = True) -> None:
        processes = options.threads
        table = (_lib.Function * count)()
        for i, (task, stage) in enumerate(zip(self.tasks[:count], self.maps)):
            one = table[i]
            one.name = stage.name.encode("utf-8", "surrogateescape")
            one.run = self._callback(i) if stage.threads else _lib.RUN()
            one.drops = task.takes is None
            if task.takes is not None:
                takes = (ctypes.c_char_p * len(task.takes))(*(name.encode() for name in task.takes))
                one.takes, one.take_count = takes, len(takes)
                self._keep.append(takes)
            gives = (_lib.Field * len(task.gives))()
            for field, (name, declared) in zip(gives, task.gives.items()):
                field.name, field.ndim = name.encode(), len(declared.shape)
                field.dtype = TYPES.index(declared.dtype)
                field.shape[:len(declared.shape)] = [-1 if n is None else n for n in declared.shape]
            one.gives, one.give_count = gives, len(gives)
            self._keep.append(gives)
        options.functions, options.function_count = table, count
        self._keep.append(table)
        if serve and self.processes and not all(stage.threads for stage in self.maps[:count]):
            sockets = [process.serve(self.tasks) for process in self.processes[:processes]]
            given = (_lib.Process * processes)()
            for one, process, engine in zip(given, self.processes, sockets):
                one.pid, one.socket = process.pid, engine.fileno()
            options.processes, options.process_count = given, processes
            self._keep.append(given)
            self._sockets = sockets

    def hang_up(self) -> None:
        """Have the processes wait for the next feed."""
        self._sockets = []

    def _callback(self, number: int) -> Any:
        """The function on the engine's threads: for interpreters without a GIL, and functions that release it."""
        if number not in self._callbacks:
            task = self.tasks[number]

            def run(_: Any, call: Any, err: Any) -> int:
                try:
                    return self._run(task, call, err)
                except BaseException as problem:
                    key = call.contents.seed, call.contents.epoch, call.contents.position
                    wrong = isinstance(problem, WrongResult)
                    if not wrong:
                        self._causes[(*key[1:], number)] = problem
                        while len(self._causes) > _TRIES:
                            self._causes.popitem(last=False)
                    err.contents.status = _lib.SPEC if wrong else _lib.FUNCTION
                    err.contents.text = (str(problem) if wrong else one_line(problem)).encode()[:_lib.MAX_TEXT]
                    return err.contents.status

            self._callbacks[number] = _lib.RUN(run)
        return self._callbacks[number]

    def _run(self, task: Task, call: Any, err: Any) -> int:
        given = call.contents
        sample: Dict[str, Any] = {}
        for value in given.value[:given.count]:
            shape, dtype = tuple(value.shape[:value.ndim]), numpy_type(TYPES[value.dtype])
            array = np.empty(shape, dtype)  # a copy: the engine may share what it gives
            ctypes.memmove(array.ctypes.data, value.data, array.nbytes)
            sample[value.name.decode()] = array if value.ndim else array[()]
        for i, array in enumerate(task.arrays(sample, (given.seed, given.epoch, given.position))):
            array = np.ascontiguousarray(array)
            to = _lib.map_output(call, i, (ctypes.c_int64 * 4)(*array.shape), err)
            if not to:
                return err.contents.status
            ctypes.memmove(to, array.ctypes.data, array.nbytes)
        return _lib.OK

    # ---- errors and the end ----

    def explain(self, error: Error) -> Error:
        """Add position, traceback and exception to the error of a function."""
        where = _WHERE.search(str(error))
        if not isinstance(error, MapError) or not where:
            return error
        position, epoch = map(int, where.groups())
        error.epoch, error.position = epoch, position
        found: Dict[Tuple[int, int], Any] = {}
        for (e, p, _), problem in self._causes.items():
            found[e, p] = traceback_of(problem), problem
        for process in self.processes:
            for _, (_, e, p), _, text, cause in process.reports():
                found[e, p] = text, pickle.loads(cause) if cause else None
        # Upstream of a cache, a function knows only the number of the sample.
        sample = re.search(r"\(sample (\d+)\)", str(error))
        text, cause = found.get((epoch, position)) or found.get((0, int(sample.group(1)) if sample else -1)) or ("", None)
        error.traceback = text
        if text:
            self.caused(error, text, cause)
        return error

    def close(self) -> None:
        if self.pid != os.getpid():
            return
        started = list(self.processes)  # another thread may be starting more
        for process in started:
            process.kill()
        for process in started:
            process.process.wait()


def _first(pipeline: Any, number: int, options: Dict[str, Any], functions: Functions) -> Any:
    """A feed of single samples, as they are before a function, in the order of the plan."""
    from ._feed import Feed
    from ._pipeline import Pipeline

    kinds = {item["name"]: item["kind"] for item in _ops.load()}
    calls: List[Any] = []
    seen = False
    for call in pipeline._calls:
        if isinstance(call, ChainMap):
            seen = seen or call is functions.maps[number]
            if not seen:
                calls.append(call)
        elif not calls and not isinstance(call, str):
            calls.append(call)  # arrays
        else:
            for op in _text.split(call):
                name = _text.op_name(op)
                if kinds.get(name) == "batch" or kinds.get(name) in ("mix", "hint", "cache"):
                    continue
                if not seen or kinds.get(name) == "plan":
                    calls.append(op)
    feed = Feed.__new__(Feed)
    plain = dict(options, threads=1, rank=0, world=1, epochs=1, max_bad=None, bad=None,
                 on_error="fail" if options["on_error"] == "fail" else "skip")
    feed._open(Pipeline([*calls, "batch(1)", "prefetch(0)"]), plain, _Some(functions, number))
    return feed


def _samples(pipeline: Any, number: int, options: Dict[str, Any], functions: Functions) -> Iterator[Tuple[int, Any, Any]]:
    """Positions, fields and samples as they are before a function. The feed is closed, so its process is free."""
    begin = 0
    for end in (1, _TRIES):  # the first is rarely bad
        found = []
        with _first(pipeline, number, options, functions) as feed:
            feed.seek(0, begin)
            for batch in feed.steps(end - begin):
                if batch.epoch > 0:
                    break
                if batch.count:
                    sample = {name: batch[name][0] for name in batch}
                    found.append((int(batch.positions[0]), feed.fields,
                                  {name: np.array(value) if np.ndim(value) else value
                                   for name, value in sample.items()}))
        yield from found
        begin = end


def _probe(number: int, sample: Any, key: Tuple[int, int, int], functions: Functions) -> Tuple[Any, ...]:
    """Call a function on one sample, where it will run later."""
    task = functions.tasks[number]
    if not functions.maps[number].threads:
        return functions.processes[0].probe(number, sample, key)
    try:
        return "types", task.types(sample, key)
    except WrongResult as problem:
        return "wrong", str(problem)
    except Exception as problem:
        return "raised", one_line(problem), traceback_of(problem), problem


def _varying(one: Type, field: Any, value: Any) -> Type:
    """A dimension that varies before the function, and that the function kept, is taken to vary after it too."""
    if field is None or len(field.shape) != len(one.shape):
        return one
    return Type(one.dtype, tuple(None if before is None and after == is_now else after
                                 for before, is_now, after in zip(field.shape, np.shape(value), one.shape)))


def _learn(pipeline: Any, number: int, options: Dict[str, Any], functions: Functions) -> Dict[str, Type]:
    """The types of a function's results, from the first sample of the plan. With on_error, the first that is not bad."""
    stage = functions.maps[number]
    failure: Optional[Error] = None
    for position, fields, sample in _samples(pipeline, number, options, functions):
        for name in functions.tasks[number].takes or ():
            if name not in sample:
                raise SpecError(f"{stage}: no field '{name}' here; the fields are {', '.join(sample)}")
        answer = _probe(number, sample, (int(options["seed"]), 0, position), functions)
        if answer[0] == "types":
            return {name: _varying(one, fields.get(name), sample.get(name)) for name, one in answer[1].items()}
        if answer[0] == "wrong":
            raise MapError(f"{stage} {answer[1]}", 0, position)
        _, sentence, text, cause = answer
        failure = MapError(f"{stage} failed at position {position} of epoch 0: {sentence}", 0, position)
        failure.traceback = text
        functions.caused(failure, text, cause)
        if options["on_error"] == "fail":
            break
    raise failure or MapError(f"{stage}: there is no good sample to learn the types of its results from; declare them "
                              "with fields=")


def prepare(pipeline: Any, options: Dict[str, Any]) -> Functions:
    """Start what the functions of a pipeline need, and find out what they give."""
    functions = Functions([call for call in pipeline._calls if isinstance(call, ChainMap)])
    try:
        functions.start(int(options["threads"]) or _lib.default_threads())
        for number, stage in enumerate(functions.maps):
            given = stage.declared()
            task = functions.tasks[number]
            if given is None or (task.takes is not None and set(given) != set(task.takes)):
                given = {**_learn(pipeline, number, options, functions), **(given or {})}
            task.gives = given
    except BaseException:
        functions.close()
        raise
    return functions
