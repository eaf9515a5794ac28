"""custom_op.py 'cells-*.tfrecord': what no op does, in Python: noise on samples, and one statistic of a batch.

The random numbers depend on seed, epoch and position alone: the second run sees the same pixels as the first.
"""
import sys

import numpy as np

import leat


def noise(image, rng):
    return image + rng.normal(0, 0.05, image.shape).astype(np.float32)


def brightness(batch):
    batch["brightness"] = batch["image"].mean(axis=(1, 2, 3))
    return batch


if len(sys.argv) != 2:
    raise SystemExit(__doc__)
pipeline = (leat.tfrecord(sys.argv[1]).example(image=bytes, label=int).decode().resize(32, 32).scale(1 / 255).shuffle()
            .batch(20).map(noise, fields="image").map_batch(brightness))
for run in range(2):
    feed = pipeline.feed(seed=7)
    means = [float(batch["brightness"].mean()) for batch in feed]
    print(f"run {run}: {len(means)} batches, mean brightness {np.mean(means):.6f}")
