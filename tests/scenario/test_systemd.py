# SPDX-License-Identifier: MIT. Under a real systemd: process 1 of namespaces, on an overlay, gone when they are.
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import NOWHERE, WAIT, World, until
from test_install import ENV, REPO, call, make, pytestmark as plain_build

DOC = (REPO / "docs/install.md").read_text()
USER = "protond-tester"
PROGRAMS = ("dbus-daemon", "journalctl", "loginctl", "nsenter", "setpriv", "systemctl", "unshare", "useradd")
MISSING = [p for p in (*PROGRAMS, "/usr/lib/systemd/systemd") if not shutil.which(p)]
pytestmark = [plain_build, pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and overlays need root"),
              pytest.mark.skipif(bool(MISSING), reason=f"not here: {' '.join(MISSING)}")]

# In a cgroup of its own; the whole ends with who started it.
ENTER = """
echo $$ > "$1/cgroup.procs"
exec setpriv --pdeathsig KILL --bounding-set=-sys_time,-sys_module,-sys_rawio unshare --fork --kill-child \
    --propagation private --mount --pid --cgroup --ipc --uts --net sh -euc "$2" boot "$3"
"""
# Nothing that is written is seen outside, and of the units here only those run that are asked for.
BOOT = """
mount -t tmpfs -o mode=755 tmpfs machine
cd machine
mkdir all work
cp -a ../installed new
mount -t overlay overlay -o lowerdir=/,upperdir=new,workdir=work all
cd all
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for folder in dev run tmp; do mount -t tmpfs -o mode=755 tmpfs $folder; done
for name in full null random tty urandom zero; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir -m 1777 dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mkdir -p "./$1"
mount --bind "$1" "./$1"
rm -rf etc/systemd/system/* etc/systemd/user/* usr/lib/systemd/system/*.wants usr/lib/systemd/user/*.wants
printf '[Unit]\\nRequires=basic.target systemd-journald.service systemd-logind.service\\nAfter=basic.target\\n' \\
    > etc/systemd/system/test.target
pivot_root . mnt
umount -l mnt
exec env -i PATH=/usr/local/bin:/usr/bin:/usr/sbin container=other \
    /usr/lib/systemd/systemd --unit=test.target --log-target=journal --show-status=no
"""


def own_cgroup():
    """Of version 2, wherever that is mounted."""
    mount = re.search(r" / (\S+) [^-]*- cgroup2 ", pathlib.Path("/proc/self/mountinfo").read_text())
    ours = re.search("^0::(.*)$", pathlib.Path("/proc/self/cgroup").read_text(), re.M)
    if not mount or not ours:
        pytest.skip("no cgroup2 is mounted here")
    return pathlib.Path(mount.group(1) + ours.group(1))


class Machine(World):
    """Runs systemd, and has protond as docs/install.md says."""

    def __init__(self, path):
        self.home, self.jobs, self.env, self.init = path, [], ENV, None
        make("install", f"DESTDIR={path}/installed", "PREFIX=/usr/local")
        (path / "machine").mkdir()
        try:
            self.cgroup = own_cgroup() / f"protond-test-{os.getpid()}"
            self.cgroup.mkdir()
        except OSError as e:
            pytest.skip(f"no cgroup can be made here: {e}")
        self.boot = subprocess.Popen(["sh", "-euc", ENTER, "enter", self.cgroup, BOOT, REPO], cwd=path, text=True,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def is_up(self):
        if self.boot.poll() is not None:
            pytest.skip("no systemd starts here: " + self.boot.stderr.read().strip())
        try:  # until it is systemd, its root is ours
            child = pathlib.Path(f"/proc/{self.boot.pid}/task/{self.boot.pid}/children").read_text().strip()
            self.init = child if pathlib.Path(f"/proc/{child}/comm").read_text() == "systemd\n" else None
        except OSError:
            return False
        return self.init and self.call("systemctl", "is-system-running", check=False).stdout == "running\n"

    def to_be(self, user):
        return ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--reset-env", "env",
                f"XDG_RUNTIME_DIR=/run/user/{self.uid}") if user else ()

    def inside(self, *command, user=None):
        return ["nsenter", "-t", self.init, "-a", "env", *(f"--unset={k}" for k in NOWHERE), *self.to_be(user), *map(str, command)]

    def call(self, *command, user=None, **kwargs):
        return call(*self.inside(*command, user=user), **kwargs)

    def tool(self, name, *args, **kwargs):
        return self.call(name, *args, **kwargs)

    def show(self, key, unit="protond"):
        return self.call("systemctl", "show", "-P", key, unit).stdout.strip()

    def becomes(self, state, unit="protond"):
        until(f"{unit} becomes {state}", lambda: self.show("ActiveState", unit) == state, interval=0.05)

    def starts_again(self, pid):
        until("systemd has started it again", lambda: self.show("MainPID") not in (pid, "0"), interval=0.05)
        self.becomes("active")

    def new_job(self, user, *before):
        job = self.job(*self.inside(*before, *self.to_be(user)))
        job.say(f"start own{len(self.jobs)}")
        return job

    def attached(self, n, **kwargs):
        def jobs():
            r = self.ctl("jobs", "--json", check=False, **kwargs)
            return r.returncode == 0 and len(json.loads(r.stdout)["data"]["jobs"]) == n
        until("the jobs are back", jobs, interval=0.05)

    def scopes(self, session, **kwargs):
        rows = json.loads(self.view("tree", session, "--json", **kwargs).stdout)["data"]["rows"]
        return {r[4]: r[-1] for r in rows if r[3] == "scope"}

    def journal(self):
        lines = self.call("journalctl", "--unit=protond", "--output=json").stdout.splitlines()
        return [json.loads(line) for line in lines]

    def sql(self, query, *args):  # nothing outside can name the file
        script = """import json, sqlite3, sys
db = sqlite3.connect("file:/var/lib/protond/protond.db?mode=ro", uri=True)
print(json.dumps(db.execute(sys.argv[1], sys.argv[2:]).fetchall()))"""
        return json.loads(self.call("/usr/bin/python3", "-c", script, query, *args).stdout)

    def close(self):
        for j in self.jobs:
            j.kill()
        if self.init:
            (self.home / "journal").write_text(self.call("journalctl", check=False).stdout)
        self.boot.kill()
        self.boot.wait(WAIT)
        until("nothing of it is left", lambda: "populated 0" in (self.cgroup / "cgroup.events").read_text())
        for folder, _, _ in os.walk(self.cgroup, topdown=False):
            os.rmdir(folder)
        shutil.rmtree(self.home / "installed")


@pytest.fixture(scope="module")
def booted(tmp_path_factory):
    m = Machine(tmp_path_factory.mktemp("booted"))
    try:
        try:
            until("systemd is up", m.is_up, interval=0.05)
        except AssertionError:  # whatever that is, no unit of ours runs in there yet
            pytest.skip("systemd starts here, and does not get ready")
        m.call("useradd", "--create-home", USER)
        m.uid = m.call("id", "-u", USER).stdout.strip()
        m.call("systemd-tmpfiles", "--create", "/usr/local/lib/tmpfiles.d/protond.conf")
        assert m.call("stat", "-c", "%a %U", "/run/protond").stdout == "755 root\n"
        for line in re.findall("^sudo (system.*)$", DOC, re.M):
            m.call("sh", "-ec", line.replace("sudo ", ""))
        yield m
    finally:
        m.close()


@pytest.fixture
def machine(booted):
    booted.call("systemctl", "start", "protond.socket", "protond.service")
    yield booted
    while booted.jobs:
        booted.jobs.pop().quit()


def test_it_runs_as_the_document_says(machine):
    assert machine.call("systemctl", "is-enabled", "protond.socket", "protond.service").stdout == "enabled\n" * 2
    assert "active (running)" in machine.call("systemctl", "status", "protond").stdout
    status = machine.ctl_json("status")
    assert (status["runtime_dir"], status["db"]) == ("/run/protond", "/var/lib/protond/protond.db")
    for user in (None, USER):
        assert not re.search("^bad", machine.ctl("doctor", user=user).stdout, re.M)
    level = machine.call("systemd-analyze", "security", "protond.service").stdout.splitlines()[-1]
    assert f": {re.search('`systemd-analyze security`: ([0-9.]+)', DOC).group(1)} " in level

    pid = machine.show("MainPID")
    has = dict(re.findall(r"^(\w+):\s*(.*)$", machine.call("cat", f"/proc/{pid}/status").stdout, re.M))
    assert (int(has["CapEff"], 16).bit_count(), has["NoNewPrivs"], has["Seccomp"]) == (1, "1", "2")
    ours, its = (machine.call("readlink", f"/proc/{p}/ns/net").stdout for p in ("1", pid))
    assert ours != its
    folders = "/ /etc /usr /home /root /var /var/lib /run /dev /dev/shm /sys/fs/cgroup /run/protond /var/lib/protond"
    script = f"for d in {folders}; do [ ! -w $d ] || echo $d; done"
    assert machine.call("nsenter", "-t", pid, "-m", "sh", "-c", script).stdout == "/run/protond\n/var/lib/protond\n"


def test_the_group_sees_all(machine):
    machine.ctl("start", "roots", "--all")
    seen = []
    for change in ("--add", "--delete"):
        seen.append("roots" in machine.ctl("sessions", user=USER).stdout)
        machine.call("gpasswd", change, USER, "protond")
    assert seen == [False, True]
    machine.ctl("finalize", "roots")


def test_the_first_client_starts_it(machine):
    for first in (lambda: machine.ctl("status", user=USER), lambda: machine.new_job(USER)):
        machine.call("systemctl", "stop", "protond.service")
        assert machine.show("ActiveState") == "inactive"
        first()
        assert machine.show("ActiveState") == "active"


def hidden(folder="/run/protond"):
    """A job that sees no file there."""
    return ("unshare", "--mount", "sh", "-ec", f'mount -t tmpfs -o mode=755 tmpfs {folder}/rings; exec "$@"', "sh")


def repeat_while(machine, jobs, want, *how):
    going = subprocess.Popen(machine.inside("systemctl", *how), stderr=subprocess.DEVNULL)
    for name, job in jobs.items():
        scope = f"{name}-{len(want)}"
        job.say(f"repeat 1000 {scope}")
        want[scope] = 1000
    assert going.wait(WAIT) == 0


def kept(machine, n):
    until(f"{n} rings are kept", lambda: machine.show("NFileDescriptorStore") == str(n), interval=0.05)


def test_nothing_is_lost_while_it_starts_again(machine):
    jobs = {"here": machine.new_job(USER), "hidden": machine.new_job(USER, *hidden())}
    kept(machine, 2)  # and none of jobs before
    machine.ctl("start", "kept", "--all")
    want = {}
    for _ in range(6):  # more often than systemd allows for in 10 s, unless told otherwise
        repeat_while(machine, jobs, want, "restart", "protond")
    repeat_while(machine, jobs, want, "stop", "protond.socket", "protond.service")
    assert machine.show("ActiveState") == "inactive"
    repeat_while(machine, jobs, want, "start", "protond")
    machine.attached(2)
    machine.ctl("finalize", "kept")
    assert machine.scopes("kept") == want
    kept(machine, 2)
    assert not machine.call("find", "/run/protond/rings", "-name", "*.ring").stdout


def kill_while(machine, jobs, want):
    for name, job in jobs.items():
        job.say(f"repeat 1000 {name}")
        want[name] = want.get(name, 0) + 1000
    pid = machine.show("MainPID")
    repeat_while(machine, jobs, want, "kill", "-s", "KILL", "protond")
    return pid


def test_nothing_is_lost_when_it_is_killed(machine):
    """Rings are kept by systemd, also where their jobs end meanwhile."""
    jobs, want = {"here": machine.new_job(USER), "hidden": machine.new_job(USER, *hidden())}, {}
    machine.ctl("start", "killed", "--all")
    kept(machine, 2)
    for n in range(6):
        if n >= 3:
            jobs[f"ends{n}"] = machine.new_job(USER, *hidden())
        pid = kill_while(machine, jobs, want)
        if n >= 3:
            jobs[f"ends{n}"].quit()
            assert machine.show("MainPID") == "0", "it ended while there was no daemon"
            machine.jobs.remove(jobs.pop(f"ends{n}"))
        machine.starts_again(pid)
    machine.attached(2)
    machine.ctl("finalize", "killed")
    assert machine.scopes("killed") == want
    assert not any(machine.losses("killed").values())
    for job in jobs.values():
        job.quit()
    kept(machine, 0)


def test_one_that_hangs_is_ended_by_the_watchdog(machine):
    sooner = r"mkdir -p $0; printf '[Service]\nWatchdogSec=3\n' > $0/test.conf; systemctl daemon-reload"
    machine.call("sh", "-ec", sooner + "; systemctl restart protond", "/run/systemd/system/protond.service.d")
    job = machine.new_job(USER)
    machine.ctl("start", "hung", "--all")
    pid = machine.show("MainPID")
    machine.call("kill", "-STOP", pid)
    job.say("repeat 1000 hangs")
    machine.starts_again(pid)
    machine.call("systemctl", "revert", "protond.service")
    machine.attached(1)
    machine.ctl("finalize", "hung")
    assert machine.scopes("hung") == {"hangs": 1000}
    assert [m for m in machine.journal() if "Watchdog timeout" in m["MESSAGE"]]


def test_a_folder_that_is_removed_is_made_again(machine):
    job = machine.new_job(USER)
    machine.ctl("start", "moved", "--all")
    pid = machine.show("MainPID")
    machine.call("rm", "-r", "/run/protond")
    job.say("repeat 1000 gone")
    machine.starts_again(pid)
    machine.attached(1)
    machine.ctl("finalize", "moved")
    assert machine.scopes("moved") == {"gone": 1000}


def test_the_journal_has_what_it_says_and_how_grave_it_is(machine):
    machine.call("sh", "-ec", "echo nonsense > /etc/protond.conf")
    machine.call("systemctl", "restart", "protond", check=False)
    until("it failed twice", lambda: int(machine.show("NRestarts")) >= 2, interval=0.05)
    machine.call("rm", "/etc/protond.conf")
    machine.becomes("active")  # it is never given up
    said = {(m["MESSAGE"], m["PRIORITY"]) for m in machine.journal() if m["SYSLOG_IDENTIFIER"] == "protond"}
    assert ("protond: /etc/protond.conf:1: no '=' in 'nonsense'; write key = value", "3") in said
    levels = {re.match("protond: level=([a-z]+) event=", m)[1]: p for m, p in said if "nonsense" not in m}
    assert levels.items() <= {"error": "3", "warn": "4", "info": "6"}.items() and "info" in levels


def test_a_users_own_lasts_without_a_login(machine):
    machine.call("systemctl", "disable", "--now", "protond.socket", "protond.service")
    variables = {f"{k}_INJECTION64_PATH=/usr/local/lib/libprotond.so.0" for k in ("CUDA", "NVTX")}
    for name, to in (("profile.sh", "profile.d/protond.sh"), ("environment.conf", "environment.d/50-protond.conf")):
        machine.call("install", "-D", "-m", "644", f"/usr/local/share/doc/protond/{name}", f"/etc/{to}")
    assert variables <= set(machine.call("sh", "-lc", "env", user=USER).stdout.split("\n"))
    machine.call("loginctl", "enable-linger", USER)
    machine.becomes("active", f"user@{machine.uid}")
    assert variables <= set(machine.call("systemctl", "--user", "show-environment", user=USER).stdout.split("\n"))
    machine.call("systemctl", "--user", "enable", "--now", "protond", user=USER)
    jobs = [machine.new_job(USER), machine.new_job(USER, *hidden(f"/run/user/{machine.uid}/protond"))]
    machine.ctl("start", "mine", "--all", user=USER)
    until("one ring is kept", lambda: machine.call(
        "systemctl", "--user", "show", "-P", "NFileDescriptorStore", "protond", user=USER).stdout == "1\n")
    machine.call("systemctl", "--user", "kill", "-s", "KILL", "protond", user=USER)
    for job, scope in zip(jobs, ("own", "ends")):
        job.say(f"repeat 1000 {scope}")
    jobs[1].quit()
    machine.attached(1, user=USER)
    status = json.loads(machine.ctl("status", "--json", user=USER).stdout)["data"]
    assert (status["runtime_dir"], status["db"]) == (
        f"/run/user/{machine.uid}/protond", f"/home/{USER}/.local/share/protond/protond.db")
    machine.ctl("finalize", "mine", user=USER)
    assert machine.scopes("mine", user=USER) == {"own": 1000, "ends": 1000}
    jobs[0].quit()
    machine.call("loginctl", "disable-linger", USER)
    machine.becomes("inactive", f"user@{machine.uid}")
