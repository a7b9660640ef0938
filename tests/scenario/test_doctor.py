# SPDX-License-Identifier: MIT. `protonctl doctor`: each thing that it looks for is brought about, seen, and mended as it says.
import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import textwrap

import pytest

from conftest import BUILD, ROOT, WAIT, needs_another_user, needs_mounts, needs_root, until, with_nvml
from test_service import Manager

NOBODY, SOMEBODY = 65534, 54321  # a system's user, as logind counts, and a person
FLAGS = (BUILD / "flags").read_text().split()


class Findings(list):
    def of(self, what, grade=None):
        return [f for f in self if f["what"] == what and grade in (None, f["grade"])]

    def one(self, what, grade, text="", mend=""):
        hits = [f for f in self.of(what, grade) if re.search(text, f["text"]) and re.search(mend, f["mend"])]
        assert len(hits) == 1, f"{grade} {what} {text!r} {mend!r} in\n" + "\n".join(map(str, self))
        return hits[0]


def doctor(world, *before, mounts="", user=None, program=BUILD / "bin/protonctl", env=None, **kwargs):
    """What it finds when `before` is put before it, as `user`, and after the commands `mounts` in a mount namespace."""
    argv = [*before, str(program), "doctor", "--json"]
    if user is not None:
        argv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *argv]
    if mounts:
        argv = ["unshare", *([] if ROOT else ["-r"]), "-m", "sh", "-ec", textwrap.dedent(mounts) + '\nexec "$@"', "sh", *argv]
    env = {k: v for k, v in {**world.env, "PROTOND_CUPTI_PATH": "", **(env or {})}.items() if v is not None}
    r = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=WAIT * 4, cwd="/",
                       stdin=subprocess.DEVNULL, **kwargs)
    assert r.returncode in (0, 1), r.stdout + r.stderr
    found = Findings(json.loads(r.stdout)["data"]["findings"])
    assert r.returncode == any(f["grade"] == "bad" for f in found), "the exit status says whether anything is bad"
    assert all(f["mend"] for f in found if f["grade"] != "ok"), "each is said how to mend"
    return found


def mend(finding):
    """Does what it says."""
    subprocess.run(finding["mend"].split(", or")[0], shell=True, check=True)


def serve(world, private=True):
    """A daemon; one that is not private serves all users."""
    world.dir.chmod(0o700 if private else 0o755)
    with open(world.home / "protond.log", "ab") as log:
        world.daemon = subprocess.Popen([str(BUILD / "bin/protond"), *(["--private"] if private else []), "--foreground"],
                                        env=world.env, stdout=log, stderr=log)
    until("control.sock answers", world.answers)


# --- directories and sockets --------------------------------------------------------------------

def test_for_people(world):
    """The same findings, as text."""
    world.dir.chmod(0o755)
    r = world.ctl("doctor", check=False, env={"CUDA_INJECTION64_PATH": "/else\x1b[2J/where.so"})
    assert r.returncode == 1
    assert re.search(rf"^BAD   runtime directory +{world.dir} is open to others \(mode 755\)", r.stdout, re.M)
    assert re.search(rf"^ +→ chmod 700 {world.dir}$", r.stdout, re.M)
    assert "\x1b" not in r.stdout, "what stands in the environment does not reach the terminal"


@pytest.mark.parametrize("sub, mode", [("", 0o755), ("", 0o720), ("rings", 0o777)])
def test_a_directory_that_is_open_to_others(world, sub, mode):
    (world.dir / "rings").mkdir(mode=0o700)
    doctor(world).one("runtime directory", "ok")
    (world.dir / sub).chmod(mode)
    f = doctor(world).one("runtime directory", "bad", "open to others", f"^chmod 700 {world.dir}")
    if sub == "":
        r = subprocess.run([str(BUILD / "bin/protond"), "--private", "--foreground"], env=world.env,
                           capture_output=True, text=True, timeout=WAIT)
        assert r.returncode == 1 and "closed to others" in r.stderr, "the daemon is of the same opinion"
    mend(f)
    doctor(world).one("runtime directory", "ok")


def test_a_services_directory_that_is_closed(world):
    serve(world, private=False)
    doctor(world).one("runtime directory", "ok", str(world.dir))
    for mode, words in ((0o700, "no other user's job"), (0o777, "open to others")):
        world.dir.chmod(mode)
        mend(doctor(world).one("runtime directory", "bad", words, "^chmod 755 "))
        doctor(world).one("runtime directory", "ok")


@needs_root
def test_a_directory_of_another_user(world):
    os.chown(world.dir, NOBODY, NOBODY)
    doctor(world).one("runtime directory", "bad", "not a directory of your own", "PROTOND_RUNTIME_DIR")
    os.chown(world.dir, 0, 0)
    serve(world)
    os.chown(world.dir, NOBODY, NOBODY)
    doctor(world).one("runtime directory", "bad", f"belongs to uid {NOBODY} and the daemon is uid 0")


@needs_another_user
def test_a_directory_that_another_user_may_not_enter(world):
    serve(world)
    words = f"^{world.dir} belongs to uid 0 .mode 700. and is closed to uid {NOBODY}"
    doctor(world, user=NOBODY).one("daemon", "bad", words, "PROTOND_RUNTIME_DIR")
    deep = world.dir / "deep"
    deep.mkdir(mode=0o755)
    doctor(world, user=NOBODY, env={"PROTOND_RUNTIME_DIR": str(deep)}).one("daemon", "bad", words)


@needs_mounts
@pytest.mark.parametrize("size, grade", [("48m", "bad"), ("64m", "bad"), ("200m", "note"), ("1g", "ok"), ("0", None)])
def test_room_for_rings(world, size, grade):
    """64 MiB is what a container has in /dev/shm unless it is told otherwise."""
    at = world.dir / "run"
    at.mkdir(mode=0o700)
    found = doctor(world, env={"PROTOND_RUNTIME_DIR": str(at)},
                   mounts=f"mount -t tmpfs -o size={size},mode=700 none {at}")
    if grade is None:
        assert found.of("space for rings") == [], "there is no limit"
        return
    f = found.one("space for rings", grade, mend="docker run --shm-size=1g" if grade != "ok" else "")
    jobs = re.search(r"room for about (\d+) jobs", f["text"])
    assert (jobs is not None) == (grade != "ok")
    assert jobs is None or int(jobs.group(1)) in {"48m": (1, 2), "64m": (3, 4), "200m": (20, 21)}[size]


@needs_mounts
def test_no_tmpfs(world):
    at = world.dir / "run"
    at.mkdir(mode=0o700)
    if ROOT:
        found = doctor(world, env={"PROTOND_RUNTIME_DIR": str(at)}, mounts=f"mount -t ramfs -o mode=700 none {at}")
        found.one("tmpfs", "note", "rings have no name there", "/dev/shm")
    assert doctor(world).of("tmpfs") == []


GROUPS = """
    printf 'root:x:0:\\nringers:x:4242:%s\\nnobody:x:65534:\\n' > {dir}/group
    mount --bind {dir}/group /etc/group
"""


@needs_root
@needs_mounts
@pytest.mark.parametrize("member, now, mode, words", [
    ("", "", 0o660, "^usermod -aG ringers nobody, then log in again$"),
    ("nobody", "", 0o660, "newgrp ringers"),
    ("nobody", "4242", 0o600, "SocketMode=0666"),
    ("nobody", "4242", 0o660, None)])
def test_a_socket_for_a_group_only(world, member, now, mode, words):
    serve(world, private=False)
    for name in ("agent.sock", "control.sock"):
        os.chown(world.dir / name, 0, 4242)
        (world.dir / name).chmod(mode)
    found = doctor(world, "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", *(["--groups", now] if now else ["--clear-groups"]),
                   mounts=GROUPS.format(dir=world.dir) % member)
    if words is None:
        found.one("daemon", "ok")
        return
    for name in ("agent.sock", "control.sock"):
        found.one(name, "bad", f"{name} may not be opened by nobody", words)
    assert found.of("daemon") == [] and found.of("runtime directory") == [], "one cause, said once"


@needs_root
def test_only_the_jobs_socket_is_closed(world):
    serve(world, private=False)
    (world.dir / "agent.sock").chmod(0o600)
    doctor(world, user=NOBODY).one("agent.sock", "bad", "mode 0600", "SocketMode=0666")


def test_no_daemon_and_one_that_was_killed(world):
    found = doctor(world)
    found.one("daemon", "note", "^none runs$", "protonctl run")
    serve(world)
    doctor(world).one("daemon", "ok", rf"pid {world.daemon.pid}, in {world.dir}")
    world.stop(signal.SIGKILL)
    doctor(world).one("daemon", "note", f"the sockets in {world.dir} belong to one that was killed")
    (world.dir / "control.sock").unlink()
    (world.dir / "control.sock").write_text("")
    assert doctor(world).of("daemon", "ok") == []


def test_what_the_daemon_complains_of(world):
    serve(world)
    assert doctor(world).of("daemon says") == []
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(str(world.dir / "agent.sock"))
        s.send(b"x" * 100)
        s.settimeout(WAIT)
        while s.recv(65536):
            pass
    doctor(world).one("daemon says", "note", "1 connections were refused", "journalctl -u protond")
    assert "event=refused" in world.log(), "as the mend says"


# --- the database -------------------------------------------------------------------------------

def test_a_database_that_others_read(world):
    serve(world)
    world.stop()
    doctor(world).one("database", "ok", str(world.db))
    world.db.chmod(0o644)
    mend(doctor(world).one("database", "note", "can be read by others", "^chmod 600 "))
    assert doctor(world).of("database", "note") == []


def test_a_database_that_is_damaged(world):
    serve(world)
    world.job().say("repeat 3 a")
    world.stop()
    whole = world.db.read_bytes()
    doctor(world).one("database", "ok")
    middle = bytearray(whole)
    middle[4096 * 3:4096 * 8] = b"\xa5" * (4096 * 5)
    for content, words in ((whole[:9000], "; `protonview recover "), (whole[:-4096], "; `protonview recover "),
                           (b"hello " * 100, "not a database"), (bytes(middle), "; `protonview recover ")):
        world.db.write_bytes(content)
        doctor(world).one("database", "bad", f"^{world.db} .*{words}", "move it away")
    world.db.write_bytes(b"")
    assert doctor(world).of("database", "bad") == []


@needs_root
def test_a_database_of_another_user(world):
    world.db.write_bytes(b"")
    os.chown(world.db, NOBODY, NOBODY)
    mend(doctor(world).one("database", "bad", f"belongs to uid {NOBODY}", "^chown 0 "))
    assert doctor(world).of("database", "bad") == []
    serve(world, private=False)
    assert doctor(world, user=NOBODY).of("database", "bad") == [], "a service's is not a user's to write"


@needs_mounts
@pytest.mark.parametrize("mount, what, words", [
    ("mount --bind {0} {0} && mount -o remount,ro,bind {0}", "database", "Read-only file system"),
    ("mount -t tmpfs -o size=1m none {0}", "database's disk", r"only 1\.0 MiB free")])
def test_a_database_that_cannot_grow(world, mount, what, words):
    folder = world.dir / "data"
    folder.mkdir()
    doctor(world, env={"PROTOND_DB": str(folder / "new/x.db")}, mounts=mount.format(folder)).one(what, "bad", words)


@needs_mounts
@pytest.mark.parametrize("size, large, words", [
    (1, 0, "^free space on its disk$"),
    (1, 100, r"^free 4 MiB on its disk; then `protonctl prune --max-size 50M` frees more$"),
    (16, 100, "^`protonctl prune --max-size 50M`, or free space otherwise$")])
def test_room_for_the_database(world, size, large, words):
    """What it says to do can be done: a prune needs room itself, and a small database has none to give."""
    folder = world.dir / "data"
    folder.mkdir()
    doctor(world, env={"PROTOND_DB": str(folder / "x.db")}, mounts=f"mount -t tmpfs -o size={size}m none {folder} && "
           f"truncate -s {large}M {folder}/x.db").one("database's disk", "bad", "only", words)


# --- what is installed, and what runs -----------------------------------------------------------

@pytest.fixture
def other(tmp_path):
    """An installation of another version, with what this one has of commands and libraries."""
    lib = tmp_path / "other/lib"
    lib.mkdir(parents=True)
    for name in ("libprotond.so.0", "libprotond-agent.so.0"):
        shutil.copy(BUILD / "lib" / name, lib)
    engine = (lib / "libprotond-agent.so.0")
    version = subprocess.run([str(BUILD / "bin/protonctl"), "--version"], capture_output=True, text=True).stdout.split()[1]
    at = engine.read_bytes()
    assert version.encode() + b"\0" in at
    engine.write_bytes(at.replace(version.encode() + b"\0", re.sub(rb"\d+$", b"9", version.encode()) + b"\0"))
    return lib


def test_the_loader_takes_another_version(world, other):
    assert doctor(world).of("loader") == [], "the one beside"
    found = doctor(world, env={"LD_LIBRARY_PATH": str(other)})
    found.one("loader", "note", rf"takes {other}/libprotond.so.0, version \d+\.\d+\.9", "ldconfig -p")
    shutil.copy(BUILD / "lib/libprotond-agent.so.0", other)
    doctor(world, env={"LD_LIBRARY_PATH": str(other)}).one("loader", "ok")


@pytest.mark.parametrize("lacks, what, words", [
    ("", "libprotond-agent.so.0", r"version \d+\.\d+\.9, protonctl is"),
    ("text", "libprotond-agent.so.0", "cannot be loaded: .*(file too short|invalid ELF header)"),
    ("lib", "libprotond.so.0", "not found beside protonctl"),
    ("bin/protond", "protond", "not found beside protonctl")])
def test_an_installation_that_is_not_whole(world, other, lacks, what, words):
    top = other.parent
    (top / "bin").mkdir()
    for name in ("protonctl", "protonview", "protond"):
        shutil.copy(BUILD / "bin" / name, top / "bin")
    if lacks == "text":
        (other / "libprotond-agent.so.0").write_text("not a library")
    elif lacks:
        (shutil.rmtree if (top / lacks).is_dir() else os.unlink)(top / lacks)
    found = doctor(world, program=top / "bin/protonctl", env={"LD_LIBRARY_PATH": None})
    found.one(what, "bad", words, "make install")
    assert found.of("protonview", "ok")


@needs_mounts
def test_the_loader_does_not_know_of_it(world):
    if any((pathlib.Path(d) / "libprotond.so.0").exists() for d in ("/lib", "/usr/lib", "/usr/local/lib")):
        pytest.skip("protond is installed here")
    found = doctor(world, mounts=f"mount --bind {BUILD} /usr/local", program="/usr/local/bin/protonctl",
                   env={"LD_LIBRARY_PATH": None})
    found.one("loader", "note", "does not find libprotond.so.0 by itself", "ldconfig")


# --- the kernel and limits ----------------------------------------------------------------------

def test_the_kernel(world):
    doctor(world).one("kernel", "ok", "^Linux " + re.escape(os.uname().release))


def refuse(number, errno):
    """In the child: this system call fails, as under a container's profile."""
    ld_abs, jeq, ret = 0x20, 0x15, 0x06
    program = b"".join(struct.pack("HBBI", *i) for i in (
        (ld_abs, 0, 0, 0), (jeq, 0, 1, number), (ret, 0, 0, 0x00050000 | errno), (ret, 0, 0, 0x7fff0000)))

    class Fprog(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
    libc, filters = ctypes.CDLL(None, use_errno=True), Fprog(4, program)

    def apply():
        if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(filters), 0, 0) != 0:
            os._exit(99)
    return apply


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls")
@pytest.mark.parametrize("number, errno, words", [
    (319, 38, "memfd_create, .*: Function not implemented"), (434, 1, "pidfd_open, .*: Operation not permitted")])
def test_calls_that_a_container_may_not_make(world, number, errno, words):
    r = subprocess.run(["true"], preexec_fn=refuse(number, errno))
    if r.returncode == 99:
        pytest.skip("no seccomp filter may be set here")
    found = doctor(world, preexec_fn=refuse(number, errno))
    found.one("kernel", "bad", words, "Linux 5.3 or later; in a container, a seccomp profile")


@needs_mounts
def test_no_inotify(world):
    found = doctor(world, "unshare", "-r", "sh", "-ec", 'echo 0 > /proc/sys/user/max_inotify_instances; exec "$@"', "sh")
    found.one("kernel", "note", "inotify, .* every 30 s only: ", "fs.inotify.max_user_instances")


@pytest.mark.parametrize("files, grade", [(40, "note"), (32, "bad"), (1056, None)])
def test_descriptors(world, files, grade):
    """Of the daemon that runs, else what one would get."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    found = doctor(world, preexec_fn=limit)
    if grade is None:
        assert found.of("open files") == []
    else:
        found.one("open files", grade, rf"{files} descriptors: enough for a daemon with {(files - 32) // 4} jobs", "ulimit -Hn")
    serve(world)
    assert doctor(world, preexec_fn=limit).of("open files") == [], "this daemon has its own"
    resource.prlimit(world.daemon.pid, resource.RLIMIT_NOFILE, (432, 432))
    doctor(world).one("open files", "note", "432 descriptors: enough for a daemon with 100 jobs", "LimitNOFILE=")


@pytest.mark.parametrize("mib, grade, words", [(1, "bad", "too little for a ring"), (32, "note", "fewer lanes"), (80, None, "")])
def test_size_of_files(world, mib, grade, words):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (mib << 20, mib << 20))
    found = doctor(world, preexec_fn=limit)
    if grade is None:
        assert found.of("file size") == []
    else:
        found.one("file size", grade, words, "ulimit -f unlimited")
    serve(world)
    job = world.job(preexec_fn=limit)
    assert job.say("start s").startswith("0") == (grade != "bad"), "and so it is"


# --- containers ---------------------------------------------------------------------------------

# A root of its own with all of this one below it, but for /.dockerenv.
CHROOT = """
    mount --make-rprivate /
    mkdir {dir}/top
    {top}
    for f in /*; do
        if [ -L "$f" ]; then cp -P "$f" {dir}/top/; elif [ -d "$f" ]; then mkdir "{dir}/top$f"; mount --rbind "$f" "{dir}/top$f"; fi
    done
    {more}
    exec chroot {dir}/top "$@"
"""
TMPFS = "mount -t tmpfs none {dir}/top"


@needs_root
@needs_mounts
@pytest.mark.parametrize("top, more, by", [
    (TMPFS, "", None),
    (TMPFS, "touch {dir}/top/.dockerenv", "/.dockerenv"),
    (TMPFS, "mount -t tmpfs none {dir}/top/run; touch {dir}/top/run/.containerenv", "/run/.containerenv"),
    (TMPFS, "echo 0::/kubepods/besteffort/pod1 > {dir}/cgroup; mount --bind {dir}/cgroup {dir}/top/proc/1/cgroup", "/proc/1/cgroup"),
    ("mkdir {dir}/a {dir}/b {dir}/c; mount -t tmpfs none {dir}/c; mkdir {dir}/c/up {dir}/c/work;"
     " mount -t overlay -o lowerdir={dir}/a:{dir}/b,upperdir={dir}/c/up,workdir={dir}/c/work none {dir}/top", "",
     "/ is an overlay")], ids=["none", "docker", "podman", "cgroup", "overlay"])
def test_a_container(world, top, more, by):
    at = world.home / "c"
    at.mkdir()
    mounts = CHROOT.format(dir=at, top=top.format(dir=at), more=more.format(dir=at))
    if "overlay" in top:
        probe = "mkdir {0}/a {0}/b; mount -t overlay -o lowerdir={0}/a:{0}/b none {0}".format(at)
        if subprocess.run(["unshare", "-m", "sh", "-ec", probe], capture_output=True).returncode != 0:
            pytest.skip("no overlay may be mounted here")
        (at / "a").rmdir()
        (at / "b").rmdir()
    found = doctor(world, mounts=mounts)
    if by is None:
        assert found.of("container") == []
    else:
        found.one("container", "note", re.escape(f"({by}), and no daemon can be reached"), "-v /run/protond:/run/protond")


def in_a_container():
    return pathlib.Path("/.dockerenv").exists()


@pytest.mark.skipif(not in_a_container(), reason="no container here")
def test_a_daemon_in_the_same_container(world):
    serve(world)
    found = doctor(world)
    found.one("container", "ok", "the daemon is inside, too")
    assert not found.of("pid namespace") and not found.of("user namespace")


def test_a_daemon_that_another_process_listens_for(world):
    """Then the kernel says that this one is who answers."""
    m = Manager(world)
    m.start()
    assert m.told() == "READY=1"
    found = doctor(world)
    found.one("daemon", "ok", rf"pid {world.daemon.pid}, in {world.dir}")
    found.one("runtime directory", "ok")
    assert not found.of("pid namespace") and not found.of("user namespace")
    resource.prlimit(world.daemon.pid, resource.RLIMIT_NOFILE, (432, 432))
    doctor(world).one("open files", "note", "432 descriptors")


@needs_root
@needs_mounts
def test_a_daemon_outside_of_the_container(world):
    serve(world)
    found = doctor(world, "unshare", "-p", "-f")
    found.one("pid namespace", "ok", "the daemon is outside")
    assert not found.of("user namespace") and not found.of("runtime directory", "note")
    if in_a_container():
        found.one("container", "ok", "the daemon is outside")
    job = world.job("unshare", "-p", "-f")
    job.say("start s")
    (listed,) = world.ctl_json("jobs")["jobs"]
    assert os.readlink(f"/proc/{listed['pid']}/exe") == str(BUILD / "tests/job"), "its number out here, as it says"


@needs_root
@needs_mounts
def test_a_daemon_in_another_container(world):
    with open(world.home / "protond.log", "ab") as log:
        outer = subprocess.Popen(["unshare", "-p", "-f", "--kill-child", str(BUILD / "bin/protond"), "--private", "--foreground"],
                                 env=world.env, stdout=log, stderr=log)
    try:
        until("control.sock answers", world.answers)
        doctor(world).one("pid namespace", "note", r"its pid is 1 there, \d{2,} here\)", "--pid=host")
        job = world.job()
        job.say("start s")
        assert [j["pid"] for j in world.ctl_json("jobs")["jobs"]] == [0], "it cannot tell them apart"
    finally:
        outer.kill()
        outer.wait(WAIT)


@needs_root
@needs_mounts
def test_a_user_namespace(world):
    world.env["PROTOND_AUTO_SESSION"] = "off"  # nothing is wanted of the job before it asks
    serve(world)
    found = doctor(world, "unshare", "-U")
    found.one("user namespace", "bad", r"outside this one \(its uid is 0 there, 65534 here\)", "--userns=host")
    job = world.job("unshare", "-U")
    assert job.say("start s").startswith("-74 "), "the daemon does refuse its ring"
    assert doctor(world, "unshare", "-U", "-r").of("user namespace") == [], "uid 0 is uid 0 there"
    job = world.job("unshare", "-U", "-r")
    assert job.say("start s").startswith("0"), "and is served"


@needs_another_user
@needs_mounts
def test_a_user_namespace_in_which_a_user_is_the_same(world):
    """Though root, who the daemon is, is nobody there."""
    serve(world, private=False)
    before = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups", "unshare", "-U", "--map-user", str(SOMEBODY)]
    assert doctor(world, *before).of("user namespace") == []
    job = world.job(*before)
    assert job.say("start s").startswith("0"), "and is served"


@needs_root
@needs_mounts
def test_a_directory_that_has_two_names(world):
    serve(world)
    at = world.home / "run"
    at.mkdir()
    mounts = f"mount --bind {world.dir} {at}"
    env = {"PROTOND_RUNTIME_DIR": str(at)}
    mounts += "\nmount -t tmpfs none /dev/shm"
    assert doctor(world, mounts=mounts, env=env).of("runtime directory", "note") == []
    job = world.job("unshare", "-m", "sh", "-ec", mounts + '\nexec "$@"', "sh", env=env)
    assert job.say("start s").startswith("0")
    assert len(list(world.dir.glob("rings/*.ring"))) == 1, "its ring has a name for both"


# --- logout -------------------------------------------------------------------------------------

@needs_mounts
def test_a_user_service_without_lingering(world):
    def ends():
        return [f for f in doctor(world).of("logout") if "user service" in f["text"]]
    assert ends() == []
    wants = world.home / ".config/systemd/user/default.target.wants"
    wants.mkdir(parents=True)
    (wants / "protond.service").symlink_to("/usr/lib/systemd/user/protond.service")  # as systemctl does; it may dangle
    user = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
    if not pathlib.Path("/var/lib/systemd/linger", user).exists():
        doctor(world).one("logout", "note", "ends with the last logout", f"^loginctl enable-linger {user}$")
    linger = f"mount -t tmpfs none /var/lib; mkdir -p /var/lib/systemd/linger; touch /var/lib/systemd/linger/{user if ROOT else 'root'}"
    assert [f for f in doctor(world, mounts=linger).of("logout") if "user service" in f["text"]] == []


LOGIND = """
    mount -t tmpfs none /run
    mkdir -p /run/systemd/users /run/systemd/logind.conf.d
    mount -t tmpfs none /etc/systemd
    mkdir /etc/systemd/logind.conf.d
    echo '[Login]' > /etc/systemd/logind.conf
"""


@needs_root
@needs_mounts
@pytest.mark.parametrize("more, said", [
    ("", {"RemoveIPC"}),
    ("echo '#RemoveIPC=no' >> /etc/systemd/logind.conf", set()),  # what is compiled in
    ("echo 'RemoveIPC=no' >> /etc/systemd/logind.conf", set()),
    ("echo ' RemoveIPC = 0' > /etc/systemd/logind.conf.d/x.conf", set()),
    ("echo RemoveIPC=no > /etc/systemd/logind.conf; echo RemoveIPC=yes > /run/systemd/logind.conf.d/a.conf", {"RemoveIPC"}),
    ("echo RemoveIPC=no > /run/systemd/logind.conf.d/b.conf; echo RemoveIPC=yes > /etc/systemd/logind.conf.d/a.conf", set()),
    ("echo RemoveIPC=yes > /run/systemd/logind.conf.d/a.conf; echo RemoveIPC=no > /etc/systemd/logind.conf.d/a.conf", set()),
    ("echo KillUserProcesses=yes > /etc/systemd/logind.conf.d/x.conf", {"RemoveIPC", "KillUserProcesses"}),
    ("rmdir /run/systemd/users", set()),  # no logind here
    (f"mount -t tmpfs none /var/lib; mkdir -p /var/lib/systemd/linger; touch /var/lib/systemd/linger/{SOMEBODY}", set()),
])
def test_what_logind_takes_away(world, more, said):
    os.chown(world.dir, SOMEBODY, SOMEBODY)
    env = {"PROTOND_DB": str(world.dir / "x.db"), "HOME": str(world.dir)}
    found = doctor(world, mounts=LOGIND + more, user=SOMEBODY, env=env)
    assert {re.search(r"\((\w+)\)", f["text"]).group(1) for f in found.of("logout", "note")} == said
    assert all(f"loginctl enable-linger {SOMEBODY}" in f["mend"] for f in found.of("logout"))
    if more == "":
        assert doctor(world, mounts=LOGIND).of("logout") == [], "a system's user has no such trouble"


# --- the GPU and other tools --------------------------------------------------------------------

@needs_mounts
@pytest.mark.parametrize("value, user, grade, words", [
    (0, None, "ok", "open to all users"), (1, None, "ok", "you are one"), (1, NOBODY, "note", "administrators only")])
def test_counters(world, value, user, grade, words):
    if not ROOT:
        pytest.skip("other users need root")
    mounts = f"""
        mount -t tmpfs none /proc/driver
        mkdir /proc/driver/nvidia
        printf 'ResmanDebugLevel: 4294967295\\nRmProfilingAdminOnly: {value}\\nRmMsg: ""\\n' > /proc/driver/nvidia/params
    """
    doctor(world, mounts=mounts, user=user).one(
        "GPU counters", grade, words, "NVreg_RestrictProfilingToAdminUsers=0" if grade == "note" else "")


def library(path, code):
    flags = [f for f in FLAGS if not f.startswith(("-fsanitize", "-M"))]
    path.with_suffix(".c").write_text(code)
    subprocess.run([flags[0], "-shared", "-fPIC", "-o", path, path.with_suffix(".c")], check=True)
    return str(path)


@pytest.mark.parametrize("code, grade, words", [
    ("int cuptiGetVersion(unsigned *v) { *v = 26; return 0; }", "ok", "version 26, "),
    ("int cuptiGetVersion(unsigned *v) { *v = 26; return 15; }", "bad", "it does not work"),
    ("int other;", "bad", "it does not work"),
    ("#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); }", "bad", "it ends the process"),
    (None, "bad", "cannot open shared object file")])
def test_a_cupti(world, code, grade, words):
    """One that was asked for is the only one that is taken."""
    path = library(world.home / "libcupti.so", code) if code else str(world.home / "libcupti.so")
    doctor(world, env={"PROTOND_CUPTI_PATH": path}).one("CUPTI", grade, words, "PROTOND_CUPTI_PATH" if grade == "bad" else "")


def test_a_driver(world):
    code = "int cuDriverGetVersion(int *v) { *v = 12040; return 0; }"
    lib = world.home / "lib"
    lib.mkdir()
    library(lib / "libcuda.so.1", code)
    path = f"{lib}:{world.env['LD_LIBRARY_PATH']}"
    doctor(world, env={"LD_LIBRARY_PATH": path}).one("driver", "ok", "CUDA 12.4")
    library(lib / "libcuda.so.1", "")
    doctor(world, env={"LD_LIBRARY_PATH": path}).one("driver", "note", "it does not work", "install the NVIDIA driver")


@pytest.mark.parametrize("value, grade, words", [
    ("/opt/nsight/lib.so", "bad", "names another tool: /opt/nsight/lib.so"),
    ("/gone/libprotond.so.0", "bad", "/gone/libprotond.so.0: No such file"),
    (f"{BUILD}/lib/libprotond.so.0", "ok", "libprotond.so.0")])
def test_injected_libraries(world, value, grade, words):
    names = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
    found = doctor(world, env=dict.fromkeys(names, value))
    for name in names:
        found.one(name, grade, re.escape(words))


@pytest.mark.preload
def test_preloaded_libraries(world):
    doctor(world, env={"LD_PRELOAD": "/opt/other.so"}).one("LD_PRELOAD", "note", "/opt/other.so", "another profiler")
    doctor(world, env={"LD_PRELOAD": f"{BUILD}/lib/libprotond.so.0"}).one("LD_PRELOAD", "ok")


def test_wrong_settings(world):
    found = doctor(world, env={"PROTOND_GPU": "xx", "PROTOND_LANES": "3x"})
    found.one("variables", "bad", "PROTOND_GPU is 'xx'; it must be one of: none armed on", "correct it")
    found.one("settings", "bad", "PROTOND_LANES: lanes = '3x' is not a whole number", "no daemon starts with it")
    r = world.tool("protond", "--check", env={"PROTOND_RUNTIME_DIR": "here"}, check=False)
    assert r.returncode == 2 and "runtime_dir = 'here' does not begin with /" in r.stderr
    found = doctor(world)
    assert found.of("variables") == found.of("settings") == []


def test_variables_of_other_tools(world):
    words = {"PROTOND_DISABLE": "libprotond does nothing", "TRITON_PROTON_DISABLE": "`import protond` does nothing",
             "NSYS_PROFILING_SESSION_ID": "is Nsight Systems'", "NSYSDK_X": "is Nsight Systems'",
             "NV_NSIGHT_INJECTION_PORT_BASE": "is Nsight Compute's", "NVPROF_ID": "is nvprof's",
             "COMPUTE_PROFILE": "the driver's old profiler", "KINETO_USE_DAEMON": "torch's profiler",
             "KINETO_CONFIG": "torch's profiler"}
    found = doctor(world, env=dict.fromkeys(words, "1"))
    for name, text in words.items():
        found.one("variables", "note", f"^{name} .*{re.escape(text)}")
    assert len(found.of("variables")) == len(words)
    for off in ({name: "0" for name in words}, {name: "" for name in words}, {"NVPROF_IDLE": "1", "XNSYS_ID": "1"}):
        assert doctor(world, env=off).of("variables") == []


DEAD = """mount -t tmpfs none /run; mount -t tmpfs none /dev/shm; mkdir -m 755 /run/protond
python3 - <<'END'
import socket
for kind, name in (socket.SOCK_SEQPACKET, "agent"), (socket.SOCK_STREAM, "control"):
    socket.socket(socket.AF_UNIX, kind).bind(f"/run/protond/{name}.sock")
END
chmod 666 /run/protond/*.sock; echo ready; exec cat"""


@needs_root
@needs_mounts
def test_a_dead_services_sockets_hide_no_daemon(world):
    """A job and the tools find the user's own behind it, and again when that one has come anew."""
    world.env["PROTOND_RUNTIME_DIR"] = ""  # as if it were not set
    holder = subprocess.Popen(["unshare", "-m", "sh", "-ec", DEAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    inside = ["nsenter", "-t", str(holder.pid), "-m"]

    def ctl(*args):
        return subprocess.run([*inside, BUILD / "bin/protonctl", *args], env=world.env, capture_output=True, text=True)

    def serve_inside():
        log = open(world.home / "protond.log", "ab")
        world.daemon = subprocess.Popen([*inside, BUILD / "bin/protond", "--private", "--foreground"],
                                        env=world.env, stdout=log, stderr=log)
        until("it answers", lambda: ctl("status").returncode == 0)

    def records(life):  # what is said before its gate is up is not recorded
        job.say(f"repeat 1 {life}")
        return life in ctl("top", "--once", "s").stdout
    try:
        assert holder.stdout.readline() == "ready\n"
        r = ctl("status")
        assert r.returncode == 3 and "no protond runs in /run/protond" in r.stderr
        job = world.job(*inside)
        assert job.say("start mine").startswith("-107 no protond is running here"), "it did wait for the service's"
        serve_inside()
        assert ctl("start", "s", "--all").returncode == 0
        until("the job is found, and records", lambda: records("first"))
        job.say("repeat 7 mine")
        world.daemon.kill()
        world.daemon.wait(WAIT)
        job.say("repeat 5 mine")
        serve_inside()
        until("the job is found again", lambda: records("second"))
        assert ctl("finalize", "s").returncode == 0
        assert world.cells("s")["/mine"][0] == 12
    finally:
        if world.daemon is not None:
            world.daemon.kill()
            world.daemon.wait(WAIT)
            world.daemon = None
        holder.stdin.close()
        holder.wait(WAIT)


@pytest.mark.parametrize("fake, grade, text, mend", [("", "ok", r"^1 GPU, 1 with activity \(GPM\), by /.*/protond-device$", "^$"), ("mig", "ok", "^1 GPU, 0 with activity", "^$"),
                                                      ("mig", "note", "split by MIG", "^nothing; "), ("none", "note", "^NVML finds no GPU", "--gpus all")])
def test_what_reads_gpus(world, fake, grade, text, mend):
    doctor(world, env=with_nvml(fake)).one("GPU readings", grade, text, mend)


def test_no_helper_that_reads_gpus(world, tmp_path):
    shutil.copytree(BUILD / "bin", tmp_path / "bin", ignore=lambda *_: ["protond-device"])
    doctor(world, program=tmp_path / "bin/protonctl").one("GPU readings", "note", "not beside protonctl", "make install")
