# SPDX-License-Identifier: MIT. device_check.py: what protond-device reads of a GPU, against nvidia-smi, while the load steps.
"""device_check.py DIR [TEST…]: DIR is a build or a bundle with bin/protond-device. Wants torch. 70 seconds. Ends in
"N passed, M failed", after the medians of each step and what the helper's CPU time was.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

from judge import check, judge

DIR = pathlib.Path(sys.argv[1]).resolve()
DEVICE = str(DIR / "bin/protond-device")
GPU = os.environ.get("DEVICE_GPU", "0")  # as nvidia-smi counts them
STEP_S = 12
# Shares of the time in which a matmul is on the GPU.
STEPS = (0.0, 0.3, 1.0)
GPM = {"sm_active": 2, "sm_occupancy": 3, "tensor_active": 5, "dram_active": 10}
LOAD = """
import sys, time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
a @ a
torch.cuda.synchronize()
for share in map(float, sys.argv[2:]):
    print(share, time.monotonic(), flush=True)
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        began = time.monotonic()
        while time.monotonic() < began + 0.1 * share:
            a @ a
            torch.cuda.synchronize()
        time.sleep(0.1 * (1 - share))
print("end", time.monotonic(), flush=True)
"""


def stamped(process, out):
    """Each line of it with when it came."""
    for line in process.stdout:
        out.append((time.monotonic(), line))


def median_of(rows, key, begin, end):
    got = [r[key] for at, r in rows if begin + 3 < at < end - 1 and key in r]
    return statistics.median(got) if got else None


def dmon_rows(lines):
    """Its columns by name; what --gpm-metrics adds comes last, in the order in which it was asked for."""
    names, rows = [], []
    for at, line in lines:
        if line.startswith("#"):
            names = names or line.lstrip("# ").split()
            continue
        words = line.split()
        if not names or len(words) < len(GPM) + 2:
            continue
        row = {n: w for n, w in zip(names, words)}
        row.update(zip(GPM, words[-len(GPM):]))
        rows.append((at, {k: float(v) for k, v in row.items() if re.fullmatch(r"[\d.]+", v)}))
    return rows


def test_readings_agree_with_nvidia_smi():
    import threading
    ours, theirs = [], []
    dmon = ["nvidia-smi", "dmon", "-i", GPU, "-s", "puc", "-d", "1", "--gpm-metrics", ",".join(map(str, GPM.values()))]
    helper = subprocess.Popen([DEVICE, "--print"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    smi = subprocess.Popen(dmon, stdout=subprocess.PIPE, text=True)
    threads = [threading.Thread(target=stamped, args=a) for a in ((helper, ours), (smi, theirs))]
    for t in threads:
        t.start()
    load = subprocess.run([sys.executable, "-c", LOAD, str(STEP_S), *map(str, STEPS)], capture_output=True, text=True,
                          env={**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": GPU})
    for p in (helper, smi):
        p.terminate()
    for t in threads:
        t.join()
    print("helper's standard error:", helper.stderr.read().strip() or "(nothing)")
    helper.wait()
    smi.wait()
    if not check("the load ran", load.returncode == 0, load.stderr[-400:]):
        return
    readings = [(at, json.loads(line)) for at, line in ours]
    mine = [(at, r) for at, r in readings if r["gpu"] == int(GPU)]
    print("one reading under load:", json.dumps(mine[-2][1]))
    print("dmon's heading:", next((line for _, line in theirs if line.startswith("#")), "").strip())
    smi_rows = dmon_rows(theirs)
    marks = [line.split() for line in load.stdout.splitlines()]
    powers = []
    for (share, begin), (_, end) in zip(marks, marks[1:]):
        begin, end = float(begin), float(end)
        for key in ("power", "sm_clock", "temperature", *GPM):
            if key == "power" and 0 < float(share) < 1:
                continue  # an instant of a load that comes and goes, and an average of it
            their_key = {"power": "pwr", "sm_clock": "pclk", "temperature": "gtemp"}.get(key, key)
            a, b = median_of(mine, key, begin, end), median_of(smi_rows, their_key, begin, end)
            # A step of a tenth of a second is cut differently by two samplers; whole numbers on their side.
            room = {"power": 0.15 * (b or 0) + 10, "sm_clock": 0.1 * (b or 0) + 30, "temperature": 4}.get(key, 0.2 * (b or 0) + 5)
            check(f"{key} at {share}", a is not None and b is not None and abs(a - b) <= room, f"ours {a}, nvidia-smi {b}")
        powers.append(median_of(mine, "power", begin, end))
    check("power steps with the load", None not in powers and powers[0] < powers[1] < powers[2], str(powers))
    held = sum(r.get("held_by_power", 0) for _, r in mine)
    wall = mine[-1][0] - mine[0][0]
    check("the time in which power held the clocks is no longer than the run", held / 1e9 <= wall + 11, f"{held / 1e9:.2f} of {wall:.0f} s")
    check("its processes have the load's memory", any(r["processes"] for _, r in mine))


def test_cpu_time():
    """Of a helper that has run for a while: its start is not counted, and what it reads each minute then stands for that."""
    began = time.monotonic()
    done = subprocess.run([DEVICE, "--print", "--count", "25"], capture_output=True, text=True)
    wall = time.monotonic() - began
    seconds, has_slow = [], False  # (the helper's CPU time so far, as % of a second; whether that second had what is read seldom)
    gpus = set()
    for row in map(json.loads, done.stdout.splitlines()):
        if row["gpu"] is None:
            seconds.append((row["cpu_percent"] * (len(seconds) + 1), has_slow))
            has_slow = False
        else:
            gpus.add(row["gpu"])
            has_slow |= bool(row["processes"]) or any(key.startswith("held_by_") for key in row)
    took = [(now[0] - before[0], now[1]) for before, now in zip(seconds, seconds[1:])]
    plain, slow = (statistics.mean([t for t, is_slow in took if is_slow == which] or [0]) for which in (False, True))
    steady = (59 * plain + max(plain, slow)) / 60
    print(f"{len(gpus)} GPUs, {wall:.0f} s: a second of readings takes {plain:.3f} % of a core, one with what is read each minute {slow:.3f} %: "
          f"{steady:.3f} %")
    check("seconds of both kinds", {is_slow for _, is_slow in took} == {False, True}, str(took))
    check("at most 0.1 % of a core for each GPU", steady <= 0.1 * max(1, len(gpus)), f"{steady:.3f} %")


judge([test_readings_agree_with_nvidia_smi, test_cpu_time], sys.argv[2:])
