# SPDX-License-Identifier: MIT. Files that other profilers wrote on a GPU (tests/real), imported: as many of each name as
# their own readers count, to the nanosecond where a file has them.
import gzip
import json
import pathlib
import re
import sqlite3
from collections import Counter, defaultdict

import pytest

from test_exports import judge, judged
from test_import import imported
from test_kineto import hta, sql

REAL = pathlib.Path(__file__).parent.parent / "real"


def events_of(file):
    whole = json.loads(gzip.decompress(file.read_bytes()))
    return whole["traceEvents"] if isinstance(whole, dict) else whole


def by_name(rows):
    ret = defaultdict(lambda: [0, 0])
    for name, ns in rows:
        ret[name][0] += 1
        ret[name][1] += ns
    return {n: tuple(v) for n, v in ret.items()}


def recorded(new):
    """{name: (count, ns)} of the kernels, names as they stand in the file."""
    with sqlite3.connect(new) as db:
        rows = db.execute("select n.name, sum(c.count), sum(c.sum_ns) from cell c join node n on n.id = c.node where c.class in (1, 2) group by 1")
        return {n: (count, ns) for n, count, ns in rows}


def ns(us):
    return round(us * 1000)


def test_pytorchs_profile(world):
    new, r = imported(world, REAL / "kineto.json.gz")
    events = [e for e in events_of(REAL / "kineto.json.gz") if e["ph"] == "X"]
    own = json.loads((REAL / "kineto.counts.json").read_text())
    assert len(own) > 150
    # kernels: the file's, and those that key_averages() adds up
    kernels = by_name((e["name"], ns(e["dur"])) for e in events if e["cat"] == "kernel")
    assert recorded(new) == kernels and len(kernels) == 46
    theirs = {k["name"]: k for k in own if k["device"] == "CUDA" and k["name"] in kernels}
    assert theirs.keys() == kernels.keys()
    for name, (count, length) in kernels.items():
        assert count == theirs[name]["count"] and length == pytest.approx(1000 * theirs[name]["device_time_us"], abs=1)
    # operators, calls, annotations
    scopes = by_name((n, d) for n, d in sql(world, new, "select name, dur_ns from scopes union all select name, dur_ns from calls"))
    assert scopes == by_name((re.sub("^ProfilerStep#.*", "step", e["name"]), ns(e["dur"])) for e in events
                             if e["cat"] in ("cpu_op", "cuda_runtime", "cuda_driver", "user_annotation", "python_function"))
    counts = {k["name"]: k["count"] for k in own if k["device"] == "CPU" and k["name"] != "ProfilerStep*"}
    assert counts.keys() <= scopes.keys() and len(counts) == 130
    differ = {n: (c, scopes[n][0]) for n, c in counts.items() if c != scopes[n][0]}
    assert differ == {"aten::mul": (48, 52)}, "the file itself has 52, and 48 in its reader"
    # each has its launch, and what is launched in a step stands below it
    assert "332  launches with their GPU work" in r.stdout and "0  launches without" in r.stdout
    assert sql(world, new, "select v.name, value from scope_values v join steps using (scope) order by step") == [["ProfilerStep", "2"], ["ProfilerStep", "3"]]
    assert sql(world, new, "select class, count(*), sum(dur_ns) from calls") == [["device_sync", 3, 48416]]
    forward = sql(world, new, "select count(*) from kernels where path glob '*/step/*GPT2LMHeadModel_0/*'")[0][0]
    assert forward > 80


def test_pytorchs_memory(world):
    """Its own totals, and the blocks that were given and are not back."""
    new, _ = imported(world, REAL / "kineto.json.gz")
    args = [e["args"] for e in sorted((e for e in events_of(REAL / "kineto.json.gz") if e["name"] == "[memory]"), key=lambda e: e["ts"])]
    args, blocks = [a for a in args if a["Device Type"] == 1], {}
    for a in args:
        if a["Bytes"] > 0:
            blocks[a["Addr"]] = a["Bytes"]
        else:
            blocks.pop(a["Addr"], None)
    assert sql(world, new, "select now, blocks, peak, allocs, frees, alloc_bytes from memory where kind = 'torch_allocated'") == [[
        args[-1]["Total Allocated"], len(blocks), max(a["Total Allocated"] for a in args), sum(a["Bytes"] > 0 for a in args), sum(a["Bytes"] < 0 for a in args),
        sum(a["Bytes"] for a in args if a["Bytes"] > 0)]]
    assert sql(world, new, "select sum(now) from memory_owners where kind = 'torch_allocated' and path <> '(other)'") == [[sum(blocks.values())]]
    assert len(blocks) == 28


@judged
def test_pytorchs_profile_as_kineto_again(world):
    """Imported and written in its own words: the same steps, calls and kernels; nothing that a viewer drops."""
    new, _ = imported(world, REAL / "kineto.json.gz")
    world.view("export", new, "-o", "x.pt.trace.json")
    df, whole = hta(world.home / "x.pt.trace.json")
    events = [e for e in events_of(REAL / "kineto.json.gz") if e["ph"] == "X"]
    was = Counter((e["args"]["correlation"], ns(e["dur"])) for e in events if e["cat"] == "kernel")
    assert Counter((e.correlation, e.dur) for e in df[df["cat"].eq("kernel")].itertuples()) == was
    assert {e["name"] for e in events if e["name"].startswith("ProfilerStep")} == set(df[df["name"].str.startswith("ProfilerStep")]["name"])
    rows = judge("perfetto", world.home / "x.pt.trace.json", "select name, value from stats where severity = 'error' and value > 0",
                 "select count(*) n from slice where category = 'kernel'")
    assert [int(r["n"]) for r in rows] == [332], rows


def test_protons_tree(world):
    new, _ = imported(world, REAL / "proton.hatchet")
    nodes, want = [json.loads((REAL / "proton.hatchet").read_text())[0]], {}
    while nodes:
        n = nodes.pop()
        nodes += n["children"]
        if "count" in n["metrics"]:
            old = want.get(n["frame"]["name"], (0, 0))
            want[n["frame"]["name"]] = (old[0] + n["metrics"]["count"], old[1] + n["metrics"]["time (ns)"])
    want.pop("ROOT", None)
    with sqlite3.connect(new) as db:
        have = {}
        for name, metric, value in db.execute("select n.name, m.name, m.value from metric m join node n on n.id = m.node where n.kind <> 0"):
            have.setdefault(name, {})[metric] = value
    assert {n: (m["count"], m["time (ns)"] if "time (ns)" in m else m["time"]) for n, m in have.items() if "count" in m} == want
    assert sum(c for c, _ in want.values()) == 332


def test_protons_trace(world):
    new, _ = imported(world, REAL / "proton.trace.json.gz")
    assert recorded(new) == by_name((e["name"], ns(e["dur"])) for e in events_of(REAL / "proton.trace.json.gz") if e["ph"] == "X")


def test_jaxs_profile(world):
    """XLA's events have no categories: GPU work is known by its details, and stands in its module and operation."""
    new, r = imported(world, REAL / "jax.json.gz")
    events = [e for e in events_of(REAL / "jax.json.gz") if e.get("ph") == "X"]
    gpu = [e for e in events if "kernel_details" in e.get("args", {})]
    assert len(gpu) == 40 and recorded(new) == by_name((e["name"], ns(e["dur"])) for e in gpu)
    assert by_name(sql(world, new, "select name, dur_ns from scopes")) == by_name((e["name"], ns(e["dur"])) for e in events if e not in gpu)
    paths = Counter(p for p, in sql(world, new, "select path from kernels"))
    assert paths == Counter(f"jit_step/command_buffer_1/{e['name']}" for e in gpu)
    assert sql(world, new, "select distinct gpu, stream from kernels") == [[0, 14]]
    first, = sql(world, new, "select grid_x, grid_y, block_x, registers, static_shared, dynamic_shared from kernels order by start_ns limit 1")
    assert first == [128, 1, 128, 50, 0, 8192]
    assert "40  kernels" in r.stdout
