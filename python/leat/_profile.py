"""A loop over batches as seen from its thread: how long it waited for each batch, copied it, and ran the step.

A *cycle* starts when a batch has arrived and ends when the next one has. Rates and shares are those of whole cycles,
without the first few: workers start meanwhile, and the first batches of several workers arrive together.
"""
from __future__ import annotations

import bisect
from array import array
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ._spans import DEVICE, GET, RUN, TAGS, Lane

MOST_CYCLES = 1 << 20  # kept one by one; later ones only in the totals

STUDY = {GET: "Get batch", DEVICE: "Training batch to device", RUN: "Run training batch"}
LIGHTNING = {**STUDY, GET: "Get next data"}


def rows_of(batch: Any, depth: int = 0) -> int:
    """Number of samples of a batch: the first dimension of the first array in it."""
    count = getattr(batch, "count", None)
    if isinstance(count, int) and not isinstance(batch, (str, bytes)):
        return count
    shape = getattr(batch, "shape", None)
    if shape is not None:
        try:
            return int(shape[0]) if len(shape) else 1
        except (TypeError, ValueError):
            return 1
    if hasattr(batch, "values") and hasattr(batch, "keys"):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)) and batch and depth < 8:
        first = batch[0]
        nested = isinstance(first, (list, tuple, dict)) or hasattr(first, "shape") or hasattr(first, "keys")
        # A list of scalars or of single samples is a batch itself; a list of arrays has one per field.
        if isinstance(first, (str, bytes, int, float)) or (hasattr(first, "shape") and not len(first.shape)):
            return len(batch)
        return rows_of(first, depth + 1) if nested else len(batch)
    return 1


class Profile:
    """Collects what one thread does. Call `get`, `device`, `run` with the times of each."""

    def __init__(self, names: Optional[Dict[int, str]] = None, lane: str = "main") -> None:
        self.lane, self.names = Lane(lane), dict(STUDY if names is None else names)
        self.begin = 0  # of the first iterator
        self.end = 0
        self.samples = self.batches = 0
        self.waited = self.moved = self.ran = 0
        self.paused = 0  # between epochs, or while batches are copied to be kept
        self._pause_of = 0  # part of it since the last batch arrived
        self.first_ns = 0
        self.has_step = self.has_device = False
        # Of cycle i: when batch i arrived, how long it was waited for, and from then on.
        self._at, self._get, self._device, self._run = array("Q"), array("Q"), array("Q"), array("Q")
        self._rows, self._pause = array("Q"), array("Q")
        self.epochs: List[Dict[str, Any]] = []
        self._epoch: List[int] = []
        self._started: Optional[int] = None  # when the iterator was made that has given no batch yet

    # ---- noting ----

    def start(self, at: int) -> None:
        """An iterator is about to be made. Making it is part of waiting for its first batch."""
        if self._started is not None or self._epoch:  # of the same epoch, said twice
            return
        self._started = at
        if not self.begin:
            self.begin = at
        elif self.end:
            self.pause(at - self.end)
        self._epoch = [at, self.samples, self.waited, self.paused]

    def pause(self, ns: int) -> None:
        """Time that belongs to nobody's loop."""
        self.paused += max(0, ns)
        if self._pause:
            self._pause[-1] += max(0, ns)

    def get(self, begin: int, end: int) -> None:
        if self._started is not None:
            begin, self._started = self._started, None
        self.lane.add(GET, self.names[GET], begin, end, self.batches)
        if not self.batches:
            self.begin = self.begin or begin
            self.first_ns = end - begin
        self.batches += 1
        self.waited += end - begin
        self.end = end
        if len(self._at) < MOST_CYCLES:
            self._at.append(end)
            self._get.append(end - begin)
            for values in (self._device, self._run, self._rows, self._pause):
                values.append(0)

    def _current(self, values: "array[int]", ns: int) -> None:
        if self.batches == len(values):
            values[-1] += ns

    def rows(self, count: int) -> None:
        """Samples of the batch that arrived last."""
        self.samples += count
        self._current(self._rows, count)

    def device(self, begin: int, end: int) -> None:
        self.lane.add(DEVICE, self.names[DEVICE], begin, end, self.batches - 1)
        self.moved, self.has_device, self.end = self.moved + end - begin, True, end
        self._current(self._device, end - begin)

    def run(self, begin: int, end: int, ns: Optional[int] = None) -> None:
        """The step ran from `begin` to `end`; `ns`: without other tags inside."""
        self.lane.add(RUN, self.names[RUN], begin, end, self.batches - 1)
        took = end - begin if ns is None else ns
        self.ran, self.has_step, self.end = self.ran + took, True, max(self.end, end)
        self._current(self._run, took)

    def finish(self, at: int) -> None:
        """The loop ended: an epoch, unless it had no batches."""
        self.end, self._started = max(self.end, at), None
        epoch, self._epoch = self._epoch, []
        if not epoch or self.samples == epoch[1]:
            return
        begin, samples, waited, paused = epoch
        ns = max(1, at - begin - (self.paused - paused))
        self.epochs.append({"epoch": len(self.epochs), "samples": self.samples - samples, "seconds": ns / 1e9,
                            "wait_share": (self.waited - waited) / ns})

    # ---- figures ----

    def window(self, *warm: int) -> "Window":
        """The cycles after the first batches: the first number of `warm` of which there are three times as many."""
        count = len(self._at)
        first = next((number for number in warm if 0 < number <= count / 3), 1)
        if count <= first or self.batches > count:
            return self._whole()
        before, here = slice(first - 1, count - 1), slice(first, count)
        ns = self._at[-1] - self._at[first - 1] - sum(self._pause[before])
        cycles = [b - a - p for a, b, p in zip(self._at[before], self._at[here], self._pause[before])]
        return Window(max(1, ns), sum(self._rows[before]), count - first, sum(self._get[here]),
                      sum(self._device[before]), sum(self._run[before]), cycles)

    def _whole(self) -> "Window":
        """Everything: one batch only, or so many that the start does not matter."""
        ns = max(1, self.end - self.begin - self.paused)
        cycles = [a + b + c for a, b, c in zip(self._get, self._device, self._run)]
        return Window(ns, self.samples, max(1, self.batches), self.waited, self.moved, self.ran, cycles or [0])


class Window:
    """Sums over some cycles, in nanoseconds."""

    def __init__(self, ns: int, samples: int, batches: int, waited: int, moved: int, ran: int,
                 cycles: Sequence[int]) -> None:
        self.ns, self.samples, self.batches, self.cycles = ns, samples, batches, sorted(cycles)
        self.waited, self.moved, self.ran = waited, moved, ran

    @property
    def rate(self) -> float:
        return self.samples / self.ns * 1e9

    def share(self, ns: int) -> float:
        return min(1.0, ns / self.ns)

    def quantile_ms(self, q: float) -> float:
        return self.cycles[min(len(self.cycles) - 1, int(q * len(self.cycles)))] / 1e6

    def histogram(self) -> List[Tuple[float, int]]:
        """[upper end in ms, cycles], eight classes to a doubling, those of the engine's histograms."""
        classes: Dict[int, int] = {}
        upper = [2**log * (1 + i / 8) / 1e6 for log in range(10, 40) for i in range(1, 9)]
        for cycle in self.cycles:
            at = min(len(upper) - 1, bisect.bisect_left(upper, cycle / 1e6))
            classes[at] = classes.get(at, 0) + 1
        return [(round(upper[i], 6), classes[i]) for i in sorted(classes)]


def tag_number(name: str) -> int:
    """The tag that a name means: 'to device', or one of the study's, such as 'Training batch to device'."""
    wanted = name.strip().lower()
    for number, tag in enumerate(TAGS):
        if wanted == tag:
            return number
    for number, known in (*STUDY.items(), *LIGHTNING.items()):
        if wanted == known.lower():
            return number
    raise ValueError(f"there is no tag {name!r}; tags are {', '.join(TAGS)}")
