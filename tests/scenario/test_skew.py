# SPDX-License-Identifier: MIT. Parts of different versions meet: they work, or are refused in words that say which to update.
#
# The other versions are this one's sources with their numbers changed: the files that name such a number are
# compiled anew, the rest is what the build has.
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess

import msgpack
import pytest

from conftest import BUILD, WAIT, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("libclient", "agent", "daemon", "viewer")  # what is built of each: a library, or a program

pytestmark = pytest.mark.slow  # to build; sanitizers see the same lines in daemon_reader, job_client, ctl_server


class Other:
    """An installation whose numbers are others: {name: (header or source, old text, new text)}."""

    def __init__(self, path, version, numbers):
        self.path, self.bin, self.lib, self.version = path, path / "bin", path / "lib", version
        for d in ("bin", "lib", "obj"):
            (path / d).mkdir()
        for room in ("agent", "daemon", "viewer", "proto", "libclient"):
            shutil.copytree(ROOT / room, path / room, ignore=shutil.ignore_patterns("python", "example", "device", "__pycache__"))
        for file, old, new in numbers.values():
            text = (path / file).read_text()
            assert text.count(old) == 1, f"{file} has another {old}"
            (path / file).write_text(text.replace(old, new))
        self.names = re.compile(r"\b(%s)\b" % "|".join(numbers))
        flags = [f for f in shlex.split((BUILD / "flags").read_text())
                 if not f.startswith(("-W", "-M", "-DPROTOND_BUILD_VERSION")) or f.startswith("-Wl")]
        self.cc = [flags[0], *[f for f in flags[1:] if f.startswith(("-std", "-D", "-f"))], "-O0", "-w",
                   f'-DPROTOND_BUILD_VERSION="{version}"']
        self.ld = [flags[0], *[f for f in flags[1:] if f.startswith(("-Wl", "-fsanitize"))]]
        rooms = [room for room in ROOMS if self.sources(room)]
        for make in (self.compile, self.link):  # all of one kind at once
            assert not any([p.wait() for p in [make(room) for room in rooms]])

    def sources(self, room):
        texts = {f: f.read_text() for f in sorted((self.path / room).rglob("*.c"))}
        if not any(map(self.names.search, texts.values())):
            return []
        return [f for f, text in texts.items() if self.names.search(text) or "PROTOND_BUILD_VERSION" in text]

    def compile(self, room):
        (self.path / "obj" / room).mkdir()
        own = sorted({h.parent for r in (room, "proto") for h in (self.path / r).rglob("*.h")})
        include = [f"-I{d}" for d in own]
        return subprocess.Popen([*self.cc, *include, "-c", *self.sources(room)], cwd=self.path / "obj" / room)

    def link(self, room):
        """Ours, and the build's where there is none of ours."""
        ours = sorted((self.path / "obj" / room).glob("*.o"))
        left_out = {o.name for o in ours} | {"protonview.o"}
        objects = ours + [o for o in sorted((BUILD / "obj" / room).rglob("*.o"))
                          if o.name not in left_out and not {"example", "device"} & set(o.parts)
                          and (ROOT / o.relative_to(BUILD / "obj")).with_suffix(".c").exists()]  # not of a file that moved
        if room == "agent":
            objects += sorted((BUILD / "obj/proto/peek").glob("*.o"))
        if room in ("libclient", "agent"):
            name = "libprotond" if room == "libclient" else "libprotond-agent"
            return subprocess.Popen([*self.ld, "-shared", "-Wl,-z,nodelete", f"-Wl,-soname,{name}.so.0",
                                     f"-Wl,--version-script={ROOT / room / name}.map", "-o", self.lib / f"{name}.so.0",
                                     *objects, "-ldl", "-lpthread"])
        pkg = ["pkg-config", "--libs", "libuv", "msgpack", "sqlite3", "libzstd", "zlib", "jansson", "libpcre2-8", "ncursesw"]
        libs = subprocess.run(pkg, capture_output=True, text=True, check=True).stdout.split()
        return subprocess.Popen([*self.ld, "-o", self.bin / ("protond" if room == "daemon" else "protonctl"), *objects,
                                 "-Wl,--start-group", *(BUILD / "ar/proto").glob("*.a"), "-Wl,--end-group", *libs, "-lm", "-lpthread", "-ldl", "-l:libstdc++.so.6"])

    def start(self, world, **env):
        with open(world.home / "protond.log", "ab") as log:
            world.daemon = subprocess.Popen([self.bin / "protond", "--private", "--foreground"], env={**world.env, **env},
                                            stdout=log, stderr=log)
        until("control.sock answers", world.answers)

    def job(self, world):
        return world.job(env={"LD_LIBRARY_PATH": str(self.lib)})


def defined(file, name):
    """(the line that defines a number, the number)"""
    line, number = re.search(rf"^#define {name} +(0x[0-9a-f]+|\d+)u?\b.*$", (ROOT / file).read_text(), re.M).group(0, 1)
    return line, int(number, 0)


RING_ABI = defined("proto/abi/ring.h", "RING_ABI")[1]


def other(file, name, number=None):
    """A number as another release has it: one more."""
    line, now = defined(file, name)
    return name, (file, line, f"#define {name} {now + 1 if number is None else number}u")


@pytest.fixture(scope="module")
def additive(tmp_path_factory):
    """A release that adds things: every number that may grow has grown."""
    return Other(tmp_path_factory.mktemp("additive"), "7.1.0", dict([
        other("proto/abi/ring.h", "RING_ABI"), other("proto/wire/wire.h", "WIRE_VERSION"),
        other("daemon/journal/journal.h", "JOURNAL_MAGIC"), other("daemon/fold/pending.c", "PENDING_VERSION")]))


@pytest.fixture(scope="module")
def breaking(tmp_path_factory):
    """A release that lays out the ring and the engine's table anew."""
    return Other(tmp_path_factory.mktemp("breaking"), "8.0.0", dict([
        other("proto/abi/ring.h", "RING_ABI", 2 << 16), other("proto/abi/engine.h", "ENGINE_ABI")]))


class This:
    """The build, in the same words."""
    lib = BUILD / "lib"
    bin = BUILD / "bin"

    @staticmethod
    def start(world, **env):
        world.start(**env)

    @staticmethod
    def job(world):
        return world.job()


def recorded(world, name, want):
    until(f"{name} is stored", lambda: world.state(name) == "finalized")
    assert {path: cell[0] for path, cell in world.cells(name).items()} == want and world.losses(name) == {}


def is_unharmed(job):
    job.say("enter a")
    job.say("repeat 1000 b")
    assert job.say("depth") == "1"
    job.say("exit")
    assert job.quit() == 0


# --- jobs and the daemon ------------------------------------------------------------------------

@pytest.mark.parametrize("newer", ["libprotond", "protond"])
def test_a_job_of_another_ring(world, breaking, newer):
    job_side, daemon_side = (breaking, This) if newer == "libprotond" else (This, breaking)
    daemon_side.start(world)
    job = job_side.job(world)
    code, words = job.say("start s").split(" ", 1)
    assert code == "-71", words
    ours, theirs, update = re.fullmatch(r"libprotond has ABI (\d+), this protond (\d+); update (.*)", words).groups()
    assert (int(ours) > int(theirs)) == (newer == "libprotond"), "it says which is the older"
    assert update in ("the older of the two", "protond" if newer == "libprotond" else "the job's libprotond")
    assert job.say("start s").startswith("-71 "), "and says so again"
    is_unharmed(job)
    assert "event=refused" in world.log() and words in world.log()
    found = json.loads(world.ctl("doctor", "--json", check=False).stdout)["data"]["findings"]
    assert [f for f in found if f["what"] == "daemon says" and "refused" in f["text"]]
    job = daemon_side.job(world)
    assert job.say("start beside") == "0", "others are served"
    job.say("repeat 10 b")
    job.say("finalize 0")
    recorded(world, "beside", {"/b": 10})


@pytest.mark.parametrize("options, program, status", [([], 0, 125), (["--json"], 0, 125), ([], 7, 7)])
def test_a_run_of_another_ring(world, breaking, options, program, status):
    """Nothing of it is recorded: a program that succeeds does not hide that."""
    r = subprocess.run([BUILD / "bin/protonctl", "run", *options, "--", BUILD / "tests/job"], input=f"start s\nquit {program}\n",
                       env={**world.env, "LD_LIBRARY_PATH": str(breaking.lib)}, capture_output=True, text=True, timeout=WAIT)
    assert r.returncode == status and "ok -71 libprotond has ABI " in r.stdout, (r.returncode, r.stdout, r.stderr)
    assert re.search(r"libprotond has ABI \d+, this protond \d+; update ", r.stderr)
    assert ("nothing was recorded, so the exit status is 125" in r.stderr) == (status == 125 and not options)
    own = subprocess.run([BUILD / "bin/protonctl", "run", *options, "--", BUILD / "tests/job"], input="start s\nquit 0\n",
                         env=world.env, capture_output=True, text=True, timeout=WAIT)
    assert own.returncode == 0 and "ABI" not in own.stderr, "it was another run's"


def listening(world):
    """An agent.sock of the test's own."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(str(world.dir / "agent.sock"))
    s.listen()
    s.settimeout(WAIT)
    return s


def test_a_daemon_that_does_not_look(world):
    """What the library says of itself when the daemon only answers with another number."""
    s = listening(world)
    job = world.job()
    peer, _ = s.accept()
    attach = peer.recv(8192)
    assert struct.unpack_from("<IHHI", attach)[3] >> 16 == 1
    welcome = struct.pack("<II16s32sII232s", 0x00020000, 7, b"store", b"8.0.0", 0, 0, b"")
    peer.send(struct.pack("<IHH", 0x31565250, 2, 8 + len(welcome)) + welcome)
    assert peer.recv(8192) == b"", "it hangs up"
    job.process.stdin.write("start s\n")
    job.process.stdin.flush()
    peer, _ = s.accept()  # it asks again: there may be another daemon by now
    peer.recv(8192)
    peer.send(struct.pack("<IHH", 0x31565250, 2, 8 + len(welcome)) + welcome)
    assert re.match("ok -71 protond speaks another version of the ring: update ", job.process.stdout.readline())
    is_unharmed(job)
    s.close()


def test_a_daemon_that_says_more(world):
    """Messages may grow at their end, and new ones come in between."""
    s = listening(world)
    job = world.job()
    peer, _ = s.accept()
    peer.settimeout(WAIT)
    peer.recv(8192)
    welcome = struct.pack("<II16s32sII232s100s", RING_ABI + 3, 7, b"store", b"7.1.0", 0, 0, b"", b"more")
    peer.send(struct.pack("<IHH", 0x31565250, 99, 8))
    peer.send(struct.pack("<IHH", 0x31565250, 2, 8 + len(welcome)) + welcome)
    message, (ring,), _, _ = socket.recv_fds(peer, 8192, 1)
    assert struct.unpack_from("<IHH", message)[1] == 5, "RING"
    header = os.pread(ring, 12, 0)
    assert header[:8] == b"PROTRNG1" and struct.unpack_from("<I", header, 8) == (RING_ABI,)
    os.close(ring)
    is_unharmed(job)
    s.close()


@pytest.mark.parametrize("newer", ["libprotond", "protond"])
def test_a_job_of_an_additive_release(world, additive, newer):
    job_side, daemon_side = (additive, This) if newer == "libprotond" else (This, additive)
    daemon_side.start(world)
    job = job_side.job(world)
    assert job.say("start s") == "0"
    job.say("repeat 10 b")
    (listed,) = world.ctl_json("jobs")["jobs"]
    assert (listed["version"] == "7.1.0") == (newer == "libprotond")
    found = json.loads(world.ctl("doctor", "--json", check=False).stdout)["data"]["findings"]
    assert [f for f in found if f["what"] == "versions" and f["grade"] == "note" and re.search(
        r"1 job runs with libprotond [0-9.]+, protond is", f["text"])]
    assert (newer == "protond") == bool([f for f in found if f["what"] == "versions" and "protond 7.1.0 runs, protonctl is" in f["text"]
                                         and "restart protond after an update" in f["mend"]])
    job.say("finalize 0")
    recorded(world, "s", {"/b": 10})


@pytest.mark.parametrize("before, after", [("this", "additive"), ("additive", "this")])
def test_an_update_under_a_running_job(world, additive, before, after):
    """Stopped in order, the one stores all and the other goes on: nothing is lost or double."""
    daemons = {"this": This, "additive": additive}
    daemons[before].start(world)
    job = world.job()
    assert job.say("start s") == "0"
    job.say("enter a")
    for daemon in (after, before, after):
        job.say("repeat 10 b")
        world.stop()
        job.say("repeat 10 away")
        daemons[daemon].start(world)
    job.say("exit")
    job.say("finalize 0")
    recorded(world, "s", {"/a": 1, "/a/b": 30, "/a/away": 30})


def test_a_journal_of_another_version(world, additive):
    """What a daemon that was killed had not stored is not understood by the other one: that is said, and all else is kept."""
    additive.start(world, PROTOND_COMMIT_MS="600000")
    job = world.job()
    assert job.say("start first") == "0"
    job.say("repeat 10 b")
    world.ctl("finalize", "first")
    assert job.say("start second") in ("0", "1")
    job.say("repeat 10 b")
    until("it is drained", lambda: json.loads(world.ctl("top", "second", "--json").stdout)["data"]["cells"])
    world.stop(signal.SIGKILL)
    This.start(world)
    assert re.search(r"event=journal_damaged bytes=\d+", world.log()) and "event=journal_gap" in world.log()
    recorded(world, "first", {"/b": 10})
    is_unharmed(job)
    job = world.job()
    assert job.say("start third") == "0"
    job.say("repeat 10 b")
    job.say("finalize 0")
    recorded(world, "third", {"/b": 10})


def test_a_ring_of_another_version_is_left_to_its_own_daemon(world, breaking):
    """An update that cannot read what runs, and the way back."""
    This.start(world)
    job = world.job()
    assert job.say("start s") == "0"
    job.say("repeat 10 b")
    world.stop()
    breaking.start(world)
    until("it is refused", lambda: re.search(rf"event=refused pid={job.pid} .*ABI 1", world.log()))
    job.say("repeat 10 b")
    assert list(world.dir.glob("rings/*.ring")), "nothing of it is removed"
    world.stop()
    This.start(world)
    until("it is back", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == job.pid and j["events"] > 20])
    job.say("finalize 0")
    recorded(world, "s", {"/b": 20})


# --- the two halves of the library --------------------------------------------------------------

@pytest.mark.parametrize("newer", ["libprotond.so.0", "libprotond-agent.so.0"])
def test_an_engine_of_another_version(world, breaking, newer):
    lib = world.home / "lib"
    lib.mkdir()
    for name in ("libprotond.so.0", "libprotond-agent.so.0"):
        shutil.copy((breaking if name == newer else This).lib / name, lib)
    (breaking if newer == "libprotond.so.0" else This).start(world, PROTOND_AUTO_SESSION="off")
    job = world.job(env={"LD_LIBRARY_PATH": str(lib)})
    assert job.say("start s") == "-79 libprotond-agent.so.0 is of another version: reinstall protond"
    is_unharmed(job)


# --- tools and the daemon -----------------------------------------------------------------------

@pytest.mark.parametrize("newer", ["protonctl", "protond"])
def test_tools_of_another_version(world, additive, newer):
    (This if newer == "protonctl" else additive).start(world)
    tool = (additive if newer == "protonctl" else This).bin / "protonctl"

    def ctl(*words):
        r = subprocess.run([tool, *map(str, words)], env=world.env, capture_output=True, text=True, timeout=WAIT)
        assert r.returncode == 0, r.stderr
        return r.stdout
    job = world.job()
    assert job.say("start own") == "0", "it records when another session begins"
    assert re.search(rf"(?m)^ *{job.pid} ", ctl("jobs"))
    ctl("start", "s", "--pid", job.pid)
    job.say("repeat 10 b")
    until("top shows it", lambda: re.search(r" 10 .* b\n", ctl("top", "--once", "s")))
    for words in (["status"], ["where"], ["pause"], ["resume"], ["backends"], ["sessions"], ["finalize", "s"]):
        ctl(*words)
    recorded(world, "s", {"/b": 10})
    ctl("delete", "s")
    assert world.state("s") is None


def frame(message):
    body = msgpack.packb(message, use_bin_type=True)
    return struct.pack("<I", len(body)) + body


def take(s):
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from("<I", data)[0]:
        more = s.recv(65536)
        assert more
        data += more
    return msgpack.unpackb(data[4:], raw=False)


def test_a_request_that_the_daemon_does_not_know(world):
    This.start(world)
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(WAIT)
        s.connect(str(world.dir / "control.sock"))
        s.sendall(frame([0, 1, "hello", {"version": 99, "more": [1, {"than": "that"}]}]))
        assert take(s)[2] is None
        s.sendall(frame([0, 2, "teleport", {}]))
        error = take(s)[2]
        assert error["code"] == -38 and error["text"] == "this protond has no method 'teleport'"
        assert error["next"] == "protonctl and protond may be of different versions; `protonctl version` shows both"
        s.sendall(frame([0, 3, "status", {"new": True}]))
        assert take(s)[3]["daemon"], "and the connection goes on"


@pytest.mark.parametrize("answer, status, words", [
    ([1, None, None, {"version": 0}], 3, "and this tool have no protocol in common; install one version of both (`protonctl version` shows them)"),
    ([1, None, {"code": -38, "text": "no method 'hello'", "next": "update protonctl"}, None], None, "no method 'hello'; update protonctl"),
    ([1, None, None, {"version": 7, "daemon": "9.9", "pid": 1, "more": {"a": [None]}}], 0, "9.9")])
def test_a_daemon_that_answers_otherwise(world, answer, status, words):
    """As one of the far past or future may: a stand-in that says this at hello."""
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(world.dir / "control.sock"))
        s.listen()
        s.settimeout(WAIT)
        p = subprocess.Popen([str(BUILD / "bin/protonctl"), "status"], env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        peer, _ = s.accept()
        peer.settimeout(WAIT)
        answer[1] = take(peer)[1]
        peer.sendall(frame(answer))
        if status == 0:
            request = take(peer)
            assert request[2] == "status"
            peer.sendall(frame([1, request[1], None, {"daemon": "9.9", "unheard": {"of": 1}}]))
        out, err = p.communicate(timeout=WAIT)
        assert words in out + err and (status is None or p.returncode == status), (p.returncode, out, err)
        peer.close()
    (world.dir / "control.sock").unlink()
