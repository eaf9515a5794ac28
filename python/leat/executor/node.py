"""On a node: `leat exec`, kept running between tasks, so a short action does not wait for it to start."""
import atexit
import json
import os
import shutil
import subprocess
import threading
from typing import Callable, Dict, Optional, Tuple

import leat
from leat.executor import Settings

__all__ = ["Lost", "find_command", "run"]

_Child = subprocess.Popen[str]
_children: Dict[Tuple[str, str, int], _Child] = {}  # by store, build and thread
_lock = threading.Lock()


class Lost(RuntimeError):
    """`leat exec` ended in the middle of a task."""


def find_command(settings: Settings) -> str:
    """The command in the package, where the build has it, or in PATH."""
    packaged = os.path.join(os.path.dirname(leat.__file__), "leat")
    found = [path for path in (packaged, settings.leat, shutil.which("leat")) if path and os.access(path, os.X_OK)]
    if not found:
        raise FileNotFoundError(f"there is no command 'leat' on {os.uname().nodename}; install the wheel")
    return found[0]


def _start(settings: Settings) -> _Child:
    return subprocess.Popen([find_command(settings), "exec", "--store", settings.store, "--run", settings.run],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _child(settings: Settings) -> _Child:
    """The `leat exec` of this thread for this build. Those of builds that ended go."""
    key = (settings.store, settings.run, threading.get_ident())
    with _lock:
        for other in [one for one in _children if one[:2] != key[:2]]:
            _end(_children.pop(other))
        child = _children.get(key)
        if child is None or child.poll() is not None:
            child = _children[key] = _start(settings)
    return child


def _end(child: _Child) -> None:
    if child.stdin:
        child.stdin.close()
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()


@atexit.register
def _end_all() -> None:
    while _children:
        _end(_children.popitem()[1])


def _keep_progress(settings: Settings, task: int, line: str) -> None:
    path = settings.progress(task)
    new = path.with_name(path.name + ".new")
    try:
        new.write_text(line, encoding="utf-8")
        new.replace(path)
    except OSError:
        pass  # the build has ended


def run(settings: Settings, line: str, started: Optional[Callable[[_Child], None]] = None) -> str:
    """Runs a task; returns the line with its result, for `Link.result`."""
    child = _child(settings)
    assert child.stdin and child.stdout
    if started:
        started(child)
    try:
        child.stdin.write(line + "\n")
        child.stdin.flush()
    except OSError as error:
        raise Lost(f"'leat exec' ended: {error}") from error
    for answer in child.stdout:
        found = json.loads(answer)
        if "progress" not in found:
            return answer.rstrip("\n")
        _keep_progress(settings, found["id"], answer)
    raise Lost(f"'leat exec' ended with status {child.wait()} on {os.uname().nodename}")
