# SPDX-License-Identifier: MIT. faults.py: trainings with a planted fault each, and what `bottlenecks` says of them.
"""faults.py DIR OUT [FAULT...]: DIR is a build or a bundle. Portable sessions of fault_train.py into the folder OUT, of at most 3 MB
each. The rule that RULE names must speak of its fault, and be silent on `none`, of which nothing is HIGH; and on NAME-mended, the same
work without the fault, which six have; `mended` in place of FAULT is those six and their faults. Those that want two GPUs are left out
where there is one. Ends in "N passed, N failed". Without a GPU they train on the CPU."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from judge import check, score

DIR, OUT = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
PROGRAM = pathlib.Path(__file__).resolve().parent / "fault_train.py"
CTL, VIEW = str(DIR / "bin/protonctl"), str(DIR / "bin/protonview")
LIMIT = 3_000_000
RULE = {  # fault: the rule that is made for it
    "none": None, "sync": "cpu_gpu_sync", "loader": "data_loader", "alloc": "alloc_in_loop", "pin": "pin_in_loop", "host": "host_alone",
    "launch": "launch_bound", "idle": "gpu_idle", "copy": "exposed_copy", "small": "small_copies", "grid": "small_grid",
    "odd": "odd_blocks", "memory": "memory_bound", "optimizer": "unfused_optimizer", "tensor": "no_tensor_cores", "jitter": "jitter",
    "slow": "slow_steps", "warm": "warm_up", "leak": "memory_leak", "pressure": "mem_pressure", "throttle": "clock_throttle",
    "busy": "host_pressure", "rank": "slow_rank", "comm": "exposed_comm", "uneven": "uneven_gpus", "occupancy": "low_occupancy",
    "tail": "tail_effect", "shapes": "shape_varies", "layout": "memory_layout", "compile": "recompiles", "path": "critical_host",
}
MENDED = {f"{name}-mended": RULE[name] for name in ("occupancy", "tail", "shapes", "layout", "compile", "path")}
MORE = {"compile": ",ops", "compile-mended": ",ops"}  # switches: what compiles are scopes of torch
RANKS, GPUS = {"rank": 2, "comm": 2}, {"comm": 2, "uneven": 2}
TWO = ("sh", "-c", 'RANK=1 "$@" & RANK=0 "$@"; wait', "sh")  # what torchrun would start


def recorded(fault, env):
    ranks = RANKS.get(fault, 1)
    r = subprocess.run([CTL, "run", "-q", "-n", f"train-{fault}", "-d", "both", "-s", "sync" + MORE.get(fault, ""), "--",
                        *(TWO if ranks > 1 else ()), sys.executable, str(PROGRAM)], env=dict(env, FAULT=fault, WORLD_SIZE=str(ranks), PROTOND_TORCH_MEMORY="1"),
                       cwd=env["PROTOND_RUNTIME_DIR"], capture_output=True, text=True, timeout=80)
    trained = r.stdout.count("steps=")
    check(f"{fault}: it trained", trained == ranks or fault == "throttle", "" if trained == ranks else f"exit {r.returncode}: {r.stderr[-900:]}")
    made = OUT / f"{fault}.protond"
    r = subprocess.run([VIEW, "export", f"train-{fault}", "-o", str(made), "--force"], env=env, capture_output=True, text=True, timeout=60)
    size = made.stat().st_size if made.exists() else 0
    check(f"{fault}: a session of at most 3 MB", 0 < size <= LIMIT, f"{size} bytes {r.stderr[-300:]}")
    return made


def judged(fault, made, env):
    r = subprocess.run([VIEW, "bottlenecks", str(made), "--json"], env=env, capture_output=True, text=True, timeout=60)
    data = json.loads(r.stdout)["data"]
    rows = [dict(zip([c["name"] for c in data["columns"]], row)) for row in data["rows"]]
    found = {row["rule"]: row["severity"] for row in rows if row["state"] == "found"}
    said = ", ".join(f"{k} {v}" for k, v in found.items())
    if fault in MENDED:
        check(f"{fault}: {MENDED[fault]} is silent, and nothing is HIGH", MENDED[fault] not in found and "HIGH" not in found.values(), said)
    elif RULE[fault]:
        check(f"{fault}: {RULE[fault]} speaks", RULE[fault] in found, said)
    else:
        check("none: nothing is HIGH, and no rule of a fault that was not planted speaks but for the start",
              "HIGH" not in found.values() and not set(found) & set(RULE.values()) - {"warm_up"}, said)
    print(subprocess.run([VIEW, "bottlenecks", str(made)], env=env, capture_output=True, text=True, timeout=60).stdout)


def gpus():
    if not shutil.which("nvidia-smi"):
        return 1
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return len(seen.split(",")) if seen else len(re.findall(r"^GPU \d", subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout, re.M))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    place = tempfile.mkdtemp(prefix="pdfaults", dir="/dev/shm")
    env = dict(os.environ, PROTOND_RUNTIME_DIR=place, PROTOND_DB=place + "/db", NO_COLOR="1", PYTHONDONTWRITEBYTECODE="1",
               MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    six = [name for mended in MENDED for name in (mended.removesuffix("-mended"), mended)]
    for fault in six if sys.argv[3:] == ["mended"] else sys.argv[3:] or [*RULE, *MENDED]:
        try:
            if GPUS.get(fault, 1) <= gpus():
                judged(fault, recorded(fault, env), env)
        except Exception as e:  # the others are worth having all the same
            check(fault, False, repr(e))
    subprocess.run([CTL, "daemon", "stop"], env=env, capture_output=True, timeout=60)
    shutil.rmtree(place, ignore_errors=True)
    print(f"{score['passed']} passed, {score['failed']} failed")
    sys.exit(score["failed"] != 0)


main()
