"""examples/eeg finds what its generator planted, and runs only what changed; the small size."""
import hashlib
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import numpy as np
import pytest

import leat

for name in ("sklearn", "scipy", "matplotlib"):
    pytest.importorskip(name)

PATH = str(pathlib.Path(sys.executable).parent)


@pytest.fixture(scope="module")
def project(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("eeg")
    subprocess.run([sys.executable, root / "examples/eeg/generate.py", folder, "--size", "small"], check=True)
    return folder


@pytest.fixture
def build(project, monkeypatch):
    """Builds with the interpreter of the tests."""
    import os

    monkeypatch.setenv("PATH", PATH + os.pathsep + os.environ["PATH"])
    return lambda *targets: leat.build(project, targets)


@pytest.fixture
def modules(root, monkeypatch):
    """Imports a program of the example."""
    import importlib

    monkeypatch.syspath_prepend(str(root / "examples/eeg"))
    return importlib.import_module


def ran(build):
    return {name: counts.ran + counts.same for name, counts in build.steps.items() if counts.ran + counts.same}


def test_the_generator_gives_the_same_bytes_again(root, project, tmp_path):
    subprocess.run([sys.executable, root / "examples/eeg/generate.py", tmp_path, "--size", "small"], check=True)
    for path in (project / "raw").iterdir():
        assert path.read_bytes() == (tmp_path / "raw" / path.name).read_bytes()


def test_significant_bins_are_the_planted_ones(project, build):
    first = build()
    assert ran(first) == {"decode": 24, "generalise": 4, "permute": 4, "group": 1, "summary": 1, "plot_time": 1,
                          "plot_matrix": 1}
    truth = json.loads((project / "raw/truth.json").read_text())
    early, late = (np.array(truth[name]) - 1 for name in ("early", "late"))
    with np.load(first.path("group")) as file:
        result = dict(file)
    assert np.flatnonzero(result["significant"]).tolist() == sorted([*early, *late])
    assert np.flatnonzero(result["accuracy"] > result["limit"]).tolist() == sorted([*early, *late])
    assert abs(result["chance"] - 1 / 3) < 0.02
    squares = np.zeros_like(result["matrix_significant"])
    for group in early, late:
        squares[np.ix_(group, group)] = True
    assert not (result["matrix_significant"] & ~squares).any()
    assert result["matrix"][squares].min() > result["matrix"][~squares].max()


def test_nothing_runs_twice(build):
    build()
    assert ran(build()) == {}


def test_the_last_step_runs_alone_and_a_comment_stops_after_its_step(project, build):
    build()
    path = project / "plot_matrix.py"
    path.write_text(path.read_text().replace('"test bin"', '"tested bin"'))
    assert ran(build()) == {"plot_matrix": 1}
    path = project / "summary.py"
    path.write_text(path.read_text() + "# a comment\n")
    assert build().steps["summary"].same == 1
    path = project / "permute.py"
    path.write_text(path.read_text() + "# a comment\n")
    again = build()
    assert again.steps["permute"].same == 4 and ran(again) == {"permute": 4}


def test_a_param_leaves_the_decoders(project, build):
    build()
    path = project / "leat.yaml"
    text = path.read_text()
    path.write_text(text.replace("permutations: 100", "permutations: 20"))
    assert set(ran(build())) == {"permute", "group", "summary", "plot_time", "plot_matrix"}
    path.write_text(text)
    assert ran(build()) == {}


def test_one_program_finds_the_same_accuracies(project, build, tmp_path):
    done = subprocess.run([sys.executable, "naive.py", "raw", tmp_path / "results.npz"], cwd=project, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    with np.load(tmp_path / "results.npz") as naive, np.load(build().path("group")) as ours:
        assert np.array_equal(naive["matrix"], ours["matrix"])
        assert np.array_equal(naive["significant"], ours["significant"])


def test_pictures_and_table_are_there(build):
    done = build()
    for step, name in ("plot_time", "decoding"), ("plot_matrix", "generalisation"):
        folder = done.path(step)
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        assert xml.etree.ElementTree.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")
    lines = done.path("summary").read_text().splitlines()
    assert lines[0] == "bin,accuracy,t,p,significant" and len(lines) == 7


def test_votes_are_those_of_the_library(modules):
    from sklearn.svm import SVC

    decode, generalise = modules("decode"), modules("generalise")
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 90)
    x = rng.standard_normal((90, 5)) + 0.5 * y[:, None]
    svm = SVC(kernel="linear").fit(x, y)
    model = {"features": np.arange(5), "mean": np.zeros(5), "scale": np.ones(5), "weights": svm.coef_,
             "bias": svm.intercept_}
    new = rng.standard_normal((400, 5)) * 2
    assert np.array_equal(decode.predict(model, new), svm.predict(new))
    assert np.array_equal(generalise.votes(model, new[None])[0], svm.predict(new))


def test_shuffled_labels_stay_in_their_fold_and_are_at_chance(modules):
    permute = modules("permute")
    rng = np.random.default_rng(4)
    labels, fold = np.arange(300) % 3, np.arange(300) // 30
    new = permute.shuffled(labels, fold, rng)
    assert not np.array_equal(new, labels)
    for number in range(10):
        assert sorted(new[fold == number]) == sorted(labels[fold == number])
    counted = permute.permute(np.stack([[labels]]), labels, fold, 200, rng)
    assert counted[0] == 1 and abs(counted[1:].mean() - 1 / 3) < 0.01


def test_the_same_figure_gives_the_same_bytes(modules, tmp_path):
    figure, plot_time = modules("figure"), modules("plot_time")
    result = {"curve": np.full(6, 0.4), "half": np.full(6, 0.1), "accuracy": np.full(6, 0.4), "chance": 1 / 3,
              "limit": 0.38, "significant": np.arange(6) > 3}
    digests = []
    for name in "ab":
        figure.save(plot_time.draw(result), tmp_path / name, "x")
        digests.append([hashlib.sha256((tmp_path / name / f"x.{end}").read_bytes()).digest() for end in ("png", "svg")])
    assert digests[0] == digests[1]
