# SPDX-License-Identifier: MIT. Faults of the daemon's surroundings: the power, its disk, its database, other daemons, the
# clock, its limits, its directory. What a job did is in the tree or counted as lost.
#
# PD_CUT_ALL=1: power cuts after every write there is; else after some, spread over all, others each day.
import datetime
import json
import mmap
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import sqlite3
import stat
import struct
import subprocess
import tempfile

import pytest

from conftest import BUILD, WAIT, World, needs_another_user, needs_mounts, needs_root, open_files, until
from test_fault import FAULT, Page
from test_kill import Load, check, ended
from test_trouble import said

CUT = BUILD / "tests/cut.so"
EACH = 50
DAY = 86400 * 10**9
FOREVER = 2**63
HEALED, OFF_BY, AILS, TYPE, UNMAPPED, WAITING = range(3, 9)  # of fault.c
READ_ONLY, NFS = 1, 0x6969
TOKEN = "00112233445566778899aabbccddeeff"
STRANGER = 51234  # a user that has nothing here


@pytest.fixture
def home():
    """A folder in memory: what is measured here is not how long this machine's disk takes."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="pt.", dir="/dev/shm"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def world(home):
    w = World(home / "home")
    yield w
    w.close()


def preloads(test):
    test = pytest.mark.skipif(not CUT.exists(), reason="sanitizers bring their own malloc")(test)
    return pytest.mark.preload(test)


def start_with(world, before=(), **env):
    """A daemon under other circumstances, which the tools that ask whether it answers are not in."""
    full = {**world.env, "PROTOND_AUTO_SESSION": "off", **{k: str(v) for k, v in env.items()}}
    with open(world.home / "protond.log", "ab") as log:
        world.daemon = subprocess.Popen([*before, str(BUILD / "bin/protond"), "--private", "--foreground"], env=full,
                                        stdout=log, stderr=log)
    until("control.sock answers", world.answers)


class Faults(Page):
    def __init__(self, world):
        super().__init__(world.home / "page")
        self.on = world.db

    def env(self, **more):
        return {"LD_PRELOAD": str(FAULT), "PD_FAULT": "none:0", "PD_FAULT_PAGE": str(self.path),
                "PD_FAULT_ON": str(self.on), **more}


def recorder(world, session):
    """A job that records, in a session of all jobs."""
    world.ctl("start", session, "--all", "-d", "both")
    job = world.job()
    job.say("start own")  # it records from here on, until it ends
    return job


def starts(job, session):
    """A session of a job's that was refused before."""
    def started():
        said.append(job.say(f"start {session}"))
        return said[-1].split()[0].isdigit()
    said = []
    try:
        until("it records", started)
    except AssertionError as e:
        raise AssertionError(f"{e}: {said[-1]}") from e
    return said


def counts(world, session):
    return {path[1:]: row[0] for path, row in world.cells(session).items()}


def truth_holds(world, session, did):
    """Stored and lost make up what the job did, to the last one."""
    lost = world.losses(session)
    stored = sum(counts(world, session).values())
    assert stored + lost.get(1, 0) + lost.get(3, 0) == did, (stored, lost, did)


# --- power cuts

WRITE, TRUNCATE, SYNC, UNLINK = 1, 2, 3, 4
NAMES = ("", "-wal", "-journal")  # behind the database's; file 3 is the directory
MODELS = ("all", "begun", "ended", "some")


def recorded(path):
    """[(op, file, at, bytes, end in the log)]"""
    log, at, steps = path.read_bytes(), 0, []
    while at < len(log):
        op, file, where, n = struct.unpack_from("<IIQQ", log, at)
        at += 24
        data = log[at:at + n] if op == WRITE else b""
        at += len(data)
        steps.append((op, file, where, data, at))
    return steps


def apply(content, op, at, data):
    content = bytearray(content or b"")
    if op == TRUNCATE:
        return bytes(content[:at].ljust(at, b"\0"))
    content[len(content):] = bytes(max(at - len(content), 0))
    content[at:at + len(data)] = data
    return bytes(content)


def after_cut(steps, model, seed):
    """{file: bytes} as they are found when the power goes after these steps.

    all: as if the disk wrote at once. begun, ended: what was synced, and the first or second half of the last write.
    some: what was synced, and any part of the rest, in any order."""
    now, disk, open_ = {}, {}, {}
    for op, file, at, data, _ in steps:
        if op in (WRITE, TRUNCATE):
            now[file] = apply(now.get(file), op, at, data)
            open_.setdefault(file, []).append((op, at, data))
        elif op == SYNC and file < 3:
            if file in now:
                disk[file] = now[file]
            open_.pop(file, None)
        elif op == SYNC:  # of the directory: names that went are gone
            for gone in set(disk) - set(now):
                del disk[gone]
        else:
            now.pop(file, None)
            open_.pop(file, None)
    if model == "all":
        return now
    rng = random.Random(seed)
    if model in ("begun", "ended") and steps and steps[-1][0] == WRITE:
        _, file, at, data, _ = steps[-1]
        half = len(data) // 2
        if model == "begun":
            disk[file] = apply(disk.get(file), WRITE, at, data[:half])
        else:
            disk[file] = apply(disk.get(file), WRITE, at + half, data[half:])
    if model == "some":
        for file, left in open_.items():
            for op, at, data in left:
                if rng.random() < 0.5:
                    disk[file] = apply(disk.get(file), op, at, data)
    return disk


def sessions_in(db):
    """{name: (state, {path: count})}, by SQLite alone."""
    c = sqlite3.connect(db)
    try:
        assert c.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if not c.execute("SELECT 1 FROM sqlite_schema WHERE name = 'session'").fetchall():
            return {}
        rows = c.execute("SELECT s.name, s.state, n.name, c.count FROM session s LEFT JOIN cell c ON c.session = s.id"
                         " AND c.class = 0 LEFT JOIN node n ON n.id = c.node").fetchall()
    finally:
        c.close()
    found = {}
    for name, state, node, count in rows:
        cells = found.setdefault(name, (state, {}))[1]
        if node is not None:
            assert node not in cells, "twice in one session"
            cells[node] = count
    return found


def record(world, log):
    """What a daemon does to its database, and {session: where in the log its answer was that it is stored}."""
    said, env = {}, {"LD_PRELOAD": CUT, "PD_CUT": log, "PD_CUT_DB": world.db}
    start_with(world, **env)
    job = recorder(world, "first")
    for name in "pqabc":
        if name == "a":
            world.ctl("prune", "--max-size", "1K")
            said.clear()
        world.ctl("start", name, "--all", "-d", "both")
        for scope in (f"{name}0", f"{name}1"):
            job.say(f"repeat {EACH} {scope}")
        until("it is stored", lambda: counts(world, name).get(f"{name}1") == EACH)
        world.ctl("finalize", name)
        said[name] = log.stat().st_size
        if name == "b":
            world.stop()
            start_with(world, **env)
    world.daemon.kill()
    world.daemon.wait(WAIT)
    world.daemon = None
    job.quit()
    return recorded(log), said


def some(n, of):
    """`of` of the numbers up to n, others each day; or all."""
    if os.environ.get("PD_CUT_ALL"):
        return set(range(n + 1))
    apart = max(n // of, 1)
    return set(range(datetime.date.today().toordinal() * 7 % apart, n + 1, apart))


def whole(found, due):
    for name, (state, cells) in found.items():
        assert all(count == EACH for count in cells.values()), f"{name}: {cells}"
    for name in due:
        assert name in found, f"{name} was said to be stored"
        assert found[name] == ("finalized", {f"{name}0": EACH, f"{name}1": EACH}), name


def look_at(world, files, due):
    """SQLite finds the files whole, a daemon takes them, and so do the tools."""
    for suffix, file in zip(NAMES, range(3)):
        if file in files:
            (world.home / f"store.db{suffix}").write_bytes(files[file])
            (world.home / f"copy.db{suffix}").write_bytes(files[file])
    (world.home / "store.db-shm").write_bytes(b"\xa5" * 32768)
    before = sessions_in(world.home / "copy.db")
    whole(before, due)
    world.start(PROTOND_AUTO_SESSION="off")
    listed = {s["name"] for s in world.ctl_json("sessions")["sessions"]}
    assert listed == set(before)
    for name in listed:
        world.view("tree", name, "--json")
    world.stop()
    after = sessions_in(world.db)
    assert {k: v[1] for k, v in after.items()} == {k: v[1] for k, v in before.items()}
    whole(after, due)


@preloads
def test_power_cut_at_any_write(home):
    world = World(home / "recorded")
    try:
        steps, said = record(world, world.home / "cut")
    finally:
        world.close()
    assert len(steps) > 200 and list(said) == list("abc")
    first = next(i for i, s in enumerate(steps) if s[0] == WRITE and s[1] == 0)  # the database's own
    for k in sorted(some(len(steps), 9) | {first + 1}):
        past = steps[k - 1][4] if k else 0
        due = [name for name, at in said.items() if at <= past]
        for model in MODELS:
            world = World(home / f"{k}.{model}")
            try:
                look_at(world, after_cut(steps[:k], model, k), due)
            except AssertionError as e:
                raise AssertionError(f"{model} of the first {k} of {len(steps)} steps: {e}") from e
            finally:
                world.close()
                shutil.rmtree(world.home)


# --- the disk


@preloads
@pytest.mark.parametrize("ns", [200_000_000, FOREVER])
def test_a_slow_disk_holds_nobody_up(world, ns):
    faults = Faults(world)
    start_with(world, **faults.env(PROTOND_LANE_KB=8192))
    world.env["PROTOND_TOKEN"] = TOKEN
    world.ctl("start", "s", "--all")
    load = Load(world, pause_ns=2000000)
    until("it is stored", lambda: sum(counts(world, "s").values()) > 1000)
    faults.put(AILS, ns)
    until("a write takes its time", lambda: faults.get(WAITING))
    before = world.ctl_json("status")["events"]
    until("what is recorded is taken", lambda: world.ctl_json("status")["events"] > before + 50000)
    assert faults.get(WAITING) or ns != FOREVER
    faults.put(AILS, 0)
    load.kill()
    ended(world, load.pid)
    world.ctl("finalize", "s")
    check(world, load)
    assert world.losses("s") == {}


@preloads
def test_a_disk_that_becomes_read_only(world):
    faults = Faults(world)
    start_with(world, **faults.env())
    job = recorder(world, "s")
    job.say("repeat 100 before")
    until("it is stored", lambda: counts(world, "s").get("before") == 100)
    faults.put(AILS, READ_ONLY)
    job.say("repeat 100 meanwhile")
    r = world.ctl("finalize", "s", check=False)
    assert r.returncode == 1 and "is read-only" in r.stderr and "is in the journal" in r.stderr, r
    assert any("is read-only" in w for w in world.ctl_json("status")["warnings"])
    job.say("repeat 100 unstored")
    assert "unstored" not in counts(world, "own")
    faults.put(AILS, 0)
    until("what was kept is stored", lambda: world.state("s") == "finalized")
    until("and what came later", lambda: counts(world, "own").get("unstored") == 100)
    until("it is well again", lambda: not any("read-only" in w for w in world.ctl_json("status")["warnings"]))
    assert counts(world, "s") == {"before": 100, "meanwhile": 100}
    assert world.losses("s") == world.losses("own") == {}


def refused(world, db, *before, private="--private", **env):
    """The words and the status of a daemon that does not start."""
    r = subprocess.run([*before, str(BUILD / "bin/protond"), *filter(None, [private]), "--foreground"],
                       env={**world.env, "PROTOND_DB": str(db), **env}, capture_output=True, text=True, timeout=WAIT)
    return r.returncode, r.stdout + r.stderr


def made(world):
    """A database with a session in it."""
    world.start(PROTOND_AUTO_SESSION="off")
    job = recorder(world, "s")
    job.say("repeat 100 kept")
    world.ctl("finalize", "s")
    job.quit()
    until("its own session is stored", lambda: world.state("own") == "finalized")
    world.stop()


def in_mounts(script):
    """Before a command: it runs where these mounts are, and nobody else."""
    return ["unshare", "-m", "--propagation", "private", "sh", "-ec", f'{script}; exec "$@"', "sh"]


@needs_root
@needs_mounts
def test_a_disk_that_is_read_only(world):
    made(world)
    folder = world.home / "read-only"
    folder.mkdir()
    shutil.copy(world.db, folder / "store.db")
    before = in_mounts(f"mount --bind {folder} {folder}; mount -o remount,bind,ro {folder}")
    for name in ("store.db", "new.db"):
        status, words = refused(world, folder / name, *before)
        assert status == 1 and "Read-only file system" in words and "PROTOND_DB" in words, words
    status, words = refused(world, "", *before, HOME=str(folder))
    assert status == 1 and "cannot be made: Read-only file system; set PROTOND_DB" in words, words
    assert [f.name for f in folder.iterdir()] == ["store.db"]
    assert (folder / "store.db").read_bytes() == world.db.read_bytes()


@needs_root
@needs_mounts
@preloads
@pytest.mark.parametrize("slot, value", [(TYPE, NFS), (UNMAPPED, 1)], ids=["network", "unmapped"])
@pytest.mark.parametrize("there", [False, True], ids=["new", "there"])
def test_a_file_system_without_wal(world, slot, value, there):
    """WAL needs memory that processes share: the database goes to the local disk, and a word about it to the log."""
    if there:
        made(world)
    was = world.db.read_bytes() if there else None
    faults = Faults(world)
    faults.put(slot, value)
    start_with(world, in_mounts("mount -t tmpfs none /var/tmp"), **faults.env())
    at = world.ctl_json("status")["db"]
    assert at == f"/var/tmp/protond.{os.geteuid()}/protond.db"
    assert f'event=db_moved reason=network_file_system db="{at}"' in world.log()
    job = recorder(world, "t")
    job.say("repeat 100 moved")
    world.ctl("finalize", "t")
    for suffix in ("", "-wal"):
        shutil.copy(f"/proc/{world.daemon.pid}/root{at}{suffix}", world.home / f"moved.db{suffix}")
    assert sessions_in(world.home / "moved.db")["t"] == ("finalized", {"moved": 100})
    job.quit()
    assert world.stop() == 0
    assert not there or world.db.read_bytes() == was


@preloads
def test_doctor_knows_these_file_systems(world):
    """All that the daemon leaves, as OCFS2."""
    faults = Faults(world)
    faults.put(TYPE, 0x7461636f)
    world.db.touch(0o600)
    world.env.update(faults.env())
    assert "is on a network file system" in world.ctl("doctor", check=False).stdout


# --- the database


def sqlite(path, *statements):
    c = sqlite3.connect(path, isolation_level=None)
    for s in statements:
        c.execute(s)
    c.close()


def foreign_files(world):
    """(what, file, words): files that are not this daemon's to change."""
    at = world.home / "foreign"
    at.mkdir()
    for name in ("newer", "garbage", "half"):
        shutil.copy(world.db, at / name)
    sqlite(at / "newer", "PRAGMA user_version=3")
    with open(at / "garbage", "r+b") as f:
        f.write(b"garbage")
    (at / "half").write_bytes(world.db.read_bytes()[:60])
    (at / "text").write_text("to do: buy milk\n" * 20)
    (at / "zeroes").write_bytes(bytes(8192))
    (at / "directory").mkdir()
    os.mkfifo(at / "fifo")
    (at / "device").symlink_to("/dev/null")
    (at / "loop").symlink_to(at / "loop")
    sqlite(at / "other", "CREATE TABLE theirs(x)", "INSERT INTO theirs VALUES(1)")
    # Whoever had these open was killed: what is new is in the WAL.
    for name, *change in (("other-wal", "CREATE TABLE theirs(x)"), ("newer-wal", "PRAGMA user_version=3")):
        if name == "newer-wal":
            shutil.copy(world.db, at / "open")
        c = sqlite3.connect(at / "open", isolation_level=None)
        for s in ("PRAGMA journal_mode=WAL", *change):
            c.execute(s)
        for suffix in ("", "-wal"):
            shutil.copy(at / f"open{suffix}", at / f"{name}{suffix}")
        c.close()
        (at / "open").unlink()
    return at, {"newer": "run the newer protond, or move the file away with `mv",
                "newer-wal": "run the newer protond, or move the file away with `mv",
                "garbage": "is damaged", "zeroes": "is damaged", "half": "is not a database of protond, and was left alone",
                "text": "is not a database of protond, and was left alone", "directory": "Is a directory",
                "fifo": "is not a file", "device": "is not a file", "loop": "Too many levels of symbolic links",
                "other": "of another program, and was left alone", "other-wal": "of another program, and was left alone"}


def content(folder):
    return {f.name: f.read_bytes() for f in folder.iterdir() if f.is_file() and not f.is_symlink() and "-shm" not in f.name}


def test_what_is_not_ours_is_left_alone(world):
    made(world)
    folder, cases = foreign_files(world)
    before = content(folder)
    for name, words in cases.items():
        status, said = refused(world, folder / name)
        assert status == 1 and words in said, f"{name}: {status} {said}"
        assert "PROTOND_DB" in said or "`mv " in said, f"{name}: what is to be done? {said}"
        assert content(folder) == before, name


def test_older_empty_and_linked_files_are_taken(world):
    made(world)
    sqlite(world.db, "DROP TABLE trace", "PRAGMA user_version=1")
    elsewhere = world.home / "elsewhere"
    elsewhere.mkdir()
    world.db.rename(elsewhere / "target.db")
    world.db.symlink_to(elsewhere / "target.db")
    for _ in range(2):
        world.start(PROTOND_AUTO_SESSION="off")
        assert counts(world, "s") == {"kept": 100} and "kept" in world.view("tree", "s").stdout
        world.stop()
    assert world.db.is_symlink() and [f.name for f in elsewhere.iterdir() if "-" not in f.name] == ["target.db"]
    assert world.sql("PRAGMA user_version") == [(2,)] and world.sql("SELECT count(*) FROM trace") == [(0,)]
    world.db = world.home / "empty.db"
    world.db.write_bytes(b"")
    world.env["PROTOND_DB"] = str(world.db)
    made(world)
    assert counts(world, "s") == {"kept": 100}


# --- two daemons


def test_a_database_that_is_moved_away(world):
    """What is recorded meanwhile waits in the journal, and is said to; nothing is written to a file that nobody finds."""
    world.start(PROTOND_AUTO_SESSION="off")
    away = world.db.with_suffix(".away")
    world.ctl("run", "-q", "-b", "none", "-n", "before", "--", BUILD / "bin/protond-demo")
    world.db.rename(away)
    words = world.ctl("run", "-b", "none", "--", BUILD / "bin/protond-demo").stderr
    assert "could not be finalized" in words and "was moved or removed" in words and "─" not in words, words
    said(world.ctl("status").stdout, "… was moved or removed while protond had it open")
    away.rename(world.db)
    until("it is stored", lambda: world.state("protond-demo") == "finalized")
    until("nothing is wrong any more", lambda: "moved or removed" not in world.ctl("status").stdout)


def test_an_idle_daemon_whose_database_went(world, home):
    """Where nothing of a session waits it ends, though it can store nothing more; else it stays until that is stored."""
    other = World(home / "other")
    try:
        for w in (world, other):
            w.start(PROTOND_AUTO_SESSION="off", PROTOND_IDLE_EXIT_S=1)
            job = w.job()
            w.ctl("run", "-q", "-b", "none", "-n", "before", "--", BUILD / "bin/protond-demo")
        world.db.rename(world.home / "away")
        assert world.jobs[0].quit() == 0
        world.ctl("run", "-q", "-b", "none", "--", BUILD / "bin/protond-demo")
        ends = [line for line in world.ctl("daemon", "status").stdout.splitlines() if "status" in line or "ends" in line]
        assert ends == ["  ends      not by itself: sessions wait for the database, which fails;",
                        "            `protonctl status` says why"]
        shutil.rmtree(other.dir)
        other.db.unlink()
        until("it stores that it has a new directory", lambda: "event=store_failed" in other.log())
        assert job.quit() == 0
        assert other.daemon.wait(WAIT) == 1 and "event=stop reason=idle" in other.log(), other.log()
        assert world.daemon.poll() is None
        (world.home / "away").rename(world.db)
        assert world.daemon.wait(WAIT) == 0
        assert world.sql("SELECT name, state FROM session ORDER BY id")[1:] == [("protond-demo", "finalized")]
    finally:
        other.close()


def test_two_daemons(world, home):
    world.start(PROTOND_AUTO_SESSION="off")
    job = recorder(world, "s")
    status, words = refused(world, world.db, private=None)
    assert status == 3 and "another protond runs in" in words and "stop it first" in words, words
    assert refused(world, world.db) == (0, ""), "the one that runs is as good"
    other = World(home / "other")
    try:
        link, hard = world.home / "link.db", world.home / "hard.db"
        link.symlink_to(world.db)
        hard.hardlink_to(world.db)
        for db in (world.db, link, hard):
            status, words = refused(other, db)
            assert status == 1 and "is in use by another protond: stop that one" in words, words
        job.say("repeat 100 both")
        until("it is stored", lambda: counts(world, "s") == {"both": 100})
        world.stop()
        # The database in the other directory: its jobs are not there, and lose nothing.
        other.db, other.env["PROTOND_DB"] = world.db, str(world.db)
        other.start(PROTOND_AUTO_SESSION="off")
        job.say("repeat 100 neither")
        assert {s["name"] for s in other.ctl_json("sessions")["sessions"]} == {"s", "own"}
        other.stop()
    finally:
        other.close()
    world.start(PROTOND_AUTO_SESSION="off")
    job.say("repeat 100 again")
    job.quit()
    world.ctl("finalize", "s")
    assert counts(world, "s") == {"both": 100, "neither": 100, "again": 100} and world.losses("s") == {}


# --- the clock


def timeline_ns(world, session):
    path = world.home / f"{session}.json"
    world.view("export", session, "-f", "chrome_trace", "-o", path)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    return len(events), sum(e["dur"] for e in events) * 1e3, max(e["ts"] + e["dur"] for e in events) * 1e3 - \
        min(e["ts"] for e in events) * 1e3


STEPS = {"hour-back": -3600 * 10**9, "after-back": -3600 * 10**9, "year-on": 365 * DAY, "in-future": 365 * DAY, "now": 0}


@preloads
def test_clock_steps(world):
    """CLOCK_REALTIME jumps while a job records, between a session's start and its end: nothing that is measured minds."""
    faults = Faults(world)
    start_with(world, **faults.env())
    job = world.job()
    job.say("start own")
    for name, off in STEPS.items():
        if name == "now":
            world.stop()
            start_with(world, **faults.env())
        world.ctl("start", name, "--all", "-d", "both")
        job.say("repeat 1000 one")
        faults.put(OFF_BY, off)
        job.say("repeat 1000 two")
        world.ctl("finalize", name)
        assert world.ctl_json("sessions")["sessions"][0]["name"] == name, "the newest comes first"
        assert world.view("tree", "@last").stdout.startswith(f"{name} ")
    for name in STEPS:
        begin, end, active = world.sql("SELECT created_ns, finalized_ns, active_ns FROM session WHERE name = ?", name)[0]
        assert begin + active <= end, name
        assert counts(world, name) == {"one": 1000, "two": 1000} and world.losses(name) == {}
        sums = sum(row[1] for row in world.cells(name).values())
        n, all_ns, span_ns = timeline_ns(world, name)
        assert n == 2000 and abs(all_ns - sums) < sums / 4 + n and span_ns < active * 1.25, (name, all_ns, sums, span_ns, active)
        assert sums < active
    notes = [text for text, in world.sql("SELECT text FROM note")]
    assert [t for t in notes if t.startswith("clock stepped by -36000")], notes


@preloads
def test_a_wrong_clock_prunes_nothing(world):
    """Sessions leave after 30 days by a clock that has gone on for a day; one that jumped must last a day first."""
    faults = Faults(world)

    def look(off):
        faults.put(OFF_BY, off)
        seen = ended_ns + off
        start_with(world, **faults.env())
        until("it looked", lambda: world.sql("SELECT 1 FROM meta WHERE key = 'clock_seen' AND value BETWEEN ? AND ?",
                                             seen, seen + DAY))
        world.ctl("sessions")  # runs behind the prune
        names = {s for s, in world.sql("SELECT name FROM session WHERE state = 'finalized'")}
        world.stop()
        return names
    made(world)
    ended_ns, = world.sql("SELECT min(finalized_ns) FROM session")[0]
    assert look(0) == {"s", "own"}
    assert look(365 * DAY) == {"s", "own"}, "a year ahead all of a sudden"
    assert look(365 * DAY + DAY // 2) == {"s", "own"}, "for half a day"
    assert look(-365 * DAY) == {"s", "own"}
    assert look(0) == {"s", "own"}, "and back"
    for day in range(5, 30, 5):
        assert look(day * DAY) == {"s", "own"}
    assert look(31 * DAY) == set()


# --- a full tmpfs


def free_kb(path):
    s = os.statvfs(path)
    return s.f_bavail * s.f_frsize // 1024


def fill(path):
    with open(path, "ab", buffering=0) as f:
        for n in (1 << 16, 1 << 12):
            try:
                while f.write(bytes(n)):
                    pass
            except OSError:
                pass


@pytest.fixture
def small(world):
    """The world's runtime directory is a tmpfs of 64 MiB."""
    r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=700", "none", str(world.dir)], capture_output=True, text=True)
    if r.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {r.stderr.strip()}")
    yield world
    world.close()
    world.daemon = None
    subprocess.run(["umount", "-l", str(world.dir)], check=True)


@preloads
def test_a_full_tmpfs(small):
    """The journal cannot grow and no ring can be made: nobody is ended by it, and every loss is counted."""
    world = small
    faults = Faults(world)
    start_with(world, **faults.env())
    world.env["PROTOND_TOKEN"] = TOKEN
    job = recorder(world, "s")
    loads = []
    for i in range(8):
        loads.append(Load(world, threads=3, pause_ns=1000000, tag=f"truth{i}"))
        until("it records", lambda: loads[-1].truth() > 5000)
    faults.put(AILS, FOREVER)  # what the store has not is kept in the journal
    until("it is full", lambda: "event=journal_full" in world.log())
    for _ in range(3):  # a flush that fails gives back what it took: not in a turn of the loop that answers
        fill(world.dir / "filler")
        world.ctl("status")
        until("it is full", lambda: free_kb(world.dir) == 0 or fill(world.dir / "filler"))
    job.say("repeat 100 a")
    job.say("distinct 20000")
    for thread in range(1, 4):
        job.say(f"@{thread} repeat 100 b")
    late = world.job()
    assert late.say("start late").startswith(("-28 no memory for the ring (is the tmpfs full, or ulimit -v low?)", "-28 no lane for this thread"))
    late.say("repeat 100 unseen")
    until("it says so", lambda: any("make room there" in w for w in world.ctl_json("status")["warnings"]))
    r = world.ctl("start", "t", "--all", check=False)
    assert r.returncode == 1 and "No space left on device" in r.stderr, r
    was = [load.truth() for load in loads]
    until("all go on", lambda: all(load.truth() > n + 5000 for load, n in zip(loads, was)))
    faults.put(AILS, 0)  # what is stored leaves the journal
    until("there is room", lambda: free_kb(world.dir) > 8192)
    (world.dir / "filler").unlink()
    said = starts(late, "late")
    late.say("repeat 100 seen")
    job.say("repeat 100 c")
    for load in loads:
        assert load.process.poll() is None
        load.kill()
        ended(world, load.pid)
    assert job.quit() == late.quit() == 0
    until("the rings of ended jobs are gone", lambda: not list((world.dir / "rings").iterdir()))
    truth_holds(world, "own", 100 + 20000 + 300 + 100)
    # A start that waits in a lane until the journal has room is one that began: it is not told that it did not.
    assert all(words.startswith("-28 ") for words in said[:-1]), said
    assert counts(world, "late")["seen"] == 100 and world.losses("late") == {}, said
    world.ctl("finalize", "s")
    lost, stored = world.losses("s"), counts(world, "s")
    units = sum(n for path, n in stored.items() if path.endswith("unit"))
    others = sum(n for path, n in stored.items() if not path.endswith("unit"))
    did = 100 + 20000 + 300 + 100 + 100
    least, most = (did + sum(n) for n in zip(*((load.truth(), load.begun()) for load in loads)))
    most += 101  # of `late`, where it got a ring and no lane: what it did unseen, and its start
    assert least <= units + others + lost.get(1, 0) + lost.get(3, 0) <= most, (units, others, lost, least, most)


def test_a_prune_on_a_full_disk(small):
    """It needs the room of one session's delete, and gives back what it freed."""
    world = small
    world.db = world.dir / "store.db"
    world.env["PROTOND_DB"] = str(world.db)
    made(world)
    same = "uid, source, backend, mode, hook, data, context, cpu, state, match, pid, command, gpu"
    sqlite(world.db, "PRAGMA journal_mode = WAL", "BEGIN",
           "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1299) INSERT INTO session "
           f"(id, uuid, name, {same}, created_ns, finalized_ns, active_ns, launches, matched, daemon_ns) SELECT i, randomblob(16), "
           f"'s' || i, {same}, created_ns, iif(i % 2, finalized_ns, 1), active_ns, 0, 0, 0 FROM n, session WHERE name = 's'",
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO cell "
           "(session, process, segment, node, device, class, count, sum_ns, min_ns, max_ns, bytes, untimed, open, hist) "
           "SELECT id, 1, 0, (SELECT min(id) FROM node), i, 1, 1, 1, 1, 1, 0, 0, 0, zeroblob(60) FROM n, session WHERE id >= 1000",
           "COMMIT")
    size = os.path.getsize(world.db)
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_RETENTION_DAYS="0")
    with open(world.dir / "filler", "wb") as f:
        os.posix_fallocate(f.fileno(), 0, (free_kb(world.dir) - 2048) << 10)
    assert "150 sessions are deleted" in world.ctl("prune", "--older-than", "1d").stdout
    until("the file is cut", lambda: os.path.getsize(world.db) < size * 0.6)
    until("there is room", lambda: free_kb(world.dir) > 4096)


def test_a_prune_that_fails_half_way(world):
    made(world)
    sqlite(world.db, "UPDATE session SET finalized_ns = 1",
           "CREATE TRIGGER t BEFORE DELETE ON session WHEN old.name = 'own' BEGIN SELECT RAISE(FAIL, 'not this one'); END")
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_RETENTION_DAYS="0")
    r = world.ctl("prune", "--older-than", "1d", check=False)
    assert r.returncode and "1 session deleted before this failed: " in r.stderr and "not this one" in r.stderr, r


@preloads
def test_a_ring_that_cannot_be_taken_now(world):
    """The journal cannot be written when the job offers its ring: it is told, and asked again when there is room."""
    faults = Faults(world)
    faults.heal()
    start_with(world, **faults.env(PD_FAULT="space:1"))
    job = recorder(world, "s")
    faults.put(HEALED, 0)
    job.say("repeat 100 a")
    until("it is full", lambda: "event=journal_full" in world.log())
    late, silent = world.job(), world.job()
    assert late.say("start late").startswith(("-28 the ring cannot be taken now", "-28 the control file cannot be made")), "in words"
    until("both were refused", lambda: all(f"event=ring_refused pid={j.pid}" in world.log() for j in (late, silent)))
    faults.heal()
    starts(late, "late")
    until("the other one is taken, too", lambda: (silent.say("repeat 1 tick"), [
        j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == silent.pid and j["events"]])[1])
    for j in (late, silent, job):
        j.say("repeat 100 b")
        j.quit()
    until("the rings of ended jobs are gone", lambda: not list((world.dir / "rings").iterdir()))
    world.ctl("finalize", "s")
    stored = counts(world, "s")
    assert stored.pop("tick") and stored == {"a": 100, "b": 300} and world.losses("s") == {}
    assert counts(world, "late") == {"b": 100}


# --- limits


def start_limited(world, *limits, uid=None):
    def limit():
        for which, n in limits:
            resource.setrlimit(which, n)
        if uid is not None:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
    with open(world.home / "protond.log", "ab") as log:
        world.daemon = subprocess.Popen([str(BUILD / "bin/protond"), "--private", "--foreground"], stdout=log, stderr=log,
                                        env={**world.env, "PROTOND_AUTO_SESSION": "off"}, preexec_fn=limit)


def flood(path, kind, n):
    sockets = []
    for _ in range(n):
        s = socket.socket(socket.AF_UNIX, kind)
        s.setblocking(False)
        try:
            s.connect(str(path))
        except OSError:
            pass
        sockets.append(s)
    return sockets


def test_no_descriptors(world):
    """34 are enough for one job: the others are told, and come when it has gone."""
    start_limited(world, (resource.RLIMIT_NOFILE, (34, 34)))
    until("control.sock answers", world.answers)
    (world.dir / "agent.sock").chmod(0o640)  # as a unit may have set it
    job = recorder(world, "s")
    others = [world.job() for _ in range(2)]
    for other in others:
        assert other.say("start own").startswith("-24 this protond has no descriptors for another job"), "in words"
    job.say("repeat 100 a")
    silent = flood(world.dir / "control.sock", socket.SOCK_STREAM, 40)
    r = world.ctl("status", check=False)
    assert r.returncode != 0 and "protond has too many clients" in r.stderr, r
    silent += flood(world.dir / "agent.sock", socket.SOCK_SEQPACKET, 40)
    job.say("repeat 100 b")
    for s in silent:
        s.close()
    until("it answers again", lambda: world.ctl("status", check=False).returncode == 0)
    job.say("repeat 100 c")
    job.quit()

    def attached():
        return [j["pid"] for j in world.ctl_json("jobs")["jobs"] if not j.get("ended")]
    for _ in others:
        pid = until("one that was refused comes by itself", lambda: set(attached()) & {o.pid for o in others}).pop()
        came = next(o for o in others if o.pid == pid)
        others = [o for o in others if o is not came]
        name = f"later{len(others)}"
        starts(came, name)
        came.say("repeat 100 d")
        came.quit()
        until("it is stored", lambda: counts(world, name) == {"d": 100})
    until("all is stored", lambda: counts(world, "own") == {"a": 100, "b": 100, "c": 100})
    assert world.losses("own") == {}
    spun = [line for line in world.log().splitlines() if "no_descriptors" in line and "n=1000" in line]
    assert not spun, "the loop turned for a connection that it could not take"
    assert stat.S_IMODE((world.dir / "agent.sock").stat().st_mode) == 0o640, "calling those back has not changed it"


def test_exports_that_nobody_closes(world):
    """With 128 descriptors a user may hold 4 exports; what is closed is nobody's, and the memory free again."""
    start_limited(world, (resource.RLIMIT_NOFILE, (128, 128)))
    until("control.sock answers", world.answers)
    job = recorder(world, "s")
    job.say("repeat 100 a")
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(WAIT)
    client.connect(str(world.dir / "control.sock"))

    def ask(method, params):
        m = b"\x94\x00\x01" + bytes([0xa0 + len(method)]) + method + params
        client.send(len(m).to_bytes(4, "little") + m)
        said, fds, _, _ = socket.recv_fds(client, 1 << 16, 1)
        while len(said) < 4 or len(said) < 4 + int.from_bytes(said[:4], "little"):
            said += client.recv(1 << 16)
        return fds[0] if fds else said.decode(errors="replace")

    def export():
        return ask(b"export", b"\x82\xa7session\xa1s\xa6format\xa7hatchet")

    def held():
        return sum("protond-export" in f for f in open_files(world.daemon.pid))
    ask(b"hello", b"\x81\xa7version\x01")
    first, second, *others, refused = [export() for _ in range(5)]
    assert json.loads(os.pread(second, 1 << 16, 0))[0]["children"][0]["frame"]["name"] == "a"
    with pytest.raises(OSError):
        os.pwrite(second, b"x", 0)
    assert "has too many exports still open" in refused and held() == 4, refused
    with mmap.mmap(first, 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
        os.close(first)
        assert "still open" in export() and mapped.find(b'"a"') > 0
    for fd in (export(), second, *others):
        os.close(fd)
    until("the daemon has none open", lambda: held() == 0)
    client.close()
    job.quit()


@preloads
@pytest.mark.parametrize("mib", [4, 16])
def test_no_memory(world, mib):
    """An end in words, or none; the next daemon has everything."""
    world.start(PROTOND_AUTO_SESSION="off")
    job = recorder(world, "s")
    job.say("repeat 100 a")
    until("it is stored", lambda: counts(world, "s").get("a") == 100)
    with open(f"/proc/{world.daemon.pid}/statm") as f:
        size = int(f.read().split()[0]) * resource.getpagesize() + (mib << 20)
    resource.prlimit(world.daemon.pid, resource.RLIMIT_AS, (size, size))
    did = 100
    for n in (5000, 10000, 20000, 40000):
        job.say(f"distinct {n}")
        did += n
    world.ctl("finalize", "s", check=False)
    status = world.daemon.poll()
    if status is None:
        status = world.stop()
    assert status in (0, 1, -signal.SIGTERM), world.log()  # the last: it was about to end by itself
    assert status == 0 or "reason=out_of_memory" in world.log() or "out of memory" in world.log()
    world.start(PROTOND_AUTO_SESSION="off")
    job.say("repeat 100 b")
    job.quit()
    until("the rings of ended jobs are gone", lambda: not list((world.dir / "rings").iterdir()))
    truth_holds(world, "own", did + 100)


@needs_another_user
def test_no_threads(world):
    """Without those that it needs all along (the store's four, two that close what jobs handed over) it does not start;
    without one for a timeline that one is not written."""
    world.home.parent.chmod(0o711)
    for path in (world.dir, world.home):
        os.chown(path, STRANGER, STRANGER)
    if subprocess.run([BUILD / "bin/protond", "--version"], env=world.env, user=STRANGER, group=STRANGER, extra_groups=[],
                      capture_output=True).returncode != 0:
        pytest.skip("another user cannot run what was built here")
    start_limited(world, (resource.RLIMIT_NPROC, (1, 1)), uid=STRANGER)
    assert world.daemon.wait(WAIT) == 1, world.log()
    assert "cannot start the store's thread: resource temporarily unavailable" in world.log()
    start_limited(world, (resource.RLIMIT_NPROC, (6, 6)), uid=STRANGER)
    assert world.daemon.wait(WAIT) == 1 and "no thread to be had" in world.log(), world.log()
    start_limited(world, (resource.RLIMIT_NPROC, (7, 64)), uid=STRANGER)
    until("control.sock answers", world.answers)
    job = recorder(world, "s")
    job.say("repeat 100 a")
    r = world.ctl("finalize", "s", "-o", world.home / "s.json", check=False)
    assert r.returncode == 1 and "no thread to write the timeline: resource temporarily unavailable" in r.stderr, r
    subprocess.run(["prlimit", f"--pid={world.daemon.pid}", "--nproc=64:64"], check=True, user=STRANGER, group=STRANGER,
                   extra_groups=[])
    world.ctl("start", "t", "--all", "-d", "both")
    job.say("repeat 100 b")
    world.ctl("finalize", "t", "-o", world.home / "t.json")
    assert len([e for e in json.loads((world.home / "t.json").read_text())["traceEvents"] if e["ph"] == "X"]) == 100
    job.quit()
    assert counts(world, "s") == {"a": 100} and counts(world, "t") == {"b": 100}
    assert world.stop() == 0


# --- the last logout takes the runtime directory away


def log_out(world, and_itself):
    for path in list(world.dir.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    if and_itself:
        world.dir.rmdir()


@pytest.mark.parametrize("and_itself", [False, True], ids=["emptied", "removed"])
def test_logout_with_a_running_job(world, and_itself):
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_LANE_KB=8192)
    world.env["PROTOND_TOKEN"] = TOKEN
    job = recorder(world, "s")
    job.say("repeat 100 before")
    load = Load(world, pause_ns=2000000)
    until("it is stored", lambda: sum(counts(world, "s").values()) > 1000)
    log_out(world, and_itself)
    job.say("repeat 100 meanwhile")
    until("the directory is made again", lambda: "event=home_made_again" in world.log())
    late = world.job()
    starts(late, "late")
    late.say("repeat 100 after")
    job.say("repeat 100 after")
    did = load.truth()
    until("it goes on", lambda: load.truth() > did + 10000)
    load.kill()
    ended(world, load.pid)
    assert late.quit() == job.quit() == 0
    world.ctl("finalize", "s")
    check(world, load)
    found = counts(world, "s")
    assert (found["before"], found["meanwhile"], found["after"]) == (100, 100, 200) and world.losses("s") == {}
    until("the rings of ended jobs are gone", lambda: not list((world.dir / "rings").iterdir()))
    assert world.stop() == 0


@pytest.mark.parametrize("killed", [False, True], ids=["goes_on", "killed"])
def test_a_new_directory_that_takes_no_journal(world, killed):
    """It is tried until it works; nothing that a job wrote meanwhile is in the journal of the removed directory alone."""
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_COMMIT_MS=3600000)
    world.env["PROTOND_TOKEN"] = TOKEN
    job = recorder(world, "s")
    job.say("repeat 100 before")
    world.daemon.send_signal(signal.SIGSTOP)
    log_out(world, True)
    (world.dir / "store").mkdir(parents=True)
    world.dir.chmod(0o700)
    world.daemon.send_signal(signal.SIGCONT)
    until("it is said", lambda: "the journal has no place" in world.ctl("status", check=False).stdout)
    assert f"the journal has no place ({world.dir}/store: Is a directory)" in world.ctl("status").stdout
    job.say("repeat 100 meanwhile")
    until("it is stored", lambda: counts(world, "s").get("meanwhile") == 100)
    assert len(list(world.dir.glob("journal.*"))) == 0, "each try cleans up"
    if killed:
        world.stop(signal.SIGKILL)
    (world.dir / "store").rmdir()
    if killed:
        world.start(PROTOND_AUTO_SESSION="off")
    else:
        until("it works", lambda: "event=home_made_again" in world.log())
        assert world.log().count("event=home_gone") == 1
        assert "the journal has no place" not in world.ctl("status").stdout
    assert not [f for f in open_files(world.daemon.pid) if "/journal." in f and "deleted" in f]
    job.say("repeat 100 after")
    assert job.quit() == 0
    world.ctl("finalize", "s")
    assert counts(world, "s") == {"before": 100, "meanwhile": 100, "after": 100} and world.losses("s") == {}
    assert world.stop() == 0


def test_logout_and_the_end_of_the_daemon(world):
    """What was stored is there, nothing twice, and the job is found again."""
    world.start(PROTOND_AUTO_SESSION="off")
    job = recorder(world, "s")
    job.say("repeat 100 before")
    until("it is stored", lambda: counts(world, "s").get("before") == 100)
    world.daemon.send_signal(signal.SIGSTOP)
    log_out(world, True)
    job.say("repeat 100 meanwhile")
    world.daemon.kill()
    world.daemon.wait(WAIT)
    world.start(PROTOND_AUTO_SESSION="off")
    job.say("repeat 100 after")
    until("it is stored", lambda: counts(world, "own").get("after") == 100)
    assert job.quit() == 0
    world.ctl("finalize", "s")
    assert counts(world, "s") == {"before": 100, "meanwhile": 100, "after": 100}
    assert world.losses("s") == {}
