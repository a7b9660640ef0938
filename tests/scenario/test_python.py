# SPDX-License-Identifier: MIT. The Python package: scopes, tasks, sessions, on every interpreter that is here.
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

from conftest import BUILD, WAIT, until

# Under a sanitizer the library cannot be loaded by a Python that was built without it.
pytestmark = pytest.mark.preload

PACKAGE = BUILD / "lib/protond/python"
STANDIN = pathlib.Path(__file__).parent / "standin"


def interpreters():
    """{"3.8": path}: one of each CPython that the package is for."""
    names = [sys.executable, *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python"))),
             *filter(None, (shutil.which(f"python3.{minor}") for minor in range(8, 20)))]
    ask = ("import sys, sysconfig; print('%d.%d' % sys.version_info[:2] if sys.implementation.name == 'cpython' and"
           " sys.version_info >= (3, 8) and not sysconfig.get_config_var('Py_GIL_DISABLED') else '')")
    found = {}
    for name in names:
        r = subprocess.run([name, "-c", ask], capture_output=True, text=True)
        if r.returncode == 0 and r.stdout.strip():
            found.setdefault(r.stdout.strip(), name)
    return found


def older():
    """{"2.7": path}: interpreters that are too old, and must not be disturbed."""
    names = {v: glob.glob(os.path.expanduser(f"~/.pyenv/versions/{v}.*/bin/python")) for v in ("2.7", "3.6", "3.7")}
    return {v: paths[0] for v, paths in names.items() if paths}


PYTHONS, OLDER = interpreters(), older()
each_python = pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())


def job(world, code, name="job.py"):
    path = world.home / name
    path.write_text(textwrap.dedent(code))
    return path


def python_env(world, *paths, **more):
    return {**world.env, "PYTHONPATH": os.pathsep.join(map(str, (PACKAGE, *paths))),
            "PYTHONDONTWRITEBYTECODE": "1", **more}


def record(world, code, python=sys.executable, name="s", hook="none", paths=(), env={}):
    """Runs a program under `protonctl run`; what it wrote, and {path: count} of what it was in."""
    r = world.ctl("run", "-n", name, "-b", "none", "-k", hook, "--", python, job(world, code),
                  env=python_env(world, *paths, **env))
    return r, tree(world, name)


def tree(world, name="s"):
    """{path: how often}; -1 for what was never left."""
    return {k: v[0] or -v[2] for k, v in world.cells(name).items() if v[0] or v[2]}


def metrics(world, name="s"):
    """{(path, metric): (kind, value, count)}, merged over processes."""
    rows = world.sql(
        "WITH RECURSIVE p(id, path) AS (SELECT id, '' FROM node WHERE parent = 0 UNION ALL"
        " SELECT n.id, p.path || '/' || n.name FROM node n JOIN p ON n.parent = p.id)"
        " SELECT p.path, m.name, m.kind, m.value, m.count FROM metric m JOIN p ON p.id = m.node"
        " JOIN session s ON s.id = m.session WHERE s.name = ?", name)
    return {r[:2]: r[2:] for r in rows}


INC, EXC, PTY = 0, 1, 2
CPU = "cpu_time (ns)"


# --- scopes on threads --------------------------------------------------------------------------

@each_python
def test_scopes_nest_and_may_be_used_again(world, python):
    _, got = record(world, """
        import protond
        with protond.scope("a") as a:
            assert a.name == "a" and a.metrics is None and protond.depth() == 1
            with protond.scope("b"):
                pass
            with protond.scope(name="b", metrics=None):
                pass
        s = protond.scope("s")
        with s:
            with s:
                assert protond.depth() == 2
        with s:
            pass
        with protond.scope("gr\\u00fc\\u00dfe \\U0001f600"), protond.scope("bytes \\udcff"), protond.scope(""):
            pass
        assert protond.depth() == 0
    """, python)
    odd = "/gr\u00fc\u00dfe \U0001f600"
    assert got == {"/a": 1, "/a/b": 2, "/s": 2, "/s/s": 1, odd: 1, odd + "/bytes \ufffd": 1,
                   odd + "/bytes \ufffd/": 1}


@each_python
def test_decorator_recursion_and_threads(world, python):
    _, got = record(world, """
        import threading, protond

        @protond.scope("fib")
        def fib(n):
            "doc"
            return n if n < 2 else fib(n - 1) + fib(n - 2)

        assert fib(4) == 3 and fib.__name__ == "fib" and fib.__doc__ == "doc"
        both = threading.Barrier(2)

        @protond.scope("chore")
        def chore(i):
            both.wait()
            with protond.scope("part"):
                both.wait()
            assert protond.depth() == 1

        ts = [threading.Thread(target=chore, args=(i,)) for i in range(2)]
        [t.start() for t in ts], [t.join() for t in ts]

        class Holder:
            @protond.scope("method")
            def method(self, x, *, y):
                return (self, x, y)

            @classmethod
            @protond.scope("class method")
            def build(cls):
                return cls

        h = Holder()
        assert h.method(1, y=2) == (h, 1, 2) and Holder.build() is Holder
    """, python)
    assert got == {"/fib": 1, "/fib/fib": 2, "/fib/fib/fib": 4, "/fib/fib/fib/fib": 2, "/chore": 2, "/chore/part": 2,
                   "/method": 1, "/class method": 1}


@each_python
def test_exceptions_leave_scopes(world, python):
    _, got = record(world, """
        import protond
        error = KeyError("mine")
        try:
            with protond.scope("outer"):
                with protond.scope("inner"):
                    raise error
        except KeyError as e:
            assert e is error
        @protond.scope("raises")
        def f():
            raise error
        try:
            f()
        except KeyError as e:
            assert e is error
        for wrong in (lambda: protond.scope(), lambda: protond.scope(5), lambda: protond.scope("x", 5),
                      lambda: protond.scope("x", {}, 1), lambda: protond.scope("x")(1, 2),
                      lambda: protond.scope(None), lambda: protond.enter_scope(5), lambda: protond.enter_state(5.0)):
            try:
                wrong()
            except TypeError as e:
                assert str(e)
            else:
                raise SystemExit("no TypeError")
        class Item:
            def item(self):
                raise error
        for metrics in ({"m": Item()}, {"m": object()}, {5: 1}):
            try:
                with protond.scope("wrong metric", metrics):
                    raise SystemExit("entered")
            except (KeyError, TypeError):
                pass
            try:
                protond.enter_scope("wrong metric", metrics=metrics)
            except (KeyError, TypeError):
                pass
            protond.enter_scope("wrong at exit")
            try:
                protond.exit_scope(metrics=metrics)
            except (KeyError, TypeError):
                pass
        assert protond.depth() == 0
        with protond.scope("after"):
            pass
    """, python)
    assert got == {"/outer": 1, "/outer/inner": 1, "/raises": 1, "/wrong metric": 6, "/wrong at exit": 3, "/after": 1}


@each_python
def test_metrics(world, python):
    record(world, """
        import protond

        class Number:
            def __init__(self, n):
                self.n = n
            def item(self):
                return self.n

        class Clears(Number):
            def item(self):
                metrics.clear()
                return self.n

        for i in range(3):
            with protond.scope("a", metrics={"n": 2, "x": 0.5, "bytes": 1 << 70, "e (exc)": 4, "last (pty)": i,
                                             "kind (pty)": "fast", "true": True, "np": Number(3), "np32": Number(1.5)}):
                with protond.scope("b", {"n": -5}):
                    pass
        metrics = {"one": Clears(1), "two": 2}
        with protond.scope("cleared", metrics):
            pass
        with protond.scope("long", {"m" * 2000: 1}):
            pass

        @protond.scope("f", {"calls": 1})
        def f():
            pass
        f(), f()
    """, python)
    got = metrics(world)
    long = [k for k in got if k[0] == "/long"]
    assert len(long) == 1 and long[0][1].startswith("m" * 500)
    assert {k: v for k, v in got.items() if k not in long} == {
        ("/a", "n"): (INC, 6, 3), ("/a", "x"): (INC, 1.5, 3), ("/a", "bytes"): (INC, 3.0 * (1 << 70), 3),
        ("/a", "e"): (EXC, 12, 3), ("/a", "last"): (PTY, 2, 3), ("/a", "kind"): (PTY, "fast", 3),
        ("/a", "true"): (INC, 3, 3), ("/a", "np"): (INC, 9, 3), ("/a", "np32"): (INC, 4.5, 3),
        ("/a/b", "n"): (INC, -15, 3), ("/cleared", "one"): (INC, 1, 1), ("/f", "calls"): (INC, 2, 2)}


@each_python
def test_cpu_timed_scope(world, python):
    _, got = record(world, """
        import threading, protond

        @protond.cpu_timed_scope("f")
        def f(n):
            if n == 0:
                raise KeyError
            f(n - 1)

        for _ in range(2):
            try:
                f(2)
            except KeyError:
                pass
        with protond.cpu_timed_scope("with", metrics={"n": 1}) as s:
            assert s.name == "with"
        try:
            protond.cpu_timed_scope("x", {"cpu_time": 1})
        except ValueError as e:
            assert str(e) == "The metric name 'cpu_time' is reserved."
        else:
            raise SystemExit("accepted")
        s = protond.cpu_timed_scope("elsewhere")
        s.__enter__()
        t = threading.Thread(target=s.__exit__, args=(None, None, None))
        t.start(), t.join()
        s.__exit__(None, None, None)
        s.__exit__(None, None, None)
    """, python)
    assert got == {"/f": 2, "/f/f": 2, "/f/f/f": 2, "/with": 1, "/elsewhere": 1}
    m = metrics(world)
    assert {k: (v[0], v[2]) for k, v in m.items()} == {
        ("/f", CPU): (EXC, 2), ("/f/f", CPU): (EXC, 2), ("/f/f/f", CPU): (EXC, 2),
        ("/with", CPU): (EXC, 1), ("/with", "n"): (INC, 1), ("/elsewhere", CPU): (EXC, 1)}
    times = [m["/f" * n, CPU][1] for n in (1, 2, 3)]
    assert times == sorted(times, reverse=True) and times[2] > 0
    cells = world.cells("s")
    assert all(m[path, CPU][1] <= cells[path][1] for path in ("/f", "/f/f", "/with"))


@each_python
def test_enter_and_exit_scope(world, python):
    _, got = record(world, """
        import threading, protond
        a = protond.enter_scope("a", metrics={"in": 1})
        b = protond.enter_scope("b")
        assert (a, b) == (0, 1)
        assert protond.exit_scope("b", metrics={"out": 2}) == b and protond.exit_scope() == a
        assert protond.enter_scope("c") == 2

        def other():
            try:
                protond.exit_scope()
            except IndexError as e:
                assert "no scope was entered" in str(e), e
                seen.append(1)
        seen = []
        t = threading.Thread(target=other)
        t.start(), t.join()
        assert seen
        try:
            protond.exit_scope("d")
        except ValueError as e:
            assert str(e) == "Scope name mismatch: d != c", e
        else:
            raise SystemExit("left")
        assert protond.depth() == 0
        try:
            protond.exit_scope()
        except IndexError:
            pass
        else:
            raise SystemExit("left")
        with protond.scope("after"):
            pass
    """, python)
    assert got == {"/a": 1, "/a/b": 1, "/c": 1, "/after": 1}
    assert metrics(world) == {("/a", "in"): (INC, 1, 1), ("/a/b", "out"): (INC, 2, 1)}


@each_python
def test_state(world, python):
    _, got = record(world, """
        import protond

        def put(n):
            with protond.scope("s", {"n": n}):
                pass
        with protond.scope("a"):
            with protond.state("outer"):
                put(1)
                with protond.state("inner") as s:
                    assert s.name == "inner"
                    put(2)
                put(4)
            put(8)

        @protond.state("called")
        def f(n):
            put(n)
            return n
        assert f(16) == 16
        try:
            with protond.state("raises"):
                raise KeyError
        except KeyError:
            pass
        put(32)
        protond.enter_state("by hand")
        put(64)
        protond.exit_state()
        protond.exit_state()
        put(128)
    """, python)
    assert {k: v for k, v in got.items() if v} == {"/a": 1, "/a/s": 4, "/s": 4}
    assert {k[0]: v[1] for k, v in metrics(world).items()} == {
        "/a/s/outer": 1 + 4, "/a/s/inner": 2, "/a/s": 8, "/s/called": 16, "/s": 32 + 128, "/s/by hand": 64}


@each_python
def test_context_on_other_threads(world, python):
    _, got = record(world, """
        import threading, protond

        def work(context):
            protond.context_set(context)
            with protond.scope("work"):
                pass
            protond.context_set(0)
        with protond.scope("request"):
            context = protond.context_get()
        with protond.scope("elsewhere"):
            t = threading.Thread(target=work, args=(context,))
            t.start(), t.join()
        for wrong in (-1, 1 << 64):
            try:
                protond.context_set(wrong)
            except OverflowError:
                pass
            else:
                raise SystemExit("accepted")
        try:
            protond.context_set("x")
        except TypeError:
            pass
    """, python)
    assert got == {"/request": 1, "/request/work": 1, "/elsewhere": 1}


LEAKS = """
    import asyncio, copy, gc, sys, protond
    from protond import _native as native
    N = 3000
    SLACK = 300  # the table of names holds on to some

    class Item:
        def item(self):
            return [0.25][0] * 3

    class Fails:
        def item(self):
            raise KeyError

    class Mine(protond.scope):
        pass

    class Module:
        pass

    class Odd:
        def __getattr__(self, name):
            return [name]

    class Refuses:
        def __getattr__(self, name):
            raise KeyError(name)

    name = "".join(["na", "me"])
    metrics = {"n": 1, "x": 0.5, "t (pty)": "text", "big": 1 << 70, "item": Item()}
    reused, module, loop = protond.scope(name), Module(), asyncio.new_event_loop()
    native.install_modules(lambda module, outermost: name, lambda module: None)

    @protond.scope(name)
    def generator():
        yield 1

    async def task():
        with protond.scope(name), reused:
            await asyncio.sleep(0)

    def inside(cls, *args):
        with cls(*args):
            pass

    def module_call(module):
        native.module_leave(native.module_enter(module))

    def numbered():
        protond.enter_scope(name, metrics=metrics)
        protond.exit_scope(metrics=metrics)

    def swallowed(f, *args):
        try:
            f(*args)
        except Exception:
            return
        raise SystemExit("no error: %r%r" % (f, args))

    good = [(inside, protond.scope, name), (inside, protond.scope, name, metrics), (inside, Mine, name),
            (inside, lambda: reused), (inside, protond.cpu_timed_scope, name), (inside, protond.state, name),
            (inside, lambda: protond.scope(name="x" * 3000)), (protond.scope(name)(len), ()), (list, generator()),
            (lambda: list(generator()),), (numbered,), (module_call, module), (lambda: module_call(Module()),),
            (module_call, Odd()), (module_call, Refuses()), (lambda: (reused.name, reused.metrics),),
            (lambda: native.span_end(native.context_child(0, 7), native.span_begin()),), (copy.copy, reused),
            (inside, lambda: protond.scope("\\ud800", {"m": 10 ** 400, "\\udfff": "\\ud800"}))]
    wrong = [(protond.scope,), (protond.scope, 5), (protond.scope, "x", 5),
             (protond.scope("x", {5: 1}).__enter__,), (protond.scope("x", {"m": Fails()}).__enter__,),
             (protond.scope("x", {"m": object()}).__enter__,), (reused, 1, 2), (native.enter, 2.0),
             (native.name, None), (native.metrics, 5), (native.context_set, "x"), (native.context_child, 1), (native.start,),
             (native.unwind, "x"), (native.module_leave, "x"), (protond.activate, 77), (native.install, 1)]
    calls = good + [(swallowed, *call) for call in wrong]
    calls.append((lambda: loop.run_until_complete(task()),))
    leaks = []
    for f, *args in calls:
        for _ in range(30):
            f(*args)
        gc.collect()
        before = sys.getallocatedblocks(), sys.getrefcount(name), sys.getrefcount(protond.scope)
        for _ in range(N):
            f(*args)
        gc.collect()
        after = sys.getallocatedblocks(), sys.getrefcount(name), sys.getrefcount(protond.scope)
        if any(abs(a - b) > SLACK for a, b in zip(before, after)):
            leaks.append((f, args, before, after))
    assert not leaks, leaks
"""


@each_python
def test_nothing_is_leaked(world, python):
    """Neither blocks of memory nor references, by what succeeds and by what fails."""
    record(world, LEAKS, python)


@each_python
def test_a_scope_is_entered_by_its_methods_and_by_with_only(world, python):
    """`with` reaches a scope by a shorter way than a bound method's: see native_scope.c."""
    _, got = record(world, """
        import contextlib, protond

        class Named(protond.scope):
            def __call__(self, *args):
                return "called", args

        class Counted(protond.scope):
            def __enter__(self):
                self.entered = protond.depth()
                return super().__enter__()

            def __exit__(self, *why):
                self.left = protond.depth()
                return super().__exit__(*why)

        def fails(f, *args, **names):
            try:
                f(*args, **names)
            except TypeError:
                return protond.depth() == 0
        s = protond.scope("never")
        assert callable(s) and fails(s) and fails(s, 1, 2) and fails(s, None, None, None) and fails(s, func=len)
        assert fails(Named.__enter__, 5) and fails(protond.scope.__exit__) and fails(vars(protond.scope)["__enter__"].__get__, 5)
        assert fails(type(vars(protond.scope)["__exit__"])(), 5)
        with contextlib.ExitStack() as stack:
            assert stack.enter_context(protond.scope("stack")).name == "stack" and protond.depth() == 1
        by_hand = protond.scope("hand")
        assert by_hand.__enter__() is by_hand and protond.depth() == 1
        by_hand.__exit__(None, None, None)
        protond.scope.__enter__(by_hand)
        protond.scope.__exit__(by_hand, None, None, None)
        with Named("derived") as d:
            assert protond.depth() == 1 and d(1, 2, 3) == ("called", (1, 2, 3)) and d() == ("called", ())
        with Counted("counted") as c:
            assert protond.depth() == 1
        assert (c.entered, c.left) == (0, 1) and fails(c) and fails(c, 1, 2, 3)
        with protond.scope("outside") as o:
            assert o(len)([1]) == 1
        try:
            with protond.scope("raises"):
                raise KeyError
        except KeyError:
            assert protond.depth() == 0
    """, python)
    assert got == {"/stack": 1, "/hand": 2, "/derived": 1, "/counted": 1, "/outside": 1, "/outside/outside": 1, "/raises": 1}


# --- generators ---------------------------------------------------------------------------------

GENERATORS = """
    import gc, inspect, sys, weakref, protond

    def body(log):
        try:
            log.append(("sent", (yield 1)))
            try:
                log.append(("sent", (yield 2)))
            except KeyError as e:
                log.append(("thrown", repr(e)))
                log.append(("sent", (yield 3)))
        except GeneratorExit:
            log.append("asked to close")
            return "closed"
        finally:
            log.append("finally")
        return "end"

    def refuses(log):
        while True:
            try:
                yield 1
            except GeneratorExit:
                log.append("no")
                yield 2
                return

    def outer(log):
        log.append((yield from body(log)))

    def tell(log, call, *args):
        try:
            log.append(call(*args))
        except BaseException as e:
            log.append((type(e).__name__, str(e), getattr(e, "value", None)))

    def probe(decorate):
        log = []
        for f in (body, outer):
            f = decorate(f)
            assert inspect.isgeneratorfunction(f)
            for calls in (["next"] * 5, ["next", ("send", "x"), ("send", "y"), ("send", "z")],
                          ["next", "next", ("throw", KeyError(7)), "next", "next"],
                          ["next", ("throw", ValueError("not caught")), "next"],
                          [("throw", ValueError("early")), "next"], [("send", 1), "next"],
                          ["next", "close", "next", "close"], ["close", "next"],
                          ["next", ("throw", GeneratorExit()), "next"],
                          ["next", ("throw", StopIteration(1)), "next"]):
                log.append(repr(calls))
                g = f(log)
                for c in calls:
                    if c == "next":
                        tell(log, next, g)
                    elif c == "close":
                        tell(log, g.close)
                    else:
                        tell(log, getattr(g, c[0]), c[1])
        g = decorate(refuses)(log)
        next(g)
        tell(log, g.close)
        g = decorate(refuses)(log)
        next(g)
        tell(log, g.throw, GeneratorExit)
        g = decorate(body)(log)
        next(g)
        del g
        gc.collect()
        return log

    plain, ours = probe(lambda f: f), probe(protond.scope("g"))
    for a, b in zip(plain, ours):
        assert a == b, (a, b)
    assert len(plain) == len(ours) > 60
    assert protond.depth() == 0

    class Big:
        pass

    class Mine(Exception):
        pass

    @protond.scope("big")
    def bigs():
        while True:
            yield Big()
    g = bigs()
    ref = weakref.ref(next(g))
    assert ref() is None, "what was given is held on to"
    error = Mine()
    ref = weakref.ref(error)
    gc.disable()
    try:
        g.throw(error)
    except Mine:
        pass
    del error
    assert ref() is None, "an error is part of a cycle"
"""


@each_python
def test_decorated_generators_are_as_undecorated(world, python):
    record(world, GENERATORS, python)


@each_python
def test_scopes_of_generators_and_their_consumers(world, python):
    _, got = record(world, """
        import protond

        @protond.scope("make")
        def decorated():
            for i in range(2):
                with protond.scope("item"):
                    pass
                yield i

        for i in decorated():
            with protond.scope("use"):
                pass

        def inside():
            with protond.scope("file"):
                for i in range(2):
                    yield i

        for i in inside():
            with protond.scope("line"):
                pass
        g = inside()
        next(g)
        g.close()
        a, b = decorated(), decorated()
        for _ in zip(a, b):
            with protond.scope("both"):
                pass
        assert protond.depth() == 0
    """, python)
    assert got == {"/make": 3 + 3 + 3, "/make/item": 2 + 2 + 2, "/use": 2, "/file": 2, "/file/line": 2, "/both": 2}


# --- asyncio ------------------------------------------------------------------------------------

PARALLEL = """
    import asyncio, protond

    async def worker(name, n):
        with protond.scope(name):
            for _ in range(n):
                with protond.scope("step", metrics={"n": 1}):
                    await asyncio.sleep(0)
            await deep(2)

    @protond.scope("deep")
    async def deep(n):
        await asyncio.sleep(0)
        return await deep(n - 1) if n else None

    async def main():
        with protond.scope("main"):
            await asyncio.gather(worker("a", 3), worker("b", 2), worker("b", 2))

    with protond.scope("program"):
        asyncio.run(main())
        with protond.scope("after"):
            pass
    assert protond.depth() == 0
"""
PARALLEL_TREE = {"/program/main" + k: v for k, v in {
    "": 1, "/a": 1, "/a/step": 3, "/b": 2, "/b/step": 4, "/a/deep": 1, "/a/deep/deep": 1, "/a/deep/deep/deep": 1,
    "/b/deep": 2, "/b/deep/deep": 2, "/b/deep/deep/deep": 2}.items()}


@pytest.mark.parametrize("debug", ["", "1"], ids=["", "debug"])
@each_python
def test_tasks_in_parallel(world, python, debug):
    r, got = record(world, PARALLEL, python, env={"PYTHONASYNCIODEBUG": debug})
    assert got == {**PARALLEL_TREE, "/program": 1, "/program/after": 1}
    assert {k: v[1] for k, v in metrics(world).items()} == {
        ("/program/main/a/step", "n"): 3, ("/program/main/b/step", "n"): 4}
    cells = world.cells("s")
    assert cells["/program/main"][1] >= cells["/program/main/a"][1] >= cells["/program/main/a/step"][1] > 0


@each_python
def test_tasks_begin_where_their_maker_was(world, python):
    _, got = record(world, """
        import asyncio, sys, protond

        async def child(name="child"):
            with protond.scope(name):
                await asyncio.sleep(0)

        async def main():
            with protond.scope("spawn"):
                early = asyncio.ensure_future(child())
                late = asyncio.get_running_loop().create_future()
                with protond.scope("deeper"):
                    asyncio.get_running_loop().call_soon(called, late)
            await early
            await late
            with protond.scope("group"):
                if sys.version_info >= (3, 11):
                    async with asyncio.TaskGroup() as group:
                        group.create_task(child("member")), group.create_task(child("member"))
                else:
                    await asyncio.gather(child("member"), child("member"))
            await child("after")

        def called(future):
            with protond.scope("callback"):
                future.set_result(None)

        asyncio.run(main())
        asyncio.run(child("second run"))
    """, python)
    assert got == {"/spawn": 1, "/spawn/child": 1, "/spawn/deeper": 1, "/spawn/deeper/callback": 1, "/group": 1,
                   "/group/member": 2, "/after": 1, "/second run": 1}


@each_python
def test_a_task_that_makes_its_own_successor_stays_where_it_is(world, python):
    """Each begins inside the scope of the one before, which has ended: the tree would grow with time."""
    _, got = record(world, """
        import asyncio, protond

        async def main():
            loop = asyncio.get_running_loop()
            done = loop.create_future()

            def tick(n):
                with protond.scope("tick"):
                    if n == 0:
                        done.set_result(None)
                    else:
                        loop.call_soon(tick, n - 1)
                    with protond.scope("inner"):
                        pass
            tick(300)
            await done

            async def ping(n):
                with protond.scope("ping"):
                    if n:
                        asyncio.ensure_future(pong(n - 1))
                    else:
                        over.set_result(None)

            async def pong(n):
                with protond.scope("pong"):
                    asyncio.ensure_future(ping(n))
            over = loop.create_future()
            await ping(300)
            await over
        asyncio.run(main())
    """, python)
    assert got == {"/tick": 301, "/tick/inner": 301, "/ping": 301, "/ping/pong": 300}


@each_python
def test_tasks_that_fail_or_are_cancelled(world, python):
    _, got = record(world, """
        import asyncio, protond

        async def fails():
            with protond.scope("fails"):
                await asyncio.sleep(0)
                raise KeyError

        @protond.scope("waits")
        async def waits(begun):
            with protond.scope("inner"):
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    with protond.scope("cleaned"):
                        await asyncio.sleep(0)

        async def main():
            begun = asyncio.Event()
            task = asyncio.ensure_future(waits(begun))
            with protond.scope("gathered"):
                results = await asyncio.gather(fails(), fails(), return_exceptions=True)
                assert [type(r) for r in results] == [KeyError] * 2
            await begun.wait()
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                pass
            else:
                raise SystemExit("not cancelled")
            with protond.scope("timeout"):
                try:
                    await asyncio.wait_for(waits(begun), 0.001)
                except asyncio.TimeoutError:
                    pass
            with protond.scope("after"):
                pass

        asyncio.run(main())
        try:
            asyncio.run(fails())
        except KeyError:
            pass
        with protond.scope("outside"):
            pass
        assert protond.depth() == 0
    """, python)
    assert got == {"/gathered": 1, "/gathered/fails": 2, "/waits": 1, "/waits/inner": 1, "/waits/inner/cleaned": 1,
                   "/timeout": 1, "/timeout/waits": 1, "/timeout/waits/inner": 1, "/timeout/waits/inner/cleaned": 1,
                   "/after": 1, "/fails": 1, "/outside": 1}


@each_python
def test_executors_work_where_their_task_is(world, python):
    """Also when the loop's thread is somewhere else by the time that they begin."""
    _, got = record(world, """
        import asyncio, concurrent.futures, sys, threading, protond
        elsewhere, worked = threading.Event(), threading.Event()

        def work(x, *, y=0):
            elsewhere.wait()
            with protond.scope("work"):
                worked.set()
            return x + y

        async def other():
            with protond.scope("other"):
                elsewhere.set()
                worked.wait()
                elsewhere.clear(), worked.clear()

        async def main():
            loop = asyncio.get_running_loop()
            pool = concurrent.futures.ThreadPoolExecutor(1)
            for executor in (None, pool):
                with protond.scope("ask"):
                    assert (await asyncio.gather(loop.run_in_executor(executor, work, 7), other()))[0] == 7
            if sys.version_info >= (3, 9):
                with protond.scope("thread"):
                    assert (await asyncio.gather(asyncio.to_thread(work, 1, y=2), other()))[0] == 3
            else:
                with protond.scope("thread"):
                    assert (await asyncio.gather(loop.run_in_executor(None, work, 3), other()))[0] == 3
            with concurrent.futures.ProcessPoolExecutor(1) as processes:
                with protond.scope("process"):
                    assert await loop.run_in_executor(processes, divmod, 7, 2) == (3, 1)
            class Mine(concurrent.futures.Executor):
                def submit(self, function, *args):
                    assert function is divmod  # it may have to be pickled
                    future = concurrent.futures.Future()
                    future.set_result(function(*args))
                    return future
            with protond.scope("mine"):
                assert await loop.run_in_executor(Mine(), divmod, 7, 2) == (3, 1)
            pool.shutdown()
        asyncio.run(main())
    """, python)
    assert got == {"/ask": 2, "/ask/work": 2, "/ask/other": 2, "/thread": 1, "/thread/work": 1, "/thread/other": 1,
                   "/process": 1, "/mine": 1}


@each_python
def test_threads_that_follow_do_not_stay_in_a_task_that_waits(world, python):
    _, got = record(world, """
        import asyncio, threading, protond

        def plain():
            with protond.scope("plain"):
                pass

        async def other():
            t = threading.Thread(target=plain)
            t.start(), t.join()

        async def main():
            task = asyncio.ensure_future(other())
            with protond.scope("waits"):
                await task
        asyncio.run(main())
        with protond.scope("program"):
            asyncio.run(main())
    """, python)
    assert got == {"/waits": 1, "/plain": 1, "/program": 1, "/program/waits": 1, "/program/plain": 1}


@each_python
def test_contexts_run_inside_tasks(world, python):
    _, got = record(world, """
        import asyncio, contextvars, protond

        def inner():
            with protond.scope("inner"):
                pass

        async def main():
            with protond.scope("outer"):
                context = contextvars.copy_context()
                context.run(inner)
                with protond.scope("next"):
                    pass
            context.run(inner)
            with protond.scope("after"):
                await asyncio.sleep(0)
        asyncio.run(main())
        contextvars.copy_context().run(inner)
    """, python)
    assert got == {"/outer": 1, "/outer/inner": 2, "/outer/next": 1, "/after": 1, "/inner": 1}


@each_python
def test_scopes_left_by_another_task(world, python):
    _, got = record(world, """
        import asyncio, protond
        handed, shared = protond.scope("handed"), protond.scope("shared")

        async def enter():
            handed.__enter__()
            await asyncio.sleep(0)

        async def leave(scope):
            scope.__exit__(None, None, None)
            with protond.scope("left"):
                await asyncio.sleep(0)

        async def main():
            await asyncio.ensure_future(enter())
            await asyncio.ensure_future(leave(handed))  # it never was in it
            with shared:
                await asyncio.ensure_future(leave(shared))  # it began in it
            with protond.scope("after"):
                pass
        asyncio.run(main())
        with protond.scope("outside"):
            pass
        assert protond.depth() == 0
    """, python)
    assert got == {"/left": 2, "/shared": 1, "/after": 1, "/outside": 1}


@each_python
def test_loops_of_several_threads(world, python):
    _, got = record(world, """
        import asyncio, threading, protond
        both = threading.Barrier(2)

        async def work(name):
            with protond.scope(name):
                for _ in range(3):
                    both.wait()
                    with protond.scope("part"):
                        await asyncio.sleep(0)
        t = threading.Thread(target=lambda: asyncio.run(work("second")))
        t.start()
        asyncio.run(work("first"))
        t.join()
        def plain():
            with protond.scope("plain"):
                with protond.scope("thread"):
                    pass
        t = threading.Thread(target=plain)
        t.start(), t.join()
    """, python)
    assert got == {"/first": 1, "/first/part": 3, "/second": 1, "/second/part": 3, "/plain": 1, "/plain/thread": 1}


@each_python
def test_imported_while_a_loop_runs(world, python):
    _, got = record(world, """
        import asyncio

        async def work(protond, name):
            with protond.scope(name):
                for _ in range(2):
                    await asyncio.sleep(0)
                    with protond.scope("part"):
                        await asyncio.sleep(0)

        async def main():
            import protond
            with protond.scope("main"):
                await asyncio.gather(work(protond, "a"), work(protond, "b"))
        asyncio.run(main())
    """, python)
    assert got == {"/main": 1, "/main/a": 1, "/main/a/part": 2, "/main/b": 1, "/main/b/part": 2}


@pytest.mark.skipif("3.12" not in PYTHONS, reason="no Python 3.12 here: it has eager tasks")
def test_eager_tasks(world):
    _, got = record(world, """
        import asyncio, protond

        async def child():
            with protond.scope("child"):
                await asyncio.sleep(0)

        async def main():
            asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
            protond.enter_scope("maker")
            task = asyncio.create_task(child())
            protond.exit_scope(metrics={"n": 1})
            await task
            async with asyncio.TaskGroup() as group:
                group.create_task(child())
                with protond.scope("beside"):
                    pass
        asyncio.run(main())
    """, PYTHONS["3.12"])
    assert got == {"/maker": 1, "/maker/child": 1, "/child": 1, "/beside": 1}
    assert metrics(world) == {("/maker", "n"): (INC, 1, 1)}


@each_python
def test_asynchronous_generators_are_as_undecorated(world, python):
    r, got = record(world, """
        import asyncio, inspect, protond

        def make(decorate, log):
            @decorate
            async def body():
                try:
                    log.append(("sent", (yield 1)))
                    await asyncio.sleep(0)
                    try:
                        log.append(("sent", (yield 2)))
                    except KeyError as e:
                        log.append(("thrown", repr(e)))
                        log.append(("sent", (yield 3)))
                finally:
                    await asyncio.sleep(0)
                    log.append("finally")

            @decorate
            async def refuses():
                try:
                    yield 1
                except GeneratorExit:
                    yield 2
            return body, refuses

        async def tell(log, call):
            try:
                log.append(await call)
            except BaseException as e:
                log.append((type(e).__name__, str(e)))

        async def probe(decorate, log):
            body, refuses = make(decorate, log)
            assert inspect.isasyncgenfunction(body)
            for calls in (["next"] * 4, ["next", ("asend", "x"), ("asend", "y")],
                          ["next", "next", ("athrow", KeyError(7)), "next", "next"],
                          ["next", ("athrow", ValueError("not caught")), "next"], [("athrow", ValueError("early"))],
                          ["next", "aclose", "next"], ["aclose", "next"], ["next", ("athrow", GeneratorExit())]):
                log.append(repr(calls))
                g = body()
                for c in calls:
                    await tell(log, g.__anext__() if c == "next" else g.aclose() if c == "aclose"
                               else getattr(g, c[0])(c[1]))
                await g.aclose()
            g = refuses()
            await g.__anext__()
            await tell(log, g.aclose())
            await tell(log, g.__anext__())
            async for _ in body():  # dropped: the loop ends it
                break
            keep.append(body())
            async for _ in keep[-1]:  # kept: asyncio.run() ends it
                break

        keep, logs = [], ([], [])
        asyncio.run(probe(lambda f: f, logs[0]))
        asyncio.run(probe(protond.scope("g"), logs[1]))
        for a, b in zip(*logs):
            assert a == b, (a, b)
        assert len(logs[0]) == len(logs[1]) > 40

        @protond.scope("make")
        async def made():
            for i in range(3):
                with protond.scope("item"):
                    await asyncio.sleep(0)
                yield i

        async def consume(name):
            with protond.scope(name):
                async for i in made():
                    with protond.scope("use"):
                        await asyncio.sleep(0)

        async def main():
            await asyncio.gather(consume("a"), consume("b"))
        asyncio.run(main())
    """, python)
    assert "Error" not in r.stderr and "error" not in r.stderr, r.stderr
    assert {k: v for k, v in got.items() if not k.startswith("/g")} == {
        "/a": 1, "/a/make": 4, "/a/make/item": 3, "/a/use": 3, "/b": 1, "/b/make": 4, "/b/make/item": 3, "/b/use": 3}


# --- sessions -----------------------------------------------------------------------------------

def program(world, code, python=sys.executable, env={}, **kwargs):
    return subprocess.run([python, str(job(world, code))], env=python_env(world, **env), cwd=world.home,
                          capture_output=True, text=True, timeout=WAIT, **kwargs)


def ran(r):
    assert r.returncode == 0, r.stdout + r.stderr
    return r.stdout


def test_sessions(world):
    world.start(PROTOND_AUTO_SESSION="off")
    ran(program(world, """
        import os, pathlib, protond

        def put(name, n=1):
            for _ in range(n):
                with protond.scope(name):
                    pass
        assert protond.enter_scope("nothing knows") is None and protond.exit_scope() is None
        assert protond.exit_scope() is None
        protond.activate(), protond.deactivate(), protond.finalize(), protond.finalize(7)
        put("before")
        one = protond.start("one", backend="none")
        put("both", 2)
        assert protond.start("one", backend="none") == one and isinstance(one, int) and one >= 0
        two = protond.start(pathlib.Path("two"), backend="none")
        assert two != one
        put("both", 3)
        protond.deactivate(one)
        protond.deactivate(one)
        put("two alone")
        protond.deactivate(flushing=True)
        put("neither")
        assert protond.start("one") == one
        put("one alone")
        protond.activate()
        protond.activate(two)
        put("both")
        protond.finalize(one)
        assert os.path.exists("one.hatchet") and not os.path.exists("two.hatchet")
        put("two alone")
        protond.finalize(two, output_format=None)
        assert not os.path.exists("two.hatchet")
        put("after")
        assert protond.start(backend="none") not in (one, two)
        put("default")
        for wrong in (one, -7):
            try:
                protond.activate(wrong)
            except protond.Error as e:
                assert str(wrong) in str(e), e
        protond.finalize(one)
        protond.finalize()
        protond.finalize()
        assert os.path.exists(protond.DEFAULT_PROFILE_NAME + ".hatchet")
    """))
    assert tree(world, "one") == {"/both": 2 + 3 + 1, "/one alone": 1}
    assert tree(world, "two") == {"/both": 3 + 1, "/two alone": 2}
    assert tree(world, "proton") == {"/default": 1}
    for name in ("one", "proton"):
        assert json.loads((world.home / f"{name}.hatchet").read_text())[0]["frame"]["name"] == "ROOT"
    assert "both" in world.view("tree", world.home / "one.hatchet").stdout


def test_finalize_that_fails_ends_the_others(world):
    world.start(PROTOND_AUTO_SESSION="off")
    (world.home / "bad.hatchet").mkdir()
    ran(program(world, """
        import os, protond
        bad, good = protond.start("bad", backend="none"), protond.start("good", backend="none")
        try:
            protond.finalize(good, "xml")
        except ValueError as e:
            assert "hatchet" in str(e), e
        else:
            raise SystemExit("accepted")
        with protond.scope("still there"):
            pass
        try:
            protond.finalize()
        except protond.Error as e:
            assert "bad.hatchet" in str(e), e
        else:
            raise SystemExit("written")
        assert os.path.exists("good.hatchet")
    """))
    assert tree(world, "good") == tree(world, "bad") == {"/still there": 1}


def test_profile_decorator(world):
    world.start(PROTOND_AUTO_SESSION="off")
    ran(program(world, """
        import protond

        @protond.profile(name="calls", backend="none")
        def f(x, *, y):
            with protond.scope("f"):
                return x + y

        @protond.profile
        def g():
            "doc"
            with protond.scope("g"):
                raise KeyError

        assert f(1, y=2) == 3 and f.__name__ == "f" and g.__doc__ == "doc"
        with protond.scope("between"):
            pass
        assert f(1, y=2) == 3
        try:
            g()
        except KeyError:
            pass
        with protond.scope("after"):
            pass
        protond.finalize()
    """))
    assert tree(world, "calls") == {"/f": 2} and tree(world, "proton") == {"/g": 1}


@pytest.mark.parametrize("options, word", [
    ("backend='roctracer'", "cupti"), ("data='list'", "tree"), ("context='c'", "shadow"), ("hook='jax'", "triton"), ("switches='apy'", "sync"),
    ("name='x' * 600", "bytes")])
def test_unknown_options(world, options, word):
    world.start(PROTOND_AUTO_SESSION="off")
    assert word in ran(program(world, f"""
        import protond
        try:
            protond.start({options})
        except ValueError as e:
            print(e)
        try:
            protond.start("s", colour="red")
        except TypeError:
            pass
        else:
            raise SystemExit("accepted")
        assert protond.enter_scope("x") is None
    """))


def test_without_a_daemon(world):
    out = ran(program(world, """
        import protond
        for _ in range(2):
            try:
                protond.start("s")
            except protond.Error as e:
                print(e)
            else:
                raise SystemExit("started")
            with protond.scope("x", {"n": 1}), protond.cpu_timed_scope("y"), protond.state("z"):
                pass
            protond.finalize()
    """, env={"PROTOND_AUTOSTART": "0"}))
    assert "no protond" in out and "PROTOND_AUTOSTART=1" in out and len(out.splitlines()) == 2
    assert not list(world.dir.glob("control.sock"))


def test_autostart(world):
    ran(program(world, """
        import protond
        from protond import _native
        protond.start("s", backend="none")
        assert _native.error() == "", "no word of the time before there was a daemon"
        with protond.scope("x"):
            pass
        protond.finalize()
    """, env={"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}))
    assert tree(world) == {"/x": 1} and (world.home / "s.hatchet").exists()
    world.ctl("shutdown")
    until("the daemon ended", lambda: world.ctl("status", check=False).returncode == 3)


@each_python
def test_disabled(world, python):
    world.start(PROTOND_AUTO_SESSION="off")
    assert ran(program(world, """
        import asyncio, os, protond
        session = protond.start("s", hook="torch", backend="no such")
        assert session is None

        @protond.profile
        def f():
            with protond.scope("x", {"n": 1}), protond.cpu_timed_scope("y"), protond.state("z"):
                return protond.enter_scope("a"), protond.exit_scope()

        async def main():
            with protond.scope("task"):
                await asyncio.sleep(0)
                return f()
        assert f() == asyncio.run(main()) == (None, None)
        protond.activate(session), protond.deactivate(session, flushing=True), protond.finalize(session)
        assert not os.path.exists("s.hatchet")
        print("done")
    """, python, env={"PROTOND_DISABLE": "1"})) == "done\n"
    assert world.ctl_json("jobs")["jobs"] == []


def test_enter_scope_is_seen_by_a_session_from_outside(world):
    world.start(PROTOND_AUTO_SESSION="off")
    p = subprocess.Popen([sys.executable, str(job(world, """
        import sys
        import protond
        while sys.stdin.readline() == "go\\n":
            assert protond.enter_scope("entered") is None
            with protond.scope("scope"):
                protond.enter_scope("inner")
                assert protond.exit_scope("not checked") is None
            assert protond.exit_scope() is None
            assert protond.depth() == 0
            print("done", flush=True)
    """))], env=python_env(world), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    try:
        for recorded in (False, True):
            p.stdin.write("go\n")
            assert p.stdout.readline() == "done\n"
            if not recorded:
                until("the job is known", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == p.pid])
                world.ctl("start", "s", "--pid", p.pid)
        world.ctl("finalize", "s")
    finally:
        p.stdin.close()
        p.wait(WAIT)
    assert p.returncode == 0
    assert tree(world) == {"/entered": 1, "/entered/scope": 1, "/entered/scope/inner": 1}


@each_python
def test_forks(world, python):
    """A forked child stands where its parent was; each waits for its recording to begin."""
    _, got = record(world, """
        import multiprocessing, os, sys, protond

        def work(name):
            protond.start("own " + name, backend="none")
            with protond.scope(name):
                with protond.scope("part", {"n": 1}):
                    pass
            protond.finalize(output_format=None)

        if __name__ == "__main__":
            with protond.scope("parent"):
                pid = os.fork()
                if pid == 0:
                    work("forked")
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0
                for how in ("fork", "spawn", "forkserver"):
                    p = multiprocessing.get_context(how).Process(target=work, args=(how,))
                    p.start(), p.join()
                    assert p.exitcode == 0
                with protond.scope("still"):
                    pass
    """, python)
    forked = {f"/parent/{n}{p}": 1 for n in ("forked", "fork") for p in ("", "/part")}
    spawned = {f"/{n}{p}": 1 for n in ("spawn", "forkserver") for p in ("", "/part")}
    assert got == {"/parent": 1, "/parent/still": 1, **forked, **spawned}
    assert tree(world, "own forked") == {"/parent/forked": 1, "/parent/forked/part": 1}
    assert tree(world, "own spawn") == {"/spawn": 1, "/spawn/part": 1}
    assert [v[1] for v in metrics(world).values()] == [1] * 4


def test_a_forked_child_adds_nothing_to_the_scopes_it_was_born_in(world):
    """Whether it leaves them or ends inside: they are its place, and the parent's time."""
    record(world, """
        import os, protond

        with protond.scope("outer"):
            with protond.scope("inner"):
                pids = [os.fork()]
                if pids[0] != 0:
                    pids.append(os.fork())
                if pids[-1] == 0:
                    protond.start("own", backend="none")
                    with protond.scope("work"):
                        pass
                if pids == [0]:
                    protond.finalize(output_format=None)
                    os._exit(0)
            if pids[-1] == 0:
                with protond.scope("after"):
                    pass
        if pids[-1] == 0:
            protond.finalize(output_format=None)
            os._exit(0)
        for pid in pids:
            assert os.waitpid(pid, 0)[1] == 0
    """)
    got = {path: (count, still) for path, (count, _, still) in world.cells("s").items()}
    assert got == {"/outer": (1, 0), "/outer/inner": (1, 0), "/outer/inner/work": (2, 0), "/outer/after": (1, 0)}


def test_a_session_is_not_its_forked_childs(world):
    world.start(PROTOND_AUTO_SESSION="off")
    ran(program(world, """
        import os, protond
        protond.start("s", backend="none")
        pid = os.fork()
        if pid == 0:
            with protond.scope("child"):
                pass
            protond.finalize()
            os._exit(os.path.exists("s.hatchet"))
        assert os.waitpid(pid, 0)[1] == 0
        with protond.scope("parent"):
            pass
        protond.finalize()
    """))
    assert tree(world) == {"/parent": 1}


# --- another platform ---------------------------------------------------------------------------

@each_python
def test_elsewhere_everything_does_nothing(world, python):
    assert ran(program(world, """
        import sys
        real, sys.platform = sys.platform, "darwin"
        import asyncio, protond, protond.torch
        assert "protond._native" not in sys.modules and "libprotond" not in open("/proc/self/maps").read()
        assert isinstance(protond.__version__, str)
        session = protond.start("s", hook="torch")
        protond.torch.install(), protond.torch.step()

        @protond.scope("f")
        def f(x):
            return x + 1

        @protond.scope("g")
        def g():
            return (yield 1)

        @protond.scope("c")
        async def c():
            await asyncio.sleep(0)
            return 5

        @protond.scope("a")
        async def a():
            yield 1
            yield 2

        async def all_of(a):
            return [x async for x in a]

        @protond.cpu_timed_scope("t")
        def t():
            return 7

        @protond.state("s")
        def s():
            return 8

        @protond.profile
        def p():
            return 9
        assert (f(1), list(g()), asyncio.run(c()), asyncio.run(all_of(a())), t(), s(), p()) == \\
            (2, [1], 5, [1, 2], 7, 8, 9)
        with protond.scope("x", {"n": 1}) as x, protond.torch.region("r"):
            assert x.name == "x" and x.metrics == {"n": 1} and protond.depth() == 0
        protond.enter_scope("x"), protond.exit_scope()
        protond.enter_state("x"), protond.exit_state()
        protond.context_set(protond.context_get())
        protond.activate(), protond.deactivate(session, flushing=True), protond.finalize()
        sys.platform = real
        print("done")
    """, python, env={"PROTOND_AUTOSTART": "0"})) == "done\n"
    assert not list(world.home.glob("*.hatchet"))


# --- protonctl run ------------------------------------------------------------------------------

def said(world, python, *args, run=False, hook=None, env={}, cwd=None):
    """(status, standard output, standard error) of a Python, alone or under `protonctl run`."""
    out, err = world.home / "out", world.home / "err"
    env = {**world.env, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "", **env}
    shell = ["sh", "-c", f'exec "$0" "$@" >{out} 2>{err}', str(python), *map(str, args)]
    if run:
        hook = ["-k", hook] if hook else []
        shell = [str(BUILD / "bin/protonctl"), "run", "-n", "s", "-b", "none", *hook, "--", *shell]
    r = subprocess.run(shell, env=env, cwd=world.home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=WAIT)
    return r.returncode, out.read_text(), err.read_text()


def undisturbed(world, python, *args, **kwargs):
    alone, under = said(world, python, *args, **kwargs), said(world, python, *args, run=True, **kwargs)
    assert under == alone
    return alone


TELL_PATH = """
    import sys
    print(sys.path)
    print(sys.flags)
    print([n for n in sys.modules if n.startswith("protond")])
    print(getattr(sys.modules.get("sitecustomize"), "mine", None))
"""
OTHERS = {**PYTHONS, **OLDER}


@pytest.mark.parametrize("user, words", [
    (None, "None"), ("", "None"), ("import sys; mine = 7; print('mine'); sys.path.append('/added')", "mine"),
    ("import no_such_module", "None"), ("raise ImportError('inside')", "None"), ("raise ValueError('inside')", "None"),
    ("syntax error", "None")], ids=["none", "empty", "prints", "missing", "ImportError", "ValueError", "syntax"])
@pytest.mark.parametrize("python", OTHERS.values(), ids=OTHERS.keys())
def test_run_gives_way_to_the_programs_own_sitecustomize(world, python, user, words):
    path = world.home / "site"
    path.mkdir()
    if user is not None:
        (path / "sitecustomize.py").write_text(user + "\n")
    status, out, err = undisturbed(world, python, job(world, TELL_PATH), env={"PYTHONPATH": str(path)})
    assert status == 0 and words in out and "[]" in out
    if user is None or user == "" or words == "mine":
        assert err == ""


@each_python
def test_a_sitecustomize_that_imports_torch_or_ends_the_program(world, python):
    (world.home / "sitecustomize.py").write_text("import torch\n")
    assert named(world, "import torch", python, env={"PYTHONPATH": f"{world.home}{os.pathsep}{STANDIN}"}) == \
        ("", "", NAMED)
    (world.home / "sitecustomize.py").write_text("raise SystemExit(3)\n")
    env = {"PYTHONPATH": str(world.home)}
    alone, under = (said(world, python, job(world, ""), run=run, env=env) for run in (False, True))
    assert under[:2] == alone[:2] and under[2].splitlines()[-1] == alone[2].splitlines()[-1]


@pytest.mark.parametrize("flags", [["-I"], ["-E"], ["-s"], ["-B", "-v"]], ids=" ".join)
@pytest.mark.parametrize("python", OTHERS.values(), ids=OTHERS.keys())
def test_run_does_not_disturb_any_python(world, python, flags):
    if flags == ["-I"] and python == OLDER.get("2.7"):
        pytest.skip("Python 2.7 has no -I")
    if flags == ["-B", "-v"]:  # too many words to compare
        status, out, _ = said(world, python, *flags, job(world, TELL_PATH), run=True)
        assert (status, out) == said(world, python, *flags, job(world, TELL_PATH))[:2]
    else:
        status, _, err = undisturbed(world, python, *flags, job(world, TELL_PATH))
        assert (status, err) == (0, "")


@pytest.mark.parametrize("python", OTHERS.values(), ids=OTHERS.keys())
def test_run_without_the_site_module(world, python):
    """Nothing of ours is read then; only our folder stays in sys.path."""
    status, out, err = said(world, python, "-S", job(world, """
        import sys
        print([n for n in sys.modules if "protond" in n or n == "sitecustomize"])
    """), run=True)
    assert (status, out, err) == (0, "[]\n", "")


def test_run_with_k_none_sets_nothing_for_python(world):
    tell = job(world, """
        import os
        print(os.environ.get("PYTHONPATH"), os.environ.get("PROTOND_HOOK"))
    """)
    assert said(world, sys.executable, tell, run=True, hook="none") == (0, "None None\n", "")
    assert said(world, sys.executable, tell, run=True, hook="none", env={"PYTHONPATH": "/a:/b"})[1] == "/a:/b None\n"
    for hook in (None, "torch"):
        assert said(world, sys.executable, tell, run=True, hook=hook, env={"PYTHONPATH": "/a:/b"})[1] == \
            f"{PACKAGE}/protond/_run:/a:/b torch\n"
        assert said(world, sys.executable, tell, run=True, hook=hook)[1] == f"{PACKAGE}/protond/_run torch\n"


ONE_MODULE = """
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    net(torch.zeros(1, 2))
"""
NAMED = {"/forward": 1, "/forward/Sequential": 1, "/forward/Sequential/0": 1}


def named(world, code, python=sys.executable, env={}, hook=None):
    """A program that knows nothing of protond, under `run`; its errors, its output and its tree."""
    status, out, err = said(world, python, job(world, textwrap.dedent(code) + textwrap.dedent(ONE_MODULE)), run=True,
                            hook=hook, env={"PYTHONPATH": str(STANDIN), **env})
    assert status == 0, err
    return err, out, tree(world)


@each_python
def test_run_names_torch(world, python):
    assert named(world, "import torch", python) == ("", "", NAMED)


@each_python
def test_run_loads_nothing_before_torch_is_imported(world, python):
    """Asking whether there is a torch, as many packages do, is no import of it."""
    assert named(world, """
        import importlib.util, sys

        def loaded():
            return "libprotond" in open("/proc/self/maps").read() or "protond" in sys.modules
        assert not loaded()
        for _ in range(3):
            assert importlib.util.find_spec("torch").origin.endswith("__init__.py")
        assert importlib.util.find_spec("no_such_module") is None
        assert not loaded()
        import torch
        assert loaded()
    """, python) == ("", "", NAMED)


def test_run_with_k_none_names_nothing(world):
    assert named(world, "import torch", hook="none") == ("", "", {})


def test_run_of_a_disabled_program(world):
    assert named(world, """
        import sys, torch
        assert "protond" not in sys.modules
    """, env={"PROTOND_DISABLE": "1"}) == ("", "", {})


@each_python
def test_a_torch_that_cannot_be_imported(world, python):
    code = job(world, """
        import os, sys, traceback
        for _ in range(2):
            try:
                import torch
            except Exception as e:
                print(repr(e), repr(e.__cause__), repr(e.__context__), traceback.format_exception_only(type(e), e))
        print("torch" in sys.modules, "protond" in sys.modules)
        import torch.nn
    """)
    alone, under = (said(world, python, code, run=run, env={"PYTHONPATH": str(STANDIN), "STANDIN": "broken"})
                    for run in (False, True))
    assert under[:2] == alone[:2] and alone[0] == 1 and "libstandin" in alone[1]
    assert under[2].splitlines()[-1] == alone[2].splitlines()[-1]
    missing = job(world, "import torch\n")
    assert said(world, python, "-S", missing, run=True) == said(world, python, "-S", missing)


@each_python
def test_torch_may_be_imported_at_the_second_try(world, python):
    assert named(world, """
        import os
        os.environ["STANDIN"] = "broken"
        try:
            import torch
        except OSError:
            os.environ["STANDIN"] = ""
        import torch
    """, python) == ("", "", NAMED)


@each_python
def test_a_folder_called_torch_is_no_torch(world, python):
    (world.home / "torch").mkdir()
    assert said(world, python, job(world, "import torch; print(torch.__path__)"), run=True)[::2] == (0, "")


@each_python
def test_torch_imported_by_a_thread(world, python):
    assert named(world, """
        import threading
        all = threading.Barrier(4)

        def get():
            all.wait()
            import torch
            assert torch.nn.Module
        ts = [threading.Thread(target=get) for _ in range(4)]
        [t.start() for t in ts], [t.join() for t in ts]
        import torch
    """, python) == ("", "", NAMED)


@each_python
def test_other_import_hooks(world, python):
    """One that asks all finders in turn, ours too."""
    assert named(world, """
        import importlib.abc, importlib.util, json, sys

        class Asks(importlib.abc.MetaPathFinder):
            asked = False
            def find_spec(self, name, path, target=None):
                if name != "torch" or self.asked:
                    return None
                self.asked = True
                try:
                    spec = importlib.util.find_spec(name)
                    inner = spec.loader
                    class Loader(importlib.abc.Loader):
                        def exec_module(self, module):
                            inner.exec_module(module)
                            module.seen = True
                    spec.loader = Loader()
                    return spec
                finally:
                    self.asked = False
        sys.meta_path.insert(0, Asks())
        import torch
        assert torch.seen
    """, python) == ("", "", NAMED)


@pytest.mark.parametrize("hook", ["torch", "none"], ids=["run", "install"])
@each_python
def test_a_loader_of_many_modules(world, python, hook):
    path = world.home / "path" / "other"
    path.mkdir(parents=True)
    (path / "__init__.py").write_text("")
    assert named(world, ("import protond.torch; protond.torch.install()" if hook == "none" else "") + """
import importlib.machinery, importlib.util, sys

class Many:
    def find_spec(self, name, path, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and name in ("torch", "other"):
            spec.loader = self
            return spec
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        loaded.append(module.__name__)
        exec(compile(open(module.__spec__.origin).read(), module.__spec__.origin, "exec"), module.__dict__)
loaded = []
sys.meta_path.insert(1, Many())
importlib.util.find_spec("torch")
import other
import torch
assert loaded == ["other", "torch"], loaded
    """, python, hook=hook, env=python_env(world, STANDIN, path.parent)) == ("", "", NAMED)


@each_python
def test_run_in_a_virtual_environment(world, python):
    subprocess.run([python, "-m", "venv", "--without-pip", "--system-site-packages", str(world.home / "venv")],
                   check=True, env=world.env)
    assert named(world, """
        import sys, torch
        assert sys.prefix != sys.base_prefix
    """, world.home / "venv/bin/python") == ("", "", NAMED)


def test_run_reaches_children(world):
    assert named(world, """
        import subprocess, sys
        child = "import torch; torch.nn.Linear(2, 2)(torch.zeros(1, 2))"
        subprocess.run([sys.executable, "-c", child], check=True)
        subprocess.run([sys.executable, "-E", "-c", "import sys; assert 'protond' not in sys.modules"], check=True)
        import torch
    """) == ("", "", {**NAMED, "/forward": 2, "/forward/Linear": 1})
