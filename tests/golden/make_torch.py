#!/usr/bin/env python3
"""make_torch.py: what torchvision makes of small images, for tests/unit/test_golden.c.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install \
        numpy==2.4.6 pillow==13.0.0 torch==2.15.0 torchvision==0.29.2
    /tmp/golden/bin/python tests/golden/make_torch.py

Writes tests/golden/torch.tar: inputs and what torchvision gave, as .npy, and cases.json. Its `cases` say which
spec turns which input into which output: uint8 as torchvision's functions on PIL images, in every bit; float32
as those on tensors. Its `draws` say what a random spec may give: all different outputs in one array, and how
many of the equally likely `outcomes` each of them has.
"""
import json

import archive
import numpy as np
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode, autoaugment
from torchvision.transforms import functional as F

HERE = archive.begin("torch")
cases, draws = [], []


def save(name, value):
    np.save(HERE / (name + ".npy"), np.ascontiguousarray(value))
    return name + ".npy"


def photo(height, width, seed):
    """Smooth waves with some noise, with edges and all values."""
    noise = np.random.RandomState(seed).randn(height, width, 3)
    y, x = np.mgrid[:height, :width]
    waves = [127 + 130 * np.sin(x / 3.0 + y / 7.0 * (c + 1) + c) for c in range(3)]
    return (np.stack(waves, -1) + 9 * noise).clip(0, 255).astype(np.uint8)


def on_pil(image, change):
    result = np.asarray(change(Image.fromarray(image if image.shape[2] == 3 else image[:, :, 0])))
    return result if result.ndim == 3 else result[:, :, None]


def on_tensor(image, change):
    return change(torch.from_numpy(image).permute(2, 0, 1)).permute(1, 2, 0).numpy()


def factor(x):
    """As an option holds it: a float."""
    return float(np.float32(x))


def adjustments(factors, turns):
    """(name, spec, torchvision's function) of what floats have too."""
    for f in factors:
        for name in ("brightness", "contrast", "saturation"):
            change = getattr(F, "adjust_" + name)
            yield f"{name}-{f}", f"color_jitter({name}=[{f}, {f}])", lambda i, change=change, f=factor(f): change(i, f)
        yield f"sharpness-{f}", f"adjust_sharpness({f})", lambda i, f=factor(f): F.adjust_sharpness(i, f)
    for f in turns:
        yield f"hue-{f}", f"color_jitter(hue=[{f}, {f}])", lambda i, f=factor(f): F.adjust_hue(i, f)
    yield "invert", "invert", F.invert
    yield "autocontrast", "autocontrast", F.autocontrast


def byte_changes():
    """Likewise, of what is for bytes."""
    for t in (0, 77.5, 128):
        yield f"solarize-{t}", f"solarize({t})", lambda i, t=t: F.solarize(i, t)
    for b in (1, 4):
        yield f"posterize-{b}", f"posterize({b})", lambda i, b=b: F.posterize(i, b)
    for c in (1, 3):
        yield f"gray-{c}", f"grayscale({c})", lambda i, c=c: F.to_grayscale(i, c)
    yield "equalize", "equalize", F.equalize


def float_changes():
    yield "solarize", "solarize(0.5)", lambda i: F.solarize(i, 0.5)
    yield "gray", "grayscale(3)", lambda i: F.rgb_to_grayscale(i, 3)


def add_cases(kind, image, changes):
    source = save(kind, image)
    for name, spec, change in changes:
        result = on_pil(image, change) if image.dtype == np.uint8 else on_tensor(image, change)
        same = result.shape == image.shape and (result == image).all()
        cases.append({"name": f"{kind}-{name}", "spec": spec, "in": source, "exact": image.dtype == np.uint8,
                      "out": source if same else save(f"out-{kind}-{name}", result)})


def color_cases():
    some, one = (0.35, 1.7), (1.7,)
    add_cases("rgb", photo(17, 16, 0), [*adjustments(some, (-0.5, -0.13, 0.001, 0.21)), *byte_changes()])
    add_cases("gray", photo(17, 16, 1)[:, :, :1], [*adjustments(some, (0.21,)), *byte_changes()])
    for kind, image in ("row", photo(1, 9, 4)), ("pair", photo(2, 2, 5)), ("dot", photo(1, 1, 6)):
        add_cases(kind, image, [*adjustments(one, (0.21,)), *byte_changes()])
    dull = (photo(17, 16, 2) // 3 + 50).astype(np.uint8)
    dull[:, :, 1] = 77  # one channel of one value
    add_cases("dull", dull, [("equalize", "equalize", F.equalize), ("autocontrast", "autocontrast", F.autocontrast)])
    few = np.where(photo(17, 17, 3)[:, :, :1] > 200, 90, 30).astype(np.uint8)
    add_cases("few", few, [("equalize", "equalize", F.equalize), ("autocontrast", "autocontrast", F.autocontrast)])

    add_cases("f32", photo(7, 8, 8) / np.float32(255), [*adjustments(some, (-0.13, 0.21)), *float_changes()])
    add_cases("f32-gray", photo(7, 5, 9)[:, :, :1] / np.float32(255), adjustments(one, (0.21,)))
    add_cases("f32-flat", np.full((3, 4, 3), 0.4, np.float32), adjustments(one, (0.21,)))
    add_cases("f32-dot", photo(1, 1, 10) / np.float32(255), adjustments(one, (0.21,)))


def draw(name, spec, source, image, outcomes):
    """outcomes: a function of a PIL image for each of the equally likely ones."""
    weight = {}
    for change in outcomes:
        result = on_pil(image, change).tobytes()
        weight[result] = weight.get(result, 0) + 1
    outputs = np.stack([np.frombuffer(r, np.uint8).reshape(image.shape) for r in weight])
    draws.append({"name": name, "spec": spec, "in": source, "out": save("draw-" + name, outputs),
                  "weights": list(weight.values()), "outcomes": len(outcomes)})


def augmentations(space, bins, fill):
    """All outcomes of one draw: each op, each of `bins`, each sign."""
    outcomes = []
    for op, (magnitudes, signed) in space.items():
        for bin in bins:
            magnitude = float(magnitudes[bin]) if magnitudes.ndim else 0.0
            for sign in (1, -1) if signed else (1, 1):
                outcomes.append(lambda i, op=op, m=sign * magnitude: autoaugment._apply_op(
                    i, op, m, InterpolationMode.NEAREST, [fill] * len(i.getbands())))
    return outcomes


def augment_draws():
    image, gray = photo(9, 8, 11), photo(14, 20, 12)[:, :, :1]
    rgb_in, gray_in = save("small", image), save("small-gray", gray)
    rand = autoaugment.RandAugment()._augmentation_space(31, image.shape[:2])
    draw("rand", "rand_augment(ops=1)", rgb_in, image, augmentations(rand, [9], 0))
    rand = autoaugment.RandAugment()._augmentation_space(12, gray.shape[:2])
    draw("rand-gray", "rand_augment(ops=1, magnitude=11, bins=12, fill=200)", gray_in, gray, augmentations(rand, [11], 200))
    wide = autoaugment.TrivialAugmentWide()._augmentation_space(4)
    draw("trivial", "trivial_augment(bins=4, fill=7)", rgb_in, image, augmentations(wide, range(4), 7))


def main():
    color_cases()
    augment_draws()
    made_by = {m.__name__: m.__version__ for m in (torch, torchvision, PIL, np)}
    lines = [",\n".join("  " + json.dumps(c) for c in kind) for kind in (cases, draws)]
    (HERE / "cases.json").write_text(
        f'{{"made_by": {json.dumps(made_by)},\n "cases": [\n{lines[0]}\n],\n "draws": [\n{lines[1]}\n]}}\n')
    archive.finish(HERE)


main()
