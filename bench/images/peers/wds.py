"""WebDataset over tar files, with Pillow or OpenCV, whichever the name says."""
import torch
import webdataset

from peers import files, pixels


def batches(case, data, workers, library="cv"):
    function = pixels.function(library, case)
    torch.set_num_threads(1 if workers else 2)
    # Every worker has its own share of the shards; repeat makes them endless.
    images = (webdataset.WebDataset(files.shard_names(data, ".tar"), shardshuffle=8, nodesplitter=None)
              .repeat().shuffle(500)
              .map(lambda sample: (function(sample["png" if "png" in sample else "jpg"]), int(sample["cls"]))))
    return torch.utils.data.DataLoader(images, batch_size=case.batch, num_workers=workers,
                                       prefetch_factor=4 if workers else None)
