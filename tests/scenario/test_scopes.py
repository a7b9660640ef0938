# SPDX-License-Identifier: MIT. Scopes from a job to a stored tree, and every outcome protond.h promises.
import os
import re
import shutil
import signal
import subprocess

import pytest

from conftest import BUILD, WAIT, until

ENOENT, ENOTCONN, EINVAL = -2, -107, -22


def finalized(world, name):
    until(f"session {name} is finalized", lambda: world.state(name) == "finalized")


def known(world, job):
    until("the job is known", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == job.pid])


def records(world, job):
    known(world, job)
    until("it records", lambda: (job.say("repeat 1 tick"), world.ctl_json("jobs")["jobs"][0]["events"])[1])


def started(world, name, job, *args):
    known(world, job)
    world.ctl("start", name, "--pid", job.pid, *args)


def drained(world, n):
    """Until all but a few of n scopes are read or counted as lost: the job's lane has room again."""
    def have():
        job = world.ctl_json("jobs")["jobs"][0]
        return job["events"] + job["drops"] >= n
    until(f"{n} scopes are drained", have)


def test_automatic_session_of_a_job(world):
    world.start()
    job = world.job()
    job.say("ping")
    records(world, job)
    job.say("enter outer")
    job.say("repeat 1000 inner")
    job.say("exit")
    assert job.quit() == 0
    finalized(world, "job")
    cells = world.cells("job")
    assert cells["/outer"][0] == 1
    assert cells["/outer/inner"][0] == 1000
    assert cells["/outer"][1] >= cells["/outer/inner"][1] > 0
    assert not world.losses("job")


def test_start_on_a_running_job_clips_open_scopes(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    job.say("enter before")
    started(world, "s", job)
    job.say("repeat 10 inside")
    job.say("exit")
    job.say("enter after")
    job.say("enter open")
    world.ctl("finalize", "s")
    job.say("exit")
    job.say("exit")
    cells = world.cells("s")
    assert cells["/before/inside"][0] == 10
    assert cells["/before"][0] == 1 and cells["/before"][1] > 0, "entered before, left inside"
    assert cells["/after/open"][0] == 0 and cells["/after/open"][2] == 1, "open: time, no count"
    assert cells["/after/open"][1] > 0
    assert world.state("s") == "finalized"


def test_overlapping_sessions_have_exact_members(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    started(world, "all", job)
    job.say("repeat 100 a")
    started(world, "second", job)
    job.say("repeat 10 b")
    world.ctl("stop", "all")
    job.say("repeat 1 c")
    world.ctl("activate", "all")
    job.say("repeat 5 d")
    world.ctl("finalize", "second")
    job.say("repeat 7 e")
    world.ctl("finalize", "all")
    job.say("repeat 3 f")
    count = {k: v[0] for k, v in world.cells("all").items() if v[0]}
    assert count == {"/a": 100, "/b": 10, "/d": 5, "/e": 7}
    count = {k: v[0] for k, v in world.cells("second").items() if v[0]}
    assert count == {"/b": 10, "/c": 1, "/d": 5}


def test_a_jobs_own_session_and_its_hatchet_file(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job(cwd=world.home)
    assert job.say("start mine").split()[0] == "0"
    assert job.say("start mine").split()[0] == "0", "a live name gives the same session"
    job.say("repeat 50 x")
    assert job.say("deactivate 0").split()[0] == "0"
    job.say("repeat 50 y")
    assert job.say("activate 0").split()[0] == "0"
    job.say("enter z")
    job.say("metric f 2.5 flops8")
    job.say("metric i 4 steps (exc)")
    job.say("metric i 5 steps (exc)")
    job.say("metric s fast kind (pty)")
    job.say("exit")
    assert job.say("write 0").split()[0] == "0"
    assert job.say("finalize 0").split()[0] == str(ENOENT)
    tree = world.view("tree", world.home / "mine.hatchet", "-m", "flops8", "--json").stdout
    assert "flops8" in tree
    rows = world.sql("SELECT m.name, m.kind, m.value, m.count FROM metric m JOIN session s ON"
                     " s.id = m.session WHERE s.name = 'mine' ORDER BY m.name")
    assert rows == [("flops8", 0, 2.5, 1), ("kind", 2, "fast", 1), ("steps", 1, 9, 2)]
    count = {k: v[0] for k, v in world.cells("mine").items() if v[0]}
    assert count == {"/x": 50, "/z": 1}


def test_no_daemon_leaves_a_job_unharmed(world):
    job = world.job()
    job.say("repeat 1000 x")
    assert job.say("start s").startswith(f"{ENOTCONN} ")
    assert job.say("finalize 0").split()[0] == str(ENOENT)
    assert job.quit() == 0


def test_a_daemon_may_come_later(world):
    job = world.job()
    job.say("enter outer")
    world.start()
    until("the job records", lambda: (job.say("repeat 1 tick"), [
        j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == job.pid and j["events"]])[1])
    job.say("repeat 100 x")
    job.say("exit")
    job.quit()
    finalized(world, "job")
    cells = world.cells("job")
    assert cells["/outer/x"][0] == 100 and cells["/outer"][0] == 1


@pytest.mark.parametrize("lines, want", [
    (["exit", "exit", "repeat 1 a"], {"/a": 1}),
    (["enter a", "enter b", "enter c", "unwind 1", "repeat 1 d", "exit"],
     {"/a": 1, "/a/b": 1, "/a/b/c": 1, "/a/d": 1}),
    (["enter a", "@1 exit", "repeat 1 b", "exit"], {"/a": 1, "/a/b": 1}),
    (["enter a", "@1 repeat 2 b", "exit", "@1 repeat 3 b"], {"/a": 1, "/a/b": 2, "/b": 3}),
    (["@1 enter t", "enter a", "@1 repeat 2 b", "exit", "@1 exit"], {"/t": 1, "/t/b": 2, "/a": 1}),
    (["enter a", "state s", "repeat 1 b", "unstate", "exit"], {"/a": 1, "/a/b": 1}),
    (["threads 100"], {"/brief": 100}),
    (["enter a", "enter b", "enter c", "leave a", "repeat 1 d", "leave a"],
     {"/a": 1, "/a/b": 1, "/a/b/c": 1, "/d": 1}),
    (["enter a", "enter b", "enter a", "leave a", "repeat 1 d", "leave b", "leave c", "leave a"],
     {"/a": 1, "/a/b": 1, "/a/b/a": 1, "/a/b/d": 1}),
], ids=["unbalanced", "unwind", "other-thread", "follow-main", "own-scope", "state", "threads", "leave", "leave-same"])
def test_outcomes(world, lines, want):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    started(world, "s", job)
    for line in lines:
        job.say(line)
    world.ctl("finalize", "s")
    assert {k: v[0] for k, v in world.cells("s").items() if v[0]} == want
    assert not world.losses("s")


def test_spans_stand_where_their_context_is(world):
    """Two requests whose work takes turns on one thread; one is ended by another thread."""
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    early = job.say("child 0 early")
    before = job.say("begin")
    assert before == "0", "nothing is recorded yet"
    started(world, "s", job)
    job.say("enter serve")
    a = job.say(f"child {job.say('get')} a")
    b = job.say(f"child {job.say('get')} b")
    since = {a: job.say("begin"), b: job.say("begin")}
    for context in (a, b, a):
        job.say(f"set {context}")
        job.say("repeat 2 work")
    job.say("set 0")
    job.say("repeat 1 between")
    job.say(f"span {a} {since[a]}")
    job.say(f"@1 span {b} {since[b]}")
    job.say(f"span {early} {before}")
    job.say("span 0 1")
    job.say("exit")
    world.ctl("finalize", "s")
    cells = world.cells("s")
    assert {k: v[0] for k, v in cells.items() if v[0]} == {
        "/serve": 1, "/serve/a": 1, "/serve/b": 1, "/serve/a/work": 4, "/serve/b/work": 2,
        "/serve/between": 1, "/early": 1}
    assert cells["/serve/a"][1] >= cells["/serve/a/work"][1] and cells["/early"][1] > 0
    assert not world.losses("s")


def test_context_crosses_threads(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    started(world, "s", job)
    job.say("enter request")
    context = job.say("get")
    job.say("exit")
    job.say("enter elsewhere")
    job.say("@1 set " + context)
    job.say("@1 repeat 4 work")
    job.say("@1 set 0")
    job.say("@1 repeat 2 work")
    job.say("exit")
    world.ctl("finalize", "s")
    cells = world.cells("s")
    assert cells["/request/work"][0] == 4 and cells["/elsewhere/work"][0] == 2


def test_names_with_counters_do_not_fill_the_tree(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    started(world, "s", job)
    for _ in range(20):
        job.say("distinct 1000")
    drained(world, 20000)
    job.say("repeat 3 later")
    world.ctl("finalize", "s")
    cells = world.cells("s")
    named = {k: v for k, v in cells.items() if k.startswith("/step ")}
    lost = sum(n for cause, n in world.losses("s").items() if cause in (1, 2, 3))
    assert len(named) == 1000 and cells["/later"][0] == 3
    assert sum(v[0] for v in cells.values()) + lost == 20003


def test_more_children_than_a_parent_may_have(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    started(world, "s", job)
    for n in (40000, 80000):
        job.say("distinct 40000")
        drained(world, n)
    world.ctl("finalize", "s")
    cells = world.cells("s")
    lost = sum(n for cause, n in world.losses("s").items() if cause in (1, 2, 3))
    assert cells["/(other)"][0] > 0
    assert sum(v[0] for v in cells.values()) + lost == 80000
    assert len(cells) <= 32768 + 1


def test_fork_makes_a_process_of_its_own(world):
    world.start()
    job = world.job()
    records(world, job)
    job.say("enter parent")
    job.say("fork child")
    job.say("repeat 2 here")
    job.say("exit")
    job.quit()
    finalized(world, "job")
    cells = world.cells("job")
    assert cells["/parent/here"][0] == 2 and cells["/parent/child"][0] == 1
    (child,) = world.sql("SELECT c.process FROM cell c JOIN node n ON n.id = c.node WHERE n.name = 'child'")
    assert world.sql("SELECT pid FROM process WHERE id = ?", *child) != [(job.pid,)]


@pytest.mark.parametrize("end, status", [("_exit 3", 3), ("quit 4", 4), ("signal 9", -9)])
def test_every_way_to_end_keeps_what_was_published(world, end, status):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    started(world, "s", job)
    job.say("repeat 500 done")
    job.say("enter open")
    job.process.stdin.write(end + "\n")
    job.process.stdin.flush()
    assert job.process.wait(30) == status
    until("the daemon saw it end", lambda: world.sql(
        "SELECT 1 FROM process WHERE pid = ? AND end_reason IS NOT NULL", job.pid))
    world.ctl("finalize", "s")
    cells = world.cells("s")
    said = [line for line in world.log().splitlines() if f" pid={job.pid} " in line]
    assert len(said) == 1, f"a process is one line of the log: {said}"
    assert re.search(rf" event=job_ended process=\d+ pid={job.pid} uid={os.geteuid()} reason=\d status=-?\d+ events=50\d dropped=0$", said[0])
    assert cells["/done"][0] == 500
    assert cells["/open"][2] == 1 and cells["/open"][0] == 0


def test_exec_ends_what_was_before(world):
    """The same pid, since the same time: another program, with a ring of its own."""
    world.start()
    job = world.job()
    job.say("start before")
    job.say("enter open")
    job.say("exec")
    job.say("start after")
    job.say("repeat 3 new")
    until("what was before is over", lambda: world.state("before") == "finalized")
    assert job.process.poll() is None
    assert world.cells("before")["/open"][0::2] == (0, 1) and not world.losses("before")
    until("its ring is gone", lambda: len(list((world.dir / "rings").rglob("*.ring"))) == 1)
    until("it is stored", lambda: world.sql("SELECT pid, end_reason FROM process ORDER BY id")
          == [(job.pid, "exec"), (job.pid, None)])
    assert f"process {job.pid} called exec with 1 scope open and 0 launches in flight, in 'open'" in world.view("tree", "before").stdout
    assert job.quit() == 0
    until("all is over", lambda: world.state("after") == "finalized")
    assert world.cells("after")["/new"][0] == 3


def test_where_names_open_scopes_of_each_thread(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    started(world, "s", job)
    job.say("enter epoch")
    job.say("enter step")
    job.say("@1 enter loader")
    text = world.ctl("where").stdout
    assert "epoch" in text and "step" in text and "loader" in text
    job.say("enter _Z3addIfEvPT_")
    assert "epoch/step/add<float>  for" in world.ctl("where").stdout, "read as a kernel's name is"
    threads = world.ctl_json("where")["jobs"][0]["threads"]
    assert any(s["path"] == "epoch/step/_Z3addIfEvPT_" for t in threads for s in t["open"])
    assert {tuple(s["path"] for s in t["open"])[-1] for t in threads if t["open"]} >= {"loader"} or \
        any("loader" in s["path"] for t in threads for s in t["open"])
    (session,) = world.ctl_json("sessions")["sessions"]
    for ref in (job.pid, session["id"], "s", session["uuid"][:8]):
        assert [j["pid"] for j in world.ctl_json("where", ref)["jobs"]] == [job.pid], ref
    r = world.ctl("where", 1 << 30, check=False)
    assert r.returncode == 1 and f"no job and no session is called {1 << 30}; " in r.stderr
    job.process.send_signal(signal.SIGSTOP)
    try:
        assert "step" in world.ctl("where").stdout, "a stopped job answers too"
    finally:
        job.process.send_signal(signal.SIGCONT)
    assert os.path.exists(f"/proc/{job.pid}")


def test_a_live_session_is_shown_without_its_daemon(world):
    """As it was stored last, which is said; a finalized one is whole."""
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    started(world, "s", job)
    job.say("repeat 3 a")
    world.view("tree", "s")  # stored
    assert world.stop(signal.SIGKILL) == -signal.SIGKILL
    r = world.view("tree", "s", check=False)
    assert r.returncode == 4 and "─ a" in r.stdout
    assert f"no protond runs in {world.dir}" in r.stderr and "what is shown was stored before" in r.stderr
    world.start()
    world.ctl("finalize", "s")
    world.ctl("shutdown")
    world.daemon.wait(WAIT)
    world.daemon = None
    assert world.view("tree", "s").stderr == ""


@pytest.mark.long
def test_a_job_that_does_nothing_is_not_written_down_each_second(world):
    world.start()
    job = world.job()
    job.say("ping")
    records(world, job)
    job.say("enter x")
    job.say("exit")

    def position():
        return world.sql("SELECT value FROM meta WHERE key = 'journal'")[0][0]

    def journal():
        return sum(f.stat().st_size for f in world.dir.glob("journal.*"))
    until("the scope is stored", lambda: "/x" in world.cells("job"))
    last = [position(), journal()]

    def its_clock_alone_came():
        if position() != last[0]:  # of what came with the scope
            last[:] = position(), journal()
        return journal() > last[1] + 1000
    until("its clock came some times, and nothing was stored", its_clock_alone_came, timeout=20)  # upkeep: after 30 s
    job.say("enter x")
    job.say("exit")
    until("the second is stored", lambda: world.cells("job")["/x"][0] == 2)
    assert position() > last[0]
    job.quit()


@pytest.mark.preload
@pytest.mark.parametrize("compiler", ["gcc -std=c99", "clang -std=c99", "g++ -std=c++11 -x c++", "clang++ -std=c++20 -x c++"])
def test_two_scopes_on_a_line(world, compiler):
    """As a macro of the program's would write them; strict, and without a warning."""
    if shutil.which(compiler.split()[0]) is None:
        pytest.skip(f"no {compiler.split()[0]}")
    (world.home / "x.c").write_text("""#include <protond.h>
#define BOTH PROTOND_SCOPE("in"); PROTOND_SCOPE("inner")
int main(void)
{
    for (int i = 0; i < 3; i++) { PROTOND_SCOPE("out"); BOTH; }
    return 0;
}
""")
    header = BUILD.parent / "libclient"
    subprocess.run([*compiler.split(), "-Wall", "-Wextra", "-Wshadow", "-pedantic", "-Werror", f"-I{header}", "x.c", "-x", "none", "-o", "x",
                    f"-L{BUILD}/lib", "-lprotond"], cwd=world.home, check=True)
    world.ctl("run", "-q", "-n", "s", "--", world.home / "x")
    assert {path: cell[0] for path, cell in world.cells("s").items()} == {"/out": 3, "/out/in": 3, "/out/in/inner": 3}
