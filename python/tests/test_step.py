"""`leat.step` gives a program what leat.yaml declares, in a build and outside of one."""
import json
import pathlib
import re
import threading

import numpy as np
import pytest

import leat
from leat import step


@pytest.fixture
def action(tmp_path, monkeypatch):
    """Describes an action as `leat build` does."""

    def describe(**more):
        known = {"step": "decode", "slice": {"subject": "3", "bin": "7"}, "out": str(tmp_path / "out"), "seed": 5, "cpus": 2,
                 "params": {"folds": "10", "grid": "0.1, 1 10", "fast": "no", "name": "x y"},
                 "inputs": {"epochs": str(tmp_path / "in/epochs")}, "input_slices": {}, "feed": None, "checkpoint": None,
                 "metrics": str(tmp_path / "metrics.json"), "progress": str(tmp_path / "progress"), **more}
        (tmp_path / "step.json").write_text(json.dumps(known))
        monkeypatch.setenv("LEAT_STEP", str(tmp_path / "step.json"))
        monkeypatch.setattr(step, "_action", None)

    return describe


@pytest.fixture
def outside(monkeypatch):
    monkeypatch.delenv("LEAT_STEP", raising=False)
    monkeypatch.setattr(step, "_action", None)


# ---- in a build ----

def test_a_program_sees_what_leat_yaml_declares(action, tmp_path):
    action(feed="array() | batch(2)", checkpoint="/c")
    assert step.in_build and step.name == "decode" and step.out == tmp_path / "out" and (step.seed, step.cpus) == (5, 2)
    assert step.inputs["epochs"] == tmp_path / "in/epochs" and list(step.inputs) == ["epochs"]
    assert dict(step.slice) == {"subject": "3", "bin": "7"} and step.slice.int("bin") == 7
    assert step.feed == "array() | batch(2)" and step.checkpoint == pathlib.Path("/c")
    action()
    assert step.feed == "" and step.checkpoint is None


def test_params_are_read_as_the_type_that_is_asked_for(action):
    action()
    params = step.params
    assert params["folds"] == "10" and params.int("folds") == 10 and params.float("folds") == 10.0
    assert params.floats("grid") == [0.1, 1.0, 10.0] and params.texts("name") == ["x", "y"] and params.text("name") == "x y"
    assert params.bool("fast") is False and params.bool("slow", True) is True
    assert params.int("missing", 3) == 3 and params.ints("missing", [1]) == [1] and params.get("missing") is None


@pytest.mark.parametrize("read, sentence", [
    (lambda: step.params.int("grid"), "param 'grid' of step 'decode' is '0.1, 1 10', which is not an integer"),
    (lambda: step.params.bool("name"), "param 'name' of step 'decode' is 'x y', which is not true or false"),
    (lambda: step.params.floats("name"), "param 'name' of step 'decode' is 'x y', which is not a list of numbers"),
    (lambda: step.params["fold"], "step 'decode' has no param 'fold' in 'params:' of leat.yaml; did you mean 'folds'?"),
    (lambda: step.inputs["labels"], "step 'decode' has no input 'labels' in 'in:' of leat.yaml; there is epochs"),
    (lambda: step.slice.int("run"), "step 'decode' has no variable 'run' in 'slices:' of leat.yaml; there are subject, bin"),
])
def test_a_wrong_value_or_name_is_a_sentence(action, read, sentence):
    action()
    with pytest.raises(leat.InvalidError) as failed:
        read()
    assert str(failed.value) == sentence


def test_a_description_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAT_STEP", str(tmp_path / "gone.json"))
    monkeypatch.setattr(step, "_action", None)
    with pytest.raises(leat.DataError, match="gone.json.*unset LEAT_STEP"):
        step.out


def test_slices_of_an_input_come_with_their_values(action, tmp_path):
    entries = [{"entry": f"{i}", "slice": {"bin": str(i)}} for i in (1, 2, 10)]
    action(inputs={"decode": str(tmp_path)}, input_slices={"decode": entries})
    assert [(one.slice.int("bin"), one.path.name) for one in step.inputs.slices("decode")] == [(1, "1"), (2, "2"), (10, "10")]


def test_slices_of_a_folder_without_description_are_in_natural_order(action, tmp_path):
    folder = tmp_path / "decode"
    folder.mkdir()
    for name in ("10,1.npy", "2,10.npy", "2,9.npy"):
        (folder / name).touch()
    action(inputs={"decode": str(folder), "file": str(folder / "2,9.npy")})
    assert [path.name for _, path in step.inputs.slices("decode")] == ["2,9.npy", "2,10.npy", "10,1.npy"]
    with pytest.raises(leat.InvalidError, match="not a folder of slices"):
        step.inputs.slices("file")


def test_each_slice_stream_and_seed_has_other_random_numbers_and_every_run_the_same(action):
    def numbers(stream="", **more):
        action(**more)
        return tuple(step.rng(stream).integers(0, 2**32, 4))

    first = numbers()
    others = [numbers("shuffle"), numbers(seed=6), numbers(slice={"subject": "3", "bin": "8"}), numbers(slice={})]
    assert len({first, *others}) == 5
    assert numbers() == first and numbers(step="renamed", slice={"bin": "7", "subject": "3"}) == first


def test_random_numbers_do_not_change_with_the_version(action):
    """Results of builds depend on them: new numbers would need a new name."""
    action()
    assert step.rng().integers(0, 1000, 5).tolist() == [988, 851, 519, 554, 83]


def test_metrics_are_added_up_in_one_file(action, tmp_path):
    action()
    step.metrics(loss=0.5, epoch=1)
    step.metrics({"val/loss": np.float32(0.25)}, loss=np.nan, best=True, note="x", n=np.int64(3))
    assert json.loads((tmp_path / "metrics.json").read_text()) == {
        "loss": None, "epoch": 1, "val/loss": 0.25, "best": True, "note": "x", "n": 3}
    for wrong in ([1], np.zeros(3), None):
        with pytest.raises(leat.InvalidError, match="metric 'x' has to be a number"):
            step.metrics(x=wrong)


def test_progress_is_written_whole(action, tmp_path):
    action()
    done = threading.Event()
    seen = []

    def read():
        while not done.is_set():
            if (tmp_path / "progress").exists():
                seen.append((tmp_path / "progress").read_text())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        while len(seen) < 200 and reader.is_alive():
            step.progress(3, 3, "x" * 150)  # the last report is never left out
    finally:
        done.set()
        reader.join()
    assert len(seen) >= 200 and all(json.loads(one) == {"done": 3, "total": 3, "text": "x" * 150} for one in seen)


def test_track_yields_the_items_and_ends_with_all_of_them_done(action, tmp_path):
    action()
    assert list(step.track(iter("abc"), "letter")) == ["a", "b", "c"]
    assert json.loads((tmp_path / "progress").read_text()) == {"done": 3, "total": 3, "text": "letter"}


# ---- outside ----

def test_outside_of_a_build_values_come_from_defaults_and_the_environment(outside, monkeypatch, tmp_path):
    step.defaults(epochs=tmp_path / "e.npy", out="/tmp/o", grid=[1, 10], slice={"bin": 4})
    monkeypatch.setenv("folds", "5")
    assert not step.in_build and step.name == ""
    assert step.inputs["epochs"] == tmp_path / "e.npy" and step.out == pathlib.Path("/tmp/o")
    assert step.params.int("folds", 10) == 5 and step.params.ints("grid") == [1, 10] and step.slice.int("bin") == 4
    assert step.params.int("other", 2) == 2 and step.seed == 0 and step.cpus >= 1 and step.checkpoint is None


def test_in_a_build_defaults_do_nothing(action, tmp_path):
    action()
    step.defaults(folds=3, other=4, out="/elsewhere", slice={"bin": 1})
    assert step.params.int("folds") == 10 and "other" not in step.params and step.out == tmp_path / "out"
    assert step.slice["bin"] == "7"


@pytest.mark.parametrize("read, sentence", [
    (lambda: step.inputs["epochs"], r"input 'epochs' has no value, because .* call step.defaults\(epochs=...\) or set"),
    (lambda: step.out, r"no path for the result.*step.defaults\(out=...\)"),
    (lambda: step.slice.int("bin"), "variable 'bin' has no value"),
])
def test_what_is_missing_outside_of_a_build_is_said(outside, read, sentence):
    with pytest.raises(leat.InvalidError, match=sentence):
        read()


def test_random_numbers_outside_are_those_of_the_build(action, outside, monkeypatch):
    action()
    inside = step.rng().integers(0, 1000, 5).tolist()
    monkeypatch.delenv("LEAT_STEP")
    step.defaults(seed=5, slice={"subject": 3, "bin": 7})
    assert step.rng().integers(0, 1000, 5).tolist() == inside


def test_random_numbers_outside_do_not_depend_on_what_was_read_before(outside, monkeypatch):
    first = step.rng().integers(0, 1000, 5).tolist()
    monkeypatch.setenv("bin", "7")
    assert step.slice.int("bin") == 7 and step.rng().integers(0, 1000, 5).tolist() == first


def test_metrics_outside_are_printed(outside, capsys):
    step.metrics(loss=0.5, epoch=1)
    step.progress(1, 2)
    assert capsys.readouterr().err == "loss=0.5 epoch=1\n"


def test_the_module_lists_what_it_has(outside):
    assert {"inputs", "out", "params", "slice", "rng", "metrics", "progress"} <= set(dir(step))
    with pytest.raises(AttributeError, match="no attribute 'input'"):
        step.input


def test_the_code_of_the_page_runs(outside, root, tmp_path, monkeypatch):
    section = (root / "docs/STEPS.md").read_text().split("\n## Python\n")[1].split("\n## ")[0]
    program, defaults, _ = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    (tmp_path / "raw").mkdir()
    np.save(tmp_path / "raw/subject-1.npy", np.zeros((4, 2)))
    monkeypatch.chdir(tmp_path)
    exec(defaults, {"step": step})
    exec(program, {})
    assert sorted(np.load("decoded.npy")) == [0, 1, 2, 3]
