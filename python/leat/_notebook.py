"""How pipelines and feeds show themselves in a notebook: the ops from top to bottom, and the fields after each."""
from __future__ import annotations

import json
import os
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
    command = os.path.join(os.path.dirname(_lib.library_path()), "leat")
    if pipeline._functions() or not os.access(command, os.X_OK):
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
        shape = ", ".join("?" if size is None or size < 0 else str(size) for size in field.get("shape", ()))
        lines.append(f"{field.get('name')}: {field.get('type') or field.get('dtype')}[{shape}]")
    return "\n".join(lines)


def pipeline(given: "Pipeline") -> str:
    explained, problem = _explained(given)
    stages = [_fields(stage) for stage in explained.get("stages", ())] if explained else None
    return _html.pipeline(_calls(given), stages, problem)


def feed(given: "Feed") -> str:
    calls = _calls(given.pipeline)
    last = _html.fields(given.fields)
    stages = [""] * (len(calls) - 1) + [last]
    state = "closed" if given.closed else f"{len(given)} batches of {given.batch_size} samples, seed {given.seed}"
    return _html.pipeline(calls, stages, state)
