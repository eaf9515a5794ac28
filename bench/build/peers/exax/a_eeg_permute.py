"""permute.py for all subjects, spread over Exax's slices."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
import permute

depend_extra = (permute,)
options = {"raw": "", "subjects": 1}
jobs = ("generalise",)


def analysis(sliceno, slices):
    done, out = jobs.generalise.load(), {}
    for subject in range(sliceno, options.subjects, slices):
        predicted, fold = done[subject]
        labels = np.load(f"{options.raw}/labels-{subject + 1}.npy")
        out[subject] = permute.permute(predicted, labels, fold, 100, np.random.default_rng([1, subject + 1]))
    return out


def synthesis(analysis_res):
    return analysis_res.merge_auto()
