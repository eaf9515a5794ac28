"""Grain over files in class folders, with OpenCV: on threads (workers 0) or in worker processes."""
import grain
import numpy as np

from peers import files, pixels


class Prepare(grain.transforms.Map):
    def __init__(self, function):
        self.function = function

    def map(self, item):
        path, label = item
        return self.function(files.read(path)), np.int64(label)


def batches(case, data, workers):
    images = (grain.MapDataset.source(files.listing(data)).shuffle(seed=1).repeat()
              .map(Prepare(pixels.function("cv", case))))
    threads = grain.ReadOptions(num_threads=1 if workers else 2, prefetch_buffer_size=4 * case.batch)
    images = images.to_iter_dataset(threads).batch(case.batch, drop_remainder=True)
    if workers:
        images = images.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers, per_worker_buffer_size=2))
    return images
