#!/usr/bin/env python3
"""make_tfds.py: TFDS folders, and what tensorflow-datasets reads from them, for tests/unit/test_tfds.c.

    python3 -m venv /tmp/tfds && /tmp/tfds/bin/pip install \
        array_record==0.8.6 numpy==2.4.6 protobuf==7.36.2 tensorflow-cpu==2.21.0 tensorflow-datasets==4.9.10 \
        tensorflow-metadata==1.21.0
    /tmp/tfds/bin/python tests/golden/make_tfds.py

Writes tests/golden/tfds.tar: data sets, and cases.json that says which spec reads which samples (@ stands for
the folder with all of them). The order of features in a record, and so its bytes, differ from run to run; samples do not.
"""
import json
import os
import pathlib
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import archive
import numpy as np
import tensorflow_datasets as tfds

HERE = archive.begin("tfds")
cases = []

# Types that Leat does not have become the next one that holds all their values; floats are stored as float32.
WIDER = {"bool": "uint8", "int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64",
         "float64": "float32", "float16": "float32"}

LEFT_OUT = {"film", "names", "packed", "rows"}  # what Leat has no fields for


class Small(tfds.core.GeneratorBasedBuilder):
    """One feature of each kind."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        f = tfds.features
        return tfds.core.DatasetInfo(
            builder=self,
            features=f.FeaturesDict(
                {
                    "image": f.Image(shape=(None, None, 3), encoding_format="png"),
                    "label": f.ClassLabel(num_classes=3),
                    "text": f.Text(),
                    "box": f.BBoxFeature(),
                    "flag": f.Scalar(np.bool_),
                    "count": f.Scalar(np.int32),
                    "byte": f.Tensor(shape=(2, 3, 1), dtype=np.uint8),
                    "short": f.Tensor(shape=(2,), dtype=np.int16),
                    "weights": f.Tensor(shape=(None,), dtype=np.float32),
                    "matrix": f.Tensor(shape=(None, 2), dtype=np.float64),
                    "raw": f.Tensor(shape=(2, 2), dtype=np.float64, encoding="bytes"),
                    "packed": f.Tensor(shape=(2, 2), dtype=np.float64, encoding="zlib"),
                    "free": f.Tensor(shape=(None, None), dtype=np.int32, encoding="bytes"),
                    "word": f.Tensor(shape=(), dtype=np.str_),
                    "names": f.Sequence(f.Text()),
                    "ids": f.Sequence(np.int64),
                    "pair": f.Sequence(f.ClassLabel(num_classes=9), length=2),
                    "objects": f.Sequence({"area": np.int64, "box": f.BBoxFeature()}),
                    "nested": {"a": np.int64, "b": {"c": np.float32}},
                    "rows": f.Sequence(f.Sequence(np.int64)),
                    "film": f.Video(shape=(None, 2, 2, 3)),
                }
            ),
        )

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples(0, 11), "test": self._generate_examples(100, 3)}

    def _generate_examples(self, first, count):
        for i in range(first, first + count):
            k = i % 100
            yield i, {
                "image": (np.arange(12).reshape(2, 2, 3) + k).astype(np.uint8),
                "label": i % 3,
                "text": f"h\u00e9 {i}" * (k % 3),
                "box": tfds.features.BBox(ymin=0.0, xmin=k / 16, ymax=0.5, xmax=1.0),
                "flag": bool(i % 2),
                "count": -i * 1000,
                "byte": np.full((2, 3, 1), 255 - k, np.uint8),
                "short": np.array([-32768, k], np.int16),
                "weights": np.arange(k % 4, dtype=np.float32) / 3,
                "matrix": np.arange(2 * (k % 3), dtype=np.float64).reshape(-1, 2) / 4,
                "raw": np.arange(4, dtype=np.float64).reshape(2, 2) / 3 + i,
                "packed": np.arange(4, dtype=np.float64).reshape(2, 2) / 3,
                "free": np.arange((k % 3) * 2, dtype=np.int32).reshape(k % 3, 2) - i,
                "word": f"w{i}",
                "names": [f"n{j}" for j in range(k % 3)],
                "ids": [10**12 * j - i for j in range(k % 5)],
                "pair": [k % 9, 8],
                "objects": [{"area": j, "box": tfds.features.BBox(0.0, 0.0, j / 4, 1.0)} for j in range(k % 3)],
                "nested": {"a": i, "b": {"c": i / 8}},
                "rows": [[1] * j for j in range(k % 3)],
                "film": np.zeros((1, 2, 2, 3), np.uint8),
            }


class Plain(tfds.core.GeneratorBasedBuilder):
    """As small as MNIST, in several shards."""

    VERSION = tfds.core.Version("2.0.1")
    BUILDER_CONFIGS = [tfds.core.BuilderConfig(name="tiny")]

    def _info(self):
        f = tfds.features
        features = f.FeaturesDict({"image": f.Image(shape=(4, 4, 1)), "label": f.ClassLabel(names=["a", "b"]),
                                   "id": f.Scalar(np.uint8)})
        return tfds.core.DatasetInfo(builder=self, features=features, supervised_keys=("image", "label"))

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for i in range(37):
            yield i, {"image": np.full((4, 4, 1), i, np.uint8), "label": i % 2, "id": i}


def number(array, raw):
    array = np.asarray(array)
    if not raw:
        array = array.astype(WIDER.get(array.dtype.name, array.dtype))
    return {"dtype": array.dtype.name, "shape": list(array.shape), "hex": array.tobytes().hex()}


def text(data):
    return {"dtype": "uint8", "shape": [len(data)], "hex": data.hex()}


def flatten(sample, prefix=""):
    for name, value in sample.items():
        if isinstance(value, dict):
            yield from flatten(value, prefix + name + "/")
        else:
            yield prefix + name, value


def case(name, folder, split, fields=None):
    """What tensorflow-datasets gives of a split, images as they are stored."""
    builder = tfds.builder_from_directory(str(HERE / folder))
    decoders = {k: tfds.decode.SkipDecoding() for k in builder.info.features if k in ("image", "film")}
    config = tfds.ReadConfig(interleave_cycle_length=1)
    samples = []
    for sample in tfds.as_numpy(builder.as_dataset(split=split, decoders=decoders, read_config=config)):
        one = {}
        for key, value in flatten({k: v for k, v in sample.items() if k not in LEFT_OUT}):
            if fields and key not in fields:
                continue
            one[key] = text(value) if isinstance(value, bytes) else number(value, key == "raw")
        samples.append(one)
    chosen = f", fields=[{', '.join(repr(f) for f in fields)}]" if fields else ""
    cases.append({"name": name, "spec": f"tfds('@/{folder}', split='{split}'{chosen})", "samples": samples})


def build(cls, shards, **options):
    with tempfile.TemporaryDirectory() as folder:
        builder = cls(data_dir=folder, **options)
        config = tfds.download.DownloadConfig(num_shards=shards, compute_stats="skip")
        builder.download_and_prepare(download_config=config)
        target = HERE / pathlib.Path(builder.data_dir).relative_to(folder)
        shutil.copytree(builder.data_dir, target)


if __name__ == "__main__":
    build(Small, 2)
    build(Plain, 4, config="tiny")
    case("small", "small/1.0.0", "train")
    case("test", "small/1.0.0", "test")
    case("chosen", "small/1.0.0", "train", ["text", "nested/b/c", "label"])
    plain = "plain/tiny/2.0.1"
    for split in ["train", "train[:80%]", "train[80%:]", "train[10:20]", "train[-5:]", "train[:-30]", "train[33%:66%]",
                  "train[12.5%:50%]", "train[:1]", "train[5:7] + train[:2]", "all",
                  "train[1shard:3shard]", "train[0shard]", "train[-1shard:]", "train[:50%]"]:
        case(f"plain {split}", plain, split, None if split == "train[10:20]" else ["id"])
    (HERE / "cases.json").write_text(
        json.dumps({"library": f"tensorflow-datasets {tfds.__version__}", "cases": cases}, indent=None)
        .replace('{"name"', '\n{"name"') + "\n")
    archive.finish(HERE)
