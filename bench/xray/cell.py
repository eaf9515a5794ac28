"""One cell of the study: cell.py SETTINGS, a JSON object. Prints its figures as a line of JSON.

Trains on photos, from a folder or a web server, in a plain loop or with Lightning, fed by PyTorch's DataLoader or by Leat.
The device is a stand-in that sleeps for a fixed time per batch, or ResNet-18 on the CPU. Both loaders give the same kind
of batches: crop of 224 x 224 pixels, flip, normalize, channels first.
"""
import http.client
import json
import logging
import math
import pathlib
import random
import sys
import time
import urllib.parse
import warnings

import lightning
import numpy as np
import torch
from PIL import Image
from torch import nn

import leat

SIZE = 224
MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


# ---- PyTorch's loader ----

class Compose:
    def __init__(self, *transforms):
        self.transforms = list(transforms)

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class RandomResizedCrop:
    def __call__(self, image):
        left, top, width, height = self.box(*image.size)
        return image.resize((SIZE, SIZE), Image.BILINEAR, box=(left, top, left + width, top + height))

    @staticmethod
    def box(width, height):
        for _ in range(10):
            area = width * height * random.uniform(0.08, 1)
            ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                return random.randint(0, width - w), random.randint(0, height - h), w, h
        side = min(width, height)
        return (width - side) // 2, (height - side) // 2, side, side


class RandomFlip:
    def __call__(self, image):
        return image.transpose(Image.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


class ToTensor:
    def __call__(self, image):
        return torch.from_numpy(np.asarray(image, np.float32).transpose(2, 0, 1) / 255)


class Normalize:
    mean, std = torch.from_numpy(MEAN)[:, None, None], torch.from_numpy(STD)[:, None, None]

    def __call__(self, pixels):
        return (pixels - self.mean) / self.std


class Photos(torch.utils.data.Dataset):
    """Photos in a folder or below a URL, one request after another over one connection of each worker."""

    def __init__(self, place, names):
        self.place, self.names, self.connection = place, names, None
        self.transform = Compose(RandomResizedCrop(), RandomFlip(), ToTensor(), Normalize())

    def __len__(self):
        return len(self.names)

    def read(self, name):
        if "://" not in self.place:
            return open(f"{self.place}/{name}", "rb")
        if self.connection is None:
            self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.place).netloc)
        self.connection.request("GET", f"{urllib.parse.urlsplit(self.place).path}/{name}")
        return self.connection.getresponse()

    def __getitem__(self, i):
        name, label = self.names[i]
        with self.read(name) as file:
            data = file.read()
        import io
        return self.transform(Image.open(io.BytesIO(data)).convert("RGB")), label


def pytorch_loader(s):
    lines = pathlib.Path(s["index"]).read_text().splitlines()[1:]
    names = [(name, int(label)) for name, label in (line.split(",") for line in lines)][:s["images"]]
    return torch.utils.data.DataLoader(Photos(s["place"], names), batch_size=s["batch"], shuffle=True,
                                       num_workers=s["workers"])


def leat_loader(s):
    pipeline = (leat.list(f"{s['place']}/list.csv").take(s["images"]).shuffle().decode(mode="torch")
                .random_resized_crop(SIZE, SIZE, mode="torch", antialias=True).random_flip()
                .normalize(MEAN * 255, STD * 255).layout("chw").batch(s["batch"]))
    return leat.torch.DataLoader(pipeline, fields=("image", "label"), seed=1)


# ---- devices ----

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


def resnet18(classes, width=64):
    layers, before = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                      nn.MaxPool2d(3, 2, 1)], width
    for stage in range(4):
        channels = width << stage
        layers += [Block(before, channels, 2 if stage else 1), Block(channels, channels, 1)]
        before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


class StandIn(nn.Module):
    """Busy for a fixed time with each batch, without the CPU."""

    def __init__(self, ms):
        super().__init__()
        self.seconds, self.weight = ms / 1000, nn.Parameter(torch.zeros(()))

    def loss(self, image, label):
        time.sleep(self.seconds)
        return self.weight ** 2


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = resnet18(1000)

    def loss(self, image, label):
        return nn.functional.cross_entropy(self.layers(image), label % 1000)


def optimizer(model):
    return torch.optim.SGD(model.parameters(), 0.1, weight_decay=1e-4)


# ---- loops ----

def plain(s, model, loader):
    update, watched = optimizer(model), leat.watch(loader, report=s["out"] + ".html")
    for _ in range(s["epochs"]):
        for batch in watched:
            with leat.tag("Training batch to device"):
                image, label = (tensor.to("cpu") for tensor in batch)
            with leat.tag("Run training batch"):
                update.zero_grad()
                model.loss(image, label).backward()
                update.step()
    return watched.result


def with_lightning(s, model, loader):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, number):
            return self.model.loss(*batch)

        def configure_optimizers(self):
            return optimizer(self)

    xray = leat.lightning.XrayCallback(report=s["out"] + ".html")
    lightning.Trainer(max_epochs=s["epochs"], accelerator="cpu", logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False, callbacks=[xray]).fit(Module(), loader)
    return xray.result


def main():
    s = json.loads(sys.argv[1])
    warnings.filterwarnings("ignore")
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    torch.manual_seed(1)
    model = StandIn(s["step_ms"]) if s["device"] == "stand-in" else ResNet()
    begin = time.monotonic()
    loader = (pytorch_loader if s["loader"] == "PyTorch" else leat_loader)(s)
    result = (plain if s["loop"] == "plain" else with_lightning)(s, model, loader)
    runtime = time.monotonic() - begin
    seen = result()
    out = pathlib.Path(s["out"])
    seen.trace(out.with_suffix(".trace.json"))
    busy = sum(span.end - span.begin for span in seen._lanes[0] if span.tag == 2) / 1e9
    print(json.dumps({"runtime_s": runtime, "images": seen.samples, "images_per_s": seen.samples / runtime,
                      "waited": seen.wait_share, "idle": 1 - min(1, busy / runtime), "busy": min(1, busy / runtime),
                      "first_batch_s": seen.first_batch_ms / 1000, "sentence": seen.sentence}))


if __name__ == "__main__":
    main()
