# SPDX-License-Identifier: MIT. torch_check.py: what is named without a change to the program, against what torch knows, on a GPU.
"""torch_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed".

Each test is a program of its own under `protonctl run`, in a private runtime directory. The truth comes from
torch: torch.profiler's events of the same program, autograd's sequence numbers, torch's flop counter.
"""
import json
import pathlib
import re
import sqlite3
import subprocess
import sys

from judge import check, judge
from torch_room import CTL, DIR, MODEL, VIEW, kernels, room, run, view


def named():
    """A model of transformers, built from its config, trained with no word of ours in the program."""
    code = """
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel
        net = GPT2LMHeadModel(GPT2Config(n_layer=3, n_embd=256, n_head=4, vocab_size=1000)).cuda()
        opt = torch.optim.AdamW(net.parameters())
        ids = torch.randint(0, 1000, (4, 64), device="cuda")
        for _ in range(10):
            opt.zero_grad(); net(ids, labels=ids).loss.backward(); opt.step()
        torch.cuda.synchronize()
        """
    _, t, words, env = run(code)
    if "No module named" in words:
        return check("transformers is there", False, words[-200:])
    print(view(env, "tree", "x", "-m", "time/ms,count,cpu_time/ms", "-d", "7"))
    for part in ("forward", "backward", "optimizer.step", "optimizer.zero_grad"):
        check(f"named: kernels in step/{part}", kernels(t, "step", part) > 0 or part == "optimizer.zero_grad",
              str(kernels(t, "step", part)))
    check("named: modules", kernels(t, "forward", "GPT2LMHeadModel", "transformer", "h.0", "attn") > 0)
    check("named: unmatched 0, drops 0", " 0 unmatched" in words and "drops 0" in words, words.splitlines()[1] if words else "")


def epochs():
    """Two epochs under scopes of their own: each backward kernel under the right one."""
    code = MODEL + """
import protond
for epoch in ("first", "second"):
    with protond.scope(epoch):
        for _ in range(5 if epoch == "first" else 7): step()
        torch.cuda.synchronize()
"""
    _, t, _, _ = run(code, PYTHONPATH=DIR / "lib/protond/python")
    a, b = kernels(t, "first", "backward"), kernels(t, "second", "backward")
    check("epochs: backward kernels 5 to 7", a > 0 and a * 7 == b * 5, f"{a}, {b}")
    check("epochs: none elsewhere", kernels(t, "backward") == a + b, f"{kernels(t, 'backward')}")


TRUTH = MODEL + """
from torch.profiler import profile, ProfilerActivity
# Which module made the node with a sequence number: torch's own counter, read at each module's two ends.
number, spans, stack = torch.autograd._get_sequence_nr, [], []
def before(m, args): stack.append((m, number()))
def after(m, args, out): spans.append((stack[-1][1], number(), names[stack.pop()[0]]))
names = {m: n for n, m in net.named_modules()}
for _ in range(3): step()
hooks = [h for m in net.modules() if not isinstance(m, nn.ModuleList)
         for h in (m.register_forward_pre_hook(before), m.register_forward_hook(after))]
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
    step(); torch.cuda.synchronize()
def module_of(seq):
    inside = [(b - a, n) for a, b, n in spans if a <= seq < b]
    return min(inside)[1] if inside else None
def count(e):
    return len(e.kernels) + sum(count(c) for c in e.cpu_children)
found = {}
for e in p.events():
    if e.name.startswith("autograd::engine::evaluate_function") and e.cpu_parent is None and "AccumulateGrad" not in e.name:
        found[module_of(e.sequence_nr)] = found.get(module_of(e.sequence_nr), 0) + count(e)
    elif e.name == "aten::ones_like" and e.cpu_parent is None:  # backward() makes the first gradient itself
        found[None] = found.get(None, 0) + count(e)
print(json.dumps({str(k): v for k, v in found.items() if v}))
"""


def backward_by_module():
    out = subprocess.run([sys.executable, "-c", TRUTH], capture_output=True, text=True, timeout=250)
    if out.returncode != 0:
        return check("truth of the backward", False, out.stderr[-500:])
    truth = json.loads(out.stdout.splitlines()[-1])
    steps = 5
    _, t, _, _ = run(MODEL + f"\nfor _ in range({steps}): step()\ntorch.cuda.synchronize()\n", PROTOND_TORCH_BACKWARD="module")
    ours = {}
    for p, (n, _) in t.items():
        if "backward" in p and not p[-1].startswith("["):
            inside = p[p.index("backward") + 1:-1]
            name = ".".join(inside[1:]) if inside and inside[0] == "Net" else str(None)
            ours[name] = ours.get(name, 0) + n
    keys = sorted(set(truth) | set(ours))
    wrong = {k: (truth.get(k, 0) * steps, ours.get(k, 0)) for k in keys if truth.get(k, 0) * steps != ours.get(k, 0)}
    check("backward by module: kernels per module are torch's", not wrong, f"{len(keys)} modules; (torch, ours): {wrong}")


def profiler_inside():
    """torch.profiler while we record: its counts are those without us; ours come back after it."""
    code = MODEL + """
from torch.profiler import profile, ProfilerActivity
for _ in range(5): step()
torch.cuda.synchronize()
for _ in range(3):  # the last one counts: torch.profiler after us after torch.profiler
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        for _ in range(3): step()
        torch.cuda.synchronize()
    for _ in range(2): step()
    torch.cuda.synchronize()
print(json.dumps([sum(1 for e in p.events() if str(e.device_type) == "DeviceType.CUDA"),
                  sum(1 for e in p.events() if e.name == "aten::addmm")]))
"""
    bare = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    out, t, words, env = run(code)
    check("torch.profiler inside: its counts without us", bare.stdout == out and bare.stdout != "", f"{bare.stdout.strip()} {out.strip()}")
    check("torch.profiler inside: the gap has a name", "GPU not recorded: torch.profiler" in view(env, "tree", "x"), words[-300:])
    five = run(MODEL + "\nfor _ in range(11): step()\ntorch.cuda.synchronize()\n")[1]
    check("torch.profiler inside: before and after it all is recorded", kernels(t, "step") == kernels(five, "step"),
          f"{kernels(t, 'step')} of {kernels(five, 'step')}")


def profiler_cycles():
    """Thirty times torch.profiler and back, with a captured graph; ten times with threads that launch all the while."""
    code = MODEL + """
import threading
from torch.profiler import profile, ProfilerActivity
for _ in range(3): step()
graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
with torch.no_grad():
    with torch.cuda.stream(side): net(ids)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph): net(ids)
ends, times = threading.Event(), int(os.environ["PD_TIMES"])
def launch():
    x, mine = torch.ones(64, device="cuda"), torch.cuda.Stream()
    with torch.cuda.stream(mine):
        while not ends.is_set(): x.add_(1)
for _ in range(int(os.environ.get("PD_THREADS", "0"))): threading.Thread(target=launch, daemon=True).start()
theirs = []
for i in range(times):
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        step(); graph.replay(); torch.cuda.synchronize()
    theirs.append(sum(1 for e in p.events() if str(e.device_type) == "DeviceType.CUDA"))
    step(); graph.replay(); torch.cuda.synchronize()
ends.set(); torch.cuda.synchronize()
print(min(theirs))
"""
    none, one, many = (run(code, PD_TIMES=n) for n in (1, 2, 30))
    first, second, last = (kernels(x[1], "step") for x in (none, one, many))
    check("torch.profiler 30 times: it saw each", none[0] == many[0] != "", f"{none[0].strip()} {many[0].strip()} {many[2][-300:]}")
    check("torch.profiler 30 times: so did we in between", last - first == 29 * (second - first) > 0, f"{first} {second} {last}")
    for threads in (1, 4):
        out, t, words, _ = run(code, PD_TIMES=10, PD_THREADS=threads)
        check(f"torch.profiler 10 times beside {threads} threads that launch", int(out or 0) >= int(none[0]) and
              kernels(t, "step") >= first + 9 * (second - first), f"{out.strip()} {kernels(t, 'step')} {words[-300:] if not out else ''}")


def profiler_beside():
    """torch.profiler in a job that carries the variables and is not recorded."""
    code = MODEL + """
from torch.profiler import profile, ProfilerActivity
with profile(activities=[ProfilerActivity.CUDA]) as p:
    for _ in range(3): step()
    torch.cuda.synchronize()
print(sum(1 for e in p.events()))
"""
    bare = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    env = room(CUDA_INJECTION64_PATH=DIR / "lib/libprotond.so.0", NVTX_INJECTION64_PATH=DIR / "lib/libprotond.so.0")
    daemon = subprocess.Popen([str(DIR / "bin/protond"), "--private", "--foreground"], env=env, stderr=subprocess.DEVNULL)
    ours = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=200)
    daemon.terminate()
    daemon.wait(30)
    check("torch.profiler beside an idle job: the same events", bare.stdout == ours.stdout and bare.stdout.strip() not in ("", "0"),
          f"{bare.stdout.strip()} {ours.stdout.strip()} {ours.stderr[-200:]}")


def taken():
    """Another tool has CUPTI when our session begins: the job says so, and goes on; the other tool is right."""
    code = MODEL + """
import triton.profiler as proton
proton.start("theirs")
step(); torch.cuda.synchronize()
print("ready", flush=True); sys.stdin.readline()
step(); torch.cuda.synchronize()
proton.finalize()
"""
    env = room(CUDA_INJECTION64_PATH=DIR / "lib/libprotond.so.0", PROTOND_AUTO_SESSION="off")
    place = env["PROTOND_RUNTIME_DIR"]
    daemon = subprocess.Popen([str(DIR / "bin/protond"), "--private", "--foreground"], env=env, stderr=subprocess.DEVNULL)
    p = subprocess.Popen([sys.executable, "-c", code], env=env, cwd=place, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline()
    said = [subprocess.run([CTL, *w], env=env, capture_output=True, text=True, timeout=60)
            for w in (("start", "late", "--pid", str(p.pid)), ("jobs",), ("doctor",))]
    _, errors = p.communicate("go\n", timeout=100)
    daemon.terminate()
    daemon.wait(30)
    words = "".join(r.stdout + r.stderr for r in said)
    print(words)
    check("CUPTI is taken: the job's line says by whom", "another" in words.lower(), words[-800:])
    theirs = json.loads(pathlib.Path(place, "theirs.hatchet").read_text())[0] if p.returncode == 0 else None
    check("CUPTI is taken: the other tool has its two steps", theirs is not None and theirs["children"] != [], errors[-300:])


def sampling():
    code = MODEL + "\nfor _ in range(400): step()\ntorch.cuda.synchronize()\n"
    _, t, _, env = run(code, PROTOND_SAMPLE_RATE="0.1")
    on, off = kernels(t, "step"), kernels(t, "step (GPU off)")
    first, more = (kernels(run(MODEL + f"\nfor _ in range({n}): step()\ntorch.cuda.synchronize()\n")[1], "step")
                   for n in (1, 41))  # the first step makes the optimizer's state
    check("sampling: 40 of 400 steps have their kernels", on == more - first, f"{on} of {more - first}")
    check("sampling: none in the steps between", off == 0, str(off))
    print(view(env, "tree", "x", "-d", "2"))


def compiled():
    code = MODEL + """
import torch._dynamo as d
net = torch.compile(net)
for _ in range(5): step()
torch.cuda.synchronize()
print(json.dumps([sum(d.utils.counters["graph_break"].values()), d.utils.counters["stats"]["unique_graphs"]]))
"""
    bare = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280)
    out, t, words, _ = run(code)
    check("torch.compile: graphs and breaks as without us", bare.stdout == out and out != "",
          f"{bare.stdout.strip()} {out.strip()} {words[-300:] if out == '' else ''}")
    check("torch.compile: the scope says so", kernels(t, "forward", "Net (compiled)") > 0)


def operators():
    truth = subprocess.run([sys.executable, "-c", MODEL + """
from torch.utils.flop_counter import FlopCounterMode
with FlopCounterMode(display=False) as f: step()
print(f.get_total_flops())
"""], capture_output=True, text=True, timeout=200)
    _, _, _, env = run(MODEL + "\nfor _ in range(3): step()\ntorch.cuda.synchronize()\n", PROTOND_TORCH_OPS=1, PROTOND_TORCH_FLOPS=1)
    place = pathlib.Path(env["PROTOND_RUNTIME_DIR"])
    ours = sum(float(x) for x in re.findall(r'"flops\d+": ?([\d.e+]+)', (place / "x.hatchet").read_text()))
    check("operators: flops as torch counts them", truth.returncode == 0 and ours == 3 * float(truth.stdout or 0),
          f"{truth.stdout.strip()} x 3, ours {ours:.0f} {truth.stderr[-200:]}")
    print(view(env, "tree", "x", "-m", "time/ms,util,tflop32/s", "-d", "5")[:3000])


def pause_resume():
    code = MODEL + """
step(); torch.cuda.synchronize()
print("ready", flush=True)
for word in sys.stdin:
    for _ in range(10): step()
    torch.cuda.synchronize()
    print("done", flush=True)
"""
    env = room()
    place = pathlib.Path(env["PROTOND_RUNTIME_DIR"])
    (place / "p.py").write_text(code)
    p = subprocess.Popen([CTL, "run", "-n", "x", "--", sys.executable, place / "p.py"], env=env, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdout.readline()

    def ctl(*args):
        return subprocess.run([CTL, *args], env=env, capture_output=True, text=True, timeout=60)

    def go():
        p.stdin.write("go\n")
        p.stdin.flush()
        p.stdout.readline()
    go()
    print(ctl("pause").stdout, ctl("jobs").stdout)
    go()
    print(ctl("resume").stdout, ctl("jobs").stdout)
    go()
    _, words = p.communicate(timeout=60)
    n = run(MODEL + "\nfor _ in range(21): step()\ntorch.cuda.synchronize()\n")[1]
    subprocess.run([VIEW, "export", "x", "-o", place / "x.hatchet"], env=env, capture_output=True)
    one = kernels(n, "step") / 21
    got = sum(int(x) for x in re.findall(r'"count": ?(\d+)', (place / "x.hatchet").read_text()))
    check("pause and resume: 21 of 31 steps are recorded", abs(got / one - 21) < 0.6, f"{got / one:.2f} steps; {words[-200:]}")


def devices():
    """One process, two GPUs: each kernel counted, and busy time of each."""
    import torch
    if torch.cuda.device_count() < 2:
        return print("one GPU: no test of two devices")
    code = """
import torch, protond
x = [torch.ones(1 << 20, device=f"cuda:{i}") for i in (0, 1)]
with protond.scope("work"):
    for _ in range(100):
        x[0].add_(1); x[1].mul_(2); x[1].mul_(2)
    for i in (0, 1): torch.cuda.synchronize(i)
"""
    _, t, words, env = run(code, "-k", "none", PYTHONPATH=DIR / "lib/protond/python")
    n = sorted(n for p, (n, _) in t.items() if p[0] == "work")
    check("two devices: kernels", n == [100, 200], str(n))
    check("two devices: the head line", "2 x NVIDIA" in words, words[:300])
    raw = pathlib.Path(env["PROTOND_RUNTIME_DIR"], "x.hatchet").read_text()
    check("two devices: told apart in the file", '"device_id": "0"' in raw and '"device_id": "1"' in raw, raw[-600:])


def timeline():
    """The same kernels in tree and timeline, each with its launch before it, and what one takes on disk."""
    _, t, words, env = run(MODEL + "for _ in range(200): step()\ntorch.cuda.synchronize()\n", "-d", "trace")
    place = pathlib.Path(env["PROTOND_RUNTIME_DIR"])
    subprocess.run([VIEW, "export", "x", "-f", "chrome_trace", "-o", place / "x.json"], env=env, timeout=120)
    events = json.loads((place / "x.json").read_text())["traceEvents"]
    ops = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    run_ = [e for e in ops if e["cat"] == "kernel"]
    check("timeline: as many kernels as the tree", len(run_) == sum(n for n, _ in t.values()) > 10000, f"{len(run_)}")
    ns = abs(sum(e["dur"] for e in run_) * 1e3 / sum(ns for _, ns in t.values()) - 1)
    check("timeline: their times", ns < 1e-6, f"apart by {ns:.1e}")
    ends = {ph: {e["id"]: e["ts"] for e in events if e["ph"] == ph} for ph in "sf"}
    late = [ends["f"][i] - ts for i, ts in ends["s"].items()]
    check("timeline: launches come before", ends["s"].keys() == ends["f"].keys() and min(late) > 0,
          f"{len(late)} launches, {min(late):.1f} us at least")
    free, apart = {}, True
    for e in sorted(ops, key=lambda e: e["ts"]):
        apart &= e["ts"] >= free.get((e["pid"], e["tid"]), 0) - 0.0005
        free[e["pid"], e["tid"]] = e["ts"] + e["dur"]
    check("timeline: no two overlap in a lane", apart)
    bytes_, = sqlite3.connect(env["PROTOND_DB"]).execute("SELECT sum(length(bytes)) FROM trace").fetchone()
    scopes = sum(e.get("cat") == "scope" for e in events)
    check("timeline: at most 8 bytes a kernel with its launch", bytes_ / len(ops) <= 8,
          f"{bytes_ / len(ops):.2f} with {scopes / len(ops):.2f} scopes each")


def worker():
    """A worker process that multiprocessing made is killed: what it launched is stored or said lost."""
    code = """
import multiprocessing, time, torch, protond
def work(count):
    x = torch.zeros(64, device="cuda")
    while True:
        with protond.scope("worker"):
            for _ in range(1000): x.add_(1)
        torch.cuda.synchronize()
        count.value += 1000
if __name__ == "__main__":
    ctx = multiprocessing.get_context("spawn")
    count = ctx.Value("q", 0)
    p = ctx.Process(target=work, args=(count,)); p.start()
    x = torch.zeros(64, device="cuda")
    with protond.scope("main"):
        for _ in range(5000): x.add_(1)
    while count.value < 50000: time.sleep(0.01)
    p.kill(); p.join()
    with protond.scope("after"):
        for _ in range(100): x.add_(1)
    torch.cuda.synchronize()
    print(count.value)
"""
    out, t, words, _ = run(code, "-k", "none", PYTHONPATH=DIR / "lib/protond/python")
    lost = re.search(r"(\d[\d,]*) (?:launches )?unmatched", words)
    lost = int(lost.group(1).replace(",", "")) if lost else 0
    n = kernels(t, "worker")
    check("a worker killed: stored + said lost = launched", 0 <= n + lost - int(out) <= 1000, f"{n} + {lost}, counted {out.strip()}: {words[:300]}")
    check("a worker killed: the others' launches", (kernels(t, "main"), kernels(t, "after")) == (5000, 100))


judge((named, epochs, backward_by_module, profiler_inside, profiler_cycles, profiler_beside,
       taken, sampling, compiled, operators, pause_resume, devices, timeline, worker), sys.argv[2:])
