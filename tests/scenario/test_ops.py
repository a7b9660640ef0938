# SPDX-License-Identifier: MIT. Operators of PyTorch against torch.profiler's of the same run, field by field; the build of what sees
# them, and each way in which there is none.
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import textwrap

import pytest

from conftest import BUILD, until
from test_options import PYTHON, needs_headers, needs_torch

GPU = pathlib.Path(__file__).resolve().parents[1] / "gpu"
sys.path.insert(0, str(GPU))
from ops_fields import compare  # noqa: E402

pytestmark = pytest.mark.preload
CACHE = str(BUILD / "cache")
ALL = {f"PROTOND_TORCH_{name}": "1" for name in ("SHAPES", "DTYPES", "STRIDES", "SCALARS", "KWARGS", "STACK", "SEQUENCE", "FLOPS")}


def python(world, *words, **env):
    full = {**world.env, "PYTHONPATH": str(BUILD / "lib/protond/python"), "XDG_CACHE_HOME": CACHE, **env}
    return subprocess.run([PYTHON, *words], env=full, cwd=world.home, capture_output=True, text=True, timeout=300)


@needs_headers
@pytest.mark.parametrize("model, least", [("gpt", 5000), ("conv", 1000), ("strange", 100)])
def test_fields_are_torch_profilers(world, model, least):
    r = python(world, GPU / "ops_work.py", model, world.home, **ALL)
    assert r.returncode == 0, r.stderr
    found = compare(world.home)
    assert found["ops"] > least and not found["missing"] and not found["more"]
    assert not found["differences"], {k: v[:3] for k, v in found["differences"].items()}


LOOP = """
import pathlib, sys, torch
x, place = torch.zeros(8), pathlib.Path(sys.argv[1])
while not (place / "stop").exists():
    for _ in range(50):
        x.add_(1)
    (place / "turn").touch()
"""


@needs_headers
def test_switched_while_it_runs(world):
    """A program that was not told, and that names nothing: torch alone."""
    (world.home / "loop.py").write_text(LOOP)
    program = subprocess.Popen([BUILD / "bin/protonctl", "run", "-n", "x", "-b", "none", "--", PYTHON, "loop.py", world.home],
                               env={**world.env, "XDG_CACHE_HOME": CACHE}, cwd=world.home)

    def turned():
        (world.home / "turn").unlink(missing_ok=True)
        until("the loop goes on", (world.home / "turn").exists)
        return world.cells("x").get("/aten::add_", (0,))[0]

    try:
        until("it runs", (world.home / "turn").exists)
        assert turned() == 0
        world.ctl("set", "x", "+ops")
        until("operators are seen", lambda: turned() > 0)
        world.ctl("set", "x", "-ops")
        until("they are gone", lambda: turned() == turned() == turned())
    finally:
        (world.home / "stop").touch()
        assert program.wait(timeout=60) == 0


SESSIONS = """
import json, protond, sys, torch
x = torch.zeros(8)
def work(n):
    for _ in range(n):
        x.mul_(x)
def seen(name):
    found, todo = {}, json.load(open(name + ".hatchet"))[:1]
    for one in todo:
        todo += one["children"]
        if "aten::mul_" in one["frame"]["name"]:
            found[one["frame"]["name"]] = found.get(one["frame"]["name"], 0) + one["metrics"]["calls"]
    return found
def one(name, n, **more):
    session = protond.start(name, backend="none", **more)
    work(n)
    protond.finalize(session)
    return seen(name)
ops = {"switches": "ops"}
print(one("first", 3, **ops), one("second", 4, **ops), one("without", 5), one("third", 6, **ops))
a = protond.start("a", backend="none", **ops)
work(2)
b = protond.start("b", backend="none", **ops)
work(3)
protond.finalize(a)
work(4)
protond.data.advance_phase(b)
work(5)
protond.deactivate(b)
work(50)
protond.activate(b)
work(6)
protond.finalize(b)
print(seen("a"), seen("b.part_0"), seen("b.part_1"))
protond.configure(torch_shapes=True)
print(one("shapes", 7, **ops))
a = protond.start("a", backend="none", **ops)
protond.configure(torch_shapes=False)
print(one("beside", 8, **ops))
protond.finalize(a)
print(one("names", 9, **ops))
"""


BESIDE = """
import json, protond, sys, torch
def tree(name):
    found, todo = {}, [((), one) for one in json.load(open(name + ".hatchet"))[0]["children"]]
    for path, one in todo:
        path += (one["frame"]["name"],)
        found["/".join(path)] = sorted(k for k in one["metrics"] if k not in ("calls", "cpu_time (ns)", "time (ns)"))
        todo += [(path, c) for c in one["children"]]
    return found
x = torch.ones(4, 4, requires_grad=True)
a = protond.start("with", backend="none", switches="ops")
b = protond.start("without", backend="none")
with protond.scope("step"), torch.autograd.profiler.record_function("mine"):
    y = x @ x
    y.register_hook(lambda g: protond._api._metrics({"loss": 1.0}))
    with protond.scope("backward"):
        y.sum().backward()
protond.finalize(a)
protond.finalize(b)
print(json.dumps([tree("with"), tree("without")]))
"""


@needs_headers
@pytest.mark.parametrize("option", ["switch", "option"])
def test_a_session_beside_one_with_operators(world, option):
    """It has none, nor what is said of them; what the program says within one stands in the scope around it. With the option for all
    sessions it has what the other one has."""
    r = python(world, "-c", BESIDE, **ALL, **({"PROTOND_TORCH_OPS": "1"} if option == "option" else {}))
    assert r.returncode == 0, r.stderr
    asked, beside = json.loads(r.stdout)
    assert any("aten::mm" in p for p in asked) and "step/mine" in asked
    if option == "option":
        assert beside == asked
    else:
        assert {p for p in beside if p.startswith("step")} == {"step", "step/backward"}
        assert [p for p, m in beside.items() if m] and all(m in ([], ["loss"]) for m in beside.values()), beside


@needs_headers
def test_sessions_of_a_process(world):
    """One after the other, with one without between them; two at once; phases; paused; each with the fields that its options say,
    and no fewer than one that goes on beside it."""
    r = python(world, "-c", SESSIONS)
    assert r.returncode == 0, r.stderr
    shaped = "{'aten::mul_ [[8], [8]]': %d}"
    assert r.stdout.splitlines() == ["{'aten::mul_': 3} {'aten::mul_': 4} {} {'aten::mul_': 6}",
                                     "{'aten::mul_': 5} {'aten::mul_': 7} {'aten::mul_': 11}", shaped % 7, shaped % 8, "{'aten::mul_': 9}"]


ONCE = """
import protond, sys, torch
session = protond.start("x", backend="none", switches="ops")
torch.zeros(3).add_(1)
with protond.scope("still recorded"):
    pass
protond.finalize(session, "hatchet")
names = [c["frame"]["name"] for c in __import__("json").load(open("x.hatchet"))[0]["children"]]
print("still recorded" in names, "aten::add_" in names)
"""


def once(world, **env):
    r = python(world, "-c", ONCE, **env)
    assert r.returncode == 0, r.stderr
    said = [one for one in r.stderr.splitlines() if "operators are not recorded" in one]
    return r.stdout.strip(), said


@needs_torch
def test_without_them_a_line_says_what_helps(world):
    """No compiler; a compiler that fails; a torch that changed; a cache that is not ours, or cannot be written."""
    empty = world.home / "empty"
    empty.mkdir()
    fresh = {"XDG_CACHE_HOME": str(world.home / "cache")}
    broken, changed = empty / "broken", empty / "changed"
    broken.write_text("#!/bin/sh\necho 'x.h:1:2: error: no member named addGlobalCallback' >&2; exit 1\n")
    changed.write_text("#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done; echo 'not a library' > \"$2\"\n")
    full = empty / "full"
    full.write_text("#!/bin/sh\necho '/usr/bin/ld: final link failed: No space left on device\ncollect2: error: ld returned 1 exit status' >&2; exit 1\n")
    for one in broken, changed, full:
        one.chmod(0o755)
    if os.geteuid() == 0:
        (world.home / "another/protond/ops").mkdir(parents=True, mode=0o700)
        os.chown(world.home / "another/protond/ops", 12345, 12345)
    others = world.home / "others/protond"
    others.mkdir(parents=True)
    others.chmod(0o777)
    (world.home / "file").write_text("")
    for env, words in (({**fresh, "PATH": str(empty), "CXX": ""}, "no C++ compiler"),
                       ({**fresh, "CXX": str(broken)}, "no member named addGlobalCallback"),
                       ({**fresh, "CXX": str(full)}, "make room there"),
                       ({**fresh, "CXX": str(changed)}, "remove that file"),
                       ({"XDG_CACHE_HOME": str(world.home / "others")}, "is not yours alone"),
                       ({"XDG_CACHE_HOME": str(world.home / "file")}, "set XDG_CACHE_HOME"),
                       ({"XDG_CACHE_HOME": "here"}, "no absolute path"),
                       *([({"XDG_CACHE_HOME": str(world.home / "another")}, "protond/ops is not yours alone")] if os.geteuid() == 0 else [])):
        out, said = once(world, **env)
        if "its headers" in "".join(said):
            pytest.skip("torch's headers are not here")
        assert out == "True False" and len(said) == 1 and words in said[0], (env, said)


@needs_headers
def test_ranks_build_once(world):
    """Eight at once, of which one builds; what it leaves is the user's alone."""
    log = world.home / "built"
    counts = world.home / "cxx"
    counts.write_text(f"#!/bin/sh\necho . >> {log}\nexec {shutil.which('g++')} \"$@\"\n")
    counts.chmod(0o755)
    env = {**world.env, "PYTHONPATH": str(BUILD / "lib/protond/python"), "XDG_CACHE_HOME": str(world.home / "cache"), "CXX": str(counts)}
    code = "import torch; from protond import _ops; print(_ops.built(torch, _ops._PART))"
    ranks = [subprocess.Popen([PYTHON, "-c", code], env=env, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    paths = {one.communicate(timeout=200)[0] for one in ranks}
    assert len(paths) == 1 and log.read_text() == ".\n"
    path = pathlib.Path(paths.pop().strip())
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([path.name, "lock"])
    for one in path, path.parent, path.parents[1]:
        assert stat.S_IMODE(one.stat().st_mode) == 0o700 and one.stat().st_uid == os.geteuid()
