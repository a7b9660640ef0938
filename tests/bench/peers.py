# SPDX-License-Identifier: MIT. What a scope costs a program under protond, LTTng-UST and uftrace, in turns.
"""peers.py BUILD [ROUNDS]: tests/bench/peers/work.c, built once for each tracer that is here (apt-get install
lttng-tools liblttng-ust-dev uftrace), one process of each per round, in an order that turns. Prints the median of a
scope with the function inside, least and most, the same less the bare call, and what was dropped: that must be 0."""
import contextlib
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent / "peers"
TOP = HERE.parents[2]
BATCHES = 150
CFLAGS = ["-O2", "-g", "-std=c17", "-Wall", "-Wextra", "-I", str(HERE), "-I", str(TOP / "libclient")]
LTTNG = all(map(shutil.which, ("lttng", "lttng-sessiond"))) and subprocess.run(
    [os.environ.get("CC", "cc"), "-E", "-"], input="#include <lttng/tracepoint.h>", text=True, capture_output=True).returncode == 0
UFTRACE = shutil.which("uftrace")


def run(*argv, **more):
    r = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=120, **more)
    if r.returncode != 0:
        sys.exit(f"{argv}: exit {r.returncode}: {r.stdout}{r.stderr}")
    return r.stdout + r.stderr


def compile_all(build, place):
    def cc(name, *words):
        run(os.environ.get("CC", "cc"), *CFLAGS, "-o", place / name, HERE / "work.c", *words)
    cc("bare")
    cc("protond", "-DWITH_PROTOND", f"-L{build / 'lib'}", "-lprotond", f"-Wl,-rpath,{build / 'lib'}")
    if LTTNG:
        cc("lttng", "-DWITH_LTTNG", HERE / "tp.c", "-llttng-ust", "-ldl")
    if UFTRACE:
        cc("uftrace", "-pg", "-fno-omit-frame-pointer")


@contextlib.contextmanager
def lttng_daemon(place):
    if not LTTNG:
        yield
        return
    env = {**os.environ, "LTTNG_HOME": str(place)}
    daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel", "--quiet"], env=env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        while subprocess.run(["lttng", "list"], env=env, capture_output=True).returncode != 0:
            if daemon.poll() is not None:
                sys.exit("lttng-sessiond does not start (is another one running?)")
        yield
    finally:
        daemon.terminate()
        daemon.wait()


def written(folder, events_bytes):
    """A trace that is not there costs nothing: it must have a place for every event."""
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    if size < BATCHES * 1000 * events_bytes:
        sys.exit(f"{folder.name}: {size} bytes for {BATCHES * 1000} scopes: not everything was traced")
    shutil.rmtree(folder)


def bare(build, place):
    return run(place / "bare", BATCHES), 0


def protond(build, place):
    env = {**os.environ, "PROTOND_RUNTIME_DIR": str(place / "run"), "PROTOND_DB": str(place / "db")}
    out = run(build / "bin/protonctl", "run", "-b", "none", "-k", "none", "-o", place / "protond.hatchet", "--force", "--",
              place / "protond", BATCHES, env=env)
    return out, int(re.search(r"drops (\d+)", out)[1])


def lttng(build, place):
    env = {**os.environ, "LTTNG_HOME": str(place)}
    name = "peer"
    run("lttng", "create", name, "--output", place / "trace", env=env)
    run("lttng", "enable-event", "-u", "peer:*", env=env)
    run("lttng", "start", env=env)
    out = run(place / "lttng", BATCHES, env=env)
    run("lttng", "stop", env=env)
    dropped = sum(map(int, re.findall(r"Discarded events: (\d+)", run("lttng", "list", name, env=env))))
    run("lttng", "destroy", name, env=env)
    written(place / "trace", 2 * 8)
    return out, dropped


def uftrace(build, place):
    out = run("uftrace", "record", "-d", place / "uftrace.data", "--no-event", "--no-libcall", place / "uftrace", BATCHES)
    written(place / "uftrace.data", 2 * 8)
    return out, sum(map(int, re.findall(r"(?i)lost (\d+)", out)))


def main(build, rounds):
    """{tool: (ns of each round, dropped)}"""
    tools = [bare, protond] + [lttng] * LTTNG + [uftrace] * bool(UFTRACE)
    found = {t.__name__: ([], []) for t in tools}
    with tempfile.TemporaryDirectory(prefix="peers.", dir="/dev/shm") as place:
        place = pathlib.Path(place)
        (place / "run").mkdir(0o700)
        compile_all(build, place)
        with lttng_daemon(place):
            for r in range(rounds):
                for tool in tools[r % len(tools):] + tools[:r % len(tools)]:
                    out, dropped = tool(build, place)
                    found[tool.__name__][0].append(float(re.search(r"ns=([\d.]+)", out)[1]))
                    found[tool.__name__][1].append(dropped)
        subprocess.run([build / "bin/protonctl", "shutdown"], capture_output=True,
                       env={**os.environ, "PROTOND_RUNTIME_DIR": str(place / "run")})
    floor = statistics.median(found["bare"][0])
    for tool, (ns, dropped) in found.items():
        print(f"peers: scope under {tool:8} median {statistics.median(ns):7.1f} ns, least {min(ns):.1f}, most {max(ns):.1f}; "
              f"less the bare call {statistics.median(ns) - floor:.1f} ns; dropped {sum(dropped)}", flush=True)
    missing = [n for n, here in (("lttng-tools liblttng-ust-dev", LTTNG), ("uftrace", UFTRACE)) if not here]
    if missing:
        print(f"peers: not here: apt-get install {' '.join(missing)}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 15)
