# SPDX-License-Identifier: MIT. How long others wait while a large part of a database leaves: sessions, and starts with their ends,
# asked all the time beside `protonctl prune --keep 10`.
#
# prune_bench.py BUILD [DIR]: DIR is on the disk that the database would be on. PRUNE_SESSIONS, PRUNE_CELLS (of each),
# PRUNE_CHUNKS (of each) change its size: 1.08 GB. Net: without the time that the daemon and the asker waited for a core.
import os
import pathlib
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

SESSIONS, CELLS, CHUNKS = (int(os.environ.get(f"PRUNE_{k}", v)) for k, v in (("SESSIONS", 200), ("CELLS", 20_000), ("CHUNKS", 60)))


def row(db, table, **values):
    """Of a table's columns, those that must be there are 0 or empty unless they are given."""
    names, rest = [], []
    for _, name, kind, needed, _, _ in db.execute(f"PRAGMA table_info({table})"):
        if name in values or needed:
            names.append(name)
            rest.append(values.get(name, {"INTEGER": 0, "TEXT": "", "BLOB": b""}.get(kind, 0)))
    return f"INSERT INTO {table}({','.join(names)}) VALUES({','.join('?' * len(names))})", names, rest


def fill(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN")
    uid = os.getuid()
    for i in range(1, CELLS + 1):
        sql, _, v = row(db, "node", id=10 + i, hash=struct.pack("<QQ", i, 7), parent=1, kind=1, name=f"node {i}")
        db.execute(sql, v)
    for s in range(1, SESSIONS + 1):
        at = 1_700_000_000_000_000_000 + s * 1_000_000_000
        for table, values in (("process", dict(id=s, ring=struct.pack("<QQ", s, 1), uid=uid, ended_ns=at, source="", started_ns=at)),
                              ("session", dict(id=s, uuid=struct.pack("<QQ", s, 2), name=f"s{s}", uid=uid, state="finalized", source="control",
                                               data="both", context="shadow", cpu="on", match="user", gpu="wanted", created_ns=at,
                                               finalized_ns=at + 1, stored_bytes=5_000_000)),
                              ("member", dict(session=s, process=s))):
            sql, _, v = row(db, table, **values)
            db.execute(sql, v)
        sql, names, v = row(db, "cell", session=s, process=s, count=7, sum_ns=1 << 40, min_ns=1 << 20, max_ns=1 << 30, bytes=0,
                            buckets=os.urandom(24))
        at_node = names.index("node")
        db.executemany(sql, (v[:at_node] + [11 + n] + v[at_node + 1:] for n in range(CELLS)))
        sql, names, v = row(db, "trace", session=s, process=s, bytes=os.urandom(50_000), events=8192)
        at_number = names.index("number")
        db.executemany(sql, (v[:at_number] + [n] + v[at_number + 1:] for n in range(CHUNKS)))
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


class Control:
    """Bytes of MessagePack, made by hand: a bench needs no module that a node lacks."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.ask(b"\xa5hello\x81\xa7version\x01")

    def ask(self, method):
        frame = b"\x94\x00\x01" + method
        self.socket.sendall(struct.pack("<I", len(frame)) + frame)
        got = b""
        while len(got) < 4 or len(got) < 4 + struct.unpack("<I", got[:4])[0]:
            got += self.socket.recv(1 << 20)
        return got[4:]


def text(s):
    return bytes([0xa0 + len(s)]) + s.encode() if len(s) < 32 else b"\xd9" + bytes([len(s)]) + s.encode()


def waited(pid):
    """Of all its threads, and this one."""
    return sum(int(open(f).read().split()[1]) for f in
               [*pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"), "/proc/thread-self/schedstat"]) / 1e9


class Asker(threading.Thread):
    def __init__(self, path, pid, methods):
        super().__init__(daemon=True)
        self.control, self.pid, self.methods, self.took, self.stop = Control(path), pid, methods, [], False

    def run(self):
        i = 0
        while not self.stop:
            for method in self.methods(i):
                idle, begin = waited(self.pid), time.monotonic()
                self.control.ask(method)
                took = time.monotonic() - begin
                self.took.append((max(took - waited(self.pid) + idle, 0), took))
            i += 1

    def __str__(self):
        net, raw = (sorted(t) for t in zip(*self.took))
        return (f"{len(net)} asked; net median {net[len(net) // 2]:.3f}, p99 {net[len(net) * 99 // 100]:.3f}, longest {net[-1]:.3f} s; "
                f"all median {raw[len(raw) // 2]:.3f}, p99 {raw[len(raw) * 99 // 100]:.3f}, longest {raw[-1]:.3f} s")


def main(build, where):
    place = pathlib.Path(tempfile.mkdtemp(prefix="prune.", dir=where))
    run = pathlib.Path(tempfile.mkdtemp(prefix="prune.", dir="/dev/shm"))
    env = {**os.environ, "PROTOND_RUNTIME_DIR": str(run), "PROTOND_DB": str(place / "store.db"), "PROTOND_RETENTION_MB": "0",
           "PROTOND_RETENTION_DAYS": "0", "PROTOND_IDLE_EXIT_S": "0"}

    def daemon():
        p = subprocess.Popen([build / "bin/protond", "--foreground"], env=env, stderr=open(place / "log", "ab"))
        while not (run / "control.sock").exists():
            time.sleep(0.05)
        return p

    def end(p):
        p.terminate()
        p.wait()
    try:
        end(daemon())
        fill(place / "store.db")
        size = (place / "store.db").stat().st_size
        p = daemon()
        path = str(run / "control.sock")
        name = [text("name"), text("finalize"), text("session")]
        askers = {"sessions": Asker(path, p.pid, lambda i: [text("sessions") + b"\x80"]),
                  "start, finalize": Asker(path, p.pid, lambda i: [
                      text("start") + b"\x82" + name[0] + text(f"x{i}") + text("all") + b"\xc3",
                      name[1] + b"\x81" + name[2] + text(f"x{i}")])}
        for a in askers.values():
            a.start()
        begin = time.monotonic()
        cpu = sum(os.times()[:2])
        out = subprocess.run([build / "bin/protonctl", "prune", "--keep", "10"], env=env, capture_output=True, text=True)
        took = time.monotonic() - begin
        for a in askers.values():
            a.stop = True
        for a in askers.values():
            a.join(60)
        wal = (place / "store.db-wal").stat().st_size
        ticks = sum(map(int, open(f"/proc/{p.pid}/stat").read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        print(f"{size / 1e9:.2f} GB, load {os.getloadavg()[0]:.0f}; prune {took:.0f} s, daemon {ticks:.1f} s of CPU, WAL {wal >> 20} MiB; "
              f"status {out.returncode} {out.stdout.strip().splitlines()[-1:]}{out.stderr.strip().splitlines()[-1:]}")
        for what, a in askers.items():
            print(f"{what}: {a}")
        end(p)
    finally:
        shutil.rmtree(place)
        shutil.rmtree(run)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("prune_bench.py BUILD [DIR]")
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else "/tmp")
