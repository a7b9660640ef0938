# SPDX-License-Identifier: MIT. ops_work.py: models whose operators torch.profiler and a session of ours see in the same run.
"""ops_work.py MODEL FOLDER: leaves in FOLDER what both saw of the same steps: kineto.json and ours.pt.trace.json (by the name
of the session, "ours"). MODEL: gpt, conv (small, of this file), gpt2, resnet50, compiled, threads, strange."""
import json
import os
import sys
import threading

import protond
import torch
from torch import nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, record_function

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 2


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.n1, self.n2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.n1(x)).split(w, dim=2))
        mask = torch.full((t, t), float("-inf"), device=x.device).triu(1)
        y = torch.softmax(q @ k.transpose(2, 3) / (w / self.heads) ** 0.5 + mask, dim=-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Gpt(nn.Module):
    def __init__(self, width=32, heads=4, layers=2, words=64):
        super().__init__()
        self.token, self.blocks = nn.Embedding(words, width), nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, ids):
        x = self.token(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.Conv2d(8, 8, 3, padding=1, groups=4)
        self.up, self.norm, self.head = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.BatchNorm2d(8), nn.Linear(4 * 64, 10)

    def forward(self, x):
        y = F.relu(self.norm(self.a(x)))
        y = torch.cat([self.b(y)[:, :4], y[:, 4:]], 1)
        return self.head(F.avg_pool2d(self.up(y), 2).flatten(1))


def trains(model, inputs, targets, loss=F.cross_entropy):
    model = model.to(DEVICE)
    inputs, targets = inputs.to(DEVICE), targets.to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step():
        out = model(inputs)
        out = getattr(out, "logits", out)
        loss(out.reshape(-1, out.shape[-1]), targets.reshape(-1)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def ids(words, *shape):
    return torch.randint(0, words, shape)


def gpt():
    return trains(Gpt(), ids(64, 2, 16), ids(64, 2, 16))


def conv():
    return trains(Conv(), torch.randn(4, 3, 16, 16), ids(10, 4))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return trains(GPT2LMHeadModel(GPT2Config(n_layer=12)), ids(50257, 2, 128), ids(50257, 2, 128))


def resnet50():
    from torchvision.models import resnet50 as make
    return trains(make(num_classes=10), torch.randn(4, 3, 64, 64), ids(10, 4))


def compiled():
    return trains(torch.compile(Gpt()), ids(64, 2, 16), ids(64, 2, 16))


def threads():
    """Two that compute, beside autograd's own."""
    steps = [gpt(), conv()]

    def step():
        others = [threading.Thread(target=one) for one in steps]
        for one in others:
            one.start()
        for one in others:
            one.join()
    return step


def strange():
    """Scalars that are no numbers, empty lists, no inputs, lists of tensors, views that are not dense."""
    def step():
        x = torch.randn(3, 4, device=DEVICE)
        torch.add(x, x, alpha=2.5)
        torch.where(x > 0, x, torch.zeros_like(x).fill_(float("nan")))
        torch.clamp(x, min=float("-inf"), max=1e30)
        torch.stack([x, x]).sum(()).item()
        x.t()[::2].contiguous(memory_format=torch.contiguous_format)
        torch.empty(0, device=DEVICE).view(0, 1)
        torch.full((2,), True, device=DEVICE)
        torch.index_put(x, (torch.tensor([0], device=DEVICE), torch.tensor([1], device=DEVICE)), torch.tensor(1.0, device=DEVICE))
        x.to(torch.float16).to(torch.complex64)
        try:
            x @ x
        except RuntimeError:
            pass
    return step


def theirs_of(p, path):
    """Kineto's file; of a torch without Kineto (Debian's 1.13) what it has of the events, under the same names."""
    events = p.profiler.kineto_results.events()
    if torch.profiler.kineto_available():
        p.export_chrome_trace(path)
        return
    rows, begins = [], next(e.correlation_id() for e in events if e.name() == "both look")
    for e in sorted((e for e in events if e.scope() != 7 and e.correlation_id() > begins), key=lambda e: e.correlation_id()):
        args = {"Input Dims": e.shapes(), "Input type": e.dtypes()} if e.shapes() else {}
        if e.sequence_nr() >= 0:
            args.update({"Sequence number": e.sequence_nr(), "Fwd thread id": e.fwd_thread_id()})
        rows.append({"ph": "X", "cat": "cpu_op", "name": e.name(), "args": args})
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"old": True, "traceEvents": rows}, file)


def main(model, folder):
    torch.manual_seed(0)
    os.chdir(folder)
    session = protond.start("ours", data="trace", backend="none", switches="ops")
    step = globals()[model]()
    for _ in range(2):
        step()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p:
        with record_function("both look"):
            for _ in range(STEPS):
                step()
    protond.finalize(session, "kineto")
    theirs_of(p, "kineto.json")


main(*sys.argv[1:])
