# SPDX-License-Identifier: MIT. Stand-in.


def all_reduce(tensor, op=None, group=None, async_op=False):
    return tensor


def broadcast(tensor, src, group=None, async_op=False):
    return tensor


def isend(tensor, dst):
    return tensor


def irecv(tensor, src):
    return tensor


class P2POp:
    def __init__(self, op, tensor, peer):
        if op not in (isend, irecv):
            raise ValueError("Invalid op")
        self.op, self.tensor, self.peer = op, tensor, peer


def batch_isend_irecv(ops):
    return [one.op(one.tensor, one.peer) for one in ops]


def destroy_process_group(group=None):
    broadcast(None, 0)  # something that has a name
