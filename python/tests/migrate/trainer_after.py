"""trainer_after.py FOLDER [CHECKPOINT]: a LightningModule, a DataModule and a Trainer that saves as it goes."""
import sys

import lightning
import torch
from torch import nn

import leat

MEAN, STD = (0.5, 0.4, 0.5), (0.3, 0.3, 0.3)


class Cells(lightning.LightningDataModule):
    def train_dataloader(self):
        feed = (leat.folder(sys.argv[1]).shuffle()
                .decode(mode="torch").random_resized_crop(32, 32, mode="torch", antialias=True)
                .random_flip()
                .scale(1 / 255).layout("chw")
                .normalize(MEAN, STD)
                .batch(40).feed(seed=1))
        loader = leat.torch.DataLoader(feed, fields=("image", "label"))
        return loader


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                                   nn.Linear(128, 2))

    def training_step(self, batch, number):
        image, label = batch
        loss = nn.functional.cross_entropy(self.model(image), label)
        print(f"epoch {self.current_epoch}, batch {number} of {self.trainer.num_training_batches}: {loss.item():.9f}")
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


lightning.seed_everything(1, verbose=False)
save = lightning.pytorch.callbacks.ModelCheckpoint(".", "{step}", every_n_train_steps=1, save_top_k=-1)
trainer = lightning.Trainer(max_epochs=2, callbacks=[save], logger=False, enable_progress_bar=False,
                            enable_model_summary=False)
trainer.fit(Classifier(), datamodule=Cells(), ckpt_path=sys.argv[2] if len(sys.argv) > 2 else None)
