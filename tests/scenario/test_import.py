# SPDX-License-Identifier: MIT. `protonview import`: another profiler's file becomes a session, event by event.
import gzip
import json
import re
import sqlite3
import sys
from collections import Counter

import pytest

from conftest import BUILD
from test_exports import GOLDEN, replayed
from test_hostile_names import JOB as NAMES_JOB
from test_replay import DUMPS, JOB as REPLAY
from test_sql import ask

needs_preload = pytest.mark.preload
LAUNCH = {"correlation": 9}
WORK = {"device": 0, "context": 1, "stream": 7, "correlation": 9, "grid": [1, 2, 3], "block": [32, 1, 1],
        "registers per thread": 40, "shared memory": 1024}


def slice_(cat, name, ts, dur, tid=78, pid=77, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kineto(*more):
    """A file as PyTorch's profiler writes it, with events in no order."""
    return {
        "schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": 1760000000000000000, "traceName": "x.json",
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132}],
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 77, "tid": 0, "args": {"name": "python"}},
            {"ph": "M", "name": "thread_name", "pid": 77, "tid": 78, "args": {"name": "main"}},
            slice_("cpu_op", "aten::mm", 100.001, 50.5),
            slice_("user_annotation", "ProfilerStep#1", 90, 100.0),
            slice_("cuda_runtime", "cudaLaunchKernel", 110, 5, **LAUNCH),
            slice_("cuda_driver", "cuLaunchKernel", 111, 1, correlation=8),
            slice_("kernel", "sgemm", 120, 20.25, tid=7, pid=0, **WORK),
            slice_("kernel", "sgemm", 145, 10.001, tid=7, pid=0, **WORK),
            slice_("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 160, 2, tid=7, pid=0, device=0, stream=7,
                   correlation=10, bytes=4096),
            slice_("gpu_user_annotation", "ProfilerStep#1", 119, 40, tid=7, pid=0),
            {"ph": "s", "id": 9, "pid": 77, "tid": 78, "ts": 110, "cat": "ac2g", "name": "ac2g"},
            {"ph": "C", "name": "memory", "pid": 0, "ts": 1, "args": {"bytes": 1}},
            *more]}


def write(world, what, name="x.json"):
    file = world.home / name
    text = what if isinstance(what, str) else json.dumps(what)
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return file


def imported(world, *files_and_args, check=True):
    """The new file, and what was said."""
    new = world.home / "new.protond"
    return new, world.view("import", *files_and_args, "-o", new, "--force", check=check)


def taken(world, events):
    """Of events alone: {path: [calls, cpu ns, count, gpu ns]}, and what was said."""
    new, r = imported(world, write(world, events))
    rows = ask(world, new, "select path, calls, cpu_time_ns, count, gpu_time_ns from nodes")
    return {r["path"]: [r["calls"], r["cpu_time_ns"], r["count"], r["gpu_time_ns"]] for r in rows}, r.stdout


@pytest.mark.parametrize("name", ["x.json", "x.pt.trace.json.gz"])
def test_kineto(world, name):
    """A kernel stands in what was open where it was launched, beside the call that launched it."""
    new, r = imported(world, write(world, kineto(), name), "--as", "mine")
    (session,) = ask(world, new, "select * from session")
    assert (session["name"], session["source"], session["command"]) == ("mine", "kineto", "python")
    assert (session["launches"], session["matched"], session["duration_ns"]) == (2, 1, 100000)
    mm = "step/aten::mm"
    nodes = {n["path"]: n for n in ask(world, new, "select * from nodes")}
    assert nodes[mm]["cpu_time_ns"] == 50500 and nodes[f"{mm}/cudaLaunchKernel/cuLaunchKernel"]["cpu_time_ns"] == 1000
    assert (nodes[f"{mm}/sgemm"]["count"], nodes[f"{mm}/sgemm"]["gpu_time_ns"]) == (2, 30251)
    assert (nodes[f"{mm}/sgemm"]["min_ns"], nodes[f"{mm}/sgemm"]["max_ns"]) == (10001, 20250)
    assert nodes["Memcpy HtoD (Pageable -> Device)"]["class"] == "h2d"
    base = 1760000000000000000
    first, second = ask(world, new, "select * from kernels order by start_ns")
    assert (first["start_ns"], first["dur_ns"], first["launch_ns"]) == (base + 120000, 20250, base + 110000)
    assert (first["path"], first["tid"], first["stream"], first["correlation"]) == (f"{mm}/sgemm", 78, 7, 9)
    assert [first[f"grid_{d}"] for d in "xyz"] == [1, 2, 3] and first["registers"] == 40
    assert second["launch_ns"] is None, "the second of a launch is none of its own"
    assert [c["bytes"] for c in ask(world, new, "select bytes from copies")] == [4096]
    (device,) = ask(world, new, "select * from devices")
    assert (device["name"], device["arch"], device["sms"], device["busy_ns"]) == ("NVIDIA H200", "90", 132, 32251)
    assert ask(world, new, "select step, dur_ns from steps") == [{"step": 1, "dur_ns": 100000}]
    assert ask(world, new, "select tid, name from threads") == [{"tid": 78, "name": "main"}]
    for words in ("1  counter samples", "1  arrows", "1  projections", "1  GPU operations whose launch", "1  launches without"):
        assert words in r.stdout, r.stdout
    tree = world.view("tree", new).stdout
    assert "source=kineto" in tree and "imported from" in tree


def test_pairs_tasks_and_an_array(world):
    """B and E pair by time, b and e by id; an array is a file too."""
    new, r = imported(world, write(world, [
        {"ph": "E", "pid": 1, "tid": 2, "ts": 9},
        {"ph": "B", "name": "outer", "pid": 1, "tid": 2, "ts": 1},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 5, "name": "inner"},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 2, "ts": "2.5"},
        {"ph": "B", "name": "never ends", "pid": 1, "tid": 2, "ts": 20},
        {"ph": "b", "cat": "t", "id": "0x1", "name": "task", "pid": 1, "tid": 2, "ts": 3},
        {"ph": "e", "cat": "t", "id": "0x1", "name": "task", "pid": 1, "tid": 3, "ts": 30}]))
    rows = ask(world, new, "select path, begin_ns, dur_ns, task from scopes order by begin_ns")
    assert [tuple(r.values()) for r in rows] == [
        ("outer", 1000, 8000, 0), ("outer/inner", 2500, 2500, 0), ("task", 3000, 27000, 1)]
    assert "1  scopes that began or ended, but not both" in r.stdout
    assert ask(world, new, "select source from session") == [{"source": "chrome"}]


def test_times_are_exact(world):
    """Microseconds of the epoch with three decimals are more than a double holds."""
    text = """[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1760000000000123.457,"dur":0.001},
               {"ph":"X","name":"b","pid":1,"tid":1,"ts":1.760000000000123459e15,"dur":2.5e-1},
               {"ph":"X","name":"c","pid":1,"tid":1,"ts":1760000000000124,"dur":1.5999999999999999}]"""
    new, _ = imported(world, write(world, text))
    assert [tuple(r.values()) for r in ask(world, new, "select begin_ns, dur_ns from scopes order by 1")] == [
        (1760000000000123457, 1), (1760000000000123459, 250), (1760000000000124000, 1600)], "a double's 1.6"


def test_what_is_wrong_is_counted(world):
    ok = slice_("", "a", 0, 10)
    tree, said = taken(world, [
        ok, slice_("", "half", 5, 10), slice_("", "negative", 5, -1), slice_("", "huge", 5, 2**64), slice_("", "x", "NaN", 1),
        {**ok, "ts": None}, {"ph": "?", "name": "?"}, {**ok, "name": "n" * 70000, "ts": 100},
        slice_("", "a", 0, 10, metrics={"loss": 1}), slice_("", "long", 1, 1, padding="x" * (1 << 20))])
    assert tree["a"][:2] == [1, 10000] and tree["a/a"][:2] == [1, 10000] and tree["half"][:2] == [1, 10000] and len(tree) == 5
    for words in ("4  events without a usable time", "1  events of a kind", "1  events of more", "1  scopes that overlap", "1  values that were set"):
        assert words in said, said


def test_what_overlaps_stands_in_what_is_around_it(world):
    """As torch's annotations do, which begin in a frame of Python and outlive it."""
    tree, said = taken(world, [slice_("", "main", 0, 100), slice_("", "frame", 10, 10), slice_("", "annotation", 15, 50), slice_("", "within", 30, 5)])
    assert tree.keys() == {"", "main", "main/frame", "main/annotation", "main/annotation/within"} and "1  scopes that overlap" in said


def test_values(world):
    """Numbers add up at the scope where they were set, words stay; the timeline has each."""
    new, r = imported(world, write(world, [
        slice_("", "outer", 0, 100, metrics={"loss": 0.5, "n": 3, "big": 2**64 - 1}), slice_("", "inner", 10, 10, metrics={"loss": 2}),
        slice_("", "outer", 200, 100, metrics={"loss": [1, 1.5], "n": -5, "word": "é\u0000\"<b>", "no": {"x": 1}, "nan": None, "y": [[1], True]}),
        {"ph": "B", "name": "pair", "pid": 1, "tid": 1, "ts": 1, "args": {"metrics": {"loss": 7}}}, {"ph": "E", "pid": 1, "tid": 1, "ts": 2},
        {"ph": "i", "name": "inner", "pid": 77, "tid": 78, "ts": 15, "args": {"metrics": {"late": 1}}}]))
    sums = ask(world, new, "select path, m.name, value from metrics m join nodes using (node) where m.name in ('loss','n','big','word','late','no','nan','y')")
    assert {(s["path"], s["name"]): s["value"] for s in sums} == {
        ("outer", "loss"): 3.0, ("outer", "n"): -2, ("outer", "big"): 2**64, ("outer/inner", "loss"): 2, ("outer", "word"): "é\ufffd\"<b>",
        ("pair", "loss"): 7, ("outer/inner", "late"): 1}
    values = ask(world, new, "select path, at_ns, name, value, scope is not null as taken from scope_values order by at_ns, path, name, value")
    assert [tuple(v.values()) for v in values if v["name"] == "loss"] == [
        ("outer", 0, "loss", 0.5, 1), ("pair", 1000, "loss", 7, 1), ("outer/inner", 10000, "loss", 2, 1), ("outer", 200000, "loss", 1, 1),
        ("outer", 200000, "loss", 1.5, 1)]
    assert "10  values that were set in scopes" in r.stdout and "4  metrics of GPU work, in the end of a scope, or within another value" in r.stdout


def without(events, *args):
    return [{**e, "args": {k: v for k, v in e.get("args", {}).items() if k not in args}} if e.get("ph") == "X" else e for e in events]


def test_arrows_where_nothing_has_a_correlation(world):
    """An arrow that ends where GPU work begins is from its launch, whatever its ids are; others are no launches."""
    flow = {"cat": "ac2g", "name": "ac2g"}
    tree, said = taken(world, [
        slice_("", "step", 0, 100), slice_("", "inner", 40, 10), slice_("kernel", "k", 200, 5, tid=7, pid=0), slice_("kernel", "l", 210, 5, tid=7, pid=0),
        slice_("kernel", "m", 220, 5, tid=7, pid=0),
        {**flow, "ph": "s", "id": "0xa", "pid": 77, "tid": 78, "ts": 45}, {**flow, "ph": "f", "bp": "e", "id": "0xa", "pid": 0, "tid": 7, "ts": 200},
        {**flow, "ph": "s", "id": 1, "pid": 77, "tid": 78, "ts": 60}, {**flow, "ph": "f", "id": 1, "pid": 0, "tid": 7, "ts": 210},
        {**flow, "cat": "fwdbwd", "ph": "s", "id": 2, "pid": 77, "tid": 78, "ts": 60}, {**flow, "cat": "fwdbwd", "ph": "f", "id": 2, "pid": 0, "tid": 7, "ts": 220}])
    assert {p: n[2] for p, n in tree.items() if n[2]} == {"": 3, "step": 2, "step/inner": 1, "step/inner/k": 1, "step/l": 1, "m": 1}
    assert "2  launches with their GPU work" in said and "0  launches without" in said and "1  GPU operations" in said


def test_what_is_wrong_is_counted_too(world):
    tree, said = taken(world, [slice_("", "a", 0, 10), slice_("kernel", "k", 1, 1, metrics={"x": 1})])
    assert "1  metrics of GPU work" in said and tree["k"][2] == 1



def test_whole_microseconds_overlap_by_rounding(world):
    tree, said = taken(world, [slice_("", "a", 0, 10), slice_("", "b", 5, 6)])
    assert tree["a/b"][:2] == [1, 6000] and "overlap" not in said


@pytest.mark.parametrize("text, words", [
    ("", "is none of the files"), ("x", "is none of the files"), ("{}", "without traceEvents"),
    ('[{"ph":"X"', "ends too early"), ('[{"ph":"X"},', "ends too early"), ('[{"ph":"X"} {}]', "comma is missing, at byte 12"),
    ('[{"ph":"X"}]', "holds no scope"), ('{"traceEvents":[}]', "at byte 16"), ("[" * 300, "256 deep"), ('[{"a":]}', "bracket"),
    ('[{"a" 1}]', "not JSON, at byte 1"), ('{"traceEvents":[{"ph":"X"}]', "ends too early"), ("[1]", "not JSON"),
    ('[{"ph":"X","args":{"a":"\\', "ends too early"), ("SQLite format 3\0", "cannot be read")])
def test_what_cannot_be_read_is_refused(world, text, words):
    new, r = imported(world, write(world, text), check=False)
    assert r.returncode != 0 and words in r.stderr, r.stderr
    assert not new.exists() and not list(world.home.glob("new*")), "a half of a file"


def test_sqlite_that_is_cut(world):
    """Within its last page SQLite itself reads zeroes."""
    file = world.home / "x.sqlite"
    nsys(file).close()
    whole = file.read_bytes()
    for left in (len(whole) - 1, len(whole) - 700, len(whole) // 2):
        file.write_bytes(whole[:left])
        r = world.view("import", file, "-o", world.home / "x.protond", check=False)
        assert r.returncode == 1 and ("it ends too early" in r.stderr or "cannot be read" in r.stderr), r.stderr


def test_gzip_that_is_cut(world):
    file = write(world, kineto(*[slice_("", f"name {i}", i, 1) for i in range(5000)]), "x.json.gz")
    file.write_bytes(file.read_bytes()[:-2000])
    _, r = imported(world, file, check=False)
    assert r.returncode != 0 and "its gzip data is damaged or cut off, at byte" in r.stderr


def test_files_are_not_overwritten(world):
    file = write(world, kineto())
    new, _ = imported(world, file)
    r = world.view("import", file, "-o", new, check=False)
    assert r.returncode != 0 and "--force" in r.stderr
    r = world.view("import", world.home / "none.json", check=False)
    assert r.returncode != 0 and "No such file" in r.stderr


# Of a graph the file does not say which piece of work came first.
LAUNCHED = "iif(graph, 0, launch_ns), iif(graph, 0, tid)"
TREE = {
    "nodes": "path, class, gpu_time_ns, gpu_time_self_ns, count, calls",
    "kernel_names": "name, class, count, gpu_time_ns, configs, registers, min_ns, p50_ns, p99_ns, max_ns",
}
TIMELINE = {
    "scopes": "pid, rank, tid, name, path, begin_ns, end_ns, task, open, began_before, unwound",
    "kernels": "pid, rank, gpu, context, stream, lane, class, name, path, start_ns, end_ns, correlation, graph,"
               f" {LAUNCHED}, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, static_shared + dynamic_shared",
    "copies": f"pid, rank, gpu, context, stream, lane, class, name, path, start_ns, end_ns, correlation, {LAUNCHED}, bytes",
    "launches": "pid, rank, tid, launch_ns, correlation, graph, iif(graph, '', path), iif(graph, 0, delay_ns)",
    "threads": "pid, rank, tid",
    "scope_values": "pid, tid, scope_name, path, at_ns, name, value, typeof(value), scope is null",
    "devices": "type, id, name, arch, sms",
}


def assert_comes_back(world, session):
    """What was exported as a timeline and imported has the same rows as the session that was recorded. GPU work
    without usable times is in no timeline."""
    out = world.home / "x.chrome_trace"
    world.view("export", session, "-o", out)
    new, _ = imported(world, out)
    untimed = ask(world, session, "select 1 from metrics where name = 'untimed'")
    for table, columns in (TIMELINE if untimed else {**TREE, **TIMELINE}).items():
        got, want = (Counter(tuple(r.values()) for r in ask(world, s, f"select {columns} from {table}")) for s in (new, session))
        assert (got - want, want - got) == ({}, {}), table


@needs_preload
@pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
@pytest.mark.parametrize("gz", DUMPS, ids=lambda p: p.name.split(".")[0])
def test_arrows_say_what_correlations_say(world, gz):
    replayed(world, gz)
    world.view("export", "r", "-o", "x.json", "--flavour", "kineto")
    whole = json.loads((world.home / "x.json").read_text())
    begins, rows = 0, []
    # of a graph the arrow goes to one piece of work, and not always to the one that begins first
    single = {k["s"] for k in ask(world, "r", "select min(start_ns) s from kernels group by correlation having count(*) = 1")}
    for e in whole["traceEvents"]:  # a replay's work is before its launch, where no arrow ends
        begins = e["ts"] if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") else begins
        e["ts"] = begins if e["ph"] == "f" else e.get("ts")
    for events in (whole["traceEvents"], without(whole["traceEvents"], "correlation")):
        new, r = imported(world, write(world, {**whole, "traceEvents": events}, "y.json"))
        rows.append(Counter((k["path"], k["start_ns"], k["end_ns"], k["launch_ns"]) for k in ask(world, new, "select * from kernels")
                            if k["launch_ns"] is not None and k["start_ns"] in single))
        assert not re.search(r"[1-9]\d*  launches without", r.stdout)
    assert rows[0] == rows[1] and len(ask(world, "r", "select 1 from launches")) == len(ask(world, new, "select 1 from launches"))


@needs_preload
def test_scopes_come_back(world):
    world.start()
    world.ctl("run", "-n", "n", "-k", "none", "-d", "both", "--", sys.executable, "-c", NAMES_JOB, BUILD / "lib/libprotond.so.0")
    assert_comes_back(world, "n")


@needs_preload
@pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
@pytest.mark.parametrize("gz", DUMPS, ids=lambda p: p.name.split(".")[0])
def test_gpu_work_comes_back(world, gz):
    replayed(world, gz)
    assert_comes_back(world, "r")


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.hatchet*")), ids=lambda p: p.name)
def test_hatchet(world, file):
    """A tree is the same tree, read as it is and imported."""
    new, r = imported(world, file)
    assert "source=hatchet" in r.stdout and "nodes read" in r.stdout and " 0  " not in r.stdout
    for sql in ("select path, kind, class, gpu_time_ns, cpu_time_ns, count, calls from nodes", "select path, m.name, value from metrics m join nodes using (node)"):
        assert sorted(map(str, ask(world, new, sql))) == sorted(map(str, ask(world, file, sql)))
    assert world.view("sql", new, "select * from kernels", check=False).returncode != 0, "a tree has no timeline"


def nsys(file, *, lacks=()):
    """A database as nsys documents it: times since the start, names by id, threads by process << 24 | thread."""
    work = "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER"
    tables = {
        "StringIds": "id INTEGER PRIMARY KEY, value TEXT",
        "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
        "ThreadNames": "nameId INTEGER, priority INTEGER, globalTid INTEGER",
        "TARGET_INFO_GPU": "id INTEGER, name TEXT, smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER, totalMemory INTEGER",
        "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER",
        "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER",
        "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER",
        "CUPTI_ACTIVITY_KIND_KERNEL": f"{work}, demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,"
                                      " blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER,"
                                      " staticSharedMemory INTEGER, dynamicSharedMemory INTEGER",
        "CUPTI_ACTIVITY_KIND_MEMCPY": f"{work}, bytes INTEGER, copyKind INTEGER",
        "CUPTI_ACTIVITY_KIND_MEMSET": f"{work}, bytes INTEGER"}
    pid, tid = 300 << 24, 300 << 24 | 301
    db = sqlite3.connect(file)
    for table, columns in tables.items():
        if table not in lacks:
            db.execute(f"CREATE TABLE {table}({', '.join(c for c in columns.split(', ') if c.split()[0] not in lacks)})")

    def put(table, **row):
        row = {k: v for k, v in row.items() if k not in lacks}
        if table not in lacks:
            db.execute(f"INSERT INTO {table}({', '.join(row)}) VALUES({', '.join('?' * len(row))})", list(row.values()))
    for i, s in enumerate(["sgemm", "sgemm_of_floats", "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "main", "step 1"]):
        put("StringIds", id=i + 10, value=s)
    put("PROCESSES", globalPid=pid, pid=300, name="python")
    put("ThreadNames", nameId=14, priority=1, globalTid=tid)
    put("TARGET_INFO_GPU", id=0, name="NVIDIA H200", smCount=132, computeMajor=9, computeMinor=0, totalMemory=1 << 37)
    put("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1760000000000000000)
    put("NVTX_EVENTS", start=0, end=100000, eventType=59, globalTid=tid, textId=15)
    put("NVTX_EVENTS", start=10, end=99990, eventType=59, text="forward", globalTid=tid)
    put("NVTX_EVENTS", start=50, end=200000, eventType=60, text="epoch", globalTid=tid)
    put("NVTX_EVENTS", start=60, eventType=34, text="mark", globalTid=tid)
    for i in range(50):
        put("CUPTI_ACTIVITY_KIND_RUNTIME", start=1000 * i + 100, end=1000 * i + 300, globalTid=tid, correlationId=i + 1, nameId=12)
        put("CUPTI_ACTIVITY_KIND_KERNEL", start=1000 * i + 500, end=1000 * i + 900 + i, deviceId=0, contextId=1, streamId=7 + i % 2,
            correlationId=i + 1, globalPid=pid, demangledName=11, shortName=10, gridX=1 + i % 3, gridY=1, gridZ=1, blockX=64, blockY=1,
            blockZ=1, registersPerThread=32, staticSharedMemory=16, dynamicSharedMemory=1024)
    put("CUPTI_ACTIVITY_KIND_RUNTIME", start=60000, end=60300, globalTid=tid, correlationId=90, nameId=13)
    put("CUPTI_ACTIVITY_KIND_MEMCPY", start=60400, end=60500, deviceId=0, contextId=1, streamId=7, correlationId=90, globalPid=pid,
        bytes=4096, copyKind=2)
    put("CUPTI_ACTIVITY_KIND_MEMSET", start=70000, end=70010, deviceId=0, contextId=1, streamId=7, correlationId=91, globalPid=pid, bytes=64)
    db.commit()
    return db


def test_nsys(world):
    """Counts and sums are those of SQL over the database itself."""
    file = world.home / "r.sqlite"
    db = nsys(file)
    new, r = imported(world, file)
    (session,) = ask(world, new, "select source, command, launches, matched from session")
    assert tuple(session.values()) == ("nsys", "python", 51, 51)
    base = 1760000000000000000
    assert [tuple(k.values()) for k in ask(world, new, "select start_ns, dur_ns, stream, correlation, grid_x, registers,"
                                           " static_shared, dynamic_shared, launch_ns, tid from kernels order by start_ns")] == [
        (base + s, d, *rest, base + at, 301) for s, d, *rest, at in db.execute(
            "SELECT k.start, k.end - k.start, streamId, k.correlationId, gridX, registersPerThread, staticSharedMemory,"
            " dynamicSharedMemory, r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)"
            " ORDER BY k.start")]
    nodes = {n["path"]: n for n in ask(world, new, "select * from nodes")}
    kernel = nodes["step 1/forward/sgemm_of_floats"]
    ((count, ns),) = db.execute("SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    assert (kernel["count"], kernel["gpu_time_ns"]) == (count, ns)
    ((count, ns),) = db.execute("SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE nameId = 12")
    call = nodes["step 1/forward/cudaLaunchKernel_v7000"]
    assert (call["calls"], call["cpu_time_ns"]) == (count, ns)
    assert nodes["epoch"]["cpu_time_ns"] == 199950 and nodes["step 1/forward"]["cpu_time_ns"] == 99980
    copies = [tuple(c.values()) for c in ask(world, new, "select class, bytes, name from copies order by 1")]
    assert copies == [("d2h", 4096, "[memcpy DtoH]"), ("memset", 64, "[memset]")]
    assert ask(world, new, "select name, arch, sms from devices") == [{"name": "NVIDIA H200", "arch": "90", "sms": 132}]
    assert "1  instants" in r.stdout and "1  GPU operations whose launch" in r.stdout


def test_nsys_of_other_versions(world):
    """What a version does not have is not known, and the rest is there."""
    file = world.home / "r.sqlite"
    nsys(file, lacks=("demangledName", "gridX", "globalPid", "TARGET_INFO_GPU", "NVTX_EVENTS", "ThreadNames", "PROCESSES", "copyKind"))
    new, _ = imported(world, file)
    (kernel,) = ask(world, new, "select * from kernel_names where class = 'compute'")
    assert (kernel["name"], kernel["count"], kernel["grid_x"]) == ("sgemm", 50, None)


@pytest.mark.parametrize("damage", ["CREATE TABLE x(a)", "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start, 2 AS end"])
def test_databases_that_are_not_nsys(world, damage):
    file = world.home / "r.sqlite"
    db = sqlite3.connect(file)
    db.execute(damage)
    db.commit()
    _, r = imported(world, file, check=False)
    assert r.returncode != 0 and "no scope and no GPU work" in r.stderr


def test_torchs_allocator(world):
    """[memory] says block by block what the GPU's allocator gave and got back: whose it is, is what was open there."""
    held, events = [1000], [slice_("cpu_op", "fill", 10, 30), slice_("cpu_op", "grow", 50, 30), slice_("cpu_op", "else", 50, 30, tid=79)]

    def memory(at, address, by, tid=78, **args):
        held[0] += by
        events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 77, "tid": tid, "ts": at, "args": {
            "Device Type": 1, "Device Id": 2, "Addr": address, "Bytes": by, "Total Allocated": held[0], "Total Reserved": 4096, **args}})
    for event in ((15, 1, 300), (20, 2, 200), (25, 9, -400), (55, 1, -300, 79), (60, 3, 1000), (90, 4, 50), (92, 4, 70)):
        memory(*event)  # the last one's address was given before: it came back unseen
    memory(95, 5, 0, **{"Device Type": 0})
    file = write(world, {"traceEvents": events[::-1]}, "now.json")
    new, r = imported(world, file)
    assert "7  times that torch's allocator" in r.stdout and "1  instants" in r.stdout
    rows = ask(world, new, "select pid, device, kind, now, blocks, peak, peak_ns, allocs, frees from memory order by kind")
    assert [tuple(m.values()) for m in rows] == [
        (77, "cuda:2", "torch_allocated", 1920, 3, 1920, 92000, 5, 2), (77, "cuda:2", "torch_reserved", 4096, 0, 4096, 15000, 0, 0)]
    owners = ask(world, new, "select path, now, most from memory_owners where kind = 'torch_allocated' order by path")
    assert [tuple(o.values()) for o in owners] == [("", 70, 70), ("(other)", 650, 1000), ("fill", 200, 500), ("grow", 1000, 1000)]
    for e in events[3:]:  # without totals what was held before is not known, nor what came back of it
        e["args"] = {k: v for k, v in e["args"].items() if not k.startswith("Total")}
    old, _ = imported(world, write(world, {"traceEvents": events}))
    rows_of_old = ask(world, old, "select kind, now, peak, allocs, frees from memory")
    assert [tuple(m.values()) for m in rows_of_old] == [("torch_allocated", 1270, 1270, 5, 1)]
    new, _ = imported(world, file)
    world.view("export", new, "-o", "back.pt.trace.json")  # where it is a curve, and nobody's
    again, _ = imported(world, world.home / "back.pt.trace.json")
    assert ask(world, again, "select kind, now, peak from memory order by 1") == [{k: m[k] for k in ("kind", "now", "peak")} for m in rows]


def rank_of_kineto(rank, extra_us=0, base=1760000000000000000):
    """Twelve steps that end when both ranks are there: a rank with extra work comes late, and is in the collective for less time."""
    events = []
    for n in range(12):
        at, own = 100 + 1000 * n, 10 * n + 1
        for name, ts, dur in (("ProfilerStep#" + str(n + 4), 0, 990), ("forward", 10, 900)):
            events.append(slice_("user_annotation", name, at + ts, dur))
        for correlation, name, ts, until in ((own, "gemm", 100, 300), (own + 1, "gelu", 301, 400 + extra_us), (own + 2, "ncclDevKernel_AllReduce", 450 + extra_us, 800)):
            events.append(slice_("cuda_runtime", "cudaLaunchKernel", at + 20 + correlation % 10, 1, correlation=correlation))
            events.append(slice_("kernel", name, at + ts, until - ts, tid=7, pid=0, **{**WORK, "correlation": correlation}))
        events.append(slice_("cuda_runtime", "cudaStreamSynchronize", at + 40, 800, correlation=own + 3))
        events.append(slice_("cuda_sync", "Stream Sync", at + 41, 798, tid=7, pid=0, stream=7 + rank, correlation=own + 3))
    return {"baseTimeNanoseconds": base, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2, "pg_config": [{"ranks": [0, 1]}]},
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132}], "traceEvents": events}


def test_a_file_of_each_rank(world):
    """One session, in which ranks are compared, though each file counts pids, correlations and GPUs as if it were alone."""
    base = 1760000000000000000
    files = [write(world, rank_of_kineto(0), "rank0.json"), write(world, rank_of_kineto(1, 200, base + 2000000000), "rank1.json.gz")]
    new, r = imported(world, *files)
    assert "72  launches with their GPU work" in r.stdout and "0  launches without" in r.stdout
    with sqlite3.connect(new) as db:
        assert list(db.execute("SELECT pid, rank, world_size FROM process ORDER BY rank")) == [(77, 0, 2), (77, 1, 2)]
    starts = ask(world, new, "select rank, min(start_ns) start, min(launch_ns) launch, min(gpu) gpu, count(*) n from kernels group by rank")
    assert [tuple(s.values()) for s in starts] == [(0, base + 200000, base + 121000, 0, 36), (1, base + 2000200000, base + 2000121000, 0, 36)]
    assert ask(world, new, "select distinct rank, stream from calls order by 1") == [{"rank": 0, "stream": 7}, {"rank": 1, "stream": 8}]
    assert len(ask(world, new, "select distinct path from nodes where class = 'compute'")) == 2, "the steps are one path"
    assert "the others wait for rank 1: 200.0 us a step" in world.view("ranks", new).stdout
    rows = json.loads(world.view("bottlenecks", new, "--json").stdout)["data"]["rows"]
    where = {rule: where for rule, state, *_, where, _, _, _, _, _, _, _ in rows if state == "found"}
    assert where["slow_rank"] == "step / forward / gelu" and "shared_gpu" not in where, rows
    assert "Step 4 of 12 of rank 1" in world.view("critical", new, "--rank", "1", "--step", "4").stdout
    assert "imported from rank0.json and 1 file more" in re.sub(r"from \S*/", "from ", world.view("tree", new).stdout)


def test_databases_of_two_runs_of_nsys(world):
    """Their names have numbers of their own, and each begins when it says."""
    starts = [1760000000000000000, 1760000001000000000]
    for i, start in enumerate(starts):
        db = nsys(world.home / f"{i}.sqlite")
        db.execute("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = ?", (start,))
        db.execute("UPDATE StringIds SET value = value || ? WHERE id = 11", (f" {i}",))
        db.commit()
    new, r = imported(world, world.home / "0.sqlite", world.home / "1.sqlite")
    assert "102  launches with their GPU work" in r.stdout
    kernels = ask(world, new, "select name, min(start_ns) start, min(launch_ns) launch, count(*) n from kernels group by 1 order by 1")
    assert [tuple(k.values()) for k in kernels] == [(f"sgemm_of_floats {i}", s + 500, s + 100, 50) for i, s in enumerate(starts)]


def test_files_that_are_not_of_one_run(world):
    rank, tree = write(world, rank_of_kineto(0)), next(GOLDEN.glob("*.hatchet"))
    nsys(world.home / "r.sqlite")
    for other, words in ((tree, "not a timeline of the kind"), (world.home / "r.sqlite", "not a timeline of the kind"),
                         (write(world, rank_of_kineto(1, base=1 << 62), "y.json"), "more than a year"),
                         (write(world, rank_of_kineto(1, base=-(1 << 63)), "y.json"), "more than a year"), (world.home / "none", "No such file")):
        new, r = imported(world, rank, other, check=False)
        assert r.returncode == 1 and words in r.stderr and not new.exists(), r.stderr
    _, r = imported(world, tree, tree, check=False)
    assert r.returncode == 1 and "not a timeline" in r.stderr


def test_a_damaged_database(world):
    file = world.home / "r.sqlite"
    nsys(file)
    bytes_ = file.read_bytes()
    file.write_bytes(bytes_[:4096] + b"\xff" * (len(bytes_) - 4096))
    _, r = imported(world, file, check=False)
    assert r.returncode != 0 and "cannot be read" in r.stderr


# what a file says of waiting: (name of its call, begin, µs, correlation, kind of its record, stream, event)
WAITS = [("cudaStreamSynchronize", 200, 100, 20, "Stream Sync", 7, 0), ("cudaEventSynchronize", 400, 40, 21, "Event Sync", -1, 5),
         ("cudaDeviceSynchronize", 500, 60, 22, "Context Sync", -1, 0), ("cudaStreamWaitEvent", 570, 1, 23, "Stream Wait Event", 8, 5),
         ("cudaMemcpy", 600, 50, 24, None, -1, 0)]
TYPES = {"Event Sync": 1, "Stream Wait Event": 2, "Stream Sync": 3, "Context Sync": 4}
CALLS = [("stream_sync", 200, 100, 20, 7, None), ("event_sync", 400, 40, 21, None, 5), ("device_sync", 500, 60, 22, None, None),
         ("stream_wait", 570, 1, 23, 8, 5), ("copy_wait", 600, 50, 24, None, None)]
NO_RECORDS = [(*c[:4], None, None) for c in CALLS]


def waits_of_kineto(records, library="cuda"):
    events = [slice_("user_annotation", "step", 0, 1000), slice_("cuda_runtime", "cudaLaunchKernel", 110, 5, **LAUNCH),
              slice_("kernel", "sgemm", 120, 160, tid=7, pid=0, **WORK), slice_("kernel", "late", 900, 50, tid=7, pid=0, device=0, stream=7, correlation=99),
              slice_("cuda_runtime", "cudaLaunchKernel", 880, 5, correlation=99),
              slice_("gpu_memcpy", "Memcpy DtoH", 640, 5, tid=7, pid=0, device=0, stream=7, correlation=24)]
    for name, at, us, correlation, kind, stream, event in WAITS:
        events.append(slice_("cuda_runtime", name.replace("cuda", library), at, us, correlation=correlation))
        if library == "cuda":
            events.append(slice_("cuda_driver", name.replace("cuda", "cu"), at, us, correlation=correlation))  # a part of it
        if records and kind:
            events.append(slice_("cuda_sync", kind, at + 0.5, us - 0.5, tid=stream, pid=0, cuda_sync_kind=kind, stream=stream, context=1,
                                 device=0, correlation=correlation, **({"wait_on_stream": 7, "wait_on_cuda_event_id": event} if event else {})))
    return {"traceEvents": events[::-1]}


def waits_of_nsys(file, records):
    db = nsys(file, lacks=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_MEMCPY",
                           "CUPTI_ACTIVITY_KIND_MEMSET", "TARGET_INFO_SESSION_START_TIME"))
    work = "start, end, deviceId, contextId, streamId, correlationId, globalPid"
    db.executescript(f"""CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL({work}, shortName);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start, end, globalTid, correlationId, nameId);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY({work}, bytes, copyKind);
        CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION({work}, syncType, eventId);
        CREATE TABLE NVTX_EVENTS(start, end, eventType, text, globalTid)""")
    pid, tid, none = 300 << 24, 300 << 24 | 301, (1 << 32) - 1
    db.execute("INSERT INTO NVTX_EVENTS VALUES(0, 1000000, 59, 'step', ?)", (tid,))
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?, ?, ?, ?, 12)", [(110000, 115000, tid, 9), (880000, 885000, tid, 99)])
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?, ?, 0, 1, 7, ?, ?, 10)", [(120000, 280000, 9, pid), (900000, 950000, 99, pid)])
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(640000, 645000, 0, 1, 7, 24, ?, 4, 2)", (pid,))
    for i, (name, at, us, correlation, kind, stream, event) in enumerate(WAITS):
        db.execute("INSERT INTO StringIds VALUES(?, ?)", (100 + i, f"{name}_v3020"))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?, ?, ?, ?, ?)", (1000 * at, 1000 * (at + us), tid, correlation, 100 + i))
        if records and kind:
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(?, ?, 0, 1, ?, ?, ?, ?, ?)",
                       (1000 * at + 500, 1000 * (at + us), stream if stream >= 0 else none, correlation, pid, TYPES[kind], event or none))
    db.commit()


@pytest.mark.parametrize("kind, records", [("kineto", True), ("kineto", False), ("nsys", True), ("nsys", False), ("hip", False)])
def test_waits(world, kind, records):
    """A call that waits is one wait, with the stream and the event of its record, and explains idle time."""
    file = world.home / "w"
    if kind == "nsys":
        waits_of_nsys(file, records)
    else:
        write(world, waits_of_kineto(records, "hip" if kind == "hip" else "cuda"), "w")
    new, r = imported(world, file)
    calls = ask(world, new, "select class, begin_ns, dur_ns, correlation, stream, event from calls order by begin_ns")
    assert [(c["class"], c["begin_ns"] // 1000, c["dur_ns"] // 1000, *list(c.values())[3:]) for c in calls] == (CALLS if records else NO_RECORDS)
    assert "5  of them calls that wait" in r.stdout and "records of waiting" not in r.stdout
    rows = json.loads(world.view("sync", new, "--json").stdout)["data"]
    names = [c["name"] for c in rows["columns"]]
    got = {row[names.index("call")]: [row[names.index(n)] for n in ("scope", "calls", "blocked", "bubble")] for row in rows["rows"]}
    # by hand: the GPU is dry from 280 to 640 and from 645 to 900; from then on until the next call waits it is a call's
    bubbles = {"cudaStreamSynchronize": 400 - 280, "cudaEventSynchronize": 500 - 400, "cudaDeviceSynchronize": 600 - 500, "cudaMemcpy": 900 - 645}
    assert got == {n: ["step", 1, 1000 * us, 1000 * bubbles[n]] for n, _, us, *_ in WAITS if n in bubbles}
    sums = ask(world, new, "select name, sum(value) v from metrics where name in ('sync_time (ns)', 'syncs') group by 1")
    assert {m["name"]: m["v"] for m in sums} == {"sync_time (ns)": 250000, "syncs": 4}
    for flavour in ([], ["--flavour", "kineto"]):  # and back again
        world.view("export", new, "-o", "back.json", "--force", *flavour)
        again = world.home / "again.protond"
        world.view("import", world.home / "back.json", "-o", again, "--force")
        assert ask(world, again, "select class, begin_ns, dur_ns, correlation, stream, event from calls order by begin_ns") == calls


# two streams: gemm, then what waits for it by event 11, then the host by event 12
TWO_STREAMS = [("cudaLaunchKernel", 10, 5, 1), ("cudaEventRecord", 30, 2, 2), ("cudaStreamWaitEvent", 40, 2, 3), ("cudaLaunchKernel", 50, 5, 4),
               ("cudaEventRecord", 60, 2, 5), ("cudaEventSynchronize", 100, 630, 6)]
TWO_KERNELS = [("gemm", 20, 300, 7, 1), ("ncclDevKernel_AllReduce", 325, 400, 20, 4)]
EVENT_WAITS = [("Stream Wait Event", 41, 1, 20, 3, 7, 2, 11), ("Event Sync", 101, 629, -1, 6, 20, 5, 12)]
RECORDED = [("event_record", 2, 7, 11), ("stream_wait", 3, 20, 11), ("event_record", 5, 20, 12), ("event_sync", 6, None, 12)]


def events_of_kineto(said):
    events = [slice_("user_annotation", "ProfilerStep#1", 0, 1000), *(slice_("cuda_runtime", *c[:3], correlation=c[3]) for c in TWO_STREAMS)]

    def row(cat, name, at, us, stream, correlation, **args):
        events.append(slice_(cat, name, at, us, tid=stream, pid=0, device=0, context=1, stream=stream, correlation=correlation, **args))
    for kernel in TWO_KERNELS:
        row("kernel", *kernel)
    for *wait, of, record, event in EVENT_WAITS:
        by_wait = {"wait_on_stream": of, "wait_on_cuda_event_record_corr_id": record} if "waits" in said else {
            "wait_on_stream": -1, "wait_on_cuda_event_record_corr_id": -1}
        row("cuda_sync", *wait, **by_wait, wait_on_cuda_event_id=event)
        if "records" in said:  # when the GPU came to it; 0 where that was not asked for
            row("cuda_event", "cudaEvent", -1.76e15, 0.001, of, record, event_id=event)
    return {"baseTimeNanoseconds": 1760000000000000000, "traceEvents": events[::-1]}


def events_of_nsys(file):
    db = nsys(file, lacks=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_MEMCPY",
                           "CUPTI_ACTIVITY_KIND_MEMSET"))
    work = "start, end, deviceId, contextId, streamId, correlationId, globalPid"
    db.executescript(f"""CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL({work}, shortName);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start, end, globalTid, correlationId, nameId);
        CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION({work}, syncType, eventId, eventSyncId);
        CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT(timestamp, deviceId, contextId, streamId, correlationId, globalPid, eventId, eventSyncId);
        CREATE TABLE NVTX_EVENTS(start, end, eventType, text, globalTid)""")
    pid, tid, names = 300 << 24, 300 << 24 | 301, {}

    def name(s):
        if s not in names:
            db.execute("INSERT INTO StringIds VALUES(?, ?)", (names.setdefault(s, 100 + len(names)), s))
        return names[s]
    db.execute("INSERT INTO NVTX_EVENTS VALUES(0, 1000000, 59, 'ProfilerStep#1', ?)", (tid,))
    for call, at, us, correlation in TWO_STREAMS:
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?, ?, ?, ?, ?)", (1000 * at, 1000 * (at + us), tid, correlation, name(f"{call}_v3020")))
    for kernel, at, us, stream, correlation in TWO_KERNELS:
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?, ?, 0, 1, ?, ?, ?, ?)", (1000 * at, 1000 * (at + us), stream, correlation, pid, name(kernel)))
    for kind, at, us, stream, correlation, of, record, event in EVENT_WAITS:
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(?, ?, 0, 1, ?, ?, ?, ?, ?, ?)", (
            1000 * at, 1000 * (at + us), stream if stream >= 0 else (1 << 32) - 1, correlation, pid, TYPES[kind], event, 100 + event))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES(0, 0, 1, ?, ?, ?, ?, ?)", (of, record, pid, event, 100 + event))
    db.commit()


@pytest.mark.parametrize("said", ["kineto waits", "kineto records", "kineto waits records", "nsys"])
def test_an_event_leads_to_the_work_before_its_record(world, said):
    """By the waits' own args, as Kineto had it first, or by records of events: the call that recorded has stream and event."""
    file = world.home / "e"
    if said == "nsys":
        events_of_nsys(file)
    else:
        write(world, events_of_kineto(said), "e")
    new, r = imported(world, file)
    sql = "select class, correlation, stream, event from calls order by begin_ns"
    assert [tuple(c.values()) for c in ask(world, new, sql)] == RECORDED
    assert "records of waiting" not in r.stdout, r.stdout
    rows = json.loads(world.view("critical", new, "--json").stdout)["data"]["rows"]
    parts = {part: ns for ns, *_, part, name in rows if name is None and part != "all"}
    # by hand: the host until the first kernel's launch, gemm, the event, the collective, the call's return, and the host again
    assert parts == {"host": 280000, "launch": 10000, "compute": 300000, "event": 5000, "comm": 400000, "return": 5000}, parts
    for flavour in ([], ["--flavour", "kineto"]):  # and back again
        world.view("export", new, "-o", "back.json", "--force", *flavour)
        again, _ = imported(world, world.home / "back.json")
        assert [tuple(c.values()) for c in ask(world, again, sql)] == RECORDED


def test_waits_that_are_not_theirs(world):
    """A record of another time, process, kind or of no call lends its stream to nobody, and is counted."""
    call = slice_("cuda_runtime", "cudaStreamSynchronize", 200, 100, correlation=20)
    sync = {"pid": 0, "tid": 7, "stream": 7, "correlation": 20}
    wrong = [slice_("cuda_sync", "Stream Sync", 400, 1, **sync), slice_("cuda_sync", "Event Sync", 210, 1, **sync),
             slice_("cuda_sync", "Stream Sync", 210, 1, **{**sync, "correlation": 21}),
             slice_("cuda_sync", "Stream Sync", 210, 1, **{**sync, "correlation": -1}), slice_("cuda_sync", "else", 210, 1, **sync),
             slice_("cuda_sync", "Stream Sync", 210, -5, **sync), slice_("cuda_sync", "Stream Sync", 210, 2**70, **sync)]
    new, r = imported(world, write(world, [call, *wrong]))
    assert [tuple(c.values()) for c in ask(world, new, "select class, stream from calls")] == [("stream_sync", None)]
    assert "5  records of waiting" in r.stdout and "2  events without a usable time" in r.stdout, r.stdout
    twice = slice_("cuda_sync", "Stream Sync", 210, 1, **{**sync, "stream": 2**40})
    new, r = imported(world, write(world, [call, twice, twice, {**twice, "args": {**twice["args"], "stream": 9}}]))
    assert [tuple(c.values()) for c in ask(world, new, "select class, stream from calls")] == [("stream_sync", None)]
    assert "2  records of waiting" in r.stdout, r.stdout
