"""Profiles a loop of the program's own: `for batch in leat.watch(loader)`, and `with leat.tag("to device")` inside it."""
from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Union

from . import _lib
from ._live import Live
from ._profile import Profile, rows_of, tag_number
from ._recorder import check_folder
from ._spans import DEVICE, FETCH, GET, RUN, TAGS, Lane, Totals, now
from ._watch_torch import Seen, Workers, is_dataloader
from ._xray_result import Xray, limit_of, sentence_of
from .errors import InvalidError

_Path = Union[str, "os.PathLike[str]", None]


def settle(result: Any = None) -> None:
    """Wait until the device is done: PyTorch and JAX return from a step before it is."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    jax = sys.modules.get("jax")
    if jax is not None and result is not None:
        with contextlib.suppress(TypeError, ValueError):
            jax.block_until_ready(result)


def _stages(totals: Totals, samples: float, workers: int) -> List[Dict[str, Any]]:
    """Parts of the loader by their own time, the longest first."""
    busy = sum(total.own_ns for total in totals.values()) or 1
    rows = [{"name": name, "tag": TAGS[tag], "busy_s": total.own_ns / 1e9, "items": total.items, "calls": total.calls,
             "share": total.own_ns / busy, "per_sample_ms": total.own_ns / 1e6 / max(1.0, samples),
             "rate_alone": max(1, workers) * samples / max(1, total.own_ns) * 1e9,
             "most_ms": total.most_ns / 1e6} for (tag, name), total in totals.items()]
    return sorted(rows, key=lambda row: -row["busy_s"])


def _explain(totals: Totals, spent: int, batches: int) -> None:
    """A data set whose class cannot be timed: it took what the other parts did not, of the time to make batches."""
    rest = spent - sum(total.own_ns for total in totals.values())
    if rest > 0 and not any(tag == FETCH for tag, _ in totals):
        totals.of(FETCH, "data set").add(rest, rest, batches, batches)


def _loader_rate(workers: Seen, waited_ns: float, rows: float) -> Optional[float]:
    """Samples/s that the loader could give to a step that takes no time; None: not known."""
    if workers.batches and workers.count:
        rate = workers.count * rows * workers.batches / max(1, workers.batch_ns) * 1e9
        if workers.cpu_ns:  # a container may have a quota
            rate = min(rate, _lib.available_cpus() * rows * workers.batches / workers.cpu_ns * 1e9)
        return rate
    return rows / waited_ns * 1e9 if waited_ns else None


def figures_of(profile: Profile, workers: Seen, perfect: Optional[Dict[str, Any]] = None, feed: Any = None,
               synchronous: bool = False, notes: Optional[List[str]] = None) -> Dict[str, Any]:
    """The run's JSON: the keys of `leat feed --json` where they mean the same, and more."""
    window = profile.window(max(workers.count, perfect["kept"] if perfect else 0), workers.count)
    rows = window.samples / window.batches
    spent = workers.batch_ns or (profile.waited if synchronous else 0)
    _explain(workers.totals, spent, workers.batches or profile.batches)
    stages = _stages(workers.totals, rows * (workers.batches or profile.batches), workers.count)
    waits = window.share(window.waited) if profile.has_step else None
    figures: Dict[str, Any] = {
        "samples": profile.samples, "batches": profile.batches,
        "seconds": max(0, profile.end - profile.begin - profile.paused) / 1e9,
        "samples_per_s": window.rate, "wait_share": waits,
        "utilisation": window.share(window.ran) if profile.has_step else None,
        "batch_ms": {"p50": window.quantile_ms(0.5), "p99": window.quantile_ms(0.99), "max": window.quantile_ms(1),
                     "histogram": window.histogram()},
        "first_batch_ms": profile.first_ns / 1e6,
        "parts": [{"name": profile.names[tag], "tag": TAGS[tag], "ms": ns / 1e6 / window.batches,
                   "share": window.share(ns)}
                  for tag, ns in ((GET, window.waited), (DEVICE, window.moved), (RUN, window.ran)) if tag == GET or ns],
        "stages": stages, "epochs": profile.epochs, "workers": workers.count,
        "loader_per_s": None, "perfect_loader": perfect, "remedies": [], "notes": list(notes or ()),
    }
    if workers.batches or synchronous:
        figures["loader_per_s"] = _loader_rate(workers, window.waited / window.batches, rows)
    if feed is not None:
        with contextlib.suppress(Exception):  # a feed that was closed meanwhile
            figures["feed"] = feed.stats()
    dropped = profile.lane.dropped + workers.dropped + sum(lane.dropped for lane in workers.lanes.values())
    if dropped:
        figures["notes"].append(f"{dropped} spans beyond the limit are in the figures but not on the timeline")
    if perfect:
        step = max(1, window.moved + window.ran) / window.batches / 1e6
        perfect["speedup"] = perfect["samples_per_s"] / window.rate if window.rate else 0.0
        perfect["step_slowed"] = step / perfect["step_ms"] if perfect["step_ms"] else 1.0
        figures["remedies"].append({"what": "a perfect loader", "predicted": perfect["samples_per_s"],
                                    "measured": None})
    figures["limit"] = limit_of(figures)
    figures["sentence"] = sentence_of(figures)
    return figures


def feed_of(loader: Any) -> Any:
    """The Leat feed behind a loader, if there is one."""
    from ._feed import Feed

    return loader if isinstance(loader, Feed) else (
        loader.feed if isinstance(getattr(loader, "feed", None), Feed) else None)


def lanes_of(profile: Profile, workers: Seen) -> List[Lane]:
    return [profile.lane.copied(), *(workers.lanes[name] for name in sorted(workers.lanes))]


_loops = threading.local()


def _running() -> "List[Watch]":
    """The watched loops that run on this thread, the latest last. They may end in any order."""
    if not hasattr(_loops, "running"):
        _loops.running = []
    running: List[Watch] = _loops.running
    return running


class Watch:
    """What `leat.watch` returns: iterates like the loader. `result()` says what it has seen so far."""

    def __init__(self, loader: Any, rows: Optional[Callable[[Any], int]] = None, sync: bool = True,
                 report: _Path = None, trace: _Path = None) -> None:
        check_folder("report", report)
        check_folder("trace", trace)
        self.loader, self.report, self.trace = loader, report, trace
        self._rows, self._sync = rows or rows_of, sync
        self.profile, self._workers, self._live = Profile(), Workers(), None  # type: Profile, Workers, Optional[Live]
        if report:
            self._live = Live()
            self._live.attach(self.profile.lane)
        self._copied = 0  # nanoseconds of 'to device' since the batch arrived
        self._from = 0  # where the span of the step begins
        self._tagged_run = False
        self._close = weakref.finalize(self, self._workers.close)

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        """Others are the loader's: `watched.sampler.set_epoch(3)` works as before."""
        if name.startswith("_") or name == "loader":
            raise AttributeError(name)
        return getattr(self.loader, name)

    def __iter__(self) -> Iterator[Any]:
        profile, loops = self.profile, _running()
        loops.append(self)
        begin = now()
        profile.start(begin)
        batches: Any = None
        try:
            with self._workers.running(self.loader):  # first: making the iterator starts that of an IterableDataset
                with self._workers.starting(self.loader):
                    batches = iter(self.loader)
                while True:
                    begin = now()
                    try:
                        with self._workers.reading():
                            batch = next(batches)
                    except StopIteration:
                        return
                    arrived = now()
                    profile.get(begin, arrived)
                    profile.rows(self._rows(batch))
                    self._copied, self._tagged_run = 0, False
                    begin = self._from = now()
                    yield batch
                    del batch
                    self._ran(begin)
        finally:
            profile.finish(now())
            loops.remove(self)
            del batches  # ends workers, unless they are persistent
            self._workers.collect()
            self._write()

    def _ran(self, begin: int) -> None:
        """The program asks for the next batch: what it did since is the step, unless it has tagged that itself."""
        if self._sync:
            settle()
        end = now()
        if not self._tagged_run:
            self.profile.run(self._from, end, end - begin - self._copied)

    @contextlib.contextmanager
    def tag(self, name: str) -> Iterator[None]:
        number = tag_number(name)
        if number not in (DEVICE, RUN):
            raise InvalidError(f"a loop can tag 'to device' and 'run batch', not {name!r}")
        begin, copied = now(), self._copied
        try:
            yield
        finally:
            if self._sync:
                settle()
            end = now()
            if number == RUN:  # copies inside it have their own tag
                self._tagged_run = True
                self.profile.run(begin, end, end - begin - (self._copied - copied))
            else:
                if not copied and begin - self._from <= end - begin:  # the step begins with it: its span comes after
                    self._from = end
                self._copied += end - begin
                self.profile.device(begin, end)

    def result(self) -> Xray:
        """What was seen so far: figures, a verdict, and the timeline."""
        if not self.profile.batches:
            raise InvalidError("there is no result before the first batch: loop over leat.watch(loader) first")
        seen = self._workers.seen()
        synchronous = is_dataloader(self.loader) and not self.loader.num_workers
        return Xray(figures_of(self.profile, seen, None, feed_of(self.loader), synchronous),
                    lanes_of(self.profile, seen), self._live)

    def _write(self) -> None:
        if self.profile.batches and (self.report or self.trace):
            self.result()._write(self.report, self.trace)

    def __repr__(self) -> str:
        return repr(self.result()) if self.profile.batches else f"<leat.watch of {self.loader!r}>"

    def _repr_html_(self) -> Optional[str]:
        return self.result()._repr_html_() if self.profile.batches else None


def watch(loader: Any, *, rows: Optional[Callable[[Any], int]] = None, sync: bool = True, report: _Path = None,
          trace: _Path = None) -> Watch:
    """Profile a training loop: `for batch in leat.watch(loader)` instead of `for batch in loader`.

    Time inside the loader is tagged *Get batch*, time between two batches *Run training batch*. Put the copy to the
    device in `with leat.tag("to device")` to tag it *Training batch to device*. Workers of a DataLoader are profiled,
    too. Loop over the same object in every epoch; `result()` has the figures.

    Args:
        loader: any iterable of batches.
        rows: function that returns the number of samples of a batch; None: the first dimension of its first array.
        sync: wait for the GPU at the end of each step, so that the time of its work is the step's.
        report: write an HTML page here after each epoch. With several ranks the first one does, or each one if the name
            has '{rank}' in it: 'run-{rank}.html'.
        trace: write a trace for Perfetto here after each epoch, likewise.
    """
    return Watch(loader, rows, sync, report, trace)


def tag(name: str) -> "contextlib.AbstractContextManager[None]":
    """Tag a part of a loop over `leat.watch(...)`: 'to device' or 'run batch', or the study's names for them.

    Outside of such a loop it does nothing, so it can stay in the program.
    """
    running = _running()
    if not running:
        tag_number(name)
        return contextlib.nullcontext()
    return running[-1].tag(name)
