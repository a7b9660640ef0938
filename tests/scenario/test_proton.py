# SPDX-License-Identifier: MIT. A program that was written for Triton's Proton, with one import changed.
import glob
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import pytest

from conftest import WAIT, until
from test_python import PYTHONS, STANDIN, job, python_env

pytestmark = pytest.mark.preload


def run(world, code, *words, env={}, paths=(), check=True):
    """Standard output of a program that starts its own sessions; its files lie in world.home."""
    e = {k: v for k, v in python_env(world, *paths, **env).items() if k != "PROTOND_TOKEN"}
    r = subprocess.run([sys.executable, *words, job(world, "import protond as proton\n" + textwrap.dedent(code))],
                       env=e, cwd=world.home, capture_output=True, text=True, timeout=WAIT * 4)
    assert not check or r.returncode == 0, r.stderr
    return r.stdout if check else r


def tree(path):
    """{path: metrics} of a .hatchet file."""
    found = {}

    def walk(node, above):
        for c in node["children"]:
            p = above + "/" + c["frame"]["name"]
            found[p] = c["metrics"]
            walk(c, p)
    walk(json.loads(path.read_text())[0], "")
    return found


def errors(world, *calls):
    """["ValueError: words", ...] of calls that fail."""
    code = "".join(f"""
try: {call}; print("nothing")
except Exception as e: print(", ".join(c.__name__ for c in type(e).__mro__[:-3]), "|", e)
""" for call in calls)
    return run(world, "import protond.data\n" + code).splitlines()


@pytest.mark.parametrize("call, kind, words", [
    ("proton.start(context='nope')", "ValueError", "Unknown context source: nope"),
    ("proton.start(data='nope')", "ValueError", "Unknown data: nope"),
    ("proton.start(data='tree', mode='periodic_flushing:format=chrome_trace')", "ValueError", "unsupported format: chrome_trace"),
    ("proton.start(backend='nope')", "ValueError", "Unknown profiler: nope"),
    ("proton.start(backend='cupti_pcsampling')", "ValueError", "PC sampling is not recorded by protond yet"),
    ("proton.start(mode='pcsampling:interval=10')", "ValueError", "unsupported mode: pcsampling"),
    ("proton.start(mode=proton.mode.PCSampling())", "ValueError", "unsupported mode: pcsampling"),
    ("proton.start(backend='instrumentation')", "ValueError", "unsupported mode: instrumentation"),
    ("proton.start(mode='periodic_flushing:fmt=hatchet')", "ValueError", "unsupported option key: fmt"),
    ("proton.start(mode='periodic_flushing:format=x')", "ValueError", "unsupported format: x"),
    ("proton.start(hook='nope')", "ValueError", "Unsupported hook: nope"),
    ("proton.activate(7)", "IndexError", "Session has not been initialized: 7"),
    ("proton.deactivate(7)", "RuntimeError", "Session has not been initialized: 7"),
    ("proton.data.get(7)", "IndexError", "Session has not been initialized: 7"),
    ("proton.finalize(output_format='nope')", "ValueError", "Unknown output format: nope"),
    ("proton.start(), proton.finalize(output_format='chrome_trace')", "ValueError", "Output format not supported: chrome_trace"),
    ("proton.cpu_timed_scope('a', {'cpu_time': 1})", "ValueError", "The metric name 'cpu_time' is reserved."),
])
def test_errors_are_those_of_proton(world, call, kind, words):
    line, = errors(world, call)
    found, _, text = line.partition(" | ")
    assert kind in found and words in text, line


def test_a_refused_start_leaves_nothing_behind(world):
    """Proton's unknown hook raises after its session began, which then goes on."""
    out = run(world, """
        try: proton.start("s", backend="none", hook="nope")
        except ValueError: pass
        print(proton._api._sessions, proton.recording())
        proton.finalize(99)  # unknown: ignored
        """)
    assert out == "{} 0\n" or out == "{} False\n", out


def test_phases_are_read_and_written_by_themselves(world):
    out = run(world, """
        from protond import data
        s = proton.start("s", backend="none")
        names = lambda p: [c["frame"]["name"] for c in data.get(s, p)[0]["children"]]
        for phase in range(4):
            with proton.scope(f"p{phase}", {"n": phase}): pass
            assert names(phase) == [f"p{phase}"], names(phase)
            assert not data.is_phase_complete(s, phase)
            if phase < 3: assert data.advance_phase(s) == phase + 1
        assert data.is_phase_complete(s, 2) and not data.is_phase_complete(s, 3)
        data.clear(s, 1, clear_up_to_phase=True)
        data.clear(s, 3)
        for gone in (0, 1, 4):
            try: data.get(s, gone); print("there")
            except proton.Error as e: print(e)
        print(names(3))
        with proton.scope("again"): pass
        print(names(2), names(3), data.get(None))
        proton.finalize(s)
        """)
    assert out.splitlines() == ["Phase 0 has no data.", "Phase 1 has no data.", "Phase 4 has no data.", "[]",
                                "['p2'] ['again'] None"]
    assert sorted(p.name for p in world.home.glob("s.*hat*")) == ["s.part_2.hatchet", "s.part_3.hatchet"]
    assert set(tree(world.home / "s.part_2.hatchet")) == {"/p2"}
    assert set(tree(world.home / "s.part_3.hatchet")) == {"/again"}
    assert {f"/p{i}" for i in range(4)} < set(world.cells("s")), "the daemon remembers what was cleared"


def test_the_longest_names_of_parts(world):
    name = "l" * (255 - len(".part_0.hatchet"))
    run(world, f"""
        s = proton.start("{name}", backend="none")
        with proton.scope("a"): pass
        proton.data.advance_phase(s)
        with proton.scope("b"): pass
        proton.finalize(s)
        """)
    assert sorted(p.name for p in world.home.glob("l*")) == [f"{name}.part_{i}.hatchet" for i in range(2)]


def test_a_scope_over_two_phases_counts_where_it_ends(world):
    out = run(world, """
        from protond import data
        s = proton.start("s", backend="none")
        proton.enter_scope("over")
        with proton.scope("first"): pass
        data.advance_phase(s)
        with proton.cpu_timed_scope("second"): pass
        proton.exit_scope("over", metrics={"n": 3})
        flat = lambda n: {n["frame"]["name"]: n["metrics"], **{k: v for c in n["children"] for k, v in flat(c).items()}}
        one, two = (flat(data.get(s, p)[0]) for p in (0, 1))
        print(sorted(one), one["over"].get("calls"), sorted(two), two["over"]["calls"], two["over"]["n"], "n" in one["over"])
        proton.finalize()
        """)
    assert out.strip() == "['ROOT', 'first', 'over'] None ['ROOT', 'over', 'second'] 1 3 False", out


def test_periodic_flushing_writes_parts_while_it_goes_on(world):
    out = run(world, """
        import os, pathlib, time
        s = proton.start("s", backend="none", mode="periodic_flushing:format=hatchet_msgpack")
        from protond import data
        for phase in range(3):
            with proton.scope(f"p{phase}"): pass
            data.advance_phase(s)
        end = time.monotonic() + 20
        while len(list(pathlib.Path().glob("s.part_*.hatchet_msgpack"))) < 3 and time.monotonic() < end: os.sched_yield()
        print(sorted(p.name for p in pathlib.Path().glob("s.*hat*")))
        proton.finalize(output_format="hatchet_msgpack")
        """)
    assert out.strip() == str([f"s.part_{i}.hatchet_msgpack" for i in range(3)])
    assert (world.home / "s.part_3.hatchet_msgpack").exists() and not (world.home / "s.hatchet").exists()


def test_thousands_of_names_under_one_parent(world):
    """What has a number in its name, one name an iteration, with a phase now and then: none of it is (other)."""
    run(world, """
        s = proton.start("s", backend="none", mode="periodic_flushing")
        for i in range(5000):
            if i and i % 1000 == 0: proton.data.advance_phase(s)
            with proton.scope(f"test_{i}", {"count": 1}): pass
        proton.finalize()
        """)
    for part in range(5):
        assert set(tree(world.home / f"s.part_{part}.hatchet")) == {f"/test_{i}" for i in range(part * 1000, part * 1000 + 1000)}


NVTX = glob.glob("/usr/local/cuda*/include/nvtx3/nvToolsExt.h")


@pytest.mark.skipif(not NVTX, reason="no header of NVTX here")
@pytest.mark.parametrize("env, named", [({}, True), ({"TRITON_ENABLE_NVTX": "0"}, False), ({"NVTX_INJECTION64_PATH": "/no/such"}, False)])
def test_nvtx_ranges_in_a_session_of_the_programs_own(world, env, named):
    """No variable was set before the program began: start() names the library, and NVTX asks at its first range."""
    (world.home / "x.c").write_text("#include <nvtx3/nvToolsExt.h>\n"
                                    "int push(const char *s) { return nvtxRangePushA(s); }\nint pop(void) { return nvtxRangePop(); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-I", pathlib.Path(NVTX[0]).parents[1], "x.c", "-o", "x.so", "-ldl"], cwd=world.home, check=True)
    run(world, """
        import ctypes
        proton.start("s", backend="none")
        x = ctypes.CDLL("./x.so")
        with proton.scope("a"):
            x.push(b"outer"); x.push(b"inner"); x.pop(); x.pop()
        proton.finalize()
        """, env=env)
    assert ("/a/outer/inner" in tree(world.home / "s.hatchet")) == named


@pytest.mark.skipif(not any(pathlib.Path(f).with_name("nvToolsExtPayload.h").exists() for f in NVTX), reason="no header of NVTX's payloads here")
def test_nvtx_ranges_that_end_with_a_payload(world):
    """NCCL pushes a range as anybody does, and pops it with its payload: the next one stands beside it."""
    (world.home / "x.c").write_text("#include <nvtx3/nvToolsExt.h>\n#include <nvtx3/nvToolsExtPayload.h>\n"
                                    "int push(const char *s) { return nvtxRangePushA(s); }\n"
                                    "int pop(void) { nvtxPayloadData_t p = {0}; return nvtxRangePopPayload(0, &p, 1); }\n"
                                    "int both(void) { return nvtxRangePushPayload(0, 0, 0) + nvtxRangePopPayload(0, 0, 0); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-I", pathlib.Path(NVTX[0]).parents[1], "x.c", "-o", "x.so", "-ldl"], cwd=world.home, check=True)
    run(world, """
        import ctypes
        proton.start("s", backend="none")
        x = ctypes.CDLL("./x.so")
        with proton.scope("a"):
            x.push(b"one"); x.pop(); x.push(b"two"); x.both(); x.pop()
            with proton.scope("b"): pass
        proton.finalize()
        """)
    assert {"/a/one", "/a/two", "/a/b"} <= set(tree(world.home / "s.hatchet")), tree(world.home / "s.hatchet")


@pytest.mark.skipif(not NVTX, reason="no header of NVTX here")
def test_nvtx_ranges_by_session(world):
    """TRITON_ENABLE_NVTX is asked at each start()."""
    (world.home / "x.c").write_text("#include <nvtx3/nvToolsExt.h>\n"
                                    "int push(const char *s) { return nvtxRangePushA(s); }\nint pop(void) { return nvtxRangePop(); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-I", pathlib.Path(NVTX[0]).parents[1], "x.c", "-o", "x.so", "-ldl"], cwd=world.home, check=True)
    run(world, """
        import ctypes, os
        for i, on in enumerate((None, "1", "0", None)):
            os.environ.pop("TRITON_ENABLE_NVTX", None) if on is None else os.environ.update(TRITON_ENABLE_NVTX=on)
            proton.start(f"s{i}", backend="none")
            x = ctypes.CDLL("./x.so")
            with proton.scope("a"):
                x.push(b"outer"); x.push(b"inner"); x.pop(); x.pop()
                with proton.scope("b"): pass
            proton.finalize()
        """)
    for i, named in enumerate((True, True, False, True)):
        assert set(tree(world.home / f"s{i}.hatchet")) == {"/a", "/a/b"} | ({"/a/outer", "/a/outer/inner"} if named else set())


def test_a_part_that_was_written_can_be_read_still(world):
    out = run(world, """
        import os
        s = proton.start("s", backend="none", mode="periodic_flushing")
        with proton.scope("first"): pass
        proton.data.advance_phase(s)
        while not os.path.exists("s.part_0.hatchet"): os.sched_yield()
        print([c["frame"]["name"] for c in proton.data.get(s, 0)[0]["children"]])
        proton.data.clear(s, 0)
        try: proton.data.get(s, 0)
        except proton.Error as e: print(e)
        os.remove("s.part_0.hatchet")
        proton.finalize()  # does not write it again
        print(sorted(n for n in os.listdir() if n.endswith(".hatchet")))
        """)
    assert out.splitlines() == ["['first']", "Phase 0 has no data.", "['s.part_1.hatchet']"]


def test_profile_as_a_context_manager(world):
    out = run(world, """
        with proton.profile(name="s", backend="none") as s:
            with proton.scope("in it"): pass
        with proton.scope("not in it"): pass
        @proton.profile(name="s", backend="none")
        def function():
            with proton.scope("in the function"): return s
        print(s, function())
        with proton.scope("not in it"): pass
        proton.finalize()
        """)
    assert out == "0 0\n" and set(tree(world.home / "s.hatchet")) == {"/in it", "/in the function"}


def test_profile_says_where_a_name_goes(world):
    out = run(world, """
        try: proton.profile("s")
        except TypeError as e: print(e)
        """)
    assert out == "profile() takes a function; write profile(name='s')\n"


def test_a_scope_knows_its_number(world):
    out = run(world, """
        one, two = proton.scope("one"), proton.scope("two")
        with one: print(one.id)
        proton.start("s", backend="none")
        with one, two: print(two.id - one.id)
        print(proton.enter_scope("three") - two.id, proton.exit_scope() - two.id)
        with one: print(one.id - two.id)
        proton.finalize()
        """)
    assert out.splitlines() == ["None", "1", "1 1", "2"]


def test_debug_logging_says_what_is_done(world):
    r = run(world, """
        import logging
        logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s %(message)s")
        s = proton.start("s", backend="none")
        proton.deactivate(s, flushing=True)
        proton.activate()
        proton.data.advance_phase(s)
        proton.finalize()
        """, check=False)
    assert r.returncode == 0 and [line for line in r.stderr.splitlines() if line.startswith("DEBUG protond ")] == [
        "DEBUG protond session 0, s: begins (context shadow, data tree, backend none, mode None, hook None)",
        "DEBUG protond deactivated, flushed: session 0", "DEBUG protond activated: all sessions",
        "DEBUG protond session 0, s: phase 1 begins", "DEBUG protond session 0, s: ends; to be written: hatchet",
        "DEBUG protond session 0, s: s.part_0.hatchet is written", "DEBUG protond session 0, s: s.part_1.hatchet is written"], r.stderr


def test_periodic_flushing_loses_no_part_at_the_end(world):
    run(world, """
        from protond import data
        for i in range(8):
            s = proton.start(f"s{i}", backend="none", mode="periodic_flushing")
            for phase in range(9):
                with proton.scope(f"p{phase}"): pass
                data.advance_phase(s)
            proton.finalize(s)
        """)
    for i in range(8):
        parts = {p.name for p in world.home.glob(f"s{i}.part_*.hatchet")}
        assert parts == {f"s{i}.part_{phase}.hatchet" for phase in range(10)}, i
        assert set(tree(world.home / f"s{i}.part_4.hatchet")) == {"/p4"}


def test_threads_and_hooks_that_raise_end_every_session(world):
    out = run(world, """
        import threading
        from protond.hooks import Hook
        class Bad(Hook):
            needs_triton = False
            def activate(self): pass
            def deactivate(self): raise KeyError("bad")
        proton.start("bad", backend="none", hook=Bad())
        for name in "ab": proton.start(name, backend="none")
        try: proton.finalize()
        except KeyError as e: print("said", e)
        failed = []
        def end(s):
            try: proton.finalize(s)
            except BaseException as e: failed.append(e)
        for i in range(10):
            s = proton.start(f"t{i}", backend="none")
            threads = [threading.Thread(target=end, args=(s,)) for _ in range(4)]
            for t in threads: t.start()
            for t in threads: t.join()
        s = proton.start("kept", backend="none")
        try: proton.start("kept", backend="none", hook="triton")
        except proton.Error as e: print("refused")
        proton.finalize(s)
        print(failed)
        """)
    assert out.splitlines() == ["said 'bad'", "refused", "[]"]
    assert {p.name for p in world.home.glob("*.hatchet")} == {
        "bad.hatchet", "a.hatchet", "b.hatchet", "kept.hatchet", *(f"t{i}.hatchet" for i in range(10))}


def test_a_fork_while_another_thread_looks(world):
    """A child has no session, and must not wait for the parent's threads."""
    out = run(world, """
        import os, threading
        from protond import data
        s, ends = proton.start("s", backend="none"), threading.Event()
        def look():
            while not ends.is_set(): data.get(s)
        t = threading.Thread(target=look); t.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                proton.deactivate()
                os._exit(7 if proton.depth() == 0 else 1)
            assert os.waitpid(child, 0)[1] == 7 << 8
        ends.set(); t.join()
        proton.finalize()
        print("done")
        """)
    assert out == "done\n"


def test_timelines(world):
    """A trace has its tree, too; of a phase there is a part; "both" writes both."""
    run(world, """
        import os, protond.data
        with proton.scope("before"):
            pass
        t, b = proton.start("t", backend="none", data="trace"), proton.start("b", backend="none", data="both")
        with proton.scope("first"), proton.scope("inner", metrics={"flops": 3}):
            pass
        assert protond.data.get(t)[0]["children"][0]["frame"]["name"] == "first"
        proton.data.advance_phase(t)
        with proton.scope("second", metrics={"bytes": 5}):
            pass
        with proton.scope("open"):
            proton.finalize()
        written = sorted(n for n in os.listdir() if n.endswith(("_trace", ".hatchet")))
        assert written == ["b.chrome_trace", "b.hatchet", "t.part_0.chrome_trace", "t.part_1.chrome_trace"], written
        p = proton.start("p", backend="none", data="trace", mode="periodic_flushing")
        with proton.scope("one"):
            pass
        proton.data.advance_phase(p)
        while not os.path.exists("p.part_0.chrome_trace"):
            pass
        proton.finalize(p, "hatchet")
        assert os.path.exists("p.part_1.hatchet")
        """)

    def scopes(name):
        events = json.loads((world.home / name).read_text())["traceEvents"]
        return {e["name"]: e["args"].get("metrics") for e in events if e.get("cat") == "scope"}
    assert scopes("t.part_0.chrome_trace") == {"first": None, "inner": {"flops": 3}}
    assert scopes("t.part_1.chrome_trace") == {"second": {"bytes": 5}, "open": None}
    assert scopes("b.chrome_trace") == {"first": None, "inner": {"flops": 3}, "second": {"bytes": 5}, "open": None}
    for part in ("t.part_0", "t.part_1", "b"):  # another phase's metrics would stand alone
        assert '"ph":"i"' not in (world.home / f"{part}.chrome_trace").read_text()
    assert scopes("p.part_0.chrome_trace") == {"one": None}
    assert set(tree(world.home / "b.hatchet")) == {"/first", "/first/inner", "/second", "/open"}


def test_msgpack_is_the_same_tree(world):
    pytest.importorskip("msgpack")
    out = run(world, """
        import msgpack
        from protond import data
        s = proton.start("s", backend="none")
        for i in range(300):
            with proton.scope(f"a{i}", {"n": i, "f": 0.5, "big": 2**62, "minus": -i}):
                with proton.scope("b" * i + "ü"): pass
        proton.deactivate(s)  # so that nothing changes between the two
        one, two = data.get(s), msgpack.unpackb(data.get_msgpack(s), raw=False, strict_map_key=False)
        print(one == two, len(one[0]["children"]))
        proton.finalize(output_format="hatchet_msgpack")
        print(msgpack.unpackb(open("s.hatchet_msgpack", "rb").read(), raw=False)[0] == two[0])
        """)
    assert out == "True 300\nTrue\n"


def test_data_of_a_session_that_was_killed_meanwhile(world):
    """The daemon dies between two looks: the second one asks the next daemon."""
    world.start()
    code = """
        from protond import data
        s = proton.start("s", backend="none")
        with proton.scope("a"): pass
        print(len(data.get(s)[0]["children"]), flush=True)
        input()
        with proton.scope("b"): pass
        print([c["frame"]["name"] for c in data.get(s)[0]["children"]])
        """
    p = subprocess.Popen([sys.executable, job(world, "import protond as proton\n" + textwrap.dedent(code))],
                         env=python_env(world), cwd=world.home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "1\n"
    world.stop(signal.SIGKILL)
    world.start()
    out, _ = p.communicate("\n", timeout=WAIT * 2)
    assert out == "['a', 'b']\n"


def test_to_standard_output(world):
    out = run(world, """
        print("before")
        s = proton.start("-", backend="none")
        with proton.scope("a"): pass
        proton.finalize()
        print("after")
        """)
    first, rest = out.split("\n", 1)
    body, last = rest.rstrip("\n").rsplit("\n", 1)
    assert (first, last) == ("before", "after") and json.loads(body)[0]["children"][0]["frame"]["name"] == "a"


def test_a_missing_directory_is_said(world):
    r = run(world, "proton.start('no/such/s', backend='none')\nproton.finalize()", check=False)
    assert r.returncode != 0 and "no/such/s.hatchet" in r.stderr, r.stderr
    assert world.state("no/such/s") == "finalized", "and nothing is lost: the daemon has it"


def test_depth_ops_and_metadata_state(world):
    out = run(world, """
        print(proton.context.depth(), proton.start("s", backend="none"))
        a = proton.enter_scope("a")
        b = proton.enter_scope("op", triton_op=True, metrics={"flops": 2.0})
        print(b - a, proton.context.depth(0))
        try: proton.exit_scope("a")
        except ValueError as e: print(e)
        with proton.metadata_state("k"), proton.cpu_timed_scope("inside"): pass
        from protond import _native
        with proton.state("outer"), proton.metadata_state("k"):
            _native.metrics({"n": 1})
            with proton.state("other"): _native.metrics({"n": 2})
            _native.metrics({"n": 4})
        proton.exit_scope("a")
        print(proton.context.depth())
        proton.finalize()
        """)
    assert out.splitlines() == ["None 0", "1 1", "Scope name mismatch: a != op", "0"]
    found = tree(world.home / "s.hatchet")
    assert found["/a/op"]["flops"] == 2.0
    assert any("inside" in p for p in found)
    of_n = {p: m["n"] for p, m in found.items() if "n" in m}
    assert of_n == {"/a/__proton_launch_metadata/k": 5, "/a/other": 2}, of_n


def test_vectors_are_lists(world):
    out = run(world, """
        class Array:  # as NumPy's and torch's
            shape = (2, 2)
            def reshape(self, n): assert n == -1; return self
            def tolist(self): return [1, 2, 3, 4]
        open("s.hatchet", "w").write("an older one, which is overwritten, as Proton does")
        proton.start("s", backend="none")
        for _ in range(2):
            with proton.scope("a", {"v (bytes)(exc)": [1, 2.5], "w": (7,), "t": Array()}): pass
        for wrong in ([], [1] * 65, ["x"], [[1]]):
            try:
                with proton.scope("wrong", {"v": wrong}): print("entered")
            except TypeError as e: print(e)
        print(proton.depth())
        proton.finalize()
        """)
    assert out.splitlines() == ["metric 'v': 0 values: a vector has 1 to 64", "metric 'v': 65 values: a vector has 1 to 64",
                                "metric 'v': a vector of str: of int and float it may be",
                                "metric 'v': a vector of list: of int and float it may be", "0"]
    got = tree(world.home / "s.hatchet")["/a"]
    assert {k: v for k, v in got.items() if isinstance(v, list)} == {"v (bytes)": [2, 5.0], "w": [14], "t": [2, 4, 6, 8]}
    assert {"v[0] (bytes)", "v[1] (bytes)", "t[3]"} <= {row[0] for row in world.sql("SELECT name FROM metric")}
    world.view("tree", "s.hatchet", "-m", "calls")
    world.view("export", "s", "-f", "hatchet_msgpack", "-o", "s.hatchet_msgpack")
    assert world.view("tree", "s.hatchet_msgpack").stdout == world.view("tree", "s.hatchet").stdout


def test_disabled(world):
    out = run(world, """
        s = proton.start("s", hook="triton")
        with proton.scope("a", {"n": 1}): pass
        print(s, proton.data.get(s), proton.enter_scope("x"), proton.exit_scope())
        proton.activate(); proton.deactivate(); proton.finalize()
        """, env={"TRITON_PROTON_DISABLE": "1"})
    assert out == "None None None None\n" and not list(world.home.glob("*.hatchet"))


# --- the command line ---------------------------------------------------------------------------

SCRIPT = """
import sys
print(sys.argv[1:], __name__, proton.start("mine"))
with proton.scope("kept"): pass
proton.deactivate()
with proton.scope("not kept"): pass
proton.activate(0)
try: proton.activate(3)
except ValueError as e: print(e)
proton.finalize()  # ends nothing: the command line does
with proton.scope("late"): pass
"""


@pytest.mark.parametrize("end, status", [("", 0), ("sys.exit(3)", 3), ("raise KeyError('x')", 1), ("sys.exit('bad')", 1)])
def test_python_m_protond(world, end, status):
    r = run(world, SCRIPT + end, "-m", "protond", "-n", "cli", "-b", "none", check=False)
    assert r.returncode == status, r.stderr
    assert r.stdout.splitlines()[0].endswith("__main__ None")
    assert "Only one session can be activated when running from the command line." in r.stdout
    assert set(tree(world.home / "cli.hatchet")) == {"/kept", "/late"}
    assert not (world.home / "mine.hatchet").exists()
    assert ("KeyError" in r.stderr) == ("KeyError" in end) and ("bad" in r.stderr) == ("bad" in end)


def test_python_m_protond_disabled(world):
    (world.home / "s.py").write_text("import protond\nprotond.deactivate(0); protond.activate(0)\nprint(protond.data.get(0))")
    r = subprocess.run([sys.executable, "-m", "protond", "s.py"], env=python_env(world, PROTOND_DISABLE="1"), cwd=world.home,
                       capture_output=True, text=True, timeout=WAIT)
    assert (r.returncode, r.stdout) == (0, "None\n"), r.stderr


def test_python_m_protond_without_the_script(world):
    r = subprocess.run([sys.executable, "-m", "protond", "-b", "none", "nothere.py"], env=python_env(world), cwd=world.home,
                       capture_output=True, text=True, timeout=WAIT)
    assert r.returncode == 1 and r.stderr.startswith("protond: nothere.py is no file"), r.stderr


def test_python_m_protond_pytest(world):
    (world.home / "test_x.py").write_text("import protond\ndef test_a():\n    with protond.scope('in a test'): pass\n")
    r = subprocess.run([sys.executable, "-m", "protond", "-n", "t", "-b", "none", "pytest", "-q", "-p", "no:cacheprovider",
                        "test_x.py"], env=python_env(world), cwd=world.home, capture_output=True, text=True, timeout=WAIT * 4)
    assert r.returncode == 0 and "1 passed" in r.stdout, r.stdout + r.stderr
    assert "/in a test" in tree(world.home / "t.hatchet")


AS_PROTON = """
import triton.profiler as proton
import triton.profiler.hooks, triton.profiler.viewer as viewer
from triton.profiler.state import COMPUTE_METADATA_SCOPE_NAME
import proton as other
from triton.profiler import mode, specs
import protond
print(proton is protond is other, viewer is protond.viewer, mode is protond.mode, COMPUTE_METADATA_SCOPE_NAME)
print(protond.__name__, protond.__spec__.name)
from triton.profiler.profile import start
import triton.profiler.scope, proton.hook
s = start("own", backend="none")
with proton.scope("a"), proton.state("still a class"): pass
proton.finalize()
"""


@pytest.mark.parametrize("hook", ["none", "torch"])
def test_as_proton(world, hook):
    program = world.home / "p.py"
    program.write_text(AS_PROTON)
    r = world.ctl("run", "--as-proton", "-k", hook, "-b", "none", "-n", "s", "--", sys.executable, program,
                  env=dict(world.env, PYTHONPATH=str(STANDIN), PYTHONDONTWRITEBYTECODE="1"))
    assert r.stdout.splitlines()[:2] == ["True True True __proton_launch_metadata", "protond protond"], r.stderr
    assert pathlib.Path(world.home, "own.hatchet").exists() or os.path.exists("own.hatchet")


def as_proton(world, code, *words, run=(), check=True, env={}):
    """Standard output of a program that imports Triton's Proton, which is the stand-in's 3.6, and gets protond."""
    program = world.home / "p.py"
    program.write_text("import json\nimport triton\nimport triton.profiler as proton\n" + textwrap.dedent(code))
    r = world.ctl("run", "--as-proton", "-k", "none", "-b", "none", "-n", "run", "-q", *run, "--", sys.executable,
                  *(words or (program,)), check=check,
                  env=dict(world.env, PYTHONPATH=str(STANDIN), PYTHONDONTWRITEBYTECODE="1", **env))
    return r.stdout if check else r


def test_files_under_protons_name_hold_what_protons_do(world):
    """No calls, no cpu_time; the program's own numbers by the names that Proton keeps."""
    pytest.importorskip("msgpack")
    out = as_proton(world, """
        import msgpack
        s = proton.start("s", backend="none")
        with proton.scope("a", {"x (inc)": 1.0, "n (ns)(exc)": 2, "odd": float("nan"), "v": [1, 2]}):
            with proton.cpu_timed_scope("b"): pass
        with proton.scope("empty"): pass
        live = proton.data.get(s)
        assert live == msgpack.unpackb(proton.data.get_msgpack(s), raw=False) or live[0]["children"][0]["metrics"]["odd"] is None
        proton.finalize()
        print(json.load(open("s.hatchet")) == live)
        """, run=("-o", world.home / "run.hatchet"))
    assert out == "True\n"
    for file in "s", "run":
        got = tree(world.home / f"{file}.hatchet")
        assert got.pop("/a/b").keys() == {"cpu_time (ns)"}
        assert got == {"/a": {"x (inc)": 1.0, "n (ns)": 2, "odd": None, "v": [1, 2]}, "/empty": {}}
    assert json.loads((world.home / "s.hatchet").read_text())[0]["metrics"] == {"odd": 0, "x (inc)": 0}
    assert "calls" in world.view("tree", "s", "-l").stdout, "what is stored is all there is"
    (world.home / "plain").mkdir()
    run(world, "proton.start('plain/s', backend='none')\nwith proton.scope('a', {'x (inc)': 1}): pass\nproton.finalize()")
    assert {"calls", "x"} < tree(world.home / "plain/s.hatchet")["/a"].keys()


def test_vectors_of_two_lengths_under_protons_name(world):
    code = """
        s = proton.start("s", backend="none")
        for name, value in (("a", [1, 2]), ("a", (3, 4)), ("b", [1]), ("a", [5]), ("a", [1, 2, 3])):
            try:
                with proton.scope(name, {"v": value}): pass
            except Exception as e: print(e)
        proton.finalize()
        """
    refused = "Vector metric size mismatch: metric 'v' has another length here already"
    assert as_proton(world, textwrap.dedent(code)).splitlines() == [refused] * 2
    assert tree(world.home / "s.hatchet") == {"/a": {"v": [4, 6]}, "/b": {"v": [1]}}


def test_a_property_that_is_nan(world):
    run(world, """
        proton.start("s", backend="none")
        with proton.scope("a", {"n (pty)": float("nan"), "text (pty)": "nan", "sum": float("nan")}): pass
        proton.finalize()
        """)
    got = tree(world.home / "s.hatchet")["/a"]
    assert got["n"] is None and got["text"] == "nan" and got["sum"] is None


def test_refusals_under_protons_name(world):
    """A metric keeps its type where it stands, in a session and a phase; sessions share one mode."""
    code = """
        def said(*calls):
            for call in calls:
                try: call(); print("fine")
                except Exception as e: print(type(e).__mro__[-3].__name__, "|", e)
        def scope(value, name="a", **more):
            with proton.scope(name, {"m (exc)": value}, **more): pass
        s = proton.start("s", backend="none")
        said(lambda: scope(1), lambda: scope(1), lambda: scope(1.0), lambda: scope(2.0, "b"))
        proton.data.advance_phase(s)
        said(lambda: scope(1.0), lambda: scope("text", "c"), lambda: proton.start("t", backend="none", mode="periodic_flushing"),
             lambda: proton.start("s", mode="periodic_flushing"))
        proton.deactivate(s)
        """
    assert as_proton(world, textwrap.dedent(code) + "proton.finalize()\n").splitlines() == [
        "fine", "fine", "Exception | Metric value type mismatch for valueId 0 (m): current=uint64_t, new=double", "fine",
        "fine", "fine", "Exception | Cannot add a session with the same profiler but a different mode than existing sessions: "
        "finalize them first", "fine"]
    got = tree(world.home / "s.part_1.hatchet")
    assert got == {"/a": {"m": 1.0}, "/c": {"m": "text"}}
    later = as_proton(world, "triton.__version__ = '3.8.0'\n" + textwrap.dedent(code)).splitlines()
    assert later[2].endswith("(m): current=int64_t, new=double") and later[5].startswith("Exception | metric 'm (exc)': text"), later


def test_the_command_under_protons_name(world):
    """python -m triton.profiler.proton, which is what the command `proton` of Triton runs."""
    (world.home / "s.py").write_text("import triton.profiler as p\nwith p.scope('a'): pass\nprint(p.start('no'))\n")
    out = as_proton(world, "", "-m", "triton.profiler.proton", "-n", "cli", "-b", "none", "s.py")
    assert out == "None\n" and tree(world.home / "cli.hatchet") == {"/a": {}}
    assert as_proton(world, "", "-m", "triton.profiler.proton", "--list-backends") == "cupti\nnone\n"


def test_a_scope_left_open_over_the_end_is_in_no_later_session(world):
    code = """
        proton.enter_scope("before any")
        proton.start("one", backend="none")
        proton.enter_scope("open")
        proton.enter_scope("an operation", triton_op=True)
        proton.finalize()
        print(proton.context.depth(), proton.exit_scope())
        proton.start("two", backend="none")
        with proton.scope("a"): pass
        proton.finalize()
        """
    out = run(world, code)
    assert out == "None None\n", "what was entered before any session has no number, and is left by hand"
    assert "/before any/open" in tree(world.home / "one.hatchet") and set(tree(world.home / "two.hatchet")) == {"/a"}
    as_proton(world, code.replace('proton.enter_scope("before any")', ""))
    assert set(tree(world.home / "two.hatchet")) == {"/a"}, "also while `protonctl run` goes on recording"


def test_without_it_triton_is_left_alone(world):
    r = world.ctl("run", "-b", "none", "-n", "s", "--", sys.executable, "-c", "import triton.profiler", check=False,
                  env=dict(world.env, PYTHONPATH=str(STANDIN), PYTHONDONTWRITEBYTECODE="1"))
    assert "No module named 'triton.profiler'" in r.stderr


def test_hook_triton_under_run(world):
    """-k triton: launches are named by their launch_metadata, with no word of protond in the program."""
    program = world.home / "p.py"
    program.write_text("import triton, sys\nprint('protond.hooks' in sys.modules, len(triton.knobs.runtime.launch_enter_hook.calls))\n")
    r = world.ctl("run", "-k", "triton", "-b", "none", "-n", "s", "--", sys.executable, program,
                  env=dict(world.env, PYTHONPATH=str(STANDIN), PYTHONDONTWRITEBYTECODE="1"))
    assert r.stdout.startswith("True 1"), r.stdout + r.stderr


def test_profiles_parts_are_listed_by_phase(world):
    """protonview --phase shows one of them, also when the program is long gone."""
    run(world, """
        s = proton.start("s", backend="none")
        for i in range(2):
            with proton.scope(f"p{i}"): pass
            proton.data.advance_phase(s)
        proton.finalize(s, None)
        """)
    until("it is stored", lambda: world.state("s") == "finalized")
    assert "p1" in world.view("tree", "s", "--phase", "1").stdout
    assert "p0" not in world.view("tree", "s", "--phase", "1").stdout


# --- context="python" ---------------------------------------------------------------------------

STACKS = """
import asyncio, sys, traceback
from protond import _native
proton.start("s", backend="none", context="python")
def here():
    return _native.stack_names(), traceback.extract_stack()
def generator():
    yield here()
async def coroutine():
    await asyncio.sleep(0)
    return here()
class Class:
    def method(self): return (lambda: here())()
def deep(n): return deep(n - 1) if n else here()
exec(compile("def made(): return here()", "a file that is none ü.py", "exec"))
found = {"plain": here(), "generator": next(generator()), "coroutine": asyncio.run(coroutine()),
         "method": Class().method(), "deep": deep(60), "made": made(), "again": [here() for _ in range(2)][1]}
for what, (names, frames) in found.items():
    with proton.scope(what):
        for i in reversed(names): _native.push(i)  # names are what scopes have too
        for i in names: _native.pop(i)
    print(what + "|" + "|".join(f"{f.filename}:{f.lineno}@{f.name}" for f in frames))
try:
    raise KeyError  # a stack that is taken must not disturb an exception on its way
except KeyError:
    _native.stack_names()
    assert sys.exc_info()[0] is KeyError
print(proton.context.depth(0) == len(traceback.extract_stack()))
proton.finalize()
"""


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
def test_stacks_are_those_of_traceback(world, python):
    path = job(world, "import protond as proton\n" + STACKS)
    r = subprocess.run([python, path], env=python_env(world), cwd=world.home, capture_output=True, text=True, timeout=WAIT * 4)
    assert r.returncode == 0, r.stderr
    *lines, depth = r.stdout.splitlines()
    assert depth == "True" and len(lines) == 7
    paths = sorted(tree_names(json.loads((world.home / "s.hatchet").read_text())[0]))
    for line in lines:
        what, *frames = line.split("|")
        stored = max((p for p in paths if p[:1] == (what,)), key=len)[1:]
        assert list(stored) == frames, what


def tree_names(node, above=()):
    """Paths of names: those of files have slashes in them."""
    for c in node["children"]:
        path = above + (c["frame"]["name"],)
        yield path
        yield from tree_names(c, path)


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
def test_subinterpreters_have_no_stacks(world, python):
    """There a thread holds the lock by a state that is not its own as far as PyGILState knows: it must not wait."""
    code = """
        import sys
        try:
            import _xxsubinterpreters as sub
        except ImportError:
            print("none here"); sys.exit()
        from protond import _native
        assert len(_native.stack_names()) == 1
        one = sub.create()
        try:
            sub.run_string(one, "import sys; sys.path[:] = %r; from protond import _native; assert _native.stack_names() == []" % sys.path)
        except Exception as e:
            assert "does not support loading in subinterpreters" in str(e) or "one interpreter" in str(e), e
        sub.destroy(one)
        print(len(_native.stack_names()))
        """
    path = job(world, code)
    r = subprocess.run([python, path], env=python_env(world), cwd=world.home, capture_output=True, text=True, timeout=WAIT)
    assert r.returncode == 0 and r.stdout in ("1\n", "none here\n"), r.stdout + r.stderr


STACK_METRICS = """
proton.start("s", backend="none", context="python")
def inner():
    with proton.scope("no frame", {"n": 1}):
        with proton.state("state"), proton.scope("nor this"):
            proton.enter_scope("op", triton_op=True, metrics={"m": 2}); proton.exit_scope()
inner()
proton.finalize()
"""


def test_metrics_stand_where_launches_do(world):
    """Below the frames, with the state and the operation; under Proton's name scopes are in no path at all."""
    for under_its_name in (False, True):
        (as_proton if under_its_name else run)(world, STACK_METRICS)
        paths = list(tree_names(json.loads((world.home / "s.hatchet").read_text())[0]))
        shapes = {tuple(part.rpartition("@")[2] for part in p) for p in paths if "@" in p[0]}
        assert shapes == {("<module>",), ("<module>", "inner"), ("<module>", "inner", "state"),
                          ("<module>", "inner", "state", "op")}, paths
        assert (("no frame",) in paths) == (not under_its_name)


def test_run_asks_for_stacks(world):
    program = world.home / "p.py"
    program.write_text("import sys; print('protond' in sys.modules)")
    for options, there in (((), "False\n"), (("-c", "python"), "True\n")):
        r = world.ctl("run", *options, "-k", "none", "-b", "none", "-n", "s", "--", sys.executable, program)
        assert r.stdout == there
