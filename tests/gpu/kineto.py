# SPDX-License-Identifier: MIT. kineto.py: real files of other profilers, for our readers, and what their files cost beside ours.
"""kineto.py DIR OUT [STEPS]: DIR is a build or a bundle. Seven files into the folder OUT, of at most 3 MiB each:

kineto.json.gz, kineto.counts.json   torch.profiler's trace with shapes, stacks and memory; its own key_averages()
gpt2.protond                         the same program in another run, recorded by protond (CUPTI serves one at a time)
proton.hatchet, proton.trace.json.gz Triton's Proton, the same steps in two more runs
jax.json.gz                          jax.profiler's trace
costs.json                           a larger training (torch_work.py w3): time to stop and write, and bytes, of each

Ends in "N passed, N failed"."""
import concurrent.futures
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from judge import check, score
from others_count import short

DIR, OUT = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
STEPS = sys.argv[3] if len(sys.argv) > 3 else "2"
HERE = pathlib.Path(__file__).resolve().parent
CTL, VIEW = str(DIR / "bin/protonctl"), str(DIR / "bin/protonview")
ROOM = pathlib.Path(tempfile.mkdtemp(prefix="pdkineto", dir="/dev/shm"))
ENV = dict(os.environ, PROTOND_RUNTIME_DIR=str(ROOM), PROTOND_DB=str(ROOM / "db"), NO_COLOR="1", XLA_PYTHON_CLIENT_PREALLOCATE="false",
           HF_HUB_OFFLINE="1", PYTHONPATH=str(DIR / "lib/protond/python"))
LIMIT = 3 << 20
TRAINING = 40  # steps of the larger training


def run(*argv, seconds=120):
    r = subprocess.run([str(a) for a in argv], env=ENV, cwd=ROOM, capture_output=True, text=True, timeout=seconds)
    if r.returncode != 0:
        check(" ".join(str(a) for a in argv)[-90:], False, f"exit {r.returncode}: {r.stderr[-900:]}")
    return r


def work(tool, name):
    return run(sys.executable, HERE / "kineto_work.py", tool, ROOM / name, STEPS)


def put(name, made, packed=False):
    made = ROOM / made
    if not made.exists():
        return check(name, False, f"{made.name} was not made")
    b = made.read_bytes()
    (OUT / name).write_bytes(gzip.compress(b, 9) if packed else b)
    size = len(b) if packed or b[:2] == b"\x1f\x8b" else len(gzip.compress(b))
    return check(f"{name} is there, at most 3 MiB compressed", len(b) > 0 and size <= LIMIT, f"{(OUT / name).stat().st_size} bytes")


def files():
    """Five programs at once: nothing here is timed."""
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        for done in [pool.submit(*job) for job in (
                (work, "kineto", "kineto"), (work, "proton", "proton"), (work, "proton-trace", "trace"), (work, "jax", "jax"),
                (run, CTL, "run", "-q", "-n", "gpt2", "-d", "both", "--", sys.executable, HERE / "kineto_work.py", "none", "-", STEPS))]:
            done.result()
    put("kineto.json.gz", "kineto.json.gz")
    put("kineto.counts.json", "kineto.counts.json")
    run(VIEW, "export", "gpt2", "-o", ROOM / "gpt2.protond")
    put("gpt2.protond", "gpt2.protond")
    put("proton.hatchet", "proton.hatchet")
    put("proton.trace.json.gz", "trace.chrome_trace", packed=True)
    put("jax.json.gz", "jax.json.gz")


def by_short_name(pairs):
    found = {}
    for name, n in pairs:
        found[short(name)] = found.get(short(name), 0) + n
    return found


def compared():
    """Kineto's counts by name of the steps that it recorded, and protond's of the same steps of another run."""
    rows = json.loads((OUT / "kineto.counts.json").read_text())
    theirs = by_short_name((r["name"], r["count"]) for r in rows
                           if r["device"] == "CUDA" and not r["name"].startswith(("Mem", "ProfilerStep", "Optimizer.")))
    ours = by_short_name(json.loads(run(VIEW, "sql", OUT / "gpt2.protond", "--step", f"3..{2 + int(STEPS)}", "--json",
                                        "select name, count(*) from kernels group by 1").stdout)["data"]["rows"])
    differ = {n: (theirs.get(n), ours.get(n)) for n in sorted(set(theirs) | set(ours)) if theirs.get(n) != ours.get(n)}
    check("kernels by name: Kineto's key_averages and protond, the same steps of two runs", theirs and not differ,
          f"{sum(theirs.values())} kernels, {len(theirs)} names; (Kineto, protond) where they differ: {dict(list(differ.items())[:10])}")


def measured(*argv):
    """(seconds, seconds of CPU, exit status)"""
    begin = time.monotonic()
    p = subprocess.Popen([str(a) for a in argv], env=ENV, cwd=ROOM, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, p.returncode


TOOLS = (("Kineto", "kineto", "k.json", "Chrome trace"), ("Kineto", "kineto", "k.json.gz", "Chrome trace, gzip"),
         ("Proton", "proton", "p", "hatchet"), ("Proton", "proton-trace", "q", "chrome_trace"),
         ("protond", "own", "o", "hatchet"), ("protond", "own-trace", "r", "chrome_trace"), ("protond", "protond", "", ""))


def begun(mode, file):
    """A program that has loaded torch, once it says ready; it works for each line."""
    words = [sys.executable, str(HERE / "torch_work.py"), "w3", "--tool", mode, "--steps", str(TRAINING), "--wait"]
    words = words + ["--out", str(ROOM / file)] if file else [CTL, "run", "-q", "-n", "w3", "-d", "both", "--", *words]
    return subprocess.Popen(words, env=ENV, cwd=ROOM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def until(p, word):
    """What the program prints until a line."""
    said = []
    for line in p.stdout:
        if line.strip() == word:
            return said
        said.append(line)
    raise RuntimeError(f"ended before it said {word}: {said}")


def stopped(job, row):
    p, tool, file, what = job
    p.stdin.write("go\n")
    p.stdin.flush()
    said = until(p, "done")
    p.stdin.close()
    check(f"costs: {tool} {what or 'under protonctl run'} ends", p.wait(60) == 0)
    if file:
        stop = [float(line.split("=")[1]) / 1e3 for line in said if line.startswith("w3_stop_ms")]
        row(tool, what + ", stop and write", stop[0], ROOM / file if "." in file else ROOM / f"{file}.{what}")


def costs():
    """What it takes to stop and to have the file, of a training of 42 steps. All programs live at once, and one works at a time."""
    rows = []

    def row(tool, file, seconds, made, **more):
        rows.append({"tool": tool, "file": file, "seconds": round(seconds, 4), "bytes": made.stat().st_size if made.exists() else None, **more})
        print(f"{tool:10} {file:32} {seconds:8.3f} s  {rows[-1]['bytes'] or 0:12,} bytes  {more or ''}", flush=True)
    jobs = [(begun(mode, file), tool, file, what) for tool, mode, file, what in TOOLS]
    watch = threading.Timer(150, lambda: [p.kill() for p, *_ in jobs])  # what hangs ends the whole
    watch.start()
    try:
        for p, *_ in jobs:
            until(p, "ready")
        for job in jobs:
            stopped(job, row)
    finally:
        watch.cancel()
    for ending in ("hatchet", "hatchet_msgpack", "chrome_trace", "pftrace", "protond", "sqlite", "folded", "speedscope.json", "pb.gz",
                   "csv", "kernels.csv", "nodes.json", "svg"):
        made = ROOM / f"w3.{ending}"
        seconds, cpu, status = measured(VIEW, "export", "w3", "-o", made)
        row("protond", ending, seconds, made, cpu_seconds=round(cpu, 4), status=status)
        check(f"export to {ending}", status == 0)
    work = json.loads(run(VIEW, "sql", "w3", "--json", "select (select count(*) from kernels) + (select count(*) from copies)").stdout)["data"]["rows"][0][0]
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True).stdout
    (OUT / "costs.json").write_text(json.dumps({"gpu": gpu.strip(), "gpu_work": work, "command": "tests/gpu/run.sh kineto DIR OUT", "rows": rows},
                                               indent=1))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        files()
        compared()
    except Exception as e:  # the costs are worth having all the same
        check("files", False, repr(e))
    try:
        costs()
    except Exception as e:
        check("costs", False, repr(e))
    subprocess.run([CTL, "daemon", "stop"], env=ENV, capture_output=True, timeout=60)
    shutil.rmtree(ROOM, ignore_errors=True)
    print(f"{score['passed']} passed, {score['failed']} failed")
    sys.exit(score["failed"] != 0)


main()
