# SPDX-License-Identifier: MIT. cpu_check.py: samples of what a training loop's threads are in, and what they cost.
"""cpu_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed"."""
import json
import pathlib
import sys

from judge import check, judge
from torch_room import DIR, MODEL, costs, run, view

HERE = pathlib.Path(__file__).resolve().parent

KNOWN = """
import protond, time
def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
def thirty(): burn(0.030)
def fifty(): burn(0.050)
def sleeps(): time.sleep(0.020)
for i in range(10): step()
torch.cuda.synchronize()
took = [0, 0, 0]
start = time.perf_counter()
with protond.scope("known"):
    while (now := time.perf_counter()) - start < 110:
        for i, f in enumerate((thirty, fifty, sleeps)):
            f()
            was, now = now, time.perf_counter()
            took[i] += now - was
print("SHARES", *(t / sum(took) for t in took))
for i in range(300):
    with protond.scope("train"): step()
torch.cuda.synchronize()
"""


def samples(env):
    """{(path, name): {metric: value}} of the nodes' own values"""
    rows = json.loads(view(env, "sql", "x", "select n.path, n.name, m.name, m.value from nodes n join metrics m on m.node = n.node "
                                            "where m.name like '%sample%' or m.name like 'off_cpu%'", "--json"))["data"]["rows"]
    got = {}
    for path, name, metric, value in rows:
        got.setdefault((path, name), {})[metric.split()[0]] = value
    return got


def shares():
    """Functions whose shares of the time are known, in a process that has a GPU's threads, too; 100 s."""
    out, _, words, env = run(MODEL + KNOWN, "-s", "cpu", "-d", "both", PYTHONPATH=str(DIR / "lib/protond/python"))
    known = [line.split()[1:] for line in out.splitlines() if line.startswith("SHARES")]
    if not check("it measured itself", len(known) == 1, f"{out[-300:]} {words[-600:]}"):
        return
    got = samples(env)
    own = {f: sum(v.get("cpu_samples", 0) for (path, _), v in got.items() if f"@{f}" in path and "known" in path)
           for f in ("thirty", "fifty", "sleeps")}
    n = sum(own.values())
    check("some 10 000 samples of the scope", n >= 8000, f"{n}: {own}; {words[-300:]}")
    for f, share in zip(("thirty", "fifty", "sleeps"), map(float, known[0])):
        check(f"{f}: {share:.1%} of them, to a point", n and abs(own[f] / n - share) <= 0.01, f"{own[f] / max(n, 1):.4f}")
    off = sum(v.get("off_cpu_samples", 0) for (path, _), v in got.items() if "@sleeps" in path)
    check("who sleeps is on no CPU", own["sleeps"] and off / own["sleeps"] >= 0.99, f"{off} of {own['sleeps']}")
    forward = sum(v.get("cpu_samples", 0) for (path, _), v in got.items() if "train" in path and "@Block.forward" in path)
    check("what a module runs stands below the scope of the step", forward > 0, f"{forward} samples; {len(got)} nodes")
    check("frames were found", "samples without frames" not in words, words[-300:])


def cost():
    costs("cpu", {"w1": 1.01, "w3": 1.01})


judge((shares, cost), sys.argv[2:])
