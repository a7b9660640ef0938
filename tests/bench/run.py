# SPDX-License-Identifier: MIT. All benchmarks that need no GPU, as a table and as JSON.
"""run.py BUILD [FILE]: what each says, as it comes; FILE (BUILD/bench.json): the figures, with machine and time. A target
that is missed is said and fails nothing here."""
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

# Of the user's own no daemon and no database is met.
os.environ.update(PROTOND_RUNTIME_DIR="/nonexistent/protond", PROTOND_DB="/nonexistent/protond.db")
HERE = pathlib.Path(__file__).resolve().parent
NUMBER = r"([\d.]+)"
FIGURES = [  # what, value, unit, least, most
    re.compile(rf"^(.+?\d threads?) +{NUMBER} (ns) +x{NUMBER}"),
    re.compile(rf"^(.+?),? +median {NUMBER} (\S+(?: a cell)?), least {NUMBER}, most {NUMBER}"),
    re.compile(rf"^(.+?): {NUMBER} (M events/s) \(median of \d+; {NUMBER} to {NUMBER}\)(.*)"),
    re.compile(rf"^(.+?): {NUMBER} (% of a core)"),
]


def figure(line):
    for pattern in FIGURES:
        if m := pattern.match(line):
            what, value, unit, *rest = m.groups()
            found = {"what": what.rstrip(":"), "value": float(value), "unit": unit}
            if len(rest) >= 2:
                found.update(least=float(rest[0]), most=float(rest[1]))
            elif rest:
                found["x_floor"] = float(rest[0])
            return {**found, "line": line}
    return None


def cpu():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main(build, out):
    python = sys.executable
    benches = [
        ("scopes in the job", [build / "bench/scope_bench"]),
        ("a launch in the job", [build / "bench/launch_bench"]),
        ("a scope under other tracers", [python, HERE / "peers.py", build]),
        ("drain, correlate, tree", [build / "bench/fold_bench"]),
        ("the longest piece of a liar's", [build / "bench/turn_bench"]),
        ("store: cells in one transaction", [build / "bench/store_bench"]),
        ("protonview tree of 100 000 nodes", [build / "bench/view_bench", build / "bin/protonview"]),
        ("an idle daemon", [python, HERE / "idle_bench.py", build, build / "tests/job"]),
    ]
    figures = []
    for title, argv in benches:
        print(f"== {title}", flush=True)
        p = subprocess.Popen(list(map(str, argv)), stdout=subprocess.PIPE, text=True)
        for line in p.stdout:
            print(line, end="", flush=True)
            if f := figure(line.rstrip()):
                figures.append({"bench": title, **f})
        p.wait()
    out.write_text(json.dumps({"machine": f"{cpu()}, {os.cpu_count()} cores, Linux {platform.release()}",
                               "time": time.strftime("%Y-%m-%d %H:%M:%S%z"), "figures": figures}, indent=1) + "\n")
    print(f"== {len(figures)} figures in {out}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    main(build, pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else build / "bench.json")
