"""What a perfect loader would bring: some batches are kept and given to the step again, without any waiting.

Also keeps a program as it was: a step that is profiled trains its model, and loops draw random numbers. What is known
to have changed is put back.
"""
from __future__ import annotations

import copy
import functools
import sys
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np

from ._batch import Batch
from ._spans import now
from ._view import Epochs

_MOST_DEPTH = 8
_MOST_HELD = 1000  # entries of a container that is searched for models; larger ones hold data


def _arrays(value: Any, depth: int = 0) -> Iterator[Any]:
    """The arrays and tensors in a batch of any form."""
    if depth > _MOST_DEPTH:
        return
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "element_size") or hasattr(value, "nbytes"):
        yield value
    elif hasattr(value, "keys") and hasattr(value, "values"):
        for one in value.values():
            yield from _arrays(one, depth + 1)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _arrays(one, depth + 1)
    elif hasattr(value, "values") and hasattr(value, "offsets"):  # ragged
        yield value.values


def _bytes_of(batch: Any) -> int:
    total = 0
    for one in _arrays(batch):
        size = getattr(one, "nbytes", None)
        if size is None and hasattr(one, "numel"):
            size = one.numel() * one.element_size()
        total += int(size or 0)
    return total


def _pinned_memo(batch: Any) -> Dict[int, Any]:
    """For deepcopy: copies of pinned tensors that are pinned, too; others would be slower to copy to the device."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return {}
    return {id(one): one.clone().pin_memory() for one in _arrays(batch)
            if isinstance(one, torch.Tensor) and not one.is_cuda and one.is_pinned()}


class Kept:
    """A batch as the loader gave it. `fresh` returns it unchanged, however often the step changes what it got."""

    def __init__(self, batch: Any) -> None:
        self.bytes, self.copied = _bytes_of(batch), True
        self._fields: Optional[Dict[str, Any]] = None
        if isinstance(batch, Batch):  # holds the engine's memory, so its contents are written back instead
            self._batch, self._fields = batch, batch.copy()
            return
        try:
            self._batch = copy.deepcopy(batch, _pinned_memo(batch))
        except Exception:  # a class that cannot be copied
            self._batch, self.copied = batch, False

    def fresh(self) -> Any:
        if self._fields is not None:
            for name, saved in self._fields.items():
                if name in self._batch:
                    here = self._batch[name]
                    np.copyto(*((here.values, saved.values) if hasattr(saved, "offsets") else (here, saved)))
            return self._batch
        return copy.deepcopy(self._batch, _pinned_memo(self._batch)) if self.copied else self._batch


class Keeper:
    """The first batches of a loop, up to a number and a size."""

    def __init__(self, count: int, memory: int) -> None:
        self.count, self.memory, self.kept, self.bytes = count, memory, [], 0  # type: int, int, List[Kept], int

    def wants(self, batch: Any) -> bool:
        if len(self.kept) >= self.count:
            return False
        return not self.kept or self.bytes + _bytes_of(batch) <= self.memory

    def keep(self, batch: Any) -> None:
        if not self.wants(batch):
            self.count = len(self.kept)  # later, smaller ones would not be typical
            return
        if isinstance(batch, Batch):
            self.count = min(self.count, 2)  # a feed that misses many of its batches makes copies
        kept = Kept(batch)
        self.kept.append(kept)
        self.bytes += kept.bytes


def replay(keeper: Keeper, cycle: Callable[[Any], None], rows: Callable[[Any], int], seconds: float,
           most: int, least: int = 6) -> Tuple[int, int, int]:
    """Give the kept batches to `cycle` again for about `seconds`, `most` times: (nanoseconds, batches, samples)."""
    total = batches = samples = 0
    cycle(keeper.kept[0].fresh())  # the first after a change of pace is not typical
    start = now()
    while batches < most and (  # copying takes time, too
            batches < least or (total < seconds * 1e9 and now() - start < 3e9 * seconds)):
        batch = keeper.kept[batches % len(keeper.kept)].fresh()
        samples += rows(batch)
        begin = now()
        cycle(batch)
        total += now() - begin
        batches += 1
    return total, batches, samples


# ---- the program as it was ----

def _stateful(value: Any) -> bool:
    return (not isinstance(value, type) and callable(getattr(value, "state_dict", None))
            and callable(getattr(value, "load_state_dict", None)))


def _inside(value: Any) -> List[Any]:
    """What a plain object or container holds. Modules and classes hold too much that the step does not use."""
    if isinstance(value, (list, tuple, dict)):
        return [] if len(value) > _MOST_HELD else list(value.values() if isinstance(value, dict) else value)
    if isinstance(value, (type, types.ModuleType)) or callable(value):
        return []
    return list(getattr(value, "__dict__", {}).values())


def _names(code: types.CodeType) -> Iterator[str]:
    """Names of globals, also those of functions, lambdas and comprehensions inside."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _reached_from(function: Any, depth: int = 0) -> Iterator[Any]:
    """Objects that a step uses: what it is bound to, its arguments, closure, defaults and globals."""
    if function is None or depth > 3:
        return
    if _stateful(function):
        yield function
        return
    if isinstance(function, functools.partial):
        for one in (function.func, *function.args, *function.keywords.values()):
            yield from _reached_from(one, depth + 1)
        return
    owner = getattr(function, "__self__", None)
    for one in [owner, *getattr(owner, "__dict__", {}).values()]:
        if _stateful(one):
            yield one
    code = getattr(function, "__code__", None)
    if code is None:
        call = getattr(type(function), "__call__", None)
        values = [*getattr(function, "__dict__", {}).values()]
        code, function = getattr(call, "__code__", None), call
        yield from (one for one in values if _stateful(one))
    if code is None:
        return
    for cell in getattr(function, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if _stateful(value):
            yield value
        elif callable(value) and hasattr(value, "__code__"):
            yield from _reached_from(value, depth + 1)
        else:
            yield from filter(_stateful, _inside(value))
    space = getattr(function, "__globals__", {})
    for name in _names(code):
        value = space.get(name)
        if _stateful(value):
            yield value
        elif hasattr(value, "__code__"):
            if depth < 1:
                yield from _reached_from(value, depth + 1)
        else:
            yield from filter(_stateful, _inside(value))


class Before:
    """The state of models, optimizers and random generators, to be restored."""

    def __init__(self, *functions: Any, also: Any = (), loader: Any = None) -> None:
        found: Dict[int, Any] = {}
        for function in functions:
            found.update((id(one), one) for one in _reached_from(function) if one is not loader)
        found.update((id(one), one) for one in also)
        self.objects = list(found.values())
        self._states = [copy.deepcopy(one.state_dict()) for one in self.objects]
        self._grads = [(parameter, None if parameter.grad is None else parameter.grad.clone())
                       for one in self.objects if callable(getattr(one, "parameters", None))
                       for parameter in one.parameters()]
        self._modes = [(module, module.training) for one in self.objects if callable(getattr(one, "modules", None))
                       for module in one.modules()]
        self._undo = self._randoms(loader)
        epochs = getattr(getattr(loader, "_reader", None), "epochs", None)
        if isinstance(epochs, Epochs):  # of leat.torch.DataLoader
            self._undo.append(epochs.saved())

    @staticmethod
    def _randoms(loader: Any) -> List[Callable[[], None]]:
        import random

        undo: List[Callable[[], None]] = [functools.partial(random.setstate, random.getstate()),
                                          functools.partial(np.random.set_state, np.random.get_state())]
        torch = sys.modules.get("torch")
        if torch is not None:
            undo.append(functools.partial(torch.set_rng_state, torch.get_rng_state()))
            if torch.cuda.is_initialized():
                undo.append(functools.partial(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
        batches = getattr(loader, "batch_sampler", None)
        for owner in (loader, getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None)):
            generator = getattr(owner, "generator", None)
            if generator is not None and hasattr(generator, "get_state") and hasattr(generator, "set_state"):
                undo.append(functools.partial(generator.set_state, generator.get_state()))
        return undo

    def restore(self) -> None:
        """Put everything back, even if some of it cannot be."""
        problem: Optional[Exception] = None
        for one, state in zip(self.objects, self._states):
            try:
                one.load_state_dict(state)
            except Exception as error:
                problem = problem or error
        for parameter, grad in self._grads:
            parameter.grad = grad
        for module, training in self._modes:
            module.training = training
        for undo in self._undo:
            undo()
        if problem is not None:
            raise problem
