"""HTML for notebooks: pipelines, batches, statistics. Self-contained: no scripts, no network; all text is escaped."""
from __future__ import annotations

import base64
import html
import struct
import zlib
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

_MOST_PICTURES = 8
_MOST_SIDE = 128  # pixels of a picture; larger ones are thinned out
_MOST_ENCODED = 1 << 17  # bytes of an encoded image that is shown as it is
_CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:top;border:0"
_BOX = ("display:inline-block;border:1px solid #8888;border-radius:6px;padding:4px 8px;margin:2px 0;"
        "font-family:monospace;vertical-align:middle")
_MAGIC = ((b"\xff\xd8\xff", "jpeg"), (b"\x89PNG\r\n\x1a\n", "png"))


def text(value: Any) -> str:
    return html.escape(str(value).encode("utf-8", "backslashreplace").decode(), quote=True)


def paragraph(value: str) -> str:
    return f'<p style="margin:4px 0">{text(value)}</p>'


def block(inside: str) -> str:
    return f'<div class="leat">{inside}</div>'


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Cells are escaped, unless they are `Raw`."""
    def cells(row: Sequence[Any], kind: str) -> str:
        return "".join(f'<{kind} style="{_CELL}">{cell if isinstance(cell, Raw) else text(cell)}</{kind}>' for cell in row)

    top = f"<thead><tr>{cells(head, 'th')}</tr></thead>" if head else ""
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f'<table style="border-collapse:collapse">{top}<tbody>{body}</tbody></table>'


class Raw(str):
    """HTML that is not escaped again."""


# ---- pictures ----

def png(pixels: np.ndarray) -> bytes:
    """A PNG file of uint8 pixels [height, width, 1, 3 or 4]."""
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row starts with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
            + chunk(b"IEND", b""))


def _image(kind: str, data: bytes) -> Raw:
    encoded = base64.b64encode(data).decode()
    return Raw(f'<img src="data:image/{kind};base64,{encoded}" alt="" style="margin:1px;image-rendering:pixelated">')


def as_pixels(sample: np.ndarray) -> Optional[np.ndarray]:
    """A sample as uint8 pixels [height, width, channels]; None if it does not look like an image.

    Channels may come first or last. Floats from 0 to 1 become 0 to 255; other values are stretched from the least to the
    greatest.
    """
    if sample.ndim == 2 and min(sample.shape) >= 4:
        sample = sample[:, :, None]
    if sample.ndim != 3 or not sample.size:
        return None
    if sample.shape[2] not in (1, 3, 4) and sample.shape[0] in (1, 3, 4):
        sample = sample.transpose(1, 2, 0)
    if sample.shape[2] not in (1, 3, 4) or min(sample.shape[:2]) < 2:
        return None
    thin = -(-max(sample.shape[:2]) // _MOST_SIDE)
    sample = sample[::thin, ::thin]
    if sample.dtype == np.uint8:
        return sample
    values = np.nan_to_num(sample.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if np.issubdtype(sample.dtype, np.floating) and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    scaled = (values - low) * (255 / (high - low) if high > low else 0.0)
    return np.rint(scaled).clip(0, 255).astype(np.uint8)


def _encoded(value: bytes) -> Optional[Raw]:
    kind = next((kind for magic, kind in _MAGIC if value.startswith(magic)), None)
    if kind is None or len(value) > _MOST_ENCODED:
        return None
    return Raw(str(_image(kind, value)).replace("style=\"", "style=\"max-width:128px;max-height:128px;"))


def _pictures(samples: Sequence[Any]) -> List[Raw]:
    out = []
    for sample in samples[:_MOST_PICTURES]:
        shown = (_encoded(sample) if isinstance(sample, bytes) else None)
        if shown is None and isinstance(sample, np.ndarray):
            pixels = as_pixels(sample)
            shown = None if pixels is None else _image("png", png(pixels))
        if shown is None:
            return []
        out.append(shown)
    return out


def _value(sample: Any) -> str:
    if isinstance(sample, bytes):
        try:
            shown = sample[:80].decode()
        except UnicodeDecodeError:
            shown = repr(sample[:24])
        return shown + ("…" if len(sample) > 80 else "")
    if isinstance(sample, np.ndarray) and sample.ndim:
        flat = sample.reshape(-1)
        return "[" + ", ".join(f"{one:.4g}" if one.dtype.kind == "f" else str(one) for one in flat[:6]) + \
            (", …]" if len(flat) > 6 else "]")
    return str(sample)


def _shape(shape: Sequence[Any]) -> str:
    return "[" + ", ".join("?" if one is None else str(one) for one in shape) + "]"


def batch(given: Any) -> str:
    """A batch: its fields with type, shape, and the first samples as pictures or values."""
    from ._batch import Ragged

    rows = []
    for name, form in given._fields.items():
        value = given[name]
        if isinstance(value, Ragged):
            first = [value[i] for i in range(min(len(value), _MOST_PICTURES))]
            samples: List[Any] = [one.tobytes() for one in first] if value._text else first
        else:
            samples = list(value[:_MOST_PICTURES])
        pictures = _pictures(samples)
        shown = Raw("".join(pictures)) if pictures else Raw(" · ".join(text(_value(one)) for one in samples))
        rows.append([name, form.dtype, _shape([given.count, *form.shape]), shown])
    head = f"batch of {given.count} samples, epoch {given.epoch}"
    return block(paragraph(head) + table(["field", "type", "shape", "first samples"], rows))


# ---- pipelines ----

def fields(of: Dict[str, Any]) -> str:
    return "\n".join(f"{name}: {spec.dtype}{_shape(spec.shape)}" for name, spec in of.items())


def pipeline(calls: Sequence[str], stages: Optional[Sequence[str]] = None, problem: str = "") -> str:
    """The ops of a pipeline from top to bottom; beside each, in `stages`, the fields after it."""
    rows = []
    for i, call in enumerate(calls):
        arrow = '<div style="padding-left:16px;line-height:1">↓</div>' if i else ""
        after = stages[i] if stages is not None and i < len(stages) else ""
        rows.append([Raw(f'{arrow}<div style="{_BOX}">{text(call)}</div>'),
                     Raw(f'<pre style="margin:2px 0;background:none">{text(after)}</pre>')])
    return block(table([], rows) + (paragraph(problem) if problem else ""))


def values(of: Dict[str, Any], docs: Dict[str, str]) -> str:
    """Statistics as a table: name, value, meaning; nested ones as tables below."""
    plain = [[name, f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value,
              docs.get(name, "")] for name, value in of.items() if not isinstance(value, (list, dict))]
    out = table(["statistic", "value", "meaning"], plain)
    for name, value in of.items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            keys = list(value[0])
            out += paragraph(name) + table(keys, [[_short(row.get(key, "")) for key in keys] for row in value[:50]])
        elif isinstance(value, dict) and value:
            out += paragraph(name) + table([], [[key, _short(one)] for key, one in value.items()])
    return block(out)


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    shown = str(value)
    return shown if len(shown) <= 120 else shown[:119] + "…"
