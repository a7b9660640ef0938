# SPDX-License-Identifier: MIT. Users of one service: who takes all that he can get hurts nobody else.
#
# PD_ATTACK_SECONDS: so long every ceiling is attacked at once; default 3.
import fcntl
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
import threading
import time

import pytest

from conftest import BUILD, WAIT, needs_another_user, until
from test_imposters import PEER
from test_kill import Load, ended
from test_liar import descriptors

pytestmark = needs_another_user

OWNER, NEIGHBOUR, ATTACKER = 65531, 65532, 65533
LONGEST_S = 0.1  # that a neighbour waits for an answer
SECONDS = float(os.environ.get("PD_ATTACK_SECONDS", 3))
ATTACKS = ("sessions", "questions", "questions", "unread", "exports", "prunes", "clients", "connections", "rings", "rings", "descriptors",
           "tmpfs", "liars", "journal", "journal", "names")


def of(uid):
    return dict(user=uid, group=uid, extra_groups=[])


def as_user(world, uid, *args, **kwargs):
    return world.tool("protonctl", *args, env={"HOME": "/nonexistent", "PROTOND_DB": ""}, **of(uid), **kwargs)


@pytest.fixture
def service(world):
    """A service's daemon; each user has a folder below world.homes."""
    world.dir.chmod(0o755)
    world.homes = pathlib.Path(tempfile.mkdtemp(prefix="pt.", dir="/dev/shm"))
    world.homes.chmod(0o755)
    for uid in (OWNER, NEIGHBOUR, ATTACKER):
        (world.homes / str(uid)).mkdir()
        os.chown(world.homes / str(uid), uid, uid)

    def serve(**env):
        with open(world.home / "protond.log", "ab") as log:
            world.daemon = subprocess.Popen([str(BUILD / "bin/protond"), "--foreground"], stdout=log, stderr=log, start_new_session=True,
                                            env={**world.env, **{k: str(v) for k, v in env.items()}})
        until("it answers", world.answers)
    world.serve = serve
    yield world
    for job in world.jobs:
        job.kill()
    shutil.rmtree(world.homes)


def ring_of(job):
    """The job's ring, which has no name."""
    fds = pathlib.Path(f"/proc/{job.pid}/fd")
    return next(f for f in fds.iterdir() if os.readlink(f).startswith("/memfd:protond-ring"))


def test_what_is_kept_for_all_lies_where_nobody_writes(service):
    service.serve()
    job = service.job(**of(NEIGHBOUR))
    assert job.say("start s") == "0"
    (ctl,) = (service.dir / "rings").iterdir()
    assert ctl.suffix == ".ctl" and [stat.S_IMODE(p.stat().st_mode) for p in (ctl, ctl.parent)] == [0o600, 0o700]
    with open(ring_of(job), "rb") as ring:
        assert fcntl.fcntl(ring, fcntl.F_GET_SEALS) == fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


def test_what_an_older_daemon_left(service):
    """It gave each user a directory below rings/: the ring in one is drained, and what else is there goes."""
    service.serve(PROTOND_AUTO_SESSION="off")
    as_user(service, NEIGHBOUR, "start", "s", "--all")
    job = service.job(**of(NEIGHBOUR))
    assert job.say("start own") == "0", "it records"
    job.say("repeat 100 x")
    until("the daemon has it", lambda: service.ctl_json("jobs")["jobs"][0]["events"] >= 100)
    service.stop(signal.SIGKILL)
    job.say("repeat 10 y")
    ring, dirs = ring_of(job).read_bytes(), [service.dir / f"rings/u{uid}" for uid in (NEIGHBOUR, ATTACKER)]
    for path, uid in zip(dirs, (NEIGHBOUR, ATTACKER)):
        path.mkdir(0o700)
        (path / "junk").write_bytes(b"junk")
        (path / f"{5:032x}.ring").write_bytes(b"no ring")
        (path / "empty").mkdir()
        os.chown(path, uid, uid)
    left = dirs[0] / (ring[16:32].hex() + ".ring")
    left.write_bytes(ring)
    left.chmod(0o600)
    os.chown(left, NEIGHBOUR, NEIGHBOUR)
    (dirs[1] / "deep/deeper").mkdir(parents=True)
    job.kill()
    service.serve(PROTOND_AUTO_SESSION="off")
    assert not dirs[0].exists() and [f.name for f in dirs[1].iterdir()] == ["deep"]
    assert f"level=warn event=directory_left dir={dirs[1]}" in service.log()
    as_user(service, NEIGHBOUR, "finalize", "s")
    assert {k: v[0] for k, v in service.cells("s").items()} == {"/x": 100, "/y": 10}
    until("it is gone", lambda: not list((service.dir / "rings").glob("*.*")))


def favoured(*pids):
    """They have a core whenever they want one: what is measured is what the daemon does, not how many others run here.
    False: that is not ours to say."""
    try:
        for pid in pids:
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(thread), -10)
            group = pathlib.Path(f"/proc/{pid}/autogroup")  # of its session, whose nice value counts before the thread's
            if group.exists():
                group.write_text("-10")
    except PermissionError:
        return False
    return True


class Asker(threading.Thread):
    """Asks one question after the other, as another user, and keeps how long each answer took: all of it; net of the time
    that the daemon's loop and reader, and the asker, waited for a core; and how long the loop ran meanwhile."""

    ASK = f"""
import os, sys
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
sys.path.insert(0, sys.argv[3])
os.environ["PROTOND_RUNTIME_DIR"] = sys.argv[1]
os.environ.setdefault("ATTACK_BUILD", "")
import time
from attacker import Control
c = Control()
task = f"/proc/{{sys.argv[4]}}/task"
readers = [t for t in os.listdir(task) if open(f"{{task}}/{{t}}/comm").read() == "protond-reader\\n"]
def sched():
    of = [open(f).read().split() for f in (f"{{task}}/{{sys.argv[4]}}/schedstat", "/proc/self/schedstat", *(f"{{task}}/{{t}}/schedstat" for t in readers))]
    return int(of[0][0]) / 1e9, sum(int(s[1]) for s in of) / 1e9
while True:
    for verb in ("status", "sessions", "jobs", "where", "top"):
        (ran, waited), begin = sched(), time.monotonic()
        words, _ = c.ask(verb)
        took = time.monotonic() - begin
        now = sched()
        print(verb, took, max(took - now[1] + waited, now[0] - ran), now[0] - ran, words, flush=True)
"""

    def __init__(self, world, uid):
        super().__init__(daemon=True)
        self.took, self.words = {}, set()
        self.process = subprocess.Popen(["/usr/bin/python3", "-c", self.ASK, str(world.dir), str(uid), str(pathlib.Path(__file__).parent),
                                         str(world.daemon.pid)], stdout=subprocess.PIPE, text=True, env=world.env, start_new_session=True)
        world.jobs.append(self)
        self.favoured = favoured(world.daemon.pid, self.process.pid)

    def run(self):
        for line in self.process.stdout:
            if not line.endswith("\n") or line.count(" ") < 4:
                return  # killed in the midst of it
            verb, took, net, ran, *words = line.split(maxsplit=4)
            self.took.setdefault(verb, []).append((float(net), float(took), float(ran)))
            if words:
                self.words.add(words[0].strip())

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT)

    def stop(self):
        assert self.process.poll() is None, "no question was left without an answer"
        self.kill()
        self.join(WAIT)

    def longest(self):
        """Of a thousand; the one beyond may have met with what else goes on here."""
        every = sorted(net for v in self.took.values() for net, _, _ in v)
        return every[-1 - len(every) // 1000]

    def __str__(self):
        def line(v):
            return f"{len(v)} asked; " + "; ".join(f"{what} p50 {w[len(w) // 2] * 1e3:.1f}, p99 {w[len(w) * 99 // 100] * 1e3:.1f}, longest "
                f"{w[-1] * 1e3:.0f} ms" for what, w in zip(("net", "all", "ran"), map(sorted, zip(*v))))
        return "\n".join(f"  {verb}: {line(v)}" for verb, v in self.took.items())


class Attacker:
    def __init__(self, world, kind):
        self.kind = kind
        self.process = subprocess.Popen(
            ["/usr/bin/python3", str(pathlib.Path(__file__).parent / "attacker.py"), kind], stdout=subprocess.PIPE, text=True, **of(ATTACKER),
            env={**world.env, "ATTACK_BUILD": str(BUILD), "HOME": str(world.homes / str(ATTACKER))})
        world.jobs.append(self)
        assert self.process.stdout.readline() == "there\n"

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT)


def counts(world, name, pid):
    """Scopes of that job that are stored in that session, and what it lost."""
    stored = world.sql("SELECT coalesce(sum(c.count), 0) FROM cell c JOIN process p ON p.id = c.process JOIN session s ON s.id = c.session"
                       " JOIN node n ON n.id = c.node WHERE s.name = ? AND s.uid = p.uid AND p.pid = ? AND n.name = 'unit'", name, pid)
    lost = world.sql("SELECT coalesce(sum(l.count), 0) FROM loss l JOIN process p ON p.id = l.process WHERE p.pid = ?", pid)
    return stored[0][0], lost[0][0]


def test_a_ring_that_ended_is_nobody_elses(service):
    """Its uuid, which another user offers again, after a restart: what it recorded stays as it is."""
    service.serve(PROTOND_AUTO_SESSION="off")
    as_user(service, OWNER, "start", "s", "--all")
    job = service.job(**of(OWNER))
    assert job.say("start own") == "0", "it records"
    job.say("repeat 100 x")
    job.quit()
    as_user(service, OWNER, "finalize", "s")
    until("its end is stored", lambda: service.sql("SELECT 1 FROM process WHERE ended_ns IS NOT NULL"))
    before = service.sql("SELECT * FROM process"), service.cells("s")
    ((uuid,),) = service.sql("SELECT hex(ring) FROM process")
    service.stop()
    service.serve(PROTOND_AUTO_SESSION="scopes")
    code = PEER.replace("uuid, lane_bytes, paths = os.urandom(16)", "uuid, lane_bytes, paths = bytes.fromhex(sys.argv[2])") + """
s = offer(sys.argv[1], 1, os.getpid(), start_of(os.getpid()))[0]
print("there", flush=True)
m = s.recv(8192)
while m and m[4:6] != b"\\3\\0":
    m = s.recv(8192)
print(m[16:].rstrip(b"\\0").decode(), flush=True)
"""
    p = subprocess.Popen(["/usr/bin/python3", "-c", code, str(service.dir / "agent.sock"), uuid], stdout=subprocess.PIPE, text=True, **of(ATTACKER))
    out, _ = p.communicate(timeout=WAIT)
    assert out == "there\nthis ring was closed; make a new one\n"
    until("it is gone", lambda: not service.ctl_json("jobs")["jobs"])
    service.stop()
    assert (service.sql("SELECT * FROM process WHERE uid = ?", OWNER), service.cells("s")) == before


@pytest.mark.long
@pytest.mark.slow
def test_who_fills_the_journal_waits_and_nobody_else(service):
    """A journal of 8 MiB whose transactions come seldom: 2 of them are one user's."""
    service.serve(PROTOND_AUTO_SESSION="scopes", PROTOND_JOURNAL_MB=4, PROTOND_COMMIT_MS=50)
    load = Load(service, threads=1, pause_ns=20_000_000, tag=service.homes / f"{NEIGHBOUR}/truth", **of(NEIGHBOUR))
    as_user(service, NEIGHBOUR, "start", "mine", "--all", "-d", "both")
    began = load.truth()
    as_user(service, ATTACKER, "start", "much", "--all", "-d", "both")
    # As fast as lanes can take it: at full speed most would be sums, of which a journal has little. And nothing is stored.
    flood = [Load(service, threads=4, pause_ns=1_000_000, batch=100, tag=service.homes / f"{ATTACKER}/truth{i}", **of(ATTACKER))
             for i in range(2)]
    writer = sqlite3.connect(service.db, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    held = "jobs of user %d wrote faster than the database takes it"
    until("it is held back", lambda: held % ATTACKER in as_user(service, ATTACKER, "status").stdout)
    assert held % ATTACKER not in as_user(service, NEIGHBOUR, "status").stdout
    writer.close()
    for job in (*flood, load):
        job.kill()
        ended(service, job.pid)
    as_user(service, NEIGHBOUR, "finalize", "mine")
    stored, lost = counts(service, "mine", load.pid)
    assert lost == 0 and load.truth() - began - 1024 <= stored <= load.begun(), (stored, lost, load.each())


@pytest.mark.long
@pytest.mark.slow
def test_who_leaves_much_memory_behind_loses_it(service):
    """Five rings of 64 MiB, whose processes are killed while the daemon looks away: that is too much."""
    service.serve(PROTOND_AUTO_SESSION="scopes", PROTOND_JOURNAL_MB=1, PROTOND_LANE_KB=16384, PROTOND_LANES=4)
    load = Load(service, threads=1, pause_ns=20_000_000, tag=service.homes / f"{NEIGHBOUR}/truth", **of(NEIGHBOUR))
    as_user(service, NEIGHBOUR, "start", "mine", "--all")
    began = load.truth()
    jobs = []
    for i in range(5):  # one at a time runs: all together they leave no processor to whoever asks
        jobs.append(Load(service, threads=4, pause_ns=0, tag=service.homes / f"{ATTACKER}/truth{i}", **of(ATTACKER)))
        until("it has a ring", lambda: [j for j in service.ctl_json("jobs")["jobs"] if j["pid"] == jobs[-1].pid and "ring" in j])
        os.kill(jobs[-1].pid, signal.SIGSTOP)
    service.daemon.send_signal(signal.SIGSTOP)
    for job in jobs:
        os.kill(job.pid, signal.SIGCONT)
    for job, done in [(job, job.truth()) for job in jobs]:
        until("it has recorded much", lambda: job.truth() > done + 1_500_000)
        job.kill()
    service.daemon.send_signal(signal.SIGCONT)
    def given_up():
        return "of ended jobs given up" in as_user(service, ATTACKER, "status").stdout

    def all_ended():
        return len(service.sql("SELECT 1 FROM process WHERE uid = ? AND ended_ns IS NOT NULL", ATTACKER)) == 5
    until("one is given up, or all are read", lambda: given_up() or all_ended())
    if not given_up():
        pytest.skip("the daemon read them all within a second")
    assert "of ended jobs given up" not in as_user(service, NEIGHBOUR, "status").stdout
    load.kill()
    ended(service, load.pid)
    as_user(service, NEIGHBOUR, "finalize", "mine")
    stored, lost = counts(service, "mine", load.pid)
    assert lost == 0 and load.truth() - began - 1024 <= stored <= load.begun(), (stored, lost, load.each())
    until("all have ended", lambda: len(service.sql("SELECT 1 FROM process WHERE uid = ? AND ended_ns IS NOT NULL", ATTACKER)) == 5)
    given_up = service.sql("SELECT count(DISTINCT p.id) FROM loss l JOIN process p ON p.id = l.process WHERE p.uid = ? AND l.cause = 15", ATTACKER)
    assert given_up in ([(1,)], [(2,)]), "the oldest, and no more of them"


@pytest.mark.long
@pytest.mark.slow
def test_an_attacker_hurts_nobody(service):
    """Every ceiling at once: what the neighbour records is whole, and each question has an answer."""
    service.serve(PROTOND_AUTO_SESSION="scopes")
    first = Load(service, threads=1, pause_ns=1_000_000, tag=service.homes / f"{OWNER}/truth", **of(OWNER))
    as_user(service, OWNER, "start", "stored", "--all")
    until("the owner records", lambda: first.truth() > 1000)
    first.kill()
    ended(service, first.pid)
    as_user(service, OWNER, "finalize", "stored")
    before = counts(service, "stored", first.pid)
    load = Load(service, threads=2, pause_ns=20_000_000, tag=service.homes / f"{NEIGHBOUR}/truth", **of(NEIGHBOUR))
    as_user(service, NEIGHBOUR, "start", "mine", "--all")
    began = load.truth()
    files, pid = descriptors(service), service.daemon.pid
    calm = Asker(service, NEIGHBOUR)
    calm.start()
    until("it was asked", lambda: len(calm.took.get("top", [])) > 50)
    calm.stop()
    asker, attackers = Asker(service, NEIGHBOUR), []
    asker.start()
    attackers = [Attacker(service, kind) for kind in ATTACKS]
    end = time.monotonic() + SECONDS
    until("the time is over", lambda: time.monotonic() > end, timeout=SECONDS + WAIT)
    alive = [a.kind for a in attackers if a.process.poll() is None]
    for a in attackers:
        a.process.kill()  # all, before one is waited for
    for a in attackers:
        a.kill()
    asker.stop()
    print(f"alone:\n{calm}\nattacked:\n{asker}\nattackers alive to the end: {alive}")
    print(as_user(service, ATTACKER, "status").stdout, service.ctl("status").stdout)
    assert service.daemon.poll() is None and service.daemon.pid == pid
    assert asker.words <= {""} and set(asker.took) == {"status", "sessions", "jobs", "where", "top"}, asker.words
    assert not asker.favoured or asker.longest() < LONGEST_S, asker.longest()
    load.kill()
    ended(service, load.pid)
    as_user(service, NEIGHBOUR, "finalize", "mine")
    stored, lost = counts(service, "mine", load.pid)
    print(f"the neighbour did {load.truth()}, stored {stored} from {began} on, lost {lost}")
    assert lost == 0 and load.truth() - load.begun() <= 0 and stored <= load.begun() and stored >= load.truth() - began - 1024
    assert counts(service, "stored", first.pid) == before, "what the owner has is as it was"
    until("its rings are gone", lambda: not [j for j in service.ctl_json("jobs")["jobs"] if j["uid"] == ATTACKER], timeout=WAIT * 4)
    until("its descriptors are closed", lambda: descriptors(service) <= files, timeout=WAIT * 4)
    left = json.loads(as_user(service, ATTACKER, "sessions", "--json").stdout)["data"]["sessions"]
    for session in left:
        if session["state"] != "finalized":
            as_user(service, ATTACKER, "finalize", session["id"])
    fresh = service.job(**of(ATTACKER))
    assert fresh.say("start later").isdigit() and fresh.say("repeat 5 x") is not None and fresh.quit() == 0
    until("it may record again", lambda: service.state("later") == "finalized")
    assert service.cells("later")["/x"][0] == 5


@pytest.fixture
def taken(world):
    """Another user made /dev/shm/protond.UID of a user first, who has no other place."""
    uid = 100_000 + os.getpid() % 100_000
    place = pathlib.Path(f"/dev/shm/protond.{uid}")
    place.mkdir(mode=0o755)
    os.chown(place, ATTACKER, ATTACKER)
    world.homes = pathlib.Path(tempfile.mkdtemp(prefix="pt.", dir="/dev/shm"))
    os.chown(world.homes, uid, uid)
    for name in ("PROTOND_RUNTIME_DIR", "PROTOND_DB"):
        del world.env[name]
    world.env["HOME"] = str(world.homes)
    world.user, world.place = uid, place
    yield world
    world.tool("protonctl", "shutdown", check=False, **of(uid))
    until("it has ended", lambda: not list(place.parent.glob(f"{place.name}.*/agent.sock")))
    for path in (world.homes, place, *place.parent.glob(f"{place.name}.*")):
        shutil.rmtree(path)
    world.env.update(PROTOND_RUNTIME_DIR=str(world.dir))


@pytest.mark.skipif(os.path.exists("/run/protond/agent.sock"), reason="a protond runs for all here")
def test_a_place_that_was_taken(taken):
    """Its owner has another one, on which the job, the daemon and the tools agree; doctor says so."""
    job = taken.job(**of(taken.user))  # waits, and sees the place when it is made
    own = lambda *args, **kwargs: taken.tool("protonctl", *args, **of(taken.user), **kwargs)  # noqa: E731
    starts = [subprocess.Popen([str(BUILD / "bin/protonctl"), "run", "-n", f"r{i}", "--", str(BUILD / "tests/job")], env=taken.env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **of(taken.user))
              for i in range(4)]
    for p in starts:
        _, said = p.communicate(timeout=WAIT * 2)
        assert p.returncode == 0, said
    (place,) = taken.place.parent.glob(f"{taken.place.name}.*")
    assert place.stat().st_uid == taken.user and stat.S_IMODE(place.stat().st_mode) == 0o700
    until("the job records", lambda: job.say("start s").isdigit())
    listed = json.loads(own("sessions", "--json").stdout)["data"]["sessions"]
    assert {"r0", "r1", "r2", "r3", "s"} <= {s["name"] for s in listed}
    said = own("doctor", check=False).stdout
    assert f"{taken.place} belongs to uid {ATTACKER}, and must be yours" in said and f"runtime directory      {place}" in said, said
    assert job.quit() == 0
