# SPDX-License-Identifier: MIT. overhead.py: what a run says that recording costs, and what it costs over the floor.
"""overhead.py DIR [--floor] [--callback] [--only w1,w2,w3] [--processes N] [--seconds S] [--steps N] [--periods N] [--csv FILE] [--each DIR]

Each process goes through cycles of two parts, in an order that changes. A/B: a few steps with CUPTI let go, as many
with all recorded, and so on, timed here; each B against the A before, and against the one after it (against the mean of
the two, a slow moment in B weighs more than one in A, and an interquartile mean says too little). And some periods of
steps of which half are recorded, from which protond works out by itself what recording costs. Two processes of one
program differ by some points, the parts of one process do not. --floor: A has the floor's CUPTI (libfloor.so), B has
protond's and, but in W1 and L, the workload's scopes; the difference is what the goals are about. l: L, the launches of
empty kernels from C, with --floor only. --callback: and the floor with an empty callback at each launch.

The host's cores change their pace by up to half (other tenants). So the threads that launch keep to one core, and
nothing else of the process to that core or its neighbour (a thread that slept in a switch may wake on another); and
before each step the same small piece of work is timed: the step's time, for protond as for the A/B, is divided by the
power of what that took that explains most of its variance (r = 0.8 to 0.9 of their logarithms). Each GPU runs a process
at a time. Interquartile means in a process, means over processes with 95 % bounds from a bootstrap.
"""
import argparse
import concurrent.futures
import contextlib
import ctypes
import json
import math
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
POWER = {"l": 0.5, "w1": 0.5, "w2": 0.5, "w3": 0.7}
WARM = 8  # steps after a switch, not timed: right after it they differ (docs/benchmarks.md)


def pace():
    """ns that the same piece of work takes: about 0.3 ms."""
    t = time.monotonic_ns()
    for i in range(6000):
        math.sqrt(i)
    return time.monotonic_ns() - t


class Pace:
    """How long steps take, as it were at a steady pace."""

    def __init__(self, mode):
        self.power, self.usual, self.since, self.before = POWER[mode], pace(), 0, 0

    def ends(self):
        """(ns, pace ns, ns at a steady pace) of the step that ends here; None: none does."""
        end, now = time.monotonic_ns(), pace()
        took, around = end - self.since, (self.before + now) / 2
        out = (took, now, round(took / (around / self.usual) ** self.power)) if self.since else None
        self.before = now
        return out

    def begins(self):
        self.since = time.monotonic_ns()
        return self.since


class Cores:
    """One for the threads that launch (this one and autograd's, in turns), and nothing else beside it."""

    def __init__(self, rng):
        cores = sorted(os.sched_getaffinity(0))
        self.ours = rng.sample(cores[::2], k=1)
        self.others = [c for c in cores if c & ~1 not in self.ours]

    def keep(self):
        """Again and again: a new thread has its maker's."""
        for task in map(int, os.listdir("/proc/self/task")):
            try:
                autograd = pathlib.Path(f"/proc/self/task/{task}/comm").read_text().startswith("pt_autograd")
                os.sched_setaffinity(task, self.ours if task == os.getpid() or autograd else self.others)
            except OSError:
                pass  # it has ended


def pairs(turn, ratios, kinds=("b", "b")):
    """A, B, A, B, A: each B against each A beside it, into the ratios of its kind. Returns the A's."""
    means = [math.log(turn("a"))]
    for kind in kinds:
        means += math.log(turn(kind)), math.log(turn("a"))
        ratios[kind] += means[-2] - means[-3], means[-2] - means[-1]
    return [math.exp(m) for m in means[::2]]


def percent(ratios):
    cut = (len(ratios) + 1) // 4
    return 100 * (math.exp(statistics.fmean(sorted(ratios)[cut:len(ratios) - cut])) - 1)


def said(mode, a):
    """Below `protonctl run -k torch` with a sample rate."""
    import torch_work

    import protond.torch

    sampler, rng, clock = protond.torch._sampler, random.Random(os.getpid()), Pace(mode)
    cores, next_of_sampler, took = Cores(rng), sampler.next, []  # the times of a turn's steps
    off, warm = None, 0
    rows, turns, at = ["turn,rate,off,step since the switch,kind,ns,pace ns,ns at a steady pace"], 0, 0

    def next_step():
        nonlocal off, warm, at
        step = clock.ends()
        if step:
            if a.each:
                rows.append(f"{turns},{sampler.rate:g},{off:d},{at},{sampler._kind},{step[0]},{step[1]},{step[2]}")
            if not warm:
                took.append(step[2])
            sampler._since = time.monotonic_ns() - step[2]
        warm -= warm > 0
        kind = next_of_sampler()
        at += 1
        if sampler._off != off:
            off, warm, at = sampler._off, WARM, 1
        if warm > WARM - 3:  # CUPTI's threads are new
            cores.keep()
        sampler._since = clock.begins()
        return kind

    def turn(rate, steps=WARM + a.steps):
        """Mean time of its steps. The last one ends in a synchronization: not counted."""
        nonlocal turns
        turns += 1
        sampler.rate = rate
        sampler._plan.clear()
        took.clear()
        fn((steps + 1) * each, torch_work.no_scope)
        clock.since, sampler._since = 0, None
        return statistics.fmean(took)

    def ab(kind):
        return turn(float(kind == "b"))

    sampler.next, ratios = next_step, {"b": []}
    torch_work.step_begins = protond.torch.step  # of w1 and w2; w3's optimizer tells
    each = 1 if mode == "w3" else torch_work.PART
    fn, _ = torch_work.WORK[mode]
    fn(WARM * each, torch_work.no_scope)
    end = time.monotonic() + a.seconds
    while time.monotonic() < end:
        for part in rng.sample([lambda: pairs(ab, ratios), lambda: turn(0.5, a.periods * 2 * sampler.active)], k=2):
            part()
    if a.each:
        (a.each / f"{mode}-{os.getpid()}.csv").write_text("\n".join(rows) + "\n")
    return {"says": 100 * sampler.cost(), "ab": percent(ratios["b"]), "pairs": len(ratios["b"])}


def empty_kernels(base):
    """L, in steps as w1's."""
    import torch
    import torch_work

    lib = ctypes.CDLL(str(base / "gpu/libloop.so"))

    def work(n, _scope):
        for _ in range(0, n, torch_work.PART):
            torch_work.step_begins()
            if lib.launch_empty(ctypes.c_long(torch_work.PART)) != 0:
                raise SystemExit("a launch failed")
        torch.cuda.synchronize()
    return work


def over_floor(mode, a):
    """Below `protonctl run -k none`. What is on has let go of CUPTI before the other takes it."""
    import torch
    import torch_work

    import protond

    native, floor, clock = protond._api._native, ctypes.CDLL(str(a.dir / "gpu/libfloor.so")), Pace(mode)
    cores, took, warm, nothing = Cores(random.Random(os.getpid())), [], 0, contextlib.nullcontext()
    each = 1 if mode == "w3" else torch_work.PART
    fn = empty_kernels(a.dir) if mode == "l" else torch_work.WORK[mode][0]
    floors = []

    def quiet(_name):
        return nothing

    enter = quiet

    def scope(name):
        if name in ("odd", "even"):  # a step of w3; w1 and w2 say so
            step_begins()
        return enter(name)

    def step_begins():
        nonlocal warm
        step = clock.ends()
        if step and warm <= 0:
            took.append(step[2])
        warm -= 1
        if warm > WARM - 3:
            cores.keep()
        clock.begins()

    def steps(n):
        nonlocal warm
        warm = WARM + 1
        took.clear()
        fn(n * each, scope)
        clock.since = 0

    def until(done, what):
        for _ in range(100):
            if done():
                return
            torch.cuda.current_stream().query()
            steps(1)
        raise SystemExit(f"{what} does not come to pass")

    def turn(kind):
        nonlocal enter
        protonds = kind == "b"
        if protonds:
            native.gpu_resume()
        else:
            until(lambda: floor.floor_on(kind == "callback") == 0, "the floor")
        enter = protond.scope if protonds else quiet
        steps(WARM + a.steps + 1)
        value = statistics.fmean(took)
        if protonds:
            native.gpu_pause(native.GIVE_BACK)
            steps(3)
        else:
            floor.floor_off()
            until(floor.floor_is_gone, "the floor's end")
        return value

    torch_work.step_begins, rng = step_begins, random.Random(os.getpid())
    kinds = ["b", "callback" if a.callback else "b"]
    ratios = {kind: [] for kind in kinds}
    steps(WARM)
    native.gpu_pause(native.GIVE_BACK)
    steps(3)
    end = time.monotonic() + a.seconds
    while time.monotonic() < end:
        floors += pairs(turn, ratios, rng.sample(kinds, k=len(kinds)))
    floor_ns = statistics.median(floors) / each
    over = {kind: percent(r) for kind, r in ratios.items()}
    return {"over": over["b"], "ns": floor_ns * over["b"] / 100, "floor ns": floor_ns, "pairs": len(ratios["b"]),
            **{kind: over[kind] for kind in over if kind != "b"}}


def mean(values):
    rng = random.Random(1)
    out = sorted(statistics.fmean(rng.choices(values, k=len(values))) for _ in range(2000))
    return "{:+.2f} [{:.2f}, {:.2f}]".format(statistics.fmean(values), out[50], out[1949])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=pathlib.Path, nargs="?")
    p.add_argument("--floor", action="store_true", help="what protond costs over the floor")
    p.add_argument("--callback", action="store_true", help="with --floor: and what CUPTI takes to call back at each launch")
    p.add_argument("--only", default="w1,w2,w3")
    p.add_argument("--processes", type=int, default=8)
    p.add_argument("--seconds", type=float, default=30, help="that each lives")
    p.add_argument("--steps", type=int, default=12, help="of A and of B that are timed")
    p.add_argument("--periods", type=int, default=4, help="in a cycle")
    p.add_argument("--csv", type=pathlib.Path)
    p.add_argument("--each", type=pathlib.Path, help="a folder for each process's steps")
    p.add_argument("--job", help=argparse.SUPPRESS)
    a = p.parse_args()
    if not a.floor and (a.callback or "l" in a.only.split(",")):
        p.error("l and --callback go with --floor")
    if a.job:
        print("result=" + json.dumps((over_floor if a.floor else said)(a.job, a)))
        return
    base, place = a.dir.resolve(), pathlib.Path(tempfile.mkdtemp(prefix="pdover", dir="/dev/shm"))
    place.chmod(0o700)
    ctl = str(base / "bin/protonctl")
    env = dict(os.environ, PYTHONPATH=str(base / "lib/protond/python"), PROTOND_RUNTIME_DIR=str(place),
               PROTOND_DB=str(place / "db"), PROTOND_LANE_KB="4096")
    if not a.floor:
        env["PROTOND_SAMPLE_RATE"] = "0.5"
    gpus = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU ")
    free, cores = queue.SimpleQueue(), sorted(os.sched_getaffinity(0))
    share = len(cores) // gpus
    for gpu in range(gpus):
        free.put((str(gpu), ",".join(map(str, cores[gpu * share:(gpu + 1) * share]))))

    def process(mode):
        gpu, its_cores = free.get()
        try:
            r = subprocess.run(["taskset", "-c", its_cores, ctl, "run", "-k", "none" if a.floor else "torch", "--", sys.executable,
                                str(HERE / "overhead.py"), str(base), "--job", mode, "--seconds", str(a.seconds),
                                "--steps", str(a.steps), "--periods", str(a.periods), *(["--floor"] if a.floor else []), *(["--callback"] if a.callback else []),
                                *(["--each", str(a.each.resolve())] if a.each else [])],
                               env=dict(env, CUDA_VISIBLE_DEVICES=gpu), cwd=place, capture_output=True, text=True)
        finally:
            free.put((gpu, its_cores))
        line = re.search(r"^result=(.*)$", r.stdout, re.M)
        if r.returncode or not line or "drops 0" not in r.stdout + r.stderr:
            raise SystemExit(f"{mode}: exit {r.returncode}: {r.stdout[-1000:]}{r.stderr[-2000:]}")
        return json.loads(line.group(1))

    rows = ["workload,process," + ("over,ns,floor ns,pairs" + ",callback" * a.callback if a.floor else "says,ab,pairs")]
    pool = concurrent.futures.ThreadPoolExecutor(gpus)
    for mode in a.only.split(","):
        got = []
        for i, found in enumerate(pool.map(process, [mode] * a.processes)):
            got.append(found)
            rows.append(",".join(map(str, [mode, i, *found.values()])))
            if a.csv:
                a.csv.write_text("\n".join(rows) + "\n")
        n = f"{len(got)} processes, {sum(g['pairs'] for g in got)} pairs"
        if a.floor:
            print(f"{mode}: {mean([g['over'] for g in got])} % over the floor, {mean([g['ns'] for g in got])} ns of "
                  f"{mean([g['floor ns'] for g in got])}: {n}", flush=True)
            if a.callback:
                print(f"    an empty callback at each launch: {mean([g['callback'] for g in got])} % over the floor; "
                      f"protond over that {mean([g['over'] - g['callback'] for g in got])} points", flush=True)
            continue
        says, ab = [g["says"] for g in got], [g["ab"] for g in got]
        print(f"{mode}: it says {mean(says)} %, A/B {mean(ab)} %, difference {mean([x - y for x, y in zip(says, ab)])}: {n}", flush=True)
    subprocess.run([ctl, "shutdown"], env=env, capture_output=True)


main()
