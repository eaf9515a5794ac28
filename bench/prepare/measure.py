"""Run a command and measure everything it starts: seconds, processor time and memory of all its processes."""
import ctypes
import os
import pathlib
import resource
import signal
import subprocess
import threading
import time

PATIENCE = 3600  # seconds: whoever is not done by then is ended
PAUSE = 0.05  # seconds between two looks at memory
PR_SET_CHILD_SUBREAPER = 36


def adopt():
    """Processes that outlive their parent become children of this one, so that their time is counted, too."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid):
    for tasks in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from map(int, tasks.read_text().split())
        except OSError:
            pass  # the task has ended


def descendants(pid):
    for child in children(pid):
        yield child
        yield from descendants(child)


def resident(pid):
    """Bytes in memory; of what several processes share, a part."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


def cpu_seconds(pid):
    """Processor time of a process and of those below it, as far as they run still."""
    ticks = 0
    for one in [pid, *descendants(pid)]:
        try:
            ticks += sum(map(int, pathlib.Path(f"/proc/{one}/stat").read_text().rsplit(") ", 1)[1].split()[11:15]))
        except OSError:
            pass  # it has ended
    return ticks / os.sysconf("SC_CLK_TCK")


class Watch(threading.Thread):
    """Looks at the memory of all children until it is stopped. Beyond a limit, they are killed."""

    def __init__(self, limit=None):
        super().__init__(daemon=True)
        self.peak, self.limit, self.done = 0, limit, threading.Event()

    def run(self):
        while not self.done.wait(PAUSE):
            children = list(descendants(os.getpid()))
            self.peak = max(self.peak, sum(map(resident, children)))
            if self.exceeded():
                for child in children:
                    try:
                        os.kill(child, signal.SIGKILL)
                    except ProcessLookupError:
                        pass

    def exceeded(self):
        return self.limit is not None and self.peak > self.limit

    def stop(self):
        self.done.set()
        self.join()
        return self.peak


def reap():
    """Waits for processes that the command left; returns when there are none."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def run(command, folder, log, limit=None, **more):
    """{wall, cpu, memory}. Nothing else may be running below this process. RuntimeError: it failed, or needed more bytes of
    memory than `limit`."""
    before, watch = resource.getrusage(resource.RUSAGE_CHILDREN), Watch(limit)
    watch.start()
    begin = time.perf_counter()
    try:
        with open(log, "wb") as out:
            done = subprocess.run([str(word) for word in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT, timeout=PATIENCE, env={**os.environ, **more})
        wall = time.perf_counter() - begin
        reap()
    finally:
        memory = watch.stop()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if watch.exceeded():
        raise RuntimeError(f"killed after {wall:.0f} s, when it had {watch.peak / 1e9:.1f} GB")
    if done.returncode:
        lines = pathlib.Path(log).read_text(errors="replace").strip().splitlines()
        raise RuntimeError(f"it failed; its last line is '{lines[-1] if lines else ''}', and {log} has all of them")
    return {"wall": wall, "memory": memory, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def drop_from_cache(folder):
    """The files of a folder have to come from the disk again."""
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
