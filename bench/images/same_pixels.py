"""same_pixels.py LEAT DATA: whether all make the same pixels, but for what is random.

Leat and tf.data decode, resize, scale and rotate the first cells of each kind, and so does OpenCV: prints how many values
are equal and the differences. Peers that write into batches have to make each image as torch_cv makes it.
"""
import hashlib
import importlib
import itertools
import subprocess
import sys
import tempfile

import numpy as np

import cases
from peers import tfdata  # before tensorflow, which it keeps quiet
import tensorflow as tf
from peers import files, pixels

COUNT = 64
IN_PLACE = ("threads_cv", "spdl_loader")


class Still:
    """Stands in for the module random: nothing is flipped, brightened or cropped to one side."""

    def random(self):
        return 1.0

    def uniform(self, low, high):
        return (low + high) / 2

    def randint(self, low, high):
        return (low + high) // 2


def of_leat(leat, data, folder):
    spec = (f"tfrecord('{data}/packed-*.tfrecord') | example(image=bytes, label=int64) | take({COUNT}) | decode"
            f" | resize(100, 100) | scale(1/255) | rotate({cases.ANGLE}deg)")
    subprocess.run([leat, "convert", "--quiet", "--format", "npy", "--output", folder, spec], check=True,
                   stdout=subprocess.DEVNULL)
    return np.load(f"{folder}/image.npy")


def encoded_cells(data):
    features = {"image": tf.io.FixedLenFeature([], tf.string)}
    records = tf.data.TFRecordDataset(files.shard_names(data, ".tfrecord")).take(COUNT)
    return [tf.io.parse_single_example(record, features)["image"] for record in records]


def of_tf(encoded, png):
    return np.stack([tfdata.turn(tfdata.still_cell(data, png)) for data in encoded])


def of_cv(encoded, case):
    make = pixels.function("cv", case)
    return np.stack([make(data.numpy()) for data in encoded])


def compare_cells(leat, data, case):
    with tempfile.TemporaryDirectory() as folder:
        one = of_leat(leat, data, f"{folder}/out")
    encoded = encoded_cells(data)
    other, loose = of_tf(encoded, case is cases.CELLS_PNG), of_cv(encoded, case)
    print(f"pixels of {case.name}: {np.mean(one == other):.4%} equal to tf.data's, "
          f"largest difference {np.abs(one - other).max():.2g}; "
          f"OpenCV's differ by {np.abs(one - loose).mean():.2g} on average")


def digest(image):
    return hashlib.sha256(np.ascontiguousarray(image)).digest()


def in_place(name, case, data):
    """How many images a peer makes as torch_cv does, and of how many."""
    make = pixels.function("cv", case)
    wanted = {digest(make(files.read(path))) for path, _ in files.listing(data)}
    peer, found = importlib.import_module(f"peers.{name}"), []
    count = len(files.listing(data)) // case.batch
    for images, _ in itertools.islice(peer.batches(case, data, 2), count):
        found += map(digest, images)
    return sum(image in wanted for image in found), len(found)


def main():
    leat, data = sys.argv[1:]
    pixels.random = Still()
    for case in cases.CELLS_JPEG, cases.CELLS_PNG:
        compare_cells(leat, f"{data}/{case.name}", case)
    for name, case in itertools.product(IN_PLACE, cases.CASES.values()):
        try:
            same, count = in_place(name, case, f"{data}/{case.name}")
        except ModuleNotFoundError as why:
            print(f"pixels of {case.name}, {name}: {why}")
            continue
        print(f"pixels of {case.name}, {name}: {same} of {count} images equal to torch_cv's")


if __name__ == "__main__":
    main()
