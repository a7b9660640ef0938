# SPDX-License-Identifier: MIT. A daemon that is ended or failed at its n-th step: write, sync, cut, reservation, rename,
# unlink, allocation.
#
# PD_FAULT_ALL=1 goes through every step there is; else some, spread over all, others each day.
import datetime
import json
import mmap
import os
import signal
import struct
import subprocess
import time

import pytest

from conftest import BUILD, WAIT, World, readable, until

FAULT = BUILD / "tests/fault.so"
pytestmark = [pytest.mark.preload, pytest.mark.skipif(not FAULT.exists(), reason="sanitizers bring their own malloc")]
ROUNDS, EACH = 4, 200


class Page:
    def __init__(self, path):
        path.write_bytes(bytes(4096))
        with open(path, "r+b") as f:
            self.path, self.map = path, mmap.mmap(f.fileno(), 4096)

    def get(self, at):
        return struct.unpack_from("<Q", self.map, at * 8)[0]

    def put(self, at, value):
        struct.pack_into("<Q", self.map, at * 8, value % 2**64)

    def heal(self):
        self.put(3, 1)


def alive(world):
    return world.daemon is not None and world.daemon.poll() is None


END_AT_RING = 9  # where fault.c has it


def start_faulty(world, page, fault, **more):
    env = {**world.env, "LD_PRELOAD": str(FAULT), "PD_FAULT": fault, "PD_FAULT_PAGE": str(page.path),
           "PROTOND_AUTO_SESSION": "off", **more}
    with open(world.home / "protond.log", "ab") as log:
        world.daemon = subprocess.Popen([str(BUILD / "bin/protond"), "--private", "--foreground"], env=env,
                                        stdout=log, stderr=log)


def stored(world, n):
    return all(world.cells("s").get(f"/round{i}", [0])[0] == EACH for i in range(n))


def drive(world, page):
    """A job that records under a healthy daemon goes on under this one, and ends; the session is finalized."""
    for n in range(1, ROUNDS):
        world.job_.say(f"repeat {EACH} round{n}")
        until("it is stored, or the daemon is gone, or fails",
              lambda: stored(world, n + 1) or not alive(world) or page.get(2))
    world.job_.quit()
    until("the end is stored", lambda: not alive(world) or page.get(2) or
          world.sql("SELECT 1 FROM process WHERE ended_ns IS NOT NULL"))
    world.ctl("finalize", "s", check=False)


def run(world, fault):
    """The page, after what was recorded is whole again."""
    page = Page(world.home / "page")
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "s", "--all", "-d", "both")
    world.job_ = world.job()
    world.job_.say("start own")
    world.job_.say(f"repeat {EACH} round0")
    until("it is stored", lambda: stored(world, 1))
    world.stop()
    start_faulty(world, page, fault)
    drive(world, page)
    page.heal()
    if alive(world):
        world.daemon.terminate()
    status = world.daemon.wait(WAIT)
    assert status >= 0 or status in (-signal.SIGKILL, -signal.SIGTERM), f"{fault}: signal {-status}\n{world.log()}"
    assert status != -signal.SIGKILL or page.get(2), "killed by nobody"
    world.daemon = None
    world.start(PROTOND_AUTO_SESSION="off")
    if world.state("s") != "finalized":
        world.ctl("finalize", "s")
    until("the rings of ended jobs are gone", lambda: not list((world.dir / "rings").iterdir()))
    cells = world.cells("s")
    assert {k: v[0] for k, v in cells.items()} == {f"/round{n}": EACH for n in range(ROUNDS)}, fault
    assert world.losses("s") == {}, fault
    world.view("export", "s", "-f", "chrome_trace", "-o", world.home / "x.json")
    whole = json.loads((world.home / "x.json").read_text())
    assert len([e for e in whole["traceEvents"] if e["ph"] == "X"]) == ROUNDS * EACH and whole["eventsGone"] == 0
    world.stop()
    return page


TOTAL = {}


def total(path, kind):
    """How many steps there are, files' or allocations, when nothing fails."""
    if not TOTAL:
        world = World(path)
        page = run(world, "none:0")
        assert page.get(0) > 100 and page.get(1) > 1000 and not page.get(2)
        TOTAL.update(file=page.get(0), memory=page.get(1))
        world.close()
    return TOTAL[kind]


PARTS = 8 if os.environ.get("PD_FAULT_ALL") else 1  # for so many workers


def some(n, of):
    """`of` of the numbers from 1 to n, or a few more, other ones each day until all were there; or all at once."""
    if os.environ.get("PD_FAULT_ALL"):
        return range(1, n + 1)
    apart = max(n // of, 1)
    return range(1 + datetime.date.today().toordinal() % apart, n + 1, apart)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("fault, kind, of", [
    ("before", "file", 16), ("after", "file", 16), ("space", "file", 8), ("io", "file", 8), ("memory", "memory", 24)])
def test_nothing_is_lost_or_double(tmp_path, fault, kind, of, part):
    """Ended before or after its n-th step; from there on without space, or with errors; once without memory."""
    steps = some(total(tmp_path / "first", kind), of)[part::PARTS]
    fired = 0
    for n in steps:
        world = World(tmp_path / str(n))
        try:
            fired += run(world, f"{fault}:{n}").get(2)
        finally:
            world.close()
    assert fired >= len(steps) * 0.9 - 1, "the last steps may not come: some are made in some runs alone"


def test_ended_before_each_step_of_its_start(world):
    """Killed with a round in its journal alone, started again and ended before its n-th step, until it gets to answer."""
    env = {"PROTOND_AUTO_SESSION": "off", "PROTOND_COMMIT_MS": "3600000",
           "PROTOND_LANES": "4",  # a lane is a step
           "PROTOND_LANE_KB": "64"}  # a round is more than one holds: what was drained of it is in the journal and nowhere else
    lots, lot = 4, 1000
    world.start(**env)
    world.ctl("start", "s", "--all")
    job = world.job()
    job.say("start own")
    rounds, answered = 0, False
    while not answered:
        rounds += 1
        for _ in range(lots):
            before = world.ctl_json("jobs")["jobs"][0]["events"]
            job.say(f"repeat {lot} round{rounds}")
            until("it is drained", lambda: world.ctl_json("jobs")["jobs"][0]["events"] >= before + lot)
        world.daemon.kill()
        world.daemon.wait(WAIT)
        page = Page(world.home / "page")
        start_faulty(world, page, f"before:{rounds}", **env)
        until("it ends, or answers", lambda: not alive(world) or world.ctl("status", check=False).returncode == 0)
        answered = alive(world)
        assert answered or page.get(2), "killed by nobody"
        world.daemon.kill()
        world.daemon.wait(WAIT)
        world.start(**env)
    assert rounds > 20, "it reads the journal, says whose it is, tells the job how far it has read, and stores what it read"
    job.quit()
    world.ctl("finalize", "s")
    assert {k: v[0] for k, v in world.cells("s").items()} == {f"/round{n + 1}": lots * lot for n in range(rounds)}
    assert world.losses("s") == {}


@pytest.mark.long
def test_a_ring_that_nobody_spoke_for(world):
    """Daemon and job die before the ring is adopted: the next daemon finds it, and it does not stay for ever."""
    page = Page(world.home / "page")
    start_faulty(world, page, "none:0")
    until("control.sock answers", lambda: world.answers())
    world.ctl("start", "s", "--all")
    page.put(END_AT_RING, 1)
    job = world.job(env={"PROTOND_TOKEN": "00112233445566778899aabbccddeeff"})
    job.say("repeat 1 a")
    assert world.daemon.wait(WAIT) == -signal.SIGKILL
    job.kill()
    rings = world.dir / "rings"
    assert len(list(rings.rglob("*.ring"))) == 1 and world.sql("SELECT 1 FROM process") == []
    world.start(PROTOND_AUTO_SESSION="off")
    until("it is found", lambda: f"event=ring_found pid={job.pid}" in world.log())
    until("its files are gone", lambda: not [f for f in rings.rglob("*") if not f.is_dir()])
    until("its end is stored", lambda: world.sql(
        "SELECT pid FROM process WHERE end_reason IS NOT NULL") == [(job.pid,)])


@pytest.mark.long
def test_a_daemon_that_slept_hears_before_it_looks(world):
    """It was stopped for longer than a ring may be without a word: the ring's job spoke, and has ended."""
    world.start(PROTOND_AUTO_SESSION="off")
    run = subprocess.Popen([BUILD / "bin/protonctl", "run", "-q", "-b", "none", "-n", "r", "--", "sh", "-c", f"kill -STOP {world.daemon.pid}; "
                            f"echo repeat 3 a | {BUILD}/tests/job >&2; echo"], env=world.env, cwd=world.home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert readable(run.stdout)
    (ring,) = (world.dir / "rings").glob("*.ring")
    until("it is old", lambda: time.time() - ring.stat().st_ctime > 11)
    world.daemon.send_signal(signal.SIGCONT)
    assert run.wait(WAIT) == 0
    assert world.cells("r")["/a"][0] == 3 and "ring_found" not in world.log(), world.log()
