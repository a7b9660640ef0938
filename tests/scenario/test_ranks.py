# SPDX-License-Identifier: MIT. Many processes of one run: ranks, workers, kills; one session, seen whole and by rank.
import subprocess
import sys

import pytest

from conftest import BUILD, WAIT, until

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
            with mp.get_context(method).Pool(2) as pool:
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
    assert "was killed (signal 9) with 1 scope open" in r.stderr
    whole = paths(world)
    assert whole["/train/step"] == 33
    count, _, opened = world.cells("ranks")["/train"]
    assert count == 2 and opened >= 1, "the forked workers stand in it too"
    assert paths(world, "--process", 1)["/train/step"] == 11
    assert "killed" in world.ctl("jobs", "--all").stdout


WAITS = """
import os, signal, sys
import protond
with protond.scope("train"):
    with protond.scope("step"):
        pass
    print("ready", flush=True)
    sys.stdin.readline()
    if sys.argv[1:] == ["dies"]:
        os.kill(os.getppid(), signal.SIGKILL)
"""


def mpirun(rank, namespace="job@1"):
    return {"PMIX_NAMESPACE": namespace, "PMIX_RANK": rank, "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": 3}


def srun(rank):
    return {"SLURM_JOB_ID": 7, "SLURM_STEP_ID": 0, "SLURM_PROCID": rank, "SLURM_NTASKS": 2}


def torchrun(rank):
    return {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "localhost", "MASTER_PORT": 29500, "RANK": rank, "WORLD_SIZE": 2}


def launched(world, variables, *args, name=()):
    """`mpirun protonctl run ...` of one rank, up to where its program waits for a line."""
    (world.home / "waits.py").write_text(WAITS)
    env = {**world.env, "PYTHONPATH": str(BUILD / "lib/protond/python"), **{k: str(v) for k, v in variables.items()}}
    p = subprocess.Popen([str(BUILD / "bin/protonctl"), "run", *name, "-b", "none", "--", sys.executable,
                          str(world.home / "waits.py"), *args], env=env, cwd=world.home, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout.readline() == "ready\n"
    return p


def ended(p):
    _, words = p.communicate("\n", timeout=WAIT)
    return words


def test_runs_of_one_launch_are_one_session(world):
    ranks = [launched(world, mpirun(rank)) for rank in range(3)]
    other = launched(world, mpirun(0, "job@2"))
    assert len(world.ctl_json("sessions")["sessions"]) == 2
    assert [("goes on" in ended(p), p.returncode) for p in ranks[:2]] == [(True, 0), (True, 0)]
    words = ended(ranks[2])
    assert "3 processes, ranks 0 to 2" in words
    assert "1 process, rank 0" in ended(other)
    assert {k: v[0] for k, v in world.cells("waits").items()} == {"/train": 4, "/train/step": 4}
    assert not list(world.dir.glob("launch.*"))
    again = ended(launched(world, mpirun(0)))
    assert "1 process, rank 0" in again, "a launch that has ended is not joined"


def test_a_killed_run_holds_up_no_other(world):
    first, second = launched(world, mpirun(0), "dies"), launched(world, mpirun(1))
    ended(first)
    assert first.returncode == -9
    words = ended(second)
    assert "2 processes, ranks 0 to 1" in words


def test_names_of_their_own_are_sessions_of_their_own(world):
    ranks = [launched(world, mpirun(rank), name=("-n", "rank%q{PMIX_RANK}")) for rank in range(2)]
    assert all("1 process, rank" in ended(p) for p in ranks)


@pytest.mark.parametrize("launcher", [srun, torchrun], ids=lambda f: f.__name__)
def test_other_launchers_variables(world, launcher):
    first, second = launched(world, launcher(0)), launched(world, launcher(1))
    assert "goes on" in ended(first) and "2 processes, ranks 0 to 1" in ended(second)


@pytest.mark.parametrize("ranks, long, found", [(True, True, True), (True, False, False), (False, True, False)])
def test_a_slow_rank_is_one_that_others_wait_for(world, ranks, long, found):
    """Of processes without ranks, collectives and steps nobody waits for the one that has most to do; nor is what takes next to
    nothing of the run's time much, however much more of it one rank has."""
    command = " ".join(f"{f'export RANK={i} WORLD_SIZE=2;' if ranks else ''} (echo enter request; for ((i = 0; i < {n if long else 1}; i++)); do :; done; "
                       f"echo exit; echo repeat {n} other; for ((i = 0; i < 20000; i++)); do :; done) | {BUILD}/tests/job;"
                       for i, n in enumerate((100, 100000)))
    world.ctl("run", "-q", "-b", "none", "-n", "r", "--", "bash", "-c", command)
    said = world.view("bottlenecks", "r").stdout
    assert ("slow_rank: Rank 1 takes" in said, "nothing says that its processes meet" in said) == (found, not ranks), said
