# SPDX-License-Identifier: MIT. protond.analysis: a session's answers as plain Python, and check(), of a file that
# torch.profiler wrote on a GPU and of a run without one.
import json
import pathlib
import subprocess
import sys

import pytest

from conftest import BUILD, SANITIZED
from test_python import python_env

KINETO = pathlib.Path(__file__).parent.parent / "real/kineto.json.gz"
ASKS = """
import json, protond, protond.analysis as an
def said(f):
    try:
        f()
    except (an.Failed, protond.Error, ValueError) as e:
        return type(e).__name__, str(e)
a = an.open("kineto.protond")
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
    "none": said(lambda: an.open("nobody")), "no": said(lambda: a.bottlenecks("BAD")), "lacks": said(a.series),
    "demo": [(s["name"], len(s["t"]), s["v"][:2]) for s in an.open("demo").series("loss")], "cpu": [an.open("demo").idle(), an.open("demo").efficiency()],
    "last": [an.open("@last").source, an.open("@last").summary()["name"]],
    "unknown": said(lambda: an.check("demo", max_idle=0.5)),
}))
"""


@pytest.mark.skipif(SANITIZED, reason="this Python is not instrumented")
def test_answers_as_python(world):
    world.view("import", KINETO, "-o", "kineto.protond", "--as", "k")
    world.ctl("run", "-n", "demo", "-d", "both", "--", BUILD / "bin/protond-demo")
    r = subprocess.run([sys.executable, "-c", ASKS], env=python_env(world), cwd=world.home, capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    got = json.loads(r.stdout)
    flat = json.loads(world.view("flat", "kineto.protond", "--json").stdout)["data"]
    at = [c["name"] for c in flat["columns"]].index("sum")
    want = sum(row[at] for row in flat["rows"]) / 1e6
    assert got["name"] == "k" and abs(got["sum"] - want) < 1e-6 and abs(got["families"] - want) < 1e-6
    assert abs(got["shares"] - 1) < 1e-9 and got["two"] == 2 and got["calls"] == 332
    assert abs(got["graph"][0] - want) < 1e-6 and abs(got["graph"][1] - want) < 1e-6
    assert abs(sum(got["parts"]["0"].values()) - 1) < 1e-9 and 0.98 < got["idle"] < 0.99
    assert got["verdicts"] == ["gpu_idle"] and got["high"] == [] and got["fine"] == "kineto.protond"
    assert got["failed"][0] == "Failed" and "idle for 98." in got["failed"][1], got["failed"]
    assert got["gate"][0] == "Failed" and "MEDIUM gpu_idle: " in got["gate"][1]
    assert got["none"][0] == "Error" and "no session 'nobody'" in got["none"][1]
    assert got["no"] == ["ValueError", "severity is one of HIGH, MEDIUM, LOW"] and "no numbers over time" in got["lacks"][1]
    assert got["demo"] == [["loss", 24, [1.0, 0.5]]] and got["cpu"] == [None, {}]
    assert "no GPU's time is known" in got["unknown"][1]
    assert got["last"] == ["1", "demo"], "pinned: another may become the last meanwhile"
