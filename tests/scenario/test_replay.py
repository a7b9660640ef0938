# SPDX-License-Identifier: MIT. The whole path with a GPU that is a recording: real agent, daemon, store and viewer.
import collections
import gzip
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import BUILD, WAIT, until
from test_trouble import said

HERE = pathlib.Path(__file__).resolve().parent
DUMPS = sorted((HERE.parent / "replay/dumps").glob("*.cuptidump.gz"))
STUB, JOB, EXPECTED = (BUILD / "replay" / n for n in ("libcupti.so.13", "pd_replay_job", "expected"))

pytestmark = pytest.mark.skipif(not JOB.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")


def play(world, dump, *args, **env):
    env = {**world.env, "PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump),
           "CUDA_INJECTION64_PATH": str(BUILD / "lib/libprotond.so.0"), **env}
    return subprocess.run([str(JOB), *args], env=env, capture_output=True, text=True, timeout=WAIT * 4,
                          cwd=world.home)


def expected(dump):
    """{path: count} of kernels, from the tool that shares no code with the product."""
    out = subprocess.run([str(EXPECTED), str(dump)], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in out.splitlines() if "\t" in line]
    return {p: int(n) for p, n, *_ in rows if not p.rsplit("/", 1)[1].startswith("[")}


def kernels(world, session):
    rows = world.sql(
        "WITH RECURSIVE p(id, path) AS (SELECT id, '' FROM node WHERE parent = 0 UNION ALL"
        " SELECT n.id, p.path || '/' || n.name FROM node n JOIN p ON n.parent = p.id)"
        " SELECT p.path, sum(c.count) FROM cell c JOIN p ON p.id = c.node JOIN session s ON"
        " s.id = c.session WHERE s.name = ? AND c.class IN (1, 2, 8) GROUP BY p.path", session)
    return dict(rows)


@pytest.mark.parametrize("gz", DUMPS, ids=lambda p: p.name.split(".")[0])
def test_recorded_on_a_gpu(world, gz):
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress(gz.read_bytes()))
    world.start(PROTOND_AUTO_SESSION="off")
    # "before": its graph was captured while armed, before the session that sees it replayed
    armed = {"PROTOND_GPU": "armed"} if gz.name.startswith("before") else {}
    r = play(world, dump, "replayed", **armed)
    assert r.returncode == 0, r.stderr
    until("the session is stored", lambda: world.state("replayed") == "finalized")
    want = expected(dump)
    assert kernels(world, "replayed") == want, r.stderr
    text = world.view("tree", "replayed").stdout
    assert "source=replay" in text, "a replay is called one wherever it is shown"
    world.view("bottlenecks", "replayed", "--gate", "HIGH")  # nothing was wrong with what was recorded
    world.view("export", "replayed", "-o", world.home / "replayed.hatchet")
    data = json.loads((world.home / "replayed.hatchet").read_text())

    def count(node):
        return node["metrics"].get("count", 0) + sum(map(count, node["children"]))
    assert count(data[0]) == sum(want.values())


def test_a_graph_captured_while_armed_keeps_its_scopes(world):
    """Armed before the session, on within it: the way from one to the other must not let go of CUPTI."""
    dump = world.home / "armed.cuptidump"
    subprocess.run([BUILD / "replay/gen", "armed", "13.0", dump], check=True, timeout=WAIT)
    world.start(PROTOND_AUTO_SESSION="off")
    r = play(world, dump, "armed", PROTOND_GPU="armed")
    assert r.returncode == 0, r.stderr
    until("the session is stored", lambda: world.state("armed") == "finalized")
    want = expected(dump)
    assert any("<captured_at>" in path for path in want)
    assert kernels(world, "armed") == want


@pytest.mark.parametrize("name", ["many", "graph", "torch"])
def test_a_fork_inside_a_scope(world, name):
    """CUPTI is on and other threads launch. The child never calls it, where the stub would end it; the parent goes on."""
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress((HERE.parent / f"replay/dumps/{name}.cuptidump.gz").read_bytes()))
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "all", "--all")
    r = play(world, dump, "replayed", PD_REPLAY_FORK="1", CUDA_INJECTION64_PATH="")  # so that it is asked for GPU at once
    assert r.returncode == 0, r.stderr
    until("both are stored", lambda: [world.state(s) for s in ("replayed", "child")] == ["finalized"] * 2)
    assert kernels(world, "replayed") == expected(dump)
    (path, count), = [(path, cell[0]) for path, cell in world.cells("child").items() if cell[0]]  # it is in another one
    assert path.endswith("/child") and count == 1
    assert not world.losses("child") and not world.losses("replayed")
    assert "a forked child has no CUPTI" in world.view("tree", "child").stdout


@pytest.mark.parametrize("kept", ["journal", "pending"])
@pytest.mark.parametrize("name, scopes", [("many", 1), ("torch", 3), ("graph", 6)])
def test_a_daemon_killed_between_launches_and_their_kernels(world, name, scopes, kept):
    """The job is stopped where launches wait for their records: one daemon has the one half, the next one the other."""
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress((HERE.parent / f"replay/dumps/{name}.cuptidump.gz").read_bytes()))
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_COMMIT_MS=20 if kept == "pending" else 3600000)
    world.ctl("start", "all", "--all")
    env = {**world.env, "PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump), "PD_REPLAY_STOP": str(scopes)}
    job = subprocess.Popen([str(JOB), "replayed"], env=env, stderr=subprocess.PIPE, text=True, cwd=world.home)

    def waiting():
        return [j["in_flight"] for j in world.ctl_json("where")["jobs"] if j["pid"] == job.pid and j["in_flight"] > 0]
    try:
        until("it has stopped, launches wait", lambda: os.waitid(os.P_PID, job.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) and waiting())
        before = waiting()
        if kept == "pending":
            until("the store has them", lambda: world.sql("SELECT 1 FROM pending"))
        world.daemon.kill()
        world.daemon.wait(WAIT)
        world.start(PROTOND_AUTO_SESSION="off")
        until("as many wait", lambda: waiting() == before)
    finally:
        job.send_signal(signal.SIGCONT)
        err = job.communicate(timeout=WAIT)[1]
    assert job.returncode == 0, err
    until("it is stored", lambda: world.state("replayed") == "finalized")
    assert kernels(world, "replayed") == expected(dump) and not world.losses("replayed")


@pytest.mark.parametrize("scopes", [34, 71], ids=["in_a_step", "in_a_copy"])
def test_a_job_that_goes_on_and_is_killed(world, scopes):
    """What is asked of it while launches are in flight, and behind its end: nothing is harmless, idle or lost that only has no record."""
    dump = world.home / "steps.cuptidump"
    subprocess.run([BUILD / "replay/gen", "steps", "13.0", dump], check=True, timeout=WAIT)
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "x", "--all", "-d", "both", "-s", "sync")
    env = {**world.env, "PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump), "PD_REPLAY_STOP": str(scopes), "PD_REPLAY_LIVE": "1",
           "PROTOND_CUPTI_BUFFERS": "64"}  # one for each step
    job = subprocess.Popen([str(JOB), "own"], env=env, stderr=subprocess.DEVNULL, cwd=world.home)

    def asked(*words):
        r = world.view(words[0], "x", *words[1:], check=False)
        return r.stdout + r.stderr

    def of(verb, *words):
        data = json.loads(world.view(verb, "x", *words, "--json").stdout)["data"]
        return data, [dict(zip([c["name"] for c in data["columns"]], row)) for row in data["rows"]]

    def session():
        return of("tree")[0]["session"]
    try:
        until("it has stopped", lambda: os.waitid(os.P_PID, job.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT))
        whole = (scopes - 1) // 3
        until("all has come", lambda: session()["launches"] >= 9 * whole + 8 and f"{whole} steps" in asked("steps"))
        assert session()["unmatched"] > 0 and not session()["drops"] and "has no record yet" in session()["notes"][0]
        found = {r["rule"]: r["severity"] for r in of("bottlenecks")[1] if r["state"] == "found"}
        assert found.keys() <= {"slow_steps", "jitter", "warm_up"}, found  # of the host alone
        said = asked("sync")
        assert "harmless" not in said and "bubbles are not known" in said, said
        assert "launched no kernel" not in asked("streams") + asked("launches") + asked("steps")
        assert f"{whole} steps" in asked("steps") and "cut off" not in asked("steps")
        assert {r["calls"] for r in of("sync", "--step", "2..4")[1]} == {3}
    finally:
        job.kill()
        job.wait(WAIT)
    until("its end is seen", lambda: world.sql("SELECT 1 FROM process WHERE end_reason IS NOT NULL"))
    world.ctl("finalize", "x")
    said = asked("steps")
    assert "cut off" in said and f"{whole} steps: half" in said and "1 more cut off" in said, said
    data, rows = of("steps")
    assert [r["mark"] for r in rows][-1] == "cut off" and data["processes"][0]["cut_off"] == 1 and data["processes"][0]["steps"] == whole
    verdicts = {r["rule"]: r for r in of("bottlenecks")[1]}
    assert verdicts["dropped_records"]["state"] == "found" and verdicts["gpu_idle"]["state"] == "lacks"
    unmatched = session()["unmatched"]
    assert f"{unmatched} events were lost" in verdicts["dropped_records"]["words"] and f"drops {unmatched} " in asked("tree")
    assert all(r["bubble"] is None for r in of("sync")[1])


def test_top_shows_kernels_as_people_read_them(world):
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress((HERE.parent / "replay/dumps/eager.cuptidump.gz").read_bytes()))
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "all", "--all")
    r = play(world, dump, "replayed")
    assert r.returncode == 0, r.stderr
    until("the session is stored", lambda: world.state("replayed") == "finalized")
    raw = {cell["path"] for cell in world.ctl_json("top", "all")["cells"]}
    text = world.ctl("top", "--once", "-n", "100", "all").stdout
    assert any("_Z10add_kernelPf" in path for path in raw), "the answer has names as they are"
    assert "add_kernel\n" in text and "_Z10add_kernelPf" not in text, text


def run(world, **env):
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress((HERE.parent / "replay/dumps/eager.cuptidump.gz").read_bytes()))
    env = {"PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump), **env}
    return world.ctl("run", "-n", "none", "--", JOB, "own", env=env, check=False).stderr


@pytest.mark.parametrize("code, words", [("39", "another tool holds CUPTI in this process"), ("999", "no usable NVIDIA driver here"),
                                         ("15", "the driver is too old for this CUPTI"), ("35", "this user may not profile the GPU")])
def test_no_gpu_data_says_why(world, code, words):
    err = run(world, PD_REPLAY_ERROR=code)
    said(err, words)
    assert "add_kernel" not in err


def test_launches_without_a_record(world):
    err = run(world, PD_REPLAY_FAULT="drop")
    said(err, "… of … launches have no GPU record")
    assert "launches without a GPU record" in err and "still held" not in err, "its last flush came back: CUPTI held none"


def test_killed_before_its_records_came(world):
    """What CUPTI held then has a cause of its own, with what helps."""
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress((HERE.parent / "replay/dumps/many.cuptidump.gz").read_bytes()))
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "all", "--all")
    env = {**world.env, "PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump), "PD_REPLAY_STOP": "1"}
    job = subprocess.Popen([str(JOB), "replayed"], env=env, stderr=subprocess.DEVNULL, cwd=world.home)

    def waiting():
        return [j["in_flight"] for j in world.ctl_json("where")["jobs"] if j["pid"] == job.pid and j["in_flight"] > 0]
    try:
        until("it has stopped, launches wait", lambda: os.waitid(os.P_PID, job.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) and waiting())
        held, = waiting()
    finally:
        job.kill()
        job.wait(WAIT)
    until("it has ended", lambda: world.state("replayed") == "finalized")
    assert f"dropped {held}: launches whose GPU records CUPTI still held when the process ended" in " ".join(
        world.view("tree", "replayed").stdout.split())


CALLS = {("waits/cudaStreamSynchronize", "stream_sync", 2), ("waits/cudaEventSynchronize", "event_sync", 1),
         ("waits/cudaDeviceSynchronize", "device_sync", 1), ("waits/cudaMemcpy", "copy_wait", 1),
         ("waits/inner/cudaEventRecord", "event_record", 1), ("waits/inner/cudaStreamWaitEvent", "stream_wait", 1),
         ("waits/inner/cudaStreamSynchronize", "stream_sync", 1), ("waits/inner/cudaMalloc", "alloc", 1),
         ("waits/inner/cudaFree", "free", 1), ("waits/inner/cudaHostRegister", "register", 1)}

APIS = {(f"waits/{call}", "api", n) for call, n in (
    ("cudaStreamSynchronize", 2), ("cudaEventSynchronize", 1), ("cudaDeviceSynchronize", 1), ("cuLaunchKernel", 1), ("cuLaunchKernelEx", 1),
    ("cuMemcpyHtoD_v2", 1), ("cuMemcpyDtoHAsync_v2", 1), ("inner/cudaEventRecord", 1), ("inner/cudaStreamWaitEvent", 1),
    ("inner/cudaMalloc", 1), ("inner/cudaFree", 1), ("inner/cudaHostRegister", 1), ("inner/cuStreamSynchronize", 1))}


def test_calls_that_wait(world):
    """By a switch that a session has from the start, gets and loses; tree, timeline and files agree."""
    dump = world.home / "waits.cuptidump"
    subprocess.run([BUILD / "replay/gen", "waits", "13.0", dump], check=True)
    world.start(PROTOND_AUTO_SESSION="off")
    assert world.ctl("start", "x", "--all", "-s", "nonsense", check=False).returncode != 0
    assert world.ctl("start", "never", "--all", "-d", "both").returncode == 0
    assert world.ctl("start", "x", "--all", "-s", "sync", "-d", "both").returncode == 0
    assert world.ctl("start", "later", "--all", "-d", "both").returncode == 0
    for words in (("later", "sync"), ("later", "+nonsense"), ("nobody", "+sync")):
        assert world.ctl("set", *words, check=False).returncode != 0, words
    world.ctl("start", "every", "--all", "-s", "api", "-d", "both")
    assert world.ctl("set", "later", "+sync").stdout.endswith("'later', from now on: +sync\n")
    assert play(world, dump).returncode == 0
    world.ctl("set", "x", "-sync")
    world.ctl("set", "every", "-api")
    world.ctl("set", "later", "-sync")
    assert play(world, dump).returncode == 0
    for name in ("never", "x", "later", "every"):
        world.ctl("finalize", name)

    def asked(name, sql):
        return [tuple(r) for r in json.loads(world.view("sql", name, sql, "--json").stdout)["data"]["rows"]]
    for name in ("x", "later"):
        calls = asked(name, "select path, class, count(*) from calls group by 1, 2")
        assert set(calls) == CALLS and asked(name, "select count(*) from calls where dur_ns < 0 or correlation = 0") == [(0,)]
        times = dict(asked(name, "select path, sum(dur_ns) from calls group by 1"))
        tree = asked(name, "select n.path, m.value from nodes n join metrics m using (node) where m.name = 'sync_time (ns)'")
        assert {p for p, _ in tree} == {p for p, *_ in CALLS if not p.endswith(("EventRecord", "WaitEvent"))}
        off = {p: (ns, times[p]) for p, ns in tree if abs(ns - times[p]) > 4 + 1e-5 * ns}
        assert not off, "each end is rounded by itself, and by what was known of the clock: 4 ppm of another in 5.5 ms of a busy machine"
        root = [r.split() for r in world.view("tree", name, "-m", "syncs,sync_time/ns").stdout.splitlines() if r.endswith("ROOT")]
        assert root == [["9", f"{sum(t for _, t in tree)}.000", "ROOT"]], "inclusive, as other metrics"
    every = asked("every", "select path, class, count(*) from calls group by 1, 2")
    assert set(every) == APIS, "each outermost call once, launches among them"
    assert {(p, n) for p, n in asked("every", "select n.path, m.value from nodes n join metrics m using (node) where m.name = 'api_calls'")
            } == {(p, n) for p, _, n in APIS}
    for by, group in (("call", "name"), ("scope", "path"), ("thread", "tid, name")):
        rows = json.loads(world.view("apis", "every", "--by", by, "--json").stdout)["data"]["rows"]
        assert sorted(r[2] for r in rows) == sorted(n for n, in asked("every", f"select count(*) from calls group by {group}"))
        assert [r[4] for r in rows] == sorted((r[4] for r in rows), reverse=True), "the dearest first"
        assert all(r[3] == 0 and r[6] <= r[7] * 1.01 <= r[8] * 1.02 for r in rows) and sum(r[2] for r in rows) == 14
    assert "cudaFree" in world.view("apis", "every").stdout and "10 more; -n N" in world.view("apis", "every", "-n", 3).stdout
    assert world.view("apis", "never", check=False).returncode == 1
    assert asked("never", "select count(*) from calls") == [(0,)] and "cuda" not in world.view("tree", "never").stdout
    world.view("export", "x", "-o", world.home / "k.json", "-f", "kineto")
    events = json.loads((world.home / "k.json").read_text())["traceEvents"]
    rows = [e for e in events if e.get("cat") == "cuda_runtime"]
    assert sum(e["name"] == "cudaStreamSynchronize" and e["args"]["correlation"] > 0 for e in rows) == 3
    syncs = [e for e in events if e.get("cat") == "cuda_sync"]
    assert collections.Counter(e["name"] for e in syncs) == {"Stream Sync": 3, "Event Sync": 1, "Context Sync": 1, "Stream Wait Event": 1}
    assert all(e["args"]["cuda_sync_kind"] == e["name"] for e in syncs) and len({e["tid"] for e in syncs}) == 1
    world.view("export", "x", "-o", world.home / "c.json", "-f", "chrome_trace")
    beside = {e["tid"] for e in json.loads((world.home / "c.json").read_text())["traceEvents"] if e.get("cat") == "cuda_sync"}
    assert len(beside) == 1 and not beside & {e["tid"] for e in rows}, "a lane of their own"


ASKED = ["sync", "apis", "apis --by thread", "flat --by call", "streams", "critical", "breakdown --queues", "breakdown --scope waits", "steps --scope waits",
         "steps --every 1ms", "series", "export --force -f pftrace -o x"]


@pytest.mark.parametrize("asked", ASKED)
def test_advice_does_what_it_promises(world, asked):
    """Of a tree alone: what the line says to run is run, and then there is an answer."""
    dump = world.home / "waits.cuptidump"
    subprocess.run([BUILD / "replay/gen", "waits", "13.0", dump], check=True)
    world.start(PROTOND_AUTO_SESSION="off")
    verb, *rest = asked.split()
    said = record(world, dump, "plain") and world.view(verb, "plain", *rest, check=False).stderr
    words = re.search(r"`(?:protonctl run )?(-[^`]*?)(?: -- CMD)?`", said)
    assert words, said
    record(world, dump, "as told", *words[1].split())
    r = world.view(verb, "as told", *rest, check=False)
    assert r.returncode == 0 or verb == "series" and "no scope of the timeline had metrics" in r.stderr, (words[1], r.stderr)
    tree = record(world, dump, "timeline", "-d", "both") and world.view(verb, "timeline", *rest, check=False)
    assert tree.returncode == 0 or words[1].replace("-d both", "").strip() in tree.stderr or verb == "series", tree.stderr


def record(world, dump, name, *words):
    world.ctl("start", name, "--all", *words)
    assert play(world, dump).returncode == 0
    return world.ctl("finalize", name)


OVERHEADS = {("cold/[lazy load]", "lazy_load", 1, 40000), ("cold/[queue full]", "queue_full", 2, 1000),
             ("[buffer request]", "buffer_request", 1, 50), ("[overhead]", "overhead", 1, 60)}


@pytest.mark.parametrize("library", ["13.0", "10.2"])
def test_overhead_and_launches(world, library):
    """Each on its switch, none without; a library that does not say in which call it was has it by the program."""
    dump = world.home / "overhead.cuptidump"
    subprocess.run([BUILD / "replay/gen", "overhead", library, dump], check=True)
    world.start(PROTOND_AUTO_SESSION="off")
    for name, words in (("never", ""), ("x", "overhead,queue")):
        world.ctl("start", name, "--all", "-d", "both", *(["-s", words] if words else []))
    assert play(world, dump).returncode == 0
    for name in ("never", "x"):
        world.ctl("finalize", name)

    def asked(name, sql):
        return {tuple(r) for r in json.loads(world.view("sql", name, sql, "--json").stdout)["data"]["rows"]}
    assert asked("never", "select * from calls") == set() and "[" not in world.view("tree", "never").stdout.split("ROOT")[1]
    known = OVERHEADS if library == "13.0" else {(p.removeprefix("cold/"), *of) for p, *of in OVERHEADS}
    rows = asked("x", "select path, class, count(*), sum(dur_ns) from calls where class <> 'launch' group by 1, 2")
    assert {r[:3] for r in rows} == {r[:3] for r in known}
    assert all(abs(ns - dict((k[0], k[3]) for k in known)[path]) <= 4 for path, _, _, ns in rows), "each end rounded to a ns by itself"
    assert asked("x", "select path, count(*), min(dur_ns) >= 0 from calls where class = 'launch' group by 1") == {
        ("cold/[launch]", 1, 1), ("warm/[launch]", 3, 1)}
    flat = json.loads(world.view("flat", "x", "--by", "call", "--json").stdout)["data"]
    got = {r["name"]: r for r in (dict(zip([c["name"] for c in flat["columns"]], row)) for row in flat["rows"])}
    assert {n: r["count"] for n, r in got.items()} == {"[lazy load]": 1, "[queue full]": 2, "[buffer request]": 1, "[overhead]": 1,
                                                       "[launch]": 4, "[launch delay]": 4}
    assert world.view("flat", "never", "--by", "call", check=False).returncode != 0
    assert asked("x", "select count(*) from kernels k join calls c on c.correlation = k.correlation and c.pid = k.pid and c.class = 'launch'"
                 ) == {(4,)}, "as tests/gpu/queue_check.py asks"
    assert asked("x", "select sum(m.value) from nodes n join metrics m using (node) where m.name = 'launch_delays'") == asked(
        "x", "select count(*) from launches") == {(4,)}
    root = [r.split() for r in world.view("tree", "x", "-m", "overheads,launches,launch_delays").stdout.splitlines() if r.endswith("ROOT")]
    assert root == [["5.000", "4.000", "4.000", "ROOT"]] or root == [["5", "4", "4", "ROOT"]]
    said = re.findall(r"overhead in calls: the driver 41\.0 us, CUPTI [45]\d ns, of kinds not known [56]\d ns\n", world.view("tree", "x").stdout)
    assert len(said) == 1, "the head has it once"
    assert "overhead in calls" not in world.view("tree", "never").stdout
    for name in ("x", "never"):
        assert sum(r[5] for r in json.loads(world.view("breakdown", name, "--queues", "--json").stdout)["data"]["rows"]) == 4


@pytest.mark.parametrize("library", ["13.0", "11.4", "10.2"])
def test_allocations(world, library):
    """Who holds memory, on its switch, none without; a library that has no such records gives none."""
    dump = world.home / "allocs.cuptidump"
    subprocess.run([BUILD / "replay/gen", "allocs", library, dump], check=True)
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "never", "--all")
    world.ctl("start", "x", "--all", "-s", "alloc")
    assert play(world, dump).returncode == 0
    for name in ("never", "x"):
        world.ctl("finalize", name)
    none = world.view("memory", "never", check=False)
    assert none.returncode != 0 and "-s alloc" in none.stderr
    if library == "10.2":
        assert world.view("memory", "x", check=False).returncode != 0
        return
    data = json.loads(world.view("memory", "x", "--json").stdout)["data"]
    rows = [dict(zip([c["name"] for c in data["columns"]], row)) for row in data["rows"]]
    total = {r["kind"]: tuple(r[k] for k in ("live", "peak", "allocs", "allocated", "frees", "freed", "unknown_frees"))
             for r in rows if r["scope"] is None}
    assert total.pop("reserved", None) == (None if library == "11.4" else (4096, 4096, 1, 4096, 0, 0, 0))
    assert total == {"device": (2000, 3000, 2, 3000, 1, 1000, 1), "pinned": (500, 500, 1, 500, 0, 0, 0),
                     "pool": (0, 64, 1, 64, 1, 64, 0)}
    who = {(r["kind"], r["scope"]): (r["live"], r["peak"]) for r in rows if r["scope"]}
    assert {k: v for k, v in who.items() if k[0] != "reserved"} == {
        ("device", "load"): (0, 1000), ("device", "step"): (2000, 2000), ("pinned", "load"): (500, 500), ("pool", "step"): (0, 64)}
    words = world.view("memory", "x").stdout
    assert "who held the peak of cuda:0 device: 2.9 KiB" in words and "who held" not in world.view("memory", "x", "--device", "host").stdout.replace(
        "who held the peak of host pinned", "")
    assert world.view("memory", "x", "--device", "cuda:7", check=False).returncode != 0
    tree = {r.split()[-1]: r.split()[:-2] for r in world.view("tree", "x", "-m", "allocs,frees").stdout.splitlines() if "─ " in r}
    assert tree["load"][:1] == ["2"] or tree["load"][:1] == ["2.000"], tree
    series = json.loads(world.view("series", "x", "cuda:0 device", "--json").stdout)["data"]["rows"]
    assert [r[-1] for r in series] == [1000, 3000, 2000]


def test_recorded_calls_that_wait(world):
    """sync_work.py, 3 rounds of 2 threads: what it did is known."""
    dump = world.home / "sync.cuptidump"
    dump.write_bytes(gzip.decompress((HERE.parent / "replay/dumps/sync.cuptidump.gz").read_bytes()))
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "x", "--all", "-s", "sync", "-d", "both")
    assert play(world, dump).returncode == 0
    world.ctl("finalize", "x")
    rows = json.loads(world.view("sql", "x", "select class, count(*), count(distinct tid) from calls group by 1", "--json").stdout)
    calls = {c: (n, threads) for c, n, threads in rows["data"]["rows"]}
    assert calls == {"stream_sync": (2 * 6 + 2, 3), "event_sync": (6, 2), "device_sync": (6 + 1, 3), "copy_wait": (6 + 2, 3),
                     "event_record": (6 + 2, 3), "stream_wait": (6, 2), "alloc": (2, 1), "free": (1, 1), "register": (1, 1)}
    waits = json.loads(world.view("sync", "x", "--json").stdout)["data"]["rows"]
    waiting = ("stream_sync", "event_sync", "device_sync", "copy_wait")
    blocked = json.loads(world.view("sql", "x", "select count(*), sum(dur_ns) from calls where class in "
                                                   f"{waiting}", "--json").stdout)["data"]["rows"][0]
    assert [sum(r[2] for r in waits), sum(r[3] for r in waits)] == blocked and all(0 <= r[4] for r in waits)
    assert [r[4] for r in waits] == sorted((r[4] for r in waits), reverse=True)
    of = json.loads(world.view("sql", "x", "select stream, sum(dur_ns) from (select stream, dur_ns from kernels union all "
                                           "select stream, dur_ns from copies) group by 1", "--json").stdout)["data"]["rows"]
    streams = json.loads(world.view("streams", "x", "--json").stdout)["data"]["rows"]
    assert sorted((r[4], r[7]) for r in streams if r[4] is not None) == sorted(map(tuple, of)), "nothing of a stream runs side by side"
    path = json.loads(world.view("critical", "x", "--json").stdout)["data"]["rows"]
    assert path[0][4] == "all" and sum(r[0] for r in path[1:] if r[5] is None and r[2] is None) == path[0][0]
    assert "harmless" in world.view("sync", "x").stdout and "more; -n N" in world.view("sync", "x", "-n", 1).stdout


def test_what_calls_that_wait_waited_for(world):
    """Default streams, of the context and of the thread, have their numbers; the critical path goes through what each call waited for."""
    dump = world.home / "critical.cuptidump"
    subprocess.run([BUILD / "replay/gen", "critical", "13.0", dump], check=True)
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "x", "--all", "-s", "sync", "-d", "both")
    assert play(world, dump, PD_REPLAY_LIVE="1").returncode == 0
    world.ctl("finalize", "x")
    rows = json.loads(world.view("sql", "x", "select class, stream from calls order by begin_ns", "--json").stdout)["data"]["rows"]
    assert list(map(tuple, rows)) == [("stream_sync", 7), ("stream_sync", 9), ("stream_sync", 13), ("event_record", 7), ("event_sync", None),
                                      ("device_sync", None), ("copy_wait", None)]
    path = json.loads(world.view("critical", "x", "--json").stdout)["data"]
    names = [c["name"] for c in path["columns"]]
    on_it = {row["name"] for row in (dict(zip(names, r)) for r in path["rows"]) if row["name"] and row["part"] in ("compute", "copy")}
    assert on_it == {"of_default", "of_thread", "of_stream", "before_record", "of_device", "[memcpy DtoH]"}, path
