"""WebDataset over tar files in worker processes, with OpenCV."""
import torch
import webdataset

from peers import files, pixels


def batches(case, data, workers):
    function = pixels.function("cv", case)
    torch.set_num_threads(1)
    # Every worker has its own share of the shards; repeat makes them endless.
    images = (webdataset.WebDataset(files.shard_names(data, ".tar"), shardshuffle=8, nodesplitter=None)
              .repeat().shuffle(500)
              .map(lambda sample: (function(sample["png" if "png" in sample else "jpg"]), int(sample["cls"]))))
    return torch.utils.data.DataLoader(images, batch_size=case.batch, num_workers=workers)
