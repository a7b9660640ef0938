# SPDX-License-Identifier: MIT. spawned.py: torch.multiprocessing: two processes that train, and one that waits for them; it ends with status 3.
import sys

import torch
import torch.multiprocessing as mp
from torch import nn


def train(rank, steps, results):
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        x, y = torch.randn(32, 128, device="cuda"), torch.randint(0, 10, (32,), device="cuda")
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    torch.cuda.synchronize()
    results.put((rank, steps))


if __name__ == "__main__":
    results = mp.get_context("spawn").Queue()
    mp.spawn(train, args=(25, results), nprocs=2)
    print(f"steps={sum(results.get()[1] for _ in range(2))}")
    sys.stdout.flush()
    sys.exit(3)
