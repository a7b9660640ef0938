# SPDX-License-Identifier: MIT. `protonctl run`, and what every command owes a shell.
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from conftest import BUILD, WAIT, until
from test_trouble import said

DEMO = BUILD / "bin/protond-demo"
ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_run_prints_the_tree_on_stderr_and_nothing_else_on_stdout(world):
    r = world.ctl("run", "-n", "demo", "--", DEMO)
    assert r.stdout.splitlines()[0].startswith("training on the ")
    assert len(r.stdout.splitlines()) == 2, "standard output is the job's alone"
    for word in ("epoch", "forward", "layer 3", "decode batch", "protonview"):
        assert word in r.stderr
    cells = world.cells("demo")
    assert cells["/epoch"][0] == 3
    assert cells["/epoch/step/forward/layer 0"][0] == 24
    assert world.state("demo") == "finalized"
    assert "epoch" in world.view("tree", "@last").stdout
    assert world.ctl("run", "-n", "again", "--", "true").returncode == 0, "the daemon is found again"


@pytest.mark.parametrize("command, status", [
    (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -TERM $$"], 128 + 15),
    (["/nonexistent/program"], 127), (["/etc/passwd"], 126)])
def test_run_passes_the_exit_status_on(world, command, status):
    assert world.ctl("run", "--", *command, check=False).returncode == status


def test_a_python_of_another_name(world):
    world.env["PATH"] = "/nonexistent"  # Debian has no `python`
    r = world.ctl("run", "--", "python", "train.py", check=False)
    assert r.returncode == 127 and r.stderr == "protonctl run: python: No such file or directory; perhaps it is python3 here\n"


def test_run_writes_hatchet_and_overwrites_nothing(world):
    out = world.home / "a.hatchet"
    world.ctl("run", "-n", "a", "-o", out, "--", DEMO)
    data = json.loads(out.read_text())
    assert data[0]["frame"]["name"] == "ROOT" and len(data) == 2
    r = world.ctl("run", "-n", "b", "-o", out, "--", DEMO, check=False)
    assert r.returncode == 125 and "a.hatchet" in r.stderr
    assert "training" not in r.stdout, "the job was not started"


def test_what_opens_it_again_works_in_another_shell(world):
    r = world.ctl("run", "--name", "demo", "--", DEMO)
    assert r.stderr.count("no GPU") <= 1, r.stderr
    line = r.stderr.split("Open it again: ")[1].strip()
    assert "forward" in subprocess.run(line, shell=True, capture_output=True, text=True, timeout=WAIT, env={"LC_ALL": "C.UTF-8"}).stdout
    world.ctl("shutdown")
    by_name = {"PATH": f"{BUILD / 'bin'}:/usr/bin", "PROTOND_DB": ""}
    r = subprocess.run(["protonctl", "run", "--", str(DEMO)], env={**world.env, **by_name}, capture_output=True, text=True, timeout=WAIT)
    assert r.stderr.endswith("Open it again: protonview tree 1\n"), r.stderr


def test_quiet_says_what_went_wrong_alone(world):
    assert world.ctl("run", "-q", "-b", "none", "--", DEMO).stderr == ""
    (line,) = world.ctl("run", "-q", "--", DEMO).stderr.splitlines()
    assert line.startswith("protonctl: no GPU data: ")
    assert "was not written: File exists" in world.ctl("run", "-q", "-o", "x.hatchet", "--", "sh", "-c", f"echo mine >x.hatchet; {DEMO}").stderr


@pytest.mark.parametrize("set_db", ["", "/elsewhere.db"])
def test_what_opens_it_again_names_the_daemons_database(world, set_db):
    """A daemon that runs already keeps its own, whatever the variable says now."""
    world.ctl("run", "-q", "--", DEMO)
    r = world.ctl("run", "--", DEMO, env={"PROTOND_DB": set_db and str(world.home) + set_db})
    line = r.stderr.split("Open it again: ")[1].strip()
    world.ctl("shutdown")
    assert "forward" in subprocess.run(line, shell=True, capture_output=True, text=True, timeout=WAIT, env={"LC_ALL": "C.UTF-8", **{
        k: world.env[k] for k in ("HOME", "XDG_DATA_HOME", "PROTOND_RUNTIME_DIR") if k in world.env}}).stdout


def test_the_tree_of_a_run_is_the_daemons(world):
    """Not what the database of $PROTOND_DB has under the same number."""
    other = {"PROTOND_DB": str(world.home / "other.db")}
    world.ctl("run", "-q", "-n", "before", "--", DEMO, env=other)
    world.ctl("shutdown")
    world.start()
    r = world.ctl("run", "-n", "after", "--", DEMO, env=other)
    assert "after  session 1 " in r.stderr and "before" not in r.stderr
    world.ctl("start", "again", "--all")
    words = world.ctl("finalize", "again", env=other).stdout
    assert f"`PROTOND_DB={world.db} protonview tree 2`" in words


def test_what_to_type_next_can_be_typed(world):
    """Whatever a path has in it; nothing of it is a command."""
    world.db = world.home / "a b's $(touch ran).db"
    world.env["PROTOND_DB"] = str(world.db)
    said = world.ctl("run", "-b", "none", "--", DEMO).stderr
    again = re.search(r"Open it again: (.*)", said)[1]
    world.ctl("start", "x", "--all", "-b", "none")
    for line in (again, re.search(r"`(.*)`", world.ctl("finalize", "x").stdout)[1]):
        r = subprocess.run(["sh", "-c", line], env={**world.env, "PROTOND_DB": "", "PATH": f"{BUILD / 'bin'}:{world.env['PATH']}"}, cwd=world.home,
                           capture_output=True, text=True, timeout=WAIT)
        assert r.returncode == 0, (line, r.stderr)
    world.ctl("shutdown")
    (world.home / "it's $(touch ran).json").write_text('[{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]')
    line = re.search(r"`(.*)`", world.view("import", "it's $(touch ran).json").stdout)[1]
    r = subprocess.run(["sh", "-c", line], env={**world.env, "PATH": f"{BUILD / 'bin'}:{world.env['PATH']}"}, cwd=world.home,
                       capture_output=True, text=True, timeout=WAIT)
    assert r.returncode == 0 and not (world.home / "ran").exists(), (line, r.stderr)


def test_a_process_that_outlives_its_run(world):
    r = world.ctl("run", "-b", "none", "--", "sh", "-c", f"{BUILD}/tests/load {world.home}/t 1 1000000 1 "
                  f">out 2>&1 & echo $!; until grep -q running out; do :; done; until [ $({BUILD}/bin/protonctl jobs | wc -l) = 2 ]; do :; done")
    pid = int(r.stdout)
    os.kill(pid, signal.SIGTERM)
    assert f"1 process of this run (pid {pid}) outlives CMD; nothing recorded from now on is in this session" in r.stderr
    assert "CMD" not in world.ctl("run", "-b", "none", "--", DEMO).stderr


@pytest.mark.long
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_waits_for_a_stopped_daemon_can_be_ended(world, sig):
    """Before its program began at once; behind it when that is asked for twice, and then the daemon stores what there is."""
    world.start(PROTOND_AUTO_SESSION="off")

    def run(*command):
        return subprocess.Popen([BUILD / "bin/protonctl", "run", "-q", "-b", "none", "-n", "r", "--", *command], env=world.env, cwd=world.home,
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def read(p, words):
        line = p.stderr.readline()
        assert words in line, line
        p.send_signal(sig)
    p = run("sh", "-c", f"echo repeat 3 a | {BUILD}/tests/job >/dev/null; kill -STOP {world.daemon.pid}")
    read(p, "is stopped and does not answer; waiting up to")
    read(p, "once more ends this")
    assert p.wait(WAIT) == -sig
    p = run("touch", world.home / "ran")
    read(p, "is stopped and does not answer; waiting up to")
    assert p.wait(WAIT) == -sig and not (world.home / "ran").exists()
    world.daemon.send_signal(signal.SIGCONT)
    until("the daemon has stored it", lambda: world.state("r") == "finalized", timeout=2 * WAIT)
    assert world.cells("r")["/a"][0] == 3


@pytest.mark.parametrize("command, status, words", [("kill -ILL $$", 132, True), ("exit 132", 132, False)])
def test_a_program_that_ends_on_a_signal(world, command, status, words):
    """A status over 128 is the program's own, too: mpirun has one where a program is not found."""
    r = world.ctl("run", "--", "sh", "-c", command, check=False)
    assert (r.returncode, "ended on signal 4 (Illegal instruction)" in r.stderr) == (status, words), r.stderr


def test_a_daemonised_child(world):
    """In the session while CMD lasts; what it first records later is in one of its own."""
    job = f"(setsid sh -c 'echo repeat 3 {{}} | {BUILD}/tests/job >&-; echo >done' &)"
    r = world.ctl("run", "-b", "none", "-n", "r", "--", "sh", "-c", f"mkfifo done later; {job.format('during')}; read x <done; "
                  f"(setsid sh -c 'read x <later; echo repeat 3 after | exec {BUILD}/tests/job' >/dev/null 2>&1 &)")
    assert world.cells("r")["/during"][0] == 3, r.stderr
    (world.home / "later").write_text("now\n")
    until("it is stored", lambda: world.state("job") == "finalized")
    assert world.cells("job")["/after"][0] == 3 and "/after" in world.cells("job") and "/after" not in world.cells("r")
    assert "after" in world.view("tree", "@auto").stdout


@pytest.mark.skipif(BUILD.name in ("address", "thread"), reason="the archive's code is instrumented")
def test_an_engine_that_is_not_found_is_said(world):
    (world.home / "x.c").write_text('#include "protond.h"\nint main(void) { protond_scope_enter(protond_name("x")); return 0; }')
    subprocess.run(["cc", "-I", ROOT / "libclient", world.home / "x.c", BUILD / "lib/libprotond.a", "-o", world.home / "x",
                    "-lpthread", "-ldl"], check=True)
    words = world.ctl("run", "--", world.home / "x", env={"LD_LIBRARY_PATH": ""}).stderr
    assert "the daemon says: 1 job could not record, the last: pid " in words
    assert "cannot load libprotond-agent.so.0 beside libprotond" in words and "reached protond: unless that is why" in words
    assert "the daemon says" not in world.ctl("run", "--", "true").stderr, "it was another run's"
    assert "─ x" in world.ctl("run", "--", world.home / "x").stderr, "the loader finds it"


@pytest.mark.skipif(BUILD.name in ("address", "thread"), reason="the archive's code is instrumented")
def test_a_statically_linked_program_is_left_alone(world):
    (world.home / "x.c").write_text('#include "protond.h"\nint main(void) { protond_scope_enter(protond_name("x")); return 7; }')
    subprocess.run(["cc", "-static", "-I", ROOT / "libclient", world.home / "x.c", BUILD / "lib/libprotond.a", "-o", world.home / "x",
                    "-lpthread", "-ldl"], check=True, stderr=subprocess.DEVNULL)
    r = world.ctl("run", "--", world.home / "x", env={"LD_LIBRARY_PATH": str(BUILD / "lib")}, check=False)
    assert r.returncode == 7, r.stderr
    said(r.stderr, "a statically linked program")


@pytest.mark.preload
def test_run_does_not_flood_the_terminal(world):
    script = """
import protond
for i in range(500):
    with protond.scope(f"s{i}"):
        pass
with protond.scope("long"):
    sum(range(1 << 20))
"""
    (world.home / "wide.py").write_text(script)
    r = world.ctl("run", "wide.py", env={"PYTHONPATH": str(BUILD / "lib/protond/python")})
    assert r.stderr.count("─ s") == 99 and "─ long" in r.stderr
    assert "401 more nodes, with less, are not shown; all: protonview tree 1\n" in r.stderr
    assert world.view("tree", "1").stdout.count("─ s") == 500


def test_usage_ends_where_its_words_end(world):
    for words in (world.ctl("help", "env").stdout, world.ctl("env", "x", check=False).stderr, world.view("help", "sessions").stdout,
                  world.view("sessions", "x", check=False).stderr, world.view("help", "man").stdout):
        assert "[options]" in words and not [line for line in words.splitlines() if line.endswith("] ")]


def test_hints_are_the_commands_own(world):
    world.start()
    for command in (["run", "-b", "cuda", "--", "true"], ["start", "s", "--all", "-b", "cuda"], ["run", "-n", "", "--", "true"]):
        r = world.ctl(*command, check=False)
        assert r.stderr.startswith(f"protonctl {command[0]}: ") and r.stderr.endswith("; --help says more\n"), r.stderr


def test_what_is_pruned_is_listed_no_more(world):
    """The daemon remembers the sessions that ended last, until it stores something again."""
    world.start(PROTOND_COMMIT_MS=60000)
    world.ctl("start", "s", "--all")
    world.ctl("run", "-q", "-n", "r", "--", DEMO)
    world.ctl("finalize", "s")
    world.ctl("prune", "--max-size", "1K")
    assert world.ctl_json("sessions")["sessions"] == []
    assert world.ctl("finalize", "s", check=False).returncode == 1


def test_protonview_lists_what_has_just_ended(world):
    """Also where the newest session that was asked for has long been stored."""
    world.start(PROTOND_COMMIT_MS=60000)
    world.ctl("run", "-q", "-n", "r", "--", DEMO)
    world.view("tree", "r")
    job = world.job()
    until("it records", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == job.pid and "ring" in j])
    assert job.quit() == 0
    until("its automatic session is over", lambda: [s["state"] for s in world.ctl_json("sessions")["sessions"]] == ["finalized"] * 2)
    assert [row[3] for row in json.loads(world.view("sessions", "--json").stdout)["data"]["rows"]] == ["finalized"] * 2


def test_sessions_are_listed_in_one_way(world):
    """By both tools: with what ran, and before there is one."""
    world.start()
    assert world.ctl("sessions").stdout == world.view("sessions").stdout == "no session yet; `protonctl run -- CMD` makes one\n"
    world.ctl("run", "-q", "-n", "größe", "--", DEMO)
    world.ctl("run", "-q", "-n", "n" * 100, "--", "true")
    for tool in (world.ctl, world.view):
        shown = tool("sessions")
        assert "größe" in shown.stdout and "nnn" not in shown.stdout, "it has nothing in it"
        assert "1 session with nothing in it is not shown; --all shows it" in shown.stderr
    listed = world.ctl("sessions", "--all").stdout
    assert listed == world.view("sessions", "-a").stdout
    head, empty, demo = listed.splitlines()
    assert demo[head.index("COMMAND"):].endswith("protond-demo") and "größe" in demo
    assert empty[head.index("COMMAND"):] == "-" and empty.split()[1] == "n" * 100, "a pipe gets all of it"
    both = world.ctl_json("sessions")["sessions"]
    assert both[1]["command"].endswith("protond-demo") and [s["empty"] for s in both] == [True, False]
    assert world.ctl_json("sessions", "-n", 1) == {"sessions": both[:1], "more": 1}
    assert world.ctl_json("sessions", "-n", 0) == {"sessions": both, "more": 0}


def test_run_delivers_a_signal_once(world):
    script = "trap 'echo got; exit 9' TERM; echo ready; while :; do read x <&0 || sleep 0.01; done"
    p = subprocess.Popen([str(BUILD / "bin/protonctl"), "run", "--", "bash", "-c", script],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=world.env, text=True)
    assert p.stdout.readline() == "ready\n"
    p.send_signal(signal.SIGTERM)
    out, _ = p.communicate(timeout=WAIT)
    assert out == "got\n" and p.returncode == 9


def test_run_says_why_there_is_nothing(world):
    r = world.ctl("run", "--", "true")
    assert "no process of this run reached protond" in r.stderr and "-lprotond" in r.stderr


@pytest.mark.parametrize("tool, args, status", [
    ("protonctl", ["nosuch"], 2), ("protonctl", ["finalize", "nosuch"], 1),
    ("protonctl", ["start"], 2), ("protonview", ["tree", "nosuch"], 1),
    ("protonview", ["tree", "--nosuch"], 2), ("protonview", ["tree", "@last", "-m", "nosuch"], 1),
    ("protonview", ["tree", "@last", "-i", "(["], 2)])
def test_bad_input_is_one_clear_line(world, tool, args, status):
    world.ctl("run", "-n", "one", "--", DEMO)
    r = world.tool(tool, *args, check=False)
    assert r.returncode == status, (r.stdout, r.stderr)
    assert r.stderr.strip() and not r.stdout.strip()


def test_unreachable_daemon(world):
    r = world.ctl("status", check=False)
    assert r.returncode == 3 and "protond" in r.stderr
    r = world.ctl("start", "x", "--all", check=False)
    assert r.returncode == 3


def test_start_on_a_process_that_is_none(world):
    world.start()
    r = world.ctl("start", "x", "--pid", 99999999, check=False)
    assert r.returncode == 1 and "there is no process 99999999; " in r.stderr


def test_start_on_a_stranger_prints_the_env_line(world):
    world.start()
    stranger = subprocess.Popen(["sleep", "60"], env=world.env)
    try:
        r = world.ctl("start", "x", "--pid", stranger.pid, check=False)
        assert r.returncode == 1
        assert "protonctl env" in r.stderr and str(stranger.pid) in r.stderr
    finally:
        stranger.kill()
        stranger.wait()
    assert "PROTOND_RUNTIME_DIR" in world.ctl("env").stdout


@pytest.mark.parametrize("junk", [
    b"", b"\x00", b"GET / HTTP/1.1\r\n\r\n", struct.pack("<I", 0xffffffff), struct.pack("<I", 10) + b"abc",
    struct.pack("<I", 5) + b"\xdd\xff\xff\xff\xff", struct.pack("<I", 64) + b"\x91" * 64,
    struct.pack("<I", 1) + b"\xc1"],
    ids=["nothing", "byte", "http", "huge", "half", "map32", "nested", "reserved"])
def test_garbage_on_the_control_socket_costs_only_its_sender(world, junk):
    world.start()
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(world.dir / "control.sock"))
        s.sendall(junk)
        assert world.ctl("status").returncode == 0, "others are served meanwhile"
    assert world.ctl("status").returncode == 0


@pytest.mark.parametrize("junk", [b"\x00", b"x" * 8192, struct.pack("<IHH", 0x31565250, 1, 8),
                                  struct.pack("<IHH", 0x31565250, 99, 8), b"\xff" * 112],
                         ids=["byte", "huge", "short-attach", "unknown", "noise"])
def test_garbage_on_the_agent_socket_costs_only_its_sender(world, junk):
    world.start()
    for _ in range(10):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(str(world.dir / "agent.sock"))
            s.send(junk)
            s.settimeout(WAIT)
            while s.recv(65536):
                pass  # an answer in words, perhaps, then the end
    said = [line for line in world.log().splitlines() if "event=refused" in line]
    assert len(said) == 2 and all(f" pid={os.getpid()} uid={os.getuid()} " in line for line in said), said
    assert " n=" not in said[0] and said[1].endswith(" n=10"), "one line for the first and for each power of ten"
    job = world.job()
    until("a job is served", lambda: (job.say("repeat 1 a"), [
        j for j in world.ctl_json("jobs")["jobs"] if j["events"]])[1])


@pytest.mark.parametrize("verb", ["status", "jobs", "sessions", "backends", "doctor", "version", "where"])
def test_json_everywhere(world, verb):
    world.start()
    r = world.ctl(verb, "--json", check=False)
    assert r.returncode in (0, 1, 4), r.stderr
    assert json.loads(r.stdout)["protond"] == "1"


@pytest.mark.parametrize("words, status, what", [
    (["--", "sh", "-c", "echo out; echo err >&2; exit 3"], 3, "data"), (["--", "/nonexistent/program"], 127, "error"),
    (["-o", "x.foo", "--", "true"], 125, "error"), ([], 125, "error")])
def test_the_json_of_run_is_the_last_line_of_stderr(world, words, status, what):
    r = world.ctl("run", "--json", *words, check=False)
    *err, envelope = r.stderr.splitlines()
    assert r.returncode == status and what in json.loads(envelope)
    assert (r.stdout, err) == (("out\n", ["err"]) if what == "data" else ("", []))


def test_many_runs_at_once_share_one_daemon(world):
    ps = [subprocess.Popen([str(BUILD / "bin/protonctl"), "run", "-n", f"r{i}", "--", str(DEMO)],
                           env=world.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
          for i in range(8)]
    for p in ps:
        _, err = p.communicate(timeout=120)
        assert p.returncode == 0, err
    assert {world.state(f"r{i}") for i in range(8)} == {"finalized"}
    assert all(world.cells(f"r{i}")["/epoch"][0] == 3 for i in range(8)), "each has its own job only"


def test_delete_and_prune(world):
    for name in ("gone", "gone", "kept", "left"):
        world.ctl("run", "-n", name, "--", DEMO)
    assert world.ctl("delete", "gone").stdout == "gone, id 2, is deleted\n", "the newest of two"
    assert world.ctl_json("delete", "gone", "kept") == {"deleted": 2, "sessions": [{"id": 1, "name": "gone"}, {"id": 3, "name": "kept"}], "failed": []}
    assert world.ctl("prune", "--older-than", "1d").stdout == "0 sessions are deleted\n"
    assert world.ctl("prune", "--max-size", "1K").stdout == "left, id 4, is deleted\n1 session is deleted\n"
    assert world.state("left") is None
    assert world.sql("SELECT count(*) FROM cell") == [(0,)]


def test_prune_keeps_the_newest_and_says_first_what_goes(world):
    for name in "abcd":
        world.ctl("run", "-n", name, "--", DEMO)
    said = world.ctl("prune", "--keep", "2", "--dry-run").stdout
    assert re.fullmatch(r"a, id 1\nb, id 2\n2 sessions would be deleted, about [0-9.]+ [KM]i?B\n", said), said
    plan = world.ctl_json("prune", "--keep", "2", "--dry-run")
    assert plan["dry_run"] and plan["deleted"] == 2 and plan["bytes"] > 4000 and [s["name"] for s in plan["sessions"]] == ["a", "b"]
    assert len(world.ctl_json("sessions")["sessions"]) == 4
    assert world.ctl("prune", "--keep", "2", "--older-than", "1d").stdout == "0 sessions are deleted\n"
    assert world.ctl("prune", "--keep", "2").stdout == "a, id 1, is deleted\nb, id 2, is deleted\n2 sessions are deleted\n"
    assert {s["name"] for s in world.ctl_json("sessions")["sessions"]} == {"c", "d"}
    assert world.sql("SELECT count(*) FROM cell WHERE session NOT IN (SELECT id FROM session)") == [(0,)]
    r = world.ctl("prune", "--keep", "0", check=False)
    assert r.returncode == 2 and "--keep 0: give a number of sessions" in r.stderr, r


def test_a_limit_holds_from_the_moment_it_is_passed(world):
    """Not from the next hour on: the file does not grow beyond it, but for what one transaction adds."""
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_RETENTION_MB="1")
    job = world.job()
    for i in range(12):
        world.ctl("start", f"s{i}", "--all")
        job.say("distinct 4000")
        world.ctl("finalize", f"s{i}")
    assert job.quit() == 0
    until("the oldest are gone", lambda: world.sql("SELECT (page_count - freelist_count) * 4096 FROM pragma_page_count, "
                                                   "pragma_freelist_count")[0][0] <= 1 << 20)
    names = [s for s, in world.sql("SELECT name FROM session WHERE name LIKE 's%' ORDER BY id")]
    assert 1 <= len(names) < 12 and names == [f"s{i}" for i in range(12)][-len(names):], names
    assert os.path.getsize(world.db) < 3 << 20


def test_delete_goes_on_after_a_name_that_is_unknown(world):
    for name in "abcde":
        world.ctl("run", "-q", "-n", name, "--", "true")
    r = world.ctl("delete", "a", "nosuch", "b", check=False)
    assert r.returncode == 1 and r.stdout == "a, id 1, is deleted\nb, id 2, is deleted\n"
    assert r.stderr == "protonctl delete: no session 'nosuch'; `protonctl sessions` lists what there is\n"
    r = world.ctl("delete", "--json", "c", "nosuch", "d", "neither", check=False)
    assert r.returncode == 1 and r.stderr == ""
    data = json.loads(r.stdout)["data"]
    assert data["deleted"] == 2 and data["sessions"] == [{"id": 3, "name": "c"}, {"id": 4, "name": "d"}]
    assert [(f["session"], f["code"], f["text"][:18]) for f in data["failed"]] == [
        ("nosuch", -2, "no session 'nosuch"), ("neither", -2, "no session 'neithe")]
    r = world.ctl("delete", "--json", "nosuch", check=False)
    assert r.returncode == 1 and json.loads(r.stdout)["error"]["code"] == -2, "as of any command"
    assert [s["name"] for s in world.ctl_json("sessions")["sessions"]] == ["e"]


def test_what_still_records_is_deleted_by_force_alone(world):
    world.start()
    for name in "abc":
        world.ctl("start", name, "--all")
    world.ctl("stop", "b")
    world.ctl("finalize", "c")
    r = world.ctl("delete", "a", "b", "c", check=False)
    assert r.returncode == 1 and r.stdout == "c, id 3, is deleted\n"
    assert r.stderr == ("protonctl delete: session 1 'a' is still recording; finalize it first, or use `protonctl delete --force`\n"
                        "protonctl delete: session 2 'b' has not been finalized; finalize it first, or use `protonctl delete --force`\n")
    world.ctl("delete", "a", "--force")
    world.ctl("finalize", "b")
    world.ctl("delete", "b")
    assert world.ctl_json("sessions")["sessions"] == []
    world.ctl("run", "-n", "nothing ran", "/nonexistent/program", check=False)
    assert world.ctl_json("sessions")["sessions"] == []


def test_an_empty_word_names_no_session(world):
    world.ctl("run", "-n", "kept", "--", DEMO)
    for verb in ("delete", "finalize", "stop", "activate", "top", "where"):
        r = world.ctl(verb, "", check=False)
        assert r.returncode == 2 and "empty name; is a shell variable unset?" in r.stderr, (verb, r)
    r = world.view("tree", "", check=False)
    assert r.returncode == 2 and "empty session name; is a shell variable unset?" in r.stderr, r
    assert world.state("kept") == "finalized"


def test_export_writes_through_what_is_no_file(world):
    world.ctl("run", "-n", "s", "--", DEMO)
    text = world.view("export", "s", "-f", "hatchet", "-o", "-").stdout
    device, pipe, link, file = (world.home / n for n in ("device", "pipe", "link.hatchet", "file.hatchet"))
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    for force in ([], ["--force"]):
        reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
        world.view("export", "s", "-f", "hatchet", "-o", pipe, *force)
        assert reader.communicate(timeout=WAIT)[0] == text and pipe.is_fifo()
        world.view("export", "s", "-f", "hatchet", "-o", device, *force)
        assert device.is_char_device()
    file.write_text("old")
    link.symlink_to(file)
    assert "--force overwrites it" in world.view("export", "s", "-o", link, check=False).stderr
    world.view("export", "s", "-o", link, "--force")
    assert link.is_symlink() and file.read_text() == text
    link.unlink()
    link.symlink_to(link)
    r = world.view("export", "s", "-o", link, "--force", check=False)
    assert r.returncode and "Too many levels of symbolic links" in r.stderr and link.is_symlink()  # as for a shell's `>`


@pytest.mark.long
def test_a_session_for_jobs_to_come_keeps_its_daemon(world):
    daemon = world.start(PROTOND_IDLE_EXIT_S=1)
    world.ctl("start", "later", "--all")
    with pytest.raises(subprocess.TimeoutExpired):
        daemon.wait(3)
    world.ctl("finalize", "later")
    assert daemon.wait(WAIT) == 0
    world.daemon = None


def test_short_runs_and_restarts_never_leave_an_empty_session(world):
    """A store that has seen many daemons: each short run is whole, also right after a shutdown."""
    for i in range(24):
        r = subprocess.run([str(BUILD / "bin/protonctl"), "run", "-n", f"s{i}", "--", str(BUILD / "tests/job")],
                           input="repeat 100 a\nquit 0\n", env=world.env, text=True, capture_output=True, timeout=WAIT)
        assert r.returncode == 0, r.stderr
        assert world.cells(f"s{i}")["/a"][0] == 100, r.stderr
        if i % 4 == 3:
            world.ctl("shutdown")


def test_ranks_of_one_launch_are_one_session(world):
    job = BUILD / "tests/job"
    script = (f"printf 'repeat 10 a\\nquit 0\\n' | RANK=0 WORLD_SIZE=2 {job} & "
              f"printf 'repeat 20 a\\nquit 0\\n' | RANK=1 WORLD_SIZE=2 {job} & wait")
    world.ctl("run", "-n", "ranks", "--", "sh", "-c", script)
    rows = world.sql("SELECT p.rank, p.world_size, sum(c.count) FROM process p JOIN member m ON m.process = p.id"
                     " JOIN session s ON s.id = m.session JOIN cell c ON c.process = p.id AND c.session = s.id"
                     " WHERE s.name = 'ranks' GROUP BY p.id ORDER BY p.rank")
    assert rows == [(0, 2, 10), (1, 2, 20)]
    assert world.cells("ranks")["/a"][0] == 30, "merged"


@pytest.mark.preload
def test_preloaded_into_a_foreign_program(world):
    """LD_PRELOAD reaches programs that know nothing of us, shells and their children among them: no thread of ours is
    there, and opens what a shell that redirects takes for its output. Who imports or calls us is found."""
    world.start()
    env = {**world.env, "LD_PRELOAD": str(BUILD / "lib/libprotond.so.0"), "PYTHONPATH": str(BUILD / "lib/protond/python")}
    r = subprocess.run(["sh", "-c", "ls /proc/self/maps /proc/$$/task >out; grep -c libprotond.so /proc/self/maps; "
                        "wc -l <out; exit 5"], env=env, cwd=world.home, capture_output=True, text=True, timeout=WAIT)
    maps, lines = map(int, r.stdout.split())
    assert (r.returncode, r.stderr) == (5, "") and maps > 0 and lines == len(["maps", "", "task:", "one thread"])
    assert not world.ctl_json("jobs", "--all")["jobs"] and "event=job_ended" not in world.log()
    p = subprocess.Popen([sys.executable, "-c", "import protond; input()"], env=env, stdin=subprocess.PIPE)
    until("known", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == p.pid])
    p.communicate(b"\n", timeout=WAIT)
    assert p.returncode == 0


def test_a_vfork_and_exec_leaves_the_parent_whole(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    until("known", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == job.pid])
    world.ctl("start", "s", "--pid", job.pid)
    job.say("enter a")
    job.say("spawn /bin/true")
    job.say("repeat 3 b")
    job.say("exit")
    world.ctl("finalize", "s")
    assert {k: v[0] for k, v in world.cells("s").items()} == {"/a": 1, "/a/b": 3}


def refused(world, *args, **kwargs):
    r = world.ctl("run", *args, "--", "touch", "ran", check=False, **kwargs)
    assert r.returncode != 0 and not (world.home / "ran").exists(), "before the program, not after it"
    return r.stderr


def test_an_output_that_cannot_be_is_refused_at_once(world):
    assert "No such file or directory" in refused(world, "-o", "/nowhere/x.hatchet")
    assert "add -d trace" in refused(world, "-o", "x.json")
    assert "add -d trace" in refused(world, "-o", "x.json", "-d", "tree")
    for name in ("x.foo", "x", "v1.0/x"):
        assert f"{name}: unknown format; the name must end in one of .hatchet .hatchet_msgpack" in refused(world, "-o", name)
    world.ctl("run", "-q", "-o", "x.hatchet_msgpack", "--", DEMO)
    world.view("export", "@last", "-o", "y.hatchet_msgpack")
    assert (world.home / "x.hatchet_msgpack").read_bytes() == (world.home / "y.hatchet_msgpack").read_bytes()
    r = world.ctl("finalize", "@last", "-o", "x.foo", check=False)
    assert r.returncode == 2 and "unknown format" in r.stderr


@pytest.mark.parametrize("options, program, status", [
    ([], 0, 0), (["--strict"], 0, 125), (["--strict", "--json"], 0, 125), (["--strict"], 7, 7)])
def test_an_output_that_could_not_be_written(world, options, program, status):
    """What the program itself put there is not overwritten."""
    r = world.ctl("run", "-q", *options, "-o", "x.hatchet", "--", "sh", "-c", f"echo mine >x.hatchet; exit {program}", check=False)
    assert r.returncode == status and (world.home / "x.hatchet").read_text() == "mine\n"
    assert "x.hatchet was not written: File exists; the session is stored, and `protonview export " in r.stderr
    assert world.ctl("run", "-q", *options, "-o", "y.hatchet", "--", "true").returncode == 0


def test_an_output_of_a_session_that_is_gone(world):
    r = world.ctl("run", "-q", "--strict", "-n", "s", "-o", "x.hatchet", "--", BUILD / "bin/protonctl", "delete", "--force", "s", check=False)
    assert r.returncode == 125 and not (world.home / "x.hatchet").exists()
    assert "the session could not be finalized: " in r.stderr and "x.hatchet was not written" in r.stderr


def test_wrong_variables_are_said_before_the_program_starts(world):
    wrong = {"PROTOND_GPU": "xx", "PROTOND_FLUSH_MS": "5x", "PROTOND_AUTOSTART": "yes", "PROTOND_SAMPLE_RATE": "-1", "PROTOND_HOOK": "torch,jax"}
    right = {"PROTOND_INHERIT": "copy", "PROTOND_TORCH_OPS": "Yes", "PROTOND_SAMPLE_OVERHEAD": "0.5", "PROTOND_PRESET": "", "PROTOND_RAW_DUMP": "any"}
    r = subprocess.run([BUILD / "bin/protonctl", "run", "--", "sh", "-c", "echo begins >&2"], env={**world.env, **wrong, **right},
                       capture_output=True, text=True, timeout=WAIT)
    said = r.stderr.split("begins")[0].splitlines()
    assert said == ["protonctl: warning: " + w for w in (
        "PROTOND_AUTOSTART is 'yes'; it must be 0 or 1", "PROTOND_GPU is 'xx'; it must be one of: none armed on",
        "PROTOND_FLUSH_MS is '5x'; it must be a whole number", "PROTOND_HOOK is 'torch,jax'; it must be some of, with commas: torch triton none",
        "PROTOND_SAMPLE_RATE is '-1'; it must be 0 to 1")]
    r = world.ctl("run", "--json", "--", "true", env=wrong)
    assert len([w for w in json.loads(r.stderr)["warnings"] if "it must be" in w]) == len(wrong)
    world.ctl("shutdown")
    assert "the daemon does not start: protond: auto_session = 'banana' is not one of off, scopes, full" in refused(world, "-q", env={
        "PROTOND_AUTO_SESSION": "banana"})


def test_a_daemon_that_does_not_start_says_why_at_once(world):
    began = time.monotonic()
    words = refused(world, env={"PROTOND_DB": "/nonexistent/x.db"})
    assert words == ("protonctl run: the daemon does not start: protond: /nonexistent: No such file or directory; "
                     "make it with `mkdir -p -m 700 /nonexistent`\n")
    assert time.monotonic() - began < 3
    (world.home / "no.db").write_text("not a database")
    words = refused(world, env={"PROTOND_DB": str(world.home / "no.db")})
    assert "is not a database of protond" in words and "choose another path with PROTOND_DB" in words
    ps = [subprocess.Popen([BUILD / "bin/protonctl", "run", "true"], env={**world.env, "PROTOND_DB": "/nonexistent/x.db"},
                           stderr=subprocess.PIPE, text=True) for _ in range(8)]
    assert all("mkdir -p -m 700 /nonexistent" in p.communicate(timeout=WAIT)[1] and p.returncode == 125 for p in ps), "each of the ranks"
    assert time.monotonic() - began < 5


def test_a_relative_database_is_where_it_was_typed(world):
    here = {"PROTOND_DB": "foo.db"}
    r = world.ctl("run", "-n", "s", "--", DEMO, env=here)
    path = world.home / "foo.db"
    assert path.exists() and not os.path.exists("/foo.db") and f"PROTOND_DB={path} " in r.stderr
    assert f"database   {path} " in world.ctl("status").stdout
    for _ in ("the daemon's", "the file's"):
        assert "epoch" in world.view("tree", "s", env=here).stdout
        world.ctl("shutdown", check=False)
    assert f" {path} (" in world.ctl("doctor", env=here, check=False).stdout
    gone = world.home / "gone"
    gone.mkdir()
    r = subprocess.run(["sh", "-c", 'cd "$1" && rmdir "$1" && "$0" run -- touch ran', BUILD / "bin/protonctl", gone],
                       env={**world.env, **here}, capture_output=True, text=True, timeout=WAIT)
    assert r.returncode == 125 and "give its whole path" in r.stderr, r


@pytest.mark.parametrize("protond, want", [
    ("#!/bin/sh\nkill -SEGV $$\n", "it ended on signal 11, without a message; `protond --private --foreground` shows why"),
    ("#!/bin/sh\nexit 9\n", "it ended with status 9, without a message"),
    ("#!/nonexistent\n", "bin/protond cannot be run: No such file or directory")])
def test_an_earlier_daemons_words_are_not_this_ones(world, protond, want):
    (world.home / "bin").mkdir()
    shutil.copy(BUILD / "bin/protonctl", world.home / "bin")
    (world.home / "bin/protond").write_text(protond)
    (world.home / "bin/protond").chmod(0o755)
    (world.dir / "protond.log").write_text("protond: no space to write\n")
    r = subprocess.run([world.home / "bin/protonctl", "run", "--", "true"], env=world.env, capture_output=True, text=True, timeout=WAIT)
    assert r.returncode == 125 and want in r.stderr and "no space" not in r.stderr


def test_why_nothing_was_recorded(world):
    def words(*command, **env):
        return world.ctl("run", "--", *command, check=False, env=env).stderr
    assert "no process of this run reached protond" in words("true")
    failed = words("sh", "-c", "exit 3")
    assert "ended with status 3 before it reached protond" in failed and "Link it" not in failed
    assert "PROTOND_DISABLE is set" in words(BUILD / "tests/job", PROTOND_DISABLE="1")


def test_what_was_asked_for_and_not_there(world):
    """Who has recorded with the switch is not told to."""
    world.ctl("run", "-q", "-s", "api,alloc,ops", "-n", "asked", "--", DEMO)
    world.ctl("run", "-q", "-n", "plain", "--", DEMO)
    for verb, switch in (("apis", "api"), ("memory", "alloc"), ("ops", "ops")):
        asked, plain = (world.view(verb, name, check=False) for name in ("asked", "plain"))
        assert asked.returncode == plain.returncode == 1
        assert f"the switch {switch} was on" in asked.stderr and f"run -s {switch} " in plain.stderr, asked.stderr + plain.stderr


def test_a_session_named_as_a_program_that_stands_here(world):
    (world.home / "job").write_bytes((BUILD / "tests/job").read_bytes())
    (world.home / "job").chmod(0o755)
    world.ctl("run", "--", "./job")
    assert "session 1" in world.view("tree", "job").stdout
    r = world.view("tree", "./job", check=False)
    assert r.returncode == 1 and "not a .hatchet profile" in r.stderr
    r = world.view("tree", "1", "--phase", "7", check=False)
    assert r.returncode == 1 and "has no phase 7" in r.stderr


@pytest.mark.long
@pytest.mark.slow
def test_a_killed_run_leaves_no_session_behind(world):
    """Its program goes on, and is recorded; when that has ended too, nobody but the daemon would end the session."""
    world.start()
    run = subprocess.Popen([str(BUILD / "bin/protonctl"), "run", "-n", "r", "--", str(BUILD / "tests/job")], env=world.env,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1)
    run.stdin.write("repeat 3 a\n")
    assert run.stdout.readline() == "ok\n"
    run.kill()
    run.wait(WAIT)
    run.stdin.write("repeat 4 a\n")
    assert run.stdout.readline() == "ok\n"
    run.stdin.close()
    until("its session is stored", lambda: world.state("r") == "finalized", timeout=2 * WAIT)
    assert world.cells("r")["/a"][0] == 7
    run.stdout.close()
