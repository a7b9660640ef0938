# SPDX-License-Identifier: MIT. parts_check.py: `protonview breakdown` against a sweep over the timeline of the same run, busy to the nanosecond.
"""parts_check.py DIR: DIR is a build or a bundle. Ends in "N passed, N failed"."""
import json
import subprocess
import sys

from judge import check, judge
from parts import PARTS, parts_of
from torch_room import CTL, DIR, MODEL, room, view


OPS = ("select class, start_ns, end_ns, max(launch_ns) over (partition by pid, correlation) launch_ns"
       " from timeline_operation where end_ns > start_ns and gpu = {gpu}")


def rows(env, sql):
    data = json.loads(view(env, "sql", "x", sql, "--json"))["data"]
    return [dict(zip([c["name"] for c in data["columns"]], row)) for row in data["rows"]]


def agree(what, env):
    devices = rows(env, "select d.*, s.duration_ns from devices d, session s order by id")
    check(f"{what}: some GPU worked", bool(devices))
    for d in devices:
        ops = rows(env, OPS.format(gpu=d["id"]))
        got, want = {k: d[k] for k in PARTS.split()}, parts_of(ops, d["duration_ns"])
        check(f"{what}, GPU {d['id']}: {len(ops)} operations to the ns",
              all(got[k] == want[k] for k in ("compute_ns", "comm_ns", "copy_ns")), f"{got} {dict(want)}")
        # When a launch was is known to some us, better at the end than while it ran: a gap of that length may be named otherwise.
        idle = sum(v for k, v in want.items() if k.startswith("idle"))
        off = max(abs(got[k] - want[k]) for k in got)
        check(f"{what}, GPU {d['id']}: idle by cause", off <= 0.01 * idle + 3000 * len(ops), f"{off} ns of {idle}")
        check(f"{what}, GPU {d['id']}: their sum is the session", None not in got.values() and sum(got.values()) == d["duration_ns"])


def steps_agree(what, env):
    """Steps are of the timeline, as the sweep is: all parts to the ns."""
    steps = rows(env, "select * from step_parts where step <= 10 order by step")
    for s in steps:
        ops = rows(env, OPS.format(gpu=f"{s['gpu']} and pid = {s['pid']}"))
        want = parts_of(ops, s["active_ns"], s["begin_ns"], s["end_ns"])
        check(f"{what}, step {s['step']}, GPU {s['gpu']}", all(s[k] == want[k] for k in PARTS.split()), f"{s} {dict(want)}")
    return steps


def recorded(what, *words, **more):
    env = room(**more)
    r = subprocess.run([CTL, "run", "-n", "x", "-d", "both", "--", *words], env=env, capture_output=True, text=True, timeout=100)
    check(f"{what}: ran", r.returncode == 0 and "drops 0" in r.stderr, "" if r.returncode == 0 else r.stderr[-300:])
    agree(what, env)
    return env


def work():
    recorded("4 streams, 8 threads", DIR / "gpu/work", "gpus", "8", "4", "20000")
    recorded("copies", DIR / "gpu/work", "copies")
    recorded("graph", DIR / "gpu/work", "graph", "20")


def training():
    env = recorded("training", sys.executable, "-c", MODEL + "\nfor i in range(30):\n  with torch.cuda.nvtx.range('step %d' % i): step()\ntorch.cuda.synchronize()")
    check("training: its steps are there", len(steps_agree("training", env)) == 10)


judge((work, training), sys.argv[2:])
