# SPDX-License-Identifier: MIT. Samples with native frames: of a C program whose shares are known, of Python that calls C, and where the kernel
# refuses.
import json
import os
import platform
import subprocess

import pytest

from conftest import BUILD
from test_python import PYTHONS, job, python_env
from test_stack import READ

pytestmark = [pytest.mark.preload, pytest.mark.skipif(platform.machine() != "x86_64", reason="native frames are of x86-64")]
OTHER_PIDS = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "--pid", "--fork", "--kill-child"]
REFUSED = "without native frames: perf_event_open is refused"


def samples(world, *command, how="--native", env=None):
    """{path: samples} of a run, without what is below it; and its tree."""
    world.ctl("run", "-q", "-n", "x", "-b", "none", *how.split(), "--", *command, env=env)
    rows = world.view("sql", "x", "select n.path, m.value from nodes n join metrics m on m.node = n.node "
                                  "where m.name = 'cpu_samples'", "--json").stdout
    return dict(json.loads(rows)["data"]["rows"]), world.view("tree", "x").stdout


def of(found, *names):
    """How many are in a path that has these, one inside of the other."""
    return sum(n for path, n in found.items() if [part for part in path.split("/") if part in names] == list(names))


def test_a_program_in_c(world):
    found, tree = samples(world, BUILD / "tests/native", "3")
    assert of(found, "waiter", "waits_outside", "waits_here", "pthread_cond_wait") > 0, found
    if REFUSED in tree:
        pytest.skip("perf_event_open is refused here")
    fifty, twenty = (of(found, "known", "main", "turns", which, "spin") for which in ("fifty", "twenty"))
    assert fifty > twenty > 0, found
    assert of(found, "known", "main", "turns", "thirty", "spin") > 0, found


@pytest.mark.skipif(subprocess.run([*OTHER_PIDS, "true"], capture_output=True).returncode != 0, reason="no pid namespace may be made here")
def test_a_pid_namespace_without_its_proc(world):
    """There threads have other numbers than the kernel gives the program."""
    found, tree = samples(world, *OTHER_PIDS, BUILD / "tests/native", "1")
    assert of(found, "waiter", "waits_outside", "waits_here", "pthread_cond_wait") > 0, found
    if REFUSED in tree:
        pytest.skip("perf_event_open is refused here")
    turns = of(found, "known", "main", "turns")
    rows = world.view("sql", "x", "select sum(case m.name when 'off_cpu_samples' then m.value else -m.value end) from nodes n join metrics m "
                                  "on m.node = n.node where n.path like '%turns%' and m.name in ('off_cpu_samples', 'run_queue_samples')", "--json").stdout
    ((waits,),) = json.loads(rows)["data"]["rows"]
    assert (waits or 0) < turns / 4, "it waits for nothing but a CPU"


def test_a_program_that_does_not_ask(world):
    found, tree = samples(world, BUILD / "tests/native", "1", how="-s cpu")
    assert found and of(found, "turns") == of(found, "waits_here") == 0, found
    assert REFUSED not in tree


def test_where_the_kernel_refuses(world):
    found, tree = samples(world, BUILD / "tests/native", "1", "refuse", how="--native -s overhead")
    assert world.sql("SELECT switches FROM session") == [(16 | 2,)]
    assert of(found, "waiter", "waits_here", "pthread_cond_wait") > 0, "of one that waits nothing is refused"
    assert of(found, "known") > 0, found
    assert REFUSED in tree and "kernel.perf_event_paranoid=2" in tree


@pytest.mark.skipif(not READ, reason="no Python whose frames can be read")
@pytest.mark.parametrize("version", READ)
def test_c_below_python(world, version):
    code = """
        import ctypes, protond, threading, time, zlib
        data = bytes(range(256)) * 4000
        libc = ctypes.CDLL(None)
        def packs(until):
            while time.perf_counter() < until:
                zlib.compress(data, 9)
        def waits(): libc.poll(None, 0, 500)
        with protond.scope("outer"):
            packs(time.perf_counter() + 1.5)
            waits()
    """
    found, tree = samples(world, PYTHONS[version], job(world, code), env=python_env(world))
    deep = {path.split("@", 1)[1]: n for path, n in found.items() if "@packs" in path or "@waits" in path}
    assert any("@waits/" in path and path.endswith("poll") for path in deep), found
    assert not any(name in path for path in deep for name in ("_PyEval_EvalFrameDefault", "Py_RunMain", "_start")), found
    assert REFUSED in tree or any("@packs/" in path and "/deflate" in path for path in deep), found


@pytest.mark.skipif(not READ, reason="no Python whose frames can be read")
def test_short_calls_by_turns(world):
    """Frames of Python and of C are read one after the other: what has changed meanwhile is not put together."""
    code = """
        import hashlib, protond, time, zlib
        data = bytes(range(256)) * 16
        def packs(): zlib.compress(data, 1)
        def hashes(): hashlib.sha256(data).digest()
        with protond.scope("turns"):
            end = time.perf_counter() + 4
            while time.perf_counter() < end:
                packs(), hashes()
    """
    found, tree = samples(world, PYTHONS[READ[-1]], job(world, code), env=python_env(world))
    below = {f: {path.split("@" + f, 1)[1]: n for path, n in found.items() if "@" + f in path} for f in ("packs", "hashes")}
    packs, hashes = ({f: sum(n for path, n in below[f].items() if any(w in path for w in words)) for f in below}
                     for words in (("deflate", "zlib"), ("SHA", "EVP", "_hashlib")))
    right, wrong = packs["packs"] + hashes["hashes"], packs["hashes"] + hashes["packs"]
    assert REFUSED in tree or (right > 0 and wrong <= right / 5 + 2), (packs, hashes)
