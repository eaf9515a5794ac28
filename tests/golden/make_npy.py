#!/usr/bin/env python3
"""make_npy.py [FOLDER]: arrays as NumPy saves them, for tests/unit/test_npy.c, and seeds for fuzz/fuzz_npy.c.

Element k of each array is k, as far as its type can hold that (bool: k is odd). Needs
numpy, in the version of requirements.txt.
"""
import os
import sys

import numpy as np
from numpy.lib import format as npy

here = os.path.dirname(os.path.abspath(__file__))
folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "npy")
seeds = os.path.join(here, "../../fuzz/corpus/npy")
os.makedirs(folder, exist_ok=True)
os.makedirs(seeds, exist_ok=True)


def save(name, array, version=None, to=folder):
    with open(os.path.join(to, name + ".npy"), "wb") as f:
        npy.write_array(f, array, version=version)


def count(dtype, *shape):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


for dtype in ["<f2", "<f4", "<f8", "<i4", "<i8", "|u1"]:
    save(dtype[1:], count(dtype, 5, 3))
save("b1", count("i8", 5, 3) % 2 == 1)
save("vector", count("<f4", 5))
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
save("int16", count("<i2", 5))
save("text", np.array(["a", "bc"]))
save("structure", np.zeros(5, dtype=[("x", "<f4"), ("y", "<i4")]))
save("dims", count("|u1", 5, 1, 1, 1, 1, 1))

for seed in ["f4", "v2", "v3", "structure", "scalar", "deep", "fortran"]:
    with open(os.path.join(folder, seed + ".npy"), "rb") as f, open(os.path.join(seeds, seed), "wb") as to:
        to.write(f.read())
