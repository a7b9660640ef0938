# SPDX-License-Identifier: MIT. judge.py: what the checks on a GPU share: how each is told, what a failed one leaves, and the count at the end.
import os
import pathlib
import shutil
import subprocess
import sys

score = {"passed": 0, "failed": 0}
rooms, ran = [], []  # of the test under way: environments with a daemon of their own, and what was started
ASKED = {
    "jobs.json": ("protonctl", "jobs", "--all", "--json"), "sessions.json": ("protonctl", "sessions", "--json"),
    "status.json": ("protonctl", "status", "--json"), "losses.txt": ("protonview", "sql", "@last", "select * from losses"),
    "nodes.txt": ("protonview", "sql", "@last", "select * from nodes"), "tree.txt": ("protonview", "tree", "@last"),
}


def started(argv, env, **more):
    """subprocess.run(), and all it said is kept if the test fails."""
    r = subprocess.run(argv, env=env, capture_output=True, text=True, **more)
    ran.append((argv, r))
    return r


def keep(test):
    """The whole of what a failed test's programs said, and what its daemons say, in PROTOND_KEEP/failed, or DIR/gpu/failed:
    the GPUs may be gone when somebody reads that it failed."""
    top = pathlib.Path(os.environ.get("PROTOND_KEEP") or pathlib.Path(sys.argv[1]) / "gpu") / "failed" / test
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True)
    for i, (argv, r) in enumerate(ran):
        (top / f"run{i}.txt").write_text(f"{argv}\nexit {r.returncode}\n--- stdout\n{r.stdout}\n--- stderr\n{r.stderr}")
    for i, env in enumerate(rooms):
        at = top / f"room{i}"
        at.mkdir()
        for name, (tool, *words) in ASKED.items():
            try:
                r = subprocess.run([str(pathlib.Path(sys.argv[1]) / "bin" / tool), *words], env=env, capture_output=True, text=True, timeout=60)
                (at / name).write_text(r.stdout + r.stderr)
            except (OSError, subprocess.TimeoutExpired) as e:
                (at / name).write_text(repr(e))
        for log in pathlib.Path(env["PROTOND_RUNTIME_DIR"]).glob("*.log"):
            shutil.copy(log, at)
    print(f"      kept: {top}", flush=True)


def check(name, ok, words=""):
    score["passed" if ok else "failed"] += 1
    print(("ok    " if ok else "FAIL  ") + name + (f": {words}" if words else ""), flush=True)
    return ok


def judge(tests, wanted):
    """Runs the tests, or those of the names in `wanted`, and ends the program."""
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        failed = score["failed"]
        rooms.clear(), ran.clear()
        try:
            test()
        except Exception as e:  # one broken test does not hide the others
            check(test.__name__, False, repr(e))
        if score["failed"] > failed and (rooms or ran):
            keep(test.__name__)
    print(f"{score['passed']} passed, {score['failed']} failed")
    sys.exit(score["failed"] != 0)
