# SPDX-License-Identifier: MIT. Timelines: every event once, where the tree says, in files that viewers read.
import collections
import gzip
import json
import signal
import sqlite3
import subprocess
import sys

import pytest

from conftest import BUILD, WAIT, until
from test_replay import DUMPS, JOB, play

needs_replay = pytest.mark.skipif(not JOB.exists(), reason="tests/replay/check.sh builds the stub")


def unique(pairs):
    """A reader keeps one of two values of one name."""
    assert len({name for name, _ in pairs}) == len(pairs), pairs
    return dict(pairs)


def timeline(world, session, *args):
    """The traceEvents of a session, and the rest of the file."""
    out = world.home / f"{session.lstrip('@')}.chrome_trace"
    world.view("export", session, "-f", "chrome_trace", "-o", out, "--force", *args)
    text = out.read_text()
    whole = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"), object_pairs_hook=unique)
    return whole.pop("traceEvents"), whole


def of(events, ph, cat=None):
    return [e for e in events if e["ph"] == ph and (cat is None or e.get("cat") in cat)]


GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def tracks(events, cat):
    by = collections.defaultdict(list)
    for e in of(events, "X", cat):
        by[e["pid"], e["tid"]].append((round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e["name"]))
    return {k: sorted(v, key=lambda s: (s[0], -s[1])) for k, v in by.items()}


def assert_nested(slices):
    """Viewers drop a slice that overlaps another of its track partly."""
    open_ = []
    for begin, end, name in slices:
        while open_ and open_[-1][0] <= begin:
            open_.pop()
        assert not open_ or end <= open_[-1][0], f"{name} ends after {open_[-1][1]}, in which it began"
        open_.append((end, name))


def tree_of(world, session):
    """{path: [count, ns]} of all cells, CPU and GPU."""
    rows = world.sql(
        "WITH RECURSIVE p(id, path) AS (SELECT id, name FROM node WHERE parent = 0 UNION ALL"
        " SELECT n.id, p.path || '\x1f' || n.name FROM node n JOIN p ON n.parent = p.id)"
        " SELECT p.path, sum(c.count - c.untimed), sum(c.sum_ns) FROM cell c JOIN p ON p.id = c.node"
        " JOIN session s ON s.id = c.session WHERE s.name = ? AND s.source <> 'auto' GROUP BY p.path", session)
    return {path: [n, ns] for path, n, ns in rows if n}


def summed(events):
    sums = collections.defaultdict(lambda: [0, 0])
    for e in of(events, "X", ("scope", *GPU)):
        if not e["args"].get("open"):
            s = sums["\x1f".join(e["args"]["call_stack"])]
            s[0] += 1
            s[1] += round(e["dur"] * 1000)
    return dict(sums)


def replayed(world, gz, *words, **env):
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress(gz.read_bytes()))
    world.start(PROTOND_AUTO_SESSION="off", **env)
    world.ctl("start", "all", "--all", "-d", "trace", *words)
    r = play(world, dump, "replayed")
    assert r.returncode == 0, r.stderr
    world.ctl("finalize", "all")


@needs_replay
@pytest.mark.parametrize("gz", DUMPS, ids=lambda p: p.name.split(".")[0])
def test_windows_of_a_recording(world, gz):
    """What the timeline answers by window, from stored summaries and without, is what its events say. A daemon makes those that lack."""
    replayed(world, gz)
    stored = "SELECT events, length(bytes), length(summary) FROM trace WHERE bytes IS NOT NULL ORDER BY rowid"
    rows = world.sql(stored)
    world.stop()
    with sqlite3.connect(world.db) as db:
        db.execute("UPDATE trace SET summary = NULL")
    db.close()
    world.start()
    until("summaries for what has none", lambda: [r[2] or None for r in world.sql(stored)] == [r[2] for r in rows])
    for events, chunk, summary in rows:
        assert (summary is not None) == (events >= 64) and (summary or 0) <= chunk // (10 if events >= 1024 else 4)
    out = world.home / "all.protond"
    world.view("export", "all", "-f", "protond", "-o", out)
    for summaries in ("kept", "none"):
        r = subprocess.run([BUILD / "bench/zoom_bench", out, "check"], capture_output=True, text=True, timeout=WAIT * 4)
        assert r.returncode == 0, (summaries, r.stderr)
        db = sqlite3.connect(out)
        db.execute("UPDATE trace SET summary = NULL")
        db.commit()
        db.close()


@needs_replay
@pytest.mark.parametrize("gz", DUMPS, ids=lambda p: p.name.split(".")[0])
def test_recorded_on_a_gpu(world, gz):
    replayed(world, gz)
    events, head = timeline(world, "all")
    assert head["source"] == "replay", "a replay is called one wherever it is shown"
    assert head["eventsGone"] == 0
    tree = tree_of(world, "all")
    assert tree and summed(events).keys() == tree.keys()
    for path, (n, ns) in summed(events).items():
        assert n == tree[path][0], path
        # the tree leaves out what a scope had before its session; it knew the clock to some 10 ppm, the timeline later
        assert ns - tree[path][1] >= -n - ns // 20000, path
        assert "[" not in path.rsplit("\x1f", 1)[1] or ns == tree[path][1], path
    for slices in tracks(events, ("scope", "launch")).values():
        assert_nested(slices)
    for slices in tracks(events, GPU).values():
        assert all(a[1] <= b[0] for a, b in zip(slices, slices[1:])), "two operations overlap in one lane"
    flows = {ph: {e["id"]: e for e in of(events, ph)} for ph in "sf"}
    launches = {(e["pid"], e["tid"], e["ts"]) for e in of(events, "X", ("launch",))}
    ops = {(e["pid"], e["tid"], e["ts"]) for e in of(events, "X", GPU)}
    assert len(flows["s"]) == len(of(events, "X", ("launch",)))
    assert flows["s"].keys() == flows["f"].keys()
    for e in flows["s"].values():
        assert (e["pid"], e["tid"], e["ts"]) in launches
    for e in flows["f"].values():
        assert (e["pid"], e["tid"], e["ts"]) in ops or e["ts"] == flows["s"][e["id"]]["ts"]
    launched, = world.sql("SELECT matched FROM session WHERE name = 'all'")[0]
    untimed, = world.sql("SELECT sum(untimed) FROM cell JOIN session s ON s.id = session WHERE s.name = 'all'")[0]
    assert len(flows["s"]) == launched - untimed


@needs_replay
@pytest.mark.parametrize("mode, keys, kinds", [
    ("proton", {"baseTimeNanoseconds", "displayTimeUnit", "traceEvents"}, {"M", "X scope", "X kernel", "s flow", "f flow"}),
    ("proton-3.6", {"displayTimeUnit", "traceEvents"}, {"X kernel"})])
def test_the_events_of_protons_timelines(world, mode, keys, kinds):
    """As many kernels as there are, and nothing of copies, launches or grids."""
    replayed(world, next(d for d in DUMPS if d.name.startswith("torch")), "-m", mode)
    world.view("export", "all", "-o", world.home / "all.chrome_trace")
    data = json.loads((world.home / "all.chrome_trace").read_text())
    events = data["traceEvents"]
    assert data.keys() == keys
    assert {" ".join(filter(None, (e["ph"], e.get("cat")))) for e in events} == kinds
    of_kernels = [e for e in events if e.get("cat") == "kernel"]
    assert events[-1] is of_kernels[-1], "Proton's own tests look there"
    assert all(e["name"] == "launch->kernel" and e["bp"] == "e" and e["pid"] == 0 for e in events if e.get("cat") == "flow")
    n, = world.sql("SELECT sum(c.count) FROM cell c JOIN session s ON s.id = c.session WHERE s.name = 'all' AND c.class IN (1, 2)")[0]
    assert len(of_kernels) == n > 0
    assert all(e["args"].keys() == {"call_stack"} for e in of_kernels)
    assert {"\x1f".join(e["args"]["call_stack"]) for e in of_kernels} < tree_of(world, "all").keys(), "mangled, as CUPTI gives them"
    assert mode != "proton" or all(e["pid"] == 0 for e in events)
    assert {e["args"]["name"] for e in events if e["name"] == "thread_name"} >= ({"CPU Thread 0"} if mode == "proton" else set())
    assert mode == "proton" or all(e.keys() == {"ph", "cat", "name", "tid", "ts", "dur", "args"} for e in events)
    world.view("export", "all", "-o", world.home / "all.hatchet")
    assert "memcpy" not in (world.home / "all.hatchet").read_text() and "[memcpy" in world.view("tree", "all", "-m", "copies").stdout


def test_metrics_of_protons_timelines(world):
    """Text, in the event's name too; a scope without any is a scope."""
    world.start(PROTOND_AUTO_SESSION="off")
    j = record(world, mode=("-m", "proton"))
    for line in "enter a", "metric i 2 n", "metric f 0.5 f", "enter b", "exit", "enter c", "enter d", "metric f 1 m", "exit", "exit", "exit":
        j.say(line)
    j.quit()
    world.ctl("finalize", "s")
    world.view("export", "s", "-o", world.home / "s.chrome_trace")
    data = json.loads((world.home / "s.chrome_trace").read_text())
    got = {e["name"]: (e["cat"], {k: v for k, v in e["args"].items() if k != "scope_id"}) for e in data["traceEvents"]}
    assert got == {"a: <f, 0.500000>, <n, 2>": ("metric", {"call_stack": ["ROOT", "a"], "metrics": {"f": "0.500000", "n": "2"}}),
                   "b": ("scope", {"call_stack": ["ROOT", "a", "b"]}),
                   "c": ("scope", {"call_stack": ["ROOT", "a", "c"]}),
                   "d: <m, 1.000000>": ("metric", {"call_stack": ["ROOT", "a", "c", "d"], "metrics": {"m": "1.000000"}})}
    assert len(data["traceEvents"]) == len(got), "no event names a lane where nothing ran on a GPU"


@needs_replay
def test_a_damaged_chunk_is_refused_in_words(world):
    replayed(world, DUMPS[0])
    world.stop()
    db = sqlite3.connect(world.db)
    db.execute("UPDATE trace SET bytes = zeroblob(100)")
    db.commit()
    db.close()
    r = world.view("export", "all", "-f", "chrome_trace", "-o", "x.json", check=False)
    assert r.returncode == 1 and "a chunk of the timeline is damaged" in r.stderr
    assert not (world.home / "x.json").exists() and not list(world.home.glob("x.json.*"))
    assert "ROOT" in world.view("tree", "all").stdout, "the tree needs no chunk"


def record(world, session="s", job=None, mode=()):
    world.ctl("start", session, "--all", "-d", "trace", *mode)
    job = job or world.job()
    job.say("start own")  # what says that it records
    return job


def test_threads_tasks_and_what_is_open(world):
    world.start(PROTOND_AUTO_SESSION="off")
    j = record(world)
    j.say("enter outer")
    for thread in ("", "@1 ", "@2 "):
        j.say(thread + "enter step")
        j.say(thread + "enter inner")
        j.say(thread + "metric f 2.5 loss")
        j.say(thread + "exit")
        j.say(thread + "metric i 7 late (inc)")
        j.say(thread + "metric s yes tag")
        j.say(thread + "exit")
    task = j.say("child 0 task")
    begins = [j.say("begin") for _ in range(2)]
    for begin in begins:  # they overlap: of two tasks
        j.say(f"span {task} {begin}")
    world.ctl("finalize", "s")  # "outer" is open
    events, head = timeline(world, "s")
    assert head["source"] == "live" and head["traceName"] == "s"
    scopes = of(events, "X", ("scope",))
    assert collections.Counter(e["name"] for e in scopes) == {"step": 3, "inner": 3, "outer": 1}
    assert len({e["tid"] for e in scopes}) == 3
    for slices in tracks(events, ("scope",)).values():
        assert_nested(slices)
    outer, = (e for e in scopes if e["name"] == "outer")
    assert outer["args"] == {"call_stack": ["ROOT", "outer"], "open": True}
    assert all(e["args"]["metrics"] == {"loss": 2.5} for e in scopes if e["name"] == "inner")
    assert all(e["args"]["metrics"] == {"late": 7, "tag": "yes"} for e in scopes if e["name"] == "step")
    tasks = {ph: of(events, ph, ("task",)) for ph in "be"}
    assert [e["id"] for e in tasks["b"]] == [e["id"] for e in tasks["e"]] == [1, 2]
    assert all(b["ts"] <= e["ts"] for b, e in zip(tasks["b"], tasks["e"]))
    named = {e["tid"]: e["args"]["name"] for e in of(events, "M") if e["name"] == "thread_name"}
    assert named.pop(j.pid) == "main thread" and set(named) | {j.pid} == {e["tid"] for e in scopes}
    assert all(name == f"thread {tid}" for tid, name in named.items()), "the program's name is none of a thread"


def test_nothing_is_lost_or_double_when_the_daemon_is_killed(world):
    world.start(PROTOND_AUTO_SESSION="off")
    j = record(world)
    for n in range(6):
        j.say(f"repeat 5000 round{n}")
        if n % 2 == 0:
            until("some of it is stored", lambda: world.sql("SELECT 1 FROM trace"))
        world.stop(signal.SIGKILL)
        j.say(f"repeat 500 away{n}")
        world.start(PROTOND_AUTO_SESSION="off")
    j.quit()
    world.ctl("finalize", "s")
    events, head = timeline(world, "s")
    assert world.losses("s") == {} and head["eventsGone"] == 0
    want = {f"round{n}": 5000 for n in range(6)} | {f"away{n}": 500 for n in range(6)}
    assert collections.Counter(e["name"] for e in of(events, "X", ("scope",))) == want
    rows = world.sql("SELECT number, first, events FROM trace ORDER BY number")
    assert [r[1] for r in rows[1:]] == [r[1] + r[2] for r in rows[:-1]], "each chunk goes on where the last one ended"


def test_over_the_ceiling_the_oldest_leaves_and_is_counted(world):
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_TRACE_MB=0)
    j = record(world)
    total = 0
    for n in range(12):
        j.say(f"repeat 9000 round{n}")
        total += 9000
        until("it is stored", lambda: world.cells("s").get(f"/round{n}", [0])[0] == 9000)
    j.quit()
    world.ctl("finalize", "s")
    events, head = timeline(world, "s")
    kept = of(events, "X", ("scope",))
    assert 0 < len(kept) <= 16384 and kept[-1]["name"] == "round11"
    assert len(kept) + head["eventsGone"] == total
    assert len(world.sql("SELECT 1 FROM trace WHERE bytes IS NULL")) == 1, "one row tells of all that is gone"
    r = world.view("export", "s", "-f", "chrome_trace", "-o", "y.json")
    assert f"{head['eventsGone']} events had left the timeline" in r.stderr
    assert world.cells("s")["/round0"][0] == 9000, "the tree has them all"


def test_a_tree_has_no_timeline_and_says_so(world):
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "t", "--all")
    world.job().say("start own")
    r = world.ctl("finalize", "t", "-o", "t.chrome_trace", check=False)
    assert r.returncode != 0 and "has no timeline" in r.stderr and "-d trace" in r.stderr
    assert not (world.home / "t.chrome_trace").exists()
    r = world.view("export", "t", "-f", "chrome_trace", "-o", "t.json", check=False)
    assert r.returncode == 1 and "has no timeline" in r.stderr
    world.view("export", "t", "-o", "t.hatchet")
    r = world.view("export", "t.hatchet", "-f", "chrome_trace", "-o", "t.json", check=False)
    assert r.returncode == 1 and "it has no timeline" in r.stderr


def test_a_file_of_before_there_were_timelines(world):
    world.start(PROTOND_AUTO_SESSION="off")
    j = record(world)
    j.say("repeat 3 a")
    j.quit()
    world.ctl("finalize", "s")
    world.stop()
    db = sqlite3.connect(world.db)
    db.executescript("DROP TABLE trace; PRAGMA user_version = 1")
    db.close()
    r = world.view("export", "s", "-f", "chrome_trace", "-o", "t.json", check=False)
    assert r.returncode == 1 and "has no timeline" in r.stderr
    assert " a" in world.view("tree", "s").stdout
    world.start(PROTOND_AUTO_SESSION="off")  # it brings the database up to date
    world.job().say("start more")
    assert world.sql("PRAGMA user_version") == [(2,)] and world.sql("SELECT count(*) FROM trace") == [(0,)]


def test_many_metrics_in_scopes_within_scopes(world):
    world.start(PROTOND_AUTO_SESSION="off")
    j = record(world)
    j.say("enter outer")
    j.say("metric i 1 early")  # waits for its scope over many chunks
    for n in range(40):
        j.say("enter inner")
        j.say(f"metric i {n} n")
        j.say(f"metric s text{n} tag")
        j.say("exit")
        j.say("repeat 1000 between")
        until("the lane has room", lambda: world.cells("s").get("/outer/between", [0])[0] == 1000 * (n + 1))
    j.say("metric i 2 late")
    j.say("exit")
    j.quit()
    world.ctl("finalize", "s")
    assert world.losses("s") == {}
    events, _ = timeline(world, "s")
    inner = [e["args"]["metrics"] for e in of(events, "X", ("scope",)) if e["name"] == "inner"]
    assert inner == [{"n": n, "tag": f"text{n}"} for n in range(40)]
    outer, = (e for e in of(events, "X", ("scope",)) if e["name"] == "outer")
    assert outer["args"]["metrics"] == {"early": 1, "late": 2} and not of(events, "i")


def test_a_metric_that_is_set_more_than_once_in_a_scope(world):
    world.start(PROTOND_AUTO_SESSION="off")
    j = record(world)
    j.say("enter a")
    for metric in ("i 3 n (inc)", "s one tag", "f 0.5 x", "i 4 n (inc)", "s two tag"):
        j.say("metric " + metric)
    j.say("exit")
    world.ctl("finalize", "s")
    scope, = of(timeline(world, "s")[0], "X", ("scope",))
    assert scope["args"]["metrics"] == {"n": [3, 4], "tag": ["one", "two"], "x": 0.5}


def test_run_writes_it_by_the_name_of_the_file(world):
    world.ctl("run", "-d", "both", "-n", "r", "-o", "r.json", "--", BUILD / "bin/protond-demo", env={"PROTOND_AUTO_SESSION": "off"})
    whole = json.loads((world.home / "r.json").read_text())
    assert {"step", "epoch", "decode batch"} <= {e["name"] for e in whole["traceEvents"]}
    assert len(world.sql("SELECT 1 FROM cell")) > 0, "the tree is there as ever"


@pytest.mark.preload
@pytest.mark.skipif(not (BUILD / "lib/protond/python/protond/_native.abi3.so").exists(), reason="the Python package was not built: no Python.h")
def test_threads_of_python_have_their_names(world):
    """threading's, cut to what the kernel takes; one that a library made keeps its own."""
    (world.home / "x.py").write_text("""
import ctypes, threading
import protond
def work():
    with protond.scope("work"):
        pass
for name in ("loader", "löööööööööng name", "Thread-7 (fetch)", "bad\\udc80"):
    t = threading.Thread(target=work, name=name)
    t.start(); t.join()
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def foreign(arg):
    libc.pthread_setname_np(ctypes.c_void_p(libc.pthread_self()), b"library's")
    threading.current_thread()
    work()
libc = ctypes.CDLL(None)
libc.pthread_self.restype = ctypes.c_void_p
pthread = ctypes.c_void_p()
libc.pthread_create(ctypes.byref(pthread), None, foreign, None)
libc.pthread_join(pthread, None)
""")
    world.ctl("run", "-q", "-n", "s", "-d", "trace", "--", sys.executable, "x.py", env={"PYTHONPATH": str(BUILD / "lib/protond/python")})
    events, _ = timeline(world, "s")
    named = [e["args"]["name"] for e in of(events, "M") if e["name"] == "thread_name"]
    assert {"loader", "lööööööö", "Thread-7 (fetch", "bad?", "library's"} <= set(named), named
    r = world.view("steps", "s", check=False)
    assert r.returncode == 1 and "--scope NAME takes others (--scope 'work': entered 5 times)" in r.stderr, r.stderr
