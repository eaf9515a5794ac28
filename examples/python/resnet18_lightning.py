"""resnet18_lightning.py FOLDER: trains ResNet-18 with Lightning, fed by PyTorch's DataLoader and by Leat.

FOLDER holds one folder for each class, such as ImageNet's; `--draw COUNT` makes one of photo-sized pictures. Both
loaders give the same kind of batches to the same Trainer: only the lines that make the loader differ. For each
it prints how many images a second come from the loader alone and through the training, and at last the ratios.

    python resnet18_lightning.py photos --draw 2000 --steps 20
"""
import argparse
import logging
import pathlib
import random
import time
import warnings

import numpy as np

import leat

try:
    import lightning
    import torch
    from PIL import Image
    from torch import nn
except ModuleNotFoundError as missing:
    raise SystemExit(f"there is no module {missing.name}: pip install torch lightning pillow") from None

MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--draw", type=int, metavar="COUNT", help="make the folder, if it is not there")
    parser.add_argument("--loaders", nargs="+", choices=["torch", "leat"], default=["torch", "leat"])
    parser.add_argument("--batch", type=int, default=256, help="images of a batch (256)")
    parser.add_argument("--size", type=int, default=224, help="pixels of a side (224)")
    parser.add_argument("--width", type=int, default=64, help="channels of the first layer (64)")
    parser.add_argument("--workers", type=int, default=4, help="processes of PyTorch's DataLoader (4)")
    parser.add_argument("--threads", type=int, default=0, help="of Leat; 0: all processors")
    parser.add_argument("--batches", type=int, default=20, help="of the loader alone (20); 0: not measured")
    parser.add_argument("--steps", type=int, default=50, help="of training (50), at least 2; 0: none")
    return parser.parse_args()


def draw(folder, count):
    """Pictures of 500 x 375 pixels with shapes and grain, that compress about as photos do."""
    rng = np.random.default_rng(1)
    for i in range(count):
        shapes = Image.fromarray(rng.integers(0, 256, (6, 8, 3), np.uint8)).resize((500, 375), Image.BICUBIC)
        grain = rng.normal(0, 12, (375, 500, 1))
        path = folder / f"class{i % 10}" / f"{i:06}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.clip(shapes + grain, 0, 255).astype(np.uint8)).save(path, quality=90)


# ---- the model ----

class Block(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(before, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))
        self.skip = nn.Identity()
        if stride > 1:
            self.skip = nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(self.path(x) + self.skip(x))


def resnet18(classes, width):
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = width
    for stage in range(4):
        channels = width << stage
        layers += [Block(before, channels, 2 if stage else 1), Block(channels, channels, 1)]
        before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


class Classifier(lightning.LightningModule):
    def __init__(self, classes, width):
        super().__init__()
        self.model = resnet18(classes, width)

    def training_step(self, batch, number):
        image, label = batch
        return nn.functional.cross_entropy(self.model(image), label)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)


# ---- the loaders ----

class Images(torch.utils.data.Dataset):
    """A folder of images as torchvision's ImageFolder, RandomResizedCrop and RandomHorizontalFlip give them."""

    def __init__(self, folder, size):
        self.files, self.size = sorted(folder.glob("*/*.jpg")), size
        self.classes = sorted({file.parent.name for file in self.files})

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with Image.open(self.files[i]) as file:
            image = file.convert("RGB")
        left, top, width, height = part(*image.size)
        image = image.crop((left, top, left + width, top + height)).resize((self.size, self.size), Image.BILINEAR)
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        pixels = (np.asarray(image, np.float32) / 255 - MEAN) / STD
        return torch.from_numpy(pixels.transpose(2, 0, 1).copy()), self.classes.index(self.files[i].parent.name)


def part(width, height):
    """A random part of an image: 8 to 100 % of its area, 3:4 to 4:3."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = (3 / 4) ** random.uniform(-1, 1)
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


def torch_loader(args):
    return torch.utils.data.DataLoader(Images(args.folder, args.size), batch_size=args.batch, shuffle=True,
                                       drop_last=True, num_workers=args.workers,
                                       persistent_workers=args.workers > 0)


def leat_loader(args):
    feed = (leat.folder(args.folder).shuffle().decode(mode="torch")
            .random_resized_crop(args.size, args.size, mode="torch", antialias=True).random_flip()
            .normalize(MEAN * 255, STD * 255).layout("chw")
            .batch(per_rank=args.batch, tail="drop").feed(seed=1, threads=args.threads))
    return leat.torch.DataLoader(feed, fields=("image", "label"))


# ---- how long it takes ----

def load(loader, count):
    """Images a second from the loader alone, its start included: what it has ready in advance costs time, too."""
    begin, left = time.perf_counter(), count
    while left > 0:
        for left, _ in zip(range(left - 1, -1, -1), loader):
            pass
    return count * loader.batch_size / (time.perf_counter() - begin)


def warm_up(classes, args):
    """The first steps of a process are slow, whatever feeds them."""
    model = resnet18(classes, args.width)
    for _ in range(2):
        model(torch.rand(args.batch, 3, args.size, args.size)).sum().backward()


class Clock(lightning.Callback):
    """The time of all steps but the first, waiting for their batches included."""

    def on_train_batch_end(self, trainer, module, outputs, batch, number):
        now = time.perf_counter()
        if trainer.global_step == 1:
            self.begin = now
        self.seconds = now - self.begin


def train(loader, classes, args):
    """Images a second through the whole training."""
    lightning.seed_everything(1, verbose=False)
    clock = Clock()
    trainer = lightning.Trainer(max_steps=args.steps, max_epochs=-1, devices=1, logger=False, callbacks=[clock],
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Classifier(classes, args.width), loader)
    return (trainer.global_step - 1) * loader.batch_size / clock.seconds


def main():
    args = arguments()
    warnings.filterwarnings("ignore", module="lightning")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    if args.draw and not args.folder.exists():
        draw(args.folder, args.draw)
    if not args.folder.is_dir():
        raise SystemExit(f"{args.folder} is no folder; --draw 2000 makes it")
    classes = len([path for path in args.folder.iterdir() if path.is_dir()])
    if args.steps:
        warm_up(classes, args)
    found = {}
    for name in args.loaders:
        loader = {"torch": torch_loader, "leat": leat_loader}[name](args)
        if len(loader) == 0:
            raise SystemExit(f"{args.folder} has fewer images than a batch of {args.batch}")
        if args.batches:
            found[name, "loading"] = load(loader, args.batches)
        if args.steps:
            found[name, "training"] = train(loader, classes, args)
        for kind in ("loading", "training"):
            if (name, kind) in found:
                print(f"{name}: {kind} {found[name, kind]:.1f} images/s", flush=True)
        del loader
    for kind in ("loading", "training"):
        if ("torch", kind) in found and ("leat", kind) in found:
            print(f"speed-up of {kind}: {found['leat', kind] / found['torch', kind]:.2f}")


if __name__ == "__main__":
    main()
