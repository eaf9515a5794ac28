"""leat.lightning.XrayCallback gives the tags of the study from a real Trainer."""
import json
import time

import numpy as np
import pytest

import leat
from leat import _spans, _watch

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


class Slow:
    def __call__(self, x):
        time.sleep(0.02)
        return x


class Numbers(torch.utils.data.Dataset):
    def __init__(self, count, transform=None):
        self.count, self.transform = count, transform

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        x = torch.full((3,), float(i))
        return x if self.transform is None else self.transform(x)


class Module(lightning.LightningModule):
    def __init__(self, seconds):
        super().__init__()
        self.layer, self.seconds = torch.nn.Linear(3, 1), seconds

    def training_step(self, batch, number):
        time.sleep(self.seconds)
        return self.layer(batch.float()).mean()

    def validation_step(self, batch, number):
        time.sleep(0.05)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 1e-3)


def fit(callback, loader, seconds=0.01, valid=None, **options):
    trainer = lightning.Trainer(**{"max_epochs": 1, "logger": False, "enable_checkpointing": False, "accelerator": "cpu",
                                   "enable_progress_bar": False, "enable_model_summary": False, **options},
                                callbacks=[callback])
    before = trainer.profiler
    trainer.fit(Module(seconds), loader, valid)
    assert trainer.profiler is before and "leat" not in torch.utils.data.DataLoader.__iter__.__module__
    return callback.result()


def test_a_slow_transform_in_a_worker_is_the_limit(tmp_path):
    loader = torch.utils.data.DataLoader(Numbers(48, Slow()), batch_size=4, num_workers=2)
    found = fit(leat.lightning.XrayCallback(trace=tmp_path / "run.json"), loader, max_epochs=2)
    assert {part["name"] for part in found.parts} == {"Get next data", "Training batch to device", "Run training batch"}
    assert found.batches == 24 and found.samples == 96 and found.limit == "transform Slow"
    assert found.stages[0]["per_sample_ms"] >= 20 and found.stages[0]["calls"] == 96
    assert found.part("Run training batch")["ms"] >= 10 and found.wait_share > 0.3
    assert [epoch["samples"] for epoch in found.epochs] == [48, 48]
    events = json.loads((tmp_path / "run.json").read_text())
    names = [event["name"] for event in events if event["ph"] == "X"]
    assert names.count("Get next data") >= 24 and names.count("Run training batch") == 24
    assert names.count("Training batch to device") == 24 and names.count("Slow") == 96


def test_a_slow_step_is_the_limit_and_validation_is_nobodys_time(simulate):
    simulate(_spans, _watch, leat.lightning)
    loader = torch.utils.data.DataLoader(Numbers(40), batch_size=4)
    valid = torch.utils.data.DataLoader(Numbers(8), batch_size=4)
    found = fit(leat.lightning.XrayCallback(), loader, 0.03, valid, max_epochs=2)
    assert found.limit == "step" and found.samples == 80 and found.batches == 20
    assert found.utilisation == pytest.approx(1) and found.wait_share == 0 and found.seconds == pytest.approx(20 * 0.03)


def test_a_slow_data_set_is_the_limit(simulate):
    simulate(_spans, _watch, leat.lightning)
    found = fit(leat.lightning.XrayCallback(), torch.utils.data.DataLoader(Numbers(40, Slow()), batch_size=4), 0.02)
    assert found.limit == "transform Slow" and found.stages[0]["per_sample_ms"] == pytest.approx(20)
    assert found.wait_share == pytest.approx(0.8) and found.utilisation == pytest.approx(0.2)
    assert found.samples_per_s == pytest.approx(40) and found.loader_per_s == pytest.approx(50)


def test_a_data_set_without_workers_is_timed():
    data = Numbers(24, Slow())
    found = fit(leat.lightning.XrayCallback(), torch.utils.data.DataLoader(data, batch_size=4), max_epochs=2,
                valid=torch.utils.data.DataLoader(data, batch_size=4), num_sanity_val_steps=0)
    assert found.limit == "transform Slow" and found.stages[0]["calls"] == 48  # not those of validation
    assert found.stages[0]["per_sample_ms"] >= 20 and found.loader_per_s <= 50
    assert type(data) is Numbers and type(data.transform) is Slow


def test_leats_loader():
    loader = leat.torch.DataLoader(leat.array(x=np.zeros((60, 3), np.float32)).batch(10), fields="x")
    found = fit(leat.lightning.XrayCallback(), loader, 0.01, max_epochs=2)
    assert found.samples == 120 and found.stages == [] and "feed" in found.figures


def test_a_profiler_of_the_users_still_works():
    mine = lightning.pytorch.profilers.SimpleProfiler()
    fit(leat.lightning.XrayCallback(), torch.utils.data.DataLoader(Numbers(8), batch_size=4), profiler=mine)
    assert "run_training_batch" in mine.recorded_durations


def test_an_error_in_training_restores_the_trainer():
    class Broken(Module):
        def training_step(self, batch, number):
            raise KeyError("my own")

    callback = leat.lightning.XrayCallback()
    trainer = lightning.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, accelerator="cpu",
                                enable_progress_bar=False, enable_model_summary=False, callbacks=[callback])
    before = trainer.profiler
    with pytest.raises(KeyError, match="my own"):
        trainer.fit(Broken(0), torch.utils.data.DataLoader(Numbers(8), batch_size=4))
    assert trainer.profiler is before and "leat" not in torch.utils.data.DataLoader.__iter__.__module__


def test_there_is_no_result_before_training():
    with pytest.raises(leat.InvalidError, match="train first"):
        leat.lightning.XrayCallback().result()


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return (torch.full((3,), float(i)) for i in range(20))


def test_the_end_of_a_loader_without_a_length_is_no_batch():
    found = fit(leat.lightning.XrayCallback(), torch.utils.data.DataLoader(Stream(), batch_size=4), max_epochs=2)
    assert found.samples == 40 and found.batches == 10  # Lightning takes the very first one before it says so
    assert [stage["items"] for stage in found.stages if stage["tag"] == "fetch"] == [40]  # read by the main process


def test_only_the_first_rank_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(lightning.Trainer, "global_rank", 1)
    loader = torch.utils.data.DataLoader(Numbers(8), batch_size=4)
    fit(leat.lightning.XrayCallback(tmp_path / "a.html", tmp_path / "a.json"), loader)
    assert list(tmp_path.iterdir()) == []
    fit(leat.lightning.XrayCallback(tmp_path / "a-{rank}.html"), loader)
    assert [path.name for path in tmp_path.iterdir()] == ["a-1.html"]
    with pytest.raises(leat.InvalidError, match="no folder"):
        leat.lightning.XrayCallback(tmp_path / "missing" / "a.html")
