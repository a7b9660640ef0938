# SPDX-License-Identifier: MIT. What a tree is written as, judged by other readers: Python's csv, json and XML, a
# Protocol Buffers reader of a few lines, and `go tool pprof` where it is installed.
import csv
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from conftest import BUILD
from test_hostile_names import JOB, NAMES

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
    assert table["protond"] == "1" and {"name", "unit", "type"} == set(table["columns"][0])
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
        assert key & 7 in (0, 2)
        if key & 7 == 0:
            ret.append((key >> 3, varint()))
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
    tree = json.loads(world.view("tree", source, "--json", "-m", "gpu_time/ns" if name != "scopes" else "cpu_time/ns").stdout)
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


def test_a_wrong_ending_says_which_there_are(world):
    r = world.view("export", GOLDEN / "frames.hatchet", "-o", "x.xyz", check=False)
    assert r.returncode == 2 and ".pb.gz" in r.stderr and "-f" in r.stderr
    assert not (world.home / "x.xyz").exists()
