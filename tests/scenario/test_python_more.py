# SPDX-License-Identifier: MIT. The rest of the Python package: notebooks, Timer, memory, callbacks.
#
# Each test runs a program against a daemon of its own and looks at what was stored. Where a framework
# or a GPU is missing here a stand-in has the part of its surface that is used, and says so.
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD

PACKAGE = BUILD / "lib/protond/python"
pytestmark = [
    pytest.mark.preload,  # a sanitizer's runtime is not in the interpreter
    pytest.mark.skipif(not (PACKAGE / "protond/_native.abi3.so").exists(),
                       reason="the Python package was not built: no Python.h"),
]


def python(world, code, check=True, **env):
    """Runs a program that imports protond; check: it must succeed."""
    path = world.home / "program.py"
    path.write_text(code)
    r = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, cwd=world.home,
                       stdin=subprocess.DEVNULL,
                       env={**world.env, "PYTHONPATH": str(PACKAGE), "NO_COLOR": "1", **env})
    if check:
        assert r.returncode == 0, f"{r.returncode}\n{r.stdout}{r.stderr}"
    return r


def tree(world, name, *metrics):
    """{path of names: {metric: value}} of a session."""
    world.ctl("finalize", name)
    args = ["-m", ",".join(metrics)] if metrics else []
    answer = json.loads(world.view("tree", name, "--json", *args).stdout)["data"]
    columns = [c["name"] for c in answer["columns"]]
    rows = [dict(zip(columns, row)) for row in answer["rows"]]
    paths = {}
    for row in rows:
        above = paths[row["parent"]] if row["parent"] > 0 else ""
        paths[row["id"]] = f"{above}/{row['name']}" if row["parent"] >= 0 else ""
    return {paths[row["id"]]: row for row in rows if row["parent"] >= 0}


# --- where the programs are ---------------------------------------------------------------------

def test_tools_are_found_beside_the_package_then_in_path(world):
    where = "from protond import Error, _where\ntry:\n    print(_where.tool('protonview'))\nexcept Error as e:\n" \
            "    print('Error:', e)\n"
    assert python(world, where, PATH="").stdout.strip() == str(BUILD / "bin/protonview")
    shutil.copytree(PACKAGE / "protond", world.home / "far/away/protond")
    away = {"PYTHONPATH": str(world.home / "far/away")}
    nowhere = python(world, where, PATH=str(world.home), **away).stdout
    assert nowhere.startswith("Error: protonview is neither in ") and "PATH" in nowhere
    assert python(world, where, PATH=str(BUILD / "bin"), **away).stdout.strip() == str(BUILD / "bin/protonview")
    wheel = world.home / "far/away/protond/bin"
    wheel.mkdir()
    (wheel / "protonview").symlink_to(BUILD / "bin/protonview")
    assert python(world, where, PATH=str(BUILD / "bin"), **away).stdout.strip() == str(wheel / "protonview")


# --- notebooks ----------------------------------------------------------------------------------

# What protond.notebook uses of an IPython shell, and no more.
FAKE_SHELL = """
import ast, codeop, protond

class Compiler(codeop.Compile):
    def cache(self, transformed, number=0, raw_code=None):
        return f"<cell {number}>"
    def ast_parse(self, source, name):
        return compile(source, name, "exec", self.flags | ast.PyCF_ONLY_AST, True)

class Shell:
    execution_count = 1
    def __init__(self):
        self.compile, self.user_ns = Compiler(), {"protond": protond}
    def transform_cell(self, cell):
        return cell.replace("!magic", "40 + 2")
    def transform_ast(self, tree):
        return tree
    def register_magic_function(self, function, magic_kind, magic_name):
        assert (magic_kind, magic_name) == ("line_cell", "protond")
        self.magic = function

shell = Shell()
protond.load_ipython_extension(shell)
cell = shell.magic
"""


def test_a_cell_is_recorded_and_its_tree_printed(world):
    world.start()
    r = python(world, FAKE_SHELL + """
value = cell("-n first", '''
with protond.scope("outer"):
    with protond.scope("inner"):
        x = !magic
x
''')
assert value == 42 and shell.user_ns["x"] == 42
print("--- 2")
assert cell("-n first -d 2 -m calls", "with protond.scope('again'):\\n    with protond.scope('deep'): y = 1\\n") is None
print("--- 3")
assert cell("str({'a': 1}) + '$x'") == "{'a': 1}$x"   # %protond EXPR: one expression
print("--- 4")
from protond import notebook
newest, asked = notebook._newest, []
def late(name):      # the daemon has not heard of the new session when it is asked first
    asked.append(newest(name))
    return asked[0] if len(asked) == 2 else asked[-1]
notebook._newest = late
cell("-n first", "with protond.scope('third'): pass")
notebook._newest = newest
print("--- 5")
assert cell("--cpu-off -n quiet", "with protond.scope('q', metrics={'n': 1}): pass\\n7") == 7
""")
    first, second, third, late, fourth = r.stdout.split("---")
    assert "outer" in first and "└─ inner" in first and "cpu_time" in first
    assert "again" in second and "outer" not in second, "a session of the same name, and the new one is shown"
    assert "deep" not in second and "calls" in second
    assert "cell-" in third
    assert "third" in late and "again" not in late
    assert r.stdout.count("finalized") == 5, "stored whole before they are shown"
    assert "q" in fourth and "cpu_time" not in fourth
    assert r.stderr == ""
    sessions = world.sql("SELECT name, state FROM session WHERE name NOT LIKE 'python%' ORDER BY id")
    assert [s[1] for s in sessions] == ["finalized"] * 5
    assert [s[0] for s in sessions if not s[0].startswith("cell-")] == ["first", "first", "first", "quiet"]
    assert not list(world.home.glob("*.hatchet"))


def test_an_exception_of_a_cell_is_passed_on_and_its_tree_printed(world):
    world.start()
    r = python(world, FAKE_SHELL + """
for error, text in (ZeroDivisionError, "1 / 0"), (KeyboardInterrupt, "raise KeyboardInterrupt"):
    try:
        cell("", f"with protond.scope('before'): pass\\n{text}\\nwith protond.scope('after'): pass")
    except error:
        print("passed on")
try:
    cell("", "if:\\n")
except SyntaxError:
    print("no session")
assert protond.start("after") is not None   # nothing was left behind
""")
    assert r.stdout.count("before") == 2 and "after" not in r.stdout
    assert r.stdout.count("passed on") == 2 and r.stdout.endswith("no session\n")
    assert len(world.sql("SELECT 1 FROM session WHERE name LIKE 'cell-%'")) == 2


def test_wrong_use_of_a_cell_is_said_before_it_runs(world):
    world.start()
    r = python(world, FAKE_SHELL + """
protond.start("live")
for line in "--bad", "-d x", "-n 'open", "-n live":
    try:
        cell(line, "print('it ran')")
    except Exception as e:
        print(type(e).__name__, e)
""", PYTHONWARNINGS="ignore")
    assert "it ran" not in r.stdout
    assert r.stdout.count("%%protond") >= 4
    assert "unrecognized arguments: --bad" in r.stdout and "No closing quotation" in r.stdout
    assert "a session named 'live' is being recorded" in r.stdout


def test_a_cell_runs_where_nothing_may_be_recorded(world):
    r = python(world, FAKE_SHELL + "print(cell('', '6 * 7'))", PROTOND_DISABLE="1")
    assert (r.stdout, r.stderr) == ("42\n", "")
    assert not world.db.exists()


def test_a_cell_in_a_loop_as_jupyters(world):
    """There scopes belong to tasks; a cell suspends nowhere, so those in it nest with all others."""
    world.start()
    python(world, FAKE_SHELL + """
import asyncio
from protond import torch
assert torch._installed, "by %load_ext"
shell.user_ns["torch"] = torch
async def task():
    with protond.scope("kernel"):
        cell("-n looped", '''
for i in range(2):
    with protond.scope("epoch"):
        torch.step()
        with protond.scope("part"): pass
        torch.step()
''')
        await asyncio.sleep(0)
    torch.step()
    cell("-n next", "with protond.scope('alone'): pass\\ntorch.step()")
asyncio.run(task())
""")
    nodes = {path: row["calls"] for path, row in tree(world, "looped", "calls").items()}
    assert nodes["/kernel/epoch"] == 2 and nodes["/kernel/epoch/step/part"] == 2
    nodes = {path: row["calls"] for path, row in tree(world, "next", "calls").items()}
    assert nodes == {"/alone": 1, "/step": 1}, "no step goes from one cell to another"


def test_the_real_ipython(world):
    if importlib.util.find_spec("IPython") is None:
        pytest.skip("IPython is not installed (python3-ipython); the stand-in's tests ran")
    world.start()
    r = python(world, """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
def run(cell):
    print("---", cell.split("\\n")[0])
    return shell.run_cell(cell)
assert run("%load_ext protond\\nimport protond").success
r = run("%%protond -n real -d 5\\nwith protond.scope('outer'):\\n    lines = !echo two\\nlines")
assert r.result == ["two"], r.result
assert run("%protond len({1: 2})").result == 1
r = run("%%protond\\nwith protond.scope('until here'):\\n    1 / 0")
assert isinstance(r.error_in_exec, ZeroDivisionError)
assert not run("%%protond --bad\\n1").success
""")
    real, line, error, bad = r.stdout.split("--- %")[2:]
    assert "outer" in real and "Out[" in real
    assert "Out[" in line
    assert error.index("until here") < error.index("ZeroDivisionError"), "the tree, then IPython's traceback"
    assert "----> 2     1 / 0" in error and "notebook.py" not in error
    assert "UsageError: %%protond: unrecognized arguments: --bad" in r.stderr


# --- Timer --------------------------------------------------------------------------------------

def test_the_timers_figures(world):
    r = python(world, """
import json, math
from protond import timer
ticks = iter(range(0))
timer._now = lambda: next(ticks)

def runs(*ns):   # a clock that reads 0, ns, 0, ns ...
    global ticks
    ticks = iter([t for n in ns for t in (0, n)])
    return timer.Timer("t", warmup=0, repeats=len(ns)).run(lambda: None)

t = runs(4_000_000_000, 1_000_000_000, 2_000_000_000, 3_000_000_000)
assert (t.n, t.mean, t.min, t.max, t.unit, t.source) == (4, 2.5, 1.0, 4.0, "s", "host clock")
assert t.samples() == [4.0, 1.0, 2.0, 3.0]
assert math.isclose(t.std, math.sqrt(5 / 3))        # 2.25 + .25 + .25 + 2.25 over n - 1
assert t.p50 == 2.5
assert math.isclose(t.p99, 3.97)                    # rank 2.97: between 3 and 4
assert timer.quantile([7], 0.99) == 7 and timer.quantile([3, 1], 0) == 1 and timer.quantile([3, 1], 1) == 3
assert json.loads(json.dumps(t.as_dict()))["p99"] == t.p99
print(t); print(t.table())
one = runs(1500)
assert (one.mean, one.std, one.p99) == (1.5e-6, None, 1.5e-6)
none = timer.Timer("none")
assert (none.n, none.mean, none.std, none.min, none.max, none.p50, none.p99) == (0,) + (None,) * 6
print(none); print(none.table())
ticks = iter([0, 10, 1010, 5_000_000])              # one inside of the other
with timer.Timer("once") as outer:
    with timer.Timer("inner") as inner: pass
assert (inner.last, inner.ms, outer.ms, outer.n) == (1e-6, 1e-3, 5.0, 1)
ticks = iter([0, 10, 1010, 5_000_000])
with outer:                                         # a timer in itself
    with outer: pass
assert outer.samples() == [0.005, 1e-6, 0.005] and outer.as_dict("ms")["max"] == 5.0 and outer.as_dict()["unit"] == "s"
assert "  max         5 ms" in outer.table("ms") and none.last is None and none.ms is None
try: outer.as_dict("h")
except ValueError as e: assert "s, ms" in str(e)
else: raise AssertionError
""")
    assert ("t: 4 runs after 0 of warm-up, host clock: mean 2.5 s, std 1.291 s, min 1 s, p50 2.5 s, p99 3.97 s, "
            "max 4 s\n") in r.stdout
    assert "  p99       3.97 s\n" in r.stdout
    assert "none: 0 runs after 0 of warm-up, host clock\n" in r.stdout


def test_a_timers_runs_are_scopes_and_its_warm_up_counts_nowhere(world):
    world.start()
    r = python(world, """
import json, protond
from protond.timer import Timer
protond.start("timed")
calls = []
def unit(a, b=0):
    calls.append((a, b))
    with protond.scope("inside"): pass
    if len(calls) > 2: protond.enter_scope("left open")
run = Timer(warmup=2, repeats=5, metrics={"flops": 10}).run(unit, 1, b=2)
assert calls == [(1, 2)] * 7 and run.name == "unit" and run.n == 5

block = Timer("block", warmup=1)
for i in range(4):
    with block: protond.enter_scope("left open")
assert block.n == 3
try:
    with block: raise KeyError
except KeyError: pass
assert block.n == 3                    # one that raises is no run

@Timer(warmup=0)
def decorated(x): return x * 2
assert decorated(21) == 42

for bad in lambda: Timer(sync="gpu"), lambda: Timer(repeats=0), lambda: Timer(warmup=-1):
    try: bad()
    except ValueError as e: assert str(e)
    else: raise AssertionError
async def coroutine(): pass
try: Timer()(coroutine)
except TypeError as e: assert "with timer" in str(e)
else: raise AssertionError
block.reset()
with block: pass
assert block.n == 0                    # warm-up again
protond.finalize(None, None)
print(json.dumps([round(s * 1e9) for s in run.samples()]))
""")
    nodes = tree(world, "timed", "calls", "timer", "flops")
    assert nodes["/unit"]["calls"] == 5 and nodes["/unit"]["flops (inc)"] == 50
    assert nodes["/unit"]["timer (ns)"] == sum(json.loads(r.stdout))
    assert nodes["/unit warm-up"]["calls"] == 1 and nodes["/unit warm-up"]["timer (ns)"] is None
    assert nodes["/unit warm-up/inside"]["calls"] == 2 and nodes["/unit/inside"]["calls"] == 5
    assert nodes["/block"]["timer (ns)"] > 0 and nodes["/block/left open"]["timer (ns)"] is None
    assert nodes["/block"]["calls"] == 4 and nodes["/block warm-up"]["calls"] == 2
    assert nodes["/decorated"]["calls"] == 1


# A stand-in for torch.cuda: a GPU that takes 1 ms, 2 ms, 3 ms ... for its work, and a log of what was asked.
FAKE_GPU = """
import sys, types
log = []
class Event:
    at = 0.0
    def __init__(self, enable_timing): assert enable_timing
    def record(self): log.append("record"); self.at = Event.at
    def query(self): return self.at <= passed
    def synchronize(self): log.append("wait")
    def elapsed_time(self, end): return end.at - self.at
torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(Event=Event, is_available=lambda: True, synchronize=lambda: log.append("wait"))
sys.modules["torch"] = torch
work_ms = passed = 0
def work():
    global work_ms
    work_ms += 1
    log.append("work"); Event.at += work_ms
"""


def test_a_timer_by_the_gpus_clock(world):
    world.start()
    python(world, FAKE_GPU + """
import protond
from protond.timer import Timer
protond.start("gpu")
t = Timer("events", warmup=1, repeats=3, sync="events").run(work)
assert t.source == "cuda events" and t.samples() == [0.002, 0.003, 0.004]
assert log == ["work"] + ["record", "work", "record"] * 3 + ["wait"] * 3, log   # the stream stays filled
del log[:]
block = Timer("block", warmup=0, sync="events")
with block: work()
assert block.samples() == [0.005] and log == ["record", "work", "record", "wait"]
del log[:]
free = Timer("free", sync="events", wait=False)
for passed in 0, 0, Event.at + 13:                  # of 6, 7 and 8 ms: the first two have been passed at the end of the third
    with free: work()
assert log == ["record", "work", "record"] * 3 + ["wait"] * 2, log
assert free.samples() == [0.006, 0.007, 0.008] and free.ms == 8.0 and log[-1] == "wait" and len(log) == 12
del log[:]
t = Timer("device", warmup=0, repeats=2, sync="device").run(work)
assert t.source == "host clock, GPU waited for" and log == ["wait", "work", "wait"] * 2
protond.finalize(None, None)
""")
    nodes = tree(world, "gpu", "timer", "calls")
    assert nodes["/events"]["timer (ns)"] == 9e6 and nodes["/events"]["calls"] == 3
    assert nodes["/block"]["timer (ns)"] == 5e6
    assert nodes["/free"]["timer (ns)"] == 13e6 and nodes["/free"]["calls"] == 3


def test_a_timer_without_a_gpu(world):
    r = python(world, """
import sys
sys.modules["torch"] = None      # cannot be imported
import protond
from protond.timer import Timer
t = Timer("t", sync="device").run(len, "")
assert t.source == "host clock" and t.n == 10
try: Timer(sync="events")
except protond.Error as e: print(e)
""")
    assert 'use sync="none"' in r.stdout


# --- memory -------------------------------------------------------------------------------------

# A stand-in for torch.cuda's allocator: memory_stats_as_nested_dict() and reset_peak_memory_stats().
FAKE_ALLOCATOR = """
import sys, types
GIB = 1 << 30
class Device:
    now = peak = reserved = 0
    def alloc(self, n):
        self.now += n
        self.peak = max(self.peak, self.now)
        self.reserved = max(self.reserved, self.now)
    def free(self, n): self.now -= n
    def stats(self):
        return {"allocated_bytes": {"all": {"current": self.now, "peak": self.peak}},
                "reserved_bytes": {"all": {"current": self.reserved, "peak": self.reserved}}}
devices = [Device(), Device()]
gpu, other = devices
def reset(device): devices[device].peak = devices[device].now
torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(is_initialized=lambda: True, device_count=lambda: 2, reset_peak_memory_stats=reset,
                                   memory_stats_as_nested_dict=lambda device: devices[device].stats())
import protond
from protond import memory
"""


def test_memory_of_scopes_and_steps(world):
    world.start()
    python(world, FAKE_ALLOCATOR + """
protond.start("memory")
memory.track()                           # before torch is imported
with memory.scope("nothing yet"): pass
sys.modules["torch"] = torch
gpu.alloc(100); gpu.alloc(900); gpu.free(900)           # a peak of 1000 before all of it
memory.track()
with memory.scope("outer"):
    gpu.alloc(500); gpu.free(500)                       # 600
    with memory.scope("inner"):
        gpu.alloc(50); gpu.free(50)                     # 150
    with memory.scope("second"):
        gpu.alloc(10)                                   # 110
    with memory.scope("third"):
        gpu.alloc(700); gpu.free(700)                   # 810
for step in range(3):
    with protond.scope("step"):
        gpu.alloc(200); gpu.free(200 - step)
        memory.record()
memory.record("eval\\n\\x1b]0;x\\x07\\udc80")
memory.record("=cmd|' /C calc'!A0")
@memory.scope("decorated")
def f():
    gpu.alloc(5)
    protond.enter_scope("left open")
f()
memory.untrack()
memory.record()
with memory.scope("untracked"): gpu.alloc(1)
samples = memory.timeline()
assert [(s.step, s.device, s.allocated, s.reserved, s.peak, s.where) for s in samples] == [
    # the first step's is all since track()
    (1, 0, 110, 1000, 810, "step"), (2, 0, 111, 1000, 310, "step"), (3, 0, 113, 1000, 311, "step"),
    (3, 0, 113, 1000, 113, "eval\\n\\x1b]0;x\\x07\\udc80"), (3, 0, 113, 1000, 113, "=cmd|' /C calc'!A0")], samples
assert all(a.time_ns <= b.time_ns for a, b in zip(samples, samples[1:]))
memory.to_csv("memory.csv")
protond.finalize(None, None)
""")
    nodes = tree(world, "memory", "allocated", "reserved", "peak")

    def row(path):
        return tuple(nodes[path][m + " (bytes)"] for m in ("allocated", "reserved", "peak"))
    assert row("/outer") == (110, 1000, 810), "what was before it is not in its peak, what was inside is"
    assert row("/outer/inner") == (100, 1000, 150), "an inner scope does not see the outer one's peak"
    assert row("/outer/second") == (110, 1000, 110)
    assert row("/step") == (113, 1000, 311), "a property: the last step's"
    assert row("/decorated") == (118, 1000, 118)
    assert row("/nothing yet") == row("/untracked") == (None, None, None)
    lines = (world.home / "memory.csv").read_text().splitlines()
    assert lines[0] == "time_ns,step,device,allocated,reserved,peak,where" and len(lines) == 6
    assert lines[4].endswith(r",eval\n\x1b]0;x\x07\udc80") and lines[5].endswith(",'=cmd|' /C calc'!A0")
    assert lines[3].endswith(",3,0,113,1000,311,step")


def test_memory_in_steps_seldom_bounded_and_unreset(world):
    python(world, FAKE_ALLOCATOR + """
sys.modules["torch"] = torch
gpu.alloc(1000); gpu.free(900)
memory.track(3, reset_peak=False, samples=2)
for step in range(12): memory.record()
assert [(s.step, s.peak) for s in memory.timeline()] == [(9, 1000), (12, 1000)]
assert gpu.peak == 1000                              # the program's own
memory.track()
assert memory.timeline() == [] and gpu.peak == 100
for bad in {"interval_steps": 0}, {"samples": 0}:
    try: memory.track(**bad)
    except ValueError as e: assert str(e)
    else: raise AssertionError
""")


def test_memory_of_several_gpus(world):
    world.start()
    python(world, FAKE_ALLOCATOR + """
sys.modules["torch"] = torch
protond.start("two")
memory.track()
with memory.scope("both"):
    gpu.alloc(7); other.alloc(30); other.free(10)
protond.finalize(None, None)
memory.record()
assert [(s.device, s.allocated) for s in memory.timeline()] == [(0, 7), (1, 20)]
""")
    both = tree(world, "two", "allocated", "peak", "peak cuda:0", "peak cuda:1")["/both"]
    assert (both["allocated (bytes)"], both["peak (bytes)"]) == (27, 37)
    assert (both["peak cuda:0 (bytes)"], both["peak cuda:1 (bytes)"]) == (7, 30)


def test_fragments_of_a_snapshot(world):
    python(world, FAKE_ALLOCATOR + """
assert memory.fragments() == []
sys.modules["torch"] = torch
def segment(device, *blocks):
    return {"device": device, "total_size": sum(s for s, _ in blocks), "blocks": [{"size": s, "state": state} for s, state in blocks]}
torch.cuda.memory_snapshot = lambda: [
    segment(1, (512, "active_allocated"), (1536, "inactive")), segment(0, (4096, "inactive")),
    segment(0, (1024, "active_allocated"), (512, "inactive"), (256, "active_pending_free"), (256, "inactive"))]
assert memory.fragments() == [(0, 6144, 1280, 2, 2, 3, 4096, 768), (1, 2048, 512, 1, 1, 1, 1536, 1536)], memory.fragments()
torch.cuda.is_initialized = lambda: False
assert memory.fragments() == []
""")


def test_a_leak_is_a_slope(world):
    python(world, FAKE_ALLOCATOR + """
sys.modules["torch"] = torch
def steps(growth):
    memory.track()
    for g in growth:
        gpu.alloc(g)
        memory.record()
    return memory.slope()
assert steps([4096] * 7) is None
leak = steps([4096] * 8)
assert leak == (4096.0, 1.0, 8), leak
assert steps([0] * 20) == (0.0, 0.0, 20)
noisy = steps([3, -1] * 10)              # 2 a pair of steps, up and down by half as much again
assert 0.9 < noisy.bytes_per_step < 1.1 and 0.9 < noisy.r2 < 1, noisy
memory.record("eval")                    # no step
assert memory.slope().steps == 20 and memory.slope(device=1) is None
""")


def test_memory_gives_up_rather_than_break_the_program(world):
    r = python(world, FAKE_ALLOCATOR + """
sys.modules["torch"] = torch
memory.track()
torch.cuda.memory_stats_as_nested_dict = lambda device: {}
gpu.alloc(1)
with memory.scope("s"): pass
memory.record(); memory.record()
assert memory.timeline() == []
""")
    assert r.stderr.count("protond: memory is not tracked any more: KeyError('allocated_bytes')") == 1


# --- callbacks ----------------------------------------------------------------------------------

def test_callbacks_import_no_framework(world):
    python(world, """
import sys
names = ("lightning", "lightning.pytorch", "pytorch_lightning", "transformers", "torch")
import protond.callbacks
assert not set(names) & set(sys.modules)
for name in names: sys.modules[name] = None      # as if none were installed
for name in "LightningCallback", "TransformersCallback":
    try: getattr(protond.callbacks, name)
    except ImportError as e: assert "installed" in str(e)
    else: raise AssertionError
try: protond.callbacks.Other
except AttributeError: pass
else: raise AssertionError
""")


def test_steps_of_a_plain_loop(world):
    world.start()
    python(world, """
import protond
from protond.callbacks import StepCallback
protond.start("plain")
callback = StepCallback()
callback.on_step_end()                   # none is open
for i in range(3):
    with protond.scope("between"): pass
    callback.on_step_begin()
    with callback.region("part"): pass
    callback.on_step_end()
callback.on_step_begin()
callback.on_step_begin()                 # ends the one before
callback.on_step_end()
with protond.scope("after"): pass
assert protond.depth() == 0
protond.finalize(None, None)
""")
    nodes = tree(world, "plain", "calls")
    assert {path: row["calls"] for path, row in nodes.items()} == {
        "/step": 5, "/step/part": 3, "/between": 3, "/after": 1}


# A stand-in for lightning.pytorch: a Callback with the hooks of 2.x, and a Trainer that calls them in
# the order that Lightning's loops do (automatic optimization: the closure runs inside the step).
FAKE_LIGHTNING = """
import sys, types, protond
HOOKS = '''setup teardown on_fit_start on_fit_end on_sanity_check_start on_sanity_check_end on_train_batch_start
    on_train_batch_end on_train_epoch_start on_train_epoch_end on_validation_epoch_start on_validation_epoch_end
    on_test_epoch_start on_test_epoch_end on_validation_batch_start on_validation_batch_end on_test_batch_start
    on_test_batch_end on_predict_batch_start on_predict_batch_end on_train_start on_train_end on_validation_start
    on_validation_end on_test_start on_test_end on_predict_start on_predict_end on_exception on_before_backward
    on_after_backward on_before_optimizer_step on_before_zero_grad'''.split()
class Callback:
    state_key = property(lambda self: type(self).__qualname__)
    def state_dict(self): return {}
for hook in HOOKS: setattr(Callback, hook, lambda self, trainer, pl_module, *args, **kwargs: None)

class Trainer:
    def __init__(self, callbacks): self.callbacks = callbacks
    def call(self, hook, *args, **kwargs):
        for callback in self.callbacks: getattr(callback, hook)(self, self.module, *args, **kwargs)
    def fit(self, module, epochs=2, batches=3):
        self.module = module
        try:
            self.call("setup", stage="fit"); self.call("on_fit_start")
            self.call("on_sanity_check_start"); self.evaluate("validation"); self.call("on_sanity_check_end")
            self.call("on_train_start")
            for _ in range(epochs):
                self.call("on_train_epoch_start")
                for i in range(batches):
                    with protond.scope("fetch"): batch = i
                    self.call("on_train_batch_start", batch, i)
                    (self.automatic if module.automatic_optimization else module.training_step)(batch)
                    self.call("on_train_batch_end", None, batch, i)
                self.evaluate("validation")
                self.call("on_train_epoch_end")
            self.call("on_train_end"); self.call("on_fit_end"); self.call("teardown", stage="fit")
        except BaseException as e:
            self.call("on_exception", e)
            raise
    def automatic(self, batch):
        def closure():
            self.module.training_step(batch)
            self.call("on_before_zero_grad", None); self.module.zero_grad()
            self.call("on_before_backward", None); self.module.backward(); self.call("on_after_backward")
            self.call("on_before_optimizer_step", None)
        self.module.optimizer_step(closure)
    def evaluate(self, stage):
        self.call(f"on_{stage}_start"); self.call(f"on_{stage}_epoch_start") if stage != "predict" else None
        self.call(f"on_{stage}_batch_start", 0, 0, 0); self.module(); self.call(f"on_{stage}_batch_end", None, 0, 0, 0)
        self.call(f"on_{stage}_end")

package, pl = types.ModuleType("lightning"), types.ModuleType("lightning.pytorch")
pl.Callback, pl.Trainer = Callback, Trainer
package.pytorch = pl
sys.modules.update({"lightning": package, "lightning.pytorch": pl})
class Module:
    automatic_optimization = True
    def __call__(self): return self.forward()
    def forward(self):
        with protond.scope("f"): pass
    def training_step(self, batch): self.forward()
    def zero_grad(self): pass
    def backward(self):
        with protond.scope("b"): pass
    def optimizer_step(self, closure):
        closure()
        with protond.scope("o"): pass
"""


def test_lightning(world):
    world.start()
    python(world, FAKE_LIGHTNING + """
import pickle
from protond.callbacks import LightningCallback
assert issubclass(LightningCallback, Callback) and LightningCallback.__name__ == "LightningCallback"
ours = pickle.loads(pickle.dumps(LightningCallback()))     # as Lightning does when it spawns
class Other(Callback):                                     # another callback, which has scopes of its own
    def on_train_batch_start(self, *args): protond.enter_scope("other")
    def on_before_backward(self, *args): protond.exit_scope("other")
protond.start("fit")
trainer = Trainer(callbacks=[ours, Other()])
trainer.fit(Module())
trainer.evaluate("test"); trainer.evaluate("predict")
assert protond.depth() == 0
protond.finalize(None, None)

protond.start("manual")
class Manual(Module):
    automatic_optimization = False
    def training_step(self, batch):
        for _ in range(2):
            trainer.call("on_before_zero_grad", None)
            self.forward()
            trainer.call("on_before_backward", None); self.backward(); trainer.call("on_after_backward")
            trainer.call("on_before_optimizer_step", None)
trainer = Trainer([ours])
trainer.fit(Manual(), epochs=1, batches=1)
protond.finalize(None, None)

protond.start("broken")
class Broken(Module):
    def backward(self): raise RuntimeError("as it happens")
try: Trainer([ours]).fit(Broken())
except RuntimeError: pass
assert protond.depth() == 0
with protond.scope("afterwards"): pass
protond.finalize(None, None)
""")
    nodes = {path: row["calls"] for path, row in tree(world, "fit", "calls").items()}
    assert nodes == {
        "/sanity check": 1, "/sanity check/validation": 1, "/sanity check/validation/batch": 1,
        "/sanity check/validation/batch/f": 1,
        "/epoch": 2, "/epoch/fetch": 6, "/epoch/step": 6,
        "/epoch/step/training_step": 6, "/epoch/step/training_step/other": 6,
        "/epoch/step/training_step/other/f": 6, "/epoch/step/optimizer.zero_grad": 6,
        "/epoch/step/backward": 6, "/epoch/step/backward/b": 6,
        "/epoch/step/optimizer.step": 6, "/epoch/step/optimizer.step/o": 6,
        "/epoch/validation": 2, "/epoch/validation/batch": 2, "/epoch/validation/batch/f": 2,
        "/test": 1, "/test/batch": 1, "/test/batch/f": 1,
        "/predict": 1, "/predict/batch": 1, "/predict/batch/f": 1}
    manual = {path: row["calls"] for path, row in tree(world, "manual", "calls").items()}
    assert manual["/epoch/step/f"] == 2 and manual["/epoch/step/backward/b"] == 2
    assert not [path for path in manual if "optimizer" in path or "training_step" in path]
    broken = {path: row["calls"] for path, row in tree(world, "broken", "calls").items()}
    assert broken["/epoch/step/backward"] == 1 and broken["/afterwards"] == 1


# A stand-in for transformers: a TrainerCallback with the hooks of 4.x, and a Trainer that calls them
# in the order of Trainer._inner_training_loop. Its decisions are made before ours, as those of
# DefaultFlowCallback are.
FAKE_TRANSFORMERS = """
import sys, types, protond
class TrainerCallback: pass
for hook in '''on_init_end on_train_begin on_train_end on_epoch_begin on_epoch_end on_step_begin on_substep_end
        on_pre_optimizer_step on_optimizer_step on_step_end on_evaluate on_predict on_save on_log
        on_prediction_step'''.split():
    setattr(TrainerCallback, hook, lambda self, args, state, control, **kwargs: None)

class Control:
    should_evaluate = should_save = False

def scope(name):
    with protond.scope(name): pass

class Trainer:
    def __init__(self, callback): self.callback, self.control = callback, Control()
    def call(self, hook, **kwargs):
        assert getattr(self.callback, hook)(None, None, self.control, model=None, **kwargs) is None
    def train(self, epochs=1, steps=4, accumulate=2, evaluate=0, save=0, epoch_end=False):
        self.call("on_train_begin")
        for _ in range(epochs):
            self.call("on_epoch_begin")
            for step in range(1, steps + 1):
                for i in range(accumulate):
                    scope("fetch")
                    if i == 0:
                        self.control.should_evaluate = self.control.should_save = False
                        self.call("on_step_begin")
                    scope("work")
                    if i < accumulate - 1: self.call("on_substep_end")
                self.call("on_pre_optimizer_step"); scope("o"); self.call("on_optimizer_step")
                self.control.should_evaluate = bool(evaluate and step % evaluate == 0)
                self.control.should_save = bool(save and step % save == 0)
                self.call("on_step_end")
                self.maybe()
            self.control.should_evaluate = self.control.should_save = epoch_end
            self.call("on_epoch_end")
            self.maybe()
        self.call("on_train_end")
    def maybe(self):
        self.call("on_log")
        if self.control.should_evaluate: self.evaluate()
        if self.control.should_save:
            scope("write")
            self.control.should_save = False
            self.call("on_save")
    def evaluate(self, batches=2):
        for _ in range(batches):
            scope("predicted")
            self.call("on_prediction_step")
        self.control.should_evaluate = False
        self.call("on_evaluate", metrics={})
transformers = types.ModuleType("transformers")
transformers.TrainerCallback = TrainerCallback
sys.modules["transformers"] = transformers
"""


def test_transformers(world):
    world.start()
    python(world, FAKE_TRANSFORMERS + """
from protond.callbacks import TransformersCallback
assert issubclass(TransformersCallback, TrainerCallback)
callback = TransformersCallback()
protond.start("train")
trainer = Trainer(callback)
trainer.train(evaluate=2, save=4)
trainer.train(steps=1, epoch_end=True)
trainer.evaluate(3)                      # on its own: known from its first batch on
assert protond.depth() == 0
protond.finalize(None, None)
protond.start("again")
callback.on_epoch_begin(None, None, Control())
decided = Control()
decided.should_evaluate = True
callback.on_step_end(None, None, decided)
callback.on_step_begin(None, None, Control())   # it was not evaluated after all
callback.on_optimizer_step(None, None, Control())
decided.should_evaluate = False
callback.on_step_end(None, None, decided)
callback.on_step_begin(None, None, Control())   # and here an exception ended it
Trainer(callback).train(steps=1)
assert protond.depth() == 0
protond.finalize(None, None)
""")
    nodes = {path: row["calls"] for path, row in tree(world, "train", "calls").items()}
    assert nodes == {
        "/epoch": 2, "/epoch/fetch": 5 + 5 - 5, "/epoch/step": 5, "/epoch/step/fetch": 5, "/epoch/step/work": 10,
        "/epoch/step/optimizer.step": 5, "/epoch/step/optimizer.step/o": 5,
        "/epoch/evaluate": 2, "/epoch/evaluate/predicted": 4, "/epoch/save": 1, "/epoch/save/write": 1,
        "/evaluate": 2, "/evaluate/predicted": 4, "/save": 1, "/save/write": 1, "/predicted": 1}
    again = {path: row["calls"] for path, row in tree(world, "again", "calls").items()}
    assert again["/epoch"] == 2 and again["/epoch/step"] == 3


def test_callbacks_beside_the_names_of_torch(world):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    world.start()
    python(world, FAKE_LIGHTNING + """
protond.start("both", hook="torch")
import torch
from protond.callbacks import LightningCallback
class Model(torch.nn.Module):
    automatic_optimization = True
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
    def forward(self, x=torch.ones(2, 4)): return self.layer(x)
    def training_step(self, batch): self.loss = self().sum()
    def backward(self): self.loss.backward()
    def zero_grad(self): optimizer.zero_grad()
    def optimizer_step(self, closure): optimizer.step(closure)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
class Enabled(Trainer):
    def automatic(self, batch):
        with torch.enable_grad(): super().automatic(batch)
Enabled([LightningCallback()]).fit(model, epochs=1, batches=3)
assert protond.depth() == 0
protond.finalize(None, None)
""")
    nodes = {path: row["calls"] for path, row in tree(world, "both", "calls").items()}
    step = "/epoch/step"
    assert nodes[step] == nodes[step + "/optimizer.step"] == 3
    assert not [path for path in nodes if "/optimizer.step/" in path], "the closure is the step's, not the optimizer's"
    assert nodes[step + "/backward"] == 3, "named once, by protond.torch"
    assert nodes[step + "/optimizer.zero_grad"] == 3
    assert not [path for path in nodes if "training_step" in path or "backward/backward" in path]
    assert nodes[step + "/forward/Model/layer"] == 3
    assert nodes["/epoch/validation/batch/forward/Model"] == 1
    assert nodes["/sanity check/validation/batch/forward/Model"] == 1, "no step is guessed"


# --- requests -----------------------------------------------------------------------------------

def test_a_request_goes_from_thread_to_thread(world):
    world.start()
    python(world, """
import asyncio, json, protond, queue, threading
protond.start("server", data="both", backend="none")
work, done = queue.Queue(), []
def worker():
    for r in iter(work.get, None):
        with protond.scope("own"):                 # of this thread; hidden in the request
            with r.here():
                with protond.scope("generate"): pass
            with protond.scope("after"): pass
        done.append((r.end({"tokens": 7}), r.end()))
thread = threading.Thread(target=worker)
thread.start()
with protond.scope("accept"):
    for i in range(5): work.put(protond.request("handle", {"samples": 1}))
work.put(None)
thread.join()
assert done == [(True, False)] * 5
with protond.request("outer") as outer:
    with protond.request("inner").here(): pass     # never ends: not recorded
    with protond.scope("below"): pass
with protond.scope("beside"): pass

async def answer(r):
    with r.here():
        with protond.scope("step of it"): await asyncio.sleep(0)
    with protond.scope("own task"): await asyncio.sleep(0)
    r.end()
async def main():
    async with protond.request("loop"):
        await asyncio.sleep(0)
    rs = [protond.request("call") for _ in range(3)]
    await asyncio.gather(*map(answer, rs))
asyncio.run(main())
protond.finalize(None, None)
""")
    nodes = tree(world, "server", "calls", "tokens", "samples")
    calls = {path: int(v["calls"]) for path, v in nodes.items() if v["calls"]}
    assert calls == {"/accept": 1, "/accept/handle": 5, "/accept/handle/generate": 5, "/own": 5, "/own/after": 5, "/outer": 1, "/outer/below": 1,
                     "/beside": 1, "/loop": 1, "/call": 3, "/call/step of it": 3, "/own task": 3}, calls
    assert nodes["/accept/handle"]["tokens (inc)"] == 35
    world.view("export", "server", "-o", "x.json")
    events = json.loads((world.home / "x.json").read_text())["traceEvents"]
    spans = [e for e in events if e.get("name") == "handle" and e["ph"] in "be"]
    assert len(spans) == 10 and len({e["id"] for e in spans}) == 5
    data = json.loads(world.view("steps", "server", "--scope", "handle", "--json").stdout)["data"]
    at = [c["name"] for c in data["columns"]].index("told.tokens")
    assert [row[at] for row in data["rows"]] == [7.0] * 5 and data["processes"][0]["p99_ns"] > 0
