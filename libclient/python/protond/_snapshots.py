# SPDX-License-Identifier: MIT
"""PyTorch's caching allocator where blocks.cpp cannot be built: from torch's own history of it.

torch keeps what the allocator did last, with the lines of Python that asked, and gives it with all its blocks. That is
read when a step ends, and at the end of a session, by a thread that has no scopes of its own: a block stands below the
lines that allocated it, and its time is that of the reading. What torch has overwritten in between was never seen; the
blocks that are there then are, so that what is held is right behind each reading.
"""
import collections
import os
import queue
import threading
import time

from . import _api
from ._say import say

_native = _api._native
# As in blocks_calls.h.
_ALLOC, _FREE, _SIZE, _SEGMENT, _SEGMENT_GONE, _OOM, _BEFORE, _STATE = range(1, 9)
_DOES = {"alloc": _ALLOC, "free_requested": _FREE, "segment_alloc": _SEGMENT, "segment_map": _SEGMENT,
         "segment_free": _SEGMENT_GONE, "segment_unmap": _SEGMENT_GONE, "oom": _OOM}
_ENTRIES = 100_000  # that torch keeps of a device
_TAIL = 16          # entries by which it is known where the last reading ended
_SHARE = 50         # a reading at a step's end, at most, takes one of so many seconds
_FRAMES = 16
_WAIT_S = 10


class _Device:
    """As it was told."""

    def __init__(self):
        self.live, self.tail = {}, ()  # bytes by address
        self.reserved = self.active = self.split = self.requested = 0

    def put(self, device, op, address, size):
        _native.block(op, device, address, size, self.reserved, self.active, self.split, self.requested)


class _Reader:
    def __init__(self, torch):
        self.memory, self.folder = torch.cuda.memory, os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), "")
        self.devices, self.turn, self.said = collections.defaultdict(_Device), 0, False
        self.asked = queue.SimpleQueue()
        self.ended_s = self.took_s = 0.0
        if not getattr(torch._C, "_cuda_isHistoryEnabled", lambda: False)():  # else the program's own has it
            self.memory._record_memory_history("all", context="all", stacks="python", max_entries=_ENTRIES)
        threading.Thread(target=self._run, name="protond memory", daemon=True).start()

    def _run(self):
        for done in iter(self.asked.get, None):
            begin = time.monotonic()
            try:
                self.read()
            except Exception as e:  # the program goes on when torch is not as expected
                say(f"torch's allocations are not recorded any more: {e!r}")
                _stop()
                return
            finally:
                self.ended_s = time.monotonic()
                self.took_s = self.ended_s - begin
                done.set()

    def ask(self):
        done = threading.Event()
        self.asked.put(done)
        return done

    def step(self):
        if self.asked.empty() and time.monotonic() - self.ended_s > _SHARE * self.took_s:
            self.ask()

    def read(self):
        was, self.turn = self.turn, _native.blocks_turns()
        if not self.turn & 1:
            return
        whole = self.memory._snapshot()
        segments = collections.defaultdict(list)
        for one in whole["segments"]:
            segments[one["device"]].append(one)
        for device, trace in enumerate(whole["device_traces"]):
            if trace or segments[device]:
                self._device(device, trace, segments[device], self.turn != was)
        _native.context_set(0)

    def _device(self, number, trace, segments, fresh):
        d = self.devices[number]
        begins = self._new(d, trace)
        if fresh:
            d.live = {}
            d.reserved = sum(one["total_size"] for one in segments)
            now = _blocks(segments)
            _native.context_set(0)
            d.put(number, _BEFORE, len(now), sum(now.values()))
            d.live = now
            begins = len(trace)
        for entry in trace[begins:]:
            self._entry(number, d, entry)
        self._settle(number, d, segments)

    def _new(self, d, trace):
        """Where what is new begins."""
        keys = [(one["action"], one.get("addr", 0), one["size"], one.get("time_us", 0)) for one in trace]
        tail, at, n = d.tail, len(keys), len(d.tail)
        while n > 0 and at >= n and tuple(keys[at - n:at]) != tail:
            at -= 1
        found = n > 0 and at >= n
        d.tail = tuple(keys[-_TAIL:])
        if n > 0 and not found and not self.said:
            self.said = True
            say(f"torch's history of allocations, {len(trace)} entries, was overwritten between two readings: "
                "blocks that came and went there are in no count; call protond.torch.step() more often")
        return at if found else 0

    def _entry(self, number, d, entry):
        op, address, size = _DOES.get(entry["action"]), entry.get("addr", 0), entry["size"]
        if op is None or (op == _FREE and address not in d.live):  # came and went unseen
            return
        self._stand(entry.get("frames") or ())
        if op == _ALLOC:
            d.requested += size
            size = d.live[address] = max((size + 511) // 512 * 512, 512)
            d.active += size
        elif op == _FREE:
            d.requested = max(d.requested - size, 0)
            size = d.live.pop(address)
            d.active = max(d.active - size, 0)
        elif op == _SEGMENT:
            d.reserved += size
        elif op == _SEGMENT_GONE:
            d.reserved = max(d.reserved - size, 0)
        d.put(number, op, address, size)

    def _settle(self, number, d, segments):
        """What the blocks say that are there."""
        now = _blocks(segments)
        _native.context_set(0)
        for address, size in [one for one in d.live.items() if one[0] not in now]:
            d.put(number, _FREE, address, size)
        for address, size in now.items():
            was = d.live.get(address, 0)
            if size != was:
                d.put(number, _ALLOC if was == 0 else _SIZE, address, size)
        d.live = now
        d.reserved = sum(one["total_size"] for one in segments)
        d.active = sum(one["active_size"] for one in segments)
        d.requested = sum(b.get("requested_size", b["size"]) for one in segments for b in one["blocks"] if _is_used(b))
        d.split = sum(b["size"] for one in segments if one["active_size"] for b in one["blocks"] if b["state"] == "inactive")
        d.put(number, _STATE, 0, 0)

    def _stand(self, frames):
        """Below the lines that allocated, outermost first, without torch's own."""
        context = 0
        kept = [one for one in frames if not one["filename"].startswith(self.folder)][:_FRAMES]
        for one in reversed(kept):
            context = _native.context_child(context, _native.name("{filename}:{line}@{name}".format(**one)))
        _native.context_set(context)


def _is_used(block):
    return block["state"] == "active_allocated"


def _blocks(segments):
    """Bytes by address of what is allocated."""
    found = {}
    for one in segments:
        at = one["address"]
        for block in one["blocks"]:
            if _is_used(block):
                found[at] = block["size"]
            at += block["size"]
    return found


_reader = None


def _stop():
    global _reader
    _reader = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stop)  # a child has no such thread


def begin(torch):
    """CUDA is in use. What goes wrong here is not the program's."""
    global _reader
    try:
        _reader = _Reader(torch)
        told()
    except Exception as e:
        say(f"torch {torch.__version__} has no history of its allocations: {e!r}: protond.memory has its figures by step")


def step():
    if _reader is not None:
        _reader.step()


def told():
    """Somebody waits: what happened so far is recorded when this returns."""
    if _reader is not None and _native.blocks_turns() & 1:
        _reader.ask().wait(_WAIT_S)
