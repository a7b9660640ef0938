# SPDX-License-Identifier: MIT. Rings that are offered and not negotiated: from the first event to _exit.
import signal

import pytest

from conftest import until


def records(world, job):
    """What comes then is in its session."""
    until("the job is known", lambda: world.ctl_json("jobs")["jobs"])
    until("it records", lambda: (job.say("repeat 1 tick"), world.ctl_json("jobs")["jobs"][0]["events"])[1])


def finished(world, name):
    until(f"session {name} is finalized", lambda: world.state(name) == "finalized")


@pytest.mark.parametrize("asleep", [False, True], ids=["awake", "asleep"])
def test_children_that_left_at_once(world, asleep):
    """Twenty forked children with 1000 scopes and _exit: all there, though the daemon looks when all have been reaped."""
    world.start()
    job = world.job()
    records(world, job)
    if asleep:
        world.daemon.send_signal(signal.SIGSTOP)
    job.say("forks 20 1000 kid")
    world.daemon.send_signal(signal.SIGCONT)
    job.quit()
    finished(world, "job")
    assert world.cells("job")["/kid"][0] == 20000
    assert world.sql("SELECT count(*) FROM process WHERE end_reason IS NOT NULL") == [(21,)]
    assert world.sql("SELECT count(*) FROM session") == [(1,)], "they are in their parent's"
    assert world.sql("SELECT * FROM loss") == []
    assert "panic" not in world.log() and "ring_refused" not in world.log()


def test_a_child_that_cannot_offer_is_counted(world):
    """No daemon is there when it is forked, and none comes before it leaves."""
    world.start()
    job = world.job()
    records(world, job)
    assert world.stop(signal.SIGKILL) == -signal.SIGKILL
    job.say("forks 3 10 kid")
    world.start()
    job.say("repeat 1 after")
    job.quit()
    finished(world, "job")
    assert "/kid" not in world.cells("job") and world.cells("job")["/after"][0] == 1
    assert world.losses("job") == {14: 3}
    assert "forked children whose events did not reach protond" in world.view("tree", "job").stdout


def test_a_child_outlives_its_parent(world):
    """The automatic session ends with the last of its processes."""
    world.start()
    job = world.job()
    records(world, job)
    job.say("orphan kid")
    job.quit()
    until("both have ended", lambda: world.sql(
        "SELECT count(*) FROM process WHERE end_reason IS NOT NULL") == [(2,)])
    finished(world, "job")
    assert world.cells("job")["/kid"][0] == 2
    assert world.sql("SELECT count(*) FROM session") == [(1,)]
