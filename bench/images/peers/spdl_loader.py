"""SPDL's pipeline: its threads run OpenCV and NumPy, which free the GIL for most of their work."""
import random

import numpy as np
from spdl.pipeline import PipelineBuilder

from peers import files, pixels


def endless(data):
    items = files.listing(data)
    while True:
        random.shuffle(items)
        yield from items


def batches(case, data, workers):
    function = pixels.function("cv", case)

    def prepare(item):
        path, label = item
        return function(files.read(path)), label

    def collate(samples):
        return np.stack([image for image, _ in samples]), np.array([label for _, label in samples])

    pipeline = (PipelineBuilder().add_source(endless(data)).pipe(prepare, concurrency=workers)
                .aggregate(case.batch, drop_last=True).pipe(collate).add_sink(2).build(num_threads=workers))
    with pipeline.auto_stop():
        yield from pipeline
