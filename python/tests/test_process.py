"""Signals, forks, threads, and what is left behind."""
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

import leat

SLOW = """
import sys, time, threading, signal, os
import leat
# One image repeated: the first batch of 100000 takes long.
feed = leat.folder(sys.argv[1]).decode().resize(512, 512).take(1).repeat(100000).resize(8, 8).batch(100000).feed()
"""


def test_ctrl_c_is_seen_at_once(cells, python):
    out = python(SLOW + """
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    next(iter(feed))
    print("a batch came")
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin < 1.5)
feed.close()
print("closed", time.monotonic() - begin < 2.5)
""", cells / "cells")
    assert out.split("\n")[:2] == ["interrupted True", "closed True"]


def test_ctrl_c_is_seen_while_a_feed_opens(tmp_path, python):
    out = python("""
import sys, time, threading, signal, os
import leat
leat.Feed
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
open_really = leat._lib.open
leat._lib.open = lambda *arguments: time.sleep(2) or open_really(*arguments)
try:
    leat.folder(sys.argv[1]).batch(1).feed()
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin < 1.5)
""", tmp_path, timeout=30)
    assert out.startswith("interrupted True")


def test_closing_ends_another_threads_wait(cells, python):
    out = python(SLOW + """
def wait():
    try:
        next(iter(feed))
    except leat.CancelledError as error:
        print("cancelled", error)
thread = threading.Thread(target=wait)
thread.start()
time.sleep(0.3)
begin = time.monotonic()
feed.close()
thread.join()
print(time.monotonic() - begin < 1.5)
""", cells / "cells")
    assert out.startswith("cancelled") and out.endswith("True\n")


def test_the_interpreter_runs_while_a_feed_waits(cells, python):
    out = python(SLOW + """
threading.Thread(target=lambda: next(iter(feed)), daemon=True).start()
begin, turns = time.monotonic(), 0
while time.monotonic() - begin < 0.3:
    turns += 1
    time.sleep(0.001)
print(turns > 3)  # with the GIL held there would be one
feed.close()
""", cells / "cells")
    assert "True" in out


def test_an_exit_without_close_is_clean(cells, python):
    assert python(SLOW + "print('end')", cells / "cells") == "end\n"


def test_an_exit_while_another_thread_waits_is_clean(cells, python):
    out = python(SLOW + """
thread = threading.Thread(target=lambda: next(iter(feed), None), daemon=True)
threading.excepthook = lambda problem: None
thread.start()
time.sleep(0.2)
print('end')
""", cells / "cells", timeout=30)
    assert out == "end\n"


def test_a_forked_child_gets_a_clear_error(python):
    out = python("""
import os, sys, numpy as np
import leat
feed = leat.array(x=np.arange(100)).batch(10).feed()
batch = next(iter(feed))
x = batch["x"]
print("parent", os.getpid(), flush=True)
child = os.fork()
if child == 0:
    try:
        next(iter(feed))
    except leat.ProcessError as error:
        print(error, x[3], flush=True)  # what was there before can be read
    del batch, x, feed
    os._exit(0)
print(os.waitpid(child, 0)[1], len([1 for _ in feed]))
""", timeout=30)
    parent, error, end = out.splitlines()
    assert f"opened in process {parent.split()[1]}" in error and error.endswith(" 3") and end == "0 9"


def test_a_child_that_ends_normally_does_not_hang(python):
    out = python("""
import os, sys, numpy as np
import leat
feed = leat.array(x=np.arange(100)).batch(10).feed()
next(iter(feed))
child = os.fork()
if child == 0:
    sys.exit(0)  # finalizers and all
print(os.waitpid(child, 0)[1], len(list(map(lambda b: b.copy(), feed))))
""", timeout=30)
    assert out == "0 9\n"


def test_threads_share_an_epoch(numbers):
    feed = numbers.shuffle().batch(2).feed(seed=1)
    seen = [[], [], [], []]

    def work(mine):
        for batch in feed:
            mine += batch["x"].tolist()
            time.sleep(0.0005)

    for epoch in range(3):
        threads = [threading.Thread(target=work, args=(mine,)) for mine in seen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(sum(seen, [])) == sorted(list(range(100)) * (feed.epoch))
        for mine in seen:
            mine.sort()


def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def counts():
    with open("/proc/self/status") as file:
        threads = next(int(line.split()[1]) for line in file if line.startswith("Threads:"))
    return len(os.listdir("/proc/self/fd")), threads


def left_behind(folder):
    """What a killed program could leave: shared memory, and files beside the data."""
    return sorted(os.listdir("/dev/shm")), sorted(str(path) for path in folder.rglob("*"))


def test_a_killed_program_leaves_nothing_behind(cells):
    code = """
import sys
import leat
feed = leat.tfrecord(sys.argv[1]).example(image=bytes, label=int).cache("memory").decode().resize(64, 64).batch(8).feed()
kept = [batch["image"] for batch in feed.steps(4)]
print("running", flush=True)
for batch in feed.steps(10**9):
    pass
"""
    next(iter(leat.tfrecord(cells / "cells-*.tfrecord").batch(8).feed()))  # the index may be made
    before = left_behind(cells)
    for _ in range(3):
        program = subprocess.Popen([sys.executable, "-c", code, str(cells / "cells-*.tfrecord")], text=True,
                                   stdout=subprocess.PIPE)
        assert program.stdout.readline() == "running\n"
        program.kill()
        assert program.wait(30) == -signal.SIGKILL
        program.stdout.close()
    assert left_behind(cells) == before


def test_ten_thousand_batches_take_no_more_memory(numbers):
    feed = numbers.shuffle().batch(2).feed()
    for batch in feed.steps(2000):
        batch["x"], batch["y"], batch.dlpack("x").__dlpack__(), np.from_dlpack(batch.dlpack("y"))
    before = rss()
    for batch in feed.steps(10000):
        batch["x"], batch["y"], batch.dlpack("x").__dlpack__(), np.from_dlpack(batch.dlpack("y"))
    assert rss() - before < 1 << 20


def test_a_thousand_feeds_leave_nothing_behind(cells):
    pipeline = leat.tfrecord(cells / "cells-*.tfrecord").batch(8)

    def cycle(i):
        feed = pipeline.feed(memory="16MiB")
        if i % 2:
            next(iter(feed))
        if i % 3:
            feed.close()

    for i in range(100):
        cycle(i)
    before, memory = counts(), rss()
    for i in range(1000):
        cycle(i)
    assert counts() == before
    assert rss() - memory < 2 << 20
    for _ in range(20):
        leat.array(x=np.arange(10)).batch(2).feed()
    assert counts() == before
