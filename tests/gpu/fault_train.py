# SPDX-License-Identifier: MIT. fault_train.py: a GPT trained from a data set of lines, with the fault that FAULT names, or none.
"""Of faults.py. FAULT, which the command line does not show: none, sync (the loop asks the GPU for a number, of each part of a batch
and of each gradient), loader (an item takes long to make), rank (the last rank's lines are longer). Without a GPU it trains on the
CPU. STEPS of them (12). Ranks share what GPU there is, over gloo."""
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

FAULT, STEPS = os.environ.get("FAULT", "none"), int(os.environ.get("STEPS", "12"))
RANK, RANKS = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
LAYERS, WIDTH, HEADS, VOCAB, BATCH, LENGTH = (4, 512, 8, 4096, 16, 256) if CUDA else (2, 64, 2, 512, 4, 32)


class Lines(Dataset):
    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, i):
        line = torch.randint(0, VOCAB, (LENGTH * 4 if FAULT == "rank" and RANK == RANKS - 1 else LENGTH,))
        end = time.perf_counter() + (0.004 if FAULT == "loader" else 0)
        while time.perf_counter() < end:  # as decoding and augmenting would
            line = line.roll(1)
        return line


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (y.view(b, t, HEADS, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(WIDTH, dim=2))
        y = (q @ k.transpose(2, 3) / k.shape[-1] ** 0.5).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCAB, WIDTH), nn.Embedding(LENGTH * 4, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB)

    def forward(self, ids):
        x = self.token(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return self.head(self.norm(x))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = GPT().to(DEVICE)
    if RANKS > 1:
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    running = norm = 0.0
    for ids in DataLoader(Lines(), batch_size=BATCH, num_workers=0):
        optimizer.zero_grad()
        for part in ids.to(DEVICE).chunk(4 if RANKS == 1 else 1):
            loss = F.cross_entropy(model(part).flatten(0, 1), part.flatten())
            loss.backward()
            if FAULT == "sync":
                running += loss.item()
        if FAULT == "sync":
            norm = sum(p.grad.norm().item() ** 2 for p in model.parameters()) ** 0.5
        optimizer.step()
    if CUDA:
        torch.cuda.synchronize()
    if RANKS > 1:
        dist.destroy_process_group()
    print(f"steps={STEPS} loss={running / STEPS / 4:.3f} norm={norm:.3f}")


main()
