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
from test_lightning import Notes, lightning, loader, trainer
early = loader()
class Data(lightning.LightningDataModule):
    def train_dataloader(self):
        return loader()
model = Notes()
runner = trainer(strategy="ddp", devices=2, max_epochs=2, use_distributed_sampler={sampler})
runner.fit(model, **({{"datamodule": Data()}} if {late} else {{"train_dataloaders": early}}))
np.save(f"{{sys.argv[1]}}/{{runner.global_rank}}.npy", model.seen)
"""


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
