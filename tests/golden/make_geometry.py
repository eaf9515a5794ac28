#!/usr/bin/env python3
"""make_geometry.py: what TensorFlow, Pillow and NumPy make of small images, for tests/unit/test_golden.c.

Run like make_tf.py, whose helpers it uses. Writes tests/golden/geometry.tar: crops, resampling, warps, blurs, and what
decoding makes of alpha and EXIF. torchvision itself is not asked: for images it computes where pixels come from, as
written out below, and lets Pillow or NumPy move them.
"""
import io
import json
import math
import struct
import zlib

import archive
import make_tf as golden
import numpy as np
import PIL
import tensorflow as tf
from make_tf import case, photo, png, save
from PIL import Image

golden.HERE = archive.begin("geometry")

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
        for h, w in ((4, 5),) if kind == "f32" else ((4, 5), (12, 9)):
            for name, method in PILLOW.items():
                # Along rows first, as Pillow before 13; 13 begins with columns where the height shrinks much more.
                resized = by_channel(image, lambda part: part.resize((w, part.height), method).resize((w, h), method))
                case(f"torch-{name}-{kind}-{h}", f"resize({h}, {w}, {name}, torch, antialias=true)", source, resized,
                     image.dtype == np.uint8 or name == "nearest")
            if image.dtype == np.uint8:
                resized = np.rint(tf.image.resize(image, (h, w)).numpy()).astype(np.uint8)
                case(f"torch-plain-{kind}-{h}", f"resize({h}, {w}, mode=torch)", source, resized, True)
        for h, w in {"rgb": ((4, 5), (8, 10)), "gray": ((8, 10),), "row": ((4, 5),), "f32": ((4, 5),)}.get(kind, ()):
            for name, method in TENSORFLOW.items():
                for antialias in (False, True):
                    if (name, antialias) in (("bilinear", False), ("area", True)):
                        continue
                    resized = tf.image.resize(image[None], (h, w), method, antialias=antialias)[0]
                    case(f"tf-{name}{'-wide' * antialias}-{kind}-{h}",
                         f"resize({h}, {w}, {name}, antialias={str(antialias).lower()})", source, resized, False)


def crop_cases():
    for kind, image in images().items():
        for h, w in ((4, 6), (12, 5)):
            # torchvision's CenterCrop: Pillow fills with zeros what it crops outside an image.
            top, left = (-((side - have) // 2) if side > have else int(round((have - side) / 2.0))
                         for side, have in ((h, image.shape[0]), (w, image.shape[1])))
            cropped = by_channel(image, lambda part: part.crop((left, top, left + w, top + h)))
            case(f"center_crop-{kind}-{h}", f"center_crop({h}, {w})", kind + ".npy", cropped, True)
    image = images()["rgb"]
    case("crop", "crop(2, 1, 7, 9)", "rgb.npy", tf.image.crop_to_bounding_box(image, 2, 1, 7, 9), True)
    for mode in ("constant", "edge", "reflect", "symmetric"):
        case(f"pad-{mode}", f"pad(top=1, left=2, bottom=14, right=15, mode={mode})", "rgb.npy", np.pad(image, ((1, 14), (2, 15), (0, 0)), mode), True)


def affine_matrix(size, degrees, scale, shear):
    """torchvision's, from a place of the result to where it comes from."""
    cx, cy = size[0] * 0.5, size[1] * 0.5
    turn, sx, sy = (math.radians(np.float32(x)) for x in (degrees, *shear))
    a = math.cos(turn - sy) / math.cos(sy)
    b = -(a * math.tan(sx) + math.sin(turn))
    c = math.sin(turn - sy) / math.cos(sy)
    d = math.cos(turn) - c * math.tan(sx)
    m = [x / float(np.float32(scale)) for x in (d, -b, 0.0, -c, a, 0.0)]
    m[2] = cx - m[0] * cx - m[1] * cy
    m[5] = cy - m[3] * cx - m[4] * cy
    return m


def affine_cases():
    ways = ((0, 1, 0, 0), (30, 1, 0, 0), (-90, 1, 0, 0), (45, 0.7, 0, 0), (0, 1.5, 0, 0), (0, 0.6, 20, 0), (10, 1.1, -15, 7),
            (180, 1, 0, 30), (77, 0.001, 3, 0))
    for kind, count in (("rgb", 9), ("rgba", 9), ("row", 5), ("f32", 2)):
        image = images()[kind]
        for i, (degrees, scale, *shear) in enumerate(ways[:count]):
            matrix = affine_matrix((image.shape[1], image.shape[0]), degrees, scale, shear)
            moved = by_channel(image, lambda part: part.transform(part.size, Image.AFFINE, matrix, Image.NEAREST, fillcolor=7))
            spec = (f"random_affine([{degrees}, {degrees}], scale=[{scale}, {scale}], "
                    f"shear=[{shear[0]}, {shear[0]}, {shear[1]}, {shear[1]}], fill=7)")
            case(f"affine-{kind}-{i}", spec, kind + ".npy", moved, True)


def gaussian(image, kernel, sigma):
    """torchvision's, in double."""
    x = (np.arange(kernel) - kernel // 2) / float(np.float32(sigma))
    weight = np.exp(-0.5 * x * x)
    weight /= weight.sum()
    out = np.pad(image.astype(float), ((kernel // 2,) * 2, (kernel // 2,) * 2, (0, 0)), "reflect")
    out = sum(w * out[:, i : i + image.shape[1]] for i, w in enumerate(weight))
    out = sum(w * out[i : i + image.shape[0]] for i, w in enumerate(weight))
    return np.rint(out).astype(np.uint8) if image.dtype == np.uint8 else out.astype(np.float32)


def blur_cases():
    for kind, image in images().items():
        for kernel, sigma in ((3, 0.5), (9, 1.7)):
            case(f"blur-{kind}-{kernel}", f"gaussian_blur({kernel}, sigma=[{sigma}, {sigma}])", kind + ".npy",
                 gaussian(image, kernel, sigma), image.dtype == np.uint8)


def transparent(*values, form=">H"):
    data = b"".join(struct.pack(form, value) for value in values)
    return struct.pack(">I", len(data)) + b"tRNS" + data + struct.pack(">I", zlib.crc32(b"tRNS" + data))


def alpha_cases():
    some = np.random.RandomState(8)
    small = some.randint(0, 256, (6, 5, 4)).astype(np.uint8)
    deep = some.randint(0, 65536, (6, 5, 4)).astype(np.uint16)
    key, near = deep[2, 3].tolist(), deep.copy()
    near[1, 1] = key
    near[0, 0] = near[0, 0] & 255 | near[1, 1] & 0xff00  # the same upper half, not transparent
    colors = golden.palette(some.randint(0, 256, 12).tolist())
    pngs = {
        "rgb.png": png(small[:, :, :3], 8, 2),
        "rgb16.png": png(deep[:, :, :3], 16, 2),
        "rgba.png": png(small, 8, 6),
        "rgba16.png": png(deep, 16, 6, interlace=True),
        "gray.png": png(small[:, :, :1], 8, 0),
        "gray-alpha.png": png(small[:, :, :2], 8, 4),
        "gray-alpha16.png": png(deep[:, :, :2], 16, 4),
        "palette-key.png": png(small[:, :, :1] & 3, 2, 3, extra=colors + transparent(10, 200, 255, form="B")),
        "gray2-key.png": png(small[:, :, :1] & 3, 2, 0, extra=transparent(2)),
        "gray-key.png": png(small[:, :, :1] & 7, 8, 0, extra=transparent(2)),
        "gray16-key.png": png(near[:, :, :1], 16, 0, extra=transparent(key[0])),
        "rgb-key.png": png(small[:, :, :3] & 1, 8, 2, extra=transparent(1, 0, 1)),
        "rgb16-key.png": png(near[:, :, :3], 16, 2, extra=transparent(*key[:3])),
    }
    for name, data in pngs.items():
        source = save(name, data)
        case(f"decode4-{name}", "decode(channels=4)", source, tf.io.decode_png(data, 4), True)
        if "key" in name:  # transparency alone changes no color
            case(f"decode3-{name}", "decode", source, tf.io.decode_png(data, 3), True)
    # TensorFlow's alpha is 3 here, where Pillow's is opaque.
    opaque = png(small[:, :, :1] & 3, 2, 3, extra=colors)
    case("decode4-palette.png", "decode(channels=4)", save("palette.png", opaque),
         np.asarray(Image.open(io.BytesIO(opaque)).convert("RGBA")), True)


def jpeg_cases():
    image = photo(9, 12, 9)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    turned = golden.encode(image, format="JPEG", quality=80, exif=exif)
    pixels = tf.io.decode_jpeg(turned, 3).numpy()
    case("exif", "decode", save("exif.jpg", turned), pixels, True)
    opaque = np.full((9, 12, 1), 255, np.uint8)  # which TensorFlow does not make
    case("decode4-exif.jpg", "decode(channels=4)", "exif.jpg", np.concatenate([pixels, opaque], -1), True)
    inks = golden.encode(Image.fromarray(image).convert("CMYK"), format="JPEG", quality=60)
    for name, data in {"inks.jpg": inks, "inks-plain.jpg": golden.without_adobe_marker(inks)}.items():
        case(f"decode4-{name}", "decode(channels=4)", save(name, data),
             np.concatenate([tf.io.decode_jpeg(data, 3).numpy(), opaque], -1), True)


def main():
    for name, image in images().items():
        save(name, image)
    resize_cases()
    crop_cases()
    affine_cases()
    blur_cases()
    alpha_cases()
    jpeg_cases()
    made_by = {"tensorflow": tf.__version__, "numpy": np.__version__, "pillow": PIL.__version__}
    lines = ",\n".join("  " + json.dumps(c) for c in golden.cases)
    (golden.HERE / "cases.json").write_text(f'{{"made_by": {json.dumps(made_by)},\n "cases": [\n{lines}\n]}}\n')
    archive.finish(golden.HERE)


if __name__ == "__main__":
    main()
