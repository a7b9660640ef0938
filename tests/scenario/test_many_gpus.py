# SPDX-License-Identifier: MIT. Many threads that launch on many streams of many GPUs, which there are none of: tests/replay/storm.c.
import pytest

from test_replay import JOB, STUB, kernels
from test_sql import ask

pytestmark = pytest.mark.skipif(not JOB.exists(), reason="tests/replay/check.sh builds the stub; it runs first in make check")


def storm(world, spec):
    """What a run of tests/replay/storm.c (THREADS STREAMS GPUS LAUNCHES LAG RATE) is said to have been, and its kernels by path."""
    r = world.ctl("run", "-n", "x", "-d", "both", "--", str(JOB), env={"PROTOND_CUPTI_PATH": str(STUB), "PD_REPLAY_STORM": spec})
    return r.stderr, kernels(world, "x")


def test_many_threads_on_many_gpus(world):
    """Each launch under its scope, each kernel on its GPU and stream, in the tree and in the timeline."""
    words, tree = storm(world, "8 4 4 64000 8000 64000")
    assert "64000 launches, 0 unmatched  drops 0" in words, words
    assert tree == {"/worker/empty_kernel": 64000}
    rows = ask(world, "x", "select gpu, stream, count(*) n from kernels where path = 'worker/empty_kernel' group by gpu, stream")
    assert [r["n"] for r in rows] == [500] * 8 * 4 * 4
    assert {r["gpu"] for r in rows} == set(range(4))


def test_more_in_flight_than_there_is_memory_for(world):
    """What cannot be waited for is counted under its name; what comes of it is under (no launch), and no tree pays for it.
    A record that came before its launch may be let go, too: the launch then has none."""
    world.start(PROTOND_MEMORY_MB="2")
    words, tree = storm(world, "8 4 4 60000 50000 60000")
    lost = {r["cause"]: r["count"] for r in ask(world, "x", "select cause, count from losses")}
    none, flight = lost.pop(11, 0), lost.pop(20)
    assert lost == {} and none < 1000 and 0 < flight < 50000, words
    assert tree == {"/worker/empty_kernel": 60000 - none - flight, "/(no launch)/empty_kernel": none + flight}
    assert "too many were in flight (memory_mb" in words
