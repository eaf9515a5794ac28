"""ctypes declarations of the structs and functions in include/leat.h, and nothing else.

Calls that may block release the GIL (`waiting`). Short calls keep it (`quick`), which is cheaper.
"""
from __future__ import annotations

import ctypes
import importlib.util
import os
from ctypes import POINTER, Structure, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, List, Optional

from . import errors

MAX_DIMS, MAX_NAME, MAX_TEXT = 4, 63, 1000
FOREVER = 2**64 - 1


def library_path() -> str:
    """Path of the shared library: LEAT_LIBRARY, next to this file, or in the build folder of an editable install."""
    given = os.environ.get("LEAT_LIBRARY")
    if given:
        return given
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libleat.so")
    if os.path.exists(beside):
        return beside
    from importlib import resources

    return str(resources.files(__package__).joinpath("libleat.so"))


def command_path() -> Optional[str]:
    """Path of the `leat` command that belongs to the library; None if it is not there."""
    command = os.path.join(os.path.dirname(library_path()), "leat")
    return command if os.access(command, os.X_OK) else None


def show_duckdb() -> None:
    """Tells the library where the DuckDB of this Python is, which decodes Parquet, unless LEAT_DUCKDB names another."""
    if not os.environ.get("LEAT_DUCKDB"):
        found = importlib.util.find_spec("_duckdb")  # does not import it
        if found and found.origin:
            os.environ["LEAT_DUCKDB"] = found.origin


class Err(Structure):
    _fields_ = [("status", c_int), ("text", c_char * 1020)]


LOG = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class Field(Structure):
    _fields_ = [("name", c_char * (MAX_NAME + 1)), ("dtype", c_int), ("ndim", c_int), ("shape", c_int64 * MAX_DIMS)]


class Value(Structure):
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("dtype", c_int), ("ndim", c_int),
                ("shape", c_int64 * MAX_DIMS)]


class MapCall(Structure):
    _fields_ = [("seed", c_uint64), ("epoch", c_uint64), ("position", c_uint64), ("sample", c_uint64),
                ("random", c_uint64 * 2), ("number", c_uint), ("thread", c_uint), ("count", c_int),
                ("value", POINTER(Value))]


RUN = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(MapCall), POINTER(Err))


class Function(Structure):
    _fields_ = [("name", c_char_p), ("run", RUN), ("arg", c_void_p), ("takes", POINTER(c_char_p)),
                ("take_count", c_int), ("gives", POINTER(Field)), ("give_count", c_int), ("drops", ctypes.c_bool)]


class Process(Structure):
    _fields_ = [("pid", c_int), ("socket", c_int)]


class Bad(Structure):
    _fields_ = [("epoch", c_uint64), ("position", c_uint64), ("sample", c_uint64), ("uri", c_char_p),
                ("offset", c_uint64), ("reason", c_char_p), ("replaced", ctypes.c_bool), ("status", c_int)]


BAD = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Bad))


class Options(Structure):
    _fields_ = [("size", c_size_t), ("seed", c_uint64), ("epochs", c_uint64), ("threads", c_uint), ("memory", c_size_t),
                ("rank", c_int), ("world", c_int), ("on_error", c_int), ("max_bad", c_uint64), ("log", LOG),
                ("log_arg", c_void_p), ("fingerprint", c_int), ("functions", POINTER(Function)), ("function_count", c_size_t),
                ("processes", POINTER(Process)), ("process_count", c_size_t), ("max_pixels", c_uint64),
                ("max_bytes", c_uint64), ("bad", BAD), ("bad_arg", c_void_p), ("storage", POINTER(c_char_p)),
                ("recorder", c_void_p), ("tune", ctypes.c_bool), ("arrow", c_void_p)]


class RecorderOptions(Structure):
    _fields_ = [("size", c_size_t), ("trace", c_char_p), ("trace_bytes", c_uint64), ("memory", c_size_t),
                ("timeline", ctypes.c_bool), ("samplers", ctypes.c_bool), ("name", c_char_p), ("rank", c_int),
                ("world", c_int), ("log", LOG), ("log_arg", c_void_p)]


class Device(Structure):
    _fields_ = [("devices", c_uint), ("samples", c_uint64), *((name, ctypes.c_double) for name in (
        "utilization", "utilization_used", "busy", "memory", "memory_peak", "memory_total"))]


PROGRESS = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
PREPARE = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Options), POINTER(Err))


class XrayOptions(Structure):
    _fields_ = [("size", c_size_t), ("step_ms", ctypes.c_double), ("step_threads", c_uint), ("seconds", ctypes.c_double),
                ("tries", ctypes.c_bool), ("progress", PROGRESS), ("progress_arg", c_void_p), ("prepare", PREPARE),
                ("prepare_arg", c_void_p)]


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int), ("ndim", c_int), ("shape", c_int64 * (1 + MAX_DIMS)),
                ("offsets", c_void_p), ("sample_shapes", c_void_p), ("bytes", c_size_t), ("copied", ctypes.c_bool)]


show_duckdb()
_path = library_path()
waiting = ctypes.CDLL(_path)
quick = ctypes.PyDLL(_path)
_free = ctypes.CDLL(None).free
_free.argtypes, _free.restype = [c_void_p], None


def _declare(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(library, name)
    function.restype, function.argtypes = result, list(arguments)
    return function


version = _declare(quick, "leat_version", c_char_p)
status_name = _declare(quick, "leat_status_name", c_char_p, c_int)
options_init = _declare(quick, "leat_options_init_sized", None, POINTER(Options), c_size_t)
parse_size = _declare(quick, "leat_parse_size", c_int, c_char_p, POINTER(c_uint64), POINTER(Err))
open = _declare(waiting, "leat_open", c_int, c_char_p, POINTER(Options), POINTER(c_void_p), POINTER(Err))
close = _declare(waiting, "leat_close", None, c_void_p)
# Called for every batch. Without argtypes ctypes skips conversion, so callers must pass ctypes objects.
next_within = waiting.leat_next_within
cancel = _declare(waiting, "leat_cancel", None, c_void_p)
samples = _declare(quick, "leat_samples", c_uint64, c_void_p)
batches = _declare(quick, "leat_batches", c_uint64, c_void_p)
batch_size = _declare(quick, "leat_batch_size", c_int64, c_void_p)
batch_samples = _declare(quick, "leat_batch_samples", c_uint64, c_void_p, c_uint64, POINTER(c_uint64))
tail_name = _declare(quick, "leat_tail_name", c_char_p, c_void_p)
has_fill = _declare(quick, "leat_has_fill", ctypes.c_bool, c_void_p)
rank = _declare(quick, "leat_rank", c_int, c_void_p)
world = _declare(quick, "leat_world", c_int, c_void_p)
epoch = _declare(quick, "leat_epoch", c_uint64, c_void_p)
position = _declare(quick, "leat_position", c_uint64, c_void_p)
canonical = _declare(quick, "leat_canonical", c_char_p, c_void_p)
dtype_name = _declare(quick, "leat_dtype_name", c_char_p, c_int)
field_count = _declare(quick, "leat_field_count", c_int, c_void_p)
field_at = _declare(quick, "leat_field_at", POINTER(Field), c_void_p, c_int)
class_count = _declare(quick, "leat_class_count", c_size_t, c_void_p)
class_name = _declare(quick, "leat_class_name", c_char_p, c_void_p, c_size_t)
batch_count = _declare(quick, "leat_batch_count", c_int64, c_void_p)
batch_valid = _declare(quick, "leat_batch_valid", c_void_p, c_void_p)
batch_position = _declare(quick, "leat_batch_position", c_uint64, c_void_p, c_int64)
batch_epoch = _declare(quick, "leat_batch_epoch", c_uint64, c_void_p)
batch_begin = _declare(quick, "leat_batch_begin", c_uint64, c_void_p)
batch_copied = quick.leat_batch_copied  # like next_within
batch_copied.restype = ctypes.c_bool
batch_field = _declare(quick, "leat_batch_field", c_int, c_void_p, c_char_p, POINTER(Tensor), POINTER(Err))
batch_dlpack = _declare(quick, "leat_batch_dlpack", c_int, c_void_p, c_char_p, c_int, POINTER(c_void_p), POINTER(Err))
arrow_import = _declare(waiting, "leat_arrow_import", c_int, c_void_p, POINTER(c_void_p), POINTER(Err))
arrow_free = _declare(waiting, "leat_arrow_free", None, c_void_p)
batch_arrow = _declare(quick, "leat_batch_arrow", c_int, c_void_p, c_void_p, c_void_p, POINTER(Err))
batch_arrow_stream = _declare(quick, "leat_batch_arrow_stream", c_int, c_void_p, c_void_p, POINTER(Err))
save = _declare(quick, "leat_save", c_int, c_void_p, POINTER(c_void_p), POINTER(Err))
save_full = _declare(waiting, "leat_save", c_int, c_void_p, POINTER(c_void_p), POINTER(Err))  # may read all data
restore = _declare(waiting, "leat_restore", c_int, c_void_p, c_char_p, POINTER(Err))
seek = _declare(waiting, "leat_seek", c_int, c_void_p, c_uint64, c_uint64, POINTER(Err))
restore_loose = _declare(waiting, "leat_restore_loose", c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Err))
held = _declare(quick, "leat_held", c_size_t, c_void_p)
stats_json = _declare(quick, "leat_stats_json", c_void_p, c_void_p)
pin = _declare(waiting, "leat_pin", c_int, c_void_p, ctypes.c_bool, POINTER(Err))
to_device = _declare(quick, "leat_to_device", None, c_void_p, c_uint64, c_uint64, c_uint64, c_uint64)
stats_prometheus = _declare(quick, "leat_stats_prometheus", c_void_p, c_void_p)
stats_merge = _declare(quick, "leat_stats_merge", c_int, POINTER(c_char_p), c_size_t, POINTER(c_void_p), POINTER(Err))
bad_count = _declare(quick, "leat_bad_count", c_uint64, c_void_p)
bad_at = _declare(quick, "leat_bad_at", POINTER(Bad), c_void_p, c_uint64)
default_threads = _declare(quick, "leat_default_threads", c_uint)
available_cpus = _declare(quick, "leat_available_cpus", ctypes.c_double)
map_output = _declare(quick, "leat_map_output", c_void_p, POINTER(MapCall), c_int, POINTER(c_int64), POINTER(Err))
tag_name = _declare(quick, "leat_tag_name", c_char_p, c_int)
recorder_options_init = _declare(quick, "leat_recorder_options_init_sized", None, POINTER(RecorderOptions), c_size_t)
recorder_open = _declare(waiting, "leat_recorder_open", c_int, POINTER(RecorderOptions), POINTER(c_void_p), POINTER(Err))
recorder_close = _declare(waiting, "leat_recorder_close", c_int, c_void_p, POINTER(Err))
recorder_lane = _declare(waiting, "leat_recorder_lane", c_int, c_void_p, c_char_p)
recorder_lane_end = _declare(waiting, "leat_recorder_lane_end", None, c_void_p, c_int)
recorder_span = _declare(quick, "leat_recorder_span", None, c_void_p, c_int, c_int, c_char_p, c_uint64, c_uint64,
                         c_uint64)
recorder_count = _declare(quick, "leat_recorder_count", None, c_void_p, c_char_p, c_uint64, ctypes.c_double)
recorder_spans = _declare(quick, "leat_recorder_spans", c_uint64, c_void_p)
recorder_device = _declare(quick, "leat_recorder_device_sized", ctypes.c_bool, c_void_p, POINTER(Device), c_size_t)
recorder_dropped = _declare(quick, "leat_recorder_dropped", c_uint64, c_void_p)
describe = _declare(quick, "leat_describe", c_void_p)
xray_options_init = _declare(quick, "leat_xray_options_init_sized", None, POINTER(XrayOptions), c_size_t)
xray = _declare(waiting, "leat_xray", c_int, c_char_p, POINTER(Options), POINTER(XrayOptions), POINTER(c_void_p),
                POINTER(Err))
report_write = _declare(waiting, "leat_report_write", c_int, c_void_p, c_char_p, c_char_p, POINTER(Err))
explain = _declare(waiting, "leat_explain", c_int, c_char_p, POINTER(Options), ctypes.c_bool, POINTER(c_void_p),
                   POINTER(Err))

# A capsule is the only Python object that C code can destroy. Python code that releases a batch, such as __del__, could
# be interrupted by a signal.
capsule_new = ctypes.PyDLL(None)["PyCapsule_New"]  # called for every batch: like next_within
capsule_new.restype = ctypes.py_object
capsule_free = ctypes.cast(quick.leat_capsule_free, c_void_p)
capsule_pointer = _declare(ctypes.PyDLL(None), "PyCapsule_GetPointer", c_void_p, ctypes.py_object, c_char_p)
# Room that leat_capsule_free frees.
room = _declare(ctypes.PyDLL(None), "calloc", c_void_p, c_size_t, c_size_t)
CAPSULE = b"leat_batch"  # LEAT_CAPSULE

# Status names, in the order of the header.
OK, END, DONE, AGAIN = range(4)
_names: List[str] = []
while status_name(len(_names)) != b"UNKNOWN":
    _names.append(status_name(len(_names)).decode())
TIMEOUT, SPEC, FUNCTION, INVALID, CANCELLED = map(_names.index, ("TIMEOUT", "SPEC", "FUNCTION", "INVALID", "CANCELLED"))


def taken(pointer: Optional[int]) -> str:
    """The text at `pointer`, which is freed."""
    if not pointer:
        raise errors.OutOfMemoryError("out of memory")
    try:
        return ctypes.string_at(pointer).decode()
    finally:
        _free(pointer)


def error(err: Err) -> errors.Error:
    """The exception for an error of the library."""
    name = _names[err.status] if 0 <= err.status < len(_names) else "INTERNAL"
    return errors.by_status.get(name, errors.InternalError)(err.text.decode(errors="replace"))


def check(status: int, err: Err) -> None:
    if status != OK:
        raise error(err)


