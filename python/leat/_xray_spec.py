"""`leat.xray` of a pipeline or spec: the engine measures its parts, and tries what would help."""
from __future__ import annotations

import ctypes
import json
import threading
import time
from typing import Any, Dict, List, Optional

from . import _lib
from ._feed import feed_options
from ._handle import Handle
from ._pipeline import Pipeline
from ._xray_result import Xray
from .errors import CancelledError, Error, SpecError, WorkerError

_PATIENCE = 5  # seconds for the engine to notice that its processes have ended


class _Workers:
    """The functions of the feed that the engine has open. Each feed gets new processes: no two can use the same."""

    def __init__(self, functions: Any) -> None:
        self.functions, self.problem = functions, None  # type: Any, Optional[BaseException]
        self._lock, self._stopped = threading.Lock(), False
        self.callback = _lib.PREPARE(self._prepare)

    def _prepare(self, _: Any, options: Any, err: Any) -> int:  # called by the library: an exception would be lost
        try:
            self._next(options.contents)
            return _lib.OK
        except BaseException as problem:
            self.problem = problem
            self.close()
            err.contents.status, err.contents.text = _lib.CANCELLED, b"the functions are not ready"
            return _lib.CANCELLED

    def _next(self, options: _lib.Options) -> None:
        if self.functions:
            self.close()
            self.functions = self.functions.again()
            if not self._stopped:
                self.functions.start(options.threads)
        if self._stopped:
            raise CancelledError("xray was interrupted")
        if self.functions:
            self.functions.install(options)

    def check(self, status: int, err: _lib.Err) -> None:
        if isinstance(self.problem, Error):
            raise self.problem
        if self.problem is not None:
            raise WorkerError(f"cannot start worker processes: {type(self.problem).__name__}: "
                              f"{self.problem}") from self.problem
        if status != _lib.OK:
            error = _lib.error(err)
            raise self.functions.explain(error) if self.functions else error

    def stop(self, thread: threading.Thread) -> None:
        """End the processes, so that the feed fails. The engine asks for others next, and then stops."""
        self._stopped = True
        end = time.monotonic() + _PATIENCE
        processes = self.functions and not all(stage.threads for stage in self.functions.maps)
        while processes and thread.is_alive() and time.monotonic() < end:
            self.close()
            thread.join(0.05)

    def close(self) -> None:
        with self._lock:
            if self.functions:
                self.functions.close()


class _Examination(Handle):
    """What leat_xray says of a pipeline with these options."""

    def __init__(self, pipeline: Pipeline, options: Dict[str, Any], functions: Any, settings: _lib.XrayOptions) -> None:
        self.figures: Dict[str, Any] = {}
        self._pipeline, self._settings = pipeline, settings
        super().__init__(pipeline.spec, options, functions, pipeline._table())

    def _start(self, spec: str, given: _lib.Options) -> None:
        """Runs on another thread, so that Ctrl-C works."""
        if "\0" in spec:
            raise SpecError("a spec cannot contain a NUL character")
        workers, settings, text = _Workers(self.functions), self._settings, spec.encode("utf-8", "surrogateescape")
        settings.prepare = workers.callback
        out, err, done = ctypes.c_void_p(), _lib.Err(), []  # type: ctypes.c_void_p, _lib.Err, List[int]

        # After Ctrl-C, only the thread refers to what the library uses. The pipeline may own arrays that the spec names.
        def run(*_: Any) -> None:
            done.append(_lib.xray(text, given, settings, out, err))

        thread = threading.Thread(target=run, args=(workers, self._pipeline, self._callback), name="leat-xray",
                                  daemon=True)
        thread.start()
        try:
            thread.join()
            workers.check(done[0], err)
        except BaseException:
            workers.stop(thread)
            raise
        finally:
            workers.close()
        self.figures = json.loads(_lib.taken(out.value))


def xray_spec(pipeline: Pipeline, step_ms: Optional[float], seconds: Optional[float], given: Dict[str, Any]) -> Xray:
    """What `leat xray` says. `given`: options of the feeds."""
    options, settings, functions = feed_options(given), _lib.XrayOptions(), None
    _lib.xray_options_init(settings, ctypes.sizeof(settings))
    settings.step_ms = step_ms or 0.0
    if seconds is not None:
        settings.seconds = seconds
    if pipeline._functions():
        from ._pool import prepare

        functions = prepare(pipeline, dict(options, threads=1))  # to find out what they give
        functions.close()
    return Xray(_Examination(pipeline, options, functions, settings).figures)
