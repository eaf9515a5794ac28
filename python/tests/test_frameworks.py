"""Tensors of PyTorch, JAX and TensorFlow: the same memory, the same values."""
import gc
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import leat

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def test_numpy(numbers):
    view = numbers.batch(10).feed().numpy()
    assert len(view) == 10
    batches = [batch["x"].copy() for batch in view]
    assert type(next(iter(view))) is dict and len(batches) == 10


# ---- PyTorch ----

def test_torch_tensors_lie_over_the_same_memory(images):
    torch = pytest.importorskip("torch")
    batch = next(iter(images.batch(8).feed()))
    tensors = leat.torch.tensors(batch)
    for name in batch:
        assert tensors[name].data_ptr() == batch[name].ctypes.data
    assert tensors["image"].dtype == torch.float32 and tensors["image"].shape == (8, 16, 16, 3)
    tensors["image"][0] = 5
    assert (batch["image"][0] == 5).all()


def test_torch_tensors_hold_their_batch(numbers):
    pytest.importorskip("torch")
    feed = numbers.batch(10).feed()
    kept = [batch["x"] for batch, _ in zip(feed.torch(), range(3))]
    for batch in feed:
        pass
    feed.close()
    del feed, batch
    gc.collect()
    assert [value.tolist() for value in kept] == [list(range(i, i + 10)) for i in (0, 10, 20)]


def test_torch_types(numbers, cells):
    torch = pytest.importorskip("torch")
    batch = next(iter(numbers.cast("bfloat16", field="y").batch(4).feed().torch()))
    assert batch["y"].dtype == torch.bfloat16 and batch["y"].float()[1].tolist() == [1, 2]
    ragged = next(iter(leat.folder(cells / "cells").batch(4).feed().torch()))["image"]
    assert ragged.offsets[-1] == len(ragged.values) and ragged.nested().shape[0] == 4
    mapped = next(iter(numbers.batch(4).map_batch(lambda b: {"x": b["x"] + 1}).feed().torch()))
    assert mapped["x"].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "uint16", "uint32", "uint64"])
def test_torch_narrow_types(numbers, dtype):
    torch = pytest.importorskip("torch")
    batch = next(iter(numbers.cast(dtype, field="y").batch(4).feed().torch()))
    assert batch["y"].dtype == getattr(torch, dtype)
    assert batch["y"].tolist()[1] == np.array([1, 2]).astype(dtype).tolist()


def test_torch_refuses_a_gpu_that_is_not_there(numbers):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        batch = next(iter(numbers.batch(4).feed().torch("cuda")))
        assert batch["x"].device.type == "cuda" and batch["x"].tolist() == [0, 1, 2, 3]
    else:
        with pytest.raises(leat.InvalidError, match="no GPU"):
            numbers.batch(4).feed().torch("cuda")
    meta = next(iter(numbers.batch(4).feed().torch("meta")))
    assert meta["x"].device.type == "meta"


def test_torch_data_loader(numbers):
    pytest.importorskip("torch")
    pipeline = numbers.shuffle().batch(10)
    loader = leat.torch.DataLoader(pipeline.feed(seed=1), fields=("x", "y"))
    assert len(loader) == 10 and loader.batch_size == 10 and len(loader.dataset) == 100
    first = [x.tolist() for x, y in loader]
    assert sorted(sum(first, [])) == list(range(100))
    for x, y in loader:
        break
    assert len(list((x.clone(), y.clone()) for x, y in loader)) == 10  # a new loop is a whole epoch, as in PyTorch
    for i, (x, y) in enumerate(loader):
        if i == 3:
            state = loader.state_dict()
            break
    other = leat.torch.DataLoader(pipeline.feed(), fields=("x", "y"))
    other.load_state_dict(state)
    rest = [x.tolist() for x, y in other]
    assert len(rest) == 6
    again = pipeline.feed(seed=1)
    again.load_state_dict(state)
    assert [batch["x"].tolist() for batch in again] == rest


def test_torch_data_loader_takes_the_epochs_that_a_script_counts(numbers):
    """As with the DistributedSampler of a script: `loader.sampler.set_epoch(epoch)` before each loop."""
    pytest.importorskip("torch")
    pipeline = numbers.shuffle().batch(10)
    feed = pipeline.feed(seed=1)
    orders = [[batch["x"].tolist() for batch in feed] for epoch in range(4)]
    loader = leat.torch.DataLoader(pipeline.feed(seed=1), fields=("x",))
    for epoch in (2, 2, 3, 0):
        loader.sampler.set_epoch(epoch)
        assert [x.tolist() for x, in loader] == orders[epoch]
        next(iter(loader))  # a look at a batch does no harm
    assert len(loader.sampler) == 100
    loader.sampler.set_epoch(1)
    for i, (x,) in enumerate(loader):
        if i == 3:
            break
    state = loader.state_dict()
    for other in (leat.torch.DataLoader(pipeline.feed(), fields=("x",)), loader):  # a new one, and one in use
        other.load_state_dict(state)
        other.sampler.set_epoch(1)  # which is gone on with, and not begun anew
        assert [x.tolist() for x, in other] == orders[1][4:]
        other.sampler.set_epoch(2)
        assert [x.tolist() for x, in other] == orders[2]


RANKS = """
import json, sys, numpy as np, torch.distributed as distributed
import leat
early = leat.torch.DataLoader(leat.array(x=np.arange(103)).shuffle().batch(10).feed(seed=1))
distributed.init_process_group("gloo")
feed = leat.array(x=np.arange(103)).shuffle().batch(10).feed(seed=1)
epochs = [[batch["x"][batch.valid].tolist() for batch in feed] for _ in range(2)]
epochs.append([batch["x"].tolist() for batch in feed.steps(4)])
loaded = [batch["x"].tolist() for batch in early]
with open(f"{sys.argv[1]}/{distributed.get_rank()}.json", "w") as out:
    json.dump({"epochs": epochs, "state": feed.state_dict(), "length": len(feed), "loaded": loaded}, out)
distributed.barrier()
distributed.destroy_process_group()
"""


def test_two_processes_of_torchrun_share_every_epoch(tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", script,
                           tmp_path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180)
    assert done.returncode == 0, done.stdout
    one, two = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert one["length"] == two["length"] == 11 and one["state"] == two["state"]
    alone = leat.array(x=np.arange(103)).shuffle().batch(10).feed(seed=1)
    straight = [[batch["x"].tolist() for batch in alone] for _ in range(3)]
    for rank in (one, two):
        assert [len(epoch) for epoch in rank["epochs"]] == [11, 11, 4]  # also where the last batch is short
    for epoch, parts in enumerate(zip(one["epochs"], two["epochs"])):
        both = [first + second for first, second in zip(*parts)]
        assert both == straight[epoch][:len(both)]  # nothing is missing, nothing twice
    # The loader that was open before torch.distributed was has its part of the first epoch, too.
    assert one["loaded"][:10] == one["epochs"][0][:10] and two["loaded"][:10] == two["epochs"][0][:10]
    # One process goes on where two had come to.
    rest = leat.array(x=np.arange(103)).shuffle().batch(10).feed()
    rest.load_state_dict(one["state"])
    assert [batch["x"].tolist() for batch in rest] == straight[2][4:]


def test_initialised_distributed_beats_the_environment(numbers, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    assert next(iter(numbers.batch(10).feed()))["x"].tolist() == [5, 6, 7, 8, 9]
    assert numbers.batch(10).feed().batch_size == 5


# ---- JAX ----

def test_jax_arrays_lie_over_the_same_memory(images):
    pytest.importorskip("jax")
    batch = next(iter(images.batch(8).feed()))
    arrays = leat.jax.arrays(batch)
    assert arrays["image"].unsafe_buffer_pointer() == batch["image"].ctypes.data
    assert arrays["image"].shape == (8, 16, 16, 3)
    assert (np.asarray(arrays["label"]) == batch["label"]).all()


def test_jax_arrays_hold_their_batch(numbers):
    pytest.importorskip("jax")
    feed = numbers.cast("float32", field="y").batch(10).feed()
    kept = [batch["y"] for batch, _ in zip(feed.jax(), range(3))]
    for batch in feed:
        pass
    feed.close()
    assert [value[0, 0] for value in kept] == [0, 10, 20]


def test_jax_has_ragged_fields(cells):
    pytest.importorskip("jax")
    field = next(iter(leat.folder(cells / "cells").batch(4).feed().jax()))["image"]
    assert isinstance(field, leat.Ragged) and field[0][0] == 0xFF


# ---- TensorFlow ----

def test_tensorflow_tensors_lie_over_the_same_memory(images):
    pytest.importorskip("tensorflow")
    batch = next(iter(images.batch(8).feed()))
    tensors = leat.tensorflow.tensors(batch)
    batch["image"][0, 0, 0, 0] = 42
    assert float(tensors["image"][0, 0, 0, 0]) == 42
    assert (tensors["label"].numpy() == batch["label"]).all()


def test_tensorflow_dataset(numbers, cells):
    tf = pytest.importorskip("tensorflow")
    view = numbers.batch(10).feed().tensorflow()
    dataset = view.dataset("x", "y")
    assert int(dataset.cardinality()) == 10
    assert dataset.element_spec[1].shape.as_list() == [None, 2]
    for epoch in range(2):
        assert [int(x[0]) for x, y in dataset] == list(range(0, 100, 10))
    for x, y in dataset:
        break
    assert len(list(dataset)) == 10  # a pass that was left early is not gone on with
    texts = next(iter(leat.folder(cells / "cells").batch(4).feed().tensorflow().dataset()))
    assert texts["image"].dtype == tf.string and texts["image"].numpy()[0][:2] == b"\xff\xd8"
    with pytest.raises(leat.InvalidError, match="no field 'z'"):
        view.dataset("z")
    with pytest.raises(leat.InvalidError, match="resize"):
        next(iter(leat.folder(cells / "cells").decode().batch(4).feed().tensorflow()))


def test_frameworks_are_not_loaded_before_they_are_asked_for(python):
    assert python("""
import sys, leat
print([name for name in ("numpy", "torch", "jax", "tensorflow") if name in sys.modules])
""") == "[]\n"


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow"])
def test_a_framework_that_is_missing_is_named(python, name):
    assert python(f"""
import sys, leat
sys.modules["{name}"] = None
try:
    leat.{name}.tensors
except ModuleNotFoundError as missing:
    print(missing, missing.name)
""") == f"leat.{name} needs {name}: pip install {name} {name}\n"


def test_the_command_comes_with_the_package(build):
    out = subprocess.run([sys.executable, "-m", "leat", "--version"], stdout=subprocess.PIPE, text=True)
    assert out.stdout.strip() == f"leat {leat.__version__}"
    assert pathlib.Path(leat.__file__).exists()
