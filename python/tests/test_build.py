"""`leat.build` runs a leat.yaml and says what it did."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import leat
from leat import _build, _lib

PROJECT = """
sources:
  words: words.txt
steps:
  line:
    run: sed -n "${n}p" "$words" >"$out"
    in: words
    slices: {n: 1..4}
  joined:
    run: cat "$line"/* >"$out"
    in: line
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "leat.yaml").write_text(PROJECT)
    (tmp_path / "words.txt").write_text("a\nb\nc\nd\n")
    return tmp_path


def counts(build, step):
    one = build.steps[step]
    return one.actions, one.cached, one.ran + one.same, one.failed, one.skipped


def test_a_build_says_what_ran_and_what_was_there(project):
    first = leat.build(project / "leat.yaml", jobs=2)
    assert counts(first, "line") == (4, 0, 4, 0, 0) and counts(first, "joined") == (1, 0, 1, 0, 0)
    assert (first.actions, first.ran, first.cached) == (5, 5, 0) and first.run and first.seconds > 0
    assert first.path("joined").read_text() == "a\nb\nc\nd\n"
    again = leat.build(project)  # the folder will do
    assert (again.ran, again.same, again.cached) == (0, 0, 5) and "5 cached" in str(again)


def test_equal_outputs_stop_what_follows(project):
    leat.build(project)
    (project / "words.txt").write_text("a\nb\nc\nd\nmore\n")
    build = leat.build(project)
    assert build.steps["line"].same == 4 and build.steps["joined"].cached == 1


def test_targets_are_steps_or_slices(project):
    assert list(leat.build(project, "line:n=2").steps) == ["line"]
    assert leat.build(project, ["line:n=2"]).cached == 1
    assert counts(leat.build(project, ["line"]), "line") == (4, 1, 3, 0, 0)


def test_a_failing_step_raises_its_reason_and_what_was_done(project):
    (project / "leat.yaml").write_text(PROJECT.replace('cat "$line"/*', 'echo no luck >&2; exit 3; cat'))
    with pytest.raises(leat.BuildError) as failed:
        leat.build(project)
    build = failed.value.build
    assert build.ran == 4 and build.failed == 1 and build.failures[0].step == "joined"
    assert "exited with 3" in build.failures[0].why and "no luck" in build.failures[0].why
    assert "joined" in str(failed.value)


@pytest.mark.parametrize("text, targets, words", [
    ("steps:\n  a: {runs: 'true'}\n", (), ("leat.yaml", "2", "runs", "run")),
    (PROJECT, ("lines",), ("lines", "line")),
])
def test_a_wrong_project_or_target_is_a_spec_error(project, text, targets, words):
    (project / "leat.yaml").write_text(text)
    with pytest.raises(leat.SpecError) as failed:
        leat.build(project, targets)
    assert all(word in str(failed.value) for word in words) and not str(failed.value).startswith("leat")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(leat.Error, match="leat.yaml"):
        leat.build(tmp_path / "leat.yaml")
    with pytest.raises(leat.Error, match="nowhere"):
        leat.build(tmp_path / "nowhere/leat.yaml")


def test_wrong_arguments_are_refused(project, monkeypatch):
    with pytest.raises(leat.InvalidError, match="jobs=0 has to be at least 1"):
        leat.build(project, jobs=0)
    with pytest.raises(leat.InvalidError, match="no step 'lime' in this build; it has line, joined"):
        leat.build(project).path("lime")
    monkeypatch.setattr(_lib, "command_path", lambda: None)
    with pytest.raises(leat.BuildError, match="no leat command next to the library"):
        leat.build(project)


def test_a_dry_run_changes_nothing(project):
    build = leat.build(project, dry_run=True)
    assert build.actions == 5 and build.ran == 0 and not (project / "out").exists()


def test_a_function_gets_every_event(project):
    events = []
    leat.build(project, progress=events.append)
    kinds = [event["event"] for event in events]
    assert kinds[0] == "begin" and kinds[-1] == "end" and kinds.count("ran") == 5


def test_an_interrupt_stops_the_build_and_keeps_what_is_done(project, tmp_path):
    """As in a notebook, where only this process gets the signal."""
    (project / "leat.yaml").write_text(PROJECT.replace("cat ", f"echo $$ >{tmp_path}/pid; sleep 1000; cat "))
    code = ("import leat, sys\ntry:\n    leat.build(sys.argv[1])\n"
            "except KeyboardInterrupt:\n    print('interrupted')")
    started = subprocess.Popen([sys.executable, "-c", code, str(project)], stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert started.poll() is None
            time.sleep(0.02)
        os.kill(started.pid, signal.SIGINT)  # finishes what runs
        time.sleep(0.5)
        printed = None
        while printed is None:
            os.kill(started.pid, signal.SIGINT)  # kills it, unless the system made one signal of both
            with contextlib.suppress(subprocess.TimeoutExpired):
                printed = started.communicate(timeout=10)[0]
        assert printed == "interrupted\n"
    finally:
        started.kill()
    sleeping = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(sleeping, 0)
    (project / "leat.yaml").write_text(PROJECT)
    assert leat.build(project).steps["line"].cached == 4


# ---- results, without a command ----

EVENTS = [
    {"event": "begin", "run": "20261117T201530-4711", "steps": [{"step": "a", "actions": 3}, {"step": "b<", "actions": 1},
                                                                 {"step": "other", "actions": 9}]},
    {"event": "cached", "step": "a", "count": 2, "saved_s": 70},
    {"event": "planned", "step": "a", "count": 1},
    {"event": "planned", "step": "b<", "count": 1},
    {"event": "start", "step": "a", "slice": "n=3", "id": "a-3"},
    {"event": "failed", "step": "a", "slice": "n=3", "id": "a-3", "why": "exited with 1 <b>", "seconds": 2.5},
    {"event": "skipped", "step": "b<", "count": 1},
    {"event": "warning", "step": "a", "why": "ran 8 threads on 1 cpu"},
    {"event": "end", "seconds": 2.6, "saved_s": 70},
]


def folded(events, folder):
    build = _build.Build(folder)
    for event in events:
        build._add(event)
    return build


def test_events_add_up(tmp_path):
    build = folded(EVENTS, tmp_path)
    assert (build.actions, build.cached, build.ran, build.failed, build.skipped) == (4, 2, 0, 1, 1)
    assert build.failures == [_build.Failure("a-3", "a", "n=3", "exited with 1 <b>")]
    assert list(build.steps) == ["a", "b<"]
    assert build.warnings == ["ran 8 threads on 1 cpu"] and build.steps["a"].seconds == 2.5
    assert str(build) == "2 cached, 1 failed, 1 skipped in 2.6 s; reuse saved 1 min 10 s"


def test_a_notebook_shows_a_table_with_escaped_text(tmp_path):
    shown = folded(EVENTS, tmp_path)._repr_html_()
    assert "b&lt;" in shown and "exited with 1 &lt;b&gt;" in shown and "<b>" not in shown


def test_progress_in_a_notebook_updates_one_display(tmp_path):
    shown = []

    class Handle:
        def update(self, build):
            shown.append(("update", build))

    def display(build, display_id):
        shown.append(("display", build))
        return Handle()

    progress, build = _build._Notebook(display), folded(EVENTS, tmp_path)
    progress(build)
    progress(build)
    progress.close(build)
    assert [kind for kind, _ in shown] == ["display", "update", "update"]


def test_a_line_of_progress_names_what_runs(tmp_path):
    assert _build._line(folded(EVENTS[:5], tmp_path)) == "a 2/3"


def fake(tmp_path, monkeypatch, script):
    command = tmp_path / "leat"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setattr(_lib, "command_path", lambda: str(command))


def test_a_killed_command_is_an_error(tmp_path, monkeypatch):
    fake(tmp_path, monkeypatch, f"echo '{json.dumps(EVENTS[0])}'; echo '{json.dumps(EVENTS[1])}'; kill -9 $$")
    with pytest.raises(leat.BuildError, match="ended by SIGKILL; what it finished is kept") as failed:
        leat.build(tmp_path)
    assert failed.value.build.actions == 2


def test_a_command_of_another_version_is_recognized(tmp_path, monkeypatch):
    fake(tmp_path, monkeypatch, "echo hello")
    with pytest.raises(leat.InternalError, match="printed 'hello', which is not an event"):
        leat.build(tmp_path)


def test_a_command_that_writes_many_errors_does_not_block(tmp_path, monkeypatch):
    fake(tmp_path, monkeypatch, "i=0; while [ $i -lt 20000 ]; do echo xxxxxxxxxx >&2; i=$((i + 1)); done; "
         "echo 'leat build: step a failed' >&2; exit 1")
    with pytest.raises(leat.BuildError, match="^step a failed$"):
        leat.build(tmp_path)
