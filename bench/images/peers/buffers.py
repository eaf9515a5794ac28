"""A ring of batches that are written in place: images and labels, allocated once."""
import queue

import numpy as np


class Ring:
    def __init__(self, case, count):
        self.free = queue.SimpleQueue()
        for _ in range(count):
            # Written once, so that no page is new when images are decoded into it.
            self.free.put((np.zeros((case.batch, *case.shape), np.float32), np.zeros(case.batch, np.int64)))

    def take(self):
        """A batch that nobody uses; waits for one."""
        return self.free.get()

    def lend(self, batches):
        """Yields each batch, and takes it back when the next one is wanted."""
        for batch in batches:
            yield batch
            self.free.put(batch)
