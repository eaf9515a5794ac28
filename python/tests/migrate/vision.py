"""`datasets` and `transforms` of torchvision, or what the scripts here use of them where there is no torchvision."""
import math
import pathlib
import random
from types import SimpleNamespace

import numpy as np
import torch
from PIL import Image


class ImageFolder(torch.utils.data.Dataset):
    def __init__(self, root, transform=None):
        files = sorted(path for path in pathlib.Path(root).glob("*/*") if path.is_file())
        self.classes = sorted({path.parent.name for path in files})
        self.samples = [(path, self.classes.index(path.parent.name)) for path in files]
        self.transform = transform

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        path, label = self.samples[i]
        with Image.open(path) as file:
            image = file.convert("RGB")
        return (self.transform(image) if self.transform else image), label


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, value):
        for transform in self.transforms:
            value = transform(value)
        return value


class RandomResizedCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, image):
        width, height = image.size
        for _ in range(10):
            area = width * height * random.uniform(0.08, 1)
            ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                break
        else:
            w = h = min(width, height)
        left, top = random.randint(0, width - w), random.randint(0, height - h)
        return image.crop((left, top, left + w, top + h)).resize((self.size, self.size), Image.BILINEAR)


class RandomHorizontalFlip:
    def __call__(self, image):
        return image.transpose(Image.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


class ToTensor:
    def __call__(self, image):
        return torch.from_numpy(np.asarray(image).transpose(2, 0, 1).copy()).float() / 255


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = (torch.tensor(values)[:, None, None] for values in (mean, std))

    def __call__(self, image):
        return (image - self.mean) / self.std


try:
    from torchvision import datasets, transforms
except (ImportError, RuntimeError):  # the latter when it was built for another PyTorch
    datasets = SimpleNamespace(ImageFolder=ImageFolder)
    transforms = SimpleNamespace(Compose=Compose, RandomResizedCrop=RandomResizedCrop, ToTensor=ToTensor,
                                 RandomHorizontalFlip=RandomHorizontalFlip, Normalize=Normalize)
