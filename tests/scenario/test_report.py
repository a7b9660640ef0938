# SPDX-License-Identifier: MIT. `protonview report`: the page as one file: what is in it, what it may do, how large it is.
import base64
import hashlib
import html.parser
import json
import os
import random
import re
import struct
import subprocess
import sys
import zlib

import pytest

from conftest import BUILD, SANITIZED
from test_exports import GOLDEN, replayed
from test_hostile_names import JOB, NAMES
from test_python import python_env
from test_replay import DUMPS, JOB as REPLAY
from test_web import Page, serve  # noqa: F401 (a fixture)

KERNELS = GOLDEN / "three_kernels.hatchet"


class Report(html.parser.HTMLParser):
    """A file as a browser takes it apart: elements, scripts, styles."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.elements, self.inline, self.data, self.title, self.policy, self.at, self.path = [], [], {}, "", None, None, None
        self.bytes = path.read_bytes()
        self.feed(self.bytes.decode())
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append((tag, attributes))
        self.at, self.path = tag, attributes.get("data-path")
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy":
            assert not self.inline and not self.data, "the policy stands before what it is about"
            self.policy = {d.split()[0]: d.split()[1:] for d in attributes["content"].split(";") if d.strip()}
        if tag == "script" and self.path is not None:
            assert attributes["type"] == "application/octet-stream" and self.path not in self.data
            self.data[self.path] = b""
        elif tag in ("script", "style"):
            assert "src" not in attributes
            self.inline.append((tag, ""))

    def handle_data(self, text):
        if self.at == "script" and self.path is not None:
            self.data[self.path] = zlib.decompress(base64.b64decode(text, validate=True), -15)
        elif self.at in ("script", "style"):
            self.inline[-1] = (self.at, self.inline[-1][1] + text)
        elif self.at == "title":
            self.title += text

    def handle_endtag(self, tag):
        self.at = self.path = None

    def json(self, path):
        return json.loads(self.data[path])


def report(world, *args):
    world.view("report", *args, "-o", "run.html", "--force")
    return Report(world.home / "run.html")


def test_nothing_runs_but_the_page(world):
    r = report(world, KERNELS)
    assert r.policy["default-src"] == ["'none'"] and "connect-src" not in r.policy and r.policy["form-action"] == ["'none'"]
    for tag, source in (("script", "script-src"), ("style", "style-src")):
        (text,) = [t for kind, t in r.inline if kind == tag]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert r.policy[source] == [f"'sha256-{digest}'"], "and what its hash names is what is there"
        assert "</" + tag not in text.lower()
    assert not [a for _, a in r.elements if "src" in a or a.get("href", "data:,") != "data:," or any(k.startswith("on") for k in a)], "nothing is loaded"
    assert r.title == "three_kernels.hatchet"
    assert r.json("api/sessions") == {"columns": [], "rows": [], "report": True, "open": ["f1"], "warnings": []}


@pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
def test_it_says_what_the_page_says(world, serve):  # noqa: F811
    replayed(world, next(d for d in DUMPS if d.name.startswith("torch")))
    r, page = report(world, "r"), serve("r")
    (ref,) = page.json("sessions")["open"]
    assert r.json("api/sessions")["open"] == [ref] and r.title == "r"
    paths = [p for p in r.data if p.startswith(f"api/s/{ref}/")]
    assert {p.split("/")[3].split("?")[0] for p in paths} == {"meta", "tree", "ops", "steps", "bottlenecks", "series", "memory", "lanes", "window"}
    for path in paths:
        assert page.ask("/" + path)[2] == r.data[path], path
    windows = [p for p in paths if "window" in p]
    lanes = r.json(f"api/s/{ref}/lanes")
    assert windows[0].endswith(f"window?t0={lanes['t0']}&t1={lanes['t1']}&px=1024"), "all of it is there"
    assert sum(len(r.data[p]) for p in windows) > 0 and len(windows) > 4
    for p in windows:
        magic, _, n, names, _, per, flags, name_bytes = struct.unpack_from("<4s3I2d2I", r.data[p])
        assert magic == b"PTL1" and n > 0 and len(r.data[p]) == 40 + 28 * n + name_bytes and per > 0 and flags in (0, 1)
    assert len(r.bytes) < 400_000


@pytest.mark.preload
def test_hostile_names(world):
    """None of them is seen by a browser as anything but data."""
    world.start()
    hostile = "</script><img src=x onerror=alert(1)>\u202e<!--"
    world.ctl("run", "-n", hostile, "-k", "none", "-d", "both", "--", sys.executable, "-c", JOB, BUILD / "lib/libprotond.so.0")
    r = report(world, "@last")
    assert r.title == hostile
    assert {t for t, _ in r.elements} <= {"html", "head", "meta", "title", "style", "body", "div", "script", "noscript", "link", "p"}
    assert len(r.json(next(p for p in r.data if p.endswith("/tree")))["node"]["name"]) == 1 + len(NAMES)


def hatchet(path, nodes, names):
    """A tree of so many nodes, 40 deep at most."""
    rng = random.Random(1)
    words = [f"void at::native::kernel_{i}<c10::BFloat16, {i % 512}>(at::TensorIterator&)" if i % 2 else f"model.layers.{i}.forward" for i in range(names)]
    all_nodes = [(0, {"frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0, "time (ns)": 0}, "children": []})]
    while len(all_nodes) < nodes:
        depth, parent = all_nodes[-rng.randrange(1, min(200, len(all_nodes)) + 1)] if rng.random() < .7 else rng.choice(all_nodes)
        if depth < 40:
            child = {"frame": {"name": rng.choice(words), "type": "function"}, "metrics": {}, "children": []}
            parent["children"].append(child)
            all_nodes.append((depth + 1, child))
    for _, node in all_nodes:
        if not node["children"]:
            node["metrics"] = {"time (ns)": rng.randrange(1000, 5_000_000), "count": rng.randrange(1, 1000)}
    path.write_text(json.dumps([all_nodes[0][1], {}]))
    return path


@pytest.mark.parametrize("nodes, names, most", [(3000, 600, 400_000), pytest.param(100_000, 5000, 2_000_000, marks=pytest.mark.long)])
def test_how_large_it_is(world, nodes, names, most):
    r = report(world, hatchet(world.home / "many.hatchet", nodes, names))
    tree = r.json("api/s/f1/tree")
    assert len(tree["node"]["name"]) == nodes and len(tree["names"]) <= names + 1 and len(r.bytes) < most, len(r.bytes)


def test_files_and_refusals(world):
    (world.home / "there.html").write_text("mine")
    r = world.view("report", KERNELS, "-o", "there.html", check=False)
    assert r.returncode == 1 and "--force" in r.stderr and (world.home / "there.html").read_text() == "mine"
    assert "needs -o" in world.view("report", KERNELS, check=False).stderr
    for source, words in (("nobody", "nothing has been recorded"), ("-", "standard input"), ("/nonexistent/x.hatchet", "no such file")):
        r = world.view("report", source, "-o", "new.html", check=False)
        assert r.returncode in (1, 2) and words in r.stderr and not (world.home / "new.html").exists()
    out = world.view("report", KERNELS, "-o", "-").stdout
    assert out.startswith("<!doctype html>") and out.rstrip().endswith("</html>")
    (world.home / "broken.hatchet").write_text("[")
    assert world.view("report", "broken.hatchet", "-o", "new.html", check=False).returncode == 1
    assert [f for f in os.listdir(world.home) if f.endswith(".html") or ".html." in f] == ["there.html"], "no half of a file is left"


def test_a_disk_that_is_full(world):
    r = world.view("report", KERNELS, "-o", "/dev/full", check=False)
    assert r.returncode == 1 and re.search("No space left", r.stderr)


def test_run_and_finalize_write_one(world):
    world.start()
    demo = BUILD / "bin/protond-demo"
    run = world.ctl("run", "-n", "demo", "-k", "none", "-d", "both", "-o", "run.html", "--", demo)
    r = Report(world.home / "run.html")
    assert r.title == "demo" and "written to run.html" in run.stderr and r.json(next(p for p in r.data if p.endswith("/steps")))["column"]["step"]
    refused = world.ctl("run", "-o", "run.html", "--", demo, check=False)
    assert refused.returncode == 125 and "already exists" in refused.stderr
    job = world.job()
    job.say("start mine")
    job.say("repeat 3 step")
    world.ctl("finalize", "mine", "-o", "mine.html")
    assert Report(world.home / "mine.html").title == "mine"


NOTEBOOK = """
import sys
from protond import viewer
gf, *_ = viewer.read(sys.argv[1])
if sys.argv[2] == "filtered":
    gf = gf.filter(["*", {"name": ".*1_1_1"}])
print(gf._repr_html_())
"""


plain = pytest.mark.skipif(SANITIZED, reason="this Python is not instrumented")


@plain
@pytest.mark.parametrize("what", ["all", "filtered"])
def test_in_a_notebook(world, what):
    r = subprocess.run([sys.executable, "-c", NOTEBOOK, GOLDEN / "frames.hatchet", what], env=python_env(world), capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stderr
    (world.home / "cell.html").write_text(r.stdout)
    (tag, attributes), = [e for e in Elements(r.stdout).found]
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts", "of an origin of its own"
    (world.home / "inside.html").write_text(attributes["srcdoc"])
    page = Report(world.home / "inside.html")
    tree = page.json("api/s/f1/tree")
    tool = json.loads(world.view("flat", GOLDEN / "frames.hatchet", "--json").stdout)["data"]
    names = {row[0] for row in tool["rows"]}
    assert ({tree["names"][n] for n in tree["node"]["name"]} >= names) == (what == "all")
    total = sum(row[[c["name"] for c in tool["columns"]].index("count")] for row in tool["rows"])
    assert (sum(tree["values"]["count_self"]) == total) == (what == "all")


@plain
def test_a_notebook_without_protonview(world):
    code = NOTEBOOK.replace("print(", "from protond import _where\n_where.tool = lambda name: '/nonexistent'\nprint(")
    r = subprocess.run([sys.executable, "-c", code, KERNELS, "all"], env=python_env(world), capture_output=True, text=True, timeout=120)
    assert (r.returncode, r.stdout) == (0, "None\n"), r.stderr


class Elements(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


HLO = """HloModule jit_step, is_scheduled=true

ENTRY %main.5 (p: f32[8]) -> f32[8] {
  %fusion.3 = f32[8]{0} fusion(%p), metadata={op_name="jit(step)/dot_general" source_file="/x/train.py" source_line=17}
}
"""
FUSION = "fusion.3: dot_general (train.py:17)"


def test_names_of_an_xla_dump(world, serve):
    """In files, in the report and on the page; the session keeps its own."""
    dump = world.home / "xla"
    dump.mkdir()
    (dump / "module_0001.jit_step.sm_9.0_gpu_after_optimizations.txt").write_text(HLO)
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "x", "--all", "-d", "both")
    job = world.job()
    for word in ("enter jit_step", "enter fusion.3", "exit", "exit"):
        job.say(word)
    job.quit()
    world.ctl("finalize", "x")
    world.view("export", "x", "-o", "x.protond")
    for source in ("x", "x.protond"):
        for name in ("a.json", "a.pt.trace.json", "a.pftrace", "a.folded", "a.hatchet", "a.csv", "a.sqlite", "a.speedscope.json"):
            r = world.view("export", source, "--xla-dump", dump, "-o", name, "--force")
            assert FUSION.encode() in (world.home / name).read_bytes(), name
            assert "--xla-dump" not in r.stderr
            world.view("export", source, "-o", name, "--force")
            assert b"dot_general" not in (world.home / name).read_bytes(), name
    r = world.view("export", "x", "--xla-dump", dump, "-o", "b.protond", check=False)
    assert r.returncode == 2 and "what was recorded" in r.stderr
    r = world.view("export", "x", "--xla-dump", world.home, "-o", "b.json", check=False)
    assert r.returncode != 0 and "--xla_dump_hlo_as_text" in r.stderr and not (world.home / "b.json").exists()
    world.view("report", "x", "--xla-dump", dump, "-o", "r.html")
    data = Report(world.home / "r.html").data
    assert sum(FUSION.encode() in body for body in data.values()) >= 3, "tree, operations, timeline"
    page = serve(world.home / "x.protond", "--xla-dump", dump)
    assert FUSION in page.json("s/f1/tree")["names"]
    lanes = page.json("s/f1/lanes")
    body = page.ask(f"/api/s/f1/window?t0={lanes['t0']}&t1={lanes['t1']}&px=100")[2]
    assert FUSION.encode() in body
    assert FUSION not in serve(world.home / "x.protond").json("s/f1/tree")["names"]
