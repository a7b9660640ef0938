# SPDX-License-Identifier: MIT. `protonctl where --stack`: Python stacks and waits of a job that runs, and samples: of each Python there is whose
# frames can be read.
import json
import pathlib

import pytest

from conftest import until
from test_python import PYTHONS, job, python_env

pytestmark = pytest.mark.preload
READ = [v for v in ("3.11", "3.12", "3.13") if v in PYTHONS]

PROGRAM = """
    import ctypes, sys, threading, time
    import protond
    held = threading.Lock()
    held.acquire()

    def sleeps():
        with protond.scope("outer"):
            time.sleep(1000)

    def waits_\u00e9():
        held.acquire()

    def deep(n):
        if n:
            deep(n - 1)
        else:
            held.acquire()

    threading.stack_size(64 << 20)
    sys.setrecursionlimit(20000)
    for what in (sleeps, waits_\u00e9, lambda: deep(9000)):
        threading.Thread(target=what, daemon=True).start()
    last = {sleeps.__code__: 2, waits_\u00e9.__code__: 1, deep.__code__: 4}  # their lines, from the first
    while {f.f_code: f.f_lineno - f.f_code.co_firstlineno for i, f in sys._current_frames().items()
           if i != threading.get_ident()} != last:
        time.sleep(0)  # lets them come there
    ctypes.PyDLL(None).sleep(1000)
"""


@pytest.mark.skipif(not READ, reason="no Python whose frames can be read")
@pytest.mark.parametrize("version", READ[:1] + READ[-1:] if len(READ) > 1 else READ)
def test_stacks_of_a_hung_job(world, version):
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "hung", "--all")
    hung = world.job(PYTHONS[version], job(world, PROGRAM), env=python_env(world))
    try:
        until("it hangs with the GIL held", lambda: holder(world, hung.pid) == "<module>")
        [stack] = world.ctl_json("where", "--stack", hung.pid)["stacks"]
        assert stack["why"] == ""
        threads = {t["inner"][0]["function"]: t for t in stack["threads"] if t.get("inner")}
        assert set(threads) == {"sleeps", "waits_\u00e9", "deep", "<module>"}
        lines = (world.home / "job.py").read_text().splitlines()
        for name, text in (("sleeps", "time.sleep(1000)"), ("waits_\u00e9", "held.acquire()"), ("deep", "held.acquire()"),
                           ("<module>", "ctypes.PyDLL(None).sleep(1000)")):
            frame = threads[name]["inner"][0]
            assert lines[frame["line"] - 1].strip() == text and pathlib.Path(frame["file"]).name == "job.py", name
            assert not threads[name]["changed"] and not threads[name]["broken"]
            assert threads[name]["state"] == "S"
        assert threads["deep"]["frames"] > 9000 and threads["deep"]["outer"][-1]["function"] == "Thread._bootstrap"
        shown = world.ctl("where", "--stack", hung.pid).stdout
        assert "more\n" in shown and "holds the GIL" in shown
        scope = shown[shown.index("    outer  for"):]
        assert "sleeps  " in scope.split("  thread ")[0]
    finally:
        hung.kill()


@pytest.mark.skipif(not READ, reason="no Python whose frames can be read")
def test_the_main_thread_among_many(world):
    """It and Python's others come before those of which only the kernel knows; the oldest before the youngest."""
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "hung", "--all")
    hung = world.job(PYTHONS[READ[0]], job(world, """
        import protond, threading, time
        def many(): time.sleep(1000)
        def stays(): time.sleep(1000)
        threading.stack_size(64 << 10)
        for _ in range(600):
            threading.Thread(target=many, daemon=True).start()
        stays()
    """), env=python_env(world))

    def where():
        found = json.loads(world.ctl("where", "--stack", hung.pid, "--json", check=False).stdout)["data"]["stacks"]
        return [s for s in found if {"stays"} == {t["inner"][0]["function"] for t in s["threads"] if t["tid"] == hung.pid and t.get("inner")}]
    try:
        stack = until("it is there", where)[0]
        assert len(stack["threads"]) == 256 and all(t.get("inner") for t in stack["threads"]), stack["threads"][-1]
    finally:
        hung.kill()


def holder(world, pid):
    shown = world.ctl("where", "--stack", pid, "--json", check=False)  # 1: it has not come to protond yet
    for stack in json.loads(shown.stdout)["data"]["stacks"]:
        for t in stack["threads"]:
            if t.get("gil") and t["syscall"] == "clock_nanosleep" and t.get("inner"):
                return t["inner"][0]["function"]
    return None


@pytest.mark.parametrize("version", READ)
def test_samples_of_a_job(world, version):
    code = """
        import protond, time
        def leaf(until):
            while time.perf_counter() < until: pass
        def calls(): leaf(time.perf_counter() + 1)
        with protond.scope("outer"): calls()
    """
    world.ctl("run", "-q", "-n", "x", "-b", "none", "-s", "cpu", "--", PYTHONS[version], job(world, code), env=python_env(world))
    rows = world.view("sql", "x", "select n.path, m.value from nodes n join metrics m on m.node = n.node "
                                  "where m.name = 'cpu_samples'", "--json").stdout
    found = dict(json.loads(rows)["data"]["rows"])
    [leaf] = [path for path in found if path.endswith("@leaf")]
    assert found[leaf] > 0 and "outer" in leaf and leaf.index("@<module>") < leaf.index("@calls"), found


@pytest.mark.skipif(not READ, reason="no Python whose frames can be read")
def test_samples_of_a_program_that_imports_nothing(world):
    """`run -s cpu` is enough."""
    code = """
        import time
        until = time.perf_counter() + 0.3
        while time.perf_counter() < until: pass
    """
    shown = world.ctl("run", "-n", "x", "-b", "none", "-s", "cpu", "--", PYTHONS[READ[0]], job(world, code)).stderr
    assert "job.py:1@<module>" in shown, shown
