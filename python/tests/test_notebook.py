"""What a notebook shows: valid HTML, escaped text, pictures with the right pixels, nothing from a network."""
import base64
import html.parser
import io
import re
import struct
import time
import zlib

import numpy as np
import pytest

import leat
from leat import _html

VOID = ("img", "br", "hr")
HOSTILE = "<script>alert('x')</script>&\"'"


class Checker(html.parser.HTMLParser):
    """Every tag is closed in order; there are no scripts, handlers or addresses."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.sources = [], "", []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        assert tag in ("div", "p", "table", "thead", "tbody", "tr", "td", "th", "img", "pre", "span"), tag
        for name, value in attributes:
            assert name in ("style", "class", "src", "alt"), name
            if name == "src":
                assert value.startswith("data:image/"), value
                self.sources.append(value)
            assert "url(" not in value
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def pixels_of(source):
    """The pixels of a PNG as _html writes it, read back by the format's rules."""
    data, at, found = base64.b64decode(source.partition(",")[2]), 8, {}
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        found[kind], at = found.get(kind, b"") + body, at + 12 + size
    width, height, depth, color = struct.unpack(">IIBB", found[b"IHDR"][:10])
    channels = {0: 1, 2: 3, 6: 4}[color]
    rows = np.frombuffer(zlib.decompress(found[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert depth == 8 and not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, channels)


def first(pipeline):
    return next(iter(pipeline.feed()))


# ---- batches ----

@pytest.mark.parametrize("shape", [(5, 7, 3), (5, 7, 1), (6, 6, 4), (3, 9, 8)], ids=["rgb", "gray", "rgba", "chw"])
def test_pictures_have_the_pixels_of_the_batch(shape):
    images = np.random.default_rng(1).integers(0, 256, (12, *shape), np.uint8)
    page = Checker(first(leat.array(image=images, label=np.arange(12)).batch(12))._repr_html_())
    assert len(page.sources) == 8 and "0 · 1 · 2" in page.text and "uint8" in page.text
    for image, source in zip(images, page.sources):
        expected = image.transpose(1, 2, 0) if shape[0] == 3 else image
        assert np.array_equal(pixels_of(source), expected)


def test_pillow_reads_the_pictures():
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(2).integers(0, 256, (1, 10, 12, 3), np.uint8)
    page = Checker(first(leat.array(image=pixels).batch(1))._repr_html_())
    shown = image.open(io.BytesIO(base64.b64decode(page.sources[0].partition(",")[2])))
    assert np.array_equal(np.asarray(shown), pixels[0])


def test_floats_are_scaled():
    unit = np.linspace(0, 1, 48, dtype=np.float32).reshape(1, 4, 4, 3)
    assert np.array_equal(_html.as_pixels(unit[0]), np.rint(unit[0].astype(float) * 255).astype(np.uint8))
    stretched = _html.as_pixels(unit[0] * 10 - 5)
    assert stretched.min() == 0 and stretched.max() == 255
    odd = unit[0].copy()
    odd[0, 0] = [np.nan, np.inf, -np.inf]
    assert _html.as_pixels(odd).shape == (4, 4, 3)
    assert not _html.as_pixels(np.full((4, 4, 3), 7.0)).any()


def test_large_pictures_are_thinned_out():
    image = np.arange(600 * 300 * 3, dtype=np.uint32).astype(np.uint8).reshape(1, 600, 300, 3)
    source, = Checker(first(leat.array(image=image).batch(1))._repr_html_()).sources
    assert np.array_equal(pixels_of(source), image[0, ::5, ::5]) and len(source) < 50_000


def test_encoded_images_are_shown_as_they_are(cells):
    batch = first(leat.folder(cells / "cells").batch(3))
    page = Checker(batch._repr_html_())
    assert [base64.b64decode(source.partition(",")[2]) for source in page.sources] == batch["image"].to_bytes()
    assert all(source.startswith(("data:image/jpeg", "data:image/png")) for source in page.sources)


def test_ragged_images_and_values(cells):
    batch = first(leat.folder(cells / "cells").decode().batch(2))
    page = Checker(batch._repr_html_())
    assert np.array_equal(pixels_of(page.sources[0]), batch["image"][0]) or max(batch["image"][0].shape) > 128


def test_text_of_samples_is_escaped(tmp_path):
    (tmp_path / "list.csv").write_text("path,label\na.txt,1\n")
    (tmp_path / "a.txt").write_bytes(HOSTILE.encode())
    page = first(leat.list(str(tmp_path / "list.csv")).batch(1))._repr_html_()
    assert "<script" not in page and HOSTILE in Checker(page).text


def test_values_that_are_no_images_are_written():
    batch = first(leat.array(x=np.arange(20, dtype=np.float32).reshape(2, 10), y=np.zeros((2, 5, 5, 5))).batch(2))
    page = Checker(batch._repr_html_())
    assert not page.sources and "[0, 1, 2, 3, 4, 5, …]" in page.text and "float64" in page.text


# ---- pipelines, feeds, statistics ----

def test_a_pipeline_shows_its_ops_and_fields(images):
    page = Checker((images.shuffle().batch(32))._repr_html_())
    for op in ("tfrecord", "example(image=bytes, label=int64)", "decode", "resize(16, 16)", "shuffle", "batch(32)"):
        assert op in page.text
    assert page.text.count("↓") == 6
    assert "image: float32[16, 16, 3]" in page.text and "label: int64[]" in page.text and "7 batches of 32" in page.text


def test_hostile_names_in_a_pipeline():
    page = leat.folder(HOSTILE).decode().batch(2)._repr_html_()
    assert "<script" not in page and "<script>alert(" in Checker(page).text


def test_a_pipeline_that_cannot_be_opened_still_shows_itself():
    assert "folder('/nonexistent')" in Checker(leat.folder("/nonexistent").batch(2)._repr_html_()).text


def test_functions_and_arrays_have_names(numbers):
    def halve(x):
        return x / 2

    page = Checker(numbers.map(halve, fields="x").batch(4).map_batch(lambda batch: batch)._repr_html_())
    assert "array(x=int64[100]" in page.text and "halve" in page.text
    assert "25 batches of 4" in Checker(numbers.batch(4)._repr_html_()).text


def test_a_feed_shows_its_fields(images):
    feed = images.batch(8).feed(seed=3)
    text = Checker(feed._repr_html_()).text
    assert "image: float32[16, 16, 3]" in text and "25 batches of 8 samples, seed 3" in text
    feed.close()
    assert "closed" in Checker(feed._repr_html_()).text


def test_statistics_are_a_table(images):
    feed = images.batch(8).feed()
    list(feed)
    stats = feed.stats()
    page = Checker(stats._repr_html_())
    assert stats["samples"] == 200 and isinstance(stats, dict)
    assert "samples delivered, without repeats and padding" in page.text and "bytes_read" in page.text


def test_an_xray_shows_itself():
    found = leat.xray([{"x": np.zeros((2, 2))}] * 4, lambda batch: time.sleep(0.02))
    found.figures["notes"].append(HOSTILE)
    found.figures["stages"].append({"name": HOSTILE, "tag": "transform", "per_sample_ms": 1.0, "share": 1.0})
    page = found._repr_html_()
    assert "<script" not in page and HOSTILE in Checker(page).text and found.sentence in Checker(page).text
    assert re.search(r"samples/s", repr(found))
