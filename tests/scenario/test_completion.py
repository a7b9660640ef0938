# SPDX-License-Identifier: MIT. What the shells complete: asked of the programs, and of each shell that is installed.
import contextlib
import os
import pty
import select
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BUILD, WAIT, until

DEMO = BUILD / "bin/protond-demo"


def words(world, program, *typed):
    return [line.split("\t")[0] for line in world.tool(program, "__complete", "--", *typed).stdout.splitlines()]


@pytest.mark.parametrize("typed, want", [
    (["ru"], ["run"]), (["finalize", "--t"], ["--timeout"]), (["run", "--backend", "c"], ["cupti"]), (["run", "-b", ""], ["cupti", "none"]),
    (["run", "--data=t"], ["--data=tree", "--data=trace"]), (["run", "--data", "=", "b"], ["both"]),  # as zsh, and as bash splits it
    (["run", "-k", "triton,to"], ["triton,torch"]), (["run", "-q", ""], ["!command"]), (["run", "--", "py"], ["!command"]),
    (["run", "python", ""], []), (["run", "python", "--ba"], []), (["run", "-o", ""], []), (["completion", "b"], ["bash"]), (["daemon", "sta"], ["start", "status"]),
    (["help", "op"], ["options"]), (["help", "run", ""], []), (["nosuch", ""], []), (["sessions", ""], []), (["__co"], [])])
def test_words_of_protonctl(world, typed, want):
    assert words(world, "protonctl", *typed) == want


@pytest.mark.parametrize("typed, want", [
    (["fl"], ["flat"]), (["tree", "--th"], ["--threshold"]), (["x.hatchet", "--print"], ["--print-sorted"]), (["--incl"], ["--include"]),
    (["diff", "--print"], []), (["tree", "-s", ""], ["seen", "value", "name"]), (["flat", "-s", "p"], ["p50", "p99"]),
    (["tree", "-m", "time/ms,cpu_time/n"], ["time/ms,cpu_time/ns"]), (["help", "ex"], ["export"]),
    (["--json", "fl"], ["flat"]), (["-m", "count", "fl"], ["flat"]), (["--db", "=", "x", "fl"], ["flat"]),
    (["--json", "diff", "--ga"], ["--gate"]), (["-m", "count", "x", "fl"], []), (["--", "fl"], [])])
def test_words_of_protonview(world, typed, want):
    assert words(world, "protonview", *typed) == want


def test_words_are_taken(world):
    """What is offered for an option is what it takes."""
    world.ctl("run", "-q", "-d", "both", "-n", "s", "--", DEMO)
    for option in ("-s", "-f"):
        offered = words(world, "protonview", "tree", option, "")
        assert offered and all(world.view("tree", "s", option, word) for word in offered)
    offered = words(world, "protonview", "export", "-f", "")
    assert {"hatchet", "chrome_trace", "pprof"} <= set(offered)
    assert all(world.view("export", "s", "-o", f"x{i}", "-f", word).returncode == 0 for i, word in enumerate(offered))


def test_sessions_and_jobs(world):
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    until("known", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == job.pid])
    world.ctl("start", "one", "--pid", job.pid)
    world.ctl("start", "$(touch ran)", "--pid", job.pid)
    world.ctl("tag", "one", "base", "gpu:h200")
    mine = f"@job:{job.pid}"
    assert words(world, "protonctl", "finalize", "") == ["@last", "one", "@tag:base", "@tag:gpu:h200", mine], "what a shell would run is left out"
    assert words(world, "protonctl", "where", "@j") == [mine] and words(world, "protonview", "tree", "@j") == [mine]
    assert words(world, "protonctl", "note", "@tag:g") == ["@tag:gpu:h200"] == words(world, "protonview", "diff", "one", "@tag:g")
    assert words(world, "protonctl", "delete", "one", "o") == ["one"]
    assert words(world, "protonctl", "finalize", "one", "") == []
    world.ctl("finalize", "one")
    world.ctl("finalize", "$(touch ran)")
    for verb in ("finalize", "set", "stop", "activate", "top"):
        assert words(world, "protonctl", verb, "") == [mine], f"{verb}: what is over is over, and @last is it"
    world.ctl("start", "two", "--pid", job.pid)
    assert words(world, "protonctl", "set", "") == ["@last", "two", mine]
    assert "one" in words(world, "protonctl", "rename", ""), "of all"
    assert words(world, "protonctl", "pause", "") == [str(job.pid)]
    assert words(world, "protonctl", "where", str(job.pid)[:1]) == [str(job.pid)]
    world.stop()
    assert words(world, "protonview", "diff", "o", "on") == ["one"], "of the database, where no daemon runs"
    assert words(world, "protonview", "on") == ["one"]
    assert words(world, "protonview", "tree", "@") == ["@last", "@auto", "@tag:base", "@tag:gpu:h200"]
    for name in ("one\a", "one\033[31m", "one\u009b31m"):  # of a database that somebody else wrote
        with contextlib.closing(sqlite3.connect(world.db)) as db, db:
            db.execute("UPDATE session SET name = ? WHERE name GLOB 'one*'", (name,))
        assert words(world, "protonview", "on") == [], name


SHELLS = {
    "bash": """source <({program} completion bash)
COMP_LINE='{typed} '; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({typed} ""); COMP_CWORD=$(({n} + 1)); _protond x "" y; printf '%s\\n' "${{COMPREPLY[@]}}" """,
    "zsh": """compdef() {{ :; }}; _files() {{ echo files; }}; _command_names() {{ echo commands; }}
compadd() {{ print -l $names; }}
source <({program} completion zsh)
words=({typed} ""); CURRENT=$(({n} + 2)); _protond""",
    "fish": """{program} completion fish | source; complete -C '{typed} '""",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts(world, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    for typed, want in (("protonctl run --backend", ["cupti", "none"]), ("protonview tree --sort", ["seen", "value", "name"]),
                        ("protonview help", ["apis", "bottlenecks", "breakdown", "critical", "diff", "export", "flat", "help", "import", "launches", "memory", "ops", "ranks", "recover", "report", "roofline", "series", "sessions", "sql", "steps", "streams", "sync", "tree", "web"])):
        code = SHELLS[shell].format(program=BUILD / "bin/protonctl", typed=typed, n=typed.count(" "))
        r = subprocess.run([shell, "-c", code], env={**world.env, "PATH": f"{BUILD / 'bin'}:{world.env['PATH']}"}, cwd=world.home,
                           capture_output=True, text=True, timeout=WAIT)
        assert (r.stderr, sorted(line.split("\t")[0] for line in r.stdout.splitlines())) == ("", sorted(want))


@pytest.mark.parametrize("typed, want", [
    ("protonview tree @la", "@last "), ("protonview tree @tag:b", "@tag:base "), ("protonview diff @tag:base @au", "@auto "),
    ("protonview flat --sort=se", "--sort=self "), ("protonctl note --js", "--json ")])
def test_a_word_that_bash_cuts(world, typed, want):
    """In a terminal, by its key: bash takes `@tag:b` for four words, and replaces the last of them."""
    world.ctl("run", "-q", "-n", "s", "--", DEMO)
    world.ctl("tag", "s", "base")
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {**world.env, "PS1": "$ ", "TERM": "dumb", "INPUTRC": "/dev/null",
                                                                   "PATH": f"{BUILD / 'bin'}:{world.env['PATH']}"})
    seen = b""

    def read(what):
        nonlocal seen
        while what.encode() not in seen:
            assert select.select([fd], [], [], WAIT)[0], (what, seen)
            seen += os.read(fd, 4096)
        seen = seen.partition(what.encode())[2]
    try:
        os.write(fd, b"bind 'set enable-bracketed-paste off'; source <(protonctl completion bash); echo re\"ad\"y\n")
        read("ready\r\n")
        os.write(fd, f"{typed}\t".encode())
        read(typed.rpartition(" ")[0] + " " + want)
    finally:
        os.write(fd, b"\x15exit\n")
        os.waitpid(pid, 0)
        os.close(fd)
