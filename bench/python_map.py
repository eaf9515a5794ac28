"""python_map.py: Python functions before batch: samples per second, and what handing a sample over costs.

Needs the package and PyTorch (run BUILD/python-venv/bin/python). The ways of a comparison take turns; medians and
quartiles are printed. Feeds and DataLoaders are open, and their workers running, before the clock starts.
"""
from __future__ import annotations

import statistics
import time

import numpy as np
import torch

import leat

ROUNDS, BATCH, SIDE = 9, 32, 224
SLOW, QUICK = 20, 60  # batches of a round


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:9.1f}  ({low:.1f} .. {high:.1f})"


def slow(x):
    """Python code for 0.5 to 1 ms."""
    total = 0
    for i in range(16_000):
        total += i
    return x + (total < 0)


def same(x):
    return x


class Data(torch.utils.data.Dataset):
    def __init__(self, rows, function):
        self.rows, self.function = rows, function

    def __len__(self):
        return 10**9

    def __getitem__(self, i):
        return self.function(self.rows[i % len(self.rows)])


def loop(batches, count):
    """Samples per second over `count` batches."""
    begin = time.perf_counter()
    for _ in range(count):
        next(batches)
    return count * BATCH / (time.perf_counter() - begin)


def compare(title, rows, function, count):
    feeds = {f"Leat, {threads} thread{'s' * (threads > 1)}": leat.array(x=rows).map(function, fields="x").batch(BATCH)
             .prefetch(2).feed(threads=threads) for threads in (1, 2)}
    ways = {name: feed.steps() for name, feed in feeds.items()}
    for workers in (1, 2):
        loader = torch.utils.data.DataLoader(Data(rows, function), BATCH, num_workers=workers)
        ways[f"DataLoader, {workers} worker{'s' * (workers > 1)}"] = iter(loader)
    rates = {name: [] for name in ways}
    for turn in range(ROUNDS + 1):
        for name, batches in ways.items():
            rate = loop(batches, count)
            if turn:
                rates[name].append(rate)
            time.sleep(0.2)  # until what is prefetched is ready: no way takes the others' time
    print(title)
    for name, values in rates.items():
        print(f"  {name:24}{spread(values)} samples/s")
    both = zip(rates["Leat, 2 threads"], rates["Leat, 1 thread"], rates["DataLoader, 2 workers"])
    ratios = [(two / one, two / other) for two, one, other in both]
    print(f"  {'2 threads over 1':24}{statistics.median(r[0] for r in ratios):9.2f} x")
    print(f"  {'Leat over DataLoader':24}{statistics.median(r[1] for r in ratios):9.2f} x")
    for feed in feeds.values():
        feed.close()


def handover(rows, rounds=5):
    """Microseconds per sample of an empty function over none at all, one thread."""
    costs = []
    plain = leat.array(x=rows).map(same, fields="x").batch(BATCH).prefetch(0).feed(threads=1)
    bare = leat.array(x=rows).batch(BATCH).prefetch(0).feed(threads=1)
    with plain, bare:
        for _ in range(rounds):
            both = [1e6 / loop(feed.steps(), QUICK) for feed in (plain, bare)]
            costs.append(both[0] - both[1])
    return spread(costs)


if __name__ == "__main__":
    image = np.random.default_rng(0).integers(0, 255, (64, SIDE, SIDE, 3), np.uint8)
    begin = time.perf_counter()
    for _ in range(20):
        slow(0)
    print(f"slow takes {(time.perf_counter() - begin) / 20 * 1e3:.2f} ms")
    compare("a function of 0.5 to 1 ms", np.arange(1000), slow, SLOW)
    compare(f"an empty function, {SIDE} x {SIDE} x 3 bytes", image, same, QUICK)
    print("hand-over of a number, us      ", handover(np.arange(1000)))
    print(f"hand-over of {SIDE} x {SIDE} x 3, us", handover(image))
