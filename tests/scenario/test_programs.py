# SPDX-License-Identifier: MIT. Programs of others that are many processes, under `protonctl run`: all that their workers
# did is in one session. A name that begins with standin_ is not the program, but does to its processes what that does.
import collections
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from conftest import BUILD, WAIT, until

pytestmark = [pytest.mark.preload,  # a sanitizer's runtime is not in the interpreter
              pytest.mark.skipif(not (BUILD / "lib/protond/python/protond/_native.abi3.so").exists(),
                                 reason="the Python package was not built: no Python.h")]
RUN = [str(BUILD / "bin/protonctl"), "run", "-n", "p", "-b", "none", "--"]


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"no {program} here")


def environment(world):
    return {**world.env, "PYTHONPATH": str(BUILD / "lib/protond/python")}


def run(world, *command, **files):
    for name, text in files.items():
        (world.home / f"{name}.py").write_text(text)
    r = subprocess.run([*RUN, *map(str, command)], env=environment(world), cwd=world.home, capture_output=True, text=True, timeout=120,
                       stdin=subprocess.DEVNULL)
    assert r.returncode == 0, r.stdout + r.stderr
    return r


def counts(world):
    """{the last scope of a path: how often} of the one session that there is."""
    assert [s[0] for s in world.sql("SELECT name FROM session")] == ["p"]
    found = collections.Counter()
    for path, cell in world.cells("p").items():
        found[path.rpartition("/")[2]] += cell[0]
    return dict(found), {rank: n for rank, n in world.sql("SELECT rank, count(*) FROM process GROUP BY rank")}


RANK = """
import os, protond
for _ in range(10 + int(os.environ["OMPI_COMM_WORLD_RANK"])):
    with protond.scope("step"):
        pass
"""
MPIRUN = ["mpirun", "-n", "3", "--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]


@needs("mpirun")
def test_mpirun(world):
    run(world, *MPIRUN, sys.executable, "rank.py", rank=RANK)
    found, ranks = counts(world)
    assert found == {"step": 33} and {r: n for r, n in ranks.items() if r is not None} == {0: 1, 1: 1, 2: 1}


@needs("mpirun")
def test_mpirun_of_runs(world):
    """`mpirun protonctl run ...`: each rank a run of its own, all of them one session."""
    (world.home / "rank.py").write_text(RANK)
    r = subprocess.run([*MPIRUN, *RUN, sys.executable, "rank.py"], env=environment(world), cwd=world.home, capture_output=True, text=True,
                       timeout=120, stdin=subprocess.DEVNULL)
    assert r.returncode == 0, r.stdout + r.stderr
    assert counts(world)[0] == {"step": 33}


@pytest.mark.skipif(subprocess.run([sys.executable, "-c", "import xdist"], capture_output=True).returncode != 0, reason="no pytest-xdist here")
def test_pytest_xdist(world):
    """Its workers are started by execnet, with a bare `python -c`."""
    run(world, sys.executable, "-m", "pytest", "-q", "-n", "3", "-p", "no:cacheprovider", "test_x.py", test_x="""
import os, protond, pytest
@pytest.mark.parametrize("i", range(12))
def test_i(i):
    assert "PYTEST_XDIST_WORKER" in os.environ
    with protond.scope("test"):
        pass
""")
    assert counts(world)[0] == {"test": 12}


def ask(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(WAIT)
        s.connect(path)
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answer = b""
        while more := s.recv(4096):
            answer += more
    return answer


@needs("gunicorn")
@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["", "preload"])
def test_gunicorn(world, preload):
    (world.home / "app.py").write_text("""
import os, protond
with protond.scope("load"):
    pass
def app(environ, start):
    with protond.scope("request"):
        start("200 OK", [])
        return [str(os.getpid()).encode()]
""")
    (world.home / "conf.py").write_text("def post_worker_init(worker):\n    open(f'up.{worker.pid}', 'w').close()\n")
    sock = f"{world.dir}/g.sock"  # a short name
    p = subprocess.Popen([*RUN, shutil.which("gunicorn"), *preload, "-c", "conf.py", "-w", "3", "-b", f"unix:{sock}", "app:app"], env=environment(world),
                         cwd=world.home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        until("all workers take signals", lambda: len(list(world.home.glob("up.*"))) == 3)  # one that comes sooner is lost on them
        workers = {ask(sock).rpartition(b"\n")[2] for _ in range(60)}
        assert all(w.isdigit() for w in workers)
        p.send_signal(signal.SIGTERM)
        words = p.communicate(timeout=WAIT)[1]
    finally:
        p.kill()
        p.wait(WAIT)
    assert p.returncode == 0, words
    assert counts(world)[0] == {"load": 1 if preload else 3, "request": 60}


def test_standin_torchrun(world):
    """An elastic agent: workers in sessions of their own, killed and begun again after one of them died."""
    run(world, sys.executable, "agent.py", agent="""
import os, signal, subprocess, sys
def group(attempt):
    return [subprocess.Popen([sys.executable, "worker.py"], start_new_session=True, stdout=subprocess.PIPE,
            env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE="2", TORCHELASTIC_RESTART_COUNT=str(attempt))) for r in range(2)]
first = group(0)
first[0].stdout.readline()  # it waits for the other, which dies
assert first[1].wait() == -9
os.killpg(first[0].pid, signal.SIGTERM)
first[0].wait()
assert [p.wait() for p in group(1)] == [0, 0]
""", worker="""
import os, signal, protond
again = os.environ["TORCHELASTIC_RESTART_COUNT"] == "1"
for _ in range(20 if again else 5):
    with protond.scope("again" if again else "step"):
        pass
if not again:
    print("waits", flush=True)
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()
""")
    found, ranks = counts(world)
    assert found == {"step": 10, "again": 40} and ranks[0] == ranks[1] == 2


def test_standin_vllm(world):
    """A server whose engine is spawned, whose workers the engine spawns; they are told to end by a signal."""
    run(world, sys.executable, "serve.py", serve="""
import multiprocessing as mp, os, signal
import protond
def worker(pipe):
    os.setsid()
    while True:
        n = pipe.recv()
        with protond.scope("execute_model"):
            pass
        pipe.send(n)
def engine(pipe):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    spawn = mp.get_context("spawn")
    ends = [spawn.Pipe() for _ in range(2)]
    workers = [spawn.Process(target=worker, args=(b,), daemon=True) for a, b in ends]
    for w in workers:
        w.start()
    for n in iter(pipe.recv, None):
        with protond.scope("schedule"):
            for a, _ in ends:
                a.send(n)
            assert [a.recv() for a, _ in ends] == [n, n]
        pipe.send(n)
    for w in workers:
        w.terminate()
        w.join()
if __name__ == "__main__":
    spawn = mp.get_context("spawn")
    ours, its = spawn.Pipe()
    core = spawn.Process(target=engine, args=(its,))
    core.start()
    for n in range(25):
        with protond.scope("generate"):
            ours.send(n)
            assert ours.recv() == n
    ours.send(None)
    core.join()
    assert core.exitcode == 0
""")
    assert counts(world)[0] == {"generate": 25, "schedule": 25, "execute_model": 50}


RAY = """
import os, socket, subprocess, sys
import protond

def actor(path):
    with socket.socket(socket.AF_UNIX) as s, protond.scope("actor"):
        s.connect(path)
        for _ in iter(lambda: s.recv(1), b""):
            with protond.scope("method"):
                pass
            s.sendall(b"r")

def raylet(listening, ready):
    'Twice forked, in a session of its own, with nothing of the driver open; actors are programs that it starts.'
    if os.fork() > 0:
        os._exit(0)
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    env = {k: v for k, v in os.environ.items() if k not in sys.argv[2].split(",")}
    actors = [subprocess.Popen([sys.executable, __file__, "actor", sys.argv[1]], env=env, close_fds=True) for _ in range(3)]
    ends = [listening.accept()[0] for _ in actors]
    for _ in range(7):
        for s in ends:
            s.sendall(b"c")
        for s in ends:
            assert s.recv(1) == b"r"
    for s in ends:
        s.close()
    assert [p.wait() for p in actors] == [0, 0, 0]
    ready.sendall(b"y")
    os._exit(0)

if sys.argv[1] == "actor":
    actor(sys.argv[2])
else:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(sys.argv[1])
    listening.listen()
    ours, its = socket.socketpair()
    with protond.scope("driver"):
        pid = os.fork()
        if pid == 0:
            raylet(listening, its)
        os.waitpid(pid, 0)
        its.close()
        assert ours.recv(1) == b"y"
"""


def test_standin_ray(world):
    run(world, sys.executable, "ray.py", f"{world.dir}/r.sock", "", ray=RAY)
    assert counts(world)[0] == {"driver": 1, "actor": 3, "method": 21}


def test_standin_ray_without_the_runs_variables(world):
    """Who takes the run's token from its workers takes them from its session; they are recorded, each in an automatic one."""
    run(world, sys.executable, "ray.py", f"{world.dir}/r.sock", "PROTOND_TOKEN", ray=RAY)
    assert {path: cell[0] for path, cell in world.cells("p").items()} == {"/driver": 1}
    auto = lambda: world.cells(pathlib.Path(sys.executable).name).get("/actor/method", (0,))[0]
    until("the actors' are stored", lambda: auto() == 21)
