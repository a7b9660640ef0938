# SPDX-License-Identifier: MIT. sync_room.py: sync_work.py, in a session of ours and under Kineto, for the checks that compare them.
import json
import pathlib
import subprocess
import sys

from judge import check
from torch_room import CTL, DIR, room

WORK = str(pathlib.Path(__file__).resolve().parent / "sync_work.py")
ROUNDS, THREADS = 20, 2


def recorded(*options, **more):
    """(environment, what the program measured itself) of a session with these options; more: of the environment."""
    env = room(PYTHONPATH=DIR / "lib/protond/python", **more)
    out = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "took.json"
    r = subprocess.run([CTL, "run", "-n", "x", "-k", "none", *options, "--", sys.executable, WORK, "none", str(out), str(ROUNDS), str(THREADS)],
                       env=env, capture_output=True, text=True, timeout=280)
    check(f"{' '.join(options) or 'no option'}: it ran", r.returncode == 0 and out.exists(), r.stderr[-900:])
    return env, json.loads(out.read_text())


def kineto():
    """(what the program measured itself, Kineto's events) of another run: CUPTI serves one."""
    env = room()
    out = pathlib.Path(env["PROTOND_RUNTIME_DIR"]) / "took.json"
    subprocess.run([sys.executable, WORK, "kineto", str(out), str(ROUNDS), str(THREADS)], env=env, check=True, timeout=280)
    return json.loads(out.read_text()), json.loads(pathlib.Path(f"{out}.trace.json").read_text())["traceEvents"]
