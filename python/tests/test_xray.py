"""leat.xray, leat.watch and leat.tag on loaders that need no framework.

Most tests run on a clock that only `sleep` moves, so their figures are exact, however busy the machine is.
"""
import functools
import itertools
import json
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import leat
from leat import _replay, _spans, _watch, _xray


@pytest.fixture(autouse=True)
def clock(request, simulate):
    return time if "real_time" in request.keywords else simulate(_replay, _spans, _watch, _xray)


def batches(count, rows=8, wait=0.0):
    for i in range(count):
        time.sleep(wait)
        yield {"x": np.full((rows, 4), i + 1.0), "y": np.arange(rows)}


def sleeping(seconds):
    return lambda batch: time.sleep(seconds)


# ---- figures ----

def test_a_planted_stall_is_what_a_perfect_loader_would_save():
    found = leat.xray(batches(20, wait=0.1), sleeping(0.06))
    assert found.perfect_loader["speedup"] == pytest.approx(160 / 60)
    assert found.perfect_loader["samples_per_s"] == pytest.approx(8 / 0.06)
    assert found.wait_share == pytest.approx(100 / 160) and found.utilisation == pytest.approx(60 / 160)
    assert found.samples_per_s == pytest.approx(8 / 0.16)
    assert found.limit == "loader" and "A perfect loader would give 2.67x: 133 instead of 50 samples/s" in found.sentence


@pytest.mark.real_time
def test_a_planted_stall_on_a_real_clock():
    """Against the times that loader and step took in fact: a busy machine sleeps longer than it was told."""
    waits, steps = [], []

    def slow():
        for batch in batches(20):
            begin = time.monotonic()
            time.sleep(0.1)
            waits.append(time.monotonic() - begin)
            yield batch

    def step(batch):
        begin = time.monotonic()
        time.sleep(0.06)
        steps.append(time.monotonic() - begin)

    found = leat.xray(slow(), step)
    expected = (sum(waits[1:]) + sum(steps[:19])) / 19 / (sum(steps[21:]) / len(steps[21:]))
    assert found.perfect_loader["speedup"] == pytest.approx(expected, rel=0.1)
    assert found.samples_per_s == pytest.approx(8 * 19 / (sum(waits[1:]) + sum(steps[:19])), rel=0.1)


def test_a_loader_that_slows_the_step_down_is_told():
    def step(batch):
        time.sleep(0.02 if loading else 0.01)

    def loads():
        nonlocal loading
        yield from batches(30, wait=0.02)
        loading = False

    loading = True
    found = leat.xray(loads(), step)
    assert found.perfect_loader["step_slowed"] == pytest.approx(2) and "2 times as long as alone" in found.sentence


def test_a_step_that_never_waits_is_the_limit():
    data = list(batches(12))
    found = leat.xray(data, sleeping(0.03))
    assert found.limit == "step" and found.wait_share < 0.05 and found.sentence.startswith("The step is the limit")
    assert found.utilisation > 0.9 and found.perfect_loader["speedup"] == pytest.approx(1)


def test_a_loader_without_a_step_is_measured_alone():
    found = leat.xray(batches(10, wait=0.02))
    assert found.wait_share is None and found.utilisation is None and found.perfect_loader is None
    assert found.sentence.startswith("The loader alone gives") and found.samples_per_s == pytest.approx(8 / 0.02)


def test_a_simulated_step():
    assert leat.xray(list(batches(10)), step_ms=20).part("Run training batch")["ms"] == pytest.approx(20)
    with pytest.raises(leat.InvalidError, match="not both"):
        leat.xray([], sleeping(0), step_ms=1)


def test_to_device_has_its_own_tag():
    seen = []

    def to_device(batch):
        time.sleep(0.02)
        return batch["x"]

    found = leat.xray(list(batches(10)), lambda x: seen.append(x.shape), to_device=to_device)
    assert found.part("to device")["share"] == 1 and set(seen) == {(8, 4)}


def test_batch_times_and_the_first_batch():
    def slow_start():
        time.sleep(0.3)
        yield from batches(10)

    found = leat.xray(slow_start(), sleeping(0.01))
    assert found.first_batch_ms == 300 and found.samples_per_s == pytest.approx(800)  # the start is not part of the rate
    assert found.batch_ms["p50"] == found.batch_ms["p99"] == found.batch_ms["max"] == 10
    assert [count for _, count in found.batch_ms["histogram"]] == [9]
    assert 10 <= found.batch_ms["histogram"][0][0] <= 10 * 9 / 8
    assert found.samples == 80 and found.batches == 10 and found.epochs[0]["samples"] == 80


def test_it_stops_after_batches_or_seconds():
    endless = ({"x": np.zeros((2, 2))} for _ in itertools.count())
    assert leat.xray(endless, batches=7).batches == 7
    assert leat.xray(({"x": np.zeros(2)} for _ in itertools.count()), sleeping(0.01), seconds=0.3).batches == 30
    with pytest.raises(leat.InvalidError, match="no batch"):
        leat.xray([])


@pytest.mark.parametrize("batch, rows", [
    ({"a": np.zeros((5, 2))}, 5), ((np.zeros((4, 3)), np.zeros(4)), 4), ([[1, 2, 3], [4, 5, 6]], 3), ([1, 2, 3], 3),
    (np.zeros((6,)), 6), ("text", 1), (["a", "b"], 2), (np.float32(1), 1)])
def test_samples_are_counted_in_batches_of_any_form(batch, rows):
    assert leat.xray([batch] * 3).samples == 3 * rows
    assert leat.xray([batch] * 3, rows=lambda one: 10).samples == 30


# ---- the replay ----

def test_a_step_may_change_its_batch():
    """Kept batches are copies: the replay sees what the loader gave."""
    seen = []

    def step(batch):
        seen.append(float(batch["x"].min()))
        batch["x"][:] = 0
        batch.pop("y")

        time.sleep(0.01)

    leat.xray(list(batches(6)), step, keep=3)
    assert 0 not in seen and set(seen[6:]) == {1.0, 2.0, 3.0} and len(seen) > 10


def test_the_memory_of_kept_batches_is_bounded():
    big = [{"x": np.zeros((8, 1000))} for _ in range(6)]  # 64 kB each
    assert leat.xray(big, sleeping(0.01), keep_memory="150kB").perfect_loader["kept"] == 2
    assert leat.xray(big, sleeping(0.01), keep_memory=1).perfect_loader["kept"] == 1  # one always
    assert leat.xray(big, sleeping(0.01), keep=4).perfect_loader["kept"] == 4


def test_batches_that_cannot_be_copied_are_noted():
    class Odd:
        def __deepcopy__(self, memo):
            raise TypeError("no")

    found = leat.xray([Odd() for _ in range(4)], sleeping(0.001))
    assert any("could not be copied" in note for note in found.notes)


def test_random_numbers_and_models_are_as_before():
    class Model:
        def __init__(self):
            self.steps = 0

        def state_dict(self):
            return {"steps": self.steps}

        def load_state_dict(self, state):
            self.steps = state["steps"]

    model, other = Model(), Model()

    def step(batch):
        model.steps += 1
        random.random()
        np.random.rand()
        time.sleep(0.1)

    random.seed(1)
    np.random.seed(1)
    expected = random.getstate(), np.random.get_state()[1].tolist()
    hidden = {"step": lambda batch: setattr(other, "steps", other.steps + 1)}
    leat.xray(list(batches(4)), lambda batch: (step(batch), hidden["step"](batch)), restore=[other])
    assert (model.steps, other.steps) == (0, 0)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == expected


class Counts:
    """A model that counts its steps."""

    def __init__(self):
        self.steps = 0

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]

    def train(self):
        self.steps += 1


class Holder:
    def __init__(self, model):
        self.model = model


MODEL, HOLDER, MODELS = Counts(), Holder(Counts()), {"a": Counts()}


def step_of_globals(batch):
    def inside():
        MODEL.train()

    inside()
    [HOLDER.model.train() for _ in range(1)]
    MODELS["a"].train()
    assert MODEL.steps and HOLDER.model.steps and MODELS["a"].steps


def test_models_in_globals_and_nested_functions_are_as_before():
    leat.xray(list(batches(4)), step_of_globals)
    assert (MODEL.steps, HOLDER.model.steps, MODELS["a"].steps) == (0, 0, 0)


def test_models_in_a_closures_objects_are_as_before():
    holder = Holder(Counts())
    leat.xray(list(batches(4)), lambda batch: holder.model.train())
    assert holder.model.steps == 0


def test_all_is_put_back_if_some_of_it_cannot_be():
    class Broken(Counts):
        def load_state_dict(self, state):
            raise RuntimeError("my own")

    broken, other = Broken(), Counts()
    state = random.getstate()
    with pytest.raises(RuntimeError, match="my own"):
        leat.xray(list(batches(4)), lambda batch: (random.random(), broken.train(), other.train()))
    assert other.steps == 0 and random.getstate() == state


def test_the_replay_has_at_most_as_many_steps_as_the_run():
    seen = []
    found = leat.xray(list(batches(3)), lambda batch: (seen.append(batch), time.sleep(0.001)))
    assert found.perfect_loader["replayed"] == 3 and len(seen) == 7  # one before it does not count


# ---- Leat's own ----

def test_a_feed_is_profiled_and_stays_where_it_was(numbers):
    feed = numbers.shuffle().batch(10).feed(seed=1)
    first = next(iter(feed))["x"].tolist()
    found = leat.xray(feed, sleeping(0.002), batches=5)
    assert found.batches == 5 and found.samples == 50 and found.figures["feed"]["batches"] >= 6
    assert feed.position == 10
    again = numbers.shuffle().batch(10).feed(seed=1)
    assert [b["x"].tolist() for b in itertools.chain([{"x": np.array(first)}], feed)] == [b["x"].tolist() for b in again]


def test_a_step_may_change_the_batch_of_a_feed(numbers):
    seen = []

    def step(batch):
        seen.append(float(batch["y"].sum()))
        batch["y"][:] = -1
        time.sleep(0.1)

    leat.xray(numbers.batch(50).feed(), step, batches=2)
    assert min(seen) > 0 and len(set(seen)) == 2


def test_a_pipeline_with_a_step_is_opened(numbers):
    assert leat.xray(numbers.batch(10), sleeping(0.001)).samples == 100


@pytest.mark.real_time
def test_a_pipeline_without_a_step_is_measured_by_the_engine(images, tmp_path):
    found = leat.xray(images.batch(10), step_ms=5, seconds=2)
    assert {"storage", "cpu", "consumer", "whole"} <= {part["name"] for part in found.parts} and found.remedies is not None
    assert found.sentence in repr(found) and "storage" in found._repr_html_() and json.loads(found.json())["limit"]
    found.report(tmp_path / "run.html")
    assert "leat" in (tmp_path / "run.html").read_text()
    for option in ({"batches": 3}, {"rows": len}, {"to_device": len}, {"restore": [found]}):
        with pytest.raises(leat.InvalidError, match=f"{next(iter(option))} is for a step"):
            leat.xray(images.batch(10), **option)
    with pytest.raises(leat.SpecError, match="resise"):
        leat.xray("folder('x') | resise(2, 2) | batch(1)")


# ---- functions in a pipeline: the engine measures them in processes and threads ----

def many():
    return leat.array(x=np.arange(100_000))


def slow(sample):
    time.sleep(0.005)


def quick(sample):
    pass


def picky(sample):
    if sample["x"] == 5:
        raise ValueError("five is right out")


def slow_and_picky(sample):
    time.sleep(0.005)
    if sample["x"] > 20_000:
        raise ValueError("too far")


def noted(folder, sample):
    (pathlib.Path(folder) / str(os.getpid())).touch()


def children():
    """Processes that this one started and that have not been waited for."""
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            pass
    return found


@pytest.mark.real_time
@pytest.mark.parametrize("workers", ["process", "thread"])
def test_a_slow_function_is_the_limit(workers):
    before = children()
    found = leat.xray(many().map(slow, workers=workers).batch(10), step_ms=1, seconds=1.5, threads=1)
    assert found.limit == "map" and found.sentence.startswith("map on 1 thread gives") and found.threads == 1
    assert any(part["name"] == "cpu" and part["note"].startswith("map") for part in found.parts)
    assert children() == before


@pytest.mark.real_time
def test_the_slower_of_function_and_step_is_named():
    """The same function, 50 ms per batch: with a step of 5 ms it is the limit, with a step of 1 s the step is."""
    pipeline = many().map(slow, workers="thread").batch(10)
    assert leat.xray(pipeline, step_ms=5, seconds=1, threads=1).limit == "map"
    found = leat.xray(pipeline, step_ms=1000, seconds=1, threads=1)
    assert found.limit == "step" and found.sentence.startswith("the step is the limit")


@pytest.mark.real_time
def test_each_measurement_has_new_processes_and_all_end(tmp_path):
    before = children()
    leat.xray(many().map(functools.partial(noted, str(tmp_path))).batch(10), seconds=0.5, threads=2)
    assert len(list(tmp_path.iterdir())) >= 4  # at least one each: for the first sample, the whole, one and two threads
    assert children() == before


@pytest.mark.real_time
@pytest.mark.parametrize("workers", ["process", "thread"])
def test_an_exception_in_a_function_is_the_error(workers):
    before = children()
    with pytest.raises(leat.MapError, match="position 5 of epoch 0: .*ValueError: five is right out") as caught:
        leat.xray(many().map(picky, workers=workers).batch(10), seconds=1, threads=2)
    assert isinstance(caught.value.__cause__, ValueError) and "in picky" in caught.value.traceback
    assert caught.value.position == 5 and children() == before


@pytest.mark.real_time
def test_an_exception_in_a_part_is_the_error_too():
    """The whole does not come so far, but parts take samples from all over the data."""
    with pytest.raises(leat.MapError, match=r"\(sample [2-9]\d{4}\).*ValueError: too far") as caught:
        leat.xray(many().map(slow_and_picky, workers="process").batch(10), seconds=1, threads=1)
    assert "in slow_and_picky" in caught.value.traceback


@pytest.mark.real_time
@pytest.mark.parametrize("starts", [0, 1, 5])
def test_processes_that_cannot_be_started_are_an_error(monkeypatch, starts):
    from leat import _pool

    before, start, started = children(), _pool._Process.__init__, []

    def fails(self, tasks):
        if len(started) >= starts:
            raise OSError("no room for processes")
        started.append(self)
        start(self, tasks)

    monkeypatch.setattr(_pool._Process, "__init__", fails)
    with pytest.raises(OSError if starts == 0 else leat.WorkerError, match="no room for processes"):
        leat.xray(many().map(quick, workers="process").batch(10), seconds=1, threads=2)
    assert children() == before and len(started) == starts


INTERRUPTED = """
import os, pathlib, signal, sys, time
import numpy as np
import leat

signal.signal(signal.SIGINT, signal.default_int_handler)
folder, stuck = pathlib.Path(sys.argv[1]), sys.argv[2] == "stuck"

def function(sample):
    (folder / str(os.getpid())).touch()
    time.sleep(1000 if stuck and sample["x"] > 30 else 0.005)

try:
    leat.xray(leat.array(x=np.arange(100_000)).map(function).batch(10), seconds=1000, threads=2)
except KeyboardInterrupt:
    print("interrupted", [path.name for path in folder.iterdir() if pathlib.Path("/proc", path.name).exists()])
"""


@pytest.mark.real_time
@pytest.mark.parametrize("how", ["working", "stuck"])
def test_ctrl_c_ends_an_xray_and_its_processes(tmp_path, how):
    pytest.importorskip("cloudpickle")
    program = subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(tmp_path), how], stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 100
    try:
        while len(list(tmp_path.iterdir())) < 3:  # the first sample, and two threads
            assert program.poll() is None and time.monotonic() < end
            time.sleep(0.01)
        program.send_signal(signal.SIGINT)
        assert program.communicate(timeout=100)[0] == "interrupted []\n" and program.returncode == 0
    finally:
        program.kill()
        program.wait()


@pytest.mark.real_time
def test_the_options_of_a_feed(numbers):
    drawn = set()

    def draw(x, rng):
        drawn.add(float(rng.random()))
        return x

    pipeline = numbers.map(draw, "x", workers="thread").batch(10)
    with pipeline.feed(seed=7) as feed:
        next(iter(feed))
        expected = set(drawn)
    drawn.clear()
    assert leat.xray(pipeline, seconds=0.5, threads=3, memory="1GiB", seed=7).threads == 3
    assert len(expected) >= 10 and len(expected & drawn) >= 10
    with pytest.raises(leat.LimitError, match="memory"):
        leat.xray(numbers.batch(10), memory="1kB")
    with pytest.raises(leat.InvalidError, match="seed=-1"):
        leat.xray(numbers.batch(10), seed=-1)
    with pytest.raises(leat.InvalidError, match="threads is for a pipeline or spec"):
        leat.xray([1, 2, 3], threads=2)


@pytest.mark.real_time
def test_the_slow_rank_of_two_is_named_with_its_stage():
    """The ranks train together: each takes its batch, and the step is over when all have one."""
    with many().map(quick, workers="process").batch(10).feed(rank=0, world=2, threads=1) as one, \
            many().map(slow, workers="process").batch(10).feed(rank=1, world=2, threads=1) as two:
        for _ in zip(one.steps(60), two.steps(60)):
            pass
        merged = leat.merge_stats([one.stats(), two.stats()])
    assert merged["slow_rank"] == 1 and [rank["slow"] for rank in merged["ranks"]] == [False, True]
    assert merged["limit"] == "map" and merged["sentence"].startswith("rank 1 is the slow one, limited by map")


# ---- spans ----

def test_the_trace_has_every_span(tmp_path):
    found = leat.xray(list(batches(5)), sleeping(0.002))
    found.trace(tmp_path / "run.json")
    events = json.loads((tmp_path / "run.json").read_text())
    spans = [event for event in events if event["ph"] == "X"]
    assert [e["name"] for e in events if e["ph"] == "X"][:2] == ["Get batch", "Run training batch"]
    assert sum(e["cat"] == "run batch" for e in spans) == 5 and all(e["dur"] >= 0 for e in spans)
    assert [e["args"]["item"] for e in spans if e["cat"] == "get batch"] == list(range(5))
    runs = [e for e in spans if e["cat"] == "run batch"]
    assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(runs, runs[1:]))
    assert not any(e["ph"] == "C" for e in events)  # of the time of writing, which is not the run's


def test_a_quota_bounds_what_workers_could_give(monkeypatch):
    seen = _watch.Seen()
    seen.count, seen.batches, seen.batch_ns, seen.cpu_ns = 4, 10, 10**9, 8 * 10**8  # 100 ms a batch, 80 of them CPU time
    for cpus, rate in ((8.0, 320), (1.5, 150)):
        monkeypatch.setattr(_watch._lib, "available_cpus", lambda: cpus)
        assert _watch._loader_rate(seen, 0, 8) == pytest.approx(rate)


def test_the_json_has_the_figures():
    found = leat.xray(list(batches(5)), sleeping(0.002))
    figures = json.loads(found.json())
    assert {"limit", "sentence", "parts", "remedies", "stages", "batch_ms", "first_batch_ms", "epochs"} <= set(figures)
    assert [part["name"] for part in figures["parts"]] == ["Get batch", "Run training batch"]
    with pytest.raises(leat.InvalidError, match="no part 'storage'; parts are Get batch, Run training batch"):
        found.part("storage")
    assert figures["sentence"] == found.sentence and found.sentence in repr(found) and "limit" in dir(found)
    with pytest.raises(AttributeError, match="no figure 'speed'"):
        found.speed


# ---- a loop of the program's own ----

def test_watch_gives_the_tags_of_the_study():
    data, seen = list(batches(10)), []
    watched = leat.watch(data)
    for _ in range(2):
        for batch in watched:
            with leat.tag("to device"):
                time.sleep(0.02)
            time.sleep(0.01)
            seen.append(int(batch["x"][0, 0]))
        time.sleep(0.2)  # between epochs: nobody waits
    found = watched.result()
    assert seen == [*range(1, 11)] * 2 and len(watched) == 10
    assert found.part("Training batch to device")["ms"] == pytest.approx(20)
    assert found.part("Run training batch")["ms"] == pytest.approx(10)
    assert found.seconds == pytest.approx(0.6) and found.wait_share == 0 and [epoch["samples"] for epoch in found.epochs] == [80, 80]
    assert found.sentence in repr(watched)


def test_watch_takes_a_tagged_step():
    for _ in (watched := leat.watch(list(batches(6)))):
        with leat.tag("Run training batch"):
            time.sleep(0.01)
        time.sleep(0.03)
    assert watched.result().part("Run training batch")["ms"] == pytest.approx(10)
    assert watched.result().utilisation == pytest.approx(0.25)


def test_a_copy_inside_the_step_counts_once():
    for _ in (watched := leat.watch(list(batches(6)))):
        with leat.tag("run batch"):
            time.sleep(0.01)
            with leat.tag("to device"):
                time.sleep(0.03)
    found = watched.result()
    assert found.part("to device")["share"] == pytest.approx(0.75) and found.utilisation == pytest.approx(0.25)


def test_a_copy_after_a_part_of_the_step():
    for _ in (watched := leat.watch(list(batches(6)))):
        time.sleep(0.02)
        with leat.tag("to device"):
            time.sleep(0.01)
        time.sleep(0.01)
    found = watched.result()
    assert found.part("run batch")["ms"] == pytest.approx(30) and found.part("to device")["ms"] == pytest.approx(10)
    step = [(span.end - span.begin) / 1e6 for span in found._lanes[0] if span.tag == 2]
    assert step == pytest.approx([40] * 6)  # around the copy, for spans may be nested but not overlap


def test_a_loop_that_is_left_early():
    watched = leat.watch(batches(10))
    for batch in watched:
        break
    assert watched.result().batches == 1 and leat.watch([1]).__len__() == 1
    with pytest.raises(leat.InvalidError, match="before the first batch"):
        leat.watch([]).result()


def test_tags_outside_of_a_loop_do_nothing():
    with leat.tag("to device"):
        pass
    with pytest.raises(ValueError, match="no tag 'to devise'"):
        leat.tag("to devise")
    for _ in leat.watch([1]):
        with pytest.raises(leat.InvalidError, match="can tag"):
            with leat.tag("decode"):
                pass


def test_a_trace_of_a_watched_loop(tmp_path):
    for _ in leat.watch(list(batches(3)), trace=tmp_path / "t.json"):
        pass
    assert sum(event["ph"] == "X" for event in json.loads((tmp_path / "t.json").read_text())) == 2 * 3


def test_spans_beyond_the_limit_are_counted():
    from leat._spans import Lane

    lane = Lane("x", limit=2)
    for i in range(5):
        lane.add(0, f"name {i}", i, i + 1)
    assert len(lane) == 2 and lane.dropped == 3 and [span.name for span in lane] == ["name 0", "name 1"]


@pytest.mark.parametrize("rank, files", [("0", ["run-0.json", "run.html"]), ("1", ["run-1.json"])])
def test_ranks_do_not_write_the_same_file(tmp_path, monkeypatch, rank, files):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    for _ in leat.watch(list(batches(3)), report=tmp_path / "run.html", trace=tmp_path / "run-{rank}.json"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == files


# ---- reports ----

def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path):
    for option in ("report", "trace"):
        with pytest.raises(leat.InvalidError, match=f"{option}=.*there is no folder"):
            leat.watch([], **{option: tmp_path / "missing" / "file"})


@pytest.mark.real_time
def test_failing_to_write_does_not_end_the_training(tmp_path, caplog):
    (tmp_path / "run").mkdir()
    watched = leat.watch(list(batches(3)), report=tmp_path / "run" / "a.html", trace=tmp_path / "run" / "a.json")
    (tmp_path / "run").rmdir()
    assert len(list(watched)) == 3
    assert "cannot write the report" in caplog.text and "cannot write the trace" in caplog.text


def test_remedies_say_what_they_are():
    found = leat.Xray({"sentence": "", "parts": [], "remedies": [
        {"what": "cache", "predicted": 2000, "measured": None, "helps": True, "at_most": True, "why": "w"},
        {"what": "threads", "predicted": 100, "measured": None, "helps": False, "at_most": False, "why": "w"}]})
    assert "up to 2,000" in repr(found) and "no help: threads" in repr(found) and "no help: cache" not in repr(found)
    assert found.wait_share is None and found.perfect_loader is None


@pytest.mark.real_time
def test_a_report_has_the_figures_and_the_timeline(tmp_path):
    found = leat.xray(batches(10, wait=0.001), sleeping(0.002))
    found.report(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert found.sentence.replace("<", "\\u003c") in page and "Run training batch" in page
    with pytest.raises(leat.IOError):
        found.report(tmp_path / "missing" / "run.html")


def _threads():
    return [path.read_text() for path in pathlib.Path("/proc/self/task").glob("*/comm")]


@pytest.mark.real_time
def test_a_result_keeps_no_recorder(tmp_path):
    before = _threads()
    found = leat.xray(batches(10, wait=0.001), sleeping(0.06))
    assert sorted(_threads()) == sorted(before)
    found.report(tmp_path / "run.html")
    assert "cpu total %" in (tmp_path / "run.html").read_text()  # what samplers saw is in the page


@pytest.mark.real_time
def test_a_result_can_be_pickled(tmp_path):
    found = leat.xray(list(batches(5)), sleeping(0.001))
    for _ in (watched := leat.watch(list(batches(5)), report=tmp_path / "a.html")):
        pass
    for one in (found, watched.result()):
        other = pickle.loads(pickle.dumps(one))
        assert other.figures == one.figures and other.sentence == one.sentence
        other.report(tmp_path / "b.html")
        assert "Run training batch" in (tmp_path / "b.html").read_text()
        other.trace(tmp_path / "b.json")
        assert "Run training batch" in (tmp_path / "b.json").read_text()


@pytest.mark.real_time
def test_watch_writes_a_report_after_each_epoch(tmp_path):
    watched = leat.watch(list(batches(5)), report=tmp_path / "run.html")
    sizes = []
    for _ in range(2):
        for batch in watched:
            pass
        sizes.append(len((tmp_path / "run.html").read_text()))
    assert sizes[0] > 1000 and watched.result().sentence in (tmp_path / "run.html").read_text()
