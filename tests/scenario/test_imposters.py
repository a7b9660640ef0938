# SPDX-License-Identifier: MIT. Processes that pretend to be another user's: by a number that was given again, by what
# they left, by what they mounted.
import ctypes
import os
import struct
import subprocess

import pytest

from conftest import WAIT, needs_another_user, until
from test_strangers import NOBODY, shared  # noqa: F401

pytestmark = needs_another_user

# Speaks the rendezvous itself: PEER.offer(drops) attaches and hands over a ring of one lane that lost so many events.
PEER = """
import os, socket, struct, sys
MAGIC, LANES = 0x31565250, 1152
up = lambda n: n + 4095 & ~4095
def start_of(pid):
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[19])
def connected(agent):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(agent)
    return s
def offer(agent, drops, pid, start, s=None):
    s = s or connected(agent)
    s.send(struct.pack("<IHHIIIIQ16s16s32s16s", MAGIC, 1, 112, 0x10003, 0, 1, 0, 1, b"", b"", b"peer", b""))
    while (m := s.recv(8192))[4:6] != b"\\2\\0":
        pass
    boot = bytes.fromhex(open("/proc/sys/kernel/random/boot_id").read().strip().replace("-", ""))
    uuid, lane_bytes, paths = os.urandom(16), 65536, 8192
    lanes_at = 3 * 4096
    size = lanes_at + up(LANES) + up(paths * 16) + up(16 * 16) + 3 * 4096 + lane_bytes
    h = struct.pack("<QII16s16s16s16sIIQIIIIIIIIIIQQQQ", 0x31474e52544f5250, 0x10003, 168, uuid, m[16:32], boot, b"",
                    pid, os.getuid(), start, 2, 0, 1, lane_bytes, paths, 16, 1024, 1, 1, 0, size, 1, 1, 1)
    fd = os.memfd_create("protond-ring")
    os.ftruncate(fd, size)
    os.pwrite(fd, struct.pack("<QQQIII", 0, drops, 0, 1, 1, 1), lanes_at)
    os.pwrite(fd, h, 0)
    socket.send_fds(s, [struct.pack("<IHH16sII", MAGIC, 5, 32, uuid, 0, 0)], [fd])
    while (m := s.recv(8192))[4:6] != b"\\6\\0":
        pass
    assert m[8:12] == bytes(4), m
    return s, fd, lambda n: os.pwrite(fd, struct.pack("<Q", n), lanes_at + 8)
"""


def peer(world, code, *args, **kwargs):
    p = subprocess.Popen(["/usr/bin/python3", "-c", PEER + code, str(world.dir / "agent.sock"), *map(str, args)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **kwargs)
    assert p.stdout.readline() == "there\n"
    return p


def drops(world):
    return sorted((j["uid"], j.get("drops", 0)) for j in world.ctl_json("jobs")["jobs"])


BECOMES = f"""
me = os.getpid(), start_of(os.getpid())
first = offer(sys.argv[1], 1, *me)
os.setuid({NOBODY})
second = offer(sys.argv[1], 2, *me)
print("there", flush=True)
sys.stdin.readline()
first[2](7)
sys.stdin.readline()
"""


def test_a_ring_ends_no_other_users(shared):  # noqa: F811
    """Of one pid and start, as far as anybody knows; what execve() leaves behind is of one user."""
    shared.root_job.kill()
    until("root's job is over", lambda: not drops(shared))
    p = peer(shared, BECOMES)
    until("both are there", lambda: drops(shared) == [(0, 1), (NOBODY, 2)])
    p.stdin.write("\n")
    p.stdin.flush()
    until("the first goes on", lambda: drops(shared) == [(0, 7), (NOBODY, 2)])
    p.communicate(timeout=WAIT)


LATE = """
me = os.getpid(), start_of(os.getpid())
early = connected(sys.argv[1])
second = offer(sys.argv[1], 2, *me)
offer(sys.argv[1], 1, *me, early)[0].close()
print("there", flush=True)
sys.stdin.readline()
second[2](7)
sys.stdin.readline()
"""


def test_the_program_before_execve_is_heard_last(shared):  # noqa: F811
    """It had connected, and was held up before it said anything: that ends it, and not the program that came after it."""
    shared.root_job.kill()
    until("root's job is over", lambda: not drops(shared))
    p = peer(shared, LATE)
    until("the first has ended", lambda: drops(shared) == [(0, 2)])
    p.stdin.write("\n")
    p.stdin.flush()
    until("the second goes on", lambda: drops(shared) == [(0, 7)])
    p.communicate(timeout=WAIT)


@pytest.fixture
def mounted(shared):  # noqa: F811
    """A FUSE of NOBODY's over the directory of rings that an older daemon gave him, as fusermount makes it, that
    answers nothing but its INIT."""
    theirs = dict(user=NOBODY, group=NOBODY, extra_groups=[])
    where = os.fsencode(shared.dir / f"rings/u{NOBODY}")
    os.mkdir(where, 0o700)
    os.chown(where, NOBODY, NOBODY)
    libc = ctypes.CDLL(None, use_errno=True)
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other"
    if libc.mount(b"silent", where, b"fuse", 6, options.encode()) < 0:
        os.close(fuse)
        pytest.skip("no FUSE can be mounted here")
    number = struct.unpack("<IIQ", os.read(fuse, 65536)[:16])[2]
    init = struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 12, 10, 65536, 1, 0, 0, 0)
    os.write(fuse, struct.pack("<IiQ", 16 + len(init), 0, number) + init)
    yield shared, theirs
    libc.umount2(where, 2)
    os.close(fuse)  # whoever waits for it is let go


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse")
def test_a_users_mount_holds_nobody_up(mounted):
    world, theirs = mounted
    world.stop()
    world.serve()
    assert "event=directory_left" in world.log()
    assert world.job(**theirs).say("start after").startswith("0")
    assert world.ctl_json("status")
    assert world.job().say("start mine").startswith("0")
