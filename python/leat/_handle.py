"""The C library's feed as an object: its options, opened so that Ctrl-C works, and closed once."""
from __future__ import annotations

import collections
import ctypes
import json
import logging
import operator
import os
import sys
import threading
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

from . import _lib, _options
from ._recorder import Recorder, check_folder, write_report
from .errors import InvalidError, SpecError

_ON_ERROR = ("fail", "skip", "replace")
_FINGERPRINTS = ("names", "full")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING)
UNKNOWN = -1, 0  # rank and world: the library reads them from the environment
_log = logging.getLogger("leat")


class Bad(NamedTuple):
    """A sample that could not be read or decoded."""

    epoch: int
    position: int
    sample: int
    uri: str
    offset: int
    reason: str
    replaced: bool
    status: str  # 'DATA', 'UNSUPPORTED' or 'FUNCTION'

    def __repr__(self) -> str:
        state = " (replaced)" if self.replaced else ""
        return f"<bad sample at position {self.position} of epoch {self.epoch}{state}: {self.reason}>"


def bad_sample(found: _lib.Bad) -> Bad:
    return Bad(found.epoch, found.position, found.sample, os.fsdecode(found.uri or b""), found.offset,
               (found.reason or b"").decode(errors="replace"), found.replaced,
               _lib.status_name(found.status).decode())


class _BadFile:
    """A file that gets a line of JSON for each bad sample, when its batch is delivered."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], log: Any) -> None:
        self._file = open(path, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
        self._log = log
        self.callback = _lib.BAD(self._write)

    def _write(self, _: Any, found: Any) -> None:  # called by the library: an exception would be lost
        try:
            sample = bad_sample(found.contents)._asdict()
            self._file.write(json.dumps(sample) + "\n")
        except Exception as error:
            self._log.append((len(_LEVELS) - 1, f"cannot write {self._file.name!r}: {error}"))

    def close(self) -> None:
        self._file.close()


def bytes_of(options: Dict[str, Any], name: str) -> int:
    given = options[name]
    if not isinstance(given, str):
        return whole({name: int(given)}, name, 2**64)
    if "\0" in given:
        raise InvalidError(f"{name}: a size cannot contain a NUL character")
    size, err = ctypes.c_uint64(), _lib.Err()
    if _lib.parse_size(given.encode("utf-8", "surrogateescape"), size, err) != _lib.OK:
        raise InvalidError(f"{name}: " + err.text.decode(errors="replace"))
    return size.value


def whole(options: Dict[str, Any], name: str, end: int) -> int:
    """A number checked to fit the library's unsigned type: ctypes would truncate it silently."""
    value = operator.index(options[name])
    if not 0 <= value < end:
        raise InvalidError(f"{name}={value} must be between 0 and {end - 1}")
    return value


def ranks_of(rank: Optional[int], world: Optional[int]) -> Tuple[int, int]:
    """The given rank and world; else torch.distributed's, if initialised; else the library reads the environment."""
    distributed = sys.modules.get("torch.distributed")
    if rank is None and world is None and distributed is not None:
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    return UNKNOWN[0] if rank is None else rank, UNKNOWN[1] if world is None else world


_LAUNCHERS = (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"))


def this_rank() -> int:
    """The rank of this process: that of torch.distributed or JAX, if initialised, else the launcher's; 0 if unknown."""
    rank = ranks_of(None, None)[0]
    if rank >= 0:
        return rank
    jax = sys.modules.get("jax")
    if jax is not None and jax.distributed.is_initialized():
        return int(jax.process_index())
    for name, world in _LAUNCHERS:
        if os.environ.get(name) and os.environ.get(world):
            return int(os.environ[name]) if os.environ[name].isdecimal() else 0
    return 0


def path_of_rank(path: Any, rank: int) -> Optional[str]:
    """The file that a rank writes: its own if the name has '{rank}', else the first rank writes. None: it writes none."""
    if path is None:
        return None
    text = os.fspath(path)
    if "{rank}" in text:
        return str(text.replace("{rank}", str(rank)))
    return None if rank else str(text)


def _recorder_for(trace: Any, report: Any, ranks: Tuple[int, int]) -> Tuple[Optional[Recorder], bool]:
    """The recorder for the options `trace` and `report`, and whether the feed closes it."""
    check_folder("report", report)
    if isinstance(trace, Recorder) or (trace is None and report is None):
        return trace, False
    rank, world = ranks
    return Recorder(trace, timeline=report is not None, rank=None if rank < 0 else rank, world=world or None), True


class _Opening:
    """Run leat_open on a separate thread, so that Ctrl-C works while large data is being indexed."""

    def __init__(self, spec: str, options: _lib.Options, callback: Any) -> None:
        if "\0" in spec:
            raise SpecError("a spec cannot contain a NUL character")
        self._arguments = spec.encode("utf-8", "surrogateescape"), options
        self._feed, self._err, self._status = ctypes.c_void_p(), _lib.Err(), -1
        self._callback = callback  # keep it alive: the library may call it while it opens
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
        else:  # only the main thread handles signals
            self._run()
        _lib.check(self._status, self._err)
        return self._feed.value


class Handle:
    """Owns the C library's feed. Closed once, and only by the process that opened it."""

    def __init__(self, spec: str, options: Dict[str, Any], functions: Any = None, table: Any = None) -> None:
        self.functions = functions  # of `map` before batch; None: there are none
        self._table = table  # that the source `arrow` reads; the library holds it too
        self.pid, self.lock = os.getpid(), threading.RLock()
        self.log: "collections.deque[Tuple[int, str]]" = collections.deque(maxlen=1000)
        given = _lib.Options()
        _lib.options_init(given, ctypes.sizeof(given))
        given.seed = whole(options, "seed", 2**64)
        given.epochs = whole(options, "epochs", 2**63)
        given.threads = whole(options, "threads", 2**31)
        given.memory = bytes_of(options, "memory")
        given.tune = bool(options.get("tune", True))
        given.rank, given.world = self.ranks = ranks_of(options["rank"], options["world"])
        if options["on_error"] not in _ON_ERROR:
            raise InvalidError(f"on_error={options['on_error']!r} must be one of {', '.join(_ON_ERROR)}")
        given.on_error = _ON_ERROR.index(options["on_error"])
        if options["max_bad"] is not None:
            given.max_bad = whole(options, "max_bad", 2**64)
        unlimited = 2**64 - 1
        given.max_pixels = unlimited if options["max_pixels"] is None else whole(options, "max_pixels", 2**64)
        given.max_bytes = unlimited if options["max_bytes"] is None else bytes_of(options, "max_bytes")
        if options["fingerprint"] not in _FINGERPRINTS:
            raise InvalidError(f"fingerprint={options['fingerprint']!r} must be one of {', '.join(_FINGERPRINTS)}")
        given.fingerprint = _FINGERPRINTS.index(options["fingerprint"])
        # Workers only queue the message. The consumer passes it to Python's logging, which may be slow.
        notes = self.log
        self._callback = _lib.LOG(lambda arg, level, text: notes.append((level, text.decode(errors="replace"))))
        given.log = self._callback
        self.bad = _BadFile(options["bad"], notes) if options["bad"] is not None else None
        if self.bad:
            given.bad = self.bad.callback
        storage = _options.storage_texts(options.get("storage"))
        given.storage = (ctypes.c_char_p * (len(storage) + 1))(*storage, None)
        given.arrow = table.pointer() if table else None
        self.pointer: Optional[int] = None
        self.recorder, self._owns_recorder = _recorder_for(options.get("trace"), options.get("report"), self.ranks)
        self._report = options.get("report")
        given.recorder = self.recorder._pointer() if self.recorder else None
        if functions:
            given.threads = given.threads or _lib.default_threads()
        try:
            self._start(spec, given)
        finally:
            self.drain()
            if self.pointer is None:
                self._end_recorder()

    def _start(self, spec: str, given: _lib.Options) -> None:
        if self.functions:
            self.functions.install(given)
        self.pointer = _Opening(spec, given, (self._callback, self.bad, self.functions)).result()

    def error(self, err: _lib.Err) -> Exception:
        error = _lib.error(err)
        return self.functions.explain(error) if self.functions else error

    def _end_recorder(self) -> None:
        if self.recorder and self._owns_recorder:
            self.recorder._handle.end()

    def _write_report(self, pointer: int, path: Any) -> None:
        """Write the report, when nobody may be there to see an exception."""
        try:
            run = json.loads(_lib.taken(_lib.stats_json(pointer)))
            run["spec"] = _lib.canonical(pointer).decode(errors="replace")
            run["bad"] = [bad_sample(_lib.bad_at(pointer, i).contents)._asdict() for i in range(_lib.bad_count(pointer))]
            write_report(self.recorder._pointer() if self.recorder else None, path, run)
        except Exception as error:
            _log.warning("cannot write the report: %s", error)

    def drain(self) -> None:
        while self.log:
            level, text = self.log.popleft()
            _log.log(_LEVELS[level] if 0 <= level < len(_LEVELS) else logging.WARNING, "%s", text)

    def close(self) -> None:
        pointer = self.pointer
        if pointer is None or self.pid != os.getpid():
            return
        _lib.cancel(pointer)  # makes a thread that waits for a batch release the lock, even at interpreter exit
        with self.lock:
            self.pointer = None
            if self._report is not None:
                self._write_report(pointer, self._report)
            _lib.close(pointer)
        self._end_recorder()
        if self.bad:
            self.bad.close()
        if self.functions:
            self.functions.close()


class Explanation(Handle):
    """What leat_explain says of a pipeline with these options; nothing is opened for long."""

    def __init__(self, spec: str, options: Dict[str, Any], functions: Any, as_json: bool, table: Any = None) -> None:
        self.text, self._json = "", as_json
        super().__init__(spec, dict(options, bad=None, trace=None, report=None), functions, table)

    def _start(self, spec: str, given: _lib.Options) -> None:
        if "\0" in spec:
            raise SpecError("a spec cannot contain a NUL character")
        if self.functions:
            self.functions.describe(given)
        text, err = ctypes.c_void_p(), _lib.Err()
        _lib.check(_lib.explain(spec.encode("utf-8", "surrogateescape"), given, self._json, text, err), err)
        self.text = _lib.taken(text.value)
