"""Type checkers find the package right, and what a program does with it."""
import re
import subprocess
import sys

import pytest

RIGHT = '''
import pathlib
from typing import Any, Dict

import numpy as np

import leat

mean = np.array([0.5, 0.4, 0.5])
cells = leat.tfrecord(pathlib.Path("a"), "b").example(image=bytes, label=int, box=leat.feature(float, 4))
train: leat.Pipeline = (cells.shuffle().decode(mode="torch").resize(100, 100).random_rotate("40deg").scale(1 / 255)
                        .normalize(mean, [0.1, 0.2, 0.3]).cast(np.float32).layout("chw").batch(32, tail="drop"))
feed: leat.Feed = (train | "prefetch(2)").feed(seed=1, memory="1GiB", storage={"requests": 9, "region": "x"})
for batch in feed:
    pixels: "np.ndarray[Any, Any]" = batch["image"]
    count: int = batch.count
for tensors in feed.torch():
    print(tensors["image"].shape)
loader = leat.torch.DataLoader(feed, fields=("image", "label"))
for image, label in loader:
    print(image.mean())
state: Dict[str, Any] = loader.state_dict()
loader.load_state_dict(state)
loader.sampler.set_epoch(len(loader) + loader.batch_size + len(loader.dataset))
try:
    leat.array(x=mean).batch(2).map(lambda x, rng: x, fields="x").feed(seed=2)
    print(leat.feed("tfrecord('a') | batch(1)", seed=3).fields["image"].shape)
except leat.SpecError as error:
    print(error.status)
except leat.errors.MapError as failed:
    print(failed.position)
'''

WRONG = '''
import leat

leat.tfrecord("a").resise(100, 100)
leat.tfrecord("a").resize(100, None)
leat.folder("a").decode(mode="torchvision")
leat.folder("a").batch(32).feed(sed=1)
'''


@pytest.fixture(scope="session")
def mypy(root, build, tmp_path_factory):
    """Runs mypy; what it knows of the frameworks, which takes it long, is kept below the build."""

    pytest.importorskip("mypy.main")

    def check(*args):
        done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", root / "pyproject.toml", "--cache-dir",
                               build / "mypy-cache", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, cwd=tmp_path_factory.getbasetemp(), timeout=240)
        return done.stdout

    return check


def test_the_package(root, mypy):
    assert "no issues found" in (out := mypy(root / "python/leat", root / "python/stubs.py")), out


def test_a_program(mypy, tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    out = mypy(tmp_path / "right.py", tmp_path / "wrong.py")
    assert re.findall(r"^.*(right|wrong)\.py:(\d+): error", out, re.MULTILINE) == [
        ("wrong", line) for line in ("4", "5", "6", "7")], out
