# SPDX-License-Identifier: MIT. `protonview sql`: its tables are a contract, and agree with the tree.
import csv
import json
import re
import sys

import pytest

from conftest import BUILD
from test_exports import GOLDEN, replayed
from test_hostile_names import JOB, NAMES, is_safe
from test_replay import DUMPS, JOB as REPLAY

sys.path.append(str(GOLDEN.parent / "gpu"))
from parts import PARTS, parts_of

DOC = GOLDEN.parent.parent / "docs/sql.md"
NODES = "node parent depth kind class name path gpu_time_ns gpu_time_self_ns cpu_time_ns cpu_time_self_ns count calls min_ns p50_ns p99_ns max_ns"
OPERATION = "operation pid rank gpu context stream lane class name path start_ns end_ns dur_ns correlation graph launch_ns tid"
CONFIG = "grid_x grid_y grid_z block_x block_y block_z registers"
SCOPES = "scope pid rank tid name path begin_ns end_ns dur_ns task open began_before unwound"
TABLES = {
    "session": "id name uuid state source command created_ns duration_ns processes launches matched unmatched sql_version",
    "nodes": NODES,
    "kernel_names": f"name class count gpu_time_ns configs {CONFIG} static_shared_bytes dynamic_shared_bytes min_ns p50_ns p99_ns max_ns",
    "metrics": "node name value",
    "devices": "type id name arch sms clock_khz memory_clock_khz bus_width busy_ns " + PARTS,
    "losses": "cause words count",
    "memory": "pid rank device kind now blocks peak peak_ns allocs alloc_bytes frees free_bytes",
    "memory_owners": "pid rank device kind path now blocks peak peak_blocks most",
    "memory_points": "pid rank device kind at_ns least most last",
    "memory_tops": "pid rank device kind at_ns path now",
    "scopes": SCOPES,
    "calls": "pid rank tid class name path begin_ns end_ns dur_ns stream event correlation",
    "steps": f"step {SCOPES}",
    "step_parts": "step scope pid rank gpu begin_ns end_ns active_ns " + PARTS,
    "kernels": f"{OPERATION} {CONFIG} static_shared dynamic_shared",
    "copies": f"{OPERATION} bytes",
    "launches": "operation pid rank tid launch_ns correlation graph name path delay_ns",
    "scope_values": "scope pid tid scope_name path at_ns name value",
    "threads": "pid rank tid name",
    "bursts": "pid rank tid begin_ns end_ns events",
}
needs_preload = pytest.mark.preload


def ask(world, source, sql):
    """The rows, as dicts."""
    table = json.loads(world.view("sql", source, sql, "--json").stdout)
    assert table["kind"] == "sql"
    table = table["data"]
    return [dict(zip([c["name"] for c in table["columns"]], row)) for row in table["rows"]]


def test_the_parts_of_a_gpu_add_up(world):
    """A training that PyTorch's profiler recorded: to the nanosecond what a sweep over its timeline finds; and their sum is all."""
    world.view("import", GOLDEN.parent / "real/kineto.json.gz", "-o", "x.protond")
    (device,) = ask(world, "x.protond", "select d.*, s.duration_ns from devices d, session s")
    ops = ask(world, "x.protond", "select class, start_ns, end_ns, launch_ns from timeline_operation where end_ns > start_ns")
    got = {k: device[k] for k in PARTS.split()}
    assert sum(got.values()) == device["duration_ns"]
    assert got == {k: parts_of(ops, device["duration_ns"])[k] for k in PARTS.split()} and got["compute_ns"] > 0 < got["idle_launch_ns"]
    said = json.loads(world.view("breakdown", "x.protond", "--json").stdout)["data"]["rows"]
    assert {part: ns for gpu, part, ns, share in said} == got and sum(share for *_, share in said) == pytest.approx(1)
    words = world.view("breakdown", "x.protond").stdout
    world.view("bottlenecks", "x.protond", "--gate", "HIGH")
    assert all(w in words for w in ("compute", "launching", "host", f"{device['compute_ns'] / 1e6:.3f}"))


def said_of(world, *args):
    return {part: ns for gpu, part, ns, *_ in json.loads(world.view("breakdown", "x.protond", "--json", *args).stdout)["data"]["rows"]}


def test_the_parts_of_a_step_a_scope_and_a_window(world):
    """Of the same training: each to the nanosecond what a sweep finds there; a window of all is all."""
    world.view("import", GOLDEN.parent / "real/kineto.json.gz", "-o", "x.protond")
    ops = ask(world, "x.protond", "select class, start_ns, end_ns, launch_ns from timeline_operation where end_ns > start_ns")
    whole = said_of(world)
    assert said_of(world, "--window", "0..100") == whole == said_of(world, "--phase", "0")
    two = [said_of(world, "--window", w) for w in ("0..31ms", "31ms..1")]
    assert {k: sum(p[k] for p in two) for k in whole} == whole and two[0]["compute_ns"] > 0 < two[1]["compute_ns"]
    steps = ask(world, "x.protond", "select * from step_parts order by step")
    assert [s["step"] for s in steps] == [1, 2]
    for s in steps:
        want = parts_of(ops, s["end_ns"] - s["begin_ns"], s["begin_ns"], s["end_ns"])
        assert {k: s[k] for k in whole} == {k: want[k] for k in whole} == said_of(world, "--step", str(s["step"]))
        assert s["active_ns"] == sum(want.values())
        assert said_of(world, "--scope", "step", "--step", str(s["step"])) == said_of(world, "--step", str(s["step"]))
    assert said_of(world, "--step", "1..9") == {k: steps[0][k] + steps[1][k] for k in whole}
    words = world.view("breakdown", "x.protond", "--scope", "step", "--step", "2").stdout
    assert re.search(r"all +30\.520 +100\.0% +1 time\n", words)
    for args, code, why in ((["--step", "3"], 1, "no step 3: the timeline has 2"), (["--scope", "tep"], 1, "no scope 'tep'"),
                            (["--window", "9..10"], 1, "nothing of the session was recorded there"), (["--scope", "a", "--step", "1"], 1, "no scope 'a' in"), (["--scope", ""], 2, "--scope needs names"),
                            (["--step", "1", "--phase", "0"], 2, "--phase cannot be used with"), (["--phase", "9"], 1, "has no phase 9")):
        r = world.view("breakdown", "x.protond", *args, check=False)
        assert r.returncode == code and why in r.stderr, r.stderr


def refused(world, *args):
    r = world.view("sql", *args, check=False)
    assert r.returncode != 0
    is_safe(r.stderr)
    return r.stderr


@needs_preload
def test_the_contract(world):
    """New columns come at the end; the doc names every table."""
    world.start()
    world.ctl("run", "-n", "n", "-k", "none", "-d", "both", "--", sys.executable, "-c", JOB, BUILD / "lib/libprotond.so.0")
    for table, columns in TABLES.items():
        shown = json.loads(world.view("sql", "n", f"select * from {table}", "--json").stdout)["data"]["columns"]
        assert [c["name"] for c in shown][:len(columns.split())] == columns.split(), table
        assert f"| `{table}` |" in DOC.read_text()
    said = refused(world, "n", "select * from nosuch")
    assert set(re.findall(r"(?m)^  (\w+)\(", said)) == set(TABLES), said


@needs_preload
def test_tree_and_timeline_agree(world):
    world.start()
    world.ctl("run", "-n", "n", "-k", "none", "-d", "both", "--", sys.executable, "-c", JOB, BUILD / "lib/libprotond.so.0")
    nodes = {n["path"]: n for n in ask(world, "n", "select * from nodes where depth > 0")}
    scopes = {s["path"]: s for s in ask(world, "n", "select path, count(*) n, sum(dur_ns) ns from scopes group by 1")}
    assert scopes.keys() == nodes.keys() and len(nodes) == len(NAMES)
    assert all(s["n"] == nodes[p]["calls"] for p, s in scopes.items())
    assert len(ask(world, "n", "select * from scope_values where scope is not null")) == len(NAMES)
    assert ask(world, "n", "select name, state, sql_version from session") == [{"name": "n", "state": "finalized", "sql_version": 1}]
    screen = world.view("sql", "n", "select name, path from nodes").stdout
    is_safe(screen)
    assert len(screen.splitlines()) == 2 + len(NAMES), "a line each"


@pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
@pytest.mark.parametrize("gz", [d for d in DUMPS if d.name.split(".")[0] in ("torch", "copies", "graph")], ids=lambda p: p.name.split(".")[0])
def test_gpu_work(world, gz):
    replayed(world, gz)
    (tree,) = ask(world, "r", "select gpu_time_ns, count from nodes where node = 0")
    (line,) = ask(world, "r", "select sum(ns) ns, sum(n) n from (select sum(dur_ns) ns, count(*) n from kernels union all"
                              " select sum(dur_ns), count(*) from copies)")
    assert (line["ns"], line["n"]) == (tree["gpu_time_ns"], tree["count"])
    by_name = "select name, count(*) count, sum(dur_ns) gpu_time_ns from kernels group by 1 order by 3 desc, 1"
    want = ask(world, "r", "select name, count, gpu_time_ns from kernel_names where class in ('compute', 'comm') order by 3 desc, 1")
    assert ask(world, "r", by_name) == want and (want or gz.name.startswith("copies"))
    (launched,) = ask(world, "r", "select (select count(*) from launches) n, matched from session")
    assert launched["n"] == launched["matched"]


def test_a_hatchet_file(world):
    source = GOLDEN / "three_kernels.hatchet"
    (root,) = ask(world, source, "select gpu_time_ns from nodes where node = 0")
    assert ask(world, source, "select sum(gpu_time_ns) t from kernel_names") == [{"t": root["gpu_time_ns"]}]
    world.view("sql", source, "select name, gpu_time_ns from kernel_names", "-o", "x.csv")
    with open(world.home / "x.csv", newline="", encoding="utf-8") as f:
        assert sum(int(r["gpu_time_ns"]) for r in csv.DictReader(f)) == root["gpu_time_ns"]
    assert "no timeline" in refused(world, source, "select * from kernels")
    assert "exists" in refused(world, source, "select 1", "-o", "x.csv")


def test_only_one_select(world):
    source = GOLDEN / "frames.hatchet"
    for sql in ("drop table nodes", "pragma writable_schema = 1", "attach 'x.db' as x", "insert into nodes(node) values (1)",
                "select load_extension('x')", "vacuum into 'x.db'", "create table x(y)"):
        refused(world, source, sql)
    assert "one statement" in refused(world, source, "select 1; select 2")
    assert "empty" in refused(world, source, "  ")
    assert "syntax error" in refused(world, source, "selec 1")
    assert not (world.home / "x.db").exists()
    assert world.view("sql", source, "select count(*) n from nodes;").stdout.split() == ["n", str(len(ask(world, source, "select node from nodes")))]


def test_an_answer_of_any_length_is_one_envelope(world):
    rows = ask(world, GOLDEN / "frames.hatchet", "with recursive i(n) as (select 1 union all select n + 1 from i where n < 30000) select n from i")
    assert [r["n"] for r in rows] == list(range(1, 30001))


def test_a_screen_fits_its_line(world):
    """Names are cut, numbers never; a pipe gets all of it."""
    source = GOLDEN / "kernels.hatchet"
    sql = "select name, gpu_time_ns, path, count from nodes"
    whole = world.view("sql", source, sql).stdout
    narrow = world.view("sql", source, sql, env={"COLUMNS": "80"}).stdout
    assert max(map(len, whole.splitlines())) > 120 and max(map(len, narrow.splitlines())) == 80
    numbers = [re.findall(r"(?<= )\d+(?= |$)", line) for line in narrow.splitlines()]
    assert [n[-1] for n in numbers[1:]] == [line.split()[-1] for line in whole.splitlines()[1:]]
