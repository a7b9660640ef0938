# SPDX-License-Identifier: MIT. sync_check.py: calls that wait for the GPU: how many, how long, whose; and what it costs to know.
"""sync_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed"."""
import re
import sys

from judge import check, judge
from sync_room import ROUNDS, THREADS, kineto, recorded
from torch_room import costs, sql

KINDS = {"stream": "cudaStreamSynchronize", "event": "cudaEventSynchronize", "device": "cudaDeviceSynchronize", "copy": "cudaMemcpy"}


def leaves(env):
    """{(top scope, call): (how often, ns)}"""
    got = {}
    for path, name, metric, value in sql(env, "select n.path, n.name, m.name, m.value from nodes n join metrics m on m.node = n.node "
                                              "where n.kind = 'call' and m.name like 'sync%'"):
        at = got.setdefault((re.split(r"[/>]", path.replace("ROOT", "").strip("/> "))[0].strip(), name), {})
        at[metric.split()[0]] = value
    for path, name, calls, ns in sql(env, "select path, name, calls, cpu_time_ns from nodes where kind = 'call' and calls > 0"):
        got.setdefault((re.split(r"[/>]", path.replace("ROOT", "").strip("/> "))[0].strip(), name), {}).update(syncs=calls, sync_time=ns)
    return {k: (v.get("syncs", 0), v.get("sync_time", 0)) for k, v in got.items()}


def counts():
    env, own = recorded("-d", "both", "-s", "sync")
    got = leaves(env)
    want = {"cudaStreamSynchronize": 2 * ROUNDS, "cudaEventSynchronize": ROUNDS, "cudaDeviceSynchronize": ROUNDS, "cudaMemcpy": ROUNDS,
            "cudaEventRecord": ROUNDS, "cudaStreamWaitEvent": ROUNDS}  # a copy to pageable memory waits for its stream once more
    for i in range(THREADS):
        found = {name: n for (scope, name), (n, _) in got.items() if scope == f"thread-{i}"}
        check(f"thread {i}: each call, as often as it was made", found == want, f"{found}; made: {want}")
    alloc = {name: n for (scope, name), (n, _) in got.items() if scope == "alloc"}
    check("cudaMalloc, cudaFree and cudaHostAlloc once each", {k: alloc.get(k) for k in ("cudaMalloc", "cudaFree", "cudaHostRegister")} ==
          {"cudaMalloc": 1, "cudaFree": 1, "cudaHostRegister": 1}, str(alloc))
    for kind in ("stream", "event", "device"):  # torch's copy_() is more than cudaMemcpyAsync
        name = KINDS[kind]
        ns = sum(t for (scope, leaf), (_, t) in got.items() if leaf == name and scope.startswith("thread-"))
        check(f"{name}: as long as the program measured, to 2 %", own[kind] and abs(ns / own[kind] - 1) <= 0.02, f"{ns} ns, {own[kind]} ns")
    beside_kineto(own, got)


def beside_kineto(own, got):
    """Kineto in another run (CUPTI serves one): its cuda*Synchronize, each run against the clock of its own program."""
    theirs, events = kineto()
    rows = [e for e in events if e.get("cat") == "cuda_runtime"]
    for kind, name in KINDS.items():
        long = [e["dur"] * 1e3 for e in rows if e["name"] == name.replace("cudaMemcpy", "cudaMemcpyAsync") and e["dur"] > 200]
        ns = sum(t for (scope, leaf), (_, t) in got.items() if leaf == name and scope.startswith("thread-"))
        ours, kinetos = ns / own[kind], sum(long) / theirs[kind]
        check(f"{name}: as long as Kineto says, to 2 %", len(long) == ROUNDS * THREADS and abs(ours / kinetos - 1) <= 0.02,
              f"of the program's own measure: ours {ours:.4f}, Kineto's {kinetos:.4f}, {len(long)} long rows")


def switched():
    """On and off while it runs; off is none."""
    env, _ = recorded()
    got = leaves(env)
    check("off: no call is in it", not got, str(got))


def cost():
    costs("sync", {"w1": 1.02, "w3": 1.02})


judge((counts, switched, cost), sys.argv[2:])
