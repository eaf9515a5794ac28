"""Watches the worker processes of PyTorch's DataLoader, or its data set if there are none.

A loader hands worker_init_fn and collate_fn to its workers when an iterator is made, so they are replaced for that moment
only. PyTorch is not imported here: a program without it has no such loader.
"""
from __future__ import annotations

import contextlib
import copy
import os
import shutil
import sys
import tempfile
import weakref
from typing import Any, Dict, Iterator, List

from ._spans import MOST_SPANS, Calls, Lane, Totals
from ._watch_worker import Collate, WorkerInit, read_worker, watched_here


def is_dataloader(loader: Any) -> bool:
    """Whether `loader` is a DataLoader that has worker processes or reads its data set itself; Leat's has neither."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(loader, data.DataLoader) and not hasattr(loader, "_reader")


def detached(loader: Any) -> Any:
    """A copy of a DataLoader that starts its own workers, even if the loader has persistent ones, and ends them."""
    if not is_dataloader(loader):
        return loader
    other = copy.copy(loader)
    other.__dict__.update(_iterator=None, persistent_workers=False)  # PyTorch forbids the assignment
    return other


class Seen:
    """What workers did: totals, and a lane of spans for each."""

    def __init__(self) -> None:
        self.totals, self.lanes = Totals(), {}  # type: Totals, Dict[str, Lane]
        self.count = self.batches = self.batch_ns = self.cpu_ns = self.dropped = 0

    def copied(self) -> "Seen":
        other = copy.copy(self)
        other.totals, other.lanes = Totals(), copy.deepcopy(self.lanes)
        other.totals.merge(self.totals)
        return other

    def take(self, state: Dict[str, Any], spans: List[Any], limit: int) -> None:
        self.totals.merge(state["totals"])
        self.batches += state["batches"]
        self.batch_ns += state["batch_ns"]
        self.cpu_ns += state["cpu_ns"]
        self.dropped += state["dropped"]
        name = f"worker {state['worker']}"
        lane = self.lanes.setdefault(name, Lane(name, limit))
        for span in spans:
            lane.add(*span)


class Workers:
    """Watches the workers of all iterators of a loader."""

    def __init__(self, limit: int = MOST_SPANS) -> None:
        self._limit, self._taken, self._here, self._folder = limit, Seen(), Calls(), ""
        self._here.lane, self._here.on = Lane("data set", limit), False
        self._watched: Dict[int, List[Any]] = {}  # data sets by id: iterators that read it, and how to put it back

    @property
    def folder(self) -> str:
        if not self._folder:
            self._folder = tempfile.mkdtemp(prefix="leat-xray-")
            self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    @contextlib.contextmanager
    def starting(self, loader: Any) -> Iterator[None]:
        """While a loader makes an iterator: the workers that it starts are watched."""
        if not is_dataloader(loader):
            yield
            return
        before = {name: getattr(loader, name) for name in ("collate_fn", "worker_init_fn")}
        loader.collate_fn = Collate(before["collate_fn"], None if loader.num_workers else self._here)
        if loader.num_workers:
            self._taken.count = loader.num_workers
            loader.worker_init_fn = WorkerInit(before["worker_init_fn"], self.folder, self._limit)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(loader, name, value)

    @contextlib.contextmanager
    def running(self, loader: Any) -> Iterator[None]:
        """While the main process uses an iterator: a data set without workers is watched, where `reading` says so."""
        if not is_dataloader(loader) or loader.num_workers:
            yield
            return
        key = id(loader.dataset)
        if key not in self._watched:  # of several iterators of it, the last to end puts everything back
            self._watched[key] = [0, contextlib.ExitStack()]
            self._watched[key][1].enter_context(watched_here(loader.dataset, self._here))
        self._watched[key][0] += 1
        try:
            yield
        finally:
            self._watched[key][0] -= 1
            if not self._watched[key][0]:
                self._watched.pop(key)[1].close()

    def read(self, on: bool) -> None:
        """The main process gets a batch, or has got it: what it decodes at other times is not the loader's work."""
        self._here.on = on

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """While the main process gets a batch."""
        self.read(True)
        try:
            yield
        finally:
            self.read(False)

    def _names(self) -> List[str]:
        if not self._folder:
            return []
        return sorted(entry[:-5] for entry in os.listdir(self._folder) if entry.endswith(".json"))

    def collect(self) -> None:
        """Take what workers wrote that have ended, and remove their files: their number stays bounded."""
        for name in self._names():
            found = read_worker(self._folder, name)
            if found is None or not (found[0]["ended"] or not _alive(found[0]["pid"])):
                continue
            self._taken.take(*found, self._limit)
            for ending in (".json", ".spans"):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self._folder, name + ending))

    def seen(self) -> Seen:
        """What all workers did so far."""
        seen = self._taken.copied()
        for name in self._names():
            found = read_worker(self._folder, name)
            if found is not None:
                seen.take(*found, self._limit)
        seen.totals.merge(self._here.totals)
        if len(self._here.lane):
            seen.lanes[self._here.lane.name] = self._here.lane.copied()
        return seen

    def close(self) -> None:
        """Keep what was seen and remove the folder; workers that still run stop timing."""
        self._taken, self._here = self.seen(), Calls()
        self._here.on = False
        if self._folder:
            self._remove()
            self._folder = ""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
