# SPDX-License-Identifier: MIT. bench.py: what we cost on a GPU, against the bare run, the floor and the peers, in turns.
"""bench.py DIR [--rounds N] [--only L,w1,...] [--tools bare,floor,...] [--csv FILE]

L, W1, W2, W3, W4 of the peers' table. One round runs every tool once, in an order that turns from
round to round, each alone, in a process of its own (a fresh one for L, and for torch every --fresh rounds); medians,
and the median of the rounds' ratios to the bare run and to the floor with 95 % bounds from a bootstrap over processes
and their rounds: two processes of one program differ by more than two rounds of one process.

protond, own, proton, kineto enter the workload's scopes by hand; own is a session of the program's own. All others
do without: bare, floor, and `protonctl run` with what SWITCHES says. What a sampled run says itself of what recording
costs is printed beside it, to be compared with `-k torch` against `names only`; overhead.py does so in one process.
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
UNIT = {"L": "ns", "w1": "us", "w2": "us", "w3": "ms", "w4": "us", "says": "%"}
OPS = "PROTOND_TORCH_OPS"
SWITCHES = {"-k none": {}, "-k torch": {}, "backward=module": {"PROTOND_TORCH_BACKWARD": "module"}, "ops": {OPS: "1"},
            **{"ops, " + x: {OPS: "1", "PROTOND_TORCH_" + x.upper(): "1"}
               for x in ("shapes", "dtypes", "strides", "scalars", "kwargs", "stack", "sequence", "flops")},
            **{f"sampled {x} %": {"PROTOND_SAMPLE_RATE": str(x / 100)} for x in (50, 10, 5, 0)}}


class Tools:
    def __init__(self, base, steps):
        self.base, self.steps = base, steps
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="pdbench", dir="/dev/shm"))
        self.dir.chmod(0o700)
        self.n = 0

    def torch(self, modes, tool):
        return [sys.executable, str(HERE / "torch_work.py"), modes, "--tool", tool, "--steps", str(self.steps), "--wait"]

    def command(self, modes, tool):
        """(argv, environment) or None when the tool does not do this workload."""
        self.n += 1
        env = dict(os.environ, PYTHONPATH=str(self.base / "lib/protond/python"), PROTOND_RUNTIME_DIR=str(self.dir),
                   PROTOND_DB=str(self.dir / "db"), PROTOND_LANE_KB="4096")
        c = modes == "L"
        job = [str(self.base / "gpu/work-bare"), "loop"] if c else self.torch(modes, "none")
        run = [str(self.base / "bin/protonctl"), "run", "-o", str(self.dir / f"{self.n}.hatchet"), "-k"]
        if tool == "bare":
            return job, env
        if tool in ("floor", "floor+callback"):
            env["CUDA_INJECTION64_PATH"] = str(self.base / "gpu/libfloor.so")
            if tool == "floor+callback":
                env["FLOOR_CALLBACK"] = "1"
            return job, env
        if tool == "protond":
            return run + ["none", "--"] + ([str(self.base / "gpu/work"), "loop"] if c else self.torch(modes, "protond")), env
        if c:
            return None
        if tool == "-d trace":
            return run + ["none", "-d", "trace", "--"] + job, env
        if tool == "names only":
            return run + ["torch", "-b", "none", "--"] + self.torch(modes, "steps"), env
        if tool in SWITCHES:
            return run + ["none" if tool == "-k none" else "torch", "--"] + self.torch(modes, "steps"), {**env, **SWITCHES[tool]}
        if tool == "kineto":
            return self.torch(modes, tool), env  # its trace is not written: hundreds of megabytes
        if tool == "own":
            env["PROTOND_AUTOSTART"] = "1"
        return self.torch(modes, tool) + ["--out", str(self.dir / f"{tool}{self.n}")], env


class Job:
    """A program that works once for each line it gets. The C loop does so once, and ends."""

    def __init__(self, tools, modes, tool):
        argv, env = tools.command(modes, tool)
        self.tool, self.place = tool, tools.dir
        self.err = tempfile.TemporaryFile("w+")
        self.p = subprocess.Popen(argv, env=env, cwd=tools.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=self.err, text=True)

    def until(self, word):
        lines = []
        for line in self.p.stdout:
            if line.strip() == word:
                break
            lines.append(line)
        return {m: float(v) for m, v in re.findall(r"^(ns_per_launch|w\d\w*)=([\d.]+)$", "".join(lines), re.M)}

    def once(self):
        if self.p.poll() is not None:
            sys.exit(f"{self.tool}: exit {self.p.returncode}: {self.words()[-2000:]}")
        self.p.stdin.write("go\n")
        self.p.stdin.flush()
        return self.until("done")

    def words(self):
        self.err.seek(0)
        return self.err.read()

    def end(self):
        """Says what does not compare: a failure, and events that were dropped."""
        self.p.stdin.close()
        found = self.until("")
        self.p.wait(300)
        words = self.words()
        drops, cost = re.search(r"drops (\d+)", words), re.search(r"(\S+)% for a step recorded", words)
        if cost:
            found["says"] = float(cost.group(1))
        if self.p.returncode != 0 or (drops and drops.group(1) != "0"):
            print(f"# {self.tool}: exit {self.p.returncode} {drops and drops.group()}: {words[-300:]}", file=sys.stderr, flush=True)
        return found


def ratio(a, b, lived):
    """{round: value} of two tools, whose processes live for so many rounds: the median of the rounds' ratios, and its
    95 % bounds by resampling processes and their rounds: the machine's drift is in both sides of each."""
    rng, each = random.Random(1), {}
    for r in sorted(a.keys() & b.keys()):
        each.setdefault(r // lived, []).append(a[r] / b[r])
    each = list(each.values())
    out = sorted(statistics.median(x for g in rng.choices(each, k=len(each)) for x in rng.choices(g, k=len(g)))
                 for _ in range(2000))
    return statistics.median(x for g in each for x in g), out[50], out[1949]


def show(mode, got, lived):
    for tool, x in got.items():
        if not x:
            continue
        unit, each = UNIT.get(mode, "ms"), x.values()
        line = f"{mode:10} {tool:15} {statistics.median(each):10.3f} {unit} ({min(each):.3f}-{max(each):.3f}, {len(x)})"
        for other in ("bare", "floor", "names only"):
            if other != tool and got.get(other) and mode in UNIT:
                line += "  {1:.3f} x {0} [{2:.3f}, {3:.3f}]".format(other, *ratio(x, got[other], lived))
        print(line, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=pathlib.Path)
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--seconds", type=float, default=1e9, help="begin no process after so long")
    p.add_argument("--fresh", type=int, default=5, help="rounds that a torch process lives")
    p.add_argument("--steps", type=int, default=0)
    p.add_argument("--only", default="L,w1,w2,w3,w4")
    p.add_argument("--tools", default="bare,floor,floor+callback,protond,own,proton,kineto")
    p.add_argument("--csv", type=pathlib.Path)
    a = p.parse_args()
    tools, names, began = Tools(a.dir.resolve(), a.steps), a.tools.split(";" if ";" in a.tools else ","), time.monotonic()
    rows, got, jobs = ["round,workload,tool,value"], {}, {}
    torch = ",".join(m for m in a.only.split(",") if m != "L")

    def keep(r, tool, found):
        for mode, value in found.items():
            mode = "L" if mode == "ns_per_launch" else mode
            got.setdefault(mode, {n: {} for n in names})[tool][r] = value
            rows.append(f'{r},{mode},"{tool}",{value}')

    def end(r):
        for tool, job in jobs.items():
            keep(r, tool, job.end())
        jobs.clear()

    for r in range(a.rounds):
        turn = names[r % len(names):] + names[:r % len(names)]
        if time.monotonic() - began > a.seconds and not jobs:
            break
        for tool in turn if "L" in a.only else ():
            if tools.command("L", tool):
                keep(r, tool, Job(tools, "L", tool).end())
        if torch and not jobs:
            jobs = {tool: Job(tools, torch, tool) for tool in names}  # torch takes seconds to begin: side by side
            for job in jobs.values():
                job.until("ready")
                job.once()  # models are made, libraries are loaded
        for tool in turn if torch else ():
            keep(r, tool, jobs[tool].once())
        if r % a.fresh == a.fresh - 1 or r == a.rounds - 1:
            end(r)
        if a.csv:
            a.csv.write_text("\n".join(rows) + "\n")
    for mode in got:
        show(mode, got[mode], 1 if mode == "L" else a.fresh)
    subprocess.run([str(tools.base / "bin/protonctl"), "shutdown"], env={**os.environ, "PROTOND_RUNTIME_DIR": str(tools.dir)},
                   capture_output=True)


main()
