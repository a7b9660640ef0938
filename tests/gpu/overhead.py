# SPDX-License-Identifier: MIT. overhead.py: what a run says that recording costs, against an A/B run of the same process.
"""overhead.py DIR [--only w1,w2,w3] [--processes N] [--seconds S] [--csv FILE]

Each process goes through turns, in an order that changes: A, rounds of steps with CUPTI let go; B, rounds with all
of them recorded, both timed here by the round; and steps of which half are recorded, from which protond works out
by itself what recording costs. Two processes of one program differ by some points, the sides of one process do not.
Means over processes with 95 % bounds from a bootstrap over them.
"""
import argparse
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
WARM, ROUND = 3, 10  # steps; the first ones after a switch are not timed
RATES = {"A": 0.0, "B": 1.0, "says": 0.5}


def job(mode, seconds):
    """Below `protonctl run -k torch` with a sample rate."""
    import torch_work

    import protond.torch

    torch_work.step_begins = protond.torch.step
    each = 1 if mode == "w3" else torch_work.PART
    fn, _ = torch_work.WORK[mode]
    fn(WARM * each, torch_work.no_scope)
    sampler, rng, took = protond.torch._sampler, random.Random(os.getpid()), {turn: [] for turn in RATES}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for turn in rng.sample(list(RATES), k=len(RATES)):
            sampler.rate = RATES[turn]
            sampler._plan.clear()
            fn(WARM * each, torch_work.no_scope)
            took[turn].append(fn((2 if turn == "says" else 1) * ROUND * each, torch_work.no_scope))
    ab = statistics.median(b / a for a, b in zip(took["A"], took["B"])) - 1
    print(f"says={100 * sampler.cost():.3f} ab={100 * ab:.3f} a={statistics.median(took['A']):.3f} turns={len(took['A'])}")


def mean(values):
    rng = random.Random(1)
    out = sorted(statistics.fmean(rng.choices(values, k=len(values))) for _ in range(2000))
    return "{:+.2f} [{:.2f}, {:.2f}]".format(statistics.fmean(values), out[50], out[1949])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=pathlib.Path, nargs="?")
    p.add_argument("--only", default="w1,w2,w3")
    p.add_argument("--processes", type=int, default=8)
    p.add_argument("--seconds", type=float, default=30, help="that each lives")
    p.add_argument("--csv", type=pathlib.Path)
    p.add_argument("--job", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.job:
        return job(a.job, a.seconds)
    base, place = a.dir.resolve(), pathlib.Path(tempfile.mkdtemp(prefix="pdover", dir="/dev/shm"))
    place.chmod(0o700)
    ctl = str(base / "bin/protonctl")
    env = dict(os.environ, PYTHONPATH=str(base / "lib/protond/python"), PROTOND_RUNTIME_DIR=str(place),
               PROTOND_DB=str(place / "db"), PROTOND_LANE_KB="4096", PROTOND_SAMPLE_RATE="0.5")
    rows = ["workload,process,says,ab,a,turns"]
    for mode in a.only.split(","):
        got = []
        for i in range(a.processes):
            r = subprocess.run([ctl, "run", "-k", "torch", "--", sys.executable, str(HERE / "overhead.py"), "--job", mode,
                                "--seconds", str(a.seconds)], env=env, cwd=place, capture_output=True, text=True)
            line = re.search(r"^says=(\S+) ab=(\S+) a=(\S+) turns=(\d+)$", r.stdout, re.M)
            if r.returncode or not line or "drops 0" not in r.stdout + r.stderr:
                sys.exit(f"{mode}: exit {r.returncode}: {r.stdout[-1000:]}{r.stderr[-2000:]}")
            got.append(tuple(map(float, line.groups())))
            rows.append(",".join([mode, str(i), *line.groups()]))
            if a.csv:
                a.csv.write_text("\n".join(rows) + "\n")
        says, ab = [g[0] for g in got], [g[1] for g in got]
        print(f"{mode}: it says {mean(says)} %, A/B {mean(ab)} %, difference {mean([x - y for x, y in zip(says, ab)])}: "
              f"{len(got)} processes, {sum(g[3] for g in got):.0f} turns", flush=True)
    subprocess.run([ctl, "shutdown"], env=env, capture_output=True)


main()
