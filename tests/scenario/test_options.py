# SPDX-License-Identifier: MIT. The one table of options as Python reads it; sampling; operator detail and backward by
# module on a real torch, where there is one.
import json
import subprocess
import sys
import textwrap

import pytest

from conftest import BUILD, until

PYTHON = "/usr/bin/python3"
HAS_TORCH = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0
pytestmark = pytest.mark.preload  # a sanitizer's runtime is not in the interpreter
HEADERS = subprocess.run([PYTHON, "-c", "import os, torch; p = os.path.dirname(torch.__file__) + '/include'; "
                          "raise SystemExit(not any(os.path.exists(d + '/ATen/record_function.h') for d in (p, '/usr/include')))"],
                         capture_output=True).returncode == 0
needs_headers = pytest.mark.skipif(not HEADERS, reason=f"torch's headers are not here for {PYTHON} (Debian's libtorch-dev would do)")
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason=f"{PYTHON} has no torch (Debian's python3-torch would do)")


def python(world, code, *, check=True, **env):
    env = {**world.env, "PYTHONPATH": str(BUILD / "lib/protond/python"), **env}
    r = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=env, cwd=world.home, capture_output=True,
                       text=True, timeout=60)
    assert not check or r.returncode == 0, r.stderr
    return r


def test_later_sources_win(world):
    conf = world.home / "conf"
    conf.mkdir()
    (conf / "protond.conf").write_text("commit_ms = 100\njob.torch_ops = yes\njob.sample_rate = 0.5\n# a word\n")
    out = python(world, """
        from protond import _options
        import protond, json
        a = _options.current()
        protond.configure(sample_rate=0.1, preset="leak")
        b = _options.current()
        protond.configure(sample_rate=None)
        c = _options.current()
        print(json.dumps([[o["torch_ops"], o["sample_rate"], o["sample_active"], o["torch_memory"], o["hook"]] for o in (a, b, c)]))
        """, XDG_CONFIG_HOME=str(conf), PROTOND_SAMPLE_ACTIVE="7", PROTOND_TORCH_OPS="0").stdout
    assert json.loads(out) == [[False, 0.5, 7, False, ""], [False, 0.1, 7, True, "torch"], [False, 0.0, 7, True, "torch"]]


@pytest.mark.parametrize("where, words", [
    ({"PROTOND_TORCH_OPS": "maybe"}, ["PROTOND_TORCH_OPS", "maybe", "neither 0 nor 1"]),
    ({"PROTOND_SAMPLE_RATE": "x"}, ["PROTOND_SAMPLE_RATE", "no number"]),
    ({"PROTOND_SAMPLE_RATE": "7"}, ["PROTOND_SAMPLE_RATE", "'7': 0 to 1"]),
    ({"PROTOND_SAMPLE_OVERHEAD": "nan"}, ["PROTOND_SAMPLE_OVERHEAD", "'nan': 0 to 1"]),
    ({"PROTOND_SAMPLE_ACTIVE": "-1"}, ["PROTOND_SAMPLE_ACTIVE", "'-1': 0 or more"]),
    ({"PROTOND_TORCH_BACKWARD": "both"}, ["PROTOND_TORCH_BACKWARD", "phase, module"]),
    ({"PROTOND_HOOK": "jax,torch"}, ["PROTOND_HOOK", "torch, triton, none"]),
])
def test_wrong_values_say_where_they_stand(world, where, words):
    r = python(world, "from protond import _options; _options.current()", check=False, **where)
    assert "ValueError" in r.stderr and all(w in r.stderr for w in words), r.stderr


def test_arguments_of_a_program(world):
    code = """
        import argparse, protond, sys
        from protond import _options
        parser = argparse.ArgumentParser()
        protond.add_arguments(parser)
        protond.take_arguments(parser.parse_args(sys.argv[1:] or ["--protond-torch-ops", "1", "--protond-sample-rate", "0.2"]))
        print(_options.current()["torch_ops"], _options.current()["sample_rate"])
        parser.parse_args(["--help"])
        """
    r = python(world, code)
    assert r.stdout.startswith("True 0.2\n") and "--protond-torch-backward phase|module" in r.stdout
    wrong = python(world, "import argparse, protond\nparser = argparse.ArgumentParser()\nprotond.add_arguments(parser)\nparser.parse_args(['--protond-sample-rate', '2'])",
                   check=False)
    assert wrong.returncode == 2 and "error: argument --protond-sample-rate: '2': 0 to 1\n" in wrong.stderr, wrong.stderr


def test_options_help_is_the_same_table(world):
    text = world.ctl("help", "options").stdout
    names = python(world, "from protond import _options; print(*_options.TABLE)").stdout.split()
    assert len(names) > 20 and all("PROTOND_" + n.upper() + " " in text for n in names)
    assert text.count("  PROTOND_") == len(names)


def test_sampling(world):
    """Kinds of steps, and CUPTI off exactly in between; the clock is the test's own."""
    python(world, """
        from protond import _sampling
        calls, now, told = [], [0], []
        _sampling._native = type("N", (), {"gpu_pause": lambda *a: calls.append("off"), "GIVE_BACK": 1,
                                           "gpu_resume": lambda *a: calls.append("on"), "metrics": lambda self, m: told.append(m)})()
        _sampling.time = type("T", (), {"monotonic_ns": staticmethod(lambda: now[0])})
        def run(sampler, n, cost):
            "What recording costs is paid by each fifth step, letting go by three after it, going on by seven; one waits for data."
            kinds, on, off = [], 0, 0
            for _ in range(n):
                kind = sampler.next()
                before = len(told)
                sampler.began()
                assert len(told) == before or kind == "step"
                assert (kind == _sampling.OFF) == (bool(calls) and calls[-1] == "off")
                kinds.append(kind)
                on, off = (0, off + 1) if kind == _sampling.OFF else (on + 1, 0)
                now[0] += 1000 + 5 * cost * (off == 0 and on % 5 == 0) + 400 * (0 < off < 4 or 0 < on < 8) + 100_000 * (len(kinds) == 22)
            return kinds
        s = _sampling.Sampler(0.1, warmup=2, active=5)
        kinds = run(s, 1000, 0)
        assert kinds.count("step") == 100 and kinds.count("step (warm-up)") == 40 and kinds.count("step (GPU off)") == 860
        text = " ".join(kinds)
        assert "step (warm-up) step (warm-up) step step step step step step (GPU off)" in text
        starts = [i % 50 for i in range(1000) if kinds[i] == "step (warm-up)" and kinds[i - 1] != "step (warm-up)"]
        assert len(set(starts)) > 5, "the place within the period is random"
        calls.clear()
        s = _sampling.Sampler(0.5, warmup=0, active=12, overhead=0.01)
        run(s, 140, 100)  # 10 % dearer with CUPTI on
        assert abs(s.rate_now() - 0.1) < 0.001 and abs(s.cost() - 0.1) < 1e-9, (s.rate_now(), s.cost())
        assert told[-1] == {"recording_cost (pty)": s.cost()}
        few = _sampling.Sampler(0.25, warmup=0, active=3)
        run(few, 60, 0)
        assert abs(few.cost() - 0.4) < 1e-9, few.cost()  # no others to compare
        kinds = run(s, 1000, 100)
        assert 80 <= kinds.count("step") <= 120, kinds.count("step")
        calls.clear()
        assert set(run(_sampling.Sampler(1.0), 50, 0)) == {"step"} and not calls
        assert set(run(_sampling.Sampler(0.0), 50, 0)) == {"step (GPU off)"} and calls == ["off"]
        for bad in dict(rate=2), dict(rate=-1), dict(rate=0.5, active=0), dict(rate=0.5, warmup=-1):
            try:
                _sampling.Sampler(**bad)
            except ValueError:
                continue
            raise AssertionError(bad)
        """)


TRAIN = """
import sys
import torch, torch.nn as nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(8), nn.Linear(8, 32), nn.Linear(32, 8)
    def forward(self, x):
        return x + self.narrow(torch.relu(self.wide(self.norm(x))))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(8, 4)
    def forward(self, x):
        for block in self.h:
            x = block(x)
        return self.head(x)
net, x = Net(), torch.ones(3, 8)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    opt.zero_grad()
    net(x).sum().backward()
    opt.step()
"""


def train(world, **env):
    (world.home / "train.py").write_text(TRAIN)
    r = world.ctl("run", "-n", "train", "-b", "none", "--", PYTHON, world.home / "train.py",
                  env={"XDG_CACHE_HOME": str(BUILD / "cache"), **{k: str(v) for k, v in env.items()}})
    until("the session is stored", lambda: world.state("train") == "finalized")
    assert not [one for one in r.stderr.splitlines() if "protond:" in one and "is built for torch" not in one], r.stderr
    return world.cells("train")


@needs_headers
def test_backward_stands_under_its_module(world):
    """The truth is arithmetic: a Linear's backward is two products, one for its input, one for its weight."""
    cells = train(world, PROTOND_TORCH_BACKWARD="module", PROTOND_TORCH_OPS=1)
    mm = {p: c[0] for p, c in cells.items() if p.endswith("/aten::mm") and "/backward/" in p}
    top = "/step/backward/Net"
    assert mm == {f"{top}/h.{i}/{name}/AddmmBackward0/aten::mm": 10 for i in (0, 1) for name in ("wide", "narrow")} | {
        f"{top}/head/AddmmBackward0/aten::mm": 10}
    relu = {p: c[0] for p, c in cells.items() if p.endswith("threshold_backward")}
    assert relu == {f"{top}/h.{i}/ReluBackward0/aten::threshold_backward": 5 for i in (0, 1)}, "what a Block does itself"
    norm = {p: c[0] for p, c in cells.items() if p.endswith("native_layer_norm_backward")}
    assert norm == {f"{top}/h.{i}/norm/NativeLayerNormBackward0/aten::native_layer_norm_backward": 5 for i in (0, 1)}
    assert {c[0] for p, c in cells.items() if p in (top, top + "/h.0", top + "/head")} == {5}
    assert cells[top][1] >= cells[top + "/h.0"][1] + cells[top + "/h.1"][1]


@needs_headers
def test_operator_detail(world):
    cells = train(world, PROTOND_TORCH_OPS=1, PROTOND_TORCH_SHAPES=1, PROTOND_TORCH_DTYPES=1, PROTOND_TORCH_STRIDES=1, PROTOND_TORCH_SCALARS=1,
                  PROTOND_TORCH_KWARGS=1, PROTOND_TORCH_STACK=1, PROTOND_TORCH_FLOPS=1)
    wide = "/step/forward/Net/h.0/wide/aten::linear [[3, 8], [32, 8], [32]]/aten::addmm [[32], [3, 8], [8, 32], [], []]"
    assert cells[wide][0] == 5
    rows = world.sql(
        "WITH RECURSIVE p(id, path) AS (SELECT id, '' FROM node WHERE parent = 0 UNION ALL"
        " SELECT n.id, p.path || '/' || n.name FROM node n JOIN p ON n.parent = p.id)"
        " SELECT m.name, m.value FROM metric m JOIN p ON p.id = m.node WHERE p.path = ?", wide)
    found = dict(rows)
    assert found["flops32"] == 5 * 2 * 3 * 8 * 32 and found["bytes"] == 5 * 4 * (32 + 24 + 256 + 96)
    assert found["Input type"] == '["float", "float", "float", "Scalar", "Scalar"]'
    assert found["Input Strides"] == "[[1], [8, 1], [1, 8], [], []]"
    assert found["Concrete Inputs"] == '["", "", "", "1", "1"]' and found["kwinputs"] == '{"beta": "1", "alpha": "1"}'
    assert found["Call stack"].endswith("train.py:19@forward") or "@forward" in found["Call stack"]
    assert any(p.startswith("/step/backward/") and "/aten::mm [[" in p for p in cells), "the backward's too"


@needs_torch
def test_torch_profiler_gets_what_it_would_without_us(world):
    """Ours steps aside for CUDA only, and lives beside a CPU profile."""
    program = world.home / "prof.py"
    program.write_text(TRAIN.replace("for _ in range(5):", """from torch.profiler import profile, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU]) as p:
  for _ in range(5):""").replace("    opt.zero", "      opt.zero").replace("    net(x)", "      net(x)").replace(
        "    opt.step()", "      opt.step()") + """print([e.count for name in ("aten::addmm", "aten::mm", "aten::relu", "aten::native_layer_norm", "Optimizer.step#SGD.step")
       for e in p.key_averages() if e.key == name])
""")
    bare = subprocess.run([PYTHON, program], env=world.env, capture_output=True, text=True, cwd=world.home, check=True)
    ours = world.ctl("run", "-n", "prof", "-b", "none", "--", PYTHON, program)
    assert ours.stdout == bare.stdout == "[25, 50, 10, 10, 5]\n"
