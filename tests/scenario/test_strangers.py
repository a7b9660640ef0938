# SPDX-License-Identifier: MIT. Another user beside a service's daemon: sees its own, asks for, changes and deletes
# nothing else, and learns nothing by the words.
import json
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys

import msgpack
import pytest

from conftest import BUILD, WAIT, needs_another_user, until
from test_doctor import library

NOBODY, OTHER = 65534, 65533
JOBS = 8  # that one user may have attached
pytestmark = needs_another_user


def serve(world):
    with open(world.home / "protond.log", "ab") as log:
        world.daemon = subprocess.Popen([str(BUILD / "bin/protond"), "--foreground"], stdout=log, stderr=log,
                                        env={**world.env, "PROTOND_AUTO_SESSION": "off", "PROTOND_JOBS_PER_UID": str(JOBS),
                                             "PROTOND_SESSIONS_PER_UID": "4"})
    until("it answers", world.answers)


@pytest.fixture
def shared(world):
    """A service's daemon, a job and two sessions of root's, one of them stored."""
    world.home.chmod(0o755)
    world.home.parent.chmod(0o755)
    world.dir.chmod(0o755)
    world.serve = lambda: serve(world)
    world.serve()
    world.ctl("start", "stored", "--all")
    world.root_job = world.job()
    world.root_job.say("repeat 10 mine")
    world.ctl("finalize", "stored")
    world.ctl("start", "secret", "--all")
    world.root_job.say("repeat 10 mine")
    yield world


def as_stranger(world, *args, name="protonctl", uid=NOBODY, db=""):
    env = {**world.env, "HOME": "/nonexistent", "PROTOND_DB": db}
    return subprocess.run([str(BUILD / "bin" / name), *map(str, args)], env=env, user=uid, group=uid, extra_groups=[], cwd="/",
                          capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def sessions(world):
    return sorted((s["name"], s["state"]) for s in world.ctl_json("sessions")["sessions"])


def test_a_stranger_sees_only_its_own(shared):
    job = shared.job(user=NOBODY, group=NOBODY, extra_groups=[])
    job.say("start own")
    job.say("repeat 5 theirs")
    r = as_stranger(shared, "sessions", "--json")
    seen = json.loads(r.stdout)["data"]["sessions"]
    assert {s["uid"] for s in seen} == {NOBODY} and "own" in {s["name"] for s in seen}, r.stderr
    pids = {j["pid"] for j in json.loads(as_stranger(shared, "jobs", "--all", "--json").stdout)["data"]["jobs"]}
    assert pids == {job.pid}
    seen = as_stranger(shared, "where").stdout + as_stranger(shared, "top", "--once").stdout
    assert str(shared.root_job.pid) not in seen and "mine" not in seen
    assert "mine" not in as_stranger(shared, "status", "--json").stdout
    everything = {s["name"] for s in shared.ctl_json("sessions")["sessions"]}
    assert {"stored", "secret", "own"} <= everything, "root sees all"


ATTEMPTS = [("finalize", "secret"), ("stop", "secret"), ("activate", "secret"), ("delete", "stored"), ("delete", "secret"), ("where", "{pid}"),
            ("start", "x", "--pid", "{pid}"), ("pause", "{pid}"), ("resume", "{pid}"),
            ("prune", "--max-size", "1K", "--all-users"), ("prune", "--keep", "1", "--all-users", "--dry-run"), ("shutdown",)]


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=" ".join)
def test_a_stranger_changes_nothing(shared, attempt):
    before = sessions(shared)
    args = [a.format(pid=shared.root_job.pid) for a in attempt]
    r = as_stranger(shared, *args)
    assert r.returncode != 0 and r.stderr.strip(), (r.returncode, r.stdout)
    nothing = as_stranger(shared, *(a.replace("secret", "no_such").replace("stored", "no_such") for a in args))
    if "secret" in args or "stored" in args:
        assert nothing.stderr.replace("no_such", args[1]) == r.stderr, "whether there is one is not told either"
    assert shared.daemon.poll() is None and sessions(shared) == before
    shared.root_job.say("repeat 7 mine")
    shared.ctl("finalize", "secret")
    assert shared.cells("secret")["/mine"][0] == 17 and shared.state("stored") == "finalized"


def test_a_prune_is_of_ones_own(shared):
    before = sessions(shared)
    assert as_stranger(shared, "prune", "--older-than", "1d").stdout == "0 sessions are deleted\n"
    r = as_stranger(shared, "prune", "--max-size", "1K")
    assert r.returncode == 0 and "stored" not in r.stdout, r
    assert {s for s in sessions(shared)} >= {s for s in before if "stored" in str(s) or "secret" in str(s)}


def data(world, *args):
    r = as_stranger(world, *args, "--json")
    assert r.returncode == 0, r
    return json.loads(r.stdout)["data"]


def test_a_strangers_top(shared):
    job = shared.job(user=NOBODY, group=NOBODY, extra_groups=[])
    job.say("start own")
    job.say("repeat 5 theirs")
    for args in (["own"], []):
        seen = data(shared, "top", *args, "--once")
        assert [j["pid"] for j in seen["jobs"]] == [job.pid] and [c["path"] for c in seen["cells"]] == ["theirs"], seen
    everyone = {j["pid"] for j in shared.ctl_json("top", "own", "--once")["jobs"]}
    assert everyone == {job.pid, shared.root_job.pid}, "root sees all"
    secret, none = (as_stranger(shared, "top", name, "--once", "--json") for name in ("secret", "no_such"))
    assert secret.returncode == 1 and secret.stdout == none.stdout.replace("no_such", "secret"), secret


def test_a_job_without_a_ring_is_not_shown_to_a_stranger(shared):
    shared.ctl("finalize", "secret")
    idle = shared.job()
    until("root sees it", lambda: idle.pid in [j["pid"] for j in shared.ctl_json("jobs")["jobs"]])
    assert [j for j in shared.ctl_json("jobs")["jobs"] if j["pid"] == idle.pid and "ring" not in j], "it has none"
    assert data(shared, "jobs", "--all")["jobs"] == []


@pytest.mark.preload
def test_a_job_that_could_not_record_is_not_shown_to_a_stranger(shared):
    """What is said of it are the job's words."""
    alone = shared.home / "libprotond.so.0"
    shutil.copy(BUILD / "lib/libprotond.so.0", alone)
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); sys.stdin.read()"
    job = subprocess.Popen([sys.executable, "-c", code, alone], env={**shared.env, "LD_LIBRARY_PATH": ""}, stdin=subprocess.PIPE)
    try:
        until("it has said so", lambda: f"1 job could not record, the last: pid {job.pid}: cannot load" in shared.ctl("status").stdout)
        assert "could not record" not in as_stranger(shared, "status").stdout
    finally:
        job.communicate(timeout=WAIT)


def answer(world, method):
    """The bytes of the daemon's answer, as they come."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(WAIT)
    s.connect(str(world.dir / "control.sock"))
    with s, s.makefile("rb") as f:
        for message in (b"\x94\x00\x01\xa5hello\x81\xa7version\x01", b"\x94\x00\x02" + bytes([0xa0 + len(method)]) + method + b"\x80"):
            s.sendall(len(message).to_bytes(4, "little") + message)
            got = f.read(int.from_bytes(f.read(4), "little"))
    return got


def texts(value):
    """Of an answer, which is numbers and uuids, too: those may hold any byte."""
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    return [value] if isinstance(value, str) else [t for v in value for t in texts(v)] if isinstance(value, list) else []


def test_what_a_job_says_of_its_gpu_is_for_its_owner(shared):
    """Others see that there is such a job. And no byte of it reaches a terminal that would obey it."""
    path = library(shared.home / "private\x1b]0;x\x07\u202e\x9b\x7f.so", "int cuptiGetVersion(unsigned *v) { *v = 26; return 0; }")
    shared.root_job.quit()
    assert shared.job(env={"PROTOND_CUPTI_PATH": path}).say("start own").startswith("0")
    until("its words are there", lambda: [j for j in shared.ctl_json("jobs")["jobs"] if j["gpu"] == "failed"])
    until("the other job is over", lambda: len(shared.ctl_json("jobs")["jobs"]) == 1)
    for verb in ("status", "jobs"):
        raw = answer(shared, verb.encode())
        assert b"/private\xef\xbf\xbd]0;x" in raw, "root sees it"
        for text in texts(msgpack.unpackb(raw, unicode_errors="surrogateescape")):
            for hostile in "\x1b\x07\x7f\u202e\x9b":
                assert hostile not in text, (verb, hostile, text)
    r = as_stranger(shared, "status", "--json")
    assert r.returncode == 0 and "/private" not in r.stdout and "lacks" not in r.stdout, r.stdout
    assert "1 job without GPU data" in as_stranger(shared, "status").stdout
    (cupti, _) = data(shared, "backends")["backends"]
    assert cupti == {"name": "cupti", "state": "failed", "text": "of another user's job"}
    assert shared.ctl_json("backends")["backends"][0]["text"] != cupti["text"], "root sees it"


REFUSED = """
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(struct.pack("<IHH", 0x31565250, 777, 8))
s.recv(8192)
"""


def test_why_a_connection_was_refused_is_for_its_owner(shared):
    subprocess.run(["/usr/bin/python3", "-c", REFUSED, str(shared.dir / "agent.sock")], check=True, timeout=WAIT,
                   user=NOBODY, group=NOBODY, extra_groups=[])
    words = "1 connections were refused, the last: a message of type 777"
    assert words in shared.ctl("status").stdout and words in as_stranger(shared, "status").stdout
    theirs = as_stranger(shared, "status", uid=OTHER).stdout
    assert "1 connections were refused" in theirs and "777" not in theirs


def want(world):
    """What the daemon wants of root's job: the word of the control file (struct ring_ctl, proto/abi/ring.h)."""
    (ring,) = [j["ring"] for j in world.ctl_json("jobs")["jobs"] if j["pid"] == world.root_job.pid]
    return struct.unpack_from("<I", (world.dir / f"rings/{ring}.ctl").read_bytes(), 12)[0]


def test_a_stranger_pauses_only_its_own(shared):
    before = want(shared)
    for verb in ("pause", "resume"):
        assert data(shared, verb)["jobs"] == 0 and want(shared) == before
    assert shared.ctl_json("pause")["jobs"] == 1 and want(shared) != before, "root's job has something to lose"
    paused = want(shared)
    assert data(shared, "resume")["jobs"] == 0
    assert as_stranger(shared, "resume", shared.root_job.pid).returncode != 0
    assert want(shared) == paused


def test_a_stranger_records_only_its_own(shared):
    before = want(shared)
    assert data(shared, "start", "none", "--all")["jobs"] == 0
    job = shared.job(user=NOBODY, group=NOBODY, extra_groups=[])
    until("it is attached", lambda: data(shared, "jobs")["jobs"])
    assert data(shared, "start", "x", "--all")["jobs"] == 1
    job.say("repeat 5 theirs")
    shared.root_job.say("repeat 7 mine")
    assert want(shared) == before
    assert data(shared, "finalize", "x")
    shared.ctl("finalize", "secret")
    assert set(shared.cells("x")) == {"/theirs"} and shared.cells("secret")["/mine"][0] == 17
    uids = shared.sql("SELECT p.uid FROM process p JOIN member m ON m.process = p.id JOIN session s ON s.id = m.session WHERE s.name = 'x'")
    assert uids == [(NOBODY,)]


def test_a_stranger_deletes_its_own(shared):
    job = shared.job(user=NOBODY, group=NOBODY, extra_groups=[])
    job.say("start own")
    job.say("repeat 5 theirs")
    job.quit()
    until("it is stored", lambda: shared.state("own") == "finalized")
    assert as_stranger(shared, "delete", "own").returncode == 0
    assert shared.state("own") is None
    assert shared.state("stored") == "finalized" and ("secret", "active") in sessions(shared)


def test_a_strangers_tool_opens_no_database(shared):
    for source in ("stored", "secret", "@last", "1"):
        r = as_stranger(shared, "tree", source, name="protonview")
        assert r.returncode != 0 and "mine" not in r.stdout and r.stderr.strip()
    r = as_stranger(shared, "--db", shared.db, "tree", "stored", name="protonview")
    assert r.returncode != 0 and "mine" not in r.stdout
    for path in (shared.db, *shared.dir.glob("journal.*"), *shared.dir.glob("rings/*.ring")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_database_that_is_not_ones_own_is_no_empty_one(shared):
    listed = as_stranger(shared, "sessions", name="protonview")
    assert listed.returncode == 0 and listed.stdout.startswith("no session yet")
    shared.job(user=NOBODY, group=NOBODY, extra_groups=[]).say("start own")
    listed = as_stranger(shared, "sessions", name="protonview")
    assert " own " in listed.stdout and " mine " not in listed.stdout, "by the daemon"
    assert listed.stdout.split("ACTIVE")[0].split() == as_stranger(shared, "sessions").stdout.split("ACTIVE")[0].split()
    assert "no session 'nosuch'; `protonctl" in as_stranger(shared, "nosuch", name="protonview").stderr
    assert " own " in as_stranger(shared, "sessions").stdout
    for mode in (0o755, 0o700):  # the file, and the folder that it is in
        shared.home.chmod(mode)
        listed = as_stranger(shared, "sessions", name="protonview", db=str(shared.db))
        assert " own " in listed.stdout, "it is the daemon's"
        listed = as_stranger(shared, "sessions", "--db", shared.db, name="protonview")
        assert listed.returncode == 1 and f"{shared.db}: Permission denied" in listed.stderr


def test_a_name_that_two_users_have(shared):
    """Each means its own."""
    job = shared.job(user=NOBODY, group=NOBODY, extra_groups=[])
    job.say("start secret")
    job.say("repeat 5 theirs")
    assert as_stranger(shared, "finalize", "secret").returncode == 0
    states = {(s["uid"], s["state"]) for s in shared.ctl_json("sessions")["sessions"] if s["name"] == "secret"}
    assert states == {(0, "active"), (NOBODY, "finalized")}


def test_a_stranger_cannot_take_the_sockets_place(world):
    """A folder that anybody may write in, a link, a socket of another user: nobody talks to what is there."""
    world.home.chmod(0o755)
    world.dir.chmod(0o777)
    fake = "import os, socket, sys, time\nos.setuid(%d)\n" % NOBODY + """
kinds = {"agent.sock": socket.SOCK_SEQPACKET, "control.sock": socket.SOCK_STREAM}
held = []
for name, kind in kinds.items():
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(os.path.join(sys.argv[1], name)); s.listen(8); held.append(s)
    os.chmod(os.path.join(sys.argv[1], name), 0o777)
print("ready", flush=True)
for s in held: s.settimeout(0.1)
while sys.stdin.readline().strip() != "end": pass
for s in held:
    try:
        while True:
            c, _ = s.accept()
            c.settimeout(1)
            try: print("said", len(c.recv(100)), flush=True)
            except OSError: pass
    except OSError: pass
"""
    squatter = subprocess.Popen(["/usr/bin/python3", "-c", fake, str(world.dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert squatter.stdout.readline() == "ready\n"
        job = world.job()
        assert job.say("start s").startswith("-"), "no session of a stranger's"
        r = world.ctl("status", check=False)
        assert r.returncode == 1 and "control.sock is neither root's protond nor your own" in r.stderr, (r.returncode, r.stderr)
        assert job.say("repeat 3 a") is not None and job.quit() == 0
    finally:
        out, _ = squatter.communicate("end\n", timeout=WAIT)
    assert set(out.split("\n")) <= {"said 0", ""}, "nothing was told to it"


def test_a_strangers_connections_are_its_own_trouble(shared):
    """As many as a user may have, saying nothing."""
    fake = """
import socket, sys
held = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(int(sys.argv[2]))]
for s in held: s.connect(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""
    flood = subprocess.Popen(["/usr/bin/python3", "-c", fake, str(shared.dir / "agent.sock"), str(JOBS)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY, extra_groups=[])
    try:
        assert flood.stdout.readline() == "ready\n"
        theirs = shared.job(user=NOBODY, group=NOBODY, extra_groups=[])
        assert f"uid {NOBODY} has {JOBS} jobs attached; raise jobs_per_uid" in theirs.say("start own")
        assert shared.job().say("start own") == "0", "root's"
    finally:
        flood.communicate(timeout=WAIT)


SHARE = f"user {NOBODY} has 4 sessions that are not finalized, the most one user may have; finalize some: `protonctl finalize NAME`"


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_strangers_sessions_leave_room_for_others(shared, sig):
    """As many as a user may have, however they are started, and over a restart; what is too much is told to who asks."""
    job = shared.job(user=NOBODY, group=NOBODY, extra_groups=[])
    assert job.say("start by_job") == "0"
    for i in range(3):
        assert as_stranger(shared, "start", f"s{i}", "--all").returncode == 0
    for restarted in (False, True):
        if restarted:
            assert shared.stop(sig) in (0, -sig)
            shared.serve()
            until("the job is back", lambda: job.pid in [j["pid"] for j in shared.ctl_json("jobs")["jobs"]])
        r = as_stranger(shared, "start", "surplus", "--all")
        assert r.returncode == 1 and SHARE in r.stderr, r
        assert job.say("start surplus") == f"-122 {SHARE}"
        assert job.say("finalize 1").startswith("-2 "), "there is none"
        assert job.say("activate 0") == "0"
        for status in (shared.ctl("status"), as_stranger(shared, "status")):  # a journal that is replayed counts again
            assert re.search(rf"[2-9] sessions were refused, the last: {SHARE}", status.stdout), status.stdout
        assert "the last: another user's" in as_stranger(shared, "status", uid=OTHER).stdout
        assert as_stranger(shared, "start", f"other{restarted}", "--all", uid=OTHER).returncode == 0
        assert shared.root_job.say(f"start root_job{restarted}") == str(int(restarted))
    assert as_stranger(shared, "finalize", "s0").returncode == 0
    number = job.say("start surplus")
    assert int(number) > 0
    job.say("repeat 5 theirs")
    assert job.say(f"finalize {number}") == "0"
    until("it is stored", lambda: shared.state("surplus") == "finalized")
    assert shared.cells("surplus")["/theirs"][0] == 5


def test_a_client_that_reads_nothing_costs_only_itself(shared):
    """Floods of questions whose answers nobody takes, and connections that say nothing."""
    silent = []
    for i in range(300):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            s.connect(str(shared.dir / "control.sock"))
        except OSError:
            break
        silent.append(s)
    hello, ask = b"\x94\x00\x01\xa5hello\x81\xa7version\x01", b"\x94\x00\x02\xa8sessions\x80"
    greedy = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    greedy.setblocking(False)
    try:
        greedy.connect(str(shared.dir / "control.sock"))
        for _ in range(20000):
            greedy.send(b"".join(len(m).to_bytes(4, "little") + m for m in (hello, ask)))
    except OSError:
        pass
    shared.root_job.say("repeat 5 mine")
    for s in silent + [greedy]:
        s.close()
    until("the daemon answers", lambda: shared.ctl("status", check=False).returncode == 0)
    shared.ctl("finalize", "secret")
    assert shared.cells("secret")["/mine"][0] == 15

