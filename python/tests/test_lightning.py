"""Lightning's Trainer takes leat.torch.DataLoader as it takes PyTorch's own."""
import os
import subprocess
import sys

import numpy as np
import pytest

import leat

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


class Notes(lightning.LightningModule):
    """Learns nothing, and keeps which samples it saw: one list for each step."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen, self.checked = [], []

    def training_step(self, batch, number):
        self.seen.append(batch[0].tolist())
        return self.layer(batch[0].float()[:, None]).mean()

    def validation_step(self, batch, number):
        self.checked.append(batch[0].tolist())

    def predict_step(self, batch, number):
        return batch[0].clone()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 1e-3)


def loader(shuffled=True, **options):
    numbers = leat.array(x=np.arange(60))
    feed = (numbers.shuffle() if shuffled else numbers).batch(10).feed(seed=1, **options)
    return leat.torch.DataLoader(feed, fields=("x",))


def trainer(**options):
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
             "enable_model_summary": False, "accelerator": "cpu"}
    return lightning.Trainer(**{**quiet, **options})


def fit(checkpoint=None, valid=None, **options):
    model = Notes()
    trainer(**options).fit(model, loader(), valid, ckpt_path=checkpoint)
    return model


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """Three epochs of six steps without a break, and a checkpoint after each step and each epoch."""
    folder = tmp_path_factory.mktemp("checkpoints")
    save = [lightning.pytorch.callbacks.ModelCheckpoint(folder, "{step}", every_n_train_steps=1, save_top_k=-1),
            lightning.pytorch.callbacks.ModelCheckpoint(folder, "{epoch}-end", save_top_k=-1,
                                                        save_on_train_epoch_end=True)]
    return folder, fit(max_epochs=3, callbacks=save, enable_checkpointing=True).seen


def test_every_epoch_is_whole_and_in_its_own_order(straight):
    _, seen = straight
    epochs = [sum(seen[i:i + 6], []) for i in (0, 6, 12)]
    assert len(seen) == 18 and all(sorted(epoch) == list(range(60)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


@pytest.mark.parametrize("step", [1, 4, 5, 6, 7, 12, 17])
@pytest.mark.parametrize("until", [{"max_epochs": 3}, {"max_steps": 18}], ids=["epochs", "steps"])
def test_goes_on_behind_the_step_of_a_checkpoint(straight, step, until):
    folder, seen = straight
    assert fit(checkpoint=folder / f"step={step}.ckpt", **until).seen == seen[step:]


@pytest.mark.parametrize("epoch", [0, 1])
def test_goes_on_behind_the_epoch_of_a_checkpoint(straight, epoch):
    folder, seen = straight
    assert fit(checkpoint=folder / f"epoch={epoch}-end.ckpt", max_epochs=3).seen == seen[6 * (epoch + 1):]


def test_checkpoints_need_no_pickled_classes(straight):
    state = torch.load(straight[0] / "step=4.ckpt", weights_only=True)
    assert state["loops"]["fit_loop"]["state_dict"]["combined_loader"][0]["position"] == 40


def test_an_epoch_that_is_cut_short_is_not_gone_on_with(straight):
    seen = fit(max_epochs=3, limit_train_batches=2).seen
    assert seen == [straight[1][i] for i in (0, 1, 6, 7, 12, 13)]


def test_validation_sees_the_same_samples_every_time():
    model = fit(valid=loader(shuffled=False), max_epochs=2, num_sanity_val_steps=2, limit_val_batches=3)
    assert model.checked == [list(range(i, i + 10)) for i in (0, 10, 0, 10, 20, 0, 10, 20)]


def test_validating_testing_and_predicting():
    ordered = loader(shuffled=False)
    assert torch.cat(trainer().predict(Notes(), ordered)).tolist() == list(range(60))
    model = Notes()
    trainer().validate(model, ordered, verbose=False)
    assert sum(model.checked, []) == list(range(60))


def test_fast_dev_run_and_overfitting():
    assert len(fit(fast_dev_run=2).seen) == 2
    model = Notes()
    trainer(max_epochs=2, overfit_batches=2, limit_val_batches=0).fit(model, loader(shuffled=False))
    assert model.seen == [list(range(i, i + 10)) for i in (0, 10, 0, 10)]


def test_what_a_trainer_asks_a_loader():
    model, train = Notes(), loader()
    runner = trainer(max_epochs=1, val_check_interval=0.5)
    runner.fit(model, train, loader())
    assert runner.num_training_batches == len(train) == 6
    assert runner.train_dataloader is train and len(runner.train_dataloader.dataset) == 60
    assert len(model.checked) == 2 + 6 + 6  # the sanity check, and twice in the epoch


RANKS = """
import sys
import numpy as np, torch
sys.path.insert(0, {tests!r})
from test_lightning import Notes, Scored, lightning, loader, scored, trainer
early = loader()
class Data(lightning.LightningDataModule):
    def train_dataloader(self):
        return loader()
model = Notes()
runner = trainer(strategy="ddp", devices=2, max_epochs=2, use_distributed_sampler={sampler})
runner.fit(model, **({{"datamodule": Data()}} if {late} else {{"train_dataloaders": early}}))
np.save(f"{{sys.argv[1]}}/{{runner.global_rank}}.npy", model.seen)
scores = runner.validate(Scored(), scored(), verbose=False)
np.save(f"{{sys.argv[1]}}/scores{{runner.global_rank}}.npy", [scores[0]["accuracy"], scores[0]["count"]])
"""


class Scored(Notes):
    """Calls every number by its remainder of 3, and is scored with torchmetrics over all ranks."""

    def __init__(self):
        super().__init__()
        import torchmetrics

        self.accuracy, self.count = torchmetrics.MeanMetric(), torchmetrics.SumMetric()

    def validation_step(self, batch, number):
        x, y, valid = batch
        self.accuracy.update((x % 3 == y).float(), valid.float())  # a repeat weighs nothing
        self.count.update(valid)

    def on_validation_epoch_end(self):
        self.log_dict({"accuracy": self.accuracy.compute(), "count": self.count.compute()})


def scored():
    """53 samples: two ranks repeat some, or the only one has a short batch."""
    numbers = leat.array(x=np.arange(53), y=np.arange(53) % 7 % 3)
    return leat.torch.DataLoader(numbers.batch(10), fields=("x", "y", "valid"))


SCORE = [np.mean([i % 3 == i % 7 % 3 for i in range(53)]), 53]


def test_metrics_count_every_sample_once():
    pytest.importorskip("torchmetrics")
    scores = trainer().validate(Scored(), scored(), verbose=False)
    assert [scores[0]["accuracy"], scores[0]["count"]] == pytest.approx(SCORE)


@pytest.mark.parametrize("late, sampler", [(False, True), (True, False)], ids=["before", "in-a-hook"])
def test_two_ranks_share_every_batch(straight, tmp_path, late, sampler):
    """Lightning starts the second process itself, in the middle of fit: then the early loader is open already."""
    script = tmp_path / "ranks.py"
    script.write_text(RANKS.format(tests=os.path.dirname(__file__), late=late, sampler=sampler))
    done = subprocess.run([sys.executable, "-W", "ignore", script, tmp_path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=180)
    assert done.returncode == 0, done.stdout
    parts = np.concatenate([np.load(tmp_path / f"{rank}.npy") for rank in (0, 1)], axis=1)
    assert parts.tolist() == straight[1][:12]
    for rank in (0, 1):  # repeats are not scored
        assert np.load(tmp_path / f"scores{rank}.npy") == pytest.approx(SCORE)


# ---- predicting, metrics, Fabric ----

def test_predictions_come_with_the_numbers_of_their_samples():
    """What a BasePredictionWriter is given. Lightning rebuilds the loader for it."""
    class Writer(lightning.pytorch.callbacks.BasePredictionWriter):
        def write_on_batch_end(self, trainer, module, prediction, indices, batch, number, loader):
            written.append((prediction.tolist(), list(indices)))

    class Data(lightning.LightningDataModule):
        def predict_dataloader(self):
            return loader(shuffled=False)

    for data in (loader(shuffled=False), Data()):
        written = []
        trainer(callbacks=[Writer("batch")]).predict(Notes(), data)
        assert [indices for _, indices in written] == [list(range(i, i + 10)) for i in range(0, 60, 10)]
        assert all(prediction == indices for prediction, indices in written)


def test_the_trainer_keeps_the_loader():
    train, valid = loader(), loader(shuffled=False)
    runner = trainer(max_epochs=1)
    runner.fit(Notes(), train, valid)
    assert runner.train_dataloader is train and runner.val_dataloaders is valid


class Epochs:
    """A training script with Fabric: some epochs, from a checkpoint or the beginning."""

    def __init__(self, fabric, seed=1):
        self.fabric = fabric
        self.loader = fabric.setup_dataloaders(leat.torch.DataLoader(numbers(), fields="x", seed=seed))
        self.seen = []

    def run(self, first, end, save=None, path=None):
        for epoch in range(first, end):
            for x in self.loader:
                self.seen.append(x.tolist())
                if len(self.seen) == save:
                    self.fabric.save(path, {"loader": self.loader})
        return self.seen


def numbers():
    return leat.array(x=np.arange(60)).shuffle().batch(10)


@pytest.mark.parametrize("batches", [4, 6, 9, 12])
def test_fabric_resumes_after_any_batch(straight, tmp_path, batches):
    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    script = Epochs(fabric)
    assert script.run(0, 3, save=batches, path=tmp_path / "state.ckpt") == straight[1]
    resumed = Epochs(fabric, seed=7)
    assert resumed.loader._dataloader.__class__ is leat.torch.DataLoader
    fabric.load(tmp_path / "state.ckpt", {"loader": resumed.loader._dataloader})
    assert resumed.run((batches - 1) // 6, 3) == straight[1][batches:]


FABRIC = """
import sys
sys.path.insert(0, {tests!r})
from test_lightning import Epochs, lightning
fabric = lightning.Fabric(accelerator="cpu", devices=2, strategy="ddp")
fabric.launch()
script = Epochs(fabric)
script.run(0, 2, save=8, path=sys.argv[1])
resumed = Epochs(fabric, seed=7)
fabric.load(sys.argv[1], {{"loader": resumed.loader._dataloader}})
save(dict(seen=script.seen, resumed=resumed.run(1, 2), share=len(resumed.loader.sampler)))
"""


def test_fabric_with_two_ranks_shares_every_batch(straight, ranks, tmp_path):
    one, two = ranks(FABRIC.format(tests=os.path.dirname(__file__)), tmp_path / "state.ckpt")
    assert [first + second for first, second in zip(one["seen"], two["seen"])] == straight[1][:12]
    assert one["resumed"] == one["seen"][8:] and two["resumed"] == two["seen"][8:] and one["share"] == 30
