# SPDX-License-Identifier: MIT. nccl_check.py: NCCL's profiler plugin (nccl_plugin.c) beside what its NVTX payloads and kernels tell protond.
"""nccl_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed". Two ranks, on two GPUs.

`knows` runs nccl_work.py once under protond and twice with the plugin (the second time over sockets, where a network has something to
do), and prints what each knows. `cost` runs it bare, under protond without CUPTI (NVTX alone), under protond, and with the plugin, in
turns, and prints ms a step."""
import json
import pathlib
import re
import statistics
import sys

from judge import check, judge, started
from torch_room import CTL, DIR, room, sql

HERE = pathlib.Path(__file__).resolve().parent
RANKS, STEPS, WARM, TURNS = 2, 200, 20, 4
RUN = (CTL, "run", "-n", "x", "-k", "none")
NVTX, FULL = (*RUN, "-b", "none", "--"), (*RUN, "-d", "both", "--")
SOCKETS = {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1, "NCCL_NET": "Socket"}
CALLS = ("AllReduce", "AllGather", "ReduceScatter", "Send", "Recv")


def work(env, *before):
    """What rank 0 measured, or None; and all that was said."""
    out = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "took.json"
    out.unlink(missing_ok=True)
    r = started([*before, sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(RANKS), "--monitor-interval", "0.1",
                 str(HERE / "nccl_work.py"), str(out), str(STEPS), str(WARM)], env, timeout=280)
    return (json.loads(out.read_text()) if r.returncode == 0 and out.exists() else None), r.stdout + r.stderr


def plugin_room(**more):
    env = room(NCCL_PROFILER_PLUGIN=DIR / "gpu/libnccl_plugin.so", **more)
    env["PD_NCCL_OUT"] = env["PROTOND_RUNTIME_DIR"] + "/plugin"
    pathlib.Path(env["PD_NCCL_OUT"]).mkdir()
    return env


def told(env):
    """What the plugin of each rank wrote."""
    return [json.loads(p.read_text()) for p in sorted(pathlib.Path(env["PD_NCCL_OUT"]).glob("*.json"))]


def loaded(env, took, said):
    """Whether NCCL took the plugin; if not, its own words on that."""
    ranks = told(env)
    why = [line for line in said.splitlines() if re.search("PROFILER", line, re.I)]
    check("the program ran with the plugin", took is not None, said[-600:])
    return ranks if check(f"NCCL loaded the plugin in {RANKS} ranks", len(ranks) == RANKS and all(r["comms"] for r in ranks),
                          f"in {len(ranks)}, by interface v{ranks[0]['abi'] if ranks else '-'}; NCCL {took and took['nccl']} said: {why[-6:]}") else []


def words_of(ops, what):
    return " ".join(sorted({str(o[what]) for o in ops if o[what] not in ("", 0)})) or "-"


def plugin_knows(ranks):
    """{row: words} of one rank."""
    one = ranks[0]
    calls = {o["func"]: 0 for o in one["ops"]}
    for o in one["ops"]:
        calls[o["func"]] += o["n"]
    step, op, ch = (one["events"][k] for k in ("proxy_step", "proxy_op", "kernel_ch"))
    return {"operations": ", ".join(f"{k} {n}" for k, n in sorted(calls.items())),
            "bytes": "count x type: " + words_of([{"x": f"{o['count']} {o['datatype']}"} for o in one["ops"]], "x"),
            "ranks": f"{one['comms'][0]['ranks']}, on {one['comms'][0]['nodes']} node(s)",
            "algorithm": words_of(one["ops"], "algorithm"), "protocol": words_of(one["ops"], "protocol"),
            "channels": words_of(one["ops"], "channels"),
            "time on the GPU": f"{ch['starts']} channels' beginnings, {ch['gpu_ns'] / 1e6:.1f} ms in all",
            "network": f"{op['starts']} proxy operations, {step['starts']} steps, {step['bytes']} bytes sent"}, calls


def protond_knows(env):
    nodes = sql(env, "select name, sum(calls) from nodes where kind = 'scope' and name like 'nccl%' group by 1")
    metrics = {}
    for name, value in sql(env, "select m.name, m.value from nodes n join metrics m using (node) where n.name like 'nccl%'"):
        metrics.setdefault(name, []).append(value)
    kernels = sql(env, "select name, count(*), sum(dur_ns), grid_x from kernels where name like 'nccl%' group by 1, 4")
    found = {w: sorted({m.group(0) for k, *_ in kernels for m in re.finditer(p, k)}) for w, p in (
        ("algorithm", "RING|TREE|NVLS_TREE|NVLS|COLLNET_DIRECT|COLLNET_CHAIN|PAT"), ("protocol", "LL128|LL|SIMPLE"))}
    return {"operations": ", ".join(f"{name} {n // RANKS}" for name, n in nodes) or "-",
            "bytes": next((f"{k}: {sum(v)} in all ranks" for k, v in metrics.items() if "size" in k.lower()), "-"),
            "ranks": next((f"{k}: {sorted(set(map(str, v)))}" for k, v in metrics.items() if "rank" in k.lower()), "-"),
            "algorithm": " ".join(found["algorithm"]) + " (of kernels' names)", "protocol": " ".join(found["protocol"]) + " (of kernels' names)",
            "channels": " ".join(sorted({str(x) for *_, x in kernels})) + " (grids of kernels)",
            "time on the GPU": f"{sum(k[1] for k in kernels)} kernels, {sum(k[2] for k in kernels) / 1e6:.1f} ms, both ranks; begin and end of each",
            "network": "-"}, {name: n for name, n in nodes}, metrics


def knows():
    env = room(NCCL_NVTX_DISABLE=0)
    took, said = work(env, *FULL)
    if not check("the program ran under protond", took is not None, said[-600:]):
        return
    ours, ours_calls, metrics = protond_knows(env)
    told_by = {}
    for way, more in (("plugin", {}), ("plugin, sockets", SOCKETS)):
        there = plugin_room(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,ENV,PROFILE", **more)
        ranks = loaded(there, *work(there))
        told_by[way] = plugin_knows(ranks) if ranks else ({}, {})
    print(f"      {'':16} | protond | plugin | plugin, over sockets    (NCCL {took['nccl']})")
    for row in ours:
        print(f"      {row:16} | {ours[row]} | {told_by['plugin'][0].get(row)} | {told_by['plugin, sockets'][0].get(row)}")
    print(f"      payloads of NVTX that protond has: {sorted(metrics)}")
    calls = told_by["plugin"][1]
    for call in CALLS:
        seen = ours_calls.get("nccl" + call)
        check(f"{call}: as often as it was called", seen == RANKS * (STEPS + WARM), f"{seen} of {RANKS * (STEPS + WARM)} by NVTX; one rank's by the plugin: {calls.get(call)}")
    check("the size of messages is known by NVTX", ours["bytes"] != "-", ours["bytes"])
    if calls:
        check("the plugin saw the collectives as often", all(calls.get(c) == STEPS + WARM for c in CALLS[:3]), str(calls))
        check("over sockets the plugin saw steps of the network", " 0 steps" not in told_by["plugin, sockets"][0].get("network", " 0 steps"),
              told_by["plugin, sockets"][0].get("network"))


def cost():
    """Medians of each run's steps, and their ratio to the bare run of the same turn."""
    ways = {"bare": ((), room), "protond, NVTX alone": (NVTX, room), "protond": (FULL, room), "plugin": ((), plugin_room)}
    ms = {way: [] for way in ways}
    for turn in range(TURNS):
        for way in (list(ways) if turn % 2 == 0 else list(reversed(ways))):
            before, of = ways[way]
            env = of()
            took, said = work(env, *before)
            if not check(f"turn {turn}, {way}: it ran", took is not None, f"{statistics.median(took['ms']):.4f} ms" if took else said[-600:]):
                return
            if of is plugin_room and not check(f"turn {turn}: NCCL loaded the plugin", len(told(env)) == RANKS):
                return
            ms[way].append(statistics.median(took["ms"]))
    for way, of in ms.items():
        ratios = sorted(a / b for a, b in zip(of, ms["bare"]))
        print(f"      {way:20} {statistics.median(of):8.4f} ms a step, {statistics.median(ratios):.4f} x bare ({ratios[0]:.4f} to {ratios[-1]:.4f})")
    check("all ways were measured", all(len(of) == TURNS for of in ms.values()))


judge((knows, cost), sys.argv[2:])
