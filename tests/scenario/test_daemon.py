# SPDX-License-Identifier: MIT. A daemon that a user starts, looks at and ends: protonctl daemon.
import signal
import subprocess

from conftest import BUILD, WAIT, needs_root, until


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
