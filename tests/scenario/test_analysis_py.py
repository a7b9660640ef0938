# SPDX-License-Identifier: MIT. protond.analysis: a session's answers as plain Python, and check(), of a file that
# torch.profiler wrote on a GPU and of a run without one.
import gzip
import json
import pathlib
import subprocess
import sys

import pytest

from conftest import BUILD, SANITIZED
from test_python import python_env

KINETO = pathlib.Path(__file__).parent.parent / "real/kineto.json.gz"
# As much of matplotlib as is used, which not every machine has: it notes what it is asked for.
PYPLOT = """
class Axes:
    def __init__(self):
        self.calls = []
    def __getattr__(self, name):
        def call(*args, **more):
            self.calls.append([name, *args, *more.values()])
            return [name]
        return call
def subplots(**more):
    return None, Axes()
"""
VERDICT = ("severity", "type", "description", "recommendation", "where", "share", "gain_ns", "gain_step_ns")
ASKS = """
import json, subprocess, protond._where, protond.analysis as an
def said(f):
    try:
        f()
    except (an.Failed, protond.Error, ValueError) as e:
        return type(e).__name__, str(e)
def own():
    protond.start("own", backend="none")
    with protond.scope("step"):
        pass
    protond.finalize(output_format=None)
    subprocess.run([protond._where.tool("protonctl"), "run", "-q", "-n", "later", "--", protond._where.tool("protond-demo")], check=True, stdout=subprocess.DEVNULL)
    return [protond.check(gate=None).summary()["name"], said(lambda: protond.check(max_idle=0.5))]
a = an.open("kineto.protond")
def frame(what, **more):
    try:
        import pandas
    except ImportError:
        return said(lambda: a.frame(what, **more))
    rows = a.frame(what, **more)
    return [list(rows.columns), len(rows)]
tops = a.top_operations(0)
def total(node): return node["metrics"].get("gpu_time/ms (inc)", 0)
graph = a.call_graph()
print(json.dumps({
    "name": a.summary()["name"], "idle": a.idle(), "parts": a.efficiency(),
    "sum": sum(o["total_ms"] for o in tops), "families": sum(o["total_ms"] for o in a.top_operations(0, by="family")),
    "shares": sum(o["share"] for o in tops), "two": len(a.top_operations(2)), "calls": sum(o["calls"] for o in tops),
    "graph": [total(graph), sum(map(total, graph["children"]))], "verdicts": [v.type for v in a.bottlenecks()],
    "high": a.bottlenecks("HIGH"), "fine": an.check("kineto.protond").source,
    "failed": said(lambda: an.check("kineto.protond", max_idle=0.2)), "gate": said(lambda: an.check("kineto.protond", gate="MEDIUM")),
    "none": said(lambda: an.open("nobody")), "no": said(lambda: a.bottlenecks("BAD")), "held": len(a.series()),
    "demo": [(s["name"], len(s["t"]), s["v"][:2]) for s in an.open("demo").series("loss")], "cpu": [an.open("demo").idle(), an.open("demo").efficiency()],
    "last": [an.open("@last").source, an.open("@last").summary()["name"]],
    "steps": [[s["step"], s["told"]["loss"]] for s in an.open("demo").steps()][:2], "rates": an.open("demo").throughput(), "every": [s["step"] for s in a.steps(every="20ms")],
    "frames": [frame("operations", n=3), frame("bottlenecks"), frame("efficiency")], "kind": said(lambda: a.frame("bad")),
    "drawn": [a.plot(what).calls for what in ("operations", "bottlenecks", "efficiency")], "line": an.open("demo").plot("series", name="loss").calls,
    "label": protond._plots._label("_<b>$x_1$\\n</b>" + "y" * 99),
    "unknown": said(lambda: an.check("demo", max_idle=0.5)), "own": own(),
}))
"""


@pytest.mark.skipif(SANITIZED, reason="this Python is not instrumented")
def test_answers_as_python(world):
    world.view("import", KINETO, "-o", "kineto.protond", "--as", "k")
    world.ctl("run", "-n", "demo", "-d", "both", "--", BUILD / "bin/protond-demo")
    plots = world.home / "plots/matplotlib"
    plots.mkdir(parents=True)
    (plots / "__init__.py").write_text("")
    (plots / "pyplot.py").write_text(PYPLOT)
    env = python_env(world)
    env["PYTHONPATH"] = f"{plots.parent}:{env['PYTHONPATH']}"
    r = subprocess.run([sys.executable, "-c", ASKS], env=env, cwd=world.home, capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    got = json.loads(r.stdout)
    flat = json.loads(world.view("flat", "kineto.protond", "--json").stdout)["data"]
    at = [c["name"] for c in flat["columns"]].index("sum")
    want = sum(row[at] for row in flat["rows"]) / 1e6
    assert got["name"] == "k" and abs(got["sum"] - want) < 1e-6 and abs(got["families"] - want) < 1e-6
    assert abs(got["shares"] - 1) < 1e-9 and got["two"] == 2 and got["calls"] == 332
    assert abs(got["graph"][0] - want) < 1e-6 and abs(got["graph"][1] - want) < 1e-6
    assert got["steps"] == [[1, 1.0], [2, 0.5]] and got["rates"]["iterations_per_sec"] > 0 and got["rates"]["tokens_per_sec"] is None
    assert got["every"] == [1, 2, 3]  # 58.7 ms of them
    assert abs(sum(got["parts"]["0"].values()) - 1) < 1e-9 and 0.98 < got["idle"] < 0.99
    assert got["verdicts"] == ["critical_host", "gpu_idle"] and got["high"] == [] and got["fine"] == "kineto.protond"
    assert got["failed"][0] == "Failed" and "idle for 98." in got["failed"][1], got["failed"]
    assert got["gate"][0] == "Failed" and "MEDIUM gpu_idle: " in got["gate"][1]
    assert got["none"][0] == "Error" and "no session 'nobody'" in got["none"][1]
    assert got["no"] == ["ValueError", "severity is one of HIGH, MEDIUM, LOW"] and got["held"] > 0
    assert got["demo"] == [["loss", 24, [1.0, 0.5]]] and got["cpu"] == [None, {}]
    assert "no GPU's time is known" in got["unknown"][1]
    assert got["last"] == ["1", "demo"], "pinned: another may become the last meanwhile"
    frames = [[["name", "display", "calls", "total_ms", "share", "avg_us", "p50_us", "p99_us"], 3], [list(VERDICT), 2], [["gpu", *got["parts"]["0"]], 1]]
    assert got["frames"] == frames or all(f[0] == "Error" and "pandas is not installed" in f[1] for f in got["frames"])
    assert got["kind"][0] == "ValueError"
    for calls, bars in zip(got["drawn"], (10, 2, len(got["parts"]["0"]))):
        assert [c[0] for c in calls].count("barh") >= bars and ["invert_yaxis"] in calls
    assert ["plot", got["demo"][0][2]] == [got["line"][0][0], got["line"][0][2][:2]] and ["legend", ["plot"], [" loss"]] in [[c[0], [c[1][0]], c[2]] for c in got["line"] if c[0] == "legend"]
    assert got["own"][0] == "own" and "no GPU's time is known" in got["own"][1][1], "of this process, not the last"
    assert got["label"] == " _<b>\\$x_1\\$\ufffd</b>" + "y" * 18 + "…" + "y" * 15


@pytest.mark.skipif(SANITIZED, reason="this Python is not instrumented")
@pytest.mark.parametrize("before", [[], ["run", "-q", "-b", "none", "--", BUILD / "bin/protond-demo"]], ids=["no database", "another's session"])
def test_a_check_of_a_process_without_a_session(world, before):
    if before:
        world.ctl(*before)
    r = subprocess.run([sys.executable, "-c", "import protond; protond.check()"], env=python_env(world), capture_output=True, text=True)
    assert "Failed: nothing was recorded of this process: " in r.stderr, r.stderr


DRAWS = """
import json, sys, matplotlib
matplotlib.use("Agg")
import protond.analysis as an
a, out = an.open("fault.protond"), {}
for what in ("operations", "bottlenecks", "efficiency", "series"):
    ax = a.plot(what)
    ax.figure.savefig("drawn.svg")
    whole, axes = ax.figure.bbox, ax.get_window_extent()
    inside = lambda b: bool(b.x0 >= whole.x0 - 1 and b.x1 <= whole.x1 + 1 and b.y0 >= whole.y0 - 1 and b.y1 <= whole.y1 + 1)
    legend = ax.get_legend()
    out[what] = [len(ax.patches) + len(ax.lines), what == "series" or all(inside(t.get_window_extent()) for t in ax.get_yticklabels()),
                 legend is None or inside(legend.get_window_extent()) and bool(legend.get_window_extent().x0 >= axes.x1), len(open("drawn.svg").read())]
print(json.dumps(out))
"""


@pytest.mark.skipif(SANITIZED, reason="this Python is not instrumented")
def test_drawn_by_matplotlib(world):
    """Nothing is cut off, and no legend hides what it explains."""
    if subprocess.run([sys.executable, "-c", "import matplotlib"], capture_output=True).returncode:
        pytest.skip("matplotlib is not installed: the pictures were not drawn (Debian: python3-matplotlib)")
    recorded = pathlib.Path(__file__).parent.parent / "recorded/fault-slow.protond.gz"
    (world.home / "fault.protond").write_bytes(gzip.decompress(recorded.read_bytes()))
    r = subprocess.run([sys.executable, "-c", DRAWS], env=python_env(world), cwd=world.home, capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    for what, (drawn, labels, legend, size) in json.loads(r.stdout).items():
        assert drawn > 0 and labels and legend and size > 5000, what
