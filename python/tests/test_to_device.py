"""The way to a GPU, with a stand-in for the CUDA runtime and a GPU that is as late as it can be.

The stand-in runtime (tests/tools/cudart_stub.c) knows which memory is registered. The GPU reads a batch only when somebody
waits for it: if its memory were released before, it would be gone or hold another batch.
"""
from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import logging
import time
import weakref

import numpy as np
import pytest

import leat

torch = pytest.importorskip("torch")


class GPU:
    """Copies in order. `late`: not before it has to."""

    def __init__(self, runtime):
        self.runtime, self.late, self.fail_at = runtime, True, None
        self.queue, self.staged, self.pinned, self.done, self.copies = [], 0, {}, [], 0

    def run(self, until=None):
        while self.queue and (until is None or not until.complete):
            self.queue.pop(0)()

    def is_pinned(self, tensor):
        address = tensor.data_ptr()
        copy = self.pinned.get(address, lambda: None)()
        return copy is not None or self.runtime.stub_is_pinned(ctypes.c_void_p(address))

    def pin(self, tensor):
        copy = tensor.clone()
        self.staged += 1
        self.pinned[copy.data_ptr()] = weakref.ref(copy)
        return copy

    def copy(self, tensor, device=None, non_blocking=False):
        if self.fail_at is not None and self.copies == self.fail_at:
            raise RuntimeError("CUDA out of memory")
        assert non_blocking and tensor.is_contiguous()
        self.copies += 1
        out, source, address, alive = torch.empty_like(tensor), self.is_pinned(tensor), tensor.data_ptr(), weakref.ref(tensor)

        def now():
            assert source and alive() is not None, "the memory was released while the GPU read it"
            ctypes.memmove(out.data_ptr(), address, out.nbytes)

        self.queue.append(now)
        return out


def devices_of(gpu):
    class Event:
        def __init__(self, enable_timing=False):
            self.complete, self.timed = False, enable_timing

        def _reach(self):
            self.complete = True

        def record(self, stream):
            gpu.queue.append(self._reach)

        def query(self):
            if not gpu.late:
                gpu.run()
            return self.complete

        def synchronize(self):
            gpu.run(self)
            assert self.complete

        def elapsed_time(self, end):
            assert self.complete and end.complete and self.timed and end.timed
            return 0.25

    class Stream:
        def __init__(self, device=None):
            pass

        def wait_event(self, event):
            gpu.done.append("waited")
            gpu.run(event)

        def synchronize(self):
            gpu.run()

    return Event, Stream


@pytest.fixture
def runtime(build, monkeypatch):
    path = build / "tests/libcudart_stub.so"
    monkeypatch.setenv("LEAT_CUDART", str(path))
    library = ctypes.CDLL(str(path))
    library.stub_is_pinned.restype, library.stub_bytes.restype = ctypes.c_bool, ctypes.c_size_t
    library.stub_reset()
    yield library
    gc.collect()
    assert library.stub_ranges() == 0, "memory is still registered"
    assert library.stub_errors() == 0


@pytest.fixture
def gpu(runtime, monkeypatch):
    gpu = GPU(runtime)
    event, stream = devices_of(gpu)
    monkeypatch.setattr(torch.cuda, "Event", event)
    monkeypatch.setattr(torch.cuda, "Stream", stream)
    monkeypatch.setattr(torch.cuda, "current_stream", stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: gpu.is_pinned(tensor))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: gpu.pin(tensor))
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, *device, **how: gpu.copy(tensor, *device, **how))
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: gpu.done.append("kept"))
    return gpu


@pytest.fixture
def numbers():
    return leat.array(x=np.arange(100), y=np.arange(300, dtype=np.float32).reshape(100, 3))


def on_gpu(feed, prefetch=1):
    return feed.torch("cuda", prefetch)


def assert_all(batches):
    assert [batch["x"].tolist() for batch in batches] == [list(range(i, i + 10)) for i in range(0, 100, 10)]


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_batches_are_copied_from_where_the_engine_made_them(numbers, gpu, runtime, prefetch, late):
    gpu.late = late
    with numbers.batch(10).feed() as feed:
        for _ in range(3):
            batches = list(on_gpu(feed, prefetch))
            assert_all(batches)
            assert batches[3]["y"].tolist() == np.arange(90, 120, dtype=np.float32).reshape(10, 3).tolist()
        stats = feed.stats()
        assert gpu.staged == 0 and stats["staged"] == 0, "copied on the host"
        assert stats["copied"] == 0, "the engine had to copy a batch because others were held"
        assert stats["to_device_bytes"] == 3 * 100 * (8 + 12)
        assert stats["to_device_ns"] == 30 * 250_000
        assert stats["pinned"] == runtime.stub_bytes() > 0
    assert runtime.stub_ranges() == 0  # the fixture says that none was registered twice


def test_a_feed_with_few_slots_does_not_copy_batches_for_a_gpu_that_is_late(numbers, gpu):
    with numbers.batch(10).prefetch(1).feed() as feed:
        assert_all(on_gpu(feed, prefetch=6))
        assert feed.stats()["copied"] == 0 and gpu.staged == 0


def test_the_step_waits_for_the_copy_and_the_next_one_is_under_way(numbers, gpu):
    with numbers.batch(10).feed() as feed:
        loop = iter(on_gpu(feed))
        next(loop)
        assert gpu.done == ["waited", "kept", "kept"]
        assert gpu.copies == 4 and len(gpu.queue) == 4, "the second batch is begun, not waited for"
        loop.close()
        assert not gpu.queue, "its memory is still being read"
        assert (feed.epoch, feed.position) == (0, 10)  # the batch that was on its way comes again


def test_a_data_loader_loses_nothing(numbers, gpu):
    loader = leat.torch.DataLoader(numbers.batch(10), device="cuda", fields=("x",))
    assert [int(x[0]) for x, in loader] == list(range(0, 100, 10))
    for i, (x,) in enumerate(loader):
        if i == 3:
            state = loader.state_dict()
            break
    assert (state["epoch"], state["position"]) == (1, 40)
    del x
    gc.collect()
    assert (loader.feed.epoch, loader.feed.position) == (1, 40)  # the batch that was on its way comes again
    assert gpu.staged == 0
    loader.feed.close()


def test_ragged_fields_and_valid(cells, gpu):
    spec = f"tfrecord('{cells}/cells-*.tfrecord') | example(image=bytes, label=int64) | batch(32, tail=pad)"
    with leat.Feed(spec) as feed, leat.Feed(spec) as other:
        for batch, plain in zip(on_gpu(feed), other):
            assert batch["image"].values.tolist() == plain["image"].values.tolist()
            assert batch["image"].offsets.tolist() == plain["image"].offsets.tolist()
            assert batch["valid"].tolist() == plain.valid.tolist()
        assert gpu.staged == len(feed)  # only `valid`, which is a copy anyway


def test_a_plain_loop_over_the_same_feed_gets_memory_that_is_not_pinned(numbers, gpu, runtime):
    """Its program may copy without waiting, as one does from ordinary memory, and drop the batch."""
    with numbers.batch(10).feed() as feed:
        assert_all(on_gpu(feed))
        for batch in feed.torch():
            assert not gpu.is_pinned(batch["x"])
        del batch
        assert_all(on_gpu(feed))
        assert gpu.staged == 0


def test_a_program_may_hold_what_it_got(numbers, gpu):
    with numbers.batch(10).feed(memory="4MiB") as feed:
        held = [batch for _ in range(3) for batch in on_gpu(feed, prefetch=4)]
        plain = list(feed)  # all of its batches at once
        loop = list(on_gpu(feed))
        assert_all(held[:10]), assert_all(held[20:]), assert_all(loop)
        assert [int(batch["x"][0]) for batch in plain] == list(range(0, 100, 10))


def test_when_cuda_refuses_batches_go_through_pytorchs_pinned_memory(numbers, gpu, runtime, caplog):
    runtime.stub_fail_after(0)
    with caplog.at_level(logging.WARNING, "leat"), numbers.batch(10).feed() as feed:
        for _ in range(2):
            assert_all(on_gpu(feed))
        stats = feed.stats()
    assert gpu.staged == 40 and stats["staged"] == stats["to_device_bytes"] == 2 * 2000 and stats["pinned"] == 0
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1 and "pinned" in warnings[0] and "out of memory" in warnings[0]


def test_without_a_runtime_batches_go_through_pytorchs_pinned_memory(numbers, gpu, monkeypatch, caplog):
    monkeypatch.setenv("LEAT_CUDART", "/nonexistent/libcudart.so")
    with caplog.at_level(logging.WARNING, "leat"), numbers.batch(10).feed() as feed:
        for _ in range(2):
            assert_all(on_gpu(feed))
    assert gpu.staged == 40
    assert ["CUDA runtime" in record.getMessage() for record in caplog.records] == [True]


def test_results_of_functions_are_staged(numbers, gpu):
    pipeline = numbers.batch(10).map_batch(lambda batch: {"x": batch["x"] + 1, "name": ["a", "b"]})
    with pipeline.feed() as feed:
        batches = list(on_gpu(feed))
        assert batches[1]["x"].tolist() == list(range(11, 21)) and batches[1]["name"] == ["a", "b"]
    assert gpu.staged == 10


def test_a_copy_that_fails_is_waited_for(numbers, gpu, runtime):
    """Part of a batch may be on its way when the GPU has no memory for the rest."""
    with numbers.batch(10).feed() as feed:
        gpu.fail_at = 5
        with pytest.raises(RuntimeError, match="CUDA out of memory"):
            list(on_gpu(feed))
        assert not gpu.queue
        gpu.fail_at = None
        rest = [int(batch["x"][0]) for batch in on_gpu(feed)]
        assert rest[-1] == 90 and rest == list(range(rest[0], 100, 10))


def test_a_feed_may_be_closed_while_a_batch_is_on_its_way(numbers, gpu):
    feed = numbers.batch(10).feed()
    loop = iter(on_gpu(feed))
    first = next(loop)
    feed.close()
    assert gpu.queue
    loop.close()
    assert not gpu.queue and first["x"].tolist() == list(range(10))


def test_other_devices_are_timed_as_well(numbers):
    with numbers.batch(10).feed() as feed:
        assert sum(1 for _ in feed.torch("meta")) == 10
        stats = feed.stats()
    assert stats["to_device_bytes"] == 2000 and stats["to_device_ns"] > 0


def test_copies_are_spans_of_a_trace(numbers, gpu, tmp_path):
    with numbers.batch(10).feed(trace=tmp_path / "run.json") as feed:
        assert_all(on_gpu(feed))
    events = json.loads((tmp_path / "run.json").read_text())
    spans = [event for event in events if event["ph"] == "X" and event["cat"] == "to device"]
    assert len(spans) == 10 and all(span["dur"] == 250 for span in spans)


def test_a_recorder_knows_what_the_gpu_did(build, monkeypatch, numbers):
    monkeypatch.setenv("LEAT_NVML", str(build / "tests/libnvml_stub.so"))
    monkeypatch.setenv("NVML_STUB", "1 04")
    with leat.Recorder() as recorder:
        while (recorder.device() or {"samples": 0})["samples"] < 2:
            time.sleep(0.01)
        device = recorder.device()
        with numbers.batch(10).feed(trace=recorder) as feed:
            assert feed.stats()["device"]["utilization_used"] == 40
    assert device["devices"] == 1 and device["utilization"] > 0 and device["utilization_used"] == 40
    assert 0 < device["busy"] < 1 and device["memory_total"] == 1e9
    with leat.Recorder(samplers=False) as recorder:
        assert recorder.device() is None
