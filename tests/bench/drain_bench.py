# SPDX-License-Identifier: MIT. What the daemon takes for a scope, from the lane to the database: of one build, or of several in turns.
#
# drain_bench.py BUILD...               two jobs of four threads, 1.7 M scopes a second
# drain_bench.py --lanes N BUILD...     one job of N threads that rest, in 1 024 lanes, with their sums
#
# DRAIN_ROUNDS (9) and DRAIN_SECONDS (4) change how often and how long. On the daemon's own CPU clock.
import mmap
import os
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

ROUNDS, SECONDS = int(os.environ.get("DRAIN_ROUNDS", 9)), float(os.environ.get("DRAIN_SECONDS", 4))


class Daemon:
    def __init__(self, build, **env):
        self.build, self.dir = build, pathlib.Path(tempfile.mkdtemp(prefix="drain.", dir="/dev/shm"))
        self.env = {**os.environ, "PROTOND_RUNTIME_DIR": str(self.dir), "PROTOND_DB": str(self.dir / "db"), "PROTOND_AUTO_SESSION": "off",
                    "HOME": str(self.dir), **env}
        with open(self.dir / "log", "wb") as log:
            self.process = subprocess.Popen([build / "bin/protond", "--foreground"], stderr=log, env=self.env)
        while not (self.dir / "control.sock").exists():
            time.sleep(0.05)
        self.ctl("start", "s", "--all")

    def ctl(self, *args):
        subprocess.run([self.build / "bin/protonctl", *args], env=self.env, check=True, stdout=subprocess.DEVNULL)

    def cpu(self):
        return int(open(f"/proc/{self.process.pid}/schedstat").read().split()[0]) / 1e9

    def end(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir)


def scopes(build):
    """(ns of CPU a scope, scopes a second)"""
    d, jobs, pages = Daemon(build), [], []
    for i in range(2):
        jobs.append(subprocess.Popen([build / "tests/load", d.dir / f"t{i}", "4", "1000000", "250"], stdout=subprocess.PIPE, env=d.env))
        jobs[-1].stdout.readline()
        with open(d.dir / f"t{i}", "rb") as f:
            pages.append(mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ))

    def done():
        return sum(struct.unpack_from("<Q", page, 64 * k)[0] for page in pages for k in range(4))
    time.sleep(1.5)
    cpu, n, began = d.cpu(), done(), time.monotonic()
    time.sleep(SECONDS)
    cpu, n, took = d.cpu() - cpu, done() - n, time.monotonic() - began
    for j in jobs:
        j.kill()
        j.wait()
    d.end()
    return 1e9 * cpu / n, n / took


def lanes(build, threads):
    """(share of a core, scopes done, stored, dropped)"""
    d = Daemon(build, PROTOND_LANES="1024", PROTOND_LANE_KB="64")
    job = subprocess.Popen([build / "bench/lanes_bench", str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=d.env)
    job.stdout.readline()
    time.sleep(2)
    cpu, began = d.cpu(), time.monotonic()
    time.sleep(SECONDS)
    cpu, took = d.cpu() - cpu, time.monotonic() - began
    job.stdin.close()
    n = int(job.stdout.readline())
    job.wait()
    d.ctl("finalize", "s")
    db = sqlite3.connect(d.dir / "db")
    (stored,), (lost,) = (db.execute(f"SELECT coalesce(sum(count), 0) FROM {table}").fetchone() for table in ("cell", "loss"))
    db.close()
    d.end()
    return 100 * cpu / took, n, stored, lost


def main(*args):
    threads = int(args[1]) if args[0] == "--lanes" else 0
    builds, took = [pathlib.Path(b).resolve() for b in args[2 if threads else 0:]], {}
    for i in range(1 if threads else ROUNDS):
        for b in builds[::1 if i % 2 else -1]:
            if threads:
                print("{}: daemon {:.1f} % of a core; scopes done {}, stored {}, dropped {}".format(b, *lanes(b, threads)))
            else:
                took.setdefault(b, []).append(scopes(b))
    for b, v in took.items():
        ns = sorted(x for x, _ in v)
        print(f"{b}: {ns[len(ns) // 2]:.1f} ns of CPU a scope (median of {len(ns)}; {ns[0]:.1f} to {ns[-1]:.1f}), "
              f"{sum(y for _, y in v) / len(v) / 1e6:.1f} M scopes/s")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("drain_bench.py [--lanes N] BUILD...")
    main(*sys.argv[1:])
