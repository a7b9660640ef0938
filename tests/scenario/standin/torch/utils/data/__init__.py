# SPDX-License-Identifier: MIT. Stand-in.
from .dataloader import DataLoader, Dataset, IterableDataset
