"""feeds.py NAME FOLDER SECONDS: one loader of rows with 20 numbers and a label, in shuffled batches of 4,096.

feeds.py alone lists the names. Warms up with an epoch, runs whole epochs for that time, and prints JSON: samples, seconds
by the clock, seconds of processor time of the process and its workers. FOLDER has what features.py made of the same rows:
rows.parquet, rows-*.tfrecord, x.npy and y.npy.
"""
import functools
import glob
import json
import os
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "rows"))
import peer  # noqa: E402  of bench/rows: the loop and its clocks
import shapes  # noqa: E402

NAMES = [f"f{n:02}" for n in range(20)]
BATCH = 4096
EXAMPLE = ", ".join([*(f"{name}=float" for name in NAMES), "label=int64"])
TFRECORD = f"tfrecord('{{0}}/rows-*.tfrecord') | example({EXAMPLE}) | shuffle | batch({BATCH}, tail=drop)"
PARQUET = f"parquet('{{0}}/rows.parquet') | shuffle | batch({BATCH}, tail=drop)"
FIELDS = [*NAMES, "label"]


def whole(count):
    return count // BATCH * BATCH


def numpy_rows(folder):
    """A matrix in memory, which is the best case: one row is 80 bytes in one place."""
    x, y = np.load(f"{folder}/x.npy"), np.load(f"{folder}/y.npy")
    return gather([x, y])


def numpy_columns(folder):
    """An array for each column, as in a table."""
    x, y = np.load(f"{folder}/x.npy"), np.load(f"{folder}/y.npy")
    return gather([*map(np.ascontiguousarray, x.T), y])


def gather(arrays):
    draw, count = np.random.default_rng(1), len(arrays[0])

    def batches():
        order = draw.permutation(count)
        for begin in range(0, whole(count), BATCH):
            index = order[begin:begin + BATCH]
            yield [array.take(index, axis=0) for array in arrays]

    return peer.over(batches, whole(count), lambda batch: batch)


def tensors(folder):
    import pyarrow.parquet
    import torch

    torch.set_num_threads(1)
    table = pyarrow.parquet.read_table(f"{folder}/rows.parquet")
    x = np.stack([table[name].to_numpy() for name in NAMES], 1)
    return torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(table["label"].to_numpy().copy()))


def torch_rows(workers, folder):
    """A table in memory, and a loader that asks for it row by row: what most programs do."""
    import torch

    rows = tensors(folder)
    loader = torch.utils.data.DataLoader(rows, BATCH, shuffle=True, num_workers=workers, drop_last=True,
                                         persistent_workers=workers > 0)
    return peer.over(lambda: loader, whole(len(rows)), lambda batch: batch)


def torch_batches(workers, folder):
    """The same, asked for whole batches."""
    import torch
    from torch.utils.data import BatchSampler, RandomSampler

    rows = tensors(folder)
    sampler = BatchSampler(RandomSampler(rows), BATCH, drop_last=True)
    loader = torch.utils.data.DataLoader(rows, batch_size=None, sampler=sampler, num_workers=workers,
                                         persistent_workers=workers > 0)
    return peer.over(lambda: loader, whole(len(rows)), lambda batch: batch)


def tf_records(shuffle, folder):
    """Batches are parsed at once, which is the fastest way that tf.data has."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import tensorflow as tf

    count = len(np.load(f"{folder}/y.npy", mmap_mode="r"))
    names = sorted(glob.glob(f"{folder}/rows-*.tfrecord"))
    spec = {**{name: tf.io.FixedLenFeature([], tf.float32) for name in NAMES}, "label": tf.io.FixedLenFeature([], tf.int64)}
    records = (tf.data.Dataset.from_tensor_slices(names).shuffle(len(names))
               .interleave(tf.data.TFRecordDataset, cycle_length=len(names), num_parallel_calls=2, deterministic=False)
               .shuffle(shuffle or count).batch(BATCH, drop_remainder=True)
               .map(lambda batch: tf.io.parse_example(batch, spec), num_parallel_calls=2).prefetch(2))
    return peer.over(lambda: records, whole(count), lambda batch: list(batch.values()))


LOADERS = {
    "NumPy, a matrix": numpy_rows,
    "NumPy, columns": numpy_columns,
    **{f"Leat, {kind}, {n} thread{'s' * (n > 1)}": functools.partial(peer.leat_feed, spec, n, FIELDS)
       for kind, spec in (("TFRecord", TFRECORD), ("Parquet", PARQUET)) for n in (1, 2)},
    "DataLoader by rows, 0 workers": functools.partial(torch_rows, 0),
    "DataLoader by rows, 2 workers": functools.partial(torch_rows, 2),
    "DataLoader by batches, 0 workers": functools.partial(torch_batches, 0),
    "DataLoader by batches, 2 workers": functools.partial(torch_batches, 2),
    "tf.data, TFRecord, buffer of 16,384": functools.partial(tf_records, 16384),
    "tf.data, TFRecord, buffer of all": functools.partial(tf_records, 0),
}


def check(arrays):
    """A batch has all numbers: as one matrix, or column by column."""
    numbers = sum(int(np.prod(array.shape)) for array in arrays)
    if numbers != BATCH * len(FIELDS):
        sys.exit(f"a batch has {numbers} numbers, not {BATCH * len(FIELDS)}")


def main():
    if len(sys.argv) == 1:
        print(*LOADERS, sep="\n")
        return
    name, folder, seconds = sys.argv[1:]
    try:
        first, epoch = LOADERS[name](folder)
    except ModuleNotFoundError as why:
        print(why, file=sys.stderr)
        sys.exit(shapes.MISSING)
    check(first())
    epoch()
    print(json.dumps(peer.turn(epoch, float(seconds))))


if __name__ == "__main__":
    main()
