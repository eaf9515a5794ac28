"""generalise.py for all subjects, spread over Exax's slices."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
import generalise

depend_extra = (generalise,)
options = {"raw": "", "subjects": 1, "bins": 1}
jobs = ("decode",)


def analysis(sliceno, slices):
    done, out = jobs.decode.load(), {}
    for subject in range(sliceno, options.subjects, slices):
        trained = [(done[subject, one][2], done[subject, one][1]) for one in range(options.bins)]
        epochs = np.load(f"{options.raw}/subject-{subject + 1}.npy", mmap_mode="r")
        out[subject] = generalise.generalise(trained, epochs), trained[0][1]
    return out


def synthesis(analysis_res):
    return analysis_res.merge_auto()
