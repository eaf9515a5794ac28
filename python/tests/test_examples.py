"""The programs of examples/python and the code in the documents run."""
import ctypes
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile

import numpy as np
import pytest

import leat
from leat import _lib


def run(root, folder, name, *args):
    done = subprocess.run([sys.executable, root / "examples/python" / name, *map(str, args)], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240,
                          env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_cells_torch_learns_and_goes_on(root, cells, tmp_path):
    pytest.importorskip("torch")
    out = run(root, tmp_path, "cells_torch.py", cells / "cells-*.tfrecord", "--epochs", 2)
    assert re.search(r"epoch 1: loss [\d.]+, \d+% right", out)
    assert "epoch 2:" in run(root, tmp_path, "cells_torch.py", cells / "cells-*.tfrecord", "--epochs", 3)


def test_cells_torch_compares(root, cells, tmp_path):
    for name in ("torch", "PIL"):
        pytest.importorskip(name)
    out = run(root, tmp_path, "cells_torch.py", cells / "cells", "--compare", "--epochs", 1)
    for line in ("200 images, width", "naive loading:", "steps:", "naive epoch:", "Leat loading:", "Leat epoch:",
                 "speed-up:"):
        assert re.search(rf"^{line} [\d.]+", out, re.MULTILINE), out


def test_resnet18_lightning_trains_with_both_loaders(root, tmp_path):
    for name in ("torch", "lightning", "PIL"):
        pytest.importorskip(name)
    small = "--batch", 10, "--size", 32, "--width", 4, "--workers", 1, "--batches", 4, "--steps", 3
    out = run(root, tmp_path, "resnet18_lightning.py", tmp_path / "photos", "--draw", 40, *small)
    for line in ("torch: loading", "torch: training", "leat: loading", "leat: training", "speed-up of loading:",
                 "speed-up of training:"):
        assert re.search(rf"^{line} [\d.]+", out, re.MULTILINE), out


def test_cells_keras(root, cells, tmp_path):
    pytest.importorskip("tensorflow")
    assert "val_accuracy" in run(root, tmp_path, "cells_keras.py", cells / "cells-*.tfrecord", "--epochs", 1)
    out = run(root, tmp_path, "cells_keras.py", cells / "cells", "--compare", "--epochs", 1)
    assert float(re.search(r"speed-up: ([\d.]+)", out)[1]) > 0


def test_arrays_jax_finds_the_weights(root, tmp_path):
    pytest.importorskip("jax")
    out = run(root, tmp_path, "arrays_jax.py").replace("-0.0", "0.0")
    assert "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 3.0]" in out


def test_lm_tokens_learns_to_count(root, tmp_path):
    pytest.importorskip("torch")
    out = run(root, tmp_path, "lm_tokens.py")
    assert float(re.search(r"step 100: loss ([\d.]+)", out)[1]) < 1


def test_custom_op_is_repeatable(root, cells, tmp_path):
    out = run(root, tmp_path, "custom_op.py", cells / "cells-*.tfrecord").splitlines()
    assert out[0].replace("run 0", "run 1") == out[1]


@pytest.mark.parametrize("name, missing, packages", [
    ("arrays_jax.py", "jax", "jax"), ("cells_keras.py", "keras", "tensorflow"), ("cells_torch.py", "torch", "torch"),
    ("lm_tokens.py", "torch", "torch"), ("resnet18_lightning.py", "lightning", "torch lightning pillow")])
def test_an_example_names_what_is_missing(root, tmp_path, name, missing, packages):
    code = f"import runpy, sys; sys.modules['{missing}'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code, root / "examples/python" / name], cwd=tmp_path, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 1
    assert done.stdout == f"there is no module {missing}: pip install {packages}\n"


def run_commands(block, build):
    """The commands of a console block, with what the build made in the path."""
    commands = "\n".join(re.findall(r"^\$ (.*)$", block, re.MULTILINE))
    path = os.pathsep.join([str(build), str(build / "examples"), os.environ["PATH"]])
    done = subprocess.run(["sh", "-eux", "-c", commands], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", ["README.md", "docs/PYTHON.md", "docs/MIGRATION.md", "docs/TUTORIAL.md",
                                  "docs/RECIPES.md", "docs/TROUBLESHOOTING.md", "docs/XRAY.md"])
def test_the_code_of_a_page_runs(root, build, cells, monkeypatch, tmp_path, page):
    """All blocks of a page in one namespace, in order; those of a framework that is missing are left out.

    README.md's commands need a build in the current folder: tests/check_readme runs them."""
    if page != "docs/TUTORIAL.md":  # which makes its own
        for path in cells.iterdir():
            (tmp_path / path.name).symlink_to(path)
    for part in ("train", "val"):
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "photos" / part).symlink_to(cells / "cells")
    monkeypatch.chdir(tmp_path)
    space, ran = {"__name__": "__main__"}, 0
    blocks = re.findall(r"^```(python|console)\n(.*?)^```$", (root / page).read_text(), re.DOTALL | re.MULTILINE)
    for language, block in blocks:
        try:
            if language == "python":
                exec(compile(block, page, "exec"), space)
            elif page != "README.md":
                run_commands(block, build)
            ran += 1
        except ModuleNotFoundError as missing:
            if missing.name not in ("torch", "lightning", "tensorflow", "jax", "keras", "PIL"):
                raise
    assert ran > 0


@pytest.fixture
def small_data(build, cells, monkeypatch, tmp_path):
    """A folder with what the pages' tables name: records, images, shards of other libraries, tokens."""
    for path in cells.iterdir():
        (tmp_path / path.name).symlink_to(path)
    shutil.copytree(build / "tests/golden/tfds/small/1.0.0", tmp_path / "mnist/3.0.1")
    shutil.copytree(build / "tests/golden/mds/images", tmp_path / "shards")
    with tarfile.open(tmp_path / "train-000.tar", "w") as tar:
        for name, content in (("1.jpg", next(cells.glob("cells/*/*.jpg")).read_bytes()), ("1.cls", b"1")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    np.arange(5000, dtype=np.uint16).tofile(tmp_path / "train.bin")
    monkeypatch.chdir(tmp_path)
    return {"leat": leat, "x": np.ones((8, 3), np.float32), "y": np.arange(8), "function": lambda value: value,
            "mean": [0.5, 0.5, 0.5], "std": [0.2, 0.2, 0.2], "h": 24, "w": 32, "n": 2, "i": 1, "epoch": 1, "classes": 2}


def cells_of_tables(page, column):
    """The code in one column of all tables of a page, piece by piece."""
    for line in page.read_text().splitlines():
        parts = line.strip("|").split(" | ")
        if line.startswith("| ") and len(parts) > column:
            yield from re.findall(r"`([^`]+)`", parts[column])


def open_any(expressions, space):
    """Opens the first pipeline that fits the data; the reasons when none does."""
    problems = []
    for expression in expressions:
        try:
            made = eval(expression, dict(space))
            if isinstance(made, leat.Pipeline):
                made = (made if "batch(" in made.spec else made.batch(1)).feed()
            if isinstance(made, leat.Feed):
                made.close()
            return []
        except (leat.Error, TypeError) as problem:
            problems.append(f"{expression}: {problem}")
    return problems


def test_what_the_migration_tables_say_can_be_opened(root, small_data):
    """Methods are tried on each kind of data: one has to fit. What is no code of Leat's is listed here."""
    samples = "leat.tfrecord('cells-*.tfrecord').example(image=bytes, label=int)"
    images = samples + ".decode().resize(32, 32).scale(1 / 255)"
    bases = ["leat.array(x=x)", "leat.tfrecord('cells-*.tfrecord')", samples, images,
             images + ".one_hot(2, field='label')"]
    checked = set()
    for code in cells_of_tables(root / "docs/MIGRATION.md", 1):
        feed = eval(f"{images}.batch(8).feed()", dict(small_data))
        space = {**small_data, "feed": feed}
        if code.startswith("."):
            tries = [base + code + end for base in bases for end in ("", ".batch(4)")]
            tries += [base + ".batch(4)" + code for base in bases]
        elif code.startswith("leat."):
            tries = [code.replace("(folder)", f"('{folder}')") for folder in ("cells", "shards")]
        elif code.startswith("feed("):
            tries = [f"{images}.batch(8).{code}"]
        elif code == 'feed.torch("cuda")':  # there may be no such device
            tries = ["__import__('inspect').signature(feed.torch).bind('cuda')"]
        elif code.startswith("feed."):
            tries = [code]
        elif code.startswith("loader."):
            if not importlib.util.find_spec("torch"):
                continue
            space["loader"] = leat.torch.DataLoader(feed)
            tries = [code.replace("load_state_dict()", "load_state_dict(loader.state_dict())")]
        else:
            assert code in ("torch.distributed",), f"{code} is not checked"
            continue
        problems = open_any(tries, space)
        assert not problems, "\n".join(problems)
        checked.add(code)
        feed.close()
    assert len(checked) > 35 and ".shuffle(1000)" in checked and "leat.array(x=x, y=y)" in checked


def test_values_are_written_as_the_reference_says(root, images):
    """The first table of the page, value by value."""
    ops = {"integer": "shuffle({})", "number": "scale({})", "angle": "rotate({})"}
    rows = re.findall(r"^\| (integer|number|size|angle) \| (.*) \|$", (root / "docs/REFERENCE.md").read_text(),
                      re.MULTILINE)
    assert [kind for kind, _ in rows] == ["integer", "number", "size", "angle"]
    for kind, text in rows:
        for value in re.findall(r"`([^`]+)`", text):
            if kind == "size":
                size, text = ctypes.c_uint64(), value if value[0].isdigit() else "1" + value  # or a unit alone
                assert _lib.parse_size(text.encode(), size, _lib.Err()) == _lib.OK and size.value > 0
            else:
                (images | ops[kind].format(value)).batch(4).feed().close()
