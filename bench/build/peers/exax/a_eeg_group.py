"""group.py, as a method of Exax."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
import group

depend_extra = (group,)
jobs = ("permute",)


def synthesis():
    done = jobs.permute.load()
    return group.group(np.stack([done[subject] for subject in sorted(done)]), 3)
