# SPDX-License-Identifier: MIT. Torch's caching allocator, block by block: to the byte what the allocator says of itself, and under the scopes
# that allocated. Torch is a stand-in (standin/caching); tests/gpu/alloc_check.py asks the real one.
import json
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

from conftest import BUILD

HERE = pathlib.Path(__file__).resolve().parent / "standin/caching"
pytestmark = [pytest.mark.preload, pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ is here")]
CACHE = str(BUILD / "cache")

WORK = """
import json, random, sys, threading
import protond, torch
torch.init()
early = [torch.lib.standin_alloc(3000 + i) for i in range(5)]  # before anything is recorded
session = protond.start("x", backend="none", switches="alloc", data="both")
pick, live, lock = random.Random(7), {"forward": [], "backward": []}, threading.Lock()
def work(name, rounds, sizes):
    with protond.scope(name):
        for _ in range(rounds):
            with lock:
                if live[name] and pick.random() < 0.45:
                    torch.lib.standin_free(live[name].pop(pick.randrange(len(live[name])))[0])
                else:
                    size = pick.choice(sizes)
                    live[name].append((torch.lib.standin_alloc(size), size))
other = threading.Thread(target=work, args=("backward", 600, (70, 4000, 300_000)))
other.start()
work("forward", 600, (1, 512, 513, 3 << 20, (9 << 20) + 1))
other.join()
with protond.scope("optimizer"):  # frees what another thread has allocated, in another scope
    for address, _ in live["backward"]:
        torch.lib.standin_free(address)
    torch.lib.standin_free(early[0])
    torch.lib.standin_alloc(1 << 41)
    torch.lib.standin_alloc((5 << 20) - 512)  # the last one: its size is known behind it
protond.finalize(session)
print(json.dumps(torch.stats()))
"""


@pytest.fixture(scope="module")
def torch(tmp_path_factory):
    to = tmp_path_factory.mktemp("site") / "torch"
    shutil.copytree(HERE / "torch", to)
    (to / "lib").mkdir()
    (to.parent / "cuda/include").mkdir(parents=True)
    (to.parent / "cuda/include/cuda_runtime_api.h").touch()
    for name, source in (("libc10_cuda.so", str(HERE / "allocator.cpp")), ("libc10.so", "/dev/null")):
        subprocess.run(["g++", "-O1", "-std=c++17", "-fPIC", "-shared", f"-Wl,-soname,{name}", f"-I{to}/include", "-x", "c++", source, "-o", to / "lib" / name], check=True)
    return to.parent


def run(world, torch, code, **env):
    env = {**world.env, "PYTHONPATH": f"{BUILD}/lib/protond/python:{torch}", "XDG_CACHE_HOME": CACHE, "CUDA_HOME": str(torch / "cuda"),
           **env}
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=env, cwd=world.home, capture_output=True, text=True, timeout=120)


def rows_of(world, name="x"):
    data = json.loads(world.view("memory", name, "--json").stdout)["data"]
    names = [c["name"] for c in data["columns"]]
    return [dict(zip(names, row)) for row in data["rows"]]


def test_it_is_what_the_allocator_says(world, torch):
    r = run(world, torch, WORK)
    assert r.returncode == 0, r.stderr
    now, peak, allocs, given, frees, taken, reserved, most, active, split, requested, segments, ooms = json.loads(r.stdout.splitlines()[-1])
    rows = rows_of(world)
    all_of = {one["kind"]: one for one in rows if one["scope"] is None}
    mine = all_of["torch_allocated"]
    before = sum((3000 + i + 511) // 512 * 512 for i in range(5))
    assert mine["device"] == "cuda:0"
    assert (mine["live"], mine["peak"]) == (now, peak)
    assert (mine["allocs"], mine["allocated"]) == (allocs - 5, given - before)
    assert (mine["frees"], mine["freed"]) == (frees, taken)
    assert (all_of["torch_reserved"]["live"], all_of["torch_reserved"]["peak"]) == (reserved, most)
    assert (all_of["torch_active"]["live"], all_of["torch_inactive_split"]["live"], all_of["torch_requested"]["live"]) == (active, split, requested)
    assert mine["unknown_frees"] + mine["freed_unseen"] == 0
    who = {one["scope"]: one for one in rows if one["kind"] == "torch_allocated" and one["scope"] is not None}
    assert sum(one["live"] for one in who.values()) == now and sum(one["peak"] for one in who.values()) == peak
    assert who["backward"]["live"] == 0 < who["backward"]["most"] and who["optimizer"]["live"] >= (5 << 20) - 512
    assert dict(world.sql("SELECT name, sum(value) FROM metric WHERE name IN ('torch_ooms', 'torch_allocs', 'torch_segments') GROUP BY name")) == {
        "torch_ooms": ooms, "torch_allocs": allocs - 5, "torch_segments": segments - 5}
    (sql,) = json.loads(world.view("sql", "x", "select (select now from memory where kind = 'torch_allocated'), (select sum(peak) from memory_owners),"
                                   " (select max(most) from memory_points where kind = 'torch_reserved'), count(*) > 0, min(now) > 0 from memory_tops",
                                   "--json").stdout)["data"]["rows"]
    assert sql == [now, peak, most, 1, 1]
    world.view("export", "x", "-f", "kineto", "-o", "x.pt.trace.json")
    rows = [e["args"] for e in json.loads((world.home / "x.pt.trace.json").read_text())["traceEvents"] if e["name"] == "[memory]"]
    assert rows[-1]["Total Allocated"] == now and rows[-1]["Total Reserved"] == reserved and rows[-1]["Device Id"] == 0 and rows[-1]["Device Type"] == 1
    assert max(one["Total Allocated"] for one in rows) == peak and max(one["Total Reserved"] for one in rows) == most
    assert sum(one["Bytes"] for one in rows) == now
    assert who["(other)"]["live"] == before - 3072, "what was there before is nobody's"


def test_one_session_behind_another(world, torch):
    """At once: nobody has stopped to want allocations. What there is by then is said again."""
    r = run(world, torch, """
        import protond, torch
        torch.init()
        for name in "x", "y":
            session = protond.start(name, backend="none", switches="alloc")
            torch.lib.standin_alloc(5120)
            protond.finalize(session)
        """)
    assert r.returncode == 0, r.stderr
    assert [one["live"] for one in rows_of(world, "y") if (one["kind"], one["scope"]) == ("torch_allocated", None)] == [10240]


SNAPSHOTS = """
import collections, json, types
import protond, torch
class Allocator:
    "torch's history and blocks: one segment for each block, which keeps half of it."
    def __init__(self):
        self.trace, self.blocks, self.next, self.most = collections.deque(maxlen=4), {}, 4096, 0
    def record(self, enabled, context, stacks, max_entries):
        assert (enabled, context, stacks) == ("all", "all", "python")
        self.trace = collections.deque(self.trace, maxlen=min(max_entries, HISTORY))
    def say(self, action, addr, size, line):
        frames = [{"filename": torch.__file__, "line": 1, "name": "empty"}, {"filename": "train.py", "line": line, "name": "step"},
                  {"filename": "train.py", "line": 1, "name": "main"}]
        self.trace.append({"action": action, "addr": addr, "size": size, "stream": 0, "frames": frames})
    def alloc(self, size, line):
        at, self.next = self.next, self.next + (1 << 22)
        self.say("segment_alloc", at, 1 << 22, line)
        self.blocks[at] = size
        self.say("alloc", at, size, line)
        return at
    def free(self, at, line):
        size = self.blocks.pop(at)
        self.say("free_requested", at, size, line)
        self.say("free_completed", at, size, line)
        self.say("segment_free", at, 1 << 22, line)
    def snapshot(self):
        def segment(at, size):
            big = (size + 511) // 512 * 512 + 512  # more than is known of one that was
            return {"device": 0, "address": at, "total_size": 1 << 22, "active_size": big, "blocks": [
                {"size": big, "requested_size": size, "state": "active_allocated"}, {"size": (1 << 22) - big, "state": "inactive"}]}
        return {"segments": [segment(*one) for one in self.blocks.items()], "device_traces": [list(self.trace)]}
HISTORY = 1000
a = Allocator()
torch.cuda.memory = types.SimpleNamespace(_record_memory_history=a.record, _snapshot=a.snapshot)
torch.init()
before = a.alloc(1000, 2)
session = protond.start("x", backend="none", switches="alloc")
kept = [a.alloc(100_000, 10) for _ in range(3)]
for at in [a.alloc(1 << 20, 20) for _ in range(2)]:
    a.free(at, 30)
a.free(before, 30)
protond.finalize(session)
between = a.alloc(5000, 40)
session = protond.start("y", backend="none", switches="alloc")
a.alloc(200_000, 50)
protond.finalize(session)
session = protond.start("z", backend="none", switches="alloc")
last = [a.alloc(300_000, 60) for _ in range(1000)]  # more than the history has
for at in last[1:]:
    a.free(at, 70)
protond.finalize(session)
"""


def test_from_snapshots(world, torch):
    """No compiler: torch's history says who holds what, which a line says; what is allocated is right where that was overwritten, too."""
    r = run(world, torch, SNAPSHOTS, CXX="false", XDG_CACHE_HOME=str(world.home / "cache"))
    assert r.returncode == 0, r.stderr
    assert r.stderr.count("from its snapshots") == 1 and r.stderr.count("was overwritten") == 1 and "not recorded any more" not in r.stderr, r.stderr
    block = (100_000 + 511) // 512 * 512 + 512
    x = {(one["kind"], one["scope"]): one for one in rows_of(world)}
    mine, site = x["torch_allocated", None], x["torch_allocated", "train.py:1@main/train.py:10@step"]
    assert (mine["allocs"], mine["frees"], mine["live"], mine["unknown_frees"]) == (5, 3, 3 * block, 0)
    assert site["live"] == 3 * block and mine["peak"] == 3 * (block - 512) + 2 * (1 << 20) + 1536
    assert (x["torch_reserved", None]["live"], x["torch_reserved", None]["peak"]) == (3 << 22, 6 << 22)
    y = {(one["kind"], one["scope"]): one for one in rows_of(world, "y")}
    first = (5000 + 511) // 512 * 512 + 512
    second = (200_000 + 511) // 512 * 512 + 512
    assert y["torch_allocated", None]["live"] == 3 * block + first + second and y["torch_allocated", "(other)"]["live"] == 3 * block + first
    z = {(one["kind"], one["scope"]): one for one in rows_of(world, "z")}
    assert z["torch_allocated", None]["live"] == 3 * block + first + second + (300_000 + 511) // 512 * 512 + 512


def test_a_torch_that_does_not_tell(world, torch):
    r = run(world, torch, """
        import torch, protond
        torch.__version__ = "2.0.1"
        session = protond.start("x", backend="none", switches="alloc")
        torch.init()
        torch.lib.standin_alloc(5)
        protond.finalize(session)
        """)
    assert r.returncode == 0 and "2.1 is the first that does" in r.stderr, r.stderr


def test_no_headers_of_cuda(world, torch):
    r = run(world, torch, """
        import torch, protond
        session = protond.start("x", backend="none", switches="alloc")
        torch.init()
        protond.finalize(session)
        """, CUDA_HOME="/nonexistent", XDG_CACHE_HOME=str(world.home))
    assert r.returncode == 0 and "cuda_runtime_api.h" in r.stderr, r.stderr
