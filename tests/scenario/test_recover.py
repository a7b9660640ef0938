# SPDX-License-Identifier: MIT. `protonview recover`: databases that are cut, damaged, half in their WAL, or lies.
#
# PD_CUTS: how many random cuts (6; all of `make check-long`: 120). PD_SEED: which.
import hashlib
import os
import random
import re
import shutil
import sqlite3

import pytest

from conftest import BUILD

CUTS = int(os.environ.get("PD_CUTS", "6"))
SEED = int(os.environ.get("PD_SEED", "7"))
PAGE = 4096
pytestmark = pytest.mark.long
NOT_COPIED = ("lane", "pending", "meta")


def tables(db):
    return [t for (t,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") if t not in NOT_COPIED]


def rows(path, table):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.text_factory = bytes
    names = [c[1].decode() for c in db.execute(f"PRAGMA table_info({table})")
             if (table, c[1].decode()) not in (("session", "recovered"), ("session", "state"), ("active", "end_ns"), ("segment", "end_ns"))]
    found = set(db.execute(f"SELECT {','.join(f'[{n}]' for n in names)} FROM {table}"))
    db.close()
    return found


def grow(path, sessions, nodes):
    """Trees of three levels, free pages, timelines on overflow pages: what a long history has."""
    chance = random.Random(SEED)
    db = sqlite3.connect(path)
    (first,) = db.execute("SELECT max(id) + 1 FROM node").fetchone()
    for i in range(nodes):
        db.execute("INSERT INTO node(id, hash, parent, kind, name) VALUES(?, ?, ?, 1, ?)",
                   (first + i, chance.randbytes(16), first + chance.randrange(i) if i > 0 and i % 7 else 0, f"scope {i} " + "x" * chance.randrange(60)))
    for s in range(1, sessions + 1):
        (process,) = db.execute("SELECT process FROM member WHERE session = ?", (s,)).fetchone()
        db.executemany("INSERT INTO cell(session, process, segment, node, device, class, count, sum_ns, min_ns, max_ns, bytes, untimed, open, hist)"
                       " VALUES(?, ?, 0, ?, -1, 0, 1, 2, 1, 1, 0, 0, 0, ?)",
                       [(s, process, first + n, chance.randbytes(4 * chance.randrange(20)) or None) for n in chance.sample(range(nodes), nodes // 4)])
        for n in range(8):
            db.execute("INSERT OR IGNORE INTO trace(session, process, number, first, events, end_ns, bytes) SELECT session, process, max(number) + 1,"
                       " max(first + events), 10, max(end_ns) + 1, ? FROM trace WHERE session = ?", (chance.randbytes(chance.choice((300, 9000, 70000))), s))
    for table in ("cell", "trace", "active", "segment", "member", "metric", "busy", "note", "loss", "config"):
        db.execute(f"DELETE FROM {table} WHERE session = 2")
    db.execute("DELETE FROM session WHERE id = 2")
    db.commit()
    db.execute("PRAGMA incremental_vacuum(40)").fetchall()
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


@pytest.fixture
def history(world):
    """Ten sessions, 1 to 10."""
    world.start(PROTOND_AUTO_SESSION="off")
    for i in range(10):
        world.ctl("run", "-q", "-n", f"s{i}", "-d", "both", "-b", "none", "--", BUILD / "bin/protond-demo")
    world.stop()
    grow(world.db, 10, 4000)
    return world


def recover(world, path, status=None):
    new = path.with_name(path.name + ".recovered")
    new.unlink(missing_ok=True)
    before = hashlib.sha256(path.read_bytes()).digest()
    r = world.view("recover", path, check=False)
    assert hashlib.sha256(path.read_bytes()).digest() == before, "the original is only read"
    assert r.returncode in ((0, 4) if status is None else (status,)), r.stderr
    return r.stdout, new


def copied(text):
    return {t: int(n) for t, n in re.findall(r"(?m)^(\w+) +(\d+)(?:  |$)", text)}


def reachable(db, cut):
    """Rows on whole pages, by the pages that SQLite says they are on."""
    stat = {}
    for table, kind, page, path, cells in db.execute("SELECT name, pagetype, pageno, path, ncell FROM dbstat"):
        stat.setdefault(table, []).append((kind, page * PAGE <= cut, path, cells))
    found = {}
    for table in tables(db):
        without_rowid = "WITHOUT ROWID" in db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]
        broken = {path.split("+")[0] for kind, whole, path, _ in stat[table] if kind == "overflow" and not whole}
        found[table] = 0
        for kind, whole, path, cells in stat[table]:
            if whole and (kind == "leaf" or (kind == "internal" and without_rowid)):
                found[table] += cells - len({b for b in broken if b.rsplit("/", 1)[0] + "/" == path})
    return found


@pytest.mark.slow
def test_cuts_at_random_bytes(history):
    """Every row that stands on a whole page is in the copy, as it was, and each session can be looked at."""
    chance = random.Random(SEED)
    size = history.db.stat().st_size
    original = {t: rows(history.db, t) for t in tables(sqlite3.connect(history.db))}
    db = sqlite3.connect(history.db)
    (schema,) = db.execute("SELECT max(pageno) FROM dbstat WHERE name = 'sqlite_schema'").fetchone()
    refused = whole = 0
    for cut in [size - 1, PAGE, (schema - 1) * PAGE, *(chance.randrange(PAGE, size) for _ in range(CUTS))]:
        path = history.home / "cut.db"
        shutil.copy(history.db, path)
        os.truncate(path, cut)
        refused += history.view("sessions", "--db", path, check=False).returncode != 0
        text, new = recover(history, path)
        told, want = copied(text), reachable(db, cut)
        for table, there in original.items():
            now = rows(new, table)
            made = {r for r in now - there if b"(unknown)" in r or any(isinstance(c, bytes) and c.startswith((b"recovered from", b"session ")) for c in r)}
            assert now - made <= there, (cut, table, list(now - made - there)[:3])
            assert len(now - made) == want[table] == told[table], (cut, table, len(now - made), want[table], told[table])
        lines = dict(re.findall(r"(?m)^session (\d+) '[^']*': (.*)$", text))
        shown = history.view("sessions", "--db", new).stdout
        for session, lacks in lines.items():
            assert re.search(rf"(?m)^ *{session} .* {'recovered' if lacks == 'whole' else 'incomplete'} ", shown), shown
            assert "note: recovered from a damaged database" in history.view("tree", session, "--db", new).stdout
            mine = [sum(r[0] == int(session) for r in t) for t in (original["cell"], rows(new, "cell"))]
            assert lacks != "whole" or mine[0] == mine[1], (cut, session, mine)
            whole += lacks == "whole"
    print(f"{len(original['cell'])} cells in {size} bytes; of {CUTS + 3} cuts {refused} were refused by `sessions`, none by `recover`; {whole} sessions whole")
    assert refused >= CUTS
    assert history.view("recover", history.db).returncode == 0, "and what is whole is copied whole"


@pytest.mark.slow
def test_pages_of_noise(history):
    chance = random.Random(SEED)
    good = history.db.read_bytes()
    path = history.home / "noise.db"
    for _ in range(CUTS):
        bytes_ = bytearray(good)
        for _ in range(chance.choice((1, 20, 200))):
            at = chance.randrange(PAGE, len(good))
            noise = chance.randbytes(chance.choice((1, 8, PAGE)))
            bytes_[at:at + len(noise)] = noise
        path.write_bytes(bytes_)
        text, new = recover(history, path)
        assert copied(text)["cell"] > 1000  # of what 200 pages of noise leave, by where they fall
        db = sqlite3.connect(new)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert history.view("sessions", "--db", new).stdout.count("\n") > 5


def test_what_is_in_the_wal(history):
    path = history.home / "live.db"
    shutil.copy(history.db, path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("UPDATE session SET name = 'only in the WAL' WHERE id = 3")
    db.commit()
    db.execute("BEGIN")
    db.execute("PRAGMA cache_size = 1")
    db.execute("UPDATE session SET name = 'not committed'")
    db.execute("UPDATE cell SET count = 77")  # spills
    cut = history.home / "cut.db"
    for name in ("", "-wal"):
        shutil.copy(f"{path}{name}", f"{cut}{name}")
    db.rollback()
    os.truncate(cut, cut.stat().st_size * 3 // 4)
    text, new = recover(history, cut)
    assert "session 3 'only in the WAL'" in text and "not committed" not in text
    assert not [r for r in rows(new, "cell") if r[6] == 77]
    with open(f"{cut}-wal", "r+b") as f:
        f.seek(100)
        f.write(b"noise")
    assert "'s2'" in recover(history, cut)[0], "a WAL whose sums are wrong is not believed"


def test_nothing_is_overwritten(history):
    new = history.home / "new.db"
    new.write_text("mine")
    r = history.view("recover", history.db, "-o", new, check=False)
    assert r.returncode == 1 and "exists and is not overwritten" in r.stderr and new.read_text() == "mine"
    new.unlink()
    assert f"written to {new}" in history.view("--recover", history.db, "-o", new).stdout
    assert new.stat().st_mode & 0o777 == 0o600
    assert history.view("recover", history.db, "-o", "-", check=False).returncode == 2
    assert sorted(p.name for p in history.home.glob("new.db*")) == ["new.db"], "nothing is left beside it"


def test_what_is_refused(history):
    for name, bytes_, words in (("none.db", b"", "its first page, which says where all else is, cannot be read"),
                                ("head.db", history.db.read_bytes()[:PAGE - 1], "its first page, which says where all else is, cannot be read"),
                                ("zero.db", bytes(2 * PAGE), "its first page, which says where all else is, cannot be read"),
                                ("text.db", b"SQLite format 3, as a text " * 400, "its first page, which says where all else is, cannot be read")):
        path = history.home / name
        path.write_bytes(bytes_)
        r = history.view("recover", path, check=False)
        assert r.returncode == 1 and words in r.stderr, r.stderr
        assert not path.with_name(name + ".recovered").exists()
    other = history.home / "other.db"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE session(id)")
    db.commit()
    assert "is not a protond database" in history.view("recover", other, check=False).stderr
    db.execute("PRAGMA application_id = 0x50524f54")
    db.execute("PRAGMA user_version = 99")
    db.commit()
    assert "was made by a newer protond" in history.view("recover", other, check=False).stderr
    assert "No such file" in history.view("recover", history.home / "nosuch", check=False).stderr
    os.mkfifo(history.home / "pipe")
    assert "is not a file" in history.view("recover", history.home / "pipe", check=False).stderr


def test_a_schema_that_is_a_program(history):
    """Nothing of it is run: triggers, views, computed columns, tables by the names of ours that are none."""
    path = history.home / "evil.db"
    shutil.copy(history.db, path)
    db = sqlite3.connect(path)
    db.execute("CREATE TRIGGER t AFTER INSERT ON node BEGIN DELETE FROM node; END")
    db.execute("CREATE VIEW v AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT count(*) FROM r")
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_schema SET sql = 'CREATE TABLE note(' || char(0) || '((((' WHERE name = 'note'")
    db.execute("UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'loss'")
    db.execute("UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'cell') WHERE name = 'anchor'")
    db.commit()
    db.close()
    text, new = recover(history, path)
    assert rows(new, "node") >= rows(history.db, "node")
    db = sqlite3.connect(new)
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE type IN ('trigger', 'view')").fetchone() == (0,)
    assert "session 1 " in text


def test_an_older_schema(history):
    """Columns that were added later stand behind the others, and need not be there."""
    path = history.home / "old.db"
    shutil.copy(history.db, path)
    db = sqlite3.connect(path)
    db.execute("ALTER TABLE session ADD COLUMN later TEXT")
    db.execute("UPDATE session SET later = 'of another version' WHERE id = 1")
    db.execute("ALTER TABLE cell DROP COLUMN hist")
    db.commit()
    db.close()
    recover(history, path, 0)
    new = path.with_name("old.db.recovered")
    assert {r[:13] for r in rows(new, "cell")} == {r[:13] for r in rows(history.db, "cell")}
    assert len(rows(new, "session")) == 9


def test_who_refuses_a_damaged_file_names_it(history):
    path = history.home / "cut.db"
    shutil.copy(history.db, path)
    os.truncate(path, path.stat().st_size // 2)
    for args in (["sessions", "--db", path], ["tree", "1", "--db", path], ["tree", path], ["export", "1", "--db", path, "-o", "-"],
                 ["diff", "1", "1", "--db", path]):
        r = history.view(*args, check=False)
        assert r.returncode == 1 and f"`protonview recover {path}` copies what can be read" in r.stderr, (args, r.stderr)
