# SPDX-License-Identifier: MIT. What tests/gpu/run.sh others judges with, tried on recordings of a GPU: it must see what is wrong.
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types

import pytest

from conftest import BUILD

HERE = pathlib.Path(__file__).resolve().parent
GPU = HERE.parent / "gpu"
STUB, JOB, EXPECTED = (BUILD / "replay" / n for n in ("libcupti.so.13", "pd_replay_job", "expected"))
COUNT = BUILD / "tests/libcount.so"
COPIES = {"[copy h2d]": "[memcpy HtoD]", "[copy d2h]": "[memcpy DtoH]", "[copy d2d]": "[memcpy DtoD]"}
PROGRAM = """
import ctypes, os, threading
os.environ.update(PROTOND_CUPTI_PATH=STUB, PD_REPLAY_DUMP=DUMP)
if os.environ["CUDA_INJECTION64_PATH"] == COUNT:  # as libcuda would
    stub = ctypes.CDLL(STUB)
    assert ctypes.CDLL(COUNT).InitializeInjection() == 1
    nothing = [ctypes.CFUNCTYPE(None, *types)(lambda *_: None) for types in (
        (ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p), (ctypes.c_void_p, ctypes.c_int), (ctypes.c_void_p, ctypes.c_uint32))]
    ops = (ctypes.c_void_p * 4)(*(ctypes.cast(f, ctypes.c_void_p) for f in nothing), None)
    played = threading.Event()

    def flush():  # as CUPTI's own flush period does
        while not played.wait(0.005):
            stub.cuptiActivityFlushAll(1)
    flusher = threading.Thread(target=flush)
    flusher.start()
    assert stub.pd_replay_run(ops, (ctypes.c_uint64 * 8)()) == 0
    played.set()
    flusher.join()
    print("played", flush=True)
else:
    print("played", flush=True)
    os.execv(JOB, [JOB])
"""

pytestmark = [pytest.mark.skipif(not JOB.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check"),
              pytest.mark.preload]


@pytest.fixture
def others(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(GPU), *sys.path])
    monkeypatch.setattr(sys, "argv", ["others_check.py", str(BUILD)])
    for name in ("others_check", "others_count", "unmatched", "judge"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import others_check
    monkeypatch.setattr(others_check, "HERE", tmp_path)
    monkeypatch.setattr(others_check, "COUNT", str(COUNT))
    rooms = []

    def mkdtemp(**where):
        rooms.append(tempfile.mkdtemp(**where))
        return rooms[-1]
    monkeypatch.setattr(others_check, "tempfile", types.SimpleNamespace(mkdtemp=mkdtemp))
    yield others_check
    for room in rooms:
        shutil.rmtree(room)


def unpacked(name, place):
    dump = place / f"{name}.dump"
    dump.write_bytes(gzip.decompress((HERE.parent / f"replay/dumps/{name}.cuptidump.gz").read_bytes()))
    return dump


def program(place, dump, name="replayed"):
    (place / f"{name}.py").write_text(f"STUB, JOB, COUNT, DUMP = {str(STUB)!r}, {str(JOB)!r}, {str(COUNT)!r}, {str(dump)!r}\n" + PROGRAM)


@pytest.mark.parametrize("recording", ["torch", "copies", "graph"])
def test_both_counts_are_right(others, tmp_path, capsys, recording):
    dump = unpacked(recording, tmp_path)
    program(tmp_path, dump)
    p = others.Program("replayed", tunes=recording == "copies")
    runs = others.runs_of(p)
    others.judge_program(p, runs)
    said = capsys.readouterr().out
    assert "FAIL" not in said and said.count("ok ") == 7 + 4 * p.tunes, said
    rows = [line.split("\t") for line in subprocess.run([str(EXPECTED), str(dump)], capture_output=True, text=True, check=True).stdout.splitlines()
            if "\t" in line]
    want = {}
    for path, count, ns, _ in rows:
        name = path.rsplit("/", 1)[1]
        was = want.setdefault(COPIES.get(name, name), [0, 0])
        was[0] += int(count)
        was[1] += int(ns)
    for how in ("alone", "protond"):
        assert {n: tuple(v) for n, v in runs[how].counted.items()} == {n: tuple(v) for n, v in want.items()}, how


def test_what_is_wrong_is_seen(others, tmp_path, capsys):
    program(tmp_path, unpacked("torch", tmp_path))
    p = others.Program("replayed", ("forward", "no such scope"), True)
    runs = others.runs_of(p)
    good = runs["protond"]

    def judged(**changed):
        others.judge_program(p, dict(runs, protond=good._replace(**changed)))
        said = capsys.readouterr().out
        return [line.split(": ", 1)[1].partition(": ")[0] for line in said.splitlines() if line.startswith("FAIL")]
    LOST = "nothing lost, every launch answered, every record asked for"
    assert judged(session=dict(good.session, notes=["3 GPU records came without their launch: under (no launch)"]))[0] == LOST
    always = ["GPU work below forward, no such scope", "steps"]
    assert judged() == always
    name = next(n for n, v in good.tree.items() if v[0] > 1)
    one_less = dict(good.tree, **{name: [good.tree[name][0] - 1, good.tree[name][1]]})
    assert judged(tree=one_less) == ["same run, counts by name", "the tree adds up", "counts by name are those of a run without protond", *always]
    longer = dict(good.tree, **{name: [good.tree[name][0], good.tree[name][1] * 1.006]})
    assert judged(tree=longer) == ["same run, GPU time by name", "the tree adds up", *always]
    assert judged(tree={}, counted={}) [0] == "protond ends and was counted"
    assert judged(session=dict(good.session, unmatched=1)) == [LOST, *always]
    assert judged(session=dict(good.session, losses=[["ring full", 2]])) == [LOST, *always]
    assert judged(session=dict(good.session, listed=[])) == ["its session is listed", *always]
    assert judged(status=1) == judged(out="") == ["exit status and output as without protond", *always]


def test_a_call_without_a_record_is_named(others, tmp_path):
    import unmatched
    for recording in ("torch", "graph", "copies", "many"):
        data = unpacked(recording, tmp_path).read_bytes()
        calls, records = unmatched.read(data)
        assert len(records) > 0 < len(calls) and not unmatched.unanswered(calls, records) and list(unmatched.lines(data)) == [], recording
    data = unpacked("copies", tmp_path).read_bytes()

    def dump(keep):
        return data[:152] + b"".join(kind.to_bytes(4, "little") + len(p).to_bytes(4, "little") + seq.to_bytes(8, "little") + p + bytes(-len(p) % 8)
                                     for seq, kind, p in unmatched.chunks(data) if keep(kind))
    (calls, _), said = unmatched.read(data), list(unmatched.lines(dump(lambda kind: kind != 5)))
    assert "cuMemcpyDtoDAsync_v2: 10 of 10 calls have no record" in said and any(x.endswith("in io") for x in said), said
    sizes = {k[1]: (0 if c.name == "cuMemcpyDtoDAsync_v2" else 64, False) for k, c in calls.items()}
    said = list(unmatched.lines(dump(lambda kind: kind != 5), sizes))
    assert "cuMemcpyDtoDAsync_v2 of 0 bytes: 10 calls, 10 without a record" in said, said
    assert "cuMemcpyDtoDAsync_v2 of 0 bytes: 10 calls, 0 without a record" in list(unmatched.lines(data, sizes))
    said = list(unmatched.lines(dump(lambda kind: kind != 4)))
    assert "33 records of a copy with correlation id unknown, of no graph" in said, said


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="binutils' c++filt is not here")
def test_names_as_kineto_writes_them(others, world, tmp_path):
    """The demangler's names, which Kineto has, and protonview's of the same kernels."""
    dump = unpacked("torch", tmp_path)
    world.ctl("run", "-q", "-n", "x", "--", JOB, env={"PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump)})
    world.view("export", "x", "-o", tmp_path / "x.hatchet")
    mangled = [n for n in others.told(tmp_path / "x.hatchet") if not n.startswith("[")]
    plain = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout.splitlines()
    shown = {r[0] for r in json.loads(world.view("sql", "x", "--json", "select name from kernel_names where class = 'compute'").stdout)["data"]["rows"]}
    import others_count
    assert len(plain) > 30 and {others_count.short(n) for n in plain} == shown


def test_surplus_names_and_long_ones(others, tmp_path):
    from others_count import key, told
    long = "_Z" + "x" * 3000
    assert key(long) == key(long[:1007] + "~0123456789abcdef") != key(long[:1006] + "y" + long[1007:])
    tree = [{"children": [{"frame": {"name": "a"}, "metrics": {}, "children": [
        {"frame": {"name": "k"}, "metrics": {"count": 2, "time (ns)": 5}, "children": []},
        {"frame": {"name": "[memset]"}, "metrics": {"copies": 1, "copy_time (ns)": 3}, "children": []}]},
        {"frame": {"name": "k"}, "metrics": {"count": 1, "time (ns)": 1}, "children": []}]}]
    (tmp_path / "t").write_text(json.dumps(tree))
    assert told(tmp_path / "t") == {"k": [3, 6], "[memset]": [1, 3]}
