#!/usr/bin/env python3
"""make_npy_types.py: more arrays as NumPy saves them, for tests/unit/test_npy.c.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install numpy==2.4.6
    /tmp/golden/bin/python tests/golden/make_npy_types.py

Writes tests/golden/npy_types.tar. Element k of an array is k + 2**63 (u8) or 2k + (2k + 1)j (complex).
"""
import archive
import numpy as np

HERE = archive.begin("npy_types")

np.save(HERE / "u8.npy", np.arange(15, dtype="<u8").reshape(5, 3) + (1 << 63))
for dtype in ["<c8", "<c16"]:
    np.save(HERE / f"{dtype[1:]}.npy", np.arange(30, dtype="<f8").view("<c16").reshape(5, 3).astype(dtype))
np.save(HERE / "complex-dims.npy", np.zeros((5, 1, 1, 1, 1), "<c8"))  # refused

archive.finish(HERE)
