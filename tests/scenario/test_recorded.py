# SPDX-License-Identifier: MIT. test_recorded.py: sessions recorded on H200s, each with a fault planted, and what bottlenecks says of them.
"""tests/recorded/fault-NAME is of `tests/gpu/run.sh faults`, ranks-NAME of `tests/gpu/run.sh ranks DIR parallel slow_rank`,
of two GPUs, slow_rank of four."""
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tests/recorded").glob("*.protond.gz"))
# What each fault's rule is, out of the program that recorded it.
RULE = dict(re.findall(r'"(\w+)": "(\w+)"', re.search(r"RULE = \{.*?\}", (ROOT / "tests/gpu/faults.py").read_text(), re.S)[0]))
# HIGH beside the planted fault, and true: a checkpoint's copies are no computing, two ranks of a small model wait for the host; in the
# last step of some the ranks part, which takes half a second.
ALSO_HIGH = {"fault-slow": {"exposed_copy"}, "ranks-ddp": {"launch_bound"}, "ranks-tensor": {"slow_steps"}, "ranks-slow_rank": {"slow_steps"}}


def asked(tmp_path, name, *words):
    file = tmp_path / f"{name}.protond"
    file.write_bytes(gzip.decompress((ROOT / f"tests/recorded/{name}.protond.gz").read_bytes()))
    env = {**os.environ, "PROTOND_DB": str(tmp_path / "none.db"), "PROTOND_RUNTIME_DIR": str(tmp_path)}
    r = subprocess.run([str(BUILD / "bin/protonview"), words[0], str(file), *words[1:], "--json"], env=env, capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stderr
    data = json.loads(r.stdout)["data"]
    return data, [dict(zip([c["name"] for c in data["columns"]], row)) for row in data["rows"]]


@pytest.mark.parametrize("name", [f.name.removesuffix(".protond.gz") for f in FILES])
def test_the_rule_of_a_fault_speaks_and_no_other_cries(tmp_path, name):
    _, rows = asked(tmp_path, name, "bottlenecks")
    found = {r["rule"]: r for r in rows if r["state"] == "found"}
    fault, mended = re.fullmatch(r"(?:fault-)?(.*?)(-mended)?", name).groups()
    rule = None if mended else RULE.get(fault)
    high = {k for k, r in found.items() if r["severity"] == "HIGH"}
    assert high <= {rule} | ALSO_HIGH.get(name, set()), {k: found[k]["words"] for k in high}
    if name.startswith("fault-"):
        assert rule is None or rule in found, sorted(found)
        assert not mended or RULE[fault] not in found, found[RULE[fault]]["words"]
    if name == "fault-none":
        assert set(found) <= {"warm_up"}, {k: r["words"] for k, r in found.items()}


def test_others_formulas_agree_on_what_computed(tmp_path):
    """as_others.py reads events and shares no code with us; a session's own parts are those of the daemon, as they came."""
    sys.path.insert(0, str(ROOT / "tests/recorded"))
    import as_others
    data, _ = asked(tmp_path, "fault-slow", "bottlenecks")
    work, _ = as_others.work_of(str(BUILD / "bin/protonview"), tmp_path / "fault-slow.protond")
    device = data["session"]["devices"][0]
    assert as_others.length(as_others.computing(work)) == device["compute_ns"] > 0
    assert as_others.length(as_others.span(work)) == device["busy_ns"]
    host, kernel, other = as_others.idle_by_cause([dict(gpu=0, context=1, stream=7, start_ns=a, end_ns=b, launch_ns=l)
                                                   for a, b, l in ((0, 10, 0), (30, 40, 20), (45, 50, 21), (150, 160, 21))])
    assert (host, kernel, other) == (20, 5, 100)


def test_the_rank_that_others_wait_for(tmp_path):
    data, rows = asked(tmp_path, "ranks-slow_rank", "ranks")
    late = max(data["processes"], key=lambda p: p["others_wait_ns"])
    assert late["rank"] == 3 and 150e6 < late["others_wait_ns"] < 230e6  # 20.2 ms more in each of 10 steps
    assert sum(p["others_wait_ns"] > 0 for p in data["processes"]) == 1
    assert all(r["most"] >= r["median"] >= r["least"] for r in rows)
    _, rows = asked(tmp_path, "ranks-slow_rank", "bottlenecks")
    words = next(r for r in rows if r["rule"] == "slow_rank")
    assert "Rank 3 comes last" in words["words"] and "h.1 / extra" in words["where"]


def printed(tmp_path, name, verb, *words):
    file = tmp_path / "x.protond"
    file.write_bytes(gzip.decompress((ROOT / f"tests/recorded/{name}.protond.gz").read_bytes()))
    return subprocess.run([BUILD / "bin/protonview", verb, file, *words], capture_output=True, text=True, check=True).stdout


def test_a_clean_rule_with_a_note_is_named_once(tmp_path):
    words = printed(tmp_path, "fault-sync", "bottlenecks")
    assert words.count("result_fetch") == 1 and "clean   result_fetch: " in words and "clean   data_loader, alloc_in_loop, " in words


def test_so_many_rows_of_the_series(tmp_path):
    lines = printed(tmp_path, "fault-sync", "series", "-n", "2").splitlines()
    assert [line.split()[0] for line in lines] == ["SERIES", "allocated", "peak", "26"] and "more; -n N shows N" in lines[-1]


@pytest.mark.parametrize("name", ["fault-alloc", "ranks-slow_rank"])
def test_a_locale_without_utf8_is_given_none(tmp_path, name):
    """No name of these is in other letters, so what is beyond ASCII would be ours."""
    file = tmp_path / "x.protond"
    file.write_bytes(gzip.decompress((ROOT / f"tests/recorded/{name}.protond.gz").read_bytes()))
    env = {**os.environ, "LC_ALL": "C", "COLUMNS": "80"}
    for words in (["tree"], ["flat", "-n", "1"], ["breakdown"], ["steps", "-n", "1"], ["series"], ["bottlenecks"], ["sync", "-n", "1"], ["ranks", "-n", "1"],
                  ["memory", "-n", "1"], ["critical", "-n", "1"], ["launches", "-n", "1"], ["streams", "-n", "1"], ["apis", "-n", "1"], ["report", "-f", "txt"]):
        r = subprocess.run([BUILD / "bin/protonview", words[0], file, *words[1:]], env=env, capture_output=True, timeout=60)
        assert (r.stdout + r.stderr).isascii(), (words, r.stdout.decode(errors="replace"))
