# SPDX-License-Identifier: MIT. The Python package where a program does what few do.
import textwrap

import pytest

from test_python import each_python, metrics, program, ran, tree

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
