# SPDX-License-Identifier: MIT. sync_check.py: calls that wait for the GPU: how many, how long, whose; and what it costs to know.
"""sync_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed"."""
import json
import re
import sys

from judge import check, judge
from sync_room import ROUNDS, THREADS, kineto, recorded
from torch_room import DIR, costs, run, sql, view

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


DEFAULT = """
import torch
from protond import scope
event = torch.cuda.Event()
torch.cuda._sleep(1000)
for i in range(20):
    with scope("step"):
        torch.cuda._sleep(4000000)
        if i % 2:
            torch.cuda.current_stream().synchronize()
        else:
            event.record()
            event.synchronize()
"""


def default():
    """Calls on the default stream, which has no handle, name it; so the critical path goes through the work that they wait for."""
    env = run(DEFAULT, "-k", "none", "-d", "both", "-s", "sync", PYTHONPATH=DIR / "lib/protond/python")[3]
    of = {r[0] for r in sql(env, "select distinct stream from kernels")}
    calls = sql(env, "select class, stream, count(*) from calls where path like '%step%' and class in ('stream_sync', 'event_record') group by 1, 2")
    check("waits for the default stream and records on it name the stream of its kernels", len(of) == 1 and
          sorted(map(tuple, calls)) == [(name, *of, 10) for name in ("event_record", "stream_sync")], f"{calls}; kernels on {of}")
    found = json.loads(view(env, "critical", "x", "--json") or "{}").get("data", {"columns": [], "rows": []})
    rows = [dict(zip((c["name"] for c in found["columns"]), r)) for r in found["rows"]]
    share = sum(r["share"] for r in rows if r["part"] == "compute" and r["name"] is None)
    check("a step is the kernel that it waited for", share > 0.9, f"{share:.3f} of the path is work of the GPU")


def switched():
    """On and off while it runs; off is none."""
    env, _ = recorded()
    got = leaves(env)
    check("off: no call is in it", not got, str(got))


def cost():
    costs("sync", {"w1": 1.02, "w3": 1.02})


judge((counts, default, switched, cost), sys.argv[2:])
