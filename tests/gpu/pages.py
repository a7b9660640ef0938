# SPDX-License-Identifier: MIT. pages.py: real sessions with timelines, for the page and its tests.
"""pages.py DIR OUT: DIR is a build or a bundle. Portable sessions into the folder OUT, of at most 2 MiB each:

transformers, compiled, jax   a training each (others/gpt2_train.py, compiled.py, jax_train.py)
serving                       a serving loop, which has no steps
hung                          a training that stopped in a kernel, and was killed there
before, after                 the same training with float32 and with bfloat16, to compare

Ends in "N passed, N failed"."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from judge import check, score

DIR, OUT = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent / "others"
CTL, VIEW = str(DIR / "bin/protonctl"), str(DIR / "bin/protonview")
ROOM = pathlib.Path(tempfile.mkdtemp(prefix="pdpages", dir="/dev/shm"))
ENV = dict(os.environ, PROTOND_RUNTIME_DIR=str(ROOM), PROTOND_DB=str(ROOM / "db"), NO_COLOR="1", XLA_PYTHON_CLIENT_PREALLOCATE="false",
           HF_HUB_OFFLINE="1", PYTHONDONTWRITEBYTECODE="1")
LIMIT = 2 << 20
SESSIONS = (("transformers", "gpt2_train.py", 10), ("compiled", "compiled.py", 10), ("jax", "jax_train.py", 20), ("serving", "serve.py", 160),
            ("before", "gpt2_train.py", 8, "float32"), ("after", "gpt2_train.py", 8))


def put(name, words=""):
    made = OUT / f"{name}.protond"
    r = subprocess.run([VIEW, "export", name, "-o", str(made), "--force"], env=ENV, capture_output=True, text=True, timeout=60)
    tree = subprocess.run([VIEW, "tree", str(made), "-d", "4", "-n", "12"], env=ENV, capture_output=True, text=True, timeout=60).stdout
    size = made.stat().st_size if made.exists() else 0
    check(f"{name}: a session of at most 2 MiB", 0 < size <= LIMIT, f"{size} bytes {r.stderr[-300:]} {words}")
    print(tree)


def recorded(name, program, *arguments):
    r = subprocess.run([CTL, "run", "-q", "-n", name, "-d", "both", "--", sys.executable, str(HERE / program), *map(str, arguments)],
                       env=ENV, cwd=ROOM, capture_output=True, text=True, timeout=120)
    put(name, "" if r.returncode == 0 else f"exit {r.returncode}: {r.stderr[-900:]}")


def hung():
    p = subprocess.Popen([CTL, "run", "-q", "-n", "hung", "-d", "both", "--", sys.executable, str(HERE / "hung.py")],
                         env=dict(ENV, PROTOND_STALL_MS="2000"), cwd=ROOM, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid = int(p.stdout.readline() or 0)
    if pid == 0:
        return check("hung: it hangs", False, p.communicate(timeout=60)[1][-900:])
    end, where = time.monotonic() + 20, ""
    while time.monotonic() < end and "spin" not in where:
        where = subprocess.run([CTL, "where"], env=ENV, capture_output=True, text=True, timeout=60).stdout
    time.sleep(3)  # so long it hangs in what is shown
    where = subprocess.run([CTL, "where"], env=ENV, capture_output=True, text=True, timeout=60).stdout
    print(where)
    check("hung: where names the kernel that does not end", "spin" in where)
    os.kill(pid, signal.SIGKILL)
    _, err = p.communicate(timeout=60)
    check("hung: killed", p.returncode == 128 + signal.SIGKILL, f"exit {p.returncode}: {err[-500:]}")
    put("hung")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for session in SESSIONS:
        try:
            recorded(*session)
        except Exception as e:  # the others are worth having all the same
            check(session[0], False, repr(e))
    try:
        hung()
    except Exception as e:
        check("hung", False, repr(e))
    subprocess.run([CTL, "daemon", "stop"], env=ENV, capture_output=True, timeout=60)
    shutil.rmtree(ROOM, ignore_errors=True)
    print(f"{score['passed']} passed, {score['failed']} failed")
    sys.exit(score["failed"] != 0)


main()
