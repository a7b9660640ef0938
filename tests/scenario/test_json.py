# SPDX-License-Identifier: MIT. One JSON from both tools: every verb, what failed, and the fields of a session.
import json
import re

import pytest

from conftest import BUILD, until

DEMO = BUILD / "bin/protond-demo"
VIEW = {  # verb: (words, exit status); "{out}" is a file that is not there
    "tree": [("tree demo", 0), ("demo -l", 0), ("tree nobody", 1), ("demo -m nothing", 1), ("demo --depth x", 2), ("demo -i (", 2)],
    "launches": [("launches demo", 1), ("launches nobody", 1)], "streams": [("streams demo", 1), ("streams nobody", 1)],
    "steps": [("steps demo", 0), ("steps demo --step 2..3 --rank x", 2), ("steps demo --step 900", 1), ("steps demo --every 1", 1), ("steps demo --every 1 --scope step", 2), ("steps demo --every x", 2), ("steps nobody", 1)],
    "roofline": [("roofline demo", 0), ("roofline nobody", 1)],
    "critical": [("critical demo", 1), ("critical nobody", 1), ("critical demo --step 2..3", 2)],
    "apis": [("apis demo", 1), ("apis demo --by nothing", 2), ("apis demo --by thread", 1), ("apis nobody", 1)],
    "ops": [("ops demo", 1), ("ops demo --by nothing", 2), ("ops nobody", 1)], "memory": [("memory demo", 1), ("memory nobody", 1)],
    "ranks": [("ranks demo", 1), ("ranks nobody", 1)],
    "sync": [("sync demo", 1), ("sync nobody", 1)], "breakdown": [("breakdown demo", 0), ("breakdown nobody", 1)],
    "series": [("series demo", 0), ("series demo loss -n x", 2), ("series nobody", 1)],
    "bottlenecks": [("bottlenecks demo", 0), ("bottlenecks demo --all --set jitter.threshold=1", 0), ("bottlenecks demo --gate bad", 2),
                    ("bottlenecks demo --set x=1", 2), ("bottlenecks nobody", 1)],
    "flat": [("flat demo", 0), ("flat --wide demo", 0), ("flat nobody", 1)],
    "diff": [("diff demo demo", 0), ("diff demo", 2), ("diff demo nobody", 1)],
    "web": [("web demo", 2)],  # it has no envelope: it goes on
    "report": [("report demo -o {out}.html", 0), ("report demo", 2), ("report demo -o -", 2), ("report nobody -o {out}.html", 1)],
    "sessions": [("sessions", 0), ("sessions --db /nonexistent/x.db", 1)],
    "sql": [("sql demo select+1", 0), ("sql demo selec+1", 2)],
    "export": [("export demo -o {out}", 0), ("export demo", 2), ("export demo -o -", 2), ("export demo -o x.nothing", 2)],
    "import": [("import /nonexistent/x.json", 1)],
    "recover": [("recover {db}", None), ("recover /nonexistent/x.db", 1)],
    "help": [("help", 0), ("help tree", 0), ("help nothing", 2), ("--version", 0), ("tree --help", 0)],
}
CTL = {
    "sessions": [("sessions", 0), ("sessions -n 1", 0), ("sessions -n x", 2)], "jobs": [("jobs --all", 0)], "status": [("status", 0)],
    "where": [("where", 1), ("where demo", 0), ("where 4194304", 1)], "backends": [("backends", 0)],
    "env": [("env", 0)], "doctor": [("doctor", None)], "version": [("version", 0), ("--version", 0)],
    "help": [("help", 0), ("help run", 0), ("help options", 0), ("help nothing", 2)],
    "completion": [("completion bash", 0), ("completion cmd", 2)], "start": [("start", 2), ("start x", 2), ("start two --pid {pid}", 0)],
    "stop": [("stop two", 0), ("stop nobody", 1)], "activate": [("activate two", 0)], "top": [("top --once", 0), ("top --once nobody", 1)], "pause": [("pause {pid}", 0)],
    "set": [("set two -sync", 0), ("set two sync", 2), ("set nobody -sync", 1)], "resume": [("resume {pid}", 0)], "finalize": [("finalize two", 0), ("finalize nobody", 1)],
    "tag": [("tag", 2)], "note": [("note", 2)], "rename": [("rename", 2)],
    "delete": [("delete two", 0), ("delete nobody", 1)], "prune": [("prune --keep 10 --dry-run", 0), ("prune", 2)],
    "daemon": [("daemon status", 0), ("daemon dance", 2)], "run": [("run", 125)], "shutdown": [("shutdown", 0)],
}


def verbs(world, tool, table):
    """The verbs that it has; one that this table does not try fails the test."""
    has = {line.split("\t")[0] for line in world.tool(tool, "__complete", "--", "").stdout.splitlines()}
    has = {verb for verb in has if re.fullmatch("[a-z]+", verb) and verb != "demo"}
    assert has <= set(table), f"no line for {has - set(table)}"
    return [verb for verb in table if verb in has]


def ask(world, tool, words, status, **names):
    args = [word.format(**names).replace("+", " ") for word in words.split()]
    r = world.tool(tool, *args, "--json", check=False)
    out = r.stderr.splitlines()[-1] if args[0] == "run" else r.stdout
    got = json.loads(out)
    assert out.count("\n") <= 1 and got["protond"] == "1" and isinstance(got["kind"], str) and isinstance(got["warnings"], list)
    assert status is None or r.returncode == status, (args, r.returncode, out, r.stderr)
    if "error" in got:
        assert r.returncode != 0 and set(got) == {"protond", "kind", "error", "warnings"}
        assert set(got["error"]) == {"code", "text"} and got["error"]["code"] < 0 and got["error"]["text"], got
        assert args[0] == "run" or r.stderr == "", "it is said once"
    else:
        assert set(got) == {"protond", "kind", "data", "warnings"} and isinstance(got["data"], dict)
        table = got["data"]
        if "columns" in table:
            assert set(table) - {"processes", "throughput"} == {"session", "columns", "rows"}
            assert all(set(c) == {"name", "unit", "type"} for c in table["columns"])
            assert all(len(row) == len(table["columns"]) for row in table["rows"])
    assert ("error" in got) == (status not in (0, None)) or status is None or args[0] == "where", (args, got)
    return got


@pytest.fixture
def place(world):
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("run", "-q", "-n", "demo", "--", DEMO)
    until("it is stored", lambda: world.state("demo") == "finalized")
    return world


def test_every_verb_of_protonview(place):
    for verb in verbs(place, "protonview", VIEW):
        for i, (words, status) in enumerate(VIEW[verb]):
            ask(place, "protonview", words, status, out=place.home / f"x{i}.hatchet", db=place.db)


def test_every_verb_of_protonctl(place):
    job = place.job()
    until("known", lambda: [j for j in place.ctl_json("jobs")["jobs"] if j["pid"] == job.pid])
    for verb in verbs(place, "protonctl", CTL):
        for words, status in CTL[verb]:
            ask(place, "protonctl", words, status, pid=job.pid)
    place.daemon.wait(30)
    place.daemon = None


def test_words_that_are_no_verb(place):
    for tool, words in (("protonctl", "nothing"), ("protonctl", "tree demo"), ("protonctl", "status --bad"),
                        ("protonview", "nothing else"), ("protonview", "--bad"), ("protonview", "jobs"), ("protonview", "flat demo --gate 5")):
        ask(place, tool, words, 2)


def test_a_session_is_the_same_from_both(place):
    got = json.loads(place.view("sessions", "--json").stdout)["data"]
    seen = [dict(zip([c["name"] for c in got["columns"]], row)) for row in got["rows"]]
    told = place.ctl_json("sessions")["sessions"]
    assert seen and [s.keys() ^ t.keys() for s, t in zip(seen, told)] == [set()] * len(told)
    assert seen == told
    head = json.loads(place.view("tree", "demo", "--json").stdout)["data"]["session"]
    (mine,) = [t for t in told if t["name"] == "demo"]
    same = {key for key in head if key in mine}
    assert same >= {"id", "uuid", "name", "state", "command", "created_ns", "duration_ns", "processes", "launches", "matched"}
    assert {key: head[key] for key in same - {"source"}} == {key: mine[key] for key in same - {"source"}}


def test_errors_without_a_daemon(world):
    for tool, words in (("protonctl", "status"), ("protonctl", "finalize x"), ("protonview", "tree x")):
        got = ask(world, tool, words, None)
        assert got["error"]["text"]


# --- letters -------------------------------------------------------------------------------------

# Whatever verb of whichever tool takes a letter: this is what it means.
MEANS = {"a": "all", "b": "backend", "c": "context", "d": "depth", "e": "exclude", "f": "format", "g": "gate", "h": "help", "i": "include",
         "k": "hook", "l": "list", "m": "metrics", "n": "rows", "o": "output", "p": "pid", "q": "quiet", "r": "remove", "s": "sort", "t": "threshold",
         "V": "version", "w": "wide", "1": "once"}
# Triton's own two programs differ here: run and start have the letters of `proton`, protonview those of `proton-viewer`.
PROTONS = {("run", "n"): "name", ("run", "d"): "data", ("run", "m"): "mode", ("start", "d"): "data", ("start", "m"): "mode"}
RECORDS = {("run", "s"): "switches", ("start", "s"): "switches"}  # nothing is sorted there
TOP = {("top", "b"): "batch", ("top", "c"): "count"}  # as top(1) has it; nobody else looks at what records


def letters(text):
    return re.findall(r"^ +-(\w), --([a-z-]+)", text, re.M)


def test_a_letter_has_one_meaning(world):
    seen = set()
    for tool, table in (("protonview", VIEW), ("protonctl", CTL)):
        for verb in verbs(world, tool, table):
            for letter, name in letters(world.tool(tool, "help", verb).stdout):
                want = PROTONS.get((verb, letter)) or TOP.get((verb, letter)) or RECORDS.get((verb, letter)) or MEANS.get(letter)
                assert name == want, f"{tool} {verb} -{letter} is --{name}, elsewhere --{want}"
                seen.add(letter)
    assert seen == set(MEANS), "no line for a letter that is not there"
    assert world.ctl("-V").stdout.split()[0] == "protonctl" and world.view("-V").stdout.split()[0] == "protonview"
