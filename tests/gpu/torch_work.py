# SPDX-License-Identifier: MIT. torch_work.py: the peers' torch workloads (W1 to W4), under any profiler or none.
"""torch_work.py MODE[,MODE...] [--tool none|steps|protond|own|own-trace|proton|proton-trace|kineto] [--steps N] [--out FILE]

w1  x.add_(1) on 64 floats, eager                   us per op
w2  the same inside a scope per op                  us per op
w3  a GPT-2-small-like training step, scopes per layer and phase; steps alternate between the scopes
    "odd" and "even"                                ms per step
w4  a CUDA graph of its forward pass, replayed      us per replay

protond: scopes of the package, which record only when somebody asks; with --out, and with own, a session of the
program's own, written there (-trace: its timeline). steps: protond.torch.step() every 2 000 operations of w1. proton and kineto start themselves. Prints MODE=VALUE and MODE_stop_ms=VALUE.
"""
import argparse
import contextlib
import functools
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

PART = 2000  # operations of a step of w1
LAYERS, WIDTH, HEADS, VOCAB, BATCH, LENGTH = 12, 768, 12, 50304, 4, 512


@contextlib.contextmanager
def no_scope(_name):
    yield


def tool_of(name):
    """(scope, start, stop) of a tool."""
    data = "trace" if name.endswith("-trace") else "tree"
    if name in ("protond", "own", "own-trace"):
        import protond

        return (protond.scope, lambda out: protond.start(out or "own", data=data) if out or name != "protond" else None,
                lambda out: protond.finalize() if out or name != "protond" else None)
    if name in ("proton", "proton-trace"):
        import triton.profiler as proton

        return proton.scope, lambda out: proton.start(out or "proton", data=data), lambda out: proton.finalize()
    if name == "kineto":
        from torch.profiler import ProfilerActivity, profile, record_function

        now = []

        def kineto_start(out):
            now.append(profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]))
            now[-1].__enter__()

        def kineto_stop(out):
            p = now.pop()
            p.__exit__(None, None, None)
            if out:
                p.export_chrome_trace(out)

        return record_function, kineto_start, kineto_stop
    return no_scope, lambda out: None, lambda out: None


def step_begins():
    """Of `steps`: protond.torch.step."""


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).split(WIDTH, dim=2)
        q, k, v = (y.view(b, t, HEADS, -1).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Model(nn.Module):
    def __init__(self, scope):
        super().__init__()
        self.scope = scope
        self.token, self.place = nn.Embedding(VOCAB, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids):
        with self.scope("embed"):
            x = self.token(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for i, block in enumerate(self.blocks):
            with self.scope(f"layer{i}"):
                x = block(x)
        with self.scope("head"):
            return self.head(self.norm(x))


def model_of(scope):
    torch.manual_seed(0)
    m = Model(scope).cuda().to(torch.bfloat16)
    return m, torch.randint(0, VOCAB, (BATCH, LENGTH), device="cuda")


def w1(steps, scope, each=False):
    x = torch.zeros(64, device="cuda")
    torch.cuda.synchronize()
    t = time.perf_counter()
    for i in range(0, steps, PART):
        step_begins()
        for _ in range(min(PART, steps - i)):
            if each:
                with scope("op"):
                    x.add_(1)
            else:
                x.add_(1)
    torch.cuda.synchronize()
    return (time.perf_counter() - t) / steps * 1e6


@functools.lru_cache(maxsize=None)
def w3_ready(scope):
    model, ids = model_of(scope)
    return model, ids, torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)


def w3_step(scope):
    model, ids, opt = w3_ready(scope)

    def step(i):
        with scope("odd" if i % 2 else "even"):
            with scope("forward"):
                logits = model(ids)
                loss = F.cross_entropy(logits.view(-1, VOCAB).float(), ids.view(-1))
            with scope("backward"):
                loss.backward()
            with scope("optimizer"):
                opt.step()
                opt.zero_grad(set_to_none=True)

    return step


def w3(steps, scope):
    step = w3_step(scope)
    for i in range(2):
        step(i)
    torch.cuda.synchronize()
    t = time.perf_counter()
    for i in range(steps):
        step(i)
    torch.cuda.synchronize()
    return (time.perf_counter() - t) / steps * 1e3


@functools.lru_cache(maxsize=None)
def w4_ready(scope):
    model, ids = model_of(scope)
    side = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(2):
            model(ids)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        model(ids)
    torch.cuda.synchronize()
    return graph, model, ids  # which live as long as the graph


def w4(steps, scope):
    graph, *_ = w4_ready(scope)
    t = time.perf_counter()
    for _ in range(steps):
        with scope("replay"):
            graph.replay()
    torch.cuda.synchronize()
    return (time.perf_counter() - t) / steps * 1e6


WORK = {"w1": (w1, 50000), "w2": (lambda n, s: w1(n, s, True), 30000), "w3": (w3, 40), "w4": (w4, 200)}


def work(a, scope, start, stop):
    modes = a.modes.split(",")
    for mode in modes:
        fn, steps = WORK[mode]
        steps = a.steps or steps
        out = a.out if a.out is None or len(modes) == 1 else f"{a.out}-{mode}"
        start(out)
        fn(max(2, steps // 20), scope)  # warm
        value = fn(steps, scope)
        t = time.perf_counter()
        stop(out)
        print(f"{mode}={value:.4f}\n{mode}_stop_ms={(time.perf_counter() - t) * 1e3:.1f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("modes")
    p.add_argument("--tool", default="none", choices=["none", "steps", "protond", "own", "own-trace", "proton", "proton-trace", "kineto"])
    p.add_argument("--steps", type=int, default=0)
    p.add_argument("--out", default=None)
    p.add_argument("--wait", action="store_true", help="say when torch is up; work once for each line that comes")
    a = p.parse_args()
    scope, start, stop = tool_of(a.tool)
    if a.tool == "steps":
        global step_begins
        import protond.torch
        step_begins = protond.torch.step
    torch.zeros(1, device="cuda")
    if a.wait:
        print("ready", flush=True)
        for _ in sys.stdin:
            work(a, scope, start, stop)
            print("done", flush=True)
    else:
        work(a, scope, start, stop)


if __name__ == "__main__":
    main()
