"""`--on ray://HOST:PORT`, or `--on ray` for the cluster of RAY_ADDRESS or of the job this runs in."""
import logging
import shutil
import threading
from typing import Any, Dict

import ray

from leat.executor import Link, Settings, Task, serve, ship

_POLL_S = 0.2  # how soon a new task is waited for, if none ends before


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def _runner(settings: Settings) -> ship.Run:
    """For a node. Ray keeps its worker processes, and so the `leat exec` of each."""

    def find() -> str:
        import leat_package

        return str(list(leat_package.__path__)[0])

    return ship.runner(settings, find)


class Cluster:
    """A task of Ray for each action, with its CPUs and memory; a thread waits for them to end."""

    def __init__(self, settings: Settings, link: Link) -> None:
        self._link = link
        address = settings.address
        self._package = ship.pack()
        ray.init(address=f"ray://{address}" if address.endswith(":10001") else address or "auto", log_to_driver=False,
                 logging_level=logging.ERROR, runtime_env={"py_modules": [str(self._package)]})
        self._remote = ray.remote(max_retries=0, max_calls=0)(_runner(settings))
        self._tasks: Dict[Any, int] = {}
        self._refs: Dict[int, Any] = {}
        self._lock = threading.Lock()
        self._more = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()
        nodes = [one for one in ray.nodes() if one["Alive"]]
        link.ready(max(1, int(sum(one["Resources"].get("CPU", 0) for one in nodes))), len(nodes))

    def submit(self, task: Task) -> None:
        limits = {"memory": task.memory} if task.memory else {}
        ref = self._remote.options(num_cpus=task.cpus, **limits).remote(task.line)
        with self._lock:
            self._tasks[ref] = task.id
            self._refs[task.id] = ref
        self._more.set()

    def _wait(self) -> None:
        while not self._closed:
            with self._lock:
                pending = list(self._tasks)
            if not pending:
                self._more.wait()
                self._more.clear()
                continue
            done, _ = ray.wait(pending, num_returns=len(pending), timeout=0)
            if not done:
                done, _ = ray.wait(pending, num_returns=1, timeout=_POLL_S)
            for ref in done:
                self._finish(ref)

    def _finish(self, ref: Any) -> None:
        with self._lock:
            task = self._tasks.pop(ref)
            self._refs.pop(task, None)
        try:
            line, why = ray.get(ref)
            if line is None:
                self._link.lost(task, why)
            else:
                self._link.result(task, line)
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError,
                ray.exceptions.TaskCancelledError, ray.exceptions.ObjectLostError) as error:
            self._link.lost(task, _last_line(error))
        except Exception as error:  # pylint: disable=broad-except
            self._link.error(task, _last_line(error))

    def cancel(self, task: int) -> None:
        with self._lock:
            ref = self._refs.get(task)
        if ref is not None:
            ray.cancel(ref, force=True)

    def close(self) -> None:
        with self._lock:
            pending = list(self._refs)
        for task in pending:
            self.cancel(task)
        self._closed = True
        self._more.set()
        self._thread.join(5)
        ray.shutdown()
        shutil.rmtree(self._package.parent, ignore_errors=True)


if __name__ == "__main__":
    serve(Cluster)
