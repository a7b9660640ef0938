# SPDX-License-Identifier: MIT. One user who takes all that he can get of a service, until he is killed: attacker.py KIND.
# Each kind goes for one ceiling, and again when it is told no. test_shares.py runs them all at once.
import ctypes
import os
import select
import signal
import socket
import struct
import subprocess
import sys

import msgpack

DIR = os.environ["PROTOND_RUNTIME_DIR"]
BUILD = os.environ["ATTACK_BUILD"]
HOME = os.environ["HOME"]
MAGIC = 0x31565250


def pause(seconds):
    select.select([], [], [], seconds)


class Control:
    """A client of control.sock; told() is "" or why not."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(DIR + "/control.sock")
        self.id = 0
        self.ask("hello", version=1)

    def send(self, method, **params):
        self.id += 1
        frame = msgpack.packb([0, self.id, method, params])
        self.socket.sendall(struct.pack("<I", len(frame)) + frame)

    def read(self, n):
        got, fds = b"", []
        while len(got) < n:
            some, more, _, _ = socket.recv_fds(self.socket, n - len(got), 4)
            fds += more
            if not some:
                raise OSError("hung up")
            got += some
        for fd in fds:
            self.kept = getattr(self, "kept", []) + [fd]
        return got

    def answer(self):
        _, _, error, result = msgpack.unpackb(self.read(struct.unpack("<I", self.read(4))[0]), unicode_errors="replace")
        return (error or {}).get("text", ""), result

    def ask(self, method, **params):
        self.send(method, **params)
        return self.answer()


def again(what):
    """For ever, with a new connection when the daemon has closed the last one."""
    while True:
        try:
            what(Control())
        except OSError:
            pause(0.01)


def sessions(c):
    for i in range(1 << 30):
        words, _ = c.ask("start", name=f"s{i}", **{"all": True})
        if words:
            c.ask("finalize", session=f"s{i - 1}")


def questions(c):
    """Sixteen at once, of every kind that takes the daemon some work."""
    while True:
        for method in ("top", "where", "status", "sessions", "jobs") * 3:
            c.send(method)
        for _ in range(15):
            c.answer()


def unread(c):
    """Answers that nobody reads."""
    c.socket.setblocking(False)
    frame = msgpack.packb([0, 9, "jobs", {"all": True}])
    try:
        while True:
            c.socket.send(struct.pack("<I", len(frame)) + frame)
    except BlockingIOError:
        pause(1)


def exports(c):
    kept = []
    while True:
        words, _ = c.ask("export", session="@last", format="hatchet")
        kept += getattr(c, "kept", [])
        c.kept = []
        if words:
            pause(0.01)


def prunes(c):
    while True:
        for method, params in (("prune", {"max_bytes": 1}), ("prune", {"older_than_s": 0}), ("delete", {"session": "mine", "force": True}),
                               ("delete", {"session": "stored"}), ("finalize", {"session": "mine"}), ("pause", {}), ("stop_daemon", {})):
            c.ask(method, **params)


def clients():
    held = []
    while True:
        try:
            held.append(Control())
        except (OSError, ValueError):
            pause(0.05)


def connections():
    """Many on agent.sock, again and again; each says what it is, and no more. Some are left for rings."""
    held = []
    attach = struct.pack("<IHHIIIIQ16s16s32s16s", MAGIC, 1, 112, 0x10002, 0, 1, 0, 1, b"", b"", b"attacker", b"")
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(60)
        try:
            s.connect(DIR + "/agent.sock")
            s.send(attach)
            if s.recv(8192)[4:6] != b"\x02\0":
                raise OSError
            held.append(s)
            if len(held) == 160:
                while held:
                    held.pop().close()
        except OSError:
            s.close()
            pause(0.01)


def rings(lanes=1024, lane_bytes=65536, fill=8 << 20):
    """Rings of 1 024 lanes, each with memory behind it; the job hangs up, and its process stays."""
    up = lambda n: n + 4095 & ~4095  # noqa: E731
    boot = bytes.fromhex(open("/proc/sys/kernel/random/boot_id").read().strip().replace("-", ""))
    start = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
    kept = []
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(60)
        try:
            s.connect(DIR + "/agent.sock")
            s.send(struct.pack("<IHHIIIIQ16s16s32s16s", MAGIC, 1, 112, 0x10002, 0, 1, 0, 1, b"", b"", b"attacker", b""))
            m = s.recv(8192)
            if m[4:6] != b"\x02\0":
                raise OSError
            uuid, paths = os.urandom(16), 8192
            at = 3 * 4096
            data = at + up(1152 * lanes) + up(paths * 16) + up(16 * 16) + 3 * 4096
            size = data + lanes * lane_bytes
            head = struct.pack("<QII16s16s16s16sIIQIIIIIIIIIIQQQQ", 0x31474e52544f5250, 0x10002, 168, uuid, m[16:32], boot, b"",
                               os.getpid(), os.getuid(), start, 2, 0, lanes, lane_bytes, paths, 16, 1024, 1, 1, 0, size, 1, 1, 1)
            fd = os.memfd_create("protond-ring")
            os.ftruncate(fd, size)
            for i in range(lanes):  # claimed, alive, in a scope, with counts that change
                os.pwrite(fd, struct.pack("<QQQIII", 0, i, 0, 1, 1, 1), at + 1152 * i)
            os.pwrite(fd, b"\0" * (fill if len(kept) < 8 else 0), data)
            os.pwrite(fd, head, 0)
            socket.send_fds(s, [struct.pack("<IHH16sII", MAGIC, 5, 32, uuid, 0, 0)], [fd])
            while (m := s.recv(8192))[4:6] != b"\x06\0":
                if not m:
                    raise OSError
            if m[8:12] != bytes(4):
                os.close(fd)
                raise OSError
            kept.append(fd)
        except OSError:
            pause(0.01)
        s.close()


def descriptors():
    """Messages with as many as a message can have."""
    null = [os.open("/dev/null", os.O_RDONLY) for _ in range(250)]
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            s.connect(DIR + "/agent.sock")
            while True:
                socket.send_fds(s, [struct.pack("<IHH16sII", MAGIC, 5, 32, b"x" * 16, 0, 0)], null)
        except OSError:
            pause(0.001)
        s.close()


def tmpfs():
    """What may be written of the place."""
    while True:
        for top, dirs, _ in os.walk(DIR):
            for name in ("x" * 32 + ".ring", "junk", "journal.999"):
                try:
                    with open(os.path.join(top, name), "wb") as f:
                        f.write(b"\0" * (1 << 20))
                except OSError:
                    pass
        pause(0.05)


def names():
    """Scopes of ever new names as long as may be, forty deep."""
    lib = ctypes.CDLL(BUILD + "/lib/libprotond.so.0")
    while True:
        for _ in range(40):
            lib.protond_scope_enter(lib.protond_name(os.urandom(512).hex().encode()))
        for _ in range(40):
            lib.protond_scope_exit()


def program(*argv):
    """Again and again, until it is killed with us."""
    libc = ctypes.CDLL(None)
    while True:
        p = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))
        p.wait()
        pause(0.01)


def liars():
    kinds = subprocess.run([BUILD + "/tests/liar", "list"], capture_output=True, text=True, check=True).stdout.split()
    kinds = [k for k in kinds if k not in ("hundreds", "crowd", "hoard", "half", "full")]
    seed, libc = 0, ctypes.CDLL(None)
    while True:
        seed += 1
        p = subprocess.Popen([BUILD + "/tests/liar", kinds[seed % len(kinds)], str(seed), "2"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))
        p.wait()


KINDS = {
    "sessions": lambda: again(sessions), "questions": lambda: again(questions), "unread": lambda: again(unread),
    "exports": lambda: again(exports), "prunes": lambda: again(prunes), "clients": clients, "connections": connections,
    "rings": rings, "descriptors": descriptors, "tmpfs": tmpfs, "liars": liars,
    "journal": lambda: program(BUILD + "/tests/load", HOME + f"/truth.{os.getpid()}", 4, 0, 256),  # as fast as it can
    "names": names,
}

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with who began us
    print("there", flush=True)
    KINDS[sys.argv[1]]()
