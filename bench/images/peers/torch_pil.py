"""PyTorch's DataLoader over files in class folders, with Pillow and torchvision."""
import torch

from peers import files, pixels

LIBRARY = "pil"


class Images(torch.utils.data.Dataset):
    def __init__(self, data, function):
        self.items = files.listing(data)
        self.function = function

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        path, label = self.items[number]
        return self.function(files.read(path)), label


class Endless(torch.utils.data.Sampler):
    """One random order after the other, so that an epoch's end empties no queue."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        while True:
            yield from torch.randperm(self.count).tolist()


def batches(case, data, workers, library=LIBRARY):
    images = Images(data, pixels.function(library, case))
    # One for each worker is PyTorch's default. Without workers a second one gains little on tensors of one image,
    # and where the CPUs are shared its waiting in a loop costs a lot.
    torch.set_num_threads(1)
    return torch.utils.data.DataLoader(images, batch_size=case.batch, sampler=Endless(len(images)),
                                       num_workers=workers)
