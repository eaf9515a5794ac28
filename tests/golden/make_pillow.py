#!/usr/bin/env python3
"""make_pillow.py: what Pillow decodes, which is what torchvision loads, for tests/unit/test_golden.c.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install numpy==2.4.6 pillow==13.0.0
    /tmp/golden/bin/python tests/golden/make_pillow.py

Writes tests/golden/pillow.tar: a few images of its own, pixels as .npy, and cases.json. Other images are those of
make_tf.py and make_geometry.py. Left out are those whose pixels differ on purpose (src/op/decode.c says which).
"""
import json

import archive
import numpy as np
import PIL
from PIL import Image, features

HERE = archive.begin("pillow", "tf", "geometry")
JPEGS = ("tf/444.jpg", "tf/422.jpg", "tf/420.jpg", "tf/progressive.jpg", "tf/restart.jpg", "tf/rgb.jpg", "tf/gray.jpg",
         "tf/pixel.jpg", "tf/cmyk.jpg", "tf/cmyk-plain.jpg", "geometry/exif.jpg")
PNGS = ("tf/rgb-interlaced.png", "tf/rgb16.png", "tf/rgba16.png", "tf/gray1.png", "tf/gray4.png", "tf/gray-alpha.png",
        "tf/palette8.png", "geometry/palette-key.png", "geometry/gray-key.png", "geometry/rgb16-key.png")
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
cases = []


def case(source, channels):
    pixels = np.asarray(Image.open(HERE / source).convert(MODES[channels]))
    name = f"{channels}-{source.split('/')[-1]}"
    np.save(HERE / f"out-{name}.npy", pixels.reshape(*pixels.shape[:2], channels))
    cases.append({"name": name, "spec": f"decode(channels={channels}, mode=torch)", "in": source, "exact": True,
                  "out": f"out-{name}.npy"})


def harsh(height, width):
    """Edges and noise in all colors: coarsely quantized, samples leave their range before they are cut to it."""
    noise = np.random.RandomState(height).randint(0, 256, (height, width, 3))
    y, x = np.mgrid[:height, :width]
    edges = 255 * ((x // 5 + y // 7) % 2)[:, :, None]
    return np.where(noise > 180, noise, edges).astype(np.uint8)


def own_images():
    """Chroma at full and half resolution, qualities from bad to best."""
    for quality in (3, 50, 100):
        for sampling in ("4:4:4", "4:2:2", "4:2:0"):
            name = f"q{quality}-{sampling.replace(':', '')}.jpg"
            Image.fromarray(harsh(27, 35)).save(HERE / name, quality=quality, subsampling=sampling)
            yield name


def main():
    for name in own_images():
        case(name, 3)
    for name in JPEGS + PNGS:
        case("../" + name, 3)
    case("../tf/gray.jpg", 1)
    case("../tf/420.jpg", 4)
    case("../tf/cmyk.jpg", 4)
    made_by = {"pillow": PIL.__version__, "libjpeg-turbo": features.version("libjpeg_turbo"), "numpy": np.__version__}
    lines = ",\n".join("  " + json.dumps(c) for c in cases)
    (HERE / "cases.json").write_text(f'{{"made_by": {json.dumps(made_by)},\n "cases": [\n{lines}\n]}}\n')
    archive.finish(HERE)


main()
