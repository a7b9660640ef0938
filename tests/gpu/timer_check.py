# SPDX-License-Identifier: MIT. timer_check.py: protond.timer against kernels of known length, with CUPTI and without.
"""timer_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed"."""
import json
import subprocess
import sys

from judge import check, judge
from torch_room import CTL, DIR, room, view

APART_NS = 20_000  # of two events, in which a launch lies, and of a kernel alone
PROGRAM = """
import json, sys, torch
from protond.timer import Timer
cycles = 20_000_000                       # a kernel that spins so long; some 10 ms
def spin(n=1): torch.cuda._sleep(n * cycles)
spin(); torch.cuda.synchronize()          # clocks rise
for _ in range(20): spin()
torch.cuda.synchronize()
said = {}
for n in (1, 2, 4):
    said[f"events {n}"] = Timer(f"events {n}", warmup=2, repeats=10, sync="events").run(spin, n).samples()
    said[f"device {n}"] = Timer(f"device {n}", warmup=2, repeats=10, sync="device").run(spin, n).samples()
    said[f"host {n}"] = Timer(f"host {n}", warmup=2, repeats=1, sync="none").run(spin, n).samples()
    torch.cuda.synchronize()
with Timer("once", sync="events") as outer:
    spin()
    with Timer("inner", sync="events") as inner:
        spin(2)
said["once"], said["inner"] = outer.ms, inner.ms
free = Timer("free", sync="events", wait=False)
for _ in range(10):
    with free: spin()
said["free"] = free.samples()
torch.cuda.synchronize()
print(json.dumps(said))
"""


def said(r):
    return json.loads(r.stdout.splitlines()[-1]) if r.returncode == 0 and r.stdout else None


def place():
    env = room()
    env["PYTHONPATH"] = f"{DIR / 'lib/protond/python'}:{env.get('PYTHONPATH', '')}"
    return env


def median(values):
    return sorted(values)[len(values) // 2]


def without_cupti():
    """A kernel that is twice as long takes twice as long, whoever measures; and all ways agree."""
    r = subprocess.run([sys.executable, "-c", PROGRAM], env=place(), capture_output=True, text=True, timeout=200)
    got = said(r)
    if not check("without a session: it ran", got is not None, r.stderr[-900:]):
        return
    for way in ("events", "device"):
        one, two, four = (median(got[f"{way} {n}"]) for n in (1, 2, 4))
        check(f"{way}: 2 and 4 times the kernel, 2 and 4 times the time, ±1 %", abs(two / one - 2) < 0.02 and abs(four / one - 4) < 0.04,
              f"{one:.6f} {two:.6f} {four:.6f}")
    for n in (1, 2, 4):
        events, device = median(got[f"events {n}"]), median(got[f"device {n}"])
        check(f"{n}: events and synchronisation agree within 0.2 ms", 0 <= device - events + 1e-5 < 2e-4, f"{events:.6f} {device:.6f}")
        check(f"{n}: without synchronisation it is the launch alone", got[f"host {n}"][0] < events / 10, str(got[f"host {n}"]))
    one = median(got["events 1"]) * 1e3
    check("one inside of the other", abs(got["inner"] - 2 * one) < 0.05 * one and abs(got["once"] - 3 * one) < 0.05 * one,
          f"{one:.3f} {got['inner']:.3f} {got['once']:.3f}")
    check("without a wait the same", abs(median(got["free"]) * 1e3 - one) < 0.02 * one, f"{one:.3f} {median(got['free']) * 1e3:.3f}")


def beside_cupti():
    """What two events span is the kernel between them, as CUPTI has it."""
    env = place()
    r = subprocess.run([CTL, "run", "-q", "-n", "x", "-d", "both", "--", sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True,
                       timeout=200)
    got = said(r)
    if not check("in a session: it ran", got is not None, r.stderr[-900:]):
        return
    rows = view(env, "sql", "x", "select path, dur_ns from kernels order by start_ns", "--json")
    kernels = {}
    for path, ns in json.loads(rows)["data"]["rows"]:
        kernels.setdefault(next((p for p in path.split("/") if p.split(" ")[0] in ("events", "device", "free")), ""), []).append(ns)
    for n in (1, 2, 4):
        ours, theirs = [s * 1e9 for s in got[f"events {n}"]], kernels.get(f"events {n}", [])
        apart = [a - b for a, b in zip(ours, theirs)]
        check(f"{n}: 10 runs, each its kernel's time and less than {APART_NS // 1000} us more",
              len(theirs) == 10 and all(-2000 < a < APART_NS for a in apart), f"{len(theirs)} {apart}")


judge((without_cupti, beside_cupti), sys.argv[2:])
