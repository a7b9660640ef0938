# SPDX-License-Identifier: MIT. Sums: threads that never pause lose nothing from the tree, whoever is killed when.
# PD_SUMS_EVENTS: scopes of the run at full speed; PD_SUMS_KILLS: how many jobs and daemons are killed.
import os
import random

import pytest

from conftest import until
from test_kill import Load, ended
from test_storm import TOKEN

pytestmark = pytest.mark.slow  # a sanitizer's speed is its own

EVENTS = int(os.environ.get("PD_SUMS_EVENTS", 30_000_000))
KILLS = int(os.environ.get("PD_SUMS_KILLS", 20))
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
    """{worker: (count, sum of its buckets)}; what each cell's histogram has is said by the export of a profile."""
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
@pytest.mark.parametrize("threads", [1, 4])
def test_full_speed(world, threads):
    begin(world)
    load = Load(world, threads=threads, **FULL_SPEED)
    until("it works", lambda: load.truth() > 1_000_000)
    cpu, before = cpu_s(world), os.times().elapsed
    until("it has done its work", lambda: load.truth() > EVENTS, timeout=600)
    print(f"{threads} threads: {load.truth()} scopes, daemon {100 * (cpu_s(world) - cpu) / (os.times().elapsed - before):.1f} % of a core")
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
