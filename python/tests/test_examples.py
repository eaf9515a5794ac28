"""The programs of examples/python and the code in the documents run."""
import os
import re
import subprocess
import sys

import pytest


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


@pytest.mark.parametrize("page", ["README.md", "docs/PYTHON.md", "docs/MIGRATION.md"])
def test_the_code_of_a_page_runs(root, cells, monkeypatch, tmp_path, page):
    """All blocks of a page in one namespace, in order; those of a framework that is missing are left out."""
    for path in cells.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    space, ran = {"__name__": "page"}, 0
    for block in re.findall(r"^```python\n(.*?)^```$", (root / page).read_text(), re.DOTALL | re.MULTILINE):
        try:
            exec(compile(block, page, "exec"), space)
            ran += 1
        except ModuleNotFoundError as missing:
            if missing.name not in ("torch", "lightning", "tensorflow", "jax", "keras", "PIL"):
                raise
    assert ran > 0
