"""What the callbacks of Lightning and Keras share: a profile, and what to do with it at the end."""
from __future__ import annotations

import logging
import os
from typing import Any, Dict, List, Optional

from ._live import Live
from ._profile import Profile
from ._recorder import check_folder
from ._watch import feed_of, figures_of, lanes_of
from ._watch_torch import Workers, is_dataloader
from ._xray_result import Xray
from .errors import InvalidError

_log = logging.getLogger("leat")


class Session:
    """The profile of a training run."""

    def __init__(self, names: Dict[int, str], report: "str | os.PathLike[str] | None",
                 trace: "str | os.PathLike[str] | None") -> None:
        check_folder("report", report)
        check_folder("trace", trace)
        self.profile, self.workers = Profile(names), Workers()
        self.rank: Optional[int] = None  # None: found when files are written
        self.report, self.trace, self.notes = report, trace, []  # type: Any, Any, List[str]
        self.loader: Any = None
        self._live: Optional[Live] = None
        if report:
            self._live = Live()
            self._live.attach(self.profile.lane)
        self.ended: Optional[Xray] = None

    def result(self) -> Xray:
        if self.ended is not None:
            return self.ended
        if not self.profile.batches:
            raise InvalidError("there is no result before the first batch: train first")
        seen = self.workers.seen()
        synchronous = is_dataloader(self.loader) and not self.loader.num_workers
        return Xray(figures_of(self.profile, seen, None, feed_of(self.loader), synchronous, self.notes),
                    lanes_of(self.profile, seen), self._live)

    def end(self) -> None:
        """Training has ended: the figures are final."""
        self.workers.close()
        if not self.profile.batches:
            return
        self.ended = self.result()
        if self._live is not None:
            self.profile.lane.echo = None
            self.ended = Xray(self.ended.figures, self.ended._lanes,
                              page=self._live.end(self.ended.figures, self.ended._lanes))
        self.ended._write(self.report, self.trace, self.rank)
        _log.info("%s", self.ended.sentence)
