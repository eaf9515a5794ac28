"""cells_keras.py 'cells-*.tfrecord': finds parasites in blood cells with Keras on TensorFlow.

The files are those that `leat pack cells --output cells --shards 4` makes of a folder of images. The first four
fifths of the samples train, the rest tells how well. The pixels are those of tf.image.

With `--compare` it measures instead, on a folder such as `make_cells cells --count 2000` draws: epochs of the same
network that are fed by Python in the loop, with a PyDataset, and by Leat.
"""
import argparse
import pathlib
import statistics
import time

import numpy as np

import leat

try:
    import keras
    import tensorflow  # noqa: F401, what Keras works with here
except ModuleNotFoundError as missing:
    raise SystemExit(f"there is no module {missing.name}: pip install tensorflow") from None

SIDE, BATCH = 100, 32


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a pattern of files; with --compare a folder")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--compare", action="store_true", help="measure")
    return parser.parse_args()


def network():
    """Five layers of convolutions."""
    layers = [keras.layers.Conv2D(channels, kernel, strides=stride, activation="relu")
              for channels, kernel, stride in ((8, 5, 2), (16, 3, 2), (16, 3, 1), (32, 3, 2), (32, 3, 1))]
    model = keras.Sequential([keras.Input((SIDE, SIDE, 3)), *layers, keras.layers.Flatten(), keras.layers.Dense(2)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def prepared(samples):
    return samples.decode().resize(SIDE, SIDE).scale(1 / 255)


def augmented(samples):
    return prepared(samples.shuffle()).random_flip().random_contrast(0.9, 1.1).batch(BATCH)


def train(args):
    cells = leat.tfrecord(args.data).example(image=bytes, label=int)
    count = cells.batch(BATCH).feed().samples
    some = augmented(cells.take(count * 4 // 5)).feed(seed=1)
    rest = prepared(cells.skip(count * 4 // 5)).batch(BATCH).feed()
    network().fit(some.tensorflow("image", "label"), epochs=args.epochs, verbose=2,
                  validation_data=rest.tensorflow("image", "label"))


# ---- how long it takes ----

class Cells(keras.utils.PyDataset):
    """The same work in Python, a batch at a time, as it is usually written."""

    def __init__(self, folder):
        super().__init__()
        self.files = sorted(pathlib.Path(folder).glob("*/*.jpg"))
        self.classes = sorted({file.parent.name for file in self.files})
        self.rng = np.random.default_rng(1)
        self.on_epoch_end()

    def on_epoch_end(self):
        self.rng.shuffle(self.files)

    def __len__(self):
        return -(-len(self.files) // BATCH)

    def sample(self, file):
        pixels = keras.utils.img_to_array(keras.utils.load_img(file, target_size=(SIDE, SIDE))) / 255
        if self.rng.random() < 0.5:
            pixels = pixels[:, ::-1]
        mean = pixels.mean((0, 1))
        return (pixels - mean) * self.rng.uniform(0.9, 1.1) + mean

    def __getitem__(self, i):
        files = self.files[i * BATCH:(i + 1) * BATCH]
        labels = [self.classes.index(file.parent.name) for file in files]
        return np.stack([self.sample(file) for file in files]).astype(np.float32), np.array(labels)


def compare(args):
    fed = augmented(leat.folder(args.data)).feed(seed=1)
    loaders = {"Python": Cells(args.data), "Leat": fed.tensorflow().dataset("image", "label")}
    model, taken = network(), {name: [] for name in loaders}
    for epoch in range(args.epochs + 1):  # the first one is not measured: graphs are made
        for name, loader in loaders.items():
            begin = time.perf_counter()
            model.fit(loader, verbose=0, shuffle=False)
            if epoch:
                taken[name].append(time.perf_counter() - begin)
    for name, times in taken.items():
        print(f"{name}: {statistics.median(times):.3f} s for an epoch, from {min(times):.3f} to {max(times):.3f}")
    ratios = [slow / fast for slow, fast in zip(*taken.values())]
    print(f"speed-up: {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    given = arguments()
    run = compare if given.compare else train
    run(given)
