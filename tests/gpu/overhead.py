# SPDX-License-Identifier: MIT. overhead.py: what a run says that recording costs, against an A/B run of the same process.
"""overhead.py DIR [--only w1,w2,w3] [--processes N] [--seconds S] [--csv FILE]

Each process goes through cycles of two parts, in an order that changes. A/B: a few steps with CUPTI let go, as many
with all recorded, and so on, timed here; each B against the A before and the one after it. And two periods of steps of
which half are recorded, from which protond works out by itself what recording costs. Two processes of one program
differ by some points, the parts of one process do not. The threads that launch keep to a core each, and nothing else
of the process to that core or its neighbour: cores differ by up to half (other tenants' threads), and a thread that
slept in a switch may wake on another. Each GPU runs a process at a time. Interquartile means in a process, means over
processes with 95 % bounds from a bootstrap.
"""
import argparse
import concurrent.futures
import os
import pathlib
import queue
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
WARM, STEPS = 3, 4  # after a switch, not timed, and timed
PERIODS = 2


def keep_cores(ours, others):
    """The launching threads (this one and autograd's) to a core each: a new thread has its maker's, so again and again."""
    for task in map(int, os.listdir("/proc/self/task")):
        try:
            autograd = pathlib.Path(f"/proc/self/task/{task}/comm").read_text().startswith("pt_autograd")
            os.sched_setaffinity(task, ours[:1] if task == os.getpid() else ours[1:] if autograd else others)
        except OSError:
            pass  # it has ended


def job(mode, seconds):
    """Below `protonctl run -k torch` with a sample rate."""
    import torch_work

    import protond.torch

    sampler, rng, ratios, alone = protond.torch._sampler, random.Random(os.getpid()), [], []
    cores = sorted(os.sched_getaffinity(0))
    ours = rng.sample(cores[::2], k=2)
    others = [c for c in cores if c & ~1 not in ours]
    switched, to_keep = None, 0

    def step_begins():
        nonlocal switched, to_keep
        protond.torch.step()
        if sampler._off != switched:
            switched, to_keep = sampler._off, WARM
        if to_keep:
            to_keep -= 1
            keep_cores(ours, others)
            sampler._since = time.monotonic_ns()  # no step's time

    def turn(rate, steps):
        sampler.rate = rate
        sampler._plan.clear()
        fn(WARM * each, torch_work.no_scope)
        return fn(steps * each, torch_work.no_scope)

    def compare():
        took = [turn(i % 2, STEPS) for i in range(5)]
        ratios.extend(took[i] / statistics.fmean((took[i - 1], took[i + 1])) for i in (1, 3))
        alone.append(took[2])

    torch_work.step_begins = step_begins
    each = 1 if mode == "w3" else torch_work.PART
    fn, _ = torch_work.WORK[mode]
    fn(WARM * each, torch_work.no_scope)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for part in rng.sample([compare, lambda: turn(0.5, PERIODS * 2 * sampler.active)], k=2):
            part()
    cut = (len(ratios) + 1) // 4
    ab = statistics.fmean(sorted(ratios)[cut:len(ratios) - cut]) - 1
    print(f"says={100 * sampler.cost():.3f} ab={100 * ab:.3f} a={statistics.median(alone):.3f} pairs={len(ratios)}")


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
    gpus = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU ")
    free, cores = queue.SimpleQueue(), sorted(os.sched_getaffinity(0))
    share = len(cores) // gpus
    for gpu in range(gpus):
        free.put((str(gpu), ",".join(map(str, cores[gpu * share:(gpu + 1) * share]))))

    def process(mode):
        gpu, its_cores = free.get()
        try:
            r = subprocess.run(["taskset", "-c", its_cores, ctl, "run", "-k", "torch", "--", sys.executable, str(HERE / "overhead.py"),
                                "--job", mode, "--seconds", str(a.seconds)],
                               env=dict(env, CUDA_VISIBLE_DEVICES=gpu), cwd=place, capture_output=True, text=True)
        finally:
            free.put((gpu, its_cores))
        line = re.search(r"^says=(\S+) ab=(\S+) a=(\S+) pairs=(\d+)$", r.stdout, re.M)
        if r.returncode or not line or "drops 0" not in r.stdout + r.stderr:
            raise SystemExit(f"{mode}: exit {r.returncode}: {r.stdout[-1000:]}{r.stderr[-2000:]}")
        return line.groups()

    rows = ["workload,process,says,ab,a,pairs"]
    pool = concurrent.futures.ThreadPoolExecutor(gpus)
    for mode in a.only.split(","):
        got = []
        for i, values in enumerate(pool.map(process, [mode] * a.processes)):
            got.append(tuple(map(float, values)))
            rows.append(",".join([mode, str(i), *values]))
            if a.csv:
                a.csv.write_text("\n".join(rows) + "\n")
        says, ab = [g[0] for g in got], [g[1] for g in got]
        print(f"{mode}: it says {mean(says)} %, A/B {mean(ab)} %, difference {mean([x - y for x, y in zip(says, ab)])}: "
              f"{len(got)} processes, {sum(g[3] for g in got):.0f} pairs", flush=True)
    subprocess.run([ctl, "shutdown"], env=env, capture_output=True)


main()
