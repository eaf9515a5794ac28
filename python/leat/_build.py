"""`leat.build`: runs `leat build` and returns what it did.

The command runs in another process, so a crash of either side leaves the store as after any other build.
"""
from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterable, Iterator, List, Optional, Union

from . import _html, _lib
from .errors import BuildError, InternalError, InvalidError, SpecError

_PAUSE = 0.2  # seconds between two pictures of progress
_USAGE = 2  # exit status of the command if its arguments or leat.yaml are wrong
_COUNTS = ("actions", "cached", "ran", "same", "failed", "skipped")


@dataclass
class StepCounts:
    """Actions of one step."""

    actions: int = 0
    cached: int = 0  #: made before
    ran: int = 0  #: run, with another output than last time, or for the first time
    same: int = 0  #: run, with the same output as last time
    failed: int = 0
    skipped: int = 0  #: not run, because an input failed
    running: int = 0
    seconds: float = 0.0  #: sum over the actions that ran

    @property
    def done(self) -> int:
        return self.cached + self.ran + self.same


@dataclass
class Failure:
    """An action that failed. `why` is a sentence."""

    id: str
    step: str
    slice: str
    why: str


@dataclass
class Build:
    """What a build did. `str(build)` is a sentence; in a notebook it is a table."""

    folder: Path  #: of leat.yaml
    run: str = ""  #: name of the run, for `leat diff`
    steps: Dict[str, StepCounts] = field(default_factory=dict)
    failures: List[Failure] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)
    seconds: float = 0.0
    saved_s: float = 0.0  #: what the cached actions took when they ran

    def _sum(self, name: str) -> int:
        return sum(getattr(counts, name) for counts in self.steps.values())

    @property
    def actions(self) -> int:
        return self._sum("actions")

    @property
    def cached(self) -> int:
        return self._sum("cached")

    @property
    def ran(self) -> int:
        return self._sum("ran")

    @property
    def same(self) -> int:
        return self._sum("same")

    @property
    def failed(self) -> int:
        return self._sum("failed")

    @property
    def skipped(self) -> int:
        return self._sum("skipped")

    def path(self, step: str) -> Path:
        """Where the result of a step is: out/STEP, with its suffix if it has one."""
        if step not in self.steps:
            raise InvalidError(f"there is no step '{step}' in this build; it has {', '.join(self.steps) or 'none'}")
        for path in (self.folder / "out" / step, *sorted((self.folder / "out").glob(f"{step}.*"))):
            if path.exists():
                return path
        raise InvalidError(f"step '{step}' has no result below {self.folder / 'out'}; build it first")

    def __str__(self) -> str:
        parts = [f"{self._sum(name):,} {text}" for name, text in (
            ("ran", "ran"), ("same", "ran with the same result"), ("cached", "cached"), ("failed", "failed"),
            ("skipped", "skipped")) if self._sum(name)]
        saved = f"; reuse saved {_duration(self.saved_s)}" if self.saved_s >= 1 else ""
        return f"{', '.join(parts) or 'nothing to do'} in {_duration(self.seconds)}{saved}"

    def _repr_html_(self) -> str:
        rows = [[name, *(f"{getattr(counts, key):,}" for key in _COUNTS), _duration(counts.seconds)]
                for name, counts in self.steps.items()]
        text = "".join(_html.paragraph(f"{one.id or one.step}: {one.why}") for one in self.failures)
        return _html.block(_html.table(["step", *_COUNTS, "time"], rows) + _html.paragraph(str(self)) + text)

    def _add(self, event: Dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "begin":
            self.run = event.get("run", "")
            self.steps = {one["step"]: StepCounts() for one in event["steps"]}
        elif kind == "end":
            self.seconds, self.saved_s = event.get("seconds", 0.0), event.get("saved_s", 0.0)
            self.steps = {name: counts for name, counts in self.steps.items() if counts.actions}
        elif kind == "warning":
            self.warnings.append(event.get("why", ""))
        elif event.get("step"):
            self._count(kind or "", event)

    def _count(self, kind: str, event: Dict[str, Any]) -> None:
        counts = self.steps.setdefault(event["step"], StepCounts())
        if kind == "start":
            counts.running += 1
        elif kind in ("ran", "same", "failed"):
            counts.running = max(0, counts.running - 1)
            counts.seconds += event.get("seconds") or 0.0
        if kind in _COUNTS:
            setattr(counts, kind, getattr(counts, kind) + event.get("count", 1))
        # What is planned may turn out to be there after all, once its inputs are made.
        planned = event.get("count", 1) if kind == "planned" else 0
        counts.actions = max(counts.actions, counts.done + counts.failed + counts.skipped + planned)
        if kind == "failed":
            self.failures.append(Failure(*(event.get(key) or "" for key in ("id", "step", "slice", "why"))))


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


# ---- progress ----

def _line(build: Build) -> str:
    parts = [f"{name} {counts.done:,}/{counts.actions:,}" for name, counts in build.steps.items()
             if counts.running or 0 < counts.done < counts.actions]
    failed = f", {build.failed:,} failed" if build.failed else ""
    return ", ".join(parts) + failed


class _Terminal:
    """One line that is written again and again."""

    def __call__(self, build: Build) -> None:
        print(f"\r\033[K{_line(build)[:100]}", end="", file=sys.stderr, flush=True)

    def close(self, build: Build) -> None:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


class _Notebook:
    """The table of the result, shown while it grows."""

    def __init__(self, display: Any) -> None:
        self._display, self._handle = display, None

    def __call__(self, build: Build) -> None:
        if self._handle is None:
            self._handle = self._display(build, display_id=True)
        elif self._handle is not None:
            self._handle.update(build)

    def close(self, build: Build) -> None:
        if self._handle is not None:
            self._handle.update(build)


def _shown() -> Optional[Union[_Terminal, _Notebook]]:
    """How to show progress here; None: not at all."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and getattr(shell, "kernel", None) is not None:
        from importlib import import_module

        return _Notebook(import_module("IPython.display").display)
    return _Terminal() if sys.stderr is not None and sys.stderr.isatty() else None


# ---- the command ----

def _lines(process: "subprocess.Popen[bytes]") -> Iterator[Dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        try:
            event = json.loads(line)
        except ValueError:
            raise InternalError(f"'leat build' printed '{line[:80].decode(errors='replace').strip()}', which is not an "
                                "event; is it of the version of this package?") from None
        yield event


@contextlib.contextmanager
def _running(command: List[str], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The command, which is interrupted if the block ends early, and again with each further interrupt: after the first it
    finishes the actions that run, after the second it kills them.

    Its session is another one, so that ^C on a terminal reaches it once, from here."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True, cwd=folder)
    try:
        yield process
        process.wait()
    except BaseException:
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(KeyboardInterrupt):
                _drain(process)
        raise


def _drain(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdout is not None
    with contextlib.suppress(ValueError):  # closed
        for _ in process.stdout:
            pass
    process.wait()


class _Errors(threading.Thread):
    """Collects what the command writes to stderr, so that it never waits for us."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(name="leat build errors", daemon=True)
        self._stream, self._lines = stream, []  # type: ignore[var-annotated]
        self.start()

    def run(self) -> None:
        for line in self._stream:
            self._lines = (self._lines + [line.decode(errors="replace").rstrip("\n")])[-50:]

    def sentence(self) -> str:
        """The last error with the lines that follow it."""
        self.join()
        begins = [i for i, line in enumerate(self._lines) if line.startswith("leat build: ")]
        text = "\n".join(self._lines[begins[-1]:] if begins else self._lines)
        return text[len("leat build: "):] if begins else text.strip()


def _arguments(file: Path, targets: Iterable[str], jobs: Optional[int], flags: Dict[str, bool]) -> List[str]:
    command = _lib.command_path()
    if command is None:
        raise BuildError(f"there is no leat command next to the library {_lib.library_path()}")
    if jobs is not None and jobs < 1:
        raise InvalidError(f"jobs={jobs} has to be at least 1")
    named = [] if jobs is None else [f"--jobs={jobs}"]
    chosen = [flag for flag, on in flags.items() if on]
    return [command, "build", f"--project={file}", "--json", *named, *chosen, "--", *targets]


def build(file: Union[str, "os.PathLike[str]"] = "leat.yaml", targets: Union[str, Iterable[str]] = (), *,
          jobs: Optional[int] = None, keep_going: bool = False, again: bool = False, dry_run: bool = False,
          progress: Union[None, bool, Callable[[Dict[str, Any]], None]] = None) -> Build:
    """Run what changed in the steps of a leat.yaml, and return what was done.

    file: leat.yaml, or the folder it is in.
    targets: steps such as "decode", or slices such as "decode:subject=3,bin=7"; none: all steps.
    jobs: CPUs to use at a time; all by default.
    keep_going: after a failure, run what does not depend on it.
    again: run the targets although they were made before, and compare.
    dry_run: only plan.
    progress: False shows none; a function is called with each event, a dict as in the run's log.

    Raises `leat.SpecError` if leat.yaml or a target is wrong, and `leat.BuildError` if a step fails.
    """
    path = Path(file).expanduser().absolute()
    folder = path if path.is_dir() else path.parent
    names = [targets] if isinstance(targets, str) else list(targets)
    flags = {"--keep-going": keep_going, "--again": again, "--dry-run": dry_run}
    arguments = _arguments(path, names, jobs, flags)
    result, began, shown = Build(folder), time.monotonic(), _shown() if progress in (None, True) else None
    last = began
    with _running(arguments, folder if folder.is_dir() else Path.cwd()) as process:
        errors = _Errors(process.stderr)  # type: ignore[arg-type]
        for event in _lines(process):
            result._add(event)
            if callable(progress):
                progress(event)
            if shown is not None and time.monotonic() - last > _PAUSE:
                shown(result)
                last = time.monotonic()
    if shown is not None:
        shown.close(result)
    if not result.seconds:
        result.seconds = time.monotonic() - began
    _check(process.returncode, errors.sentence(), result)
    return result


def _check(status: int, sentence: str, result: Build) -> None:
    if status == _USAGE:
        raise SpecError(sentence)
    if status < 0:
        raise BuildError(f"'leat build' was ended by {signal.Signals(-status).name}; what it finished is kept", result)
    if status:
        raise BuildError(sentence or f"'leat build' exited with {status}", result)
