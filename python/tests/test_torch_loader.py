"""leat.torch.DataLoader in a script that was written for PyTorch's DataLoader: loops, checkpoints, arguments."""
import copy
import gc
import inspect
import json
import pickle

import numpy as np
import pytest

import leat

torch = pytest.importorskip("torch")


def pipeline(samples=50, **batch):
    return leat.array(x=np.arange(samples), y=np.arange(samples) % 3).shuffle().batch(10, **batch)


def loader(seed=1, fields="x", **batch):
    return leat.torch.DataLoader(pipeline(**batch), fields=fields, seed=seed)


def run(batches):
    return [x.tolist() for x in batches]


@pytest.fixture(scope="module")
def straight():
    """Four epochs without a break, five batches each."""
    whole = loader()
    return [run(whole) for _ in range(4)]


# ---- epochs ----

def test_every_epoch_has_every_sample_once_in_its_own_order(straight):
    assert all(sorted(sum(epoch, [])) == list(range(50)) for epoch in straight)
    assert len({str(epoch) for epoch in straight}) == 4


def test_the_same_seed_gives_the_same_batches_and_another_one_does_not(straight):
    assert run(loader(1)) == straight[0] != run(loader(2))


def test_a_loop_that_was_left_early_is_not_resumed(straight):
    cell = loader()
    for number in range(3):  # a cell of a notebook, run again and again
        for i, x in enumerate(cell):
            assert x.tolist() == straight[number][i]
            if i == 1:
                break
    assert run(cell) == straight[3]


def test_an_iterator_that_a_newer_loop_has_overtaken_fails(straight):
    both = loader()
    old, new = iter(both), iter(both)
    assert next(old).tolist() == straight[0][0] and next(new).tolist() == straight[1][0]
    with pytest.raises(leat.InvalidError, match="open a feed for each"):
        next(old)
    assert run(new) == straight[1][1:]


def test_loops_are_empty_after_the_last_epoch():
    limited = leat.torch.DataLoader(pipeline(), epochs=2)
    assert [len(list(limited)) for _ in range(4)] == [5, 5, 0, 0]


# ---- checkpoints ----

def stopped(epoch, batches, sets_epoch=True, seed=1):
    """The state of a script after this many batches of an epoch, as a checkpoint file holds it."""
    script = loader(seed)
    for number in range(epoch + 1):
        if sets_epoch:
            script.sampler.set_epoch(number)
        for i, _ in enumerate(script):
            if number == epoch and i + 1 == batches:
                return json.loads(json.dumps(script.state_dict()))


@pytest.mark.parametrize("sets_epoch", [False, True], ids=["", "set_epoch"])
@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("batches", [1, 2, 4, 5])
def test_a_script_resumes_after_any_batch(straight, epoch, batches, sets_epoch):
    """After the last batch of an epoch, too: the loop over the rest of that epoch is empty, then the next one comes."""
    script = loader(seed=7)
    script.load_state_dict(stopped(epoch, batches, sets_epoch))
    for number in range(epoch, 4):
        if sets_epoch:
            script.sampler.set_epoch(number)
        assert run(script) == straight[number][batches if number == epoch else 0:]


def test_a_fresh_process_resumes_after_the_last_batch(straight, python):
    out = python("""
import json, sys, numpy as np, leat
script = leat.torch.DataLoader(leat.array(x=np.arange(50), y=np.arange(50) % 3).shuffle().batch(10), fields="x")
script.load_state_dict(json.loads(sys.argv[1]))
epochs = []
for epoch in range(2):
    script.sampler.set_epoch(epoch)
    epochs.append([x.tolist() for x in script])
print(json.dumps(epochs))
""", json.dumps(stopped(0, 5)))
    assert json.loads(out) == [[], straight[1]]


@pytest.mark.parametrize("sets_epoch", [False, True], ids=["", "set_epoch"])
def test_a_checkpoint_between_epochs_starts_the_next_one(straight, sets_epoch):
    script = loader()
    run(script)
    other = loader(seed=7)
    other.load_state_dict(script.state_dict())
    if sets_epoch:
        other.sampler.set_epoch(1)
    assert run(other) == straight[1]


def test_a_checkpoint_before_the_first_batch_starts_at_the_beginning(straight):
    other = loader(seed=7)
    other.load_state_dict(loader().state_dict())
    assert run(other) == straight[0]


def test_a_script_that_counts_on_after_the_last_batch_gets_the_next_epoch(straight):
    script = loader(seed=7)
    script.load_state_dict(stopped(0, 5))
    script.sampler.set_epoch(1)
    assert run(script) == straight[1]


def test_a_script_that_counts_its_loops_since_it_was_started_goes_on_with_the_checkpoint(straight):
    """Lightning Fabric sets epoch 0 for the first loop, whatever was loaded."""
    for batches in (2, 5):
        script = loader(seed=7)
        script.load_state_dict(stopped(1, batches))
        for number in range(3):
            script.sampler.set_epoch(number)
            assert run(script) == straight[1 + number][batches if number == 0 else 0:]


def test_a_state_can_be_loaded_twice_and_by_a_loader_in_use(straight):
    state, script = stopped(1, 2), loader()
    for _ in range(2):
        script.load_state_dict(state)
        script.load_state_dict(state)
        assert run(script) == straight[1][2:]
        assert run(script) == straight[2]


def test_a_state_saved_right_after_loading_is_the_same():
    for batches in (2, 5):
        script = loader()
        script.load_state_dict(stopped(0, batches))
        assert script.state_dict() == stopped(0, batches)


def test_a_feed_resumes_where_a_loader_was(straight):
    for batches in (2, 5):
        feed = pipeline().feed()
        feed.load_state_dict(stopped(0, batches))
        assert [batch["x"].tolist() for batch in feed] == (straight[0][2:] if batches == 2 else straight[1])


def test_states_are_small_and_plain():
    assert len(json.dumps(stopped(0, 2))) < 1000
    assert torch.load(pickled(stopped(0, 5)), weights_only=True)["position"] == 50


def pickled(value):
    import io

    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_a_copy_of_a_loader_goes_on_where_it_was(straight):
    script = loader()
    for i, _ in enumerate(script):
        if i == 1:
            break
    for other in (pickle.loads(pickle.dumps(script)), copy.deepcopy(script)):
        assert run(other) == straight[1]
        other.feed.close()


# ---- what it yields ----

def test_fields_choose_dicts_tuples_or_one_tensor():
    batch = next(iter(loader(fields=None)))
    assert type(batch) is dict and list(batch) == ["x", "y"]
    y, x = next(iter(loader(fields=("y", "x"))))
    assert x.tolist() == batch["x"].tolist() and y.tolist() == batch["y"].tolist()
    assert next(iter(loader(fields="y"))).tolist() == y.tolist()


def test_fields_that_do_not_exist_are_named_at_once():
    with pytest.raises(leat.InvalidError, match="no field 'lable'.*image, label; did you mean 'label'"):
        images = leat.array(image=np.zeros((4, 2)), label=np.arange(4)).batch(2)
        leat.torch.DataLoader(images, fields=("image", "lable"))
    mapped = leat.array(x=np.arange(4)).batch(2).map_batch(lambda batch: {"z": batch["x"] + 1})
    assert next(iter(leat.torch.DataLoader(mapped, fields="z"))).tolist() == [1, 2]


def test_padding_cannot_be_taken_for_samples():
    padded = leat.array(x=np.arange(13)).batch(5, tail="pad")
    with pytest.raises(leat.InvalidError, match=r"tail=pad.*'valid'.*\('x', 'valid'\)"):
        leat.torch.DataLoader(padded, fields=("x",))
    with pytest.raises(leat.InvalidError, match="'valid'"):
        leat.torch.DataLoader(padded, fields="x")
    batches = list(leat.torch.DataLoader(padded, fields=("x", "valid")))
    assert torch.cat([x[valid] for x, valid in batches]).tolist() == list(range(13))
    assert batches[-1][1].tolist() == [True, True, True, False, False]
    assert sum(int(batch["valid"].sum()) for batch in leat.torch.DataLoader(padded)) == 13
    assert sum(int(batch["valid"].sum()) for batch in padded.feed().torch()) == 13


def test_valid_is_there_for_those_who_ask_even_if_all_rows_are():
    x, valid = next(iter(loader(fields=("x", "valid"))))
    assert valid.dtype == torch.bool and valid.all() and len(valid) == 10
    assert "valid" not in next(iter(loader(fields=None)))


# ---- construction ----

def test_feeds_pipelines_and_specs_make_a_loader(cells, straight):
    assert run(leat.torch.DataLoader(pipeline().feed(seed=1), fields="x")) == straight[0]
    spec = f"tfrecord('{cells}/cells-*.tfrecord') | example(image=bytes, label=int64) | batch(50)"
    opened = leat.torch.DataLoader(spec, fields="label", threads=1, seed=3)
    assert len(opened) == 4 and opened.feed.seed == 3 and next(iter(opened)).shape == (50,)
    with pytest.raises(leat.InvalidError, match=r"open already: pass seed to .feed\(\)"):
        leat.torch.DataLoader(pipeline().feed(), seed=1)
    with pytest.raises(leat.InvalidError, match="a feed, a pipeline or a spec, not TensorDataset"):
        leat.torch.DataLoader(torch.utils.data.TensorDataset(torch.zeros(3)))


def test_arguments_of_pytorchs_loader_are_answered_with_what_to_do():
    arguments = list(inspect.signature(torch.utils.data.DataLoader).parameters)[1:]
    assert {"batch_size", "shuffle", "num_workers", "collate_fn", "pin_memory", "drop_last"} <= set(arguments)
    for name in arguments:
        with pytest.raises(leat.InvalidError, match=f"no option '{name}': "):
            leat.torch.DataLoader(pipeline(), **{name: 1})
    for name, near in (("sed", "seed"), ("field", "fields")):
        with pytest.raises(leat.InvalidError, match=f"'{name}'.*did you mean '{near}'"):
            leat.torch.DataLoader(pipeline(), **{name: 1})


def test_it_is_a_data_loader_and_says_what_it_does():
    script = loader(samples=52)
    assert isinstance(script, torch.utils.data.DataLoader)
    told = {name: getattr(script, name) for name in ("num_workers", "pin_memory", "drop_last", "timeout", "batch_size",
                                                     "worker_init_fn", "multiprocessing_context", "generator",
                                                     "prefetch_factor", "persistent_workers", "pin_memory_device")}
    assert told == {"num_workers": 0, "pin_memory": False, "drop_last": False, "timeout": 0, "batch_size": 10,
                    "worker_init_fn": None, "multiprocessing_context": None, "generator": None,
                    "prefetch_factor": None, "persistent_workers": False, "pin_memory_device": ""}
    assert (len(script), len(script.sampler), len(script.dataset), len(script.batch_sampler)) == (6, 52, 52, 6)
    dropping = loader(samples=52, tail="drop")
    assert (dropping.drop_last, len(dropping), len(dropping.sampler), len(dropping.dataset)) == (True, 5, 50, 52)
    with pytest.raises(ValueError, match="sampler"):  # as in PyTorch, not silently
        script.sampler = torch.utils.data.SequentialSampler(range(3))
    with pytest.raises(leat.InvalidError, match="by index"):
        script.dataset[0]


def test_the_data_set_names_its_classes(cells):
    assert leat.torch.DataLoader(leat.folder(cells / "cells").batch(4)).dataset.classes == sorted(
        folder.name for folder in (cells / "cells").iterdir() if folder.is_dir())


def test_it_introduces_itself():
    script = loader(fields=("x", "y"))
    assert repr(script).startswith("<leat.torch.DataLoader of x, y: 5 batches of 10, ")
    assert repr(script).endswith(" | shuffle | batch(10), seed=1>")
    script.feed.close()
    assert repr(script) == "<leat.torch.DataLoader of x, y, closed>"
    assert "50 samples" in repr(loader().dataset)


def test_a_loader_that_is_dropped_closes_its_feed():
    script = loader()
    next(iter(script))
    handle = script.feed._handle
    del script
    gc.collect()
    assert handle.pointer is None


def test_a_plain_loader_over_its_samplers_gives_the_same_batches_and_jumps(straight):
    """What Accelerate and Ignite make of a loader: PyTorch's own, of its data set and chosen batches."""
    script = loader()

    class Skip(torch.utils.data.BatchSampler):
        def __init__(self, batches, count):
            self.batches, self.count = batches, count

        def __iter__(self):
            return (rows for i, rows in enumerate(self.batches) if i >= self.count)

    def plain(count):
        return torch.utils.data.DataLoader(script.dataset, batch_sampler=Skip(script.batch_sampler, count),
                                           collate_fn=script.collate_fn)

    assert run(plain(0)) == straight[0]
    assert run(plain(3)) == straight[1][3:]
    assert run(plain(5)) == []  # epoch 2, all of it
    assert run(script) == straight[3]
    assert [list(rows) for rows in loader().batch_sampler] == [list(range(i, i + 10)) for i in range(0, 50, 10)]


# ---- two ranks ----

RANKS = """
import os, torch, numpy as np, leat
from torch import distributed

def pipeline(tail, samples=103):
    return leat.array(x=np.arange(samples), y=np.arange(samples) % 7 % 3).batch(per_rank=8, tail=tail)

told = {name: os.environ.pop(name) for name in ("RANK", "WORLD_SIZE")}
early = leat.torch.DataLoader(pipeline("pad", 104), fields=("x", "y"))
os.environ.update(told)
distributed.init_process_group("gloo")
try:
    next(iter(early))
    late = None
except leat.InvalidError as error:
    late = str(error)

def validate(loader):
    # Top-1 of a model that calls every number by its remainder of 3, summed over ranks when all are done.
    right = seen = torch.tensor(0)
    numbers = []
    for x, y, *valid in loader:
        good = (x % 3 == y) & valid[0] if valid else x % 3 == y
        right, seen = right + good.sum(), seen + (valid[0].sum() if valid else len(x))
        numbers += (x[valid[0]] if valid else x).tolist()
    totals = torch.stack([right, seen])
    distributed.all_reduce(totals)
    return totals.tolist(), numbers

found = {}
for tail in ("exact", "wrap", "pad"):
    fields = ("x", "y") if tail == "exact" else ("x", "y", "valid")
    loader = leat.torch.DataLoader(pipeline(tail), fields=fields)
    # Scripts that look for samples that a sampler has left out must find none.
    none_left = len(loader.sampler) * distributed.get_world_size() >= len(loader.dataset)
    found[tail] = [*validate(loader), validate(loader)[0], none_left, len(loader.sampler)]
repeats = leat.torch.DataLoader(pipeline("wrap"), fields=("x", "y"))
found["repeats"] = validate(repeats)[0]
rows = [list(r) for r in leat.torch.DataLoader(pipeline("exact")).batch_sampler]
few = leat.torch.DataLoader(pipeline("exact", 17), fields="x")
states = [few.state_dict() for _ in few]
save(dict(found=found, late=late, rows=rows, states=[[s["epoch"], s["position"]] for s in states]))
distributed.barrier()
distributed.destroy_process_group()
"""


def test_validation_over_two_ranks_counts_every_sample_once(ranks):
    one, two = ranks(RANKS)
    right = sum(i % 3 == i % 7 % 3 for i in range(103))
    for tail in ("exact", "wrap", "pad"):
        for rank in (one, two):
            totals, _, again, none_left, share = rank["found"][tail]
            assert totals == again == [right, 103] and none_left and share == 52
        assert sorted(one["found"][tail][1] + two["found"][tail][1]) == list(range(103))
    assert one["found"]["repeats"][1] == 112  # as with a DistributedSampler, if one does not ask for valid
    assert "'valid'" in one["late"] and "'valid'" in two["late"]  # the feed was opened before there were ranks
    assert sum(one["rows"], []) == one["found"]["exact"][1] and sum(two["rows"], []) == two["found"]["exact"][1]
    # 17 samples: the second rank has no second batch, and yet its checkpoint is the same.
    assert one["states"] == [[0, 16], [0, 17]] and two["states"] == [[0, 17]]


def test_an_epoch_without_batches_is_an_empty_loop():
    empty = leat.torch.DataLoader(leat.array(x=np.arange(3)).batch(10, tail="drop"), fields="x")
    assert [list(empty), list(empty), len(empty), len(empty.sampler)] == [[], [], 0, 0]
