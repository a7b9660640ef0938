# SPDX-License-Identifier: MIT. Sums: threads that never pause lose nothing from the tree, whoever is killed when.
# PD_SUMS_SECONDS: the runs at full speed last so long, with 1, 2, 4 and 8 threads; PD_SUMS_KILLS: how many jobs and
# daemons are killed; PD_PRINT=1 prints what was measured.
import os
import random
import time

import pytest

from conftest import until
from test_kill import Load, ended, pause
from test_sessions import Rounds, of_sessions
from test_storm import TOKEN
from test_timeline import of, timeline

pytestmark = pytest.mark.slow  # a sanitizer's speed is its own

EVENTS = 30_000_000
SECONDS = float(os.environ.get("PD_SUMS_SECONDS", 0))
KILLS = int(os.environ.get("PD_SUMS_KILLS", 12))
FULL_SPEED = {"pause_ns": 0, "batch": 1}


def begin(world):
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "s", "--all")
    world.env["PROTOND_TOKEN"] = TOKEN


def cpu_s(world):
    with open(f"/proc/{world.daemon.pid}/stat") as f:
        words = f.read().rsplit(")")[-1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def stored(world, pid):
    """{worker: its scopes}"""
    return dict(world.sql(
        "SELECT w.name, sum(c.count) FROM cell c JOIN node u ON u.id = c.node JOIN node w ON w.id = u.parent"
        " JOIN process p ON p.id = c.process JOIN session s ON s.id = c.session"
        " WHERE p.pid = ? AND u.name = 'unit' AND s.name = 's' GROUP BY w.name", pid))


def leb(b):
    """Numbers of 7 bits a byte."""
    v = shift = 0
    for byte in b:
        v |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield v
            v = shift = 0


def buckets(packed):
    """How many durations a stored histogram has: hist.h."""
    numbers, n = leb(packed), 0
    next(numbers, 0)
    for count in numbers:
        n += count
        if count == 0:
            next(numbers)
    return n


def check(world, load):
    counts = stored(world, load.pid)
    for i, (done, begun) in enumerate(load.each()):
        assert done <= counts.get(f"worker {i}", 0) <= begun, (i, counts, load.each())
    for count, hist in world.sql(
            "SELECT c.count, c.buckets FROM cell c JOIN node u ON u.id = c.node JOIN process p ON p.id = c.process"
            " WHERE p.pid = ? AND u.name = 'unit'", load.pid):
        assert buckets(hist) == count


def gone(world, load):
    load.kill()
    world.jobs.remove(load)
    load.process.stdout.close()
    ended(world, load.pid)


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2, 4, 8] if SECONDS else [1, 4])
def test_full_speed(world, threads):
    begin(world)
    load = Load(world, threads=threads, **FULL_SPEED)
    until("it works", lambda: load.truth() > 1000)
    cpu, begun, n = cpu_s(world), time.monotonic(), load.truth()
    if SECONDS:
        pause(SECONDS)
    else:
        until("it has done its work", lambda: load.truth() > EVENTS, timeout=600)
    took, cpu = time.monotonic() - begun, cpu_s(world) - cpu
    if os.environ.get("PD_PRINT"):
        print(f"{threads} threads, {took:.0f} s: {load.truth()} scopes, {(load.truth() - n) / took / 1e6:.1f} M a second, "
              f"daemon {100 * cpu / took:.1f} % of a core")
    gone(world, load)
    world.ctl("finalize", "s")
    check(world, load)
    assert world.losses("s") == {}


@pytest.mark.long
def test_killed_jobs(world):
    """At full speed, each at a random instant: n or n + 1 of each thread's own counter."""
    rng = random.Random(os.environ.get("PD_SEED", 11))
    begin(world)
    for round_ in range(KILLS):
        load = Load(world, threads=rng.choice((1, 2, 4)), tag=f"truth{round_}", **FULL_SPEED)
        least = rng.randrange(4_000_000)
        until("it works", lambda: load.truth() >= least, interval=0.0005)
        gone(world, load)
        check(world, load)
    until("the rings are drained", lambda: not list((world.dir / "rings").iterdir()))
    assert world.losses("s") == {}


@pytest.mark.long
def test_killed_daemons(world):
    """Of one job that goes on; it may have been about anything, and so may the job when it is killed in the end."""
    rng = random.Random(os.environ.get("PD_SEED", 12))
    begin(world)
    load = Load(world, threads=2, **FULL_SPEED)
    for round_ in range(KILLS):
        least = load.truth() + rng.randrange(2_000_000)
        until("the job goes on", lambda: load.truth() >= least, interval=0.0005)
        world.daemon.kill()
        world.daemon.wait()
        least = load.truth() + rng.randrange(500_000)
        until("the job goes on without a daemon", lambda: load.truth() >= least)
        world.start(PROTOND_AUTO_SESSION="off")
    if rng.randrange(2):
        world.daemon.kill()
        world.daemon.wait()
        load.kill()
        world.start(PROTOND_AUTO_SESSION="off")
    gone(world, load)
    world.ctl("finalize", "s")
    check(world, load)
    assert world.losses("s") == {}


SMALL = {"PROTOND_AUTO_SESSION": "off", "PROTOND_LANE_KB": 64, "PROTOND_LANES": 24}


@pytest.mark.long
def test_sessions_of_the_job_cut_sums(world):
    """One after the other at full speed, and killed: each has what was done in it, to the scope."""
    world.start(**SMALL)
    rng = random.Random(os.environ.get("PD_SEED", 13))
    sessions = 0
    for k in range(max(KILLS // 4, 2)):
        threads, scopes = rng.choice((1, 2, 3)), rng.choice((20_000, 60_000, 200_000))
        job = Rounds(world, threads, scopes, tag=f"truth{k}")
        target = rng.randrange(2, 12)
        least = rng.randrange(threads * scopes)
        until("it is there", lambda: job.of(target)[1] > least or job.finalized() > target, interval=0.0002)
        job.kill()
        world.jobs.remove(job)
        ended(world, job.pid)
        have, finalized = of_sessions(world, job.pid), job.finalized()
        until("all are stored", lambda: have.update(of_sessions(world, job.pid)) or len(have) >= finalized)
        for r, (count, lost) in have.items():
            done, begun = job.of(r)
            assert lost == 0 and done <= count <= begun, (k, threads, scopes, r, finalized, done, begun, count, lost)
        sessions += len(have)
    assert sessions > 4


@pytest.mark.long
def test_verbs_cut_sums(world):
    """Sessions of others begin, stop, go on and end while threads are at full speed."""
    begin(world)
    load = Load(world, threads=2, **FULL_SPEED)
    until("it works", lambda: load.truth() > 3_000_000)
    for i in range(max(KILLS // 4, 3)):
        name, least, most = f"s{i}", 0, 0
        for first, last in (("start", "stop"), ("activate", "finalize")):
            before = load.truth()
            world.ctl(first, name, *(("--pid", load.pid) if first == "start" else ()))
            at = load.begun()
            until("the job goes on", lambda: load.truth() > at + 200_000)
            least += load.truth() - at
            world.ctl(last, name)
            most += load.begun() - before
        (n,), = world.sql("SELECT sum(c.count) FROM cell c JOIN session s ON s.id = c.session JOIN node u ON u.id = c.node"
                          " WHERE s.name = ? AND u.name = 'unit'", name)
        assert least <= n <= most, (i, least, n, most)
        assert world.losses(name) == {}
    gone(world, load)
    world.ctl("finalize", "s")
    check(world, load)
    assert world.losses("s") == {}


@pytest.mark.parametrize("data", ["trace", "both"])
def test_a_timeline_says_what_was_summed(world, data):
    """Attempted = events that are there + those that it says were summed."""
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_LANE_KB=64, PROTOND_LANES=8)
    world.ctl("start", "s", "--all", "-d", data)
    world.env["PROTOND_TOKEN"] = TOKEN
    load = Load(world, threads=1, **FULL_SPEED)
    until("it works", lambda: load.truth() > 500_000)
    gone(world, load)
    world.ctl("finalize", "s")
    events, _ = timeline(world, "s")
    units = [e for e in of(events, "X") if e["name"] == "unit"]
    shown = len([e for e in units if "open" not in e["args"]])
    (text,), = world.sql("SELECT text FROM note WHERE text LIKE '%too fast%'")
    bursts = sorted((e["ts"], e["ts"] + e["dur"], e["args"]["count"]) for e in of(events, "X") if e["cat"] == "summed")
    assert sum(n for _, _, n in bursts) == int(text.split()[0]), "each event is in one burst"
    assert all(a[1] <= b[0] + 0.001 for a, b in zip(bursts, bursts[1:])), "one after the other"
    (done, begun), = load.each()
    assert done <= shown + int(text.split()[0]) <= len(units) + int(text.split()[0]) <= begun, "nothing that is counted is open, too"


def lanes_of_sums(world):
    """How many lanes of all rings are threads' sums: ring.h."""
    return sum(ring[0x3000 + lane * 1152 + 24] == 4 for ring in (r.read_bytes()[:0x3000 + 16 * 1152]
               for r in (world.dir / "rings").rglob("*.ring")) for lane in range(16))


@pytest.mark.parametrize("data", ["tree", "both"])
def test_a_daemon_that_has_too_much_to_do_asks_for_sums(world, data):
    """Unless somebody wants a timeline. Here it has always."""
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_CPU_PERCENT=0)
    world.ctl("start", "s", "--all", "-d", data)
    world.env["PROTOND_TOKEN"] = TOKEN
    load = Load(world, threads=2, pause_ns=1_000_000, batch=200)
    if data == "tree":
        until("threads sum", lambda: lanes_of_sums(world) == 2)
    else:
        until("it works", lambda: load.truth() > 100_000)
        assert lanes_of_sums(world) == 0
    gone(world, load)
    world.ctl("finalize", "s")
    check(world, load)
    assert world.losses("s") == {}
