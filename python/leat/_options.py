"""Options of a feed: the settings of `storage`, and what to use instead of options that there are not."""
from __future__ import annotations

import difflib
import os
from typing import Any, Iterable, List, Mapping, Optional, Union

from .errors import InvalidError, OptionError

Storage = Mapping[str, Union[str, bool, int, float, "os.PathLike[str]", None]]

_PROCESSES = "not needed: the feed's threads do the work, without worker processes"
_ELSEWHERE = {
    "num_workers": "use threads=, or leave it out for one per CPU; there are no worker processes",
    "workers": "use threads=, or leave it out for one per CPU",
    "num_threads": "use threads=, or leave it out for one per CPU",
    "num_parallel_calls": "use threads=, or leave it out for one per CPU",
    "batch_size": "add .batch({value}) to the pipeline",
    "batch": "add .batch({value}) to the pipeline",
    "shuffle": "add .shuffle() to the pipeline, before .batch()",
    "drop_last": "add tail='drop' to .batch() in the pipeline",
    "drop_remainder": "add tail='drop' to .batch() in the pipeline",
    "prefetch_factor": "add .prefetch({value}) to the pipeline, or leave it out: batches are prefetched anyway",
    "prefetch": "add .prefetch({value}) to the pipeline, or leave it out: batches are prefetched anyway",
    "buffer_size": "add .prefetch(n) or .shuffle(window=n) to the pipeline",
    "cache": "add .cache() to the pipeline",
    "repeat": "use epochs=, or add .repeat(n) to the pipeline",
    "num_epochs": "use epochs=",
    "pin_memory": "not needed: feed.torch('cuda') copies from pinned memory",
    "pin_memory_device": "use feed.torch('cuda')",
    "device": "use feed.torch({value!r})",
    "collate_fn": "use .map_batch(function) on the pipeline",
    "transform": "use ops such as .resize(), or .map(function), on the pipeline",
    "sampler": "order samples with .shuffle(), .take(), .skip() and .interleave() in the pipeline",
    "batch_sampler": "order samples with .shuffle(), .take(), .skip() and .interleave() in the pipeline",
    "generator": "use seed=",
    "random_seed": "use seed=",
    "random_state": "use seed=",
    "num_replicas": "use world=",
    "world_size": "use world=",
    "num_shards": "use world=",
    "shard_id": "use rank=",
    "persistent_workers": _PROCESSES,
    "worker_init_fn": _PROCESSES,
    "multiprocessing_context": _PROCESSES,
    "timeout": _PROCESSES,
    "in_order": "not needed: batches always come in order",
    "strict": "give it to load_state_dict",
    "storage_options": "use storage=",
    "endpoint": "use storage={{'endpoint': {value!r}}}",
    "endpoint_url": "use storage={{'endpoint': {value!r}}}",
    "region": "use storage={{'region': {value!r}}}",
    "profile": "use storage={{'profile': {value!r}}}",
    "disk_cache": "use storage={{'disk_cache': {value!r}}}",
}


def refuse(unknown: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise for the first unknown option, if any."""
    for name, value in unknown.items():
        near = difflib.get_close_matches(name, list(known), 1)
        if name in _ELSEWHERE:
            instead = ": " + _ELSEWHERE[name].format(value=value)
        elif near:
            instead = f", did you mean '{near[0]}'?"
        else:
            instead = "; there are " + ", ".join(known)
        raise OptionError(f"a feed has no option '{name}'{instead}")


def _text_of(name: str, value: Any) -> bytes:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, (int, float)):
        return repr(value).encode()
    if not isinstance(value, (str, os.PathLike)):
        raise OptionError(f"storage[{name!r}] must be a text, a number or a bool, not {type(value).__name__}")
    text = os.fspath(value)
    text = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    if b"\0" in text:
        raise InvalidError(f"storage[{name!r}]: a setting cannot contain a NUL character")
    return text


def storage_texts(storage: Optional[Storage]) -> List[bytes]:
    """The settings as the C library takes them: NAME=VALUE. The library checks names and values."""
    if storage is None:
        return []
    if not isinstance(storage, Mapping):
        raise OptionError("storage must be a dict, such as {'endpoint': 'https://minio.lab:9000'}, "
                          f"not {type(storage).__name__}")
    texts = []
    for name, value in storage.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise OptionError(f"{name!r} is not the name of a setting of storage")
        if value is not None:
            texts.append(name.encode("utf-8", "surrogateescape") + b"=" + _text_of(name, value))
    return texts
