#!/usr/bin/env python3
"""make_npy.py: arrays as NumPy saves them, for tests/unit/test_npy.c.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install numpy==2.4.6
    /tmp/golden/bin/python tests/golden/make_npy.py

Writes tests/golden/npy.tar. Element k of each array is k, as far as its type can hold that (bool: k is odd).
"""
import archive
import numpy as np
from numpy.lib import format as npy

HERE = archive.begin("npy")


def save(name, array, version=None):
    with open(HERE / f"{name}.npy", "wb") as f:
        npy.write_array(f, array, version=version)


def count(dtype, *shape):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


for dtype in ["<f2", "<f4", "<f8", "<i4", "<i8", "|u1"]:
    save(dtype[1:], count(dtype, 5, 3))
save("b1", count("i8", 5, 3) % 2 == 1)
save("vector", count("<f4", 5))
save("int16", count("<i2", 5))
save("deep", count("<i4", 5, 1, 2, 1, 3))
save("image", count("|u1", 5, 2, 3, 3))
save("planes", count("<f4", 5, 3, 6, 5))
save("hollow", count("<f4", 5, 0))
save("v2", count("<f4", 5, 3), (2, 0))
save("v3", count("<f4", 5, 3), (3, 0))

# What is refused.
save("short", count("<f4", 4, 3))
save("none", count("<f4", 0, 3))
save("scalar", np.float32(7).reshape(()))
save("fortran", np.asfortranarray(count("<f4", 5, 3)))
save("big-endian", count(">f4", 5, 3))
save("complex", count("<c8", 5))
save("text", np.array(["a", "bc"]))
save("structure", np.zeros(5, dtype=[("x", "<f4"), ("y", "<i4")]))
save("dims", count("|u1", 5, 1, 1, 1, 1, 1))

archive.finish(HERE)
