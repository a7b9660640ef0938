# SPDX-License-Identifier: MIT. proton_check.py: the same programs under Triton's Proton and under protond, one import apart.
"""proton_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed".

Counts, names and metrics must be equal, GPU times within 3 %. `costs` prints what both cost, in turns.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from judge import check, judge

DIR = pathlib.Path(sys.argv[1]).resolve()
IMPORT = {"Proton": "import triton.profiler as proton\n", "protond": "import protond as proton\n"}

KERNELS = """
import sys, json, time, torch, triton, triton.language as tl
def launch_metadata(grid, kernel, args):
    m, n, k = args["M"], args["N"], args["K"]
    return {"name": f"{kernel.name} [M={m}, N={n}, K={k}]", "flops16": 2.0 * m * n * k, "bytes": 2 * (m * k + n * k + m * n)}
@triton.jit(launch_metadata=launch_metadata)
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        r = k + tl.arange(0, BK)
        acc += tl.dot(tl.load(a + i[:, None] * K + r[None, :]), tl.load(b + r[:, None] * N + j[None, :]))
    tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16))
@triton.jit
def add(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1.0, mask=i < n)
def product(a, b):
    c = torch.empty((a.shape[0], b.shape[1]), device="cuda", dtype=torch.float16)
    matmul[(a.shape[0] // 64, b.shape[1] // 64)](a, b, c, a.shape[0], b.shape[1], a.shape[1], 64, 64, 32)
    return c
def matrices(n): return [torch.randn((n, n), device="cuda", dtype=torch.float16) for _ in range(2)]
x = torch.zeros(1 << 14, device="cuda"); y = torch.empty_like(x)
def plus(): add[(16,)](x, y, 1 << 14, 1024)
a, b = matrices(2048); product(a, b); plus(); torch.matmul(a, b); torch.cuda.synchronize()
"""
TUTORIAL = KERNELS + """
@proton.scope("decorated")
def decorated(): plus()
session = proton.start(sys.argv[1], hook="triton")
proton.deactivate(0)
product(a, b)  # not in it
proton.activate(0)
for size in (1024, 2048, 4096):
    p, q = matrices(size)
    with proton.scope(f"triton [{size}]"):
        for _ in range(5): product(p, q)
    with proton.scope(f"torch [{size}]", {"flops16": 5 * 2.0 * size ** 3, "bytes": 5 * 6 * size * size}):
        for _ in range(5): torch.matmul(p, q)
with proton.state("warm"), proton.scope("in a state"):
    x.add_(1)  # no launch of Triton here: its hook ends the state (listed difference)
decorated(); decorated()
proton.enter_scope("entered"); plus(); proton.exit_scope("entered", metrics={"n (exc)": 3})
with proton.cpu_timed_scope("timed"): plus()
torch.cuda.synchronize()
proton.finalize()
from importlib import import_module
try:
    viewer = import_module(proton.__name__ + ".viewer")
    frames, metrics = viewer.parse(["time/ms", "tflop16/s"], sys.argv[1] + ".hatchet")
    print("columns", metrics)
except ImportError as e:
    print("no viewer:", e)
"""
ON_AND_OFF = KERNELS + """
import random
rng, names, end = random.Random(int(sys.argv[2])), ["one", "two", "three"], time.monotonic() + float(sys.argv[3])
ids = [proton.start(sys.argv[1] + n, hook="triton" if n == "two" else None) for n in names]
on, truth, switches = [True] * 3, [{}, {}, {}], 0
while time.monotonic() < end:
    i = rng.randrange(3)
    if rng.random() < 0.5: proton.deactivate(ids[i]); on[i] = False
    else: proton.activate(ids[i]); on[i] = True
    switches += 1
    where = rng.choice(("a", "b", "c"))
    with proton.scope(where):
        for _ in range(rng.randrange(1, 30)):
            plus() if rng.random() < 0.5 else x.add_(1)
            for k in range(3):
                if on[k]: truth[k][where] = truth[k].get(where, 0) + 1
torch.cuda.synchronize()
proton.finalize()
print(json.dumps([switches, truth]))
"""
COSTS = KERNELS + """
import os, resource
def best(f, n, rounds=20):
    low = 1e9
    for _ in range(rounds):
        torch.cuda.synchronize(); time.sleep(0.005)
        t = time.perf_counter_ns(); f(n); low = min(low, (time.perf_counter_ns() - t) / n)
    return low
def empty(n):
    for _ in range(n): pass
def scope(n):
    for _ in range(n):
        with proton.scope("a"): pass
def metric(n):
    for _ in range(n):
        with proton.scope("a", {"n": 1.0}): pass
def launch(n):
    for _ in range(n): plus()
def op(n):
    for _ in range(n): x.add_(1)
def rss(): return int(open("/proc/self/statm").read().split()[1]) * 4
def deep(n, f): return deep(n - 1, f) if n else f()
def loop(): return best(op, 1000)
def timed(what, f):
    t = time.perf_counter_ns(); f(); print(what, "ns", time.perf_counter_ns() - t)
def session(launches):
    bare = best(launch, 500); print("bare launch ns", bare)
    it = proton.start(sys.argv[1], hook="triton")
    none = best(empty, 10000)
    print("scope ns", best(scope, 500) - none); print("scope with a metric ns", best(metric, 500) - none)
    print("launch with the hook, added ns", best(launch, 500) - bare)
    op(100000); torch.cuda.synchronize(); before = rss()
    if launches: op(launches); torch.cuda.synchronize(); print(f"memory of {launches} launches KiB", rss() - before)
    if proton.__name__ == "protond":
        timed("data.get", lambda: proton.data.get(it)); timed("data.get_msgpack", lambda: proton.data.get_msgpack(it))
    timed(f"finalize after {100000 + launches} launches", proton.finalize)
    for context in ("shadow", "python"):
        proton.start(sys.argv[1] + context, context=context)
        for depth in (1, 20): print(f"{context} context, op at depth {depth} ns", deep(depth, loop))
        proton.finalize()
    for early in (False, True):
        it = proton.start(sys.argv[1] + "graph")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            with proton.scope("captured"): op(200)
        for _ in range(1000): graph.replay()
        torch.cuda.synchronize()
        if early: timed("deactivate after 1000 replays of a graph of 200", lambda: proton.deactivate(it))
        timed("finalize after that, when deactivated" if early else "finalize after 1000 replays of a graph of 200", proton.finalize)
print("done", flush=True)
for i, _ in enumerate(sys.stdin): session(0 if i else 1000000); print("done", flush=True)
"""
PYTHON_CONTEXT = KERNELS + """
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()).cuda()
def inner(): plus(); x.add_(1)
def outer(): inner(); inner()
def gen():
    for _ in range(2): yield x.mul_(1.0)
inner(); net(torch.ones(4, 64, device="cuda")); list(gen()); torch.cuda.synchronize()
proton.start(sys.argv[1], context="python")
outer(); inner()
with proton.scope("not in the path"): list(gen())
for _ in range(3): net(torch.ones(4, 64, device="cuda"))
torch.cuda.synchronize()
proton.finalize()
"""
COMPILED = PYTHON_CONTEXT.replace(".cuda()\ndef inner", ".cuda()\nnet = torch.compile(net)\ndef inner")

# Numbers of a capture: constants, a scalar and a vector on the GPU, an op's; replays in different scopes, phases and
# sessions, and of two graphs at a time. Prints what each must have come to.
GRAPHS = KERNELS + """
def metadata(grid, kernel, args): return {"name": "copied", "bytes": 64, "flops": args["x"].sum()}
@triton.jit(launch_metadata=metadata)
def copied(x, y, B: tl.constexpr): tl.store(y + tl.arange(0, B), tl.load(x + tl.arange(0, B)))
u, v = torch.full((16,), 2.0, device="cuda"), torch.empty(16, device="cuda")
steps, half = torch.zeros(1, device="cuda", dtype=torch.int64), torch.full((3,), 1.5, device="cuda", dtype=torch.float16)
copied[(1,)](u, v, 16)
def body(session):
    with proton.scope("constant", {"n": 3, "part (exc)": 0.5}): u.add_(0.0)
    with proton.metadata_state(): steps.add_(1)
    with proton.scope("read", {"step": steps, "half": half}): v.mul_(1.0)
    copied[(1,)](u, v, 16)
    proton.deactivate(session)
    with proton.scope("unseen", {"n": 1000}): v.add_(1.0)
    proton.activate(session)
def capture(session, stream):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream): body(session)
    return graph
nobody = torch.cuda.CUDAGraph()
with torch.cuda.graph(nobody): v.mul_(2.0)
session = proton.start("graphs", hook="triton")
streams = [torch.cuda.Stream() for _ in range(2)]
first = capture(session, streams[0])
steps.zero_(); torch.cuda.synchronize()
with proton.scope("once"): first.replay()
with proton.scope("thrice"):
    for _ in range(3): first.replay()
torch.cuda.synchronize()
proton.deactivate(session)
with proton.scope("off"): first.replay()
proton.activate(session)
with proton.scope("nobody"): nobody.replay()
torch.cuda.synchronize()
proton.data.advance_phase(session)
with proton.scope("many"):
    for _ in range(5000): first.replay()
torch.cuda.synchronize()
proton.data.advance_phase(session)
second = capture(session, streams[1])
steps.zero_(); torch.cuda.synchronize()
for _ in range(500):
    for graph, stream in zip((first, second), streams):
        with torch.cuda.stream(stream), proton.scope("both"): graph.replay()
torch.cuda.synchronize()
proton.finalize()
"""


def begin(tool, code, *args, **pipes):
    """(process, folder) of a program in a folder of its own."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="pdproton", dir="/dev/shm"))
    (place / "p.py").write_text(IMPORT[tool] + code)
    env = dict(os.environ, PYTHONPATH=str(DIR / "lib/protond/python"), PROTOND_RUNTIME_DIR=str(place), PROTOND_DB=str(place / "db"))
    return subprocess.Popen([sys.executable, "p.py", *map(str, args)], cwd=place, env=env, stdout=subprocess.PIPE, text=True, **pipes), place


def run(tool, code, *args, timeout=250):
    """(standard output, folder)"""
    p, place = begin(tool, code, *args, stderr=subprocess.PIPE)
    out, err = p.communicate(timeout=timeout)
    if p.returncode != 0:
        check(f"{tool}: the program ends", False, f"exit {p.returncode}: {err[-700:]}")
    return out, place


def tree(path):
    """{path: metrics}, without what only one of the tools writes."""
    found = {}

    def walk(node, above):
        for c in node["children"]:
            p = above + (re.sub(r"0x[0-9a-f]+", "", c["frame"]["name"]),)
            m = {k: v for k, v in c["metrics"].items()
                 if k not in ("device_id", "device_type", "cpu_time (ns)", "calls", "copies", "copy_time (ns)", "copy_bytes")}
            if m or c["children"]:
                at = found.setdefault(p, {})  # an op and a kernel may have the same name
                for k, v in m.items():
                    at[k] = at[k] + v if k in at and not isinstance(v, str) else v
            walk(c, p)
    walk(json.loads(path.read_text())[0], ())
    return found


def tutorial():
    theirs, ours = (tree(run(t, TUTORIAL, "t")[1] / "t.hatchet") for t in IMPORT)
    kernels = [p for p in sorted(set(theirs) | set(ours)) if not p[-1].startswith("[mem")]
    counts = {p: (theirs.get(p, {}).get("count"), ours.get(p, {}).get("count")) for p in kernels}
    wrong = {" / ".join(p)[:150]: c for p, c in counts.items() if (c[0] or 0) != (c[1] or 0)}
    check("tutorial: nodes and counts", not wrong, f"{len(kernels)} nodes; (Proton, protond): {wrong}")
    for metric in ("flops16", "bytes", "n"):
        got = {p: (theirs.get(p, {}).get(metric), ours.get(p, {}).get(metric)) for p in kernels}
        bad = {" / ".join(p)[:150]: v for p, v in got.items() if (v[0] or 0) != (v[1] or 0)}
        check(f"tutorial: {metric}", not bad and any(v[0] for v in got.values()), f"(Proton, protond): {bad}")
    a, b = (sum(m.get("time (ns)", 0) for p, m in t.items() if "count" in m) for t in (theirs, ours))
    check("tutorial: GPU time within 3 %", a > 0 and abs(b / a - 1) < 0.03, f"{a / 1e6:.3f} and {b / 1e6:.3f} ms")
    out, _ = run("protond", TUTORIAL, "t")
    check("tutorial: viewer.parse", "columns" in out, out[-300:])


def python_context(code=PYTHON_CONTEXT, name="python context"):
    theirs, ours = (tree(run(t, code, "t")[1] / "t.hatchet") for t in IMPORT)

    def frames(t):  # what we add, and what of a path belongs to one tool's folder
        return {"/".join(f.rsplit("/", 1)[-1] for f in p): m["count"] for p, m in t.items()
                if m.get("count") and not p[-1].startswith("[mem")}
    a, b = frames(theirs), frames(ours)
    wrong = {k[-200:]: (a.get(k), b.get(k)) for k in sorted(set(a) | set(b)) if a.get(k) != b.get(k)}
    check(f"{name}: the same stacks and counts", a and not wrong, f"{len(a)} nodes; (Proton, protond): {wrong}")


def python_compiled():
    python_context(COMPILED, "python context, torch.compile")


def as_proton():
    place = pathlib.Path(tempfile.mkdtemp(prefix="pdproton", dir="/dev/shm"))
    (place / "p.py").write_text(IMPORT["Proton"] + TUTORIAL)
    env = dict(os.environ, PROTOND_RUNTIME_DIR=str(place), PROTOND_DB=str(place / "db"))
    r = subprocess.run([DIR / "bin/protonctl", "run", "--as-proton", "-k", "none", "-q", "--", sys.executable, "p.py", "t"], cwd=place, env=env,
                       capture_output=True, text=True, timeout=200)
    ours = tree(place / "t.hatchet") if (place / "t.hatchet").exists() else {}
    n = sum(m.get("count", 0) for p, m in ours.items() if "matmul [M=" in p[-1])
    check("--as-proton: 15 products named", n == 15, f"{n}; exit {r.returncode}: {r.stderr[-500:]}")


def on_and_off():
    seconds = float(os.environ.get("PD_SECONDS", "20"))
    out, place = run("protond", ON_AND_OFF, "s", 1, seconds, timeout=seconds + 200)
    switches, truth = json.loads(out.splitlines()[-1])
    for name, want in zip(("one", "two", "three"), truth):
        got = {}
        for p, m in tree(place / f"s{name}.hatchet").items():
            if m.get("count") and p[0] in "abc":
                got[p[0]] = got.get(p[0], 0) + m["count"]
        check(f"on and off: session {name}, {switches} switches", got == want, f"{got} {want}")


def graphs():
    _, place = run("protond", GRAPHS)

    def part(number):
        return tree(place / f"graphs.part_{number}.hatchet")

    def at(found, scope, below, metric):
        return found.get((scope, "<captured_at>", below), {}).get(metric)
    first, many, both = part(0), part(1), part(2)
    for scope, replays, want in (("once", 1, 1), ("thrice", 3, 2 + 3 + 4)):
        got = {below + " " + metric: at(first, scope, below, metric) for below, metric in (
            ("constant", "n"), ("constant", "part"), ("read", "step"), ("read", "half"), ("copied", "bytes"), ("copied", "flops"),
            ("copied", "count"))}
        check(f"graphs: {scope}", got == {"constant n": 3 * replays, "constant part": 0.5 * replays, "read step": want,
                                          "read half": [1.5 * replays] * 3, "copied bytes": 64 * replays,
                                          "copied flops": 32.0 * replays, "copied count": replays}, str(got))
        check(f"graphs: {scope}: what a scope launches itself is not mixed with what reads its numbers",
              "count" not in first.get((scope, "<captured_at>", "read"), {}), "")
    seen = [p for found in (first, many, both) for p in found if "unseen" in p and "<captured_at>" in p]
    check("graphs: what was captured while the session was inactive is not in it", not seen, str(seen[:3]))
    check("graphs: a replay while it is inactive is not in it", not any(p[0] == "off" and len(p) > 1 for p in first), "")
    alone = {p: m.get("count") for p, m in first.items() if p[0] == "nobody" and m.get("count")}
    check("graphs: of one that was captured by nobody the kernels are there", sum(alone.values()) == 1, str(alone))
    got = at(many, "many", "constant", "n"), at(many, "many", "read", "step"), at(many, "many", "copied", "flops")
    want = 15000, sum(range(6, 5006)), 160000.0
    check("graphs: 5000 replays of a phase", got == want, f"{got} {want}")
    got = at(both, "both", "constant", "n"), at(both, "both", "read", "half"), at(both, "both", "copied", "flops")
    want = 3000, [1500.0] * 3, 32000.0
    check("graphs: two at a time on two streams", got == want, f"{got} {want}")


def costs():
    """Both programs live through all rounds; while one works, the other waits for its line."""
    found, jobs = {}, {t: begin(t, COSTS, "c", stdin=subprocess.PIPE)[0] for t in IMPORT}

    def until_done(tool):
        for line in jobs[tool].stdout:
            if line == "done\n":
                return
            if re.search(r" [\d.-]+$", line):
                what, value = line.rsplit(" ", 1)
                found.setdefault((what, tool), []).append(float(value))
        check(f"{tool}: costs", False, "ended early")
    for tool in IMPORT:
        until_done(tool)
    for i in range(int(os.environ.get("PD_ROUNDS", "3"))):
        for tool in list(IMPORT)[::1 if i % 2 else -1]:
            jobs[tool].stdin.write("go\n")
            jobs[tool].stdin.flush()
            until_done(tool)
    for tool in IMPORT:
        jobs[tool].communicate(timeout=60)
    for what, tool in sorted(found):
        v = found[what, tool]
        print(f"{what:52} {tool:8} {statistics.median(v):12.0f} ({min(v):.0f} to {max(v):.0f}, {len(v)})", flush=True)


judge((tutorial, python_context, python_compiled, as_proton, on_and_off, graphs, costs), sys.argv[2:])
