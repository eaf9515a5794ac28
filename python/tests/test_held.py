"""Keeping batches, and batches that a signal or an exception kept from the program."""
import gc
import os

import numpy as np
import pytest

import leat

BIG = 64 * 64 * 3 * 4  # bytes of an image in `pictures`


@pytest.fixture
def pictures(cells):
    return leat.tfrecord(cells / "cells-*.tfrecord").example(image=bytes, label=int).decode().resize(64, 64)


def held(feed):
    gc.collect()
    return feed.stats()["held"]


def firsts(batches):
    return [int(batch["x"][0]) for batch in batches]


@pytest.mark.parametrize("memory", ["64MiB", 0])
def test_a_list_of_all_batches(numbers, memory):
    feed = numbers.batch(2).feed(memory=memory)
    first, second = list(feed), list(feed)  # over the end of an epoch
    assert firsts(first) == firsts(second) == list(range(0, 100, 2))
    assert feed.stats()["copied"] > 60 and held(feed) > 0
    assert all(batch["y"].flags.writeable and batch["y"].ctypes.data % 64 == 0 for batch in first)
    for batch in first:
        batch["x"][:] = -1
    assert firsts(second) == list(range(0, 100, 2))
    del first, second, batch
    assert held(feed) == 0


def test_as_little_memory_as_there_may_be(pictures):
    pipeline = pictures.batch(8)
    with pytest.raises(leat.LimitError) as refused:
        pipeline.feed(memory=1, threads=1)
    feed = pipeline.feed(memory=int(str(refused.value).split("(")[-1].split()[0]) * 1024, threads=1)  # two batches
    for batch in feed:
        pass
    assert feed.stats()["copied"] == 0  # a loop holds the previous batch
    kept = list(feed)
    assert len(kept) == 25 and feed.stats()["memory_peak"] <= feed.stats()["memory"] + BIG * 16
    labels = np.concatenate([batch["label"] for batch in kept])
    del kept, batch
    assert held(feed) == 0
    assert labels.tolist() == np.concatenate([batch["label"] for batch in list(feed)]).tolist()


def test_labels_that_are_kept_do_not_keep_images(pictures):
    feed = pictures.batch(8).prefetch(3).feed()
    labels = []
    for _ in range(4):
        for batch in feed:
            batch["image"], labels.append(batch["label"])
    del batch
    assert len(labels) == 100 and feed.stats()["copied"] > 50
    assert 0 < held(feed) < len(labels) * 4096 < len(labels) * 8 * BIG
    images = [batch["image"] for batch in feed]
    assert held(feed) > 20 * 8 * BIG
    del images
    assert held(feed) < (len(labels) + 25) * 4096
    del labels, _
    assert held(feed) == 0


def test_memory_returns_when_copies_are_dropped(pictures):
    def rss():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    feed = pictures.batch(32).prefetch(1).feed()
    labels = [batch["label"] for batch in feed.steps(20)]
    before = rss()
    kept = list(feed.steps(60))
    assert rss() - before > 50 * 32 * BIG // 2
    labels += [batch["label"] for batch in kept]
    del kept
    gc.collect()
    assert rss() - before < 10 * 32 * BIG


def test_what_is_kept_outlives_the_feed(pictures):
    feed = pictures.batch(8).feed()
    kept = list(feed)
    right = [batch.copy() for batch in kept]
    tensors = [np.from_dlpack(batch.dlpack("image")) for batch in kept]
    feed.close()
    labels, valid = [batch["label"] for batch in kept], [batch.valid for batch in kept]
    del kept, feed
    gc.collect()
    for tensor, label, copy in zip(tensors, labels, right):
        assert np.array_equal(tensor, copy["image"]) and np.array_equal(label, copy["label"])
    assert all(v.all() and not v.flags.writeable for v in valid)


def test_ragged_copies(cells):
    feed = leat.tfrecord(cells / "cells-*.tfrecord").example(image=bytes, label=int).decode().batch(8).feed()
    right = [batch.copy() for batch in feed]
    fields = [batch["image"] for batch in list(feed)]
    for field, copy in zip(fields, right):
        assert all(np.array_equal(a, b) for a, b in zip(field, copy["image"])) and len(field) == 8
        assert np.array_equal(field.shapes, copy["image"].shapes)


def test_capsules_nobody_took_hold_nothing(numbers):
    feed = numbers.batch(2).feed()
    kept = [batch.dlpack("x").__dlpack__() for batch in feed]
    assert held(feed) > 0
    del kept
    assert held(feed) == 0


def test_batches_in_dead_cycles_do_not_pile_up(pictures):
    feed = pictures.batch(8).feed()
    gc.disable()
    try:
        for batch in feed.steps(300):
            cycle = [batch]
            cycle.append(cycle)
        assert feed.stats()["held"] < 20 * 8 * BIG
    finally:
        gc.enable()


# ---- batches that were not handed over ----


class Stop(Exception):
    pass


def failing(times, error=Stop):
    """A function for map_batch that fails `times` times at the batch that begins with 6."""
    left = [times]

    def function(fields):
        if fields["x"][0] == 6 and left[0]:
            left[0] -= 1
            raise error("not now")

    return function


def test_a_batch_whose_function_fails_comes_again(numbers):
    feed = numbers.batch(2).map_batch(failing(2)).feed()
    seen = []
    for _ in range(3):
        try:
            for batch in feed:
                seen.append(int(batch["x"][0]))
        except leat.MapError:
            assert (feed.epoch, feed.position) == (0, 6)
            assert feed.state_dict()["position"] == 6
    assert seen == list(range(0, 100, 2)) and feed.epoch == 1


def test_a_checkpoint_after_a_failure_begins_with_the_batch_that_failed(numbers):
    feed = numbers.shuffle().batch(2).map_batch(failing(0)).feed(seed=3)
    right = firsts(feed)

    def fails(fields):
        if fields["x"][0] == right[7]:
            raise Stop

    feed = numbers.shuffle().batch(2).map_batch(fails).feed(seed=3)
    with pytest.raises(leat.MapError):
        for batch in feed:
            pass
    state = feed.state_dict()
    feed = numbers.shuffle().batch(2).map_batch(failing(0)).feed(seed=3)
    feed.load_state_dict(state)
    assert firsts(feed) == right[7:]


def test_what_a_function_changed_before_it_failed_is_undone(numbers):
    left = [3]

    def fails(fields):
        fields["x"] += 1000
        if fields["x"][0] == 1006 and left[0]:
            left[0] -= 1
            raise Stop

    feed = numbers.batch(2).map_batch(fails).feed()
    seen = []
    while feed.epoch == 0:
        try:
            seen.extend(firsts_of(feed))
        except leat.MapError:
            pass
    assert seen == list(range(1000, 1100, 2)) and not left[0]


def test_the_last_batch_of_an_epoch_may_fail(numbers):
    left = [1]

    def fails(fields):
        if fields["x"][0] == 98 and left.pop():
            raise Stop

    feed = numbers.batch(2).map_batch(fails).feed()
    with pytest.raises(leat.MapError):
        list(feed)
    left.append(0)
    assert (feed.epoch, feed.position) == (0, 98)
    assert firsts(feed) == [98] and feed.epoch == 1
    left.append(0)
    assert len(list(feed)) == 50


def test_ctrl_c_in_a_function_loses_nothing(numbers):
    feed = numbers.batch(2).map_batch(failing(1, KeyboardInterrupt)).feed()
    seen = []
    with pytest.raises(KeyboardInterrupt):
        seen.extend(firsts_of(feed))
    assert feed.position == 6
    assert firsts(feed)[0] == 6


def firsts_of(feed):
    for batch in feed:
        yield int(batch["x"][0])


def test_a_conversion_that_fails_loses_nothing(numbers):
    from leat._view import View

    convert = failing(1)
    feed = numbers.batch(2).feed()
    view = View(feed, lambda batch: convert(batch) or int(batch["x"][0]), "first")
    seen = []
    with pytest.raises(Stop):
        seen.extend(view)
    assert seen == [0, 2, 4] and feed.position == 6
    assert list(view) == list(range(6, 100, 2))


def test_seeking_forgets_the_batch_that_failed(numbers):
    feed = numbers.batch(2).map_batch(failing(1)).feed()
    with pytest.raises(leat.MapError):
        list(feed)
    feed.seek(0, 40)
    assert feed.position == 40 and firsts(feed) == list(range(40, 100, 2))
    assert held(feed) == 0


def test_another_thread_gets_the_batch_that_failed(numbers):
    import threading

    feed = numbers.batch(2).map_batch(failing(1)).feed()

    def run():
        with pytest.raises(leat.MapError):
            list(feed)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert firsts(feed) == list(range(6, 100, 2))


def test_ctrl_c_at_any_moment_loses_and_doubles_nothing(python):
    out = python("""
import signal, sys, time
import numpy as np
import leat
from leat._feed import Epoch

COUNT, SIGNALS = 20000, 3000
feed = leat.array(x=np.arange(COUNT), y=np.zeros((COUNT, 4))).batch(2).feed(threads=1)
signals, armed = 0, False

def interrupt(*_):
    global signals
    if armed:
        signals += 1
        raise KeyboardInterrupt

def take(seen):
    # extend takes no step of the interpreter between a batch and the list
    global armed
    try:
        try:
            armed = True
            seen.extend(Epoch(feed, lambda batch: int(batch["x"][0])))
            armed = False
        except KeyboardInterrupt:
            armed = False
    except KeyboardInterrupt:  # and once more
        armed = False

signal.signal(signal.SIGINT, interrupt)
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.0004, 0.0004)
epochs = 0
while signals < SIGNALS:
    seen = []
    while len(seen) < COUNT // 2:
        take(seen)
    assert seen == list(range(0, COUNT, 2)), [pair for pair in zip(seen, range(0, COUNT, 2)) if pair[0] != pair[1]][:3]
    epochs += 1
signal.setitimer(signal.ITIMER_REAL, 0)
before = feed.stats()
for batch in feed:  # if a slot were lost, this would copy
    pass
after = feed.stats()
print(epochs > 0, after["copied"] - before["copied"], after["held"])
""", timeout=300)
    assert out == "True 0 0\n"
