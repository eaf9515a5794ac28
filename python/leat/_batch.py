"""A batch: its fields as NumPy arrays that share the engine's memory.

Nothing is copied. Every array keeps its batch alive; the batch returns to its feed when the last array, tensor or
batch object that refers to it is dropped.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from . import _lib, errors

# In the order of enum leat_dtype. NumPy itself has no bfloat16.
_TYPESTR = ("|u1", "<i4", "<i8", "<f2", "<u2", "<f4", "<f8", "|b1", "|i1", "<i2", "<u2", "<u4")
_BF16 = 4  # the first "<u2" is its bits
DATA, OFFSETS, SHAPES = range(3)


def dtype_name(dtype: int) -> str:
    return _lib.dtype_name(dtype).decode()


class Form:
    """The properties of a field that all batches of a feed share."""

    __slots__ = ("name", "typestr", "shape", "ragged", "text", "bfloat16")

    def __init__(self, name: bytes, dtype: int, shape: Tuple[Any, ...]) -> None:
        self.name, self.typestr, self.shape = name, _TYPESTR[dtype], shape
        self.ragged, self.bfloat16 = None in shape, dtype == _BF16
        self.text = self.typestr == "|u1" and shape == (None,)


class _Hold:
    """One reference to a batch of the C library."""

    __slots__ = ("pointer", "pid")

    def __init__(self, pointer: int) -> None:
        self.pointer, self.pid = pointer, os.getpid()

    def __del__(self, release: Any = _lib.release, getpid: Any = os.getpid) -> None:
        if self.pid == getpid():  # a forked child has the memory, but not the threads, and locks may be held
            release(self.pointer)


class _View:
    """Memory of a batch in NumPy's array interface; becomes the base of the array."""

    __slots__ = ("__array_interface__", "hold")

    __array_interface__: Dict[str, Any]
    hold: _Hold


def _array(hold: _Hold, address: Optional[int], typestr: str, shape: Tuple[int, ...]) -> np.ndarray:
    view = _View()
    view.hold = hold
    view.__array_interface__ = {"data": (address or 0, False), "typestr": typestr, "shape": shape, "version": 3}
    return np.asarray(view)


def _bfloat16(array: np.ndarray) -> np.ndarray:
    """As bfloat16 if ml_dtypes (a dependency of JAX and TensorFlow) is installed, else the same bits as uint16."""
    try:
        import ml_dtypes
    except ImportError:
        return array
    return array.view(ml_dtypes.bfloat16)


class Ragged:
    """A field whose samples differ in size: sample i is `values[offsets[i]:offsets[i + 1]]`.

    `shapes` has one row per sample if samples have two or more dimensions, else it is None.
    """

    __slots__ = ("values", "offsets", "shapes", "_text")

    def __init__(self, values: np.ndarray, offsets: np.ndarray, shapes: Optional[np.ndarray] = None,
                 text: bool = False) -> None:
        self.values, self.offsets, self.shapes, self._text = values, offsets, shapes, text

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> np.ndarray:
        """Sample i, without a copy."""
        count = len(self)
        if not -count <= i < count:
            raise IndexError(f"sample {i} of {count}")
        i %= count
        value = self.values[self.offsets[i]:self.offsets[i + 1]]
        return value if self.shapes is None else value.reshape(self.shapes[i])

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Ragged({len(self)} samples, {len(self.values)} values of {self.values.dtype})"

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    def to_bytes(self) -> List[bytes]:
        """Copy each sample's bytes."""
        return [value.tobytes() for value in self]

    def to_list(self) -> List[Any]:
        """Convert to Python values: bytes for byte strings, lists for everything else."""
        return self.to_bytes() if self._text else [value.tolist() for value in self]

    def to_strings(self, encoding: str = "utf-8", errors: str = "strict") -> List[str]:
        """Decode each sample's bytes to a string."""
        return [value.decode(encoding, errors) for value in self.to_bytes()]

    def padded(self, value: Any = 0, length: Optional[int] = None) -> np.ndarray:
        """Copy one-dimensional samples to one array [count, length], padded with `value` or truncated."""
        if self.shapes is not None:
            raise errors.InvalidError("padded needs one-dimensional samples; use resize to give images one size")
        sizes = np.diff(self.offsets)
        if length is None:
            length = int(sizes.max(initial=0))
        out = np.full((len(self), length), value, self.values.dtype)
        column = np.arange(length)
        inside = column < sizes[:, None]
        out[inside] = self.values[(self.offsets[:-1, None] + column)[inside]]
        return out

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        """An object array with one bytes object or array per sample."""
        out = np.empty(len(self), object)
        for i, value in enumerate(self.to_bytes() if self._text else self):
            out[i] = value
        return out


class Batch(Mapping[str, Any]):
    """A batch of samples: a mapping from field names to arrays.

    `batch["image"]` is a writable NumPy array [count, ...], or a `Ragged` if samples differ in size. The arrays
    share the engine's memory. You may keep a batch, or anything made from it, as long as you like; the engine does
    not reuse the memory while you hold it.
    """

    __slots__ = ("_hold", "_fields", "_made", "_count", "seed", "has_fill")

    def __init__(self, pointer: int, fields: Dict[str, Form], seed: int, has_fill: bool = False) -> None:
        self._hold = _Hold(pointer)
        self.has_fill = has_fill
        self._fields = fields
        self._made: Dict[str, Any] = {}
        self._count = -1
        self.seed = seed

    # ---- mapping ----

    def __getitem__(self, name: str) -> Any:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._make(name)
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __repr__(self) -> str:
        parts = []
        for name in self:
            value = self[name]
            shape = list(value.shape) if isinstance(value, np.ndarray) else [len(value), None]
            parts.append(f"{name}: {getattr(value, 'dtype', type(value).__name__)}{shape}")
        return f"<batch of {self.count}: {', '.join(parts)}>"

    # ---- samples ----

    @property
    def count(self) -> int:
        """Number of rows, including repeats and padding."""
        if self._count < 0:
            self._count = _lib.batch_count(self._hold.pointer)
        return self._count

    @property
    def epoch(self) -> int:
        return _lib.batch_epoch(self._hold.pointer)

    @property
    def valid(self) -> np.ndarray:
        """True for samples that count for this epoch, False for repeats and padding; read-only."""
        valid = _array(self._hold, _lib.batch_valid(self._hold.pointer), "|b1", (self.count,))
        valid.flags.writeable = False
        return valid

    @property
    def positions(self) -> np.ndarray:
        """Each row's global position in the epoch; for a repeat, that of the sample it repeats; 2**64 - 1 for padding."""
        pointer = self._hold.pointer
        return np.array([_lib.batch_position(pointer, i) for i in range(self.count)], np.uint64)

    # ---- memory ----

    def _make(self, name: str) -> Any:
        hold, form, tensor = self._hold, self._fields.get(name), _lib.Tensor()
        if form is None:
            err = _lib.Err()
            _lib.batch_field(hold.pointer, str(name).encode(), tensor, err)
            raise KeyError(err.text.decode(errors="replace"))
        _lib.batch_field(hold.pointer, form.name, tensor, None)
        if not form.ragged:
            values = _array(hold, tensor.data, form.typestr, (self.count, *form.shape))
            return _bfloat16(values) if form.bfloat16 else values
        values = _array(hold, tensor.data, form.typestr, (tensor.shape[0],))
        offsets = _array(hold, tensor.offsets, "<i8", (self.count + 1,))
        shapes = None
        if tensor.sample_shapes:
            shapes = _array(hold, tensor.sample_shapes, "<i8", (self.count, len(form.shape)))
        return Ragged(_bfloat16(values) if form.bfloat16 else values, offsets, shapes, form.text)

    def dlpack(self, name: str, part: int = DATA) -> "DLPack":
        """A field (or its offsets or shapes) for any framework's from_dlpack, without a copy."""
        return DLPack(self._hold, self._fields[name].name, part)

    def to_dict(self) -> Dict[str, Any]:
        """All fields as a plain dict of arrays, without a copy; and `valid`, if batches of the feed can have fill."""
        fields = {name: self[name] for name in self}
        return {**fields, "valid": self.valid.copy()} if self.has_fill else fields

    def copy(self) -> Dict[str, Any]:
        """Copy all fields to a plain dict of arrays that do not hold the batch."""
        return {name: _copied(value) for name, value in self.to_dict().items()}


def _copied(value: Any) -> Any:
    if not isinstance(value, Ragged):
        return value.copy()
    shapes = None if value.shapes is None else value.shapes.copy()
    return Ragged(value.values.copy(), value.offsets.copy(), shapes, value._text)


# ---- DLPack ----

_api = ctypes.pythonapi
_capsule_new = _api.PyCapsule_New
_capsule_new.restype, _capsule_new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_NAME = b"dltensor"


class _Managed(ctypes.Structure):
    """The parts of a DLManagedTensor that come before its deleter."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("dtype", ctypes.c_uint8 * 4), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
                ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


def _drop(capsule: int) -> None:
    """Capsule destructor: call the deleter if no one has taken the tensor. A taker renames the capsule."""
    if _capsule_is_valid(capsule, _NAME):
        pointer = _capsule_pointer(capsule, _NAME)
        _Managed.from_address(pointer).deleter(pointer)


_dropping = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_drop)
_drop_address = ctypes.cast(_dropping, ctypes.c_void_p)


class DLPack:
    """A tensor that from_dlpack of NumPy, PyTorch, JAX, ... can take."""

    __slots__ = ("_hold", "_name", "_part")

    def __init__(self, hold: _Hold, name: bytes, part: int) -> None:
        self._hold, self._name, self._part = hold, name, part

    def __dlpack_device__(self) -> Tuple[int, int]:
        return 1, 0  # kDLCPU

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Optional[bool] = None) -> Any:
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError("a batch is in CPU memory; copy it to the device after from_dlpack")
        if copy:
            raise BufferError("a batch is exported without a copy; copy it after from_dlpack")
        pointer, err = ctypes.c_void_p(), _lib.Err()
        _lib.check(_lib.batch_dlpack(self._hold.pointer, self._name, self._part, pointer, err), err)
        return _capsule_new(pointer, _NAME, _drop_address)
