#!/usr/bin/env python3
"""make_eval.py: what torchvision and TensorFlow make of images of several shapes before evaluation, and what Pillow
reads from masks, for tests/unit/test_golden.c.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install \
        numpy==2.4.6 pillow==13.0.0 torch==2.13.0 torchvision==0.28.0 tensorflow-cpu==2.21.0
    /tmp/golden/bin/python tests/golden/make_eval.py

Writes tests/golden/eval.tar: images (.png), pixels as .npy, and cases.json, which says which spec turns which image
into which pixels. `exact` cases agree in every bit, others within 1e-5.
"""
import io
import json
import os
import struct
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import numpy as np
import PIL
import tensorflow as tf
import torch
import torchvision
from PIL import Image
from torchvision import transforms
from torchvision.transforms import v2

import archive

HERE = archive.begin("eval")
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SHORTER, CROP, SIDES = 12, 10, (9, 25)  # 256 and 224 in life; some images get smaller, some larger
NORMALIZE = f"scale(1/255) | normalize({MEAN}, {STD})"
cases = []


def photo(height, width):
    """Smooth waves with some noise, with edges and all values."""
    noise = np.random.RandomState(height).randn(height, width, 3)
    y, x = np.mgrid[:height, :width]
    waves = [127 + 130 * np.sin(x / 3.0 + y / 7.0 * (c + 1) + c) for c in range(3)]
    return (np.stack(waves, -1) + 9 * noise).clip(0, 255).astype(np.uint8)


def case(name, spec, source, result, exact):
    result = np.ascontiguousarray(result.numpy() if hasattr(result, "numpy") else result)
    np.save(HERE / f"out-{name}.npy", result)
    cases.append({"name": name, "spec": spec, "in": source, "out": f"out-{name}.npy", "exact": exact})


def save(name, image):
    file = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(file, "PNG")
    (HERE / name).write_bytes(file.getvalue())
    return name


# ---- evaluation ----


class Resize:
    """torchvision's size. Pixels along rows first, as Pillow before 13; see make_geometry.py."""

    def __init__(self, *size, **options):
        self.resize = v2.Resize(*size, **options)

    def __call__(self, image):
        width, height = self.resize(image).size
        return image.resize((width, image.height), Image.BILINEAR).resize((width, height), Image.BILINEAR)


def on_torchvision(name, source, image):
    torch_mode = "mode=torch, antialias=true"
    full = transforms.Compose([Resize(SHORTER), transforms.CenterCrop(CROP), transforms.ToTensor(),
                               transforms.Normalize(MEAN, STD)])
    case(f"torch-{name}", f"decode(mode=torch) | resize(shorter={SHORTER}, {torch_mode}) | center_crop({CROP}) | {NORMALIZE} | "
         "layout(chw)", source, full(image), False)
    pixels = transforms.Compose([Resize(SHORTER), transforms.CenterCrop(CROP)])(image)
    case(f"torch-pixels-{name}", f"decode | resize(shorter={SHORTER}, {torch_mode}) | center_crop({CROP})", source,
         np.asarray(pixels), True)
    for side in SIDES:
        case(f"torch-shorter{side}-{name}", f"decode | resize(shorter={side}, {torch_mode})", source,
             np.asarray(Resize(side)(image)), True)
        case(f"torch-longer{side}-{name}", f"decode | resize(longer={side}, {torch_mode})", source,
             np.asarray(Resize(None, max_size=side)(image)), True)
    case(f"torch-large-crop-{name}", f"decode | resize(longer=11, {torch_mode}) | center_crop(12, 21)", source,
         np.asarray(transforms.CenterCrop((12, 21))(Resize(None, max_size=11)(image))), True)


def on_tensorflow(name, source, image):
    pixels = np.asarray(image)
    for side in SIDES:
        case(f"tf-longer{side}-{name}", f"decode | resize(longer={side})", source,
             tf.image.resize(pixels, [side, side], preserve_aspect_ratio=True), False)
    short, long = sorted(pixels.shape[:2])
    other = int(tf.round(np.float32(SHORTER) / np.float32(short) * np.float32(long)))
    size = (SHORTER, other) if pixels.shape[0] <= pixels.shape[1] else (other, SHORTER)
    for antialias in False, True:
        resized = tf.image.resize(pixels, size, antialias=antialias).numpy()
        top, left = (round((side - CROP) / 2) for side in size)
        result = (resized[top : top + CROP, left : left + CROP] / 255 - np.float32(MEAN)) / np.float32(STD)
        case(f"tf-antialias{antialias}-{name}", f"decode | resize(shorter={SHORTER}, antialias={str(antialias).lower()}) | "
             f"center_crop({CROP}) | {NORMALIZE}", source, result.astype(np.float32), False)


# ---- masks and 16 bits ----


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(samples, depth, color, interlaced=False):
    """A PNG from rows of samples {height, width, channels}, unfiltered; any depth, Adam7 too."""

    def rows(part):
        out = b""
        for row in part:
            if depth == 16:
                out += b"\0" + row.astype(">u2").tobytes()
            else:
                bits = np.unpackbits(row.astype("u1").reshape(-1, 1), axis=1)[:, 8 - depth :]
                out += b"\0" + np.packbits(bits).tobytes()
        return out

    adam7 = ((0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1))
    parts = [samples[y::dy, x::dx] for y, dy, x, dx in adam7] if interlaced else [samples]
    data = b"".join(rows(part) for part in parts if part.size)
    height, width = samples.shape[:2]
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)
    palette = chunk(b"PLTE", np.random.RandomState(1).randint(0, 256, 3 << depth).astype("u1").tobytes()) if color == 3 else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + palette + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def on_masks():
    random = np.random.RandomState(2)
    for depth in 1, 2, 4, 8:
        for interlaced in False, True:
            indices = random.randint(0, 1 << depth, (13, 19, 1))
            name = f"palette{depth}{'-interlaced' * interlaced}.png"
            (HERE / name).write_bytes(png(indices, depth, 3, interlaced))
            read = np.array(Image.open(HERE / name))
            assert (read == indices[:, :, 0]).all()
            case(f"raw-{name}", "decode(raw=true)", name, read[:, :, None].astype(np.uint8), True)
            wide = read[:, :, None].astype(np.uint16)
            case(f"raw16-{name}", "decode(raw=true, dtype=uint16)", name, wide, True)
    mask = Image.open(HERE / "palette8.png")
    small = np.asarray(mask.resize((11, 7), Image.NEAREST))[:, :, None]
    case("raw-small", "decode(raw=true) | resize(7, 11, method=nearest, mode=torch)", "palette8.png", small, True)
    case("raw-flipped", "decode(raw=true) | resize(7, 11, method=nearest, mode=torch) | flip | cast(float32)", "palette8.png",
         small[:, ::-1].astype(np.float32), True)


def on_16_bits():
    random = np.random.RandomState(3)
    for interlaced in False, True:
        gray = random.randint(0, 1 << 16, (12, 17, 1))
        name = f"gray16{'-interlaced' * interlaced}.png"
        (HERE / name).write_bytes(png(gray, 16, 0, interlaced))
        read = np.array(Image.open(HERE / name)).astype(np.uint16)[:, :, None]
        assert (read == gray).all()
        for spec in "decode(channels=1, dtype=uint16)", "decode(channels=0, dtype=uint16)", "decode(raw=true, dtype=uint16)":
            case(f"{spec}-{name}", spec, name, read, True)
        case(f"three-{name}", "decode(dtype=uint16)", name, read.repeat(3, 2), True)
    read = read[:, :, 0]
    for name, spec, result in (
            ("crop", "crop(2, 3, 8, 9)", read[2:10, 3:12]), ("flip", "flip(vertical)", read[::-1]),
            ("middle", "center_crop(6)", read[3:9, 6:12]), ("pad", "pad(2, fill=40000)", np.pad(read, 2, constant_values=40000)),
            ("edge", "pad(3, mode=reflect)", np.pad(read, 3, mode="reflect")),
            ("mirror", "flip | crop(0, 0, 5, 5)", read[:5, ::-1][:, :5])):
        case(f"gray16-{name}", f"decode(channels=1, dtype=uint16) | {spec}", "gray16-interlaced.png", result[:, :, None], True)
    source = "gray16-interlaced.png"
    small = tf.image.resize(read[:, :, None], [5, 30], method="nearest")
    case("gray16-small", "decode(channels=1, dtype=uint16) | resize(5, 30, method=nearest)", source, small, True)
    case("gray16-cast", "decode(channels=1, dtype=uint16) | cast(float32) | scale(0.5) | layout(chw)", source,
         (read[None] * np.float32(0.5)).astype(np.float32), True)
    for color, channels in (2, 3), (6, 4), (4, 2):
        name = f"color{color}.png"
        file = png(random.randint(0, 1 << 16, (9, 10, channels)), 16, color)
        (HERE / name).write_bytes(file)
        for wanted in (1, 3, 4) if color != 4 else (1, 4):
            read = tf.io.decode_png(file, channels=wanted, dtype=tf.uint16).numpy()
            case(f"{wanted}-{name}", f"decode(channels={wanted}, dtype=uint16)", name, read, True)
    for name in "palette8.png", "palette2.png":
        read = tf.io.decode_png((HERE / name).read_bytes(), channels=3, dtype=tf.uint16).numpy()
        case(f"wide-{name}", "decode(dtype=uint16)", name, read, True)


def main():
    for name, height, width in (("wide", 19, 31), ("high", 36, 17), ("square", 16, 16), ("small", 5, 7), ("thin", 20, 3)):
        image = Image.fromarray(photo(height, width))
        source = save(f"{name}.png", image)
        on_torchvision(name, source, image)
        on_tensorflow(name, source, image)
    on_masks()
    on_16_bits()
    made_by = {m.__name__: m.__version__ for m in (torch, torchvision, tf, PIL, np)}
    lines = ",\n".join("  " + json.dumps(c) for c in cases)
    (HERE / "cases.json").write_text(f'{{"made_by": {json.dumps(made_by)},\n "cases": [\n{lines}\n]}}\n')
    archive.finish(HERE)


main()
