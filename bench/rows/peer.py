"""peer.py PART NAME FOLDER: one contender that runs in Python. peer.py PART: lists the names.

Warms up with an epoch and says "ready". Then each line it is sent, SECONDS, is its turn: it runs whole epochs until that
time is over, and answers with a line of JSON: samples, seconds by the clock, seconds of processor time of its process
and workers.
"""
import functools
import glob
import json
import os
import pathlib
import sys
import time

import numpy as np

import shapes


def processor_time():
    """Seconds of this process and its children, all threads."""
    children = [pid for tasks in pathlib.Path("/proc/self/task").glob("*/children") for pid in tasks.read_text().split()]
    clocks = [(~int(pid) << 3) | 2 for pid in children]  # as clock_getcpuclockid
    return time.process_time() + sum(map(time.clock_gettime, clocks))


# A peer is a function of the folder with the data. It returns two functions: `first` gives the arrays of a batch, to be
# checked, and `epoch` takes all batches of an epoch and returns the number of samples.

def over(batches, count, arrays):
    """The two functions of a peer that makes a new iterator for each epoch."""
    def epoch():
        for batch in batches():
            arrays(batch)
        return count

    return lambda: arrays(next(iter(batches()))), epoch


# ---- Leat ----

def leat_feed(spec, threads, fields, folder):
    import leat

    feed = leat.feed(spec.format(folder), seed=1, threads=threads)

    def arrays(batch):
        return [batch[name] for name in fields]

    def epoch():
        count = 0
        for batch in feed:
            arrays(batch)
            count += batch.count
        return count

    def first():
        found = arrays(next(iter(feed)))
        feed.seek(0)
        return found

    return first, epoch


def leat_tiny(size, threads, folder):
    """Samples here are batches; the loop does nothing."""
    import leat

    feed = leat.feed(shapes.TINY.format(folder, size), threads=threads)

    def epoch():
        for _ in feed:
            pass
        return len(feed)

    return list, epoch


# ---- tokens ----

def tokens_numpy(folder):
    data = np.memmap(f"{folder}/tokens.bin", np.uint16, "r").reshape(-1, shapes.LENGTH)
    draw = np.random.default_rng(1)

    def batches():
        order = draw.permutation(len(data))
        for i in range(0, len(data), shapes.TOKENS_BATCH):
            yield data.take(order[i:i + shapes.TOKENS_BATCH], axis=0).astype(np.int32)

    return over(batches, len(data), lambda batch: [batch])


def tokens_nanogpt(folder):
    """As its get_batch: windows that begin anywhere, as int64, a new memmap for each batch. It makes targets, too, which
    would be the same again."""
    import torch

    path, windows = f"{folder}/tokens.bin", os.path.getsize(f"{folder}/tokens.bin") // 2 // shapes.LENGTH
    torch.set_num_threads(1)

    def batches():
        for _ in range(windows // shapes.TOKENS_BATCH):
            data = np.memmap(path, np.uint16, "r")
            starts = torch.randint(len(data) - shapes.LENGTH, (shapes.TOKENS_BATCH,))
            yield torch.stack([torch.from_numpy(data[i:i + shapes.LENGTH].astype(np.int64)) for i in starts])

    return over(batches, windows // shapes.TOKENS_BATCH * shapes.TOKENS_BATCH, lambda batch: [batch])


def torch_loader(samples, batch, workers, arrays):
    import torch

    torch.set_num_threads(1)  # as many as its workers have
    loader = torch.utils.data.DataLoader(samples, batch_size=batch, shuffle=True, num_workers=workers,
                                         persistent_workers=workers > 0)
    return over(lambda: loader, len(samples), arrays)


class Windows:
    """A map-style dataset over tokens."""

    def __init__(self, folder):
        self.data = np.memmap(f"{folder}/tokens.bin", np.uint16, "r").reshape(-1, shapes.LENGTH)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i].astype(np.int32)


def tokens_torch(workers, folder):
    return torch_loader(Windows(folder), shapes.TOKENS_BATCH, workers, lambda batch: [batch])


# ---- digits ----

def digits_numpy(folder):
    x, y = (np.load(f"{folder}/{name}.npy") for name in "xy")
    draw = np.random.default_rng(1)

    def batches():
        order = draw.permutation(len(x))
        for i in range(0, len(x), shapes.DIGITS_BATCH):
            index = order[i:i + shapes.DIGITS_BATCH]
            yield x[index].astype(np.float32), y[index]

    return over(batches, len(x), lambda batch: batch)


class Digits:
    def __init__(self, folder):
        self.x, self.y = (np.load(f"{folder}/{name}.npy") for name in "xy")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i].astype(np.float32), self.y[i]


def digits_torch(workers, folder):
    return torch_loader(Digits(folder), shapes.DIGITS_BATCH, workers, lambda batch: batch)


# ---- records ----

def tf_records(shuffle, folder):
    """shuffle: '' for in order, 'all' for a buffer that holds all records, or the size of the buffer."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import tensorflow as tf

    names = sorted(glob.glob(f"{folder}/records-*.tfrecord"))
    count = sum(map(os.path.getsize, names)) // shapes.FRAMED
    records = tf.data.TFRecordDataset(names)
    if shuffle:
        records = (tf.data.Dataset.from_tensor_slices(names).shuffle(len(names))
                   .interleave(tf.data.TFRecordDataset, cycle_length=len(names), num_parallel_calls=tf.data.AUTOTUNE,
                               deterministic=False)
                   .shuffle(count if shuffle == "all" else int(shuffle)))
    records = records.batch(shapes.RECORDS_BATCH).prefetch(tf.data.AUTOTUNE)
    return over(lambda: records, count, lambda batch: [batch])


# ---- the protocol ----

def leat_contenders(spec, fields):
    return {f"Leat from Python, {n} thread{'s' * (n > 1)}": functools.partial(leat_feed, spec, n, fields) for n in (1, 2)}


PEERS = {
    "tokens": {**leat_contenders(shapes.TOKENS, ["tokens"]), "NumPy": tokens_numpy, "nanoGPT's get_batch": tokens_nanogpt,
               "DataLoader, 0 workers": functools.partial(tokens_torch, 0),
               "DataLoader, 2 workers": functools.partial(tokens_torch, 2)},
    "digits": {**leat_contenders(shapes.DIGITS, ["x", "y"]), "NumPy": digits_numpy,
               "DataLoader, 0 workers": functools.partial(digits_torch, 0),
               "DataLoader, 2 workers": functools.partial(digits_torch, 2)},
    "records": {"tf.data, in order": functools.partial(tf_records, ""),
                "tf.data, interleave, buffer of 16,384": functools.partial(tf_records, "16384"),
                "tf.data, interleave, buffer of all": functools.partial(tf_records, "all")},
    "tiny": {f"batch({size}) in Python, {n} thread{'s' * (n > 1)}": functools.partial(leat_tiny, size, n)
             for size in (1, 2) for n in (1, 2)},
}


def check(part, found):
    forms = [(str(array.dtype).rpartition(".")[2], tuple(array.shape)) for array in found]
    if part in shapes.WANTED and forms not in shapes.WANTED[part]:
        sys.exit(f"a batch is {forms}, not {shapes.WANTED[part][0]}")


def turn(epoch, seconds):
    samples, begin, before = 0, time.perf_counter(), processor_time()
    while not samples or time.perf_counter() - begin < seconds:
        samples += epoch()
    return {"samples": samples, "wall": time.perf_counter() - begin, "cpu": processor_time() - before}


def main():
    part = sys.argv[1]
    if len(sys.argv) == 2:
        print(*PEERS[part], sep="\n")
        return
    name, folder = sys.argv[2:]
    try:
        first, epoch = PEERS[part][name](folder)
    except ModuleNotFoundError as why:
        print(why, file=sys.stderr)
        sys.exit(shapes.MISSING)
    check(part, first())
    epoch()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(turn(epoch, float(line))), flush=True)


if __name__ == "__main__":
    main()
