"""examples/eeg with joblib.Memory and its worker processes: eeg_joblib.py SUBJECTS BINS JOBS."""
import pathlib
import shutil
import sys

import numpy as np
from joblib import Memory, Parallel, delayed

import decode as decoding
import generalise as generalising
import group as grouping
import permute as permuting
import plot_matrix
import plot_time

memory = Memory(".joblib", verbose=0)


def raw(subject):
    return np.load(f"raw/subject-{subject}.npy", mmap_mode="r"), np.load(f"raw/labels-{subject}.npy")


def decode(subject, number):
    epochs, labels = raw(subject)
    return decoding.decode(epochs[number - 1], labels, decoding.FOLDS, decoding.ALPHA, decoding.GRID, 1)


def generalise(subject, done):
    return generalising.generalise([(models, fold) for _, fold, models in done], raw(subject)[0])


def permute(subject, predicted, fold):
    return permuting.permute(predicted, raw(subject)[1], fold, 100, np.random.default_rng([1, subject]))


def group(counted):
    return grouping.group(np.stack(counted), 3)


def plot(result, name):
    import figure

    shutil.rmtree(f"out/{name}", ignore_errors=True)
    pathlib.Path("out").mkdir(exist_ok=True)
    figure.save({"time": plot_time, "matrix": plot_matrix}[name].draw(result), f"out/{name}", name)


def main(subjects, bins, jobs):
    cached = {f.__name__: memory.cache(f) for f in (decode, generalise, permute, group)}
    pool = Parallel(n_jobs=jobs)
    numbers = [(subject, one) for subject in range(1, subjects + 1) for one in range(1, bins + 1)]
    done = pool(delayed(cached["decode"])(*one) for one in numbers)
    mine = [done[bins * i:bins * (i + 1)] for i in range(subjects)]
    predicted = pool(delayed(cached["generalise"])(i + 1, one) for i, one in enumerate(mine))
    counted = pool(delayed(cached["permute"])(i + 1, one, mine[i][0][1]) for i, one in enumerate(predicted))
    result = cached["group"](counted)
    for name in "time", "matrix":
        plot(result, name)


if __name__ == "__main__":
    import eeg_joblib  # so that functions are remembered by the name of the module, not as those of __main__

    eeg_joblib.main(*map(int, sys.argv[1:]))
