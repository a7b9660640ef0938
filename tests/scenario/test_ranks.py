# SPDX-License-Identifier: MIT. Many processes of one run: ranks, workers, kills; one session, seen whole and by rank.
import sys

import pytest

from conftest import BUILD, until

pytestmark = pytest.mark.preload  # a sanitizer's runtime is not in the interpreter

LAUNCH = """
import os, subprocess, sys
ps = [subprocess.Popen([sys.executable, *sys.argv[2:]], env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r),
                                                                WORLD_SIZE=sys.argv[1])) for r in range(int(sys.argv[1]))]
print(*[p.wait() for p in ps])
"""
RANK = """
import multiprocessing as mp, os, signal, sys
import protond

def ready():  # a forked worker is recorded some milliseconds after its first scope
    while not protond.recording():
        with protond.scope("early"):
            pass

def item(n):
    with protond.scope("load"):
        return n

if __name__ == "__main__":
    rank = int(os.environ["RANK"])
    with protond.scope("train"):
        for _ in range(10 + rank):
            with protond.scope("step"):
                pass
        for method in ("fork", "spawn"):
            with mp.get_context(method).Pool(2, ready) as pool:
                assert pool.map(item, range(6)) == list(range(6))
        if rank == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
"""


def run(world, ranks, *args):
    (world.home / "launch.py").write_text(LAUNCH)
    (world.home / "rank.py").write_text(RANK)
    env = {"PYTHONPATH": str(BUILD / "lib/protond/python")}
    r = world.ctl("run", "-n", "ranks", "-b", "none", "--", sys.executable, world.home / "launch.py", ranks,
                  world.home / "rank.py", *args, env=env)
    until("the session is stored", lambda: world.state("ranks") == "finalized")
    return r


def paths(world, *args):
    """{path: calls} of the tree that protonview prints."""
    import json
    world.view("export", "ranks", "-o", world.home / "x.hatchet", "--force", *args)
    found = {}

    def walk(node, path):
        for child in node["children"]:
            name = path + "/" + child["frame"]["name"]
            found[name] = child["metrics"].get("calls", 0)
            walk(child, name)
    walk(json.loads((world.home / "x.hatchet").read_text())[0], "")
    return found


def test_one_session_of_all_ranks_and_their_workers(world):
    r = run(world, 3, -1)
    assert r.stdout == "0 0 0\n"
    assert "ranks 0 to 2" in r.stderr
    whole = paths(world)
    assert whole["/train"] == 3 and whole["/train/step"] == 33
    assert sum(n for p, n in whole.items() if p.endswith("/load")) == 36
    for rank in range(3):
        one = paths(world, "--process", rank)
        assert one["/train"] == 1 and one["/train/step"] == 10 + rank
        assert sum(n for p, n in one.items() if p.endswith("/load")) == 12, "workers belong to their rank"


def test_a_killed_rank_leaves_what_it_had(world):
    r = run(world, 3, 1)
    assert r.stdout == "0 -9 0\n"
    assert "was killed (signal 9) with 1 scopes open" in r.stderr
    whole = paths(world)
    assert whole["/train/step"] == 33
    count, _, opened = world.cells("ranks")["/train"]
    assert count == 2 and opened >= 1, "the forked workers stand in it too"
    assert paths(world, "--process", 1)["/train/step"] == 11
    assert "killed" in world.ctl("jobs", "--all").stdout
