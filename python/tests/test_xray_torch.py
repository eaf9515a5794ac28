"""leat.xray on PyTorch's DataLoader: what its worker processes do, and that nothing is left behind."""
import multiprocessing
import os
import time

import pytest

import leat

torch = pytest.importorskip("torch")
data = torch.utils.data

SLEPT = multiprocessing.Value("d", 0.0)  # seconds that the planted transform took in fact, in all processes


class Slow:
    """The planted stall: sleeps, and notes for how long in fact: a busy machine sleeps longer than it was told."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, x):
        begin = time.monotonic()
        time.sleep(self.seconds)
        with SLEPT.get_lock():
            SLEPT.value += time.monotonic() - begin
        return x


class Double:
    def __call__(self, x):
        return x * 2


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


def add_one(x):
    return x + 1


class Numbers(data.Dataset):
    def __init__(self, count=64, *transforms):
        self.count, self.transform = count, Compose(list(transforms))

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i >= self.count:
            raise IndexError(i)
        return self.transform(torch.full((3,), float(i))), i


class Stream(data.IterableDataset):
    def __iter__(self):
        for i in range(20):
            time.sleep(0.002)
            yield torch.tensor(float(i))


def cost(found, name):
    return next(stage["per_sample_ms"] for stage in found.stages if stage["name"] == name)


# ---- inside workers ----

@pytest.mark.parametrize("workers", [0, 2])
def test_a_planted_transform_of_20_ms_is_reported(workers):
    SLEPT.value = 0
    loader = data.DataLoader(Numbers(64, Double(), Slow(0.02), add_one), batch_size=4, num_workers=workers)
    found = leat.xray(loader, lambda batch: time.sleep(0.001))
    slept = 1000 * SLEPT.value / 64
    assert slept >= 20 and cost(found, "Slow") == pytest.approx(slept, rel=0.1)
    assert found.limit == "transform Slow" and "transform Slow" in found.sentence
    assert {(stage["tag"], stage["name"]) for stage in found.stages} == {
        ("fetch", "Numbers"), ("transform", "Double"), ("transform", "Slow"), ("transform", "add_one"),
        ("collate", "default_collate")}
    assert cost(found, "Double") < 1 and found.stages[0]["share"] > 0.9
    lanes = [lane.name for lane in found._lanes]
    assert lanes == (["main", "worker 0", "worker 1"] if workers else ["main", "data set"])
    assert sum(len(lane) for lane in found._lanes[1:]) == 64 * 4 + 16


def test_the_rate_of_sleeping_workers_and_what_a_perfect_loader_brings():
    """2 workers that need 20 ms for a sample give 100 samples/s; the step could take 4 of them in 10 ms."""
    SLEPT.value, steps = 0, []

    def step(batch):
        begin = time.monotonic()
        time.sleep(0.01)
        steps.append(time.monotonic() - begin)

    found = leat.xray(data.DataLoader(Numbers(96, Slow(0.02)), batch_size=4, num_workers=2), step)
    assert found.loader_per_s == pytest.approx(2 * 96 / SLEPT.value, rel=0.15) and found.loader_per_s <= 100
    alone = steps[25:]  # after 24 batches, and a first one that does not count
    assert found.perfect_loader["samples_per_s"] == pytest.approx(4 * len(alone) / sum(alone), rel=0.1)
    assert found.perfect_loader["speedup"] == found.perfect_loader["samples_per_s"] / found.samples_per_s > 2


def test_spans_of_a_sample_lie_inside_each_other():
    loader = data.DataLoader(Numbers(8, Slow(0.002), Double()), batch_size=4, num_workers=1)
    found = leat.xray(loader, lambda batch: None)
    lane = list(found._lanes[1])
    fetches = [span for span in lane if span.tag == 3]
    assert [span.item for span in fetches] == list(range(8))
    for span in lane:
        if span.tag == 5:
            assert sum(f.begin <= span.begin and span.end <= f.end for f in fetches) == 1
    begin, end = min(s.begin for s in found._lanes[0]), max(s.end for s in found._lanes[0])
    assert all(begin - 5e9 < span.begin and span.end < end + 5e9 for span in lane)  # the same clock


@pytest.mark.parametrize("make", [
    lambda: data.DataLoader(Stream(), batch_size=4, num_workers=1),
    lambda: data.DataLoader(Stream(), batch_size=4),
    lambda: data.DataLoader(data.Subset(Numbers(40, Double()), range(20)), batch_size=4, num_workers=1),
    lambda: data.DataLoader(data.ConcatDataset([Numbers(10, Double()), Numbers(10, add_one)]), batch_size=4),
    lambda: data.DataLoader(Numbers(20), batch_size=None, num_workers=1),
    lambda: data.DataLoader(Numbers(20), batch_size=4, num_workers=1, persistent_workers=True),
    lambda: data.DataLoader(list(range(20)), batch_size=4, num_workers=1),
], ids=["stream", "stream-here", "subset", "concat", "unbatched", "persistent", "list"])
def test_loaders_of_all_kinds_give_what_they_gave(make):
    plain, seen = [repr(batch) for batch in make()], []
    loader = make()
    found = leat.xray(loader, lambda batch: seen.append(repr(batch)), keep=1)
    assert seen[:len(plain)] == plain and found.batches == len(plain)
    assert any(stage["tag"] in ("fetch", "collate") for stage in found.stages)
    assert [repr(batch) for batch in loader] == plain  # and it works as before


class Outer(data.Dataset):
    """Works itself before it asks the data set in it."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, i):
        time.sleep(0.01)
        return self.dataset[i]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_set_around_another_is_timed_itself(workers):
    found = leat.xray(data.DataLoader(Outer(Numbers(12)), batch_size=4, num_workers=workers))
    assert cost(found, "Outer") >= 10 and sum(stage["tag"] == "fetch" for stage in found.stages) == 2


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_is_timed(workers):
    loader = data.DataLoader(Stream(), batch_size=4, num_workers=workers)
    watched = leat.watch(loader)
    assert len([batch for batch in watched]) == 5
    for found in (leat.xray(loader), watched.result()):
        assert cost(found, "Stream") >= 2
    assert type(loader.dataset) is Stream


def test_the_end_of_a_stream_is_no_batch(tmp_path):
    from leat._watch_worker import WorkerCalls

    def ends():
        raise StopIteration

    calls = WorkerCalls(str(tmp_path), 0, limit=10)
    assert calls.batch(int) == 0
    with pytest.raises(StopIteration):
        calls.batch(ends)
    assert calls.batches == 1


class Closed(type):
    """A metaclass that allows no subclasses, as those of compiled classes do."""

    def __new__(kind, name, bases, space):
        if any(isinstance(base, Closed) for base in bases):
            raise TypeError("final")
        return super().__new__(kind, name, bases, space)


class Final(metaclass=Closed):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        time.sleep(0.005)
        return i


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_set_that_cannot_be_timed_is_what_the_others_are_not(workers):
    found = leat.xray(data.DataLoader(Final(), batch_size=4, num_workers=workers))
    assert cost(found, "data set") >= 5


def test_data_pipes_give_what_they_gave():
    pipes = pytest.importorskip("torch.utils.data.datapipes.iter")
    pipe = pipes.IterableWrapper(range(8))
    for workers in (0, 1):
        loader = data.DataLoader(pipe, batch_size=4, num_workers=workers)
        plain = [batch.tolist() for batch in loader]
        found = leat.xray(loader)
        assert found.batches == len(plain) and [batch.tolist() for batch in loader] == plain


def test_workers_that_are_spawned():
    loader = data.DataLoader(Numbers(8, Double()), batch_size=4, num_workers=1, multiprocessing_context="spawn",
                             worker_init_fn=int)
    found = leat.xray(loader)
    assert found.samples == 8 and {"Numbers", "Double"} <= {stage["name"] for stage in found.stages}


def test_the_same_transform_twice_has_two_names():
    loader = data.DataLoader(Numbers(8, Double(), Double(), add_one, add_one), batch_size=4, num_workers=1)
    names = {stage["name"] for stage in leat.xray(loader).stages}
    assert {"Double", "Double 2", "add_one", "add_one 2"} <= names


def test_a_decoder_is_seen(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("PIL.ImageFile")
    image.new("RGB", (64, 64), (1, 2, 3)).save(tmp_path / "a.jpg")

    class Photos(data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            return torch.tensor(image.open(tmp_path / "a.jpg").convert("RGB").size)

    found = leat.xray(data.DataLoader(Photos(), batch_size=4, num_workers=1))
    assert next(stage["calls"] for stage in found.stages if stage["tag"] == "decode") == 8


def test_spans_of_a_worker_are_bounded(tmp_path):
    from leat._watch_worker import WorkerCalls, read_worker

    calls = WorkerCalls(str(tmp_path), 3, limit=10)
    for i in range(25):
        calls.timed(3, "x", i, 1, int)
    calls.write(ended=True)
    state, spans = read_worker(str(tmp_path), f"3-{os.getpid()}")
    assert len(spans) == 10 and state["dropped"] == 15 and state["ended"]
    assert state["totals"][3, "x"].calls == 25
    (tmp_path / f"3-{os.getpid()}.spans").write_bytes(b"torn")
    assert read_worker(str(tmp_path), f"3-{os.getpid()}")[1] == []
    for path in tmp_path.iterdir():
        path.unlink()
    tmp_path.rmdir()
    calls.write()  # nobody watches any more
    assert not calls.on and calls.batch(int) == 0 and calls.timed(3, "x", 0, 1, int) == 0


def test_an_error_in_a_worker_is_the_users(tmp_path):
    class Broken(Numbers):
        def __getitem__(self, i):
            raise KeyError("my own")

    dataset = Broken(8)
    for workers in (0, 1):
        with pytest.raises(KeyError, match="my own"):
            leat.xray(data.DataLoader(dataset, batch_size=4, num_workers=workers))
    assert type(dataset) is Broken


# ---- as it was ----

def test_loader_and_data_set_are_as_before():
    double, own = Double(), lambda worker: None
    dataset = Numbers(16, double, add_one)
    loader = data.DataLoader(dataset, batch_size=4, worker_init_fn=own)
    before, collate = dict(vars(dataset)), loader.collate_fn
    leat.xray(loader)
    assert type(dataset) is Numbers and type(double) is Double and dataset.transform.transforms == [double, add_one]
    assert vars(dataset) == before and loader.collate_fn is collate and loader.worker_init_fn is own


def test_what_the_program_changes_meanwhile_stays():
    def twice(x):
        return x * 2

    changed, grown = Numbers(16, add_one), Numbers(16, add_one)
    for i, _ in enumerate(zip(leat.watch(data.DataLoader(changed)), leat.watch(data.DataLoader(grown)))):
        if i == 1:
            changed.transform = twice
            grown.transform.transforms.insert(0, twice)
    assert changed.transform is twice and grown.transform.transforms == [twice, add_one]


def test_persistent_workers_are_left_alone():
    loader = data.DataLoader(Numbers(16), batch_size=4, num_workers=1, persistent_workers=True)
    list(loader)
    iterator = loader._iterator
    found = leat.xray(loader)
    assert loader._iterator is iterator and iterator._workers[0].is_alive() and found.stages
    assert len(list(loader)) == 4


def test_model_optimizer_and_random_state_are_as_before():
    model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.BatchNorm1d(1), torch.nn.Dropout())
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    loader = data.DataLoader(Numbers(32), batch_size=4, shuffle=True)

    def step(batch):
        model.train()
        optimizer.zero_grad()
        model(batch[0]).sum().backward()
        optimizer.step()

    model.eval()
    torch.manual_seed(5)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    expected = [batch[1].tolist() for batch in loader]
    torch.manual_seed(5)
    found = leat.xray(loader, step)
    assert found.batches == 8
    assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())
    assert not optimizer.state_dict()["state"] and not model.training and model[0].weight.grad is None
    assert [batch[1].tolist() for batch in loader] == expected  # the same shuffle as without the x-ray


def test_a_generator_of_the_loader_is_as_before():
    def make():
        return data.DataLoader(Numbers(32), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3))

    loader = make()
    leat.xray(loader)
    assert [b[1].tolist() for b in loader] == [b[1].tolist() for b in make()]


def test_a_batch_samplers_generator_is_as_before():
    def make():
        sampler = data.RandomSampler(range(32), generator=torch.Generator().manual_seed(3))
        return data.DataLoader(Numbers(32), batch_sampler=data.BatchSampler(sampler, 4, False))

    loader = make()
    leat.xray(loader)
    assert [b[1].tolist() for b in loader] == [b[1].tolist() for b in make()]


# ---- watch ----

@pytest.mark.parametrize("persistent", [False, True])
def test_watch_sees_the_workers_of_every_epoch(persistent):
    loader = data.DataLoader(Numbers(16, Slow(0.005)), batch_size=4, num_workers=2, persistent_workers=persistent)
    watched = leat.watch(loader)
    seen = [batch[1].tolist() for _ in range(3) for batch in watched]
    time.sleep(0.3)  # persistent workers write their totals at the next batch
    assert seen == [list(range(i, i + 4)) for i in range(0, 16, 4)] * 3
    found = watched.result()
    assert found.limit == "transform Slow"
    if not persistent:
        slow = next(stage for stage in found.stages if stage["name"] == "Slow")
        assert slow["calls"] == 48 and watched.result().stages == found.stages


def test_two_watched_loops_at_once():
    """zip ends the first loop first: what it undoes must not be what the second one did."""
    image_file = pytest.importorskip("PIL.ImageFile")
    load, shared = image_file.ImageFile.load, Numbers(16, Slow(0.001))
    one, two = (leat.watch(data.DataLoader(shared, batch_size=4)) for _ in range(2))
    for _ in range(2):
        for a, b in zip(one, two):
            assert a[1].tolist() == b[1].tolist()
    for watched in (one, two):
        slow = next(stage for stage in watched.result().stages if stage["name"] == "Slow")
        assert slow["calls"] == 32  # and not those of the other loop
    assert image_file.ImageFile.load is load and type(shared) is Numbers
    assert type(shared.transform.transforms[0]) is Slow and not leat._watch._running()


def test_watch_has_the_attributes_of_the_loader():
    loader = data.DataLoader(Numbers(16), batch_size=4)
    assert leat.watch(loader).sampler is loader.sampler and leat.watch(loader).batch_size == 4
    with pytest.raises(AttributeError, match="samplers"):
        leat.watch(loader).samplers


def test_leats_loader_has_no_workers():
    import numpy as np

    loader = leat.torch.DataLoader(leat.array(x=np.arange(40)).batch(10), fields="x")
    found = leat.xray(loader, lambda batch: time.sleep(0.001))
    assert found.samples == 40 and found.stages == [] and "feed" in found.figures
    assert [batch.tolist() for batch in loader] == [list(range(i, i + 10)) for i in range(0, 40, 10)]


def leats():
    import numpy as np

    return leat.torch.DataLoader(leat.array(x=np.arange(40)).shuffle().batch(10), fields="x", seed=2)


@pytest.mark.parametrize("before", [
    lambda loader: None,
    lambda loader: loader.set_epoch(3),
    lambda loader: loader.load_state_dict(dict(loader.state_dict(), epoch=2, position=20)),
    lambda loader: list(loader),
    lambda loader: next(iter(loader)),
], ids=["new", "set", "loaded", "ended", "left"])
def test_leats_loader_is_as_before(before):
    plain, loader = leats(), leats()
    for one in (plain, loader):
        before(one)
    leat.xray(loader)
    assert loader.state_dict() == plain.state_dict()
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == [batch.tolist() for batch in plain]
