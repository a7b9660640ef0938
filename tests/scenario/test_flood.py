# SPDX-License-Identifier: MIT. Clients that ask more than anybody reads, while jobs and the daemon itself come to an end.
import select
import socket
import struct

import msgpack
import pytest

from conftest import WAIT, receive, until


@pytest.fixture
def quiet(world):
    world.start(PROTOND_AUTO_SESSION="off")
    yield world


def frame(method, **params):
    body = msgpack.packb([0, 7, method, params])
    return struct.pack("<I", len(body)) + body


class Client:
    def __init__(self, world):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WAIT)
        self.socket.connect(str(world.dir / "control.sock"))
        self.socket.sendall(frame("hello", version=1))
        self.answer()

    def answer(self):
        (n,) = struct.unpack("<I", receive(self.socket, 4))
        return msgpack.unpackb(receive(self.socket, n), raw=True)


def test_a_job_hangs_up_for_which_many_requests_wait(quiet):
    """Twenty in one piece: sixteen wait until the job says that it does what they want, and four behind them."""
    job = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    job.connect(str(quiet.dir / "agent.sock"))
    job.send(struct.pack("<IHHIIIIQ16s16s32s16s", 0x31565250, 1, 112, 0x10002, 0, 1, 0, 1, b"", b"", b"lazy", b""))
    client = Client(quiet)
    client.socket.sendall(b"".join(frame("start", name=f"s{i}", all=True) for i in range(20)))
    until("those before them are begun", lambda: len(quiet.ctl_json("sessions")["sessions"]) == 16)
    job.close()
    answers = [client.answer() for _ in range(20)]
    assert all(error is None for _, _, error, _ in answers), answers
    assert quiet.stop() == 0


def test_the_daemon_ends_with_questions_out(quiet):
    """Which the store answers when the sockets are gone already."""
    job = quiet.job()
    job.say("start mine")
    job.say("repeat 10 x")
    clients = [Client(quiet) for _ in range(40)]
    piece = frame("where", session="mine") * 50
    quiet.daemon.terminate()
    while clients:  # ask on until they are hung up on
        readable, writable, _ = select.select([c.socket for c in clients], [c.socket for c in clients], [], WAIT)
        for s in {*readable, *writable}:
            s.setblocking(False)
            try:
                if s in writable:
                    s.send(piece)
                if s in readable and not s.recv(1 << 20):
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            except OSError:
                clients = [c for c in clients if c.socket is not s]
    assert quiet.daemon.wait(WAIT) == 0, quiet.log()
    quiet.daemon = None
