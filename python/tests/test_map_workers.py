"""Functions in Python before batch: in worker processes, on all cores."""
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import leat


@pytest.fixture
def words(tmp_path):
    """60 samples of text: "word 0", "word 1 word 1", ..."""
    for i in range(60):
        (tmp_path / f"{i:02}.txt").write_text(" ".join([f"word {i}"] * (i % 5 + 1)))
    lines = ["path"] + [f"{i:02}.txt" for i in range(60)]
    (tmp_path / "words.csv").write_text("\n".join(lines) + "\n")
    return leat.list(tmp_path / "words.csv", content="text")


def noisy(sample, rng):
    sample["x"] = sample["x"] + rng.random()


def twice(x, y):
    return x * 2, y


def brighter(image, rng):
    return np.clip(image.astype(np.int16) + rng.integers(-20, 20), 0, 255).astype(np.uint8)


def run(pipeline, batches=None, start=None, **options):
    with pipeline.feed(**options) as feed:
        if start is not None:
            feed.load_state_dict(start)
        out = [{name: np.array(value) for name, value in batch.to_dict().items()} for batch in feed.steps(batches)]
        return out, feed.state_dict()


def same(a, b):
    return len(a) == len(b) and all(x.keys() == y.keys() and all(np.array_equal(x[k], y[k]) for k in x)
                                    for x, y in zip(a, b))


# ---- what functions may do ----


def test_functions_add_drop_and_change_fields(numbers):
    def change(sample):
        return {"double": sample["x"] * 2, "y": sample["y"].astype(np.float32), "name": f"sample {sample['x']}",
                "pid": os.getpid()}

    with numbers.map(change).batch(10).feed(threads=2) as feed:
        assert feed.fields["double"] == ("int64", ()) and feed.fields["y"] == ("float32", (2,))
        assert feed.fields["name"] == ("uint8", (None,))
        batches = [batch.copy() for batch in feed]
    assert list(batches[0]) == ["double", "y", "name", "pid"]
    assert batches[1]["double"].tolist() == list(range(20, 40, 2))
    assert bytes(batches[1]["name"][3]) == b"sample 13"
    pids = {pid for batch in batches for pid in batch["pid"].tolist()}
    assert os.getpid() not in pids and 1 <= len(pids) <= 2


def test_functions_may_name_their_fields_and_ops_may_follow(cells):
    images = leat.folder(cells / "cells").decode().resize(32, 32)
    with images.map(lambda image: image[:16, ::-1], fields="image").resize(8, 8).scale(1 / 255).batch(8).feed() as feed:
        batch = next(iter(feed))
        assert batch["image"].shape == (8, 8, 8, 3) and batch["image"].dtype == np.float32
        assert "label" in batch
    with images.batch(8).feed() as plain, images.map(lambda image: image[:16, ::-1], fields="image").batch(8).feed() as feed:
        assert np.array_equal(next(iter(plain))["image"][:, :16, ::-1], next(iter(feed))["image"])


def test_the_example_of_the_docs_runs(cells):
    def f(sample):
        sample["image"] = 255 - sample["image"]

    feed = leat.folder(cells / "cells").decode().map(f).resize(8, 8).batch(32).feed(memory="256MiB")
    with feed, leat.folder(cells / "cells").decode().invert().resize(8, 8).batch(32).feed() as other:
        assert np.array_equal(next(iter(feed))["image"], next(iter(other))["image"])


@pytest.mark.parametrize("workers", ["process", "thread"])
def test_types_can_be_declared(numbers, workers):
    def count(sample):
        return {"ones": [1] * int(sample["x"] % 4), "half": 0.5}

    types = {"ones": ("int64", (None,)), "half": ("float32", ())}
    with numbers.map(count, fields=types, workers=workers).batch(10).feed() as feed:
        batch = next(iter(feed))
        assert [len(one) for one in batch["ones"]] == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
        assert batch["half"].dtype == np.float32
    with numbers.map(lambda x: range(x % 3), fields="x", returns={"x": ("int32", (None,))},
                     workers=workers).batch(10).feed() as feed:
        assert [one.tolist() for one in next(iter(feed))["x"]][:4] == [[], [0], [0, 1], []]


@pytest.mark.parametrize("workers", ["process", "thread"])
def test_a_shape_that_differs_is_explained(numbers, workers):
    with numbers.map(lambda x: np.zeros(3 if x < 50 else 4), fields="x", workers=workers).batch(10).feed(
            on_error="skip") as feed:
        expected = (r"\(sample 50\): map: .*field 'x' has the shape \(4,\), expected \(3,\); declare what varies as None: "
                    r"fields={'x': \('float64', \(None,\)\)}")
        with pytest.raises(leat.SpecError, match=expected):
            for batch in feed:
                pass


def test_python_values_become_numpys_types(numbers):
    import ml_dtypes

    def make(sample):
        return {"int": 3, "float": 1.5, "bool": True, "bytes": b"ab", "list": [1, 2],
                "half": np.zeros(2, ml_dtypes.bfloat16), "u4": np.uint32(7)}

    with numbers.map(make).batch(2).feed() as feed:
        assert {name: spec.dtype for name, spec in feed.fields.items()} == {
            "int": "int64", "float": "float64", "bool": "bool", "bytes": "uint8", "list": "int64", "half": "bfloat16",
            "u4": "uint32"}
        batch = next(iter(feed))
        assert batch["list"].tolist() == [[1, 2]] * 2 and bytes(batch["bytes"][1]) == b"ab"


def test_text_goes_in_and_out(words):
    def lengths(sample):
        text = bytes(sample["text"]).decode()
        return {"text": text.upper(), "words": [len(word) for word in text.split()]}

    types = {"text": ("uint8", (None,)), "words": ("int64", (None,))}
    with words.map(lengths, fields=types).batch(60).feed() as feed:
        batch = next(iter(feed))
        assert bytes(batch["text"][11]) == b"WORD 11 WORD 11"
        assert batch["words"][11].tolist() == [4, 2, 4, 2]


# ---- the same batches ----


def chains(numbers, images):
    return {
        "map, shuffle": numbers.map(noisy).shuffle().batch(8),
        "shuffle, two maps": numbers.shuffle().map(noisy).map(twice, fields=["x", "y"]).map(noisy).batch(8),
        "cache": numbers.map(noisy, version="1").cache("memory").shuffle().map(noisy).batch(8),
        "images": images.shuffle().random_flip().map(brighter, fields="image").random_crop(12, 12).scale(1 / 255)
        .one_hot(10, field="label").batch(8).mixup(0.2),
    }


@pytest.mark.parametrize("name", ["map, shuffle", "shuffle, two maps", "cache", "images"])
def test_batches_depend_on_the_seed_alone(numbers, cells, name):
    images = leat.tfrecord(cells / "cells-*.tfrecord").example(image=bytes, label=int).decode().resize(16, 16)
    pipeline = chains(numbers, images)[name]
    whole, _ = run(pipeline, seed=1, epochs=2, threads=1)
    assert same(whole, run(pipeline, seed=1, epochs=2, threads=3, memory="128MiB")[0])
    assert not same(whole, run(pipeline, seed=2, epochs=2, threads=2)[0])
    ranks = [run(pipeline, seed=1, epochs=2, threads=2, rank=rank, world=2)[0] for rank in range(2)]
    first = next(iter(whole[0]))
    joined = [np.concatenate([a[first], b[first]])[:len(w[first])] for a, b, w in zip(*ranks, whole)]
    assert all(np.array_equal(w[first], j) for w, j in zip(whole, joined))
    _, state = run(pipeline, 7, seed=1, threads=2)
    assert same(whole[7:], run(pipeline, start=state, epochs=2, threads=1)[0])


def test_threads_and_processes_give_the_same(numbers):
    results = [run(numbers.shuffle().map(noisy, workers=workers).batch(8), seed=3, epochs=1, threads=2)[0]
               for workers in ("process", "thread")]
    assert same(*results)


def test_two_functions_draw_different_numbers(numbers):
    def draw(x, rng):
        return rng.random()

    with numbers.map(draw, fields="x").map(draw, fields="y").batch(100).map(draw, fields="x").feed() as feed:
        after = next(iter(feed))
        assert not np.intersect1d(after["x"], after["y"]).size
    with numbers.map(draw, fields="x").batch(100).feed() as feed:
        assert not np.intersect1d(next(iter(feed))["x"], after["x"]).size


def test_upstream_of_a_cache_numbers_belong_to_the_sample(numbers):
    with numbers.map(noisy, version="1").cache("memory").shuffle().batch(100).feed(seed=5) as feed:
        first, second = (np.sort(batch["x"]) for batch in feed.steps(2))
    assert np.array_equal(first, second) and len(np.unique(first % 1)) > 90


# ---- versions ----


def test_a_cache_needs_a_version(numbers, tmp_path):
    with pytest.raises(leat.SpecError, match="give map.*a version"):
        numbers.map(twice, fields=["x", "y"]).cache("memory").batch(5).feed()

    def first(sample):
        return {"x": sample["x"]}

    def second(sample):
        return {"x": sample["x"] + 1}

    def run_cached(function, version):
        with numbers.map(function, version=version).cache(dir=tmp_path / "cache").batch(100).feed() as feed:
            return int(next(iter(feed))["x"][0])

    assert [run_cached(first, "1"), run_cached(second, "2"), run_cached(first, "1")] == [0, 1, 0]


def test_checkpoints_know_the_version_or_the_name(numbers):
    def other(x, y):
        return x, y

    def state(function, **options):
        with numbers.map(function, fields=["x", "y"], **options).batch(5).feed() as feed:
            return feed.state_dict()

    def load(state, function, **options):
        with numbers.map(function, fields=["x", "y"], **options).batch(5).feed() as feed:
            feed.load_state_dict(state)

    load(state(twice), twice)
    load(state(twice, version="a"), other, version="a")
    for function, version in ((other, ""), (twice, "b")):
        with pytest.raises(leat.MismatchError):
            load(state(twice, version="a" if version else ""), function, version=version)


# ---- failures ----


def picky(x):
    if x % 40 == 17:
        raise ValueError(f"not {x}")
    return x


@pytest.mark.parametrize("workers", ["process", "thread"])
def test_an_exception_names_the_sample_and_has_the_traceback(numbers, workers):
    with numbers.map(picky, fields="x", workers=workers).batch(10).feed(threads=2) as feed:
        with pytest.raises(leat.MapError, match=r"/\S+ at offset \d+ \(sample 17\): position 17 of epoch 0: map: picky: "
                                                "ValueError: not 17") as caught:
            for batch in feed:
                pass
    error = caught.value
    assert (error.epoch, error.position) == (0, 17)
    assert isinstance(error.__cause__, ValueError) and error.__cause__.args == ("not 17",)
    assert 'raise ValueError(f"not {x}")' in error.traceback and "_worker.py" not in error.traceback
    assert pickle.loads(pickle.dumps(error)).position == 17


@pytest.mark.parametrize("workers", ["process", "thread"])
def test_bad_samples_are_skipped_or_replaced(numbers, workers):
    pipeline = numbers.map(picky, fields="x", workers=workers).batch(10)
    with pipeline.feed(on_error="skip", threads=2) as feed:
        seen = [x for batch in feed for x in batch["x"].tolist()]
        assert seen == [x for x in range(100) if x % 40 != 17]
        assert [(bad.position, bad.reason) for bad in feed.bad()] == [
            (x, f"map: picky: ValueError: not {x}") for x in (17, 57, 97)]
        assert feed.bad()[0].uri and not feed.bad()[0].replaced
    results = [run(pipeline, on_error="replace", threads=threads, epochs=1)[0] for threads in (1, 2)]
    assert same(*results) and sum(len(batch["x"]) for batch in results[0]) == 100


def test_a_bad_first_sample_is_no_obstacle_to_open(numbers):
    def no_zero(x):
        return 10 // int(x)

    with numbers.map(no_zero, fields="x").batch(10).feed(on_error="skip") as feed:
        assert next(iter(feed))["x"].tolist()[:3] == [10, 5, 3] and len(feed.bad()) == 1
    with pytest.raises(leat.MapError, match="no_zero.* failed at position 0 of epoch 0: ZeroDivisionError") as caught:
        numbers.map(no_zero, fields="x").batch(10).feed()
    assert "10 // int(x)" in caught.value.traceback


@pytest.mark.parametrize("how, expected", [("os._exit(3)", "exited with status 3"),
                                           ("os.kill(os.getpid(), signal.SIGSEGV)", "was killed by signal 11"),
                                           ("os.kill(os.getpid(), signal.SIGKILL)", "perhaps because the system ran out")])
@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_a_worker_that_dies_fails_the_feed(numbers, how, expected, on_error):
    def die(x):
        if x == 35:
            exec(how, {"os": os, "signal": signal})
        return x

    with numbers.map(die, fields="x").batch(10).feed(threads=2, on_error=on_error) as feed:
        with pytest.raises(leat.WorkerError, match=rf"worker process \d+ .*{expected}.*open the feed again"):
            for batch in feed:
                pass
        assert feed.bad() == [] and feed.stats()["bad"] == 0


def test_a_worker_that_is_killed_while_idle_is_noticed(numbers):
    with numbers.map(lambda sample: {"pid": os.getpid()}).batch(1).prefetch(0).feed(threads=1) as feed:
        os.kill(int(next(iter(feed))["pid"][0]), signal.SIGKILL)
        with pytest.raises(leat.WorkerError, match="signal 9"):
            for batch in feed:
                pass


def test_what_cannot_work_is_refused(numbers):
    with pytest.raises(leat.SpecError, match="no field 'z'"):
        numbers.map(picky, fields="z").batch(5).feed()
    with pytest.raises(leat.MapError, match="returned int, expected a dict"):
        numbers.map(lambda sample: 3).batch(5).feed()
    with pytest.raises(leat.MapError, match="field 'z' is of type complex128"):
        numbers.map(lambda sample: {"z": 1j}).batch(5).feed()
    with pytest.raises(leat.MapError, match="returned 3 values, expected 2: x, y"):
        numbers.map(lambda x, y: (1, 2, 3), fields=["x", "y"]).batch(5).feed()
    with pytest.raises(leat.InvalidError, match="expected a type and a shape"):
        numbers.map(picky, fields={"x": "uint8"})
    with pytest.raises(leat.InvalidError, match="before batch"):
        numbers.batch(5).map(picky, fields="x", version="1")
    with pytest.raises(leat.SpecError, match="Pipeline.map in Python"):
        leat.feed(numbers.spec + " | map(f) | batch(5)")


# ---- processes ----


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids, seconds=20):
    end = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.01)
    return not any(map(alive, pids))


def test_closing_ends_the_workers_even_in_a_function(numbers):
    def stuck(sample):
        if sample["x"] > 20:
            time.sleep(1000)
        return {"pid": os.getpid()}

    feed = numbers.map(stuck).batch(10).feed(threads=2)
    pids = set(next(iter(feed))["pid"].tolist())
    begin = time.monotonic()
    feed.close()
    assert gone(pids) and time.monotonic() - begin < 10


PARENT = """
import os, sys, time
import numpy as np
import leat

def stuck(sample):  # in the main program, without a guard
    if sample["x"] > 20:
        sum(range(10**12))  # holds the GIL
    return {"pid": os.getpid()}

feed = leat.array(x=np.arange(100)).map(stuck).batch(10).feed(threads=2)
print(*sorted(set(next(iter(feed))["pid"].tolist())), flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, None])
def test_a_program_that_ends_leaves_nothing_behind(how):
    before = sorted(os.listdir("/dev/shm"))
    wait = "signal.signal(signal.SIGINT, signal.default_int_handler)\nfor batch in feed: pass\n"
    code = "import signal\n" + PARENT + (wait if how else "")
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in program.stdout.readline().split()]
    assert pids
    if how:
        time.sleep(0.2)
        program.send_signal(how)
    _, errors = program.communicate(timeout=60)
    assert gone(pids)
    assert sorted(os.listdir("/dev/shm")) == before
    if how != signal.SIGKILL:
        assert errors.count("Traceback") == (how == signal.SIGINT)


def test_functions_without_cloudpickle(numbers, python, tmp_path):
    assert python("""
import sys
sys.modules["cloudpickle"] = None  # as if it were not installed
import numpy as np
import leat
numbers = leat.array(x=np.arange(10))
def main(x):
    return x

for function in (lambda x: x, main):
    try:
        numbers.map(function, fields="x").batch(5).feed()
    except leat.InvalidError as error:
        print("install cloudpickle" in str(error))
sys.path.insert(0, sys.argv[1])
open(sys.argv[1] + "/mine.py", "w").write("def double(x): return 2 * x")
import mine
print(next(iter(numbers.map(mine.double, fields="x").batch(5).feed()))["x"].tolist())
""", tmp_path) == "True\nTrue\n[0, 2, 4, 6, 8]\n"


def test_feeds_with_functions_can_be_pickled(numbers):
    with numbers.shuffle().map(noisy).batch(10).feed(seed=1) as feed:
        next(iter(feed))
        with pickle.loads(pickle.dumps(feed)) as other:
            assert np.array_equal(next(iter(feed))["x"], next(iter(other))["x"])
        assert "map('noisy', random=true)" in repr(feed)


def test_a_forked_child_does_not_end_the_workers(python):
    assert python("""
import os, sys, numpy as np
import leat
feed = leat.array(x=np.arange(100)).map(lambda x: x + 1, fields="x").batch(10).feed()
next(iter(feed))
child = os.fork()
if child == 0:
    sys.exit(0)  # finalizers and all
print(os.waitpid(child, 0)[1], len(list(batch.copy() for batch in feed)))
""", timeout=60) == "0 9\n"


def test_many_feeds_leave_nothing_behind(numbers):
    pipeline = numbers.map(picky, fields="x").batch(10)

    def cycle(i):
        feed = pipeline.feed(threads=1)
        if i % 2:
            next(iter(feed))
        if i % 3:
            feed.close()

    cycle(1)
    before = len(os.listdir("/proc/self/fd"))
    for i in range(6):
        cycle(i)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_memory_limit_counts_shared_memory(numbers):
    def large(sample):
        return {"z": np.zeros(300_000)}

    pipeline = numbers.map(large).batch(2)
    with pytest.raises(leat.LimitError, match="needs at least"):
        pipeline.feed(threads=2, memory="4MiB")
    with pipeline.feed(threads=2, memory="64MiB") as feed:
        next(iter(feed))
        assert 4 * 2_400_000 < feed.stats()["memory_peak"] <= 64 << 20


def test_results_larger_than_the_shared_memory(numbers):
    def any_size(x):
        return np.full(x * 100_000, x)

    with numbers.map(any_size, fields="x", returns={"x": ("int64", (None,))}).batch(1).feed(
            threads=2, memory="2GiB") as feed:
        for x, batch in zip(range(40), feed):
            assert len(batch["x"][0]) == x * 100_000 and (batch["x"][0] == x).all()


def test_time_in_functions_shows_as_map(numbers):
    def slow(x):
        time.sleep(0.002)
        return x

    with numbers.map(slow, fields="x").repeat(5).batch(10).feed(epochs=1, threads=2) as feed:
        for batch in feed:
            pass
        stats = feed.stats()
    assert stats["limit"] == "map" and stats["op_ns"] > 500 * 2_000_000
