# SPDX-License-Identifier: MIT. bench.py: what we cost on a GPU, against the bare run, the floor and the peers, in turns.
"""bench.py DIR [--rounds N] [--only L,W1,...] [--csv FILE]

L, W1, W2, W3, W4 of the peers' table. One round runs every tool once, in an order that turns from
round to round, each in a new process; medians, and the 95 % bounds of the median ratio to the bare run
and to the floor from a bootstrap over rounds.
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

HERE = pathlib.Path(__file__).resolve().parent
LABEL = {"L": "ns_per_launch", "W1": "us_per_op", "W2": "us_per_op", "W3": "ms_per_step", "W4": "us_per_replay"}


class Tools:
    def __init__(self, base):
        self.base = base
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="pdbench", dir="/dev/shm"))
        self.dir.chmod(0o700)
        self.n = 0

    def torch(self, mode, tool):
        return [sys.executable, str(HERE / "torch_work.py"), mode.lower(), "--tool", tool]

    def command(self, mode, tool):
        """(argv, environment) or None when the tool does not do this workload."""
        self.n += 1
        env = dict(os.environ, PROTOND_LIB=str(self.base / "lib/libprotond.so.0"))
        work = [str(self.base / "gpu/work"), "loop"]
        bare = [str(self.base / "gpu/work-bare"), "loop"]
        if tool == "floor" or tool == "floor+callback":
            env["CUDA_INJECTION64_PATH"] = str(self.base / "gpu/libfloor.so")
            if tool == "floor+callback":
                env["FLOOR_CALLBACK"] = "1"
            return (bare if mode == "L" else self.torch(mode, "none")), env
        if tool == "bare":
            return (bare if mode == "L" else self.torch(mode, "none")), env
        if tool == "protond":
            env["PROTOND_RUNTIME_DIR"] = str(self.dir)
            env["PROTOND_DB"] = str(self.dir / "db")
            out = str(self.dir / f"{mode}{self.n}.hatchet")
            job = work if mode == "L" else self.torch(mode, "protond")
            return [str(self.base / "bin/protonctl"), "run", "-o", out, "--", *job], env
        if mode == "L":
            return None
        return self.torch(mode, tool) + ["--out", str(self.dir / f"{tool}{self.n}")], env


def once(tools, mode, tool):
    c = tools.command(mode, tool)
    if c is None:
        return None
    r = subprocess.run(c[0], env=c[1], cwd=tools.dir, capture_output=True, text=True, timeout=300)
    m = re.search(LABEL[mode] + r"=([\d.]+)", r.stdout)
    if m is None:
        print(f"# {mode} {tool}: exit {r.returncode}: {r.stderr[-300:]}", file=sys.stderr)
        return None
    return float(m.group(1))


def bounds(a, b):
    """95 % bounds of median(a) / median(b), by resampling rounds."""
    rng, out, n = random.Random(1), [], min(len(a), len(b))
    for _ in range(2000):
        k = [rng.randrange(n) for _ in range(n)]
        out.append(statistics.median(a[i] for i in k) / statistics.median(b[i] for i in k))
    out.sort()
    return out[50], out[1949]


def show(mode, got):
    for tool, x in got.items():
        if not x:
            continue
        line = f"{mode:3} {tool:15} {statistics.median(x):10.2f} {LABEL[mode]:14} ({min(x):.2f}-{max(x):.2f}, {len(x)} rounds)"
        for other in ("bare", "floor"):
            if other != tool and got.get(other):
                low, high = bounds(x, got[other])
                line += f"  {statistics.median(x) / statistics.median(got[other]):.3f} x {other} [{low:.3f}, {high:.3f}]"
        print(line, flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir", type=pathlib.Path)
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--only", default="L,W1,W3,W4")
    p.add_argument("--tools", default="bare,floor,floor+callback,protond,proton,kineto")
    p.add_argument("--csv", type=pathlib.Path)
    a = p.parse_args()
    tools, names = Tools(a.dir.resolve()), a.tools.split(",")
    rows = ["round,workload,tool,value"]
    for mode in a.only.split(","):
        got = {t: [] for t in names}
        for r in range(a.rounds):
            order = names[r % len(names):] + names[:r % len(names)]
            for t in order:
                v = once(tools, mode, t)
                if v is not None:
                    got[t].append(v)
                    rows.append(f"{r},{mode},{t},{v}")
        show(mode, got)
    if a.csv:
        a.csv.write_text("\n".join(rows) + "\n")


main()
