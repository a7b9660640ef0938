# SPDX-License-Identifier: MIT. lightning_fit.py: Lightning's Trainer, which passes a closure to optimizer.step(); with validation.
import warnings

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Digits(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                                 nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("accuracy", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def pictures(n):
    return TensorDataset(torch.rand(n, 1, 28, 28), torch.randint(0, 10, (n,)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    pl.seed_everything(0, verbose=False)
    trainer = pl.Trainer(max_epochs=2, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(Digits(), DataLoader(pictures(640), batch_size=64), DataLoader(pictures(128), batch_size=64))
    torch.cuda.synchronize()
    print(f"steps={trainer.global_step}")
