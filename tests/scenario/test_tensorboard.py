# SPDX-License-Identifier: MIT. TensorBoard's event files, by a reader of the format's own description: records with masked
# CRC-32C, and protoc on the public schema. Each value is what `protonview sql` says of the step, as a float of 32 bits.
import collections
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import pytest

from conftest import BUILD
from test_exports import DUMPS, REPLAY, replayed
from test_kineto import sql

pytestmark = [pytest.mark.preload, pytest.mark.skipif(shutil.which("protoc") is None, reason="no protoc here (Debian's protobuf-compiler)")]
HERE = pathlib.Path(__file__).parent


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def events(file):
    """[(wall time, step, version, {tag: value})]"""
    data, ret = file.read_bytes(), []
    assert crc32c(b"123456789") == 0xe3069283
    while data:
        n, = struct.unpack_from("<Q", data)
        assert struct.unpack_from("<I", data, 8)[0] == masked(data[:8])
        event = data[12:12 + n]
        assert struct.unpack_from("<I", data, 12 + n)[0] == masked(event)
        data = data[16 + n:]
        r = subprocess.run(["protoc", "--decode=board.Event", "-I", str(HERE), "tensorboard.proto"], input=event, capture_output=True, timeout=60)
        assert r.returncode == 0 and not r.stderr, r.stderr
        text = r.stdout.decode()
        assert not re.search(r"^ *\d+:", text, re.M), "fields that the schema has not"

        def field(name, other, among=text):
            m = re.search(rf"^{name}: (.*)$", among, re.M)
            return m[1] if m else other
        values = re.findall(r'tag: "(.*)"\n(?:    simple_value: (.*)\n)?', text)
        assert len(dict(values)) == len(values)
        ret.append((float(field("wall_time", 0)), int(field("step", 0)), field("file_version", None), {t: float(v or 0) for t, v in values}))
    assert ret[0][2] == '"brain.Event:2"' and not ret[0][3]
    return ret[1:]


def f32(v):
    return struct.unpack("<f", struct.pack("<f", v))[0]


def as_printed(v):
    """protoc prints a float to 8 or 9 digits, which are its own again."""
    return pytest.approx(f32(v), rel=1e-7, abs=0)


def test_steps_of_a_job(world):
    world.ctl("run", "-q", "-n", "demo", "-d", "both", "--", BUILD / "bin/protond-demo")
    world.view("export", "demo", "-o", "x.tfevents")
    have = events(world.home / "x.tfevents")
    steps = sql(world, "demo", "select step, begin_ns, end_ns, tid, path from steps order by 1")
    assert [s for _, s, _, _ in have] == list(range(1, 25)) == [s[0] for s in steps]
    values = sql(world, "demo", "select at_ns, name, value, path from scope_values where typeof(value) in ('integer', 'real')")
    names = {v[1] for v in values}
    assert names >= {"loss"}
    for (wall, _, _, tags), (_, begin, end, _, path) in zip(have, steps):
        assert wall == pytest.approx(end / 1e9, abs=1e-6)
        want = collections.defaultdict(float)
        for at, name, value, of in values:
            if begin <= at <= end and (of + "/").startswith(path + "/"):
                want[f"metric/{name}"] += value
        assert {t: v for t, v in tags.items() if t.startswith("metric/")} == {t: as_printed(v) for t, v in want.items()}
        assert tags["step/time_ms"] == as_printed((end - begin) / 1e6)


@pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
def test_what_a_step_launched(world):
    replayed(world, next(d for d in DUMPS if d.name.startswith("eager")))
    world.view("export", "r", "-o", "x.tfevents")
    have = events(world.home / "x.tfevents")
    steps = sql(world, "r", "select step, begin_ns, end_ns, tid from steps order by begin_ns")
    ops = sql(world, "r", "select l.launch_ns, l.tid, o.kind, o.dur_ns from (select correlation, 'kernel' kind, dur_ns from kernels"
              " union all select correlation, 'copy', dur_ns from copies) o join launches l on l.correlation = o.correlation")
    assert steps and ops and len(have) == len(steps)
    by = {(tags["step/time_ms"], wall): tags for wall, _, _, tags in have}
    total = collections.Counter()
    for wall, _, _, tags in have:
        total.update({k: round(tags[f"step/{k}"]) for k in ("kernels", "copies")})
    assert len(by) == len(have)
    for n, begin, end, tid in steps:
        mine = [(kind, ns) for at, of, kind, ns in ops if begin <= at <= end and of == tid]
        tags = next(t for (ms, wall), t in by.items() if abs(wall - end / 1e9) < 1e-5 and ms == as_printed((end - begin) / 1e6))
        for kind, many in (("kernel", "kernels"), ("copy", "copies")):
            assert tags[f"step/{many}"] == sum(k == kind for k, _ in mine)
            assert tags[f"step/{kind}_time_ms"] == pytest.approx(sum(ns for k, ns in mine if k == kind) / 1e6, rel=1e-6)
    assert total["kernels"] + total["copies"] > 0


def test_each_rank_has_its_tags(world):
    job = "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); l.protond_name.argtypes = [ctypes.c_char_p];" \
          " [(l.protond_scope_enter(ctypes.c_uint32(l.protond_name(b'step'))), l.protond_scope_exit()) for _ in range(3)]"
    script = f'for r in 0 1; do RANK=$r WORLD_SIZE=2 {sys.executable} -c "{job}" {BUILD}/lib/libprotond.so.0 & done; wait'
    world.ctl("run", "-n", "ranks", "-k", "none", "-d", "both", "--", "sh", "-c", script)
    world.view("export", "ranks", "-o", "x.tfevents")
    seen = collections.Counter(tag for _, _, _, tags in events(world.home / "x.tfevents") for tag in tags if "time_ms" in tag and "_time" not in tag)
    assert seen == {"rank 0/step/time_ms": 3, "rank 1/step/time_ms": 3}
    world.view("export", "ranks", "-o", "y.tfevents", "--process", "1")
    assert {tag for _, _, _, tags in events(world.home / "y.tfevents") for tag in tags} >= {"step/time_ms"}


def test_without_steps_it_says_so(world):
    world.ctl("run", "-n", "none", "-k", "none", "-d", "both", "--", sys.executable, "-c",
              "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); l.protond_name.argtypes = [ctypes.c_char_p];"
              " l.protond_scope_enter(ctypes.c_uint32(l.protond_name(b'work'))); l.protond_scope_exit()", BUILD / "lib/libprotond.so.0")
    r = world.view("export", "none", "-o", "x.tfevents", check=False)
    assert r.returncode == 1 and "ProfilerStep" in r.stderr and not (world.home / "x.tfevents").exists()
