# SPDX-License-Identifier: MIT. OTF2 archives, judged by the format's own otf2-print (Debian's otf2-tools): what it prints
# has the same scopes and operations as `protonview sql`, to the nanosecond.
import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import BUILD, WAIT, until
from test_exports import DUMPS, REPLAY, replayed
from test_hostile_names import JOB, NAMES
from test_kineto import a_training, sql

pytestmark = [pytest.mark.preload,
              pytest.mark.skipif(shutil.which("otf2-print") is None, reason="no otf2-print here (Debian's otf2-tools)")]
needs_replay = pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")


class Archive:
    """{group: {location: [(name, begin, end, depth, correlation)]}} as otf2-print says it."""

    def __init__(self, folder):
        anchor = pathlib.Path(folder) / "traces.otf2"
        r = subprocess.run(["otf2-print", "--silent", "-Werror", str(anchor)], capture_output=True, text=True, timeout=120)
        assert r.returncode == 0 and not r.stderr, r.stderr[:2000]
        text = subprocess.run(["otf2-print", "-G", str(anchor)], capture_output=True, text=True, timeout=120).stdout
        self.groups = {int(m[1]): (m[2], m[3]) for m in re.finditer(r'^LOCATION_GROUP\s+(\d+)  Name: "(.*)" <\d+>, Type: (\w+)', text, re.M)}
        self.group_of, self.told = {}, {}
        for m in re.finditer(r"^LOCATION  +(\d+)  Name: .*, # Events: (\d+), Group: .* <(\d+)>$", text, re.M):
            self.group_of[int(m[1])], self.told[int(m[1])] = int(m[3]), int(m[2])
        self.slices, open_, seen = collections.defaultdict(list), collections.defaultdict(list), collections.Counter()
        text = subprocess.run(["otf2-print", str(anchor)], capture_output=True, text=True, timeout=120).stdout
        last = collections.defaultdict(int)
        for line in text.split("\n"):
            m = re.match(r'(ENTER|LEAVE)\s+(\d+)\s+(\d+)  Region: "(.*)" <(\d+)>$', line)
            if m is None:
                more = re.search(r'"correlation" <0>; UINT64; (\d+)', line)
                if more:
                    open_[at][-1][3] = int(more[1])
                continue
            at, ns = int(m[2]), int(m[3])
            assert ns >= last[at]
            last[at] = ns
            seen[at] += 1
            if m[1] == "ENTER":
                open_[at].append([m[4], ns, len(open_[at]), None])
            else:
                name, begin, depth, correlation = open_[at].pop()
                assert name == m[4]
                self.slices[at].append((name, begin, ns, depth, correlation))
        assert not any(open_.values()) and dict(seen) == self.told

    def of(self, type_):
        return [s for at, slices in self.slices.items() if self.groups[self.group_of[at]][1] == type_ for s in slices]


@needs_replay
@pytest.mark.parametrize("gz", DUMPS, ids=lambda p: p.name.split(".")[0])
def test_what_the_gpu_did(world, gz):
    replayed(world, gz)
    world.view("export", "r", "-o", "x.otf2")
    a = Archive(world.home / "x.otf2")
    want = sql(world, "r", "select name, start_ns, end_ns, correlation from kernels union all select name, start_ns, end_ns, correlation from copies")
    assert collections.Counter((s[0], s[1], s[2], s[4]) for s in a.of("ACCELERATOR")) == collections.Counter(map(tuple, want))
    assert {s[3] for s in a.of("ACCELERATOR")} == {0}
    cpu = a.of("PROCESS")
    launches = {"launch", "memcpy", "memset", "launch graph"}
    assert collections.Counter((s[1], s[4]) for s in cpu if s[0] in launches and s[4] is not None) == collections.Counter(
        map(tuple, sql(world, "r", "select launch_ns, correlation from launches")))
    scopes = sql(world, "r", "select name, begin_ns, end_ns from scopes")
    assert collections.Counter(s[:3] for s in cpu if s[4] is None) == collections.Counter(map(tuple, scopes))


def test_names_and_scopes(world):
    world.start()
    world.ctl("run", "-n", "n", "-k", "none", "-d", "both", "--", sys.executable, "-c", JOB, BUILD / "lib/libprotond.so.0")
    world.view("export", "n", "-o", "n.otf2")
    r = subprocess.run(["otf2-print", "--silent", "-Werror", str(world.home / "n.otf2/traces.otf2")], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    text = subprocess.run(["otf2-print", "-G", str(world.home / "n.otf2/traces.otf2")], capture_output=True, text=True).stdout
    assert f"# Events: {2 * len(NAMES)}," in text


def test_each_rank_is_a_group(world):
    job = "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); l.protond_name.argtypes = [ctypes.c_char_p];" \
          " l.protond_scope_enter(ctypes.c_uint32(l.protond_name(b'work'))); l.protond_scope_exit()"
    script = f'for r in 0 1 2; do RANK=$r WORLD_SIZE=3 {sys.executable} -c "{job}" {BUILD}/lib/libprotond.so.0 & done; wait'
    world.ctl("run", "-n", "ranks", "-k", "none", "-d", "both", "--", "sh", "-c", script)
    world.view("export", "ranks", "-o", "x.otf2")
    a = Archive(world.home / "x.otf2")
    assert sorted(re.match(r"rank (\d), pid \d+: ", n)[1] for n, t in a.groups.values() if t == "PROCESS" and "rank" in n) == ["0", "1", "2"]
    per = collections.Counter(a.groups[a.group_of[at]][0] for at, slices in a.slices.items() for s in slices if s[0] == "work")
    assert set(per.values()) == {1} and len(per) == 3


def test_what_overlaps_has_a_location_of_its_own(world):
    """Tasks, and scopes of a foreign file that end after what they began in: nothing is lost, or cut."""
    import json
    whole = a_training(["step"] * 2)
    whole["traceEvents"] += [{"ph": ph, "cat": "t", "name": f"task {i}", "id": i, "pid": 7, "tid": 1, "ts": at, "args": {}}
                             for i, b, e in ((1, 1100, 1300), (2, 1200, 1400)) for ph, at in (("b", b), ("e", e))]
    whole["traceEvents"] += [{"ph": "X", "cat": "user_annotation", "name": "askew", "pid": 7, "tid": 1, "ts": 1400, "dur": 300, "args": {}}]
    (world.home / "in.json").write_text(json.dumps(whole))
    world.view("import", "in.json", "-o", "in.protond")
    world.view("export", "in.protond", "-o", "x.otf2")
    a = Archive(world.home / "x.otf2")
    scopes = sql(world, "in.protond", "select name, begin_ns, end_ns from scopes")
    assert collections.Counter(s[:3] for s in a.of("PROCESS") if s[4] is None) == collections.Counter(map(tuple, scopes))


def test_written_whole_or_not_at_all(world):
    """Over nothing but an older archive; and no folder stays behind."""
    (world.home / "in.json").write_text(__import__("json").dumps(a_training(["step"] * 3)))
    world.view("import", "in.json", "-o", "in.protond")
    world.view("export", "in.protond", "-o", "x.otf2/")
    first = sorted(p.name for p in (world.home / "x.otf2").rglob("*"))
    r = world.view("export", "in.protond", "-o", "x.otf2", check=False)
    assert r.returncode == 1 and "--force" in r.stderr
    (world.home / "x.otf2/traces/old").write_text("old")
    world.view("export", "in.protond", "-o", "x.otf2", "--force")
    assert sorted(p.name for p in (world.home / "x.otf2").rglob("*")) == first
    (world.home / "mine.otf2").mkdir()
    (world.home / "mine.otf2/thesis").write_text("years")
    r = world.view("export", "in.protond", "-o", "mine.otf2", "--force", check=False)
    assert r.returncode == 1 and "traces.otf2" in r.stderr and (world.home / "mine.otf2/thesis").exists()
    (world.home / "file.otf2").write_text("years")
    assert world.view("export", "in.protond", "-o", "file.otf2", "--force", check=False).returncode == 1
    assert (world.home / "file.otf2").read_text() == "years"
    for wrong in ([world.home / "nothere.protond", "-o", "y.otf2"], ["in.protond", "-o", "no/such/y.otf2"], ["in.protond", "-f", "otf2", "-o", "-"]):
        assert world.view("export", *wrong, check=False).returncode != 0
    assert sorted(p.name for p in world.home.glob("*.otf2*")) == ["file.otf2", "mine.otf2", "x.otf2"]
    mask = os.umask(0)
    os.umask(mask)
    assert (world.home / "x.otf2").stat().st_mode & 0o777 == 0o777 & ~mask


def test_of_a_run_and_of_a_job(world):
    """protonctl writes the folder too; a job, whose file the daemon writes, is told who does."""
    job = "import sys; sys.path.insert(0, sys.argv[1]); import protond; s = protond.start('s', data='trace'); protond.enter_scope('a');" \
          " protond.exit_scope(); protond.finalize(s, output_format='otf2')"
    r = world.ctl("run", "-n", "n", "-k", "none", "-d", "both", "-o", "x.otf2", "--", sys.executable, "-c", job, BUILD / "lib/protond/python", check=False)
    assert "folder" in r.stderr and "protonview export" in r.stderr, r.stderr
    assert Archive(world.home / "x.otf2").of("PROCESS")


def test_a_signal_leaves_no_folder(world):
    """While it writes: the folder is there, and then it is gone, and the status says which signal."""
    (world.home / "in.json").write_text(__import__("json").dumps(a_training(["step"] * 20000)))
    world.view("import", "in.json", "-o", "in.protond")
    p = subprocess.Popen([str(BUILD / "bin/protonview"), "export", "in.protond", "-o", "x.otf2"], env=world.env, cwd=world.home,
                         stderr=subprocess.DEVNULL)
    until("it writes", lambda: list(world.home.glob("x.otf2.*")) or p.poll() is not None)
    p.send_signal(signal.SIGTERM)
    assert p.wait(WAIT) in (-signal.SIGTERM, 0)
    assert not list(world.home.glob("x.otf2.*")) and (p.returncode == 0) == (world.home / "x.otf2").exists()
