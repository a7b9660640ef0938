# SPDX-License-Identifier: MIT. What is said of a session is true: attempted = stored + lost in each one of a job that
# starts and ends them at full speed, and is killed; what protond_finalize() has returned 0 for is stored.
#
# PD_ROUNDS=600: how many jobs are killed. PD_SEED. PD_PRINT=1 prints what was measured.
import errno
import mmap
import os
import pathlib
import random
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile

import pytest

from conftest import BUILD, WAIT, until
from test_kill import LANE_LOSSES, ended

JOBS = int(os.environ.get("PD_ROUNDS", 16))
SEED = int(os.environ.get("PD_SEED", 7))
ROUNDS = 64
SMALL = {"PROTOND_AUTO_SESSION": "off", "PROTOND_LANE_KB": 64, "PROTOND_LANES": 6}


class Rounds:
    """tests/scenario/rounds.c"""

    def __init__(self, world, threads, scopes, rounds=ROUNDS, tag="truth"):
        self.threads, self.scopes, self.rounds = threads, scopes, rounds
        path = world.home / tag
        self.process = subprocess.Popen([str(BUILD / "tests/rounds"), str(path), str(threads), str(rounds), str(scopes)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=world.env)
        self.pid = self.process.pid
        world.jobs.append(self)
        assert self.process.stdout.readline() == b"running\n"
        with open(path, "rb") as f:
            self.page = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)

    def of(self, round_):
        """(done, begun) of all threads in that round"""
        words = struct.unpack_from(f"<{2 * self.threads}Q", self.page, 16 * self.threads * round_)
        return sum(words[::2]), sum(words[1::2])

    def finalized(self):
        return struct.unpack_from("<Q", self.page, 16 * self.threads * self.rounds)[0]

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT)
        said = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        assert said == "", said


def of_sessions(world, pid, all_finalized=True):
    """{round: (stored, lost)} of those that are finalized"""
    found = {}
    for name, state, n in world.sql("SELECT s.name, s.state, sum(c.count) FROM session s LEFT JOIN cell c ON c.session = s.id"
                                    " AND c.class = 0 WHERE s.name GLOB ? GROUP BY s.id", f"{pid}.*"):
        assert state == "finalized" or not all_finalized, (name, state)
        if state != "finalized":
            continue
        found[int(name.split(".")[1])] = [n or 0, 0]
    for name, cause, n in world.sql("SELECT s.name, l.cause, sum(l.count) FROM loss l JOIN session s ON s.id = l.session"
                                    " WHERE s.name GLOB ? GROUP BY s.id, l.cause", f"{pid}.*"):
        assert cause in LANE_LOSSES or n == 0, (name, cause, n)
        if int(name.split(".")[1]) in found:
            found[int(name.split(".")[1])][1] += n
    return found


@pytest.mark.long
def test_each_session_of_a_killed_job_says_what_it_lost(world):
    world.start(**SMALL)
    rng, lost_in_all, sessions = random.Random(SEED), 0, 0
    for k in range(JOBS):
        threads, scopes = rng.choice((1, 2, 3, 8)), rng.choice((2000, 20000, 60000))
        job = Rounds(world, threads, scopes, tag=f"truth{k}")
        target = rng.choice((0, 1, rng.randrange(2, 30), 31))
        least = rng.randrange(threads * scopes)
        until("it is there", lambda: job.of(target)[1] > least or job.finalized() > target, interval=0.0002)
        select.select([], [], [], rng.choice((0, rng.uniform(0, 0.003))))  # the instant is the random variable
        job.kill()
        world.jobs.remove(job)
        ended(world, job.pid)
        have, finalized = of_sessions(world, job.pid), job.finalized()
        until("all are stored", lambda: have.update(of_sessions(world, job.pid)) or len(have) >= finalized)
        for r in range(ROUNDS):
            done, begun = job.of(r)
            stored, lost = have.get(r, (0, 0))
            what = (f"seed {SEED} job {k}, {threads} threads of {scopes}: session {r} of {finalized} finalized: done {done}, "
                    f"begun {begun}, stored {stored}, lost {lost}")
            assert done <= stored + lost <= begun, what
            assert r not in have or r < finalized + 2, what
            lost_in_all += lost
        sessions += len(have)
    if os.environ.get("PD_PRINT"):
        print(f"{JOBS} jobs killed, {sessions} sessions, {lost_in_all} lost and said")
    assert lost_in_all > 0


@pytest.mark.long
def test_each_session_says_what_it_lost_while_daemons_are_killed(world):
    """What is charged ahead, and taken back, is so after a restart, too."""
    rng, lost_in_all, few = random.Random(SEED), 0, {**SMALL, "PROTOND_LANES": 2}
    world.start(**few)
    for k in range(max(2, JOBS // 8)):
        job = Rounds(world, rng.choice((1, 2, 3)), rng.choice((20000, 60000)), rounds=24, tag=f"truth{k}")
        for _ in range(4):
            target = job.finalized() + rng.randrange(3)
            until("it goes on", lambda: job.process.poll() is not None or job.finalized() > target, interval=0.0002)
            select.select([], [], [], rng.uniform(0, 0.01))  # the instant is the random variable
            world.daemon.kill()
            world.daemon.wait(WAIT)
            world.start(**few)
        assert job.process.wait(WAIT) == 0, job.process.stderr.read()
        job.kill()
        world.jobs.remove(job)
        have = {}
        until("all are stored", lambda: have.update(of_sessions(world, job.pid, False)) or len(have) == job.rounds)
        for r in range(job.rounds):
            done, begun = job.of(r)
            assert done == begun == sum(have[r]), (SEED, k, job.threads, r, done, have[r])
            lost_in_all += have[r][1]
    assert lost_in_all > 0


def test_each_session_of_the_daemon_says_what_it_lost(world):
    """Started, paused and ended from outside, while a job that does too much for its lanes stands still."""
    world.start(**{**SMALL, "PROTOND_LANES": 2})
    world.ctl("start", "all", "--all")
    job, did = world.job(), {}
    until("it is recorded", lambda: job.say("enter x") or job.say("exit") or
          [j for j in world.ctl_json("jobs")["jobs"] if j["events"]])

    def work(n, *sessions):
        job.say(f"repeat {n} unit")
        for s in sessions:
            did[s] = did.get(s, 0) + n

    work(60000)
    world.ctl("start", "a", "--pid", job.pid)
    work(50001, "a")
    world.ctl("start", "b", "--pid", job.pid)
    work(40002, "a", "b")
    world.ctl("deactivate", "a")
    work(30003, "b")
    world.ctl("finalize", "b")
    work(20004)
    world.ctl("activate", "a")
    work(70005, "a")
    job.kill()
    until("all are stored", lambda: all(world.state(s) == "finalized" for s in "ab"))
    for s, n in did.items():
        stored, lost = world.cells(s)["/unit"][0], sum(world.losses(s).values())
        assert stored + lost == n and lost > 0, (s, n, stored, world.losses(s))


@pytest.fixture(params=["file", "memfd"])
def place(world, request):
    """A ring is a file where the runtime directory is on a tmpfs, else memory that ends with who holds it."""
    if request.param == "file":
        yield world
        return
    folder = tempfile.mkdtemp(prefix="pt.", dir="/var/tmp")
    if subprocess.check_output(["stat", "-f", "-c", "%T", folder], text=True).strip() == "tmpfs":
        os.rmdir(folder)
        pytest.skip("every folder is on a tmpfs")
    dir_, world.dir = world.dir, pathlib.Path(folder)
    world.env["PROTOND_RUNTIME_DIR"] = folder
    yield world
    world.stop(signal.SIGKILL)
    shutil.rmtree(folder)
    world.dir, world.env["PROTOND_RUNTIME_DIR"] = dir_, str(dir_)


def much_that_is_old(world):
    """100 sessions of long ago, of 1 000 cells each: a prune has something to do."""
    assert Rounds(world, 1, 10, rounds=1, tag="first").process.wait(WAIT) == 0
    until("it is stored", lambda: world.sql("SELECT 1 FROM session WHERE state = 'finalized'"))
    world.stop()
    same = "uid, source, backend, mode, hook, data, context, cpu, state, match, pid, command, gpu"
    db = sqlite3.connect(world.db, isolation_level=None)
    db.execute("BEGIN")
    db.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1099) INSERT INTO session "
        f"(id, uuid, name, {same}, created_ns, finalized_ns, active_ns, launches, matched, daemon_ns) SELECT i, "
        f"randomblob(16), 'old' || i, {same}, 1, 1, active_ns, 0, 0, 0 FROM n, session")
    db.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO cell "
        "(session, process, segment, node, device, class, count, sum_ns, min_ns, max_ns, bytes, untimed, open, hist) "
        "SELECT id, 1, 0, (SELECT min(id) FROM node), i, 1, 1, 1, 1, 1, 0, 0, 0, zeroblob(60) FROM n, session WHERE id >= 1000")
    db.execute("COMMIT")
    db.close()


def prunes(world):
    """A client that prunes again and again, what it may, until no daemon runs: it knows of no database to start one for."""
    env = {**{k: v for k, v in world.env.items() if k != "PROTOND_DB"}, "HOME": "/dev/null"}
    return subprocess.Popen(["sh", "-c", 'while "$0" prune --older-than 3650d; do :; done', str(BUILD / "bin/protonctl")],
                            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)


@pytest.mark.long
@pytest.mark.parametrize("dies", ["job", "both"])
@pytest.mark.parametrize("pruned", [False, True], ids=["", "pruned"])
def test_what_finalize_said_is_stored(place, dies, pruned):
    """SIGKILL right after protond_finalize() has returned 0, of the job or of the daemon with it, also while it prunes."""
    world, rng = place, random.Random(SEED)
    settings = {"PROTOND_AUTO_SESSION": "off", "PROTOND_COMMIT_MS": 60000, "PROTOND_RETENTION_DAYS": 0}
    world.start(**settings)
    if pruned:
        much_that_is_old(world)
        world.start(**settings)
    pruner = prunes(world) if pruned else None
    try:
        for k in range(max(3, JOBS // 4)):
            job = Rounds(world, 1, rng.choice((10, 3000, 30000)), tag=f"truth{k}")
            target = rng.choice((0, 0, 1, 5))
            until("it said so", lambda: job.finalized() > target, interval=0.00005)
            job.process.kill()
            if dies == "both":
                world.daemon.kill()
                world.daemon.wait(WAIT)
            job.kill()
            world.jobs.remove(job)
            if dies == "both":
                world.start(**settings)
            finalized, have = job.finalized(), {}
            until(f"job {k}: {finalized} are stored",
                  lambda: have.update(of_sessions(world, job.pid, False)) or all(r in have for r in range(finalized)))
            for r in range(finalized):
                done, begun = job.of(r)
                assert done == begun == sum(have[r]), (SEED, k, r, done, begun, have[r])
    finally:
        if pruner is not None:
            os.killpg(pruner.pid, signal.SIGKILL)
            pruner.wait(WAIT)


def test_finalize_without_a_daemon(place):
    """Its ring is a file: another daemon finds it. Else nobody can promise anything, and it says so."""
    world = place
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    assert job.say("start s").startswith("0")
    job.say("repeat 100 work")
    world.daemon.kill()
    world.daemon.wait(WAIT)
    said = job.say("finalize 0")
    if world.dir.parent == pathlib.Path("/dev/shm"):
        assert said.split()[0] == "0", said
        job.kill()
        world.start(PROTOND_AUTO_SESSION="off")
        until("it is stored", lambda: world.state("s") == "finalized")
    else:
        assert said.startswith(f"-{errno.ENOTCONN} protond has ended"), said
        world.start(PROTOND_AUTO_SESSION="off")
        until("it is stored, as the program lives", lambda: world.state("s") == "finalized")
        job.kill()
    assert world.cells("s")["/work"][0] == 100


def test_a_refused_start_is_no_session(world):
    """-EPERM would be -1, which is PROTOND_ALL."""
    job = world.job(env={"PROTOND_DISABLE": "1"})
    assert job.say("start s") == f"-{errno.EACCES} PROTOND_DISABLE is set"


def test_a_session_that_is_not_stored_has_a_command(world):
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_COMMIT_MS=60000)
    job = world.job()
    assert job.say("start s").startswith("0")
    (session,) = [s for s in world.ctl_json("sessions")["sessions"] if s["name"] == "s"]
    assert world.state("s") is None and session["command"] == str(BUILD / "tests/job"), session
