# SPDX-License-Identifier: MIT. What protonview says of what it does not show.
import contextlib
import json
import sqlite3

from conftest import until


def chain(path, generations):
    """A .hatchet file of one path, so many nodes deep with ROOT."""
    tree = {"frame": {"name": "leaf", "type": "function"}, "metrics": {"count": 1}, "children": []}
    for i in range(generations - 1):
        tree = {"frame": {"name": f"n{i}", "type": "function"}, "metrics": {"count": 0}, "children": [tree]}
    tree["frame"]["name"] = "ROOT"
    path.write_text(json.dumps([tree, {}]))
    return path


def test_a_tree_that_is_cut_says_so(world):
    deep, fits = chain(world.home / "deep.hatchet", 103), chain(world.home / "fits.hatchet", 100)
    words = "3 more nodes, deeper than 100 generations, are not shown; -d 103 shows all"
    assert world.view(deep).stdout.splitlines()[-1] == words
    assert world.view("diff", deep, deep).stdout.splitlines()[-1] == words
    for verb in (["tree", deep], ["diff", deep, deep]):
        said = json.loads(world.view(*verb, "--json").stdout)
        assert said["warnings"] == [words] and len(said["rows"]) == 100
    assert world.view(deep, "-d", 103).stdout.splitlines()[-1].endswith(" leaf")
    assert "not shown" not in world.view(deep, "-d", 5).stdout, "it was asked for"
    assert world.view(fits).stdout.splitlines()[-1].endswith(" leaf")
    assert json.loads(world.view(fits, "--json").stdout)["warnings"] == []


def test_how_long_a_live_session_is_active(world):
    def active(name):
        said = json.loads(world.view("sessions", "--json").stdout)
        names = [c["name"] for c in said["columns"]]
        (row,) = [dict(zip(names, row)) for row in said["rows"] if row[names.index("name")] == name]
        return row["active"]

    world.start(PROTOND_AUTO_SESSION="off")
    job = world.job()
    job.say("start s")
    job.say("repeat 10 a")
    first = active("s")
    assert 0 < first <= active("s") <= world.ctl_json("sessions")["sessions"][0]["duration_ns"]
    assert "0.0 us" not in world.view("sessions").stdout
    world.ctl("stop", "s")
    assert active("s") == active("s") > first, "closed intervals"
    world.ctl("activate", "s")
    until("it is longer", lambda: active("s") > 2 * first)
    world.daemon.kill()
    world.daemon.wait()
    world.daemon = None
    with contextlib.closing(sqlite3.connect(world.db)) as db, db:
        db.execute("UPDATE process SET boot_id = zeroblob(16)")
    assert active("s") is None, "of another boot"
    assert " - " in world.view("sessions").stdout.splitlines()[1]
