# SPDX-License-Identifier: MIT. faults.py: trainings with a planted fault each, to be found on the page with nothing but it.
"""faults.py DIR OUT [FAULT...]: DIR is a build or a bundle. Portable sessions of fault_train.py into the folder OUT, of at most 3 MB
each: none, sync, loader, rank (two processes). Ends in "N passed, N failed". Without a GPU they train on the CPU."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from judge import check, score

DIR, OUT = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
PROGRAM = pathlib.Path(__file__).resolve().parent / "fault_train.py"
CTL, VIEW = str(DIR / "bin/protonctl"), str(DIR / "bin/protonview")
LIMIT = 3_000_000
FAULTS = ("none", "sync", "loader", "rank")
TWO = ("sh", "-c", 'RANK=1 "$@" & RANK=0 "$@"; wait', "sh")  # what torchrun would start


def recorded(fault, env):
    ranks = 2 if fault == "rank" else 1
    r = subprocess.run([CTL, "run", "-q", "-n", f"train-{fault}", "-d", "both", "--", *(TWO if ranks > 1 else ()), sys.executable, str(PROGRAM)],
                       env=dict(env, FAULT=fault, WORLD_SIZE=str(ranks)), cwd=env["PROTOND_RUNTIME_DIR"], capture_output=True, text=True, timeout=80)
    trained = r.stdout.count("steps=")
    check(f"{fault}: it trained", trained == ranks, "" if trained == ranks else f"exit {r.returncode}: {r.stderr[-900:]}")
    made = OUT / f"{fault}.protond"
    r = subprocess.run([VIEW, "export", f"train-{fault}", "-o", str(made), "--force"], env=env, capture_output=True, text=True, timeout=60)
    size = made.stat().st_size if made.exists() else 0
    check(f"{fault}: a session of at most 3 MB", 0 < size <= LIMIT, f"{size} bytes {r.stderr[-300:]}")
    print(subprocess.run([VIEW, "tree", str(made), "-d", "3", "-n", "12"], env=env, capture_output=True, text=True, timeout=60).stdout)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    place = tempfile.mkdtemp(prefix="pdfaults", dir="/dev/shm")
    env = dict(os.environ, PROTOND_RUNTIME_DIR=place, PROTOND_DB=place + "/db", NO_COLOR="1", PYTHONDONTWRITEBYTECODE="1",
               MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    for fault in sys.argv[3:] or FAULTS:
        try:
            recorded(fault, env)
        except Exception as e:  # the others are worth having all the same
            check(fault, False, repr(e))
    subprocess.run([CTL, "daemon", "stop"], env=env, capture_output=True, timeout=60)
    shutil.rmtree(place, ignore_errors=True)
    print(f"{score['passed']} passed, {score['failed']} failed")
    sys.exit(score["failed"] != 0)


main()
