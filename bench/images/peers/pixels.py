"""The same work by Pillow and by OpenCV, for all loaders that leave it to Python.

`function` gives one that makes a float32 array or tensor, in case.shape's order, of an encoded image; `filler` one that
writes it to an array that is there.
The cheapest order of steps is taken where the result is the same: pixels are moved while they are bytes.
"""
import functools
import io
import math
import random

import cv2
import numpy as np
import torch
from PIL import Image

import cases

try:
    from torchvision import transforms
except RuntimeError:
    # Its wheel was built for another device than torch's: then its compiled part does not load, and it misses two
    # operators, which nothing here uses.
    for operator in "nms", "qnms":
        torch.library.define(f"torchvision::{operator}", "(Tensor dets, Tensor scores, float threshold) -> Tensor")
    from torchvision import transforms

cv2.setNumThreads(0)  # the loader's workers are the threads

torch_photo = transforms.Compose([
    transforms.RandomResizedCrop(224, antialias=True),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize(cases.MEAN, cases.STD),
])


def pil_photo(data):
    return torch_photo(Image.open(io.BytesIO(data)).convert("RGB"))


def jitter(image):
    """Brightness and contrast as tf.image has them, in place."""
    image += random.uniform(-cases.BRIGHTNESS, cases.BRIGHTNESS)
    mean = image.mean((0, 1))
    factor = random.uniform(*cases.CONTRAST)
    image *= factor
    image += (1 - factor) * mean
    return image


def pil_cell(data):
    image = Image.open(io.BytesIO(data)).convert("RGB").resize((100, 100), Image.Resampling.BILINEAR)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    image = image.rotate(cases.ANGLE, Image.Resampling.NEAREST)
    image = np.asarray(image, np.float32)
    image *= np.float32(1 / 255)
    return jitter(image)


def cv_decode(data):
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)


FACTOR = np.float32([1 / 255 / s for s in cases.STD])
OFFSET = np.float32([m / s for m, s in zip(cases.MEAN, cases.STD)])


def crop_box(height, width):
    """torchvision's RandomResizedCrop without its tensors."""
    for _ in range(10):
        area = height * width * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, height - h), random.randint(0, width - w), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side


def fill_photo(data, out):
    """INTER_AREA is OpenCV's antialiasing; it does not widen the filter for images that grow, as PIL's does not."""
    image = cv_decode(data)
    top, left, h, w = crop_box(*image.shape[:2])
    image = image[top:top + h, left:left + w]
    image = cv2.resize(image, (224, 224), interpolation=cv2.INTER_AREA if h > 224 or w > 224 else cv2.INTER_LINEAR)
    if random.random() < 0.5:
        image = cv2.flip(image, 1)
    for c, plane in enumerate(cv2.split(image)):
        np.multiply(plane, FACTOR[c], out=out[c])
        out[c] -= OFFSET[c]


TURN = cv2.getRotationMatrix2D((49.5, 49.5), cases.ANGLE, 1)


def fill_cell(data, out):
    """Scale, brightness and contrast are one factor and one offset for each channel: x * factor + offset."""
    image = cv2.resize(cv_decode(data), (100, 100), interpolation=cv2.INTER_LINEAR)
    if random.random() < 0.5:
        image = cv2.flip(image, 1)
    image = cv2.warpAffine(image, TURN, (100, 100), flags=cv2.INTER_NEAREST)
    brightness, factor = random.uniform(-cases.BRIGHTNESS, cases.BRIGHTNESS), random.uniform(*cases.CONTRAST)
    offset = tuple(brightness + (1 - factor) * mean / 255 for mean in cv2.mean(image))
    np.multiply(image, np.float32(factor / 255), out=out)
    cv2.add(out, offset, dst=out)


def filler(case):
    """A function that writes an encoded image to a row of a batch, by OpenCV."""
    return fill_photo if case is cases.PHOTOS else fill_cell


def function(library, case):
    """A function that makes an array or a tensor of an encoded image."""
    if library == "pil":
        return pil_photo if case is cases.PHOTOS else pil_cell
    return functools.partial(cv_image, filler(case), case.shape)


def cv_image(fill, shape, data):
    out = np.empty(shape, np.float32)
    fill(data, out)
    return out
