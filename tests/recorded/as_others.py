#!/usr/bin/env python3
# SPDX-License-Identifier: MIT. as_others.py: what other tools' formulas say of a session, beside our first verdict.
"""as_others.py BUILD [FILE...]: portable sessions, also with .gz at their end (default: those beside it). A row of a table for each:

HTA (facebookresearch/HolisticTraceAnalysis, breakdown_analysis and communication_analysis; written anew from its formulas), of the process
with the most work on a GPU, from its first piece of work to its last: idle (none runs), compute (some kernel that is no collective), the
rest. Idle again by stream, each its own: host wait (launched after the one before had ended), kernel wait (a gap under 30 ns), other; the
first and the last in % of all. Overlap: of the collectives' time the part beside such kernels.
nsys (`nsys analyze`, by its documentation): copies that wait, which are cuda_memcpy_async (pageable) and cuda_memcpy_sync (without 64 KiB
or less to the GPU) together, as a recording does not tell which; gpu_gaps, of 500 ms or more; gpu_time_util, how many of 30 equal parts of
the time have a GPU busy for less than half. cuda_memset_sync asks for the kind of memory, which is not recorded.

It shares no code with protonview but `sql`, by which it reads events."""
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COMM, MEM = re.compile(r"^nccl|ncclKernel|ncclDev|^rccl"), re.compile(r"^\[mem")
GAP_NS, PARTS, SMALL, DELAY_NS = 500_000_000, 30, 64 << 10, 30


def asked(view, *words):
    # Of nobody's daemon and database: the files alone.
    env = dict(os.environ, PROTOND_RUNTIME_DIR="/nonexistent/protond", PROTOND_DB="/nonexistent/protond.db")
    data = json.loads(subprocess.run([view, *words, "--json"], env=env, capture_output=True, text=True, check=True).stdout)["data"]
    return [dict(zip([c["name"] for c in data["columns"]], row)) for row in data["rows"]]


def union(spans):
    out = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def length(spans):
    return sum(end - begin for begin, end in spans)


def common(a, b):
    sum_ns, i, k = 0, 0, 0
    while i < len(a) and k < len(b):
        sum_ns += max(0, min(a[i][1], b[k][1]) - max(a[i][0], b[k][0]))
        if a[i][1] < b[k][1]:
            i += 1
        else:
            k += 1
    return sum_ns


def idle_by_cause(work):
    """HTA's, by stream: ns of host wait, kernel wait, other."""
    sums, last = [0, 0, 0], {}
    for o in sorted(work, key=lambda o: o["start_ns"]):
        stream, gap = (o["gpu"], o["context"], o["stream"]), None
        if stream in last:
            gap = o["start_ns"] - last[stream]
            sums[0 if o["launch_ns"] and o["launch_ns"] > last[stream] else 1 if gap < DELAY_NS else 2] += gap
        last[stream] = o["end_ns"]
    return sums


def span(work):
    return union((o["start_ns"], o["end_ns"]) for o in work)


def computing(work):
    return span(o for o in work if not COMM.search(o["name"]) and not MEM.search(o["name"]))


def hta(work):
    busy, comm, compute = span(work), span(o for o in work if COMM.search(o["name"])), computing(work)
    whole, host = max(1, busy[-1][1] - busy[0][0]), idle_by_cause(work)
    idle, all_idle = whole - length(busy), max(1, sum(host))
    overlap = f"{100 * common(comm, compute) / length(comm):.0f}" if comm else "–"
    return [f"{100 * idle / whole:.0f}", f"{100 * length(compute) / whole:.0f}", f"{100 * (length(busy) - length(compute)) / whole:.0f}",
            " / ".join(str(round(100 * v / all_idle)) for v in host), overlap]


def nsys(work, copies, calls):
    """Of one GPU, as its rules go GPU by GPU; copies by the process' own calls."""
    sizes = {o["correlation"]: o for o in copies}
    waits = [c for c in calls if not (c["correlation"] in sizes and sizes[c["correlation"]]["class"] == "h2d" and sizes[c["correlation"]]["bytes"] <= SMALL)]
    busy = span(work)
    begin, end = busy[0][0], busy[-1][1]
    gaps = [b[0] - a[1] for a, b in zip(busy, busy[1:]) if b[0] - a[1] >= GAP_NS]
    edges = [begin + (end - begin) * i // PARTS for i in range(PARTS + 1)]
    low = sum(2 * common(busy, [[a, b]]) < b - a for a, b in zip(edges, edges[1:]))
    return [f"{len(waits)}, {sum(c['dur_ns'] for c in waits) / 1e6:.0f} ms", f"{len(gaps)}, {sum(gaps) / 1e9:.1f} s" if gaps else "0", str(low)]


def work_of(view, file):
    """Kernels and copies, and the copies alone."""
    columns = "pid, gpu, context, stream, class, name, start_ns, end_ns, launch_ns, correlation"
    copies = asked(view, "sql", file, f"select {columns}, bytes from copies")
    return asked(view, "sql", file, f"select {columns} from kernels") + copies, copies


def row(view, file):
    work, copies = work_of(view, file)
    pid = max({o["pid"] for o in work}, key=lambda p: sum(o["end_ns"] - o["start_ns"] for o in work if o["pid"] == p))
    work = [o for o in work if o["pid"] == pid]
    gpu = max({o["gpu"] for o in work}, key=lambda g: sum(o["end_ns"] - o["start_ns"] for o in work if o["gpu"] == g))
    calls = asked(view, "sql", file, f"select dur_ns, correlation from calls where class = 'copy_wait' and pid = {pid}")
    found = [r for r in asked(view, "bottlenecks", file) if r["state"] == "found"]
    first = ", ".join(f"{r['rule']} {r['severity']}" for r in found[:2]) or "none"
    return [*hta(work), *nsys([o for o in work if o["gpu"] == gpu], [o for o in copies if o["pid"] == pid], calls), first]


def main():
    view = str(pathlib.Path(sys.argv[1]).resolve() / "bin/protonview")
    print("| session | HTA: idle | compute | other | host / kernel / other wait | overlap | nsys: copies | gaps | low of 30 | protond, the first two |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as room:
        for file in map(pathlib.Path, sys.argv[2:] or sorted(HERE.glob("*.gz"))):
            name = file.name.removesuffix(".gz").removesuffix(".protond")
            if file.suffix == ".gz":
                (pathlib.Path(room) / "s.protond").write_bytes(gzip.decompress(file.read_bytes()))
            print("|", " | ".join([f"`{name}`", *row(view, pathlib.Path(room) / "s.protond" if file.suffix == ".gz" else file)]), "|")


if __name__ == "__main__":
    main()
