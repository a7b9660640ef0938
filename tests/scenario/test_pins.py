# SPDX-License-Identifier: MIT. Instructions of the hot paths, counted by valgrind: what a clock on a shared machine cannot tell.
# A change that costs more on purpose changes the pin, and says why where it is committed.
import gzip
import pathlib
import re
import subprocess

import pytest

from conftest import BUILD, WAIT
from test_replay import HERE, JOB, STUB

pytestmark = pytest.mark.slow  # a sanitizer's instructions are its own

SPARE = 1.03  # another compiler of the same release may choose otherwise here and there


def counts(world, toggle, each, *command, **env):
    """Instructions inside of `toggle`, for each call of `each`; without it, of the run."""
    out = world.home / "callgrind"
    r = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--toggle-collect={toggle}",
                        *([f"--dump-after={each}"] if each else []), *map(str, command)], env={**world.env, **env}, cwd=world.home,
                       capture_output=True, text=True, timeout=WAIT * 8)
    assert r.returncode in (0, 1), r.stderr  # 1: a benchmark that is slower here than its goal
    parts = sorted(world.home.glob("callgrind.*"), key=lambda p: int(p.suffix[1:])) if each else [out]
    return [int(re.search(r"^totals: (\d+)", p.read_text(), re.M)[1]) for p in parts], r.stdout


def pinned(what, got, most):
    print(f"{what}: {got:.1f} instructions, pinned at {most}")
    assert most * 0.9 < got, f"{what} takes {got:.1f} instructions: pin that instead of {most}"
    assert got < most * SPARE, f"{what} takes {got:.1f} instructions, {most} before"


def test_scopes(world):
    world.start(PROTOND_AUTO_SESSION="off")
    got, _ = counts(world, "counted", "counted", BUILD / "tests/pins")
    assert len(got) == 5
    for what, instructions, most in zip(("scope, nothing recorded", "scope", "scope in scopes", "metric", "scope, cpu=off"),
                                        got, (49, 166, 172, 215, 141)):
        pinned(what, instructions / 1000, most)


@pytest.mark.long
def test_fold(world):
    got, out = counts(world, "fold_apply", "round_rate", BUILD / "bench/fold_bench", FOLD_BENCH_ROUNDS="1")
    events = int(re.search(r"(\d+) events a round", out)[1])
    pinned("fold, an event", got[1] / events, 621)


def test_launch(world):
    world.start(PROTOND_AUTO_SESSION="off")
    dump = world.home / "dump"
    dump.write_bytes(gzip.decompress((HERE.parent / "replay/dumps/many.cuptidump.gz").read_bytes()))
    (got,), _ = counts(world, "cupti_on_callback", None, JOB, "many", PROTOND_CUPTI_PATH=str(STUB), PD_REPLAY_DUMP=str(dump),
                       CUDA_INJECTION64_PATH=str(BUILD / "lib/libprotond.so.0"))
    pinned("launch, ENTER and EXIT", got / 2003, 205)


def test_calls(world):
    """With the switch api, what its callbacks take: of a launch by the runtime four, of another call two."""
    for what, launches, calls, most in (("launch, with api", 2000, 0, 573), ("another call, with api", 0, 2000, 256)):
        (got,), _ = counts(world, "cupti_on_callback", None, BUILD / "bench/launch_bench", "calls", launches, calls)
        pinned(what, got / 2000, most)


def test_memcheck_says_nothing_of_ours(world):
    """But what the page on troubles has a suppression for, which is glibc's."""
    page = (pathlib.Path(__file__).parents[2] / "docs/troubleshooting.md").read_text()
    (world.home / "of.supp").write_text(re.search(r"```text\n(\{.*?\n\}\n)```", page, re.S)[1])
    world.start()
    found = []
    for more in ([], [f"--suppressions={world.home}/of.supp"]):
        r = subprocess.run(["valgrind", "--leak-check=full", *more, str(BUILD / "tests/job")],
                           input="start s\nrepeat 100 a\n", env=world.env, cwd=world.home, capture_output=True, text=True, timeout=WAIT * 4)
        found.append(re.search(r"ERROR SUMMARY: (\d+) errors", r.stderr)[1])
    assert found == ["2", "0"], r.stderr
