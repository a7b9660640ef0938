# SPDX-License-Identifier: MIT. docs/screens.md: each screen there is what its command prints, 80 columns wide.
#
# PROTOND_GOLDEN=write writes the screens anew below the commands that the page has.
import gzip
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, WAIT, until
from test_replay import DUMPS, JOB as REPLAY, STUB
from test_top import ONE, Terminal

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/screens.md"
GOLDEN = ROOT / "tests/golden"
FILES = {"gpt2.hatchet": "kernels", "before.hatchet": "triton", "after.hatchet": "slower", "matmul.hatchet": "three_kernels",
         "llm.hatchet": "operators"}
BLOCK = re.compile(r"(?ms)^```text\n\$ (.*?)\n(.*?)^```$")
NOT_SHOWN = {  # they say a line, or what the machine has
    "protonctl": {"stop", "activate", "set", "pause", "resume", "shutdown", "delete", "rename", "completion", "help", "daemon", "doctor", "backends"},
    "protonview": {"recover", "import", "help", "web", "report", "apis"},
}


@pytest.fixture
def place(world):
    """A session of a program of scopes, one of GPU work, a job that runs; files."""
    world.env.update(PROTOND_DB="", COLUMNS="80", PATH=f"{BUILD / 'bin'}:{world.env['PATH']}", HOME=str(world.home), CUDA_VISIBLE_DEVICES="")
    world.start(PROTOND_AUTO_SESSION="off")
    for name, golden in FILES.items():
        shutil.copy(GOLDEN / f"{golden}.hatchet", world.home / name)
    dump = world.home / "dump"
    shutil.copy(REPLAY, world.home / "train")
    for name, of, more in (("waits", "sync", ("-s", "sync")), ("torch", "torch", ())):
        dump.write_bytes(gzip.decompress(next(d for d in DUMPS if d.name.startswith(of)).read_bytes()))
        world.ctl("run", "-q", "-n", name, "-d", "both", *more, "--", "./train", env={"PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump)})
        world.ctl("delete", "replay")  # the player's own session
    subprocess.run([BUILD / "replay/gen", "leak", "13.0", dump], check=True)
    world.ctl("run", "-q", "-n", "leak", "-s", "alloc", "--", "./train",
              env={"PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_DUMP": str(dump), "PROTOND_CUPTI_BUFFERS": "64"})  # one for each step
    world.ctl("delete", "replay")
    world.view("export", "leak", "-o", "leak.protond")
    world.ctl("delete", "leak")
    world.view("export", "waits", "-o", "waits.protond")
    world.ctl("delete", "waits")
    shutil.copy(GOLDEN.parent / "real/kineto.json.gz", world.home)
    world.view("import", "kineto.json.gz", "-o", "kineto.protond")
    (world.home / "ranks.protond").write_bytes(gzip.decompress((GOLDEN.parent / "recorded/ranks-slow_rank.protond.gz").read_bytes()))
    world.ctl("run", "-q", "-n", "curve", "-b", "none", "-d", "both", "--", "protond-demo")
    world.view("export", "curve", "-o", "curve.protond")
    world.ctl("delete", "curve")
    return world


def serve(world):
    """A job that stands in a scope, in a session that goes on."""
    job = world.job()
    until("it is attached", lambda: [j for j in world.ctl_json("jobs")["jobs"] if j["pid"] == job.pid])
    world.ctl("start", "live", "--pid", job.pid, "-b", "none")
    for name in ("load", "serve", "tokenize"):
        job.say(f"enter {name}")
        job.say("exit" if name == "load" else "repeat 100 step")
    until("it is known", lambda: [c for c in world.ctl_json("top", "live")["cells"] if c["path"] == "serve/tokenize/step" and c["count"] == 100])


def whole_screen(world):
    t = Terminal(world, f"{ONE} live")
    try:
        return re.sub("\n{2,}", "\n\n", t.shows("SCOPE OR KERNEL", "tokenize"))
    finally:
        t.close()


def printed(world, command):
    if command == "protonctl top live":
        return whole_screen(world)
    r = subprocess.run(["sh", "-c", command], env=world.env, cwd=world.home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       stdin=subprocess.DEVNULL, timeout=WAIT)
    text = r.stdout.replace(str(BUILD / "bin") + "/", "").replace(str(BUILD / "tests") + "/", "./").replace(str(BUILD), "build")
    text = text.replace(str(world.home), "/home/ada").replace(str(world.dir), "/run/user/1000/protond").rstrip("\n")
    text = re.sub(r"\S*…\S*/job\b", "./job", text)  # how much of a path fits depends on where the tests are
    return text + "\n" if text else ""


def same(text):
    """A screen without what another run has otherwise: numbers, times, how wide columns are, which of two comes first."""
    text = re.sub(r"\s+overhead [\d.]+%\s+of a core", "", text)
    text = re.sub(r"(?m)^warning +\d+ events were dropped;[^;]*? why\n", "", text)  # on a machine that has more to do
    text = text.replace(" MFLOP/s", " GFLOP/s")  # of a busy machine
    text = re.sub(r"(STATE|finalized|active) +(SOURCE|run|session) ", r"\1 ", text)  # where the others leave room for it
    text = re.sub(r"just now|[\d.]+ (ns|us|ms|s|min \d+ s|min) ago", "T ago", text)
    text = re.sub(r"[\d.:-]*\d([\d.:-]*)( (ns|us|ms|s|min|h|B|KiB|MiB|GiB))?\b", "0", text)
    lines = (re.sub(r"[ ├└│─▁-█]+", " ", line).strip() for line in text.splitlines())
    return sorted(line for line in lines if not line.startswith("host resident"))  # of a job that lives less than a second


@pytest.mark.skipif(not REPLAY.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")
def test_screens(place):
    page = PAGE.read_text()
    for command, want in BLOCK.findall(page):
        if command == "protonctl top live" and shutil.which("tmux") is None:
            continue
        if "jobs" in command:
            serve(place)
        got = printed(place, command)
        if os.environ.get("PROTOND_GOLDEN") == "write":
            page = page.replace(f"$ {command}\n{want}```", f"$ {command}\n{got}```")
        else:
            assert same(got) == same(want), f"docs/screens.md shows another screen of `{command}`"
    if os.environ.get("PROTOND_GOLDEN") == "write":
        PAGE.write_text(page)


def test_every_verb_has_a_screen(world):
    shown = {tuple(command.split()[:2]) for command, _ in BLOCK.findall(PAGE.read_text())}
    for tool, without in NOT_SHOWN.items():
        listed = {line.split("\t")[0] for line in world.tool(tool, "__complete", "--", "").stdout.splitlines()}
        listed = {verb for verb in listed if re.fullmatch("[a-z]+", verb)}
        assert without <= listed and {verb for verb in listed if (tool, verb) not in shown} == without
