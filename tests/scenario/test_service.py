# SPDX-License-Identifier: MIT. As a service: units that systemd takes, its sockets, its watchdog, few privileges.
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess

import pytest

from conftest import BUILD, WAIT, needs_another_user, open_files, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")


def filled_in(name, to):
    """A file of systemd/, as `make install` writes it for the build's folder."""
    text = (ROOT / "systemd" / name).read_text().replace("@PREFIX@", str(BUILD))
    path = to / pathlib.Path(name).name
    path.write_text(text)
    return path


@needs_systemd
def test_units_are_taken_and_hardened(tmp_path):
    units = [filled_in(n, tmp_path) for n in ("protond.service", "protond.socket", "protond-device.socket", "protond-device@.service")]
    r = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True)
    complaints = [line for line in r.stderr.splitlines() if "protond" in line]
    assert r.returncode == 0 and not complaints, r.stderr
    out = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=15", units[0]],
                         capture_output=True, text=True)
    level = float(re.search(r"exposure level for protond.service: ([0-9.]+)", out.stdout).group(1))
    assert out.returncode == 0 and level <= 1.5, out.stdout[-500:]
    out = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=30", units[3]], capture_output=True, text=True)
    assert out.returncode == 0, out.stdout[-500:]
    (tmp_path / "user").mkdir()
    user = filled_in("user/protond.service", tmp_path / "user")
    r = subprocess.run(["systemd-analyze", "verify", "--man=no", "--user", user], capture_output=True, text=True)
    assert not [line for line in r.stderr.splitlines() if "user/protond.service" in line], r.stderr


@needs_systemd
def test_group_and_folder(tmp_path):
    (tmp_path / "etc").mkdir()
    for name in ("sysusers.conf", "tmpfiles.conf"):
        filled_in(name, tmp_path)
    subprocess.run(["systemd-sysusers", f"--root={tmp_path}", tmp_path / "sysusers.conf"], check=True, capture_output=True)
    assert re.search(r"^protond:", (tmp_path / "etc/group").read_text(), re.M)
    text = (tmp_path / "tmpfiles.conf").read_text().replace("root root", "- -")
    (tmp_path / "tmpfiles.conf").write_text(text)
    subprocess.run(["systemd-tmpfiles", f"--root={tmp_path}", "--create", tmp_path / "tmpfiles.conf"], check=True)
    assert (tmp_path / "run/protond").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name, run", [
    ("profile.sh", '. "$1"; env'),
    ("environment.conf", 'set -a; . "$1"; env'),
    # Slurm takes lines of this form and passes over all others.
    ("slurm-task-prolog.sh", r"""eval "$(sh "$1" | grep -Ex 'export [A-Za-z0-9_]+=[^ "'"'"'$]+')"; env""")])
def test_variables_lead_to_the_library(tmp_path, name, run):
    path = filled_in(f"examples/{name}", tmp_path)
    env = {"PATH": os.environ["PATH"]}

    def variables(**more):
        out = subprocess.run(["sh", "-c", run, "sh", path], env={**env, **more}, capture_output=True, text=True, check=True)
        return dict(line.split("=", 1) for line in out.stdout.splitlines() if "=" in line)
    got = variables()
    for key in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
        assert pathlib.Path(got[key]).exists()
    if name != "environment.conf":  # systemd has its own order
        assert variables(CUDA_INJECTION64_PATH="theirs")["CUDA_INJECTION64_PATH"] == "theirs"


def may_contain():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "-p", "-u", "-i", "-f", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not may_contain(), reason="no namespaces may be made here (unshare)")
def test_a_container(world, tmp_path):
    """Mounts, pids, host name and shared memory of its own, and of ours what the file says: the socket's folder."""
    lines = [line for line in filled_in("examples/container.env", tmp_path).read_text().splitlines() if line[0] != "#"]
    env = dict(line.split("=", 1) for line in lines)  # as docker and podman take them: nothing is quoted or expanded
    assert all(pathlib.Path(env[key]).exists() for key in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"))
    world.start()
    inside = """mount -t tmpfs none /run; mkdir /run/protond; mount --bind "$0" /run/protond; mount -t tmpfs none /dev/shm
exec env -i """ + " ".join(lines) + ' "$@"'
    job = world.job("unshare", "-m", "-p", "-u", "-i", "-f", "sh", "-ec", inside, world.dir)
    job.say("start s")
    job.say("enter inside")
    job.say("exit")
    assert job.quit() == 0
    until("it is stored", lambda: world.state("s") == "finalized")
    assert world.cells("s")["/inside"][0] == 1 and not world.losses("s")
    (pid, inner), = world.sql("SELECT pid, ns_pid FROM process")
    assert inner == 1 != pid


class Manager:
    """What systemd does for a service: it listens, is notified, and starts it again."""

    def __init__(self, world):
        self.world = world
        world.dir.chmod(0o755)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(world.dir / "notify"))
        self.sockets, self.kept = [], []
        for name, kind in (("agent.sock", socket.SOCK_SEQPACKET), ("control.sock", socket.SOCK_STREAM)):
            s = socket.socket(socket.AF_UNIX, kind)
            s.bind(str(world.dir / name))
            os.chmod(world.dir / name, 0o666)
            s.listen(64)
            self.sockets.append(s)

    def start(self, *before, watchdog_us=0):
        env = {**self.world.env, "NOTIFY_SOCKET": str(self.world.dir / "notify"), "PROTOND_AUTO_SESSION": "off",
               "LISTEN_FDS": str(2 + len(self.kept)),
               "LISTEN_FDNAMES": ":".join(["protond.socket"] * 2 + [name for name, _ in self.kept]),
               **({"WATCHDOG_USEC": str(watchdog_us)} if watchdog_us else {})}
        given = [s.fileno() for s in self.sockets] + [fd for _, fd in self.kept]

        def inherit():  # as descriptors from 3 on
            high = [os.dup2(fd, 100 + i) for i, fd in enumerate(given)]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
                os.set_inheritable(3 + i, True)
        script = 'LISTEN_PID=$$ exec "$@"'
        with open(self.world.home / "protond.log", "ab") as log:
            self.world.daemon = subprocess.Popen(
                ["sh", "-c", script, "sh", *before, str(BUILD / "bin/protond"), "--foreground"], env=env,
                stdout=log, stderr=log, preexec_fn=inherit, pass_fds=range(3, 3 + len(given)))
        return self.world.daemon

    def told(self):
        ready, _, _ = select.select([self.notify], [], [], WAIT)
        assert ready, "nothing was told\n" + self.world.log()
        text, fds, _, _ = socket.recv_fds(self.notify, 200, 1)
        said = dict(line.split("=", 1) for line in text.decode().split("\n"))
        if "FDSTORE" in said:
            self.kept.append((said["FDNAME"], *fds))
            return f"keep {said['FDNAME']}"
        assert not fds
        if "FDSTOREREMOVE" in said:
            for name, fd in [k for k in self.kept if k[0] == said["FDNAME"]]:
                os.close(fd)
                self.kept.remove((name, fd))
            return f"forget {said['FDNAME']}"
        return text.decode()

    def said(self):
        """The next that is no descriptor to keep, or to forget."""
        while (told := self.told()).split()[0] in ("keep", "forget"):
            pass
        return told


def test_socket_activation_refuses_nobody(world):
    m = Manager(world)
    job = world.job()  # before there is a daemon
    job.say("enter before")
    m.start()
    assert m.said() == "READY=1"
    world.ctl("start", "s", "--all")
    job.say("start own")
    job.say("repeat 10 first")
    for n in range(3):
        world.daemon.terminate()
        assert world.daemon.wait(WAIT) == 0
        assert m.said() == "STOPPING=1"
        assert (world.dir / "agent.sock").exists() and (world.dir / "control.sock").exists()
        waiting = subprocess.Popen([str(BUILD / "bin/protonctl"), "status"], env=world.env, stdout=subprocess.PIPE)
        job.say(f"repeat 10 away{n}")
        m.start()
        assert m.said() == "READY=1"
        assert waiting.wait(WAIT) == 0, "a tool that came in between is answered"
    job.quit()
    world.ctl("finalize", "s")
    assert {k: v[0] for k, v in world.cells("s").items() if "before" not in k or "/" in k[1:]} == {
        f"/before/{name}": 10 for name in ("first", "away0", "away1", "away2")}


def test_the_watchdog_hears_of_it(world):
    m = Manager(world)
    m.start(watchdog_us=2000000)
    assert m.told() == "READY=1"
    assert [m.told() for _ in range(2)] == ["WATCHDOG=1"] * 2


def test_without_a_watchdog_it_is_silent(world):
    m = Manager(world)
    m.start()
    assert m.told() == "READY=1"
    world.ctl("status")
    world.daemon.terminate()
    assert m.told() == "STOPPING=1"


@needs_another_user
@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv")
def test_the_units_privileges_are_enough(world):
    """With the bounding set of protond.service: another user's job is recorded, killed, and cleaned up."""
    unit = (ROOT / "systemd/protond.service").read_text()
    caps = re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M).group(1).lower().replace("cap_", "+").split()
    world.home.chmod(0o755)
    m = Manager(world)
    m.start("setpriv", f"--bounding-set=-all,{','.join(caps)}", "--no-new-privs")
    assert m.told() == "READY=1"
    status = pathlib.Path(f"/proc/{world.daemon.pid}/status").read_text()
    assert bin(int(re.search(r"^CapEff:\s*(\w+)", status, re.M).group(1), 16)).count("1") == len(caps)
    world.ctl("start", "s", "--all")
    for end in ("quit", "kill"):
        job = world.job(user=NOBODY, group=NOBODY, extra_groups=[])
        job.say("start own")
        job.say("repeat 100 " + end)
        assert [f.suffix for f in world.dir.glob("rings/*")] == [".ctl"], "the ring has no name"
        getattr(job, end)()
        until("what stood beside it is gone", lambda: not list(world.dir.glob("rings/*")))
    world.ctl("finalize", "s")
    assert {k: v[0] for k, v in world.cells("s").items()} == {"/quit": 100, "/kill": 100}


def journaled(world, job, line):
    """Says it, and returns when the daemon has all of it in its journal, and not in the store."""
    def size():
        return sum(f.stat().st_size for f in world.dir.glob("journal.*"))
    for _ in range(2):
        before = size()
        job.say(line)
        until("it is in the journal", lambda: size() > before)


@needs_another_user
@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv")
def test_rings_without_a_name_are_kept(world):
    """Another user's: neither the job nor /proc helps a daemon that was killed."""
    world.home.chmod(0o755)
    world.env["PROTOND_COMMIT_MS"] = "600000"
    less = ("setpriv", "--bounding-set=-all")
    m = Manager(world)
    m.start(*less)
    assert m.told() == "READY=1"
    world.ctl("start", "s", "--all")
    jobs = [world.job(user=NOBODY, group=NOBODY, extra_groups=[]) for _ in range(2)]
    for job in jobs:
        job.say("start own")
    names = {m.told() for _ in jobs}
    assert all(re.fullmatch("keep ring-[0-9a-f]{32}", name) for name in names) and len(names) == 2
    for n in range(3):
        world.ctl("start", f"t{n}", "--all")
        for job in jobs:
            job.say("repeat 10 x")  # its words
        world.ctl("finalize", f"t{n}")  # are in the store, which ends the journal before
        for job in jobs:
            journaled(world, job, "repeat 10 x")
        world.daemon.kill()
        world.daemon.wait(WAIT)
        if n == 2:
            jobs[0].quit()  # while there is no daemon
            stray = [("ring-" + "0" * 32, "memfd"), ("ring-0123", "memfd"), ("ring-", "/dev/null"),
                     (m.kept[1][0] + "0", "memfd"), (m.kept[1][0], "twice")]
            for name, kind in stray:
                m.kept.append((name, os.memfd_create("protond-ring") if kind == "memfd" else
                               os.dup(m.kept[1][1]) if kind == "twice" else os.open(kind, os.O_RDONLY)))
            m.kept.insert(0, (m.kept[0][0], os.memfd_create("protond-ring")))  # what the ring is not
        m.start(*less)
        told = []
        while "READY=1" not in told:
            told.append(m.told())
        if n < 2:
            assert told == ["READY=1"] and len(m.kept) == 2
    assert set(told) >= {f"forget {name}" for name, kind in stray if kind != "twice"}
    world.ctl("finalize", "s")
    while len(m.kept) > 2:  # of the job that ended
        told.append(m.told())
    assert len({name for name, _ in m.kept}) == 1

    def memory():
        return [f for f in open_files(world.daemon.pid) if "memfd:" in f]
    until("the living job's is all that is open", lambda: len(memory()) == 1)
    assert jobs[1].quit() == 0
    world.ctl("start", "u", "--all")
    until("it has ended", lambda: not world.ctl_json("jobs")["jobs"])
    world.ctl("finalize", "u")
    while m.kept:
        m.told()
    assert {k: v[0] for k, v in world.cells("s").items()} == {"/x": 2 * 3 * 30}
    assert not any(world.losses("s").values())
    until("nothing of them is left", lambda: not memory() and not list(world.dir.glob("rings/*")))


def system_calls(name):
    """Of a group as SystemCallFilter= has it."""
    out = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", name], capture_output=True, text=True, check=True)
    found = set()
    for line in map(str.strip, out.stdout.splitlines()[1:]):
        found |= system_calls(line) if line.startswith("@") else {line} - {""}
    return {call for call in found if not call.startswith("#")}


@needs_systemd
@needs_another_user
@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_the_units_filter_allows_what_it_calls(world):
    unit = (ROOT / "systemd/protond.service").read_text()
    allowed = set()
    for groups in re.findall(r"^SystemCallFilter=(.*)$", unit, re.M):
        for group in groups.lstrip("~").split():
            allowed = allowed - system_calls(group) if groups.startswith("~") else allowed | system_calls(group)
    world.home.chmod(0o755)
    m = Manager(world)
    m.start("strace", "-f", "-qq", "-o", str(world.home / "calls"))
    if world.daemon.poll() is None and select.select([m.notify], [], [], 5)[0] == []:
        pytest.skip("strace may not trace here")
    world.ctl("start", "s", "--all", "-d", "both")
    for end in ("quit", "kill"):
        job = world.job(user=NOBODY, group=NOBODY, extra_groups=[])
        job.say("start own")
        job.say("repeat 1000 " + end)
        getattr(job, end)()
    world.ctl("finalize", "s", "-o", world.home / "s.json")
    for tool in (["jobs"], ["prune", "--max-size", "1M"], ["delete", "s"], ["shutdown"]):
        world.ctl(*tool)
    world.daemon.wait(WAIT)
    world.daemon = None
    called = set(re.findall(r"^\d+\s+(\w+)\(", (world.home / "calls").read_text(), re.M))
    assert {"openat", "sendmsg", "pwrite64", "memfd_create"} <= called and not called - allowed
