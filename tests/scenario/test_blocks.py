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


def rows_of(world):
    data = json.loads(world.view("memory", "x", "--json").stdout)["data"]
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
