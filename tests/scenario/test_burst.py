# SPDX-License-Identifier: MIT. Bursts: milliseconds at full speed, of which every event is kept, timelines included.
import random

import pytest

from conftest import until
from test_kill import Load, ended
from test_storm import TOKEN, Storm, finish
from test_timeline import of, timeline

pytestmark = pytest.mark.slow  # a sanitizer's speed is its own


@pytest.fixture(params=["tree", "both"])
def burst(world, request):
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "s", "--all", "-d", request.param)
    world.env["PROTOND_TOKEN"] = TOKEN
    world.timeline = request.param == "both"
    return world


def values(world, name):
    return world.sql("SELECT m.value FROM metric m JOIN session s ON s.id = m.session WHERE s.name = 's' AND m.name = ?", name)


@pytest.mark.parametrize("threads", [1, 4])
def test_ten_thousand_turns(burst, threads):
    """Of two scopes and a number: 800 KB a thread in a millisecond, by defaults."""
    turns = 10000
    job = Storm(burst, "storm", "burst", threads, turns, 0)
    job.line()
    job.say("on")
    job.end()
    cells, open_, losses = finish(burst)
    assert losses == {} and not open_
    assert cells == {"/outer": threads * turns, "/outer/inner": threads * turns}
    assert values(burst, "number") == [(threads * turns * (turns + 1) // 2,)]
    assert values(burst, "last") == [(turns,)], "the last of a thread's values is the last, in whichever lane it came"
    if burst.timeline:
        events, _ = timeline(burst, "s")
        assert len(of(events, "X")) == 2 * threads * turns


def test_a_burst_of_a_killed_job(burst):
    """Each thread's own counter says what is stored, wherever among its lanes it was."""
    rng = random.Random(7)
    for round_ in range(6):
        load = Load(burst, threads=2, pause_ns=900_000_000, batch=90_000, tag=f"truth{round_}")
        least = rng.randrange(120_000)
        until("it works", lambda: load.truth() >= least, interval=0.0002)
        load.kill()
        burst.jobs.remove(load)
        load.process.stdout.close()
        ended(burst, load.pid)
        counts = dict(burst.sql(
            "SELECT w.name, sum(c.count) FROM cell c JOIN node u ON u.id = c.node JOIN node w ON w.id = u.parent"
            " JOIN process p ON p.id = c.process WHERE p.pid = ? AND u.name = 'unit' GROUP BY w.name", load.pid))
        for i, (done, begun) in enumerate(load.each()):
            assert done <= counts.get(f"worker {i}", 0) <= begun, (round_, i, counts, load.each())
    until("the rings are drained", lambda: not list((burst.dir / "rings").iterdir()))
    assert burst.losses("s") == {}
