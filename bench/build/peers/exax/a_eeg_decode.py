"""decode.py for all subjects and bins, spread over Exax's slices."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
import decode

depend_extra = (decode,)
options = {"raw": "", "subjects": 1, "bins": 1}


def analysis(sliceno, slices):
    done = {}
    for number in range(sliceno, options.subjects * options.bins, slices):
        subject, one = divmod(number, options.bins)
        epochs = np.load(f"{options.raw}/subject-{subject + 1}.npy", mmap_mode="r")
        labels = np.load(f"{options.raw}/labels-{subject + 1}.npy")
        done[subject, one] = decode.decode(epochs[one], labels, decode.FOLDS, decode.ALPHA, decode.GRID, 1)
    return done


def synthesis(analysis_res):
    return analysis_res.merge_auto()
