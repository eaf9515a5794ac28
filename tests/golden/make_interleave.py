#!/usr/bin/env python3
"""make_interleave.py: what order tf.data's interleave gives samples of unequal and empty files.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install tensorflow-cpu==2.21.0
    /tmp/golden/bin/python tests/golden/make_interleave.py >tests/golden/interleave.json

Serial interleave and, where `parallel` is not 0, parallel interleave with that many calls,
deterministic. tests/plan_oracle.py compares its own simulation and the C plan with the file.
"""
import json
import os
import random

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402


def order(counts, cycle, block, parallel):
    """Samples are numbered through, file by file."""
    starts = [sum(counts[:i]) for i in range(len(counts))]
    files = tf.data.Dataset.from_tensor_slices((tf.constant(starts, tf.int64), tf.constant(counts, tf.int64)))
    samples = files.interleave(
        lambda start, count: tf.data.Dataset.range(start, start + count),
        cycle_length=cycle, block_length=block,
        num_parallel_calls=parallel or None, deterministic=True if parallel else None)
    return [int(x) for x in samples.as_numpy_iterator()]


def main():
    rng = random.Random(1)
    cases = []
    for i in range(160):
        counts = [rng.choice([0, 1, 2, 3, 4, 6, rng.randrange(20)]) for _ in range(rng.randint(1, 9))]
        cycle, block = rng.randint(1, 6), rng.randint(1, 5)
        parallel = 0 if i < 120 else rng.randint(1, cycle)
        cases.append({"counts": counts, "cycle": cycle, "block": block, "parallel": parallel,
                      "order": order(counts, cycle, block, parallel)})
    print('{"made_by": "tensorflow %s", "cases": [' % tf.__version__)
    print(",\n".join(json.dumps(case) for case in cases))
    print("]}")


main()
