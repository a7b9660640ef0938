# SPDX-License-Identifier: MIT. planted.py: programs of others, with faults put into copies of them, and what `bottlenecks` says first.
"""planted.py DIR OUT [PROGRAM...]: DIR is a build or a bundle. The programs are others/*.py, made large enough for the GPU to be
what they wait for. Each runs once as it is, of which no verdict may be HIGH, and once with each of its faults, which the first
verdict must name. Portable sessions into the folder OUT. Ends in a table and in "N passed, N failed"."""
import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from judge import check, score

DIR, OUT = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
OTHERS = pathlib.Path(__file__).resolve().parent / "others"
CTL, VIEW = str(DIR / "bin/protonctl"), str(DIR / "bin/protonview")
Fault = collections.namedtuple("Fault", "name rule edits")

# What makes a program large: (what stands there, what instead).
LARGE = {
    "gpt2_train": (("else 20", "else 40"), ("n_layer=6, n_embd=384, n_head=6", "n_layer=8, n_embd=1024, n_head=16"),
                   ("(8 * steps, 128)", "(32 * steps, 256)"), ("batch_size=8", "batch_size=32"), ("lr=3e-4", "lr=3e-4, fused=True")),
    "resnet50": (("16 * 12", "96 * 30"), ("3, 96, 96", "3, 224, 224"), ("batch_size=16, num_workers=3", "batch_size=96, num_workers=12")),
    "accelerate_train": (("num_hidden_layers=4, hidden_size=256, num_attention_heads=4", "num_hidden_layers=8, hidden_size=1024, num_attention_heads=16"),
                         ("intermediate_size=1024", "intermediate_size=4096"), ("4096, (64,)", "4096, (256,)"), ("ones(64,", "ones(256,"),
                         ("16 * 20", "96 * 40"), ("batch_size=16", "batch_size=96"), ("lr=1e-4", "lr=1e-4, fused=True")),
    "lightning_fit": (("Conv2d(1, 16,", "Conv2d(1, 256,"), ("Conv2d(16, 32,", "Conv2d(256, 512,"), ("Linear(512, 10)", "Linear(8192, 10)"),
                      ("pictures(640), batch_size=64", "pictures(20480), batch_size=1024"), ("pictures(128), batch_size=64", "pictures(2048), batch_size=1024"),
                      ("lr=1e-3", "lr=1e-3, fused=True")),
    "speech": (("randn(8, 16000", "randn(128, 160000"), ("(8, 12)", "(128, 12)"), ("(8,), p.shape[1]", "(128,), p.shape[1]"), ("(8,), 12", "(128,), 12"),
               ("range(12)", "range(30)")),
    "geometric": (("randn(2000, 64)", "randn(400000, 64)"), ("randint(0, 2000, (2, 16000))", "randint(0, 400000, (2, 8000000))"),
                  ("(2000,)", "(400000,)"), ("range(15)", "range(40)"), ("i in range(160)", "i in range(16)")),
    "sentences": (("num_hidden_layers=4, hidden_size=256, num_attention_heads=4", "num_hidden_layers=12, hidden_size=1024, num_attention_heads=16"),
                  ("intermediate_size=1024", "intermediate_size=4096"), ("Pooling(256)", "Pooling(1024)"), ("range(256)", "range(4096)"),
                  ("range(1, 5 + i % 40)", "range(1, 61)"), ("batch_size=32", "batch_size=512")),
}
FAULTS = {
    "gpt2_train": (
        Fault("collate", "data_loader", (("shuffle=True)", "shuffle=True, collate_fn=lambda rows: torch.stack([torch.tensor([int(c) for c in row]) for row in rows]))"),)),
        Fault("keeps", "memory_leak", (("done = 0", "done, kept = 0, []"), ("loss = model(ids, labels=ids).loss", "o = model(ids, labels=ids)\n        loss = o.loss\n    kept.append(o.logits)"))),
        Fault("counts words", "host_alone", (("    ids = ids.cuda", "    with torch.cuda.nvtx.range('count words'):\n        words = {}\n        for line in ids.tolist():\n"
              "            for w in line * 60:\n                words[w] = words.get(w, 0) + 1\n    ids = ids.cuda"),)),
        Fault("checkpoints", "slow_steps", (("    done += 1", "    done += 1\n    if done in (15, 28):\n        torch.save(model.state_dict(), 'model.pt')"),)),
    ),
    "resnet50": (
        Fault("norms", "cpu_gpu_sync", (("        done += 1", "        norms = [float(p.grad.norm()) for p in model.parameters()]\n        done += 1"),)),
        Fault("no workers", "data_loader", (("num_workers=12", "num_workers=0"),)),
        Fault("pageable doubles", "exposed_copy", (("rand(3, 224, 224, generator=g)", "rand(3, 224, 224, generator=g, dtype=torch.float64)"), ("pin_memory=True", "pin_memory=False"),
                                                   ("x.cuda(non_blocking=True)", "x.cuda().float()"))),
    ),
    "accelerate_train": (
        Fault("empty cache", "alloc_in_loop", (("        optimizer.zero_grad()", "        optimizer.zero_grad()\n        torch.cuda.empty_cache()"),)),
        Fault("one by one", "unfused_optimizer", (("fused=True", "foreach=False"),)),
    ),
    "lightning_fit": (
        Fault("counts on the host", "cpu_gpu_sync", (("        return nn.functional.cross_entropy(self(x), y)",
              "        p = self(x)\n        self.right = sum(int(a == b) for a, b in zip(p.argmax(1), y))\n        return nn.functional.cross_entropy(p, y)"),)),
    ),
    "speech": (
        Fault("reads letters", "cpu_gpu_sync", (("    done += 1", "    words = ['%c' % (97 + int(c) % 26) for c in p[:4].argmax(-1).flatten()]\n    done += 1"),)),
    ),
    "geometric": (
        Fault("edges from the host", "exposed_copy", (("model(data.x, data.edge_index)", "model(data.x, edges.cuda())"), ("model = Nodes().cuda()", "model = Nodes().cuda()\nedges = data.edge_index.cpu()"))),
    ),
    "sentences": (Fault("one by one", "launch_bound", (("batch_size=512", "batch_size=1"), ("range(4096)", "range(512)"))),),
}


def edited(program, edits):
    text = (OTHERS / f"{program}.py").read_text()
    for old, new in edits:
        assert old in text, f"{program}: {old!r} is not in it"
        text = text.replace(old, new)
    return text


def verdicts(program, name, text, env):
    place = pathlib.Path(env["PROTOND_RUNTIME_DIR"])
    file, made = place / f"{program}.py", OUT / f"{program}-{name.replace(' ', '_')}.protond"
    file.write_text(text)
    r = subprocess.run([CTL, "run", "-q", "-n", name, "-d", "both", "-s", "sync", "--", sys.executable, str(file)], env=env, cwd=place,
                       capture_output=True, text=True, timeout=100)
    if r.returncode:
        check(f"{program}, {name}: it ran", False, f"exit {r.returncode}: {r.stderr[-900:]}")
        return None
    subprocess.run([VIEW, "export", name, "-o", str(made), "--force"], env=env, capture_output=True, timeout=60)
    shown = subprocess.run([VIEW, "bottlenecks", name], env=env, capture_output=True, text=True, timeout=60).stdout
    print(f"--- {program}, {name}\n{shown.split('lacks ')[0]}")
    data = json.loads(subprocess.run([VIEW, "bottlenecks", name, "--json"], env=env, capture_output=True, text=True, timeout=60).stdout)["data"]
    rows = [dict(zip([c["name"] for c in data["columns"]], row)) for row in data["rows"]]
    return [(row["rule"], row["severity"]) for row in rows if row["state"] == "found"], median_step(name, env)


def median_step(name, env):
    """ms; 0: it has no steps. A fault that costs nothing is none to be named."""
    said = subprocess.run([VIEW, "sql", name, "select dur_ns from steps", "--json"], env=env, capture_output=True, text=True, timeout=60).stdout
    steps = [row[0] for row in json.loads(said or "{}").get("data", {}).get("rows", [])]
    return statistics.median(steps) / 1e6 if steps else 0


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    table = []
    for program in sys.argv[3:] or LARGE:
        room = tempfile.mkdtemp(prefix="pdplanted", dir="/dev/shm")
        env = dict(os.environ, PROTOND_RUNTIME_DIR=room, PROTOND_DB=room + "/db", NO_COLOR="1", PROTOND_TORCH_MEMORY="1", OMP_NUM_THREADS="2",
                   TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", PYTHONDONTWRITEBYTECODE="1")
        for fault in (Fault("clean", None, ()), *FAULTS[program]):
            try:
                judged = verdicts(program, fault.name, edited(program, LARGE[program] + fault.edits), env)
            except Exception as e:  # the others are worth having all the same
                check(f"{program}, {fault.name}", False, repr(e))
                continue
            if judged is None:
                continue
            found, step = judged
            said = ", ".join(f"{k} {v}" for k, v in found)
            table.append((program, fault.name, fault.rule or "-", f"{step:.1f} ms", said))
            if fault.rule:
                check(f"{program}, {fault.name}: {fault.rule} first", bool(found) and found[0][0] == fault.rule, said)
            else:
                check(f"{program}, as it is: nothing HIGH", all(v != "HIGH" for _, v in found), said)
        subprocess.run([CTL, "daemon", "stop"], env=env, capture_output=True, timeout=60)
        shutil.rmtree(room, ignore_errors=True)
    for row in table:
        print("{:18}{:22}{:20}{:12}{}".format(*row))
    print(f"{score['passed']} passed, {score['failed']} failed")
    sys.exit(score["failed"] != 0)


main()
