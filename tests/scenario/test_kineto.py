# SPDX-License-Identifier: MIT. chrome_trace in Kineto's words, read as its readers read it: HTA's data frame (pandas), with
# its formulas for iterations, kinds of kernels, idle time and launches; and TensorBoard's plugin, which ties events by ids.
# What they find is compared with `protonview sql` of the same session.
import collections
import gzip
import json
import math
import re

import pytest

from conftest import BUILD
from test_exports import DUMPS, REPLAY, STUB, judge, judged, replayed

pd = pytest.importorskip("pandas")
needs_replay = pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def sql(world, source, words):
    return json.loads(world.view("sql", source, words, "--json").stdout)["data"]["rows"]


def hta(file):
    """The frame that HTA works on: what has a length and a category; args beside it, -1 where there are none."""
    whole = json.loads(file.read_text())
    assert isinstance(whole["distributedInfo"]["rank"], int), "it takes no file without"
    df = pd.DataFrame([e for e in whole["traceEvents"] if "dur" in e and "cat" in e and e["cat"] != "Trace"])
    for name in ("stream", "correlation", "External id"):
        df[name] = [a.get(name, -1) for a in df["args"]]
    for name in ("ts", "dur"):  # nanoseconds: whole, where HTA has floats
        df[name] = [round(v * 1000) for v in df[name]]
    df["end"] = df["ts"] + df["dur"]
    return df, whole


def kernel_type(name):
    if re.match("nccl", name):
        return "COMMUNICATION"
    return "MEMORY" if name.startswith(("Memcpy", "Memset")) else "COMPUTATION"


def merged(df):
    """Nanoseconds in which at least one of them runs, from the first start to the last end."""
    busy, last = 0, -1
    for ts, end in sorted(zip(df["ts"], df["end"])):
        busy += max(0, end - max(ts, last))
        last = max(last, end)
    return busy, max(df["end"]) - min(df["ts"])


def iterations(df):
    """{step: CPU events that begin in it}; GPU work is its launch's."""
    steps = [(int(re.match(r"ProfilerStep\s*#\s*(\d+)", e.name).group(1)), e.ts, e.end)
             for e in df[df["name"].str.startswith("ProfilerStep") & df["stream"].eq(-1) & df["cat"].eq("user_annotation")].itertuples()]
    of = {}
    for e in df[df["stream"].eq(-1) & df["correlation"].ne(-1)].itertuples():
        of[e.correlation] = next((n for n, begin, end in steps if begin <= e.ts < end), -1)
    gpu = collections.Counter(of.get(c, -1) for c in df[df["stream"].ne(-1)]["correlation"])
    return steps, gpu


def check_ids(df):
    """As TensorBoard's plugin ties them: a runtime call and its GPU work have one id, and it is a scope's."""
    scopes = set(df[df["cat"].isin(["user_annotation", "cpu_op", "python_function"])]["External id"])
    calls = df[df["cat"].eq("cuda_runtime")]
    by = dict(zip(calls["correlation"], calls["External id"]))
    gpu = df[df["stream"].ne(-1)]
    assert all(by.get(c, 0) == i for c, i in zip(gpu["correlation"], gpu["External id"]) if c != -1)
    assert set(calls["External id"]) <= scopes | {0}


def check_projections(world, source, df, whole):
    """Each scope on each lane, from its first work's start to its last one's end: out of the session's tables (proto/session/project.h)."""
    base = whole["baseTimeNanoseconds"]
    scopes = df[df["cat"].eq("user_annotation")]
    rows = sql(world, source, "select tid, path, begin_ns, end_ns from scopes where not task order by begin_ns, end_ns desc, length(path)")
    assert len(rows) == len(scopes)
    # of a graph's launch only the first work has its moment; the others have its correlation
    ops = sql(world, source, "select o.start_ns, o.end_ns, l.launch_ns, l.tid, o.path, o.stream, o.lane from"
              " (select operation, start_ns, end_ns, correlation, path, stream, lane from kernels union all"
              "  select operation, start_ns, end_ns, correlation, path, stream, lane from copies) o"
              " join launches l on l.correlation = o.correlation")
    want = collections.Counter()
    for tid, path, begin, end in rows:
        lanes = {}
        for start, stop, launch, launcher, of, stream, lane in ops:
            at = of.split("/<captured_at>")[0]
            if begin <= launch <= end and (at + "/").startswith(path + "/"):
                own = [r for r in rows if r[0] == launcher and r[1] == path and r[2] <= launch <= r[3]]
                if own and launcher != tid:
                    continue  # that thread has the scope itself
                was = lanes.get((stream, lane), (math.inf, 0))
                lanes[stream, lane] = (min(was[0], start), max(was[1], stop))
        for (stream, lane), (start, stop) in lanes.items():
            want[path.rsplit("/", 1)[-1], stream + 1000000 * lane, start - base, stop - base] += 1
    # what was captured stands below the scopes of its launch: each launch of the graph is one
    lanes = {}
    for start, stop, launch, launcher, of, stream, lane in ops:
        parts = of.partition("/<captured_at>/")[2].split("/")
        for k in range(1, len(parts)):
            key = launcher, launch, "/".join(parts[:k]), of.partition("/<captured_at>/")[0], stream, lane
            was = lanes.get(key, (math.inf, 0))
            lanes[key] = (min(was[0], start), max(was[1], stop))
    for (_, _, path, _, stream, lane), (start, stop) in lanes.items():
        want[path.rsplit("/", 1)[-1], stream + 1000000 * lane, start - base, stop - base] += 1
    have = collections.Counter((re.sub("ProfilerStep#.*", "step", e.name), e.tid % 64000000, e.ts, e.end) for e in df[df["cat"].eq("gpu_user_annotation")].itertuples())
    assert have == want
    return have


@needs_replay
@pytest.mark.parametrize("gz", DUMPS, ids=lambda p: p.name.split(".")[0])
def test_as_hta_reads_it(world, gz):
    replayed(world, gz)
    world.view("export", "r", "-o", "x.pt.trace.json")
    df, whole = hta(world.home / "x.pt.trace.json")
    gpu = df[df["stream"].ne(-1)]
    assert set(gpu["cat"]) <= set(GPU) and len(gpu)
    # what it calls the breakdown of kernels: time and number by kind
    have = collections.defaultdict(lambda: [0, 0])
    for e in gpu.itertuples():
        have[kernel_type(e.name)][0] += 1
        have[kernel_type(e.name)][1] += e.dur
    want = {kind: [n, ns] for kind, n, ns in sql(world, "r", "select 'COMPUTATION', count(*), sum(dur_ns) from kernels where class = 'compute'"
            " union all select 'COMMUNICATION', count(*), sum(dur_ns) from kernels where class = 'comm'"
            " union all select 'MEMORY', count(*), sum(dur_ns) from copies") if n}
    assert dict(have) == want
    # and idle time
    busy, whole_time = merged(gpu)
    intervals = sql(world, "r", "select start_ns, end_ns from kernels union all select start_ns, end_ns from copies")
    assert (busy, whole_time) == merged(pd.DataFrame(intervals, columns=["ts", "end"]))
    # launches, by the names that it looks for, each with its work
    calls = df[df["name"].isin(["cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaGraphLaunch"]) & df["cat"].eq("cuda_runtime")]
    assert len(calls) == sql(world, "r", "select count(*) from launches")[0][0] == sum(e["ph"] == "s" for e in whole["traceEvents"])
    assert set(calls["correlation"]) <= set(gpu["correlation"])
    check_ids(df)
    assert check_projections(world, "r", df, whole) or not len(df[df["cat"].eq("user_annotation")])
    assert whole["eventsGone"] == whole["projectionsLeftOut"] == 0


@judged
@needs_replay
@pytest.mark.parametrize("gz", DUMPS, ids=lambda p: p.name.split(".")[0])
def test_trace_processor_keeps_every_slice(world, gz):
    replayed(world, gz)
    world.view("export", "r", "-o", "x.json", "--flavour", "kineto")
    df, whole = hta(world.home / "x.json")
    rows = judge("perfetto", world.home / "x.json", "select name, value from stats where severity = 'error' and value > 0",
                 "select category, count(*) n, sum(dur) d from slice group by 1", "select 'flow' category, count(*) n from flow")
    assert {r["category"]: (int(r["n"]), int(r["d"])) for r in rows[:-1]} == {cat: (len(g), sum(g["dur"])) for cat, g in df.groupby("cat")}
    assert int(rows[-1]["n"]) == sum(e["ph"] == "f" for e in whole["traceEvents"])


def slice_(cat, name, tid, ts, dur, pid=7, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def a_training(names):
    """Kineto's own words, of three steps that launch from two threads; the last kernel ends after its step."""
    events = [slice_("cpu_op", "aten::mm", 1, 5, 3)]
    for k, name in enumerate(names):
        at = 1000 * (k + 1) + 0.125
        events += [slice_("user_annotation", name, 1, at, 500), slice_("user_annotation", "forward", 1, at + 10, 100)]
        for i in range(3):
            corr = 10 * k + i + 1
            events += [slice_("cuda_runtime", "cudaLaunchKernel", 1 if i < 2 else 2, at + 20 + 10 * i, 5, correlation=corr),
                       slice_("kernel", "gemm", 7, at + 40 + 300 * i, 250 + k, pid=0, correlation=corr, device=0, stream=7)]
    return {"schemaVersion": 1, "traceEvents": events, "baseTimeNanoseconds": 1700000000000000000,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "numSms": 132}]}


@pytest.mark.parametrize("names, steps", [(["ProfilerStep#7", "ProfilerStep#8", "ProfilerStep#9"], [7, 8, 9]), (["step"] * 3, [1, 2, 3]),
                                          (["step 4", "step 5", "step 6"], [4, 5, 6])])
def test_steps(world, names, steps):
    (world.home / "in.json").write_text(json.dumps(a_training(names)))
    world.view("import", "in.json", "-o", "in.protond")
    world.view("export", "in.protond", "-o", "out.json", "--flavour", "kineto")
    df, _ = hta(world.home / "out.json")
    found, gpu = iterations(df)
    assert [n for n, _, _ in found] == steps
    assert gpu == {steps[0]: 3, steps[1]: 3, steps[2]: 3}
    assert [e.dur for e in df[df["cat"].eq("gpu_user_annotation") & df["name"].str.startswith("ProfilerStep")].itertuples()] == [
        550000 + 1000 * k for k in range(3)], "from the first kernel's start to the last one's end, of its own thread"
    assert len(df[df["cat"].eq("cpu_op")]) == 0 or set(df[df["cat"].eq("cpu_op")]["name"]) == {"aten::mm"}


def test_steps_of_a_job(world):
    """24 scopes named step, in one named epoch; steps inside a step are scopes as others are."""
    world.ctl("run", "-q", "-n", "demo", "-d", "both", "--", BUILD / "bin/protond-demo")
    world.view("export", "demo", "-o", "x.pt.trace.json")
    df, _ = hta(world.home / "x.pt.trace.json")
    assert [n for n, _, _ in iterations(df)[0]] == list(range(1, 25))
    assert len(df[df["cat"].eq("user_annotation")]) == sql(world, "demo", "select count(*) from scopes")[0][0]


@judged
@needs_replay
def test_two_processes_on_one_gpu(world):
    """Their streams have one number each, and stand apart; a file of one of them has its rank, and the GPU by its number."""
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress(next(d for d in DUMPS if d.name.startswith("eager")).read_bytes()))
    world.start()
    world.ctl("run", "-n", "two", "-d", "both", "--", "sh", "-c", f"for r in 0 1; do RANK=$r WORLD_SIZE=2 {REPLAY} & done; wait",
              env={"PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump)})
    world.view("export", "two", "-o", "x.pt.trace.json")
    whole = json.loads((world.home / "x.pt.trace.json").read_text())
    assert "distributedInfo" not in whole
    gpus = {e["pid"] for e in whole["traceEvents"] if e.get("cat") == "kernel"}
    assert len(gpus) == 2 and min(gpus) > 4000000
    rows = judge("perfetto", world.home / "x.pt.trace.json", "select name, value from stats where severity = 'error' and value > 0",
                 "select count(*) n from slice where category = 'kernel'")
    assert [int(r["n"]) for r in rows] == [sql(world, "two", "select count(*) from kernels")[0][0]], rows
    world.view("export", "two", "-o", "one.pt.trace.json", "--process", "1")
    df, whole = hta(world.home / "one.pt.trace.json")
    assert whole["distributedInfo"]["rank"] == 1 and set(df[df["cat"].eq("kernel")]["pid"]) == {0}


def test_a_wrong_flavour(world):
    for words in (["x.json", "--flavour", "vanilla"], ["x.csv", "--flavour", "kineto"]):
        r = world.view("export", "nothing", "-o", *words, check=False)
        assert r.returncode == 2 and "kineto" in r.stderr
