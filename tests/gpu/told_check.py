# SPDX-License-Identifier: MIT. told_check.py: critical, launches, streams and their rules on a program whose answers are known (told.cu).
"""told_check.py DIR [TEST...]: DIR is a build or a bundle. Ends in "N passed, N failed"."""
import json
import pathlib
import subprocess
import sys

from judge import check, judge
from torch_room import CTL, DIR, room, view

STEPS = 40
RULES = {"low": "low_occupancy", "tail": "tail_effect", "shapes": "shape_varies"}
recordings = {}


def recorded(fault):
    """The room, and what the program printed; recorded once."""
    if fault not in recordings:
        env = room()
        r = subprocess.run([CTL, "run", "-n", "x", "-d", "both", "-s", "sync", "--", str(DIR / "gpu/told"), fault, str(STEPS)], env=env,
                           capture_output=True, text=True, timeout=120)
        check(f"{fault}: it ran", f"steps {STEPS}" in r.stdout, r.stderr[-900:])
        recordings[fault] = env, [line.split()[1:] for line in r.stdout.splitlines() if line.startswith("blocks ")]
    return recordings[fault]


def rows(env, *words):
    data = json.loads(view(env, *words, "--json") or "{}").get("data", {})
    names = [c["name"] for c in data.get("columns", [])]
    return [dict(zip(names, row)) for row in data.get("rows", [])]


def launches():
    for fault in ("none", "low"):
        env, said = recorded(fault)
        found = {(r["grid"], int(r["block"]), r["shared"]): r for r in rows(env, "launches", "x", "-n", "0") if r["grid"]}
        for grid, block, shared, blocks in said:
            row = next((r for (g, b, s), r in found.items() if g == grid and b == int(block) and s >= int(shared)), None)
            ours = row and round(row["occupancy"] * 64 / (int(block) // 32))
            check(f"{fault}: an SM holds {blocks} blocks of {block} threads, as CUDA says", ours == int(blocks), f"{ours} {row}")


def streams():
    """Against a sweep over the kernels as they are stored."""
    env, _ = recorded("none")
    kernels = rows(env, "sql", "x", "select stream, start_ns, end_ns from kernels order by 2")
    for row in rows(env, "streams", "x"):
        if row["stream"] is None:
            continue
        mine = [(k["start_ns"], k["end_ns"]) for k in kernels if k["stream"] == row["stream"]]
        check(f"stream {row['stream']}: busy, exact", sum(e - s for s, e in mine) == row["busy"], f"{row}")
    everything = [r for r in rows(env, "streams", "x") if r["stream"] is None]
    beside = everything[0]["beside"] if everything else 0
    check("two streams work side by side for 2.9 ms a step, to 5 %", abs(beside - STEPS * 2.9e6) < STEPS * 2.9e6 * 0.05, f"{beside}")


def critical():
    env, _ = recorded("none")
    path = rows(env, "critical", "x")
    parts = {r["part"]: r["time"] for r in path if r["name"] is None}
    check("the parts add up to the step", path[0]["part"] == "all" and sum(v for k, v in parts.items() if k != "all") == parts["all"], f"{parts}")
    named = {r["name"].split("(")[0]: r for r in path if r["name"] and r["part"] == "compute"}
    long, after = named.get("longer_kernel"), named.get("after_kernel")
    check("the longer kernel and the one behind it are on the path", bool(long and after) and long["time"] > 2.9e6 and after["time"] > 0.9e6, f"{named}")
    check("the shorter one is not", "shorter_kernel" not in named, f"{list(named)}")
    check("a tenth of the longer gives no more than the shorter leaves: 0.1 ms of 0.3", bool(long) and 0.05e6 < long["gain"] < 0.2e6, f"{long}")
    check("a tenth of the last gives a tenth of it", bool(after) and abs(after["gain"] - after["time"] / 10) < 2e3, f"{after}")


def names():
    """NVTX's names of the GPU and its streams, on the lanes of an export."""
    env, _ = recorded("none")
    numbers = {k["name"].split("(")[0]: k["stream"] for k in rows(env, "sql", "x", "select distinct name, stream from kernels")}
    out = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "x.json"
    view(env, "export", "x", "-f", "chrome_trace", "-o", str(out))
    said = {e["args"]["name"] for e in json.loads(out.read_text())["traceEvents"] if e["ph"] == "M" and "name" in e.get("args", {})}
    for kernel, name in (("longer_kernel", "left"), ("shorter_kernel", "right")):
        lane = f"stream {numbers.get(kernel)}: {name}"
        check(f"{kernel} is on the lane '{lane}'", lane in said, f"{sorted(said)}")
    check("the GPU has the program's name before the vendor's", any(" the one (" in s for s in said), f"{sorted(said)}")


def rules():
    states = {fault: {r["rule"]: r["state"] for r in rows(recorded(fault)[0], "bottlenecks", "x")} for fault in ("none", *RULES)}
    for fault, rule in RULES.items():
        check(f"{fault}: {rule} speaks", states[fault].get(rule) == "found", f"{states[fault].get(rule)}")
        check(f"none: {rule} is silent", states["none"].get(rule) == "clean", f"{states['none'].get(rule)}")


judge((launches, streams, critical, names, rules), sys.argv[2:])
