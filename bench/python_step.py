"""python_step.py BUILD: what a batch costs in Python over the bare loop in C, and how soon the first one comes.

Needs the package (as tests/python.sh installs it: run BUILD/python-venv/bin/python), for the second part also PyTorch
and Pillow. The two of a comparison take turns; medians and the quartiles are printed.
"""
from __future__ import annotations

import ctypes
import importlib.util
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import leat
from leat import _lib

ROUNDS, BATCHES, COLD = 15, 3000, 7


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:9.2f}  ({low:.2f} .. {high:.2f})"


def in_c(feed, count):
    """leat_next and leat_release alone, called from a loop that has nothing else in it."""
    batch, err, pointer, forever = ctypes.c_void_p(), _lib.Err(), feed._feed, ctypes.c_uint64(_lib.FOREVER)
    call, release, refs = _lib.next_within, _lib.waiting.leat_release, (ctypes.byref(batch), ctypes.byref(err))
    for _ in range(count):
        if call(pointer, forever, *refs) == _lib.OK:
            release(batch)


def in_python(feed, count):
    for batch in feed.steps(count):
        batch["x"], batch["y"]


def in_torch(feed, count):
    for batch in feed.steps(count):
        leat.torch.tensors(batch)


def step_cost():
    """By the wall clock, and by the processor time of the thread that loops, which other work disturbs less."""
    ways = {"loop over ctypes": in_c, "NumPy": in_python}
    if importlib.util.find_spec("torch"):
        ways["PyTorch"] = in_torch
    feed = leat.array(x=np.zeros((3200, 4), np.float32), y=np.arange(3200)).batch(32).feed()
    for clock in (time.perf_counter, time.thread_time):
        times = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                begin = clock()
                way(feed, BATCHES)
                times[name].append((clock() - begin) / BATCHES * 1e6)
        print(f"us per batch of two dense fields by {clock.__name__}, {ROUNDS} rounds of {BATCHES} batches in turn")
        for name, values in times.items():
            over = [a - b for a, b in zip(values, times["loop over ctypes"])]
            print(f"  {name:18} {spread(values)}   over the loop {spread(over)}")


LEAT = """
import sys, time
import leat
leat.Feed  # loads NumPy
begin = time.perf_counter()
feed = (leat.folder(sys.argv[1]).shuffle().decode().resize(100, 100).scale(1 / 255).random_flip().layout("chw")
        .batch(32).feed(seed=1))
batch = next(iter(feed))["image"]
print((time.perf_counter() - begin) * 1e3)
"""

LOADER = """
import pathlib, sys, time
import numpy as np, torch
from PIL import Image

class Cells(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.files = sorted(pathlib.Path(folder).glob("*/*.jpg"))
    def __len__(self):
        return len(self.files)
    def __getitem__(self, i):
        with Image.open(self.files[i]) as image:
            pixels = np.asarray(image.convert("RGB").resize((100, 100), Image.BILINEAR), np.float32) / 255
        if torch.rand(()) < 0.5:
            pixels = pixels[:, ::-1]
        return pixels.transpose(2, 0, 1).copy()

begin = time.perf_counter()
loader = torch.utils.data.DataLoader(Cells(sys.argv[1]), batch_size=32, shuffle=True, num_workers=2)
batch = next(iter(loader))
print((time.perf_counter() - begin) * 1e3)
"""


def first_batch(build):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([build / "examples/make_cells", f"{folder}/cells", "--count", "2000"], check=True)
        times = {"leat": [], "DataLoader": []}
        for _ in range(COLD):
            for name, code in (("leat", LEAT), ("DataLoader", LOADER)):
                out = subprocess.run([sys.executable, "-c", code, f"{folder}/cells"], check=True, text=True,
                                     stdout=subprocess.PIPE)
                times[name].append(float(out.stdout))
    ratios = [b / a for a, b in zip(*times.values())]
    print(f"ms to the first batch of 32 cells of 2,000, imports not counted, {COLD} processes each in turn")
    for name, values in times.items():
        print(f"  {name:18} {spread(values)}")
    print(f"  {'sooner by':18} {spread(ratios)}")


if __name__ == "__main__":
    step_cost()
    first_batch(pathlib.Path(sys.argv[1]).resolve())
