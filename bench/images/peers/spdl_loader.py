"""SPDL's pipeline: its threads run OpenCV on encoded images in memory, a batch each, straight into its rows."""
from spdl.pipeline import PipelineBuilder

from peers import files, pixels
from peers.buffers import Ring

SINK = 2  # batches that are ready


def batches(case, data, workers):
    # One for each thread and place in a queue, and one that is handed over: none of them waits for a batch.
    fill, ring = pixels.filler(case), Ring(case, workers + SINK + 4)

    def work(samples):
        images, labels = batch = ring.take()
        for i, (encoded, label) in enumerate(samples):
            fill(encoded, images[i])
            labels[i] = label
        return batch

    pipeline = (PipelineBuilder().add_source(files.endless_batches(data, case.batch)).pipe(work, concurrency=workers)
                .add_sink(SINK).build(num_threads=workers))
    with pipeline.auto_stop():
        yield from ring.lend(pipeline)
