"""`leat.xray` of a pipeline or spec: the engine measures its parts, and tries what would help."""
from __future__ import annotations

import ctypes
import json
import threading
from typing import Any, Dict, List, Optional

from . import _lib, _options
from ._pipeline import Pipeline
from ._xray_result import Xray
from .errors import SpecError


def xray_spec(pipeline: Pipeline, step_ms: Optional[float], seconds: Optional[float],
              storage: Optional[_options.Storage]) -> Xray:
    """What `leat xray` says. Runs on another thread, so that Ctrl-C works."""
    if "\0" in pipeline.spec:
        raise SpecError("a spec cannot contain a NUL character")
    options, settings = _lib.Options(), _lib.XrayOptions()
    _lib.options_init(options, ctypes.sizeof(options))
    _lib.xray_options_init(settings, ctypes.sizeof(settings))
    texts = _options.storage_texts(storage)
    options.storage = (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
    settings.step_ms = step_ms or 0.0
    if seconds is not None:
        settings.seconds = seconds
    out, err, done = ctypes.c_void_p(), _lib.Err(), []  # type: ctypes.c_void_p, _lib.Err, List[int]
    spec = pipeline.spec.encode("utf-8", "surrogateescape")
    # The pipeline is an argument, too: it may own arrays that the spec names.
    thread = threading.Thread(target=lambda _: done.append(_lib.xray(spec, options, settings, out, err)),
                              args=(pipeline,), name="leat-xray", daemon=True)
    thread.start()
    thread.join()
    _lib.check(done[0], err)
    figures: Dict[str, Any] = json.loads(_lib.taken(out.value))
    return Xray(figures)
