# SPDX-License-Identifier: MIT. Rings that are offered and not negotiated: from the first event to _exit.
import os
import select
import signal
import subprocess
import sys
import time

import pytest

from conftest import BUILD, WAIT, until


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


def run_jobs(world, n, lines):
    """n programs that do this and are reaped."""
    jobs = [world.job() for _ in range(n)]
    for job in jobs:
        job.process.communicate(lines, timeout=WAIT)
    return jobs


def test_programs_that_left_at_once(world):
    """They started, recorded and ended while nobody looked: each is there with all it did, from its first event."""
    world.start()
    world.daemon.send_signal(signal.SIGSTOP)
    run_jobs(world, 10, "repeat 1000 short\n_exit 0\n")
    run_jobs(world, 10, "_exit 0\n")
    world.daemon.send_signal(signal.SIGCONT)
    until("their sessions are finalized", lambda: world.sql(
        "SELECT count(*) FROM session WHERE state = 'finalized'") == [(10,)])
    assert world.cells("job") == {"/short": (10000, world.cells("job")["/short"][1], 0)}
    assert world.sql("SELECT count(*) FROM process") == [(10,)], "whoever recorded nothing is none"
    until("their files are gone", lambda: not list((world.dir / "rings").iterdir()))
    assert world.sql("SELECT count(*) FROM loss") == [(0,)]


def test_a_ring_that_stays_empty_is_a_process_in_time(world):
    world.start()
    job = world.job()
    job.say("ping")
    until("it is a process", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j.get("ring")])
    assert [s["name"] for s in world.ctl_json("sessions")["sessions"]] == ["job"]


def test_an_empty_ring_that_is_asked_for(world):
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "all", "--all")
    job = world.job()
    job.say("ping")
    assert "1 job" in world.ctl("start", "s", "--pid", job.pid).stdout
    job.say("repeat 3 x")
    world.ctl("finalize", "s")
    assert world.cells("s")["/x"][0] == 3


def test_short_subprocesses_of_one_run(world):
    """Those that record are in the run, the others nowhere; and there is one session."""
    n = 100
    line = f'echo "repeat 5 sub" | {BUILD}/tests/job; {BUILD}/tests/job < /dev/null'
    world.ctl("run", "-n", "r", "--", "sh", "-c", f"for i in $(seq {n}); do {line}; done")
    assert world.cells("r")["/sub"][0] == 5 * n
    assert world.sql("SELECT count(*) FROM process") == [(n,)]
    assert world.sql("SELECT count(*) FROM session") == [(1,)]


@pytest.mark.parametrize("spoil", ["short", "mark", "link", "open", "fifo"])
def test_a_hello_that_is_not_to_be_believed(world, spoil):
    """Then the job asks, as one did before there was such a file."""
    world.start()
    hello = world.dir / "hello"
    said = hello.read_bytes()
    assert len(said) == 48
    hello.unlink()
    if spoil == "short":
        hello.write_bytes(said[:40])
    elif spoil == "mark":
        hello.write_bytes(b"x" * 48)
    elif spoil == "link":
        (world.dir / "other").write_bytes(said)
        hello.symlink_to("other")
    elif spoil == "open":
        hello.write_bytes(said)
        hello.chmod(0o666)
    else:
        os.mkfifo(hello)
    job = world.job()
    records(world, job)
    assert world.sql("SELECT flags & 4 FROM process") in ([(0,)], [])
    job.quit()
    finished(world, "job")
    assert world.sql("SELECT flags & 4 FROM process") == [(0,)], "it was not offered"


def test_a_hello_of_a_daemon_that_died(world):
    """Its store, sizes and wishes are nobody's: the next daemon says its own."""
    world.start()
    world.stop(signal.SIGKILL)
    assert (world.dir / "hello").exists()
    job = world.job()
    job.say("repeat 1 unheard")
    world.start(PROTOND_DB=world.home / "other.db")
    records(world, job)
    job.quit()


@pytest.mark.preload
def test_a_pool_of_forked_workers(world):
    """200 tasks of 100 scopes on four workers that leave by _exit: 20000."""
    script = world.home / "pool.py"
    script.write_text("""
import multiprocessing
import protond
def task(i):
    for _ in range(100):
        with protond.scope("task"):
            pass
if __name__ == "__main__":
    with protond.scope("main"):
        with multiprocessing.get_context("fork").Pool(4) as pool:
            pool.map(task, range(200), 1)
            pool.close()
            pool.join()
""")
    world.ctl("run", "-n", "pool", "--", sys.executable, script,
              env={"PYTHONPATH": str(BUILD / "lib/protond/python")})
    assert sum(v[0] for k, v in world.cells("pool").items() if k.endswith("/task")) == 20000
    assert world.losses("pool") == {}
    assert world.cells("pool")["/main"][0] == 1
    assert " open" not in world.view("tree", "pool").stdout, "what the workers were forked in is the parent's scope"


def opened(world, pid):
    """{tid: paths of its open scopes, outermost first} of a job."""
    jobs = [j for j in world.ctl_json("where")["jobs"] if j["pid"] == pid]
    return {t["tid"]: [o["path"] for o in t["open"]] for j in jobs for t in j.get("threads", [])}


def blocked(job, thread=""):
    job.say(f"{thread}enter outer")
    job.say(f"{thread}enter inner")
    job.process.stdin.write(f"{thread}pause\n")
    job.process.stdin.flush()


def in_pause(pid, tid):
    wchan = open(f"/proc/{pid}/task/{tid}/syscall").read().split()
    return wchan[0] == str(34)  # pause(2)


@pytest.mark.parametrize("late", ["daemon", "session"])
def test_where_before_anybody_attached(world, late):
    """A thread that blocked inside two scopes before it was recorded: no call of its own comes."""
    if late == "session":
        world.start(PROTOND_AUTO_SESSION="off")
    jobs = [world.job() for _ in range(5)]
    for job in jobs:
        blocked(job)
    if late == "session":
        world.ctl("start", "s", "--all")
    else:
        world.start()
    until("all are seen", lambda: [opened(world, j.pid) for j in jobs] ==
          [{j.pid: ["outer", "outer/inner"]} for j in jobs])
    for job in jobs:
        job.process.kill()
        job.process.wait(WAIT)
    until("their ends are stored", lambda: world.sql(
        "SELECT count(*) FROM process WHERE end_reason IS NOT NULL") == [(5,)])
    assert all("2 scopes open" in n for (n,) in world.sql("SELECT text FROM note"))


def test_a_proxy_is_over_once_its_thread_speaks(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    for line in ("enter main", "@1 enter outer", "@1 enter inner", "@2 enter other"):
        job.say(line)
    world.ctl("start", "s", "--pid", job.pid)
    got = until("all are seen", lambda: (lambda o: o if len(o) == 3 else None)(opened(world, job.pid)))
    assert sorted(got.values()) == [["main"], ["main/other"], ["main/outer", "main/outer/inner"]] or \
        sorted(got.values()) == [["main"], ["other"], ["outer", "outer/inner"]]
    job.say("@1 exit")
    job.say("@1 enter third")
    job.say("@2 exit")
    job.say("@2 join")
    now = opened(world, job.pid)
    assert len(now) == 2 and sorted(len(v) for v in now.values()) == [1, 2]
    assert [v[-1].rsplit("/", 1)[-1] for v in now.values() if len(v) == 2] == ["third"]
    job.quit()


def test_what_is_only_open_is_in_tree_and_top(world):
    """Before its end: without a count, and in top with its time so far."""
    world.start()
    job = world.job()
    records(world, job)
    job.say("enter outer")
    job.say("enter inner")
    until("top has it", lambda: {c["path"]: c["count"] for c in world.ctl_json("top", "job")["cells"]}.get("outer/inner") == 0)
    cells = {c["path"]: c for c in world.ctl_json("top", "job")["cells"]}
    assert cells["outer"]["count"] == 0 and cells["outer"]["sum_ns"] >= cells["outer/inner"]["sum_ns"] > 0
    shown = world.view("tree", "job").stdout
    assert "inner" in shown and "2 scopes" in shown, shown
    job.say("exit")
    job.say("exit")
    job.quit()
    finished(world, "job")
    cells = world.cells("job")
    assert cells["/outer"][0] == cells["/outer/inner"][0] == 1 and cells["/outer"][2] == 0


def test_a_run_whose_protonctl_and_daemon_were_killed(world):
    """The next daemon ends it where the former one's word ends, however much later it comes."""
    run = subprocess.Popen([BUILD / "bin/protonctl", "run", "-n", "r", "-b", "none", "--", BUILD / "tests/job"],
                           env=world.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           text=True, bufsize=1, cwd=world.home)
    for line in ("repeat 5 done", "enter open"):
        run.stdin.write(line + "\n")
        assert run.stdout.readline().startswith("ok")
    daemon = world.ctl_json("status")["pid"]
    (job,) = [j["pid"] for j in world.ctl_json("jobs")["jobs"]]
    until("it is stored", lambda: world.cells("r").get("/done", (0,))[0] == 5)
    pids = [os.pidfd_open(p) for p in (run.pid, daemon, job)]
    for fd in pids:
        signal.pidfd_send_signal(fd, signal.SIGKILL)
    run.wait(WAIT)
    for fd in pids:
        assert select.select([fd], [], [], WAIT)[0]
        os.close(fd)
    killed = time.time_ns()
    world.start()
    until("it is interrupted", lambda: world.state("r") == "interrupted")
    (ended, active, created), = world.sql("SELECT finalized_ns, active_ns, created_ns FROM session")
    assert created < ended <= killed and active <= ended - created
    assert world.cells("r")["/done"][0] == 5
    assert "whoever would have ended it was killed" in world.view("tree", "r").stdout
    assert [s["state"] for s in world.ctl_json("sessions")["sessions"]] == ["interrupted"]
    world.ctl("delete", "r")
