"""same_pixels.py LEAT DATA: whether the cells' pixels are the same in Leat and in tf.data, but for what is random.

Both decode, resize, scale and rotate the first cells of each kind. Prints how many values are equal and the largest
difference of any value.
"""
import subprocess
import sys
import tempfile

import numpy as np

import cases
from peers import tfdata  # before tensorflow, which it keeps quiet
import tensorflow as tf
from peers import files

COUNT = 64


def of_leat(leat, data, folder):
    spec = (f"tfrecord('{data}/packed-*.tfrecord') | example(image=bytes, label=int64) | take({COUNT}) | decode"
            f" | resize(100, 100) | scale(1/255) | rotate({cases.ANGLE}deg)")
    subprocess.run([leat, "convert", "--quiet", "--format", "npy", "--output", folder, spec], check=True,
                   stdout=subprocess.DEVNULL)
    return np.load(f"{folder}/image.npy")


def of_tf(data, png):
    features = {"image": tf.io.FixedLenFeature([], tf.string)}
    records = tf.data.TFRecordDataset(files.shard_names(data, ".tfrecord")).take(COUNT)
    encoded = (tf.io.parse_single_example(record, features)["image"] for record in records)
    return np.stack([tfdata.turn(tfdata.still_cell(data, png)) for data in encoded])


def main():
    leat, data = sys.argv[1:]
    for case in cases.CELLS_JPEG, cases.CELLS_PNG:
        with tempfile.TemporaryDirectory() as folder:
            one = of_leat(leat, f"{data}/{case.name}", f"{folder}/out")
        other = of_tf(f"{data}/{case.name}", case is cases.CELLS_PNG)
        print(f"pixels of {case.name}: {np.mean(one == other):.4%} equal to tf.data's, "
              f"largest difference {np.abs(one - other).max():.2g}")


if __name__ == "__main__":
    main()
