"""A script for PyTorch's DataLoader becomes one for Leat when the lines that make the loader change, and no other."""
import ast
import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent / "migrate"
MAKING = {"transform", "dataset", "feed", "loader"}


def run(name, folder, *args):
    done = subprocess.run([sys.executable, "-W", "ignore", HERE / name, *map(str, args)], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout
    return done.stdout


class Rest(ast.NodeTransformer):
    """What stays of a script without its docstring, its imports, and the statements that make the loader."""

    def visit_Assign(self, node):
        return None if {getattr(target, "id", None) for target in node.targets} <= MAKING else node

    def visit_Import(self, node):
        return None

    visit_ImportFrom = visit_Import


def rest(path):
    return ast.unparse(Rest().visit(ast.parse(path.read_text()))).split("\n", 1)[1]


@pytest.mark.parametrize("name", ["folder", "trainer"])
def test_only_the_construction_differs(name):
    before, after = (HERE / f"{name}_{when}.py" for when in ("before", "after"))
    assert rest(before) == rest(after)
    assert "leat" not in rest(after) and "vision" not in rest(before)


def test_a_loop_over_a_folder(cells):
    pytest.importorskip("torch")
    pytest.importorskip("PIL")
    form = r"epoch (\d): (180 of 200) images, mean (-?[\d.]+), loss [\d.]+"
    before, after = (re.findall(form, run(f"folder_{when}.py", cells, "cells")) for when in ("before", "after"))
    assert len(after) == 3 and [found[:2] for found in before] == [found[:2] for found in after]
    for theirs, ours in zip(before, after):
        assert abs(float(theirs[2]) - float(ours[2])) <= 0.4


def test_a_trainer_and_its_checkpoints(cells, tmp_path):
    for name in ("torch", "lightning", "PIL"):
        pytest.importorskip(name)
    steps = r"epoch \d, batch \d of 5: "
    printed = {}
    for when in ("before", "after"):
        (tmp_path / when).mkdir()
        printed[when] = re.findall(rf"{steps}.*", run(f"trainer_{when}.py", tmp_path / when, cells / "cells"))
    theirs, ours = printed.values()
    assert len(ours) == 10 and [re.match(steps, a)[0] for a in theirs] == [re.match(steps, b)[0] for b in ours]
    # Behind a checkpoint in the middle of an epoch the losses are those of the run without a break.
    resumed = run("trainer_after.py", tmp_path / "after", cells / "cells", "step=3.ckpt")
    assert re.findall(rf"{steps}.*", resumed) == ours[3:]
