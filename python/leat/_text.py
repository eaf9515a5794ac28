"""Convert Python values to spec text.

The result depends on the type of the option: "40deg" is an angle for an angle option, and a string otherwise.
"""
from __future__ import annotations

import math
import numbers
import os
import re
from typing import Any, List, Optional

from .errors import InvalidError

_PLAIN = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NUMBER = re.compile(rf"\s*{_PLAIN}(?:\s*/\s*{_PLAIN})*\s*[a-zA-Z]*\s*\Z")
_FEATURE = re.compile(r"\s*(bytes|int64|float)\s*([\[(].*)?\Z", re.DOTALL)
_FRAMEWORKS = {"numpy", "torch", "tensorflow", "jax", "ml_dtypes"}
_NUMERIC = {"int", "float", "size", "angle", "floats"}


class Raw(str):
    """Text that goes into a spec as it is."""


def _escaped(char: str) -> str:
    code = ord(char)
    if code == 0:
        raise InvalidError("a string in a spec cannot contain a NUL character")
    if char in "'\\":
        return "\\" + char
    if 0xDC80 <= code <= 0xDCFF:  # a byte that os.fsdecode could not decode
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x20 or code == 0x7F else char


def quote(text: str) -> str:
    """A quoted string, with any special characters escaped."""
    return "'" + "".join(map(_escaped, text)) + "'"


def _number(value: Any) -> str:
    if isinstance(value, numbers.Integral):
        return str(int(value))
    value = float(value)
    if not math.isfinite(value):
        raise InvalidError(f"{value} cannot be used in a spec, expected a finite number")
    return repr(value)


def _dtype(value: Any) -> Optional[str]:
    """The name of a Python, NumPy or framework type; None if `value` is not a type."""
    python = {bytes: "bytes", str: "bytes", int: "int64", float: "float32", bool: "bool"}
    if isinstance(value, type) and value in python:
        return python[value]
    if isinstance(value, type) or type(value).__module__.split(".")[0] in _FRAMEWORKS:
        name = getattr(value, "name", None) or getattr(value, "__name__", None) or str(value).rpartition(".")[2]
        return name if isinstance(name, str) else None
    return None


def _column(name: Any) -> str:
    return str(name) if re.match(r"[A-Za-z_]\w*\Z", str(name)) else '"' + str(name).replace('"', '""') + '"'


def _column_type(given: Any) -> str:
    name = {"float32": "float", "float64": "double", "bytes": "text", None: "skip"}
    text = given if isinstance(given, str) else "double" if given is float else _dtype(given)
    return str(name.get(text, text))


def to_text(value: Any, kind: str = "") -> str:
    """`value` as spec text, for an option of type `kind` ("" for the arguments of free-form ops)."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bytes):
        value = os.fsdecode(value)
    if isinstance(value, str):
        return str(value).strip() if kind in _NUMERIC and _NUMBER.match(value) else quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Real):
        return _number(value)
    if isinstance(value, dict) and kind == "strings":  # declared columns, as in csv(columns={"user": int})
        value = [f"{_column(name)} {_column_type(kind_)}" for name, kind_ in value.items()]
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(to_text(item, kind) for item in value) + "]"
    if not isinstance(value, type) and hasattr(value, "tolist"):  # NumPy's bools, scalars and arrays
        return to_text(value.tolist(), kind)
    name = _dtype(value)
    if name:
        return name
    raise InvalidError(f"{value!r} cannot be used in a spec, expected a string, number, bool, type or a list of these")


def feature_value(given: Any) -> str:
    """An argument of `example`: a type, or text such as "int64[]" or "bytes(default='')"."""
    if isinstance(given, str) and not isinstance(given, Raw):
        if not _FEATURE.match(given):
            raise InvalidError(f"{given!r} is not a feature type, expected bytes, int64 or float, as in 'int64[3]'")
        return given
    name = {"int32": "int64", "uint8": "bytes", "bool": "bytes", "float32": "float", "float64": "float"}
    text = to_text(given)
    return name.get(text, text)


def feature(dtype: Any, shape: Optional[Any] = None, default: Any = None, key: Optional[str] = None) -> Raw:
    """Describe a feature of a tf.train.Example, for `example(...)`.

    Args:
        dtype: bytes, int or float.
        shape: None for one value, () or [] for any number of values, else the dimensions.
        default: value to use when a record lacks the feature.
        key: name of the feature in the records, if it differs from the field's name.
    """
    text = feature_value(dtype)
    if shape is not None:
        dims = [shape] if isinstance(shape, numbers.Integral) else list(shape)
        text += "[" + ", ".join(_number(dim) for dim in dims) + "]"
    named = []
    if default is not None:
        named.append("default=" + to_text(default))
    if key is not None:
        named.append("key=" + to_text(key))
    return Raw(text + ("(" + ", ".join(named) + ")" if named else ""))


_TOKEN = re.compile(r"""'(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | \#[^\n]* | \| | [^'"\#|]+ | .""", re.VERBOSE | re.DOTALL)


def split(spec: str) -> List[str]:
    """The calls of a spec: its text split at the pipes outside of strings and comments."""
    calls = [""]
    for token in _TOKEN.findall(spec):
        if token == "|":
            calls.append("")
        elif not token.startswith("#"):
            calls[-1] += token
    return [call.strip() for call in calls]


def op_name(call: str) -> str:
    return re.split(r"[\s(]", call.strip(), maxsplit=1)[0]
