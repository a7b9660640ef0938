# SPDX-License-Identifier: MIT. Hooks on Triton's launches, on the stand-in: what is called when, and under which
# names launches and their metrics stand; metrics, flags and modes as Proton's users know them.
import subprocess
import sys
import textwrap

import pytest

from conftest import WAIT
from test_python import INC, STANDIN, each_python, job, metrics, python_env, record

pytestmark = pytest.mark.preload

STATE = "__proton_launch_metadata"

PRELUDE = """
    import sys
    import triton
    import protond as proton
    from protond import _native
    from protond.hooks import Hook, HookManager, LaunchHook
    from protond.hooks import launch
    from triton import knobs
    runtime = knobs.runtime

    def ran(**metrics):
        "Where a kernel that is launched here stands: where its metrics do."
        _native.metrics(metrics or {"ran": 1})

    def calls():
        return [len(c.calls) for c in (runtime.kernel_load_end_hook, runtime.launch_enter_hook,
                                       runtime.launch_exit_hook)]

    said = []

    class Says(Hook):
        def __init__(self, name, priority=0, fails=()):
            self.name, self.priority, self.fails = name, priority, fails

        def say(self, what):
            said.append(self.name + " " + what)
            if what in self.fails:
                raise ValueError(said[-1])

        def init_handle(self, module, function, name, metadata_group, hash):
            assert module is not None and function >= 0x1000 and name + ".json" in metadata_group and len(hash) == 8
            self.say("load")

        def destroy_handle(self, module, function, name, metadata_group, hash):
            assert module is not None
            self.say("unload")

        def enter(self, metadata):
            assert metadata.data["name"] == "foo" and metadata.data["stream"] == 0
            self.say("enter")

        def exit(self, metadata):
            self.say("exit")

        def activate(self):
            self.say("activate")

        def deactivate(self):
            self.say("deactivate")

    def raises(error, function, *args):
        try:
            function(*args)
        except error as e:
            return str(e)
        raise SystemExit("no " + error.__name__)

    @triton.jit
    def foo(n=1):
        said.append("launch")
"""


def program(code):
    return textwrap.dedent(PRELUDE) + textwrap.dedent(code)


def run(world, code, *args, **kwargs):
    """Runs it under `protonctl run`; {path: {metric: value}} without the time of scopes."""
    record(world, program(code), *args, paths=(STANDIN,), **kwargs)
    found = {}
    for (path, name), (kind, value, _) in metrics(world).items():
        found.setdefault(path, {})[name] = value
    return found


def alone(world, code, python=sys.executable, **env):
    """Runs it without `protonctl run`."""
    r = subprocess.run([python, job(world, program(code))], cwd=world.home, capture_output=True,
                       text=True, timeout=WAIT, env=python_env(world, STANDIN, **env))
    assert r.returncode == 0, r.stdout + r.stderr


# --- HookManager --------------------------------------------------------------------------------

@each_python
def test_hooks_are_called_by_priority(world, python):
    alone(world, """
        low, high, same = Says("low", -1), Says("high", 7), Says("same", -1)
        HookManager.register(low, 0), HookManager.register(high, 0), HookManager.register(same, 0)
        assert HookManager.active_hooks == [high, low, same] and calls() == [1, 1, 1]
        del said[:]
        foo[(1,)](), foo[(1,)]()
        launched = ["high enter", "low enter", "same enter", "launch", "same exit", "low exit", "high exit"]
        assert said == ["high load", "low load", "same load"] + 2 * launched, said
        HookManager.unregister()
        assert calls() == [0, 0, 0] and HookManager.active_hooks == [] and not HookManager.session_hooks
        del said[:]
        foo[(1,)]()
        assert said == ["launch"]
    """, python)


def test_hooks_of_several_sessions(world):
    alone(world, """
        a, b = Says("a"), Says("b")
        HookManager.register(a, 3), HookManager.register(a, 3), HookManager.register(a, 4), HookManager.register(b, 4)
        assert said == ["a activate", "b activate"] and HookManager.active_hooks == [a, b]
        HookManager.deactivate(3), HookManager.deactivate(3)
        assert HookManager.session_hooks == {3: {a: False}, 4: {a: True, b: True}}
        assert HookManager.active_hooks == [a, b] and calls() == [1, 1, 1]
        HookManager.deactivate()
        assert HookManager.active_hooks == [] and calls() == [0, 0, 0]
        assert said[2:] == ["a deactivate", "b deactivate"]
        HookManager.unregister(9), HookManager.deactivate(9), HookManager.activate(9)  # unknown
        assert set(HookManager.session_hooks) == {3, 4} and calls() == [0, 0, 0]
        HookManager.activate(3), HookManager.activate(3)
        assert HookManager.session_hooks == {3: {a: True}, 4: {a: False, b: False}}
        assert HookManager.active_hooks == [a] and said[4:] == ["a activate"] and calls() == [1, 1, 1]
        HookManager.unregister(4)
        assert HookManager.active_hooks == [a] and len(said) == 5
        HookManager.activate()
        HookManager.unregister(3)
        assert said[5:] == ["a deactivate"] and calls() == [0, 0, 0]
    """)


def test_register_triton_hook(world):
    """The hooks of no session of the program's are not switched with its sessions."""
    alone(world, """
        from protond.hooks import register_triton_hook, unregister_triton_hook
        register_triton_hook(), register_triton_hook()
        assert calls() == [1, 1, 1] and HookManager.active_hooks == [LaunchHook()]
        s = proton.start("s", backend="none", hook="triton")
        proton.deactivate()
        assert HookManager.session_hooks == {"triton": {LaunchHook(): True}, s: {LaunchHook(): False}}
        proton.finalize()
        assert calls() == [1, 1, 1]
        unregister_triton_hook(), unregister_triton_hook()
        assert calls() == [0, 0, 0]
    """)


def test_other_callbacks_on_the_same_chains(world):
    alone(world, """
        def before(metadata):
            said.append("before")
        def after(metadata):
            said.append("after")
        runtime.launch_enter_hook.add(before), runtime.launch_exit_hook.add(before)
        HookManager.register(Says("ours"), 0)
        runtime.launch_enter_hook.add(after), runtime.launch_exit_hook.add(after)
        HookManager.register(Says("too"), 1)
        foo[(1,)]()
        assert said[4:] == ["before", "ours enter", "too enter", "after", "launch",
                            "after", "too exit", "ours exit", "before"], said
        HookManager.deactivate()
        assert runtime.launch_enter_hook.calls == [before, after] == runtime.launch_exit_hook.calls
        del said[:]
        foo[(1,)]()
        assert said == ["before", "after", "launch", "after", "before"]
    """)


def test_exceptions_of_hooks(world):
    alone(world, """
        hooks = a, b, c = Says("a", 3), Says("b", 2, fails=["enter"]), Says("c", 1)
        for hook in hooks:
            HookManager.register(hook, 0)
        del said[:]
        assert raises(ValueError, foo[(1,)]) == "b enter"
        assert said[3:] == ["a enter", "b enter", "a exit"], said  # no launch, and a is left as it was entered
        a.fails, b.fails = ["exit"], ["exit"]
        del said[:]
        assert raises(ValueError, foo[(1,)]) == "b exit"
        assert said[-3:] == ["c exit", "b exit", "a exit"]
        b.fails = ["deactivate"]
        assert raises(ValueError, HookManager.deactivate) == "b deactivate"
        assert said[-3:] == ["a deactivate", "b deactivate", "c deactivate"]
        assert calls() == [0, 0, 0] and HookManager.active_hooks == []
        d = Says("d", fails=["activate"])
        raises(ValueError, HookManager.register, d, 5)
        assert calls() == [0, 0, 0] and 5 not in HookManager.session_hooks
    """)


def test_a_hook_changed_by_a_launch(world):
    """Sessions may begin and end in whatever a launch calls."""
    alone(world, """
        class Ends(Says):
            def enter(self, metadata):
                super().enter(metadata)
                HookManager.unregister(0)
        a, b = Ends("a", 1), Says("b")
        HookManager.register(a, 0), HookManager.register(b, 0)
        foo[(1,)]()
        assert said[-5:] == ["a enter", "a deactivate", "b deactivate", "b enter", "launch"]
    """)


def test_kernels_that_are_unloaded(world):
    alone(world, """
        HookManager.register(Says("a"), 0)
        assert len(runtime.kernel_unload_hook.calls) == 1
        kernel = foo[(1,)]()
        kernel.unload()
        assert said[-1] == "a unload"
        HookManager.unregister()
        assert runtime.kernel_unload_hook.calls == []
    """, STANDIN="unload")


@pytest.mark.parametrize("kind, words", [("knobless", "No module named 'triton.knobs'"),
                                         ("single", "room for one hook only")])
def test_a_triton_that_is_too_old(world, kind, words):
    code = f"""
        from protond.hooks import HookManager, LaunchHook
        import protond
        try:
            HookManager.register(LaunchHook(), 0)
        except protond.Error as e:
            assert "needs Triton 3.5 or later" in str(e) and {words!r} in str(e), e
        else:
            raise SystemExit("registered")
        assert HookManager.active_hooks == [] and not HookManager.session_hooks
    """
    record(world, code, paths=(STANDIN,), env={"STANDIN": kind})


@each_python
def test_without_triton(world, python):
    record(world, """
        import sys
        sys.modules["triton"] = None  # none is found
        import protond
        from protond.hooks import Hook, HookManager, InstrumentationHook, LaunchHook
        assert "triton.knobs" not in sys.modules
        HookManager.activate(), HookManager.deactivate(), HookManager.unregister()

        class Counts(Hook):
            needs_triton = False
            active = 0
            def activate(self):
                self.active += 1
            def deactivate(self):
                self.active -= 1
        counts = Counts()
        HookManager.register(counts, 0)
        for hook in (LaunchHook(), Hook()):
            try:
                HookManager.register(hook, 0)
            except protond.Error as e:
                assert "needs Triton 3.5 or later" in str(e)
            else:
                raise SystemExit("registered")
        assert HookManager.active_hooks == [counts] and counts.active == 1
        HookManager.unregister()
        assert counts.active == 0
        try:
            protond.start("t", backend="none", hook="triton")
        except protond.Error as e:
            assert "needs Triton 3.5 or later" in str(e)
        else:
            raise SystemExit("started")
        try:
            InstrumentationHook("default")
        except NotImplementedError as e:
            assert "does not record inside kernels yet" in str(e)
        else:
            raise SystemExit("made")
    """, python)
    assert world.state("t") is None, "nothing had begun"


# --- LaunchHook ---------------------------------------------------------------------------------

@each_python
def test_launches_are_named_and_have_metrics(world, python):
    got = run(world, """
        def describe(grid, metadata, args):
            assert grid == (4, 2) and metadata[:2] == ("matmul", 8) and args == {"m": 3, "n": 5}
            ran(inside=1)
            return {"name": "matmul [3, 5]", "flops16": 30, "flops": 7, "bytes": 12.0, "loss": 0.5, "tokens": 3,
                    "text": "no number", "none": None, "list": [1, 2], "function": 5, "stream": 6, "complex": 1j}

        @triton.jit(launch_metadata=describe)
        def matmul(m, n):
            assert launch.enabled.get() and not launch.in_hook.get() and launch.op_name.get() == "matmul [3, 5]"
            ran()

        @triton.jit
        def plain():
            assert launch.op_name.get() == "plain"
            ran()

        HookManager.register(LaunchHook(), 0)
        HookManager.register(LaunchHook(), 1)
        assert HookManager.active_hooks == [LaunchHook()] and LaunchHook.priority == 100
        assert launch.id.get() is None and not launch.enabled.get()
        with proton.scope("test0"):
            for _ in range(2):
                matmul[(4, 2)](3, n=5, num_warps=8)
            ran()
        with proton.state("state"):
            plain[(1,)]()
        assert not launch.enabled.get() and isinstance(launch.id.get(), int)
        HookManager.unregister()
        plain[(1,)]()
    """, python)
    assert got == {
        "/test0/matmul [3, 5]": {"flops16": 60, "flops": 14, "bytes": 24, "loss": 1, "tokens": 6, "ran": 2},
        "/test0/" + STATE: {"inside": 2}, "/test0": {"ran": 1}, "/state/plain": {"ran": 1}, "": {"ran": 1}}
    kinds = metrics(world)
    assert kinds["/test0/matmul [3, 5]", "flops16"] == (INC, 60.0, 2)


@each_python
def test_names_that_are_left_out(world, python):
    got = run(world, """
        asked = []
        def kernel(name, renamed=None):
            def describe(grid, metadata, args):
                asked.append(name)
                return {"name": renamed or name}
            def fn():
                ran()
            fn.__name__ = name
            return triton.jit(fn, launch_metadata=describe)
        ks = [kernel("foo_a"), kernel("foo_b"), kernel("bar"), kernel("a_foo"), kernel("foo_c", "other"),
              kernel("foo_d", "foo_b2")]
        HookManager.register(LaunchHook(), 0)

        def all_of(label):
            del asked[:]
            with proton.scope(label):
                for k in ks:
                    k[(1,)]()
            return list(asked)
        LaunchHook().configure(include="foo")
        assert all_of("include") == ["foo_a", "foo_b", "foo_c", "foo_d"]
        LaunchHook().configure(include="foo", exclude=".*_b")
        assert all_of("both") == ["foo_a", "foo_c", "foo_d"]
        LaunchHook().configure(exclude="foo")
        assert all_of("exclude") == ["bar", "a_foo"]
        LaunchHook().configure()
        assert len(all_of("all")) == 6
        import re
        raises(re.error, lambda: LaunchHook().configure(include="("))
    """, python)
    assert {k: v["ran"] for k, v in got.items()} == {
        "/include": 3, "/include/foo_a": 1, "/include/foo_b": 1, "/include/foo_b2": 1,
        "/both": 5, "/both/foo_a": 1, "/exclude": 4, "/exclude/bar": 1, "/exclude/a_foo": 1,
        **{"/all/" + n: 1 for n in ("foo_a", "foo_b", "bar", "a_foo", "other", "foo_b2")}}


def test_launch_metadata_that_launches(world):
    got = run(world, """
        @triton.jit(launch_metadata=lambda *args: raises(SystemExit))
        def sum():
            assert launch.in_hook.get() and not launch.enabled.get()
            ran()

        def describe(grid, metadata, args):
            sum[(1,)]()
            return {"name": "outer", "bytes": 4}

        @triton.jit(launch_metadata=describe)
        def outer():
            assert not launch.in_hook.get()
            ran()
        HookManager.register(LaunchHook(), 0)
        with proton.scope("test0"):
            outer[(1,)](), outer[(1,)]()
            ran()
    """)
    assert got == {"/test0": {"ran": 1}, "/test0/outer": {"ran": 2, "bytes": 8}, "/test0/" + STATE: {"ran": 2}}


def test_exceptions_leave_no_operation_open(world):
    got = run(world, """
        mine = KeyError("mine")
        def describe(grid, metadata, args):
            if args["fails"] == "launch_metadata":
                raise mine
            return {5 if args["fails"] == "metric" else "bytes": 1}

        @triton.jit(launch_metadata=describe)
        def k(fails):
            if fails == "launch":
                raise mine
            ran(kernel=1)
        HookManager.register(LaunchHook(), 0)

        def failure(fails):
            try:
                k[(1,)](fails)
            except (KeyError, TypeError) as e:
                return e
        assert failure("launch_metadata") is mine
        assert proton.depth() == 0 and not launch.in_hook.get() and not launch.enabled.get()
        ran()
        error = failure("metric")
        assert isinstance(error, TypeError) and not launch.enabled.get()
        ran()
        assert failure("launch") is mine
        mine.__traceback__ = None  # it held the launch
        assert not launch.enabled.get()
        ran()
        assert failure("launch") is mine
        k[(1,)]("")  # the failed one is held still
        ran()
        mine.__traceback__ = None
        assert not launch.enabled.get()
        k[(1,)]("")
        ran()
    """)
    assert got == {"": {"ran": 5}, "/k": {"bytes": 4, "kernel": 2}}


def test_hooks_that_end_between_enter_and_exit(world):
    got = run(world, """
        @triton.jit
        def k(ends):
            ran(kernel=1)
            if ends == "session":
                HookManager.unregister()
            elif ends == "hooks":
                HookManager.deactivate()
            elif ends == "begins":
                HookManager.register(LaunchHook(), 1)
        for ends in ("session", "hooks"):
            HookManager.register(LaunchHook(), 0)
            k[(1,)](ends)
            ran()
        HookManager.unregister()
        k[(1,)]("begins")
        ran()
        assert HookManager.active_hooks
        k[(1,)]("")
    """)
    assert got == {"": {"ran": 3, "kernel": 1}, "/k": {"kernel": 3}}


def test_a_launch_that_another_callback_makes(world):
    got = run(world, """
        @triton.jit
        def inner():
            ran()
        @triton.jit(launch_metadata=lambda *args: {"bytes": 8})
        def outer():
            ran()
        HookManager.register(LaunchHook(), 0)
        busy = []
        def other(metadata):
            if not busy:
                busy.append(1)
                inner[(1,)]()
                busy.pop()
        runtime.launch_enter_hook.add(other)
        with proton.scope("s"):
            outer[(1,)]()
            ran(after=1)
        LaunchHook().configure(exclude="inner")
        with proton.scope("excluded"):
            outer[(1,)]()
            ran(after=1)
    """)
    assert got == {"/s/inner": {"ran": 1}, "/s/outer": {"bytes": 8}, "/s": {"ran": 1, "after": 1},
                   "/excluded/outer": {"bytes": 8, "ran": 2}, "/excluded": {"after": 1}}


def test_a_launcher_without_metadata(world):
    """Inductor's hand the chain None when it was empty as they were made."""
    assert run(world, """
        HookManager.register(LaunchHook(), 0)
        runtime.launch_enter_hook(None)
        ran()
        runtime.launch_exit_hook(None)
    """) == {"": {"ran": 1}}


@each_python
def test_launches_of_several_threads(world, python):
    got = run(world, """
        import threading
        ids, both = set(), threading.Barrier(2)
        def kernel(name):
            @triton.jit(launch_metadata=lambda *args: {"name": name})
            def fn():
                both.wait()
                ran()
                assert launch.op_name.get() == name
            return fn
        def loop(name):
            k = kernel(name)
            for _ in range(50):
                k[(1,)]()
                ids.add(launch.id.get())
                ran(after=1)
        HookManager.register(LaunchHook(), 0)
        ts = [threading.Thread(target=loop, args=(name,)) for name in ("foo_test", "bar_test")]
        [t.start() for t in ts], [t.join() for t in ts]
        assert len(ids) == 100
    """, python)
    assert got == {"/foo_test": {"ran": 50}, "/bar_test": {"ran": 50}, "": {"after": 100}}


def test_nothing_is_asked_while_nothing_is_recorded(world):
    alone(world, """
        @triton.jit(launch_metadata=lambda *args: raises(SystemExit))
        def k():
            said.append("launch")
        HookManager.register(LaunchHook(), 0)
        k[(1,)]()
        assert said == ["launch"] and launch.id.get() is None
    """)


@each_python
def test_tensors(world, python):
    got = run(world, """
        class Tensor:
            class device:
                type, index = "cuda", 1
            is_cuda, shape = True, ()
            def __init__(self, *values):
                self.values = values
            def data_ptr(self):
                return 1
            def double(self):
                return self
            def long(self):
                return self
            def is_floating_point(self):
                return True
            def is_complex(self):
                return False
            def numel(self):
                return len(self.values)
            def item(self):
                ran(read=1)
                return self.values[0]
            def flatten(self):
                return self
            def tolist(self):
                return list(self.values)
        class Host(Tensor):
            class device:
                type = "cpu"
        class torch:
            class cuda:
                capturing = False
                is_available = staticmethod(lambda: True)
                current_device = staticmethod(lambda: 0)
                @classmethod
                def is_current_stream_capturing(cls):
                    return cls.capturing
        sys.modules["torch"] = torch

        @triton.jit(launch_metadata=lambda *args: {"flops": Tensor(3), "bytes": Tensor(2.0), "m": Tensor(5),
                                                   "vector": Tensor(1, 2), "host": Host(7), "nan": float("nan")})
        def k():
            pass
        HookManager.register(LaunchHook(), 0)
        k[(1,)]()
        torch.cuda.capturing = True
        k[(1,)]()  # nothing on the GPU may be waited for; of another GPU than the graph's it cannot be read either

        from protond.metric import COMPUTE_METADATA_SCOPE_NAME, FLOPS_WIDTHS, set_metric_kernels
        from protond.metric import transform_tensor_metrics as transform
        assert FLOPS_WIDTHS == (8, 16, 32, 64) and COMPUTE_METADATA_SCOPE_NAME == "__proton_launch_metadata"
        assert set_metric_kernels() is None
        given = {"a": 1, "s": "x", "flops8": 2, "bytes": float("inf"), "t": Tensor(1.5), "bytes (exc)": 2.5}
        assert transform({**given, "h": Host(4)}) == ({k: v for k, v in given.items() if k != "t"}, {"h": 4, "t": given["t"]})
        torch.cuda.capturing = False
        scalars, tensors = transform({**given, "flops64": Tensor(1, 2)})
        assert tensors == {"t": 1.5, "flops64": [1.0, 2.0]} and type(tensors["flops64"][0]) is float
        assert type(scalars["flops8"]) is float and type(transform({"bytes": Tensor(2.0)})[1]["bytes"]) is int
    """, python)
    assert got["/k"] == {"flops": 3, "bytes": 2, "m": 5, "host": 14, "nan": "nan", "vector[0]": 1, "vector[1]": 2}
    assert got["/" + STATE] == {"read": 5}


def test_tensors_of_a_capture(world):
    """A kernel of ours is launched for them, below the state that viewers leave out; the operation around goes on."""
    run(world, """
        import ctypes
        from protond import _api, _captured
        calls, numbers = [], []
        class Native:
            def __getattr__(self, name):
                return getattr(_api._native, name)
            def captured(self, *what):
                numbers.append((*what, _api._native.op() == operation))
                return True
            def captured_ring(self, device):
                return 4096, 64 + 16 * 1024
        class Driver:
            def __call__(self, name, *args):
                calls.append(name)
                if name == "cuLaunchKernel":
                    words = [ctypes.cast(p, ctypes.POINTER(t)).contents.value for p, t in zip(
                        args[9], (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32))]
                    calls.append((*words, args[8].value, _api._native.op() == _captured._OP))
                if name == "cuMemHostGetDevicePointer_v2":
                    args[0]._obj.value = 5000
        class Tensor:
            is_cuda, shape = True, (3,)
            class device:
                type, index = "cuda", 0
            is_floating_point = is_complex = lambda self: False
            detach = contiguous = lambda self: self
            reshape = to = lambda self, *args: self
            numel = lambda self: 3
            data_ptr = lambda self: 77
        class One(Tensor):
            shape, numel = (1,), lambda self: 1
            is_floating_point = lambda self: True
        class torch:
            int64 = float64 = None
            class cuda:
                is_available = is_current_stream_capturing = staticmethod(lambda: True)
                current_device = staticmethod(lambda: 0)
                class current_stream:
                    cuda_stream = 9
        sys.modules["torch"] = torch
        _captured._native, _captured._Driver = Native(), Driver
        operation = _api._native.name("op")
        _api._native.op_enter("op")
        _api._native.metrics({"v (ns)": Tensor(), "one": One()})
        assert _api._native.op() == operation
        _api._native.op_exit()
        assert numbers == [("v[0] (ns)", True, 1, True), ("v[1] (ns)", True, 2, True), ("v[2] (ns)", True, 3, True),
                           ("one", False, 4, True)], numbers
        begin, relaxed = calls.index("cuLaunchKernel"), "cuThreadExchangeStreamCaptureMode"
        assert calls[:begin] == [relaxed, "cuModuleLoadData", "cuModuleGetFunction", "cuMemHostRegister_v2",
                                 "cuMemHostGetDevicePointer_v2"], calls
        assert calls[begin:] == ["cuLaunchKernel", (77, 5000, 1023, 1, 3, 9, True), relaxed,
                                 relaxed, "cuLaunchKernel", (77, 5000, 1023, 4, 1, 9, True), relaxed], calls
        Native.captured = lambda self, *what: False
        try:
            _api._native.metrics({"one": One()})
            raise SystemExit("it was taken")
        except TypeError as e:
            assert "its begin was not seen" in str(e)
    """)


# --- sessions -----------------------------------------------------------------------------------

@each_python
def test_sessions_with_the_hook(world, python):
    """What a program sees that calls start(hook="triton") itself; the tree that is stored."""
    world.start()
    alone(world, """
        @triton.jit(launch_metadata=lambda grid, metadata, args: {"name": "foo_test", "flops32": 1})
        def k():
            ran()
        session = proton.start("s", backend="none", hook="triton")
        assert calls() == [1, 1, 1]
        proton.activate(session), proton.activate(session)
        assert len(HookManager.active_hooks) == 1
        assert list(HookManager.session_hooks[session].values()) == [True]
        with proton.scope("test0"):
            k[(1,)]()
        proton.deactivate(session)
        assert list(HookManager.session_hooks[session].values()) == [False]
        assert HookManager.active_hooks == [] and calls() == [0, 0, 0]
        k[(1,)]()
        proton.activate(session)
        k[(1,)]()
        hook = Says("mine", 200)
        other = proton.start("other", backend="none", hook=hook)
        assert HookManager.active_hooks == [hook, LaunchHook()]
        proton.finalize()
        assert calls() == [0, 0, 0] and not HookManager.session_hooks
        raises(ValueError, lambda: proton.start("s", backend="none", hook="unknown"))
    """, python)
    got = {k: v[1] for k, v in metrics(world, "s").items()}
    assert got == {("/test0/foo_test", "ran"): 1, ("/test0/foo_test", "flops32"): 1, ("/foo_test", "ran"): 1,
                   ("/foo_test", "flops32"): 1}


# --- flags and modes ----------------------------------------------------------------------------

@each_python
def test_modes(world, python):
    alone(world, """
        from protond import mode
        import dataclasses, pickle
        assert str(mode.PCSampling()) == "pcsampling:interval=1000" == str(mode.PCSampling(interval=1000))
        assert str(mode.PeriodicFlushing()) == "periodic_flushing:format=hatchet"
        assert str(mode.PeriodicFlushing("chrome_trace")) == "periodic_flushing:format=chrome_trace"
        assert str(mode.BaseMode("mine")) == "mine" and mode.BaseMode("a") == mode.BaseMode("a")
        assert str(mode.Default()) == (
            "default:metric_type=METRIC_TYPE.CYCLE:sampling_strategy=SAMPLING_STRATEGY.NONE:sampling_options="
            ":granularity=GRANULARITY.WARP:buffer_strategy=BUFFER_STRATEGY.CIRCULAR:buffer_type=BUFFER_TYPE.SHARED"
            ":buffer_size=0:optimizations=")
        m = mode.MMA(granularity="warp_group_2", buffer_type=mode.BUFFER_TYPE.GLOBAL, buffer_size=4096,
                     sampling_strategy="selective", sampling_options="0,1", buffer_strategy="flush",
                     optimizations="time_shift, clock32")
        assert str(m) == (
            "mma:metric_type=METRIC_TYPE.CYCLE:sampling_strategy=SAMPLING_STRATEGY.SELECTIVE:sampling_options=0,1"
            ":granularity=GRANULARITY.WARP_GROUP_2:buffer_strategy=BUFFER_STRATEGY.FLUSH"
            ":buffer_type=BUFFER_TYPE.GLOBAL:buffer_size=4096:optimizations=time_shift,clock32")
        assert m.optimizations == [mode.Optimize.TIMESHIFT, mode.Optimize.CLOCK32]
        assert pickle.loads(pickle.dumps(m)) == m
        assert isinstance(m, mode.InstrumentationMode) and isinstance(m, mode.BaseMode)
        for wrong in (0, -1):
            raises(ValueError, lambda: mode.PCSampling(wrong))
        for kind in (mode.Default, mode.MMA):
            for field in ("metric_type", "sampling_strategy", "granularity", "buffer_strategy", "buffer_type"):
                for value in ("nonsense", "", 5):
                    assert raises(ValueError, lambda: kind(**{field: value})) == f"Unknown {field}: {value}"
            for value in ("nonsense", "clock32,nonsense", ["nonsense"]):
                assert raises(ValueError, lambda: kind(optimizations=value)) == "Unknown optimization: nonsense"
        assert raises(ValueError, lambda: mode.PeriodicFlushing("xls")) == "Unknown format: xls"
        raises(dataclasses.FrozenInstanceError, lambda: setattr(m, "buffer_size", 1))
        raises(TypeError, lambda: mode.PCSampling(name="x"))

        from protond.flags import flags
        assert (flags.profiling_on, flags.instrumentation_on, flags.command_line) == (False, False, False)
    """, python)
