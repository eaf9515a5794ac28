"""cells_torch.py DATA: finds parasites in blood cells with PyTorch.

DATA is a folder of images, made with `make_cells cells --count 2000`, or a pattern of the files that
`leat pack cells --output cells --shards 4` makes of it. Stop it and start it again: it goes on behind the last
batch it trained on.

With `--compare` it measures instead: an epoch that is fed by PyTorch's DataLoader in the loop, without worker
processes, and one that is fed by Leat, both with one thread of PyTorch on the CPU. The network gets as wide as it
takes for its steps to last as long as the loading, or `--width`: then to load ahead saves most.
"""
import argparse
import itertools
import json
import math
import os
import pathlib
import statistics
import time

import numpy as np

import leat

try:
    import torch
    from torch import nn
except ModuleNotFoundError as missing:
    raise SystemExit(f"there is no module {missing.name}: pip install torch") from None
try:
    from PIL import Image
except ModuleNotFoundError:
    Image = None  # only --compare needs it

SIDE, BATCH = 100, 32
CHECKPOINT = "cells_torch.json"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--width", type=int, default=0, help="channels of the first layer (8)")
    parser.add_argument("--compare", action="store_true", help="measure; DATA has to be a folder")
    return parser.parse_args()


def network(width):
    """Five layers of convolutions."""
    return nn.Sequential(nn.Conv2d(3, width, 5, stride=2), nn.ReLU(),
                         nn.Conv2d(width, 2 * width, 3, stride=2), nn.ReLU(),
                         nn.Conv2d(2 * width, 2 * width, 3), nn.ReLU(),
                         nn.Conv2d(2 * width, 4 * width, 3, stride=2), nn.ReLU(),
                         nn.Conv2d(4 * width, 4 * width, 3), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16 * width, 2))


def step(model, optimizer, image, label):
    """Learns from one batch, and tells the loss and how many were right."""
    scores = model(image)
    loss = nn.functional.cross_entropy(scores, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item(), (scores.argmax(1) == label).sum().item()


def leat_loader(data, device, epochs=0):
    cells = leat.folder(data) if os.path.isdir(data) else leat.tfrecord(data).example(image=bytes, label=int)
    feed = (cells.shuffle().decode().resize(SIDE, SIDE).scale(1 / 255).random_flip().random_brightness(0.1)
            .layout("chw").batch(BATCH).feed(seed=1, epochs=epochs))
    return leat.torch.DataLoader(feed, device=device, fields=("image", "label"))


def train(args):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = leat_loader(args.data, device)
    if os.path.exists(CHECKPOINT):
        with open(CHECKPOINT) as file:
            loader.load_state_dict(json.load(file))
    model = network(args.width or 8).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    while loader.feed.epoch < args.epochs:
        epoch, right, count = loader.feed.epoch, 0, 0
        for image, label in loader:
            loss, hits = step(model, optimizer, image, label)
            right, count = right + hits, count + len(label)
            with open(CHECKPOINT, "w") as file:
                json.dump(loader.state_dict(), file)
        if count:  # a checkpoint of an epoch's last batch leaves nothing of that epoch
            print(f"epoch {epoch}: loss {loss:.3f}, {right / count:.0%} right, "
                  f"limited by {loader.feed.stats()['limit']}")


# ---- how long it takes ----

class Cells(torch.utils.data.Dataset):
    """The same work in Python, as it is usually written."""

    def __init__(self, folder):
        self.files = sorted(pathlib.Path(folder).glob("*/*.jpg"))
        self.classes = sorted({file.parent.name for file in self.files})

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with Image.open(self.files[i]) as file:
            image = file.convert("RGB").resize((SIDE, SIDE), Image.BILINEAR)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255
        if torch.rand(()) < 0.5:
            pixels = pixels.flip(2)
        return pixels + (torch.rand(()) - 0.5) * 0.2, self.classes.index(self.files[i].parent.name)


def naive_loader(folder):
    return torch.utils.data.DataLoader(Cells(folder), BATCH, shuffle=True, num_workers=0)


def seconds(make, model=None):
    """One epoch of the loader that `make` makes, with the steps of `model` if given."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3) if model else None
    begin = time.perf_counter()
    for image, label in make():
        if model:
            step(model, optimizer, image, label)
    return time.perf_counter() - begin


def fitting_width(naive, batches):
    """How wide the network has to be for a step to take as long as loading its batch, about."""
    few = batches[:10]

    def ratio(width):  # of steps to loading, by turns, for a machine that is not quiet
        model = network(width)
        seconds(lambda: few[:2], model)
        return statistics.median(seconds(lambda: few, model) / seconds(lambda: itertools.islice(naive, len(few)))
                                 for _ in range(3))

    low, high = 4, 8  # multiples of 4, as others are slow
    while high < 1024 and ratio(high) < 1:
        low, high = high, 2 * high
    while high - low > 4:
        middle = (low + high) // 8 * 4
        low, high = (middle, high) if ratio(middle) < 1 else (low, middle)
    return min(low, high, key=lambda width: abs(math.log(ratio(width))))


def compare(args):
    if Image is None:
        raise SystemExit("there is no module PIL: pip install pillow")
    torch.set_num_threads(1)
    naive = naive_loader(args.data)
    batches = list(naive)  # to measure steps without loading; the files are in the system's memory now
    width = args.width or fitting_width(naive, batches)
    model = network(width)

    def fed():  # opened for each epoch, so that nothing is ready before, and nothing is done for the next
        return leat_loader(args.data, "cpu", epochs=1)

    ways = {"naive loading": lambda: seconds(lambda: naive), "steps": lambda: seconds(lambda: batches, model),
            "naive epoch": lambda: seconds(lambda: naive, model), "Leat loading": lambda: seconds(fed),
            "Leat epoch": lambda: seconds(fed, model)}
    taken = {name: [] for name in ways}
    for name in ("steps", "Leat epoch"):  # once unmeasured
        ways[name]()
    for _ in range(args.epochs):
        for name, run in ways.items():
            taken[name].append(run())
    print(f"{len(naive.dataset)} images, width {width}, one thread of PyTorch, medians of {args.epochs} epochs")
    for name, times in taken.items():
        print(f"{name}: {statistics.median(times):.3f} s, from {min(times):.3f} to {max(times):.3f}")
    ratios = [slow / fast for slow, fast in zip(taken["naive epoch"], taken["Leat epoch"])]
    print(f"speed-up: {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    given = arguments()
    run = compare if given.compare else train
    run(given)
