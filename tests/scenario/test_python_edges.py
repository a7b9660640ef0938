# SPDX-License-Identifier: MIT. The Python package where a program does what few do.
import math
import signal
import subprocess
import sys
import time

import pytest

from conftest import WAIT
from test_python import CPU, INC, PTY, each_python, job, metrics, program, python_env, ran, record, tree

pytestmark = pytest.mark.preload


# --- the environment ----------------------------------------------------------------------------

@pytest.mark.parametrize("autostart", ["0", "1"])
def test_variables_are_set_while_sessions_start(world, autostart):
    """os.environ is another thread's to change: it moves the table that getenv() looks through."""
    if autostart == "0":
        world.start(PROTOND_AUTO_SESSION="off")
    code = """
        import itertools, os, threading, time, protond
        done = False
        def change():
            for n in itertools.count():
                for i in range(3000):
                    os.environ[f"V{n}_{i}"] = "a value of some length"
                for i in range(3000):
                    del os.environ[f"V{n}_{i}"]
                if done:
                    return
        t = threading.Thread(target=change)
        t.start()
        try:
            for i in range(30):
                protond.finalize(protond.start(f"s{i}", backend="none"), None)
                time.sleep(0.01)
        finally:
            done = True
            t.join()
    """
    for _ in range(4):
        ran(program(world, code, env={"PROTOND_AUTOSTART": autostart}))


# --- decorators ---------------------------------------------------------------------------------

@each_python
def test_profile_of_what_returns_before_it_has_run(world, python):
    world.start(PROTOND_AUTO_SESSION="off")
    ran(program(world, """
        import asyncio, protond
        scope, profile = protond.scope, protond.profile(name="job", backend="none")

        @profile
        async def coroutine(n):
            with scope("coroutine"):
                await asyncio.sleep(0.01 * n)
            with scope("coroutine ends"):
                return n

        @profile
        def generator():
            for i in range(3):
                with scope("generator"):
                    pass
                got = yield i
            return got

        @profile
        async def agen():
            for i in range(3):
                with scope("asynchronous generator"):
                    await asyncio.sleep(0)
                yield i

        @profile
        def recursion(n):
            if n:
                recursion(n - 1)
            with scope("recursion"):
                pass

        async def main():
            assert await asyncio.gather(coroutine(1), coroutine(5)) == [1, 5]
            with scope("not recorded"):
                pass
            async for i in agen():
                with scope("not recorded"):
                    pass
        for i in generator():
            with scope("not recorded"):
                pass
        asyncio.run(main())
        recursion(2)
        with scope("not recorded"):
            pass
        protond.finalize()
    """, python))
    assert tree(world, "job") == {"/coroutine": 2, "/coroutine ends": 2, "/generator": 3,
                                  "/asynchronous generator": 3, "/recursion": 3}


@each_python
def test_decorated_static_and_class_methods(world, python):
    world.start(PROTOND_AUTO_SESSION="off")
    ran(program(world, """
        import protond

        def c(cls, x):
            return cls.__name__, x
        for decorate in protond.scope("m"), protond.cpu_timed_scope("m"), protond.profile(name="job", backend="none"):
            class M:
                static = decorate(staticmethod(abs))
                a = decorate(classmethod(c))
                b = classmethod(decorate(c))
            assert M.static(-1) == M().static(-1) == 1
            assert M.a(1) == M().a(1) == M.b(1) == M().b(1) == ("M", 1)
    """, python))


# --- names and values ---------------------------------------------------------------------------

@each_python
def test_no_name_and_no_number_raises(world, python):
    record(world, r"""
        import protond
        with protond.scope("half \ud800 pair", metrics={"half \ud800": 1, "text (pty)": "\udc80 \udfff \ud800"}):
            pass
        with protond.scope("caf\udcc3\udca9"):       # bytes of a file's name, as Python gives them
            pass
        with protond.scope("big", metrics={"up": 10 ** 400, "down": -10 ** 400}):
            pass
        with protond.scope("long", metrics={"k" * 1023 + "A": 1, "k" * 1023 + "B": 2, "k" * 2000 + "A": 3, "k" * 2000 + "B": 4}):
            pass
        with protond.scope("zero", metrics={"k\0A": 1, "k\0B": 2}):
            pass
    """, python)
    assert tree(world) == {r"/half \ud800 pair": 1, "/café": 1, "/big": 1, "/long": 1, "/zero": 1}
    got = metrics(world)
    half = r"/half \ud800 pair"
    assert got[half, r"half \ud800"] == (INC, 1, 1) and got[half, "text"] == (PTY, r"\udc80 \udfff \ud800", 1)
    assert (got["/big", "up"][1], got["/big", "down"][1]) == (math.inf, -math.inf)
    assert sorted(v[1] for k, v in got.items() if k[0] == "/long") == [1, 2, 3, 4]
    assert sorted(v[1] for k, v in got.items() if k[0] == "/zero") == [1, 2]


@each_python
def test_copies_of_scopes(world, python):
    record(world, """
        import copy, pickle, protond
        class Mine(protond.scope):
            pass
        mine = Mine("mine", {"n": 1})
        mine.colour = "red"
        for s in protond.scope("plain"), protond.scope("full", {"n": [1]}), protond.cpu_timed_scope("timed"), mine:
            with s:
                for c in copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)):
                    assert type(c) is type(s) and (c.name, c.metrics) == (s.name, s.metrics)
                    assert getattr(c, "colour", None) == getattr(s, "colour", None)
            with c:
                pass
    """, python)
    assert tree(world) == {"/plain": 2, "/full": 2, "/timed": 2, "/mine": 2}
    assert metrics(world)["/timed", CPU][2] == 2


# --- interpreters -------------------------------------------------------------------------------

@each_python
def test_a_second_interpreter_is_refused_and_disturbs_nothing(world, python):
    _, got = record(world, """
        import asyncio, sys, protond
        try:
            import _interpreters as interpreters      # 3.13
            make = lambda: interpreters.create("legacy")
        except ImportError:
            import _xxsubinterpreters as interpreters
            make = interpreters.create if sys.version_info < (3, 12) else lambda: interpreters.create(isolated=False)

        async def task():
            with protond.scope("task"):
                await asyncio.sleep(0)

        def all_of_it():
            asyncio.run(task())
            assert protond.scope("function")(abs)(-1) == 1
            with protond.scope("metrics", {"x": [1, 2]}):
                pass
        all_of_it()
        for _ in range(2):
            one = make()
            failed = interpreters.run_string(one, '''if True:
                try:
                    import protond
                except ImportError as e:
                    assert "one interpreter" in str(e), e
                else:
                    raise SystemExit("imported")
            ''')
            assert not failed, failed             # 3.13 returns what others raise
            all_of_it()
            interpreters.destroy(one)
            all_of_it()
        open("over", "w").close()
    """, python)
    assert got == {"/task": 5, "/function": 5, "/metrics": 5}
    assert (world.home / "over").exists()


# --- a daemon that is gone ----------------------------------------------------------------------

@pytest.mark.long
@pytest.mark.parametrize("how, least, most, word", [(signal.SIGKILL, 1.5, 6, "no other one is here"), (signal.SIGSTOP, 9, 14, "10 s")],
                         ids=["killed", "stopped"])
def test_finalize_without_a_daemon_waits_once(world, how, least, most, word):
    """For one of the sessions, and the shorter the surer it is that nobody will answer; the program goes on."""
    world.start(PROTOND_AUTO_SESSION="off")
    p = subprocess.Popen([sys.executable, job(world, """
        import time, protond
        for i in range(4):
            protond.start(f"s{i}", backend="none", data="trace" if i and SLOW else "tree")
        protond.data.advance_phase(0)
        input("up\\n")
        begin = time.monotonic()
        try:
            protond.finalize()
        except protond.Error as e:
            print(time.monotonic() - begin, e)
    """.replace("SLOW", str(how == signal.SIGKILL)))], env=python_env(world, PROTOND_AUTOSTART="0"), cwd=world.home,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "up\n"
        world.daemon.send_signal(how)
        if how == signal.SIGKILL:
            world.daemon.wait(WAIT)
            world.daemon = None
        seconds, words = p.communicate("\n", WAIT)[0].split(" ", 1)
    finally:
        p.kill()
        if world.daemon is not None:
            world.daemon.send_signal(signal.SIGCONT)
    assert least < float(seconds) < most and word in words, (seconds, words)


@pytest.mark.long
def test_finalize_is_interrupted_by_signals(world):
    """Ctrl-C ends the wait at once; a handler that returns does not, nor does it begin anew."""
    world.start(PROTOND_AUTO_SESSION="off")
    p = subprocess.Popen([sys.executable, job(world, """
        import signal, time, protond
        ticks = []
        signal.signal(signal.SIGALRM, lambda *a: ticks.append(protond.recording()))
        def wait(session):
            begin = time.monotonic()
            try:
                protond.finalize(session)
            except protond.Error as e:
                print("Error", time.monotonic() - begin, len(ticks), flush=True)
            except KeyboardInterrupt:
                print("KeyboardInterrupt", time.monotonic() - begin, len(ticks), flush=True)
        one, two, three = (protond.start(name, backend="none") for name in ("one", "two", "three"))
        input("up\\n")
        wait(one)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        wait(two)
        input("down\\n")
        wait(three)
        again = protond.start("one", backend="none")
        with protond.scope("again"):
            pass
        wait(again)
    """)], env=python_env(world, PROTOND_AUTOSTART="0"), cwd=world.home,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def told():
        word, seconds, ticks = p.stdout.readline().split()
        return word, float(seconds), int(ticks)
    try:
        assert p.stdout.readline() == "up\n"
        world.daemon.send_signal(signal.SIGSTOP)
        print(file=p.stdin, flush=True)
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        word, seconds, _ = told()
        assert word == "KeyboardInterrupt" and seconds < 4
        word, seconds, ticks = told()
        assert word == "Error" and 9 < seconds < 14 and ticks > 50
        assert p.stdout.readline() == "down\n"
        world.daemon.send_signal(signal.SIGCONT)
        assert p.communicate("\n", WAIT)[0] == ""
    finally:
        p.kill()
        world.daemon.send_signal(signal.SIGCONT)
    assert (world.home / "three.hatchet").exists() and "again" in (world.home / "one.hatchet").read_text()


# --- words, and what is built -------------------------------------------------------------------

@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full", "2> >(:)", "2>/dev/null"])
def test_words_that_nobody_can_read(world, stderr):
    """The program imports a module whose names cannot be had, and ends as it would without us."""
    file = job(world, """
        import os
        from protond import _watch
        _watch.when_imported("wave", lambda module: 1 / 0)
        import wave
        print("goes on")
    """)
    r = subprocess.run(["bash", "-c", f'"$@" {stderr}', "sh", sys.executable, file], env=python_env(world), cwd=world.home,
                       stdout=subprocess.PIPE, text=True, timeout=WAIT)
    assert (r.returncode, r.stdout) == (0, "goes on\n")


def test_one_that_builds_may_be_stopped(world):
    """Whoever waits for it does so for as long as a build may last."""
    out = ran(program(world, """
        import fcntl, os, types
        from protond import _built
        _built._BUILD_S = 0
        part = _built.Part("ops", "ops.cpp", (), (), False, "what sees operators")
        other = open("lock", "w")
        fcntl.flock(other, fcntl.LOCK_EX)
        try:
            _built._build(types.SimpleNamespace(__version__="2"), part, ".", "./ops.so")
        except _built.Lacking as e:
            print(e)
    """))
    assert "another process has been building what sees operators for 0 s: end it" in out
