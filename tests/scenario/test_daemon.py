# SPDX-License-Identifier: MIT. A daemon that a user starts, looks at and ends: protonctl daemon.
import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import BUILD, WAIT, needs_another_user, needs_root, until


def daemons(world):
    return world.ctl_json("daemon", "status")["daemons"]


def test_started_seen_and_ended(world):
    """It stays until it is stopped; what is live by then is in the database when `stop` returns."""
    none = world.ctl("daemon", "status", check=False)
    assert none.returncode == 3 and "protonctl daemon start" in none.stdout
    said = world.ctl("daemon", "start").stdout
    [d] = daemons(world)
    for words in (f"pid {d['pid']}", f"{world.dir}/control.sock", str(world.db), f"{world.dir}/protond.log", "daemon stop"):
        assert words in said, said
    assert d["private"] and d["idle_exit_s"] == 0
    again = world.ctl("daemon", "start").stdout
    assert "runs already" in again and f"pid {d['pid']}" in again
    job = world.job()
    job.say("start live")
    job.say("repeat 7 seen")
    until("the session is known", lambda: [s for s in world.ctl_json("sessions")["sessions"] if s["name"] == "live"])
    world.ctl("daemon", "stop")
    assert world.unlocked(), "stop returns when it has gone"
    assert world.cells("live")["/seen"][0] == 7, world.cells("live")
    assert world.ctl("daemon", "stop", check=False).returncode == 3


def test_how_long_it_stays(world):
    """As a variable says; one that `run` started ends by itself."""
    world.ctl("daemon", "start", env={"PROTOND_IDLE_EXIT_S": "7000"})
    assert daemons(world)[0]["idle_exit_s"] == 7000
    assert "after 7000 s" in world.ctl("daemon", "status").stdout
    world.ctl("daemon", "stop")
    world.ctl("run", "-q", "--", "true")
    assert daemons(world)[0]["idle_exit_s"] == 60
    assert "one that stays" in world.ctl("daemon", "start").stdout


def test_one_that_does_not_answer(world):
    """It is neither passed over nor called absent."""
    world.start()
    world.daemon.send_signal(signal.SIGSTOP)
    try:
        for verb in ("status", "stop"):
            r = world.ctl("daemon", verb, check=False)
            assert r.returncode == 3 and f"kill -CONT {world.daemon.pid}" in r.stderr, r.stdout + r.stderr
    finally:
        world.daemon.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")], ids=["fifo", "folder", "link"])
def test_what_stands_in_the_place_of_its_log(world, make):
    """Nothing is waited for, written to or read there."""
    make(world.dir / "protond.log")
    assert world.ctl("run", "-q", "--", "true").stdout == ""
    assert daemons(world)[0]["private"]
    world.ctl("daemon", "stop")
    r = world.ctl("daemon", "start", check=False, env={"PROTOND_DB": "/proc/none/x.db"})
    assert r.returncode == 3 and "the daemon does not start" in r.stderr


@needs_root
def test_a_service_is_not_ones_own(world):
    service = subprocess.Popen([str(BUILD / "bin/protond")], env=world.env, stderr=subprocess.DEVNULL)
    try:
        until("it answers", lambda: world.ctl("status", check=False).returncode == 0)
        r = world.ctl("daemon", "stop", check=False)
        assert r.returncode == 3 and "systemctl stop protond" in r.stderr
        [d] = daemons(world)
        assert d["pid"] == service.pid and not d["private"]
        assert "the system service" in world.ctl("daemon", "status").stdout
    finally:
        service.terminate()
        service.wait(WAIT)


def test_check_reads_what_it_would_read(world):
    """--check says which file it read and which database that leads to, and is wrong where the daemon would be."""
    env = {"PROTOND_DB": "", "XDG_CONFIG_HOME": str(world.home)}
    def check(*args, **kwargs):
        return world.tool("protond", "--check", *args, env=env, check=False, **kwargs)
    r = check("--private")
    assert r.returncode == 0
    assert f"{world.home}/protond.conf (is not there)" in r.stdout and f"{world.home}/.local/share/protond/protond.db" in r.stdout
    (world.home / "protond.conf").write_text("db = /of/the/file.db\n")
    assert "/of/the/file.db" in check("--private").stdout and "is not there" not in check("--private").stdout
    (world.home / "protond.conf").write_text("dbb = x\n")
    r = check("--private")
    assert r.returncode == 2 and "protond.conf:1: unknown key 'dbb'" in r.stderr
    if os.geteuid() != 0:
        assert check().returncode == 2


@needs_another_user
def test_check_of_a_user_is_of_his_own(world):
    os.chmod(world.dir, 0o755)
    (world.dir / "protond.conf").write_text("db = /of/the/user.db\n")
    r = subprocess.run([str(BUILD / "bin/protond"), "--check"], env={**world.env, "PROTOND_DB": "", "XDG_CONFIG_HOME": str(world.dir)},
                       capture_output=True, text=True, user=65534, group=65534, extra_groups=[], cwd="/")
    assert r.returncode == 0 and f"{world.dir}/protond.conf\n" in r.stdout and "/of/the/user.db" in r.stdout, r.stdout + r.stderr


def looks(world, *args):
    return world.ctl("top", "--interval", "0.1", *args, "s").stdout.count("SCOPE OR KERNEL")


def test_top_into_a_pipe_ends(world):
    """After one table; after as many as were asked for; and with -b not at all."""
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    job.say("start s")
    job.say("repeat 3 a")
    until("it is known", lambda: [s for s in world.ctl_json("sessions")["sessions"] if s["name"] == "s"])
    assert looks(world) == 1 and looks(world, "-b", "-c", "3") == 3 and looks(world, "-c", "2") == 2
    top = subprocess.Popen([str(BUILD / "bin/protonctl"), "top", "-b", "--interval", "0.1", "s"], env=world.env, stdout=subprocess.PIPE, text=True)
    heads = 0
    while heads < 3:  # it would have ended
        line = top.stdout.readline()
        assert line, "top -b ended"
        heads += "SCOPE OR KERNEL" in line
    top.terminate()
    top.wait(WAIT)
    top.stdout.close()
    assert world.ctl("top", "-c", "0", check=False).returncode == 2


def test_tests_meet_no_daemon_of_the_users():
    """Not those without a world, nor a script that is run by hand: each says a place of its own, or none."""
    def tool(*args):
        return subprocess.run([str(BUILD / "bin" / args[0]), *args[1:]], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert tool("protonctl", "daemon", "status").returncode == 3 and "/nonexistent/protond" in tool("protonctl", "status").stderr
    assert "/nonexistent/protond.db" in tool("protonview", "sessions").stderr
    tests = pathlib.Path(__file__).resolve().parents[1]
    programs = [f for room in ("bench", "fuzz", "gpu", "replay") for ending in ("sh", "py") for f in (tests / room).glob(f"*.{ending}")]
    begun = [f for f in [*programs, tests / "check.sh"] if re.search(r"^#!|__main__", f.read_text(), re.M)]
    assert len(begun) >= 10
    alone = {"build.sh": "a compiler", "torch_work.py": "torch_check.py's", "kineto_work.py": "kineto.py's", "unmatched.py": "a reader of files", "ops_fields.py": "likewise"}
    assert not [f.name for f in begun if f.name not in alone and not all(v in f.read_text() for v in ("PROTOND_RUNTIME_DIR", "PROTOND_DB"))]
