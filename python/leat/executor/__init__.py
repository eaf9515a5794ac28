"""Executors: how `leat build --on NAME://ADDRESS` runs actions on a cluster.

An executor is a module of this package that knows one kind of cluster. `leat build` starts it as
`python -m leat.executor.NAME` and exchanges lines of JSON with it (`Link`). To add one, write a module like `processes`,
the smallest: connect, say how many CPUs there are, and for each task run `leat.executor.node.run` where the cluster
wants it. docs/SCALING.md walks through it.

Nodes see the folder of the project under the same path. An executor has no state worth keeping: when it or the build
dies, the next `leat build` goes on.
"""
import argparse
import json
import pathlib
import sys
import threading
from typing import Any, Callable, Dict, NamedTuple, Set

__all__ = ["Link", "Settings", "Task", "serve"]

_POLL_S = 0.5  # how often progress is looked for


class Settings(NamedTuple):
    """What a node needs to run tasks of this build; the cluster carries it there."""

    address: str  #: what follows NAME:// in --on
    leat: str  #: the command, as it is called here
    store: str  #: folder of the content store
    run: str  #: name of the build

    def progress(self, task: int) -> pathlib.Path:
        """Where a node writes the last line about a task's progress."""
        return pathlib.Path(self.store, "tmp", self.run, f"progress-{task}")


class Task(NamedTuple):
    """One action."""

    id: int
    cpus: int
    memory: int  #: bytes; 0: no limit
    line: str  #: for `leat exec`


class Link:
    """Answers to the build; any thread may send them."""

    def __init__(self, out: Any, settings: Settings) -> None:
        self._out, self._settings = out, settings
        self._lock = threading.Lock()
        self._open: Set[int] = set()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _say(self, answer: Dict[str, Any]) -> None:
        self._write(json.dumps(answer))

    def _write(self, line: str) -> None:
        with self._lock:
            self._out.write(line.rstrip("\n") + "\n")
            self._out.flush()

    def ready(self, cpus: int, nodes: int) -> None:
        """There is a cluster. Before this, no task comes."""
        self._say({"ready": {"cpus": cpus, "nodes": nodes}})

    def began(self, task: int) -> None:
        """A task was submitted: from now on, its progress is watched."""
        self._open.add(task)

    def result(self, task: int, line: str) -> None:
        """What `leat.executor.node.run` returned."""
        self._end(task)
        self._write(line)

    def lost(self, task: int, why: str) -> None:
        """The node of a task died. The build submits it again."""
        self._end(task)
        self._say({"lost": task, "why": why})

    def error(self, task: int, why: str) -> None:
        """A task cannot be run anywhere. The build ends."""
        self._end(task)
        self._say({"id": task, "error": why})

    def failed(self, why: str) -> None:
        """There is no cluster, or none any more."""
        self._say({"failed": why})

    def _end(self, task: int) -> None:
        self._open.discard(task)
        self._settings.progress(task).unlink(missing_ok=True)

    def _watch(self) -> None:
        last: Dict[int, str] = {}
        while not self._closed.wait(_POLL_S):
            for task in list(self._open):
                try:
                    line = self._settings.progress(task).read_text(encoding="utf-8")
                except OSError:
                    continue
                if line and line != last.get(task) and task in self._open:
                    last[task] = line
                    self._write(line)

    def close(self) -> None:
        self._closed.set()
        self._thread.join()


def _parse() -> Settings:
    parser = argparse.ArgumentParser(description="Started by 'leat build --on'.")
    for name in Settings._fields:
        parser.add_argument("--" + name, default="")
    return Settings(**vars(parser.parse_args()))


def _connect(connect: Callable[[Settings, Link], Any], settings: Settings, link: Link) -> Any:
    try:
        return connect(settings, link)
    except Exception as error:  # pylint: disable=broad-except
        link.failed((f"{type(error).__name__}: {error}".splitlines() or ["unknown"])[0])
        raise SystemExit(1) from error


def serve(connect: Callable[[Settings, Link], Any]) -> None:
    """Runs an executor until the build ends.

    `connect` returns an object with the methods submit(task), cancel(id) and close(); an exception in it says why there
    is no cluster.
    """
    out, sys.stdout = sys.stdout, sys.stderr  # libraries may greet
    settings = _parse()
    link = Link(out, settings)
    executor = _connect(connect, settings, link)
    try:
        for line in sys.stdin:
            request = json.loads(line)
            if "cancel" in request:
                executor.cancel(request["cancel"])
                continue
            link.began(request["submit"])
            executor.submit(Task(request["submit"], request["cpus"], request["memory"], json.dumps(request["line"])))
    finally:
        executor.close()
        link.close()
