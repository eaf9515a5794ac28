"""Traces: what a recorder writes follows the rules of the Trace Event Format, whatever happens to the process."""
import collections
import json
import logging
import math
import os
import pickle
import signal
import subprocess
import sys
import time

import pytest

import leat

TAGS = {"get batch", "to device", "run batch", "fetch", "decode", "transform", "cache", "collate"}


def check_nesting(spans):
    """Spans of a thread are disjoint or nested."""
    open_ends = []
    for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], (begin, end, open_ends[-1])
        open_ends.append(end)


def read(path):
    """The events of a trace, by phase, held to the rules that viewers rely on."""
    events = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(events, list) and events[0]["name"] == "process_name"
    by_phase, threads, tracks = collections.defaultdict(list), collections.defaultdict(list), {}
    for event in events:
        assert isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert math.isfinite(event["ts"]) and event["ts"] >= 0
        by_phase[event["ph"]].append(event)
        if event["ph"] == "X":
            assert event["cat"] in TAGS and event["dur"] >= 0 and isinstance(event["args"]["item"], int)
            begin = round(event["ts"] * 1000)
            threads[event["tid"]].append((begin, begin + round(event["dur"] * 1000)))
        elif event["ph"] == "C":
            assert list(event["args"]) == ["value"] and math.isfinite(event["args"]["value"])
            assert event["ts"] >= tracks.get(event["name"], 0)
            tracks[event["name"]] = event["ts"]
    assert set(by_phase) <= {"M", "X", "C", "i"}
    named = {event["tid"] for event in by_phase["M"] if event["name"] == "thread_name"}
    for thread, spans in threads.items():
        assert thread in named
        check_nesting(spans)
    return by_phase


def of(events, tag):
    return [event for event in events["X"] if event["cat"] == tag]


def test_a_feed_writes_a_trace(images, tmp_path):
    path = tmp_path / "run.json"
    with images.batch(50).feed(trace=path, epochs=2) as feed:
        rows = [batch["label"].tolist() for batch in feed.steps()]
    assert rows == [batch["label"].tolist() for batch in images.batch(50).feed(epochs=2).steps()]
    events = read(path)
    assert [event["args"]["item"] for event in of(events, "get batch")] == list(range(8))
    assert len(of(events, "run batch")) == 8
    assert {event["args"]["item"] for event in of(events, "decode")} == set(range(200))
    assert events["M"][0]["args"]["name"].endswith(f", pid {os.getpid()}")


def test_a_recorder_takes_spans_of_the_program(numbers, tmp_path):
    with leat.Recorder(tmp_path / "run.json", name="train", rank=3, world=8) as recorder:
        with numbers.batch(50).feed(trace=recorder, epochs=1) as feed:
            lane = recorder.lane("device")
            for number, _ in enumerate(feed):
                with recorder.measure(lane, "run batch", number, name="step"):
                    pass
                recorder.count("loss", 1 / (number + 1))
        begin = time.monotonic_ns()
        recorder.span(lane, "to device", begin, begin + 5, 7)
        recorder.end_lane(lane)
        assert recorder.lane("device") == lane
        assert recorder.spans >= 5 and recorder.dropped == 0
    assert recorder.closed
    events = read(tmp_path / "run.json")
    assert events["M"][0]["args"]["name"] == f"train, rank 3 of 8, pid {os.getpid()}"
    assert [event["args"]["item"] for event in events["X"] if event["name"] == "step"] == [0, 1]
    assert [event["dur"] for event in of(events, "to device")] == [0.005]
    assert [event["args"]["value"] for event in events["C"] if event["name"] == "loss"] == [1, 0.5]


def test_mistakes_are_errors(numbers, tmp_path):
    recorder = leat.Recorder(tmp_path / "run.json")
    with pytest.raises(leat.InvalidError, match="'decoding' is not a tag: use one of get batch, to device"):
        recorder.span(recorder.lane("x"), "decoding", 1, 2)
    with pytest.raises(leat.InvalidError, match="finite"):
        recorder.count("x", math.nan)
    with pytest.raises(leat.InvalidError, match="open one there"):
        pickle.dumps(recorder)
    feed = numbers.batch(50).feed(trace=recorder)
    with pytest.raises(leat.InvalidError, match="close the feed first"):
        recorder.close()
    assert not recorder.closed
    feed.close()
    recorder.close()
    recorder.close()
    with pytest.raises(leat.InvalidError, match="the recorder is closed"):
        recorder.lane("x")
    with pytest.raises(leat.InvalidError, match="the recorder is closed"):
        numbers.batch(50).feed(trace=recorder)
    with pytest.raises(leat.IOError, match="no/such/folder"):
        numbers.batch(50).feed(trace="no/such/folder/run.json")
    with pytest.raises(leat.InvalidError, match="trace_size"):
        leat.Recorder(trace_size="much")


def test_a_feed_that_does_not_open_lets_go_of_its_trace(tmp_path):
    recorder = leat.Recorder(tmp_path / "run.json")
    with pytest.raises(leat.SpecError):
        leat.feed("nonsense | batch(3)", trace=recorder)
    recorder.close()


def test_a_pickled_feed_leaves_the_trace_to_the_first(numbers, tmp_path):
    with numbers.batch(50).feed(trace=tmp_path / "run.json", epochs=1) as feed:
        with pickle.loads(pickle.dumps(feed)) as other:
            assert len(list(other)) == 2
        assert len(list(feed)) == 2
    assert len(of(read(tmp_path / "run.json"), "get batch")) == 2


FOREVER = """
import sys, leat
feed = leat.feed(sys.argv[1], trace=sys.argv[2])
while True:
    for batch in feed:
        pass
"""


def test_a_killed_program_leaves_a_readable_trace(images, tmp_path):
    path = tmp_path / "run.json"
    process = subprocess.Popen([sys.executable, "-c", FOREVER, images.batch(10).spec, str(path)])
    try:
        until = time.monotonic() + 100
        while time.monotonic() < until and not (path.exists() and path.stat().st_size > 100_000):
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(of(read(path), "decode")) > 100


FULL = """
import logging, resource, sys, leat
logging.basicConfig(format="%(message)s", stream=sys.stdout)
recorder = leat.Recorder(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
lane = recorder.lane("x")
for i in range(5000):
    recorder.span(lane, "run batch", i * 10, i * 10 + 5, i)
try:
    recorder.close()
except leat.IOError as error:
    print("failed:", error)
"""


def test_a_full_disk_does_not_end_the_run(python, tmp_path):
    path = tmp_path / "run.json"
    lines = python(FULL, path).splitlines()
    assert len(lines) == 2 and lines[0].endswith("the run goes on without it") and lines[1].startswith("failed: ")
    assert str(path) in lines[1]
    read(path)


def test_closing_a_feed_ends_its_own_recorder(numbers, tmp_path, caplog):
    feed = numbers.batch(50).feed(trace=tmp_path / "run.json", epochs=1)
    list(feed)
    with caplog.at_level(logging.WARNING, "leat"):
        feed.close()
    assert not caplog.records
    read(tmp_path / "run.json")


def test_a_fork_leaves_the_recorder_alone(tmp_path):
    recorder = leat.Recorder(tmp_path / "run.json")
    lane = recorder.lane("x")
    child = os.fork()
    if child == 0:
        try:
            recorder.span(lane, "fetch", 1, 2)
        except leat.ProcessError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    recorder.span(lane, "fetch", 1, 2)
    recorder.close()
    assert len(of(read(tmp_path / "run.json"), "fetch")) == 1
