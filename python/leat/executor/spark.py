"""`--on spark://HOST:PORT`, or `--on spark` for the master in Spark's own configuration (spark-defaults, YARN, Kubernetes).

Each job of Spark carries several actions if they are short: a job costs Spark some ten milliseconds. `SPARK_CONF_DIR` and
`PYSPARK_SUBMIT_ARGS` are respected. An action with several CPUs takes one slot of Spark; the build counts its CPUs.
"""
import json
import shutil
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from pyspark import SparkConf, SparkContext

from leat.executor import Link, Settings, Task, serve, ship

_JOB_S = 1.0  # a job should take about as long
_Answer = Tuple[int, Optional[str], str]  # id, result, why there is none


def _runner(settings: Settings) -> Callable[[Iterable[Tuple[int, str]]], Iterator[_Answer]]:
    """For a node: runs the tasks of a partition."""

    def find() -> str:
        from pyspark import SparkFiles

        return SparkFiles.get("leat_package") + "/leat_package"

    run = ship.runner(settings, find)
    return lambda tasks: ((task, *run(line)) for task, line in tasks)


class Cluster:
    """A thread per slot of Spark, each with one job at a time."""

    def __init__(self, settings: Settings, link: Link) -> None:
        self._link = link
        conf = SparkConf().setAppName(f"leat build {settings.run}").set("spark.ui.showConsoleProgress", "false")
        if settings.address:
            conf.setMaster(settings.address if "[" in settings.address else f"spark://{settings.address}")
        self._context = SparkContext(conf=conf)
        self._context.setLogLevel("ERROR")
        package = ship.pack()
        archive = shutil.make_archive(str(package), "gztar", package.parent, ship.NAME)
        self._context.addArchive(f"{archive}#{ship.NAME}")
        self._folder = package.parent
        self._run = _runner(settings)
        self._slots = self._context.defaultParallelism
        self._queue: List[Task] = []
        self._running: Dict[int, str] = {}
        self._cancelled: Set[int] = set()
        self._seconds = _JOB_S  # of an action, lately
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [threading.Thread(target=self._work, args=(i,), daemon=True) for i in range(self._slots)]
        for thread in self._threads:
            thread.start()
        link.ready(self._slots, max(1, self._slots))

    def submit(self, task: Task) -> None:
        with self._changed:
            self._queue.append(task)
            self._changed.notify()

    def _take(self) -> List[Task]:
        """As many tasks as take a second, and no more than leaves work for the others."""
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            fair = -(-len(self._queue) // (2 * self._slots))
            count = max(1, min(fair, int(_JOB_S / max(self._seconds, 1e-3))))
            tasks, self._queue = self._queue[:count], self._queue[count:]
            return tasks

    def _work(self, number: int) -> None:
        while tasks := self._take():
            self._run_job(f"leat-{number}-{tasks[0].id}", tasks)

    def _run_job(self, group: str, tasks: List[Task]) -> None:
        wanted = {task.id for task in tasks}
        self._running.update(dict.fromkeys(wanted, group))
        try:
            self._context.setJobGroup(group, "actions of leat build", interruptOnCancel=True)
            lines = [(task.id, task.line) for task in tasks]
            for task, line, why in self._context.parallelize(lines, 1).mapPartitions(self._run).collect():
                wanted.discard(task)
                self._answer(task, line, why)
        except Exception as error:  # pylint: disable=broad-except
            why = (str(error).strip().splitlines() or [type(error).__name__])[0]
            fatal = "ModuleNotFoundError" in str(error) or "FileNotFoundError" in str(error)
            for task in wanted:
                (self._link.error if fatal else self._link.lost)(task, why)
        finally:
            for one in tasks:
                self._running.pop(one.id, None)

    def _answer(self, task: int, line: Optional[str], why: str) -> None:
        if line is None:
            self._link.lost(task, why)
            return
        seconds = json.loads(line).get("result", {}).get("seconds", _JOB_S)
        self._seconds += (seconds - self._seconds) / 4
        self._link.result(task, line)

    def cancel(self, task: int) -> None:
        with self._changed:
            waiting = [one for one in self._queue if one.id == task]
            self._queue = [one for one in self._queue if one.id != task]
        if waiting:
            self._link.lost(task, "it was cancelled")
        elif task in self._running:
            self._context.cancelJobGroup(self._running[task])

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._queue = []
            self._changed.notify_all()
        for group in set(self._running.values()):
            self._context.cancelJobGroup(group)
        self._context.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


if __name__ == "__main__":
    serve(Cluster)
