# SPDX-License-Identifier: MIT. `protonctl top` on a whole screen, in a terminal of tmux: what it shows, its keys, and what it does
# when things end.
import os
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, WAIT, until
from test_replay import DUMPS, JOB as REPLAY, STUB

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")


ONE = "protonctl top --interval 3600"  # one look, of all so far, until a key asks for another


class Terminal:
    """A shell's command in a terminal of its own; `text` is the screen as it is."""

    def __init__(self, world, command, size=(80, 24), **env):
        socket = world.dir / f"tmux{len(list(world.dir.glob('tmux*')))}"
        self.tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        env = {**world.env, "PATH": f"{BUILD / 'bin'}:{world.env['PATH']}", **env}
        kind = f"TERM={env.pop('TERM')} " if "TERM" in env else ""  # else what tmux says that it is
        line = f"trap : INT; {kind}{command} 2>err; echo ended $? >status; cat err"
        self.world = world
        subprocess.run([*self.tmux, "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "sh", "-c",
                        f"{line}; tmux -S {socket} wait-for -S over; exec cat"], env=env, cwd=world.home, check=True, timeout=WAIT)

    def run(self, *args):
        return subprocess.run([*self.tmux, *map(str, args)], capture_output=True, text=True, timeout=WAIT)

    def text(self, *args):
        return self.run("capture-pane", "-p", *args).stdout

    def shows(self, *words):
        """The screen, once it has all these words."""
        last = [""]

        def there():
            last[0] = self.text()
            return last[0] if all(re.search(word, last[0]) for word in words) else None
        try:
            return until(words, there, interval=0.02)
        except AssertionError:
            raise AssertionError(f"{words} never on the screen:\n{last[0]}") from None

    def has_rows(self, want, *words):
        """The screen, once it has these words and these rows: it is drawn a piece at a time."""
        last = [None, None]

        def there():
            last[:] = self.shows(*words), None
            last[1] = rows(last[0])
            return last[0] if want(last[1]) else None
        try:
            return until(words, there, interval=0.02)
        except AssertionError:
            raise AssertionError(f"the rows are {last[1]}:\n{last[0]}") from None

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def status(self):
        """Of the command, once it has ended."""
        self.run("wait-for", "over")
        return int((self.world.home / "status").read_text().split()[1])

    def close(self):
        self.run("kill-server")


@pytest.fixture
def terminal(world):
    made = []

    def make(*args, **kwargs):
        made.append(Terminal(world, *args, **kwargs))
        return made[-1]
    yield make
    for t in made:
        t.close()


def live(world):
    """A job of steps in a session that goes on; it takes further turns by its line."""
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    until("it is attached", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == job.pid])
    world.ctl("start", "live", "--pid", job.pid, "-b", "none")
    turn(job, 20)
    return job


def turn(job, times):
    job.say("enter load/all")
    job.say(f"repeat {times} decode")
    job.say("exit")
    for _ in range(times):
        for name in ("step", "forward"):
            job.say(f"enter {name}")
        job.say("repeat 4 layer")
        for _ in range(2):
            job.say("exit")


def rows(screen):
    """The names below the head of the table."""
    lines = screen.splitlines()
    (head,) = [i for i, line in enumerate(lines) if "SCOPE OR KERNEL" in line]
    at = lines[head].index("SCOPE OR KERNEL")
    return [line[at:].rstrip() for line in lines[head + 1:-1] if line[at:].strip()]


def test_a_list_its_keys_and_the_end(world, terminal):
    live(world)
    t = terminal(ONE)
    screen = t.shows("live  session 1  active .*1 job", "drops 0  overhead", "step/forward/layer", "q quit  \\? help  s sort:cpu")
    assert set(rows(screen)) == {"step", "step/forward", "step/forward/layer", "load/all", "load/all/decode"}
    assert "GPU ms/s" not in screen and max(map(len, screen.splitlines())) <= 80 and "since it began" in screen
    t.keys("s")
    t.shows("s sort:calls")
    t.keys("s", "s")
    t.has_rows(lambda r: len(r) == 5 and r == sorted(r), "s sort:name")
    t.keys("S")
    t.shows("s sort:p99")
    t.keys("/")
    t.shows("filter: _")
    t.keys("-l", "FORWx")
    t.keys("BSpace", "Enter")
    t.has_rows(lambda r: set(r) == {"step/forward", "step/forward/layer"}, "/FORW", "sort:p99")
    t.keys("?")
    t.shows("this help; any key ends it", "choose a row")
    t.keys("x")
    t.shows("SCOPE OR KERNEL")
    t.keys("n")
    t.shows("no other session is live")
    t.keys("r")
    t.shows("this session has no other job")
    t.keys("d")
    t.shows("no GPU work was recorded in this session")
    t.keys("q")
    assert t.status() == 0


def test_small(world, terminal):
    """Forty columns and ten lines have all keys, and the end of what is typed."""
    live(world)
    t = terminal(ONE, size=(40, 10))
    t.shows("step/forward")
    t.keys("?")
    for words in ("? help", "r rank", "d device", "n session", "w report", "Up, Down choose"):
        t.shows(re.escape(words))
    t.keys("x", "/")
    t.keys("-l", "a text that is longer than the line is wide")
    t.shows("filter: a text that.*wide_")


def test_the_tree(world, terminal):
    live(world)
    t = terminal(f"{ONE} live")
    t.shows("step/forward")
    t.keys("e")
    shown = ["    decode", "  ▸ forward", "▾ load/all", "▾ step"]  # a name with a slash is one name
    tree = rows(t.has_rows(lambda r: sorted(r, key=str.strip) == shown, "e list"))
    t.keys("Home")
    if tree[0] != "▾ step":
        t.keys("Down", "Down")
    t.keys("Enter")
    t.shows("▸ step")
    t.keys("Right")
    t.shows("▾ step")
    t.keys("Left")
    t.shows("▸ step")
    t.keys("E")
    t.has_rows(lambda r: any(name.strip() == "layer" for name in r), "▾ forward")
    t.keys("E")
    t.shows("▸ forward")
    t.keys("q")
    assert t.status() == 0


def test_what_happens_now(world, terminal):
    """Looks go on; a pause holds the picture."""
    job = live(world)
    t = terminal("protonctl top --interval 0.1")
    t.shows("last [0-9.]+ s", "nothing happened in this time")
    turn(job, 5)
    t.shows("[0-9.]+ steps/s", "step/forward/layer")
    t.keys("p")
    held = t.shows("PAUSED")
    world.ctl("start", "other", "--pid", job.pid, "-b", "none")
    turn(job, 3)
    assert t.text() == held
    t.keys("p", "n")
    t.shows("other  session 2")
    t.keys("n")
    t.shows("live  session 1")
    world.ctl("finalize", "live")
    t.shows("session 1  finalized", "this session is over; n shows the next one that goes on")
    t.keys("n")
    t.shows("other  session 2")
    t.keys("w")
    t.shows("written to session-2.html")
    assert "<html" in (world.home / "session-2.html").read_text()[:2000].lower()
    t.keys("C-c")
    assert t.status() == 0


@pytest.mark.parametrize("size, env, glyph", [((40, 10), {}, "▾"), ((30, 8), {}, "▾"), ((120, 30), {"LC_ALL": "C"}, "-"), ((80, 24), {"TERM": "vt100"}, "▾")])
def test_sizes_and_terminals(world, terminal, size, env, glyph):
    live(world)
    t = terminal(ONE, size, **env)
    screen = t.shows("CPU ms/s.*SCOPE", "q quit")
    assert max(map(len, screen.splitlines())) <= size[0] and "live  session 1" in screen
    t.keys("e")
    screen = t.shows(f"{glyph} step")
    assert env.get("LC_ALL") != "C" or screen.isascii()
    t.run("resize-window", "-x", 15, "-y", 5)
    t.shows("too small")
    t.run("resize-window", "-x", 100, "-y", 20)
    t.shows("CALLS/s +P50 +P99 +CLASS", f"{glyph} step", "q quit.{36}")  # the foot is as wide, and drawn last
    t.keys("q")
    assert t.status() == 0


def test_no_color(world, terminal):
    """What is wrong is red, unless there is to be no colour."""
    job = live(world)
    for env in ({}, {"NO_COLOR": "1"}):
        t = terminal("protonctl top", **env)
        t.shows("SCOPE OR KERNEL")
        t.keys("n")
        t.shows("no other session")
        world.ctl("delete", "live", "--force")
        t.shows("no session '[0-9]+'")
        assert bool(re.search(r"\033\[(1;)?31m", t.text("-e"))) == (env == {})
        t.keys("q")
        assert t.status() == 0
        t.close()
        world.ctl("start", "live", "--pid", job.pid, "-b", "none")
        turn(job, 2)


def test_names_that_are_not_harmless(world, terminal):
    job = live(world)
    job.say("enter \033[2J\033[31mred\u202e\u009b5m")
    job.say("repeat 3 " + "x" * 300)
    t = terminal(ONE)
    screen = t.shows(r"\\x1b\[2J\\x1b\[31mred\\u202e\\u009b5m", "…x+\n")
    assert "\u202e" not in screen and max(map(len, screen.splitlines())) <= 80
    t.keys("/")
    t.shows("filter: _")
    t.keys("-l", "y" * 200)
    t.shows("filter: " + "y" * 63)
    t.keys("Enter")
    t.shows("nothing matches")
    t.keys("q")
    assert t.status() == 0


def test_a_daemon_that_ends(world, terminal):
    live(world)
    t = terminal("protonctl top")
    t.shows("SCOPE OR KERNEL")
    world.stop()
    assert t.status() == 3
    t.shows("protonctl top: protond")


def test_nothing_to_show(world, terminal):
    world.start(PROTOND_AUTO_SESSION="off")
    t = terminal("protonctl top")
    assert t.status() == 1
    t.shows("no session is live; start one with `protonctl run -- CMD`")


def test_a_terminal_without_a_screen(world, terminal):
    live(world)
    for kind in ("dumb", "there-is-none"):
        t = terminal("protonctl top --interval 0.1", TERM=kind)
        t.shows("TIME ms .*\n(.*\n)+.*TIME ms ")
        t.keys("C-c")
        t.close()
    assert "SCOPE OR KERNEL" in world.ctl("top", "live").stdout, "a pipe has none, either"


@pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
def test_gpu_work_ranks_and_devices(world, terminal):
    import gzip
    world.start(PROTOND_AUTO_SESSION="off")
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress(next(d for d in DUMPS if d.name.startswith("torch")).read_bytes()))
    first, second = (world.job(env={"RANK": str(rank), "WORLD_SIZE": "2"}) for rank in (0, 1))
    world.ctl("start", "gpu", "--all")
    for job, name in ((first, "alpha"), (second, "zebra")):
        job.say(f"repeat 5 {name}")
    subprocess.run([REPLAY], check=True, stdout=subprocess.DEVNULL, timeout=WAIT,
                   env={**world.env, "PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump), "RANK": "2"})
    until("its kernels are there", lambda: sum(c["class"] == 1 for c in world.ctl_json("top", "gpu")["cells"]) > 20)
    (gpu,) = world.ctl_json("top", "gpu")["devices"]
    assert gpu["busy_ns"] == sum(gpu[f"{k}_ns"] for k in ("compute", "comm", "copy")) and gpu["idle_launch_ns"] >= 0
    t = terminal(f"{ONE} gpu", (120, 40))
    screen = t.shows("GPU ms/s +CPU ms/s", "GPU busy", "s sort:gpu", r"\[memcpy HtoD\]", "compute +.*at::native")
    assert "2 jobs" in screen
    t.keys("/")
    t.shows("filter: _")
    t.keys("alpha", "Enter")
    t.has_rows(lambda r: r == ["alpha"], "/alpha\n")
    t.keys("r")
    t.has_rows(lambda r: r == ["alpha"], f"rank 0  pid {first.pid}")
    t.keys("r")
    t.shows(f"rank 1  pid {second.pid}", "nothing matches")
    t.keys("/")
    t.shows("filter: alpha_")
    t.keys("BSpace", "BSpace", "BSpace", "BSpace", "BSpace", "Enter")
    t.has_rows(lambda r: r == ["zebra"], "rank 1")
    t.keys("r", "d")
    t.has_rows(lambda r: "[memcpy HtoD]" in r and not {"alpha", "zebra"} & set(r), "2 jobs  GPU 0 alone")
    t.keys("/")
    t.shows("filter: _")
    t.keys("zebra", "Enter")
    t.shows("nothing matches")
    t.keys("d")
    t.has_rows(lambda r: r == ["zebra"], "2 jobs  /zebra\n")
    t.keys("q")
    assert t.status() == 0
