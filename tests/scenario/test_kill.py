# SPDX-License-Identifier: MIT. SIGKILL on either side: nothing published is lost, nothing counts twice.
import datetime
import mmap
import os
import pathlib
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import time

import pytest

from conftest import BUILD, WAIT, World, needs_mounts, until

LANE_LOSSES = (1, 2, 3)  # lane full, nested, no lane
JOURNAL = 16


class Load:
    """tests/scenario/load.c: threads that do scopes, `batch` of them and then a pause, and say how many."""

    def __init__(self, world, threads=2, pause_ns=200000, batch=256, tag="truth", **who):
        self.path = world.home / tag
        self.threads, self.batch = threads, batch
        self.process = subprocess.Popen([str(BUILD / "tests/load"), str(self.path), str(threads), str(pause_ns),
                                         str(batch)], stdout=subprocess.PIPE, env=world.env, **who)
        assert self.process.stdout.readline() == b"running\n"
        world.jobs.append(self)
        with open(self.path, "rb") as f:
            self.page = mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ)
        self.pid = self.process.pid

    def each(self):
        """[(scopes done, scopes begun) of each thread]: a killed one may have recorded what it had begun, or not."""
        return [struct.unpack_from("<2Q", self.page, 64 * i) for i in range(self.threads)]

    def truth(self):
        return sum(done for done, _ in self.each())

    def begun(self):
        return sum(begun for _, begun in self.each())

    def inside(self):
        """Threads that are in the middle of a batch."""
        return sum(done % self.batch != 0 for done, _ in self.each())

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT)


def ended(world, pid):
    until("the daemon saw the end", lambda: world.sql(
        "SELECT 1 FROM process WHERE pid = ? AND end_reason IS NOT NULL", pid))


def stored_and_lost(world):
    cells = world.cells("s")
    return (sum(v[0] for k, v in cells.items() if k.endswith("/unit")),
            sum(n for cause, n in world.losses("s").items() if cause in LANE_LOSSES))


def check(world, load):
    """Of the one job there was: all that it has done is stored or said to be lost, and nothing that it did not begin."""
    stored, lost = stored_and_lost(world)
    assert load.truth() <= stored + lost <= load.begun(), (stored, lost, load.each())
    return stored, lost


def pause(seconds):
    select.select([], [], [], seconds)


@pytest.mark.parametrize("round_", range(6))
def test_killed_job(world, round_):
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "s", "--all")
    load = Load(world)
    rng = random.Random(round_)
    until("it records", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["events"]])
    unheard = load.begun()
    pause(rng.uniform(0.01, 0.3))  # the instant is the random variable of this test
    load.kill()
    ended(world, load.pid)
    world.ctl("finalize", "s")
    stored, lost = stored_and_lost(world)
    # Scopes before the engine was loaded are the job's alone: there is no hole after, and nothing it did not do.
    assert load.truth() - unheard <= stored + lost <= load.begun() and stored > 0, (stored, lost, load.each(), unheard)


def by_thread(world):
    """{(pid, worker): scopes that are stored}"""
    return {(pid, worker): n for pid, worker, n in world.sql(
        "SELECT p.pid, w.name, sum(c.count) FROM cell c JOIN node u ON u.id = c.node JOIN node w ON w.id = u.parent"
        " JOIN process p ON p.id = c.process JOIN session s ON s.id = c.session"
        " WHERE s.name = 's' AND u.name = 'unit' AND c.class = 0 GROUP BY p.pid, w.name")}


# A kill finds a thread where it is most of the time. In a short pause it has done what it has begun, to the scope;
# a batch of which a lane has room for the whole, and a long pause behind it, is for kills in the middle of a call.
IN_PAUSE = {"pause_ns": 200_000, "batch": 256}
IN_BATCH = {"pause_ns": 900_000_000, "batch": 600_000}
LANE_KB = 16384


def test_killed_job_that_recorded_from_its_first_scope(world):
    """Under `run` the first scope is recorded: then each thread's own counter says what is stored, and nothing is lost.

    PD_KILLS: how many jobs are killed, each at a random instant."""
    kills, rng = int(os.environ.get("PD_KILLS", 8)), random.Random(os.environ.get("PD_SEED", 5))
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_LANE_KB=LANE_KB)
    world.ctl("start", "s", "--all")
    token = "00112233445566778899aabbccddeeff"
    world.env["PROTOND_TOKEN"] = token
    did, inside, of = {}, 0, 0
    for round_ in range(kills):
        in_batch = round_ % 2 == 0
        load = Load(world, threads=3, tag=f"truth{round_}", **(IN_BATCH if in_batch else IN_PAUSE))
        until("each thread works", lambda: all(done for done, _ in load.each()), interval=0.0005)
        least = load.truth() + rng.randrange(300_000 if in_batch else 20_000)
        until("it goes on", lambda: load.truth() > least, interval=0.0005)
        if not in_batch:
            pause(rng.uniform(0, 0.02))
        load.kill()
        world.jobs.remove(load)
        load.process.stdout.close()
        if in_batch:
            inside, of = inside + load.inside(), of + load.threads
        for i, (done, begun) in enumerate(load.each()):
            key = (load.pid, f"worker {i}")  # that many kills may use a number again
            did[key] = tuple(a + b for a, b in zip(did.get(key, (0, 0)), (done, begun)))
        ended(world, load.pid)
    until("the rings are drained", lambda: not list((world.dir / "rings").iterdir()))
    world.ctl("finalize", "s")
    stored, lost = stored_and_lost(world)
    print(f"{kills} killed: did {sum(done for done, _ in did.values())}, stored {stored}, said to be lost {lost}; "
          f"{inside} of {of} threads were killed in the middle of a batch")
    assert world.losses("s") == {}
    have = by_thread(world)
    wrong = {k: (have.get(k, 0), *d) for k, d in did.items() if not d[0] <= have.get(k, 0) <= d[1]}
    assert not wrong and set(have) <= set(did), f"(stored, done, begun) of {wrong}"
    assert inside * 2 >= of


def test_killed_daemon_restarts_without_loss_or_double(world):
    """PD_DAEMON_KILLS: how often."""
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "s", "--all")
    world.env["PROTOND_TOKEN"] = "00112233445566778899aabbccddeeff"
    load = Load(world, threads=2, pause_ns=1000000)
    rng = random.Random(os.environ.get("PD_SEED", 7))
    for _ in range(int(os.environ.get("PD_DAEMON_KILLS", 8))):
        before = load.truth()
        until("the job goes on", lambda: load.truth() > before + 2000)
        pause(rng.uniform(0, 0.1))
        world.daemon.kill()
        world.daemon.wait(WAIT)
        before = load.truth()
        until("the job goes on without a daemon", lambda: load.truth() > before)
        world.start(PROTOND_AUTO_SESSION="off")
    load.kill()
    ended(world, load.pid)
    world.ctl("finalize", "s")
    check(world, load)


@pytest.mark.parametrize("first", ["daemon", "job", "neither"])
def test_both_killed(world, first):
    """The daemon, and the job once it went on without; the job, and the daemon before or after it saw that; both at once."""
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "s", "--all")
    world.env["PROTOND_TOKEN"] = "00112233445566778899aabbccddeeff"
    load = Load(world, threads=2, pause_ns=1000000)
    until("it has worked", lambda: load.truth() > 10000)
    if first == "job":
        load.kill()
    elif first == "neither":
        load.process.kill()
    world.daemon.kill()
    world.daemon.wait(WAIT)
    if first == "daemon":
        before = load.truth()
        until("the job goes on", lambda: load.truth() > before)
    load.kill()
    world.start(PROTOND_AUTO_SESSION="off")
    ended(world, load.pid)
    world.ctl("finalize", "s")
    check(world, load)
    assert not list((world.dir / "rings").iterdir()), "the rings of ended jobs are gone"


def overwrite(path, at, rng):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(rng.randbytes(64))


@pytest.mark.parametrize("how", [lambda path, at, rng: os.truncate(path, at), overwrite], ids=["cut", "overwritten"])
@pytest.mark.parametrize("job", ["dead", "alive", "without its ring"])
def test_damaged_journal(world, job, how):
    """What it held and nobody else is said to be lost, with since when, and what comes after it is stored.

    PD_CUTS: how many daemons find their journal so."""
    rng = random.Random(os.environ.get("PD_SEED", 11))
    for round_ in range(int(os.environ.get("PD_CUTS", 1))):
        shutil.rmtree(world.dir)
        world.dir.mkdir(mode=0o700)
        world.db.unlink(missing_ok=True)
        env = {"PROTOND_AUTO_SESSION": "off", "PROTOND_LANE_KB": "64"}
        world.start(**env, PROTOND_COMMIT_MS=60000)
        world.ctl("start", "s", "--all")
        world.env["PROTOND_TOKEN"] = "00112233445566778899aabbccddeeff"
        load = Load(world, threads=2, pause_ns=1000000)
        until("it has worked", lambda: load.truth() > 5000)
        world.view("tree", "s")  # stores session, process and what there is
        begin, before = time.time(), load.truth()
        until("a lane was written over some times", lambda: load.truth() > before + 40000)
        world.daemon.kill()
        world.daemon.wait(WAIT)
        end = time.time()
        if job != "alive":
            load.kill()
        for ring in world.dir.glob("rings/*.ring") if job == "without its ring" else ():
            ring.unlink()
        path = max(world.dir.glob("journal.*"), key=lambda path: int(path.suffix[1:]))
        size, taken = path.stat().st_size, world.sql("SELECT value FROM meta WHERE key = 'journal'")[0][0] & 0xffffffff
        first = taken if how is overwrite else 0  # written over, what is stored already would be missed by nobody
        at = rng.randrange(first, (first + size) // 2)
        how(path, at, rng)
        world.start(**env)
        if job == "alive":
            before = load.truth()
            until("the job goes on", lambda: load.truth() > before + 20000)
            load.kill()
        ended(world, load.pid)
        tree = world.view("tree", "s").stdout
        stored, lost = stored_and_lost(world)
        gone = world.losses("s").get(JOURNAL, 0)
        print(f"{at} of {size}: did {load.truth()}, stored {stored}, dropped {lost}, gone {gone}")
        # The records of the agent itself are bytes, too: a few of each lane and each lap.
        # Where the ring is gone, what its lanes held went with it, and nobody knows how much that was.
        least = load.truth() if job != "without its ring" else stored
        assert least <= stored + lost + gone <= load.begun() * 1.02, (stored, lost, gone, load.each())
        assert gone > 0
        since = re.search(r"note: the journal was damaged: of what process (\d+) did since (\S+)Z, events are missing", tree)
        assert int(since[1]) == load.pid, tree
        at = datetime.datetime.fromisoformat(since[2] + "+00:00").timestamp()
        assert begin - 2 <= at <= end, (begin, at, end)
        assert re.search(rf"dropped {gone}: lost with a damaged journal", tree.replace(",", "")), tree
        assert world.stop() == 0  # and what was said is said once
        world.start(**env)
        assert (gone, stored) == (world.losses("s")[JOURNAL], stored_and_lost(world)[0])
        assert world.view("tree", "s").stdout.count("note: the journal was damaged") == 1
        world.ctl("finalize", "s")
        world.stop()
        world.jobs.remove(load)
        load.process.stdout.close()
    world.daemon = None


@pytest.mark.parametrize("alive", [True, False])
def test_a_damaged_journal_whose_ring_has_it_still(world, alive):
    """What its job has not written over is drained once more, and nothing is lost."""
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_COMMIT_MS=60000)
    world.ctl("start", "s", "--all")
    world.env["PROTOND_TOKEN"] = "00112233445566778899aabbccddeeff"  # records from its first scope on
    job = world.job()
    job.say("repeat 1 work")
    until("it is stored", lambda: world.view("tree", "s") and world.cells("s").get("/work"))
    journal = max(world.dir.glob("journal.*"), key=lambda path: int(path.suffix[1:]))
    stored = journal.stat().st_size
    job.say("repeat 1000 work")
    until("it is in the journal", lambda: journal.stat().st_size > stored + 24000)
    world.daemon.kill()
    world.daemon.wait(WAIT)
    os.truncate(journal, stored + 1000)
    if not alive:
        job.kill()
    world.start(PROTOND_AUTO_SESSION="off")
    if alive:
        job.say("repeat 1000 work")
        job.kill()
    ended(world, job.pid)
    assert world.cells("s")["/work"][0] == (2001 if alive else 1001) and world.losses("s") == {}
    assert "note: the journal was damaged" not in world.view("tree", "s").stdout


@pytest.mark.parametrize("timeout", ["5", "0"])
def test_a_finalize_waits_for_its_lanes_whoever_else_ends(world, timeout):
    """Full lanes of one job, and others that end with a session of their own to finalize."""
    threads, scopes = 24, 9000
    world.start()
    job, others = world.job(), [world.job() for _ in range(8)]
    world.ctl("start", "s", "--pid", job.pid)
    for other in others:
        other.say("start own")
        other.say("repeat 10 x")
    for i in range(threads):
        job.say(f"@{i} repeat 1 warm")
    world.daemon.send_signal(signal.SIGSTOP)
    for i in range(threads):
        job.say(f"@{i} repeat {scopes} work")
    asks = subprocess.Popen([str(BUILD / "bin/protonctl"), "finalize", "s", "--timeout", timeout], env=world.env, stdout=subprocess.DEVNULL)
    for other in others:
        other.process.stdin.write("finalize 0\n")
        other.process.stdin.flush()
    world.daemon.send_signal(signal.SIGCONT)
    for other in others:
        assert other.process.stdout.readline().startswith("ok")
        other.kill()
    assert asks.wait(WAIT) == 0
    assert world.cells("s")["/work"][0] == threads * scopes and world.losses("s") == {}


def test_open_scopes_of_a_job_that_finalizes_and_ends(world):
    world.start()
    for i in range(4):
        job = world.job()
        job.say(f"start own{i}")
        job.say("enter main")
        job.say("repeat 10 x")
        job.say("finalize 0")
        job.kill()
        until("it is stored", lambda: world.state(f"own{i}") == "finalized")
        cells = world.cells(f"own{i}")
        assert cells["/main/x"][0] == 10 and cells["/main"][1] > 0 and cells["/main"][2] == 1, cells


def test_a_full_lane_is_counted(world):
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_LANE_KB=64, PROTOND_LANES=2)  # the agent's and one: none for sums
    world.ctl("start", "s", "--all")
    world.env["PROTOND_TOKEN"] = "00112233445566778899aabbccddeeff"
    load = Load(world, threads=1, pause_ns=0)
    until("it has worked", lambda: load.truth() > 3000000)
    load.kill()
    ended(world, load.pid)
    world.ctl("finalize", "s")
    stored, lost = check(world, load)
    assert lost > 0 and stored > 0, "at full speed a 64 KiB lane overflows"
    assert "dropped" in world.view("tree", "s").stdout.lower() or "drops" in world.view("tree", "s").stdout


def test_pause_answers_when_jobs_have_done_it_and_says_who_has_not(world):
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "s", "--all")
    load = Load(world)
    until("it records", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["events"]])
    assert world.ctl_json("pause") == {"jobs": 1, "settled": True}
    assert world.ctl_json("resume", load.pid) == {"jobs": 1, "settled": True}
    os.kill(load.pid, signal.SIGSTOP)
    r = world.ctl("pause", load.pid)
    assert r.stdout.startswith("1 job let go") and "not every job has answered yet" in r.stderr, r
    os.kill(load.pid, signal.SIGCONT)
    until("it answers again", lambda: world.ctl_json("resume")["settled"])
    load.kill()


def test_a_ring_left_behind_is_not_counted_again(world):
    """Killed between the transaction that has a job's end and the removal of its ring: its file stands there still."""
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "s", "--all")
    job = world.job()
    job.say("start own")
    job.say("repeat 100 a")
    (ring,) = (world.dir / "rings").rglob("*.ring")
    aside = world.dir / "aside"
    os.link(ring, aside)
    job.quit()
    ended(world, job.pid)
    until("its ring is gone", lambda: not ring.exists())
    world.daemon.kill()
    world.daemon.wait(WAIT)
    os.link(aside, ring)
    world.start(PROTOND_AUTO_SESSION="off")
    until("its ring is gone", lambda: not ring.exists())
    world.ctl("finalize", "s")
    assert world.cells("s")["/a"][0] == 100
    assert world.sql("SELECT count(*) FROM process") == [(1,)]


def ticks(pid):
    """When a process began: clock ticks since boot, the 22nd word of its stat."""
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")")[-1].split()[19])


def of_nobody(rings, ring):
    """A second ring of the same process, made long ago, which no daemon heard of: proto/abi/ring.h has the offsets."""
    copy = rings / f"{1:032x}.ring"
    subprocess.run(["cp", "--sparse=always", ring, copy], check=True)
    with open(copy, "r+b") as f:
        f.seek(16)
        f.write(bytes.fromhex(copy.stem))
        f.seek(152)  # created_monotonic_ns
        f.write(struct.pack("<Q", 1))


def number_given_again(path):
    """In a pid namespace of its own, where the last number that was given can be set."""
    world = World(pathlib.Path(path))
    try:
        world.start(PROTOND_AUTO_SESSION="off")
        job, rings = world.job(), world.dir / "rings"
        job.say("start own")
        job.say("repeat 100 a")
        world.daemon.kill()
        world.daemon.wait(WAIT)
        job.say("repeat 100 a")  # only its ring has them
        of_nobody(rings, *rings.glob("*.ring"))
        began = ticks(job.pid)
        job.kill()
        until("the clock ticks", lambda: time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") > began + 1)
        with open("/proc/sys/kernel/ns_last_pid", "w") as f:
            f.write(str(job.pid - 1))
        other = subprocess.Popen(["sleep", "1000"])
        assert other.pid == job.pid
        world.start(PROTOND_AUTO_SESSION="off")
        until("both rings are drained and gone", lambda: not list(rings.glob("*.ring")))
        assert other.poll() is None
        assert world.sql("SELECT pid, end_reason IS NULL FROM process") == [(job.pid, False)] * 2
        assert world.sql("SELECT count FROM cell") == [(200,)] * 2, "of either, all that is in it"
        other.kill()
        other.wait(WAIT)
    finally:
        world.close()


@pytest.mark.long
@needs_mounts
def test_a_process_under_a_dead_jobs_number(tmp_path):
    """While no daemon lived, the job ended and its number was given to another process: that is not the job."""
    subprocess.run(["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-pf", "--mount-proc", sys.executable, "-c",
                    "import sys, test_kill; test_kill.number_given_again(sys.argv[1])", tmp_path],
                   cwd=pathlib.Path(__file__).parent, env={**os.environ, "PROTOND_BUILD": str(BUILD)}, check=True, timeout=WAIT * 2)


def test_a_ring_without_a_name_that_is_gone(world, tmp_path):
    """Outside of a tmpfs a ring is the job's alone, and the names of its records are there. What was in the journal and
    not in the store when both were killed is said to be lost to the daemon's absence; what is stored stays."""
    disk = tmp_path / "run"
    disk.mkdir(0o700)
    if os.stat(disk).st_dev == os.stat("/dev/shm").st_dev or \
            subprocess.run(["stat", "-f", "-c", "%T", disk], capture_output=True, text=True).stdout.strip() == "tmpfs":
        pytest.skip("there is no directory outside of a tmpfs")
    world.env["PROTOND_RUNTIME_DIR"] = str(disk)
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_COMMIT_MS=600_000)
    load = Load(world)
    until("known", lambda: world.ctl_json("jobs")["jobs"])
    world.ctl("start", "s", "--pid", load.pid)
    until("some", lambda: world.ctl_json("status")["events"] > 10_000)
    world.view("tree", "s")  # stored up to here
    before = sum(n for n, _, _ in world.cells("s").values())
    until("more", lambda: world.ctl_json("status")["events"] > 100_000)
    os.kill(load.pid, signal.SIGSTOP)
    at = world.ctl_json("status")["events"]
    assert world.stop(signal.SIGKILL) == -signal.SIGKILL
    load.kill()
    world.start()
    ended(world, load.pid)
    world.ctl("finalize", "s")
    losses = world.losses("s")
    stored = sum(n for n, _, _ in world.cells("s").values())
    assert set(losses) == {1} and stored == before < at, losses
    assert at - 20 < stored + losses[1] <= load.begun(), "all that was read; a few events are no scopes"
