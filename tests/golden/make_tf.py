#!/usr/bin/env python3
"""make_tf.py: what TensorFlow makes of small images, for tests/unit/test_golden.c.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install numpy==2.4.6 pillow==13.0.0 tensorflow-cpu==2.21.0
    /tmp/golden/bin/python tests/golden/make_tf.py

Writes tests/golden/tf.tar: inputs (.jpg, .png, .npy), what TensorFlow gave (.npy), and cases.json that
says which spec turns which input into which output. `exact` cases have to agree in every bit, others
within 1e-5. Also compressed TFRecord files, for tests/unit/test_tfrecord_gz.c. The same versions write the
same files.
"""
import io
import json
import os
import struct
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import numpy as np
import PIL
from PIL import Image
import tensorflow as tf

import archive

HERE = archive.begin("tf")
cases = []


def save(name, value):
    """Bytes as they are, arrays as .npy."""
    if isinstance(value, bytes):
        (HERE / name).write_bytes(value)
        return name
    name += ".npy"
    np.save(HERE / name, np.ascontiguousarray(value))
    return name


def case(name, spec, source, result, exact):
    result = result.numpy() if hasattr(result, "numpy") else result
    cases.append({"name": name, "spec": spec, "in": source, "out": save("out-" + name, result), "exact": exact})


def photo(height, width, seed=0):
    """Smooth waves with some noise: like a photo to a codec, with edges and all values."""
    noise = np.random.RandomState(seed).randn(height, width, 3)
    y, x = np.mgrid[:height, :width]
    waves = [127 + 130 * np.sin(x / 3.0 + y / 7.0 * (c + 1) + c) for c in range(3)]
    return (np.stack(waves, -1) + 9 * noise).clip(0, 255).astype(np.uint8)


def encode(image, **options):
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def without_adobe_marker(jpeg):
    """Drops the APP14 segment, so that inks count as not inverted."""
    at = jpeg.index(b"\xff\xee")
    return jpeg[:at] + jpeg[at + 2 + struct.unpack(">H", jpeg[at + 2 : at + 4])[0] :]


def png(samples, bit_depth, color_type, interlace=False, extra=b""):
    """A PNG from rows of samples {height, width, channels}, unfiltered; any depth, Adam7 too."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    def rows(part):
        out = b""
        for row in part:
            if bit_depth == 16:
                out += b"\0" + row.astype(">u2").tobytes()
            elif bit_depth == 8:
                out += b"\0" + row.astype("u1").tobytes()
            else:
                bits = np.unpackbits(row.astype("u1").reshape(-1, 1), axis=1)[:, 8 - bit_depth :]
                out += b"\0" + np.packbits(bits.reshape(-1)).tobytes()
        return out

    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    parts = [samples[y::dy, x::dx] for y, x, dy, dx in passes] if interlace else [samples]
    data = b"".join(rows(part) for part in parts if part.size)
    header = struct.pack(">IIBBBBB", samples.shape[1], samples.shape[0], bit_depth, color_type, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b"")


def palette(colors):
    data = bytes(colors)
    kind = b"PLTE"
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def touchy_colors(depth):
    """8 x 8 colors whose gray changes when a weight is one off, or is rounded where it should be cut.

    Random ones hardly ever do. The weights only choose the inputs; what is right, TensorFlow says."""
    rgb = np.random.RandomState(depth).randint(0, 1 << depth, (400000, 3))

    def gray(red, green, half):
        return ((rgb * [red, green, 32768 - red - green]).sum(1) + half) >> 15 >> (depth - 8)

    own = 16384 if depth == 16 else 0
    usual = gray(9797, 19234, own)
    others = [gray(9797, 19234, 16384 - own), gray(9797, 19235, own), gray(9798, 19234, own), gray(9797, 19233, own)]
    chosen = [rgb[other != usual][:16] for other in others]
    return np.concatenate(chosen).reshape(8, 8, 3)


def decode_cases():
    image = photo(19, 29)
    files = {
        "444.jpg": encode(image, format="JPEG", quality=85, subsampling=0),
        "422.jpg": encode(image, format="JPEG", quality=85, subsampling=1),
        "420.jpg": encode(image, format="JPEG", quality=85, subsampling=2),
        "progressive.jpg": encode(image, format="JPEG", quality=60, progressive=True),
        "restart.jpg": encode(image, format="JPEG", quality=60, restart_marker_blocks=1),
        "rgb.jpg": encode(image, format="JPEG", quality=60, keep_rgb=True),
        "gray.jpg": encode(image[:, :, 0], format="JPEG", quality=85),
        "pixel.jpg": encode(image[:1, :1], format="JPEG", quality=85),
    }
    inks = encode(Image.fromarray(image).convert("CMYK"), format="JPEG", quality=60)
    colors = {"cmyk.jpg": inks, "cmyk-plain.jpg": without_adobe_marker(inks)}

    some = np.random.RandomState(1)
    deep = (some.rand(9, 7, 4) * 65535).astype(np.uint16)
    small = some.randint(0, 256, (9, 7, 4)).astype(np.uint8)
    pngs = {
        "rgb.png": png(small[:, :, :3], 8, 2),
        "rgb-interlaced.png": png(small[:, :, :3], 8, 2, interlace=True),
        "rgb16.png": png(deep[:, :, :3], 16, 2),
        "rgba.png": png(small, 8, 6),
        "rgba16.png": png(deep, 16, 6),
        "gray.png": png(small[:, :, :1], 8, 0),
        "gray16.png": png(deep[:, :, :1], 16, 0),
        "gray1.png": png(small[:, :, :1] & 1, 1, 0),
        "gray2-interlaced.png": png(small[:, :, :1] & 3, 2, 0, interlace=True),
        "gray4.png": png(small[:, :, :1] & 15, 4, 0),
        "gray-alpha.png": png(small[:, :, :2], 8, 4),
        "gray-alpha16.png": png(deep[:, :, :2], 16, 4),
        "palette2.png": png(small[:, :, :1] & 3, 2, 3, extra=palette(some.randint(0, 256, 12).tolist())),
        "palette8.png": png(small[:, :, :1], 8, 3, extra=palette(some.randint(0, 256, 768).tolist())),
        "touchy.png": png(touchy_colors(8), 8, 2),
        "touchy16.png": png(touchy_colors(16), 16, 2),
        "pixel.png": png(small[:1, :1, :3], 8, 2),
    }

    for name, data in {**files, **pngs}.items():
        source = save(name, data)
        for channels in (1, 3):
            case(f"decode{channels}-{name}", f"decode(channels={channels})", source, tf.io.decode_image(data, channels), True)
    for name, data in colors.items():
        case(f"decode3-{name}", "decode", save(name, data), tf.io.decode_jpeg(data, 3), True)
    case("decode0-gray.jpg", "decode(channels=0)", "gray.jpg", tf.io.decode_jpeg(files["gray.jpg"], 0), True)
    case("decode0-gray.png", "decode(channels=0)", "gray.png", tf.io.decode_png(pngs["gray.png"], 0), True)
    case("decode0-palette8.png", "decode(channels=0)", "palette8.png", tf.io.decode_png(pngs["palette8.png"], 0), True)


def rotate(image, radians, fill):
    """tfa.image.rotate: TensorFlow Addons builds this matrix for this op of TensorFlow."""
    h, w = (np.float32(n) for n in image.shape[:2])
    angle = tf.constant([radians], tf.float32)
    c, s, zero = tf.cos(angle), tf.sin(angle), tf.zeros([1])
    x = ((w - 1) - (c * (w - 1) - s * (h - 1))) / 2.0
    y = ((h - 1) - (s * (w - 1) + c * (h - 1))) / 2.0
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=image[None], transforms=tf.stack([c, -s, x, s, c, y, zero, zero], axis=1), output_shape=image.shape[:2],
        fill_value=fill, interpolation="NEAREST", fill_mode="CONSTANT")[0]


def geometry_cases():
    images = {"u8": photo(15, 22, 2), "f32": (photo(9, 13, 3) / np.float32(255)), "gray": photo(7, 12, 4)[:, :, :1],
              "row": photo(1, 9, 5), "dot": photo(1, 1, 6)}
    for kind, image in images.items():
        source = save(kind, image)
        for h, w in ((8, 10), (21, 17), (1, 1), (15, 23)):
            case(f"resize-{kind}-{h}x{w}", f"resize({h}, {w})", source, tf.image.resize(image, (h, w)), False)
            case(f"nearest-{kind}-{h}x{w}", f"resize({h}, {w}, method=nearest)", source,
                 tf.image.resize(image, (h, w), method="nearest"), True)
        for angle, fill in ((0.2, 0), (-1, 0.5), (1.5707964, 0), (3.1415927, 0), (0.7853982, 1)):
            case(f"rotate-{kind}-{angle}", f"rotate({angle}rad, fill={fill})", source, rotate(image, angle, fill), True)
        case(f"flip-{kind}", "flip", source, tf.image.flip_left_right(image), True)
        case(f"flip-{kind}-vertical", "flip(vertical)", source, tf.image.flip_up_down(image), True)
        case(f"chw-{kind}", "layout(chw)", source, tf.transpose(image, (2, 0, 1)), True)


def number_cases():
    image = photo(6, 11, 7)
    floats = image / np.float32(255)
    u8, f32 = save("numbers-u8", image), save("numbers-f32", floats)
    wide = np.array([0, -0.0, 1, -1, 0.1, 1 / 3, 65504, 65519.9, 65520, 1e-7, 6e-8, 2.9e-8, 3e-8, 1e-40, 3.3e38, np.inf, -np.inf,
                     1.00390625, 1.01171875, 2049, 2051], np.float32)
    wide_in = save("numbers-wide", wide)

    case("scale", "scale(1/255)", u8, tf.image.convert_image_dtype(image, tf.float32), True)
    case("contrast-up", "random_contrast(1.7, 1.7)", f32, tf.image.adjust_contrast(floats, 1.7), False)
    case("contrast-down", "random_contrast(0.3, 0.3)", f32, tf.image.adjust_contrast(floats, 0.3), False)
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    case("normalize", "normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])", f32,
         (tf.constant(floats) - mean) / std, False)
    for dtype in (tf.float16, tf.bfloat16):
        case(f"cast-{dtype.name}", f"cast({dtype.name})", wide_in, tf.bitcast(tf.cast(wide, dtype), tf.uint16), True)
    case("cast-uint8", "scale(300) | cast(uint8)", f32, tf.saturate_cast(tf.constant(floats) * 300, tf.uint8), True)

    jpeg = (HERE / "420.jpg").read_bytes()
    pixels = tf.image.flip_left_right(tf.image.resize(tf.io.decode_jpeg(jpeg, 3), (10, 12)) * np.float32(1 / 255))
    case("chain", "decode | resize(10, 12) | scale(1/255) | flip | layout(chw)", "420.jpg",
         tf.transpose(pixels, (2, 0, 1)), False)


def compressed_records():
    """Record i is the text "record i, ", i times."""
    for kind in ("GZIP", "ZLIB"):
        with tf.io.TFRecordWriter(str(HERE / f"{kind.lower()}.tfrecord"), kind) as writer:
            for i in range(20):
                writer.write(b"record %d, " % i * i)


def main():
    decode_cases()
    geometry_cases()
    number_cases()
    compressed_records()
    made_by = {"tensorflow": tf.__version__, "numpy": np.__version__, "pillow": PIL.__version__}
    lines = ",\n".join("  " + json.dumps(c) for c in cases)
    (HERE / "cases.json").write_text(f'{{"made_by": {json.dumps(made_by)},\n "cases": [\n{lines}\n]}}\n')
    archive.finish(HERE)


if __name__ == "__main__":
    main()
