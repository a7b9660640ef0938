# SPDX-License-Identifier: MIT. What a tree is written as, judged by other readers: Python's csv, json and XML, a
# Protocol Buffers reader of a few lines, and `go tool pprof` where it is installed.
import contextlib
import csv
import gzip
import json
import os
import pathlib
import random
import re
import resource
import select
import shutil
import sqlite3
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from conftest import BUILD, ROOT, needs_mounts, until
from test_hostile_names import JOB, NAMES
from test_replay import DUMPS, JOB as REPLAY, STUB

pytestmark = pytest.mark.preload
GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
TREES = {"folded": "folded", "speedscope": "speedscope.json", "pprof": "pb.gz", "csv": "csv", "csv_kernels": "kernels.csv",
         "json": "nodes.json", "json_kernels": "kernels.json", "svg": "svg", "svg_bars": "bars.svg"}


def exported(world, source, db=True):
    """{format: path} of a source in all of them, named by their endings."""
    files = {f: world.home / f"x.{end}" for f, end in TREES.items()}
    for file in files.values():
        world.view("export", source, "-o", file, "--force")
    return files


def rows(file):
    """What a file of rows has, as a list of dicts by column."""
    if file.suffix == ".csv":
        with open(file, newline="", encoding="utf-8") as f:
            return list(csv.DictReader(f))
    table = json.loads(file.read_text())
    assert table["protond"] == "1" and set(table) == {"protond", "kind", "data", "warnings"}
    table = table["data"]
    assert {"name", "unit", "type"} == set(table["columns"][0])
    names = [c["name"] + (f" [{c['unit']}]" if c["unit"] else "") for c in table["columns"]]
    assert all(len(r) == len(names) for r in table["rows"])
    return [dict(zip(names, r)) for r in table["rows"]]


def folded(file):
    """[(path, ns)]"""
    return [(tuple(path.split(";")), int(ns)) for path, ns in (line.rsplit(" ", 1) for line in file.read_text().split("\n")[:-1])]


def speedscope(file):
    """{profile: (end, {name: ns of its own})}; asserts that what opens closes, in order."""
    f = json.loads(file.read_text())
    ret = {}
    for p in f["profiles"]:
        stack, own, last = [], {}, 0
        for e in p["events"]:
            if stack:
                name = f["shared"]["frames"][stack[-1]]["name"]
                own[name] = own.get(name, 0) + e["at"] - last
            assert e["at"] >= last
            last = e["at"]
            if e["type"] == "O":
                stack.append(e["frame"])
            else:
                assert stack.pop() == e["frame"]
        assert not stack and last == p["endValue"] and p["unit"] == "nanoseconds"
        ret[p["name"]] = (last, own)
    return ret


def fields(data):
    """[(field, value)] of a message: a number, or bytes."""
    at, ret = 0, []

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            b = data[at]
            at += 1
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v

    while at < len(data):
        key = varint()
        assert key & 7 in (0, 1, 2)
        if key & 7 == 0:
            ret.append((key >> 3, varint()))
        elif key & 7 == 1:
            ret.append((key >> 3, struct.unpack_from("<d", data, at)[0]))
            at += 8
        else:
            n = varint()
            ret.append((key >> 3, data[at:at + n]))
            at += n
    assert at == len(data)
    return ret


def packed(data):
    return [v for _, v in fields(b"".join(b"\x08" + bytes(c) for c in split(data)))]


def split(data):
    one = bytearray()
    for b in data:
        one.append(b)
        if b < 128:
            yield one
            one = bytearray()


def pprof(file):
    """(names of the values, [(names leaf first, values, labels)])"""
    f = fields(gzip.decompress(file.read_bytes()))
    strings = [v.decode() for n, v in f if n == 6]
    assert strings[0] == "" and len(set(strings)) == len(strings)
    functions = {dict(fields(v))[1]: strings[dict(fields(v))[2]] for n, v in f if n == 5}
    places = {dict(fields(v))[1]: functions[dict(fields(dict(fields(v))[4]))[1]] for n, v in f if n == 4}
    types = [strings[dict(fields(v))[1]] for n, v in f if n == 1]
    samples = []
    for n, v in f:
        if n == 2:
            s = dict((k, x) for k, x in fields(v) if k != 3)
            labels = {strings[dict(fields(x))[1]]: strings[dict(fields(x))[2]] for k, x in fields(v) if k == 3}
            samples.append(([places[i] for i in packed(s[1])], packed(s[2]), labels))
    return types, samples


def agree(files, main):
    """Every format has the same whole, and the same of each name by itself."""
    nodes = rows(files["json"])
    root, time = nodes[0], f"{main}_time"
    own = {}
    for n in nodes:
        assert n["parent"] is None or n["parent"] < n["node"]
        own[n["name"]] = own.get(n["name"], 0) + n[f"{time}_self [ns]"]
    own = {name: ns for name, ns in own.items() if ns > 0}
    whole = root[f"{time} [ns]"]
    assert whole > 0 and sum(own.values()) == whole
    assert sum(ns for _, ns in folded(files["folded"])) == whole
    end, by_name = speedscope(files["speedscope"])[time]
    assert end == whole and {n: ns for n, ns in by_name.items() if ns > 0} == own
    types, samples = pprof(files["pprof"])
    assert types == ["gpu_time", "cpu_time", "count", "calls"]
    mine = {}
    for names, values, _ in samples:
        mine[names[0]] = mine.get(names[0], 0) + values[types.index(time)]
    assert {n: ns for n, ns in mine.items() if ns > 0} == own
    table = rows(files["csv"])
    assert [r[f"{time}_self [ns]"] for r in table] == [str(n[f"{time}_self [ns]"]) for n in nodes]
    assert [r["node"] for r in table] == [str(n["node"]) for n in nodes]
    kernels = rows(files["json_kernels"])
    assert sum(k["gpu_time [ns]"] for k in kernels) == root["gpu_time [ns]"]
    assert sum(k["count"] for k in kernels) == root["count"]
    assert [r["gpu_time [ns]"] for r in rows(files["csv_kernels"])] == [str(k["gpu_time [ns]"]) for k in kernels]
    for f in ("svg", "svg_bars"):
        picture = ET.parse(files[f]).getroot()
        assert picture.tag.endswith("svg")
        titles = [t.text.split("\n")[0] for t in picture.iter() if t.tag.endswith("title")]
        assert titles and (f != "svg_bars" or len(titles) == min(40, len(own)))
        said = files[f].read_text()
        assert "<script" not in said and "href" not in said and "url(" not in said
    return nodes, own


@pytest.mark.parametrize("name", ["kernels", "three_kernels", "frames", "scopes"])
def test_every_format_has_the_same_numbers(world, name):
    source = GOLDEN / f"{name}.hatchet"
    files = exported(world, source)
    tree = json.loads(world.view("tree", source, "--json", "-m", "gpu_time/ns" if name != "scopes" else "cpu_time/ns").stdout)["data"]
    nodes, _ = agree(files, "cpu" if name == "scopes" else "gpu")
    if name != "scopes":
        at = [c["name"] for c in tree["columns"]].index("gpu_time/ns (inc)")
        assert tree["rows"][0][at] == nodes[0]["gpu_time [ns]"]


@pytest.mark.skipif(shutil.which("go") is None, reason="no go here (Debian's golang-go has `go tool pprof`)")
def test_go_reads_pprof(world):
    files = exported(world, GOLDEN / "three_kernels.hatchet")
    whole = rows(files["json"])[0]["gpu_time [ns]"]
    env = {**world.env, "HOME": str(world.home)}
    raw = subprocess.run(["go", "tool", "pprof", "-raw", str(files["pprof"])], capture_output=True, text=True, env=env, timeout=120)
    assert raw.returncode == 0, raw.stderr
    assert "gpu_time/nanoseconds[dflt] cpu_time/nanoseconds count/count calls/count" in raw.stdout
    values = [line.split(":")[0].split() for line in raw.stdout.split("Samples:\n")[1].split("Locations")[0].split("\n")[1:] if ":" in line]
    assert sum(int(v[0]) for v in values if len(v) == 4) == whole


JUDGES = pathlib.Path(__file__).parent.parent / "judges"
judged = pytest.mark.skipif(not (JUDGES / "node_modules").exists() or shutil.which("node") is None,
                            reason="other people's readers are not here: `make judges` installs them (npm)")


def judge(name, *args):
    r = subprocess.run(["node", str(JUDGES / f"{name}.mjs"), *map(str, args)], capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stdout + r.stderr
    return [json.loads(line) for line in r.stdout.splitlines() if line.startswith("{")]


@judged
@pytest.mark.parametrize("name", ["kernels", "three_kernels", "frames", "scopes"])
def test_speedscopes_schema(world, name):
    judge("speedscope", exported(world, GOLDEN / f"{name}.hatchet")["speedscope"])


@judged
@pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
@pytest.mark.parametrize("gz", DUMPS, ids=lambda p: p.name.split(".")[0])
def test_trace_processor_reads_both(world, gz):
    replayed(world, gz)
    p = timelines_agree(world, "r")
    wrong = "select name, value from stats where severity = 'error' and value > 0"
    rows = judge("perfetto", world.home / "x.pftrace", wrong, "select count(*) n, sum(dur) d from gpu_slice",
                 "select count(*) n from flow", "select count(*) n, sum(dur) d from slice where category = 'scope'",
                 "select count(*) n from gpu_slice where upid is null or name is null")
    operations, flows, scopes, nameless = rows
    assert (int(operations["n"]), int(operations["d"])) == (len(p.operations), sum(o[2] for o in p.operations))
    assert int(flows["n"]) == len(p.arrows) and int(nameless["n"]) == 0
    assert (int(scopes["n"]), int(scopes["d"])) == (len(p.slices), sum(s[2] for s in p.slices))
    (flows,) = judge("perfetto", world.home / "x.json", wrong, "select count(*) n from flow")
    assert int(flows["n"]) == len(p.arrows)


def test_a_recorded_session_with_hostile_names(world):
    world.start()
    world.ctl("run", "-n", "n", "-k", "none", "--", sys.executable, "-c", JOB, BUILD / "lib/libprotond.so.0")
    files = exported(world, "n")
    nodes, _ = agree(files, "cpu")
    assert {n["depth"] for n in nodes} == {0, 1} and len(nodes) == 1 + len(NAMES)
    assert all(n["calls"] == 1 and n["min [ns]"] == n["max [ns]"] for n in nodes[1:])
    assert len(folded(files["folded"])) == len([n for n in nodes if n["cpu_time_self [ns]"] > 0])
    assert not any(r["name"].startswith(("=", "+", "-", "@")) for r in rows(files["csv"]))
    for f in ("svg", "svg_bars"):
        assert not set("\u202e\u2028\x1b\x7f\u009b") & set(files[f].read_text())


def test_the_daemon_writes_them_too(world):
    world.start()
    for f, end in (("pprof", "pb.gz"), ("folded", "folded"), ("csv", "csv")):
        world.ctl("run", "-n", f, "-k", "none", "-o", f"made.{end}", "--", sys.executable, "-c", JOB, BUILD / "lib/libprotond.so.0")
        assert (world.home / f"made.{end}").stat().st_size > 100
    assert len(pprof(world.home / "made.pb.gz")[1]) == len(NAMES)


FORMATS = re.findall(r'^\tX\((\w+), .*?"([\w.]+)"', (pathlib.Path(__file__).parents[2] / "proto/terms/formats.h").read_text(), re.M)


@pytest.fixture
def small(world):
    """A session of another profiler's file: no daemon is needed."""
    events = [{"ph": "X", "cat": "cpu_op", "name": f"scope {i}" if i % 20 else "step", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 9, "args": {}}
              for i in range(3000)]
    (world.home / "in.json").write_text(json.dumps(events))
    world.view("import", "in.json", "-o", "in.protond")
    return world


@pytest.mark.parametrize("name, end", FORMATS, ids=[n for n, _ in FORMATS])
def test_a_file_that_exists(small, name, end):
    """Stays, byte for byte, unless --force says otherwise."""
    file = small.home / f"x.{end}"
    assert len(FORMATS) > 15
    small.view("export", "in.protond", "-f", name, "-o", file)
    before = {p: p.read_bytes() for p in [file, *file.rglob("*")] if p.is_file()}
    assert before and all(len(b) for p, b in before.items() if p.suffix != ".def")
    r = small.view("export", "in.protond", "-f", name, "-o", file, check=False)
    assert r.returncode == 1 and "--force" in r.stderr
    assert {p: p.read_bytes() for p in before} == before
    small.view("export", "in.protond", "-f", name, "-o", file, "--force")
    assert not [p for p in small.home.iterdir() if p.name.startswith(f"x.{end}.")]


@pytest.mark.parametrize("name, end", FORMATS, ids=[n for n, _ in FORMATS])
def test_names_of_any_length_and_bytes(world, name, end):
    """Each format takes them; what is JSON, XML or SQLite stays so."""
    names = ["n" * 65536, "<script>alert(1)</script>", "\"'`,;/\\", "a\nb\r\tc\x00\x1b[2J", "\u202egnp.exe\u2028", "\ud800", "=cmd|'/C calc'!A0", "",
             "é" * 40000]
    events = [{"ph": "X", "name": "step", "pid": 1, "tid": 1, "ts": 0, "dur": 1000, "args": {"metrics": {n: i for i, n in enumerate(names)}}}]
    for i, n in enumerate(names):
        events += [{"ph": "X", "name": n, "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 10 * i + 1, "dur": 5, "args": {"metrics": {"word": n}}},
                   {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10 * i + 2, "dur": 1, "args": {"correlation": i + 1}},
                   {"ph": "X", "cat": "kernel", "name": n, "pid": 0, "tid": 7, "ts": 10 * i + 4, "dur": 3, "args": {"correlation": i + 1, "stream": 7}}]
    (world.home / "in.json").write_text(json.dumps(events))
    world.view("import", "in.json", "-o", "in.protond")
    file = world.home / f"x.{end}"
    world.view("export", "in.protond", "-f", name, "-o", file)
    if end.endswith("json"):
        json.loads(file.read_text(), parse_constant=lambda word: pytest.fail(word))
    elif end.endswith("svg"):
        assert "<script" not in file.read_text() and ET.parse(file)
    elif name in ("protond", "sqlite"):
        with contextlib.closing(sqlite3.connect(file)) as db:
            assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
    elif name == "otf2" and shutil.which("otf2-print"):
        r = subprocess.run(["otf2-print", "--silent", "-Werror", str(file / "traces.otf2")], capture_output=True, text=True)
        assert r.returncode == 0, r.stderr
    if name in ("chrome_trace", "kineto"):
        kernels = [e for e in json.loads(file.read_text())["traceEvents"] if e.get("cat") == "kernel"]
        assert len(kernels) == len(names) and sum(round(e["dur"] * 1000) for e in kernels) == 3000 * len(names)


@needs_mounts
@pytest.mark.parametrize("name, end", FORMATS, ids=[n for n, _ in FORMATS])
def test_a_disk_that_fills(small, name, end):
    """Whatever it has room for: no file, and words that say why; with room, a file."""
    disk = small.home / "disk"
    disk.mkdir()
    script = f"""mount -t tmpfs -o size=64m none {disk} && cd {disk} || exit 9
        {BUILD}/bin/protonview export ../in.protond -f {name} -o x.{end} || exit 8
        all=$(du -sk x.{end} | cut -f 1); rm -r x.{end}
        for part in 0 1 3 7; do
                mount --options-mode ignore -o remount,size=$((all * part / 8 / 4 * 4 + 4))k . || exit 7
                head -c 4096 /dev/zero > filler
                {BUILD}/bin/protonview export ../in.protond -f {name} -o x.{end} && exit 6
                [ "$(ls -A)" = filler ] || exit 5
        done"""
    r = subprocess.run(["unshare", *([] if ROOT else ["-r"]), "-m", "sh", "-c", script], env={**small.env, "TMPDIR": str(small.home)},
                       capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, (r.returncode, r.stdout, r.stderr)
    said = r.stderr.splitlines()
    assert len(said) == 4 and all("No space left on device" in line for line in said), said


@pytest.mark.parametrize("name, end", FORMATS, ids=[n for n, _ in FORMATS])
def test_a_limit_of_file_sizes(small, name, end):
    """`ulimit -f`, as batch systems set it: words, and neither a half of a file nor a temporary one."""
    (small.home / "tmp").mkdir()
    before = sorted(p.name for p in small.home.rglob("*"))
    r = small.view("export", "in.protond", "-f", name, "-o", f"x.{end}", check=False, env={"TMPDIR": str(small.home / "tmp")},
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))
    assert r.returncode == 1 and r.stderr.startswith("protonview: ") and re.search("File (is )?too large", r.stderr), (r.returncode, r.stderr)
    assert sorted(p.name for p in small.home.rglob("*")) == before


@pytest.mark.parametrize("words", [["export", "in.protond", "-f", "protond", "-o", "-"], ["export", "in.protond", "-f", "sqlite", "-o", "-"],
                                   ["import", "in.json", "-o", "new"], ["recover", "in.protond", "-o", "new"]], ids=" ".join)
def test_a_limit_of_file_sizes_on_the_way(small, words):
    """Where what is written is a database first, and standard output has no limit."""
    r = small.view(*words, check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert r.returncode == 1 and "File too large" in r.stderr and len(r.stderr.splitlines()) == 1, (r.returncode, r.stderr)
    assert not (small.home / "new").exists()


@pytest.mark.parametrize("what", ["cut", "changed"])
def test_a_portable_session_that_is_damaged(small, what):
    """Cut off at each sixty-fourth, or with bytes changed: what can be read is shown, else words say what is wrong; nothing crashes."""
    whole, file, rng = (small.home / "in.protond").read_bytes(), small.home / "bad.protond", random.Random(24)
    refused = 0
    for k in range(64):
        data = bytearray(whole[:len(whole) * k // 64] if what == "cut" else whole)
        for _ in range(0 if what == "cut" else 40):
            data[rng.randrange(k * len(data) // 64, len(data))] = rng.randrange(256)
        file.write_bytes(data)
        for words in (["tree", file, "-n", "5"], ["sql", file, "select count(*), sum(dur_ns) from scopes"],
                      ["export", file, "-f", "kineto", "-o", "out", "--force"], ["export", file, "-f", "sqlite", "-o", "out", "--force"]):
            r = small.view(*words, check=False)
            assert r.returncode in (0, 1, 4), (k, words, r.returncode, r.stderr)
            assert r.returncode == 0 or r.stderr.startswith("protonview: "), (k, words, r.stderr)
            refused += r.returncode != 0
    assert refused > (200 if what == "cut" else 0)


def test_how_far_it_is(small):
    """On a terminal, and on nothing else. What is exported waits for its reader, who waits for the line."""
    names = [f"scope {i % 7}" for i in range(500000)]
    (small.home / "big.json").write_text(json.dumps([{"ph": "X", "name": n, "pid": 1, "tid": 1, "ts": 10 * i, "dur": 9} for i, n in enumerate(names)]))
    os.mkfifo(small.home / "big.pt.trace.json")
    for words in (["import", "big.json"], ["export", "big.protond", "-o", "big.pt.trace.json"]):
        ours, theirs = os.openpty()
        p = subprocess.Popen([str(BUILD / "bin/protonview"), *words], env=small.env, cwd=small.home, stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        said = b""
        if words[0] == "export":
            with open(small.home / "big.pt.trace.json", "rb", buffering=0) as fifo:
                while fifo.read(1 << 18):
                    if not said and select.select([ours], [], [], 0.05)[0]:
                        said += os.read(ours, 65536)
        with contextlib.suppress(OSError):  # nobody has the other end any more
            while more := os.read(ours, 65536):
                said += more
        os.close(ours)
        assert p.wait(60) == 0
        shown = [float(n) for n in re.findall(rb"\] +(\d+) %", said)]
        assert shown and shown == sorted(shown) and shown[-1] <= 100 and b" left" in said, said[:300]
        assert said.endswith(b"\r\x1b[K"), "and then it is gone"
    assert small.view("import", "big.json", "--force").stderr == ""


def test_a_wrong_ending_says_which_there_are(world):
    r = world.view("export", GOLDEN / "frames.hatchet", "-o", "x.xyz", check=False)
    assert r.returncode == 2 and ".pb.gz" in r.stderr and "-f" in r.stderr
    assert not (world.home / "x.xyz").exists()
    assert "\n  csv_kernels      .kernels.csv      tree      a row a kernel\n" in world.view("help", "export").stdout


class Perfetto:
    """What a .pftrace file says, as trace_processor reads it: packets by time, those of one instant as they stand."""

    def __init__(self, file):
        names, events, self.operations, self.threads, self.arrows, self.notes, self.counters = {}, [], [], {}, {}, {}, {}
        counters = {}
        for field, packet in fields(file.read_bytes()):
            assert field == 1
            p = dict(fields(packet))
            for f, v in fields(p.get(12, b"")):
                if f == 2:
                    names[dict(fields(v))[1]] = dict(fields(v))[2].decode()
            if 60 in p and 4 in dict(fields(p[60])):
                track, thread = dict(fields(p[60])), dict(fields(dict(fields(p[60]))[4]))
                self.threads[track[1]] = thread[5].decode()
            elif 60 in p and 8 in dict(fields(p[60])):
                track = dict(fields(p[60]))
                counters[track[1]] = track[2].decode()
            if 53 in p:
                o = dict(fields(p[53]))
                self.operations.append((names[o[20]], p[8], o[2], o[1]))
            if 11 in p:
                events.append((p[8], fields(p[11])))
        self.slices, open_ = [], {}
        for ns, fs in sorted(events, key=lambda e: e[0]):  # stable
            e = dict(fs)
            if e[9] == 1:
                open_.setdefault(e[11], []).append((names[e[10]], ns))
                for n in (dict(fields(v)) for f, v in fs if f == 4):
                    self.notes.setdefault(names[e[10]], {})[n[10].decode()] = n.get(4, n.get(3, n.get(5, n.get(6, n.get(2)))))
            elif e[9] == 2:
                name, begin = open_[e[11]].pop()
                self.slices.append((name, begin, ns - begin, len(open_[e[11]])))
            elif e[9] == 4:
                self.counters.setdefault(counters[e[11]], []).append((ns, e[44]))
            elif 3000 in e:
                self.arrows[dict(fields(e[3000]))[1]] = ns
        assert not any(open_.values()), "all that begins ends"


def chrome(file):
    """(scopes, operations, arrows) as [(name, begin, ns)], and the number of flows."""
    f = json.loads(file.read_text())
    x = [(e["cat"], e["name"], round(e["ts"] * 1000), round(e["dur"] * 1000)) for e in f["traceEvents"] if e["ph"] == "X"]
    return ([e[1:] for e in x if e[0] in ("scope", "cuda_sync")], [e[1:] for e in x if e[0] not in ("scope", "cuda_sync", "launch")],
            sum(e["ph"] == "s" for e in f["traceEvents"]), f["baseTimeNanoseconds"])


def timelines_agree(world, session):
    world.view("export", session, "-o", "x.pftrace", "--force")
    world.view("export", session, "-o", "x.json", "--force")
    p = Perfetto(world.home / "x.pftrace")
    scopes, operations, flows, base = chrome(world.home / "x.json")
    assert sorted((n, at - base, ns) for n, at, ns, _ in p.slices) == sorted(scopes) and scopes + operations
    assert sorted((at - base, ns) for _, at, ns, _ in p.operations) == sorted(o[1:] for o in operations)
    assert len({o[0] for o in p.operations}) == len({o[0] for o in operations})  # there as they were recorded
    assert len(p.arrows) == flows and set(p.arrows) <= {o[3] for o in p.operations}
    return p


def test_a_perfetto_trace_has_what_the_chrome_trace_has(world):
    world.start()
    world.ctl("run", "-n", "n", "-k", "none", "-d", "both", "--", sys.executable, "-c", JOB, BUILD / "lib/libprotond.so.0")
    p = timelines_agree(world, "n")
    assert len(p.slices) == len(NAMES) and {d for *_, d in p.slices} == {0}
    assert sum(len(n) for n in p.notes.values()) == len(NAMES), "a number each"


def test_scopes_that_were_open_before(world):
    """They begin in one instant: the outer one stands outside all the same."""
    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    for name in ("outer", "middle", "inner"):
        job.say(f"enter {name}")
    until("known", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == job.pid])
    world.ctl("start", "late", "--pid", job.pid, "-d", "both")
    job.say("enter within")
    job.say("exit")
    for _ in range(3):
        job.say("exit")
    job.quit()
    world.ctl("finalize", "late")
    p = timelines_agree(world, "late")
    depth = {name: d for name, _, _, d in p.slices}
    assert depth == {"outer": 0, "middle": 1, "inner": 2, "within": 3}
    assert p.notes["outer"] == {"began_before": 1}


def replayed(world, gz):
    world.start()
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress(gz.read_bytes()))
    return world.ctl("run", "-n", "r", "-d", "both", "--", REPLAY, env={"PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump)})


@pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
@pytest.mark.parametrize("end", ["folded", "csv", "pftrace", "pt.trace.json", "speedscope.json"])
def test_one_file_whoever_writes_it(world, end):
    """`protonctl run -o`, `finalize -o` and `protonview export`: byte for byte, with the names that people read."""
    gz = next(d for d in DUMPS if d.name.startswith("torch"))
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress(gz.read_bytes()))
    world.start()
    env = {"PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump)}
    world.ctl("run", "-n", "r", "-d", "both", "-o", f"run.{end}", "--", REPLAY, env=env)
    world.view("export", "r", "-o", f"view.{end}")
    assert (world.home / f"run.{end}").read_bytes() == (world.home / f"view.{end}").read_bytes()
    assert b"at::native::" in (world.home / f"run.{end}").read_bytes() and b"_ZN2at" not in (world.home / f"run.{end}").read_bytes()
    r = world.ctl("finalize", "r", "-o", f"no/such/place.{end}", check=False)
    assert r.returncode != 0 and "No such file" in r.stderr


@pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
@pytest.mark.parametrize("gz", DUMPS, ids=lambda p: p.name.split(".")[0])
def test_gpu_work_in_a_perfetto_trace(world, gz):
    r = replayed(world, gz)
    assert timelines_agree(world, "r").operations, r.stderr


@pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
def test_a_portable_session_is_the_session(world):
    replayed(world, next(d for d in DUMPS if d.name.startswith("torch")))
    world.view("export", "r", "-o", "x.protond")
    for view in (["tree"], ["flat"], ["sql"]):
        sql = ["select * from kernels order by start_ns"] if view == ["sql"] else []
        here, there = (world.view(*view, source, *sql, "--json") for source in ("r", world.home / "x.protond"))
        assert json.loads(here.stdout)["data"]["rows"] == json.loads(there.stdout)["data"]["rows"]
    world.view("export", "x.protond", "-o", "again.json")
    world.view("export", "r", "-o", "first.json")
    assert (world.home / "again.json").read_bytes() == (world.home / "first.json").read_bytes()
    assert world.view("export", "r", "-o", "y.protond", "--phase", "0", check=False).returncode != 0


@pytest.mark.preload
def test_an_sqlite_file(world):
    """Of a session with a timeline and of one without; anything that reads SQLite reads it."""
    temporary = world.home / "tmp"
    temporary.mkdir()
    world.start(TMPDIR=temporary)
    for name, data in (("both", "both"), ("tree", "tree")):
        world.ctl("run", "-n", name, "-k", "none", "-d", data, "-o", f"{name}.sqlite", "--", sys.executable, "-c", JOB, BUILD / "lib/libprotond.so.0")
        with contextlib.closing(sqlite3.connect(world.home / f"{name}.sqlite")) as db:
            assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
            assert db.execute("select count(*) from nodes").fetchone() == (len(NAMES) + 1,)
            assert db.execute("select count(*) from scopes").fetchone() == (len(NAMES) if data == "both" else 0,)
            assert db.execute("select name, sql_version from session").fetchall() == [(name, 1)]
    assert not list(temporary.iterdir())


@pytest.mark.preload
def test_a_part_of_a_timeline(world):
    """By steps or by time: what runs then, and nothing else."""
    world.ctl("run", "-q", "-n", "demo", "-d", "both", "--", BUILD / "bin/protond-demo")
    base = rows_of(world, "select min(begin_ns) from scopes")[0][0]
    steps = rows_of(world, "select step, begin_ns, end_ns from steps order by 1")
    assert len(steps) == 24
    begin, end = steps[1][1], steps[3][2]
    want = rows_of(world, f"select name, begin_ns, dur_ns from scopes where end_ns >= {begin} and begin_ns <= {end} order by 2, 3, 1")
    assert rows_of(world, "select name, begin_ns, dur_ns from scopes order by 2, 3, 1", "--step", "2..4") == want and want
    world.view("export", "demo", "-o", "x.pftrace", "--step", "2..4")
    assert sorted((n, at, ns) for n, at, ns, _ in Perfetto(world.home / "x.pftrace").slices) == sorted(tuple(w) for w in want)
    world.view("export", "demo", "-o", "x.json")
    zero = json.loads((world.home / "x.json").read_text())["baseTimeNanoseconds"]
    window = f"{begin - zero}ns..{(end - zero) / 1e3:.3f}us"
    assert rows_of(world, "select name, begin_ns, dur_ns from scopes order by 2, 3, 1", "--window", window) == want
    assert base >= zero
    part = ["--every", "20ms", "--step", "2..3"]
    want = rows_of(world, f"select name, begin_ns, dur_ns from scopes where end_ns >= {zero + 20_000_000} and begin_ns <= {zero + 60_000_000} order by 2, 3, 1")
    assert rows_of(world, "select name, begin_ns, dur_ns from scopes order by 2, 3, 1", *part) == want and want
    world.view("export", "demo", "-o", "z.pftrace", *part)
    assert sorted((n, at, ns) for n, at, ns, _ in Perfetto(world.home / "z.pftrace").slices) == sorted(tuple(w) for w in want)
    for verb in ("sql", "demo", "select 1 from scopes"), ("export", "demo", "-o", "z2.json"):
        assert "give --step N" in world.view(*verb, "--every", "1", check=False).stderr
    for wrong in (["--step", "0"], ["--step", "3..2"], ["--step", "x"], ["--step", "25"], ["--window", "2..1"], ["--window", "1"],
                  ["--window", "1..2", "--step", "1"]):
        assert world.view("export", "demo", "-o", "y.pftrace", *wrong, check=False).returncode != 0, wrong
    assert "has 24" in world.view("sql", "demo", "select 1 from scopes", "--step", "25", check=False).stderr
    assert "timelines" in world.view("export", "demo", "-o", "y.svg", "--step", "1", check=False).stderr


def rows_of(world, sql, *args):
    return json.loads(world.view("sql", "demo", sql, "--json", *args).stdout)["data"]["rows"]
