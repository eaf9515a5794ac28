"""Who takes part. A contender's `turn` runs it for some seconds and returns its figures; `cold` runs one epoch with the
files dropped from the page cache."""
import functools
import json
import math
import os
import pathlib
import resource
import subprocess
import threading

import data
import shapes

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 900  # seconds: whoever does not answer by then is ended
FAILURES = (RuntimeError, OSError, subprocess.SubprocessError)


def figures(samples, wall, cpu):
    return {"rate": samples / wall, "us": 1e6 * wall / samples, "cpu_us": 1e6 * cpu / samples}


# ---- the command `leat` ----

class Feed:
    """leat feed: what one epoch takes is subtracted from what many take, so that starting and opening are left out."""

    def __init__(self, bench, spec, threads):
        self.command = [bench.build / "leat", "feed", "--json", "--quiet", "--seed", "1", "--threads", str(threads),
                        spec.format(bench.folder)]
        self.run(1)  # index the files, and read them into the page cache
        self.pace = self.run(2)[0]["epochs"][1]["seconds"]

    def run(self, epochs):
        """The result, and seconds of processor time."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*self.command, "--epochs", str(epochs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=PATIENCE)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return json.loads(done.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def turn(self, seconds):
        (_, opening), (result, cpu) = self.run(1), self.run(1 + max(2, math.ceil(seconds / self.pace)))
        counted = result["epochs"][1:]
        return figures(sum(one["samples"] for one in counted), sum(one["seconds"] for one in counted), cpu - opening)

    def cold(self, names):
        """By the clock, from the first batch asked for; the processor time has starting and opening in it."""
        data.drop_from_cache(names)
        result, cpu = self.run(1)
        return figures(result["samples"], result["seconds"], cpu)

    def close(self):
        pass


def feed(bench, spec, threads):
    return functools.partial(Feed, bench, spec, threads)


def feeds(bench, spec):
    return {"Leat, 1 thread": feed(bench, spec, 1), "Leat, 2 threads": feed(bench, spec, 2)}


# ---- in Python ----

class Peer:
    """A process that runs peer.py, and stands still between its turns."""

    def __init__(self, bench, part, name):
        self.log = bench.work / "peer.log"
        with open(self.log, "w") as err:
            self.process = subprocess.Popen([bench.python, HERE / "peer.py", part, name, bench.folder], text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err,
                                            env=environment(bench))
        while self.listen() != "ready\n":  # some libraries greet
            pass

    def listen(self):
        patience = threading.Timer(PATIENCE, self.process.kill)
        patience.start()
        line = self.process.stdout.readline()
        patience.cancel()
        if not line:
            self.process.wait()
            raise RuntimeError(self.last_words())
        return line

    def last_words(self):
        lines = self.log.read_text(errors="replace").strip().splitlines()
        why = lines[-1] if lines else "it ended without a word"
        return f"left out: {why}" if self.process.returncode == shapes.MISSING else why

    def turn(self, seconds):
        print(seconds, file=self.process.stdin, flush=True)
        found = json.loads(self.listen())
        return figures(found["samples"], found["wall"], found["cpu"])

    def cold(self, names):
        data.drop_from_cache(names)
        return self.turn(0)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def environment(bench):
    return dict(os.environ, PYTHONPATH=str(HERE.parents[1] / "python"), LEAT_LIBRARY=str(bench.build / "libleat.so"),
                PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore", OMP_NUM_THREADS="2")


def peers(bench, part):
    listed = subprocess.run([bench.python, HERE / "peer.py", part], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=environment(bench))
    if listed.returncode:
        raise RuntimeError(f"{bench.python}: {listed.stderr.strip().splitlines()[-1]}")
    return {name: functools.partial(Peer, bench, part, name) for name in listed.stdout.splitlines()}


# ---- in C ----

class Tiny:
    def __init__(self, bench, size, threads):
        self.command = [bench.build / "bench/rows/bench_tiny", shapes.TINY.format(bench.folder, size), str(threads)]
        self.us = self.run(1000)[0]

    def run(self, batches):
        """us of a batch, by the clock and of processor time."""
        done = subprocess.run([*self.command, str(batches)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        wall, cpu = (float(word) / 1000 for word in done.stdout.split())
        return wall, cpu

    def turn(self, seconds):
        wall, cpu = self.run(max(1000, int(1e6 * seconds / self.us)))
        return figures(1, wall / 1e6, cpu / 1e6)

    def close(self):
        pass


def tiny(bench, size, threads):
    return functools.partial(Tiny, bench, size, threads)
