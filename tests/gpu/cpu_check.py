# SPDX-License-Identifier: MIT. cpu_check.py: samples of what a training loop's threads are in, and what they cost.
"""cpu_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed"."""
import json
import pathlib
import re
import statistics
import subprocess
import sys

from judge import check, judge
from torch_room import CTL, DIR, MODEL, room, run, sql, view

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


NATIVE = """
import time
for i in range(20): step()
torch.cuda.synchronize()
start = time.perf_counter()
while time.perf_counter() - start < 20:
    step()
    if int(time.perf_counter() - start) % 2: torch.cuda.synchronize()
print("TRAINED")
"""


def native():
    """What torch and the driver run below Python, and of autograd's thread, whose stack is C++ alone; 60 s."""
    out, _, words, env = run(MODEL + NATIVE, "-s", "cpu", "--native", "-d", "both")
    if not check("native: it trained", "TRAINED" in out, f"{out[-300:]} {words[-600:]}"):
        return
    rows = sql(env, "select n.path || '/' || n.name, m.value from nodes n join metrics m on m.node = n.node where m.name like 'cpu_samples%'")
    n = sum(value for _, value in rows)
    for what, met in (("torch's functions", r"(^|/)(at|c10|torch)::"), ("below a line of Python", r"@.*/(at|c10|torch)::"),
                      ("autograd's thread", r"\[libc[^/]*/(?!.*@).*Engine::thread_main"), ("the driver's object", r"\[libcuda\.so")):
        met = re.compile(met).search
        found = [(path, value) for path, value in rows if met(path)]
        took = sum(value for _, value in found)
        check(f"native: {what}", took > 0.01 * n, f"{took:.0f} of {n:.0f} samples, {len(found)} nodes")
    print(words[-900:])
    print(view(env, "tree", "x", "-m", "cpu_samples", "-t", "2%"))


def cost():
    env = room(PYTHONPATH=DIR / "lib/protond/python")
    r = subprocess.run([CTL, "run", "-q", "-n", "all", "-b", "none", "--cpu", "off", "-k", "none", "--", sys.executable, HERE / "cpu_turns.py", CTL],
                       env=env, capture_output=True, text=True, timeout=280)
    if not check("the costs were measured", r.returncode == 0, r.stderr[-900:]):
        return
    n = sql(env, "select sum(m.value) from nodes n join metrics m on m.node = n.node where m.name like 'cpu_samples%'", "turns")
    check("there were samples", n and (n[0][0] or 0) > 2000, f"{n}")
    for mode, measured in json.loads(r.stdout.splitlines()[-1]).items():
        ratios = sorted(sampled / tree for tree, sampled in measured)
        error = 1.25 * statistics.stdev(ratios) / len(ratios) ** 0.5  # of a median
        check(f"{mode}: at most 1.01 x", statistics.median(ratios) <= 1.01,
              f"{statistics.median(ratios):.4f} x of the tree alone, standard error {error:.4f}, half of them {ratios[len(ratios) // 4]:.4f} to "
              f"{ratios[-len(ratios) // 4]:.4f}; {statistics.median(t for t, _ in measured):.3f} and {statistics.median(s for _, s in measured):.3f}")


judge((shares, native, cost), sys.argv[2:])
