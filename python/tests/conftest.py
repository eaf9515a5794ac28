"""What the tests share: a small data set of drawn cells, and the programs of the C build (LEAT_BUILD)."""
from __future__ import annotations

import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

import leat

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LEAT_BUILD", ROOT / "build"))
COUNT = 200


def pytest_configure(config):
    config.addinivalue_line("markers", "real_time: measures with the real clock, in a file of tests with a simulated one")


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def build():
    return BUILD


@pytest.fixture(scope="session")
def cells(tmp_path_factory):
    """A folder with cells/ (images), cells-*.tfrecord (4 files, 200 samples)."""
    folder = tmp_path_factory.mktemp("cells")
    subprocess.run([BUILD / "examples/make_cells", "cells", "--count", str(COUNT)], cwd=folder, check=True)
    subprocess.run([BUILD / "leat", "pack", "cells", "--output", "cells", "--shards", "4"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture
def images(cells):
    """The pipeline of most tests: 200 cells of 16 x 16 pixels."""
    return (leat.tfrecord(cells / "cells-*.tfrecord").example(image=bytes, label=int).decode().resize(16, 16)
            .scale(1 / 255))


@pytest.fixture
def numbers():
    """100 samples, x = 0 .. 99, from memory."""
    return leat.array(x=np.arange(100), y=np.arange(100, dtype=np.float32).reshape(100, 1) * [1, 2])


class Clock:
    """Stands in for the clock of the profiler, and for time.sleep."""

    def __init__(self):
        self.ns = 10**9

    def now(self):
        return self.ns

    def sleep(self, seconds):
        self.ns += round(seconds * 1e9)


@pytest.fixture
def simulate(monkeypatch):
    """Gives modules of the package a clock that only time.sleep moves, so that figures are exact on a busy machine, too."""

    def replace(*modules):
        clock = Clock()
        for module in modules:
            monkeypatch.setattr(module, "now", clock.now)
        monkeypatch.setattr(time, "sleep", clock.sleep)
        return clock

    return replace


@pytest.fixture
def python():
    """Runs code in another interpreter and gives what it printed; it has to end well, and in time."""

    def run(code, *args, timeout=120, **environment):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, *map(str, args)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout, env={**os.environ, **environment})
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


@pytest.fixture
def ranks(tmp_path):
    """Runs code in two processes that torch.distributed can join (gloo, this machine); gives what each one saved.

    The code calls `save(value)` once, with something JSON can hold.
    """

    def run(code, *args, timeout=180):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        started = []
        for rank in range(2):
            out = tmp_path / f"rank{rank}.json"
            before = f"import json\ndef save(value): open({str(out)!r}, 'w').write(json.dumps(value))\n"
            environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
                           "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                           "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
            started.append(subprocess.Popen([sys.executable, "-W", "ignore", "-c", before + code, *map(str, args)],
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                            env=environment))
        try:
            printed = [process.communicate(timeout=timeout)[0] for process in started]
        finally:
            for process in started:
                process.kill()
        assert [process.returncode for process in started] == [0, 0], "\n".join(printed)
        return [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(2)]

    return run
