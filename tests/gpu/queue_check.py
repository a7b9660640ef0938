# SPDX-License-Identifier: MIT. queue_check.py: launches and their delays, and overhead, against Kineto's rows of the same program.
"""queue_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed"."""
import statistics
import sys

from judge import check, judge
from sync_room import kineto, recorded
from torch_room import costs, sql


def launches():
    """Calls and delays; Kineto's are of another run, so the delays are compared by their median, of kernels."""
    env, _ = recorded("-d", "both", "-s", "queue")
    rows = kineto()[1]
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
    env, _ = recorded("-d", "both", "-s", "overhead")
    kinds = sql(env, "select class, path, count(*), sum(dur_ns) from calls group by 1, 2")
    check("there is some", bool(kinds), "no OVERHEAD record came")
    for row in kinds:
        print("  ", *row)


def off():
    env, _ = recorded("-d", "both")
    check("off: none of it", not sql(env, "select * from calls"), "calls in a session without a switch")


def cost():
    costs("queue", {"w1": 1.02, "w3": 1.02})
    costs("overhead", {"w1": 1.02, "w3": 1.02})


judge((launches, overhead, off, cost), sys.argv[2:])
