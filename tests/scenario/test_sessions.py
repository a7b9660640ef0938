# SPDX-License-Identifier: MIT. What is said of a session is true: attempted = stored + lost in each one of a job that
# starts and ends them at full speed, and is killed; what protond_finalize() has returned 0 for is stored.
#
# PD_ROUNDS=600: how many jobs are killed. PD_SEED. PD_PRINT=1 prints what was measured.
import mmap
import os
import random
import select
import struct
import subprocess

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


def of_sessions(world, pid):
    """{round: (stored, lost)}"""
    found = {}
    for name, state, n in world.sql("SELECT s.name, s.state, sum(c.count) FROM session s LEFT JOIN cell c ON c.session = s.id"
                                    " AND c.class = 0 WHERE s.name GLOB ? GROUP BY s.id", f"{pid}.*"):
        assert state == "finalized", (name, state)
        found[int(name.split(".")[1])] = [n or 0, 0]
    for name, cause, n in world.sql("SELECT s.name, l.cause, sum(l.count) FROM loss l JOIN session s ON s.id = l.session"
                                    " WHERE s.name GLOB ? GROUP BY s.id, l.cause", f"{pid}.*"):
        assert cause in LANE_LOSSES or n == 0, (name, cause, n)
        found[int(name.split(".")[1])][1] += n
    return found


@pytest.mark.long
def test_each_session_of_a_killed_job_says_what_it_lost(world):
    world.start(**SMALL)
    rng, lost_in_all, sessions = random.Random(SEED), 0, 0
    for k in range(JOBS):
        threads, scopes = rng.choice((1, 2, 3)), rng.choice((2000, 20000, 60000))
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
