"""A callback for Lightning that says where the time of training goes."""
from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Callable, Dict, List, Optional

try:
    import lightning.pytorch as pl
    from lightning.pytorch.profilers import Profiler
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.split(".")[0] != "lightning":
        raise
    import pytorch_lightning as pl  # type: ignore[no-redef,import-not-found,unused-ignore]
    from pytorch_lightning.profilers import Profiler  # type: ignore[assignment,no-redef,import-not-found,unused-ignore]
import torch

from ._callback import Session
from ._profile import LIGHTNING, rows_of
from ._recorder import check_folder
from ._spans import DEVICE, GET, RUN, now
from ._watch import settle
from ._watch_torch import is_dataloader
from ._xray_result import Xray

# Actions that Lightning reports to its profiler, by a part of their names.
_NEXT = "train_dataloader_next"
_ACTIONS = ((_NEXT, GET), ("Strategy.batch_to_device", DEVICE), ("run_training_batch", RUN))


class _Tee(Profiler):
    """Stands in for the Trainer's profiler: passes everything on, and notes three actions of training."""

    def __init__(self, profiler: Any, note: Callable[[int, int, int], None], gets: Callable[[bool], None]) -> None:
        super().__init__()
        self.inner, self._note, self._gets, self._begun = profiler, note, gets, {}  # type: Any, Any, Any, Dict[str, int]

    def start(self, action_name: str) -> None:
        self.inner.start(action_name)
        if any(part in action_name for part, _ in _ACTIONS):
            self._begun[action_name] = now()
        if _NEXT in action_name:
            self._gets(True)

    def stop(self, action_name: str) -> None:
        begin = self._begun.pop(action_name, None)
        if _NEXT in action_name:
            self._gets(False)
        if begin is not None and sys.exc_info()[0] is not StopIteration:  # the loader's end is no batch
            tag = next(tag for part, tag in _ACTIONS if part in action_name)
            self._note(tag, begin, now())
        self.inner.stop(action_name)

    def summary(self) -> str:
        return self.inner.summary()

    def describe(self) -> None:
        self.inner.describe()

    def setup(self, *args: Any, **named: Any) -> None:
        self.inner.setup(*args, **named)

    def teardown(self, stage: Optional[str]) -> None:
        if "inner" in self.__dict__:
            self.inner.teardown(stage)

    def __del__(self) -> None:
        """The inner profiler has its own end."""


class XrayCallback(pl.Callback):
    """Profile training: `Trainer(callbacks=[leat.lightning.XrayCallback(report="run.html")])`.

    Tags *Get next data*, *Training batch to device* and *Run training batch*, and what the workers of a DataLoader do.
    `result()` has the figures; at the end of `fit` they are logged as one sentence by the logger `leat`.

    Args:
        report: write an HTML page here at the end of training. With several ranks the first one does, or each one if the
            name has '{rank}' in it: 'run-{rank}.html'.
        trace: write a trace for Perfetto here at the end of training, likewise.
        sync: wait for the GPU after each step, so that the time of its work is the step's.
        rows: function that returns the number of samples of a batch; None: the first dimension of its first array.
    """

    def __init__(self, report: "str | os.PathLike[str] | None" = None, trace: "str | os.PathLike[str] | None" = None,
                 sync: bool = True, rows: Optional[Callable[[Any], int]] = None) -> None:
        check_folder("report", report)
        check_folder("trace", trace)
        self._report, self._trace, self._sync, self._rows = report, trace, sync, rows or rows_of
        self._session: Optional[Session] = None
        self._undo: List[Callable[[], None]] = []
        self._watched = contextlib.ExitStack()  # data sets that the main process reads
        self._trainer: Any = None

    def result(self) -> Xray:
        """What was seen so far, or in the last `fit`."""
        session = self._session or Session(LIGHTNING, None, None)
        return session.result()

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage != "fit" or self._undo:
            return
        self._session, self._trainer = Session(LIGHTNING, self._report, self._trace), trainer
        self._session.rank = int(trainer.global_rank)
        before = trainer.profiler
        trainer.profiler = _Tee(before, self._note, self._gets)
        self._undo.append(lambda: setattr(trainer, "profiler", before))
        self._watch_loaders()

    def _watch_loaders(self) -> None:
        """Iterators of DataLoaders that are made for training from now on are watched: their workers, or data sets."""
        kind, session = torch.utils.data.DataLoader, self._session
        assert session is not None
        before = kind.__iter__

        def begin(loader: Any) -> Any:
            if not self._training() or not is_dataloader(loader):
                return before(loader)
            session.profile.start(now())
            session.workers.read(True)  # until Lightning says that it gets a batch: it may take the first one at once
            self._watched.enter_context(session.workers.running(loader))
            with session.workers.starting(loader):
                return before(loader)

        kind.__iter__ = begin  # type: ignore[method-assign]
        self._undo.append(lambda: setattr(kind, "__iter__", before))

    def _training(self) -> bool:
        return bool(self._trainer.training) and not self._trainer.sanity_checking

    def _gets(self, on: bool) -> None:
        if self._session is not None:
            self._session.workers.read(on and self._training())

    def _note(self, tag: int, begin: int, end: int) -> None:
        session = self._session
        if session is None or not self._training():
            return
        profile = session.profile
        if tag == GET:
            profile.get(begin, end)
        elif tag == DEVICE:
            if self._sync:
                settle()
            profile.device(begin, now() if self._sync else end)
        else:
            if self._sync:
                settle()
            profile.run(begin, now() if self._sync else end)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if self._session is None:
            return
        self._session.loader = trainer.train_dataloader
        self._session.workers.read(False)
        # Without a length, Lightning takes the first batch before it tells its profiler.
        fetcher = getattr(trainer.fit_loop, "_data_fetcher", None)
        for _ in range(getattr(fetcher, "fetched", 0)):
            self._session.profile.get(now(), now())

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if self._session is not None:
            self._session.profile.start(now())

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self._session is not None:
            self._session.profile.rows(self._rows(batch))

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self._session is not None:
            self._session.profile.finish(now())
            self._watched.close()
            self._session.workers.collect()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._paused = now()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self._session is not None and self._session.profile.batches:
            self._session.profile.pause(now() - getattr(self, "_paused", now()))

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit":
            self._stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._stop()

    def _stop(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._watched.close()
        if self._session is not None and self._session.ended is None:
            self._session.end()
        self._trainer = None
