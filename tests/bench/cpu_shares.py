# SPDX-License-Identifier: MIT. cpu_shares.py: samples of a program that measures its own shares. By hand: it takes as long as it says.
"""cpu_shares.py DIR [SECONDS [PYTHON]]: DIR is a build; 100 s are 10 000 samples. PYTHON `native`: a program in C, with native frames. Exit 1: a
share is more than a point off."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = """
import protond, sys, time
def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
def thirty(): burn(0.030)
def fifty(): burn(0.050)
def sleeps():
    end = time.perf_counter() + 0.020
    while time.perf_counter() < end:
        time.sleep(max(0, end - time.perf_counter()))
took = [0, 0, 0]
start = time.perf_counter()
with protond.scope("known"):
    while (now := time.perf_counter()) - start < float(sys.argv[1]):
        for i, f in enumerate((thirty, fifty, sleeps)):
            f()
            was, now = now, time.perf_counter()
            took[i] += now - was
print(*(t / sum(took) for t in took))
"""
DIR = pathlib.Path(sys.argv[1]).resolve()
SECONDS, PYTHON = (sys.argv[2:] + ["100", sys.executable][len(sys.argv) - 2:])[:2]
NATIVE = PYTHON == "native"
FUNCTIONS = ("thirty", "fifty", "twenty" if NATIVE else "sleeps")


def main():
    room = tempfile.mkdtemp(prefix="pdcpu", dir="/dev/shm")
    env = dict(os.environ, PROTOND_RUNTIME_DIR=room, PROTOND_DB=room + "/db", NO_COLOR="1", PYTHONPATH=str(DIR / "lib/protond/python"))
    program = pathlib.Path(room) / "known.py"
    program.write_text(PROGRAM)
    out = subprocess.run([DIR / "bin/protonctl", "run", "-q", "-n", "x", "-b", "none",
                          *(["--native", "--", DIR / "tests/native"] if NATIVE else ["-s", "cpu", "--", PYTHON, program]), SECONDS],
                         env=env, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    shares = dict(zip(FUNCTIONS, map(float, out.split()[-3:])))
    rows = json.loads(subprocess.run(
        [DIR / "bin/protonview", "sql", "x", "select n.path, m.value from nodes n join metrics m on m.node = n.node "
                                             "where m.name = 'cpu_samples' and n.path like '%known%'", "--json"],
        env=env, check=True, capture_output=True, text=True).stdout)["data"]["rows"]
    found = {f: sum(n for path, n in rows if ("/" if NATIVE else "@") + f in path) for f in FUNCTIONS}
    all_of = sum(found.values() if NATIVE else (n for _, n in rows))
    if NATIVE:
        print(f"{sum(n for _, n in rows) - all_of} samples are in none of the three")
    worst = max(abs(found[f] / all_of - share) for f, share in shares.items())
    for f, share in shares.items():
        print(f"{f}: {found[f] / all_of:.2%} of {all_of} samples; it measured {share:.2%}")
    return worst > 0.01


sys.exit(main())
