"""A plain pool of threads: OpenCV on encoded images in memory, straight into the rows of a batch.

No DataLoader, no processes, no queue of images. Each thread does a part of every batch, and the next batch is begun
before one is handed over.
"""
import collections
import concurrent.futures

from peers import files, pixels
from peers.buffers import Ring

AHEAD = 2  # batches


def batches(case, data, workers):
    fill, ring = pixels.filler(case), Ring(case, AHEAD + 1)
    pool = concurrent.futures.ThreadPoolExecutor(workers)

    def work(batch, samples, first):
        for i in range(first, case.batch, workers):
            fill(samples[i][0], batch[0][i])
            batch[1][i] = samples[i][1]

    def begun():
        """Batches that are done, with AHEAD more begun."""
        waiting = collections.deque()
        for samples in files.endless_batches(data, case.batch):
            batch = ring.take()
            waiting.append((batch, [pool.submit(work, batch, samples, first) for first in range(workers)]))
            if len(waiting) > AHEAD:
                batch, parts = waiting.popleft()
                for part in parts:
                    part.result()
                yield batch

    return ring.lend(begun())
