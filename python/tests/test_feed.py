"""Feeds and batches: order, memory, lifetimes, where a feed stands."""
import gc
import json
import logging
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

import leat
from leat import _ops


def ids(feed):
    return [batch["x"].tolist() for batch in feed]


def test_a_loop_is_an_epoch(numbers):
    feed = numbers.batch(32).feed()
    assert len(feed) == 4 and feed.samples == 100 and feed.batch_size == 32
    assert sum(ids(feed), []) == list(range(100))
    assert feed.epoch == 1
    assert sum(ids(feed), []) == list(range(100))
    assert feed.epoch == 2


def test_epochs_end_when_asked_for(numbers):
    feed = numbers.batch(50).feed(epochs=2)
    assert [len(ids(feed)) for _ in range(4)] == [2, 2, 0, 0]


def test_a_loop_goes_on_after_break(numbers):
    feed = numbers.batch(25).feed()
    for batch in feed:
        break
    assert batch["x"][0] == 0 and feed.position == 25
    assert len(ids(feed)) == 3
    assert len(ids(feed)) == 4


def test_a_loop_that_begins_behind_the_last_batch_is_the_next_epoch(numbers):
    feed = numbers.batch(50).feed(epochs=2)
    for i, batch in enumerate(feed):
        if i == 1:
            break
    assert (feed.epoch, feed.position) == (1, 0)
    state = feed.state_dict()
    assert len(ids(feed)) == 2 and len(ids(feed)) == 0
    other = numbers.batch(50).feed(epochs=2)
    other.load_state_dict(state)
    assert len(ids(other)) == 2 and len(ids(other)) == 0


def test_steps_run_over_the_ends_of_epochs(numbers):
    feed = numbers.batch(50).feed()
    assert [batch.epoch for batch in feed.steps(5)] == [0, 0, 1, 1, 2]
    assert len(list(numbers.batch(50).feed(epochs=2).steps())) == 4


def test_arrays_lie_in_the_engines_memory_and_can_be_written_to(images):
    batch = next(iter(images.batch(8).feed()))
    image = batch["image"]
    assert image.shape == (8, 16, 16, 3) and image.dtype == np.float32 and batch["label"].dtype == np.int64
    assert image.flags.writeable and image.flags.c_contiguous and not image.flags.owndata
    assert image.ctypes.data % 64 == 0
    tensor = np.from_dlpack(batch.dlpack("image"))
    assert tensor.ctypes.data == image.ctypes.data
    image[0, 0, 0, 0] = 7
    assert tensor[0, 0, 0, 0] == 7
    assert batch["image"] is image


def test_a_batch_knows_its_samples(numbers):
    feed = numbers.shuffle().batch(30, tail="pad").feed()
    batches = [(b.count, b.epoch, b.valid.tolist(), b.positions.tolist()) for b in feed]
    assert [b[0] for b in batches] == [30, 30, 30, 30]
    assert batches[3][2] == [True] * 10 + [False] * 20
    assert batches[1][3] == list(range(30, 60)) and batches[3][3][-1] == 2**64 - 1


def test_batches_that_are_kept_stay_as_they_are(numbers):
    feed = numbers.batch(10).feed()
    kept = [batch["x"] for batch, _ in zip(feed, range(3))]
    for batch in feed:
        pass
    feed.close()
    del feed, batch
    gc.collect()
    assert np.concatenate(kept).tolist() == list(range(30))


def test_batches_in_dead_cycles_are_found(numbers):
    feed = numbers.batch(2).feed()
    for batch in feed:
        cycle = [batch]
        cycle.append(cycle)
    assert feed.epoch == 1


def test_ragged_fields(cells, images):
    whole = [path.read_bytes() for path in sorted((cells / "cells").glob("*/*.jpg"))]
    feed = leat.folder(cells / "cells").batch(16).feed()
    field = next(iter(feed))["image"]
    assert isinstance(field, leat.Ragged) and len(field) == 16
    assert field.to_list() == whole[:16] and field.to_bytes() == whole[:16]
    assert field[3].tobytes() == whole[3] and field[-1].tobytes() == whole[15]
    assert field.values[field.offsets[2]:field.offsets[3]].tobytes() == whole[2]
    assert np.asarray(field).dtype == object and np.asarray(field)[1] == whole[1]
    with pytest.raises(IndexError):
        field[16]
    decoded = next(iter(leat.folder(cells / "cells").decode().batch(4).feed()))["image"]
    assert [image.shape for image in decoded] == [tuple(shape) for shape in decoded.shapes]
    assert decoded[0].base is not None and decoded[0].ndim == 3


def test_ragged_values_can_be_padded():
    field = leat.Ragged(np.arange(6), np.array([0, 1, 1, 6]))
    assert field.padded(-1).tolist() == [[0, -1, -1, -1, -1], [-1] * 5, [1, 2, 3, 4, 5]]
    assert field.padded(length=2).tolist() == [[0, 0], [0, 0], [1, 2]]
    assert field.to_list() == [[0], [], [1, 2, 3, 4, 5]]


def test_texts(cells):
    feed = leat.folder(cells / "cells", path=True).batch(3).feed()
    assert next(iter(feed))["path"].to_strings()[0].endswith(".jpg")


def test_unknown_fields_are_key_errors_with_a_hint(numbers):
    batch = next(iter(numbers.rename(image="x").batch(3).feed()))
    with pytest.raises(KeyError, match="did you mean 'image'"):
        batch["imag"]
    assert set(batch) == {"image", "y"} and "image" in batch and "imag" not in batch


def test_bfloat16(numbers):
    batch = next(iter(numbers.cast("bfloat16", field="y").batch(4).feed()))
    assert batch["y"].dtype.itemsize == 2


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "uint16", "uint32", "uint64"])
def test_narrow_types(numbers, dtype):
    feed = numbers.cast(dtype, field="y").batch(100).feed(epochs=1)
    y = next(iter(feed))["y"]
    assert feed.fields["y"].dtype == dtype and y.dtype == np.dtype(dtype)
    want = np.arange(100).reshape(100, 1) * [1, 2]
    assert y.tolist() == np.minimum(want, 127 if dtype == "int8" else 198).astype(dtype).tolist()


def test_types_of_python_and_numpy_are_casts(numbers):
    batch = next(iter(numbers.cast(bool, field="x").cast(np.int16, field="y").batch(3).feed()))
    assert batch["x"].tolist() == [False, True, True] and batch["y"].dtype == np.int16


def test_narrow_arrays_are_read_as_they_are():
    arrays = {name: np.arange(4).astype(name) for name in ["int8", "int16", "uint16", "uint32", "uint64"]}
    batch = next(iter(leat.array(**arrays).batch(4).feed()))
    assert all(batch[name].dtype == name and batch[name].tolist() == [0, 1, 2, 3] for name in arrays)


def test_what_a_notebook_shows(images, numbers, cells, tmp_path):
    feed = images.batch(8).feed()
    batch = next(iter(feed))
    assert repr(batch) == "<batch of 8: image: float32[8, 16, 16, 3], label: int64[8]>"
    assert batch._ipython_key_completions_() == ["image", "label"]
    mapped = next(iter(numbers.batch(4).map_batch(lambda fields: None).feed()))
    assert repr(mapped) == "<mapped batch of 4: x, y>" and mapped._ipython_key_completions_() == ["x", "y"]
    ragged = next(iter(leat.tfrecord(cells / "cells-*.tfrecord").example(image=bytes).decode().batch(2).feed()))
    assert repr(ragged) == "<batch of 2: image: uint8[2, None, None, 3]>"
    assert repr(ragged["image"]).startswith("Ragged(2 samples, ")
    assert repr(feed.fields["label"]) == "FieldSpec(dtype='int64', shape=())"
    assert repr(feed.numpy()) == f"<NumPy batches of {feed!r}>"
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat/bad.jpg").write_bytes(b"no image")
    feed = leat.folder(tmp_path).decode().batch(1).feed(on_error="skip")
    list(feed)
    assert repr(feed.bad()[0]).startswith("<bad sample at position 0 of epoch 0: ")


def test_types_of_fields_are_known_beforehand(images):
    feed = images.batch(8).feed()
    assert feed.fields == {"image": leat.FieldSpec("float32", (16, 16, 3)), "label": leat.FieldSpec("int64", ())}


def test_the_same_seed_gives_the_same_bytes(images):
    pipeline = images.shuffle().random_flip().random_brightness(0.1).batch(32)
    def run(seed, threads):
        return b"".join(batch["image"].tobytes() for batch in pipeline.feed(seed=seed, threads=threads))
    assert run(1, 1) == run(1, 3) != run(2, 1)


def test_state_goes_on_where_it_was(numbers):
    pipeline = numbers.shuffle().batch(10)
    feed = pipeline.feed(seed=5)
    for batch in feed.steps(13):
        pass
    state = feed.state_dict()
    rest = [batch["x"].tolist() for batch in feed.steps(9)]
    other = pipeline.feed()
    other.load_state_dict(state)
    assert (other.epoch, other.position, other.seed) == (1, 30, 5)
    assert [batch["x"].tolist() for batch in other.steps(9)] == rest
    with pytest.raises(leat.MismatchError):
        numbers.batch(10).feed().load_state_dict(state)
    with pytest.raises(leat.DataError):
        other.load_state_dict({"seed": "1"})


def test_seek(numbers):
    feed = numbers.shuffle().batch(10).feed(seed=1)
    first = ids(feed)
    feed.seek(0)
    assert ids(feed) == first
    feed.seek(0, 50)
    assert ids(feed) == first[5:]
    with pytest.raises(leat.InvalidError, match="position 101 is outside the epoch, which has 100 samples"):
        feed.seek(0, 101)
    with pytest.raises(leat.InvalidError, match="epoch=-1 must be between 0"):
        feed.seek(-1)


def test_seeking_compares_no_contents(cells, tmp_path):
    """A full fingerprint reads all files. Here one is gone that the epoch does not need."""
    shutil.copytree(cells / "cells", tmp_path / "cells")
    feed = leat.folder(tmp_path / "cells").take(20).batch(10).feed(fingerprint="full")
    max((tmp_path / "cells").glob("*/*.jpg")).unlink()
    feed.seek(0, 10)
    assert [batch.count for batch in feed] == [10]
    with pytest.raises(leat.Error):
        feed.state_dict()


def test_pickled_feeds_go_on_where_they_were(numbers):
    feed = numbers.shuffle().batch(10).feed(seed=3)
    next(iter(feed))
    other = pickle.loads(pickle.dumps(feed))
    feed_rest = ids(feed)
    assert ids(other) == feed_rest and len(feed_rest) == 9


def test_closing(numbers):
    with numbers.batch(10).feed() as feed:
        iterator = iter(feed)
        batch = next(iterator)
    assert feed.closed and "closed" in repr(feed)
    assert batch["x"].tolist() == list(range(10))
    with pytest.raises(leat.CancelledError, match="closed"):
        next(iterator)
    with pytest.raises(leat.CancelledError):
        len(feed)
    feed.close()


def test_ranks_share_an_epoch(numbers):
    parts = [ids(numbers.shuffle().batch(20).feed(seed=1, rank=rank, world=2)) for rank in range(2)]
    whole = ids(numbers.shuffle().batch(20).feed(seed=1))
    assert [a + b for a, b in zip(*parts)] == whole


def test_bad_samples_are_listed(cells, tmp_path):
    for i, path in enumerate(sorted((cells / "cells").glob("*/*.jpg"))[:10]):
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / "a" / f"{i}.jpg").write_bytes(path.read_bytes() if i != 4 else b"no image")
    pipeline = leat.folder(tmp_path).decode().resize(8, 8).batch(10)
    with pytest.raises(leat.DataError, match="4.jpg"):
        list(pipeline.feed())
    feed = pipeline.feed(on_error="skip", epochs=2, bad=tmp_path / "bad.jsonl")
    assert [batch.count for batch in feed] == [9]
    (bad,) = feed.bad()
    assert bad.position == 4 and bad.uri.endswith("4.jpg") and not bad.replaced and bad.status == "DATA"
    assert [batch.count for batch in feed] == [9]
    lines = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert lines == [bad._asdict() for bad in feed.bad()] and len(lines) == 2
    with pytest.raises(leat.InvalidError, match="on_error"):
        pipeline.feed(on_error="ignore")


@pytest.mark.parametrize("text", ["10240", "10KiB", " 10 kib ", "10Ki", "10.24kB", "10.24K", "0.01024mb"])
def test_a_size_may_be_written_as_in_a_spec(images, text):
    with pytest.raises(leat.LimitError, match="10 KiB"):
        images.batch(8).feed(memory=text)


def test_stats_and_memory(images):
    feed = images.batch(8).feed(memory="64MiB", threads=1)
    for batch in feed:
        pass
    stats = feed.stats()
    names = [stat["name"] for stat in _ops.described()["stats"]]
    assert list(stats)[:len(names)] == names
    assert all(name in leat.Feed.stats.__doc__ for name in names)
    assert stats["samples"] == 200 and stats["memory_peak"] <= 64 << 20 and stats["threads"] == 1 and stats["limit"]
    with pytest.raises(leat.LimitError, match="memory"):
        images.batch(8).feed(memory="10kB")
    with pytest.raises(leat.InvalidError, match="64 buckets"):
        images.batch(8).feed(memory="64 buckets")


def test_the_figures_of_a_run_are_dicts_and_lists(images):
    feed = images.batch(8).feed(threads=2, epochs=2)
    for _ in range(2):
        for batch in feed:
            pass
    stats = feed.stats()
    assert stats["sentence"].endswith(".") and stats["samples_per_s"] > 0 and 0 <= stats["wait_share"] <= 1
    assert [epoch["samples"] for epoch in stats["epochs"]] == [200, 200]
    assert {stage["name"]: stage["items"] for stage in stats["stages"]}["step"] == 400
    assert sum(count for _, count in stats["batch_ms"]["histogram"]) == stats["batches"] - 1
    assert {queue["name"] for queue in stats["queues"]} >= {"batches ready", "requests in flight"}
    assert set(stats["first_batch"]) == {"list_ms", "index_ms", "connect_ms", "first_byte_ms", "decode_ms"}
    assert stats["endpoints"] == [] and stats["rank"] == 0 and stats["world"] == 1 and stats["cpus"] > 0
    assert feed.stats(format="dict")["samples"] == 400
    with pytest.raises(leat.InvalidError, match="prometheus"):
        feed.stats(format="xml")


def test_the_figures_are_text_for_prometheus(images):
    parser = pytest.importorskip("prometheus_client.parser")
    feed = images.batch(8).feed(threads=2, epochs=1)
    for batch in feed:
        pass
    stats = feed.stats()
    found = {family.name: family for family in parser.text_string_to_metric_families(feed.stats(format="prometheus"))}
    assert all(family.documentation and family.type in ("counter", "gauge", "histogram") for family in found.values())
    assert found["leat_samples"].type == "counter" and found["leat_samples"].samples[0].value == 200
    stages = [sample.labels["stage"] for sample in found["leat_stage_busy_seconds"].samples]
    assert stages == [stage["name"] for stage in stats["stages"]]
    batch = found["leat_batch_seconds"]
    assert batch.type == "histogram"
    counts = [sample.value for sample in batch.samples if sample.name.endswith("_bucket")]
    assert counts == sorted(counts) and counts[-1] == stats["batches"] - 1
    (limit,) = found["leat_limit_info"].samples
    assert limit.labels["limit"] == stats["limit"] and limit.labels["rank"] == "0"


def test_the_slow_rank_is_named(images):
    feed = images.batch(8).feed(threads=1, epochs=1)
    for batch in feed:
        pass
    run = dict(feed.stats(), wait_share=0.01, seconds=10.0, samples_per_s=20.0)
    slow = dict(run, rank=1, world=2, wait_share=0.4, limit="network", sentence="the network gives 20 samples/s.")
    merged = leat.merge_stats([run, json.dumps(slow)])
    assert merged["slow_rank"] == 1 and merged["samples"] == 400 and merged["samples_per_s"] == 40
    assert merged["sentence"].startswith("rank 1 is the slow one, limited by network: it waited 40 %")
    assert [rank["slow"] for rank in merged["ranks"]] == [False, True]
    assert merged["batch_ms"]["count"] == 2 * run["batch_ms"]["count"]
    assert leat.merge_stats([run, run])["slow_rank"] is None
    with pytest.raises(leat.DataError, match="figures of a run"):
        leat.merge_stats(["[]"])
    with pytest.raises(leat.InvalidError):
        leat.merge_stats([])


def test_the_librarys_words_go_to_pythons_logging(images, caplog):
    with caplog.at_level(logging.INFO, "leat"):
        images.batch(2).prefetch(60000).feed(memory="32MiB")
    assert any("prefetch" in record.message for record in caplog.records)


@pytest.mark.parametrize("option", [{"seed": -1}, {"seed": 2**64}, {"threads": -1}, {"epochs": -1}, {"max_bad": -1},
                                    {"max_pixels": -1}, {"max_pixels": 0}, {"max_bytes": -1}, {"max_bytes": 0},
                                    {"max_bytes": "64 buckets"}])
def test_numbers_out_of_range_are_refused(numbers, option):
    with pytest.raises(leat.InvalidError, match=next(iter(option))):
        numbers.batch(10).feed(**option)
    assert numbers.batch(10).feed(seed=2**64 - 1).state_dict()["seed"] == str(2**64 - 1)
    with pytest.raises(leat.SpecError, match="NUL character"):
        leat.feed("npy(x='a')\0 | batch(3)")
    with pytest.raises(TypeError):
        numbers.batch(10).feed(seed="1")


@pytest.mark.parametrize("storage, error, words", [
    ("endpoint=http://a", TypeError, "storage must be a dict"),
    ({"endpont": "http://a"}, ValueError, "did you mean 'endpoint'"),
    ({"endpoint": "nowhere"}, ValueError, "'endpoint' .* 'nowhere'"),
    ({"endpoint": ["http://a"]}, TypeError, "storage\\['endpoint'\\] must be a text, a number or a bool, not list"),
    ({7: "x"}, TypeError, "7 is not the name"),
    ({"timeout": -1}, ValueError, "'timeout' .* not -1"),
    ({"requests": 1.5}, ValueError, "'requests' .* a whole number, not 1.5"),
    ({"hedge": "perhaps"}, ValueError, "'hedge' .* true or false, not perhaps"),
    ({"region": "a\0b"}, ValueError, "NUL character"),
    ({"aws_secret_access_key": "hush"}, ValueError, "set profile=NAME"),
])
def test_a_mistake_in_storage_is_found_when_the_feed_opens(numbers, storage, error, words):
    with pytest.raises(error, match=words) as found:
        numbers.batch(10).feed(storage=storage)
    assert isinstance(found.value, leat.InvalidError) and "hush" not in str(found.value)


def test_storage_is_no_part_of_a_checkpoint(numbers, tmp_path):
    settings = {"endpoint": "http://a.example", "timeout": 2.5, "hedge": False, "requests": 7, "profile": None,
                "disk_cache": tmp_path / "cache", "disk_cache_size": "10GiB"}
    feed = numbers.shuffle().batch(10).feed(storage=settings)
    first = next(iter(feed))["x"].copy()
    state = feed.state_dict()
    assert "example" not in str(state) and str(tmp_path) not in str(state)
    other = numbers.shuffle().batch(10).feed(storage={"endpoint": "http://b.example"})
    assert (next(iter(other))["x"] == first).all() and other.state_dict() == state
    other.load_state_dict(state)
    assert (next(iter(other))["x"] == next(iter(feed))["x"]).all()


def test_the_help_of_a_feed_names_every_setting_of_storage(build):
    page = subprocess.run([build / "leat", "help", "storage"], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = [line.split()[0] for line in page.splitlines() if line.startswith("  ")]
    assert len(names) >= 15 and [name for name in names if name not in leat.Feed.__doc__] == []


def test_samples_beyond_a_limit_are_bad(images, numbers):
    with images.batch(8).feed(on_error="skip", epochs=1, max_pixels=1) as feed:
        assert sum(len(batch["label"]) for batch in feed) == 0
        assert "more than max_pixels=1 allows" in feed.bad()[0].reason
    with images.batch(8).feed(on_error="skip", epochs=1, max_bytes="10B") as feed:
        assert sum(len(batch["label"]) for batch in feed) == 0
        assert "more than max_bytes=10 allows" in feed.bad()[0].reason
    with numbers.batch(10).feed(epochs=1, max_pixels=None, max_bytes=None) as feed:
        assert sum(len(batch["x"]) for batch in feed) == 100


def test_refcounts_alone_give_batches_back(numbers):
    gc.disable()
    try:
        feed = numbers.batch(2).feed()
        for batch in feed:
            x = batch["x"]
            assert sys.getrefcount(batch) <= 3
        assert x[-1] == 99
    finally:
        gc.enable()


def test_classes_are_named_as_the_source_names_them(cells, build, numbers):
    with leat.folder(cells / "cells").batch(4).feed() as feed:
        assert feed.classes == sorted(folder.name for folder in (cells / "cells").iterdir())
        batch = next(iter(feed))
        assert all(0 <= label < len(feed.classes) for label in batch["label"])
    with leat.tfds(build / "tests/golden/tfds/plain/tiny/2.0.1").batch(2).feed() as feed:
        assert feed.classes == ["a", "b"]
    with numbers.batch(4).feed() as feed:
        assert feed.classes == []
