"""Leat reads, decodes and augments samples and builds batches ahead of the training step.

    import leat

    feed = (leat.tfrecord("train-*.tfrecord").example(image=bytes, label=int).decode().resize(100, 100)
            .scale(1 / 255).shuffle().random_flip().batch(32).feed(seed=1))
    for epoch in range(10):
        for batch in feed:
            train(batch["image"], batch["label"])

Sources are functions of this module; ops are methods of the pipeline they return. Both are generated from the C
library's tables, so `help(leat.tfrecord)` and `help(leat.Pipeline.resize)` match `leat ops`.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Union

from . import _lib, _ops, _pipeline
from ._pipeline import Pipeline
from ._text import feature
from .errors import (BuildError, CancelledError, DataError, Error, HeldError, InternalError, InvalidError, IOError,
                     LimitError, MapError, MismatchError, OptionError, OutOfMemoryError, ProcessError, SpecError,
                     UnsupportedError, WorkerError)

if TYPE_CHECKING:
    from ._feed import Feed

__version__: str = _lib.version().decode()

_items = _ops.load()
_pipeline.add_ops(_items)
_sources = [item["name"] for item in _items if item["kind"] == "source" and item["name"] != "arrow"]
for _item in _items:
    if _item["kind"] == "source" and _item["name"] != "arrow":  # that takes a table
        globals()[_item["name"]] = _ops.maker(_item, False, lambda call: Pipeline([call]))
del _item


def feed(spec: Union[str, Pipeline], **options: Any) -> "Feed":
    """Open a spec such as "tfrecord('a.tfrecord') | batch(32)". Takes the options of `leat.Feed`."""
    from ._feed import Feed

    return Feed(spec, **options)


def pipeline(spec: str) -> Pipeline:
    """Make a pipeline from a spec, to which more ops can be added."""
    return Pipeline([spec])


def merge_stats(runs: Iterable[Union[str, Dict[str, Any]]]) -> Dict[str, Any]:
    """Merge what `feed.stats()` returned on several ranks, as dicts or as JSON: `sentence` names the slow rank, if there is
    one, and its limit; `ranks` has a line for each."""
    import ctypes
    import json

    texts = [run if isinstance(run, str) else json.dumps(run) for run in runs]
    array = (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))
    merged, err = ctypes.c_void_p(), _lib.Err()
    _lib.check(_lib.stats_merge(array, len(texts), merged, err), err)
    result: Dict[str, Any] = json.loads(_lib.taken(merged.value))
    return result


# Loaded on first use, because they import NumPy, which `python -m leat` does not need.
_later = {"Feed": "_feed", "FieldSpec": "_feed", "Bad": "_handle", "Batch": "_batch", "Ragged": "_batch",
          "Recorder": "_recorder", "array": "_array", "arrow": "_arrow", "xray": "_xray", "Xray": "_xray_result", "watch": "_watch",
          "tag": "_watch", "build": "_build", "Build": "_build"}
_modules = ("features", "step", "torch", "jax", "tensorflow", "lightning", "keras", "errors")


def __getattr__(name: str) -> Any:
    import importlib

    if name in _later:
        value = getattr(importlib.import_module("." + _later[name], __name__), name)
    elif name in _modules:
        try:
            value = importlib.import_module("." + name, __name__)
        except ModuleNotFoundError as missing:
            if missing.name != name:
                raise
            raise ModuleNotFoundError(f"leat.{name} needs {name}: pip install {name}", name=name) from None
    else:
        raise AttributeError(f"module 'leat' has no attribute '{name}'")
    globals()[name] = value
    return value


__all__ = ["Pipeline", "feature", "feed", "merge_stats", "pipeline", *_sources, *_later, "BuildError",
           "CancelledError", "DataError", "Error", "HeldError", "InternalError", "InvalidError", "IOError", "LimitError", "MapError", "MismatchError",
           "OptionError", "OutOfMemoryError", "ProcessError", "SpecError", "UnsupportedError", "WorkerError"]


def __dir__() -> List[str]:
    return sorted({*__all__, *_modules, "__version__"})
