# SPDX-License-Identifier: MIT. ranks_check.py: several GPUs in one process, and several ranks over NCCL, on a machine that has them.
"""ranks_check.py DIR [TEST...] [KEEP]: DIR is a build or a bundle. Ends in "N passed, N failed". With PROTOND_KEEP=FOLDER
the sessions of `parallel` and `slow_rank` are kept there as .protond; of a failed test what its programs and daemons
said, there or in DIR/gpu (judge.py). As many ranks as there are GPUs, eight at most.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

from judge import check, judge, started
from torch_room import CTL, DIR, MODEL, VIEW, kernels, room, run, sql, view


def gpus():
    return len(re.findall(r"^GPU \d", subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout, re.M))


N = min(gpus(), 8)
LAUNCH = (sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(N), "--monitor-interval", "0.1")
STEPS = 10
BEGIN = """import signal, time, torch.distributed as dist
dist.init_process_group("nccl"); rank = dist.get_rank(); torch.cuda.set_device(rank)
"""
END = """
torch.cuda.synchronize(); dist.destroy_process_group()
"""


def program(wrap, loop=f"for i in range({STEPS}): step()", before=""):
    """The model of torch_room, `net` wrapped by an expression, its loop and what comes before the model."""
    code = before + MODEL.replace("net = Net().cuda()", BEGIN + wrap).replace('device="cuda")', 'device=f"cuda:{rank}")')
    return code + loop + END


DDP = "net = nn.parallel.DistributedDataParallel(Net().cuda())"


def keep(env, name, file):
    if os.environ.get("PROTOND_KEEP"):
        subprocess.run([VIEW, "export", name, "-o", str(pathlib.Path(os.environ["PROTOND_KEEP"]) / file)], env=env, timeout=60)


def one_process():
    """8 threads x 4 streams x each GPU, a million launches."""
    env = room()
    r = started([CTL, "run", "-n", "x", "-d", "both", "--", str(DIR / "gpu/work"), "gpus", "8", "4", "1000000"], env, timeout=120)
    said = {k: float(v) for k, v in re.findall(r"^(\w+)=([\d.]+)$", r.stdout, re.M)}
    check("one process: it ran", r.returncode == 0 and said.get("gpus") == N, r.stderr[-400:])
    rows = sql(env, "select gpu, stream, count(*) from kernels where name like '%empty_kernel%' group by 1, 2")
    counts = [n for *_, n in rows]
    check("one process: a million in all", sum(counts) == 1000000, f"{sum(counts)}")
    check("one process: each stream of each GPU has its own", len(rows) == 32 * N and len({g for g, *_ in rows}) == N
          and max(counts, default=0) - min(counts, default=0) <= 8, f"{len(rows)} streams, {min(counts, default=0)} to {max(counts, default=0)}")
    for gpu, ns in sql(env, "select gpu, sum(dur_ns) from kernels where path like '%timed%' group by 1"):
        events = said.get(f"events_ns_{gpu}", 1)
        check(f"one process: GPU {gpu} agrees with CUDA events", abs(ns / events - 1) < 0.02, f"{ns / 1e6:.3f} ms, events {events / 1e6:.3f} ms")
    peer = sql(env, "select name, count(*), sum(bytes) from copies where path like '%peer%' group by 1")
    check("one process: copies between GPUs", [(n, b) for _, n, b in peer] == [(10 * N, 10 * N << 20)], str(peer))
    check("one process: drops 0", "drops 0" in r.stderr, r.stderr[-400:])


def permuted():
    """CUDA_VISIBLE_DEVICES the other way round: its numbers are the program's, the cards are told apart by what they are."""
    got = []
    for order in (",".join(map(str, range(N))), ",".join(map(str, reversed(range(N))))):
        env = room(CUDA_VISIBLE_DEVICES=order)
        r = started([CTL, "run", "-n", "x", "--", str(DIR / "gpu/work"), "gpus", "1", "1", "1000"], env, timeout=100)
        got.append(sql(env, "select id, name from devices order by id"))
        check(f"CUDA_VISIBLE_DEVICES={order}: all recorded", "drops 0" in r.stderr and len(got[-1]) == N, r.stderr[-300:] + str(got[-1]))


def shared():
    """Two processes on one GPU: each has its own."""
    env = room()
    work = str(DIR / "gpu/work")
    r = started([CTL, "run", "-n", "x", "--", "sh", "-c", f"{work} many 1 30000 & {work} many 1 20000 & wait"], env, timeout=100)
    subprocess.run([VIEW, "export", "x", "-o", env["PROTOND_RUNTIME_DIR"] + "/x.hatchet"], env=env, timeout=60)
    tree = json.loads(pathlib.Path(env["PROTOND_RUNTIME_DIR"] + "/x.hatchet").read_text())[0]

    def count(node):
        return (node["metrics"].get("count") or 0) * (not node["children"]) + sum(map(count, node["children"]))
    check("two processes on one GPU: both whole", count(tree) == 50000, f"{count(tree)}; {r.stderr[-300:]}")


def steps_of(env, name, rank):
    return sql(env, name=name, text=f"select count(*) from steps where rank = {rank}")


def parallel():
    """DDP, FSDP and tensor parallel: one session, a tree a rank, collectives under the scopes that wait for them."""
    ways = {
        "ddp": program(DDP),
        "fsdp": program("""from torch.distributed.fsdp import fully_shard
net = Net().cuda()
for b in net.h: fully_shard(b)
fully_shard(net)"""),
        "tensor parallel": program("""from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module, ColwiseParallel, RowwiseParallel
net = Net().cuda()
mesh = init_device_mesh("cuda", (dist.get_world_size(),))
for b in net.h: parallelize_module(b.mlp, mesh, {"1": ColwiseParallel(), "3": RowwiseParallel()})""").replace(
            "AdamW(net.parameters())", "AdamW(net.parameters(), foreach=False)"),
    }
    for name, code in ways.items():
        out, t, words, env = run(code, "-d", "both", words=LAUNCH)
        check(f"{name}: one session of {N} ranks", f"ranks 0 to {N - 1}" in words and "drops 0" in words and " 0 unmatched" in words, words[:500])
        rows = sql(env, "select rank, gpu, count(*), sum(name like 'nccl%') from kernels where path like '%step%' group by 1, 2 order by 1")
        check(f"{name}: each rank on its GPU", [(r, g) for r, g, *_ in rows] == [(i, i) for i in range(N)], str(rows))
        check(f"{name}: the ranks did the same", len({tuple(r[2:]) for r in rows}) == 1 and rows[0][3] > 0, str(rows))
        steps = [steps_of(env, "x", r) for r in range(N)]
        check(f"{name}: {STEPS} steps a rank", steps == [[[STEPS]]] * N, str(steps))
        trees = [view(env, "tree", "x", "--process", str(r), "-m", "count") for r in range(N)]
        check(f"{name}: a tree a rank", all("backward" in x and "nccl" in x.lower() for x in trees), trees[0][:300])
        check(f"{name}: NCCL below a step", any("step" in p and "nccl" in p[-1].lower() for p in t))
        keep(env, "x", name.split()[0] + ".protond")


def libraries():
    """transformers under accelerate, and lightning with its closure."""
    code = BEGIN.replace("dist.init_process_group(\"nccl\"); rank", "import os, torch; rank").replace("dist.get_rank()", 'int(os.environ["LOCAL_RANK"])') + """
from accelerate import Accelerator
from transformers import GPT2Config, GPT2LMHeadModel
a = Accelerator()
net = GPT2LMHeadModel(GPT2Config(n_layer=3, n_embd=256, n_head=4, vocab_size=1000))
net, opt = a.prepare(net, torch.optim.AdamW(net.parameters()))
ids = torch.randint(0, 1000, (4, 64), device=a.device)
for _ in range(10):
    opt.zero_grad(); a.backward(net(ids, labels=ids).loss); opt.step()
torch.cuda.synchronize(); a.end_training()
"""
    _, t, words, env = run(code, words=LAUNCH)
    check("accelerate: ranks and backward", f"ranks 0 to {N - 1}" in words and kernels(t, "backward") > 0, words[:500])
    code = """
import torch, lightning_or_pl as pl
""".replace("lightning_or_pl", "pytorch_lightning") + """
class M(pl.LightningModule):
    def __init__(self):
        super().__init__(); self.f = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    def training_step(self, b, i): return self.f(b[0]).square().mean()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 1e-3)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(640, 64)), batch_size=16)
pl.Trainer(max_epochs=1, accelerator="gpu", devices=%d, strategy="ddp", logger=False, enable_checkpointing=False,
           enable_progress_bar=False, enable_model_summary=False).fit(M(), data)
""" % N
    _, t, words, env = run(code, "-d", "both")
    who = sql(env, "select count(distinct pid), count(distinct gpu) from kernels")
    check("lightning: its ranks are one session", who == [[N, N]] and kernels(t, "backward") > 0, f"{who} {words[-500:]}")


def slow_rank():
    """Extra work in one layer of the last rank: the others wait in a collective for as long, and the spread shows the layer."""
    code = program(DDP, loop=f"""
if rank == {N - 1}:
    def more(m, a):
        import protond
        with protond.scope("extra"): torch.cuda._sleep(40_000_000)
    net.module.h[1].register_forward_pre_hook(more)
for i in range({STEPS}): step()""")
    _, t, words, env = run(code, "-d", "both", words=LAUNCH)
    own = sql(env, "select rank, sum(dur_ns) from kernels where path like '%extra%' group by 1")
    check("slow rank: the work is its own", [r for r, _ in own] == [N - 1], str(own))
    nccl = sql(env, "select rank, sum(dur_ns) from kernels where name like 'nccl%' group by 1 order by 2")
    check("slow rank: it waits least in collectives", bool(nccl) and nccl[0][0] == N - 1 and nccl[-1][1] > 3 * nccl[0][1], str(nccl))
    keep(env, "x", "slow_rank.protond")


def stopped_rank():
    """One rank sleeps before a collective: `where` names who stands elsewhere, and since when."""
    env = room()
    place = pathlib.Path(env["PROTOND_RUNTIME_DIR"])
    (place / "program.py").write_text(program(DDP, loop="""
import protond
for i in range(100):
    if i == 5 and rank == 1:
        with protond.scope("lost"): time.sleep(25)
    step()
    torch.cuda.synchronize()"""))
    p = subprocess.Popen([CTL, "run", "-n", "x", "--", *LAUNCH, str(place / "program.py")], env=env, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline, text = time.monotonic() + 60, ""
    while time.monotonic() < deadline and not ("lost" in text and "nccl" in text.lower()):
        text = subprocess.run([CTL, "where", "x"], env=env, capture_output=True, text=True).stdout
        time.sleep(0.3)
    print(text)
    check("stopped rank: its scope, and what the others wait in", "lost" in text and "nccl" in text.lower(), text[-600:])
    p.communicate(timeout=100)
    check("stopped rank: the run ended well", p.returncode == 0, str(p.returncode))


def killed_rank():
    _, t, words, env = run(program(DDP, loop=f"""
for i in range({STEPS}):
    step()
    if i == 5 and rank == 1: torch.cuda.synchronize(); os.kill(os.getpid(), signal.SIGKILL)"""), "-d", "both", words=LAUNCH)
    rows = dict(sql(env, "select rank, count(*) from steps group by 1"))
    check("killed rank: said, and its steps are there", "killed (signal 9)" in words and rows.get(1, 0) >= 6, words[:500] + str(rows))
    check("killed rank: nothing of the others is lost", all(rows.get(r, 0) >= 6 for r in range(N)), str(rows))


def cost():
    """W3-like steps of DDP, bare and recorded, in turns: ms a step of rank 0. protond, and modules: each is a scope; Kineto runs once."""
    code = """
import sys; sys.path.insert(0, %r); sys.argv = ["x"]
import os, time, torch, torch.distributed as dist, torch_work as w
dist.init_process_group("nccl"); rank = dist.get_rank(); torch.cuda.set_device(rank)
scope, start, stop = w.tool_of(os.environ["TOOL"])
m, ids = w.model_of(scope)
net = torch.nn.parallel.DistributedDataParallel(m)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4, foreach=True)
out = os.environ.get("OUT_FILE")
def step():
    with scope("forward"): loss = w.F.cross_entropy(net(ids).view(-1, w.VOCAB).float(), ids.view(-1))
    with scope("backward"): loss.backward()
    with scope("optimizer"): opt.step(); opt.zero_grad(set_to_none=True)
start(out)
for _ in range(5): step()
times = []
for _ in range(100):
    torch.cuda.synchronize(); t = time.perf_counter(); step(); torch.cuda.synchronize(); times.append(time.perf_counter() - t)
stop(out)
if rank == 0: print("ms=%%.3f" %% (sorted(times)[len(times) // 2] * 1e3))
dist.destroy_process_group()
""" % str(pathlib.Path(__file__).resolve().parent)
    ms = {}
    tools = {"bare": "none", "protond": "protond", "protond, and modules": "protond", "proton": "proton", "kineto": "kineto"}
    before = {"protond": [CTL, "run", "-n", "x", "-k", "none", "--"], "protond, and modules": [CTL, "run", "-n", "x", "--"]}
    for turn in range(3):
        for way in [way for way in (tools if turn % 2 == 0 else reversed(tools)) if turn == 0 or way != "kineto"]:
            env = room(TOOL=tools[way])
            if way in before:
                env["PYTHONPATH"] = str(DIR / "lib/protond/python")
            elif way != "bare":
                env["OUT_FILE"] = env["PROTOND_RUNTIME_DIR"] + "/out"
            file = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "program.py"
            file.write_text(code)
            r = subprocess.run([*before.get(way, ()), *LAUNCH, str(file)], env=env, capture_output=True, text=True, timeout=120)
            found = re.search(r"^ms=([\d.]+)", r.stdout, re.M)
            check(f"cost: {way} ran", bool(found), r.stderr[-300:] if not found else found.group(0))
            if found:
                ms.setdefault(way, []).append(float(found.group(1)))
    bare = statistics.median(ms.get("bare", [1]))
    print("a DDP step, ms of rank 0: " + ", ".join(f"{k} {statistics.median(v):.2f} ({min(v):.2f} to {max(v):.2f}, {statistics.median(v) / bare:.3f} x)"
                                                   for k, v in ms.items()))


if N < 2:
    print("one GPU: nothing of several was run")
    sys.exit(0)
judge((one_process, permuted, shared, parallel, libraries, slow_rank, stopped_rank, killed_rank, cost), sys.argv[2:])
