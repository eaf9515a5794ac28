#!/usr/bin/env python3
"""make_mds.py: MDS folders, and what MosaicML Streaming reads from them, for tests/unit/test_mds.c.

    python3 -m venv /tmp/mds && /tmp/mds/bin/pip install \
        brotli==1.2.1 catalogue==2.0.10 filelock==4.2.10 numpy==2.1.3 pillow==13.0.0 psutil==7.2.2 \
        python-snappy==0.7.3 tqdm==4.70.1 typing_extensions==4.16.0 xxhash==4.1.0 zstd==1.5.7.2
    /tmp/mds/bin/pip install --no-deps mosaicml-streaming==0.13.0
    /tmp/mds/bin/python tests/golden/make_mds.py

Writes tests/golden/mds.tar: folders, and cases.json that says which spec reads which samples (@ stands for
the folder with all of them). The same versions write the same files. Writer and reader are MosaicML's own; PyTorch,
which they import and do not use, is replaced by an empty stand-in.
"""
import importlib.metadata
import json
import pathlib
import sys
import types


def stand_in(name):
    module = types.ModuleType(name)
    module.__getattr__ = lambda attribute: object if attribute[0] != "_" else None
    module.__path__ = []
    sys.modules[name] = module
    return module


for name in ["torch", "torch.distributed", "torch.utils", "torch.utils.data"]:
    stand_in(name)
for name in ["streaming", "streaming.base"]:  # without their __init__, which imports everything
    root = pathlib.Path(importlib.metadata.distribution("mosaicml-streaming").locate_file(""))
    stand_in(name).__path__ = [str(root / name.replace(".", "/"))]

import archive
import numpy as np
from PIL import Image
from streaming.base.format.mds import MDSReader, MDSWriter

HERE = archive.begin("mds")
cases = []

# Types that Leat does not have become the next one that holds all their values.
WIDER = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}


def number(array):
    array = np.asarray(array)
    array = array.astype(WIDER.get(array.dtype.name, array.dtype))
    return {"dtype": array.dtype.name, "shape": list(array.shape), "hex": array.tobytes().hex()}


def text(data):
    return {"dtype": "uint8", "shape": [len(data)], "hex": data.hex()}


def raw(reader, i):
    """The bytes of each column of a sample, which for bytes and images are what Leat gives."""
    data, sizes, at = reader.get_sample_data(i), [], 0
    for size in reader.column_sizes:
        if not size:
            size = int.from_bytes(data[at : at + 4], "little")
            at += 4
        sizes.append(size)
    out = {}
    for name, size in zip(reader.column_names, sizes):
        out[name] = data[at : at + size]
        at += size
    return out


def case(name, folder, fields=None):
    """What MDSReader gives of all shards of a folder."""
    samples = []
    for shard in json.loads((HERE / folder / "index.json").read_text())["shards"]:
        reader = MDSReader.from_json(str(HERE / folder), "", shard)
        for i in range(reader.samples):
            decoded, pieces, one = reader[i], raw(reader, i), {}
            for column, encoding in zip(reader.column_names, reader.column_encodings):
                if fields and column not in fields:
                    continue
                numeric = encoding.split(":")[0] in NUMERIC
                one[column] = number(decoded[column]) if numeric else text(pieces[column])
            samples.append(one)
    chosen = f", fields=[{', '.join(fields)}]" if fields else ""
    cases.append({"name": name, "spec": f"mds('@/{folder}'{chosen})", "samples": samples})


NUMERIC = {"int", "ndarray"} | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
NUMERIC |= {"float16", "float32", "float64"}


def write(folder, columns, samples, **options):
    with MDSWriter(out=str(HERE / folder), columns=columns, **options) as out:
        for sample in samples:
            out.write(sample)


def write_scalars():
    kinds = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    samples = []
    for i in range(3):
        sample = {"whole": -(10**12) * i, "word": f"h\u00e9 {i}" * i, "raw": bytes(range(i * 3))}
        for kind in kinds:
            info = np.iinfo(kind)
            sample[kind] = [info.min, min(info.max, 2**63 - 1), 7][i]
        for kind in ("float16", "float32", "float64"):
            sample[kind] = [1 / 3, -np.inf, 65504.0][i]
        samples.append(sample)
    columns = {"whole": "int", "word": "str", "raw": "bytes"} | {k: k for k in kinds}
    write("scalars", columns | {k: k for k in ("float16", "float32", "float64")}, samples)
    case("scalars", "scalars")
    case("chosen", "scalars", ["word", "int64", "float16"])


def write_arrays():
    """Arrays with type and shape in the encoding, in the data, or one of them in each."""
    samples = []
    for i in range(5):
        samples.append(
            {
                "fixed": np.arange(12, dtype="float32").reshape(3, 4) * i,
                "narrow": (np.arange(4) - 2 * i).astype("int16"),
                "row": np.arange(1 + 100 * i, dtype="uint8"),
                "grid": np.arange(2 * (i + 1), dtype="float64").reshape(2, i + 1),
                "free": np.arange(1 + 70 * i, dtype="int64") - 5,
                "bytes": np.full((2, 3, 1), i, "uint8"),
            }
        )
    columns = {"fixed": "ndarray:float32:3,4", "narrow": "ndarray:int16:4", "row": "ndarray:uint8",
               "grid": "ndarray:float64", "free": "ndarray", "bytes": "ndarray:uint8:2,3,1"}
    write("arrays", columns, samples, size_limit=2000)  # several shards
    case("arrays", "arrays")


def write_images():
    samples = []
    for i in range(2):
        image = Image.fromarray((np.arange(6 * 5 * 3).reshape(6, 5, 3) * (i + 1) % 256).astype("uint8"))
        samples.append({"jpeg": image, "png": image, "pil": image, "label": i, "info": {"i": i}})
    write("images", {"jpeg": "jpeg", "png": "png", "pil": "pil", "label": "int32", "info": "json"}, samples,
          hashes=["sha1", "xxh64"])
    case("images", "images")
    write("packed", {"label": "int"}, [{"label": i} for i in range(3)], compression="zstd")


write_scalars()
write_arrays()
write_images()
version = importlib.metadata.version("mosaicml-streaming")
(HERE / "cases.json").write_text(
    json.dumps({"library": f"mosaicml-streaming {version}", "cases": cases}, indent=1) + "\n")
archive.finish(HERE)
