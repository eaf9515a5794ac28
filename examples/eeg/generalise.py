"""Apply the models of each time bin of a subject to every other bin: does what was learned early still hold later?

Test trials only: a fold's model is applied to the trials that it was not trained on, in all bins.
"""
import argparse
import pathlib

import numpy as np


def load(path):
    """Models and folds of a bin, as decode.py saved them."""
    with np.load(path) as file:
        arrays = dict(file)
    ends = np.cumsum(arrays["sizes"])
    models = []
    for bias, size, end in zip(arrays["bias"], arrays["sizes"], ends):
        parts = {name: arrays[name][..., end - size:end] for name in ("features", "mean", "scale", "weights")}
        models.append({"bias": bias, **parts})
    return models, arrays["fold"]


def votes(model, x):
    """As predict() in decode.py, for any number of bins: x is [bin, trial, feature]."""
    first = ((x[..., model["features"]] - model["mean"]) / model["scale"]) @ model["weights"].T + model["bias"] > 0
    a, b, c = first[..., 0], first[..., 1], first[..., 2]
    return np.stack([a * 1 + b, ~a * 1 + c, ~b * 1 + ~c]).argmax(0).astype(np.int8)


def generalise(trained, epochs):
    """Predictions [train bin, test bin, trial]. `trained` has models and folds of every bin."""
    predicted = np.zeros((len(trained), *epochs.shape[:2]), np.int8)
    for number in range(len(trained[0][0])):
        test = trained[0][1] == number
        x = np.asarray(epochs[:, test], np.float64)
        for row, (models, _) in zip(predicted, trained):
            row[:, test] = votes(models[number], x)
    return predicted


def in_order(folder):
    """Entries of a folder with one file per bin: 1, 2, ... 10, ..."""
    return sorted(pathlib.Path(folder).iterdir(), key=lambda path: int(path.stem))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("decode", help="folder with the result of decode.py for each bin")
    parser.add_argument("epochs", help="float32 [bin, trial, feature]")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    trained = [load(path) for path in in_order(args.decode)]
    predicted = generalise(trained, np.load(args.epochs, mmap_mode="r"))
    with open(args.out, "wb") as file:
        np.savez(file, predicted=predicted, fold=trained[0][1])


if __name__ == "__main__":
    main()
