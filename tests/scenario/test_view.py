# SPDX-License-Identifier: MIT. What protonview says of what it does not show.
import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess

import pytest

from conftest import BUILD, WAIT, until
from test_fault import FAULT


def chain(path, generations):
    """A .hatchet file of one path, so many nodes deep with ROOT."""
    tree = {"frame": {"name": "leaf", "type": "function"}, "metrics": {"count": 1}, "children": []}
    for i in range(generations - 1):
        tree = {"frame": {"name": f"n{i}", "type": "function"}, "metrics": {"count": 0}, "children": [tree]}
    tree["frame"]["name"] = "ROOT"
    path.write_text(json.dumps([tree, {}]))
    return path


def test_a_tree_that_is_cut_says_so(world):
    deep, fits = chain(world.home / "deep.hatchet", 103), chain(world.home / "fits.hatchet", 100)
    words = "3 more nodes, deeper than 100 generations, are not shown; -d 103 shows all"
    assert world.view(deep).stdout.splitlines()[-1] == words
    assert world.view("diff", deep, deep).stdout.splitlines()[-1] == words
    for verb in (["tree", deep], ["diff", deep, deep]):
        said = json.loads(world.view(*verb, "--json").stdout)
        assert said["warnings"] == [words] and len(said["data"]["rows"]) == 100
    assert world.view(deep, "-d", 103).stdout.splitlines()[-1].endswith(" leaf")
    one = chain(world.home / "one.hatchet", 101)
    assert world.view(one).stdout.splitlines()[-1] == "1 more node, deeper than 100 generations, is not shown; -d 101 shows all"
    assert "\n1 more node, with less, is not shown; " in world.view("tree", chain(world.home / "two.hatchet", 5), "-n", 3).stdout
    assert "not shown" not in world.view(deep, "-d", 5).stdout, "it was asked for"
    assert world.view(fits).stdout.splitlines()[-1].endswith(" leaf")
    assert json.loads(world.view(fits, "--json").stdout)["warnings"] == []


def test_how_long_a_live_session_is_active(world):
    def active(name):
        said = json.loads(world.view("sessions", "--json").stdout)["data"]
        names = [c["name"] for c in said["columns"]]
        (row,) = [dict(zip(names, row)) for row in said["rows"] if row[names.index("name")] == name]
        return row["duration_ns"]

    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    job.say("start s")
    job.say("repeat 10 a")
    first = until("its process is stored, too", lambda: active("s"))
    assert 0 < first <= active("s") <= world.ctl_json("sessions")["sessions"][0]["duration_ns"]
    assert "0.0 us" not in world.view("sessions").stdout
    world.ctl("stop", "s")
    assert active("s") == active("s") > first, "closed intervals"
    world.ctl("activate", "s")
    until("it is longer", lambda: active("s") > 2 * first)
    world.daemon.kill()
    world.daemon.wait()
    world.daemon = None
    with contextlib.closing(sqlite3.connect(world.db)) as db, db:
        db.execute("UPDATE process SET boot_id = zeroblob(16)")
    assert active("s") is None, "of another boot"
    assert " - " in world.view("sessions").stdout.splitlines()[1]


def leave(world, but):
    return {p.name for p in world.home.iterdir()} - {p.name for p in but}


def test_an_export_that_is_ended_leaves_nothing(world):
    before = set(world.home.iterdir())
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with subprocess.Popen([BUILD / "bin/protonview", "export", "-", "-o", "x.hatchet"], stdin=subprocess.PIPE, cwd=world.home,
                              env=world.env) as p:
            until("it writes", lambda: leave(world, before))
            p.send_signal(sig)
            assert p.wait(WAIT) == -sig
        assert leave(world, before) == set()


@pytest.mark.preload
@pytest.mark.skipif(not FAULT.exists(), reason="sanitizers bring their own malloc")
def test_an_export_where_there_are_no_hard_links(world):
    source, out = chain(world.home / "source.hatchet", 3), world.home / "out.hatchet"
    before = set(world.home.iterdir())
    env = {"LD_PRELOAD": str(FAULT), "PD_FAULT_ON": str(world.home)}
    world.view("export", source, "-o", out, env=env)
    first = out.read_text()
    json.loads(first)
    with subprocess.Popen([BUILD / "bin/protonview", "export", "-", "-o", out.name, "--force"], stdin=subprocess.PIPE, cwd=world.home,
                          env={**world.env, **env}) as p:
        p.communicate(source.read_bytes())
    assert p.returncode == 0
    out.unlink()
    with subprocess.Popen([BUILD / "bin/protonview", "export", "-", "-o", out.name], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                          cwd=world.home, env={**world.env, **env}) as p:
        until("it writes", lambda: leave(world, before))
        out.write_text("of another")
        _, words = p.communicate(source.read_bytes())
    assert p.returncode == 1 and b"exists; --force overwrites it" in words
    assert out.read_text() == "of another" and leave(world, before) == {out.name}


def test_what_protonctl_overwrites_is_what_a_link_leads_to(world):
    world.start(PROTOND_AUTO_SESSION="off")
    target, link = world.home / "old.hatchet", world.home / "link.hatchet"
    target.write_text("old")
    link.symlink_to(target.name)
    j = world.job()
    j.say("start s")
    j.say("repeat 1 a")
    world.ctl("finalize", "s", "-o", link, "--force")
    assert link.is_symlink() and json.loads(target.read_text())[0]["children"]


def siblings(path, *children):
    nodes = [{"frame": {"name": name}, "metrics": {"count": n}} for name, n in children]
    path.write_text(json.dumps([{"frame": {"name": "ROOT"}, "metrics": {"count": 0}, "children": nodes}, {}]))
    return path


def test_siblings_of_one_name_are_compared_in_order(world):
    before = siblings(world.home / "before.hatchet", ("a", 1), ("b", 2), ("a", 3))
    after = siblings(world.home / "after.hatchet", ("a", 10), ("a", 30), ("c", 5), ("a", 7))

    def diff(*files):
        said = json.loads(world.view("diff", *files, "--json").stdout)["data"]
        return [tuple(row[4:5] + row[6:8]) for row in said["rows"][1:]]

    assert diff(before, after) == [("a", 1, 10), ("a", 3, 30), ("c", None, 5), ("a", None, 7), ("b", 2, None)]
    assert diff(after, before) == [("a", 10, 1), ("b", None, 2), ("a", 30, 3), ("c", 5, None), ("a", 7, None)]



def test_json_is_utf8_whatever_the_file_is_called(world):
    for name in (b"\xff\xc3.hatchet", "é".encode() * 110 + b".hatchet", b"x" + "é".encode() * 110 + b".hatchet"):
        path = os.fsencode(world.home) + b"/" + name
        os.rename(os.fsencode(chain(world.home / "plain.hatchet", 5)), path)
        r = subprocess.run([BUILD / "bin/protonview", "tree", name, "-n", "1", "--json"], env=world.env, cwd=world.home, capture_output=True,
                           timeout=WAIT, check=True)
        assert json.loads(r.stdout.decode())["warnings"][0].startswith("3 more nodes")


def test_an_output_that_is_full_is_named(world):
    source = chain(world.home / "source.hatchet", 5)
    for args, what in ((["tree", source], "standard output"), (["tree", source, "--json"], "standard output"), (["help"], "standard output"),
                       (["export", source, "-o", "-"], "standard output"), (["export", source, "-f", "hatchet", "-o", "/dev/full"], "/dev/full")):
        with open("/dev/full", "wb") as full:
            r = subprocess.run([BUILD / "bin/protonview", *args], env=world.env, stdout=full, stderr=subprocess.PIPE, text=True, timeout=WAIT)
        assert r.returncode == (1 if "/dev/full" in args else 4) and r.stderr == f"protonview: {what}: No space left on device\n"


def test_protond_tells_of_an_output_that_is_full(world):
    for option in ("--help", "--man", "--version"):
        with open("/dev/full", "wb") as full:
            r = subprocess.run([BUILD / "bin/protond", option], env=world.env, stdout=full, stderr=subprocess.PIPE, text=True, timeout=WAIT)
        assert r.returncode == 1 and r.stderr == "protond: standard output: No space left on device\n"


def test_protonctl_tells_of_an_output_that_is_full(world):
    world.start(PROTOND_AUTO_SESSION="off")
    j = world.job()
    j.say("start s")
    j.say("repeat 1 a")
    for args in (["sessions"], ["top", "--once"], ["top"], ["finalize", "--help"], ["help"]):
        with open("/dev/full", "wb") as full:
            r = subprocess.run([BUILD / "bin/protonctl", *args], env=world.env, stdout=full, stderr=subprocess.PIPE, text=True, timeout=WAIT)
        assert r.returncode == 4 and r.stderr == "protonctl: standard output: No space left on device\n"


def test_columns_stand_under_their_heads(world):
    """A character may be two bytes, or two columns, or be written as six."""
    source = world.home / "wide.hatchet"
    source.write_text(json.dumps([{"frame": {"name": "ROOT"}, "metrics": {"größe": 0, "n": 0},
                                   "children": [{"frame": {"name": "a"}, "metrics": {"größe": 12345678, "n": 10 ** 9}}]}, {}]))
    for locale in ("C.UTF-8", "C"):
        head, *rows = world.view(source, "-m", "größe,n", env={"LC_ALL": locale}).stdout.splitlines()
        ends = [len(head) - 12, len(head)]  # two columns of ten, and two blanks
        for row in rows:
            assert [row.index("12345678") + 8, row.index("1000000000") + 10] == ends, (head, rows)
    world.start(PROTOND_AUTO_SESSION="off")
    j = world.job()
    for name in ("plain", "训练"):
        j.say("start " + name)
        world.ctl("finalize", name)
    for tool in (world.ctl, world.view):
        head, *rows = tool("sessions", "--all").stdout.splitlines()
        at = head.index("STATE")
        assert sorted(row.index("finalized") for row in rows) == [at - 2, at], "two characters are two columns wide"


def test_words_about_an_argument_of_any_bytes(world):
    for name, shown in ((b"\xc1\x9b2J.hatchet", "\\xc1\\x9b2J.hatchet"), (b"\xff\xc3.hatchet", "\\xff\\xc3.hatchet"),
                        ("é".encode()[:1] + "é".encode() + b".hatchet", "\\xc3é.hatchet")):
        r = subprocess.run([BUILD / "bin/protonview", name], env=world.env, cwd=world.home, capture_output=True, timeout=WAIT, check=False)
        assert r.returncode == 1 and r.stderr.decode() == f"protonview: {shown}: no such file\n"


KINDS = {"a folder": os.mkdir, "a pipe": os.mkfifo, "a socket": lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
         "a device": lambda path: os.symlink("/dev/zero", path)}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused(world, kind):
    """At once, with what to do, whatever would wait for it."""
    there = world.home / "there"
    KINDS[kind](there)
    for words, env, next in ((["sessions"], {"PROTOND_DB": str(there)}, "--db or PROTOND_DB"), (["tree", "--db", there, "x"], {}, "--db or PROTOND_DB"),
                             (["tree", there], {}, "standard input, `-`"), (["diff", there, there], {}, "standard input"),
                             (["import", there], {}, "that another profiler wrote"), (["recover", there], {}, "")):
        r = world.view(*words, env=env, check=False)
        assert r.returncode == 1 and len(r.stderr.splitlines()) == 1 and next in r.stderr, (words, r.returncode, r.stderr)
        assert words == ["recover", there] or f"{there} is {kind}, not a file: " in r.stderr, (words, r.stderr)


def test_a_pipe_beside_a_database(world):
    world.ctl("run", "-q", "-n", "s", "--", "true")
    world.ctl("shutdown")
    for name in ("-wal", "-journal"):
        beside = world.home / f"store.db{name}"
        beside.unlink(missing_ok=True)
        os.mkfifo(beside, 0o444)
        r = world.view("sessions", check=False)
        assert r.returncode == 1 and f"{beside} is a pipe, not a file: remove it" in r.stderr, r.stderr
        beside.unlink()
    assert "s " in world.view("sessions", "--all").stdout


def test_what_a_shell_pipes(world):
    """Standard input, and <(…), which is a pipe that somebody writes; also where a session has the folder's name."""
    file = chain(world.home / "x.hatchet", 3)
    for source in ("- <x.hatchet", "<(cat x.hatchet)", "/dev/stdin <x.hatchet"):
        r = subprocess.run(["bash", "-c", f"{BUILD}/bin/protonview tree {source}"], env=world.env, cwd=world.home, capture_output=True, text=True, timeout=WAIT)
        assert r.stdout == world.view("tree", file).stdout, (source, r.stderr)
    (world.home / "train").mkdir()
    world.ctl("run", "-q", "-n", "train", "--", BUILD / "bin/protond-demo")
    assert "ROOT" in world.view("tree", "train").stdout
