"""Hugging Face Accelerate and Trainer with leat.torch.DataLoader, beside what they do with PyTorch's."""
import numpy as np
import pytest

import leat

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")

SAMPLES = np.arange(100, dtype=np.float32).reshape(100, 1)


@pytest.fixture(autouse=True)
def fresh():
    yield
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerate.state.GradientState._reset_state()


def loader(seed=1, fields=("x",), pipeline=None):
    pipeline = pipeline or leat.array(x=SAMPLES).shuffle().batch(10)
    return leat.torch.DataLoader(pipeline, fields=fields, seed=seed)


def peer():
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.from_numpy(SAMPLES)), batch_size=10)


def start(data, accumulate=1):
    accelerator = accelerate.Accelerator(gradient_accumulation_steps=accumulate, cpu=True)
    model = torch.nn.Linear(1, 1)
    return accelerator, *accelerator.prepare(model, torch.optim.SGD(model.parameters(), 1e-4), data)


def train(accelerator, model, optimizer, batches):
    """One epoch: the optimizer steps taken, and the samples seen."""
    steps, seen = 0, []
    for x, in batches:
        with accelerator.accumulate(model):
            accelerator.backward(model(x).mean())
            optimizer.step()
            optimizer.zero_grad()
        steps += accelerator.sync_gradients
        seen.append(x.flatten().int().tolist())
    return steps, seen


def test_a_loader_is_prepared_as_it_is():
    data = loader()
    accelerator, _, _, prepared = start(data)
    assert prepared is data and accelerator.prepare(data) is data and accelerator.prepare_data_loader(data) is data
    assert accelerator._dataloaders == [data]


@pytest.mark.parametrize("accumulate, skip", [(1, 0), (3, 0), (3, 3), (4, 9), (5, 10)])
def test_gradients_accumulate_over_as_many_steps_as_with_pytorchs_loader(accumulate, skip):
    taken = []
    for data in (peer(), loader()):
        accelerator, model, optimizer, data = start(data, accumulate)
        some = accelerator.skip_first_batches(data, skip) if skip else data
        assert len(some) == 10 - skip
        taken.append([train(accelerator, model, optimizer, some)[0], train(accelerator, model, optimizer, data)[0]])
    assert taken[0] == taken[1]


def test_a_validation_loop_within_the_epoch_leaves_accumulation_alone():
    accelerator, model, _, data = start(loader(), 3)
    inner, flags = accelerator.prepare(loader()), []
    for _ in data:
        for _ in inner:
            pass
        for _ in inner:
            break
        with accelerator.accumulate(model):
            flags.append(accelerator.sync_gradients)
    assert flags == [i in (2, 5, 8, 9) for i in range(10)]
    assert not accelerator.gradient_state.in_dataloader


def test_skipping_jumps_and_reads_nothing(cells):
    records = leat.tfrecord(cells / "cells-*.tfrecord").example(image=bytes, label=int).batch(4).prefetch(1)
    data = loader(pipeline=records, fields="label")
    whole = [label.tolist() for label in data]
    accelerator = accelerate.Accelerator(cpu=True)
    data = accelerator.prepare(loader(pipeline=records, fields="label"))
    some = accelerator.skip_first_batches(data, 45)
    before = data.feed.stats()["samples"]
    assert [label.tolist() for label in some] == whole[45:]
    assert data.feed.stats()["samples"] - before == 20


@pytest.mark.parametrize("batches", [1, 9, 10])
@pytest.mark.parametrize("skips", [False, True], ids=["state", "skip"])
def test_a_script_resumes_from_save_state(tmp_path, batches, skips):
    """`load_state` restores the loader. Scripts that skip the batches seen, as Accelerate's examples do, are right, too."""
    accelerator, model, optimizer, data = start(loader())
    straight = [train(accelerator, model, optimizer, data)[1] for _ in range(3)]
    accelerator, model, optimizer, data = start(loader())
    train(accelerator, model, optimizer, data)
    for i, _ in enumerate(data):
        if i + 1 == batches:
            accelerator.save_state(tmp_path / "state")
            break
    accelerator, model, optimizer, data = start(loader(seed=7))
    accelerator.load_state(tmp_path / "state")
    epoch, done = divmod(10 + batches, 10) if skips else (1, batches)
    some = accelerator.skip_first_batches(data, done) if skips else data
    assert train(accelerator, model, optimizer, some)[1] == straight[epoch][done:]
    for later in straight[epoch + 1:]:
        assert train(accelerator, model, optimizer, data)[1] == later


# ---- two processes ----

RANKS = """
import sys, numpy as np, torch, accelerate, leat
numbers = leat.array(x=np.arange(103, dtype=np.float32).reshape(103, 1))
early = leat.torch.DataLoader(numbers.shuffle().batch(10), fields=("x", "valid"), seed=1)
accelerator = accelerate.Accelerator(gradient_accumulation_steps=4, cpu=True)
assert accelerator.num_processes == 2
model = torch.nn.Linear(1, 1)
model, optimizer, train = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 1e-4), early)
assert train is early
steps, seen = 0, []
for epoch in range(2):
    for x, valid in train:
        with accelerator.accumulate(model):
            accelerator.backward((model(x)[:, 0] * valid).mean())
            optimizer.step()
            optimizer.zero_grad()
        steps += accelerator.sync_gradients
        seen.append(x[valid].flatten().int().tolist())
        if (epoch, len(seen)) == (1, 14):
            accelerator.save_state(sys.argv[1])
fresh = leat.torch.DataLoader(numbers.shuffle().batch(10), fields=("x", "valid"), seed=7)
fresh = accelerator.prepare(fresh)
skipped = accelerator.skip_first_batches(fresh, 9)
skipped = [x[valid].flatten().int().tolist() for x, valid in skipped]
accelerator._dataloaders = [fresh]
accelerator.load_state(sys.argv[1])
resumed = [x[valid].flatten().int().tolist() for x, valid in fresh]
gathered = []
for x, valid in accelerator.prepare(leat.torch.DataLoader(numbers.batch(10), fields=("x", "valid"))):
    gathered += accelerator.gather_for_metrics(x).flatten().int().tolist()
share = len(train.sampler), len(train), train.batch_size, train.total_batch_size, len(train.dataset)
save(dict(steps=steps, seen=seen, gathered=gathered, resumed=resumed, skipped=skipped, share=share))
accelerator.wait_for_everyone()
torch.distributed.destroy_process_group()
"""


def test_two_processes_see_every_sample_once_and_resume(ranks, tmp_path):
    one, two = ranks(RANKS, tmp_path / "state")
    alone = leat.array(x=np.arange(103)).shuffle().batch(10).feed(seed=1)
    straight = [[batch["x"].tolist() for batch in alone] for _ in range(2)]
    assert [first + second for first, second in zip(one["seen"], two["seen"])] == straight[0] + straight[1]
    assert one["steps"] == two["steps"] == 6  # 11 batches: two of four and one of three, in each epoch
    assert one["resumed"] == one["seen"][14:] and two["resumed"] == two["seen"][14:]
    other = leat.array(x=np.arange(103)).shuffle().batch(10).feed(seed=7)
    assert [first + second for first, second in zip(one["skipped"], two["skipped"])] == [
        batch["x"].tolist() for batch in other][9:]
    assert one["gathered"] == two["gathered"] == list(range(103))  # without padding
    assert one["share"] == two["share"] == [52, 11, 5, 10, 103]


# ---- Trainer ----

class Notes(torch.nn.Module):
    """Learns nothing, and keeps which samples it saw."""

    def __init__(self):
        super().__init__()
        self.layer, self.seen, self.checked = torch.nn.Linear(1, 1), [], []

    def forward(self, x, valid=None, labels=None):
        (self.seen if self.training else self.checked).append(x.flatten().int().tolist())
        out = self.layer(x)
        return {"loss": out.mean(), "logits": out}


def trainer(folder, model, **options):
    transformers = pytest.importorskip("transformers")

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return self.accelerator.prepare(loader(fields=None))

        def get_eval_dataloader(self, dataset=None):
            return self.accelerator.prepare(loader(fields=None, pipeline=leat.array(x=SAMPLES, labels=SAMPLES).batch(30)))

    arguments = transformers.TrainingArguments(folder, use_cpu=True, report_to=[], disable_tqdm=True, save_steps=1,
                                               num_train_epochs=2, logging_steps=1000, save_strategy="steps", **options)
    return Trainer(model, arguments, compute_metrics=lambda out: {"count": len(out.predictions)})


@pytest.mark.parametrize("accumulate", [1, 3])
def test_trainer_resumes_at_any_step(tmp_path, accumulate):
    model = Notes()
    whole = trainer(tmp_path, model, gradient_accumulation_steps=accumulate)
    whole.train()
    assert whole.state.global_step == {1: 20, 3: 8}[accumulate]
    assert [sorted(sum(model.seen[i:i + 10], [])) for i in (0, 10)] == [list(range(100))] * 2
    for step, batches in {1: [(3, 3), (10, 10), (14, 14)], 3: [(2, 6), (6, 16)]}[accumulate]:
        resumed = Notes()
        trainer(tmp_path, resumed, gradient_accumulation_steps=accumulate).train(
            resume_from_checkpoint=str(tmp_path / f"checkpoint-{step}"))
        assert resumed.seen == model.seen[batches:]


def test_trainer_evaluates_every_sample_once(tmp_path):
    model = Notes()
    metrics = trainer(tmp_path, model).evaluate()
    assert sum(model.checked, []) == list(range(100)) and metrics["eval_count"] == 100
