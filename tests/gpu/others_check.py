# SPDX-License-Identifier: MIT. others_check.py: programs of popular libraries, against a count that shares nothing with protond.
"""others_check.py DIR [PROGRAM...]: DIR is a build or a bundle. Ends in "N passed, N failed".

The programs are others/*.py, each as a user would write it. others/count.c counts kernels, copies and memsets by name
from CUPTI's records, in two ways:

same run   preloaded beside protond it reads each buffer that CUPTI gives back, before protond's agent does. Of the same
           records both must say the same: counts by name exactly, GPU time by name within 0.5 %.
alone      as the process's only CUPTI tool, in a run without protond. Counts by name must be those of the run with
           protond: what protond never asked CUPTI for would be missing in both readings of one run. GPU times of two
           runs differ by more than 0.5 % by themselves; they are printed and not judged.

A program that tunes itself by timing (torch.compile, Triton, JAX) has another run first, also under protond and read
twice, which leaves its caches for the two that are compared; calls without a record and records without a call are
named (unmatched.py). PD_WORKERS programs run at a time; PD_SECONDS bounds each; PD_KEEP: a folder for raw dumps.
"""
import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from judge import check, score
from others_count import WITHIN, counted, other_counts, told, worst_time
from unmatched import lines, sizes_of

DIR = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent / "others"
CTL, VIEW, COUNT = str(DIR / "bin/protonctl"), str(DIR / "bin/protonview"), str(DIR / "gpu/libcount.so")
SECONDS = float(os.environ.get("PD_SECONDS", "90"))

# name, scopes that must have GPU work below them, whether its printed steps are scopes named step, whether it tunes itself
Program = collections.namedtuple("Program", "name inside steps tunes", defaults=((), False, False))
TRAINING = ("forward", "backward", "optimizer.step")
PROGRAMS = (
    Program("compiled", ("backward", "optimizer.step"), True, True),
    Program("nuts", tunes=True),
    Program("jax_train", tunes=True),
    Program("triton_tutorials", tunes=True),
    Program("lightning_fit", TRAINING, True),
    Program("resnet50", TRAINING, True),
    Program("sentences", ("forward",)),
    Program("gpt2_train", TRAINING + ("GPT2LMHeadModel", "h.0", "attn"), True),
    Program("gpt2_generate", ("forward", "GPT2LMHeadModel")),
    Program("accelerate_train", TRAINING, True),
    Program("spawned", TRAINING, True),
    Program("geometric", TRAINING, True),
    Program("gaussian", TRAINING, True),
    Program("speech", TRAINING, True),
    Program("neural_ode", TRAINING, True),
    Program("cuda_graphs", ("CUDAGraph.replay", "<captured_at>")),
    Program("serve", ("forward", "TransformerEncoder")),
    Program("cupy_work"),
    Program("empty_copies", tunes=True),  # for its raw dump
)
Run = collections.namedtuple("Run", "status out err seconds counted total tree session place")


def cupti():
    """A libcupti for a process that has none mapped: of the wheels, else of CUDA."""
    places = [pathlib.Path(p) for p in sys.path if p] + [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))]
    for p in places:
        for pattern in ("nvidia/*/lib/libcupti.so.1[0-9]", "extras/CUPTI/lib64/libcupti.so.1[0-9]", "lib64/libcupti.so.1[0-9]"):
            for f in sorted(p.glob(pattern), reverse=True):
                return str(f)
    return ""


def bounded(argv, env, place):
    """(exit status, output, errors, seconds); ends all of it when its time is over."""
    with open(place / "out", "w+") as out, open(place / "err", "w+") as err:
        begin = time.monotonic()
        p = subprocess.Popen(argv, env=env, cwd=place, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        try:
            status = p.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            status = "time"
        took = time.monotonic() - begin
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read(), took


def view(env, *args):
    r = subprocess.run([VIEW, *args], env=env, capture_output=True, text=True, timeout=60)
    return json.loads(r.stdout)["data"] if r.stdout.startswith("{") else {}


def one(program, how, room, caches):
    """A run, alone or under protond (`how` is its session's name)."""
    place = room / how
    (place / "count").mkdir(parents=True)
    env = dict(os.environ, PROTOND_RUNTIME_DIR=str(room), PROTOND_DB=str(room / "db"), NO_COLOR="1", COUNT_CUPTI=cupti(),
               COUNT_OUT=str(place / "count"), PYTHONHASHSEED="0", OMP_NUM_THREADS="2", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1",
               PYTHONDONTWRITEBYTECODE="1", XLA_PYTHON_CLIENT_PREALLOCATE="false", JAX_COMPILATION_CACHE_DIR=str(caches / "jax"),
               JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0", JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
               TORCHINDUCTOR_CACHE_DIR=str(caches / "inductor"), TRITON_CACHE_DIR=str(caches / "triton"), CUPY_CACHE_DIR=str(caches / "cupy"))
    run = [sys.executable, str(HERE / f"{program.name}.py")]
    if how == "alone":
        status, out, err, took = bounded(run, dict(env, CUDA_INJECTION64_PATH=COUNT), place)
        return Run(status, out, err, took, *counted(place / "count"), {}, {}, place)
    if how == "first" and program.tunes:
        env.update(PROTOND_RAW_DUMP=str(place), COUNT_CALLS="1")
    status, out, err, took = bounded([CTL, "run", "-q", "-n", how, "-o", str(place / "x.hatchet"), "--",
                                      "env", f"LD_PRELOAD={COUNT}", *run], env, place)
    tree = told(place / "x.hatchet") if (place / "x.hatchet").exists() else {}
    asked = view(env, "sql", how, "--json", "select (select gpu_time_ns from nodes where depth = 0), (select count from nodes where depth = 0),"
                 " (select sum(gpu_time_ns) from kernel_names), (select sum(count) from kernel_names),"
                 " (select sum(calls) from nodes where name = 'step' and kind = 'scope')")
    session = dict(asked.get("session") or {}, sums=(asked.get("rows") or [[None] * 5])[0],
                   paths=[r[0].split("/") for r in view(env, "sql", how, "--json", "select path from nodes where count > 0").get("rows", [])],
                   losses=view(env, "sql", how, "--json", "select cause, count from losses").get("rows", []),
                   listed=[r for r in view(env, "sessions", "--json").get("rows", []) if how in r])
    return Run(status, out, err, took, *counted(place / "count"), tree, session, place)


def runs_of(program):
    room = pathlib.Path(tempfile.mkdtemp(prefix="pdothers", dir="/dev/shm"))
    caches = room / "caches"
    caches.mkdir()
    try:
        return {how: one(program, how, room, caches) for how in (("first",) if program.tunes else ()) + ("alone", "protond")}
    finally:
        subprocess.run([CTL, "daemon", "stop"], env=dict(os.environ, PROTOND_RUNTIME_DIR=str(room), PROTOND_DB=str(room / "db")),
                       capture_output=True, timeout=60)


def same_run(what, r):
    differ = other_counts(r.counted, r.tree)
    total = sum(n for n, _ in r.counted.values())
    check(f"{what}: same run, counts by name", total > 0 and not differ,
          f"{len(r.counted)} names, {total} records of {r.total['processes']} processes; (counted, protond) where they differ: {differ}")
    share, name = worst_time(r.counted, r.tree)
    ours, theirs = (sum(ns for _, ns in x.values()) for x in (r.tree, r.counted))
    check(f"{what}: same run, GPU time by name", total > 0 and share <= WITHIN,
          f"{theirs} and {ours} ns; worst of a name {share:.4%} {name[:60]}; {r.total['untimed']} records without times")
    ns, count, kernels_ns, kernels, _ = r.session["sums"]
    leaves = sum(n for n, _ in r.tree.values())
    check(f"{what}: the tree adds up", ns is not None and ns == kernels_ns == ours and count == kernels == leaves,
          f"root {ns} ns {count}, kernel table {kernels_ns} ns {kernels}, leaves of the file {ours} ns {leaves}")
    s = r.session
    lost = s.get("unmatched") != 0 or s["losses"] or s.get("drops") or not s.get("launches") or any("launch" in n for n in s["notes"])
    check(f"{what}: nothing lost, every launch answered, every record asked for", not lost,
          f"{s.get('launches')} launches, {s.get('unmatched')} unmatched, losses {s['losses']}, drops {s.get('drops')}, notes {s.get('notes')}")


def dumped(what, place):
    """Which calls had no record and which records no call, by the largest raw dump of a run; keeps one that says so in PD_KEEP."""
    dumps = sorted(place.glob("*.cuptidump"), key=lambda p: p.stat().st_size)
    if not dumps:
        return
    sizes = place / "count" / f"{dumps[-1].stem}.calls"
    said = list(lines(dumps[-1].read_bytes(), sizes_of(sizes) if sizes.exists() else None))
    for line in said:
        print(f"      {what}: {line}")
    if said and os.environ.get("PD_KEEP"):
        (pathlib.Path(os.environ["PD_KEEP"]) / f"{what}.cuptidump.gz").write_bytes(gzip.compress(dumps[-1].read_bytes(), 6))


def judge_program(program, runs):
    name, alone, ours = program.name, runs["alone"], runs["protond"]
    for how, r in runs.items():
        if r.status == "time" or not r.counted:
            check(f"{name}: {how} ends and was counted", False, f"exit {r.status} after {r.seconds:.0f} s: {r.err[-900:]}")
    if "first" in runs:
        same_run(f"{name}, tuning", runs["first"])
        dumped(name, runs["first"].place)
    same_run(name, ours)
    differ = other_counts(alone.counted, ours.tree)
    check(f"{name}: counts by name are those of a run without protond", alone.counted and not differ,
          f"(alone, protond) where they differ: {dict(list(differ.items())[:12])}{' …' if len(differ) > 12 else ''}")
    check(f"{name}: exit status and output as without protond", alone.status == ours.status and alone.out == ours.out != "",
          f"exit {alone.status} and {ours.status}, {alone.out.strip()!r} and {ours.out.strip()!r}"
          + (f": {alone.err[-500:]} {ours.err[-500:]}" if alone.status not in (0, 3) or ours.status not in (0, 3) else ""))
    check(f"{name}: its session is listed", len(ours.session["listed"]) == 1, str(ours.session["listed"])[:200])
    missing = [i for i in program.inside if not any(i in p[:-1] for p in ours.session["paths"])]
    if program.inside:
        check(f"{name}: GPU work below {', '.join(program.inside)}", not missing, f"none below {missing}" if missing else "")
    if program.steps:
        said = int((re.search(r"^steps=(\d+)$", ours.out, re.M) or [0, 0])[1])
        check(f"{name}: steps", said == ours.session["sums"][4] != 0, f"{said} printed, {ours.session['sums'][4]} scopes")


def main():
    wanted = sys.argv[2:]
    programs = [p for p in PROGRAMS if not wanted or p.name in wanted]
    begin, table = time.monotonic(), []
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("PD_WORKERS", "6"))) as pool:
        futures = {pool.submit(runs_of, p): p for p in programs}
        for f in concurrent.futures.as_completed(futures):
            p = futures[f]
            try:
                runs = f.result()
                judge_program(p, runs)
                o, a = runs["protond"], runs["alone"]
                table.append((p.name, sum(n for n, _ in o.tree.values()), len(o.tree), sum(ns for _, ns in o.counted.values()) / 1e6,
                              sum(ns for _, ns in a.counted.values()) / 1e6, len(other_counts(o.counted, o.tree)), worst_time(o.counted, o.tree)[0],
                              len(other_counts(a.counted, o.tree)), o.session.get("unmatched"), *(f"{r.seconds:.0f}" for r in runs.values())))
                shutil.rmtree(o.place.parent, ignore_errors=True)
            except Exception as e:  # one broken program does not hide the others
                check(p.name, False, repr(e))
    print("\nprogram            GPU work  names   GPU ms  (alone)  differ: same run, time, alone  unmatched  seconds of each run")
    for name, n, names, ms, alone, d, t, da, u, *seconds in sorted(table):
        print(f"{name:18} {n:8} {names:6} {ms:8.2f} {alone:8.2f} {d:16} {t:9.4%} {da:6} {u!s:>10}  {' '.join(seconds)}")
    took = time.monotonic() - begin
    check("all of them within 240 s", wanted or took <= 240, f"{took:.0f} s")
    print(f"{score['passed']} passed, {score['failed']} failed")
    sys.exit(score["failed"] != 0)


if __name__ == "__main__":
    main()
