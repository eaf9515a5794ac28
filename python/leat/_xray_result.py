"""What an x-ray found: figures, a verdict in one sentence, and the spans behind them."""
from __future__ import annotations

import json
import logging
import os
import weakref
from typing import Any, Dict, List, Optional

from . import _html
from ._spans import COLLATE, DECODE, FETCH, TAGS, TRANSFORM, Lane
from .errors import InvalidError

_log = logging.getLogger("leat")
WAITS = 0.05  # share of time: a step that waits less is the limit itself
_MAIN = ("samples_per_s", "wait_share", "batch_ms", "limit", "sentence", "perfect_loader")
_PLAIN = {FETCH: "reading samples", DECODE: "decode", COLLATE: "collate"}


def count_text(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _part(stage: Dict[str, Any]) -> str:
    tag = TAGS.index(stage["tag"])
    return f"transform {stage['name']}" if tag == TRANSFORM else _PLAIN.get(tag, stage["tag"])


def limit_of(figures: Dict[str, Any]) -> str:
    """The name of what limits the rate: step, a part of the loader, or loader if its parts are not seen."""
    if figures["wait_share"] is not None and figures["wait_share"] < WAITS:
        return "step"
    if figures.get("feed"):
        limit = str(figures["feed"].get("limit"))
        return "loader" if limit in ("", "None", "step", "prefetch") else limit
    stages = figures["stages"]
    return _part(max(stages, key=lambda stage: stage["busy_s"])) if stages else "loader"


def sentence_of(figures: Dict[str, Any]) -> str:
    rate, waits, perfect = figures["samples_per_s"], figures["wait_share"], figures["perfect_loader"]
    stages, loader = figures["stages"], figures["loader_per_s"]
    most = max(stages, key=lambda stage: stage["busy_s"]) if stages else None
    inside = ""
    if most:
        inside = (f" Most of the loader's work is {_part(most)}: {most['per_sample_ms']:.3g} ms of "
                  f"{sum(stage['per_sample_ms'] for stage in stages):.3g} ms per sample.")
    elif figures["limit"] not in ("step", "loader"):
        inside = f" The feed is limited by {figures['limit']}."
    if waits is None:
        return f"The loader alone gives {count_text(rate)} samples/s.{inside}"
    slowed = ""
    if perfect and perfect["step_slowed"] > 1.15:
        slowed = f" While the loader works, the step takes {perfect['step_slowed']:.2g} times as long as alone."
    if figures["limit"] == "step":
        could = f"; the loader could give {loader / rate:.2g}x" if loader and loader > 1.1 * rate else ""
        return f"The step is the limit: it waits {100 * waits:.1f} % of the time{could}.{slowed}"
    brings = ""
    if perfect:
        brings = (f" A perfect loader would give {perfect['speedup']:.2f}x: {count_text(perfect['samples_per_s'])} "
                  f"instead of {count_text(rate)} samples/s.")
    return f"The loader is the limit: the step waits {100 * waits:.0f} % of the time.{brings}{inside}{slowed}"


class Xray:
    """The result of `leat.xray`, `leat.watch` and the callbacks.

    `figures` has everything as plain values, and `json()` as text. The most important ones are attributes:
    `samples_per_s`, `wait_share`, `batch_ms`, `limit`, `sentence`, `perfect_loader`; they are None where they were not
    measured, as for a pipeline without a step. `part(name)` is one of `parts`. `report(path)` writes one HTML page, `trace(path)` a file for Perfetto.
    """

    def __init__(self, figures: Dict[str, Any], lanes: Optional[List[Lane]] = None, live: Any = None,
                 page: Any = None) -> None:
        self.figures, self._lanes, self._page = figures, lanes or [], page
        self._live = None if live is None else weakref.ref(live)  # of a run that goes on: the recorder is not ours

    def __getstate__(self) -> Dict[str, Any]:
        return dict(self.__dict__, _live=None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "figures":
            raise AttributeError(name)
        try:
            return self.figures[name]
        except KeyError:
            if name in _MAIN:
                return None
            raise AttributeError(f"an Xray has no figure '{name}'; there are {', '.join(self.figures)}") from None

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *self.figures})

    def part(self, name: str) -> Dict[str, Any]:
        """The part of this name, such as 'Run training batch' or, of a pipeline, 'storage'; the first if there are
        several."""
        for part in self.figures["parts"]:
            if name in (part["name"], part.get("tag")):
                return dict(part)
        raise InvalidError(f"there is no part {name!r}; parts are "
                           + ", ".join(dict.fromkeys(part["name"] for part in self.figures["parts"])))

    def json(self) -> str:
        """All figures as JSON text."""
        return json.dumps(self.figures)

    def trace(self, path: "str | os.PathLike[str]") -> None:
        """Write the spans to a file that Perfetto (ui.perfetto.dev) shows."""
        from ._live import write_trace

        write_trace(path, self._lanes)

    def report(self, path: "str | os.PathLike[str]") -> None:
        """Write figures and timeline as one HTML page, which needs no network and no other file."""
        from ._live import write_lanes
        from ._recorder import write_report

        live = self._live() if self._live is not None else None
        if self._page is not None:
            self._page.write(path)
        elif live is not None:
            live.report(path, self.figures, self._lanes)
        elif self._lanes:
            write_lanes(path, self.figures, self._lanes)
        else:
            write_report(None, path, self.figures)

    def _write(self, report: Any, trace: Any, rank: Optional[int] = None) -> None:
        """Write files at the end of training, which must not fail because of them."""
        from ._handle import path_of_rank, this_rank

        rank = this_rank() if rank is None else rank
        for what, given, write in (("report", report, self.report), ("trace", trace, self.trace)):
            path = path_of_rank(given, rank)
            if given and not path:
                _log.info("rank %d writes no %s: '{rank}' in the name gives each rank its file", rank, what)
            if path:
                try:
                    write(path)
                except Exception as error:
                    _log.warning("cannot write the %s: %s", what, error)

    # ---- tables ----

    def _rows(self) -> List[List[str]]:
        rows = [["samples/s", count_text(self.figures["samples_per_s"])]]
        if self.figures["wait_share"] is not None:
            rows += [["waited", f"{100 * self.figures['wait_share']:.1f} %"],
                     ["step busy", f"{100 * self.figures['utilisation']:.1f} %"]]
        batch = self.figures["batch_ms"]
        rows += [["batch, p50 / p99", f"{batch['p50']:.3g} / {batch['p99']:.3g} ms"],
                 ["first batch", f"{self.figures['first_batch_ms']:.3g} ms"]]
        perfect = self.figures["perfect_loader"]
        if perfect:
            rows.append(["perfect loader", f"{count_text(perfect['samples_per_s'])} samples/s, "
                                           f"{perfect['speedup']:.2f}x"])
        return rows

    def _stage_rows(self) -> List[List[str]]:
        return [[stage["tag"], stage["name"], f"{stage['per_sample_ms']:.3g}", f"{100 * stage['share']:.0f} %"]
                for stage in self.figures["stages"]]

    def _spec_rows(self) -> List[List[str]]:
        """Parts and remedies of a pipeline, as the engine measured them."""
        rows = []
        for part in self.figures["parts"]:
            threads = f", {part['threads']} threads" if part.get("threads") else ""
            rate = part.get("samples_per_s")
            rows.append([part["name"] + threads, "" if rate is None else count_text(rate), part.get("note") or ""])
        for remedy in self.figures["remedies"]:
            predicted, measured = remedy.get("predicted"), remedy.get("measured")
            most = "up to " if remedy.get("at_most") else ""
            tried = f"measured {count_text(measured)}" if measured is not None else remedy.get("why") or ""
            what = remedy["what"] if remedy.get("helps", True) else f"no help: {remedy['what']}"
            rows.append([what, "" if predicted is None else most + count_text(predicted), tried])
        return rows

    def __repr__(self) -> str:
        if "stages" not in self.figures:
            rows = self._spec_rows()
            return "\n".join([self.figures["sentence"], "", *(f"  {name:<44}{rate:>12}  {note}" for name, rate, note in rows)])
        lines = [self.figures["sentence"], ""]
        lines += [f"  {name:<18}{value}" for name, value in self._rows()]
        stages = self._stage_rows()
        if stages:
            lines += ["", f"  {'in the loader':<34}{'ms/sample':>10}{'share':>8}"]
            lines += [f"  {tag + ' ' + name:<34}{cost:>10}{share:>8}" for tag, name, cost, share in stages]
        return "\n".join(lines + [f"  note: {note}" for note in self.figures["notes"]])

    def _repr_html_(self) -> str:
        if "stages" not in self.figures:
            return _html.block(_html.paragraph(self.figures["sentence"])
                               + _html.table(["part", "samples/s", ""], self._spec_rows()))
        text = _html.paragraph(self.figures["sentence"]) + _html.table([], self._rows())
        stages = self._stage_rows()
        if stages:
            text += _html.table(["tag", "part", "ms/sample", "share"], stages)
        return _html.block(text + "".join(_html.paragraph(note) for note in self.figures["notes"]))
