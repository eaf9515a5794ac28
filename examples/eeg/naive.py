"""The whole analysis as one program, as it is often written: no reuse, one process. For comparison.

    python naive.py raw results.npz
"""
import argparse
import pathlib

import numpy as np

from decode import ALPHA, FOLDS, GRID, decode
from generalise import generalise
from group import group
from permute import permute


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=pathlib.Path)
    parser.add_argument("out")
    args = parser.parse_args()
    counted = []
    for number in range(1, len(list(args.raw.glob("subject-*.npy"))) + 1):
        epochs, labels = np.load(args.raw / f"subject-{number}.npy"), np.load(args.raw / f"labels-{number}.npy")
        done = [decode(x, labels, FOLDS, ALPHA, GRID, 1) for x in epochs]
        predicted = generalise([(models, fold) for _, fold, models in done], epochs)
        counted.append(permute(predicted, labels, done[0][1], 100, np.random.default_rng([1, number])))
    result = group(np.stack(counted), 3)
    np.savez(args.out, **result)
    print(f"significant bins: {(np.flatnonzero(result['significant']) + 1).tolist()}")


if __name__ == "__main__":
    main()
