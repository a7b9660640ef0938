# SPDX-License-Identifier: MIT. How costs grow, one axis at a time, as a table, JSON and a picture.
"""scaling.py BUILD [OUT]: what a scope, an event, a tree, a list and an idle daemon cost at growing sizes. Prints a
line for each size; OUT.json gets the numbers and, where matplotlib is, OUT.svg the curves. What each should do is
in CURVES: stay, or grow no faster than its size. Takes some minutes on a quiet machine."""
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

# Of the user's own no daemon and no database is met.
os.environ.update(PROTOND_RUNTIME_DIR="/nonexistent/protond", PROTOND_DB="/nonexistent/protond.db")

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 5  # of an idle daemon, for each size

CURVES = {  # what grows: (sizes, what is measured, its unit, what theory says)
    "threads": ((1, 2, 4, 8, 16), "CPU time of a scope", "ns", "constant"),
    "paths": ((100, 1000, 10000, 60000), "CPU time of an event in the fold", "ns",
              "constant, but for the cache: 240 bytes a path"),
    "tree nodes": ((100, 1000, 10000, 100000), "`protonview tree`", "ms", "linear"),
    "lanes": ((1, 8, 16, 32, 64), "an idle daemon, one job with so many threads", "% of a core", "linear, flat at first"),
    "jobs": ((1, 4, 16, 64, 256), "an idle daemon", "% of a core", "linear: one pread() a look"),
    "sessions": ((10, 100, 1000, 10000), "`protonview tree @last` beside so many", "ms", "constant"),
    "sessions, start": ((10, 100, 1000, 10000), "a daemon's start", "ms", "constant, but for 1 us a session"),
}


def number(text, pattern):
    return float(re.search(pattern, text)[1])


def bench(build, name, *args, **env):
    r = subprocess.run([build / "bench" / name, *map(str, args)], env={**os.environ, **env}, capture_output=True, text=True)
    assert r.returncode in (0, 1), r.stderr
    return r.stdout


def threads(build, n):
    out = bench(build, "scope_bench", SCOPE_BENCH_THREADS=str(n), SCOPE_BENCH_ROUNDS="5")
    return number(out, rf"(?m)^scope, recorded +{n} threads? +([\d.]+) ns")


def paths(build, n):
    return 1000 / number(bench(build, "fold_bench", FOLD_BENCH_PATHS=str(n), FOLD_BENCH_ROUNDS="9"), r"fold: ([\d.]+) M")


def tree_nodes(build, n):
    return number(bench(build, "view_bench", build / "bin/protonview", n, 7), r"median ([\d.]+) ms")


def with_world(test):
    def run(build, n):
        from conftest import World
        with tempfile.TemporaryDirectory() as home:
            world = World(pathlib.Path(home))
            world.env["PROTOND_COMMIT_MS"] = "1000"
            try:
                return test(world, n)
            finally:
                world.close()
    return run


def idle_percent(world):
    clock = ~world.daemon.pid << 3 | 2  # as clock_getcpuclockid(3): user and system time
    time.sleep(8)  # a daemon looks more often for 5 s after the last event
    spent, begin = time.clock_gettime(clock), time.monotonic()
    time.sleep(SECONDS)
    return 100 * (time.clock_gettime(clock) - spent) / (time.monotonic() - begin)


def recorded(world, n):
    from conftest import until
    until("the jobs are recorded", lambda: sum(1 for j in world.ctl_json("jobs")["jobs"] if j["events"]) == n or
          [job.say("repeat 1 tick") for job in world.jobs] is None)


@with_world
def lanes(world, n):
    world.start()
    job = world.job()
    recorded(world, 1)
    for thread in range(n - 1):
        job.say(f"@{thread} enter idle")
    return idle_percent(world)


@with_world
def jobs(world, n):
    world.start()
    for _ in range(n):
        world.job().say("enter idle")
    recorded(world, n)
    return idle_percent(world)


def fill(world, n):
    """A recorded session, and copies of it."""
    import sqlite3
    from conftest import BUILD
    world.start()
    world.ctl("run", "-n", "first", "--", BUILD / "tests/job")
    world.stop()
    db = sqlite3.connect(world.db)
    (first,) = db.execute("SELECT id FROM session").fetchone()
    columns = {t: [c[1] for c in db.execute(f"PRAGMA table_info({t})")] for t in ("session", "member", "active", "segment", "cell")}
    for i in range(1, n):
        for table, names in columns.items():
            key = "id" if table == "session" else "session"
            put = {key: first + i, "uuid": uuid.uuid4().bytes, "name": f"copy {i}"}
            picked = ", ".join("?" if c in put else c for c in names)
            db.execute(f"INSERT INTO {table} SELECT {picked} FROM {table} WHERE {key} = {first}",
                       [put[c] for c in names if c in put])
    db.execute("UPDATE meta SET value = ? WHERE key = 'next_session'", (first + n,))
    db.commit()
    db.close()


def median_ms(test, rounds=9):
    spent = []
    for _ in range(rounds):
        begin = time.monotonic()
        test()
        spent.append(1000 * (time.monotonic() - begin))
    return statistics.median(spent)


@with_world
def sessions(world, n):
    fill(world, n)
    return median_ms(lambda: world.view("tree", "@last"))


@with_world
def sessions_start(world, n):
    fill(world, n)

    spent = []
    for _ in range(5):
        begin = time.monotonic()
        world.start()
        spent.append(1000 * (time.monotonic() - begin))
        world.stop()
    return statistics.median(spent)


def picture(rows, path):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    import matplotlib.pyplot as plt
    fig, axes = plt.subplots(2, 4, figsize=(13, 5.5), layout="constrained")
    for ax, (name, (_, what, unit, theory)) in zip(axes.flat, CURVES.items()):
        ax.plot(list(rows[name]), list(rows[name].values()), "o-", markersize=4)
        ax.set(xscale="log", ylim=(0, 1.25 * max(rows[name].values())), xlabel=name.split(",")[0], ylabel=unit)
        ax.set_title(f"{what}\n{theory}", fontsize=8)
    for ax in list(axes.flat)[len(CURVES):]:
        ax.remove()
    fig.savefig(path, metadata={"Date": None})


def main(build, out=None):
    os.environ["PROTOND_BUILD"] = str(build)
    sys.path.insert(0, str(HERE.parent / "scenario"))
    rows = {}
    for name, (sizes, what, unit, theory) in CURVES.items():
        rows[name] = {}
        for n in sizes:
            rows[name][n] = globals()[name.replace(", ", "_").replace(" ", "_")](build, n)
            print(f"{name}: {n:>6}  {rows[name][n]:8.3f} {unit:12} {what} ({theory})", flush=True)
    if out is None:
        return
    pathlib.Path(out + ".json").write_text(json.dumps({"cores": os.cpu_count(), "kernel": platform.release(), "rows": rows}, indent=1))
    try:
        picture(rows, out + ".svg")
    except ImportError:
        print("no picture: apt-get install python3-matplotlib")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:3])
