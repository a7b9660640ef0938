# SPDX-License-Identifier: MIT. Names of any bytes, from a job to everywhere that shows them: what reaches a terminal
# moves no cursor and sets no title, and what is JSON is JSON.
import json
import os
import re
import subprocess
import sys
import unicodedata

import pytest

from conftest import BUILD

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
