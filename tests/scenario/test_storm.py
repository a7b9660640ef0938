# SPDX-License-Identifier: MIT. Storms inside a job: threads, forks, signals, copies of the library, and nothing left
# to make things of. What the job counted is what is stored and what is said to be lost.
#
# PD_STORM=10 does ten times as much, PD_PRINT=1 prints what was measured.
import errno
import os
import resource
import select
import shutil
import subprocess
import time

import pytest

from conftest import BUILD, WAIT, until

pytestmark = pytest.mark.slow  # a sanitizer has its own threads, signals and memory
TIMES = float(os.environ.get("PD_STORM", 1))
LANE_LOSSES = (1, 2, 3)  # lane full, nested, no lane
TOKEN = "00112233445566778899aabbccddeeff"  # the library waits for the daemon: the first scope is recorded


def many(n):
    return max(int(n * TIMES), 1)


def show(text):
    if os.environ.get("PD_PRINT"):
        print(text)


def numbers(line):
    return {k: int(v) for k, v in (word.split("=") for word in line.split())}


class Storm:
    """A program that says its lines, waits for ours in between, and counts what it does."""

    def __init__(self, world, program, *args, env=None, **kwargs):
        self.process = subprocess.Popen([str(BUILD / "tests" / program), *map(str, args)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env={**world.env, **(env or {})}, **kwargs)
        self.pid = self.process.pid
        self.began = time.monotonic_ns()
        world.jobs.append(self)

    def line(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 4 * WAIT)
        assert ready, "the job says nothing"
        return self.process.stdout.readline().strip()

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def end(self, status=0):
        """Its last lines."""
        out, _ = self.process.communicate(timeout=4 * WAIT)
        self.lived = time.monotonic_ns() - self.began
        assert self.process.returncode == status, (self.process.returncode, out)
        return out.splitlines()

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT)


@pytest.fixture
def storm(world, request):
    """A daemon with a session "s" of all jobs, each recorded from its first scope on."""
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_LANE_KB=getattr(request, "param", 256))
    world.ctl("start", "s", "--all")
    world.env["PROTOND_TOKEN"] = TOKEN
    return world


def finish(world):
    """Every process has ended and is stored. ({path: count}, {path: still open}, lost)"""
    until("the rings are drained and gone", lambda: not list((world.dir / "rings").iterdir()))
    world.ctl("finalize", "s")
    losses = world.losses("s")
    assert set(losses) <= set(LANE_LOSSES), losses
    cells = world.cells("s")
    return {k: v[0] for k, v in cells.items() if v[0]}, {k: v[2] for k, v in cells.items() if v[2]}, losses


def own_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon:"))


def drained(world, pid, n):
    def have():
        job = [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == pid]
        return job and job[0]["events"] + job[0]["drops"] >= n
    until(f"{n} scopes are drained", have)


# --- threads ---------------------------------------------------------------------------------------------------------

MORE_KB = 4096  # noise of cached stacks; 100 bytes a thread would be more


def test_threads_born_and_dying(storm):
    """A thread costs nothing that is not given back, in the job and in the daemon, and none loses a scope."""
    n, creators, scopes = many(50000), 2, 3
    job = Storm(storm, "storm", "born", n, creators, scopes)
    early = numbers(job.line())
    drained(storm, job.pid, early["did"])
    daemon = [own_kb(storm.daemon.pid)]
    job.say("on")
    late = numbers(job.end()[-1])
    cells, open_, losses = finish(storm)
    daemon.append(own_kb(storm.daemon.pid))
    show(f"{n} threads, {n / late['ns'] * 1e9:.0f} a second; KiB of the job: {early['own_kb']}, {late['own_kb']}; "
         f"of the daemon: {daemon}")
    assert late["did"] == n * scopes == sum(cells.values()) and not losses
    assert set(cells) == {"/outer", "/outer/inner"} and not open_
    assert late["own_kb"] - early["own_kb"] < MORE_KB and daemon[1] - daemon[0] < MORE_KB
    if os.environ.get("PD_PRINT"):  # the same without a scope, and without us, in turns
        for scopes, disable in ((0, "1"), (3, "0"), (0, "1"), (3, "0"), (0, "1"), (3, "0")):
            job = Storm(storm, "storm", "born", n, creators, scopes, env={"PROTOND_DISABLE": disable})
            job.line()
            job.say("on")
            rate = n / numbers(job.end()[-1])["ns"] * 1e9
            show(f"{'without' if disable == '1' else 'with'} protond: {rate:.0f} a second")


def test_threads_alive_at_once(storm):
    """More threads than lanes: who finds none is counted, scope by scope, and all others are whole."""
    n, scopes = 4000, 10
    job = Storm(storm, "storm", "alive", n, scopes)
    assert numbers(job.line()) == {"alive": n}
    where = storm.ctl_json("where")["jobs"][0]["threads"]
    job.say("leave")
    did = numbers(job.end()[-1])["did"]
    cells, open_, losses = finish(storm)
    assert did == n * scopes == sum(cells.values()) + sum(losses.values())
    lanes = cells["/outer/inner"] // (scopes - 1)
    assert lanes < n and set(cells) == {"/outer", "/outer/inner"} and not open_ and set(losses) <= {3}
    assert cells["/outer/inner"] == lanes * (scopes - 1), "a thread has a lane or has none"
    assert cells["/outer"] >= lanes, "and gets one, when another has left, for what it is still in"
    assert sum(1 for t in where if t["open"]) == lanes
    show(f"{n} threads alive: {lanes} have lanes; lost {losses}")


def test_threads_that_leave_without_a_word(storm):
    """By the bare system call: no destructor runs. Their lanes are found when there is none left."""
    job = Storm(storm, "storm", "mute", 600)
    def later():
        assert job.line() == "ready"
        job.say("one")
        return storm.cells("s").get("/later/inner")
    until("a thread has a lane again", later)
    assert job.line() == "ready"
    job.say("q")
    did = numbers(job.end()[-1])["did"]
    cells, _, losses = finish(storm)
    assert sum(cells.values()) + sum(losses.values()) == did and set(losses) <= {3} and cells["/later"] > 0


def test_speed_while_the_daemon_is_killed_and_comes_back(storm):
    """The job goes on at full speed without a daemon; what finds no room then is summed, and nothing is lost."""
    def kill():
        storm.daemon.kill()
        storm.daemon.wait(WAIT)
    job = Storm(storm, "storm", "speed", many(1000000))
    for then in (kill, lambda: storm.start(PROTOND_AUTO_SESSION="off"), lambda: None):
        assert job.line() == "phase"
        then()
        job.say("next")
    lines = [numbers(line) for line in job.end()]
    cells, _, losses = finish(storm)
    did = lines[-1]["did"]
    for name, at in zip(("two clock readings", "before", "without", "after"), lines):
        show(f"{name:>18}: p50 {at['p50']} p99 {at['p99']} p99.9 {at['p999']} max {at['max']} ns of {at['n']}")
    show(f"did {did}, stored {cells['/inner']}, lost {losses}")
    assert did == cells["/inner"] and losses == {}
    # Half of all scopes: a busy machine does not reach those. A summed one takes half as long again as one that is recorded.
    before, without, after = (at["p50"] for at in lines[1:4])
    assert max(without, after) <= 3 * before + 100, (before, without, after)


# --- signals ---------------------------------------------------------------------------------------------------------

def last(cells, *names):
    """Scopes of these names ("name": and of "name 1"), wherever they stand."""
    return sum(n for path, n in cells.items() if path.rsplit("/", 1)[1].split()[0] in names)


LARGE = pytest.mark.parametrize("storm", [16384], indirect=True, ids=["16 MiB"])  # lanes that nobody has to empty


def check_handlers(cells, open_, losses, did):
    assert sum(cells.values()) + sum(losses.values()) == did["threads"] + did["handlers"] and not open_
    if 1 not in losses and TIMES <= 3:  # no lane was full, or missing until those of ended threads were looked for
        assert last(cells, "outer", "inner") == did["threads"], "a handler takes nothing from whom it interrupts"
        assert did["handlers"] > 0


@LARGE
@pytest.mark.parametrize("stack", ["main", "alternate"])
def test_handlers_with_scopes_interrupt_everything(storm, stack):
    job = Storm(storm, "storm_signal", "inside", many(30000), 50000, stack)
    did = numbers(job.end()[-1])
    cells, open_, losses = finish(storm)
    show(f"{did}, lost {losses}")
    check_handlers(cells, open_, losses, did)


def test_handlers_with_scopes_in_threads_that_are_born_and_die(storm):
    job = Storm(storm, "storm_signal", "dying", many(10000), 50000)
    did = numbers(job.end()[-1])
    cells, open_, losses = finish(storm)
    show(f"{did}, lost {losses}")
    check_handlers(cells, open_, losses, did)


@LARGE
@pytest.mark.parametrize("stack", ["main", "alternate", "below", "above"])
def test_handlers_that_jump_out_of_their_scopes(storm, stack):
    job = Storm(storm, "storm_signal", "jump", many(500), 50000, stack)
    did = numbers(job.end()[-1])
    cells, open_, losses = finish(storm)
    show(f"{did}, lost {losses}")
    assert last(cells, "after") == 2000 or 1 in losses, "no thread stays behind its guard"
    extra = sum(cells.values()) + sum(losses.values()) - did["threads"] - did["handlers"] - 2000
    show(f"{extra} scopes more than calls that returned")
    assert 0 <= extra <= did["torn"]
    spent = sum(v[1] for path, v in storm.cells("s").items() if path.count("/") == 1)
    assert spent <= 2 * job.lived * 1.01, "two threads have no more time than there was"


# --- forks -----------------------------------------------------------------------------------------------------------

@pytest.mark.long
def test_forks_while_others_are_inside(storm):
    """Children that leave, are killed and become other programs; each is whole, and so is who made them."""
    jobs = [Storm(storm, "storm_fork", how, many(18)) for how in ("forks", "thread") * 4]
    did = {"work": 0, "name": 0, "child": 0, "execed": 0, "hasty": 0}
    for job in jobs:
        for k, v in numbers(job.end()[-1]).items():
            did[k] += v
    cells, open_, losses = finish(storm)
    stored = {k: last(cells, k) for k in did}
    show(f"{did}; stored {stored}; lost {losses}")
    assert not losses and stored["hasty"] <= did.pop("hasty")
    assert {k: stored[k] for k in did} == did
    assert cells["/parent"] == len(jobs), "a child does not leave its parent's scope"
    assert not open_ and cells["/parent/child"] == did["child"]


def test_children_of_a_handler_that_interrupted_a_scope(storm):
    """They return into the middle of a call of the parent's, late, and touch nothing of the parent's."""
    job = Storm(storm, "storm_fork", "handler", many(50))
    did = numbers(job.end()[-1])
    cells, _, losses = finish(storm)
    show(f"{did}, lost {losses}")
    # One that was interrupted between two scopes has a scope of its own, as a process of its own.
    ((parents,),) = storm.sql("SELECT sum(c.count) FROM cell c JOIN node n ON n.id = c.node JOIN process p ON"
                              " p.id = c.process WHERE n.name = 'work' AND p.ns_pid = ?", job.pid)
    assert parents + sum(losses.values()) == did["work"] <= cells["/work"] + sum(losses.values())


# --- copies of the library, and what stands in its way ---------------------------------------------------------------

LIBRARY = BUILD / "lib/libprotond.so.0"
AGENT = BUILD / "lib/libprotond-agent.so.0"


@pytest.fixture
def copy(tmp_path):
    """Another installation: both files once more, with the names that they have."""
    there = tmp_path / "elsewhere"
    there.mkdir()
    return [shutil.copy(file, there) for file in (LIBRARY, AGENT)]


def loads(world, n, *what):
    """What storm_load says of each library that it could load: (did, recorded, result of a start, words)."""
    lines = Storm(world, "storm_load", n, *what).end()
    said = [line.split(": ", 1) for line in lines if line]
    copies = [text.split(" ", 3) for what, text in said if what == "copy"]
    return [(int(a), int(b), int(c), words) for a, b, c, words in copies], \
        [text for what, text in said if what == "not loaded"], [text for what, text in said if what == "full"]


@pytest.mark.parametrize("which", ["same", "copy", "agent", "both"])
def test_preloaded_and_linked(storm, copy, which):
    preload = {"same": [LIBRARY], "copy": copy[:1], "agent": [AGENT], "both": copy[::-1]}[which]
    job = Storm(storm, "storm", "born", 1000, 2, 3, env={"LD_PRELOAD": " ".join(map(str, preload))})
    job.line()
    job.say("on")
    did = numbers(job.end()[-1])["did"]
    cells, _, losses = finish(storm)
    assert sum(cells.values()) == did == 3000 and not losses
    assert storm.sql("SELECT count(*) FROM process") == [(1,)], "one ring"


OTHER = "another libprotond was loaded before this one"
APART = "namespace of its own"


@LARGE
@pytest.mark.parametrize("what", [
    "open0 open0", "open0 open1", "open1 open0 open1", "close0", "open0 close0 close0", "close0 open1", "open0 close1",
    "open0 new0", "new0 open0 new1", "new0"])
def test_loaded_more_than_once(storm, copy, what):
    """The first copy speaks, through whatever handle it was loaded; another, or one in a namespace of its own, says
    why it does not. The program's own thread-specific data, which it looks after, stays what it is."""
    n, paths = 20000, (str(LIBRARY), copy[0])
    words = what.split()
    first = next((w[-1] for w in words if w[:-1] != "new"), None)
    silent = [APART if w[:-1] == "new" else OTHER if w[-1] != first else None for w in words]
    got, refused, _ = loads(storm, n, *(f"{w[:-1]}:{paths[int(w[-1])]}" for w in words))
    assert not refused and len(got) == len(words)
    for (did, recorded, start, said), why in zip(got, silent):
        assert did == n and recorded == (why is None)
        assert (start, said) == (0, "") if why is None else start == -errno.EACCES and why in said
    cells, open_, losses = finish(storm)
    assert sum(cells.values()) == n * silent.count(None) and not losses and not open_


def fillers(path, **numbers_):
    """Libraries with so many bytes of thread-local memory each: {bytes: how many}."""
    for bytes_, n in numbers_.items():
        for i in range(n):
            file = path / f"{bytes_}.{i}.so"
            shutil.copy(BUILD / f"tests/storm_tls{bytes_[1:]}.so", file)
            yield f"fill:{file}"


def test_room_for_thread_local_memory_beside_another_that_takes_1_kib(storm, tmp_path):
    got, refused, full = loads(storm, 1000, *fillers(tmp_path, b1024=1), f"open:{LIBRARY}")
    assert got == [(1000, 1, 0, "")] and not refused and not full
    assert sum(finish(storm)[0].values()) == 1000


def test_no_room_for_thread_local_memory(storm, tmp_path):
    """The loader's words, from the program's own call or, where the engine finds no room, from a start."""
    all_of_it = list(fillers(tmp_path, b1024=4, b64=20, b8=10))
    got, refused, full = loads(storm, 1000, *all_of_it, f"open:{LIBRARY}")
    assert not got and len(refused) == 1 and "static TLS" in refused[0] and full
    storm.env.pop("PROTOND_TOKEN")  # it would load the engine at once
    storm.ctl("finalize", "s")  # likewise, if a little later
    got, refused, full = loads(storm, 1000, f"open:{LIBRARY}", *all_of_it)
    assert [one[:3] for one in got] == [(1000, 0, -errno.ELIBACC)] and not refused and full
    assert "libprotond-agent.so.0" in got[0][3] and "static TLS" in got[0][3]


# --- nothing left ----------------------------------------------------------------------------------------------------

def limited(world, which=None, value=None, **env):
    """(what a start gave, its words); None: the program itself could not be started."""
    def set_limit():
        if which is not None:
            resource.setrlimit(which, (value, value))
    rings = set((world.dir / "rings").glob("*.ring"))
    r = subprocess.run([str(BUILD / "tests/storm_limit"), "100"], env={**world.env, **env}, preexec_fn=set_limit,
                       capture_output=True, text=True, timeout=WAIT)
    if r.returncode == 127:
        assert "shared libraries" in r.stderr
        return None
    assert r.returncode == 0 and not r.stderr, (r.returncode, r.stderr)
    session, leaked, depth, words = r.stdout.rstrip("\n").split(" ", 3)
    assert depth == "0" and leaked == "0", "descriptors that a start that failed has left"
    if int(session) < 0 and "control file" not in words:  # the daemon has its ring then
        assert set((world.dir / "rings").glob("*.ring")) <= rings, "rings that a start that failed has left"
    assert (int(session) < 0) == (words != "")
    return int(session), words


def done(world, n):
    """Sessions "own" of n jobs, each whole; what others began is gone."""
    until("the rings are drained and gone", lambda: not list((world.dir / "rings").iterdir()))
    assert world.cells("own").get("/inside", (0,))[0] == 100 * n and not world.losses("own")
    assert not world.cells("own").get("/before")


SWEEPS = {
    "descriptors": (resource.RLIMIT_NOFILE, range(3, 12)),
    "memory": (resource.RLIMIT_AS, [mib << 20 for mib in (*range(4, 112, 4), 1000)]),
}


@pytest.mark.parametrize("sweep", SWEEPS)
def test_a_limit_is_said_and_costs_nothing(world, sweep):
    """Whatever a limit leaves room for: the job runs, a start works or says why not, and nothing is left behind."""
    which, values = SWEEPS[sweep]
    world.start(PROTOND_AUTO_SESSION="off")
    got = [limited(world, which, value) for value in values]
    for value, one in zip(values, got):
        show(f"{sweep} {value}: {one}")
    words = {one[1] for one in got if one is not None}
    assert "" in words and len(words) >= 3, "each step of the way was hit"
    assert not any("did not answer" in w or "no protond is running" in w for w in words), "the daemon is there"
    done(world, sum(1 for one in got if one is not None and one[0] == 0))


@pytest.mark.parametrize("threads, words", [(0, "the library's thread"), (1, "the agent's thread"), (2, None)])
def test_no_more_threads(world, threads, words):
    world.start(PROTOND_AUTO_SESSION="off")
    session, said = limited(world, STORM_THREADS=str(threads))
    if words is not None:
        assert session == -errno.EAGAIN and words in said and os.strerror(errno.EAGAIN) in said
    done(world, int(words is None))
