# SPDX-License-Identifier: MIT. p50 and p99 of real jobs against their single durations, merged over processes, and of databases
# that an older protond wrote.
import contextlib
import json
import math
import sqlite3

from conftest import until
from test_timeline import of, timeline

WIDE = "p50 and p99 are within 22% of the true value, from 48 ns to 137 s: an older protond stored some of them"


def flat(world, *args):
    """{name: row} of a session or file, and the warnings."""
    said = json.loads(world.view("flat", *args, "--json").stdout)
    names = [c["name"] for c in said["data"]["columns"]]
    return {row[0]: dict(zip(names, row)) for row in said["data"]["rows"]}, said["warnings"]


def truth(world, session, name):
    """All durations of a scope in the session's timeline, sorted."""
    return sorted(round(e["dur"] * 1000) for e in of(timeline(world, session)[0], "X", ("scope",)) if e["name"] == name)


def near(row, ns, bound):
    for key, q in (("p50", 0.5), ("p99", 0.99)):
        want = ns[math.ceil(q * len(ns)) - 1]
        assert abs(row[key] - want) <= bound * want + 1, (key, row[key], want, len(ns))
    assert row["count"] == len(ns)
    for key, want in (("min", ns[0]), ("max", ns[-1])):
        # A timeline rounds both ends; and a clock's slope is known better later, when its anchors lie further apart.
        assert abs(row[key] - want) <= 1e-3 * want + 1, (key, row[key], want)


def recorded(world):
    """Two jobs in one session with a timeline; the daemon runs on."""
    world.start(PROTOND_AUTO_SESSION="off")
    jobs = [world.job(), world.job()]
    until("both are there", lambda: world.ctl_json("status")["jobs"] == 2)
    world.ctl("start", "s", "--all", "-d", "trace")
    for job in jobs:
        steps(job, "step", 60)
        job.say("repeat 500 short")
    return jobs


def steps(job, name, n):
    """As long as it takes to say so."""
    for _ in range(n):
        job.say(f"enter {name}")
        job.say("exit")


def finalized(world, jobs):
    for job in jobs:
        job.quit()
    world.ctl("finalize", "s")


def old_bucket(ns):
    octave = ns.bit_length() - 1
    return 0 if ns < 32 else min(63, (octave - 5) * 2 + (ns >> (octave - 1) & 1))


def as_before(world, path):
    """What an older protond would have stored of these events: two buckets an octave in cell.hist, and no other column."""
    ns = {(e["pid"], e["name"]): [] for e in of(timeline(world, "s")[0], "X", ("scope",))}
    for e in of(timeline(world, "s")[0], "X", ("scope",)):
        ns[e["pid"], e["name"]].append(round(e["dur"] * 1000))
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        cells = db.execute("SELECT c.rowid_, c.count, c.name, c.pid FROM (SELECT c.session || ',' || c.process || ',' || c.segment || ',' ||"
                           " c.node AS rowid_, c.count, n.name, p.pid FROM cell c JOIN node n ON n.id = c.node"
                           " JOIN process p ON p.id = c.process) c").fetchall()
        db.execute("ALTER TABLE cell DROP COLUMN buckets")
        for key, count, name, pid in cells:
            durations = ns[pid, name]
            assert len(durations) == count
            hist = bytearray(256)
            for d in durations:
                at = 4 * old_bucket(d)
                hist[at:at + 4] = (int.from_bytes(hist[at:at + 4], "little") + 1).to_bytes(4, "little")
            db.execute("UPDATE cell SET hist = ? WHERE session || ',' || process || ',' || segment || ',' || node = ?",
                       (bytes(hist.rstrip(b"\0") + b"\0" * (-len(hist.rstrip(b"\0")) % 4)), key))


def test_quantiles_of_a_real_job(world):
    finalized(world, recorded(world))
    rows, warnings = flat(world, "s")
    for name in ("step", "short"):
        near(rows[name], truth(world, "s", name), 0.03)
    assert warnings == []
    assert "p50 and p99 are within 3% of the true value" in world.view("flat", "s").stdout.splitlines()
    assert world.sql("SELECT count(*) FROM cell WHERE hist IS NOT NULL OR buckets IS NULL") == [(0,)]


def test_a_database_of_before(world):
    finalized(world, recorded(world))
    ns = truth(world, "s", "step")
    world.stop()
    as_before(world, world.db)
    rows, warnings = flat(world, "s")
    near(rows["step"], ns, 0.22)
    assert warnings == [WIDE], "read as it is, without the column"
    assert WIDE in world.view("flat", "s").stdout.splitlines()
    world.start(PROTOND_AUTO_SESSION="off")
    assert flat(world, "s") == (rows, warnings), "mended by a daemon"


def test_a_daemon_goes_on_where_an_older_one_stopped(world):
    jobs = recorded(world)
    until("all is stored", lambda: world.sql("SELECT sum(count) FROM cell") == [(1120,)])
    world.daemon.kill()
    world.daemon.wait()
    world.daemon = None
    as_before(world, world.db)
    world.start(PROTOND_AUTO_SESSION="off")
    for job in jobs:
        steps(job, "step", 60)
        job.say("repeat 700 new")
    finalized(world, jobs)
    rows, warnings = flat(world, "s")
    near(rows["step"], truth(world, "s", "step"), 0.22)
    near(rows["new"], truth(world, "s", "new"), 0.03)
    assert warnings == [WIDE]
    kept = "SELECT DISTINCT n.name, c.hist IS NULL, c.buckets IS NULL FROM cell c JOIN node n ON n.id = c.node ORDER BY 1"
    assert world.sql(kept) == [("new", 1, 0), ("short", 0, 1), ("step", 1, 0)], "what grew is stored anew"
