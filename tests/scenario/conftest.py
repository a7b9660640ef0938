# SPDX-License-Identifier: MIT. A daemon, a job and a store per test, on a directory of their own.
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

import pytest

BUILD = pathlib.Path(os.environ.get("PROTOND_BUILD", "build")).resolve()
# Who does not take a world meets no daemon and no database of the user's.
NOWHERE = {"PROTOND_RUNTIME_DIR": "/nonexistent/protond", "PROTOND_DB": "/nonexistent/protond.db"}


def with_nvml(fake):
    """The environment with the stand-in for NVML (fake_nvml.c), or, "absent", without any."""
    return {**os.environ, **NOWHERE, "FAKE_NVML": fake, "LD_LIBRARY_PATH": str(BUILD / "tests/nvml") if fake != "absent" else ""}


os.environ.update(NOWHERE)
WAIT = 30  # seconds after which an event that never came is a failure

SANITIZED = any(f.startswith("-fsanitize") for f in (BUILD / "flags").read_text().split())
ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="needs root")
needs_another_user = pytest.mark.skipif(
    not ROOT or not all(d.stat().st_mode & 0o001 for d in BUILD.parents),
    reason="another user's programs need root, and a checkout that others may enter (not below /root)")


def may_mount():
    """Whether a mount namespace of our own can be had: system files are replaced in one."""
    r = subprocess.run(["unshare", *([] if ROOT else ["-r"]), "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
                       capture_output=True) if shutil.which("unshare") else None
    return r is not None and r.returncode == 0


needs_mounts = pytest.mark.skipif(not may_mount(), reason="no mount namespace may be made here (unshare -m)")


def until(what, test, interval=0.005, timeout=WAIT):
    """Waits for a condition outside this process; there is no event to wait on across SQLite."""
    end = time.monotonic() + timeout
    while True:
        got = test()
        if got:
            return got
        assert time.monotonic() < end, f"did not happen within {timeout} s: {what}"
        select.select([], [], [], interval)


def receive(connection, n):
    """So many bytes of the daemon's."""
    got = b""
    while len(got) < n:
        more = connection.recv(n - len(got))
        assert more, "the daemon hung up"
        got += more
    return got


def open_files(pid):
    """What the descriptors of a process lead to; one that closes meanwhile is none."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass
    return found


def readable(file, seconds=WAIT):
    """Something is there to be read, or the end. (select() takes no descriptor above 1 023.)"""
    p = select.poll()
    p.register(file, select.POLLIN | select.POLLHUP)
    return bool(p.poll(seconds * 1000))


class Job:
    """tests/scenario/job.c: say() returns when the command is done."""

    def __init__(self, world, *argv, env=None, **kwargs):
        self.process = subprocess.Popen(
            [*argv, str(BUILD / "tests/job")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, bufsize=1, env={**world.env, **(env or {})}, **kwargs)
        self.pid = self.process.pid

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        ready = readable(self.process.stdout)
        assert ready, f"the job did not answer: {line}"
        got = self.process.stdout.readline().strip()
        assert got.startswith("ok"), f"{line}: {got!r}"
        return got[3:]

    def quit(self):
        self.process.stdin.close()
        return self.process.wait(WAIT)

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT)


class World:
    """Runtime directory, database and tools of one test."""

    def __init__(self, path):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="pt.", dir="/dev/shm"))
        os.chmod(self.dir, 0o700)
        self.home = path
        path.mkdir(exist_ok=True)
        self.db = path / "store.db"
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("PROTOND_", "CUDA_INJ", "NVTX_INJ", "XDG_", "COLUMNS"))}
        self.env.update(PROTOND_RUNTIME_DIR=str(self.dir), PROTOND_DB=str(self.db), HOME=str(path),
                        PROTOND_COMMIT_MS="50", PROTOND_DEVICE_HZ="0", LC_ALL="C.UTF-8",
                        LD_LIBRARY_PATH=str(BUILD / "lib"))
        # Leaks are the unit tests' to find: the leak checker stops a job's threads at its exit, and
        # fails, now and then, when one of them is just being made or ending.
        self.env["ASAN_OPTIONS"] = "detect_leaks=0"
        self.daemon = None
        self.jobs = []

    def start(self, **env):
        env = {**self.env, **{k: str(v) for k, v in env.items()}}
        log = open(self.home / "protond.log", "ab")
        self.daemon = subprocess.Popen([str(BUILD / "bin/protond"), "--private", "--foreground"],
                                       env=env, stdout=log, stderr=log)
        until("control.sock answers", lambda: self.answers())
        return self.daemon

    def answers(self):
        assert self.daemon is None or self.daemon.poll() is None, "protond ended:\n" + self.log()
        return self.ctl("status", check=False).returncode == 0

    def log(self):
        try:
            return (self.home / "protond.log").read_text(errors="replace")[-4000:]
        except OSError:
            return ""

    def stop(self, sig=signal.SIGTERM):
        self.daemon.send_signal(sig)
        status = self.daemon.wait(WAIT)
        self.daemon = None
        return status

    def tool(self, name, *args, check=True, env=None, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        r = subprocess.run([str(BUILD / "bin" / name), *map(str, args)], capture_output=True,
                           text=True, timeout=120, env={**self.env, **(env or {})}, cwd=self.home,
                           **kwargs)
        if check:
            assert r.returncode == 0, f"{name} {args}: {r.returncode}\n{r.stdout}{r.stderr}"
        return r

    def ctl(self, *args, **kwargs):
        return self.tool("protonctl", *args, **kwargs)

    def view(self, *args, **kwargs):
        return self.tool("protonview", *args, **kwargs)

    def ctl_json(self, *args):
        return json.loads(self.ctl(*args, "--json").stdout)["data"]

    def job(self, *argv, **kwargs):
        j = Job(self, *argv, **kwargs)
        self.jobs.append(j)
        return j

    def sql(self, query, *args):
        db = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True, timeout=10)
        try:
            return db.execute(query, args).fetchall()
        except sqlite3.OperationalError as e:
            if "no such table" in str(e) or "unable to open" in str(e):
                return []
            raise
        finally:
            db.close()

    def cells(self, session):
        """{path: (count, sum_ns, open)} of the CPU cells of a stored session, merged over processes."""
        rows = self.sql(
            "WITH RECURSIVE p(id, path) AS (SELECT id, '' FROM node WHERE parent = 0 UNION ALL"
            " SELECT n.id, p.path || '/' || n.name FROM node n JOIN p ON n.parent = p.id)"
            " SELECT p.path, sum(c.count), sum(c.sum_ns), sum(c.open) FROM cell c"
            " JOIN p ON p.id = c.node JOIN session s ON s.id = c.session"
            " WHERE s.name = ? AND c.class = 0 GROUP BY p.path", session)
        return {r[0]: r[1:] for r in rows}

    def losses(self, session):
        return dict(self.sql("SELECT l.cause, sum(l.count) FROM loss l JOIN session s ON s.id ="
                             " l.session WHERE s.name = ? GROUP BY l.cause", session))

    def state(self, session):
        rows = self.sql("SELECT state FROM session WHERE name = ?", session)
        return rows[0][0] if rows else None

    def unlocked(self):
        """No daemon lives in the runtime directory."""
        try:
            with open(self.dir / "lock") as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # no lock, no daemon
        return True

    def close(self):
        for j in self.jobs:
            if j.process.poll() is None:
                j.kill()
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait(WAIT)
        else:
            self.ctl("shutdown", check=False)  # a daemon that `run` started
        until("it has ended", self.unlocked)
        shutil.rmtree(self.dir, ignore_errors=True)
        for log in self.home.glob("protond.log"):
            said = log.read_text(errors="replace")
            assert "Sanitizer" not in said and "runtime error: " not in said, said[-8000:]


@pytest.fixture
def world(tmp_path):
    w = World(tmp_path)
    yield w
    w.close()


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: many rounds; left out under sanitizers")
    config.addinivalue_line("markers", "preload: loads the agent into a foreign program")
    config.addinivalue_line("markers", "long: takes over four seconds, so that it is begun before others")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """For pytest-xdist: each test goes to whoever is free, but a file whose tests share something that was built."""
    for item in items:
        if any(d.scope == "module" for defs in item._fixtureinfo.name2fixturedefs.values() for d in defs):
            item.add_marker(pytest.mark.xdist_group(item.module.__name__))
    items.sort(key=lambda item: not any(item.get_closest_marker(m) for m in ("xdist_group", "long")))
