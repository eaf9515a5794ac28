"""How pipelines and feeds show themselves in a notebook: the ops from top to bottom, and the fields after each."""
from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from . import _html, _lib, _text

if TYPE_CHECKING:
    from ._feed import Feed
    from ._pipeline import Pipeline

_PATIENCE = 3.0  # seconds: data without an index may take long to look at


def _calls(pipeline: "Pipeline") -> List[str]:
    """The ops as the user wrote them, one by one."""
    calls: List[str] = []
    for call in pipeline._calls:
        calls += _text.split(call) if isinstance(call, str) else [repr(call)]
    return calls + [str(stage) for stage in pipeline._maps]


def _explained(pipeline: "Pipeline") -> Tuple[Optional[Dict[str, Any]], str]:
    """What `leat explain` says about a spec, or why it says nothing. Another process: it can be stopped."""
    command = _lib.command_path()
    if pipeline._functions() or command is None:
        return None, ""
    files = [file for call in pipeline._calls for file in getattr(call, "_files", ())]
    try:
        done = subprocess.run([command, "explain", "--json", pipeline.spec], pass_fds=files, timeout=_PATIENCE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            return None, done.stderr.decode(errors="replace").strip()
        return json.loads(done.stdout), ""
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None, ""


def _fields(stage: Dict[str, Any]) -> str:
    """The fields after a stage, one per line."""
    lines = []
    for field in stage.get("fields") or ():
        shape = ", ".join("?" if size is None else str(size) for size in field["shape"])
        lines.append(f"{field['name']}: {field['dtype']}[{shape}]")
    return "\n".join(lines)


def _after(calls: List[str], explained: Dict[str, Any]) -> List[str]:
    """What to show beside each op: the fields after the source and after each stage, and the batches."""
    beside, at = [""] * len(calls), 0
    names = [_text.op_name(call) for call in calls]
    beside[0] = _fields(explained["source"])
    for stage in explained["stages"]:
        for op in [op for one in stage["passes"] for op in one["ops"]]:
            at = names.index(op, at + 1) if op in names[at + 1:] else at
        beside[at] = _fields(stage) if at else beside[0]
    epoch = explained.get("epoch") or {}
    if "batch" in names and epoch.get("batches") is not None:
        beside[names.index("batch")] = f"{epoch['batches']:,} batches of {epoch['batch_size']:,}"
    return beside


def pipeline(given: "Pipeline") -> str:
    calls = _calls(given)
    explained, problem = _explained(given)
    try:
        return _html.pipeline(calls, _after(calls, explained) if explained else None, problem)
    except (KeyError, TypeError):  # a command of another version
        return _html.pipeline(calls)


def feed(given: "Feed") -> str:
    calls = _calls(given.pipeline)
    last = _html.fields(given.fields)
    stages = [""] * (len(calls) - 1) + [last]
    state = "closed" if given.closed else f"{len(given)} batches of {given.batch_size} samples, seed {given.seed}"
    return _html.pipeline(calls, stages, state)
