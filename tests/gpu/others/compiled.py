# SPDX-License-Identifier: MIT. compiled.py [STEPS]: a training loop under torch.compile, and a function of its own.
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


@torch.compile
def smooth(x, y):
    return (torch.sin(x) * torch.cos(y) + x.softmax(-1)).sum(0)


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    torch.manual_seed(0)
    model = torch.compile(nn.Sequential(*(Block(256) for _ in range(2))).cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(8, 128, 256, device="cuda")
    done = 0
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        done += 1
    for _ in range(10):
        smooth(x, x)
    torch.cuda.synchronize()
    print(f"steps={done}")
