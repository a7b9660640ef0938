# SPDX-License-Identifier: MIT. Names of any bytes, from a job to everywhere that shows them: what reaches a terminal
# moves no cursor and sets no title, and what is JSON is JSON.
import json
import os
import re
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import unicodedata

import pytest

from conftest import BUILD, until

pytestmark = pytest.mark.preload
NAMES = [b"\x1b[2J\x1b[1;1H", b"\x1b]0;title\x07", b"\x9b31m", "\u009b31m".encode(), b"a\nb", b"a\rb\x08\x08", b"\x7f\x00"[:1],
         b"<script>alert(1)</script>&lt;", b'"},{"frame":', b"'; DROP TABLE session; --", b"../../etc/passwd", b"=cmd|' /C calc'!A0",
         b"\xff\xfe", b"\xed\xa0\x80", b"cut \xf0\x9f\x98", "\u202egnp.exe".encode(), "\u2028\u2029".encode(),
         b"%s%n%1000d", b"a/b", b" ", b"|", b"x" * 5000]
CUT = 1024  # docs/ring.md: a longer name ends in "~" and a hash
JOB = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
lib.protond_name.argtypes = [ctypes.c_char_p]
lib.protond_metric.argtypes = [ctypes.c_char_p]
lib.protond_metric_i64.argtypes = [ctypes.c_int, ctypes.c_int64]
for i, name in enumerate(%r):
    lib.protond_scope_enter(ctypes.c_uint32(lib.protond_name(name)))
    lib.protond_metric_i64(lib.protond_metric(name[:40]), i)
    lib.protond_scope_exit()
""" % NAMES


def is_safe(text):
    """Nothing that a terminal acts on, but the end of a line."""
    bad = {c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cs")}
    assert not bad, (bad, [line for line in text.splitlines() if set(line) & bad][:3])


def tool(world, name, *args):
    """Standard output and error; a process of its own terminal: no colours."""
    r = subprocess.run([str(BUILD / "bin" / name), *map(str, args)], capture_output=True, env=world.env, cwd=world.home, timeout=60,
                       stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout.decode(), r.stderr.decode()  # both are UTF-8, or this fails


@pytest.fixture
def recorded(world):
    world.start()
    code, out, words = tool(world, "protonctl", "run", "-n", "n", "-k", "none", "-d", "both", "-o", "n.hatchet", "--", sys.executable, "-c", JOB,
                            BUILD / "lib/libprotond.so.0", "\x1b[2J\n<b>")
    assert code == 0, words
    is_safe(out)
    is_safe(words)
    return world


def names_in(tree):
    return {c["frame"]["name"] for c in tree["children"]} | {n for c in tree["children"] for n in names_in(c)}


def test_names_are_safe_in_a_terminal(recorded):
    for args in (["tree", "n"], ["tree", "n", "--full-names"], ["n.hatchet"], ["flat", "n"], ["n", "-l"], ["n", "--print-sorted"], ["diff", "n", "n"],
                 ["sessions"], ["n", "-i", ".*script"], ["n", "-m", "no\x1b[2Jsuch"], ["\x1b[2J"], ["n", "-i", "(\x1b"]):
        _, out, words = tool(recorded, "protonview", *args)
        is_safe(out)
        is_safe(words)
    for args in (["sessions"], ["jobs", "--all"], ["where"], ["top", "--once"], ["status"], ["finalize", "\x1b[2J"], ["start", "a\nb\x1b[2J"], ["\x1b[2J"]):
        _, out, words = tool(recorded, "protonctl", *args)
        is_safe(out)
        is_safe(words)
    _, out, _ = tool(recorded, "protonview", "tree", "n", "--full-names")
    assert len(re.findall(r"(?m)^.*[├└]─ ", out)) == len(NAMES), "one line each"


def test_names_are_whole_in_json(recorded):
    exported = json.loads((recorded.home / "n.hatchet").read_text())
    want = {n.decode(errors="replace") for n in NAMES}
    plain = {n for n in want if "\ufffd" not in n and len(n) <= CUT}
    found = names_in(exported[0])
    assert plain <= found, plain - found
    assert len(exported[0]["children"]) == len(NAMES)
    for tool_, *args in (("protonview", "tree", "n", "--json"), ("protonview", "sessions", "--json"), ("protonctl", "jobs", "--all", "--json"),
                         ("protonctl", "sessions", "--json")):
        code, out, words = tool(recorded, tool_, *args)
        assert code == 0, words
        json.loads(out)
    assert tool(recorded, "protonview", "export", "n", "-f", "chrome_trace", "-o", "n.json")[0] == 0
    longest = "l" * (255 - len(".json")) + ".json"
    assert tool(recorded, "protonview", "export", "n", "-f", "chrome_trace", "-o", longest)[0] == 0
    assert (recorded.home / longest).read_bytes() == (recorded.home / "n.json").read_bytes()
    events = json.loads((recorded.home / "n.json").read_text())["traceEvents"]
    assert plain <= {e["name"] for e in events}
    code, out, words = tool(recorded, "protonview", "n.hatchet", "--json")
    assert code == 0 and json.loads(out), words


EVIL = "\x1b]0;x\x07\u202e\u009b31m\x7f\u2066\u2028\u200f\u00ad\u2060\U000e0041"


def is_harmless(world, name, *args):
    """Whatever it makes of it: nothing of it is obeyed, and JSON is JSON."""
    code, out, words = tool(world, name, *args)
    for text in (out, words):
        assert not set(EVIL.replace("]0;", "").replace("31m", "").replace("x", "")) & set(text), (args, text)
        is_safe(text)
    assert code in (0, 1, 2, 3, 4), (code, words)
    if "--json" in args and code in (0, 4):
        json.loads(out.splitlines()[-1])
    return out + words


def text_columns(db):
    return [(t, c[1]) for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for c in db.execute(f"PRAGMA table_info({t})").fetchall() if c[2] in ("TEXT", "ANY")]


VIEWS = [["tree", "n"], ["flat", "n"], ["n", "--print-sorted"], ["n", "-l"], ["sessions"], ["diff", "n", "n"], ["tree", "n", "--wide"],
         ["tree", "n", "-m", "tag,flops,time/ms"], ["flat", "n", "--cpu"], ["tree", "n", "--gate", "1", "-m", "count"],
         ["export", "n", "-o", "-", "-f", "hatchet"], ["export", "n", "-o", "-", "-f", "chrome_trace"], ["tree", "1"], ["tree", "nosuch"]]


def as_file(rows):
    """What Proton writes, hostile wherever there is a text."""
    return [{"frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0, "time (ns)": 0},
             "children": [{"frame": {"name": "k" + EVIL, "type": "function" + EVIL},
                           "metrics": {"count": rows, "time (ns)": 5, "device_id": "0" + EVIL, "device_type": "CUDA" + EVIL, "m" + EVIL: 1.5,
                                       "t" + EVIL + " (pty)": EVIL}, "children": []}]},
            {"CUDA" + EVIL: {"0" + EVIL: {"clock_rate": 1, "memory_clock_rate": 1, "bus_width": 1, "arch": "80" + EVIL, "num_sms": 1}}}]


def test_a_hostile_database(recorded):
    """Each text of each table in turn, then all of them: somebody else's file is looked at."""
    job = recorded.job()
    for line in ("start live", "repeat 3 a", "metric s x tag (pty)", "metric i 3 flops"):
        job.say(line)
    until("all is stored", lambda: recorded.cells("live"))
    recorded.stop()
    job.kill()
    db = sqlite3.connect(recorded.db)
    columns = text_columns(db)
    assert len(columns) > 25
    db.execute("INSERT OR REPLACE INTO note SELECT session, process, 0, 1, 'a note' FROM member")
    db.execute("INSERT OR IGNORE INTO device SELECT id, 0, x'00', 0, 'CUDA', 'device', 'pci', 90, 1, 1, 1, 1, 1, ?, ? FROM process",
               (EVIL, f"7 {EVIL}"))
    db.execute("UPDATE session SET gpu = 'on', name = 'n'")
    db.execute("UPDATE process SET gpu_state = 3, gpu_text = 'why'")
    db.commit()
    db.close()
    recorded.env["PROTOND_DB"] = str(recorded.home / "evil.db")
    shown = ""
    for changed in [[c] for c in columns] + [columns]:
        for f in recorded.home.glob("evil.db*"):
            f.unlink()
        shutil.copy(recorded.db, recorded.home / "evil.db")
        db = sqlite3.connect(recorded.home / "evil.db")
        db.execute("PRAGMA ignore_check_constraints = 1")
        for table, column in changed:
            if (table, column) != ("meta", "key"):
                db.execute(f"UPDATE {table} SET {column} = {column} || ? WHERE typeof({column}) = 'text'", (EVIL,))
        db.commit()
        db.close()
        for view in VIEWS if len(changed) == 1 else [[w if w != "n" else "1" for w in v] for v in VIEWS]:
            for more in ([], ["--json"]):
                shown += is_harmless(recorded, "protonview", *view, *more)
    assert "\\u202e" in shown and "\\u009b" in shown and "\\x1b" in shown, "kept, in words"


SHOWN = 16384  # bytes of a text that are read of a foreign file


@pytest.mark.parametrize("letter", ["\x01", "\u202e", "a"])
def test_texts_of_50_mb(recorded, letter):
    """In a foreign database: each view of it is as large as with texts of our own, and a little for each place that shows one."""
    recorded.stop()
    db = sqlite3.connect(recorded.db)
    db.execute("UPDATE node SET name = 'LONG' WHERE name = 'a/b'")
    db.execute("UPDATE session SET name = 'LONG', command = 'LONG'")
    db.execute("UPDATE process SET command = 'LONG'")
    db.commit()
    plain = [tool(recorded, "protonview", "--db", recorded.db, *(w if w != "n" else "1" for w in v), *j) for v in VIEWS for j in ([], ["--json"])]
    for table, column in (("node", "name"), ("session", "name"), ("session", "command"), ("process", "command")):
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = 'LONG'", (letter * (50 << 20 if table == "node" and letter == "a" else 5 << 20),))
    db.commit()
    db.close()
    many = iter(plain)
    for view in VIEWS:
        for more in ([], ["--json"]):
            code, out, words = tool(recorded, "protonview", "--db", recorded.db, *(w if w != "n" else "1" for w in view), *more)
            was, short, said = next(many)
            assert code == was and len(words) < len(said) + 1000, (view, words)
            assert len(out) <= len(short) + (short.count("LONG") + 1) * 6 * SHOWN, (view, len(out))
            is_safe(out + words)


def test_a_hostile_file(recorded):
    for i in (1, 2):
        (recorded.home / f"evil{i}.hatchet").write_text(json.dumps(as_file(i)))
    file = "evil1.hatchet"
    for view in ([file], [file, "-l"], [file, "--print-sorted"], ["flat", file], ["diff", file, "evil2.hatchet"], [file, "-m", "util"], [file, "-m", "m" + EVIL],
                 [file, "-m", "no" + EVIL], [file, "--diff-profile", "evil2.hatchet"], ["diff", file, "evil2.hatchet", "--gate", "1"],
                 ["diff", file, "evil2.hatchet", "-m", "m" + EVIL, "--gate", "1"], [file, "-m", "m" + EVIL, "--print-sorted"],
                 [file, "-i", "(" + EVIL], ["no" + EVIL], [EVIL], ["--" + EVIL], ["tree", file, "--sort", EVIL], ["export", file, "-o", EVIL],
                 ["export", file, "-o", "-", "-f", "hatchet"], ["--db", EVIL, "sessions"], ["help", EVIL]):
        for more in ([], ["--json"]):
            is_harmless(recorded, "protonview", *view, *more)


def pack(value):
    """MessagePack, as much as a daemon needs."""
    if isinstance(value, bool) or value is None:
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return b"\xd3" + value.to_bytes(8, "big", signed=True)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"\xdb" + len(value.encode()).to_bytes(4, "big") + value.encode()
    if isinstance(value, bytes):
        return b"\xc6" + len(value).to_bytes(4, "big") + value
    if isinstance(value, list):
        return b"\xdd" + len(value).to_bytes(4, "big") + b"".join(map(pack, value))
    return b"\xdf" + len(value).to_bytes(4, "big") + b"".join(pack(k) + pack(v) for k, v in value.items())


def evil_answers():
    """Of each verb, the keys of docs/protocol.md."""
    text, uuid = "t" + EVIL, bytes(16)
    job = {"pid": 1, "ring": uuid, "uid": 0, "command": text, "cwd": text, "rank": 0, "world_size": 1, "started_ns": 1, "version": text, "gpu": text,
           "gpu_code": 1, "gpu_text": text, "cupti_version": 1, "driver_version": 1, "cupti_path": text, "events": 1, "launches": 1, "kernels": 1,
           "drops": 1, "ended": text, "sessions": [1], "delivered_ns": 1, "in_flight": 1, "notes": [text],
           "threads": [{"tid": 1, "open": [{"path": text, "depth": 1, "since_ns": 1}]}]}
    where = {**job, "launches": [{"kernel": text, "path": text, "since_ns": 1, "running": True, "device": 0, "stream": 1}]}
    session = {"id": 1, "uuid": uuid, "name": text, "command": text, "state": text, "source": text, "uid": 0, "created_ns": 1, "duration_ns": 1,
               "processes": 1, "launches": 9, "matched": 1}
    return {"hello": {"version": 1, "daemon": text, "pid": 1, "store": uuid, "db": text, "uid": os.geteuid(), "private": True},
            "status": {"daemon": text, "pid": 1, "private": True, "uptime_s": 1.0, "jobs": 1, "sessions": 1, "clients": 1, "events": 1, "kernels": 1,
                       "journal_bytes": 1, "rss_bytes": 1, "cpu_s": 1.0, "agents_cpu_s": 1.0, "drops": 1, "runtime_dir": text, "db": text,
                       "db_bytes": 1, "auto_session": text, "gpu": {"failed" + EVIL: 1, "on": 1}, "warnings": [text]},
            "jobs": {"jobs": [job], "more": 1}, "sessions": {"sessions": [session], "more": 1}, "where": {"now_ns": 2, "left_out": 1, "jobs": [where]},
            "top": {"id": 1, "session": text, "now_ns": 2, "duration_ns": 1, "jobs": [job], "left_out": 1,
                    "cells": [{"path": text, "kind": 1, "class": 0, "count": 1, "sum_ns": 1, "max_ns": 1}]},
            "start": {"id": 1, "uuid": uuid, "name": text, "jobs": 1, "settled": False}, "activate": {}, "stop": {},
            "finalize": {"id": 1, "uuid": uuid, "name": text, "processes": 1, "launches": 9, "unmatched": 8, "db": text},
            "delete": {"id": 1, "name": text}, "prune": {"deleted": 1, "sessions": [{"id": 1, "name": text}]},
            "pause": {"jobs": 1, "settled": False}, "resume": {"jobs": 1, "settled": False},
            "backends": {"backends": [{"name": text, "state": text, "text": text}]}, "sync": {"id": 1, "uuid": uuid, "db": text}}


def serve_evil(listening, fails):
    """Connection after connection; `fails`: each verb but hello gives an error."""
    answers = {k: pack(v) for k, v in evil_answers().items()}
    while True:
        try:
            peer, _ = listening.accept()
        except OSError:
            return
        with peer, peer.makefile("rb") as f:
            while len(size := f.read(4)) == 4:
                message = f.read(int.from_bytes(size, "little"))
                method = max((m for m in answers if m.encode() in message[:40]), key=len, default="status")
                error, result = pack(None), answers[method]
                if fails and method != "hello":
                    error, result = pack({"code": -1, "text": "e" + EVIL, "next": "n" + EVIL}), pack(None)
                number = message[2:]
                number = number[:1] if number[0] < 0x80 else number[:{0xcc: 2, 0xcd: 3, 0xce: 5, 0xcf: 9}[number[0]]]
                reply = b"\x94\x01" + number + error + result
                try:
                    peer.sendall(len(reply).to_bytes(4, "little") + reply)
                except OSError:
                    break


@pytest.mark.parametrize("fails", [False, True], ids=["answers", "errors"])
def test_a_hostile_daemon(world, fails):
    """Of this user, or root's: still it only passes on what jobs say."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(world.dir / "control.sock"))
    listening.listen(64)
    thread = threading.Thread(target=serve_evil, args=(listening, fails), daemon=True)
    thread.start()
    shown = ""
    try:
        for args in (["status"], ["jobs", "--all"], ["sessions"], ["where"], ["where", "1"], ["top", "--once"], ["backends"], ["start", "x", "--all"],
                     ["activate", "x"], ["stop", "x"], ["finalize", "x"], ["delete", "x"], ["prune", "--older-than", "1d"], ["pause"], ["resume"],
                     ["doctor"], ["version"], ["complete", "sessions"], ["start", EVIL, "--all"], ["finalize", EVIL], [EVIL], ["help", EVIL],
                     ["status", "--" + EVIL], ["prune", "--older-than", EVIL], ["start", "x", "--pid", EVIL]):
            for more in ([], ["--json"]):
                shown += is_harmless(world, "protonctl", *args, *more)
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(30)
    assert "\\u202e" in shown and "\\u009b" in shown


FILES = [b"a\nb", b"a\rb", b"\x1b[2J\x1b]0;title\x07", b"\xff\xfe", "\u009b31m".encode(), b"-rf", b"%s%n", b"' ;$(id)", b".", b"x" * (255 - len(".hatchet"))]
NO_FILES = {b"x" * 300: "File name too long", b"no/such": "No such file or directory", b"folder": "Is a directory", b"waits": "File exists"}
FINALIZE = """
import ctypes, os, sys
lib = ctypes.CDLL(sys.argv[1])
lib.protond_error.restype = ctypes.c_char_p
os.symlink("victim", "linked.hatchet")
os.symlink("victim", f"waits.hatchet.tmp-{os.getpid()}")
os.mkdir("folder.hatchet")
for name in %r:
    s = lib.protond_start(name, None)
    lib.protond_scope_enter(ctypes.c_uint32(lib.protond_name(b"a")))
    lib.protond_scope_exit()
    print(name.hex(), s, lib.protond_finalize(s, b"hatchet"), lib.protond_error().decode())
""" % [*FILES, b"../above", b"linked", *NO_FILES]


def test_a_sessions_name_is_its_files(world):
    """As the caller writes it, a path, too; one file, whole, through no link; or no file, and words."""
    world.start(PROTOND_AUTO_SESSION="off")
    at = world.home / "at"
    at.mkdir()
    (at / "victim").write_text("as it was")
    r = subprocess.run([sys.executable, "-c", FINALIZE, BUILD / "lib/libprotond.so.0"], cwd=at, env=world.env, capture_output=True,
                       text=True, timeout=60)
    assert r.returncode == 0, r.stderr
    said = {bytes.fromhex(line.split()[0]): line.split(" ", 3)[1:] for line in r.stdout.splitlines()}
    for name in [*FILES, b"../above", b"linked"]:
        assert said[name][1] == "0", said[name]
        assert names_in(json.loads(open(bytes(at) + b"/" + name + b".hatchet").read())[0]) == {"a"}
    for name, why in NO_FILES.items():
        assert int(said[name][1]) < 0 and said[name][2].startswith("cannot write ") and said[name][2].endswith(why), said[name]
    (waits,) = at.glob("waits.*")  # ours
    assert {f.encode("utf-8", "surrogateescape") for f in os.listdir(at)} == {
        b"victim", b"folder.hatchet", waits.name.encode(), *(n + b".hatchet" for n in [*FILES, b"linked"])}
    assert (at / "victim").read_text() == "as it was" and not (at / "linked.hatchet").is_symlink()
    assert len(world.ctl_json("sessions")["sessions"]) == len(said), "without a file, too, it is stored"
    for args in (["protonctl", "sessions"], ["protonview", "sessions"]):
        code, out, words = tool(world, *args)
        assert code == 0 and len(out.splitlines()) == 1 + len(said)
        is_safe(out)
