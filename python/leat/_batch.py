"""A batch: its fields as NumPy arrays that share the engine's memory.

Every array keeps its batch alive; the batch returns to its feed when the last array, tensor or batch object that refers
to it is dropped. Of a batch that the engine copied, because the program keeps many, an array keeps only its own field.
"""
from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from . import _lib, errors

# In the order of enum leat_dtype. NumPy itself has no bfloat16.
_TYPESTR = ("|u1", "<i4", "<i8", "<f2", "<u2", "<f4", "<f8", "|b1", "|i1", "<i2", "<u2", "<u4", "<u8")
_BF16 = 4  # the first "<u2" is its bits
DATA, OFFSETS, SHAPES = range(3)


def dtype_name(dtype: int) -> str:
    return _lib.dtype_name(dtype).decode()


class Form:
    """The properties of a field that all batches of a feed share."""

    __slots__ = ("name", "dtype", "typestr", "shape", "ragged", "text", "bfloat16")

    def __init__(self, name: bytes, dtype: int, shape: Tuple[Any, ...]) -> None:
        self.name, self.dtype, self.typestr, self.shape = name, dtype_name(dtype), _TYPESTR[dtype], shape
        self.ragged, self.bfloat16 = None in shape, dtype == _BF16
        self.text = self.typestr == "|u1" and shape == (None,)


class _View:
    """Memory of a batch in NumPy's array interface; becomes the base of the array."""

    __slots__ = ("__array_interface__", "hold")

    __array_interface__: Dict[str, Any]
    hold: Any


def _array(hold: Any, address: Optional[int], typestr: str, shape: Tuple[int, ...]) -> np.ndarray:
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
    not reuse the memory while you hold it. If you keep many, you get copies.
    """

    __slots__ = ("_hold", "_pointer", "_fields", "_made", "_count", "seed", "has_fill")

    def __init__(self, hold: Any, pointer: int, fields: Dict[str, Form], seed: int, has_fill: bool = False) -> None:
        self._hold, self._pointer = hold, pointer  # a capsule that owns the batch at `pointer`
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
        fields = (f"{name}: {form.dtype}{[self.count, *form.shape]}" for name, form in self._fields.items())
        return f"<batch of {self.count}: {', '.join(fields)}>"

    def _repr_html_(self) -> str:
        from . import _html

        return _html.batch(self)

    def _ipython_key_completions_(self) -> List[str]:
        return list(self)

    # ---- samples ----

    @property
    def count(self) -> int:
        """Number of rows, including repeats and padding."""
        if self._count < 0:
            self._count = _lib.batch_count(self._pointer)
        return self._count

    @property
    def epoch(self) -> int:
        return _lib.batch_epoch(self._pointer)

    @property
    def valid(self) -> np.ndarray:
        """True for samples that count for this epoch, False for repeats and padding; read-only."""
        valid = _array(self._hold, _lib.batch_valid(self._pointer), "|b1", (self.count,)).copy()
        valid.flags.writeable = False
        return valid

    @property
    def positions(self) -> np.ndarray:
        """Each row's global position in the epoch; for a repeat, that of the sample it repeats; 2**64 - 1 for padding."""
        pointer = self._pointer
        return np.array([_lib.batch_position(pointer, i) for i in range(self.count)], np.uint64)

    # ---- memory ----

    def _make(self, name: str) -> Any:
        hold, form, tensor = self._hold, self._fields.get(name), _lib.Tensor()
        if form is None:
            err = _lib.Err()
            _lib.batch_field(self._pointer, str(name).encode(), tensor, err)
            raise KeyError(err.text.decode(errors="replace"))
        _lib.batch_field(self._pointer, form.name, tensor, None)
        if tensor.copied:
            hold = _exported(self._pointer, form.name, DATA)  # of this field alone
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
        return DLPack(self, self._fields[name].name, part)

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

def _exported(pointer: int, name: bytes, part: int) -> Any:
    """A capsule with a tensor of the batch at `pointer`.

    zip makes both calls: between two calls of Python code, a signal could lose the tensor.
    """
    tensor, err = ctypes.c_void_p(), _lib.Err()
    try:
        return list(zip(map(_lib.batch_dlpack, (pointer,), (name,), (part,), (tensor,), (err,)),
                        map(_lib.capsule_new, (tensor,), (b"dltensor",), (_lib.capsule_free,))))[0][1]
    except ValueError:  # a capsule cannot hold NULL
        raise _lib.error(err) from None


class DLPack:
    """A tensor that from_dlpack of NumPy, PyTorch, JAX, ... can take."""

    __slots__ = ("_batch", "_name", "_part")

    def __init__(self, batch: Batch, name: bytes, part: int) -> None:
        self._batch, self._name, self._part = batch, name, part

    def __dlpack_device__(self) -> Tuple[int, int]:
        return 1, 0  # kDLCPU

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Optional[bool] = None) -> Any:
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError("a batch is in CPU memory; copy it to the device after from_dlpack")
        if copy:
            raise BufferError("a batch is exported without a copy; copy it after from_dlpack")
        return _exported(self._batch._pointer, self._name, self._part)
