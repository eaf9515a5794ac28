"""`leat build --on`: actions run by executors give what a build here gives."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

BUILD = pathlib.Path(os.environ.get("LEAT_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))

PROJECT = """
sources:
  words: words.txt
steps:
  line:
    run: python3 line.py
    in: words
    slices: {n: 1..6}
    suffix: .txt
  joined:
    run: cat "$line"/* >"$out"
    in: line
"""
LINE = """import os, sys
import helper
open(os.environ["out"], "w").write(helper.line(os.environ["words"], int(os.environ["n"])))
"""
HELPER = "def line(path, n):\n    return open(path).read().splitlines()[n - 1].upper() + '\\n'\n"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "leat.yaml").write_text(PROJECT)
    (tmp_path / "words.txt").write_text("a\nb\nc\nd\ne\nf\n")
    (tmp_path / "line.py").write_text(LINE)
    (tmp_path / "helper.py").write_text(HELPER)
    return tmp_path


def command(project, *arguments):
    return [str(BUILD / "leat"), "build", "--project", str(project), *arguments]


def build(project, *arguments, check=True):
    done = subprocess.run(command(project, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "LEAT_PYTHON": sys.executable}, timeout=120)
    assert not check or done.returncode == 0, done.stderr
    return done


def test_actions_on_processes_are_found_by_a_build_here(project):
    assert "7 ran, 0 made before" in build(project, "--on", "processes://2").stdout
    assert (project / "out/joined").read_text() == "A\nB\nC\nD\nE\nF\n"
    assert "0 ran, 7 made before" in build(project).stdout  # the same keys, imports included
    (project / "helper.py").write_text(HELPER.replace("upper", "title"))
    assert "made before" in build(project, "--on", "processes://1").stdout
    assert not list((project / ".leat/tmp").iterdir())


def test_a_failure_is_told_with_its_last_lines(project):
    (project / "helper.py").write_text("raise SystemExit('no such luck')")
    done = build(project, "--on", "processes://2", check=False)
    assert done.returncode == 1 and "no such luck" in done.stderr


def test_an_executor_that_does_not_exist_is_named(project):
    done = build(project, "--on", "nowhere://x", check=False)
    assert done.returncode == 1 and "leat.executor.nowhere" in done.stderr
    done = build(project, "--on", "../evil", check=False)
    assert done.returncode == 2 and "is not where to build" in done.stderr


def children(pid):
    found = subprocess.run(["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)], stdout=subprocess.PIPE, text=True).stdout
    words = [line.split(None, 1) for line in found.splitlines()]
    return [(int(one[0]), one[1]) for one in words if len(one) == 2]  # one that just begins has no arguments yet


def execs(pid):
    """Process numbers of `leat exec` below a process."""
    found = []
    for child, text in children(pid):
        found += [child] if " exec " in text and "leat.executor" not in text else execs(child)
    return found


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


@pytest.fixture
def slow(project):
    """Six actions of which each waits until a file is there."""
    (project / "helper.py").write_text(HELPER + f"import os, time\nwhile not os.path.exists({str(project / 'go')!r}): "
                                       "time.sleep(0.02)\n")
    return project


@contextlib.contextmanager
def start(project):
    """A build that ends with the test, also with one that fails."""
    with subprocess.Popen(command(project, "--on", "processes://2"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env={**os.environ, "LEAT_PYTHON": sys.executable}) as running:
        try:
            yield running
        finally:
            running.kill()


def test_what_a_killed_node_ran_is_run_again(slow):
    with start(slow) as running:
        os.kill(wait_for(lambda: execs(running.pid))[0], signal.SIGKILL)
        (slow / "go").touch()
        out, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    assert "7 ran" in out and (slow / "out/joined").read_text() == "A\nB\nC\nD\nE\nF\n"


def test_a_killed_build_goes_on_where_it_was(slow):
    with start(slow) as running:
        nodes = wait_for(lambda: len(execs(running.pid)) == 2 and execs(running.pid))
        running.kill()
        running.communicate(timeout=120)
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in nodes))
    (slow / "go").touch()
    assert "7 ran" in build(slow, "--on", "processes://2").stdout


def test_an_interrupt_ends_what_runs(slow):
    with start(slow) as running:
        nodes = wait_for(lambda: len(execs(running.pid)) == 2 and execs(running.pid))
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=120)
    assert running.returncode == 1 and "stopped" in err
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in nodes))
