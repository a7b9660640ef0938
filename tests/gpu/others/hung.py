# SPDX-License-Identifier: MIT. hung.py: a training whose sixth step launches a kernel that does not end; it says its pid, and waits.
import os

import torch
from torch import nn


class Stuck(nn.Module):
    def forward(self, x):
        if turn == 5:
            torch.cuda._sleep(1 << 50)
        return x


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), Stuck(), nn.Linear(512, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for turn in range(6):
    x, y = torch.randn(64, 256, device="cuda"), torch.randint(0, 10, (64,), device="cuda")
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    if turn == 5:
        print(os.getpid(), flush=True)
    loss.item()
