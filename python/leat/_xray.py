"""`leat.xray`: where the time of a loop over any loader goes, and what a perfect loader would bring."""
from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Union

from ._live import Live
from ._options import Storage
from ._pipeline import Pipeline
from ._profile import Profile, rows_of
from ._replay import Before, Keeper, replay
from ._spans import now
from ._watch import feed_of, figures_of, lanes_of, settle
from ._watch_torch import Workers, detached, is_dataloader
from ._xray_result import Xray
from .errors import InvalidError

_KEEP = 8  # batches
_Step = Optional[Callable[[Any], Any]]


class _Run:
    """One pass over a loader."""

    def __init__(self, loader: Any, step: _Step, to_device: _Step, rows: Callable[[Any], int], keeper: Keeper) -> None:
        self.loader, self.step, self.to_device, self.rows, self.keeper = loader, step, to_device, rows, keeper
        self.profile, self.workers, self.live = Profile(), Workers(), Live()
        self.live.attach(self.profile.lane)

    def cycle(self, batch: Any, note: bool = False) -> None:
        """Copy a batch to the device and run the step, as the training loop does."""
        begin = now()
        if self.to_device is not None:
            batch = self.to_device(batch)
            settle(batch)
            if note:
                self.profile.device(begin, now())
        if self.step is not None:
            begin = now()
            settle(self.step(batch))
            if note:
                self.profile.run(begin, now())

    def _one(self, batches: Any) -> bool:
        begin = now()
        try:
            with self.workers.reading():
                batch = next(batches)
        except StopIteration:
            return False
        self.profile.get(begin, now())
        self.profile.rows(self.rows(batch))
        if self.step is not None and self.keeper.wants(batch):
            begin = now()
            self.keeper.keep(batch)
            self.profile.pause(now() - begin)
        self.cycle(batch, True)
        return True

    def __call__(self, batches: Optional[int], seconds: float) -> None:
        begin = now()
        self.profile.start(begin)
        source: Any = None
        try:
            with self.workers.running(self.loader):  # first: making the iterator starts that of an IterableDataset
                with self.workers.starting(self.loader):
                    source = iter(self.loader)
                while (batches is None or self.profile.batches < batches) and now() - begin < seconds * 1e9:
                    if not self._one(source):
                        break
        finally:
            self.profile.finish(now())
            if is_dataloader(self.loader):  # its workers would slow the replay down
                with contextlib.suppress(AttributeError):
                    source._shutdown_workers()
            del source
            self.workers.close()


def _memory(given: Union[int, str]) -> int:
    from ._handle import bytes_of

    return bytes_of({"keep_memory": given}, "keep_memory")


def _perfect(run: _Run, seconds: float) -> Optional[Dict[str, Any]]:
    if run.step is None or not run.keeper.kept:
        return None
    ns, batches, samples = replay(run.keeper, run.cycle, run.rows, seconds, run.profile.batches)
    return {"samples_per_s": samples / max(1, ns) * 1e9, "step_ms": ns / 1e6 / batches, "kept": len(run.keeper.kept),
            "replayed": batches}


def _notes(run: _Run) -> List[str]:
    notes = []
    if not all(kept.copied for kept in run.keeper.kept):
        notes.append("batches could not be copied: if the step changes them in place, the replay used changed ones")
    if run.profile.batches < 10:
        notes.append(f"only {run.profile.batches} batches were seen: profile more of them for exact figures")
    return notes


def _of_loader(loader: Any, step: _Step, to_device: _Step, batches: Optional[int], seconds: float,
               rows: Optional[Callable[[Any], int]], keep: int, keep_memory: Union[int, str],
               restore: Iterable[Any]) -> Xray:
    feed = feed_of(loader)
    before = Before(step, to_device, also=[*restore, *([feed] if feed is not None else [])], loader=loader)
    run = _Run(detached(loader), step, to_device, rows or rows_of, Keeper(keep, _memory(keep_memory)))
    try:
        run(batches, seconds)
        if not run.profile.batches:
            raise InvalidError("the loader gave no batch: there is nothing to profile")
        perfect = _perfect(run, min(2.0, max(0.2, 0.2 * run.profile.ran / 1e9)))
        synchronous = is_dataloader(loader) and not loader.num_workers
        seen = run.workers.seen()
        figures, lanes = figures_of(run.profile, seen, perfect, feed, synchronous, _notes(run)), lanes_of(run.profile, seen)
    finally:
        before.restore()
        run.profile.lane.echo = None
    return Xray(figures, lanes, page=run.live.end(figures, lanes))


def xray(loader: Any, step: _Step = None, *, to_device: _Step = None, step_ms: Optional[float] = None,
         batches: Optional[int] = None, seconds: Optional[float] = None, rows: Optional[Callable[[Any], int]] = None,
         keep: int = _KEEP, keep_memory: Union[int, str] = "256MiB", restore: Iterable[Any] = (),
         threads: int = 0, memory: Union[int, str] = 0, seed: int = 0, storage: Optional[Storage] = None) -> Xray:
    """Profile a loader, with the step that it feeds: what limits, and what a perfect loader would bring.

    Runs the loop for `seconds`, or for `batches`, or to the end of the loader. Then gives some kept batches to the step
    again, without a loader, to see how fast it could be. Inside the workers of a PyTorch DataLoader, or in its data set
    if it has none, samples, decoding, each transform and collating are timed.

    The step trains: afterwards, models and optimizers that it refers to (anything with state_dict and load_state_dict),
    the position of a Leat feed, and the random generators of Python, NumPy and PyTorch are put back as they were. A
    generator that is passed as the loader stays consumed.

    Args:
        loader: a DataLoader, a tf.data.Dataset, a feed, a generator, or any other iterable of batches; or a pipeline or
            spec, of which the engine measures each part alone and tries remedies, as `leat xray` does. It is profiled like
            other loaders if there is a `step`, or a Python function after `batch`.
        step: function that takes a batch and trains with it; None: the loader alone is measured.
        to_device: function that takes a batch and returns it on the device.
        step_ms: instead of `step`: a simulated step that takes so many milliseconds.
        batches: stop after so many batches.
        seconds: the most time to take. None: 30, or about 10 for a pipeline or spec without a step, as `leat xray`.
        rows: function that returns the number of samples of a batch; None: the first dimension of its first array.
        keep: most batches to keep for the replay. They are copied before the step sees them, so it may change them.
        keep_memory: most memory for them, though one is always kept.
        restore: more objects with state_dict and load_state_dict to put back, which the step does not refer to itself.
        threads, memory, seed, storage: options of the feeds of a pipeline or spec, as in `leat.Feed`.
    """
    if step is not None and step_ms is not None:
        raise InvalidError("give a step or step_ms, not both")
    if keep < 1:
        raise InvalidError(f"keep={keep} must be at least 1")
    options: Dict[str, Any] = dict(threads=threads, memory=memory, seed=seed, storage=storage)
    if isinstance(loader, (str, Pipeline)):
        from ._feed import Feed
        from ._xray_spec import xray_spec

        pipeline = loader if isinstance(loader, Pipeline) else Pipeline([loader])
        if step is None and not pipeline._maps:
            for name, value in (("to_device", to_device), ("batches", batches), ("rows", rows), ("restore", restore)):
                if value is not None and value != ():
                    raise InvalidError(f"{name} is for a step: without one, the engine measures a pipeline's parts")
            return xray_spec(pipeline, step_ms, seconds, options)
        with Feed(pipeline, **options) as feed:
            return xray(feed, step, to_device=to_device, step_ms=step_ms, batches=batches, seconds=seconds, rows=rows,
                        keep=keep, keep_memory=keep_memory, restore=restore)
    for name, value in options.items():
        if value:
            raise InvalidError(f"{name} is for a pipeline or spec: a {type(loader).__name__} has been opened already")
    if step_ms is not None:
        pause = step_ms / 1000

        def sleep(batch: Any) -> None:
            time.sleep(pause)

        step = sleep
    return _of_loader(loader, step, to_device, batches, 30.0 if seconds is None else seconds, rows, keep, keep_memory,
                      restore)
