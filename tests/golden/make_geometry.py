#!/usr/bin/env python3
"""make_geometry.py: what TensorFlow, Pillow and NumPy make of small images, for tests/unit/test_golden.c.

Run like make_tf.py, whose helpers it uses. Writes tests/golden/geometry/. torchvision itself is not asked: for images
it computes where pixels come from, as written out below, and lets Pillow or NumPy move them.
"""
import json
import pathlib

import make_tf as golden
import numpy as np
import PIL
import tensorflow as tf
from make_tf import case, photo, save
from PIL import Image

golden.HERE = pathlib.Path(__file__).parent / "geometry"

PILLOW = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
TENSORFLOW = {"bilinear": "bilinear", "bicubic": "bicubic", "lanczos": "lanczos3", "area": "area"}


def by_channel(image, change):
    """Pillow treats alpha in its own way: channels one by one are independent. float32 is its mode F."""
    channels = [np.asarray(change(Image.fromarray(np.ascontiguousarray(image[:, :, c])))) for c in range(image.shape[2])]
    return np.stack(channels, -1)


def images():
    rgb = photo(11, 13, 2)
    return {"rgb": rgb, "rgba": np.concatenate([rgb[:7, :6], photo(7, 6, 3)[:, :, :1]], -1), "gray": photo(5, 9, 4)[:, :, :1],
            "row": photo(1, 9, 5), "dot": photo(1, 1, 6), "f32": photo(6, 8, 7) / np.float32(255)}


def resize_cases():
    for kind, image in images().items():
        source = kind + ".npy"
        for h, w in ((4, 5), (14, 11)):
            for name, method in PILLOW.items():
                # Along rows first, as Pillow before 13; 13 begins with columns where the height shrinks much more.
                resized = by_channel(image, lambda part: part.resize((w, part.height), method).resize((w, h), method))
                case(f"torch-{name}-{kind}-{h}", f"resize({h}, {w}, {name}, torch, antialias=true)", source, resized,
                     image.dtype == np.uint8 or name == "nearest")
            if image.dtype == np.uint8:
                resized = np.rint(tf.image.resize(image, (h, w)).numpy()).astype(np.uint8)
                case(f"torch-plain-{kind}-{h}", f"resize({h}, {w}, mode=torch)", source, resized, True)
        if kind in ("rgba", "dot"):
            continue
        for h, w in ((4, 5), (8, 10)):
            for name, method in TENSORFLOW.items():
                for antialias in (False, True):
                    if (name, antialias) in (("bilinear", False), ("area", True)):
                        continue
                    resized = tf.image.resize(image[None], (h, w), method, antialias=antialias)[0]
                    case(f"tf-{name}{'-wide' * antialias}-{kind}-{h}",
                         f"resize({h}, {w}, {name}, antialias={str(antialias).lower()})", source, resized, False)


def main():
    golden.HERE.mkdir(exist_ok=True)
    for old in golden.HERE.iterdir():
        old.unlink()
    for name, image in images().items():
        save(name, image)
    resize_cases()
    made_by = {"tensorflow": tf.__version__, "numpy": np.__version__, "pillow": PIL.__version__}
    lines = ",\n".join("  " + json.dumps(c) for c in golden.cases)
    (golden.HERE / "cases.json").write_text(f'{{"made_by": {json.dumps(made_by)},\n "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
