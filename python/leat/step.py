"""What a step's program needs to know, and what it reports.

    from leat import step

    epochs = np.load(step.inputs["epochs"], mmap_mode="r")
    folds = step.params.int("folds", 10)
    order = step.rng().permutation(len(epochs))
    for fold in step.track(range(folds), "fold"):
        ...
    step.metrics(accuracy=0.61)
    np.save(step.out, result)

`leat build` describes the action in a file, whose path is in LEAT_STEP. Without it, as in a debugger or a notebook,
values come from `step.defaults(...)` and from environment variables with the same names, which is how `leat build`
passes them to a shell command:

    epochs=raw/subject-1.npy bin=3 out=/tmp/bin3.npy python decode.py
"""
from __future__ import annotations

import difflib
import hashlib
import json
import math
import os
import sys
import threading
import time
from pathlib import Path
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple,
                    TypeVar)

from .errors import DataError, InvalidError

if TYPE_CHECKING:
    import numpy as np

_T = TypeVar("_T")
_Int = int  # Values has methods with the names of these types
_Float = float
_Bool = bool
_PAUSE = 0.1  # seconds between two reports of progress
_MOST_TEXT = 200  # characters of a report

# Set by __getattr__ when first used, so importing this module reads nothing.
name: str  #: of the step; "" outside of a build
inputs: "Inputs"  #: paths by the names in `in:`
out: Path  #: where to make the result, a file or a folder; it does not exist yet
params: "Values"  #: the step's `params:`
slice: "Values"  #: values of the slice's variables
seed: int  #: random seed of the step; most programs want `rng()`
cpus: int  #: CPUs this action may use
feed: str  #: the spec of `feed:`, for `leat.feed(step.feed)`; "" if there is none
checkpoint: Optional[Path]  #: folder that survives a retry; None without `resume: true`
in_build: bool  #: was this program started by `leat build`?


class MissingError(InvalidError, KeyError):
    """A name that the step does not have."""

    __str__ = Exception.__str__  # KeyError would quote the sentence


class Slice(NamedTuple):
    """One slice of an input: its values, and its file or folder."""

    slice: "Values"
    path: Path


class _Action:
    """The description in LEAT_STEP, or what stands in for it outside of a build."""

    def __init__(self) -> None:
        self.file = os.environ.get("LEAT_STEP", "")
        self.known: Dict[str, Any] = {}
        self.defaults: Dict[str, str] = {}
        self.metrics: Dict[str, Any] = {}
        self.lock = threading.Lock()  # guards metrics and reported
        self.reported = -math.inf
        if self.file:
            try:
                with open(self.file, encoding="utf-8") as file:
                    self.known = json.load(file)
            except (OSError, ValueError) as why:
                raise DataError(f"leat.step can't read the action's description LEAT_STEP={self.file}: {why}; unset "
                                "LEAT_STEP to run this program outside of a build") from None

    def outside(self, name: str) -> Optional[str]:
        """The value of a name outside of a build."""
        return self.defaults.get(name, os.environ.get(name))

    @property
    def title(self) -> str:
        return f"step '{self.known.get('step', '')}'" if self.file else "this program"


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; there {'is' if len(names) == 1 else 'are'} {', '.join(names)}" if names else ""


def _missing(what: str, name: str, known: Iterable[str]) -> MissingError:
    action = _now()
    if action.file:
        where = {"input": "'in:'", "param": "'params:'", "variable": "'slices:'"}[what]
        return MissingError(f"{action.title} has no {what} '{name}' in {where} of leat.yaml{_nearest(name, known)}")
    return MissingError(f"{what} '{name}' has no value, because this program was not started by 'leat build'; call "
                        f"step.defaults({name}=...) or set the environment variable {name}")


class _Named(Mapping[str, _T]):
    """Names with values. In a build those of the action; outside, whatever defaults and the environment have."""

    def __init__(self, what: str, values: Mapping[str, Any], convert: Callable[[str], _T]) -> None:
        self._what, self._values, self._convert = what, values, convert

    def _find(self, name: str) -> Optional[str]:
        if name in self._values:
            return str(self._values[name])
        return None if _now().file else _now().outside(name)

    def __getitem__(self, name: str) -> _T:
        value = self._find(name)
        if value is None:
            raise _missing(self._what, name, self)
        return self._convert(value)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"


class Inputs(_Named[Path]):
    """Paths of inputs by name: a file, or a folder with one entry per slice or file."""

    def __init__(self, values: Mapping[str, Any], slices: Mapping[str, Any]) -> None:
        super().__init__("input", values, Path)
        self._slices = slices

    def slices(self, name: str) -> List[Slice]:
        """The entries of an input that comes from several slices, in order; each with its values and its path."""
        path = self[name]
        if name in self._slices:
            return [Slice(Values("variable", one["slice"]), path / one["entry"]) for one in self._slices[name]]
        if not path.is_dir():
            raise InvalidError(f"input '{name}' of {_now().title} is the file {path}, not a folder of slices")
        return [Slice(Values("variable", {}), entry) for entry in sorted(path.iterdir(), key=_natural)]


def _natural(path: Path) -> List[Tuple[bool, int, str]]:
    """Sorts 2,9 before 2,10 and 10,1."""
    import re

    parts = re.split(r"(\d+)", path.name)
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


_BOOLS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _bool(text: str) -> bool:
    return _BOOLS[text.strip().lower()]


class Values(_Named[str]):
    """Texts by name. The methods read them as another type, or give the default if there is no such name."""

    def __init__(self, what: str, values: Mapping[str, Any]) -> None:
        super().__init__(what, values, str)

    def _read(self, name: str, default: Optional[_T], kind: str, read: Callable[[str], _T]) -> _T:
        if default is not None and name not in self:
            return default
        text = self[name]
        try:
            return read(text)
        except (ValueError, KeyError):
            raise InvalidError(f"{self._what} '{name}' of {_now().title} is '{text}', which is not {kind}") from None

    def text(self, name: str, default: Optional[str] = None) -> str:
        return self._read(name, default, "a text", str)

    def int(self, name: str, default: Optional[_Int] = None) -> _Int:
        return self._read(name, default, "an integer", int)

    def float(self, name: str, default: Optional[_Float] = None) -> _Float:
        return self._read(name, default, "a number", float)

    def bool(self, name: str, default: Optional[_Bool] = None) -> _Bool:
        return self._read(name, default, "true or false", _bool)

    def texts(self, name: str, default: Optional[List[str]] = None) -> List[str]:
        """A list, separated by commas or white space."""
        return self._read(name, default, "a list of texts", _split)

    def ints(self, name: str, default: Optional[List[_Int]] = None) -> List[_Int]:
        """A list of integers, separated by commas or white space."""
        return self._read(name, default, "a list of integers", lambda text: [int(one) for one in _split(text)])

    def floats(self, name: str, default: Optional[List[_Float]] = None) -> List[_Float]:
        """A list of numbers, separated by commas or white space."""
        return self._read(name, default, "a list of numbers", lambda text: [float(one) for one in _split(text)])


def _split(text: str) -> List[str]:
    return text.replace(",", " ").split()


def _out() -> Path:
    action = _now()
    path = action.known.get("out") or (None if action.file else action.outside("out"))
    if not path:
        raise MissingError("there is no path for the result, because this program was not started by 'leat build'; "
                           "call step.defaults(out=...) or set the environment variable out")
    return Path(path)


def _number(name: str, otherwise: int) -> int:
    action = _now()
    text = action.known.get(name) if action.file else action.outside(name)
    if text is None:
        return otherwise
    try:
        return int(text)
    except ValueError:
        raise InvalidError(f"{name} of {action.title} is '{text}', which is not an integer") from None


def _text(name: str) -> str:
    action = _now()
    return str((action.known.get(name) if action.file else action.outside(name)) or "")


def _values(what: str, key: str) -> Values:
    return Values(what, _now().known.get(key) or {})


_getters: Dict[str, Callable[[], Any]] = {
    "name": lambda: str(_now().known.get("step", "")),
    "inputs": lambda: Inputs(_now().known.get("inputs") or {}, _now().known.get("input_slices") or {}),
    "out": _out,
    "params": lambda: _values("param", "params"),
    "slice": lambda: _values("variable", "slice"),
    "seed": lambda: _number("seed", 0),
    "cpus": lambda: _number("cpus", len(os.sched_getaffinity(0))),
    "feed": lambda: _text("feed"),
    "checkpoint": lambda: Path(_text("checkpoint")) if _text("checkpoint") else None,
    "in_build": lambda: bool(_now().file),
}
_action: Optional[_Action] = None


def _now() -> _Action:
    """Read once, and again if a test or a notebook sets LEAT_STEP to another file."""
    global _action
    if _action is None or _action.file != os.environ.get("LEAT_STEP", ""):
        _action = _Action()
    return _action


def __getattr__(name: str) -> Any:
    if name not in _getters:
        raise AttributeError(f"module 'leat.step' has no attribute '{name}'")
    return _getters[name]()


def __dir__() -> List[str]:
    return sorted(__all__)


def defaults(slice: Optional[Mapping[str, Any]] = None, **values: Any) -> None:
    """Give values to inputs, params, out, seed and cpus for runs outside of a build; `slice` to the slice's variables.

    In a build this does nothing, so the line can stay in the program."""
    action = _now()
    if action.file:
        return
    if slice is not None:
        action.known["slice"] = {name: str(value) for name, value in slice.items()}
    action.defaults.update({name: _as_text(value) for name, value in values.items()})


def _as_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def rng(stream: str = "") -> "np.random.Generator":
    """A random generator with the step's seed. Each slice and each `stream` has other numbers; every run has the same.

    Two calls with one stream return the same numbers again: keep the generator. Outside of a build, pass the slice's
    variables to `defaults(slice=...)` to get the numbers of that slice: nothing says which environment variables are
    its variables."""
    import numpy as np

    values = sorted((_now().known.get("slice") or {}).items())  # not the step's name: it is not in the action's key
    words = np.frombuffer(hashlib.sha256(json.dumps([stream, values]).encode()).digest(), "<u4")
    return np.random.default_rng(np.random.SeedSequence(_number("seed", 0), spawn_key=tuple(map(int, words))))


def _replace(path: str, value: Any) -> None:
    """Write a JSON file that readers see as a whole, old or new."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(value, file, allow_nan=False)
        file.write("\n")
    os.replace(path + ".new", path)


def progress(done: float, total: Optional[float] = None, text: str = "") -> None:
    """Say how far the program is, which a running build shows. Cheap enough for every iteration."""
    action = _now()
    now = time.monotonic()
    with action.lock:
        if now - action.reported < _PAUSE and done != total:
            return
        action.reported = now
        path = action.known.get("progress")
        report: Dict[str, Any] = {"done": done, "total": total, "text": text[:_MOST_TEXT]}
        if path:
            _replace(path, {key: value for key, value in report.items() if value not in (None, "")})
        elif not action.file and sys.stderr.isatty():
            of = "" if total is None else f" of {total:g}"
            print(f"\r\033[K{text + ': ' if text else ''}{done:g}{of}", end="\n" if done == total else "",
                  file=sys.stderr, flush=True)


def track(items: Iterable[_T], text: str = "") -> Iterator[_T]:
    """Iterate over items and report progress."""
    total = len(items) if hasattr(items, "__len__") else None  # type: ignore[arg-type]
    done = 0
    for item in items:
        progress(done, total, text)
        yield item
        done += 1
    progress(done, done, text)


def _metric(name: str, value: Any) -> Any:
    """A value as JSON has it. NaN and infinity have no number there."""
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        try:
            value = value.item()  # scalars of NumPy and the frameworks
        except (TypeError, ValueError, RuntimeError):
            raise InvalidError(f"metric '{name}' has to be a number, a text or a bool, not an array") from None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (bool, int, float, str)):
        return value
    raise InvalidError(f"metric '{name}' has to be a number, a text or a bool, not {type(value).__name__}")


def metrics(given: Optional[Mapping[str, Any]] = None, **values: Any) -> None:
    """Report results, such as `step.metrics(accuracy=0.61)`: the board and `leat diff` compare them between runs.

    Later calls add to earlier ones. Outside of a build they are printed."""
    action = _now()
    new = {name: _metric(name, value) for name, value in {**(given or {}), **values}.items()}
    with action.lock:
        action.metrics.update(new)
        path = action.known.get("metrics")
        if path:
            _replace(path, action.metrics)
        elif not action.file:
            print(" ".join(f"{name}={value}" for name, value in new.items()), file=sys.stderr)


__all__ = [*_getters, "Inputs", "MissingError", "Slice", "Values", "defaults", "metrics", "progress", "rng", "track"]
