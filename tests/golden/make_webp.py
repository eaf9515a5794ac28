#!/usr/bin/env python3
"""make_webp.py: what Pillow makes of WebP images, for tests/unit/test_golden.c, test_webp.c and fuzz/seeds.py.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install numpy==2.4.6 pillow==13.0.0
    /tmp/golden/bin/python tests/golden/make_webp.py

Writes tests/golden/webp.tar: images (.webp), their pixels as .npy, and cases.json, which says which spec turns which
image into which pixels.
"""
import io
import json
import struct

import archive
import numpy as np
import PIL
from PIL import Image, features

HERE = archive.begin("webp")
MODES = {3: "RGB", 4: "RGBA"}
cases = []


def photo(height, width, channels=3):
    """Smooth waves with some noise, with edges and all values."""
    noise = np.random.RandomState(height).randn(height, width, channels)
    y, x = np.mgrid[:height, :width]
    waves = [127 + 130 * np.sin(x / 3.0 + y / 7.0 * (c + 1) + c) for c in range(channels)]
    return (np.stack(waves, -1) + 9 * noise).clip(0, 255).astype(np.uint8)


def patches(height, width, colors):
    """Parts of different statistics: lossless images use several groups of codes for them."""
    random = np.random.RandomState(colors)
    tile = random.randint(0, colors, (height // 8 + 1, width // 8 + 1)).repeat(8, 0).repeat(8, 1)[:height, :width]
    table = random.randint(0, 256, (colors, 3)).astype(np.uint8)
    image = table[tile]
    image[height // 2 :, width // 2 :] = photo(height, width)[height // 2 :, width // 2 :]
    return image


def webp(image, **options):
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    out = io.BytesIO()
    image.save(out, "WEBP", **options)
    return out.getvalue()


def chunk(kind, data):
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def animation(canvas, frames):
    """frames: (left, top, a file with one image)."""
    body = b"WEBP" + chunk(b"VP8X", struct.pack("<I", 2 | 16) + size(canvas)) + chunk(b"ANIM", bytes(6))
    for left, top, file in frames:
        image = Image.open(io.BytesIO(file))
        head = size((left // 2 + 1, top // 2 + 1)) + size(image.size) + struct.pack("<I", 100)[:3] + b"\2"
        chunks = file[12:]
        if chunks[:4] == b"VP8X":
            chunks = chunks[18:]
        body += chunk(b"ANMF", head + chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def size(pair):
    return b"".join(struct.pack("<I", side - 1)[:3] for side in pair)


def case(name, file, channels=3, mode="torch"):
    (HERE / name).write_bytes(file)
    pixels = np.asarray(Image.open(io.BytesIO(file)).convert(MODES[channels]))
    out = f"out-{channels}-{name}.npy"
    np.save(HERE / out, pixels)
    cases.append({"name": f"{channels}-{mode}-{name}", "spec": f"decode(channels={channels}, mode={mode})", "in": name,
                  "exact": True, "out": out})


def main():
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 90 degrees; ignored
    files = {
        "lossy.webp": webp(photo(33, 47), quality=75),
        "bad.webp": webp(photo(18, 35), quality=1),
        "best.webp": webp(photo(17, 16), quality=100, method=6),
        "lossless.webp": webp(photo(33, 47), lossless=True),
        "groups.webp": webp(patches(96, 80, 40), lossless=True, quality=100),
        "two.webp": webp(patches(16, 19, 2)[:8, :9], lossless=True),
        "few.webp": webp(np.where(photo(21, 30)[:, :, :1] > 99, 7, photo(21, 30) // 86 * 80).astype(np.uint8), lossless=True),
        "pixel.webp": webp(photo(1, 1), quality=80),
        "pixel-lossless.webp": webp(photo(1, 1), lossless=True),
        "exif.webp": webp(photo(12, 20), quality=60, exif=exif),
    }
    for name, file in files.items():
        case(name, file)
    for name in ("lossy.webp", "lossless.webp"):
        case(name, files[name], 4, "tf")
    alpha = photo(25, 34, 4)
    alpha[3:9, 5:20, 3] = 0
    for name, file in (("alpha.webp", webp(alpha, quality=70)), ("alpha-raw.webp", webp(alpha, quality=70, alpha_quality=30)),
                       ("alpha-lossless.webp", webp(alpha, lossless=True, exact=True))):
        case(name, file)
        case(name, file, 4)
    part = (6, 4, webp(alpha[:11, :13], lossless=True))
    case("frames.webp", animation((34, 25), [(0, 0, webp(alpha, quality=70)), part]))
    case("part.webp", animation((34, 25), [part, (0, 0, files["pixel.webp"])]))
    case("part.webp", animation((34, 25), [part, (0, 0, files["pixel.webp"])]), 4)
    made_by = {"pillow": PIL.__version__, "libwebp": features.version("webp"), "numpy": np.__version__}
    lines = ",\n".join("  " + json.dumps(c) for c in cases)
    (HERE / "cases.json").write_text(f'{{"made_by": {json.dumps(made_by)},\n "cases": [\n{lines}\n]}}\n')
    archive.finish(HERE)


main()
