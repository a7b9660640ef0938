# SPDX-License-Identifier: MIT. torch_room.py: a small model, run under `protonctl run` in a room of its own, and what was recorded.
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import textwrap

from judge import check, rooms, started

DIR = pathlib.Path(sys.argv[1]).resolve()
CTL, VIEW = str(DIR / "bin/protonctl"), str(DIR / "bin/protonview")

MODEL = """
import json, os, sys, torch, torch.nn as nn
from torch.nn import functional as F
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(x)
class Net(nn.Module):
    def __init__(self, d=256):
        super().__init__()
        self.emb, self.h, self.head = nn.Embedding(1000, d), nn.ModuleList(Block(d) for _ in range(3)), nn.Linear(d, 1000)
    def forward(self, x):
        x = self.emb(x)
        for b in self.h: x = b(x)
        return self.head(x)
torch.manual_seed(0)
net = Net().cuda()
opt = torch.optim.AdamW(net.parameters())
ids = torch.randint(0, 1000, (4, 64), device="cuda")
def step():
    opt.zero_grad()
    loss = F.cross_entropy(net(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    opt.step()
"""


def room(**more):
    place = tempfile.mkdtemp(prefix="pdtorch", dir="/dev/shm")
    rooms.append(dict(os.environ, PROTOND_RUNTIME_DIR=place, PROTOND_DB=place + "/db", NO_COLOR="1",
                      **{k: str(v) for k, v in more.items()}))
    return rooms[-1]


def run(code, *options, words=(), **more):
    """(standard output of the program, {path: (kernels, ns)}, words of protonctl, environment)"""
    env = room(**more)
    place = pathlib.Path(env["PROTOND_RUNTIME_DIR"])
    (place / "program.py").write_text(textwrap.dedent(code))
    r = started([CTL, "run", "-n", "x", *options, "--", *(words or (sys.executable,)), place / "program.py"], env, timeout=280)
    subprocess.run([VIEW, "export", "x", "-o", place / "x.hatchet"], env=env, capture_output=True, timeout=60)
    found = {}

    def walk(node, path):
        for c in node["children"]:
            p = path + (c["frame"]["name"],)
            m = c["metrics"]
            if m.get("count"):
                n, ns = found.get(p, (0, 0))
                found[p] = (n + m["count"], ns + m.get("time (ns)", 0))
            walk(c, p)
    try:
        walk(json.loads((place / "x.hatchet").read_text())[0], ())
    except OSError:
        check("a tree was stored", False, f"exit {r.returncode}: {r.stdout[-300:]} {r.stderr[-600:]}")
    return r.stdout, found, r.stderr, env


def view(env, *args):
    return subprocess.run([VIEW, *args], env=env, capture_output=True, text=True, timeout=60).stdout


def kernels(found, *inside):
    """How many kernels stand below all of these frames."""
    return sum(n for p, (n, _) in found.items() if all(i in p[:-1] for i in inside) and not p[-1].startswith("["))


def sql(env, text, name="x"):
    return json.loads(view(env, "sql", name, text, "--json") or "{}").get("data", {}).get("rows", [])


def costs(switch, most, what="", pairs=16, **more):
    """W1 and W3 with a switch and without in turns, in one process: two processes differ by more. most: {"w3": 1.1}, of the tree alone."""
    env = room(PYTHONPATH=DIR / "lib/protond/python", **more)
    r = subprocess.run([CTL, "run", "-q", "-n", "all", "-b", "none", "--cpu", "off", "-k", "none", "--", sys.executable,
                        str(pathlib.Path(__file__).resolve().parent / "switch_cost.py"), switch, str(pairs)], env=env, capture_output=True, text=True, timeout=400)
    name = f"{switch}, {what}" if what else switch
    if not check(f"{name}: the costs were measured", r.returncode == 0, r.stderr[-900:]):
        return
    for mode, measured in json.loads(r.stdout.splitlines()[-1]).items():
        ratios = sorted(switched / tree for tree, switched in measured)
        words = (f"{statistics.median(ratios):.4f} x of the tree alone, half of them {ratios[len(ratios) // 4]:.4f} to {ratios[-len(ratios) // 4]:.4f}; "
                 f"{statistics.median(t for t, _ in measured):.3f} and {statistics.median(s for _, s in measured):.3f}")
        if mode in most:
            check(f"{mode}, {name}: at most {most[mode]} x", statistics.median(ratios) <= most[mode], words)
        else:
            print(f"      {mode}, {name}: {words}")
