# SPDX-License-Identifier: MIT
"""What the Python package costs: scopes, and each thing that protond.torch names.

    python_bench.py BUILD [--rounds N] [--only CASE]

Each case is a process of its own under `protonctl run` (or bare), in turns, in an order that turns
from round to round; medians over rounds, spread in brackets. `floor` is the same loop without a scope.
The cases with torch run where it can be imported. Without a GPU the operators are the CPU's.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

LOOP = """
import sys, time
def best(f, n, repeats=5):
    low = 1e9
    for _ in range(repeats):
        time.sleep(0.003)  # for the daemon to empty the lane: what is dropped costs less
        t = time.perf_counter_ns(); f(n); low = min(low, (time.perf_counter_ns() - t) / n)
    return low
def empty(n):
    for _ in range(n): pass
"""
SCOPES = LOOP + """
import protond
def new(n):
    scope = protond.scope
    for _ in range(n):
        with scope("a"): pass
def kept(n):
    s = protond.scope("a")
    for _ in range(n):
        with s: pass
def metrics(n):
    scope = protond.scope
    for _ in range(n):
        with scope("a", {"n": 1.0}): pass
floor = best(empty, 10000)
for name, f in (("new", new), ("kept", kept), ("metrics", metrics)):
    print(name, min(best(f, 1000, 40) - floor, 1e9), file=sys.stderr)
"""
TORCH = LOOP + """
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
def modules(n, m=torch.nn.Identity(), x=torch.zeros(1)):
    for _ in range(n): m(x)
class Outer(torch.nn.Module):
    def forward(self, n): modules(n)
def ops(n, x=torch.zeros(64, device=device)):
    for _ in range(n): x.add_(1)
    if device == "cuda": torch.cuda.synchronize()
outer = Outer()
print("module", best(lambda n: outer(n), 20000), file=sys.stderr)
print("op", best(ops, 20000), file=sys.stderr)
net = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(20)]).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.ones(4, 16, device=device)
def steps(n):
    for _ in range(n):
        opt.zero_grad(); net(x).sum().backward(); opt.step()
    if device == "cuda": torch.cuda.synchronize()
print("step", best(steps, 50), file=sys.stderr)
"""
# What else could see operators: bare costs of the mechanisms themselves, nothing recorded.
OTHERS = LOOP + """
import contextlib, sys, torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.overrides import TorchFunctionMode
device = "cuda" if torch.cuda.is_available() else "cpu"
class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, f, types, args=(), kwargs=None): return f(*args, **(kwargs or {}))
class Function(TorchFunctionMode):
    def __torch_function__(self, f, types, args=(), kwargs=None): return f(*args, **(kwargs or {}))
@contextlib.contextmanager
def profile():
    sys.setprofile(lambda *a: None); yield; sys.setprofile(None)
def ops(n, x=torch.zeros(64, device=device)):
    for _ in range(n): x.add_(1)
    if device == "cuda": torch.cuda.synchronize()
ways = [("bare", contextlib.nullcontext), ("TorchDispatchMode", Dispatch), ("TorchFunctionMode", Function),
        ("sys.setprofile", profile)]
if device == "cuda": ways.append(("emit_nvtx", torch.autograd.profiler.emit_nvtx))
for name, way in ways:
    with way(): print(name, best(ops, 20000), file=sys.stderr)
"""
DETAIL = ("ops", "shapes", "dtypes", "strides", "scalars", "kwargs", "stack", "sequence", "flops")


def cases(torch):
    """(name, program, under run?, environment)"""
    yield "scope, nothing recorded", SCOPES, False, {}
    yield "scope, recorded", SCOPES, True, {}
    if not torch:
        return
    yield "ways to see operators", OTHERS, False, {}
    yield "bare", TORCH, False, {}
    yield "-k none", TORCH, True, {"PROTOND_HOOK": "none"}
    yield "-k torch", TORCH, True, {}
    yield "backward=module", TORCH, True, {"PROTOND_TORCH_BACKWARD": "module"}
    for detail in DETAIL:
        yield "ops" if detail == "ops" else "ops, " + detail, TORCH, True, {
            "PROTOND_TORCH_OPS": "1", f"PROTOND_TORCH_{detail.upper()}": "1"}


def measure(build, program, recorded, env):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        os.chmod(place, 0o700)
        env = {**os.environ, "PROTOND_RUNTIME_DIR": place, "PROTOND_DB": place + "/db", **env,
               "PYTHONPATH": str(build / "lib/protond/python"), "PROTOND_LANE_KB": "4096", "NO_COLOR": "1"}
        words = [sys.executable, "-c", program]
        if recorded:
            words = [build / "bin/protonctl", "run", "--json", "-k", env.pop("PROTOND_HOOK", "torch"), "--", *words]
        r = subprocess.run(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if recorded:
            look = subprocess.run([build / "bin/protonview", "flat", "@last", "--json"], env=env, capture_output=True)
            drops = sum(d["count"] for d in json.loads(look.stdout)["data"]["session"]["drops"])
            if drops > 0:
                print(f"not comparable: {drops} events were dropped", file=sys.stderr)
        subprocess.run([build / "bin/protonctl", "shutdown"], env=env, capture_output=True)
    found = {}
    for line in r.stderr.splitlines():
        name, _, value = line.rpartition(" ")
        try:
            found[name] = float(value)
        except ValueError:
            pass
    assert r.returncode == 0 and found, r.stderr
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="the cases whose names begin so")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0
    if not torch:
        print("torch cannot be imported: its cases are left out", file=sys.stderr)
    all_cases, found = [c for c in cases(torch) if c[0].startswith(arguments.only)], {}
    for i in range(arguments.rounds):
        turn = i % len(all_cases)
        for name, program, recorded, env in all_cases[turn:] + all_cases[:turn]:
            for what, ns in measure(arguments.build.resolve(), program, recorded, env).items():
                found.setdefault((name, what), []).append(ns)
    if arguments.json:
        print(json.dumps({f"{a}: {b}": v for (a, b), v in found.items()}))
        return
    for (name, what), ns in sorted(found.items(), key=lambda row: [c[0] for c in all_cases].index(row[0][0])):
        print(f"{name:26} {what:18} {statistics.median(ns):10.0f} ns ({min(ns):.0f} to {max(ns):.0f}, {len(ns)})")


main()
