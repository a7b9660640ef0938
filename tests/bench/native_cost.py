# SPDX-License-Identifier: MIT. native_cost.py: what samples with native frames cost beside those without. By hand: it takes as long as it says.
"""native_cost.py DIR [ROUNDS [PYTHON]]: DIR is a build. In turns a fixed piece of work under no samples, -s cpu and --native: the CPU time of its
thread against the first's, and the CPU time of the thread that looks, a look at a thread."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

WORK = {"Python": "for _ in range(40): sum(i * i for i in range(100000))", "zlib": "for _ in range(30): zlib.compress(data, 9)"}
PROGRAM = """
import protond, time, zlib
data = bytes(range(256)) * 8000
with protond.scope("work"):
    begin = time.thread_time()
    {}
    print(time.thread_time() - begin)
"""
HOW = {"none": [], "-s cpu": ["-s", "cpu"], "--native": ["--native"]}
DIR = pathlib.Path(sys.argv[1]).resolve()
ROUNDS, PYTHON = int(sys.argv[2]) if len(sys.argv) > 2 else 15, sys.argv[3] if len(sys.argv) > 3 else sys.executable


def run(env, program, how):
    """CPU time of the work, of the agent, and how many looks there were."""
    out = subprocess.run([DIR / "bin/protonctl", "run", "-q", "-n", "x", "-b", "none", *how, "--", PYTHON, "-c", program],
                         env=env, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    session = view(env, "tree", "x")["session"]
    [[looks]] = view(env, "sql", "x", "select sum(value) from metrics where name = 'cpu_samples'")["rows"]
    return float(out), session["overhead"] * session["duration_ns"], looks or 0


def view(env, *words):
    return json.loads(subprocess.run([DIR / "bin/protonview", *words, "--json"], env=env, check=True, capture_output=True, text=True).stdout)["data"]


def main():
    room = tempfile.mkdtemp(prefix="pdnative", dir="/dev/shm")
    env = dict(os.environ, PROTOND_RUNTIME_DIR=room, PROTOND_DB=room + "/db", NO_COLOR="1", PYTHONPATH=str(DIR / "lib/protond/python"))
    for name, work in WORK.items():
        ratios, looks = {how: [] for how in HOW}, {how: [] for how in HOW}
        for _ in range(ROUNDS):
            took = {how: run(env, PROGRAM.format(work), words) for how, words in HOW.items()}
            for how, (cpu, agent, n) in took.items():
                ratios[how].append(cpu / took["none"][0])
                looks[how].append((agent - took["none"][1]) / n / 1e3 if n else 0)
        for how in HOW:
            low, _, high = statistics.quantiles(ratios[how], n=4)
            print(f"{name}, {how}: {statistics.median(ratios[how]):.3f} of the work's CPU time [{low:.3f}, {high:.3f}]; "
                  f"{statistics.median(looks[how]):.0f} µs of the agent a look")


main()
