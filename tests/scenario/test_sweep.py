# SPDX-License-Identifier: MIT. test_sweep.py: every analysis of sessions that lack something: no crash, no NaN, nothing false.
"""Recorded sessions (tests/recorded), of which something was taken away, and imported ones: each verb that judges, as people and as
programs ask it. Whatever a session lacks, the answer is one or says in words what is missing."""
import contextlib
import gzip
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys

import pytest
from conftest import BUILD
from test_import import kineto, nsys, slice_

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERBS = "bottlenecks breakdown sync steps memory streams launches ranks critical roofline ops apis series report".split()
ASKED = [[], ["--json"], ["--window", "0..0.001", "--json"], ["--step", "2"]]
ODD = [["--scope", "nosuch"], ["--scope", ""], ["--rank", "7"], ["--every", "1e-9"], ["--window", "2..1"], ["--step", "0"], ["--phase", "9"]]
NOTHING = [f"DELETE FROM {table}" for table in ("cell", "trace", "step", "busy", "reading", "config", "metric")]
LAST, FIRST_CHUNK = "=(SELECT max(process) FROM trace)", " WHERE number=0"
LIVE = ("UPDATE session SET state='active', finalized_ns=NULL", "UPDATE active SET end_ns=NULL", "UPDATE segment SET end_ns=NULL",
        "UPDATE process SET ended_ns=NULL, end_reason=NULL")
STEPPED = "UPDATE anchor SET realtime_ns=realtime_ns{}3600000000000 WHERE monotonic_ns>(SELECT avg(monotonic_ns) FROM anchor)"


def more_ranks(db):
    """Forty more like the last, on the same GPU, which then has more work than time."""
    for n in range(40):
        for table in ("process", "member", "cell", "device", "busy", "trace", "config", "step", "metric"):
            column = "id" if table == "process" else "process"
            db.execute(f"CREATE TEMP TABLE one AS SELECT * FROM {table} WHERE {column}=3")
            db.execute(f"UPDATE one SET {column}={n + 10}" + (f", ring=randomblob(8), rank={n + 2}, pid={n + 2}" if column == "id" else ""))
            db.execute(f"INSERT INTO {table} SELECT * FROM one")
            db.execute("DROP TABLE one")


# Of which recording, and what is done to it.
INPUTS = {
    "empty": ("fault-none", *NOTHING),
    "no_process": ("fault-none", *NOTHING, "DELETE FROM member", "DELETE FROM process", "DELETE FROM device"),
    "one_event": ("fault-none", "DELETE FROM cell WHERE class<>0 OR node<>(SELECT max(node) FROM cell WHERE class=0)", *NOTHING[1:]),
    "no_timeline": ("fault-none", "DELETE FROM trace"),
    "cpu_only": ("fault-none", "DELETE FROM cell WHERE class<>0", "DELETE FROM device", "DELETE FROM trace", *NOTHING[3:6]),
    "chunk_gone": ("fault-none", "UPDATE trace SET bytes=NULL, summary=NULL" + FIRST_CHUNK),
    "all_gone": ("fault-none", "UPDATE trace SET bytes=NULL, summary=NULL"),
    "damaged": ("fault-none", "UPDATE trace SET bytes=x'0102'" + FIRST_CHUNK),
    "live": ("fault-none", *LIVE),
    "killed": ("fault-none", *LIVE[1:3], "UPDATE session SET state='interrupted'", "UPDATE process SET end_reason='killed'"),
    "losses": ("fault-none", "INSERT INTO loss WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<40)"
                             " SELECT (SELECT id FROM session), (SELECT max(id) FROM process), n, 1000000 FROM k"),
    "stepped_forth": ("fault-none", STEPPED.format("+")),
    "stepped_back": ("fault-none", STEPPED.format("-")),
    "no_anchor": ("fault-none", "DELETE FROM anchor"),
    "never_active": ("fault-none", "DELETE FROM active"),
    "no_time": ("fault-none", "UPDATE active SET end_ns=begin_ns", "UPDATE session SET active_ns=0"),
    "older": ("fault-none", "PRAGMA user_version=1"),
    "rank_without_timeline": ("ranks-fsdp", f"DELETE FROM trace WHERE process{LAST}"),
    "rank_missing": ("ranks-fsdp", *(f"DELETE FROM {table} WHERE process{LAST}" for table in ("cell", "member", "busy", "device", "step")),
                     f"DELETE FROM process WHERE id{LAST}", f"DELETE FROM trace WHERE process{LAST}"),
    "many_ranks": ("ranks-ddp", more_ranks),
}
MOST = 2**63 - 1
# Sums that no session has, and what the one line that says so names.
FORGED = {
    "negative": ("sums of nodes", "UPDATE cell SET sum_ns=-sum_ns"),
    "endless": ("sums of nodes", f"UPDATE cell SET sum_ns={MOST}"),
    "countless": ("sums of nodes", f"UPDATE cell SET count={MOST}, open={MOST}"),
    "our_name": ("sums of nodes", "INSERT OR REPLACE INTO metric SELECT session, process, segment, node, 'time (ns)', 0, -9e999, 1"
                                  " FROM cell WHERE class=1"),
    "busier": ("times of GPUs", "UPDATE busy SET compute_ns=compute_ns+(SELECT sum(end_ns-begin_ns) FROM active)*3"),
    "busiest": ("times of GPUs", f"UPDATE busy SET busy_ns={MOST}, compute_ns={MOST}"),
    "backwards": ("how long it was active", "UPDATE active SET end_ns=begin_ns-1000"),
    "eternal": ("how long it was active", f"UPDATE active SET end_ns={MOST}"),
    "launches": ("numbers of launches", f"UPDATE session SET launches={MOST}"),
    "overhead": ("protond's own time", f"UPDATE process SET agent_ns={MOST >> 4}"),
    "cost": ("the cost of recording", "INSERT INTO metric SELECT session, process, 0, min(node), 'recording_cost', 2, -1e18, 1 FROM cell"),
    "lost": ("numbers of losses", f"INSERT INTO loss SELECT session, process, 1, {MOST} FROM member"),
    "ranks": ("ranks", f"UPDATE process SET rank=1, world_size={MOST}"),
}
SILLY = re.compile(r"\d{17,} |-\d[\d.]* ?(?:ns|us|ms|s|h)\b|\d{4,}(?:\.\d+)?%|(?<![+\w])-\d[\d.]*%|\binf\b")
IMPORTED = ("kineto", "one_kernel", "nsys", "jax", "proton")
NUMBERS = re.compile(r"(?<![\w.:-])-?(?:nan|inf)\b|\(null\)|18446744073|busy (?:1\d\d\.[1-9]|10[1-9]\.|1[1-9]\d\.|[2-9]\d\d\.|\d{4,}\.)|idle -|\binf%", re.I)


def view(tmp_path, *words):
    env = {**os.environ, "PROTOND_DB": str(tmp_path / "none.db"), "PROTOND_RUNTIME_DIR": str(tmp_path), "COLUMNS": "160"}
    return subprocess.run([str(BUILD / "bin/protonview"), *map(str, words)], env=env, capture_output=True, text=True, timeout=60)


def made(tmp_path, name):
    file = tmp_path / f"{name}.protond"
    if name in INPUTS:
        of, *sql = INPUTS[name]
        file.write_bytes(gzip.decompress((ROOT / f"tests/recorded/{of}.protond.gz").read_bytes()))
        with contextlib.closing(sqlite3.connect(file)) as db, db:
            for statement in sql:
                statement(db) if callable(statement) else db.execute(statement)
        return file
    source = {"jax": ROOT / "tests/real/jax.json.gz", "proton": ROOT / "tests/real/proton.trace.json.gz"}.get(name, tmp_path / f"{name}.json")
    if name == "nsys":
        nsys(source).close()
    elif not source.exists():
        what = kineto() if name == "kineto" else {"traceEvents": [slice_("kernel", "k", 1, 1, tid=7, pid=0, device=0, stream=7)]}
        source.write_text(json.dumps(what))
    r = view(tmp_path, "import", source, "-o", file)
    assert r.returncode == 0, r.stderr
    return file


@pytest.mark.parametrize("name", FORGED)
def test_forged_sums_are_said(tmp_path, name):
    what, sql = FORGED[name]
    INPUTS[name] = ("fault-none", sql)
    file = made(tmp_path, name)
    for verb in ("tree", "flat", "breakdown", "bottlenecks", "launches"):
        said = view(tmp_path, verb, file).stdout
        assert "damaged in the store" in said and what in said, (verb, said)
        assert not SILLY.search(said) and not NUMBERS.search(said), (verb, SILLY.search(said), said)
    averages = view(tmp_path, "tree", file, "-m", "gpu_time/ms,avg_time/us").stdout
    assert not SILLY.search(averages), averages
    assert what in "".join(json.loads(view(tmp_path, "tree", file, "--json").stdout)["data"]["session"]["notes"])


def number(word):
    raise AssertionError(f"no JSON: {word}")


@pytest.mark.long
@pytest.mark.parametrize("name", [*INPUTS, *IMPORTED])
def test_every_verb(tmp_path, name):
    file = made(tmp_path, name)
    for verb in VERBS:
        for words in ASKED + (ODD if name in ("chunk_gone", "nsys") else []):
            asked = [verb, *words, *(["-f", "txt"] if verb == "report" and "--json" not in words else [])]
            r = view(tmp_path, asked[0], file, *asked[1:])
            said = r.stdout + r.stderr
            assert r.returncode in (0, 1, 2, 4), (asked, r.returncode, said[-500:])
            assert said.strip(), asked
            assert not NUMBERS.search(said), (asked, NUMBERS.search(said)[0], said)
            assert "damaged in the store" not in said, (asked, said)
            if "--json" in words and r.returncode in (0, 1, 4) and r.stdout:
                envelope = json.loads(r.stdout, parse_constant=number)
                assert ("error" in envelope) == (r.returncode == 1), (asked, said)


def rules(tmp_path, file, *words):
    data = json.loads(view(tmp_path, "bottlenecks", file, "--json", *words).stdout)["data"]
    return {row[0]: dict(zip([c["name"] for c in data["columns"]], row)) for row in data["rows"]}


def test_what_is_missing_is_said(tmp_path):
    one = made(tmp_path, "rank_missing")
    assert "1 of 2 ranks" in view(tmp_path, "tree", one).stdout
    assert "fewer than two of its processes" in view(tmp_path, "ranks", one).stderr
    assert rules(tmp_path, one)["slow_rank"]["state"] == "unsure"
    gone = made(tmp_path, "all_gone")
    assert "40 steps" in view(tmp_path, "steps", gone).stdout  # the stored ones
    assert "had left the timeline" in view(tmp_path, "critical", gone).stderr
    found = rules(tmp_path, gone)
    assert all("left" in found[rule]["note"] for rule in ("critical_host", "slow_steps", "warm_up"))
    assert rules(tmp_path, made(tmp_path, "kineto"))["own_overhead"]["state"] == "unsure"
    assert rules(tmp_path, made(tmp_path, "never_active"))["launch_bound"]["state"] != "found"
    assert "architecture" in view(tmp_path, "launches", made(tmp_path, "jax")).stdout


def test_ranks_of_hosts_that_number_alike(tmp_path):
    """Two hosts may give the same pid: each rank is its own row of the store."""
    file = made(tmp_path, "many_ranks")
    asked = lambda: [(p["rank"], p["time_ns"]) for p in json.loads(view(tmp_path, "ranks", file, "--json").stdout)["data"]["processes"]]
    before = asked()
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE process SET pid=7")
    assert len(before) > 40 and asked() == before


def test_a_gate_judges_something(tmp_path):
    empty, fine = made(tmp_path, "empty"), made(tmp_path, "no_timeline")
    r = view(tmp_path, "bottlenecks", empty, "--gate", "HIGH")
    assert r.returncode == 1 and "nothing was recorded" in r.stderr
    assert view(tmp_path, "bottlenecks", fine, "--gate", "HIGH").returncode == 0
    code = f"""
import protond.analysis as a
def said(**kw):
    try:
        return a.check(**kw).source
    except (AssertionError, ValueError, a._api.Error) as e:
        return f"{{type(e).__name__}}: {{e}}"
print(said(source={str(empty)!r}), said(source={str(fine)!r}, max_idle=20), said(source={str(fine)!r}, max_idle=float("nan")),
      said(source={str(fine)!r}, max_idle=1), said(source={str(made(tmp_path, 'no_time'))!r}, max_idle=0.5), sep="\\n")
"""
    env = {**os.environ, "PYTHONPATH": str(BUILD / "lib/protond/python"), "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
    lines = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0].startswith("Failed: ") and "nothing was recorded" in lines[0]
    assert lines[1].startswith("ValueError: max_idle is a share") and lines[2].startswith("ValueError")
    assert lines[3] == str(fine)
    assert lines[4].startswith("Failed: ") and "no GPU's time is known" in lines[4]
