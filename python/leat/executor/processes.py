"""`--on processes://N`: N `leat exec` on this machine. For trying out what a cluster would do, and to copy from."""
import os
import queue
import signal
import subprocess
import threading
from typing import Dict, Optional, Set

from leat.executor import Link, Settings, Task, node, serve


class Processes:
    """A thread for each process."""

    def __init__(self, settings: Settings, link: Link) -> None:
        self._settings, self._link = settings, link
        self._tasks: "queue.Queue[Optional[Task]]" = queue.Queue()
        self._running: Dict[int, "subprocess.Popen[str]"] = {}
        self._cancelled: Set[int] = set()
        count = int(settings.address or len(os.sched_getaffinity(0)))
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()
        link.ready(count, 1)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            if task.id in self._cancelled:
                self._link.lost(task.id, "it was cancelled")
                continue
            try:
                self._link.result(task.id, self._run(task))
            except node.Lost as error:
                self._link.lost(task.id, str(error))
            finally:
                self._running.pop(task.id, None)

    def _run(self, task: Task) -> str:
        def started(child: "subprocess.Popen[str]") -> None:
            self._running[task.id] = child

        return node.run(self._settings, task.line, started)

    def submit(self, task: Task) -> None:
        self._tasks.put(task)

    def cancel(self, task: int) -> None:
        self._cancelled.add(task)
        if task in self._running:
            self._running[task].send_signal(signal.SIGTERM)

    def close(self) -> None:
        for task in list(self._running):
            self.cancel(task)
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()


if __name__ == "__main__":
    serve(Processes)
