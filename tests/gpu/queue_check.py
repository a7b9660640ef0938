# SPDX-License-Identifier: MIT. queue_check.py: launches and their delays, and overhead, against Kineto's rows of the same program.
"""queue_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed"."""
import json
import pathlib
import statistics
import subprocess
import sys

from judge import check, judge
from torch_room import CTL, DIR, room, sql

HERE = pathlib.Path(__file__).resolve().parent
WORK = str(HERE / "sync_work.py")
ROUNDS, THREADS = 20, 2


def recorded(*options):
    env = room()
    env["PYTHONPATH"] = str(DIR / "lib/protond/python")
    out = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "took.json"
    r = subprocess.run([CTL, "run", "-n", "x", "-k", "none", "-d", "both", *options, "--", sys.executable, WORK, "none", str(out),
                        str(ROUNDS), str(THREADS)], env=env, capture_output=True, text=True, timeout=280)
    check(f"{' '.join(options) or 'no switch'}: it ran", r.returncode == 0 and out.exists(), r.stderr[-900:])
    return env


def kineto_rows():
    env = room()
    out = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "took.json"
    subprocess.run([sys.executable, WORK, "kineto", str(out), str(ROUNDS), str(THREADS)], env=env, check=True, timeout=280)
    return json.loads(pathlib.Path(f"{out}.trace.json").read_text())["traceEvents"]


def launches():
    """Calls and delays; Kineto's are of another run, so the delays are compared by their median, of kernels."""
    env = recorded("-s", "queue")
    rows = kineto_rows()
    ends = {e["args"]["correlation"]: (e["ts"] + e["dur"]) * 1e3 for e in rows
            if e.get("cat") == "cuda_runtime" and e["name"].startswith("cudaLaunchKernel")}
    theirs = [max(0, e["ts"] * 1e3 - ends[e["args"]["correlation"]]) for e in rows
              if e.get("cat") == "kernel" and e["args"].get("correlation") in ends]
    ours = [max(0, ns) for ns, in sql(env, "select k.start_ns - c.end_ns from kernels k join calls c on c.correlation = k.correlation "
                                           "and c.pid = k.pid and c.class = 'launch' where k.path like '%thread-%'")]  # not those before Kineto began
    check("as many launches of kernels as Kineto's cudaLaunchKernel", len(ours) == len(ends), f"{len(ours)}, {len(ends)}")
    a, b = statistics.median(ours), statistics.median(theirs)
    check("a launch's delay is Kineto's, to 20 % or 4 us", abs(a - b) <= max(4000, b / 5), f"median {a} ns, {b} ns")
    total = sql(env, "select sum(m.value) from nodes n join metrics m using (node) where m.name = 'launch_delays'")[0][0]
    every = sql(env, "select count(*) from launches")[0][0]
    check("each launch that got a record has a delay", total == every, f"{total}, {every}")


def overhead():
    """What the driver writes; a first launch of each kernel is loaded lazily."""
    env = recorded("-s", "overhead")
    kinds = sql(env, "select class, path, count(*), sum(dur_ns) from calls group by 1, 2")
    check("there is some", bool(kinds), "no OVERHEAD record came")
    for row in kinds:
        print("  ", *row)


def off():
    env = recorded()
    check("off: none of it", not sql(env, "select * from calls"), "calls in a session without a switch")


judge((launches, overhead, off), sys.argv[2:])
