"""Arrays in memory as a source: written to anonymous .npy files, which the engine maps like any others."""
from __future__ import annotations

import os
import weakref
from typing import Any, Dict, List

import numpy as np

from . import _text
from .errors import InvalidError


def _discard(files: List[int]) -> None:
    for file in files:
        os.close(file)


class ArraySource:
    """The call `npy(...)` on arrays in anonymous memory, which is freed with this object, or with the process.

    The engine opens them by descriptor and identifies them by their fields, so the data's fingerprint, and with it a
    checkpoint, is the same in another process.
    """

    def __init__(self, arrays: Dict[str, Any]) -> None:
        self._arrays = {name: np.asarray(array) for name, array in arrays.items()}
        lengths = {name: len(array) if array.ndim else -1 for name, array in self._arrays.items()}
        if not lengths or len(set(lengths.values())) > 1 or -1 in lengths.values():
            raise InvalidError(f"array needs arrays with the same number of rows; got {lengths or 'none'}")
        self._files: List[int] = []
        self._discard = weakref.finalize(self, _discard, self._files)
        for name, array in self._arrays.items():
            file = os.memfd_create(f"leat:{name}")
            self._files.append(file)
            with open(file, "wb", closefd=False) as out:
                np.save(out, np.ascontiguousarray(array), allow_pickle=False)

    def __str__(self) -> str:
        return "npy(" + ", ".join(f"{name}={_text.quote(f'/proc/self/fd/{file}')}"
                                  for name, file in zip(self._arrays, self._files)) + ")"

    def __repr__(self) -> str:
        return "array(" + ", ".join(f"{name}={array.dtype}{list(array.shape)}"
                                    for name, array in self._arrays.items()) + ")"

    def __reduce__(self) -> Any:
        return ArraySource, (self._arrays,)


def array(**arrays: Any) -> Any:
    """Read from arrays in memory: sample i is row i of each array.

    The arrays are copied once. Supported types are those of `npy`: float16 to float64, int8 to int64, uint8 to uint64,
    bool, which becomes uint8, and complex numbers, which become pairs of floats.
    """
    from ._pipeline import Pipeline

    return Pipeline([ArraySource(arrays)])
